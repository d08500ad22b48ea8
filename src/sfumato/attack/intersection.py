# SPDX-License-Identifier: Apache-2.0
"""Intersection attack: the disclosure of several releases of the same people together.

Each release hides a person among k. An attacker who finds the person's group in every release is left with the people
in all of these groups, and with the sensitive values that the groups share.

References
----------
Ganta, S. R., Kasiviswanathan, S. P., Smith, A. (2008). Composition attacks and auxiliary information in data privacy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.group_guessing import clustered_interval
from sfumato.attack.result import AttackResult, judge
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import count_candidates, group_rows
from sfumato.verification import label_groups


@dataclass(frozen=True)
class Intersection:
    """The disclosure of two releases together.

    Attributes
    ----------
    n_people : int
        People who are in both.
    smallest_first, smallest_second, smallest_together : int
        Smallest groups of either release, and of both together.
    n_alone : int
        People whose two groups have no other person in common.
    n_below : int
        People in an intersection smaller than the smaller of the two releases' smallest groups.
    n_secrets_revealed : int or None
        People of whom both together leave one sensitive value, where neither release alone does.
    """

    n_people: int
    smallest_first: int
    smallest_second: int
    smallest_together: int
    n_alone: int
    n_below: int
    n_secrets_revealed: int | None

    @property
    def share_below(self) -> float:
        """Share of the people in both releases whose intersection is smaller than either release guarantees."""
        return self.n_below / self.n_people

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers under their names; counts are exact, for the owner of the tables."""
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "share_below": self.share_below}


def intersect_releases(
    first: Any,
    second: Any,
    quasi_identifiers: tuple[Sequence[str], Sequence[str]],
    *,
    sensitive: str | None = None,
    key: str | None = None,
) -> Intersection:
    """Intersect the groups of two releases of the same people.

    Parameters
    ----------
    first, second : frame
        The same people in the same order, unless `key` names who is who.
    quasi_identifiers : (names, names)
        The rewritten columns of either.
    sensitive : str, optional
        A column that both have.
    key : str, optional
        A column that says who a record belongs to, each person once; people in one release only are left out.

    Returns
    -------
    Intersection
    """
    tables = read_table(first), read_table(second)
    rows = _rows_of_common(tables, key)
    whole = [label_groups(frame, list(names)) for frame, names in zip((first, second), quasi_identifiers, strict=True)]
    one, two = (np.unique(label[own], return_inverse=True)[1] for label, own in zip(whole, rows, strict=True))
    both = group_rows([one, two], len(one))
    # What a release promises, it promises with all of its people, also those who are not in the other.
    smallest = [int(np.bincount(label).min()) for label in whole]
    sizes = np.bincount(both)
    in_both = sizes[both]
    revealed = None
    if sensitive is not None:
        left = _values_left(tables, whole, np.stack(rows, axis=1), sensitive)
        revealed = int(left.is_revealed.sum())
    return Intersection(
        n_people=len(one),
        smallest_first=smallest[0],
        smallest_second=smallest[1],
        smallest_together=int(sizes.min()),
        n_alone=int((in_both == 1).sum()),
        n_below=int((in_both < min(smallest)).sum()),
        n_secrets_revealed=revealed,
    )


def intersect_all_releases(
    releases: Sequence[Any],
    quasi_identifiers: Sequence[Sequence[str]] | Sequence[str],
    *,
    k: int | None = None,
    sensitive: str | None = None,
    key: str | None = None,
    confidence: float = 0.95,
) -> AttackResult:
    """Count the people who are left in the groups of a person, over any number of releases.

    Parameters
    ----------
    releases : sequence of frame
        At least two releases: the same people in the same order, unless `key` names who is who.
    quasi_identifiers : sequence of str, or a sequence of those
        The rewritten columns, the same of all releases or those of each.
    k : int, optional
        How many people each release hides a person among; None: the smallest group of all releases.
    sensitive : str, optional
        A column that all releases have.
    key : str, optional
        A column that says who a record belongs to, each person once per release. People of at least two releases are
        attacked; their candidates are those who are in all their releases and groups.
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of people with fewer than k candidates. The baseline is that share in the single release
        that shows the most. Among the details are ``n_alone`` (exactly one candidate), ``smallest_together``,
        ``rate_after`` (the rate after the first release, the first two, and so on), ``rate_of_pairs`` (the share of
        people whom two of the releases leave with fewer than k), and with a sensitive column ``n_secrets_revealed``:
        people of whom all releases together leave one value, where none of them alone does.

    Notes
    -----
    There is no control: people outside the releases have no groups, and groups of other people, drawn at random,
    intersect in fewer people than real ones do.

    Examples
    --------
    No two of these releases isolate anyone, all three do.

    >>> import pyarrow as pa
    >>> places = range(8)
    >>> releases = [pa.table({"q": [place // bit % 2 for place in places]}) for bit in (1, 2, 4)]
    >>> result = intersect_all_releases(releases, ["q"], k=2)
    >>> result.rate, result.details["rate_after"], result.details["rate_of_pairs"]
    (1.0, [0.0, 0.0, 1.0], 0.0)
    """
    started = time.perf_counter()
    tables = [read_table(release) for release in releases]
    if len(tables) < 2:
        raise ParameterError(f"{named('releases')} has {len(tables)}: expected at least two releases.")
    columns = _columns_of_each(quasi_identifiers, len(tables))
    whole = [label_groups(frame, names) for frame, names in zip(releases, columns, strict=True)]
    smallest = [int(np.bincount(label).min()) for label in whole]
    if k is not None and k < 1:
        raise ParameterError(f"{named('k', k)}: expected a whole number of at least 1, or None.")
    k = min(smallest) if k is None else k
    rows = _rows_of_people(tables, key)
    groups = np.stack([np.where(own >= 0, label[own], -1) for label, own in zip(whole, rows.T, strict=True)], axis=1)
    is_attacked = (groups >= 0).sum(axis=1) >= 2
    if not is_attacked.any():
        raise InputError(f"no value of the key {key!r} is in two releases: expected people in common.")
    candidates = count_candidates(groups)[is_attacked]
    is_below = candidates < k
    # What a release promises, it promises with all of its people, also those who are in no other.
    alone = [_is_below(np.bincount(label), own, k)[is_attacked] for label, own in zip(whole, groups.T, strict=True)]
    pairs = [_is_below_together(groups[:, list(pair)], k) for pair in combinations(range(len(tables)), 2)]
    details: dict[str, Any] = {
        "k": k,
        "n_releases": len(tables),
        "n_people": int(is_attacked.sum()),
        "n_below": int(is_below.sum()),
        "n_alone": int((candidates == 1).sum()),
        "smallest_groups": smallest,
        "smallest_together": int(candidates.min()),
        "rate_after": [float(alone[0].mean())]
        + [float(_is_below_together(groups[:, :n], k)[is_attacked].mean()) for n in range(2, len(tables) + 1)],
        "rate_of_pairs": float(np.logical_or.reduce(pairs)[is_attacked].mean()),
    }
    if sensitive is not None:
        left = _values_left(tables, whole, rows[is_attacked], sensitive)
        details["n_secrets_revealed"] = int(left.is_revealed.sum())
    rate, baseline = float(is_below.mean()), max(float(part.mean()) for part in alone)
    cells = group_rows(list((groups[is_attacked] + 1).T), int(is_attacked.sum()))
    interval = clustered_interval(is_below, cells, confidence)
    verdict = judge(rate, interval, baseline)
    seconds = time.perf_counter() - started
    return AttackResult("intersection of releases", rate, interval, baseline, None, verdict, seconds, None, details)


def _columns_of_each(given: Sequence[Sequence[str]] | Sequence[str], n_releases: int) -> list[list[str]]:
    """Return the rewritten columns of every release."""
    if all(isinstance(part, str) for part in given):
        return [[str(name) for name in given]] * n_releases
    columns = [list(part) for part in given]
    if len(columns) != n_releases:
        raise ParameterError(
            f"{named('quasi_identifiers')} has {len(columns)} lists for {n_releases} releases: expected one list for "
            "each, or one for all."
        )
    return columns


def _is_below(sizes: NDArray[np.int64], groups: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
    """Return who is in a group of fewer than k; those who are in none are not."""
    return np.asarray((groups >= 0) & (sizes[groups] < k))


def _is_below_together(groups: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
    """Return whose groups, in those of some releases that they are in, share fewer than k people; at least two."""
    return np.asarray((count_candidates(groups) < k) & ((groups >= 0).sum(axis=1) >= 2))


# -- who is who --------------------------------------------------------------------------------------------------


def _rows_of_common(tables: Sequence[Table], key: str | None) -> tuple[NDArray[np.int64], ...]:
    """Return the rows of every table that belong to the same people, in one order."""
    rows = _rows_of_people(tables, key)
    common = rows[(rows >= 0).all(axis=1)]
    if not len(common):
        raise InputError(f"no value of the key {key!r} is in both releases: expected people in common.")
    return tuple(common.T)


def _rows_of_people(tables: Sequence[Table], key: str | None) -> NDArray[np.int64]:
    """Return the row of every person in every table, shape (people, tables); -1 where a person is not in it."""
    if key is None:
        sizes = [table.n_records for table in tables]
        if len(set(sizes)) > 1:
            raise InputError(
                f"{' and '.join(f'{size:,}' for size in sizes)} records: expected the same people in the same order. "
                "Name a column that says who is who as the key."
            )
        return np.repeat(np.arange(sizes[0])[:, None], len(tables), axis=1)
    columns = [table.column(key, for_counting=True) for table in tables]
    for column in columns:
        if column.missing is not None and column.missing.any():
            raise InputError(
                f"the key {key!r} is missing in {int(column.missing.sum()):,} records: expected each person once. "
                "Leave those records out, or name another column."
            )
    names = [_names(column) for column in columns]
    for values in names:
        if len(set(values)) < len(values):
            raise InputError(
                f"the key {key!r} has {len(values) - len(set(values)):,} repeated values: expected each person once. "
                "Name another column."
            )
    place = {value: number for number, value in enumerate(dict.fromkeys(name for own in names for name in own))}
    rows = np.full((len(place), len(tables)), -1, np.int64)
    for release, own in enumerate(names):
        rows[[place[value] for value in own], release] = np.arange(len(own))
    return rows


# -- sensitive values --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _ValuesLeft:
    """Numbers of values that the groups of each person leave: all together, and each release alone (0: not in it)."""

    together: NDArray[np.int64]
    alone: NDArray[np.int64]

    @property
    def is_revealed(self) -> NDArray[np.bool_]:
        """Of whom all releases leave one value, where none of them alone does."""
        return np.asarray((self.together == 1) & (self.alone != 1).all(axis=1))


def _values_left(
    tables: Sequence[Table], whole: Sequence[NDArray[np.int64]], rows: NDArray[np.int64], sensitive: str
) -> _ValuesLeft:
    """Count the values of every person that the groups leave; groups show the values of all their people.

    Parameters
    ----------
    whole : sequence of ndarray of int64
        The group of every record of each table.
    rows : ndarray of int64, shape (n_people, n_tables)
    """
    shown: list[dict[int, set[int]]] = []
    for label, codes in zip(
        whole, _codes([table.column(sensitive, for_counting=True) for table in tables]), strict=True
    ):
        values_of: dict[int, set[int]] = {}
        for group, value in np.unique(np.stack([label, codes], axis=1), axis=0).tolist():
            values_of.setdefault(group, set()).add(value)
        shown.append(values_of)
    groups = np.stack([np.where(own >= 0, label[own], -1) for label, own in zip(whole, rows.T, strict=True)], axis=1)
    cells, cell = np.unique(groups, axis=0, return_inverse=True)
    together, alone = np.zeros(len(cells), np.int64), np.zeros(cells.shape, np.int64)
    for number, own in enumerate(cells.tolist()):
        sets = [values_of[group] for values_of, group in zip(shown, own, strict=True) if group >= 0]
        together[number] = len(set.intersection(*sets))
        alone[number] = [len(values_of.get(group, ())) for values_of, group in zip(shown, own, strict=True)]
    return _ValuesLeft(together[cell.ravel()], alone[cell.ravel()])


def _names(column: Any) -> list[Any]:
    if column.categories is not None and not len(column.categories):  # no record has a value
        return [None] * column.n_records
    values = column.values if column.categories is None else column.categories[column.values]
    names: list[Any] = values.tolist()
    return names


def _codes(columns: Sequence[Any]) -> list[NDArray[np.int64]]:
    """Return a number per value of some columns, the same for the same value of each; missing is one value."""
    known: dict[Any, int] = {}
    codes = []
    for column in columns:
        names = _names(column)
        if column.missing is not None:
            names = [None if absent else name for name, absent in zip(names, column.missing.tolist(), strict=True)]
        codes.append(np.array([known.setdefault(name, len(known)) for name in names], np.int64))
    return codes
