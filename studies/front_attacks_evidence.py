# SPDX-License-Identifier: Apache-2.0
"""What the cells of ``front_attacks`` say about the paper's sentences on figures 5, 6, 7, 9, 12 and 14.

One split: errors have the standard error of the test records (`N_TEST`). The mean error over attributes is taken to be
as unsure as that of one attribute, because attributes of a record go together.
"""

from __future__ import annotations

import math

import numpy as np

from studies.claims import Evidence
from studies.minimization_tasks import MEASURED
from studies.rows import Row, where
from studies.verdicts import Difference, counted, paired, share_error

N_TEST = MEASURED[2]
CLOSE = 0.01
"""By how much an attacker must beat the most frequent value to count as better."""
SUREST = "0.1"
NOTICEABLE = 0.1
"""Error of an attacker who knows everything else, from which on he counts as hindered."""
N_GONE, RISE = 10, 0.01
"""Of figure 9, as in the paper: attributes that need not be collected, and what the classifier loses."""


def evidence(cells: list[Row]) -> dict[str, Evidence]:
    """Return the differences of every claim."""
    return {
        **_on_certainty(where(cells, figure="5")),
        **_on_knowledge(where(cells, figure="6")),
        "attributes-only-in-low-error": _on_attributes(where(cells, figure="7")),
        "same-trends": _on_attributes(where(cells, figure="14")),
        **_on_buckets(where(cells, figure="9")),
        **_on_selection(where(cells, figure="12")),
    }


def _apart(told: str, more: float, less: float, n_less: float = N_TEST) -> Difference:
    return counted(told, more - less, math.hypot(share_error(more, N_TEST), share_error(less, n_less)))


def _place(number: int) -> str:
    return f"place {number} of the front"


def _on_certainty(rows: list[Row]) -> dict[str, Evidence]:
    found = [
        _apart(_place(place), row["error_of"]["1"], row["error_of"][SUREST], float(SUREST) * N_TEST)
        for place, row in enumerate(rows, start=1)
    ]
    return {"surest-guesses": Evidence(found)}


def _on_knowledge(rows: list[Row]) -> dict[str, Evidence]:
    errors = [row["error_of"] for row in rows]
    between = [
        _apart(f"{_place(place)}, {words}", own[more], own[less])
        for place, own in enumerate(errors, start=1)
        for more, less, words in (("A3", "A5", "A3 above A5"), ("A5", "A4", "A5 above A4"))
    ]
    gaps = [own["A3"] - own["A4"] for own in errors]
    spread = [math.hypot(share_error(own["A3"], N_TEST), share_error(own["A4"], N_TEST)) for own in errors]
    closer = counted(
        "finest and others", float(np.mean(gaps[1:])) - gaps[0], math.hypot(spread[0], float(np.mean(spread[1:])))
    )
    hindered = [
        counted(_place(place), own["A4"] - NOTICEABLE, share_error(own["A4"], N_TEST))
        for place, own in enumerate(errors, start=1)
    ]
    shown = " / ".join(f"{own['A3']:.3f}, {own['A5']:.3f}, {own['A4']:.3f}" for own in errors)
    return {
        "partial-knowledge-between": Evidence(between, f"A3, A5, A4: {shown}"),
        "closer-in-low-error": Evidence([closer], f"A3 - A4: {' / '.join(f'{gap:.3f}' for gap in gaps)}"),
        "still-hinders": Evidence(hindered, "A4: " + " / ".join(f"{own['A4']:.3f}" for own in errors)),
    }


def _on_attributes(rows: list[Row]) -> Evidence:
    """Return by how much the share of attributes that are safe but for the finest place exceeds one half."""
    names = list(rows[0]["error_of"])
    better = [n for n in names if any(row["naive_error_of"][n] - row["error_of"][n] > CLOSE for row in rows[1:])]
    late = [name for name in names if name not in better]
    found = paired("one split", [len(late) / len(names) - 0.5], overlap=0.5)
    return Evidence([found], f"{len(late)} of {len(names)} attributes: {', '.join(late) or 'none'}")


def _on_buckets(rows: list[Row]) -> dict[str, Evidence]:
    [row] = rows
    gone = [name for name, n in row["buckets_of"].items() if n == 1]
    rise = _apart("classifier", row["classifier_error"], row["full_error"])
    sex = _apart("SEX", row["error_of"]["SEX"], row["naive_error_of"]["SEX"])
    return {
        "not-collected": Evidence(
            [paired("one split", [len(gone) - N_GONE], overlap=0.5)],
            f"{len(gone)} of {len(row['buckets_of'])}; {row['n_buckets']} buckets in all, the paper's 34",
        ),
        "error-rises-little": Evidence(
            [counted("classifier", RISE - rise.estimate, rise.error)],
            f"by {rise.estimate:.3f}; the attacker's error is {row['error']:.3f} of at most {row['naive_error']:.3f}, "
            "in the paper 0.23 of 0.275",
        ),
        "sex-nearly-random": Evidence(
            [sex],
            f"error {row['error_of']['SEX']:.3f}, always the most frequent value {row['naive_error_of']['SEX']:.3f}",
        ),
    }


def _on_selection(rows: list[Row]) -> dict[str, Evidence]:
    areas = {row["variant"]: _area(row["points"]) for row in rows}
    found = [
        paired(name.replace("_", " "), [areas["anova"] - area], overlap=0.5)
        for name, area in areas.items()
        if name != "anova"
    ]
    told = ", ".join(f"{name.replace('_', ' ')} {area:.3f}" for name, area in areas.items())
    return {"anova-better": Evidence(found, f"areas: {told}")}


def _area(points: list[Row]) -> float:
    """Return the area of (accuracy, attacker's error) that some number of features reaches."""
    order = sorted(points, key=lambda point: -point["error"])
    area, reached = 0.0, 0.0
    for i, point in enumerate(order):
        reached = max(reached, 1 - point["classifier_error"])
        following = order[i + 1]["error"] if i + 1 < len(order) else 0.0
        area += reached * (point["error"] - following)
    return area
