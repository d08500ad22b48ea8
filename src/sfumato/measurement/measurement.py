# SPDX-License-Identifier: Apache-2.0
"""The results of a measurement: plain frozen data, made by ``measuring`` and turned into JSON here.

The risks are those of three attackers: the prosecutor, the journalist and the marketer.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.documents import plain
from sfumato.measurement.population_uniqueness import UniquenessEstimate
from sfumato.measurement.ranking import Ranking
from sfumato.notebooks import facts_as_html

MissingPolicy = Literal["value", "wildcard"]
MISSING_MEANS: dict[str, str] = {
    "value": "a missing value is a value of its own: two records that both miss it agree in it",
    "wildcard": "a missing quasi-identifier matches anything: the size of a record's group is the number of records "
    "that agree with it in every quasi-identifier present in both",
}
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_FLOORS = (1, 2, 3, 5, 10, 20, 50, 100, 1000)
THRESHOLDS = (0.05, 0.09, 0.2)


@dataclass(frozen=True)
class SizeClass:
    """Groups whose size lies from `low` to `high` (None: no upper end), and the records in them."""

    low: int
    high: int | None
    n_groups: int
    n_records: int


@dataclass(frozen=True)
class GroupSizes:
    """How large the groups are.

    Attributes
    ----------
    n_groups : int
        Different combinations of quasi-identifiers.
    smallest : int
        The k of k-anonymity.
    smallest_in_persons : int or None
        The fewest different persons of a group, where a unit was named.
    largest : int
    average : float
        Records divided by groups.
    quantiles_of_groups, quantiles_of_records : dict of float to int
        The smallest size that at least this share of the groups, or of the records, does not exceed.
    histogram : tuple of SizeClass
    missing : str
        What a missing quasi-identifier means.
    """

    n_groups: int
    smallest: int
    smallest_in_persons: int | None
    largest: int
    average: float
    quantiles_of_groups: dict[float, int]
    quantiles_of_records: dict[float, int]
    histogram: tuple[SizeClass, ...]
    missing: str


@dataclass(frozen=True)
class Uniqueness:
    """How many records are alone, in the table and in the population.

    Attributes
    ----------
    n_unique : int
        Records of the table that agree with no other.
    share : float
    population_size : int or None
    population_basis : {"table", "number", "weights"} or None
        Where the size comes from: a population table, a given number, the sum of the weights.
    n_unique_in_population : int or None
        Records of the table that are alone in the population table: counted, not estimated.
    n_not_in_population : int or None
        Records of the table with a combination that the population table has less often than the table. The table is
        then no part of that population; their risk is that in the table.
    estimates : tuple of UniquenessEstimate
    missing : str
    """

    n_unique: int
    share: float
    population_size: int | None
    population_basis: str | None
    n_unique_in_population: int | None
    n_not_in_population: int | None
    estimates: tuple[UniquenessEstimate, ...]
    missing: str


@dataclass(frozen=True)
class CriterionValue:
    """The bound that the groups reach in one criterion.

    Attributes
    ----------
    criterion : str
    column : str or None
        The sensitive column; None when records are counted.
    value : float, int or None
        Of the worst group.
    meaning : str
        What the value says.
    missing : str
        What a missing quasi-identifier means. A missing sensitive value always counts as a value of its own.
    reason : str or None
        Why there is no value.
    """

    criterion: str
    column: str | None
    value: float | int | None
    meaning: str
    missing: str
    reason: str | None = None


@dataclass(frozen=True)
class Measurement:
    """How well people hide in a table; made by :func:`sfumato.measure`.

    Attributes
    ----------
    n_records : int
    quasi_identifiers, sensitive : tuple of str
    missing : {"value", "wildcard"}
        What a missing quasi-identifier means.
    n_with_missing : int
        Records that miss at least one quasi-identifier.
    groups : GroupSizes
    prosecutor, journalist, marketer : Risk
    uniqueness : Uniqueness
    ranking : Ranking
    criteria : tuple of CriterionValue

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import measure
    >>> found = measure(np.array([[30, 1], [30, 1], [41, 0]]))
    >>> found.k, found.groups.n_groups, found.uniqueness.n_unique
    (1, 2, 1)
    """

    n_records: int
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    missing: MissingPolicy
    n_with_missing: int
    groups: GroupSizes
    prosecutor: Risk
    journalist: Risk
    marketer: Risk
    uniqueness: Uniqueness
    ranking: Ranking
    criteria: tuple[CriterionValue, ...]

    @property
    def k(self) -> int:
        """Size of the smallest group."""
        return self.groups.smallest

    @property
    def missing_means(self) -> str:
        """The meaning of a missing value, in a sentence."""
        return MISSING_MEANS[self.missing]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists, numbers and text; None (null in JSON) where there is no number."""
        document: dict[str, Any] = plain(asdict(self))
        return document | {"k": self.k, "missing_means": self.missing_means}

    def _repr_html_(self) -> str:
        """Show in a notebook how well people hide."""
        facts: list[tuple[str, Any]] = [
            ("records", self.n_records),
            ("quasi-identifiers", ", ".join(self.quasi_identifiers)),
            ("groups", self.groups.n_groups),
            ("smallest group (k)", self.k),
            ("unique records", self.uniqueness.n_unique),
            ("highest risk for a prosecutor", self.prosecutor.maximum),
            ("mean risk for a marketer", self.marketer.average),
        ]
        facts += [
            (own.criterion if own.column is None else f"{own.criterion} of {own.column}", own.value)
            for own in self.criteria
        ]
        return facts_as_html("Measurement", facts)


def describe_size_counts(
    different: NDArray[np.int64],
    groups_of: NDArray[np.int64],
    records_of: NDArray[np.int64],
    *,
    missing: str,
    smallest_in_persons: int | None,
) -> GroupSizes:
    """Summarize how large the groups are, given the sizes that occur, rising, and the groups and records of each."""
    classes = []
    for low, above in zip(_FLOORS, (*_FLOORS[1:], None), strict=True):
        inside = (different >= low) & (True if above is None else different < above)
        counted = (int(groups_of[inside].sum()), int(records_of[inside].sum()))
        classes.append(SizeClass(low, None if above is None else above - 1, *counted))
    return GroupSizes(
        n_groups=int(groups_of.sum()),
        smallest=int(different[0]),
        smallest_in_persons=smallest_in_persons,
        largest=int(different[-1]),
        average=float(records_of.sum() / groups_of.sum()),
        quantiles_of_groups=_quantiles(different, groups_of),
        quantiles_of_records=_quantiles(different, records_of),
        histogram=tuple(classes),
        missing=missing,
    )


def _quantiles(values: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[float, int]:
    reached = np.cumsum(counts)
    wanted = [max(1, math.ceil(share * int(reached[-1]))) for share in QUANTILES]
    return {share: int(values[np.searchsorted(reached, n)]) for share, n in zip(QUANTILES, wanted, strict=True)}


@dataclass(frozen=True)
class Risk:
    """The chance to find the right record, over all records of the table.

    Attributes
    ----------
    attacker : {"prosecutor", "journalist", "marketer"}
        The prosecutor knows that a person is in the table; the journalist knows that the person is in the population
        that the table was drawn from; the marketer matches all records with the population and counts the hits.
    maximum : float or None
        Of the record easiest to find.
    average : float or None
        Mean over records, not over groups: the share of records an attack on all of them is expected to find.
    above : dict of float to float, or None
        For 0.05, 0.09 and 0.2: the share of records whose risk is larger.
    basis : str or None
        What the numbers rest on: ``"table"``, ``"population"`` or ``"weights"``.
    missing : str
        What a missing quasi-identifier means.
    reason : str or None
        Why a number is not there.

    References
    ----------
    El Emam, K. and Dankar, F. K. (2008). Protecting privacy using k-anonymity.
    Dankar, F. K. and El Emam, K. (2010). A method for evaluating marketer re-identification risk.
    """

    attacker: str
    maximum: float | None
    average: float | None
    above: dict[float, float] | None
    basis: str | None
    missing: str
    reason: str | None = None


def risk_of(
    attacker: str, risk: NDArray[np.float64], n_records: NDArray[np.int64], *, basis: str, missing: str
) -> Risk:
    """Summarize the risks of groups whose records share one risk each.

    Parameters
    ----------
    attacker : str
    risk : ndarray of float64, shape (groups,)
    n_records : ndarray of int64, shape (groups,)
        Records of each group.
    """
    total = n_records.sum()
    above = {threshold: float(n_records[risk > threshold].sum() / total) for threshold in THRESHOLDS}
    average = float((risk * n_records).sum() / total)
    return risk_from_sums(attacker, float(risk.max()), average, above, basis=basis, missing=missing)


def risk_from_sums(
    attacker: str, maximum: float, average: float, above: dict[float, float], *, basis: str, missing: str
) -> Risk:
    """Return a risk; of the marketer, only its average."""
    if attacker == "marketer":
        why = "an average by definition: the share of all records that are expected to be found"
        return Risk(attacker, None, min(1.0, average), None, basis, missing, why)
    return Risk(attacker, maximum, min(1.0, average), above, basis, missing)


def unknown_risk(attacker: str, *, missing: str, reason: str) -> Risk:
    """Return a risk that cannot be measured, with the reason."""
    return Risk(attacker, None, None, None, None, missing, reason)
