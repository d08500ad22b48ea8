# SPDX-License-Identifier: Apache-2.0
"""``sfumato anonymize``: read a file, train a guide, anonymize, retrain, write, and judge what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.cli.out_of_core import OutOfCore, is_chosen

ModelName = Literal[
    "gradient-boosting",
    "logistic-regression",
    "linear-regression",
    "random-forest",
    "neural-network",
    "decision-tree",
]
RepresentativeName = Literal["median", "member", "model", "mean", "midrange", "sample", "range", "bounds"]
TaskName = Literal["classification", "regression"]

HELP = options.help_text(
    "Make a file k-anonymous at the least cost to a model trained on it.",
    "Trains the model on the raw records, groups records by what the model makes of them, gives all records of a "
    "group the same quasi-identifiers, trains again, and shows what that cost. The written file is read back and its "
    "groups are counted before it gets its name.",
    examples=[
        "sfumato anonymize people.csv --target income -o released.csv",
        "sfumato anonymize people.csv --target income --k 50 --identifiers name,ssn\n"
        "    --quasi-identifiers age,zip,sex --limits zip=3 -o released.csv",
        "sfumato anonymize people.parquet --target price --model random-forest\n"
        "    --save partition.json -o released.parquet",
    ],
)


@options.reads_tables
def anonymize(
    file: options.File,
    target: Annotated[
        str | None,
        typer.Option(
            help="The column that the model predicts. It is not rewritten.",
            rich_help_panel=options.COLUMNS,
            show_default="none",
        ),
    ] = None,
    quasi_identifiers: Annotated[
        list[str] | None,
        options.columns(
            "Columns that together could point at a person; these are rewritten.",
            show_default="all that have no other role",
        ),
    ] = None,
    identifiers: options.Identifiers = None,
    keep: Annotated[
        list[str] | None,
        options.columns("Columns that may leave as they are, even if nearly every value is different."),
    ] = None,
    unit: Annotated[
        str | None,
        options.column(
            "The column that says which person a record belongs to: k then counts persons. It is dropped.",
            show_default="each record is a person",
        ),
    ] = None,
    categorical: options.Categorical = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            help="The finest detail that may leave: width of numbers, letters of text, days of dates.",
            metavar="age=5,zip=3",
            rich_help_panel=options.COLUMNS,
            show_default="none",
        ),
    ] = None,
    k: Annotated[
        int,
        typer.Option("--k", "-k", help="Records that every group must have at least.", rich_help_panel=options.METHOD),
    ] = 10,
    model: Annotated[
        ModelName,
        options.choice(
            "The model that guides and is retrained: gradient-boosting, logistic-regression, linear-regression, "
            "random-forest, neural-network or decision-tree."
        ),
    ] = "gradient-boosting",
    task: Annotated[
        TaskName | None,
        options.choice(
            "What the target holds: classification or regression.",
            show_default="regression for more than 20 different numbers",
        ),
    ] = None,
    guide: Annotated[
        str,
        typer.Option(
            help="What guides the groups: the model's probabilities or predictions, the target's own labels, or a "
            "column of the file with ready predictions, given as column:NAME (it is dropped).",
            metavar="WHAT",
            rich_help_panel=options.METHOD,
        ),
    ] = "probabilities",
    representative: Annotated[
        RepresentativeName,
        options.choice(
            "The values that a group's records get: those of one record (model, member, sample), their median, "
            "mean or midrange, or for publication range labels or two columns of bounds."
        ),
    ] = "model",
    test_fraction: Annotated[
        float,
        typer.Option(
            help="Share of the records held out to measure the model; 0 measures nothing.",
            rich_help_panel=options.METHOD,
        ),
    ] = 0.2,
    seed: Annotated[
        int, typer.Option(help="Seed of the split, the models and samples.", rich_help_panel=options.METHOD)
    ] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Threads. Their number does not change the groups.",
            rich_help_panel=options.METHOD,
            show_default="all cores",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the anonymized file goes, CSV or Parquet.",
            rich_help_panel=options.OUTPUT,
            show_default="nothing is written",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Where the partition goes, as JSON, for 'sfumato apply'. It is data about people, too.",
            metavar="PARTITION",
            rich_help_panel=options.OUTPUT,
            show_default="nothing is written",
        ),
    ] = None,
    pieces: OutOfCore = None,
    keep_order: options.KeepOrder = False,
    force: options.Force = False,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Make a file k-anonymous at the least cost to a model trained on it; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug):
        from sfumato.cli.anonymize_pieces import anonymize_pieces
        from sfumato.cli.anonymizing import anonymize_table
        from sfumato.cli.files import check_output, format_of, read_and_tell
        from sfumato.cli.request import check_numbers, parse_guide, resolve
        from sfumato.parquet.files import ParquetFiles

        said = reading.parsed()
        if output is not None:
            check_output(output, force=force, inputs=[file])
            format_of(output)
        if save is not None:
            check_output(save, force=force, inputs=[file, *([output] if output else [])], option="--save")
        check_numbers(k, test_fraction, seed)
        parse_guide(guide, target)
        obstacle = None
        if output is None or format_of(output) != "parquet":
            obstacle = "--out-of-core without a Parquet file to write: expected -o FILE.parquet."
        source = None
        if not is_chosen(console, file, pieces, said, obstacle=obstacle):
            source = read_and_tell(console, file, said)
        request = resolve(
            ParquetFiles(file).names if source is None else source.table.column_names,
            k=k,
            target=target,
            quasi_identifiers=quasi_identifiers,
            identifiers=identifiers,
            keep=keep,
            categorical=categorical,
            limits=limits,
            unit=unit,
            guide=guide,
            representative=representative,
            model=model,
            seed=seed,
            jobs=jobs,
        )
        with console.warnings_as_notes():
            if source is None and output is not None:
                anonymize_pieces(console, file, request, task, test_fraction, output, save, keep_order=keep_order)
            elif source is not None:
                anonymize_table(
                    console, file, source, request, task, test_fraction, output, save, keep_order=keep_order
                )
