# SPDX-License-Identifier: Apache-2.0
"""An audit as one HTML page: no scripts, no network, readable on paper and by a screen reader, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.report import charts, wording
from sfumato.report.charts import safe
from sfumato.report.data import Audit, ColumnChange, Point, UtilityResult
from sfumato.report.html_parts import bullets as _bullets
from sfumato.report.html_parts import definitions, whole_page
from sfumato.report.html_parts import paragraphs as _paragraphs
from sfumato.report.html_parts import section as _section
from sfumato.report.html_parts import table as _table

_MOST_COLUMNS = 200
_LEAST_SPAN_OF_ATTACKS = 0.1


def to_html(audit: Audit) -> str:
    """Return the whole page as text."""
    sections = [
        _verdict(audit),
        _context(audit),
        _section("Method", _paragraphs(wording.what_was_done(audit))),
        _utility(audit),
        _sizes(audit),
        _reidentification(audit),
        _risks(audit),
        _certificate(audit),
        _columns(audit),
        _curve(audit.curve),
        _section("Limits of this protection", _bullets([*wording.limits(audit), *audit.notes])),
        sign_off(audit),
        _method(audit),
    ]
    version = audit.versions.get("sfumato", "")
    return whole_page(
        title=wording.title(audit),
        lead=wording.lead(audit),
        content="\n".join(part for part in sections if part),
        footer=f"Made by sfumato {version}. audit.json holds the same numbers. This page shows no value of a single "
        f"record; counts below {audit.smallest_shown} are masked.",
    )


def _verdict(audit: Audit) -> str:
    kind = wording.verdict_kind(audit)
    content = f'<p class="verdict">{safe(wording.verdict(audit))}</p>{_paragraphs(wording.uniqueness(audit))}'
    if audit.gate:
        rows = [
            [
                f'<span class="whole">{safe(check.name).replace("_", "_<wbr>")}</span>',
                f'<span class="whole">{_mark(check.passed)}</span>',
                safe(check.sentence),
            ]
            for check in audit.gate
        ]
        content += _table("Conditions of the gate", ["condition", "met", "measured"], rows, words=2)
    if audit.advice:
        content += f"<h3>What to try</h3>{_bullets(audit.advice)}"
    return _section("Verdict of the gate", content, css_class=kind)


def _mark(is_met: bool) -> str:
    return '<span class="ok">✓ yes</span>' if is_met else '<span class="not-ok">✗ no</span>'


def _utility(audit: Audit) -> str:
    utility = audit.utility
    if utility is None:
        return _section("Cost for the model", "<p>No model was measured.</p>")
    rows = [["trained on raw records", _score(utility, utility.raw), ""]]
    if utility.protected is not None:
        rows.append(
            ["trained on the release", _score(utility, utility.protected), _difference(utility, utility.protected)]
        )
    rows.append(
        [
            "... and tested on transformed records",
            _score(utility, utility.transformed),
            _difference(utility, utility.transformed),
        ]
    )
    if utility.same_answer is not None:
        rows.append(["majority-class baseline", _score(utility, utility.same_answer), ""])
    caption = (
        f"{utility.metric} of {utility.model}, trained on {utility.n_train:,} and tested on {utility.n_test:,} "
        "held-out records"
    )
    content = f"<p>{safe(wording.utility_sentence(utility))}</p>"
    content += _table(caption, ["model", utility.metric, "change"], rows, numbers=(1, 2))
    if said := wording.parameters_sentence(utility):
        content += f"<p>{safe(said)}</p>"
    if utility.subgroups:
        content += "<h3>Effect by subgroup</h3>"
        drawn = [
            (wording.subgroup(audit, group), group.protected - group.raw, group.interval) for group in utility.subgroups
        ]
        named = "Change of accuracy by subgroup, in percentage points: " + "; ".join(
            f"{label} {100 * change:+.1f}" for label, change, _ in drawn
        )
        content += charts.changes(drawn, named)
        content += '<p class="quiet">Percentage points lost (left of the line) or gained (right), with 95% CI.</p>'
        content += _table(
            "Accuracy by subgroup",
            ["subgroup", "test records", "raw", "release", "change (pp)"],
            [
                [
                    safe(wording.subgroup(audit, group)),
                    f"{group.n_records:,}",
                    _score(utility, group.raw),
                    _score(utility, group.protected),
                    f"{100 * (group.protected - group.raw):+.2f}",
                ]
                for group in utility.subgroups
            ],
            numbers=(1, 2, 3, 4),
        )
    content += _paragraphs(utility.notes)
    return _section("Cost for the model", content, css_class="long")


def _score(utility: UtilityResult, value: float) -> str:
    return f"{value:.2%}" if utility.metric == "accuracy" else f"{value:.4f}"


def _difference(utility: UtilityResult, value: float) -> str:
    change = value - utility.raw
    return f"{100 * change:+.2f} pp" if utility.metric == "accuracy" else f"{change:+.4f}"


def _sizes(audit: Audit) -> str:
    sizes = audit.sizes
    labels = wording.size_labels(sizes.edges)
    said = "; ".join(f"{label}: {share:.1%}" for label, share in zip(labels, sizes.shares, strict=True))
    content = f"<p>{safe(wording.sizes_sentence(sizes))}</p>"
    content += charts.bars(
        labels, sizes.shares, f"Share of the records by the size of their group. {said}", axis="records in the group"
    )
    return _section("Group sizes", content)


def _risks(audit: Audit) -> str:
    if not audit.risks:
        return _section("Attacks", "<p>No attack was run.</p>")
    drawn = [
        (
            risk.title,
            float(risk.result["rate"]),
            (float(risk.result["interval"][0]), float(risk.result["interval"][1])),
            risk.without,
            risk.result["verdict"] == "stronger than baseline",
        )
        for risk in audit.risks
    ]
    said = "; ".join(f"{label}: {rate:.2f}, reference rate {base:.2f}" for label, rate, _, base, _ in drawn)
    content = charts.rates(drawn, f"Attacks on one scale from 0 to 1. {said}")
    content += (
        '<p class="quiet">Success rate of each attack: a dot with its 95% CI. The vertical line is the reference rate: '
        "the baseline (an attacker without the release) or the control (the same attack on people outside it), "
        "whichever is higher. Red: significantly above it, or detects members at 1% or fewer false positives.</p>"
    )
    rows = [
        [
            safe(risk.title),
            safe(risk.eu_risk),
            f"{risk.result['rate']:.3f}",
            f"[{risk.result['interval'][0]:.3f}, {risk.result['interval'][1]:.3f}]",
            f"{risk.result['baseline']:.3f}",
            "-" if risk.result["control"] is None else f"{risk.result['control']:.3f}",
            safe(wording.attack_verdict(risk)),
        ]
        for risk in audit.risks
    ]
    content += _table(
        "Attacks, and their baseline and control",
        ["attack", "EU risk", "rate", "95% CI", "baseline", "control", "verdict"],
        rows,
        numbers=(2, 3, 4, 5),
    )
    if any(risk.result["verdict"] == "failed attack" for risk in audit.risks):
        content += f'<p class="quiet">{safe(wording.BELOW_BASELINE)}</p>'
    content += _bullets([f"{risk.title}: {risk.sentence}" for risk in audit.risks])
    names, rows = wording.attackers_table(audit)
    attackers = _table("What each attacker knows and sees", names, [list(map(safe, row)) for row in rows], numbers=(3,))
    content += f'<div class="breaks">{attackers}</div>'
    if any(risk.worst is not None for risk in audit.risks):
        content += f'<p class="quiet">{safe(wording.WORST_SUBGROUP)}</p>'
    return _section("Attacks", content, css_class="long")


def _context(audit: Audit) -> str:
    facts = definitions(wording.context(audit))
    return _section("Context", facts + _paragraphs(wording.precedents(audit))) if facts else ""


def _reidentification(audit: Audit) -> str:
    if audit.reidentification is None:
        return ""
    names, rows = wording.reidentification_table(audit.reidentification)
    cells = [list(map(safe, row)) for row in rows]
    content = _table("Chance to find the right record", names, cells, numbers=tuple(range(1, len(names))))
    content += _paragraphs(wording.reidentification(audit.reidentification))
    return _section("Re-identification risk", content)


def sign_off(audit: Audit) -> str:
    """Return lines to sign: people decide, not the page."""
    names = ["role", "name", "date", "signature"]
    rows = [[safe(role), safe(name) or "&nbsp;", "&nbsp;", "&nbsp;"] for role, name in wording.signatories(audit)]
    content = f"<p>{safe(wording.SIGN_OFF)}</p>{_table('Signatures', names, rows)}"
    return _section("Sign-off", content, css_class="sign-off")


def _certificate(audit: Audit) -> str:
    if audit.certificate is None:
        return ""
    names, rows = wording.certificate_table(audit)
    content = f"<p>{safe(wording.certificate_sentence(audit.certificate))}</p>"
    cells = [[_named(audit, row[0]), *map(safe, row[1:])] for row in rows]
    content += _table("What any attacker can guess", names, cells, numbers=tuple(range(1, len(names))))
    content += _bullets(audit.certificate["assumptions"])
    return _section("Any attacker", content)


def _columns(audit: Audit) -> str:
    shown = audit.columns[:_MOST_COLUMNS]
    rows = [
        [
            _named(audit, column.name),
            safe(column.role),
            "" if column.loss is None else f"{column.loss:.1%}",
            _spark(column),
            safe(column.sentence),
        ]
        for column in shown
    ]
    content = _table(
        "Every column before (bars) and after (line), and its information loss",
        ["column", "role", "information loss", "before and after", "change"],
        rows,
        numbers=(2,),
        words=4,
    )
    if len(audit.columns) > len(shown):
        content += f"<p>{len(audit.columns) - len(shown):,} more columns are in audit.json.</p>"
    return _section("Columns", content, css_class="long")


def _named(audit: Audit, column: str) -> str:
    """Return a column's title with its name below, or the name if it has no title."""
    if (title := wording.titled(audit, column)) == column:
        return safe(column)
    return f'{safe(title)}<br><span class="quiet">{safe(column)}</span>'


def _spark(column: ColumnChange) -> str:
    if not column.before or len(column.before) < 2:
        return '<span class="quiet">-</span>'
    moved = 0.5 * sum(abs(a - b) for a, b in zip(column.before, column.after, strict=False)) if column.after else None
    words = "The distribution before" + (
        f" and after; {moved:.0%} of the records changed class"
        if moved is not None
        else "; it was dropped or became labels"
    )
    return charts.before_and_after(column.before, column.after, words)


# What each choice is varied over: the name of the page, of the axis, what the attacker does, and what the ends mean.
_CHOICES = {
    "k": (
        "Choosing k",
        "k",
        "success of the loss-threshold attack",
        "k = 1: raw records. Guessing succeeds in half of the cases.",
    ),
    "alpha": (
        "Choosing alpha",
        "alpha: 0 for utility alone, 1 for privacy alone",
        "personal values reconstructed",
        "Nothing collected: an attacker guesses the most frequent value.",
    ),
    "leaves": (
        "Choosing the number of leaves",
        "leaves of the tree",
        "personal values reconstructed",
        "Nothing collected: an attacker guesses the most frequent value.",
    ),
}


def curve_page(points: Sequence[Point], *, name: str) -> str:
    """Return a page with the trade-off of k, method and model, or of alpha and leaves."""
    title, _, _, footer = _CHOICES[points[0].by if points else "k"]
    return whole_page(
        title=f"{title} for {name}",
        lead="One split of the records, protected in different ways; scores are of held-out records.",
        content=_curve(points),
        footer=footer,
    )


def _curve(points: Sequence[Point]) -> str:
    if not points:
        return ""
    by = points[0].by
    _, axis, attacked, _ = _CHOICES[by]
    lines: dict[str, list[tuple[float, float]]] = {}
    attacks: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        lines.setdefault(point.label, []).append((point.at, point.score))
        if point.attack is not None:
            attacks.setdefault(point.label, []).append((point.at, point.attack))
    shape: dict[str, Any] = {"x_axis": axis, "is_logarithmic": by != "alpha", "x_values": [p.at for p in points]}
    shape["numbers"] = {label: number for number, label in enumerate(lines)}
    content = charts.curve(lines, f"The model's score against {by}", y_axis="score of the model", **shape)
    if attacks:
        baseline = next((point.baseline for point in points if point.baseline is not None), None)
        content += charts.curve(
            attacks,
            f"The attack's success against {by}",
            y_axis=attacked,
            least_span=_LEAST_SPAN_OF_ATTACKS,
            around=baseline,
            **shape,
        )
    is_certified = any(point.certified is not None for point in points)
    rows = [
        [
            safe(point.label),
            f"{point.at:.3g}" if by == "alpha" else f"{point.at:,.0f}",
            f"{point.score:.4f}",
            "-" if point.attack is None else f"{point.attack:.3f}",
            "-" if point.baseline is None else f"{point.baseline:.3f}",
            *([] if not is_certified else ["-" if point.certified is None else f"{point.certified:.3f}"]),
        ]
        for point in points
    ]
    names = ["curve", by, "score", "attack", "baseline", *([wording.ANY_ATTACKER] if is_certified else [])]
    content += _table("All choices", names, rows, numbers=tuple(range(1, len(names))))
    return _section("Privacy-utility trade-off", content, css_class="long")


def _method(audit: Audit) -> str:
    terms = wording.terms()
    rows = [[safe(t["ours"]), safe(t["opinion"]), safe(t["iso"]), safe(t["dpia"])] for t in terms["techniques"]]
    risks = [[safe(r["name"]), safe(r["meaning"]), safe(r["section"])] for r in terms["risks"]]
    sources = " ".join(f"{source}." for source in terms["sources"].values())
    return _section(
        "Reproducibility and terms",
        definitions(wording.parameters(audit))
        + _table("The three risks of the EU opinion", ["risk", "meaning", "where"], risks)
        + _table("Techniques and their equivalents", ["here", "EU opinion", "ISO/IEC 20889", "DPIA"], rows)
        + f'<p class="quiet">Table of terms, version {safe(terms["version"])}. {safe(sources)}</p>',
        css_class="long",
    )
