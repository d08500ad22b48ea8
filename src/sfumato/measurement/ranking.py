# SPDX-License-Identifier: Apache-2.0
"""Which columns, and which columns together, make records unique: how to find a quasi-identifier that was forgotten.

Called by ``measuring`` with all columns of the table, whatever their role.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfumato.grouping import MOST_CELLS, Codes, Grouping, combined, count_alone, count_alone_in_pair, group

MOST_IN_PAIRS = 40  # columns that are tried in pairs


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
    alone = {column.name: int((np.bincount(column.values, minlength=column.n_codes) == 1).sum()) for column in columns}
    tried = tried_in_sets(alone, {column.name: column.n_codes for column in columns}, n_records, most_in_pairs)
    by_name = {column.name: column for column in columns}
    rows = _Rows.of([by_name[name] for name in tried], quasi_identifiers, groups)
    found = [(pair, rows.count_pair(*pair)) for pair in combinations(range(len(tried)), 2)]
    found.sort(key=lambda pair: -pair[1])
    return make_ranking(
        alone,
        tried,
        pairs=[([tried[j] for j in pair], n_unique) for pair, n_unique in found],
        grown=[([tried[j] for j in members], n_unique) for members, n_unique in _grow(rows, found)],
        added=_added(columns, quasi_identifiers, groups),
        n_records=n_records,
    )


def tried_in_sets(
    alone: Mapping[str, int], n_codes: Mapping[str, int], n_records: int, most_in_pairs: int = MOST_IN_PAIRS
) -> list[str]:
    """Return the columns that are tried in pairs and growth, in the order of the table."""
    position = {name: place for place, name in enumerate(alone)}
    tried = [name for name in alone if 2 * alone[name] <= n_records]
    # A constant column adds nothing to any set, and one of two values nearly nothing: the finer come first.
    tried = sorted(tried, key=lambda name: (-alone[name], -n_codes[name], position[name]))
    return sorted(tried[:most_in_pairs], key=lambda name: position[name])


def make_ranking(
    alone: Mapping[str, int],
    tried: Sequence[str],
    *,
    pairs: Sequence[tuple[Sequence[str], int]],
    grown: Sequence[tuple[Sequence[str], int]],
    added: Sequence[tuple[str, int]],
    n_records: int,
) -> Ranking:
    """Put a ranking together from numbers of unique records.

    Parameters
    ----------
    alone : mapping of str to int
        Of every column by itself, in the order of the table.
    tried : sequence of str
        The columns that were tried in sets.
    pairs, grown : sequence of (names, int)
        As they are to be listed.
    added : sequence of (name, int)
        Of the quasi-identifiers with one more column each, in the order of the table.
    n_records : int
    """

    def entry(members: Sequence[str], n_unique: int) -> ColumnSet:
        return ColumnSet(tuple(members), n_unique, n_unique / n_records)

    # Ties in the order of the table, so that equal tables give equal rankings.
    ranked = sorted(alone.items(), key=lambda column: -column[1])
    return Ranking(
        columns=tuple(entry([name], n_unique) for name, n_unique in ranked),
        pairs=tuple(entry(*pair) for pair in pairs),
        grown=tuple(entry(*step) for step in grown),
        added=tuple(entry([name], n_unique) for name, n_unique in sorted(added, key=lambda column: -column[1])),
        missing="value",
        left_out=tuple(name for name in alone if name not in tried),
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """What is counted: one row per record, or per group of records that are equal in all columns that are tried.

    Attributes
    ----------
    columns : list of Codes
        The columns that are tried, of these rows.
    weights : ndarray of uint8
        1 for a row that is one record, 2 for one that is more and so never unique.
    """

    columns: list[Codes]
    weights: NDArray[np.uint8]

    @classmethod
    def of(cls, tried: Sequence[Codes], quasi_identifiers: Collection[str], groups: Grouping) -> _Rows:
        for column in tried:
            if column.name not in quasi_identifiers:
                groups = groups.divided(column)
        if 2 * groups.n_groups > len(groups.order):
            return cls(list(tried), np.ones(len(groups.order), np.uint8))
        first = groups.order[groups.starts[:-1]]
        columns = [replace(column, values=column.values[first]) for column in tried]
        return cls(columns, np.minimum(2, groups.sizes).astype(np.uint8))

    def count_pair(self, first: int, second: int) -> int:
        """Return how many records are alone with their values in two columns."""
        one = self.columns[first]
        return self.count_with(one.values, one.n_codes, second)

    def count_with(self, label: NDArray[np.int32], n_labels: int, position: int) -> int:
        """Return how many records are alone with their label and their value in a column."""
        column = self.columns[position]
        n_cells = n_labels * column.n_codes
        if n_cells <= 4 * MOST_CELLS:
            cells = np.zeros(n_cells, np.uint8)
            return int(count_alone_in_pair(label, column.values, column.n_codes, self.weights, cells))
        groups = group([Codes("", label, n_labels, False)], len(label))
        return int(count_alone(groups.order, groups.starts, column.values, column.n_codes, self.weights))

    def without(self, is_alone: NDArray[np.bool_]) -> _Rows:
        """Leave out rows that stand alone: they do so with any further column."""
        columns = [replace(column, values=column.values[~is_alone]) for column in self.columns]
        return _Rows(columns, self.weights[~is_alone])


def _label(rows: _Rows, label: NDArray[np.int32], n_labels: int, position: int) -> tuple[NDArray[np.int32], int]:
    """Return labels for the combinations of a label and the values of a column."""
    column = rows.columns[position]
    found = combined(label, n_labels, column)
    if found is not None:
        return found
    groups = group([Codes("", label, n_labels, False), column], len(label))
    return groups.of_records().astype(np.int32), groups.n_groups


def _grow(rows: _Rows, pairs: Sequence[tuple[tuple[int, ...], int]]) -> list[tuple[list[int], int]]:
    """Start with the best pair and add the column that makes most records unique while one adds any."""
    if not pairs:
        return []
    members, n_unique = list(pairs[0][0]), pairs[0][1]
    grown = [(list(members), n_unique)]
    label, n_labels = np.zeros(len(rows.weights), np.int32), 1
    for position in members:
        label, n_labels = _label(rows, label, n_labels, position)
    n_left_out = 0
    while len(rows.weights):
        left = [position for position in range(len(rows.columns)) if position not in members]
        found = [n_left_out + rows.count_with(label, n_labels, position) for position in left]
        if not found or max(found) <= n_unique:
            break
        n_unique = max(found)
        members = [*members, left[found.index(n_unique)]]
        grown.append((list(members), n_unique))
        label, n_labels = _label(rows, label, n_labels, members[-1])
        sizes = np.bincount(label, weights=rows.weights, minlength=n_labels)
        is_alone = sizes[label] == 1
        if 4 * is_alone.sum() > len(label):  # copying the columns costs about as much as counting one
            n_left_out += int(is_alone.sum())
            rows = rows.without(is_alone)
            label, n_labels = _label(rows, np.zeros(len(rows.weights), np.int32), 1, members[0])
            for position in members[1:]:
                label, n_labels = _label(rows, label, n_labels, position)
    return grown


def _added(columns: Sequence[Codes], quasi_identifiers: Collection[str], groups: Grouping) -> list[tuple[str, int]]:
    ones = np.ones(len(groups.order), np.uint8)
    others = [column for column in columns if column.name not in quasi_identifiers]
    return [
        (column.name, int(count_alone(groups.order, groups.starts, column.values, column.n_codes, ones)))
        for column in others
    ]
