# SPDX-License-Identifier: Apache-2.0
"""Count nodes and find their splits, on several threads that have their own working memory each.

``grower`` asks for candidates and chooses among them. The kernels below, which may grow a whole branch, hold no
state beside the arrays they are given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates, Rule, empty_candidates
from sfumato.partition.guides import ENTROPY
from sfumato.partition.histogram import (
    PACKED_RECORDS,
    PACKED_VALUE_BITS,
    KeptHistograms,
    Shape,
    add_one_channel,
    add_records,
    add_varying_columns,
    clear_between,
    find_ends,
)
from sfumato.partition.kernel_options import INSIDE
from sfumato.partition.node_records import NodeRecords, move_records
from sfumato.partition.records import Records, as_words
from sfumato.partition.scoring import Scoring, Scratch, make_scratch
from sfumato.partition.split_search import find_splits, find_splits_between
from sfumato.partition.tree import NodeTable
from sfumato.partition.workers import Task, Workers

_SCAN_COST = 400
"""What finding a node's splits costs, in records counted."""

_FEWEST_SUBTRACTED = 1_024
"""Counting so few records is quicker than anything else."""

After = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]
"""Phase, gain and position of the last candidate of each node that was judged already."""


class Memory(NamedTuple):
    """Working memory of one thread, for kernels."""

    histogram: NDArray[np.int64]  # (bins, entries) of one node, zero in between
    packed: NDArray[np.int64]  # (bins,) for `add_one_channel`, zero in between; empty where that does not apply
    scratch: Scratch
    ends: NDArray[np.uint8 | np.uint16]  # (2, padded columns) bounds of the codes of a node
    end_words: NDArray[np.uint64]  # a view of `ends`


class NodeSearch:
    """Counts the nodes of a growing tree, and finds their candidates.

    Parameters
    ----------
    held : NodeRecords
    shape : Shape
        Of the histograms.
    scoring : Scoring
    workers : Workers
    """

    def __init__(self, held: NodeRecords, shape: Shape, scoring: Scoring, workers: Workers) -> None:
        self.held = held
        self.shape = shape
        self.layout = shape.layout
        self.scoring = scoring
        self.workers = workers
        records, n_channels = held.given, len(scoring.channel_weights)
        # Room for counting by `add_one_channel`, where it applies: one channel of few bits, no weights. The values
        # themselves are checked: one too large or negative would spill into the counts, and k with them.
        is_one_channel = n_channels == records.dense.shape[1] == 1 and not scoring.is_weighted
        n_packed = shape.dimensions[0] if is_one_channel and _fits(records.dense, PACKED_VALUE_BITS) else 0

        def make_memory() -> Memory:
            ends = np.zeros((2, records.codes.shape[1]), records.codes.dtype)
            scratch = make_scratch(shape.layout, shape.n_entries, n_channels)
            histogram, packed = np.zeros(shape.dimensions, np.int64), np.zeros(n_packed, np.int64)
            return Memory(histogram, packed, scratch, ends, as_words(ends))

        self._memories = workers.per_thread(make_memory)

    def worth_subtracting(self) -> int:
        """Return from how many records on subtracting two histograms is quicker than counting the larger child."""
        n_blocks = len(self.shape.block_columns)
        per_record = self.layout.n_columns * (1 + self.held.given.dense.shape[1] + n_blocks)
        n_bins, n_entries = self.shape.dimensions
        return max(_FEWEST_SUBTRACTED, int(4 * n_bins * n_entries // per_record))

    # -- counting --------------------------------------------------------------------------------------------

    def count(self, node: int) -> NDArray[np.int64]:
        """Return the histogram of a node, counted by all threads in chunks."""
        source, nodes = self.held.of(node), self.held.nodes
        edges = self.workers.chunks(nodes.start[node], nodes.stop[node])
        parts = self.workers.per_thread(lambda: np.zeros(self.shape.dimensions, np.int64))

        def task(chunk: int) -> Task:
            return lambda thread: count_run(
                source, edges[chunk], edges[chunk + 1], self.shape, self._memories[thread].packed, parts[chunk]
            )

        self.workers.run([task(chunk) for chunk in range(len(parts))])
        for part in parts[1:]:
            parts[0] += part
        return parts[0]

    # -- finding ---------------------------------------------------------------------------------------------

    def find(self, nodes: NDArray[np.int64], n_ranks: int, after: After, kept: KeptHistograms) -> Candidates:
        """Find up to `n_ranks` candidates per node of one depth that come after the given ones.

        Nodes without a histogram at hand are counted on the way.
        """
        out = empty_candidates(len(nodes), n_ranks, self.layout)
        table = self.held.nodes
        starts, stops = table.start[nodes], table.stop[nodes]
        source = self.held.of(nodes[0])
        is_kept = kept.has(nodes)
        counted = np.flatnonzero(~is_kept & (stops - starts >= 2 * self.scoring.min_records))
        tasks: list[Task] = []
        for i in np.flatnonzero(is_kept):
            tasks.append(self._find_task(kept[int(nodes[i])], after, out, int(i)))
        for share in self.workers.shares((stops - starts)[counted], _SCAN_COST):
            tasks.append(self._count_and_find_task(source, counted[share], starts, stops, after, out))
        self.workers.run(tasks)
        return out

    def _find_task(self, histogram: NDArray[np.int64], after: After, out: Candidates, i: int) -> Task:
        phase, gain, position = after
        return lambda thread: find_splits(
            histogram,
            self.layout,
            self.scoring,
            self._memories[thread].scratch,
            (phase[i], gain[i], position[i]),
            out,
            i,
        )

    def _count_and_find_task(
        self,
        source: Records,
        which: NDArray[np.int64],
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        after: After,
        out: Candidates,
    ) -> Task:
        return lambda thread: count_and_find(
            source, which, starts, stops, self.shape, self.scoring, self._memories[thread], after, out
        )

    # -- whole branches --------------------------------------------------------------------------------------

    def grow_branches(self, branches: list[NodeTable]) -> None:
        """Grow branches to the end, each by one thread that waits for no other; none of them has the root in it."""
        odd, even = self.held.at_depth(1), self.held.at_depth(2)
        self.workers.run([self._branch_task(branch, odd, even) for branch in branches])

    def _branch_task(self, branch: NodeTable, odd: Records, even: Records) -> Task:
        def task(thread: int) -> None:
            branch.n_nodes = grow_branch(
                branch.n_nodes, branch.arrays(), odd, even, self.shape, self.scoring, self._memories[thread],
                empty_candidates(1, 1, self.layout),
            )  # fmt: skip

        return task


def _fits(values: NDArray[np.int64], n_bits: int) -> bool:
    """Return True if no value is negative or needs more bits."""
    return int(values.min(initial=0)) >= 0 and int(values.max(initial=0)) < 1 << n_bits


@njit(nogil=True, cache=True)
def count_and_find(records, which, starts, stops, shape, scoring, memory, after, out):  # type: ignore[no-untyped-def]
    """Count each node into the same scratch histogram and find its candidates."""
    phase, gain, position = after
    for i in which:
        last = (phase[i], gain[i], position[i])
        _count_and_find_one(records, starts[i], stops[i], shape, scoring, memory, np.bool_(False), last, out, i)


@njit(**INSIDE)
def _count_and_find_one(  # type: ignore[no-untyped-def]
    records, start, stop, shape, scoring, memory, is_pure, after, out, i
):
    """Write the candidates of one node into row `i` of `out`, and return True if its records are all alike.

    A guide sees no gain in a node whose records it cannot tell apart, so that is left to information loss at once.
    `is_pure` says that this is known already. The histogram is all zero, before and after.
    """
    phase, after_gain, after_position = after
    if phase == 0 and scoring.rule <= ENTROPY:
        is_pure = is_pure or _is_pure(records, start, stop, shape.block_columns)
        if is_pure:
            out.n_found[i] = 0
            if not scoring.fall_back:
                return is_pure
            phase = np.int64(1)
    offsets, scratch, histogram = shape.layout.offsets, memory.scratch, memory.histogram
    find_ends(records.codes.view(np.uint64), start, stop, memory.end_words)
    for column in range(offsets.shape[0] - 1):
        scratch.lowest[column] = memory.ends[0, column]
        scratch.highest[column] = min(np.int64(memory.ends[1, column]), offsets[column + 1] - offsets[column] - 1)
    if memory.packed.shape[0] > 0 and stop - start <= PACKED_RECORDS:
        add_varying_columns(records, start, stop, offsets, memory.packed, scratch, histogram)
    else:
        count_run(records, start, stop, shape, memory.packed, histogram)
    find_splits_between(histogram, shape.layout, scoring, scratch, (phase, after_gain, after_position), out, i)
    clear_between(histogram, offsets, scratch.lowest, scratch.highest)
    return is_pure


@njit(nogil=True, cache=True)
def grow_branch(n_nodes, nodes, odd, even, shape, scoring, memory, out):  # type: ignore[no-untyped-def]
    """Split the nodes of a branch and all that comes of them, in the order of their numbers; return their number.

    The same steps as level by level, without leaving the kernel: a whole fit takes 0.8 times as long. Children take
    the next numbers, so that the nodes of a level follow each other here too. There is room for all nodes that
    `min_records` allows. Records lie in the buffer of their depth, `odd` or `even`.
    """
    is_pure = np.zeros(nodes.start.shape[0], np.bool_)  # what is alike stays alike when it is split
    first_round = (np.int64(0), np.inf, np.int64(-1))
    node = 0
    while node < n_nodes:
        first, last = nodes.start[node], nodes.stop[node]
        is_odd = nodes.depth[node] & 1 == 1  # a tuple chosen here would count references to all its arrays
        if last - first >= 2 * scoring.min_records:
            if is_odd:
                is_pure[node] = _count_and_find_one(
                    odd, first, last, shape, scoring, memory, is_pure[node], first_round, out, np.int64(0)
                )
            else:
                is_pure[node] = _count_and_find_one(
                    even, first, last, shape, scoring, memory, is_pure[node], first_round, out, np.int64(0)
                )
            if out.n_found[0] > 0:
                c, last_bin, missing_left = out.column[0, 0], out.last_bin[0, 0], out.missing_left[0, 0]
                nodes.column[node], nodes.last_bin[node], nodes.missing_left[node] = c, last_bin, missing_left
                for word in range(nodes.mask.shape[1]):
                    nodes.mask[node, word] = out.mask[0, 0, word]
                middle = first + out.n_left[0, 0]
                rule = Rule(c, last_bin, shape.layout.missing[c], missing_left, nodes.mask[node])
                if is_odd:
                    move_records(odd, even, first, last, rule, first, middle)
                else:
                    move_records(even, odd, first, last, rule, first, middle)
                nodes.left[node], nodes.right[node] = n_nodes, n_nodes + 1
                nodes.start[n_nodes], nodes.stop[n_nodes] = first, middle
                nodes.start[n_nodes + 1], nodes.stop[n_nodes + 1] = middle, last
                for child in (n_nodes, n_nodes + 1):
                    nodes.parent[child], nodes.depth[child] = node, nodes.depth[node] + 1
                    is_pure[child] = is_pure[node]
                n_nodes += 2
        node += 1
    return n_nodes


@njit(**INSIDE)
def _is_pure(records, start, stop, block_columns):  # type: ignore[no-untyped-def]
    """Return True if all records have the same channels; stop at the first that differs."""
    codes, dense = records.codes, records.dense
    for i in range(start + 1, stop):
        for c in range(dense.shape[1]):
            if dense[i, c] != dense[start, c]:
                return False
        for column in block_columns:
            if codes[i, column] != codes[start, column]:
                return False
    return True


@njit(nogil=True, cache=True)
def count_run(records, start, stop, shape, packed, out):  # type: ignore[no-untyped-def]
    """Add a run of records to a histogram, by `add_one_channel` if `packed` has room for it."""
    if packed.shape[0] > 0:
        add_one_channel(records, start, stop, shape.layout.offsets, packed, out)
    else:
        add_records(records, start, stop, shape, out)
