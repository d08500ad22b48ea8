# SPDX-License-Identifier: Apache-2.0
"""Group counts and unique records of a table in memory. Every group is a kind of its own, in the order of discovery.

For unique records, rows are numbered by their values in all columns of a set but the last. The numbers serve all sets
that begin with these columns, and a longer set goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import Need
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
from sfumato.backends.measurable_table import GroupCounts, GroupRequest, SensitiveCounts
from sfumato.columns import Column
from sfumato.errors import InputError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import (
    MISSING,
    MOST_CELLS,
    Codes,
    Grouping,
    combined,
    count_alone,
    count_alone_in_pair,
    encode,
    encode_together,
    group,
    sort_groups,
)


class MemoryTable:
    """A table in memory that can be measured."""

    cannot: Mapping[Need, str] = {}

    def __init__(self, table: Table) -> None:
        self.example = table

    def population(self, given: Any, keys: Sequence[str]) -> MemoryTable:
        """Read the table of a population."""
        return MemoryTable(read_table(given, categorical=[name for name in self.example.categorical if name in keys]))

    def counting(self, request: GroupRequest) -> AbstractContextManager[MemoryCounting]:
        """Return the counter of this table."""
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
                    f"{named('weights')} has the shape {values.shape} and the table {self.n_records} records: "
                    "expected one weight per record."
                )
        check_positive(n_not_positive(values), self.n_records)
        return np.add.reduceat(values[self._groups.order], self._groups.starts[:-1])

    def _in_population(self, people: Table) -> NDArray[np.int64]:
        """Return the number of people in the population that each group's records match."""
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


@dataclass(frozen=True, eq=False)
class _NumberedRows:
    """Rows numbered by their values in some columns.

    Attributes
    ----------
    base : tuple of str
        The columns by which rows are numbered.
    columns : mapping of str to Codes
        All columns, of these rows.
    weights : ndarray of uint8
        1 for a row that is one record, 2 for one that is more and so never unique.
    label : ndarray of int32
        The number of each row, below `n_labels`.
    """

    base: tuple[str, ...]
    columns: Mapping[str, Codes]
    weights: NDArray[np.uint8]
    label: NDArray[np.int32]
    n_labels: int

    @cached_property
    def groups(self) -> Grouping:
        """Rows with the same number."""
        return Grouping(*sort_groups(self.label, self.n_labels))

    def count_with(self, name: str) -> int:
        """Return the number of records that the base and one more column make unique."""
        column = self.columns[name]
        n_cells = self.n_labels * column.n_codes
        if n_cells <= 4 * MOST_CELLS:
            cells = np.zeros(n_cells, np.uint8)
            return int(count_alone_in_pair(self.label, column.values, column.n_codes, self.weights, cells))
        groups = self.groups
        return int(count_alone(groups.order, groups.starts, column.values, column.n_codes, self.weights))

    def extended(self, name: str) -> _NumberedRows:
        """Return the rows numbered by one more column."""
        column = self.columns[name]
        if not self.base:
            return replace(self, base=(name,), label=column.values, n_labels=column.n_codes)
        label, n_labels = combined(self.label, self.n_labels, column) or _numbered(self.label, self.n_labels, column)
        return replace(self, base=(*self.base, name), label=label, n_labels=n_labels)


def _unnumbered(columns: Mapping[str, Codes], weights: NDArray[np.uint8]) -> _NumberedRows:
    return _NumberedRows((), columns, weights, np.zeros(len(weights), np.int32), 1)


def _numbered(label: NDArray[np.int32], n_labels: int, column: Codes) -> tuple[NDArray[np.int32], int]:
    groups = group([Codes("", label, n_labels, False), column], len(label))
    return groups.of_records().astype(np.int32), groups.n_groups


class MemoryUniqueSets:
    """Counts the records that sets of columns make unique.

    Parameters
    ----------
    rows : _NumberedRows
        Rows that were numbered before, or not at all.
    """

    def __init__(self, rows: _NumberedRows) -> None:
        self._first = self._last = rows
        self._all = _unnumbered(rows.columns, rows.weights)

    @classmethod
    def of_groups(cls, columns: Mapping[str, Codes], keys: tuple[str, ...], groups: Grouping) -> MemoryUniqueSets:
        """Return the columns of a table whose groups by some keys are known."""
        ones = np.ones(len(groups.order), np.uint8)
        return cls(_NumberedRows(keys, columns, ones, groups.of_records().astype(np.int32), groups.n_groups))

    def n_codes(self, names: Sequence[str]) -> dict[str, int]:
        """Return the number of codes of columns."""
        return {name: self._all.columns[name].n_codes for name in names}

    def unique_counts(self, sets: Sequence[Sequence[str]]) -> list[int]:
        """Return the number of records that each set of columns makes unique."""
        return [self._numbered_by(tuple(own[:-1])).count_with(own[-1]) for own in sets]

    def _numbered_by(self, base: tuple[str, ...]) -> _NumberedRows:
        known = [own for own in (self._last, self._first, self._all) if base[: len(own.base)] == own.base]
        rows = max(known, key=lambda own: len(own.base))
        for name in base[len(rows.base) :]:
            rows = rows.extended(name)
        self._last = rows
        return rows

    def condensed(self, names: Sequence[str]) -> MemoryUniqueSets:
        """Return the columns with equal records as one row, if that saves half of the rows."""
        columns = {name: self._all.columns[name] for name in names}
        groups, weights = self._first.groups, self._all.weights
        for name in names:
            if name not in self._first.base:
                groups = groups.divided(columns[name])
        if 2 * groups.n_groups > len(weights):
            return MemoryUniqueSets(_unnumbered(columns, weights))
        first = groups.order[groups.starts[:-1]]
        columns = {name: replace(own, values=own.values[first]) for name, own in columns.items()}
        sizes = np.add.reduceat(weights[groups.order], groups.starts[:-1], dtype=np.int64)
        return MemoryUniqueSets(_unnumbered(columns, np.minimum(2, sizes).astype(np.uint8)))
