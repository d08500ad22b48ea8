# SPDX-License-Identifier: Apache-2.0
"""Draw values from what is counted of groups, and say how strongly a value speaks for each class.

The shares of a group's values are its own counts, and for the records that are drawn from pools those of its pools, the
nearer ones more. Only values that lie in the cell of the group are drawn. See ``region_counts``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.cells import Inside
from sfumato.partition.region_counts import FAN, ColumnCounts, n_pools

_AS_MANY = 10.0
"""How many records of a group and class its whole class counts for, when values are evidence for classes."""


class Evidence(NamedTuple):
    """How strongly values speak for the classes of a group. Arrays, as kernels need them."""

    n_in_class: NDArray[np.int64]  # (groups, classes): records
    n_of_class: NDArray[np.int64]  # (classes,): records of the whole table
    weight: float  # of this column


def draw_column(
    counts: ColumnCounts,
    inside: Inside,
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
    inside : Inside
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
    _draw(counts, inside, evidence, levels, groups, offsets, classes, picks, log_likelihood, out, room)


def look_up_column(
    counts: ColumnCounts,
    inside: Inside,
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
    room = _make_room(counts, len(levels))
    _look_up(counts, inside, evidence, levels, groups, offsets, classes, units, out, room)
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
    anything: NDArray[np.bool_]  # a cell with all values


def _make_room(counts: ColumnCounts, n_levels: int) -> Room:
    shape = counts.otherwise.shape
    return Room(
        np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape[0], np.int64),
        np.zeros((n_levels + 1, *shape)), np.zeros((n_levels + 1, *shape)), np.full(n_levels, -1, np.int64),
        np.ones(shape[1], np.bool_),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _draw(counts, inside, evidence, levels, groups, offsets, classes, picks, log_likelihood, out, room):  # type: ignore[no-untyped-def]
    n_classes, n_units = counts.otherwise.shape
    spoken = np.full((n_classes, n_units), np.nan)  # the evidence of a value, once it is known
    for at in range(groups.shape[0]):
        g = groups[at]
        _find_shares(counts, inside.holds[inside.cell[g]], evidence.n_in_class, levels, g, room)
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
def _look_up(counts, inside, evidence, levels, groups, offsets, classes, units, out, room):  # type: ignore[no-untyped-def]
    for at in range(groups.shape[0]):
        g = groups[at]
        _find_shares(counts, inside.holds[inside.cell[g]], evidence.n_in_class, levels, g, room)
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
def _find_shares(counts, holds, n_in_class, levels, g, room):  # type: ignore[no-untyped-def]
    """Write the shares of the values of one group, of those that its cell holds."""
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
            if holds[u]:
                in_pools += room.pooled[1, c, u]
        if in_pools == 0.0:
            n_drawn = 0.0
        total += n_drawn
        if total > 0.0:
            whole = counts.otherwise[c]
            _add_shares(counts, holds, counts.start[row], counts.stop[row], whole, 1.0 / total, share, others)
        of_pools = n_drawn / (in_pools * total) if n_drawn > 0.0 else 0.0
        is_otherwise = total == 0.0
        is_anywhere = is_otherwise and not _has_share(counts.otherwise[c], holds)
        running, n_seen = 0.0, 0
        for u in range(n_units):
            if is_otherwise:
                share[u] = others[u] = counts.otherwise[c, u] if holds[u] or is_anywhere else 0.0
            elif n_drawn > 0.0 and holds[u]:
                share[u] += of_pools * room.pooled[1, c, u]
                others[u] += of_pools * room.others_pooled[1, c, u]
            if share[u] > 0.0:
                running += share[u]
                room.seen[c, n_seen], room.summed[c, n_seen] = u, running
                n_seen += 1
        room.n_seen[c] = n_seen
        if is_otherwise:
            for u in range(n_units):
                share[u] /= running
                others[u] /= running


@njit(nogil=True, cache=True)
def _has_share(shares, holds):  # type: ignore[no-untyped-def]
    for u in range(holds.shape[0]):  # noqa: SIM110 - compiled
        if holds[u] and shares[u] > 0.0:
            return True
    return False


@njit(nogil=True, cache=True)
def _find_pooled(counts, levels, g, room):  # type: ignore[no-untyped-def]
    """Bring what the pools of a group count up to date: most of them are those of the group before."""
    n_classes = counts.otherwise.shape[0]
    first, is_new = np.int64(0), False
    for level in range(levels.shape[0]):
        first += levels[level]
    for level in range(levels.shape[0] - 1, 0, -1):
        first -= levels[level]
        size = FAN**level
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
                counts, room.anything, counts.start[row], counts.stop[row], counts.otherwise[c], 1.0 / size,
                room.pooled[level, c], room.others_pooled[level, c],
            )  # fmt: skip


@njit(nogil=True, cache=True)
def _add_shares(counts, holds, start, stop, whole, scale, share, others):  # type: ignore[no-untyped-def]
    """Add what the entries of a row say; the values of an interval that a cell holds, as the whole class shares them.

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
            if holds[u] and not _is_counted(counts, start, e, u):
                in_whole += whole[u]
                n_open += 1
        for u in range(first, last):
            if holds[u] and not _is_counted(counts, start, e, u):
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
