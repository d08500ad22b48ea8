# SPDX-License-Identifier: Apache-2.0
"""``sfumato init``: look at a table and write a first policy for it, commented, for a person to correct."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes

if TYPE_CHECKING:
    from sfumato.files.table_file import ReadingOptions

HELP = options.help_text(
    "Write a first policy for a table by looking at it.",
    "Finds columns that name people, columns that together single them out, and numbers that are codes, by names, the "
    "form of values and counts, and flags what may be a special category of personal data. Every line of the policy is "
    "a proposal with its reason beside it: read it, correct it, then run it with 'sfumato run'.",
    examples=[
        "sfumato init people.csv --target income -o policy.toml",
        "sfumato init patients.parquet --target readmitted --sensitive diagnosis --k 20 -o policy.toml",
    ],
)


@options.reads_tables
def init(
    file: options.File,
    target: Annotated[str, typer.Option(help="The column that the model predicts.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the policy goes.", rich_help_panel="Output")
    ] = Path("policy.toml"),
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Columns that nobody should learn about a person.", metavar="A,B,...", show_default="none"),
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="Records that every group must have at least.")] = 10,
    force: options.Force = False,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Write a first policy for a table; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug):
        from sfumato.auditing.utility import read_target
        from sfumato.cli.request import check_numbers
        from sfumato.errors import ParameterError
        from sfumato.files.table_file import check_output, read_and_tell, unfinished, unknown_column
        from sfumato.policy import write_policy

        check_output(output, force=force, inputs=[file])
        check_numbers(k, 0.2, 0)
        given = reading.parsed()
        source = read_and_tell(console, file, given)
        columns = source.table.column_names
        named = options.split_names(sensitive, columns)
        for option, names in {"--target": [target], "--sensitive": named}.items():
            for name in names:
                if name not in columns:
                    raise ParameterError(unknown_column(option, name, columns))
        read_target(source.table, target, None)  # refuses what no model could learn, before a policy is built on it
        with console.step("counting which columns single out records"):
            relative = _as_seen_from(output.parent, file)
            text, roles = write_policy(
                source.table,
                file=relative,
                target=target,
                sensitive=tuple(named),
                k=k,
                reading=_reading(given),
            )
        with unfinished(output) as [path]:
            path.write_text(text, encoding="utf-8")
        if as_json:
            console.result(
                {
                    "policy": str(output),
                    "columns": {
                        s.name: {"role": s.role, "special": s.special, "reason": s.reason, "is_code": s.is_surely_code}
                        for s in roles
                    },
                }
            )
            return
        console.heading("What the columns were taken for")
        shares = [(s.name, s.role, f"{s.alone:.1%}", f"{s.paired:.1%}") for s in roles if s.role != "target"]
        console.records(["column", "role", "unique alone", "with one other"], shares)
        for suggestion in roles:
            if suggestion.special is not None:
                console.note(
                    f"{suggestion.name!r} may be about {suggestion.special}, a special category of Article 9 of the "
                    "GDPR: a person must say whether it is.",
                    is_warning=True,
                )
        console.text(f"Wrote {output.name}. Read it, correct it, then: sfumato run {output.name}")


def _as_seen_from(folder: Path, file: options.Location) -> Any:
    """Return where a table is, relative to a folder."""
    path = file if isinstance(file, Path) else file.path
    if path is None:  # a query that needs no database
        return file
    relative = Path(os.path.relpath(path, folder))
    return relative if isinstance(file, Path) else file.at(relative)


def _reading(given: ReadingOptions) -> dict[str, Any]:
    """Return what was said about the file as settings of the policy, so that running it reads the same table."""
    return {
        "types": {name: own.name + (f":{own.format}" if own.format else "") for name, own in given.types.items()},
        "separator": given.separator,
        "decimal": given.decimal,
        "encoding": given.encoding,
        "missing": list(given.missing),
        "header": None if given.header is None else "yes" if given.header else "no",
    }
