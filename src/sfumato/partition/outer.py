# SPDX-License-Identifier: Apache-2.0
"""Grow a tree over more records than memory holds: the top from counts alone, each branch in memory.

Records are handed out in chunks, as often as asked. While a node holds more records than fit, its histogram is counted
chunk by chunk and its split found from that, as for large nodes in memory; once a node fits, its records are gathered
and the same grower goes on with them alone. All sums are exact integers, so the tree is the one that growing in memory
gives. ``sources.parquet`` and ``spark`` call this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates
from sfumato.partition.dividing import goes_left
from sfumato.partition.grower import Check, Grower
from sfumato.partition.guides import Guide
from sfumato.partition.histogram import subtract
from sfumato.partition.records import Layout, Records
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from sfumato.partition.tree import NodeTable, Tree


@dataclass(frozen=True, eq=False)
class Routing:
    """How records move on from the nodes that were split; arrays over all nodes, -1 where a node stays.

    Attributes
    ----------
    left, right : ndarray of int64
        Children; -1 for nodes that were not split.
    column, last_bin : ndarray of int64
    missing_left : ndarray of bool
    mask : ndarray of uint64
    slot : ndarray of int64
        Where the histogram of a node goes; -1 for nodes that are not counted.
    n_slots : int
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    column: NDArray[np.int64]
    last_bin: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    mask: NDArray[np.uint64]
    slot: NDArray[np.int64]
    n_slots: int


@dataclass(frozen=True)
class Shape:
    """What a histogram is made of: everything that counting needs to know of layout and guide."""

    layout: Layout
    n_entries: int
    block_columns: NDArray[np.int64]
    block_channels: NDArray[np.int64]


class Counting(Protocol):
    """Counts records that are too many to hold, wherever they are."""

    n_records: int

    def advance(self, routing: Routing, shape: Shape) -> NDArray[np.int64]:
        """Move every record on, and return the histograms that were asked for, shape (slots, bins, entries)."""
        ...

    def count_sides(
        self, nodes: NDArray[np.int64], candidates: Candidates, rank: int, check: int, layout: Layout
    ) -> NDArray[np.int64]:
        """Return what a check counts on both sides of one split per node, shape (nodes, 2, values or 1)."""
        ...

    def gather(self, node: int) -> tuple[Records, NDArray[np.int64]]:
        """Return the records of a node, numbered from 0, and their numbers in the table."""
        ...


class OuterGrower(Grower):
    """Grows the top of a tree from counts; `records` holds none, only their types.

    Parameters as of `Grower`; ``counting`` counts the records, ``most_held`` is how many of them memory holds at once.
    """

    def __init__(self, counting: Counting, *, most_held: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.counting = counting
        self.most_held = most_held

    def grow_top(self) -> NodeTable:
        """Split nodes until each fits in memory or cannot be split, and return the nodes."""
        self._prepare()
        self.nodes = NodeTable(self.layout.n_mask_words)
        self.nodes.add_root(self.counting.n_records)
        self._kept_from = 0
        shape = Shape(self.layout, self.n_entries, self.block_columns, self.block_channels)
        frontier = np.zeros(1, np.int64)
        with ThreadPoolExecutor(max(1, self.n_threads - 1)) as self._pool:
            frontier = self._too_large(frontier)
            if len(frontier):
                self._count_nodes(frontier, shape)
            while len(frontier):
                chosen, candidates = self._choose(frontier)
                if not len(chosen):
                    break
                frontier = self._split(chosen, candidates, shape)
        self._histograms.clear()
        self._histogram_bytes = 0
        return self.nodes

    def _too_large(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        return nodes[self.nodes.stop[nodes] - self.nodes.start[nodes] > self.most_held]

    def _count_nodes(self, nodes: NDArray[np.int64], shape: Shape) -> None:
        """Count nodes whose records have arrived already."""
        found = self.counting.advance(self.routing(nodes), shape)
        for slot, node in enumerate(nodes):
            self._keep(int(node), found[slot])

    def _split(self, nodes: NDArray[np.int64], candidates: Candidates, shape: Shape) -> NDArray[np.int64]:
        """Split nodes, count the smaller child of each and subtract for the larger; return the children too large."""
        children = self.nodes.add_children(
            nodes, candidates.column[:, 0], candidates.last_bin[:, 0], candidates.missing_left[:, 0],
            candidates.mask[:, 0], candidates.n_left[:, 0],
        )  # fmt: skip
        sizes = self.nodes.stop - self.nodes.start
        left, right = self.nodes.left[nodes].astype(np.int64), self.nodes.right[nodes].astype(np.int64)
        smaller = np.where(sizes[left] <= sizes[right], left, right)
        larger = np.where(sizes[left] <= sizes[right], right, left)
        counted = np.flatnonzero(sizes[larger] > self.most_held)
        found = self.counting.advance(self.routing(smaller[counted]), shape)
        for slot, i in enumerate(counted):
            whole = self._histograms.pop(int(nodes[i]))
            self._histogram_bytes -= whole.nbytes
            subtract(whole, found[slot], whole)
            self._keep(int(larger[i]), whole)
            self._keep(int(smaller[i]), found[slot])
        for node in nodes:
            self._forget(int(node))
        frontier = self._too_large(children)
        for node in np.setdiff1d(children, frontier):
            self._forget(int(node))
        return frontier

    def routing(self, counted: NDArray[np.int64]) -> Routing:
        """Return how records move on from where they are, and which of the nodes are counted."""
        n = self.nodes.n_nodes
        slot = np.full(n, -1, np.int64)
        slot[counted] = np.arange(len(counted))
        nodes = self.nodes
        return Routing(
            nodes.left[:n].astype(np.int64), nodes.right[:n].astype(np.int64), nodes.column[:n].astype(np.int64),
            nodes.last_bin[:n].astype(np.int64), nodes.missing_left[:n].copy(), nodes.mask[:n].copy(),
            slot, len(counted),
        )  # fmt: skip

    def _passes(
        self, nodes: NDArray[np.int64], found: Candidates, which: NDArray[np.int64], rank: int
    ) -> NDArray[np.bool_]:
        own = Candidates(*(part[which] for part in found))
        result = np.ones(len(nodes), np.bool_)
        for number, check in enumerate(self.checks):
            counts = self.counting.count_sides(nodes, own, rank, number, self.layout)
            result &= check.passes(counts.reshape(-1, counts.shape[2])).reshape(-1, 2).all(axis=1)
        return result


@dataclass(frozen=True, eq=False)
class Branch:
    """What grew below one node of the top.

    Attributes
    ----------
    nodes : NodeTable
    group : ndarray of int32
        Group of each of its records, counted from 0 in the branch.
    records : Records
    rows : ndarray of int64
        The records' numbers in the table.
    n_groups : int
    """

    nodes: NodeTable
    group: NDArray[np.int32]
    records: Records
    rows: NDArray[np.int64]
    n_groups: int


def grow_outer(
    counting: Counting,
    layout: Layout,
    guide: Guide,
    checks: Sequence[Check],
    finish: Callable[[Branch], None],
    *,
    min_records: int,
    fall_back: bool,
    most_held: int,
    n_threads: int,
    empty: Records,
    taxonomy: Taxonomy = NO_TAXONOMY,
) -> Tree:
    """Grow a whole tree, branch after branch from left to right.

    Parameters
    ----------
    counting : Counting
    layout, guide
        The guide's rule and weights; its channels are those of the records.
    checks : sequence of Check
        With the values of all records of the table.
    finish : callable
        Called with every branch, in order; nothing of a branch is held afterwards.
    min_records, fall_back, n_threads
        As of `Grower`.
    most_held : int
        Records that memory holds at once.
    empty : Records
        No records, of the types that `gather` returns.
    taxonomy : Taxonomy

    Returns
    -------
    tree : Tree
    """
    top = OuterGrower(
        counting, most_held=most_held, records=empty, layout=layout, guide=guide, min_records=min_records,
        checks=checks, fall_back=fall_back, n_threads=n_threads, taxonomy=taxonomy,
    )  # fmt: skip
    nodes = top.grow_top()
    leaves = np.flatnonzero(nodes.left[: nodes.n_nodes] < 0)
    for leaf in leaves[np.argsort(nodes.start[leaves], kind="stable")]:
        records, rows = counting.gather(int(leaf))
        own_checks = [replace(check, value_of_row=check.value_of_row[rows]) for check in checks]
        grower = Grower(
            records, layout, guide, min_records,
            checks=own_checks, fall_back=fall_back, n_threads=n_threads, taxonomy=taxonomy,
        )  # fmt: skip
        tree, group = grower.grow()
        branch = grower.nodes
        finish(Branch(branch, group, records, rows, tree.n_groups))
        attach_branch(nodes, int(leaf), branch)
    nodes.sort_by_level()
    return nodes.to_tree(layout)


def attach_branch(nodes: NodeTable, leaf: int, branch: NodeTable) -> None:
    """Put what grew from the records of a leaf below it; `branch` numbers those records from 0 and is used up."""
    n = branch.n_nodes
    branch.start[:n] += nodes.start[leaf]
    branch.stop[:n] += nodes.start[leaf]
    branch.depth[:n] += nodes.depth[leaf]
    nodes.graft(np.array([leaf]), branch)


def advance_chunk(
    records: Records, node_of_row: NDArray[np.uint32], routing: Routing, shape: Shape, out: NDArray[np.int64]
) -> None:
    """Move the records of a chunk on, and add those that arrive in a counted node to its histogram."""
    _advance(
        records.codes, records.dense, records.weights, node_of_row, routing.left, routing.right, routing.column,
        routing.last_bin, routing.missing_left, routing.mask, routing.slot, shape.layout.missing, shape.layout.offsets,
        shape.block_columns, shape.block_channels, out,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _advance(  # type: ignore[no-untyped-def]
    codes, dense, weights, node_of_row, left, right, column, last_bin, missing_left, mask, slot, missing, offsets,
    block_columns, block_channels, out,
):  # fmt: skip
    n_columns = offsets.shape[0] - 1
    n_dense = dense.shape[1]
    is_weighted = weights.shape[0] > 0
    weight_at = out.shape[2] - 1
    for i in range(codes.shape[0]):
        node = node_of_row[i]
        while left[node] >= 0:
            c = column[node]
            if goes_left(codes[i, c], last_bin[node], missing[c], missing_left[node], mask[node]):
                node = left[node]
            else:
                node = right[node]
        node_of_row[i] = node
        h = slot[node]
        if h < 0:
            continue
        weight = weights[i] if is_weighted else 1
        for j in range(n_columns):
            row = offsets[j] + codes[i, j]
            out[h, row, 0] += 1
            for d in range(n_dense):
                out[h, row, 1 + d] += weight * dense[i, d]
            for q in range(block_columns.shape[0]):
                out[h, row, block_channels[q] + codes[i, block_columns[q]]] += weight
            if is_weighted:
                out[h, row, weight_at] += weight


def count_sides_of_chunk(
    codes: NDArray[Any],
    node_of_row: NDArray[np.uint32],
    values: NDArray[np.int32],
    place: NDArray[np.int64],
    candidates: Candidates,
    rank: int,
    layout: Layout,
    out: NDArray[np.int64],
) -> None:
    """Count a column's values on both sides of one split per node: out[place of node, side, value]."""
    _count_sides(
        codes, node_of_row, values, place, candidates.column[:, rank], candidates.last_bin[:, rank],
        candidates.missing_left[:, rank], candidates.mask[:, rank], layout.missing, out,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _count_sides(codes, node_of_row, values, place, column, last_bin, missing_left, mask, missing, out):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        node = node_of_row[i]
        p = place[node] if node < place.shape[0] else -1
        if p >= 0:
            c = column[p]
            side = 0 if goes_left(codes[i, c], last_bin[p], missing[c], missing_left[p], mask[p]) else 1
            out[p, side, values[i]] += 1
