# SPDX-License-Identifier: Apache-2.0
"""All minimizers side by side: Staab et al., *From Principle to Practice: Vertical Data Minimization*, figures 4, 11.

60/10/30 splits with every class and category in the training part; fronts are chosen on validation and reported on
test. Every finished sweep is kept in ``results/minimizers.jsonl``, so a run that stops goes on where it was;
``minimizers_figures`` holds the smaller experiments, ``minimizers_page`` writes the page and the pictures.

    SFUMATO_DATA=... python -m studies.minimizers [--tables A,B] [--minimizers A,B] [--seeds 0,1] [--figures]
                                                  [--write-only]

Utility is the error of gradient boosting on buckets, risk the success of the counted table (A1): both quick enough for
thousands of generalizations. What is less than the paper's comparison (``minimization_tasks.MEASURED``, `MOST_LEARNED`,
`quick_model`) is also on the page. The neural minimizers are not trained here but read from
``results/minimizers_networks.npz``, which ``neural_gpu`` wrote.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread per process; must be set before numpy is imported

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CELLS = HERE / "results" / "minimizers.jsonl"
NETWORKS = HERE / "results" / "minimizers_networks.npz"

TABLES = ("communities", "lending_club", "acs_public_coverage", "acs_income", "acs_employment")
MINIMIZERS = (
    "PrivacyAwareTree",
    "UniformMinimizer",
    "FeatureSelectionMinimizer",
    "AdversarialMinimizer",
    "MutualInformationMinimizer",
    "AptMinimizer",
    "IterativeMinimizer",
)
OBJECTIVES = {"AdversarialMinimizer": "adversarial", "MutualInformationMinimizer": "mutual_information"}
SEEDS = (0, 1, 2)
#: Training records that the two slow minimizers see at most.
MOST_LEARNED = {"AptMinimizer": 12_000, "IterativeMinimizer": 12_000}
ROUNDS = 20
"""Of boosting, for the model that the two slow minimizers ask thousands of times."""


@dataclass(frozen=True)
class Point:
    """One setting, measured."""

    minimizer: str
    parameters: dict[str, Any]
    n_buckets: int
    validation_error: float
    validation_risk: float
    test_error: float
    test_risk: float


@dataclass(frozen=True)
class Cell:
    """One sweep: a minimizer on a table with a seed, the two limits first.

    `figure` and `variant` say which experiment it belongs to and what was varied in it.
    """

    figure: str
    table: str
    minimizer: str
    variant: str
    seed: int
    n_learned: int
    seconds: float
    points: tuple[Point, ...]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What tells it from other cells."""
        return self.figure, self.table, self.minimizer, self.variant, self.seed


FRONTS = "fronts"


class Bench:
    """Measures generalizations on the records of a task and a seed; equal ones once.

    Parameters
    ----------
    task : Task
    seed : int
    personal : sequence of str, optional
        What the attacker is after; None: the task's personal attributes.
    test : pair of records and classes, optional
        None: the test part of the task.
    """

    def __init__(self, task: Any, seed: int, *, personal: Sequence[str] | None = None, test: Any = None) -> None:
        from sfumato.minimize.risk import as_risk
        from sfumato.minimize.sweep import _Judge, _limits
        from sfumato.minimize.utility import CodesClassifier

        self.task, self.seed = task, seed
        parts = [task.records(rows) for rows in task.measured_rows(seed)]
        if test is not None:
            parts[2] = test
        reader = self.minimizer("PrivacyAwareTree", personal)
        attacker = as_risk("table", seed=seed, n_jobs=1)
        self._judge = _Judge(reader, parts, CodesClassifier(seed=seed), attacker)
        self.limits = [self._judge.point(name, {}, own) for name, own in _limits(self._judge.sample_for(reader))]

    @property
    def attacked(self) -> tuple[Any, tuple[str, ...]]:
        """The records of the three parts, and the attributes that the attacker is after."""
        return self._judge.samples, self._judge.personal

    def minimizer(self, name: str, personal: Sequence[str] | None = None) -> Any:
        """Return an unfitted minimizer that knows the task's attributes."""
        from sfumato import minimize

        own = getattr(minimize, name)(
            personal=list(personal or self.task.personal),
            categorical_features=list(self.task.categorical),
            random_state=self.seed,
            n_jobs=1,
        )
        return own.set_params(estimator=quick_model(self.seed)) if name in MOST_LEARNED else own

    def learned(self, name: str) -> Any:
        """Return the training rows that a minimizer sees."""
        if name in OBJECTIVES:
            return self.task.network_rows(self.seed)
        return self.task.learned_rows(self.seed)[: MOST_LEARNED.get(name)]

    def sweep(
        self,
        minimizer: Any,
        rows: Any,
        grid: Mapping[str, Sequence[Any]] | None = None,
        change: Callable[[Any, Any], Any] = lambda sample, buckets: buckets,
    ) -> list[Any]:
        """Learn from some rows with every setting of a grid, and measure what was learned.

        Parameters
        ----------
        minimizer : Minimizer
        rows : ndarray of int
        grid : mapping, optional
            None: the paper's.
        change : callable
            What becomes of the buckets of a sample before they are measured.
        """
        from sklearn.model_selection import ParameterGrid

        name = type(minimizer).__name__
        sample = minimizer._read(*self.task.records(rows), None)
        if name in OBJECTIVES:
            return [self._point(name, *own, sample) for own in self._trained(name, sample)]
        errors = self.limits[0].validation_error, self.limits[1].validation_error
        settings = list(ParameterGrid(grid or minimizer.default_grid(sample, errors)))
        made = minimizer._buckets_of_settings(sample, settings)
        changed = (change(sample, own) for own in made)
        return [self._point(name, setting, own, sample) for setting, own in zip(settings, changed, strict=True)]

    def _trained(self, name: str, sample: Any) -> Iterator[tuple[dict[str, float], Any]]:
        """Yield the privacy weights that were trained elsewhere, and their buckets."""
        from studies.neural_gpu import split_buckets

        for run, buckets in trained_networks().items():
            if (run.task, run.seed, run.objective) == (self.task.name, self.seed, OBJECTIVES[name]):
                yield {"privacy_weight": run.privacy_weight}, split_buckets(buckets, sample.n_codes)

    def _point(self, name: str, setting: dict[str, Any], buckets: Any, sample: Any) -> Any:
        from sfumato.generalization import generalization_from_bins

        generalization = generalization_from_bins(sample.columns, buckets, minimizer=name)
        return self._judge.point(name, setting, generalization)


def quick_model(seed: int) -> Any:
    """Return the model that the two slow minimizers follow."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, random_state=seed)


@cache
def trained_networks() -> dict[Any, Any]:
    """Return the bucket maps that were trained elsewhere."""
    from studies.neural_gpu import read_buckets

    return dict(sorted(read_buckets(NETWORKS).items()))


# -- running -------------------------------------------------------------------------------------------------


def run(tables: Sequence[str], minimizers: Sequence[str], seeds: Sequence[int]) -> None:
    """Run the sweeps that are not kept yet and keep each as it is finished."""
    from studies.minimization_tasks import load_task

    kept = {cell.key for cell in read_cells()}
    for seed in seeds:
        for table in tables:
            missing = [name for name in minimizers if (FRONTS, table, name, "", seed) not in kept]
            if not missing:
                continue
            bench = Bench(load_task(table), seed)
            for name in missing:
                keep(run_cell(bench, name))


def run_cell(bench: Bench, name: str) -> Cell:
    """Sweep over the grid of one minimizer."""
    start = time.perf_counter()
    rows = bench.learned(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of logistic regressions that stop early
        points = bench.sweep(bench.minimizer(name), rows)
    return make_cell(FRONTS, bench, name, "", len(rows), start, points)


def make_cell(
    figure: str, bench: Bench, minimizer: str, variant: str, n_learned: int, start: float, points: Sequence[Any]
) -> Cell:
    """Put a finished sweep and the limits into a cell."""
    kept = tuple(
        Point(
            point.minimizer,
            dict(point.parameters),
            point.n_buckets,
            *(round(value, 6) for value in (point.validation_error, point.validation_risk)),
            *(round(value, 6) for value in (point.test_error, point.test_risk)),
        )
        for point in (*bench.limits, *points)
    )
    seconds = round(time.perf_counter() - start, 1)
    return Cell(figure, bench.task.name, minimizer, variant, bench.seed, n_learned, seconds, kept)


def keep(cell: Cell) -> None:
    """Write a finished cell to the others."""
    CELLS.parent.mkdir(exist_ok=True)
    with CELLS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(cell)) + "\n")
    print(f"{' '.join(map(str, cell.key))}: {len(cell.points)} points in {cell.seconds:.0f} s", flush=True)


def read_cells() -> list[Cell]:
    """Return the sweeps kept so far, in the order of the study; of two with one key the later counts."""
    if not CELLS.exists():
        return []
    found = {}
    for line in CELLS.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        points = tuple(Point(**point) for point in document.pop("points"))
        cell = Cell(**document, points=points)
        found[cell.key] = cell
    return sorted(
        found.values(),
        key=lambda cell: (
            cell.figure,
            TABLES.index(cell.table),
            MINIMIZERS.index(cell.minimizer),
            cell.variant,
            cell.seed,
        ),
    )


def _chosen(given: str | None, known: Sequence[str], option: str) -> list[str]:
    names = list(known) if given is None else given.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"{option} names {unknown[0]!r}: expected some of {', '.join(known)}.")
    return names


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.minimizers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tables", help=f"some of {', '.join(TABLES)}, separated by commas")
    parser.add_argument("--minimizers", help=f"some of {', '.join(MINIMIZERS)}, separated by commas")
    parser.add_argument("--seeds", help="some of 0, 1, 2, separated by commas")
    parser.add_argument("--figures", action="store_true", help="the smaller experiments instead")
    parser.add_argument("--write-only", action="store_true", help="write the page from the sweeps at hand")
    arguments = parser.parse_args()
    tables = _chosen(arguments.tables, TABLES, "--tables")
    minimizers = _chosen(arguments.minimizers, MINIMIZERS, "--minimizers")
    seeds = [int(seed) for seed in _chosen(arguments.seeds, [str(seed) for seed in SEEDS], "--seeds")]
    if arguments.figures:
        from studies.minimizers_figures import run_figures

        run_figures(seeds)
    elif not arguments.write_only:
        run(tables, minimizers, seeds)
    from studies.minimizers_page import write

    write(read_cells())


if __name__ == "__main__":
    # Cells of the module that others import, not of a second copy of it under the name __main__.
    from studies.minimizers import main as run_main

    run_main()
