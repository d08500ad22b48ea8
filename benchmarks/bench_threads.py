# SPDX-License-Identifier: Apache-2.0
"""What do two threads bring over one, on 1,000,000 census-like records, k=100?

The two are timed in turns, on the generator's true probabilities as guide. A run whose two group sizes differ fails.
"""

import functools

import numpy as np
import pandas as pd

from benchmarks.harness import Context, at_least
from benchmarks.workloads import census_workload
from sfumato import ModelGuidedAnonymizer

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


def call(name: str, n_jobs: int, table: pd.DataFrame, guide: np.ndarray) -> object:
    """Call a method of a fresh anonymizer."""
    return getattr(anonymizer(n_jobs), name)(table, guide)


def anonymizer(n_jobs: int) -> ModelGuidedAnonymizer:
    """Return a fresh anonymizer with that many threads."""
    return ModelGuidedAnonymizer(k=K, n_jobs=n_jobs)
