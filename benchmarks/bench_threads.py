# SPDX-License-Identifier: Apache-2.0
"""What do two threads bring over one, on 1,000,000 census-like records, k=100?

The two are timed in turns, on the generator's true probabilities as guide. A run whose two group sizes differ fails.
What the machine itself gives stands beside it: two cores share the way to memory, and a virtual machine's may be less
than two whole ones.
"""

import functools
from collections.abc import Callable

import numpy as np
import pandas as pd
from numba import njit

from benchmarks.harness import Context, at_least
from benchmarks.workloads import census_workload
from sfumato import ModelGuidedAnonymizer
from sfumato.threads import map_in_threads

TITLE = "two threads beside one"
K = 100


def run(context: Context) -> None:
    """Measure fit and fit_transform with one and two threads."""
    workload = census_workload(context.size(1_000_000, 2_000))
    table, guide = workload.table, workload.probabilities
    one, two = (anonymizer(n_jobs).fit(table, guide) for n_jobs in (1, 2))  # also warms the kernels
    if not np.array_equal(one.group_sizes_, two.group_sizes_):
        raise AssertionError("One and two threads gave different groups; times of different work do not compare.")
    for name in ("fit", "fit_transform"):
        methods = [functools.partial(call, name, n_jobs, table, guide) for n_jobs in (1, 2)]
        single, double = context.measure_alternating(methods)
        context.record_seconds(f"{name}, one thread", single)
        context.record_seconds(f"{name}, two threads", double)
        context.record(f"{name}: two threads are faster by", single.best / double.best, "x", target=at_least(1.5))
    measure_machine(context)


def measure_machine(context: Context) -> None:
    """Measure what two threads bring to plain loops, which need nothing of each other."""
    for label, n_numbers, n_times in (("sums in the cache", 10_000, 10_000), ("copies in memory", 16_000_000, 2)):
        pairs = [(np.ones(n_numbers), np.ones(n_numbers)) for _ in range(2)]
        work = functools.partial(add_one_often, n_times)
        ways: list[Callable[[], object]] = [
            functools.partial(map_in_threads, work, pairs, n_threads) for n_threads in (1, 2)
        ]
        single, double = context.measure_alternating(ways)
        context.record(f"the machine, {label}: two threads are faster by", single.best / double.best, "x")


def add_one_often(n_times: int, pair: tuple[np.ndarray, np.ndarray]) -> None:
    """Add one to the first of two arrays, into the second, again and again."""
    _add_one_often(*pair, n_times)


@njit(nogil=True, cache=True)
def _add_one_often(numbers, out, n_times):  # type: ignore[no-untyped-def]
    for _ in range(n_times):
        for i in range(numbers.shape[0]):
            out[i] = numbers[i] + 1.0


def call(name: str, n_jobs: int, table: pd.DataFrame, guide: np.ndarray) -> object:
    """Call a method of a fresh anonymizer."""
    return getattr(anonymizer(n_jobs), name)(table, guide)


def anonymizer(n_jobs: int) -> ModelGuidedAnonymizer:
    """Return a fresh anonymizer with that many threads."""
    return ModelGuidedAnonymizer(k=K, n_jobs=n_jobs)
