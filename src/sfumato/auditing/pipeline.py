# SPDX-License-Identifier: Apache-2.0
"""Apply a policy to its table: give columns their roles, make models and anonymizers, measure, release."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.allocator import give_back_small_pieces
from sfumato.auditing.methods import Method, criteria_of, method_of, partition_document, recoding_of
from sfumato.auditing.roles import codes_of, without_names
from sfumato.auditing.subgroups import compare_subgroups
from sfumato.auditing.target_values import counts_of_target, warn_of_target
from sfumato.auditing.utility import (
    Comparison,
    Target,
    fit,
    growing,
    guide_column_values,
    guide_of,
    labels_of,
    measure_utility,
    person_codes,
    predicted,
    read_target,
    rows_of,
    split_records,
)
from sfumato.errors import ParameterError, Sentence, named
from sfumato.files.publishing import digest_of, fingerprint_of
from sfumato.files.table_file import FileTable, Location, ReadingOptions, read_file, table_in_memory, unknown_column
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
from sfumato.frames import read_table
from sfumato.models import make_model
from sfumato.policy import Policy
from sfumato.policy.settings import TITLES
from sfumato.progress import Reporter
from sfumato.schema import build_schema

if TYPE_CHECKING:
    from sfumato.files.csv_reading import CsvStyle
    from sfumato.schema import Judgement

Rows = npt.NDArray[np.int64]


@dataclass(eq=False)
class Job:
    """A table and how it is to be protected.

    Attributes
    ----------
    method : Method
        Every column in its role, and the settings of the method and the model.
    source : FileTable
    target : Target or None
    """

    method: Method
    source: FileTable
    target: Target | None

    @property
    def table(self) -> Any:
        """All records; only their columns, to be read one by one, once they are protected."""
        return self.source.table

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the file, or of the table that was handed over."""
        return digest_of(self.table) if self.source.path is None else fingerprint_of(self.source.path)

    def hold_less(self) -> None:
        """Free what training no longer needs: the target, and columns that can be read again."""
        self.target = None
        if self.source.columns is not None:
            self.source = replace(self.source, table=self.source.columns)

    def free_records(self) -> None:
        """Free the records; keep the style of the file, its columns and their types."""
        self.source = replace(self.source, table=self.table.schema.empty_table())

    def features(self, table: Any) -> Any:
        """Return what a model may see of a table, raw or rewritten."""
        return self.method.features(table)

    def new_model(self) -> Any:
        """Make an untrained model; one that does not fit the task is refused."""
        assert self.target is not None
        return make_model(
            self.method.model,
            self.target.task,
            self.method.seed,
            categorical=self.method.categorical,
            n_jobs=self.method.jobs,
            n_records=int(self.target.known.sum()),
        )

    def new_anonymizer(self) -> Any:
        """Make an unfitted anonymizer that keeps all rows, and so joins no groups for a population."""
        kept = tuple(criterion for criterion in self.method.more if criterion.counting != "presence")
        return replace(self.method, suppression_limit=0.0, more=kept).new_anonymizer()

    def guide(self, model: Any, rows: Rows) -> npt.NDArray[Any] | None:
        """Return what guides the groups of these records; None for methods that need nothing."""
        how = self.method.guide
        if how is None:
            return None
        if self.method.guide_column is not None:
            return guide_column_values(self.table, self.method.guide_column)[rows]
        assert self.target is not None
        if how == "labels":
            return labels_of(self.target)[rows]
        return guide_of(model, self.features(rows_of(self.table, rows)), how)


@dataclass(eq=False)
class PolicyJob(Job):
    """The table of a policy.

    Attributes
    ----------
    policy : Policy
    """

    policy: Policy

    def with_settings(self, section: str, **settings: Any) -> PolicyJob:
        """Return the job under a policy with other settings."""
        values = {**self.policy.values, section: {**self.policy.values[section], **settings}}
        policy, own = replace(self.policy, values=values), self.method
        return replace(
            self, policy=policy, method=method_of(policy, own.quasi_identifiers, own.dropped, own.jobs, own.more)
        )


def open_job(reporter: Reporter, policy: Policy, n_jobs: int = 1, *, table: Any = None) -> PolicyJob:
    """Read the table of a policy and give every column its role.

    Parameters
    ----------
    reporter : Reporter
    policy : Policy
    n_jobs : int
    table : frame or FileTable, optional
        The records, instead of the file that the policy names.
    """
    if isinstance(table, FileTable):
        source = table
    else:
        source = _read_source(reporter, policy) if table is None else table_in_memory(table)
        for sentence in source.notes:
            reporter.note(sentence)
    policy, method = settle(reporter, policy, source.table, n_jobs)
    check_enough(policy, source.table.num_rows)
    name = method.target
    target = None if name is None else read_target(source.table, name, policy.get("model", "task"))
    method = replace(method, more=criteria_of(policy, lambda path: _read_file(reporter, policy, path).table))
    job = PolicyJob(method, source, target, policy)
    if target is not None:
        job.new_model()  # raises for a model that does not fit the task, before any work
    job.new_anonymizer()
    counted = [criterion.column for criterion in method.criteria() if criterion.counting == "values"]
    guarded = list(dict.fromkeys(counted))
    check_schema(method, source.table, guarded)
    target_values = method.target_values
    target_values.check(policy.said("method", "target_values"), target, counted=guarded, name=name)
    if name is not None:
        warn_of_target(reporter, counts_of_target(source.table, name, target_values), name, target_values)
    return job


def check_enough(policy: Policy, n_records: int) -> None:
    """Raise ParameterError if a table has fewer records than a group must have."""
    if n_records < policy.get("method", "k"):
        raise ParameterError(
            f"{policy.said('method', 'k')} with {n_records:,} records: expected at most as many as there are records. "
            "Lower k, or collect more records."
        )


def check_schema(method: Method, table: Any, guarded: Sequence[str]) -> None:
    """Raise before any training for columns that the anonymizer would refuse after it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fitting warns again
        build_schema(
            read_table(table),
            quasi_identifiers=method.quasi_identifiers,
            identifiers=method.dropped or None,
            sensitive=guarded,
            unit=method.unit,
            keep=method.keep or None,
            categorical_features=method.categorical or None,
            limits=method.limits or None,
        )


def _read_source(reporter: Reporter, policy: Policy) -> FileTable:
    """Read the file that a policy names."""
    file = policy.source()
    if file is None:
        raise ParameterError(
            f"{policy.where('data', 'file')}: not given, and no table either. Expected one of them: add the file to "
            "the policy, or pass table= to run."
        )
    return _read_file(reporter, policy, file)


def _read_file(reporter: Reporter, policy: Policy, file: Location) -> FileTable:
    """Read a file by what a policy says of files."""
    said = policy.values["data"]
    options = ReadingOptions(
        encoding=said["encoding"],
        separator=said["separator"],
        decimal=said["decimal"],
        header=None if said["header"] is None else said["header"] == "yes",
        types=_types(policy),
        missing=said["missing"],
    )
    with reporter.step(f"reading {file.name}"):
        return read_file(file, options, keep_types=False)  # those of a release are read again


def _types(policy: Policy) -> dict[str, Any]:
    from sfumato.files.csv_columns import TYPE_NAMES, parse_type

    types = {}
    for name, kind in policy.get("data", "types").items():
        try:
            types[name] = parse_type(name, kind)
        except ParameterError:
            raise ParameterError(
                f"{policy.where('data', 'types')}: {name} = {kind!r}, expected one of {', '.join(TYPE_NAMES)}, a date "
                "perhaps with its format, such as 'date:%d.%m.%Y'. Correct the type."
            ) from None
    return types


def _check_columns(policy: Policy, columns: list[str]) -> None:
    named = dict(policy.values["columns"])
    named["limits"] = tuple(named["limits"])
    named["hierarchies"] = tuple(named["hierarchies"]) if isinstance(named["hierarchies"], dict) else ()
    for name, value in named.items():
        for column in (value,) if isinstance(value, str) else value or ():
            if column not in columns:
                raise ParameterError(unknown_column(policy.where("columns", name), column, columns))
    for column in policy.titles:
        if column not in columns:
            raise ParameterError(unknown_column(policy.where(TITLES, column), column, columns))
    guide = policy.get("model", "guide_column")
    if guide is not None and guide not in columns:
        raise ParameterError(unknown_column(policy.where("model", "guide_column"), guide, columns))


def _roles(policy: Policy, columns: list[str]) -> tuple[list[str], list[str]]:
    own = policy.values["columns"]
    guide = policy.get("model", "guide_column")
    unit = [own["unit"]] if own["unit"] is not None and own["unit"] not in own["keep"] else []
    dropped = [*own["identifiers"], *([guide] if guide is not None and guide not in own["keep"] else [])]
    others = {own["target"], *dropped, *unit, *own["sensitive"], *own["keep"]}
    chosen = own["quasi_identifiers"]
    quasi_identifiers = list(chosen) if chosen is not None else [name for name in columns if name not in others]
    if not quasi_identifiers:
        raise ParameterError(
            f"{policy.where('columns', 'quasi_identifiers')}: no column is left to be rewritten, expected at least "
            "one. Name fewer others."
        )
    return quasi_identifiers, dropped


def settle(reporter: Reporter, policy: Policy, table: Any, n_jobs: int) -> tuple[Policy, Method]:
    """Give every column a role; return the policy with its categories, and its method.

    If the policy names no quasi-identifiers, columns that name people are dropped. If it does not say which columns are
    categories, those that are surely codes are.

    Parameters
    ----------
    reporter : Reporter
    policy : Policy
    table : pyarrow.Table
        All records, or the first of many.
    n_jobs : int
    """
    _check_columns(policy, table.column_names)
    quasi_identifiers, dropped = _roles(policy, table.column_names)
    own = policy.values["columns"]
    decided = {*own["limits"], *(own["hierarchies"] if isinstance(own["hierarchies"], dict) else {})}
    if own["quasi_identifiers"] is None:
        every = quasi_identifiers
        quasi_identifiers = without_names(
            reporter, table, every, done="dropped", decided=decided,
            otherwise=f"To release it unchanged, name it in {named('keep')}; to rewrite it, name all columns to "
            f"rewrite in {named('quasi_identifiers')}.",
        )  # fmt: skip
        dropped = [*dropped, *(name for name in every if name not in quasi_identifiers)]
    known = {*(own["categorical"] or ()), *decided}
    found = codes_of(table, [name for name in quasi_identifiers if name not in known], own["target"])
    sure = [one.name for one in found if one.is_surely_code]
    if own["categorical"] is None:
        for one in found:
            reporter.note(_treated_as_code(one) if one.name in sure else _may_be_code(one))
        policy = replace(policy, values={**policy.values, "columns": {**own, "categorical": tuple(sure)}})
    else:
        for one in found:
            if one.name in sure:
                reporter.note(_looks_like_code(one), is_warning=True)
    return policy, method_of(policy, quasi_identifiers, dropped, n_jobs)


def _treated_as_code(found: Judgement) -> Sentence:
    return Sentence(
        f"column {found.name!r} looks like a code, so it is treated as categories: {found.code}. If it is an amount, "
        f"name the codes yourself in {named('categorical_features')}."
    )


def _may_be_code(found: Judgement) -> Sentence:
    return Sentence(
        f"column {found.name!r} may be a code: {found.code}. If so, pass "
        f"{named('categorical_features', [found.name])}; numbers are averaged and cut into ranges."
    )


def _looks_like_code(found: Judgement) -> Sentence:
    return Sentence(
        f"column {found.name!r} looks like a code: {found.code}. If it is one, name it in "
        f"{named('categorical_features')}; numbers are averaged and cut into ranges."
    )


# -- measuring ---------------------------------------------------------------------------------------------------


def compare_models(reporter: Reporter, job: Job, test_fraction: float) -> Comparison | None:
    """Train on raw and on protected records and test both; None, with a note, where that cannot be measured."""
    if job.target is None or test_fraction == 0:
        return None
    method, target = job.method, job.target
    units = person_codes(job.table, method.unit) if method.unit is not None else None
    n_persons = int(target.known.sum()) if units is None else len(set(units[target.known]))
    n_test = ceil(test_fraction * n_persons)
    # Fewer than two records or classes on a side teach nothing, and the rest has to be enough for one group.
    is_enough = n_test > 1 and n_persons - n_test >= max(method.k, 2)
    rows = split_records(target, test_fraction, method.seed, units) if is_enough else None
    if rows is None or (target.task == "classification" and len(set(target.values[rows[0]])) < 2):
        people = "records" if units is None else "persons"
        reporter.note(
            f"no model was measured: a test fraction of {test_fraction:g} of {n_persons:,} {people} with a target "
            f"leaves {n_test:,} to test and {n_persons - n_test:,} to train and protect with k = {method.k}."
        )
        return None
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
    )


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


def release_all(reporter: Reporter, job: Job) -> tuple[Any, Any, Any]:
    """Fit on all records; return the anonymizer, its release, and the person of each released record, if k counts them.

    Where records may be left out, persons travel with the table until it is released, and no further.
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
        release = anonymizer.release(job.table, guide, shuffle=False)
        give_back_small_pieces()
    if unit is not None and unit in release.table.column_names:
        units = plain_values(release.table.column(unit))
    if travels:
        if hasattr(anonymizer, "partition_"):  # which drops the persons of later records
            partition = anonymizer.partition_
            anonymizer.partition_ = replace(partition, dropped=(*partition.dropped, unit))
        release = replace(release, table=release.table.drop_columns([unit]))
    return anonymizer, replace(release, table=job.method.publish(anonymizer, release.table)), units


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
    """Return the writer of the partition by its path, if the policy names one."""
    path = policy.file("artifact")
    if path is None:
        return {}
    document = partition_document(anonymizer, k=method.k, unit=method.unit, keep=method.keep, style=style)
    return {path: lambda temporary, _: write_json(temporary, document, indent=None)}


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
    return kind(job.new_model(), anonymizer=anonymizer, transform_at_predict=not job.method.is_comparable)


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
