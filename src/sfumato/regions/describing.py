# SPDX-License-Identifier: Apache-2.0
"""Describe groups by the values that several of their people share.

A plan says which values of each column may be named. Groups are counted by it, all at once or in parts, on any machine;
what the parts left over is counted in pools, and a few groups are looked at once more for the weights of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.partition.group_summaries import Groups
from sfumato.partition.phantom_search import NOTHING
from sfumato.partition.records import make_layout
from sfumato.partition.region_counts import GroupCounts, Kind, count_groups, count_pools, joined
from sfumato.regions.cells import inside_of, reach_of
from sfumato.regions.regions import RegionColumn, Regions, runs_of
from sfumato.regions.target import RegionTarget, TargetCoding
from sfumato.regions.weights import Sample, Weights, learn_weights
from sfumato.representatives import CellColumn, shown_of
from sfumato.representatives.representative import values_of_bins
from sfumato.threads import map_in_threads

_COUNTED_AT_ONCE = 1 << 18  # records of a task
_JUDGED = 10_000  # records with which weights are found
_DIGITS = 6  # of means; the others are those of single people


class RegionParts(NamedTuple):
    """What some groups count.

    Attributes
    ----------
    columns : list of GroupCounts
    n_in_class : ndarray of int64, shape (groups, classes)
    sums : ndarray of int64, shape (groups, outputs)
        Of the target's numbers.
    """

    columns: list[GroupCounts]
    n_in_class: NDArray[np.int64]
    sums: NDArray[np.int64]


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
        own, target = classes[groups.order], numbers[groups.order]
        runs = runs_of(groups.offsets, _COUNTED_AT_ONCE)

        def task(item: tuple[int, slice]) -> GroupCounts:
            j, run = item
            offsets = groups.offsets[run.start : run.stop + 1]
            return count_groups(codes(j), groups.order, self.unit_of_code[j], own, target, offsets, self.kinds[j])

        made = map_in_threads(task, [(j, run) for j in range(len(self.columns)) for run in runs], n_threads)
        columns = [joined(made[j * len(runs) : (j + 1) * len(runs)]) for j in range(len(self.columns))]
        shape = groups.n_groups, self.target.n_classes
        of_record = np.repeat(np.arange(groups.n_groups), groups.sizes)
        n_in_class = np.bincount(of_record * shape[1] + own, minlength=shape[0] * shape[1]).reshape(shape)
        summed = np.concatenate([np.zeros((1, target.shape[1]), np.int64), np.cumsum(target, axis=0)])
        sums = np.diff(summed[groups.offsets], axis=0)
        return RegionParts(columns, n_in_class, sums)

    def sampled(self, n_groups: int, n_records: int) -> NDArray[np.int64]:
        """Return the groups with whose records weights are found."""
        return np.arange(0, n_groups, max(1, n_records // _JUDGED))


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


def describe_regions(
    plan: RegionPlan,
    parts: Sequence[RegionParts],
    weigh: Callable[[Regions, NDArray[np.int64]], Weights],
    *,
    cells: Sequence[CellColumn] | None = None,
    n_threads: int = 1,
) -> Regions:
    """Put the counts of all groups together.

    Parameters
    ----------
    plan : RegionPlan
    parts : sequence of RegionParts
        Of all groups, in their order.
    weigh : callable
        Takes regions without weights and the numbers of some groups, and returns what `find_weights` makes of the
        records of these groups, wherever they are.
    cells : sequence of CellColumn, optional
        What the tree leaves to each group. None: groups that are not boxes.
    n_threads : int
    """
    n_in_class = np.concatenate([part.n_in_class for part in parts])
    sums = np.concatenate([part.sums for part in parts])
    sizes = n_in_class.sum(axis=1)
    means = sums / np.maximum(sizes, 1)[:, np.newaxis]

    def described(j: int) -> RegionColumn:
        counts = count_pools(joined([part.columns[j] for part in parts]), means, plan.kinds[j])
        made = _region_column(plan, j, counts)
        return made if cells is None or not target.stays_in_cells else _in_cells(made, cells[j], plan.unit_of_code[j])

    target = RegionTarget(plan.target.labels, n_in_class.astype(np.float64), means, plan.target.is_flat)
    columns = map_in_threads(described, range(len(plan.columns)), n_threads)
    bare = Regions(tuple(columns), sizes, target, None, plan.floor)
    made = bare.with_weights(weigh(bare, plan.sampled(len(sizes), int(sizes.sum()))))
    return made if plan.target.scale is None else _in_own_unit(made, plan.target)


def _region_column(plan: RegionPlan, j: int, counts: Any) -> RegionColumn:
    """Return a column with what may be known of its values alone."""
    column, codes = plan.columns[j], plan.codes[j]
    shown = values_of_bins(column.name, column.bins, codes)
    assert shown.values is not None and shown.missing is not None
    values, categories = shown.values, column.categories
    if categories is not None:
        own, values = np.unique(values, return_inverse=True)
        categories = categories[own] if len(categories) else categories
    is_coarser = column.width is not None
    return RegionColumn(
        column.name, values, shown.missing, categories, column.moment, is_coarser, counts, plan.fallback[j]
    )


def _in_cells(column: RegionColumn, own: CellColumn, unit_of_code: NDArray[np.int32]) -> RegionColumn:
    """Return a column of which only values in the cells of groups are drawn."""
    if column.categories is None:
        reach = reach_of(own, unit_of_code, len(column.values))
        return replace(column, reach=reach, inside=inside_of(own.cells, reach, column.missing, is_category=False))
    code_of = np.append(own.codes, -1)[np.where(column.missing, -1, _first_codes(unit_of_code, len(column.values)))]
    reach = np.column_stack([code_of, code_of])
    return replace(column, inside=inside_of(own.cells, reach, column.missing, is_category=True))


def _first_codes(unit_of_code: NDArray[np.int32], n_units: int) -> NDArray[np.int64]:
    """Return the first code of each value; -1 for a value without one."""
    first = np.full(n_units, -1, np.int64)
    first[unit_of_code[::-1]] = np.arange(len(unit_of_code))[::-1]
    return first


def _in_own_unit(regions: Regions, coding: TargetCoding) -> Regions:
    """Return regions whose means are those of the target's own numbers, with few digits.

    How numbers became whole ones, by the smallest and the largest of all, is not kept: those are single people's.
    """
    assert coding.scale is not None
    origin = coding.scale.numbers(np.zeros((1, coding.n_outputs)))
    columns = tuple(
        replace(column, counts=column.counts._replace(target=_rounded(coding.scale.numbers(own) - origin)))
        for column, own in ((column, column.counts.target) for column in regions.columns)
    )
    target = replace(regions.target, means=_rounded(coding.scale.numbers(regions.target.means)))
    return replace(regions, columns=columns, target=target)


def _rounded(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers with as many digits as the largest of them shows in so many."""
    largest = np.abs(numbers).max(initial=0.0)
    digits = _DIGITS - 1 - int(np.floor(np.log10(largest))) if largest > 0 else 0
    return np.round(numbers, digits)


def find_weights(
    regions: Regions,
    plan: RegionPlan,
    codes: Sequence[NDArray[Any]],
    group: NDArray[np.int32],
    classes: NDArray[np.int32],
    numbers: NDArray[np.int64],
) -> Weights:
    """Find the weights of columns with the records of some groups, given column by column in any order."""
    units = np.stack([plan.unit_of_code[j][own] for j, own in enumerate(codes)], axis=1)
    order = np.lexsort((*units.T, *numbers.T, classes, group))  # any order of the records gives the same weights
    found, sizes = np.unique(group, return_counts=True)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    sample = Sample(found.astype(np.int64), offsets, units[order], classes[order], numbers[order].astype(np.float64))
    return learn_weights(regions, sample)
