# SPDX-License-Identifier: Apache-2.0
"""The readable name of every bucket: ``20-63``, ``64 and over``, ``{High school, Associate}``, ``not collected``."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from typing import Any

from sfumato.columns import Moment
from sfumato.labels import label_moment, label_number, label_range, label_set, with_missing

NOT_COLLECTED = "not collected"
MISSING = "missing"
OTHER = "other"
ANY_VALUE = "any value"
_MOST_LISTED = 8  # categories that a label lists before it counts the rest


def number_labels(cuts: Sequence[Any], *, is_whole: bool) -> list[str]:
    """Name the buckets between thresholds; the outer ones are open.

    >>> number_labels([19, 63], is_whole=True)
    ['19 and under', '20-63', '64 and over']
    >>> number_labels([0.5, 2.0], is_whole=False)
    ['0.5 and under', 'over 0.5 to 2', 'over 2']
    """
    if not cuts:
        return [ANY_VALUE]
    if is_whole:
        whole = [int(cut) for cut in cuts]
        inner = [label_range(low + 1, high) for low, high in itertools.pairwise(whole)]
        return [f"{whole[0]} and under", *inner, f"{whole[-1] + 1} and over"]
    texts = [label_number(cut) for cut in cuts]
    inner = [f"over {low} to {high}" for low, high in itertools.pairwise(texts)]
    return [f"{texts[0]} and under", *inner, f"over {texts[-1]}"]


def moment_labels(cuts: Sequence[int], moment: Moment, *, is_zoned: bool = False) -> list[str]:
    """Name the buckets between moments; with a time zone they are written in UTC, and the label says so.

    >>> moment_labels([946684799999999], "date")
    ['before 2000-01-01', '2000-01-01 or later']
    """
    if not cuts:
        return [ANY_VALUE]
    zone = " UTC" if is_zoned else ""
    before, later = ("under", "or longer") if moment == "duration" else ("before", "or later")
    starts = [short_moment(cut + 1, moment) for cut in cuts]
    if moment == "date":
        lasts = [short_moment(cut, moment) for cut in cuts[1:]]
        inner = [low if low == high else f"{low} to {high}" for low, high in zip(starts, lasts, strict=False)]
    else:
        inner = [f"{low} to {before} {high}{zone}" for low, high in itertools.pairwise(starts)]
    return [f"{before} {starts[0]}{zone}", *inner, f"{starts[-1]}{zone} {later}"]


def short_moment(microseconds: int, moment: Moment) -> str:
    """Write a moment without the parts that are zero."""
    text = label_moment(microseconds, moment)
    if moment == "datetime":
        text = text.removesuffix(" 00:00:00")
    return text.removesuffix(":00") if moment in ("datetime", "time") and text.count(":") == 2 else text


def category_label(values: Sequence[Any]) -> str:
    """Name a set of categories; a long one lists some and counts the rest.

    >>> category_label(["High school", "Associate"]), category_label(["nurse"])
    ('{High school, Associate}', 'nurse')
    """
    texts = [printable(str(value)) for value in values]
    if len(texts) > _MOST_LISTED + 1:
        texts = [*texts[:_MOST_LISTED], f"and {len(texts) - _MOST_LISTED} more"]
    label = label_set(texts)
    return label if label.strip() else f'"{label}"'


def printable(text: str) -> str:
    """Return text with invisible characters escaped, so that a label can be read, typed and stored anywhere."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def finished(labels: Sequence[str], *, missing: int, saw_missing: bool, has_missing_bucket: bool) -> tuple[str, ...]:
    """Label missing values and attributes of one bucket, and make the labels unique."""
    named = list(labels)
    if has_missing_bucket:
        named.append(MISSING)
    elif saw_missing:
        named[missing] = with_missing(named[missing])
    if len(named) == 1:
        return (NOT_COLLECTED,)
    taken: set[str] = set()
    for place, label in enumerate(named):
        unique, count = label, 1
        while unique in taken or (unique != label and unique in named):
            count += 1
            unique = f"{label} ({count})"
        taken.add(unique)
        named[place] = unique
    return tuple(named)


def iso_moment(microseconds: int) -> dt.datetime | None:
    """Return microseconds since 1970 as a datetime, or None beyond the years 1 to 9999."""
    try:
        return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        return None
