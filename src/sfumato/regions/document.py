# SPDX-License-Identifier: Apache-2.0
"""Regions as plain lists, numbers and text, saved with their partition.

Every count in a document is at least the floor, and names are those of values that as many people have. The classes of
a group are counted in multiples of the floor, so a model that learns from a document knows a little less about those of
small groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.documents import find_misfit, is_count, is_flag, is_number, is_plain, is_text, is_whole, one_of, or_none
from sfumato.errors import InputError
from sfumato.partition.cells import ColumnCells
from sfumato.partition.region_counts import ColumnCounts, carried, n_pools
from sfumato.regions.cells import inside_of, without_cells
from sfumato.regions.regions import RegionColumn, Regions
from sfumato.regions.target import MOST_CLASSES, RegionTarget
from sfumato.regions.weights import Weights

VERSION = 2

_COUNTS = {
    "per_row": [is_count],
    "value": [is_count],
    "width": [is_count],
    "people": [is_count],
    "above?": [[is_number]],
    "from_pools": [is_count],
    "whole": [is_count],
}
_COLUMN = {
    "name": is_text,
    "moment?": one_of(None, "date", "datetime", "duration", "time"),
    "is_real?": is_flag,
    "is_coarser?": is_flag,
    "categories?": [is_plain],
    "values": [or_none(is_number)],
    "otherwise": is_count,
    "reach?": [[is_whole]],
    "counts": _COUNTS,
}
SHAPE = {
    "version": is_count,
    "floor": is_count,
    "labels?": [lambda label: is_plain(label) or (isinstance(label, list) and all(map(is_plain, label)))],
    "classes?": [is_count],
    "means?": [[is_number]],
    "is_flat?": is_flag,
    "weights": {"columns": [is_number], "whole": [is_number], "group": is_number, "classes": [is_number]},
    "columns": [_COLUMN],
}

CellsOf = Callable[[RegionColumn], tuple[ColumnCells, NDArray[np.int64]] | None]
"""Returns the cells of a column, and the code of the tree of each value if it is a category."""


# -- writing -------------------------------------------------------------------------------------------------------


def regions_to_dict(regions: Regions) -> dict[str, Any] | None:
    """Return regions as a document; None if no target, or less than two of its classes, may be told."""
    target = regions.target
    if not target.is_known:
        return None
    kept, coarse = np.arange(target.n_in_class.shape[1]), target.coarse
    if target.labels is not None:
        if coarse is None:  # counts with noise
            coarse = carried(target.n_in_class.astype(np.int64), regions.floor)
        kept = np.flatnonzero(coarse.sum(axis=0) >= regions.floor)
        if len(kept) < 2:
            return None
    assert regions.weights is not None
    weights = regions.weights
    document: dict[str, Any] = {"version": VERSION, "floor": regions.floor}
    if target.labels is not None and coarse is not None:
        document |= {"labels": target.labels[kept].tolist(), "classes": coarse[:, kept].ravel().tolist()}
    else:
        document |= {"means": target.means.tolist(), "is_flat": target.is_flat}
    return document | {
        "weights": {
            "columns": weights.columns.tolist(), "whole": weights.whole.tolist(), "group": weights.group,
            "classes": weights.classes[kept].tolist(),
        },
        "columns": [_column_to_dict(column, kept) for column in regions.columns],
    }  # fmt: skip


def _column_to_dict(column: RegionColumn, kept: NDArray[np.int64]) -> dict[str, Any]:
    counts, n_classes = column.counts, column.counts.n_from_pools.shape[1]
    per_row = np.diff(counts.start).reshape(-1, n_classes)[:, kept]
    own = np.repeat(np.isin(np.arange(len(counts.start) - 1) % n_classes, kept), np.diff(counts.start))
    values = [None if gone else value for value, gone in zip(column.values.tolist(), column.missing, strict=True)]
    document: dict[str, Any] = {"name": column.name, "values": values, "otherwise": column.fallback}
    if column.categories is not None:
        document["categories"] = column.categories.tolist()
    elif column.values.dtype.kind == "f":
        document["is_real"] = True
    if column.moment is not None:
        document["moment"] = column.moment
    if column.is_coarser:
        document["is_coarser"] = True
    if column.reach is not None:
        document["reach"] = column.reach.tolist()
    document["counts"] = {
        "per_row": per_row.ravel().tolist(),
        "value": counts.unit[own].tolist(),
        "width": counts.width[own].tolist(),
        "people": counts.n_records[own].tolist(),
        "from_pools": counts.n_from_pools[:, kept].ravel().tolist(),
        "whole": counts.whole[kept].ravel().tolist(),
    }
    if counts.target.shape[1]:
        document["counts"]["above"] = counts.target[own].tolist()
    return document


# -- reading -------------------------------------------------------------------------------------------------------


def regions_from_dict(document: Mapping[str, Any], sizes: NDArray[np.int64], cells_of: CellsOf) -> Regions:
    """Rebuild regions from a document.

    Parameters
    ----------
    document : mapping
    sizes : ndarray of int64
        People of each group, as its partition has them.
    cells_of : callable
        Returns the cells of a column; None for groups that are not boxes.

    Raises
    ------
    InputError
        If parts are absent, not of their kind, or do not fit together.
    """
    if document.get("version", VERSION) != VERSION:
        raise InputError(
            f"a partition document whose regions are not of version {VERSION}: expected what this version of sfumato "
            "writes. Fit the partition again and save it."
        )
    _check(find_misfit(document, SHAPE) is None, "parts that are absent or not of their kind")
    floor, n_groups = document["floor"], len(sizes)
    names = [part["name"] for part in document["columns"]]
    _check(floor > 0 and bool(names), "no floor or no columns")
    _check(len(set(names)) == len(names), "a column twice")
    target = _target_from_dict(document, floor, sizes)
    n_classes, n_outputs = target.n_in_class.shape[1], target.means.shape[1]
    columns = []
    for part in document["columns"]:
        column = _column_from_dict(part, floor, n_groups, n_classes, n_outputs)
        cells = cells_of(column)
        if cells is not None:
            own, codes = cells
            is_category = column.categories is not None
            _check(is_category == (column.reach is None), "numbers of no reach")
            reach = np.column_stack([codes, codes]) if column.reach is None else column.reach
            inside = inside_of(own, reach, column.missing, is_category=is_category)
            column = replace(column, inside=without_cells(inside, target.is_small(sizes, floor)))
        columns.append(column)
    own_weights = document["weights"]
    weights = Weights(
        np.array(own_weights["columns"], np.float64),
        np.array(own_weights["whole"], np.float64),
        float(own_weights["group"]), np.array(own_weights["classes"], np.float64),
    )  # fmt: skip
    _check(
        (len(weights.columns), len(weights.whole), len(weights.classes)) == (len(columns), len(columns), n_classes),
        "weights of other columns",
    )
    return Regions(tuple(columns), sizes, target, weights, floor)


def _target_from_dict(document: Mapping[str, Any], floor: int, sizes: NDArray[np.int64]) -> RegionTarget:
    n_groups = len(sizes)
    if "labels" not in document:
        listed = document.get("means", [])
        n_outputs = len(listed[0]) if listed else 0
        _check(n_outputs > 0, "neither labels nor means")
        means = _shaped(listed, (n_groups, n_outputs), np.float64)
        return RegionTarget(None, sizes[:, np.newaxis].astype(np.float64), means, document.get("is_flat", True))
    labels = np.array(document["labels"])
    _check(labels.ndim in (1, 2) and 2 <= len(labels) <= MOST_CLASSES, "other classes")
    _check(len(np.unique(labels, axis=0)) == len(labels), "a class twice")
    coarse = _shaped(document.get("classes", []), (n_groups, len(labels)), np.int64)
    _check(bool((coarse % floor == 0).all()), "classes of fewer people than the floor")
    return RegionTarget(labels, coarse, np.zeros((n_groups, 0))).coarser(coarse, floor)


def _column_from_dict(
    document: Mapping[str, Any], floor: int, n_groups: int, n_classes: int, n_outputs: int
) -> RegionColumn:
    listed, categories = document["values"], document.get("categories")
    n_units = len(listed)
    missing = np.array([value is None for value in listed], np.bool_)
    _check(n_units > 0 and bool(missing[-1]) and document["otherwise"] < n_units, "values that do not fit")
    kind = np.float64 if document.get("is_real", False) else np.int64
    _check(kind is np.float64 or all(isinstance(value, int | None) for value in listed), "values of another kind")
    values = np.array([0 if value is None else value for value in listed], kind)
    names = None
    if categories is not None:
        _check(all(0 <= value < max(len(categories), 1) for value in values.tolist()), "values without a name")
        names = np.empty(len(categories), object)
        names[:] = categories
    reach = None
    if "reach" in document:
        reach = _shaped(document["reach"], (n_units, 2), np.int64)
    return RegionColumn(
        document["name"], values, missing, names, document.get("moment"), document.get("is_coarser", False),
        _counts_from_dict(document["counts"], floor, n_units, n_groups, n_classes, n_outputs), document["otherwise"],
        reach,
    )  # fmt: skip


def _counts_from_dict(
    document: Mapping[str, Any], floor: int, n_units: int, n_groups: int, n_classes: int, n_outputs: int
) -> ColumnCounts:
    n_rows = int(n_pools(n_groups).sum()) * n_classes
    per_row, n = _shaped(document["per_row"], (n_rows,), np.int64), len(document["people"])
    _check(bool((per_row <= n).all()) and int(per_row.sum()) == n, "lists of other lengths")
    unit, width = (_shaped(document[name], (n,), np.int32) for name in ("value", "width"))
    people = _shaped(document["people"], (n,), np.int64)
    _check(bool((people >= floor).all()), "counts of fewer people than the floor")
    _check(bool((width > 0).all() and (unit.astype(np.int64) + width < n_units).all()), "counts of other values")
    row = np.repeat(np.arange(n_rows), per_row)
    alone = (row * n_units + unit)[width == 1]
    goes_back = (row[1:] == row[:-1]) & (width[1:] == 1) & (width[:-1] > 1)
    _check(len(np.unique(alone)) == len(alone) and not goes_back.any(), "a value twice")
    above = _shaped(document.get("above", np.zeros((n, 0))), (n, n_outputs), np.float64)
    from_pools = _shaped(document["from_pools"], (n_groups, n_classes), np.int64)
    whole = _shaped(document["whole"], (n_classes, n_units), np.int64)
    _check(not (from_pools % floor).any() and not (whole % floor).any(), "counts of fewer people than the floor")
    _check(not whole[:, -1].any(), "counts of no value")
    start = np.concatenate([[0], np.cumsum(per_row)]).astype(np.int64)
    return ColumnCounts(start, unit, width, people, above, from_pools, whole)


def _shaped(numbers: Any, shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    try:
        return np.array(numbers, kind).reshape(shape)
    except (ValueError, OverflowError):
        _check(False, "lists of other lengths")
        raise


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise InputError(
            f"a partition document whose regions have {what}: expected what Partition.save wrote. Save the partition "
            "again."
        )
