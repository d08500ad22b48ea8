# SPDX-License-Identifier: Apache-2.0
"""The value that stands for a bucket of ordered values: its median, unless that tells the value of a few persons."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import MICROSECONDS_PER_DAY
from sfumato.generalization.thresholds import moment_threshold, real_threshold, whole_threshold
from sfumato.sources import CodedColumn

SAFE_SIZE = 10
"""Records below which a document about people tells no share, and no value of theirs where it can be helped."""


def typical_value(
    column: CodedColumn,
    cuts: list[Any],
    bucket: int,
    members: NDArray[np.intp],
    counts: NDArray[np.int64],
    *,
    is_whole: bool,
) -> Any:
    """Return the median of a bucket, or a round number beside it where fewer than `SAFE_SIZE` records have it.

    Parameters
    ----------
    column : CodedColumn
    cuts : list
        Thresholds of the attribute.
    bucket : int
    members : ndarray of int
        Fine codes of the bucket.
    counts : ndarray of int
        Records of every fine code.
    is_whole : bool
        Whether all numbers are whole.
    """
    bins = column.bins
    inside = np.cumsum(counts[members])
    middle = int(members[min(len(members) - 1, int(np.searchsorted(inside, inside[-1] / 2)))])
    value = bins.values[middle].item()
    if counts[middle] >= SAFE_SIZE and bins.low[middle] == bins.high[middle]:
        return value
    first_cut = cuts[bucket - 1] if bucket else None
    last_cut = cuts[bucket] if bucket < len(cuts) else None
    below = bins.high[middle - 1].item() if middle > members[0] else first_cut
    above = bins.low[middle + 1].item() if middle < members[-1] else None
    if below is None:  # the lowest value of all: what is told instead is the inner end of its bucket
        if last_cut is not None:
            return _last(column, last_cut)
        if above is None or not _has_room(column, value, above, is_whole=is_whole):
            return _rounded_alone(column, value)
        return _between(column, value, _before(column, above, is_whole=is_whole), value, is_whole=is_whole)
    if above is not None:
        return _between(column, below, _before(column, above, is_whole=is_whole), value, is_whole=is_whole)
    if last_cut is not None:
        return _between(column, below, last_cut, value, is_whole=is_whole)
    return _first_above(column, below, value, is_whole=is_whole)


def _has_room(column: CodedColumn, below: Any, above: Any, *, is_whole: bool) -> bool:
    """Return True if another value of the column lies between two values."""
    step = MICROSECONDS_PER_DAY if column.moment == "date" else 1
    if column.moment is not None or is_whole:
        return bool(above - below > step)
    return bool(np.nextafter(below, np.inf) < above)


def _before(column: CodedColumn, end: Any, *, is_whole: bool) -> Any:
    """Return the largest value below one."""
    return end - 1 if column.moment is not None or is_whole else float(np.nextafter(end, -np.inf))


def _between(column: CodedColumn, below: Any, last: Any, value: Any, *, is_whole: bool) -> Any:
    """Return a round value above one and at most another."""
    if column.moment is not None:
        return moment_threshold(below, last, column.moment) + 1
    if is_whole:
        return type(value)(whole_threshold(int(below) + 1, int(last) + 1))
    return real_threshold(float(np.nextafter(below, np.inf)), float(np.nextafter(last, np.inf)))


def _last(column: CodedColumn, end: Any) -> Any:
    """Return the last value of an open lowest bucket, whole days and seconds for moments."""
    if column.moment is None:
        return end
    step = MICROSECONDS_PER_DAY if column.moment == "date" else 1_000_000
    return int(end) // step * step


def _first_above(column: CodedColumn, below: Any, value: Any, *, is_whole: bool) -> Any:
    """Return a round value of an open highest bucket, near its beginning."""
    if column.moment == "date":
        return (int(below) // MICROSECONDS_PER_DAY + 1) * MICROSECONDS_PER_DAY
    if column.moment is not None:
        return int(below) + 1
    if is_whole:
        return type(value)(int(below) + 1)
    start = float(np.nextafter(below, np.inf))
    return real_threshold(start, value) if start < value else value


def _rounded_alone(column: CodedColumn, value: Any) -> Any:
    """Return the only value there is with one digit, or as a whole day."""
    if column.moment is not None:
        return int(value) // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY if column.moment == "datetime" else value
    rounded = float(f"{value:.0e}")
    if isinstance(value, int):
        return max(-(2**63), min(2**63 - 1, int(rounded)))
    return rounded if np.isfinite(rounded) else value
