# SPDX-License-Identifier: Apache-2.0
"""Run independent parts of the work side by side; the anatomizer, its check and pruning call this.

Most of the time goes into gathers and counts of numpy, Arrow and compiled loops, which let other threads run meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sfumato.arguments import thread_count

T = TypeVar("T")
_THREADED_FROM = 100_000  # records; below it threads cost more than they bring


def run_side_by_side(tasks: Sequence[Callable[[], T]], n_records: int) -> list[T]:
    """Return what the tasks return, in their order; in threads where there are enough records for it to pay."""
    n_threads = thread_count(None)
    if n_threads == 1 or n_records < _THREADED_FROM:
        return [task() for task in tasks]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda task: task(), tasks))


def stretches(n_records: int) -> list[slice]:
    """Return one slice of the records for each thread."""
    n_part = -(-n_records // thread_count(None))
    return [slice(start, start + n_part) for start in range(0, n_records, n_part)]
