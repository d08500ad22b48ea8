# SPDX-License-Identifier: Apache-2.0
"""What buckets of records say about their groups, added up. Called by ``measuring``, bucket after bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.blocks.value_codes import ValueCodes
from sfumato.backends.blocks.working_files import Buckets
from sfumato.grouping import MISSING, Grouping, group
from sfumato.measurement.count_rows import CountRows, count_rows
from sfumato.measurement.criterion_values import LARGEST_WORK, Sensitive, rows_of_matches
from sfumato.measurement.measuring import count_matches, fewest_persons
from sfumato.measurement.tally import GroupTally, distinct_sizes
from sfumato.parquet.ranking import as_codes, n_alone_with


class GroupsOfBuckets:
    """The groups of all buckets, without their records.

    Parameters
    ----------
    keys : sequence of str
        The quasi-identifiers.
    others : sequence of str
        Columns of which it is asked how many records they would make unique beside the quasi-identifiers.
    n_codes : mapping of str to int
    unit, weight : str or None
        The columns that say who a record belongs to, and how many people it stands for.
    keeps_groups : bool
        Whether every group is kept with its key, and not only how many there are of each size.

    Attributes
    ----------
    n_with_missing : int
        Records that miss a quasi-identifier.
    fewest_persons : int or None
    added : dict of str to int
        Unique records with each of the other columns.
    """

    def __init__(
        self,
        keys: Sequence[str],
        others: Sequence[str],
        n_codes: Mapping[str, int],
        *,
        unit: str | None = None,
        weight: str | None = None,
        keeps_groups: bool = False,
    ) -> None:
        self._keys, self._n_codes, self._unit, self._weight = keys, n_codes, unit, weight
        self._keeps_groups = keeps_groups
        self.n_with_missing = 0
        self.fewest_persons: int | None = None
        self.added = dict.fromkeys(others, 0)
        self.n_groups = 0
        self._kinds: list[NDArray[np.int64]] = []  # rows of size, size in the population, number of groups
        self._weights: list[NDArray[np.float64]] = []
        self._kept_keys: list[NDArray[np.int32]] = []
        self._has_population = False

    def add(
        self, buckets: Buckets, bucket: int, theirs: Buckets | None, sensitive: Sequence[SensitiveCodes] = ()
    ) -> None:
        """Group the records of a bucket; `theirs` has the population in the same buckets."""
        raw = {name: buckets.read(bucket, name) for name in self._keys}
        groups = self._grouped(raw)
        self.n_with_missing += int(np.logical_or.reduce([codes == MISSING for codes in raw.values()]).sum())
        for name in self.added:
            column = as_codes(name, buckets.read(bucket, name), self._n_codes[name])
            self.added[name] += n_alone_with(groups, column)
            if name == self._unit:
                fewest = fewest_persons(groups, column)
                self.fewest_persons = fewest if self.fewest_persons is None else min(fewest, self.fewest_persons)
        for own in sensitive:
            own.add(groups, buckets.read(bucket, own.about.name), self.n_groups if self._keeps_groups else None)
        keys = self._keys_of(raw, groups)
        known = np.zeros(groups.n_groups, np.int64)
        if theirs is not None:
            self._has_population = True
            if theirs.n_records(bucket):
                known = self._in_population(keys, {name: theirs.read(bucket, name) for name in self._keys})
        self._note(groups, keys, known)
        if self._weight is not None:
            values = buckets.read(bucket, self._weight)
            self._weights.append(np.add.reduceat(values[groups.order], groups.starts[:-1]))
        self.n_groups += groups.n_groups

    def _grouped(self, raw: Mapping[str, NDArray[Any]]) -> Grouping:
        columns = [as_codes(name, values, self._n_codes[name]) for name, values in raw.items()]
        return group(columns, len(columns[0].values))

    def _keys_of(self, raw: Mapping[str, NDArray[Any]], groups: Grouping) -> NDArray[np.int32]:
        first = groups.order[groups.starts[:-1]]
        return np.stack([values[first].astype(np.int32) for values in raw.values()], axis=1)

    def _in_population(self, keys: NDArray[np.int32], raw: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """Return how many people of the population have each key."""
        groups = self._grouped(raw)
        both = np.concatenate([keys, self._keys_of(raw, groups)])
        columns = [as_codes(name, both[:, j], self._n_codes[name]) for j, name in enumerate(self._keys)]
        codes = np.stack([column.values for column in columns], axis=1)
        n_codes = [column.n_codes for column in columns]
        return count_matches(codes[: len(keys)], codes[len(keys) :], groups.sizes, n_codes, is_wild=False)

    def _note(self, groups: Grouping, keys: NDArray[np.int32], known: NDArray[np.int64]) -> None:
        kinds = np.stack([groups.sizes, known, np.ones_like(known)], axis=1)
        if self._keeps_groups:
            self._kept_keys.append(keys)
        elif self._weight is None:
            kinds = _added_up(kinds)
        self._kinds.append(kinds)

    def keys(self) -> NDArray[np.int32]:
        """Return the key of every group that was kept."""
        return np.concatenate(self._kept_keys)

    def sizes(self) -> NDArray[np.int64]:
        """Return the sizes of the groups, or the sizes that occur."""
        return np.concatenate(self._kinds)[:, 0]

    def tally(
        self,
        missing: str,
        *,
        matched: NDArray[np.int64] | None = None,
        in_population: NDArray[np.int64] | None = None,
    ) -> GroupTally:
        """Return all groups; where missing values match anything, with what the kept keys match."""
        kinds = np.concatenate(self._kinds)
        if not self._keeps_groups and self._weight is None:
            kinds = _added_up(kinds)
        sizes, known, n_groups = (np.ascontiguousarray(part) for part in kinds.T)
        return GroupTally(
            sizes=sizes,
            matched=sizes if matched is None else matched,
            n_groups=n_groups,
            in_population=known if self._has_population else in_population,
            weight=np.concatenate(self._weights) if self._weights else None,
            is_matching=matched is not None,
            missing=missing,
        )


def _added_up(kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return every different pair of sizes once, with the number of groups."""
    known, place_of_known = distinct_sizes(kinds[:, 1])
    pairs, place = distinct_sizes(kinds[:, 0] * len(known) + place_of_known)
    n_groups = np.bincount(place, weights=kinds[:, 2]).astype(np.int64)
    return np.column_stack([pairs // len(known), known[pairs % len(known)], n_groups])


class SensitiveCodes:
    """How often each value of a sensitive column occurs in each group, every different row of counts once.

    Parameters
    ----------
    about : Sensitive
    place : ndarray of int64 or None
        The place of each code's value in the order of the values; None: too many to be counted.
    """

    def __init__(self, about: Sensitive, place: NDArray[np.int64] | None) -> None:
        self.about = about
        self._place = place
        self._rows: CountRows | None = None
        self._cells: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    @classmethod
    def of(cls, values: ValueCodes, counts: NDArray[np.int64], kind: Any, hierarchy: Any) -> SensitiveCodes:
        """Number the values in their order, given how often each code occurs."""
        listed, place = values.in_order(counts, kind)
        reference = np.zeros(len(listed), np.int64)
        used = np.flatnonzero(counts)
        reference[place[used]] = counts[used]
        return cls(Sensitive(values.name, values.is_text, listed, reference, hierarchy), place)

    @classmethod
    def too_many(cls, name: str, n_values: int, hierarchy: Any) -> SensitiveCodes:
        """Stand for a column with too many values to be counted."""
        return cls(Sensitive(name, True, range(n_values), np.zeros(0, np.int64), hierarchy), None)

    def add(self, groups: Grouping, codes: NDArray[Any], first_group: int | None) -> None:
        """Count the values of a bucket's groups; kept apart where groups are numbered, from `first_group` on."""
        if self._place is None:
            return
        n_values = len(self.about.values)
        rows = count_rows(groups.of_records(), groups.n_groups, self._place[codes], n_values)
        if first_group is not None:
            group_of_cell = first_group + np.repeat(np.arange(rows.n_rows), np.diff(rows.starts))
            self._cells.append((group_of_cell * n_values + rows.values, rows.counts))
            return
        rows = rows.without_repetition()
        if self._rows is not None:
            rows = _joined(self._rows, rows).without_repetition()
        self._rows = rows
        if rows.n_rows * n_values > LARGEST_WORK:
            self._place = self._rows = None  # more rows only make it more

    def rows(self, groups: GroupsOfBuckets, is_matching: bool) -> CountRows | None:
        """Return the rows of counts; None: too many."""
        if not is_matching:
            if self._cells:
                return self._dense_rows(groups.n_groups)
            return self._rows
        n_values = len(self.about.values)
        if self._place is None or groups.n_groups * n_values > LARGEST_WORK // 4:
            return None
        return rows_of_matches(groups.keys(), self._counts(groups.n_groups))

    def _counts(self, n_groups: int) -> NDArray[np.int64]:
        counts = np.zeros(n_groups * len(self.about.values), np.int64)
        for cells, own in self._cells:
            counts[cells] = own
        return counts.reshape(n_groups, -1)

    def _dense_rows(self, n_groups: int) -> CountRows:
        n_values = len(self.about.values)
        cells, counts = (np.concatenate(parts) for parts in zip(*self._cells, strict=True))
        starts = np.insert(np.cumsum(np.bincount(cells // n_values, minlength=n_groups)), 0, 0)
        return CountRows(starts, cells % n_values, counts, n_values).without_repetition()


def _joined(one: CountRows, other: CountRows) -> CountRows:
    starts = np.concatenate([one.starts, other.starts[1:] + one.starts[-1]])
    values, counts = np.concatenate([one.values, other.values]), np.concatenate([one.counts, other.counts])
    return CountRows(starts, values, counts, one.n_values)
