# SPDX-License-Identifier: Apache-2.0
"""``sfumato frontier``: protections side by side, with what each costs a model and what it leaves to attackers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import INTERRUPTED, Console
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.files.table_file import Location
    from sfumato.policy import Policy
    from sfumato.report.frontier import Frontier
    from sfumato.report.frontier_row import FrontierRow

_PROTECTIONS, _MEASURING = "Protections", "Measuring"
_NEED_PUBLIC = ("epsilon", "private-release")

HELP = options.help_text(
    "Compare protections on your table: what each costs a model, and what it leaves to attackers.",
    "Train the model under every protection on the same random splits, measure it on held-out records, attack it and "
    "the table that would be shared, and show all in one table and one picture with intervals. Without a family, a few "
    "of each are compared. Nothing is released. The numbers are for the owner of the table: they are not private.",
    examples=[
        "sfumato frontier people.csv --target income -o frontier.html",
        "sfumato frontier people.csv --target income --k 5,10,100 --buckets 10,50 --attacks threshold,rmia",
        "sfumato frontier people.csv --target income --epsilon 0.5,1,3 --public public.toml --k 100",
        "sfumato frontier policy.toml --k-release 5,50 --l 3 -o frontier.svg",
    ],
)


def _numbers(help: str) -> Any:
    return typer.Option(help=help, metavar="NUMBER,...", rich_help_panel=_PROTECTIONS, show_default="none")


@options.command
def frontier(
    file: Annotated[
        options.Location,
        options.table_argument(
            "A CSV or Parquet file, a table such as duckdb:people.db?table=people, or a policy (.toml) that names one."
        ),
    ],
    target: Annotated[
        str | None, options.column("The column that the model predicts.", show_default="the policy's")
    ] = None,
    quasi_identifiers: Annotated[
        list[str] | None,
        options.columns("Columns that attackers may know.", show_default="all that have no other role"),
    ] = None,
    sensitive: Annotated[list[str] | None, options.columns("Sensitive attributes, for --l, --t and --anatomy.")] = None,
    secrets: Annotated[
        list[str] | None, options.columns("Columns that attackers guess.", show_default="the sensitive ones")
    ] = None,
    subgroups: Annotated[list[str] | None, options.columns("Columns whose groups are compared.")] = None,
    identifiers: options.Identifiers = None,
    categorical: options.Categorical = None,
    keep: options.Keep = None,
    unit: Annotated[
        str | None,
        options.column(
            "The column that identifies the person of each record: a person's records stay on one side of a split. It "
            "is dropped.",
            show_default="each record is a person",
        ),
    ] = None,
    k: Annotated[str | None, _numbers("Models that learn from groups of at least k people.")] = None,
    k_release: Annotated[str | None, _numbers("Tables of groups of at least k people.")] = None,
    l: Annotated[str | None, _numbers("Tables whose groups have l sensitive values.")] = None,  # noqa: E741
    t: Annotated[str | None, _numbers("Tables whose groups differ by at most t from all records.")] = None,
    buckets: Annotated[str | None, _numbers("Minimized columns, from trees with so many leaves.")] = None,
    anatomy: Annotated[str | None, _numbers("Two tables with l sensitive values per group.")] = None,
    epsilon: Annotated[str | None, _numbers("Models with differential privacy; needs --public.")] = None,
    private_release: Annotated[str | None, _numbers("Tables with differential privacy; needs --public.")] = None,
    counts: Annotated[str | None, _numbers("Noisy counts in cells of other people; needs --others.")] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            help="What is publicly known of columns, as TOML: bounds of numbers, lists of categories.",
            rich_help_panel=_PROTECTIONS,
            show_default="none",
        ),
    ] = None,
    others: Annotated[
        options.Location | None, options.table_option("Records of other people.", rich_help_panel=_PROTECTIONS)
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="The model that is protected.", metavar="NAME", rich_help_panel=_MEASURING),
    ] = "gradient-boosting",
    attacks: Annotated[
        str | None,
        typer.Option(
            help="A level (none, quick, standard, full), or names of attacks.",
            metavar="A,B,...",
            rich_help_panel=_MEASURING,
            show_default="threshold,attribute,release-membership,singling-out,inference",
        ),
    ] = None,
    shadows: Annotated[
        int | None,
        typer.Option(
            help="Shadow models for lira, rmia and the like.",
            metavar="N",
            rich_help_panel=_MEASURING,
            show_default="16, or as the level has",
        ),
    ] = None,
    splits: Annotated[int, typer.Option(help="Random splits.", metavar="N", rich_help_panel=_MEASURING)] = 5,
    test_fraction: Annotated[
        float, typer.Option(help="Share of the records held out.", metavar="SHARE", rich_help_panel=_MEASURING)
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Random seed.", metavar="N", rich_help_panel=_MEASURING)] = 0,
    jobs: Annotated[int, options.jobs(_MEASURING)] = options.ALL_CORES,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The page (.html), the picture (.svg), the table (.md) or the numbers (.json).",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    force: options.Force = False,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Compare protections; ``HELP`` is what users read."""
    from sfumato.auditing.frontier_files import FrontierSettings, frontier_of_file, read_public
    from sfumato.files.table_file import check_output, read_and_tell

    options.check_jobs(jobs)
    if output is not None:
        check_output(output, force=force, inputs=[file])
        if output.suffix not in (".html", ".svg", ".md", ".json"):
            raise ParameterError(f"-o {output.name!r}: expected a name that ends in .html, .svg, .md or .json.")
    given = {
        "k": k, "k-release": k_release, "l": l, "t": t, "buckets": buckets, "anatomy": anatomy, "epsilon": epsilon,
        "counts": counts, "private-release": private_release,
    }  # fmt: skip
    protections = {name: _listed(name, text) for name, text in given.items() if text is not None}
    for name in _NEED_PUBLIC:
        if name in protections and public is None:
            raise ParameterError(
                f"--{name} without --public: expected a file with what is publicly known of every column, such as "
                '[bounds] age = [0, 100] and [categories] sex = ["female", "male"].'
            )
    if "counts" in protections and others is None:
        raise ParameterError("--counts without --others: expected a table of other people with the same columns.")
    roles = {
        "quasi_identifiers": quasi_identifiers, "sensitive": sensitive, "identifiers": identifiers,
        "categorical": categorical, "keep": keep,
    }  # fmt: skip
    with console.warnings_as_notes():
        is_policy = isinstance(file, Path) and file.suffix == ".toml"
        table = None if is_policy else read_and_tell(console, file, reading)
        columns = [] if table is None else table.table.column_names
        policy = _policy(file, columns, model, roles, {"target": target, "unit": unit}, is_policy=is_policy)
        settings = FrontierSettings(
            protections=protections,
            **({} if attacks is None else {"attacks": _attacks(attacks)}),
            n_shadows=shadows,
            secrets=options.split_names(secrets, columns),
            subgroups=options.split_names(subgroups, columns),
            public={} if public is None else read_public(public),
            others=others,
            n_splits=splits,
            test_fraction=test_fraction,
            seed=seed,
            n_jobs=jobs,
        )

        def tell(row: FrontierRow) -> None:
            console.progress(_in_words(row))

        found = frontier_of_file(console, policy, table, settings, reading=reading, on_row=tell)
    _report(console, found, output, file)


def _policy(
    file: Location,
    columns: list[str],
    model: str,
    roles: Mapping[str, list[str] | None],
    names: Mapping[str, str | None],
    *,
    is_policy: bool,
) -> Policy:
    """Return the policy of a file, or one made from the options."""
    from sfumato.models import MODELS
    from sfumato.policy import Policy

    if model not in MODELS:
        raise ParameterError(f"--model {model!r}: expected one of {', '.join(MODELS)}.")
    if is_policy:
        given = [*(name for name, value in (*roles.items(), *names.items()) if value is not None)]
        if given:
            option = given[0].replace("_", "-")
            raise ParameterError(f"--{option} with a policy, which says it itself: expected one of them. Leave it out.")
        return Policy.read(Path(str(file)))
    if names["target"] is None:
        raise ParameterError("no --target: expected the column that the model predicts. Name it.")
    own = {name: None if value is None else options.split_names(value, columns) for name, value in roles.items()}
    spelled = {f"columns.{name}": f"--{name.replace('_', '-')}" for name in (*roles, *names)}
    return Policy.from_options(
        {**spelled, "model.name": "--model", "method.k": "--k"},
        data={"report": None, "audit": None},
        columns={**own, **names, **{name: own[name] or [] for name in ("sensitive", "identifiers", "keep")}},
        method={"k": 2},
        model={"name": model},
        audit={"level": "none"},
    )


def _listed(name: str, text: str) -> list[Any]:
    """Read the numbers of a family."""
    from sfumato.auditing.protection_families import SHORT_FORMS

    form = SHORT_FORMS[name]
    try:
        numbers = [int(part) if part.strip().isdigit() else float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(map(form.fits, numbers)):
        raise ParameterError(f"--{name} {text!r}: expected {form.expected}, such as --{name} {form.example}.")
    return numbers


def _attacks(text: str) -> str | list[str]:
    from sfumato.attack.named_attack import LEVELS

    return text if text in LEVELS else [part.strip().replace("-", "_") for part in text.split(",")]


def _in_words(row: FrontierRow) -> str:
    """Return a finished row in a line."""
    if "all" in row.reasons:
        return f"{row.name}: not measured. {row.reasons['all']}"
    said = [] if row.best is None else [f"score {row.best.value:.3f}"]
    if row.risk is not None:
        said.append(f"membership attack {row.risk:.3f}")
    return f"{row.name}: {', '.join(said)}"


def _report(console: Console, found: Frontier, output: Path | None, file: Location) -> None:
    from sfumato.files.table_file import unfinished
    from sfumato.report.frontier_page import console_table, lead, notes, reasons

    if output is not None:
        with unfinished(output) as [path]:
            text = found.to_html(f"Protections of {file.name}") if output.suffix == ".html" else None
            path.write_text(found.shown_as(output.suffix) if text is None else text, encoding="utf-8")
    if console.as_json:
        console.result(found.to_dict())
    else:
        percent = ", in percent" if found.metric == "accuracy" else ""
        console.heading(f"protections of {file.name}{percent}")
        console.records(*console_table(found, console.out.width))
        console.text("")
        for sentence in (lead(found), *reasons(found), *notes(found)):
            console.text(sentence)
        if output is None:
            console.text("More numbers and the picture: -o frontier.html.")
        if output is not None:
            console.text(f"Written: {output}")
    if not found.is_complete:
        raise typer.Exit(INTERRUPTED)
