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
def combine(label: NDArray[np.int32], codes: NDArray[np.int32], n_codes: int, numbers: NDArray[np.int32]) -> int:
    """Number the combinations of a label and a code, write the numbers into `label`, and return how many there are.

    `numbers` has one zero for every combination there could be. One pass in the order of the records: quicker than
    dividing groups while the combinations fit the memory.
    """
    n_found = 0
    for i in range(label.shape[0]):
        cell = np.int64(label[i]) * n_codes + codes[i]
        if numbers[cell] == 0:
            n_found += 1
            numbers[cell] = n_found
        label[i] = numbers[cell] - 1
    return n_found


@njit(cache=True, nogil=True)
def collect(label: NDArray[np.int32], n_labels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the records label after label, and where each label starts."""
    starts = np.zeros(n_labels + 1, np.int64)
    for i in range(label.shape[0]):
        starts[label[i] + 1] += 1
    for g in range(n_labels):
        starts[g + 1] += starts[g]
    place = starts[:-1].copy()
    order = np.empty(label.shape[0], np.int64)
    for i in range(label.shape[0]):
        order[place[label[i]]] = i
        place[label[i]] += 1
    return order, starts


@njit(cache=True, nogil=True)
def count_alone(
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    codes: NDArray[np.int32],
    n_codes: int,
    weights: NDArray[np.uint8],
) -> int:
    """Return how many records would stand alone if every group were divided by one more column.

    A row of weight 1 is one record, a row of weight 2 is two or more that are equal in all columns.
    """
    count = np.zeros(n_codes, np.int64)
    n_alone = 0
    for g in range(starts.shape[0] - 1):
        low, high = starts[g], starts[g + 1]
        if high - low == 1:
            n_alone += weights[order[low]] == 1
            continue
        for i in range(low, high):
            count[codes[order[i]]] += weights[order[i]]
        for i in range(low, high):
            code = codes[order[i]]
            if count[code] == 1:
                n_alone += 1
            count[code] = 0  # a code seen again counts 0, never 1
    return n_alone


@njit(cache=True, nogil=True)
def count_alone_in_pair(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    n_second: int,
    weights: NDArray[np.uint8],
    cells: NDArray[np.uint8],
) -> int:
    """Return how many records are alone with their two codes; weights as in `count_alone`.

    `cells` has one zero for every pair of codes there could be, and counts up to 2, which is as good as more.
    """
    for i in range(first.shape[0]):
        cell = np.int64(first[i]) * n_second + second[i]
        cells[cell] = min(2, cells[cell] + weights[i])
    n_alone = 0
    for cell in range(cells.shape[0]):
        n_alone += cells[cell] == 1
    return n_alone


@njit(cache=True, nogil=True)
def label_groups(order: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of its group for every record."""
    group = np.empty(order.shape[0], np.int64)
    for g in range(starts.shape[0] - 1):
        for i in range(starts[g], starts[g + 1]):
            group[order[i]] = g
    return group
