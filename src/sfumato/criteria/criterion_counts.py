# SPDX-License-Identifier: Apache-2.0
"""Count what criteria look at, in any groups of records: what fitting, releasing and recounting ask about groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria import Criterion, KnowsValues
from sfumato.criteria.base import asks_records_alone, least_records
from sfumato.criteria.sensitive_criterion import OnSensitiveColumn
from sfumato.errors import ParameterError
from sfumato.frames import Column, Table

MOST_VALUES = 1 << 16
"""Different values of a sensitive column at most: beyond, nearly every record has one of its own."""

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

    def in_order(self, order: NDArray[np.integer[Any]]) -> Counter:
        """Return the counter of the same records in another order."""
        if self.value_of_row is None:
            return self
        return replace(self, value_of_row=self.value_of_row[order])

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

    def largest_persons(self, n: int) -> list[int] | None:
        """Return how many records the `n` persons with the most have; None where records are counted."""
        if self.criterion.counting != "distinct" or self.value_of_row is None:
            return None
        most: list[int] = np.sort(np.bincount(self.value_of_row))[::-1][:n].tolist()
        return most

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

    def count_all(self, n_records: int) -> NDArray[np.int64]:
        """Count the records as one group."""
        if self.value_of_row is None and self.population is None:
            return np.array([[n_records]], np.int64)
        return self.count(np.zeros(n_records, np.int64), 1)

    def are_safe(
        self,
        group: NDArray[np.integer[Any]],
        n_groups: int,
        group_of_fitted: NDArray[np.integer[Any]] | None = None,
    ) -> NDArray[np.bool_]:
        """Return which groups of records are safe; groups without records are, unless a population is counted."""
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


def make_counters(criteria: Iterable[Criterion], table: Table) -> list[Counter]:
    """Read off a table's columns what each criterion counts."""
    return [
        make_counter(criterion, None if criterion.column is None else table.column(criterion.column, for_counting=True))
        for criterion in criteria
    ]


def fewest_records(counters: Sequence[Counter]) -> int:
    """Return how many records a group has at least, whatever else it must meet."""
    return max(least_records(counter.criterion) for counter in counters)


def publishing_floor(counters: Sequence[Counter]) -> int:
    """Return how many records must have a value before it may be published: so many that k persons have it.

    Where records are persons, that is k. Where persons have several, it is one more than the k - 1 persons with the
    most records have together.
    """
    k = fewest_records(counters)
    floors = [k]
    for counter in counters:
        most = counter.largest_persons(k - 1)
        if most is not None:
            floors.append(1 + sum(most))
    return max(floors)


def among_released(counters: Sequence[Counter], leaf: NDArray[np.integer[Any]]) -> list[Counter]:
    """Return the counters of the records that leave, given the fitted group of every record (-1: suppressed).

    A population is counted twice: all of it, and its members in the fitted groups of which records leave. A reader of
    the released values sees those groups alone and leaves the other members out, so neither share may be too large.
    """
    result = [counter.among(leaf >= 0) for counter in counters]
    for counter in counters:
        if counter.population is not None:
            result.append(replace(counter, population=counter.population[np.isin(counter.population, leaf)]))
    return result


def hold_together(leaf: NDArray[np.int32], counters: list[Counter]) -> bool:
    """Return True if the records that are not suppressed (-1) meet the criteria as one group."""
    together = np.where(leaf >= 0, 0, -1)
    return bool((leaf >= 0).any()) and all(bool(c.passes(c.count(together, 1))[0]) for c in counters)


def shown(criterion: Criterion) -> str:
    """Return how messages and measures name a criterion."""
    if asks_records_alone(criterion):
        return f"k={least_records(criterion)}"
    return repr(criterion)
