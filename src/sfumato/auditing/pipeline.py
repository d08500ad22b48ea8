# SPDX-License-Identifier: Apache-2.0
"""Apply a policy to its table: compare models, release all records, write and judge them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.allocator import give_back_small_pieces
from sfumato.auditing.methods import Method, partition_document, recoding_of
from sfumato.auditing.policy_job import Job, PolicyJob, Rows
from sfumato.auditing.subgroups import compare_subgroups
from sfumato.auditing.utility import (
    Comparison,
    fit,
    growing,
    measure_utility,
    person_codes,
    predicted,
    rows_of,
    split_records,
)
from sfumato.files.verified_output import (
    ORDER_KEPT,
    Recount,
    Writer,
    compact_dictionaries,
    formula_warning,
    judged_in_memory,
    plain_values,
    shuffled,
    write_judged,
)
from sfumato.fingerprints import fingerprints_path
from sfumato.policy import Policy
from sfumato.progress import Reporter

if TYPE_CHECKING:
    from sfumato.files.csv_reading import CsvStyle


# -- measuring ---------------------------------------------------------------------------------------------------


def compare_models(reporter: Reporter, job: Job, test_fraction: float) -> Comparison | None:
    """Train on raw and on protected records and test both; None, with a note, where that cannot be measured."""
    if job.target is None or test_fraction == 0:
        return None
    rows = compared_rows(job, test_fraction)
    if rows is None:
        n_persons, n_test = _numbers(job, test_fraction)
        people = "records" if job.method.unit is None else "persons"
        reporter.note(
            f"no model was measured: a test fraction of {test_fraction:g} of {n_persons:,} {people} with a target "
            f"leaves {n_test:,} to test and {n_persons - n_test:,} to train and protect with k = {job.method.k}."
        )
        return None
    return compare_on(reporter, job, rows)


def compared_rows(job: Job, test_fraction: float) -> tuple[Rows, Rows] | None:
    """Return the records to train with and to test on; None if there are too few of them for k."""
    assert job.target is not None
    method, target = job.method, job.target
    n_persons, n_test = _numbers(job, test_fraction)
    # Fewer than two records or classes on a side teach nothing, and the rest has to be enough for one group.
    if n_test <= 1 or n_persons - n_test < max(method.k, 2):
        return None
    units = person_codes(job.table, method.unit) if method.unit is not None else None
    rows = split_records(target, test_fraction, method.seed, units)
    has_one_class = target.task == "classification" and len(set(target.values[rows[0]])) < 2
    return None if has_one_class else rows


def _numbers(job: Job, test_fraction: float) -> tuple[int, int]:
    """Return how many persons have a target, and how many of them are for testing."""
    assert job.target is not None
    unit, known = job.method.unit, job.target.known
    n_persons = int(known.sum()) if unit is None else len(set(person_codes(job.table, unit)[known]))
    return n_persons, ceil(test_fraction * n_persons)


def compare_on(reporter: Reporter, job: Job, rows: tuple[Rows, Rows]) -> Comparison:
    """Train on raw and on protected records of one split, and test both."""
    assert job.target is not None
    method, target = job.method, job.target
    train = rows[0]

    def publish(anonymizer: Any, released: Any) -> Any:
        made = method.publish(anonymizer, released)
        assert method.target is not None
        return made, *method.target_values.learned(made, method.target, target, train)

    return measure_utility(
        reporter,
        job.table,
        target,
        new_model=job.new_model,
        new_anonymizer=job.new_anonymizer,
        guide=job.guide,
        features=job.features,
        rows=rows,
        is_comparable=method.is_comparable,
        publish=publish,
    )


def describe_utility(job: PolicyJob, compared: Comparison) -> Any:
    """Turn a comparison into the audit's own numbers: intervals, and the change per subgroup."""
    from sfumato.attack.result import bootstrap_interval
    from sfumato.report.data import UtilityResult

    assert job.target is not None
    utility = compared.utility
    test = compared.rows[1]
    raw, own = _right_answers(job, compared, test)
    interval = (
        bootstrap_interval(own - raw, random_state=0)
        if job.target.task == "classification"
        else _r2_interval(job, raw, own, test)
    )
    subgroups: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    if job.target.task == "classification":
        subgroups, notes = compare_subgroups(job, raw, own, test)
    elif job.policy.get("columns", "subgroups"):
        notes = ("No subgroup is shown: the effect by subgroup is measured for classes, and the target is a number.",)
    return UtilityResult(
        metric=utility.metric,
        model=job.policy.get("model", "name"),
        raw=utility.raw,
        protected=utility.anonymized,
        transformed=utility.transformed,
        interval=interval,
        n_train=utility.n_train,
        n_test=utility.n_test,
        subgroups=subgroups,
        notes=notes,
        same_answer=_same_answer(job, *compared.rows),
        n_parameters=count_parameters(compared.model),
    )


def count_parameters(model: Any) -> int | None:
    """Return how many numbers a fitted model learned: weights, or one for each node of a tree; None if not known."""
    model = getattr(model, "steps", [("", model)])[-1][1]  # the last step of a pipeline
    model = getattr(model, "regressor_", model)  # the model inside one that scales its target
    if hasattr(model, "tree_"):
        return int(model.tree_.node_count)
    if hasattr(model, "estimators_"):
        return sum(int(tree.tree_.node_count) for tree in model.estimators_)
    if hasattr(model, "_predictors"):
        return sum(len(tree.nodes) for trees in model._predictors for tree in trees)
    weights = [getattr(model, name, None) for name in ("coef_", "intercept_")]
    weights += [*getattr(model, "coefs_", ()), *getattr(model, "intercepts_", ())]
    return sum(int(np.size(part)) for part in weights if part is not None) or None


def _same_answer(job: Job, train: Rows, test: Rows) -> float | None:
    """Return how often the most frequent class of the training records is right; None for numbers."""
    assert job.target is not None
    if job.target.task != "classification":
        return None
    answers, counts = np.unique(job.target.values[train], return_counts=True)
    return float((job.target.values[test] == answers[counts.argmax()]).mean())


def _right_answers(job: Job, compared: Comparison, test: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return per test record whether both models are right, or their squared errors for numbers."""
    assert job.target is not None
    records = rows_of(job.table, test)
    seen = records if job.method.is_comparable else compared.anonymizer.transform(records)
    truth = job.target.values[test]
    before = predicted(compared.raw_model.predict, job.features(records))
    after = predicted(compared.model.predict, job.features(seen))
    if job.target.task == "classification":
        return (before == truth).astype(float), (after == truth).astype(float)
    return (before - truth) ** 2, (after - truth) ** 2


def _r2_interval(job: Job, raw: npt.NDArray[Any], own: npt.NDArray[Any], test: Rows) -> tuple[float, float]:
    from sfumato.attack.result import bootstrap_interval

    assert job.target is not None
    truth = job.target.values[test]
    spread = float(((truth - truth.mean()) ** 2).mean()) or 1.0
    low, high = bootstrap_interval((raw - own) / spread, random_state=0)
    return low, high


def release_all(
    reporter: Reporter, job: Job, *, earlier: Sequence[Any] = (), recognized_by: str | None = None
) -> tuple[Any, Any, Any]:
    """Fit on all records; return the anonymizer, its release, and the person of each released record, if k counts them.

    Where records may be left out, persons travel with the table until it is released, and no further.

    Parameters
    ----------
    reporter : Reporter
    job : Job
    earlier : sequence of Publication
        Earlier releases, to compare this one with.
    recognized_by : str, optional
        The column that recognizes people in them.
    """
    model = None
    if job.method.needs_model:
        assert job.target is not None
        known = np.flatnonzero(job.target.known)
        with reporter.step(f"training the guide on all {len(known):,} records"):
            model = fit(job.new_model(), job.features(rows_of(job.table, known)), job.target.values[known])
    anonymizer, unit = job.method.new_anonymizer(), job.method.unit
    travels = unit is not None and unit not in job.method.keep and job.method.suppression_limit > 0
    if travels:
        anonymizer.set_params(keep=[*job.method.keep, unit])
    units = None if unit is None else plain_values(job.table.column(unit))
    with reporter.step(growing(f"anonymizing all {job.table.num_rows:,} records")):
        guide = job.guide(model, np.arange(job.table.num_rows))
        del model
        job.hold_less()
        give_back_small_pieces()
        anonymizer.fit(job.table, guide)
        give_back_small_pieces()
        release = anonymizer.release(job.table, guide, earlier=earlier, persons=recognized_by, shuffle=False)
        give_back_small_pieces()
    if unit is not None and unit in release.table.column_names:
        units = plain_values(release.table.column(unit))
    if travels:
        if hasattr(anonymizer, "partition_"):  # which drops the persons of later records
            partition = anonymizer.partition_
            anonymizer.partition_ = replace(partition, dropped=(*partition.dropped, unit))
        release = replace(release, table=release.table.drop_columns([unit]))
    release = replace(release, table=job.method.publish(anonymizer, release.table))
    _tell_of_emptied_columns(reporter, job, release.table)
    return anonymizer, release, units


def _tell_of_emptied_columns(reporter: Reporter, job: Job, released: Any) -> None:
    """Warn of columns in which most values were too rare to be shown: the release says little there."""
    from sfumato.auditing.column_changes import emptied_columns

    for name, share in emptied_columns(job.table, released, job.method.quasi_identifiers).items():
        reporter.note(
            f"{name!r} has no value in {share:.0%} of the released records, because values that few people have are "
            "not shown. Make its values coarser in the file, drop it, or give it a hierarchy.",
            is_warning=True,
        )


def ready_to_write(reporter: Reporter, policy: Policy, table: Any, persons: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """Return a release in the order of its file, the person of each record, and what its readers must be warned of.

    Call this after everything that compares the release with the input row by row.
    """
    output = policy.file("release")
    found: list[str] = []
    table = compact_dictionaries(table)
    if policy.get("data", "keep_order") == "yes":
        found.append(ORDER_KEPT)
    else:
        table, persons = shuffled(table, persons)
    if output is not None and (formulas := formula_warning(table, output)):
        found.append(formulas)
    for sentence in found:
        reporter.note(sentence, is_warning=True)
    return table, persons, tuple(found)


def publish(
    reporter: Reporter, job: PolicyJob, table: Any, judge: Callable[[Any], Recount], beside: Mapping[Path, Writer]
) -> Recount:
    """Write a release and what belongs to it once it was read back and judged; without a file, judge the table."""
    output = job.policy.file("release")
    if output is None:
        with reporter.step("counting the groups"):
            return judged_in_memory(table, judge=judge, beside=beside)
    with reporter.step(f"writing {output.name}, reading it back and counting its groups"):
        return write_judged(table, output, style=job.source.style, judge=judge, beside=beside)


def partition_writer(
    policy: Policy, method: Method, anonymizer: Any, style: CsvStyle | None = None
) -> dict[Path, Writer]:
    """Return the writers of the partition and of the owner's fingerprints by path, if the policy names a partition."""
    path = policy.file("artifact")
    if path is None:
        return {}
    document = partition_document(anonymizer, k=method.k, unit=method.unit, keep=method.keep, style=style)
    writers: dict[Path, Writer] = {path: lambda temporary, _: write_json(temporary, document, indent=None)}
    known = anonymizer.partition_.fingerprints
    if known is not None:
        beside = fingerprints_path(path)
        writers[beside] = lambda temporary, digests: write_json(temporary, known.to_dict(digests[path]), indent=None)
    return writers


def publication_writer(policy: Policy, release: Any) -> dict[Path, Writer]:
    """Return the writer of what the owner keeps of a release by path, if the policy names a file for it."""
    path = policy.file("publication")
    kept = release.publication
    return {} if path is None else {path: lambda temporary, _: write_json(temporary, kept.to_dict(), indent=None)}


def write_json(path: Path, document: dict[str, Any], *, indent: int | None = 1) -> None:
    """Write a document as JSON; without an indent, in one line."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    path.write_text(text, encoding="utf-8")


def protected_estimator(job: Job) -> Any:
    """Return the whole pipeline as one estimator, for shadow models: guide, protection, retraining."""
    from sfumato.anonymize import AnonymizedClassifier, AnonymizedRegressor

    assert job.target is not None
    kind = AnonymizedClassifier if job.target.task == "classification" else AnonymizedRegressor
    # It gets what a model may see: neither the target nor what is dropped.
    keep = [name for name in job.method.keep if name not in (*job.method.dropped, job.method.target)]
    anonymizer = job.new_anonymizer().set_params(identifiers=None, keep=keep or None, criteria=None)
    # The model that is judged learns from the released table, whose records are representatives.
    is_recoded = not job.method.is_comparable
    return kind(job.new_model(), anonymizer=anonymizer, learn_from="points", transform_at_predict=is_recoded)


def model_for_raw_records(job: Job, compared: Comparison) -> Any:
    """Return the model trained on protected records as one that takes raw records.

    One that has seen ranges is asked through the partition, as its users and its attackers ask it.
    """
    if job.method.is_comparable:
        return compared.model
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    return make_pipeline(FunctionTransformer(recoding_of(compared.anonymizer)), compared.model)


def versions() -> dict[str, str]:
    """Return the versions of what a result depends on."""
    names = ("sfumato", "numpy", "scikit-learn", "pyarrow", "numba")
    return {name: version(name) for name in names} | {"Python": ".".join(map(str, sys.version_info[:3]))}
