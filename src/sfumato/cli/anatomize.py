# SPDX-License-Identifier: Apache-2.0
"""``sfumato anatomize``: read a file, divide it in two, write both, and judge and attack what was written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from sfumato.cli import options
from sfumato.cli.anatomy_gate import check_attacks
from sfumato.cli.console import Console, exit_codes
from sfumato.cli.out_of_core import OutOfCore, is_chosen, opened, progress_of
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.anatomize import AnatomizedTable
    from sfumato.attack.result import AttackResult
    from sfumato.backends.blocks.table import BlockTable
    from sfumato.files.table_file import FileTable, Location

_TABLES = ("identifying", "sensitive")

HELP = options.help_text(
    "Share exact values, but not who has which sensitive value.",
    "Writes two files to a folder: one with the identifying columns, one with the sensitive columns, both in their own "
    "random order. Only the number of a group connects them, and in every group no sensitive value is more frequent "
    "than 1 in l. Two known attacks then guess who has which value: if one gains more than --max-attack, nothing is "
    "written. Both files are read back and their groups are counted before they get their names.",
    examples=[
        "sfumato anatomize people.csv --sensitive illness --l 3 -o shared",
        "sfumato anatomize people.csv --sensitive illness,wage --identifiers name,ssn\n"
        "    --l 2 --suppression-limit 0.01 -o shared",
    ],
)


@dataclass(frozen=True)
class Settings:
    """What the user asked for."""

    file: Location
    folder: Path
    l: int  # noqa: E741
    sensitive: list[str]
    identifiers: list[str]
    suppression_limit: float
    assignment: str
    seed: int | None
    max_attack: float | None
    format: Literal["csv", "parquet"]


@options.reads_tables
def anatomize(
    file: options.File,
    sensitive: Annotated[
        list[str],
        options.columns("Columns whose values must not be told about a person.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The folder for the files; it is made if need be.",
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
    suppression_limit: Annotated[
        float,
        typer.Option(
            help="Share of the records that may be left out where a value is too frequent.",
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
            help="Seed of all that is drawn. Keep it as secret as the records.",
            rich_help_panel=options.METHOD,
            show_default="a new one each time",
        ),
    ] = None,
    attack: Annotated[
        bool,
        typer.Option(
            "--attack/--no-attack",
            help="Whether to attack the result; without, --max-attack is not checked.",
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
    pieces: OutOfCore = None,
    force: options.Force = False,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Share exact values, but not who has which sensitive value; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug), contextlib.ExitStack() as open_tables:
        from sfumato.auditing.roles import without_names
        from sfumato.files.table_file import format_of, read_and_tell

        said = reading.parsed()
        written_as = format or ("parquet" if format_of(file) == "parquet" else "csv")
        _check_folder(output, written_as, force=force, file=file)
        if seed is not None and seed < 0:
            raise ParameterError(f"--seed {seed}: expected 0 or more.")
        if not 0 <= max_attack <= 1:
            raise ParameterError(f"--max-attack {max_attack:g}: expected a share from 0 to 1. 0.2 is 20 points.")
        obstacle = None
        if written_as != "parquet":
            obstacle = "--out-of-core with --format csv: expected Parquet files to be written. Leave out --format."
        source, blocks = None, cast("BlockTable", None)  # one of them
        if is_chosen(console, file, pieces, said, obstacle=obstacle):
            blocks = open_tables.enter_context(opened(file))
        else:
            source = read_and_tell(console, file, said)
        columns = blocks.names if source is None else source.table.column_names
        secrets = options.named_columns("--sensitive", sensitive, columns)
        dropped = options.named_columns("--identifiers", identifiers, columns)
        decided = {*secrets, *dropped, *options.named_columns("--keep", keep, columns)}
        others = [name for name in columns if name not in decided]
        left = without_names(
            console, blocks.head(1 << 20) if source is None else source.table, others, done="dropped",
            otherwise="To share it, name it in --keep.",
        )  # fmt: skip
        settings = Settings(
            file,
            output,
            l,
            secrets,
            [*dropped, *(name for name in others if name not in left)],
            suppression_limit,
            assignment,
            seed,
            max_attack if attack else None,
            written_as,
        )
        with console.warnings_as_notes():
            if source is None:
                _run_piecewise(console, blocks, settings)
            else:
                _run(console, source, settings)


def _finals(folder: Path, written_as: str) -> list[Path]:
    from sfumato.anatomize.tables import MANIFEST

    return [*(folder / f"{name}.{written_as}" for name in _TABLES), folder / MANIFEST]


def _check_folder(folder: Path, written_as: str, *, force: bool, file: Location) -> None:
    """Refuse a folder that cannot or should not be written to, before any work is done."""
    from sfumato.files.publishing import look_at
    from sfumato.files.table_file import check_output

    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"-o {str(folder)!r} is a file: expected a folder. Give another name.")
    if folder.is_dir():
        for final in _finals(folder, written_as):
            check_output(final, force=force, inputs=[file])
        for other in _finals(folder, "csv" if written_as == "parquet" else "parquet")[:-1]:
            if other.exists():
                raise ParameterError(
                    f"-o {str(folder)!r} has {other.name!r} of an earlier run: expected no other grouping beside this "
                    "one, since two of the same people tell more than either. Give another folder, or remove it."
                )
    elif not folder.absolute().parent.is_dir():
        raise ParameterError(f"-o {str(folder)!r} lies in a folder that does not exist. Create that first.")
    else:
        for final in _finals(folder, written_as):
            look_at(final)


def _run(console: Console, source: FileTable, settings: Settings) -> None:
    """Anatomize, attack, write and judge."""
    table = source.table
    anatomizer = _new_anatomizer(settings, table.column_names)
    with console.step(f"dividing {table.num_rows:,} records into groups"):
        anatomized, rows = anatomizer.fit_transform_with_rows(table)
    attacks: list[tuple[str, AttackResult]] = []
    if settings.max_attack is not None:
        for name in settings.sensitive:
            with console.step(f"attacking {name}"):
                attacks += [(name, result) for result in _attacked(anatomized, table, rows, name, settings.l)]
        check_attacks(attacks, settings.max_attack, settings.l, table, anatomized.identifying_columns)
    with console.step(f"writing to {settings.folder.name}, reading it back and counting its groups"):
        reached = _write(anatomized, source, settings)
    _report(console, anatomizer, settings, reached, attacks)


def _run_piecewise(console: Console, files: BlockTable, settings: Settings) -> None:
    """Anatomize and judge a table that is not held in memory."""
    from sfumato.files.table_file import unfinished
    from sfumato.parquet.anatomizing import write_anatomy

    anatomizer = _new_anatomizer(settings, files.names)
    what = f"dividing {files.n_records:,} records into groups and writing to {settings.folder.name}"
    finals = _finals(settings.folder, settings.format)
    with console.step(what), _made(settings.folder), unfinished(*finals) as paths:
        made = write_anatomy(anatomizer, files, paths, settings.folder, progress=progress_of(console))
    if settings.max_attack is not None:
        console.note(
            "attacks need the table in memory, so none was made and --max-attack was not checked. Anatomize a sample "
            "with --in-memory before you share this.",
            is_warning=True,
        )
    _report(console, anatomizer, settings, made.diversity, [])


def _new_anatomizer(settings: Settings, columns: list[str]) -> Any:
    from sfumato.anatomize import Anatomizer

    return Anatomizer(
        settings.l,
        sensitive=settings.sensitive,
        identifiers=settings.identifiers or None,
        keep=[name for name in columns if name not in (*settings.sensitive, *settings.identifiers)],  # decided before
        suppression_limit=settings.suppression_limit,
        assignment=settings.assignment,  # type: ignore[arg-type]
        group=_free_name(columns),
        random_state=settings.seed,
    )


def _free_name(names: list[str]) -> str:
    group = "group"
    while group in names:
        group += "_"
    return group


def _write(anatomized: AnatomizedTable, source: FileTable, settings: Settings) -> dict[str, float]:
    """Write both tables and the manifest; return the l that the files have, column by column, as read back."""
    from sfumato.anatomize.tables import check_groups, plain_table
    from sfumato.files.csv_reading import CsvStyle
    from sfumato.files.table_file import unfinished, write_file
    from sfumato.files.verified_output import check_same, read_back
    from sfumato.verification import diversity_of

    tables = {name: plain_table(getattr(anatomized, name)) for name in _TABLES}
    manifest: dict[str, Any] = anatomized.manifest(settings.format, tables)
    style = None
    if settings.format == "csv":
        given = source.style or CsvStyle()
        style = CsvStyle(separator=given.separator, decimal=given.decimal)
        manifest["csv"] = {"separator": given.separator, "decimal": given.decimal}
    with _made(settings.folder), unfinished(*_finals(settings.folder, settings.format)) as paths:
        read = {}
        for path, (name, table) in zip(paths, tables.items(), strict=False):
            write_file(table, path, settings.format, style)
            read[name] = read_back(table, path, settings.format, style)
            check_same(table, read[name])
        check_groups(read["identifying"], read["sensitive"], settings.l)
        paths[-1].write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    group = anatomized.group
    return {name: diversity_of(read["sensitive"], group, name) for name in settings.sensitive}


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder for the time of writing, and take it away again when nothing came of it."""
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _attacked(
    anatomized: AnatomizedTable,
    table: Any,
    rows: Any,
    name: str,
    l: int,  # noqa: E741
) -> list[AttackResult]:
    """Attack one sensitive column with what is published."""
    import numpy as np

    from sfumato.attack.anatomy import definetti, minimality
    from sfumato.files.verified_output import plain_values

    truth = np.array(plain_values(table.column(name)).to_pylist(), dtype=object)[rows]
    tables = anatomized.identifying, anatomized.sensitive, truth
    return [definetti(*tables, column=name), minimality(*tables, l=l, column=name)]


def _report(
    console: Console,
    anatomizer: Any,
    settings: Settings,
    reached: dict[str, float],
    attacks: list[tuple[str, AttackResult]],
) -> None:
    from sfumato.files.verified_output import blurred

    sizes = anatomizer.group_sizes_
    n_suppressed = blurred(anatomizer.n_suppressed_, settings.l)
    written = [str(path) for path in _finals(settings.folder, settings.format)]
    if console.as_json:
        console.result(
            {
                "file": str(settings.file),
                "output": str(settings.folder),
                "written": written,
                "l": settings.l,
                "sensitive": settings.sensitive,
                "dropped": settings.identifiers,
                "assignment": settings.assignment,
                "n_records": int(sizes.sum()),
                "n_groups": len(sizes),
                "largest_group": int(sizes.max()),
                "n_suppressed": n_suppressed,
                "diversity": reached,
                "max_attack": settings.max_attack,
                "attacks": {f"{result.attack} on {name}": result.to_dict() for name, result in attacks},
                "holds": True,
                "judged_on": "the written files",
                "seconds": round(console.seconds, 3),
            }
        )
        return
    console.heading(f"two tables of {settings.file.name}")
    console.facts(
        [
            ("records", f"{int(sizes.sum()):,}"),
            ("left out", n_suppressed),
            ("groups", f"{len(sizes):,}"),
            ("largest group", f"{int(sizes.max()):,}"),
            *((f"l reached in {name}", f"{value:g}") for name, value in reached.items()),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    for name, result in attacks:
        low, high = result.interval
        console.heading(f"{result.attack} attack on {name}")
        console.facts(
            [
                ("guessed right", f"{result.rate:.1%}", f"95% interval {low:.1%} to {high:.1%}"),
                ("without the attack", f"{result.baseline:.1%}", "the most frequent value of the group"),
                (
                    "advantage",
                    f"{result.rate - result.baseline:+.1%}",
                    f"limit {settings.max_attack:.1%} (--max-attack)",
                ),
                ("verdict", "", result.verdict),
            ]
        )
    console.verdict(
        f"l = {settings.l} holds: no sensitive value in more than 1/{settings.l} of a group (recounted on the written "
        "files).",
        holds=True,
    )
    console.text(f"Written: {', '.join(written)}")
    if any(result.verdict == "stronger than baseline" for _, result in attacks):
        console.note(
            "l-diversity holds, and yet an attack guesses better than 1 in l: the identifying columns tell something "
            "about the sensitive ones. The advantage is within --max-attack; share fewer identifying columns, or raise "
            "--l, to lower it.",
            is_warning=True,
        )
