# SPDX-License-Identifier: Apache-2.0
"""Test data through the same recoding: a view of what ``classic_methods`` kept, and of the five models on Adult.

Goldsteen et al. anonymize training data only and ask whether it would help to send test data through the same
transformations. Both studies tested every model both ways; nothing is run here.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean as average
from typing import Any

from studies.methods import METHODS
from studies.models import MODELS
from studies.rows import Row, mean, n_splits, signed, table, where
from studies.tables import TITLES
from studies.views import View

K = (10, 100, 200, 500, 1000)


def recoded_tests(study: Any, cells: list[Row]) -> View:
    """Show by how much accuracy changes when test records are recoded, too, for every method, table and model."""
    both = [row for row in cells if row.get("transformed") is not None]
    lines = [f"- {sentence}" for sentence in findings(both)]
    lines += ["", "Change of accuracy, in points, from raw to recoded test records.", ""]
    for name, model in dict.fromkeys((row["table"], row["model"]) for row in both):
        own = where(both, table=name, model=model)
        lines += [f"**{TITLES[name]}, {MODELS[model]}** ({n_splits(own)}):"]
        body = [
            [METHODS[method].title, *(signed(gain(own, method=method, k=k)) for k in K)]
            for method in dict.fromkeys(row["method"] for row in own)
        ]
        lines += table(["method", *(f"k = {k}" for k in K)], body)
    return View(lines)


def gain(rows: list[Row], **fixed: Any) -> float:
    """Return how much accuracy recoded test records add."""
    return mean(rows, "transformed", **fixed) - mean(rows, "accuracy", **fixed)


def findings(rows: list[Row]) -> Iterator[str]:
    """Return for whom and when recoding helps."""
    places = list(dict.fromkeys((row["table"], row["model"]) for row in rows))
    for method in dict.fromkeys(row["method"] for row in rows):
        gains = {
            k: [gain(rows, table=name, model=model, method=method, k=k) for name, model in places] for k in (10, 1000)
        }
        every = [gain(rows, table=name, model=model, method=method, k=k) for name, model in places for k in K]
        yield (
            f"{METHODS[method].title}: recoding helps in {sum(value > 0 for value in every)} of {len(every)} rows, by "
            f"{signed(average(every))} points on average; {signed(average(gains[10]))} at k = 10, "
            f"{signed(average(gains[1000]))} at k = 1000."
        )
    from studies.adult_utility import EXPERIMENT

    ours = [row for row in where(EXPERIMENT.cells(), method="ours") if row.get("transformed") is not None]
    for k in (10, 100, 1000):
        shown = ", ".join(
            f"{MODELS[model]} {signed(gain(ours, model=model, k=k, table='adult-12'))}"
            for model in dict.fromkeys(row["model"] for row in ours)
        )
        yield f"Five models on Adult with 12 quasi-identifiers, ours, k = {k}: {shown}."
