# SPDX-License-Identifier: Apache-2.0
"""Which columns, and which columns together, make records unique: how to find a quasi-identifier that was forgotten.

Called by ``measuring`` with all columns of the table, whatever their role.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.measurement.grouping import Codes, Grouping, group
from sfumato.measurement.kernels import count_alone, count_alone_in_pair

MOST_IN_PAIRS = 40  # columns that are tried in pairs
_MOST_CELLS = 1 << 23


@dataclass(frozen=True)
class ColumnSet:
    """Columns, and the records that they make unique together.

    Attributes
    ----------
    columns : tuple of str
    n_unique : int
        Records whose values in these columns no other record has.
    share : float
        The same as a share of all records.
    """

    columns: tuple[str, ...]
    n_unique: int
    share: float


@dataclass(frozen=True)
class Ranking:
    """Columns and sets of columns by how many records they make unique, most first.

    Attributes
    ----------
    columns : tuple of ColumnSet
        Every column by itself.
    pairs : tuple of ColumnSet
        Every pair, of the columns that do not already make more than half of the records unique by themselves.
    grown : tuple of ColumnSet
        The best pair, and what becomes of it when the column that adds most is added, again and again. Each step is
        the best one; the best set of that size may be another.
    added : tuple of ColumnSet
        The quasi-identifiers with one more column of the table each; `n_unique` is that of all of them together.
    missing : str
        Always ``"value"``: here a missing value counts as a value of its own.
    left_out : tuple of str
        Columns that were not tried in pairs and growth because they identify most records alone, or because the table
        has too many columns.
    """

    columns: tuple[ColumnSet, ...]
    pairs: tuple[ColumnSet, ...]
    grown: tuple[ColumnSet, ...]
    added: tuple[ColumnSet, ...]
    missing: str
    left_out: tuple[str, ...]


def rank(
    columns: Sequence[Codes],
    quasi_identifiers: Collection[str],
    groups: Grouping,
    *,
    most_in_pairs: int = MOST_IN_PAIRS,
) -> Ranking:
    """Count the unique records of columns, pairs, a growing set, and of the quasi-identifiers with one column more.

    Parameters
    ----------
    columns : sequence of Codes
        All columns of the table.
    quasi_identifiers : collection of str
    groups : Grouping
        Of the records that agree in all quasi-identifiers.
    """
    n_records = len(groups.order)

    def entry(members: Sequence[Codes], n_unique: int) -> ColumnSet:
        return ColumnSet(tuple(column.name for column in members), n_unique, n_unique / n_records)

    alone = {column.name: int((np.bincount(column.values, minlength=column.n_codes) == 1).sum()) for column in columns}
    position = {column.name: place for place, column in enumerate(columns)}
    # Ties in the order of the table, so that equal tables give equal rankings.
    ranked = sorted(columns, key=lambda column: (-alone[column.name], position[column.name]))
    tried = [column for column in ranked if 2 * alone[column.name] <= n_records]
    # A constant column adds nothing to any set, and one of two values nearly nothing: the finer come first.
    tried = sorted(tried, key=lambda column: (-alone[column.name], -column.n_codes, position[column.name]))
    tried = sorted(tried[:most_in_pairs], key=lambda column: position[column.name])
    pairs = [(pair, count_pair(*pair)) for pair in combinations(tried, 2)]
    pairs.sort(key=lambda found: -found[1])
    names = {column.name for column in tried}
    return Ranking(
        columns=tuple(entry([column], alone[column.name]) for column in ranked),
        pairs=tuple(entry(pair, n_unique) for pair, n_unique in pairs),
        grown=tuple(entry(members, n_unique) for members, n_unique in _grow(pairs, tried, n_records)),
        added=_added(columns, quasi_identifiers, groups),
        missing="value",
        left_out=tuple(column.name for column in columns if column.name not in names),
    )


def count_pair(first: Codes, second: Codes) -> int:
    """Return how many records are alone with their values in two columns."""
    n_cells = first.n_codes * second.n_codes
    if n_cells <= _MOST_CELLS and n_cells <= 64 * len(first.values):
        cells = np.zeros((first.n_codes, second.n_codes), np.int32)
        return int(count_alone_in_pair(first.values, second.values, cells))
    groups = group([first], len(first.values))
    return int(count_alone(groups.order, groups.starts, second.values, second.n_codes))


def _grow(
    pairs: Sequence[tuple[tuple[Codes, Codes], int]], columns: Sequence[Codes], n_records: int
) -> list[tuple[list[Codes], int]]:
    """Start with the best pair and add the column that makes most records unique while one adds any."""
    if not pairs:
        return []
    members: list[Codes] = list(pairs[0][0])
    n_unique = pairs[0][1]
    grown = [(list(members), n_unique)]
    groups = group(members, n_records)
    while n_unique < n_records:
        left = [column for column in columns if all(column is not member for member in members)]
        found = [count_alone(groups.order, groups.starts, column.values, column.n_codes) for column in left]
        if not found or max(found) <= n_unique:
            break
        n_unique = max(found)
        best = left[found.index(n_unique)]
        members = [*members, best]
        groups = groups.divided(best)
        grown.append((members, n_unique))
    return grown


def _added(columns: Sequence[Codes], quasi_identifiers: Collection[str], groups: Grouping) -> tuple[ColumnSet, ...]:
    n_records = len(groups.order)
    others = [column for column in columns if column.name not in quasi_identifiers]
    found = [
        ColumnSet((column.name,), n_unique, n_unique / n_records)
        for column in others
        for n_unique in [int(count_alone(groups.order, groups.starts, column.values, column.n_codes))]
    ]
    return tuple(sorted(found, key=lambda entry: -entry.n_unique))
