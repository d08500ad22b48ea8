# SPDX-License-Identifier: Apache-2.0
"""Reorder a stream of records with one stretch of the output in memory at a time.

Records go to private files first, one for each stretch of the output. Then each stretch is read, sorted and written.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.frames.parquet_columns import without_views

STRETCH = 1 << 20
"""Records put in order at a time, at least."""
_MOST_FILES = 200
_PLACE = "\x00place"  # no column of a table is called this


def write_in_order(
    batches: Iterable[Any], place: NDArray[np.integer[Any]], schema: Any, path: Path, folder: Path
) -> None:
    """Write a Parquet file.

    Parameters
    ----------
    batches, place, schema, folder
        As in :func:`stretches_in_order`.
    path : Path
    """
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in stretches_in_order(batches, place, schema, folder):
            writer.write_table(table)


def stretches_in_order(
    batches: Iterable[Any], place: NDArray[np.integer[Any]], schema: Any, folder: Path
) -> Iterator[Any]:
    """Yield records in another order, as tables that follow each other.

    Parameters
    ----------
    batches : iterable of pyarrow.Table
        The records, with the columns of the schema.
    place : ndarray of int
        The place of each record, counted from 0; negative: left out.
    schema : pyarrow.Schema
        Of the tables.
    folder : Path
        A private folder for the working files, which are removed.
    """
    import pyarrow as pa

    n_written = int(place.max()) + 1
    stretch = max(STRETCH, -(-n_written // _MOST_FILES))
    working = without_views(schema).append(pa.field(_PLACE, pa.int64()))
    own = folder / "stretches"
    own.mkdir(mode=0o700)
    try:
        paths = [own / str(number) for number in range(-(-n_written // stretch))]
        _scatter(batches, place, working, paths, stretch)
        yield from _gather(paths, schema)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _scatter(
    batches: Iterable[Any], place: NDArray[np.integer[Any]], schema: Any, paths: list[Path], stretch: int
) -> None:
    """Write every record to the file of its stretch."""
    import pyarrow as pa

    writers = [pa.ipc.new_stream(path, schema) for path in paths]
    try:
        start = 0
        for batch in batches:
            own = place[start : start + batch.num_rows].astype(np.int64)
            start += batch.num_rows
            table = pa.table([*batch.columns, pa.array(own)], names=schema.names).cast(schema)
            kept = np.flatnonzero(own >= 0)
            file = own[kept] // stretch
            order = np.argsort(file, kind="stable")
            table = table.take(pa.array(kept[order]))
            ends = np.cumsum(np.bincount(file, minlength=len(paths)))
            for number in np.unique(file).tolist():
                first = int(ends[number - 1]) if number else 0
                writers[number].write_table(table.slice(first, int(ends[number]) - first))
    finally:
        for writer in writers:
            writer.close()


def _gather(paths: list[Path], schema: Any) -> Iterator[Any]:
    """Yield each stretch with its records in order."""
    import pyarrow as pa

    for stretch in paths:
        with pa.OSFile(str(stretch)) as file, pa.ipc.open_stream(file) as stream:
            table = stream.read_all().unify_dictionaries()
        stretch.unlink()
        order = np.argsort(table[_PLACE].to_numpy(), kind="stable")
        yield table.drop_columns([_PLACE]).take(pa.array(order)).cast(schema)
