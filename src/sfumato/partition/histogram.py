# SPDX-License-Identifier: Apache-2.0
"""Exact integer sums of records and channels per bin.

A histogram is one int64 matrix with a row per bin of every column and these entries per row::

    | records | channel 0 | channel 1 | ... | weight (only with record weights) |
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

PACKED_VALUE_BITS = 24
"""Channel values of at most this many bits can be counted by `add_one_channel`."""

PACKED_RECORDS = 1 << 16
PACKED_COUNT_BIT = 41


_STORE_BUDGET = 512 << 20
"""Bytes of histograms in one store."""

Path = tuple[bytes, ...]
"""The splits and sides that lead from the root to a node, which tell its records whatever the guide."""


class HistogramStore:
    """Histograms by the splits that lead to a node: what several growths over the same records need not count twice.

    The histograms in it are never written to.
    """

    def __init__(self) -> None:
        self._histograms: dict[Path, NDArray[np.int64]] = {}
        self._n_bytes = 0

    def get(self, path: Path) -> NDArray[np.int64] | None:
        """Return the histogram of a node, or None where nobody has counted it."""
        return self._histograms.get(path)

    def put(self, path: Path, histogram: NDArray[np.int64]) -> None:
        """Keep a histogram while there is room."""
        if self._n_bytes <= _STORE_BUDGET:
            self._histograms[path] = histogram
            self._n_bytes += histogram.nbytes


@njit(nogil=True, cache=True)
def add_records(codes, dense, weights, start, stop, offsets, block_columns, block_channels, out):  # type: ignore[no-untyped-def]
    """Add records start to stop to the histogram `out`.

    `block_columns` names the code columns that stand for one-hot channels, `block_channels` the histogram
    entry of each block's first channel.
    """
    n_columns = offsets.shape[0] - 1
    n_dense = dense.shape[1]
    n_blocks = block_columns.shape[0]
    if weights.shape[0] == 0 and n_dense == 0:
        channels = np.empty(n_blocks, np.int64)  # of one record: looked up once, not once per column
        for i in range(start, stop):
            for q in range(n_blocks):
                channels[q] = block_channels[q] + codes[i, block_columns[q]]
            for j in range(n_columns):
                row = offsets[j] + codes[i, j]
                out[row, 0] += 1
                for q in range(n_blocks):
                    out[row, channels[q]] += 1
        return
    is_weighted = weights.shape[0] > 0
    weight_at = out.shape[1] - 1
    for i in range(start, stop):
        weight = weights[i] if is_weighted else 1
        for j in range(n_columns):
            row = offsets[j] + codes[i, j]
            out[row, 0] += 1
            for c in range(n_dense):
                out[row, 1 + c] += weight * dense[i, c]
            for q in range(n_blocks):
                out[row, block_channels[q] + codes[i, block_columns[q]]] += weight
            if is_weighted:
                out[row, weight_at] += weight


@njit(nogil=True, cache=True)
def add_one_channel(codes, dense, start, stop, offsets, packed, out):  # type: ignore[no-untyped-def]
    """Add records with one dense channel and no weights: the everyday case, in one addition instead of two.

    A record adds its channel value and, above bit 41, a one: value sums of up to 2^16 records of 24 bits and the
    number of records cannot meet. `packed` is working memory, one zero per bin, and is zero again afterwards.
    """
    n_columns = offsets.shape[0] - 1
    one = np.int64(1) << PACKED_COUNT_BIT
    for first in range(start, stop, PACKED_RECORDS):
        for i in range(first, min(stop, first + PACKED_RECORDS)):
            value = one + dense[i, 0]
            for j in range(n_columns):
                packed[offsets[j] + codes[i, j]] += value
        for row in range(packed.shape[0]):
            if packed[row] != 0:
                out[row, 0] += packed[row] >> PACKED_COUNT_BIT
                out[row, 1] += packed[row] & (one - 1)
                packed[row] = 0


@njit(nogil=True, cache=True)
def subtract(parent, sibling, out):  # type: ignore[no-untyped-def]
    """Write parent - sibling into `out`: one pass over bins instead of one over records."""
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[b, c] = parent[b, c] - sibling[b, c]  # integers, so exact
