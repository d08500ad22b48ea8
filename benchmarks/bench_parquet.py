# SPDX-License-Identifier: Apache-2.0
"""How long does Parquet to Parquet take on tables larger than memory, and how much memory?

Census-like records with twelve quasi-identifiers, guided by a column of probabilities, k=100, from a Parquet file to
a recounted one, each size in a fresh process, once. Beside it stands the time of 10,000,000 records in memory, which
reads and writes no file. The largest size is run when SFUMATO_BENCH_LARGE is set: it needs ten minutes and 5 GB of
disk.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bench_memory import forget_peak, peak_gib
from benchmarks.bench_scaling import log_log_slope
from benchmarks.harness import Context, at_most, below
from benchmarks.workloads import census_workload
from sfumato import ModelGuidedAnonymizer
from sfumato.datasets import iter_census
from sfumato.parquet import fit_transform

TITLE = "tables larger than memory"
K = 100
REPOSITORY = Path(__file__).parents[1]
FULL_SIZES = (100_000, 1_000_000, 10_000_000)
LARGEST = 100_000_000


def run(context: Context) -> None:
    """Measure each size in a process of its own, then 10,000,000 records in memory."""
    sizes = (1_000, 2_000) if context.is_quick else FULL_SIZES
    is_large = bool(os.environ.get("SFUMATO_BENCH_LARGE")) and not context.is_quick
    sizes = (*sizes, LARGEST) if is_large else sizes
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for n_records in sizes:
            seen = measure_apart(n_records, Path(folder))
            found.append(seen)
            note = f"{seen['n_groups']:,} groups, smallest {seen['smallest_group']:,}; file of {seen['mib']:,.0f} MiB"
            context.record(f"Parquet to Parquet, {n_records:,} records", seen["seconds"], "s", note=note)
            target = below(6) if n_records == LARGEST else None
            context.record(f"peak memory, {n_records:,} records", seen["peak"], "GiB", target=target)
    context.record("log-log slope", log_log_slope(sizes, [seen["seconds"] for seen in found]), "")
    n_in_memory = context.size(10_000_000, 2_000)
    workload = census_workload(n_in_memory)
    timing = context.measure(
        lambda: ModelGuidedAnonymizer(k=K).fit_transform(workload.table, workload.probabilities),
        repeats=2,
    )
    context.record_seconds(f"in memory, {n_in_memory:,} records", timing)
    if is_large:
        ratio = found[-1]["seconds"] / timing.best
        context.record(f"{LARGEST:,} from files over {n_in_memory:,} in memory", ratio, "x", target=at_most(15))


def measure_apart(n_records: int, folder: Path) -> dict[str, Any]:
    """Make the file and anonymize it in a fresh process; the file is removed afterwards."""
    child = [sys.executable, "-m", "benchmarks.bench_parquet", str(n_records), str(folder)]
    done = subprocess.run(child, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    seen: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return seen


def measure_here(n_records: int, folder: Path) -> dict[str, Any]:
    """Do the work in this process and return what it took."""
    import pyarrow.parquet as pq

    source, destination = folder / "in.parquet", folder / "out.parquet"
    writer = None
    for table in iter_census(n_records, random_state=0, return_probability=True):
        writer = writer or pq.ParquetWriter(source, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()
    forget_peak()
    start = time.perf_counter()
    anonymizer = ModelGuidedAnonymizer(k=K, keep=["high_income"])
    release = fit_transform(anonymizer, source, destination, guide_column="probability")
    seconds = time.perf_counter() - start
    seen = {
        "seconds": seconds,
        "peak": peak_gib()[0],
        "n_groups": release.n_groups,
        "smallest_group": release.smallest_group,
        "mib": source.stat().st_size / 2**20,
    }
    source.unlink()
    destination.unlink()
    return seen


if __name__ == "__main__":
    print(json.dumps(measure_here(int(sys.argv[1]), Path(sys.argv[2]))))
