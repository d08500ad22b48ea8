# SPDX-License-Identifier: Apache-2.0
"""What a split's sides must meet beside their number of records; the grower asks before it takes a split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.candidates import Splits
from sfumato.partition.dividing import count_distinct_by_side, count_values_by_side
from sfumato.partition.records import Layout, Records

_COUNT_BUDGET = 64 << 20
"""Bytes of counts made at once."""


@dataclass(frozen=True, eq=False)
class Check:
    """A condition on both sides of a split beside their number of records.

    Attributes
    ----------
    value_of_row : ndarray of int32
        Code of the counted column for every record of the table.
    n_values : int
    distinct : bool
        Count how many different values occur (persons) instead of how often each does.
    passes : callable
        Takes counts of shape (m, n_values), or (m, 1) when distinct, and says which of the m groups are safe.
    """

    value_of_row: NDArray[np.int32]
    n_values: int
    distinct: bool
    passes: Callable[[NDArray[np.int64]], NDArray[np.bool_]]

    def is_safe(self, rows: NDArray[np.int64]) -> bool:
        """Say whether some records of the table are a safe group."""
        counts = np.bincount(self.value_of_row[rows], minlength=self.n_values)
        seen = np.array([np.count_nonzero(counts)]) if self.distinct else counts
        return bool(self.passes(seen[None, :].astype(np.int64))[0])

    def are_safe(self, sides: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say at which of m splits both sides are safe, given their counts, shape (m, 2, n_values or 1)."""
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
        """Say at which of some splits, one per node, both sides are safe; some nodes are counted after the others."""
        width = 1 if self.distinct else self.n_values
        block = max(1, _COUNT_BUDGET // (16 * width))
        result = np.ones(len(starts), np.bool_)
        for at in range(0, len(starts), block):
            part = slice(at, at + block)
            own = (
                starts[part], stops[part], splits.column[part], splits.last_bin[part], layout.missing,
                splits.missing_left[part], splits.mask[part], self.value_of_row,
            )  # fmt: skip
            counts = np.zeros((len(starts[part]), 2, width), np.int64)
            if self.distinct:
                last_seen = np.full(self.n_values, -1, np.int64)
                count_distinct_by_side(records.codes, records.rows, *own, last_seen, counts)
            else:
                count_values_by_side(records.codes, records.rows, *own, counts)
            result[part] = self.are_safe(counts)
        return result
