# SPDX-License-Identifier: Apache-2.0
"""Attributes with a hierarchy: all categories that it lists, and the labels above them.

A hierarchy is public, so its categories can be listed in a generalization however few records have them. Those that
few or no records of the sample have are placed where their parents are; ``category_orders`` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.hierarchy_columns import check_known
from sfumato.coded_columns import CodedColumn
from sfumato.hierarchies import Hierarchy
from sfumato.minimize.sample import Sample
from sfumato.partition.binning import bin_own_categories, code_type


def with_hierarchies(sample: Sample, hierarchies: Mapping[str, Hierarchy]) -> Sample:
    """Return the sample with all categories of hierarchies, and the labels above them."""
    columns = list(sample.columns)
    parents: dict[int, NDArray[np.int64]] = {}
    for name, hierarchy in hierarchies.items():
        position = sample.names.index(name)
        columns[position], parents[position] = _with_all(columns[position], hierarchy)
    return replace(sample, columns=columns, parents=parents)


def _with_all(column: CodedColumn, hierarchy: Hierarchy) -> tuple[CodedColumn, NDArray[np.int64]]:
    assert column.categories is not None  # numbers with a hierarchy are read as categories
    seen = column.categories.tolist()
    places = hierarchy.find(seen)
    check_known(column.name, np.isin(column.codes, np.flatnonzero(places < 0)), hierarchy)
    others = [place for place in range(hierarchy.n_values) if place not in set(places.tolist())]
    values = dict(zip(seen, places.tolist(), strict=True))
    for place in others:
        value = _as_value(hierarchy.values[place], seen)
        if value is not None:
            values.setdefault(value, place)
    every = sorted(values)
    categories = np.empty(len(every), object)
    categories[:] = every
    has_missing = column.bins.has_missing
    bins = bin_own_categories(len(every), has_missing)
    number = {value: code for code, value in enumerate(every)}
    new = np.array([*(number[value] for value in seen), *([len(every)] if has_missing else [])], code_type(bins.n_bins))
    above = hierarchy.codes[[values[value] for value in every], 1:].astype(np.int64)
    if has_missing:  # like nothing else below the top
        above = np.vstack([above, [*(len(own) for own in hierarchy.labels[1:-1]), 0]])
    return replace(column, bins=bins, codes=new[column.codes], categories=categories, places=None), above


def _as_value(text: str, seen: list[Any]) -> Any:
    """Return a value of a hierarchy as the column spells it; None if the column cannot hold it."""
    if all(isinstance(value, str) for value in seen):
        return text
    if all(isinstance(value, bool | np.bool_) for value in seen):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number
