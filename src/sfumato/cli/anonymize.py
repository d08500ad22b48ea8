# SPDX-License-Identifier: Apache-2.0
"""``sfumato anonymize``: read a file, train a guide, anonymize, retrain, write, and judge what was written."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sfumato.cli.files import FileTable
    from sfumato.cli.judging import Recount
    from sfumato.cli.request import Request
    from sfumato.cli.training import Target, Utility

_COLUMNS = "Columns"
_METHOD = "Method"

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
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file, one record per row.", show_default=False)],
    target: Annotated[
        str | None,
        typer.Option(
            help="The column that the model predicts. It is not rewritten.",
            rich_help_panel=_COLUMNS,
            show_default="none",
        ),
    ] = None,
    quasi_identifiers: Annotated[
        list[str] | None,
        typer.Option(
            "--quasi-identifiers",
            help="Columns that together could point at a person; these are rewritten.",
            metavar="A,B,...",
            rich_help_panel=_COLUMNS,
            show_default="all that have no other role",
        ),
    ] = None,
    identifiers: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns that name a person; they are dropped.",
            metavar="A,B,...",
            rich_help_panel=_COLUMNS,
            show_default="none",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns that may leave as they are, even if nearly every value is different.",
            metavar="A,B,...",
            rich_help_panel=_COLUMNS,
            show_default="none",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="The column that says which person a record belongs to: k then counts persons. It is dropped.",
            metavar="COLUMN",
            rich_help_panel=_COLUMNS,
            show_default="each record is a person",
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of numbers that are codes, not amounts.",
            metavar="A,B,...",
            rich_help_panel=_COLUMNS,
            show_default="none",
        ),
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            help="The finest detail that may leave: width of numbers, letters of text, days of dates.",
            metavar="age=5,zip=3",
            rich_help_panel=_COLUMNS,
            show_default="none",
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("--k", "-k", help="Records that every group must have at least.", rich_help_panel=_METHOD)
    ] = 10,
    model: Annotated[
        ModelName,
        typer.Option(
            help="The model that guides and is retrained: gradient-boosting, logistic-regression, linear-regression, "
            "random-forest, neural-network or decision-tree.",
            metavar="NAME",
            rich_help_panel=_METHOD,
        ),
    ] = "gradient-boosting",
    task: Annotated[
        TaskName | None,
        typer.Option(
            help="What the target holds: classification or regression.",
            metavar="NAME",
            rich_help_panel=_METHOD,
            show_default="regression for more than 20 different numbers",
        ),
    ] = None,
    guide: Annotated[
        str,
        typer.Option(
            help="What guides the groups: the model's probabilities or predictions, the target's own labels, or a "
            "column of the file with ready predictions, given as column:NAME (it is dropped).",
            metavar="WHAT",
            rich_help_panel=_METHOD,
        ),
    ] = "probabilities",
    representative: Annotated[
        RepresentativeName,
        typer.Option(
            help="The values that a group's records get: those of one record (model, member, sample), their median, "
            "mean or midrange, or for publication range labels or two columns of bounds.",
            metavar="NAME",
            rich_help_panel=_METHOD,
        ),
    ] = "model",
    test_fraction: Annotated[
        float,
        typer.Option(
            help="Share of the records held out to measure the model; 0 measures nothing.", rich_help_panel=_METHOD
        ),
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of the split, the models and samples.", rich_help_panel=_METHOD)] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Threads. Their number does not change the groups.", rich_help_panel=_METHOD, show_default="all cores"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the anonymized file goes, CSV or Parquet.",
            rich_help_panel="Output",
            show_default="nothing is written",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Where the partition goes, as JSON, for 'sfumato apply'. It is data about people, too.",
            metavar="PARTITION",
            rich_help_panel="Output",
            show_default="nothing is written",
        ),
    ] = None,
    force: options.Force = False,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Make a file k-anonymous at the least cost to a model trained on it; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug):
        from sfumato.cli.files import check_output, format_of, read_file
        from sfumato.cli.request import check_numbers, parse_guide, resolve

        said = reading.parsed()
        if output is not None:
            check_output(output, force=force, inputs=[file])
            format_of(output)
        if save is not None:
            check_output(save, force=force, inputs=[file, *([output] if output else [])], option="--save")
        check_numbers(k, test_fraction, seed)
        parse_guide(guide, target)
        with console.step(f"reading {file.name}"):
            source = read_file(file, said)
        for sentence in source.notes:
            console.note(sentence)
        request = resolve(
            source.table.column_names,
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
            _run(console, file, source, request, task, test_fraction, output, save)


def _run(
    console: Console,
    file: Path,
    source: FileTable,
    request: Request,
    task: TaskName | None,
    test_fraction: float,
    output: Path | None,
    save: Path | None,
) -> None:
    """Measure on a split, then anonymize all records, write and judge."""
    import numpy as np

    from sfumato.cli.judging import compact_dictionaries, judged_in_memory, plain_values, recount, write_judged
    from sfumato.cli.training import fit, growing, read_target, rows_of

    table = source.table
    if table.num_rows < request.k:
        raise ParameterError(
            f"--k {request.k} with {table.num_rows:,} records: expected at most as many as there are records. Lower k."
        )
    request.check_schema(table)
    target = read_target(table, request.target, task) if request.target is not None else None
    if target is not None:
        _note_target(console, table, request, target)
    utility = _measure(console, table, target, request, test_fraction) if target is not None and test_fraction else None

    every_row = np.arange(table.num_rows)
    model = None
    if request.guide in ("probabilities", "predictions"):
        assert target is not None
        known = np.flatnonzero(target.known)
        with console.step(f"training the guide on all {len(known):,} records"):
            model = fit(_new_model(request, target)(), request.features(rows_of(table, known)), target.values[known])
    anonymizer = request.new_anonymizer()
    with console.step(growing(f"anonymizing all {table.num_rows:,} records")):
        released = anonymizer.fit_transform(table, _guide(table, target, request, model, every_row))
        rewritten = anonymizer.partition_.output_names(anonymizer.schema_.quasi_identifiers)
        released = compact_dictionaries(released, rewritten)

    units = plain_values(table.column(request.unit)) if request.unit is not None else None

    def judge(read: Any) -> Recount:
        return recount(read, rewritten, request.k, units=units)

    beside = {save: lambda path: _write_partition(path, anonymizer, request, source)} if save is not None else {}
    if output is not None:
        with console.step(f"writing {output.name}, reading it back and counting its groups"):
            counted = write_judged(released, output, style=source.style, judge=judge, beside=beside)
    else:
        with console.step("counting the groups"):
            counted = judged_in_memory(released, judge=judge, beside=beside)
    _report(console, file, request, target, utility, anonymizer, counted, output, save)


def _new_model(request: Request, target: Target) -> Any:
    from sfumato.cli.models import make_model

    def new() -> Any:
        return make_model(
            request.model,
            target.task,
            request.seed,
            categorical=request.categorical,
            n_jobs=request.jobs if request.jobs is not None else -1,
            n_records=int(target.known.sum()),
        )

    new()  # a model that does not fit the task is refused before any work
    return new


def _guide(
    table: Any, target: Target | None, request: Request, model: Any, rows: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Return what guides the groups of these records."""
    from sfumato.cli.training import guide_column_values, guide_of, labels_of, rows_of

    if request.guide_column is not None:
        return guide_column_values(table, request.guide_column)[rows]
    assert target is not None
    if request.guide == "labels":
        return labels_of(target)[rows]
    return guide_of(model, request.features(rows_of(table, rows)), request.guide)


def _measure(console: Console, table: Any, target: Target, request: Request, test_fraction: float) -> Utility | None:
    """Measure on a split what anonymization costs; None, with a note, where a split has too few records."""
    from sfumato.cli.training import measure_utility, person_codes, split_records

    units = person_codes(table, request.unit) if request.unit is not None else None
    n_known = int(target.known.sum())
    n_persons = n_known if units is None else len(set(units[target.known]))
    n_test = ceil(test_fraction * n_persons)
    # Fewer than two records or classes on a side teach nothing, and the rest has to be enough for one group.
    is_enough = n_test > 1 and n_persons - n_test >= max(request.k, 2)
    rows = split_records(target, test_fraction, request.seed, units) if is_enough else None
    if rows is None or len(set(target.values[rows[0]])) < 2:
        console.note(
            f"{n_known:,} records with a target are too few to hold some out and anonymize the rest with "
            f"k = {request.k}; nothing is measured."
        )
        return None
    compared = measure_utility(
        console,
        table,
        target,
        new_model=_new_model(request, target),
        new_anonymizer=request.new_anonymizer,
        guide=lambda model, rows: _guide(table, target, request, model, rows),
        features=request.features,
        rows=rows,
        is_comparable=request.representative not in ("range", "bounds"),
    )
    return compared.utility


def _note_target(console: Console, table: Any, request: Request, target: Target) -> None:
    from sfumato.frames import read_table
    from sfumato.schema import is_near_unique

    assert request.target is not None
    n_unknown = int((~target.known).sum())
    if n_unknown:
        console.note(
            f"{n_unknown:,} records have no {request.target!r}; they are anonymized, but nothing is trained on them."
        )
    column = read_table(table.select([request.target])).column(request.target, for_counting=True)
    if table.num_rows >= 10 and is_near_unique(column):
        console.note(
            f"more than half of the values of the target {request.target!r} occur once, and it leaves as it is: "
            "whoever knows a person's value finds the record. Round it before, or drop it from what you publish.",
            is_warning=True,
        )
    if request.representative in ("member", "model", "sample"):
        console.note(f"representative {request.representative}: each group shows the values of one real record.")


def _write_partition(path: Path, anonymizer: Any, request: Request, source: FileTable) -> None:
    """Save the partition with what 'sfumato apply' needs to read a later file the same way."""
    from sfumato.cli.methods import partition_document

    document = partition_document(anonymizer, k=request.k, unit=request.unit, keep=request.keep, style=source.style)
    path.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")), encoding="utf-8")


def _report(
    console: Console,
    file: Path,
    request: Request,
    target: Target | None,
    utility: Utility | None,
    anonymizer: Any,
    counted: Recount,
    output: Path | None,
    save: Path | None,
) -> None:
    from sfumato.cli.judging import verdict
    from sfumato.cli.training import utility_rows

    judged_on = "the written file" if output is not None else "the result in memory"
    schema = anonymizer.schema_
    unchanged = [name for name in schema.released if name not in schema.quasi_identifiers]
    if console.as_json:
        console.result(
            {
                "file": str(file),
                "output": None if output is None else str(output),
                "partition": None if save is None else str(save),
                "k": request.k,
                "target": request.target,
                "task": None if target is None else target.task,
                "model": request.model,
                "guide": request.guide if request.guide_column is None else f"column:{request.guide_column}",
                "representative": request.representative,
                "quasi_identifiers": request.quasi_identifiers,
                "dropped": list(schema.dropped),
                "unchanged": unchanged,
                "utility": None if utility is None else utility.to_dict(),
                "release": counted.to_dict() | {"information_loss": float(anonymizer.information_loss_)},
                "holds": counted.holds,
                "judged_on": judged_on,
                "seconds": round(console.seconds, 3),
            }
        )
        return
    if utility is not None:
        console.heading(f"{utility.metric} of {request.model} on {utility.n_test:,} held-out records")
        console.facts(utility_rows(utility))
    console.heading(f"release of {file.name}")
    console.facts(
        [
            ("records", f"{counted.n_records:,}"),
            ("rewritten columns", f"{len(request.quasi_identifiers)}"),
            ("groups", f"{counted.n_groups:,}"),
            ("smallest group", f"{counted.smallest_group:,}"),
            ("median group", f"{counted.median_group:,.0f}"),
            ("information loss (0 none, 1 all)", f"{anonymizer.information_loss_:.3f}"),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    console.text(f"Columns that leave unchanged: {', '.join(map(repr, unchanged)) or 'none'}.")
    console.verdict(verdict(counted, judged_on, is_by_person=request.unit is not None), holds=counted.holds)
    written = [str(path) for path in (output, save) if path is not None]
    if output is None:
        console.text("No records were written; give -o FILE to release them.")
    if written:
        console.text(f"Written: {', '.join(written)}")
    if utility is not None and not console.quiet:
        console.text(
            f"The {utility.metric} was measured on a split ({utility.n_train:,} records to train); the release was "
            "fitted on all records, with the guide trained on all of them."
        )
