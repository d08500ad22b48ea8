# SPDX-License-Identifier: Apache-2.0
"""Close the parts of a tree whose records do not make safe groups.

Used when other records than those the tree was grown on are released: a group that fails is joined with its whole
sibling subtree, again and again, until it passes or the root is reached.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.tree import Tree

Safe = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
"""Takes the first and one past the last leaf of m runs of leaves, says which of the m groups are safe.

A run without records is no group, and safe.
"""


def close_unsafe(tree: Tree, is_safe: Safe) -> NDArray[np.int32] | None:
    """Return, per leaf, the first leaf of the group it belongs to; None when even the root is not safe.

    Leaves are numbered from left to right, so the leaves below any node are a run of numbers.
    """
    n_leaves = tree.n_groups
    first, stop = _leaf_runs(tree)
    parent = np.full(tree.n_nodes, -1, np.int64)
    inner = np.flatnonzero(tree.left >= 0)
    parent[tree.left[inner]] = inner
    parent[tree.right[inner]] = inner
    closed_by = np.full(n_leaves, -1, np.int64)  # the closed node a leaf lies under, its own leaf at first
    leaves = np.flatnonzero(tree.group >= 0)
    closed_by[tree.group[leaves]] = leaves
    judged = leaves
    while len(judged):
        safe = is_safe(first[judged], stop[judged])
        failed = judged[~safe]
        if np.any(failed == 0):
            return None
        parents = np.unique(parent[failed])
        # A parent below another closed parent is part of that one's group.
        judged = parents[_is_topmost(first[parents], stop[parents])]
        for node in judged:
            closed_by[first[node] : stop[node]] = node
    return first[closed_by].astype(np.int32)


def _leaf_runs(tree: Tree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and one past the last leaf below every node; leaves that are no groups have none."""
    is_group = tree.group >= 0
    first = np.where(is_group, tree.group, tree.n_groups).astype(np.int64)
    stop = np.where(is_group, tree.group + 1, 0).astype(np.int64)
    for node in range(tree.n_nodes - 1, -1, -1):  # children come after their parent
        if tree.left[node] >= 0:
            first[node] = min(first[tree.left[node]], first[tree.right[node]])
            stop[node] = max(stop[tree.left[node]], stop[tree.right[node]])
    return first, stop


def _is_topmost(first: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which runs lie in no other run; runs of a tree are nested or apart."""
    result = np.ones(len(first), np.bool_)
    order = np.lexsort((-stop, first))
    reach = -1
    for i in order:
        result[i] = stop[i] > reach
        reach = max(reach, int(stop[i]))
    return result
