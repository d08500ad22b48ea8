# SPDX-License-Identifier: Apache-2.0
"""The splits of a column with a hierarchy: between the children of the label that a node's records have in common.

Some first children go left, or one child alone; sides are never cut across a child, so that a side of one child has a
finer label. ``splitting`` calls this for the columns that ``taxonomy`` knows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.candidates import offer, write_codes, write_ordered
from sfumato.partition.guides import INFORMATION_LOSS
from sfumato.partition.scoring import side_gain
from sfumato.partition.taxonomy import common_level, common_width

_PENDING = -2
"""Below -1, `last_bin` holds the codes that go left of a split whose mask is still to be written."""


@njit(nogil=True, cache=True)
def present_ends(hist, first, n_codes):  # type: ignore[no-untyped-def]
    """First and last code with records; (n_codes, -1) where there is none."""
    lowest, highest = n_codes, -1
    for code in range(n_codes):
        if hist[first + code, 0] > 0:
            highest = code
            if lowest == n_codes:
                lowest = code
    return lowest, highest


@njit(nogil=True, cache=True)
def add_child(hist, taxonomy, first, code, highest, level, entries, out):  # type: ignore[no-untyped-def]
    """Write the sums of the child that starts at `code`; return its last present code, its end and the next child."""
    for e in range(entries):
        out[e] = 0
    mark = taxonomy.label[first + code, level]
    last_present = code
    stop = code
    while stop <= highest and taxonomy.label[first + stop, level] == mark:
        if hist[first + stop, 0] > 0:
            last_present = stop
            for e in range(entries):
                out[e] += hist[first + stop, e]
        stop += 1
    following = stop
    while following <= highest and hist[first + following, 0] == 0:
        following += 1
    return last_present, stop, following


@njit(nogil=True, cache=True)
def scan_hierarchy(hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
    """Offer every prefix of the children present, and every child in between alone."""
    taxonomy = scoring.taxonomy
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    entries = hist.shape[1] if rule != INFORMATION_LOSS else 1  # which counts records alone
    total, left, own = scratch.total, scratch.left, scratch.with_missing
    weight_at = hist.shape[1] - 1 if scoring.is_weighted else 0
    k = scoring.min_records
    n = total[0]
    lowest, highest = present_ends(hist, first, n_codes)
    if lowest >= highest:
        return
    level = common_level(taxonomy, first + lowest, first + highest) - 1
    node_width = taxonomy.width[first + lowest, level + 1]
    for e in range(entries):
        left[e] = 0
    child, code = 0, lowest
    while code <= highest:
        last_present, stop, following = add_child(hist, taxonomy, first, code, highest, level, entries, own)
        for e in range(entries):
            left[e] += own[e]
        if following > highest:
            break  # the last child: all records would be on one side
        for alone in range(2 if child > 0 else 1):
            side = own if alone == 1 else left
            n_left = side[0]
            if n_left < k or n - n_left < k:
                continue
            if rule == INFORMATION_LOSS:
                left_width = common_width(taxonomy, first + (code if alone == 1 else lowest), first + last_present)
                right_width = node_width
                if alone == 0:
                    right_width = common_width(taxonomy, first + following, first + highest)
                gain = n * node_width - n_left * left_width - (n - n_left) * right_width
            else:
                gain = side_gain(rule, side, total, scratch.mean, scoring.channel_weights, weight_at)
            if gain > floor:
                position = (np.int64(column) << 40) + 2 * child + alone
                rank = offer(out, node, gain, position, after_gain, after_position)
                if rank >= 0:
                    start = code if alone == 1 else 0
                    write_ordered(out, node, rank, column, _PENDING - (start * n_codes + stop), np.bool_(False), n_left)
        child += 1
        code = following
    # Masks are as wide as the column: they are written once, for the candidates that are left.
    for rank in range(out.n_found[node]):
        if out.column[node, rank] == column and out.last_bin[node, rank] <= _PENDING:
            start, stop = divmod(_PENDING - out.last_bin[node, rank], n_codes)
            write_children(hist, layout, taxonomy, column, level, start, stop, scratch, out, node, rank, n)


@njit(nogil=True, cache=True)
def write_children(hist, layout, taxonomy, column, level, start, stop, scratch, out, node, rank, n):  # type: ignore[no-untyped-def]
    """Store a split whose left side is the codes from start to stop, start excepted where others share its label.

    Codes that are absent from the node go with the child they lie below, else by their place in the tree; missing
    values follow the larger side where the node has none.
    """
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    missing = layout.missing[column]
    while start > 0 and taxonomy.label[first + start - 1, level] == taxonomy.label[first + start, level]:
        start -= 1
    n_left = out.n_left[node, rank]
    for code in range(n_codes):
        scratch.is_left[code] = start <= code < stop
    if missing >= 0 and hist[first + missing, 0] == 0:
        scratch.is_left[missing] = 2 * n_left > n
    write_codes(out, node, rank, column, n_codes, scratch.is_left, n_left, n)


@njit(nogil=True, cache=True)
def scan_hierarchy_median(hist, layout, column, scoring, scratch, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
    """Offer one cut: the admissible prefix of the children nearest the median, scored by the label's width."""
    taxonomy = scoring.taxonomy
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    n = scratch.total[0]
    lowest, highest = present_ends(hist, first, n_codes)
    if lowest >= highest:
        return
    level = common_level(taxonomy, first + lowest, first + highest) - 1
    best_stop, best_distance, best_left = np.int64(-1), n + 1, np.int64(0)
    n_left, code = 0, lowest
    while code <= highest:
        _, stop, following = add_child(hist, taxonomy, first, code, highest, level, np.int64(1), scratch.with_missing)
        n_left += scratch.with_missing[0]
        code = following
        if n_left < scoring.min_records or n - n_left < scoring.min_records:
            continue
        distance = abs(2 * n_left - n)
        if following <= highest and distance < best_distance:
            best_stop, best_distance, best_left = stop, distance, n_left
    if best_stop < 0:
        return
    width = taxonomy.width[first + lowest, level + 1]
    rank = offer(out, node, width, np.int64(column) << 40, after_gain, after_position)
    if rank >= 0:
        out.n_left[node, rank] = best_left
        write_children(hist, layout, taxonomy, column, level, np.int64(0), best_stop, scratch, out, node, rank, n)
