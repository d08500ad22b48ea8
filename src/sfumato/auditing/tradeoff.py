# SPDX-License-Identifier: Apache-2.0
"""Points of trade-off curves: what other choices than a policy's would cost, and what they would leave an attacker.

``sfumato sweep`` draws them; ``sfumato run`` puts those of k into its report where the policy asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sfumato.auditing.pipeline import PolicyJob, compare_models, model_for_raw_records
from sfumato.auditing.utility import rows_of
from sfumato.errors import ParameterError, SfumatoError
from sfumato.progress import QuietReporter, Reporter
from sfumato.report.data import Point


def points_over_k(
    reporter: Reporter, job: PolicyJob, sizes: Sequence[int], choices: Sequence[tuple[str, str]], *, attacks: bool
) -> list[Point]:
    """Protect the same split with every k, method and model, measure the model, and attack it by its loss."""
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
                    reporter.note(
                        f"k = {k} was left out: there are too few records to hold some out and protect others"
                    )
                    continue
                if model not in raw:
                    label_of_raw = "raw records" if is_one_model else f"raw records, {model}"
                    raw[model] = Point(label_of_raw, 1, compared.utility.raw)
                rate = _membership(reporter, own, compared) if attacks else None
            score = compared.utility.transformed
            if compared.utility.anonymized is not None:
                score = compared.utility.anonymized
            points.append(Point(label, k, score, rate, None if rate is None else 0.5))
    return [*raw.values(), *points]


def _membership(reporter: Reporter, job: PolicyJob, compared: Any) -> float | None:
    """Return how often an attacker tells by a model's loss who was in its training data; guessing gives a half.

    None where that cannot be told, as of few records: what the model scores is worth showing all the same.
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


def points_over_minimizers(
    reporter: Reporter,
    job: PolicyJob,
    alphas: Sequence[float],
    leaves: Sequence[int],
    personal: Sequence[str],
    *,
    shows_progress: bool = False,
) -> list[Point]:
    """Minimize with every alpha and number of leaves; measure a classifier on buckets, and who guesses from them.

    One curve per number of leaves against alpha, or with one alpha one curve against the leaves. The score is the
    share of test records classified rightly, the attack the share of their personal values reconstructed.
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
            progress=shows_progress,
        )
    full, nothing = swept.limits
    by: Literal["alpha", "leaves"] = "alpha" if len(alphas) > 1 else "leaves"
    ends = (min(alphas), max(alphas)) if by == "alpha" else (min(leaves), max(leaves))
    baseline = nothing.test_risk
    points = [Point("full resolution", at, 1 - full.test_error, full.test_risk, baseline, by) for at in ends]
    for point in swept.points[2:]:
        alpha, limit = point.parameters["alpha"], point.parameters["max_leaves"]
        label, at = (f"{limit} leaves", alpha) if by == "alpha" else (f"alpha {alpha:g}", limit)
        points.append(Point(label, at, 1 - point.test_error, point.test_risk, baseline, by))
    points += [Point("nothing collected", at, 1 - nothing.test_error, baseline, baseline, by) for at in ends]
    order = {label: place for place, label in enumerate(dict.fromkeys(point.label for point in points))}
    return sorted(points, key=lambda point: (order[point.label], point.at))
