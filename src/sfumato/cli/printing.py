# SPDX-License-Identifier: Apache-2.0
"""Tables that several commands print: the roles of columns, the cost for a model, attacks and the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.auditing.utility import Utility
    from sfumato.cli.console import Console
    from sfumato.files.verified_output import Recount
    from sfumato.report.data import Audit


def show_roles(console: Console, reasons: Mapping[tuple[str, str], Sequence[str]]) -> None:
    """Print the role of each column, and the reason."""
    from sfumato.files.table_file import listed

    console.heading("columns")
    console.facts(
        [
            (role, f"{len(names):,}", f"{listed(names)} ({console.spelled(why)})")
            for (role, why), names in reasons.items()
        ]
    )


def show_risks(console: Console, audit: Audit) -> None:
    """Print the attacks, the conditions of the gate, and the advice if it failed."""
    from sfumato.report import wording

    if audit.risks:
        console.heading("attacks: success rate, and the reference rate without the release")
        console.facts(
            [
                (risk.title, f"{risk.result['rate']:.3f}", f"{risk.without:.3f}  {wording.attack_verdict(risk)}")
                for risk in audit.risks
            ]
        )
        if any(risk.result["verdict"] == "failed attack" for risk in audit.risks):
            console.text(f"  {wording.BELOW_BASELINE}")
    if audit.gate:
        console.heading("gate")
        console.facts([(check.name, "met" if check.passed else "NOT MET", check.sentence) for check in audit.gate])
    if audit.advice:
        console.heading("what to try")
        for sentence in audit.advice:
            console.text("  " + sentence)


def show_utility(console: Console, utility: Utility, model: str) -> None:
    """Print the scores of a model trained on raw and on anonymized records."""
    console.heading(f"{utility.metric} of {model} on {utility.n_test:,} held-out records")
    rows: list[tuple[str, ...]] = [("trained on raw records", _score(utility, utility.raw))]
    for name, value in (
        ("trained on anonymized records", utility.anonymized),
        ("trained and tested on anonymized records", utility.transformed),
    ):
        if value is not None:
            rows.append((name, _score(utility, value), _change(utility, value)))
    console.facts(rows)


def _score(utility: Utility, value: float) -> str:
    return f"{value:.2%}" if utility.metric == "accuracy" else f"{value:.4f}"


def _change(utility: Utility, value: float) -> str:
    difference = value - utility.raw
    return f"{100 * difference:+.2f} pp" if utility.metric == "accuracy" else f"{difference:+.4f}"


def group_rows(counted: Recount) -> list[tuple[str, ...]]:
    """Return the rows about the groups of a release."""
    return [
        ("groups", f"{counted.n_groups:,}"),
        ("smallest group", f"{counted.smallest_group:,}"),
        ("median group", f"{counted.median_group:,.0f}"),
    ]
