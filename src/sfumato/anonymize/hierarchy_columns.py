# SPDX-License-Identifier: Apache-2.0
"""Columns with a hierarchy.

Methods that form groups need their codes in the order of the tree, and its labels. Full-domain generalization needs the
row of the hierarchy of each record, with equal records merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.columns import Column, GroupedValues
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table
from sfumato.hierarchies import CodePaths, Hierarchy, read_hierarchy
from sfumato.labels import label_moment
from sfumato.partition.lattice_groups import Levels
from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import Taxonomy, make_taxonomy


def checked_hierarchies(
    given: Any, table: Table, rewritten: Sequence[str], *, listed_in: str = "quasi_identifiers"
) -> dict[str, Hierarchy]:
    """Return the hierarchy of each column that has one; raise ParameterError for columns that are not rewritten.

    Parameters
    ----------
    given : mapping or None
    table : Table
    rewritten : sequence of str
        The columns that can have one.
    listed_in : str
        The parameter that names them.
    """
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"{named('hierarchies')} is of the type {type(given).__name__}: expected a dict of columns and "
            "hierarchies. Write for example hierarchies={'age': Hierarchy.from_intervals(range(120), [5, 10])}."
        )
    names = table.resolve(tuple(given), "hierarchies")
    others = [name for name in names if name not in rewritten]
    if others:
        what = {"quasi_identifiers": "a quasi-identifier"}.get(listed_in, f"in {named(listed_in)}")
        raise ParameterError(
            f"{named('hierarchies')} names the column {others[0]!r}, which is not {what}: expected columns "
            f"that are rewritten. Add it to {named(listed_in)}, or remove its hierarchy."
        )
    return {name: as_hierarchy(own, name) for name, own in zip(names, given.values(), strict=True)}


def as_hierarchy(given: Any, name: str) -> Hierarchy:
    """Return the hierarchy of a column, given a hierarchy, a path, rows or a nested mapping."""
    if isinstance(given, Hierarchy):
        return given
    try:
        return Hierarchy.from_mapping(given) if isinstance(given, Mapping) else read_hierarchy(given)
    except (InputError, ParameterError) as error:
        raise type(error)(f"the hierarchy of column {name!r}: " + error.sentence) from None


def numbers_with_hierarchy(given: Any, table: Table) -> list[str]:
    """Return the numeric columns with a hierarchy, which are read as categories; raise for dates and times."""
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
        if (places < 0).any():
            check_known(column.name, np.isin(column.codes, np.flatnonzero(places < 0)), own)
        order = own.tree_order(places)
        rank = np.arange(len(order) + column.bins.has_missing)  # missing stays behind all values
        rank[order] = np.arange(len(order))
        rank = rank.astype(column.codes.dtype)
        # Without a declared order, bounds go by the sorted one, as for other categories.
        declared = np.arange(len(order)) if column.places is None else column.places
        paths[column.name] = own.code_paths(places[order], has_missing=column.bins.has_missing)
        bins = column.bins
        shared = [
            part
            if part is None or not len(order)
            else replace(part, is_common=part.is_common[order], most_common=int(rank[part.most_common]))
            for part in (bins.shared, bins.finer)
        ]
        ordered.append(
            replace(
                column, codes=rank[column.codes], categories=column.categories[order], places=declared[order],
                bins=replace(bins, shared=shared[0], finer=shared[1]),
            )
        )  # fmt: skip
    return ordered, paths


def taxonomy_of(columns: Sequence[CodedColumn], layout: Layout, paths: Mapping[str, CodePaths]) -> Taxonomy:
    """Return the hierarchies of the columns as the engine needs them."""
    own = [paths.get(column.name) for column in columns]
    return make_taxonomy(layout, [None if p is None else (p.labels, p.widths) for p in own])


def check_known(name: str, is_unknown: NDArray[np.bool_], hierarchy: Hierarchy) -> None:
    """Raise InputError if the value of any record is absent from the hierarchy of its column."""
    n_unknown = int(is_unknown.sum())
    if n_unknown:
        raise InputError(
            f"column {name!r} has {n_unknown} of {len(is_unknown)} records with a value that its hierarchy of "
            f"{hierarchy.n_values} values does not have: expected every value. Add rows for them to the hierarchy."
        )


# -- for full-domain generalization ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Domain:
    """One column as rows of its hierarchy; one more row is for missing values.

    Attributes
    ----------
    codes : ndarray of int32
        Row of each record.
    levels : Levels
    """

    codes: NDArray[np.int32]
    levels: Levels


@dataclass(frozen=True, eq=False)
class Records:
    """Records that are equal in all quasi-identifiers, merged.

    Attributes
    ----------
    codes : ndarray of int32, shape (distinct records, columns)
    weights : ndarray of int64
        Number of equal records.
    inverse : ndarray of int32
        The distinct record of each record.
    """

    codes: NDArray[np.int32]
    weights: NDArray[np.int64]
    inverse: NDArray[np.int32]


def read_domain(column: Column, hierarchy: Hierarchy | None, *, is_top: bool = False) -> Domain:
    """Find the values of a column in its hierarchy.

    Parameters
    ----------
    column : Column
    hierarchy : Hierarchy or None
        None: the values of the column, and ``"*"`` above them.
    is_top : bool, default=False
        Whether only the top level matters, where values that the hierarchy does not have are like all others.
    """
    codes, values = _distinct(column)
    if hierarchy is None:
        places, n_values = np.arange(len(values)), len(values)
        labels = np.zeros((n_values + 1, 2), np.int32)
        labels[:, 0] = np.arange(n_values + 1)
        leaf_counts = [np.ones(n_values, np.int64), np.array([n_values])]
    else:
        places, n_values = hierarchy.find(values), hierarchy.n_values
        if not is_top and (places < 0).any():
            is_unknown = (places < 0)[codes]
            if column.missing is not None:
                is_unknown &= ~column.missing
            check_known(column.name, is_unknown, hierarchy)
        labels = np.zeros((n_values + 1, hierarchy.n_levels), np.int32)
        labels[:-1] = hierarchy.codes
        labels[-1, :-1] = [len(own) for own in hierarchy.labels[:-1]]  # below the top, missing is like nothing else
        leaf_counts = list(hierarchy.leaf_counts)
    missing = column.missing
    own_codes = np.full(column.n_records, n_values, np.int32)
    if len(places):
        np.where(places < 0, n_values, places).astype(np.int32).take(codes, out=own_codes)
    if missing is not None:
        own_codes[missing] = n_values
    n_leaves = n_values + (missing is not None)
    losses = np.zeros(labels.shape)
    for level, leaves in enumerate(leaf_counts[:-1]):
        losses[:-1, level] = (leaves[labels[:-1, level]] - 1) / max(1, n_leaves - 1)
    losses[:, -1] = 1.0 if n_leaves > 1 else 0.0
    return Domain(own_codes, Levels(labels, losses))


def as_read(column: Column) -> GroupedValues:
    """Return the values of a column as read, so that equal values are written alike."""
    if column.categories is not None:
        codes, values = column.values, np.arange(len(column.categories))
    else:
        codes, values = _encode(column.values)
    if column.missing is None:
        return GroupedValues(values, None, codes, moment=column.moment)
    missing = np.zeros(len(values) + 1, np.bool_)
    missing[-1] = True
    group = np.where(column.missing, len(values), codes)
    return GroupedValues(np.append(values, values.dtype.type(0)), missing, group, moment=column.moment)


def _distinct(column: Column) -> tuple[NDArray[np.int32], list[Any]]:
    """Return the index of each record's value among the distinct values of a column, and these values, sorted."""
    if column.categories is not None:
        return column.values, column.categories.tolist()
    codes, values = _encode(column.values)
    if column.moment is not None:
        return codes, [label_moment(value, column.moment) for value in values.tolist()]
    return codes, values.tolist()


def _encode(values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the index of each value among the sorted distinct ones; hashing is faster than sorting them all."""
    import pyarrow as pa

    encoded = pa.array(values).dictionary_encode()
    distinct = encoded.dictionary.to_numpy(zero_copy_only=False)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[encoded.indices.to_numpy(zero_copy_only=False)], distinct[order]


def join_alike(domains: Sequence[Domain]) -> Records:
    """Merge equal records, in an order that depends on their values alone."""
    key = np.zeros(len(domains[0].codes), np.int64)
    n_keys = 1
    for domain in domains:
        n_values = len(domain.levels.labels)
        if n_keys * n_values >= 1 << 62:
            key, n_keys = _encode(key)[0].astype(np.int64), len(key)
        key *= n_values
        key += domain.codes
        n_keys *= n_values
    inverse, distinct = _encode(key)
    first = np.empty(len(distinct), np.int64)
    first[inverse[::-1]] = np.arange(len(inverse) - 1, -1, -1)
    codes = np.column_stack([domain.codes[first] for domain in domains]).astype(np.int32)
    return Records(codes, np.bincount(inverse, minlength=len(distinct)).astype(np.int64), inverse)
