# SPDX-License-Identifier: Apache-2.0
"""Run the benchmarks: ``python -m benchmarks [names] [--quick] [--write]``; ``make bench`` calls this.

Exits with 0 when every target was met, 1 when one was missed or could not be measured, 2 on wrong usage.
"""

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from benchmarks.harness import Context, Result
from benchmarks.machine import describe_machine
from benchmarks.peers.environment import PeerError
from benchmarks.results_file import MixedMachinesError, Section, write_page

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"


def find_benchmarks() -> list[str]:
    """List the benchmarks by name: every ``bench_<name>.py`` is one."""
    return sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))


def run_benchmark(name: str, context: Context) -> Section:
    """Run one benchmark; when it breaks, what it had is kept and a row says so, and the others still run."""
    module: ModuleType = importlib.import_module(f"benchmarks.bench_{name}")
    try:
        module.run(context)
    except Exception as error:
        traceback.print_exc()
        # The message of an error may hold paths of this machine; the page gets its kind only.
        note = str(error) if isinstance(error, PeerError) else type(error).__name__
        context.results.append(Result("stopped early", None, "", passed=False, note=note))
    about = (module.__doc__ or "").strip().replace("``", "`")
    return Section(name, module.TITLE, about, tuple(context.results))


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, print, and write the page where that was asked for."""
    known = find_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure sfumato's speed and memory.")
    parser.add_argument("names", nargs="*", help=f"which to run (default: all): {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    parser.add_argument("--output", type=Path, help="write the page to this file instead")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(known)}")
    if options.quick and options.write and options.output is None:
        parser.error("--quick --write would record numbers that mean nothing; name another file with --output")

    machine = describe_machine()  # before the first benchmark, while the load is still that of others
    sections = []
    for name in options.names or known:
        print(f"{name} ...", flush=True)
        start = time.perf_counter()
        context = Context(is_quick=options.quick, repeats=1 if options.quick else 5)
        sections.append(run_benchmark(name, context))
        print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)

    output = options.output or (RESULTS if options.write else None)
    if output is not None:
        try:
            write_page(output, machine, sections, is_quick=options.quick)
        except MixedMachinesError as error:
            print(error, file=sys.stderr)
            return 2
        print(f"Wrote {output.name}")
    missed = [result.name for section in sections for result in section.results if result.passed is False]
    if missed:
        print(f"Missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
