# SPDX-License-Identifier: Apache-2.0
"""The protocol of tables that are read in blocks, and work on several blocks at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

RECORDS_AT_ONCE = 1 << 20
"""Records of a block."""


class BlockTable(Protocol):
    """A table in files or in a database. Whenever it is read, it has the same records in the same order.

    Attributes
    ----------
    n_records : int
    schema : pyarrow.Schema
    paths : list of Path
        The files that it is read from, which nothing may be written over.
    words : str
        What messages call such tables, such as ``"Parquet files"``.
    """

    n_records: int
    schema: Any
    paths: list[Path]
    words: str

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        ...

    @property
    def compression(self) -> str:
        """The compression of Parquet files made of it, as pyarrow's writer names it."""
        ...

    def head(self, n: int = 1000) -> Any:
        """Return the first records."""
        ...

    def batches(self, columns: Sequence[str] | None = None, *, size: int | None = None) -> Iterator[Any]:
        """Yield the records in tables of at most `size`, in order; only some columns where named."""
        ...

    def each(
        self,
        work: Callable[[int, Any], Any],
        columns: Sequence[str] | None = None,
        *,
        n_threads: int = 1,
        text_as_categories: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Call a function with every block of the table, several at a time.

        Parameters
        ----------
        work : callable
            Takes the number of a block's first record and the block; is called from several threads.
        columns : sequence of str, optional
            Read only these.
        n_threads : int
        text_as_categories : bool
            Hand over columns of text as dictionaries, where the table has them: no text is built for every record.

        Yields
        ------
        n_records : int
            Of the block.
        result
            What the function returned, in the order of the blocks.
        """
        ...


def is_block_table(given: Any) -> bool:
    """Return True if an object is a `BlockTable`; a frame with a column called ``each`` is none."""
    return hasattr(type(given), "each")


def one_ahead(pieces: Iterator[Any]) -> Iterator[Any]:
    """Yield the pieces, the next one being read while the caller works on the last."""
    nothing = object()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, pieces, nothing)
        while (piece := waiting.result()) is not nothing:
            waiting = pool.submit(next, pieces, nothing)
            yield piece


def numbered(tables: Iterator[Any]) -> Iterator[tuple[int, int, Any]]:
    """Yield tables, each with the number of its first record and its size."""
    start = 0
    for table in tables:
        yield start, table.num_rows, table
        start += table.num_rows


def in_turn(
    pieces: Iterator[tuple[int, int, Any]], work: Callable[[int, Any], Any], n_threads: int
) -> Iterator[tuple[int, Any]]:
    """Call a function with pieces in several threads and yield sizes and results in order; few pieces wait."""
    waiting: deque[tuple[int, Future[Any]]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for start, n_records, piece in pieces:
                waiting.append((n_records, pool.submit(work, start, piece)))
                if len(waiting) > n_threads + 1:
                    n_done, result = waiting.popleft()
                    yield n_done, result.result()
            while waiting:
                n_done, result = waiting.popleft()
                yield n_done, result.result()
        finally:
            for _, left in waiting:
                left.cancel()
