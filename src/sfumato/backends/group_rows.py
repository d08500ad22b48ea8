# SPDX-License-Identifier: Apache-2.0
"""Rows of counts of groups of records, and the records that a group's values match.

A criterion says the same of two groups with the same counts. Most groups of a table that was not anonymized hold one
record, so a million groups often have a few hundred distinct rows of counts.

Two records match when each key is equal in both or missing in at least one. This is not an equivalence: a record with
missing values may match two that do not match each other. So there are no groups, only sets of matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column
from sfumato.errors import InputError, named
from sfumato.grouping import MISSING, Codes, Grouping, group

LARGEST_WORK = 1 << 28  # counts looked at per criterion
LARGEST_MATCHING = 500_000_000  # keys compared over all pairs of patterns of missing values: some minutes of work
_CELLS_AT_ONCE = 1 << 20


class Rows(Protocol):
    """Distinct rows of counts, in any backend."""

    @property
    def n_rows(self) -> int:  # noqa: D102 - how many rows there are
        ...

    @property
    def n_values(self) -> int:  # noqa: D102 - how many values there are in all
        ...

    def worst(self, criteria: Sequence[tuple[Any, bool]], reference: NDArray[np.int64]) -> list[float]:
        """Return the worst row's value of each criterion: the least if True stands beside it, or else the greatest."""
        ...


@dataclass(frozen=True, eq=False)
class CountRows:
    """Rows of counts, stored by the values that occur.

    Attributes
    ----------
    starts : ndarray of int64, shape (rows + 1,)
        Where each row begins in `values` and `counts`.
    values, counts : ndarray of int64
        The values of a row, rising, and how often each occurs.
    n_values : int
        How many values there are in all.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    n_values: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

    def blocks(self) -> Iterator[NDArray[np.int64]]:
        """Yield the rows as dense blocks, shape (some rows, values), small enough to work on."""
        step = max(1, _CELLS_AT_ONCE // max(1, self.n_values))
        for low in range(0, self.n_rows, step):
            high = min(self.n_rows, low + step)
            cells = slice(int(self.starts[low]), int(self.starts[high]))
            block = np.zeros((high - low, self.n_values), np.int64)
            rows = np.repeat(np.arange(high - low), np.diff(self.starts[low : high + 1]))
            block[rows, self.values[cells]] = self.counts[cells]
            yield block

    def worst(self, criteria: Sequence[tuple[Any, bool]], reference: NDArray[np.int64]) -> list[float]:
        """Return the worst row's value of each criterion: the least if True stands beside it, or else the greatest."""
        found = [np.inf if is_least else -np.inf for _, is_least in criteria]
        for block in self.blocks():
            for place, (criterion, is_least) in enumerate(criteria):
                each = getattr(criterion, "each", None)
                reached = np.array([criterion.value(block, reference)]) if each is None else each(block, reference)
                found[place] = min(found[place], reached.min()) if is_least else max(found[place], reached.max())
        return [float(value) for value in found]

    def without_repetition(self) -> CountRows:
        """Return every distinct row once."""
        lengths = np.diff(self.starts)
        row = np.repeat(np.arange(self.n_rows), lengths)
        # Rows with equal fingerprints are compared with the first of them, so a collision costs time and nothing else.
        words = np.random.default_rng(0).integers(1, 1 << 62, self.n_values, dtype=np.uint64)
        marks = np.add.reduceat(words[self.values] * self.counts.astype(np.uint64), self.starts[:-1])
        _, first, label = np.unique(marks, return_index=True, return_inverse=True)
        leader = first[label]
        is_equal = lengths == lengths[leader]
        inside = is_equal[row]
        cell = np.flatnonzero(inside)
        other = self.starts[leader[row[cell]]] + cell - self.starts[row[cell]]
        differs = (self.values[cell] != self.values[other]) | (self.counts[cell] != self.counts[other])
        is_equal[row[cell[differs]]] = False
        kept = np.flatnonzero((leader == np.arange(self.n_rows)) | ~is_equal)
        cells = np.repeat(self.starts[kept] - np.insert(np.cumsum(lengths[kept])[:-1], 0, 0), lengths[kept])
        cells += np.arange(len(cells))
        starts = np.insert(np.cumsum(lengths[kept]), 0, 0)
        return CountRows(starts, self.values[cells], self.counts[cells], self.n_values)


def count_rows(group: NDArray[np.int64], n_groups: int, values: NDArray[np.int64], n_values: int) -> CountRows:
    """Count the values of each group; every group has records.

    Examples
    --------
    >>> rows = count_rows(np.array([0, 0, 1, 2]), 3, np.array([1, 0, 1, 1]), 2).without_repetition()
    >>> [block.tolist() for block in rows.blocks()]
    [[[1, 1], [0, 1]]]
    """
    cells, counts = np.unique(group * n_values + values, return_counts=True)
    starts = np.insert(np.cumsum(np.bincount(cells // n_values, minlength=n_groups)), 0, 0)
    return CountRows(starts, cells % n_values, counts, n_values)


def join_rows(parts: Sequence[CountRows]) -> CountRows:
    """Return the rows of several blocks of groups, one block after the other."""
    ends = np.cumsum([0, *(part.starts[-1] for part in parts)])
    return CountRows(
        np.concatenate([[0], *(part.starts[1:] + end for part, end in zip(parts, ends[:-1], strict=True))]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.counts for part in parts]),
        parts[0].n_values,
    )


def distinct_rows(rows: CountRows, keys: NDArray[np.int32] | None) -> CountRows | None:
    """Return every distinct row once; with keys, of the counts of all groups that each group matches.

    None where that is too much work.
    """
    if keys is None:
        return rows.without_repetition()
    if rows.n_rows * rows.n_values > LARGEST_WORK // 4:
        return None
    counts = np.concatenate(list(rows.blocks()))
    return rows_from_matrix(match_counts(keys, keys, counts)).without_repetition()


def rows_from_matrix(matrix: NDArray[np.int64]) -> CountRows:
    """Store a dense matrix of counts; every row has a count."""
    row, value = np.nonzero(matrix)
    starts = np.insert(np.cumsum(np.bincount(row, minlength=len(matrix))), 0, 0)
    return CountRows(starts, value, matrix[row, value], matrix.shape[1])


def distinct_sizes(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct sizes in rising order, and the place of each: ``np.unique``, without sorting."""
    largest = int(sizes.max(initial=0))
    if largest > 4 * len(sizes) + 1000:  # few groups, and large ones
        different, place = np.unique(sizes, return_inverse=True)
        return different, place.astype(np.int64)
    occurs = np.zeros(largest + 1, np.bool_)
    occurs[sizes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[sizes]


# -- keys of groups ----------------------------------------------------------------------------------------------


def keys_of(columns: Sequence[NDArray[Any]], groups: Grouping) -> NDArray[np.int32]:
    """Return the codes of one record of each group."""
    first = groups.order[groups.starts[:-1]]
    return np.stack([codes[first].astype(np.int32) for codes in columns], axis=1)


def as_codes(values: NDArray[Any], n_codes: int, name: str = "") -> Codes:
    """Return the codes of some records; renumbered, except missing, if far fewer occur than there are."""
    if n_codes > max(1 << 16, 4 * len(values)):
        present, values = np.unique(np.append(values, MISSING), return_inverse=True)
        values, n_codes = values[:-1], len(present)
    return Codes(name, values.astype(np.int32), n_codes, False)


def equal_counts(
    keys: NDArray[np.int32], other_keys: NDArray[np.int32], other_counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for each key the count of the other key that equals it, or 0; keys of either side are distinct."""
    label = _label_rows(np.concatenate([keys, other_keys]))
    counts = np.zeros(int(label.max()) + 1, np.int64)
    counts[label[len(keys) :]] = other_counts
    return counts[label[: len(keys)]]


def match_counts(
    keys: NDArray[np.int32],
    other_keys: NDArray[np.int32],
    other_counts: NDArray[np.int64],
    *,
    largest_work: int = LARGEST_MATCHING,
) -> NDArray[np.int64]:
    """Sum the counts of all keys that each key matches.

    Parameters
    ----------
    keys : ndarray of int32, shape (m, columns)
        Different combinations of codes; 0 is missing.
    other_keys : ndarray of int32, shape (p, columns)
        What they are matched with: the same keys, or those of a population with the same codes.
    other_counts : ndarray of int64, shape (p, v)
        Numbers of each of the other keys, such as its records, or its records by sensitive value.

    Returns
    -------
    counts : ndarray of int64, shape (m, v)

    Notes
    -----
    Keys with the same pattern of missing columns are handled together: a key of pattern P matches one of pattern Q
    when they are equal in the columns that neither misses, which is one grouping of both. The work grows with the
    square of the number of patterns, never with the square of the number of records; beyond a limit it is refused.

    Examples
    --------
    >>> keys = np.array([[1, 1], [1, 0], [2, 1]], np.int32)  # the second misses its last column
    >>> match_counts(keys, keys, np.array([[1], [1], [1]])).ravel().tolist()
    [2, 2, 1]
    """
    patterns, rows = _by_pattern(keys)
    other_patterns, other_rows = _by_pattern(other_keys)
    work = len(other_patterns) * len(keys) + len(patterns) * len(other_keys)
    if work > largest_work:
        raise InputError(
            f"missing='wildcard' with {len(patterns)} different patterns of missing quasi-identifiers over {len(keys)} "
            f"combinations of values: expected at most {largest_work:,} comparisons and this takes {work:,}. Measure "
            "with missing='value', or with fewer quasi-identifiers."
        )
    counts = np.zeros((len(keys), other_counts.shape[1]), np.int64)
    for pattern, own in zip(patterns, rows, strict=True):
        for other_pattern, others in zip(other_patterns, other_rows, strict=True):
            shared = np.flatnonzero(~(pattern | other_pattern))
            both = np.concatenate([keys[own][:, shared], other_keys[others][:, shared]])
            label = _label_rows(both)
            sums = np.zeros((int(label.max()) + 1, other_counts.shape[1]), np.int64)
            np.add.at(sums, label[len(own) :], other_counts[others])
            counts[own] += sums[label[: len(own)]]
    return counts


def _by_pattern(keys: NDArray[np.int32]) -> tuple[NDArray[np.bool_], list[NDArray[np.int64]]]:
    """Return the distinct patterns of missing columns, and the rows of each."""
    is_missing = keys == MISSING
    groups = group(_codes(is_missing.astype(np.int32)), len(keys))
    rows = np.split(groups.order, groups.starts[1:-1])
    return is_missing[[own[0] for own in rows]], rows


def _label_rows(keys: NDArray[np.int32]) -> NDArray[np.int64]:
    return group(_codes(keys), len(keys)).of_records()


def _codes(keys: NDArray[np.int32]) -> list[Codes]:
    columns = np.asfortranarray(keys)
    return [as_codes(columns[:, j], int(columns[:, j].max()) + 1) for j in range(keys.shape[1])]


# -- persons and weights -----------------------------------------------------------------------------------------


def fewest_persons(groups: Grouping, unit: Codes) -> int:
    """Return the fewest distinct persons of a group; missing persons count as one."""
    divided = groups.divided(unit)
    return int(np.diff(np.searchsorted(divided.starts, groups.starts)).min())


def weights_of(column: Column) -> NDArray[np.float64]:
    """Return the weights of a column; all NaN if it holds no numbers or misses some."""
    is_number = column.kind == "number" and column.missing is None
    return column.values.astype(np.float64) if is_number else np.full(column.n_records, np.nan)


def n_not_positive(weights: NDArray[np.float64]) -> int:
    """Return the number of weights that are not finite positive numbers."""
    return int((~np.isfinite(weights) | (weights <= 0)).sum())


def check_positive(n_wrong: int, n_records: int) -> None:
    """Raise InputError if some weights are not positive numbers."""
    if n_wrong:
        raise InputError(
            f"{named('weights')} has {n_wrong} of {n_records} values that are not positive numbers: expected the "
            f"number of people that each record stands for. Drop such records, or omit {named('weights')}."
        )
