# SPDX-License-Identifier: Apache-2.0
"""The groups of records that agree in all of some columns; the judge, ``verification``, has its own.

``merge_rows`` and ``group_rows`` number rows of codes in their order, in one sort. ``group`` is for large tables:
columns as small codes (``encode``), divided by kernels, column by column. Those codes say which values are equal and
nothing else: 0 is missing, the others are the values that occur, in any order. The kernels keep one counter per code
and clear those they touched, so a column may have as many codes as records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.columns import Column
from sfumato.errors import InputError

MISSING = 0

WORDS = {"number": "numbers", "moment": "dates or times", "category": "categories"}
MOST_CELLS = 1 << 23  # combinations of codes that are counted in one table
CODED_BY_SUBTRACTION = 1 << 20  # whole numbers that span no more than this are coded by subtraction
_KEY_LIMIT = 1 << 62  # keys of merged columns are kept in 64 bits


def merge_rows(
    columns: Sequence[NDArray[np.integer[Any]]], sizes: Sequence[int], n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a row of every group of equal rows, and the group of every row; codes of a column are below its size.

    Groups are in the order of their codes, the first column first; the row of a group is its first.

    Examples
    --------
    >>> first, group = merge_rows([np.array([1, 0, 1]), np.array([2, 2, 2])], [2, 3], 3)
    >>> first.tolist(), group.tolist()
    ([1, 0], [1, 0, 1])
    """
    key, n_keys = np.zeros(n_rows, np.int64), 1
    for codes, size in zip(columns, sizes, strict=True):
        if n_keys > _KEY_LIMIT // size:
            key = np.unique(key, return_inverse=True)[1]
            n_keys = int(key.max()) + 1
        key, n_keys = key * size + codes, n_keys * size
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return first, group


def group_rows(columns: Sequence[NDArray[np.integer[Any]]], n_rows: int) -> NDArray[np.int64]:
    """Return the group of every row, from 0; without columns, all rows form one group.

    Examples
    --------
    >>> group_rows([np.array([0, 0, 1]), np.array([5, 6, 5])], 3).tolist()
    [0, 1, 2]
    """
    return merge_rows(columns, [int(codes.max()) + 1 for codes in columns], n_rows)[1]


def count_candidates(groups: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return how many people may be a person whose groups in several releases are known.

    Parameters
    ----------
    groups : ndarray of int, shape (n_people, n_releases)
        Negative where a person is not in a release.

    Returns
    -------
    ndarray of int64
        The people who are in all releases of the person, and in the same groups, the person included; 0 for a person
        who is in no release.

    Examples
    --------
    >>> count_candidates(np.array([[0, 0], [0, 0], [0, 1], [0, -1]])).tolist()
    [2, 2, 1, 4]
    """
    counts = np.zeros(len(groups), np.int64)
    is_in = groups >= 0
    pattern = group_rows(list(is_in.T.astype(np.int64)), len(groups)) if len(groups) else counts
    for number in range(int(pattern.max(initial=-1)) + 1):
        own = np.flatnonzero(pattern == number)
        releases = np.flatnonzero(is_in[own[0]])
        if not len(releases):
            continue
        also = np.flatnonzero(is_in[:, releases].all(axis=1))  # who is in more releases may be the person, too
        cell = group_rows([groups[also, release] for release in releases], len(also))
        size = np.zeros(len(groups), np.int64)
        size[also] = np.bincount(cell)[cell]
        counts[own] = size[own]
    return counts


@dataclass(frozen=True, eq=False)
class Codes:
    """One column as codes.

    Attributes
    ----------
    values : ndarray of int32
        0 where the value is missing.
    n_codes : int
        Codes are below this; not every one has to occur.
    has_missing : bool
    """

    name: str
    values: NDArray[np.int32]
    n_codes: int
    has_missing: bool


@dataclass(frozen=True, eq=False)
class Grouping:
    """Records in order of their groups: group g is ``order[starts[g]:starts[g + 1]]``."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Records of each group."""
        return np.diff(self.starts)

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.starts) - 1

    def of_records(self) -> NDArray[np.int64]:
        """Return the group of every record."""
        labels: NDArray[np.int64] = label_groups(self.order, self.starts)
        return labels

    def divided(self, column: Codes) -> Grouping:
        """Return the groups divided by one more column."""
        return Grouping(*divide(self.order, self.starts, column.values, column.n_codes))


def encode(column: Column) -> Codes:
    """Turn the values of a column into codes; equal values and no others have equal codes."""
    values = column.values
    if column.categories is not None:
        codes, n_codes = values.astype(np.int32) + np.int32(1), len(column.categories) + 1
    else:
        codes, n_codes = _encode_numbers(values)
    if column.missing is not None:
        codes[column.missing] = MISSING
    return Codes(column.name, codes, n_codes, column.missing is not None)


def _encode_numbers(values: NDArray[Any]) -> tuple[NDArray[np.int32], int]:
    if values.dtype.kind == "i":
        low, high = int(values.min()), int(values.max())
        if high - low < CODED_BY_SUBTRACTION:
            return (values - low).astype(np.int32) + np.int32(1), high - low + 2
    import pyarrow as pa

    encoded = pa.array(values).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int32) + np.int32(1), len(encoded.dictionary) + 1


def number_values(column: Column) -> NDArray[np.int32]:
    """Return a number from 0 for every value of a column, missing last."""
    if column.kind == "category":
        codes = column.values.astype(np.int32)
        n_values = len(column.categories) if column.categories is not None else 0
    else:
        distinct, inverse = np.unique(column.values, return_inverse=True)
        codes, n_values = inverse.astype(np.int32), len(distinct)
    if column.missing is not None:
        codes[column.missing] = n_values
        # A value that only stood where something was missing has no record.
        is_there = np.bincount(codes) > 0
        codes = (np.cumsum(is_there) - 1).astype(np.int32)[codes]
    return codes


def encode_together(first: Column, second: Column) -> tuple[Codes, Codes]:
    """Code the same column of two tables, so that equal values have equal codes in both."""
    stacked = _stacked(first, second)
    codes = encode(stacked)
    at = first.n_records
    return (
        Codes(first.name, codes.values[:at], codes.n_codes, first.missing is not None),
        Codes(first.name, codes.values[at:], codes.n_codes, second.missing is not None),
    )


def _stacked(first: Column, second: Column) -> Column:
    missing = np.concatenate([_is_missing(first), _is_missing(second)])
    is_empty = [bool(_is_missing(column).all()) for column in (first, second)]
    if first.kind != second.kind and not any(is_empty):
        raise InputError(
            f"column {first.name!r} holds {WORDS[first.kind]} in the table and {WORDS[second.kind]} in the "
            "population: expected the same. Convert one of them."
        )
    if any(is_empty):
        kept = second if is_empty[0] else first
        blank = np.zeros(len(missing) - kept.n_records, kept.values.dtype)
        values = np.concatenate([blank, kept.values] if is_empty[0] else [kept.values, blank])
        return Column(first.name, kept.kind, values, missing, kept.categories)
    if first.categories is None or second.categories is None:
        return Column(first.name, first.kind, np.concatenate([first.values, second.values]), missing)
    position = {value: code for code, value in enumerate(first.categories.tolist())}
    for value in second.categories.tolist():
        position.setdefault(value, len(position))
    translate = np.array([position[value] for value in second.categories.tolist()], np.int32)
    categories = np.empty(len(position), object)
    categories[:] = list(position)
    return Column(first.name, "category", np.concatenate([first.values, translate[second.values]]), missing, categories)


def _is_missing(column: Column) -> NDArray[np.bool_]:
    return np.zeros(column.n_records, np.bool_) if column.missing is None else column.missing


def combined(label: NDArray[np.int32], n_labels: int, column: Codes) -> tuple[NDArray[np.int32], int] | None:
    """Return labels for the combinations of a label and a column's codes; None when there could be too many."""
    n_cells = n_labels * column.n_codes
    if n_cells > MOST_CELLS:
        return None
    label = label.copy()
    return label, int(combine(label, column.values, column.n_codes, np.zeros(n_cells, np.int32)))


def group(columns: Sequence[Codes], n_records: int) -> Grouping:
    """Group the records that agree in all columns; without columns, all records form one group.

    Columns with few codes are combined first, in one pass each. Where a column has so many that most records could
    stand alone, it comes first instead: what stands alone is never looked at again.
    """
    waiting = sorted(columns, key=lambda column: column.n_codes)
    label, n_labels = np.zeros(n_records, np.int32), 1
    if not waiting or 4 * waiting[-1].n_codes <= n_records:
        while waiting and (found := combined(label, n_labels, waiting[0])) is not None:
            label, n_labels = found
            waiting.pop(0)
    groups = Grouping(*sort_groups(label, n_labels))
    for column in reversed(waiting):
        groups = groups.divided(column)
    return groups


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
def sort_groups(group: NDArray[np.integer[Any]], n_groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows sorted by group, in their own order within each, and where each group starts among them."""
    starts = np.zeros(n_groups + 1, np.int64)
    for i in range(group.shape[0]):
        starts[group[i] + 1] += 1
    for g in range(n_groups):
        starts[g + 1] += starts[g]
    place = starts[:-1].copy()
    order = np.empty(group.shape[0], np.int64)
    for i in range(group.shape[0]):
        order[place[group[i]]] = i
        place[group[i]] += 1
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
