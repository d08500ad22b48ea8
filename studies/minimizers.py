# SPDX-License-Identifier: Apache-2.0
"""All minimizers side by side: Staab et al., *From Principle to Practice: Vertical Data Minimization*, figures 4, 11.

60/10/30 splits with every class and category in the training part; fronts are chosen on validation and reported on
test. ``minimizers_keys`` lists the sweeps, ``minimizers_figures`` holds the smaller experiments, ``minimizers_page``
writes the page and the pictures, ``minimizers_views`` the tables of single figures.

Utility is the error of gradient boosting on buckets, risk the success of the counted table (A1): both quick enough for
thousands of generalizations. What is less than the paper's comparison (``minimization_tasks.MEASURED``, `MOST_LEARNED`,
`quick_model`) is also on the page; at the paper's scale these limits fall. The neural minimizers are not trained here
but read from ``results/minimizers_networks.npz``, which ``neural_gpu`` wrote.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from typing import Any

from studies.clock import processor_seconds
from studies.minimization_tasks import TITLES
from studies.minimizers_keys import (
    BY,
    FRONTS,
    MINIMIZERS,
    SEEDS,
    SHORT,
    TABLES,
    keys,
)
from studies.runner import RESULTS, Experiment

NETWORKS = RESULTS / "minimizers_networks.npz"
OBJECTIVES = {"AdversarialMinimizer": "adversarial", "MutualInformationMinimizer": "mutual_information"}
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
    is_limited : bool, default=True
        Whether at most so many records are learned from and measured as the page says.
    """

    def __init__(
        self,
        task: Any,
        seed: int,
        *,
        personal: Sequence[str] | None = None,
        test: Any = None,
        is_limited: bool = True,
    ) -> None:
        from sfumato.minimize.bucket_utility import CodesClassifier
        from sfumato.minimize.judge import Judge, as_risk

        task = replace(task, is_limited=is_limited)
        self.task, self.seed, self.is_limited = task, seed, is_limited
        parts = [task.records(rows) for rows in task.measured_rows(seed)]
        if test is not None:
            parts[2] = test
        reader = self.minimizer("PrivacyAwareTree", personal)
        attacker = as_risk("table", seed=seed, n_jobs=1)
        self._judge = Judge(reader, parts, CodesClassifier(seed=seed), attacker)
        self._own_sample = self._judge.sample_for(reader)

    @cached_property
    def limits(self) -> list[Any]:
        """Nothing and everything generalized, measured."""
        return [self._judge.point(name, {}, own) for name, own in self._judge.limits_of(self._own_sample, 1)]

    @property
    def attacked(self) -> tuple[Any, tuple[str, ...]]:
        """The records of the three parts, and the attributes that the attacker is after."""
        return self._judge.samples, self._judge.personal

    @property
    def classes(self) -> Any:
        """The classes of those records, as numbers."""
        return self._judge.y

    def minimizer(self, name: str, personal: Sequence[str] | None = None) -> Any:
        """Return an unfitted minimizer that knows the task's attributes."""
        from sfumato import minimize

        own = getattr(minimize, name)(
            personal=list(personal or self.task.personal),
            categorical_features=list(self.task.categorical),
            floor=1,  # as in the paper
            random_state=self.seed,
            n_jobs=1,
        )
        return own.set_params(estimator=quick_model(self.seed)) if name in MOST_LEARNED else own

    def learned(self, name: str) -> Any:
        """Return the training rows that a minimizer sees."""
        if name in OBJECTIVES:
            return self.task.network_rows(self.seed)
        return self.task.learned_rows(self.seed)[: MOST_LEARNED.get(name) if self.is_limited else None]

    def sweep(
        self,
        minimizer: Any,
        rows: Any,
        grid: Mapping[str, Sequence[Any]] | None = None,
        change: Callable[[Any, Any], Any] = lambda sample, buckets: buckets,
        protects: str = "",
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
        protects : str, default=""
            The one attribute that a network was trained to protect; "": all.
        """
        from sklearn.model_selection import ParameterGrid

        name = type(minimizer).__name__
        sample = minimizer._read(*self.task.records(rows), None)
        if name in OBJECTIVES:
            return [self._point(name, *own, sample) for own in self._trained(name, protects, sample)]
        errors = self.limits[0].validation_error, self.limits[1].validation_error
        settings = list(ParameterGrid(grid or minimizer.default_grid(sample, errors)))
        made = minimizer._buckets_of_settings(sample, settings)
        changed = (change(sample, own) for own in made)
        return [self._point(name, setting, own, sample) for setting, own in zip(settings, changed, strict=True)]

    def generalizations(self, name: str, settings: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return what a minimizer learns with each setting, from its own rows; networks as they were trained."""
        minimizer = self.minimizer(name)
        sample = minimizer._read(*self.task.records(self.learned(name)), None)
        if name in OBJECTIVES:
            trained = {tuple(setting.items()): buckets for setting, buckets in self._trained(name, "", sample)}
            made = [trained[tuple(setting.items())] for setting in settings]
        else:
            made = list(minimizer._buckets_of_settings(sample, settings))
        return [sample.generalized(own, floor=1, minimizer=name) for own in made]

    def cell(
        self, figure: str, minimizer: str, variant: str, n_learned: int, start: float, points: Sequence[Any]
    ) -> Cell:
        """Put the limits and a finished sweep into a cell."""
        place = self.task.name, minimizer, self.seed
        return make_cell(figure, *place, variant, n_learned, start, [*self.limits, *points])

    def _trained(self, name: str, protects: str, sample: Any) -> Iterator[tuple[dict[str, float], Any]]:
        """Yield the privacy weights that were trained elsewhere, and their buckets."""
        from studies.neural_gpu import split_buckets

        wanted = (self.task.name, self.seed, OBJECTIVES[name], protects)
        for run, buckets in trained_networks().items():
            if (run.task, run.seed, run.objective, run.protects) == wanted:
                yield {"privacy_weight": run.privacy_weight}, split_buckets(buckets, sample.n_codes)

    def _point(self, name: str, setting: dict[str, Any], buckets: Any, sample: Any) -> Any:
        return self._judge.point(name, setting, sample.generalized(buckets, floor=1, minimizer=name))


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


def run(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Run the sweeps of one figure, table and seed."""
    from studies.minimizers_figures import run_figure

    figure = keys[0]["figure"]
    made = _fronts(keys, paper_scale) if figure == FRONTS else run_figure(figure, keys, paper_scale)
    for cell in made:
        yield {name: value for name, value in asdict(cell).items() if name not in BY}


def _fronts(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[Cell]:
    from studies.minimization_tasks import load_task

    bench = Bench(load_task(keys[0]["table"]), keys[0]["seed"], is_limited=not paper_scale)
    for key in keys:
        yield run_cell(bench, key["minimizer"])


def run_cell(bench: Bench, name: str) -> Cell:
    """Sweep over the grid of one minimizer."""
    start = processor_seconds()
    rows = bench.learned(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of logistic regressions that stop early
        points = bench.sweep(bench.minimizer(name), rows)
    return bench.cell(FRONTS, name, "", len(rows), start, points)


def make_cell(
    figure: str,
    table: str,
    minimizer: str,
    seed: int,
    variant: str,
    n_learned: int,
    start: float,
    points: Sequence[Any],
) -> Cell:
    """Put the limits and a finished sweep into a cell."""
    kept = tuple(
        Point(
            point.minimizer,
            dict(point.parameters),
            point.n_buckets,
            *(round(value, 6) for value in (point.validation_error, point.validation_risk)),
            *(round(value, 6) for value in (point.test_error, point.test_risk)),
        )
        for point in points
    )
    seconds = round(processor_seconds() - start, 1)
    return Cell(figure, table, minimizer, variant, seed, n_learned, seconds, kept)


def as_cells(kept: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Read kept sweeps, in the order of the study."""
    found = []
    for document in kept:
        entries = {name: value for name, value in document.items() if name not in ("points", "environment")}
        found.append(Cell(**entries, points=tuple(Point(**point) for point in document["points"])))
    return sorted(
        found,
        key=lambda cell: (
            cell.figure,
            TABLES.index(cell.table),
            MINIMIZERS.index(cell.minimizer),
            cell.variant,
            cell.seed,
        ),
    )


def _evidence(kept: list[dict[str, Any]]) -> Any:
    from studies.minimizers_claims import Found, evidence

    return evidence(Found(as_cells(kept)))


def _documents(kept: list[dict[str, Any]]) -> dict[str, str]:
    from studies.minimizers_page import documents

    return {f"docs/results/{name}": text for name, text in documents(as_cells(kept)).items()}


def _view(name: str) -> Any:
    def view(study: Any, kept: list[dict[str, Any]]) -> Any:
        from studies import minimizers_few_records, minimizers_views

        views = {"few_records": minimizers_few_records.view}
        return (views.get(name) or getattr(minimizers_views, name))(study, as_cells(kept))

    return view


EXPERIMENT = Experiment(
    name="minimizers",
    by=BY,
    keys=tuple(keys(SEEDS)),
    run=run,
    together=("figure", "table", "seed"),
    titles={**TITLES, **SHORT},
    views={name: _view(name) for name in ("fronts", "seeds", "variants", "few_records")},
    evidence=_evidence,
    documents=_documents,
)
