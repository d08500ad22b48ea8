# SPDX-License-Identifier: Apache-2.0
"""How does the time of ``fit_transform`` grow from 100,000 to 10,000,000 records, k=100?

The slope is that of a straight line through the logarithms of records and seconds: 1 is proportional. Census-like
records with twelve quasi-identifiers, guided by the generator's true probabilities.
"""

import numpy as np

from benchmarks.harness import Context, at_most
from benchmarks.workloads import census_workload
from sfumato import ModelGuidedAnonymizer

TITLE = "time against the number of records"
K = 100
FULL_SIZES = (100_000, 1_000_000, 10_000_000)
QUICK_SIZES = (1_000, 2_000, 4_000)


def run(context: Context) -> None:
    """Measure each size in turn; only one table is alive at a time."""
    sizes = QUICK_SIZES if context.is_quick else FULL_SIZES
    seconds = [time_size(context, n_records, is_first=n_records == sizes[0]) for n_records in sizes]
    context.record("log-log slope", log_log_slope(sizes, seconds), "", target=at_most(1.15))


def time_size(context: Context, n_records: int, *, is_first: bool) -> float:
    """Record and return the time of one size."""
    workload = census_workload(n_records)

    def release() -> object:
        return ModelGuidedAnonymizer(k=K, n_jobs=-1).fit_transform(workload.table, workload.probabilities)

    if is_first:
        timing = context.measure(release, repeats=1)
        context.record_seconds("first fit_transform of the process", timing, note="compiles or loads kernels")
    timing = context.measure(release)
    context.record_seconds(f"fit_transform, {n_records:,} records", timing)
    context.record(f"throughput, {n_records:,} records", n_records / timing.best, "rows/s")
    return timing.best


def log_log_slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Return the slope of the least-squares line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
