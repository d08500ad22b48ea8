# SPDX-License-Identifier: Apache-2.0
"""The models that policies and commands can train on raw tables, including text, dates and missing values.

The commands train one model as the guide, and the same kind again on the anonymized records. To use a model of your
own, call the library, or pass its predictions as a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.columns import MICROSECONDS_PER_DAY
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Column, read_table
from sfumato.models import MODELS

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class ModelFacts:
    """Facts of a model for policies, commands and the documentation.

    Attributes
    ----------
    name : str
    sentence : str
        What it is, without the final point.
    tasks : tuple of str
        What it can learn.
    is_scaled : bool
        Whether it wants numbers of mean 0 and variance 1.
    takes_nan : bool
        Whether it takes missing values as they are.
    takes_codes : bool
        Whether categories are numbers to it, and not one column each.
    """

    name: str
    sentence: str
    tasks: tuple[Task, ...] = ("classification", "regression")
    is_scaled: bool = False
    takes_nan: bool = False
    takes_codes: bool = False


@dataclass(frozen=True)
class NamedModel:
    """A model that users choose by name.

    Attributes
    ----------
    facts : ModelFacts
    make : callable
        Takes the task, the seed, the number of threads and about how many records there are; returns an estimator.
    """

    facts: ModelFacts
    make: Callable[[Task, int | None, int | None, int], Any]


_BATCH = 200


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn any table into the float array that scikit-learn's models take.

    Parameters
    ----------
    scale : bool, default=False
        Bring numbers to mean 0 and variance 1, for linear models and networks.
    categorical : sequence of str, default=()
        Columns of numbers that are codes.
    max_categories : int, default=100
        The most frequent categories of a column are told apart, so many at most; the others count as one.
    one_hot : bool, default=True
        Give each category a column of its own, as linear models and networks need. Trees take one column of codes,
        which is smaller by far; it comes in the 64 bits that gradient boosting would otherwise copy it to.
    allow_nan : bool, default=False
        Whether the model takes NaN, as trees do. Then a category that it has never seen is NaN.

    Attributes
    ----------
    columns_ : list of _EncodedColumn
        What was learned per column.
    n_features_in_ : int
        Number of columns seen during fit.

    Notes
    -----
    Numbers and moments become one float column (moments in days), with missing values at the median and, where any was
    missing, a second column that says so. Categories become one column each, or their place in the order of the
    categories; a missing category counts as one more.

    A category that was not seen during fit is like the rare ones, where there are any. Else nothing is known of it: it
    is NaN, with which trees follow the larger side of every split, or, for other models, the average record (the share
    of each category, or the place of the most frequent one). Anonymized training data lack the rarer categories, so
    this happens to raw records; any fixed code would be a value from which the model has learned nothing.

    Examples
    --------
    >>> import numpy as np
    >>> TableEncoder().fit_transform(np.array([[1.0], [3.0], [np.nan]])).tolist()
    [[1.0, 0.0], [3.0, 0.0], [2.0, 1.0]]
    """

    def __init__(
        self,
        *,
        scale: bool = False,
        categorical: Sequence[str] = (),
        max_categories: int = 100,
        one_hot: bool = True,
        allow_nan: bool = False,
    ) -> None:
        self.scale = scale
        self.categorical = categorical
        self.max_categories = max_categories
        self.one_hot = one_hot
        self.allow_nan = allow_nan

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn medians, scales and categories."""
        table = read_table(X, categorical=self._categorical_in(X))
        self.columns_ = [
            _learn(
                table.column(name),
                scale=self.scale,
                max_categories=self.max_categories,
                one_hot=self.one_hot,
                allow_nan=self.allow_nan,
            )
            for name in table.names
        ]
        self.n_features_in_ = len(table.names)
        return self

    def transform(self, X: Any) -> npt.NDArray[np.floating[Any]]:
        """Encode a table with the same columns.

        Returns
        -------
        ndarray of shape (n_records, n_encoded_columns), of float32 where categories have columns of their own
        """
        check_is_fitted(self)
        table = read_table(X, categorical=self._categorical_in(X))
        learned = [column.name for column in self.columns_]
        absent = [name for name in learned if name not in table.names]
        if absent:
            raise InputError(
                f"the table lacks the column {absent[0]!r}, with which the model was trained. "
                "Hand in a table with the same columns."
            )
        dtype = np.float32 if self.one_hot else np.float64
        out = np.zeros((table.n_records, sum(column.width for column in self.columns_)), dtype)
        start = 0
        for column in self.columns_:
            _encode(column, table.column(column.name), out[:, start : start + column.width])
            start += column.width
        return out

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Name the columns of the encoded array."""
        check_is_fitted(self)
        names = [f"{column.name}{suffix}" for column in self.columns_ for suffix in column.suffixes]
        return np.asarray(names, dtype=object)

    def _categorical_in(self, X: Any) -> list[str]:
        # Published ranges make text of a column of codes, which needs no telling; so name only what is there.
        names = set(read_table(X).names) if self.categorical else set()
        return [name for name in self.categorical if name in names]


class _EncodedColumn:
    """The fitted parameters of one column: its center and scale, or its categories."""

    def __init__(
        self,
        name: str,
        *,
        categories: dict[Any, int] | None,
        has_missing: bool,
        center: float = 0.0,
        offset: float = 0.0,
        scale: float = 1.0,
        unit: float = 1.0,
        one_hot: bool = True,
        unseen: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.name = name
        self.unseen = unseen
        self.is_coded = categories is not None and not one_hot
        self.categories = categories
        self.has_missing = has_missing
        self.center, self.offset, self.scale, self.unit = center, offset, scale, unit

    @property
    def width(self) -> int:
        return (1 if self.categories is None or self.is_coded else len(self.categories)) + int(self.has_missing)

    @property
    def suffixes(self) -> list[str]:
        is_single = self.categories is None or self.is_coded
        values = [""] if is_single else [f"={value}" for value in self.categories or ()]
        return [*values, " is missing"] if self.has_missing else values


def _learn(column: Column, *, scale: bool, max_categories: int, one_hot: bool, allow_nan: bool) -> _EncodedColumn:
    present = column.values if column.missing is None else column.values[~column.missing]
    has_missing = column.missing is not None and bool(column.missing.any())
    if column.kind == "category":
        assert column.categories is not None
        counts = np.bincount(present, minlength=len(column.categories))
        # A stable sort on falling counts keeps ties in the order of the categories, whatever the order of records.
        seen = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        most_frequent = np.sort(seen[:max_categories])
        kept = {column.categories[position]: place for place, position in enumerate(most_frequent)}
        unseen = None
        if len(seen) <= max_categories:  # else there are rare ones, which it is like
            shares = [*counts[most_frequent], *([column.n_records - len(present)] if has_missing else [])]
            coded = [counts[most_frequent].argmax() if kept else 0, *([0] if has_missing else [])]
            unseen = np.array(shares, np.float64) / max(1, column.n_records) if one_hot else np.array(coded, np.float64)
            if allow_nan:
                unseen[:] = np.nan
        return _EncodedColumn(column.name, categories=kept, has_missing=has_missing, one_hot=one_hot, unseen=unseen)
    unit = float(MICROSECONDS_PER_DAY) if column.kind == "moment" else 1.0
    # Days since the median rather than since 1970: 32-bit floats would not see single seconds otherwise.
    center = float(np.median(present)) if len(present) else 0.0
    offset = center if column.kind == "moment" else 0.0
    mean, deviation = offset, 1.0
    if scale and len(present):
        mean = float(present.mean())
        deviation = float(present.std()) / unit or 1.0
    return _EncodedColumn(
        column.name, categories=None, has_missing=has_missing, center=center, offset=mean, scale=deviation, unit=unit
    )


def _encode(learned: _EncodedColumn, column: Column, out: npt.NDArray[np.floating[Any]]) -> None:
    """Write one column into its place of a zeroed array."""
    if (column.kind == "category") != (learned.categories is not None) and not _is_all_missing(column):
        raise InputError(
            f"column {learned.name!r} holds {'categories' if column.kind == 'category' else 'numbers'} here and "
            f"{'numbers' if learned.categories is None else 'categories'} in the training data. Give both one type."
        )
    if learned.has_missing and column.missing is not None:
        out[:, -1] = column.missing
    if learned.categories is not None:
        _encode_categories(learned, column, out)
        return
    values = column.values.astype(np.float64)
    if column.missing is not None:
        values[column.missing] = learned.center
    values -= learned.offset
    values /= learned.unit * learned.scale
    out[:, 0] = values


def _encode_categories(learned: _EncodedColumn, column: Column, out: npt.NDArray[np.floating[Any]]) -> None:
    """Write the place of each category, or 1 in the column of that place; see the notes of `TableEncoder`."""
    assert learned.categories is not None
    last = len(learned.categories)  # the place of the rare ones, and of missing ones the next
    categories = column.categories if column.categories is not None and len(column.categories) else [None]
    places = np.array([learned.categories.get(value, last) for value in categories], np.int64)
    missing = np.zeros(len(out), np.bool_) if column.missing is None else column.missing
    at = np.where(missing, last + 1, places[np.where(missing, 0, column.values).astype(np.int64)])
    if learned.is_coded:
        out[:, 0] = at
    else:
        rows = np.flatnonzero(at < last)
        out[rows, at[rows]] = 1.0
    if learned.unseen is not None:
        out[(at == last) | (missing & (not learned.has_missing))] = learned.unseen


def _is_all_missing(column: Column) -> bool:
    return column.missing is not None and bool(column.missing.all())


def make_model(
    name: str,
    task: Task,
    random_state: int | None = None,
    *,
    categorical: Sequence[str] = (),
    n_jobs: int | None = None,
    n_records: int = 10_000,
) -> Any:
    """Make an untrained scikit-learn pipeline that takes tables directly.

    Parameters
    ----------
    name : str
        One of ``MODELS``.
    task : {"classification", "regression"}
        What the target is.
    random_state : int or None, default=None
        Seed of the model.
    categorical : sequence of str, default=()
        Columns of numbers that are codes.
    n_jobs : int or None, default=None
        Threads of a random forest.
    n_records : int, default=10000
        About how many records it will see; a network makes fewer passes over more records.
    """
    if name not in MODELS:
        raise ParameterError(f"{named('model', name)} is not known: expected one of {', '.join(MODELS)}.")
    model: NamedModel = MODELS[name]
    facts = model.facts
    if task not in facts.tasks:
        other = "linear-regression" if task == "regression" else "logistic-regression"
        kind = "numbers" if task == "regression" else "classes"
        raise ParameterError(
            f"model {name!r} cannot learn a target of {kind}. Give {named('model', other)}, or another model."
        )
    from sklearn.pipeline import make_pipeline

    encoder = TableEncoder(
        scale=facts.is_scaled,
        categorical=tuple(categorical),
        one_hot=not facts.takes_codes,
        allow_nan=facts.takes_nan,
    )
    return make_pipeline(encoder, model.make(task, random_state, n_jobs, n_records))


# -- the models --------------------------------------------------------------------------------------------------


def _gradient_boosting(task: Task, random_state: int | None, n_jobs: int | None, n_records: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    boosting = HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    # No early stopping: it would set records aside by class, which fails when a class has one record.
    return boosting(early_stopping=False, random_state=random_state)


def _logistic_regression(task: Task, random_state: int | None, n_jobs: int | None, n_records: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _linear_regression(task: Task, random_state: int | None, n_jobs: int | None, n_records: int) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge()


def _random_forest(task: Task, random_state: int | None, n_jobs: int | None, n_records: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return forest(random_state=random_state, n_jobs=n_jobs)


def _neural_network(task: Task, random_state: int | None, n_jobs: int | None, n_records: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    # About 4,000 steps whatever the size of the table, and at least 15 passes.
    n_passes = int(np.clip(4_000 * _BATCH / max(n_records, 1), 15, 300))
    settings = {"hidden_layer_sizes": (100,), "batch_size": min(_BATCH, max(n_records // 2, 1))}
    settings |= {"max_iter": n_passes, "random_state": random_state}
    if task == "classification":
        return MLPClassifier(**settings)
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(MLPRegressor(**settings), transformer=StandardScaler())


def _decision_tree(task: Task, random_state: int | None, n_jobs: int | None, n_records: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    tree = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    return tree(min_samples_leaf=5, random_state=random_state)


GRADIENT_BOOSTING = NamedModel(
    ModelFacts("gradient-boosting", "boosted trees on histograms", takes_nan=True, takes_codes=True), _gradient_boosting
)
LOGISTIC_REGRESSION = NamedModel(
    ModelFacts("logistic-regression", "a linear model of classes", ("classification",), is_scaled=True),
    _logistic_regression,
)
LINEAR_REGRESSION = NamedModel(
    ModelFacts("linear-regression", "a linear model of numbers, by ridge regression", ("regression",), is_scaled=True),
    _linear_regression,
)
RANDOM_FOREST = NamedModel(ModelFacts("random-forest", "a forest of trees", takes_nan=True), _random_forest)
NEURAL_NETWORK = NamedModel(
    ModelFacts("neural-network", "one hidden layer of 100 units", is_scaled=True), _neural_network
)
DECISION_TREE = NamedModel(
    ModelFacts("decision-tree", "one tree, at least 5 records per leaf", takes_nan=True), _decision_tree
)
