# SPDX-License-Identifier: Apache-2.0
"""Single figures of the minimizers' study; ``minimizers_page`` has the whole comparison."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from studies.minimization_tasks import TITLES
from studies.minimizers import Cell
from studies.minimizers_claims import Found
from studies.minimizers_keys import MINIMIZERS, SHORT
from studies.minimizers_page import pictures
from studies.views import View

AREA = "Area between the front and the limits, from 0 to 1: the more, the better the tradeoff."


def fronts(study: Any, cells: Sequence[Cell]) -> View:
    """Show the area under every minimizer's front, mean over seeds, and the fronts of the first seed."""
    found = Found(cells)
    names = [name for name in MINIMIZERS if any(cell.minimizer == name for cell in cells)]
    lines = [
        AREA,
        "",
        f"| | {' | '.join(SHORT[name] for name in names)} |",
        f"| --- |{' ---: |' * len(names)}",
    ]
    for table in dict.fromkeys(cell.table for cell in cells):
        areas = [found.areas(table, name) for name in names]
        lines.append(f"| {TITLES[table]} | {' | '.join(f'{mean(own):.3f}' if own else '' for own in areas)} |")
    return View([*lines, ""], pictures(found))


def seeds(study: Any, cells: Sequence[Cell]) -> View:
    """Show the area under every minimizer's front with every seed."""
    found = Found(cells)
    numbers = sorted({cell.seed for cell in cells})
    lines = [
        AREA,
        "",
        f"| | {' | '.join(f'seed {seed}' for seed in numbers)} |",
        f"| --- |{' ---: |' * len(numbers)}",
    ]
    for name in MINIMIZERS:
        own = {cell.seed: f"{found.area(cell):.3f}" for cell in cells if cell.minimizer == name}
        lines.append(f"| {SHORT[name]} | {' | '.join(own.get(seed, '') for seed in numbers)} |")
    return View([*lines, ""])


def variants(study: Any, cells: Sequence[Cell]) -> View:
    """Show the area under the front of every variant, mean over seeds, and the fronts of the first seed."""
    found = Found(cells)
    lines = [
        AREA,
        "",
        "| experiment | table | minimizer | variant | records learned from | area | seeds |",
        "| --- | --- | --- | --- | ---: | ---: | ---: |",
    ]
    places: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        places.setdefault((cell.figure, cell.table, cell.minimizer, cell.variant), []).append(cell)
    for (figure, table, minimizer, variant), own in places.items():
        area = mean(found.area(cell) for cell in own)
        n_learned = max(cell.n_learned for cell in own)
        lines.append(
            f"| {figure} | {TITLES[table]} | {SHORT[minimizer]} | {variant} | {n_learned:,} | {area:.3f} | {len(own)} |"
        )
    return View([*lines, ""], pictures(found))
