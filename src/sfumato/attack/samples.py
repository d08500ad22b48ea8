# SPDX-License-Identifier: Apache-2.0
"""What the attacker has: records in full, to learn and to tune on, and the records to attack.

All samples are coded together, so that a code means the same value in each. Called by the reconstruction attacks
(A1-A6); a sweep reads its samples once and attacks many generalizations with them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.memory import code_column
from sfumato.coded_columns import CodedColumn
from sfumato.columns import Column
from sfumato.errors import InputError, named
from sfumato.frames import read_table
from sfumato.generalization import CategoryAttribute, Generalization, OrderedAttribute
from sfumato.partition.binning import DEFAULT_MAX_BINS


class Samples:
    """Three samples of the same columns, coded together; columns are read when they are first asked for.

    Parameters
    ----------
    train : frame or array
        Full-resolution records the attacker learns from: the minimizer's own sample or another.
    validation : frame or array
        Full-resolution records the attacker tunes on.
    test : frame or array
        The records that were breached; the attacker sees them generalized only.
    categorical_features : collection of str or int, default=()
        Columns of numbers that are codes, not amounts.
    max_bins : int, default=255
        A number counts as reconstructed when its bin is; columns with up to this many values have one bin for each.
    """

    def __init__(
        self,
        train: Any,
        validation: Any,
        test: Any,
        *,
        categorical_features: Collection[str | int] = (),
        max_bins: int = DEFAULT_MAX_BINS,
    ) -> None:
        self.frames = (train, validation, test)
        self.max_bins = max_bins
        self._tables = tuple(read_table(frame, categorical=categorical_features) for frame in self.frames)
        ends = np.cumsum([table.n_records for table in self._tables]).tolist()
        self.train, self.validation, self.test = (
            slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)
        )
        self.n_records: int = ends[-1]
        self._columns: dict[str, CodedColumn] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the first sample."""
        return self._tables[0].names

    def resolve(self, names: str | int | Iterable[str | int], parameter: str) -> tuple[str, ...]:
        """Turn names or positions of columns into names."""
        return self._tables[0].resolve(names, parameter)

    def column(self, name: str) -> CodedColumn:
        """Return a column of all records: training, then validation, then test."""
        if name not in self._columns:
            joined = join_columns([table.column(name) for table in self._tables])
            self._columns[name] = code_column(joined, max_bins=self.max_bins)
        return self._columns[name]

    def buckets(self, generalization: Generalization, name: str) -> NDArray[np.int64]:
        """Return the bucket of every record in one attribute of a generalization."""
        column = self.column(name)
        low, high = bucket_span(generalization, column)
        if np.array_equal(low, high):
            return np.asarray(low[column.codes])
        # A bin of several values that lies on both sides of a threshold; the values themselves do not.
        attribute = generalization.attribute(name)
        parts = [attribute.encode(table.column(name)) for table in self._tables]
        return np.concatenate(parts).astype(np.int64)

    def fingerprint(self, names: Iterable[str]) -> str:
        """Return a hash of some columns of all samples: equal only where the same attack would see the same."""
        digest = hashlib.sha256(repr((self.train, self.validation, self.test, self.max_bins)).encode())
        for name in names:
            column = self.column(name)
            values = column.bins.values if column.categories is None else column.categories
            digest.update(repr((name, column.kind, values.tolist())).encode())
            digest.update(np.ascontiguousarray(column.codes).tobytes())
        return digest.hexdigest()


def samples_for(generalization: Generalization, train: Any, validation: Any, test: Any) -> Samples:
    """Read samples so that numbers which are categories to a generalization are categories here, too."""
    present = read_table(train).names
    numbers = [
        attribute.name
        for attribute in generalization.attributes
        if isinstance(attribute, CategoryAttribute) and attribute.value_type == "number" and attribute.name in present
    ]
    return Samples(train, validation, test, categorical_features=numbers)


def bucket_span(generalization: Generalization, column: CodedColumn) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lowest and the highest bucket of every fine code of a column; equal where a bin lies in one bucket."""
    attribute = generalization.attribute(column.name)
    own = generalization.buckets_of(column).astype(np.int64)
    if not isinstance(attribute, OrderedAttribute) or not column.bins.n_values:
        return own, own
    low, high = own.copy(), own.copy()
    n_values = column.bins.n_values
    low[:n_values] = attribute.buckets_of_values(column.bins.low)
    high[:n_values] = attribute.buckets_of_values(column.bins.high)
    return low, high


def join_columns(columns: Sequence[Column]) -> Column:
    """Put the same column of several samples together."""
    name = columns[0].name
    filled = [column for column in columns if column.missing is None or not column.missing.all()]
    if len({(column.kind, column.moment, column.is_zoned) for column in filled}) > 1:
        kinds = sorted({column.kind for column in filled})
        raise InputError(
            f"column {name!r} holds different kinds of values in the samples ({', '.join(kinds)}): expected one kind. "
            f"Convert it alike in all samples, or name it in {named('categorical_features')}."
        )
    like = filled[0] if filled else columns[0]
    categories, values = None, [column.values for column in columns]
    if like.categories is not None:
        categories, values = _joined_categories(name, columns)
    elif filled:  # what stands at missing places of a column without values is of another type
        values = [
            column.values if column in filled else np.zeros(column.n_records, like.values.dtype) for column in columns
        ]
    missing = [np.zeros(c.n_records, bool) if c.missing is None else c.missing for c in columns]
    any_missing = np.concatenate(missing)
    return Column(
        name,
        like.kind,
        np.concatenate(values),
        any_missing if any_missing.any() else None,
        categories,
        like.moment,
        like.is_zoned,
    )


def _joined_categories(name: str, columns: Sequence[Column]) -> tuple[NDArray[np.object_], list[NDArray[Any]]]:
    listed = [[] if column.categories is None else column.categories.tolist() for column in columns]
    try:
        every = sorted({value for values in listed for value in values})
    except TypeError:
        raise InputError(
            f"column {name!r} holds categories of several types in the samples: expected one type. Convert it to text."
        ) from None
    place = {value: position for position, value in enumerate(every)}
    categories = np.empty(len(every), object)
    categories[:] = every
    joined = []
    for column, values in zip(columns, listed, strict=True):
        new_code = np.array([*(place[value] for value in values), 0], np.int32)  # the last is read at missing places
        indexes = column.values if values else np.zeros(column.n_records, np.int64)
        joined.append(new_code[indexes])
    return categories, joined
