# SPDX-License-Identifier: Apache-2.0
"""Facts of an attack for audits: its title, its target, the lowest level that runs it, and its needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Level = Literal["none", "quick", "standard", "full"]
LEVELS: tuple[str, ...] = get_args(Level)
"""Levels of an audit, from no attacks to all attacks of the papers."""

NEED_TORCH = ("network",)
"""Names of the attacks that need torch, to be read without importing them."""

CONFIDENCE = 0.95
"""Confidence of the intervals in audits: the default of every attack."""

# What an attacker knows and sees, by the target of the attack, unless its facts say otherwise.
_KNOWS = {
    "membership": "records and labels of candidates, and of half of them whether the model was trained on them",
    "attribute": "all other columns and the label of people, and of half of them the column itself",
    "release": "the quasi-identifiers of people, in full resolution",
}
_SEES = {
    "membership": "the model's answers to the candidates",
    "attribute": "the model's answers to any record",
    "release": "the released records",
}


@dataclass(frozen=True)
class AttackFacts:
    """Facts of an attack for policies, audits and the documentation.

    Attributes
    ----------
    name : str
    title : str
        Title in reports.
    sentence : str
        Action of the attacker, without the final period.
    target : {"membership", "attribute", "release"}
        The target: the training records of a model, a column known to a model, or the released records.
    eu_risk : {"singling out", "linkability", "inference"}
        Which risk of the EU opinion it measures.
    from_level : str
        The lowest level of audits that runs it.
    needs : tuple of str
        ``"shadow models"``, or packages beyond the core.
    result : str
        What its results are called, where a remedy is known for them.
    remedy : {"larger k", "shuffle", "protect columns", "diversity", "representative"}
        What lowers its advantage.
    knows, sees : str
        What the attacker knows beforehand and has access to; empty: as usual for the target.
    """

    name: str
    title: str
    sentence: str
    target: Literal["membership", "attribute", "release"]
    eu_risk: Literal["singling out", "linkability", "inference"]
    from_level: Level = "quick"
    needs: tuple[str, ...] = ()
    result: str = ""
    remedy: Literal["larger k", "shuffle", "protect columns", "diversity", "representative"] = "larger k"
    knows: str = ""
    sees: str = ""

    @property
    def knowledge(self) -> str:
        """What the attacker knows beforehand, for reports."""
        return self.knows or _KNOWS[self.target]

    @property
    def access(self) -> str:
        """What the attacker can see or query, for reports."""
        return self.sees or _SEES[self.target]

    def runs_at(self, level: str) -> bool:
        """Return True if audits of a level run it."""
        return level != "none" and LEVELS.index(self.from_level) <= LEVELS.index(level)


@dataclass(frozen=True, eq=False)
class AttackedRelease:
    """A release and the knowledge of its attackers.

    Attributes
    ----------
    original, released : frame
        The same people, before and after.
    known : list of str
        The quasi-identifiers.
    unchanged : list of str
        The other columns that were released.
    secrets : list of str
        Columns to infer, none of them known.
    control : frame or None
        People who are not in the release.
    is_aligned : bool
        Whether the rows of the two tables are in the same order.
    places : array-like of int or None
        The place of every row in the file that is published; None: as they stand.
    random_state : int
    titles : mapping of str to str
        Titles of columns for readers.
    sensitive : list of str
        Those of the secrets that were named as sensitive, and are not only what a model predicts.
    """

    original: Any
    released: Any
    known: list[str]
    unchanged: list[str]
    secrets: list[str]
    control: Any
    is_aligned: bool
    places: Any
    random_state: int
    titles: Mapping[str, str]
    sensitive: list[str] = field(default_factory=list)

    @property
    def who(self) -> dict[str, Any]:
        """Keyword arguments that most attacks take besides the tables and the columns."""
        return {"control": self.control, "is_aligned": self.is_aligned, "random_state": self.random_state}


@dataclass(frozen=True)
class Case:
    """One run of an attack: its title, and a call that returns an `AttackResult`."""

    title: str
    run: Callable[[], Any]


@dataclass(frozen=True)
class NamedAttack:
    """An attack that audits run.

    Attributes
    ----------
    facts : AttackFacts
    cases : callable or None
        For an attack on a release: takes an `AttackedRelease` and returns its cases, or a sentence that says why it
        does not apply.
    """

    facts: AttackFacts
    cases: Callable[[AttackedRelease], Sequence[Case] | str] | None = None
