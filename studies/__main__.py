# SPDX-License-Identifier: Apache-2.0
"""``python -m studies NAME [--processes N] [--quick | --write-only] [--again METHOD]``; no name: list the studies."""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread per process; must be set before numpy is imported

import argparse
import importlib
from typing import Any

NAMES = ("adult_utility", "classic_methods")


def main() -> None:
    """Run what is missing of a study and write its page."""
    parser = argparse.ArgumentParser(prog="python -m studies", description="Run a study and write its page.")
    parser.add_argument("name", nargs="?", choices=NAMES, help="the study; none: list them")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="one thread each")
    parser.add_argument("--quick", action="store_true", help="run a few cells anew, show them beside the kept ones")
    parser.add_argument("--write-only", action="store_true", help="write the page from the cells at hand")
    parser.add_argument("--again", action="append", default=[], metavar="METHOD", help="run a method's cells anew")
    arguments = parser.parse_args()
    if arguments.name is None:
        for name in NAMES:
            print(f"{name:18} {_study(name).title}")
        return
    from studies import runner

    study = _study(arguments.name)
    if arguments.quick:
        runner.run_quick(study, processes=arguments.processes)
        return
    if not arguments.write_only:
        runner.run(study, processes=arguments.processes, again=arguments.again)
    runner.write(study)


def _study(name: str) -> Any:
    return importlib.import_module(f"studies.{name}").STUDY


if __name__ == "__main__":
    main()
