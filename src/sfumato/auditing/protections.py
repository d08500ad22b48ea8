# SPDX-License-Identifier: Apache-2.0
"""The usual protections of one model, as unfitted estimators for ``compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline, make_pipeline

from sfumato.anatomize import BucketClassifier, PrunedClassifier
from sfumato.anonymize import AnonymizedClassifier, AnonymizedRegressor, ModelGuidedAnonymizer
from sfumato.criteria import LDiversity
from sfumato.errors import ParameterError
from sfumato.private.boosting import PrivateBoostingClassifier
from sfumato.private.linear import PrivateLogisticRegression
from sfumato.private.network import PrivateNetworkClassifier

PRIVATE_MODELS: Mapping[str, type] = {
    "logistic": PrivateLogisticRegression,
    "boosting": PrivateBoostingClassifier,
    "network": PrivateNetworkClassifier,
}


def usual_protections(
    estimator: Any,
    *,
    k: Sequence[int] = (10, 100),
    quasi_identifiers: Any = None,
    transform_at_predict: bool = False,
    l: Sequence[int] = (),  # noqa: E741
    sensitive: str | None = None,
    minimizers: Mapping[str, Any] | None = None,
    epsilons: Sequence[float] = (),
    private_models: Sequence[str] = ("logistic",),
    bounds: Mapping[str, Sequence[float]] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    classes: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """Return the plain model and its protected versions by name.

    Parameters
    ----------
    estimator : unfitted classifier or regressor
        Takes records as they are: usually a pipeline of an encoder and a model.
    k : sequence of int, default=(10, 100)
        One anonymized model for each.
    quasi_identifiers : list of columns, optional
        For all anonymizers; None: all columns.
    transform_at_predict : bool, default=False
        For all anonymized models, see `AnonymizedClassifier`.
    l : sequence of int
        With `sensitive`: for each, an anonymized model with l-diverse groups (of the smallest k), and the two models
        that learn from anatomized tables, which take the last step of a pipeline since they encode records themselves.
    sensitive : str, optional
    minimizers : mapping of str to minimizer, optional
        Each becomes a pipeline of the minimizer and the estimator; ``output="representatives"`` keeps the columns as
        the estimator knows them.
    epsilons : sequence of float
        For each, the `private_models` with this budget; needs the extra ``dp``. An infinite one is the logistic
        regression without noise: what a private model loses for being another model, and not for its noise.
    private_models : sequence of {"logistic", "boosting", "network"}, default=("logistic",)
    bounds, categories, classes
        What the private models must know beforehand, see `PrivateLogisticRegression`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> list(usual_protections(LogisticRegression(), k=[5, 50]))
    ['none', 'k=5', 'k=50']
    """
    if not (is_classifier(estimator) or is_regressor(estimator)):
        raise ParameterError(
            f"estimator is a {type(estimator).__name__}: expected a classifier or regressor. Pass an instance."
        )
    if l and sensitive is None:
        raise ParameterError("l= without sensitive=: expected the column whose values must differ. Name it.")
    protected = str(sensitive)
    if l and not k:
        raise ParameterError("l= without k=: l-diverse groups have the smallest k. Give at least one k.")
    wrapper = AnonymizedRegressor if is_regressor(estimator) else AnonymizedClassifier
    protections: dict[str, Any] = {"none": clone(estimator)}
    for size in k:
        protections[f"k={size}"] = wrapper(
            clone(estimator), k=size, quasi_identifiers=quasi_identifiers, transform_at_predict=transform_at_predict
        )
    for level in l:
        anonymizer = ModelGuidedAnonymizer(
            k=min(k), quasi_identifiers=quasi_identifiers, criteria=[LDiversity(level, sensitive=protected)]
        )
        protections[f"k={min(k)}, l={level}"] = wrapper(
            clone(estimator), k=min(k), anonymizer=anonymizer, transform_at_predict=transform_at_predict
        )
        if is_classifier(estimator):
            last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
            protections[f"anatomy, pruned, l={level}"] = PrunedClassifier(clone(last), level, sensitive=sensitive)
            protections[f"anatomy, buckets, l={level}"] = BucketClassifier(clone(last), level, sensitive=sensitive)
    for name, minimizer in (minimizers or {}).items():
        protections[name] = make_pipeline(clone(minimizer), clone(estimator))
    for epsilon in epsilons:
        for name in private_models:
            if name not in PRIVATE_MODELS:
                raise ParameterError(
                    f"private_models has {name!r}: expected some of {', '.join(PRIVATE_MODELS)}. Correct the name."
                )
            protections[f"private {name}, epsilon={epsilon:g}"] = PRIVATE_MODELS[name](
                epsilon, bounds=bounds, categories=categories, classes=classes
            )
    return protections
