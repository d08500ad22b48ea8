# SPDX-License-Identifier: Apache-2.0
"""Read a written release back and count its groups without the engine; raise GuaranteeError if one fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.parquet.reader import ParquetFiles
from sfumato.criteria.criterion_counts import Counter
from sfumato.errors import GuaranteeError
from sfumato.progress import Progress, told
from sfumato.verification import GroupCounter, label_groups

WHAT = "recounting"


def recount(
    path: Path,
    n_records: int,
    names: Sequence[str],
    counters: Sequence[Counter],
    *,
    claimed: Any,
    group: NDArray[np.int32],
    n_threads: int = 1,
    progress: Progress | None = None,
) -> int:
    """Return the size of the smallest group of a written file.

    Parameters
    ----------
    path : Path
    n_records : int
        How many the file must have.
    names : sequence of str
        The quasi-identifiers, as they are called in the release.
    counters : sequence of Counter
        What must hold.
    claimed : pyarrow.Table
        What the records of each group are claimed to be.
    group : ndarray of int32
        The group that each record is claimed to be of.

    Raises
    ------
    GuaranteeError
        When the file does not have all records, or a criterion fails.
    """
    written = ParquetFiles(path)
    if written.n_records != n_records:
        raise GuaranteeError(f"{written.n_records} records were written instead of {n_records}. Nothing is published.")
    sizes = None
    for counter in counters:
        if counter.value_of_row is not None:
            counts = _counted(written, names, counter, progress)[0]
        else:
            if sizes is None:  # counted once, for every criterion on numbers of records
                sizes = claimed_sizes(written, names, claimed, group, n_threads=n_threads, progress=progress)
            if sizes is None:
                sizes = _counted(written, names, counter, progress)[1]
            counts = sizes[:, None]
        n_failed = int((~counter.passes(counts)).sum())
        if n_failed:
            raise GuaranteeError(
                f"the written file has {n_failed} of {len(counts)} groups for which it does not hold that "
                f"{counter.criterion.describe()}: expected none. Nothing is published. Please report this."
            )
    assert sizes is not None  # every anonymizer has a criterion on numbers of records
    return int(sizes.min())


def claimed_sizes(
    files: ParquetFiles,
    names: Sequence[str],
    claimed: Any,
    group: NDArray[np.int32],
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> NDArray[np.int64] | None:
    """Return the sizes of a file's groups if every record equals its claimed values, or None.

    Every record that is read is compared with what it is claimed to be, so nothing is believed: that all records are
    as claimed, and how many there are of each kind, are counted here. Kinds that are equal are one group.
    """
    sizes = np.zeros(claimed.num_rows, np.int64)
    lock = Lock()

    def compare(start: int, piece: Any) -> bool:
        own = group[start : start + piece.num_rows]
        if not all(_are_equal(piece.column(name), claimed.column(name), own) for name in names):
            return False
        counts = np.bincount(own, minlength=len(sizes))
        with lock:
            np.add(sizes, counts, out=sizes)
        return True

    if not all(told(files.each(compare, names, n_threads=n_threads), progress, WHAT, files.n_records)):
        return None
    of_kind = label_groups(claimed, names) if names else np.zeros(claimed.num_rows, np.int64)
    together = np.zeros(int(of_kind.max()) + 1, np.int64)
    np.add.at(together, of_kind, sizes)
    return together[together > 0]


def _are_equal(column: Any, claimed: Any, group: NDArray[np.int32]) -> bool:
    """Return True if all records of a column equal the claims of their groups; missing equals missing."""
    import pyarrow as pa

    expected = claimed.take(pa.array(group))
    if not pa.types.is_dictionary(column.type):
        return bool(column.equals(expected))
    one, other = column.unify_dictionaries().combine_chunks(), expected.combine_chunks()
    if one.dictionary.equals(other.dictionary):
        return bool(one.indices.equals(other.indices))
    return bool(one.dictionary_decode().equals(other.dictionary_decode()))


def _counted(
    files: ParquetFiles, names: Sequence[str], counter: Counter, progress: Progress | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of a criterion in every group of a file, and the sizes of the groups."""
    values = counter.value_of_row
    own = GroupCounter(names, None if values is None else counter.n_values)
    start = 0
    for batch in told(((b.num_rows, b) for b in files.batches(names)), progress, WHAT, files.n_records):
        part = slice(start, start + batch.num_rows)
        own.add(batch, None if values is None else values[part])
        start = part.stop
    counts = own.n_distinct()[:, None] if counter.criterion.counting == "distinct" else own.counts()
    return counts, own.sizes()
