# SPDX-License-Identifier: Apache-2.0
"""Turn a column's values into small integer codes.

A column's bins are a function of the multiset of its values, so shuffled or re-partitioned rows give the same
codes. Called by ``sources``; everything after works on codes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.distinct_values import sorted_distinct
from sfumato.partition.round_numbers import NUMBER_UNITS
from sfumato.partition.shared_values import SharedValues, share_categories, share_numbers

DEFAULT_MAX_BINS = 255
"""Bins of a number column unless asked otherwise: with the missing bin, 256 codes fill 8 bits."""

MAX_CODES = 65_536
"""Codes of one column at most: they are kept in 16 bits."""

_MOST_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one column.

    Attributes
    ----------
    is_ordered : bool
        True for numbers and moments, False for categories.
    values : ndarray
        One value per bin, missing left out: the most frequent value of the bin, the lowest on ties. For
        categories the category's own index, since every category is a bin.
    low, high : ndarray
        Smallest and largest value of each bin (equal to `values` for categories).
    has_missing : bool
        True when missing values occurred; their code is then the last one.
    shared : SharedValues or None
        What may be published of the bins, where that was asked for.
    finer : SharedValues or None
        The same for values that fewer records share, where that was asked for, too.
    """

    is_ordered: bool
    values: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    has_missing: bool
    shared: SharedValues | None = None
    finer: SharedValues | None = None

    @property
    def n_values(self) -> int:
        """Number of bins that hold values."""
        return len(self.values)

    @property
    def n_bins(self) -> int:
        """Number of codes: the bins and, where it occurred, missing."""
        return len(self.values) + int(self.has_missing)

    @property
    def missing_bin(self) -> int:
        """Code of a missing value, -1 when there was none."""
        return len(self.values) if self.has_missing else -1

    @property
    def positions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Low and high ends of the bins as shares of the column's whole range, from 0 to 1.

        Categories stand at equal distances, so that ``high - low`` over a set of them is not a meaningful
        width; callers count categories instead.
        """
        if not self.n_values:
            return np.zeros(0), np.zeros(0)
        low, high = self.low, self.high
        if low.dtype.kind == "f":
            if np.isinf(float(high[-1]) - float(low[0])):
                low, high = low / 2, high / 2
            low, high = low - low[0], high - low[0]
        else:  # unsigned differences are exact; floats would not tell integers beyond 2^53 apart
            first = low.view(np.uint64)[0]
            low, high = low.view(np.uint64) - first, high.view(np.uint64) - first
        span = float(high[-1])
        if span <= 0:
            return np.zeros(self.n_values), np.zeros(self.n_values)
        return low / span, high / span


def code_type(n_bins: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that holds codes below `n_bins`."""
    return np.uint8 if n_bins <= 256 else np.uint16


def bin_numbers(
    values: NDArray[Any],
    missing: NDArray[np.bool_] | None = None,
    *,
    max_bins: int = DEFAULT_MAX_BINS,
    floor: int = 0,
    finer: int = 0,
    units: Sequence[int] = NUMBER_UNITS,
) -> tuple[Bins, NDArray[Any]]:
    """Bin a column of numbers.

    Up to `max_bins` distinct values get a bin each. More are cut at quantiles of the counts, a value's count
    capped at one bin's share, so that a value most records have takes one bin and leaves the rest to the others.

    Parameters
    ----------
    values : ndarray of int64 or float64
        No NaN or infinity; what stands at missing places is ignored.
    missing : ndarray of bool, optional
    max_bins : int
    floor : int
        Fewest records that share what is published of the bins; 0: nothing is to be published.
    finer : int
        A smaller floor for which that is wanted, too; 0: none.
    units : sequence of int
        As of `share_numbers`.

    Returns
    -------
    bins : Bins
    codes : ndarray of uint8 or uint16

    Examples
    --------
    >>> bins, codes = bin_numbers(np.array([40, 20, 40, 30]))
    >>> bins.values.tolist(), codes.tolist()
    ([20, 30, 40], [2, 0, 2, 1])
    """
    has_missing = missing is not None and bool(missing.any())
    mask = missing if missing is not None and has_missing else np.zeros(0, np.bool_)
    if len(values) == 0 or (has_missing and bool(mask.all())):
        empty = np.zeros(0, values.dtype)
        return bin_counts(empty, np.zeros(0, np.int64), has_missing=has_missing, floor=floor, finer=finer), np.zeros(
            len(values), np.uint8
        )
    distinct, counts = sorted_distinct(values, mask)
    bins = bin_counts(
        distinct, counts, has_missing=has_missing, max_bins=max_bins, floor=floor, finer=finer, units=units
    )
    codes = search_bins(values, bins.high, code_type(bins.n_bins))
    if has_missing:
        codes[mask] = bins.missing_bin
    return bins, codes


def bin_counts(
    distinct: NDArray[Any],
    counts: NDArray[np.int64],
    *,
    has_missing: bool,
    max_bins: int = DEFAULT_MAX_BINS,
    floor: int = 0,
    finer: int = 0,
    units: Sequence[int] = NUMBER_UNITS,
) -> Bins:
    """Return the bins of numbers of which it is known how often each occurs; `distinct` is rising."""
    if not len(distinct):
        shared = _for_floors(lambda least: nothing_shared(distinct, least), floor, finer)
        return Bins(True, distinct, distinct, distinct, has_missing, *shared)
    if len(distinct) <= max_bins:
        starts = modes = np.arange(len(distinct))
    else:
        starts, modes = _cut_at_quantiles(counts, max_bins)
    high = distinct[np.append(starts[1:], len(distinct)) - 1]
    shared = _for_floors(lambda least: share_numbers(distinct, counts, starts, least, units), floor, finer)
    return Bins(True, distinct[modes], distinct[starts], high, has_missing, *shared)


def _for_floors(
    share: Callable[[int], SharedValues], floor: int, finer: int
) -> tuple[SharedValues | None, SharedValues | None]:
    """Return what may be published for a floor, and for a smaller one; None for those that are 0."""
    shared = share(floor) if floor else None
    return shared, shared if finer == floor else share(finer) if finer else None


def bin_own_categories(
    n_categories: int, has_missing: bool, counts: NDArray[np.int64] | None = None, floor: int = 0, finer: int = 0
) -> Bins:
    """Return the bins of categories: one each; with a floor, `counts` say how many records have just that one."""
    own = np.arange(n_categories, dtype=np.int64)
    if counts is None:
        return Bins(False, own, own, own, has_missing)
    shared = _for_floors(lambda least: share_categories(counts, least), floor, finer)
    return Bins(False, own, own, own, has_missing, *shared)


def most_frequent(counts: NDArray[np.int64], n_most: int = MAX_CODES - 3) -> NDArray[np.int64]:
    """Return, rising, the indexes of the categories that get a bin of their own where there are more than codes.

    They are the most frequent ones, the lowest on ties. Another category shares the bin of the kept one before it in
    the order of the categories; see `shared_codes`.
    """
    if len(counts) <= n_most:
        return np.arange(len(counts))
    return np.sort(np.argsort(-counts, kind="stable")[:n_most])


def shared_codes(kept: NDArray[np.int64], n_categories: int) -> NDArray[np.int64]:
    """Return the bin of every category, given those that have one of their own."""
    return np.maximum(np.searchsorted(kept, np.arange(n_categories), side="right") - 1, 0)


def bin_categories(
    indexes: NDArray[Any],
    missing: NDArray[np.bool_] | None,
    n_categories: int,
    *,
    counts: NDArray[np.int64] | None = None,
    floor: int = 0,
    finer: int = 0,
) -> tuple[Bins, NDArray[Any]]:
    """Give every category a bin: its own index. `indexes` point into the sorted categories that occur.

    `counts` say how many records have each category itself, where others share its bin.
    """
    has_missing = missing is not None and bool(missing.any())
    if floor and counts is None:
        present = indexes if missing is None else indexes[~missing]
        counts = np.bincount(present, minlength=n_categories).astype(np.int64)
    bins = bin_own_categories(n_categories, has_missing, counts, floor, finer)
    codes = indexes.astype(code_type(bins.n_bins))
    if has_missing:
        codes[missing] = bins.missing_bin
    return bins, codes


def search_bins(values: NDArray[Any], high: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return each value's bin: the first whose upper end reaches it.

    The range of the ends is cut into equal cells; the cell of a value leaves few bins to search, mostly one or two.
    Values beyond the ends, which stand at missing places only, get the first or the last bin.
    """
    codes = np.empty(len(values), dtype)
    lowest, highest = float(high[0]), float(high[-1])
    n_cells = min(_MOST_CELLS, max(16 * len(high), min(128 * len(high), len(values) // 16)))  # what pays for filling
    scale = n_cells / (highest - lowest) if highest > lowest else 0.0
    if not np.isfinite(scale) or not np.isfinite(highest - lowest):
        scale = 0.0  # one cell holds all bins: a plain binary search
    cell_of_end = _cells(high, lowest, scale, n_cells)
    first = np.searchsorted(cell_of_end, np.arange(n_cells + 2))
    _search_cells(values, high, first, lowest, scale, n_cells, codes)
    return codes


@njit(nogil=True, cache=True)
def _cell(value, lowest, scale, n_cells):  # type: ignore[no-untyped-def]
    # Rounding may move a value to a neighboring cell, but never past a larger value: order is all that counts.
    if scale == 0.0 or value <= lowest:  # far below, the difference would leave the range of floats
        return np.int64(0)
    return np.int64(min(max((np.float64(value) - lowest) * scale, 0.0), np.float64(n_cells)))


@njit(nogil=True, cache=True)
def _cells(values, lowest, scale, n_cells):  # type: ignore[no-untyped-def]
    cells = np.empty(values.shape[0], np.int64)
    for i in range(values.shape[0]):
        cells[i] = _cell(values[i], lowest, scale, n_cells)
    return cells


@njit(nogil=True, cache=True)
def _search_cells(values, high, first, lowest, scale, n_cells, out):  # type: ignore[no-untyped-def]
    last = high.shape[0] - 1
    for i in range(values.shape[0]):
        value = values[i]
        cell = _cell(value, lowest, scale, n_cells)
        low = first[cell]  # ends in lower cells are below the value
        above = min(first[cell + 1], last)  # and the first end in a higher cell reaches it
        while low < above:
            middle = (low + above) >> 1
            if high[middle] < value:
                low = middle + 1
            else:
                above = middle
        out[i] = min(low, last)


@njit(nogil=True, cache=True)
def _cut_at_quantiles(counts, max_bins):  # type: ignore[no-untyped-def]
    """Return the first distinct value of each bin, and its most frequent one, the lowest on ties.

    All in integers (counts times `max_bins`), so that no rounding depends on the machine.
    """
    n_records, capped = 0, 0
    for i in range(counts.shape[0]):
        n_records += counts[i]
    for i in range(counts.shape[0]):
        capped += min(counts[i] * max_bins, n_records)
    starts, modes = np.empty(max_bins, np.int64), np.empty(max_bins, np.int64)
    at, most, before, next_cut = -1, 0, 0, 0
    for i in range(counts.shape[0]):
        if before * max_bins >= next_cut:
            next_cut = (before * max_bins // capped + 1) * capped
            at += 1
            starts[at] = i
            most = 0
        if counts[i] > most:
            modes[at], most = i, counts[i]
        before += min(counts[i] * max_bins, n_records)
    return starts[: at + 1], modes[: at + 1]


def nothing_shared(empty: NDArray[Any], floor: int) -> SharedValues:
    """Return what is published of a column without values."""
    nothing = np.zeros(0, np.bool_)
    return SharedValues(
        empty, np.zeros(0, np.int32), nothing, nothing, empty, empty, np.zeros(2, np.bool_), 0, floor, empty, nothing
    )
