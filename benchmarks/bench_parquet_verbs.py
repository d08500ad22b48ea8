# SPDX-License-Identifier: Apache-2.0
"""How long do measuring, anatomizing and generalizing take on tables larger than memory, and how much memory?

Census-like records with twelve quasi-identifiers in a Parquet file, each size and verb in a fresh process, once. At
the size that fits memory the same verbs on the table stand beside, reading and writing included.
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
from benchmarks.harness import Context
from sfumato import Anatomizer, UniformMinimizer, measure
from sfumato import parquet as pieces
from sfumato.datasets import iter_census

TITLE = "other verbs on tables larger than memory"
REPOSITORY = Path(__file__).parents[1]
VERBS = ("measure", "anatomize", "transform")
SECRET, L = "occupation", 3
LARGEST = 100_000_000


def run(context: Context) -> None:
    """Make one file per size and work through it verb by verb, each in a process of its own."""
    sizes = (2_000,) if context.is_quick else (1_000_000, 10_000_000)
    if os.environ.get("SFUMATO_BENCH_LARGE") and not context.is_quick:
        sizes = (*sizes, LARGEST)
    for n_records in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_census(n_records, Path(folder) / "in.parquet")
            for verb in VERBS:
                seen = apart(verb, "pieces", Path(folder))
                context.record(f"{verb}, {n_records:,} records in files", seen["seconds"], "s")
                context.record(f"{verb}, {n_records:,} records in files, peak memory", seen["peak"], "GiB")
                if n_records == sizes[0]:
                    beside = apart(verb, "memory", Path(folder))
                    context.record(f"{verb}, {n_records:,} records in memory", beside["seconds"], "s")
                    context.record(f"{verb}, {n_records:,} records in memory, peak memory", beside["peak"], "GiB")


def write_census(n_records: int, path: Path) -> None:
    """Write a file of census-like records."""
    import pyarrow.parquet as pq

    writer = None
    for table in iter_census(n_records, random_state=0):
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def apart(verb: str, where: str, folder: Path) -> dict[str, Any]:
    """Do the work in a fresh process."""
    child = [sys.executable, "-m", "benchmarks.bench_parquet_verbs", verb, where, str(folder)]
    done = subprocess.run(child, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    seen: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return seen


def here(verb: str, where: str, folder: Path) -> dict[str, float]:
    """Do the work in this process and return what it took."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, destination = folder / "in.parquet", folder / f"{verb}-{where}"
    with pq.ParquetFile(source) as file:
        head = next(file.iter_batches(batch_size=2_000))
    sample = pa.Table.from_batches([head])
    labels = [row % 2 for row in range(sample.num_rows)]
    coarse = UniformMinimizer(4, n_jobs=-1).fit(sample.drop_columns(["high_income"]), labels).generalization_
    names = [name for name in sample.column_names if name not in ("high_income", SECRET)]
    forget_peak()
    start = time.perf_counter()
    if where == "pieces":
        if verb == "measure":
            pieces.measure(source, names, [SECRET], scratch=folder)
        elif verb == "anatomize":
            pieces.anatomize(Anatomizer(L, sensitive=SECRET, random_state=0), source, destination)
        else:
            pieces.transform(coarse, source, destination, output="labels")
    else:
        table = pq.read_table(source)
        if verb == "measure":
            measure(table, names, [SECRET])
        elif verb == "anatomize":
            Anatomizer(L, sensitive=SECRET, random_state=0).fit_transform(table).save(destination)
        else:
            pq.write_table(coarse.transform(table, "labels"), destination, compression="zstd")
    return {"seconds": time.perf_counter() - start, "peak": peak_gib()[0]}


if __name__ == "__main__":
    print(json.dumps(here(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
