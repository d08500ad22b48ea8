# SPDX-License-Identifier: Apache-2.0
"""Release Parquet files larger than memory with epsilon: blocks are counted, noisy counts are written as records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.anonymize.private_blocks import count_capped, prepare_blocks
from sfumato.anonymize.private_release import PrivateSettings
from sfumato.backends.parquet.reader import as_blocks
from sfumato.documents import unpublished
from sfumato.errors import GuaranteeError, ParameterError
from sfumato.frames.shuffling import random_order
from sfumato.parquet.anonymizing import ParquetRelease, Paths
from sfumato.private.ledger import PrivacyLedger
from sfumato.progress import Progress, told

_WRITTEN_AT_ONCE = 1 << 20
_HELD = 1 << 23  # records of a share of the persons


def release(
    partition: Any,
    source: Paths,
    destination: str | os.PathLike[str],
    *,
    mechanism: str,
    epsilon: float,
    delta: float | None = None,
    rate: float | None = None,
    k: int | None = None,
    target: str | None = None,
    labels: Sequence[Any] | None = None,
    unit: str | None = None,
    most_per_person: int | None = None,
    fitted_on: Any = None,
    ledger: PrivacyLedger | None = None,
    most_held: int = _HELD,
    progress: Progress | None = None,
) -> ParquetRelease:
    """Release Parquet files with differential privacy, by a partition that was fitted on other people.

    Parameters
    ----------
    partition : Partition or fitted anonymizer
    source : path, folder or list of paths
    destination : path
        Appears when all of it was written and read back, or not at all.
    mechanism, epsilon, delta, rate, k, fitted_on, ledger
        As for ``release`` of the anonymizers.
    target : str, optional
        The column of labels, which are released with the cells.
    labels : list, optional
        All labels, listed without looking at the files; with `target`.
    unit : str, optional
        The column that says whose a record is, if a person has several; it is not released.
    most_per_person : int, optional
        With `unit`: so many records of a person count, chosen at random. The noise grows with it.
    most_held : int
        With `unit`: records that memory holds at once.
    progress : callable, optional
        Called with the step, the records done and their number.

    Returns
    -------
    ParquetRelease
        `n_records` is the released number, and `privacy` the promise.

    Notes
    -----
    *Guarantee.* As of ``release`` of the anonymizers. If the partition has fingerprints, all records are compared with
    them first, at 8 bytes each. Memory holds one block, the counts of cells and 8 bytes per released record. With
    `unit`, working files beside the destination hold the person and the cell of every record until the release is
    written.

    Examples
    --------
    >>> import tempfile, numpy as np, pyarrow as pa, pyarrow.parquet as pq
    >>> from sfumato import MondrianAnonymizer
    >>> from sfumato.parquet import release
    >>> others = pa.table({"age": np.arange(500) % 60 + 20})
    >>> anonymizer = MondrianAnonymizer(k=50).fit(others)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"age": np.arange(3000) % 50 + 20}), f"{folder}/people.parquet")
    ...     made = release(
    ...         anonymizer, f"{folder}/people.parquet", f"{folder}/out.parquet",
    ...         mechanism="counts", epsilon=1.0, fitted_on="others",
    ...     )
    >>> 2800 < made.n_records < 3200, made.privacy.epsilon
    (True, 1.0)
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, files = Path(destination), as_blocks(source)
    if any(path.exists() and path.samefile(own) for own in files.paths):
        raise ParameterError(f"the destination {path.name!r} is one of the files read: expected another name.")
    settings = PrivateSettings(mechanism, epsilon, delta, rate, k, labels, unit, most_per_person, fitted_on, ledger)
    made = prepare_blocks(partition, files.names, files.batches(), target, settings)
    if unit is None:
        batches = ((batch.num_rows, made.counter(0, batch)) for batch in files.batches(made.counter.names))
        counts = made.counts(told(batches, progress, "counting", files.n_records))
    else:
        scratch = path.absolute().parent
        counts = made.counts(count_capped(made, files, most_held=most_held, scratch=scratch, progress=progress))
    cell = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    cell = cell[random_order(len(cell))]
    declared = [field.name for field in files.schema if pa.types.is_dictionary(field.type)]
    with unpublished(path) as temporary:
        schema = made.write(cell[:0], files.names, declared).schema
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for start in range(0, len(cell), _WRITTEN_AT_ONCE):
                writer.write_table(made.write(cell[start : start + _WRITTEN_AT_ONCE], files.names, declared))
        n_read = pq.ParquetFile(temporary).metadata.num_rows
        if n_read != len(cell):
            raise GuaranteeError(
                f"{n_read} records were written instead of {len(cell)}. Nothing is published; please report this."
            )
    filled = counts[counts > 0]
    n_cells = made.counter.partition.n_groups
    measures = {"n_records": len(cell), "n_cells": n_cells, "n_filled": len(filled)}
    smallest = int(filled.min()) if len(filled) else 0
    return ParquetRelease(path, len(cell), n_cells, smallest, measures, None, made.promise)
