# SPDX-License-Identifier: Apache-2.0
"""Count the distinct values of a column of numbers by a radix sort.

Called by ``binning``, and by backends that count the values of a table block by block. The reference implementation is
``np.unique``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_COUNTED_SPAN = 1 << 20
"""Integers that span less than this are counted in a table instead of sorted."""

_LARGEST = np.iinfo(np.int64).max
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def sorted_distinct(
    values: NDArray[Any], missing: NDArray[np.bool_] | None = None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct values that are not missing, in rising order, and their counts.

    The bits of a number, with the sign reversed, are unsigned integers in the same order, which are sorted digit by
    digit. A whole fit of six columns of prices takes 1.2 times as long with ``np.unique``; columns of few values gain
    nothing. Equal digits cost nothing, and neither do those that a single-precision number leaves empty in a double.

    Examples
    --------
    >>> distinct, counts = sorted_distinct(np.array([2.5, -1.0, 2.5]))
    >>> distinct.tolist(), counts.tolist()
    ([-1.0, 2.5], [1, 2])
    """
    mask = np.zeros(0, np.bool_) if missing is None else missing
    is_float = values.dtype.kind == "f"
    if not is_float:
        present = values[~mask] if len(mask) else values
        low, high = int(present.min(initial=_LARGEST)), int(present.max(initial=-_LARGEST))
        if 0 <= high - low < _COUNTED_SPAN:
            table = np.bincount(present - low)
            filled = np.flatnonzero(table)
            return (filled + low).astype(values.dtype), table[filled]
    is_single = is_float and _fit_single_precision(values, mask)
    packed = np.empty(len(values) - np.count_nonzero(mask), np.float32 if is_single else values.dtype)
    _pack_present(values, mask, packed)
    keys = packed.view(np.uint32 if is_single else np.uint64)
    sign = keys.dtype.type(1 << (8 * keys.itemsize - 1))
    _order_bits(keys, sign, is_float)
    distinct, counts = _count_sorted(_sort_by_digits(keys, np.empty_like(keys)))
    bits = np.where(distinct & sign != 0, distinct ^ sign, ~distinct) if is_float else distinct ^ sign
    return bits.view(packed.dtype).astype(values.dtype), counts


@njit(nogil=True, cache=True)
def _fit_single_precision(values, mask):  # type: ignore[no-untyped-def]
    """Return True if single precision loses nothing, which halves the digits to sort by; stop at the first misfit."""
    is_masked = mask.shape[0] > 0
    for i in range(values.shape[0]):
        if is_masked and mask[i]:
            continue
        if abs(values[i]) > _LARGEST_SINGLE or np.float64(np.float32(values[i])) != values[i]:
            return False
    return True


@njit(nogil=True, cache=True)
def _pack_present(values, mask, packed):  # type: ignore[no-untyped-def]
    """Copy the values that are not masked."""
    is_masked = mask.shape[0] > 0
    n_packed = 0
    for i in range(values.shape[0]):
        if not (is_masked and mask[i]):
            packed[n_packed] = values[i]
            n_packed += 1


@njit(nogil=True, cache=True)
def _order_bits(keys, sign, is_float):  # type: ignore[no-untyped-def]
    """Map the bits of numbers to unsigned integers in the same order; -0.0 becomes 0.0."""
    for i in range(keys.shape[0]):
        if is_float and keys[i] >= sign:  # negative: the larger the bits, the smaller the number
            keys[i] = ~keys[i] if keys[i] > sign else sign
        else:
            keys[i] ^= sign


@njit(nogil=True, cache=True)
def _sort_by_digits(keys, spare):  # type: ignore[no-untyped-def]
    """Sort unsigned integers by their digits of 11 bits, the lowest first; overwrite both arrays and return one."""
    differing = np.uint64(0)  # bits that are not the same in all keys
    for i in range(keys.shape[0]):
        differing |= np.uint64(keys[i] ^ keys[0])
    place = np.empty(2048, np.int64)
    for digit in range(3 if keys.itemsize == 4 else 6):
        shift = np.uint64(11 * digit)
        if (differing >> shift) & np.uint64(2047) == 0:
            continue
        place[:] = 0
        for i in range(keys.shape[0]):
            place[(np.uint64(keys[i]) >> shift) & np.uint64(2047)] += 1
        total = 0
        for value in range(2048):
            count = place[value]
            place[value] = total
            total += count
        for i in range(keys.shape[0]):
            own = (np.uint64(keys[i]) >> shift) & np.uint64(2047)
            spare[place[own]] = keys[i]
            place[own] += 1
        keys, spare = spare, keys
    return keys


@njit(nogil=True, cache=True)
def _count_sorted(keys):  # type: ignore[no-untyped-def]
    """Return the distinct values of a sorted array and how often each occurs."""
    n = keys.shape[0]
    n_distinct = 0
    for i in range(n):
        if i == 0 or keys[i] != keys[i - 1]:
            n_distinct += 1
    distinct = np.empty(n_distinct, keys.dtype)
    counts = np.zeros(n_distinct, np.int64)
    at = -1
    for i in range(n):
        if i == 0 or keys[i] != keys[i - 1]:
            at += 1
            distinct[at] = keys[i]
        counts[at] += 1
    return distinct, counts
