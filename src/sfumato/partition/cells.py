# SPDX-License-Identifier: Apache-2.0
"""The cells of a tree: the values of each column that its splits leave to a group, whoever is in it.

Cells cover the whole space. A split counts only if it divides records into groups: a side without records is not told,
and what lies below a group that was joined is one cell. Called by ``anonymize`` for representatives that are ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.tree import Tree


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells of one column.

    Attributes
    ----------
    of_group : ndarray of int64
        The cell of each group.
    low, high : ndarray of int64
        Ordered columns: the first and the last code of each cell; the first is the greater where there is none.
    has_missing : ndarray of bool
        Whether missing values belong to each cell.
    mask : ndarray of uint64, shape (cells, words)
        Categories: the codes whose bit is set belong to a cell.
    """

    of_group: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    has_missing: NDArray[np.bool_]
    mask: NDArray[np.uint64]

    @property
    def n_cells(self) -> int:
        """Number of different cells."""
        return len(self.has_missing)

    def holds(self, cell: int | NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some codes of a category column belong to a cell; cells in a column give a row each."""
        return np.asarray((self.mask[cell, codes >> 6] >> (codes & 63).astype(np.uint64)) & np.uint64(1) != 0)

    def all_hold(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some codes of a category column belong to each cell, a row per cell."""
        octets = np.ascontiguousarray(self.mask, "<u8").view(np.uint8)
        return np.unpackbits(octets, axis=1, bitorder="little").view(np.bool_).take(codes, axis=1)


class Inside(NamedTuple):
    """The values of a column that lie in the cell of each group. Arrays, as kernels need them."""

    cell: NDArray[np.int64]  # of each group
    holds: NDArray[np.bool_]  # (cells, values)
    is_whole: NDArray[np.bool_]  # (cells,): whether a cell holds all values


def everything(n_groups: int, n_values: int) -> Inside:
    """Return one cell with all values, for groups that are not boxes."""
    return Inside(np.zeros(n_groups, np.int64), np.ones((1, n_values), np.bool_), np.ones(1, np.bool_))


def tree_cells(
    tree: Tree,
    columns: Sequence[int],
    n_codes: Sequence[int],
    is_category: Sequence[bool],
    group_of_leaf: NDArray[np.integer[Any]] | None = None,
    *,
    may_overlap: bool = False,
) -> list[ColumnCells] | None:
    """Return the cells of some columns of a tree; None where records go on elsewhere: groups are not boxes then.

    Parameters
    ----------
    tree : Tree
    columns : sequence of int
    n_codes : sequence of int
        Number of codes of each of these columns: of values for ordered ones, of everything for categories.
    is_category : sequence of bool
    group_of_leaf : ndarray of int, optional
        The group of every leaf, -1 for leaves without records. A group has all leaves with records below some node.
        None: every leaf is a group.
    may_overlap : bool, default=False
        Whether to return, for a tree that sets records aside, too, what the splits above a group's leaf leave to it.
        Such cells overlap, and members that were set aside elsewhere may lie outside the cell of their group.
    """
    forks = np.zeros(tree.n_nodes, np.bool_)
    if tree.goto is not None and (tree.goto >= 0).any():
        forks = _forks(tree, columns, n_codes, is_category)
        if not (may_overlap and forks.any()):
            return None
    groups = np.arange(tree.n_groups) if group_of_leaf is None else np.asarray(group_of_leaf)
    of_node = np.where(tree.group >= 0, groups[np.maximum(tree.group, 0)], -1).astype(np.int64)
    divides = _dividing(tree.left, tree.right, of_node) & ~forks
    leaves = np.flatnonzero((tree.group >= 0) & (of_node >= 0))
    node_of_group = np.zeros(int(groups.max(initial=-1)) + 1, np.int64)
    node_of_group[of_node[leaves]] = leaves  # all leaves of a group have its cell
    return [
        _column_cells(tree, column, n, own, divides, node_of_group)
        for column, n, own in zip(columns, n_codes, is_category, strict=True)
    ]


def _forks(
    tree: Tree, columns: Sequence[int], n_codes: Sequence[int], is_category: Sequence[bool]
) -> NDArray[np.bool_]:
    """Return the nodes that send everything left; on their right wait the records that were set aside."""
    forks = np.zeros(tree.n_nodes, np.bool_)
    for column, n, own in zip(columns, n_codes, is_category, strict=True):
        whole = (tree.mask == ~np.uint64(0)).all(axis=1) if own else (tree.threshold >= n - 1) & tree.missing_left
        forks |= whole & (tree.column == column)
    return forks


def _column_cells(
    tree: Tree,
    column: int,
    n_codes: int,
    is_category: bool,
    divides: NDArray[np.bool_],
    node_of_group: NDArray[np.int64],
) -> ColumnCells:
    cell_of_node, parent, node, is_left = _number_cells(
        tree.left, tree.right, np.flatnonzero(divides & (tree.column == column)), tree.n_nodes
    )
    is_used = np.zeros(len(parent), np.bool_)
    is_used[cell_of_node[node_of_group]] = True
    of_group = (np.cumsum(is_used) - 1)[cell_of_node[node_of_group]]
    nothing = np.zeros(0, np.int64)
    if is_category:
        mask = np.full((len(parent), -(-n_codes // 64)), ~np.uint64(0))
        _narrow_masks(parent, node, is_left, tree.mask, mask)
        kept, place = _distinct_rows(mask[is_used])
        code = int(tree.missing_codes[column])
        has_missing = (kept[:, code >> 6] >> np.uint64(code & 63)) & np.uint64(1) != 0
        return ColumnCells(place[of_group], nothing, nothing, has_missing, kept)
    ends = np.zeros((len(parent), 3), np.int64)
    ends[0] = 0, n_codes - 1, 1
    _narrow_ends(parent, node, is_left, tree.threshold, tree.missing_left, ends)
    # One number per cell, since numbers are sorted faster than rows; an empty cell begins at `n_codes`, after the last.
    key = (ends[is_used, 0] * (n_codes + 1) + ends[is_used, 1]) * 2 + ends[is_used, 2]
    distinct, place = np.unique(key, return_inverse=True)
    low, high = np.divmod(distinct >> 1, n_codes + 1)
    return ColumnCells(place[of_group], low, high, distinct % 2 != 0, np.zeros((0, 0), np.uint64))


def _distinct_rows(mask: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return every different row once, and which of them each row is."""
    if mask.shape[1] == 1:
        distinct, place = np.unique(mask[:, 0], return_inverse=True)
        return distinct[:, None], place
    rows = np.ascontiguousarray(mask).view(np.dtype((np.void, 8 * mask.shape[1])))[:, 0]
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    return mask[first], place


@njit(nogil=True, cache=True)
def _dividing(left, right, group):  # type: ignore[no-untyped-def]
    """Return which nodes have records on both sides, and more than one group; `group` is -1 at nodes without one."""
    n = left.shape[0]
    first, last = group.copy(), group.copy()
    divides = np.zeros(n, np.bool_)
    for node in range(n - 1, -1, -1):  # children come after their parent
        a, b = left[node], right[node]
        if a < 0:
            continue
        if first[a] >= 0 and first[b] >= 0:
            first[node] = min(first[a], first[b])
            last[node] = max(last[a], last[b])
            divides[node] = first[node] != last[node]
        else:
            full = a if first[a] >= 0 else b
            first[node] = first[full]
            last[node] = last[full]
    return divides


@njit(nogil=True, cache=True)
def _number_cells(left, right, split, n_nodes):  # type: ignore[no-untyped-def]
    """Number the cells of a column from the root on, two for each of its splits.

    Return the cell of each node, and of each cell the one it was cut from, the node that cut it and the side.
    """
    cell = np.zeros(n_nodes, np.int64)
    n_cells = 1 + 2 * split.shape[0]
    parent, node_of, is_left = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64), np.zeros(n_cells, np.bool_)
    at, made = 0, 1
    for node in range(n_nodes):
        if left[node] < 0:
            continue
        if at < split.shape[0] and split[at] == node:
            at += 1
            for side in range(2):
                parent[made], node_of[made], is_left[made] = cell[node], node, side == 0
                cell[left[node] if side == 0 else right[node]] = made
                made += 1
        else:
            cell[left[node]] = cell[right[node]] = cell[node]
    return cell, parent, node_of, is_left


@njit(nogil=True, cache=True)
def _narrow_ends(parent, node, is_left, threshold, missing_left, ends):  # type: ignore[no-untyped-def]
    for cell in range(1, parent.shape[0]):
        at = node[cell]
        low, high, missing = ends[parent[cell]]
        if is_left[cell]:
            high = min(high, threshold[at])
        else:
            low = max(low, threshold[at] + 1)
        ends[cell, 0], ends[cell, 1] = low, high
        ends[cell, 2] = missing if missing_left[at] == is_left[cell] else 0


@njit(nogil=True, cache=True)
def _narrow_masks(parent, node, is_left, mask, cells):  # type: ignore[no-untyped-def]
    for cell in range(1, parent.shape[0]):
        for word in range(cells.shape[1]):
            own = mask[node[cell], word]
            cells[cell, word] = cells[parent[cell], word] & (own if is_left[cell] else ~own)
