# SPDX-License-Identifier: Apache-2.0
"""Slow twin of growing with records set aside, for the tests: plain Python, one record after the other.

Widths are added up in the order of the columns, as the kernels add them, so that cuts that tie do so in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sfumato.partition.group_widths import MOST_CHILDREN, MOST_IN_SET
from sfumato.partition.information_loss_kernels import (
    ASIDE_SHARE,
    COMES_NEAR,
    LOOKED_AHEAD,
    POOLED_FROM,
    RELATIVE_NOISE,
)
from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from twins.naive_splitting import hierarchy_labels, width

Rows = list[int]
Cut = tuple[float, Rows, Rows]
"""What a cut brings, and the rows on its sides."""


def set_aside(
    codes: Any,
    layout: Layout,
    k: int,
    *,
    taxonomy: Taxonomy = NO_TAXONOMY,
    is_safe: Callable[[Rows], bool] | None = None,
) -> list[Rows]:
    """Return the groups."""
    growth = _Growth(codes, layout, k, taxonomy, is_safe)
    waiting = growth.process(list(range(len(codes))), float(layout.n_columns), is_top=True)
    for _, rows in sorted(waiting):
        rises = [growth.rise(group, rows) for group in growth.groups]
        ranked = sorted(range(len(rises)), key=lambda g: (rises[g], g))
        fitting = [g for g in ranked if is_safe is None or is_safe(growth.groups[g] + rows)]
        if not fitting:
            return [list(range(len(codes)))]
        growth.groups[fitting[0]] += rows
    return sorted(sorted(group) for group in growth.groups)


@dataclass
class _Growth:
    codes: Any
    layout: Layout
    k: int
    taxonomy: Taxonomy
    is_safe: Callable[[Rows], bool] | None
    groups: list[Rows] = field(default_factory=list)
    n_leaves: int = 0

    def process(self, rows: Rows, aside: float, *, is_top: bool) -> list[tuple[int, Rows]]:
        """Form groups of some records; return what is set aside, leaf by leaf."""
        whole = self.total(rows)
        for _, left, right in self.ranked(rows, aside):
            kept = [len(s) >= self.k and (self.is_safe is None or self.is_safe(s)) for s in (left, right)]
            if not any(kept):
                continue
            if self.is_safe is not None and not all(kept):
                own, other = (left, right) if kept[0] else (right, left)
                fall = len(own) * (whole - self.total(own)) + len(other) * (whole - max(whole, aside))
                if fall <= RELATIVE_NOISE * len(rows):
                    continue
            break
        else:
            self.groups.append(rows)
            return []
        numbers = (self.n_leaves, self.n_leaves + 1)
        self.n_leaves += 2
        waiting: list[tuple[int, Rows]] = []
        for number, side, is_kept in zip(numbers, (left, right), kept, strict=True):
            waiting += self.process(side, ASIDE_SHARE * whole, is_top=False) if is_kept else [(number, side)]
        pool = [row for _, leaf in waiting for row in leaf]
        is_enough = len(pool) >= (self.k if is_top else POOLED_FROM * self.k)
        if is_enough and (self.is_safe is None or self.is_safe(pool)):
            self.n_leaves += 1
            return self.process(pool, aside, is_top=is_top)
        return waiting

    def ranked(self, rows: Rows, aside: float) -> list[Cut]:
        """Return the best cut of each column, by what it brings, the first few with the best cuts that follow."""
        cuts = sorted(self.best_cuts(rows, aside), key=lambda cut: -cut[0])
        if len(cuts) < 2:
            return cuts
        ahead = ASIDE_SHARE * self.total(rows)
        scores = []
        near = [cut for cut in cuts[:LOOKED_AHEAD] if cut[0] >= COMES_NEAR * cuts[0][0]]
        for fall, left, right in near:
            score = fall
            for side in (left, right):
                if len(side) >= self.k:
                    score += max((cut[0] for cut in self.best_cuts(side, ahead)), default=0.0)
            scores.append(score)
        first = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        return [cuts[place] for place in first] + cuts[len(near) :]

    def best_cuts(self, rows: Rows, aside: float) -> list[Cut]:
        """Return the cut of each column that lowers the widths of all columns most, where one does."""
        found = []
        widths = [self.width(rows, column) for column in range(self.layout.n_columns)]
        active = [column for column in range(self.layout.n_columns) if len(self.present(rows, column)) > 1]
        whole = _sum(widths[column] for column in active)
        aside_width = max(whole, whole + aside - _sum(widths))
        for column in active:
            best: Cut = (0.0, [], [])
            for chosen in self.proposals(rows, column):
                left = [row for row in rows if int(self.codes[row][column]) in chosen]
                right = [row for row in rows if int(self.codes[row][column]) not in chosen]
                if max(len(left), len(right)) < self.k:
                    continue
                costs = []
                for side in (left, right):
                    followed = [
                        widths[j] if j != column and self.is_too_wide(j) else self.width(side, j) for j in active
                    ]
                    costs.append(_sum(followed) if len(side) >= self.k else aside_width)
                fall = len(left) * (whole - costs[0]) + len(right) * (whole - costs[1])
                if fall > best[0]:
                    best = (fall, left, right)
            if best[0] > RELATIVE_NOISE * len(rows):
                found.append(best)
        return found

    def proposals(self, rows: Rows, column: int) -> Iterator[set[int]]:
        """List which codes may go left: first children, or one child alone; of ordered columns the lower codes."""
        children = self.children(rows, column)
        for place in range(len(children)):
            prefix: set[int] = set().union(*children[: place + 1])
            if place < len(children) - 1:
                yield prefix
            if place > 0 and self.layout.is_category[column]:
                yield children[place]

    def children(self, rows: Rows, column: int) -> list[set[int]]:
        """Return the codes below each child of the common label, or each code by itself."""
        labels = hierarchy_labels(self.taxonomy, self.layout, column)
        counts = Counter(int(self.codes[row][column]) for row in rows)
        codes = sorted(counts)
        if labels is None and self.layout.is_category[column]:
            codes = sorted(codes, key=lambda code: (-counts[code], code))
            rarest = codes[MOST_CHILDREN - 1 :]
            return [{code} for code in codes[: MOST_CHILDREN - 1]] + ([set(rarest)] if rarest else [])
        if labels is None and len(codes) <= MOST_CHILDREN:
            return [{code} for code in codes]
        if labels is None:
            shares: dict[int, set[int]] = {}
            for code in codes:
                before = sum(counts[other] for other in codes if other < code)
                shares.setdefault(before * MOST_CHILDREN // len(rows), set()).add(code)
            return list(shares.values())
        level = 0
        while len({labels[code][level] for code in codes}) > 1:
            level += 1
        marks = dict.fromkeys(labels[code][level - 1] for code in codes)
        return [{code for code in codes if labels[code][level - 1] == mark} for mark in marks]

    def present(self, rows: Rows, column: int) -> set[int]:
        return {int(self.codes[row][column]) for row in rows}

    def is_too_wide(self, column: int) -> bool:
        """Return True if the sets of a column are not followed while others are cut."""
        n_codes = self.layout.offsets[column + 1] - self.layout.offsets[column]
        is_set = self.layout.is_category[column] and hierarchy_labels(self.taxonomy, self.layout, column) is None
        return bool(is_set and n_codes > MOST_IN_SET)

    def width(self, rows: Rows, column: int) -> float:
        return float(width(self.present(rows, column), self.layout, column, self.taxonomy))

    def total(self, rows: Rows) -> float:
        return _sum(self.width(rows, column) for column in range(self.layout.n_columns))

    def rise(self, group: Rows, rows: Rows) -> float:
        """What taking in some records costs a group, columns whose sets are too wide left out."""
        followed = [column for column in range(self.layout.n_columns) if not self.is_too_wide(column)]
        together = _sum(self.width(group + rows, column) for column in followed)
        alone = _sum(self.width(group, column) for column in followed)
        return (len(group) + len(rows)) * together - len(group) * alone


def _sum(terms: Any) -> float:
    """Add floats one after the other; the built-in sum corrects its rounding from Python 3.12 on."""
    total = 0.0
    for term in terms:
        total += term
    return total
