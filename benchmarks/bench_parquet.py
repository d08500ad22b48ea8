# SPDX-License-Identifier: Apache-2.0
"""How long does Parquet to Parquet take on tables larger than memory, and how much memory?

Census-like records with twelve quasi-identifiers, guided by a column of probabilities, k=100, from a Parquet file (as
pyarrow writes it) to a recounted one. Each size is anonymized once, in a fresh process that has loaded its kernels;
the file is in the system's cache, as it was just written. Beside it stands the time of 10,000,000 records in memory,
frame to recounted frame, which reads and writes no file. Memory is the largest resident size of the whole process
(``VmHWM``): interpreter, libraries and kernels count, the system's cache of files does not, since files are read and
never mapped. The last lines are worked out, not measured; [how they are](../docs/scale.md).

The largest size is run when SFUMATO_BENCH_LARGE is set: it takes minutes and 5 GB of disk. SFUMATO_BENCH_FOLDER names a
folder in which the input files stay and are found again.

![seconds and memory over the number of records, from 100,000 to 100,000,000](../docs/parquet-growth.svg)
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from studies.charts import Panel, Style, draw

from benchmarks.bench_memory import forget_peak, peak_gib, ru_maxrss_gib
from benchmarks.bench_scaling import log_log_slope
from benchmarks.harness import Context, at_most, below
from benchmarks.workloads import census_workload
from sfumato import ModelGuidedAnonymizer
from sfumato.datasets import iter_census
from sfumato.parquet import fit_transform

TITLE = "tables larger than memory"
K = 100
REPOSITORY = Path(__file__).parents[1]
CHART = REPOSITORY / "docs" / "parquet-growth.svg"
FULL_SIZES = (100_000, 1_000_000, 10_000_000)
LARGEST = 100_000_000
WARM_UP = 20_000
CLUSTER_CORES = 1_000


def run(context: Context) -> None:
    """Measure each size in a process of its own, then 10,000,000 records in memory."""
    sizes: tuple[int, ...] = (1_000, 2_000) if context.is_quick else FULL_SIZES
    is_large = bool(os.environ.get("SFUMATO_BENCH_LARGE")) and not context.is_quick
    sizes = (*sizes, LARGEST) if is_large else sizes
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("SFUMATO_BENCH_FOLDER", temporary))
        for n_records in sizes:
            seen = measure_apart(n_records, folder)
            found.append(seen)
            note = (
                f"{n_records / seen['seconds']:,.0f} rows/s; {seen['n_groups']:,} groups, smallest "
                f"{seen['smallest_group']:,}; files of {seen['mib_in']:,.0f} and {seen['mib_out']:,.0f} MiB"
            )
            context.record(f"Parquet to Parquet, {n_records:,} records", seen["seconds"], "s", note=note)
            stages = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in seen["stages"].items())
            context.record(
                f"peak memory, {n_records:,} records", seen["peak"], "GiB",
                target=below(6) if n_records == LARGEST else None,
                note=f"ru_maxrss {seen['ru_maxrss']:.2f} GiB; stages: {stages}",
            )  # fmt: skip
    seconds = [seen["seconds"] for seen in found]
    context.record("log-log slope", log_log_slope(sizes, seconds), "")
    n_in_memory = context.size(10_000_000, 2_000)
    workload = census_workload(n_in_memory)
    timing = context.measure(
        lambda: ModelGuidedAnonymizer(k=K, n_jobs=-1).fit_transform(workload.table, workload.probabilities),
        repeats=min(3, context.repeats),
    )
    context.record_seconds(f"in memory, {n_in_memory:,} records", timing)
    if is_large:
        ratio = seconds[-1] / timing.best
        context.record(f"{LARGEST:,} from files over {n_in_memory:,} in memory", ratio, "x", target=at_most(15))
        work_out(context, found[-2], found[-1])
        CHART.write_text(growth_chart(sizes, found), encoding="utf-8")


def work_out(context: Context, smaller: dict[str, Any], larger: dict[str, Any]) -> None:
    """Go on from the largest size in proportion, or as the last ten times grew where that was more."""
    growth = max(10.0, larger["seconds"] / smaller["seconds"])
    cores = os.cpu_count() or 1
    context.record(
        "1,000,000,000 records on this machine, worked out", larger["seconds"] * growth, "s",
        note=f"ten times the records, {growth:.3g} times as long; where the disk reads as fast as this counts",
    )  # fmt: skip
    context.record(
        f"100,000,000,000 records on {CLUSTER_CORES:,} such cores, worked out",
        larger["seconds"] * growth**3 * cores / CLUSTER_CORES, "s",
        note=f"that three times, {cores} cores by {CLUSTER_CORES:,}; without what a cluster adds",
    )  # fmt: skip


def growth_chart(sizes: tuple[int, ...], found: list[dict[str, Any]]) -> str:
    """Draw seconds, as powers of ten, and memory over the number of records, beside what is proportional."""
    measured = Style("#0072b2", "circle", 2.0)
    straight = Style("#888888", "", 1.2, "4 3")
    at = list(zip(sizes, found, strict=True))
    last = math.log10(found[-1]["seconds"])
    proportional = [(n, last + math.log10(n / sizes[-1])) for n in sizes]
    panels = [
        Panel(
            "Seconds, as a power of ten",
            {"measured": [(n, math.log10(seen["seconds"])) for n, seen in at], "proportional": proportional},
            {},
            axis="records",
        ),
        Panel(
            "Peak memory in GiB",
            {"measured": [(n, seen["peak"]) for n, seen in at]},
            {},
            axis="records",
        ),
    ]
    label = "Seconds and peak memory from Parquet to Parquet over the number of records"
    return draw(panels, {"measured": measured, "proportional": straight}, columns=2, label=label)


def measure_apart(n_records: int, folder: Path) -> dict[str, Any]:
    """Make the input file, unless it is there, and anonymize it in a fresh process."""
    source = folder / f"census-{n_records}.parquet"
    if not source.exists():
        make_input(n_records, source)
    child = [sys.executable, "-m", "benchmarks.bench_parquet", str(source)]
    done = subprocess.run(child, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    seen: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return seen


def make_input(n_records: int, path: Path) -> None:
    """Write census-like records with their true probabilities."""
    import pyarrow.parquet as pq

    writer = None
    unfinished = path.with_suffix(".partial")
    for table in iter_census(n_records, random_state=0, return_probability=True):
        writer = writer or pq.ParquetWriter(unfinished, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    unfinished.replace(path)


def measure_here(source: Path) -> dict[str, Any]:
    """Do the work in this process and return what it took."""
    with tempfile.TemporaryDirectory(dir=source.parent) as name:
        folder = Path(name)
        make_input(WARM_UP, folder / "warm-up.parquet")
        _anonymize(folder / "warm-up.parquet", folder / "out.parquet", most_held=WARM_UP // 2)
        forget_peak()
        stages: dict[str, float] = {}
        began = {"counting values": time.perf_counter()}

        def progress(what: str, done: int, total: int) -> None:
            now = time.perf_counter()
            began.setdefault(what, now)
            stages[what] = now - began[what]

        start = time.perf_counter()
        release = _anonymize(source, folder / "out.parquet", progress=progress)
        return {
            "seconds": time.perf_counter() - start,
            "peak": peak_gib()[0],
            "ru_maxrss": ru_maxrss_gib(),
            "n_groups": release.n_groups,
            "smallest_group": release.smallest_group,
            "mib_in": source.stat().st_size / 2**20,
            "mib_out": (folder / "out.parquet").stat().st_size / 2**20,
            "stages": stages,
        }


def _anonymize(source: Path, destination: Path, **how: Any) -> Any:
    anonymizer = ModelGuidedAnonymizer(k=K, keep=["high_income"], n_jobs=-1)
    return fit_transform(anonymizer, source, destination, guide_column="probability", **how)


if __name__ == "__main__":
    print(json.dumps(measure_here(Path(sys.argv[1]))))
