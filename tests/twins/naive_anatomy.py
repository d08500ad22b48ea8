# SPDX-License-Identifier: Apache-2.0
"""Slow twins of the kernels, in plain Python from the definitions; for the tests."""

from __future__ import annotations

from collections.abc import Sequence


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
) -> list[int]:
    """Give every drawing of a bucket any record of it that is still there; the first takes the place of that one."""
    waiting = [[record for record in range(len(bucket)) if bucket[record] == b] for b in range(len(counts))]
    group = [-1] * len(bucket)
    for place, b in enumerate(drawn):
        chosen = int(uniform[place] * len(waiting[b]))
        group[waiting[b][chosen]] = names[place // (len(drawn) // len(names))]
        waiting[b][chosen] = waiting[b][0]
        waiting[b].pop(0)
    return group


def sort_groups(group: Sequence[int], n_groups: int) -> tuple[list[int], list[int]]:
    """Return the rows sorted by group, and where each group starts among them."""
    order = sorted(range(len(group)), key=lambda row: group[row])
    return order, [sum(g < limit for g in group) for limit in range(n_groups + 1)]


def extreme_norms(
    record_norms: Sequence[float], group: Sequence[int], candidate_norms: Sequence[float], starts: Sequence[int]
) -> tuple[float, float]:
    """Return the least and the greatest squared norm of the join."""
    joined = [
        norm + candidate
        for norm, g in zip(record_norms, group, strict=True)
        for candidate in candidate_norms[starts[g] : starts[g + 1]]
    ]
    return min(joined), max(joined)


def nearest_candidates(
    record_norms: Sequence[float],
    group: Sequence[int],
    candidate_norms: Sequence[float],
    starts: Sequence[int],
    target: float,
) -> list[int]:
    """Return for every record the first candidate whose squared norm is nearest the target."""
    return [
        min(range(starts[g], starts[g + 1]), key=lambda c: abs(norm + candidate_norms[c] - target))
        for norm, g in zip(record_norms, group, strict=True)
    ]
