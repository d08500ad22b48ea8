# SPDX-License-Identifier: Apache-2.0
"""Form groups in which no sensitive value is above 1/l of the group.

Arrays in, arrays out: ``codes`` has one row per record and one column per sensitive column, each a number from 0.
The anatomizer calls :func:`plan_suppression` before any work and :func:`assign_groups` for the groups. Xiao and Tao's
rule takes one record from each of the l largest buckets; the random rule takes any l buckets that leave enough for
all later groups. Neither looks at an identifying column.

With several sensitive columns, groups that are diverse in the first are made diverse in all of them: records
are exchanged between groups, and a group that stays unsafe is joined with others, in the worst case with all.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.anatomize.kernels import draw_at_random, draw_from_largest, hand_out
from sfumato.grouping import sort_groups

Assignment = Literal["largest", "random"]
Codes = NDArray[np.int32]
_N_TRIES = 64  # records looked at for an exchange, per record that clashes and sweep
_N_SWEEPS = 4


def largest_l(codes: Codes) -> int:
    """Return the largest l for which groups can be made of all records; 1: a value has more than half of them.

    >>> largest_l(np.array([[0], [0], [1], [2], [3]], np.int32))
    2
    """
    most = max(int(np.bincount(column).max()) for column in codes.T)
    return len(codes) // most


def plan_suppression(codes: Codes, l: int, random: np.random.Generator) -> NDArray[np.int64]:  # noqa: E741
    """Choose the records that must stay out so that the rest can be divided into l-diverse groups.

    With one sensitive column no choice leaves out fewer. A value that is too frequent loses records at random until
    no value has more than 1/l of what is left. Returns the positions of the records that stay, all of them if
    possible and none if no table of these values is l-diverse.
    """
    rows = np.arange(len(codes))
    while len(rows):
        limit = len(rows) // l
        stays = np.ones(len(rows), np.bool_)
        for column in codes.T:
            values = column[rows]
            counts = np.bincount(values[stays])
            for value in np.flatnonzero(counts > limit):
                holders = np.flatnonzero(stays & (values == value))
                stays[random.permutation(holders)[limit:]] = False
        if stays.all():
            return rows
        rows = rows[stays]
    return rows


def assign_groups(
    codes: Codes,
    l: int,  # noqa: E741
    random: np.random.Generator,
    assignment: Assignment = "largest",
) -> NDArray[np.int64]:
    """Return the group of every record; groups are numbered from 0 in no telling order.

    Parameters
    ----------
    codes : ndarray of int32, shape (records, sensitive columns)
        No value may have more than 1/l of the records of its column; see :func:`plan_suppression`.
    l : int
    random : numpy.random.Generator
    assignment : {"largest", "random"}

    Notes
    -----
    One sensitive column: floor(n / l) groups of l records with distinct values, and the fewer than l records that
    are left join groups that do not have their value. Several: the groups of the most uneven column; records whose
    values clash in another column are exchanged with records of other groups, and groups that no exchange helps are
    joined with others, since groups that are l-diverse stay so together.
    """
    peaks = [int(np.bincount(column).max()) for column in codes.T]
    first = int(np.argmax(peaks))
    group = _by_one_column(np.ascontiguousarray(codes[:, first]), l, random, assignment)
    if codes.shape[1] > 1:
        separate_equal(np.ascontiguousarray(codes), group, random)
        group = merge_unsafe(codes, group, l, random)
        group = random.permutation(int(group.max()) + 1)[group]
    return group


def _by_one_column(
    values: NDArray[np.int32],
    l: int,  # noqa: E741
    random: np.random.Generator,
    assignment: Assignment,
) -> NDArray[np.int64]:
    """Divide records by one column alone."""
    counts = np.bincount(values)
    n_groups = len(values) // l
    order = random.permutation(len(counts))  # ties between buckets are not broken by the order of the values
    if assignment == "largest":
        order = order[np.argsort(-counts[order], kind="stable")]
        drawn = draw_from_largest(counts[order], l, n_groups)
    else:
        drawn = draw_at_random(counts[order], l, n_groups, random.random(n_groups * l))
    bucket = np.empty(len(order), np.int32)
    bucket[order] = np.arange(len(order))
    of_record = bucket[values]
    names = random.permutation(n_groups)  # the number of a group says nothing about when it was made
    group = hand_out(of_record, random.random(len(drawn)), counts[order], drawn, names)
    return _place_the_rest(group, of_record, n_groups, random)


def _place_the_rest(
    group: NDArray[np.int64], bucket: NDArray[np.int32], n_groups: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Assign the remaining records, fewer than l, to random groups without their value.

    A value in c records is in at most c - 1 groups as long as one of them is left, and c is at most the number of
    groups, so that a group without the value always exists.
    """
    for record in np.flatnonzero(group < 0):
        has_value = np.zeros(n_groups, np.bool_)
        same = group[bucket == bucket[record]]
        has_value[same[same >= 0]] = True
        group[record] = random.choice(np.flatnonzero(~has_value))
    return group


def separate_equal(codes: NDArray[np.int32], group: NDArray[np.int64], random: np.random.Generator) -> None:
    """Exchange records between groups, in place, until few groups have a value twice in some column.

    An exchange is made only where the two groups together have fewer repetitions after it than before.
    """
    n_records = len(group)
    order, starts = sort_groups(group, int(group.max()) + 1)
    first_tries = random.integers(0, n_records, size=(_N_SWEEPS, n_records))
    steps = random.integers(1, max(2, n_records), size=_N_SWEEPS)
    exchange(codes, order, starts, first_tries, steps, _N_TRIES)
    group[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))


@njit(nogil=True, cache=True)
def exchange(
    codes: NDArray[np.int32],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    first_tries: NDArray[np.int64],
    steps: NDArray[np.int64],
    n_tries: int,
) -> None:
    """Exchange records in `order`, whose part from ``starts[g]`` to ``starts[g + 1]`` is group g."""
    n_records = order.shape[0]
    group_of_place = np.empty(n_records, np.int64)
    for g in range(starts.shape[0] - 1):
        group_of_place[starts[g] : starts[g + 1]] = g
    for sweep in range(first_tries.shape[0]):
        n_clashing = 0
        for place in range(n_records):
            here = group_of_place[place]
            clashes = _clashes(codes, order, starts, here, place, order[place])
            if clashes == 0:
                continue
            n_clashing += 1
            other = first_tries[sweep, place]
            for _ in range(n_tries):
                other = (other + steps[sweep]) % n_records
                there = group_of_place[other]
                if there == here:
                    continue
                before = clashes + _clashes(codes, order, starts, there, other, order[other])
                after = _clashes(codes, order, starts, here, place, order[other])
                if after < before:
                    after += _clashes(codes, order, starts, there, other, order[place])
                if after < before:
                    order[place], order[other] = order[other], order[place]
                    break
        if n_clashing == 0:
            return


@njit(nogil=True, cache=True)
def _clashes(codes, order, starts, group, place, record):  # type: ignore[no-untyped-def]
    """Count the values of a record that others of the group have, were the record at this place of it."""
    total = 0
    for i in range(starts[group], starts[group + 1]):
        if i != place:
            for j in range(codes.shape[1]):
                if codes[order[i], j] == codes[record, j]:
                    total += 1
    return total


def merge_unsafe(
    codes: NDArray[np.int32],
    group: NDArray[np.int64],
    l: int,  # noqa: E741
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """Join every group in which a value is above 1/l with others until none is; return the groups renumbered.

    Joining all groups ends it in any case, since no value has more than 1/l of all records.
    """
    order, starts = sort_groups(group, int(group.max()) + 1)
    unsafe = np.flatnonzero(~_are_safe(codes, group, l))
    if not len(unsafe):
        return group
    # Unsafe groups often help each other, so they are joined first; then safe ones help, in random order.
    helpers = random.permutation(np.setdiff1d(np.arange(len(starts) - 1), unsafe))
    merged = group.copy()
    counts = [np.zeros(int(column.max()) + 1, np.int64) for column in codes.T]
    joined: list[int] = []
    n_joined = 0
    for position, g in enumerate(np.concatenate([unsafe, helpers]).tolist()):
        if position >= len(unsafe) and not joined:
            break
        members = order[starts[g] : starts[g + 1]]
        joined.append(g)
        n_joined += len(members)
        for count, column in zip(counts, codes.T, strict=True):
            np.add.at(count, column[members], 1)
        if all(int(count.max()) * l <= n_joined for count in counts):
            for other in joined:
                merged[order[starts[other] : starts[other + 1]]] = joined[0]
            joined, n_joined = [], 0
            for count in counts:
                count[:] = 0
    for other in joined:
        merged[order[starts[other] : starts[other + 1]]] = joined[0]
    renumbered = np.unique(merged, return_inverse=True)[1].astype(np.int64)
    # If all helpers were not enough, groups that were joined before help the last ones, one by one.
    return merge_unsafe(codes, renumbered, l, random) if joined and renumbered.any() else renumbered


def _are_safe(codes: NDArray[np.int32], group: NDArray[np.int64], l: int) -> NDArray[np.bool_]:  # noqa: E741
    """Return, for every group, whether no value of any column is above 1/l of it."""
    sizes = np.bincount(group)
    safe = np.ones(len(sizes), np.bool_)
    for column in codes.T:
        n_values = int(column.max()) + 1
        pairs, counts = np.unique(group * n_values + column, return_counts=True)
        of_group = pairs // n_values
        safe[of_group[counts * l > sizes[of_group]]] = False
    return safe
