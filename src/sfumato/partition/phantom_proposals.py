# SPDX-License-Identifier: Apache-2.0
"""Propose combinations of values for each group, none of which is tied to a single member.

A group's values come from its surroundings, of at least two hundred records: see ``surroundings``. They are dealt like
cards. The values that lie in the group's cell are laid out in order, those of a category from the most frequent one on,
and cut into as many runs as groups of this size would fill. Each group of the surroundings gets another run in each
column, and takes its middle or its most frequent value. The group's own members count as everybody else.

Then follow small changes: another value that occurs around the group, in one column or in two, or a neighboring value
that does not occur there. Combinations come first that are *rare*: with values that go together by chance alone, less
than one group in ten would have a member like that. That nobody has such a combination tells nobody anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.group_summaries import Groups
from sfumato.partition.kernel_options import INSIDE
from sfumato.partition.phantom_search import Proposals, Shown
from sfumato.partition.records import Layout
from sfumato.partition.surroundings import Surroundings
from sfumato.threads import map_in_threads

_N_CHANGES = 32  # proposals of a group beside its typical values
_N_COMBINED = 8  # single changes that are combined in pairs
_OUTSIDE = 4.0  # a value that does not occur around the group counts as so much further away
_RARE = 10  # so many groups of this size would have one member with a rare combination
_SHARED_FROM = 20_000  # records; below it threads cost more than they bring
_STEP = 0x9E3779B97F4A7C15  # the golden ratio of 2^64: its multiples are spread evenly, whatever their number


def propose(
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    around: Surroundings,
    shown: Shown,
    *,
    n_threads: int = 1,
) -> Proposals:
    """Return what each group proposes, from the codes of its surroundings."""
    proposals = _nothing_yet(groups.n_groups, layout)
    in_order = np.lexsort((around.stop, around.first))  # what has the same surroundings is counted once
    n_tasks = n_threads if len(groups.order) >= _SHARED_FROM else 1

    def task(chosen: NDArray[np.int64]) -> None:
        _propose(
            codes, groups.order, groups.offsets, chosen, around, layout, shown, _steps(layout), _scratch(layout),
            proposals,
        )  # fmt: skip

    map_in_threads(task, np.array_split(in_order, n_tasks), n_tasks)
    return proposals


def propose_counted(
    counts: NDArray[np.int64],
    chosen: NDArray[np.int64],
    sizes: NDArray[np.int64],
    layout: Layout,
    around: Surroundings,
    shown: Shown,
) -> Proposals:
    """Return what some groups propose, given how many records around each have each code: a row per group."""
    proposals = _nothing_yet(len(chosen), layout)
    _propose_counted(counts, chosen, sizes, around, layout, shown, _steps(layout), _scratch(layout), proposals)
    return proposals


def count_codes(codes: NDArray[Any], layout: Layout) -> NDArray[np.int64]:
    """Return how many of some records have each code."""
    n_codes = np.diff(layout.offsets).tolist()
    return np.concatenate([np.bincount(codes[:, j], minlength=n) for j, n in enumerate(n_codes)])


def _nothing_yet(n_groups: int, layout: Layout) -> Proposals:
    return Proposals(
        np.full((n_groups, layout.n_columns), -1, np.int32),
        np.full((n_groups, _N_CHANGES, 4), -1, np.int32),
        np.zeros(n_groups, np.bool_),
        np.zeros(n_groups, np.int64),
    )


def _steps(layout: Layout) -> NDArray[np.uint64]:
    """Return for each column by how much the turn of a group differs from that of the one before it."""
    return np.array([_STEP * (2 * column + 1) % (1 << 64) for column in range(layout.n_columns)], np.uint64)


class _Ranked(NamedTuple):
    """Changes of one code each, in rising order of cost."""

    cost: NDArray[np.float64]
    column: NDArray[np.int32]
    code: NDArray[np.int32]


class _Scratch(NamedTuple):
    """Room for the proposals of one group."""

    counts: NDArray[np.int64]  # of each code among those around that lie in the cell
    order: NDArray[np.int64]  # codes of a column
    totals: NDArray[np.int64]  # records per column
    ranked: _Ranked
    centre: NDArray[np.float64]  # of each code, as a share of the column's range
    changes: NDArray[np.int32]  # all that could be proposed, the nearest first
    bits: NDArray[np.int64]  # how rare each is


def _scratch(layout: Layout) -> _Scratch:
    n_codes, most = int(layout.offsets[-1]), 5 * layout.n_columns
    n_changes = most + _N_COMBINED * (_N_COMBINED - 1) // 2
    return _Scratch(
        np.zeros(n_codes, np.int64),
        np.zeros(int(np.diff(layout.offsets).max(initial=1)), np.int64),
        np.zeros(layout.n_columns, np.int64),
        _Ranked(np.empty(most), np.empty(most, np.int32), np.empty(most, np.int32)),
        (layout.low + layout.high) / 2,
        np.empty((n_changes, 4), np.int32),
        np.empty(n_changes, np.int64),
    )


@njit(nogil=True, cache=True)
def _propose(  # type: ignore[no-untyped-def]
    codes, order, starts, chosen, around, layout, shown, steps, scratch, proposals
):
    offsets = layout.offsets
    counts = np.zeros(offsets[-1], np.int64)
    first, stop = np.int64(-1), np.int64(-1)
    for g in chosen:
        if around.first[g] != first or around.stop[g] != stop:
            first, stop = around.first[g], around.stop[g]
            counts[:] = 0
            for at in range(starts[first], starts[stop]):
                for j in range(offsets.shape[0] - 1):
                    counts[offsets[j] + codes[order[at], j]] += 1
        _propose_one(counts, g, starts[g + 1] - starts[g], around, layout, shown, steps, scratch, proposals, g)


@njit(nogil=True, cache=True)
def _propose_counted(  # type: ignore[no-untyped-def]
    counts, chosen, sizes, around, layout, shown, steps, scratch, proposals
):
    for row in range(chosen.shape[0]):
        g = chosen[row]
        _propose_one(counts[row], g, sizes[g], around, layout, shown, steps, scratch, proposals, row)


@njit(**INSIDE)
def _propose_one(  # type: ignore[no-untyped-def]
    counts, g, size, around, layout, shown, steps, scratch, proposals, row
):
    """Write what group g proposes to a row of the proposals."""
    offsets, own, ranked, typical = layout.offsets, scratch.counts, scratch.ranked, proposals.typical[row]
    n_columns = offsets.shape[0] - 1
    n, bits = np.int64(0), np.int64(0)
    for j in range(n_columns):
        start, n_codes, place = offsets[j], offsets[j + 1] - offsets[j], around.place[g, j]
        scratch.totals[j] = 0
        for code in range(n_codes):
            own[start + code] = counts[start + code] if around.holds[place + code] else 0
            scratch.totals[j] += own[start + code]
        if scratch.totals[j] == 0:  # all that are around were set aside elsewhere
            for code in range(n_codes):
                own[start + code] = counts[start + code]
                scratch.totals[j] += own[start + code]
        turn = np.uint64(g - around.first[g]) * steps[j] + (steps[j] >> np.uint64(1))
        dealt = _dealt(own, start, n_codes, layout.is_category[j], shown.may_show, size, turn, scratch.order)
        typical[j] = dealt if dealt >= 0 else shown.fallback[j]
        bits += _bits_of(own, scratch.totals[j], start, typical[j], shown.own)
        if layout.is_category[j] or typical[j] < 0 or typical[j] == layout.missing[j]:
            n = _other_categories(own, start, n_codes, shown.may_show, typical[j], ranked, n, j)
        else:
            n = _neighbors(own, layout, shown.run, scratch.centre, typical[j], ranked, n, j)
    needed = _bits(np.int64(1), _RARE * size)
    proposals.is_rare[row] = bits >= needed
    n_around, n = _list_changes(ranked, n, scratch.changes)
    for at in range(n):
        scratch.bits[at] = bits
        for part in (0, 2):
            j = scratch.changes[at, part]
            if j >= 0:
                start, total = offsets[j], scratch.totals[j]
                scratch.bits[at] += _bits_of(own, total, start, scratch.changes[at, part + 1], shown.own)
                scratch.bits[at] -= _bits_of(own, total, start, typical[j], shown.own)
    proposals.n_around[row] = _write_changes(scratch.changes, scratch.bits, n_around, n, needed, proposals.changes[row])


@njit(**INSIDE)
def _dealt(counts, start, n_codes, is_category, may_show, size, turn, order):  # type: ignore[no-untyped-def]
    """Return the code that a group gets in one column, -1 where none may be shown.

    `turn` is a number below 2^64 that is spread evenly over the groups of the same surroundings.
    """
    n, total = np.int64(0), np.int64(0)
    for code in range(n_codes):
        if counts[start + code] > 0 and may_show[start + code]:
            place = n
            while is_category and place > 0 and counts[start + order[place - 1]] < counts[start + code]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = code
            n += 1
            total += counts[start + code]
    if n == 0:
        return np.int64(-1)
    n_runs = max(np.int64(1), total // size)
    run = np.int64(((turn >> np.uint64(32)) * np.uint64(n_runs)) >> np.uint64(32))
    low, high = run * total // n_runs, (run + 1) * total // n_runs
    middle = (low + high - 1) // 2
    best, most, passed = np.int64(-1), np.int64(0), np.int64(0)
    for at in range(n):
        until = passed + counts[start + order[at]]
        inside = min(until, high) - max(passed, low)
        if is_category and inside > most:
            best, most = order[at], inside
        elif not is_category and passed <= middle < until:
            best = order[at]
        passed = until
    return best


@njit(**INSIDE)
def _bits_of(counts, total, start, code, own):  # type: ignore[no-untyped-def]
    """Return how rare the published value of a code is around a group; as rare as one record's where nobody has it."""
    place = own[start + code] if code >= 0 else -1
    return _bits(max(np.int64(1), counts[start + place] if place >= 0 else np.int64(0)), max(np.int64(1), total))


@njit(nogil=True, cache=True)
def _bits(n, total):  # type: ignore[no-untyped-def]
    """Return the logarithm of total / n to the base 2, in parts of 256: of whole numbers, so that it is exact."""
    ratio = (np.int64(total) << 20) // n
    exponent = np.int64(0)
    while ratio >> (exponent + 1) > 0:
        exponent += 1
    return (exponent - 20) * 256 + ((ratio << 8) >> exponent) - 256


@njit(**INSIDE)
def _insert(ranked, n, new_cost, new_column, new_code):  # type: ignore[no-untyped-def]
    """Put a change among the others in rising order of cost; of equal ones the earlier stays first."""
    cost, column, code = ranked
    at = n
    while at > 0 and cost[at - 1] > new_cost:
        cost[at], column[at], code[at] = cost[at - 1], column[at - 1], code[at - 1]
        at -= 1
    cost[at], column[at], code[at] = new_cost, new_column, new_code
    return n + 1


@njit(**INSIDE)
def _other_categories(counts, start, n_codes, may_show, own, ranked, n, j):  # type: ignore[no-untyped-def]
    """Propose the two most frequent other codes around the group, and two that do not occur there."""
    known = np.int64(-1)
    for _ in range(2):
        best, most = np.int64(-1), np.int64(0)
        for other in range(n_codes):
            if other != own and other != known and may_show[start + other] and counts[start + other] > most:
                best, most = np.int64(other), counts[start + other]
        if best >= 0:
            n = _insert(ranked, n, 1.0, j, best)
            known = best
    n_outside = 0
    for other in range(n_codes):
        if n_outside < 2 and counts[start + other] == 0 and other != own and may_show[start + other]:
            n = _insert(ranked, n, 1.0 + _OUTSIDE, j, other)
            n_outside += 1
    return n


@njit(**INSIDE)
def _neighbors(counts, layout, run, centre, own, ranked, n, j):  # type: ignore[no-untyped-def]
    """Propose the nearest other values around the group on both sides, and the nearest that do not occur there."""
    start, absent = layout.offsets[j], layout.missing[j]
    n_codes = layout.offsets[j + 1] - start
    for step in (-1, 1):
        is_found_inside = is_found_outside = False
        at = own + step
        while 0 <= at < n_codes and at != absent and not is_found_inside:
            if run[start + at] != run[start + own]:
                distance = centre[start + at] - centre[start + own]
                if counts[start + at] > 0:
                    n = _insert(ranked, n, distance * distance, j, at)
                    is_found_inside = True
                elif not is_found_outside:
                    n = _insert(ranked, n, distance * distance + _OUTSIDE, j, at)
                    is_found_outside = True
            at += step
    return n


@njit(**INSIDE)
def _list_changes(ranked, n, changes):  # type: ignore[no-untyped-def]
    """List single changes, then pairs of the nearest, then what does not occur around the group."""
    column, code = ranked.column, ranked.code
    n_inside = np.int64(0)
    while n_inside < n and ranked.cost[n_inside] < _OUTSIDE:
        n_inside += 1
    changes[:] = -1
    at = np.int64(0)
    for i in range(n_inside):
        changes[at, 0], changes[at, 1] = column[i], code[i]
        at += 1
    for i in range(1, _N_COMBINED):
        for other in range(i):
            if i < n_inside and column[i] != column[other]:
                changes[at, 0], changes[at, 1] = column[other], code[other]
                changes[at, 2], changes[at, 3] = column[i], code[i]
                at += 1
    n_around = at
    for i in range(n_inside, n):
        changes[at, 0], changes[at, 1] = column[i], code[i]
        at += 1
    return n_around, at


@njit(**INSIDE)
def _write_changes(listed, bits, n_around, n, needed, changes):  # type: ignore[no-untyped-def]
    """Write rare changes, the nearest first, then others, the rarest first, then what does not occur around the group.

    Return how many come before the last kind.
    """
    at = np.int64(0)
    for i in range(n_around):
        if bits[i] >= needed and at < changes.shape[0]:
            _copy(listed, i, changes, at)
            at += 1
    while at < changes.shape[0]:
        best = np.int64(-1)
        for i in range(n_around):
            if bits[i] < needed and (best < 0 or bits[i] > bits[best]):
                best = np.int64(i)
        if best < 0:
            break
        _copy(listed, best, changes, at)
        bits[best] = needed  # it is written
        at += 1
    n_written = at
    for i in range(n_around, n):
        if at < changes.shape[0]:
            _copy(listed, i, changes, at)
            at += 1
    return n_written


@njit(**INSIDE)
def _copy(listed, i, changes, at):  # type: ignore[no-untyped-def]
    """Copy a change, number by number: numba compiles two seconds for what the assignment of rows could raise."""
    for part in range(changes.shape[1]):
        changes[at, part] = listed[i, part]
