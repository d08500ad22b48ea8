# SPDX-License-Identifier: Apache-2.0
"""How does the time of the Hilbert curve and of the R+-tree grow up to 1,000,000 records?

Census-like records with twelve quasi-identifiers, k=10 and k=100. The slope is that of a straight line through the
logarithms of records and seconds: 1 is proportional. The R+-tree also takes in a batch of a tenth of its records.
"""

from benchmarks.bench_scaling import log_log_slope
from benchmarks.harness import Context, at_most
from benchmarks.workloads import census_workload
from sfumato import HilbertAnonymizer, RPlusTreeAnonymizer

TITLE = "groups along a Hilbert curve and in an R+-tree"
KS = (10, 100)
FULL_SIZES = (100_000, 300_000, 1_000_000)
QUICK_SIZES = (1_000, 2_000, 4_000)
METHODS = {"Hilbert": HilbertAnonymizer, "R+-tree": RPlusTreeAnonymizer}


def run(context: Context) -> None:
    """Measure both methods on each size in turn; only one table is alive at a time."""
    sizes = QUICK_SIZES if context.is_quick else FULL_SIZES
    seconds: dict[tuple[str, int], list[float]] = {(name, k): [] for name in METHODS for k in KS}
    for n_records in sizes:
        table = census_workload(n_records).table
        for (name, k), measured in seconds.items():
            anonymizer = METHODS[name](k=k, n_jobs=-1)
            if n_records == sizes[0]:
                anonymizer.fit_transform(table)  # compiles or loads kernels
            timing = context.measure(lambda anonymizer=anonymizer, table=table: anonymizer.fit_transform(table))
            context.record_seconds(f"{name}, k={k}, fit_transform, {n_records:,} records", timing)
            measured.append(timing.best)
    for (name, k), measured in seconds.items():
        context.record(f"{name}, k={k}, log-log slope", log_log_slope(sizes, measured), "", target=at_most(1.2))
    time_insertion(context, sizes[-1])


def time_insertion(context: Context, n_records: int) -> None:
    """Record how long the R+-tree takes for one more batch."""
    table = census_workload(n_records).table
    n_first = n_records * 9 // 10
    fitted = RPlusTreeAnonymizer(k=10, keep_records=True, n_jobs=-1).fit(table.iloc[:n_first])
    timing = context.measure(lambda: fitted.insert(table.iloc[n_first:]), repeats=1)
    context.record_seconds(f"R+-tree, k=10, insert {n_records - n_first:,} into {n_first:,} records", timing)
