# SPDX-License-Identifier: Apache-2.0
"""Audits to make reports of: an everyday one, and one whose every name is hostile."""

from sfumato.report.data import (
    Audit,
    ColumnChange,
    GateCheck,
    GroupSizes,
    Point,
    Risk,
    Subgroup,
    UtilityResult,
)

HOSTILE = [
    "<script>document.title='gotcha'</script>",
    "\"'><img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "two\nlines\r\n\tand a tab",
    "right\u202eleft\u2066",
    "](javascript:alert(1)) | `code` **bold** # heading",
    "x" * 300,
    "زيادة الإيجار",
    "&lt;b&gt;&amp;",
    "${title} $style {content} %s",
]


def risk(title: str, rate: float, verdict: str, eu_risk: str = "inference") -> Risk:
    result = {
        "attack": title,
        "rate": rate,
        "interval": [rate - 0.01, rate + 0.01],
        "baseline": 0.5,
        "control": 0.5,
        "verdict": verdict,
        "seconds": 1.0,
        "seed": 0,
        "details": {},
    }
    return Risk(title, eu_risk, result, "A sentence.")  # type: ignore[arg-type]


def audit(names: list[str] | None = None, *, passed: bool = True, n_columns: int = 4) -> Audit:
    """Make an audit whose columns, subgroups and attacks have the names given."""
    names = names or ["age", "job", "zip code", "income"]
    columns = [
        ColumnChange(
            name=names[place % len(names)] + ("" if place < len(names) else f" {place}"),
            role=("quasi-identifier", "identifier", "target")[place % 3],
            kind="number",
            loss=0.2 if place % 3 == 0 else None,
            n_values_before=70,
            n_values_after=None if place % 3 == 1 else 40,
            before=(0.2, 0.5, 0.3),
            after=() if place % 3 == 1 else (0.1, 0.6, 0.3),
            sentence="Information loss of 20%.",
        )
        for place in range(n_columns)
    ]
    subgroups = tuple(Subgroup("job", name, 200, 0.81, 0.79, (-0.05, 0.01)) for name in names)
    return Audit(
        name=names[0],
        n_records=1000,
        n_released=995,
        n_suppressed=None,
        method={"name": "model-guided", "k": 10, "representative": "model", "quasi_identifiers": names},
        guarantees=("every group has at least 10 records",),
        gate=(
            GateCheck("min_k", 10, 10.0, True, "the smallest group has 10 records, 10 are required"),
            GateCheck("max_attack_advantage", 0.05, 0.02, passed, "the strongest attack gains 0.020"),
        ),
        utility=UtilityResult("accuracy", "gradient-boosting", 0.87, 0.86, 0.865, (-0.02, -0.003), 800, 200, subgroups),
        sizes=GroupSizes(80, 10, 31, 12.0, (10, 15, 20, 30), (0.5, 0.3, 0.15, 0.05)),
        columns=tuple(columns),
        risks=(
            risk(f"membership of {names[0]}", 0.52, "stronger than baseline"),
            risk("membership, loss threshold", 0.49, "not shown"),
            risk("linking two halves", 0.4, "failed attack", "linkability"),
        ),
        curve=tuple(Point(label, k, 0.87 - k / 1e4, 0.5 + 1 / k, 0.5) for label in names[:2] for k in (5, 10, 100)),
        notes=("The attacks were run at level quick.",),
        versions={"sfumato": "0.1"},
        fingerprint="ab" * 32,
        smallest_shown=10,
        seconds=12.0,
    )
