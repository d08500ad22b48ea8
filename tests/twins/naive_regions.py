# SPDX-License-Identifier: Apache-2.0
"""The slow twin of `sfumato.partition.region_counts` and `region_draws`: the same numbers, with dictionaries."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

FAN, AS_MANY, AS_MANY_NUMBERS = 4, 100.0, 10.0


@dataclass(frozen=True, eq=False)
class Case:
    """Records of one column, group after group, each with a class and numbers; the last value may not be named."""

    units: np.ndarray
    classes: np.ndarray
    target: np.ndarray
    offsets: np.ndarray
    n_units: int
    n_ordered: int
    n_classes: int
    floor: int

    @property
    def n_groups(self):
        return len(self.offsets) - 1

    @property
    def group(self):
        return np.repeat(np.arange(self.n_groups), np.diff(self.offsets))

    @property
    def means(self):
        return np.stack([self.target[a:b].mean(axis=0) for a, b in zip(self.offsets, self.offsets[1:], strict=False)])


def level_sizes(n_groups):
    sizes = [n_groups]
    while len(sizes) == 1 or sizes[-1] > 1:
        sizes.append((sizes[-1] + FAN - 1) // FAN)
    return sizes


def common_of(case, values, *, is_top):
    """Return the values, then the intervals, that enough records have, and what is left."""
    common, left, width = {}, dict(values), 1
    while width == 1 or width <= (case.n_ordered if is_top else case.n_ordered // 3):
        nodes = defaultdict(list)
        for u in left:
            if u < case.n_ordered:
                nodes[u // width].append(u)
            elif width == 1 and u < case.n_units - 1:
                nodes[u].append(u)
        for node, members in nodes.items():
            records = [i for u in members for i in left[u]]
            if len(records) >= case.floor:
                common[node * width, min(width, max(case.n_ordered - node * width, 1))] = records
                for u in members:
                    del left[u]
        width *= 2
    return common, left


class PlainRegions:
    """Counts of a case, as records by row, class and (value, width): rows are groups, then pools."""

    def __init__(self, case):
        self.case, self.sizes = case, level_sizes(case.n_groups)
        self.found, self.rest = {}, np.zeros((case.n_groups, case.n_classes), np.int64)
        pools = {}
        group = case.group
        for g in range(case.n_groups):
            for c in range(case.n_classes):
                values = defaultdict(list)
                for i in np.flatnonzero((group == g) & (case.classes == c)).tolist():
                    values[int(case.units[i])].append(i)
                self.found[g, c], left = common_of(case, values, is_top=False)
                self.rest[g, c] = sum(map(len, left.values()))
                pools[g, c] = {u: own for u, own in left.items() if u < case.n_units - 1}
        for level in range(1, len(self.sizes)):
            above = defaultdict(lambda: defaultdict(list))
            for (place, c), values in pools.items():
                for u, own in values.items():
                    above[place // FAN, c][u] += own
            pools = {}
            for place in range(self.sizes[level]):
                for c in range(case.n_classes):
                    row = sum(self.sizes[:level]) + place
                    is_top = level == len(self.sizes) - 1
                    self.found[row, c], pools[place, c] = common_of(case, above[place, c], is_top=is_top)

    @cached_property
    def n_from_pools(self):
        result, carry = np.zeros_like(self.rest), np.zeros(self.case.n_classes, np.int64)
        for g, own in enumerate(self.rest):
            carry = carry + own
            result[g] = carry // self.case.floor * self.case.floor
            carry = carry % self.case.floor
        return result

    @cached_property
    def whole(self):
        """People of each class and value in the whole table, to the nearest multiple of the floor, none below it."""
        case = self.case
        counts = Counter(zip(case.classes.tolist(), case.units.tolist(), strict=True))
        result = np.zeros((case.n_classes, case.n_units), np.int64)
        for (c, u), n in counts.items():
            if n >= case.floor and u < case.n_units - 1:
                result[c, u] = (n + case.floor // 2) // case.floor * case.floor
        return result

    def share_of_whole(self, c, fallback):
        own, every = self.whole[c].astype(float), self.whole.sum(axis=0).astype(float)
        if not every.sum():
            every[fallback] = 1.0
        own = own if own.sum() else every
        return own / own.sum()

    def above(self, records):
        """Return how far the mean target of some records lies above the means of their groups."""
        case = self.case
        return (case.target[records] - case.means[case.group[records]]).mean(axis=0)

    def spread(self, row, c, whole, holds):
        """Return (value, people, mean target, part of a person of an entry) for the values of a row."""
        seen = set()
        for (first, width), records in self.found.get((row, c), {}).items():
            inside = [u for u in range(first, first + width) if width == 1 or (u not in seen and holds[u])]
            total = sum(whole[u] for u in inside)
            for u in inside:
                part = 1.0 if width == 1 else whole[u] / total if total else 1 / len(inside)
                yield u, len(records) * part, self.above(records), part
            seen.update(range(first, first + width))

    def of_group(self, g, c, holds, fallback):
        """Return what is drawn for a group and class: value to (people, sum of targets), and people in all."""
        whole, outputs = self.share_of_whole(c, fallback), self.case.target.shape[1]
        people, sums = Counter(), defaultdict(lambda: np.zeros(outputs))
        pooled, pooled_sums = Counter(), defaultdict(lambda: np.zeros(outputs))
        for u, n, mean, _ in self.spread(g, c, whole, holds):
            people[u] += n
            sums[u] = sums[u] + n * mean
        for level in range(1, len(self.sizes)):
            row = sum(self.sizes[:level]) + g // FAN**level
            for u, n, mean, _ in self.spread(row, c, whole, np.ones_like(holds)):
                pooled[u] += n / FAN**level
                pooled_sums[u] = pooled_sums[u] + n / FAN**level * mean
        n_drawn = self.n_from_pools[g, c]
        if not any(people.values()) and not n_drawn:
            n_drawn = 1
        inside = sum(n for u, n in pooled.items() if holds[u])
        each = n_drawn / inside if inside else 0.0
        said = {u: people[u] + each * pooled[u] for u in {*people, *pooled}}
        said_sums = {u: sums[u] + each * pooled_sums[u] for u in said}
        drawn = {u: n for u, n in said.items() if n and (holds[u] or people[u])}
        if not drawn:
            drawn = {u: s for u, s in enumerate(whole.tolist()) if s and holds[u]}
            drawn = drawn or {u: s for u, s in enumerate(whole.tolist()) if s}
        n_counted = sum(people.values()) + (n_drawn if inside else 0)
        return drawn, said, said_sums, n_counted, each

    def part_of(self, g, c, u, each, whole, holds):
        """Return how much of what is counted of a value is one record of a group and class that has it."""
        for level in range(len(self.sizes)):
            row = sum(self.sizes[:level]) + g // FAN**level
            of_level = np.ones(self.case.n_units, bool) if level else holds
            for value, _, _, part in self.spread(row, c, whole, of_level):
                if value == u:
                    return part * (each / FAN**level if level else 1.0)
        return 0.0
