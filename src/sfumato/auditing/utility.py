# SPDX-License-Identifier: Apache-2.0
"""Train, anonymize, retrain and compare, measured on held-out records."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.allocator import give_back_small_pieces
from sfumato.errors import InputError, named
from sfumato.models import Task
from sfumato.progress import Reporter

#: A target of numbers with more different values than this is a quantity; with fewer they are classes.
MOST_CLASSES_OF_NUMBERS = 20
_LARGEST_NUMBER = 1e30  # trees of scikit-learn compute with 32 bits, others with squares
_RECORDS_AT_ONCE = 1 << 17  # that a model is asked about
#: Beyond this a text is no class but a name or a remark.
MOST_CLASSES = 500


@dataclass(frozen=True, eq=False)
class Target:
    """The target of a model.

    Attributes
    ----------
    values : ndarray
        Codes of the classes, or numbers; 0 where unknown.
    known : ndarray of bool
        Whether a record has a target; the others are anonymized and released, but nothing is trained on them.
    task : {"classification", "regression"}
    n_classes : int
        0 for numbers.
    """

    values: npt.NDArray[Any]
    known: npt.NDArray[np.bool_]
    task: Task
    n_classes: int

    @property
    def metric(self) -> str:
        """Name of the score."""
        return "accuracy" if self.task == "classification" else "R2"


@dataclass(frozen=True)
class Utility:
    """Effect of anonymization on a model, on held-out records.

    Attributes
    ----------
    raw : float
        Trained on the records as they are.
    anonymized : float or None
        Trained on anonymized records, tested on records as they are; None where those differ in kind (ranges).
    transformed : float
        The same with the test records passed through the partition.
    """

    metric: str
    raw: float
    anonymized: float | None
    transformed: float
    n_train: int
    n_test: int

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers under their names."""
        return asdict(self)


def read_target(table: Any, name: str, task: Task | None) -> Target:
    """Read the target column and decide between classes and quantities.

    Text, booleans, and numbers with up to 20 different values are classes, unless ``--task`` says otherwise.
    """
    from sfumato.frames import read_table

    column = read_table(table.select([name])).column(name)
    known = np.ones(column.n_records, np.bool_) if column.missing is None else ~column.missing
    present = column.values[known]
    classes = np.unique(present)
    n_distinct = len(classes)
    if n_distinct < 2:
        raise InputError(
            f"the target {name!r} has {'one value only' if n_distinct else 'no value'}: expected at least two, "
            f"or there is nothing to learn. Give another {named('target')}."
        )
    if column.kind == "moment":
        raise InputError(
            f"the target {name!r} holds dates: expected classes or numbers. Give another {named('target')}."
        )
    if task is None:
        is_quantity = column.kind == "number" and n_distinct > MOST_CLASSES_OF_NUMBERS
        task = "regression" if is_quantity else "classification"
    if task == "regression":
        if column.kind == "category":
            raise InputError(
                f"the target {name!r} is not a column of numbers: expected numbers for {named('task', task)}. Leave "
                f"out {named('task')}, or give another {named('target')}."
            )
        numbers = column.values.astype(np.float64)
        if np.abs(numbers[known]).max() > _LARGEST_NUMBER:
            raise InputError(
                f"the target {name!r} has numbers beyond {_LARGEST_NUMBER:.0e}, too large for models: expected smaller "
                "ones. Correct them, or give another --target."
            )
        return Target(numbers, known, task, 0)
    if len(classes) > MOST_CLASSES:
        quantity = f", or {named('task', 'regression')} if it is a quantity" if column.kind == "number" else ""
        raise InputError(
            f"the target {name!r} has {len(classes):,} distinct values: expected at most {MOST_CLASSES} classes. "
            f"Give another {named('target')}{quantity}."
        )
    values = np.zeros(column.n_records, np.int64)
    values[known] = np.searchsorted(classes, present)
    return Target(values, known, task, len(classes))


def split_records(
    target: Target, test_fraction: float, random_state: int, units: npt.NDArray[Any] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split the records that have a target; a person's records stay on one side, and classes keep their shares."""
    from sklearn.model_selection import GroupShuffleSplit, train_test_split

    rows = np.flatnonzero(target.known)
    if units is not None:
        split = GroupShuffleSplit(n_splits=1, test_size=test_fraction, random_state=random_state)
        train, test = next(split.split(rows, groups=units[rows]))
        return np.sort(rows[train]), np.sort(rows[test])
    shares = None
    if target.task == "classification":
        counts = np.bincount(target.values[rows])
        n_test = int(np.ceil(test_fraction * len(rows)))
        # Keeping shares needs two records of each class, and room for each class on both sides.
        if counts.min() >= 2 and min(n_test, len(rows) - n_test) >= len(counts):
            shares = target.values[rows]
    train, test = train_test_split(rows, test_size=test_fraction, random_state=random_state, stratify=shares)
    return np.sort(train), np.sort(test)


def rows_of(table: Any, rows: npt.NDArray[np.int64]) -> Any:
    """Take some records of a table, in the order of `rows`; all of them in their own order cost nothing."""
    is_all = len(rows) == table.num_rows and np.array_equal(rows, np.arange(len(rows)))
    return table if is_all else table.take(rows)


def fit(model: Any, table: Any, values: npt.NDArray[Any]) -> Any:
    """Train a model without the warnings of its package, which speak of settings that users cannot reach."""
    give_back_small_pieces()
    with warnings.catch_warnings(), _large_numbers_in_words(table):
        warnings.simplefilter("ignore")
        return model.fit(table, values)


@contextlib.contextmanager
def _large_numbers_in_words(table: Any) -> Iterator[None]:
    """Name the columns whose numbers are too large for a model, where it fails because of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        yield
    except ValueError:
        numbers = [field.name for field in table.schema if pa.types.is_floating(field.type)]
        largest = {name: pc.max(pc.abs(table.column(name))).as_py() or 0.0 for name in numbers}
        large = [name for name in numbers if largest[name] > _LARGEST_NUMBER]
        if not large:
            raise
        raise InputError(
            f"the column {large[0]!r} has numbers beyond {_LARGEST_NUMBER:.0e}, too large for models: expected "
            f"smaller ones. Correct them, read the column as text with {named('types', {large[0]: 'text'})}, or drop "
            f"it with {named('identifiers')}."
        ) from None


def guide_of(model: Any, table: Any, how: str) -> npt.NDArray[Any]:
    """Return the guide of the groups: probabilities if asked for and available, else predictions."""
    if how == "probabilities" and hasattr(model, "predict_proba"):
        return predicted(model.predict_proba, table)
    return predicted(model.predict, table)


def predicted(predict: Callable[[Any], npt.NDArray[Any]], table: Any) -> npt.NDArray[Any]:
    """Return predictions for all records, computed in batches to limit memory."""
    starts = range(0, table.num_rows, _RECORDS_AT_ONCE)
    with _large_numbers_in_words(table):
        return np.concatenate([np.asarray(predict(table.slice(start, _RECORDS_AT_ONCE))) for start in starts])


def score(model: Any, table: Any, target: Target, rows: npt.NDArray[np.int64]) -> float:
    """Return how well a model predicts the target of these records of a table that holds them alone."""
    from sklearn.metrics import accuracy_score, r2_score

    judge = accuracy_score if target.task == "classification" else r2_score
    return float(judge(target.values[rows], predicted(model.predict, table)))


def labels_of(target: Target) -> npt.NDArray[Any]:
    """Return the target as a guide; records without one get a class of their own."""
    if target.known.all():
        return target.values
    if target.task == "regression":
        raise InputError(
            f"{named('guide', 'labels')} with a target that is missing for some records: expected a number for every "
            f"record. Take {named('guide', 'predictions')}, which the model has for every record."
        )
    return np.where(target.known, target.values, target.n_classes)


def guide_column_values(table: Any, name: str) -> npt.NDArray[Any]:
    """Return a column of precomputed predictions: numbers with decimals as numbers, everything else as labels."""
    from sfumato.frames import read_table

    column = read_table(table.select([name])).column(name, narrow=True)
    if column.missing is not None and column.missing.any():
        raise InputError(
            f"the column {name!r} has {int(column.missing.sum()):,} missing predictions: expected one per record. "
            "Fill them in, or remove those records."
        )
    return column.values


def person_codes(table: Any, name: str) -> npt.NDArray[Any]:
    """Return one number per person; records without a person count as one."""
    from sfumato.frames import read_table

    column = read_table(table.select([name])).column(name)
    codes = np.unique(column.values, return_inverse=True)[1]
    return codes if column.missing is None else np.where(column.missing, codes.max() + 1, codes)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two models, one trained on raw and one on anonymized records, and how they compare.

    Attributes
    ----------
    utility : Utility
    anonymizer : fitted anonymizer
    released : pyarrow.Table
        The anonymized training records.
    raw_model, model : fitted models
    rows : tuple of ndarray
        Training and test records.
    """

    utility: Utility
    anonymizer: Any
    released: Any
    raw_model: Any
    model: Any
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def measure_utility(
    reporter: Reporter,
    table: Any,
    target: Target,
    *,
    new_model: Callable[[], Any],
    new_anonymizer: Callable[[], Any],
    guide: Callable[[Any, npt.NDArray[np.int64]], npt.NDArray[Any] | None],
    features: Callable[[Any], Any],
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    is_comparable: bool,
    publish: Callable[[Any, Any], tuple[Any, Any, npt.NDArray[Any]]] | None = None,
) -> Comparison:
    """Train on raw and on anonymized records and test both.

    Parameters
    ----------
    reporter : Reporter
        Shows the steps.
    table : pyarrow.Table
        All records, all columns.
    target : Target
    new_model, new_anonymizer : callable
        Make an untrained model, an unfitted anonymizer.
    guide : callable
        Takes the model trained on raw records and the training rows; returns what guides the anonymization,
        None for a method that needs nothing.
    features : callable
        Takes a table, raw or rewritten, and returns the columns that a model may see.
    rows : tuple of ndarray
        Training and test records.
    is_comparable : bool
        Whether rewritten columns are of the kind of the original ones, so that raw records can be predicted.
    publish : callable, optional
        Takes the fitted anonymizer and its result; returns what would be released of it, the records of that to train
        on, and their target, where it is not released exactly.
    """
    train, test = rows
    train_table, test_table = rows_of(table, train), rows_of(table, test)
    with reporter.step(f"training on {len(train):,} raw records"):
        raw_model = fit(new_model(), features(train_table), target.values[train])
        raw_score = score(raw_model, features(test_table), target, test)
    anonymizer = new_anonymizer()
    with reporter.step(growing(f"anonymizing {len(train):,} records")):
        released = anonymizer.fit_transform(train_table, guide(raw_model, train))
    del train_table
    learned, values = released, target.values[train]
    if publish is not None:
        released, learned, values = publish(anonymizer, released)
    with reporter.step("retraining on the anonymized records"):
        model = fit(new_model(), features(learned), values)
        utility = Utility(
            metric=target.metric,
            raw=raw_score,
            anonymized=score(model, features(test_table), target, test) if is_comparable else None,
            transformed=score(model, features(anonymizer.transform(test_table)), target, test),
            n_train=len(train),
            n_test=len(test),
        )
    return Comparison(utility, anonymizer, released, raw_model, model, rows)


def growing(what: str) -> str:
    """Add to a step that grows groups that the first run on a machine compiles the kernels."""
    return what if kernels_are_cached() else f"{what} (first run: compiling takes about a minute)"


def kernels_are_cached() -> bool:
    """Return True if compiled kernels are cached beside the engine's modules or in numba's cache folder."""
    import os
    from pathlib import Path

    import sfumato.partition

    folder = os.environ.get("NUMBA_CACHE_DIR") or Path(sfumato.partition.__file__).parent / "__pycache__"
    return next(Path(folder).rglob("*.nbi"), None) is not None
