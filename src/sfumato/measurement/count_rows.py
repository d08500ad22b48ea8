# SPDX-License-Identifier: Apache-2.0
"""How often each sensitive value occurs in each group, with every different row of counts once.

A criterion says the same of two groups with the same counts. Most groups of a table that was not anonymized hold one
record, so a million groups often have a few hundred different rows. Called by ``criterion_values``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_CELLS_AT_ONCE = 1 << 20


class Rows(Protocol):
    """Different rows of counts, wherever they are."""

    @property
    def n_rows(self) -> int:  # noqa: D102 - how many rows there are
        ...

    @property
    def n_values(self) -> int:  # noqa: D102 - how many values there are in all
        ...

    def worst(self, criteria: Sequence[tuple[Any, bool]], reference: NDArray[np.int64]) -> list[float]:
        """Return what the worst row reaches in each criterion; the least is the worst where True stands beside it."""
        ...


@dataclass(frozen=True, eq=False)
class CountRows:
    """Rows of counts, stored by the values that occur.

    Attributes
    ----------
    starts : ndarray of int64, shape (rows + 1,)
        Where each row begins in `values` and `counts`.
    values, counts : ndarray of int64
        The values of a row, rising, and how often each occurs.
    n_values : int
        How many values there are in all.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    n_values: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.starts) - 1

    def blocks(self) -> Iterator[NDArray[np.int64]]:
        """Yield the rows as dense blocks, shape (some rows, values), small enough to work on."""
        step = max(1, _CELLS_AT_ONCE // max(1, self.n_values))
        for low in range(0, self.n_rows, step):
            high = min(self.n_rows, low + step)
            cells = slice(int(self.starts[low]), int(self.starts[high]))
            block = np.zeros((high - low, self.n_values), np.int64)
            rows = np.repeat(np.arange(high - low), np.diff(self.starts[low : high + 1]))
            block[rows, self.values[cells]] = self.counts[cells]
            yield block

    def worst(self, criteria: Sequence[tuple[Any, bool]], reference: NDArray[np.int64]) -> list[float]:
        """Return what the worst row reaches in each criterion; the least is the worst where True stands beside it."""
        found = [np.inf if is_least else -np.inf for _, is_least in criteria]
        for block in self.blocks():
            for place, (criterion, is_least) in enumerate(criteria):
                reached = criterion.each(block, reference)
                found[place] = min(found[place], reached.min()) if is_least else max(found[place], reached.max())
        return [float(value) for value in found]

    def without_repetition(self) -> CountRows:
        """Return every different row once."""
        lengths = np.diff(self.starts)
        row = np.repeat(np.arange(self.n_rows), lengths)
        # Rows with equal fingerprints are compared with the first of them, so a collision costs time and nothing else.
        words = np.random.default_rng(0).integers(1, 1 << 62, self.n_values, dtype=np.uint64)
        marks = np.add.reduceat(words[self.values] * self.counts.astype(np.uint64), self.starts[:-1])
        _, first, label = np.unique(marks, return_index=True, return_inverse=True)
        leader = first[label]
        is_equal = lengths == lengths[leader]
        inside = is_equal[row]
        cell = np.flatnonzero(inside)
        other = self.starts[leader[row[cell]]] + cell - self.starts[row[cell]]
        differs = (self.values[cell] != self.values[other]) | (self.counts[cell] != self.counts[other])
        is_equal[row[cell[differs]]] = False
        kept = np.flatnonzero((leader == np.arange(self.n_rows)) | ~is_equal)
        cells = np.repeat(self.starts[kept] - np.insert(np.cumsum(lengths[kept])[:-1], 0, 0), lengths[kept])
        cells += np.arange(len(cells))
        starts = np.insert(np.cumsum(lengths[kept]), 0, 0)
        return CountRows(starts, self.values[cells], self.counts[cells], self.n_values)


def count_rows(group: NDArray[np.int64], n_groups: int, values: NDArray[np.int64], n_values: int) -> CountRows:
    """Count the values of each group; every group has records.

    Examples
    --------
    >>> rows = count_rows(np.array([0, 0, 1, 2]), 3, np.array([1, 0, 1, 1]), 2).without_repetition()
    >>> [block.tolist() for block in rows.blocks()]
    [[[1, 1], [0, 1]]]
    """
    cells, counts = np.unique(group * n_values + values, return_counts=True)
    starts = np.insert(np.cumsum(np.bincount(cells // n_values, minlength=n_groups)), 0, 0)
    return CountRows(starts, cells % n_values, counts, n_values)


def rows_from_matrix(matrix: NDArray[np.int64]) -> CountRows:
    """Store a dense matrix of counts; every row has a count."""
    row, value = np.nonzero(matrix)
    starts = np.insert(np.cumsum(np.bincount(row, minlength=len(matrix))), 0, 0)
    return CountRows(starts, value, matrix[row, value], matrix.shape[1])
