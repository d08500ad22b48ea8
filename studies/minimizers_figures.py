# SPDX-License-Identifier: Apache-2.0
"""The smaller experiments with the privacy-aware tree: how small the sample may be, one attribute or all, later years.

Figures 8, 10 and 15 of Staab et al. (2024), all on ACSEmployment, and fronts once more, with one thing changed;
``minimizers_keys`` lists them. Called by ``minimizers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from studies.clock import processor_seconds
from studies.minimizers import Bench, Cell, make_cell
from studies.minimizers_keys import (
    ADVERSARIAL,
    FEW,
    FEW_TABLE,
    FEW_VARIANTS,
    LEARNED_YEAR,
    LEAVES,
    N_FEW,
    NETWORK,
    ONE_ATTRIBUTE,
    OTHERS,
    SAMPLE,
    SMALL_LEAF,
    STRONGER,
    TABLE,
    THOROUGH,
    TREE,
    YEARS,
)

#: A part of the paper's grid of twelve alphas and nine leaf limits.
GRID: dict[str, list[Any]] = {"alpha": [i / 11 for i in (0, 3, 6, 9, 11)], "max_leaves": [2, 4, 8, 20, 50, 200]}


def run_figure(figure: str, keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[Cell]:
    """Run the sweeps of one figure, table and seed, in their order."""
    yield from _FIGURES[figure](keys, not paper_scale)


def _swept(figure: str, variant: str, bench: Bench, rows: Any, personal: Sequence[str] | None = None) -> Cell:
    start = processor_seconds()
    points = bench.sweep(bench.minimizer(TREE, personal), rows, GRID if bench.is_limited else None)
    return bench.cell(figure, TREE, variant, len(rows), start, points)


def _again(keys: Sequence[Mapping[str, Any]], is_limited: bool) -> Iterator[Cell]:
    """Sweep over the whole grid once more, with one thing changed."""
    from studies.minimization_tasks import load_task

    for key in keys:
        start = processor_seconds()
        bench = Bench(load_task(key["table"]), key["seed"], is_limited=is_limited)
        rows, tree = bench.learned(TREE), bench.minimizer(TREE)
        if key["figure"] == LEAVES:
            points = bench.sweep(tree.set_params(min_samples_leaf=SMALL_LEAF), rows)
        elif key["figure"] == THOROUGH:
            points = bench.sweep(tree.set_params(search="thorough"), rows)
        else:
            points = bench.sweep(tree, rows, change=_quartered)
        yield bench.cell(key["figure"], TREE, "", len(rows), start, points)


def _few_records(keys: Sequence[Mapping[str, Any]], is_limited: bool) -> Iterator[Cell]:
    """Learn from few records, drawn at random: most occupations then have few, and some have none."""
    import numpy as np

    from studies.minimization_tasks import load_task

    seed = keys[0]["seed"]
    bench = Bench(load_task(FEW_TABLE), seed, is_limited=is_limited)
    rows = np.random.default_rng(100 + seed).choice(bench.learned(TREE), N_FEW, replace=False)
    for key in keys:
        start = processor_seconds()
        tree = bench.minimizer(TREE)
        if key["variant"] == FEW_VARIANTS[1]:
            tree.set_params(hierarchies={"OCCP": _occupations(bench.task.X["OCCP"])})
        yield bench.cell(FEW, TREE, key["variant"], len(rows), start, bench.sweep(tree, rows))


def _occupations(codes: Any) -> Any:
    """Return the hierarchy of occupation codes: groups of codes that begin with the same two of four digits."""
    from sfumato import Hierarchy

    every = sorted({int(code) for code in codes})
    return Hierarchy([(str(code), f"{code // 100:02d}", "*") for code in every])


def _attacked_again(keys: Sequence[Mapping[str, Any]], is_limited: bool) -> Iterator[Cell]:
    """Let counting, boosting and a network guess from each front; for every attribute the strongest counts."""
    from studies.front_attackers import against_all, kept_sweep

    for key in keys:
        start = processor_seconds()
        place = key["table"], key["minimizer"], key["seed"]
        limits = kept_sweep(*place).points[:2]
        yield make_cell(STRONGER, *place, "", kept_sweep(*place).n_learned, start, [*limits, *against_all(*place)])


def _by_network(keys: Sequence[Mapping[str, Any]], is_limited: bool) -> Iterator[Cell]:
    """Classify from each front by the paper's network in the place of boosting; risks and limits are as they were.

    The rectangle between the limits stays the same, so that areas can be compared: with nothing generalized the network
    errs more than boosting, and often more than with buckets.
    """
    from studies.class_networks import errors_of_network
    from studies.front_attackers import NETWORK as SETTINGS
    from studies.front_attackers import kept_sweep, made_again
    from studies.minimization_tasks import load_task

    bench = Bench(load_task(keys[0]["table"]), keys[0]["seed"], is_limited=is_limited)
    samples, personal = bench.attacked

    def again(point: Any) -> Any:
        own = point.generalization
        validation, test = errors_of_network(own, samples, bench.classes, personal, SETTINGS, bench.seed)
        return replace(point, validation_error=validation, test_error=test)

    for key in keys:
        start = processor_seconds()
        name = key["minimizer"]
        points = [again(point) for point in made_again(bench, name)]
        place = key["table"], name, bench.seed
        kept = kept_sweep(*place)
        yield make_cell(NETWORK, *place, "", kept.n_learned, start, [*kept.points[:2], *points])


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


def _sample_sizes(keys: Sequence[Mapping[str, Any]], is_limited: bool) -> Iterator[Cell]:
    """Learn from fewer and fewer records; the first ones, which hold every category, are in each."""
    from studies.minimization_tasks import load_task

    bench = Bench(load_task(TABLE), keys[0]["seed"], is_limited=is_limited)
    rows = bench.learned(TREE)
    for share in (key["variant"] for key in keys):
        yield _swept(SAMPLE, share, bench, rows[: round(float(share) * len(rows))])


def _one_attribute(keys: Sequence[Mapping[str, Any]], is_limited: bool) -> Iterator[Cell]:
    """Protect all attributes or the one that is attacked; only that one is attacked."""
    from studies.minimization_tasks import load_task

    task = load_task(TABLE)
    for key in keys:
        name, who = key["variant"].split()
        bench = Bench(task, key["seed"], personal=[name], is_limited=is_limited)
        rows = bench.learned(key["minimizer"])
        if key["minimizer"] == TREE:
            yield _swept(ONE_ATTRIBUTE, key["variant"], bench, rows, [name] if who == "one" else None)
            continue
        start = processor_seconds()
        points = bench.sweep(bench.minimizer(ADVERSARIAL), rows, protects=name if who == "one" else "")
        yield bench.cell(ONE_ATTRIBUTE, ADVERSARIAL, key["variant"], len(rows), start, points)


def _years(keys: Sequence[Mapping[str, Any]], is_limited: bool) -> Iterator[Cell]:
    """Learn the generalizations, the classifier and the attacker on one year, and measure them on later ones."""
    import numpy as np

    from studies.minimization_tasks import MEASURED, load_employment_of

    task = load_employment_of(LEARNED_YEAR)
    for key in keys:
        year, test = int(key["variant"]), None
        if year != LEARNED_YEAR:
            later = load_employment_of(year)
            rows = np.random.default_rng(key["seed"]).permutation(len(later.y))
            test = later.records(rows[: MEASURED[2] if is_limited else None])
        bench = Bench(task, key["seed"], test=test, is_limited=is_limited)
        yield _swept(YEARS, str(year), bench, bench.learned(TREE))


_FIGURES: dict[str, Callable[[Sequence[Mapping[str, Any]], bool], Iterator[Cell]]] = {
    SAMPLE: _sample_sizes,
    ONE_ATTRIBUTE: _one_attribute,
    YEARS: _years,
    LEAVES: _again,
    OTHERS: _again,
    THOROUGH: _again,
    FEW: _few_records,
    STRONGER: _attacked_again,
    NETWORK: _by_network,
}
