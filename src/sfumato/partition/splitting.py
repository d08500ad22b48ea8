# SPDX-License-Identifier: Apache-2.0
"""Find the best admissible splits of one node from its histogram.

A split sends some codes of one column left, the others right. Ordered columns split at a prefix of their bins,
missing values on either side or alone; category columns at subsets or prefixes (see ``category_splits``); columns
with a hierarchy between the children of a label (see ``hierarchy_splits``). A split is considered only when both
sides keep `min_records`; the others are never scored.

Candidates are totally ordered by (gain falling, column, position), so ties never depend on the records' order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.candidates import offer, write_ordered, write_subset
from sfumato.partition.category_splits import scan_categories
from sfumato.partition.guides import CHANNELS, ENTROPY, INFORMATION_LOSS, MEDIAN
from sfumato.partition.hierarchy_splits import scan_hierarchy, scan_hierarchy_median
from sfumato.partition.scoring import is_everyday, is_everyday_loss, noise_floor, side_gain
from sfumato.partition.single_best import best_cut, best_cut_by_loss
from sfumato.partition.taxonomy import has_hierarchy

_ANY_FALL = -1.0
"""What information loss must fall by: any division lowers it, but beside an outlier the fall may round to nothing."""


@njit(nogil=True, cache=True)
def _scan_ordered(hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
    """Offer every prefix of an ordered column, with missing right and, where present, with missing left."""
    first = layout.offsets[column]
    n_values = layout.n_values[column]
    entries = hist.shape[1] if rule != INFORMATION_LOSS else 1  # which counts records alone
    total, left, with_missing = scratch.total, scratch.left, scratch.with_missing
    weight_at = hist.shape[1] - 1 if scoring.is_weighted else 0
    k = scoring.min_records
    n = total[0]
    missing_row = first + layout.missing[column]
    n_missing = hist[missing_row, 0] if layout.missing[column] >= 0 else 0
    lowest = 0
    while lowest < n_values and hist[first + lowest, 0] == 0:
        lowest += 1
    highest = n_values - 1
    while highest > lowest and hist[first + highest, 0] == 0:
        highest -= 1
    if lowest >= n_values or (lowest == highest and n_missing == 0):
        return
    for e in range(entries):
        left[e] = 0
    node_width = 1.0 if n_missing > 0 else layout.high[first + highest] - layout.low[first + lowest]
    b = lowest
    while b <= highest:
        for e in range(entries):
            left[e] += hist[first + b, e]
        following = b + 1
        while following <= highest and hist[first + following, 0] == 0:
            following += 1
        n_left = left[0]
        if n - n_left < k:
            return  # the right side only shrinks from here
        left_width = layout.high[first + b] - layout.low[first + lowest]
        if n_left >= k and n - n_left >= k:
            if rule == INFORMATION_LOSS:
                if n_missing == 0:
                    right_width = layout.high[first + highest] - layout.low[first + following]
                else:
                    right_width = 1.0 if following <= highest else 0.0
                gain = n * node_width - n_left * left_width - (n - n_left) * right_width
            else:
                gain = side_gain(rule, left, total, scratch.mean, scoring.channel_weights, weight_at)
            if gain > floor:
                position = (np.int64(column) << 40) + 2 * b
                rank = offer(out, node, gain, position, after_gain, after_position)
                if rank >= 0:
                    missing_left = n_missing == 0 and 2 * n_left > n
                    write_ordered(out, node, rank, column, b, missing_left, n_left)
        if n_missing > 0 and n_left + n_missing >= k and n - n_left - n_missing >= k:
            for e in range(entries):
                with_missing[e] = left[e] + hist[missing_row, e]
            n_left += n_missing
            if rule == INFORMATION_LOSS:
                right_width = layout.high[first + highest] - layout.low[first + following]
                gain = n * node_width - n_left * 1.0 - (n - n_left) * right_width
            else:
                gain = side_gain(rule, with_missing, total, scratch.mean, scoring.channel_weights, weight_at)
            if gain > floor:
                position = (np.int64(column) << 40) + 2 * b + 1
                rank = offer(out, node, gain, position, after_gain, after_position)
                if rank >= 0:
                    write_ordered(out, node, rank, column, b, np.bool_(True), n_left)
        b = following


@njit(nogil=True, cache=True)
def _scan_median(hist, layout, column, scoring, scratch, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
    """Offer one cut per column: the admissible prefix nearest the median, scored by the column's width."""
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    is_category = layout.is_category[column]
    missing = layout.missing[column]
    n = scratch.total[0]
    n_present = 0
    lowest, highest = -1, -1
    for code in range(n_codes):
        if hist[first + code, 0] > 0:
            n_present += 1
            if code != missing:
                highest = code
                if lowest < 0:
                    lowest = code
    if n_present < 2:
        return
    if is_category:
        width = (n_present - 1) / max(1, n_codes - 1)
    elif missing >= 0 and hist[first + missing, 0] > 0:
        width = 1.0
    else:
        width = layout.high[first + highest] - layout.low[first + lowest]
    best, best_distance, best_left = np.int64(-1), n + 1, np.int64(0)
    n_left = 0
    for code in range(n_codes - 1):
        if hist[first + code, 0] == 0:
            continue
        n_left += hist[first + code, 0]
        if n_left < scoring.min_records or n - n_left < scoring.min_records:
            continue
        distance = abs(2 * n_left - n)
        if distance < best_distance:
            best, best_distance, best_left = np.int64(code), distance, n_left
    if best < 0:
        return
    position = np.int64(column) << 40
    rank = offer(out, node, width, position, after_gain, after_position)
    if rank < 0:
        return
    if is_category:
        for code in range(n_codes):
            scratch.is_left[code] = code <= best
        write_subset(out, node, rank, column, hist, first, n_codes, scratch.is_left, best_left, n)
    else:
        missing_left = (missing < 0 or hist[first + missing, 0] == 0) and 2 * best_left > n
        write_ordered(out, node, rank, column, best, missing_left, best_left)


@njit(nogil=True, cache=True)
def _scan_columns(hist, layout, rule, scoring, scratch, floor, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
    for column in range(layout.missing.shape[0]):
        if scratch.lowest[column] == scratch.highest[column]:
            continue  # one code: nothing to split
        if has_hierarchy(scoring.taxonomy, column):
            if rule == MEDIAN:
                scan_hierarchy_median(hist, layout, column, scoring, scratch, after_gain, after_position, out, node)
            else:
                scan_hierarchy(
                    hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node
                )
        elif rule == MEDIAN:
            _scan_median(hist, layout, column, scoring, scratch, after_gain, after_position, out, node)
        elif layout.is_category[column]:
            scan_categories(hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node)
        elif is_everyday(hist, rule, after_gain, out):
            best_cut(hist, layout, column, scoring, scratch, floor, out, node)
        elif is_everyday_loss(rule, after_gain, out):
            best_cut_by_loss(hist, layout, column, scoring, scratch, out, node)
        else:
            _scan_ordered(hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node)


@njit(nogil=True, cache=True)
def find_splits(hist, layout, scoring, scratch, after_phase, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
    """Write the node's best candidates that come after the given one into row `node` of `out`.

    The first round starts after (phase 0, infinity, -1). Phase 0 ranks by the guide; phase 1, when the guide
    has nothing (more) to offer and `fall_back` is set, by information loss.
    """
    for column in range(layout.missing.shape[0]):
        scratch.lowest[column] = 0
        scratch.highest[column] = layout.offsets[column + 1] - layout.offsets[column] - 1
    find_splits_between(hist, layout, scoring, scratch, after_phase, after_gain, after_position, out, node)


@njit(nogil=True, cache=True)
def find_splits_between(hist, layout, scoring, scratch, after_phase, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
    """Find splits where `scratch` already tells between which codes of each column the node's records lie."""
    out.n_found[node] = 0
    out.phase[node] = after_phase
    total = scratch.total
    for e in range(hist.shape[1]):
        total[e] = 0
    for row in range(layout.offsets[0] + scratch.lowest[0], layout.offsets[0] + scratch.highest[0] + 1):
        for e in range(hist.shape[1]):
            total[e] += hist[row, e]
    if total[0] < 2 * scoring.min_records:
        return
    weight_at = hist.shape[1] - 1 if scoring.is_weighted else 0
    for c in range(scoring.channel_weights.shape[0]):
        scratch.mean[c] = total[1 + c] / max(1, total[weight_at])
    if after_phase == 0:
        floor = _ANY_FALL
        if scoring.rule == CHANNELS or scoring.rule == ENTROPY:
            floor = noise_floor(scoring.rule, total, scoring.channel_weights, weight_at)
        _scan_columns(hist, layout, scoring.rule, scoring, scratch, floor, after_gain, after_position, out, node)
        if out.n_found[node] > 0 or not scoring.fall_back or scoring.rule == INFORMATION_LOSS:
            return
        out.phase[node] = 1
        after_gain, after_position = np.inf, np.int64(-1)
    _scan_columns(
        hist, layout, np.int64(INFORMATION_LOSS), scoring, scratch, _ANY_FALL, after_gain, after_position, out, node
    )
