# SPDX-License-Identifier: Apache-2.0
"""Find the best admissible splits of one node from its histogram.

A split sends some codes of one column left, the others right. Ordered columns split at a prefix of their bins,
missing values on either side or alone; category columns at any subset while few categories are present, beyond
that at prefixes under a few orders; columns with a hierarchy between the children of a label (see
``hierarchy_splits``). A split is considered only when both sides keep `min_records`; the others are never scored.

Candidates are totally ordered by (gain falling, column, position), so ties never depend on the records' order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.candidates import offer, write_ordered, write_subset
from sfumato.partition.guides import CHANNELS, ENTROPY, INFORMATION_LOSS, MEDIAN
from sfumato.partition.hierarchy_splits import scan_hierarchy, scan_hierarchy_median
from sfumato.partition.lowest_loss import best_cut_by_loss, best_subset_by_loss
from sfumato.partition.one_channel import best_cut, best_subset
from sfumato.partition.scoring import noise_floor, side_gain
from sfumato.partition.taxonomy import has_hierarchy

MAX_ENUMERATED = 8
"""Up to this many categories present in a node, every subset is a candidate."""

_ANY_FALL = -1.0
"""What information loss must fall by: any division lowers it, but beside an outlier the fall may round to nothing."""

_PENDING = -2
"""Below -1, `last_bin` holds the number of a category split whose mask is still to be written."""

_POWER_STEPS = 16

_SORTED_BY_INSERTION = 64


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
def _scan_categories(hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node):  # type: ignore[no-untyped-def]
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
        if _is_everyday(hist, rule, after_gain, out):
            best_subset(hist, layout, column, scoring, scratch, n_present, floor, out, node)
        elif _is_everyday_loss(rule, after_gain, out):
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
            hist,
            layout,
            column,
            rule,
            scoring,
            scratch,
            ranked,
            order,
            floor,
            after_gain,
            after_position,
            out,
            node,
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
            best, best_distance, best_left = code, distance, n_left
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
            _scan_categories(hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node)
        elif _is_everyday(hist, rule, after_gain, out):
            best_cut(hist, layout, column, scoring, scratch, floor, out, node)
        elif _is_everyday_loss(rule, after_gain, out):
            best_cut_by_loss(hist, layout, column, scoring, scratch, out, node)
        else:
            _scan_ordered(hist, layout, column, rule, scoring, scratch, floor, after_gain, after_position, out, node)


@njit(nogil=True, cache=True)
def _is_everyday(hist, rule, after_gain, out):  # type: ignore[no-untyped-def]
    """One unweighted channel and only the best split wanted: ``one_channel`` finds the same, faster."""
    return rule == CHANNELS and hist.shape[1] == 2 and out.gain.shape[1] == 1 and after_gain == np.inf


@njit(nogil=True, cache=True)
def _is_everyday_loss(rule, after_gain, out):  # type: ignore[no-untyped-def]
    """Only the best split by information loss wanted: ``lowest_loss`` finds the same, faster."""
    return rule == INFORMATION_LOSS and out.gain.shape[1] == 1 and after_gain == np.inf


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
