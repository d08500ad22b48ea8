# SPDX-License-Identifier: Apache-2.0
"""Published tables of an anatomy as an attacker reads them: people, sensitive rows, and the groups that connect both.

The attacks on anatomies call :func:`read_anatomy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.arguments import is_integer
from sfumato.attack.group_guessing import SensitiveGroups
from sfumato.attack.group_learning import SensitiveRows
from sfumato.columns import Column
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import group_rows, number_values


@dataclass(frozen=True, eq=False)
class PublishedTables:
    """What an attacker sees.

    Attributes
    ----------
    identifying : Table
        Its last columns are the groups, one per sensitive table.
    tables : list of Table
        The sensitive ones; the last column is the group.
    rows : list of SensitiveRows
        The same as numbers. Their truth is not known.
    """

    identifying: Table
    tables: list[Table]
    rows: list[SensitiveRows]

    @property
    def names(self) -> tuple[str, ...]:
        """The identifying columns."""
        return self.identifying.names[: -len(self.tables)]

    @property
    def columns(self) -> list[tuple[int, int]]:
        """The table of every sensitive column, and its place in that, one table after the other."""
        return [(number, place) for number, own in enumerate(self.rows) for place in range(len(own.columns))]

    def find(self, column: str | int | None) -> tuple[int, int]:
        """Return the sensitive table of a column, and its place in it; the only column, if none is named.

        A position counts the sensitive columns of all tables.
        """
        if column is None:
            if len(self.columns) > 1:
                raise ParameterError(
                    f"{named('column', None)} with {len(self.columns)} sensitive columns: expected which of them is "
                    "attacked. Name it."
                )
            return self.columns[0]
        if is_integer(column) and 0 <= int(column) < len(self.columns):
            return self.columns[int(column)]
        listed = [name for table in self.tables for name in table.names[:-1]]
        if column not in listed:
            raise ParameterError(f"{named('column', column)}: expected one of {', '.join(map(repr, listed))}.")
        return self.columns[listed.index(str(column))]

    def attacked(self, column: str | int | None, truth: ArrayLike) -> Attacked:
        """Return the groups of one column with the truth, for judging guesses of its values."""
        number, place = self.find(column)
        table, own = self.tables[number], self.rows[number].groups
        answers = np.asarray(truth)
        if answers.shape != (self.identifying.n_records,):
            raise InputError(
                f"truth of shape {answers.shape} for {self.identifying.n_records} rows: expected one value per row."
            )
        values, known = _coded_alike(table.column(table.names[place], for_counting=True), answers)
        groups = SensitiveGroups(own.group, own.slot_group, values, known, own.n_groups)
        of_row = np.zeros(own.n_values, np.int64)
        of_row[own.values] = values
        return Attacked(groups, number, place, of_row)

    def rows_coded_as(self, attacked: Sequence[Attacked]) -> list[SensitiveRows]:
        """Return the sensitive rows, with the values of some columns numbered as their judge does."""
        found = []
        for number, own in enumerate(self.rows):
            columns = list(own.columns)
            for one in attacked:
                if one.table == number:
                    columns[one.place] = one.of_row
            found.append(SensitiveRows(own.groups, columns))
        return found

    def rows_with_known(
        self, rows: Sequence[SensitiveRows], attacked: Sequence[Attacked], is_known: NDArray[np.bool_]
    ) -> list[SensitiveRows]:
        """Return the rows with those of the people whom an attacker knows; all columns must be attacked."""
        found = []
        for number, own in enumerate(rows):
            of_table = sorted((one for one in attacked if one.table == number), key=lambda one: one.place)
            known = np.full(len(is_known), -1, np.int64)
            place = {values: row for row, values in enumerate(zip(*(c.tolist() for c in own.columns), strict=True))}
            truths = list(zip(*(one.groups.truth[is_known].tolist() for one in of_table), strict=True))
            known[is_known] = [place[values] for values in truths]
            found.append(SensitiveRows(own.groups, own.columns, known))
        return found


@dataclass(frozen=True, eq=False)
class Attacked:
    """The sensitive column that is attacked.

    Attributes
    ----------
    groups : SensitiveGroups
        Of its values, with the truth.
    table, place : int
        Its table, and its place among the columns of that.
    of_row : ndarray of int64
        The code of its value in each sensitive row of its table.
    """

    groups: SensitiveGroups
    table: int
    place: int
    of_row: NDArray[np.int64]


def read_anatomy(identifying: Any, sensitive: Any) -> PublishedTables:
    """Check that published tables fit together, and number their groups and values.

    Parameters
    ----------
    identifying : frame or array
        The last columns are the groups.
    sensitive : frame or array, or tuple or list of these
        The last column of each is the group.
    """
    who = read_table(identifying)
    frames = sensitive if isinstance(sensitive, (tuple, list)) else [sensitive]
    tables = [read_table(frame) for frame in frames]
    if len(who.names) < len(tables) + 1 or any(len(table.names) < 2 for table in tables):
        raise InputError("a table with one column: expected some columns and, last, the group, in every table.")
    rows = []
    for place, table in zip(range(-len(tables), 0), tables, strict=True):
        groups = [own.column(name).values.astype(np.int64) for own, name in
                  ((who, who.names[place]), (table, table.names[-1]))]  # fmt: skip
        labels, numbered = np.unique(np.concatenate(groups), return_inverse=True)
        own, theirs = numbered[: who.n_records], numbered[who.n_records :]
        sizes = np.bincount(own, minlength=len(labels))
        if not np.array_equal(sizes, np.bincount(theirs, minlength=len(labels))):
            raise InputError(
                "group sizes differ between the tables: expected equal row counts per group. Pass all tables of one "
                "release."
            )
        columns = [number_values(table.column(name, for_counting=True)).astype(np.int64) for name in table.names[:-1]]
        values = group_rows(columns, table.n_records)
        of_value = []
        for column in columns:
            codes = np.zeros(int(values.max()) + 1, np.int64)
            codes[values] = column
            of_value.append(codes)
        unknown = np.zeros(who.n_records, np.int64)
        rows.append(SensitiveRows(SensitiveGroups(own, theirs, values, unknown, len(labels)), of_value))
    return PublishedTables(who, tables, rows)


def listed_values(column: Column) -> NDArray[Any]:
    """Return the values of a column as Python has them, None where there is none."""
    values = column.categories if column.categories is not None else column.values
    plain = values[column.values].tolist() if column.categories is not None and len(values) else column.values.tolist()
    missing = column.missing if column.missing is not None else np.zeros(len(plain), bool)
    found = np.empty(len(plain), object)
    found[:] = [None if absent else value for value, absent in zip(plain, missing, strict=True)]
    return found


def _coded_alike(column: Column, truth: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give equal numbers to equal values of the sensitive column and of the truth."""
    told = read_table(truth.astype(object)[:, None]).column("x0", for_counting=True)
    listed = [listed_values(part).tolist() for part in (column, told)]
    place = {value: number for number, value in enumerate(dict.fromkeys(listed[0]))}
    unknown = sum(value not in place for value in listed[1])
    if unknown:
        raise InputError(
            f"truth has {unknown} values that the sensitive table does not have: expected the values of its column. "
            "Give them in the same type."
        )
    first, second = (np.array([place[value] for value in values], np.int64) for values in listed)
    return first, second
