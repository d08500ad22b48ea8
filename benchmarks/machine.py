# SPDX-License-Identifier: Apache-2.0
"""Describe the machine a run took place on, without anything that names it; called by the command."""

import datetime
import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("sfumato", "numpy", "numba", "scikit-learn", "scipy", "narwhals", "pyarrow", "pandas", "polars")


def describe_machine() -> dict[str, str]:
    """Return what a reader needs to compare numbers: processor, memory, versions, date, and how busy it was."""
    return {
        "Processor": _processor(),
        "Cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "Memory": _memory(),
        "System": f"{platform.system()} {platform.machine()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "Packages": ", ".join(f"{name} {number}" for name, number in _versions(PACKAGES)),
        "Other work at the start": _load(),
        "Date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found.group(1).strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{n_bytes / 2**30:.0f} GiB"


def _load() -> str:
    """Return how busy the machine was before the benchmarks began: a number taken among others is worth less."""
    try:
        return f"load average {os.getloadavg()[0]:.2f}"
    except (AttributeError, OSError):
        return "unknown"


def _versions(names: Iterable[str]) -> list[tuple[str, str]]:
    found = []
    for name in names:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:  # an optional one
            continue
    return found
