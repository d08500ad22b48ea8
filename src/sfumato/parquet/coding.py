# SPDX-License-Identifier: Apache-2.0
"""Bin columns that are read piece by piece: the same bins as of the whole table at once.

Bins are a function of how often each value occurs, and such counts add up. What is held is one number per different
value of a column, never the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column
from sfumato.errors import InputError
from sfumato.frames import Table, read_table
from sfumato.partition.binning import (
    MAX_CODES,
    bin_counts,
    bin_own_categories,
    code_type,
    search_bins,
    sorted_distinct,
)
from sfumato.schema.limits import checked_limit
from sfumato.sources import CodedColumn
from sfumato.sources.memory import read_limited


class ValueCounts:
    """How often each value of one column occurs, added up piece by piece."""

    def __init__(self, name: str, max_bins: int) -> None:
        self.name = name
        self._max_bins = max_bins
        self._column: Column | None = None
        self._has_missing = False
        self._runs: list[tuple[NDArray[Any], NDArray[np.int64]]] = []
        self._categories: set[Any] = set()
        self._places: dict[Any, int] | None = {}
        self._width: float | int | None = None
        self._is_unknown = True

    def add(self, column: Column, limit: Any = None) -> None:
        """Count a piece."""
        is_empty = column.missing is not None and bool(column.missing.all())
        self._has_missing |= column.missing is not None and bool(column.missing.any())
        if self._column is None or (self._is_unknown and not is_empty):
            self._column = _without_records(column)
            self._is_unknown = is_empty
        if is_empty:
            return
        if column.kind != self._column.kind or column.values.dtype != self._column.values.dtype:
            self._widen(column)
        if limit is not None and column.kind != "category":
            self._width = checked_limit(column, limit)
        if column.categories is not None:
            self._categories.update(column.categories.tolist())
            self._note_places(column)
            return
        present = column.values if column.missing is None else column.values[~column.missing]
        self._runs.append(sorted_distinct(present.astype(self._column.values.dtype)))
        # Runs are joined as in merge sort, so that each value is moved few times and few runs wait.
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            self._runs.append(join_runs([self._runs.pop(), self._runs.pop()]))

    def _note_places(self, column: Column) -> None:
        """Remember the declared order of the categories, where all pieces declare one and the same."""
        if self._places is None or column.places is None or column.categories is None:
            self._places = None
            return
        own = dict(zip(column.categories.tolist(), column.places.tolist(), strict=True))
        known = self._places
        is_same = all(known.get(value, place) == place for value, place in own.items())
        self._places = known | own if is_same else None

    def _widen(self, column: Column) -> None:
        """Integers may turn out to be fractions in a later piece, never categories."""
        assert self._column is not None
        if {column.kind, self._column.kind} != {"number"}:
            raise InputError(
                f"the column {self.name!r} holds values of different kinds in different pieces of the table: expected "
                "one kind. Rewrite the files."
            )
        self._column = _without_records(column if column.values.dtype.kind == "f" else self._column)
        self._runs = [(values.astype(np.float64), counts) for values, counts in self._runs]

    def coded(self) -> CodedColumn:
        """Return the bins of all that was counted, without codes."""
        column = self._column
        assert column is not None
        if column.kind == "category":
            categories: NDArray[np.object_] = np.empty(len(self._categories), object)
            categories[:] = sorted(self._categories)
            coded = coded_categories(self.name, categories, self._has_missing)
            places = self._places or {}
            if len(places) < len(categories) or len(set(places.values())) < len(places) or not places:
                return coded
            return replace(coded, places=np.array([places[value] for value in categories.tolist()], np.int64))
        values, counts = (
            join_runs(self._runs) if self._runs else (np.zeros(0, column.values.dtype), np.zeros(0, np.int64))
        )
        bins = bin_counts(values, counts, has_missing=self._has_missing, max_bins=self._max_bins)
        nothing = np.zeros(0, code_type(bins.n_bins))
        return CodedColumn(self.name, column.kind, bins, nothing, None, column.moment, self._width, column.is_zoned)


def learn_columns(
    batches: Iterable[Any],
    names: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    limits: Mapping[str, Any] | None = None,
    max_bins: int,
    n_threads: int = 1,
    also: Any = None,
) -> list[CodedColumn]:
    """Count all pieces and return the bins of each column.

    Parameters
    ----------
    batches : iterable of pyarrow.Table
    names : sequence of str
    categorical, limits, max_bins
        As of `MemorySource`.
    n_threads : int
        Columns counted at a time.
    also : callable, optional
        Called with every piece, too.
    """
    limits = limits or {}
    counted = [ValueCounts(name, max_bins) for name in names]
    with ThreadPoolExecutor(n_threads) as pool:
        for batch in batches:
            table = read_table(batch, categorical=[name for name in categorical if name in batch.column_names])

            def count(own: ValueCounts, table: Table = table) -> None:
                own.add(read_limited(table, own.name, limits), limits.get(own.name))

            list(pool.map(count, counted))
            if also is not None:
                also(batch)
    return [own.coded() for own in counted]


def coded_categories(name: str, categories: NDArray[np.object_], has_missing: bool) -> CodedColumn:
    """Return the bins of a column of categories, sorted ones: one each."""
    check_categories(name, len(categories))
    bins = bin_own_categories(len(categories), has_missing)
    return CodedColumn(name, "category", bins, np.zeros(0, code_type(bins.n_bins)), categories, None)


def check_categories(name: str, n_categories: int) -> None:
    """Refuse a column with more categories than codes."""
    if n_categories > MAX_CODES - 3:
        raise InputError(
            f"column {name!r} has {n_categories} different values: expected at most {MAX_CODES - 3} "
            "in a category. Name it in identifiers= if it tells people apart, or shorten it with limits=."
        )


def encode(column: CodedColumn, values: Column) -> NDArray[Any]:
    """Return the codes of a piece of a column whose bins are known."""
    bins = column.bins
    dtype = code_type(bins.n_bins)
    if values.missing is not None and values.missing.all():
        return np.full(values.n_records, max(0, bins.missing_bin), dtype)
    if bins.is_ordered:
        codes = search_bins(values.values.astype(bins.high.dtype), bins.high, dtype)
    else:
        assert column.categories is not None and values.categories is not None
        place = {value: code for code, value in enumerate(column.categories.tolist())}
        codes = np.array([place[value] for value in values.categories.tolist()], dtype)[values.values]
    if values.missing is not None:
        codes[values.missing] = bins.missing_bin
    return codes


def _without_records(column: Column) -> Column:
    return Column(column.name, column.kind, column.values[:0], None, None, column.moment, column.is_zoned)


def join_runs(runs: Sequence[tuple[NDArray[Any], NDArray[np.int64]]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Add up counts of sorted values."""
    if len(runs) == 1:
        return runs[0]
    values = np.concatenate([values for values, _ in runs])
    counts = np.concatenate([counts for _, counts in runs])
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.int64)
    return values[starts], np.add.reduceat(counts, starts) if len(starts) else counts
