# SPDX-License-Identifier: Apache-2.0
"""``sfumato minimize``: learn from a file how coarsely each column may be collected, and write that down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.errors import InputError, ParameterError

if TYPE_CHECKING:
    from sfumato.files.table_file import FileTable, Location
    from sfumato.minimize import MinimizerSweep
    from sfumato.minimize.sweep_result import SweepPoint

_METHODS = {
    "tree": "PrivacyAwareTree",
    "uniform": "UniformMinimizer",
    "features": "FeatureSelectionMinimizer",
    "apt": "AptMinimizer",
    "iterative": "IterativeMinimizer",
    "adversarial": "AdversarialMinimizer",
    "information": "MutualInformationMinimizer",
}

HELP = options.help_text(
    "Learn what must be collected at all, and how finely.",
    "From a sample in full resolution, learns which values of each column need not be told apart to predict the "
    "target, and writes the coarsest generalization that costs a classifier at most --max-loss of its accuracy. Many "
    "settings are tried; each is attacked by somebody who wants to reconstruct the personal columns from buckets. The "
    "generalization is a plain document that clients apply themselves: as SQL, or as a form that asks for buckets.",
    examples=[
        "sfumato minimize sample.csv --target employed --personal sex,race,disability\n    -o generalization.json",
        "sfumato minimize sample.parquet --target income --max-loss 0.005\n"
        "    -o generalization.json --sql view.sql --form form.html --schema record.json",
        "sfumato apply generalization.json new.csv -o minimized.csv",
    ],
)


@dataclass(frozen=True)
class Outputs:
    """The files that were asked for."""

    document: Path
    sql: Path | None
    form: Path | None
    schema: Path | None
    javascript: Path | None
    plot: Path | None

    def named(self) -> list[tuple[str, Path]]:
        """Options and paths of the files to write, the document first."""
        every = {
            "-o": self.document,
            "--sql": self.sql,
            "--form": self.form,
            "--schema": self.schema,
            "--javascript": self.javascript,
            "--plot": self.plot,
        }
        return [(option, path) for option, path in every.items() if path is not None]


@options.reads_tables
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
    max_loss: Annotated[
        float,
        typer.Option(
            help="How many more records, as a share, may be classified wrongly than with full resolution.",
            rich_help_panel=options.METHOD,
        ),
    ] = 0.01,
    method: Annotated[
        Literal["tree", "uniform", "features", "apt", "iterative", "adversarial", "information"],
        options.choice(
            "tree (privacy-aware), uniform, features (selection), apt, iterative, adversarial or information (the "
            "last two are neural and need the extra neural)."
        ),
    ] = "tree",
    floor: Annotated[
        int,
        typer.Option(
            help="Fewest records of the sample that a listed category or a bucket has; rarer ones are pooled.",
            metavar="NUMBER",
            rich_help_panel=options.METHOD,
        ),
    ] = 10,
    risk: Annotated[
        Literal["table", "family"],
        options.choice("The attacker: counts (table), or the strongest of several (family), which takes longer."),
    ] = "table",
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn.", rich_help_panel=options.METHOD)] = 0,
    sql: Annotated[
        Path | None,
        typer.Option(
            help="Where a query that gives the buckets goes.", rich_help_panel=options.OUTPUT, show_default="none"
        ),
    ] = None,
    dialect: Annotated[
        Literal["postgresql", "duckdb", "spark"],
        typer.Option(help="The database of --sql.", metavar="NAME", rich_help_panel=options.OUTPUT),
    ] = "postgresql",
    form: Annotated[
        Path | None,
        typer.Option(
            help="Where a web page that asks only for buckets goes.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    titles: Annotated[
        Path | None,
        typer.Option(
            help="A policy, or any TOML file, whose section \\[titles] says what the questions of --form are called.",
            rich_help_panel=options.OUTPUT,
            show_default="names of columns",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="Where the JSON Schema of a minimized record goes.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    javascript: Annotated[
        Path | None,
        typer.Option(
            help="Where a function that turns a record into buckets goes.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Where a picture of all settings that were tried goes, as SVG.",
            rich_help_panel=options.OUTPUT,
            show_default="none",
        ),
    ] = None,
    force: options.Force = False,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Learn what must be collected at all, and how finely; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug):
        from sfumato.auditing.roles import without_names
        from sfumato.auditing.titles import read_titles
        from sfumato.cli.minimize_report import show_minimized
        from sfumato.files.table_file import read_and_tell

        said = reading.parsed()
        outputs = Outputs(output, sql, form, schema, javascript, plot)
        _check_outputs(outputs, file, force=force)
        if titles is not None and form is None:
            raise ParameterError("--titles without --form: expected both, since only the form has titles. Add --form.")
        if not 0 <= max_loss <= 1:
            raise ParameterError(f"--max-loss {max_loss:g}: expected a share from 0 to 1. 0.01 is one point.")
        if floor < 1:
            raise ParameterError(
                f"--floor {floor}: expected 1 or more. 10 lists nothing that fewer than 10 records have."
            )
        if seed < 0:
            raise ParameterError(f"--seed {seed}: expected 0 or more.")
        source = read_and_tell(console, file, said)
        columns = source.table.column_names
        named = {
            "--target": [target],
            "--personal": options.split_names(personal, columns),
            "--identifiers": options.split_names(identifiers, columns),
            "--keep": options.split_names(keep, columns),
            "--categorical": options.split_names(categorical, columns),
        }
        _check_names(named, columns)
        titled = {} if titles is None else read_titles(titles, columns)
        decided = {name for names in named.values() for name in names}
        others = [name for name in columns if name not in decided]
        left = without_names(
            console, source.table, others, done="left out, and never collected",
            otherwise="To use it, name it in --keep.",
        )  # fmt: skip
        named["--identifiers"] += [name for name in others if name not in left]
        with console.warnings_as_notes():
            wanted = _wanted(source.table, named)
            swept = _sweep(console, source.table, named, list(wanted), method, floor, risk, seed)
        chosen = swept.coarsest(max_loss)
        _write(outputs, chosen, swept, source, dialect, titled)
        show_minimized(console, file, [path for _, path in outputs.named()], swept, chosen, max_loss, wanted)


def _check_outputs(outputs: Outputs, file: Location, *, force: bool) -> None:
    from sfumato.files.table_file import check_output

    seen: dict[Path, str] = {}
    for option, path in outputs.named():
        check_output(path, force=force, inputs=[file], option=option)
        other = seen.setdefault(path.absolute(), option)
        if other != option:
            raise ParameterError(f"{other} and {option} name the same file {str(path)!r}. Give them different names.")


def _check_names(named: dict[str, list[str]], columns: list[str]) -> None:
    for option, names in named.items():
        options.check_columns(option, names, columns)
    (target,) = named["--target"]
    for option in ("--personal", "--identifiers", "--categorical"):
        if target in named[option]:
            raise ParameterError(f"{option} names the target {target!r}: expected other columns. Take it out.")
    both = [name for name in named["--personal"] if name in named["--identifiers"]]
    if both:
        raise ParameterError(
            f"--personal and --identifiers both name {both[0]!r}: expected one of them. Identifiers are never "
            "collected."
        )


def _wanted(table: Any, named: dict[str, list[str]]) -> dict[str, str]:
    """Return the columns that the attacker wants, each with the reason."""
    from sfumato.frames import read_table
    from sfumato.policy.personal import find_personal

    if named["--personal"]:
        return dict.fromkeys(named["--personal"], "named in --personal")
    left_out = {*named["--target"], *named["--identifiers"]}
    names = [name for name in table.column_names if name not in left_out]
    return find_personal(read_table(table, categorical=named["--categorical"]), names)


def _sweep(
    console: Console,
    table: Any,
    named: dict[str, list[str]],
    personal: list[str],
    method: str,
    floor: int,
    risk: Literal["table", "family"],
    seed: int,
) -> MinimizerSweep:
    import numpy as np

    from sfumato import minimize as minimizers
    from sfumato.auditing.utility import MOST_CLASSES_OF_NUMBERS, read_target, rows_of

    (target,) = named["--target"]
    classes = read_target(table, target, None)
    if classes.task != "classification":
        raise InputError(
            f"the target {target!r} has more than {MOST_CLASSES_OF_NUMBERS} distinct numbers: expected classes, which "
            "is what minimizers keep predictable. Put the numbers into classes first, for example above and below the "
            "median, or give another --target."
        )
    if not classes.known.all():
        console.note(f"{int((~classes.known).sum()):,} records have no {target} and are left out.")
    rows = np.flatnonzero(classes.known)
    records = rows_of(table.drop_columns([target, *named["--identifiers"]]), rows)
    minimizer = getattr(minimizers, _METHODS[method])(
        personal=personal,
        categorical_features=[name for name in named["--categorical"] if name in records.column_names] or None,
        floor=floor,
        random_state=seed,
        n_jobs=-1,
    )
    with console.step(f"learning from {len(rows):,} records how coarse is fine enough"):
        return minimizers.sweep_minimizers(
            minimizer, records, classes.values[rows], risk=risk, random_state=seed, n_jobs=-1,
            progress=_shows_bar(console),
        )  # fmt: skip


def _shows_bar(console: Console) -> bool:
    return False if console.quiet else console.err.is_terminal


def _write(
    outputs: Outputs,
    chosen: SweepPoint,
    swept: MinimizerSweep,
    source: FileTable,
    dialect: Literal["postgresql", "duckdb", "spark"],
    titles: dict[str, str],
) -> None:
    """Write all files, or none."""
    from sfumato.files.table_file import unfinished

    generalization = chosen.generalization
    titled = {name: title for name, title in titles.items() if name in generalization.names}
    document = json.loads(generalization.to_json())
    if source.style is not None:
        types = source.style.types
        document["file"] = {"types": {name: str(types[name]) for name in generalization.names if name in types}}
    texts = {
        "-o": lambda: json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        "--sql": lambda: generalization.to_sql(dialect),
        "--form": lambda: generalization.to_form(titles=titled),
        "--schema": lambda: json.dumps(generalization.to_json_schema(), indent=2, ensure_ascii=False) + "\n",
        "--javascript": generalization.to_javascript,
        "--plot": swept.plot,
    }
    named = outputs.named()
    with unfinished(*(path for _, path in named)) as paths:
        for (option, _), path in zip(named, paths, strict=True):
            path.write_text(texts[option](), encoding="utf-8")
