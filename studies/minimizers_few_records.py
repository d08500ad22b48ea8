# SPDX-License-Identifier: Apache-2.0
"""What few records cost the privacy-aware tree: 5,000 of ACSIncome against all, at equal risk, paired by seed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from studies.minimizers import Cell, Point
from studies.minimizers_claims import Found
from studies.minimizers_keys import FEW, FEW_TABLE, FEW_VARIANTS, N_FEW, TREE
from studies.summaries import interval
from studies.views import View

#: Limits of the risk at which errors are compared. Occupation, age and so on are guessed from 0.40 to 1.
RISKS = (0.42, 0.45, 0.48, 0.52, 0.6)
LIMIT = 1.5
"""Percentage points, set before anything was run."""


def few_records_lines(found: Found) -> list[str]:
    """Return a table of errors and of their differences over seeds, and what it says; empty where nothing was run."""
    every = {cell.seed: cell for cell in found.fronts(FEW_TABLE) if cell.minimizer == TREE}
    few = {
        variant: {cell.seed: cell for cell in found.of(FEW) if cell.variant == variant and cell.seed in every}
        for variant in FEW_VARIANTS
    }
    seeds = sorted(set.intersection(*(set(own) for own in few.values())))
    if not seeds:
        return []
    heads = [f"{N_FEW:,}, {variant}" for variant in FEW_VARIANTS]
    columns = [column for head in heads for column in (head, "difference [95% CI]")]
    lines = [
        f"| risk at most | all | {' | '.join(columns)} |",
        f"| ---: |{' ---: |' * (1 + len(columns))}",
    ]
    largest = {}
    for risk in RISKS:
        all_errors = [_error(every[seed], risk) for seed in seeds]
        cells = [f"{risk:.2f}", f"{mean(all_errors):.1f}"]
        for variant, own in few.items():
            errors = [_error(own[seed], risk) for seed in seeds]
            told, middle = _difference(errors, all_errors)
            cells += [f"{mean(errors):.1f}", told]
            largest[variant] = max(largest.get(variant, middle), middle)
        lines.append(f"| {' | '.join(cells)} |")
    told = "; ".join(f"{variant} {value:.2f}" for variant, value in largest.items())
    verdict = "within" if max(largest.values()) <= LIMIT else "beyond"
    return [
        *lines,
        "",
        f"Largest mean difference, in points: {told}; {verdict} the {LIMIT} that were set as the limit beforehand.",
        f"Seeds: {', '.join(map(str, seeds))}.",
        "",
    ]


def view(study: Any, cells: Sequence[Cell]) -> View:
    """Show the table."""
    return View(few_records_lines(Found(cells)) or ["Not run yet.", ""])


def _error(cell: Cell, risk: float) -> float:
    """Return the error on test, in percent, of the best setting on validation within a limit of the risk."""

    def preference(point: Point) -> tuple[float, float]:
        return point.validation_error, point.validation_risk

    return 100 * min((point for point in cell.points if point.validation_risk <= risk), key=preference).test_error


def _difference(errors: Sequence[float], others: Sequence[float]) -> tuple[str, float]:
    import numpy as np

    apart = np.array(errors) - np.array(others)
    low, high = interval(apart)
    return f"{apart.mean():+.1f} [{low:+.1f}, {high:+.1f}]", float(apart.mean())
