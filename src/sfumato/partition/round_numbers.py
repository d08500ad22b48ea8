# SPDX-License-Identifier: Apache-2.0
"""Find a round number between two others, which nobody has: in steps that the values themselves keep to."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, inf
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBER_UNITS = tuple(10**digits for digits in range(18, -1, -1))
"""Units that whole numbers between two others are rounded to, the coarsest that fits first."""


class OnGrid(tuple[int, ...]):
    """The width of whole numbers that were made coarse: values between two others lie whole widths away from them."""


def smallest_step(distinct: NDArray[Any], units: Sequence[int]) -> int:
    """Return the smallest step between two values; 0 for numbers with fractions.

    Moments that are all whole seconds stay so: their step is the largest unit that divides them all.
    """
    if not units:
        return 0
    if isinstance(units, OnGrid):
        return units[0]
    if distinct.dtype.kind == "f":
        is_whole = bool((np.abs(distinct[[0, -1]]) < 2**53).all() and (distinct == np.floor(distinct)).all())
        return units[-1] if is_whole else 0
    if units is NUMBER_UNITS:
        return 1
    return next(unit for unit in units if unit == units[-1] or not (distinct % unit).any())


def number_between(low: Any, high: Any, units: Sequence[int], step: int) -> Any:
    """Return a round number strictly between two others, near their middle; None where there is none.

    >>> number_between(45_000, 45_100, NUMBER_UNITS, 1), number_between(3, 4, NUMBER_UNITS, 1)
    (45050, None)
    >>> number_between(0.3171, 0.3422, NUMBER_UNITS, 0)
    0.33
    """
    if not units:
        return None
    if isinstance(units, OnGrid):
        return int(low) + (int(high) - int(low)) // (2 * step) * step if int(high) - int(low) >= 2 * step else None
    if step:
        a, b = int(low), int(high)
        middle = a + (b - a) // 2
        for unit in units:
            if unit >= 2 * (b - a) or unit % step:
                continue
            down = middle // unit * unit
            inside = [at for at in (down, down + unit) if a < at < b and _stays_between(low, at, high)]
            if inside:
                return min(inside, key=lambda at: abs(2 * at - a - b))
        return None
    below, above = float(low), float(high)
    centre = below / 2 + above / 2
    for digits in range(1, 18):
        candidate = float(f"{centre:.{digits}g}")
        if below < candidate < above and _stays_between(low, candidate, high):
            return candidate
    return None


def _stays_between(low: Any, value: float, high: Any) -> bool:
    """Return True if a value lies between two others in the type they may be written in, too.

    Numbers of single or half precision are read as doubles; a double between two of them may become one of them again.
    """
    if not isinstance(low, float):
        return True
    for narrow in (_SINGLE, _HALF):
        may_be_narrow = _rounded(low, narrow) == low and _rounded(high, narrow) == high
        if may_be_narrow and not low < _rounded(value, narrow) < high:
            return False
    return True


_SINGLE, _HALF = Struct("f"), Struct("e")


def _rounded(value: float, narrow: Struct) -> float:
    """Return a number as a narrower type keeps it; one number at a time, numpy takes ten times as long."""
    try:
        kept: float = narrow.unpack(narrow.pack(value))[0]
    except OverflowError:
        return copysign(inf, value)
    return kept
