# SPDX-License-Identifier: Apache-2.0
"""``sfumato minimize``: learn from a file how coarsely each column must be collected, and print it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli import options
from sfumato.cli.console import Console
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.auditing.minimize_files import LearnedGeneralization
    from sfumato.files.table_file import Location
    from sfumato.minimize import AttributeCosts
    from sfumato.minimize.sweep_result import SweepPoint

HELP = options.help_text(
    "Learn what must be collected at all, and how finely.",
    "From a sample in full resolution, learn which values of each column a classifier does not need to distinguish, "
    "and write the coarsest generalization that costs it at most --max-loss of its accuracy. Many settings are tried; "
    "an attacker tries to reconstruct the personal columns from the buckets of each. The generalization is a plain "
    "document that clients apply themselves: as SQL, or as a form that asks for buckets. --preview shows people "
    "beforehand what will be asked, and why.",
    examples=[
        "sfumato minimize sample.csv --target employed --personal sex,race,disability\n    -o generalization.json",
        "sfumato minimize sample.parquet --target income --max-loss 0.005\n"
        "    -o generalization.json --sql view.sql --form form.html --schema record.json",
        "sfumato minimize sample.csv --target income --required age --forbidden race\n"
        "    --max-buckets zip=4 -o generalization.json --preview preview.html",
        "sfumato apply generalization.json new.csv -o minimized.csv",
    ],
)

_MOST_WANTED = 30  # columns that the attacker wants for one reason are listed up to this number


@options.command
def minimize(
    file: options.File,
    target: Annotated[
        str,
        options.column("The column with the class that is to be predicted.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where the generalization goes, as JSON.",
            rich_help_panel=options.OUTPUT,
            show_default=False,
        ),
    ],
    personal: Annotated[
        list[str] | None,
        options.columns(
            "Columns that an attacker would like to know.",
            show_default="those whose names or values say so, such as sex, age or race",
        ),
    ] = None,
    identifiers: Annotated[
        list[str] | None,
        options.columns("Columns that name a person; they are left out, and never collected."),
    ] = None,
    keep: options.Keep = None,
    categorical: options.Categorical = None,
    required: Annotated[
        list[str] | None, options.columns("Columns that must be collected, in at least two buckets.")
    ] = None,
    forbidden: Annotated[
        list[str] | None,
        options.columns("Columns that may not be collected; an attacker may still want to know them."),
    ] = None,
    max_buckets: Annotated[
        list[str] | None,
        typer.Option(
            help="Budgets: the most buckets of some columns.",
            metavar="age=4,zip=3",
            rich_help_panel=options.COLUMNS,
            show_default="none",
        ),
    ] = None,
    hierarchies: Annotated[
        list[str] | None,
        typer.Option(
            help="Hierarchy files of columns with many categories, one line per value: the value, then its coarser "
            "labels up to *. Rare categories are placed where their parents are.",
            metavar="job=FILE,zip=FILE",
            rich_help_panel=options.COLUMNS,
            show_default="none",
        ),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            help="Maximum rise of the classification error, as a share, over full resolution.",
            rich_help_panel=options.METHOD,
            show_default="0.01; none with --max-risk",
        ),
    ] = None,
    max_risk: Annotated[
        float | None,
        typer.Option(
            help="Maximum share of personal values that the attacker guesses right.",
            rich_help_panel=options.METHOD,
            show_default="none",
        ),
    ] = None,
    method: Annotated[
        Literal["tree", "uniform", "features", "apt", "iterative", "adversarial", "information"],
        options.choice(
            "tree (privacy-aware), uniform, features (selection), apt, iterative, adversarial or information (the "
            "last two are neural and need the extra neural)."
        ),
    ] = "tree",
    search: Annotated[
        Literal["greedy", "thorough"],
        options.choice("Search of the tree: greedy, or thorough (tries more orders of categories; longer)."),
    ] = "greedy",
    floor: Annotated[
        int,
        typer.Option(
            help="Minimum records of the sample in a listed category or a bucket; rarer ones are pooled.",
            metavar="NUMBER",
            rich_help_panel=options.METHOD,
        ),
    ] = 10,
    risk: Annotated[
        Literal["table", "family"],
        options.choice("The attacker: counts (table), or the strongest of several (family), which takes longer."),
    ] = "table",
    seed: Annotated[int, typer.Option(help="Random seed.", rich_help_panel=options.METHOD)] = 0,
    sql: Annotated[
        Path | None,
        typer.Option(
            help="Write a query that returns the buckets.", rich_help_panel=options.OUTPUT, show_default="none"
        ),
    ] = None,
    dialect: Annotated[
        Literal["postgresql", "duckdb", "spark"],
        typer.Option(help="The database of --sql.", metavar="NAME", rich_help_panel=options.OUTPUT),
    ] = "postgresql",
    form: Annotated[
        Path | None,
        typer.Option(
            help="Write a web form that asks only for buckets.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    preview: Annotated[
        Path | None,
        typer.Option(
            help="Write a web page that shows people what will be asked and why, and what will not.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    titles: Annotated[
        Path | None,
        typer.Option(
            help="A policy, or any TOML file, whose section \\[titles] has the questions of --form and --preview, and "
            "whose sections \\[labels.COLUMN] have words for values.",
            rich_help_panel=options.OUTPUT,
            show_default="names of columns",
        ),
    ] = None,
    language: Annotated[
        Literal["en", "de"],
        typer.Option(
            help="Language of --form and --preview: en or de.", metavar="NAME", rich_help_panel=options.OUTPUT
        ),
    ] = "en",
    schema: Annotated[
        Path | None,
        typer.Option(
            help="Write the JSON Schema of a minimized record.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    javascript: Annotated[
        Path | None,
        typer.Option(
            help="Write a JavaScript function that turns a record into buckets.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Write a chart of all settings tried, as SVG.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="Write a chart of what each column costs and is worth, one step finer or coarser, as SVG.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    force: options.Force = False,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Learn what must be collected at all, and how finely; ``HELP`` is what users read."""
    from dataclasses import replace

    from sfumato.auditing.minimize_files import Exports, MinimizeSettings, minimize_table, read_words, write_exports
    from sfumato.files.table_file import read_and_tell

    exports = Exports(output, sql, form, preview, schema, javascript, plot, costs, dialect=dialect, language=language)
    _check_outputs(exports.paths(), file, force=force)
    if titles is not None and form is None and preview is None:
        raise ParameterError(
            "--titles without --form or --preview: expected one of them, since only these have titles. Add --form."
        )
    if max_loss is None and max_risk is None:
        max_loss = 0.01
    settings = MinimizeSettings(
        target, max_loss=max_loss, max_risk=max_risk, method=method, search=search, floor=floor, risk=risk, seed=seed
    )
    source = read_and_tell(console, file, reading)
    columns = source.table.column_names
    settings = replace(
        settings,
        personal=options.split_names(personal, columns),
        identifiers=options.split_names(identifiers, columns),
        keep=options.split_names(keep, columns),
        categorical=options.split_names(categorical, columns),
        required=options.split_names(required, columns),
        forbidden=options.split_names(forbidden, columns),
        max_buckets=_budgets(options.split_pairs(max_buckets, "--max-buckets", "age=4")),
        hierarchies=_files(options.split_pairs(hierarchies, "--hierarchies", "job=job.csv")),
    )
    settings.check_columns(columns)
    if titles is not None:
        exports = replace(exports, words=read_words(titles, columns))
    with console.warnings_as_notes():
        done = minimize_table(console, source, settings, with_costs=exports.needs_costs)
    write_exports(done, source, exports)
    _show(console, file, list(exports.paths().values()), done)


def _budgets(pairs: dict[str, str]) -> dict[str, int]:
    others = [name for name, most in pairs.items() if not most.isdigit() or int(most) < 1]
    if others:
        raise ParameterError(f"--max-buckets of {others[0]!r}: expected an integer >= 1, such as --max-buckets age=4.")
    return {name: int(most) for name, most in pairs.items()}


def _files(pairs: dict[str, str]) -> dict[str, Path]:
    others = [path for path in pairs.values() if not Path(path).is_file()]
    if others:
        raise ParameterError(f"--hierarchies names {others[0]!r}, which is not a file. Check the name and the folder.")
    return {name: Path(path) for name, path in pairs.items()}


def _check_outputs(paths: dict[str, Path], file: Location, *, force: bool) -> None:
    from sfumato.files.table_file import check_output

    seen: dict[Path, str] = {}
    for name, path in paths.items():
        option = "-o" if name == "document" else f"--{name}"
        check_output(path, force=force, inputs=[file], option=option)
        other = seen.setdefault(path.absolute(), option)
        if other != option:
            raise ParameterError(f"{other} and {option} name the same file {str(path)!r}. Give them different names.")


def _show(console: Console, file: Location, paths: list[Path], done: LearnedGeneralization) -> None:
    from sfumato.auditing.minimize_files import NAMED

    swept, chosen, max_loss = done.swept, done.chosen, done.max_loss
    nothing, everything = swept.limits
    written = [str(path) for path in paths]
    if console.as_json:
        console.result(
            {
                "file": str(file),
                "output": written[0],
                "written": written,
                "max_loss": max_loss,
                "minimizer": chosen.minimizer,
                "parameters": dict(chosen.parameters),
                "personal": list(swept.personal),
                "personal_because": _reasons(done),
                "n_buckets": dict(zip(chosen.generalization.names, chosen.generalization.n_buckets, strict=True)),
                "error": {"full": nothing.test_error, "buckets": chosen.test_error, "nothing": everything.test_error},
                "risk": {"full": nothing.test_risk, "buckets": chosen.test_risk, "nothing": everything.test_risk},
                "certified_risk": {
                    "full": nothing.certified_risk,
                    "buckets": chosen.certified_risk,
                    "nothing": everything.certified_risk,
                },
                "keeps_max_loss": max_loss is None or done.lost <= max_loss,
                "left_out": dict(swept.left_out),
                "costs": None if done.costs is None else done.costs.to_dicts(),
                "n_settings": len(swept.points) - 2,
                "seconds": round(console.seconds, 3),
            }
        )
        return
    console.heading(f"{file.name}: what must be collected")
    rows = [
        (attribute.name, f"{attribute.n_buckets}" if attribute.is_collected else "-", _about(attribute))
        for attribute in chosen.generalization.attributes
    ]
    console.facts(rows)
    if done.costs is not None:
        _show_costs(console, done.costs)
    console.heading("columns that the attacker wants")
    reasons = _reasons(done)
    if len(reasons) > _MOST_WANTED and len(set(reasons.values())) == 1:
        console.text(f"  {len(reasons):,} columns: {next(iter(reasons.values()))}")
    else:
        console.facts([(name, "", reason) for name, reason in reasons.items()])
    if NAMED not in done.wanted.values():
        console.text("The risk below is for these columns alone. Name others with --personal.")
    console.heading("on held-out records")
    console.records(
        ["", "full resolution", "buckets", "nothing collected"],
        [
            ["  misclassified", *(f"{p.test_error:.1%}" for p in (nothing, chosen, everything))],
            ["  reconstructed by an attacker", *(f"{p.test_risk:.1%}" for p in (nothing, chosen, everything))],
            ["  by any attacker, at most", *map(_certified, (nothing, chosen, everything))],
        ],
    )
    console.facts(
        [
            ("settings tried", f"{len(swept.points) - 2:,}"),
            ("chosen", "", _chosen(chosen)),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    console.text(f"Written: {', '.join(written)}")
    if max_loss is not None and done.lost > max_loss:
        console.note(
            f"the loss is {done.lost:.1%} on the held-out records, although it was within {max_loss:.1%} where the "
            "setting was chosen. Use more records, or a smaller --max-loss.",
            is_warning=True,
        )
    if chosen is nothing:
        console.note(
            "every coarser setting loses more: everything is collected in full. Allow a larger --max-loss.",
            is_warning=True,
        )
    if chosen is everything and max_loss is not None:
        if everything.validation_error <= nothing.validation_error:
            advice = (
                "Even in full resolution the model is no better than always giving the most frequent answer. Pass more "
                "records, or a sample with as many of each class."
            )
        else:
            advice = (
                "If the model is to use the columns, give a smaller --max-loss, or a sample with more records of rare "
                "classes."
            )
        console.note(
            f"collecting nothing costs no more than --max-loss {max_loss:g} on these records: no column is collected, "
            f"and a form has no questions. {advice}",
            is_warning=True,
        )


def _show_costs(console: Console, costs: AttributeCosts) -> None:
    from sfumato.minimize.attribute_steps import DIFFERENCES

    console.heading("what each column costs and is worth")
    (_, *head), *lines = costs.lines()
    _show_steps(console, head, lines)
    console.text(DIFFERENCES)


def _show_steps(console: Console, head: list[str], lines: list[list[str]]) -> None:
    """Print a line per step; where names of columns leave too little room for numbers, they have lines of their own."""
    rooms = [max(map(len, column)) + 2 for column in zip(head, *(cells for _, *cells in lines), strict=True)]
    if max(len(name) for name, *_ in lines) + 4 + sum(rooms) <= console.out.width:
        console.records(["", *head], [[f"  {name}", *cells] for name, *cells in lines])
        return
    steps_of: dict[str, list[list[str]]] = {}
    for name, *cells in lines:
        steps_of.setdefault(name, []).append(cells)
    console.text("    " + "".join(f"{word:{room}}" for word, room in zip(head, rooms, strict=True)).rstrip())
    for name, steps in steps_of.items():
        console.text(f"  {name}")
        for cells in steps:
            console.text("    " + "".join(f"{cell:{room}}" for cell, room in zip(cells, rooms, strict=True)).rstrip())


def _certified(point: SweepPoint) -> str:
    return "" if point.certified_risk is None else f"{point.certified_risk:.1%}"


def _reasons(done: LearnedGeneralization) -> dict[str, str]:
    """Return why the attacker wants each column, with the option that named it."""
    from sfumato.auditing.minimize_files import NAMED

    return {name: "named in --personal" if reason == NAMED else reason for name, reason in done.wanted.items()}


def _about(attribute: Any) -> str:
    return f"of {attribute.n_before}" if attribute.is_collected else "not collected"


def _chosen(point: SweepPoint) -> str:
    told = ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in point.parameters.items()
    )
    return f"{point.minimizer}({told})" if told else point.minimizer
