# SPDX-License-Identifier: Apache-2.0
"""Ranges: the cell of a group in the tree, or its members from the lowest to the highest; as labels or as two columns.

Groups that are not boxes, such as runs of a curve, have no cell: then the members decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.hierarchies import CodePaths
from sfumato.labels import RARE, label_range, label_set, with_missing
from sfumato.partition.group_summaries import Groups, Summary
from sfumato.representatives.cells import cell_bounds, cell_labels
from sfumato.representatives.ends import published_ends
from sfumato.representatives.representative import GroupValues, NamedRepresentative, RepresentativeFacts, Scene


def _range_labels(scene: Scene) -> dict[str, list[GroupValues]]:
    codes, paths = scene.codes, scene.paths
    return {
        c.name: [_ranges(c, codes[:, j], scene.groups, scene.summary, j, paths.get(c.name))]
        for j, c in enumerate(scene.columns)
    }


def _two_columns(scene: Scene) -> dict[str, list[GroupValues]]:
    codes = scene.codes
    return {c.name: _bounds(c, codes[:, j], scene.groups, scene.summary, j) for j, c in enumerate(scene.columns)}


def _bounds(column: CodedColumn, codes: NDArray[Any], groups: Groups, summary: Summary, j: int) -> list[GroupValues]:
    """Lowest and highest value as two columns, missing where all are; the outermost ends stand for few beyond them.

    Categories go by the order that their type declares, and without one by the sorted order, which is a convention.
    """
    bins = column.bins
    is_missing = summary.lowest[:, j] < 0
    lows, highs = published_ends(column)
    lowest: NDArray[Any] = summary.lowest[:, j]
    highest: NDArray[Any] = summary.highest[:, j]
    if not bins.is_ordered and bins.n_values:
        lowest, highest, has_some = _common_ends(column, codes, groups)
        is_missing = is_missing | ~has_some
    parts = []
    for suffix, ends, at in (("low", lows, lowest), ("high", highs, highest)):
        values = ends[np.maximum(0, at)] if bins.n_values else np.zeros(len(is_missing), bins.values.dtype)
        parts.append(GroupValues(f"{column.name}_{suffix}", values, is_missing))
    return parts


def _common_ends(
    column: CodedColumn, codes: NDArray[Any], groups: Groups
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Return the first and last common category of each group in the declared order, and whether it has any."""
    bins = column.bins
    assert bins.shared is not None
    by_place = np.arange(bins.n_values) if column.places is None else np.argsort(column.places)
    rank = np.argsort(by_place)
    may_show = np.append(bins.shared.is_common, False)  # the last: missing
    kept = (groups.group >= 0) & may_show[codes]
    first, last = np.full(groups.n_groups, bins.n_values), np.full(groups.n_groups, -1)
    np.minimum.at(first, groups.group[kept], rank[codes[kept]])
    np.maximum.at(last, groups.group[kept], rank[codes[kept]])
    has_some = last >= 0
    if not column.is_text and bins.shared.is_common[bins.shared.most_common]:  # text can miss a value
        first, last = (np.where(has_some, end, rank[bins.shared.most_common]) for end in (first, last))
        has_some = np.ones(groups.n_groups, np.bool_)
    last_place = bins.n_values - 1
    return by_place[np.minimum(first, last_place)], by_place[np.maximum(last, 0)], has_some


def _ranges(
    column: CodedColumn, codes: NDArray[Any], groups: Groups, summary: Summary, j: int, paths: CodePaths | None
) -> GroupValues:
    """Labels such as ``31-34``, ``{nurse, teacher}`` or of a hierarchy, for publication; missing where all are."""
    bins = column.bins
    if paths is not None:
        ends = (summary.lowest[:, j], summary.highest[:, j], summary.n_missing[:, j])
        return GroupValues(column.name, labels=paths.group_labels(*ends))
    if bins.is_ordered:
        spans = _spans(column, summary.lowest[:, j], summary.highest[:, j])
    else:
        assert column.categories is not None and bins.shared is not None
        kept = (groups.group >= 0) & (codes != bins.missing_bin)
        cells = np.unique(groups.group[kept].astype(np.int64) * max(1, bins.n_values) + codes[kept])
        members: list[list[Any]] = [[] for _ in range(groups.n_groups)]
        has_rare = np.zeros(groups.n_groups, np.bool_)
        for cell in cells:  # sorted, so each list is in the order of the categories
            group, code = cell // bins.n_values, cell % bins.n_values
            if bins.shared.is_common[code]:
                members[group].append(column.categories[code])
            else:
                has_rare[group] = True
        named = ([*own, RARE] if rare else own for own, rare in zip(members, has_rare, strict=True))
        spans = [label_set(values) if values else None for values in named]
    some_missing = summary.n_missing[:, j] > 0
    return GroupValues(
        column.name,
        labels=[with_missing(s) if m and s is not None else s for s, m in zip(spans, some_missing, strict=True)],
    )


def _spans(column: CodedColumn, lowest: NDArray[np.int32], highest: NDArray[np.int32]) -> list[str | None]:
    """Return a label for the values of each group from its lowest to its highest bin; None where all are missing."""
    shared = column.bins.shared
    assert shared is not None
    lows, highs = published_ends(column)
    spans: list[str | None] = []
    for low, high in zip(lowest, highest, strict=True):
        if low < 0:
            spans.append(None)
            continue
        label = label_range(
            lows[low], highs[high], column.moment, is_zoned=column.is_zoned,
            opens_below=shared.is_hidden or bool(shared.is_open[0] and shared.low[low] == shared.low[0]),
            opens_above=shared.is_hidden or bool(shared.is_open[1] and shared.high[high] == shared.high[-1]),
        )  # fmt: skip
        spans.append(label)
    return spans


RANGE = NamedRepresentative(
    RepresentativeFacts(
        "range",
        "a label for its cell: the range or the set of values that the tree's splits leave to it, or of its hierarchy",
        keeps_type=False,
        tells_hidden_values=True,
        is_range=True,
    ),
    _range_labels,
    cell_labels,
)
BOUNDS = NamedRepresentative(
    RepresentativeFacts("bounds", "the two ends of its cell, as two columns", keeps_type=False, is_range=True),
    _two_columns,
    cell_bounds,
)
TIGHT_RANGE = NamedRepresentative(
    RepresentativeFacts(
        "tight-range",
        "a label from the lowest to the highest value of its members, which tells who is not among them",
        keeps_type=False,
        tells_hidden_values=True,
        is_range=True,
    ),
    _range_labels,
)
TIGHT_BOUNDS = NamedRepresentative(
    RepresentativeFacts(
        "tight-bounds",
        "the lowest and the highest value of its members, as two columns, which tell who is not among them",
        keeps_type=False,
        is_range=True,
    ),
    _two_columns,
)
