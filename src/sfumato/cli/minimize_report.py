# SPDX-License-Identifier: Apache-2.0
"""What ``sfumato minimize`` prints when it is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.cli.console import Console
    from sfumato.files.table_file import Location
    from sfumato.minimize import MinimizerSweep
    from sfumato.minimize.sweep_result import SweepPoint


def show_minimized(
    console: Console,
    file: Location,
    paths: list[Path],
    swept: MinimizerSweep,
    chosen: SweepPoint,
    max_loss: float,
    wanted: dict[str, str],
) -> None:
    """Show what must be collected, what the attacker wants, and what that costs and spares.

    Parameters
    ----------
    console : Console
    file : Path
    paths : list of Path
        What was written, the generalization first.
    swept : MinimizerSweep
    chosen : SweepPoint
    max_loss : float
    wanted : dict of str to str
        The columns that the attacker wants, and why.
    """
    nothing, everything = swept.limits
    written = [str(path) for path in paths]
    if console.as_json:
        console.result(
            {
                "file": str(file),
                "output": written[0],
                "written": written,
                "max_loss": max_loss,
                "minimizer": chosen.minimizer,
                "parameters": dict(chosen.parameters),
                "personal": list(swept.personal),
                "personal_because": wanted,
                "n_buckets": dict(zip(chosen.generalization.names, chosen.generalization.n_buckets, strict=True)),
                "error": {"full": nothing.test_error, "buckets": chosen.test_error, "nothing": everything.test_error},
                "risk": {"full": nothing.test_risk, "buckets": chosen.test_risk, "nothing": everything.test_risk},
                "keeps_max_loss": _lost(swept, chosen) <= max_loss,
                "n_settings": len(swept.points) - 2,
                "seconds": round(console.seconds, 3),
            }
        )
        return
    console.heading(f"{file.name}: what must be collected")
    rows = [
        (attribute.name, f"{attribute.n_buckets}" if attribute.is_collected else "-", _about(attribute))
        for attribute in chosen.generalization.attributes
    ]
    console.facts(rows)
    console.heading("columns that the attacker wants")
    console.facts([(name, "", reason) for name, reason in wanted.items()])
    if not all(reason == "named in --personal" for reason in wanted.values()):
        console.text("The risk below is for these columns alone. Name others with --personal.")
    console.heading("on records that nothing was learned from")
    console.records(
        ["", "full resolution", "buckets", "nothing collected"],
        [
            ["  wrongly classified", *(f"{p.test_error:.1%}" for p in (nothing, chosen, everything))],
            ["  guessed by an attacker", *(f"{p.test_risk:.1%}" for p in (nothing, chosen, everything))],
        ],
    )
    console.facts(
        [
            ("settings tried", f"{len(swept.points) - 2:,}"),
            ("chosen", "", _chosen(chosen)),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    console.text(f"Written: {', '.join(written)}")
    if _lost(swept, chosen) > max_loss:
        console.note(
            f"{max_loss:.1%} may be lost and was kept to where the setting was chosen; on the records above "
            f"{_lost(swept, chosen):.1%} is lost. Use more records, or a smaller --max-loss.",
            is_warning=True,
        )
    if chosen is nothing:
        console.note(
            "no coarser setting loses so little: everything is collected as it is. Allow a larger --max-loss.",
            is_warning=True,
        )


def _lost(swept: MinimizerSweep, chosen: SweepPoint) -> float:
    """Return how many more records, as a share, are classified wrongly than with full resolution, on test."""
    return chosen.test_error - swept.limits[0].test_error


def _about(attribute: Any) -> str:
    return f"of {attribute.n_before}" if attribute.is_collected else "not collected"


def _chosen(point: SweepPoint) -> str:
    told = ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in point.parameters.items()
    )
    return f"{point.minimizer}({told})" if told else point.minimizer
