# SPDX-License-Identifier: Apache-2.0
"""Cells: what the splits of a tree leave to a group, column by column, as labels or as two columns.

A cell does not depend on who is in it. Cells cover the whole space, so nobody lies outside all of them, and their ends
lie between values of the table wherever there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.hierarchies import CodePaths
from sfumato.labels import ANY_VALUE, RARE, label_range, label_set, with_missing
from sfumato.partition.cells import ColumnCells, Inside
from sfumato.representatives.ends import ends_of_cuts, published_ends
from sfumato.representatives.representative import GroupValues

_MOST_LISTED = 100
"""Categories that a label lists; a longer label would be written with every record of its groups."""

_NOTHING = "no values"
"""In the place of an end: the cell has missing values only."""


@dataclass(frozen=True, eq=False)
class CellColumn:
    """A column and its cells.

    Attributes
    ----------
    column : CodedColumn
        Of the records that are described: what may be published of their values.
    cells : ColumnCells
        Over the codes of the tree.
    cuts : ndarray
        Ordered columns: the thresholds between the codes of the tree.
    codes : ndarray of int64
        Categories: the code in the tree of each category of `column`.
    paths : CodePaths or None
        The labels above the categories of a column with a hierarchy.
    """

    column: CodedColumn
    cells: ColumnCells
    cuts: NDArray[Any]
    codes: NDArray[np.int64]
    paths: CodePaths | None = None

    def inside(self) -> Inside:
        """Return which codes of the column lie in the cell of each group."""
        cells, bins = self.cells, self.column.bins
        if bins.is_ordered:
            place = np.searchsorted(self.cuts, bins.values, side="left")
            holds = (cells.low[:, np.newaxis] <= place) & (place <= cells.high[:, np.newaxis])
        else:
            holds = cells.all_hold(self.codes)
        if bins.has_missing:
            holds = np.column_stack([holds, cells.has_missing])
        return Inside(cells.of_group, holds, np.asarray(holds.all(axis=1)))


def cell_labels(columns: Sequence[CellColumn]) -> dict[str, list[GroupValues]]:
    """Return labels such as ``31-34``, ``{nurse, teacher}`` or of a hierarchy for the cell of each group."""
    made: dict[str, list[GroupValues]] = {}
    for own in columns:
        if own.paths is not None:
            texts = _hierarchy_labels(own, own.paths)
        else:
            texts = _range_labels(own) if own.column.bins.is_ordered else _set_labels(own)
        labels = [texts[cell] for cell in own.cells.of_group.tolist()]
        made[own.column.name] = [GroupValues(own.column.name, labels=labels)]
    return made


def cell_bounds(columns: Sequence[CellColumn]) -> dict[str, list[GroupValues]]:
    """Return the ends of the cell of each group as two columns, missing where it has no values.

    A side without an end gets the outermost published end of the column, so that numbers stay numbers. Categories go
    by the order that their type declares, and without one by the sorted order, which is a convention.
    """
    made: dict[str, list[GroupValues]] = {}
    for own in columns:
        bins, name = own.column.bins, own.column.name
        if not bins.n_values:
            n_groups = len(own.cells.of_group)
            ends, is_missing = np.zeros((2, n_groups), bins.values.dtype), np.ones(n_groups, np.bool_)
        else:
            by_cell, has_none = _number_ends(own) if bins.is_ordered else _category_ends(own)
            ends, is_missing = by_cell[:, own.cells.of_group], has_none[own.cells.of_group]
        suffixes = zip(("low", "high"), ends, strict=True)
        made[name] = [GroupValues(f"{name}_{suffix}", values, is_missing) for suffix, values in suffixes]
    return made


# -- numbers, dates and times --------------------------------------------------------------------------------------


def _range_labels(own: CellColumn) -> list[str | None]:
    column, cells = own.column, own.cells
    if not column.bins.n_values:
        return [None] * cells.n_cells
    labels: list[str | None] = []
    for (first, last), has_missing in zip(_ends_of_cells(own), cells.has_missing.tolist(), strict=True):
        if first is _NOTHING:
            labels.append(None)
            continue
        low, high = (last if first is None else first), (first if last is None else last)
        label = label_range(
            low or 0, high or 0, column.moment,
            is_zoned=column.is_zoned, opens_below=first is None, opens_above=last is None,
        )  # fmt: skip
        labels.append(with_missing(label) if has_missing and column.bins.has_missing else label)
    return labels


def _number_ends(own: CellColumn) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the low and the high end of each cell, and which cells have no values."""
    lows, highs = published_ends(own.column)
    outermost = lows[0].item(), max(lows[0].item(), highs[-1].item())
    ends, has_none = np.zeros((2, own.cells.n_cells), lows.dtype), np.zeros(own.cells.n_cells, np.bool_)
    for cell, (first, last) in enumerate(_ends_of_cells(own)):
        if first is _NOTHING:
            has_none[cell] = True
            continue
        low, high = outermost[0] if first is None else first, outermost[1] if last is None else last
        # Nothing beyond the outermost published ends is written: few records have values there.
        ends[:, cell] = [min(max(end, outermost[0]), outermost[1]) for end in (low, high)]
    return ends, has_none


def _ends_of_cells(own: CellColumn) -> list[tuple[Any, Any]]:
    """Return the first and the last value of each cell; None for an open side, `_NOTHING` for cells without values."""
    shared = own.column.bins.shared
    assert shared is not None
    ends = [(None, None)] * len(own.cuts) if shared.is_hidden else ends_of_cuts(own.column, own.cuts)
    found: list[tuple[Any, Any]] = []
    for low, high in zip(own.cells.low.tolist(), own.cells.high.tolist(), strict=True):
        if low > high:
            found.append((_NOTHING, _NOTHING))
            continue
        first = ends[low - 1][1] if low > 0 else None
        last = ends[high][0] if high < len(ends) else None
        found.append((first, last if first is None or last is None else max(first, last)))
    return found


# -- categories ----------------------------------------------------------------------------------------------------


def _set_labels(own: CellColumn) -> list[str | None]:
    column, cells = own.column, own.cells
    assert column.categories is not None and column.bins.shared is not None
    is_common, categories = column.bins.shared.is_common, column.categories
    labels: list[str | None] = []
    for cell in range(cells.n_cells):
        inside = cells.holds(cell, own.codes)
        if not inside.any():
            labels.append(None)
            continue
        rare = [RARE] if (inside & ~is_common).any() else []  # categories that few have are not named
        named = categories[inside & is_common]
        label = ANY_VALUE if inside.all() or len(named) > _MOST_LISTED else label_set([*named, *rare])
        labels.append(with_missing(label) if cells.has_missing[cell] and column.bins.has_missing else label)
    return labels


def _hierarchy_labels(own: CellColumn, paths: CodePaths) -> list[str | None]:
    """Return the lowest label that stands for all values of a cell; codes are in the order of the hierarchy."""
    n_cells = own.cells.n_cells
    lowest, highest = np.full(n_cells, -1, np.int32), np.full(n_cells, -1, np.int32)
    for cell in range(n_cells):
        inside = np.flatnonzero(own.cells.holds(cell, own.codes))
        if len(inside):
            lowest[cell], highest[cell] = inside[[0, -1]]
    has_missing = (own.cells.has_missing & own.column.bins.has_missing).astype(np.int64)
    return paths.group_labels(lowest, highest, has_missing)


def _category_ends(own: CellColumn) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the first and the last common category of each cell in the declared order, and which cells have none."""
    column, n_cells = own.column, own.cells.n_cells
    shared = column.bins.shared
    assert shared is not None
    by_place = np.arange(len(own.codes)) if column.places is None else np.argsort(column.places)
    ends, has_none = np.zeros((2, n_cells), np.int64), np.zeros(n_cells, np.bool_)
    is_named = not column.is_text and bool(shared.is_common[shared.most_common])  # text can miss a value
    for cell in range(n_cells):
        inside = own.cells.holds(cell, own.codes)
        named = by_place[(inside & shared.is_common)[by_place]]
        if len(named):
            ends[:, cell] = named[[0, -1]]
        elif is_named and inside.any():
            ends[:, cell] = shared.most_common
        else:
            has_none[cell] = True
    return ends, has_none
