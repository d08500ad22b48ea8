# SPDX-License-Identifier: Apache-2.0
"""What a split is worth: the gain of sending some of a node's records to one side, from exact sums.

Also the working memory that scanning a node needs, so that kernels allocate nothing per node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.guides import CHANNELS, ENTROPY, INFORMATION_LOSS
from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy

RELATIVE_NOISE = 1e-12
"""Gains below this share of a node's own sum of squares are rounding, not information."""


class Scoring(NamedTuple):
    """How candidates are scored; what kernels need of a guide."""

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


@njit(nogil=True, cache=True)
def noise_floor(rule, total, channel_weights, weight_at):  # type: ignore[no-untyped-def]
    """Gains up to this are rounding errors of a node whose sides are alike."""
    if rule == ENTROPY:
        return RELATIVE_NOISE * total[weight_at]
    squares = 0.0
    for c in range(channel_weights.shape[0]):
        squares += abs(channel_weights[c]) * float(total[1 + c]) * float(total[1 + c])
    return RELATIVE_NOISE * squares / max(1, total[weight_at])


@njit(nogil=True, cache=True)
def is_everyday(hist, rule, after_gain, out):  # type: ignore[no-untyped-def]
    """One unweighted channel and only the best split wanted: ``single_best`` finds the same, faster."""
    return rule == CHANNELS and hist.shape[1] == 2 and out.gain.shape[1] == 1 and after_gain == np.inf


@njit(nogil=True, cache=True)
def is_everyday_loss(rule, after_gain, out):  # type: ignore[no-untyped-def]
    """Only the best split by information loss wanted: ``single_best`` finds the same, faster."""
    return rule == INFORMATION_LOSS and out.gain.shape[1] == 1 and after_gain == np.inf
