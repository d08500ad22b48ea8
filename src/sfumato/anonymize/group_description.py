# SPDX-License-Identifier: Apache-2.0
"""Describe groups: how wide they are, and the values that stand for them, from their members or from a tree's cells."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.recoding import Recoding
from sfumato.coded_columns import CodedColumn
from sfumato.errors import PrivacyWarning, named
from sfumato.hierarchies import CodePaths
from sfumato.partition.group_summaries import Groups, Summary, summarize, widths
from sfumato.partition.guides import Guide
from sfumato.partition.records import Layout
from sfumato.partition.surroundings import Surroundings
from sfumato.representatives import (
    REPRESENTATIVES,
    CellColumn,
    GroupValues,
    has_cells,
    looks_around,
    represent,
    represent_cells,
    shown_of,
)


class GroupDescription(NamedTuple):
    """The width of each group in each column, and the values that its records get."""

    width: NDArray[np.float64]
    values: dict[str, list[GroupValues]]


def describe_groups(
    representative: str,
    columns: Sequence[CodedColumn],
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    paths: Mapping[str, CodePaths],
    *,
    guide: Guide | None,
    random_state: Any,
    n_threads: int,
    cells: Sequence[CellColumn] | None = None,
    around: Surroundings | None = None,
) -> GroupDescription:
    """Measure groups and choose the values that stand for them: from cells, or from members and their neighbors."""
    may_show = shown_of(columns, layout).may_show
    summary = summarize(codes, groups, layout, may_show=may_show, n_threads=n_threads)
    if cells is not None:
        values = represent_cells(representative, cells)
    else:
        values = represent(
            representative, columns, codes, groups, layout,
            guide=guide, random_state=random_state, summary=summary, n_threads=n_threads, paths=paths,
            around=around,
        )  # fmt: skip
    return GroupDescription(group_widths(summary, layout, columns, paths), values)


def cells_for(
    representative: str,
    partition: Recoding,
    columns: Sequence[CodedColumn],
    paths: Mapping[str, CodePaths],
    group_of_leaf: NDArray[np.integer[Any]] | None = None,
) -> list[CellColumn] | None:
    """Return the cells that a representative is written from; None for one that looks at the members of groups."""
    return partition.cell_columns(columns, paths, group_of_leaf) if has_cells(representative) else None


def surroundings_for(
    representative: str,
    partition: Recoding,
    columns: Sequence[CodedColumn],
    paths: Mapping[str, CodePaths],
    sizes: NDArray[np.int64],
    group_of_leaf: NDArray[np.integer[Any]] | None = None,
) -> Surroundings | None:
    """Return the neighbors that a representative looks at; None for one that looks at members alone."""
    return partition.surroundings(columns, paths, sizes, group_of_leaf) if looks_around(representative) else None


def warn_of_tight_ranges(representative: str, cells: Sequence[CellColumn] | None, *, stacklevel: int) -> None:
    """Warn if ranges are released that end where the members of a group end."""
    if not REPRESENTATIVES[representative].facts.is_range or cells is not None:
        return
    remedy = "Use a method that grows a tree of boxes, or another representative."
    if not has_cells(representative):
        remedy = f"Use {named('representative', representative.removeprefix('tight-'))}, whose ranges cover all values."
    warnings.warn(
        "ranges end at the lowest and highest members of a group: a person outside all of them is certainly not in "
        f"the table, and an end is often a member's value. {remedy}",
        PrivacyWarning,
        stacklevel=stacklevel,
    )


def group_widths(
    summary: Summary, layout: Layout, columns: Sequence[CodedColumn], paths: Mapping[str, CodePaths]
) -> NDArray[np.float64]:
    """Return the width of each group in each column; of a column with a hierarchy, the width of the group's label."""
    result = widths(summary, layout)
    for j, column in enumerate(columns):
        if column.name in paths:
            ends = (summary.lowest[:, j], summary.highest[:, j], summary.n_missing[:, j])
            result[:, j] = paths[column.name].group_widths(*ends)
    return result
