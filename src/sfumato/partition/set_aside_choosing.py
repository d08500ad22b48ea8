# SPDX-License-Identifier: Apache-2.0
"""Choose where ``set_aside_kernels`` cuts a node: by the widths of all columns, looking one cut ahead.

What the records of a node lose is the sum of its columns' widths, measured on ``boxes``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.boxes import ALONE, best_cut_of_column, measure_node, number_children, total_width
from sfumato.partition.taxonomy import has_hierarchy

LOOKED_AHEAD = 3
"""Columns, those whose best cuts bring most, that are judged by what the next cuts bring as well."""

COMES_NEAR = 0.5
"""Share of what the best cut brings from which on another column is looked ahead at."""

ASIDE_SHARE = 0.9
"""Width that a record set aside is taken to end with, over the width of the node it was set aside below."""

RELATIVE_NOISE = 1e-9
"""Falls per record up to this are rounding."""


@njit(nogil=True, cache=True)
def weigh(weights, order, start, stop):  # type: ignore[no-untyped-def]
    """Return how many records a run of distinct ones stands for."""
    size = 0
    for i in range(start, stop):
        size += weights[order[i]]
    return size


@njit(nogil=True, cache=True)
def _scan_columns(ground, order, start, stop, size, aside, scratch, fall, kind, which):  # type: ignore[no-untyped-def]
    """Write the best cut of each column of a run of records, 0 where none brings anything; return the run's width."""
    layout, taxonomy = ground.layout, ground.taxonomy
    n_columns = layout.missing.shape[0]
    if size <= ground.min_records:
        fall[:] = 0.0
        return 0.0  # no cut leaves enough on one side
    width = measure_node(
        ground.codes, order, start, stop, layout, taxonomy, scratch.counts, scratch.low, scratch.high, scratch.widths
    )
    columns, kept = np.empty(n_columns, np.int64), np.empty(n_columns)
    n_active, active_width = 0, 0.0
    for column in range(n_columns):
        fall[column] = 0.0
        if scratch.low[column] < scratch.high[column]:
            columns[n_active], kept[n_active] = column, scratch.widths[column]
            active_width += scratch.widths[column]
            n_active += 1
    # Widths of columns with one code are the same on all sides, so they are left out of both.
    aside_width = max(active_width, active_width + aside - width)
    for at in range(n_active):
        column = columns[at]
        fall[column], kind[column], which[column] = best_cut_of_column(
            ground.codes, order, ground.weights, start, stop, size, column, columns[:n_active], kept[:n_active],
            active_width, aside_width, ground.min_records, layout, taxonomy, ground.boxes, scratch.counts,
            scratch.child, scratch.sides, scratch.ends,
        )  # fmt: skip
        if fall[column] <= RELATIVE_NOISE * size:
            fall[column] = 0.0
    return width


@njit(nogil=True, cache=True)
def rank_columns(growth, ground, scratch, node):  # type: ignore[no-untyped-def]
    """Rank the columns by what cutting them brings, the first few by what the next cuts bring as well.

    Write them into the scratch, and return how many bring anything.
    """
    start, stop, size, fall = growth.start[node], growth.stop[node], growth.size[node], growth.fall[node]
    if not growth.is_scanned[node]:
        growth.width[node] = _scan_columns(
            ground, growth.order, start, stop, size, growth.aside[node], scratch, fall, growth.kind[node],
            growth.which[node],
        )  # fmt: skip
    ranking = np.argsort(-fall, kind="mergesort")
    n_ranked = 0
    while n_ranked < ranking.shape[0] and fall[ranking[n_ranked]] > 0:
        n_ranked += 1
    scratch.ranking[:] = ranking
    scratch.place_of[:] = -1
    n_ahead = 0
    while n_ahead < min(LOOKED_AHEAD, n_ranked) and fall[ranking[n_ahead]] >= COMES_NEAR * fall[ranking[0]]:
        n_ahead += 1
    if n_ahead < 2:
        return n_ranked
    score = np.zeros(n_ahead)
    for place in range(n_ahead):
        column = ranking[place]
        scratch.place_of[column] = place
        score[place] = fall[column]
        middle = cut(growth, ground, scratch, node, column)
        for at in range(2):
            first, last = (start, middle) if at == 0 else (middle, stop)
            n_side = weigh(ground.weights, growth.order, first, last)
            if n_side >= ground.min_records:
                scratch.ahead_width[place, at] = _scan_columns(
                    ground, growth.order, first, last, n_side, ASIDE_SHARE * growth.width[node], scratch,
                    scratch.ahead_fall[place, at], scratch.ahead_kind[place, at], scratch.ahead_which[place, at],
                )  # fmt: skip
                score[place] += scratch.ahead_fall[place, at].max()
    ahead = np.argsort(-score, kind="mergesort")
    for place in range(n_ahead):
        scratch.ranking[place] = ranking[ahead[place]]
    return n_ranked


@njit(nogil=True, cache=True)
def is_worth_with_one_side(growth, ground, scratch, node, keeps_left, n_left):  # type: ignore[no-untyped-def]
    """True when cutting a node lowers the widths although one side, not safe, has to be set aside."""
    start, middle, stop, size = growth.start[node], growth.middle[node], growth.stop[node], growth.size[node]
    first, last = (start, middle) if keeps_left else (middle, stop)
    kept_width = measure_node(
        ground.codes, growth.order, first, last, ground.layout, ground.taxonomy, scratch.counts, scratch.low,
        scratch.high, scratch.widths,
    )  # fmt: skip
    width = growth.width[node]
    n_kept = n_left if keeps_left else size - n_left
    fall = n_kept * (width - kept_width) + (size - n_kept) * (width - max(width, growth.aside[node]))
    return fall > RELATIVE_NOISE * size


@njit(nogil=True, cache=True)
def cut(growth, ground, scratch, node, column):  # type: ignore[no-untyped-def]
    """Write the best cut of a column into a node and move the records that go left to the beginning of its run."""
    _write_split(growth, ground, scratch, node, column)
    start, stop, order, spare = growth.start[node], growth.stop[node], growth.order, growth.spare
    at, n_right = start, 0
    for i in range(start, stop):
        row = order[i]
        if scratch.is_left[ground.codes[row, column]]:
            order[at] = row
            at += 1
        else:
            spare[n_right] = row
            n_right += 1
    for i in range(n_right):
        order[at + i] = spare[i]
    return at


@njit(nogil=True, cache=True)
def _write_split(growth, ground, scratch, node, column):  # type: ignore[no-untyped-def]
    """Write the best cut of a column into a node, and into the scratch which codes go left.

    Codes absent from the node: those below a label go with it; others of a hierarchy and of ordered columns by their
    place; categories and missing values with the larger side.
    """
    layout, taxonomy = ground.layout, ground.taxonomy
    start, stop = growth.start[node], growth.stop[node]
    kind, which = growth.kind[node, column], growth.which[node, column]
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    missing = layout.missing[column]
    child, is_left = scratch.child, scratch.is_left
    _, lowest, highest, level, _ = number_children(
        ground.codes, growth.order, ground.weights, start, stop, column, layout, taxonomy, scratch.counts, child
    )
    has_missing = missing >= 0 and lowest <= missing <= highest and child[missing] >= 0
    from_code, to_code = n_codes, -1  # of the codes that go left
    for code in range(lowest, highest + 1):
        is_left[code] = child[code] >= 0 and (child[code] == which if kind == ALONE else child[code] <= which)
        if is_left[code]:
            to_code = code
            from_code = min(from_code, code)
    n_left = 0
    for i in range(start, stop):
        if is_left[ground.codes[growth.order[i], column]]:
            n_left += ground.weights[growth.order[i]]
    larger = 2 * n_left > growth.size[node]
    if has_hierarchy(taxonomy, column):
        label = taxonomy.label
        while to_code + 1 < n_codes and label[first + to_code + 1, level] == label[first + to_code, level]:
            to_code += 1
        while from_code > 0 and label[first + from_code - 1, level] == label[first + from_code, level]:
            from_code -= 1
        if kind != ALONE:
            from_code = 0
        for code in range(n_codes):
            is_left[code] = from_code <= code <= to_code
    elif layout.is_category[column]:
        for code in range(n_codes):
            if code < lowest or code > highest or child[code] < 0:
                is_left[code] = larger
    else:
        for code in range(n_codes):
            is_left[code] = code <= to_code  # missing, the last of all codes, is never among the first children
    if missing >= 0 and not has_missing:
        is_left[missing] = larger
    growth.column[node] = column
    growth.missing_left[node] = is_left[missing] if has_missing else larger
    growth.last_bin[node] = -1 if layout.is_category[column] else to_code
    growth.mask[node] = 0
    if layout.is_category[column]:
        for code in range(n_codes):
            if is_left[code]:
                growth.mask[node, code >> 6] |= np.uint64(1) << np.uint64(code & 63)


@njit(nogil=True, cache=True)
def loss_rises(ground, group_of_record, joining, out):  # type: ignore[no-untyped-def]
    """Write what taking in some records would cost all records of each group together."""
    codes, layout, taxonomy, boxes = ground.codes, ground.layout, ground.taxonomy, ground.boxes
    n_groups, n_columns = out.shape[0], layout.missing.shape[0]
    # One box per group, and the last for the records that are to join.
    low = np.full((n_groups + 1, n_columns), 65_536, np.int32)
    high = np.full((n_groups + 1, n_columns), -1, np.int32)
    sets = np.zeros((n_groups + 1, boxes.n_words), np.uint64)
    sizes = np.zeros(n_groups + 1, np.int64)
    n_records = group_of_record.shape[0]
    for i in range(n_records + joining.shape[0]):
        row = i if i < n_records else joining[i - n_records]
        g = group_of_record[row] if i < n_records else n_groups
        if g < 0:
            continue
        sizes[g] += ground.weights[row]
        for column in range(n_columns):
            code = np.int32(codes[row, column])
            low[g, column] = min(low[g, column], code)
            high[g, column] = max(high[g, column], code)
            word = boxes.word_of[column]
            if word >= 0:
                sets[g, word + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)
    columns, unknown = np.arange(n_columns), np.zeros(n_columns)
    nothing = np.zeros(boxes.n_words, np.uint64)
    for g in range(n_groups):
        alone = total_width(
            layout, taxonomy, boxes, columns, low[g], high[g], sets[g], nothing, unknown, np.int64(-1), np.int64(0)
        )
        for column in range(n_columns):
            low[g, column] = min(low[g, column], low[n_groups, column])
            high[g, column] = max(high[g, column], high[n_groups, column])
        together = total_width(
            layout,
            taxonomy,
            boxes,
            columns,
            low[g],
            high[g],
            sets[g],
            sets[n_groups],
            unknown,
            np.int64(-1),
            np.int64(0),
        )
        out[g] = (sizes[g] + sizes[n_groups]) * together - sizes[g] * alone
