# SPDX-License-Identifier: Apache-2.0
"""Questionnaires of authorities and standards: what an audit measured is filled in, the rest is left to people.

A questionnaire is one file in the folder ``questionnaires``: questions in our own words, each with the paragraph of its
source and the names of what is filled in. Nothing here decides whether a rule is met: a filled-in line is evidence, and
every question keeps a line for a person's answer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from sfumato.errors import ParameterError, named
from sfumato.report import wording
from sfumato.report.data import Audit, Risk

NAMES = ("edpb", "iso27559", "ema", "hipaa", "ehds", "nist")
"""All questionnaires, by the names of their files."""


_MOST_COLUMNS = 60  # that are listed one by one


@dataclass(frozen=True)
class Filled:
    """A line that is filled in.

    Attributes
    ----------
    basis : {"measured", "policy"}
        Whether it was measured, or only stated in the policy.
    text : str
    """

    basis: Literal["measured", "policy"]
    text: str


@dataclass(frozen=True)
class Question:
    """A question, the paragraph of its source, and what could be filled in; the answer is a person's."""

    where: str
    text: str
    filled: tuple[Filled, ...] = ()


@dataclass(frozen=True)
class Questionnaire:
    """One questionnaire, filled in from an audit."""

    name: str
    title: str
    sources: tuple[str, ...]
    note: str
    questions: tuple[Question, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists and text, with an empty answer for each question."""
        return {
            "name": self.name,
            "title": self.title,
            "sources": list(self.sources),
            "note": self.note,
            "questions": [
                {
                    "where": question.where,
                    "text": question.text,
                    "filled": [{"basis": line.basis, "text": line.text} for line in question.filled],
                    "answer": "",
                }
                for question in self.questions
            ],
        }


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of questionnaires, each once, in their usual order; raise ParameterError for another name."""
    for name in names:
        if name not in NAMES:
            raise ParameterError(f"{named('questionnaires', [name])}: expected some of {', '.join(NAMES)}.")
    return tuple(name for name in NAMES if name in names)


def fill_in(name: str, audit: Audit) -> Questionnaire:
    """Return a questionnaire with what an audit says filled in."""
    file = files("sfumato.report").joinpath("questionnaires", f"{name}.toml")
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    questions = tuple(
        Question(one["where"], one["text"], tuple(line for key in one.get("filled", ()) for line in _lines(key, audit)))
        for one in document["questions"]
    )
    return Questionnaire(name, document["title"], tuple(document["sources"]), document["note"], questions)


def _lines(key: str, audit: Audit) -> list[Filled]:
    if key in _STATED:
        said = audit.context.get(_STATED[key])
        return [] if said is None else [Filled("policy", f"{_STATED[key].replace('_', ' ')}: {wording.shown(said)}")]
    return [Filled("measured", sentence) for sentence in _MEASURED[key](audit)]


# -- what is filled in ---------------------------------------------------------------------------------------------

_STATED = {
    "purpose": "purpose",
    "recipient": "recipient",
    "access": "access",
    "population": "population",
    "reviewer": "reviewer",
    "review": "review_by",
    "threshold": "threshold",
}


def _records(audit: Audit) -> list[str]:
    few = f"fewer than {audit.smallest_shown}"
    suppressed = few if audit.n_suppressed is None else f"{audit.n_suppressed:,}"
    return [f"Of {audit.n_records:,} records, {suppressed} were suppressed."]


def _risk(audit: Audit) -> list[str]:
    found = audit.reidentification
    if found is None:
        return []
    before, after = (profile.attackers[0] for profile in (found.before, found.after))
    said = [
        f"If an attacker knows that a person is in the table (prosecutor), the chance to find the right record is at "
        f"most {after.maximum:.3f} and {after.average:.3f} on average; before, {before.maximum:.3f} and "
        f"{before.average:.3f}."
    ]
    if found.threshold is not None:
        share = after.above[f"{found.threshold:g}"]
        shown = f"fewer than {audit.smallest_shown}" if share is None else f"{share:.1%}"
        said.append(f"Of the {found.counted}, {shown} have a chance above the threshold {found.threshold:g}.")
    return said


def _population_risk(audit: Audit) -> list[str]:
    found = audit.reidentification
    if found is None:
        return []
    journalist, marketer = found.after.attackers[1:]
    return [
        f"If an attacker knows only the population, the chance is at most {journalist.maximum:.3f} (journalist); of an "
        f"attack on all records at once, {marketer.average:.1%} are found on average (marketer).",
        wording.reidentification(found)[1],
    ]


def _attacked(risks: Sequence[Risk]) -> list[str]:
    return [
        f"{risk.title} (knows {risk.knowledge}): success {risk.result['rate']:.3f}, 95% CI "
        f"[{risk.result['interval'][0]:.3f}, {risk.result['interval'][1]:.3f}], reference {risk.without:.3f}; "
        f"{wording.attack_verdict(risk)}."
        for risk in risks
    ] or ["No attack of this kind was run."]


def _of_risk(name: str) -> Callable[[Audit], list[str]]:
    return lambda audit: _attacked([risk for risk in audit.risks if risk.eu_risk == name])


def _certificate(audit: Audit) -> list[str]:
    if audit.certificate is None:
        return []
    return [
        f"No attacker guesses “{wording.titled(audit, name)}” right more often than {bound['upper']:.3f} on average "
        f"({audit.certificate['confidence']:.0%} confidence); without the release, {bound['baseline']:.3f}."
        for name, bound in audit.certificate["secrets"].items()
    ]


def _diversity(audit: Audit) -> list[str]:
    return [f"{check.sentence[0].upper()}{check.sentence[1:]}." for check in audit.gate if check.name == "min_l"]


def _epsilon(audit: Audit) -> list[str]:
    promise = audit.privacy
    if promise is None:
        return []
    unit = "one record" if promise["unit"] is None else f"one person of the column “{promise['unit']}”"
    return [
        f"Epsilon {promise['epsilon']:.4g}, delta {promise['delta']:.2g}, for {unit}; neighbors: "
        f"{promise['adjacency']}; {promise['mechanism']}. About a person who is as likely in the table as not, no "
        f"membership attack is right more often than {promise['membership_limit']:.3f}."
    ]


def _ledger(audit: Audit) -> list[str]:
    total = (audit.privacy or {}).get("ledger")
    if total is None:
        return []
    return [f"{total['n_releases']} releases: epsilon {total['epsilon']:.4g}, delta {total['delta']:.2g} in all."]


def _columns(audit: Audit) -> list[str]:
    shown = [f"{column.name} ({column.role}): {column.sentence}" for column in audit.columns[:_MOST_COLUMNS]]
    more = len(audit.columns) - len(shown)
    return [*shown, *([f"{more:,} more columns are in audit.json."] if more else [])]


def _released_columns(audit: Audit) -> list[str]:
    released = [column.name for column in audit.columns if column.n_values_after is not None or column.loss is not None]
    return [", ".join(released)] if released else []


def _utility(audit: Audit) -> list[str]:
    return [] if audit.utility is None else [wording.utility_sentence(audit.utility)]


def _gate(audit: Audit) -> list[str]:
    return [f"{wording.verdict(audit)}.", *(f"{check.name}: {check.sentence}" for check in audit.gate)]


def _hashes(audit: Audit) -> list[str]:
    return [f"{name}: {value}" for name, value in wording.parameters(audit) if name.startswith("SHA-256")]


def _software(audit: Audit) -> list[str]:
    return [", ".join(f"{name} {version}" for name, version in audit.versions.items())]


_MEASURED: dict[str, Callable[[Audit], list[str]]] = {
    "records": _records,
    "groups": lambda audit: [wording.sizes_sentence(audit.sizes)],
    "risk": _risk,
    "population_risk": _population_risk,
    "singling_out": _of_risk("singling out"),
    "linkability": _of_risk("linkability"),
    "inference": _of_risk("inference"),
    "attacks": lambda audit: _attacked(audit.risks),
    "uniqueness": wording.uniqueness,
    "certificate": _certificate,
    "diversity": _diversity,
    "technique": wording.what_was_done,
    "guarantees": lambda audit: [f"{sentence[0].upper()}{sentence[1:]}." for sentence in audit.guarantees],
    "epsilon": _epsilon,
    "ledger": _ledger,
    "rests_on": lambda audit: list((audit.privacy or {}).get("rests_on", ())),
    "columns": _columns,
    "released_columns": _released_columns,
    "utility": _utility,
    "limits": wording.limits,
    "earlier": wording.earlier,
    "gate": _gate,
    "hashes": _hashes,
    "made": lambda audit: [f"Measured at {audit.made_at}, on the file that was written."] if audit.made_at else [],
    "software": _software,
}
