# SPDX-License-Identifier: Apache-2.0
"""Move records to their side of a split, so that every node stays one contiguous run of records.

Records are moved from one buffer to another and keep their order within a side.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def goes_left(code, last_bin, missing_code, missing_left, mask):  # type: ignore[no-untyped-def]
    """True when a code belongs to the left side; `last_bin` is -1 for category splits, which use the mask."""
    if last_bin < 0:
        return (mask[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(1)
    if code == missing_code:
        return missing_left
    return code <= last_bin


@njit(nogil=True, cache=True)
def count_left(codes, start, stop, column, last_bin, missing_code, missing_left, mask):  # type: ignore[no-untyped-def]
    """Number of records from start to stop that go left."""
    n_left = 0
    for i in range(start, stop):
        n_left += goes_left(codes[i, column], last_bin, missing_code, missing_left, mask)
    return n_left


@njit(nogil=True, cache=True)
def move_records(  # type: ignore[no-untyped-def]
    codes, words, dense, weights, rows, to_words, to_dense, to_weights, to_rows,
    start, stop, column, last_bin, missing_code, missing_left, mask, left_at, right_at,
):  # fmt: skip
    """Move records start to stop: those that go left from position `left_at` on, the others from `right_at`."""
    n_words = words.shape[1]
    n_dense = dense.shape[1]
    is_weighted = weights.shape[0] > 0
    for i in range(start, stop):
        left = np.int64(goes_left(codes[i, column], last_bin, missing_code, missing_left, mask))
        to = right_at + (left_at - right_at) * left  # without a jump, which would be guessed wrong half of the time
        left_at += left
        right_at += 1 - left
        for w in range(n_words):
            to_words[to, w] = words[i, w]
        for c in range(n_dense):
            to_dense[to, c] = dense[i, c]
        if is_weighted:
            to_weights[to] = weights[i]
        to_rows[to] = rows[i]


@njit(nogil=True, cache=True)
def move_records_from_the_end(  # type: ignore[no-untyped-def]
    codes, words, dense, weights, rows, to_words, to_dense, to_weights, to_rows,
    start, stop, column, last_bin, missing_code, missing_left, mask, left_end, right_end,
):  # fmt: skip
    """Move the same records to the same order, given where both sides end: nobody has to count them before.

    The copying stands here a second time: as a function, inlined or not, it took three times as long.
    """
    n_words = words.shape[1]
    n_dense = dense.shape[1]
    is_weighted = weights.shape[0] > 0
    for i in range(stop - 1, start - 1, -1):
        left = np.int64(goes_left(codes[i, column], last_bin, missing_code, missing_left, mask))
        left_end -= left
        right_end -= 1 - left
        to = right_end + (left_end - right_end) * left
        for w in range(n_words):
            to_words[to, w] = words[i, w]
        for c in range(n_dense):
            to_dense[to, c] = dense[i, c]
        if is_weighted:
            to_weights[to] = weights[i]
        to_rows[to] = rows[i]


@njit(nogil=True, cache=True)
def move_nodes(  # type: ignore[no-untyped-def]
    codes, words, dense, weights, rows, to_words, to_dense, to_weights, to_rows,
    starts, stops, columns, last_bins, missing_codes, missing_left, masks, n_left,
):  # fmt: skip
    """Divide many nodes, one after the other."""
    for node in range(starts.shape[0]):
        start, stop = starts[node], stops[node]
        move_records(
            codes, words, dense, weights, rows, to_words, to_dense, to_weights, to_rows,
            start, stop, columns[node], last_bins[node], missing_codes[columns[node]], missing_left[node],
            masks[node], start, start + n_left[node],
        )  # fmt: skip


@njit(nogil=True, cache=True)
def count_values_by_side(  # type: ignore[no-untyped-def]
    codes, rows, starts, stops, columns, last_bins, missing_codes, missing_left, masks, value_of_row, out
):
    """Count a column's values on both sides of one split per node: out[node, side, value]."""
    for node in range(starts.shape[0]):
        column = columns[node]
        missing_code = missing_codes[column]
        for i in range(starts[node], stops[node]):
            left = goes_left(codes[i, column], last_bins[node], missing_code, missing_left[node], masks[node])
            out[node, 0 if left else 1, value_of_row[rows[i]]] += 1


@njit(nogil=True, cache=True)
def count_distinct_by_side(  # type: ignore[no-untyped-def]
    codes,
    rows,
    starts,
    stops,
    columns,
    last_bins,
    missing_codes,
    missing_left,
    masks,
    value_of_row,
    last_seen,
    out,
):
    """Count the distinct values on both sides of one split per node: out[node, side, 0].

    `last_seen` has a place per value and starts at -1; a (node, side) leaves its own mark there, so nothing has
    to be cleared in between.
    """
    for node in range(starts.shape[0]):
        column = columns[node]
        missing_code = missing_codes[column]
        for side in range(2):
            mark = 2 * node + side
            for i in range(starts[node], stops[node]):
                left = goes_left(codes[i, column], last_bins[node], missing_code, missing_left[node], masks[node])
                value = value_of_row[rows[i]]
                if left == (side == 0) and last_seen[value] != mark:
                    last_seen[value] = mark
                    out[node, side, 0] += 1
