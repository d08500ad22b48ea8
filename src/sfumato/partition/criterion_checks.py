# SPDX-License-Identifier: Apache-2.0
"""Conditions on both sides of a split beyond their number of records; the grower checks them before it splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Splits, goes_left
from sfumato.partition.records import Layout, Records

_COUNT_BUDGET = 64 << 20
"""Bytes of counts made at once."""


@dataclass(frozen=True, eq=False)
class Check:
    """A condition on both sides of a split beyond their number of records.

    Attributes
    ----------
    value_of_row : ndarray of int32
        Code of the counted column for every record of the table.
    n_values : int
    distinct : bool
        Count the distinct values (persons) instead of the records of each value.
    passes : callable
        Takes counts of shape (m, n_values), or (m, 1) if distinct, and returns which of the m groups are safe.
    """

    value_of_row: NDArray[np.int32]
    n_values: int
    distinct: bool
    passes: Callable[[NDArray[np.int64]], NDArray[np.bool_]]

    def is_safe(self, rows: NDArray[np.int64]) -> bool:
        """Return True if some records of the table are a safe group."""
        counts = np.bincount(self.value_of_row[rows], minlength=self.n_values)
        seen = np.array([np.count_nonzero(counts)]) if self.distinct else counts
        return bool(self.passes(seen[None, :].astype(np.int64))[0])

    def are_safe(self, sides: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return at which of m splits both sides are safe, given their counts, shape (m, 2, n_values or 1)."""
        is_safe = self.passes(sides.reshape(-1, sides.shape[2])).reshape(-1, 2)
        return is_safe[:, 0] & is_safe[:, 1]

    def allows(
        self,
        splits: Splits,
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        records: Records,
        layout: Layout,
    ) -> NDArray[np.bool_]:
        """Return at which of some splits, one per node, both sides are safe; nodes are counted in batches."""
        width = 1 if self.distinct else self.n_values
        block = max(1, _COUNT_BUDGET // (16 * width))
        result = np.ones(len(starts), np.bool_)
        for at in range(0, len(starts), block):
            part = slice(at, at + block)
            own = Splits(*(field[part] for field in splits))
            counts = np.zeros((len(starts[part]), 2, width), np.int64)
            if self.distinct:
                last_seen = np.full(self.n_values, -1, np.int64)
                count_distinct_by_side(
                    records, starts[part], stops[part], own, layout.missing, self.value_of_row, last_seen, counts
                )
            else:
                count_values_by_side(records, starts[part], stops[part], own, layout.missing, self.value_of_row, counts)
            result[part] = self.are_safe(counts)
        return result


@njit(nogil=True, cache=True)
def count_values_by_side(records, starts, stops, splits, missing, value_of_row, out):  # type: ignore[no-untyped-def]
    """Count the values of a column on both sides of one split per node: out[node, side, value]."""
    for node in range(starts.shape[0]):
        column, last_bin, mask = splits.column[node], splits.last_bin[node], splits.mask[node]
        for i in range(starts[node], stops[node]):
            code = records.codes[i, column]
            left = goes_left(code, last_bin, missing[column], splits.missing_left[node], mask)
            out[node, 0 if left else 1, value_of_row[records.rows[i]]] += 1


@njit(nogil=True, cache=True)
def count_distinct_by_side(  # type: ignore[no-untyped-def]
    records, starts, stops, splits, missing, value_of_row, last_seen, out
):
    """Count the distinct values on both sides of one split per node: out[node, side, 0].

    `last_seen` has a place per value and starts at -1; a (node, side) leaves its own mark there, so nothing has
    to be cleared in between.
    """
    for node in range(starts.shape[0]):
        column, last_bin, mask = splits.column[node], splits.last_bin[node], splits.mask[node]
        for side in range(2):
            for i in range(starts[node], stops[node]):
                code = records.codes[i, column]
                left = goes_left(code, last_bin, missing[column], splits.missing_left[node], mask)
                value = value_of_row[records.rows[i]]
                if left == (side == 0) and last_seen[value] != 2 * node + side:
                    last_seen[value] = 2 * node + side
                    out[node, side, 0] += 1
