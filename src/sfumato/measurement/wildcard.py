# SPDX-License-Identifier: Apache-2.0
"""Matching sets where a missing value matches anything.

Two records match when each quasi-identifier is equal in both or missing in at least one. This is no equivalence: a
record with missing values may match two that do not match each other, so there are no groups, only the set that each
record matches. Called by ``measuring`` for ``missing="wildcard"``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grouping import MISSING, Codes, group

LARGEST_WORK = 500_000_000  # keys compared over all pairs of patterns of missing values: some minutes of work


def match_counts(
    keys: NDArray[np.int32],
    other_keys: NDArray[np.int32],
    other_counts: NDArray[np.int64],
    *,
    largest_work: int = LARGEST_WORK,
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
            label = _label(both)
            sums = np.zeros((int(label.max()) + 1, other_counts.shape[1]), np.int64)
            np.add.at(sums, label[len(own) :], other_counts[others])
            counts[own] += sums[label[: len(own)]]
    return counts


def _by_pattern(keys: NDArray[np.int32]) -> tuple[NDArray[np.bool_], list[NDArray[np.int64]]]:
    """Return the different patterns of missing columns, and the rows of each."""
    is_missing = keys == MISSING
    groups = group(_codes(is_missing.astype(np.int32)), len(keys))
    rows = np.split(groups.order, groups.starts[1:-1])
    return is_missing[[own[0] for own in rows]], rows


def _label(keys: NDArray[np.int32]) -> NDArray[np.int64]:
    return group(_codes(keys), len(keys)).of_records()


def _codes(keys: NDArray[np.int32]) -> list[Codes]:
    columns = np.asfortranarray(keys)
    return [Codes("", columns[:, j], int(columns[:, j].max()) + 1, False) for j in range(keys.shape[1])]
