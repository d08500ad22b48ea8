# SPDX-License-Identifier: Apache-2.0
"""``sfumato measure``: measure how well people hide in a file, print it, and judge it if asked to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console
from sfumato.cli.printing import show_roles

if TYPE_CHECKING:
    from sfumato.auditing.measure_files import MeasuredTable
    from sfumato.files.table_file import Location
    from sfumato.measurement import Measurement
    from sfumato.measurement.measurement import CriterionValue

_SHOWN = 5  # columns and sets of a ranking; --json has all

HELP = options.help_text(
    "Measure how well people hide in any file.",
    "Print group sizes, the re-identification risk, unique records, the value of every criterion on the sensitive "
    "columns, and the columns that make most records unique. This is for the owner of the file: counts are exact, "
    "however small. With --min-k, exit code 1 means that a group is smaller.",
    examples=[
        "sfumato measure released.csv --quasi-identifiers age,zip,sex --min-k 10",
        "sfumato measure people.csv --quasi-identifiers age,zip,sex --sensitive disease\n    --population register.csv",
        "sfumato measure sample.parquet --sensitive income --weights weight --json",
    ],
)


@options.command
def measure(
    file: options.File,
    quasi_identifiers: Annotated[
        list[str] | None,
        options.columns("Columns that together could identify a person.", show_default="all that have no other role"),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        options.columns("Sensitive attributes."),
    ] = None,
    target: Annotated[
        str | None,
        options.column("The column that a model predicts; not a quasi-identifier."),
    ] = None,
    unit: Annotated[
        str | None,
        options.column(
            "The column that identifies the person of each record: groups are then counted in persons, too.",
            show_default="each record is a person",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        options.column("The column with the number of people in the population that each record represents."),
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
            help="The population of the sample: a file or a table with the quasi-identifiers, or its size.",
            metavar="FILE|NUMBER",
            rich_help_panel=options.METHOD,
            show_default="unknown",
        ),
    ] = None,
    missing_is: Annotated[
        Literal["value", "wildcard"],
        typer.Option(
            "--missing-is",
            help="How a missing quasi-identifier counts: as its own value, or as a wildcard that matches anything.",
            metavar="value|wildcard",
            rich_help_panel=options.METHOD,
        ),
    ] = "value",
    min_k: Annotated[
        int | None,
        typer.Option(
            "--min-k",
            help="Minimum group size, in records (or persons, with --unit); below it, the exit code is 1.",
            metavar="NUMBER",
            rich_help_panel=options.METHOD,
            show_default="no verdict",
        ),
    ] = None,
    out_of_core: options.OutOfCore = None,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Measure how well people hide in a file; ``HELP`` is what users read."""
    from dataclasses import replace

    from sfumato.auditing.measure_files import MeasureSettings, measure_table, open_population
    from sfumato.auditing.open_tables import columns_of, open_table

    files = options.split_pairs(hierarchies, "--hierarchies", "disease=disease.csv")
    settings = MeasureSettings(
        target=target,
        unit=unit,
        weights=weights,
        hierarchies={name: Path(path) for name, path in files.items()},
        missing=missing_is,
        min_k=min_k,
    )
    with (
        open_table(console, file, reading, out_of_core=out_of_core) as table,
        open_population(console, population, table, reading) as people,
    ):
        columns = columns_of(table)
        settings = replace(
            settings,
            quasi_identifiers=options.split_names(quasi_identifiers, columns),
            sensitive=options.split_names(sensitive, columns),
            categorical=options.split_names(categorical, columns),
        )
        done = measure_table(console, table, settings, name=file.name, population=people)
    if console.as_json:
        judged = {"min_k": min_k, "holds": done.holds, "seconds": round(console.seconds, 3)}
        console.result({"file": str(file), **done.found.to_dict(), **judged})
    else:
        _report(console, file, done)
        if min_k is not None:
            counted = ("person" if unit is not None else "record") + ("s" if done.smallest != 1 else "")
            says = f"The smallest group has {done.smallest:,} {counted}; --min-k requires at least {min_k:,}."
            console.verdict(says, holds=bool(done.holds))
    if done.holds is False:
        raise typer.Exit(GUARANTEE_FAILED)


def _report(console: Console, file: Location, done: MeasuredTable) -> None:
    found = done.found
    groups, uniqueness = found.groups, found.uniqueness
    console.heading(f"{file.name}: {len(found.quasi_identifiers)} quasi-identifiers")
    rows = [
        ("records", f"{found.n_records:,}"),
        ("records with a missing quasi-identifier", f"{found.n_with_missing:,}", found.missing_means),
        ("groups", f"{groups.n_groups:,}"),
        ("smallest group (k)", f"{groups.smallest:,}"),
        ("median group, largest group", f"{groups.quantiles_of_groups[0.5]:,}, {groups.largest:,}"),
        ("unique records", f"{uniqueness.n_unique:,}", f"{uniqueness.share:.2%} of the records"),
    ]
    if groups.smallest_in_persons is not None:
        rows.insert(4, ("minimum persons in a group", f"{groups.smallest_in_persons:,}"))
    console.facts(rows)
    show_roles(console, done.reasons)

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
        rows.append(("unique there", f"{uniqueness.n_unique_in_population:,}", "counted"))
    if uniqueness.n_not_in_population:
        rows.append(("records missing from it", f"{uniqueness.n_not_in_population:,}", "the file is not a part of it"))
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
    console.heading("unique records by single columns")
    console.facts(shown(ranking.columns))
    if ranking.pairs:
        console.heading("unique records by pairs of columns")
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
        console.note(f"not tried in sets, because they identify most records by themselves or are too many: {names}")
