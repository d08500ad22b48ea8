# SPDX-License-Identifier: Apache-2.0
"""``sfumato.run``: run a policy: read, protect, verify, attack, judge, and publish everything or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.policy import Policy
from sfumato.progress import QuietReporter, Reporter

if TYPE_CHECKING:
    from sfumato.auditing.attacks import Attacks
    from sfumato.auditing.policy_job import PolicyJob
    from sfumato.certificates import Certificate
    from sfumato.files.verified_output import Recount
    from sfumato.report.data import Audit, ColumnChange


@dataclass(frozen=True, eq=False)
class PolicyRun:
    """The result of running a policy.

    Attributes
    ----------
    policy : Policy
    audit : Audit
        All results.
    release : pyarrow.Table or None
        The released records, in the order of the written file; None if the gate failed.
    written : tuple of Path
        The files that were written.

    Examples
    --------
    >>> import sfumato
    >>> from sfumato.datasets import load_adult
    >>> people = load_adult(as_frame="pyarrow").frame.select(["age", "sex", "hours-per-week"]).slice(0, 500)
    >>> policy = sfumato.Policy.of(method={"name": "mondrian", "k": 5}, gate={"min_k": 5})
    >>> done = sfumato.run(policy, table=people)
    >>> done.passed, [check.name for check in done.audit.gate]
    (True, ['min_k'])
    """

    policy: Policy
    audit: Audit
    release: Any
    written: tuple[Path, ...]

    @property
    def left_before(self) -> tuple[Path, ...]:
        """Files of an earlier run in the place of those that were not written."""
        from sfumato.auditing.run_outputs import outputs_of

        return tuple(p for p in outputs_of(self.policy).values() if p not in self.written and p.exists())

    @property
    def passed(self) -> bool | None:
        """Whether every condition of the gate is met; None without a gate."""
        return self.audit.passed

    def report(self, path: str | Path) -> None:
        """Write the report for people to a file, a page or Markdown by its ending."""
        self.audit.write(path)

    def _repr_html_(self) -> str:
        return self.audit._repr_html_()


def run(
    policy: Policy | str | Path,
    *,
    table: Any = None,
    n_jobs: int | None = None,
    force: bool = False,
    keep_report: bool = False,
    reporter: Reporter | None = None,
) -> PolicyRun:
    """Run a policy: read, protect, verify, attack, judge.

    Files are written at the end, all of them or none: the release, its partition, the audit and the report. Nothing is
    written if the gate fails, or if the policy names no release. A policy with a mechanism under ``[privacy]`` makes a
    release with epsilon: it is entered in the ledger first, and refused beyond the budget.

    Parameters
    ----------
    policy : Policy, str or Path
        A policy, or the file of one.
    table : frame, optional
        The records, instead of the file that the policy names.
    n_jobs : int, optional
        Threads and processes: one where not given, -1 for all cores.
    force : bool, default=False
        Whether files of an earlier run may be replaced.
    keep_report : bool, default=False
        Whether the audit and the report are written even if the gate fails.
    reporter : Reporter, optional
        Hears of each step; without one, only privacy warnings are issued, as `PrivacyWarning`.

    Returns
    -------
    PolicyRun

    Examples
    --------
    >>> import pandas as pd, sfumato
    >>> people = pd.DataFrame({"age": range(20, 80), "sex": ["f", "m"] * 30, "ill": ["no", "no", "yes"] * 20})
    >>> policy = sfumato.Policy.of(method={"name": "mondrian", "k": 5}, columns={"keep": ["ill"]}, gate={"min_k": 5})
    >>> done = sfumato.run(policy, table=people)
    >>> done.passed, done.release.num_rows
    (True, 60)
    """
    from sfumato.auditing.run_outputs import check_outputs, written

    reporter = reporter or QuietReporter()
    asked = policy if isinstance(policy, Policy) else Policy.read(policy)
    if asked.get("privacy", "mechanism") is not None:
        from sfumato.auditing.private_run import run_privately

        warn_of_review(reporter, asked)
        check_outputs(reporter, asked, force=force)
        audit, released = run_privately(reporter, asked, table)
        return PolicyRun(asked, audit, released, written(asked))
    job = prepare(asked, table=table, n_jobs=n_jobs, force=force, reporter=reporter)
    return run_job(reporter, job, keep_report=keep_report)


def prepare(
    policy: Policy | str | Path,
    *,
    table: Any = None,
    n_jobs: int | None = None,
    force: bool = False,
    reporter: Reporter,
) -> PolicyJob:
    """Check what can be checked before a policy runs, and return it with its table; parameters as of `run`."""
    from sfumato.auditing.policy_job import open_job
    from sfumato.auditing.run_outputs import check_outputs

    asked = policy if isinstance(policy, Policy) else Policy.read(policy)
    warn_of_review(reporter, asked)
    check_outputs(reporter, asked, force=force)
    return open_job(reporter, asked, 1 if n_jobs is None else n_jobs, table=table)


def warn_of_review(reporter: Reporter, policy: Policy) -> None:
    """Warn if the date has passed by which a policy was to be reviewed again."""
    from sfumato.auditing.run_outputs import moment

    review = policy.get("context", "review_by")
    if review is not None and date.fromisoformat(review) < moment().date():
        reporter.note(
            f"{policy.where('context', 'review_by')}: {review} has passed. Review the policy and set a new date.",
            is_warning=True,
        )


class _GateNotPassedError(Exception):
    """The gate failed; raised so that nothing is written."""


def run_job(reporter: Reporter, job: PolicyJob, *, keep_report: bool = False) -> PolicyRun:
    """Measure, attack, protect, judge and publish the table of a policy."""
    from sfumato.auditing.advice import what_to_try
    from sfumato.auditing.certify_files import certify_release
    from sfumato.auditing.compare_releases import describe_earlier, load_earlier
    from sfumato.auditing.methods import rewritten_columns
    from sfumato.auditing.pipeline import (
        compare_models,
        describe_utility,
        partition_writer,
        publication_writer,
        publish,
        ready_to_write,
        release_all,
    )
    from sfumato.auditing.run_outputs import document_writers, write_documents, written
    from sfumato.files.verified_output import recount
    from sfumato.policy.setting_names import with_keys

    earlier = load_earlier(job.policy)
    compared = compare_models(reporter, job, job.policy.get("model", "test_fraction"))
    utility = None if compared is None else describe_utility(job, compared)
    attacks = _no_attacks(reporter, job) if compared is None else _attack(reporter, job, compared)
    curve = () if compared is None else _curve(reporter, job)
    del compared  # its models and tables are not needed while all records are protected
    sizes_before = _group_sizes(job)
    anonymizer, release, persons = release_all(
        reporter, job, earlier=list(earlier.values()), recognized_by=job.policy.get("columns", "persons")
    )
    n_records, columns = job.table.num_rows, described_columns(job, release)
    certificate = certify_release(reporter, job, anonymizer)
    job.free_records()  # one table less while the release is written and read back
    table, persons, notes = ready_to_write(reporter, job.policy, release.table, persons)
    release = replace(release, table=table)
    rewritten, made = rewritten_columns(anonymizer), []

    def judge(read: Any) -> Recount:
        counted = recount(read, rewritten, job.method.k, units=persons, **job.method.promises())
        told = (n_records, columns, utility, attacks, tuple(map(with_keys, notes)))
        judged = _audit(reporter, job, anonymizer, release, read, counted, *told, certificate, sizes_before)
        judged = replace(judged, curve=curve, earlier=describe_earlier(earlier, release, job.policy.get("method", "k")))
        made.append(replace(judged, advice=what_to_try(judged)))
        if made[0].passed is False:
            raise _GateNotPassedError
        return counted

    documents = document_writers(job.policy, made)
    beside: dict[Path, Any] = {}
    if job.policy.file("release") is not None:
        beside |= partition_writer(job.policy, job.method, anonymizer, job.source.style)
        beside |= publication_writer(job.policy, release) | documents
    try:
        publish(reporter, job, table, judge, beside)
    except _GateNotPassedError:
        if keep_report:
            write_documents(documents)
        return PolicyRun(job.policy, made[0], None, written(job.policy, is_released=False) if keep_report else ())
    return PolicyRun(job.policy, made[0], table, written(job.policy))


def _no_attacks(reporter: Reporter, job: PolicyJob) -> Attacks:
    """Return no attacks, with the reason, where no model was measured."""
    from sfumato.auditing.attacks import Attacks, SkippedAttack, attacks_of

    wanted = attacks_of(job.policy.get("audit", "level"), _left_out(job))
    if wanted and (job.target is None or job.policy.get("model", "test_fraction") == 0):
        missing = "there is no target" if job.target is None else "test_fraction = 0 holds nobody out"
        reporter.note(f"no attack is run: {missing}.")
        return Attacks(notes=(f"Attacks need holdout records, and {missing}.",))
    why = "There are too few records to hold some out and protect the rest; lower k or test_fraction, or give more."
    return Attacks(not_run=tuple(SkippedAttack(name, name.replace("_", " "), why) for name in wanted))


def _left_out(job: PolicyJob) -> list[str]:
    return [name.replace("-", "_") for name in job.policy.get("audit", "leave_out")]


def _attack(reporter: Reporter, job: PolicyJob, compared: Any) -> Attacks:
    """Attack the model that was trained on protected records, and those records; held-out people are the control."""
    import numpy as np

    from sfumato.auditing.attacks import Attacks, attack_model, attack_release
    from sfumato.auditing.audit import warn_of_skipped
    from sfumato.auditing.pipeline import model_for_raw_records, protected_estimator
    from sfumato.auditing.subgroups import subgroups_of
    from sfumato.auditing.utility import rows_of

    level = job.policy.get("audit", "level")
    if level == "none":
        return Attacks()
    assert job.target is not None
    train, test = compared.rows
    seed, unfinished = job.policy.get("audit", "seed"), job.policy.get("audit", "unfinished")
    sensitive = job.policy.get("columns", "sensitive")
    left_out = job.policy.get("audit", "leave_out")
    common: dict[str, Any] = {"random_state": seed, "leave_out": _left_out(job), "say": reporter.progress}
    common["titles"] = job.policy.titles
    subgroups = subgroups_of(job, cut_by=test)
    with reporter.step("attacking the released records"):
        on_records = attack_release(
            rows_of(job.table, train),
            compared.released,
            job.method.quasi_identifiers,
            secrets=sensitive or [job.policy.get("columns", "target")],
            sensitive=sensitive,
            control=rows_of(job.table, test),
            places=_places(job, len(train)),
            level=level,
            subgroups=subgroups.among(train),
            **common,
        )
    rows = np.concatenate([train, test])
    table = job.features(rows_of(job.table, rows))
    wanted = [*sensitive, *job.policy.get("columns", "subgroups"), *job.method.quasi_identifiers]
    with reporter.step(f"attacking the model, level {level}"):
        on_model = attack_model(
            model_for_raw_records(job, compared),
            table,
            job.target.values[rows],
            np.arange(len(rows)) < len(train),
            level=level,
            estimator=protected_estimator(job),
            attributes=[name for name in dict.fromkeys(wanted) if name in table.column_names],
            n_jobs=job.method.jobs,
            cache=None if unfinished is None else job.policy.folder / unfinished,
            subgroups=subgroups.among(rows),
            **common,
        )
    attacks = on_model.and_also(on_records)
    if left_out:
        attacks = replace(attacks, notes=(f"Skipped by the policy: {', '.join(left_out)}.", *attacks.notes))
    warn_of_skipped(reporter, attacks)
    return attacks


def _places(job: PolicyJob, n_records: int) -> Any:
    """Return where records are in the file that is published: anywhere, unless the policy keeps the order."""
    import numpy as np

    if job.policy.get("data", "keep_order") == "yes":
        return None
    return np.random.default_rng([job.policy.get("audit", "seed"), 13]).permutation(n_records)


def _curve(reporter: Reporter, job: PolicyJob) -> tuple[Any, ...]:
    """Measure and attack the policy's other k."""
    from sfumato.auditing.tradeoff import curve_of, frontier_over_k

    sizes = sorted({*job.policy.get("audit", "curve"), job.policy.get("method", "k")})
    if len(sizes) == 1:
        return ()
    choices = [(job.method.method, job.policy.get("model", "name"))]
    is_attacked = job.policy.get("audit", "level") != "none" and "threshold" not in _left_out(job)
    return tuple(curve_of(frontier_over_k(reporter, job, sizes, choices, attacks=is_attacked)))


def _group_sizes(job: PolicyJob) -> Any:
    """Return the sizes of the groups of the original table, in persons where k counts them."""
    from sfumato.auditing.utility import person_codes
    from sfumato.verification import count_groups

    persons = None if job.method.unit is None else person_codes(job.table, job.method.unit)
    return count_groups(job.table, job.method.quasi_identifiers, distinct=persons)


def described_columns(job: PolicyJob, release: Any) -> tuple[ColumnChange, ...]:
    """Return the change of every column."""
    from sfumato.auditing.column_changes import describe_columns, roles_of

    own = job.policy.values["columns"]
    roles = roles_of(
        job.table.column_names,
        identifier=[*job.method.dropped, *([own["unit"]] if own["unit"] else [])],
        quasi_identifier=job.method.quasi_identifiers,
        sensitive=own["sensitive"],
        target=[own["target"]] if own["target"] else [],
    )
    losses, k = release.measures["loss_by_column"], job.policy.get("method", "k")
    return describe_columns(job.table, release.table, roles, losses, smallest_shown=k)


def _audit(
    reporter: Reporter,
    job: PolicyJob,
    anonymizer: Any,
    release: Any,
    read: Any,
    counted: Recount,
    n_records: int,
    columns: tuple[ColumnChange, ...],
    utility: Any,
    attacks: Attacks,
    notes: tuple[str, ...],
    certificate: Certificate | None,
    sizes_before: Any,
) -> Audit:
    """Judge the table that was read back, and put all that is known of the release together."""
    from sfumato.auditing.audit import warn_of_unique
    from sfumato.auditing.column_changes import describe_sizes, fewest_values
    from sfumato.auditing.gate import judge_gate
    from sfumato.auditing.methods import rewritten_columns
    from sfumato.auditing.pipeline import versions
    from sfumato.auditing.reidentification import measure_reidentification
    from sfumato.auditing.run_outputs import moment
    from sfumato.auditing.unique_records import measure_uniqueness
    from sfumato.report.data import Audit
    from sfumato.verification import count_groups

    own = job.policy.values["columns"]
    names = rewritten_columns(anonymizer)
    k = job.policy.get("method", "k")
    n_suppressed = release.n_suppressed
    settings = {name: value for section in ("method", "model") for name, value in job.policy.values[section].items()}
    uniqueness, unique = measure_uniqueness(read, names, target=own["target"], smallest_shown=k)
    warn_of_unique(reporter, uniqueness, job.policy.titles)
    context = job.policy.context
    reidentification, reidentified = measure_reidentification(
        sizes_before, counted.sizes, context=context, smallest_shown=k,
        counted="records" if own["unit"] is None else "persons",
    )  # fmt: skip
    return Audit(
        name=job.source.name,
        n_records=n_records,
        n_released=read.num_rows if n_suppressed == 0 or n_suppressed >= k else None,
        n_suppressed=n_suppressed if n_suppressed == 0 or n_suppressed >= k else None,
        method={
            "method": job.method.method,
            **{name: value for name, value in settings.items() if name != "name"},
            "model": job.policy.get("model", "name"),
            "audit level": job.policy.get("audit", "level"),
        },
        guarantees=tuple(criterion.describe() for criterion in anonymizer._all_criteria()),
        gate=judge_gate(
            job.policy.values["gate"],
            smallest_group=counted.smallest_group,
            least_values=fewest_values(read, names, own["sensitive"]),
            utility=utility,
            risks=attacks.risks,
            certified=None if certificate is None else certificate.advantage,
            reidentified=reidentified,
            unique=unique,
            n_suppressed=n_suppressed,
            n_records=n_records,
            smallest_shown=k,
            counted=reidentification.counted,
            not_run=[attack.title for attack in attacks.not_run],
            to_run_them=_to_run_them(attacks, utility),
        ),
        utility=utility,
        sizes=describe_sizes(count_groups(read, names)),
        columns=columns,
        risks=attacks.risks,
        uniqueness=uniqueness,
        certificate=None if certificate is None else certificate.to_dict(),
        notes=(_how_hard(job, attacks), *attacks.sentences, *notes),
        titles=job.policy.titles,
        versions=versions(),
        fingerprint=job.fingerprint,
        smallest_shown=k,
        seconds=reporter.seconds,
        context=context,
        made_at=moment().isoformat(timespec="seconds"),
        policy_sha256=job.policy.digest,
        reidentification=reidentification,
        grouped_by=tuple(names),
    )


def _how_hard(job: PolicyJob, attacks: Attacks) -> str:
    """Return the level of the attacks as a sentence."""
    level = job.policy.get("audit", "level")
    return f"The attacks were run at level {level}." if attacks.risks else f"No attack was run; the level is {level}."


def _to_run_them(attacks: Attacks, utility: Any) -> str:
    """Return how to make a bound on attacks judgeable."""
    if utility is None:
        return "no model was measured; lower k or test_fraction, or give more records"
    names = ", ".join(dict.fromkeys(f'"{attack.attack.replace("_", "-")}"' for attack in attacks.not_run))
    return f"the notes say why; give what they need, or add {names} to leave_out under [audit]"
