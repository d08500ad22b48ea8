# SPDX-License-Identifier: Apache-2.0
"""Find the best admissible splits of one node from its histogram.

A split sends some codes of one column left, the others right. Ordered columns split at a prefix of their bins, missing
values on either side or alone. Category columns are in ``category_splits``, columns with a hierarchy in
``hierarchy_splits``. A split is considered only if both sides keep `min_records`.

Most fits want the best split alone, by one channel or by information loss. `_best_cut`, `best_subset` and those by loss
find the same candidates, gains and ties in scalars, one per column: a whole fit of Adult takes 0.4 times as long, one
of a million records 0.6 times.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.category_splits import (
    MAX_ENUMERATED,
    best_subset,
    best_subset_by_loss,
    enter_subset,
    list_present,
    scan_categories,
)
from sfumato.partition.guides import CHANNELS, ENTROPY, INFORMATION_LOSS, MEDIAN
from sfumato.partition.hierarchy_splits import scan_hierarchy, scan_hierarchy_median
from sfumato.partition.kernel_options import INSIDE
from sfumato.partition.scoring import (
    Scan,
    n_summed,
    noise_floor,
    offer,
    side_gain,
    wants_one,
    write_ordered,
    write_subset,
)
from sfumato.partition.taxonomy import has_hierarchy

_ANY_FALL = -1.0
"""What information loss must fall by: any division lowers it, but beside an outlier the fall may round to nothing."""


@njit(**INSIDE)
def _scan_ordered(scan, column):  # type: ignore[no-untyped-def]
    """Offer every prefix of an ordered column, with missing right and, where present, with missing left."""
    hist, layout, scratch, out, node = scan.hist, scan.layout, scan.scratch, scan.out, scan.node
    rule, floor, first = scan.rule, scan.floor, layout.offsets[column]
    n_values = layout.n_values[column]
    entries = n_summed(scan)
    left, with_missing = scratch.left, scratch.with_missing
    total, mean, weights, weight_at = scratch.total, scratch.mean, scan.scoring.channel_weights, scan.weight_at
    k = scan.scoring.min_records
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
                gain = side_gain(rule, left, total, mean, weights, weight_at)
            if gain > floor:
                rank = offer(out, node, scan.after, column, gain, 2 * b)
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
                gain = side_gain(rule, with_missing, total, mean, weights, weight_at)
            if gain > floor:
                rank = offer(out, node, scan.after, column, gain, 2 * b + 1)
                if rank >= 0:
                    write_ordered(out, node, rank, column, b, np.bool_(True), n_left)
        b = following


@njit(**INSIDE)
def _best_cut(hist, layout, scoring, scratch, floor, column):  # type: ignore[no-untyped-def]
    """Return gain, place and left size of the best prefix of an ordered column; the place is -1 without one."""
    first = layout.offsets[column]
    end = min(layout.n_values[column], scratch.highest[column] + 1)
    k = scoring.min_records
    weight = scoring.channel_weights[0]
    n, mean = scratch.total[0], scratch.mean[0]
    n_missing, sum_missing = 0, 0
    if layout.missing[column] >= 0:
        n_missing = hist[first + layout.missing[column], 0]
        sum_missing = hist[first + layout.missing[column], 1]
    best_gain, best_position, best_left = floor, np.int64(-1), np.int64(0)
    n_left, sum_left = 0, 0
    for b in range(scratch.lowest[column], end):
        if hist[first + b, 0] == 0:
            continue
        n_left += hist[first + b, 0]
        sum_left += hist[first + b, 1]
        if n - n_left < k:
            break  # the right side only shrinks from here
        if n_left >= k:
            deviation = sum_left - mean * n_left
            gain = weight * deviation * deviation * n / (float(n_left) * float(n - n_left))
            if gain > best_gain:
                best_gain, best_position, best_left = gain, np.int64(2 * b), n_left
        if n_missing > 0 and n_left + n_missing >= k and n - n_left - n_missing >= k:
            with_missing = n_left + n_missing
            deviation = sum_left + sum_missing - mean * with_missing
            gain = weight * deviation * deviation * n / (float(with_missing) * float(n - with_missing))
            if gain > best_gain:
                best_gain, best_position, best_left = gain, np.int64(2 * b + 1), with_missing
    return best_gain, best_position, best_left


@njit(**INSIDE)
def _best_cut_by_loss(hist, layout, scoring, scratch, column):  # type: ignore[no-untyped-def]
    """Return the same of the prefix that lowers information loss most."""
    first = layout.offsets[column]
    missing = layout.missing[column]
    k = scoring.min_records
    n = scratch.total[0]
    n_missing = hist[first + missing, 0] if missing >= 0 else 0
    lowest = scratch.lowest[column]
    highest = min(layout.n_values[column] - 1, scratch.highest[column])
    while lowest <= highest and hist[first + lowest, 0] == 0:
        lowest += 1
    while highest > lowest and hist[first + highest, 0] == 0:
        highest -= 1
    if lowest > highest or (lowest == highest and n_missing == 0):
        return -np.inf, np.int64(-1), np.int64(0)
    low, high = layout.low[first + lowest], layout.high[first + highest]
    node_width = 1.0 if n_missing > 0 else high - low
    best_gain, best_position, best_left = -np.inf, np.int64(-1), np.int64(0)
    n_left = 0
    b = lowest
    while b <= highest:
        n_left += hist[first + b, 0]
        following = b + 1
        while following <= highest and hist[first + following, 0] == 0:
            following += 1
        if n - n_left < k:
            break  # the right side only shrinks from here
        if n_left >= k:
            if n_missing == 0:
                right_width = high - layout.low[first + following]
            else:
                right_width = 1.0 if following <= highest else 0.0
            gain = n * node_width - n_left * (layout.high[first + b] - low) - (n - n_left) * right_width
            if gain > best_gain:
                best_gain, best_position, best_left = gain, np.int64(2 * b), n_left
        if n_missing > 0 and n_left + n_missing >= k and n - n_left - n_missing >= k:
            with_missing = n_left + n_missing
            right_width = high - layout.low[first + following]
            gain = n * node_width - with_missing * 1.0 - (n - with_missing) * right_width
            if gain > best_gain:
                best_gain, best_position, best_left = gain, np.int64(2 * b + 1), with_missing
        b = following
    return best_gain, best_position, best_left


@njit(**INSIDE)
def _median_cut(hist, layout, scoring, scratch, column):  # type: ignore[no-untyped-def]
    """Return the column's width, and the last code and left size of the admissible prefix nearest the median.

    The code is -1 without one.
    """
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    is_category = layout.is_category[column]
    missing = layout.missing[column]
    n, k = scratch.total[0], scoring.min_records
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
        return 0.0, np.int64(-1), np.int64(0)
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
        if n_left < k or n - n_left < k:
            continue
        distance = abs(2 * n_left - n)
        if distance < best_distance:
            best, best_distance, best_left = np.int64(code), distance, n_left
    return width, best, best_left


@njit(**INSIDE)
def _enter_median(scan, column, width, last, n_left):  # type: ignore[no-untyped-def]
    """Enter the cut nearest the median, scored by the column's width."""
    rank = offer(scan.out, scan.node, scan.after, column, width, np.int64(0))
    if rank < 0:
        return
    first = scan.layout.offsets[column]
    if scan.layout.is_category[column]:
        for code in range(scan.layout.offsets[column + 1] - first):
            scan.scratch.is_left[code] = code <= last
        write_subset(scan, rank, column, n_left)
    else:
        missing = scan.layout.missing[column]
        has_missing = missing >= 0 and scan.hist[first + missing, 0] > 0
        missing_left = not has_missing and 2 * n_left > scan.scratch.total[0]
        write_ordered(scan.out, scan.node, rank, column, last, missing_left, n_left)


@njit(**INSIDE)
def _enter_cut(scan, column, gain, place, n_left):  # type: ignore[no-untyped-def]
    """Enter the best prefix of an ordered column; an odd place has missing values on the left."""
    rank = offer(scan.out, scan.node, scan.after, column, gain, place)
    if rank >= 0:
        missing = scan.layout.missing[column]
        has_missing = missing >= 0 and scan.hist[scan.layout.offsets[column] + missing, 0] > 0
        missing_left = place & 1 == 1 if has_missing else 2 * n_left > scan.scratch.total[0]
        write_ordered(scan.out, scan.node, rank, column, place >> 1, missing_left, n_left)


@njit(**INSIDE)
def _scan_columns(scan):  # type: ignore[no-untyped-def]
    hist, layout, scoring, scratch, rule = scan.hist, scan.layout, scan.scoring, scan.scratch, scan.rule
    is_one_wanted = wants_one(scan)
    for column in range(layout.missing.shape[0]):
        if scratch.lowest[column] == scratch.highest[column]:
            continue  # one code: nothing to split
        if has_hierarchy(scoring.taxonomy, column):
            if rule == MEDIAN:
                scan_hierarchy_median(scan, column)
            else:
                scan_hierarchy(scan, column)
        elif rule == MEDIAN:
            gain, place, n_left = _median_cut(hist, layout, scoring, scratch, column)
            if place >= 0:
                _enter_median(scan, column, gain, place, n_left)
        elif layout.is_category[column]:
            n_present = list_present(hist, layout, scratch, column)
            if n_present < 2:
                continue
            if not is_one_wanted or n_present > MAX_ENUMERATED:
                scan_categories(scan, column, n_present)
            elif rule == INFORMATION_LOSS:
                gain, place, n_left = best_subset_by_loss(hist, layout, scoring, scratch, column, n_present)
                if place >= 0:
                    enter_subset(scan, column, n_present, gain, place, n_left)
            else:
                gain, place, n_left = best_subset(hist, layout, scoring, scratch, scan.floor, column, n_present)
                if place >= 0:
                    enter_subset(scan, column, n_present, gain, place, n_left)
        elif not is_one_wanted:
            _scan_ordered(scan, column)
        elif rule == INFORMATION_LOSS:
            gain, place, n_left = _best_cut_by_loss(hist, layout, scoring, scratch, column)
            if place >= 0:
                _enter_cut(scan, column, gain, place, n_left)
        else:
            gain, place, n_left = _best_cut(hist, layout, scoring, scratch, scan.floor, column)
            if place >= 0:
                _enter_cut(scan, column, gain, place, n_left)


@njit(nogil=True, cache=True)
def find_splits(hist, layout, scoring, scratch, after, out, node):  # type: ignore[no-untyped-def]
    """Write the node's best candidates that come after the given one into row `node` of `out`.

    The first round starts after (phase 0, infinity, -1). Phase 0 ranks by the guide; phase 1, when the guide
    has nothing (more) to offer and `fall_back` is set, by information loss.
    """
    for column in range(layout.missing.shape[0]):
        scratch.lowest[column] = 0
        scratch.highest[column] = layout.offsets[column + 1] - layout.offsets[column] - 1
    find_splits_between(hist, layout, scoring, scratch, after, out, node)


@njit(**INSIDE)
def find_splits_between(hist, layout, scoring, scratch, after, out, node):  # type: ignore[no-untyped-def]
    """Find splits where `scratch` has the first and the last code of the node's records in each column."""
    after_phase, after_gain, after_position = after
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
        _scan_columns(
            Scan(
                hist, layout, scoring, scratch, scoring.rule, floor, weight_at, (after_gain, after_position), out, node
            )
        )
        if out.n_found[node] > 0 or not scoring.fall_back or scoring.rule == INFORMATION_LOSS:
            return
        out.phase[node] = 1
        after_gain, after_position = np.inf, np.int64(-1)
    by_loss = np.int64(INFORMATION_LOSS)
    _scan_columns(
        Scan(hist, layout, scoring, scratch, by_loss, _ANY_FALL, weight_at, (after_gain, after_position), out, node)
    )
