# SPDX-License-Identifier: Apache-2.0
"""An audit as Markdown, for pull requests and wikis: the same words and numbers as the page, without its pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sfumato.report import wording
from sfumato.report.data import Audit


def to_markdown(audit: Audit) -> str:
    """Return the report as Markdown."""
    parts = [f"# {_cell(wording.title(audit))}", _cell(wording.lead(audit)), f"**{_cell(wording.verdict(audit))}**"]
    parts += [_cell(sentence) for sentence in wording.uniqueness(audit)]
    if audit.gate:
        rows = [[check.name, "yes" if check.passed else "**no**", _cell(check.sentence)] for check in audit.gate]
        parts.append(_table(["condition", "met", "measured"], rows))
    if audit.advice:
        parts += ["### What to try", "\n".join(f"- {_cell(sentence)}" for sentence in audit.advice)]
    parts += ["## Method", *(_cell(sentence) for sentence in wording.what_was_done(audit))]
    parts.append("## Cost for the model")
    utility = audit.utility
    if utility is None:
        parts.append("No model was measured.")
    else:
        rows = [["raw records", f"{utility.raw:.4f}"]]
        if utility.protected is not None:
            rows.append(["release", f"{utility.protected:.4f}"])
        rows.append(["release, transformed test records", f"{utility.transformed:.4f}"])
        if utility.same_answer is not None:
            rows.append(["majority-class baseline", f"{utility.same_answer:.4f}"])
        parts += [_cell(wording.utility_sentence(utility)), _table([_cell(utility.model), utility.metric], rows)]
        if said := wording.parameters_sentence(utility):
            parts.append(_cell(said))
        if utility.subgroups:
            parts.append(
                _table(
                    ["subgroup", "test records", "raw", "release"],
                    [
                        [_cell(wording.subgroup(audit, g)), f"{g.n_records:,}", f"{g.raw:.4f}", f"{g.protected:.4f}"]
                        for g in utility.subgroups
                    ],
                )
            )
        parts += [_cell(sentence) for sentence in utility.notes]
    if audit.context:
        rows = [[_cell(name), _cell(value)] for name, value in wording.context(audit)]
        parts += ["## Context", _table(["", "as the policy says"], rows)]
        parts += [_cell(sentence) for sentence in wording.precedents(audit)]
    parts += ["## Group sizes", *_sizes(audit)]
    if audit.reidentification is not None:
        parts += ["## Re-identification risk", _table(*wording.reidentification_table(audit.reidentification))]
        parts += [_cell(sentence) for sentence in wording.reidentification(audit.reidentification)]
    parts.append("## Attacks")
    if audit.risks:
        rows = [
            [
                _cell(risk.title),
                risk.eu_risk,
                f"{risk.result['rate']:.3f}",
                f"[{risk.result['interval'][0]:.3f}, {risk.result['interval'][1]:.3f}]",
                f"{risk.result['baseline']:.3f}",
                _or_dash(risk.result["control"]),
                wording.attack_verdict(risk),
            ]
            for risk in audit.risks
        ]
        parts.append(_table(["attack", "EU risk", "rate", "95% CI", "baseline", "control", "verdict"], rows))
        if any(risk.result["verdict"] == "failed attack" for risk in audit.risks):
            parts.append(_cell(wording.BELOW_BASELINE))
        parts.append("\n".join(f"- {_cell(f'{risk.title}: {risk.sentence}')}" for risk in audit.risks))
        names, attackers = wording.attackers_table(audit)
        parts.append(_table(names, [list(map(_cell, row)) for row in attackers]))
    else:
        parts.append("No attack was run.")
    if audit.certificate is not None:
        names, rows = wording.certificate_table(audit)
        parts += ["## Any attacker", _cell(wording.certificate_sentence(audit.certificate))]
        parts.append(_table(names, [[_named(audit, row[0]), *row[1:]] for row in rows]))
        parts.append("\n".join(f"- {_cell(sentence)}" for sentence in audit.certificate["assumptions"]))
    parts.append("## Columns")
    rows = [
        [_named(audit, c.name), c.role, "" if c.loss is None else f"{c.loss:.1%}", _cell(c.sentence)]
        for c in audit.columns
    ]
    parts.append(_table(["column", "role", "information loss", "change"], rows))
    if audit.curve:
        rows = [
            [_cell(p.label), f"{p.at:g}", f"{p.score:.4f}", _or_dash(p.attack), _or_dash(p.baseline)]
            for p in audit.curve
        ]
        names = ["curve", audit.curve[0].by, "score", "attack", "baseline"]
        parts += ["## Privacy-utility trade-off", _table(names, rows)]
    parts.append("## Limits of this protection")
    parts.append("\n".join(f"- {_cell(sentence)}" for sentence in [*wording.limits(audit), *audit.notes]))
    signed = [[role, _cell(name), "", ""] for role, name in wording.signatories(audit)]
    parts += ["## Sign-off", wording.SIGN_OFF, _table(["role", "name", "date", "signature"], signed)]
    parts.append("## Reproducibility")
    parts.append(_table(["setting", "value"], [[_cell(a), _cell(b)] for a, b in wording.parameters(audit)]))
    return "\n\n".join(parts) + "\n"


def _sizes(audit: Audit) -> list[str]:
    labels = wording.size_labels(audit.sizes.edges)
    rows = [[label, f"{share:.1%}"] for label, share in zip(labels, audit.sizes.shares, strict=True)]
    return [wording.sizes_sentence(audit.sizes), _table(["records in the group", "share of the records"], rows)]


def _named(audit: Audit, column: str) -> str:
    title = wording.titled(audit, column)
    return _cell(column) if title == column else f"{_cell(title)} ({_cell(column)})"


def _or_dash(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _cell(text: str) -> str:
    """Escape text for a cell of a Markdown table."""
    plain = re.sub(r"[\x00-\x1f\x7f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", " ", text)
    return re.sub(r"([\\`*_{}\[\]<>#|!~])", r"\\\1", plain).strip()
