# SPDX-License-Identifier: Apache-2.0
"""The readable name of every bucket: ``20-63``, ``64 and over``, ``{High school, Associate}``, ``not collected``."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.columns import Moment
from sfumato.labels import label_moment, label_number, label_range, label_set, with_missing

NOT_COLLECTED = "not collected"
MISSING = "missing"
OTHER = "other"
ANY_VALUE = "any value"
_MOST_LISTED = 8  # categories that a label lists before it counts the rest


@dataclass(frozen=True)
class Phrases:
    """The words around numbers and moments in the name of a bucket; labels have the English ones.

    Attributes
    ----------
    between : str or None
        None: ``20-63``, as ranges are labelled everywhere.
    """

    at_most: str = "{} and under"
    between: str | None = None
    at_least: str = "{} and over"
    over_to: str = "over {} to {}"
    over: str = "over {}"
    before: str = "before {}"
    span: str = "{} to {}"
    to_before: str = "{} to before {}"
    or_later: str = "{} or later"
    under: str = "under {}"
    to_under: str = "{} to under {}"
    or_longer: str = "{} or longer"
    any_value: str = ANY_VALUE
    decimal: str = "."

    def number(self, value: Any) -> str:
        """Return a number as text."""
        return label_number(value).replace(".", self.decimal)

    def range(self, low: int, high: int) -> str:
        """Return the name of the whole numbers from one to another."""
        if self.between is None or low == high:
            return label_range(low, high)
        return self.between.format(low, high)


ENGLISH = Phrases()


def number_labels(cuts: Sequence[Any], *, is_whole: bool, phrases: Phrases = ENGLISH) -> list[str]:
    """Name the buckets between thresholds; the outer ones are open.

    >>> number_labels([19, 63], is_whole=True)
    ['19 and under', '20-63', '64 and over']
    >>> number_labels([0.5, 2.0], is_whole=False)
    ['0.5 and under', 'over 0.5 to 2', 'over 2']
    """
    if not cuts:
        return [phrases.any_value]
    if is_whole:
        whole = [int(cut) for cut in cuts]
        inner = [phrases.range(low + 1, high) for low, high in itertools.pairwise(whole)]
        return [phrases.at_most.format(whole[0]), *inner, phrases.at_least.format(whole[-1] + 1)]
    texts = [phrases.number(cut) for cut in cuts]
    inner = [phrases.over_to.format(low, high) for low, high in itertools.pairwise(texts)]
    return [phrases.at_most.format(texts[0]), *inner, phrases.over.format(texts[-1])]


def moment_labels(
    cuts: Sequence[int], moment: Moment, *, is_zoned: bool = False, phrases: Phrases = ENGLISH
) -> list[str]:
    """Name the buckets between moments; with a time zone they are written in UTC, and the label says so.

    >>> moment_labels([946684799999999], "date")
    ['before 2000-01-01', '2000-01-01 or later']
    """
    if not cuts:
        return [phrases.any_value]
    zone = " UTC" if is_zoned else ""
    is_length = moment == "duration"
    first, last = (phrases.under, phrases.or_longer) if is_length else (phrases.before, phrases.or_later)
    starts = [short_moment(cut + 1, moment) for cut in cuts]
    if moment == "date":
        lasts = [short_moment(cut, moment) for cut in cuts[1:]]
        pairs = zip(starts, lasts, strict=False)
        inner = [low if low == high else phrases.span.format(low, high) for low, high in pairs]
    else:
        between = phrases.to_under if is_length else phrases.to_before
        inner = [between.format(low, f"{high}{zone}") for low, high in itertools.pairwise(starts)]
    return [first.format(f"{starts[0]}{zone}"), *inner, last.format(f"{starts[-1]}{zone}")]


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
