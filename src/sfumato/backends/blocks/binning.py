# SPDX-License-Identifier: Apache-2.0
"""Bin columns that are read in blocks: the same bins as those of the whole table.

Bins depend on how often each value occurs, and such counts add up. Memory holds one count per distinct value of a
column, never the column. Dictionaries, and integers of a small range, are counted and coded by their places: what is
done to a value is done once, not for every record.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.backends.memory import read_limited
from sfumato.coded_columns import CodedColumn, named_anyway, units_of
from sfumato.columns import Column
from sfumato.errors import InputError
from sfumato.frames import read_table
from sfumato.frames.from_arrow import one_chunk
from sfumato.partition.binning import (
    bin_counts,
    bin_own_categories,
    code_type,
    most_frequent,
    search_bins,
    shared_codes,
)
from sfumato.partition.distinct_values import sorted_distinct
from sfumato.schema.limits import checked_limit

Run = tuple[NDArray[Any], NDArray[np.int64]]
"""Distinct values in rising order, and their counts."""

_WIDEST_RANGE = 1 << 17
"""Integers that span less than this serve as places."""


@dataclass(frozen=True, eq=False)
class Shortened:
    """A column as few values, and every record's place among them.

    Attributes
    ----------
    values : pyarrow.Array
        The few values; some may not occur.
    places : ndarray of int
        Place of each record's value, counted from `first`; anything where the value is missing.
    first : int
    present : ndarray of uint8
        One bit per record that has a value, from `first_bit` on; empty where all have one.
    first_bit : int
    n_missing : int
    """

    values: Any
    places: NDArray[Any]
    first: int
    present: NDArray[np.uint8]
    first_bit: int
    n_missing: int

    def counts(self) -> NDArray[np.int64]:
        """Return how many records have each of the values."""
        found = np.zeros(len(self.values), np.int64)
        _count_places(self.places, self.first, self.present, self.first_bit, found)
        return found

    def read(self, name: str, *, as_category: bool, limits: Mapping[str, Any], chosen: Any = None) -> Column:
        """Return the values, or those at the chosen places, as a column that is as coarse as its limit."""
        values = self.values if chosen is None else self.values.take(chosen)
        return read_piece(name, values, as_category=as_category, limits=limits)

    def translate(self, codes: NDArray[Any], missing_code: int, out: NDArray[Any]) -> None:
        """Write the code of each record's value."""
        _translate(self.places, self.first, self.present, self.first_bit, codes, missing_code, out)


def read_piece(name: str, array: Any, *, as_category: bool, limits: Mapping[str, Any]) -> Column:
    """Read one Arrow array as a column that is as coarse as its limit."""
    import pyarrow as pa

    return read_limited(read_table(pa.table({name: array}), categorical=[name] if as_category else []), name, limits)


def shortened(array: Any) -> Shortened | None:
    """Return an Arrow array as few values and places, or None if it has no such form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = one_chunk(array)
    kind = array.type
    if array.null_count == len(array):
        return None
    if pa.types.is_dictionary(kind):
        listed = pa.array(np.arange(len(array.dictionary), dtype=np.int32))
        values = pa.DictionaryArray.from_arrays(listed, array.dictionary, ordered=kind.ordered)
        return replace(_of_places(array.indices), values=values)
    if not pa.types.is_integer(kind):
        return None
    ends = pc.min_max(array)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if high - low >= _WIDEST_RANGE or high >= 1 << 63:
        return None
    every = np.int64(low) + np.arange(high - low + 1)  # never beyond the highest, which may be the largest there is
    return replace(_of_places(array), values=pa.array(every, kind), first=low)


def _of_places(array: Any) -> Shortened:
    validity, places = array.buffers()
    dtype = np.dtype(array.type.to_pandas_dtype())
    own = np.frombuffer(places, dtype)[array.offset : array.offset + len(array)]
    is_whole = validity is None or array.null_count == 0
    present = np.zeros(0, np.uint8) if is_whole else np.frombuffer(validity, np.uint8)
    return Shortened(None, own, 0, present, array.offset, array.null_count)


@njit(nogil=True, cache=True)
def _count_places(places, first, present, first_bit, out):  # type: ignore[no-untyped-def]
    is_whole = present.shape[0] == 0
    for i in range(places.shape[0]):
        bit = first_bit + i
        if is_whole or (present[bit >> 3] >> np.uint8(bit & 7)) & 1:
            out[np.int64(places[i]) - first] += 1


@njit(nogil=True, cache=True)
def _translate(places, first, present, first_bit, codes, missing_code, out):  # type: ignore[no-untyped-def]
    is_whole = present.shape[0] == 0
    for i in range(places.shape[0]):
        bit = first_bit + i
        if is_whole or (present[bit >> 3] >> np.uint8(bit & 7)) & 1:
            out[i] = codes[np.int64(places[i]) - first]
        else:
            out[i] = missing_code


class ValueCounts:
    """Counts of the values of one column, added up over blocks, from several threads if necessary."""

    def __init__(self, name: str, max_bins: int, floor: int = 0, finer: int = 0) -> None:
        self.name = name
        self._floor, self._finer = floor, finer
        self._lock = Lock()
        self._max_bins = max_bins
        self._column: Column | None = None
        self._has_missing = False
        self._runs: list[Run] = []
        self._categories: dict[Any, int] = {}
        self._places: dict[Any, int] | None = {}
        self._width: float | int | None = None
        self._is_unknown = True

    def count(self, array: Any, *, as_category: bool = False, limits: Mapping[str, Any] | None = None) -> None:
        """Count an Arrow array."""
        limits = limits or {}
        short = shortened(array)
        counts = None
        if short is None:
            column = read_piece(self.name, array, as_category=as_category, limits=limits)
            has_missing = column.missing is not None and bool(column.missing.any())
            present = column.values if column.missing is None else column.values[~column.missing]
            if column.categories is None and len(present):
                values, counts = sorted_distinct(present)
                column = replace(column, values=values, missing=None)
        else:
            found = short.counts()
            chosen = np.flatnonzero(found)
            column = short.read(self.name, as_category=as_category, limits=limits, chosen=chosen)
            counts, has_missing = found[chosen], short.n_missing > 0
        with self._lock:
            self._has_missing |= has_missing
            self.add(column, limits.get(self.name), counts)

    def add(self, column: Column, limit: Any = None, counts: NDArray[np.int64] | None = None) -> None:
        """Count a block, with the given counts or each value once."""
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
            self._count_categories(column, counts)
            self._note_places(column)
            return
        is_present = slice(None) if column.missing is None else ~column.missing
        present = column.values[is_present].astype(self._column.values.dtype)
        add_run(self._runs, sorted_distinct(present) if counts is None else _summed(present, counts[is_present]))

    def _count_categories(self, column: Column, counts: NDArray[np.int64] | None) -> None:
        assert column.categories is not None
        is_present = slice(None) if column.missing is None else ~column.missing
        weights = None if counts is None else counts[is_present]
        found = np.bincount(column.values[is_present], weights, minlength=len(column.categories))
        for value, n in zip(column.categories.tolist(), found.astype(np.int64).tolist(), strict=True):
            self._categories[value] = self._categories.get(value, 0) + n

    def _note_places(self, column: Column) -> None:
        """Record the declared order of the categories, if all blocks declare the same."""
        if self._places is None or column.places is None or column.categories is None:
            self._places = None
            return
        own = dict(zip(column.categories.tolist(), column.places.tolist(), strict=True))
        known = self._places
        is_same = all(known.get(value, place) == place for value, place in own.items())
        self._places = known | own if is_same else None

    def _widen(self, column: Column) -> None:
        """Widen integers to floats if a later block has fractions; raise InputError for other kinds."""
        assert self._column is not None
        if {column.kind, self._column.kind} != {"number"}:
            raise InputError(
                f"the column {self.name!r} holds values of different kinds in different blocks of the table: expected "
                "one kind. Rewrite the files."
            )
        self._column = _without_records(column if column.values.dtype.kind == "f" else self._column)
        self._runs = [(values.astype(np.float64), counts) for values, counts in self._runs]

    def coded(self) -> CodedColumn:
        """Return the bins of the counts, without codes."""
        column = self._column
        assert column is not None
        if column.kind == "category":
            categories, counts, _ = as_counted(self._categories)
            coded = coded_categories(self.name, categories, self._has_missing, counts, self._floor, self._finer)
            places = self._places or {}
            if len(places) < len(categories) or len(set(places.values())) < len(places) or not places:
                return coded
            return replace(coded, places=np.array([places[value] for value in categories.tolist()], np.int64))
        values, counts = (
            join_runs(self._runs) if self._runs else (np.zeros(0, column.values.dtype), np.zeros(0, np.int64))
        )
        bins = bin_counts(
            values, counts, has_missing=self._has_missing, max_bins=self._max_bins,
            floor=self._floor, finer=self._finer,
            units=units_of(column.moment, self._width, is_decimal=column.is_decimal),
        )  # fmt: skip
        nothing = np.zeros(0, code_type(bins.n_bins))
        return CodedColumn(self.name, column.kind, bins, nothing, None, column.moment, self._width, column.is_zoned)


class ColumnLearner:
    """Counts the columns of blocks, from several threads, and returns their bins.

    Parameters
    ----------
    names : sequence of str
    categorical, limits, max_bins, floor, finer
        As of `MemorySource`.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        categorical: Sequence[str] = (),
        limits: Mapping[str, Any] | None = None,
        max_bins: int,
        floor: int = 0,
        finer: int = 0,
    ) -> None:
        self._counted = [ValueCounts(name, max_bins, floor, finer) for name in names]
        self._categorical = frozenset(categorical)
        self._limits = limits or {}

    def count(self, piece: Any) -> None:
        """Count a table."""
        for own in self._counted:
            own.count(piece.column(own.name), as_category=own.name in self._categorical, limits=self._limits)

    def columns(self) -> list[CodedColumn]:
        """Return the bins of the counts."""
        return [own.coded() for own in self._counted]


def coded_categories(
    name: str,
    categories: NDArray[np.object_],
    has_missing: bool,
    counts: NDArray[np.int64] | None = None,
    floor: int = 0,
    finer: int = 0,
) -> CodedColumn:
    """Return the bins of a column of categories, sorted ones: one each; see `bin_own_categories`."""
    bins = named_anyway(bin_own_categories(len(categories), has_missing, counts, floor, finer), categories)
    return CodedColumn(name, "category", bins, np.zeros(0, code_type(bins.n_bins)), categories, None)


def as_counted(
    categories: Mapping[Any, int],
) -> tuple[NDArray[np.object_], NDArray[np.int64], NDArray[np.int64]]:
    """Return categories, sorted, and how many records have each; of more than there are codes, the most frequent.

    The others share the bin of the kept one before them: the last numbers are the records of each bin.
    """
    every: NDArray[np.object_] = np.empty(len(categories), object)
    every[:] = sorted(categories)
    counts = np.array([categories[value] for value in every.tolist()], np.int64)
    kept = most_frequent(counts)
    if len(kept) == len(every):
        return every, counts, counts
    of_bins = np.bincount(shared_codes(kept, len(every)), counts, minlength=len(kept)).astype(np.int64)
    return every[kept], counts[kept], of_bins


def write_codes(
    column: CodedColumn,
    array: Any,
    out: NDArray[Any],
    *,
    as_category: bool = False,
    limits: Mapping[str, Any] | None = None,
) -> None:
    """Write the codes of an Arrow array, a block of a column whose bins are known, into `out`."""
    limits = limits or {}
    short = shortened(array)
    if short is None:
        out[:] = encode(column, read_piece(column.name, array, as_category=as_category, limits=limits))
        return
    values = short.read(column.name, as_category=as_category, limits=limits)
    known = set() if column.categories is None else set(column.categories.tolist())
    if values.categories is None or set(values.categories.tolist()) <= known:
        codes = encode(column, values)
    else:  # a list names categories that no record of the whole table has
        chosen = np.flatnonzero(short.counts())
        codes = np.zeros(len(short.values), code_type(column.bins.n_bins))
        codes[chosen] = encode(column, short.read(column.name, as_category=as_category, limits=limits, chosen=chosen))
    short.translate(codes, max(0, column.bins.missing_bin), out)


def encode(column: CodedColumn, values: Column) -> NDArray[Any]:
    """Return the codes of a block of a column whose bins are known."""
    bins = column.bins
    dtype = code_type(bins.n_bins)
    if values.missing is not None and values.missing.all():
        return np.full(values.n_records, max(0, bins.missing_bin), dtype)
    if bins.is_ordered:
        codes = search_bins(values.values.astype(bins.high.dtype), bins.high, dtype)
    else:
        assert column.categories is not None and values.categories is not None
        known = column.categories.tolist()
        place = {value: code for code, value in enumerate(known)}
        # Where there are more categories than codes, one without a code has that of the one before it.
        found = [place[v] if v in place else max(0, bisect(known, v) - 1) for v in values.categories.tolist()]
        codes = np.array(found, dtype)[values.values]
    if values.missing is not None:
        codes[values.missing] = bins.missing_bin
    return codes


def _without_records(column: Column) -> Column:
    return replace(column, values=column.values[:0], missing=None, categories=None, places=None)


def add_run(runs: list[Run], run: Run) -> None:
    """Append a run, and join runs as in merge sort, so that each value is moved few times and few runs wait."""
    runs.append(run)
    while len(runs) > 1 and len(runs[-2][0]) <= 2 * len(runs[-1][0]):
        runs.append(join_runs([runs.pop(), runs.pop()]))


def join_runs(runs: Sequence[Run]) -> Run:
    """Add up counts of values; the values of each run rise, and so do those returned."""
    return runs[0] if len(runs) == 1 else _summed(*map(np.concatenate, zip(*runs, strict=True)))


def _summed(values: NDArray[Any], counts: NDArray[np.int64]) -> Run:
    """Return values in rising order, once each, with the sums of their counts."""
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.int64)
    return values[starts], np.add.reduceat(counts, starts) if len(starts) else counts
