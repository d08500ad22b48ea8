# SPDX-License-Identifier: Apache-2.0
"""Codes of more records than memory holds, in a private temporary file.

One byte or two per column and record, and four per channel: a tenth of the table or less. Within a chunk of records a
column's codes lie side by side, so that a column is counted with its own few bins in the cache. The outer grower counts
chunk by chunk.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.partition.candidates import Candidates
from sfumato.partition.criterion_checks import Check
from sfumato.partition.histogram import Shape
from sfumato.partition.phantom_search import count_hashes
from sfumato.partition.records import Layout, Records
from sfumato.partition.streaming import (
    ColumnChunk,
    Routing,
    advance_chunk,
    count_places,
    count_sides_of_chunk,
    gather_columns,
)
from sfumato.system_files import new_file, read_at, write_at

_CHUNK = 1 << 16  # records read at a time: what is read stays in the cache of a core until it is counted
_MOST_MARKS = 1 << 28  # persons marked at once, over nodes and sides
_NONE = np.zeros(0, np.int64)


class CodeFile:
    """Records on disk for the grower; a context manager that removes its file.

    Parameters
    ----------
    folder : Path
        Where the file goes: beside the output, where there is room.
    kinds : sequence of numpy types
        Of the codes of each column: uint8 or uint16.
    empty : Records
        No records, of the types that are handed out: codes as wide as the widest, padded.
    n_threads : int
    """

    def __init__(self, folder: Path, kinds: Sequence[Any], empty: Records, *, n_threads: int = 1) -> None:
        self.empty = empty
        self._n_dense = empty.dense.shape[1]
        self._is_wide = [np.dtype(kind).itemsize == 2 for kind in kinds]
        self._n_wide = sum(self._is_wide)
        # Where each column lies: 0, 1, ... among those of two bytes, -1, -2, ... among those of one.
        wide, narrow = iter(range(self._n_wide)), iter(range(-1, -1 - len(kinds), -1))
        self._at = np.array([next(wide) if is_wide else next(narrow) for is_wide in self._is_wide], np.int64)
        self.bytes_per_record = 4 * self._n_dense + len(kinds) + self._n_wide
        self._path = folder / f".sfumato-codes-{secrets.token_hex(4)}"
        try:
            self._file = new_file(self._path)
            with suppress(OSError):  # where a file in use can lose its name, even a killed process leaves none behind
                self._path.unlink()
        except OSError as error:
            raise self._cannot_write(error) from None
        self._n_threads = n_threads
        self._lock = Lock()
        self._gathered = empty
        self.n_records = 0
        self.checks: Sequence[Check] = ()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the file."""
        os.close(self._file)
        self._path.unlink(missing_ok=True)

    # -- writing and reading -------------------------------------------------------------------------------------

    def write(self, start: int, codes: Sequence[NDArray[Any]], dense: NDArray[np.int64] | None) -> None:
        """Write records from `start` on, given the codes of each column; several threads may call this."""
        n = len(codes[0])
        parts = [] if dense is None else [np.ascontiguousarray(dense[:, c], np.int32) for c in range(dense.shape[1])]
        if dense is not None and dense.size:
            low, high = int(dense.min()), int(dense.max())
            assert np.iinfo(np.int32).min <= low <= high <= np.iinfo(np.int32).max
        parts += [np.ascontiguousarray(c, np.uint16) for c, wide in zip(codes, self._is_wide, strict=True) if wide]
        parts += [np.ascontiguousarray(c, np.uint8) for c, wide in zip(codes, self._is_wide, strict=True) if not wide]
        try:
            for first in range(start - start % _CHUNK, start + n, _CHUNK):
                a, b = max(first, start), min(first + _CHUNK, start + n)
                self._write_run(first, a - first, [part[a - start : b - start] for part in parts])
        except OSError as error:
            raise self._cannot_write(error) from None
        with self._lock:
            self.n_records = max(self.n_records, start + n)

    def _cannot_write(self, error: OSError) -> InputError:
        return InputError(
            f"the working file cannot be written ({error.strerror or 'input/output error'}): expected room for "
            f"{self.bytes_per_record} bytes per record beside the output. Free some, or write elsewhere. Nothing was "
            "published."
        )

    def _write_run(self, first: int, skipped: int, parts: list[NDArray[Any]]) -> None:
        """Write records of the chunk that begins with record `first`, after some of its records."""
        offset = first * self.bytes_per_record
        for part in parts:
            write_at(self._file, _bytes_of(part), offset + skipped * part.itemsize)
            offset += _CHUNK * part.itemsize

    def start(self, checks: Sequence[Check] = ()) -> None:
        """Assign all records to the root."""
        self.checks = checks
        self.node_of_row = np.zeros(self.n_records, np.uint32)
        os.ftruncate(self._file, -(-self.n_records // _CHUNK) * _CHUNK * self.bytes_per_record)

    def chunks(self) -> Iterator[tuple[int, Records]]:
        """Yield chunks of records with the number of their first; each is valid until the next."""
        room = self._room()
        for start in range(0, self.n_records, _CHUNK):
            yield start, self._as_records(self._read(start, room))

    def _room(self) -> NDArray[np.uint8]:
        return np.empty(_CHUNK * self.bytes_per_record, np.uint8)

    def _read(self, start: int, room: NDArray[np.uint8]) -> ColumnChunk:
        if read_at(self._file, _bytes_of(room), start * self.bytes_per_record) < len(room):
            raise InputError(
                "the working files are shorter than what was written to them: expected them to stay as they are. "
                "Leave the folder of the output alone while this runs. Nothing was published."
            )
        wide_from = 4 * _CHUNK * self._n_dense
        narrow_from = wide_from + 2 * _CHUNK * self._n_wide
        return ColumnChunk(
            min(_CHUNK, self.n_records - start),
            room[:wide_from].view(np.int32).reshape(self._n_dense, _CHUNK),
            room[wide_from:narrow_from].view(np.uint16).reshape(self._n_wide, _CHUNK),
            room[narrow_from:].reshape(len(self._is_wide) - self._n_wide, _CHUNK),
            self._at,
        )

    def _as_records(self, chunk: ColumnChunk) -> Records:
        # Column by column, as they are read and counted.
        codes = np.zeros((self.empty.codes.shape[1], chunk.n_records), self.empty.codes.dtype).T
        for place, at in enumerate(self._at):
            codes[:, place] = (chunk.wide[at] if at >= 0 else chunk.narrow[-1 - at])[: chunk.n_records]
        dense = chunk.dense[:, : chunk.n_records].astype(np.int64).T
        return Records(codes, dense, _NONE, self.empty.rows)

    def _in_threads(self, work: Callable[[int, Iterator[tuple[int, int]], NDArray[np.uint8]], None]) -> None:
        """Call a function in every thread with one chunk after the other."""
        starts = iter(list(enumerate(range(0, self.n_records, _CHUNK))))  # next() on a list iterator is atomic
        with ThreadPoolExecutor(self._n_threads) as pool:
            futures = [pool.submit(work, thread, starts, self._room()) for thread in range(self._n_threads)]
            for future in futures:
                future.result()

    # -- counting ------------------------------------------------------------------------------------------------

    def advance(self, routing: Routing, shape: Shape) -> NDArray[np.int64]:
        """Move every record down the tree, and return the requested histograms."""
        n_bins = int(shape.layout.offsets[-1])
        outs = [np.zeros((routing.n_slots, n_bins, shape.n_entries), np.int64) for _ in range(self._n_threads)]

        def work(thread: int, starts: Iterator[tuple[int, int]], room: NDArray[np.uint8]) -> None:
            for _, start in starts:
                records = self._as_records(self._read(start, room))
                own = self.node_of_row[start : start + records.n_records]
                advance_chunk(records, own, routing, shape, outs[thread])

        self._in_threads(work)
        for out in outs[1:]:
            outs[0] += out
        return outs[0]

    def count_sides(
        self, nodes: NDArray[np.int64], candidates: Candidates, rank: int, check: int, layout: Layout
    ) -> NDArray[np.int64]:
        """Return the counts of a check on both sides of one split per node."""
        own = self.checks[check]
        place = self._places(nodes)
        if not own.distinct:
            out = np.zeros((len(nodes), 2, own.n_values), np.int64)
            for start, records in self.chunks():
                part = slice(start, start + records.n_records)
                count_sides_of_chunk(
                    records.codes, self.node_of_row[part], own.value_of_row[part], place, candidates, rank, layout, out
                )
            return out
        # Persons are marked, not counted: one mark each, however many records they have.
        out = np.zeros((len(nodes), 2, 1), np.int64)
        step = max(1, _MOST_MARKS // (2 * own.n_values))
        for first in range(0, len(nodes), step):
            few = np.full(len(place), -1, np.int64)
            few[nodes[first : first + step]] = np.arange(len(nodes[first : first + step]))
            marks = np.zeros((len(nodes[first : first + step]), 2, own.n_values), np.int64)
            some = Candidates(*(part[first : first + step] for part in candidates))
            for start, records in self.chunks():
                part = slice(start, start + records.n_records)
                count_sides_of_chunk(
                    records.codes, self.node_of_row[part], own.value_of_row[part], few, some, rank, layout, marks
                )
            out[first : first + step, :, 0] = (marks > 0).sum(axis=2)
        return out

    def _places(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        place = np.full(max(int(self.node_of_row.max(initial=0)), int(nodes.max())) + 1, -1, np.int64)
        place[nodes] = np.arange(len(nodes))
        return place

    def count_hashes(self, layout: Layout, words: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of records with each of some combinations of codes; see `partition.phantoms`."""
        return sum(
            (count_hashes(records.codes, layout, words, wanted) for _, records in self.chunks()),
            start=np.zeros(len(wanted), np.int64),
        )

    # -- gathering -----------------------------------------------------------------------------------------------

    def gather(self, nodes: NDArray[np.int64]) -> list[Records]:
        """Return the records of each of some nodes, valid until the next call; rows are their numbers in the table."""
        place = self._places(nodes)
        n_chunks = -(-self.n_records // _CHUNK)
        counts = np.zeros((n_chunks, len(nodes)), np.int64)

        def count(_: int, starts: Iterator[tuple[int, int]], __: NDArray[np.uint8]) -> None:
            for chunk, start in starts:
                count_places(self.node_of_row[start : start + _CHUNK], place, counts[chunk])

        self._in_threads(count)
        sizes = counts.sum(axis=0)
        ends = np.cumsum(sizes)
        # Every chunk has its own run in every node, so that threads write side by side.
        firsts = (ends - sizes) + np.cumsum(counts, axis=0) - counts
        out = self._room_for(int(ends[-1]))

        def copy(_: int, starts: Iterator[tuple[int, int]], room: NDArray[np.uint8]) -> None:
            for number, start in starts:
                if counts[number].any():
                    own = self.node_of_row[start : start + _CHUNK]
                    gather_columns(self._read(start, room), start, own, place, firsts[number], out)

        self._in_threads(copy)
        return [
            Records(out.codes[a:b], out.dense[a:b], _NONE, out.rows[a:b])
            for a, b in zip((ends - sizes).tolist(), ends.tolist(), strict=True)
        ]

    def _room_for(self, n: int) -> Records:
        """Return a buffer for so many records, the same every time: used memory is faster than new memory."""
        if self._gathered.n_records < n:
            self._gathered = self.empty  # gone before there is more
            self._gathered = Records(
                np.empty((n, self.empty.codes.shape[1]), self.empty.codes.dtype),
                np.empty((n, self._n_dense), np.int64), _NONE, np.empty(n, np.uint32),
            )  # fmt: skip
        return self._gathered


def _bytes_of(array: NDArray[Any]) -> memoryview:
    flat: Any = array.reshape(-1).view(np.uint8)  # a view: arrays here are contiguous
    return memoryview(flat)
