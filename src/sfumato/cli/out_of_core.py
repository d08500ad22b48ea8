# SPDX-License-Identifier: Apache-2.0
"""Whether a command works through a Parquet file piece by piece, and what it says on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.errors import InputError, ParameterError

if TYPE_CHECKING:
    from sfumato.backends.blocks.table import BlockTable
    from sfumato.cli.console import Console
    from sfumato.files.table_file import Location, ReadingOptions

OutOfCore = Annotated[
    bool | None,
    typer.Option(
        "--out-of-core/--in-memory",
        help="Work through a Parquet file or a table in DuckDB piece by piece, with little memory per record, or hold "
        "the table in memory. The result is the same.",
        rich_help_panel="Method",
        show_default="piece by piece where the table would need more than half of the memory",
    ),
]

# What a run in memory needs at its peak, roughly: the engine's share per record, and the values as they are read.
_BYTES_PER_RECORD = 100
_BYTES_PER_VALUE = 16
_SHARE = 0.5


def is_chosen(
    console: Console, file: Location, asked: bool | None, reading: ReadingOptions, *, obstacle: str | None = None
) -> bool:
    """Say whether to work piece by piece: where asked to, or where the table is large; then a line says so.

    Parameters
    ----------
    console : Console
    file : Path or DuckDBAddress
        The input.
    asked : bool or None
        What the user said.
    reading : ReadingOptions
        What was said about CSV; whoever reads the table says that it does not go with Parquet.
    obstacle : str or None
        What stands against it beside the format of the input, with the way out of it.
    """
    from sfumato.files.table_file import format_of

    if asked is False or reading.is_given:
        return False
    if isinstance(file, Path) and (not file.is_file() or format_of(file) != "parquet"):
        obstacle = f"--out-of-core with {file.name!r}: expected a Parquet file. Convert it first."
    if obstacle is not None:
        if asked:
            raise ParameterError(obstacle)
        return False
    if asked:
        return True
    there = memory_bytes()
    try:
        needed = _bytes_needed(file)
    except InputError:  # whoever reads the table says what is wrong with the file
        return False
    if there is None or needed <= _SHARE * there:
        return False
    console.note(
        f"{file.name!r} would need about {needed / 2**30:,.1f} of {there / 2**30:,.1f} GiB of memory: it is worked "
        "through piece by piece. --in-memory turns this off."
    )
    return True


def _bytes_needed(file: Location) -> int:
    with opened(file) as files:
        return files.n_records * (_BYTES_PER_RECORD + _BYTES_PER_VALUE * len(files.names))


@contextmanager
def opened(file: Location) -> Iterator[BlockTable]:
    """Open a table that is worked through piece by piece."""
    if isinstance(file, Path):
        from sfumato.backends.parquet.reader import ParquetFiles

        yield ParquetFiles(file)
        return
    from sfumato.backends.duckdb.reader import DuckDBTable

    with DuckDBTable(file) as table:
        yield table


def memory_bytes() -> int | None:
    """Return how much memory there is: that of the machine, or what this process may use of it; None: not known."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # pragma: no cover - Windows
        return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        return min(found, int(limit)) if limit.isdecimal() else found
    except OSError:
        return found


def progress_of(console: Console) -> Any:
    """Return what tells how far a run is, some seconds apart; None where nothing is to be said."""
    if console.quiet:
        return None
    from sfumato.parquet import PrintedProgress

    return PrintedProgress(every=5.0)
