# SPDX-License-Identifier: Apache-2.0
"""Check columns against their roles, so that no column that names people is released by oversight."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.columns import Column, Kind
from sfumato.errors import ColumnWarning as ColumnWarning
from sfumato.errors import InputError, PrivacyWarning, named
from sfumato.frames import Table
from sfumato.schema.judging import (
    SMALLEST_TABLE_CHECKED,
    SMALLEST_TABLE_JUDGED,
    Judgement,
    count_values,
    judge_column,
)
from sfumato.schema.name_words import as_read, is_code_name


class ExposedColumnError(InputError):
    """A column would be released unchanged although it identifies people by itself.

    Parameters
    ----------
    column, why : str
    instead : sequence of str
        Parameters in which the column can be listed instead.
    """

    def __init__(self, column: str, why: str, instead: Sequence[str] = ("quasi_identifiers", "identifiers")) -> None:
        super().__init__(
            f"column {column!r} would be released unchanged, but {why}: expected a column that does not identify "
            f"people by itself. List it in {' or '.join(map(named, instead))}, or in {named('keep')} to release it "
            "anyway."
        )
        self.column, self.why, self.instead = column, why, tuple(instead)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.column, self.why, self.instead)


class SimilarNamesWarning(ColumnWarning):
    """Two columns whose names read the same."""


def is_near_unique(column: Column) -> bool:
    """Return True if more than half of the values of a column, missing ones left out, occur exactly once."""
    return count_values(column).is_near_unique


def check_naming(found: Judgement, *, is_chosen: bool) -> None:
    """Check that a quasi-identifier does not name people.

    Parameters
    ----------
    found : Judgement
    is_chosen : bool
        Whether the caller named the column as a quasi-identifier, and it is not one by default.

    Raises
    ------
    InputError
        If it names people and is a quasi-identifier by default.

    Warns
    -----
    PrivacyWarning
        If it names people and the caller named it as a quasi-identifier.
    """
    if found.names_people is None:
        return
    if not is_chosen:
        raise InputError(
            f"column {found.name!r} has no role and would become a quasi-identifier, but {found.names_people}: "
            f"expected columns that describe people and do not name them. List it in {named('identifiers')} to drop "
            f"it, in {named('quasi_identifiers')} to rewrite it, or in {named('keep')} to release it unchanged."
        )
    warnings.warn(
        PrivacyWarning(
            f"quasi-identifier {found.name!r} seems to name people: {found.names_people}. Values of it may be released "
            f"for groups of records. List it in {named('identifiers')} to drop it."
        ),
        stacklevel=3,
    )


def check_passing(found: Judgement, n_records: int) -> None:
    """Raise ExposedColumnError if a column that would be released unchanged is near unique or names people."""
    why = found.names_people
    if why is None and n_records >= SMALLEST_TABLE_CHECKED and found.counts.is_near_unique:
        why = f"{found.counts.share_unique:.0%} of its values are unique"
    if why is not None:
        raise ExposedColumnError(found.name, why)


def check_pass_through(table: Table, name: str) -> Kind:
    """Raise ExposedColumnError if a column that would pass through identifies people; return its kind."""
    column = table.column(name, for_counting=True)
    check_passing(judge_column(column), table.n_records)
    return column.kind


def share_unique(table: Table, name: str) -> float:
    """Return the share of the records whose value of a column no other record has; missing values are left out."""
    return count_values(table.column(name, for_counting=True)).share_unique


def warn_of_unique_values(table: Table, names: Iterable[str]) -> None:
    """Warn of columns that are released unchanged on purpose and most of whose values are unique.

    Warns
    -----
    PrivacyWarning
        For targets and sensitive columns; tables under 50 records say nothing.
    """
    if table.n_records < SMALLEST_TABLE_JUDGED:
        return
    for name in names:
        share = share_unique(table, name)
        if share > 0.5:
            warnings.warn(
                f"column {name!r} is released unchanged and {share:.2%} of its values are unique: an attacker who "
                "knows a person's value finds the record. Round it first, for example to thousands, or release the "
                "mean of each group instead.",
                PrivacyWarning,
                stacklevel=4,
            )


def warn_of_averaged_codes(table: Table, names: Iterable[str], representative: str) -> None:
    """Warn of numbers that seem to be codes if groups get means, which may be codes that no record had."""
    found = [name for name in names if is_code_name(name) and table.kind(name) == "number"]
    found = [name for name in found if judge_column(table.column(name, for_counting=True)).is_surely_code]
    if found:
        warnings.warn(
            ColumnWarning(
                f"{named('representative', representative)} averages numbers that look like codes: {listed(found)}. "
                f"The result may be a code that no record has. List them in {named('categorical_features')}."
            ),
            stacklevel=5,
        )


def warn_of_similar_names(names: Iterable[str]) -> None:
    """Warn when two columns of one table have names that a person reads as the same, such as ``"age"``, ``"age "``."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(as_read(name), name)
        if first != name:
            warnings.warn(
                f"columns {first!r} and {name!r} have nearly the same name. They are two columns: check that each has "
                "the role you mean, or rename one.",
                SimilarNamesWarning,
                stacklevel=3,
            )


def warn_of_constants(table: Table, names: Iterable[str], heads: Mapping[str, Column]) -> None:
    """Warn of quasi-identifiers that have one value only, or none."""
    if table.n_records < 2:
        return
    empty, constant = [], []
    for name in names:
        if not _has_one_value(heads[name]):
            continue
        column = heads[name] if heads[name].n_records == table.n_records else table.column(name)
        if column.missing is not None and bool(column.missing.all()):
            empty.append(name)
        elif _has_one_value(column):
            constant.append(name)
    parts = []
    if constant:
        parts.append(f"have one value only: {listed(constant)}")
    if empty:
        parts.append(f"are all missing: {listed(empty)}")
    if parts:
        warnings.warn(
            f"quasi-identifiers that {' and that '.join(parts)}. They are allowed, but no split can use them; "
            "leave them out if they carry nothing.",
            ColumnWarning,
            stacklevel=3,
        )


def _has_one_value(column: Column) -> bool:
    if column.missing is not None:
        return bool(column.missing.all())
    return bool((column.values == column.values[0]).all())


def listed(names: Iterable[str]) -> str:
    """Return names in quotes, with commas."""
    return ", ".join(repr(name) for name in names)
