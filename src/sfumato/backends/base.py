# SPDX-License-Identifier: Apache-2.0
"""The protocol of tables outside memory, for all backends.

A verb is written once against :class:`TableBackend`. A backend declares missing capabilities in `cannot`, each with the
reason that users read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.group_describer import DescribedGroups, GroupDescriber
from sfumato.coded_columns import CodedColumn
from sfumato.criteria import Criterion
from sfumato.criteria.criterion_counts import Counter
from sfumato.frames import Table
from sfumato.partition.criterion_checks import Check
from sfumato.partition.guides import Guide
from sfumato.partition.records import Layout
from sfumato.partition.tree import Tree
from sfumato.regions import RegionPlan, Regions
from sfumato.representatives import CellColumn
from sfumato.schema import Judgement, Schema


class Need(Enum):
    """A capability of a table that a verb may need."""

    ALL_RECORDS = "all records at once"
    SUPPRESSION = "records to leave out"
    HIERARCHIES = "labels of hierarchies"
    TRAINING = "a guide to train"
    POPULATION = "a population to compare with"
    WEIGHTS_BY_POSITION = "weights in the order of the records"


FROM_COUNTS: Mapping[Need, str] = {
    Need.ALL_RECORDS: "its records are counted and never held together",
    Need.SUPPRESSION: "all of its records are kept",
    Need.HIERARCHIES: "only bins are counted",
    Need.TRAINING: "a model is trained on a table in memory",
    Need.POPULATION: "groups are not joined after they were made",
}
"""Missing capabilities of a table of which only counts are known, with reasons."""


class Guiding(Protocol):
    """Converts predictions to channels."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of predictions."""
        ...

    def of(self, block: Any, start: int = 0) -> Guide:
        """Return the guide of the records of a block, the first of which has this number; of no records with None."""
        ...


class Recipe(Protocol):
    """A fitted partition: the new values of each group's records."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        ...

    @property
    def values(self) -> Mapping[str, Any]:
        """The new values of every group, for each quasi-identifier."""
        ...

    @property
    def dropped(self) -> Sequence[str]:
        """Columns that are dropped."""
        ...

    @property
    def columns(self) -> Sequence[Any]:
        """The columns that were split on."""
        ...

    @property
    def categorical(self) -> Sequence[str]:
        """Columns of numbers that are codes."""
        ...

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the group of every record."""
        ...

    def rewrite(self, table: Table, group: NDArray[np.int32]) -> Any:
        """Return the records with the values of their groups."""
        ...


@dataclass(frozen=True)
class Asked:
    """The request of a fit for the values of a table.

    Attributes
    ----------
    schema : Schema
    head : Table
        Some records, by which the form of values is judged.
    criteria : sequence of Criterion
    split : sequence of str
        The columns that are binned, the quasi-identifiers first.
    max_bins : int
    is_chosen : bool
        Whether the quasi-identifiers were named, and not all columns taken for them.
    finer : int
        A floor for values of regions, beside the one of what is published; 0: none.
    """

    schema: Schema
    head: Table
    criteria: Sequence[Criterion]
    split: Sequence[str]
    max_bins: int
    is_chosen: bool
    finer: int = 0


@dataclass(frozen=True, eq=False)
class Learned:
    """The bins and counts of the values of a table.

    Attributes
    ----------
    columns : list of CodedColumn
        Bins of the columns asked for.
    counters : list of Counter
        One per criterion.
    n_records : int
    """

    columns: list[CodedColumn]
    counters: list[Counter]
    n_records: int


@dataclass(frozen=True, eq=False)
class TableRegions:
    """What is counted of groups for regions, and of which target.

    Attributes
    ----------
    plan : RegionPlan
    name : str
        The column of the target.
    coded : callable
        Returns the classes and numbers of the records of a block; see `TargetCoding`.
    n_threads : int
    """

    plan: RegionPlan
    name: str
    coded: Callable[[Any], tuple[NDArray[np.int32], NDArray[np.int64]]]
    n_threads: int


@dataclass(frozen=True, eq=False)
class Growth:
    """How a tree is grown.

    Attributes
    ----------
    layout : Layout
    guide : Guide
        Rule and weights, without channels.
    min_records : int
    fall_back : bool
    n_threads : int
    describer : GroupDescriber
    generator : numpy.random.Generator or None
        Draws representatives that are drawn.
    """

    layout: Layout
    guide: Guide
    min_records: int
    fall_back: bool
    n_threads: int
    describer: GroupDescriber
    generator: np.random.Generator | None


class CodedTable(Protocol):
    """The records of a table as codes, wherever they are."""

    def grow(self, growth: Growth) -> tuple[Tree, list[DescribedGroups]]:
        """Return the tree that growing in memory would give, and its groups from left to right, in parts."""
        ...

    def count_hashes(self, layout: Layout, words: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return how many records have each of some combinations of codes; see `partition.phantoms`."""
        ...

    def regions(self, cells: Sequence[CellColumn] | None) -> Regions:
        """Return the regions of the groups that were grown, whose cells are given where groups are boxes."""
        ...


class WrittenTable(Protocol):
    """A release that is not published yet."""

    def recount(self, names: Sequence[str], counters: Sequence[Counter]) -> int:
        """Count the groups again with nothing of the engine; return the size of the smallest.

        Raises
        ------
        GuaranteeError
            When records are missing, or a criterion fails.
        """
        ...


class TableBackend(Protocol):
    """A table of which only counts, codes and blocks are asked.

    Attributes
    ----------
    where : str
        How sentences name the place of the table.
    cannot : mapping
        What the table cannot do, with the reason.
    """

    where: str
    cannot: Mapping[Need, str]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        ...

    def example(self) -> Any:
        """Return some records as an Arrow table; one without any value where records must not be seen."""
        ...

    def learn(self, asked: Asked, check_feasible: Callable[[list[Counter], int], None]) -> Learned:
        """Count values; raise InputError for columns that name people and have no role.

        `check_feasible` is called as soon as the counters and the number of records are known.
        """
        ...

    def map_blocks(self, work: Callable[[int, Any], Any], names: Sequence[str]) -> list[Any]:
        """Return what a function makes of every block of some columns, given the number of its first record."""
        ...

    def coded(
        self, schema: Schema, learned: Learned, guiding: Guiding, regions: TableRegions | None, most_held: int
    ) -> AbstractContextManager[CodedTable]:
        """Yield the records as codes and channels, and with their target if regions are counted."""
        ...

    def rewritten(self, recipe: Recipe, schema: Schema, learned: Learned) -> AbstractContextManager[WrittenTable]:
        """Yield the release of the table that was grown last; it is published if the context ends without an error."""
        ...


def check_of(counter: Counter) -> Check:
    """Return the condition on the sides of a split that a counter's criterion makes."""
    assert counter.value_of_row is not None
    reference = counter.reference
    criterion = counter.criterion
    return Check(
        counter.value_of_row.astype(np.int32),
        counter.n_values,
        criterion.counting == "distinct",
        lambda counts: criterion.passes(counter.seen(counts), reference),
    )


# -- anatomies ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KeptKinds:
    """How many records of each kind stay, where some must be suppressed.

    Attributes
    ----------
    n_frequent : list of int
        Per sensitive column, how many of its most frequent values are told apart.
    kinds : ndarray of int64, shape (kinds, columns)
        Per kind and column, the rank of the value from 1; 0 for all that are not among the frequent ones.
    n_kept : ndarray of int64
        Records that stay, of each kind.
    """

    n_frequent: list[int]
    kinds: NDArray[np.int64]
    n_kept: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draws:
    """The sources of all randomness of an anatomy, which know nothing of each other.

    Attributes
    ----------
    orders : list of numpy.random.Generator
        For the orders of the identifying and the sensitive tables.
    suppression : numpy.random.Generator
        For the records that are suppressed.
    groups : list of numpy.random.Generator
        For the groups of each sensitive table.
    """

    orders: list[np.random.Generator]
    suppression: np.random.Generator
    groups: list[np.random.Generator]


class GroupingRule(Protocol):
    """Groups records so that no sensitive value is above 1/l; codes have a column per sensitive column."""

    @property
    def ls(self) -> tuple[int, ...]:
        """No value of a column may have more than 1/l of a group, by its own l."""
        ...

    def check_enough(self, n_records: int) -> None:
        """Raise InputError if a table has fewer records than one group."""
        ...

    def suppress(
        self,
        n_records: int,
        counts: Sequence[NDArray[np.int64]],
        count_kinds: Callable[[list[int]], tuple[NDArray[np.int64], NDArray[np.int64]]],
    ) -> KeptKinds | None:
        """Return which records stay, None for all; raise GuaranteeError if too many must be suppressed.

        `counts` are those of each column's values, in falling order. `count_kinds` returns, for a number of frequent
        values per column, the kinds that occur and the records of each.
        """
        ...

    @property
    def apart(self) -> list[tuple[int, int]]:
        """All pairs of columns by their place, in both orders, that are in tables of their own."""
        ...

    def warn_of_dependence(self, shares: Mapping[tuple[int, int], float]) -> None:
        """Warn of columns in tables of their own of which one nearly determines the other.

        `shares` has, for the pairs of `apart`, the share of published records whose value of the second column is the
        most frequent one among other records with the same value of the first.
        """
        ...

    def group(self, codes: NDArray[np.int32], draws: Draws) -> NDArray[np.int64]:
        """Return the groups of every record, a column per sensitive table, -1 for suppressed ones; both are checked."""
        ...

    def assign(self, codes: NDArray[np.int32], random: np.random.Generator, table: int) -> NDArray[np.int64]:
        """Return the group of every record in one sensitive table, by the codes of that table's columns.

        No value may have more than 1/l of the records.
        """
        ...


@dataclass(frozen=True)
class SensitiveTable:
    """A table of sensitive columns.

    Attributes
    ----------
    label : str
        Of the table and its file: ``"sensitive"``, or with a number where there are several.
    columns : list of str
        In the order of the source.
    group : str
        The name of the column with its group, the last of the table.
    """

    label: str
    columns: list[str]
    group: str


@dataclass(frozen=True, eq=False)
class Division:
    """The plan for an anatomy.

    Attributes
    ----------
    head : Table
        The example, as it is read.
    identifying : list of str
        The columns of the identifying table, in the order of the source; the groups come behind them.
    sensitive : tuple of SensitiveTable
    seed : list of int
        All randomness comes from it.
    rule : GroupingRule
        Its codes have the columns of all sensitive tables, one table after the other.
    """

    head: Table
    identifying: list[str]
    sensitive: tuple[SensitiveTable, ...]
    seed: list[int]
    rule: GroupingRule

    @property
    def columns(self) -> list[str]:
        """The sensitive columns, in the order of their codes."""
        return [name for table in self.sensitive for name in table.columns]

    @property
    def groups(self) -> list[str]:
        """The names of the columns with groups, one per sensitive table."""
        return [table.group for table in self.sensitive]

    @property
    def labels(self) -> list[str]:
        """The names of all tables, the identifying one first."""
        return ["identifying", *(table.label for table in self.sensitive)]

    def draws(self) -> Draws:
        """Return the sources of randomness, fresh from the seed."""
        random = np.random.default_rng(self.seed)
        orders = random.spawn(len(self.labels))
        groups = [random] if len(self.sensitive) == 1 else random.spawn(len(self.sensitive))
        return Draws(orders, random, groups)

    def ls_of(self, table: SensitiveTable) -> dict[str, int]:
        """Return the l of each column of a sensitive table."""
        of_column = dict(zip(self.columns, self.rule.ls, strict=True))
        return {name: of_column[name] for name in table.columns}


class WrittenAnatomy(Protocol):
    """The tables of an anatomy that are not published yet."""

    @property
    def n_suppressed(self) -> int:
        """Records that were left out."""
        ...

    @property
    def group_sizes(self) -> NDArray[np.int64] | None:
        """Records of each group, one sensitive table after the other; None where they are too many to be gathered."""
        ...

    def recount(self) -> int:
        """Count the groups of all tables again with nothing of what made them; return how many there are.

        Raises GuaranteeError when the identifying table has other groups, or a value is above 1/l of one.
        """
        ...


class AnatomyBackend(Protocol):
    """A table that can be divided into an identifying and sensitive ones."""

    def example(self) -> Any:
        """Return some records; one without any value where records must not be seen."""
        ...

    def judge_naming(self, head: Table, names: Sequence[str]) -> Iterable[Judgement]:
        """Judge whether columns name people; columns that surely do not may be left out."""
        ...

    def divided(self, division: Division) -> AbstractContextManager[WrittenAnatomy]:
        """Yield the tables; they may be returned if the context ends without an error."""
        ...
