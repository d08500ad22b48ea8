# SPDX-License-Identifier: Apache-2.0
"""``sfumato anatomize``: divide a file, and print the judged and attacked result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli import options
from sfumato.cli.console import Console
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.attack.result import AttackResult
    from sfumato.auditing.anatomize_files import Anatomized, AnatomizeSettings
    from sfumato.files.table_file import Location

HELP = options.help_text(
    "Share exact values, but not who has which sensitive value.",
    "Write files to a folder: one with the identifying columns, and one for each sensitive column, each in its own "
    "random order. Only group numbers connect them, and in every group no sensitive value is more frequent "
    "than 1 in l. Known attacks then guess who has which value: if one gains more than --max-attack, nothing is "
    "written. All files are read back and verified before they appear.",
    examples=[
        "sfumato anatomize people.csv --sensitive illness --l 3 -o shared",
        "sfumato anatomize people.csv --sensitive illness,wage --identifiers name,ssn\n"
        "    --l 2 --suppression-limit 0.01 -o shared",
        "sfumato anatomize people.csv --sensitive illness,drug,wage --joint illness,drug -o shared",
    ],
)


@options.command
def anatomize(
    file: options.File,
    sensitive: Annotated[
        list[str],
        options.columns("Sensitive attributes.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The folder for the files; it is created if necessary.",
            rich_help_panel=options.OUTPUT,
            metavar="DIR",
            show_default=False,
        ),
    ],
    identifiers: options.Identifiers = None,
    keep: options.Keep = None,
    l: Annotated[  # noqa: E741 - the literature's own letter
        int,
        typer.Option(
            "--l", "-l", help="No sensitive value in more than 1/l of a group.", rich_help_panel=options.METHOD
        ),
    ] = 2,
    l_of: Annotated[
        list[str] | None,
        typer.Option(
            "--l-of",
            help="Another l for some sensitive columns.",
            metavar="COLUMN=L,...",
            rich_help_panel=options.METHOD,
            show_default="--l",
        ),
    ] = None,
    joint: Annotated[
        list[str] | None,
        typer.Option(
            help="Sensitive columns that share a file and its groups, or 'all'. It keeps how they are related, and "
            "reveals them to anyone who knows one of them. Give it once for each file.",
            metavar="A,B,...",
            rich_help_panel=options.METHOD,
            show_default="one file for each",
        ),
    ] = None,
    suppression_limit: Annotated[
        float,
        typer.Option(
            help="Maximum share of records suppressed where a value is too frequent.",
            rich_help_panel=options.METHOD,
        ),
    ] = 0.0,
    assignment: Annotated[
        Literal["largest", "random"],
        options.choice("Groups of the most frequent values (largest), or of any values (random)."),
    ] = "largest",
    seed: Annotated[
        int | None,
        typer.Option(
            help="Random seed. Keep it as secret as the records.",
            rich_help_panel=options.METHOD,
            show_default="a new one each time",
        ),
    ] = None,
    attack: Annotated[
        bool,
        typer.Option(
            "--attack/--no-attack",
            help="Whether to attack the result; --no-attack skips --max-attack.",
            rich_help_panel=options.METHOD,
        ),
    ] = True,
    max_attack: Annotated[
        float,
        typer.Option(
            help="Maximum attack advantage: the share of records guessed right beyond guessing by the group alone.",
            rich_help_panel=options.METHOD,
        ),
    ] = 0.2,
    format: Annotated[
        Literal["csv", "parquet"] | None,
        typer.Option(
            help="csv or parquet.", metavar="NAME", rich_help_panel=options.OUTPUT, show_default="that of the input"
        ),
    ] = None,
    out_of_core: options.OutOfCore = None,
    force: options.Force = False,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Share exact values, but not who has which sensitive value; ``HELP`` is what users read."""
    from dataclasses import replace

    from sfumato.auditing.anatomize_files import AnatomizeSettings, anatomize_table
    from sfumato.auditing.open_tables import columns_of, open_table
    from sfumato.files.table_file import format_of

    written_as = format or ("parquet" if format_of(file) == "parquet" else "csv")
    limit = max_attack if attack else None
    settings = AnatomizeSettings(
        output, written_as, l, (), suppression_limit=suppression_limit, assignment=assignment, seed=seed,
        max_attack=limit,
    )  # fmt: skip
    settings.check_folder(force=force, file=file)
    obstacle = None
    if written_as != "parquet":
        obstacle = "--out-of-core with --format csv: expected Parquet files to be written. Remove --format."
    with (
        open_table(console, file, reading, out_of_core=out_of_core, obstacle=obstacle) as table,
        console.warnings_as_notes(),
    ):
        columns = columns_of(table)
        settings = replace(
            settings,
            sensitive=options.named_columns("--sensitive", sensitive, columns),
            identifiers=options.named_columns("--identifiers", identifiers, columns),
            keep=options.named_columns("--keep", keep, columns),
            joint=_joint_columns(joint, columns),
        )
        settings = replace(settings, l=_diversities(l, l_of, settings.sensitive))
        done = anatomize_table(console, table, settings, force=force, file=file)
    _report(console, file, settings, done)


def _joint_columns(given: list[str] | None, columns: list[str]) -> bool | list[list[str]]:
    """Return which sensitive columns share a table, as ``Anatomizer`` takes it."""
    if given is None:
        return False
    if given == ["all"] and "all" not in columns:
        return True
    return [options.named_columns("--joint", [own], columns) for own in given]


def _diversities(l: int, given: list[str] | None, sensitive: Sequence[str]) -> int | dict[str, int]:  # noqa: E741
    """Return one l for all sensitive columns, or one for each."""
    if not given:
        return l
    pairs = options.split_pairs(given, "--l-of", "illness=3")
    options.check_columns("--l-of", list(pairs), list(sensitive))
    wrong = [name for name, value in pairs.items() if not value.isdecimal()]
    if wrong:
        raise ParameterError(f"--l-of {wrong[0]}={pairs[wrong[0]]}: expected an integer of at least 2.")
    return {name: int(pairs.get(name, l)) for name in sensitive}


def _report(console: Console, file: Location, settings: AnatomizeSettings, done: Anatomized) -> None:
    from sfumato.files.verified_output import blurred

    sizes = done.anatomizer.group_sizes_
    n_suppressed = blurred(done.anatomizer.n_suppressed_, settings.largest_l)
    written = [str(path) for path in done.written]
    if console.as_json:
        console.result(
            {
                "file": str(file),
                "output": str(settings.folder),
                "written": written,
                "l": settings.l,
                "sensitive": settings.sensitive,
                "dropped": done.dropped,
                "assignment": settings.assignment,
                "n_records": done.n_records,
                "n_groups": len(sizes),
                "largest_group": int(sizes.max()),
                "n_suppressed": n_suppressed,
                "diversity": done.diversity,
                "max_attack": settings.max_attack,
                "attacks": {f"{result.attack} on {name}": result.to_dict() for name, result in done.attacks},
                "attacks_if_known": {
                    f"{result.attack} on {name}, knowing {known}": result.to_dict()
                    for name, known, result in done.if_known
                },
                "holds": True,
                "judged_on": "the written files",
                "seconds": round(console.seconds, 3),
            }
        )
        return
    console.heading(f"{len(written) - 1} tables of {file.name}")
    console.facts(
        [
            ("records", f"{done.n_records:,}"),
            ("suppressed records", n_suppressed),
            ("groups", f"{len(sizes):,}"),
            ("largest group", f"{int(sizes.max()):,}"),
            *((f"l reached in {name}", f"{value:g}") for name, value in done.diversity.items()),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    for name, result in done.attacks:
        _report_attack(console, f"{result.attack} attack on {name}", result, settings.max_attack)
    for name, known, result in done.if_known:
        _report_attack(console, f"{name}, if {known} is known", result, None)
    console.verdict(
        f"l = {settings.l} holds: no sensitive value in more than 1/{settings.l} of a group (recounted on the written "
        "files)."
        if isinstance(settings.l, int)
        else "l holds in every sensitive column (recounted on the written files): "
        + ", ".join(f"{own} in {name}" for name, own in settings.l.items())
        + ".",
        holds=True,
    )
    console.text(f"Written: {', '.join(written)}")
    if any(result.verdict == "stronger than baseline" for _, result in done.attacks):
        console.note(
            "l-diversity holds, but an attack guesses better than 1 in l: the identifying columns predict the "
            "sensitive ones. The advantage is within --max-attack. To lower it, share fewer identifying columns, or "
            "raise --l.",
            is_warning=True,
        )


def _report_attack(console: Console, heading: str, result: AttackResult, limit: float | None) -> None:
    from sfumato.report import wording

    low, high = result.interval
    by = "the most frequent value of the group" if limit is not None else "the group, or the known value, alone"
    console.heading(heading)
    console.facts(
        [
            ("guessed right", f"{result.rate:.1%}", f"95% CI [{low:.1%}, {high:.1%}]"),
            ("reference rate", f"{result.baseline:.1%}", by),
            (
                "advantage",
                f"{result.rate - result.baseline:+.1%}",
                "no limit: l-diversity does not cover it" if limit is None else f"limit {limit:.1%} (--max-attack)",
            ),
            ("verdict", "", wording.verdict_in_words(result.verdict)),
        ]
    )
