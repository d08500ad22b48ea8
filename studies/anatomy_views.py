# SPDX-License-Identifier: Apache-2.0
"""Single figures and tables of the anatomy study; ``anatomy_page`` has the whole comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from studies.anatomy import MODELS, RIVALS, TABLES, Cell
from studies.anatomy_charts import box_plots
from studies.anatomy_page import LEVEL, Errors, boxes_of, paired_tests
from studies.views import View

SHOWN = {"original": "original", "identifying": "identifying", "pruned": "pruned, l = {}", "bucket": "all, l = {}"}
SHOWN |= {rival: f"{rival}, k = {{}}" for rival in RIVALS}


def boxes(study: Any, cells: Sequence[Cell]) -> View:
    """Show mean and spread of the errors over folds, and the box plots of the paper's figure."""
    errors = Errors(cells)
    lines, charts = [], {}
    for model in dict.fromkeys(cell.model for cell in cells):
        lines += [
            "| table | trained on | error, % | standard deviation over folds | records left out |",
            "| --- | --- | ---: | ---: | ---: |",
        ]
        tables = list(dict.fromkeys(cell.table for cell in cells if cell.model == model))
        for table in tables:
            for partner, words in SHOWN.items():
                for length in errors.lengths(table, model, partner):
                    own = errors.of(table, model, partner, length)
                    cell = errors.any_cell(table, model, partner, length)
                    lines.append(
                        f"| {TABLES[table]} | {words.format(length)} | {own.mean():.2f} | {own.std(ddof=1):.2f} | "
                        f"{cell.n_suppressed:,} of {cell.n_train:,} |"
                    )
        drawn = {title: own for title, own in boxes_of(errors, model).items() if title in [TABLES[t] for t in tables]}
        charts[f"{study.name}-{model.replace(' ', '-')}.svg"] = box_plots(drawn, MODELS[model])
        lines.append("")
    return View(lines, charts)


def tests(study: Any, cells: Sequence[Cell]) -> View:
    """Show the t-tests of pruned against original; the paper's marks are pass (P) and fail (F)."""
    errors = Errors(cells)
    lines = [
        "| table | model | l | pruned - original | plain test | corrected test |",
        "| --- | --- | ---: | ---: | --- | --- |",
    ]
    for table, model, _, length in (key for key in errors.cells if key[2] == "pruned"):
        pruned, original = errors.of(table, model, "pruned", length), errors.of(table, model, "original")
        told = [f"{'P' if p < LEVEL else 'F'} (p = {p:.3f})" for p in paired_tests(pruned, original)]
        gap = float((pruned - original).mean())
        lines.append(f"| {TABLES[table]} | {MODELS[model]} | {length} | {gap:+.2f} | {' | '.join(told)} |")
    return View([*lines, ""])
