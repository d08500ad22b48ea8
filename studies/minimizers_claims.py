# SPDX-License-Identifier: Apache-2.0
"""What the paper on minimizers claims, judged by the cells; and for every table who covers most. Called by the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean
from typing import Any

from studies.claims import HELD, NOT_HELD, UNTESTED, Claim
from studies.minimization_tasks import TITLES
from studies.minimizers import Cell
from studies.minimizers_keys import (
    ATTRIBUTES,
    FRONTS,
    LATER_YEARS,
    LEARNED_YEAR,
    LEAVES,
    MINIMIZERS,
    ONE_ATTRIBUTE,
    OTHERS,
    SAMPLE,
    SHARES,
    SMALL_LEAF,
    STRONGER,
    TABLES,
    TREE,
    YEARS,
)

#: Areas of the smaller experiments that differ by no more than this count as equal; chosen before they were run.
CLOSE = 0.02
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

    def of(self, figure: str) -> list[Cell]:
        """Return the cells of one experiment."""
        return [cell for cell in self.cells if cell.figure == figure]

    def fronts(self, table: str) -> list[Cell]:
        """Return the sweeps of all minimizers on a table."""
        return [cell for cell in self.of(FRONTS) if cell.table == table]

    def areas(self, table: str, minimizer: str) -> list[float]:
        """Return the area under the front, one per seed."""
        return [self.area(cell) for cell in self.fronts(table) if cell.minimizer == minimizer]

    def area_of(self, figure: str, variant: str) -> float:
        """Return the mean area over seeds in one of the smaller experiments."""
        return mean(self.area(cell) for cell in self.of(figure) if cell.variant == variant)

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


def claims(found: Found) -> list[Claim]:
    """Judge what the paper says, row by row."""
    return [_best(found), *_sample(found), *_attributes(found), _years(found), *_UNTESTED]


def _best(found: Found) -> Claim:
    text = "PAT has the best tradeoff on every dataset (Figures 4, 11)"
    judged = {table: own for table in TABLES if len(own := means(found, table)) == len(MINIMIZERS)}
    if not judged:
        return Claim(text, UNTESTED, "no table has been swept with all minimizers")
    leads = {}
    for table, own in judged.items():
        best = max((name for name in own if name != TREE), key=lambda name: own[name])
        leads[table] = own[TREE] - own[best], f"{own[TREE]:.3f} beside {own[best]:.3f} of {_short(best)}"
    n_ahead = sum(lead > 0 for lead, _ in leads.values())
    closest = min(leads, key=lambda table: leads[table][0])
    splits = {(cell.table, cell.seed) for cell in found.of(FRONTS) if cell.minimizer == TREE}
    n_lost = sum(len(_ahead(found, table)) for table in TABLES)
    return Claim(
        text,
        HELD if n_ahead == len(leads) else NOT_HELD,
        f"largest mean area on {n_ahead} of {len(leads)} tables, closest {TITLES[closest]} with {leads[closest][1]}; "
        f"largest in {len(splits) - n_lost} of {len(splits)} single splits",
    )


def _sample(found: Found) -> list[Claim]:
    if not found.of(SAMPLE):
        return []
    areas = {share: found.area_of(SAMPLE, f"{share:g}") for share in SHARES}
    small, least = areas[0.05], areas[SHARES[-1]]
    return [
        Claim(
            "5% of the training records give almost the same tradeoff (Figure 8)",
            HELD if abs(small - areas[1.0]) <= CLOSE else NOT_HELD,
            f"area {small:.3f} with 5%, {areas[1.0]:.3f} with all",
        ),
        Claim(
            "only very small samples are worse (Figure 8; here: 1% is as good as all, 0.1% is not)",
            HELD if least < areas[1.0] - CLOSE and abs(areas[0.01] - areas[1.0]) <= CLOSE else NOT_HELD,
            ", ".join(f"{area:.3f} with {share:.1%}" for share, area in areas.items()),
        ),
    ]


def _attributes(found: Found) -> list[Claim]:
    if not found.of(ONE_ATTRIBUTE):
        return []
    pairs = {
        name: (found.area_of(ONE_ATTRIBUTE, f"{name} all"), found.area_of(ONE_ATTRIBUTE, f"{name} one"))
        for name in ATTRIBUTES
    }
    is_close = all(abs(every - one) <= CLOSE for every, one in pairs.values())
    told = "; ".join(f"{name} {every:.3f} and {one:.3f}" for name, (every, one) in pairs.items())
    return [
        Claim(
            "protecting all attributes protects a single one about as well as protecting it alone (Figure 10, PAT)",
            HELD if is_close else NOT_HELD,
            f"area with all and with one protected: {told}",
        )
    ]


def _years(found: Found) -> Claim:
    text = "generalizations of one year serve later ones without significant loss (Figure 15)"
    if not found.of(YEARS):
        return Claim(text, UNTESTED, "not run")
    first = found.area_of(YEARS, str(LEARNED_YEAR))
    later = {year: found.area_of(YEARS, str(year)) for year in LATER_YEARS}
    is_held = min(later.values()) >= first - CLOSE
    told = ", ".join(f"{area:.3f} in {year}" for year, area in later.items())
    return Claim(text, HELD if is_held else NOT_HELD, f"area {first:.3f} in {LEARNED_YEAR}; {told}")


_UNTESTED = (
    Claim(
        "protecting all attributes protects a single one about as well, with AdvTrain (Figure 10)",
        UNTESTED,
        "the networks at hand were trained to protect all attributes",
    ),
    Claim("PAT has the best tradeoff on Health (Figures 4, 11)", UNTESTED, "the data are not at hand"),
)


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
        sentence = (
            f"{TITLES[table]}: the privacy-aware tree {verb}, {tree:.3f} beside {others[best]:.3f} of {_short(best)}"
        )
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


def against_stronger(found: Found, table: str) -> tuple[list[int], dict[str, tuple[float, float]]]:
    """Return mean areas by counting and by the stronger of two attackers, of minimizers attacked again; and the seeds.

    Over the seeds that all of them have.
    """
    again = [cell for cell in found.of(STRONGER) if cell.table == table]
    names = list(dict.fromkeys(cell.minimizer for cell in again))
    every = {cell.seed for cell in again}
    seeds = sorted(seed for seed in every if sum(cell.seed == seed for cell in again) == len(names))
    if TREE not in names or len(names) < 2 or not seeds:
        return [], {}

    def area(cells: Sequence[Cell], name: str) -> float:
        return mean(found.area(cell) for cell in cells if cell.minimizer == name and cell.seed in seeds)

    return seeds, {name: (area(found.fronts(table), name), area(again, name)) for name in names}


def stronger_verdict(found: Found) -> str:
    """Return on which tables the tree is first against the stronger attacker, and where it is not."""
    areas = {table: own for table in TABLES if (own := against_stronger(found, table)[1])}
    behind = [TITLES[t] for t, own in areas.items() if own[TREE][1] < max(stronger for _, stronger in own.values())]
    if not behind:
        return f"Against the stronger attacker, the tree is ahead on all {len(areas)} tables."
    return (
        f"Against the stronger attacker, the tree is ahead on {len(areas) - len(behind)} of {len(areas)} tables; "
        f"not on {', '.join(behind)}."
    )


def _told(seeds: Iterable[int]) -> str:
    numbers = [str(seed) for seed in sorted(seeds)]
    return f"{'seed' if len(numbers) == 1 else 'seeds'} {', '.join(numbers)}"


def _short(name: str) -> str:
    return name.removesuffix("Minimizer")
