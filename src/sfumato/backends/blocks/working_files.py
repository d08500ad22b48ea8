# SPDX-License-Identifier: Apache-2.0
"""Columns of numbers in private temporary files, and records sorted into buckets.

Records that agree in some columns are always in the same bucket. So work on whole groups reads one bucket after the
other.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.system_files import new_file, read_at, write_at

CHUNK = 1 << 20  # records read at a time
_MOST_BUCKETS = 1 << 12
_MIX = np.uint64(0x9E3779B97F4A7C15)


class WorkingFiles:
    """A private folder that exists while the context is open.

    Parameters
    ----------
    folder : path or None
        None: the system's folder for temporary files.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        try:
            self._folder = tempfile.TemporaryDirectory(prefix=".sfumato-", dir=folder)  # for its owner alone
        except OSError as error:
            raise cannot_write(error) from None
        self.path = Path(self._folder.name)
        self._columns: list[ColumnFile] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the files."""
        for column in self._columns:
            column.close()
        self._folder.cleanup()

    def new_column(self, dtype: Any) -> ColumnFile:
        """Return an empty column."""
        column = ColumnFile(self.path / f"column-{len(self._columns)}", dtype)
        self._columns.append(column)
        return column


class ColumnFile:
    """One number per record, in a file."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.n_records = 0
        self._first = 0
        try:
            self._file = new_file(path)
        except OSError as error:
            raise cannot_write(error) from None

    def close(self) -> None:
        """Close the file; to be called once."""
        os.close(self._file)

    def append(self, values: NDArray[Any]) -> None:
        """Append numbers."""
        self.write(self.n_records, values)

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Write numbers from a position on."""
        content = memoryview(np.ascontiguousarray(values, self.dtype).tobytes())
        try:
            write_at(self._file, content, (self._first + start) * self.dtype.itemsize)
        except OSError as error:
            raise cannot_write(error) from None
        self.n_records = max(self.n_records, start + len(values))

    def read(self, start: int, n: int) -> NDArray[Any]:
        """Return numbers from a position on."""
        values = np.empty(n, self.dtype)
        room = memoryview(values.view(np.uint8))  # type: ignore[arg-type]
        if read_at(self._file, room, (self._first + start) * self.dtype.itemsize) < len(room):
            raise InputError("a working file is shorter than what was written to it. Nothing was published.")
        return values

    def part(self, start: int, n: int) -> ColumnFile:
        """Return some of the records as a column that shares this file."""
        own = copy.copy(self)
        own._first, own.n_records = self._first + start, n
        return own

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Yield the numbers in chunks."""
        for start in range(0, self.n_records, CHUNK):
            yield self.read(start, min(CHUNK, self.n_records - start))


def chunks_of(columns: Sequence[ColumnFile]) -> Iterator[list[NDArray[Any]]]:
    """Yield the same chunks of records of several columns."""
    yield from (list(parts) for parts in zip(*(column.chunks() for column in columns), strict=True))


@dataclass(eq=False)
class Buckets:
    """Records in order of their buckets.

    Attributes
    ----------
    columns : mapping of str to ColumnFile
    starts : ndarray of int64
        Bucket b has the records ``starts[b]`` to ``stops[b]``.
    """

    columns: Mapping[str, ColumnFile]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    is_own: bool = field(default=True)

    def __len__(self) -> int:
        """Number of buckets."""
        return len(self.starts)

    def n_records(self, bucket: int) -> int:
        """Return the number of records of a bucket."""
        return int(self.stops[bucket] - self.starts[bucket])

    def read(self, bucket: int, name: str) -> NDArray[Any]:
        """Return one column of a bucket."""
        return self.columns[name].read(int(self.starts[bucket]), self.n_records(bucket))

    def shrink(self, bucket: int, kept: Mapping[str, NDArray[Any]]) -> None:
        """Replace the records of a bucket by fewer ones, unless the columns are shared."""
        if not self.is_own:
            return
        for name, values in kept.items():
            self.columns[name].write(int(self.starts[bucket]), values)
            self.stops[bucket] = self.starts[bucket] + len(values)


def n_buckets_for(n_records: int, most_held: int) -> int:
    """Return the number of buckets so that few have more than `most_held` records."""
    return 1 if n_records <= most_held else min(_MOST_BUCKETS, -(-n_records * 5 // (most_held * 4)))


def into_buckets(
    files: WorkingFiles,
    columns: Mapping[str, ColumnFile],
    keys: Sequence[str],
    n_buckets: int,
) -> Buckets:
    """Sort records into buckets by the hash of their keys; those of a bucket keep their order.

    Parameters
    ----------
    files : WorkingFiles
        Where the sorted copy goes.
    columns : mapping of str to ColumnFile
        What is sorted.
    keys : sequence of str
        Records that agree in these come into the same bucket.
    n_buckets : int
    """
    n_records = next(iter(columns.values())).n_records
    if n_buckets == 1:
        return Buckets(columns, np.zeros(1, np.int64), np.array([n_records]), is_own=False)
    bucket = np.empty(n_records, np.uint16)
    start = 0
    for parts in chunks_of([columns[name] for name in keys]):
        own = bucket_of(parts, n_buckets)
        bucket[start : start + len(own)] = own
        start += len(own)
    sizes = np.bincount(bucket, minlength=n_buckets)
    starts = np.cumsum(sizes) - sizes
    made = {name: files.new_column(column.dtype) for name, column in columns.items()}
    place = starts.copy()
    for low in range(0, n_records, CHUNK):
        own = bucket[low : low + CHUNK]
        order = np.argsort(own, kind="stable")
        counts = np.bincount(own, minlength=n_buckets)
        ends = np.cumsum(counts)
        for name, column in columns.items():
            values = column.read(low, len(own))[order]
            for b in np.flatnonzero(counts).tolist():
                made[name].write(int(place[b]), values[ends[b] - counts[b] : ends[b]])
        place += counts
    return Buckets(made, starts, starts + sizes)


def bucket_of(keys: Iterable[NDArray[Any]], n_buckets: int) -> NDArray[np.uint16]:
    """Return the bucket of every record, given its codes in some columns."""
    mixed: Any = np.uint64(0)
    for codes in keys:
        mixed = (mixed ^ codes.astype(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    buckets: NDArray[np.uint16] = (((mixed >> np.uint64(32)) * np.uint64(n_buckets)) >> np.uint64(32)).astype(np.uint16)
    return buckets


def cannot_write(error: OSError) -> InputError:
    """Return the error for a working file that cannot be written."""
    return InputError(
        f"the working files cannot be written ({error.strerror or 'input/output error'}): expected room for the codes "
        "of all records. Free some, or name another folder for them. Nothing was published."
    )
