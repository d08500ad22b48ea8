# SPDX-License-Identifier: Apache-2.0
"""Count how often values occur in groups, so that every number counts at least `floor` people.

A value that at least `floor` records of a group and a class have is counted there. Of numbers, those that fewer have
are counted in intervals: two neighbouring values, four, eight, at fixed places. What is still left goes up: four
neighbouring groups form a pool, four pools a larger one, up to the whole table, and it is counted in the first pool in
which at least `floor` records share it. So each record is counted once per column or, if its value is rare everywhere,
not at all. How many records of a group are drawn from its pools is a multiple of `floor`, too: what is left over is
carried on to the next group. All numbers are sums over records, so their order does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

FAN = 4
"""Groups of a pool, and pools of a larger one."""

_NARROW = 3
"""Within a group or a pool, an interval has at most one in so many of the values of a column."""


class ColumnCounts(NamedTuple):
    """The counted values of one column. Arrays, as kernels need them.

    Rows are groups times classes first, then pools times classes, level after level.
    """

    start: NDArray[np.int64]  # where the entries of each row begin
    stop: NDArray[np.int64]  # and end
    unit: NDArray[np.int32]  # entries: a value, or the first of an interval
    width: NDArray[np.int32]  # how many values it covers: 1, 2, 4, ...
    n_records: NDArray[np.int64]  # how many records have one of them, at least the floor
    n_from_pools: NDArray[np.int64]  # (groups, classes): records that are drawn from pools, a multiple of the floor
    otherwise: NDArray[np.float64]  # (classes, values): shares for a row without any entry, its own or in its pools


def n_pools(n_groups: int) -> NDArray[np.int64]:
    """Return the number of pools of each level: groups, fours of groups, sixteens, ... the whole table."""
    sizes = [n_groups]
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


def count_column(
    units: NDArray[np.int32],
    n_units: int,
    classes: NDArray[np.int32],
    n_classes: int,
    offsets: NDArray[np.int64],
    floor: int,
    most_common: int,
    n_ordered: int = 0,
) -> ColumnCounts:
    """Count the values of one column.

    Parameters
    ----------
    units : ndarray of int32
        The value of each record, group after group; the last stands for values that may not be named and are not
        counted anywhere.
    n_units : int
        The number of values, the last included.
    classes : ndarray of int32
        Of each record.
    n_classes : int
    offsets : ndarray of int64
        Where each group begins; one more at the end.
    floor : int
    most_common : int
        The value to draw where nothing is counted.
    n_ordered : int
        How many of the values, the first ones, are numbers in rising order; 0 for categories.
    """
    levels = n_pools(len(offsets) - 1)
    n_rows = int(levels.sum()) * n_classes
    most = len(units) // floor + 1
    start, stop = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    entries = Entries(np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int64))
    rest = np.zeros((len(offsets) - 1, n_classes), np.int64)
    kind = Kind(floor, n_units, n_ordered)
    n = _count(units, classes, offsets, kind, levels, start, stop, entries, rest)
    otherwise = _shares(units, n_units, classes, n_classes, floor, most_common)
    unit, width, n_records = entries
    return ColumnCounts(
        start, stop, unit[:n].copy(), width[:n].copy(), n_records[:n].copy(), carried(rest, floor), otherwise
    )


class Entries(NamedTuple):
    """Room for what is counted."""

    unit: NDArray[np.int32]
    width: NDArray[np.int32]
    n_records: NDArray[np.int64]


class Kind(NamedTuple):
    """Facts of a column for counting."""

    floor: int
    n_units: int
    n_ordered: int


def _shares(
    units: NDArray[np.int32],
    n_units: int,
    classes: NDArray[np.int32],
    n_classes: int,
    floor: int,
    most_common: int,
) -> NDArray[np.float64]:
    """Return the shares of values in the whole table, per class where at least `floor` records have one of them."""
    counts = np.bincount(classes.astype(np.int64) * n_units + units, minlength=n_classes * n_units)
    counts = counts.reshape(n_classes, n_units)
    counts[:, -1] = 0
    whole = np.where(counts.sum(axis=0) >= floor, counts.sum(axis=0), 0)
    whole[most_common] += whole.sum() == 0
    own = np.where(counts >= floor, counts, 0)
    own = np.where(own.sum(axis=1, keepdims=True) > 0, own, whole)
    shares: NDArray[np.float64] = own / own.sum(axis=1, keepdims=True)
    return shares


@njit(nogil=True, cache=True)
def _count(units, classes, offsets, kind, levels, start, stop, entries, rest):  # type: ignore[no-untyped-def]
    n_classes, n_levels = rest.shape[1], levels.shape[0]
    own = np.zeros((n_classes, kind.n_units), np.int64)
    pools = np.zeros((n_levels, n_classes, kind.n_units), np.int64)  # the open pool of each level
    seen = np.empty((n_classes, kind.n_units), np.int64)
    n_seen = np.zeros(n_classes, np.int64)
    found = np.empty((kind.n_units, 2), np.int64)
    n_entries = np.int64(0)
    for g in range(offsets.shape[0] - 1):
        for i in range(offsets[g], offsets[g + 1]):
            c, u = classes[i], units[i]
            if own[c, u] == 0:
                seen[c, n_seen[c]] = u
                n_seen[c] += 1
            own[c, u] += 1
        for c in range(n_classes):
            seen[c, : n_seen[c]].sort()
            for s in range(n_seen[c]):
                u = seen[c, s]
                found[s, 0], found[s, 1] = u, own[c, u]
                own[c, u] = 0
            row = g * n_classes + c
            start[row] = n_entries
            n_entries, n_left = _write_common(found, n_seen[c], kind, n_levels == 1, entries, n_entries)
            stop[row] = n_entries
            n_seen[c] = 0
            for s in range(n_left):
                rest[g, c] += found[s, 1]
                if n_levels > 1 and found[s, 0] < kind.n_units - 1:
                    pools[1, c, found[s, 0]] += found[s, 1]
        n_entries = _close_pools(g, levels, kind, pools, found, start, stop, entries, n_entries)
    return n_entries


@njit(nogil=True, cache=True)
def _close_pools(g, levels, kind, pools, found, start, stop, entries, n_entries):  # type: ignore[no-untyped-def]
    """Count what pools have that are complete with group g, and hand the rest to the pool above."""
    first, place = levels[0], g
    is_last = g == levels[0] - 1
    for level in range(1, levels.shape[0]):
        if not is_last and (place + 1) % FAN != 0:
            break
        place //= FAN
        is_top = level + 1 == levels.shape[0]
        for c in range(pools.shape[1]):
            n_found = np.int64(0)
            for u in range(kind.n_units):
                if pools[level, c, u] > 0:
                    found[n_found, 0], found[n_found, 1] = u, pools[level, c, u]
                    pools[level, c, u] = 0
                    n_found += 1
            row = (first + place) * pools.shape[1] + c
            start[row] = n_entries
            n_entries, n_left = _write_common(found, n_found, kind, is_top, entries, n_entries)
            stop[row] = n_entries
            if not is_top:
                for s in range(n_left):
                    pools[level + 1, c, found[s, 0]] += found[s, 1]
        first += levels[level]
    return n_entries


@njit(nogil=True, cache=True)
def _write_common(found, n_found, kind, is_top, entries, n_entries):  # type: ignore[no-untyped-def]
    """Write the values, then the intervals, that enough records have; `found` keeps those that are left.

    `found` has values and their numbers of records. Returns the number of entries, and of values left.
    """
    widest = max(1, kind.n_ordered if is_top else kind.n_ordered // _NARROW)
    width = 1
    while True:
        n_left, at = 0, 0
        while at < n_found:
            node = found[at, 0] // width
            end, total = at, 0
            while end < n_found and found[end, 0] // width == node and found[end, 0] < kind.n_ordered:
                total += found[end, 1]
                end += 1
            if end == at:  # a category, or missing: a value of its own
                end, total = at + 1, found[at, 1] if width == 1 else 0
            is_named = found[at, 0] < kind.n_units - 1
            if total >= kind.floor and is_named:
                entries.unit[n_entries] = node * width
                entries.width[n_entries] = min(width, max(kind.n_ordered - node * width, 1))
                entries.n_records[n_entries] = total
                n_entries += 1
            else:
                for s in range(at, end):
                    found[n_left, 0], found[n_left, 1] = found[s, 0], found[s, 1]
                    n_left += 1
            at = end
        n_found = n_left
        width *= 2
        if width > widest:
            return n_entries, n_left
