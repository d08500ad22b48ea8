# SPDX-License-Identifier: Apache-2.0
"""The tree while it grows (`NodeTable`) and the flat tree that is used afterwards (`Tree`).

Where other records than those it was grown on are released, `close_unsafe` closes the parts whose records do not make
safe groups: a group that fails is joined with its whole sibling subtree, again and again, until it passes or the root
is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import goes_left
from sfumato.partition.records import Layout

Safe = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
"""Takes the first and one past the last leaf of m runs of leaves, says which of the m groups are safe.

A run without records is no group, and safe.
"""


class NodeArrays(NamedTuple):
    """The nodes of a growing tree, for kernels; -1 where a node has no parent, children or split."""

    start: NDArray[np.int64]  # the records of a node are a run
    stop: NDArray[np.int64]
    depth: NDArray[np.int32]
    parent: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    column: NDArray[np.int32]
    last_bin: NDArray[np.int32]  # ordered columns: codes up to this go left
    missing_left: NDArray[np.bool_]
    mask: NDArray[np.uint64]  # (nodes, words) category columns: codes whose bit is set go left


class NodeTable:
    """Nodes of a growing tree as columns that double when full; children come after their parent."""

    def __init__(self, n_mask_words: int) -> None:
        self.n_nodes = 0
        self._capacity = 64
        self.start = np.zeros(64, np.int64)
        self.stop = np.zeros(64, np.int64)
        self.depth = np.zeros(64, np.int32)
        self.parent = np.full(64, -1, np.int32)
        self.left = np.full(64, -1, np.int32)
        self.right = np.full(64, -1, np.int32)
        self.column = np.full(64, -1, np.int32)
        self.last_bin = np.full(64, -1, np.int32)
        self.missing_left = np.zeros(64, np.bool_)
        self.mask = np.zeros((64, n_mask_words), np.uint64)
        self.split_rank = np.full(64, -1, np.int32)
        self._n_splits = 0

    def add_root(self, n_records: int) -> None:
        """Start with one node that holds everything."""
        self.add_roots(np.array([n_records]))

    def add_roots(self, n_records: NDArray[np.integer[Any]]) -> None:
        """Start with several nodes, the roots of a tree each, whose records lie one after the other."""
        self._reserve(len(n_records))
        self.n_nodes = len(n_records)
        self.stop[: self.n_nodes] = np.cumsum(n_records)
        self.start[1 : self.n_nodes] = self.stop[: self.n_nodes - 1]

    def add_children(
        self,
        nodes: NDArray[np.int64],
        column: NDArray[np.int64],
        last_bin: NDArray[np.int64],
        missing_left: NDArray[np.bool_],
        mask: NDArray[np.uint64],
        n_left: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Record the splits of `nodes` and return their children, left and right in turn."""
        m = len(nodes)
        first = self.n_nodes
        self._reserve(first + 2 * m)
        left, right = np.arange(first, first + 2 * m, 2), np.arange(first + 1, first + 2 * m, 2)
        self.column[nodes], self.last_bin[nodes], self.missing_left[nodes] = column, last_bin, missing_left
        self.mask[nodes] = mask
        self.left[nodes], self.right[nodes] = left, right
        self.split_rank[nodes] = np.arange(self._n_splits, self._n_splits + m)
        self._n_splits += m
        middle = self.start[nodes] + n_left
        self.start[left], self.stop[left] = self.start[nodes], middle
        self.start[right], self.stop[right] = middle, self.stop[nodes]
        self.parent[left] = self.parent[right] = nodes
        self.depth[left] = self.depth[right] = self.depth[nodes] + 1
        self.n_nodes += 2 * m
        return np.arange(first, first + 2 * m)

    def sizes(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many records nodes have."""
        return self.stop[nodes] - self.start[nodes]

    def size(self, node: int) -> int:
        """Return how many records a node has."""
        return int(self.stop[node] - self.start[node])

    @property
    def leaves(self) -> NDArray[np.int64]:
        """The nodes that are not split, by their numbers."""
        return np.flatnonzero(self.left[: self.n_nodes] < 0)

    def branch(self, nodes: NDArray[np.int64], min_records: int = 1) -> NodeTable:
        """Return a table of its own in which only what lies below `nodes`, leaves so far, goes on growing.

        It has room for every node that groups of at least `min_records` allow.
        """
        own = NodeTable(self.mask.shape[1])
        most_leaves = np.maximum(1, self.sizes(nodes) // min_records)
        own._reserve(int((2 * most_leaves - 1).sum()))
        own.n_nodes = len(nodes)
        for name in ("start", "stop", "depth"):
            getattr(own, name)[: len(nodes)] = getattr(self, name)[nodes]
        return own

    def graft(self, nodes: NDArray[np.int64], branch: NodeTable) -> None:
        """Take over what has grown below `nodes` in a branch."""
        m, n = len(nodes), branch.n_nodes
        self._reserve(self.n_nodes + n - m)
        number = np.concatenate([nodes, np.arange(self.n_nodes, self.n_nodes + n - m)])
        for name in ("start", "stop", "depth", "column", "last_bin", "missing_left", "mask"):
            getattr(self, name)[number] = getattr(branch, name)[:n]
        inner = np.flatnonzero(branch.left[:n] >= 0)
        self.left[number[inner]], self.right[number[inner]] = number[branch.left[inner]], number[branch.right[inner]]
        self.parent[number[m:]] = number[branch.parent[m:n]]
        self.n_nodes += n - m

    def sort_by_level(self) -> None:
        """Number the nodes as growing level by level does: by depth, then from left to right."""
        n = self.n_nodes
        order = np.lexsort((self.start[:n], self.depth[:n]))
        number = np.empty(n + 1, np.int32)
        number[order], number[-1] = np.arange(n), -1  # -1, no node, stays -1
        for part in vars(self).values():
            if isinstance(part, np.ndarray):
                part[:n] = part[order]
        for links in (self.parent, self.left, self.right):
            links[:n] = number[links[:n]]
        inner = self.left[:n] >= 0
        self._n_splits = int(inner.sum())
        self.split_rank[:n] = np.where(inner, np.cumsum(inner) - 1, -1)

    def arrays(self) -> NodeArrays:
        """Return the arrays that kernels write."""
        return NodeArrays(*(getattr(self, name) for name in NodeArrays._fields))

    def _reserve(self, n_nodes: int) -> None:
        if n_nodes <= self._capacity:
            return
        capacity = max(n_nodes, 2 * self._capacity)
        for name, part in list(vars(self).items()):
            if isinstance(part, np.ndarray):
                fill = -1 if part.dtype == np.int32 and name != "depth" else 0
                grown = np.full((capacity, *part.shape[1:]), fill, part.dtype)
                grown[: self._capacity] = part
                setattr(self, name, grown)
        self._capacity = capacity

    def trimmed(self) -> NodeTable:
        """Return a copy without room to grow: small, to be sent elsewhere."""
        own = NodeTable(self.mask.shape[1])
        for name, part in vars(self).items():
            setattr(own, name, part[: self.n_nodes].copy() if isinstance(part, np.ndarray) else part)
        own._capacity = self.n_nodes
        return own

    def to_tree(self, layout: Layout) -> Tree:
        """Return the flat tree over the growing tree's codes."""
        n = self.n_nodes
        # A record's place at the end is its group's: leaves are numbered from left to right.
        group = np.full(n, -1, np.int32)
        leaves = self.leaves
        group[leaves[np.argsort(self.start[leaves], kind="stable")]] = np.arange(len(leaves))
        return Tree(
            column=self.column[:n].copy(),
            left=self.left[:n].copy(),
            right=self.right[:n].copy(),
            threshold=self.last_bin[:n].copy(),
            missing_left=self.missing_left[:n].copy(),
            mask=self.mask[:n].copy(),
            group=group,
            split_rank=self.split_rank[:n].copy(),
            larger_left=self._larger_left(),
            missing_codes=layout.missing.copy(),
        )

    def _larger_left(self) -> NDArray[np.bool_]:
        sizes = self.stop - self.start
        inner = self.left[: self.n_nodes] >= 0
        larger_left = np.zeros(self.n_nodes, np.bool_)
        larger_left[inner] = sizes[self.left[: self.n_nodes][inner]] > sizes[self.right[: self.n_nodes][inner]]
        return larger_left


@dataclass(frozen=True, eq=False)
class Tree:
    """A grown tree as flat arrays, one entry per node; children come after their parent.

    Attributes
    ----------
    column : ndarray of int32
        Column split on, -1 at a leaf.
    left, right : ndarray of int32
    threshold : ndarray of int32
        Ordered columns: codes up to this go left. -1 for category splits, which use `mask`.
    missing_left : ndarray of bool
        Ordered columns: the side of missing values.
    mask : ndarray of uint64, shape (nodes, words)
        Category columns: codes whose bit is set go left.
    group : ndarray of int32
        Number of a leaf's group, counted from left to right; -1 inside the tree.
    split_rank : ndarray of int32
        When a node was split, counted from 0; -1 at a leaf. Best-first growth with a smaller leaf limit makes
        exactly the splits with the smaller ranks.
    larger_left : ndarray of bool
        Whether the left child had more records: the side of values unseen at fit.
    missing_codes : ndarray of int64
        Code of missing per column, -1 where none exists.
    goto : ndarray of int32 or None
        Leaves without a group: the node, elsewhere in the tree, in which their records go on; -1 at all other nodes.
        None where every leaf has a group.
    """

    column: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    threshold: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    mask: NDArray[np.uint64]
    group: NDArray[np.int32]
    split_rank: NDArray[np.int32]
    larger_left: NDArray[np.bool_]
    missing_codes: NDArray[np.int64]
    goto: NDArray[np.int32] | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.column)

    @property
    def n_groups(self) -> int:
        """Number of leaves that are groups."""
        return int((self.group >= 0).sum())

    def apply(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Return the group of each record, given its codes, shape (n, columns)."""
        out = np.empty(len(codes), np.int32)
        goto = np.full(self.n_nodes, -1, np.int32) if self.goto is None else self.goto
        _apply(codes, _Nodes._make([*(getattr(self, name) for name in _Nodes._fields[:-1]), goto]), out)
        return out

    def pruned(self, max_leaves: int) -> Tree:
        """Return the tree that best-first growth under this leaf limit would have stopped at.

        Meaningful for trees grown best-first; splits are undone in the reverse of the order they were made in.
        """
        keep = (self.split_rank >= 0) & (self.split_rank < max_leaves - 1)
        return self._cut_below(keep)

    def without_splits(self, nodes: NDArray[np.integer[Any]]) -> Tree:
        """Return the tree in which the given nodes are leaves, and what lay below them is gone."""
        keep = self.column >= 0
        keep[nodes] = False
        return self._cut_below(keep)

    def _cut_below(self, is_split: NDArray[np.bool_]) -> Tree:
        """Return the tree in which only the marked nodes are split; unmarked ones become leaves."""
        reached = np.zeros(self.n_nodes, np.bool_)
        reached[0] = True
        for node in range(self.n_nodes):
            if reached[node] and is_split[node]:
                reached[self.left[node]] = reached[self.right[node]] = True
        old = np.flatnonzero(reached)
        new = np.full(self.n_nodes, -1, np.int32)
        new[old] = np.arange(len(old))
        inner = is_split[old]

        def at_inner(part: NDArray[Any]) -> NDArray[Any]:
            return np.where(inner, part[old], -1).astype(part.dtype)

        group = np.full(len(old), -1, np.int32)
        group[~inner] = np.argsort(np.argsort(self._places()[old[~inner]])).astype(np.int32)
        return Tree(
            column=at_inner(self.column),
            left=np.where(inner, new[self.left[old]], -1).astype(np.int32),
            right=np.where(inner, new[self.right[old]], -1).astype(np.int32),
            threshold=at_inner(self.threshold),
            missing_left=self.missing_left[old] & inner,
            mask=np.where(inner[:, None], self.mask[old], np.uint64(0)),
            group=group,
            split_rank=at_inner(self.split_rank),
            larger_left=self.larger_left[old] & inner,
            missing_codes=self.missing_codes,
        )

    def _places(self) -> NDArray[np.int64]:
        """For every node the number of the leftmost leaf below it: its place from left to right."""
        places = self.group.astype(np.int64)
        for node in range(self.n_nodes - 1, -1, -1):
            if self.left[node] >= 0:
                places[node] = places[self.left[node]]
        return places


class _Nodes(NamedTuple):
    """The arrays of a `Tree` that records are run through."""

    column: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    threshold: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    mask: NDArray[np.uint64]
    group: NDArray[np.int32]
    missing_codes: NDArray[np.int64]
    goto: NDArray[np.int32]


@njit(nogil=True, cache=True)
def _apply(codes, nodes, out):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        node = 0
        while nodes.group[node] < 0:
            c = nodes.column[node]
            if c < 0:
                node = nodes.goto[node]
            elif goes_left(
                codes[i, c], nodes.threshold[node], nodes.missing_codes[c], nodes.missing_left[node], nodes.mask[node]
            ):
                node = nodes.left[node]
            else:
                node = nodes.right[node]
        out[i] = nodes.group[node]


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
    """Return which runs lie in no other run; runs of a tree are nested or apart."""
    result = np.ones(len(first), np.bool_)
    order = np.lexsort((-stop, first))
    reach = -1
    for i in order:
        result[i] = stop[i] > reach
        reach = max(reach, int(stop[i]))
    return result
