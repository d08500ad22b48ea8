# SPDX-License-Identifier: Apache-2.0
"""The rows of a hierarchy: made of a nested mapping, of widths of intervals or of lengths of prefixes, and checked.

``hierarchy`` calls this. A row is a value and its labels from fine to coarse.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, ParameterError
from sfumato.labels import label_number

Row = tuple[Any, ...]

#: What stands for any value at all.
ANY = "*"


def rows_of_mapping(mapping: Mapping[Any, Any]) -> tuple[Row, ...]:
    """Return a row for every value of nested mappings."""
    if not isinstance(mapping, Mapping):
        raise ParameterError(
            f"a mapping of the type {type(mapping).__name__}: expected a dict whose keys are labels and whose "
            "values are dicts of finer labels or lists of values."
        )
    found: list[Row] = list(_walk(mapping, ()))
    depth = max((len(row) for row in found), default=0)
    return tuple((row[0],) * (depth - len(row)) + row + (ANY,) for row in found)


def _walk(branch: Any, above: Row) -> Iterable[Row]:
    """Yield every value with the labels above it, from fine to coarse."""
    if isinstance(branch, Mapping):
        for label, below in branch.items():
            if below is None or (isinstance(below, Mapping | list | tuple | set | frozenset) and not below):
                yield (label, *above)  # nothing below: the key is a value itself
            else:
                yield from _walk(below, (label, *above))
    elif isinstance(branch, str) or not isinstance(branch, Iterable):
        yield (branch, *above)
    else:
        for value in sorted(branch, key=text_of) if isinstance(branch, set | frozenset) else branch:
            yield (value, *above)


def rows_of_intervals(values: Iterable[Any], widths: Sequence[Any], origin: Any) -> tuple[Row, ...]:
    """Return a row for every number, with the interval of each width that it lies in."""
    listed = [_number(value, "values") for value in values]
    steps = [_number(width, "widths") for width in widths]
    start = _number(origin, "origin")
    for finer, coarser in zip([0, *steps], steps, strict=False):
        if coarser <= finer or (finer and coarser % finer != 0):
            raise ParameterError(
                f"widths={list(widths)!r}: expected rising widths above 0, each a multiple of the one before, so "
                "that every interval lies in one wider interval. Change the widths, for example to [5, 10, 20]."
            )
    is_whole_domain = all(isinstance(number, int) for number in [*listed, *steps, start])
    return tuple(
        (label_number(_plain(value)), *(_interval(value, step, start, is_whole_domain) for step in steps), ANY)
        for value in listed
    )


def _number(value: Any, parameter: str) -> int | Fraction:
    plain = value.item() if isinstance(value, np.generic) else value
    if not is_number(plain) or not np.isfinite(float(plain)):
        raise ParameterError(f"{parameter} has a {type(plain).__name__} that is no finite number: expected numbers.")
    # As written: 0.3 lies in the interval that starts at 0.3, which binary arithmetic would miss.
    return plain if isinstance(plain, int) else Fraction(str(plain))


def _plain(number: int | Fraction) -> int | float:
    return number if isinstance(number, int) else float(number)


def _interval(value: int | Fraction, width: int | Fraction, origin: int | Fraction, is_whole_domain: bool) -> str:
    low = origin + (value - origin) // width * width
    if not is_whole_domain:
        return f"[{label_number(_plain(low))}, {label_number(_plain(low + width))})"
    if width == 1:
        return label_number(low)
    last = low + width - 1
    return f"{low}-{last}" if low >= 0 else f"{low} to {last}"


def rows_of_prefixes(values: Iterable[Any], lengths: Sequence[int] | None) -> tuple[Row, ...]:
    """Return a row for every text, with its first characters."""
    texts = [text_of(value) for value in values]
    if lengths is None:
        lengths = range(max((len(text) for text in texts), default=0) - 1, 0, -1)
    is_falling = all(a > b for a, b in zip(lengths, list(lengths)[1:], strict=False))
    if not is_falling or any(not is_whole(n) or n < 1 for n in lengths):
        raise ParameterError(
            f"lengths={list(lengths)!r}: expected falling whole numbers of at least 1, such as [4, 3, 2]. The "
            "level that keeps nothing is added by itself."
        )
    return tuple((text, *(_prefix(text, int(n)) for n in lengths), ANY) for text in texts)


def _prefix(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + ANY


def text_of(label: Any) -> str:
    """Return a label as text; numbers are spelled in one way."""
    if isinstance(label, str):
        return label
    if isinstance(label, bool | np.bool_):
        return str(bool(label))
    return label_number(label) if isinstance(label, numbers.Real) else str(label)


def is_whole(value: object) -> bool:
    """Return True if the value is an integer, excluding bools."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return True if the value is a number, excluding bools."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


# -- checking ----------------------------------------------------------------------------------------------------


def checked_rows(given: Any) -> tuple[tuple[str, ...], ...]:
    """Return rows as text, with one label above all; refuse what is no hierarchy of them."""
    rows = [tuple(text_of(label) for label in row) for row in _equally_long(given)]
    _check_labels(rows)
    return _with_top(rows)


def _equally_long(given: Any) -> list[Row]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ParameterError(
            f"rows of the type {type(given).__name__}: expected a sequence of rows, each a value and its coarser "
            "labels. Use read_hierarchy for files and Hierarchy.from_mapping for nested mappings."
        )
    rows: list[Row] = []
    for row in given:
        if isinstance(row, str | bytes) or not isinstance(row, Iterable):
            raise ParameterError("a row that is one value: expected a sequence of a value and its coarser labels.")
        rows.append(tuple(row))
    if not rows or not rows[0]:
        raise InputError("a hierarchy without values: expected at least one row with at least one value.")
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        first = next(place for place, row in enumerate(rows, 1) if len(row) != len(rows[0]))
        raise InputError(
            f"row {first} has {len(rows[first - 1])} labels and row 1 has {len(rows[0])}: expected equally many in "
            "every row. Repeat a label where a value has no coarser one at a level."
        )
    return rows


def _with_top(rows: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    if len(rows[0]) == 1 or len({row[-1] for row in rows}) > 1:
        return tuple((*row, ANY) for row in rows)
    return tuple(rows)


def _check_labels(rows: Sequence[tuple[str, ...]]) -> None:
    first_of: dict[str, int] = {}
    for place, row in enumerate(rows, 1):
        if any(not label for label in row):
            raise InputError(f"row {place} has an empty label: expected text at every level. Fill it in.")
        if row[0] in first_of:
            raise InputError(
                f"row {place} has the same value as row {first_of[row[0]]}: expected one row per value. Remove one."
            )
        first_of[row[0]] = place


def check_parents(labels: Sequence[Sequence[str]], codes: NDArray[np.int32]) -> None:
    """Raise if a label has two parents: publishing the coarser level would then tell more than the finer one."""
    for level in range(1, len(labels) - 1):
        pairs = np.unique(codes[:, level : level + 2], axis=0)
        if len(pairs) == len(labels[level]):
            continue
        label = int(np.flatnonzero(np.bincount(pairs[:, 0]) > 1)[0])
        own = np.flatnonzero(codes[:, level] == label)
        other = own[codes[own, level + 1] != codes[own[0], level + 1]][0]
        raise InputError(
            f"rows {own[0] + 1} and {other + 1} share a label at level {level} and differ at level {level + 1}: "
            "expected one parent per label. Give the two labels different names, or the same parent."
        )
