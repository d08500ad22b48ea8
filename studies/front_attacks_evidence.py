# SPDX-License-Identifier: Apache-2.0
"""What the cells of ``front_attacks`` say about the paper's sentences on figures 5, 6, 7, 9, 12 and 14.

Several splits (figures 7, 9, 12 and 14): differences split by split. One split (figures 5 and 6): errors have the
standard error of the test records (`N_TEST`), and the mean error over attributes is taken to be as unsure as that of
one attribute, because attributes of a record go together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.claims import Evidence
from studies.front_attacks import FRONTS, SEED, about, front_point
from studies.minimization_tasks import MEASURED
from studies.rows import Row, where
from studies.verdicts import Difference, counted, paired, share_error

N_TEST = MEASURED[2]
OVERLAP = 0.5
"""Test records per training record, 30% and 60% of a table."""
CLOSE = 0.01
"""By how much an attacker must beat the most frequent value to count as better."""
SUREST = "0.1"
NOTICEABLE = 0.1
"""Error of an attacker who knows everything else, from which on he counts as hindered."""
N_GONE, RISE = 10, 0.01
"""Of figure 9, as in the paper: attributes that need not be collected, and what the classifier loses."""


def evidence(cells: list[Row]) -> dict[str, Evidence]:
    """Return the differences of every claim, or refuse cells about other generalizations than those on the fronts."""
    for cell in cells:
        if cell["figure"] in FRONTS and (own := about(front_point(cell))) != {name: cell[name] for name in own}:
            raise ValueError(
                f"figure {cell['figure']}, {cell['variant']}, seed {cell['seed']}: another generalization than on the "
                "kept front. Delete the cell and run the study again."
            )
    return {
        **_on_certainty(where(cells, figure="5")),
        **_on_knowledge(where(cells, figure="6")),
        "attributes-only-in-low-error": _on_attributes(where(cells, figure="7")),
        "same-trends": _on_attributes(where(cells, figure="14")),
        **_on_buckets(where(cells, figure="9"), where(cells, figure="14", seed=SEED)),
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
    late_of = []
    for own in _by_split(rows):
        better = [n for n in names if any(row["naive_error_of"][n] - row["error_of"][n] > CLOSE for row in own[1:])]
        late_of.append([name for name in names if name not in better])
    found = paired("all attributes", [len(late) / len(names) - 0.5 for late in late_of], overlap=OVERLAP)
    shares = ", ".join(str(len(late)) for late in late_of)
    first = ", ".join(late_of[0]) or "none"
    return Evidence([found], f"{shares} of {len(names)} attributes; in the first split: {first}")


def _on_buckets(rows: list[Row], front: list[Row]) -> dict[str, Evidence]:
    def told(values: Sequence[float], form: str = ".3f") -> str:
        return ", ".join(format(value, form) for value in values)

    gone = [sum(n == 1 for n in row["buckets_of"].values()) for row in rows]
    buckets = told([row["n_buckets"] for row in rows], "d")
    rises = [row["classifier_error"] - row["full_error"] for row in rows]
    sex, naive = ([row[what]["SEX"] for row in rows] for what in ("error_of", "naive_error_of"))
    return {
        "not-collected": Evidence(
            [paired("attributes", [n - N_GONE for n in gone], overlap=OVERLAP)],
            f"{told(gone, 'd')} of {len(rows[0]['buckets_of'])}; {buckets} buckets in all, the paper's 34",
        ),
        "error-rises-little": Evidence(
            [paired("classifier", [RISE - rise for rise in rises], overlap=OVERLAP)],
            f"by {told(rises)}; the attacker's error is {told([row['error'] for row in rows])} of at most "
            f"{told([row['naive_error'] for row in rows])}, in the paper 0.23 of 0.275; {_finer(rows, front)}",
        ),
        "sex-nearly-random": Evidence(
            [paired("SEX", [own - most for own, most in zip(sex, naive, strict=True)], overlap=OVERLAP)],
            f"error {told(sex)}, always the most frequent value {told(naive)}",
        ),
    }


def _finer(rows: list[Row], front: list[Row]) -> str:
    """Return what a rise like the paper's costs here: the least telling place of the front that has one."""
    [first] = where(rows, seed=SEED)
    rises = [(row, row["classifier_error"] - first["full_error"]) for row in front]
    row, rise = max((own for own in rises if own[1] <= RISE), key=lambda own: own[0]["error"])
    settings = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in row["parameters"].items())
    return (
        f"tried out with other settings ({settings}, {row['n_buckets']} buckets) the error rises by {rise:.3f}, and "
        f"the attacker's is {row['error']:.3f}"
    )


def _on_selection(rows: list[Row]) -> dict[str, Evidence]:
    of_statistic = {name: where(rows, variant=name) for name in dict.fromkeys(row["variant"] for row in rows)}
    areas = {name: [_area(row["points"], _limits(row["seed"])) for row in own] for name, own in of_statistic.items()}
    found = [
        paired(name.replace("_", " "), np.subtract(areas["anova"], own).tolist(), overlap=OVERLAP)
        for name, own in areas.items()
        if name != "anova"
    ]
    told = ", ".join(f"{name.replace('_', ' ')} {np.mean(own):.3f}" for name, own in areas.items())
    points = [[row["points"] for row in own] for name, own in of_statistic.items() if name != "anova"]
    if all(own == points[0] for own in points):
        told += "; the others chose the same features in every split, so that this is one comparison"
    return {"anova-better": Evidence(found, f"areas: {told}")}


def _by_split(rows: list[Row]) -> list[list[Row]]:
    return [where(rows, seed=seed) for seed in sorted({row["seed"] for row in rows})]


def _limits(seed: int) -> tuple[Any, Any]:
    """Return what nothing and everything generalized cost on the table of figure 12, from the kept fronts."""
    from studies.front_attackers import kept_sweep

    nothing, everything = kept_sweep("acs_income", "FeatureSelectionMinimizer", seed).points[:2]
    return nothing, everything


def _area(points: list[Row], limits: tuple[Any, Any]) -> float:
    """Return the area under the front as elsewhere: the share of the rectangle between the limits that it beats."""
    from sfumato.minimize.sweep_result import hypervolume

    nothing, everything = limits
    costs = np.array([(point["classifier_error"], 1 - point["error"]) for point in points])
    ideal = np.array([nothing.test_error, everything.test_risk])
    worst = np.array([everything.test_error, nothing.test_risk])
    return hypervolume(costs, ideal, worst)
