# SPDX-License-Identifier: Apache-2.0
"""Slow twins of the kernels, in plain Python from the definitions; for the tests."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


def draw_from_largest(counts: Sequence[int], l: int, n_groups: int) -> list[int]:  # noqa: E741
    """Take one record from each of the l largest buckets; of equal ones the last."""
    left = [int(count) for count in counts]
    drawn = []
    for _ in range(n_groups):
        largest = sorted(range(len(left)), key=lambda bucket: (-left[bucket], -bucket))[:l]
        for bucket in sorted(largest):
            left[bucket] -= 1
            drawn.append(bucket)
    return drawn


def draw_at_random(counts: Sequence[int], l: int, n_groups: int, uniform: Sequence[float]) -> list[int]:  # noqa: E741
    """Take l different buckets, first the full ones that must not be left out, then any, weighted by their records."""
    left = [int(count) for count in counts]
    drawn: list[int] = []
    numbers = iter(uniform)
    for m in range(n_groups, 0, -1):
        to_spare = sum(min(count, m) for count in left) - l * m
        full = [bucket for bucket, count in enumerate(left) if count >= m]
        n_needed = max(0, len(full) - to_spare)
        group: list[int] = []
        for i in range(l):
            u = float(next(numbers))
            if i < n_needed:
                group.append(full.pop(int(u * len(full))))
                continue
            weights = [0 if bucket in group else count for bucket, count in enumerate(left)]
            target, reached = int(u * sum(weights)), 0
            for bucket, weight in enumerate(weights):
                reached += weight
                if reached > target:
                    group.append(bucket)
                    break
        for bucket in group:
            left[bucket] -= 1
        drawn += group
    return drawn


def hand_out(
    bucket: Sequence[int],
    uniform: Sequence[float],
    counts: Sequence[int],
    drawn: Sequence[int],
    names: Sequence[int],
    window: int,
) -> list[int]:
    """Give every drawing of a bucket any record of it that is still there; the first takes the place of that one."""
    waiting = [[record for record in range(len(bucket)) if bucket[record] == b] for b in range(len(counts))]
    group = [-1] * len(bucket)
    for place, b in enumerate(drawn):
        chosen = int(uniform[place] * min(len(waiting[b]), window))
        group[waiting[b][chosen]] = names[place // (len(drawn) // len(names))]
        waiting[b][chosen] = waiting[b][0]
        waiting[b].pop(0)
    return group


def sort_groups(group: Sequence[int], n_groups: int) -> tuple[list[int], list[int]]:
    """Return the rows sorted by group, and where each group starts among them."""
    order = sorted(range(len(group)), key=lambda row: group[row])
    return order, [sum(g < limit for g in group) for limit in range(n_groups + 1)]


@dataclass
class Grouped:
    """Records in groups: codes, the records group after group, where groups start, and the l of each column."""

    codes: list[list[int]]
    order: list[int]
    starts: list[int]
    ls: list[int]

    def members(self, place: int) -> range:
        """Return the places of the group that a place belongs to."""
        group = next(g for g in range(len(self.starts) - 1) if place < self.starts[g + 1])
        return range(self.starts[group], self.starts[group + 1])

    def clashes(self, place: int, record: int) -> int:
        """Count by how many records a record's values are too frequent, were it at a place."""
        members, total = self.members(place), 0
        for column, l in enumerate(self.ls):  # noqa: E741
            own = self.codes[record][column]
            others = [self.codes[self.order[other]][column] for other in members if other != place]
            total += max(0, 1 + others.count(own) - len(members) // l)
        return total


def find_clashing(grouped: Grouped) -> list[int]:
    """Return the places whose record has a value that its group has too often."""
    return [place for place, record in enumerate(grouped.order) if grouped.clashes(place, record)]


def exchange(grouped: Grouped, clashing: Sequence[int], first: Sequence[int], step: int, n_tries: int) -> None:
    """Exchange records where fewer values are too frequent afterwards."""
    order = grouped.order
    for place, start in zip(clashing, first, strict=True):
        if not grouped.clashes(place, order[place]):
            continue
        for other in ((start + step * number) % len(order) for number in range(1, n_tries + 1)):
            if grouped.members(other) == grouped.members(place):
                continue
            before = grouped.clashes(place, order[place]) + grouped.clashes(other, order[other])
            after = grouped.clashes(place, order[other]) + grouped.clashes(other, order[place])
            if after < before:
                order[place], order[other] = order[other], order[place]
                break


def excess_of(codes: Sequence[Sequence[int]], records: Sequence[int], ls: Sequence[int]) -> int:
    """Return the sum of ``l * count - n`` over all values for which it is positive."""
    columns = [Counter(codes[record][column] for record in records) for column in range(len(ls))]
    return sum(
        max(0, own * count - len(records)) for counts, own in zip(columns, ls, strict=True) for count in counts.values()
    )


def best_partner(
    codes: Sequence[Sequence[int]],
    records: Sequence[int],
    members: Sequence[int],
    starts: Sequence[int],
    ls: Sequence[int],
) -> int:
    """Return the group whose union with the records has the least excess beyond its own, or -1."""
    found = []
    for group in range(len(starts) - 1):
        own = list(members[starts[group] : starts[group + 1]])
        change = excess_of(codes, [*records, *own], ls) - excess_of(codes, own, ls) - excess_of(codes, records, ls)
        if change <= 0:
            found.append((change, len(own), group))
    return min(found)[2] if found else -1


def candidates_of(candidates: Any, record: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return the candidates of a record in all tables: their squared norm, and their place in each table."""
    tables = []
    for table, (first_start, first_norm) in enumerate(
        zip(candidates.first_start.tolist(), candidates.first_norm.tolist(), strict=True)
    ):
        at = first_start + int(candidates.group[record, table])
        places = range(int(candidates.starts[at]), int(candidates.starts[at + 1]))
        tables.append([(float(candidates.norms[first_norm + place]), place) for place in places])
    return [(sum(norm for norm, _ in own), tuple(p for _, p in own)) for own in itertools.product(*tables)]


def extreme_norms(record_norms: Sequence[float], candidates: Any) -> tuple[float, float]:
    """Return the least and the greatest squared norm of the join."""
    joined = [
        norm + candidate
        for record, norm in enumerate(record_norms)
        for candidate, _ in candidates_of(candidates, record)
    ]
    return min(joined), max(joined)


def nearest_candidates(record_norms: Sequence[float], candidates: Any, target: float) -> list[tuple[int, ...]]:
    """Return for every record the first candidate whose squared norm is nearest the target."""
    return [
        min(candidates_of(candidates, record), key=lambda own: abs(norm + own[0] - target))[1]
        for record, norm in enumerate(record_norms)
    ]
