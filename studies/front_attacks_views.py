# SPDX-License-Identifier: Apache-2.0
"""The tables and drawings of ``front_attacks``, of the first split: the fronts of others have other places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.charts import Panel, Style, draw
from studies.front_attacks import CERTAINTIES, SEED
from studies.rows import Row, table, where
from studies.views import COLOURS, MARKS, View


def _settings(row: Row) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in row["parameters"].items())


def _opening(row: Row) -> list[str]:
    return [_settings(row), str(row["n_buckets"]), f"{row['classifier_error']:.3f}"]


HEADER = ["generalization", "buckets", "classifier error"]


def certainty(study: Any, cells: list[Row]) -> View:
    """Show the error of the surest guesses, by how many of them count."""
    shares = [f"{share:g}" for share in CERTAINTIES]
    body = [
        [*_opening(row), *(f"{row['error_of'][share]:.3f}" for share in shares), f"{row['naive_error']:.3f}"]
        for row in cells
    ]
    header = [*HEADER, *(f"surest {100 * float(share):g}%" for share in shares), "most frequent value"]
    names = {share: f"surest {100 * float(share):g}%" for share in shares}
    return View(table(header, body), _drawing(study, cells, "Error of the surest guesses, %", names))


def knowledge(study: Any, cells: list[Row]) -> View:
    """Show the error of attackers who know more and more."""
    attacks = ("A1", "A3", "A5", "A4")
    body = [
        [*_opening(row), *(f"{row['error_of'][attack]:.3f}" for attack in attacks), f"{row['naive_error']:.3f}"]
        for row in cells
    ]
    header = [*HEADER, *attacks, "most frequent value"]
    names = dict(zip(attacks, attacks, strict=True))
    return View(table(header, body), _drawing(study, cells, "Error of reconstruction, %", names))


def attributes(study: Any, cells: list[Row]) -> View:
    """Show the error of reconstructing every attribute, along the front."""
    cells = where(cells, seed=SEED)
    names = list(cells[0]["error_of"])
    body = [
        [*_opening(row), f"{row['error']:.3f}", *(f"{row['error_of'][name]:.3f}" for name in names)] for row in cells
    ]
    naive = cells[0]["naive_error_of"]
    body.append(["most frequent value", "", "", f"{cells[0]['naive_error']:.3f}", *(f"{naive[n]:.3f}" for n in names)])
    few = sorted(names, key=lambda name: -naive[name])[: len(COLOURS)]
    title = "Error by attribute, %" if len(few) == len(names) else "Error by attribute, the hardest ones, %"
    return View(table([*HEADER, "mean", *names], body), _drawing(study, cells, title, {name: name for name in few}))


def buckets(study: Any, cells: list[Row]) -> View:
    """Show into how many buckets every attribute falls."""
    row = where(cells, seed=SEED)[0]
    body = [
        [
            *(name, str(n), str(row["values_of"][name]), f"{100 * n / row['values_of'][name]:.0f}%"),
            *(f"{row[what][name]:.3f}" if name in row[what] else "" for what in ("error_of", "naive_error_of")),
        ]
        for name, n in row["buckets_of"].items()
    ]
    header = ["attribute", "buckets", "values", "share", "attacker's error", "most frequent value"]
    summary = (
        f"Classifier error {row['classifier_error']:.3f}, with all values {row['full_error']:.3f}. Mean error of the "
        f"attacker {row['error']:.3f}; always the most frequent value: {row['naive_error']:.3f}."
    )
    return View([summary, *table(header, body)])


def selection(study: Any, cells: list[Row]) -> View:
    """Show utility and risk for every number of features and every statistic."""
    cells = where(cells, seed=SEED)
    numbers = [point["n_attributes"] for point in cells[0]["points"]]
    body = [
        [row["variant"].replace("_", " "),
         *(f"{point['classifier_error']:.3f} / {point['error']:.3f}" for point in row["points"])]
        for row in cells
    ]  # fmt: skip
    return View(
        ["Classifier error / attacker's error.", *table(["statistic", *(f"{n} features" for n in numbers)], body)]
    )


def _drawing(study: Any, cells: list[Row], title: str, names: Mapping[str, str]) -> dict[str, str]:
    """Draw errors, by their names in the cells and in the picture, from the most accurate place of the front on."""
    lines = {
        words: [(place, 100 * row["error_of"][name]) for place, row in enumerate(cells, start=1)]
        for name, words in names.items()
    }
    lines["classifier"] = [(place, 100 * row["classifier_error"]) for place, row in enumerate(cells, start=1)]
    styles = {words: Style(COLOURS[i], MARKS[i % len(MARKS)], 1.8) for i, words in enumerate(names.values())}
    styles["classifier"] = Style("#1f2328", "", 1.2, "6 3")
    panel = Panel(title, lines, {}, axis="place on the front, from accurate to private")
    return {f"{study.name}.svg": draw([panel], styles, columns=1, label=study.title)}
