# SPDX-License-Identifier: Apache-2.0
"""Codes of more records than memory holds, in files that nobody else can read and that are gone afterwards.

One byte or two per column and record: a tenth of the table or less. The outer grower counts them chunk by chunk.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.partition.candidates import Candidates
from sfumato.partition.grower import Check
from sfumato.partition.outer import Routing, Shape, advance_chunk, count_sides_of_chunk
from sfumato.partition.records import Layout, Records

_CHUNK = 1 << 20  # records read at a time
_MOST_MARKS = 1 << 28  # persons marked at once, over nodes and sides


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
        self._paths = base / "codes", base / "channels"
        self._width, self._dtype, self._n_dense = width, np.dtype(dtype), n_dense
        self._files = [
            os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b") for path in self._paths
        ]
        self._n_threads = n_threads
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
            file.close()
        self._folder.cleanup()

    def append(self, codes: NDArray[Any], dense: NDArray[np.int64]) -> None:
        """Add records at the end."""
        try:
            np.ascontiguousarray(codes, self._dtype).tofile(self._files[0])
            if self._n_dense:
                np.ascontiguousarray(dense, np.int64).tofile(self._files[1])
        except OSError as error:
            raise InputError(
                f"the working files cannot be written ({error.strerror or 'input/output error'}): expected room for "
                f"{self._width * self._dtype.itemsize + 8 * self._n_dense} bytes per record beside the output. Free "
                "some, or write elsewhere. Nothing was published."
            ) from None
        self.n_records += len(codes)

    def start(self, checks: Sequence[Check] = ()) -> None:
        """Put all records into the root."""
        for file in self._files:
            file.flush()
        self.checks = checks
        self.node_of_row = np.zeros(self.n_records, np.uint32)

    def chunks(self) -> Iterator[tuple[int, Records]]:
        """Yield runs of records with the number of their first."""
        for start in range(0, self.n_records, _CHUNK):
            yield start, self._read(start, min(_CHUNK, self.n_records - start))

    def _read(self, start: int, n: int) -> Records:
        codes = np.fromfile(
            self._paths[0], self._dtype, n * self._width, offset=start * self._width * self._dtype.itemsize
        ).reshape(n, self._width)
        dense = np.zeros((n, 0), np.int64)
        if self._n_dense:
            dense = np.fromfile(self._paths[1], np.int64, n * self._n_dense, offset=8 * start * self._n_dense)
            dense = dense.reshape(n, self._n_dense)
        return Records(codes, dense, np.zeros(0, np.int64), np.zeros(0, np.uint32))

    @property
    def empty(self) -> Records:
        """No records, of the right types."""
        return Records(
            np.zeros((0, self._width), self._dtype), np.zeros((0, self._n_dense), np.int64), np.zeros(0, np.int64),
            np.zeros(0, np.uint32),
        )  # fmt: skip

    # -- counting ------------------------------------------------------------------------------------------------

    def advance(self, routing: Routing, shape: Shape) -> NDArray[np.int64]:
        """Move every record on, and return the histograms that were asked for."""
        size = (routing.n_slots, int(shape.layout.offsets[-1]), shape.n_entries)
        outs = [np.zeros(size, np.int64) for _ in range(self._n_threads)]
        starts = list(range(0, self.n_records, _CHUNK))

        def work(thread: int) -> None:
            for start in starts[thread :: self._n_threads]:
                records = self._read(start, min(_CHUNK, self.n_records - start))
                own = self.node_of_row[start : start + records.n_records]
                advance_chunk(records, own, routing, shape, outs[thread])

        with ThreadPoolExecutor(self._n_threads) as pool:
            list(pool.map(work, range(self._n_threads)))
        for out in outs[1:]:
            outs[0] += out
        return outs[0]

    def count_sides(
        self, nodes: NDArray[np.int64], candidates: Candidates, rank: int, check: int, layout: Layout
    ) -> NDArray[np.int64]:
        """Return what a check counts on both sides of one split per node."""
        own = self.checks[check]
        place = np.full(int(self.node_of_row.max(initial=0)) + 1, -1, np.int64)
        place[nodes] = np.arange(len(nodes))
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

    def gather(self, node: int) -> tuple[Records, NDArray[np.int64]]:
        """Return the records of a node, numbered from 0, and their numbers in the table."""
        rows = np.flatnonzero(self.node_of_row == node)
        codes = np.empty((len(rows), self._width), self._dtype)
        dense = np.empty((len(rows), self._n_dense), np.int64)
        at = 0
        for start, records in self.chunks():
            stop = at + int(np.searchsorted(rows[at:], start + records.n_records))
            own = rows[at:stop] - start
            codes[at:stop], dense[at:stop] = records.codes[own], records.dense[own]
            at = stop
        return Records(codes, dense, np.zeros(0, np.int64), np.arange(len(rows), dtype=np.uint32)), rows
