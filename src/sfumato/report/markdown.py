# SPDX-License-Identifier: Apache-2.0
"""An audit as Markdown, for pull requests and wikis: the same words and numbers as the page, without its pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sfumato.report import wording
from sfumato.report.data import Audit


def to_markdown(audit: Audit) -> str:
    """Return the report as Markdown."""
    parts = [
        f"# {cell_text(wording.title(audit))}",
        cell_text(wording.lead(audit)),
        f"**{cell_text(wording.verdict(audit))}**",
    ]
    parts += [cell_text(sentence) for sentence in wording.uniqueness(audit)]
    if audit.gate:
        rows = [[check.name, "yes" if check.passed else "**no**", cell_text(check.sentence)] for check in audit.gate]
        parts.append(markdown_table(["condition", "met", "measured"], rows))
    if audit.advice:
        parts += ["### What to try", "\n".join(f"- {cell_text(sentence)}" for sentence in audit.advice)]
    parts += ["## Method", *(cell_text(sentence) for sentence in wording.what_was_done(audit))]
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
        parts += [
            cell_text(wording.utility_sentence(utility)),
            markdown_table([cell_text(utility.model), utility.metric], rows),
        ]
        if said := wording.parameters_sentence(utility):
            parts.append(cell_text(said))
        if utility.subgroups:
            parts.append(
                markdown_table(
                    ["subgroup", "test records", "raw", "release"],
                    [
                        [
                            cell_text(wording.subgroup(audit, g)),
                            f"{g.n_records:,}",
                            f"{g.raw:.4f}",
                            f"{g.protected:.4f}",
                        ]
                        for g in utility.subgroups
                    ],
                )
            )
        parts += [cell_text(sentence) for sentence in utility.notes]
    if audit.context:
        rows = [[cell_text(name), cell_text(value)] for name, value in wording.context(audit)]
        parts += ["## Context", markdown_table(["", "as the policy says"], rows)]
        parts += [cell_text(sentence) for sentence in wording.precedents(audit)]
    parts += ["## Group sizes", *_sizes(audit)]
    if audit.reidentification is not None:
        parts += ["## Re-identification risk", markdown_table(*wording.reidentification_table(audit.reidentification))]
        parts += [cell_text(sentence) for sentence in wording.reidentification(audit.reidentification)]
    parts.append("## Attacks")
    if audit.risks:
        rows = [
            [
                cell_text(risk.title),
                risk.eu_risk,
                f"{risk.result['rate']:.3f}",
                f"[{risk.result['interval'][0]:.3f}, {risk.result['interval'][1]:.3f}]",
                f"{risk.result['baseline']:.3f}",
                _or_dash(risk.result["control"]),
                wording.attack_verdict(risk),
            ]
            for risk in audit.risks
        ]
        parts.append(markdown_table(["attack", "EU risk", "rate", "95% CI", "baseline", "control", "verdict"], rows))
        if any(risk.result["verdict"] == "failed attack" for risk in audit.risks):
            parts.append(cell_text(wording.BELOW_BASELINE))
        parts.append("\n".join(f"- {cell_text(f'{risk.title}: {risk.sentence}')}" for risk in audit.risks))
        names, attackers = wording.attackers_table(audit)
        parts.append(markdown_table(names, [list(map(cell_text, row)) for row in attackers]))
    else:
        parts.append("No attack was run.")
    if audit.certificate is not None:
        names, rows = wording.certificate_table(audit)
        parts += ["## Any attacker", cell_text(wording.certificate_sentence(audit.certificate))]
        parts.append(markdown_table(names, [[_named(audit, row[0]), *row[1:]] for row in rows]))
        parts.append("\n".join(f"- {cell_text(sentence)}" for sentence in audit.certificate["assumptions"]))
    parts.append("## Columns")
    rows = [
        [_named(audit, c.name), c.role, "" if c.loss is None else f"{c.loss:.1%}", cell_text(c.sentence)]
        for c in audit.columns
    ]
    parts.append(markdown_table(["column", "role", "information loss", "change"], rows))
    if audit.curve:
        rows = [
            [cell_text(p.label), f"{p.at:g}", f"{p.score:.4f}", _or_dash(p.attack), _or_dash(p.baseline)]
            for p in audit.curve
        ]
        names = ["curve", audit.curve[0].by, "score", "attack", "baseline"]
        parts += ["## Privacy-utility trade-off", markdown_table(names, rows)]
    parts.append("## Limits of this protection")
    parts.append("\n".join(f"- {cell_text(sentence)}" for sentence in [*wording.limits(audit), *audit.notes]))
    signed = [[role, cell_text(name), "", ""] for role, name in wording.signatories(audit)]
    parts += ["## Sign-off", wording.SIGN_OFF, markdown_table(["role", "name", "date", "signature"], signed)]
    parts.append("## Reproducibility")
    parts.append(
        markdown_table(["setting", "value"], [[cell_text(a), cell_text(b)] for a, b in wording.parameters(audit)])
    )
    return "\n\n".join(parts) + "\n"


def _sizes(audit: Audit) -> list[str]:
    labels = wording.size_labels(audit.sizes.edges)
    rows = [[label, f"{share:.1%}"] for label, share in zip(labels, audit.sizes.shares, strict=True)]
    return [wording.sizes_sentence(audit.sizes), markdown_table(["records in the group", "share of the records"], rows)]


def _named(audit: Audit, column: str) -> str:
    title = wording.titled(audit, column)
    return cell_text(column) if title == column else f"{cell_text(title)} ({cell_text(column)})"


def _or_dash(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"


def markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def cell_text(text: str) -> str:
    """Escape text for a cell of a Markdown table."""
    plain = re.sub(r"[\x00-\x1f\x7f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", " ", text)
    return re.sub(r"([\\`*_{}\[\]<>#|!~])", r"\\\1", plain).strip()
