# SPDX-License-Identifier: Apache-2.0
"""``sfumato anonymize``: read a file, train a guide, anonymize, retrain, write, and judge what was written."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from sfumato.anonymize import METHODS
from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.cli.out_of_core import OutOfCore, is_chosen, opened
from sfumato.models import MODELS
from sfumato.representatives import REPRESENTATIVES

DEFAULT_REPRESENTATIVE = "phantom"
TaskName = Literal["classification", "regression"]
if TYPE_CHECKING:
    from sfumato.backends.blocks.table import BlockTable

    ModelName = str
    RepresentativeName = str
    MethodName = str
else:  # the choices are what there is
    ModelName = Literal[tuple(MODELS)]
    RepresentativeName = Literal[tuple(REPRESENTATIVES)]
    MethodName = Literal[tuple(METHODS)]

HELP = options.help_text(
    "Make a file k-anonymous, at the least cost to a model trained on it.",
    "Trains a model, groups records with similar predictions, gives each group one set of quasi-identifier values, "
    "retrains, and reports the change in accuracy. Without --target, groups keep as much detail as they can. The "
    "output is read back and its groups are counted before the file appears; then the release is checked for what the "
    "groups do not hide.",
    "Name the columns that name a person (--identifiers: dropped) and those that nobody should learn (--sensitive: "
    "guarded by --l or --t). All others are rewritten, unless you list --quasi-identifiers: then the rest is released "
    "unchanged. 'sfumato init' proposes the roles.",
    examples=[
        "sfumato anonymize people.csv --identifiers name,ssn --target income\n    -o released.csv",
        "sfumato anonymize patients.csv --identifiers name --sensitive diagnosis\n"
        "    --l 3 --representative range -o released.csv",
        "sfumato anonymize people.csv --identifiers name,ssn --method full-domain\n"
        "    --hierarchies folder --suppression-limit 0.01 -o released.csv",
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
            show_default="none: no model",
        ),
    ] = None,
    target_values: Annotated[
        str,
        typer.Option(
            help="What is released of a target of numbers: exact values, round:WIDTH such as round:1000, or "
            "group-mean, the mean of each group.",
            metavar="WHAT",
            rich_help_panel=options.COLUMNS,
        ),
    ] = "exact",
    quasi_identifiers: Annotated[
        list[str] | None,
        options.columns(
            "Columns that together could point at a person; these are rewritten.",
            show_default="all that have no other role and name nobody",
        ),
    ] = None,
    identifiers: options.Identifiers = None,
    sensitive: Annotated[
        list[str] | None,
        options.columns("Columns that nobody should learn about a person; released unchanged, guarded by --l and --t."),
    ] = None,
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
    hierarchies: Annotated[
        list[str] | None,
        typer.Option(
            help="Files with one line per value, the value and then its coarser labels up to *: as age=FILE,zip=FILE, "
            "or a folder of files called like the columns, such as age.csv.",
            metavar="FOLDER",
            rich_help_panel=options.COLUMNS,
            show_default="none",
        ),
    ] = None,
    k: Annotated[
        int,
        typer.Option("--k", "-k", help="Records that every group must have at least.", rich_help_panel=options.METHOD),
    ] = 10,
    method: Annotated[
        MethodName | None,
        options.choice(
            "How groups are formed: model-guided, workload-aware (by the target's labels), mondrian, information-loss, "
            "hilbert, r-plus-tree, or full-domain (one level of its hierarchy for every column).",
            show_default="model-guided; without --target information-loss",
        ),
    ] = None,
    l: Annotated[  # noqa: E741  # the literature's name
        int | None,
        typer.Option(
            "--l",
            help="Distinct values of each sensitive column that every group must have.",
            metavar="NUMBER",
            rich_help_panel=options.METHOD,
            show_default="none",
        ),
    ] = None,
    t: Annotated[
        float | None,
        typer.Option(
            "--t",
            help="How far a group's sensitive values may be from those of all records, from 0 to 1.",
            metavar="NUMBER",
            rich_help_panel=options.METHOD,
            show_default="none",
        ),
    ] = None,
    suppression_limit: Annotated[
        float,
        typer.Option(
            help="Share of the records that may be left out: those that cost the others most detail.",
            rich_help_panel=options.METHOD,
        ),
    ] = 0.0,
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
        RepresentativeName | None,
        options.choice(
            "The values that a group's records get: a typical combination that nobody has (phantom), their median, "
            "mean or midrange, range labels, two columns of bounds, or one real record's (model, member, sample).",
            show_default=DEFAULT_REPRESENTATIVE,
        ),
    ] = None,
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
    jobs: Annotated[int, options.jobs(options.METHOD)] = options.ALL_CORES,
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
    with exit_codes(console, debug=debug), ExitStack() as open_tables:
        from sfumato.auditing.target_values import parse_target_values
        from sfumato.cli.anonymize_in_memory import anonymize_table
        from sfumato.cli.anonymize_in_pieces import anonymize_pieces
        from sfumato.cli.request import check_method, check_numbers, obstacle_to_pieces, parse_guide, resolve, settle
        from sfumato.files.table_file import check_output, format_of, read_and_tell

        options.check_jobs(jobs)
        said = reading.parsed()
        if output is not None:
            check_output(output, force=force, inputs=[file])
            format_of(output)
        if save is not None:
            check_output(save, force=force, inputs=[file], outputs=[output] if output else [], option="--save")
        check_numbers(k, test_fraction, seed, l, t, suppression_limit)
        parse_guide(guide)
        chosen = check_method(method, target, guide, representative=representative, limits=limits, save=save)
        obstacle = None
        if output is None or format_of(output) != "parquet":
            obstacle = "--out-of-core without a Parquet file to write: expected -o FILE.parquet."
        obstacle = obstacle or obstacle_to_pieces(chosen, hierarchies, suppression_limit)
        if target_values != "exact":
            obstacle = "--out-of-core with --target-values: expected exact values, or --in-memory."
        source, blocks = None, cast("BlockTable", None)  # one of them
        if is_chosen(console, file, pieces, said, obstacle=obstacle):
            blocks = open_tables.enter_context(opened(file))
        else:
            source = read_and_tell(console, file, said)
        request = resolve(
            blocks.names if source is None else source.table.column_names,
            method=chosen,
            k=k,
            l=l,
            t=t,
            target=target,
            quasi_identifiers=quasi_identifiers,
            identifiers=identifiers,
            sensitive=sensitive,
            keep=keep,
            categorical=categorical,
            limits=limits,
            hierarchies=hierarchies,
            unit=unit,
            guide=guide,
            representative=representative or DEFAULT_REPRESENTATIVE,
            suppression_limit=suppression_limit,
            model=model,
            seed=seed,
            jobs=jobs,
            target_values=parse_target_values(target_values, "--target-values"),
        )
        request = settle(
            console,
            request,
            blocks.head(1 << 20) if source is None else source.table,
            is_chosen=bool(quasi_identifiers),
            says_codes=categorical is not None,
        )
        with console.warnings_as_notes():
            if source is None and output is not None:
                anonymize_pieces(
                    console, file, blocks, request, task, test_fraction, output, save, keep_order=keep_order
                )
            elif source is not None:
                anonymize_table(
                    console, file, source, request, task, test_fraction, output, save, keep_order=keep_order
                )
