# SPDX-License-Identifier: Apache-2.0
"""Surroundings: the people whose values a group's phantom is made of, its few members among many neighbors.

The surroundings of a group are the records below its nearest node of the tree that has at least `FEWEST_AROUND` of
them. Groups are numbered from left to right, so they are a run of groups. Of their values, those outside the group's
own cell are left out, column by column, unless that leaves none. All this depends on counts alone, so every backend
finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.cells import Inside, everything
from sfumato.partition.records import Layout
from sfumato.partition.tree import Tree

FEWEST_AROUND = 200
"""The fewest records of a group's surroundings, where the table has as many."""


class Surroundings(NamedTuple):
    """The surroundings and the cell of each group. Arrays, as kernels need them."""

    first: NDArray[np.int64]  # the first group of the surroundings of each group
    stop: NDArray[np.int64]  # one past the last
    place: NDArray[np.int64]  # (groups, columns): where the codes of a group's cell begin in `holds`
    holds: NDArray[np.bool_]  # for every cell of every column: which codes lie in it


def only_members(n_groups: int, layout: Layout) -> Surroundings:
    """Return surroundings of each group's own members, for groups that have no cells."""
    cells = [everything(n_groups, n) for n in np.diff(layout.offsets).tolist()]
    return _surroundings(np.arange(n_groups), np.arange(n_groups) + 1, cells)


def tree_surroundings(
    tree: Tree,
    sizes: NDArray[np.int64],
    cells: Sequence[Inside],
    group_of_leaf: NDArray[np.integer[Any]] | None = None,
) -> Surroundings:
    """Return the surroundings of the groups of a tree.

    Parameters
    ----------
    tree : Tree
    sizes : ndarray of int64
        Records of each group.
    cells : sequence of Inside
        For each column the cell of each group, over the codes of the records.
    group_of_leaf : ndarray of int, optional
        The group of every leaf, -1 for leaves without records; rising from left to right. A group has all leaves with
        records below some node. None: every leaf is a group.
    """
    groups = np.arange(tree.n_groups) if group_of_leaf is None else np.asarray(group_of_leaf)
    of_node = np.where(tree.group >= 0, groups[np.maximum(tree.group, 0)], -1).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    first, stop = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    _find_runs(tree.left, tree.right, of_node, before, np.int64(FEWEST_AROUND), first, stop)
    return _surroundings(first, stop, cells)


def _surroundings(first: NDArray[np.int64], stop: NDArray[np.int64], cells: Sequence[Inside]) -> Surroundings:
    """Lay the cells of all columns end to end."""
    ends = np.concatenate([[0], np.cumsum([own.holds.size for own in cells])])
    place = [start + own.cell * own.holds.shape[1] for start, own in zip(ends[:-1], cells, strict=True)]
    return Surroundings(
        first, stop, np.column_stack(place).astype(np.int64), np.concatenate([own.holds.ravel() for own in cells])
    )


@njit(nogil=True, cache=True)
def _find_runs(left, right, group, before, at_least, first_of, stop_of):  # type: ignore[no-untyped-def]
    """Write for each group the run of groups below its nearest node with enough records; `group` is used up."""
    n = left.shape[0]
    first, stop = group, group + 1  # -1 and 0 for nodes without records
    for node in range(n - 1, -1, -1):  # children come after their parent
        a, b = left[node], right[node]
        if a < 0:
            continue
        if first[a] >= 0 and first[b] >= 0:
            first[node], stop[node] = min(first[a], first[b]), max(stop[a], stop[b])
        else:
            full = a if first[a] >= 0 else b
            first[node], stop[node] = first[full], stop[full]
    around = np.zeros(n, np.int64)  # the root, until a node below it is found
    for node in range(n):
        if first[node] >= 0 and before[stop[node]] - before[first[node]] >= at_least:
            around[node] = node
        if left[node] >= 0:
            around[left[node]] = around[right[node]] = around[node]
        elif first[node] >= 0:
            first_of[first[node]], stop_of[first[node]] = first[around[node]], stop[around[node]]
