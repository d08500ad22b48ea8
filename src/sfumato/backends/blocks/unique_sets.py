# SPDX-License-Identifier: Apache-2.0
"""Count the records that sets of columns make unique, over codes in working files.

Columns and pairs with few possible values are counted in tables, many of them in one reading. For other sets records
are sorted into buckets by all columns of the set but the last, and the buckets serve all sets that begin with these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.backends.blocks.column_codes import ColumnCodes
from sfumato.backends.blocks.working_files import Buckets, WorkingFiles, chunks_of, into_buckets, n_buckets_for
from sfumato.backends.group_rows import as_codes
from sfumato.grouping import MOST_CELLS, Codes, Grouping, count_alone, group
from sfumato.progress import Progress

_CELLS_OF_PAIR = 4 * MOST_CELLS  # combinations of two columns that are counted in one table
_CELLS_AT_ONCE = 8 * _CELLS_OF_PAIR


@njit(cache=True, nogil=True)
def count_up_to_two(keys: NDArray[np.int64], cells: NDArray[np.uint8]) -> None:
    """Count every key in its cell, up to 2."""
    for i in range(keys.shape[0]):
        if cells[keys[i]] < 2:
            cells[keys[i]] += 1


@dataclass
class _SortedRecords:
    """Records in buckets by their values in some columns.

    Attributes
    ----------
    base : tuple of str
        Records with the same values in these columns are in the same bucket.
    buckets : Buckets
    n_unique : int
        Records that were left out since their values in the base are unique.
    groups : Grouping or None
        Of the base; kept where there is only one bucket.
    """

    base: tuple[str, ...]
    buckets: Buckets
    n_unique: int = 0
    groups: Grouping | None = None


class BlockUniqueSets:
    """Counts the records that sets of columns make unique.

    Parameters
    ----------
    files : WorkingFiles
    codes : ColumnCodes
    keys : tuple of str
        Columns by which records were sorted into buckets.
    buckets : Buckets
        With all columns.
    most_held : int
        Records of a bucket.
    progress : callable or None
    """

    def __init__(
        self,
        files: WorkingFiles,
        codes: ColumnCodes,
        keys: tuple[str, ...],
        buckets: Buckets,
        most_held: int,
        progress: Progress | None,
    ) -> None:
        self._files, self._columns, self._progress = files, codes.columns, progress
        self._n_codes, self._n_own_codes = codes.n_codes, codes.n_own_codes
        self._n_records = next(iter(codes.columns.values())).n_records
        self._n_buckets = n_buckets_for(self._n_records, most_held)
        # These serve one call, so that leaving out unique records would not pay.
        self._first = self._last = _SortedRecords(keys, replace(buckets, is_own=False))

    def n_codes(self, names: Sequence[str]) -> dict[str, int]:
        """Return the number of codes of columns."""
        return {name: self._n_own_codes[name] for name in names}

    def condensed(self, names: Sequence[str]) -> BlockUniqueSets:
        """Return itself: equal records of a table in blocks are not merged."""
        return self

    def unique_counts(self, sets: Sequence[Sequence[str]]) -> list[int]:
        """Return the number of records that each set of columns makes unique."""
        wanted = [tuple(own) for own in sets]
        small: list[tuple[str, ...]] = []
        large: dict[tuple[str, ...], list[str]] = {}
        for own in wanted:
            if len(own) == 1 or (len(own) == 2 and self._n_cells(own) <= _CELLS_OF_PAIR):
                small.append(own)
            else:
                base, last = self._split(own)
                large.setdefault(base, []).append(last)
        counted: dict[frozenset[str], int] = {}
        while small:
            together = [small.pop()]
            while small and sum(map(self._n_cells, together)) <= _CELLS_AT_ONCE:
                together.append(small.pop())
            counted |= zip(map(frozenset, together), self._count_in_tables(together), strict=True)
            self._tell(len(counted), len(wanted))
        for base, added in large.items():
            counted |= zip(
                (frozenset((*base, name)) for name in added), self._count_in_buckets(base, added), strict=True
            )
            self._tell(len(counted), len(wanted))
        return [counted[frozenset(own)] for own in wanted]

    def _n_cells(self, names: Sequence[str]) -> int:
        return prod(self._n_codes[name] for name in names)

    def _split(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        """Return the columns to sort by, and the last; of two columns the finer one serves all its pairs."""
        if len(names) == 2 and self._n_codes[names[1]] > self._n_codes[names[0]]:
            return names[1:], names[0]
        return names[:-1], names[-1]

    def _tell(self, part: int, whole: int) -> None:
        if self._progress is not None:
            self._progress("ranking columns", self._n_records * part // whole, self._n_records)

    def _count_in_tables(self, sets: Sequence[tuple[str, ...]]) -> list[int]:
        """Count sets in one reading."""
        names = list(dict.fromkeys(name for own in sets for name in own))
        cells = [np.zeros(self._n_cells(own), np.uint8) for own in sets]
        for parts in chunks_of([self._columns[name] for name in names]):
            codes = dict(zip(names, (part.astype(np.int64) for part in parts), strict=True))
            for own, counts in zip(sets, cells, strict=True):
                key = codes[own[0]]
                for name in own[1:]:
                    key = key * self._n_codes[name] + codes[name]
                count_up_to_two(key, counts)
        return [int(np.count_nonzero(counts == 1)) for counts in cells]

    def _count_in_buckets(self, base: tuple[str, ...], added: Sequence[str]) -> list[int]:
        """Count the base with one more column each, bucket after bucket."""
        records = self._sorted_by(base, added)
        buckets = records.buckets
        found = np.zeros(len(added), np.int64)
        for bucket in range(len(buckets)):
            groups = self._without_unique(records, bucket, base)
            if groups is None:
                continue
            ones = np.ones(buckets.n_records(bucket), np.uint8)
            for place, name in enumerate(added):
                column = self._read(buckets, bucket, name)
                found[place] += count_alone(groups.order, groups.starts, column.values, column.n_codes, ones)
        return [records.n_unique + int(n_unique) for n_unique in found]

    def _sorted_by(self, base: tuple[str, ...], added: Sequence[str]) -> _SortedRecords:
        """Return the records sorted by these columns, or by the first of them."""
        names = {*base, *added}
        for known in (self._last, self._first):
            if base[: len(known.base)] == known.base and names <= known.buckets.columns.keys():
                self._last = known
                return known
        carried = {name: column for name, column in self._columns.items() if name in names}
        self._last = _SortedRecords(base, into_buckets(self._files, carried, base, self._n_buckets))
        return self._last

    def _without_unique(self, records: _SortedRecords, bucket: int, base: tuple[str, ...]) -> Grouping | None:
        """Group a bucket; drop unique records if they are many, since more columns keep them unique."""
        buckets = records.buckets
        if not buckets.n_records(bucket):
            return None
        if len(buckets) == 1:
            return self._kept_groups(records, base)
        groups = self._grouped(buckets, bucket, base)
        is_unique = groups.sizes == 1
        if not buckets.is_own or 4 * is_unique.sum() <= buckets.n_records(bucket):
            return groups
        records.base, records.n_unique = base, records.n_unique + int(is_unique.sum())
        kept = np.sort(groups.order[np.repeat(~is_unique, groups.sizes)])
        buckets.shrink(bucket, {name: buckets.read(bucket, name)[kept] for name in buckets.columns})
        return self._grouped(buckets, bucket, base) if len(kept) else None

    def _kept_groups(self, records: _SortedRecords, base: tuple[str, ...]) -> Grouping:
        """Group the records of the only bucket, from the groups of fewer columns if they are known."""
        if records.groups is None:
            records.groups = self._grouped(records.buckets, 0, base)
        else:
            for name in base[len(records.base) :]:
                records.groups = records.groups.divided(self._read(records.buckets, 0, name))
        records.base = base
        return records.groups

    def _grouped(self, buckets: Buckets, bucket: int, base: tuple[str, ...]) -> Grouping:
        return group([self._read(buckets, bucket, name) for name in base], buckets.n_records(bucket))

    def _read(self, buckets: Buckets, bucket: int, name: str) -> Codes:
        return as_codes(buckets.read(bucket, name), self._n_codes[name])
