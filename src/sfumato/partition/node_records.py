# SPDX-License-Identifier: Apache-2.0
"""Where the records of each node lie while a tree grows: moved at every split, and handed out in the end.

``grower`` decides on the splits; the kernels are those of ``dividing``, and two at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Splits
from sfumato.partition.dividing import count_left, move_nodes, move_records, move_records_from_the_end
from sfumato.partition.records import Layout, Records, as_words
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
        """Let go of the buffers."""
        self._buffers.clear()

    # -- dividing --------------------------------------------------------------------------------------------

    def divide(self, nodes: NDArray[np.int64], splits: Splits) -> None:
        """Move the records of nodes of one depth to their sides of the nodes' splits, in the next buffer."""
        depth = int(self.nodes.depth[nodes[0]])
        source, target = self.at_depth(depth), self.at_depth(depth + 1)
        starts, stops = self.nodes.start[nodes], self.nodes.stop[nodes]
        sizes = stops - starts
        moved = (
            source.codes, as_words(source.codes), source.dense, source.weights, source.rows,
            as_words(target.codes), target.dense, target.weights, target.rows,
        )  # fmt: skip
        is_large = sizes > self.workers.large_node
        small = np.flatnonzero(~is_large)
        tasks: list[Task] = []
        for share in self.workers.shares(sizes[small]):
            tasks.append(self._move_task(moved, starts, stops, splits, small[share]))
        for i in np.flatnonzero(is_large):
            tasks.extend(self._move_chunk_tasks(moved, int(starts[i]), int(stops[i]), splits, int(i)))
        self.workers.run(tasks)

    def _move_task(self, moved: Any, starts: Any, stops: Any, splits: Splits, which: NDArray[np.int64]) -> Task:
        own = Splits(*(part[which] for part in splits))

        def task(_: int) -> None:
            move_nodes(
                *moved, starts[which], stops[which], own.column, own.last_bin, self.layout.missing, own.missing_left,
                own.mask, own.n_left,
            )  # fmt: skip

        return task

    def _move_chunk_tasks(self, moved: Any, start: int, stop: int, splits: Splits, i: int) -> list[Task]:
        """Divide one large node in chunks, each of which has to know its place on both sides.

        The first begins where the sides begin, and the last ends where they end; for those between, the left sides of
        the chunks before them are counted.
        """
        column, last_bin, missing_left, mask, n_left = (part[i] for part in splits)
        rule = (column, last_bin, self.layout.missing[column], missing_left, mask)
        edges = self.workers.chunks(start, stop)
        n_chunks = len(edges) - 1
        lefts = np.zeros(n_chunks, np.int64)

        def count(chunk: int) -> Task:
            def task(_: int) -> None:
                lefts[chunk] = count_left(moved[0], edges[chunk], edges[chunk + 1], *rule)

            return task

        self.workers.run([count(chunk) for chunk in range(n_chunks - 2)])
        before = np.cumsum(lefts) - lefts

        def move(chunk: int) -> Task:
            if 0 < chunk == n_chunks - 1:
                return lambda _: move_records_from_the_end(
                    *moved, edges[chunk], edges[chunk + 1], *rule, start + n_left, stop
                )
            left_at = start + before[chunk]
            right_at = start + n_left + (edges[chunk] - start - before[chunk])
            return lambda _: move_records(*moved, edges[chunk], edges[chunk + 1], *rule, left_at, right_at)

        return [move(chunk) for chunk in range(n_chunks)]

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
            return lambda _: copy_runs(
                as_words(odd.codes), odd.dense, odd.weights, odd.rows,
                as_words(even.codes), even.dense, even.weights, even.rows, starts, stops,
            )  # fmt: skip

        self.workers.run([copy(moved[share]) for share in self.workers.shares(self.nodes.sizes(moved))])
        return even


@njit(nogil=True, cache=True)
def write_groups(rows, starts, stops, group_of_node, out):  # type: ignore[no-untyped-def]
    """Write the group of each record of some leaves."""
    for node in range(starts.shape[0]):
        for i in range(starts[node], stops[node]):
            out[rows[i]] = group_of_node[node]


@njit(nogil=True, cache=True)
def copy_runs(words, dense, weights, rows, to_words, to_dense, to_weights, to_rows, starts, stops):  # type: ignore[no-untyped-def]
    """Copy some runs of records to the same places of other arrays."""
    for run in range(starts.shape[0]):
        for i in range(starts[run], stops[run]):
            for w in range(words.shape[1]):
                to_words[i, w] = words[i, w]
            for c in range(dense.shape[1]):
                to_dense[i, c] = dense[i, c]
            if weights.shape[0] > 0:
                to_weights[i] = weights[i]
            to_rows[i] = rows[i]
