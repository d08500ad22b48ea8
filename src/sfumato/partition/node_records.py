# SPDX-License-Identifier: Apache-2.0
"""The records of each node while a tree grows: moved at every split, and returned in the end.

Records are moved from one buffer to another, so that every node stays one contiguous run. ``grower`` decides on the
splits.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Rule, Splits, goes_left
from sfumato.partition.records import Layout, Records
from sfumato.partition.tree import NodeTable, Tree
from sfumato.partition.workers import Task, Workers


class NodeRecords:
    """Records in the order of the nodes they are in: every node is one run, in the buffer of its depth.

    The given records are those of the root; below it two buffers take turns, level by level.

    Parameters
    ----------
    given : Records
    nodes : NodeTable
    layout : Layout
    workers : Workers
    uses_up : bool, default=False
        Whether the given records become one of the two buffers. They stay as they are otherwise.
    """

    def __init__(
        self, given: Records, nodes: NodeTable, layout: Layout, workers: Workers, *, uses_up: bool = False
    ) -> None:
        self.given = given
        self.nodes = nodes
        self.layout = layout
        self.workers = workers
        self._buffers: dict[int, Records] = {0: given} if uses_up else {}

    def at_depth(self, depth: int) -> Records:
        """Return the buffer in which the nodes of a depth are."""
        if depth == 0:
            return self.given
        if depth % 2 not in self._buffers:
            self._buffers[depth % 2] = self.given.empty_like()
        return self._buffers[depth % 2]

    def of(self, node: int) -> Records:
        """Return the buffer in which a node, and all others of its depth, are."""
        return self.at_depth(int(self.nodes.depth[node]))

    def clear(self) -> None:
        """Free the buffers."""
        self._buffers.clear()

    # -- dividing --------------------------------------------------------------------------------------------

    def divide(self, nodes: NDArray[np.int64], splits: Splits) -> None:
        """Move the records of nodes of one depth to their sides of the nodes' splits, in the next buffer."""
        depth = int(self.nodes.depth[nodes[0]])
        source, target = self.at_depth(depth), self.at_depth(depth + 1)
        sizes = self.nodes.sizes(nodes)
        is_large = sizes > self.workers.large_node
        small = np.flatnonzero(~is_large)
        tasks: list[Task] = []
        for share in self.workers.shares(sizes[small]):
            tasks.append(self._move_task(source, target, nodes[small[share]], splits, small[share]))
        for i in np.flatnonzero(is_large):
            tasks.extend(self._move_chunk_tasks(source, target, int(nodes[i]), splits, int(i)))
        self.workers.run(tasks)

    def _move_task(
        self, source: Records, target: Records, nodes: NDArray[np.int64], splits: Splits, which: NDArray[np.int64]
    ) -> Task:
        starts, stops = self.nodes.start[nodes], self.nodes.stop[nodes]
        own = Splits(*(part[which] for part in splits))
        return lambda _: move_nodes(source, target, starts, stops, own, self.layout.missing)

    def _move_chunk_tasks(self, source: Records, target: Records, node: int, splits: Splits, i: int) -> list[Task]:
        """Divide one large node in chunks, each of which has to know its place on both sides."""
        column, last_bin, missing_left, mask, n_left = (part[i] for part in splits)
        rule = Rule(column, last_bin, self.layout.missing[column], missing_left, mask)
        start, stop = int(self.nodes.start[node]), int(self.nodes.stop[node])
        edges = self.workers.chunks(start, stop)
        lefts = np.zeros(len(edges) - 1, np.int64)

        def count(chunk: int) -> Task:
            def task(_: int) -> None:
                lefts[chunk] = count_left(source.codes, edges[chunk], edges[chunk + 1], rule)

            return task

        self.workers.run([count(chunk) for chunk in range(len(lefts) - 1)])  # the last has nobody after it
        before = np.cumsum(lefts) - lefts

        def move(chunk: int) -> Task:
            left_at = start + before[chunk]
            right_at = start + n_left + (edges[chunk] - start - before[chunk])
            return lambda _: move_records(source, target, edges[chunk], edges[chunk + 1], rule, left_at, right_at)

        return [move(chunk) for chunk in range(len(lefts))]

    # -- handing out -----------------------------------------------------------------------------------------

    def groups(self, tree: Tree) -> NDArray[np.int32]:
        """Return the group of every given record by its row: the number of its leaf, from left to right."""
        groups = np.empty(self.given.n_records, np.int32)

        def write(rows: NDArray[np.uint32], own: NDArray[np.int64]) -> Task:
            starts, stops, numbers = self.nodes.start[own], self.nodes.stop[own], tree.group[own]
            return lambda _: write_groups(rows, starts, stops, numbers, groups)

        leaves = self.nodes.leaves
        is_odd = self.nodes.depth[leaves] % 2 == 1
        tasks = []
        for own in (leaves[is_odd], leaves[~is_odd]):
            if len(own):  # all of one buffer: the root is a leaf only where there is no other
                rows = self.of(own[0]).rows
                tasks += [write(rows, own[share]) for share in self.workers.shares(self.nodes.sizes(own))]
        self.workers.run(tasks)
        return groups

    def lined_up(self) -> Records:
        """Return all records in the order of their leaves: both buffers have some, at their final places."""
        if self.nodes.n_nodes == 1:
            return self.given
        leaves = self.nodes.leaves
        odd, even = self.at_depth(1), self.at_depth(2)
        moved = leaves[self.nodes.depth[leaves] % 2 == 1]

        def copy(own: NDArray[np.int64]) -> Task:
            starts, stops = self.nodes.start[own], self.nodes.stop[own]
            return lambda _: copy_runs(odd, even, starts, stops)

        self.workers.run([copy(moved[share]) for share in self.workers.shares(self.nodes.sizes(moved))])
        return even


@njit(nogil=True, cache=True)
def write_groups(rows, starts, stops, group_of_node, out):  # type: ignore[no-untyped-def]
    """Write the group of each record of some leaves."""
    for node in range(starts.shape[0]):
        for i in range(starts[node], stops[node]):
            out[rows[i]] = group_of_node[node]


@njit(nogil=True, cache=True)
def copy_runs(source, target, starts, stops):  # type: ignore[no-untyped-def]
    """Copy some runs of records to the same places of other arrays."""
    words, to_words = source.codes.view(np.uint64), target.codes.view(np.uint64)
    for run in range(starts.shape[0]):
        for i in range(starts[run], stops[run]):
            for w in range(words.shape[1]):
                to_words[i, w] = words[i, w]
            for c in range(source.dense.shape[1]):
                target.dense[i, c] = source.dense[i, c]
            if source.weights.shape[0] > 0:
                target.weights[i] = source.weights[i]
            target.rows[i] = source.rows[i]


@njit(nogil=True, cache=True)
def count_left(codes, start, stop, rule):  # type: ignore[no-untyped-def]
    """Return how many records from start to stop go left."""
    n_left = 0
    for i in range(start, stop):
        n_left += goes_left(codes[i, rule.column], rule.last_bin, rule.missing_code, rule.missing_left, rule.mask)
    return n_left


@njit(nogil=True, cache=True)
def move_records(source, target, start, stop, rule, left_at, right_at):  # type: ignore[no-untyped-def]
    """Move records start to stop: those that go left from position `left_at` on, the others from `right_at`.

    Records keep their order within a side. Codes are moved as whole words.
    """
    words, to_words = source.codes.view(np.uint64), target.codes.view(np.uint64)
    codes, dense, weights, rows = source.codes, source.dense, source.weights, source.rows
    to_dense, to_weights, to_rows = target.dense, target.weights, target.rows
    column, last_bin, missing_code, missing_left, mask = rule
    n_words = words.shape[1]
    n_dense = dense.shape[1]
    is_weighted = weights.shape[0] > 0
    for i in range(start, stop):
        left = np.int64(goes_left(codes[i, column], last_bin, missing_code, missing_left, mask))
        to = right_at + (left_at - right_at) * left  # without a jump, which would be guessed wrong half of the time
        left_at += left
        right_at += 1 - left
        for w in range(n_words):
            to_words[to, w] = words[i, w]
        for c in range(n_dense):
            to_dense[to, c] = dense[i, c]
        if is_weighted:
            to_weights[to] = weights[i]
        to_rows[to] = rows[i]


@njit(nogil=True, cache=True)
def move_nodes(source, target, starts, stops, splits, missing):  # type: ignore[no-untyped-def]
    """Divide many nodes, one after the other."""
    for node in range(starts.shape[0]):
        start, column = starts[node], splits.column[node]
        rule = Rule(column, splits.last_bin[node], missing[column], splits.missing_left[node], splits.mask[node])
        move_records(source, target, start, stops[node], rule, start, start + splits.n_left[node])
