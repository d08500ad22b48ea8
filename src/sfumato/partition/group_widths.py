# SPDX-License-Identifier: Apache-2.0
"""Measure the width of some records over all columns, and how much narrower the two sides of a cut would be.

A box is the first and the last code of every column and, for categories without a hierarchy, the set of codes. The
gain of a cut is the fall of the widths of *all* columns, since a cut in one column often narrows others.
``set_aside`` and ``relaxed_mondrian`` call this.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import Taxonomy, common_level, common_width, has_hierarchy

MOST_IN_SET = 256
"""Codes of a category column whose sets are followed; wider ones count as they are while other columns are cut."""

MOST_CHILDREN = 32
"""Places at which a column without a hierarchy is cut at most; later cuts are finer."""

PREFIX, ALONE = range(2)
"""What goes left: some first children of a column, or one child."""


class Boxes(NamedTuple):
    """Where the sets of codes of each column lie among the 64-bit words of a box."""

    n_words: int
    word_of: NDArray[np.int64]  # (columns,) first word of the column's set, -1 where none is kept


class Ground(NamedTuple):
    """The records that a tree grows on: equal records are one, with a weight."""

    codes: NDArray[Any]  # (records, columns)
    weights: NDArray[np.int64]
    layout: Layout
    taxonomy: Taxonomy
    boxes: Boxes
    min_records: int


class Sides(NamedTuple):
    """Working memory for the boxes of children, of what lies before each of them, and of what lies after."""

    sizes: NDArray[np.int64]  # (children,)
    low: NDArray[np.int32]  # (3, children + 1, columns)
    high: NDArray[np.int32]
    sets: NDArray[np.uint64]  # (3, children + 1, words)


def make_boxes(layout: Layout, taxonomy: Taxonomy) -> Boxes:
    """Give every category column without a hierarchy the words for its set of codes."""
    word_of = np.full(layout.n_columns, -1, np.int64)
    n_words = 0
    for column, n_codes in enumerate(np.diff(layout.offsets)):
        is_set = layout.is_category[column] and not has_hierarchy(taxonomy, column)
        if is_set and n_codes <= MOST_IN_SET:
            word_of[column] = n_words
            n_words += -(-int(n_codes) // 64)
    return Boxes(n_words, word_of)


def make_sides(layout: Layout, boxes: Boxes, n_records: int) -> Sides:
    """Allocate the working memory for the columns of a layout."""
    most = min(n_records, int(np.diff(layout.offsets).max()))
    shape = (3, most + 1, layout.n_columns)
    return Sides(
        np.zeros(most, np.int64),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros((3, most + 1, boxes.n_words), np.uint64),
    )


class NodeScratch(NamedTuple):
    """Working memory for measuring the records of a node and the sides of its cuts."""

    counts: NDArray[np.int64]  # (widest column,) zero in between
    child: NDArray[np.int64]  # (widest column,) the child that each code belongs to
    low: NDArray[np.int64]  # (columns,) first and last code of each column, and its width
    high: NDArray[np.int64]
    widths: NDArray[np.float64]
    ends: NDArray[np.int32]  # (2, columns)
    sides: Sides


class Active(NamedTuple):
    """The columns of a node with more than one code."""

    columns: NDArray[np.int64]
    widths: NDArray[np.float64]
    width: float  # their sum


def make_node_scratch(ground: Ground) -> NodeScratch:
    """Allocate the working memory for the columns of some records."""
    widest, d = int(np.diff(ground.layout.offsets).max()), ground.layout.n_columns
    return NodeScratch(
        np.zeros(widest, np.int64),
        np.zeros(widest, np.int64),
        np.zeros(d, np.int64),
        np.zeros(d, np.int64),
        np.zeros(d),
        np.zeros((2, d), np.int32),
        make_sides(ground.layout, ground.boxes, len(ground.codes)),
    )


@njit(nogil=True, cache=True)
def _count_bits(word):  # type: ignore[no-untyped-def]
    """Number of bits that are set: added up in pairs, in fours, in bytes, and the bytes in three steps."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    word += word >> np.uint64(8)
    word += word >> np.uint64(16)
    word += word >> np.uint64(32)
    return np.int64(word & np.uint64(127))


@njit(nogil=True, cache=True)
def column_width(layout, taxonomy, column, low, high, n_present):  # type: ignore[no-untyped-def]
    """Share of a column that lies between two codes; of a set, by the number of its codes."""
    first = layout.offsets[column]
    if has_hierarchy(taxonomy, column):
        return common_width(taxonomy, first + low, first + high)
    if layout.is_category[column]:
        return (n_present - 1) / max(1, layout.offsets[column + 1] - first - 1)
    if high == layout.missing[column]:
        return 0.0 if low == high else 1.0  # values beside missing: anything is possible
    return layout.high[first + high] - layout.low[first + low]


@njit(nogil=True, cache=True)
def _n_in_sets(boxes, layout, column, words, others):  # type: ignore[no-untyped-def]
    """Number of codes of a column in the union of two sets."""
    n = 0
    first = boxes.word_of[column]
    for w in range(first, first + (layout.offsets[column + 1] - layout.offsets[column] + 63) // 64):
        n += _count_bits(words[w] | others[w])
    return n


@njit(nogil=True, cache=True)
def total_width(ground, active, low, high, words, others, skipped, n_skipped):  # type: ignore[no-untyped-def]
    """Return the sum of the widths of the active columns of a box, whose sets are the union of two.

    Columns whose sets are too large to follow keep the width of the node; of the column `skipped`, which is cut, the
    number of codes is known.
    """
    layout, taxonomy, boxes, columns = ground.layout, ground.taxonomy, ground.boxes, active.columns
    width = 0.0
    for at in range(columns.shape[0]):
        column = columns[at]
        n_present = np.int64(0)
        if layout.is_category[column] and not has_hierarchy(taxonomy, column):
            if column == skipped:
                n_present = n_skipped
            elif boxes.word_of[column] < 0:
                width += active.widths[at]
                continue
            else:
                n_present = _n_in_sets(boxes, layout, column, words, others)
        width += column_width(layout, taxonomy, column, low[at], high[at], n_present)
    return width


@njit(nogil=True, cache=True)
def measure_node(ground, order, start, stop, scratch):  # type: ignore[no-untyped-def]
    """Write the first and last code and the width of each column of a run of records; return the sum of widths."""
    codes, layout, taxonomy = ground.codes, ground.layout, ground.taxonomy
    counts, low, high, widths = scratch.counts, scratch.low, scratch.high, scratch.widths
    n_columns = layout.missing.shape[0]
    for column in range(n_columns):
        low[column] = high[column] = codes[order[start], column]
    for i in range(start + 1, stop):
        row = order[i]
        for column in range(n_columns):
            code = np.int64(codes[row, column])
            if code < low[column]:
                low[column] = code
            if code > high[column]:
                high[column] = code
    total = 0.0
    for column in range(n_columns):
        n_present = np.int64(1)
        if low[column] < high[column] and layout.is_category[column] and not has_hierarchy(taxonomy, column):
            n_present = np.int64(0)
            for i in range(start, stop):
                code = codes[order[i], column]
                n_present += counts[code] == 0
                counts[code] = 1
            counts[low[column] : high[column] + 1] = 0
        widths[column] = column_width(layout, taxonomy, column, low[column], high[column], n_present)
        total += widths[column]
    return total


@njit(nogil=True, cache=True)
def number_children(ground, order, start, stop, column, scratch):  # type: ignore[no-untyped-def]
    """Write which child of a column each code present belongs to, -1 for absent codes between them.

    A child is a label below the one that all have in common, or a code. Codes of a category without a hierarchy are
    numbered by falling frequency, all others in their order. Of many codes, neighbors share a child, with about as
    many records each; of many categories the rarest do. Returns the number of children, the first and the last code
    present, the level of the children, and how many codes are present.
    """
    codes, weights, layout, taxonomy = ground.codes, ground.weights, ground.layout, ground.taxonomy
    counts, child = scratch.counts, scratch.child
    first = layout.offsets[column]
    lowest = highest = np.int64(codes[order[start], column])
    for i in range(start, stop):
        own = np.int64(codes[order[i], column])
        counts[own] += weights[order[i]]
        if own < lowest:
            lowest = own
        if own > highest:
            highest = own
    n_present, total = 0, 0
    for code in range(lowest, highest + 1):
        n_present += counts[code] > 0
        total += counts[code]
    n_children, level = 0, -1
    if has_hierarchy(taxonomy, column):
        level = common_level(taxonomy, first + lowest, first + highest) - 1
        mark = -1
        for code in range(lowest, highest + 1):
            child[code] = -1
            if counts[code] > 0:
                if n_children == 0 or taxonomy.label[first + code, level] != mark:
                    mark = taxonomy.label[first + code, level]
                    n_children += 1
                child[code] = n_children - 1
    elif layout.is_category[column]:
        ranked = np.argsort(-counts[lowest : highest + 1], kind="mergesort")
        for place in range(ranked.shape[0]):
            code = lowest + ranked[place]
            child[code] = -1
            if counts[code] > 0:
                child[code] = min(n_children, MOST_CHILDREN - 1)
                n_children += 1
        n_children = min(n_children, MOST_CHILDREN)
    else:
        before, mark = 0, -1
        for code in range(lowest, highest + 1):
            child[code] = -1
            if counts[code] > 0:
                share = n_children if n_present <= MOST_CHILDREN else before * MOST_CHILDREN // total
                if share != mark:
                    mark = share
                    n_children += 1
                child[code] = n_children - 1
                before += counts[code]
    counts[lowest : highest + 1] = 0
    return n_children, lowest, highest, level, n_present


@njit(nogil=True, cache=True)
def _measure_sides(ground, order, start, stop, column, columns, m, scratch):  # type: ignore[no-untyped-def]
    """Write the boxes of the children of a column, and of what lies before and after each."""
    codes, weights, boxes, child, sides = ground.codes, ground.weights, ground.boxes, scratch.child, scratch.sides
    n_active, n_words = columns.shape[0], boxes.n_words
    sizes, low, high, sets = sides.sizes, sides.low, sides.high, sides.sets
    for q in range(m):
        sizes[q] = 0
        for at in range(n_active):
            low[0, q, at], high[0, q, at] = 65_536, -1
        for w in range(n_words):
            sets[0, q, w] = 0
    # Nothing lies before the first child, and nothing after the last.
    for at in range(n_active):
        low[1, 0, at], high[1, 0, at], low[2, m, at], high[2, m, at] = 65_536, -1, 65_536, -1
    for w in range(n_words):
        sets[1, 0, w] = sets[2, m, w] = 0
    for i in range(start, stop):
        row = order[i]
        q = child[codes[row, column]]
        sizes[q] += weights[row]
        for at in range(n_active):
            code = np.int32(codes[row, columns[at]])
            if code < low[0, q, at]:
                low[0, q, at] = code
            if code > high[0, q, at]:
                high[0, q, at] = code
        if n_words > 0:
            for at in range(n_active):
                word = boxes.word_of[columns[at]]
                if word >= 0:
                    code = np.int32(codes[row, columns[at]])
                    sets[0, q, word + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)
    for q in range(m):
        for at in range(n_active):
            low[1, q + 1, at] = min(low[1, q, at], low[0, q, at])
            high[1, q + 1, at] = max(high[1, q, at], high[0, q, at])
        for w in range(n_words):
            sets[1, q + 1, w] = sets[1, q, w] | sets[0, q, w]
    for q in range(m - 1, -1, -1):
        for at in range(n_active):
            low[2, q, at] = min(low[2, q + 1, at], low[0, q, at])
            high[2, q, at] = max(high[2, q + 1, at], high[0, q, at])
        for w in range(n_words):
            sets[2, q, w] = sets[2, q + 1, w] | sets[0, q, w]


@njit(nogil=True, cache=True)
def best_cut_of_column(  # type: ignore[no-untyped-def]
    ground, order, start, stop, n, column, active, aside_width, scratch
):
    """Return the largest fall of the widths that cutting one column brings, and which children go left for it.

    A side with fewer than k of the n records would be set aside and cost `aside_width` per record.
    """
    layout, k, sides, ends = ground.layout, ground.min_records, scratch.sides, scratch.ends
    m, _, _, _, n_codes = number_children(ground, order, start, stop, column, scratch)
    _measure_sides(ground, order, start, stop, column, active.columns, m, scratch)
    low, high, sets = sides.low, sides.high, sides.sets
    nothing = sets[1, 0]  # before the first child lies nothing
    best_fall, best_kind, best_child = 0.0, -1, -1
    n_before = 0
    for q in range(m - 1 if not layout.is_category[column] else m):
        n_before += sides.sizes[q]
        for kind in range(2):
            if kind == ALONE and (not layout.is_category[column] or q == 0):
                continue  # ordered columns are cut in two; the first child alone is a prefix
            n_left = sides.sizes[q] if kind == ALONE else n_before
            n_right = n - n_left
            if n_right == 0 or (n_left < k and n_right < k):
                continue
            # How many codes of a set go left: the last of many children holds all the rarest.
            codes_left = q + 1
            if kind == ALONE:
                codes_left = 1 if q < m - 1 else n_codes - m + 1
            left_width = right_width = aside_width
            if n_left >= k:
                part = 0 if kind == ALONE else 1
                at_row = q if kind == ALONE else q + 1
                left_width = total_width(
                    ground, active, low[part, at_row], high[part, at_row], sets[part, at_row], nothing, column,
                    codes_left,
                )  # fmt: skip
            if n_right >= k:
                for at in range(active.columns.shape[0]):
                    ends[0, at], ends[1, at] = low[2, q + 1, at], high[2, q + 1, at]
                    if kind == ALONE:
                        ends[0, at] = min(ends[0, at], low[1, q, at])
                        ends[1, at] = max(ends[1, at], high[1, q, at])
                right_width = total_width(
                    ground, active, ends[0], ends[1], sets[2, q + 1], sets[1, q] if kind == ALONE else nothing, column,
                    n_codes - codes_left,
                )  # fmt: skip
            fall = n_left * (active.width - left_width) + n_right * (active.width - right_width)
            if fall > best_fall:
                best_fall, best_kind, best_child = fall, kind, q
    return best_fall, best_kind, best_child
