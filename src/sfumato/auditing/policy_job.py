# SPDX-License-Identifier: Apache-2.0
"""A policy with its table: records read, every column with its role, models and anonymizers ready to be made."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.auditing.methods import Method, criteria_of, method_of
from sfumato.auditing.policy_tables import read_policy_file, read_source
from sfumato.auditing.roles import codes_of, without_names
from sfumato.auditing.target_values import counts_of_target, warn_of_target
from sfumato.auditing.utility import (
    Target,
    guide_column_values,
    guide_of,
    labels_of,
    read_target,
    rows_of,
)
from sfumato.errors import ParameterError, Sentence, named
from sfumato.files.publishing import digest_of, fingerprint_of
from sfumato.files.table_file import FileTable, unknown_column
from sfumato.frames import read_table
from sfumato.models import make_model
from sfumato.policy import Policy
from sfumato.policy.settings import TITLES
from sfumato.progress import Reporter
from sfumato.schema import build_schema

if TYPE_CHECKING:
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
    source = table if isinstance(table, FileTable) else read_source(reporter, policy, table)
    policy, method = settle(reporter, policy, source.table, n_jobs)
    check_enough(policy, source.table.num_rows)
    name = method.target
    target = None if name is None else read_target(source.table, name, policy.get("model", "task"))
    method = replace(method, more=criteria_of(policy, lambda path: read_policy_file(reporter, policy, path).table))
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
    dropped += [name for name in [own["persons"]] if name not in (None, own["unit"], *dropped)]
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
            of_persons="" if own["unit"] else f" If each value is one person, name it in {named('unit')}, and k counts "
            "persons.",
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
