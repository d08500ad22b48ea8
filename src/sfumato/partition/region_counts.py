# SPDX-License-Identifier: Apache-2.0
"""Count how often values occur in groups, so that every number counts at least `floor` people, and draw from that.

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

_FAN = 4
"""Groups of a pool, and pools of a larger one."""

_NARROW = 3
"""Within a group or a pool, an interval has at most one in so many of the values of a column."""

_AS_MANY = 10.0
"""How many records of a group and class its whole class counts for, when values are evidence for classes."""


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
        sizes.append(-(-sizes[-1] // _FAN))
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
        if not is_last and (place + 1) % _FAN != 0:
            break
        place //= _FAN
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


# -- drawing ------------------------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """How strongly values speak for the classes of a group. Arrays, as kernels need them."""

    n_in_class: NDArray[np.int64]  # (groups, classes): records
    n_of_class: NDArray[np.int64]  # (classes,): records of the whole table
    weight: float  # of this column


def draw_column(
    counts: ColumnCounts,
    evidence: Evidence,
    groups: NDArray[np.int64],
    offsets: NDArray[np.int64],
    classes: NDArray[np.int32],
    picks: NDArray[np.float64],
    log_likelihood: NDArray[np.float64],
    out: NDArray[np.int32],
) -> None:
    """Draw a value for each record from what is counted of its group and class.

    Parameters
    ----------
    counts : ColumnCounts
    evidence : Evidence
    groups : ndarray of int64
        The numbers of some groups.
    offsets : ndarray of int64
        Where the records of each of them begin; one more at the end.
    classes : ndarray of int32
        Of each record.
    picks : ndarray of float64
        A random number from 0 to 1 for each record.
    log_likelihood : ndarray of float64, shape (records, classes)
        To which the evidence of the value for each class is added; no classes: nothing to add.
    out : ndarray of int32
        The values.
    """
    levels = n_pools(len(counts.n_from_pools))
    room = _make_room(counts, len(levels))
    _draw(counts, evidence, levels, groups, offsets, classes, picks, log_likelihood, out, room)


def look_up_column(
    counts: ColumnCounts,
    evidence: Evidence,
    groups: NDArray[np.int64],
    offsets: NDArray[np.int64],
    classes: NDArray[np.int32],
    units: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Return the evidence of the values of counted records for each class, shape (records, classes).

    For its own class, a record is left out of the counts: it would be evidence for itself.
    """
    out = np.zeros((len(units), counts.n_from_pools.shape[1]))
    levels = n_pools(len(counts.n_from_pools))
    _look_up(counts, evidence, levels, groups, offsets, classes, units, out, _make_room(counts, len(levels)))
    return out


class Room(NamedTuple):
    """Working memory: the shares of values of one group, and of the pools that it belongs to, per class."""

    share: NDArray[np.float64]  # (classes, values)
    others: NDArray[np.float64]  # the same without one of the counted records
    seen: NDArray[np.int32]  # the values with a share
    summed: NDArray[np.float64]  # the sum of shares up to each of these
    n_seen: NDArray[np.int64]
    pooled: NDArray[np.float64]  # (levels, classes, values): records per group in the pools of a level and above it
    others_pooled: NDArray[np.float64]
    place: NDArray[np.int64]  # the pool of each level that is in `pooled`


def _make_room(counts: ColumnCounts, n_levels: int) -> Room:
    shape = counts.otherwise.shape
    return Room(
        np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape[0], np.int64),
        np.zeros((n_levels + 1, *shape)), np.zeros((n_levels + 1, *shape)), np.full(n_levels, -1, np.int64),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _draw(counts, evidence, levels, groups, offsets, classes, picks, log_likelihood, out, room):  # type: ignore[no-untyped-def]
    n_classes, n_units = counts.otherwise.shape
    spoken = np.full((n_classes, n_units), np.nan)  # the evidence of a value, once it is known
    for at in range(groups.shape[0]):
        g = groups[at]
        _find_shares(counts, evidence.n_in_class, levels, g, room)
        for i in range(offsets[at], offsets[at + 1]):
            c = classes[i]
            low, high = np.int64(0), room.n_seen[c] - 1
            wanted = picks[i] * room.summed[c, high]
            while low < high:
                middle = (low + high) >> 1
                if room.summed[c, middle] <= wanted:
                    low = middle + 1
                else:
                    high = middle
            u = room.seen[c, low]
            out[i] = u
            for k in range(log_likelihood.shape[1]):
                if np.isnan(spoken[k, u]):
                    spoken[k, u] = evidence.weight * _speaks(room.share[k, u], u, g, k, counts, evidence)
                log_likelihood[i, k] += spoken[k, u]
        if log_likelihood.shape[1] > 0:
            for i in range(offsets[at], offsets[at + 1]):
                for k in range(n_classes):
                    spoken[k, out[i]] = np.nan


@njit(nogil=True, cache=True)
def _look_up(counts, evidence, levels, groups, offsets, classes, units, out, room):  # type: ignore[no-untyped-def]
    for at in range(groups.shape[0]):
        g = groups[at]
        _find_shares(counts, evidence.n_in_class, levels, g, room)
        for i in range(offsets[at], offsets[at + 1]):
            for c in range(out.shape[1]):
                own = room.others[c, units[i]] if classes[i] == c else room.share[c, units[i]]
                out[i, c] = _speaks(own, units[i], g, c, counts, evidence)


@njit(nogil=True, cache=True)
def _speaks(share, unit, g, c, counts, evidence):  # type: ignore[no-untyped-def]
    """Return the logarithm of the share of a value in a group and class, drawn towards its share in the whole class."""
    least = 0.5 / (evidence.n_of_class[c] + 1)  # half a person: a value that is not counted may still be there
    whole = max(counts.otherwise[c, unit], least)
    n = evidence.n_in_class[g, c]
    return np.log((n * share + _AS_MANY * whole) / (n + _AS_MANY))


@njit(nogil=True, cache=True)
def _find_shares(counts, n_in_class, levels, g, room):  # type: ignore[no-untyped-def]
    """Write the shares of the values of one group."""
    n_classes, n_units = counts.otherwise.shape
    _find_pooled(counts, levels, g, room)
    for c in range(n_classes):
        share, others = room.share[c], room.others[c]
        share[:] = 0.0
        others[:] = 0.0
        room.n_seen[c] = 0
        if n_in_class[g, c] == 0:
            continue
        row = g * n_classes + c
        total = 0.0
        for e in range(counts.start[row], counts.stop[row]):
            total += counts.n_records[e]
        n_drawn = float(counts.n_from_pools[g, c])
        if total == 0.0 and n_drawn == 0.0:
            n_drawn = 1.0  # nothing of its own: all of it is drawn from pools
        in_pools = 0.0
        for u in range(n_units if n_drawn > 0.0 else 0):
            in_pools += room.pooled[1, c, u]
        if in_pools == 0.0:
            n_drawn = 0.0
        total += n_drawn
        if total > 0.0:
            _add_shares(counts, counts.start[row], counts.stop[row], counts.otherwise[c], 1.0 / total, share, others)
        of_pools = n_drawn / (in_pools * total) if n_drawn > 0.0 else 0.0
        running, n_seen = 0.0, 0
        for u in range(n_units):
            if total == 0.0:
                share[u] = others[u] = counts.otherwise[c, u]
            elif n_drawn > 0.0:
                share[u] += of_pools * room.pooled[1, c, u]
                others[u] += of_pools * room.others_pooled[1, c, u]
            if share[u] > 0.0:
                running += share[u]
                room.seen[c, n_seen], room.summed[c, n_seen] = u, running
                n_seen += 1
        room.n_seen[c] = n_seen


@njit(nogil=True, cache=True)
def _find_pooled(counts, levels, g, room):  # type: ignore[no-untyped-def]
    """Bring what the pools of a group count up to date: most of them are those of the group before."""
    n_classes = counts.otherwise.shape[0]
    first, is_new = np.int64(0), False
    for level in range(levels.shape[0]):
        first += levels[level]
    for level in range(levels.shape[0] - 1, 0, -1):
        first -= levels[level]
        size = _FAN**level
        place = g // size
        is_new |= place != room.place[level]
        if not is_new:
            continue
        room.place[level] = place
        for c in range(n_classes):
            row = (first + place) * n_classes + c
            room.pooled[level, c] = room.pooled[level + 1, c]
            room.others_pooled[level, c] = room.others_pooled[level + 1, c]
            _add_shares(
                counts, counts.start[row], counts.stop[row], counts.otherwise[c], 1.0 / size,
                room.pooled[level, c], room.others_pooled[level, c],
            )  # fmt: skip


@njit(nogil=True, cache=True)
def _add_shares(counts, start, stop, whole, scale, share, others):  # type: ignore[no-untyped-def]
    """Add what the entries of a row say; the values of an interval as they are shared in the whole class.

    Those who are counted in an interval have none of the values that the row counts alone, which come before it.
    """
    for e in range(start, stop):
        first, last = counts.unit[e], counts.unit[e] + counts.width[e]
        part, but_one = scale * counts.n_records[e], scale * (counts.n_records[e] - 1)
        if counts.width[e] == 1:
            share[first] += part
            others[first] += but_one
            continue
        in_whole, n_open = 0.0, 0
        for u in range(first, last):
            if not _is_counted(counts, start, e, u):
                in_whole += whole[u]
                n_open += 1
        for u in range(first, last):
            if not _is_counted(counts, start, e, u):
                of_it = whole[u] / in_whole if in_whole > 0.0 else 1.0 / n_open
                share[u] += part * of_it
                others[u] += but_one * of_it


@njit(nogil=True, cache=True)
def _is_counted(counts, start, stop, unit):  # type: ignore[no-untyped-def]
    """Return True if an entry from start to stop counts the value."""
    for e in range(start, stop):  # noqa: SIM110 - compiled
        if counts.unit[e] <= unit < counts.unit[e] + counts.width[e]:
            return True
    return False
