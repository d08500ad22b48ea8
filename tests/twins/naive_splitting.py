# SPDX-License-Identifier: Apache-2.0
"""The slow twins of the search for splits: every candidate of a node, judged by exact fractions.

As in ``naive``, which grows trees with them, gains are exact (entropy excepted): a fast one may differ by rounding.
Nothing but the tests and the other twins calls this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.category_splits import MAX_ENUMERATED
from sfumato.partition.guides import CHANNELS, ENTROPY, INFORMATION_LOSS, MEDIAN
from sfumato.partition.records import Layout
from sfumato.partition.scoring import RELATIVE_NOISE, Scoring
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy

Sums = list[int]
"""One histogram row: records, channels, and the weight where records have one."""


@dataclass(frozen=True)
class Split:
    """One way to divide a node.

    Attributes
    ----------
    gain : Fraction or float
    column : int
    position : int
        Place among the column's candidates; breaks ties.
    last_bin : int
        Ordered columns: codes up to this go left. -1 for categories.
    missing_left : bool
        Side of missing values; the larger one where the node has none.
    left_codes : frozenset of int
        All codes of the column that go left, absent ones included.
    n_left : int
    """

    gain: Fraction | float
    column: int
    position: int
    last_bin: int
    missing_left: bool
    left_codes: frozenset[int]
    n_left: int


Proposal = tuple[int, int, set[int]]
"""A split before it is judged: position, last bin (-1 for categories) and the codes present that go left."""


def find_splits(hist: NDArray[np.int64], layout: Layout, scoring: Scoring) -> list[tuple[int, Split]]:
    """Return every candidate as (phase, split) in the order in which candidates are judged."""
    ranked = [(0, split) for split in candidates(hist, layout, scoring, scoring.rule)]
    if scoring.fall_back and scoring.rule != INFORMATION_LOSS:
        ranked += [(1, split) for split in candidates(hist, layout, scoring, INFORMATION_LOSS)]
    return ranked


def candidates(hist: NDArray[np.int64], layout: Layout, scoring: Scoring, rule: int) -> list[Split]:
    """Return all admissible splits that bring something under a rule: by falling gain, column and position."""
    found = []
    floor = None
    if rule in (CHANNELS, ENTROPY):
        first_column: list[Sums] = hist[: layout.offsets[1]].tolist()
        floor = noise_floor(_add(first_column, range(len(first_column))), scoring)
    for column in range(layout.n_columns):
        labels = hierarchy_labels(scoring.taxonomy, layout, column)
        rows: list[Sums] = hist[layout.offsets[column] : layout.offsets[column + 1]].tolist()
        present = {code for code, sums in enumerate(rows) if sums[0] > 0}
        n = sum(rows[code][0] for code in present)
        missing = int(layout.missing[column])
        for position, last_bin, left in propose(rows, present, layout, column, scoring, rule):
            n_left = sum(rows[code][0] for code in left)
            if min(n_left, n - n_left) < scoring.min_records:
                continue
            gain = _gain(rows, present, left, layout, column, scoring, rule)
            if floor is not None and gain <= floor:
                continue
            is_larger = 2 * n_left > n
            if last_bin < 0:
                missing_left = is_larger
                all_left = left | (set(range(len(rows))) - present if is_larger else set())
                if labels is not None:
                    all_left = _children_left(labels, present, left, position, rule)
                    if missing >= 0 and missing not in present:
                        all_left = all_left - {missing} | ({missing} if is_larger else set())
            else:
                missing_left = missing in left if missing in present else is_larger
                all_left = {code for code in range(len(rows)) if code <= last_bin and code != missing}
                if missing_left and missing >= 0:
                    all_left.add(missing)
            found.append(Split(gain, column, position, last_bin, missing_left, frozenset(all_left), n_left))
    return sorted(found, key=lambda split: (-split.gain, split.column, split.position))


def propose(
    rows: list[Sums], present: set[int], layout: Layout, column: int, scoring: Scoring, rule: int
) -> Iterator[Proposal]:
    """List the splits of one column, admissible or not; each divides the codes present in two."""
    is_category, missing = bool(layout.is_category[column]), int(layout.missing[column])
    if len(present) < 2:
        return
    labels = hierarchy_labels(scoring.taxonomy, layout, column)
    if labels is not None:
        yield from _propose_children(rows, present, labels, scoring.min_records, rule)
    elif rule == MEDIAN:
        yield from _propose_median(rows, present, is_category, scoring.min_records)
    elif not is_category:
        values = sorted(present - {missing})
        for b in values:
            below = {code for code in values if code <= b}
            for with_missing in [False, True] if missing in present else [False]:
                left = below | {missing} if with_missing else below
                if left != present:
                    yield 2 * b + with_missing, b, left
    elif len(present) <= MAX_ENUMERATED:
        ordered = sorted(present)
        for subset in range(1, 1 << (len(ordered) - 1)):
            yield subset, -1, {code for place, code in enumerate(ordered) if subset >> place & 1}
    else:
        for number, order in enumerate(category_orders(rows, present, scoring, rule)):
            for length in range(1, len(order)):
                yield (number << 32) + length - 1, -1, set(order[:length])


def _propose_median(rows: list[Sums], present: set[int], is_category: bool, min_records: int) -> Iterator[Proposal]:
    """Mondrian: the one prefix nearest half of the records that leaves both sides enough; missing comes last."""
    n = sum(rows[code][0] for code in present)
    cuts = []
    for code in sorted(present)[:-1]:
        n_left = sum(rows[other][0] for other in present if other <= code)
        if min(n_left, n - n_left) >= min_records:
            cuts.append((abs(2 * n_left - n), code))
    if cuts:
        _, best = min(cuts)
        yield 0, -1 if is_category else best, {code for code in present if code <= best}


def hierarchy_labels(taxonomy: Taxonomy, layout: Layout, column: int) -> list[list[int]] | None:
    """Return the labels above each code of a column, from fine to coarse; None without a hierarchy."""
    if not len(taxonomy.n_levels) or not taxonomy.n_levels[column]:
        return None
    rows = slice(layout.offsets[column], layout.offsets[column + 1])
    labels: list[list[int]] = taxonomy.label[rows, : taxonomy.n_levels[column]].tolist()
    return labels


def _child_of(labels: list[list[int]], present: set[int]) -> list[int]:
    """Return, per code, its label on the level below the lowest that all codes present share."""
    level = 0
    while len({labels[code][level] for code in present}) > 1:
        level += 1
    return [path[level - 1] for path in labels]


def _propose_children(
    rows: list[Sums], present: set[int], labels: list[list[int]], min_records: int, rule: int
) -> Iterator[Proposal]:
    """List prefixes of the children present and children in between alone; Mondrian: the prefix nearest the median."""
    child = _child_of(labels, present)
    children = list(dict.fromkeys(child[code] for code in sorted(present)))
    n = sum(rows[code][0] for code in present)
    medians = []
    for place in range(len(children) - 1):
        for alone in [False, True] if place > 0 else [False]:
            wanted = {children[place]} if alone else set(children[: place + 1])
            left = {code for code in present if child[code] in wanted}
            if rule != MEDIAN:
                yield 2 * place + alone, -1, left
            elif not alone:
                n_left = sum(rows[code][0] for code in left)
                if min(n_left, n - n_left) >= min_records:
                    medians.append((abs(2 * n_left - n), place, left))
    if medians:
        yield 0, -1, min(medians, key=lambda item: item[:2])[2]


def _children_left(labels: list[list[int]], present: set[int], left: set[int], position: int, rule: int) -> set[int]:
    """Return all codes that go left with some children: those below them and, of a prefix, those before its end."""
    child = _child_of(labels, present)
    below = {code for code in range(len(child)) if child[code] in {child[own] for own in left}}
    is_alone = rule != MEDIAN and position % 2 == 1
    return below if is_alone else set(range(max(below) + 1))


def _gain(
    rows: list[Sums], present: set[int], left: set[int], layout: Layout, column: int, scoring: Scoring, rule: int
) -> Fraction | float:
    if rule == MEDIAN:
        return width(present, layout, column, scoring.taxonomy)
    if rule == INFORMATION_LOSS:
        sides = [(1, present), (-1, left), (-1, present - left)]
        widths = [sign * _add(rows, own)[0] * width(own, layout, column, scoring.taxonomy) for sign, own in sides]
        return sum(widths, Fraction(0))
    total, left_sums = _add(rows, present), _add(rows, left)
    return channel_gain(left_sums, total, scoring) if rule == CHANNELS else entropy_gain(left_sums, total, scoring)


def width(codes: set[int], layout: Layout, column: int, taxonomy: Taxonomy = NO_TAXONOMY) -> Fraction:
    """Certainty penalty of a set of codes: 0 for a single value, 1 for the whole column."""
    start, n_codes = int(layout.offsets[column]), int(layout.offsets[column + 1] - layout.offsets[column])
    labels = hierarchy_labels(taxonomy, layout, column)
    if labels is not None:
        level = 0
        while len({labels[code][level] for code in codes}) > 1:
            level += 1
        return Fraction(taxonomy.width[start + min(codes), level])
    if layout.is_category[column]:
        return Fraction(len(codes) - 1, max(1, n_codes - 1))
    values = codes - {int(layout.missing[column])}
    if len(values) < len(codes):  # missing beside values: anything is possible
        return Fraction(1) if values else Fraction(0)
    return Fraction(layout.high[start + max(values)]) - Fraction(layout.low[start + min(values)])


def channel_gain(left: Sums, total: Sums, scoring: Scoring) -> Fraction:
    """Sum over the channels of weight * (S_L^2/n_L + S_R^2/n_R - S^2/n); 0 where a side has no weight."""
    at = -1 if scoring.is_weighted else 0
    n, n_left, n_right = total[at], left[at], total[at] - left[at]
    if n_left <= 0 or n_right <= 0:
        return Fraction(0)
    gain = Fraction(0)
    for c, channel_weight in enumerate(scoring.channel_weights.tolist(), start=1):
        s, s_left, s_right = total[c], left[c], total[c] - left[c]
        # One fraction over n * n_left * n_right, since adding three costs three times as much.
        squares = s_left * s_left * n * n_right + s_right * s_right * n * n_left - s * s * n_left * n_right
        gain += Fraction(channel_weight) * Fraction(squares, n * n_left * n_right)
    return gain


def entropy_gain(left: Sums, total: Sums, scoring: Scoring) -> float:
    """Fall of the classes' entropy, times the records' weight; in floats, since logarithms are."""
    at = -1 if scoring.is_weighted else 0
    n, n_left, n_right = total[at], left[at], total[at] - left[at]
    if n_left <= 0 or n_right <= 0:
        return 0.0
    terms = []
    for c in range(1, 1 + len(scoring.channel_weights)):
        for sign, s, size in [(1, left[c], n_left), (1, total[c] - left[c], n_right), (-1, total[c], n)]:
            if s > 0:
                terms.append(sign * s * math.log(s / size))
    return math.fsum(terms)


def noise_floor(total: Sums, scoring: Scoring) -> Fraction:
    """Gains up to this count as none."""
    n = total[-1] if scoring.is_weighted else total[0]
    if scoring.rule == ENTROPY:
        return Fraction(RELATIVE_NOISE) * n
    squares = Fraction(0)
    for c, channel_weight in enumerate(scoring.channel_weights.tolist(), start=1):
        squares += Fraction(abs(channel_weight)) * total[c] * total[c]
    return Fraction(RELATIVE_NOISE) * squares / max(1, n)


def category_orders(rows: list[Sums], present: set[int], scoring: Scoring, rule: int) -> list[list[int]]:
    """Return the orders whose prefixes are tried when too many categories are present for all subsets.

    In floats, added up as the kernel adds them: an order cannot be compared within a tolerance.
    """
    codes = sorted(present)
    if rule == INFORMATION_LOSS:
        return [sorted(codes, key=lambda code: -rows[code][0])]
    at = -1 if scoring.is_weighted else 0
    channels = range(len(scoring.channel_weights))
    signed = scoring.channel_weights.tolist()
    sizes = [abs(w) for w in signed]
    total = _add(rows, present)
    means = [total[1 + c] / max(1, total[at]) for c in channels]
    weight = {code: rows[code][at] for code in codes}
    away = {code: [rows[code][1 + c] / max(1, weight[code]) - means[c] for c in channels] for code in codes}
    spreads = [signed[c] * _sum(weight[code] * away[code][c] * away[code][c] for code in codes) for c in channels]
    axis = [1.0 if c == spreads.index(max(spreads)) else 0.0 for c in channels]
    orders = [sorted(codes, key=lambda code: _project(away[code], axis))]
    if len(channels) > 1:
        axis = _principal_axis(axis, weight, away, sizes)
        orders.append(sorted(codes, key=lambda code: _project(away[code], axis)))
    return orders


def _principal_axis(
    axis: list[float], weight: dict[int, int], away: dict[int, list[float]], sizes: list[float]
) -> list[float]:
    """Sixteen power steps from `axis` towards the first principal component of the weighted category means."""
    for _ in range(16):
        turned = [0.0] * len(axis)
        for code, deviation in away.items():
            projection = _project(deviation, axis)
            turned = [t + weight[code] * projection * d for t, d in zip(turned, deviation, strict=True)]
        turned = [t * size for t, size in zip(turned, sizes, strict=True)]
        length = _sum(t * t for t in turned)
        if length <= 0.0:
            return axis
        axis = [t / math.sqrt(length) for t in turned]
    return axis


def _project(deviation: list[float], axis: list[float]) -> float:
    return _sum(a * d for a, d in zip(axis, deviation, strict=True))


def _sum(terms: Iterable[float]) -> float:
    """Add floats one after the other; the built-in sum corrects its rounding from Python 3.12 on."""
    total = 0.0
    for term in terms:
        total += term
    return total


def _add(rows: list[Sums], codes: Iterable[int]) -> Sums:
    return [sum(entry) for entry in zip(*(rows[code] for code in codes), strict=True)]
