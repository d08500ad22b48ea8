# SPDX-License-Identifier: Apache-2.0
"""Run independent parts of the work side by side; the anatomizer, its check and pruning call this.

Anatomy has no `n_jobs`: it takes all cores where there are enough records for it to pay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from sfumato.arguments import thread_count
from sfumato.threads import map_in_threads, stretches

T = TypeVar("T")
_THREADED_FROM = 100_000  # records; below it threads cost more than they bring


def run_side_by_side(tasks: Sequence[Callable[[], T]], n_records: int) -> list[T]:
    """Return what the tasks return, in their order; in threads where there are enough records for it to pay."""
    return map_in_threads(lambda task: task(), tasks, thread_count(-1) if n_records >= _THREADED_FROM else 1)


def for_stretches(function: Callable[[slice], T], n_records: int) -> list[T]:
    """Return what the function makes of every stretch of the records, one for each thread."""
    runs = stretches(n_records, thread_count(-1))
    return run_side_by_side([partial(function, run) for run in runs], n_records)
