# SPDX-License-Identifier: Apache-2.0
"""Compare protections on a table in a file, with roles of its columns from options or a policy."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.auditing.frontier import DEFAULT_ATTACKS, frontier
from sfumato.auditing.policy_job import PolicyJob, open_job
from sfumato.auditing.utility import person_codes, rows_of
from sfumato.errors import InputError, ParameterError, named
from sfumato.files.table_file import FileTable, Location, ReadingOptions, read_and_tell, unknown_column

if TYPE_CHECKING:
    from sfumato.policy import Policy
    from sfumato.progress import Reporter
    from sfumato.report.frontier import Frontier
    from sfumato.report.frontier_row import FrontierRow

_PUBLIC = ("bounds", "categories", "target_bounds")


@dataclass(frozen=True)
class FrontierSettings:
    """What to compare, and how.

    Attributes
    ----------
    protections : mapping of str to numbers
        Families and their numbers; empty: a few of each.
    attacks : str or sequence of str
    n_shadows : int or None
    secrets, subgroups : sequence of str
    public : mapping
        Public knowledge: bounds, categories, target_bounds.
    others : Path or DuckDBAddress, optional
        A table of other people.
    n_splits : int
    test_fraction : float
    seed : int
    n_jobs : int
    """

    protections: Mapping[str, Sequence[float]] = field(default_factory=dict)
    attacks: str | Sequence[str] = DEFAULT_ATTACKS
    n_shadows: int | None = None
    secrets: Sequence[str] = ()
    subgroups: Sequence[str] = ()
    public: Mapping[str, Any] = field(default_factory=dict)
    others: Location | None = None
    n_splits: int = 5
    test_fraction: float = 0.5
    seed: int = 0
    n_jobs: int = 1


def frontier_of_file(
    reporter: Reporter,
    policy: Policy,
    table: FileTable | None,
    settings: FrontierSettings,
    *,
    reading: ReadingOptions,
    on_row: Callable[[FrontierRow], Any] | None = None,
) -> Frontier:
    """Compare protections of the model of a policy on its table.

    Parameters
    ----------
    reporter : Reporter
    policy : Policy
        Says the roles of the columns and the model.
    table : FileTable or None
        The records; None: those of the file that the policy names.
    settings : FrontierSettings
    reading : ReadingOptions
        Of the table of other people.
    on_row : callable, optional
        As for `frontier`.
    """
    job = open_job(reporter, policy, settings.n_jobs, table=table)
    if job.target is None:
        raise ParameterError(
            f"no target was named: expected the column that the model predicts. Give {named('target')}."
        )
    if job.method.unit is not None:
        reporter.note("k, l and t count records here, not persons; a person's records stay on one side of a split.")
    known = np.flatnonzero(job.target.known)
    X, y = _features(job, rows_of(job.table, known)), _labels(job, known)
    sensitive = [name for name in job.policy.get("columns", "sensitive") if name in X.column_names]
    for parameter, names in (("secrets", settings.secrets), ("subgroups", settings.subgroups)):
        for name in names:
            if name not in X.column_names:
                raise ParameterError(unknown_column(named(parameter), name, X.column_names))
    return frontier(
        X, y, job.new_model(), dict(settings.protections) or None,
        attacks=settings.attacks, n_shadows=settings.n_shadows,
        quasi_identifiers=[name for name in job.method.quasi_identifiers if name not in sensitive],
        sensitive=sensitive or None, secrets=settings.secrets or None,
        subgroups=settings.subgroups or job.policy.get("columns", "subgroups") or None,
        others=None if settings.others is None else _others(reporter, job, settings.others, reading),
        groups=None if job.method.unit is None else person_codes(rows_of(job.table, known), job.method.unit),
        n_splits=settings.n_splits, test_fraction=settings.test_fraction, random_state=settings.seed,
        n_jobs=settings.n_jobs, reporter=reporter, on_row=on_row, **settings.public,
    )  # fmt: skip


def _features(job: PolicyJob, table: Any) -> Any:
    """Return what a model may see; numbers that are codes become text, so that every protection knows that."""
    import pyarrow as pa

    features = job.features(table)
    for name in job.method.categorical:
        if name in features.column_names:
            place = features.column_names.index(name)
            features = features.set_column(place, name, features.column(name).cast(pa.string()))
    return features


def _labels(job: PolicyJob, rows: Any) -> Any:
    """Return the target: numbers, or classes as they stand in the table."""
    assert job.target is not None and job.method.target is not None
    if job.target.task == "regression":
        return job.target.values[rows]
    return np.asarray(rows_of(job.table, rows).column(job.method.target).to_pylist(), object).astype(str)


def _others(reporter: Reporter, job: PolicyJob, file: Location, reading: ReadingOptions) -> tuple[Any, Any]:
    """Read the records of other people, with the columns of the table."""
    table = read_and_tell(reporter, file, reading).table
    missing = [name for name in job.table.column_names if name not in table.column_names]
    if missing:
        raise InputError(f"{file.name!r} has no column {missing[0]!r}: expected the columns of the table itself.")
    table = table.select(job.table.column_names).cast(job.table.schema)
    known = np.flatnonzero(~np.asarray(table.column(job.method.target).is_null()))
    target = np.asarray(rows_of(table, known).column(job.method.target).to_pylist(), object).astype(str)
    return _features(job, rows_of(table, known)), target


def read_public(path: Path) -> dict[str, Any]:
    """Read what is publicly known of columns: a TOML file with ``[bounds]``, ``[categories]``, ``target_bounds``.

    Raises
    ------
    InputError
        For a file that is not valid TOML, or says something else.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path.name!r} cannot be read as TOML ({type(error).__name__}). Correct it.") from None
    unknown = sorted(set(document) - set(_PUBLIC))
    if unknown:
        raise InputError(f"{path.name!r} has {unknown[0]!r}: expected some of {', '.join(_PUBLIC)}. Remove it.")
    for name in ("bounds", "categories"):
        own = document.get(name, {})
        if not isinstance(own, dict) or not all(isinstance(value, list) for value in own.values()):
            raise InputError(f"{path.name!r}: {name} has something else than lists by column. Write age = [0, 100].")
    return document
