# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and the decorator that makes commands of functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer
from typer.models import OptionInfo

from sfumato.cli.console import Console, exit_codes
from sfumato.cli.setting_names import with_options
from sfumato.errors import ParameterError
from sfumato.files.column_names import split_names as split_names

if TYPE_CHECKING:
    from sfumato.backends.duckdb.address import DuckDBAddress
    from sfumato.files.table_file import ReadingOptions

    Reading = ReadingOptions
else:
    Reading = Any  # `command` reads annotations, and this is for people

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
    """Raise ParameterError for a number of threads that is out of range."""
    from sfumato.arguments import MOST_THREADS

    if jobs == 0 or jobs > MOST_THREADS:
        raise ParameterError(f"--jobs {jobs}: expected an integer from 1 to {MOST_THREADS:,}, or -1 for all cores.")


def choice(help: str, *, show_default: bool | str = True) -> Any:
    """Return an option of the method that is one of several words, which the help lists itself."""
    return typer.Option(help=help, metavar="NAME", rich_help_panel=METHOD, show_default=show_default)


if TYPE_CHECKING:
    Location = Path | DuckDBAddress
else:  # typer takes no unions; `_location` reads the text
    Location = Path


def _location(text: str) -> Any:
    """Return the place of a table, or the error, which `command` raises where it becomes one line and an exit code."""
    from sfumato.files.table_file import location

    try:
        return location(text)
    except ParameterError as error:
        return error


def table_argument(help: str, metavar: str = "FILE") -> Any:
    """Return an argument for a table: a file, or an address in a database."""
    return typer.Argument(help=help, metavar=metavar, parser=_location, show_default=False)


def table_option(help: str, *, show_default: bool | str = "none", **how: Any) -> Any:
    """Return an option for a table: a file, or an address in a database."""
    return typer.Option(help=help, parser=_location, show_default=show_default, metavar="FILE", **how)


File = Annotated[
    Location,
    table_argument("A CSV or Parquet file, one record per row, or a table such as duckdb:people.db?table=people."),
]
Identifiers = Annotated[list[str] | None, columns("Direct identifiers, such as names; they are dropped.")]
Categorical = Annotated[list[str] | None, columns("Numeric categories: numbers that are codes, not amounts.")]
Keep = Annotated[list[str] | None, columns("Columns to use although they seem to name people.")]
Unit = Annotated[
    str | None,
    column(
        "The column that identifies the person of each record: k then counts persons. It is dropped.",
        show_default="each record is a person",
    ),
]
OutOfCore = Annotated[
    bool | None,
    typer.Option(
        "--out-of-core/--in-memory",
        help="Process a Parquet file or a table in DuckDB out of core (streaming), with little memory per record, or "
        "read it into memory. The result is the same.",
        rich_help_panel=METHOD,
        show_default="out of core if the table would need more than half of the memory",
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        help="Types of columns: text, category (the same as text), integer, real, date, datetime. Dates can have a "
        "format: born=date:%d.%m.%Y.",
        metavar="COLUMN=TYPE,...",
        rich_help_panel=_FILES,
        show_default="auto-detected",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Field separator: , ; | tab, or blanks for runs of blanks.",
        metavar="CHARACTER",
        rich_help_panel=_FILES,
        show_default="auto-detected",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        help="Decimal mark: . or ,",
        metavar="MARK",
        rich_help_panel=_FILES,
        show_default="auto-detected",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding, such as utf-8, utf-16 or cp1252.",
        metavar="NAME",
        rich_help_panel=_FILES,
        show_default="auto-detected",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="Words that mean missing in numbers and dates, in addition to the empty field, ?, NA, N/A, NaN and null.",
        metavar="WORD,...",
        rich_help_panel=_FILES,
        show_default="none",
    ),
]
Header = Annotated[
    Literal["yes", "no"] | None,
    typer.Option(
        help="Whether the first line holds the column names. With no, they are column1, column2, ...",
        metavar="yes|no",
        rich_help_panel=_FILES,
        show_default="yes, unless it looks like a record",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace existing output files.", rich_help_panel=OUTPUT, show_default="off")
]
KeepOrder = Annotated[
    bool,
    typer.Option(
        "--keep-order",
        help="Write the records in the order of the input, which can reveal which record of a group is whose.",
        rich_help_panel=OUTPUT,
        show_default="off: records are shuffled",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print no progress and no notes.", rich_help_panel=OUTPUT, show_default="off"),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the result as one JSON document.", rich_help_panel=OUTPUT, show_default="off"),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=OUTPUT, show_default="off"),
]


_CSV = {
    "types": Types,
    "separator": Separator,
    "decimal": Decimal,
    "encoding": Encoding,
    "missing": Missing,
    "header": Header,
}
_CONSOLE = {"quiet": Quiet, "as_json": AsJson, "debug": Debug}


def command(
    function: Callable[..., None] | None = None, *, worded: Callable[[str], str] = with_options
) -> Callable[..., Any]:
    """Make a command of a function: give it a console, turn errors into exit codes, and read options about CSV files.

    The function's parameter ``console`` stands for the options --quiet, --json and --debug; ``reading``, if it has it,
    for all options about CSV files, and it gets `ReadingOptions`.

    Parameters
    ----------
    function : callable
    worded : callable
        Spells the settings that a sentence of the library names: as options, or as keys of a policy.
    """
    if function is None:
        return functools.partial(command, worded=worded)
    own = inspect.signature(function, eval_str=True)
    parts: dict[str, dict[str, Any]] = {"console": _CONSOLE, "reading": _CSV}
    parameters: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        kind, default = inspect.Parameter.POSITIONAL_OR_KEYWORD, False if parameter.name == "console" else None
        more = parts.get(parameter.name)
        parameters += (
            [parameter]
            if more is None
            else [inspect.Parameter(name, kind, default=default, annotation=kind_) for name, kind_ in more.items()]
        )

    @functools.wraps(function)
    def wrapped(**given: Any) -> None:
        console = Console(quiet=given.pop("quiet"), as_json=given.pop("as_json"), worded=worded)
        with exit_codes(console, debug=given.pop("debug")):
            for value in given.values():
                if isinstance(value, ParameterError):
                    raise value
            if "reading" in own.parameters:
                given["reading"] = _reading_options(**{name: given.pop(name) for name in _CSV})
            function(console=console, **given)

    # Typer makes the options from these.
    for parameter in parameters:
        _say_what_follows(parameter.annotation)
    wrapped.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


_VALUES = {int: "NUMBER", float: "NUMBER", Path: "FILE"}


def _say_what_follows(annotation: Any) -> None:
    """Give an option that has no word for its value one that people read: a number or a file, not <int> or <path>."""
    kind, *details = get_args(annotation)
    words = [_VALUES[part] for part in (kind, *get_args(kind)) if part in _VALUES]
    for option in details:
        if isinstance(option, OptionInfo) and option.metavar is None and words:
            option.metavar = words[0]


def _reading_options(
    types: list[str] | None,
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
    missing: list[str] | None,
    header: str | None,
) -> ReadingOptions:
    from sfumato.files.csv_columns import parse_types
    from sfumato.files.table_file import ReadingOptions

    words = [word for part in missing or () for word in part.split(",") if word]
    has_header = None if header is None else header == "yes"
    return ReadingOptions(encoding, separator, decimal, has_header, parse_types(",".join(types or ())), words)


EXIT_CODES = (
    "Exit codes: 0 passed, 1 guarantee failed (nothing is released), 2 wrong usage or input, 3 an error in sfumato."
)


def help_text(*paragraphs: str, examples: Sequence[str]) -> str:
    """Return the help of a command: paragraphs, examples, exit codes."""
    shown = "\n\n".join(f"  {example}" for example in examples)
    return "\n\n".join([*paragraphs, "[bold]Examples[/bold]", shown, EXIT_CODES])


def named_columns(option: str, given: Sequence[str] | None, columns: Sequence[str]) -> list[str]:
    """Split names at commas, and raise ParameterError for one that is not a column."""
    names = split_names(given, columns)
    check_columns(option, names, columns)
    return names


def check_columns(option: str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Raise ParameterError for a name that is not a column."""
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
