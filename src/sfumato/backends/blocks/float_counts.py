# SPDX-License-Identifier: Apache-2.0
"""Count single-precision numbers without sorting them: their bits, in the order of the numbers, are places in a table.

A column of measured numbers has nearly as many different values as records. Between its smallest and its largest value
there are not many single-precision numbers, though: eight million from one power of two to the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.partition.binning import Bins, bin_counts
from sfumato.partition.round_numbers import NUMBER_UNITS, smallest_step
from sfumato.partition.shared_values import SharedValues, describe_run, runs_of, share_runs

_PAGE = 16  # bits of a place within a page
_MOST_PAGES = 1 << 11
"""Pages of a table: half a GiB of counts."""


class FloatCounts:
    """How often each single-precision number occurs.

    Examples
    --------
    >>> counts = FloatCounts()
    >>> import pyarrow as pa
    >>> counts.add("rent", pa.array([1.5, None, -2.0, 1.5], pa.float32()))
    True
    >>> [part.tolist() for part in counts.found()]
    [[-2.0, 1.5], [1, 2]]
    """

    def __init__(self) -> None:
        # The keys of all numbers fall into 65,536 pages, of which those are made that a number falls into.
        self._page_of: NDArray[np.int32] = np.full(1 << 16, -1, np.int32)
        self._pages: NDArray[np.uint32] = np.zeros((0, 1 << _PAGE), np.uint32)
        self._n_pages = 0
        self.has_missing = False
        self.is_used = False

    def add(self, name: str, array: Any) -> bool:
        """Count an Arrow array of float32; False, with nothing counted, where its values lie too far apart."""
        import pyarrow.compute as pc

        self.is_used = True
        ends = pc.min_max(array)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is None or low != low or low > high:  # nothing but missing values and NaN
            self.has_missing |= len(array) > 0
            return True
        if np.isinf(low) or np.isinf(high):
            raise InputError(
                f"column {name!r} contains infinity: expected finite numbers. Replace infinity by a number or by a "
                "missing value."
            )
        validity, values = array.buffers()
        own = np.frombuffer(values, np.float32)[array.offset : array.offset + len(array)]
        present = np.frombuffer(validity, np.uint8) if array.null_count else np.zeros(0, np.uint8)
        is_hit = np.zeros(1 << 16, np.bool_)
        _mark_pages(own, present, array.offset, is_hit)
        if not self._make_pages(np.flatnonzero(is_hit & (self._page_of < 0))):
            return False
        n_counted = _count(own, present, array.offset, self._page_of, self._pages)
        self.has_missing |= n_counted < len(array)
        return True

    def _make_pages(self, new: NDArray[np.int64]) -> bool:
        """Make room for keys in new pages; False where there would be too many."""
        n_pages = self._n_pages + len(new)
        if n_pages > _MOST_PAGES:
            return False
        if n_pages > len(self._pages):
            pages = np.zeros((min(_MOST_PAGES, 2 * n_pages), 1 << _PAGE), np.uint32)
            pages[: self._n_pages] = self._pages[: self._n_pages]
            self._pages = pages
        self._page_of[new] = np.arange(self._n_pages, n_pages)
        self._n_pages = n_pages
        return True

    def found(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the numbers that occurred, rising, and how often each did."""
        hit = np.flatnonzero(self._page_of >= 0)  # in the order of their keys
        places = [np.flatnonzero(self._pages[self._page_of[page]]) for page in hit]
        keys = [(page << _PAGE) + own for page, own in zip(hit.tolist(), places, strict=True)]
        counts = [self._pages[self._page_of[page]][own] for page, own in zip(hit, places, strict=True)]
        none = np.zeros(0, np.int64)
        return _numbers(np.concatenate([none, *keys])), np.concatenate([none, *counts]).astype(np.int64)

    def bins(self, max_bins: int, *, has_missing: bool, floor: int = 0) -> Bins:
        """Return the bins of what was counted: those that ``bin_counts`` makes, without listing millions of values."""
        hit = np.flatnonzero(self._page_of >= 0)
        of_hit = self._page_of[hit]
        n_distinct, total = _totals(of_hit, self._pages)
        if n_distinct <= max_bins:
            return bin_counts(*self.found(), has_missing=has_missing, max_bins=max_bins, floor=floor)
        keys = np.zeros((3, max_bins + 1), np.int64)
        n_bins = _cut(hit, of_hit, self._pages, total, max_bins, keys)
        values, low, high = (_numbers(own[:n_bins]) for own in keys)
        shared = self._shared(keys[1, :n_bins], keys[2, :n_bins], floor) if floor else None
        return Bins(True, values, low, high, has_missing, shared)

    def _shared(self, low: NDArray[np.int64], high: NDArray[np.int64], floor: int) -> SharedValues:
        """Return what may be published of bins with these first and last keys, one run's values at a time."""
        n_records, n_modes, n_values, are_whole = [], [], [], True
        for first, last in zip(low.tolist(), high.tolist(), strict=True):
            values, counts = self._between(first, last)
            n_records.append(int(counts.sum()))
            n_modes.append(int(counts.max()))
            n_values.append(len(values))
            are_whole &= smallest_step(values, NUMBER_UNITS) > 0
        step = NUMBER_UNITS[-1] if are_whole else 0
        runs = []
        for first_bin, stop_bin in runs_of(np.array(n_records), floor):
            values, counts = self._between(int(low[first_bin]), int(high[stop_bin - 1]))
            starts = np.cumsum([0, *n_values[first_bin : stop_bin - 1]])
            runs.append(describe_run(values, counts, starts, first_bin, floor, NUMBER_UNITS, step))
        return share_runs(runs, np.array(n_values) == 1, np.array(n_modes), floor, NUMBER_UNITS, step)

    def _between(self, first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the numbers that occurred from one key to another, rising, and how often each did."""
        keys, counts = [], []
        for page in range(first >> _PAGE, (last >> _PAGE) + 1):
            if self._page_of[page] < 0:
                continue
            start = max(first - (page << _PAGE), 0)
            own = self._pages[self._page_of[page]][start : last - (page << _PAGE) + 1]
            places = np.flatnonzero(own)
            keys.append((page << _PAGE) + start + places)
            counts.append(own[places])
        return _numbers(np.concatenate(keys)), np.concatenate(counts).astype(np.int64)


def _numbers(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the numbers of keys; see `_key`."""
    middle = np.int64(1 << 31)
    bits = np.where(keys < middle, middle + (middle - keys), keys - middle).astype(np.uint32)
    return bits.view(np.float32).astype(np.float64)


@njit(nogil=True, cache=True)
def _key(bits):  # type: ignore[no-untyped-def]
    """Return a whole number of 32 bits in the order of the numbers; both zeros have the one in the middle."""
    key = np.int64(bits)  # of 32 bits with a sign: negative numbers have a negative one, and their size in the rest
    middle = np.int64(1) << 31
    return middle - (key + middle) if key < 0 else middle + key


@njit(nogil=True, cache=True)
def _is_number(values, present, first_bit, i):  # type: ignore[no-untyped-def]
    bit = first_bit + i
    is_there = present.shape[0] == 0 or (present[bit >> 3] >> np.uint8(bit & 7)) & 1 == 1
    return is_there and values[i] == values[i]


@njit(nogil=True, cache=True)
def _mark_pages(values, present, first_bit, is_hit):  # type: ignore[no-untyped-def]
    bits = values.view(np.int32)
    for i in range(values.shape[0]):
        if _is_number(values, present, first_bit, i):
            is_hit[_key(bits[i]) >> _PAGE] = True


@njit(nogil=True, cache=True)
def _count(values, present, first_bit, page_of, pages):  # type: ignore[no-untyped-def]
    """Count the values that are there and are numbers, and return how many those are."""
    bits = values.view(np.int32)
    n_counted = 0
    for i in range(values.shape[0]):
        if _is_number(values, present, first_bit, i):
            key = _key(bits[i])
            pages[page_of[key >> _PAGE], key & 65535] += np.uint32(1)
            n_counted += 1
    return n_counted


@njit(nogil=True, cache=True)
def _totals(of_hit, pages):  # type: ignore[no-untyped-def]
    """Return how many different values there are, and how many in all."""
    n_distinct = total = np.int64(0)
    for page in of_hit:
        for place in range(pages.shape[1]):
            if pages[page, place] != 0:
                n_distinct += 1
                total += pages[page, place]
    return n_distinct, total


@njit(nogil=True, cache=True)
def _cut(hit, of_hit, pages, total, max_bins, keys):  # type: ignore[no-untyped-def]
    """Write the keys of each bin's most frequent, lowest and highest value, and return the number of bins.

    As `bin_counts` does: bins are cut at quantiles of the counts, each capped at one bin's share.
    """
    all_capped = np.int64(0)
    for page in of_hit:
        for place in range(pages.shape[1]):
            all_capped += min(np.int64(pages[page, place]) * max_bins, total)
    before = np.int64(0)
    last_raw, bin_, most = np.int64(-1), -1, np.int64(0)
    for number in range(hit.shape[0]):
        for place in range(pages.shape[1]):
            count = np.int64(pages[of_hit[number], place])
            if count == 0:
                continue
            key = (hit[number] << _PAGE) + place
            raw = before * max_bins // all_capped
            before += min(count * max_bins, total)
            if raw != last_raw:
                last_raw, most = raw, np.int64(0)
                bin_ += 1
                keys[1, bin_] = key
            if count > most:  # the lowest of the most frequent
                most = count
                keys[0, bin_] = key
            keys[2, bin_] = key
    return bin_ + 1
