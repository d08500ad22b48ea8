# SPDX-License-Identifier: Apache-2.0
"""The attacker's samples: full-resolution records to learn and to tune on, and the records to attack.

All samples are coded together, so that a code means the same value in each. Called by the reconstruction attacks
(A1-A6); a sweep reads its samples once and attacks many generalizations with them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.memory import code_column
from sfumato.coded_columns import CodedColumn
from sfumato.columns import join_columns
from sfumato.frames import read_table
from sfumato.generalization import CategoryAttribute, Generalization, OrderedAttribute
from sfumato.partition.binning import DEFAULT_MAX_BINS


class Samples:
    """Three samples of the same columns, coded together; columns are read on first use.

    Parameters
    ----------
    train : frame or array
        Full-resolution records the attacker learns from: the minimizer's own sample or another.
    validation : frame or array
        Full-resolution records the attacker tunes on.
    test : frame or array
        The records that were breached; the attacker sees them generalized only.
    categorical_features : collection of str or int, default=()
        Numeric categories: columns of numbers that are codes, not amounts.
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
