# SPDX-License-Identifier: Apache-2.0
"""``sfumato run``: one policy, one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console
from sfumato.cli.printing import show_risks
from sfumato.cli.setting_names import with_keys

if TYPE_CHECKING:
    from sfumato.auditing.policy_job import PolicyJob
    from sfumato.auditing.run import PolicyRun
    from sfumato.report.data import UtilityResult

HELP = options.help_text(
    "Run a policy: read, protect, verify, attack, report, and release only if the gate passes.",
    "All files are written at the end, or none: the release, its partition, audit.json and report.html. If a condition "
    "of the gate is not met, nothing is written and the exit code is 1; --keep-report then writes the report and "
    "audit.json, to see why.",
    examples=[
        "sfumato init people.csv --target income -o policy.toml",
        "sfumato run policy.toml",
        "sfumato run policy.toml --dry-run",
        "sfumato run policy.toml --quiet --json > result.json",
    ],
)


@options.command(worded=with_keys)
def run(
    policy: Annotated[
        Path,
        typer.Argument(help="A policy file; 'sfumato init' writes a first one.", metavar="POLICY", show_default=False),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and check everything, but run nothing.", show_default="off")
    ] = False,
    keep_report: Annotated[
        bool,
        typer.Option("--keep-report", help="Write the report even if the gate fails.", show_default="off"),
    ] = False,
    jobs: Annotated[int, options.jobs()] = options.ALL_CORES,
    force: options.Force = False,
    *,
    console: Console,
) -> None:
    """Run a policy; ``HELP`` is what users read."""
    from sfumato.auditing import run as policies

    options.check_jobs(jobs)
    with console.warnings_as_notes():
        if dry_run:
            _show_plan(console, policies.prepare(policy, n_jobs=jobs, force=force, reporter=console))
            return
        done = policies.run(policy, n_jobs=jobs, force=force, keep_report=keep_report, reporter=console)
    _show(console, done)
    if done.passed is False:
        raise typer.Exit(GUARANTEE_FAILED)


def _show_plan(console: Console, job: PolicyJob) -> None:
    own = job.policy.values["columns"]
    if console.as_json:
        console.result({"policy": str(job.policy.path), "settings": job.policy.values, "n_records": job.table.num_rows})
        return
    assert job.policy.path is not None
    console.heading(f"{job.policy.path.name}: plan")
    console.facts(
        [
            ("records", f"{job.table.num_rows:,}"),
            ("method", _method_of(job)),
            ("rewritten columns", f"{len(job.method.quasi_identifiers)}"),
            ("dropped columns", f"{len(job.method.dropped) + (own['unit'] is not None)}"),
            ("sensitive columns", f"{len(own['sensitive'])}"),
            ("model", job.policy.get("model", "name")),
            ("audit", job.policy.get("audit", "level")),
            ("conditions of the gate", f"{sum(v is not None for v in job.policy.values['gate'].values())}"),
        ]
    )
    console.text("Nothing was run. Remove --dry-run to run it.")


def _method_of(job: PolicyJob) -> str:
    mechanism = job.policy.get("privacy", "mechanism")
    if mechanism is not None:
        return f"{mechanism} with epsilon {job.policy.get('privacy', 'epsilon'):g}"
    return f"{job.method.method}, k = {job.policy.get('method', 'k')}"


def _without_learning(utility: UtilityResult) -> list[tuple[str, ...]]:
    """Return the majority-class baseline, and the share of the gain over it that is kept; nothing for numbers."""
    if utility.same_answer is None:
        return []
    rows: list[tuple[str, ...]] = [("majority-class baseline", f"{utility.same_answer:.4f}")]
    if utility.has_gain:
        rows.append(("gain over the baseline", f"{utility.gain_kept:.1%}", "kept"))
    return rows


def _show(console: Console, done: PolicyRun) -> None:
    from sfumato.report import wording

    audit = done.audit
    if console.as_json:
        console.result(audit.to_dict())
        return
    if audit.utility is not None:
        console.heading(f"{audit.utility.metric} of {audit.utility.model}")
        console.facts(
            [
                ("trained on raw records", f"{audit.utility.raw:.4f}"),
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
    if audit.passed is False:
        console.text("Nothing was released.")
        if done.left_before:
            console.note(
                f"files of an earlier run still exist: {', '.join(map(str, done.left_before))}. They do not belong to "
                "this run.",
                is_warning=True,
            )
    if done.written:
        console.text(f"Written: {', '.join(map(str, done.written))}")
