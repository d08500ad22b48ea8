# SPDX-License-Identifier: Apache-2.0
"""Choose the fewest records to suppress, so that no value of any sensitive column is above 1/l of the rest.

With one column the choice is exact. With several, records are of *kinds*: the frequent values that they have, column by
column. How many of each kind may stay is a linear program, whose solution is rounded down and filled up again. Only
values that may be too frequent are told apart, so the program stays small whatever the table. The anatomizer's rule
(``table_division``) calls this for every backend, which counts kinds in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import KeptKinds
from sfumato.grouping import merge_rows

CountKinds = Callable[[list[int]], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""From how many values are frequent in each column to the kinds that occur and the number of records of each.

A kind is a row of ranks, one per column: 1 for the most frequent value, and so on; 0 for all values that are not among
the frequent ones.
"""
_ROUNDING = 1e-6  # of the solver


def plan_suppression(
    n_records: int, counts: Sequence[NDArray[np.int64]], ls: Sequence[int], count_kinds: CountKinds
) -> KeptKinds | None:
    """Return how many records of each kind may stay; None if all may.

    Parameters
    ----------
    n_records : int
    counts : sequence of ndarray of int64
        Per sensitive column, how many records have each value, in falling order.
    ls : sequence of int
        The l of each column.
    count_kinds : callable

    Notes
    -----
    Let at most T records stay. Then a value may have T / l of them at the most, which leaves F(T) records. The largest
    T with F(T) >= T is wanted. Neither F nor its linear relaxation falls as T rises, so that replacing T by F(T), from
    the relaxation's own optimum on, never skips it.
    """
    limit, n_frequent = n_records, [0] * len(ls)
    kinds, sizes = np.zeros((1, len(ls)), np.int64), np.array([n_records])
    while True:
        found = [int(np.searchsorted(-own, -(limit // l))) for own, l in zip(counts, ls, strict=True)]  # noqa: E741
        if not any(found):
            return None
        if found != n_frequent:
            n_frequent = found
            kinds, sizes = count_kinds(n_frequent)
            relaxed = _relaxed(kinds, sizes, n_frequent, ls)
            if relaxed < limit:
                limit = relaxed
                continue
        kept = _whole(kinds, sizes, n_frequent, [limit // l for l in ls])  # noqa: E741
        if kept.sum() >= limit:
            return KeptKinds(n_frequent, kinds, kept)
        limit = int(kept.sum())


def _relaxed(kinds: NDArray[np.int64], sizes: NDArray[np.int64], n_frequent: list[int], ls: Sequence[int]) -> int:
    """Return how many records can stay at the most, if fractions of records could."""
    if len(ls) == 1:
        return int(sizes.sum())  # no bound; whole numbers are as fast
    rows = _rows_of_values(kinds, n_frequent)
    shares = np.repeat([1 / l for l in ls], n_frequent)  # noqa: E741
    solved = _solve(rows.toarray() - shares[:, None], np.zeros(len(shares)), sizes)
    return int(solved.sum() + _ROUNDING * len(sizes))


def _whole(
    kinds: NDArray[np.int64], sizes: NDArray[np.int64], n_frequent: list[int], limits: list[int]
) -> NDArray[np.int64]:
    """Return how many records of each kind stay, so that no frequent value has more than its column's limit."""
    if len(limits) == 1:
        return np.where(kinds[:, 0] > 0, np.minimum(sizes, limits[0]), sizes)
    rows = _rows_of_values(kinds, n_frequent)
    room = np.repeat(limits, n_frequent)
    solved = _solve(rows, room, sizes)
    kept = np.floor(solved + _ROUNDING).astype(np.int64)
    room = room - (rows @ kept).astype(np.int64)
    for kind in np.argsort(-(solved - kept), kind="stable").tolist():
        own = rows.indices[rows.indptr[kind] : rows.indptr[kind + 1]]
        more = min(int(sizes[kind] - kept[kind]), int(room[own].min(initial=sizes[kind])))
        if more > 0:
            kept[kind] += more
            room[own] -= more
    return kept


def _rows_of_values(kinds: NDArray[np.int64], n_frequent: list[int]) -> Any:
    """Return a sparse matrix with a row per frequent value, and 1 for each kind that has it."""
    from scipy.sparse import csc_array

    before = np.concatenate(([0], np.cumsum(n_frequent)[:-1]))
    of_kind, column = np.nonzero(kinds)
    rows = before[column] + kinds[of_kind, column] - 1
    return csc_array((np.ones(len(rows)), (rows, of_kind)), shape=(sum(n_frequent), len(kinds)))


def _solve(rows: Any, limits: NDArray[Any], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the largest numbers of each kind, up to their sizes, under linear limits."""
    from scipy.optimize import linprog

    bounds = np.stack([np.zeros(len(sizes)), sizes], axis=1)
    solved: NDArray[np.float64] = linprog(-np.ones(len(sizes)), rows, limits, bounds=bounds, method="highs").x
    return solved


# -- tables in memory --------------------------------------------------------------------------------------------


class ValueRanks:
    """The values of sensitive columns, ranked by how many records have them.

    Parameters
    ----------
    codes : ndarray of int32, shape (records, columns)
        Numbers from 0.
    """

    def __init__(self, codes: NDArray[np.int32]) -> None:
        self.codes = codes
        self.counts: list[NDArray[np.int64]] = []
        self._ranks: list[NDArray[np.int64]] = []
        self._group = np.zeros(0, np.int64)
        for column in codes.T:
            counts = np.bincount(column)
            order = np.argsort(-counts, kind="stable")
            ranks = np.empty(len(counts), np.int64)
            ranks[order] = np.arange(len(counts))
            self.counts.append(counts[order])
            self._ranks.append(ranks)

    def count_kinds(self, n_frequent: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the kinds that occur, and how many records are of each."""
        columns = [
            np.where(ranks < n, ranks + 1, 0)[codes]
            for ranks, n, codes in zip(self._ranks, n_frequent, self.codes.T, strict=True)
        ]
        first, self._group = merge_rows(columns, [n + 1 for n in n_frequent], len(self.codes))
        return np.stack([own[first] for own in columns], axis=1), np.bincount(self._group)

    def choose(self, plan: KeptKinds, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the positions of the records that stay, any of each kind; the kinds are those counted last."""
        order = random.permutation(len(self.codes))
        by_kind = order[np.argsort(self._group[order], kind="stable")]
        starts = np.concatenate(([0], np.cumsum(np.bincount(self._group))[:-1]))
        place = np.arange(len(order)) - starts[self._group[by_kind]]
        return np.sort(by_kind[place < plan.n_kept[self._group[by_kind]]])
