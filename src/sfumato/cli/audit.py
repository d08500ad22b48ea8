# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit``: measure and attack a release that anyone made, and judge it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console
from sfumato.cli.printing import show_risks, show_roles
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.auditing.pairing import Pair
    from sfumato.report.data import Audit

_GATE = "Gate"

HELP = options.help_text(
    "Measure and attack any release, given the table it was made from.",
    "The rows of the release may be in another order, and some may be missing. Changed columns count as "
    "quasi-identifiers unless you name them. Holdout records (people outside the release), in a third file with the "
    "columns of the first, show what an attacker could know anyway. Exit code 1: the gate failed; the report is "
    "written all the same.",
    examples=[
        "sfumato audit people.csv released.csv --target income --report report.html",
        "sfumato audit people.csv released.csv --quasi-identifiers age,zip --sensitive disease\n"
        "    --control others.csv --min-k 10 --max-advantage 0.05",
    ],
)


@options.command
def audit(
    original: Annotated[
        options.Location,
        options.table_argument(
            "The original table: a file, or a table such as duckdb:people.db?table=people.", "ORIGINAL"
        ),
    ],
    release: Annotated[options.Location, options.table_argument("The released table.", "RELEASE")],
    quasi_identifiers: Annotated[
        list[str] | None,
        typer.Option(
            "--quasi-identifiers",
            help="Columns that together could identify a person.",
            metavar="A,B,...",
            show_default="those with changed values",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The column that a model predicts.", metavar="COLUMN", show_default="none"),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Sensitive attributes.", metavar="A,B,...", show_default="none"),
    ] = None,
    control: Annotated[
        options.Location | None,
        options.table_option("Holdout records (people outside the release), with the columns of ORIGINAL."),
    ] = None,
    min_k: Annotated[
        int | None, typer.Option(help="Minimum group size.", rich_help_panel=_GATE, show_default="none")
    ] = None,
    min_l: Annotated[
        int | None,
        typer.Option(
            help="Minimum distinct values of a sensitive column per group.", rich_help_panel=_GATE, show_default="none"
        ),
    ] = None,
    max_risk: Annotated[
        float | None,
        typer.Option(
            help="Maximum chance to re-identify a record: 1 / smallest group.",
            rich_help_panel=_GATE,
            show_default="none",
        ),
    ] = None,
    max_advantage: Annotated[
        float | None,
        typer.Option(help="Maximum attack advantage.", rich_help_panel=_GATE, show_default="none"),
    ] = None,
    max_unique: Annotated[
        float | None,
        typer.Option(
            help="Maximum share of records that are unique by the columns released unchanged.",
            rich_help_panel=_GATE,
            show_default="none",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="The report, .html or .md.", rich_help_panel="Output", show_default="none"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The results as JSON.", rich_help_panel="Output", show_default="none"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the attacks.")] = 0,
    force: options.Force = False,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Audit a release that anyone made; ``HELP`` is what users read."""
    from sfumato.auditing.audit import NamedTables, audit_tables, check_gate
    from sfumato.files.publishing import digest_of, fingerprint_of
    from sfumato.files.table_file import check_output, read_files, unfinished
    from sfumato.report.risk_data import FileHash

    gate = {"min_k": min_k, "min_l": min_l, "max_risk": max_risk}
    gate |= {"max_attack_advantage": max_advantage, "max_unique": max_unique}
    check_gate(gate)
    inputs = [original, release, *([control] if control else [])]
    for option, path in (("--report", report), ("-o", output)):
        if path is not None:
            check_output(path, force=force, inputs=inputs, option=option)
    if report is not None and output is not None and report.resolve() == output.resolve():
        raise ParameterError("--report and -o name the same file: expected one file each. Rename one.")
    if report is not None and report.suffix not in (".html", ".md"):
        raise ParameterError(f"--report {report.name!r}: expected a name that ends in .html or .md. Rename it.")
    with console.step(f"reading {', '.join(path.name for path in inputs)}"):
        read = read_files(inputs, reading)
    for sentence in dict.fromkeys(note for file in read for note in file.notes):
        console.note(sentence)
    before, after, others = [file.table for file in read] + [None] * (3 - len(read))
    fingerprint = fingerprint_of(original) if isinstance(original, Path) else digest_of(before)
    released = FileHash(release.name, fingerprint_of(release) if isinstance(release, Path) else digest_of(after))
    with console.warnings_as_notes():
        made, pair = audit_tables(
            console,
            NamedTables(before, after, others, original.name, fingerprint, released),
            quasi_identifiers=options.split_names(quasi_identifiers, before.column_names),
            sensitive=options.split_names(sensitive, before.column_names),
            target=target,
            gate=gate,
            random_state=seed,
        )
    documents = _documents(made, report, output)
    if documents:
        with unfinished(*documents) as paths:
            for path, text in zip(paths, documents.values(), strict=True):
                path.write_text(text, encoding="utf-8")
    _show(console, made, pair)
    if documents and not console.as_json:
        console.text(f"Written: {', '.join(str(path) for path in documents)}")
    if made.passed is False:
        raise typer.Exit(GUARANTEE_FAILED)


def _documents(audit: Audit, report: Path | None, output: Path | None) -> dict[Path, str]:
    documents = {}
    if report is not None:
        documents[report] = audit.to_html() if report.suffix == ".html" else audit.to_markdown()
    if output is not None:
        documents[output] = audit.to_json()
    return documents


def _show(console: Console, audit: Audit, pair: Pair) -> None:
    from sfumato.report import wording

    if console.as_json:
        console.result(audit.to_dict())
        return
    console.heading(f"release of {audit.name}")
    console.facts(
        [
            ("records", "fewer than before" if audit.n_released is None else f"{audit.n_released:,}"),
            ("groups", f"{audit.sizes.n_groups:,}"),
            ("smallest group", f"{audit.sizes.smallest:,}"),
            ("median group", f"{audit.sizes.median:,.0f}"),
        ]
    )
    show_roles(console, pair.reasons)
    show_risks(console, audit)
    console.verdict(wording.verdict(audit) + ".", holds=audit.passed is not False)
