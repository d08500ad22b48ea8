# SPDX-License-Identifier: Apache-2.0
"""Make groups diverse in several sensitive columns at once, for tables that release those columns in one row.

``bucketize`` starts from groups that are diverse in one column. :func:`separate_equal` exchanges records between
groups until nearly all are diverse in every column. :func:`join_unsafe` joins the others: first in small unions of
groups that help each other, then what is left in one union with the groups that help it most.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from sfumato.anatomize.kernels import GroupedRecords, best_partner, excess_of, exchange, find_clashing
from sfumato.grouping import sort_groups

_N_TRIES = 64  # records looked at for an exchange, per record that clashes and sweep
_MOST_SWEEPS = 48
_MOST_IN_VAIN = 4  # sweeps after which no fewer records clash
_N_PARTNERS = 256  # groups looked at for a union, of the unsafe and of the safe ones
_MOST_JOINED = 8  # a union of more than so many times l records waits for the last one


def separate_equal(
    codes: NDArray[np.int32], group: NDArray[np.int64], ls: NDArray[np.int64], random: np.random.Generator
) -> None:
    """Exchange records between groups, in place, until few groups have a value too often in some column.

    An exchange is made only where fewer of the two groups' values are too frequent after it than before.
    """
    n_records = len(group)
    order, starts = sort_groups(group, int(group.max()) + 1)
    of_place = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    grouped = GroupedRecords(codes, order, starts, of_place, ls)
    clashing = find_clashing(grouped)
    fewest, n_in_vain = len(clashing), 0
    for _ in range(_MOST_SWEEPS):
        if not len(clashing) or n_in_vain == _MOST_IN_VAIN:
            break
        first_tries = random.integers(0, n_records, size=len(clashing))
        step = int(random.integers(1, max(2, n_records)))
        exchange(grouped, clashing, first_tries, step, _N_TRIES)
        clashing = find_clashing(grouped)
        n_in_vain = 0 if len(clashing) < fewest else n_in_vain + 1
        fewest = min(fewest, len(clashing))
    group[order] = of_place


def join_unsafe(
    codes: NDArray[np.int32], group: NDArray[np.int64], ls: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Join every group in which a value is above 1/l with others until none is; return the groups renumbered.

    Joining all groups ends it in any case, since no value has more than 1/l of all records.
    """
    order, starts = sort_groups(group, int(group.max()) + 1)
    members = {g: order[starts[g] : starts[g + 1]] for g in _unsafe(codes, group, ls).tolist()}
    if not members:
        return group
    joined = group.copy()
    safe = np.setdiff1d(np.arange(len(starts) - 1), list(members))
    is_safe = np.zeros(len(starts) - 1, np.bool_)
    is_safe[safe] = True
    waiting = dict(members)  # unions that are not safe yet, by the group that gives them its number
    smallest = [(len(records), g) for g, records in waiting.items()]
    heapq.heapify(smallest)
    names, late = np.array(list(waiting)), []
    while waiting:
        _, own = heapq.heappop(smallest)
        if own not in waiting:  # it is part of another union
            continue
        records = waiting.pop(own)
        if 2 * len(waiting) < len(names):
            names = np.array(list(waiting), np.int64)
        others = [g for g in _some(names, random) if g in waiting]
        helpers = [g for g in _some(safe, random) if is_safe[g]]
        groups = [waiting[g] for g in others] + [order[starts[g] : starts[g + 1]] for g in helpers]
        partner = _partner(codes, records, groups, ls)
        if partner is None:
            late.append(records)
            continue
        if partner < len(others):
            waiting.pop(others[partner])
        else:
            is_safe[helpers[partner - len(others)]] = False
        records = np.concatenate([records, groups[partner]])
        joined[records] = own
        if excess_of(codes, records, ls) > 0:
            waiting[own] = records
            heapq.heappush(smallest, (len(records), own))
    if late:
        _join_the_last(codes, joined, np.concatenate(late), ls)
    return np.unique(joined, return_inverse=True)[1].astype(np.int64)


def _unsafe(codes: NDArray[np.int32], group: NDArray[np.int64], ls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the groups in which a value of some column is above 1/l."""
    sizes = np.bincount(group)
    is_unsafe = np.zeros(len(sizes), np.bool_)
    for column, l in zip(codes.T, ls.tolist(), strict=True):  # noqa: E741
        n_values = int(column.max()) + 1
        pairs, counts = np.unique(group * n_values + column, return_counts=True)
        of_group = pairs // n_values
        is_unsafe[of_group[counts * l > sizes[of_group]]] = True
    return np.flatnonzero(is_unsafe)


def _some(groups: NDArray[np.int64], random: np.random.Generator) -> list[int]:
    """Return some of the groups, each once: all of them where they are few."""
    if len(groups) <= _N_PARTNERS:
        return list(random.permutation(groups).tolist())
    return list(dict.fromkeys(groups[random.integers(0, len(groups), _N_PARTNERS)].tolist()))


def _partner(
    codes: NDArray[np.int32], records: NDArray[np.int64], groups: list[NDArray[np.int64]], ls: NDArray[np.int64]
) -> int | None:
    """Return the group that helps some records most; None if every one makes more values too frequent."""
    if not groups or len(records) >= _MOST_JOINED * int(ls.max()):
        return None
    starts = np.concatenate(([0], np.cumsum([len(own) for own in groups])))
    found = int(best_partner(codes, records, np.concatenate(groups), starts, ls))
    return None if found < 0 else found


def _join_the_last(
    codes: NDArray[np.int32], group: NDArray[np.int64], records: NDArray[np.int64], ls: NDArray[np.int64]
) -> None:
    """Join some records with the groups that help them most, in place, until no value of the union is above 1/l."""
    is_in = np.zeros(len(group), np.bool_)
    is_in[records] = True
    own = int(group[records[0]])
    while True:
        group[is_in] = own
        n_in = int(is_in.sum())
        weight = np.zeros(len(group))  # of every record, by how much the union gains from it
        most_missing = 0
        for column, l in zip(codes.T, ls.tolist(), strict=True):  # noqa: E741
            counts = np.bincount(column[is_in], minlength=int(column.max()) + 1)
            over = counts * l - n_in
            most_missing = max(most_missing, int(over.max()))
            weight += int((over > 0).sum()) - l * (over > 0)[column]
        if most_missing <= 0:
            return
        gain = np.bincount(group, np.where(is_in, 0.0, weight))
        gain[own] = -np.inf
        sizes = np.bincount(group)
        gain[sizes == 0] = -np.inf
        mean_size = max(1.0, len(group) / np.count_nonzero(sizes))
        n_more = max(1, min(int(np.isfinite(gain).sum()), int(most_missing / (2 * mean_size))))
        best = np.argsort(-gain, kind="stable")[:n_more]
        is_in |= np.isin(group, best)
