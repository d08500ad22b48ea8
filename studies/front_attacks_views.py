# SPDX-License-Identifier: Apache-2.0
"""The tables and drawings of ``front_attacks``, and what the paper says about them, judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from studies.charts import Panel, Style, draw
from studies.claims import HELD, NOT_HELD, Claim
from studies.front_attacks import CERTAINTIES
from studies.rows import Row, table, where
from studies.views import COLOURS, MARKS, View

CLOSE = 0.01
"""Errors that differ by no more than this count as equal; chosen when one place of each front had been seen."""


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
    row = cells[0]
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


def claims(cells: list[Row]) -> Iterator[Claim]:
    """Judge the paper's words about the figures that were run."""
    yield from _claims_on_certainty(where(cells, figure="5"))
    yield from _claims_on_knowledge(where(cells, figure="6"))
    yield from _claims_on_attributes(where(cells, figure=("7", "14")))
    yield from _claims_on_buckets(where(cells, figure="9"))
    yield from _claims_on_selection(where(cells, figure="12"))


def _claims_on_certainty(rows: list[Row]) -> Iterator[Claim]:
    if not rows:
        return
    falls = [row["error_of"]["1"] - row["error_of"]["0.1"] for row in rows]
    n = sum(fall > CLOSE for fall in falls)
    yield Claim(
        "Figure 5: the error falls significantly for more confident attackers (held: for the surest tenth by more than "
        "0.01 on every generalization of the front)",
        HELD if n == len(rows) else NOT_HELD,
        f"falls by {' / '.join(f'{fall:.3f}' for fall in falls)}",
    )


def _claims_on_knowledge(rows: list[Row]) -> Iterator[Claim]:
    if len(rows) < 2:
        return
    errors = [row["error_of"] for row in rows]
    between = sum(own["A4"] - CLOSE <= own["A5"] <= own["A3"] + CLOSE for own in errors)
    shown = " / ".join(f"{own['A3']:.3f}, {own['A5']:.3f}, {own['A4']:.3f}" for own in errors)
    yield Claim(
        "Figure 6: A5 lies between A3 and A4 (within 0.01)",
        HELD if between == len(rows) else NOT_HELD,
        f"A3, A5, A4: {shown}",
    )
    gaps = [own["A3"] - own["A4"] for own in errors]
    low, high = gaps[0], float(np.mean(gaps[1:]))
    yield Claim(
        "Figure 6: the differences are smaller where the classifier's error is low (held: A3 - A4 of the finest "
        "generalization below the mean of the others)",
        HELD if low < high else NOT_HELD,
        f"{low:.3f} with the finest, {high:.3f} with the others",
    )
    left = [own["A4"] for own in errors]
    yield Claim(
        "Figure 6: a generalized attribute is hard to reconstruct even when all others are known (held: A4's error "
        "above 0.1 everywhere)",
        HELD if min(left) > 0.1 else NOT_HELD,
        f"A4: {' / '.join(f'{value:.3f}' for value in left)}",
    )


def _claims_on_attributes(rows: list[Row]) -> Iterator[Claim]:
    for figure in ("7", "14"):
        own = where(rows, figure=figure)
        if not own:
            continue
        finest, others = own[0], own[1:]
        names = list(finest["error_of"])
        better = [n for n in names if any(r["naive_error_of"][n] - r["error_of"][n] > CLOSE for r in others)]
        late = [n for n in names if n not in better]
        yield Claim(
            f"Figure {figure}: for many attributes the attacker beats the most frequent value only with the finest "
            "generalizations (held: for at least half of them, by no more than 0.01 with any but the finest here)",
            HELD if 2 * len(late) >= len(names) else NOT_HELD,
            f"{len(late)} of {len(names)} attributes: {', '.join(late) or 'none'}",
        )


def _claims_on_buckets(rows: list[Row]) -> Iterator[Claim]:
    for row in rows:
        gone = [name for name, n in row["buckets_of"].items() if n == 1]
        yield Claim(
            "Figure 9: 10 of 16 attributes need not be collected at all (held: at least 10)",
            HELD if len(gone) >= 10 else NOT_HELD,
            f"{len(gone)} of {len(row['buckets_of'])}; {row['n_buckets']} buckets in all, the paper's 34",
        )
        rise = row["classifier_error"] - row["full_error"]
        yield Claim(
            "Figure 9: the classifier's error rises by only 0.01 (held: by at most 0.015)",
            HELD if rise <= 0.015 else NOT_HELD,
            f"by {rise:.3f}; the attacker's error is {row['error']:.3f} of at most {row['naive_error']:.3f}, in the "
            "paper 0.23 of 0.275",
        )
        yield Claim(
            "Figure 9: sex can hardly be reconstructed, error 0.48 (held: within 0.05 of the most frequent value's)",
            HELD if row["naive_error_of"]["SEX"] - row["error_of"]["SEX"] <= 0.05 else NOT_HELD,
            f"{row['error_of']['SEX']:.3f}, always the most frequent value {row['naive_error_of']['SEX']:.3f}",
        )


def _claims_on_selection(rows: list[Row]) -> Iterator[Claim]:
    if len(rows) < 2:
        return
    areas = {row["variant"]: _area(row["points"]) for row in rows}
    best = max(areas.values())
    yield Claim(
        "Figure 12: features selected by mutual information and chi squared do worse than by ANOVA (held: both areas "
        "under the front smaller)",
        HELD if areas["anova"] == best and sum(area == best for area in areas.values()) == 1 else NOT_HELD,
        ", ".join(f"{name.replace('_', ' ')} {area:.3f}" for name, area in areas.items()),
    )


def _area(points: list[Row]) -> float:
    """Return the area of (accuracy, attacker's error) that some number of features reaches."""
    order = sorted(points, key=lambda point: -point["error"])
    area, reached = 0.0, 0.0
    for i, point in enumerate(order):
        reached = max(reached, 1 - point["classifier_error"])
        following = order[i + 1]["error"] if i + 1 < len(order) else 0.0
        area += reached * (point["error"] - following)
    return area
