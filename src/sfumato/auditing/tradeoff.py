# SPDX-License-Identifier: Apache-2.0
"""Compute trade-off curves: the score of a model and the success of an attacker for other choices than a policy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from sfumato.auditing.attacks import Effort
from sfumato.auditing.frontier_rows import Setting, measured_rows
from sfumato.auditing.pipeline import compare_on, compared_rows, model_for_raw_records
from sfumato.auditing.policy_job import PolicyJob, Rows
from sfumato.auditing.protections import Protection, Shared
from sfumato.auditing.utility import fit, predicted, rows_of
from sfumato.errors import ParameterError, named
from sfumato.files.table_file import unknown_column
from sfumato.frames import read_table
from sfumato.policy.personal import find_personal
from sfumato.progress import QuietReporter, Reporter
from sfumato.report.data import Point
from sfumato.report.frontier import Frontier

if TYPE_CHECKING:
    from sfumato.minimize.sweep_result import SweepPoint

_OF_K = ", k = "  # between the label of a curve and its k


def frontier_over_k(
    reporter: Reporter, job: PolicyJob, sizes: Sequence[int], choices: Sequence[tuple[str, str]], *, attacks: bool
) -> Frontier:
    """Protect the policy's split with every k, method and model, measure the model, and attack it by its loss.

    Raises
    ------
    ParameterError
        If there are too few records for any of these k.
    """
    assert job.target is not None
    test_fraction, is_one_model = job.policy.get("model", "test_fraction"), len({model for _, model in choices}) == 1
    raw, protected = [], []
    splits: tuple[Any, ...] = ()
    for model in dict.fromkeys(model for _, model in choices):
        own = job.with_settings("model", name=model)
        raw.append(_protection("raw records" if is_one_model else f"raw records, {model}", own, k=None))
    for method, model in choices:
        label = method if is_one_model else f"{method}, {model}"
        for k in sizes:
            own = job.with_settings("method", name=method, k=k).with_settings("model", name=model)
            rows = compared_rows(own, test_fraction)
            if rows is None:
                reporter.note(f"k = {k} was skipped: too few records to hold some out and protect the others.")
                continue
            splits = (rows,)
            protected.append(_protection(f"{label}{_OF_K}{k}", own, k=k))
    if not protected:
        raise ParameterError(
            f"{job.table.num_rows:,} records are too few for any of these k: expected enough to hold some out and "
            "protect the rest. Give smaller ones."
        )
    labels, is_number = job.target.values, job.target.task == "regression"
    setting = Setting(
        job.table, read_table(job.table), labels, None if is_number else np.unique(labels[job.target.known]), splits,
        quasi_identifiers=[], sensitive=[], secrets=[], groups={}, attacks=("threshold",) if attacks else (),
        effort=Effort(0, 0), random_state=job.policy.get("audit", "seed"),
    )  # fmt: skip
    found = setting.frontier(list(measured_rows(setting, [*raw, *protected], reporter)))
    for row in found.rows:
        if "all" in row.reasons:
            reporter.note(f"{row.name} was skipped: {row.reasons['all']}", is_warning=True)
        elif attacks and not row.attacks:
            reporter.note(f"{row.name} was not attacked: {row.reasons['threshold on the model']}", is_warning=True)
    return found


def curve_of(frontier: Frontier) -> list[Point]:
    """Return the rows of a frontier over k as points of curves, one for each method and model."""
    points = []
    for row in frontier.rows:
        score = row.recoded if row.utility is None else row.utility
        attack = row.strongest("membership", "model")
        if score is not None:
            label, _, _ = row.name.rpartition(_OF_K) if row.parameter is not None else (row.name, "", "")
            rate = None if attack is None else attack.rate.value
            baseline = None if attack is None else attack.baseline
            points.append(Point(label, 1 if row.parameter is None else row.parameter, score.value, rate, baseline))
    return points


def _protection(name: str, job: PolicyJob, *, k: int | None) -> Protection:
    """Return the model of a policy on raw records, or on what the policy would release of them."""

    def fit_raw(train: Rows, test: Rows) -> Any:
        assert job.target is not None
        model = fit(job.new_model(), job.features(rows_of(job.table, train)), job.target.values[train])
        return _OfPolicy(job, model)

    def fit_protected(train: Rows, test: Rows) -> Any:
        compared = compare_on(QuietReporter(), job, (train, test))
        return _OfPolicy(job, model_for_raw_records(job, compared), compared)

    def look(fitted: _OfPolicy, records: Any, labels: Any) -> Shared:
        if fitted.compared is None:
            return Shared()
        inner, anonymizer = _OfPolicy(job, fitted.compared.model), fitted.compared.anonymizer
        return Shared(
            table=fitted.compared.released, model=inner, recode=anonymizer.transform,
            takes_raw=job.method.is_comparable,
        )  # fmt: skip

    family, parameter = ("none", None) if k is None else ("k", float(k))
    how = fit_raw if k is None else fit_protected
    return Protection(name, family, parameter, None, look, fit=how)


class _OfPolicy(BaseEstimator):
    """A fitted model that takes all columns of a policy's table, and sees those that it may."""

    def __init__(self, job: PolicyJob, estimator: Any, compared: Any = None) -> None:
        self.job = job
        self.estimator = estimator
        self.compared = compared

    def predict(self, X: Any) -> Any:
        """Predict records."""
        return predicted(self.estimator.predict, self.job.features(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities of records."""
        return predicted(self.estimator.predict_proba, self.job.features(X))

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of records."""
        return predicted(self.estimator.decision_function, self.job.features(X))

    @property
    def classes_(self) -> Any:
        """The labels that the model knows."""
        return self.estimator.classes_

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


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
