# SPDX-License-Identifier: Apache-2.0
"""The grower's kernels: count a node and find its splits, grow a whole branch, hand out the records in the end.

``node_search`` and ``node_records`` call them, from several threads; they hold no state beside the arrays they are
given.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.partition.dividing import move_records
from sfumato.partition.guides import ENTROPY
from sfumato.partition.histogram import (
    PACKED_RECORDS,
    add_one_channel,
    add_records,
    add_varying_columns,
    clear_between,
    find_ends,
)
from sfumato.partition.splitting import find_splits_between


@njit(nogil=True, cache=True)
def count_and_find(  # type: ignore[no-untyped-def]
    codes, words, dense, weights, which, starts, stops, layout, scoring, block_columns, block_channels, packed,
    histogram, scratch, ends, end_words, after_phase, after_gain, after_position, out,
):  # fmt: skip
    """Count each node into the same scratch histogram and find its candidates."""
    for i in which:
        _count_and_find_one(
            codes, words, dense, weights, starts[i], stops[i], layout, scoring, block_columns, block_channels, packed,
            histogram, scratch, ends, end_words, np.bool_(False), after_phase[i], after_gain[i], after_position[i],
            out, i,
        )  # fmt: skip


@njit(nogil=True, cache=True)
def _count_and_find_one(  # type: ignore[no-untyped-def]
    codes, words, dense, weights, start, stop, layout, scoring, block_columns, block_channels, packed, histogram,
    scratch, ends, end_words, is_pure, phase, after_gain, after_position, out, i,
):  # fmt: skip
    """Write the candidates of one node into row `i` of `out`, and return whether its records are all alike.

    A guide sees no gain in a node whose records it cannot tell apart, so that is left to information loss at once.
    `is_pure` says that this is known already. `histogram` is all zero, before and after.
    """
    if phase == 0 and scoring.rule <= ENTROPY:
        is_pure = is_pure or _is_pure(codes, dense, start, stop, block_columns)
        if is_pure:
            out.n_found[i] = 0
            if not scoring.fall_back:
                return is_pure
            phase = np.int64(1)
    offsets = layout.offsets
    find_ends(words, start, stop, end_words)
    for column in range(offsets.shape[0] - 1):
        scratch.lowest[column] = ends[0, column]
        scratch.highest[column] = min(np.int64(ends[1, column]), offsets[column + 1] - offsets[column] - 1)
    if packed.shape[0] > 0 and stop - start <= PACKED_RECORDS:
        add_varying_columns(codes, dense, start, stop, offsets, packed, scratch, histogram)
    else:
        count_run(codes, dense, weights, start, stop, offsets, block_columns, block_channels, packed, histogram)
    find_splits_between(histogram, layout, scoring, scratch, phase, after_gain, after_position, out, i)
    clear_between(histogram, offsets, scratch.lowest, scratch.highest)
    return is_pure


@njit(nogil=True, cache=True)
def grow_branch(  # type: ignore[no-untyped-def]
    n_nodes, start, stop, depth, parent, left, right, column, last_bin, missing_left, mask,
    odd_codes, odd_words, odd_dense, odd_weights, odd_rows,
    even_codes, even_words, even_dense, even_weights, even_rows,
    layout, scoring, block_columns, block_channels, packed, histogram, scratch, ends, end_words, out,
):  # fmt: skip
    """Split the nodes of a branch and all that comes of them, in the order of their numbers; return their number.

    The same steps as level by level, without leaving the kernel. Children take the next numbers, so that the nodes
    of a level follow each other here too. There is room for all nodes that `min_records` allows.
    """
    is_pure = np.zeros(start.shape[0], np.bool_)  # what is alike stays alike when it is split
    node = 0
    while node < n_nodes:
        first, last = start[node], stop[node]
        is_odd = depth[node] & 1 == 1
        codes, words, dense, weights = (
            (odd_codes, odd_words, odd_dense, odd_weights)
            if is_odd
            else (even_codes, even_words, even_dense, even_weights)
        )
        if last - first >= 2 * scoring.min_records:
            is_pure[node] = _count_and_find_one(
                codes, words, dense, weights, first, last, layout, scoring, block_columns, block_channels, packed,
                histogram, scratch, ends, end_words, is_pure[node], np.int64(0), np.inf,
                np.int64(-1), out, np.int64(0),
            )  # fmt: skip
            if out.n_found[0] > 0:
                c = out.column[0, 0]
                column[node], last_bin[node], missing_left[node] = c, out.last_bin[0, 0], out.missing_left[0, 0]
                mask[node] = out.mask[0, 0]
                middle = first + out.n_left[0, 0]
                if is_odd:
                    move_records(
                        odd_codes, odd_words, odd_dense, odd_weights, odd_rows, even_words, even_dense, even_weights,
                        even_rows, first, last, c, np.int64(last_bin[node]), layout.missing[c], missing_left[node],
                        mask[node], first, middle,
                    )  # fmt: skip
                else:
                    move_records(
                        even_codes, even_words, even_dense, even_weights, even_rows, odd_words, odd_dense, odd_weights,
                        odd_rows, first, last, c, np.int64(last_bin[node]), layout.missing[c], missing_left[node],
                        mask[node], first, middle,
                    )  # fmt: skip
                left[node], right[node] = n_nodes, n_nodes + 1
                start[n_nodes], stop[n_nodes] = first, middle
                start[n_nodes + 1], stop[n_nodes + 1] = middle, last
                for child in (n_nodes, n_nodes + 1):
                    parent[child], depth[child], is_pure[child] = node, depth[node] + 1, is_pure[node]
                n_nodes += 2
        node += 1
    return n_nodes


@njit(nogil=True, cache=True)
def _is_pure(codes, dense, start, stop, block_columns):  # type: ignore[no-untyped-def]
    """True when all records have the same channels; stops at the first that differs."""
    for i in range(start + 1, stop):
        for c in range(dense.shape[1]):
            if dense[i, c] != dense[start, c]:
                return False
        for column in block_columns:
            if codes[i, column] != codes[start, column]:
                return False
    return True


@njit(nogil=True, cache=True)
def count_run(codes, dense, weights, start, stop, offsets, block_columns, block_channels, packed, out):  # type: ignore[no-untyped-def]
    """Add a run of records to a histogram, by the quick way where `packed` has room for it."""
    if packed.shape[0] > 0:
        add_one_channel(codes, dense, start, stop, offsets, packed, out)
    else:
        add_records(codes, dense, weights, start, stop, offsets, block_columns, block_channels, out)


@njit(nogil=True, cache=True)
def write_groups(rows, starts, stops, group_of_node, out):  # type: ignore[no-untyped-def]
    """Write the group of each record of some leaves."""
    for node in range(starts.shape[0]):
        for i in range(starts[node], stops[node]):
            out[rows[i]] = group_of_node[node]


@njit(nogil=True, cache=True)
def copy_runs(words, dense, weights, rows, to_words, to_dense, to_weights, to_rows, starts, stops):  # type: ignore[no-untyped-def]
    """Copy some runs of records to the same places of other arrays."""
    for run in range(starts.shape[0]):
        for i in range(starts[run], stops[run]):
            for w in range(words.shape[1]):
                to_words[i, w] = words[i, w]
            for c in range(dense.shape[1]):
                to_dense[i, c] = dense[i, c]
            if weights.shape[0] > 0:
                to_weights[i] = weights[i]
            to_rows[i] = rows[i]
