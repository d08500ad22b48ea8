# SPDX-License-Identifier: Apache-2.0
"""Collect records by group and describe each group from its bins.

Called by ``anonymize``, ``representatives`` and ``parquet``. All results depend on the multiset of a group's records
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.records import Layout
from sfumato.threads import map_in_threads

_SHARED_FROM = 20_000  # records; below it threads cost more than they bring


@dataclass(frozen=True, eq=False)
class Groups:
    """Records in order of their groups.

    Attributes
    ----------
    group : ndarray of int32
        Group of each record; negative for records left out.
    order : ndarray of uint32
        Record numbers, group after group.
    offsets : ndarray of int64
        Where each group starts in `order`; one more at the end.
    """

    group: NDArray[np.int32]
    order: NDArray[np.uint32]
    offsets: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of records of each group."""
        return np.diff(self.offsets)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.offsets) - 1


def collect(group: NDArray[np.int32], n_groups: int) -> Groups:
    """Sort records by group, keeping their order within one."""
    offsets = np.zeros(n_groups + 1, np.int64)
    order = _counting_sort(group, offsets)
    return Groups(group, order, offsets)


def lined_up(sizes: NDArray[np.int64]) -> Groups:
    """Return the groups of records that lie group after group already."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return Groups(group, np.arange(offsets[-1], dtype=np.uint32), offsets)


class Summary(NamedTuple):
    """The bins of each group, shape (groups, columns) each. Arrays, as kernels need them."""

    middle: NDArray[np.int32]
    """Ordered columns: the bin of the lower median of the values present, or the missing bin if more than half of the
    group is missing. Categories: the most frequent code that may be shown, the lowest on ties; -1 if none may."""
    lowest: NDArray[np.int32]  # first bin with a value; -1 if all are missing
    highest: NDArray[np.int32]  # last bin with a value
    n_present: NDArray[np.int32]  # number of distinct codes, missing counted as one
    n_missing: NDArray[np.int64]


def summarize(
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    *,
    may_show: NDArray[np.bool_] | None = None,
    n_threads: int = 1,
) -> Summary:
    """Describe every group from the codes of its records.

    Parameters
    ----------
    codes : ndarray, shape (n, at least the layout's columns)
    groups : Groups
    layout : Layout
    may_show : ndarray of bool, optional
        Per row of a histogram: whether a category may be a group's most frequent one. By default all may.
    n_threads : int
    """
    if may_show is None:
        may_show = np.ones(int(layout.offsets[-1]), np.bool_)
    shape = (groups.n_groups, layout.n_columns)
    middle, lowest, highest, n_present = (np.zeros(shape, np.int32) for _ in range(4))
    summary = Summary(middle, lowest, highest, n_present, np.zeros(shape, np.int64))

    def task(run: slice) -> None:
        counts = np.zeros(int(layout.offsets[-1]), np.int64)
        starts = groups.offsets[run.start : run.stop + 1]
        _summarize(codes, groups.order, starts, layout, may_show, counts, Summary._make(part[run] for part in summary))

    share_groups(task, groups, n_threads)
    return summary


def widths(summary: Summary, layout: Layout) -> NDArray[np.float64]:
    """Width of each group in each column as a share of the whole column, from 0 (one value) to 1.

    Numbers: the range over the column's range; 1 where values and missing meet, since then anything is possible.
    Categories: (different values - 1) / (values of the column - 1), missing being one of them.
    """
    n_codes = np.diff(layout.offsets)
    result: NDArray[np.float64] = (summary.n_present - 1) / np.maximum(1, n_codes - 1)
    for column in np.flatnonzero(~layout.is_category):
        start = layout.offsets[column]
        low, high = summary.lowest[:, column], summary.highest[:, column]
        has_values = low >= 0
        spread = np.zeros(len(low))
        spread[has_values] = layout.high[start + high[has_values]] - layout.low[start + low[has_values]]
        result[:, column] = np.where(has_values & (summary.n_missing[:, column] > 0), 1.0, spread)
    return result


def nearest_members(
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    middle: NDArray[np.int32],
    prediction_distance: NDArray[np.float64],
    *,
    n_threads: int = 1,
) -> NDArray[np.int64]:
    """Return one record per group: least `prediction_distance`, then nearest the middle, then smallest codes.

    Distances between codes: squared differences of range-scaled numbers; 1 for different categories and for a
    missing beside a present value. Records with an infinite `prediction_distance` are passed over.
    """
    centre = (layout.low + layout.high) / 2
    chosen = np.zeros(groups.n_groups, np.int64)

    def task(run: slice) -> None:
        _nearest_members(
            codes, groups.order, groups.offsets[run.start : run.stop + 1], layout, centre, middle[run],
            prediction_distance, chosen[run],
        )  # fmt: skip

    share_groups(task, groups, n_threads)
    return chosen


def distance_from_mean(
    groups: Groups, channels: NDArray[np.int64], weights: NDArray[np.float64], *, n_threads: int = 1
) -> NDArray[np.float64]:
    """Return each record's squared distance from its group's mean in some channels, shape (n, channels).

    The sums are of whole numbers, so the order of the records does not matter. Records without a group get 0.
    """
    distance = np.zeros(len(groups.group))

    def task(run: slice) -> None:
        _distance_from_mean(groups.order, groups.offsets[run.start : run.stop + 1], channels, weights, distance)

    share_groups(task, groups, n_threads)
    return distance


def nearest_share(groups: Groups, distance: NDArray[np.float64], share: float, *, n_threads: int = 1) -> None:
    """Write 0 for the given share of each group's records with the least distance, infinity for the others.

    What was written over is not needed any more, and there is one for every record. At least one record of each group
    is kept, and equals are kept or passed over together.
    """

    def task(run: slice) -> None:
        _nearest_share(groups.order, groups.offsets[run.start : run.stop + 1], distance, share)

    share_groups(task, groups, n_threads)


def rank_members(codes: NDArray[Any], groups: Groups, n_columns: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the record at the given share (0 to 1) of each group, its records ordered by their codes."""
    chosen = np.zeros(groups.n_groups, np.int64)
    for g in range(groups.n_groups):
        members = groups.order[groups.offsets[g] : groups.offsets[g + 1]]
        ranked = np.lexsort([codes[members, c] for c in range(n_columns - 1, -1, -1)])
        chosen[g] = members[ranked[int(shares[g] * len(members))]]
    return chosen


def share_groups(task: Callable[[slice], None], groups: Groups, n_threads: int) -> None:
    """Hand runs of groups with about the same number of records to threads; each writes its own rows only."""
    places = np.linspace(0, len(groups.order), n_threads + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(groups.offsets, places), groups.n_groups])
    runs = [slice(int(a), int(b)) for a, b in pairwise(edges)]
    map_in_threads(task, runs, n_threads if len(groups.order) >= _SHARED_FROM else 1)


@njit(nogil=True, cache=True)
def _counting_sort(group, offsets):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(group.shape[0]):
        if group[i] >= 0:
            offsets[group[i] + 1] += 1
            n += 1
    for g in range(1, offsets.shape[0]):
        offsets[g] += offsets[g - 1]
    order = np.empty(n, np.uint32)
    at = offsets[:-1].copy()
    for i in range(group.shape[0]):
        g = group[i]
        if g >= 0:
            order[at[g]] = i
            at[g] += 1
    return order


@njit(nogil=True, cache=True)
def _summarize(codes, order, starts, layout, may_show, counts, summary):  # type: ignore[no-untyped-def]
    offsets, missing = layout.offsets, layout.missing
    middle, lowest, highest, n_present, n_missing = summary
    n_columns = offsets.shape[0] - 1
    for g in range(starts.shape[0] - 1):
        first, last = starts[g], starts[g + 1]
        for at in range(first, last):
            i = order[at]
            for j in range(n_columns):
                counts[offsets[j] + codes[i, j]] += 1
        for j in range(n_columns):
            start = offsets[j]
            n_codes = offsets[j + 1] - start
            absent = counts[start + missing[j]] if missing[j] >= 0 else 0
            n_values = last - first - absent
            lowest[g, j] = -1
            highest[g, j] = -1
            seen = 0
            mode, most = -1, 0
            passed, median = 0, -1
            for code in range(n_codes):
                count = counts[start + code]
                if count == 0:
                    continue
                counts[start + code] = 0
                seen += 1
                if count > most and may_show[start + code]:
                    mode, most = code, count
                if code == missing[j]:
                    continue
                if lowest[g, j] < 0:
                    lowest[g, j] = code
                highest[g, j] = code
                passed += count
                if median < 0 and 2 * passed >= n_values:
                    median = code
            n_present[g, j] = seen
            n_missing[g, j] = absent
            if layout.is_category[j]:
                middle[g, j] = mode
            else:
                middle[g, j] = missing[j] if absent > n_values else median


@njit(nogil=True, cache=True)
def _distance_from_mean(order, starts, channels, weights, distance):  # type: ignore[no-untyped-def]
    for g in range(starts.shape[0] - 1):
        for c in range(channels.shape[1]):
            total = np.int64(0)
            for at in range(starts[g], starts[g + 1]):
                total += channels[order[at], c]
            mean = total / max(1, starts[g + 1] - starts[g])
            for at in range(starts[g], starts[g + 1]):
                deviation = channels[order[at], c] - mean
                distance[order[at]] += weights[c] * (deviation * deviation)


@njit(nogil=True, cache=True)
def _nearest_share(order, starts, distance, share):  # type: ignore[no-untyped-def]
    for g in range(starts.shape[0] - 1):
        n = starts[g + 1] - starts[g]
        own = np.empty(n, np.float64)
        for at in range(n):
            own[at] = distance[order[starts[g] + at]]
        last = max(0, int(np.ceil(share * n)) - 1)
        most = np.partition(own, last)[last]
        for at in range(starts[g], starts[g + 1]):
            distance[order[at]] = 0.0 if distance[order[at]] <= most else np.inf


@njit(nogil=True, cache=True)
def _nearest_members(  # type: ignore[no-untyped-def]
    codes, order, starts, layout, centre, middle, prediction_distance, chosen
):
    offsets, missing = layout.offsets, layout.missing
    n_columns = offsets.shape[0] - 1
    for g in range(starts.shape[0] - 1):
        best = np.int64(-1)
        best_prediction, best_distance = np.inf, np.inf
        for at in range(starts[g], starts[g + 1]):
            i = np.int64(order[at])
            prediction = prediction_distance[i]
            if prediction > best_prediction or prediction == np.inf:
                continue
            distance = 0.0
            for j in range(n_columns):
                code = codes[i, j]
                target = middle[g, j]
                if code == target:
                    continue
                if layout.is_category[j] or code == missing[j] or target == missing[j]:
                    distance += 1.0
                else:
                    step = centre[offsets[j] + code] - centre[offsets[j] + target]
                    distance += step * step
            better = prediction < best_prediction or distance < best_distance
            if not better and distance == best_distance and best >= 0:
                for j in range(n_columns):  # equal so far: the smaller code vector, never the row number
                    if codes[i, j] != codes[best, j]:
                        better = codes[i, j] < codes[best, j]
                        break
            if better or best < 0:
                best, best_prediction, best_distance = i, prediction, distance
        chosen[g] = best
