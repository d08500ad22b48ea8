# SPDX-License-Identifier: Apache-2.0
"""A table in memory as a source: columns are read, coarsened to their limits and binned, several at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn, named_anyway, units_of
from sfumato.columns import Column
from sfumato.frames import Table
from sfumato.partition.binning import (
    DEFAULT_MAX_BINS,
    MAX_CODES,
    bin_categories,
    bin_numbers,
    most_frequent,
    shared_codes,
)
from sfumato.partition.guides import Guide
from sfumato.partition.records import Records, make_layout, pack_records
from sfumato.schema import coarsen
from sfumato.schema.limits import Limit, checked_limit
from sfumato.threads import map_in_threads

_THREADED_FROM = 200_000  # records; below it the threads cost more than they bring


class MemorySource:
    """Columns of a table in memory.

    Parameters
    ----------
    table : Table
    names : sequence of str
        The columns to read, in this order.
    limits : mapping, optional
        The finest width or prefix that may leave, per column.
    max_bins : int
    floor : int
        Fewest records that share what is published of a bin; 0: nothing is to be published.
    finer : int
        A smaller floor for which that is wanted, too; 0: none.
    n_threads : int
    """

    def __init__(
        self,
        table: Table,
        names: Sequence[str],
        *,
        limits: Mapping[str, Any] | None = None,
        max_bins: int = DEFAULT_MAX_BINS,
        floor: int = 0,
        finer: int = 0,
        n_threads: int = 1,
    ) -> None:
        limits = limits or {}
        self._n_threads = n_threads

        def read(name: str) -> CodedColumn:
            own = read_limited(table, name, limits) if name in limits else table.column(name, narrow=True)
            return code_column(own, max_bins=max_bins, floor=floor, finer=finer, limit=limits.get(name))

        if n_threads > 1 and table.n_records >= _THREADED_FROM:
            # Numbers of which few are alike take longest: begun last, one would keep a single thread busy at the end.
            slow_first = sorted(names, key=lambda name: -_n_different(table.head(name)))
            read_columns = dict(zip(slow_first, map_in_threads(read, slow_first, n_threads), strict=True))
            self.columns = [read_columns[name] for name in names]
        else:
            self.columns = [read(name) for name in names]
        self.layout = make_layout([column.bins for column in self.columns])

    def records(self, guide: Guide, weights: NDArray[np.int64] | None = None) -> Records:
        """Return the codes of all columns together with the guide's channels."""
        codes = [column.codes for column in self.columns]
        return pack_records(codes, guide.code_blocks, guide.dense, weights, n_threads=self._n_threads)

    def forget_codes(self) -> None:
        """Free the codes of the records, which have been packed; the columns keep their bins."""
        self.columns = [replace(column, codes=np.empty(0, column.codes.dtype)) for column in self.columns]


def _n_different(column: Column) -> int:
    """Return the number of distinct numbers of a column; categories count as one, since they are not sorted."""
    return 1 if column.kind == "category" else len(np.unique(column.values))


def read_limited(table: Table, name: str, limits: Mapping[str, Any]) -> Column:
    """Read a column, coarsened to its limit."""
    column = table.column(name)
    return coarsen(column, limits[name]) if name in limits else column


def _with_fewer_categories(column: Column) -> tuple[Column, NDArray[np.int64]]:
    """Return a column of more categories than there are codes, the less frequent ones as their neighbors.

    Beside it, how many records have each category that is left, its neighbors not counted.
    """
    assert column.categories is not None
    present = column.values if column.missing is None else column.values[~column.missing]
    counts = np.bincount(present, minlength=len(column.categories))
    kept = most_frequent(counts)
    codes = shared_codes(kept, len(column.categories)).astype(column.values.dtype)
    places = None if column.places is None else column.places[kept]
    fewer = replace(column, values=codes[column.values], categories=column.categories[kept], places=places)
    return fewer, counts[kept]


def code_column(
    column: Column, *, max_bins: int = DEFAULT_MAX_BINS, floor: int = 0, finer: int = 0, limit: Limit | None = None
) -> CodedColumn:
    """Bin one column, which was coarsened to its limit."""
    width = None if limit is None or column.kind == "category" else checked_limit(column, limit)
    if column.kind == "category":
        assert column.categories is not None
        counts = None
        if len(column.categories) > MAX_CODES - 3:
            column, counts = _with_fewer_categories(column)
        assert column.categories is not None
        bins, codes = bin_categories(
            column.values, column.missing, len(column.categories), counts=counts, floor=floor, finer=finer
        )
        bins = named_anyway(bins, column.categories)
    else:
        units = units_of(column.moment, width, is_decimal=column.is_decimal)
        bins, codes = bin_numbers(
            column.values, column.missing, max_bins=max_bins, floor=floor, finer=finer, units=units
        )
    return CodedColumn(
        column.name, column.kind, bins, codes, column.categories, column.moment, width, column.is_zoned, column.places
    )
