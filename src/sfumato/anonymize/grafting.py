# SPDX-License-Identifier: Apache-2.0
"""Let a fitted partition grow on: further cuts below some of its leaves, and values it had not seen.

``rplus_tree`` calls it when later records come in. The work is done on the partition's plain document, where nodes
speak of values: bins differ from table to table, values do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.partition import Partition
from sfumato.anonymize.recoding import PartitionColumn, cut_after
from sfumato.coded_columns import CodedColumn
from sfumato.columns import Column
from sfumato.partition.tree import Tree


def join_columns(first: Column, second: Column) -> Column:
    """Return one column with the records of both; its categories are sorted again."""
    if first.kind != second.kind:  # one of them has nothing but missing values
        template = second if _is_empty(first) else first
        first, second = _as_missing(first, template), _as_missing(second, template)
    missing = None
    if first.missing is not None or second.missing is not None:
        missing = np.concatenate([_missing_of(first), _missing_of(second)])
    if first.categories is None or second.categories is None:
        values = np.concatenate([first.values, second.values])
        return Column(first.name, first.kind, values, missing, None, first.moment, first.is_zoned)
    known = sorted({*first.categories, *second.categories})
    index = {value: place for place, value in enumerate(known)}
    parts = [
        np.array([index[value] for value in column.categories] or [0], np.int32)[column.values]
        for column in (first, second)
        if column.categories is not None
    ]
    categories = np.empty(len(known), object)
    categories[:] = known
    places = _joined_places(first, second, known)
    return Column(first.name, first.kind, np.concatenate(parts), missing, categories, first.moment, places=places)


def _joined_places(first: Column, second: Column, known: Sequence[Any]) -> NDArray[np.int64] | None:
    """Return the places of all categories in the declared order, where both columns declare the same."""
    place: dict[Any, int] = {}
    for column in (first, second):
        assert column.categories is not None
        if column.places is None and len(column.categories):
            return None
        own = dict(zip(column.categories, [] if column.places is None else column.places.tolist(), strict=True))
        if any(place.get(value, at) != at for value, at in own.items()):
            return None
        place |= own
    return np.array([place[value] for value in known], np.int64) if len(set(place.values())) == len(place) else None


def _is_empty(column: Column) -> bool:
    return column.missing is not None and bool(column.missing.all())


def _missing_of(column: Column) -> NDArray[np.bool_]:
    return np.zeros(column.n_records, np.bool_) if column.missing is None else column.missing


def _as_missing(column: Column, template: Column) -> Column:
    """Return the column itself, or where it is not of the template's kind, as many missing values of that kind."""
    if column.kind == template.kind:
        return column
    values = np.zeros(column.n_records, template.values.dtype)
    no_categories = None if template.categories is None else np.zeros(0, object)
    missing = np.ones(column.n_records, np.bool_)
    return Column(column.name, template.kind, values, missing, no_categories, template.moment, template.is_zoned)


def graft(
    partition: Partition, forest: Tree | None, leaves: NDArray[np.int64], columns: Sequence[CodedColumn]
) -> Partition:
    """Return the partition with trees in the place of some of its leaves, and without values per group.

    Parameters
    ----------
    partition : Partition
    forest : Tree or None
        Trees over the bins of `columns`; the first nodes are the roots. None grafts nothing.
    leaves : ndarray of int64
        The groups that the roots stand for.
    columns : sequence of CodedColumn
        The partition's columns as they are now. Categories it did not know stay on the side they were sent to.
    """
    document = partition._to_dict()  # rare categories included: it is not published
    nodes = [_with_categories(node, partition, columns) for node in document["nodes"]]
    place_of_group = {node["group"]: place for place, node in enumerate(nodes) if "group" in node}
    if forest is not None:
        n_roots = len(leaves)
        place = [place_of_group[int(leaf)] for leaf in leaves]
        place += list(range(len(nodes), len(nodes) + forest.n_nodes - n_roots))
        nodes += [{}] * (forest.n_nodes - n_roots)
        for node in range(forest.n_nodes):
            nodes[place[node]] = _grafted_node(forest, node, columns, place)
    n_groups = _number_groups(nodes)
    document["columns"] = [_described(column, nodes) for column in columns]
    document["nodes"] = nodes
    document["groups"] = {"sizes": [0] * n_groups, "values": {}}
    grown = Partition.from_dict(document)
    known = [
        own if column.categories is None else PartitionColumn.of_categories(column)
        for own, column in zip(grown.columns, columns, strict=True)
    ]
    return replace(grown, columns=tuple(known))


def _described(column: CodedColumn, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.moment is not None:
        described["moment"] = column.moment
    if column.categories is not None:
        described["categories"] = list(column.categories)
    else:
        cuts = [node.get("at_most") for node in nodes if node.get("column") == column.name]
        described["is_real"] = column.bins.values.dtype.kind == "f" or any(isinstance(cut, float) for cut in cuts)
    return described


def _with_categories(node: dict[str, Any], partition: Partition, columns: Sequence[CodedColumn]) -> dict[str, Any]:
    """Return a node that names the categories by their present places."""
    if "in" not in node:
        return node
    position = next(p for p, column in enumerate(partition.columns) if column.name == node["column"])
    old, new = partition.columns[position].categories, columns[position].categories
    assert old is not None
    assert new is not None
    goes_left = {old[code] for code in node["in"]}
    if node["unseen"] == "left":
        goes_left |= set(new) - set(old)
    return node | {"in": [place for place, value in enumerate(new) if value in goes_left]}


def _grafted_node(forest: Tree, node: int, columns: Sequence[CodedColumn], place: Sequence[int]) -> dict[str, Any]:
    if forest.column[node] < 0:
        return {"group": -1}
    column = columns[forest.column[node]]
    larger = "left" if forest.larger_left[node] else "right"
    document: dict[str, Any] = {"column": column.name}
    if column.bins.is_ordered:
        last = int(forest.threshold[node])
        document["at_most"] = cut_after(column, last) if last < column.bins.n_values - 1 else None
        document["missing"] = "right"
    else:
        words = forest.mask[node]
        document["in"] = [c for c in range(column.bins.n_values) if int(words[c >> 6]) >> (c & 63) & 1]
        document["missing"] = "right" if column.bins.has_missing else larger  # missing comes after all categories
        document["unseen"] = larger
    return document | {"left": place[forest.left[node]], "right": place[forest.right[node]]}


def _number_groups(nodes: list[dict[str, Any]]) -> int:
    """Number the leaves from left to right, in place, and return how many there are."""
    n_groups = 0
    waiting = [0]
    while waiting:
        place = waiting.pop()
        node = nodes[place]
        if "group" in node:
            nodes[place] = {"group": n_groups}
            n_groups += 1
        else:
            waiting += [node["right"], node["left"]]
    return n_groups
