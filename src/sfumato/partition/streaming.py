# SPDX-License-Identifier: Apache-2.0
"""Grow a tree over more records than memory holds: the top from counts alone, each branch in memory.

Records are handed out in chunks, as often as asked. While a node is large, its histogram is counted chunk by chunk and
its split found from that, as for large nodes in memory; then its records are gathered, together with those of as many
others as memory holds, and the same grower goes on with each alone, several at a time. All sums are exact integers, so
the tree is the one that growing in memory gives. ``parquet`` and ``spark`` call this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates, Splits, goes_left, splits_of
from sfumato.partition.criterion_checks import Check
from sfumato.partition.grower import Grower
from sfumato.partition.guides import Guide
from sfumato.partition.histogram import Shape
from sfumato.partition.records import Layout, Records
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from sfumato.partition.tree import NodeTable, Tree

_WORTH_A_LEVEL = 4
"""Large nodes are split from counts while they have at least one in so many of all records."""

_BLOCK = 2048
"""Records gathered column by column at a time: few enough for the written memory to stay in the cache."""

_SLACK = 3
"""How many times larger than asked for a branch may be where memory allows it."""


class Routing(NamedTuple):
    """How records move on from the nodes that were split: arrays over all nodes, for kernels."""

    left: NDArray[np.int64]  # children, -1 for nodes that were not split
    right: NDArray[np.int64]
    column: NDArray[np.int64]
    last_bin: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    mask: NDArray[np.uint64]
    slot: NDArray[np.int64]  # where the histogram of a node goes, -1 for nodes that are not counted
    n_slots: int


class ColumnChunk(NamedTuple):
    """Some records, column by column; each array has room for more."""

    n_records: int
    dense: NDArray[np.int32]  # (channels, room)
    wide: NDArray[np.uint16]  # (columns of two bytes, room)
    narrow: NDArray[np.uint8]  # (columns of one byte, room)
    at: NDArray[np.int64]  # for each code column its row in `wide`, or -1 - its row in `narrow`


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


class Gathering(Counting, Protocol):
    """Counts records, and hands those of some nodes over."""

    def gather(self, nodes: NDArray[np.int64]) -> list[Records]:
        """Return the records of each of some nodes; their rows are their numbers in the table."""
        ...


class OuterGrower(Grower):
    """Grows the top of a tree from counts; `records` holds none, only their types.

    Parameters as of `Grower`; ``counting`` counts the records, ``most_held`` is how many of them memory holds at once.
    Nodes at most ``slack`` times as large are left as they are when there are few of them.
    """

    def __init__(self, counting: Counting, *, most_held: int, slack: int = 1, **settings: Any) -> None:
        super().__init__(**settings)
        self.counting = counting
        self.most_held = most_held
        self.slack = slack

    def grow_top(self) -> NodeTable:
        """Split nodes until each fits in memory or cannot be split, and return the nodes."""
        with self._prepared(self.counting.n_records):
            frontier = self._too_large(np.zeros(1, np.int64))
            if len(frontier):
                self._count_nodes(frontier)
            while len(frontier):
                chosen, candidates = self._choose(frontier)
                if not len(chosen):
                    break
                frontier = self._split(chosen, candidates)
        return self.nodes

    def _too_large(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the nodes to go on with: the large ones, unless few records are left in ones not much too large."""
        sizes = self.nodes.sizes(nodes)
        large = sizes > self.most_held
        # Each level reads all records, so a level for a few of them costs more than it spares later.
        is_enough = sizes[large].sum() * _WORTH_A_LEVEL < self.counting.n_records
        kept = large & ~(is_enough & (sizes <= self.slack * self.most_held))
        chosen: NDArray[np.int64] = nodes[kept]
        return chosen

    def _count_nodes(self, nodes: NDArray[np.int64]) -> None:
        """Count nodes whose records have arrived already."""
        found = self.counting.advance(self.routing(nodes), self._search.shape)
        for slot, node in enumerate(nodes):
            self._kept.keep(int(node), found[slot])

    def _split(self, nodes: NDArray[np.int64], candidates: Candidates) -> NDArray[np.int64]:
        """Split nodes, count the smaller child of each and subtract for the larger; return the children too large."""
        children = self.nodes.add_children(nodes, *splits_of(candidates))
        sizes = self.nodes.stop - self.nodes.start
        left, right = self.nodes.left[nodes].astype(np.int64), self.nodes.right[nodes].astype(np.int64)
        smaller = np.where(sizes[left] <= sizes[right], left, right)
        larger = np.where(sizes[left] <= sizes[right], right, left)
        frontier = self._too_large(children)
        counted = np.flatnonzero(np.isin(larger, frontier))  # the smaller one is in it only together with the larger
        found = self.counting.advance(self.routing(smaller[counted]), self._search.shape)
        for slot, i in enumerate(counted):
            self._kept.divide(int(nodes[i]), int(smaller[i]), found[slot], int(larger[i]))
        for node in [*nodes, *np.setdiff1d(children, frontier)]:
            self._kept.forget(int(node))
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
            result &= check.are_safe(counts)
        return result


@dataclass(frozen=True, eq=False)
class Branch:
    """The part of a tree that grew below one node of the top.

    Attributes
    ----------
    nodes : NodeTable
    records : Records
        In the order of their groups; their rows are their numbers in the table.
    group : ndarray of int32
        Group of each of these records, counted from 0 in the branch: never falling.
    tree : Tree
        Of these groups alone.
    described : object
        What the caller's `describe` made of it.
    """

    nodes: NodeTable
    records: Records
    group: NDArray[np.int32]
    tree: Tree
    described: Any = None


def grow_outer(
    counting: Gathering,
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
    branch_size: int | None = None,
    describe: Callable[[Branch], Any] | None = None,
    taxonomy: Taxonomy = NO_TAXONOMY,
) -> Tree:
    """Grow a whole tree, branch after branch from left to right.

    Parameters
    ----------
    counting : Gathering
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
    branch_size : int, optional
        Records from which on a node is split from counts; `most_held` where not given.
    describe : callable, optional
        Called with every branch beforehand, from several threads; what it returns goes with the branch.
    taxonomy : Taxonomy

    Returns
    -------
    tree : Tree
    """
    size = min(most_held, branch_size or most_held)
    top = OuterGrower(
        counting, most_held=size, slack=min(_SLACK, most_held // size), records=empty, layout=layout, guide=guide,
        min_records=min_records, checks=checks, fall_back=fall_back, n_threads=n_threads, taxonomy=taxonomy,
    )  # fmt: skip
    nodes = top.grow_top()
    leaves = nodes.leaves
    leaves = leaves[np.argsort(nodes.start[leaves], kind="stable")]
    # Many branches are grown by one thread each, few by all threads together.
    n_together = n_threads if len(leaves) >= 2 * n_threads else 1

    def grown(records: Records) -> Branch:
        grower = Grower(
            records, layout, guide, min_records,
            checks=checks, fall_back=fall_back, n_threads=n_threads // n_together, taxonomy=taxonomy,
        )  # fmt: skip
        part = grower.grow_part()
        branch = Branch(grower.nodes, part.records, part.group, part.tree)
        return branch if describe is None else replace(branch, described=describe(branch))

    with ThreadPoolExecutor(n_together) as pool:
        for held in _runs_of(nodes.sizes(leaves), most_held):
            gathered = counting.gather(leaves[held])
            for leaf, branch in zip(leaves[held], _in_order(pool, grown, gathered, n_together), strict=True):
                finish(branch)
                attach_branch(nodes, int(leaf), branch.nodes)
    nodes.sort_by_level()
    return nodes.to_tree(layout)


def _runs_of(sizes: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Cut a list of nodes into runs with at most so many records, where one node alone does not have more."""
    first, n_held = 0, 0
    for at, size in enumerate(sizes.tolist()):
        if at > first and n_held + size > most:
            yield slice(first, at)
            first, n_held = at, 0
        n_held += size
    yield slice(first, len(sizes))


def _in_order(
    pool: ThreadPoolExecutor, grown: Callable[[Records], Branch], gathered: list[Records], n_together: int
) -> Iterator[Branch]:
    """Grow branches in threads and yield them in order; what was gathered is used up on the way."""
    waiting: deque[Future[Branch]] = deque()
    gathered.reverse()
    while gathered or waiting:
        # A branch may take several times as long as those after it: some of these are done before it is their turn.
        while gathered and len(waiting) < 3 * n_together:
            waiting.append(pool.submit(grown, gathered.pop()))
        yield waiting.popleft().result()


def attach_branch(nodes: NodeTable, leaf: int, branch: NodeTable) -> None:
    """Put what grew from the records of a leaf below it; `branch` numbers those records from 0 and is used up."""
    n = branch.n_nodes
    branch.start[:n] += nodes.start[leaf]
    branch.stop[:n] += nodes.start[leaf]
    branch.depth[:n] += nodes.depth[leaf]
    nodes.graft(np.array([leaf]), branch)


# -- chunks of records --------------------------------------------------------------------------------------------


def advance_chunk(
    records: Records, node_of_row: NDArray[np.uint32], routing: Routing, shape: Shape, out: NDArray[np.int64]
) -> None:
    """Move the records of a chunk on, and add those that arrive in a counted node to its histogram."""
    _advance(records, node_of_row, routing, shape, out)


@njit(nogil=True, cache=True)
def _advance(records, node_of_row, routing, shape, out):  # type: ignore[no-untyped-def]
    """Find which of some records are counted, then add them column by column, so that its bins stay in the cache."""
    codes, dense, weights = records.codes, records.dense, records.weights
    offsets, block_columns, block_channels = shape.layout.offsets, shape.block_columns, shape.block_channels
    is_weighted = weights.shape[0] > 0
    row, slot = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    for start in range(0, codes.shape[0], _BLOCK):
        n_counted = 0
        for i in range(start, min(codes.shape[0], start + _BLOCK)):
            node = _descend(codes, i, np.int64(node_of_row[i]), routing, shape.layout.missing)
            node_of_row[i] = node
            # Written for every record, and over it where it is not counted: no branch to guess.
            row[n_counted], slot[n_counted] = i, routing.slot[node]
            n_counted += routing.slot[node] >= 0
        for j in range(offsets.shape[0] - 1):
            for s in range(n_counted):
                i, h, at = row[s], slot[s], offsets[j] + codes[row[s], j]
                weight = weights[i] if is_weighted else 1
                out[h, at, 0] += 1
                for d in range(dense.shape[1]):
                    out[h, at, 1 + d] += weight * dense[i, d]
                for q in range(block_columns.shape[0]):
                    out[h, at, block_channels[q] + codes[i, block_columns[q]]] += weight
                if is_weighted:
                    out[h, at, out.shape[2] - 1] += weight


@njit(nogil=True, cache=True)
def _descend(codes, i, node, routing, missing):  # type: ignore[no-untyped-def]
    """Return the node that a record moves on to."""
    while routing.left[node] >= 0:
        c = routing.column[node]
        is_left = goes_left(
            codes[i, c], routing.last_bin[node], missing[c], routing.missing_left[node], routing.mask[node]
        )
        node = routing.left[node] if is_left else routing.right[node]
    return node


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
    """Count the values of a column on both sides of one split per node: out[place of node, side, value]."""
    splits = Splits(*(np.ascontiguousarray(part) for part in splits_of(candidates, rank=rank)))
    _count_sides(codes, node_of_row, values, place, splits, layout.missing, out)


@njit(nogil=True, cache=True)
def _count_sides(codes, node_of_row, values, place, splits, missing, out):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        node = node_of_row[i]
        p = place[node] if node < place.shape[0] else -1
        if p >= 0:
            c = splits.column[p]
            is_left = goes_left(codes[i, c], splits.last_bin[p], missing[c], splits.missing_left[p], splits.mask[p])
            out[p, 0 if is_left else 1, values[i]] += 1


def count_places(node_of_row: NDArray[np.uint32], place: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Count the records of a chunk whose nodes have a place."""
    _count_places(node_of_row, place, counts)


@njit(nogil=True, cache=True)
def _count_places(node_of_row, place, counts):  # type: ignore[no-untyped-def]
    for i in range(node_of_row.shape[0]):
        p = place[node_of_row[i]]
        if p >= 0:
            counts[p] += 1


def gather_columns(
    chunk: ColumnChunk,
    first_row: int,
    node_of_row: NDArray[np.uint32],
    place: NDArray[np.int64],
    position: NDArray[np.int64],
    out: Records,
) -> None:
    """Copy the records of a chunk whose nodes have a place to where those of that place go on; `position` moves on."""
    _gather(chunk, first_row, node_of_row, place, position, out)


@njit(nogil=True, cache=True)
def _gather(chunk, first_row, node_of_row, place, position, out):  # type: ignore[no-untyped-def]
    wide, narrow, at = chunk.wide, chunk.narrow, chunk.at
    row, to = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    for start in range(0, chunk.n_records, _BLOCK):
        m = 0
        for i in range(start, min(chunk.n_records, start + _BLOCK)):
            p = place[node_of_row[i]]
            if p >= 0:
                row[m], to[m] = i, position[p]
                position[p] += 1
                m += 1
        for s in range(m):
            out.rows[to[s]] = first_row + row[s]
            for c in range(chunk.dense.shape[0]):
                out.dense[to[s], c] = chunk.dense[c, row[s]]
            for j in range(at.shape[0], out.codes.shape[1]):
                out.codes[to[s], j] = 0  # padding
        for j in range(at.shape[0]):
            if at[j] >= 0:
                for s in range(m):
                    out.codes[to[s], j] = wide[at[j], row[s]]
            else:
                for s in range(m):
                    out.codes[to[s], j] = narrow[-1 - at[j], row[s]]
