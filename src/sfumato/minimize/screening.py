# SPDX-License-Identifier: Apache-2.0
"""Screen the attributes of wide tables: a minimizer looks at those that tell most of the class by themselves.

Each attribute is cut in two where that separates the classes best, on one half of the records; how well the cut
separates the other half is its score, and the halves change places. With thousands of attributes, some separate the
classes by chance on the records that chose the cut; hardly one does so on both halves.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.minimize.sample import FORBIDDEN, Buckets, Sample

MOST_SCREENED = 128
"""A minimizer looks at no more attributes."""

ONE_VALUE = "it has one value only"


def screened(sample: Sample, required: Collection[str] = (), most: int = MOST_SCREENED) -> Sample:
    """Return the sample with the attributes that are left out, and why; all are kept if they are few enough.

    Parameters
    ----------
    sample : Sample
    required : collection of str
        Attributes that are kept in any case.
    most : int, default=128
    """
    considered = [place for place in range(len(sample.columns)) if place not in sample.left_out]
    if len(considered) <= most:
        return sample
    half = _halves(sample)
    scores = {place: _score(sample.columns[place], sample, half) for place in considered}
    wanted = {place for place, name in enumerate(sample.names) if name in required}
    ranked = sorted(considered, key=lambda place: (place not in wanted, -scores[place], place))
    varied = [place for place in ranked if np.count_nonzero(sample.columns[place].counts) > 1 or place in wanted]
    reason = (
        f"its best cut separates the classes less than those of {most:,} other attributes, on records that did not "
        "choose the cut"
    )
    left_out = dict.fromkeys(varied[most:], reason)
    left_out |= {place: ONE_VALUE for place in considered if place not in varied}
    return replace(sample, left_out={**sample.left_out, **dict(sorted(left_out.items()))})


def narrowed(sample: Sample) -> tuple[Sample, list[int]]:
    """Return the sample without attributes that are left out, unless they are personal, and the places of the others.

    Where attributes are personal only because none was named, those that did not pass the screening are not.
    """
    if not sample.left_out:
        return sample, list(range(len(sample.columns)))

    def is_attacked(place: int) -> bool:
        return place in sample.personal and (sample.is_personal_named or sample.left_out[place] == FORBIDDEN)

    kept = [place for place in range(len(sample.columns)) if place not in sample.left_out or is_attacked(place)]
    number = {place: new for new, place in enumerate(kept)}
    own = replace(
        sample,
        columns=[sample.columns[place] for place in kept],
        personal=tuple(number[place] for place in sample.personal if place in number),
        parents={number[place]: above for place, above in sample.parents.items() if place in number},
        left_out={number[place]: why for place, why in sample.left_out.items() if place in number},
    )
    return own, kept


def widened(buckets: Buckets, kept: list[int], sample: Sample) -> Buckets:
    """Return buckets for all attributes of a sample, given those of some; what is left out is not collected."""
    every = [np.zeros(n_codes, np.int64) for n_codes in sample.n_codes]
    for place, own in zip(kept, buckets, strict=True):
        if place not in sample.left_out:
            every[place] = own
    return every


def _halves(sample: Sample) -> NDArray[np.bool_]:
    """Return which records are in the first half: every second one of each class, in the order of their values."""
    # Few columns tell nearly all records apart; equal ones may be in either half.
    keys = [column.codes for column in sample.columns[:16]]
    order = np.lexsort((*keys, sample.y))
    half = np.zeros(sample.n_records, np.bool_)
    half[order[::2]] = True
    return half


def _score(column: CodedColumn, sample: Sample, half: NDArray[np.bool_]) -> float:
    """Return the fall of the class's impurity by the best cut, on the records that did not choose it."""
    if sample.n_classes < 2:
        return 0.0
    first, second = (_class_counts(column, sample, rows) for rows in (half, ~half))
    return _held_out_fall(column, first, second) + _held_out_fall(column, second, first)


def _class_counts(column: CodedColumn, sample: Sample, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    key = column.codes[rows].astype(np.int64) * sample.n_classes + sample.y[rows]
    weight = None if sample.weight is None else sample.weight[rows]
    n_cells = column.bins.n_bins * sample.n_classes
    return np.bincount(key, weight, n_cells).reshape(-1, sample.n_classes).astype(np.float64)


def _held_out_fall(column: CodedColumn, chosen_on: NDArray[np.float64], judged_on: NDArray[np.float64]) -> float:
    """Return the fall of n times Gini on one half, by the cut that lowers it most on the other."""
    n_codes = len(chosen_on)
    if column.bins.is_ordered:
        order = np.arange(n_codes)
    else:  # by the share of the class that differs most between categories
        size = chosen_on.sum(axis=1)
        shares = (chosen_on + chosen_on.sum(axis=0) / max(size.sum(), 1e-300)) / (size + 1)[:, None]
        order = np.argsort(shares[:, int(np.argmax((size[:, None] * shares**2).sum(axis=0)))], kind="stable")
    falls = _falls(np.cumsum(chosen_on[order], axis=0))
    if not len(falls):
        return 0.0
    return float(_falls(np.cumsum(judged_on[order], axis=0))[int(falls.argmax())])


def _falls(left: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the fall of n times Gini for every prefix, given the class counts of prefixes; the last is everything."""
    total = left[-1]
    left = left[:-1]
    right = total - left
    n_left, n_right = left.sum(axis=1), right.sum(axis=1)
    squares = (left**2).sum(axis=1) / np.maximum(n_left, 1e-300) + (right**2).sum(axis=1) / np.maximum(n_right, 1e-300)
    falls: NDArray[np.float64] = squares - (total**2).sum() / max(total.sum(), 1e-300)
    return falls
