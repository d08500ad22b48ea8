# SPDX-License-Identifier: Apache-2.0
"""Anonymize Parquet files larger than memory, with the groups and values of the same table in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.backend_fitting import TargetColumn, fit_transform_table
from sfumato.arguments import thread_count
from sfumato.backends.blocks.backend import BlockBackend
from sfumato.backends.blocks.block_table import BlockTable
from sfumato.backends.parquet.reader import as_blocks
from sfumato.errors import ParameterError
from sfumato.private.guarantee import PrivacyGuarantee
from sfumato.progress import Progress

MOST_HELD = 50_000_000
"""Records that memory holds at once, as codes of about 40 bytes."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | BlockTable


@dataclass(frozen=True)
class ParquetRelease:
    """A release that was written.

    Attributes
    ----------
    path : Path
    n_records, n_groups, smallest_group : int
    measures : dict
    order : ndarray of int or None
        The record of the source that stands in each row; None where they are in the same order. It undoes the
        shuffle: it is for checks by the owner of the source, and must not be published.
    privacy : PrivacyGuarantee or None
        The promise of differential privacy, if a mechanism made the release.
    """

    path: Path
    n_records: int
    n_groups: int
    smallest_group: int
    measures: dict[str, Any] = field(default_factory=dict)
    order: NDArray[np.integer[Any]] | None = field(default=None, repr=False, compare=False)
    privacy: PrivacyGuarantee | None = None


def fit_transform(
    anonymizer: Anonymizer,
    source: Paths,
    destination: str | os.PathLike[str],
    *,
    guide_column: str | Sequence[str] | None = None,
    model: Any = None,
    target: str | None = None,
    target_kind: Literal["classes", "numbers"] = "classes",
    floor: int | None = None,
    shuffle: bool = True,
    most_held: int = MOST_HELD,
    progress: Progress | None = None,
) -> ParquetRelease:
    """Anonymize Parquet files into one Parquet file, and fit the anonymizer.

    Parameters
    ----------
    anonymizer : ModelGuidedAnonymizer, MondrianAnonymizer (strict median) or WorkloadAwareAnonymizer
        Unfitted; fitted afterwards, as if it had seen the table at once.
    source : path, folder or list of paths
    destination : path
        Appears when the release was recounted, or not at all.
    guide_column : str or list of str, optional
        The column of predictions or labels, or one column of probabilities per class. It is dropped, unless the
        anonymizer's `keep` names it.
    model : fitted estimator, optional
        Predicts in blocks instead, from all columns that are not dropped.
    target : str, optional
        The column for which regions are counted. ``anonymizer.partition_`` then has them, and
        ``AnonymizedClassifier(model).fit_partition(anonymizer.partition_)`` learns from them.
    target_kind : {"classes", "numbers"}, default="classes"
        What the target holds: classes for a classifier, or numbers for a regressor.
    floor : int, optional
        The fewest people that a number of a region counts. None: k, but at least 20 and at most 50.
    shuffle : bool, default=True
        Write the records in a random order. False keeps the order of the source, which can tell an attacker which
        record of a group belongs to whom: only for files that are compared row by row.
    most_held : int
        Records that memory holds at once, as codes.
    progress : callable, optional
        Called with the step, the records done and their number; `PrintedProgress` prints it with the
        records per second and the time left.

    Returns
    -------
    ParquetRelease

    Raises
    ------
    GuaranteeError
        If a criterion does not hold on the written file. Nothing is published then.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow.parquet as pq
    >>> from sfumato import MondrianAnonymizer
    >>> from sfumato.datasets import make_census
    >>> from sfumato.parquet import fit_transform
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, output = Path(folder, "people.parquet"), Path(folder, "released.parquet")
    ...     pq.write_table(make_census(2000, as_frame="pyarrow").data, source)
    ...     done = fit_transform(MondrianAnonymizer(k=20), source, output)
    ...     n_records = pq.read_metadata(output).num_rows
    >>> n_records, done.smallest_group >= 20
    (2000, True)
    """
    path = Path(destination)
    files = as_blocks(source)
    if any(path.exists() and path.samefile(own) for own in files.paths):
        raise ParameterError(f"the destination {path.name!r} is one of the files read: expected another name.")
    table = BlockBackend(
        files, path,
        where=files.words, shuffle=shuffle, n_threads=thread_count(anonymizer.n_jobs), progress=progress,
    )  # fmt: skip
    regions = None if target is None else TargetColumn(target, target_kind, floor)
    made = fit_transform_table(
        anonymizer, table, guide_column=guide_column, model=model, target=regions, most_held=most_held
    )
    measures = {"information_loss": anonymizer.information_loss_}
    return ParquetRelease(path, made.n_records, made.n_groups, made.smallest_group, measures, table.order)
