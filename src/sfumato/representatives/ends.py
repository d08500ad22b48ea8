# SPDX-License-Identifier: Apache-2.0
"""Ends of ranges that may be published: values that several records share, or that no record has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.columns import MICROSECONDS_PER_DAY
from sfumato.partition.round_numbers import NUMBER_UNITS, number_between

_LARGEST_WHOLE = 2**53  # from here on floats are all whole


def published_ends(column: CodedColumn) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the published ends of each bin: of its run, which at least k records share.

    With a limit the values are middles of intervals: the true ones may lie anywhere in them, so the ends are those of
    the intervals. The last integer or day of an interval is its high end; reals and times stop short of theirs.
    """
    shared, width = column.bins.shared, column.width
    assert shared is not None
    low, high = shared.low, shared.high
    if width is None:
        return low, high
    if low.dtype.kind == "f":
        with np.errstate(over="ignore"):
            first, last = np.floor(low / width) * width, (np.floor(high / width) + 1) * width
        furthest = np.finfo(np.float64).max
        return _few_digits(np.maximum(first, -furthest)), _few_digits(np.minimum(last, furthest))
    whole = np.int64(width)
    reach = whole if column.moment in ("datetime", "duration") else whole - 1
    low, start = low // whole * whole, high // whole * whole
    high = start + np.minimum(reach, np.iinfo(np.int64).max - np.maximum(start, 0))
    if column.moment == "date":  # -(-a // b): rounded up
        low = -(-low // MICROSECONDS_PER_DAY) * MICROSECONDS_PER_DAY
        high = high // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY
    elif column.moment == "time":
        high = np.minimum(high, MICROSECONDS_PER_DAY - 1)
    return low, high


def _few_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0.3 for a multiple of 0.1 that came out as 0.30000000000000004."""
    short = np.array([float(f"{value:.15g}") for value in values])
    return np.where(np.abs(short - values) <= np.spacing(np.abs(values)), short, values)


# -- where a tree cuts ---------------------------------------------------------------------------------------------


def ends_of_cuts(column: CodedColumn, cuts: NDArray[Any]) -> list[tuple[Any, Any]]:
    """Return for each cut the last value at or below it and the first above it, as they are published.

    Parameters
    ----------
    column : CodedColumn
        Of the records that are described; the tree may have been grown on others.
    cuts : ndarray
        Values at or below a cut lie left of it.

    Returns
    -------
    ends : list of tuple
        No value lies between the two. Where there is room, no record has them. Where values touch, an end that a
        single record may have moves outward to the end of its run; None where there is no end to move to.
    """
    if column.width is not None:
        return [_edges(column, cut) for cut in cuts.tolist()]
    step = _step(column)
    return [_ends_at(column, cut, step) for cut in cuts.tolist()]


def _step(column: CodedColumn) -> int:
    """Return the step between values that are whole numbers or days; 0 for others.

    Whole numbers that are stored as floats, as beside missing values, count as whole numbers.
    """
    if column.moment is not None:
        return MICROSECONDS_PER_DAY if column.moment == "date" else 0
    bins = column.bins
    if bins.values.dtype.kind != "f":
        return 1
    seen = np.concatenate([bins.low, bins.high, bins.values])
    return int(bool((np.abs(seen) < _LARGEST_WHOLE).all() and (seen == np.floor(seen)).all()))


def _ends_at(column: CodedColumn, cut: int | float, step: int) -> tuple[Any, Any]:
    bins = column.bins
    shared = bins.shared
    assert shared is not None
    is_real = bins.values.dtype.kind == "f" and not step
    last = cut if is_real else math.floor(cut) // (step or 1) * (step or 1)
    at = int(np.searchsorted(bins.high, bins.high.dtype.type(last), side="right"))  # bins at or below the cut
    if at < bins.n_values and bins.low[at] <= last:  # the cut lies in a bin: it was made for other records
        high, low = shared.high[at].item(), shared.low[at].item()
        return high if high >= last else None, low if low <= last else None
    below = bins.high[at - 1].item() if at else -math.inf
    above = bins.low[at].item() if at < bins.n_values else math.inf
    if is_real and last == below and math.isfinite(above):
        between = number_between(below, above, NUMBER_UNITS, 0)
        last = last if between is None else between
    following = last + (0 if is_real else step or 1)
    if last > below:  # no record has it, and none has what follows unless the next record's value does
        return last, following if step and following < above else last
    high = below if shared.is_common[at - 1] else shared.high[at - 1].item()
    first = following
    if at < bins.n_values and not last < following < above:
        first = above if shared.is_common[at] else shared.low[at].item()
    return high if high >= below else None, first if first <= above else None


def _edges(column: CodedColumn, cut: int | float) -> tuple[Any, Any]:
    """Return the ends of the intervals on both sides of a cut between their middles."""
    width = column.width
    assert width is not None
    if column.bins.values.dtype.kind == "f":
        edge = _few_digits(np.array([(math.floor(cut / width - 0.5) + 1) * width]))[0].item()
        return edge, edge
    whole = int(width)
    edge = ((math.floor(cut) - whole // 2) // whole + 1) * whole
    limits = np.iinfo(np.int64)
    edge = min(max(edge, limits.min + 1), limits.max)
    if column.moment in ("datetime", "duration"):
        return edge, edge
    if column.moment == "date":
        day = MICROSECONDS_PER_DAY
        return (edge - 1) // day * day, -(-edge // day) * day
    return edge - 1, edge
