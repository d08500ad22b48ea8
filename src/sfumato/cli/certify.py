# SPDX-License-Identifier: Apache-2.0
"""``sfumato certify``: what any attacker can learn at most from what a saved artifact shows of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.certificates import Certificate

HELP = options.help_text(
    "Bound what any attacker can learn from a generalization or a partition.",
    "Attacks show what some attackers achieve; a certificate bounds what every attacker can achieve, on average over "
    "people. It takes a file of people who were not used to make the artifact. If the fingerprints of its records are "
    "beside the artifact, a file that has those records is refused. Exit code 1: the advantage exceeds "
    "--max-advantage.",
    examples=[
        "sfumato certify generalization.json others.csv --secrets sex,disease",
        "sfumato certify partition.json others.csv --secrets disease --known income --max-advantage 0.05",
        "sfumato certify generalization.json others.parquet --secrets age --tolerance age=3",
        "sfumato certify anatomized/",
    ],
)


@options.command
def certify(
    artifact: Annotated[
        Path,
        typer.Argument(
            help="A generalization, a partition, or the folder of an anatomized table.",
            show_default=False,
            metavar="ARTIFACT",
        ),
    ],
    holdout: Annotated[
        options.Location | None,
        options.table_argument("People who were not used to make it; none for an anatomized table.", "HOLDOUT"),
    ] = None,
    secrets: Annotated[
        list[str] | None,
        options.columns("Columns that the attacker guesses.", show_default="the categories of a generalization"),
    ] = None,
    known: Annotated[list[str] | None, options.columns("Columns that the attacker knows exactly besides.")] = None,
    unit: Annotated[
        str | None,
        options.column("The person of each record; one record of each is drawn.", show_default="one record each"),
    ] = None,
    tolerance: Annotated[
        list[str] | None,
        typer.Option(
            help="Distances within which numbers are guessed right.",
            metavar="COLUMN=NUMBER,...",
            rich_help_panel=options.METHOD,
            show_default="exactly",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Chance with which all bounds of a kind hold.", rich_help_panel=options.METHOD)
    ] = 0.95,
    threshold: Annotated[
        float,
        typer.Option(
            help="Count people in cells where an attacker may be right with a larger chance.",
            rich_help_panel=options.METHOD,
        ),
    ] = 0.9,
    max_advantage: Annotated[
        float | None,
        typer.Option(
            help="Limit of the certified advantage; above it, the exit code is 1.",
            metavar="SHARE",
            rich_help_panel=options.METHOD,
            show_default="no verdict",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the lower ends.", rich_help_panel=options.METHOD)] = 0,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Certify an artifact; ``HELP`` is what users read."""
    from sfumato.auditing.certify_files import CertifySettings, certify_files

    settings = CertifySettings(
        options.split_names(secrets),
        options.split_names(known),
        _distances(tolerance),
        unit,
        confidence,
        threshold,
        max_advantage,
        seed,
    )
    certificate = certify_files(console, artifact, holdout, settings, reading=reading)
    holds = max_advantage is None or certificate.advantage <= max_advantage
    if console.as_json:
        console.result({**certificate.to_dict(), "max_advantage": max_advantage, "holds": holds})
    else:
        _show(console, certificate, max_advantage, holds=holds)
    if not holds:
        raise typer.Exit(GUARANTEE_FAILED)


def _distances(given: list[str] | None) -> dict[str, float] | None:
    distances = {}
    for name, text in options.split_pairs(given, "--tolerance", "age=3").items():
        try:
            distances[name] = float(text)
        except ValueError:
            raise ParameterError(
                f"--tolerance {name}={text}: expected a number, for example --tolerance {name}=3."
            ) from None
    return distances or None


def _show(console: Console, certificate: Certificate, max_advantage: float | None, *, holds: bool) -> None:
    from sfumato.certificates.certificate import row_of

    known = f" and {', '.join(certificate.known)}" if certificate.known else ""
    console.heading(f"an attacker sees {certificate.sees}{known}")
    rows = [row_of(bound) for bound in certificate.secrets.values()]
    console.records(
        ["", "without cells", "at least", "at most, any attacker", "advantage at most", "people above"],
        [
            [
                f"  {row['secret']}",
                *(f"{row[name]:.1%}" for name in ("baseline", "lower", "upper", "advantage")),
                "" if row["share_above"] is None else f"{row['share_above']:.1%}",
            ]
            for row in rows
        ],
    )
    for sentence in certificate.assumptions:
        console.text(f"  {sentence}")
    reached = f"the certified advantage is at most {certificate.advantage:.1%} ({certificate.worst.secret})"
    if max_advantage is None:
        console.verdict(f"No limit was set; {reached}.", holds=True)
        return
    verdict = "Certified" if holds else "Not certified"
    console.verdict(f"{verdict}: {reached}, limit {max_advantage:.1%}.", holds=holds)
