# SPDX-License-Identifier: Apache-2.0
"""Find the levels of generalization, one per column, that give up least: the optimum over a lattice.

A node of the lattice is one level per column. Its groups are the records whose labels agree at those levels; groups
that are too small are suppressed. The cost of a node is a sum of integers::

    cost(node) = level cost(node)  +  penalty(node)
                 every cell at       what suppressing the small groups adds:
                 its level's loss    a whole record's loss less what its labels cost already

Two facts hold for a node and any coarser one, and nothing else is used to prune:

- the level cost of the coarser node is at least as high, and costs one sum of table entries to know;
- the records of its small groups are in small groups of the finer node too, where their labels cost less, so the
  *penalty* of the finer node is at least as high. A node that must suppress too many records has an infinite penalty,
  and so have all finer nodes. The same holds of any other condition that every part of a failing group fails.

So the penalty of one coarse node, cheap to count, is a lower bound for the whole box of nodes below it.
``anonymize.full_domain`` calls this; its slow twin visits every node instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.lattice_groups import Levels, NodeGroups

MAX_NODES = 1 << 24
"""Largest lattice: a few arrays with an entry per node are held."""

_COST_BITS = 32  # a cell's loss is a whole number of up to this many bits, fewer where the sum could pass 62 bits
_INFEASIBLE = np.iinfo(np.int64).max // 4
_LOOKED_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Conditions:
    """Conditions beyond the size of a group, as functions of the group of each distinct record.

    Attributes
    ----------
    failing : callable
        Takes the group of each distinct record and the number of groups; says which groups fail.
    hold_for : callable
        Takes the same with -1 for what is suppressed; says whether all conditions hold for what is left.
    is_inherited : bool
        Whether every part of a group that fails is a group that fails. Only then is what a coarse node suppresses
        known to be suppressed at finer ones. That joining safe groups gives a safe group is not enough: a group that
        fails may have a large part that passes.
    """

    failing: Callable[[NDArray[np.int32], int], NDArray[np.bool_]]
    hold_for: Callable[[NDArray[np.int32], int], bool]
    is_inherited: bool = False


@dataclass(frozen=True, eq=False)
class Found:
    """The best node.

    Attributes
    ----------
    levels : tuple of int
        Level of each column.
    loss : float
        Mean over the cells of all records of what their labels give up; suppressed records give up 1.
    n_suppressed : int
        Records in groups that are left out.
    group : ndarray of int32
        Group of each distinct record; -1 where suppressed.
    n_groups : int
    n_evaluated : int
        Nodes whose groups were counted.
    """

    levels: tuple[int, ...]
    loss: float
    n_suppressed: int
    group: NDArray[np.int32]
    n_groups: int
    n_evaluated: int


def find_levels(
    codes: NDArray[np.int32],
    weights: NDArray[np.int64],
    columns: Sequence[Levels],
    *,
    min_records: int,
    max_suppressed: int = 0,
    lowest: Sequence[int] | None = None,
    conditions: Conditions | None = None,
) -> Found | None:
    """Return the node with the lowest loss; None when no node meets the conditions.

    Equal losses go to the node that suppresses fewer records, then to the lower levels, the first column first. Losses
    are added up as whole numbers of small steps: those of two nodes may be equal but for a rounding (about 1e-11).

    Parameters
    ----------
    codes : ndarray of int32, shape (distinct records, columns)
        The value of each column, as a row of its `Levels`.
    weights : ndarray of int64
        How many records are alike.
    columns : sequence of Levels
    min_records : int
        Fewest records of a group that is not suppressed.
    max_suppressed : int, default=0
        Most records that may be left out.
    lowest : sequence of int, optional
        Level of each column to start from.
    conditions : Conditions, optional
        Further conditions; used to prune only where parts of failing groups fail.
    """
    return _Search(codes, weights, columns, min_records, max_suppressed, lowest, conditions).run()


class _Search:
    """The state of one search: bounds per node, and the best node so far."""

    def __init__(
        self,
        codes: NDArray[np.int32],
        weights: NDArray[np.int64],
        columns: Sequence[Levels],
        min_records: int,
        max_suppressed: int,
        lowest: Sequence[int] | None,
        conditions: Conditions | None,
    ) -> None:
        self.codes, self.weights, self.columns = np.ascontiguousarray(codes, np.int32), weights, columns
        self.min_records, self.max_suppressed, self.conditions = min_records, max_suppressed, conditions
        self.n_columns = len(columns)
        self.n_records = int(weights.sum())
        self.lowest = np.zeros(self.n_columns, np.int64) if lowest is None else np.asarray(lowest, np.int64)
        self.shape = tuple(c.n_levels - int(low) for c, low in zip(columns, self.lowest, strict=True))
        bits = min(_COST_BITS, 62 - int(self.n_records * self.n_columns).bit_length())
        self.one = 1 << bits
        # Rounded once, here: everything later is exact, whatever the order of the records and of the nodes.
        self.costs = [np.rint(c.losses * self.one).astype(np.int64) for c in columns]
        self.level_cost = self._level_costs()
        self.penalty = np.zeros(self.shape, np.int64)  # lower bounds, raised box by box
        self.is_counted = np.zeros(self.shape, np.bool_)
        self.best: tuple[int, int, tuple[int, ...]] | None = None
        self.n_evaluated = 0
        self.groups = NodeGroups(self.codes, weights, columns)

    def run(self) -> Found | None:
        self._descend()
        order = np.argsort(self.level_cost, axis=None, kind="stable")
        for start in range(0, len(order), _LOOKED_AT_ONCE):
            waiting = order[start : start + _LOOKED_AT_ONCE]
            if self.best is not None and self.level_cost.flat[waiting[0]] > self.best[0]:
                break  # the rest costs more before anything is suppressed
            while len(waiting := self._still_open(waiting)):
                self._prune_from(tuple(int(level) for level in np.unravel_index(waiting[0], self.shape)))
                waiting = waiting[1:]
        if self.best is None:
            return None
        cost, n_suppressed, levels = self.best
        group, n_groups = self._groups_of(np.array(levels))
        loss = cost / (self.n_records * self.n_columns * self.one)
        return Found(levels, loss, n_suppressed, group, n_groups, self.n_evaluated)

    # -- order of the search ---------------------------------------------------------------------------------

    def _still_open(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of the nodes that are neither counted nor ruled out."""
        penalty = self.penalty.ravel()[nodes]
        is_open = ~self.is_counted.ravel()[nodes] & (penalty < _INFEASIBLE)
        if self.best is not None:
            is_open &= self.level_cost.ravel()[nodes] + penalty <= self.best[0]
        return nodes[is_open]

    def _descend(self) -> None:
        """Walk from the top down the cheapest neighbors, for a good node to compare all others with."""
        node = tuple(n - 1 for n in self.shape)
        cost = self._evaluate(node)
        while True:
            below = [(*node[:j], node[j] - 1, *node[j + 1 :]) for j in range(self.n_columns) if node[j] > 0]
            costs = [self._evaluate(n) for n in below]
            if not below or min(costs) >= cost:
                return
            cost = min(costs)
            node = below[costs.index(cost)]

    def _prune_from(self, node: tuple[int, ...]) -> None:
        """Find, on a way from the node to the top, the coarsest node whose penalty rules out the first, and count it.

        Penalties fall on the way up, so a binary search finds it; where not even the node's own penalty rules it
        out, it is the best so far or tied with it.
        """
        way = self._way_up(node)
        first, stop = 0, len(way)  # the coarsest one that prunes lies before `stop`, if there is one
        while first < stop:
            middle = (first + stop) // 2
            self._evaluate(way[middle])
            if self._is_pruned(node):
                # Everything at or below `middle` prunes at least as well: look further up.
                if self._rules_out(way[middle], node):
                    first = middle + 1
                else:
                    return
            else:
                stop = middle
        if not self._is_pruned(node):
            self._evaluate(node)

    def _way_up(self, node: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return nodes from this one to the top, one level of one column at a time, the cheapest step first."""
        at = list(node)
        way = [tuple(at)]
        while True:
            steps = [
                (int(self.level_cost_of[j][at[j] + 1] - self.level_cost_of[j][at[j]]), j)
                for j in range(self.n_columns)
                if at[j] + 1 < self.shape[j]
            ]
            if not steps:
                return way
            at[min(steps)[1]] += 1
            way.append(tuple(at))

    def _is_pruned(self, node: tuple[int, ...]) -> bool:
        return self._rules_out(node, node)

    def _rules_out(self, coarser: tuple[int, ...], node: tuple[int, ...]) -> bool:
        penalty = int(self.penalty[coarser])
        if penalty >= _INFEASIBLE or self.best is None:
            return penalty >= _INFEASIBLE
        return int(self.level_cost[node]) + penalty > self.best[0]

    # -- one node --------------------------------------------------------------------------------------------

    def _level_costs(self) -> NDArray[np.int64]:
        """Return the cost of every node without suppression: a sum of one entry per column."""
        self.level_cost_of: list[NDArray[np.int64]] = []
        total = np.zeros(self.shape, np.int64)
        for j, costs in enumerate(self.costs):
            n_alike = np.bincount(self.codes[:, j], weights=self.weights, minlength=len(costs)).astype(np.int64)
            own = (n_alike[:, None] * costs[:, int(self.lowest[j]) :]).sum(axis=0)
            self.level_cost_of.append(own)
            total += own.reshape([-1 if i == j else 1 for i in range(self.n_columns)])
        return total

    def _evaluate(self, node: tuple[int, ...]) -> int:
        """Count the groups of a node, raise the bounds of all finer nodes, and return its cost."""
        if self.is_counted[node]:
            return int(min(self.level_cost[node] + self.penalty[node], _INFEASIBLE))
        self.is_counted[node] = True
        self.n_evaluated += 1
        levels = self.lowest + np.array(node, np.int64)
        _, first, sizes = self.groups.counted(levels)
        small = sizes < self.min_records
        n_suppressed, penalty = self._suppression(levels, first[small], sizes[small])
        self._raise_bounds(node, penalty)
        cost = int(self.level_cost[node]) + penalty
        if penalty >= _INFEASIBLE:
            return _INFEASIBLE
        if self.conditions is not None and (self.conditions.is_inherited or self._may_be_best(cost)):
            cost, n_suppressed = self._under_conditions(node, levels)
        if cost < _INFEASIBLE and self._may_be_best(cost):
            candidate = (cost, n_suppressed, tuple(int(level) for level in levels))
            self.best = candidate if self.best is None else min(self.best, candidate)
        return cost

    def _may_be_best(self, cost: int) -> bool:
        return self.best is None or cost <= self.best[0]

    def _raise_bounds(self, node: tuple[int, ...], penalty: int) -> None:
        below = tuple(slice(0, level + 1) for level in node)
        np.maximum(self.penalty[below], penalty, out=self.penalty[below])

    def _under_conditions(self, node: tuple[int, ...], levels: NDArray[np.int64]) -> tuple[int, int]:
        """Return cost and suppressed records of a node when all conditions count."""
        assert self.conditions is not None
        group, first, sizes = self.groups.of_records(levels)
        failing = self._failing(group, sizes)
        n_suppressed, penalty = self._suppression(levels, first[failing], sizes[failing])
        if self.conditions.is_inherited:
            self._raise_bounds(node, penalty)
        cost = min(int(self.level_cost[node]) + penalty, _INFEASIBLE)
        if cost < _INFEASIBLE and self._may_be_best(cost) and failing.any():
            left, n_groups = _without(group, failing)
            if not n_groups or not self.conditions.hold_for(left, n_groups):
                cost = _INFEASIBLE
        return cost, n_suppressed

    def _failing(self, group: NDArray[np.int32], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        failing = sizes < self.min_records
        if self.conditions is not None:
            failing |= self.conditions.failing(group, len(sizes))
        return failing

    def _suppression(
        self, levels: NDArray[np.int64], first: NDArray[np.int32], sizes: NDArray[np.int64]
    ) -> tuple[int, int]:
        """Return how many records the groups have, and what leaving them out adds to the cost."""
        n_suppressed = int(sizes.sum())
        if n_suppressed > self.max_suppressed:
            return n_suppressed, _INFEASIBLE
        own = np.zeros(len(first), np.int64)
        for j, costs in enumerate(self.costs):
            own += costs[self.codes[first, j], levels[j]]
        return n_suppressed, int(((self.n_columns * self.one - own) * sizes).sum())

    def _groups_of(self, levels: NDArray[np.int64]) -> tuple[NDArray[np.int32], int]:
        group, _, sizes = self.groups.of_records(levels)
        return _without(group, self._failing(group, sizes))


def _without(group: NDArray[np.int32], failing: NDArray[np.bool_]) -> tuple[NDArray[np.int32], int]:
    """Return the group of each record once failing groups are left out (-1), and how many groups are left."""
    number = np.where(failing, -1, np.cumsum(~failing) - 1).astype(np.int32)
    return number[group], int((~failing).sum())
