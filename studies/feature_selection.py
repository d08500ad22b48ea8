# SPDX-License-Identifier: Apache-2.0
"""Feature selection before and after anonymizing: Goldsteen et al., figure 3 and section 3.

The paper selects features before anonymizing for all models but the network, and says that selecting them afterwards
may be better where it spares quasi-identifiers. It does not say how it selects; here a decision tree's importances do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from studies.claims import Evidence
from studies.methods import METHODS
from studies.models import MODELS
from studies.rows import Row, has, mean, one_by_one, table, where
from studies.runner import Experiment
from studies.tables import TITLES
from studies.verdicts import Difference, paired
from studies.views import View

SELECTIONS = {"none": "all columns", "before": "selected before", "after": "selected after"}
N_SELECTED = {"adult-8": 6, "lending-club-18": 11}
"""Columns that stay: half of Adult's, and as many of the loans' as in the paper."""

CLASSIC = ("mondrian", "hilbert", "rplus_tree")
SHOWN, ORDERED = ("dt", "rf", "xgb"), ("dt", "hgb")
"""Models of figure 3, and those with which before and after are compared."""

K, FEW_K = (10, 100, 200, 500, 1000), (10, 100, 1000)
SEEDS = (0, 1, 2, 3, 4)
OVERLAP = 0.25  # test records per training record


def keys() -> Iterator[Row]:
    """List the cells: those of figure 3 first, then those that compare before and after."""
    for seed in SEEDS:
        for model in SHOWN:
            yield _key("adult-8", model, "before", "raw", 0, seed)
            for method in ("ours", "paper", *CLASSIC):
                yield from (_key("adult-8", model, "before", method, k, seed) for k in (FEW_K if model == "rf" else K))
        for name in N_SELECTED:
            for model in ORDERED:
                for selection in SELECTIONS:
                    is_in_figure = (name, selection) == ("adult-8", "before") and model in SHOWN
                    for method, k in (("raw", 0), *((m, k) for m in ("ours", "paper") for k in FEW_K)):
                        if not is_in_figure and not (method == "raw" and selection == "after"):
                            yield _key(name, model, selection, method, k, seed)


def _key(name: str, model: str, selection: str, method: str, k: int, seed: int) -> Row:
    return {"table": name, "model": model, "selection": selection, "method": method, "k": k, "seed": seed}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Select, anonymize and train in the order that the key says, and test on raw records.

    `n_records` in the key, where there is one, limits the records: for trying out.
    """
    X_train, X_test, y_train, y_test, quasi_identifiers = _split(key["table"], key["seed"], key.get("n_records"))
    names = list(X_train.columns)
    if key["selection"] == "before":
        names = select(X_train, y_train, N_SELECTED[key["table"]])
    released = X_train[names]
    if key["method"] != "raw":
        released = _released(key, names, [name for name in quasi_identifiers if name in names])
    if key["selection"] == "after":
        names = select(released, y_train, N_SELECTED[key["table"]])
    model = _model(key["model"], key["seed"], X_train[names]).fit(released[names], y_train)
    return {
        "accuracy": round(100 * float(model.score(X_test[names], y_test)), 3),
        "n_columns": len(names),
        "n_quasi_identifiers": sum(name in quasi_identifiers for name in names),
    }


def _released(key: Mapping[str, Any], names: list[str], quasi_identifiers: list[str]) -> Any:
    X_train = _split(key["table"], key["seed"], key.get("n_records"))[0]
    if not quasi_identifiers:
        return X_train[names]
    method = METHODS[key["method"]]
    anonymizer = method.make(key["k"], quasi_identifiers)
    if method.guide is None:
        return anonymizer.fit_transform(X_train[names])
    raw = _raw(key["table"], key["model"], key["seed"], key.get("n_records"), tuple(names))
    probabilities = raw.predict_proba(X_train[names])
    guide = probabilities if method.guide == "probabilities" else probabilities.argmax(axis=1)
    return anonymizer.fit_transform(X_train[names], guide)


def select(X: Any, y: Any, n: int) -> list[str]:
    """Return the columns with the largest importance in a decision tree, in the order of the table."""
    fitted = _model("dt", 0, X).fit(X, y)
    order = [name.split("__", 1)[1] for name in fitted[0].get_feature_names_out()]
    importance = dict(zip(order, fitted[-1].feature_importances_, strict=True))
    best = sorted(X.columns, key=lambda name: -importance[name])[:n]
    return [name for name in X.columns if name in best]


def _model(name: str, seed: int, frame: Any) -> Any:
    from studies.models import make_model

    return make_model(name, seed, frame)


@lru_cache(1)
def _raw(name: str, model: str, seed: int, n_records: int | None, names: tuple[str, ...]) -> Any:
    X_train, _, y_train, _, _ = _split(name, seed, n_records)
    return _model(model, seed, X_train[list(names)]).fit(X_train[list(names)], y_train)


@lru_cache(1)
def _split(name: str, seed: int, n_records: int | None) -> tuple[Any, Any, Any, Any, list[str]]:
    from sklearn.model_selection import train_test_split

    from studies.tables import load

    own = load(name)
    X, y = own.X[:n_records], own.y[:n_records]
    return *train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y), own.quasi_identifiers


def before_and_after(study: Any, cells: list[Row]) -> View:
    """Show accuracy and quasi-identifiers in all three orders."""
    lines: list[str] = []
    for name in N_SELECTED:
        for model in ORDERED:
            own = where(cells, table=name, model=model)
            if not own:
                continue
            lines.append(f"**{TITLES[name]}, {MODELS[model]}**:")
            body = []
            for selection, words in SELECTIONS.items():
                of_raw = "before" if selection == "after" else selection  # raw records, selected, are the same
                raw = mean(own, "accuracy", selection=of_raw, method="raw")
                for method in ("ours", "paper"):
                    shown = [
                        f"{mean(own, 'accuracy', selection=selection, method=method, k=k):.2f} "
                        f"({mean(own, 'n_quasi_identifiers', selection=selection, method=method, k=k):.0f})"
                        for k in FEW_K
                        if has(own, selection=selection, method=method, k=k)
                    ]
                    body.append([words, METHODS[method].title, f"{raw:.2f}", *shown])
            lines += table(["columns", "method", "raw", *(f"k = {k}" for k in FEW_K)], body, n_words=2)
    return View([*lines, "In brackets: quasi-identifiers among the columns that the model sees.", ""])


def evidence(cells: list[Row]) -> dict[str, Evidence]:
    """Return the differences of every claim about figure 3 and about the order."""
    own = where(cells, table="adult-8", selection="before")
    ahead = [
        _apart(own, f"{MODELS[model]}, k = {k}, {METHODS[other].title}", "accuracy",
               {"model": model, "method": "paper", "k": k}, {"model": model, "method": other, "k": k})
        for model in SHOWN
        for other in CLASSIC
        for k in K
        if has(own, model=model, method="paper", k=k)
    ]  # fmt: skip
    orders = [
        ({"table": name, "model": model, "method": "paper", "k": k}, f"{TITLES[name]}, {MODELS[model]}, k = {k}")
        for name in N_SELECTED
        for model in ORDERED
        for k in FEW_K
    ]
    better, fewer = (
        [_apart(cells, words, what, at | {"selection": one}, at | {"selection": other}) for at, words in orders]
        for what, one, other in (("accuracy", "after", "before"), ("n_quasi_identifiers", "before", "after"))
    )
    # What models of loans have learned is too little to lose any of it: their accuracy says nothing of the order.
    better = [one for one, (at, _) in zip(better, orders, strict=True) if at["table"] == "adult-8"]
    raw = {
        f"raw-{name}": Evidence([_reached(own, model, published)], _tried(model, published))
        for name, model, published in (("xgboost", "xgb", 86.4), ("tree", "dt", 88.78), ("forest", "rf", 89.92))
    }
    return {
        **raw,
        "selected-in-all-cases": Evidence(ahead),
        "after-may-be-better": Evidence(better),
        "others-take-the-place": Evidence(fewer),
    }


def _apart(cells: list[Row], words: str, what: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Difference:
    """Return how far a result of some cells lies above that of others, split by split."""
    pairs = [{row["seed"]: row[what] for row in where(cells, **at)} for at in (one, other)]
    return paired(words, [pairs[0][seed] - pairs[1][seed] for seed in sorted(pairs[0])], overlap=OVERLAP)


def _reached(cells: list[Row], model: str, published: float) -> Difference:
    """Return how far the raw model lies above what the paper prints."""
    own = where(cells, model=model, method="raw")
    return paired(MODELS[model], [row["accuracy"] - published for row in own], overlap=OVERLAP)


def _tried(model: str, published: float) -> str:
    """Return the best that a model reached on all columns with any setting that was tried, where some were."""
    from studies.raw_models import EXPERIMENT as RAW

    of_setting: dict[Any, list[float]] = {}
    for row in where(RAW.cells(), table="adult-12", model=model):
        of_setting.setdefault((row["coding"], row["leaf"]), []).append(row["test"])
    if not of_setting:
        return ""
    (_, leaf), best = max(of_setting.items(), key=lambda found: sum(found[1]) / len(found[1]))
    reached = sum(best) / len(best)
    return (
        f"with all twelve columns the best of {len(of_setting)} settings ({leaf} records in a leaf at least) reaches "
        f"{reached:.2f}, {reached - published:+.2f}"
    )


EXPERIMENT = Experiment(
    name="feature_selection",
    by=("table", "model", "selection", "method", "k", "seed"),
    keys=tuple(keys()),
    run=one_by_one(run),
    together=("table", "model", "selection", "seed"),
    needs=lambda key: ("xgboost",) if key["model"] == "xgb" else (),
    titles={**TITLES, **MODELS, **SELECTIONS, **{name: method.title for name, method in METHODS.items()}},
    views={"before_and_after": before_and_after},
    evidence=evidence,
)
