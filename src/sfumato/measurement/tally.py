# SPDX-License-Identifier: Apache-2.0
"""Statistics of group counts: group sizes, attacker risks, and unique records.

All of it depends on the sizes of groups here, in the population, and in sums of weights. Called by ``measuring``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.group_rows import distinct_sizes
from sfumato.backends.measurable_table import GroupCounts
from sfumato.measurement.measurement import (
    THRESHOLDS,
    GroupSizes,
    Risk,
    Uniqueness,
    describe_size_counts,
    risk_from_sums,
    risk_of,
    unknown_risk,
)
from sfumato.measurement.population_uniqueness import estimate_from_weights, estimates_from_sizes, expected_inverse


@dataclass(frozen=True)
class WeightedSums:
    """Sums of survey weights over all groups.

    Attributes
    ----------
    total : float
        Sum of the weights.
    largest : float
        The largest risk of a record.
    n_found : float
        Records that are expected to be found.
    n_unique_in_population : float
        Records that are expected to be unique in the population.
    n_above : tuple of float
        Records whose risk is above each threshold.
    """

    total: float
    largest: float
    n_found: float
    n_unique_in_population: float
    n_above: tuple[float, ...]

    @classmethod
    def of(cls, parts: Sequence[NDArray[np.float64]]) -> WeightedSums:
        """Add up what `work_on_weights` returned for blocks of groups."""
        rows = np.stack(parts)
        total, _, n_found, n_unique, *n_above = rows.sum(axis=0).tolist()
        return cls(total, float(rows[:, 1].max()), n_found, n_unique, tuple(n_above))


def work_on_weights(sizes: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the numbers of `WeightedSums` for some groups, given the sums of their weights."""
    risk = expected_inverse(sizes, weights)
    # A record that is unique here is unique in the population with the chance 1 / weight.
    n_unique = np.minimum(1.0, 1.0 / weights[sizes == 1]).sum()
    n_above = [sizes[risk > threshold].sum() for threshold in THRESHOLDS]
    return np.array([weights.sum(), risk.max(), (risk * sizes).sum(), n_unique, *n_above], np.float64)


@dataclass(frozen=True, eq=False)
class GroupTally:
    """The groups of a table, and what can be said of them.

    Attributes
    ----------
    counts : GroupCounts
    weighted : WeightedSums or None
    missing : str
        What a missing quasi-identifier means.
    """

    counts: GroupCounts
    weighted: WeightedSums | None
    missing: str

    @property
    def n_records(self) -> NDArray[np.int64]:
        """Records of all groups of each kind."""
        return self.counts.sizes * self.counts.n_groups

    def described(self) -> GroupSizes:
        """Summarize how large the groups are."""
        counts = self.counts
        distinct, place = distinct_sizes(counts.matched)
        groups_of = np.bincount(place, weights=counts.n_groups).astype(np.int64)
        records_of = np.bincount(place, weights=self.n_records).astype(np.int64)
        fewest_persons = None if counts.is_matching else counts.fewest_persons
        return describe_size_counts(
            distinct, groups_of, records_of, missing=self.missing, smallest_in_persons=fewest_persons
        )

    def prosecutor(self) -> Risk:
        """Return the risk of an attacker who knows that a person is in the table."""
        return risk_of("prosecutor", 1.0 / self.counts.matched, self.n_records, basis="table", missing=self.missing)

    def risks_in_population(self) -> dict[str, Risk]:
        """Return the risks of the journalist and the marketer, who look for people in the population."""
        attackers, counts = ("journalist", "marketer"), self.counts
        if counts.in_population is not None:
            # A person of the table is a person of the population, whatever the population table says.
            risk = 1.0 / np.maximum(counts.in_population, counts.matched)
            return {
                name: risk_of(name, risk, self.n_records, basis="population", missing=self.missing)
                for name in attackers
            }
        if self.weighted is not None and not counts.is_matching:
            sums, n_records = self.weighted, int(self.n_records.sum())
            above = {threshold: n / n_records for threshold, n in zip(THRESHOLDS, sums.n_above, strict=True)}
            average = sums.n_found / n_records
            return {
                name: risk_from_sums(name, sums.largest, average, above, basis="weights", missing=self.missing)
                for name in attackers
            }
        reason = "a population is needed, and none was given: pass population= (a table of the people) or weights="
        if self.weighted is not None:
            reason = "weights are summed over separate groups, and with missing='wildcard' groups overlap"
        return {name: unknown_risk(name, missing=self.missing, reason=reason) for name in attackers}

    def uniqueness(self, population_size: int | None, basis: str | None) -> Uniqueness:
        """Count who is unique in the table, and count or estimate who is unique in the population."""
        counts, n_records = self.counts, int(self.n_records.sum())
        reason = None
        if counts.is_matching:
            reason = "estimators need separate groups, and with missing='wildcard' groups overlap"
        elif population_size is None:
            reason = (
                "the number of people in the population is needed: pass population= (a number or a table) or weights="
            )
        elif population_size < n_records:
            reason = "the population table has fewer records than the table, so the table was not drawn from it"
        estimates = estimates_from_sizes(
            counts.sizes, population_size, missing=self.missing, reason=reason, n_groups=counts.n_groups
        )
        if self.weighted is not None:
            n_alone = int(counts.n_groups[counts.sizes == 1].sum())
            why = reason if counts.is_matching else None
            expected = self.weighted.n_unique_in_population
            estimates.append(estimate_from_weights(expected, n_records, n_alone, missing=self.missing, reason=why))
        n_unique = int(self.n_records[counts.matched == 1].sum())
        known = counts.in_population
        in_population = None if known is None else np.maximum(known, counts.matched)
        return Uniqueness(
            n_unique=n_unique,
            share=n_unique / n_records,
            population_size=population_size,
            population_basis=basis,
            n_unique_in_population=None if in_population is None else int(self.n_records[in_population == 1].sum()),
            n_not_in_population=None if known is None else int(self.n_records[known < counts.matched].sum()),
            estimates=tuple(estimates),
            missing=self.missing,
        )


def population_size(
    n_records: int, given: Any, n_people: int | None, weighted: WeightedSums | None
) -> tuple[int | None, str | None]:
    """Return how many people the population has, and what says so: its table, a given number, or the weights."""
    if n_people is not None:
        return n_people, "table"
    if given is not None:
        return int(given), "number"
    if weighted is not None:
        return max(n_records, round(weighted.total)), "weights"
    return None, None
