# SPDX-License-Identifier: Apache-2.0
"""Rank columns and combinations of columns by the records they make unique: find forgotten quasi-identifiers.

Called by ``measuring`` with all columns of the table, whatever their role.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sfumato.backends.measurable_table import UniqueSets

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
    table: UniqueSets,
    columns: Sequence[str],
    quasi_identifiers: Sequence[str],
    n_records: int,
    *,
    most_in_pairs: int = MOST_IN_PAIRS,
) -> Ranking:
    """Count the unique records of columns, pairs, a growing set, and of the quasi-identifiers with one column more.

    Parameters
    ----------
    table : UniqueSets
    columns : sequence of str
        All columns of the table.
    quasi_identifiers : sequence of str
    n_records : int
    most_in_pairs : int
        Columns that are tried in pairs and growth.
    """

    def entry(members: Sequence[str], n_unique: int) -> ColumnSet:
        return ColumnSet(tuple(members), n_unique, n_unique / n_records)

    def ranked(sets: Sequence[Sequence[str]], counts: Sequence[int]) -> list[ColumnSet]:
        # Ties in the order of the table, so that equal tables give equal rankings.
        return sorted(map(entry, sets, counts), key=lambda own: -own.n_unique)

    alone = table.unique_counts([[name] for name in columns])
    others = [name for name in columns if name not in quasi_identifiers]
    added = table.unique_counts([[*quasi_identifiers, name] for name in others])
    tried = _tried_in_sets(table, dict(zip(columns, alone, strict=True)), n_records, most_in_pairs)
    rows = table.condensed(tried)
    in_pairs = list(combinations(tried, 2))
    pairs = ranked(in_pairs, rows.unique_counts(in_pairs))
    return Ranking(
        columns=tuple(ranked([[name] for name in columns], alone)),
        pairs=tuple(pairs),
        grown=tuple(entry(*step) for step in _grow(rows, tried, pairs[0])) if pairs else (),
        added=tuple(ranked([[name] for name in others], added)),
        missing="value",
        left_out=tuple(name for name in columns if name not in tried),
    )


def no_ranking(columns: Sequence[str]) -> Ranking:
    """Return the ranking of columns that were not tried."""
    return Ranking((), (), (), (), "value", tuple(columns))


def _tried_in_sets(table: UniqueSets, alone: Mapping[str, int], n_records: int, most_in_pairs: int) -> list[str]:
    """Return the columns that are tried in pairs and growth, in the order of the table."""
    tried = [name for name in alone if 2 * alone[name] <= n_records]
    if len(tried) <= most_in_pairs:
        return tried
    # A constant column adds nothing to any set, and one of two values nearly nothing: the finer come first.
    n_codes = table.n_codes(tried)
    chosen = sorted(tried, key=lambda name: (-alone[name], -n_codes[name]))[:most_in_pairs]
    return [name for name in tried if name in chosen]


def _grow(table: UniqueSets, columns: Sequence[str], pair: ColumnSet) -> Iterator[tuple[tuple[str, ...], int]]:
    """Start with a pair and add the column that makes most records unique while one adds any."""
    members, n_unique = pair.columns, pair.n_unique
    yield members, n_unique
    while left := [name for name in columns if name not in members]:
        found = table.unique_counts([[*members, name] for name in left])
        if max(found) <= n_unique:
            return
        n_unique = max(found)
        members = (*members, left[found.index(n_unique)])
        yield members, n_unique
