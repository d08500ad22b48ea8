# SPDX-License-Identifier: Apache-2.0
"""Divide records into groups column by column, and count how many stand alone.

Arrays in, arrays out; ``grouping`` and ``ranking`` call these. A code is a number from 0 to ``n_codes - 1``. The
kernels keep one counter per code and clear those they touched, so a column may have as many codes as records.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def divide(
    order: NDArray[np.int64], starts: NDArray[np.int64], codes: NDArray[np.int32], n_codes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide every group by one more column.

    Group g is ``order[starts[g]:starts[g + 1]]``. Its parts come in the order in which their codes appear in it.
    """
    n_records = order.shape[0]
    place = np.zeros(n_codes, np.int64)  # first how many records have the code, then where the next of them goes
    touched = np.empty(n_codes, np.int64)
    new_order = np.empty_like(order)
    new_starts = np.empty(n_records + 1, np.int64)
    n_groups = 0
    for g in range(starts.shape[0] - 1):
        low, high = starts[g], starts[g + 1]
        if high - low == 1:  # nothing is left to divide
            new_order[low] = order[low]
            new_starts[n_groups] = low
            n_groups += 1
            continue
        n_touched = 0
        for i in range(low, high):
            code = codes[order[i]]
            if place[code] == 0:
                touched[n_touched] = code
                n_touched += 1
            place[code] += 1
        at = low
        for t in range(n_touched):
            size = place[touched[t]]
            place[touched[t]] = at
            new_starts[n_groups] = at
            n_groups += 1
            at += size
        for i in range(low, high):
            code = codes[order[i]]
            new_order[place[code]] = order[i]
            place[code] += 1
        for t in range(n_touched):
            place[touched[t]] = 0
    new_starts[n_groups] = n_records
    return new_order, new_starts[: n_groups + 1].copy()


@njit(cache=True, nogil=True)
def count_alone(order: NDArray[np.int64], starts: NDArray[np.int64], codes: NDArray[np.int32], n_codes: int) -> int:
    """Return how many records would stand alone if every group were divided by one more column."""
    count = np.zeros(n_codes, np.int64)
    n_alone = 0
    for g in range(starts.shape[0] - 1):
        low, high = starts[g], starts[g + 1]
        if high - low == 1:
            n_alone += 1
            continue
        for i in range(low, high):
            count[codes[order[i]]] += 1
        for i in range(low, high):
            code = codes[order[i]]
            if count[code] == 1:
                n_alone += 1
            count[code] = 0  # a code seen again counts 0, never 1
    return n_alone


@njit(cache=True, nogil=True)
def count_alone_in_pair(first: NDArray[np.int32], second: NDArray[np.int32], cells: NDArray[np.int32]) -> int:
    """Return how many records are alone with their two codes; `cells` (codes, codes) is zero before and after use.

    One pass in the order of the records: quicker than dividing while the cells fit the memory.
    """
    for i in range(first.shape[0]):
        cells[first[i], second[i]] += 1
    n_alone = 0
    for a in range(cells.shape[0]):
        for b in range(cells.shape[1]):
            if cells[a, b] == 1:
                n_alone += 1
            cells[a, b] = 0
    return n_alone


@njit(cache=True, nogil=True)
def label_groups(order: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of its group for every record."""
    group = np.empty(order.shape[0], np.int64)
    for g in range(starts.shape[0] - 1):
        for i in range(starts[g], starts[g + 1]):
            group[order[i]] = g
    return group
