# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit``: judge a release that anyone made, beside the table it was made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console, exit_codes

if TYPE_CHECKING:
    from sfumato.audit.attacking import Attacks
    from sfumato.audit.result import Audit
    from sfumato.audit.uniqueness import Uniqueness
    from sfumato.cli.pairing import Pair

_GATE = "Gate"
_SIDE = "\x00side"  # no column of a table is called this
_FEWEST_TO_TELL = 10  # records that must be alone in a file before it is compared with another by them
_SMALLEST_SHOWN = 10  # records, where nothing is required

HELP = options.help_text(
    "Measure and attack a release that anyone made, beside the table it was made of.",
    "The rows of the release may be in another order than the original's, and some may be missing. Columns that were "
    "changed are taken for quasi-identifiers unless you name them. Holdout records (people outside the release), in a "
    "third file with the columns of the first, show what an attacker could know anyway. Exit code 1: a condition of "
    "the gate is not met; the report is written all the same.",
    examples=[
        "sfumato audit people.csv released.csv --target income --report report.html",
        "sfumato audit people.csv released.csv --quasi-identifiers age,zip --sensitive disease\n"
        "    --control others.csv --min-k 10 --max-advantage 0.05",
    ],
)


@options.reads_tables
def audit(
    original: Annotated[Path, typer.Argument(help="The table before.", show_default=False)],
    release: Annotated[Path, typer.Argument(help="The table after.", show_default=False)],
    quasi_identifiers: Annotated[
        list[str] | None,
        typer.Option(
            "--quasi-identifiers",
            help="Columns that together could point at a person.",
            metavar="A,B,...",
            show_default="those whose values were changed",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The column that a model predicts.", metavar="COLUMN", show_default="none"),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Columns that nobody should learn about a person.", metavar="A,B,...", show_default="none"),
    ] = None,
    control: Annotated[
        Path | None,
        typer.Option(help="People who are not in the release, with the columns of ORIGINAL.", show_default="none"),
    ] = None,
    min_k: Annotated[
        int | None, typer.Option(help="Minimum group size.", rich_help_panel=_GATE, show_default="none")
    ] = None,
    min_l: Annotated[
        int | None,
        typer.Option(help="Fewest values of a sensitive column.", rich_help_panel=_GATE, show_default="none"),
    ] = None,
    max_advantage: Annotated[
        float | None,
        typer.Option(help="Maximum attack advantage.", rich_help_panel=_GATE, show_default="none"),
    ] = None,
    max_unique: Annotated[
        float | None,
        typer.Option(
            help="Largest share of records that may be unique by the columns released unchanged.",
            rich_help_panel=_GATE,
            show_default="none",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Where the report goes, .html or .md.", rich_help_panel="Output", show_default="none"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where audit.json goes.", rich_help_panel="Output", show_default="none"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the attacks.")] = 0,
    force: options.Force = False,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Judge a release that anyone made; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug):
        from sfumato.cli.files import check_output, read_files, unfinished
        from sfumato.cli.pairing import pair_tables
        from sfumato.cli.settling import warn_of_names
        from sfumato.errors import ParameterError
        from sfumato.policy.settings import MAX_UNIQUE_TARGET

        _check_numbers({"--min-k": min_k, "--min-l": min_l}, seed)
        _check_shares({"--max-advantage": max_advantage, "--max-unique": max_unique})
        inputs = [original, release, *([control] if control else [])]
        for option, path in (("--report", report), ("-o", output)):
            if path is not None:
                check_output(path, force=force, inputs=inputs, option=option)
        if report is not None and output is not None and report.resolve() == output.resolve():
            raise ParameterError("--report and -o name the same file: expected one file each. Rename one.")
        if report is not None and report.suffix not in (".html", ".md"):
            raise ParameterError(f"--report {report.name!r}: expected a name that ends in .html or .md. Rename it.")
        said = reading.parsed()
        with console.step(f"reading {', '.join(path.name for path in inputs)}"):
            read = read_files(inputs, said)
        for sentence in dict.fromkeys(note for file in read for note in file.notes):
            console.note(sentence)
        before, after, others = [file.table for file in read] + [None] * (3 - len(read))
        pair = pair_tables(before, after, quasi_identifiers=quasi_identifiers, sensitive=sensitive, target=target)
        if not quasi_identifiers:
            warn_of_names(console, before, [*pair.quasi_identifiers, *pair.others])
        if others is not None:
            _check_control(others, [*pair.quasi_identifiers, *pair.sensitive])
            _check_other_people(before, others)
        required = {
            "min_k": min_k,
            "min_l": min_l,
            "max_attack_advantage": max_advantage,
            "max_unique": max_unique,
        }
        if target is not None and any(bound is not None for bound in required.values()):
            required["max_unique_target"] = MAX_UNIQUE_TARGET
        with console.warnings_as_notes():
            made = _audit(console, original, before, after, others, pair, required, seed)
        documents = _documents(made, report, output)
        if documents:
            with unfinished(*documents) as paths:
                for path, text in zip(paths, documents.values(), strict=True):
                    path.write_text(text, encoding="utf-8")
        _show(console, made, pair)
        if documents and not as_json:
            console.text(f"Written: {', '.join(str(path) for path in documents)}")
        if made.passed is False:
            raise typer.Exit(GUARANTEE_FAILED)


def _check_numbers(counts: Mapping[str, int | None], seed: int) -> None:
    from sfumato.cli.request import LARGEST_SEED
    from sfumato.errors import ParameterError

    for option, given in counts.items():
        if given is not None and given < 1:
            raise ParameterError(f"{option} {given}: expected an integer >= 1.")
    if not 0 <= seed <= LARGEST_SEED:
        raise ParameterError(f"--seed {seed}: expected an integer from 0 to {LARGEST_SEED}.")


def _check_shares(shares: Mapping[str, float | None]) -> None:
    from sfumato.errors import ParameterError

    for option, given in shares.items():
        if given is not None and not 0 <= given <= 1:
            raise ParameterError(f"{option} {given:g}: expected a number from 0 to 1.")


def _check_control(others: Any, wanted: list[str]) -> None:
    from sfumato.errors import ParameterError

    if absent := [name for name in wanted if name not in others.column_names]:
        raise ParameterError(
            f"--control has no column {absent[0]!r}: expected the quasi-identifiers and the sensitive columns of "
            "ORIGINAL. Give a file of other people with the same columns."
        )


def _check_other_people(before: Any, others: Any) -> None:
    """Refuse the people of the release as their own control: what is found out about them would count as known.

    Of records that nobody shares, chance finds at most about one in e alone in the other file, too.
    """
    import numpy as np
    import pyarrow as pa

    from sfumato.cli.judging import plain_values
    from sfumato.errors import InputError

    tables = [{name: plain_values(table.column(name)) for name in table.column_names} for table in (before, others)]
    common = [name for name in tables[0] if name in tables[1] and tables[0][name].type == tables[1][name].type]
    if not common:
        return
    sides = [
        pa.table({**{name: columns[name] for name in common}, _SIDE: np.full(len(columns[common[0]]), side)})
        for side, columns in enumerate(tables)
    ]
    groups = pa.concat_tables(sides).group_by(common).aggregate([(_SIDE, "sum"), ([], "count_all")])
    n_others = groups[f"{_SIDE}_sum"].to_numpy()
    is_alone = n_others == 1
    n_found = int((groups["count_all"].to_numpy()[is_alone] == 2).sum())
    if is_alone.sum() >= _FEWEST_TO_TELL and n_found > is_alone.sum() / 2:
        raise InputError(
            f"{n_found:,} of {int(is_alone.sum()):,} records of --control that no other record of it equals are in "
            "ORIGINAL, too: expected other people, who are not in the release. Give a file of such people, or none."
        )


def _audit(
    console: Console,
    original: Path,
    before: Any,
    after: Any,
    others: Any,
    pair: Pair,
    required: dict[str, Any],
    seed: int,
) -> Audit:
    from sfumato.audit.advice import what_to_try
    from sfumato.audit.attacking import attack_release
    from sfumato.audit.describing import describe_columns, describe_sizes, fewest_values, roles_of
    from sfumato.audit.gate import judge_gate
    from sfumato.audit.result import Audit
    from sfumato.audit.uniqueness import measure_uniqueness
    from sfumato.cli.job import fingerprint_of, versions
    from sfumato.loss import ncp
    from sfumato.verification import count_groups

    names, secrets = pair.quasi_identifiers, pair.sensitive
    # Classes of the original values: a release that fails must not make them any finer.
    shown = max(2, required["min_k"] or _SMALLEST_SHOWN)
    n_suppressed = before.num_rows - after.num_rows
    with console.step("counting groups and losses"):
        sizes = count_groups(after, pair.released_as)
        losses = {}
        if pair.is_aligned:
            losses = {name: float(penalty.mean()) for name, penalty in ncp(before, after, names).items()}
        uniqueness, unique = measure_uniqueness(after, pair.released_as, target=pair.target, smallest_shown=shown)
    with console.step("attacking the release"):
        attacks = attack_release(
            before,
            after,
            names,
            secrets=secrets,
            control=None
            if others is None
            else others.select([n for n in others.column_names if n in before.column_names]),
            is_aligned=pair.is_aligned,
            random_state=seed,
        )
    show_not_run(console, attacks)
    notes = attacks.sentences
    if not pair.is_aligned:
        notes = (
            *notes,
            "The rows are not in the order of the original: the information loss of each column was not measured.",
        )
        console.note(notes[-1])
    if others is None:
        notes = (
            *notes,
            "No people outside the release were given: an attack may know what is true of people at large.",
        )
    targets = [] if pair.target is None else [pair.target]
    roles = roles_of(before.column_names, quasi_identifier=names, sensitive=secrets, target=targets)
    columns = describe_columns(before, after, roles, losses, smallest_shown=shown)
    warn_of_unique(console, uniqueness, {})
    made = Audit(
        name=original.name,
        n_records=before.num_rows,
        n_released=after.num_rows if n_suppressed == 0 or n_suppressed >= shown else None,
        n_suppressed=n_suppressed if n_suppressed == 0 or n_suppressed >= shown else None,
        method={"quasi_identifiers": names, "sensitive": secrets, "target": pair.target, "seed": seed},
        guarantees=(f"every group has at least {int(sizes.min())} records",),
        gate=judge_gate(
            required,
            smallest_group=int(sizes.min()),
            least_values=fewest_values(after, pair.released_as, secrets),
            utility=None,
            risks=attacks.risks,
            unique=unique,
            n_records=after.num_rows,
            smallest_shown=shown,
            not_run=[attack.title for attack in attacks.not_run],
            to_run_them="the notes say why; give what they need, or leave --max-advantage out",
        ),
        utility=None,
        sizes=describe_sizes(sizes),
        columns=columns,
        risks=attacks.risks,
        uniqueness=uniqueness,
        notes=notes,
        versions=versions(),
        fingerprint=fingerprint_of(original),
        smallest_shown=shown,
        seconds=console.seconds,
    )

    def smallest_without() -> dict[str, int]:
        """Return the smallest group without each quasi-identifier."""
        return {
            name: int(count_groups(after, [part for part in pair.released_as if part not in parts]).min())
            for name in names
            if (parts := {name, f"{name}_low", f"{name}_high"}) and len(names) > 1
        }

    return replace(made, advice=what_to_try(made, smallest_without=smallest_without))


def _documents(audit: Audit, report: Path | None, output: Path | None) -> dict[Path, str]:
    from sfumato.report import to_html, to_markdown

    documents = {}
    if report is not None:
        documents[report] = to_html(audit) if report.suffix == ".html" else to_markdown(audit)
    if output is not None:
        documents[output] = json.dumps(audit.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
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


def warn_of_unique(console: Console, uniqueness: Uniqueness, titles: Mapping[str, str]) -> None:
    """Warn if columns that no group protects make records unique; the report says it in its first box."""
    from sfumato.report import wording

    if uniqueness.share:
        console.note(f"{wording.unique_records(uniqueness, titles)} {wording.FOUND_BY_UNCHANGED}", is_warning=True)


def show_roles(console: Console, reasons: Mapping[tuple[str, str], Sequence[str]]) -> None:
    """Print which columns were taken for what, and why."""
    from sfumato.cli.files import listed

    console.heading("columns")
    console.facts([(role, f"{len(names):,}", f"{listed(names)} ({why})") for (role, why), names in reasons.items()])


def show_not_run(console: Console, attacks: Attacks) -> None:
    """Say which attacks were wanted and could not be run; a report may not be written, and who reads it is another."""
    for attack in attacks.not_run:
        console.note(f"not run: {attack.title}. {attack.why}", is_warning=True)


def show_risks(console: Console, audit: Audit) -> None:
    """Print the attacks, the conditions of the gate, and what to try where it failed."""
    from sfumato.report import wording

    if audit.risks:
        console.heading("attacks: rate, and the reference rate without the release")
        console.facts(
            [
                (risk.title, f"{risk.result['rate']:.3f}", f"{risk.without:.3f}  {wording.attack_verdict(risk)}")
                for risk in audit.risks
            ]
        )
        if any(risk.result["verdict"] == "failed attack" for risk in audit.risks):
            console.text(f"  {wording.BELOW_BASELINE}")
    if audit.gate:
        console.heading("gate")
        console.facts([(check.name, "met" if check.passed else "NOT MET", check.sentence) for check in audit.gate])
    if audit.advice:
        console.heading("what to try")
        for sentence in audit.advice:
            console.text(f"  {sentence}")
