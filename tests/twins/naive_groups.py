# SPDX-License-Identifier: Apache-2.0
"""Slow twins of what happens to groups once a tree is grown: describing them, choosing members, joining them.

Beside ``naive``, which has the twins of binning, counting, splitting and growing; only tests call either.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.group_summaries import Groups, Summary
from sfumato.partition.records import Layout
from sfumato.partition.tree import Tree
from twins.naive_splitting import width


def collect(group: Sequence[int], n_groups: int) -> list[list[int]]:
    """Return the records of each group in their order; records with a negative group belong to none."""
    return [[row for row, own in enumerate(group) if own == g] for g in range(n_groups)]


def members_of(groups: Groups) -> list[list[int]]:
    """Return the records of each group as lists."""
    return collect(groups.group.tolist(), groups.n_groups)


def summarize(codes: NDArray[Any], groups: Groups, layout: Layout) -> Summary:
    """Describe every group by sorting and counting the codes of its records."""
    shape = (groups.n_groups, layout.n_columns)
    middle, lowest, highest, n_present = (np.full(shape, -1, np.int32) for _ in range(4))
    n_missing = np.zeros(shape, np.int64)
    for g, members in enumerate(members_of(groups)):
        for column in range(layout.n_columns):
            missing = int(layout.missing[column])
            own = sorted(int(codes[row, column]) for row in members)
            values = [code for code in own if code != missing]
            n_missing[g, column] = len(own) - len(values)
            n_present[g, column] = len(set(own))
            if values:
                lowest[g, column], highest[g, column] = values[0], values[-1]
            if layout.is_category[column]:
                counts = Counter(own)
                middle[g, column] = min(own, key=lambda code: (-counts[code], code))
            elif len(own) - len(values) > len(values):
                middle[g, column] = missing
            else:
                middle[g, column] = values[(len(values) - 1) // 2]
    return Summary(middle, lowest, highest, n_present, n_missing)


def widths(codes: NDArray[Any], groups: Groups, layout: Layout) -> list[list[float]]:
    """Return the certainty penalty of each group in each column."""
    return [
        [
            float(width({int(codes[row, column]) for row in members}, layout, column))
            for column in range(layout.n_columns)
        ]
        for members in members_of(groups)
    ]


def nearest_share(groups: Groups, distance: NDArray[np.float64], share: float) -> list[float]:
    """Return 0 for the given share of each group's records with the least distance, infinity for the others."""
    kept = [math.inf] * len(distance)
    for members in members_of(groups):
        ranked = sorted(float(distance[row]) for row in members)
        most = ranked[max(1, math.ceil(share * len(ranked))) - 1]
        for row in members:
            if distance[row] <= most:
                kept[row] = 0.0
    return kept


def nearest_members(
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    middle: NDArray[np.int32],
    prediction_distance: NDArray[np.float64],
) -> list[tuple[int, ...]]:
    """Return the codes of each group's member: the least prediction distance, then distance, then codes."""
    chosen = []
    for g, members in enumerate(members_of(groups)):
        target = middle[g].tolist()
        ranked = []
        for row in members:
            own = tuple(codes[row, : layout.n_columns].tolist())
            distance = sum(
                _distance(a, b, layout, column) for column, (a, b) in enumerate(zip(own, target, strict=True))
            )
            ranked.append((float(prediction_distance[row]), distance, own))
        chosen.append(min(ranked)[2])
    return chosen


def _distance(code: int, target: int, layout: Layout, column: int) -> float:
    """Squared difference of the bins' centres, or 1 where there is nothing to subtract."""
    if code == target:
        return 0.0
    if layout.is_category[column] or layout.missing[column] in (code, target):
        return 1.0
    start = int(layout.offsets[column])
    centres = [(layout.low[start + c] + layout.high[start + c]) / 2 for c in (code, target)]
    return float((centres[0] - centres[1]) ** 2)


def rank_members(
    codes: NDArray[Any], groups: Groups, n_columns: int, shares: NDArray[np.float64]
) -> list[tuple[int, ...]]:
    """Return the codes of the record at the given share of each group, its records ordered by their codes."""
    chosen = []
    for members, share in zip(members_of(groups), shares.tolist(), strict=True):
        ranked = sorted(tuple(codes[row, :n_columns].tolist()) for row in members)
        chosen.append(ranked[int(share * len(ranked))])
    return chosen


def close_unsafe(tree: Tree, is_safe: Callable[[list[int]], bool]) -> list[int] | None:
    """Join one failing group after the other with its sibling subtree; None when even the root fails.

    Which failing group comes first makes no difference: a group that fails is never part of the result.
    """
    parent = {int(child): node for node in range(tree.n_nodes) for child in (tree.left[node], tree.right[node])}

    def leaves_below(node: int) -> list[int]:
        if tree.left[node] < 0:
            return [int(tree.group[node])]
        return leaves_below(int(tree.left[node])) + leaves_below(int(tree.right[node]))

    closed = {node for node in range(tree.n_nodes) if tree.left[node] < 0}
    while True:
        failing = [node for node in closed if not is_safe(leaves_below(node))]
        if not failing:
            break
        if failing[0] == 0:
            return None
        joined = parent[failing[0]]
        inside = set(leaves_below(joined))
        closed = {node for node in closed if not inside.issuperset(leaves_below(node))} | {joined}
    first = [-1] * tree.n_groups
    for node in closed:
        for leaf in leaves_below(node):
            first[leaf] = min(leaves_below(node))
    return first
