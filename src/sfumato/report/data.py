# SPDX-License-Identifier: Apache-2.0
"""The results of an audit as data, from which reports are made.

No values of cells are in it but the names of subgroups, which appear only where at least `smallest_shown` records share
them. Counts below that are blurred: they are given as None and worded as "fewer than".
"""

from __future__ import annotations

import html
import json
import os
import tempfile
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sfumato.documents import plain
from sfumato.errors import ParameterError
from sfumato.report.risk_data import AttackedSubgroup, EarlierRelease, FileHash, Reidentification

VERSION = 2

OPTIONAL = (
    "certificate", "context", "made_at", "policy_sha256", "outputs", "reidentification", "privacy", "earlier",
)  # fmt: skip
"""Parts of an audit that its document has only where there is something to say."""

EuRisk = Literal["singling out", "linkability", "inference"]
"""The three risks of the Article 29 Working Party's Opinion 05/2014 on anonymisation techniques."""


@dataclass(frozen=True)
class Subgroup:
    """Effect of protection on one subgroup.

    Attributes
    ----------
    column, group : str
        The column that forms the subgroups, and the name of this one.
    n_records : int
        Test records in it.
    raw, protected : float
        The model's score before and after, on these records.
    interval : (float, float)
        Of the change.
    """

    column: str
    group: str
    n_records: int
    raw: float
    protected: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class UtilityResult:
    """Effect of protection on a model, measured on held-out records.

    Attributes
    ----------
    metric : str
        ``"accuracy"`` or ``"R2"``.
    model : str
    raw : float
        Trained on the records as they are.
    protected : float or None
        Trained on protected records, tested on records as they are; None where those differ in kind.
    transformed : float
        The same with the test records protected in the same way.
    interval : (float, float)
        Of the change from `raw` to `judged`, over test records.
    n_train, n_test : int
    subgroups : tuple of Subgroup
    same_answer : float or None
        The accuracy of always giving the most frequent answer of the training records; None for numbers.
    notes : tuple of str
        Columns whose subgroups are not shown, and why.
    n_parameters : int or None
        Numbers that the model learned from the release: weights, or nodes of trees; None where they are not known.
    """

    metric: str
    model: str
    raw: float
    protected: float | None
    transformed: float
    interval: tuple[float, float]
    n_train: int
    n_test: int
    subgroups: tuple[Subgroup, ...] = ()
    same_answer: float | None = None
    notes: tuple[str, ...] = ()
    n_parameters: int | None = None

    @property
    def judged(self) -> float:
        """The score that a gate judges: on raw records if they can be predicted."""
        return self.transformed if self.protected is None else self.protected

    @property
    def kept(self) -> float:
        """The share of the raw score that is kept; for a useless model, all unless it became worse."""
        return self.share_kept(self.judged)

    @property
    def gain_kept(self) -> float:
        """The share that is kept of the gain over the majority-class baseline.

        For numbers, whose baseline is the mean with an R2 of 0, that is the share of the score.
        """
        return self.share_kept(self.judged, of_gain=True)

    def share_kept(self, score: float, *, of_gain: bool = False) -> float:
        """Return the share of the raw score that another score keeps, or of the raw gain over the baseline."""
        baseline = (self.same_answer or 0.0) if of_gain else 0.0
        if self.raw <= baseline:
            return 1.0 if score >= self.raw else 0.0
        return max(0.0, score - baseline) / (self.raw - baseline) if of_gain else score / self.raw

    @property
    def has_gain(self) -> bool:
        """Whether the model trained on raw records beats the majority-class baseline, or the mean."""
        return self.raw > (self.same_answer or 0.0)

    @property
    def has_learned(self) -> bool:
        """Whether the model trained on the release beats the majority-class baseline."""
        return self.judged > (0.0 if self.same_answer is None else self.same_answer)


@dataclass(frozen=True)
class GroupSizes:
    """Sizes of the groups of a release.

    Attributes
    ----------
    n_groups, smallest, largest : int
    median : float
        Of the groups.
    edges : tuple of int
        Sizes at which the classes of `shares` begin; the last class is open.
    shares : tuple of float
        Share of the records in groups of each class of sizes, in thousandths.
    """

    n_groups: int
    smallest: int
    largest: int
    median: float
    edges: tuple[int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class ColumnChange:
    """Change of one column.

    Attributes
    ----------
    name, role, kind : str
    loss : float or None
        Normalised certainty penalty, from 0 (as it was) to 1 (nothing is left); None for columns not rewritten.
    n_values_before, n_values_after : int or None
        Different values; None where the column did not leave, or not under its name.
    before, after : tuple of float
        Shares of the records in the same classes of values, of both tables, in thousandths. Classes are ranges of
        numbers or single frequent categories; their names are not given.
    sentence : str
        Why it lost detail, in plain words.
    n_invented : int or None
        Released values that no original record had; None for labels and where there is nothing to compare.
    share_invented : float or None
        Share of the released records that have such a value, in thousandths.
    mode_changed : bool or None
        Whether the most frequent value is another one than before; None also where none is frequent.
    """

    name: str
    role: str
    kind: str
    loss: float | None
    n_values_before: int | None
    n_values_after: int | None
    before: tuple[float, ...]
    after: tuple[float, ...]
    sentence: str
    n_invented: int | None = None
    share_invented: float | None = None
    mode_changed: bool | None = None


@dataclass(frozen=True)
class Risk:
    """Result of one attack.

    Attributes
    ----------
    title : str
        What the attacker wants, in a few words.
    eu_risk : {"singling out", "linkability", "inference"}
    result : dict
        The attack's result as `AttackResult.to_dict` gives it.
    sentence : str
        What it means.
    knowledge, access : str
        What the attacker knows beforehand, and can see or query.
    attempts : int or None
        Guesses that the rate was counted over.
    confidence : float
        Of the interval.
    worst : AttackedSubgroup or None
        The subgroup that the attack gains most on; None where no subgroup was compared.
    """

    title: str
    eu_risk: EuRisk
    result: Mapping[str, Any]
    sentence: str
    knowledge: str = ""
    access: str = ""
    attempts: int | None = None
    confidence: float = 0.95
    worst: AttackedSubgroup | None = None

    @property
    def without(self) -> float:
        """The reference rate: the success of an attacker without the release.

        That is the better of the attacker who does not see it and, where there is one, the same attack on people who
        are not in it: what can be found out about them, too, is knowledge about people in general.
        """
        control = self.result.get("control")
        return max(float(self.result["baseline"]), 0.0 if control is None else float(control))

    @property
    def advantage(self) -> float:
        """The advantage: the success rate above the reference rate."""
        return max(0.0, float(self.result["rate"]) - self.without)


@dataclass(frozen=True)
class GateCheck:
    """One condition that a release must meet.

    Attributes
    ----------
    name : str
        The setting of the policy, such as ``min_k``.
    required : float
    measured : float or None
        None where nothing was measured, or where the number would tell a count below `smallest_shown`.
    passed : bool
    sentence : str
    """

    name: str
    required: float
    measured: float | None
    passed: bool
    sentence: str


@dataclass(frozen=True)
class Point:
    """One point of a trade-off curve.

    Attributes
    ----------
    label : str
        Of the curve: method or model, or how many leaves.
    at : float
        The value that was chosen.
    score : float
    attack, baseline : float or None
    by : {"k", "alpha", "leaves"}
        What it was chosen for.
    certified : float or None
        No attacker succeeds more often, with 95% confidence; None where nothing was certified.
    """

    label: str
    at: float
    score: float
    attack: float | None = None
    baseline: float | None = None
    by: Literal["k", "alpha", "leaves"] = "k"
    certified: float | None = None


@dataclass(frozen=True)
class Uniqueness:
    """Shares of the released records that no other released record equals.

    Shares of fewer than `smallest_shown` records, but not of none, are None.

    Attributes
    ----------
    columns : tuple of str
        The columns released unchanged: all that were released and are not quasi-identifiers.
    share : float or None
        Unique by `columns` together; 0 where there are none.
    share_by_all : float or None
        Unique by all released columns together, quasi-identifiers included.
    target : float or None
        Records whose value of the target no other record has; None also where there is no target.
    without : dict
        Column to the share that would be unique by the others of `columns`; empty where hardly any record is unique.
    alone : dict
        Column to the share that it makes unique by itself, for those of `columns` that do.
    rounded_target : dict
        Significant digits to the share of records with a unique target if it was rounded to so many.
    """

    columns: tuple[str, ...]
    share: float | None
    share_by_all: float | None
    target: float | None = None
    without: dict[str, float | None] = field(default_factory=dict)
    alone: dict[str, float] = field(default_factory=dict)
    rounded_target: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Audit:
    """The results of an audit.

    Attributes
    ----------
    name : str
        What was audited: the name of the file.
    n_records, n_released, n_suppressed : int or None
        Records before and after; a number of suppressed records below `smallest_shown` is None.
    method : dict
        Technique, parameters and seed, as the policy names them.
    guarantees : tuple of str
        What was recounted on the release, in plain words.
    gate : tuple of GateCheck
        Empty where nothing was asked for.
    uniqueness : Uniqueness or None
        How many released records are unique by columns that no group protects.
    certificate : dict or None
        What any attacker can learn at most, as `Certificate.to_dict` gives it; None where nothing was certified.
    advice : tuple of str
        What to try where the gate failed.
    utility : UtilityResult or None
    sizes : GroupSizes
    columns : tuple of ColumnChange
    risks : tuple of Risk
    curve : tuple of Point
    notes : tuple of str
        What the reader should know of this audit.
    titles : dict
        Column to its title for readers; columns without one go by their names.
    versions : dict
        Of what made it.
    fingerprint : str
        SHA-256 of the original table's file or content.
    smallest_shown : int
        Counts below this are blurred.
    seconds : float
    context : dict
        Purpose, recipient, access and the like, as the policy says them.
    made_at : str
        Date and time in UTC.
    policy_sha256 : str
        SHA-256 of the policy file, or of the settings of a policy made in Python.
    outputs : dict
        Role to the name and the SHA-256 of each file that the audit is about: ``release``, ``artifact`` and others.
    reidentification : Reidentification or None
        Risks of re-identification before and after.
    privacy : dict or None
        The promise of differential privacy: epsilon, delta and what it rests on; None for other releases.
    earlier : tuple of EarlierRelease
        Earlier releases of the same people that this one was compared with.
    grouped_by : tuple of str
        Columns of the release that form its groups, by their released names.

    Examples
    --------
    >>> import pandas as pd, sfumato
    >>> people = pd.DataFrame({"age": [30, 31, 32, 33] * 5, "ill": ["no", "yes"] * 10})
    >>> found = sfumato.audit(people, people.assign(age=31), sensitive=["ill"])
    >>> found.sizes.smallest, [change.name for change in found.columns]
    (20, ['age', 'ill'])
    >>> again = sfumato.Audit.from_dict(found.to_dict())
    >>> again.to_json() == found.to_json(), again.to_html().startswith("<!DOCTYPE html>")
    (True, True)
    """

    name: str
    n_records: int
    n_released: int | None
    n_suppressed: int | None
    method: Mapping[str, Any]
    guarantees: tuple[str, ...]
    gate: tuple[GateCheck, ...]
    utility: UtilityResult | None
    sizes: GroupSizes
    columns: tuple[ColumnChange, ...]
    risks: tuple[Risk, ...]
    curve: tuple[Point, ...] = ()
    uniqueness: Uniqueness | None = None
    certificate: Mapping[str, Any] | None = None
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    smallest_shown: int = 10
    seconds: float = 0.0
    context: Mapping[str, Any] = field(default_factory=dict)
    made_at: str = ""
    policy_sha256: str = ""
    outputs: Mapping[str, FileHash] = field(default_factory=dict)
    reidentification: Reidentification | None = None
    privacy: Mapping[str, Any] | None = None
    earlier: tuple[EarlierRelease, ...] = ()
    grouped_by: tuple[str, ...] = ()

    @property
    def passed(self) -> bool | None:
        """Whether every condition of the gate is met; None where there is no gate."""
        return all(check.passed for check in self.gate) if self.gate else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and text; null for masked values and for what is not a number."""
        document: dict[str, Any] = plain(self)
        for name in OPTIONAL:
            if not document[name]:
                del document[name]
        return {"version": VERSION, "passed": self.passed, **document}

    def to_json(self) -> str:
        """Return the audit as JSON, as ``audit.json`` holds it."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Audit:
        """Rebuild an audit from `to_dict`'s document; raise InputError for any other document."""
        from sfumato.report.schema import read_audit

        return read_audit(document)

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        from sfumato.report.page import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        from sfumato.report.markdown import to_markdown

        return to_markdown(self)

    def write(self, path: str | Path) -> None:
        """Write the report or the data to a file: .html, .md or .json."""
        path = Path(path)
        words = {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json}.get(path.suffix)
        if words is None:
            raise ParameterError(f"{path.name!r}: expected a name that ends in .html, .md or .json. Rename it.")
        path.write_text(words(), encoding="utf-8")

    def show(self) -> None:
        """Open the report in the browser, from a file that only this user can read."""
        descriptor, name = tempfile.mkstemp(prefix="sfumato-", suffix=".html")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(self.to_html())
        webbrowser.open(Path(name).as_uri())

    def _repr_html_(self) -> str:
        """Show the report in a notebook, in a frame of its own so that the page's styles stay in it."""
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe title="audit" sandbox="" style="width:100%;height:40em;border:0" srcdoc="{page}"></iframe>'
