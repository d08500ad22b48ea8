# SPDX-License-Identifier: Apache-2.0
"""Choose thresholds between buckets: numbers between two bins, with as few digits as possible.

A threshold is the last value of a bucket: what is at most the threshold belongs to it or to a bucket below.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context, Decimal

from sfumato.columns import MICROSECONDS_PER_DAY, Moment

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_EXACT = Context(prec=1200)  # more digits than the difference of any two float64 has
_CLOCK_STEPS = tuple(
    step * unit
    for unit, steps in (
        (1_000_000, (86_400, 43_200, 21_600, 10_800, 3_600, 1_800, 900, 300, 60, 30, 10, 5, 1)),
        (1, (100_000, 10_000, 1_000, 100, 10, 1)),
    )
    for step in steps
)
_YEAR_STEPS = (1000, 500, 100, 50, 10, 5, 1)
_MONTH_STEPS = (6, 3, 1)


def whole_threshold(low: int, high: int) -> int:
    """Return the whole number with the fewest digits in [low, high), nearest the middle.

    >>> whole_threshold(37, 52), whole_threshold(63, 64), whole_threshold(-4, 9)
    (40, 63, 0)
    """
    middle = (low + high) // 2
    for exponent in range(len(str(max(abs(low), abs(high)))), -1, -1):
        unit = int(10**exponent)
        below = middle // unit * unit
        for candidate in sorted((below, below + unit), key=lambda number: abs(2 * number - low - high)):
            if low <= candidate < high:
                return candidate
    return low


def real_threshold(low: float, high: float) -> float:
    """Return the number with the fewest digits in [low, high), nearest the middle.

    >>> real_threshold(0.3171, 0.3422), real_threshold(0.3, 0.4), real_threshold(-1.5, 2.0)
    (0.33, 0.3, 0.0)
    """
    exact_low, exact_high = Decimal(low), Decimal(high)
    middle = _EXACT.divide(_EXACT.add(exact_low, exact_high), Decimal(2))
    largest = max(abs(low), abs(high))
    first = math.frexp(largest)[1] * 30103 // 100000 + 2  # a power of ten above the largest: log10(2) = 0.30103
    for exponent in range(first, first - 22, -1):
        for candidate in _multiples_around(middle, exponent):
            number = float(candidate) + 0.0
            if low <= number < high:
                return number
    return low


def moment_threshold(low: int, high: int, moment: Moment) -> int:
    """Return the last microsecond before the roundest moment in (low, high], which begins the next bucket.

    Years are rounder than months, months than days, days than hours; dates begin at midnight.
    """
    if moment in ("date", "datetime"):
        start = _round_calendar(low, high)
        if start is not None:
            return start - 1
    for step in _CLOCK_STEPS:
        start = _nearest_multiple(low, high, step)
        if start is not None:
            return start - 1
    return low


def _multiples_around(middle: Decimal, exponent: int) -> list[Decimal]:
    """Return the multiples of a power of ten below and above the middle, the nearer first."""
    unit = Decimal(10) ** exponent
    count = _EXACT.divide(middle, unit).to_integral_value(rounding="ROUND_FLOOR")
    below, above = _EXACT.multiply(count, unit), _EXACT.multiply(count + 1, unit)
    return [below, above] if middle - below <= above - middle else [above, below]


def _nearest_multiple(low: int, high: int, step: int) -> int | None:
    """Return the multiple of a step in (low, high] nearest the middle, or None."""
    middle = (low + high) // 2
    below = middle // step * step
    found = [start for start in (below, below + step) if low < start <= high]
    return min(found, key=lambda start: abs(start - middle)) if found else None


def _round_calendar(low: int, high: int) -> int | None:
    """Return the beginning of a year or month in (low, high], as round as possible; None beyond years 1 to 9999."""
    try:
        middle = _EPOCH + dt.timedelta(microseconds=(low + high) // 2)
    except OverflowError:
        return None
    for years in _YEAR_STEPS:
        below = middle.year // years * years
        start = _nearest_beginning(low, high, [(below, 1), (below + years, 1)])
        if start is not None:
            return start
    months = middle.year * 12 + middle.month - 1
    for step in _MONTH_STEPS:
        below = months // step * step
        start = _nearest_beginning(low, high, [(m // 12, m % 12 + 1) for m in (below, below + step)])
        if start is not None:
            return start
    return _nearest_multiple(low, high, MICROSECONDS_PER_DAY)


def _nearest_beginning(low: int, high: int, months: list[tuple[int, int]]) -> int | None:
    starts = [
        (dt.datetime(year, month, 1) - _EPOCH) // _MICROSECOND for year, month in months if 1 <= year <= dt.MAXYEAR
    ]
    found = [start for start in starts if low < start <= high]
    return min(found, key=lambda start: abs(start - (low + high) // 2)) if found else None
