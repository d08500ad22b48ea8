# SPDX-License-Identifier: Apache-2.0
"""Codes of more records than memory holds, in files that nobody else can read and that are gone afterwards.

One byte or two per column and record: a tenth of the table or less. The outer grower counts them chunk by chunk.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.partition.candidates import Candidates
from sfumato.partition.chunks import (
    Routing,
    Shape,
    advance_chunk,
    advance_one_channel,
    count_places,
    count_sides_of_chunk,
    gather_chunk,
)
from sfumato.partition.grower import Check
from sfumato.partition.histogram import PACKED_VALUE_BITS
from sfumato.partition.records import Layout, Records

_CHUNK = 1 << 16  # records read at a time: what is read stays in the cache of a core until it is counted
_MOST_MARKS = 1 << 28  # persons marked at once, over nodes and sides
_NONE = np.zeros(0, np.int64)


class CodeFile:
    """Records on disk as the grower wants them; a context manager that removes its files.

    Parameters
    ----------
    folder : Path
        Where the files go: beside the output, where there is room.
    width : int
        Code columns of a record, padding included.
    dtype : numpy type
        Of the codes.
    n_dense : int
        Channels of the guide.
    n_threads : int
    """

    def __init__(self, folder: Path, *, width: int, dtype: Any, n_dense: int, n_threads: int = 1) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=".sfumato-", dir=folder)  # readable by its owner alone
        base = Path(self._folder.name)
        self._width, self._dtype, self._n_dense = width, np.dtype(dtype), n_dense
        self._files = [
            os.open(base / name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600) for name in ("codes", "channels")
        ]
        self._n_threads = n_threads
        self._lock = Lock()
        self._is_small = True  # all channel values fit the quick way of counting
        self.n_records = 0
        self.checks: Sequence[Check] = ()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the files, whatever happened."""
        for file in self._files:
            os.close(file)
        self._folder.cleanup()

    # -- writing and reading -------------------------------------------------------------------------------------

    def write(self, start: int, codes: NDArray[Any], dense: NDArray[np.int64]) -> None:
        """Put records in their place, from `start` on; several threads may."""
        codes, dense = np.ascontiguousarray(codes, self._dtype), np.ascontiguousarray(dense, np.int64)
        is_small = int(dense.min(initial=0)) >= 0 and int(dense.max(initial=0)) < 1 << PACKED_VALUE_BITS
        try:
            _write_all(self._files[0], codes, start * self._width * self._dtype.itemsize)
            _write_all(self._files[1], dense, 8 * start * self._n_dense)
        except OSError as error:
            raise InputError(
                f"the working files cannot be written ({error.strerror or 'input/output error'}): expected room for "
                f"{self._width * self._dtype.itemsize + 8 * self._n_dense} bytes per record beside the output. Free "
                "some, or write elsewhere. Nothing was published."
            ) from None
        with self._lock:
            self._is_small &= is_small
            self.n_records = max(self.n_records, start + len(codes))

    def start(self, checks: Sequence[Check] = ()) -> None:
        """Put all records into the root."""
        self.checks = checks
        self.node_of_row = np.zeros(self.n_records, np.uint32)

    def chunks(self) -> Iterator[tuple[int, Records]]:
        """Yield runs of records with the number of their first; each is gone when the next comes."""
        room = self._room(_CHUNK)
        for start in range(0, self.n_records, _CHUNK):
            yield start, self._read(start, room)

    def _room(self, n: int) -> Records:
        return Records(
            np.empty((n, self._width), self._dtype), np.empty((n, self._n_dense), np.int64), _NONE,
            np.empty(0, np.uint32),
        )  # fmt: skip

    def _read(self, start: int, room: Records) -> Records:
        n = min(_CHUNK, self.n_records - start)
        codes, dense = room.codes[:n], room.dense[:n]
        _read_all(self._files[0], codes, start * self._width * self._dtype.itemsize)
        _read_all(self._files[1], dense, 8 * start * self._n_dense)
        return Records(codes, dense, _NONE, room.rows)

    @property
    def empty(self) -> Records:
        """No records, of the right types."""
        return self._room(0)

    def _in_threads(self, work: Callable[[int, Iterator[tuple[int, int]], Records], None]) -> None:
        """Let every thread take chunk after chunk; each has room for one."""
        starts = iter(list(enumerate(range(0, self.n_records, _CHUNK))))  # next() on a list iterator is atomic
        with ThreadPoolExecutor(self._n_threads) as pool:
            futures = [pool.submit(work, thread, starts, self._room(_CHUNK)) for thread in range(self._n_threads)]
            for future in futures:
                future.result()

    # -- counting ------------------------------------------------------------------------------------------------

    def advance(self, routing: Routing, shape: Shape) -> NDArray[np.int64]:
        """Move every record on, and return the histograms that were asked for."""
        n_bins = int(shape.layout.offsets[-1])
        outs = [np.zeros((routing.n_slots, n_bins, shape.n_entries), np.int64) for _ in range(self._n_threads)]
        is_quick = self._n_dense == 1 and shape.n_entries == 2 and self._is_small

        def work(thread: int, starts: Iterator[tuple[int, int]], room: Records) -> None:
            packed = np.zeros((routing.n_slots, n_bins), np.int64) if is_quick else _NONE
            for _, start in starts:
                records = self._read(start, room)
                own = self.node_of_row[start : start + records.n_records]
                if is_quick:
                    advance_one_channel(records, own, routing, shape, packed, outs[thread])
                else:
                    advance_chunk(records, own, routing, shape, outs[thread])

        self._in_threads(work)
        for out in outs[1:]:
            outs[0] += out
        return outs[0]

    def count_sides(
        self, nodes: NDArray[np.int64], candidates: Candidates, rank: int, check: int, layout: Layout
    ) -> NDArray[np.int64]:
        """Return what a check counts on both sides of one split per node."""
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

    # -- gathering -----------------------------------------------------------------------------------------------

    def gather(self, nodes: NDArray[np.int64]) -> list[Records]:
        """Return the records of each of some nodes; their rows are their numbers in the table."""
        place = self._places(nodes)
        n_chunks = -(-self.n_records // _CHUNK)
        counts = np.zeros((n_chunks, len(nodes)), np.int64)

        def count(_: int, starts: Iterator[tuple[int, int]], __: Records) -> None:
            for chunk, start in starts:
                count_places(self.node_of_row[start : start + _CHUNK], place, counts[chunk])

        self._in_threads(count)
        sizes = counts.sum(axis=0)
        ends = np.cumsum(sizes)
        # Every chunk has its own run in every node, so that threads write side by side.
        firsts = (ends - sizes) + np.cumsum(counts, axis=0) - counts
        total = int(ends[-1])
        out = Records(
            np.empty((total, self._width), self._dtype), np.empty((total, self._n_dense), np.int64), _NONE,
            np.empty(total, np.uint32),
        )  # fmt: skip

        def copy(_: int, starts: Iterator[tuple[int, int]], room: Records) -> None:
            for chunk, start in starts:
                if counts[chunk].any():
                    own = self.node_of_row[start : start + _CHUNK]
                    gather_chunk(self._read(start, room), start, own, place, firsts[chunk], out)

        self._in_threads(copy)
        return [
            Records(out.codes[a:b], out.dense[a:b], _NONE, out.rows[a:b])
            for a, b in zip((ends - sizes).tolist(), ends.tolist(), strict=True)
        ]


def _bytes_of(array: NDArray[Any]) -> memoryview:
    flat: Any = array.reshape(-1).view(np.uint8)  # a view: arrays here are contiguous
    return memoryview(flat)


def _write_all(file: int, array: NDArray[Any], offset: int) -> None:
    """Write an array; a disk that takes only a part of it says why when it is asked for the rest."""
    view = _bytes_of(array)
    while len(view):
        n_written = os.pwrite(file, view, offset)
        view, offset = view[n_written:], offset + n_written


def _read_all(file: int, array: NDArray[Any], offset: int) -> None:
    view = _bytes_of(array)
    while len(view):
        n_read = os.preadv(file, [view], offset)
        if n_read == 0:
            raise InputError(
                "the working files are shorter than what was written to them: expected them to stay as they are. "
                "Leave the folder of the output alone while this runs. Nothing was published."
            )
        view, offset = view[n_read:], offset + n_read
