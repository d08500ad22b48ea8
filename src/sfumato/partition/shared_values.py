# SPDX-License-Identifier: Apache-2.0
"""Decide what may be published of each bin: values that several records share, or that no record has.

Bins say where a table is cut; a single person may have a bin to themselves. What leaves is taken from *runs* of
neighboring bins with at least `floor` records each. Everything is a function of how often each value occurs, so every
backend that agrees on the counts agrees on the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.round_numbers import number_between, smallest_step


@dataclass(frozen=True, eq=False)
class SharedValues:
    """The published value and ends of each bin of a column, without missing.

    Attributes
    ----------
    values : ndarray
        The value that is published for the bin: of its run, a value that at least `floor` records have, the most
        frequent; else one near the run's median that no record has; else one that several records have. For
        categories their own index.
    own : ndarray of int32
        The bin in which that value lies; -1 where no record has it.
    is_single : ndarray of bool
        Whether the bin holds one value only, and that value is published for it.
    is_common : ndarray of bool
        Whether at least `floor` records have a value of the bin alone. Categories that are not common are not named.
    low, high : ndarray
        Published ends of the bin's run.
    is_open : ndarray of bool, shape (2,)
        Whether the lowest and the highest end stand for values beyond them, which few records have.
    most_common : int
        The bin whose most frequent value most records have, the lowest on ties; 0 where there is none.
    floor : int
    free : ndarray
        A value in or beside the bin's run that no record has; where there is none, the next beyond all values.
    has_free : ndarray of bool
        Whether there is one in or beside the run.
    has_outside : bool
        Whether there is a value beyond all others.
    is_hidden : bool
        Whether nothing of an ordered column is published: fewer than `floor` records have a value, or there is none
        but what single records have.
    """

    values: NDArray[Any]
    own: NDArray[np.int32]
    is_single: NDArray[np.bool_]
    is_common: NDArray[np.bool_]
    low: NDArray[Any]
    high: NDArray[Any]
    is_open: NDArray[np.bool_]
    most_common: int
    floor: int
    free: NDArray[Any]
    has_free: NDArray[np.bool_]
    has_outside: bool = False
    is_hidden: bool = False


def share_categories(counts: NDArray[np.int64], floor: int) -> SharedValues:
    """Return which categories may be named: those that at least `floor` records have."""
    own = np.arange(len(counts), dtype=np.int64)
    return SharedValues(
        values=own,
        own=own.astype(np.int32),
        is_single=np.ones(len(own), np.bool_),
        is_common=counts >= floor,
        low=own,
        high=own,
        is_open=np.zeros(2, np.bool_),
        most_common=int(counts.argmax()) if len(counts) else 0,
        floor=floor,
        free=own,
        has_free=np.zeros(len(own), np.bool_),
    )


class InsideRun(NamedTuple):
    """Values within a run that several records have, or none; each None where there is no such value.

    Attributes
    ----------
    between : int or float or None
        A value near the run's median that no record has.
    first, last : int or float or None
        The lowest and the highest value that no single record has.
    """

    between: Any = None
    first: Any = None
    last: Any = None


@dataclass(frozen=True, eq=False)
class Run:
    """Neighboring bins that are published alike, as their values and counts describe them.

    Attributes
    ----------
    first_bin, stop_bin : int
    n_records : int
        How many records have a value of the run.
    low, high : int or float
        The smallest and the largest value.
    n_low, n_high : int
        How many records have these.
    mode, n_mode : int or float, int
        The most frequent value, the lowest on ties, and how many records have it.
    mode_bin : int
    inside : InsideRun
        Values within it that are nobody's alone.
    """

    first_bin: int
    stop_bin: int
    n_records: int
    low: Any
    high: Any
    n_low: int
    n_high: int
    mode: Any
    n_mode: int
    mode_bin: int
    inside: InsideRun


def share_numbers(
    distinct: NDArray[Any], counts: NDArray[np.int64], starts: NDArray[np.int64], floor: int, units: Sequence[int]
) -> SharedValues:
    """Return what may be published of the bins of numbers.

    Parameters
    ----------
    distinct : ndarray of int64 or float64
        The values that occur, rising.
    counts : ndarray of int64
        How many records have each.
    starts : ndarray of int64
        Where each bin begins in `distinct`.
    floor : int
        Fewest records of a run.
    units : sequence of int
        Units to round whole numbers to, falling; the last is the smallest step between two values. `OnGrid` for
        middles of intervals. Without any, only values that occur are published.

    Examples
    --------
    >>> from sfumato.partition.round_numbers import NUMBER_UNITS
    >>> ages, people = np.array([30, 31, 32, 90]), np.array([5, 6, 7, 1])
    >>> shared = share_numbers(ages, people, np.arange(4), 5, NUMBER_UNITS)
    >>> shared.values.tolist(), shared.own.tolist()
    ([30, 31, 32, 32], [0, 1, 2, 2])
    >>> shared.high.tolist(), shared.is_open.tolist()
    ([30, 31, 32, 32], [False, True])
    """
    stops = np.append(starts[1:], len(distinct))
    step = smallest_step(distinct, units)

    def describe(first_bin: int, stop_bin: int) -> Run:
        own = slice(int(starts[first_bin]), int(stops[stop_bin - 1]))
        return describe_run(
            distinct[own], counts[own], starts[first_bin:stop_bin] - own.start, first_bin, floor, units, step
        )

    n_modes = np.maximum.reduceat(counts, starts)
    runs = runs_of(np.add.reduceat(counts, starts), floor)
    return share_runs([describe(*run) for run in runs], starts == stops - 1, n_modes, floor, units, step)


def describe_run(
    values: NDArray[Any],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    first_bin: int,
    floor: int,
    units: Sequence[int],
    step: int,
) -> Run:
    """Describe a run, given its values, how many records have each, and where its bins start among them."""
    most = int(counts.argmax())
    mode_bin = first_bin + int(np.searchsorted(starts, most, side="right")) - 1
    inside = look_inside(values, counts, units, step) if len(values) > 1 else InsideRun()
    return Run(
        first_bin, first_bin + len(starts), int(counts.sum()), values[0], values[-1], int(counts[0]), int(counts[-1]),
        values[most], int(counts[most]), mode_bin, inside,
    )  # fmt: skip


def look_inside(values: NDArray[Any], counts: NDArray[np.int64], units: Sequence[int], step: int) -> InsideRun:
    """Find values within a run that no single record has, given its values, rising, and how many records have each."""
    room = _places_with_room(values, units, step)
    shared = values[counts > 1].tolist()
    found = shared[:1] + shared[-1:]
    for at in room[[0, -1]].tolist() if len(room) else []:
        free = number_between(values[at], values[at + 1], units, step)
        found += [] if free is None else [free]
    if not found:
        return InsideRun()
    return InsideRun(_between(values, counts, room, units, step), min(found), max(found))


def share_runs(
    runs: Sequence[Run],
    is_single: NDArray[np.bool_],
    n_modes: NDArray[np.int64],
    floor: int,
    units: Sequence[int],
    step: int,
) -> SharedValues:
    """Return what may be published of bins whose runs are described.

    Parameters
    ----------
    runs : sequence of Run
        From the lowest to the highest.
    is_single : ndarray of bool
        Whether each bin has one value only.
    n_modes : ndarray of int64
        How many records have the most frequent value of each bin.
    floor, units
        As of `share_numbers`.
    step : int
        As `smallest_step` found it.
    """
    dtype = np.asarray(runs[0].low).dtype
    values, own = _values_of_runs(runs, floor, units, step)
    lows, highs, is_open = _ends_of_runs(runs, values, floor, units, step)
    free = _free_values(runs, units, step)
    outside = [_outside(runs, at, step) for at in range(len(runs))]
    sizes = np.array([run.stop_bin - run.first_bin for run in runs])
    run_of = np.repeat(np.arange(len(runs)), sizes)
    place = np.array(own, np.int32)[run_of]
    return SharedValues(
        values=np.array(values, dtype)[run_of],
        own=place,
        is_single=is_single & (place == np.arange(len(run_of))),
        is_common=is_single & (n_modes >= floor),
        low=np.array(lows, dtype)[run_of],
        high=np.array(highs, dtype)[run_of],
        is_open=np.array(is_open),
        most_common=int(n_modes.argmax()),
        floor=floor,
        free=np.array([_first_known(own, beyond) for own, beyond in zip(free, outside, strict=True)], dtype)[run_of],
        has_free=np.array([value is not None for value in free])[run_of],
        has_outside=None not in outside,
        is_hidden=runs[0].n_records < floor or any(map(partial(_shows_one_record, floor), runs, own)),
    )


def _shows_one_record(floor: int, run: Run, own: int) -> bool:
    """Return True where nothing but a value of a single record is left for a run."""
    return own == run.mode_bin and run.n_mode == 1 < floor


def runs_of(n_records: NDArray[np.int64], floor: int) -> list[tuple[int, int]]:
    """Return the first and the stopping bin of each run: from the lowest on, a run takes in bins until it has enough.

    >>> runs_of(np.array([5, 1, 2, 9, 1]), 3)
    [(0, 1), (1, 3), (3, 5)]
    """
    starts, n_own = [0], 0
    for at, n in enumerate(n_records.tolist()):
        if n_own >= floor:
            starts.append(at)
            n_own = 0
        n_own += n
    if n_own < floor and len(starts) > 1:
        starts.pop()  # what is left over joins the run before it
    return list(pairwise([*starts, len(n_records)]))


def _places_with_room(values: NDArray[Any], units: Sequence[int], step: int) -> NDArray[np.intp]:
    """Return the places of values that are followed by another with room between the two."""
    below, above = values[:-1], values[1:]
    if not units:
        return np.zeros(0, np.intp)
    if values.dtype.kind != "f":
        return np.flatnonzero((above.view(np.uint64) - below.view(np.uint64)) >= 2 * step)
    return np.flatnonzero(above - below >= 2 * step if step else above > np.nextafter(below, np.inf))


def _between(
    values: NDArray[Any], counts: NDArray[np.int64], room: NDArray[np.intp], units: Sequence[int], step: int
) -> Any:
    """Return a value that no record has, where the numbers of records on both sides differ least.

    On ties it lies where two values are nearest each other, and then at the lowest such place.
    """
    if not len(room):
        return None
    n_below = np.cumsum(counts)
    imbalance = np.abs(2 * n_below[room] - n_below[-1])
    ties = room[imbalance == imbalance.min()]
    below, above = values[ties], values[ties + 1]
    width = above / 2 - below / 2 if values.dtype.kind == "f" else above.view(np.uint64) - below.view(np.uint64)
    at = ties[width.argmin()]
    return number_between(values[at], values[at + 1], units, step)


def _values_of_runs(runs: Sequence[Run], floor: int, units: Sequence[int], step: int) -> tuple[list[Any], list[int]]:
    """Return the value that is published for each run, and the bin it lies in (-1: no record has it)."""
    values: list[Any] = []
    own: list[int] = []
    for run in runs:
        if run.n_mode >= floor or (run.inside.between is None and run.n_mode > 1):
            values.append(run.mode)
            own.append(run.mode_bin)
        else:
            values.append(run.inside.between)
            own.append(-1)
    known = [at for at, value in enumerate(values) if value is not None]
    for at in sorted(set(range(len(runs))) - set(known)):
        values[at], own[at] = _nearest_value(runs, at, known, values, own, units, step)
    return values, own


def _nearest_value(
    runs: Sequence[Run],
    at: int,
    known: Sequence[int],
    values: Sequence[Any],
    own: Sequence[int],
    units: Sequence[int],
    step: int,
) -> tuple[Any, int]:
    """Return what stands for a run all of whose values one record each has, without room between them."""
    run = runs[at]
    beside = _beside(runs, at, units, step)
    if beside is not None:
        return beside, -1
    if known:
        nearest = min(known, key=lambda place: (abs(place - at), place))
        return values[nearest], own[nearest]
    # Every value is one record's and they follow without gaps: the next one outside is nobody's.
    outside = _outside(runs, at, step)
    return (run.mode, run.mode_bin) if outside is None else (outside, -1)


def _outside(runs: Sequence[Run], at: int, step: int) -> int | None:
    """Return the next value beyond all others, at the end that is nearer to a run; None for fractions."""
    if not step:
        return None
    is_upper = 2 * at >= len(runs) - 1 or 0 <= runs[0].low < step  # amounts are not made negative
    outside = int(runs[-1].high) + step if is_upper else int(runs[0].low) - step
    info = np.iinfo(np.int64)
    return outside if info.min <= outside <= info.max else None


def _first_known(*values: Any) -> Any:
    """Return the first value that is not None; 0 without any."""
    return next((value for value in values if value is not None), 0)


def _free_values(runs: Sequence[Run], units: Sequence[int], step: int) -> list[Any]:
    """Return for each run a value in it or beside it that no record has; None where there is no room."""
    return [
        _beside(runs, at, units, step) if run.inside.between is None else run.inside.between
        for at, run in enumerate(runs)
    ]


def _beside(runs: Sequence[Run], at: int, units: Sequence[int], step: int) -> Any:
    """Return the value next to a run that no record has, below it or else above it; None where other runs touch it."""
    if at > 0:
        free = number_between(runs[at - 1].high, runs[at].low, units, step)
        if free is not None:
            return int(runs[at].low) - step if step else free
    if at + 1 < len(runs):
        free = number_between(runs[at].high, runs[at + 1].low, units, step)
        if free is not None:
            return int(runs[at].high) + step if step else free
    return None


def _ends_of_runs(
    runs: Sequence[Run], values: Sequence[Any], floor: int, units: Sequence[int], step: int
) -> tuple[list[Any], list[Any], tuple[bool, bool]]:
    """Return the published ends of each run: common values, or what lies between two runs; the outermost are open."""
    lows = [run.low for run in runs]
    highs = [run.high for run in runs]
    for at in range(len(runs) - 1):
        below, above = runs[at], runs[at + 1]
        cut = number_between(below.high, above.low, units, step)
        if cut is None:  # the values touch: the ends move on to values that no single record has
            further = above.low if above.n_low > 1 else above.inside.first
            if below.n_high == 1 and further is not None:
                highs[at] = further
            further = below.high if below.n_high > 1 else below.inside.last
            if above.n_low == 1 and further is not None:
                lows[at + 1] = further
            continue
        if below.n_high < floor:
            highs[at] = cut
        if above.n_low < floor:
            lows[at + 1] = cut + step if step and cut + step < above.low else cut
    is_open = (runs[0].n_low < floor, runs[-1].n_high < floor)
    if is_open[0]:
        lows[0] = min(values[0], highs[0])
    if is_open[1]:
        highs[-1] = max(values[-1], lows[-1])
    return lows, highs, is_open
