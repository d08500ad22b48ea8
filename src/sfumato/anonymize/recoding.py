# SPDX-License-Identifier: Apache-2.0
"""Base of all fitted partitions: find the group of each record, and rewrite records by group."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.memory import read_limited
from sfumato.coded_columns import CodedColumn, units_of
from sfumato.columns import Column, GroupedLabels, GroupedValues, Kind, Moment
from sfumato.errors import InputError
from sfumato.fingerprints import Fingerprints
from sfumato.frames import Table, read_table
from sfumato.hierarchies import CodePaths
from sfumato.partition.round_numbers import NUMBER_UNITS, number_between
from sfumato.partition.surroundings import Surroundings
from sfumato.representatives import CellColumn, GroupValues


@dataclass(frozen=True, eq=False)
class PartitionColumn:
    """A column of a partition: turns values into the codes that the tree compares.

    Attributes
    ----------
    cuts : ndarray
        Ordered columns: the thresholds the tree uses, rising. A value's code is the number of cuts below it.
    categories : ndarray of object or None
        Categories: the values seen at fit, whose position is their code; then come missing and unseen.
    is_common : ndarray of bool or None
        Which categories at least k records had at fit; the others are named in no document.
    """

    name: str
    kind: Kind
    moment: Moment | None
    cuts: NDArray[Any]
    categories: NDArray[np.object_] | None
    is_common: NDArray[np.bool_] | None = None

    @classmethod
    def of_categories(cls, column: CodedColumn) -> PartitionColumn:
        """Return the column of categories as it was coded."""
        shared = column.bins.shared
        is_common = None if shared is None else shared.is_common
        return cls(column.name, column.kind, column.moment, np.zeros(0), column.categories, is_common)

    @property
    def missing_code(self) -> int:
        """Code of a missing value."""
        return len(self.cuts) + 1 if self.categories is None else len(self.categories)

    @property
    def unseen_code(self) -> int:
        """Code of a category that did not occur at fit."""
        return self.missing_code + 1

    def encode(self, column: Column) -> NDArray[np.uint16]:
        """Return the codes of a column of new records."""
        is_empty = column.missing is not None and bool(column.missing.all())
        if self.categories is not None and not len(self.categories) and not is_empty:
            # Nothing but missing values at fit, perhaps without a type: whatever comes now was not seen.
            present = np.full(column.n_records, self.unseen_code, np.uint16)
            return present if column.missing is None else np.where(column.missing, self.missing_code, present)
        if column.kind != self.kind and not is_empty:
            raise InputError(
                f"column {self.name!r} holds {_WORDS[column.kind]} now and held {_WORDS[self.kind]} when the partition "
                "was fitted: expected the same. Convert the column, or fit again on the new kind."
            )
        if is_empty:
            return np.full(column.n_records, self.missing_code, np.uint16)
        if self.categories is None:
            codes = np.searchsorted(self.cuts, column.values, side="left").astype(np.uint16)
        else:
            assert column.categories is not None
            self._check_type(column.categories)
            codes = self.codes_of(column.categories).astype(np.uint16)[column.values]
        if column.missing is not None:
            codes[column.missing] = self.missing_code
        return codes

    def codes_of(self, categories: NDArray[np.object_] | None) -> NDArray[np.int64]:
        """Return the code of each of some categories; none for columns without."""
        if self.categories is None or categories is None:
            return np.zeros(0, np.int64)
        known = {value: code for code, value in enumerate(self.categories)}
        return np.array([known.get(value, self.unseen_code) for value in categories], np.int64)

    def _check_type(self, categories: NDArray[np.object_]) -> None:
        """Raise InputError for categories of another type than at fit: none would be found."""
        known = () if self.categories is None else self.categories
        now, before = ({type_of_category(value) for value in found} for found in (categories, known))
        if before and not now <= before:
            raise InputError(
                f"column {self.name!r} has categories of another type than when the partition was fitted: expected "
                f"{' or '.join(sorted(before))}. Convert the column, or fit again."
            )


def type_of_category(value: Any) -> str:
    """Return the type of a category for messages: text, true or false, or numbers."""
    return "text" if isinstance(value, str) else "true or false" if isinstance(value, bool | np.bool_) else "numbers"


_WORDS = {"number": "numbers", "moment": "dates or times", "category": "categories"}


class Recoding:
    """Base of fitted partitions: dataclasses with these fields that find the group of a record."""

    columns: tuple[PartitionColumn, ...]
    values: dict[str, list[GroupValues]]
    group_sizes: NDArray[np.int64]
    dropped: tuple[str, ...]
    limits: dict[str, Any]
    categorical: tuple[str, ...]
    fingerprints: Fingerprints | None

    def apply_codes(self, codes: NDArray[np.uint16]) -> NDArray[np.int32]:
        """Return the group of every record, given its codes in the partition's columns."""
        raise NotImplementedError

    def _shape(self) -> Iterable[NDArray[Any]]:
        """Yield the arrays that decide the group of a record, besides the columns."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """Digest that is equal for partitions that group records equally."""
        mixed = hashlib.sha256()
        for column in self.columns:
            categories = None if column.categories is None else column.categories.tolist()
            mixed.update(repr((column.name, column.kind, column.cuts.tolist(), categories)).encode())
        for part in self._shape():
            mixed.update(repr(part.shape).encode() + np.ascontiguousarray(part).tobytes())
        return mixed.hexdigest()

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.group_sizes)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """The columns that are rewritten."""
        return tuple(self.values)

    def apply(self, frame: Any) -> NDArray[np.int32]:
        """Return the group of every record."""
        return self.apply_to(read_table(frame, categorical=self.categorical))

    def apply_to(self, table: Table) -> NDArray[np.int32]:
        """Return the group of every record of a table that was read."""
        columns = (read_limited(table, c.name, self.limits) for c in self.columns)  # one at a time in memory
        return self.apply_columns(columns, table.n_records)

    def apply_columns(self, columns: Iterable[Column], n_records: int) -> NDArray[np.int32]:
        """Return the group of every record, given the columns of the partition, made as coarse as their limits."""
        codes = np.empty((n_records, max(1, len(self.columns))), np.uint16)
        for position, (own, column) in enumerate(zip(self.columns, columns, strict=True)):
            codes[:, position] = own.encode(column)
        return self.apply_codes(codes)

    def transform(self, frame: Any) -> Any:
        """Rewrite new records as the fitted ones were rewritten.

        The number of new records per group is not guaranteed. Categorical types keep their list of categories.
        """
        table = read_table(frame, categorical=self.categorical)
        return self.rewrite(table, self.apply_to(table))

    def rewrite(
        self,
        table: Table,
        group: NDArray[np.int32],
        keep_rows: NDArray[np.int64] | None = None,
        *,
        compact_categories: bool = False,
        n_threads: int = 1,
    ) -> Any:
        """Return the table with every record's quasi-identifiers replaced by its group's values."""
        places = group.astype(np.intp)  # the type that gathers want; else every column would convert it again
        columns = {c.name: c for c in self.columns}
        new: dict[str, Any] = {}
        for name, parts in self.values.items():
            entries = [(p.name, self.grouped(columns[name], p, places)) for p in parts]
            new[name] = entries[0][1] if len(entries) == 1 else entries
        drop = [name for name in self.dropped if name in table.names]
        return table.replaced(
            new, drop=drop, keep_rows=keep_rows, compact_categories=compact_categories, n_threads=n_threads
        )

    def grouped(
        self, column: PartitionColumn, part: GroupValues, group: NDArray[np.integer[Any]]
    ) -> GroupedValues | GroupedLabels:
        """Return the values of a column of the release, as a table writes them."""
        if part.labels is not None:
            return GroupedLabels(part.labels, group)
        assert part.values is not None
        is_coarser = column.name in self.limits
        return GroupedValues(part.values, part.missing, group, column.categories, is_coarser, column.moment)

    def cell_columns(
        self,
        columns: Sequence[CodedColumn],
        paths: Mapping[str, CodePaths],
        group_of_leaf: NDArray[np.integer[Any]] | None = None,
    ) -> list[CellColumn] | None:
        """Return the cells of the groups, which cover the whole space; None for groups that are not boxes.

        Parameters
        ----------
        columns : sequence of CodedColumn
            The quasi-identifiers of the records to describe.
        paths : mapping
            The labels above the codes of columns with a hierarchy.
        group_of_leaf : ndarray of int, optional
            The group that each fitted group belongs to now; -1 without records. None: every fitted group is one.
        """
        return None

    def surroundings(
        self,
        columns: Sequence[CodedColumn],
        paths: Mapping[str, CodePaths],
        sizes: NDArray[np.int64],
        group_of_leaf: NDArray[np.integer[Any]] | None = None,
    ) -> Surroundings | None:
        """Return the neighbors of each group of these sizes; None where no cells tell who they are.

        Parameters as of `cell_columns`.
        """
        return None

    def with_values(self, columns: Sequence[CodedColumn], values: dict[str, list[GroupValues]]) -> Self:
        """Return the partition with other values per group, which index the categories of `columns`."""
        own = tuple(PartitionColumn(c.name, c.kind, c.moment, np.zeros(0), c.categories) for c in columns)
        return replace(self, columns=own, values=values)  # type: ignore[type-var]

    def output_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns of a rewritten table whose columns were `names`."""
        result: list[str] = []
        for name in names:
            if name in self.values:
                result.extend(part.name for part in self.values[name])
            elif name not in self.dropped:
                result.append(name)
        return result


def cuts_after(column: CodedColumn, last_bins: Iterable[int]) -> NDArray[Any]:
    """Return cuts after some bins: values between each bin and the next, rounded to few digits.

    If there is room, a cut is not the value of any record: between 30 and 31 it is 30.5.
    """
    cuts = [cut_after(column, last_bin) for last_bin in last_bins]
    is_real = column.bins.values.dtype.kind == "f" or any(isinstance(cut, float) for cut in cuts)
    return np.array(cuts, np.float64 if is_real else np.int64)


def cut_after(column: CodedColumn, last_bin: int) -> int | float:
    """Return the value that ends a bin."""
    bins = column.bins
    low: int | float = bins.high[last_bin].item()
    high: int | float = bins.low[last_bin + 1].item()
    cut: int | float | None
    if bins.values.dtype.kind == "f":
        cut = number_between(low, high, NUMBER_UNITS, 0)
    else:
        cut = number_between(low, high, units_of(column.moment), 1)
        span = max(abs(bins.low[0].item()), abs(bins.high[-1].item()))
        if cut is None and span < 2**52:
            return low + 0.5
    return low if cut is None else cut
