# SPDX-License-Identifier: Apache-2.0
"""Compare people with released records: who lies inside one, and in how many columns it differs from the nearest.

A released record is one cell per column: a value, a range or a set. Called by the attacks on released tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.released_cells import ReleasedColumn
from sfumato.grouping import merge_rows

_COMPARED_AT_ONCE = 1 << 23  # pairs of people's values and released records
_PAIRS_AT_ONCE = 1 << 24  # of people and released records, a bit each


def rows_inside(
    columns: Sequence[ReleasedColumn],
    records: NDArray[np.int64],
    rows: NDArray[np.int64],
    counts: NDArray[np.int64] | None = None,
) -> Iterator[NDArray[np.int64]]:
    """Yield for every released record the rows of people who fit it in all columns.

    Parameters
    ----------
    columns : sequence of ReleasedColumn
    records : ndarray of int64, shape (n_records, n_columns)
        Codes of released cells.
    rows : ndarray of int64, shape (n_rows, n_columns)
        Codes of people's values, equal people once.
    counts : ndarray of int64, optional
        People of each row; None: one.
    """
    values, codes = zip(*(np.unique(column, return_inverse=True) for column in rows.T), strict=True)
    people_by_value = [np.bincount(code, weights=counts) for code in codes]
    step = max(1, _COMPARED_AT_ONCE // sum(map(len, values)))
    for start in range(0, len(records), step):
        part = records[start : start + step]
        holds = [column.fit(part[:, place], values[place]) for place, column in enumerate(columns)]
        n_held = np.stack([held @ n for held, n in zip(holds, people_by_value, strict=True)])
        # The column that fits the fewest people comes first, so that few are left to compare in the others.
        for record, order in enumerate(np.argsort(n_held, axis=0, kind="stable").T):
            left = np.flatnonzero(holds[order[0]][record][codes[order[0]]])
            for place in order[1:]:
                left = left[holds[place][record][codes[place][left]]]
            yield left


def fewest_misfits(
    columns: Sequence[ReleasedColumn], records: NDArray[np.int64], people: NDArray[np.int64], most: int = 2
) -> NDArray[np.int64]:
    """Return in how many columns each person differs from the released record that fits best.

    Parameters
    ----------
    columns : sequence of ReleasedColumn
    records : ndarray of int64, shape (n_records, n_columns)
        Codes of released cells.
    people : ndarray of int64, shape (n_people, n_columns)
        Codes of people's values.
    most : int, default=2
        More are not told apart: such people get `most` + 1.

    Notes
    -----
    All pairs are compared, 64 released records at a time: each value of a column has a bit for every record that it
    fits. Per person and number of misfits there are the records with at most so many, column by column.
    """
    first, group = merge_rows(list(people.T), [column.n_values for column in columns], len(people))
    rows = people[first]
    n_words = -(-len(records) // 64)
    every = _packed(np.ones((1, len(records)), bool), n_words)
    cells = [np.unique(records[:, place], return_inverse=True) for place in range(len(columns))]
    found = np.full(len(rows), most + 1)
    step = max(1, _PAIRS_AT_ONCE // len(records))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        within = [np.repeat(every, len(part), axis=0) for _ in range(most + 1)]
        for place, column in enumerate(columns):
            values, value = np.unique(part[:, place], return_inverse=True)
            fits = column.cells.fit(cells[place][0], values)
            mask = _packed(fits.T[:, cells[place][1]], n_words)[value]
            for misfits in range(most, 0, -1):
                within[misfits] = (within[misfits] & mask) | within[misfits - 1]
            within[0] &= mask
        for misfits in range(most, -1, -1):
            found[start : start + step][within[misfits].any(axis=1)] = misfits
    return np.asarray(found[group])


def _packed(bits: NDArray[np.bool_], n_words: int) -> NDArray[np.uint64]:
    """Return rows of bits as rows of 64-bit words, filled up with zeros."""
    as_bytes = np.zeros((len(bits), 8 * n_words), np.uint8)
    packed = np.packbits(bits, axis=1)
    as_bytes[:, : packed.shape[1]] = packed
    return as_bytes.view(np.uint64)
