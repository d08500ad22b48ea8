# SPDX-License-Identifier: Apache-2.0
"""The threads that grow one tree, and how they share nodes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

_LARGE_NODE = 1 << 16
"""Nodes with more records are worked on by all threads at once, in chunks."""

_SHARED_FROM = 8_000
"""Records in small nodes from which handing them to several threads pays."""

Task = Callable[[int], None]
"""A piece of work; it takes the number of the thread it runs on, for the working memory of that thread."""

Memory = TypeVar("Memory")


class Workers:
    """Threads that run tasks, between entering and leaving; the calling thread is one of them.

    Attributes
    ----------
    n_threads : int
    large_node : int
        Nodes with more records are worked on by all threads at once, in chunks.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.large_node = _LARGE_NODE

    def __enter__(self) -> Self:
        """Start the other threads."""
        self._pool = ThreadPoolExecutor(max(1, self.n_threads - 1))
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the other threads and end them."""
        self._pool.shutdown()

    def run(self, tasks: list[Task]) -> None:
        """Run tasks, and return when all are done."""
        pending = iter(tasks)  # next() on a list iterator is atomic

        def work(thread: int) -> None:
            for task in pending:
                task(thread)

        # The calling thread works too, so that one thread means no others.
        others = [self._pool.submit(work, thread) for thread in range(1, min(self.n_threads, len(tasks)))]
        work(0)
        for other in others:
            other.result()

    def shares(self, sizes: NDArray[np.int64], cost_per_node: int = 0) -> list[slice]:
        """Cut a list of small nodes into runs of about the same work: a few per thread where that pays, else one.

        Parameters
        ----------
        sizes : ndarray of int64
            Records of each node.
        cost_per_node : int
            What a node costs however small it is, in records.
        """
        if not len(sizes):
            return []
        is_shared = self.n_threads > 1 and self.is_worth_sharing(int(sizes.sum()))
        n_shares = 4 * self.n_threads if is_shared else 1
        ends = np.cumsum(cost_per_node + sizes)
        cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_shares) / n_shares)
        edges = np.unique(np.concatenate([[0], cuts, [len(sizes)]]))
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]

    def is_worth_sharing(self, n_records: int) -> bool:
        """Return True if so many records in small nodes are enough for several threads."""
        return n_records >= _SHARED_FROM

    def chunks(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the edges of one chunk per thread of a large node's records."""
        return np.linspace(start, stop, self.n_threads + 1).astype(np.int64)

    def per_thread(self, make: Callable[[], Memory]) -> list[Memory]:
        """Return working memory for each thread."""
        return [make() for _ in range(self.n_threads)]
