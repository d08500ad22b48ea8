# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and how columns are named on the command line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.errors import ParameterError
from sfumato.files.names import split_names as split_names

if TYPE_CHECKING:
    from sfumato.backends.duckdb.address import DuckDBAddress
    from sfumato.files.table_file import ReadingOptions

COLUMNS, METHOD, OUTPUT = "Columns", "Method", "Output"
"""Panels of the help, under which options stand."""
_FILES = "Reading CSV"
ALL_CORES = -1


def columns(help: str, *, show_default: bool | str = "none") -> Any:
    """Return an option that names columns, separated by commas."""
    return typer.Option(help=help, metavar="A,B,...", rich_help_panel=COLUMNS, show_default=show_default)


def column(help: str, *, show_default: bool | str = "none") -> Any:
    """Return an option that names one column."""
    return typer.Option(help=help, metavar="COLUMN", rich_help_panel=COLUMNS, show_default=show_default)


def jobs(panel: str | None = None) -> Any:
    """Return the option for the number of threads, with `ALL_CORES` as its default."""
    help = "Threads and processes. Their number does not change the result."
    return typer.Option(help=help, metavar="N", rich_help_panel=panel, show_default="all cores")


def check_jobs(jobs: int) -> None:
    """Raise ParameterError for a number of threads that cannot work."""
    from sfumato.arguments import MOST_THREADS

    if jobs == 0 or jobs > MOST_THREADS:
        raise ParameterError(
            f"--jobs {jobs}: expected an integer from 1 to {MOST_THREADS:,}, or -1 for all cores. Leave it out for all "
            "cores."
        )


def choice(help: str, *, show_default: bool | str = True) -> Any:
    """Return an option of the method that is one of several words, which the help lists itself."""
    return typer.Option(help=help, metavar="NAME", rich_help_panel=METHOD, show_default=show_default)


if TYPE_CHECKING:
    Location = Path | DuckDBAddress
else:  # typer takes no unions; what is typed is read by `_location`
    Location = Path


def _location(text: str) -> Any:
    from sfumato.files.table_file import location

    try:
        return location(text)
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from None


def table_argument(help: str, metavar: str = "FILE") -> Any:
    """Return an argument that says where a table is: a file, or an address in a database."""
    return typer.Argument(help=help, metavar=metavar, parser=_location, show_default=False)


def table_option(help: str, *, show_default: bool | str = "none", **how: Any) -> Any:
    """Return an option that says where a table is: a file, or an address in a database."""
    return typer.Option(help=help, parser=_location, show_default=show_default, metavar="FILE", **how)


File = Annotated[
    Location,
    table_argument("A CSV or Parquet file, one record per row, or a table such as duckdb:people.db?table=people."),
]
Identifiers = Annotated[list[str] | None, columns("Columns that name a person; they are dropped.")]
Categorical = Annotated[list[str] | None, columns("Columns of numbers that are codes, not amounts.")]
Keep = Annotated[list[str] | None, columns("Columns to use although they seem to name people.")]
Types = Annotated[
    list[str] | None,
    typer.Option(
        help="Types of columns where the file does not say: text, category (the same as text), integer, real, date, "
        "datetime. Dates can carry a format: born=date:%d.%m.%Y.",
        metavar="COLUMN=TYPE,...",
        rich_help_panel=_FILES,
        show_default="found in the file",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What separates the fields: , ; | tab, or blanks for runs of them.",
        metavar="CHARACTER",
        rich_help_panel=_FILES,
        show_default="found in the file",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        help="The decimal mark: . or ,",
        metavar="MARK",
        rich_help_panel=_FILES,
        show_default="found in the file",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="The encoding, such as utf-8, utf-16, cp1252.",
        metavar="NAME",
        rich_help_panel=_FILES,
        show_default="found in the file",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="Words that mean missing in numbers and dates, beside the empty field, ?, NA, N/A, NaN and null.",
        metavar="WORD,...",
        rich_help_panel=_FILES,
        show_default="none",
    ),
]
Header = Annotated[
    Literal["yes", "no"] | None,
    typer.Option(
        help="Whether the first line names the columns: yes or no. With no, they are called column1, column2, ...",
        metavar="yes|no",
        rich_help_panel=_FILES,
        show_default="yes, unless it looks like a record",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace output files that exist.", rich_help_panel=OUTPUT, show_default="off")
]
KeepOrder = Annotated[
    bool,
    typer.Option(
        "--keep-order",
        help="Write the records in the order of the input. It can tell which record of a group belongs to whom.",
        rich_help_panel=OUTPUT,
        show_default="off: records are shuffled",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes.", rich_help_panel=OUTPUT, show_default="off")
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the result as one JSON document.", rich_help_panel=OUTPUT, show_default="off"),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show where an error comes from.", rich_help_panel=OUTPUT, show_default="off"),
]


@dataclass(frozen=True)
class Reading:
    """What was said on the command line about CSV files, as it was typed."""

    types: list[str] | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: list[str] | None = None
    header: Literal["yes", "no"] | None = None

    def parsed(self) -> ReadingOptions:
        """Return what it means, or say what is wrong with it."""
        from sfumato.files.csv_columns import parse_types
        from sfumato.files.table_file import ReadingOptions

        words = [word for part in self.missing or () for word in part.split(",") if word]
        types = parse_types(",".join(self.types or ()))
        header = None if self.header is None else self.header == "yes"
        return ReadingOptions(self.encoding, self.separator, self.decimal, header, types, words)


NOTHING_SAID = Reading()
_READING = {
    "types": Types,
    "separator": Separator,
    "decimal": Decimal,
    "encoding": Encoding,
    "missing": Missing,
    "header": Header,
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options about CSV files; it gets what was said in one parameter, ``reading``."""
    own = inspect.signature(command, eval_str=True)
    parameters = []
    for parameter in own.parameters.values():
        if parameter.name == "reading":
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters += [inspect.Parameter(n, kind, default=None, annotation=a) for n, a in _READING.items()]
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        command(reading=Reading(**{name: given.pop(name) for name in _READING}), **given)

    # What typer looks at to make the options.
    wrapped.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


EXIT_CODES = (
    "Exit codes: 0 passed, 1 the guarantee does not hold (no release is written), 2 wrong usage or input, "
    "3 an error in sfumato."
)


def help_text(*paragraphs: str, examples: Sequence[str]) -> str:
    """Put the help of a command together: what it does, examples, exit codes."""
    shown = "\n\n".join(f"  {example}" for example in examples)
    return "\n\n".join([*paragraphs, "[bold]Examples[/bold]", shown, EXIT_CODES])


def named_columns(option: str, given: Sequence[str] | None, columns: Sequence[str]) -> list[str]:
    """Read names separated by commas, and refuse one that the file has no column of."""
    names = split_names(given, columns)
    check_columns(option, names, columns)
    return names


def check_columns(option: str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a name that the file has no column of."""
    from sfumato.files.table_file import unknown_column

    for name in names:
        if name not in columns:
            raise ParameterError(unknown_column(option, name, columns))


def split_pairs(given: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """Read ``name=value`` pairs separated by commas.

    Examples
    --------
    >>> split_pairs(["age=5,zip=3"], "--limits", "age=5")
    {'age': '5', 'zip': '3'}
    """
    pairs = {}
    for part in split_names(given):
        name, equals, value = part.rpartition("=")
        if not equals or not name or not value:
            raise ParameterError(f"{option} {part!r}: expected COLUMN=VALUE, for example {option} {example}.")
        pairs[name] = value
    return pairs
