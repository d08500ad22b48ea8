# SPDX-License-Identifier: Apache-2.0
"""Compute trade-off curves: the score of a model and the success of an attacker for other choices than a policy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato.auditing.pipeline import compare_models, model_for_raw_records
from sfumato.auditing.policy_job import PolicyJob
from sfumato.auditing.utility import rows_of
from sfumato.errors import ParameterError, SfumatoError, named
from sfumato.files.table_file import unknown_column
from sfumato.frames import read_table
from sfumato.policy.personal import find_personal
from sfumato.progress import QuietReporter, Reporter
from sfumato.report.data import Point

if TYPE_CHECKING:
    from sfumato.minimize.sweep_result import SweepPoint


def points_over_k(
    reporter: Reporter, job: PolicyJob, sizes: Sequence[int], choices: Sequence[tuple[str, str]], *, attacks: bool
) -> list[Point]:
    """Protect the same split with every k, method and model, measure the model, and attack it by its loss.

    Raises
    ------
    ParameterError
        If there are too few records for any of these k.
    """
    points: list[Point] = []
    raw: dict[str, Point] = {}
    is_one_model = len({model for _, model in choices}) == 1
    silent = QuietReporter()
    for method, model in choices:
        label = method if is_one_model else f"{method}, {model}"
        for k in sizes:
            own = job.with_settings("method", name=method, k=k).with_settings("model", name=model)
            with reporter.step(f"{label}, k = {k}"):
                compared = compare_models(silent, own, own.policy.get("model", "test_fraction"))
                if compared is None:
                    reporter.note(f"k = {k} was skipped: too few records to hold some out and protect the others.")
                    continue
                if model not in raw:
                    label_of_raw = "raw records" if is_one_model else f"raw records, {model}"
                    raw[model] = Point(label_of_raw, 1, compared.utility.raw)
                rate = _membership(reporter, own, compared) if attacks else None
            score = compared.utility.transformed
            if compared.utility.anonymized is not None:
                score = compared.utility.anonymized
            points.append(Point(label, k, score, rate, None if rate is None else 0.5))
    if not points:
        raise ParameterError(
            f"{job.table.num_rows:,} records are too few for any of these k: expected enough to hold some out and "
            "protect the rest. Give smaller ones."
        )
    return [*raw.values(), *points]


def _membership(reporter: Reporter, job: PolicyJob, compared: Any) -> float | None:
    """Return how often a loss-threshold attack tells members apart; guessing gives one half.

    Return None, with a warning, if the attack cannot run, for example with few records.
    """
    from sfumato.attack.membership import attack_membership

    assert job.target is not None
    rows = np.concatenate(compared.rows)
    try:
        found = attack_membership(
            model_for_raw_records(job, compared),
            job.features(rows_of(job.table, rows)),
            job.target.values[rows],
            np.arange(len(rows)) < len(compared.rows[0]),
            attacks=["threshold"],
            random_state=job.policy.get("audit", "seed"),
        )
    except SfumatoError as error:
        reporter.note(f"k = {job.policy.get('method', 'k')} was not attacked: " + error.sentence, is_warning=True)
        return None
    return float(found["threshold"].rate)


def personal_columns(job: PolicyJob, given: Sequence[str]) -> list[str]:
    """Return the columns that an attacker wants: those given, sensitive in the policy, or of personal appearance."""
    columns = job.features(job.table).column_names
    for name in given:
        if name not in columns:
            raise ParameterError(unknown_column(named("personal"), name, columns))
    careful = [*job.policy.get("columns", "sensitive"), *job.policy.get("columns", "subgroups")]
    chosen = list(given) or [name for name in dict.fromkeys(careful) if name in columns]
    return chosen or list(find_personal(read_table(job.features(job.table)), columns))


def points_over_minimizers(
    reporter: Reporter, job: PolicyJob, alphas: Sequence[float], leaves: Sequence[int], personal: Sequence[str]
) -> list[Point]:
    """Minimize with every alpha and number of leaves; measure a classifier on buckets, and an attacker's success.

    One curve per number of leaves against alpha, or with one alpha one curve against the leaves. The score is the
    accuracy on test records, the attack the share of their personal values that is reconstructed.
    """
    from sfumato.minimize import PrivacyAwareTree, sweep_minimizers

    target = job.target
    assert target is not None
    if target.task != "classification":
        raise ParameterError(
            f"{job.policy.where('columns', 'target')} holds numbers: expected classes, which is what minimizers keep "
            "predictable. Put the numbers into classes, or sweep over k."
        )
    rows = np.flatnonzero(target.known)
    records = rows_of(job.features(job.table), rows)
    categorical = [name for name in job.policy.get("columns", "categorical") if name in records.column_names]
    seed = job.policy.get("method", "seed")
    minimizer = PrivacyAwareTree(
        personal=list(personal) or None, categorical_features=categorical or None, n_jobs=job.method.jobs
    )
    with reporter.step(f"minimizing {len(rows):,} records with {len(alphas) * len(leaves)} settings"):
        swept = sweep_minimizers(
            minimizer,
            records,
            target.values[rows],
            grid={"alpha": list(alphas), "max_leaves": list(leaves)},
            random_state=seed,
            n_jobs=job.method.jobs,
            progress=reporter.is_watched,
        )
    full, nothing = swept.limits
    by: Literal["alpha", "leaves"] = "alpha" if len(alphas) > 1 else "leaves"
    ends = (min(alphas), max(alphas)) if by == "alpha" else (min(leaves), max(leaves))
    baseline = nothing.test_risk

    def at_end(label: str, at: float, limit: SweepPoint) -> Point:
        return Point(label, at, 1 - limit.test_error, limit.test_risk, baseline, by, limit.certified_risk)

    points = [at_end("full resolution", at, full) for at in ends]
    for point in swept.points[2:]:
        alpha, limit = point.parameters["alpha"], point.parameters["max_leaves"]
        label, at = (f"{limit} leaves", alpha) if by == "alpha" else (f"alpha {alpha:g}", limit)
        points.append(at_end(label, at, point))
    points += [at_end("nothing collected", at, nothing) for at in ends]
    order = {label: place for place, label in enumerate(dict.fromkeys(point.label for point in points))}
    return sorted(points, key=lambda point: (order[point.label], point.at))
