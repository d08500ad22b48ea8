# SPDX-License-Identifier: Apache-2.0
"""``sfumato compare``: what two releases of the same people reveal together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console
from sfumato.errors import ParameterError

HELP = options.help_text(
    "Measure what two releases of the same people reveal together.",
    "Each release hides a person among k. An attacker who finds a person's group in both is left with the people in "
    "both groups. The files hold the same people in the same order, or a key column identifies them. Exit code 1: "
    "fewer than --min-k people share both groups.",
    examples=[
        "sfumato compare spring.csv autumn.csv --quasi-identifiers age,zip --min-k 10",
        "sfumato compare a.parquet b.parquet --key pseudonym --sensitive disease",
    ],
)


@options.command
def compare(
    first: Annotated[options.Location, options.table_argument("A release.", "FIRST")],
    second: Annotated[options.Location, options.table_argument("Another release.", "SECOND")],
    quasi_identifiers: Annotated[
        list[str] | None,
        typer.Option(
            "--quasi-identifiers",
            help="The rewritten columns.",
            metavar="A,B,...",
            show_default="all but the key and the sensitive column",
        ),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="A sensitive attribute.", metavar="COLUMN", show_default="none")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="The column that identifies people, each once.",
            metavar="COLUMN",
            show_default="the order of the records",
        ),
    ] = None,
    min_k: Annotated[
        int | None, typer.Option(help="Minimum number of people who share both groups.", show_default="none")
    ] = None,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Intersect two releases; ``HELP`` is what users read."""
    from sfumato.auditing.compare_releases import compare_releases
    from sfumato.files.table_file import read_files

    if min_k is not None and min_k < 1:
        raise ParameterError(f"--min-k {min_k}: expected an integer >= 1.")
    with console.step(f"reading {first.name} and {second.name}"):
        read = read_files([first, second], reading)
    for sentence in dict.fromkeys(note for file in read for note in file.notes):
        console.note(sentence)
    if first == second or (isinstance(first, Path) and isinstance(second, Path) and first.samefile(second)):
        console.note("both names are of one file: it reveals no more than it does alone.")
    one, other = (file.table for file in read)
    every = list(dict.fromkeys([*one.column_names, *other.column_names]))
    found = compare_releases(
        console,
        (one, other),
        quasi_identifiers=options.split_names(quasi_identifiers, every),
        sensitive=sensitive,
        key=key,
    )
    if not quasi_identifiers and min(found.smallest_first, found.smallest_second) < 2:
        console.note(
            "groups were formed by all columns without another role, and unchanged ones count, too: name the rewritten "
            "ones in --quasi-identifiers."
        )
    holds = min_k is None or found.smallest_together >= min_k
    if console.as_json:
        console.result({**found.to_dict(), "holds": holds})
    else:
        _show(console, found, min_k, holds=holds)
    if not holds:
        raise typer.Exit(GUARANTEE_FAILED)


def _show(console: Console, found: Any, min_k: int | None, *, holds: bool) -> None:
    from sfumato.files.verified_output import blurred

    least = min(found.smallest_first, found.smallest_second)
    console.heading("two releases together")
    rows: list[tuple[str, ...]] = [
        ("people in both", f"{found.n_people:,}"),
        ("smallest group of the first", f"{found.smallest_first:,}"),
        ("smallest group of the second", f"{found.smallest_second:,}"),
        ("smallest group of both together", f"{found.smallest_together:,}"),
    ]
    if least > 1:
        below = f"people hidden among fewer than {least}"
        rows.append((below, blurred(found.n_below, least), f"{found.share_below:.1%}"))
    if found.n_secrets_revealed is not None:
        rows.append(("people whose sensitive value both reveal", blurred(found.n_secrets_revealed, least)))
    console.facts(rows)
    if found.n_alone:
        console.note(
            "Combining the releases isolates some people: anyone who finds both groups has their records. Withhold one "
            "release, or raise k.",
            is_warning=True,
        )
    reached = f"the smallest group is {found.smallest_together}."
    if min_k is None:
        console.verdict(f"No condition was set for both together; {reached}", holds=True)
        return
    verdict = "Together they meet --min-k" if holds else "Together they do not meet --min-k"
    console.verdict(f"{verdict} {min_k}: {reached}", holds=holds)
