# SPDX-License-Identifier: Apache-2.0
"""The table on the front page: what every protection keeps of a model's accuracy on Adult, and what an attacker gets.

The same random forest, trained on the same half of Adult, attacked in the same way: raw, and on k-anonymous records of
every method with k = 100. For differential privacy, a logistic regression with and without noise. ``papers`` writes the
table into ``README.md``.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, clone

from studies.accuracy import RAW
from studies.methods import METHODS
from studies.runner import Experiment

TABLE, MODEL = "adult-12", "rf"
K = 100
N_SHADOWS, PAPER_SCALE_SHADOWS = 8, 64
ATTACKS = ("threshold", "random_forest", "rmia")
SEEDS, PAPER_SCALE_SEEDS = (0, 1, 2), tuple(range(10))
RECODED = "ours, recoded"
PRIVATE = {"epsilon=inf": math.inf, "epsilon=10": 10.0, "epsilon=1": 1.0}
ROWS = {
    RAW: "no protection",
    "ours": "sfumato",
    RECODED: "sfumato, new records recoded too",
    "paper": "the paper's method (AG)",
    "workload_aware": "workload-aware (LeFevre)",
    "information_loss": "Mondrian by information loss",
    "mondrian": "Mondrian by medians",
    "hilbert": "Hilbert curve",
    "rplus_tree": "R+-tree",
    "epsilon=inf": "logistic regression, no protection",
    "epsilon=10": "logistic regression, differential privacy, epsilon 10",
    "epsilon=1": "logistic regression, differential privacy, epsilon 1",
}


class HardPredictions(ClassifierMixin, BaseEstimator):
    """A guide that says classes and no probabilities, as the paper's."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> HardPredictions:
        """Train the model."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Return the classes."""
        return self.estimator_.predict(X)


def run(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Train, test and attack a model under one protection after the other."""
    from sfumato import compare_protections
    from studies.models import make_model
    from studies.tables import load

    table = load(TABLE)
    for key in keys:
        model = make_model(MODEL, key["seed"], table.X)
        protection = protected(key["protection"], model, table)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "epsilon=inf")  # the regression without noise is there to compare with
            compared = compare_protections(
                table.X, table.y, {key["protection"]: protection},
                attacks=ATTACKS, n_shadows=PAPER_SCALE_SHADOWS if paper_scale else N_SHADOWS,
                n_jobs=1, random_state=key["seed"], cache=folder,
            )  # fmt: skip
        [row] = compared.rows
        yield {
            "accuracy": row.utility,
            "recoded_accuracy": recoded_accuracy(key, table),
            "train_accuracy": row.train_utility,
            "without_model": compared.without_model,
            "n_train": compared.n_train,
            "n_test": compared.n_test,
            "attacks": {
                name: {"rate": result.rate, "interval": list(result.interval), "auc": result.details["auc"]}
                for name, result in row.membership.items()
            },
        }


def recoded_accuracy(key: Mapping[str, Any], table: Any) -> float | None:
    """Return the accuracy on test records that are recoded like the training records, where there are groups."""
    from sfumato import compare_protections
    from studies.models import make_model

    if key["protection"] in (RAW, *PRIVATE):
        return None
    protection = protected(key["protection"], make_model(MODEL, key["seed"], table.X), table)
    protection.set_params(transform_at_predict=True)
    compared = compare_protections(
        table.X, table.y, {"recoded": protection}, attacks=("threshold",), n_jobs=1, random_state=key["seed"]
    )
    return float(compared.rows[0].utility)


def protected(name: str, model: Any, table: Any) -> Any:
    """Return the unfitted model under a protection."""
    from sfumato import AnonymizedClassifier
    from sfumato.private import PrivateLogisticRegression

    if name == RAW:
        return model
    if name in PRIVATE:
        from studies.public_knowledge import BOUNDS, categories_of

        return PrivateLogisticRegression(
            PRIVATE[name], bounds=BOUNDS[TABLE], categories=categories_of(TABLE, table.X), classes=[0, 1]
        )
    method = METHODS["ours" if name == RECODED else name]
    guides = {"probabilities": None, "predictions": HardPredictions(model), "labels": "labels", None: "labels"}
    return AnonymizedClassifier(
        model,
        anonymizer=method.make(K, table.quasi_identifiers),
        guide_estimator=guides[method.guide],  # methods without a guide do not look at labels
        learn_from="points",
        transform_at_predict=name == RECODED,
    )


# -- the table -----------------------------------------------------------------------------------------------


def strongest(cell: Mapping[str, Any]) -> float:
    """Return the accuracy of the attack that does best."""
    return float(max(attack["rate"] for attack in cell["attacks"].values()))


def table_lines(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table: one line per protection."""
    by_row: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        by_row.setdefault(cell["protection"], []).append(cell)
    raw = {cell["seed"]: cell["accuracy"] for cell in by_row[RAW]}

    def shown(own: list[Mapping[str, Any]], name: str) -> str:
        if any(cell[name] is None for cell in own):
            return ""
        change = mean(cell[name] - raw[cell["seed"]] for cell in own)
        return f"{100 * mean(cell[name] for cell in own):.1f} ({100 * change:+.1f})"

    lines = [
        "| training data | test accuracy, % | test records recoded too | membership attack, % (50: guessing) |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, title in ROWS.items():
        own = by_row.get(name, [])
        if not own or name == RECODED:
            continue
        accuracy = f"{100 * mean(raw.values()):.1f}" if name == RAW else shown(own, "accuracy")
        attack = f"{100 * mean(map(strongest, own)):.1f}"
        if name == "ours" and RECODED in by_row:
            attack += f"; recoded {100 * mean(map(strongest, by_row[RECODED])):.1f}"
        lines.append(f"| {title} | {accuracy} | {shown(own, 'recoded_accuracy')} | {attack} |")
    return lines


def introduction(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences over and under the table that depend on the cells."""
    n_splits = len({cell["seed"] for cell in cells})
    splits = "one split" if n_splits == 1 else f"mean of {n_splits} splits"
    first = cells[0]
    blind = mean(cell["without_model"] for cell in cells)
    return [
        f"The same random forest on Adult, {first['n_train']:,} records to train with and as many to test on, k = {K}, "
        "12 quasi-identifiers,",
        f"{splits}. The attacker says who was in the training data; shown is the best of {len(ATTACKS)} attacks, one "
        f"of them with {N_SHADOWS} shadow models.",
        "In brackets the change against raw. Always answering the larger class is right in "
        f"{100 * blind:.1f}% of the cases.",
        "Differential privacy needs another model: a logistic regression (delta 1e-6), beside itself without noise.",
    ]


def _view(study: Any, cells: list[dict[str, Any]]) -> Any:
    from studies.views import View

    return View([*introduction(cells), "", *table_lines(cells), ""])


EXPERIMENT = Experiment(
    name="front_page",
    by=("protection", "seed"),
    keys=tuple({"protection": name, "seed": seed} for seed in SEEDS for name in ROWS),
    paper_scale_keys=tuple({"protection": name, "seed": seed} for seed in PAPER_SCALE_SEEDS for name in ROWS),
    run=run,
    together=("protection", "seed"),
    needs=lambda key: ("opendp",) if key["protection"] in PRIVATE else (),
    titles=ROWS,
    views={"front_page": _view},
)
