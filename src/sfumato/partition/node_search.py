# SPDX-License-Identifier: Apache-2.0
"""Count nodes and find their splits, on several threads that have their own working memory each.

``grower`` asks for candidates and chooses among them. The kernels below, which may grow a whole branch, hold no
state beside the arrays they are given.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates, empty_candidates
from sfumato.partition.dividing import move_records
from sfumato.partition.guides import ENTROPY
from sfumato.partition.histogram import (
    PACKED_RECORDS,
    PACKED_VALUE_BITS,
    Shape,
    add_one_channel,
    add_records,
    add_varying_columns,
    clear_between,
    find_ends,
)
from sfumato.partition.kept_histograms import KeptHistograms
from sfumato.partition.node_records import NodeRecords
from sfumato.partition.records import Records, as_words
from sfumato.partition.scoring import Scoring, make_scratch
from sfumato.partition.splitting import find_splits, find_splits_between
from sfumato.partition.tree import NodeTable
from sfumato.partition.workers import Task, Workers

_SCAN_COST = 400
"""What finding a node's splits costs, in records counted."""

_FEWEST_SUBTRACTED = 1_024
"""Counting so few records is quicker than anything else."""

After = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]
"""Phase, gain and position of the last candidate of each node that was judged already."""


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
        self._histograms = workers.per_thread(lambda: np.zeros(shape.dimensions, np.int64))
        # Room for the quick way of counting, where it applies: one channel of few bits, no weights. The values
        # themselves are asked: one too large or negative would spill into the counts, and k with them.
        is_one_channel = n_channels == records.dense.shape[1] == 1 and not scoring.is_weighted
        is_packed = is_one_channel and _fits(records.dense, PACKED_VALUE_BITS)
        self._packed = workers.per_thread(lambda: np.zeros(shape.dimensions[0] if is_packed else 0, np.int64))
        self._scratches = workers.per_thread(lambda: make_scratch(shape.layout, shape.n_entries, n_channels))
        codes = records.codes
        self._ends = workers.per_thread(lambda: np.zeros((2, codes.shape[1]), codes.dtype))

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
                source.codes, source.dense, source.weights, edges[chunk], edges[chunk + 1], self.layout.offsets,
                self.shape.block_columns, self.shape.block_channels, self._packed[thread], parts[chunk],
            )  # fmt: skip

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
            histogram, self.layout, self.scoring, self._scratches[thread], phase[i], gain[i], position[i], out, i
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
            source.codes, as_words(source.codes), source.dense, source.weights, which, starts, stops,
            self.layout, self.scoring, self.shape.block_columns, self.shape.block_channels, self._packed[thread],
            self._histograms[thread], self._scratches[thread], self._ends[thread], as_words(self._ends[thread]),
            *after, out,
        )  # fmt: skip

    # -- whole branches --------------------------------------------------------------------------------------

    def grow_branches(self, branches: list[NodeTable]) -> None:
        """Grow branches to the end, each by one thread that waits for no other; none of them has the root in it."""
        odd, even = self.held.at_depth(1), self.held.at_depth(2)
        self.workers.run([self._branch_task(branch, odd, even) for branch in branches])

    def _branch_task(self, branch: NodeTable, odd: Records, even: Records) -> Task:
        def task(thread: int) -> None:
            branch.n_nodes = grow_branch(
                branch.n_nodes, branch.start, branch.stop, branch.depth, branch.parent, branch.left, branch.right,
                branch.column, branch.last_bin, branch.missing_left, branch.mask,
                odd.codes, as_words(odd.codes), odd.dense, odd.weights, odd.rows,
                even.codes, as_words(even.codes), even.dense, even.weights, even.rows,
                self.layout, self.scoring, self.shape.block_columns, self.shape.block_channels, self._packed[thread],
                self._histograms[thread], self._scratches[thread], self._ends[thread], as_words(self._ends[thread]),
                empty_candidates(1, 1, self.layout),
            )  # fmt: skip

        return task


def _fits(values: NDArray[np.int64], n_bits: int) -> bool:
    """True when no value is negative or needs more bits."""
    return int(values.min(initial=0)) >= 0 and int(values.max(initial=0)) < 1 << n_bits


@njit(nogil=True, cache=True)
def count_and_find(  # type: ignore[no-untyped-def]
    codes, words, dense, weights, which, starts, stops, layout, scoring, block_columns, block_channels, packed,
    histogram, scratch, ends, end_words, after_phase, after_gain, after_position, out,
):  # fmt: skip
    """Count each node into the same scratch histogram and find its candidates."""
    for i in which:
        _count_and_find_one(
            codes, words, dense, weights, starts[i], stops[i], layout, scoring, block_columns, block_channels, packed,
            histogram, scratch, ends, end_words, np.bool_(False), after_phase[i], after_gain[i], after_position[i],
            out, i,
        )  # fmt: skip


@njit(nogil=True, cache=True)
def _count_and_find_one(  # type: ignore[no-untyped-def]
    codes, words, dense, weights, start, stop, layout, scoring, block_columns, block_channels, packed, histogram,
    scratch, ends, end_words, is_pure, phase, after_gain, after_position, out, i,
):  # fmt: skip
    """Write the candidates of one node into row `i` of `out`, and return whether its records are all alike.

    A guide sees no gain in a node whose records it cannot tell apart, so that is left to information loss at once.
    `is_pure` says that this is known already. `histogram` is all zero, before and after.
    """
    if phase == 0 and scoring.rule <= ENTROPY:
        is_pure = is_pure or _is_pure(codes, dense, start, stop, block_columns)
        if is_pure:
            out.n_found[i] = 0
            if not scoring.fall_back:
                return is_pure
            phase = np.int64(1)
    offsets = layout.offsets
    find_ends(words, start, stop, end_words)
    for column in range(offsets.shape[0] - 1):
        scratch.lowest[column] = ends[0, column]
        scratch.highest[column] = min(np.int64(ends[1, column]), offsets[column + 1] - offsets[column] - 1)
    if packed.shape[0] > 0 and stop - start <= PACKED_RECORDS:
        add_varying_columns(codes, dense, start, stop, offsets, packed, scratch, histogram)
    else:
        count_run(codes, dense, weights, start, stop, offsets, block_columns, block_channels, packed, histogram)
    find_splits_between(histogram, layout, scoring, scratch, phase, after_gain, after_position, out, i)
    clear_between(histogram, offsets, scratch.lowest, scratch.highest)
    return is_pure


@njit(nogil=True, cache=True)
def grow_branch(  # type: ignore[no-untyped-def]
    n_nodes, start, stop, depth, parent, left, right, column, last_bin, missing_left, mask,
    odd_codes, odd_words, odd_dense, odd_weights, odd_rows,
    even_codes, even_words, even_dense, even_weights, even_rows,
    layout, scoring, block_columns, block_channels, packed, histogram, scratch, ends, end_words, out,
):  # fmt: skip
    """Split the nodes of a branch and all that comes of them, in the order of their numbers; return their number.

    The same steps as level by level, without leaving the kernel. Children take the next numbers, so that the nodes
    of a level follow each other here too. There is room for all nodes that `min_records` allows.
    """
    is_pure = np.zeros(start.shape[0], np.bool_)  # what is alike stays alike when it is split
    node = 0
    while node < n_nodes:
        first, last = start[node], stop[node]
        is_odd = depth[node] & 1 == 1
        codes, words, dense, weights = (
            (odd_codes, odd_words, odd_dense, odd_weights)
            if is_odd
            else (even_codes, even_words, even_dense, even_weights)
        )
        if last - first >= 2 * scoring.min_records:
            is_pure[node] = _count_and_find_one(
                codes, words, dense, weights, first, last, layout, scoring, block_columns, block_channels, packed,
                histogram, scratch, ends, end_words, is_pure[node], np.int64(0), np.inf,
                np.int64(-1), out, np.int64(0),
            )  # fmt: skip
            if out.n_found[0] > 0:
                c = out.column[0, 0]
                column[node], last_bin[node], missing_left[node] = c, out.last_bin[0, 0], out.missing_left[0, 0]
                mask[node] = out.mask[0, 0]
                middle = first + out.n_left[0, 0]
                if is_odd:
                    move_records(
                        odd_codes, odd_words, odd_dense, odd_weights, odd_rows, even_words, even_dense, even_weights,
                        even_rows, first, last, c, np.int64(last_bin[node]), layout.missing[c], missing_left[node],
                        mask[node], first, middle,
                    )  # fmt: skip
                else:
                    move_records(
                        even_codes, even_words, even_dense, even_weights, even_rows, odd_words, odd_dense, odd_weights,
                        odd_rows, first, last, c, np.int64(last_bin[node]), layout.missing[c], missing_left[node],
                        mask[node], first, middle,
                    )  # fmt: skip
                left[node], right[node] = n_nodes, n_nodes + 1
                start[n_nodes], stop[n_nodes] = first, middle
                start[n_nodes + 1], stop[n_nodes + 1] = middle, last
                for child in (n_nodes, n_nodes + 1):
                    parent[child], depth[child], is_pure[child] = node, depth[node] + 1, is_pure[node]
                n_nodes += 2
        node += 1
    return n_nodes


@njit(nogil=True, cache=True)
def _is_pure(codes, dense, start, stop, block_columns):  # type: ignore[no-untyped-def]
    """True when all records have the same channels; stops at the first that differs."""
    for i in range(start + 1, stop):
        for c in range(dense.shape[1]):
            if dense[i, c] != dense[start, c]:
                return False
        for column in block_columns:
            if codes[i, column] != codes[start, column]:
                return False
    return True


@njit(nogil=True, cache=True)
def count_run(codes, dense, weights, start, stop, offsets, block_columns, block_channels, packed, out):  # type: ignore[no-untyped-def]
    """Add a run of records to a histogram, by the quick way where `packed` has room for it."""
    if packed.shape[0] > 0:
        add_one_channel(codes, dense, start, stop, offsets, packed, out)
    else:
        add_records(codes, dense, weights, start, stop, offsets, block_columns, block_channels, out)
