# SPDX-License-Identifier: Apache-2.0
"""Number the values of columns that are read in blocks: equal values get equal numbers, and 0 is missing.

Memory holds one entry per distinct value of a column. Text with very many distinct values is numbered on disk instead,
by ``column_codes.ManyValues``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.blocks.binning import Run, add_run, join_runs
from sfumato.columns import Column
from sfumato.errors import InputError
from sfumato.frames import Table, read_table
from sfumato.grouping import CODED_BY_SUBTRACTION, MISSING, WORDS
from sfumato.partition.distinct_values import sorted_distinct

MOST_LISTED = 1 << 20
"""Distinct values of a column of text or categories that memory may list."""

LARGEST_EXACT = 1 << 53
"""Integers up to this are exact as floats of 64 bits."""


def read_for_counting(batch: Any, categorical: Collection[str] = ()) -> Table:
    """Read a block so that a column has the same kind in every block.

    Otherwise decimals would become integers, floats or text, and datetimes micro- or nanoseconds, whichever fits the
    records of the block.
    """
    import pyarrow as pa

    for place, own in enumerate(batch.schema):
        kind = own.type
        value_type = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_decimal(value_type):
            plain = batch.column(place).cast(value_type).cast(pa.large_string())
            batch = batch.set_column(place, own.name, plain)
        elif pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
            batch = batch.set_column(place, own.name, batch.column(place).cast(pa.int64()))
    return read_table(batch, categorical=[name for name in categorical if name in batch.column_names])


class ValueCodes:
    """The numbers of one column's values: first `add` every block, then `close`, then `encode` every block.

    Attributes
    ----------
    has_missing : bool
        Whether a value of the table is missing.
    some_missing : bool
        Whether a value of any piece is missing, also of others.
    is_text : bool
    n_codes : int
        Numbers are below this, once closed.
    n_own_codes : int
        The same for the table alone.
    is_on_disk : bool
        Whether there are too many values to list them here; their numbers come from elsewhere.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_missing = False
        self.is_text = True
        self.n_codes = self.n_own_codes = 0
        self.is_on_disk = False
        self._kind: str | None = None
        self._is_empty = True
        self.some_missing = False
        self._dtype = np.dtype(np.int64)
        self._listed: dict[Any, int] = {}
        self._runs: list[Run] = []
        self._distinct: NDArray[Any] = np.zeros(0, np.int64)
        self._low: int | None = None

    def add(self, column: Column, *, is_other: bool = False) -> None:
        """Add the values of a block, of the table or of a population that is numbered alike."""
        is_empty = column.missing is not None and bool(column.missing.all())
        has_missing = column.missing is not None and bool(column.missing.any())
        self.some_missing |= has_missing
        self.has_missing |= has_missing and not is_other
        if self._kind is not None and column.kind != self._kind and not is_empty and not self._is_empty:
            raise InputError(
                f"column {self.name!r} holds {WORDS[self._kind]} in the table and {WORDS[column.kind]} in the "
                "population: expected the same. Convert one of them."
            )
        if self._kind is None or self._is_empty:
            self._kind = column.kind
            self.is_text = column.is_text
        if is_empty:
            return
        self._is_empty = False
        if column.categories is not None:
            if self.is_on_disk:
                return
            for value in column.categories.tolist():
                self._listed.setdefault(value, len(self._listed) + 1)
            self.is_text &= column.is_text
            if len(self._listed) > MOST_LISTED and self.is_text:
                self.is_on_disk, self._listed = True, {}
            return
        present = column.values if column.missing is None else column.values[~column.missing]
        self._dtype = np.result_type(self._dtype if self._runs else column.values.dtype, column.values.dtype)
        # Joined runs have the type of one of them: fractions of a population would be cut off among whole numbers.
        self._runs = [(self._as_common_type(values), counts) for values, counts in self._runs]
        add_run(self._runs, sorted_distinct(self._as_common_type(present)))

    def _as_common_type(self, values: NDArray[Any]) -> NDArray[Any]:
        is_widened = values.dtype.kind == "i" and self._dtype.kind == "f"
        if is_widened and len(values) and max(-int(values.min()), int(values.max())) > LARGEST_EXACT:
            raise InputError(
                f"column {self.name!r} holds whole numbers beyond {LARGEST_EXACT} in the table or the population and "
                "reals in the other, which would be taken for equal: expected the same type. Convert one of them."
            )
        return values.astype(self._dtype, copy=False)

    def note_own(self) -> None:
        """Mark the table as complete; blocks of a population may follow."""
        self.close()
        self.n_own_codes = self.n_codes

    def close(self) -> None:
        """Assign the numbers; no more blocks may follow."""
        if self._kind == "category":
            self.n_codes = len(self._listed) + 1
            return
        if self._runs:
            self._runs = [join_runs(self._runs)]
        values = self._runs[0][0].astype(self._dtype) if self._runs else np.zeros(0, self._dtype)
        if self.some_missing:  # a missing number is read as a 0, which then has a number, too
            values = np.union1d(values, np.zeros(1, self._dtype))
        self._distinct, self._low = values, None
        self.n_codes = len(values) + 1
        if values.dtype.kind == "i" and int(values[-1]) - int(values[0]) < CODED_BY_SUBTRACTION:
            self._low = int(values[0])
            self.n_codes = int(values[-1]) - self._low + 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """The narrowest type of the numbers."""
        return np.dtype(np.uint32) if self.is_on_disk else np.min_scalar_type(max(1, self.n_codes - 1))

    def encode(self, column: Column) -> NDArray[np.int32]:
        """Return the numbers of a block's values."""
        if column.missing is not None and column.missing.all():
            return np.full(column.n_records, MISSING, np.int32)
        if column.categories is not None:
            place = [self._listed[value] for value in column.categories.tolist()]
            codes = np.array(place, np.int32)[column.values]
        elif self._low is not None:
            codes = (column.values - self._low + 1).astype(np.int32)
        else:
            codes = (np.searchsorted(self._distinct, column.values) + 1).astype(np.int32)
        if column.missing is not None:
            codes[column.missing] = MISSING
        return np.asarray(codes, np.int32)

    def in_order(self, counts: NDArray[np.int64], kind: Any = None) -> tuple[list[Any], NDArray[np.int64]]:
        """Return the values that occur, in their order, and the place of every number's value among them.

        Parameters
        ----------
        counts : ndarray of int64
            How often each number occurs in the table.
        kind : Arrow type, optional
            The column's own type, where it was read as something else.

        Returns
        -------
        values : list
            None last, where some are missing.
        place : ndarray of int64
            Of numbers that do not occur: anything.
        """
        used = np.flatnonzero(counts[1:]) + 1
        values: Sequence[Any]
        if self._kind == "category":
            named: list[Any] = [None, *self._listed]
            values, order = self._ordered([named[code] for code in used.tolist()], kind)
        else:
            values = (used - 1 + self._low if self._low is not None else self._distinct[used - 1]).tolist()
            order = np.arange(len(used))
        place = np.zeros(len(counts), np.int64)
        place[used[order]] = np.arange(len(used))
        place[MISSING] = len(used)
        return [*values, None] if self.has_missing else list(values), place

    def _ordered(self, values: list[Any], kind: Any) -> tuple[list[Any], NDArray[np.int64]]:
        import pyarrow as pa

        if kind is not None and pa.types.is_decimal(kind):  # read as text, but numbers in truth
            read = read_table(pa.table({"x": pa.array(values, pa.string()).cast(kind)})).column("x", for_counting=True)
            self.is_text = read.is_text
            numbers = read.values if read.categories is None else read.categories[read.values]
            order = np.argsort(numbers, kind="stable")
            return numbers[order].tolist(), order
        order = np.array(sorted(range(len(values)), key=values.__getitem__), np.int64)
        return [values[i] for i in order.tolist()], order
