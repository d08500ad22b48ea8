# SPDX-License-Identifier: Apache-2.0
"""Groups of records by what is known of each: their sizes here, in the population, and in sums of weights.

What a measurement says of groups depends on these numbers alone, so groups with equal ones are counted together where
there are many. ``measuring`` makes a tally of one table, ``sfumato.parquet`` one of files, piece by piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.measurement.measurement import GroupSizes, Risk, Uniqueness, describe_size_counts, risk_of, unknown_risk
from sfumato.measurement.uniqueness import estimate_from_weights, estimates_from_sizes, expected_inverse


@dataclass(frozen=True, eq=False)
class GroupTally:
    """Kinds of groups, and how many there are of each.

    Attributes
    ----------
    sizes : ndarray of int64
        Records of a group.
    matched : ndarray of int64
        Records that those of the group match: its size, unless missing values match anything.
    n_groups : ndarray of int64
        Groups of this kind.
    in_population : ndarray of int64 or None
        Members of the population that the group's records match.
    weight : ndarray of float64 or None
        Sum of the group's survey weights; then every group is a kind of its own.
    is_matching : bool
        Whether missing values match anything, and there are some, so that groups overlap.
    missing : str
        What a missing quasi-identifier means.
    """

    sizes: NDArray[np.int64]
    matched: NDArray[np.int64]
    n_groups: NDArray[np.int64]
    in_population: NDArray[np.int64] | None
    weight: NDArray[np.float64] | None
    is_matching: bool
    missing: str

    @property
    def n_records(self) -> NDArray[np.int64]:
        """Records of all groups of each kind."""
        return self.sizes * self.n_groups

    def described(self, smallest_in_persons: int | None) -> GroupSizes:
        """Summarize how large the groups are."""
        different, place = distinct_sizes(self.matched)
        groups_of = np.bincount(place, weights=self.n_groups).astype(np.int64)
        records_of = np.bincount(place, weights=self.n_records).astype(np.int64)
        return describe_size_counts(
            different, groups_of, records_of, missing=self.missing, smallest_in_persons=smallest_in_persons
        )

    def prosecutor(self) -> Risk:
        """Return the risk of who knows that a person is in the table."""
        return risk_of("prosecutor", 1.0 / self.matched, self.n_records, basis="table", missing=self.missing)

    def risks_in_population(self) -> dict[str, Risk]:
        """Return the risks of the journalist and the marketer, who look for people in the population."""
        attackers = ("journalist", "marketer")
        if self.in_population is not None:
            # A person of the table is a person of the population, whatever the population table says.
            risk, basis = 1.0 / np.maximum(self.in_population, self.matched), "population"
        elif self.weight is not None and not self.is_matching:
            risk, basis = expected_inverse(self.sizes, self.weight), "weights"
        else:
            reason = "a population is needed, and none was given: pass population= (a table of the people) or weights="
            if self.weight is not None:
                reason = "weights are summed over separate groups, and with missing='wildcard' groups overlap"
            return {name: unknown_risk(name, missing=self.missing, reason=reason) for name in attackers}
        return {name: risk_of(name, risk, self.n_records, basis=basis, missing=self.missing) for name in attackers}

    def uniqueness(self, population_size: int | None, basis: str | None) -> Uniqueness:
        """Count who is alone in the table, and count or estimate who is alone in the population."""
        n_records = int(self.n_records.sum())
        reason = None
        if self.is_matching:
            reason = "estimators need separate groups, and with missing='wildcard' groups overlap"
        elif population_size is None:
            reason = (
                "the number of people in the population is needed: pass population= (a number or a table) or weights="
            )
        elif population_size < n_records:
            reason = "the population table has fewer records than the table, so the table was not drawn from it"
        estimates = estimates_from_sizes(
            self.sizes, population_size, missing=self.missing, reason=reason, n_groups=self.n_groups
        )
        if self.weight is not None:
            why = reason if self.is_matching else None
            estimates.append(estimate_from_weights(self.sizes, self.weight, missing=self.missing, reason=why))
        n_unique = int(self.n_records[self.matched == 1].sum())
        known = self.in_population
        in_population = None if known is None else np.maximum(known, self.matched)
        return Uniqueness(
            n_unique=n_unique,
            share=n_unique / n_records,
            population_size=population_size,
            population_basis=basis,
            n_unique_in_population=None if in_population is None else int(self.n_records[in_population == 1].sum()),
            n_not_in_population=None if known is None else int(self.n_records[known < self.matched].sum()),
            estimates=tuple(estimates),
            missing=self.missing,
        )


def distinct_sizes(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sizes that occur, rising, and the place of each among them: ``np.unique``, without sorting."""
    largest = int(sizes.max(initial=0))
    if largest > 4 * len(sizes) + 1000:  # few groups, and large ones
        different, place = np.unique(sizes, return_inverse=True)
        return different, place.astype(np.int64)
    occurs = np.zeros(largest + 1, np.bool_)
    occurs[sizes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[sizes]


def population_size(
    n_records: int, given: Any, n_people: int | None, weights: NDArray[np.float64] | None
) -> tuple[int | None, str | None]:
    """Return how many people the population has, and what says so: its table, a given number, or the weights."""
    if n_people is not None:
        return n_people, "table"
    if given is not None:
        return int(given), "number"
    if weights is not None:
        return max(n_records, round(float(weights.sum()))), "weights"
    return None, None
