# SPDX-License-Identifier: Apache-2.0
"""Protections of one model, as a frontier takes them: objects of any kind, or numbers under a short name.

Every protection becomes an unfitted estimator that takes raw records, and a function that says what of it is shared:
a table, a recoding, an encoder, a promise. What a kind of protection cannot have is declared here, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline, make_pipeline

from sfumato.anatomize import Anatomizer, BucketClassifier, PrunedClassifier
from sfumato.anonymize import AnonymizedClassifier, AnonymizedRegressor, ModelGuidedAnonymizer, PrivateAnonymizer
from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.auditing.made_tables import (
    LearnsFromCounts,
    LearnsFromPrivateRelease,
    LearnsFromSynthetic,
    check_synthesizer,
)
from sfumato.criteria import LDiversity, TCloseness
from sfumato.errors import ParameterError, named
from sfumato.frames import read_table
from sfumato.minimize.minimizer import Minimizer
from sfumato.private.encoding import PublicEncoding
from sfumato.private.estimator import PrivateEstimator
from sfumato.private.noise import require_opendp
from sfumato.representatives import REPRESENTATIVES

NO_PROTECTION = "no protection"
K_BESIDE = 10
"""k of groups that must also be diverse or close."""

_NO_TABLE = "no table is shared, only a model"
_NO_PROMISE = "it promises no differential privacy"
_NO_ENCODER = "nothing is shown of a new person"


@dataclass(frozen=True)
class Shared:
    """What a fitted protection shares, as far as it can be attacked and certified.

    Attributes
    ----------
    table : frame or None
        The table that leaves, without the target.
    is_aligned : bool
        Whether its rows stand as those of the training records do.
    model : fitted estimator or None
        The model that takes recoded records, with `recode`.
    recode : callable or None
        Recodes later records as the table was recoded.
    takes_raw : bool
        False if the model can only be asked about recoded records.
    encoder : object or None
        What `certify` bounds: a fitted partition or generalization.
    anatomy : tuple or None
        An anatomized table, and the training row behind each of its identifying rows.
    privacy : PrivacyGuarantee or None
    """

    table: Any = None
    is_aligned: bool = True
    model: Any = None
    recode: Callable[[Any], Any] | None = None
    takes_raw: bool = True
    encoder: Any = None
    anatomy: tuple[Any, NDArray[np.int64]] | None = None
    privacy: Any = None


@dataclass(frozen=True, eq=False)
class Protection:
    """A protection, ready to be fitted.

    Attributes
    ----------
    name, family : str
    parameter : float or None
    estimator : unfitted estimator
        The whole pipeline: takes raw records.
    look : callable
        From the fitted estimator, its training records and their labels to what is shared.
    reasons : mapping of str to str
        What it cannot have by its kind, and why.
    fit : callable, optional
        From training and test rows to the fitted estimator, where it is not made of copies of `estimator`; that is then
        for shadow models only.
    """

    name: str
    family: str
    parameter: float | None
    estimator: Any
    look: Callable[[Any, Any, Any], Shared]
    reasons: Mapping[str, str] = field(default_factory=dict)
    fit: Callable[[NDArray[np.int64], NDArray[np.int64]], Any] | None = None


@dataclass(frozen=True, eq=False)
class Scope:
    """What all protections of a frontier have in common.

    Attributes
    ----------
    model : unfitted estimator
    names : tuple of str
        All columns of the records.
    quasi_identifiers, sensitive : list of str
    classes : ndarray or None
        The labels; None for numbers.
    bounds, categories, target_bounds, delta
        Public knowledge and the delta of private learners and releases.
    others : tuple or None
        Records and targets of other people.
    target : str
        Name of the target in tables that hold it.
    n_jobs : int or None
    """

    model: Any
    names: tuple[str, ...]
    quasi_identifiers: list[str]
    sensitive: list[str]
    classes: NDArray[Any] | None
    bounds: Mapping[str, Sequence[float]] | None = None
    categories: Mapping[str, Sequence[Any]] | None = None
    target_bounds: tuple[float, float] | None = None
    delta: float = 1e-6
    others: tuple[Any, Any] | None = None
    target: str = "target"
    n_jobs: int | None = None

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number."""
        return self.classes is None

    @property
    def has_public_knowledge(self) -> bool:
        """Whether anything is known of the columns beforehand."""
        return bool(self.bounds or self.categories)

    def anonymized(self, **settings: Any) -> Any:
        """Return the model behind an anonymizer."""
        kind = AnonymizedRegressor if self.is_regression else AnonymizedClassifier
        return kind(clone(self.model), **settings)

    def last_step(self) -> Any:
        """Return the model without its encoder, for those that encode records themselves."""
        return clone(self.model.steps[-1][1] if isinstance(self.model, Pipeline) else self.model)

    def check_public(self, what: str) -> None:
        """Raise ParameterError unless every column is publicly known, MissingExtraError without noise."""
        require_opendp()
        if not self.has_public_knowledge:
            raise ParameterError(
                f"protections has {what!r} without {named('bounds')} and {named('categories')}: expected what is "
                "publicly known of every column, since differential privacy may not look it up. Pass both."
            )
        PublicEncoding(self.names, self.bounds, self.categories)
        if self.is_regression and self.target_bounds is None:
            raise ParameterError(
                f"protections has {what!r} without {named('target_bounds')}: expected the lowest and the highest "
                "possible target, known without the data. Pass them."
            )


# -- what is shared ----------------------------------------------------------------------------------------------


def _raw_records(fitted: Any, X: Any, y: Any) -> Shared:
    return Shared(table=X)


def _model_alone(fitted: Any, X: Any, y: Any) -> Shared:
    return Shared(privacy=getattr(fitted, "privacy_", None))


def _of_groups(fitted: Any, X: Any, y: Any) -> Shared:
    """Return what is shared by a model of anonymized records: their table, unless it learned from regions."""
    if hasattr(fitted, "regions_"):
        return Shared()
    recode = fitted.anonymizer_.transform
    return Shared(
        table=recode(X), model=fitted.estimator_, recode=recode, takes_raw=not fitted.transform_at_predict,
        encoder=fitted.anonymizer_,
    )  # fmt: skip


def _buckets(fitted: Any, X: Any, y: Any) -> Shared:
    generalization = fitted[0].generalization_
    return Shared(table=generalization.transform(X, output="labels"), encoder=generalization)


def _two_tables(anatomizer: Any, fitted: Any, X: Any, y: Any) -> Shared:
    tables, rows = clone(anatomizer).fit_transform_with_rows(X)
    identifying = read_table(tables.identifying)
    exact = identifying.replaced({}, drop=identifying.names[-len(tables.groups) :])
    return Shared(table=exact, is_aligned=False, anatomy=(tables, rows))


def _made_table(fitted: Any, X: Any, y: Any) -> Shared:
    return Shared(table=fitted.table_, is_aligned=False, privacy=fitted.privacy_)


def _private_table(fitted: Any, X: Any, y: Any) -> Shared:
    """Return a private release, and the model of one with the values of cells, for records that are recoded."""
    model, recode = fitted.of_cells(X, y)
    return replace(_made_table(fitted, X, y), model=model, recode=recode)


_RAW_MODEL = {"recoded": _NO_TABLE, "certificate": _NO_ENCODER, "limit": _NO_PROMISE}
_REASONS: Mapping[str, Mapping[str, str]] = {
    "none": {"recoded": "nothing is recoded", "certificate": "records are shown as they are", "limit": _NO_PROMISE},
    "k": {"limit": _NO_PROMISE},
    "l": {"limit": _NO_PROMISE},
    "t": {"limit": _NO_PROMISE},
    "buckets": {"recoded": "the model recodes records itself", "limit": _NO_PROMISE},
    "anatomy": {
        "recoded": "the model takes raw records", "limit": _NO_PROMISE,
        "certificate": "the two tables can be related over all groups, so no bound holds for every attacker",
    },
    "epsilon-learner": {"recoded": _NO_TABLE, "certificate": _NO_ENCODER},
    "epsilon-release": {"certificate": "the shared records are nobody's"},
    "synthetic": {
        "recoded": "nothing is recoded", "certificate": "the shared records are nobody's", "limit": _NO_PROMISE,
    },
    "other": _RAW_MODEL,
}  # fmt: skip


def _protection(
    name: str, family: str, parameter: float | None, estimator: Any, look: Callable[[Any, Any, Any], Shared]
) -> Protection:
    return Protection(name, family, parameter, estimator, look, _REASONS[family])


# -- objects -------------------------------------------------------------------------------------------------------


def protection_of(name: str, given: Any, scope: Scope) -> Protection:
    """Return the protection that an object is.

    Raises
    ------
    ParameterError
        If it is not one, or cannot protect a model of this task.
    """
    if given is None or given is scope.model:
        return _protection(name, "none", None, clone(scope.model), _raw_records)
    if isinstance(given, type):
        raise ParameterError(
            f"protections: {name!r} is the class {given.__name__}: expected an instance. Write {given.__name__}(...)."
        )
    if isinstance(given, Anonymizer):
        return _of_anonymizer(name, given, scope)
    if isinstance(given, AnonymizedClassifier | AnonymizedRegressor):
        own = given.anonymizer if given.anonymizer is not None else given
        return _protection(name, *_family_of_groups(own), _checked(name, given, scope), _of_groups)
    if isinstance(given, PrivateAnonymizer):
        check_classes(name, scope)
        made = LearnsFromPrivateRelease(clone(scope.model), clone(given))
        return _protection(name, "epsilon-release", given.epsilon, made, _private_table)
    if isinstance(given, PrivateEstimator):
        parameter = None if np.isinf(given.epsilon) else given.epsilon
        return _protection(name, "epsilon-learner", parameter, _checked(name, given, scope), _model_alone)
    if isinstance(given, Minimizer):
        check_classes(name, scope)
        own = clone(given).set_params(output="representatives")  # the columns as the model knows them
        return _protection(name, "buckets", _leaves(given), make_pipeline(own, clone(scope.model)), _buckets)
    if isinstance(given, Pipeline) and isinstance(given.steps[0][1], Minimizer):
        return _protection(name, "buckets", _leaves(given[0]), _checked(name, given, scope), _buckets)
    if isinstance(given, Anatomizer | PrunedClassifier | BucketClassifier):
        return _of_anatomy(name, given, scope)
    if hasattr(given, "fit") and hasattr(given, "sample"):
        check_synthesizer(name, given)
        made_table = LearnsFromSynthetic(clone(scope.model), given, scope.target)
        return _protection(name, "synthetic", None, made_table, _made_table)
    if hasattr(given, "fit") and hasattr(given, "predict"):
        return _protection(name, "other", None, _checked(name, given, scope), _model_alone)
    raise ParameterError(
        f"protections: {name!r} is a {type(given).__name__}: expected an anonymizer, an AnonymizedClassifier, a "
        "minimizer, an Anatomizer, a private learner, a PrivateAnonymizer, an object with fit and sample, or any "
        "estimator with fit and predict. Behind a transformer, pass make_pipeline(transformer, model)."
    )


def counts_release(name: str, made: LearnsFromCounts) -> Protection:
    """Return the protection by noisy counts in the cells of other people."""
    return _protection(name, "epsilon-release", made.epsilon, made, _private_table)


def _of_anonymizer(name: str, given: Anonymizer, scope: Scope) -> Protection:
    """Return the model that is trained on the table of an anonymizer."""
    representative = getattr(given, "representative", None)
    keeps_types = representative is not None and REPRESENTATIVES[representative].facts.keeps_type
    # Methods that nothing guides do not look at the labels.
    has_own_guide = getattr(given, "guide_estimator", None) is not None
    guide = None if isinstance(given, ModelGuidedAnonymizer) and not has_own_guide else "labels"
    wrapped = scope.anonymized(
        anonymizer=clone(given), guide_estimator=guide, learn_from="points", transform_at_predict=not keeps_types
    )
    return _protection(name, *_family_of_groups(given), wrapped, _of_groups)


def _family_of_groups(anonymizer: Any) -> tuple[str, float | None]:
    """Return the family and the parameter of an anonymizer: of its diversity or closeness, or else its k."""
    criteria = getattr(anonymizer, "criteria", None) or ()
    for criterion in criteria if isinstance(criteria, Sequence) else [criteria]:
        if isinstance(criterion, LDiversity):
            return "l", float(criterion.l)
        if isinstance(criterion, TCloseness):
            return "t", float(criterion.t)
    k = getattr(anonymizer, "k", None)
    return "k", float(K_BESIDE if k is None else k)


def _leaves(minimizer: Any) -> float | None:
    for parameter in ("max_leaves", "n_buckets"):
        if hasattr(minimizer, parameter):
            return float(getattr(minimizer, parameter))
    return None


def _of_anatomy(name: str, given: Any, scope: Scope) -> Protection:
    check_classes(name, scope)
    shared = {
        part: getattr(given, part)
        for part in ("l", "sensitive", "joint", "identifiers", "suppression_limit", "assignment", "random_state")
    }
    if isinstance(given, Anatomizer):
        estimator, anatomizer = PrunedClassifier(scope.last_step(), **shared), clone(given)
    else:
        # What a classifier keeps to itself is not checked for names of people; what is shared is.
        estimator, anatomizer = clone(given), Anatomizer(**shared, keep=list(range(len(scope.names))))
    least = min(given.l.values()) if isinstance(given.l, Mapping) else given.l
    return _protection(name, "anatomy", float(least), estimator, partial(_two_tables, anatomizer))


def _checked(name: str, given: Any, scope: Scope) -> Any:
    """Return a copy of an estimator; raise ParameterError if it learns something else than the model does."""
    is_for_numbers = is_regressor(given)
    if is_for_numbers != scope.is_regression and (is_for_numbers or is_classifier(given)):
        kinds = ("classes", "numbers")
        raise ParameterError(
            f"protections: {name!r} is a {type(given).__name__}, which predicts {kinds[is_for_numbers]}: expected one "
            f"for {kinds[scope.is_regression]}, as the model."
        )
    return clone(given)


def check_classes(name: str, scope: Scope) -> None:
    """Raise ParameterError for a protection that knows classes only, if the target holds numbers."""
    if scope.is_regression:
        raise ParameterError(
            f"protections: {name!r} works for classes, and the target holds numbers: expected a classifier as the "
            "model. Cut the target into classes, or leave it out."
        )
