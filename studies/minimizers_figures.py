# SPDX-License-Identifier: Apache-2.0
"""The smaller experiments with the privacy-aware tree: how small the sample may be, one attribute or all, later years.

Figures 8, 10 and 15 of Staab et al. (2024), all on ACSEmployment. And the fronts of two tables again, to see why the
tree is not the best there: with smaller leaves than the paper's, with more buckets for numbers that are not personal,
and against a stronger attacker. Called by ``minimizers --figures``; the cells go to the others in
``results/minimizers.jsonl``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from studies.minimizers import Bench, Cell, keep, make_cell, read_cells

TABLE, TREE = "acs_employment", "PrivacyAwareTree"
SAMPLE, ONE_ATTRIBUTE, YEARS = "sample size", "one attribute", "years"
LEAVES, OTHERS, STRONGER = "smaller leaves", "other numbers in quarters", "stronger attacker"
#: Shares of the training part that the tree learns from; 0.05 is the paper's example.
SHARES = (1.0, 0.2, 0.05, 0.01, 0.001)
#: Marital status and sex, the paper's two.
ATTRIBUTES = ("MAR", "SEX")
LEARNED_YEAR, LATER_YEARS = 2015, (2016, 2017, 2018)
#: The tables where the tree fell behind with the first seed, and how many records a leaf has there (the paper: 100).
ASKED_WHY, SMALL_LEAF = ("communities", "lending_club"), 10
#: Whose fronts there are attacked once more by gradient boosting: the tree, and the ones that come close to it.
ATTACKED_AGAIN = {
    "communities": (TREE, "AdversarialMinimizer", "FeatureSelectionMinimizer", "MutualInformationMinimizer"),
    "lending_club": (TREE, "MutualInformationMinimizer", "IterativeMinimizer"),
}
#: A part of the paper's grid of twelve alphas and nine leaf limits.
GRID: dict[str, list[Any]] = {"alpha": [i / 11 for i in (0, 3, 6, 9, 11)], "max_leaves": [2, 4, 8, 20, 50, 200]}


def run_figures(seeds: Sequence[int]) -> None:
    """Run the experiments that are not kept yet; those that ask why with the first seed, the quickest with all."""
    kept = {cell.key for cell in read_cells()}
    for seed in seeds:
        for figure, variants, cells in (
            (SAMPLE, [f"{share:g}" for share in SHARES], _sample_sizes),
            (ONE_ATTRIBUTE, [f"{name} {who}" for name in ATTRIBUTES for who in ("all", "one")], _one_attribute),
            (YEARS, [str(year) for year in (LEARNED_YEAR, *LATER_YEARS)], _years),
        ):
            if any((figure, TABLE, TREE, variant, seed) not in kept for variant in variants):
                for cell in cells(seed):
                    keep(cell)
    for table in ASKED_WHY:
        for figure in (LEAVES, OTHERS):
            if (figure, table, TREE, "", 0) not in kept:
                keep(_again(figure, table, 0))
        for seed in seeds if table == "communities" else (0,):
            missing = [name for name in ATTACKED_AGAIN[table] if (STRONGER, table, name, "", seed) not in kept]
            for cell in _attacked_again(table, missing, seed):
                keep(cell)


def _swept(figure: str, variant: str, bench: Bench, rows: Any, personal: Sequence[str] | None = None) -> Cell:
    start = time.perf_counter()
    points = bench.sweep(bench.minimizer(TREE, personal), rows, GRID)
    return make_cell(figure, bench, TREE, variant, len(rows), start, points)


def _again(figure: str, table: str, seed: int) -> Cell:
    """Sweep over the whole grid once more, with one thing changed."""
    from studies.minimization_tasks import load_task

    start = time.perf_counter()
    bench = Bench(load_task(table), seed)
    rows, tree = bench.learned(TREE), bench.minimizer(TREE)
    if figure == LEAVES:
        points = bench.sweep(tree.set_params(min_samples_leaf=SMALL_LEAF), rows)
    else:
        points = bench.sweep(tree, rows, change=_quartered)
    return make_cell(figure, bench, TREE, "", len(rows), start, points)


def _attacked_again(table: str, names: Sequence[str], seed: int) -> Iterable[Cell]:
    """Let counting and gradient boosting guess from the generalizations on each front; the stronger one counts."""
    from sfumato.minimize.risk import ReconstructionRisk
    from sfumato.minimize.sweep_result import MinimizerSweep
    from studies.minimization_tasks import load_task

    if not names:
        return
    bench = Bench(load_task(table), seed)
    attacker = ReconstructionRisk(("table", "boosting"), seed=seed, n_jobs=1)
    for name in names:
        start = time.perf_counter()
        rows = bench.learned(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of logistic regressions that stop early
            points = bench.sweep(bench.minimizer(name), rows)
        front = MinimizerSweep((*bench.limits, *points), ()).front(name)
        fewest = bench.limits[1].n_buckets  # with so few everything is generalized, and there is nothing to attack
        distinct = {
            (point.validation_error, point.validation_risk): point
            for point in front
            if not point.is_limit and point.n_buckets > fewest
        }
        again = [_attacked(point, attacker(point.generalization, *bench.attacked)) for point in distinct.values()]
        yield make_cell(STRONGER, bench, name, "", len(rows), start, again)


def _attacked(point: Any, risks: tuple[float, float]) -> Any:
    return replace(point, validation_risk=risks[0], test_risk=risks[1])


def _quartered(sample: Any, buckets: Any) -> Any:
    """Cut every number that is not personal at its quartiles, too; what the tree told apart stays apart."""
    import numpy as np

    from sfumato.minimize.iterative import quantile_buckets

    made = list(buckets)
    for position, column in enumerate(sample.columns):
        if position not in sample.personal and column.bins.is_ordered:
            quarter = quantile_buckets(column, 4)
            key = np.asarray(buckets[position]) * (int(quarter.max()) + 1) + quarter
            made[position] = np.unique(key, return_inverse=True)[1]
    return made


def _sample_sizes(seed: int) -> Iterable[Cell]:
    """Learn from fewer and fewer records; the first ones, which hold every category, are in each."""
    from studies.minimization_tasks import load_task

    bench = Bench(load_task(TABLE), seed)
    rows = bench.learned(TREE)
    for share in SHARES:
        yield _swept(SAMPLE, f"{share:g}", bench, rows[: round(share * len(rows))])


def _one_attribute(seed: int) -> Iterable[Cell]:
    """Protect all attributes or the one that is attacked; only that one is attacked."""
    from studies.minimization_tasks import load_task

    task = load_task(TABLE)
    for name in ATTRIBUTES:
        bench = Bench(task, seed, personal=[name])
        rows = bench.learned(TREE)
        yield _swept(ONE_ATTRIBUTE, f"{name} all", bench, rows)
        yield _swept(ONE_ATTRIBUTE, f"{name} one", bench, rows, [name])


def _years(seed: int) -> Iterable[Cell]:
    """Learn the generalizations, the classifier and the attacker on one year, and measure them on later ones."""
    import numpy as np

    from studies.minimization_tasks import MEASURED, load_employment_of

    task = load_employment_of(LEARNED_YEAR)
    for year in (LEARNED_YEAR, *LATER_YEARS):
        test = None
        if year != LEARNED_YEAR:
            later = load_employment_of(year)
            test = later.records(np.random.default_rng(seed).permutation(len(later.y))[: MEASURED[2]])
        bench = Bench(task, seed, test=test)
        yield _swept(YEARS, str(year), bench, bench.learned(TREE))
