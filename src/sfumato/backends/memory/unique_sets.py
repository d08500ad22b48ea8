# SPDX-License-Identifier: Apache-2.0
"""How many records sets of columns make unique, for a table in memory.

Records are numbered by their values in all columns of a set but the last. The numbers serve all sets that begin with
these columns, and a longer set goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.grouping import (
    MOST_CELLS,
    Codes,
    Grouping,
    combined,
    count_alone,
    count_alone_in_pair,
    group,
    sort_groups,
)


@dataclass(frozen=True, eq=False)
class _NumberedRows:
    """Rows numbered by their values in some columns.

    Attributes
    ----------
    base : tuple of str
        The columns by which rows are numbered.
    columns : mapping of str to Codes
        All columns, of these rows.
    weights : ndarray of uint8
        1 for a row that is one record, 2 for one that is more and so never unique.
    label : ndarray of int32
        The number of each row, below `n_labels`.
    """

    base: tuple[str, ...]
    columns: Mapping[str, Codes]
    weights: NDArray[np.uint8]
    label: NDArray[np.int32]
    n_labels: int

    @cached_property
    def groups(self) -> Grouping:
        """Rows with the same number."""
        return Grouping(*sort_groups(self.label, self.n_labels))

    def count_with(self, name: str) -> int:
        """Return how many records are unique by the base and one more column."""
        column = self.columns[name]
        n_cells = self.n_labels * column.n_codes
        if n_cells <= 4 * MOST_CELLS:
            cells = np.zeros(n_cells, np.uint8)
            return int(count_alone_in_pair(self.label, column.values, column.n_codes, self.weights, cells))
        groups = self.groups
        return int(count_alone(groups.order, groups.starts, column.values, column.n_codes, self.weights))

    def extended(self, name: str) -> _NumberedRows:
        """Return the rows numbered by one more column."""
        column = self.columns[name]
        if not self.base:
            return replace(self, base=(name,), label=column.values, n_labels=column.n_codes)
        label, n_labels = combined(self.label, self.n_labels, column) or _numbered(self.label, self.n_labels, column)
        return replace(self, base=(*self.base, name), label=label, n_labels=n_labels)


def _unnumbered(columns: Mapping[str, Codes], weights: NDArray[np.uint8]) -> _NumberedRows:
    return _NumberedRows((), columns, weights, np.zeros(len(weights), np.int32), 1)


def _numbered(label: NDArray[np.int32], n_labels: int, column: Codes) -> tuple[NDArray[np.int32], int]:
    groups = group([Codes("", label, n_labels, False), column], len(label))
    return groups.of_records().astype(np.int32), groups.n_groups


class MemoryUniqueSets:
    """Counts the records that sets of columns make unique.

    Parameters
    ----------
    rows : _NumberedRows
        Rows that were numbered before, or not at all.
    """

    def __init__(self, rows: _NumberedRows) -> None:
        self._first = self._last = rows
        self._all = _unnumbered(rows.columns, rows.weights)

    @classmethod
    def of_groups(cls, columns: Mapping[str, Codes], keys: tuple[str, ...], groups: Grouping) -> MemoryUniqueSets:
        """Return the columns of a table whose groups by some keys are known."""
        ones = np.ones(len(groups.order), np.uint8)
        return cls(_NumberedRows(keys, columns, ones, groups.of_records().astype(np.int32), groups.n_groups))

    def n_codes(self, names: Sequence[str]) -> dict[str, int]:
        """Return how fine columns are."""
        return {name: self._all.columns[name].n_codes for name in names}

    def unique_counts(self, sets: Sequence[Sequence[str]]) -> list[int]:
        """Return for each set of columns how many records share their values in it with no other."""
        return [self._numbered_by(tuple(own[:-1])).count_with(own[-1]) for own in sets]

    def _numbered_by(self, base: tuple[str, ...]) -> _NumberedRows:
        known = [own for own in (self._last, self._first, self._all) if base[: len(own.base)] == own.base]
        rows = max(known, key=lambda own: len(own.base))
        for name in base[len(rows.base) :]:
            rows = rows.extended(name)
        self._last = rows
        return rows

    def condensed(self, names: Sequence[str]) -> MemoryUniqueSets:
        """Return the columns with equal records as one row, where that saves half of the rows."""
        columns = {name: self._all.columns[name] for name in names}
        groups, weights = self._first.groups, self._all.weights
        for name in names:
            if name not in self._first.base:
                groups = groups.divided(columns[name])
        if 2 * groups.n_groups > len(weights):
            return MemoryUniqueSets(_unnumbered(columns, weights))
        first = groups.order[groups.starts[:-1]]
        columns = {name: replace(own, values=own.values[first]) for name, own in columns.items()}
        sizes = np.add.reduceat(weights[groups.order], groups.starts[:-1], dtype=np.int64)
        return MemoryUniqueSets(_unnumbered(columns, np.minimum(2, sizes).astype(np.uint8)))
