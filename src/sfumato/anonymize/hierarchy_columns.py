# SPDX-License-Identifier: Apache-2.0
"""Columns with a hierarchy, for the methods that form groups: their codes in the order of the tree, and its labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.anonymize.domains import as_hierarchy
from sfumato.coded_columns import CodedColumn
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table
from sfumato.hierarchies import CodePaths, Hierarchy
from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import Taxonomy, make_taxonomy


def checked_hierarchies(given: Any, table: Table, quasi_identifiers: Sequence[str]) -> dict[str, Hierarchy]:
    """Return the hierarchy of each column that was given one; refuse columns that are not rewritten."""
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"{named('hierarchies')} is of the type {type(given).__name__}: expected a dict of columns and "
            "hierarchies. Write for example hierarchies={'age': Hierarchy.from_intervals(range(120), [5, 10])}."
        )
    names = table.resolve(tuple(given), "hierarchies")
    others = [name for name in names if name not in quasi_identifiers]
    if others:
        raise ParameterError(
            f"{named('hierarchies')} names the column {others[0]!r}, which is not a quasi-identifier: expected columns "
            f"that are rewritten. Add it to {named('quasi_identifiers')}, or remove its hierarchy."
        )
    return {name: as_hierarchy(own, name) for name, own in zip(names, given.values(), strict=True)}


def numbers_with_hierarchy(given: Any, table: Table) -> list[str]:
    """Return the columns of numbers that have a hierarchy: they are read as categories. Refuse dates and times."""
    if not isinstance(given, Mapping):
        return []
    numbers = []
    for name in table.resolve(tuple(given), "hierarchies"):
        column = table.column(name)
        if column.kind == "moment":
            raise ParameterError(
                f"hierarchies names the column {name!r}, which holds dates or times: expected numbers or text. Convert "
                "it to text first, as it stands in the hierarchy."
            )
        # A column without any value may hold numbers when other records are released.
        if column.kind == "number" or (column.missing is not None and bool(column.missing.all())):
            numbers.append(name)
    return numbers


def in_tree_order(
    columns: Sequence[CodedColumn], hierarchies: Mapping[str, Hierarchy]
) -> tuple[list[CodedColumn], dict[str, CodePaths]]:
    """Return the columns with the codes of those that have a hierarchy in its order, and the labels above them."""
    ordered: list[CodedColumn] = []
    paths: dict[str, CodePaths] = {}
    for column in columns:
        if column.name not in hierarchies:
            ordered.append(column)
            continue
        own = hierarchies[column.name]
        assert column.categories is not None  # numbers with a hierarchy are read as categories
        places = own.find(column.categories.tolist())
        _check_known(column, places < 0, own)
        order = own.tree_order(places)
        rank = np.arange(len(order) + column.bins.has_missing)  # missing stays behind all values
        rank[order] = np.arange(len(order))
        rank = rank.astype(column.codes.dtype)
        # Without a declared order, bounds go by the sorted one, as for other categories.
        declared = np.arange(len(order)) if column.places is None else column.places
        paths[column.name] = own.code_paths(places[order], has_missing=column.bins.has_missing)
        shared = column.bins.shared
        if shared is not None and len(order):
            most_common = int(rank[shared.most_common])
            shared = replace(shared, is_common=shared.is_common[order], most_common=most_common)
        ordered.append(
            replace(
                column, codes=rank[column.codes], categories=column.categories[order], places=declared[order],
                bins=replace(column.bins, shared=shared),
            )
        )  # fmt: skip
    return ordered, paths


def taxonomy_of(columns: Sequence[CodedColumn], layout: Layout, paths: Mapping[str, CodePaths]) -> Taxonomy:
    """Return the hierarchies of the columns as the engine needs them."""
    own = [paths.get(column.name) for column in columns]
    return make_taxonomy(layout, [None if p is None else (p.labels, p.widths) for p in own])


def _check_known(column: CodedColumn, is_unknown: Any, hierarchy: Hierarchy) -> None:
    if is_unknown.any():
        n_unknown = int(np.isin(column.codes, np.flatnonzero(is_unknown)).sum())
        raise InputError(
            f"column {column.name!r} has {n_unknown} of {len(column.codes)} records with a value that its hierarchy "
            f"of {hierarchy.n_values} values does not have: expected every value. Add rows for them to the hierarchy."
        )
