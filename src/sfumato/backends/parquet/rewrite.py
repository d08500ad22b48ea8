# SPDX-License-Identifier: Apache-2.0
"""Write a release in blocks, from the rewritten columns of one record per group and each record's group.

The new values of all groups are converted to the types of the files once. A block of the release takes from them by
the numbers of its groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import Recipe
from sfumato.backends.blocks.block_table import RECORDS_AT_ONCE, BlockTable, in_turn
from sfumato.backends.blocks.reordering import stretches_in_order
from sfumato.backends.blocks.working_files import WorkingFiles
from sfumato.backends.parquet.recount import recount
from sfumato.coded_columns import CodedColumn
from sfumato.criteria.criterion_counts import Counter
from sfumato.frames import read_table
from sfumato.frames.arrow_tables import compact_dictionary, value_type
from sfumato.frames.parquet_columns import without_views
from sfumato.progress import Progress, told
from sfumato.schema import Schema


@dataclass(frozen=True, eq=False)
class WrittenFile:
    """A release in a file that is not published yet.

    Attributes
    ----------
    path : Path
    n_records : int
        How many it must have.
    order : ndarray of int or None
        The record of the source that stands in each row; None where they are in the same order.
    claimed : pyarrow.Table
        What the records of each group are claimed to be.
    group : ndarray of int32
        The group that each record is claimed to be of.
    """

    path: Path
    n_records: int
    order: NDArray[np.integer[Any]] | None
    claimed: Any
    group: NDArray[np.int32]
    n_threads: int
    progress: Progress | None

    def recount(self, names: Sequence[str], counters: Sequence[Counter]) -> int:
        """Read the file back, count its groups without the engine, and return the size of the smallest."""
        own = [counter if self.order is None else counter.in_order(self.order) for counter in counters]
        return recount(
            self.path, self.n_records, names, own,
            claimed=self.claimed, group=self.group, n_threads=self.n_threads, progress=self.progress,
        )  # fmt: skip


def written_file(
    table: BlockTable,
    path: Path,
    folder: Path,
    recipe: Recipe,
    schema: Schema,
    columns: Sequence[CodedColumn],
    group: NDArray[np.int32],
    order: NDArray[np.integer[Any]] | None,
    *,
    n_threads: int,
    progress: Progress | None,
) -> WrittenFile:
    """Write a release to an existing file.

    Parameters
    ----------
    table : BlockTable
    path : Path
    folder : Path
        For private working files.
    recipe : Recipe
    schema : Schema
    columns : sequence of CodedColumn
    group : ndarray of int32
        Of every record of the release.
    order : ndarray of int or None
        The record of the table that stands in each row of the release.
    """
    writer = ReleaseWriter(table.schema, schema, recipe, columns, group, table.compression)
    with writer.open(path) as file, WorkingFiles(folder) as working:
        if order is None or not writer.others:  # the values of a group are taken by its number, in any order
            blocks = table.each(writer.piece, writer.others or table.names[:1], n_threads=n_threads)
        else:
            blocks = in_turn(_moved(table, writer.others, order, working.path), writer.piece, n_threads)
        for block in told(blocks, progress, "writing", table.n_records):
            file.write_table(block, row_group_size=block.num_rows)
    return WrittenFile(path, table.n_records, order, writer.of_groups, group, n_threads, progress)


def _moved(
    table: BlockTable, names: Sequence[str], order: NDArray[np.integer[Any]], folder: Path
) -> Iterator[tuple[int, int, Any]]:
    """Yield the unchanged columns in another order, as blocks with their first record and their size."""
    import pyarrow as pa

    source = pa.schema([table.schema.field(name) for name in names])
    # Dictionaries differ from block to block; where their order is declared, all blocks have the same.
    plain = pa.schema([f if getattr(f.type, "ordered", False) else f.with_type(value_type(f.type)) for f in source])
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    batches = (batch.cast(plain) for batch in table.batches(names))
    start = 0
    for stretch in stretches_in_order(batches, place, plain, folder):
        moved = stretch.cast(source)
        for at in range(0, moved.num_rows, RECORDS_AT_ONCE):
            block = moved.slice(at, RECORDS_AT_ONCE)
            yield start, block.num_rows, block
            start += block.num_rows


class ReleaseWriter:
    """Makes blocks of a release, from several threads.

    Parameters
    ----------
    source : pyarrow.Schema
        Of the files read.
    schema : Schema
    partition : Recipe
    columns : sequence of CodedColumn
        With the order that types declare for their categories, where they do.
    group : ndarray of int32
        Of every record.
    compression : str
        As pyarrow calls it.
    """

    def __init__(
        self,
        source: Any,
        schema: Schema,
        partition: Recipe,
        columns: Sequence[CodedColumn],
        group: NDArray[np.int32],
        compression: str,
    ) -> None:
        import pyarrow as pa

        self.others = [n for n in source.names if n not in schema.quasi_identifiers and n not in schema.dropped]
        self.group = group
        self.of_groups = rewritten_groups(source, schema, partition, columns)
        fields = [
            source.field(field.name).remove_metadata() if field.name in self.others else field
            for field in self.of_groups.schema
        ]
        self.schema = pa.schema(fields, metadata=self.of_groups.schema.metadata)
        can_write = compression == "none" or pa.Codec.is_available(compression)
        self._compression = compression if can_write else "zstd"
        # Smallest and largest of text would take a third of the time, and readers hardly ask for them.
        self._ranged = [f.name for f in self.schema if not pa.types.is_dictionary(f.type)]

    def open(self, path: Path) -> Any:
        """Return a Parquet writer for the release."""
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, self.schema, compression=self._compression, write_statistics=self._ranged)

    def piece(self, start: int, batch: Any) -> Any:
        """Return the records from `start` on; `batch` has their columns that are released unchanged."""
        import pyarrow as pa

        group = pa.array(self.group[start : start + batch.num_rows])
        arrays = [
            _without_unused(batch.column(name)) if name in self.others else self.of_groups.column(name).take(group)
            for name in self.schema.names
        ]
        return pa.table(arrays, schema=self.schema)


def _without_unused(column: Any) -> Any:
    """Return an unchanged column without unused categories, which people removed from the table may have had.

    Ordered categories stay, since blocks with different ones would not keep the order.
    """
    return column if getattr(column.type, "ordered", False) else compact_dictionary(column)


def rewritten_groups(source: Any, schema: Schema, partition: Recipe, columns: Sequence[CodedColumn]) -> Any:
    """Return a release with one record per group, in the types of the files; unchanged columns are missing in it."""
    import pyarrow as pa

    listed = {c.name: _in_declared_order(c) for c in columns if c.places is not None}
    n_groups = partition.n_groups
    arrays = [_nothing(n_groups, source.field(name).type, listed.get(name)) for name in source.names]
    table = read_table(pa.table(arrays, schema=source), categorical=schema.categorical_features)
    rewritten = partition.rewrite(table, np.arange(n_groups, dtype=np.int32))
    made = _with_dictionaries(rewritten, used_categories(partition, listed))
    return made.cast(without_views(made.schema)).combine_chunks()


def _in_declared_order(column: CodedColumn) -> list[Any]:
    assert column.categories is not None and column.places is not None
    listed: list[Any] = column.categories[np.argsort(column.places)].tolist()
    return listed


def _nothing(n: int, kind: Any, listed: list[Any] | None) -> Any:
    """Return missing values of a type, with a dictionary that declares the order of its categories, if any."""
    import pyarrow as pa

    if listed is None or not pa.types.is_dictionary(kind):
        return pa.nulls(n, kind)
    declared = pa.array(listed, kind.value_type)
    return pa.DictionaryArray.from_arrays(pa.nulls(n, kind.index_type), declared, ordered=kind.ordered)


def used_categories(partition: Recipe, listed: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the categories that some group got, in their order, for each rewritten column."""
    used: dict[str, list[Any]] = {}
    for column in partition.columns:
        for part in partition.values.get(column.name, []):
            if column.categories is None or part.values is None:
                continue
            codes = part.values if part.missing is None else part.values[~part.missing]
            given = {column.categories[code] for code in np.unique(codes).tolist()}
            in_order = listed.get(column.name, column.categories.tolist())
            used[part.name] = [value for value in in_order if value in given]
    return used


def _with_dictionaries(table: Any, used: Mapping[str, list[Any]]) -> Any:
    """Return the table with dictionaries of the given categories alone.

    A rewritten column would otherwise list every category that was fitted on, also one that a single person has.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, categories in used.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        if not pa.types.is_dictionary(field.type):
            continue
        dictionary = pa.array(categories, field.type.value_type)
        plain = table.column(place).cast(field.type.value_type).combine_chunks()
        codes = pc.index_in(plain, value_set=dictionary, skip_nulls=True).cast(field.type.index_type)
        column = pa.DictionaryArray.from_arrays(codes, dictionary, ordered=field.type.ordered)
        table = table.set_column(place, field, column)
    return table
