# SPDX-License-Identifier: Apache-2.0
"""Find the splits of a category column: any subset of few categories, prefixes under some orders of many.

``split_search`` calls this, column by column; missing is one of the categories.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.guides import INFORMATION_LOSS
from sfumato.partition.kernel_options import INSIDE
from sfumato.partition.scoring import n_summed, offer, side_gain, write_ordered, write_subset

MAX_ENUMERATED = 8
"""Up to this many categories present in a node, every subset is a candidate."""

_PENDING = -2
"""Below -1, `last_bin` holds the number of a category split whose mask is still to be written."""

_POWER_STEPS = 16

_SORTED_BY_INSERTION = 64


@njit(**INSIDE)
def list_present(hist, layout, scratch, column):  # type: ignore[no-untyped-def]
    """List the codes of a category column that the node has in the scratch, and return their number."""
    first = layout.offsets[column]
    n_present = np.int64(0)
    for code in range(scratch.lowest[column], scratch.highest[column] + 1):
        if hist[first + code, 0] > 0:
            scratch.present[n_present] = code
            n_present += 1
    return n_present


@njit(**INSIDE)
def scan_categories(scan, column, n_present):  # type: ignore[no-untyped-def]
    """Offer splits of a category column whose codes present are listed; missing is one of its codes."""
    first = scan.layout.offsets[column]
    scan.scratch.is_left[: scan.layout.offsets[column + 1] - first] = False
    if n_present <= MAX_ENUMERATED:
        _scan_subsets(scan, column, n_present)
        return
    n_orders = 2 if scan.rule != INFORMATION_LOSS and scan.scoring.channel_weights.shape[0] > 1 else 1
    for order in range(n_orders):
        _order_keys(scan, first, n_present, order)
        _scan_prefixes(scan, column, _rising(scan.scratch.keys[:n_present]), order)


@njit(**INSIDE)
def enter_subset(scan, column, n_present, gain, subset, n_left):  # type: ignore[no-untyped-def]
    """Enter the best subset of the codes present; its bits tell which of them go left."""
    rank = offer(scan.out, scan.node, scan.after, column, gain, subset)
    if rank >= 0:
        for p in range(n_present):
            scan.scratch.is_left[scan.scratch.present[p]] = (subset >> p) & 1 == 1
        write_subset(scan, rank, column, n_left)


@njit(**INSIDE)
def _rising(keys):  # type: ignore[no-untyped-def]
    """Return the order that sorts the keys, equals as they come; few are sorted soonest by insertion."""
    n = keys.shape[0]
    if n > _SORTED_BY_INSERTION:
        return np.argsort(keys, kind="mergesort")
    order = np.empty(n, np.int64)
    for p in range(n):
        at = p
        while at > 0 and keys[order[at - 1]] > keys[p]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = p
    return order


@njit(**INSIDE)
def best_subset(hist, layout, scoring, scratch, floor, column, n_present):  # type: ignore[no-untyped-def]
    """Return gain, bits and left size of the best subset of the codes present, -1 without one; the last goes right."""
    first = layout.offsets[column]
    k = scoring.min_records
    weight = scoring.channel_weights[0]
    n, mean = scratch.total[0], scratch.mean[0]
    present = scratch.present
    best_gain, best_bits, best_left = floor, np.int64(-1), np.int64(0)
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
        if gain > best_gain or (gain == best_gain and 0 <= subset < best_bits):
            best_gain, best_bits, best_left = gain, np.int64(subset), n_left
    return best_gain, best_bits, best_left


@njit(**INSIDE)
def best_subset_by_loss(hist, layout, scoring, scratch, column, n_present):  # type: ignore[no-untyped-def]
    """Return the same of the subset that lowers information loss most."""
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    k = scoring.min_records
    n = scratch.total[0]
    present = scratch.present
    least, best_bits, best_left = np.int64(0), np.int64(-1), np.int64(0)
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
        if best_bits < 0 or penalty < least or (penalty == least and subset < best_bits):
            least, best_bits, best_left = penalty, np.int64(subset), n_left
    gain = (n * (n_present - 1) - least) / max(1, n_codes - 1)
    return gain, best_bits, best_left


@njit(**INSIDE)
def _scan_subsets(scan, column, n_present):  # type: ignore[no-untyped-def]
    """Offer every subset of the categories present; the last one always goes right, so each split comes once."""
    hist, scratch, out, node = scan.hist, scan.scratch, scan.out, scan.node
    first = scan.layout.offsets[column]
    entries = n_summed(scan)
    left, present, is_left = scratch.left, scratch.present, scratch.is_left
    total, mean, weights, weight_at = scratch.total, scratch.mean, scan.scoring.channel_weights, scan.weight_at
    rule, floor, n, k = scan.rule, scan.floor, total[0], scan.scoring.min_records
    domain = max(1, scan.layout.offsets[column + 1] - first - 1)
    for e in range(entries):
        left[e] = 0
    in_left = 0
    for step in range(1, 1 << (n_present - 1)):
        flipped = 0  # Gray code: one category changes sides per step
        while not (step >> flipped) & 1:
            flipped += 1
        row = first + present[flipped]
        if is_left[present[flipped]]:
            is_left[present[flipped]] = False
            in_left -= 1
            for e in range(entries):
                left[e] -= hist[row, e]
        else:
            is_left[present[flipped]] = True
            in_left += 1
            for e in range(entries):
                left[e] += hist[row, e]
        n_left = left[0]
        if n_left < k or n - n_left < k:
            continue
        if rule == INFORMATION_LOSS:
            penalty = n_left * (in_left - 1) + (n - n_left) * (n_present - in_left - 1)
            gain = (n * (n_present - 1) - penalty) / domain
        else:
            gain = side_gain(rule, left, total, mean, weights, weight_at)
        if gain > floor:
            subset = step ^ (step >> 1)
            rank = offer(out, node, scan.after, column, gain, subset)
            if rank >= 0:
                write_ordered(out, node, rank, column, _PENDING - subset, np.bool_(False), n_left)
    for rank in range(out.n_found[node]):
        if out.column[node, rank] == column and out.last_bin[node, rank] <= _PENDING:
            subset = _PENDING - out.last_bin[node, rank]
            for p in range(n_present):
                is_left[present[p]] = (subset >> p) & 1 == 1
            write_subset(scan, rank, column, out.n_left[node, rank])


@njit(**INSIDE)
def _scan_prefixes(scan, column, ranked, order):  # type: ignore[no-untyped-def]
    """Offer the prefixes of the categories present under one order."""
    hist, scratch, out, node = scan.hist, scan.scratch, scan.out, scan.node
    first = scan.layout.offsets[column]
    entries = n_summed(scan)
    left, present, is_left = scratch.left, scratch.present, scratch.is_left
    total, mean, weights, weight_at = scratch.total, scratch.mean, scan.scoring.channel_weights, scan.weight_at
    rule, floor, n, k = scan.rule, scan.floor, total[0], scan.scoring.min_records
    n_present = ranked.shape[0]
    domain = max(1, scan.layout.offsets[column + 1] - first - 1)
    for e in range(entries):
        left[e] = 0
    for prefix in range(n_present - 1):
        for e in range(entries):
            left[e] += hist[first + present[ranked[prefix]], e]
        n_left = left[0]
        if n_left < k:
            continue
        if n - n_left < k:
            break
        if rule == INFORMATION_LOSS:
            penalty = n_left * prefix + (n - n_left) * (n_present - prefix - 2)
            gain = (n * (n_present - 1) - penalty) / domain
        else:
            gain = side_gain(rule, left, total, mean, weights, weight_at)
        if gain > floor:
            rank = offer(out, node, scan.after, column, gain, (np.int64(order) << 32) + prefix)
            if rank >= 0:
                write_ordered(out, node, rank, column, _PENDING - prefix, np.bool_(False), n_left)
    # Masks are as wide as the column: they are written once, for the candidates that are left.
    for rank in range(out.n_found[node]):
        if out.column[node, rank] == column and out.last_bin[node, rank] <= _PENDING:
            last = _PENDING - out.last_bin[node, rank]
            for p in range(n_present):
                is_left[present[ranked[p]]] = p <= last
            write_subset(scan, rank, column, out.n_left[node, rank])


@njit(**INSIDE)
def _order_keys(scan, first, n_present, order):  # type: ignore[no-untyped-def]
    """Write the sort key of each category present.

    Information loss: frequent categories first. Guides: by the mean of the channel that differs most between
    categories (order 0; one that speaks for a split, if there is one) and by the first principal component of their
    means (order 1).
    """
    hist, scoring, scratch = scan.hist, scan.scoring, scan.scratch
    keys, present, axis = scratch.keys, scratch.present, scratch.axis
    if scan.rule == INFORMATION_LOSS:
        for p in range(n_present):
            keys[p] = -hist[first + present[p], 0]
        return
    weight_at = hist.shape[1] - 1 if scoring.is_weighted else 0
    n_channels = scoring.channel_weights.shape[0]
    widest, most = 0, -np.inf
    for c in range(n_channels):
        spread = 0.0
        for p in range(n_present):
            row = first + present[p]
            weight = hist[row, weight_at]
            if weight > 0:
                deviation = hist[row, 1 + c] / weight - scratch.mean[c]
                spread += weight * deviation * deviation
        spread *= scoring.channel_weights[c]  # signed: categories are ordered by what is to be told apart
        if spread > most:
            widest, most = c, spread
    for c in range(n_channels):
        axis[0, c] = 0.0
    axis[0, widest] = 1.0
    if order == 1:
        _turn_to_principal_axis(scan, first, n_present, weight_at)
    for p in range(n_present):
        row = first + present[p]
        weight = max(1, hist[row, weight_at])
        keys[p] = 0.0
        for c in range(n_channels):
            if axis[0, c] != 0.0:
                keys[p] += axis[0, c] * (hist[row, 1 + c] / weight - scratch.mean[c])


@njit(**INSIDE)
def _turn_to_principal_axis(scan, first, n_present, weight_at):  # type: ignore[no-untyped-def]
    """Turn scratch.axis[0] towards the first principal component by a fixed number of power steps."""
    hist, scoring, scratch = scan.hist, scan.scoring, scan.scratch
    axis, present, mean = scratch.axis, scratch.present, scratch.mean
    n_channels = scoring.channel_weights.shape[0]
    for _ in range(_POWER_STEPS):
        for c in range(n_channels):
            axis[1, c] = 0.0
        for p in range(n_present):
            row = first + present[p]
            weight = hist[row, weight_at]
            if weight <= 0:
                continue
            projection = 0.0
            for c in range(n_channels):
                projection += axis[0, c] * (hist[row, 1 + c] / weight - mean[c])
            for c in range(n_channels):
                axis[1, c] += weight * projection * (hist[row, 1 + c] / weight - mean[c])
        length = 0.0
        for c in range(n_channels):
            axis[1, c] *= abs(scoring.channel_weights[c])
            length += axis[1, c] * axis[1, c]
        if length <= 0.0:
            return
        for c in range(n_channels):
            axis[0, c] = axis[1, c] / np.sqrt(length)
