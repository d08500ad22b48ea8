# SPDX-License-Identifier: Apache-2.0
"""Certify a saved partition, generalization or anatomized table with a file of people who were set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.arguments import check_share
from sfumato.auditing.methods import recoding_of
from sfumato.auditing.saved_documents import is_generalization, load_generalization, load_partition
from sfumato.errors import InputError, ParameterError, named
from sfumato.files.table_file import Location, ReadingOptions, read_and_tell, unknown_column
from sfumato.fingerprints import Fingerprints
from sfumato.frames import read_table
from sfumato.grouping import number_values

if TYPE_CHECKING:
    from sfumato.auditing.policy_job import PolicyJob
    from sfumato.certificates import Certificate
    from sfumato.progress import Reporter


@dataclass(frozen=True)
class CertifySettings:
    """What to certify.

    Attributes
    ----------
    secrets, known : sequence of str
        Columns to guess, and columns that the attacker knows besides.
    tolerance : mapping of str to float
        Distances within which numbers are guessed right.
    unit : str, optional
        The column with the person of each record.
    confidence, threshold : float
    max_advantage : float, optional
        Limit of the certified advantage; None: no verdict.
    seed : int
    """

    secrets: Sequence[str] = ()
    known: Sequence[str] = ()
    tolerance: Mapping[str, float] | None = None
    unit: str | None = None
    confidence: float = 0.95
    threshold: float = 0.9
    max_advantage: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ParameterError for numbers that are out of range."""
        if self.max_advantage is not None:
            check_share("max_advantage", self.max_advantage, hint="0.05 is 5 pp.")

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise ParameterError for names that are not columns."""
        own = {"secrets": self.secrets, "known": self.known, "tolerance": list(self.tolerance or ())}
        for setting, names in {**own, "unit": [self.unit] if self.unit else []}.items():
            for name in names:
                if name not in columns:
                    raise ParameterError(unknown_column(named(setting), name, columns))


def certify_files(
    reporter: Reporter,
    artifact: Path,
    holdout: Location | None,
    settings: CertifySettings,
    *,
    reading: ReadingOptions,
) -> Certificate:
    """Bound what any attacker can learn from what an artifact shows of people.

    Parameters
    ----------
    reporter : Reporter
    artifact : Path
        A partition, a generalization, or the folder of an anatomized table.
    holdout : Path or DuckDBAddress, optional
        People who were not used to make the artifact; none for an anatomized table.
    settings : CertifySettings
    reading : ReadingOptions
    """
    from sfumato.certificates import certify

    if artifact.is_dir():
        return _certify_tables(reporter, artifact, holdout, settings)
    if holdout is None:
        raise ParameterError(
            f"{artifact.name!r} without {named('holdout')}: expected a file of people who were not used to make it. "
            "Only an anatomized table needs none."
        )
    with reporter.step(f"reading {artifact.name}"):
        encoder, types = _load(artifact)
    source = read_and_tell(reporter, holdout, reading, types)
    settings.check_columns(source.table.column_names)
    with reporter.step(f"counting the cells of {source.table.num_rows:,} records"):
        return certify(
            encoder, source.table,
            secrets=list(settings.secrets) or None, known=list(settings.known), tolerance=settings.tolerance,
            unit=settings.unit, confidence=settings.confidence, threshold=settings.threshold,
            random_state=settings.seed,
        )  # fmt: skip


def _load(artifact: Path) -> tuple[Any, Mapping[str, Any]]:
    """Return a partition or a generalization with the fingerprints beside it, and the types of its columns."""
    fingerprints = Fingerprints.load(artifact) if artifact.is_file() else None
    if is_generalization(artifact):
        saved = load_generalization(artifact)
        return replace(saved.generalization, fingerprints=fingerprints), saved.types
    own = load_partition(artifact)
    return replace(own.partition, fingerprints=fingerprints), own.types


def _certify_tables(
    reporter: Reporter, folder: Path, holdout: Location | None, settings: CertifySettings
) -> Certificate:
    from sfumato.anatomize import AnatomizedTable
    from sfumato.certificates import certify

    if holdout is not None:
        raise InputError(
            f"{named('holdout')} with the folder {folder.name!r} of an anatomized table: expected none, since its "
            "numbers are exact for the people inside. Leave it out."
        )
    with reporter.step(f"reading {folder.name}"):
        tables = AnatomizedTable.load(folder)
    settings.check_columns(tables.sensitive_columns)
    return certify(tables, secrets=list(settings.secrets) or None, tolerance=settings.tolerance)


# -- policies ------------------------------------------------------------------------------------------------------


def certify_release(reporter: Reporter, job: PolicyJob, anonymizer: Any) -> Certificate | None:
    """Bound what any attacker learns from the groups of a release, with the holdout of a policy; None without one.

    The secrets are the sensitive columns, or else the target.
    """
    from sfumato.auditing.policy_tables import read_policy_file
    from sfumato.certificates import certify

    path, own = job.policy.file("holdout"), job.policy.values["columns"]
    if path is None:
        return None
    table = read_policy_file(reporter, job.policy, path).table
    secrets = list(own["sensitive"]) or [own["target"]]
    unit = own["unit"] if own["unit"] in table.column_names else None
    encoder = getattr(anonymizer, "partition_", None) or partial(_rewritten_codes, anonymizer)
    with reporter.step(f"bounding any attacker with {table.num_rows:,} people who were set aside"):
        return certify(encoder, table, secrets=secrets, unit=unit, random_state=job.policy.get("audit", "seed"))


def _rewritten_codes(anonymizer: Any, table: Any) -> Any:
    """Return the group of every record of a method without a partition, by what its columns are rewritten to."""
    rewritten = read_table(recoding_of(anonymizer)(table))
    names = anonymizer.schema_.quasi_identifiers
    return np.column_stack([number_values(rewritten.column(name, for_counting=True)) for name in names])
