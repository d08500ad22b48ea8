# SPDX-License-Identifier: Apache-2.0
"""``sfumato init``: suggest a policy for a table, with comments, for you to correct."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import Console

if TYPE_CHECKING:
    from sfumato.files.table_file import ReadingOptions

HELP = options.help_text(
    "Suggest a policy for a table.",
    "Find direct identifiers, columns that together single people out, and numeric categories, by names, the form of "
    "values and counts; flag what may be a special category of personal data. Every line of the policy is a suggestion "
    "with its reason: read it, correct it, then run it with 'sfumato run'.",
    examples=[
        "sfumato init people.csv --target income -o policy.toml",
        "sfumato init patients.parquet --target readmitted --sensitive diagnosis --k 20 -o policy.toml",
    ],
)


@options.command
def init(
    file: options.File,
    target: Annotated[
        str, typer.Option(help="The column that the model predicts.", metavar="COLUMN", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The policy file.", rich_help_panel="Output")] = Path(
        "policy.toml"
    ),
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Sensitive attributes.", metavar="A,B,...", show_default="none"),
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="Minimum group size.")] = 10,
    force: options.Force = False,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Write a first policy for a table; ``HELP`` is what users read."""
    from sfumato.auditing.utility import read_target
    from sfumato.files.table_file import check_output, read_and_tell, unfinished
    from sfumato.policy import write_policy
    from sfumato.policy.settings import SECTIONS

    check_output(output, force=force, inputs=[file])
    SECTIONS["method"]["k"].checked(k, "--k", f"--k {k}")
    source = read_and_tell(console, file, reading)
    columns = source.table.column_names
    options.check_columns("--target", [target], columns)
    named = options.named_columns("--sensitive", sensitive, columns)
    read_target(source.table, target, None)  # raises for a target that no model can learn
    with console.step("counting which columns single out records"):
        text, roles = write_policy(
            source.table,
            file=_as_seen_from(output.parent, file),
            target=target,
            sensitive=tuple(named),
            k=k,
            reading=_reading(reading),
        )
    with unfinished(output) as [path]:
        path.write_text(text, encoding="utf-8")
    if console.as_json:
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
    console.heading("Suggested column roles")
    shares = [(s.name, s.role, f"{s.alone:.1%}", f"{s.paired:.1%}") for s in roles if s.role != "target"]
    console.records(["column", "role", "unique alone", "with one other"], shares)
    for suggestion in roles:
        if suggestion.special is not None:
            console.note(
                f"{suggestion.name!r} may be about {suggestion.special}, a special category of Article 9 of the GDPR. "
                "Confirm whether it is.",
                is_warning=True,
            )
    console.text(f"Wrote {output.name}. Read it, correct it, then: sfumato run {output.name}")


def _as_seen_from(folder: Path, file: options.Location) -> Any:
    """Return the place of a table relative to a folder."""
    path = file if isinstance(file, Path) else file.path
    if path is None:  # a query that needs no database
        return file
    relative = Path(os.path.relpath(path, folder))
    return relative if isinstance(file, Path) else file.at(relative)


def _reading(given: ReadingOptions) -> dict[str, Any]:
    """Return the options about the file as settings of the policy, so that running it reads the same table."""
    return {
        "types": {name: own.name + (f":{own.format}" if own.format else "") for name, own in given.types.items()},
        "separator": given.separator,
        "decimal": given.decimal,
        "encoding": given.encoding,
        "missing": list(given.missing),
        "header": None if given.header is None else "yes" if given.header else "no",
    }
