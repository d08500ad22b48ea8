# SPDX-License-Identifier: Apache-2.0
"""Who trained the model: membership attacks on models that learned from regions, for several floors.

A model is trained on 4,000 people of Adult, and attackers say who they were among 8,000. They train 64 models of the
same kind themselves, protection and draws included. Beside regions stand raw records and points.

The rule for the default, written down when floor 20 at k = 10 had been run on two draws (forest) and three (boosting)
and before its other draws: the smallest floor for which, with both models, the strongest attack is at most `AIM`, and
no attack is above the same attack on points. It is above them if the interval of the difference of the two rates, added
up over the draws of people that both were run on, lies above 0 (95%, Newcombe, without a correction for the number of
comparisons).
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from studies.models import MODELS, make_model
from studies.rates import Gap, Rate
from studies.rows import Row, documents, found, how_it_was_run, one_by_one, table, where
from studies.runner import Experiment
from studies.tables import load

TABLE, N_PEOPLE, N_SHADOWS = "adult-12", 8_000, 64
ATTACKS = {"lira": "LiRA", "rmia": "RMIA", "threshold": "loss threshold"}
VICTIMS = ("rf", "hgb")
DEFAULT = {10: 20, 100: 50}
#: The most that an attack should reach on the default, by k.
AIM = {10: 0.525, 100: 0.51}
#: The model, what it learned from, k, the floor (0: none), and how many draws of people were attacked.
SETTINGS = (
    ("rf", "points", 10, 0, 5),
    ("rf", "regions", 10, 1, 1),
    ("rf", "regions", 10, 3, 1),
    ("rf", "regions", 10, 5, 1),
    ("rf", "regions", 10, 10, 5),
    ("rf", "regions", 10, 20, 5),
    ("rf", "regions", 10, 50, 2),
    ("rf", "points", 100, 0, 3),
    ("rf", "regions", 100, 20, 5),
    ("rf", "regions", 100, 50, 3),
    ("hgb", "points", 10, 0, 5),
    ("hgb", "regions", 10, 10, 5),
    ("hgb", "regions", 10, 20, 5),
    ("hgb", "regions", 10, 30, 2),
    ("hgb", "regions", 10, 50, 2),
    ("hgb", "points", 100, 0, 5),
    ("hgb", "regions", 100, 5, 1),
    ("hgb", "regions", 100, 20, 5),
    ("hgb", "regions", 100, 50, 5),
    ("hgb", "regions", 100, 100, 2),
)
REDUCTIONS = (
    f"Of Adult {N_PEOPLE:,} people are drawn for each split, 12 columns, all quasi-identifiers; half of them train the "
    "model. Smaller tables are easier to attack than the whole one.",
    f"{N_SHADOWS} shadow models for LiRA and RMIA, each an `AnonymizedClassifier` of its own: guide, groups, draws and "
    "model. Intervals: 95%, Wilson, over all draws of people; of differences Newcombe's.",
    "One to five draws of people, as the table says; fewer for floors beside the default, and not every floor for all.",
    "Floors beside 20 and 50 were attacked, and so was 50 at k = 10, when groups drew values from the cells of their "
    "neighbors, too, whatever their size, and had one weight per column. With a small floor more groups keep to their "
    "cell today.",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for model, learned, k, floor, n_draws in SETTINGS:
        own = {"learned": learned, "k": k, "floor": floor}
        yield from ({"model": model, "seed": seed, **own} for seed in range(n_draws))


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
    """Yield the model, what it learned from, k and floor, with the cells of all draws."""
    for model, learned, k, floor, _ in SETTINGS:
        yield model, learned, k, floor, where(rows, model=model, learned=learned, k=k, floor=floor)


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
        "threshold). How often they are right, in %, where guessing gives 50. Bold: the default. The aim: no attack on",
        "the default above 52.5 at k = 10 and 51 at k = 100, nor above the same attack on points: the 95% interval of",
        "the difference, over the draws of people that both were run on, must not lie above 0.",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
        "## Every setting",
    ]
    header = ["model", "learned from", *ATTACKS.values(), "accuracy on other people", "draws"]
    lines += table(header, [
        [MODELS[model], _words(learned, k, floor), *(str(_rate(own, name)) for name in ATTACKS),
         f"{_accuracy(own):.1f}", str(len(own))]
        for model, learned, k, floor, own in _settings(rows)
    ], n_words=2)  # fmt: skip
    how = how_it_was_run(rows, "beyond-members-of-models", REDUCTIONS)
    lines += [line for line in how if not line.startswith("- Every number is the mean")]  # the table says of how many
    return "\n".join(lines) + "\n"


def _rate(rows: list[Row], attack: str) -> Rate:
    return Rate.of([(row[attack], row["n_judged"]) for row in rows])


def _above_points(rows: list[Row], points: list[Row], attack: str) -> Gap:
    """Return by how much an attack on regions is above that on points, over the draws that both were run on."""
    seeds = {row["seed"] for row in rows} & {row["seed"] for row in points}
    one, other = ([row for row in own if row["seed"] in seeds] for own in (rows, points))
    return Gap.between(_rate(one, attack), _rate(other, attack))


def _strongest(rows: list[Row]) -> str:
    return max(ATTACKS, key=lambda name: _rate(rows, name).rate)


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words, with where the aim is missed."""
    for model, learned, k, floor, own in _settings(rows):
        points = where(rows, model=model, k=k, learned="points")
        if learned != "regions" or floor != DEFAULT[k] or not points:
            continue
        best, beside = _strongest(own), _strongest(points)
        gaps = {name: _above_points(own, points, name) for name in ATTACKS}
        above = [f"**{ATTACKS[name]}** ({gap})" for name, gap in gaps.items() if gap.low > 0]
        rate, aim = _rate(own, best), f"the aim of {100 * AIM[k]:.1f}%"
        judged = f"Above {aim}, but not by more than its interval" if rate.low <= AIM[k] else f"**Above** {aim}"
        if rate.rate <= AIM[k]:
            judged = f"Within {aim}"
        yield (
            f"The default at k = {k}, {MODELS[model]}: the strongest attack, {ATTACKS[best]}, is right in "
            f"{rate}% of the cases; from points {ATTACKS[beside]} in {_rate(points, beside)}%. {judged}. Above the "
            f"same attack on points by more than the interval, in percentage points: {'; '.join(above) or 'no attack'}."
        )
    for model in VICTIMS:
        for k in DEFAULT:
            yield from _bought(rows, model, k)


def _bought(rows: list[Row], model: str, k: int) -> Iterator[str]:
    """Say what each floor buys and costs."""
    own = where(rows, model=model, learned="regions", k=k)
    floors = sorted({row["floor"] for row in own})
    if len(floors) <= 1:
        return
    parts = []
    for floor in floors:
        cells = where(own, floor=floor)
        best = _strongest(cells)
        parts.append(f"{floor}: {ATTACKS[best]} {_rate(cells, best)}%, accuracy {_accuracy(cells):.1f}%")
    yield (
        f"What the floor buys and costs, {MODELS[model]}, k = {k}, the strongest attack and the accuracy on other "
        f"people, over as many draws as the table says: {'; '.join(parts)}."
    )


def _accuracy(rows: list[Row]) -> float:
    return float(100 * sum(row["accuracy"] for row in rows) / len(rows))


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
