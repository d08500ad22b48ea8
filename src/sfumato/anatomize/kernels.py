# SPDX-License-Identifier: Apache-2.0
"""The loops behind anatomization and pruning; each has a reference implementation in ``tests/twins``.

Arrays in, arrays out. ``bucketize``, ``joint_groups`` and ``prune`` call these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def draw_from_largest(counts: NDArray[np.int64], l: int, n_groups: int) -> NDArray[np.int64]:  # noqa: E741
    """Draw one record from each of the l largest buckets, `n_groups` times; return the buckets, l per group.

    `counts` fall. Of buckets of the same size the last ones are taken: then the counts still fall afterwards, and no
    bucket ever has to be moved::

        9 7 [5 5 5 5] 2     l = 4: the first two, and the last two of those with 5
        8 6 [5 5 4 4] 2
    """
    left = counts.copy()
    drawn = np.empty(n_groups * l, np.int64)
    for g in range(n_groups):
        smallest = left[l - 1]
        low, high = 0, l - 1  # first bucket of that size
        while low < high:
            middle = (low + high) // 2
            if left[middle] > smallest:
                low = middle + 1
            else:
                high = middle
        first = low
        low, high = l, left.shape[0]  # one past the last bucket of that size
        while low < high:
            middle = (low + high) // 2
            if left[middle] < smallest:
                high = middle
            else:
                low = middle + 1
        stop = low
        for i in range(first):
            left[i] -= 1
            drawn[g * l + i] = i
        for i in range(first, l):
            bucket = stop - l + i
            left[bucket] -= 1
            drawn[g * l + i] = bucket
    return drawn


@njit(nogil=True, cache=True)
def draw_at_random(
    counts: NDArray[np.int64],
    l: int,  # noqa: E741
    n_groups: int,
    uniform: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Draw l distinct buckets at random, weighted by their records, `n_groups` times, so that all groups succeed.

    With m groups still to make, a bucket with m or more records is *full*: each group it is not in costs one of the
    records to spare. There are ``sum(min(count, m)) - l * m`` of those, so at most so many full buckets may be left
    out; the others are taken first. A full bucket stays full, and there are never more than 2 * l.
    """
    n_buckets = counts.shape[0]
    left = counts.copy()
    weight = left.copy()  # that of buckets already in the group is 0
    tree = _sums(weight)
    n_left = counts.sum()
    to_spare = n_left - l * n_groups  # no count is above the number of groups, so that the minimum is the count
    head = np.full(n_groups + 1, -1, np.int64)  # buckets that are not full, listed by their count
    after = np.full(n_buckets, -1, np.int64)
    before = np.full(n_buckets, -1, np.int64)
    full = np.empty(2 * l + 1, np.int64)  # rising
    n_full = 0
    is_full = np.zeros(n_buckets, np.bool_)
    for b in range(n_buckets):
        if left[b] >= n_groups:
            full[n_full] = b
            n_full += 1
            is_full[b] = True
        else:
            _link(head, after, before, b, left[b])
    drawn = np.empty(n_groups * l, np.int64)
    waiting = np.empty(2 * l + 1, np.int64)
    for g in range(n_groups):
        n_needed = max(0, n_full - to_spare)
        waiting[:n_full] = full[:n_full]
        n_waiting = n_full
        for i in range(l):
            u = uniform[g * l + i]
            if i < n_needed:
                place = min(int(u * n_waiting), n_waiting - 1)
                bucket = waiting[place]
                n_waiting -= 1
                waiting[place:n_waiting] = waiting[place + 1 : n_waiting + 1].copy()
            else:
                bucket = _find(tree, min(int(u * n_left), n_left - 1))
            drawn[g * l + i] = bucket
            n_left -= weight[bucket]
            _add(tree, bucket, -weight[bucket])
            weight[bucket] = 0
        n_left_out = n_full
        for i in range(l):
            bucket = drawn[g * l + i]
            if is_full[bucket]:
                n_left_out -= 1
            else:
                _unlink(head, after, before, bucket, left[bucket])
                _link(head, after, before, bucket, left[bucket] - 1)
            left[bucket] -= 1
            weight[bucket] = left[bucket]
            n_left += left[bucket]
            _add(tree, bucket, left[bucket])
        to_spare -= n_left_out
        m = n_groups - g - 1
        while m > 0 and head[m] >= 0:
            bucket = head[m]
            _unlink(head, after, before, bucket, m)
            is_full[bucket] = True
            place = n_full
            while place > 0 and full[place - 1] > bucket:
                full[place] = full[place - 1]
                place -= 1
            full[place] = bucket
            n_full += 1
    return drawn


@njit(nogil=True, cache=True)
def _link(head, after, before, bucket, count):  # type: ignore[no-untyped-def]
    after[bucket] = head[count]
    before[bucket] = -1
    if head[count] >= 0:
        before[head[count]] = bucket
    head[count] = bucket


@njit(nogil=True, cache=True)
def _unlink(head, after, before, bucket, count):  # type: ignore[no-untyped-def]
    if before[bucket] >= 0:
        after[before[bucket]] = after[bucket]
    else:
        head[count] = after[bucket]
    if after[bucket] >= 0:
        before[after[bucket]] = before[bucket]


@njit(nogil=True, cache=True)
def _sums(weight):  # type: ignore[no-untyped-def]
    """Return a tree of partial sums (Fenwick's), in which adding and finding take a step per bit."""
    tree = np.zeros(weight.shape[0] + 1, np.int64)
    for i in range(1, tree.shape[0]):
        tree[i] += weight[i - 1]
        parent = i + (i & -i)
        if parent < tree.shape[0]:
            tree[parent] += tree[i]
    return tree


@njit(nogil=True, cache=True)
def _add(tree, bucket, change):  # type: ignore[no-untyped-def]
    i = bucket + 1
    while i < tree.shape[0]:
        tree[i] += change
        i += i & -i


@njit(nogil=True, cache=True)
def _find(tree, target):  # type: ignore[no-untyped-def]
    """Return the first bucket up to which the sum is above the target."""
    step = 1
    while step * 2 < tree.shape[0]:
        step *= 2
    place = 0
    while step > 0:
        if place + step < tree.shape[0] and tree[place + step] <= target:
            place += step
            target -= tree[place]
        step //= 2
    return place


@njit(nogil=True, cache=True)
def hand_out(
    bucket: NDArray[np.int32],
    uniform: NDArray[np.float64],
    counts: NDArray[np.int64],
    drawn: NDArray[np.int64],
    names: NDArray[np.int64],
    window: int,
) -> NDArray[np.int64]:
    """Give every drawing of a bucket any record of it that is still there; return each record's group, or -1.

    `bucket` is that of each record, `counts` the records of each bucket, `drawn` the buckets that were drawn, as many
    for each group of `names`, and `uniform` a random number for each drawing. Only the first `window` records of a
    bucket that are still there are drawn from.
    """
    stop = np.cumsum(counts)
    start = stop - counts
    place = start.copy()
    by_bucket = np.empty_like(bucket)  # a type that holds a bucket of every record holds the records
    for i in range(bucket.shape[0]):
        by_bucket[place[bucket[i]]] = i
        place[bucket[i]] += 1
    group = np.full(bucket.shape[0], -1, np.int64)
    l = drawn.shape[0] // names.shape[0]  # noqa: E741
    d = 0
    for name in names:
        for _ in range(l):
            b = drawn[d]
            any_left = start[b] + int(uniform[d] * min(stop[b] - start[b], window))
            group[by_bucket[any_left]] = name
            by_bucket[any_left] = by_bucket[start[b]]  # those still there stay together
            start[b] += 1
            d += 1
    return group


class GroupedRecords(NamedTuple):
    """Records in groups, with a code per sensitive column.

    Attributes
    ----------
    codes : ndarray of int32, shape (records, columns)
    order : ndarray of int64
        The records, group after group.
    starts : ndarray of int64
        The part of `order` from ``starts[g]`` to ``starts[g + 1]`` is group g.
    of_place : ndarray of int64
        The group of each place of `order`.
    ls : ndarray of int64
        The l of each column.
    """

    codes: NDArray[np.int32]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    of_place: NDArray[np.int64]
    ls: NDArray[np.int64]


@njit(nogil=True, cache=True)
def find_clashing(grouped: GroupedRecords) -> NDArray[np.int64]:
    """Return the places whose record has a value that its group has too often."""
    n_records = grouped.order.shape[0]
    found = np.empty(n_records, np.int64)
    n_found = 0
    for place in range(n_records):
        if _clashes(grouped, grouped.of_place[place], place, grouped.order[place]) > 0:
            found[n_found] = place
            n_found += 1
    return found[:n_found].copy()


@njit(nogil=True, cache=True)
def exchange(
    grouped: GroupedRecords, clashing: NDArray[np.int64], first_tries: NDArray[np.int64], step: int, n_tries: int
) -> None:
    """Exchange records at the given places with others, in place, where fewer values are too frequent afterwards."""
    order, of_place = grouped.order, grouped.of_place
    n_records = order.shape[0]
    for i in range(clashing.shape[0]):
        place = clashing[i]
        here = of_place[place]
        clashes = _clashes(grouped, here, place, order[place])
        if clashes == 0:  # an exchange before helped it, too
            continue
        other = first_tries[i]
        for _ in range(n_tries):
            other = (other + step) % n_records
            there = of_place[other]
            if there == here:
                continue
            before = clashes + _clashes(grouped, there, other, order[other])
            after = _clashes(grouped, here, place, order[other])
            if after < before:
                after += _clashes(grouped, there, other, order[place])
            if after < before:
                order[place], order[other] = order[other], order[place]
                break


@njit(nogil=True, cache=True)
def _clashes(grouped, group, place, record):  # type: ignore[no-untyped-def]
    """Count by how many records the values of a record are too frequent, were it at this place of the group."""
    codes, order, ls = grouped.codes, grouped.order, grouped.ls
    first, stop = grouped.starts[group], grouped.starts[group + 1]
    total = 0
    for j in range(codes.shape[1]):
        own = codes[record, j]
        n_same = 1 - (stop - first) // ls[j]  # negative as long as the group may have more of the value
        for i in range(first, stop):
            if i != place and codes[order[i], j] == own:
                n_same += 1
        total += max(n_same, 0)
    return total


@njit(nogil=True, cache=True)
def excess_of(codes: NDArray[np.int32], records: NDArray[np.int64], ls: NDArray[np.int64]) -> int:
    """Return by how much the values of some records are too frequent: the sum of ``l * count - n`` where positive."""
    n = records.shape[0]
    total = 0
    for j in range(codes.shape[1]):
        own = np.sort(codes[records, j])
        start = 0
        for i in range(1, n + 1):
            if i == n or own[i] != own[start]:
                total += max((i - start) * ls[j] - n, 0)
                start = i
    return total


@njit(nogil=True, cache=True)
def best_partner(
    codes: NDArray[np.int32],
    records: NDArray[np.int64],
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    ls: NDArray[np.int64],
) -> int:
    """Return the group whose union with some records has the least excess beyond its own; -1 if each adds to it.

    Group g has ``members[starts[g]:starts[g + 1]]``. Of groups that help alike, the smallest and then the first is
    taken.
    """
    own = excess_of(codes, records, ls)
    best, best_change, best_size = -1, 1, 0
    n_records = records.shape[0]
    for g in range(starts.shape[0] - 1):
        n_more = starts[g + 1] - starts[g]
        union = np.empty(n_records + n_more, np.int64)
        union[:n_records] = records
        union[n_records:] = members[starts[g] : starts[g + 1]]
        change = excess_of(codes, union, ls) - excess_of(codes, union[n_records:], ls) - own
        if change < best_change or (change == best_change and best >= 0 and n_more < best_size):
            best, best_change, best_size = g, change, n_more
    return best


class CandidateNorms(NamedTuple):
    """The squared norms of the candidates of records, in one or several sensitive tables.

    Attributes
    ----------
    group : ndarray of int64, shape (records, tables)
        The group of each record.
    starts : ndarray of int64
        Table after table: candidates of group g are ``starts[g]`` to ``starts[g + 1]`` of the table's own.
    first_start : ndarray of int64
        Where each table begins in `starts`.
    norms : ndarray of float64
        Of the candidates, table after table.
    first_norm : ndarray of int64
        Where each table begins in `norms`.
    """

    group: NDArray[np.int64]
    starts: NDArray[np.int64]
    first_start: NDArray[np.int64]
    norms: NDArray[np.float64]
    first_norm: NDArray[np.int64]


@njit(nogil=True, cache=True)
def extreme_norms(record_norms: NDArray[np.float64], candidates: CandidateNorms) -> tuple[float, float]:
    """Return the least and the greatest squared norm of all records with a candidate of each table."""
    starts, first_start, first_norm = candidates.starts, candidates.first_start, candidates.first_norm
    n_tables = first_start.shape[0]
    low = np.full(starts.shape[0], np.inf)
    high = np.full(starts.shape[0], -np.inf)
    for t in range(n_tables):
        stop = first_start[t + 1] if t + 1 < n_tables else starts.shape[0]
        for at in range(first_start[t], stop - 1):
            for c in range(first_norm[t] + starts[at], first_norm[t] + starts[at + 1]):
                low[at] = min(low[at], candidates.norms[c])
                high[at] = max(high[at], candidates.norms[c])
    least, greatest = np.inf, -np.inf
    for i in range(record_norms.shape[0]):
        own_low = own_high = record_norms[i]
        for t in range(n_tables):
            at = first_start[t] + candidates.group[i, t]
            own_low += low[at]
            own_high += high[at]
        least = min(least, own_low)
        greatest = max(greatest, own_high)
    return least, greatest


@njit(nogil=True, cache=True)
def nearest_candidates(
    record_norms: NDArray[np.float64], candidates: CandidateNorms, target: float
) -> NDArray[np.int64]:
    """Return for every record the first candidates that bring the squared norm nearest the target, one per table.

    Candidates of several tables are tried in the order of their numbers, those of the last table running fastest.
    """
    starts, first_start, first_norm = candidates.starts, candidates.first_start, candidates.first_norm
    n_tables = first_start.shape[0]
    chosen = np.empty((record_norms.shape[0], n_tables), np.int64)
    place = np.empty(n_tables, np.int64)
    for i in range(record_norms.shape[0]):
        for t in range(n_tables):
            place[t] = starts[first_start[t] + candidates.group[i, t]]
        best = np.inf
        while True:
            norm = record_norms[i]
            for t in range(n_tables):
                norm += candidates.norms[first_norm[t] + place[t]]
            distance = abs(norm - target)
            if distance < best:
                best = distance
                chosen[i] = place
            t = n_tables - 1
            while t >= 0:
                at = first_start[t] + candidates.group[i, t]
                place[t] += 1
                if place[t] < starts[at + 1]:
                    break
                place[t] = starts[at]
                t -= 1
            if t < 0:
                break
    return chosen


@njit(nogil=True, cache=True)
def add_squares(
    total: NDArray[np.float64],
    values: NDArray[Any],
    missing: NDArray[np.bool_],
    unit: float,
    mean: float,
    scale: float,
) -> None:
    """Add to every record's total the square of its number's distance from the mean; a missing one has none.

    `missing` is empty where no record lacks the number.
    """
    for i in range(values.shape[0]):
        if missing.shape[0] and missing[i]:
            continue
        coordinate = (values[i] / unit - mean) / scale
        total[i] += coordinate * coordinate


@njit(nogil=True, cache=True)
def add_looked_up(
    total: NDArray[np.float64], codes: NDArray[np.int32], missing: NDArray[np.bool_], entries: NDArray[np.float64]
) -> None:
    """Add to every record's total the entry of its category, the last entry where it is missing."""
    for i in range(codes.shape[0]):
        if missing.shape[0] and missing[i]:
            total[i] += entries[-1]
        else:
            total[i] += entries[codes[i]]
