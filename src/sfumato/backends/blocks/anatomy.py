# SPDX-License-Identifier: Apache-2.0
"""Divide a table that is read in blocks into Parquet files, with the groups and orders of the same table in memory.

Memory holds per record a number for each sensitive value, its groups and a place in one order at a time. The records
pass through private files, once for each of the tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import Division
from sfumato.backends.blocks.block_table import BlockTable
from sfumato.backends.blocks.column_codes import Blocks, ColumnCodes
from sfumato.backends.blocks.pass_through import SampledValues
from sfumato.backends.blocks.reordering import write_in_order
from sfumato.backends.blocks.working_files import WorkingFiles
from sfumato.backends.parquet.reader import ParquetFiles
from sfumato.errors import GuaranteeError
from sfumato.frames import Table, read_table
from sfumato.frames.arrow_tables import value_type
from sfumato.progress import Progress, told
from sfumato.schema import Judgement, judge_column, judge_naming
from sfumato.verification import diversity_of

RECOUNTED_AT_ONCE = 8_000_000
"""Records whose groups are recounted together."""
_JUDGED_FIRST = 1 << 20  # records by which columns are judged before all of their values are counted


class BlockAnatomies:
    """A table in files or in a database, and the files that its anatomy becomes.

    Parameters
    ----------
    table : BlockTable
    path_of : callable
        From the name of a table to where its file is written. To give it its name is up to the caller.
    folder : Path
        Where the files will be. Working files lie in a private folder beside it while they are needed, or beside the
        identifying file where that cannot be written to.
    progress : callable or None
    """

    def __init__(
        self,
        table: BlockTable,
        path_of: Callable[[str], Path],
        folder: Path,
        *,
        progress: Progress | None = None,
    ) -> None:
        self.table, self.path_of, self.folder, self.progress = table, path_of, folder, progress

    def example(self) -> Any:
        """Return the first records."""
        return self.table.head(1000)

    def judge_naming(self, head: Table, names: Sequence[str]) -> Iterator[Judgement]:
        """Judge columns by their first records, and by the counts of all records where those do not settle it."""
        if not names:
            return
        codes = [name for name in names if name in head.categorical]
        first = read_table(self.table.head(_JUDGED_FIRST).select(names), categorical=codes)
        found = list(judge_naming(first, names))
        if first.n_records == self.table.n_records:
            yield from found
            return
        # The first records can only look more unique than the whole table, unless there are too few of them.
        doubtful = [
            one.name for one in found if one.names_people or 4 * one.counts.n_distinct > one.counts.n_present
        ]  # fmt: skip
        sample = SampledValues(doubtful, self.table.n_records)
        for batch in self._batches("judging columns", doubtful) if doubtful else ():
            sample.add(batch)
        for name, counts in sample.frequencies().items():
            yield judge_column(first.column(name, for_counting=True), counts)

    @contextmanager
    def divided(self, division: Division) -> Iterator[AnatomyInFiles]:
        """Write all files."""
        paths = [self.path_of(label) for label in division.labels]
        of_table = [division.identifying, *(own.columns for own in division.sensitive)]
        groups = [division.groups, *([own.group] for own in division.sensitive)]
        # Not in the folder itself: what a killed process leaves there could be shared with it, and links records.
        beside = self.folder.absolute().parent
        with WorkingFiles(beside if os.access(beside, os.W_OK) else paths[0].parent) as working:
            draws = division.draws()
            group = division.rule.group(self._codes(division, working), draws)
            is_kept = group[:, 0] >= 0
            schemas = {}
            for path, order, label, columns, shown in zip(
                paths, draws.orders, division.labels, of_table, groups, strict=True
            ):
                place = _places(order.permutation(self.table.n_records), is_kept)
                numbers = {name: group[:, division.groups.index(name)] for name in shown}
                schemas[label] = self._write(path, columns, place, numbers, working)
        sizes = [np.bincount(own[is_kept]).astype(np.int64) for own in group.T]
        n_suppressed = len(is_kept) - int(is_kept.sum())
        yield AnatomyInFiles(division, paths, schemas, sizes, n_suppressed, self.progress)

    def _batches(self, what: str, names: Sequence[str]) -> Iterator[Any]:
        """Read some columns and report progress."""
        sized = ((batch.num_rows, batch) for batch in self.table.batches(names))
        return told(sized, self.progress, what, self.table.n_records)

    def _codes(self, division: Division, working: WorkingFiles) -> NDArray[np.int32]:
        """Return a number from 0 for every sensitive value, in the order of the values, missing last."""
        names = division.columns
        coded = ColumnCodes(
            working,
            Blocks(self.table.n_records, self.table.batches),
            names,
            categorical=division.head.categorical,
            most_held=1 << 23,
            progress=self.progress,
        )
        codes = np.empty((self.table.n_records, len(names)), np.int32)
        for place, name in enumerate(names):
            own = np.concatenate(list(coded.columns[name].chunks()))
            counts = np.bincount(own)
            if coded.values[name].is_on_disk:  # in the order of their numbers
                rank = np.cumsum(counts > 0) - 1 - (counts[0] > 0)
                rank[0] = rank[-1] + 1
            else:
                _, rank = coded.values[name].in_order(counts, self.table.schema.field(name).type)
            codes[:, place] = rank[own]
        return codes

    def _write(
        self,
        path: Path,
        names: Sequence[str],
        place: NDArray[np.integer[Any]],
        groups: Mapping[str, NDArray[np.int64]],
        working: WorkingFiles,
    ) -> Any:
        """Write some columns and the groups, in the order of the places; return the schema of the file."""
        import pyarrow as pa

        fields = [pa.field(name, value_type(self.table.schema.field(name).type)) for name in names]
        schema = pa.schema([*fields, *(pa.field(name, pa.int64()) for name in groups)])

        def with_groups() -> Iterator[Any]:
            start = 0
            for batch in self._batches(f"writing {path.stem}", names):
                own = [pa.array(group[start : start + batch.num_rows], pa.int64()) for group in groups.values()]
                start += batch.num_rows
                plain = [batch.column(field.name).cast(field.type) for field in fields]
                yield pa.table([*plain, *own], schema=schema)

        write_in_order(with_groups(), place, schema, path, working.path)
        return schema


def _places(order: NDArray[np.int64], is_kept: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the place of every record in an order, -1 for suppressed ones."""
    rows = order if is_kept.all() else order[is_kept[order]]
    place = np.full(len(is_kept), -1, np.int32 if len(is_kept) < 2**31 else np.int64)
    place[rows] = np.arange(len(rows), dtype=place.dtype)
    return place


@dataclass(eq=False)
class AnatomyInFiles:
    """Files that are not published yet.

    Attributes
    ----------
    division : Division
    paths : sequence of Path
        The identifying and the sensitive files.
    schemas : dict of str to pyarrow.Schema
        Of all files, by the names of the tables.
    sizes : list of ndarray of int64
        Per sensitive table, the records of each group.
    n_suppressed : int
    progress : callable or None
    diversity : dict of str to float
        The l that each sensitive column reaches, once it was recounted.
    """

    division: Division
    paths: Sequence[Path]
    schemas: dict[str, Any]
    sizes: list[NDArray[np.int64]]
    n_suppressed: int
    progress: Progress | None
    diversity: dict[str, float] = field(default_factory=dict)

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Records of each group, one sensitive table after the other."""
        return np.concatenate(self.sizes)

    def recount(self) -> int:
        """Read all files, count their groups with independent code, and return the number of groups."""
        identifying, *sensitive = map(ParquetFiles, self.paths)
        for file, own, expected in zip(sensitive, self.division.sensitive, self.sizes, strict=True):
            sizes = _sizes(identifying, own.group, len(expected))
            if not np.array_equal(sizes, _sizes(file, own.group, len(expected))) or not sizes.all():
                raise GuaranteeError(
                    "the identifying and the sensitive file do not have the same numbers of records in the same "
                    "groups. Nothing is published; please report this."
                )
            reached = self._diversity(file, sizes)
            for name, l in self.division.ls_of(own).items():  # noqa: E741
                if reached[name] < l:
                    raise GuaranteeError(
                        f"l = {l} does not hold: a group of the written file has a value of {name!r} in more than "
                        f"1/{l} of its records. Nothing is published; please report this."
                    )
            self.diversity |= reached
        return len(self.group_sizes)

    def _diversity(self, file: ParquetFiles, sizes: NDArray[np.int64]) -> dict[str, float]:
        """Return the l that each column reaches, counted over groups whose records fit in memory."""
        import pyarrow as pa

        *names, group = file.names
        ends = np.searchsorted(np.cumsum(sizes), np.arange(0, file.n_records, RECOUNTED_AT_ONCE))
        limits = np.unique([0, *ends.tolist(), len(sizes)]).tolist()
        reached = dict.fromkeys(names, float("inf"))
        for number, (first, stop) in enumerate(pairwise(limits), start=1):
            for name in names:
                parts = []
                for batch in file.batches([name, group]):
                    own = batch.column(group).to_numpy()
                    parts.append(batch.filter(pa.array((own >= first) & (own < stop))))
                reached[name] = min(reached[name], diversity_of(pa.concat_tables(parts), group, name))
            if self.progress is not None:
                self.progress("recounting", file.n_records * number // (len(limits) - 1), file.n_records)
        return reached


def _sizes(file: ParquetFiles, group: str, n_groups: int) -> NDArray[np.int64]:
    """Count the records of each group, by the column that holds it."""
    sizes = np.zeros(n_groups, np.int64)
    for batch in file.batches([group]):
        sizes += np.bincount(batch.column(group).to_numpy(), minlength=n_groups)
    return sizes
