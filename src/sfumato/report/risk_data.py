# SPDX-License-Identifier: Apache-2.0
"""Risks of re-identification, subgroups that attacks gain most on, files and earlier releases: parts of an audit.

Shares of fewer people than an audit shows, but not of nobody, are None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class FileHash:
    """The name of a file and the SHA-256 of its content."""

    file: str
    sha256: str


@dataclass(frozen=True)
class AttackedSubgroup:
    """The subgroup in which an attack gains most over its baseline.

    Attributes
    ----------
    column, group : str
        The column that forms the subgroups, and the name of this one.
    n_people : int
        Attacked people in it.
    rate : float
        Success of the attack on them.
    interval : (float, float)
        Of the rate; all subgroups that were compared share the error.
    baseline : float
        Success on the same people without the release, by an attacker who knows what is most frequent among them.
    """

    column: str
    group: str
    n_people: int
    rate: float
    interval: tuple[float, float]
    baseline: float


@dataclass(frozen=True)
class AttackerRisk:
    """The chance of one attacker to find the right record.

    Attributes
    ----------
    attacker : {"prosecutor", "journalist", "marketer"}
        The prosecutor knows that a person is in the table; the journalist knows that the person is in the population;
        the marketer matches all records with the population.
    maximum : float or None
        Of the record easiest to find; None for the marketer.
    average : float
        Over records: the share that an attack on all of them is expected to find.
    above : dict
        Threshold to the share of the records whose chance is larger; empty for the marketer.
    """

    attacker: Literal["prosecutor", "journalist", "marketer"]
    maximum: float | None
    average: float
    above: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class RiskProfile:
    """How well people hide in one table.

    Attributes
    ----------
    unique : float or None
        Share of the records that no other record equals in the quasi-identifiers.
    attackers : tuple of AttackerRisk
    population_unique : dict
        Estimator to the share of the records that are expected to be unique in the population; None: no estimate.
    """

    unique: float | None
    attackers: tuple[AttackerRisk, ...]
    population_unique: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Reidentification:
    """Risks of re-identification by the quasi-identifiers, in the original table and in the release.

    Attributes
    ----------
    before, after : RiskProfile
    counted : {"records", "persons"}
        What group sizes count.
    sampling_fraction : float or None
        Share of the population that is in the table. None: unknown; the table then counts as the whole population,
        which overstates what the journalist and the marketer achieve.
    threshold : float or None
        Largest acceptable chance, as the policy says.
    """

    before: RiskProfile
    after: RiskProfile
    counted: Literal["records", "persons"] = "records"
    sampling_fraction: float | None = None
    threshold: float | None = None


@dataclass(frozen=True)
class EarlierRelease:
    """An earlier release of the same people, and what both show together.

    Attributes
    ----------
    file, sha256 : str
        What the owner kept of it.
    n_people : int or None
        People in both; without a column of persons, as many as could be.
    n_below : int or None
        Those of them whose two groups share fewer than k people.
    is_safe : bool
        Whether everyone is hidden among k in both together, and in what was added and removed.
    is_counted : bool
        Whether people were recognized.
    """

    file: str
    sha256: str
    n_people: int | None
    n_below: int | None
    is_safe: bool
    is_counted: bool
