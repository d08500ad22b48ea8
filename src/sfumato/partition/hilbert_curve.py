# SPDX-License-Identifier: Apache-2.0
"""Order records along a Hilbert curve and cut the order into runs at the least information loss.

A Hilbert curve visits every cell of a d-dimensional grid once, each step going to a neighboring cell, so records
that are neighbors on the curve are neighbors in space. ``anonymize.hilbert`` calls the three functions in turn:
`make_grid`, `hilbert_keys`, `best_runs`. Slow twins stand in ``tests/twins``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.records import Layout
from sfumato.threads import map_in_threads, stretches

EXACT_UP_TO = 100
"""Largest k for which a run may end at every key; beyond it only at every (k / 100)th, which bounds the work."""


_SHARED_FROM = 100_000  # records; below it threads cost more than they bring
_SPARE_BITS = 2  # beyond those that number a column's codes: room to stand where their values do


class Grid(NamedTuple):
    """Where on a grid the codes of every column stand.

    Attributes
    ----------
    n_bits : int
        The grid has 2^n_bits places along every axis.
    offsets : ndarray of int64
        First entry of each column in `places`, and the total at the end.
    places : ndarray of uint16
        Place of each code along its column's axis, rising within a column.
    """

    n_bits: int
    offsets: NDArray[np.int64]
    places: NDArray[np.uint16]


def make_grid(layout: Layout) -> Grid:
    """Give every code of every column a place of its own, as near as can be to where its value stands.

    A column's values fill the whole axis: numbers by their distance, categories and missing at equal steps, so that
    two records are as far apart on the grid as information loss sees them.

    Examples
    --------
    >>> from sfumato.partition.binning import bin_numbers
    >>> from sfumato.partition.records import make_layout
    >>> bins, _ = bin_numbers(np.array([0, 1, 2, 100]))
    >>> grid = make_grid(make_layout([bins]))
    >>> grid.n_bits, grid.places.tolist()
    (4, [0, 1, 2, 15])
    """
    n_codes = np.diff(layout.offsets)
    n_bits = min(16, max(1, int(n_codes.max(initial=1) - 1).bit_length()) + _SPARE_BITS)
    last = (1 << n_bits) - 1
    places = np.zeros(int(layout.offsets[-1]), np.uint16)
    for j, n in enumerate(n_codes):
        column = slice(int(layout.offsets[j]), int(layout.offsets[j + 1]))
        if layout.is_category[j]:
            wanted = np.arange(n) * last // max(1, n - 1)
        else:
            wanted = np.floor((layout.low[column] + layout.high[column]) / 2 * last).astype(np.int64)
            if layout.missing[j] >= 0:
                wanted[layout.missing[j]] = last if n > 1 else 0
        # Rising by at least 1 from the left, then pushed back from the right where the axis ends.
        steps = np.arange(n)
        rising = np.maximum.accumulate(wanted - steps) + steps
        places[column] = np.minimum(rising, last - (n - 1) + steps)
    return Grid(n_bits, layout.offsets, places)


def grid_coordinates(codes: NDArray[Any], grid: Grid) -> NDArray[np.uint16]:
    """Return the place of every record along every axis; codes beyond a column's last count as its last.

    Parameters
    ----------
    codes : ndarray of shape (n, at least columns)
    grid : Grid
    """
    n_columns = len(grid.offsets) - 1
    result = np.empty((len(codes), n_columns), np.uint16)
    for j in range(n_columns):
        places = grid.places[grid.offsets[j] : grid.offsets[j + 1]]
        result[:, j] = places[np.minimum(codes[:, j], len(places) - 1)]
    return result


def hilbert_keys(coordinates: NDArray[np.uint16], n_bits: int, *, n_threads: int = 1) -> NDArray[np.uint64]:
    """Return each point's place on the Hilbert curve.

    Parameters
    ----------
    coordinates : ndarray of uint16, shape (n, d)
        Points of a grid with 2^n_bits places along every axis.
    n_bits : int
        From 1 to 16.
    n_threads : int

    Returns
    -------
    keys : ndarray of uint64, shape (n, words)
        d * n_bits bits, the first word being the most significant. 12 axes of 8 bits need two words.

    References
    ----------
    Skilling, J. (2004). Programming the Hilbert curve.

    Examples
    --------
    >>> square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]], np.uint16)
    >>> hilbert_keys(square, 1).ravel().tolist()
    [0, 1, 2, 3]
    """
    n, d = coordinates.shape
    coordinates = np.ascontiguousarray(coordinates)
    keys = np.zeros((n, max(1, -(-d * n_bits // 64))), np.uint64)
    n_threads = n_threads if n >= _SHARED_FROM else 1
    map_in_threads(lambda run: _hilbert_keys(coordinates[run], n_bits, keys[run]), stretches(n, n_threads), n_threads)
    return keys


def sort_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the records in order of their keys, and where in that order each different key starts."""
    n_words = keys.shape[1]
    order = np.lexsort([keys[:, w] for w in range(n_words - 1, -1, -1)]) if n_words > 1 else np.argsort(keys[:, 0])
    ordered = keys[order]
    is_new = np.ones(len(keys), np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, np.flatnonzero(is_new)


def find_runs(keys: NDArray[np.uint64], first_keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the run each key falls in: the last one that starts at or before it, the first for keys before all.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n, words)
    first_keys : ndarray of uint64, shape (runs, words)
        Rising.
    """
    out = np.empty(len(keys), np.int64)
    _find_runs(np.ascontiguousarray(keys), np.ascontiguousarray(first_keys), out)
    return out


def best_runs(
    codes: NDArray[Any], counts: NDArray[np.int64], layout: Layout, k: int, *, exact_up_to: int = EXACT_UP_TO
) -> tuple[NDArray[np.int64], float]:
    """Cut a sequence of different records into runs of at least k records at the least information loss.

    The loss of a run is its number of records times the sum of its widths over the columns, `grouping.widths`.
    No run in the result could be cut into two of at least k, so where every record is different the runs have k to
    2k - 1 records. For k up to `exact_up_to` no other way of cutting loses less. Beyond, cuts are only considered
    at every (k / `exact_up_to`)th record or so, and the result is the best of those.

    Parameters
    ----------
    codes : ndarray of shape (m, at least columns)
        Codes of the different records, in order of their keys.
    counts : ndarray of int64, shape (m,)
        How often each occurs; they sum to at least k.
    layout : Layout
    k : int

    Returns
    -------
    starts : ndarray of int64
        Where each run starts in the sequence.
    loss : float
        Of all runs together.
    """
    m = len(counts)
    before = np.zeros(m + 1, np.int64)
    np.cumsum(counts, out=before[1:])
    stride = max(1, -(-k // exact_up_to))
    may_cut = np.ones(m + 1, np.bool_)
    if stride > 1:
        may_cut[1:m] = before[1:m] // stride != before[: m - 1] // stride
    previous = np.zeros(m + 1, np.int64)
    loss = np.full(m + 1, np.inf)
    n_codes = np.diff(layout.offsets)
    share = 1.0 / np.maximum(1, n_codes - 1)
    _best_runs(codes, before, may_cut, layout, share, k, loss, previous)
    starts = []
    at = m
    while at > 0:
        at = int(previous[at])
        starts.append(at)
    return np.array(starts[::-1], np.int64), float(loss[m])


@njit(nogil=True, cache=True)
def _hilbert_keys(coordinates, n_bits, keys):  # type: ignore[no-untyped-def]
    n, d = coordinates.shape
    x = np.zeros(d, np.uint32)
    unused = keys.shape[1] * 64 - d * n_bits  # leading zeros of the first word
    for i in range(n):
        for j in range(d):
            x[j] = coordinates[i, j]
        q = np.uint32(1 << (n_bits - 1))
        while q > 1:  # undo the reflections and exchanges of the larger cells, from the largest on
            p = np.uint32(q - np.uint32(1))
            for j in range(d):
                if x[j] & q:
                    x[0] ^= p
                else:
                    t = np.uint32((x[0] ^ x[j]) & p)
                    x[0] ^= t
                    x[j] ^= t
            q = np.uint32(q >> np.uint32(1))
        for j in range(1, d):  # Gray code
            x[j] ^= x[j - 1]
        t = np.uint32(0)
        q = np.uint32(1 << (n_bits - 1))
        while q > 1:
            if x[d - 1] & q:
                t ^= np.uint32(q - np.uint32(1))
            q = np.uint32(q >> np.uint32(1))
        for j in range(d):
            x[j] ^= t
        place = unused
        for b in range(n_bits - 1, -1, -1):
            for j in range(d):
                bit = np.uint64((x[j] >> np.uint32(b)) & np.uint32(1))
                keys[i, place >> 6] |= bit << np.uint64(63 - (place & 63))
                place += 1


@njit(nogil=True, cache=True)
def _find_runs(keys, first_keys, out):  # type: ignore[no-untyped-def]
    n_words = keys.shape[1]
    for i in range(keys.shape[0]):
        low, high = 0, first_keys.shape[0]  # the answer lies from low on and before high
        while high - low > 1:
            middle = (low + high) >> 1
            is_after = False
            for w in range(n_words):
                if first_keys[middle, w] != keys[i, w]:
                    is_after = first_keys[middle, w] > keys[i, w]
                    break
            if is_after:
                high = middle
            else:
                low = middle
        out[i] = low


@njit(nogil=True, cache=True)
def _best_runs(codes, before, may_cut, layout, share, k, loss, previous):  # type: ignore[no-untyped-def]
    offsets, missing, is_category, low, high = (
        layout.offsets,
        layout.missing,
        layout.is_category,
        layout.low,
        layout.high,
    )
    n_columns = missing.shape[0]
    m = before.shape[0] - 1
    seen = np.zeros(offsets[n_columns], np.int64)  # the end for which a category was last seen; ends start at 1
    lowest, highest = np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64)
    has_missing = np.zeros(n_columns, np.bool_)
    width = np.zeros(n_columns)
    loss[0] = 0.0
    for end in range(1, m + 1):
        if not may_cut[end] or before[end] < k:
            continue
        for j in range(n_columns):
            lowest[j], highest[j] = np.int64(1 << 30), -1
            has_missing[j] = False
            width[j] = -share[j] if is_category[j] else 0.0  # the first category costs nothing
        last_start = -1  # start of the shortest run to this end
        for start in range(end - 1, -1, -1):
            if last_start >= 0 and before[last_start] - before[start] >= k:
                break  # what comes before the shortest run is a run of its own: cutting it off never costs
            for j in range(n_columns):
                code = np.int64(codes[start, j])
                if is_category[j]:
                    if seen[offsets[j] + code] != end:
                        seen[offsets[j] + code] = end
                        width[j] += share[j]
                elif code < lowest[j] or code > highest[j]:
                    if code == missing[j]:
                        has_missing[j] = True
                    else:
                        lowest[j] = min(lowest[j], code)
                        highest[j] = max(highest[j], code)
                    if highest[j] >= 0:
                        if has_missing[j]:
                            width[j] = 1.0
                        else:
                            width[j] = high[offsets[j] + highest[j]] - low[offsets[j] + lowest[j]]
            size = before[end] - before[start]
            if size < k or not may_cut[start]:
                continue
            if last_start < 0:
                last_start = start
            if loss[start] == np.inf:
                continue
            total = 0.0
            for j in range(n_columns):
                total += width[j]
            candidate = loss[start] + size * total
            if candidate < loss[end]:
                loss[end] = candidate
                previous[end] = start
