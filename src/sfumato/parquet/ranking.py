# SPDX-License-Identifier: Apache-2.0
"""Which columns, and which columns together, make records unique, counted over working files. Called by ``measuring``.

The same sets in the same order as ``sfumato.measurement.ranking`` tries in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.backends.blocks.working_files import ColumnFile, WorkingFiles, chunks_of, into_buckets, n_buckets_for
from sfumato.grouping import MOST_CELLS, Codes, Grouping, count_alone, group
from sfumato.measurement.ranking import Ranking, make_ranking, tried_in_sets

_CELLS_OF_PAIR = 4 * MOST_CELLS  # combinations of two columns that are counted in one table
_CELLS_AT_ONCE = 8 * _CELLS_OF_PAIR

CountedPair = tuple[tuple[str, str], int]


@njit(cache=True, nogil=True)
def count_up_to_two(keys: NDArray[np.int64], cells: NDArray[np.uint8]) -> None:
    """Add every key to its cell; 2 is as good as more."""
    for i in range(keys.shape[0]):
        if cells[keys[i]] < 2:
            cells[keys[i]] += 1


class ColumnRanking:
    """Counts unique records over the codes of all columns.

    Parameters
    ----------
    files : WorkingFiles
    columns : mapping of str to ColumnFile
        In the order of the table.
    n_codes : mapping of str to int
        Codes of a column are below this.
    most_held : int
        Records looked at together.
    told : callable, optional
        Called with what is being done, the records done and their number.
    """

    def __init__(
        self,
        files: WorkingFiles,
        columns: Mapping[str, ColumnFile],
        n_codes: Mapping[str, int],
        most_held: int,
        told: Callable[[str, int, int], Any] | None = None,
    ) -> None:
        self._files, self._columns, self._n_codes, self._told = files, columns, n_codes, told
        self._n_records = next(iter(columns.values())).n_records
        self._n_buckets = n_buckets_for(self._n_records, most_held)

    def rank(self, n_codes_in_table: Mapping[str, int], added: Sequence[tuple[str, int]]) -> Ranking:
        """Return the ranking; `added` has the unique records of the quasi-identifiers with one more column each."""
        alone = {name: self._count_alone(name) for name in self._columns}
        tried = tried_in_sets(alone, n_codes_in_table, self._n_records)
        counted = self._count_pairs(tried)
        pairs = sorted(((pair, counted[pair]) for pair in combinations(tried, 2)), key=lambda pair: -pair[1])
        grown = self._grow(tried, pairs)
        return make_ranking(alone, tried, pairs=pairs, grown=grown, added=added, n_records=self._n_records)

    def _count_alone(self, name: str) -> int:
        cells = np.zeros(self._n_codes[name], np.uint8)
        for codes in self._columns[name].chunks():
            count_up_to_two(codes.astype(np.int64), cells)
        return int(np.count_nonzero(cells == 1))

    def _count_pairs(self, tried: Sequence[str]) -> dict[tuple[str, str], int]:
        """Return the unique records of every pair."""
        counted: dict[tuple[str, str], int] = {}
        small: list[tuple[str, str]] = []
        large: list[tuple[str, str]] = []
        for pair in combinations(tried, 2):
            n_cells = self._n_codes[pair[0]] * self._n_codes[pair[1]]
            (small if n_cells <= _CELLS_OF_PAIR else large).append(pair)
        while small:
            together: list[tuple[str, str]] = []
            n_cells = 0
            while small and (not together or n_cells <= _CELLS_AT_ONCE):
                together.append(small.pop())
                n_cells += self._n_codes[together[-1][0]] * self._n_codes[together[-1][1]]
            counted |= self._count_small_pairs(together)
            self._tell("ranking pairs", len(counted), len(counted) + len(small) + len(large))
        # A column with many codes serves all its pairs at once: its records are sorted into buckets for them.
        for first in sorted({name for pair in large for name in pair}, key=lambda name: -self._n_codes[name]):
            own = [pair for pair in large if first in pair and pair not in counted]
            if own:
                counted |= self._count_large_pairs(first, own)
        return counted

    def _count_small_pairs(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        cells = [np.zeros(self._n_codes[a] * self._n_codes[b], np.uint8) for a, b in pairs]
        for parts in chunks_of([self._columns[name] for name in names]):
            codes = dict(zip(names, (part.astype(np.int64) for part in parts), strict=True))
            for (a, b), own in zip(pairs, cells, strict=True):
                count_up_to_two(codes[a] * self._n_codes[b] + codes[b], own)
        return {pair: int(np.count_nonzero(own == 1)) for pair, own in zip(pairs, cells, strict=True)}

    def _count_large_pairs(self, first: str, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        others = [b if a == first else a for a, b in pairs]
        carried = {name: self._columns[name] for name in (first, *others)}
        buckets = into_buckets(self._files, carried, [first], self._n_buckets)
        n_unique = np.zeros(len(pairs), np.int64)
        for bucket in range(len(buckets)):
            if not buckets.n_records(bucket):
                continue
            groups = group([self._codes(first, buckets.read(bucket, first))], buckets.n_records(bucket))
            for place, other in enumerate(others):
                n_unique[place] += n_alone_with(groups, self._codes(other, buckets.read(bucket, other)))
        return dict(zip(pairs, n_unique.tolist(), strict=True))

    def _grow(self, tried: Sequence[str], pairs: Sequence[CountedPair]) -> list[tuple[Sequence[str], int]]:
        """Start with the best pair and add the column that makes most records unique while one adds any."""
        if not pairs:
            return []
        members, n_unique = list(pairs[0][0]), pairs[0][1]
        grown: list[tuple[Sequence[str], int]] = [(tuple(members), n_unique)]
        carried = {name: self._columns[name] for name in tried}
        # Larger sets divide the groups of the pair, so that records sorted by it need not be sorted again.
        buckets = into_buckets(self._files, carried, members, self._n_buckets)
        n_left_out = 0
        while left := [name for name in tried if name not in members]:
            found = np.zeros(len(left), np.int64)
            for bucket in range(len(buckets)):
                if not buckets.n_records(bucket):
                    continue
                codes = {name: self._codes(name, buckets.read(bucket, name)) for name in tried}
                groups = group([codes[name] for name in members], buckets.n_records(bucket))
                is_alone = groups.sizes == 1
                if buckets.is_own and 4 * is_alone.sum() > buckets.n_records(bucket):
                    # What stands alone does so with any further column.
                    n_left_out += int(is_alone.sum())
                    kept = np.sort(groups.order[np.repeat(~is_alone, groups.sizes)])
                    buckets.shrink(bucket, {name: buckets.read(bucket, name)[kept] for name in tried})
                    if not len(kept):
                        continue
                    codes = {name: self._codes(name, buckets.read(bucket, name)) for name in tried}
                    groups = group([codes[name] for name in members], len(kept))
                for place, name in enumerate(left):
                    found[place] += n_alone_with(groups, codes[name])
            best = n_left_out + int(found.max())
            if best <= n_unique:
                break
            n_unique = best
            members = [*members, left[int(found.argmax())]]
            grown.append((tuple(members), n_unique))
            self._tell("ranking sets", len(members), len(tried))
        return grown

    def _tell(self, what: str, part: int, whole: int) -> None:
        if self._told is not None:
            self._told(what, self._n_records * part // whole, self._n_records)

    def _codes(self, name: str, values: NDArray[Any]) -> Codes:
        return as_codes(name, values, self._n_codes[name])


def as_codes(name: str, values: NDArray[Any], n_codes: int, *, has_missing: bool = False) -> Codes:
    """Return the codes of some records; where far fewer occur than there are, numbered anew, but for missing."""
    if n_codes > max(1 << 16, 4 * len(values)):
        present, values = np.unique(np.append(values, 0), return_inverse=True)  # 0, missing, keeps its number
        values, n_codes = values[:-1], len(present)
    return Codes(name, values.astype(np.int32), n_codes, has_missing)


def n_alone_with(groups: Grouping, column: Codes) -> int:
    """Return how many records would stand alone if the groups were divided by one more column."""
    ones = np.ones(len(groups.order), np.uint8)
    return int(count_alone(groups.order, groups.starts, column.values, column.n_codes, ones))
