# SPDX-License-Identifier: Apache-2.0
"""One step coarser or finer: join two buckets of an attribute, or cut one, where the class loses least or gains most.

Limits on what is collected need such steps, and so does the question what each attribute costs and is worth.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from sfumato.minimize.sample import Sample


def coarser(sample: Sample, position: int, buckets: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the buckets with two of them joined; None if there is one only.

    Neighbors of an ordered attribute are joined, or its bucket of missing values with any other; of categories those
    next to each other by their classes.
    """
    n_codes = sample.n_codes[position]
    counts = _counts(sample, position, buckets)
    pairs = _joinable(sample, position, buckets[:n_codes], counts)
    if not pairs:
        return None
    losses = [_impurity(counts[one] + counts[other]) - _impurity(counts[one]) - _impurity(counts[other])
              for one, other in pairs]  # fmt: skip
    one, other = pairs[int(np.argmin(losses))]
    joined = np.where(buckets == other, one, buckets)
    return np.unique(joined, return_inverse=True)[1].astype(np.int64)


def finer(sample: Sample, position: int, buckets: NDArray[np.int64], floor: int) -> NDArray[np.int64] | None:
    """Return the buckets with one of them cut in two; None if no cut leaves `floor` records on both sides.

    Categories with fewer than `floor` records stay where they are: they are not placed by their own records.
    """
    column = sample.columns[position]
    n_codes = column.bins.n_bins
    by_code = _counts(sample, position, np.arange(n_codes))
    records = column.counts
    n_values = column.bins.n_values if column.bins.is_ordered else n_codes
    best: tuple[float, NDArray[np.int64]] | None = None
    may_move = np.ones(n_values, np.bool_) if column.bins.is_ordered else records >= floor
    for bucket in np.unique(buckets[:n_codes]):
        members = np.flatnonzero((buckets[:n_values] == bucket) & may_move)
        if not column.bins.is_ordered:
            members = members[np.argsort(_means(by_code, sample)[members], kind="stable")]
        inside = np.cumsum(by_code[members], axis=0)
        n_inside = np.cumsum(records[members])
        for last in range(len(members) - 1):
            if n_inside[last] < floor or n_inside[-1] - n_inside[last] < floor:
                continue
            fall = _impurity(inside[-1]) - _impurity(inside[last]) - _impurity(inside[-1] - inside[last])
            if best is None or fall > best[0]:
                best = fall, members[last + 1 :]
    if best is None:
        return None
    cut = buckets.copy()
    if column.bins.is_ordered:  # numbers of buckets follow the values
        above = np.arange(len(cut)) >= best[1][0]
        cut[:n_values] += above[:n_values]
        if len(cut) > n_values and buckets[-1] not in buckets[:n_values]:
            cut[-1] = cut[:n_values].max() + 1
        elif len(cut) > n_values:
            cut[-1] = cut[:n_values][buckets[:n_values] == buckets[-1]][0]
    else:
        cut[best[1]] = int(buckets.max()) + 1
    return np.unique(cut, return_inverse=True)[1].astype(np.int64)


def _counts(sample: Sample, position: int, buckets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of each class in every bucket: (buckets, classes)."""
    key = buckets[sample.columns[position].codes] * sample.n_classes + sample.y
    n_cells = (int(buckets.max()) + 1) * sample.n_classes
    return np.bincount(key, sample.weight, n_cells).reshape(-1, sample.n_classes).astype(np.float64)


def _impurity(counts: NDArray[np.float64]) -> float:
    """Return n times Gini."""
    n = float(counts.sum())
    return n - float((counts**2).sum()) / n if n > 0 else 0.0


def _means(counts: NDArray[np.float64], sample: Sample) -> NDArray[np.float64]:
    """Return where each row stands by class, rare ones near the mean of all."""
    n, total = counts.sum(axis=1), counts.sum(axis=0)
    shares = (counts + 5 * total / max(total.sum(), 1e-300)) / (n + 5)[:, None]
    return np.asarray(shares @ np.arange(sample.n_classes))


def _joinable(
    sample: Sample, position: int, buckets: NDArray[np.int64], counts: NDArray[np.float64]
) -> list[tuple[int, int]]:
    bins = sample.columns[position].bins
    if not bins.is_ordered:
        present = np.unique(buckets)
        ranked = present[np.argsort(_means(counts, sample)[present], kind="stable")]
        return [(int(one), int(other)) for one, other in itertools.pairwise(ranked)]
    values = np.unique(buckets[: bins.n_values])
    pairs = [(int(one), int(other)) for one, other in itertools.pairwise(values)]
    if bins.has_missing and buckets[-1] not in values:
        pairs += [(int(one), int(buckets[-1])) for one in values]
    return pairs
