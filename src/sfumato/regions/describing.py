# SPDX-License-Identifier: Apache-2.0
"""Describe groups by the values that several of their people share.

A plan says which values of each column may be named. Groups are counted by it, all at once or in parts; what the parts
left over is counted in pools, and the weights of the columns are found with the records of a few groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.partition.group_summaries import Groups
from sfumato.partition.guides import NUMBER_SCALE, Spread
from sfumato.partition.phantom_search import NOTHING
from sfumato.partition.records import make_layout
from sfumato.partition.region_counts import (
    FAN,
    ColumnCounts,
    GroupCounts,
    Kind,
    carried,
    count_classes,
    count_groups,
    count_pools,
    joined,
)
from sfumato.regions.cells import inside_of, reach_of, without_cells
from sfumato.regions.regions import RegionColumn, Regions, runs_of
from sfumato.regions.target import RegionTarget, TargetCoding
from sfumato.regions.weights import Sample, Weights, joined_samples, learn_weights, sample_of
from sfumato.representatives import CellColumn, shown_of
from sfumato.representatives.representative import values_of_bins
from sfumato.threads import map_in_threads

_COUNTED_AT_ONCE = 1 << 18  # records of a task
_JUDGED = 10_000  # records with which weights are found


class GroupTargets(NamedTuple):
    """The targets of some groups.

    Attributes
    ----------
    n_in_class : ndarray of int64, shape (groups, classes)
    sums : ndarray of int64, shape (groups, outputs)
        Of the target's numbers.
    spread : list of Spread
        Of each output.
    """

    n_in_class: NDArray[np.int64]
    sums: NDArray[np.int64]
    spread: list[Spread]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """People of each group."""
        return np.asarray(self.n_in_class.sum(axis=1))


def joined_targets(parts: Sequence[GroupTargets]) -> GroupTargets:
    """Return the targets of all groups, part after part."""
    n_in_class, sums = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    spread = [sum(own, Spread()) for own in zip(*(part.spread for part in parts), strict=True)]
    return GroupTargets(n_in_class, sums, spread)


class RegionParts(NamedTuple):
    """What some groups count: of each column, and of the target."""

    columns: list[GroupCounts]
    targets: GroupTargets


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """What is counted of each column; holds no records.

    Attributes
    ----------
    columns : sequence of CodedColumn
        The quasi-identifiers; their codes are not looked at.
    unit_of_code : list of ndarray of int32
        For each column the value that a code stands for; the last is for all that may not be named.
    codes : list of ndarray of int64
        For each column the first code of every value.
    kinds : list of Kind
    fallback : list of int
        For each column the value to draw where nothing is counted.
    floor : int
        The fewest people that a number counts.
    target : TargetCoding
    """

    columns: Sequence[CodedColumn]
    unit_of_code: list[NDArray[np.int32]]
    codes: list[NDArray[np.int64]]
    kinds: list[Kind]
    fallback: list[int]
    floor: int
    target: TargetCoding

    def count(
        self,
        codes: Callable[[int], NDArray[Any]],
        groups: Groups,
        classes: NDArray[np.int32],
        numbers: NDArray[np.int64],
        *,
        n_threads: int = 1,
    ) -> RegionParts:
        """Count groups, which may be a part of all.

        Parameters
        ----------
        codes : callable
            Takes the place of a column and returns the codes of all records.
        groups : Groups
        classes : ndarray of int32
            Of every record.
        numbers : ndarray of int64, shape (records, outputs)
        n_threads : int
        """
        own = classes.take(groups.order)
        target = numbers.take(groups.order, axis=0) if numbers.shape[1] else numbers  # a class has no numbers
        runs = runs_of(groups.offsets, _COUNTED_AT_ONCE)

        def task(item: tuple[int, slice]) -> GroupCounts:
            j, run = item
            offsets = groups.offsets[run.start : run.stop + 1]
            return count_groups(codes(j), groups.order, self.unit_of_code[j], own, target, offsets, self.kinds[j])

        tasks = [(j, run) for j in range(len(self.columns)) for run in runs]
        made = map_in_threads(task, tasks, n_threads, costs=[self.kinds[j].n_units for j, _ in tasks])
        columns = [joined(made[j * len(runs) : (j + 1) * len(runs)]) for j in range(len(self.columns))]
        n_in_class = np.zeros((groups.n_groups, self.target.n_classes), np.int64)
        count_classes(own, groups.offsets, n_in_class)
        summed = np.concatenate([np.zeros((1, target.shape[1]), np.int64), np.cumsum(target, axis=0)])
        sums = np.diff(summed[groups.offsets], axis=0)
        spread = [Spread.of(np.ascontiguousarray(output)) for output in target.T]
        return RegionParts(columns, GroupTargets(n_in_class, sums, spread))

    def pooled(self, j: int, parts: Sequence[GroupCounts], means: NDArray[np.float64]) -> ColumnCounts:
        """Return the counts of a column of which all parts are known, from the first group to the last."""
        return count_pools(joined(parts), means, self.kinds[j])

    def means(self, targets: GroupTargets) -> NDArray[np.float64]:
        """Return the mean target of each group, or of the first pool around it that has as many people as the floor."""
        return _shared_means(targets.sums, targets.sizes, self.floor)

    def unweighted(
        self,
        counts: Sequence[ColumnCounts],
        targets: GroupTargets,
        means: NDArray[np.float64],
        cells: Sequence[CellColumn] | None,
    ) -> Regions:
        """Put the counts of all columns together; the weights of the columns are not known yet.

        Parameters
        ----------
        counts : sequence of ColumnCounts
        targets : GroupTargets
        means : ndarray of float64, shape (groups, outputs)
        cells : sequence of CellColumn or None
            What the tree leaves to each group. None: groups that are not boxes.
        """
        target = RegionTarget(self.target.labels, targets.n_in_class.astype(np.float64), means, self.target.is_flat)
        is_small = target.is_small(targets.sizes, self.floor)
        if target.labels is not None:
            target = target.coarser(carried(targets.n_in_class, self.floor), self.floor, but=is_small)
        columns = [_region_column(self, j, own) for j, own in enumerate(counts)]
        if cells is not None:
            columns = [_in_cells(*own, is_small) for own in zip(columns, cells, self.unit_of_code, strict=True)]
        return Regions(tuple(columns), targets.sizes, target, None, self.floor)

    def finished(self, regions: Regions, weights: Weights, targets: GroupTargets) -> Regions:
        """Return regions with the weights of their columns, and with the means of the target's own numbers."""
        made = regions.with_weights(weights)
        if self.target.scale is None:
            return made
        return _in_own_unit(made, self.target, np.sqrt([own.variance for own in targets.spread]))


def judged_every(n_records: int) -> int:
    """Return that one in so many groups is kept to find weights with its records."""
    return max(1, n_records // _JUDGED)


def plan_regions(columns: Sequence[CodedColumn], target: TargetCoding, floor: int) -> RegionPlan:
    """Plan which values are counted: those that `floor` records have, as the bins of the columns say."""
    layout = make_layout([column.bins for column in columns])
    shown = shown_of(columns, layout)
    plan = RegionPlan(columns, [], [], [], [], floor, target)
    for j, column in enumerate(columns):
        rows = slice(int(layout.offsets[j]), int(layout.offsets[j + 1]))
        unit_of_code, codes = _units(shown.run[rows], shown.may_show[rows])
        n_ordered = len(np.unique(unit_of_code[: column.bins.n_values])) if column.bins.is_ordered else 0
        fallback = int(shown.fallback[j])
        plan.unit_of_code.append(unit_of_code)
        plan.codes.append(codes)
        plan.kinds.append(Kind(floor, len(codes), n_ordered, target.n_classes))
        plan.fallback.append(len(codes) - 1 if fallback == NOTHING else int(unit_of_code[fallback]))
    return plan


def _units(run: NDArray[np.int32], may_show: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number the values that may be named: codes that are published alike are one value.

    Returns the number of each code's value, the last for all that may not be named, and the first code of each value.
    """
    _, first, unit = np.unique(np.where(may_show, run, -1), return_index=True, return_inverse=True)
    n_hidden = int(not may_show.all())  # hidden codes come first
    codes = np.append(first[n_hidden:], NOTHING)
    unit_of_code = np.where(may_show, unit - n_hidden, len(codes) - 1)
    return unit_of_code.astype(np.int32), codes


class RegionCounting:
    """Counts groups from the first to the last, all at once or in parts.

    The records of one group in several are kept until the weights of the columns are found with them.

    Parameters
    ----------
    plan : RegionPlan
    n_records : int
        Of the whole table.
    n_threads : int
    """

    def __init__(self, plan: RegionPlan, n_records: int, *, n_threads: int = 1) -> None:
        self.plan, self.n_threads = plan, n_threads
        self._every = judged_every(n_records)
        self._n_groups = 0
        self._parts: list[RegionParts] = []
        self._samples: list[Sample] = []

    def add(
        self,
        codes: Callable[[int], NDArray[Any]],
        groups: Groups,
        classes: NDArray[np.int32],
        numbers: NDArray[np.int64],
    ) -> None:
        """Count the groups that come next; parameters are those of `RegionPlan.count`."""
        self._parts.append(self.plan.count(codes, groups, classes, numbers, n_threads=self.n_threads))
        chosen = np.arange(-self._n_groups % self._every, groups.n_groups, self._every)
        if len(chosen):
            rows = np.concatenate([groups.order[groups.offsets[g] : groups.offsets[g + 1]] for g in chosen])
            units = np.stack([own[codes(j)[rows]] for j, own in enumerate(self.plan.unit_of_code)], axis=1)
            group = np.repeat(self._n_groups + chosen, groups.sizes[chosen])
            self._samples.append(sample_of(group, units, classes[rows], numbers[rows]))
        self._n_groups += groups.n_groups

    def regions(self, cells: Sequence[CellColumn] | None) -> Regions:
        """Put the counts of all groups together.

        Parameters
        ----------
        cells : sequence of CellColumn or None
            What the tree leaves to each group. None: groups that are not boxes.
        """
        plan, parts = self.plan, self._parts
        targets = joined_targets([part.targets for part in parts])
        means = plan.means(targets)

        def pooled(j: int) -> ColumnCounts:
            return plan.pooled(j, [part.columns[j] for part in parts], means)

        n_left = [sum(len(part.columns[j].left.unit) for part in parts) for j in range(len(plan.columns))]
        counts = map_in_threads(pooled, range(len(plan.columns)), self.n_threads, costs=n_left)
        made = plan.unweighted(counts, targets, means, cells)
        weights = learn_weights(made, joined_samples(self._samples), n_threads=self.n_threads)
        return plan.finished(made, weights, targets)


def _shared_means(sums: NDArray[np.int64], sizes: NDArray[np.int64], floor: int) -> NDArray[np.float64]:
    """Return the means of groups; see `RegionPlan.means`."""
    place = np.arange(len(sizes))
    means = sums / np.maximum(sizes, 1)[:, np.newaxis]
    is_small = sizes < floor
    while is_small.any() and len(sizes) > 1:
        place, first = place // FAN, np.arange(0, len(sizes), FAN)
        sizes, sums = np.add.reduceat(sizes, first), np.add.reduceat(sums, first, axis=0)  # a class has no sums
        means[is_small] = (sums / np.maximum(sizes, 1)[:, np.newaxis])[place[is_small]]
        is_small &= sizes[place] < floor
    return means


def _region_column(plan: RegionPlan, j: int, counts: ColumnCounts) -> RegionColumn:
    """Return a column with what may be known of its values alone."""
    column, codes = plan.columns[j], plan.codes[j]
    shown = values_of_bins(column.name, column.bins, codes)
    assert shown.values is not None and shown.missing is not None
    values, categories = shown.values, column.categories
    if categories is not None:  # those that are not named are not kept
        own = np.unique(values[~shown.missing])
        values = np.where(shown.missing, 0, np.searchsorted(own, values))
        categories = categories[own]
    is_coarser = column.width is not None
    return RegionColumn(
        column.name, values, shown.missing, categories, column.moment, is_coarser, counts, plan.fallback[j]
    )


def _in_cells(
    column: RegionColumn, own: CellColumn, unit_of_code: NDArray[np.int32], is_small: NDArray[np.bool_]
) -> RegionColumn:
    """Return a column of which only values in the cells of groups are drawn, but for small groups."""
    if column.categories is None:
        reach = reach_of(own, unit_of_code, len(column.values))
        inside = inside_of(own.cells, reach, column.missing, is_category=False)
        return replace(column, reach=reach, inside=without_cells(inside, is_small))
    code_of = np.append(own.codes, -1)[np.where(column.missing, -1, _first_codes(unit_of_code, len(column.values)))]
    reach = np.column_stack([code_of, code_of])
    inside = inside_of(own.cells, reach, column.missing, is_category=True)
    return replace(column, inside=without_cells(inside, is_small))


def _first_codes(unit_of_code: NDArray[np.int32], n_units: int) -> NDArray[np.int64]:
    """Return the first code of each value; -1 for a value without one."""
    first = np.full(n_units, -1, np.int64)
    first[unit_of_code[::-1]] = np.arange(len(unit_of_code))[::-1]
    return first


def _in_own_unit(regions: Regions, coding: TargetCoding, spread: NDArray[np.float64]) -> Regions:
    """Return regions whose means are those of the target's own numbers, in coarse steps.

    A step is what one person of `floor` moves a mean who is a standard deviation away from it: from the mean of a group
    and that of all but one of its people, nobody can tell the number of that one any better. How numbers became whole
    ones, by the smallest and the largest of all, is not kept: those are single people's.
    """
    assert coding.scale is not None
    scale, unit = coding.scale, (coding.scale.span / coding.scale.factor) / NUMBER_SCALE
    steps = np.array([float(f"{step:.1g}") for step in (spread * unit / regions.floor).tolist()])
    steps[steps == 0] = 1.0
    columns = tuple(
        replace(column, counts=column.counts._replace(target=np.round(column.counts.target * unit / steps) * steps))
        for column in regions.columns
    )
    means = np.round(scale.numbers(regions.target.means) / steps) * steps
    return replace(regions, columns=columns, target=replace(regions.target, means=means))
