# SPDX-License-Identifier: Apache-2.0
"""Learn to predict a sensitive column from anatomized tables: groups show the classes of their records, in no order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from sfumato.anatomize.bucketize import Assignment
from sfumato.anatomize.candidates import Candidates, SensitiveCandidates
from sfumato.anatomize.coordinates import Coding, CodingName
from sfumato.anatomize.learning import LearnsFromAnatomy
from sfumato.anatomize.table_division import DiverseGroups, drawn_seed
from sfumato.anatomize.tables import AnatomizedTable
from sfumato.anonymize.guide_from_target import fit_weighted, takes_weights
from sfumato.arguments import Names, Seed, as_table_like, check_choice, check_integer, check_share, check_wrapped
from sfumato.attack.group_guessing import Block, SensitiveGroups
from sfumato.attack.group_learning import even_weights, weigh_orders
from sfumato.backends.base import Draws
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import number_values, sort_groups

_SETTLED = 1e-3  # mean change of weights below which nothing moves any more


class ProportionClassifier(ClassifierMixin, LearnsFromAnatomy):
    """Learn to predict a sensitive class from groups whose classes are known in no order.

    Anatomize the records with the class as the sensitive column. The estimator is trained on every record with each
    class of its group, weighted evenly at first. Then the orders of each group are weighed by what models say that
    were trained on other groups, and the estimator is trained again with those weights, and so on.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``; its fit takes ``sample_weight``.
    l : int, default=2
        No class may be in more than 1/l of the records of a group.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    coding : {"paper", "one-hot"}, default="one-hot"
        How columns become numbers; see ``sfumato.anatomize.coordinates``.
    n_iterations : int, default=5
        Rounds of weighing at the most; 0 trains on even weights.
    cv : int, default=3
        Sets of groups: a group is weighed by a model of the other sets, so that no model repeats what it was told.
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
    n_iterations_ : int
        Rounds until nothing moved any more.
    n_groups_, n_suppressed_ : int

    Notes
    -----
    *Guarantee.* The model was trained on nothing but an identifying table with groups and the classes of each group.
    It predicts a sensitive column: what it says of a person is what anyone can say who has the two tables.

    If the classes of all groups are the same, groups do not tell which class is which; the model is no better than
    chance then. More values than l, or ``assignment="random"``, help.

    References
    ----------
    Quadrianto, N., Smola, A., Caetano, T., Le, Q. (2009). Estimating labels from label proportions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sfumato import ProportionClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ProportionClassifier(LogisticRegression(), l=2, assignment="random", random_state=0)
    >>> bool(learner.fit(X, y).score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        estimator: Any,
        l: int = 2,  # noqa: E741
        *,
        identifiers: Names | None = None,
        coding: CodingName = "one-hot",
        n_iterations: int = 5,
        cv: int = 3,
        suppression_limit: float = 0.0,
        assignment: Assignment = "largest",
        categorical_features: Collection[str | int] | None = None,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.l = l
        self.identifiers = identifiers
        self.coding = coding
        self.n_iterations = n_iterations
        self.cv = cv
        self.suppression_limit = suppression_limit
        self.assignment = assignment
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Anatomize the records with the class as the sensitive column, and learn from the two tables.

        Parameters
        ----------
        X : frame or array of shape (records, columns)
            Without the class.
        y : array-like of shape (records,)
            The sensitive class.
        """
        check_wrapped(self, y, such_as="LogisticRegression()")
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
        self.classes_, codes = np.unique(labels, return_inverse=True)
        dropped = table.resolve(self.identifiers if self.identifiers is not None else (), "identifiers")
        self._columns = [[name for name in table.names if name not in dropped]]
        self._codes = table.resolve(self.categorical_features or (), "categorical_features")
        return self._learn(*self._divided_by_class(read_table(X, categorical=self._codes), codes))

    def _divided_by_class(self, table: Table, codes: NDArray[np.intp]) -> tuple[Candidates, NDArray[np.int64]]:
        """Return the identifying rows with their groups, and the classes of the sensitive rows, as an anatomy has them.

        Both are in an order of their own. What belongs together is not kept.
        """
        check_integer("l", self.l, 2, hint="2 to 5 is common.")
        check_choice("assignment", self.assignment, get_args(Assignment))
        check_share("suppression_limit", self.suppression_limit, hint="0.01 leaves out one record in a hundred.")
        rule = DiverseGroups((int(self.l),), ((0,),), self.assignment, self.suppression_limit, ("y",))
        random = np.random.default_rng(drawn_seed(self.random_state))
        orders = random.spawn(2)
        group = rule.group(codes.astype(np.int32)[:, None], Draws(orders, random, [random]))[:, 0]
        shown, secret = (order.permutation(np.flatnonzero(group >= 0)) for order in orders)
        columns = [table.column(name) for name in self._columns[0]]
        self.n_groups_, self.n_suppressed_ = int(group.max()) + 1, int((group < 0).sum())
        sensitive = SensitiveCandidates([], group, *sort_groups(group[secret], self.n_groups_))
        return Candidates(columns, [sensitive]).some(shown), codes[secret].astype(np.int64)

    def fit_anatomized(self, anatomized: AnatomizedTable, y: str | None = None) -> Self:
        """Learn from tables that were made before, such as those that ``AnatomizedTable.load`` reads.

        Parameters
        ----------
        anatomized : AnatomizedTable
            Of frames. What this learner would anatomize by is not used.
        y : str, optional
            The sensitive column to predict; needed where there are several. The others are not used.
        """
        names = anatomized.sensitive_columns
        if y is None and len(names) > 1:
            raise ParameterError(f"{named('y', None)} with {len(names)} sensitive columns: expected which to predict.")
        name = names[0] if y is None else y
        if name not in names:
            raise InputError(f"no sensitive column {name!r}: expected one of {', '.join(map(repr, names))}.")
        pair = next(own for own in anatomized.pairs if name in own.sensitive_columns)
        candidates = self._received(pair)
        column = candidates.tables[0].columns[pair.sensitive_columns.index(name)]
        codes = number_values(column).astype(np.int64)
        first = np.unique(codes, return_index=True)[1]
        values = column.categories[column.values[first]] if column.categories is not None else column.values[first]
        if column.missing is not None and column.missing.any():
            raise InputError(f"the column {name!r} has no value in some rows: expected a class in each.")
        self.classes_ = np.asarray(values.tolist())
        return self._learn(candidates, codes)

    def _learn(self, candidates: Candidates, classes: NDArray[np.int64]) -> Self:
        """Train on identifying rows and on the classes of the sensitive rows of each group."""
        check_integer("n_iterations", self.n_iterations, 0)
        check_integer("cv", self.cv, 2)
        if not takes_weights(self.estimator) or not hasattr(self.estimator, "predict_proba"):
            raise ParameterError(
                f"estimator is a {type(self.estimator).__name__}: expected one that has predict_proba and whose fit "
                "takes sample_weight, such as LogisticRegression()."
            )
        table = candidates.tables[0]
        self._columns = self._columns[:1]  # sensitive columns are not features
        self.coding_ = Coding(candidates.codings(self.coding).parts[: len(candidates.identifying)])
        coded = self.coding_.coordinates(candidates.identifying)
        slot_group = np.empty(len(table.order), np.int64)
        slot_group[table.order] = np.repeat(np.arange(len(table.sizes)), table.sizes)
        nobody = np.zeros(len(table.group), np.int64)
        groups = SensitiveGroups(table.group, slot_group, classes, nobody, len(table.sizes))
        shares = _ClassShares(groups.blocks(), len(table.group), len(self.classes_))
        fold = self._random().permutation(len(table.sizes))[table.group] % self.cv
        self.n_iterations_ = 0
        for _ in range(self.n_iterations):
            chances = np.empty((len(coded), len(self.classes_)))
            for number in range(self.cv):
                model = self._fitted(coded, shares, fold != number)
                chances[fold == number] = self._chances(model, coded[fold == number])
            self.n_iterations_ += 1
            if shares.weigh(np.log(np.maximum(chances, 1e-12))) < _SETTLED:
                break
        self.estimator_ = self._fitted(coded, shares, np.ones(len(coded), np.bool_))
        return self

    def _fitted(self, coded: NDArray[np.float64], shares: _ClassShares, some: NDArray[np.bool_]) -> Any:
        """Train on some records with every class they may have, weighted."""
        rows, classes = np.nonzero((shares.of_record > 0) & some[:, None])
        weight = shares.of_record[rows, classes]
        return fit_weighted(clone(self.estimator), coded[rows], self.classes_[classes], weight)

    def _chances(self, model: Any, coded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return class probabilities by a model that may not know all classes."""
        found = np.zeros((len(coded), len(self.classes_)))
        found[:, np.searchsorted(self.classes_, model.classes_)] = model.predict_proba(coded)
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities of raw records."""
        coded = self._coded(X)
        return self._chances(self.estimator_, coded)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = False
        if hasattr(self.estimator, "__sklearn_tags__") and get_tags(self.estimator).classifier_tags is not None:
            tags.classifier_tags.multi_class = get_tags(self.estimator).classifier_tags.multi_class
        return tags


class _ClassShares:
    """How likely each record has each class of its group."""

    def __init__(self, blocks: list[Block], n_records: int, n_classes: int) -> None:
        self.blocks = blocks
        self.of_record = np.zeros((n_records, n_classes))
        self._take([even_weights(block) for block in blocks])

    def weigh(self, fit: NDArray[np.float64]) -> float:
        """Weigh the orders of every group by how well each class fits each record; return how much that changed."""
        before = self.of_record.copy()
        self._take([
            weigh_orders(block, fit[block.records[:, :, None], block.values[:, None, :]]) for block in self.blocks
        ])  # fmt: skip
        return float(np.abs(self.of_record - before).mean())

    def _take(self, weights: list[NDArray[np.float64]]) -> None:
        n_records, n_classes = self.of_record.shape
        found = np.zeros(n_records * n_classes)
        for block, weight in zip(self.blocks, weights, strict=True):
            keys = block.records[:, :, None] * n_classes + block.values[:, None, :]
            found += np.bincount(keys.ravel(), weight.ravel(), minlength=len(found))
        self.of_record = found.reshape(n_records, n_classes)
