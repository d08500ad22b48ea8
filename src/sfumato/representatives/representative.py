# SPDX-License-Identifier: Apache-2.0
"""Compute the values that represent a group: every record of a group gets the same values.

All kinds work on bins and on the bins that may be published, so backends with the same bins give the same result.
Called by ``anonymize`` with the coded columns of the records to release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.errors import ParameterError, named
from sfumato.hierarchies import CodePaths
from sfumato.partition.binning import Bins
from sfumato.partition.group_summaries import Groups, Summary, summarize
from sfumato.partition.guides import Guide
from sfumato.partition.phantom_search import FREE, NOTHING, Shown, make_shown, shown_or_fallback
from sfumato.partition.records import Layout
from sfumato.partition.surroundings import Surroundings
from sfumato.representatives import REPRESENTATIVES

if TYPE_CHECKING:
    from sfumato.representatives.cells import CellColumn

Representative = str
"""One of the names of `REPRESENTATIVES`."""


@dataclass(frozen=True)
class RepresentativeFacts:
    """Facts of a representative for policies, commands, reports and the documentation.

    Attributes
    ----------
    name : str
    sentence : str
        The values that the records of a group get, without the final period.
    is_real_person : bool
        Whether the values are those of one record of the group.
    keeps_type : bool
        Whether a column keeps its type, so that a model can predict raw records.
    needs_seed : bool
        Whether it is drawn at random.
    looks_at_predictions : bool
        Whether it depends on predictions or labels, where there are some.
    computes_numbers : bool
        Whether it computes new numbers, which makes no sense for codes that look like numbers.
    tells_hidden_values : bool
        Whether it also writes columns of which no value may be published.
    is_range : bool
        Whether it says which values are possible in a group, not which are typical.
    """

    name: str
    sentence: str
    is_real_person: bool = False
    keeps_type: bool = True
    needs_seed: bool = False
    looks_at_predictions: bool = False
    computes_numbers: bool = False
    tells_hidden_values: bool = False
    is_range: bool = False


@dataclass(frozen=True)
class NamedRepresentative:
    """A representative that users choose by name: its facts, and functions that write the values of groups.

    `write` looks at the members of groups, and at those of neighboring groups if `looks_around`. `write_cells`, where
    there is one, looks at the cells of a tree instead.
    """

    facts: RepresentativeFacts
    write: Callable[[Scene], dict[str, list[GroupValues]]]
    write_cells: Callable[[Sequence[CellColumn]], dict[str, list[GroupValues]]] | None = None
    looks_around: bool = False


@dataclass(frozen=True, eq=False)
class GroupValues:
    """One value per group for one column of the release, before it is written in the frame's type.

    Attributes
    ----------
    name : str
        Name in the release; differs from the column's for bounds.
    values : ndarray or None
        Numbers, microseconds or category indexes; None for labels.
    missing : ndarray of bool or None
    labels : list of str or None
        Text, for ``"range"``.
    """

    name: str
    values: NDArray[Any] | None = None
    missing: NDArray[np.bool_] | None = None
    labels: list[str | None] | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """The groups that a representative rewrites.

    Attributes
    ----------
    columns : sequence of CodedColumn
        The quasi-identifiers.
    codes : ndarray, shape (n, at least len(columns))
        Codes of all records, the quasi-identifiers first.
    groups : Groups
    layout : Layout
    shown : Shown
        What may be published of the codes.
    summary : Summary
        The lowest, the highest and the middle code of every group.
    guide : Guide or None
        Predictions of the records.
    random_state : Generator or None
    n_threads : int
    paths : mapping of str to CodePaths
        The labels above the codes of columns with a hierarchy.
    around : Surroundings or None
        The neighbors of every group; None where no tree of boxes tells who they are.
    """

    columns: Sequence[CodedColumn]
    codes: NDArray[Any]
    groups: Groups
    layout: Layout
    shown: Shown
    summary: Summary
    guide: Guide | None = None
    random_state: np.random.Generator | None = None
    n_threads: int = 1
    paths: Mapping[str, CodePaths] = field(default_factory=dict)
    around: Surroundings | None = None

    @cached_property
    def middle(self) -> NDArray[np.int32]:
        """The middle code of every group and column that may be published."""
        return shown_or_fallback(self.summary.middle, self.layout, self.shown)


def check_representative(kind: str) -> None:
    """Raise ParameterError for an unknown representative."""
    if kind not in REPRESENTATIVES:
        raise ParameterError(
            f"{named('representative', kind)}: expected one of {', '.join(REPRESENTATIVES)}. 'phantom' shows nobody's "
            "values."
        )


def represent(
    kind: str,
    columns: Sequence[CodedColumn],
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    *,
    guide: Guide | None = None,
    random_state: np.random.Generator | None = None,
    summary: Summary | None = None,
    n_threads: int = 1,
    paths: Mapping[str, CodePaths] | None = None,
    around: Surroundings | None = None,
) -> dict[str, list[GroupValues]]:
    """Return the values that each group's records get, per column.

    Parameters
    ----------
    kind : str
        One of `REPRESENTATIVES`.
    columns : sequence of CodedColumn
        The quasi-identifiers.
    codes : ndarray, shape (n, at least len(columns))
        Codes of all records, the quasi-identifiers first and in the order of `columns`.
    groups : Groups
    layout : Layout
        Of the quasi-identifiers.
    guide : Guide, optional
        Predictions of the records, which ``"model"`` and ``"member"`` look at. Without them both take the member
        nearest the group's median.
    random_state : Generator, optional
        Needed for ``"sample"``.
    summary : Summary, optional
        Spares counting the groups again.
    paths : mapping of str to CodePaths, optional
        For columns with a hierarchy: the labels above their codes. ``"range"`` publishes the lowest common ancestor.
    around : Surroundings, optional
        For ``"phantom"``: the neighbors of every group. Without them it takes the values of the group's own members.
    """
    shown = shown_of(columns, layout)
    if summary is None:
        summary = summarize(codes, groups, layout, may_show=shown.may_show, n_threads=n_threads)
    chosen: NamedRepresentative = REPRESENTATIVES[kind]
    made = chosen.write(
        Scene(columns, codes, groups, layout, shown, summary, guide, random_state, n_threads, dict(paths or {}), around)
    )
    return made if chosen.facts.tells_hidden_values else _without_hidden(made, columns, groups.n_groups)


def represent_cells(kind: str, columns: Sequence[CellColumn]) -> dict[str, list[GroupValues]]:
    """Return the values that each group's records get, per column, from the cells of a tree.

    Parameters
    ----------
    kind : str
        A representative that can be written from cells.
    columns : sequence of CellColumn
        The quasi-identifiers.
    """
    chosen: NamedRepresentative = REPRESENTATIVES[kind]
    assert chosen.write_cells is not None
    made = chosen.write_cells(columns)
    if chosen.facts.tells_hidden_values:
        return made
    return _without_hidden(made, [own.column for own in columns], len(columns[0].cells.of_group))


def has_cells(kind: str) -> bool:
    """Return True if a representative is written from the cells of a tree, where there are some."""
    return REPRESENTATIVES[kind].write_cells is not None


def looks_around(kind: str) -> bool:
    """Return True if a representative looks at neighboring groups, too."""
    chosen: NamedRepresentative = REPRESENTATIVES[kind]
    return chosen.looks_around


def _without_hidden(
    made: dict[str, list[GroupValues]], columns: Sequence[CodedColumn], n_groups: int
) -> dict[str, list[GroupValues]]:
    """Return the values without those of columns of which nothing may be published."""
    for column in columns:
        if column.bins.shared is not None and column.bins.shared.is_hidden:
            made[column.name] = [replace(own, missing=np.ones(n_groups, np.bool_)) for own in made[column.name]]
    return made


def shown_of(columns: Sequence[CodedColumn], layout: Layout) -> Shown:
    """Return which codes of all columns may be published."""
    return make_shown([column.bins for column in columns], layout, [column.is_text for column in columns])


def values_of_codes(columns: Sequence[CodedColumn], codes: NDArray[np.int32]) -> dict[str, list[GroupValues]]:
    """Return the published values for the codes of each group, shape (groups, columns)."""
    return {c.name: [values_of_bins(c.name, c.bins, codes[:, j])] for j, c in enumerate(columns)}


def values_of_bins(name: str, bins: Bins, codes: NDArray[np.integer[Any]]) -> GroupValues:
    """Return the published values for one code of a column per group."""
    assert bins.shared is not None
    missing = codes == NOTHING
    if bins.has_missing:
        missing |= codes == bins.missing_bin
    if not bins.n_values:
        return GroupValues(name, np.zeros(len(codes), bins.values.dtype), np.ones(len(codes), np.bool_))
    is_free = codes <= FREE
    values = bins.shared.values[np.where(missing | is_free, 0, codes)]
    if is_free.any():
        values = np.where(is_free, bins.shared.free[np.where(is_free, FREE - codes, 0)], values)
    return GroupValues(name, values, missing)
