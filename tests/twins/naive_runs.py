# SPDX-License-Identifier: Apache-2.0
"""Slow twins of the Hilbert curve, of cutting it into runs, and of packing R+-tree leaves; for the tests.

Plain Python and whole numbers of any length, written from the definitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sfumato.partition.records import Layout


def hilbert_key(point: Sequence[int], n_bits: int) -> int:
    """Return a point's place on the Hilbert curve."""
    x = [int(value) for value in point]
    d = len(x)
    for level in range(n_bits - 1, 0, -1):
        below = (1 << level) - 1
        for j in range(d):
            if x[j] >> level & 1:
                x[0] ^= below
            else:
                differ = (x[0] ^ x[j]) & below
                x[0], x[j] = x[0] ^ differ, x[j] ^ differ
    for j in range(1, d):
        x[j] ^= x[j - 1]
    flip = 0
    for level in range(n_bits - 1, 0, -1):
        if x[-1] >> level & 1:
            flip ^= (1 << level) - 1
    x = [value ^ flip for value in x]
    key = 0
    for level in range(n_bits - 1, -1, -1):
        for value in x:
            key = key << 1 | value >> level & 1
    return key


def hilbert_point(key: int, n_columns: int, n_bits: int) -> tuple[int, ...]:
    """Return the point at a place on the Hilbert curve: `hilbert_key` the other way round."""
    x = [0] * n_columns
    for place in range(n_columns * n_bits):
        bit = key >> (n_columns * n_bits - 1 - place) & 1
        x[place % n_columns] = x[place % n_columns] << 1 | bit
    carried = x[-1] >> 1
    for j in range(n_columns - 1, 0, -1):
        x[j] ^= x[j - 1]
    x[0] ^= carried
    for level in range(1, n_bits):
        below = (1 << level) - 1
        for j in range(n_columns - 1, -1, -1):
            if x[j] >> level & 1:
                x[0] ^= below
            else:
                differ = (x[0] ^ x[j]) & below
                x[0], x[j] = x[0] ^ differ, x[j] ^ differ
    return tuple(x)


def total_width(codes: Any, layout: Layout) -> float:
    """Return the sum over columns of the share of the column that some records cover."""
    return sum(_width([int(row[j]) for row in codes], layout, j) for j in range(layout.n_columns))


def _width(codes: Sequence[int], layout: Layout, column: int) -> float:
    start, n_codes = int(layout.offsets[column]), int(layout.offsets[column + 1] - layout.offsets[column])
    present = set(codes)
    values = present - {int(layout.missing[column])}
    if layout.is_category[column]:
        return (len(present) - 1) / max(1, n_codes - 1)
    if not values:
        return 0.0
    if len(values) < len(present):
        return 1.0
    return float(layout.high[start + max(values)] - layout.low[start + min(values)])


def best_runs(codes: Any, counts: Sequence[int], layout: Layout, k: int) -> float:
    """Return the least loss of all ways to cut the sequence into runs of at least k records, however long."""
    m = len(counts)
    loss = [0.0] + [math.inf] * m
    for end in range(1, m + 1):
        for start in range(end):
            size = int(sum(counts[start:end]))
            if size >= k:
                loss[end] = min(loss[end], loss[start] + size * total_width(codes[start:end], layout))
    return loss[m]


def box_width(codes: Any, layout: Layout) -> float:
    """Return the sum of the sides of the bounding box; a category's side reaches from its first to its last code."""
    total = 0.0
    for j in range(layout.n_columns):
        column = [int(row[j]) for row in codes]
        box = range(min(column), max(column) + 1) if layout.is_category[j] else column
        total += _width(list(box), layout, j)
    return total


def cuts(codes: Any, batch: Sequence[int], layout: Layout, k: int) -> list[tuple[float, int] | None]:
    """Return, per column, the cost and the last code on the left of the cut that packing proposes; None: no cut."""
    n = len(codes)
    proposed: list[tuple[float, int] | None] = []
    for axis in range(layout.n_columns):
        best: tuple[int, float, int] | None = None
        for last in sorted({int(row[axis]) for row in codes})[:-1]:
            is_left = [int(row[axis]) <= last for row in codes]
            sides = [[i for i in range(n) if is_left[i] == wanted] for wanted in (True, False)]
            early = [sum(batch[i] <= date for i in side) for side in sides for date in range(max(batch))]
            if min(map(len, sides)) < k or any(0 < number < k for number in early):
                continue
            cost = sum(len(side) * box_width([codes[i] for i in side], layout) for side in sides)
            evenness = min(*map(len, sides), n // 4)
            if best is None or (-evenness, cost) < best[:2]:
                best = (-evenness, cost, last)
        if best is None:
            proposed.append(None)
        else:
            is_even = -best[0] >= n // 4
            proposed.append((best[1] + (0 if is_even else n * layout.n_columns + 1), best[2]))
    return proposed
