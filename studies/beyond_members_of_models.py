# SPDX-License-Identifier: Apache-2.0
"""Who trained the model: membership attacks on models that learned from regions, for several floors.

A model is trained on 4,000 people of Adult, and attackers say who they were among 8,000. They train 64 models of the
same kind themselves, protection and draws included. Beside regions stand raw records and points.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from studies.models import MODELS, make_model
from studies.rates import Rate
from studies.rows import Row, documents, found, how_it_was_run, one_by_one, table, where
from studies.runner import Experiment
from studies.tables import load

TABLE, N_PEOPLE, N_SHADOWS = "adult-12", 8_000, 64
ATTACKS = {"lira": "LiRA", "rmia": "RMIA", "threshold": "loss threshold"}
VICTIMS = ("rf", "hgb")
FLOORS = {10: (1, 3, 5, 10), 100: (1, 3, 5, 20, 50)}
DEFAULT = {10: 10, 100: 20}
SEEDS = (0, 1, 2, 3, 4)
REDUCTIONS = (
    f"Of Adult {N_PEOPLE:,} people are drawn for each split, 12 columns, all quasi-identifiers; half of them train the "
    "model. Smaller tables are easier to attack than the whole one.",
    f"{N_SHADOWS} shadow models for LiRA and RMIA, each an `AnonymizedClassifier` of its own: guide, groups, draws and "
    "model. Intervals: 95%, Wilson, over all splits.",
)


def keys() -> Iterator[Row]:
    """List the cells; a floor of 0 is none."""
    for seed in SEEDS:
        for model in VICTIMS:
            own = {"model": model, "seed": seed}
            yield {**own, "learned": "raw", "k": 0, "floor": 0}
            for k, floors in FLOORS.items():
                yield {**own, "learned": "points", "k": k, "floor": 0}
                yield from ({**own, "learned": "regions", "k": k, "floor": floor} for floor in floors)


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Train a model on half of some people, and attack it.

    `n_people` and `n_shadows` in the key, where they are, take the place of those of the study: for trying out.
    """
    import numpy as np

    from sfumato import AnonymizedClassifier
    from studies.attacked_halves import attack_on_half

    data = load(TABLE)
    rows = np.random.default_rng([key["seed"], 1]).permutation(len(data.y))[: key.get("n_people", N_PEOPLE)]
    X, y = data.X.iloc[rows].reset_index(drop=True), data.y[rows]
    estimator = make_model(key["model"], 0, X)
    if key["learned"] != "raw":
        estimator = AnonymizedClassifier(
            estimator, k=key["k"], learn_from=key["learned"], floor=key["floor"] or None, random_state=0
        )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        victim = attack_on_half(
            X, y, estimator,
            attacks=tuple(ATTACKS), n_shadows=key.get("n_shadows", N_SHADOWS), seed=key["seed"], cache=folder,
        )  # fmt: skip
    return {
        "accuracy": victim.accuracy,
        "n_judged": victim.n_train + victim.n_test,
        **{name: result.rate for name, result in victim.membership.items()},
        **{f"{name}_auc": result.details["auc"] for name, result in victim.membership.items()},
        **{
            f"{name}_sure": result.details["true_positives_at"]["0.001"]["rate"]
            for name, result in victim.membership.items()
        },
    }


def _settings(rows: list[Row]) -> Iterator[tuple[str, str, int, int, list[Row]]]:
    """Yield the model, what it learned from, k and floor, with the cells of all splits."""
    seen = []
    for key in KEYS:
        own = tuple(key[name] for name in ("model", "learned", "k", "floor"))
        if own not in seen:
            seen.append(own)
            of_all = where(rows, **dict(zip(("model", "learned", "k", "floor"), own, strict=True)))
            if of_all:
                yield (*own, of_all)


def _words(learned: str, k: int, floor: int) -> str:
    if learned == "raw":
        return "raw records"
    if learned == "points":
        return f"points, k = {k}"
    words = f"regions, k = {k}, floor {floor}"
    return f"**{words}**" if floor == DEFAULT[k] else words


def page(rows: list[Row]) -> str:
    """Write the table and what it says."""
    lines = [
        "# Who trained the model",
        "",
        "A model tells something about the people it was trained on. Attackers who know 8,000 people and their classes",
        "say which half of them trained it: by models of their own (LiRA, RMIA), or by how sure the model is (loss",
        "threshold). How often they are right, in %, where guessing gives 50. Bold: the default.",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
        "## Every setting",
    ]
    header = ["model", "learned from", *ATTACKS.values(), "accuracy on other people"]
    lines += table(header, [
        [MODELS[model], _words(learned, k, floor), *(str(_rate(own, name)) for name in ATTACKS),
         f"{100 * sum(row['accuracy'] for row in own) / len(own):.1f}"]
        for model, learned, k, floor, own in _settings(rows)
    ], n_words=2)  # fmt: skip
    lines += how_it_was_run(rows, "beyond-members-of-models", REDUCTIONS)
    return "\n".join(lines) + "\n"


def _rate(rows: list[Row], attack: str) -> Rate:
    return Rate.of([(row[attack], row["n_judged"]) for row in rows])


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for k, floor in DEFAULT.items():
        for model in VICTIMS:
            own, points = (
                where(rows, model=model, k=k, **more)
                for more in ({"learned": "regions", "floor": floor}, {"learned": "points"})
            )
            best = max(ATTACKS, key=lambda name: _rate(own, name).rate)
            beside = max(ATTACKS, key=lambda name: _rate(points, name).rate)
            yield (
                f"The default at k = {k}, {MODELS[model]}: the strongest attack, {ATTACKS[best]}, is right in "
                f"{_rate(own, best)}% of the cases; from points {ATTACKS[beside]} in {_rate(points, beside)}%."
            )


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_members_of_models",
    by=("model", "seed", "learned", "k", "floor"),
    keys=KEYS,
    run=one_by_one(run),
    together=("model", "learned", "k"),
    views={"found": found(KEYS, findings)},
    documents=documents("beyond-members-of-models", KEYS, page, lambda rows: {}),
)
