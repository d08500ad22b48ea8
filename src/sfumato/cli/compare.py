# SPDX-License-Identifier: Apache-2.0
"""``sfumato compare``: what two releases of the same people reveal together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console, exit_codes

HELP = options.help_text(
    "Say what two releases of the same people reveal together.",
    "Each release hides a person among k. Whoever finds a person's group in both is left with the people in both. The "
    "files hold the same people in the same order, or a column says who is who. Exit code 1 when people are hidden "
    "worse together than --min-k.",
    examples=[
        "sfumato compare spring.csv autumn.csv --quasi-identifiers age,zip --min-k 10",
        "sfumato compare a.parquet b.parquet --key pseudonym --sensitive disease",
    ],
)


@options.reads_tables
def compare(
    first: Annotated[options.Location, options.table_argument("A release.", "FIRST")],
    second: Annotated[options.Location, options.table_argument("Another release.", "SECOND")],
    quasi_identifiers: Annotated[
        list[str] | None,
        typer.Option(
            "--quasi-identifiers",
            help="The rewritten columns.",
            metavar="A,B,...",
            show_default="all columns of either without key and sensitive",
        ),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="A column nobody should learn about a person.", show_default="none")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="The column that says who is who, each person once.", show_default="the order of the records"
        ),
    ] = None,
    min_k: Annotated[
        int | None, typer.Option(help="Fewest people that must stay together.", show_default="none")
    ] = None,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Say what two releases reveal together; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug):
        from sfumato.attack.intersection import intersect_releases
        from sfumato.errors import ParameterError
        from sfumato.files.table_file import read_files

        if min_k is not None and min_k < 1:
            raise ParameterError(f"--min-k {min_k}: expected a whole number from 1 on. Correct it.")
        said = reading.parsed()
        with console.step(f"reading {first.name} and {second.name}"):
            read = read_files([first, second], said)
        for sentence in dict.fromkeys(note for file in read for note in file.notes):
            console.note(sentence)
        if first == second or (isinstance(first, Path) and isinstance(second, Path) and first.samefile(second)):
            console.note("both names are of one file: it reveals no more than it does alone.")
        tables = [file.table for file in read]
        _check_named(tables, quasi_identifiers)
        names = [_columns(table, quasi_identifiers, sensitive, key) for table in tables]
        if key is None:
            _check_order(tables, {*names[0], *names[1]})
        with console.step("laying the groups of both over each other"):
            found = intersect_releases(tables[0], tables[1], (names[0], names[1]), sensitive=sensitive, key=key)
        holds = min_k is None or found.smallest_together >= min_k
        if as_json:
            console.result({**found.to_dict(), "holds": holds})
        else:
            _show(console, found, min_k, holds=holds)
        if not holds:
            raise typer.Exit(GUARANTEE_FAILED)


def _check_named(tables: list[Any], quasi_identifiers: list[str] | None) -> None:
    """Refuse a name that neither release has: without that column people would seem better hidden than they are."""
    from sfumato.errors import ParameterError
    from sfumato.files.table_file import unknown_column

    every = list(dict.fromkeys(name for table in tables for name in table.column_names))
    for name in options.split_names(quasi_identifiers, every):
        if name not in every:
            raise ParameterError(unknown_column("--quasi-identifiers", name, every))


def _check_order(tables: list[Any], rewritten: set[str]) -> None:
    """Refuse releases in different orders, of which a column that both have unchanged tells: rows would be mixed up."""
    import pyarrow as pa

    from sfumato.errors import InputError
    from sfumato.files.verified_output import plain_values

    one, other = tables
    moved = []
    for name in one.column_names:
        if name in rewritten or name not in other.column_names:
            continue
        first, second = (plain_values(table.column(name)) for table in tables)
        if first.type != second.type or pa.types.is_nested(first.type):
            continue
        if first.equals(second):
            return
        if len(first) == len(second) and _sorted(first).equals(_sorted(second)):
            moved.append(name)
    if moved:
        raise InputError(
            f"the column {moved[0]!r} has the same values in both files, in another order: expected the same people in "
            "the same order. Give the column that says who is who with --key, or compare releases that were written "
            "with --keep-order."
        )


def _sorted(column: Any) -> Any:
    import pyarrow.compute as pc

    return column.take(pc.sort_indices(column))


def _columns(table: Any, quasi_identifiers: list[str] | None, sensitive: str | None, key: str | None) -> list[str]:
    from sfumato.errors import ParameterError
    from sfumato.files.table_file import unknown_column

    columns = table.column_names
    for option, name in {"--sensitive": sensitive, "--key": key}.items():
        if name is not None and name not in columns:
            raise ParameterError(unknown_column(option, name, columns))
    named = options.split_names(quasi_identifiers, columns)
    chosen = [name for name in named if name in columns] or [n for n in columns if n not in (sensitive, key)]
    if named and not set(named) & set(columns):
        raise ParameterError(unknown_column("--quasi-identifiers", named[0], columns))
    return chosen


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
        rows.append(("people whose secret both reveal", blurred(found.n_secrets_revealed, least)))
    console.facts(rows)
    if found.n_alone:
        console.note(
            "some people are alone with their two groups: whoever finds both knows which records are theirs.",
            is_warning=True,
        )
    reached = f"the smallest group is {found.smallest_together}."
    if min_k is None:
        console.verdict(f"Nothing was required of both together; {reached}", holds=True)
        return
    verdict = "Together they keep what is required" if holds else "Together they do not keep what is required"
    console.verdict(f"{verdict}: {min_k} people; {reached}", holds=holds)
