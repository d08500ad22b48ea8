# SPDX-License-Identifier: Apache-2.0
"""Check the document of a partition before use: a changed one must not crash, loop or point nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.documents import (
    MapOf,
    check_shape,
    find_misfit,
    is_count,
    is_flag,
    is_number,
    is_plain,
    is_text,
    one_of,
    or_none,
)
from sfumato.errors import InputError

WROTE = "Partition.save"

_COLUMN = {
    "name": is_text,
    "kind": one_of("number", "moment", "category"),
    "moment?": one_of(None, "date", "datetime", "duration", "time"),
    "categories?": [is_plain],
    "is_real?": is_flag,
}
_PART = {"name": is_text, "labels?": [or_none(is_text)], "values?": [or_none(is_number)], "is_real?": is_flag}
_PARTITION = {
    "guarantees": [is_text],
    "criteria?": [lambda one: isinstance(one, Mapping) and isinstance(one.get("name"), str)],
    "representative": is_text,
    "dropped": [is_text],
    "limits": MapOf(is_number),
    "categorical": [is_text],
    "columns": [_COLUMN],
    "nodes": [lambda node: isinstance(node, Mapping)],
    "groups": {"sizes": [is_count], "values": MapOf([_PART])},
    "regions?": lambda regions: isinstance(regions, Mapping),
}
_SIDE = one_of("left", "right")
_ORDERED = {"column": is_text, "at_most": or_none(is_number), "missing": _SIDE, "left": is_count, "right": is_count}
_CATEGORY = {
    "column": is_text,
    "in": [is_count],
    "missing": _SIDE,
    "unseen": _SIDE,
    "left": is_count,
    "right": is_count,
}


def check_partition(document: Mapping[str, Any]) -> None:
    """Raise InputError unless a document has all parts of a partition, and they fit together."""
    check_shape(document, _PARTITION, "a partition document", WROTE)
    n_criteria = len(document.get("criteria", ()))
    _check(n_criteria in (0, len(document["guarantees"])), "whose criteria are not those of its guarantees")
    columns = {column["name"]: column for column in document["columns"]}
    _check(len(columns) == len(document["columns"]), "that names a column twice")
    for column in columns.values():
        listed = column.get("categories")
        _check((column["kind"] == "category") == (listed is not None), "whose categories are not those of its columns")
        _check(listed is None or len(set(listed)) == len(listed), "that lists a category twice")
        _check(len({type(category) for category in listed or ()}) <= 1, "with categories of several types")
        _check((column["kind"] == "moment") == (column.get("moment") is not None), "whose moments are of no kind")
    for place, node in enumerate(document["nodes"]):
        _check_node(place, node, columns)
    n_groups = len(document["groups"]["sizes"])
    for name, parts in document["groups"]["values"].items():
        _check(name in columns and bool(parts), "that rewrites what is not among its columns")
        for part in parts:
            _check_part(part, columns[name], n_groups)


def _check_node(place: int, node: Mapping[str, Any], columns: Mapping[str, Mapping[str, Any]]) -> None:
    if "column" not in node:
        _fits(place, node, {"group": is_count} if "group" in node else {"goto": is_count})
        return
    name = node["column"]
    _check(isinstance(name, str) and name in columns, "that splits on what is not among its columns")
    categories = columns[name].get("categories")
    if categories is None:
        _fits(place, node, _ORDERED)
        limit = node["at_most"]
        _check(isinstance(limit, int | None) or columns[name].get("is_real", False), "with a threshold of another kind")
    else:
        _fits(place, node, _CATEGORY)
        _check(all(code < len(categories) for code in node["in"]), "that splits on categories that it does not list")


def _fits(place: int, node: Mapping[str, Any], shape: Any) -> None:
    found = find_misfit(node, shape, f"nodes[{place}]")
    _check(found is None, f"whose part {found} is absent or not of its kind")


def _check_part(part: Mapping[str, Any], column: Mapping[str, Any], n_groups: int) -> None:
    listed: Sequence[Any] = part.get("labels", part.get("values", ()))
    _check(len(listed) == n_groups, f"without a value for each of its {n_groups} groups")
    if "labels" in part:
        return
    known = [value for value in listed if value is not None]
    is_real = part.get("is_real", False)
    _check(is_real or all(isinstance(value, int) for value in known), "with values of another kind")
    categories = column.get("categories")
    if categories is not None:
        _check(not is_real and all(0 <= code < len(categories) for code in known), "with values that it does not list")


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise InputError(f"a partition document {what}: expected what {WROTE} wrote. Save the partition again.")
