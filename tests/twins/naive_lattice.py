# SPDX-License-Identifier: Apache-2.0
"""Slow twins of ``lattice``: group records by sorting their labels, and visit every node.

Only tests call this, and the script that made the stored table of optima.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.lattice_groups import Levels

_TIE = 1e-9  # losses nearer than this are equal: they differ by rounding alone


def merge_alike(labels: Sequence[Sequence[int]], weights: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the group of each row of labels, the first row of each group, and the records of each group."""
    numbers: dict[tuple[int, ...], int] = {}
    group, first, sizes = [], [], []
    for row, (own, weight) in enumerate(zip(labels, weights, strict=True)):
        key = tuple(own)
        if key not in numbers:
            numbers[key] = len(numbers)
            first.append(row)
            sizes.append(0)
        group.append(numbers[key])
        sizes[numbers[key]] += weight
    return group, first, sizes


def every_node(
    codes: NDArray[np.int32], weights: NDArray[np.int64], columns: Sequence[Levels], lowest: Sequence[int] | None = None
) -> Iterator[tuple[tuple[int, ...], NDArray[np.int64], NDArray[np.float64]]]:
    """Yield the levels of every node, the records of each of its groups, and the mean loss of a group's cells."""
    start = [0] * len(columns) if lowest is None else lowest
    for levels in product(*(range(low, c.n_levels) for low, c in zip(start, columns, strict=True))):
        key = np.zeros(len(codes), np.int64)
        loss = np.zeros(len(codes))
        for j, level in enumerate(levels):
            labels = columns[j].labels[codes[:, j], level].astype(np.int64)
            key = key * (int(labels.max()) + 1) + labels
            loss += columns[j].losses[codes[:, j], level]
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        yield levels, np.bincount(group, weights=weights).astype(np.int64), loss[first] / len(columns)


def node_loss(
    sizes: NDArray[np.int64], losses: NDArray[np.float64], min_records: int, max_suppressed: int
) -> tuple[float, int] | None:
    """Return loss and suppressed records of a node; None where it would suppress too many."""
    is_small = sizes < min_records
    n_suppressed = int(sizes[is_small].sum())
    if n_suppressed > max_suppressed:
        return None
    return float((sizes * np.where(is_small, 1.0, losses)).sum() / sizes.sum()), n_suppressed


def find_levels(
    codes: NDArray[np.int32],
    weights: NDArray[np.int64],
    columns: Sequence[Levels],
    *,
    min_records: int,
    max_suppressed: int = 0,
    lowest: Sequence[int] | None = None,
) -> tuple[tuple[int, ...], float, int] | None:
    """Return levels, loss and suppressed records of the best of all nodes."""
    best: tuple[tuple[int, ...], float, int] | None = None
    for levels, sizes, losses in every_node(codes, weights, columns, lowest):
        found = node_loss(sizes, losses, min_records, max_suppressed)
        if found is None:
            continue
        loss, n_suppressed = found
        is_better = best is None or loss < best[1] - _TIE
        if best is not None and abs(loss - best[1]) <= _TIE:
            is_better = (n_suppressed, levels) < (best[2], best[0])
        if is_better:
            best = levels, loss, n_suppressed
    return best
