# SPDX-License-Identifier: Apache-2.0
"""What the cells say about the claims of the paper on minimizers, and for every table who covers most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean
from typing import Any

from studies.claims import Evidence
from studies.minimization_tasks import TITLES
from studies.minimizers import Cell
from studies.minimizers_keys import (
    ADVERSARIAL,
    ATTRIBUTES,
    FRONTS,
    LATER_YEARS,
    LEARNED_YEAR,
    LEAVES,
    MINIMIZERS,
    NETWORK,
    ONE_ATTRIBUTE,
    OTHERS,
    SAMPLE,
    SHARES,
    SMALL_LEAF,
    TABLES,
    TREE,
    YEARS,
)
from studies.verdicts import Difference, paired

LEAF = 100
"""Fewest records of a leaf of the privacy-aware tree, as in the paper."""


class Found:
    """The cells of the study, and the areas under their fronts."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = list(cells)
        self._areas: dict[Any, float] = {cell.key: self.together([cell]).hypervolume() for cell in cells}

    def area(self, cell: Cell) -> float:
        """Return the area under the front of a sweep."""
        return self._areas[cell.key]

    def of(self, figure: str, minimizer: str = "") -> list[Cell]:
        """Return the cells of one experiment, of one minimizer or all."""
        return [cell for cell in self.cells if cell.figure == figure and minimizer in ("", cell.minimizer)]

    def fronts(self, table: str) -> list[Cell]:
        """Return the sweeps of all minimizers on a table."""
        return [cell for cell in self.of(FRONTS) if cell.table == table]

    def areas(self, table: str, minimizer: str) -> list[float]:
        """Return the area under the front, one per seed."""
        return [self.area(cell) for cell in self.fronts(table) if cell.minimizer == minimizer]

    def area_of(self, figure: str, variant: str, minimizer: str = TREE) -> float:
        """Return the mean area over seeds in one of the smaller experiments."""
        return mean(self.area(cell) for cell in self.of(figure, minimizer) if cell.variant == variant)

    @staticmethod
    def together(cells: Sequence[Cell]) -> Any:
        """Put sweeps of one table and seed together; the limits of the first stand for all."""
        from sfumato.generalization import Generalization
        from sfumato.minimize.sweep_result import MinimizerSweep, SweepPoint

        points = [*cells[0].points[:2], *(point for cell in cells for point in cell.points[2:])]
        made = tuple(
            SweepPoint(
                point.minimizer,
                point.parameters,
                Generalization(()),
                point.n_buckets,
                point.validation_error,
                point.validation_risk,
                point.test_error,
                point.test_risk,
            )
            for point in points
        )
        return MinimizerSweep(made, ())


def means(found: Found, table: str) -> dict[str, float]:
    """Return every minimizer's mean area on a table, over the seeds that all of them have."""
    own = found.fronts(table)
    names = [name for name in MINIMIZERS if any(cell.minimizer == name for cell in own)]
    seeds = {cell.seed for cell in own}
    for name in names:
        seeds &= {cell.seed for cell in own if cell.minimizer == name}
    return {
        name: mean(found.area(cell) for cell in own if cell.minimizer == name and cell.seed in seeds)
        for name in names
        if seeds
    }


FIRST_EDITION = {
    "communities": (0.908, 0.957, 0.870),
    "lending_club": (0.875, 0.845, 0.822),
    "acs_public_coverage": (0.868, 0.861, 0.903),
    "acs_income": (0.957, 0.956, 0.957),
    "acs_employment": (0.899, 0.899, 0.903),
    "health_pruned": (0.971, 0.962, 0.979),
    "health": (0.969, 0.979, 0.963),
}
"""Areas of the tree with seeds 0, 1 and 2, on the same splits, before rare categories were shrunken."""

OVERLAP = 0.5
"""Test records per training record: 30% and 60%."""


def evidence(found: Found) -> dict[str, Evidence]:
    """Return the differences of areas, seed by seed, of every claim that was run."""
    tables = {
        "tree-best-acs": ("acs_employment", "acs_income"),
        "tree-best-communities": ("communities",),
        "tree-best-more-tables": ("acs_public_coverage", "lending_club"),
        "tree-best-health": ("health_pruned",),
        "tree-best-health-all": ("health",),
    }
    wanted = {name: _leads(found, own) for name, own in tables.items()}
    if found.of(SAMPLE):
        wanted["small-sample"] = _areas_apart(found, SAMPLE, "0.05", "1")
        wanted["very-small-sample"] = _areas_apart(found, SAMPLE, "1", f"{SHARES[-2]:g}")
    for claim, minimizer in (("tree", TREE), ("adversarial", ADVERSARIAL)):
        pairs = [_areas_apart(found, ONE_ATTRIBUTE, f"{name} all", f"{name} one", minimizer) for name in ATTRIBUTES]
        wanted[f"one-attribute-{claim}"] = [one for pair in pairs for one in pair]
    if found.of(YEARS):
        pairs = [_areas_apart(found, YEARS, str(year), str(LEARNED_YEAR)) for year in LATER_YEARS]
        wanted["later-years"] = [one for pair in pairs for one in pair]
    numbers = {
        name: "; ".join(filter(None, (_means_in_words(found, own), _by_network_in_words(found, own))))
        for name, own in tables.items()
    }
    if few := _with_as_few_records(found):
        numbers["tree-best-acs"] = "; ".join(filter(None, (numbers["tree-best-acs"], few)))
    for least in _areas_apart(found, SAMPLE, "1", f"{SHARES[-1]:g}"):
        numbers["very-small-sample"] = (
            f"{SHARES[-1]:.1%} are too few for two leaves of {LEAF}: everything is generalized, {least.estimate:+.3f}"
        )
    return {name: Evidence(own, numbers.get(name, "")) for name, own in wanted.items() if own}


def _leads(found: Found, tables: Sequence[str]) -> list[Difference]:
    """Return how far the tree's area lies above each other minimizer's, over the seeds that both have."""
    leads = []
    for table in tables:
        areas = {(cell.minimizer, cell.seed): found.area(cell) for cell in found.fronts(table)}
        for name in (name for name in MINIMIZERS if name != TREE):
            seeds = sorted(seed for own, seed in areas if own == name and (TREE, seed) in areas)
            if seeds:
                ahead = [areas[TREE, seed] - areas[name, seed] for seed in seeds]
                leads.append(paired(f"{TITLES[table]}, {_short(name)}", ahead, overlap=OVERLAP))
    return leads


def _areas_apart(found: Found, figure: str, variant: str, other: str, minimizer: str = TREE) -> list[Difference]:
    """Return how far the area of one variant lies above that of another, seed by seed."""
    areas = {(cell.variant, cell.seed): found.area(cell) for cell in found.of(figure, minimizer)}
    seeds = sorted(seed for own, seed in areas if own == variant and (other, seed) in areas)
    apart = [areas[variant, seed] - areas[other, seed] for seed in seeds]
    return [paired(f"{variant} and {other}", apart, overlap=OVERLAP)] if seeds else []


def _with_as_few_records(found: Found) -> str:
    """Return how far the tree leads the two slow minimizers when it learns from fewer records than they do."""
    tree = {cell.seed: cell for cell in found.of(SAMPLE, TREE) if cell.variant == "0.05"}
    told = []
    for name in ("AptMinimizer", "IterativeMinimizer"):
        rival = {cell.seed: cell for cell in found.fronts("acs_employment") if cell.minimizer == name}
        seeds = sorted(tree.keys() & rival.keys())
        if seeds and all(tree[seed].n_learned <= rival[seed].n_learned for seed in seeds):
            ahead = [found.area(tree[seed]) - found.area(rival[seed]) for seed in seeds]
            lead = paired("", ahead, overlap=OVERLAP)
            low, high = lead.interval()
            n_tree, n_rival = tree[seeds[0]].n_learned, rival[seeds[0]].n_learned
            told.append(f"{_short(name)} with {n_rival:,} by {lead.estimate:+.3f} [{low:+.3f}, {high:+.3f}]")
    return f"on ACSEmployment the tree with {n_tree:,} records leads {' and '.join(told)}" if told else ""


def _means_in_words(found: Found, tables: Sequence[str]) -> str:
    told = []
    for table in tables:
        own = means(found, table)
        others = [name for name in own if name != TREE]
        if TREE in own and others:
            best = max(others, key=own.__getitem__)
            [lead] = [one for one in _leads(found, [table]) if one.where.endswith(f", {_short(best)}")]
            low, high = lead.interval()
            told.append(
                f"{TITLES[table]}: area {own[TREE]:.3f} beside {own[best]:.3f} of {_short(best)}, the next best "
                f"({lead.estimate:+.3f} [{low:+.3f}, {high:+.3f}])"
            )
    return "; ".join(told)


def _by_network_in_words(found: Found, tables: Sequence[str]) -> str:
    told = []
    for table in tables:
        areas = {name: own[1] for name, own in measured_again(found, NETWORK, table)[1].items()}
        if areas:
            tree = areas.pop(TREE)
            best = max(areas, key=lambda name: mean(areas[name]))
            lead = paired("", [one - other for one, other in zip(tree, areas[best], strict=True)], overlap=OVERLAP)
            low, high = lead.interval()
            told.append(
                f"{TITLES[table]} {mean(tree):.3f} beside {mean(areas[best]):.3f} of {_short(best)} "
                f"({lead.estimate:+.3f} [{low:+.3f}, {high:+.3f}], {lead.n} seeds)"
            )
    return f"with the paper's network as the classifier {', '.join(told)}" if told else ""


def verdicts(found: Found) -> list[str]:
    """Return for every table who covers most, and where the privacy-aware tree does not, by how much and where."""
    sentences = []
    for table in TABLES:
        own = means(found, table)
        if TREE not in own or len(own) < 2:
            continue
        tree, others = own[TREE], {name: area for name, area in own.items() if name != TREE}
        best = max(others, key=lambda name: others[name])
        verb = "covers most" if tree > others[best] else "does not cover most"
        lead = next(own for own in _leads(found, [table]) if own.where.endswith(f", {_short(best)}"))
        low, high = lead.interval()
        sentence = (
            f"{TITLES[table]}: the privacy-aware tree {verb}, {tree:.3f} beside {others[best]:.3f} of {_short(best)}"
        )
        if lead.n > 1:
            sentence += f" (difference {lead.estimate:+.3f}, 95% CI [{low:+.3f}, {high:+.3f}])"
        ahead = _ahead(found, table)
        told = "; ".join(f"{_short(name)} by {by:.3f} with seed {seed}" for seed, (name, by) in ahead.items())
        sentences.append(f"{sentence}; ahead of it: {told}.{_why(found, table)}" if ahead else f"{sentence}.")
    return sentences


def _ahead(found: Found, table: str) -> dict[int, tuple[str, float]]:
    """Return for every seed in which the tree is not the best who is, and by how much."""
    result = {}
    own = found.fronts(table)
    for seed in sorted({cell.seed for cell in own}):
        areas = {cell.minimizer: found.area(cell) for cell in own if cell.seed == seed}
        best = max(areas, key=lambda name: areas[name])
        if TREE in areas and areas[best] > areas[TREE]:
            result[seed] = best, areas[best] - areas[TREE]
    return result


def _why(found: Found, table: str) -> str:
    """Return what two changes of the tree do to its area, where that was measured."""
    told = []
    for figure, change in (
        (LEAVES, f"With leaves of at least {SMALL_LEAF} records instead of {LEAF}"),
        (OTHERS, "With numbers that are not personal cut at their quartiles, too,"),
    ):
        changed = {cell.seed: found.area(cell) for cell in found.of(figure) if cell.table == table}
        as_it_is = [found.area(cell) for cell in found.fronts(table) if cell.minimizer == TREE and cell.seed in changed]
        if changed:
            told.append(
                f"{change} its area is {mean(changed.values()):.3f} instead of {mean(as_it_is):.3f} ({_told(changed)})."
            )
    return "".join(f" {sentence}" for sentence in told)


def since_first_edition(found: Found) -> list[tuple[str, list[float], list[float]]]:
    """Return for every table the areas of the tree in the first edition and now, seed by seed."""
    told = []
    for table, before in FIRST_EDITION.items():
        areas = {cell.seed: found.area(cell) for cell in found.fronts(table) if cell.minimizer == TREE}
        seeds = [seed for seed in range(len(before)) if seed in areas]
        if seeds:
            told.append((table, [before[seed] for seed in seeds], [areas[seed] for seed in seeds]))
    return told


def measured_again(
    found: Found, figure: str, table: str
) -> tuple[list[int], dict[str, tuple[list[float], list[float]]]]:
    """Return areas as they are and measured otherwise, of the minimizers for which that was done; and the seeds.

    `figure`: by the strongest attacker, or with the network as the classifier. Over the seeds that all of them have, in
    their order.
    """
    again = [cell for cell in found.of(figure) if cell.table == table]
    names = list(dict.fromkeys(cell.minimizer for cell in again))
    every = {cell.seed for cell in again}
    seeds = sorted(seed for seed in every if sum(cell.seed == seed for cell in again) == len(names))
    if TREE not in names or len(names) < 2 or not seeds:
        return [], {}

    def areas(cells: Sequence[Cell], name: str) -> list[float]:
        of_seed = {cell.seed: found.area(cell) for cell in cells if cell.minimizer == name}
        return [of_seed[seed] for seed in seeds]

    return seeds, {name: (areas(found.fronts(table), name), areas(again, name)) for name in names}


def verdicts_again(found: Found, figure: str) -> list[str]:
    """Return for every table who covers most when it is measured otherwise; the sum of it first."""
    told, behind = [], []
    for table in TABLES:
        areas = {name: own[1] for name, own in measured_again(found, figure, table)[1].items()}
        if not areas:
            continue
        tree = areas.pop(TREE)
        best = max(areas, key=lambda name: mean(areas[name]))
        lead = paired("", [one - other for one, other in zip(tree, areas[best], strict=True)], overlap=OVERLAP)
        verb = "first" if mean(tree) > mean(areas[best]) else "not first"
        behind += [TITLES[table]] if verb != "first" else []
        sentence = (
            f"{TITLES[table]}: the tree is {verb}, {mean(tree):.3f} beside {mean(areas[best]):.3f} of {_short(best)}"
        )
        if lead.n > 1:
            sentence += (
                f" (difference {lead.estimate:+.3f}, 95% CI [{lead.interval()[0]:+.3f}, {lead.interval()[1]:+.3f}])"
            )
        rest = {name: area for name, area in means(found, table).items() if name != TREE and name not in areas}
        above = [_short(name) for name, area in rest.items() if area >= mean(tree)]
        if above:
            sentence += f"; not measured again, and above it as they are: {', '.join(above)}"
        told.append(f"{sentence}.")
    n_tables = len(told)
    if not told:
        return []
    total = f"By mean area the tree is first on {n_tables - len(behind)} of {n_tables} tables"
    return [f"{total}; not on {', '.join(behind)}." if behind else f"{total}.", *told]


def _told(seeds: Iterable[int]) -> str:
    numbers = [str(seed) for seed in sorted(seeds)]
    return f"{'seed' if len(numbers) == 1 else 'seeds'} {', '.join(numbers)}"


def _short(name: str) -> str:
    return name.removesuffix("Minimizer")
