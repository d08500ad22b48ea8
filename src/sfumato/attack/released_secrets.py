# SPDX-License-Identifier: Apache-2.0
"""Read the groups of a release with the sensitive values that each shows, and the people whom attackers place in them.

Called by the attacks that guess inside groups: deFinetti, minimality, skewness and similarity. Where the rows of the
release are in another order, or a person is not in the release, the person is placed in the nearest group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.group_guessing import SensitiveGroups
from sfumato.attack.named_attack import AttackedRelease, Case
from sfumato.attack.released_cells import Names, Ranges, ReleasedColumn, distances_by_block, read_release
from sfumato.columns import Column, join_columns
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import read_table
from sfumato.grouping import merge_rows
from sfumato.loss.released_groups import code_values

MOST_VALUES = 50  # of a column whose values are guessed one by one
_MOST_OUTSIDE = 2_000  # people outside the release who are attacked, for the control


@dataclass(frozen=True, eq=False)
class ReleasedSecrets:
    """The groups of a release, one sensitive column, and the people who are attacked.

    Attributes
    ----------
    columns : list of ReleasedColumn
        The known columns.
    secret : str
        Name of the sensitive column.
    values : Column
        One record for every code of the sensitive column.
    groups : SensitiveGroups
        The people of the release and its sensitive rows.
    others : ndarray of int64 or None
        People outside the release who are attacked for the control, as places in the control table; None: there are
        none whose sensitive value is known.
    other_group, other_truth : ndarray of int64
        Their nearest groups, and the codes of their values.
    """

    columns: list[ReleasedColumn]
    secret: str
    values: Column
    groups: SensitiveGroups
    others: NDArray[np.int64] | None
    other_group: NDArray[np.int64]
    other_truth: NDArray[np.int64]

    def rate_outside(self, guesses: NDArray[np.int64]) -> float | None:
        """Return the share of right guesses about the people outside; None without such people."""
        return None if self.others is None else float((guesses == self.other_truth).mean())


def read_secrets(
    original: Any,
    released: Any,
    known: Names,
    secret: str | int,
    *,
    control: Any = None,
    is_aligned: bool = True,
    random_state: int = 0,
) -> ReleasedSecrets:
    """Read the groups of a release and place people in them.

    Parameters
    ----------
    original, released : frame or array
        The same people, before and after.
    known : list of str or int
        Quasi-identifiers: columns that make the groups, known of every person in full resolution.
    secret : str or int
        The sensitive column, released unchanged.
    control : frame or array, optional
        People outside the release; at most 2,000, drawn at random, are placed.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. If not, labels must say what they stand for.
    random_state : int, default=0
    """
    before, after = read_table(original), read_table(released)
    (name,) = before.resolve([secret], "secret")
    names = before.resolve(known, "known")
    if name in names or not names:
        raise ParameterError("secret is also in known, or known is empty: expected different columns. Name others.")
    if name not in after.names:
        raise InputError(f"the release has no column {name!r}: expected the sensitive column, released unchanged.")
    table = read_release(original, released, names, control, is_aligned=is_aligned)
    columns = table.named(names, "known")
    others = None if control is None else read_table(control)
    tables = [before, after] + ([others] if others is not None and name in others.names else [])
    joined = join_columns([part.column(name, for_counting=True) for part in tables])
    _, first_row, codes = np.unique(code_values(joined), return_index=True, return_inverse=True)
    truth, values, other_truth = np.split(codes, [before.n_records, before.n_records + after.n_records])
    kinds = _records(joined, first_row)
    shown = np.stack([column.shown for column in columns], axis=1)
    first, slot_group = merge_rows(list(shown.T), [column.n_shown for column in columns], len(shown))
    group = slot_group if is_aligned else _nearest(columns, shown[first], table.people(columns))
    groups = SensitiveGroups(group, slot_group, values, truth, len(first))
    if not len(other_truth):
        return ReleasedSecrets(columns, name, kinds, groups, None, np.zeros(0, np.int64), np.zeros(0, np.int64))
    generator = np.random.default_rng([random_state, 13])
    drawn = np.sort(generator.permutation(len(other_truth))[:_MOST_OUTSIDE])
    placed = _nearest(columns, shown[first], table.others(columns)[drawn])
    return ReleasedSecrets(columns, name, kinds, groups, drawn, placed, other_truth[drawn])


def _records(column: Column, rows: NDArray[np.intp]) -> Column:
    missing = None if column.missing is None else column.missing[rows]
    return replace(column, values=column.values[rows], missing=missing)


def _nearest(
    columns: Sequence[ReleasedColumn], candidates: NDArray[np.int64], people: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the nearest group of each person, the first on ties."""
    found = np.empty(len(people), np.int64)
    for part, total in distances_by_block(columns, candidates, people):
        found[part] = total.argmin(axis=1)
    return found


def check_few_values(secrets: ReleasedSecrets) -> None:
    """Raise ParameterError if the sensitive column has too many values to guess them one by one."""
    n_values = len(np.unique(secrets.groups.values))
    if n_values > MOST_VALUES:
        raise ParameterError(
            f"{named('secret', secrets.secret)} has {n_values:,} values: expected at most {MOST_VALUES}. Round it, or "
            "use guess_from_similar_values."
        )


def bin_codes(column: ReleasedColumn, max_bins: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the bin of each person and of each other person, and how many bins there are; categories are not binned.

    Bins of numbers have about equally many people.
    """
    n_values = column.n_values
    if n_values <= max_bins or not isinstance(column.cells, Ranges):
        return column.codes, column.other_codes, n_values
    counts = np.bincount(column.codes, minlength=n_values)
    before = np.cumsum(counts) - counts
    bins = np.minimum(before * max_bins // len(column.codes), max_bins - 1)
    return bins[column.codes], bins[column.other_codes], max_bins


# -- as audits run them ------------------------------------------------------------------------------------------


def cases_of(
    about: AttackedRelease,
    title: str,
    attack: Callable[..., Any],
    *,
    fits: Callable[[Column], bool],
    otherwise: str,
) -> list[Case] | str:
    """Return a case for every sensitive column that was released and fits an attack.

    Parameters
    ----------
    about : AttackedRelease
    title : str
        Of a case, with ``{}`` for the column.
    attack : callable
        Takes original, released, known, secret, and the settings of `AttackedRelease.who`.
    fits : callable
        Takes the original column.
    otherwise : str
        The note where no sensitive column fits. Without a sensitive column there is none: *inference* says so.
    """
    secrets = [name for name in about.sensitive if name in about.unchanged]
    table = read_table(about.original)
    fitting = [name for name in secrets if fits(table.column(name, for_counting=True))]
    if secrets and not fitting:
        return otherwise
    return [
        Case(
            title.format(about.titles.get(name, name)),
            partial(attack, about.original, about.released, about.known, name, **about.who),
        )
        for name in fitting
    ]


def has_few_values(column: Column) -> bool:
    """Return True if a column has 2 to 50 different values, which can be guessed one by one."""
    present = column.values if column.missing is None else column.values[~column.missing]
    return 2 <= len(np.unique(present)) <= MOST_VALUES
