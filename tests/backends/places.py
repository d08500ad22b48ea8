# SPDX-License-Identifier: Apache-2.0
"""Places where a table can live, for tests that must hold in all of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@dataclass(frozen=True)
class Place:
    """A table somewhere: the source for the verbs, the verbs, the table as a release holds it, its name in messages.

    A new place needs a function like `in_parquet`, its name in `PLACES` and `CAN_HOLD`, and its reader in
    `small_blocks`. The source is called `in` or `in.db`: a test looks for files that were left behind.
    """

    source: Any
    verbs: Any
    table: pa.Table
    words: str


def in_parquet(table: pa.Table, folder: Path) -> Place:
    import sfumato.parquet

    source = folder / "in"
    source.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(table.num_rows), 3)):
        if len(rows):
            part = table.slice(int(rows[0]), len(rows))
            pq.write_table(part, source / f"{number}.parquet", row_group_size=450)
    return Place(source, sfumato.parquet, pq.read_table(source), "Parquet files")


def in_duckdb(table: pa.Table, folder: Path) -> Place:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    import sfumato.duckdb

    with duckdb.connect(folder / "in.db") as connection:
        connection.execute('create table people as from "table"')
        held = connection.table("people").to_arrow_table()
    return Place(f"duckdb:{folder / 'in.db'}?table=people", sfumato.duckdb, held, "a table in DuckDB")


def in_a_query(table: pa.Table, folder: Path) -> Place:
    place = in_duckdb(table, folder)
    return replace(place, source=f"duckdb:{folder / 'in.db'}?query=select * from people")


PLACES = {"parquet": in_parquet, "duckdb": in_duckdb, "query": in_a_query}
CAN_HOLD = {"parquet": ("duration",), "duckdb": (), "query": ()}
"""Kinds of columns that only some places have."""


@contextmanager
def small_blocks(size: int) -> Iterator[None]:
    """Make blocks so small that tables of tests have several, wherever they are."""
    from sfumato.backends.blocks import reordering, working_files
    from sfumato.backends.duckdb import reader as duckdb_reader
    from sfumato.backends.parquet import reader as parquet_reader

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet_reader, "RECORDS_AT_ONCE", size)
        patched.setattr(duckdb_reader, "RECORDS_AT_ONCE", size)
        patched.setattr(working_files, "CHUNK", max(1, size - 2))
        patched.setattr(reordering, "STRETCH", max(1, size - 1))
        yield
