# SPDX-License-Identifier: Apache-2.0
"""How much of a column a released cell stands for: the range or the set of values behind it.

``ncp`` calls this. All records of a group show the same, so there is one extent per group and column.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column
from sfumato.hierarchies import Hierarchy
from sfumato.labels import ANY_VALUE, label_number

CategoryWidth = Literal["share", "steps"]
ANYTHING = "*"

_OR_MISSING = " or missing"
_AND_OVER, _AND_UNDER = " and over", " and under"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGES = (
    re.compile(rf"^()({_NUMBER})-({_NUMBER})()$"),
    re.compile(r"^()(.+?) to (.+)()$"),
    re.compile(r"^([\[(])\s*(.+?)\s*,\s*(.+?)\s*([\])])$"),
    re.compile(rf"^([\[(])({_NUMBER})-({_NUMBER})([\])])$"),
)


def ordered_width(
    before: Column, after: tuple[Column, ...], group: NDArray[np.int64], domain: Column
) -> NDArray[np.float64]:
    """Return the range behind each group's cell over the range of the domain, for numbers, dates and times.

    A label such as ``31-34`` says its range. Two columns of bounds say it, too. A number stands for the originals of
    all records that were released alike, and for itself. Any other label stands for the originals it replaced
    anywhere in the column. 1 where values meet missing, since then anything is possible.
    """
    n_groups = int(group.max()) + 1
    present = _present(before)
    low, high = _ends(before.values, present, group, n_groups)
    n_present = np.bincount(group[present], minlength=n_groups)
    n_missing = np.bincount(group, minlength=n_groups) - n_present
    first = np.unique(group, return_index=True)[1]
    is_blank = ~_present(after[0])[first]
    says_missing = np.zeros(n_groups, np.bool_)
    if len(after) == 2 and all(part.kind == before.kind for part in after):
        low, high = after[0].values[first], after[1].values[first]
    elif after[0].kind == before.kind:
        shown = after[0].values[first]
        low = np.where(is_blank, low, np.minimum(low, shown))
        high = np.where(is_blank, high, np.maximum(high, shown))
    else:
        code = _code_with_blank(after[0])
        lowest, highest, or_missing = _read_labels(before, present, after[0], code)
        low, high, says_missing = lowest[code[first]], highest[code[first]], or_missing[code[first]]
    floor, ceiling = _ends(domain.values, _present(domain), np.zeros(domain.n_records, np.int64), 1)
    width = _over(np.maximum(low, floor), np.minimum(high, ceiling), floor[0], ceiling[0])
    is_anything = (n_present > 0) & (is_blank | (n_missing > 0) | says_missing)
    return np.where(n_present == 0, np.where(is_blank, 0.0, 1.0), np.where(is_anything, 1.0, width))


def _read_labels(
    before: Column, present: NDArray[np.bool_], after: Column, code: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Return the range that each label says, or else the range of what it replaced, and whether it says anything."""
    n_codes = int(code.max()) + 1
    low, high = (ends.tolist() for ends in _ends(before.values, present, code, n_codes))
    is_anything = np.zeros(n_codes, np.bool_)
    read = reader_of(before)
    for place, label in enumerate(names_of(after)):
        said = range_of(label, read)
        if said is not None:
            low[place], high[place], is_anything[place] = said
        elif label == ANYTHING:
            is_anything[place] = True
    return np.array(low), np.array(high), is_anything


def category_width(
    before: Column, after: Column, group: NDArray[np.int64], domain: Column, width: CategoryWidth
) -> NDArray[np.float64]:
    """Return how many of the domain's values are behind each group's cell, as a share; 0 for one value.

    A label such as ``{nurse, teacher}`` lists its values. A value of the domain stands for the originals of all
    records that were released alike, and for itself. Any other label stands for the originals it replaced anywhere in
    the column. Missing is a value, where the domain has it; a cell that was blanked stands for all.
    """
    n_groups = int(group.max()) + 1
    names = names_of(domain)
    place = {name: code for code, name in enumerate(names)}
    has_missing = not _present(domain).all()
    n_domain = len(names) + has_missing
    own = _translated(before, place)
    shown = _code_with_blank(after)
    first = np.unique(group, return_index=True)[1]
    behind = _n_different(shown, own, int(shown.max()) + 1)  # by label: what it replaced anywhere
    is_value = np.zeros(len(behind), np.bool_)
    itself = np.full(len(behind), -1)
    for code, label in enumerate(names_of(after)):
        if label in place:
            is_value[code], itself[code] = True, place[label]
        elif (said := _set_of(label, place, n_domain)) is not None:
            behind[code] = said
    # A value stands for the originals of its group, and for itself where the group does not have it.
    has_itself = np.bincount(group[own == itself[shown]], minlength=n_groups) > 0
    in_group = _n_different(group, own, n_groups) + ~has_itself
    count = np.where(is_value[shown[first]], in_group, behind[shown[first]])
    is_blank = ~_present(after)[first]
    was_blank = np.bincount(group[~_present(before)], minlength=n_groups) == np.bincount(group, minlength=n_groups)
    count = np.where(is_blank, np.where(was_blank, 1, n_domain), count)
    return share_of(np.minimum(count, n_domain), n_domain, width)


def hierarchy_width(
    before: Column,
    after: Column,
    group: NDArray[np.int64],
    hierarchy: Hierarchy,
    domain: Column,
    width: CategoryWidth,
) -> NDArray[np.float64]:
    """Return how many of the hierarchy's values lie under each group's label, as a share; 0 for one value.

    Where the domain has missing values, missing is one value more, and the top label stands for it as well.
    """
    n_domain = hierarchy.n_values + int(not _present(domain).all())
    first = np.unique(group, return_index=True)[1]
    shown = after.values[first]
    if after.categories is not None:
        leaves = np.array([hierarchy.n_leaves(label) for label in after.categories] or [0])
        count = leaves[shown]
    else:
        different, code = np.unique(shown, return_inverse=True)
        count = np.array([hierarchy.n_leaves(value) for value in different.tolist()])[code]
    is_blank = ~_present(after)[first]
    n_present = np.bincount(group[_present(before)], minlength=len(first))
    count = np.where(is_blank, np.where(n_present == 0, 1, hierarchy.n_values), count)
    return share_of(np.where(count == hierarchy.n_values, n_domain, count), n_domain, width)


def share_of(count: NDArray[np.int64], n_domain: int, width: CategoryWidth) -> NDArray[np.float64]:
    """Turn numbers of values into widths: |z| / |D| as in the paper, or (|z| - 1) / (|D| - 1)."""
    if width == "steps":
        return (count - 1) / max(1, n_domain - 1)
    return np.where(count > 1, count / max(1, n_domain), 0.0)


# -- what stands in a label ------------------------------------------------------------------------------------


def range_of(label: str, read: Callable[[str], Any]) -> tuple[Any, Any, bool] | None:
    """Read a range such as ``31-34``, ``64 and over`` or ``[20, 30)``, or one value; and whether it says missing."""
    text = label.removesuffix(_OR_MISSING)
    furthest = np.iinfo(np.int64) if read is not _read_number else np.finfo(np.float64)
    if text == ANY_VALUE:
        return furthest.min, furthest.max, text != label
    for suffix, is_low in ((_AND_OVER, True), (_AND_UNDER, False)):
        end = read(text.removesuffix(suffix)) if text.endswith(suffix) else None
        if end is not None:
            return (end, furthest.max, text != label) if is_low else (furthest.min, end, text != label)
    for pattern in _RANGES:
        if found := pattern.match(text):
            low, high = read(found[2]), read(found[3])
            if low is not None and high is not None and low <= high:
                return low, high, text != label
    value = read(text)
    return None if value is None else (value, value, text != label)


def reader_of(column: Column) -> Callable[[str], Any]:
    """Return a function that reads a value of the column from text, or gives None."""
    if column.kind == "moment":
        return _read_moment
    return _read_integer if column.is_integer else _read_number


def _read_number(text: str) -> float | None:
    return float(text) if re.fullmatch(_NUMBER, text) else None


def _read_integer(text: str) -> int | float | None:
    number = int(text) if re.fullmatch(r"[+-]?\d+", text) else _read_number(text)
    limits = np.iinfo(np.int64)
    return number if number is None else min(max(number, int(limits.min)), int(limits.max))


def _read_moment(text: str) -> int | None:
    """Read an ISO date, datetime or time as microseconds."""
    try:
        if re.fullmatch(r"\d\d:\d\d.*", text):
            time = dt.time.fromisoformat(text)
            length = dt.datetime.combine(dt.date(1970, 1, 1), time.replace(tzinfo=None)) - dt.datetime(1970, 1, 1)
        else:
            at = dt.datetime.fromisoformat(text.removesuffix(" UTC"))  # as labels end for columns with a time zone
            length = at.replace(tzinfo=dt.UTC if at.tzinfo is None else at.tzinfo) - dt.datetime(
                1970, 1, 1, tzinfo=dt.UTC
            )
    except ValueError:
        return None
    return length // dt.timedelta(microseconds=1)


def _set_of(label: str, place: dict[str, int], n_domain: int) -> int | None:
    """Count the values that a label lists; None when it lists something else."""
    if label == ANYTHING:
        return n_domain
    text = label.removesuffix(_OR_MISSING)
    extra = int(text != label and n_domain > len(place))
    if text == ANY_VALUE and text not in place:
        return len(place) + extra
    is_set = text.startswith("{") and text.endswith("}")
    values = {_spelled(value) for value in (text[1:-1].split(", ") if is_set else [text])}
    return len(values) + extra if all(value in place for value in values) else None


def values_in(label: str, place: Mapping[str, int]) -> list[int] | None:
    """Return the places of the values that a label lists, `place` giving each value's; None if it lists others.

    Examples
    --------
    >>> values_in("{nurse, smith}", {"clerk": 0, "nurse": 1, "smith": 2}), values_in("nobody", {"clerk": 0})
    ([1, 2], None)
    """
    text = label.removesuffix(_OR_MISSING)
    if label == ANYTHING or (text == ANY_VALUE and text not in place):
        return sorted(place.values())
    is_set = text.startswith("{") and text.endswith("}")
    values = [text] if text in place or not is_set else [_spelled(value) for value in text[1:-1].split(", ")]
    return sorted({place[value] for value in values}) if all(value in place for value in values) else None


def stands_for_missing(label: str) -> bool:
    """Return True if a label stands for missing values, too."""
    return label == ANYTHING or label.endswith(_OR_MISSING)


def _spelled(value: str) -> str:
    """Spell a number as codes that are numbers are spelled: 2 for 2.0."""
    number = _read_number(value) if "." in value else None
    return value if number is None or not number.is_integer() else label_number(number)


# -- columns as codes ------------------------------------------------------------------------------------------


def _present(column: Column) -> NDArray[np.bool_]:
    return np.ones(column.n_records, np.bool_) if column.missing is None else ~column.missing


def names_of(column: Column) -> list[str]:
    """Return the values as the text that a label shows, in the order of their codes."""
    if column.categories is None:
        return [label_number(value) for value in np.unique(column.values[_present(column)]).tolist()]
    return [value if isinstance(value, str) else _shown(value) for value in column.categories]


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, bool | np.bool_) else label_number(value)


def _code_with_blank(column: Column) -> NDArray[np.int64]:
    """Return the codes of a column, those of missing values last."""
    present = _present(column)
    if column.categories is not None:
        codes, n_codes = column.values.astype(np.int64), len(column.categories)
    else:
        different = np.unique(column.values[present])
        codes, n_codes = np.searchsorted(different, column.values), len(different)
    return np.where(present, codes, n_codes)


def _translated(column: Column, place: dict[str, int]) -> NDArray[np.int64]:
    """Return the codes of the domain for the values of a column; values the domain lacks come after all others."""
    table = dict(place)
    names = names_of(column)
    translate = np.array([table.setdefault(name, len(table) + 1) for name in names] + [len(place)], np.int64)
    codes = _code_with_blank(column)
    return translate[codes]


def _n_different(label: NDArray[np.int64], codes: NDArray[np.int64], n_labels: int) -> NDArray[np.int64]:
    base = int(codes.max()) + 1
    return np.bincount(np.unique(label * base + codes) // base, minlength=n_labels)


def _ends(
    values: NDArray[Any], present: NDArray[np.bool_], label: NDArray[np.int64], n_labels: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the lowest and highest present value under each label; the ends of the type where there is none."""
    limits: Any = np.iinfo(values.dtype) if values.dtype.kind == "i" else np.finfo(values.dtype)
    low, high = np.full(n_labels, limits.max, values.dtype), np.full(n_labels, limits.min, values.dtype)
    np.minimum.at(low, label[present], values[present])
    np.maximum.at(high, label[present], values[present])
    return low, high


def _over(low: NDArray[Any], high: NDArray[Any], floor: Any, ceiling: Any) -> NDArray[np.float64]:
    """Return (high - low) / (ceiling - floor) without overflow, within [0, 1]."""
    if all(np.asarray(end).dtype.kind == "i" for end in (low, high, floor, ceiling)):
        # Differences of integers may pass 63 bits, so they are taken unsigned; an empty range counts as none.
        wide = np.where(high >= low, high.view(np.uint64) - low.view(np.uint64), 0).astype(np.float64)
        whole = float(int(ceiling) - int(floor))
    else:
        wide = np.maximum(0.0, np.asarray(high, np.float64) / 2 - np.asarray(low, np.float64) / 2)
        whole = float(ceiling) / 2 - float(floor) / 2
    return np.clip(wide / whole, 0.0, 1.0) if whole > 0 else np.zeros(len(wide))
