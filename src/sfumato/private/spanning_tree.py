# SPDX-License-Identifier: Apache-2.0
"""Noisy two-way marginals along a spanning tree of the columns (MST; McKenna, Miklau, Sheldon, 2021).

1. Count the cells of each column, with noise.
2. For every pair of columns, sum up how far its counts are from those of independent columns, with noise. Keep the
   spanning tree of the pairs that depart furthest.
3. Count the cells of the pairs of the tree, with noise.

A record is drawn along the tree: a cell of the first column, then each column given its parent. A tree needs no general
inference, so nothing but numpy is used. All noise is Gaussian, so the three parts compose exactly. (The paper chooses
pairs by the exponential mechanism. Noise on all distances costs little here, since one person moves each by 1.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.private.drawing import draw_places
from sfumato.private.encoding import PublicEncoding
from sfumato.private.marginals import FLOOR
from sfumato.private.noise import Noise, add_gaussian

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Pair = tuple[int, int]

PARTS = (0.2, 0.1, 0.7)
"""Shares of ``mu**2`` for columns, distances and pairs. Chosen, as the constants below, on other public tables."""

_LARGEST_PAIR = 100_000  # cells; a pair with more is left out, whatever the records are
_DOUBT = 0.7  # standard deviations of noise by which a count must differ from independence to be believed
_ROUNDS = 20  # of fitting pairs to the counts of their columns


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """A model of a table: counts of its columns, and of those pairs of columns that a tree connects.

    Attributes
    ----------
    counts : list of ndarray
        Estimated number of records in each cell of each column; they sum up to `n_records`.
    pairs : dict
        The estimated number of records in each cell of two columns.
    """

    counts: list[Floats]
    pairs: dict[Pair, Floats]

    @property
    def n_records(self) -> float:
        """Noisy number of records, at least 1."""
        return float(self.counts[0].sum())

    def draw_cells(self, n_records: int, random: np.random.Generator) -> Integers:
        """Draw the cells of some records, one column for each of the table."""
        cells = np.full((n_records, len(self.counts)), -1, np.int64)
        given: dict[int, list[tuple[int, Floats]]] = {place: [] for place in range(len(self.counts))}
        for (first, second), counts in self.pairs.items():
            given[first].append((second, counts))
            given[second].append((first, counts.T))
        for root, weights in enumerate(self.counts):
            if cells[0, root] >= 0:
                continue
            cells[:, root] = draw_places(weights, n_records, random)
            waiting = [root]
            while waiting:
                parent = waiting.pop()
                for child, counts in given[parent]:
                    if cells[0, child] < 0:
                        cells[:, child] = _draw_children(cells[:, parent], counts, self.counts[child], random)
                        waiting.append(child)
        return cells


def noisy_tree(encoding: PublicEncoding, cells: Integers, mu: float, *, noise: Noise | None = None) -> SpanningTree:
    """Count columns and the pairs of a spanning tree, with Gaussian noise.

    Parameters
    ----------
    encoding : PublicEncoding
        The cells of the columns, known without the records.
    cells : ndarray of shape (n_records, n_columns)
    mu : float
        Gaussian privacy of everything together.
    noise : Noise, optional
        The secure source by default.
    """
    sizes = [column.n_cells for column in encoding.columns]
    mu_columns, mu_distances, mu_pairs = (mu * math.sqrt(part) for part in PARTS)
    counts = _noisy_columns(cells, sizes, mu_columns, noise)
    allowed = [(i, j) for i, j in combinations(range(len(sizes)), 2) if sizes[i] * sizes[j] <= _LARGEST_PAIR]
    if not allowed:
        return SpanningTree(counts, {})
    distances = noisy_distances(cells, counts, allowed, mu_distances, noise)
    # What measuring a pair adds to its error; a pair that is nearly independent is better left so.
    expected = math.sqrt(2 / math.pi) * math.sqrt(len(sizes) - 1) / mu_pairs
    worth = [
        distance - 0.5 * expected * sizes[i] * sizes[j] for distance, (i, j) in zip(distances, allowed, strict=True)
    ]
    tree = _spanning_tree(allowed, worth, len(sizes))
    scale = math.sqrt(max(len(tree), 1)) / mu_pairs
    pairs = {}
    for i, j in tree:
        noisy = noisy_pair(cells, (i, j), (sizes[i], sizes[j]), scale, noise)
        pairs[i, j] = _fitted(noisy, counts[i], counts[j], scale)
    return SpanningTree(counts, pairs)


def noisy_pair(cells: Integers, pair: Pair, shape: tuple[int, int], scale: float, noise: Noise | None = None) -> Floats:
    """Return how many records have each cell of two columns, with Gaussian noise; one record more adds 1 to one."""
    return add_gaussian(_count_pair(cells, *pair, shape), scale, noise)


def noisy_distances(
    cells: Integers, counts: list[Floats], pairs: list[Pair], mu: float, noise: Noise | None = None
) -> Floats:
    """Return the L1 distance of each pair's counts from those of independent columns, with Gaussian noise.

    `counts` are noisy, so they are the same for two neighboring tables. One record more adds 1 to one cell of each
    pair. So each distance changes by at most 1, and all together by the root of their number.
    """
    distances = []
    for i, j in pairs:
        independent = np.rint(np.outer(counts[i], counts[j]) / counts[i].sum()).astype(np.int64)
        distances.append(int(np.abs(_count_pair(cells, i, j, independent.shape) - independent).sum()))
    return add_gaussian(np.array(distances), math.sqrt(len(pairs)) / mu, noise)


def _noisy_columns(cells: Integers, sizes: list[int], mu: float, noise: Noise | None) -> list[Floats]:
    """Return counts of each column that are not negative and sum up to the same noisy number of records."""
    scale = math.sqrt(len(sizes)) / mu
    exact = [np.bincount(cells[:, place], minlength=size) for place, size in enumerate(sizes)]
    noisy = [add_gaussian(own, scale, noise) for own in exact]
    # Of each column's total, the noise has the root of its cells as scale: weighted, so that long ones do not decide.
    totals, weights = [own.sum() for own in noisy], [1 / size for size in sizes]
    n_records = max(1.0, float(np.average(totals, weights=weights)))
    kept = [np.where(own > FLOOR * scale, own, 0.0) for own in noisy]
    return [n_records * (own / own.sum() if own.sum() > 0 else np.full(len(own), 1 / len(own))) for own in kept]


def _count_pair(cells: Integers, i: int, j: int, shape: tuple[int, ...]) -> Integers:
    counts = np.bincount(cells[:, i] * shape[1] + cells[:, j], minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.int64)


def _spanning_tree(pairs: list[Pair], worth: list[float], n_columns: int) -> list[Pair]:
    """Return the pairs of the spanning tree (or forest) with the largest sum of what is above 0 (Kruskal, 1956)."""
    component = list(range(n_columns))
    tree = []
    for place in np.argsort(worth)[::-1]:
        i, j = pairs[place]
        if worth[place] <= 0:
            break
        if component[i] != component[j]:
            joined, kept = component[i], component[j]
            component = [kept if own == joined else own for own in component]
            tree.append((i, j))
    return tree


def _fitted(noisy: Floats, rows: Floats, columns: Floats, scale: float) -> Floats:
    """Return counts of a pair that are not negative and sum up to the counts of its columns.

    Departures from independence that noise explains are taken back. Then rows and columns are scaled in turn.
    """
    independent = np.outer(rows, columns) / rows.sum()
    departure = noisy - independent
    believed = np.sign(departure) * np.maximum(np.abs(departure) - _DOUBT * scale, 0.0)
    counts: Floats = np.maximum(independent + believed, 1e-9)
    for _ in range(_ROUNDS):
        counts *= _quotient(rows, counts.sum(axis=1))[:, None]
        counts *= _quotient(columns, counts.sum(axis=0))
    return counts


def _quotient(wanted: Floats, found: Floats) -> Floats:
    result = np.zeros_like(found)
    np.divide(wanted, found, out=result, where=found > 0)
    return result


def _draw_children(parent: Integers, counts: Floats, alone: Floats, random: np.random.Generator) -> Integers:
    """Draw a cell for each record, given its cell in the parent's column."""
    drawn = np.empty(len(parent), np.int64)
    order = np.argsort(parent, kind="stable")
    ends = np.searchsorted(parent[order], np.arange(len(counts) + 1))
    for cell, (start, end) in enumerate(pairwise(ends)):
        weights = counts[cell] if counts[cell].sum() > 0 else alone
        drawn[order[start:end]] = draw_places(weights, int(end - start), random)
    return drawn
