# SPDX-License-Identifier: Apache-2.0
"""Make a publishable table of records, the fitted ones or others: merge, suppress, rewrite, recount."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.publications import Publication
from sfumato.criteria import Criterion, KnowsValues
from sfumato.criteria.sensitive import OnSensitiveColumn
from sfumato.errors import GuaranteeError, ParameterError
from sfumato.frames import Column
from sfumato.verification import count_groups, count_values_by_block, label_groups

MOST_VALUES = 1 << 16
"""Different values of a sensitive column at most: beyond, nearly every record has one of its own."""


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
        ``n_records``, ``n_groups``, ``smallest_group``, ``information_loss``, ``loss_by_column`` where groups are
        rewritten column by column, and what each criterion reaches; ``together``, where earlier releases were named:
        what this one shows together with each of them.
    publication : Publication or None
        What to remember of this release for the next ones; not to be published.
    """

    table: Any
    n_merged: int
    n_suppressed: int
    measures: dict[str, Any] = field(default_factory=dict)
    publication: Publication | None = None


_BLOCK = 1 << 24  # counts held at once; many values in many groups would not fit memory together


@dataclass(frozen=True, eq=False)
class Counter:
    """Counts what one criterion looks at, for any set of groups of records.

    Attributes
    ----------
    criterion : Criterion
    value_of_row : ndarray of int64 or None
        Code of the criterion's column for every record; None when records are counted.
    n_values : int
        Codes; the last is that of records that do not count, where `leaves_out_last`.
    is_released : ndarray of bool or None
        Which records the reference counts cover; None: all.
    leaves_out_last : bool
        The criterion does not see the last code: records without a sensitive value, when it is asked to suppress
        them.
    population : ndarray of int or None
        For a criterion on presence: the group of every member of the population, -1 for none.
    group_of_row : ndarray of int or None
        For a criterion on presence: the group of every record, once groups were joined.
    """

    criterion: Criterion
    value_of_row: NDArray[np.int64] | None
    n_values: int
    is_released: NDArray[np.bool_] | None = None
    leaves_out_last: bool = False
    population: NDArray[np.integer[Any]] | None = None
    group_of_row: NDArray[np.integer[Any]] | None = None

    def among(self, is_released: NDArray[np.bool_]) -> Counter:
        """Return the counter whose reference is what some of the records show: those that leave."""
        return replace(self, is_released=is_released)

    def regrouped(self, group: NDArray[np.integer[Any]], group_of_fitted: NDArray[np.integer[Any]]) -> Counter:
        """Return the counter after fitted groups were joined, given each record's group and each fitted group's."""
        if self.population is None:
            return self
        return replace(self, population=group_of_fitted[self.population], group_of_row=group)

    @property
    def reference(self) -> NDArray[np.int64]:
        """The counts of all records that leave."""
        if self.value_of_row is None:
            return np.zeros(1, np.int64)
        values = self.value_of_row if self.is_released is None else self.value_of_row[self.is_released]
        if self.criterion.counting == "distinct":
            return np.array([len(np.unique(values))], np.int64)
        return self.seen(np.bincount(values, minlength=self.n_values).astype(np.int64))

    def seen(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts as the criterion sees them."""
        return counts[..., :-1] if self.leaves_out_last else counts

    def passes(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Apply the criterion to counts."""
        return self.criterion.passes(self.seen(counts), self.reference)

    def count(
        self,
        group: NDArray[np.integer[Any]],
        n_groups: int,
        group_of_fitted: NDArray[np.integer[Any]] | None = None,
    ) -> NDArray[np.int64]:
        """Count the records by group; negative groups are left out. Shape (groups, 1, 2 or values).

        Parameters
        ----------
        group : ndarray of int
            The group of every record.
        n_groups : int
        group_of_fitted : ndarray of int, optional
            The group that each fitted group is part of, by which a population is counted. Not given: one group is
            everybody, and several are the fitted ones.
        """
        kept = group >= 0
        own = group[kept]
        if self.population is not None:
            members = self.population if n_groups > 1 else np.zeros_like(self.population)
            if group_of_fitted is not None:
                members = group_of_fitted[self.population]
            sizes = [np.bincount(part, minlength=n_groups) for part in (own, members[members >= 0])]
            return np.column_stack(sizes).astype(np.int64)
        if self.value_of_row is None:
            return np.bincount(own, minlength=n_groups)[:, None]
        values = self.value_of_row[kept]
        if self.criterion.counting == "distinct":
            pairs = np.unique(own.astype(np.int64) * self.n_values + values)
            return np.bincount(pairs // self.n_values, minlength=n_groups)[:, None]
        cells = np.bincount(own.astype(np.int64) * self.n_values + values, minlength=n_groups * self.n_values)
        return cells.reshape(n_groups, self.n_values)

    def are_safe(
        self,
        group: NDArray[np.integer[Any]],
        n_groups: int,
        group_of_fitted: NDArray[np.integer[Any]] | None = None,
    ) -> NDArray[np.bool_]:
        """Say which groups of records are safe; groups without any record are, unless a population is counted."""
        safe = np.concatenate([self.passes(counts) for counts in self._counts(group, n_groups, group_of_fitted)])
        if self.population is None:
            safe[np.bincount(group[group >= 0], minlength=n_groups) == 0] = True
        return safe

    def value(self, group: NDArray[np.integer[Any]], n_groups: int) -> Any:
        """Return what the groups of records reach."""
        criterion, reference = self.criterion, self.reference
        if isinstance(criterion, OnSensitiveColumn):
            parts = [criterion.each(self.seen(counts), reference) for counts in self._counts(group, n_groups)]
            return criterion.worst(np.concatenate(parts))
        return criterion.value(self.count(group, n_groups), reference)

    def _counts(
        self, group: NDArray[np.integer[Any]], n_groups: int, group_of_fitted: NDArray[np.integer[Any]] | None = None
    ) -> Iterator[NDArray[np.int64]]:
        """Yield the counts of some groups after the others, as many as memory likes."""
        n_together = max(1, _BLOCK // self.n_values)
        if n_groups <= n_together or self.criterion.counting != "values":
            yield self.count(group, n_groups, group_of_fitted)
            return
        for first in range(0, n_groups, n_together):
            stop = min(first + n_together, n_groups)
            yield self.count(np.where((group >= first) & (group < stop), group - first, -1), stop - first)


def make_counter(criterion: Criterion, column: Column | None) -> Counter:
    """Read off a column what a criterion counts.

    Missing is a value of its own and the last code, or where the criterion suppresses it does not count.
    """
    if column is None:
        return Counter(criterion, None, 1)
    codes = column.values.astype(np.int64) if column.kind == "category" else np.zeros(column.n_records, np.int64)
    distinct = column.categories
    if column.kind != "category":
        present = slice(None) if column.missing is None else ~column.missing
        # What stands at missing places is no value.
        distinct, codes[present] = np.unique(column.values[present], return_inverse=True)
    assert distinct is not None
    n_values = len(distinct)
    if column.missing is not None:
        # Persons that nobody can tell apart count as one, values that are missing as one value.
        codes = np.where(column.missing, n_values, codes)
    has_missing = column.missing is not None and bool(column.missing.any())
    leaves_out = has_missing and criterion.counting == "values" and getattr(criterion, "missing", "") == "suppress"
    if criterion.counting == "values":
        if n_values > MOST_VALUES:
            raise ParameterError(
                f"the column {column.name!r} has {n_values} different values: expected at most {MOST_VALUES} for "
                "a criterion on how often each occurs. Round it, or put its values into classes."
            )
        if leaves_out and not n_values:
            raise ParameterError(
                f"the column {column.name!r} has no value at all and missing='suppress' leaves all records out: "
                "expected something to protect. Remove the criterion, or use missing='value'."
            )
        if isinstance(criterion, KnowsValues):
            values = distinct.tolist() + ([None] if has_missing and not leaves_out else [])
            criterion = criterion.for_values(values)
    return Counter(criterion, codes, max(1, n_values + has_missing), leaves_out_last=leaves_out)


def verify(
    frame: Any,
    columns: Sequence[str],
    counters: Sequence[Counter],
    rows: NDArray[np.int64] | None,
    *,
    n_threads: int = 1,
) -> int:
    """Recount a finished table apart from the engine (only tables are read alike); raise when a criterion fails.

    Parameters
    ----------
    frame : frame
        The table that is about to leave.
    columns : sequence of str
        Its quasi-identifiers, by the names they leave with.
    counters : sequence of Counter
    rows : ndarray or None
        Which of the counters' records the table has, in its order; None: all.
    n_threads : int

    Returns
    -------
    smallest_group : int
    """
    sizes = count_groups(frame, columns, n_threads=n_threads)
    needs_groups = any(c.population is not None or c.criterion.counting == "values" for c in counters)
    group = label_groups(frame, columns) if needs_groups else None
    for counter in counters:
        n_failed = _count_failed(frame, columns, counter, rows, sizes, group)
        if n_failed:
            raise GuaranteeError(
                f"the rewritten table has {n_failed} of {len(sizes)} groups for which it does not hold that "
                f"{counter.criterion.describe()}: expected none. Nothing is released. Please report this."
            )
    return int(sizes.min())


def _count_failed(
    frame: Any,
    columns: Sequence[str],
    counter: Counter,
    rows: NDArray[np.int64] | None,
    sizes: NDArray[np.int64],
    group: NDArray[np.int64] | None,
) -> int:
    if counter.population is not None:
        assert group is not None
        return int((~counter.passes(_count_presence(group, counter, rows))).sum())
    if counter.value_of_row is None:
        return int((~counter.passes(sizes[:, None])).sum())
    values = counter.value_of_row if rows is None else counter.value_of_row[rows]
    if counter.criterion.counting == "distinct":
        return int((~counter.passes(count_groups(frame, columns, distinct=values)[:, None])).sum())
    assert group is not None
    blocks = count_values_by_block(group, values, counter.n_values)
    return sum(int((~counter.passes(counts)).sum()) for counts in blocks)


def _count_presence(seen: NDArray[np.int64], counter: Counter, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Count records and population by what the table shows: groups with the same values are one group."""
    assert counter.population is not None
    assert counter.group_of_row is not None
    group = counter.group_of_row if rows is None else counter.group_of_row[rows]
    seen_of_group = np.full(int(group.max()) + 2, -1, np.int64)  # the last place serves those in no group
    seen_of_group[group] = seen
    members = seen_of_group[counter.population]
    n_seen = int(seen.max()) + 1
    counts = [np.bincount(part, minlength=n_seen) for part in (seen, members[members >= 0])]
    if not np.array_equal(seen_of_group[group], seen):
        counts[1][:] = 0  # a group that shows different values has no population that could be told apart
    return np.column_stack(counts).astype(np.int64)
