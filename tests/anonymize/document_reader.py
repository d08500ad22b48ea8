# SPDX-License-Identifier: Apache-2.0
"""Read a partition document as a stranger would: plain Python, nothing of sfumato.

Tests use it to send records down the tree of a saved partition and to merge groups by the documented rule.
"""

import datetime
from collections.abc import Callable, Iterable
from typing import Any

EPOCH = datetime.datetime(1970, 1, 1)


def as_plain(value: Any) -> Any:
    """Return a value as the document speaks of it: moments as microseconds, missing as None."""
    if isinstance(value, datetime.datetime):
        value = (value.astimezone(datetime.UTC) if value.tzinfo else value).replace(tzinfo=None) - EPOCH
    elif isinstance(value, datetime.date):
        value = datetime.datetime.combine(value, datetime.time()) - EPOCH
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    return None if value is None or value != value else value


def leaf_of(document: dict[str, Any], record: dict[str, Any]) -> int:
    """Return the number of the node, a leaf, that a record ends in."""
    categories = {column["name"]: column.get("categories") for column in document["columns"]}
    at = 0
    while "group" not in document["nodes"][at]:
        node = document["nodes"][at]
        if "goto" in node:
            at = node["goto"]
            continue
        value = as_plain(record[node["column"]])
        if value is None:
            side = node["missing"]
        elif "at_most" in node:
            side = "left" if node["at_most"] is None or value <= node["at_most"] else "right"
        elif value in categories[node["column"]]:
            side = "left" if categories[node["column"]].index(value) in node["in"] else "right"
        else:
            side = node["unseen"]
        at = node[side]
    return at


def group_of(document: dict[str, Any], record: dict[str, Any]) -> int:
    """Return the group of a record."""
    return document["nodes"][leaf_of(document, record)]["group"]


def merged(
    document: dict[str, Any],
    leaves: Iterable[int],
    is_safe: Callable[[list[int]], bool],
    pick: Callable[[list[int]], int],
) -> list[list[int]] | None:
    """Apply the merging rule, one step at a time, and return the rows of each group; None when the root fails.

    A group whose records fail is closed together with its sibling subtree: all records below the parent form one
    group. Repeated until every group passes. Places without records are no groups. `pick` chooses which failing
    group is taken first; the rule must give the same whatever it picks.
    """
    nodes = document["nodes"]
    parent = {node[side]: at for at, node in enumerate(nodes) if "column" in node for side in ("left", "right")}
    rows_at: dict[int, list[int]] = {}
    for row, leaf in enumerate(leaves):
        if leaf >= 0:
            rows_at.setdefault(leaf, []).append(row)
    while True:
        failing = [node for node, rows in rows_at.items() if not is_safe(rows)]
        if not failing:
            return sorted(sorted(rows) for rows in rows_at.values())
        node = pick(failing)
        if node not in parent:
            return None
        closed = parent[node]
        below = [other for other in rows_at if closed in ancestors(parent, other)]
        rows_at[closed] = [row for other in below for row in rows_at.pop(other)]


def ancestors(parent: dict[int, int], node: int) -> list[int]:
    """Return the nodes above a node, and itself."""
    path = [node]
    while path[-1] in parent:
        path.append(parent[path[-1]])
    return path
