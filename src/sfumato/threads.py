# SPDX-License-Identifier: Apache-2.0
"""Run independent parts of the work side by side; every layer may call this but the judge, ``verification``.

Most of the time goes into gathers and counts of numpy, Arrow and compiled loops, which let other threads run meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TypeVar

from sfumato.arguments import thread_count

Item = TypeVar("Item")
Result = TypeVar("Result")

_THREADED_FROM = 100_000  # records; below it threads cost more than they bring


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int, *, costs: Sequence[int] | None = None
) -> list[Result]:
    """Return what the function makes of every item, in their order; of several that fail, the first says why.

    This thread works, too, and takes the first item: its memory is used again and again, that of other threads comes
    fresh from the system.

    Parameters
    ----------
    function : callable
    items : sequence
    n_threads : int
        Threads at once, this one among them; with one, nothing is started.
    costs : sequence of int, optional
        How long each item takes, in any unit: the longest come first, or one thread is left with them at the end.
        None: the items come in their order.

    Examples
    --------
    >>> map_in_threads(abs, [-3, 2, -1], 2)
    [3, 2, 1]
    """
    n_threads = min(n_threads, len(items))
    if n_threads < 2:
        return [function(item) for item in items]
    done: dict[int, Result] = {}
    failed: dict[int, Exception] = {}
    places = range(len(items)) if costs is None else sorted(range(len(items)), key=lambda place: -costs[place])
    pending = iter(places)  # next() on it is atomic

    def work() -> None:
        for place in pending:
            try:
                done[place] = function(items[place])
            except Exception as error:  # told when all have ended, so that it is the same one every time
                failed[place] = error

    with ThreadPoolExecutor(n_threads - 1) as pool:
        others = [pool.submit(work) for _ in range(n_threads - 1)]
        try:
            work()
        except BaseException:
            list(pending)  # interrupted: the other threads find nothing more to do
            raise
        for other in others:
            other.result()
    if failed:
        raise failed[min(failed)]
    return [done[place] for place in range(len(items))]


def stretches(n_records: int, n_parts: int) -> list[slice]:
    """Return slices of about the same length that cover the records, none of them empty.

    Examples
    --------
    >>> stretches(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    edges = sorted({n_records * part // n_parts for part in range(n_parts + 1)})
    return [slice(start, stop) for start, stop in pairwise(edges)]


def run_side_by_side(tasks: Sequence[Callable[[], Result]], n_records: int) -> list[Result]:
    """Return what the tasks return, in their order; on all cores where there are enough records for it to pay.

    For callers without `n_jobs`: the anatomizer, its check and pruning.
    """
    return map_in_threads(lambda task: task(), tasks, thread_count(-1) if n_records >= _THREADED_FROM else 1)


def for_stretches(function: Callable[[slice], Result], n_records: int) -> list[Result]:
    """Return what the function makes of every stretch of the records, one for each core."""
    runs = stretches(n_records, thread_count(-1))
    return run_side_by_side([partial(function, run) for run in runs], n_records)
