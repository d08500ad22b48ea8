# SPDX-License-Identifier: Apache-2.0
"""Read the tables that a loss is measured on, and group records that leave with equal values.

Every measure of loss calls this and returns a `Loss`. Missing counts as a value of its own.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import Names as Names
from sfumato.columns import Column
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import group_rows


def code_values(column: Column) -> NDArray[np.int64]:
    """Return codes from 0: equal values and no others have equal codes, missing the highest."""
    codes = np.unique(column.values, return_inverse=True)[1].astype(np.int64)
    return codes if column.missing is None else np.where(column.missing, codes.max() + 1, codes)


def read_released(released: Any, quasi_identifiers: Names | None) -> tuple[Table, tuple[str, ...]]:
    """Return the released table and the names of its quasi-identifiers, all columns unless some are named."""
    table = read_table(released)
    names = table.names if quasi_identifiers is None else table.resolve(quasi_identifiers)
    if not names:
        raise ParameterError(
            f"{named('quasi_identifiers')} names no column: expected at least one. Name the rewritten columns."
        )
    return table, names


def columns_of(table: Table, name: str) -> tuple[str, ...]:
    """Return the columns that stand for a quasi-identifier in a release: itself, or its lower and upper bound."""
    if name in table.names:
        return (name,)
    bounds = (f"{name}_low", f"{name}_high")
    if all(bound in table.names for bound in bounds):
        return bounds
    raise InputError(
        f"the release has no column {name!r}, nor {bounds[0]!r} and {bounds[1]!r}: expected the columns of the "
        f"original. Leave out of {named('quasi_identifiers')} what was not released."
    )


def read_both(original: Any, released: Any, quasi_identifiers: Names | None) -> tuple[Table, Table, tuple[str, ...]]:
    """Return both tables, which have the same records in the same order, and the names of the quasi-identifiers."""
    before, after = read_table(original), read_table(released)
    names = before.names if quasi_identifiers is None else before.resolve(quasi_identifiers)
    if not names:
        raise ParameterError(
            f"{named('quasi_identifiers')} names no column: expected at least one. Name the rewritten columns."
        )
    if before.n_records != after.n_records:
        raise InputError(
            f"the original has {before.n_records} records and the release {after.n_records}: expected the same records "
            "in the same order. Leave suppressed records out of the original and count them in n_suppressed."
        )
    for name in names:
        columns_of(after, name)
    return before, after, names


def group_released(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the group of every released record: those with equal values in all columns named."""
    codes = [code_values(table.column(part)) for name in names for part in columns_of(table, name)]
    return group_rows(codes, table.n_records)


def check_suppressed(n_suppressed: object) -> int:
    """Raise unless the value is a number of records."""
    if isinstance(n_suppressed, bool) or not isinstance(n_suppressed, numbers.Integral) or n_suppressed < 0:
        raise ParameterError(
            f"{named('n_suppressed', n_suppressed)}: expected how many records were left out, 0 or more. A release has "
            "it as n_suppressed."
        )
    return int(n_suppressed)


def check_k(k: object) -> int | None:
    """Raise unless the value is a group size."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1):
        raise ParameterError(f"{named('k', k)}: expected a whole number of at least 1, or None.")
    return None if k is None else int(k)


@dataclass(frozen=True)
class Loss:
    """The information loss by one measure.

    Attributes
    ----------
    measure : str
        Its name.
    total : float
        For all columns together.
    columns : dict of str to float
        For each column by itself, as if it were the only one that was released.
    normalized : float or None
        The total on a scale from 0 (nothing is lost) to 1 (everything), where the measure has one.
    """

    measure: str
    total: float
    columns: dict[str, float]
    normalized: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain names and numbers."""
        return {
            "measure": self.measure,
            "total": self.total,
            "normalized": self.normalized,
            "columns": dict(self.columns),
        }
