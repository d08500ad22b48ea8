# SPDX-License-Identifier: Apache-2.0
"""The common runner: seeds, resuming, progress, processes. It knows JSON keys and JSON cells, and no experiment.

Two kinds of things plug in here.

**An experiment** is a module that says how a cell comes about. It holds one object, `EXPERIMENT`, and is listed in
``studies/experiments.py``. ``run`` gets the keys of one group and yields what was measured, in their order; the runner
adds the key's own entries, the processor time since the cell before (unless the experiment counts its own) and the
machine::

    # studies/coin_tosses.py
    from studies.runner import Experiment

    def run(keys, paper_scale):
        for key in keys:                                     # all of one `sides`: what they share is made once
            n_tosses = 1_000_000 if paper_scale else 1_000
            yield {"heads": toss(key["sides"], n_tosses, seed=key["seed"])}

    EXPERIMENT = Experiment(
        name="coin_tosses",                                  # its cells: studies/results/coin_tosses.jsonl
        by=("sides", "seed"),                                # entries of a key
        keys=tuple({"sides": s, "seed": i} for s in (2, 6) for i in range(3)),
        run=run,
        together=("sides",),                                 # cells that are equal here run in one process
        needs=lambda key: ("torch",),                        # modules; cells whose modules are missing are left
        titles={2: "coin", 6: "die"},                        # words for entries, in tables and drawings
        views={"odd_ones": view},                            # (study, cells) -> View, for tables of your own
        evidence=evidence,                                   # cells -> Evidence by the names of claims, unjudged
    )

**A study** is one declarative file per table or figure, ``studies/catalogue/NAME.toml``::

    title = "Heads over sides"
    paper = "beyond"                         # goldsteen, staab, mancuhan, beyond
    source = "Future work"                   # of the paper: "Figure 2"
    shows = "What the reader is to see in it, in a sentence or two."
    data = ["coins of 2024"]                 # and what they stand in for
    experiment = "coin_tosses"               # or cannot_run = "why not", and nothing below
    reductions = ["1,000 tosses instead of 1,000,000"]
    quick = { seed = 0 }                     # of the study's cells, a few that run in a minute
    [cells]                                  # which of the experiment's keys; a value, a list, or a pattern with *
    sides = [2, 6]
    [table]                                  # the table and the drawing; or view = "odd_ones" for one of the experiment
    panels = ["sides"]                       # a drawing for each
    lines = ["method"]                       # a row and a line for each
    columns = "k"                            # a column and a place on the axis for each
    value = "heads"                          # means over what is not named
    digits = 2
    baseline = { method = "raw" }            # cells that lie apart as a level line
    [[published]]                            # what the paper prints, as facts
    where = { sides = 2, k = 10 }
    value = 0.5
    [[claims]]                               # what the paper says, and the rule of the verdict: see ``claims``
    [[rule_history]]                         # rules that were changed after cells had been seen

``sfumato study NAME`` runs what is missing and shows it; ``sfumato study --pages`` writes ``docs/results``: one page
per paper from its studies, in the order of `studies.papers`, and the pages of experiments that have a long one
(`documents`). A test holds all of them against the kept cells.

Cells are kept in ``studies/results``, those of ``--paper-scale`` in ``studies/results/paper-scale``, or in the folder
named with ``--cells``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.cells import Cell, Identity, Key, append_cell, identity, read_cells, write_cells
from studies.clock import processor_seconds

if TYPE_CHECKING:
    from studies.claims import Evidence
    from studies.views import View

REPOSITORY = Path(__file__).parents[1]
RESULTS = REPOSITORY / "studies" / "results"
#: Names another folder of cells, for the processes of a run and for experiments that build on another's cells.
CELLS = "SFUMATO_STUDY_CELLS"
#: One thread per process. Read when numpy, torch or numba are imported, so set for processes that are started.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
#: Environments beside the project's own, for packages that do not go together with it.
#: For "mbi": ``pip install 'opendp[mbi]' pandas numba narwhals typer rich`` (OpenDP pins an older polars for it).
ENVIRONMENTS: dict[str, str] = {"mbi": ".peers/mbi"}


@dataclass(frozen=True)
class Experiment:
    """Definition of cells; the module's docstring has an example.

    Attributes
    ----------
    name : str
        Of the module and of the file of cells.
    by : tuple of str
        Names of the entries of a key.
    keys : tuple of Key
        All cells that are kept, in the order in which they run and are kept.
    run : callable
        From the keys of one group, and whether to run without limits, to what was measured, in the same order.
    together : tuple of str
        Names in `by`; cells that are equal there run one after the other in one process. Empty: all cells do.
    needs : callable
        From a key to the modules that its cell imports beyond the core.
    paper_scale_keys : tuple of Key
        What runs with ``--paper-scale``; empty: the same keys.
    titles : mapping
        Words for entries.
    views : mapping of str to callable
        From a study and its cells to a `View`.
    evidence : callable, optional
        From all cells of the experiment to the evidence of claims, by their names.
    documents : callable, optional
        From all cells to texts of files, by their path from the repository's root.
    """

    name: str
    by: tuple[str, ...]
    keys: tuple[Key, ...]
    run: Callable[[Sequence[Key], bool], Iterable[Mapping[str, Any]]]
    together: tuple[str, ...] = ()
    needs: Callable[[Key], Sequence[str]] = lambda key: ()
    paper_scale_keys: tuple[Key, ...] = ()
    titles: Mapping[Any, str] = field(default_factory=dict)
    views: Mapping[str, Callable[[Any, list[Cell]], View]] = field(default_factory=dict)
    evidence: Callable[[list[Cell]], Mapping[str, Evidence]] | None = None
    documents: Callable[[list[Cell]], Mapping[str, str]] | None = None

    def path(self, folder: Path | None = None, *, paper_scale: bool = False) -> Path:
        """Return the file with the cells."""
        folder = Path(os.environ.get(CELLS, RESULTS)) if folder is None else folder
        return (folder / "paper-scale" if paper_scale else folder) / f"{self.name}.jsonl"

    def kept(self, folder: Path | None = None, *, paper_scale: bool = False) -> dict[Identity, Cell]:
        """Return the cells kept so far, those that are declared first and in their order."""
        found = read_cells(self.path(folder, paper_scale=paper_scale), self.by)
        declared = [identity(key, self.by) for key in self.all_keys(paper_scale)]
        return {own: found[own] for own in (*(own for own in declared if own in found), *found)}

    def cells(self, folder: Path | None = None) -> list[Cell]:
        """Return the cells kept so far, as a list."""
        return list(self.kept(folder).values())

    def is_complete(self, folder: Path | None = None) -> bool:
        """Return True if every cell is kept."""
        kept = self.kept(folder)
        return all(identity(key, self.by) in kept for key in self.keys)

    def all_keys(self, paper_scale: bool) -> tuple[Key, ...]:
        """Return the keys at one of the two scales."""
        return self.paper_scale_keys or self.keys if paper_scale else self.keys


@dataclass(frozen=True)
class Progress:
    """A finished cell, and how far the run is; `seconds_left` supposes that the rest takes as long per cell."""

    cell: Cell
    n_done: int
    n_all: int
    seconds_left: float


@dataclass
class Outcome:
    """Result of a run: the cells that were run, and how many were left for which reason."""

    cells: list[Cell] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)


Report = Callable[[Progress], None]


def run_missing(
    experiment: Experiment,
    keys: Sequence[Key],
    *,
    folder: Path | None = None,
    processes: int = 1,
    paper_scale: bool = False,
    report: Report | None = None,
) -> Outcome:
    """Run the cells that are not kept yet, and keep each as it is finished.

    Parameters
    ----------
    experiment : Experiment
    keys : sequence of Key
        Some of the experiment's.
    folder : Path, optional
        Where cells are kept; None: `RESULTS`.
    processes : int, default=1
        With one, the cells run in this process.
    paper_scale : bool, default=False
    report : callable, optional
        Told of every finished cell.
    """
    path = experiment.path(folder, paper_scale=paper_scale)
    kept = experiment.kept(folder, paper_scale=paper_scale)
    todo = [key for key in keys if identity(key, experiment.by) not in kept]
    if not todo:
        return Outcome()

    def keep(cell: Cell) -> None:
        append_cell(path, cell)

    outcome = run_all(experiment, todo, processes=processes, paper_scale=paper_scale, keep=keep, report=report)
    if outcome.cells:
        write_cells(path, experiment.kept(folder, paper_scale=paper_scale).values())
    return outcome


def run_all(
    experiment: Experiment,
    keys: Sequence[Key],
    *,
    processes: int = 1,
    paper_scale: bool = False,
    keep: Callable[[Cell], None] = lambda cell: None,
    report: Report | None = None,
) -> Outcome:
    """Run cells, whether they are kept or not, and hand each to `keep`."""
    outcome, start = Outcome(), time.perf_counter()
    here, elsewhere = _by_interpreter(experiment, keys, outcome)

    lock = threading.Lock()  # cells of several processes arrive in several threads

    def finish(cell: Cell) -> None:
        with lock:
            keep(cell)
            outcome.cells.append(cell)
            if report is not None:
                n_done = len(outcome.cells)
                per_cell = (time.perf_counter() - start) / n_done
                report(Progress(cell, n_done, len(keys), per_cell * (len(keys) - n_done)))

    if processes == 1:
        with _one_thread():
            for group in here:
                _until_it_fails(run_group(experiment, group, paper_scale), finish, outcome, len(group))
        here = []
    tasks = [(sys.executable, group) for group in here] + elsewhere
    if tasks:
        _run_in_processes(experiment, tasks, processes, paper_scale, finish, outcome)
    return outcome


def run_group(experiment: Experiment, keys: Sequence[Key], paper_scale: bool) -> Iterator[Cell]:
    """Run the cells of one group in this process."""
    start = processor_seconds()
    for key, found in zip(keys, experiment.run(keys, paper_scale), strict=True):
        seconds = round(processor_seconds() - start, 2)
        cell = {**key, "seconds": seconds, **found, "environment": environment()}
        yield json.loads(json.dumps(cell))  # as it will be read: lists, no tuples
        start = processor_seconds()


def groups(experiment: Experiment, keys: Sequence[Key]) -> list[list[Key]]:
    """Put the keys together that share work, in the order of their first."""
    together: dict[Identity, list[Key]] = {}
    for key in keys:
        together.setdefault(identity(key, experiment.together), []).append(key)
    return list(together.values())


def environment() -> str:
    """Return the machine and the versions in words."""
    import numpy
    import sklearn

    return (
        f"{platform.machine()}, {os.cpu_count()} cores, one thread, Python {platform.python_version()}, "
        f"numpy {numpy.__version__}, scikit-learn {sklearn.__version__}"
    )


def _one_thread() -> Any:
    """Limit what is imported already: it has read `ONE_THREAD` before anybody asked for it."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


# -- interpreters and processes ------------------------------------------------------------------------------


def _by_interpreter(
    experiment: Experiment, keys: Sequence[Key], outcome: Outcome
) -> tuple[list[list[Key]], list[tuple[str, list[Key]]]]:
    """Return the groups that run in this environment, and those for another with its interpreter; count the rest."""
    places: dict[str, list[Key]] = {}
    for key in keys:
        missing = [name for name in experiment.needs(key) if importlib.util.find_spec(name) is None]
        interpreters = {interpreter_with(name) for name in missing}
        if len(interpreters) > 1 or None in interpreters:
            reason = f"{' and '.join(missing)} is not installed here"
            outcome.left[reason] = outcome.left.get(reason, 0) + 1
            continue
        places.setdefault(str(interpreters.pop()) if interpreters else "", []).append(key)
    here = groups(experiment, places.pop("", []))
    return here, [(place, group) for place, own in places.items() for group in groups(experiment, own)]


def interpreter_with(module: str) -> str | None:
    """Return the interpreter of the environment in which a module is installed, if there is one."""
    path = REPOSITORY / ENVIRONMENTS.get(module, "nowhere") / "bin" / "python"
    return str(path) if path.exists() else None


def _run_in_processes(
    experiment: Experiment,
    tasks: Sequence[tuple[str, list[Key]]],
    processes: int,
    paper_scale: bool,
    finish: Callable[[Cell], None],
    outcome: Outcome,
) -> None:
    started: list[subprocess.Popen[str]] = []

    def work(interpreter: str, group: list[Key]) -> None:
        with _start_worker(experiment, interpreter) as process:
            started.append(process)
            _until_it_fails(_answers(process, group, paper_scale), finish, outcome, len(group))

    with ThreadPoolExecutor(processes) as pool:  # threads that wait for processes
        futures = [pool.submit(work, *task) for task in tasks]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            for process in started:
                process.terminate()
            raise


def _start_worker(experiment: Experiment, interpreter: str) -> subprocess.Popen[str]:
    paths = [str(REPOSITORY), str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]
    variables = os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [interpreter, "-m", "studies.worker", experiment.name]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=variables
    )


def _answers(process: subprocess.Popen[str], group: list[Key], paper_scale: bool) -> Iterator[Cell]:
    """Ask a worker and yield its cells; what it says last is why it stopped, if it did."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"keys": group, "paper_scale": paper_scale}) + "\n")
    process.stdin.close()
    for line in process.stdout:
        answer = json.loads(line)
        if "stopped" in answer:
            raise CellError(answer["stopped"])
        yield answer["cell"]
    if process.wait() != 0:
        raise CellError(f"a process ended with {process.returncode}")


class CellError(Exception):
    """A cell could not be run in another process; the message is the reason there."""


def _until_it_fails(cells: Iterator[Cell], finish: Callable[[Cell], None], outcome: Outcome, n_cells: int) -> None:
    """Finish cells; where data or a package is missing, leave the rest of the group and remember why."""
    from sfumato.errors import SfumatoError

    n_done = 0
    try:
        for cell in cells:
            finish(cell)
            n_done += 1
    except (CellError, ImportError, SfumatoError) as error:
        outcome.left[str(error)] = outcome.left.get(str(error), 0) + n_cells - n_done
