# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit``: judge a release that anyone made, beside the table it was made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console, exit_codes

if TYPE_CHECKING:
    from sfumato.audit.attacking import Attacks
    from sfumato.audit.result import Audit, ColumnChange

_GATE = "Gate"
_SIDE = "\x00side"  # no column of a table is called this
_FEWEST_TO_TELL = 10  # records that must be alone in a file before it is compared with another by them
_SMALLEST_SHOWN = 10  # records, where nothing is required

HELP = options.help_text(
    "Measure and attack a release that anyone made, beside the table it was made of.",
    "Both files hold the same people in the same order. People who are not in the release, in a third file with the "
    "columns of the first, tell what an attacker could know anyway. Exit code 1 when a condition is not met.",
    examples=[
        "sfumato audit people.csv released.csv --quasi-identifiers age,zip,sex --report report.html",
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
            show_default="all that both files have and that are not sensitive",
        ),
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
        int | None, typer.Option(help="Fewest records of a group.", rich_help_panel=_GATE, show_default="none")
    ] = None,
    min_l: Annotated[
        int | None,
        typer.Option(help="Fewest values of a sensitive column.", rich_help_panel=_GATE, show_default="none"),
    ] = None,
    max_advantage: Annotated[
        float | None,
        typer.Option(help="Most that an attack may gain.", rich_help_panel=_GATE, show_default="none"),
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
        from sfumato.cli.settling import warn_of_names
        from sfumato.errors import ParameterError

        _check_numbers(min_k, min_l, max_advantage, seed)
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
        names, secrets = _roles(before, after, quasi_identifiers, sensitive)
        if not quasi_identifiers:
            warn_of_names(console, before, names)
        _check_order(before, after, names)
        if others is not None:
            _check_control(others, [*names, *secrets])
            _check_other_people(before, others)
        required = {"min_k": min_k, "min_l": min_l, "max_attack_advantage": max_advantage}
        with console.warnings_as_notes():
            made = _audit(console, original, before, after, others, names, secrets, required, seed)
        documents = _documents(made, report, output)
        if documents:
            with unfinished(*documents) as paths:
                for path, text in zip(paths, documents.values(), strict=True):
                    path.write_text(text, encoding="utf-8")
        _show(console, made)
        if documents and not as_json:
            console.text(f"Written: {', '.join(str(path) for path in documents)}")
        if made.passed is False:
            raise typer.Exit(GUARANTEE_FAILED)


def _check_numbers(min_k: int | None, min_l: int | None, max_advantage: float | None, seed: int) -> None:
    from sfumato.cli.request import LARGEST_SEED
    from sfumato.errors import ParameterError

    for option, given in (("--min-k", min_k), ("--min-l", min_l)):
        if given is not None and given < 1:
            raise ParameterError(f"{option} {given}: expected a whole number from 1 on. Correct it.")
    if not 0 <= seed <= LARGEST_SEED:
        raise ParameterError(f"--seed {seed}: expected a whole number from 0 to {LARGEST_SEED}. Correct it.")
    if max_advantage is not None and not 0 <= max_advantage <= 1:
        raise ParameterError(f"--max-advantage {max_advantage:g}: expected a number from 0 to 1. Correct it.")


def _roles(
    before: Any, after: Any, quasi_identifiers: list[str] | None, sensitive: list[str] | None
) -> tuple[list[str], list[str]]:
    """Look the columns up in both files."""
    from sfumato.cli.files import unknown_column
    from sfumato.errors import InputError, ParameterError

    if before.num_rows != after.num_rows:
        raise InputError(
            f"{before.num_rows:,} records before and {after.num_rows:,} after: expected the same people in the same "
            "order. Leave out of the first file the records that were left out of the second, or use 'sfumato measure'."
        )
    common = [name for name in before.column_names if name in after.column_names]
    secrets = options.split_names(sensitive, common)
    names = options.split_names(quasi_identifiers, common) or [name for name in common if name not in secrets]
    for option, given in {"--quasi-identifiers": names, "--sensitive": secrets}.items():
        for name in given:
            if name not in common:
                raise ParameterError(unknown_column(option, name, common))
    if not names:
        raise ParameterError("no column is a quasi-identifier: expected at least one that both files have.")
    if both := sorted(set(names) & set(secrets)):
        raise ParameterError(f"{both[0]!r} is a quasi-identifier and sensitive: expected one role per column.")
    return names, secrets


def _check_order(before: Any, after: Any, names: list[str]) -> None:
    """Refuse a release whose records were shuffled: attacks on the wrong people fail, and say nothing.

    Columns that were not rewritten tell: one of them has the same values in the same places, or all of them were moved.
    """
    from sfumato.errors import InputError

    exact = [name for name in before.column_names if name in after.column_names and name not in names]
    found = {name: _is_moved(before.column(name), after.column(name)) for name in exact}
    moved = [name for name, is_moved in found.items() if is_moved]
    if moved and False not in found.values():
        raise InputError(
            f"the column {moved[0]!r} has the same values in both files, in another order: expected the same people in "
            "the same order. Audit the release as it was made, and shuffle it after that."
        )


def _is_moved(before: Any, after: Any) -> bool | None:
    """Whether a column has the same values in other places; None where that cannot be told."""
    import pyarrow as pa

    from sfumato.cli.judging import plain_values

    before, after = plain_values(before), plain_values(after)
    if before.type != after.type or len(before.unique()) < 2:
        return None
    if before.equals(after):
        return False
    first, second = (
        pa.table({"value": column}).group_by("value").aggregate([([], "count_all")]).sort_by("value")
        for column in (before, after)
    )
    return True if first.equals(second) else None


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
    names: list[str],
    secrets: list[str],
    required: dict[str, Any],
    seed: int,
) -> Audit:
    from sfumato.audit.attacking import attack_release
    from sfumato.audit.describing import describe_columns, describe_sizes, fewest_values, roles_of
    from sfumato.audit.gate import judge_gate
    from sfumato.audit.result import Audit
    from sfumato.cli.job import fingerprint_of, versions
    from sfumato.loss import ncp
    from sfumato.verification import count_groups

    with console.step("counting groups and losses"):
        sizes = count_groups(after, names)
        losses = {name: float(penalty.mean()) for name, penalty in ncp(before, after, names).items()}
    needed = [*names, *secrets]
    with console.step("attacking the release"):
        attacks = attack_release(
            before.select(needed),
            after.select(needed),
            names,
            secrets=secrets,
            control=None if others is None else others.select(needed),
            random_state=seed,
        )
    show_not_run(console, attacks)
    notes = attacks.sentences
    if others is None:
        notes = (
            *notes,
            "No people outside the release were given: an attack may know what is true of people at large.",
        )
    # Classes of the original values: a release that fails must not make them any finer.
    shown = max(2, required["min_k"] or _SMALLEST_SHOWN)
    roles = roles_of(before.column_names, quasi_identifier=names, sensitive=secrets)
    columns = describe_columns(before, after, roles, losses, smallest_shown=shown)
    if told := told_by_exact_columns(columns, after, smallest_shown=shown):
        console.note(told, is_warning=True)
        notes = (*notes, told)
    return Audit(
        name=original.name,
        n_records=before.num_rows,
        n_released=after.num_rows,
        n_suppressed=0,
        method={"quasi_identifiers": names, "sensitive": secrets, "seed": seed},
        guarantees=(f"every group has at least {int(sizes.min())} records",),
        gate=judge_gate(
            required,
            smallest_group=int(sizes.min()),
            least_values=fewest_values(after, names, secrets),
            utility=None,
            risks=attacks.risks,
            not_run=[attack.title for attack in attacks.not_run],
            to_run_them="the notes say why; give what they need, or leave --max-advantage out",
        ),
        utility=None,
        sizes=describe_sizes(sizes),
        columns=columns,
        risks=attacks.risks,
        notes=notes,
        versions=versions(),
        fingerprint=fingerprint_of(original),
        smallest_shown=shown,
        seconds=console.seconds,
    )


def _documents(audit: Audit, report: Path | None, output: Path | None) -> dict[Path, str]:
    from sfumato.report import to_html, to_markdown

    documents = {}
    if report is not None:
        documents[report] = to_html(audit) if report.suffix == ".html" else to_markdown(audit)
    if output is not None:
        documents[output] = json.dumps(audit.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
    return documents


def _show(console: Console, audit: Audit) -> None:
    from sfumato.report import wording

    if console.as_json:
        console.result(audit.to_dict())
        return
    console.heading(f"release of {audit.name}")
    console.facts(
        [
            ("records", f"{audit.n_released:,}"),
            ("groups", f"{audit.sizes.n_groups:,}"),
            ("smallest group", f"{audit.sizes.smallest:,}"),
            ("median group", f"{audit.sizes.median:,.0f}"),
        ]
    )
    show_risks(console, audit)
    console.verdict(wording.verdict(audit) + ".", holds=audit.passed is not False)


def told_by_exact_columns(columns: tuple[ColumnChange, ...], released: Any, *, smallest_shown: int) -> str:
    """Say how many records are unique by the columns that were given no role: no group hides anybody there.

    Nothing where that is a number that would not be shown.
    """
    from sfumato.cli.files import listed
    from sfumato.verification import count_groups

    names = [column.name for column in columns if column.role == "other" and column.name in released.column_names]
    n_unique = int((count_groups(released, names) == 1).sum()) if names else 0
    if n_unique < smallest_shown:
        return ""
    return (
        f"Columns that were not called quasi-identifiers make {n_unique / released.num_rows:.1%} of the records "
        f"unique: {listed(names)}. The groups hide nobody whose values there are known."
    )


def show_not_run(console: Console, attacks: Attacks) -> None:
    """Say which attacks were wanted and could not be run; a report may not be written, and who reads it is another."""
    for attack in attacks.not_run:
        console.note(f"not run: {attack.title}. {attack.why}", is_warning=True)


def show_risks(console: Console, audit: Audit) -> None:
    """Print the attacks and the conditions of the gate."""
    if audit.risks:
        console.heading("attacks: rate, and the rate without the release")
        console.facts(
            [
                (risk.title, f"{risk.result['rate']:.3f}", f"{risk.without:.3f}  {risk.result['verdict']}")
                for risk in audit.risks
            ]
        )
    if audit.gate:
        console.heading("gate")
        console.facts([(check.name, "met" if check.passed else "NOT MET", check.sentence) for check in audit.gate])
