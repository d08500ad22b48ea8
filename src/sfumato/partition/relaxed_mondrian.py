# SPDX-License-Identifier: Apache-2.0
"""Relaxed Mondrian: the widest column is cut at its median, and the records with the median value on both sides of it.

Which of them goes where must not depend on the order of the records, and must be known for records to come. So they
are divided by the codes of all columns, the first that differs first: of two records with the median value the one
with the smaller codes lies left. Records that are alike in all columns stay together.

The result is a tree of ordinary cuts: below the values less than the median and those greater than it, the median
value itself is followed column by column, and its leaves say on which side they go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.group_widths import (
    Ground,
    NodeScratch,
    make_boxes,
    make_node_scratch,
    measure_node,
    number_children,
)
from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy, has_hierarchy
from sfumato.partition.tree import Tree

SafeRows = Callable[[NDArray[np.int64]], bool]
"""Takes the rows of a group and says whether it is safe."""


@dataclass(eq=False)
class _Node:
    """A node while the tree grows: a cut, a group, or a leaf that goes on elsewhere."""

    rows: NDArray[np.int64] | None = None
    column: int = -1
    last_code: int = -1
    missing_left: bool = False
    larger_left: bool = False
    left: _Node | None = None
    right: _Node | None = None
    goto: _Node | None = None


@dataclass(frozen=True, eq=False)
class _Cut:
    """A cut of a node's records: by the class of one column and, among those of one class, by their codes.

    Attributes
    ----------
    column : int
    below, within : int
        Last code of the classes that lie left, and of the class that is divided; -1 where there is none.
    last_left : ndarray or None
        Codes of the last record of the divided class that lies left.
    ties : ndarray of int64
        The rows of the divided class.
    left, right : ndarray of int64
    """

    column: int
    below: int
    within: int
    last_left: NDArray[Any] | None
    ties: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]


def grow(
    codes: NDArray[Any],
    layout: Layout,
    min_records: int,
    *,
    taxonomy: Taxonomy = NO_TAXONOMY,
    is_safe: SafeRows | None = None,
) -> tuple[Tree, NDArray[np.int32]]:
    """Grow the tree and return it with the group of every record; parameters as for ``set_aside.grow``."""
    weights = np.ones(len(codes), np.int64)
    ground = Ground(codes, weights, layout, taxonomy, make_boxes(layout, taxonomy), min_records)
    scratch = make_node_scratch(ground)
    root = _Node(np.arange(len(codes)))
    open_ = [root]
    while open_:
        node = open_.pop()
        assert node.rows is not None
        cut = _find_cut(ground, node.rows, is_safe, scratch)
        if cut is not None:
            sides = (_Node(cut.left), _Node(cut.right))
            upper = _Builder(codes, layout, cut, sides).build(node.rows)
            vars(node).update(vars(upper))  # the node above points here
            open_ += sides
    return _to_tree(root, layout, len(codes))


# -- choosing a cut --------------------------------------------------------------------------------------------


def _find_cut(ground: Ground, rows: NDArray[np.int64], is_safe: SafeRows | None, scratch: NodeScratch) -> _Cut | None:
    """Return the cut of the widest column that can be cut, nearest its median."""
    codes, k = ground.codes, ground.min_records
    if len(rows) < 2 * k:
        return None
    measure_node(ground, rows, 0, len(rows), scratch)
    can_cut = scratch.low < scratch.high
    for column in np.argsort(-scratch.widths, kind="stable").tolist():
        if not can_cut[column]:
            continue
        own = codes[rows, column].astype(np.int64)
        if has_hierarchy(ground.taxonomy, column):
            number_children(ground, rows, 0, len(rows), column, scratch)
            group = scratch.child[own]
        else:
            group = own
        cut = _cut_at_median(codes, rows, own, group, ground.layout.n_columns, column, k)
        if cut is not None and (is_safe is None or (is_safe(cut.left) and is_safe(cut.right))):
            return cut
    return None


def _cut_at_median(
    codes: NDArray[Any],
    rows: NDArray[np.int64],
    own: NDArray[np.int64],
    group: NDArray[np.int64],
    n_columns: int,
    column: int,
    k: int,
) -> _Cut | None:
    """Cut where most nearly half of the records lie left; `group` numbers the classes of the column in order."""
    n = len(rows)
    ends = np.cumsum(np.bincount(group))
    middle = int(np.searchsorted(2 * ends, n))  # the class that holds the middle of the records
    is_tie, is_below = group == middle, group < middle
    ties = rows[is_tie]
    tied = codes[ties][:, :n_columns]
    order = np.lexsort(tied.T[::-1])
    ranked = tied[order]
    changes = np.flatnonzero((ranked[1:] != ranked[:-1]).any(axis=1)) + 1
    inside = np.concatenate([[0], changes, [len(ties)]])
    places = int(is_below.sum()) + inside
    is_admissible = (places >= k) & (n - places >= k)
    if not is_admissible.any():
        return None
    distance = np.where(is_admissible, np.abs(2 * places - n), 2 * n)
    n_left = int(inside[np.argmin(distance)])
    below, within = (int(own[part].max()) if part.any() else -1 for part in (is_below, is_tie))
    ties_left, ties_right = ties[order[:n_left]], ties[order[n_left:]]
    left = np.concatenate([rows[is_below], ties_left])
    right = np.concatenate([ties_right, rows[group > middle]])
    if n_left in (0, len(ties)):  # between two classes: nothing is divided
        return _Cut(column, within if n_left else below, -1, None, ties[:0], left, right)
    return _Cut(column, below, within, ranked[n_left - 1], ties, left, right)


# -- the tree --------------------------------------------------------------------------------------------------


class _Builder:
    """Turns a cut into nodes: each side is hung in where it is first asked for, and gone to from everywhere else."""

    def __init__(self, codes: NDArray[Any], layout: Layout, cut: _Cut, sides: tuple[_Node, _Node]) -> None:
        self.codes, self.layout, self.cut, self.sides = codes, layout, cut, sides
        self.is_hung = [False, False]

    def build(self, rows: NDArray[np.int64]) -> _Node:
        """Return the uppermost node of the cut of some records."""
        cut = self.cut
        if cut.last_left is None:
            return self._split(cut.column, cut.below, rows, self._side(0), self._side(1))
        lower = self._side(0) if cut.below >= 0 else None
        upper = self._side(1) if (self.codes[rows, cut.column] > cut.within).any() else None
        node = self._follow(cut.last_left, cut.ties, 0)
        if upper is not None:
            node = self._split(cut.column, cut.within, rows, node, upper)
        if lower is not None:
            node = self._split(cut.column, cut.below, rows, lower, node)
        return node

    def _follow(self, last_left: NDArray[Any], ties: NDArray[np.int64], column: int) -> _Node:
        """Divide records that agree with the last one on the left so far, from a column on."""
        if column == self.layout.n_columns:
            return self._side(0)
        code, own = int(last_left[column]), self.codes[ties, column]
        smaller, larger = own[own < code], own[own > code]
        node = self._follow(last_left, ties[own == code], column + 1)
        if len(larger):
            node = self._split(column, code, ties, node, self._side(1))
        if len(smaller):
            node = self._split(column, int(smaller.max()), ties, self._side(0), node)
        return node

    def _split(self, column: int, last_code: int, rows: NDArray[np.int64], left: _Node, right: _Node) -> _Node:
        own = self.codes[rows, column]
        has_missing = bool((own == self.layout.missing[column]).any())
        larger_left = 2 * int((own <= last_code).sum()) > len(rows)
        return _Node(None, column, last_code, larger_left and not has_missing, larger_left, left, right)

    def _side(self, which: int) -> _Node:
        if not self.is_hung[which]:
            self.is_hung[which] = True
            return self.sides[which]
        return _Node(goto=self.sides[which])


def _to_tree(root: _Node, layout: Layout, n_records: int) -> tuple[Tree, NDArray[np.int32]]:
    """Number the nodes from the root on, left before right, and the groups from left to right."""
    nodes: list[_Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if node.left is not None and node.right is not None:
            waiting += [node.right, node.left]
    number = {id(node): at for at, node in enumerate(nodes)}

    def place(other: _Node | None) -> int:
        return -1 if other is None else number[id(other)]

    n = len(nodes)
    column = np.array([node.column for node in nodes], np.int32)
    last_code = np.array([node.last_code for node in nodes], np.int32)
    is_inner = column >= 0
    is_category = is_inner & layout.is_category[np.maximum(column, 0)]
    mask = np.zeros((n, layout.n_mask_words), np.uint64)
    for node_at in np.flatnonzero(is_category).tolist():
        for word in range(layout.n_mask_words):
            n_bits = min(64, max(0, int(last_code[node_at]) + 1 - 64 * word))
            mask[node_at, word] = (1 << n_bits) - 1
    group = np.full(n, -1, np.int32)
    group_of_row = np.empty(n_records, np.int32)
    leaves = [at for at, node in enumerate(nodes) if node.rows is not None]
    for g, at in enumerate(leaves):
        group[at] = group_of_row[nodes[at].rows] = g
    tree = Tree(
        column=column,
        left=np.array([place(node.left) for node in nodes], np.int32),
        right=np.array([place(node.right) for node in nodes], np.int32),
        threshold=np.where(is_inner & ~is_category, last_code, -1).astype(np.int32),
        missing_left=np.array([node.missing_left for node in nodes], np.bool_),
        mask=mask,
        group=group,
        split_rank=np.where(is_inner, np.cumsum(is_inner) - 1, -1).astype(np.int32),
        larger_left=np.array([node.larger_left for node in nodes], np.bool_),
        missing_codes=layout.missing.copy(),
        goto=np.array([place(node.goto) for node in nodes], np.int32),
    )
    return tree, group_of_row
