# SPDX-License-Identifier: Apache-2.0
"""Draw values from what is counted of groups, and say what a value speaks for.

The shares of a group's values are its own counts, and for the records that are drawn from pools those of its pools, the
nearer ones more. What a value speaks for is added up over columns: for classes the logarithm of its share in each class
beside that in the first, for numbers how far the mean target of those who have it lies above that of their groups. Both
are drawn a little towards what the value says in the whole table. For classes that speaks a second time, by itself. See
``region_counts``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.cells import Inside, everything
from sfumato.partition.region_counts import FAN, ColumnCounts, n_pools

_AS_MANY = 100.0
"""How many records of a class of a group its whole table counts for, when values speak."""

_AS_MANY_NUMBERS = 10.0
"""The same of a target of numbers."""


class Whole(NamedTuple):
    """The values of a column in the whole table, as its counts have them. Arrays, as kernels need them."""

    share: NDArray[np.float64]  # (classes, values)
    least: NDArray[np.float64]  # (classes,): half a person; a value that is not counted may still be there
    target: NDArray[np.float64]  # (values, outputs): how far the mean target lies above those of the groups

    def says(self) -> NDArray[np.float64]:
        """Return what each value says of classes in the whole table, shape (values, classes but the first)."""
        likely = np.log(np.maximum(self.share, self.least[:, np.newaxis]))
        return np.ascontiguousarray((likely[1:] - likely[0]).T)


class Drawing(NamedTuple):
    """A column to draw from. Arrays, as kernels need them."""

    counts: ColumnCounts
    whole: Whole
    inside: Inside
    weight: float  # of what its values say in a group
    whole_weight: float  # of what they say of classes in the whole table


def whole_table(counts: ColumnCounts, fallback: int) -> Whole:
    """Return the shares of values in the whole table, and what they say there about a target of numbers.

    Where a class counts nothing, the values of all classes stand for it, and where nothing is counted the value
    `fallback`.
    """
    n = counts.whole.astype(np.float64)
    every = n.sum(axis=0)
    every[fallback] += every.sum() == 0
    total = n.sum(axis=1, keepdims=True)
    own = np.where(total > 0, n, every)
    share = own / own.sum(axis=1, keepdims=True)
    nothing = Whole(share, 0.5 / (total[:, 0] + 1), np.zeros((n.shape[1], counts.target.shape[1])))
    if not counts.target.shape[1]:
        return nothing
    room = _make_room(Drawing(counts, nothing, everything(len(counts.n_from_pools), n.shape[1]), 1.0, 0.0))
    people, sums = np.zeros(n.shape[1]), np.zeros_like(nothing.target)
    _add_up(room, people, sums)
    return nothing._replace(target=sums / np.where(people > 0, people, 1.0)[:, np.newaxis])


class Turns(NamedTuple):
    """Records of one class that follow each other in a group. Arrays, as kernels need them."""

    stop: NDArray[np.int64]  # where the records of each turn end
    of_class: NDArray[np.int32]
    of_group: NDArray[np.int64]  # where the turns of each group end
    most: int  # records of a group


def turns_of(offsets: NDArray[np.int64], classes: NDArray[np.int32]) -> Turns:
    """Return the turns of records that are given group after group, see `draw_column`.

    >>> turns_of(np.array([0, 3, 5]), np.array([0, 0, 1, 1, 1], np.int32)).stop.tolist()
    [2, 3, 5]
    """
    starts = np.zeros(int(offsets[-1]) + 1, np.bool_)
    starts[1:-1] = classes[1:] != classes[:-1]
    starts[offsets] = True
    stop = np.flatnonzero(starts)[1:]
    of_group = np.searchsorted(stop, offsets[1:], side="right")
    return Turns(stop, classes[stop - 1], of_group, int(np.diff(offsets).max(initial=0)))


def draw_column(
    drawing: Drawing,
    groups: NDArray[np.int64],
    turns: Turns,
    seed: int,
    said: NDArray[np.float64],
    out: NDArray[np.integer],
) -> None:
    """Draw a value for each record from what is counted of its group and class.

    Parameters
    ----------
    drawing : Drawing
    groups : ndarray of int64
        The numbers of some groups, rising.
    turns : Turns
        Of the records of these groups.
    seed : int
        Of the random numbers, from 0 to 2**64 - 1.
    said : ndarray of float64, shape (records, classes but the first) or (records, outputs)
        To which what the value says is added; no columns: nothing to add.
    out : ndarray of int
        The value of each record.
    """
    speaks = said.shape[1] > 0 and not drawing.counts.target.shape[1]
    everywhere = drawing.whole_weight * drawing.whole.says() if speaks else np.zeros((0, 0))
    _draw(_make_room(drawing), drawing.weight, everywhere, groups, turns, np.uint64(seed), said, out)


def look_up_column(
    drawing: Drawing,
    groups: NDArray[np.int64],
    offsets: NDArray[np.int64],
    classes: NDArray[np.int32],
    units: NDArray[np.int32],
    above: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return what the values of counted records say in their groups, shape (records, classes but the first or outputs).

    A record is left out of the counts: it would speak for itself.

    Parameters
    ----------
    drawing, groups
        As of `draw_column`.
    offsets : ndarray of int64
        Where the records of each group begin; one more at the end.
    classes : ndarray of int32
        Of each record.
    units : ndarray of int32
        The value of each record.
    above : ndarray of float64, shape (records, outputs)
        How far its target lies above the mean of its group.
    """
    room = _make_room(drawing)
    out = np.zeros((len(units), room.says.shape[1]))
    _look_up(room, groups, offsets, classes, units, above, out)
    return out


def commonest_values(drawing: Drawing) -> NDArray[np.int32]:
    """Return the value that most records of each group are expected to have, of all classes together."""
    out = np.zeros(len(drawing.counts.n_from_pools), np.int32)
    _find_commonest(_make_room(drawing), out)
    return out


class Room(NamedTuple):
    """A column, and working memory for the groups of one pool: (groups, classes, values) unless it says otherwise.

    One tuple of arrays, since numba hands tuples on array by array: a call costs as much as drawing many values. So a
    pool of groups is entered with one call, and loops use arrays that were taken out of the tuple before.
    """

    start: NDArray[np.int64]  # the counts, see `ColumnCounts`
    unit: NDArray[np.int32]
    width: NDArray[np.int32]
    n_counted: NDArray[np.int64]
    target: NDArray[np.float64]
    n_from_pools: NDArray[np.int64]
    n_in_whole: NDArray[np.int64]
    whole_share: NDArray[np.float64]  # see `Whole`
    whole_least: NDArray[np.float64]
    whole_target: NDArray[np.float64]
    cell: NDArray[np.int64]  # see `Inside`
    holds: NDArray[np.bool_]
    is_whole: NDArray[np.bool_]
    levels: NDArray[np.int64]  # number of pools of each level
    own: NDArray[np.float64]  # records of the group itself
    own_target: NDArray[np.float64]  # (groups, values, outputs): sums over these
    listed: NDArray[np.int32]  # twice the values: those to draw, those of pools perhaps after its own
    summed: NDArray[np.float64]  # the sum of records up to each of these
    n_listed: NDArray[np.int64]  # (groups, classes)
    of_pools: NDArray[np.float64]  # (groups, classes): records of the group for each record in its pools
    n_records: NDArray[np.float64]  # (groups, classes): what is counted, in the group and in pools
    n_drawn: NDArray[np.float64]  # (groups, classes): what is drawn from, the same but where nothing is counted
    pooled: NDArray[np.float64]  # (levels, classes, values): records per group in the pools of a level and above it
    pooled_target: NDArray[np.float64]  # (levels, values, outputs)
    pooled_sum: NDArray[np.float64]  # (classes, values): of the nearest pool and those above, up to each value
    place: NDArray[np.int64]  # the pool of each level that is in `pooled`
    mark: NDArray[np.int64]  # (values,): the row that counted a value last
    stamp: NDArray[np.int64]  # (values,): the group for which it is known what a value says
    says: NDArray[np.float64]  # (values, said)


def _make_room(drawing: Drawing) -> Room:
    counts, whole = drawing.counts, drawing.whole
    levels = n_pools(len(counts.n_from_pools))
    n_levels, n_outputs = len(levels), counts.target.shape[1]
    n_classes, n_units = whole.share.shape
    return Room(
        *counts, *whole, *drawing.inside, levels,
        own=np.zeros((FAN, n_classes, n_units)),
        own_target=np.zeros((FAN, n_units, n_outputs)),
        listed=np.zeros((FAN, n_classes, 2 * n_units), np.int32),
        summed=np.zeros((FAN, n_classes, 2 * n_units)),
        n_listed=np.zeros((FAN, n_classes), np.int64),
        of_pools=np.zeros((FAN, n_classes)),
        n_records=np.zeros((FAN, n_classes)),
        n_drawn=np.zeros((FAN, n_classes)),
        pooled=np.zeros((n_levels + 1, n_classes, n_units)),
        pooled_target=np.zeros((n_levels + 1, n_units, n_outputs)),
        pooled_sum=np.zeros((n_classes, n_units)),
        place=np.full(n_levels, -1, np.int64),
        mark=np.full(n_units, -1, np.int64),
        stamp=np.full(n_units, -1, np.int64),
        says=np.zeros((n_units, n_outputs or n_classes - 1)),
    )  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy")
def _find_commonest(room, out):  # type: ignore[no-untyped-def]
    own, of_pools, place, whole, holds = room.own, room.of_pools, room.place, room.whole_share, room.holds
    for g in range(out.shape[0]):
        q, most, cell = g % FAN, 0.0, room.cell[g]
        if place[1] != g // FAN:
            _enter(room, g // FAN)
        for step in range(3):  # of the group, of the whole table, and of that also outside the cell
            for u in range(whole.shape[1] if most == 0.0 else 0):
                n = 0.0
                for c in range(whole.shape[0] if holds[cell, u] or step == 2 else 0):
                    n += own[q, c, u] + of_pools[q, c] * room.pooled[1, c, u] if step == 0 else whole[c, u]
                if n > most:
                    out[g], most = u, n


@njit(nogil=True, cache=True, error_model="numpy")
def _draw(room, weight, everywhere, groups, turns, seed, said, out):  # type: ignore[no-untyped-def]
    stamp, says, entered = room.stamp, room.says, room.place
    turn_stop, turn_class, stop_of_group = turns.stop, turns.of_class, turns.of_group
    voice, hand = _voice(room), _hand(room)
    n_said, n_outputs, n_classes = said.shape[1], room.target.shape[1], room.of_pools.shape[1]
    dealt, taken = np.empty(turns.most, np.int32), np.empty(turns.most, np.int64)
    first, left = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    alike = np.zeros(n_classes, np.bool_)
    state, i, turn = seed, np.int64(0), np.int64(0)
    for at in range(groups.shape[0]):
        g = groups[at]
        q = g % FAN
        if entered[1] != g // FAN:
            _enter(room, g // FAN)
        left[:] = 0
        start = i
        for t in range(turn, stop_of_group[at]):
            left[turn_class[t]] += turn_stop[t] - start
            start = turn_stop[t]
        n = np.int64(0)
        for c in range(n_classes):
            first[c] = n
            if left[c] > 0:
                state += _STEP
                alike[c] = _deal(hand, q, c, left[c], _random(state, np.int64(_UNIT)) / _UNIT, dealt, n)
                n += left[c]
        if n_said > 0:  # what the dealt values say
            for d in range(n):
                u = dealt[d]
                if (d == 0 or u != dealt[d - 1]) and stamp[u] != g:
                    stamp[u] = g
                    if n_outputs > 0:
                        for o in range(n_outputs):
                            says[u, o] = weight * _above(voice, q, u, o, 0.0, 0.0)
                    elif weight == 0.0:  # as of many columns
                        for s in range(n_said):
                            says[u, s] = everywhere[u, s]
                    else:
                        own = _share(voice, q, u, np.int64(0), 0.0)
                        for s in range(n_said):
                            here = np.log(_share(voice, q, u, s + 1, 0.0) / own)
                            says[u, s] = everywhere[u, s] + weight * here
        while turn < stop_of_group[at]:
            c, stop = turn_class[turn], turn_stop[turn]
            low, n_left = first[c], left[c]
            left[c] -= stop - i
            if alike[c]:  # no matter which is taken
                u = dealt[low]
                state += _STEP * np.uint64(stop - i)
                for r in range(i, stop):
                    out[r] = u
                for s in range(n_said):
                    own = says[u, s]
                    for r in range(i, stop):
                        said[r, s] += own
            else:  # three loops in turn are faster than one
                for r in range(i, stop):
                    state += _STEP
                    taken[r - i] = _random(state, n_left - (r - i))
                for r in range(i, stop):
                    n_left -= 1
                    place = low + taken[r - i]
                    out[r] = dealt[place]
                    dealt[place] = dealt[low + n_left]
                for s in range(n_said):
                    for r in range(i, stop):
                        said[r, s] += says[out[r], s]
            i = stop
            turn += 1


_STEP, _FIRST_MIX, _SECOND_MIX = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_UNIT = 1 << 32


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _random(state, n):  # type: ignore[no-untyped-def]
    """Return a random whole number below `n`, at most 2**32: the upper half of SplitMix64 (Steele, Lea, Flood 2014)."""
    state = (state ^ (state >> np.uint64(30))) * _FIRST_MIX
    state = (state ^ (state >> np.uint64(27))) * _SECOND_MIX
    return np.int64(((state ^ (state >> np.uint64(31))) >> np.uint64(32)) * np.uint64(n) >> np.uint64(32))


class Hand(NamedTuple):
    """The parts of a room from which values are dealt."""

    listed: NDArray[np.int32]
    summed: NDArray[np.float64]
    n_listed: NDArray[np.int64]
    n_drawn: NDArray[np.float64]
    of_pools: NDArray[np.float64]
    pooled_sum: NDArray[np.float64]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _hand(room):  # type: ignore[no-untyped-def]
    return Hand(room.listed, room.summed, room.n_listed, room.n_drawn, room.of_pools, room.pooled_sum)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _deal(hand, q, c, n, start, dealt, at):  # type: ignore[no-untyped-def]
    """Write values for some records of a group and class: at equal steps of its shares, from a random start.

    Returns whether all of them are the first value of the list.
    """
    listed, summed, pooled_sum = hand.listed[q, c], hand.summed[q, c], hand.pooled_sum[c]
    n_listed, total, i = hand.n_listed[q, c], hand.n_drawn[q, c], np.int64(0)
    of_own = summed[n_listed - 1] if n_listed > 0 else 0.0
    step = total / n
    for s in range(n_listed):
        is_last = s == n_listed - 1 and of_own >= total
        while i < n and (is_last or (i + start) * step < summed[s]):
            dealt[at + i] = listed[s]
            i += 1
        if s == 0 and i == n:
            return True
    low, highest = np.int64(0), pooled_sum.shape[0] - 1
    while i < n and highest > 0 and pooled_sum[highest] == pooled_sum[highest - 1]:  # rounding may lead beyond the last
        highest -= 1
    each = hand.of_pools[q, c]
    while i < n:
        wanted = ((i + start) * step - of_own) / each
        while low < highest and pooled_sum[low] <= wanted:
            low += 1
        dealt[at + i] = low
        i += 1
    return False


class Voice(NamedTuple):
    """The parts of a room that say something about a value."""

    own: NDArray[np.float64]
    own_target: NDArray[np.float64]
    pooled: NDArray[np.float64]
    pooled_target: NDArray[np.float64]
    of_pools: NDArray[np.float64]
    n_records: NDArray[np.float64]
    share: NDArray[np.float64]
    least: NDArray[np.float64]
    target: NDArray[np.float64]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _voice(room):  # type: ignore[no-untyped-def]
    return Voice(
        room.own, room.own_target, room.pooled[1], room.pooled_target[1], room.of_pools, room.n_records,
        room.whole_share, room.whole_least, room.whole_target,
    )  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _share(voice, q, u, c, less):  # type: ignore[no-untyped-def]
    """Return the share of a value in a class of a group, of all but some records that have it."""
    n = max(voice.own[q, c, u] + voice.of_pools[q, c] * voice.pooled[c, u] - less, 0.0)
    return (n + _AS_MANY * max(voice.share[c, u], voice.least[c])) / (voice.n_records[q, c] + _AS_MANY)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _above(voice, q, u, o, less, less_target):  # type: ignore[no-untyped-def]
    """Return how far the mean target of those with a value lies above that of their groups, but for some records."""
    n = max(voice.own[q, 0, u] + voice.of_pools[q, 0] * voice.pooled[0, u] - less, 0.0)
    total = voice.own_target[q, u, o] + voice.of_pools[q, 0] * voice.pooled_target[u, o] - less_target
    return (total + _AS_MANY_NUMBERS * voice.target[u, o]) / (n + _AS_MANY_NUMBERS)


# -- what a pool and its groups count ------------------------------------------------------------------------------


@njit(nogil=True, cache=True, error_model="numpy")
def _enter(room, pool):  # type: ignore[no-untyped-def]
    """Bring the room up to date for the groups of a pool."""
    _enter_pools(room, pool)
    start, own, listed, summed, n_listed = room.start, room.own, room.listed, room.summed, room.n_listed
    own_target, of_pools, pooled, holds = room.own_target, room.of_pools, room.pooled[1], room.holds
    share, pooled_sum, n_from_pools = room.whole_share, room.pooled_sum, room.n_from_pools
    n_records, n_to_draw, cells, whole_cells = room.n_records, room.n_drawn, room.cell, room.is_whole
    n_classes, n_units = pooled.shape
    book = _book(room)
    for g in range(pool * FAN, min(pool * FAN + FAN, room.levels[0])):
        q, cell = g % FAN, cells[g]
        is_whole = whole_cells[cell]
        for c in range(n_classes):
            for s in range(n_listed[q, c]):
                own[q, c, listed[q, c, s]] = 0.0
                for o in range(own_target.shape[2]):
                    own_target[q, listed[q, c, s], o] = 0.0
            row, n, n_own = g * n_classes + c, np.int64(0), 0.0
            if start[row] < start[row + 1]:
                n, n_own = _spread(book, row, cell, 1.0, share[c], own[q, c], own_target[q], listed[q, c], summed[q, c])
            n_drawn = float(n_from_pools[g, c])
            if n_own == 0.0 and n_drawn == 0.0:
                n_drawn = 1.0  # nothing of its own: all of it is drawn from pools
            in_pools, n_inside = pooled_sum[c, n_units - 1], n
            if not is_whole and n_drawn > 0.0:  # not all values of the pools are drawn: those that are go on the list
                in_pools = 0.0
                for u in range(n_units):
                    if holds[cell, u] and pooled[c, u] > 0.0:
                        in_pools += pooled[c, u]
                        listed[q, c, n_inside], summed[q, c, n_inside] = u, in_pools
                        n_inside += 1
            if in_pools == 0.0:
                n_drawn = 0.0
            of_pools[q, c] = n_drawn / in_pools if n_drawn > 0.0 else 0.0
            n_records[q, c] = n_own + n_drawn
            if n_own + n_drawn == 0.0:  # from the whole table, if it has values in the cell of the group from these
                for anywhere in range(2):
                    for u in range(n_units if n == 0 else 0):
                        if share[c, u] > 0.0 and (holds[cell, u] or anywhere == 1):
                            n_own += share[c, u]
                            listed[q, c, n], summed[q, c, n] = u, n_own
                            n += 1
            elif not is_whole and n_drawn > 0.0:
                for s in range(n, n_inside):
                    summed[q, c, s] = n_own + of_pools[q, c] * summed[q, c, s]
                n_own, n_drawn, n = n_own + n_drawn, 0.0, n_inside
            n_listed[q, c] = n
            n_to_draw[q, c] = n_own + n_drawn


@njit(nogil=True, cache=True, error_model="numpy")
def _enter_pools(room, pool):  # type: ignore[no-untyped-def]
    """Bring what a pool and those above it count up to date; most of them are those of the pool before."""
    pooled, pooled_sum, pooled_target, levels = room.pooled, room.pooled_sum, room.pooled_target, room.levels
    n_classes, n_units = pooled_sum.shape
    book = _book(room)
    first, place, new = levels[0], pool, 1
    while new < levels.shape[0] and room.place[new] != place:  # those above a pool that is known are known, too
        room.place[new] = place
        first += levels[new]
        place //= FAN
        new += 1
    for level in range(new - 1, 0, -1):
        first -= levels[level]
        scale = 1.0 / FAN**level
        for u in range(n_units if pooled_target.shape[2] > 0 else 0):
            for o in range(pooled_target.shape[2]):
                pooled_target[level, u, o] = pooled_target[level + 1, u, o]
        for c in range(n_classes):
            for u in range(n_units):
                pooled[level, c, u] = pooled[level + 1, c, u]
            row = (first + room.place[level]) * n_classes + c
            if room.start[row] < room.start[row + 1]:
                _spread(
                    book, row, np.int64(-1), scale, room.whole_share[c], pooled[level, c], pooled_target[level],
                    room.listed[0, 0, :0], room.summed[0, 0, :0],
                )  # fmt: skip
    for c in range(n_classes):
        running = 0.0
        for u in range(n_units):
            running += pooled[1, c, u]
            pooled_sum[c, u] = running


class Book(NamedTuple):
    """The parts of a room that are read where counts are spread over values."""

    start: NDArray[np.int64]
    unit: NDArray[np.int32]
    width: NDArray[np.int32]
    n_counted: NDArray[np.int64]
    target: NDArray[np.float64]
    mark: NDArray[np.int64]
    holds: NDArray[np.bool_]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _book(room):  # type: ignore[no-untyped-def]
    return Book(room.start, room.unit, room.width, room.n_counted, room.target, room.mark, room.holds)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _spread(book, row, cell, scale, share, out, out_target, listed, summed):  # type: ignore[no-untyped-def]
    """Add what the entries of a row count to their values, list these, and return their number and sum.

    Those who are counted in an interval have none of the values that the row counts before it, and of the others those
    that the cell holds (-1: any), as `share` has them. `mark` says which values a row has counted. A list of no length
    is left alone.
    """
    n_listed, running = np.int64(0), 0.0
    for e in range(book.start[row], book.start[row + 1]):
        first, width = np.int64(book.unit[e]), np.int64(book.width[e])
        n, in_whole, n_open = scale * book.n_counted[e], 0.0, 0
        for u in range(first, first + width if width > 1 else first):
            if book.mark[u] != row and (cell < 0 or book.holds[cell, u]):
                in_whole += share[u]
                n_open += 1
        for u in range(first, first + width):
            part = n
            if width > 1:
                if book.mark[u] == row or (cell >= 0 and not book.holds[cell, u]):
                    continue
                part = n * (share[u] / in_whole if in_whole > 0.0 else 1.0 / n_open)
            book.mark[u] = row
            if part == 0.0:
                continue
            out[u] += part
            for o in range(book.target.shape[1]):
                out_target[u, o] += part * book.target[e, o]
            if listed.shape[0] > 0:
                running += part
                listed[n_listed], summed[n_listed] = u, running
                n_listed += 1
    return n_listed, running


@njit(nogil=True, cache=True, error_model="numpy")
def _add_up(room, people, sums):  # type: ignore[no-untyped-def]
    """Add up what all groups and pools count, of a target of numbers, which has one class."""
    book, share = _book(room), room.whole_share[0]
    for row in range(room.start.shape[0] - 1):
        _spread(book, row, np.int64(-1), 1.0, share, people, sums, room.listed[0, 0, :0], room.summed[0, 0, :0])


# -- counted records -----------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, error_model="numpy")
def _look_up(room, groups, offsets, classes, units, above, out):  # type: ignore[no-untyped-def]
    n_outputs = above.shape[1]
    voice, book, levels, of_pools, share = _voice(room), _book(room), room.levels, room.of_pools, room.whole_share
    cells = room.cell
    for at in range(groups.shape[0]):
        g = groups[at]
        q = g % FAN
        if room.place[1] != g // FAN:
            _enter(room, g // FAN)
        for i in range(offsets[at], offsets[at + 1]):
            u, c = units[i], classes[i]
            less = _own_part(book, levels, of_pools, share, g, cells[g], c, u)
            if n_outputs > 0:
                for o in range(n_outputs):
                    out[i, o] = _above(voice, q, u, o, less, less * above[i, o])
            else:
                first = _share(voice, q, u, np.int64(0), less if c == 0 else 0.0)
                for s in range(out.shape[1]):
                    out[i, s] = np.log(_share(voice, q, u, s + 1, less if c == s + 1 else 0.0) / first)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _own_part(book, levels, of_pools, share, g, cell, c, u):  # type: ignore[no-untyped-def]
    """Return how much of what is counted of a value is a single record of a group and class that has it."""
    first, less, level, is_counted = np.int64(0), 0.0, 0, False
    while not is_counted and level < levels.shape[0]:
        row = (first + g // FAN**level) * of_pools.shape[1] + c
        e, stop = book.start[row], book.start[row + 1]
        while e < stop and not book.unit[e] <= u < book.unit[e] + book.width[e]:
            e += 1
        if e < stop:
            is_counted = True
            less = 1.0 if level == 0 else of_pools[g % FAN, c] / FAN**level
            if book.width[e] > 1:
                less *= _part_of_interval(book, cell if level == 0 else np.int64(-1), share[c], row, e, u)
        first += levels[level]
        level += 1
    return less


@njit(nogil=True, cache=True, error_model="numpy")
def _part_of_interval(book, cell, share, row, entry, own):  # type: ignore[no-untyped-def]
    """Return which part of those counted in an interval have a value, see `_spread`."""
    unit, width, in_whole, n_open = book.unit, book.width, 0.0, 0
    for u in range(unit[entry], unit[entry] + width[entry]):
        is_counted = cell >= 0 and not book.holds[cell, u]
        for e in range(book.start[row], entry):
            is_counted |= unit[e] <= u < unit[e] + width[e]
        if not is_counted:
            in_whole += share[u]
            n_open += 1
    return share[own] / in_whole if in_whole > 0.0 else 1.0 / n_open
