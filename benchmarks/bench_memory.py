# SPDX-License-Identifier: Apache-2.0
"""How much memory does ``fit_transform`` take on 10,000,000 census-like records, input and output included?

A fresh process makes the table and the guide, then asks the system to forget the peak so far, then calls
``fit_transform`` and holds input and output together. The judged number is the peak resident size of that whole
process: interpreter, libraries and compiled kernels count too. Run once: memory hardly varies.
"""

import gc
import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import Context, below
from benchmarks.workloads import as_read_from_csv, census_workload
from sfumato import ModelGuidedAnonymizer

TITLE = "peak memory at ten million records"
K = 100
REPOSITORY = Path(__file__).parents[1]


def run(context: Context) -> None:
    """Measure in processes of their own: the table as generated, and as it would come from a file of text."""
    n_records = context.size(10_000_000, 2_000)
    for kind, target in (("narrow types", below(4)), ("text and 64-bit numbers", below(4))):
        child = [sys.executable, "-m", "benchmarks.bench_memory", str(n_records), kind]
        done = subprocess.run(child, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if done.returncode:
            message = (done.stderr.strip().splitlines() or ["no message"])[-1]
            context.record(f"peak, {n_records:,} records ({kind})", None, "GiB", target=target, note=message)
            continue
        seen = json.loads(done.stdout.strip().splitlines()[-1])
        since = "since the input was ready" if seen["was_forgotten"] else "since the process began"
        note = f"{seen['source']} {since}, ru_maxrss {seen['ru_maxrss']:.2f} GiB; {seen['n_groups']:,} groups"
        context.record(f"input ready ({kind})", seen["before"], "GiB", note="process with table and guide")
        context.record(f"peak, {n_records:,} records ({kind})", seen["peak"], "GiB", target=target, note=note)
        context.record(f"after the call ({kind})", seen["after"], "GiB", note="input and output alive")


def measure_here(n_records: int, kind: str) -> dict[str, Any]:
    """Do the work in this process and return what it took; the child's half of :func:`run`."""
    workload = census_workload(n_records)
    table, guide = workload.table, workload.probabilities
    del workload
    if kind == "text and 64-bit numbers":
        table = as_read_from_csv(table)
    gc.collect()
    was_forgotten = forget_peak()
    before = resident_gib("VmRSS")
    anonymizer = ModelGuidedAnonymizer(k=K, n_jobs=-1)
    released = anonymizer.fit_transform(table, guide)
    after = resident_gib("VmRSS")
    peak, source = peak_gib()
    ru_maxrss = ru_maxrss_gib()
    assert len(released) == len(table)  # both are alive here, after the peak was read
    return {
        "before": before,
        "peak": peak,
        "after": after,
        "source": source,
        "ru_maxrss": ru_maxrss,
        "was_forgotten": was_forgotten,
        "n_groups": int(anonymizer.n_groups_),
    }


def forget_peak() -> bool:
    """Reset the peak to the present size where the system allows it; tell whether it did."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_gib() -> tuple[float, str]:
    """Return the peak and its source: the kernel's own number where it has one."""
    try:
        return resident_gib("VmHWM"), "VmHWM"
    except (OSError, LookupError):
        return ru_maxrss_gib(), "ru_maxrss"


def ru_maxrss_gib() -> float:
    """Return the peak as every system tells it. It can be the peak of the process that started this one, if higher."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def resident_gib(key: str) -> float:
    """Return one of the kernel's numbers about this process."""
    found = re.search(rf"^{key}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    if found is None:
        raise LookupError(key)
    return int(found.group(1)) / 2**20


if __name__ == "__main__":
    print(json.dumps(measure_here(int(sys.argv[1]), sys.argv[2])))
