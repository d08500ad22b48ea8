# SPDX-License-Identifier: Apache-2.0
"""Count how often values occur in groups, so that every number counts at least `floor` people.

A value that at least `floor` records of a group and a class have is counted there. Of numbers, those that fewer have
are counted in intervals: two neighboring values, four, eight, at fixed places. What is still left goes up: four
neighboring groups form a pool, four pools a larger one, up to the whole table, and it is counted in the first pool in
which at least `floor` records share it. So each record is counted once per column or, if its value is rare everywhere,
not at all. How many records of a group are drawn from its pools is a multiple of `floor`, too: what is left over is
carried on to the next group. Of a target of numbers, the mean of the counted records goes with each count. Beside
that, the values of each class are counted in the whole table, in multiples of `floor`.

What a group counts depends on its own records alone (`count_groups`), so groups may be counted in parts, by different
machines. Pools are counted from what is left (`count_pools`). Records are added up as integers, and pools in the order
of their groups, so the order of the records and the place of the table do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

FAN = 4
"""Groups of a pool, and pools of a larger one."""

_NARROW = 3
"""Within a group or a pool, an interval has at most one in so many of the values of a column."""

_SORTED_BY_HAND = 8
"""Values that are put in order by insertion."""

_LOOKED_THROUGH = 16
"""Of more values, each so many of all possible ones are looked through rather than sorting those that occur."""


class Kind(NamedTuple):
    """Facts of a column for counting.

    The last value stands for those that may not be named: it is not counted anywhere. The first `n_ordered` values are
    numbers in rising order, 0 for categories.
    """

    floor: int
    n_units: int
    n_ordered: int
    n_classes: int


class Entries(NamedTuple):
    """Values and the records that have them, row after row. Arrays, as kernels need them."""

    stop: NDArray[np.int64]  # where the entries of each row end
    unit: NDArray[np.int32]  # a value, or the first of an interval
    width: NDArray[np.int32]  # how many values it covers: 1, 2, 4, ...; empty for single values
    n_records: NDArray[np.int64]  # how many records have one of them
    target: NDArray[Any]  # (entries, outputs): sums of their targets, or of what these are above those of their groups

    def trimmed(self) -> Entries:
        """Return the entries without unused room."""
        n = int(self.stop[-1]) if len(self.stop) else 0
        return Entries(
            self.stop, self.unit[:n].copy(), self.width[:n].copy(), self.n_records[:n].copy(), self.target[:n].copy()
        )


class GroupCounts(NamedTuple):
    """What some groups count, a row per group and class."""

    counted: Entries  # at least the floor of records each
    left: Entries  # single values that fewer have, or that may not be named
    whole: NDArray[np.int64]  # (classes, values): all of their records


class ColumnCounts(NamedTuple):
    """The counted values of one column. Arrays, as kernels need them.

    Rows are groups times classes first, then pools times classes, level after level.
    """

    start: NDArray[np.int64]  # where the entries of each row begin; one more at the end
    unit: NDArray[np.int32]
    width: NDArray[np.int32]
    n_records: NDArray[np.int64]  # at least the floor
    target: NDArray[np.float64]  # (entries, outputs): how far the mean target lies above the means of the groups
    n_from_pools: NDArray[np.int64]  # (groups, classes): records that are drawn from pools, a multiple of the floor
    whole: NDArray[np.int64]  # (classes, values): records of the whole table, multiples of the floor


def n_pools(n_groups: int) -> NDArray[np.int64]:
    """Return the number of pools of each level: groups, fours of groups, sixteens, ... the whole table.

    >>> n_pools(17).tolist(), n_pools(1).tolist()
    ([17, 5, 2, 1], [1, 1])
    """
    sizes = [n_groups, -(-n_groups // FAN)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FAN))
    return np.array(sizes, np.int64)


def carried(counts: NDArray[np.int64], floor: int) -> NDArray[np.int64]:
    """Round counts per group to multiples of `floor`; what is left over is carried on to the next group.

    >>> carried(np.array([[3], [3], [3], [14]]), 5).ravel().tolist()
    [0, 5, 0, 15]
    """
    whole = np.cumsum(counts, axis=0) // floor * floor
    return np.diff(whole, axis=0, prepend=np.zeros((1, counts.shape[1]), np.int64))


# -- groups --------------------------------------------------------------------------------------------------------


def count_groups(
    codes: NDArray[Any],
    order: NDArray[np.integer[Any]],
    unit_of_code: NDArray[np.int32],
    classes: NDArray[np.integer[Any]],
    target: NDArray[np.int64],
    offsets: NDArray[np.int64],
    kind: Kind,
) -> GroupCounts:
    """Count the values of one column in some groups.

    Parameters
    ----------
    codes : ndarray
        The code of each record.
    order : ndarray
        Numbers of records, group after group.
    unit_of_code : ndarray of int32
        The value that each code stands for.
    classes : ndarray
        The class of each record, in that order.
    target : ndarray of int64, shape (records, outputs)
        What is added up beside the counts, in that order; no outputs: nothing.
    offsets : ndarray of int64
        Where each group begins in that order; one more at the end.
    kind : Kind
    """
    n_rows = (len(offsets) - 1) * kind.n_classes
    n_records = int(offsets[-1] - offsets[0])
    counted = _room(n_rows, n_records // kind.floor, target.shape[1], np.int64)
    left = _room(n_rows, n_records, target.shape[1], np.int64, n_widths=0)
    whole = np.zeros((kind.n_classes, kind.n_units), np.int64)
    _count_groups(codes, order, unit_of_code, classes, target, offsets, kind, counted, left, whole.reshape(-1))
    return GroupCounts(counted.trimmed(), left.trimmed(), whole)


def joined(parts: Sequence[GroupCounts]) -> GroupCounts:
    """Return the counts of several runs of groups, one after the other."""
    if len(parts) == 1:
        return parts[0]
    counted, left, whole = zip(*parts, strict=True)
    return GroupCounts(_joined(counted), _joined(left), np.sum(whole, axis=0))


def _joined(parts: Sequence[Entries]) -> Entries:
    before = np.cumsum([0, *(len(part.unit) for part in parts[:-1])])
    stop = np.concatenate([part.stop + n for part, n in zip(parts, before, strict=True)])
    return Entries(stop, *(np.concatenate(own) for own in list(zip(*parts, strict=True))[1:]))


def _room(n_rows: int, n_entries: int, n_outputs: int, kind: Any, n_widths: int | None = None) -> Entries:
    return Entries(
        np.zeros(n_rows, np.int64), np.empty(n_entries, np.int32),
        np.empty(n_entries if n_widths is None else n_widths, np.int32), np.empty(n_entries, np.int64),
        np.empty((n_entries, n_outputs), kind),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def count_classes(classes, offsets, out):  # type: ignore[no-untyped-def]
    """Count the records of each class in some groups, given group after group: `out` has a row per group."""
    for g in range(offsets.shape[0] - 1):
        for i in range(offsets[g], offsets[g + 1]):
            out[g, classes[i]] += 1


@njit(nogil=True, cache=True, error_model="numpy")
def _count_groups(codes, order, unit_of_code, classes, target, offsets, kind, counted, left, whole):  # type: ignore[no-untyped-def]
    n_outputs, n_units, n_classes, floor = target.shape[1], kind.n_units, kind.n_classes, kind.floor
    left_unit, left_n, left_target = left.unit, left.n_records, left.target
    n = np.zeros(n_classes * n_units, np.int64)
    sums = np.zeros((n_classes * n_units, n_outputs), np.int64)
    seen = np.empty(n_classes * n_units, np.int64)
    found = np.empty((n_units, 2), np.int64)
    found_sums = np.empty((n_units, n_outputs), np.int64)
    n_counted, n_left, is_top = np.int64(0), np.int64(0), np.bool_(False)
    for g in range(offsets.shape[0] - 1):
        n_seen = np.int64(0)
        if n.shape[0] <= 2 * (offsets[g + 1] - offsets[g]):  # looking through all values is faster than noting them
            for i in range(offsets[g], offsets[g + 1]):
                key = np.int64(classes[i]) * n_units + unit_of_code[codes[order[i]]]
                n[key] += 1
                for o in range(n_outputs):
                    sums[key, o] += target[i, o]
            n_seen = _look_through(seen, n)
        else:
            for i in range(offsets[g], offsets[g + 1]):
                key = np.int64(classes[i]) * n_units + unit_of_code[codes[order[i]]]
                if n[key] == 0:
                    seen[n_seen] = key
                    n_seen += 1
                n[key] += 1
                for o in range(n_outputs):
                    sums[key, o] += target[i, o]
            _sort(seen, n_seen, n)
        at = np.int64(0)
        for c in range(n_classes):
            stop, total = at, np.int64(0)
            while stop < n_seen and seen[stop] < (c + 1) * n_units:
                total += n[seen[stop]]
                stop += 1
            n_found = stop - at
            for s in range(n_found):
                key = seen[at + s]
                found[s, 0], found[s, 1] = key - c * n_units, n[key]
                whole[key] += n[key]
                n[key] = 0
                for o in range(n_outputs):
                    found_sums[s, o] = sums[key, o]
                    sums[key, o] = 0
            if total >= floor:
                n_counted, n_found = _write_common(found, found_sums, n_found, total, kind, is_top, counted, n_counted)
            for s in range(n_found):
                left_unit[n_left], left_n[n_left] = found[s, 0], found[s, 1]
                for o in range(n_outputs):
                    left_target[n_left, o] = found_sums[s, o]
                n_left += 1
            at = stop
            counted.stop[g * n_classes + c], left.stop[g * n_classes + c] = n_counted, n_left


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _look_through(seen, n):  # type: ignore[no-untyped-def]
    """List the values that occur in rising order, and return their number."""
    n_seen = np.int64(0)
    for key in range(n.shape[0]):
        if n[key] > 0:
            seen[n_seen] = key
            n_seen += 1
    return n_seen


@njit(nogil=True, cache=True, error_model="numpy")
def _sort(seen, n_seen, n):  # type: ignore[no-untyped-def]
    """Sort the values that occur, of which `n` has the number of records: groups are small, and so are their lists."""
    if n_seen > _SORTED_BY_HAND and n.shape[0] <= n_seen * _LOOKED_THROUGH:
        _look_through(seen, n)
    elif n_seen > _SORTED_BY_HAND:
        seen[:n_seen].sort()
    else:
        for i in range(1, n_seen):
            own, at = seen[i], i
            while at > 0 and seen[at - 1] > own:
                seen[at] = seen[at - 1]
                at -= 1
            seen[at] = own


@njit(nogil=True, cache=True, error_model="numpy")
def _write_common(found, sums, n_found, total, kind, is_top, entries, n_entries):  # type: ignore[no-untyped-def]
    """Write the values, then the intervals, that enough records have; `found` keeps those that are left.

    `found` has values and their numbers of records, `total` in all. Returns the number of entries, and of values left.
    """
    floor, n_ordered, n_outputs = kind.floor, kind.n_ordered, sums.shape[1]
    widest = max(1, n_ordered if is_top else n_ordered // _NARROW)
    width, halvings = 1, 0
    while width <= widest and total >= floor:
        n_left, at = np.int64(0), np.int64(0)
        while at < n_found:
            node = found[at, 0] >> halvings  # much faster than a division
            end, n = at, np.int64(0)
            while end < n_found and found[end, 0] < n_ordered and found[end, 0] >> halvings == node:
                n += found[end, 1]
                end += 1
            if end == at:  # a category, or missing: a value of its own
                end = at + 1
                n = found[at, 1] if width == 1 else np.int64(0)
            if n >= floor and found[at, 0] < kind.n_units - 1:
                entries.unit[n_entries] = node * width
                entries.width[n_entries] = min(width, max(n_ordered - node * width, 1))
                entries.n_records[n_entries] = n
                for o in range(n_outputs):
                    entries.target[n_entries, o] = 0
                    for s in range(at, end):
                        entries.target[n_entries, o] += sums[s, o]
                n_entries += 1
                total -= n
            else:
                for s in range(at, end):
                    found[n_left, 0], found[n_left, 1] = found[s, 0], found[s, 1]
                    for o in range(n_outputs):
                        sums[n_left, o] = sums[s, o]
                    n_left += 1
            at = end
        n_found = n_left
        width *= 2
        halvings += 1
    return n_entries, n_found


# -- pools ---------------------------------------------------------------------------------------------------------


def count_pools(groups: GroupCounts, means: NDArray[np.float64], kind: Kind) -> ColumnCounts:
    """Count what groups leave over in pools of neighboring groups.

    Parameters
    ----------
    groups : GroupCounts
        Of all groups, in their order.
    means : ndarray of float64, shape (groups, outputs)
        The mean target of each group.
    kind : Kind
    """
    counted, left, whole = groups
    n_outputs, n_groups = means.shape[1], len(means)
    rest = np.zeros((n_groups, kind.n_classes), np.int64)
    _sum_rows(left.stop, left.n_records, rest.reshape(-1))
    above = _above(left, means, kind.n_classes)
    parts = [counted._replace(target=_above(counted, means, kind.n_classes).target)]
    levels = n_pools(n_groups)
    for level, n in enumerate(levels[1:].tolist(), 1):
        n_rows, n_left = n * kind.n_classes, len(above.unit)
        most = int(above.n_records.sum()) // kind.floor
        made = _room(n_rows, most, n_outputs, np.float64)
        handed_up = _room(n_rows, n_left, n_outputs, np.float64, n_widths=0)
        _count_pools(above, levels[level - 1], kind, level == len(levels) - 1, made, handed_up)
        parts.append(made.trimmed())
        above = handed_up.trimmed()
    every = _joined(parts)
    start = np.concatenate([[0], every.stop]).astype(np.int64)
    target = every.target / every.n_records[:, np.newaxis]
    whole = (whole + kind.floor // 2) // kind.floor * kind.floor * (whole >= kind.floor)
    whole[:, -1] = 0
    return ColumnCounts(start, every.unit, every.width, every.n_records, target, carried(rest, kind.floor), whole)


def _above(entries: Entries, means: NDArray[np.float64], n_classes: int) -> Entries:
    """Return entries of groups with what their targets are above the mean of their group."""
    if not means.shape[1]:
        return entries._replace(target=np.zeros((len(entries.unit), 0)))
    group = np.repeat(np.arange(len(entries.stop)) // n_classes, np.diff(entries.stop, prepend=0))
    return entries._replace(target=entries.target - entries.n_records[:, np.newaxis] * means[group])


@njit(nogil=True, cache=True, error_model="numpy")
def _sum_rows(stop, numbers, out):  # type: ignore[no-untyped-def]
    at = np.int64(0)
    for row in range(stop.shape[0]):
        while at < stop[row]:
            out[row] += numbers[at]
            at += 1


@njit(nogil=True, cache=True, error_model="numpy")
def _count_pools(below, n_below, kind, is_top, counted, left):  # type: ignore[no-untyped-def]
    n_outputs, n_units, n_classes = below.target.shape[1], kind.n_units, kind.n_classes
    stop, unit, n_records, target = below.stop, below.unit, below.n_records, below.target
    n = np.zeros(n_units, np.int64)
    sums = np.zeros((n_units, n_outputs))
    seen = np.empty(n_units, np.int64)
    found = np.empty((n_units, 2), np.int64)
    found_sums = np.empty((n_units, n_outputs))
    n_counted, n_left = np.int64(0), np.int64(0)
    for row in range(counted.stop.shape[0]):
        pool, c = row // n_classes, row % n_classes
        n_seen, total = np.int64(0), np.int64(0)
        for child in range(pool * FAN, min(pool * FAN + FAN, n_below)):
            own = child * n_classes + c
            for e in range(stop[own - 1] if own > 0 else np.int64(0), stop[own]):
                u = unit[e]
                if u == n_units - 1:
                    continue
                if n[u] == 0:
                    seen[n_seen] = u
                    n_seen += 1
                n[u] += n_records[e]
                total += n_records[e]
                for o in range(n_outputs):
                    sums[u, o] += target[e, o]
        _sort(seen, n_seen, n)
        for s in range(n_seen):
            u = seen[s]
            found[s, 0], found[s, 1] = u, n[u]
            n[u] = 0
            for o in range(n_outputs):
                found_sums[s, o] = sums[u, o]
                sums[u, o] = 0.0
        n_found = n_seen
        if total >= kind.floor:
            n_counted, n_found = _write_common(found, found_sums, n_seen, total, kind, is_top, counted, n_counted)
        for s in range(0 if is_top else n_found):
            left.unit[n_left], left.n_records[n_left] = found[s, 0], found[s, 1]
            for o in range(n_outputs):
                left.target[n_left, o] = found_sums[s, o]
            n_left += 1
        counted.stop[row], left.stop[row] = n_counted, n_left
