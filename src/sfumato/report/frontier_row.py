# SPDX-License-Identifier: Apache-2.0
"""One row of a frontier as data: what a protection costs, what attackers get, what bounds them, and why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.attack.result import Verdict, resampled_interval

FAMILIES: Mapping[str, str] = {
    "none": "no protection",
    "k": "groups of at least k people",
    "l": "groups with diverse sensitive values",
    "t": "groups with sensitive values close to those of all",
    "buckets": "columns collected coarsely",
    "anatomy": "exact values and sensitive values in two tables",
    "epsilon-learner": "a model with differential privacy",
    "epsilon-release": "a table with differential privacy",
    "synthetic": "a synthetic table",
    "other": "another estimator",
}
"""Families of protections, in words."""

GUESSING = 0.5
"""How often a guess about membership is right."""

Shares = Literal["model", "table"]
Goal = Literal["membership", "attribute", "singling out", "linkability"]


@dataclass(frozen=True)
class Estimate:
    """A number, measured on every split.

    Attributes
    ----------
    value : float
        The mean over the splits.
    interval : (float, float) or None
        Its confidence interval over the splits, corrected for what they share (`resampled_interval`), and no narrower
        than that over the records of a split. With one split, that one; None where neither is known.
    per_split : tuple of float
    """

    value: float
    interval: tuple[float, float] | None
    per_split: tuple[float, ...]

    @classmethod
    def of(
        cls,
        per_split: Sequence[float],
        test_over_train: float,
        confidence: float,
        within: Sequence[tuple[float, float] | None] = (),
        *,
        is_share: bool = False,
    ) -> Estimate:
        """Return the mean over splits with its interval.

        Parameters
        ----------
        per_split : sequence of float
        test_over_train, confidence : float
        within : sequence of (float, float) or None
            The interval over the records of each split.
        is_share : bool, default=False
            Whether values lie between 0 and 1.
        """
        values = tuple(float(value) for value in per_split)
        value, known = sum(values) / len(values), [ends for ends in within if ends is not None]
        ends = [resampled_interval(values, test_over_train, confidence)] if len(values) > 1 else []
        if known and len(known) == len(values):  # splits may agree by chance, and records vary all the same
            ends.append((sum(low for low, _ in known) / len(known), sum(high for _, high in known) / len(known)))
        if not ends:
            return cls(value, None, values)
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        return cls(value, (max(0.0, low), min(1.0, high)) if is_share else (low, high), values)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any] | None) -> Estimate | None:
        """Rebuild it from `to_dict`'s document; None stays None."""
        if document is None:
            return None
        low_high = document["interval"]
        return cls(document["value"], None if low_high is None else tuple(low_high), tuple(document["per_split"]))


@dataclass(frozen=True)
class FrontierAttack:
    """One attack on one protection.

    Attributes
    ----------
    attack : str
        Its name, as policies call it, with underscores.
    title : str
    on : {"model", "table"}
        What is attacked.
    goal : {"membership", "attribute", "singling out", "linkability"}
    rate : Estimate
        Success rate of the attacker.
    baseline, control : float
        Rate of an attacker without what is shared, and of the same attack on other people; None without a control.
    auc, found_at_1_percent : Estimate or None
        Of membership attacks: area under the curve, and share of members found with 1% false positives.
    verdict : str
        See `AttackResult`.
    """

    attack: str
    title: str
    on: Shares
    goal: Goal
    rate: Estimate
    baseline: float
    control: float | None
    auc: Estimate | None
    found_at_1_percent: Estimate | None
    verdict: Verdict

    @property
    def advantage(self) -> float:
        """The success rate above the better of baseline and control."""
        return self.rate.value - max(self.baseline, self.control or 0.0)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FrontierAttack:
        """Rebuild it from `to_dict`'s document."""
        parts = {name: Estimate.from_dict(document[name]) for name in ("rate", "auc", "found_at_1_percent")}
        return cls(**{**document, **parts})


@dataclass(frozen=True)
class FrontierSubgroup:
    """One protection for one subgroup.

    Attributes
    ----------
    column, group : str
        The column, and the value that its records share; ``"others"`` for values too rare to be named.
    n_records : int
        Test records of all splits together.
    utility : Estimate
    membership_auc : Estimate or None
        Area under the curve of the strongest membership attack on the model, among this subgroup's people.
    """

    column: str
    group: str
    n_records: int
    utility: Estimate
    membership_auc: Estimate | None

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FrontierSubgroup:
        """Rebuild it from `to_dict`'s document."""
        parts = {name: Estimate.from_dict(document[name]) for name in ("utility", "membership_auc")}
        return cls(**{**document, **parts})


@dataclass(frozen=True)
class CertifiedSecret:
    """What any attacker guesses right at most who sees a person's cell and nothing else.

    Attributes
    ----------
    secret : str
        The column; of several, the one with the largest advantage.
    upper : float
        No attacker is right more often, on average over people; the largest bound over the splits. Each holds with the
        frontier's confidence for the encoder of its split.
    baseline : float
        Rate of the most frequent value.
    """

    secret: str
    upper: float
    baseline: float


@dataclass(frozen=True)
class FrontierRow:
    """One protection: what it costs, and what it leaves to attackers.

    Attributes
    ----------
    name : str
    family : str
        One of `FAMILIES`.
    parameter : float or None
        k, l, t, the number of leaves or epsilon.
    shares : {"model", "table"}
        What leaves: a model alone, or a table, from which anyone can train models.
    utility : Estimate or None
        Accuracy, or R2 of a regressor, on raw test records.
    auc : Estimate or None
        Area under the curve; of several classes, the mean over one class against the rest.
    recoded, recoded_auc : Estimate or None
        The same of test records that were recoded like the table.
    attacks : tuple of FrontierAttack
    certificate : CertifiedSecret or None
    limit : float or None
        No membership attack is right more often: ``(e^epsilon + delta) / (1 + e^epsilon)``.
    subgroups : tuple of FrontierSubgroup
    seconds : float
        Of one fit.
    reasons : mapping of str to str
        Why a number is None, by its name.
    """

    name: str
    family: str
    parameter: float | None
    shares: Shares
    utility: Estimate | None = None
    auc: Estimate | None = None
    recoded: Estimate | None = None
    recoded_auc: Estimate | None = None
    attacks: tuple[FrontierAttack, ...] = ()
    certificate: CertifiedSecret | None = None
    limit: float | None = None
    subgroups: tuple[FrontierSubgroup, ...] = ()
    seconds: float = 0.0
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> Estimate | None:
        """The utility on raw or on recoded test records, whichever is higher: both are ways to use what is shared."""
        known = [measured for measured in (self.utility, self.recoded) if measured is not None]
        return max(known, key=lambda measured: measured.value, default=None)

    def strongest(self, goal: Goal, on: Shares | None = None) -> FrontierAttack | None:
        """Return the attack with the largest success above its reference, on the model, the table or either."""
        found = [one for one in self.attacks if one.goal == goal and on in (None, one.on)]
        return max(found, key=lambda one: (one.advantage, one.rate.value), default=None)

    @property
    def risk(self) -> float | None:
        """Success rate of the strongest membership attack, on the model or the table; guessing gives one half."""
        found = [one.rate.value for one in self.attacks if one.goal == "membership"]
        return max(found, default=None)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FrontierRow:
        """Rebuild a row from `to_dict`'s document."""
        parts: dict[str, Any] = {
            name: Estimate.from_dict(document[name]) for name in ("utility", "auc", "recoded", "recoded_auc")
        }
        parts["attacks"] = tuple(map(FrontierAttack.from_dict, document["attacks"]))
        parts["subgroups"] = tuple(map(FrontierSubgroup.from_dict, document["subgroups"]))
        certified = document["certificate"]
        parts["certificate"] = None if certified is None else CertifiedSecret(**certified)
        return cls(**{**document, **parts})
