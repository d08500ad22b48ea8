# SPDX-License-Identifier: Apache-2.0
"""How long until sfumato is there: ``import sfumato``, and the second run of ``sfumato demo``?

Each import is a new process that times itself. The demo runs twice with a kernel cache that starts empty, so the
first run shows what compiling takes and the second what a user waits for from then on.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Context, Timing, below

TITLE = "import and demo"
REPOSITORY = Path(__file__).parents[1]
TIMED = "import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"


def run(context: Context) -> None:
    """Measure imports in fresh processes, then the demo with an empty kernel cache and once more."""
    imported = time_statement(context, "import sfumato")
    context.record_seconds("import sfumato", imported, target=below(0.3), note="inside the process")
    used = time_statement(context, "from sfumato import ModelGuidedAnonymizer")
    context.record_seconds("from sfumato import ModelGuidedAnonymizer", used, note="loads what importing left out")
    bare = context.measure(lambda: call([sys.executable, "-c", "pass"]))
    whole = context.measure(lambda: call([sys.executable, "-c", "import sfumato"]))
    context.record_seconds("python -c 'import sfumato'", whole, note=f"of which python alone {bare.best:.3f} s")
    if context.is_quick:
        context.record("sfumato demo, second run", None, "s", target=below(15), note="left out of quick runs")
        return
    with tempfile.TemporaryDirectory() as cache:
        first, second = (time_demo(cache) for _ in range(2))
    context.record_seconds("sfumato demo, first run", Timing((first,)), note="compiles all kernels")
    context.record_seconds("sfumato demo, second run", Timing((second,)), target=below(15))


def time_statement(context: Context, statement: str) -> Timing:
    """Time a statement in a new process each time; the first, with a cold disk, is not counted."""
    command = [sys.executable, "-c", TIMED.format(statement=statement)]
    call(command)
    return Timing(tuple(float(call(command)) for _ in range(context.repeats)))


def time_demo(cache: str) -> float:
    """Run the demo as a user does, with its compiled kernels kept in ``cache``."""
    command = [str(Path(sys.executable).with_name("sfumato")), "demo"]
    start = time.perf_counter()
    call(command, {"NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - start


def call(command: list[str], environment: dict[str, str] | None = None) -> str:
    """Run a command, which must succeed, and return what it printed."""
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        message = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:])} failed: {message}")
    return done.stdout
