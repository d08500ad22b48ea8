# SPDX-License-Identifier: Apache-2.0
"""Private releases of tables that are read block by block: blocks are counted where they are, noise is drawn once.

Where a person has several records, these may lie in different blocks. Then the cells of all records are written to
working files beside the numbers of their persons, and capped person by person. Called by ``sfumato.parquet`` and
``sfumato.spark``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.private_release import (
    PrivateSettings,
    account,
    check_inside,
    promise_of,
    write_cells,
)
from sfumato.anonymize.recoding import Recoding
from sfumato.anonymize.target_labels import code_labels
from sfumato.backends.blocks.block_table import BlockTable
from sfumato.backends.blocks.column_codes import Blocks, ColumnCodes
from sfumato.backends.blocks.working_files import WorkingFiles, into_buckets, n_buckets_for
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import read_table
from sfumato.frames.building import FrameKind
from sfumato.frames.shuffling import random_order
from sfumato.private.encoding import nobody
from sfumato.private.guarantee import PrivacyGuarantee
from sfumato.private.mechanisms import cap_records, noisy_counts, sample_rows, without_rare
from sfumato.progress import Progress, told


@dataclass(frozen=True, eq=False)
class BlockCounter:
    """Counts the records of every cell and label in a block; goes to workers as a whole.

    Attributes
    ----------
    partition : Recoding
        Without fingerprints.
    target : str or None
        The column of labels.
    labels : tuple
    rate : float or None
        Of a sample, which is taken before anything is counted.
    unit : str or None
        The column of persons, of whom only some records count.
    """

    partition: Recoding
    target: str | None
    labels: tuple[Any, ...]
    rate: float | None = None
    unit: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [*(c.name for c in self.partition.columns), *([] if self.target is None else [self.target])]

    @property
    def n_cells(self) -> int:
        """Number of cells and labels."""
        return self.partition.n_groups * max(1, len(self.labels))

    def cells(self, block: Any) -> NDArray[np.int64]:
        """Return the cell and label of every record of an Arrow table."""
        if block.num_rows == 0:
            return np.zeros(0, np.int64)
        y = None if self.target is None else block.column(self.target)
        X = block if self.target is None else block.drop_columns([self.target])
        labels, label = code_labels(y, None if y is None else list(self.labels), block.num_rows)
        group = self.partition.apply_to(read_table(X, categorical=self.partition.categorical))
        return group.astype(np.int64) * len(labels) + label

    def __call__(self, _: int, block: Any) -> NDArray[np.int64]:
        """Return the counts of an Arrow table."""
        return self.count(self.cells(block))

    def count(self, cell: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count cells, or a sample of them."""
        if self.rate is not None:
            cell = cell[sample_rows(len(cell), self.rate)]
        return np.bincount(cell, minlength=self.n_cells).astype(np.int64)


class BlockRelease(NamedTuple):
    """A release that is not counted yet: how blocks are counted, and what is promised."""

    counter: BlockCounter
    settings: PrivateSettings
    promise: PrivacyGuarantee

    def counts(self, blocks: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the released number of records of each cell and label, given the counts of all blocks."""
        summed = np.zeros(self.counter.n_cells, np.int64)
        for counted in blocks:
            summed += counted
        if self.settings.mechanism == "sample":
            assert self.settings.k is not None
            return without_rare(summed, self.settings.k)
        assert self.settings.epsilon is not None
        return noisy_counts(summed, self.settings.epsilon, most_per_person=self.settings.most_per_person or 1)

    def write(self, cell: NDArray[np.integer[Any]], names: Sequence[str], declared: Sequence[str]) -> Any:
        """Return records of some cells and labels as an Arrow table, columns in the order of the source."""
        import pyarrow as pa

        n_labels = max(1, len(self.counter.labels))
        kind = FrameKind("pyarrow", {name: name for name in names}, frozenset(declared))
        table = write_cells(self.counter.partition, kind, np.asarray(cell, np.int64) // n_labels)
        if self.counter.target is None:
            return table
        own = pa.array(list(self.counter.labels)).take(pa.array(cell % n_labels))
        return table.append_column(self.counter.target, own)


def prepare_blocks(
    fitted: Any, names: Sequence[str], blocks: Iterable[Any] | None, target: str | None, settings: PrivateSettings
) -> BlockRelease:
    """Check a private release of a table outside memory, and enter it in the ledger.

    Parameters
    ----------
    fitted : Recoding or fitted anonymizer
    names : sequence of str
        Columns of the table.
    blocks : iterable of Arrow tables, or None
        All records, to compare with the fingerprints of the partition; None where they are not at hand.
    target : str or None
        The column of labels.
    settings : PrivateSettings
    """
    partition = fitted if isinstance(fitted, Recoding) else getattr(fitted, "partition_", None)
    if not isinstance(partition, Recoding):
        raise ParameterError(
            f"the partition is of the type {type(fitted).__name__}: expected a Partition or a fitted anonymizer that "
            "has one. Fit it on other people's records first."
        )
    settings = settings.checked()
    if (target is None) != (settings.labels is None):
        raise ParameterError(
            f"{named('target')} and {named('labels')}: expected both or neither. The labels are listed without "
            "looking at the table."
        )
    unit = None if settings.unit is None else str(settings.unit)
    needed = [*(c.name for c in partition.columns), *(name for name in (target, unit) if name is not None)]
    absent = [name for name in needed if name not in names]
    if absent:
        raise InputError(
            f"the table has no column {absent[0]!r}: expected all {len(partition.columns)} columns of the partition, "
            "the target and the unit. Correct the name."
        )
    check_inside(partition, [name for name in names if name != target], unit)
    promise = promise_of(partition, blocks, unit, settings, has_labels=target is not None)
    account(partition, promise, settings)
    labels = () if settings.labels is None else tuple(settings.labels)
    counted = replace(partition, fingerprints=None)  # type: ignore[type-var]
    return BlockRelease(BlockCounter(counted, target, labels, settings.rate, unit), settings, promise)


def count_capped(
    made: BlockRelease,
    table: BlockTable,
    *,
    most_held: int,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[NDArray[np.int64]]:
    """Yield counts of at most so many records of each person, of one share of the persons after the other.

    The table is read three times. Working files hold the person and the cell of every record. Equal persons have equal
    numbers, whatever their number; nothing is hashed.

    Parameters
    ----------
    made : BlockRelease
        With a unit.
    table : BlockTable
    most_held : int
        Records that memory holds at once.
    scratch : path, optional
        A folder for the working files.
    progress : callable, optional
    """
    counter, most = made.counter, made.settings.most_per_person or 1
    assert counter.unit is not None
    with WorkingFiles(scratch) as files:
        blocks = Blocks(table.n_records, table.batches)
        coded = ColumnCodes(files, blocks, [counter.unit], categorical=(), most_held=most_held, progress=progress)
        if coded.values[counter.unit].has_missing:
            raise nobody(counter.unit)
        cells = files.new_column(np.int64)
        for batch in told(_sized(table.batches(counter.names)), progress, "counting", table.n_records):
            cells.append(counter.cells(batch))
        columns = {"person": coded.columns[counter.unit], "cell": cells}
        buckets = into_buckets(files, columns, ["person"], n_buckets_for(table.n_records, most_held))
        for bucket in range(len(buckets)):
            person, cell = buckets.read(bucket, "person"), buckets.read(bucket, "cell")
            yield counter.count(cell[cap_records(person.astype(np.int64), most, random_order(len(cell)))])


def _sized(batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    return ((batch.num_rows, batch) for batch in batches)
