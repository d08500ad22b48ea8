# SPDX-License-Identifier: Apache-2.0
"""Readable labels for numbers, datetimes, ranges and sets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from sfumato.columns import MICROSECONDS_PER_DAY

_EPOCH = dt.datetime(1970, 1, 1)
ANY_VALUE = "any value"
"""Label of a range whose both ends are open, and of all categories."""
RARE = "other"
"""Placeholder in a label for categories that fewer than k records have."""


def label_number(value: Any) -> str:
    """Return the shortest text that reads back as the same number.

    >>> label_number(3), label_number(2.5), label_number(2.0)
    ('3', '2.5', '2')
    """
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    return repr(number)


def label_moment(microseconds: int, moment: str) -> str:
    """Return a date, datetime, time of day or duration in ISO form."""
    microseconds = int(microseconds)
    length = dt.timedelta(microseconds=microseconds)
    if moment == "duration":
        return str(length)
    try:
        at = _EPOCH + length
    except OverflowError:  # before year 1 or after year 9999
        return f"{microseconds // MICROSECONDS_PER_DAY} days from 1970-01-01"
    if moment == "date":
        return at.date().isoformat()
    return at.time().isoformat() if moment == "time" else at.isoformat(sep=" ")


def label_range(
    low: Any,
    high: Any,
    moment: str | None = None,
    *,
    is_zoned: bool = False,
    opens_below: bool = False,
    opens_above: bool = False,
) -> str:
    """Label the values from low to high; datetimes with a time zone are written in UTC, and the label says so.

    >>> label_range(31, 34), label_range(5, 5), label_range(-3, 2)
    ('31-34', '5', '-3 to 2')
    >>> label_range(64, 70, opens_above=True), label_range(0, 17, opens_below=True)
    ('64 and over', '17 and under')
    """
    if moment is not None:
        first, last = label_moment(low, moment), label_moment(high, moment)
    else:
        first, last = label_number(low), label_number(high)
    zone = " UTC" if is_zoned else ""
    if opens_below and opens_above:
        return ANY_VALUE
    if opens_below:
        return f"{last}{zone} and under"
    if opens_above:
        return f"{first}{zone} and over"
    if first == last:
        return first + zone
    is_plain = moment is None and low >= 0 and "e" not in first + last
    return f"{first}-{last}" if is_plain else f"{first} to {last}{zone}"


def label_set(values: Sequence[Any]) -> str:
    """Label a set of categories.

    >>> label_set(["nurse", "teacher"]), label_set(["nurse"])
    ('{nurse, teacher}', 'nurse')
    """
    texts = [str(value) for value in values]
    return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"


def with_missing(label: str) -> str:
    """Return the label of values some of which are missing."""
    return f"{label} or missing"
