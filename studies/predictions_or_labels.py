# SPDX-License-Identifier: Apache-2.0
"""Guided by predictions or by true labels: Goldsteen et al., the earlier version, appendix B, figure 8.

Only the tree on true labels is run here, on the splits of ``classic_methods``, whose cells hold the same tree on the
model's predictions; everything else about the two is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from studies.claims import Evidence
from studies.models import MODELS
from studies.rows import Row, mean, n_splits, one_by_one, signed, table, where
from studies.runner import Experiment
from studies.tables import TITLES
from studies.verdicts import Difference, average, paired
from studies.views import View

OVERLAP = 0.25  # test records per training record: every split is one of 80/20
K, K_OF_NETWORKS = (10, 100, 200, 500, 1000), (10, 100, 1000)
SPLITS = {
    ("adult-12", "nn"): 3,
    ("lending-club-18", "nn"): 3,
    ("adult-12", "hgb"): 5,
    ("lending-club-18", "hgb"): 5,
    ("adult-8", "dt"): 5,
}
"""Tables and models, and how many splits of the other study each is compared on."""


def keys() -> Iterator[Row]:
    """List the cells."""
    for (name, model), n in SPLITS.items():
        for seed in range(n):
            for k in K_OF_NETWORKS if model == "nn" else K:
                yield {"table": name, "model": model, "seed": seed, "k": k}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Anonymize with the paper's tree on true labels, train and test.

    `n_records` in the key, where there is one, limits the records: for trying out.
    """
    from studies.accuracy import deal
    from studies.models import make_model
    from studies.tables import load

    own = load(key["table"])
    own = replace(own, X=own.X[: key.get("n_records")], y=own.y[: key.get("n_records")])
    dealt = deal(own, key["seed"])
    records, n_groups = by_labels(own, dealt, key["k"])
    fitted = make_model(key["model"], key["seed"], own.X).fit(records, dealt.y_train)
    return {"accuracy": round(100 * float(fitted.score(dealt.X_test, dealt.y_test)), 3), "n_groups": n_groups}


def by_labels(table: Any, dealt: Any, k: int) -> tuple[Any, int]:
    """Return what the paper's method makes of the training records with true labels in the place of predictions."""
    from studies.methods import METHODS

    anonymizer = METHODS["paper"].make(k, table.quasi_identifiers)
    if not table.has_paper_split:
        return anonymizer.fit_transform(dealt.X_train, dealt.y_train), int(anonymizer.n_groups_)
    anonymizer.fit(dealt.X_tree, dealt.y_tree)
    return anonymizer.release(dealt.X_train, dealt.y_train), int(anonymizer.n_groups_)


def differences(cells: list[Row]) -> dict[tuple[str, str], list[tuple[int, float, float]]]:
    """Return for every table and model k, the accuracy with predictions and with labels, on the same splits."""
    from studies.classic_methods import EXPERIMENT as CLASSIC

    predictions = where(CLASSIC.cells(), method="paper")
    found: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for name, model in SPLITS:
        own = where(cells, table=name, model=model)
        seeds = tuple({row["seed"] for row in own})
        for k in sorted({row["k"] for row in own}):
            beside = mean(predictions, "accuracy", table=name, model=model, k=k, seed=seeds)
            found.setdefault((name, model), []).append((k, beside, mean(own, "accuracy", k=k)))
    return found


def figure(study: Any, cells: list[Row]) -> View:
    """Show both guides beside each other."""
    lines: list[str] = []
    for (name, model), own in differences(cells).items():
        splits = n_splits(cells, table=name, model=model)
        lines += [f"**{TITLES[name]}, {MODELS[model]}** ({splits}):"]
        body = [
            ["predictions", *(f"{a:.2f}" for _, a, _ in own)],
            ["true labels", *(f"{b:.2f}" for _, _, b in own)],
            ["difference", *(signed(a - b) for _, a, b in own)],
        ]
        lines += table(["guided by", *(f"k = {k}" for k, _, _ in own)], body)
    return View(lines)


def evidence(cells: list[Row]) -> dict[str, Evidence]:
    """Return how far predictions lie above labels on Adult, split by split.

    Not on loans: their networks hardly differ from always answering the larger class.
    """
    from studies.classic_methods import EXPERIMENT as CLASSIC

    predictions = {
        (row["table"], row["model"], row["k"], row["seed"]): row["accuracy"]
        for row in where(CLASSIC.cells(), method="paper")
    }
    ahead: dict[tuple[str, str, int], list[float]] = {}
    for row in (row for row in cells if row["table"].startswith("adult")):
        place = row["table"], row["model"], row["k"]
        ahead.setdefault(place, []).append(predictions[*place, row["seed"]] - row["accuracy"])
    found = {
        place: paired(f"{TITLES[place[0]]}, {MODELS[place[1]]}, k = {place[2]}", values, overlap=OVERLAP)
        for place, values in ahead.items()
    }
    gains = {
        model: average([one for (_, own, k), one in found.items() if own == model and k in K_OF_NETWORKS])
        for model in ("nn", "hgb", "dt")
    }
    told = ", ".join(f"{MODELS[model]} {signed(gain.estimate)}" for model, gain in gains.items())
    return {
        "labels-lower-in-some-cases": Evidence(list(found.values())),
        "labels-lower-with-networks": Evidence(
            [_more("networks and trees", gains["nn"], gains["dt"])],
            f"what predictions gain, mean over k = {', '.join(map(str, K_OF_NETWORKS))}: {told}",
        ),
    }


def _more(told: str, one: Difference, other: Difference) -> Difference:
    """Return how far one gain lies above another, on the splits that both have."""
    apart = [own - rival for own, rival in zip(one.values, other.values, strict=False)]
    return paired(told, apart, overlap=max(one.overlap, other.overlap))


EXPERIMENT = Experiment(
    name="predictions_or_labels",
    by=("table", "model", "seed", "k"),
    keys=tuple(keys()),
    run=one_by_one(run),
    together=("table", "model", "seed"),
    titles={**TITLES, **MODELS},
    views={"figure": figure},
    evidence=evidence,
)
