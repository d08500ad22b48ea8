# SPDX-License-Identifier: Apache-2.0
"""Score candidate splits of a node from exact sums, and enter them into its ranked list.

Candidates are totally ordered by (gain falling, column, position), so ties never depend on the order of the records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates
from sfumato.partition.guides import CHANNELS, ENTROPY, INFORMATION_LOSS
from sfumato.partition.kernel_options import INSIDE
from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy

RELATIVE_NOISE = 1e-12
"""Gains below this share of a node's own sum of squares are rounding, not information."""


class Scoring(NamedTuple):
    """The settings by which candidates are scored: the part of a guide that kernels need."""

    rule: int
    channel_weights: NDArray[np.float64]
    is_weighted: bool
    fall_back: bool  # at no gain, let information loss decide (anonymizing) or stop (minimizing)
    min_records: int
    taxonomy: Taxonomy = NO_TAXONOMY


class Scratch(NamedTuple):
    """Working memory of one thread, so that kernels allocate nothing per node."""

    total: NDArray[np.int64]  # (entries,)
    left: NDArray[np.int64]  # (entries,)
    with_missing: NDArray[np.int64]  # (entries,)
    mean: NDArray[np.float64]  # (channels,)
    present: NDArray[np.int64]  # (widest column,) codes present in the node
    keys: NDArray[np.float64]  # (widest column,)
    axis: NDArray[np.float64]  # (2, channels)
    is_left: NDArray[np.bool_]  # (widest column,)
    lowest: NDArray[np.int64]  # (columns,) no record of the node has a code below
    highest: NDArray[np.int64]  # (columns,) or above
    varying: NDArray[np.int64]  # (columns,) those with more than one code in the node


class Scan(NamedTuple):
    """One scan of a node: its histogram, the score, and the list that candidates are entered into."""

    hist: NDArray[np.int64]  # (bins of all columns, entries)
    layout: Layout
    scoring: Scoring
    scratch: Scratch
    rule: int | np.int64  # of this scan: that of the guide, or information loss
    floor: float  # gains up to this are not entered
    weight_at: int  # entry of a bin that has the number or the weight of its records
    after: tuple[float, int]  # only candidates that come after this gain and position are entered
    out: Candidates
    node: int  # row of `out`


def make_scratch(layout: Layout, n_entries: int, n_channels: int) -> Scratch:
    """Allocate the working memory for histograms with `n_entries` entries per bin."""
    widest = int(np.diff(layout.offsets).max())
    return Scratch(
        np.zeros(n_entries, np.int64),
        np.zeros(n_entries, np.int64),
        np.zeros(n_entries, np.int64),
        np.zeros(n_channels),
        np.zeros(widest, np.int64),
        np.zeros(widest),
        np.zeros((2, max(1, n_channels))),
        np.zeros(widest, np.bool_),
        np.zeros(layout.n_columns, np.int64),
        np.diff(layout.offsets) - 1,
        np.zeros(layout.n_columns, np.int64),
    )


@njit(nogil=True, cache=True)
def side_gain(rule, left, total, mean, channel_weights, weight_at):  # type: ignore[no-untyped-def]
    """Gain of sending `left` of `total` to one side, from exact sums."""
    n = total[weight_at]
    n_left = left[weight_at]
    n_right = n - n_left
    if n_left <= 0 or n_right <= 0:
        return 0.0  # one side without weight: nothing is known about it
    gain = 0.0
    if rule == CHANNELS:
        # Equal to the sum-of-squares form, but exactly zero where both sides have the node's mean.
        for c in range(channel_weights.shape[0]):
            deviation = left[1 + c] - mean[c] * n_left
            gain += channel_weights[c] * deviation * deviation
        return gain * n / (float(n_left) * float(n_right))
    for c in range(channel_weights.shape[0]):
        in_left = left[1 + c]
        in_right = total[1 + c] - in_left
        if in_left > 0:
            gain += in_left * np.log(in_left / n_left)
        if in_right > 0:
            gain += in_right * np.log(in_right / n_right)
        if total[1 + c] > 0:
            gain -= total[1 + c] * np.log(total[1 + c] / n)
    return gain


@njit(**INSIDE)
def noise_floor(rule, total, channel_weights, weight_at):  # type: ignore[no-untyped-def]
    """Gains up to this are rounding errors of a node whose sides are alike."""
    if rule == ENTROPY:
        return RELATIVE_NOISE * total[weight_at]
    squares = 0.0
    for c in range(channel_weights.shape[0]):
        squares += abs(channel_weights[c]) * float(total[1 + c]) * float(total[1 + c])
    return RELATIVE_NOISE * squares / max(1, total[weight_at])


@njit(**INSIDE)
def wants_one(scan):  # type: ignore[no-untyped-def]
    """Return True if only the best split is wanted, by one unweighted channel or by information loss."""
    is_simple = scan.rule == INFORMATION_LOSS or (scan.rule == CHANNELS and scan.hist.shape[1] == 2)
    return is_simple and scan.out.gain.shape[1] == 1 and scan.after[0] == np.inf


@njit(**INSIDE)
def n_summed(scan):  # type: ignore[no-untyped-def]
    """Return how many entries of a bin the score needs: information loss counts records alone."""
    return scan.hist.shape[1] if scan.rule != INFORMATION_LOSS else 1


@njit(**INSIDE)
def offer(out, node, after, column, gain, place):  # type: ignore[no-untyped-def]
    """Return the rank a candidate takes in the node's list, shifting the rest; -1 if it has no place.

    `place` is the candidate's place in the order of enumeration of its column; it breaks ties. What is called for every
    candidate takes no `Scan`: handing over a tuple of tuples counts references to all arrays inside.
    """
    after_gain, after_position = after
    position = (np.int64(column) << 40) + place
    if gain > after_gain or (gain == after_gain and position <= after_position):
        return -1  # judged in an earlier round
    n_found = out.n_found[node]
    n_ranks = out.gain.shape[1]
    rank = n_found
    while rank > 0 and (
        gain > out.gain[node, rank - 1]
        or (gain == out.gain[node, rank - 1] and position < out.position[node, rank - 1])
    ):
        rank -= 1
    if rank >= n_ranks:
        return -1
    last = min(n_found, n_ranks - 1)
    for r in range(last, rank, -1):
        out.gain[node, r] = out.gain[node, r - 1]
        out.position[node, r] = out.position[node, r - 1]
        out.column[node, r] = out.column[node, r - 1]
        out.last_bin[node, r] = out.last_bin[node, r - 1]
        out.missing_left[node, r] = out.missing_left[node, r - 1]
        out.n_left[node, r] = out.n_left[node, r - 1]
        for w in range(out.mask.shape[2]):
            out.mask[node, r, w] = out.mask[node, r - 1, w]
    out.n_found[node] = min(n_found + 1, n_ranks)
    out.gain[node, rank] = gain
    out.position[node, rank] = position
    for w in range(out.mask.shape[2]):
        out.mask[node, rank, w] = 0
    return rank


@njit(**INSIDE)
def write_ordered(out, node, rank, column, last_bin, missing_left, n_left):  # type: ignore[no-untyped-def]
    """Store a split of an ordered column."""
    out.column[node, rank] = column
    out.last_bin[node, rank] = last_bin
    out.missing_left[node, rank] = missing_left
    out.n_left[node, rank] = n_left


@njit(**INSIDE)
def write_subset(scan, rank, column, n_left):  # type: ignore[no-untyped-def]
    """Store the codes that go left by the scratch; those absent from the node follow the larger side."""
    absent_left = 2 * n_left > scan.scratch.total[0]
    first = scan.layout.offsets[column]
    for code in range(scan.layout.offsets[column + 1] - first):
        if scan.hist[first + code, 0] == 0:
            scan.scratch.is_left[code] = absent_left
    write_codes(scan, rank, column, n_left)


@njit(**INSIDE)
def write_codes(scan, rank, column, n_left):  # type: ignore[no-untyped-def]
    """Store the codes of a category column that go left by the scratch, which decides for all codes."""
    out, node = scan.out, scan.node
    for code in range(scan.layout.offsets[column + 1] - scan.layout.offsets[column]):
        if scan.scratch.is_left[code]:
            out.mask[node, rank, code >> 6] |= np.uint64(1) << np.uint64(code & 63)
    write_ordered(out, node, rank, column, np.int64(-1), 2 * n_left > scan.scratch.total[0], n_left)
