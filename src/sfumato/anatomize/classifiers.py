# SPDX-License-Identifier: Apache-2.0
"""Classifiers that learn from an anatomized table: from one candidate per record, or from all of them, weighted."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from sfumato.anatomize.anatomizer import Anatomizer
from sfumato.anatomize.bucketize import Assignment
from sfumato.anatomize.coordinates import Coding, CodingName
from sfumato.anatomize.error_bound import Bound, linear_weights, theorem_bound
from sfumato.anatomize.prune import Candidates, Per, choose
from sfumato.anonymize.guide_from_target import fit_weighted, takes_weights
from sfumato.arguments import as_table_like, check_wrapped, checked_weight, wrapped_has
from sfumato.errors import InputError, ParameterError
from sfumato.frames import read_table


class _LearnsFromAnatomy(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Base of both classifiers: anatomize, encode, train on the two tables, predict raw records."""

    estimator: Any
    l: int  # noqa: E741
    sensitive: Any
    identifiers: Any
    coding: CodingName
    suppression_limit: float
    assignment: Assignment
    categorical_features: Any
    random_state: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Anatomize the records and train the estimator on what the two tables tell; neither is kept.

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
        anatomizer = self._anatomizer(table.names)
        anatomized, rows = anatomizer.fit_transform_with_rows(X)
        sensitive = list(table.resolve(self.sensitive, "sensitive"))
        dropped = table.resolve(self.identifiers if self.identifiers is not None else (), "identifiers")
        self._columns = [n for n in table.names if n not in sensitive and n not in dropped], sensitive
        self._codes = table.resolve(self.categorical_features or (), "categorical_features")
        candidates = Candidates.of(anatomized, self._codes_by_table(anatomized))
        own, theirs = candidates.codings(self.coding)
        self.coding_ = Coding(own.parts + theirs.parts)
        self.n_suppressed_ = anatomizer.n_suppressed_
        self.n_groups_ = anatomizer.n_groups_
        self.classes_ = np.unique(labels)
        self._train(anatomized, candidates, own, theirs, labels[rows], None if weight is None else weight[rows])
        return self

    def _train(self, anatomized: Any, candidates: Candidates, own: Coding, theirs: Coding, y: Any, weight: Any) -> None:
        raise NotImplementedError

    def _anatomizer(self, names: tuple[str, ...]) -> Anatomizer:
        group = "group"
        while group in names:
            group += "_"
        return Anatomizer(
            self.l,
            sensitive=self.sensitive,
            identifiers=self.identifiers,
            keep=list(range(len(names))),  # nothing is shared: the tables stay inside the classifier
            suppression_limit=self.suppression_limit,
            assignment=self.assignment,
            group=group,
            random_state=self.random_state,
        )

    def _codes_by_table(self, anatomized: Any) -> tuple[list[str], list[str]]:
        """Return the names of the numeric categories in the two tables; arrays number their columns again."""
        found: list[list[str]] = []
        for names, frame in zip(self._columns, (anatomized.identifying, anatomized.sensitive), strict=True):
            own_names = read_table(frame).names
            found.append([own_names[place] for place, name in enumerate(names) if name in self._codes])
        return found[0], found[1]

    def _coded(self, X: Any) -> NDArray[np.float64]:
        """Return raw records in the coordinates of training."""
        check_is_fitted(self, "estimator_")
        X = as_table_like(X)
        read_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        table = read_table(X, categorical=self._codes)
        return self.coding_.coordinates([table.column(name) for names in self._columns for name in names])

    @available_if(wrapped_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict the classes of raw records, sensitive columns included."""
        coded = self._coded(X)
        return self.estimator_.predict(coded)

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
        tags.input_tags.allow_nan = True  # missing numbers are at the mean, missing categories are one
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        if hasattr(self.estimator, "__sklearn_tags__") and get_tags(self.estimator).classifier_tags is not None:
            tags.classifier_tags.multi_class = get_tags(self.estimator).classifier_tags.multi_class
        return tags


_PARAMETERS = """
    Parameters
    ----------
    estimator : classifier
        The model to train; it gets the coded records as an array of numbers.
    l : int, default=2
        No sensitive value may be in more than 1/l of the records of a group.
    sensitive : str, int or list of these
        The sensitive columns, by name or position.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    coding : {"paper", "one-hot"}, default="one-hot"
        How columns become numbers; see ``sfumato.anatomize.coordinates``.
"""
_MORE_PARAMETERS = """
    suppression_limit : float, default=0.0
        Share of the records that may be left out to reach l.
    assignment : {"largest", "random"}, default="largest"
        How groups are made; see ``Anatomizer``.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    estimator_ : classifier
        The trained model.
    coding_ : Coding
    classes_ : ndarray
    n_groups_, n_suppressed_ : int
"""
_GUARANTEE = """
    Notes
    -----
    *Guarantee.* The model was trained on nothing but the two tables of ``Anatomizer``, so it reveals no more about who
    has which sensitive value than those tables. Records to predict are raw, as in the paper.

    References
    ----------
    Mancuhan, K., Clifton, C. (2018). Support vector classification with l-diversity.
"""


class PrunedClassifier(_LearnsFromAnatomy):  # noqa: D101 - the text is put together below
    __doc__ = f"""Train a classifier on an anatomized table, with one candidate for each record.

    Anatomize the records, keep for each the sensitive row of its group whose squared norm is nearest the expected one,
    and train the estimator on that.
    {_PARAMETERS.rstrip()}
    per : {{"record", "group"}}, default="record"
        Prune to one row per record, or to one per group.
    feature_map : transformer, optional
        Measure norms after this map; the estimator is trained without it.
    {_MORE_PARAMETERS.strip()}
    pruned_size_ : int
        Rows the estimator was trained on.
    radius_min_, radius_max_ : float
        Squared radii of Figure B.1.
    {_GUARANTEE}
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
        l: int = 2,  # noqa: E741
        *,
        sensitive: Any = None,
        identifiers: Any = None,
        coding: CodingName = "one-hot",
        per: Per = "record",
        feature_map: Any = None,
        suppression_limit: float = 0.0,
        assignment: Assignment = "largest",
        categorical_features: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.l = l
        self.sensitive = sensitive
        self.identifiers = identifiers
        self.coding = coding
        self.per = per
        self.feature_map = feature_map
        self.suppression_limit = suppression_limit
        self.assignment = assignment
        self.categorical_features = categorical_features
        self.random_state = random_state

    def _train(self, anatomized: Any, candidates: Candidates, own: Coding, theirs: Coding, y: Any, weight: Any) -> None:
        pruned = choose(anatomized, candidates, own, theirs, per=self.per, feature_map=self.feature_map)
        coded = np.hstack(
            [
                own.coordinates(candidates.identifying)[pruned.rows],
                theirs.coordinates(candidates.sensitive)[pruned.candidates],
            ]
        )
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


class BucketClassifier(_LearnsFromAnatomy):  # noqa: D101 - the text is put together below
    __doc__ = f"""Train a classifier on an anatomized table, with all candidates of each record as weighted rows.

    A record in a group of m gets m rows, one for each sensitive row of the group, of weight 1/m each. Nothing is thrown
    away, at m times the cost; the estimator must take ``sample_weight``.
    {_PARAMETERS.rstrip()}
    {_MORE_PARAMETERS.strip()}
    {_GUARANTEE}
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
        l: int = 2,  # noqa: E741
        *,
        sensitive: Any = None,
        identifiers: Any = None,
        coding: CodingName = "one-hot",
        suppression_limit: float = 0.0,
        assignment: Assignment = "largest",
        categorical_features: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.l = l
        self.sensitive = sensitive
        self.identifiers = identifiers
        self.coding = coding
        self.suppression_limit = suppression_limit
        self.assignment = assignment
        self.categorical_features = categorical_features
        self.random_state = random_state

    def _train(self, anatomized: Any, candidates: Candidates, own: Coding, theirs: Coding, y: Any, weight: Any) -> None:
        if not takes_weights(self.estimator):
            raise ParameterError(
                f"estimator is a {type(self.estimator).__name__}, whose fit takes no sample_weight: expected one that "
                "does, since candidates are weighted. Use PrunedClassifier with it."
            )
        n_candidates = candidates.sizes[candidates.group]
        records = np.repeat(np.arange(len(y)), n_candidates)
        within = np.arange(len(records)) - np.repeat(np.cumsum(n_candidates) - n_candidates, n_candidates)
        rows = candidates.order[candidates.starts[candidates.group[records]] + within]
        coded = np.hstack(
            [
                own.coordinates(candidates.identifying)[records],
                theirs.coordinates(candidates.sensitive)[rows],
            ]
        )
        shares = 1.0 / n_candidates if weight is None else weight / n_candidates
        self.estimator_ = fit_weighted(clone(self.estimator), coded, y[records], shares[records])
