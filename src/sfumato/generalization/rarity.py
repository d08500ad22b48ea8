# SPDX-License-Identifier: Apache-2.0
"""Keep what few records have out of a generalization: pool rare categories, join small buckets of ordered values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Pooled:
    """Buckets of categories after pooling.

    Attributes
    ----------
    given : list of int
        The bucket of every fine code, that of missing values included.
    is_listed : ndarray of bool
        Which categories enough records have.
    place : int or None
        The bucket of rare categories; None where no category is rare.
    """

    given: list[int]
    is_listed: NDArray[np.bool_]
    place: int | None


def pool_rare(given: Sequence[int], counts: NDArray[np.int64], floor: int) -> Pooled:
    """Put all categories that fewer than `floor` records have into one bucket.

    It is the one that most of their records had. If no common category is there, it holds rare categories alone, and
    they must be at least `floor` records together; otherwise they go where most records are.

    Parameters
    ----------
    given : sequence of int
        The bucket of every code; a code behind those of the categories is that of missing values.
    counts : ndarray of int
        Records of every category.
    floor : int

    Returns
    -------
    Pooled
    """
    is_rare = counts < floor
    if not is_rare.any():
        return Pooled(list(given), ~is_rare, None)
    if is_rare.all():  # nothing could be listed, so nothing is told apart
        return Pooled([0] * len(given), ~is_rare, 0)
    common = {given[code] for code in np.flatnonzero(~is_rare).tolist()}
    place = _largest(given, counts, np.flatnonzero(is_rare).tolist())
    if place not in common and counts[is_rare].sum() < floor:
        place = _largest(given, counts, np.flatnonzero(~is_rare).tolist())
    gone = {given[code] for code in np.flatnonzero(is_rare).tolist()} - common
    new = [place if bucket in gone else bucket for bucket in given]
    for code in np.flatnonzero(is_rare).tolist():
        new[code] = place
    return Pooled(new, ~is_rare, place)


def _largest(given: Sequence[int], counts: NDArray[np.int64], codes: Sequence[int]) -> int:
    """Return the bucket that has most records of some codes, the first of several."""
    sizes: dict[int, int] = {}
    for code in codes:
        sizes[given[code]] = sizes.get(given[code], 0) + int(counts[code])
    return max(sizes, key=lambda bucket: (sizes[bucket], -bucket))


def joined_runs(ranks: Sequence[int], counts: NDArray[Any], floor: int) -> list[int]:
    """Join neighboring buckets of ordered values until each has `floor` records, or there is one.

    The smallest bucket goes first, the lower one on ties, and joins its smaller neighbor.

    Parameters
    ----------
    ranks : sequence of int
        The bucket of every bin, rising from 0 without gaps.
    counts : ndarray of int
        Records of every bin; more entries than `ranks` are ignored.
    floor : int

    Returns
    -------
    list of int

    Examples
    --------
    >>> joined_runs([0, 1, 1, 2, 3], np.array([50, 5, 20, 40, 1]), 10)
    [0, 1, 1, 2, 2]
    """
    if not ranks or floor <= 1:
        return list(ranks)
    sizes = np.bincount(ranks, weights=counts[: len(ranks)]).astype(np.int64).tolist()
    first = list(range(len(sizes)))  # the first bucket of each joined run
    while len(sizes) > 1 and min(sizes) < floor:
        small = sizes.index(min(sizes))
        if small == 0 or (small + 1 < len(sizes) and sizes[small + 1] < sizes[small - 1]):
            small += 1  # joined with the one above: take the border between them away
        sizes[small - 1] += sizes.pop(small)
        first.pop(small)
    return [int(rank) for rank in np.searchsorted(first, np.asarray(ranks), side="right") - 1]
