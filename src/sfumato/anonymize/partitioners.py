# SPDX-License-Identifier: Apache-2.0
"""Partitioners form groups of records and join groups that fail a criterion.

A partitioner is made from an anonymizer's parameters and holds no records. All protection is in ``anonymizer``, once
for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.fitted_partition import partition_from_tree
from sfumato.anonymize.hierarchy_columns import taxonomy_of
from sfumato.anonymize.recoding import Recoding
from sfumato.backends.base import check_of
from sfumato.backends.memory import MemorySource
from sfumato.coded_columns import CodedColumn
from sfumato.criteria.criterion_counts import Counter, fewest_records
from sfumato.frames import Table
from sfumato.hierarchies import CodePaths
from sfumato.partition import information_loss_tree, relaxed_mondrian
from sfumato.partition.group_summaries import Groups, lined_up
from sfumato.partition.grower import Grower, Grown, in_group_order
from sfumato.partition.guides import Guide, integer_weights
from sfumato.partition.records import Records
from sfumato.partition.taxonomy import Taxonomy
from sfumato.partition.tree import close_unsafe

MakePartition = Callable[..., Recoding]
"""Takes the values and sizes of the groups, and what is known of the columns; returns the fitted partition."""


@dataclass(eq=False)
class Task:
    """Records to be put into groups.

    Attributes
    ----------
    source : MemorySource
        Their columns, as codes; forgets the codes once they are read.
    paths : mapping
        The labels above the codes of columns with a hierarchy.
    guide : Guide
    weight : ndarray of float64 or None
    counters : list of Counter
        What every group must meet.
    n_threads : int
    with_classes : bool
        Whether the guide's classes are looked at when groups are described.
    """

    source: MemorySource
    paths: Mapping[str, CodePaths]
    guide: Guide
    weight: NDArray[np.float64] | None
    counters: list[Counter]
    n_threads: int
    with_classes: bool


@dataclass(frozen=True, eq=False)
class Divided:
    """Records in groups.

    Attributes
    ----------
    group : ndarray of int32
        Of every record.
    codes : ndarray
        Of every record, in an order of the partitioner's choice.
    groups : Groups
        The records of each group, by their places in that order.
    guide : Guide
        In that order.
    make_partition : callable
    """

    group: NDArray[np.int32]
    codes: NDArray[Any]
    groups: Groups
    guide: Guide
    make_partition: MakePartition


@dataclass(frozen=True, eq=False)
class Fit:
    """The state that fitting hands to `fit_transform`; never stored on the estimator.

    `columns` are the quasi-identifiers with the codes of the records, if regions were asked for.
    """

    table: Table
    counters: list[Counter]
    group: NDArray[np.int32]
    columns: Sequence[CodedColumn] = ()


class Partitioner(Protocol):
    """Forms groups of records."""

    @property
    def by_counts(self) -> bool:
        """True if counts determine the groups, so that tables need not be in memory."""
        ...

    def divide(self, task: Task) -> Divided:
        """Form groups that meet all criteria."""
        ...

    def join(self, partition: Any, leaf: NDArray[np.int32], counters: list[Counter]) -> NDArray[np.integer[Any]]:
        """Return for every fitted group a number that it shares with those it is joined with, so that all are safe.

        `leaf` is the fitted group of every record (-1: left out). All records together meet the criteria.
        """
        ...


class TreePartitioner:
    """Grows the engine's tree: the splits with the largest gain for the guide, from exact counts.

    Parameters
    ----------
    fall_back : bool, default=True
        Whether information loss decides if no split has a gain for the guide.
    """

    def __init__(self, *, fall_back: bool = True) -> None:
        self.fall_back = fall_back

    @property
    def by_counts(self) -> bool:
        """True if this is the engine's own tree, the only one for tables that are not in memory."""
        return type(self).grow is TreePartitioner.grow

    def divide(self, task: Task) -> Divided:
        """Grow the tree over the source's bins."""
        source, guide = task.source, task.guide
        whole = None if task.weight is None else integer_weights(task.weight, guide.value_bits)
        records = source.records(guide, whole)
        taxonomy = taxonomy_of(source.columns, source.layout, task.paths)
        source.forget_codes()
        grown = self.grow(records, task, taxonomy)
        del records  # from here on they are needed in the order of their groups

        def make_partition(values: Any, sizes: NDArray[np.int64], **facts: Any) -> Recoding:
            return partition_from_tree(grown.tree, source.columns, values, sizes, **facts)

        in_order = guide.lined_up(grown.records, source.layout.n_columns, with_classes=task.with_classes)
        return Divided(grown.group, grown.records.codes, lined_up(grown.sizes), in_order, make_partition)

    def grow(self, records: Records, task: Task, taxonomy: Taxonomy) -> Grown:
        """Grow the tree."""
        return self._grower(records, task, taxonomy).grow_in_order()

    def _grower(self, records: Records, task: Task, taxonomy: Taxonomy) -> Grower:
        return Grower(
            records,
            task.source.layout,
            task.guide,
            min_records=fewest_records(task.counters),
            checks=[check_of(counter) for counter in task.counters if counter.value_of_row is not None],
            fall_back=self.fall_back,
            n_threads=task.n_threads,
            taxonomy=taxonomy,
        )

    def join(self, partition: Any, leaf: NDArray[np.int32], counters: list[Counter]) -> NDArray[np.integer[Any]]:
        """Join a group that fails with its whole sibling subtree, until all pass; return the first leaf of each."""
        tree = partition.tree

        def is_safe(first: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.bool_]:
            # Runs handed in together never overlap, so each leaf belongs to one of them or to none.
            run_of_leaf = np.full(tree.n_groups, -1, np.int64)
            for run, (a, b) in enumerate(zip(first, stop, strict=True)):
                run_of_leaf[a:b] = run
            group = np.where(leaf >= 0, run_of_leaf[leaf], -1)
            safe = np.ones(len(first), np.bool_)
            for counter in counters:
                safe &= counter.are_safe(group, len(first), run_of_leaf)
            return safe

        first_leaf = close_unsafe(tree, is_safe)
        assert first_leaf is not None  # all records together meet the criteria
        return first_leaf


class _WithAllRecords(TreePartitioner):
    """A tree that is grown over records, not over counts of them."""

    _grow: Callable[..., Any]

    def grow(self, records: Records, task: Task, taxonomy: Taxonomy) -> Grown:
        """Grow the tree."""
        checks = [check_of(counter) for counter in task.counters if counter.value_of_row is not None]
        tree, group = type(self)._grow(
            records.codes,
            task.source.layout,
            fewest_records(task.counters),
            taxonomy=taxonomy,
            is_safe=(lambda rows: all(check.is_safe(rows) for check in checks)) if checks else None,
        )
        return in_group_order(tree, group, records)


class RelaxedPartitioner(_WithAllRecords):
    """Cuts at medians, where records that have the median may go to either side."""

    _grow = staticmethod(relaxed_mondrian.grow)


class InformationLossPartitioner(_WithAllRecords):
    """Cuts where most detail is kept, with records set aside that would make groups wide."""

    _grow = staticmethod(information_loss_tree.grow)
