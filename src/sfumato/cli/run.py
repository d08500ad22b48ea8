# SPDX-License-Identifier: Apache-2.0
"""``sfumato run``: one policy, one command: read, protect, verify, attack, report, and let through or not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.audit import show_not_run, show_risks, warn_of_unique
from sfumato.cli.console import GUARANTEE_FAILED, Console, exit_codes, in_keys

if TYPE_CHECKING:
    from sfumato.audit.attacking import Attacks
    from sfumato.audit.result import Audit, ColumnChange, UtilityResult
    from sfumato.cli.job import Job
    from sfumato.policy import Policy

HELP = options.help_text(
    "Do what a policy says: read, protect, verify, attack, report, and let the release through or not.",
    "Everything is written at the end, all of it or nothing: the release, its partition, audit.json and report.html. "
    "When a condition of the gate is not met nothing is written and the exit code is 1; with --keep-report the report "
    "and audit.json are written all the same, to see why.",
    examples=[
        "sfumato init people.csv --target income -o policy.toml",
        "sfumato run policy.toml",
        "sfumato run policy.toml --dry-run",
        "sfumato run policy.toml --quiet --json > result.json",
    ],
)


def run(
    policy: Annotated[Path, typer.Argument(help="A policy file, as 'sfumato init' writes one.", show_default=False)],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and check everything, do nothing.", show_default="off")
    ] = False,
    keep_report: Annotated[
        bool,
        typer.Option("--keep-report", help="Write the report also when the gate is not passed.", show_default="off"),
    ] = False,
    jobs: Annotated[int, options.jobs()] = options.ALL_CORES,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Do what a policy says; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug, in_words_of_options=False):
        from sfumato.cli.job import open_job
        from sfumato.policy import read_policy

        options.check_jobs(jobs)
        read = read_policy(policy)
        _check_outputs(console, read, force=force)
        job = open_job(console, read, jobs)
        if dry_run:
            _show_plan(console, job)
            return
        with console.warnings_as_notes():
            audit = _run(console, job, keep_report=keep_report)
        _show(console, job, audit, keep_report=keep_report)
        if audit.passed is False:
            raise typer.Exit(GUARANTEE_FAILED)


def _outputs(policy: Policy) -> dict[str, Path]:
    """Return what is written, by its role, in the order in which it appears: what describes the others comes last."""
    paths = {name: policy.file(name) for name in ("release", "artifact", "report", "audit")}
    return {name: path for name, path in paths.items() if path is not None}


def _check_outputs(console: Console, policy: Policy, *, force: bool) -> None:
    from sfumato.cli.files import check_output, format_of
    from sfumato.cli.publishing import mixture_in
    from sfumato.errors import ParameterError

    release, source = policy.file("release"), policy.file("file")
    assert release is not None and source is not None
    others = _outputs(policy)
    index = others.pop("audit", None)
    if index is not None and (mixture := mixture_in(others, index)):
        console.note(mixture, is_warning=True)
    named: dict[Path, str] = {}
    for name, path in _outputs(policy).items():
        check_output(path, force=force, inputs=[policy.path, source], option=policy.where("data", name))
        earlier = named.setdefault(path.resolve(), name)
        if earlier != name:
            raise ParameterError(
                f"{policy.where('data', name)} and {earlier} are the same file: expected one file each. Rename one."
            )
    format_of(release)  # an ending that says nothing is refused before any work


class _GateNotPassedError(Exception):
    """The release must not leave; raised to have nothing written."""


def _run(console: Console, job: Job, *, keep_report: bool) -> Audit:
    from sfumato.audit.advice import what_to_try
    from sfumato.cli.job import compare_models, describe_utility, release_all
    from sfumato.cli.judging import ORDER_KEPT, Recount, formula_warning, recount, shuffled, write_judged
    from sfumato.cli.methods import partition_document, rewritten_columns

    compared = compare_models(console, job)
    utility = None if compared is None else describe_utility(job, compared)
    attacks = _no_attacks(console, job) if compared is None else _attack(console, job, compared)
    curve = () if compared is None else _curve(console, job)
    del compared  # its models and tables are not needed while all records are protected
    anonymizer, release = release_all(console, job)
    n_records, columns = job.table.num_rows, _described_columns(job, release)
    job.let_go_of_records()  # one table less while the release is written and read back
    rewritten = rewritten_columns(anonymizer)
    k = job.policy.get("method", "k")
    notes: tuple[str, ...] = ()
    made: list[Audit] = []

    def judge(read: Any) -> Recount:
        # Persons were counted before their column was dropped; l and t are counted on what was read back.
        counted = recount(
            read, rewritten, k if job.policy.get("columns", "unit") is None else 1, **job.settings.promises()
        )
        told = (n_records, columns, utility, attacks, notes)
        judged = replace(_audit(console, job, anonymizer, release, read, counted.sizes, *told), curve=curve)
        made.append(replace(judged, advice=what_to_try(judged)))
        if made[0].passed is False:
            raise _GateNotPassedError
        return counted

    output = job.policy.file("release")
    assert output is not None
    if job.policy.get("data", "keep_order") == "yes":
        notes = (in_keys(ORDER_KEPT),)
        console.note(notes[0], is_warning=True)
    else:  # after everything that compares it with the input row by row
        release = replace(release, table=shuffled(release.table)[0])
    if formulas := formula_warning(release.table, output):
        notes = (*notes, formulas)
        console.note(formulas, is_warning=True)
    beside: dict[Path, Any] = {}
    artifact = job.policy.file("artifact")
    if artifact is not None:
        own = job.policy.values["columns"]
        keep = [*own["keep"], *([own["target"]] if own["target"] else [])]
        document = partition_document(anonymizer, k=k, unit=own["unit"], keep=keep, style=job.source.style)
        beside[artifact] = lambda path, _: _write_json(path, document)
    try:
        with console.step(f"writing {output.name}, reading it back, counting and judging it"):
            write_judged(
                release.table, output, style=job.source.style, judge=judge, beside=beside | _documents(job, made)
            )
    except _GateNotPassedError:
        if keep_report:
            _write_documents(_documents(job, made))
    return made[0]


def _no_attacks(console: Console, job: Job) -> Attacks:
    """Return what became of the attacks where no model was measured: none was wanted, or none could be run."""
    from sfumato.audit.attacking import Attacks, NotRun, attacks_of

    wanted = attacks_of(job.policy.get("audit", "level"), _left_out(job))
    if wanted and (job.target is None or job.policy.get("model", "test_fraction") == 0):
        missing = "there is no target" if job.target is None else "test_fraction = 0 holds nobody out"
        console.note(f"no attack is run: {missing}.")
        return Attacks(notes=(f"They need people who were held out, and {missing}.",))
    why = "There are too few records to hold some out and protect the rest; lower k or test_fraction, or give more."
    return Attacks(not_run=tuple(NotRun(name, name.replace("_", " "), why) for name in wanted))


def _left_out(job: Job) -> list[str]:
    return [name.replace("-", "_") for name in job.policy.get("audit", "leave_out")]


def _attack(console: Console, job: Job, compared: Any) -> Attacks:
    """Attack the model that was trained on protected records, and those records; held-out people are the control."""
    import numpy as np

    from sfumato.audit.attacking import Attacks, attack_model, attack_release
    from sfumato.cli.job import model_for_raw_records, protected_estimator
    from sfumato.cli.training import rows_of

    level = job.policy.get("audit", "level")
    if level == "none":
        return Attacks()
    assert job.target is not None
    train, test = compared.rows
    seed, unfinished = job.policy.get("audit", "seed"), job.policy.get("audit", "unfinished")
    sensitive = job.policy.get("columns", "sensitive")
    left_out = job.policy.get("audit", "leave_out")
    common: dict[str, Any] = {"random_state": seed, "leave_out": _left_out(job), "say": console.progress}
    common["titles"] = job.policy.titles
    with console.step("attacking the released records"):
        on_records = attack_release(
            rows_of(job.table, train),
            compared.released,
            job.quasi_identifiers,
            secrets=sensitive or [job.policy.get("columns", "target")],
            control=rows_of(job.table, test),
            places=_places(job, len(train)),
            **common,
        )
    rows = np.concatenate([train, test])
    table = job.features(rows_of(job.table, rows))
    wanted = [*sensitive, *job.policy.get("columns", "subgroups"), *job.quasi_identifiers]
    with console.step(f"attacking the model, level {level}"):
        on_model = attack_model(
            model_for_raw_records(job, compared),
            table,
            job.target.values[rows],
            np.arange(len(rows)) < len(train),
            level=level,
            estimator=protected_estimator(job),
            attributes=[name for name in dict.fromkeys(wanted) if name in table.column_names],
            n_jobs=job.n_jobs,
            cache=None if unfinished is None else job.policy.path.parent / unfinished,
            **common,
        )
    attacks = on_model.and_also(on_records)
    if left_out:
        attacks = replace(attacks, notes=(f"Left out by the policy: {', '.join(left_out)}.", *attacks.notes))
    show_not_run(console, attacks)
    return attacks


def _places(job: Job, n_records: int) -> Any:
    """Return where records are in the file that is published: anywhere, unless the policy keeps the order."""
    import numpy as np

    if job.policy.get("data", "keep_order") == "yes":
        return None
    return np.random.default_rng([job.policy.get("audit", "seed"), 13]).permutation(n_records)


def _curve(console: Console, job: Job) -> tuple[Any, ...]:
    """Measure and attack what the policy's other k would give."""
    from sfumato.cli.tradeoff import points_over_k

    sizes = sorted({*job.policy.get("audit", "curve"), job.policy.get("method", "k")})
    if len(sizes) == 1:
        return ()
    choices = [(job.method, job.policy.get("model", "name"))]
    is_attacked = job.policy.get("audit", "level") != "none" and "threshold" not in _left_out(job)
    return tuple(points_over_k(console, job, sizes, choices, attacks=is_attacked))


def _described_columns(job: Job, release: Any) -> tuple[ColumnChange, ...]:
    """Say what became of every column; the file must say the same as the release, or it is not kept."""
    from sfumato.audit.describing import describe_columns, roles_of

    own = job.policy.values["columns"]
    roles = roles_of(
        job.table.column_names,
        identifier=[*job.dropped, *([own["unit"]] if own["unit"] else [])],
        quasi_identifier=job.quasi_identifiers,
        sensitive=own["sensitive"],
        target=[own["target"]] if own["target"] else [],
    )
    losses, k = release.measures["loss_by_column"], job.policy.get("method", "k")
    return describe_columns(job.table, release.table, roles, losses, smallest_shown=k)


def _audit(
    console: Console,
    job: Job,
    anonymizer: Any,
    release: Any,
    read: Any,
    sizes: Any,
    n_records: int,
    columns: tuple[ColumnChange, ...],
    utility: Any,
    attacks: Attacks,
    notes: tuple[str, ...],
) -> Audit:
    """Judge the table that was read back, and put all that is known of the release together."""
    from sfumato.audit.describing import describe_sizes, fewest_values
    from sfumato.audit.gate import judge_gate
    from sfumato.audit.result import Audit
    from sfumato.audit.uniqueness import measure_uniqueness
    from sfumato.cli.job import fingerprint_of, versions
    from sfumato.cli.methods import rewritten_columns

    own = job.policy.values["columns"]
    names = rewritten_columns(anonymizer)
    k = job.policy.get("method", "k")
    n_suppressed = release.n_suppressed
    file = job.policy.file("file")
    assert file is not None
    settings = {name: value for section in ("method", "model") for name, value in job.policy.values[section].items()}
    uniqueness, unique = measure_uniqueness(read, names, target=own["target"], smallest_shown=k)
    warn_of_unique(console, uniqueness, job.policy.titles)
    return Audit(
        name=file.name,
        n_records=n_records,
        n_released=read.num_rows if n_suppressed == 0 or n_suppressed >= k else None,
        n_suppressed=n_suppressed if n_suppressed == 0 or n_suppressed >= k else None,
        method={
            "method": job.method,
            **{name: value for name, value in settings.items() if name != "name"},
            "model": job.policy.get("model", "name"),
            "audit level": job.policy.get("audit", "level"),
        },
        guarantees=tuple(criterion.describe() for criterion in anonymizer._all_criteria()),
        gate=judge_gate(
            job.policy.values["gate"],
            smallest_group=int(sizes.min()) if own["unit"] is None else _fewest_persons(anonymizer, release),
            least_values=fewest_values(read, names, own["sensitive"]),
            utility=utility,
            risks=attacks.risks,
            unique=unique,
            n_suppressed=n_suppressed,
            n_records=n_records,
            smallest_shown=k,
            counted="records" if own["unit"] is None else "persons",
            not_run=[attack.title for attack in attacks.not_run],
            to_run_them=_to_run_them(attacks, utility),
        ),
        utility=utility,
        sizes=describe_sizes(sizes),
        columns=columns,
        risks=attacks.risks,
        uniqueness=uniqueness,
        notes=(_how_hard(job, attacks), *attacks.sentences, *notes),
        titles=job.policy.titles,
        versions=versions(),
        fingerprint=fingerprint_of(file),
        smallest_shown=k,
        seconds=console.seconds,
    )


def _how_hard(job: Job, attacks: Attacks) -> str:
    """Say at which level the release was attacked, if it was."""
    level = job.policy.get("audit", "level")
    return f"The attacks were run at level {level}." if attacks.risks else f"No attack was run; the level is {level}."


def _to_run_them(attacks: Attacks, utility: Any) -> str:
    """Say what to change in the policy so that a bound on attacks can be judged."""
    if utility is None:
        return "no model was measured; lower k or test_fraction, or give more records"
    names = ", ".join(dict.fromkeys(f'"{attack.attack.replace("_", "-")}"' for attack in attacks.not_run))
    return f"the notes say why; give what they need, or add {names} to leave_out under [audit]"


def _fewest_persons(anonymizer: Any, release: Any) -> int:
    """Return how many persons the smallest group has, as `release` counted before the unit was dropped."""
    from sfumato.anonymize.counting import shown
    from sfumato.criteria import KAnonymity

    criteria = [c for c in anonymizer._all_criteria() if isinstance(c, KAnonymity) and c.unit is not None]
    return min(int(release.measures[shown(criterion)]) for criterion in criteria)


def _documents(job: Job, made: list[Audit]) -> dict[Path, Any]:
    """Return what is written beside the release: path to writer; the audit exists by the time they are called."""
    from sfumato.cli.publishing import described_outputs
    from sfumato.report import to_html, to_markdown

    documents: dict[Path, Any] = {}
    report, data = job.policy.file("report"), job.policy.file("audit")
    if report is not None:
        words = to_markdown if report.suffix == ".md" else to_html
        documents[report] = lambda path, _: path.write_text(words(made[0]), encoding="utf-8")
    if data is not None:
        documents[data] = lambda path, digests: _write_json(
            path, made[0].to_dict() | {"outputs": described_outputs(_outputs(job.policy), digests)}
        )
    return documents


def _write_documents(documents: dict[Path, Any]) -> None:
    from sfumato.cli.files import unfinished
    from sfumato.cli.judging import write_beside

    with unfinished(*documents) as paths:
        write_beside(paths, documents, {})


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1), encoding="utf-8")


# -- showing -----------------------------------------------------------------------------------------------------


def _show_plan(console: Console, job: Job) -> None:
    own = job.policy.values["columns"]
    if console.as_json:
        console.result({"policy": str(job.policy.path), "settings": job.policy.values, "n_records": job.table.num_rows})
        return
    console.heading(f"{job.policy.path.name}: what would be done")
    console.facts(
        [
            ("records", f"{job.table.num_rows:,}"),
            ("method", f"{job.method}, k = {job.policy.get('method', 'k')}"),
            ("rewritten columns", f"{len(job.quasi_identifiers)}"),
            ("dropped columns", f"{len(job.dropped) + (own['unit'] is not None)}"),
            ("sensitive columns", f"{len(own['sensitive'])}"),
            ("model", job.policy.get("model", "name")),
            ("audit", job.policy.get("audit", "level")),
            ("conditions of the gate", f"{sum(v is not None for v in job.policy.values['gate'].values())}"),
        ]
    )
    console.text("Nothing was done. Leave --dry-run out to do it.")


def _without_learning(utility: UtilityResult) -> list[tuple[str, ...]]:
    """Return the majority-class baseline, and the share kept of what was learned beyond it; nothing for numbers."""
    if utility.same_answer is None:
        return []
    rows: list[tuple[str, ...]] = [("majority-class baseline", f"{utility.same_answer:.4f}")]
    if utility.raw > utility.same_answer:
        rows.append(("of what was learned beyond it", f"{utility.gain_kept:.1%}", "kept"))
    return rows


def _show(console: Console, job: Job, audit: Audit, *, keep_report: bool) -> None:
    from sfumato.report import wording

    if console.as_json:
        console.result(audit.to_dict())
        return
    if audit.utility is not None:
        console.heading(f"{audit.utility.metric} of {audit.utility.model}")
        console.facts(
            [
                ("trained on the raw records", f"{audit.utility.raw:.4f}"),
                ("trained on the release", f"{audit.utility.judged:.4f}", f"{audit.utility.kept:.1%} kept"),
                *_without_learning(audit.utility),
            ]
        )
        for sentence in audit.utility.notes:
            console.note(sentence)
        if not audit.utility.has_learned:
            console.note(wording.no_better(audit.utility), is_warning=True)
    show_risks(console, audit)
    console.verdict(wording.verdict(audit) + ".", holds=audit.passed is not False)
    names = ["release", "artifact", "audit", "report"]
    if audit.passed is False:
        # What lies there from an earlier run was not written now.
        names = ["audit", "report"] if keep_report else []
        console.text("The release was not written.")
    written = [str(path) for name in names if (path := job.policy.file(name)) is not None]
    if written:
        console.text(f"Written: {', '.join(written)}")
