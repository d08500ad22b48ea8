# SPDX-License-Identifier: Apache-2.0
"""Grow a partition: split node after node until no admissible split is left.

Without a leaf limit the tree grows level by level, all nodes of a level at once, and once there are enough nodes
every thread grows its share alone. With one it grows best-first, so that the tree with 20 leaves is the beginning of
the tree with 200. Both use the same steps: find candidates (``node_search``), choose one (``conditions``), divide the
records (``node_records``). Work is shared between threads (``workers``); since all sums are exact integers, their
number never changes the result.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates, empty_candidates, splits_of
from sfumato.partition.criterion_checks import Check
from sfumato.partition.group_summaries import collect
from sfumato.partition.guides import Guide
from sfumato.partition.histogram import KeptHistograms, make_shape
from sfumato.partition.node_records import NodeRecords
from sfumato.partition.node_search import After, NodeSearch
from sfumato.partition.records import Layout, Records
from sfumato.partition.scoring import Scoring
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from sfumato.partition.tree import NodeTable, Tree
from sfumato.partition.workers import Workers

_EVEN_ENOUGH = 1.1
"""How much longer than the mean a thread's share of the tree may be."""

_CANDIDATE_BUDGET = 64 << 20
"""Bytes of candidates that wait to be judged at once."""


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
    taxonomy : Taxonomy, optional
        The hierarchies of the columns that have one.

    Attributes
    ----------
    nodes : NodeTable
        The nodes of the tree, once it has grown.
    """

    records: Records
    layout: Layout
    guide: Guide
    min_records: int
    checks: Sequence[Check] = ()
    fall_back: bool = True
    n_threads: int = 1
    taxonomy: Taxonomy = NO_TAXONOMY

    def grow(self, max_leaves: int | None = None) -> tuple[Tree, NDArray[np.int32]]:
        """Grow the tree and return it with the group of every record of the table."""
        with self._growing(max_leaves):
            tree = self.nodes.to_tree(self.layout)
            return tree, self._held.groups(tree)

    def grow_in_order(self) -> Grown:
        """Grow without a leaf limit, and return the records in the order of their groups.

        The given records are used up: they become a buffer, so that nothing is kept in memory twice.
        """
        with self._growing(None, uses_up=True):
            tree = self.nodes.to_tree(self.layout)
            return Grown(tree, self._held.groups(tree), self._held.lined_up(), self._group_sizes(tree))

    def grow_part(self) -> Grown:
        """Do the same over some records of a larger table, with the groups of these records as they are handed out."""
        with self._growing(None, uses_up=True):
            tree = self.nodes.to_tree(self.layout)
            sizes = self._group_sizes(tree)
            group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
            return Grown(tree, group, self._held.lined_up(), sizes)

    def _group_sizes(self, tree: Tree) -> NDArray[np.int64]:
        leaves = self.nodes.leaves
        sizes = np.empty(len(leaves), np.int64)
        sizes[tree.group[leaves]] = self.nodes.sizes(leaves)
        return sizes

    @contextmanager
    def _growing(self, max_leaves: int | None, *, uses_up: bool = False) -> Iterator[None]:
        """Grow; then hold the threads and buffers while the result is read."""
        with self._prepared(self.records.n_records, uses_up=uses_up):
            if max_leaves is None:
                self._grow_by_level(np.zeros(1, np.int64))
            else:
                # Few nodes wait at a time, so the histograms of smaller ones are worth keeping too.
                self._kept.kept_from = min(self._kept.kept_from, self._search.worth_subtracting())
                self._grow_best_first(max_leaves)
            yield

    @contextmanager
    def _prepared(self, n_records: int, *, uses_up: bool = False) -> Iterator[None]:
        """Allocate buffers and threads for growing from one node with all records, and free them in the end."""
        is_weighted = len(self.records.weights) > 0
        scoring = Scoring(
            self.guide.rule, self.guide.channel_weights, is_weighted, self.fall_back, self.min_records, self.taxonomy
        )
        shape = make_shape(self.layout, self.records, self.guide)
        self.nodes = NodeTable(self.layout.n_mask_words)
        self.nodes.add_root(n_records)
        with Workers(self.n_threads) as self._workers:
            self._held = NodeRecords(self.records, self.nodes, self.layout, self._workers, uses_up=uses_up)
            self._search = NodeSearch(self._held, shape, scoring, self._workers)
            large = self._workers.large_node
            self._kept = KeptHistograms(self.nodes, self._search.count, kept_from=large, always_from=large)
            yield
        self._held.clear()
        self._kept.clear()

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
        sizes = self.nodes.sizes(frontier)
        if sizes.max() > self._workers.large_node or len(self._kept) or self.nodes.depth[frontier[0]] == 0:
            return None
        if self.n_threads == 1 or not self._workers.is_worth_sharing(int(sizes.sum())):
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
        branches = [self.nodes.branch(share, self.min_records) for share in shares]
        self._search.grow_branches(branches)
        for share, branch in zip(shares, branches, strict=True):
            self.nodes.graft(share, branch)
        self.nodes.sort_by_level()

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

    def _divide(self, nodes: NDArray[np.int64], candidates: Candidates) -> NDArray[np.int64]:
        """Split the nodes at their only candidates and return the children."""
        if not len(nodes):
            return nodes
        splits = splits_of(candidates)
        self._held.divide(nodes, splits)
        children = self.nodes.add_children(nodes, *splits)
        for node in nodes[self._kept.has(nodes)]:
            self._kept.pass_on(int(node))
        return children

    # -- choosing --------------------------------------------------------------------------------------------

    def _choose(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], Candidates]:
        """Return the nodes that have an admissible split, and the best of each as its only candidate."""
        self._kept.count(nodes)
        m = len(nodes)
        after = (np.zeros(m, np.int64), np.full(m, np.inf), np.full(m, -1, np.int64))
        if self.checks:
            chosen, candidates = self._first_that_passes(nodes, after)
        else:
            candidates = self._search.find(nodes, 1, after, self._kept)
            chosen = candidates.n_found > 0
        for node in nodes[~chosen & self._kept.has(nodes)]:
            self._kept.forget(int(node))
        return nodes[chosen], Candidates(*(part[chosen] for part in candidates))

    def _first_that_passes(self, nodes: NDArray[np.int64], after: After) -> tuple[NDArray[np.bool_], Candidates]:
        """Judge candidates in falling gain until one passes every check; sensitive counts are made for those only."""
        chosen = empty_candidates(len(nodes), 1, self.layout)
        is_chosen = np.zeros(len(nodes), np.bool_)
        open_ = np.arange(len(nodes))
        n_ranks = 4
        while len(open_):
            phase, gain, position = after
            found = self._search.find(nodes[open_], n_ranks, (phase[open_], gain[open_], position[open_]), self._kept)
            for rank in range(n_ranks):
                judged = np.flatnonzero((found.n_found > rank) & ~is_chosen[open_])
                if not len(judged):
                    break
                passed = judged[self._passes(nodes[open_[judged]], found, judged, rank)]
                is_chosen[open_[passed]] = True
                for to, part in zip(chosen, found, strict=True):
                    to[open_[passed]] = part[passed] if part.ndim == 1 else part[passed, rank : rank + 1]
            last = np.maximum(found.n_found - 1, 0)
            phase[open_] = found.phase
            gain[open_] = found.gain[np.arange(len(open_)), last]
            position[open_] = found.position[np.arange(len(open_)), last]
            open_ = open_[(found.n_found > 0) & ~is_chosen[open_]]
            # Masks of wide category columns make candidates large, so many nodes get fewer of them at a time.
            room = _CANDIDATE_BUDGET // (8 * (self.layout.n_mask_words + 6) * max(1, len(open_)))
            n_ranks = max(4, min(4 * n_ranks, 256, room))
        return is_chosen, chosen

    def _passes(
        self, nodes: NDArray[np.int64], found: Candidates, which: NDArray[np.int64], rank: int
    ) -> NDArray[np.bool_]:
        """Return which nodes, in the rows `which` of the candidates, pass every check if split at the one of a rank."""
        splits, source = splits_of(found, which, rank), self._held.of(nodes[0])
        starts, stops = self.nodes.start[nodes], self.nodes.stop[nodes]
        result = np.ones(len(nodes), np.bool_)
        for check in self.checks:
            result &= check.allows(splits, starts, stops, source, self.layout)
        return result


def in_group_order(tree: Tree, group: NDArray[np.int32], records: Records) -> Grown:
    """Return a tree that was grown elsewhere together with the records, put in the order of their groups."""
    groups = collect(group, tree.n_groups)
    return Grown(tree, group, records.taken(groups.order), groups.sizes)
