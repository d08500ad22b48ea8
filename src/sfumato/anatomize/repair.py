# SPDX-License-Identifier: Apache-2.0
"""Make groups that are diverse in one sensitive column diverse in all of them.

``bucketize`` calls this where there are several sensitive columns. First records are exchanged between groups; a
group that stays unsafe is joined with others, in the worst case with all.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.anatomize.kernels import sort_groups

_N_TRIES = 64  # records looked at for an exchange, per record that clashes and sweep
_N_SWEEPS = 4


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
    """Join every group in which a value is above 1/l with others until none is; return the groups numbered anew.

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
    # Where not even all the helpers were enough, those that were joined before help the last ones, one by one.
    return merge_unsafe(codes, renumbered, l, random) if joined and renumbered.any() else renumbered


def _are_safe(codes: NDArray[np.int32], group: NDArray[np.int64], l: int) -> NDArray[np.bool_]:  # noqa: E741
    """Say of every group whether no value of any column is above 1/l of it."""
    sizes = np.bincount(group)
    safe = np.ones(len(sizes), np.bool_)
    for column in codes.T:
        n_values = int(column.max()) + 1
        pairs, counts = np.unique(group * n_values + column, return_counts=True)
        of_group = pairs // n_values
        safe[of_group[counts * l > sizes[of_group]]] = False
    return safe
