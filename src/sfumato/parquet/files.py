# SPDX-License-Identifier: Apache-2.0
"""Parquet files as one long table that is read piece by piece, and a file that appears only when it is judged."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import InputError

RECORDS_AT_ONCE = 1 << 20


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
        for place, path in enumerate(self.paths):
            with readable(path):
                read = pq.read_metadata(path)
                schema = read.schema.to_arrow_schema()
            if place == 0:
                self.schema = schema
            self._check_schema(path, schema)
            self.n_records += read.num_rows
        if self.n_records == 0:
            raise InputError(f"the files have 0 records in {len(self.schema.names)} columns: expected some.")

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

    def batches(self, columns: Sequence[str] | None = None, *, size: int = RECORDS_AT_ONCE) -> Iterator[Any]:
        """Yield the records in tables of at most `size`, in order; only some columns where named."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        wanted = None if columns is None else list(columns)

        def read() -> Iterator[Any]:
            for path in self.paths:
                with readable(path), pq.ParquetFile(path, memory_map=False) as file:
                    for batch in file.iter_batches(batch_size=size, columns=wanted):
                        yield pa.Table.from_batches([batch]).select(wanted if wanted is not None else self.names)

        return one_ahead(read())

    def head(self, n: int = 1000) -> Any:
        """Return the first records."""
        return next(self.batches(size=n))


def one_ahead(pieces: Iterator[Any]) -> Iterator[Any]:
    """Yield the pieces, the next one being read while the caller works on the last."""
    nothing = object()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, pieces, nothing)
        while (piece := waiting.result()) is not nothing:
            waiting = pool.submit(next, pieces, nothing)
            yield piece


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file into a sentence."""
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


@contextmanager
def unpublished(destination: Path) -> Iterator[Path]:
    """Lend a name beside the destination; what was written there is moved into place at the end, or removed.

    Only the owner can read the file while it is not judged.
    """
    if not destination.absolute().parent.is_dir():
        raise InputError(
            f"the folder of {destination.name!r} does not exist: expected a folder to write to. Create it first."
        )
    temporary = destination.with_name(f".{destination.name}.unpublished-{secrets.token_hex(4)}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(destination)
    except OSError as error:
        raise InputError(
            f"{destination.name!r} cannot be written: {error.strerror or 'input/output error'}. Nothing was published."
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
