# SPDX-License-Identifier: Apache-2.0
"""Read a table into memory, or open it to be processed out of core where it is too large for that."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, ParameterError, Sentence, named
from sfumato.files.table_file import FileTable, Location, ReadingOptions, format_of, read_and_tell
from sfumato.progress import PrintedProgress, Reporter

if TYPE_CHECKING:
    from sfumato.backends.blocks.block_table import BlockTable
    from sfumato.files.csv_reading import GivenType

# Rough peak memory of a run in memory: the engine's share per record, and the values as they are read.
_BYTES_PER_RECORD = 100
_BYTES_PER_VALUE = 16
_SHARE = 0.5
_RECORDS_LOOKED_AT = 1 << 20


@contextmanager
def open_table(
    reporter: Reporter,
    file: Location,
    reading: ReadingOptions,
    *,
    out_of_core: bool | None,
    obstacle: str | None = None,
    types: Mapping[str, GivenType] | None = None,
) -> Iterator[FileTable | BlockTable]:
    """Read a table into memory, or open it to be read block by block.

    Parameters
    ----------
    reporter : Reporter
    file : Path or DuckDBAddress
    reading : ReadingOptions
        With any of them given, the table is read into memory.
    out_of_core : bool or None
        None: out of core if the table would need more than half of the memory.
    obstacle : str, optional
        Why this run cannot be out of core, with the fix.
    types : mapping, optional
        Types of columns of a CSV file, as far as it has them.
    """
    if _is_out_of_core(reporter, file, out_of_core, reading, obstacle):
        with open_blocks(file) as blocks:
            yield blocks
    else:
        yield read_and_tell(reporter, file, reading, types)


def columns_of(table: FileTable | BlockTable) -> list[str]:
    """Return the names of the columns of a table, wherever it is."""
    names: list[str] = table.table.column_names if isinstance(table, FileTable) else table.names
    return names


def example_of(table: FileTable | BlockTable) -> Any:
    """Return all records, or the first of a table that is not in memory."""
    return table.table if isinstance(table, FileTable) else table.head(_RECORDS_LOOKED_AT)


def _is_out_of_core(
    reporter: Reporter, file: Location, asked: bool | None, reading: ReadingOptions, obstacle: str | None
) -> bool:
    if asked is False or reading.is_given:
        return False
    if isinstance(file, Path) and (not file.is_file() or format_of(file) != "parquet"):
        obstacle = f"{named('out_of_core', True)} with {file.name!r}: expected a Parquet file. Convert it first."
    if obstacle is not None:
        if asked:
            raise ParameterError(obstacle)
        return False
    if asked:
        return True
    available = memory_bytes()
    try:
        needed = _bytes_needed(file)
    except InputError:  # reading the table raises it again, in full
        return False
    if available is None or needed <= _SHARE * available:
        return False
    reporter.note(
        Sentence(
            f"{file.name!r} would need about {needed / 2**30:,.1f} of {available / 2**30:,.1f} GiB of memory, so it is "
            f"processed out of core. {named('out_of_core', False)} turns this off."
        )
    )
    return True


def _bytes_needed(file: Location) -> int:
    with open_blocks(file) as blocks:
        return blocks.n_records * (_BYTES_PER_RECORD + _BYTES_PER_VALUE * len(blocks.names))


@contextmanager
def open_blocks(file: Location) -> Iterator[BlockTable]:
    """Open a Parquet file or a table in DuckDB to be read block by block."""
    if isinstance(file, Path):
        from sfumato.backends.parquet.reader import ParquetFiles

        yield ParquetFiles(file)
        return
    from sfumato.backends.duckdb.reader import DuckDBTable

    with DuckDBTable(file) as table:
        yield table


def memory_bytes() -> int | None:
    """Return the memory of the machine, or of this process if it is limited; None if unknown."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # pragma: no cover - Windows
        return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        return min(found, int(limit)) if limit.isdecimal() else found
    except OSError:
        return found


def progress_of(reporter: Reporter) -> PrintedProgress:
    """Return a callback that reports the progress of a long pass, some seconds apart."""
    return PrintedProgress(say=reporter.progress, every=5.0)
