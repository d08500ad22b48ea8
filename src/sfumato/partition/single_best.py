# SPDX-License-Identifier: Apache-2.0
"""Scans where only the best split is wanted: one unweighted channel (two classes, or one number), or information loss.

The same candidates, gains and ties as the scans of ``splitting``, kept in scalars and offered once per column instead
of once per candidate. ``splitting`` decides when it applies.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.candidates import offer, write_ordered, write_subset


@njit(nogil=True, cache=True)
def best_cut(hist, layout, column, scoring, scratch, floor, out, node):  # type: ignore[no-untyped-def]
    """Offer the best prefix of an ordered column, missing values right or left."""
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
    if best_position < 0:
        return
    rank = offer(out, node, best_gain, (np.int64(column) << 40) + best_position, np.inf, np.int64(-1))
    if rank >= 0:
        missing_left = best_position & 1 == 1 if n_missing > 0 else 2 * best_left > n
        write_ordered(out, node, rank, column, best_position >> 1, missing_left, best_left)


@njit(nogil=True, cache=True)
def best_subset(hist, layout, column, scoring, scratch, n_present, floor, out, node):  # type: ignore[no-untyped-def]
    """Offer the best subset of the categories present; the last one always goes right."""
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    k = scoring.min_records
    weight = scoring.channel_weights[0]
    n, mean = scratch.total[0], scratch.mean[0]
    present = scratch.present
    best_gain, best_subset, best_left = floor, np.int64(-1), np.int64(0)
    n_left, sum_left = 0, 0
    before = 0
    for step in range(1, 1 << (n_present - 1)):
        subset = step ^ (step >> 1)  # Gray code: one category changes sides per step
        changed = subset ^ before
        flipped = 0
        while changed > 1:
            changed >>= 1
            flipped += 1
        row = first + present[flipped]
        if subset > before:
            n_left += hist[row, 0]
            sum_left += hist[row, 1]
        else:
            n_left -= hist[row, 0]
            sum_left -= hist[row, 1]
        before = subset
        if n_left < k or n - n_left < k:
            continue
        deviation = sum_left - mean * n_left
        gain = weight * deviation * deviation * n / (float(n_left) * float(n - n_left))
        if gain > best_gain or (gain == best_gain and 0 <= subset < best_subset):
            best_gain, best_subset, best_left = gain, np.int64(subset), n_left
    if best_subset < 0:
        return
    rank = offer(out, node, best_gain, (np.int64(column) << 40) + best_subset, np.inf, np.int64(-1))
    if rank >= 0:
        for p in range(n_present):
            scratch.is_left[present[p]] = (best_subset >> p) & 1 == 1
        write_subset(out, node, rank, column, hist, first, n_codes, scratch.is_left, best_left, n)


@njit(nogil=True, cache=True)
def best_cut_by_loss(hist, layout, column, scoring, scratch, out, node):  # type: ignore[no-untyped-def]
    """Offer the prefix of an ordered column that lowers the loss most, missing values right or left."""
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
        return
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
    if best_position < 0:
        return
    rank = offer(out, node, best_gain, (np.int64(column) << 40) + best_position, np.inf, np.int64(-1))
    if rank >= 0:
        missing_left = best_position & 1 == 1 if n_missing > 0 else 2 * best_left > n
        write_ordered(out, node, rank, column, best_position >> 1, missing_left, best_left)


@njit(nogil=True, cache=True)
def best_subset_by_loss(hist, layout, column, scoring, scratch, n_present, out, node):  # type: ignore[no-untyped-def]
    """Offer the subset of the categories present that lowers the loss most; the last one always goes right."""
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    k = scoring.min_records
    n = scratch.total[0]
    present = scratch.present
    least, best_subset, best_left = np.int64(0), np.int64(-1), np.int64(0)
    n_left, in_left = 0, 0
    before = 0
    for step in range(1, 1 << (n_present - 1)):
        subset = step ^ (step >> 1)  # Gray code: one category changes sides per step
        changed = subset ^ before
        flipped = 0
        while changed > 1:
            changed >>= 1
            flipped += 1
        if subset > before:
            n_left += hist[first + present[flipped], 0]
            in_left += 1
        else:
            n_left -= hist[first + present[flipped], 0]
            in_left -= 1
        before = subset
        if n_left < k or n - n_left < k:
            continue
        penalty = n_left * (in_left - 1) + (n - n_left) * (n_present - in_left - 1)
        if best_subset < 0 or penalty < least or (penalty == least and subset < best_subset):
            least, best_subset, best_left = penalty, np.int64(subset), n_left
    if best_subset < 0:
        return
    gain = (n * (n_present - 1) - least) / max(1, n_codes - 1)
    rank = offer(out, node, gain, (np.int64(column) << 40) + best_subset, np.inf, np.int64(-1))
    if rank >= 0:
        for p in range(n_present):
            scratch.is_left[present[p]] = (best_subset >> p) & 1 == 1
        write_subset(out, node, rank, column, hist, first, n_codes, scratch.is_left, best_left, n)
