# SPDX-License-Identifier: Apache-2.0
"""Classifiers that learn from an anatomized table: from one candidate per record, or from all of them, weighted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from sfumato.anatomize.bucketize import Assignment
from sfumato.anatomize.candidates import Candidates, Weighing, weigh, weighted_rows
from sfumato.anatomize.choosing import choose_settings
from sfumato.anatomize.coordinates import CodingName
from sfumato.anatomize.error_bound import Bound, linear_weights, theorem_bound
from sfumato.anatomize.learning import GUARANTEE, MORE_PARAMETERS, PARAMETERS, LearnsFromAnatomy, column_of
from sfumato.anatomize.prune import Per, choose_candidates
from sfumato.anatomize.tables import AnatomizedTable
from sfumato.anonymize.guide_from_target import fit_weighted, takes_weights
from sfumato.arguments import (
    Names,
    Seed,
    as_table_like,
    check_choice,
    check_integer,
    check_wrapped,
    checked_weight,
    wrapped_has,
)
from sfumato.errors import InputError, ParameterError
from sfumato.frames import read_table


class _AnatomyClassifier(ClassifierMixin, LearnsFromAnatomy):
    """Base of classifiers whose classes are not sensitive, and leave beside the identifying columns."""

    sensitive: Any
    joint: Any
    choose: Any
    cv: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Anatomize the records and train the estimator on what the tables tell; they are not kept.

        Parameters
        ----------
        X : frame or array of shape (records, columns)
            With the sensitive columns.
        y : array-like of shape (records,)
            The classes. They leave beside the identifying columns, so they must not be sensitive themselves.
        sample_weight : array-like of shape (records,), optional
        """
        check_wrapped(self, y, such_as="LinearSVC()")
        X = as_table_like(X)
        table = read_table(X)
        validate_data(self, X, skip_check_array=True)
        labels = column_or_1d(y, warn=True)
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        if len(labels) != table.n_records:
            raise InputError(
                f"inconsistent numbers of samples: {len(labels)} labels for {table.n_records} records: expected one "
                "per record. Pass the labels of the same rows."
            )
        weight = checked_weight(sample_weight, table.n_records)
        candidates, rows = self._divided(X, self.sensitive, self.joint)
        self.classes_ = np.unique(labels)
        return self._choose_and_learn(candidates, labels[rows], None if weight is None else weight[rows])

    def fit_anatomized(self, anatomized: AnatomizedTable, y: Any) -> Self:
        """Train on tables that were made before, such as those that ``AnatomizedTable.load`` reads.

        Parameters
        ----------
        anatomized : AnatomizedTable
            Of frames. What this learner would anatomize by (``l``, ``sensitive`` and so on) is not used.
        y : str or array-like
            The identifying column with the classes, or one class per identifying row.
        """
        labels, dropped = column_of(anatomized, y)
        check_classification_targets(labels)
        candidates = self._received(anatomized, dropped)
        self.classes_ = np.unique(labels)
        return self._choose_and_learn(candidates, labels, None)

    def _choose_and_learn(self, candidates: Candidates, y: NDArray[Any], weight: Any) -> Self:
        if self.choose is None:
            self._learn(candidates, y, weight)
            return self
        choice = choose_settings(self, candidates, y, weight, self._random())
        self.best_params_, self.choice_scores_ = choice.params, choice.scores
        best = clone(self).set_params(choose=None, **choice.params)
        best._learn(candidates, y, weight)
        for name, value in vars(best).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return self

    def _learn(self, candidates: Candidates, y: NDArray[Any], weight: Any) -> None:
        """Train on some records and their candidates; leave ``estimator_`` and ``coding_``."""
        raise NotImplementedError

    @available_if(wrapped_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities of raw records."""
        coded = self._coded(X)
        return self.estimator_.predict_proba(coded)

    @available_if(wrapped_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of raw records."""
        coded = self._coded(X)
        return self.estimator_.decision_function(coded)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = False
        if hasattr(self.estimator, "__sklearn_tags__") and get_tags(self.estimator).classifier_tags is not None:
            tags.classifier_tags.multi_class = get_tags(self.estimator).classifier_tags.multi_class
        return tags


_CHOOSE = """
    choose : dict, optional
        Settings to choose by cross-validation: parameters of this class, or of the estimator with ``estimator__``
        before the name, and the values to try. Folds and scores come from the anatomized tables alone; see
        ``sfumato.anatomize.choosing``.
    cv : int, default=5
        Folds of the cross-validation.
"""
_ATTRIBUTES = """
    Attributes
    ----------
    estimator_ : classifier
        The trained model.
    coding_ : Coding
    classes_ : ndarray
    n_groups_, n_suppressed_ : int
    best_params_ : dict
        The settings that were chosen, where `choose` is given.
    choice_scores_ : list of (dict, float)
        All settings that were tried, and their expected accuracy.
"""
_REFERENCES = """
    References
    ----------
    Mancuhan, K., Clifton, C. (2018). Support vector classification with l-diversity.
"""


class PrunedClassifier(_AnatomyClassifier):  # noqa: D101 - the text is put together below
    __doc__ = f"""Train a classifier on an anatomized table, with one candidate for each record.

    Anatomize the records, keep for each the sensitive row of its group whose squared norm is nearest the expected one,
    and train the estimator on that.
    {PARAMETERS.format(kind="classifier").rstrip()}
    per : {{"record", "group"}}, default="record"
        Prune to one row per record, or to one per group (of the first sensitive table, where there are several).
    feature_map : transformer, optional
        Measure norms after this map; the estimator is trained without it.
    {_CHOOSE.strip()}
    {MORE_PARAMETERS.strip()}
    {_ATTRIBUTES.rstrip()}
    pruned_size_ : int
        Rows the estimator was trained on.
    radius_min_, radius_max_ : float
        Squared radii of Figure B.1.
    {GUARANTEE.rstrip()}
    {_REFERENCES}
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from sfumato import PrunedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = PrunedClassifier(LinearSVC(), l=3, sensitive=3, random_state=0).fit(X, y)
    >>> bool(classifier.score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        estimator: Any,
        l: Any = 2,  # noqa: E741
        *,
        sensitive: Any = None,
        joint: Any = False,
        identifiers: Names | None = None,
        coding: CodingName = "one-hot",
        per: Per = "record",
        feature_map: Any = None,
        choose: Any = None,
        cv: int = 5,
        suppression_limit: float = 0.0,
        assignment: Assignment = "largest",
        categorical_features: Collection[str | int] | None = None,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.l = l
        self.sensitive = sensitive
        self.joint = joint
        self.identifiers = identifiers
        self.coding = coding
        self.per = per
        self.feature_map = feature_map
        self.choose = choose
        self.cv = cv
        self.suppression_limit = suppression_limit
        self.assignment = assignment
        self.categorical_features = categorical_features
        self.random_state = random_state

    def _learn(self, candidates: Candidates, y: NDArray[Any], weight: Any) -> None:
        self.coding_ = candidates.codings(self.coding)
        pruned = choose_candidates(candidates, self.coding_, per=self.per, feature_map=self.feature_map)
        coded = candidates.coordinates(self.coding_, pruned.rows, list(pruned.candidates.T))
        self.radius_min_, self.radius_max_ = pruned.radius_min, pruned.radius_max
        self.pruned_size_ = len(pruned.rows)
        weight = None if weight is None else weight[pruned.rows]
        self.estimator_ = fit_weighted(clone(self.estimator), coded, y[pruned.rows], weight)

    def bound(self) -> Bound:
        """Return Theorem 4.1 for the trained model, or why it does not apply."""
        check_is_fitted(self, "estimator_")
        weights = linear_weights(self.estimator_)
        if weights is None:
            return Bound(None, reason="the model is not a linear one of two classes")
        if self.n_suppressed_:
            return Bound(None, reason="records were suppressed")
        if self.per != "record" or self.feature_map is not None:
            return Bound(None, reason="it needs one row per record, chosen in the model's own coordinates")
        return theorem_bound(self.pruned_size_, len(weights) - 1, weights, self.radius_min_, self.radius_max_)


class BucketClassifier(_AnatomyClassifier):  # noqa: D101 - the text is put together below
    __doc__ = f"""Train a classifier on an anatomized table, with all candidates of each record as weighted rows.

    The estimator minimizes its expected loss over the candidates, so it must take ``sample_weight``. A record in a
    group of m gets m rows, one for each sensitive row of the group. With several sensitive tables it gets a row for
    every combination.
    {PARAMETERS.format(kind="classifier").rstrip()}
    weights : {{"learned", "even"}}, default="learned"
        Even: all candidates of a record have the same weight, 1/m. Learned: a candidate weighs as much as all groups
        together show it to be likely, given the record's identifying columns.
    max_candidates : int, default=16
        Rows of a record at the most; where it has more candidates, so many are drawn by their weights.
    {_CHOOSE.strip()}
    {MORE_PARAMETERS.strip()}
    {_ATTRIBUTES.rstrip()}
    {GUARANTEE.rstrip()}

    Weights are learned as deFinetti's attack learns them (``sfumato.attack.definetti``). The classifier gains where the
    attack does: what it learns is what the tables reveal.
    {_REFERENCES}
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sfumato import BucketClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = BucketClassifier(LogisticRegression(), l=3, sensitive=3, random_state=0).fit(X, y)
    >>> bool(classifier.score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        estimator: Any,
        l: Any = 2,  # noqa: E741
        *,
        sensitive: Any = None,
        joint: Any = False,
        identifiers: Names | None = None,
        coding: CodingName = "one-hot",
        weights: Weighing = "learned",
        max_candidates: int = 16,
        choose: Any = None,
        cv: int = 5,
        suppression_limit: float = 0.0,
        assignment: Assignment = "largest",
        categorical_features: Collection[str | int] | None = None,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.l = l
        self.sensitive = sensitive
        self.joint = joint
        self.identifiers = identifiers
        self.coding = coding
        self.weights = weights
        self.max_candidates = max_candidates
        self.choose = choose
        self.cv = cv
        self.suppression_limit = suppression_limit
        self.assignment = assignment
        self.categorical_features = categorical_features
        self.random_state = random_state

    def _learn(self, candidates: Candidates, y: NDArray[Any], weight: Any) -> None:
        check_choice("weights", self.weights, ("even", "learned"))
        check_integer("max_candidates", self.max_candidates, 1)
        if not takes_weights(self.estimator):
            raise ParameterError(
                f"estimator is a {type(self.estimator).__name__}, whose fit takes no sample_weight: expected one that "
                "does, since candidates are weighted. Use PrunedClassifier with it."
            )
        weights = weigh(candidates, self.weights)
        rows = weighted_rows(weights, candidates.n_records, self.max_candidates, self._random())
        self.coding_ = candidates.codings(self.coding)
        coded = candidates.coordinates(self.coding_, rows.records, rows.rows)
        shares = rows.weight if weight is None else rows.weight * weight[rows.records]
        self.estimator_ = fit_weighted(clone(self.estimator), coded, y[rows.records], shares)
