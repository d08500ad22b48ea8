# SPDX-License-Identifier: Apache-2.0
"""Grow a partition: split node after node until no admissible split is left.

Without a leaf limit the tree grows level by level, all nodes of a level at once, and once there are enough nodes
every thread grows its share alone. With one it grows best-first, so
that the tree with 20 leaves is the beginning of the tree with 200. Both use the same steps: search (histograms and
candidates), choose (criteria), divide (move the records). Work is shared between threads; since all sums are exact
integers, their number never changes the result.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates, empty_candidates
from sfumato.partition.dividing import (
    count_distinct_by_side,
    count_left,
    count_values_by_side,
    move_nodes,
    move_records,
)
from sfumato.partition.grouping import collect
from sfumato.partition.growing_kernels import copy_runs, count_and_find, count_run, grow_branch, write_groups
from sfumato.partition.guides import Guide
from sfumato.partition.histogram import PACKED_VALUE_BITS, HistogramStore, Path, subtract
from sfumato.partition.records import Layout, Records, as_words
from sfumato.partition.scoring import Scoring, make_scratch
from sfumato.partition.splitting import find_splits
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from sfumato.partition.tree import NodeTable, Tree

_LARGE_NODE = 1 << 16
"""Nodes with more records are counted in chunks by all threads, and their histograms kept for subtraction."""

_SHARED_FROM = 8_000
"""Records in small nodes from which handing them to several threads pays."""

_EVEN_ENOUGH = 1.1
"""How much longer than the mean a thread's share of the tree may be."""

_SCAN_COST = 400
"""What finding a node's splits costs, in records counted."""

_FEWEST_KEPT = 1_024
"""Growing best-first, few nodes wait: histograms of nodes with more records than this are kept for subtraction too."""

_HISTOGRAM_BUDGET = 256 << 20
"""Bytes of histograms kept at once; beyond it a child is counted from its records."""

_COUNT_BUDGET = 64 << 20
"""Bytes of sensitive counts made at once."""


@dataclass(frozen=True, eq=False)
class Check:
    """A condition on both sides of a split beside their number of records.

    Attributes
    ----------
    value_of_row : ndarray of int32
        Code of the counted column for every record of the table.
    n_values : int
    distinct : bool
        Count how many different values occur (persons) instead of how often each does.
    passes : callable
        Takes counts of shape (m, n_values), or (m, 1) when distinct, and says which of the m groups are safe.
    """

    value_of_row: NDArray[np.int32]
    n_values: int
    distinct: bool
    passes: Callable[[NDArray[np.int64]], NDArray[np.bool_]]

    def is_safe(self, rows: NDArray[np.int64]) -> bool:
        """Say whether some records of the table are a safe group."""
        counts = np.bincount(self.value_of_row[rows], minlength=self.n_values)
        seen = np.array([np.count_nonzero(counts)]) if self.distinct else counts
        return bool(self.passes(seen[None, :].astype(np.int64))[0])


class Grown(NamedTuple):
    """A tree, and the records it was grown on, group after group; those of a group in the order they came in."""

    tree: Tree
    group: NDArray[np.int32]  # of every record of the table
    records: Records  # their `rows` tell where each stands in the table
    sizes: NDArray[np.int64]  # of the groups


@dataclass(eq=False)
class Grower:
    """Grows one tree over records.

    Parameters
    ----------
    records : Records
    layout : Layout
    guide : Guide
    min_records : int
        Fewest records of a group; checked inside the scan.
    checks : sequence of Check
    fall_back : bool
        At no gain, let information loss decide (anonymizing) instead of stopping (minimizing).
    n_threads : int
    store : HistogramStore, optional
        Where growers over the same records, columns and channels find what others have counted; only their channel
        weights differ.
    taxonomy : Taxonomy, optional
        The hierarchies of the columns that have one.
    """

    records: Records
    layout: Layout
    guide: Guide
    min_records: int
    checks: Sequence[Check] = ()
    fall_back: bool = True
    n_threads: int = 1
    store: HistogramStore | None = None
    taxonomy: Taxonomy = NO_TAXONOMY
    _buffers: dict[int, Records] = field(default_factory=dict)
    _histograms: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    _histogram_bytes: int = 0

    def grow(self, max_leaves: int | None = None) -> tuple[Tree, NDArray[np.int32]]:
        """Grow the tree and return it with the group of every record of the table."""
        with self._growing(max_leaves):
            tree = self.nodes.to_tree(self.layout)
            groups = self._assign_groups(tree)
        return tree, groups

    def grow_in_order(self) -> Grown:
        """Grow without a leaf limit, and hand out the records as the growth has left them: group after group."""
        with self._growing(None):
            tree = self.nodes.to_tree(self.layout)
            groups = self._assign_groups(tree)
            records = self._line_up()
            leaves = np.flatnonzero(tree.group >= 0)
            sizes = np.empty(len(leaves), np.int64)
            sizes[tree.group[leaves]] = self.nodes.stop[leaves] - self.nodes.start[leaves]
        return Grown(tree, groups, records, sizes)

    @contextmanager
    def _growing(self, max_leaves: int | None) -> Iterator[None]:
        """Grow; then hold the threads and buffers while the result is read."""
        self._prepare()
        self._kept_from = _LARGE_NODE if max_leaves is None else min(_LARGE_NODE, self._worth_keeping())
        with ThreadPoolExecutor(max(1, self.n_threads - 1)) as self._pool:
            if max_leaves is None:
                self._grow_by_level(np.zeros(1, np.int64))
            else:
                self._grow_best_first(max_leaves)
            yield
        self._buffers.clear()
        self._histograms.clear()
        self._histogram_bytes = 0

    def _prepare(self) -> None:
        layout, guide = self.layout, self.guide
        is_weighted = len(self.records.weights) > 0
        n_channels = len(guide.channel_weights)
        self.n_entries = 1 + n_channels + int(is_weighted)
        self.scoring = Scoring(
            guide.rule, guide.channel_weights, is_weighted, self.fall_back, self.min_records, self.taxonomy
        )
        n_dense = self.records.dense.shape[1]
        first_channels = 1 + n_dense + np.cumsum([0, *guide.cardinalities])[:-1]
        self.block_channels = first_channels.astype(np.int64)
        self.block_columns = layout.n_columns + np.arange(len(guide.cardinalities), dtype=np.int64)
        self.nodes = NodeTable(layout.n_mask_words)
        self.nodes.add_root(self.records.n_records)
        self.scratch_histograms = [np.zeros(self._histogram_shape, np.int64) for _ in range(self.n_threads)]
        # Room for the quick way of counting, where it applies: one channel of few bits, no weights. The values
        # themselves are asked: one too large or negative would spill into the counts, and k with them.
        is_packed = n_channels == n_dense == 1 and not is_weighted and _fits(self.records.dense, PACKED_VALUE_BITS)
        n_packed = self._histogram_shape[0] if is_packed else 0
        self.packed = [np.zeros(n_packed, np.int64) for _ in range(self.n_threads)]
        self.scratches = [make_scratch(layout, self.n_entries, n_channels) for _ in range(self.n_threads)]
        codes = self.records.codes
        self.ends = [np.zeros((2, codes.shape[1]), codes.dtype) for _ in range(self.n_threads)]

    # -- growing ---------------------------------------------------------------------------------------------

    def _grow_by_level(self, frontier: NDArray[np.int64]) -> None:
        while len(frontier):
            shares = None if self.checks else self._deal(frontier)
            if shares is not None:
                self._grow_apart(shares)
                return
            frontier = self._divide(*self._choose(frontier))

    def _deal(self, frontier: NDArray[np.int64]) -> list[NDArray[np.int64]] | None:
        """Deal the frontier to threads that need nothing of each other any more; None where that would be uneven."""
        sizes = self.nodes.stop[frontier] - self.nodes.start[frontier]
        if sizes.max() > _LARGE_NODE or self._histograms or self.nodes.depth[frontier[0]] == 0:
            return None
        if self.n_threads == 1 or sizes.sum() < _SHARED_FROM:
            return [frontier]
        work = sizes * np.log2(1 + sizes / self.min_records)  # records times levels to come
        loads = np.zeros(self.n_threads)
        owner = np.zeros(len(frontier), np.int64)
        for i in np.argsort(-work, kind="stable"):  # the longest first, each to the thread with the least so far
            owner[i] = loads.argmin()
            loads[owner[i]] += work[i]
        if loads.max() > _EVEN_ENOUGH * loads.mean():
            return None
        return [frontier[owner == thread] for thread in range(self.n_threads)]

    def _grow_apart(self, shares: list[NDArray[np.int64]]) -> None:
        """Let every thread grow its share of the frontier to the end: no waiting for each other at every level."""
        for depth in (1, 2):
            self._buffer(depth)  # both exist before several threads ask for them
        branches = [self.nodes.branch(share, self.min_records) for share in shares]
        self._run([self._branch_task(branch) for branch in branches])
        for share, branch in zip(shares, branches, strict=True):
            self.nodes.graft(share, branch)
        self.nodes.sort_by_level()

    def _branch_task(self, branch: NodeTable) -> Callable[[int], None]:
        odd, even = self._buffer(1), self._buffer(2)

        def task(thread: int) -> None:
            branch.n_nodes = grow_branch(
                branch.n_nodes, branch.start, branch.stop, branch.depth, branch.parent, branch.left, branch.right,
                branch.column, branch.last_bin, branch.missing_left, branch.mask,
                odd.codes, as_words(odd.codes), odd.dense, odd.weights, odd.rows,
                even.codes, as_words(even.codes), even.dense, even.weights, even.rows,
                self.layout, self.scoring, self.block_columns, self.block_channels, self.packed[thread],
                self.scratch_histograms[thread], self.scratches[thread], self.ends[thread],
                as_words(self.ends[thread]), empty_candidates(1, 1, self.layout),
            )  # fmt: skip

        return task

    def _grow_best_first(self, max_leaves: int) -> None:
        waiting: list[tuple[int, float, int, Candidates]] = []
        frontier = np.zeros(1, np.int64)
        n_leaves = 1
        while True:
            chosen, candidates = self._choose(frontier)
            for i, node in enumerate(chosen):
                own = Candidates(*(part[i : i + 1] for part in candidates))
                # Node numbers are unique, so the arrays behind them are never compared.
                heapq.heappush(waiting, (int(own.phase[0]), -float(own.gain[0, 0]), int(node), own))
            if not waiting or n_leaves >= max_leaves:
                return
            _, _, node, own = heapq.heappop(waiting)
            frontier = self._divide(np.array([node]), own)
            n_leaves += 1

    # -- search: histograms and candidates -------------------------------------------------------------------

    def _buffer(self, depth: int) -> Records:
        """Records of the nodes at a depth. The given records stay as they are; two buffers take turns."""
        if depth == 0:
            return self.records
        if depth % 2 not in self._buffers:
            self._buffers[depth % 2] = self.records.empty_like()
        return self._buffers[depth % 2]

    def _search(
        self,
        nodes: NDArray[np.int64],
        n_ranks: int,
        after: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]],
    ) -> Candidates:
        """Find up to `n_ranks` candidates per node that come after the given ones."""
        out = empty_candidates(len(nodes), n_ranks, self.layout)
        starts, stops = self.nodes.start[nodes], self.nodes.stop[nodes]
        source = self._buffer(int(self.nodes.depth[nodes[0]]))
        kept = self._is_kept(nodes)
        counted = np.flatnonzero(~kept & (stops - starts >= 2 * self.min_records))
        tasks: list[Callable[[int], None]] = []
        for i in np.flatnonzero(kept):
            tasks.append(self._search_kept_task(self._histograms[int(nodes[i])], after, out, int(i)))
        for share in _even_shares(_SCAN_COST + (stops - starts)[counted], self._n_shares(counted, stops - starts)):
            tasks.append(self._search_counted_task(source, counted[share], starts, stops, after, out))
        self._run(tasks)
        return out

    def _search_kept_task(
        self, histogram: NDArray[np.int64], after: Any, out: Candidates, i: int
    ) -> Callable[[int], None]:
        phase, gain, position = after

        def task(thread: int) -> None:
            find_splits(
                histogram,
                self.layout,
                self.scoring,
                self.scratches[thread],
                phase[i],
                gain[i],
                position[i],
                out,
                i,
            )

        return task

    def _search_counted_task(
        self, source: Records, which: NDArray[np.int64], starts: Any, stops: Any, after: Any, out: Candidates
    ) -> Callable[[int], None]:
        def task(thread: int) -> None:
            count_and_find(
                source.codes, as_words(source.codes), source.dense, source.weights, which, starts, stops, self.layout,
                self.scoring, self.block_columns, self.block_channels, self.packed[thread],
                self.scratch_histograms[thread], self.scratches[thread], self.ends[thread],
                as_words(self.ends[thread]), *after, out,
            )  # fmt: skip

        return task

    @property
    def _histogram_shape(self) -> tuple[int, int]:
        return int(self.layout.offsets[-1]), self.n_entries

    def _run(self, tasks: list[Callable[[int], None]]) -> None:
        """Run tasks on the threads; each task gets the number of the thread it runs on, for its scratch."""
        pending = iter(tasks)  # next() on a list iterator is atomic

        def work(thread: int) -> None:
            for task in pending:
                task(thread)

        # The calling thread works too, so that one thread means no others.
        others = [self._pool.submit(work, thread) for thread in range(1, min(self.n_threads, len(tasks)))]
        work(0)
        for other in others:
            other.result()

    def _n_shares(self, nodes: NDArray[np.int64], sizes: NDArray[np.int64]) -> int:
        """Tasks to make of many small nodes: a few per thread where there is enough to do, else one."""
        n_records = int(sizes[nodes].sum())
        if self.n_threads == 1 or n_records < _SHARED_FROM:
            return 1
        return 4 * self.n_threads

    def _pass_on_histogram(self, node: int) -> None:
        """Turn a kept histogram into those of the node's children: count the smaller, subtract for the larger."""
        left, right = int(self.nodes.left[node]), int(self.nodes.right[node])
        smaller, larger = (left, right) if self._size(left) <= self._size(right) else (right, left)
        if self._size(larger) <= self._kept_from or self._histogram_bytes > _HISTOGRAM_BUDGET:
            self._forget(node)
            return
        whole = self._histograms.pop(node)
        self._keep(smaller, self._count(smaller))
        if self.store is None:
            subtract(whole, self._histograms[smaller], whole)
            self._histograms[larger] = whole
            return
        known = self.store.get(self._path(larger))
        if known is None:
            known = np.empty_like(whole)
            subtract(whole, self._histograms[smaller], known)
            self.store.put(self._path(larger), known)
        self._histograms[larger] = known

    def _path(self, node: int) -> Path:
        """Return the splits that lead to a node, each as bytes."""
        steps = []
        nodes = self.nodes
        while nodes.parent[node] >= 0:
            parent = int(nodes.parent[node])
            rule = (
                nodes.column[parent],
                nodes.last_bin[parent],
                nodes.missing_left[parent],
                nodes.left[parent] == node,
            )
            steps.append(np.array(rule, np.int32).tobytes() + nodes.mask[parent].tobytes())
            node = parent
        return tuple(steps)

    def _worth_keeping(self) -> int:
        """Records from which subtracting two histograms is quicker than counting the larger child."""
        n_entries = self._histogram_shape[0] * self._histogram_shape[1]
        per_record = self.layout.n_columns * (1 + self.records.dense.shape[1] + len(self.guide.cardinalities))
        return max(_FEWEST_KEPT, int(4 * n_entries // per_record))

    def _is_kept(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which nodes have a histogram at hand."""
        if len(nodes) <= 2:  # as when growing best-first, where the overhead of arrays adds up
            return np.array([int(node) in self._histograms for node in nodes], np.bool_)
        return np.isin(nodes, list(self._histograms)) if self._histograms else np.zeros(len(nodes), np.bool_)

    def _size(self, node: int) -> int:
        return int(self.nodes.stop[node] - self.nodes.start[node])

    def _keep(self, node: int, histogram: NDArray[np.int64]) -> None:
        self._histograms[node] = histogram
        self._histogram_bytes += histogram.nbytes

    def _forget(self, node: int) -> None:
        histogram = self._histograms.pop(node, None)
        if histogram is not None:
            self._histogram_bytes -= histogram.nbytes

    def _count(self, node: int) -> NDArray[np.int64]:
        if self.store is None:
            return self._counted(node)
        path = self._path(node)
        known = self.store.get(path)
        if known is None:
            known = self._counted(node)
            self.store.put(path, known)
        return known

    def _counted(self, node: int) -> NDArray[np.int64]:
        source = self._buffer(int(self.nodes.depth[node]))
        edges = np.linspace(self.nodes.start[node], self.nodes.stop[node], self.n_threads + 1).astype(np.int64)
        parts = [np.zeros(self._histogram_shape, np.int64) for _ in range(self.n_threads)]

        def task(chunk: int) -> Callable[[int], None]:
            return lambda thread: count_run(
                source.codes, source.dense, source.weights, edges[chunk], edges[chunk + 1],
                self.layout.offsets, self.block_columns, self.block_channels, self.packed[thread], parts[chunk],
            )  # fmt: skip

        self._run([task(chunk) for chunk in range(self.n_threads)])
        for part in parts[1:]:
            parts[0] += part
        return parts[0]

    # -- choose: criteria ------------------------------------------------------------------------------------

    def _choose(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], Candidates]:
        """Return the nodes that have an admissible split, and the best of each as its only candidate."""
        for node in nodes[self.nodes.stop[nodes] - self.nodes.start[nodes] > self._kept_from]:
            has_room = self._size(int(node)) > _LARGE_NODE or self._histogram_bytes <= _HISTOGRAM_BUDGET
            if int(node) not in self._histograms and has_room:
                self._keep(int(node), self._count(int(node)))
        m = len(nodes)
        after = (np.zeros(m, np.int64), np.full(m, np.inf), np.full(m, -1, np.int64))
        if self.checks:
            chosen, candidates = self._first_that_passes(nodes, after)
        else:
            candidates = self._search(nodes, 1, after)
            chosen = candidates.n_found > 0
        for node in nodes[~chosen & self._is_kept(nodes)]:
            self._forget(int(node))
        return nodes[chosen], Candidates(*(part[chosen] for part in candidates))

    def _first_that_passes(self, nodes: NDArray[np.int64], after: Any) -> tuple[NDArray[np.bool_], Candidates]:
        """Judge candidates in falling gain until one passes every check; sensitive counts are made for those only."""
        chosen = empty_candidates(len(nodes), 1, self.layout)
        is_chosen = np.zeros(len(nodes), np.bool_)
        open_ = np.arange(len(nodes))
        n_ranks = 4
        while len(open_):
            found = self._search(nodes[open_], n_ranks, tuple(part[open_] for part in after))
            for rank in range(n_ranks):
                judged = np.flatnonzero((found.n_found > rank) & ~is_chosen[open_])
                if not len(judged):
                    break
                passed = judged[self._passes(nodes[open_[judged]], found, judged, rank)]
                is_chosen[open_[passed]] = True
                for to, part in zip(chosen, found, strict=True):
                    to[open_[passed]] = part[passed] if part.ndim == 1 else part[passed, rank : rank + 1]
            last = np.maximum(found.n_found - 1, 0)
            after[0][open_] = found.phase
            after[1][open_] = found.gain[np.arange(len(open_)), last]
            after[2][open_] = found.position[np.arange(len(open_)), last]
            open_ = open_[(found.n_found > 0) & ~is_chosen[open_]]
            # Masks of wide category columns make candidates large, so many nodes get fewer of them at a time.
            room = _COUNT_BUDGET // (8 * (self.layout.n_mask_words + 6) * max(1, len(open_)))
            n_ranks = max(4, min(4 * n_ranks, 256, room))
        return is_chosen, chosen

    def _passes(
        self, nodes: NDArray[np.int64], found: Candidates, which: NDArray[np.int64], rank: int
    ) -> NDArray[np.bool_]:
        source = self._buffer(int(self.nodes.depth[nodes[0]]))
        result = np.ones(len(nodes), np.bool_)
        for check in self.checks:
            width = 1 if check.distinct else check.n_values
            block = max(1, _COUNT_BUDGET // (16 * width))
            for at in range(0, len(nodes), block):
                part = slice(at, at + block)
                split = (
                    self.nodes.start[nodes[part]], self.nodes.stop[nodes[part]], found.column[which[part], rank],
                    found.last_bin[which[part], rank], self.layout.missing,
                    found.missing_left[which[part], rank], found.mask[which[part], rank], check.value_of_row,
                )  # fmt: skip
                counts = np.zeros((len(nodes[part]), 2, width), np.int64)
                if check.distinct:
                    last_seen = np.full(check.n_values, -1, np.int64)
                    count_distinct_by_side(source.codes, source.rows, *split, last_seen, counts)
                else:
                    count_values_by_side(source.codes, source.rows, *split, counts)
                safe = check.passes(counts.reshape(-1, width)).reshape(-1, 2)
                result[part] &= safe.all(axis=1)
        return result

    # -- divide ----------------------------------------------------------------------------------------------

    def _divide(self, nodes: NDArray[np.int64], candidates: Candidates) -> NDArray[np.int64]:
        """Split the nodes at their only candidates and return the children."""
        if not len(nodes):
            return nodes
        depth = int(self.nodes.depth[nodes[0]])
        source, target = self._buffer(depth), self._buffer(depth + 1)
        split = (
            candidates.column[:, 0], candidates.last_bin[:, 0], candidates.missing_left[:, 0],
            candidates.mask[:, 0], candidates.n_left[:, 0],
        )  # fmt: skip
        starts, stops = self.nodes.start[nodes], self.nodes.stop[nodes]
        sizes = stops - starts
        moved = (
            source.codes, as_words(source.codes), source.dense, source.weights, source.rows,
            as_words(target.codes), target.dense, target.weights, target.rows,
        )  # fmt: skip
        small = np.flatnonzero(sizes <= _LARGE_NODE)
        tasks: list[Callable[[int], None]] = []
        for share in _even_shares(sizes[small], self._n_shares(small, sizes)):
            tasks.append(self._move_task(moved, starts, stops, split, small[share]))
        for i in np.flatnonzero(sizes > _LARGE_NODE):
            tasks.extend(self._move_chunk_tasks(moved, int(starts[i]), int(stops[i]), split, int(i)))
        self._run(tasks)
        children = self.nodes.add_children(nodes, *split)
        for node in nodes[self._is_kept(nodes)]:
            self._pass_on_histogram(int(node))
        return children

    def _move_task(
        self, moved: Any, starts: Any, stops: Any, split: Any, which: NDArray[np.int64]
    ) -> Callable[[int], None]:
        column, last_bin, missing_left, mask, n_left = (part[which] for part in split)

        def task(_: int) -> None:
            move_nodes(
                *moved,
                starts[which],
                stops[which],
                column,
                last_bin,
                self.layout.missing,
                missing_left,
                mask,
                n_left,
            )

        return task

    def _move_chunk_tasks(self, moved: Any, start: int, stop: int, split: Any, i: int) -> list[Callable[[int], None]]:
        """Divide one large node in chunks: count each chunk's left side first, then every chunk has its place."""
        column, last_bin, missing_left, mask, n_left = (part[i] for part in split)
        rule = (column, last_bin, self.layout.missing[column], missing_left, mask)
        edges = np.linspace(start, stop, self.n_threads + 1).astype(np.int64)
        lefts = np.zeros(self.n_threads, np.int64)

        def count(chunk: int) -> Callable[[int], None]:
            def task(_: int) -> None:
                lefts[chunk] = count_left(moved[0], edges[chunk], edges[chunk + 1], *rule)

            return task

        self._run([count(chunk) for chunk in range(self.n_threads)])
        before = np.cumsum(lefts) - lefts

        def move(chunk: int) -> Callable[[int], None]:
            left_at = start + before[chunk]
            right_at = start + n_left + (edges[chunk] - start - before[chunk])
            return lambda _: move_records(*moved, edges[chunk], edges[chunk + 1], *rule, left_at, right_at)

        return [move(chunk) for chunk in range(self.n_threads)]

    def _assign_groups(self, tree: Tree) -> NDArray[np.int32]:
        """Write each record's group: the number of its leaf, counted from left to right."""
        groups = np.empty(self.records.n_records, np.int32)

        def write(rows: NDArray[np.uint32], own: NDArray[np.int64]) -> Callable[[int], None]:
            starts, stops, numbers = self.nodes.start[own], self.nodes.stop[own], tree.group[own]
            return lambda _: write_groups(rows, starts, stops, numbers, groups)

        leaves = self._leaves()
        is_odd = self.nodes.depth[leaves] % 2 == 1
        tasks = []
        for own in (leaves[is_odd], leaves[~is_odd]):
            if len(own):  # all of one buffer: the root is a leaf only where there is no other
                rows = self._buffer(int(self.nodes.depth[own[0]])).rows
                tasks += [write(rows, own[share]) for share in self._leaf_shares(own)]
        self._run(tasks)
        return groups

    def _line_up(self) -> Records:
        """Return all records in the order of their leaves: both buffers have some, at their final places."""
        if self.nodes.n_nodes == 1:
            return self.records
        leaves = self._leaves()
        odd, even = self._buffer(1), self._buffer(2)
        moved = leaves[self.nodes.depth[leaves] % 2 == 1]

        def copy(own: NDArray[np.int64]) -> Callable[[int], None]:
            starts, stops = self.nodes.start[own], self.nodes.stop[own]
            return lambda _: copy_runs(
                as_words(odd.codes), odd.dense, odd.weights, odd.rows,
                as_words(even.codes), even.dense, even.weights, even.rows, starts, stops,
            )  # fmt: skip

        self._run([copy(moved[share]) for share in self._leaf_shares(moved)])
        return even

    def _leaves(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.nodes.left[: self.nodes.n_nodes] < 0)

    def _leaf_shares(self, leaves: NDArray[np.int64]) -> list[slice]:
        sizes = self.nodes.stop[leaves] - self.nodes.start[leaves]
        return _even_shares(sizes, self._n_shares(np.arange(len(leaves)), sizes))


def in_group_order(tree: Tree, group: NDArray[np.int32], records: Records) -> Grown:
    """Return a tree that was grown elsewhere together with the records, put in the order of their groups."""
    groups = collect(group, tree.n_groups)
    return Grown(tree, group, records.taken(groups.order), groups.sizes)


def _fits(values: NDArray[np.int64], n_bits: int) -> bool:
    """True when no value is negative or needs more bits."""
    return int(values.min(initial=0)) >= 0 and int(values.max(initial=0)) < 1 << n_bits


def _even_shares(sizes: NDArray[np.int64], n_shares: int) -> list[slice]:
    """Cut a list of nodes into runs with about the same number of records."""
    if not len(sizes):
        return []
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_shares) / n_shares)
    edges = np.unique(np.concatenate([[0], cuts, [len(sizes)]]))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]
