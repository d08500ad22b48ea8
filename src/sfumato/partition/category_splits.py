# SPDX-License-Identifier: Apache-2.0
"""Find the splits of a category column: any subset while few categories are present, else prefixes under some orders.

``splitting`` calls this, column by column; missing is one of the categories.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.candidates import offer, write_ordered, write_subset
from sfumato.partition.guides import INFORMATION_LOSS
from sfumato.partition.scoring import is_everyday, is_everyday_loss, side_gain
from sfumato.partition.single_best import best_subset, best_subset_by_loss

MAX_ENUMERATED = 8
"""Up to this many categories present in a node, every subset is a candidate."""

_PENDING = -2
"""Below -1, `last_bin` holds the number of a category split whose mask is still to be written."""

_POWER_STEPS = 16

_SORTED_BY_INSERTION = 64


@njit(nogil=True, cache=True)
def scan_categories(hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
    """Offer splits of a category column; missing is one of its codes."""
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    present = scratch.present
    n_present = np.int64(0)
    for code in range(scratch.lowest[column], scratch.highest[column] + 1):
        if hist[first + code, 0] > 0:
            present[n_present] = code
            n_present += 1
    if n_present < 2:
        return
    scratch.is_left[:n_codes] = False
    if n_present <= MAX_ENUMERATED:
        if is_everyday(hist, rule, after_gain, out):
            best_subset(hist, layout, column, scoring, scratch, n_present, floor, out, node)
        elif is_everyday_loss(rule, after_gain, out):
            best_subset_by_loss(hist, layout, column, scoring, scratch, n_present, out, node)
        else:
            _scan_subsets(
                hist, layout, column, rule, scoring, scratch, n_present, floor, after_gain, after_position, out, node
            )
        return
    n_channels = scoring.channel_weights.shape[0]
    n_orders = 2 if rule != INFORMATION_LOSS and n_channels > 1 else 1
    for order in range(n_orders):
        _order_keys(hist, first, rule, scoring, scratch, n_present, order)
        ranked = _rising(scratch.keys[:n_present])
        _scan_prefixes(
            hist, layout, column, rule, scoring, scratch, ranked, order, floor, after_gain, after_position, out, node
        )


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _scan_subsets(  # type: ignore[no-untyped-def]
    hist, layout, column, rule, scoring, scratch, n_present, floor, after_gain, after_position, out, node
):
    """Offer every subset of the categories present; the last one always goes right, so each split comes once."""
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    entries = hist.shape[1] if rule != INFORMATION_LOSS else 1  # which counts records alone
    total, left, present, is_left = scratch.total, scratch.left, scratch.present, scratch.is_left
    weight_at = hist.shape[1] - 1 if scoring.is_weighted else 0
    n = total[0]
    domain = max(1, n_codes - 1)
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
        if n_left < scoring.min_records or n - n_left < scoring.min_records:
            continue
        if rule == INFORMATION_LOSS:
            penalty = n_left * (in_left - 1) + (n - n_left) * (n_present - in_left - 1)
            gain = (n * (n_present - 1) - penalty) / domain
        else:
            gain = side_gain(rule, left, total, scratch.mean, scoring.channel_weights, weight_at)
        if gain > floor:
            subset = step ^ (step >> 1)
            position = (np.int64(column) << 40) + subset
            rank = offer(out, node, gain, position, after_gain, after_position)
            if rank >= 0:
                write_ordered(out, node, rank, column, _PENDING - subset, np.bool_(False), n_left)
    for rank in range(out.n_found[node]):
        if out.column[node, rank] == column and out.last_bin[node, rank] <= _PENDING:
            subset = _PENDING - out.last_bin[node, rank]
            for p in range(n_present):
                is_left[present[p]] = (subset >> p) & 1 == 1
            write_subset(out, node, rank, column, hist, first, n_codes, is_left, out.n_left[node, rank], n)


@njit(nogil=True, cache=True)
def _scan_prefixes(  # type: ignore[no-untyped-def]
    hist, layout, column, rule, scoring, scratch, ranked, order, floor, after_gain, after_position, out, node
):
    """Offer the prefixes of the categories present under one order."""
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    entries = hist.shape[1] if rule != INFORMATION_LOSS else 1  # which counts records alone
    total, left, present, is_left = scratch.total, scratch.left, scratch.present, scratch.is_left
    weight_at = hist.shape[1] - 1 if scoring.is_weighted else 0
    n = total[0]
    n_present = ranked.shape[0]
    domain = max(1, n_codes - 1)
    for e in range(entries):
        left[e] = 0
    for prefix in range(n_present - 1):
        for e in range(entries):
            left[e] += hist[first + present[ranked[prefix]], e]
        n_left = left[0]
        if n_left < scoring.min_records:
            continue
        if n - n_left < scoring.min_records:
            break
        if rule == INFORMATION_LOSS:
            penalty = n_left * prefix + (n - n_left) * (n_present - prefix - 2)
            gain = (n * (n_present - 1) - penalty) / domain
        else:
            gain = side_gain(rule, left, total, scratch.mean, scoring.channel_weights, weight_at)
        if gain > floor:
            position = (np.int64(column) << 40) + (np.int64(order) << 32) + prefix
            rank = offer(out, node, gain, position, after_gain, after_position)
            if rank >= 0:
                write_ordered(out, node, rank, column, _PENDING - prefix, np.bool_(False), n_left)
    # Masks are as wide as the column: they are written once, for the candidates that are left.
    for rank in range(out.n_found[node]):
        if out.column[node, rank] == column and out.last_bin[node, rank] <= _PENDING:
            last = _PENDING - out.last_bin[node, rank]
            for p in range(n_present):
                is_left[present[ranked[p]]] = p <= last
            write_subset(out, node, rank, column, hist, first, n_codes, is_left, out.n_left[node, rank], n)


@njit(nogil=True, cache=True)
def _order_keys(hist, first, rule, scoring, scratch, n_present, order):  # type: ignore[no-untyped-def]
    """Write the sort key of each category present.

    Information loss: frequent categories first. Guides: by the mean of the channel that differs most between
    categories (order 0; one that speaks for a split, if there is one) and by the first principal component of their
    means (order 1).
    """
    keys, present, axis = scratch.keys, scratch.present, scratch.axis
    if rule == INFORMATION_LOSS:
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
        _turn_to_principal_axis(hist, first, scoring, scratch, n_present, weight_at)
    for p in range(n_present):
        row = first + present[p]
        weight = max(1, hist[row, weight_at])
        keys[p] = 0.0
        for c in range(n_channels):
            if axis[0, c] != 0.0:
                keys[p] += axis[0, c] * (hist[row, 1 + c] / weight - scratch.mean[c])


@njit(nogil=True, cache=True)
def _turn_to_principal_axis(hist, first, scoring, scratch, n_present, weight_at):  # type: ignore[no-untyped-def]
    """Turn scratch.axis[0] towards the first principal component by a fixed number of power steps."""
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
