# SPDX-License-Identifier: Apache-2.0
"""Many columns and few like records: Goldsteen et al., section 4.2, on Location in place of Purchase-100.

The paper says that its method does not work for data of many dimensions where nearly every record is unique: on
Purchase-100 (600 columns, 100 classes) accuracy fell from 66% to 24% at k = 2, and to 42% with differential privacy.
Location has 446 columns of 0 and 1 (places visited in Bangkok) and 30 classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from studies import methods
from studies.claims import Evidence
from studies.rows import Row, has, mean, n_splits, one_by_one, table, where
from studies.runner import Experiment
from studies.verdicts import Difference, counted, paired, share_error
from studies.views import View

METHODS = {
    "ours": "ours",
    "paper": "paper's AG",
    "mondrian": "median Mondrian",
}
K = (2, 5, 10)
EPSILONS = (1, 10, 100)
PRIVATE = "private logistic regression"
SEEDS = (0, 1, 2)
PRIVATE_SEEDS = (0,)
N_TREES = 100
N_TEST = 1002
OVERLAP = 0.25  # test records per training record


def keys() -> Iterator[Row]:
    """List the cells; `strength` is k, or epsilon of the private regression."""
    for seed in SEEDS:
        yield {"method": "raw", "strength": 0, "seed": seed}
        yield from ({"method": method, "strength": k, "seed": seed} for method in METHODS for k in K)
        if seed in PRIVATE_SEEDS:
            yield from ({"method": PRIVATE, "strength": epsilon, "seed": seed} for epsilon in EPSILONS)


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Train a forest on protected records and test it on raw and on recoded ones.

    `n_records` in the key, where there is one, limits the records: for trying out.
    """
    X_train, X_test, y_train, y_test = _split(key["seed"], key.get("n_records"))
    if key["method"] == PRIVATE:
        return _private(key, X_train, X_test, y_train, y_test)
    raw = _raw(key["seed"], key.get("n_records"))
    if key["method"] == "raw":
        return {"accuracy": _percent(raw.score(X_test, y_test))}
    method = methods.METHODS[key["method"]]
    anonymizer = method.make(key["strength"], list(X_train.columns))
    guide = None
    if method.guide is not None:
        guide = raw.predict_proba(X_train) if method.guide == "probabilities" else raw.predict(X_train)
    released = anonymizer.fit_transform(X_train, guide)
    model = _forest(key["seed"]).fit(released, y_train)
    return {
        "accuracy": _percent(model.score(X_test, y_test)),
        "transformed": _percent(model.score(anonymizer.transform(X_test), y_test)),
        "n_groups": int(anonymizer.n_groups_),
    }


def _private(key: Mapping[str, Any], X_train: Any, X_test: Any, y_train: Any, y_test: Any) -> Row:
    from sfumato.private import PrivateLogisticRegression

    model = PrivateLogisticRegression(
        float(key["strength"]),
        categories=dict.fromkeys(X_train.columns, (0, 1)),
        classes=list(range(1, 31)),
        n_steps=50,  # noise for 30 classes of 893 cells takes its time
    ).fit(X_train, y_train)
    return {"accuracy": _percent((model.predict(X_test) == y_test).mean())}


def _percent(share: float) -> float:
    return round(100 * float(share), 3)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(N_TREES, random_state=seed)


@lru_cache(1)
def _raw(seed: int, n_records: int | None) -> Any:
    X_train, _, y_train, _ = _split(seed, n_records)
    return _forest(seed).fit(X_train, y_train)


@lru_cache(1)
def _split(seed: int, n_records: int | None) -> Any:
    from sklearn.model_selection import train_test_split

    X, y = _load()
    return train_test_split(X[:n_records], y[:n_records], test_size=0.2, random_state=seed)


@lru_cache(1)
def _load() -> tuple[Any, Any]:
    from studies.datasets import load_location

    X, y = load_location(return_X_y=True, as_frame="pandas")
    return X, y.to_numpy().astype(int)


def accuracies(study: Any, cells: list[Row]) -> View:
    """Show the accuracy of every method, on raw and on recoded test records."""
    body = []
    for method, words in METHODS.items():
        for measure, test in (("accuracy", "raw test"), ("transformed", "recoded test")):
            shown = [f"{mean(cells, measure, method=method, strength=k):.2f}" for k in K]
            body.append([words, test, *shown, f"{mean(cells, 'n_groups', method=method, strength=2):,.0f}"])
    splits = n_splits(cells, method="raw")
    lines = [
        f"A random forest on raw records: {mean(cells, 'accuracy', method='raw'):.2f} ({splits}).",
        *table(["method", "tested on", *(f"k = {k}" for k in K), "groups at k = 2"], body, n_words=2),
    ]
    if has(cells, method=PRIVATE):
        private = [f"{mean(cells, 'accuracy', method=PRIVATE, strength=e):.2f}" for e in EPSILONS]
        lines += [
            f"With differential privacy ({n_splits(cells, method=PRIVATE)}):",
            *table(["method", *(f"epsilon = {e}" for e in EPSILONS)], [[PRIVATE, *private]]),
        ]
    return View(lines)


def evidence(cells: list[Row]) -> dict[str, Evidence]:
    """Return the differences of the claims about many dimensions, split by split."""

    def of_splits(**fixed: Any) -> dict[int, float]:
        return {row["seed"]: row["accuracy"] for row in where(cells, **fixed)}

    raw, kept = of_splits(method="raw"), of_splits(method="paper", strength=2)
    found = {
        "high-dimensions": Evidence(
            [paired("k = 2", [raw[seed] - kept[seed] for seed in sorted(kept)], overlap=OVERLAP)],
            f"{mean(cells, 'accuracy', method='paper', strength=2):.1f}% of "
            f"{mean(cells, 'accuracy', method='raw'):.1f}%, "
            f"{mean(cells, 'transformed', method='paper', strength=2):.1f}% on recoded test records; the paper: 24% of "
            "66%",
        )
    }
    private = {epsilon: of_splits(method=PRIVATE, strength=epsilon) for epsilon in EPSILONS}
    if private[EPSILONS[0]]:
        best = max(EPSILONS, key=lambda epsilon: sum(private[epsilon].values()))
        found["high-dimensions-private"] = Evidence(
            [_ahead(f"epsilon = {best}", private[best], kept)],
            f"{mean(cells, 'accuracy', method=PRIVATE, strength=best):.1f}% at epsilon = {best}",
        )
    return found


def _ahead(told: str, own: Mapping[int, float], rival: Mapping[int, float]) -> Difference:
    """Return a difference of accuracies over splits; of one split, its test records counted."""
    if len(own) > 1:
        return paired(told, [value - rival[seed] for seed, value in sorted(own.items())], overlap=OVERLAP)
    [(seed, value)] = own.items()
    errors = (100 * share_error(accuracy / 100, N_TEST) for accuracy in (value, rival[seed]))
    return counted(told, value - rival[seed], math.hypot(*errors))


EXPERIMENT = Experiment(
    name="high_dimensions",
    by=("method", "strength", "seed"),
    keys=tuple(keys()),
    run=one_by_one(run),
    together=("seed",),
    needs=lambda key: ("opendp",) if key["method"] == PRIVATE else (),
    views={"accuracies": accuracies},
    evidence=evidence,
)
