# SPDX-License-Identifier: Apache-2.0
"""Parquet files as one long table that is read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.backends.blocks.block_table import (
    RECORDS_AT_ONCE,
    BlockTable,
    in_turn,
    is_block_table,
    numbered,
    one_ahead,
)
from sfumato.errors import InputError
from sfumato.frames.parquet_columns import without_views

_LARGEST_PIECE = 4  # times RECORDS_AT_ONCE: row groups up to this size are read whole


@dataclass(frozen=True)
class Piece:
    """Some row groups of one file.

    Attributes
    ----------
    path : Path
    row_groups : list of int
    start : int
        Number of the first record in the long table.
    n_records : int
    """

    path: Path
    row_groups: list[int]
    start: int
    n_records: int


class ParquetFiles:
    """One Parquet file, several, or all of a folder, in the order of their names.

    Parameters
    ----------
    source : path or sequence of paths

    Raises
    ------
    InputError
        When there is no file, when one cannot be read, or when they differ in their columns.
    """

    words = "Parquet files"

    def __init__(self, source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> None:
        import pyarrow.parquet as pq

        given = [source] if isinstance(source, str | os.PathLike) else list(source)
        self.paths: list[Path] = []
        for path in map(Path, given):
            self.paths += sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not self.paths:
            raise InputError(
                f"no Parquet file in {', '.join(repr(Path(path).name) for path in given) or 'an empty list'}: expected "
                "at least one. Give a file, a list of files, or a folder with files that end in .parquet."
            )
        self.n_records = 0
        self._metadata: dict[Path, Any] = {}
        for place, path in enumerate(self.paths):
            with readable(path):
                read = pq.read_metadata(path)
                schema = read.schema.to_arrow_schema()
            if place == 0:
                self.schema = schema
                self._check_names(path)
            self._check_schema(path, schema)
            self._metadata[path] = read
            self.n_records += read.num_rows
        if self.n_records == 0:
            raise InputError(f"the files have 0 records in {len(self.schema.names)} columns: expected some.")

    def _check_names(self, path: Path) -> None:
        repeated = next((name for name in self.schema.names if self.schema.names.count(name) > 1), None)
        if repeated is not None:
            raise InputError(
                f"{path.name!r} has several columns named {repeated!r}: expected different names. Rename them."
            )

    def _check_schema(self, path: Path, schema: Any) -> None:
        if schema.names != self.schema.names:
            raise InputError(
                f"{path.name!r} has other columns than {self.paths[0].name!r}: expected the same names in the same "
                "order in all files. Rewrite the files with one schema."
            )
        for name in schema.names:
            if schema.field(name).type != self.schema.field(name).type:
                raise InputError(
                    f"the column {name!r} has the type {schema.field(name).type} in {path.name!r} and "
                    f"{self.schema.field(name).type} in {self.paths[0].name!r}: expected one type. Rewrite the files."
                )

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def compression(self) -> str:
        """The compression of the first column, as pyarrow's writer names it."""
        first = next(read for read in self._metadata.values() if read.num_row_groups)
        packed: str = first.row_group(0).column(0).compression.lower()
        return "none" if packed == "uncompressed" else packed

    def batches(self, columns: Sequence[str] | None = None, *, size: int | None = None) -> Iterator[Any]:
        """Yield the records in tables of at most `size`, in order; only some columns where named."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        wanted = None if columns is None else list(columns)
        at_once = size or RECORDS_AT_ONCE

        def read() -> Iterator[Any]:
            for path in self.paths:
                # Without buffering ahead, which would hold a whole file.
                with readable(path), pq.ParquetFile(path, pre_buffer=False) as file:
                    for batch in file.iter_batches(batch_size=at_once, columns=wanted):
                        yield _plain(pa.Table.from_batches([batch]), wanted if wanted is not None else self.names)

        return one_ahead(read())

    def each(
        self,
        work: Callable[[int, Any], Any],
        columns: Sequence[str] | None = None,
        *,
        n_threads: int = 1,
        text_as_categories: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Call a function with every block of the table, several at a time; see `BlockTable`."""
        wanted = self.names if columns is None else list(columns)
        pieces = self._pieces()
        if pieces is None:
            yield from in_turn(numbered(self.batches(wanted)), work, n_threads)
            return
        text = self._text_columns(wanted) if text_as_categories else []
        yield from in_turn(
            ((piece.start, piece.n_records, piece) for piece in pieces),
            lambda start, piece: work(start, self._read(piece, wanted, text)),
            n_threads,
        )

    def _pieces(self) -> list[Piece] | None:
        """Split the files between row groups; None if one is too large to be read whole."""
        pieces: list[Piece] = []
        start = 0
        for path in self.paths:
            metadata = self._metadata[path]
            groups: list[int] = []
            n_held = 0
            for number in range(metadata.num_row_groups):
                n_own = metadata.row_group(number).num_rows
                if n_own > _LARGEST_PIECE * RECORDS_AT_ONCE:
                    return None
                if groups and n_held + n_own > RECORDS_AT_ONCE:
                    pieces.append(Piece(path, groups, start, n_held))
                    start, groups, n_held = start + n_held, [], 0
                groups, n_held = [*groups, number], n_held + n_own
            if n_held:
                pieces.append(Piece(path, groups, start, n_held))
                start += n_held
        return pieces

    def _read(self, piece: Piece, wanted: list[str], text: list[str]) -> Any:
        import pyarrow.parquet as pq

        known = self._metadata[piece.path]
        with (
            readable(piece.path),
            pq.ParquetFile(piece.path, metadata=known, read_dictionary=text or None) as file,
        ):
            return _plain(file.read_row_groups(piece.row_groups, columns=wanted, use_threads=False), wanted)

    def _text_columns(self, wanted: list[str]) -> list[str]:
        import pyarrow as pa

        return [n for n in wanted if pa.types.is_string(self.schema.field(n).type)]

    def head(self, n: int = 1000) -> Any:
        """Return the first records."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = next(path for path in self.paths if self._metadata[path].num_rows)
        with readable(path), pq.ParquetFile(path, pre_buffer=False) as file:
            return _plain(pa.Table.from_batches([next(file.iter_batches(batch_size=n))]), self.names)


def as_blocks(source: Any) -> BlockTable:
    """Return a `BlockTable`: the source itself, or Parquet files."""
    blocks: BlockTable = source if is_block_table(source) else ParquetFiles(source)
    return blocks


def _plain(table: Any, names: list[str]) -> Any:
    """Return some columns of a table, without views of text."""
    chosen = table.select(names)
    return chosen.cast(without_views(chosen.schema))


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise InputError for errors of reading a file."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise InputError(f"the file {path.name!r} does not exist: expected a Parquet file. Check the path.") from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno == 28:
            raise
        raise InputError(
            f"the file {path.name!r} cannot be read as Parquet: expected a whole file. It may be truncated or of "
            "another kind; copy or write it again. Nothing was published."
        ) from None
