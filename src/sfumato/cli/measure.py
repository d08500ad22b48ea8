# SPDX-License-Identifier: Apache-2.0
"""``sfumato measure``: read a file, measure how well people hide in it, show it, and judge it where asked to."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli import options
from sfumato.cli.audit import show_roles
from sfumato.cli.console import GUARANTEE_FAILED, Console, exit_codes
from sfumato.cli.measured_roles import Reasons, measured_roles
from sfumato.cli.out_of_core import OutOfCore, is_chosen, opened, progress_of
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.files.table_file import FileTable, Location, ReadingOptions
    from sfumato.measurement import Measurement
    from sfumato.measurement.measurement import CriterionValue

_SHOWN = 5  # columns and sets of a ranking; --json has all

HELP = options.help_text(
    "Measure how well people hide in a file, whoever made it.",
    "Shows how many records share their quasi-identifiers, how likely a record is found, how many are unique, what "
    "every criterion comes to on the sensitive columns, and which columns make most records unique. It is for the "
    "owner of the file: counts are exact, however small. With --min-k, exit code 1 says that a group is smaller.",
    examples=[
        "sfumato measure released.csv --quasi-identifiers age,zip,sex --min-k 10",
        "sfumato measure people.csv --quasi-identifiers age,zip,sex --sensitive disease\n    --population register.csv",
        "sfumato measure sample.parquet --sensitive income --weights weight --json",
    ],
)


@options.reads_tables
def measure(
    file: options.File,
    quasi_identifiers: Annotated[
        list[str] | None,
        options.columns("Columns that together could point at a person.", show_default="all that have no other role"),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        options.columns("Columns that nobody should learn about a person."),
    ] = None,
    target: Annotated[
        str | None,
        options.column("The column that a model predicts: no quasi-identifier."),
    ] = None,
    unit: Annotated[
        str | None,
        options.column(
            "The column that says which person a record belongs to: groups are then counted in persons, too.",
            show_default="each record is a person",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        options.column("The column that says how many people of the population each record stands for."),
    ] = None,
    categorical: options.Categorical = None,
    hierarchies: Annotated[
        list[str] | None,
        typer.Option(
            help="Hierarchies of sensitive columns, for t-closeness: CSV files with one value per row and its labels, "
            "from fine to coarse.",
            metavar="COLUMN=FILE,...",
            rich_help_panel=options.COLUMNS,
            show_default="none",
        ),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(
            help="The people that the file was drawn from: a file or a table with the quasi-identifiers, or only their "
            "number.",
            metavar="FILE|NUMBER",
            rich_help_panel=options.METHOD,
            show_default="not known",
        ),
    ] = None,
    missing_is: Annotated[
        Literal["value", "wildcard"],
        typer.Option(
            "--missing-is",
            help="What a missing quasi-identifier means: a value of its own, or a wildcard that matches anything.",
            metavar="WHAT",
            rich_help_panel=options.METHOD,
        ),
    ] = "value",
    min_k: Annotated[
        int | None,
        typer.Option(
            "--min-k",
            help="Exit with 1 when a group has fewer records (or persons, with --unit).",
            metavar="NUMBER",
            rich_help_panel=options.METHOD,
            show_default="no verdict",
        ),
    ] = None,
    pieces: OutOfCore = None,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Measure how well people hide in a file; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug), ExitStack() as open_tables:
        from sfumato.files.table_file import read_and_tell

        said = reading.parsed()
        if min_k is not None and min_k < 1:
            raise ParameterError(f"--min-k {min_k}: expected a whole number of at least 1.")
        if unit is not None and min_k is not None and missing_is == "wildcard":
            raise ParameterError(
                "--min-k with --unit and --missing-is wildcard: expected --missing-is value, since groups that overlap "
                "are not counted in persons."
            )
        source = blocks = None
        if is_chosen(console, file, pieces, said):
            blocks = open_tables.enter_context(opened(file))
        else:
            source = read_and_tell(console, file, said)
        people = _read_population(console, population, source, said, open_tables)
        files = options.split_pairs(hierarchies, "--hierarchies", "disease=disease.csv")
        trees = {name: _read_hierarchy(Path(path)) for name, path in files.items()}
        names = (quasi_identifiers, sensitive, categorical)
        found, reasons = _measured(
            console, file, source or blocks, people, names, target, unit, weights, missing_is, trees,
            is_judged=min_k is not None,
        )  # fmt: skip
        reached = found.k if found.groups.smallest_in_persons is None else found.groups.smallest_in_persons
        holds = None if min_k is None else reached >= min_k
        if console.as_json:
            judged = {"min_k": min_k, "holds": holds, "seconds": round(console.seconds, 3)}
            console.result({"file": str(file), **found.to_dict(), **judged})
        else:
            _report(console, file, found, reasons)
            if min_k is not None:
                counted = ("person" if unit is not None else "record") + ("s" if reached != 1 else "")
                says = f"The smallest group has {reached:,} {counted}; --min-k asks for at least {min_k:,}."
                console.verdict(says, holds=bool(holds))
        if holds is False:
            raise typer.Exit(GUARANTEE_FAILED)


def _read_population(
    console: Console, given: str | None, source: FileTable | None, reading: ReadingOptions, open_tables: ExitStack
) -> Any:
    """Return the population's table or number; its columns get the types that the file's have.

    Where the file itself is worked through piece by piece, so is a population in Parquet or DuckDB.
    """
    from sfumato.files.table_file import format_of, location, read_file

    if given is None:
        return None
    if given.isdecimal() and not Path(given).exists():
        return int(given)
    people = location(given)
    if source is None and (not isinstance(people, Path) or people.is_file()) and format_of(people) == "parquet":
        return open_tables.enter_context(opened(people))
    types = source.style.types if source is not None and source.style is not None else {}
    with console.step(f"reading {people.name}"):
        return read_file(people, reading, types_if_present=types).table


def _read_hierarchy(path: Path) -> Any:
    from sfumato.hierarchies import read_hierarchy

    if not path.is_file():
        raise ParameterError(f"--hierarchies names {str(path)!r}, which is no file. Check the name and the folder.")
    return read_hierarchy(path)


def _measured(
    console: Console,
    file: Location,
    source: Any,
    people: Any,
    names_of_columns: tuple[list[str] | None, list[str] | None, list[str] | None],
    target: str | None,
    unit: str | None,
    weights: str | None,
    missing_is: Literal["value", "wildcard"],
    hierarchies: dict[str, Any],
    *,
    is_judged: bool,
) -> tuple[Measurement, Reasons]:
    """Measure what was read, or opened to be read in pieces; return also what each column was taken for, and why."""
    from sfumato.files.table_file import FileTable
    from sfumato.measurement import measure as measure_table
    from sfumato.parquet import measure as measure_pieces

    is_whole = isinstance(source, FileTable)
    columns = source.table.column_names if is_whole else source.names
    quasi_identifiers, sensitive, categorical = names_of_columns
    named = {
        "--quasi-identifiers": options.split_names(quasi_identifiers, columns),
        "--sensitive": options.split_names(sensitive, columns),
        "--categorical": options.split_names(categorical, columns),
        "--target": [target] if target is not None else [],
        "--unit": [unit] if unit is not None else [],
        "--weights": [weights] if weights is not None else [],
        "--hierarchies": list(hierarchies),
    }
    for option, names in named.items():
        options.check_columns(option, names, columns)
    if target is not None and (both := {target} & {*named["--quasi-identifiers"], *named["--unit"]}):
        raise ParameterError(f"the column {both.pop()!r} is named with --target and in another role. Name it once.")
    table = source.table if is_whole else source.head(1 << 20)
    chosen, reasons = measured_roles(console, table, named, is_whole=is_whole, is_judged=is_judged)
    asked: dict[str, Any] = {
        "quasi_identifiers": chosen,
        "sensitive": named["--sensitive"],
        "population": people,
        "weights": weights,
        "unit": unit,
        "missing": missing_is,
        "categorical_features": named["--categorical"],
        "hierarchies": hierarchies,
    }
    if not is_whole:
        with console.step(f"measuring {file.name} piece by piece"):
            return measure_pieces(source, **asked, progress=progress_of(console)), reasons
    with console.step(f"measuring {source.table.num_rows:,} records"):
        return measure_table(source.table, **asked), reasons


# -- what is shown ---------------------------------------------------------------------------------------------


def _report(console: Console, file: Location, found: Measurement, reasons: Reasons) -> None:
    groups, uniqueness = found.groups, found.uniqueness
    console.heading(f"{file.name}: {len(found.quasi_identifiers)} quasi-identifiers")
    rows = [
        ("records", f"{found.n_records:,}"),
        ("records with a missing quasi-identifier", f"{found.n_with_missing:,}", found.missing_means),
        ("groups", f"{groups.n_groups:,}"),
        ("smallest group (k)", f"{groups.smallest:,}"),
        ("median group, largest group", f"{groups.quantiles_of_groups[0.5]:,}, {groups.largest:,}"),
        ("records that are unique", f"{uniqueness.n_unique:,}", f"{uniqueness.share:.2%} of the records"),
    ]
    if groups.smallest_in_persons is not None:
        rows.insert(4, ("fewest persons of a group", f"{groups.smallest_in_persons:,}"))
    console.facts(rows)
    show_roles(console, reasons)

    console.heading("records by the size of their group")
    console.facts(
        [
            (_sizes(part.low, part.high), f"{part.n_records:,}", f"{part.n_records / found.n_records:.1%}")
            for part in groups.histogram
            if part.n_records
        ]
    )
    console.heading("re-identification risk")
    console.records(["", "highest", "average", "above 0.05", "above 0.09", "above 0.2"], _risk_rows(found))
    if found.journalist.average is None:
        # Weights do not help where missing values match anything, so a file always works and is named first.
        console.text("  The last two need --population with a file, or --weights where groups do not overlap.")

    if uniqueness.population_size is not None:
        console.heading(f"unique among {uniqueness.population_size:,} people")
        console.facts(_population_rows(found))
    _report_criteria(console, found)
    _report_ranking(console, found)


def _sizes(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,} and more"
    return "1 (unique)" if high == 1 else f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def _risk_rows(found: Measurement) -> list[list[str]]:
    rows = []
    for risk in (found.prosecutor, found.journalist, found.marketer):
        shares = [None] * 3 if risk.above is None else list(risk.above.values())
        cells = [f"  {risk.attacker}", _number(risk.maximum), _number(risk.average)]
        cells += ["-" if share is None else f"{share:.1%}" for share in shares]
        rows.append(cells)
    return rows


def _population_rows(found: Measurement) -> list[tuple[str, ...]]:
    uniqueness = found.uniqueness
    rows: list[tuple[str, ...]] = []
    if uniqueness.n_unique_in_population is not None:
        rows.append(("records that are unique there", f"{uniqueness.n_unique_in_population:,}", "counted"))
    if uniqueness.n_not_in_population:
        rows.append(("records it has too few of", f"{uniqueness.n_not_in_population:,}", "the file is no part of it"))
    for estimate in uniqueness.estimates:
        name = f"estimated, {estimate.estimator.replace('_', ' ')}"
        about = estimate.reason if estimate.n_records is None else f"{estimate.share:.2%} of the records"
        rows.append((name, _number(estimate.n_records, 1), about or ""))
    return rows


def _report_criteria(console: Console, found: Measurement) -> None:
    columns: dict[str | None, list[CriterionValue]] = {}
    for part in found.criteria:
        if part.column is not None or part.value is not None:
            columns.setdefault(part.column, []).append(part)
    for column, parts in columns.items():
        if column is None and [part.criterion for part in parts] == ["k-anonymity"]:
            continue  # shown above
        console.heading("criteria" if column is None else f"criteria on {column}")
        console.facts([(part.criterion, _number(part.value), part.reason or part.meaning) for part in parts])


def _report_ranking(console: Console, found: Measurement) -> None:
    def shown(entries: Any) -> list[tuple[str, ...]]:
        return [
            (", ".join(entry.columns), f"{entry.n_unique:,}", f"{entry.share:.2%} of the records")
            for entry in entries[:_SHOWN]
        ]

    ranking = found.ranking
    console.heading("records that columns make unique by themselves")
    console.facts(shown(ranking.columns))
    if ranking.pairs:
        console.heading("records that two columns make unique")
        console.facts(shown(ranking.pairs))
    if len(ranking.grown) > 1:
        console.heading("the best pair, and the column that adds most, step by step")
        console.facts(shown(ranking.grown[1:]))
    if ranking.added:
        console.heading("unique records if a column were a quasi-identifier, too")
        console.facts(shown(ranking.added))
    if ranking.left_out and not console.quiet:
        from sfumato.files.table_file import listed

        names = listed(ranking.left_out)
        console.note(f"not tried in sets, because they identify most records alone or are too many: {names}")
