# SPDX-License-Identifier: Apache-2.0
"""Columns as rows of their hierarchies, and records that are alike joined: what full-domain generalization works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column, GroupedValues
from sfumato.errors import InputError, ParameterError
from sfumato.hierarchies import Hierarchy, read_hierarchy
from sfumato.labels import label_moment
from sfumato.partition.lattice_groups import Levels


@dataclass(frozen=True, eq=False)
class Domain:
    """One column as rows of its hierarchy; the row behind the last is for missing values.

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
    """Records that are alike in all quasi-identifiers, joined.

    Attributes
    ----------
    codes : ndarray of int32, shape (distinct records, columns)
    weights : ndarray of int64
        How many records are alike.
    inverse : ndarray of int32
        Which of the distinct records each record is.
    """

    codes: NDArray[np.int32]
    weights: NDArray[np.int64]
    inverse: NDArray[np.int32]


def as_hierarchy(given: Any, name: str) -> Hierarchy:
    """Return the hierarchy of a column from what a user hands in: a hierarchy, a path, rows or a nested mapping."""
    if isinstance(given, Hierarchy):
        return given
    try:
        return Hierarchy.from_mapping(given) if isinstance(given, Mapping) else read_hierarchy(given)
    except (InputError, ParameterError) as error:
        raise type(error)(f"the hierarchy of column {name!r}: " + error.sentence) from None


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
        _check_known(column, codes, places, hierarchy, is_top)
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
    """Return the values of a column as they were read, so that values that count as equal are written alike."""
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
    """Return the different values of a column, sorted, and which of them each record has."""
    if column.categories is not None:
        return column.values, column.categories.tolist()
    codes, values = _encode(column.values)
    if column.moment is not None:
        return codes, [label_moment(value, column.moment) for value in values.tolist()]
    return codes, values.tolist()


def _encode(values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the place of each value among the sorted different ones; by hashing, which beats sorting them all."""
    import pyarrow as pa

    encoded = pa.array(values).dictionary_encode()
    distinct = encoded.dictionary.to_numpy(zero_copy_only=False)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[encoded.indices.to_numpy(zero_copy_only=False)], distinct[order]


def _check_known(
    column: Column, codes: NDArray[np.int32], places: NDArray[np.int64], hierarchy: Hierarchy, is_top: bool
) -> None:
    if is_top or not (places < 0).any():
        return
    is_unknown = (places < 0)[codes]
    if column.missing is not None:
        is_unknown &= ~column.missing
    n_unknown = int(is_unknown.sum())
    if n_unknown:
        raise InputError(
            f"column {column.name!r} has {n_unknown} of {column.n_records} records with a value that its hierarchy "
            f"of {hierarchy.n_values} values does not have: expected every value. Add rows for them to the hierarchy."
        )


def join_alike(domains: Sequence[Domain]) -> Records:
    """Join the records that are alike in all columns, in an order that depends on their values alone."""
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
