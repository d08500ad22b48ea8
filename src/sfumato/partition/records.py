# SPDX-License-Identifier: Apache-2.0
"""The layout of histograms, and records packed for the kernels: a row of codes each, padded to whole machine words.

The codes of a record lie side by side, so building the histograms of all columns reads each record once, and moving
a record during growth copies a few words::

    codes   | col 0 | col 1 | ... | col d-1 | block 0 | ... | padding |   one byte (or two) each
    dense   | channel 0 | channel 1 | ...                             |   int64, the guide's numbers
    weights | one int64, only where record weights were given         |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.binning import Bins
from sfumato.threads import map_in_threads, stretches

_SHARED_FROM = 200_000  # records; below it threads cost more than they bring
_WORD = 8  # bytes of the machine words that records are moved in


class Layout(NamedTuple):
    """Where the bins of each column lie in a histogram, and what they stand for. Arrays, as kernels need them."""

    offsets: NDArray[np.int64]  # first histogram row of each column, and the total at the end
    missing: NDArray[np.int64]  # code of missing per column, -1 where none occurred
    is_category: NDArray[np.bool_]
    n_values: NDArray[np.int64]  # bins of each column without the missing one
    low: NDArray[np.float64]  # per histogram row: lower end of the bin as a share of the column's range
    high: NDArray[np.float64]

    @property
    def n_columns(self) -> int:
        """Number of columns that can be split on."""
        return len(self.missing)

    @property
    def n_mask_words(self) -> int:
        """64-bit words that hold one bit for each code of the widest category column."""
        widths = np.diff(self.offsets)[self.is_category]
        return max(1, -(-int(widths.max(initial=1)) // 64))


def make_layout(bins: Sequence[Bins]) -> Layout:
    """Lay the bins of all columns end to end."""
    sizes = [b.n_bins for b in bins]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    low, high = np.zeros(offsets[-1]), np.zeros(offsets[-1])
    for b, start in zip(bins, offsets[:-1], strict=True):
        low[start : start + b.n_values], high[start : start + b.n_values] = b.positions
    return Layout(
        offsets=offsets,
        missing=np.array([b.missing_bin for b in bins], np.int64),
        is_category=np.array([not b.is_ordered for b in bins], np.bool_),
        n_values=np.array([b.n_values for b in bins], np.int64),
        low=low,
        high=high,
    )


class Records(NamedTuple):
    """Codes, channels and weights of all records, in one order. Arrays, as kernels need them."""

    codes: NDArray[Any]  # (n, padded width) columns that can be split on, the guide's code columns, then zeros
    dense: NDArray[np.int64]  # (n, channels)
    weights: NDArray[np.int64]  # (n,), or empty if all records weigh the same
    rows: NDArray[np.uint32]  # the number of each record in the table

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.codes)

    def empty_like(self) -> Records:
        """Return room for the same records in another order."""
        return Records._make(np.empty_like(part) for part in self)

    def taken(self, rows: NDArray[np.integer[Any]]) -> Records:
        """Return some of the records, or all of them in another order."""
        return Records._make(part[rows] if len(part) else part for part in self)


def pack_records(
    columns: Sequence[NDArray[Any]],
    code_blocks: Sequence[NDArray[Any]] = (),
    dense: NDArray[np.int64] | None = None,
    weights: NDArray[np.int64] | None = None,
    *,
    n_threads: int = 1,
) -> Records:
    """Put code columns side by side and add the guide's channels.

    Parameters
    ----------
    columns : sequence of ndarray
        Codes of the columns that can be split on.
    code_blocks : sequence of ndarray
        Codes of the guide's coded blocks, such as predicted classes.
    dense, weights : ndarray of int64, optional
    n_threads : int
        Threads to copy with, each its own run of records.
    """
    every = [*columns, *code_blocks]
    n_records = len(every[0])
    dtype = np.dtype(max((c.dtype for c in every), key=lambda d: d.itemsize))
    per_word = _WORD // dtype.itemsize
    codes = np.zeros((n_records, -(-len(every) // per_word) * per_word), dtype)

    def copy(run: slice) -> None:
        for position, column in enumerate(every):
            codes[run, position] = column[run]

    n_threads = n_threads if n_records >= _SHARED_FROM else 1
    map_in_threads(copy, stretches(n_records, n_threads), n_threads)
    return Records(
        codes,
        np.zeros((n_records, 0), np.int64) if dense is None else np.ascontiguousarray(dense, np.int64),
        np.zeros(0, np.int64) if weights is None else np.ascontiguousarray(weights, np.int64),
        np.arange(n_records, dtype=np.uint32),
    )


def as_words(codes: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a view of padded codes as the 64-bit words they are moved in."""
    return codes.view(np.uint64)
