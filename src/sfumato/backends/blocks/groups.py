# SPDX-License-Identifier: Apache-2.0
"""Group counts of a table that is read in blocks, exact whatever its size.

Records are coded, and the codes sorted into buckets by the hash of their keys. A group lies in one bucket, so buckets
are grouped one after the other, and their counts add up. Hashes only choose the bucket; groups have equal values.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import Need
from sfumato.backends.blocks.block_table import BlockTable, is_block_table
from sfumato.backends.blocks.column_codes import Blocks, ColumnCodes
from sfumato.backends.blocks.unique_sets import BlockUniqueSets
from sfumato.backends.blocks.working_files import Buckets, ColumnFile, WorkingFiles, into_buckets, n_buckets_for
from sfumato.backends.group_rows import (
    LARGEST_WORK,
    CountRows,
    as_codes,
    check_positive,
    count_rows,
    distinct_rows,
    distinct_sizes,
    equal_counts,
    fewest_persons,
    join_rows,
    keys_of,
    match_counts,
    n_not_positive,
    weights_of,
)
from sfumato.backends.measurable_table import GroupCounts, GroupRequest, SensitiveCounts
from sfumato.frames import read_table
from sfumato.frames.assembling import as_arrow
from sfumato.grouping import MISSING, Grouping, group
from sfumato.progress import Progress

MOST_HELD = 8_000_000
"""Records that are grouped in memory at once: about 100 bytes each."""

_WEIGHT = "\x00weight"  # no column of a table is called this


class BlockPopulation(Blocks):
    """The people that a table was drawn from."""

    def __init__(self, given: BlockTable | Any) -> None:
        if is_block_table(given):
            self.example = read_table(given.head(1))
            super().__init__(given.n_records, given.batches)
        else:
            self.example = read_table(given)
            super().__init__(self.example.n_records, lambda names: iter([as_arrow(given).select(list(names))]))


class MeasurableBlocks:
    """A table that is read in blocks and can be measured.

    Parameters
    ----------
    table : BlockTable
    categorical : sequence of str or int
        Columns of numbers that are codes.
    most_held : int
        Records that are grouped in memory at once.
    scratch : path or None
        Where working files go; None: where the system keeps temporary files.
    progress : callable or None
    """

    cannot: Mapping[Need, str] = {Need.WEIGHTS_BY_POSITION: "Add the weights to the table."}

    def __init__(
        self,
        table: BlockTable,
        *,
        categorical: Sequence[str | int] = (),
        most_held: int = MOST_HELD,
        scratch: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.table, self.most_held, self.progress = table, most_held, progress
        self.example = read_table(table.head(1), categorical=categorical)
        self._scratch = scratch

    def population(self, given: Any, keys: Sequence[str]) -> BlockPopulation:
        """Return the table of a population: one that is read in blocks, or a frame."""
        return BlockPopulation(given)

    @contextmanager
    def counting(self, request: GroupRequest) -> Iterator[BlockCounting]:
        """Yield the counter of this table; its working files are removed at the end."""
        with WorkingFiles(self._scratch) as files:
            yield BlockCounting(self, request, files)


class BlockCounting:
    """Counts the groups of a table, and the records that columns make unique."""

    def __init__(self, measurable: MeasurableBlocks, request: GroupRequest, files: WorkingFiles) -> None:
        self.n_records = measurable.table.n_records
        self._table, self._example, self._most_held = measurable.table, measurable.example, measurable.most_held
        self._request, self._files, self._progress = request, files, measurable.progress
        largest = max(self.n_records, request.population.n_records if request.population else 0)
        self._n_buckets = n_buckets_for(largest, measurable.most_held)

    @cached_property
    def _codes(self) -> ColumnCodes:
        return ColumnCodes(
            self._files,
            Blocks(self.n_records, self._table.batches),
            self._request.columns,
            people=self._request.population,
            keys=self._request.keys,
            categorical=self._example.categorical,
            most_held=self._most_held,
            progress=self._progress,
        )

    @cached_property
    def _buckets(self) -> Buckets:
        carried = dict(self._codes.columns)
        if self._request.weights is not None:
            carried[_WEIGHT] = self._write_weights(self._request.weights)
        return into_buckets(self._files, carried, self._request.keys, self._n_buckets)

    def _write_weights(self, name: str) -> ColumnFile:
        file, n_wrong = self._files.new_column(np.float64), 0
        for batch in self._table.batches([name]):
            values = weights_of(read_table(batch).column(name))
            n_wrong += n_not_positive(values)
            file.append(values)
        check_positive(n_wrong, self.n_records)
        return file

    def unique_sets(self) -> BlockUniqueSets:
        """Return all columns, ready to be counted."""
        return BlockUniqueSets(
            self._files, self._codes, self._request.keys, self._buckets, self._most_held, self._progress
        )

    def group_counts(self) -> GroupCounts:
        """Count the groups."""
        request, codes = self._request, self._codes
        keys_with_missing = [codes.values[name] for name in request.keys if codes.values[name].some_missing]
        is_wild = request.missing == "wildcard" and bool(keys_with_missing)
        is_matching = is_wild and any(values.has_missing for values in keys_with_missing)
        sensitive = [_SensitiveCodes(name, self._table, codes, keeps_groups=is_wild) for name in request.sensitive]
        theirs = None
        if request.population is not None:
            theirs = into_buckets(self._files, codes.theirs, request.keys, self._n_buckets)
        groups = _BucketGroups(request, codes.n_codes, sensitive, keeps_groups=is_wild)
        for bucket in self._told(self._buckets):
            groups.add(self._buckets, bucket, None if is_wild else theirs)
        sizes, in_population, n_groups = groups.kinds()
        keys, matched = None, sizes
        if is_matching:
            keys = groups.keys()
            matched = match_counts(keys, keys, sizes[:, None])[:, 0]
        if is_wild and theirs is not None:
            others = _BucketGroups(request, codes.n_codes, (), keeps_groups=True)
            for bucket in self._told(theirs):
                others.add_sizes(theirs, bucket)
            in_population = match_counts(groups.keys(), others.keys(), others.kinds()[0][:, None])[:, 0]
        return GroupCounts(
            sizes=sizes,
            matched=matched,
            n_groups=n_groups,
            in_population=None if theirs is None else in_population,
            is_matching=is_matching,
            n_with_missing=groups.n_with_missing,
            n_people=None if theirs is None else request.population.n_records,
            fewest_persons=min(groups.fewest_persons, default=None),
            of_weights=groups.of_weights,
            sensitive=(own.counts(keys) for own in sensitive),
        )

    def _told(self, buckets: Buckets) -> Iterator[int]:
        """Yield the buckets that have records."""
        done = np.cumsum(buckets.stops - buckets.starts).tolist()
        for bucket in range(len(buckets)):
            if buckets.n_records(bucket):
                yield bucket
            if self._progress is not None:
                self._progress("grouping", done[bucket], done[-1])


class _BucketGroups:
    """The groups of all buckets, without their records.

    Parameters
    ----------
    request : GroupRequest
    n_codes : mapping of str to int
    sensitive : sequence of _SensitiveCodes
        To be counted in each group.
    keeps_groups : bool
        Whether every group is kept with its key, and not only how many there are of each size.
    """

    def __init__(
        self,
        request: GroupRequest,
        n_codes: Mapping[str, int],
        sensitive: Sequence[_SensitiveCodes],
        *,
        keeps_groups: bool,
    ) -> None:
        self._request, self._n_codes, self._sensitive = request, n_codes, sensitive
        self._keeps_groups = keeps_groups
        self.n_with_missing = 0
        self.fewest_persons: list[int] = []
        self.of_weights: list[NDArray[np.float64]] = []
        self._kinds: list[NDArray[np.int64]] = []  # rows of size, size in the population, number of groups
        self._keys: list[NDArray[np.int32]] = []

    def add(self, buckets: Buckets, bucket: int, theirs: Buckets | None) -> None:
        """Group the records of a bucket; `theirs` has the population in the same buckets."""
        request = self._request
        groups, keys = self._grouped(buckets, bucket)
        self.n_with_missing += int(groups.sizes[(keys == MISSING).any(axis=1)].sum())
        if request.unit is not None:
            unit = as_codes(buckets.read(bucket, request.unit), self._n_codes[request.unit])
            self.fewest_persons.append(fewest_persons(groups, unit))
        if request.weights is not None:
            weights = buckets.read(bucket, _WEIGHT)
            sums = np.add.reduceat(weights[groups.order], groups.starts[:-1])
            self.of_weights.append(request.work_on_weights(groups.sizes, sums))
        for own in self._sensitive:
            own.add(groups, buckets.read(bucket, own.name))
        in_population = np.zeros(groups.n_groups, np.int64)
        if theirs is not None and theirs.n_records(bucket):
            their_groups, their_keys = self._grouped(theirs, bucket)
            in_population = equal_counts(keys, their_keys, their_groups.sizes)
        self._note(groups, keys, in_population)

    def add_sizes(self, buckets: Buckets, bucket: int) -> None:
        """Group the records of a bucket and note only the sizes."""
        groups, keys = self._grouped(buckets, bucket)
        self._note(groups, keys, np.zeros(groups.n_groups, np.int64))

    def _grouped(self, buckets: Buckets, bucket: int) -> tuple[Grouping, NDArray[np.int32]]:
        names = self._request.keys
        codes = [buckets.read(bucket, name) for name in names]
        columns = [as_codes(own, self._n_codes[name]) for name, own in zip(names, codes, strict=True)]
        groups = group(columns, buckets.n_records(bucket))
        return groups, keys_of(codes, groups)

    def _note(self, groups: Grouping, keys: NDArray[np.int32], in_population: NDArray[np.int64]) -> None:
        kinds = np.stack([groups.sizes, in_population, np.ones_like(in_population)], axis=1)
        if self._keeps_groups:
            self._keys.append(keys)
        self._kinds.append(kinds if self._keeps_groups else _added_up(kinds))

    def keys(self) -> NDArray[np.int32]:
        """Return the key of every group that was kept."""
        return np.concatenate(self._keys)

    def kinds(self) -> list[NDArray[np.int64]]:
        """Return sizes, sizes in the population and numbers of groups: of each kind, or of each group that was kept."""
        kinds = np.concatenate(self._kinds)
        return [np.ascontiguousarray(part) for part in (kinds if self._keeps_groups else _added_up(kinds)).T]


def _added_up(kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return every distinct pair of sizes once, with the number of groups."""
    known, place_of_known = distinct_sizes(kinds[:, 1])
    pairs, place = distinct_sizes(kinds[:, 0] * len(known) + place_of_known)
    n_groups = np.bincount(place, weights=kinds[:, 2]).astype(np.int64)
    return np.column_stack([pairs // len(known), known[pairs % len(known)], n_groups])


class _SensitiveCodes:
    """How often each value of a sensitive column occurs in each group."""

    def __init__(self, name: str, table: BlockTable, codes: ColumnCodes, *, keeps_groups: bool) -> None:
        self.name, self._keeps_groups = name, keeps_groups
        values = codes.values[name]
        self._is_counted = not values.is_on_disk
        self._values: Sequence[Any] = range(codes.n_codes[name] - 1)
        self._reference = np.zeros(0, np.int64)
        if self._is_counted:
            counts = codes.count_values(name)
            # The place of each code's value in the order of the values.
            self._values, self._place = values.in_order(counts, table.schema.field(name).type)
            used = np.flatnonzero(counts)
            self._reference = np.zeros(len(self._values), np.int64)
            self._reference[self._place[used]] = counts[used]
        self._is_text = values.is_text
        self._rows: list[CountRows] = []  # of every bucket, or of all of them together, each distinct row once

    def add(self, groups: Grouping, codes: NDArray[Any]) -> None:
        """Count the values of a bucket's groups."""
        if not self._is_counted:
            return
        rows = count_rows(groups.of_records(), groups.n_groups, self._place[codes], len(self._values))
        if self._keeps_groups:
            self._rows.append(rows)
            return
        rows = rows.without_repetition()
        self._rows = [join_rows([*self._rows, rows]).without_repetition() if self._rows else rows]
        if self._rows[0].n_rows * len(self._values) > LARGEST_WORK:
            self._is_counted = False  # more rows only make it more

    def counts(self, keys: NDArray[np.int32] | None) -> SensitiveCounts:
        """Return the counts; with the keys of the groups that were kept, of all records that a group matches."""
        rows = None
        if self._is_counted:
            rows = distinct_rows(join_rows(self._rows), keys) if self._keeps_groups else self._rows[0]
        return SensitiveCounts(self.name, self._is_text, self._values, self._reference, rows)
