# SPDX-License-Identifier: Apache-2.0
"""Make a publishable table of records, the fitted ones or others: merge, suppress, rewrite, recount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria import Criterion
from sfumato.errors import GuaranteeError
from sfumato.frames import Column
from sfumato.verification import count_groups, count_values


@dataclass(frozen=True, eq=False)
class Release:
    """A table that may leave, with what was done to make it so.

    Attributes
    ----------
    table : frame
        The released records, in the kind of frame they came in.
    n_merged : int
        Groups of the fitted partition that were joined with others because too few records fell into them.
    n_suppressed : int
        Records left out.
    measures : dict
        ``n_records``, ``n_groups``, ``smallest_group``, ``information_loss``, and what each criterion reaches.
    """

    table: Any
    n_merged: int
    n_suppressed: int
    measures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Counter:
    """Counts what one criterion looks at, for any set of groups of records.

    Attributes
    ----------
    criterion : Criterion
    value_of_row : ndarray of int64 or None
        Code of the criterion's column for every record; None when records are counted.
    n_values : int
    is_released : ndarray of bool or None
        Which records the reference counts cover; None: all.
    """

    criterion: Criterion
    value_of_row: NDArray[np.int64] | None
    n_values: int
    is_released: NDArray[np.bool_] | None = None

    def among(self, is_released: NDArray[np.bool_]) -> Counter:
        """Return the counter whose reference is what some of the records show: those that leave."""
        return replace(self, is_released=is_released)

    @property
    def reference(self) -> NDArray[np.int64]:
        """The counts of all records that leave."""
        if self.value_of_row is None:
            return np.zeros(1, np.int64)
        values = self.value_of_row if self.is_released is None else self.value_of_row[self.is_released]
        if self.criterion.counting == "distinct":
            return np.array([len(np.unique(values))], np.int64)
        return np.bincount(values, minlength=self.n_values).astype(np.int64)

    def passes(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Apply the criterion to counts."""
        return self.criterion.passes(counts, self.reference)

    def count(self, group: NDArray[np.integer[Any]], n_groups: int) -> NDArray[np.int64]:
        """Count the records by group; negative groups are left out. Shape (groups, 1 or values)."""
        kept = group >= 0
        own = group[kept]
        if self.value_of_row is None:
            return np.bincount(own, minlength=n_groups)[:, None]
        values = self.value_of_row[kept]
        if self.criterion.counting == "distinct":
            pairs = np.unique(own.astype(np.int64) * self.n_values + values)
            return np.bincount(pairs // self.n_values, minlength=n_groups)[:, None]
        cells = np.bincount(own.astype(np.int64) * self.n_values + values, minlength=n_groups * self.n_values)
        return cells.reshape(n_groups, self.n_values)


def make_counter(criterion: Criterion, column: Column | None) -> Counter:
    """Read off a column what a criterion counts; missing is a value of its own."""
    if column is None:
        return Counter(criterion, None, 1)
    values = column.values
    if column.kind != "category":
        values = np.unique(values, return_inverse=True)[1]
    codes = values.astype(np.int64)
    if column.missing is not None:
        # Persons that nobody can tell apart count as one, values that are missing as one value.
        codes = np.where(column.missing, codes.max(initial=-1) + 1, codes)
    return Counter(criterion, codes, int(codes.max(initial=0)) + 1)


def verify(frame: Any, columns: Sequence[str], counters: Sequence[Counter], rows: NDArray[np.int64] | None) -> int:
    """Recount a finished table with code that shares nothing with the engine; raise when a criterion fails.

    Parameters
    ----------
    frame : frame
        The table that is about to leave.
    columns : sequence of str
        Its quasi-identifiers, by the names they leave with.
    counters : sequence of Counter
    rows : ndarray or None
        Which of the counters' records the table has, in its order; None: all.

    Returns
    -------
    smallest_group : int
    """
    sizes = count_groups(frame, columns)
    for counter in counters:
        counts = sizes[:, None]
        if counter.value_of_row is not None:
            values = counter.value_of_row if rows is None else counter.value_of_row[rows]
            if counter.criterion.counting == "distinct":
                counts = count_groups(frame, columns, distinct=values)[:, None]
            else:
                counts = count_values(frame, columns, values, counter.n_values)
        n_failed = int((~counter.passes(counts)).sum())
        if n_failed:
            raise GuaranteeError(
                f"the rewritten table has {n_failed} of {len(sizes)} groups for which it does not hold that "
                f"{counter.criterion.describe()}: expected none. Nothing is released. Please report this."
            )
    return int(sizes.min())
