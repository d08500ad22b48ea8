# SPDX-License-Identifier: Apache-2.0
"""Intersection attack: the disclosure of two releases of the same people together.

Each release hides a person among k. An attacker who finds the person's group in both releases is left with the people
in both groups, and with the sensitive values that both groups share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.frames import read_table
from sfumato.grouping import group_rows
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
        # Groups show the values of all their people, also of those who are not in the other release.
        secrets = _codes([table.column(sensitive, for_counting=True) for table in tables])
        n_values = 1 + max(int(own.max()) for own in secrets)
        shown = [np.unique(label * n_values + own) for label, own in zip(whole, secrets, strict=True)]
        groups = [label[own] for label, own in zip(whole, rows, strict=True)]
        left = [np.bincount(pairs // n_values)[own] for pairs, own in zip(shown, groups, strict=True)]
        common = _n_common(shown, groups, both, n_values)
        revealed = int(((common == 1) & (left[0] > 1) & (left[1] > 1)).sum())
    return Intersection(
        n_people=len(one),
        smallest_first=smallest[0],
        smallest_second=smallest[1],
        smallest_together=int(sizes.min()),
        n_alone=int((in_both == 1).sum()),
        n_below=int((in_both < min(smallest)).sum()),
        n_secrets_revealed=revealed,
    )


def _rows_of_common(tables: tuple[Any, Any], key: str | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of either table that belong to the same people, in one order."""
    if key is None:
        if tables[0].n_records != tables[1].n_records:
            raise InputError(
                f"{tables[0].n_records:,} and {tables[1].n_records:,} records: expected the same people in the same "
                "order. Name a column that says who is who as the key."
            )
        every = np.arange(tables[0].n_records)
        return every, every
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
    place = {value: row for row, value in enumerate(names[1])}
    pairs = [(row, place[value]) for row, value in enumerate(names[0]) if value in place]
    if not pairs:
        raise InputError(f"no value of the key {key!r} is in both releases: expected people in common.")
    own, other = zip(*pairs, strict=True)
    return np.array(own), np.array(other)


def _names(column: Any) -> list[Any]:
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


def _n_common(
    shown: Sequence[NDArray[np.int64]],
    groups: Sequence[NDArray[np.int64]],
    both: NDArray[np.intp],
    n_values: int,
) -> NDArray[np.int64]:
    """Return, per record, the number of values that both of its groups show.

    `shown` has the pairs of a group and a value, as one number, that occur in either release.
    """
    in_second = set(shown[1].tolist())
    values_of: dict[int, list[int]] = {}
    for pair in shown[0].tolist():
        values_of.setdefault(pair // n_values, []).append(pair % n_values)
    first = np.unique(both, return_index=True)[1]
    common = np.array(
        [
            sum(b * n_values + value in in_second for value in values_of[a])
            for a, b in zip(groups[0][first].tolist(), groups[1][first].tolist(), strict=True)
        ]
    )
    return np.asarray(common[both])
