# SPDX-License-Identifier: Apache-2.0
"""Group counts of a table in memory. Every group is a kind of its own, in the order in which groups are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.group_counts import GroupCounts, GroupRequest, SensitiveCounts
from sfumato.backends.group_rows import (
    check_positive,
    count_rows,
    distinct_rows,
    equal_counts,
    fewest_persons,
    keys_of,
    match_counts,
    n_not_positive,
    weights_of,
)
from sfumato.backends.memory.unique_sets import MemoryUniqueSets
from sfumato.columns import Column
from sfumato.errors import InputError
from sfumato.frames import Table, read_table
from sfumato.grouping import MISSING, Codes, Grouping, encode, encode_together, group


class MemoryTable:
    """A table in memory that can be measured."""

    cannot: Mapping[str, str] = {}

    def __init__(self, table: Table) -> None:
        self.example = table

    def population(self, given: Any, keys: Sequence[str]) -> MemoryTable:
        """Read the table of a population."""
        return MemoryTable(read_table(given, categorical=[name for name in self.example.categorical if name in keys]))

    def counting(self, request: GroupRequest) -> AbstractContextManager[MemoryCounting]:
        """Return what counts this table."""
        return nullcontext(MemoryCounting(self.example, request))


class MemoryCounting:
    """Counts the groups of a table, and the records that columns make unique."""

    def __init__(self, table: Table, request: GroupRequest) -> None:
        self.n_records = table.n_records
        self._table, self._request = table, request

    @cached_property
    def _codes(self) -> dict[str, Codes]:
        return {name: encode(self._table.column(name, for_counting=True)) for name in self._request.columns}

    @cached_property
    def _groups(self) -> Grouping:
        return group([self._codes[name] for name in self._request.keys], self.n_records)

    def unique_sets(self) -> MemoryUniqueSets:
        """Return all columns, ready to be counted."""
        return MemoryUniqueSets.of_groups(self._codes, self._request.keys, self._groups)

    def group_counts(self) -> GroupCounts:
        """Count the groups."""
        request = self._request
        weights = self._weights()
        codes = [self._codes[name].values for name in request.keys]
        groups, sizes = self._groups, self._groups.sizes
        n_with_missing = int(np.logical_or.reduce([own == MISSING for own in codes]).sum())
        keys, matched = None, sizes
        if request.missing == "wildcard" and n_with_missing:
            keys = keys_of(codes, groups)
            matched = match_counts(keys, keys, sizes[:, None])[:, 0]
        people = None if request.population is None else request.population.example
        return GroupCounts(
            sizes=sizes,
            matched=matched,
            n_groups=np.ones_like(sizes),
            in_population=None if people is None else self._in_population(people),
            is_matching=keys is not None,
            n_with_missing=n_with_missing,
            n_people=None if people is None else people.n_records,
            fewest_persons=None if request.unit is None else fewest_persons(groups, self._codes[request.unit]),
            of_weights=[] if weights is None else [request.work_on_weights(sizes, weights)],
            sensitive=self._sensitive(keys),
        )

    def _weights(self) -> NDArray[np.float64] | None:
        """Return the sum of the weights of each group."""
        given = self._request.weights
        if given is None:
            return None
        if isinstance(given, str):
            values = weights_of(self._table.column(given))
        else:
            try:
                values = np.asarray(given, dtype=np.float64)
            except (TypeError, ValueError):
                values = np.full(self.n_records, np.nan)
            if values.shape != (self.n_records,):
                raise InputError(
                    f"weights has the shape {values.shape} and the table {self.n_records} records: expected one weight "
                    "per record."
                )
        check_positive(n_not_positive(values), self.n_records)
        return np.add.reduceat(values[self._groups.order], self._groups.starts[:-1])

    def _in_population(self, people: Table) -> NDArray[np.int64]:
        """Return how many people of the population each group's records match."""
        request = self._request
        pairs = [
            encode_together(self._table.column(name, for_counting=True), people.column(name, for_counting=True))
            for name in request.keys
        ]
        theirs = group([second for _, second in pairs], people.n_records)
        keys = keys_of([first.values for first, _ in pairs], self._groups)
        their_keys = keys_of([second.values for _, second in pairs], theirs)
        if request.missing == "wildcard" and any(first.has_missing or second.has_missing for first, second in pairs):
            return match_counts(keys, their_keys, theirs.sizes[:, None])[:, 0]
        return equal_counts(keys, their_keys, theirs.sizes)

    def _sensitive(self, keys: NDArray[np.int32] | None) -> Iterator[SensitiveCounts]:
        """Yield the values of each sensitive column; with keys, of all records that a group matches."""
        for name in self._request.sensitive:
            column = self._table.column(name, for_counting=True)
            codes, values = _ordered_codes(column)
            rows = count_rows(self._groups.of_records(), self._groups.n_groups, codes, len(values))
            reference = np.bincount(codes, minlength=len(values))
            yield SensitiveCounts(name, column.is_text, values, reference, distinct_rows(rows, keys))


def _ordered_codes(column: Column) -> tuple[NDArray[np.int64], list[Any]]:
    """Code the values in their order, missing last, and list them, None for missing."""
    if column.categories is not None:
        values, codes = list(column.categories), column.values.astype(np.int64)
    else:
        present = column.values if column.missing is None else column.values[~column.missing]
        distinct = np.unique(present)
        values, codes = distinct.tolist(), np.searchsorted(distinct, column.values)
    if column.missing is not None:
        codes = np.where(column.missing, len(values), codes)
        values = [*values, None]
    return codes.astype(np.int64), values
