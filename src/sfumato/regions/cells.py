# SPDX-License-Identifier: Apache-2.0
"""The values of a column of regions that lie in the cells of a tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.cells import ColumnCells, Inside
from sfumato.representatives import CellColumn


def reach_of(own: CellColumn, unit_of_code: NDArray[np.int32], n_units: int) -> NDArray[np.int64]:
    """Return the first and the last code of the tree that each value of an ordered column stands for."""
    bins = own.column.bins
    place = np.searchsorted(own.cuts, bins.values, side="left")
    reach = np.tile(np.array([len(own.cuts) + 1, -1], np.int64), (n_units, 1))  # nothing
    np.minimum.at(reach[:, 0], unit_of_code[: bins.n_values], place)
    np.maximum.at(reach[:, 1], unit_of_code[: bins.n_values], place)
    return reach


def inside_of(cells: ColumnCells, reach: NDArray[np.int64], missing: NDArray[np.bool_], *, is_category: bool) -> Inside:
    """Return which values lie in the cell of each group; one that stands for several codes, if one of them does.

    Parameters
    ----------
    cells : ColumnCells
    reach : ndarray of int64, shape (values, 2)
        As `reach_of` says for ordered columns; of categories their code, twice. The last value may not be named.
    missing : ndarray of bool
        Which of the values stand for a missing one.
    is_category : bool
    """
    first, last = reach.T
    if is_category:
        holds = cells.all_hold(np.maximum(first, 0))
    else:
        holds = (cells.low[:, np.newaxis] <= last) & (first <= cells.high[:, np.newaxis])
    holds = np.where(missing, cells.has_missing[:, np.newaxis], holds)
    holds[:, -1] = False
    return Inside(cells.of_group, holds, np.asarray(holds[:, :-1].all(axis=1)))


def without_cells(inside: Inside, is_small: NDArray[np.bool_]) -> Inside:
    """Return the same values inside, but all of them for some groups."""
    if not is_small.any():
        return inside
    holds = np.vstack([inside.holds, np.ones_like(inside.holds[:1])])
    cell = np.where(is_small, len(inside.holds), inside.cell)
    return Inside(cell, holds, np.append(inside.is_whole, True))
