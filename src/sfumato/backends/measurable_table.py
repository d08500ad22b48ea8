# SPDX-License-Identifier: Apache-2.0
"""The protocol of ``measure`` for all backends: counts of groups, and of the records that columns make unique.

Each backend implements :class:`MeasurableTable`; ``measurement.measuring`` puts a measurement together from the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import Need
from sfumato.backends.group_rows import Rows
from sfumato.frames import Table

WorkOnWeights = Callable[[NDArray[np.int64], NDArray[np.float64]], NDArray[np.float64]]
"""Computes a row of numbers from the sizes of some groups and the sums of their weights."""


@dataclass(frozen=True, eq=False)
class GroupRequest:
    """A request to count groups of records that have the same values in some columns.

    Attributes
    ----------
    columns : tuple of str
        All columns that may be counted, in the order of the table.
    keys : tuple of str
        Records that have the same values in these columns form a group.
    sensitive : tuple of str
        Columns whose values are counted in each group.
    unit : str or None
        The column that names the person of a record.
    weights : str, array-like or None
        The column of survey weights, or one weight per record.
    work_on_weights : callable
        Called with blocks of groups, wherever they are.
    population : Population or None
        A larger table with the same keys.
    missing : {"value", "wildcard"}
        Whether a missing key is a value of its own, or matches anything.
    """

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    sensitive: tuple[str, ...]
    unit: str | None
    weights: Any
    work_on_weights: WorkOnWeights
    population: Any
    missing: str


@dataclass(frozen=True, eq=False)
class SensitiveCounts:
    """The values of a sensitive column, in the table and in each group.

    Attributes
    ----------
    name : str
    is_text : bool
        Whether its values are text, which has no order of its own.
    values : sequence
        The values that occur, in their order, and None last where some are missing.
    reference : ndarray of int64
        How often each occurs in the table.
    rows : Rows or None
        How often each occurs in the groups; None where that is too much to count.
    """

    name: str
    is_text: bool
    values: Sequence[Any]
    reference: NDArray[np.int64]
    rows: Rows | None


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """Kinds of groups, the number of groups of each kind, and what else was counted.

    Attributes
    ----------
    sizes : ndarray of int64
        Records of a group.
    matched : ndarray of int64
        Records that those of the group match: its size, unless missing values match anything.
    n_groups : ndarray of int64
        Groups of this kind.
    in_population : ndarray of int64 or None
        Members of the population that the group's records match.
    is_matching : bool
        Whether missing keys match anything, and there are some, so that groups overlap.
    n_with_missing : int
        Records that miss a key.
    n_people : int or None
        Members of the population.
    fewest_persons : int or None
        The fewest distinct persons of a group.
    of_weights : list of ndarray of float64
        What `work_on_weights` returned; nothing without weights.
    sensitive : iterable of SensitiveCounts
        To be read once, one after the other.
    """

    sizes: NDArray[np.int64]
    matched: NDArray[np.int64]
    n_groups: NDArray[np.int64]
    in_population: NDArray[np.int64] | None
    is_matching: bool
    n_with_missing: int
    n_people: int | None
    fewest_persons: int | None
    of_weights: list[NDArray[np.float64]]
    sensitive: Iterable[SensitiveCounts]


class UniqueSets(Protocol):
    """Counts the records that sets of columns make unique. A missing value is a value of its own."""

    def unique_counts(self, sets: Sequence[Sequence[str]]) -> list[int]:
        """Return for each set of columns how many records share their values in it with no other.

        Quick where sets differ in their last column only, and where the sets of a later call extend them.
        """
        ...

    def n_codes(self, names: Sequence[str]) -> dict[str, int]:
        """Return how fine columns are: about the number of their distinct values."""
        ...

    def condensed(self, names: Sequence[str]) -> UniqueSets:
        """Return the same table prepared for many sets of only these columns."""
        ...


class GroupCounting(Protocol):
    """A table that is being counted."""

    n_records: int

    def group_counts(self) -> GroupCounts:
        """Count the groups."""
        ...

    def unique_sets(self) -> UniqueSets:
        """Return all columns, ready to be counted."""
        ...


class Population(Protocol):
    """The people that a table was drawn from, as another table."""

    @property
    def example(self) -> Table:
        """A table with its columns."""
        ...


class MeasurableTable(Protocol):
    """A table in memory, in blocks or in Spark.

    Attributes
    ----------
    cannot : mapping of str to str
        What the table cannot do, with a sentence for users.
    """

    cannot: Mapping[Need, str]

    @property
    def example(self) -> Table:
        """A table with its columns, and as many of its records as are at hand."""
        ...

    def population(self, given: Any, keys: Sequence[str]) -> Population:
        """Return the table of a population; raise InputError if it cannot be compared with this table."""
        ...

    def counting(self, request: GroupRequest) -> AbstractContextManager[GroupCounting]:
        """Yield the counter of this table."""
        ...
