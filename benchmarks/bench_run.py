# SPDX-License-Identifier: Apache-2.0
"""How long does ``sfumato run`` take, and how much memory beside the table it is about?

Every run is a process of its own that calls the command on a policy as its users do, with nothing loaded before, and
then reads its peak resident size from the system. *Fixed* is that peak on 1,000 records: interpreter, libraries,
compiled kernels. *The table* is what Arrow makes of the file by its own defaults: bytes of all buffers. What is judged
is how many such tables the peak lies above the fixed part. A table of text and 64-bit numbers, as CSV gives and as
*text.parquet* holds, is the usual case; one of narrow numbers and dictionaries, as Parquet can give, is four times
smaller, and the engine's own codes weigh more beside it. In *quoted* files all text is in quotes, which are kept apart
from the values. Census-like records with twelve quasi-identifiers, k = 100, no attacks; *given*: a column holds
predictions and nothing is trained; *trained*: gradient boosting on a split, on the protected split, and on all
records. Adult is run with the quick audit. Each is run once.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.harness import Context, Timing, at_most, below
from benchmarks.workloads import SEED
from sfumato.datasets import load_adult, make_census

TITLE = "sfumato run: time and peak memory"
REPOSITORY = Path(__file__).parents[1]
K = 100
POLICY = """version = 1
[data]
file = "{file}"
release = "released-{file}"
[columns]
target = "{target}"
{columns}
[method]
k = {k}
[model]
{model}
[audit]
level = "{level}"
[gate]
min_k = {k}
"""
#: The command, and then the peak of its process in KiB; what a benchmark needs would be loaded on top of it.
CHILD = """
from sfumato.cli import main

try:
    main()
except SystemExit as left:
    if left.code:
        raise
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
GIVEN: dict[str, object] = {"model": 'guide_column = "predicted"\ntest_fraction = 0.0', "columns": ""}
TRAINED: dict[str, object] = {"model": "test_fraction = 0.2", "columns": 'identifiers = ["predicted"]'}


def run(context: Context) -> None:
    """Run the command on Adult, and on census-like records in both formats with and without training."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_adult(context, folder)
        n_records, n_more = context.size(1_000_000, 2_000), context.size(5_000_000, 4_000)
        for ending in ("csv", "quoted.csv", "text.parquet", "parquet"):
            write_census(folder / f"small.{ending}", 1_000)
            write_census(folder / f"large.{ending}", n_records)
            for kind, settings, limit in (("given", GIVEN, 30), ("trained", TRAINED, 90)):
                fixed = call(folder, f"small.{ending}", settings)
                seen = call(folder, f"large.{ending}", settings)
                label = f"{kind}, {ending}, {n_records:,} records"
                context.record_seconds(label, Timing((seen["seconds"],)), target=at_most(limit))
                record_memory(context, label, folder / f"large.{ending}", seen["peak"], fixed["peak"])
            (folder / f"large.{ending}").unlink()
            write_census(folder / f"more.{ending}", n_more)
            fixed, seen = (call(folder, f"{size}.{ending}", GIVEN) for size in ("small", "more"))
            label = f"given, {ending}, {n_more:,} records"
            record_memory(context, label, folder / f"more.{ending}", seen["peak"], fixed["peak"])
            (folder / f"more.{ending}").unlink()


def run_adult(context: Context, folder: Path) -> None:
    """Run Adult with the attacks of the quick level."""
    frame = load_adult(as_frame="pandas").frame.drop(columns=["fnlwgt", "education-num"])
    frame = frame.sample(context.size(len(frame), 1_000), random_state=SEED)
    frame.to_csv(folder / "adult.csv", index=False)
    settings: dict[str, object] = {"target": "income", "level": "quick", "k": 10, "model": "", "columns": ""}
    seen = call(folder, "adult.csv", settings)
    label = f"Adult, {len(frame):,} records, quick audit"
    context.record_seconds(label, Timing((seen["seconds"],)), target=at_most(180))


def write_census(path: Path, n_records: int) -> None:
    """Write census-like records with a column of predicted classes."""
    census = make_census(n_records, random_state=SEED, return_probability=True, as_frame="pandas")
    frame = census.frame.assign(predicted=np.where(census.probability > 0.5, "yes", "no"))
    narrow = pa.Table.from_pandas(frame, preserve_index=False)
    plain = pa.table([without_dictionary(column) for column in narrow.columns], names=narrow.column_names)
    if path.suffix != ".parquet":
        quoting = "needed" if ".quoted" in path.suffixes else "none"  # Arrow calls quotes around all text needed
        csv.write_csv(plain, path, csv.WriteOptions(quoting_style=quoting))
    elif ".text" in path.suffixes:
        pq.write_table(pa.table([with_64_bits(column) for column in plain.columns], names=plain.column_names), path)
    else:
        pq.write_table(narrow, path)


def without_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text that is written out for every record."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def with_64_bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers in the types that a reader of CSV gives them."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.float64()) if pa.types.is_floating(column.type) else column.cast(pa.string())


def table_gib(path: Path) -> float:
    """Return how large the table is that Arrow reads from a file."""
    table = pq.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    return float(table.nbytes) / 2**30


def record_memory(context: Context, label: str, path: Path, peak: float, fixed: float) -> None:
    """Record a peak, and how many tables it lies above what a small table takes."""
    table = table_gib(path)
    note = f"fixed {fixed:.2f} GiB, table {table:.3f} GiB"
    context.record(f"peak, {label}", peak, "GiB", note=note)
    context.record(f"tables above the fixed part, {label}", (peak - fixed) / table, "x", target=below(3))


def call(folder: Path, file: str, settings: Mapping[str, object]) -> dict[str, float]:
    """Run the command in a process of its own; return its seconds and its peak in GiB."""
    shared = {"target": "high_income", "level": "none", "k": K, "file": file}
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(**{**shared, **settings}), encoding="utf-8")
    child = [sys.executable, "-c", CHILD, "run", str(policy), "--force", "--quiet"]
    start = time.perf_counter()
    done = subprocess.run(child, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        message = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"sfumato run failed on {file}: {message}")
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak": float(done.stdout.strip().splitlines()[-1]) / 2**20}
