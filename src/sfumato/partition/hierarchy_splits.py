# SPDX-License-Identifier: Apache-2.0
"""Find the splits of a column with a hierarchy: between the children of the label that the node's records share.

Some first children go left, or one child alone, so that a side of one child has a finer label. ``split_search`` calls
this, column by column.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.guides import INFORMATION_LOSS
from sfumato.partition.kernel_options import INSIDE
from sfumato.partition.scoring import n_summed, offer, side_gain, write_codes, write_ordered
from sfumato.partition.taxonomy import common_level, common_width

_PENDING = -2
"""Below -1, `last_bin` holds the codes that go left of a hierarchy split whose mask is still to be written."""


@njit(**INSIDE)
def _present_ends(hist, first, n_codes):  # type: ignore[no-untyped-def]
    """Return the first and the last code with records; (n_codes, -1) without records."""
    lowest, highest = n_codes, -1
    for code in range(n_codes):
        if hist[first + code, 0] > 0:
            highest = code
            if lowest == n_codes:
                lowest = code
    return lowest, highest


@njit(**INSIDE)
def _add_child(scan, first, code, highest, level, entries):  # type: ignore[no-untyped-def]
    """Sum up the child that starts at `code`; return its last present code, its end and the next child."""
    hist, label, out = scan.hist, scan.scoring.taxonomy.label, scan.scratch.with_missing
    for e in range(entries):
        out[e] = 0
    mark = label[first + code, level]
    last_present = code
    stop = code
    while stop <= highest and label[first + stop, level] == mark:
        if hist[first + stop, 0] > 0:
            last_present = stop
            for e in range(entries):
                out[e] += hist[first + stop, e]
        stop += 1
    following = stop
    while following <= highest and hist[first + following, 0] == 0:
        following += 1
    return last_present, stop, following


@njit(**INSIDE)
def scan_hierarchy(scan, column):  # type: ignore[no-untyped-def]
    """Offer every prefix of the children present, and every child in between alone."""
    taxonomy, scratch, out, node = scan.scoring.taxonomy, scan.scratch, scan.out, scan.node
    first = scan.layout.offsets[column]
    n_codes = scan.layout.offsets[column + 1] - first
    entries = n_summed(scan)
    left, own = scratch.left, scratch.with_missing
    total, mean, weights, weight_at = scratch.total, scratch.mean, scan.scoring.channel_weights, scan.weight_at
    rule, floor, n, k = scan.rule, scan.floor, total[0], scan.scoring.min_records
    lowest, highest = _present_ends(scan.hist, first, n_codes)
    if lowest >= highest:
        return
    level = common_level(taxonomy, first + lowest, first + highest) - 1
    node_width = taxonomy.width[first + lowest, level + 1]
    for e in range(entries):
        left[e] = 0
    child, code = np.int64(0), lowest
    while code <= highest:
        last_present, stop, following = _add_child(scan, first, code, highest, level, entries)
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
                gain = side_gain(rule, side, total, mean, weights, weight_at)
            if gain > floor:
                rank = offer(out, node, scan.after, column, gain, 2 * child + alone)
                if rank >= 0:
                    start = code if alone == 1 else 0
                    write_ordered(out, node, rank, column, _PENDING - (start * n_codes + stop), np.bool_(False), n_left)
        child += 1
        code = following
    # Masks are as wide as the column: they are written once, for the candidates that are left.
    for rank in range(out.n_found[node]):
        if out.column[node, rank] == column and out.last_bin[node, rank] <= _PENDING:
            start, stop = divmod(_PENDING - out.last_bin[node, rank], n_codes)
            _write_children(scan, rank, column, level, start, stop)


@njit(**INSIDE)
def _write_children(scan, rank, column, level, start, stop):  # type: ignore[no-untyped-def]
    """Store a split whose left side is the codes from start to stop, start excepted where others share its label.

    Codes that are absent from the node go with the child they lie below, else by their place in the tree; missing
    values follow the larger side where the node has none.
    """
    layout, label, is_left = scan.layout, scan.scoring.taxonomy.label, scan.scratch.is_left
    first, missing = layout.offsets[column], layout.missing[column]
    while start > 0 and label[first + start - 1, level] == label[first + start, level]:
        start -= 1
    n_left = scan.out.n_left[scan.node, rank]
    for code in range(layout.offsets[column + 1] - first):
        is_left[code] = start <= code < stop
    if missing >= 0 and scan.hist[first + missing, 0] == 0:
        is_left[missing] = 2 * n_left > scan.scratch.total[0]
    write_codes(scan, rank, column, n_left)


@njit(**INSIDE)
def scan_hierarchy_median(scan, column):  # type: ignore[no-untyped-def]
    """Offer one cut: the admissible prefix of the children nearest the median, scored by the label's width."""
    taxonomy = scan.scoring.taxonomy
    first = scan.layout.offsets[column]
    n_codes = scan.layout.offsets[column + 1] - first
    n, k = scan.scratch.total[0], scan.scoring.min_records
    lowest, highest = _present_ends(scan.hist, first, n_codes)
    if lowest >= highest:
        return
    level = common_level(taxonomy, first + lowest, first + highest) - 1
    best_stop, best_distance, best_left = np.int64(-1), n + 1, np.int64(0)
    n_left, code = 0, lowest
    while code <= highest:
        _, stop, following = _add_child(scan, first, code, highest, level, np.int64(1))
        n_left += scan.scratch.with_missing[0]
        code = following
        if n_left < k or n - n_left < k:
            continue
        distance = abs(2 * n_left - n)
        if following <= highest and distance < best_distance:
            best_stop, best_distance, best_left = stop, distance, n_left
    if best_stop < 0:
        return
    width = taxonomy.width[first + lowest, level + 1]
    rank = offer(scan.out, scan.node, scan.after, column, width, np.int64(0))
    if rank >= 0:
        scan.out.n_left[scan.node, rank] = best_left
        _write_children(scan, rank, column, level, np.int64(0), best_stop)
