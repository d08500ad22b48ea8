# SPDX-License-Identifier: Apache-2.0
"""Numbers instead of classes: what k-anonymity costs a regressor, guided and unguided.

Goldsteen et al. leave regression to future work and suggest a regression tree as the guide. Here: violent crimes per
head in Communities and Crime, and incomes in dollars from the census records of New York, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.charts import Panel, Style, draw
from studies.rows import Row, documents, found, how_it_was_run, mean, n_splits, one_by_one, signed, table, where
from studies.runner import Experiment
from studies.summaries import interval

TABLES = {
    "acs-dollars": "Income in dollars, New York 2024, 9 quasi-identifiers",
    "communities-12": "Communities and Crime, 12 quasi-identifiers",
    "communities-99": "Communities and Crime, all columns quasi-identifiers",
}
MODELS = {"boosting": "gradient boosting", "ridge": "ridge regression"}
METHODS = {
    "regions": "regions",
    "ours": "ours",
    "paper": "a tree that stops, with members",
    "labels": "ours, guided by true numbers",
    "information_loss": "information-loss Mondrian",
    "mondrian": "median Mondrian",
}
K = {"acs-dollars": (10, 50, 100, 500), "communities-12": (5, 10, 20, 50), "communities-99": (5, 20, 50)}
PLACES = (
    *(("acs-dollars", "boosting"), ("communities-12", "boosting"), ("communities-12", "ridge")),
    *(("communities-99", "boosting"), ("communities-99", "ridge")),
)
"""Tables and models; a ridge regression on the one-hot columns of the census would take most of the time."""

SEEDS = (0, 1, 2, 3, 4)
#: At most so many points of R² should regions be below recoded records, and not below 0 where those have so many.
MOST_BELOW, WORTHWHILE = 2.0, 5.0
MOST_TRAINED, MOST_TESTED = 60_000, 20_000
Most = tuple[int | None, int | None]
_CODES = ("COW", "MAR", "OCCP", "SEX", "RAC1P", "PUMA")
_FEATURES = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "WKHP", "SEX", "RAC1P", "PUMA")
REDUCTIONS = (
    f"At most {MOST_TRAINED:,} training and {MOST_TESTED:,} test records of the census; splits of 80/20.",
    "Census: the persons over 16 at work with an income above 100 dollars, the features of ACSIncome that the file "
    "has (no place of birth, no relationship), all of them quasi-identifiers.",
    "Communities and Crime: the columns with values for at least half of the places; as quasi-identifiers the first "
    "twelve (population, household size, race, age, urban), or all of them. A place is not a person: the table is here "
    "because it is the public regression table that the minimization paper uses.",
    "*A tree that stops*: hard cuts by variance of the predictions, no cuts without gain, and the member "
    "nearest the median: the paper's own recipe for classes, applied to numbers.",
    "Histogram gradient boosting and ridge regression with scikit-learn's defaults; the target is left as it is, in "
    "dollars and in crimes per head scaled to 0 to 1.",
)


def keys() -> Iterator[Row]:
    """List the cells: of every table, model and split the raw model first."""
    for seed in SEEDS:
        for name, model in PLACES:
            yield {"table": name, "model": model, "seed": seed, "method": "raw", "k": 0}
            for method in METHODS:
                for k in K[name]:
                    yield {"table": name, "model": model, "seed": seed, "method": method, "k": k}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Train on what one method made of the training records, and test on raw and on recoded records.

    `n_records` in the key, where there is one, limits the records of the table: for trying out.
    """
    from sklearn.metrics import mean_absolute_error, r2_score

    from sfumato import MondrianAnonymizer

    most = (None, None) if paper_scale else (MOST_TRAINED, MOST_TESTED)
    of_split = key["table"], key["seed"], key.get("n_records"), most
    X_train, X_test, y_train, y_test, quasi_identifiers = _split(*of_split)

    def scores(model: Any, records: Any, name: str) -> Row:
        predicted = model.predict(records)
        return {
            f"r2{name}": round(100 * float(r2_score(y_test, predicted)), 3),
            f"mae{name}": round(float(mean_absolute_error(y_test, predicted)), 6),
        }

    raw = _raw(key["model"], *of_split)
    anonymizer: Any
    if key["method"] == "raw":
        return scores(raw, X_test, "")
    if key["method"] == "regions":
        from sfumato import AnonymizedRegressor

        anonymizer = _guided("ours", key["k"], quasi_identifiers)
        learner = AnonymizedRegressor(
            _model(key["model"], key["seed"], X_train), anonymizer=anonymizer, guide_estimator=raw,
            random_state=key["seed"],
        ).fit(X_train, y_train)  # fmt: skip
        return {**scores(learner, X_test, ""), "n_groups": int(learner.anonymizer_.n_groups_)}
    if key["method"] in ("mondrian", "information_loss"):
        rule: Any = "median" if key["method"] == "mondrian" else "information_loss"
        anonymizer = MondrianAnonymizer(
            key["k"], quasi_identifiers=quasi_identifiers, rule=rule, representative="median", n_jobs=1
        )
        released = anonymizer.fit_transform(X_train)
    else:
        anonymizer = _guided(key["method"], key["k"], quasi_identifiers)
        released = anonymizer.fit_transform(X_train, y_train if key["method"] == "labels" else raw.predict(X_train))
    model = _model(key["model"], key["seed"], X_train).fit(released, y_train)
    return {
        **scores(model, X_test, ""),
        **scores(model, anonymizer.transform(X_test), "_transformed"),
        "n_groups": int(anonymizer.n_groups_),
    }


def _guided(method: str, k: int, quasi_identifiers: list[str]) -> Any:
    from sfumato import ModelGuidedAnonymizer

    more: dict[str, Any] = {"representative": "member", "keep_splitting": False} if method == "paper" else {}
    more = {"representative": "model"} | more
    return ModelGuidedAnonymizer(k, quasi_identifiers=quasi_identifiers, guide_kind="numbers", n_jobs=1, **more)


@lru_cache(1)
def _raw(model: str, name: str, seed: int, n_records: int | None, most: Most) -> Any:
    X_train, _, y_train, _, _ = _split(name, seed, n_records, most)
    return _model(model, seed, X_train).fit(X_train, y_train)


def _model(name: str, seed: int, frame: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    from studies.models import encoder

    regressor = HistGradientBoostingRegressor(random_state=seed) if name == "boosting" else Ridge()
    return make_pipeline(encoder(frame, one_hot=name == "ridge"), regressor)


@lru_cache(1)
def _split(name: str, seed: int, n_records: int | None, most: Most) -> tuple[Any, Any, Any, Any, list[str]]:
    from sklearn.model_selection import train_test_split

    X, y, quasi_identifiers = _load(name)
    X, y = X[:n_records], y[:n_records]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    trained, tested = most
    return X_train[:trained], X_test[:tested], y_train[:trained], y_test[:tested], quasi_identifiers


@lru_cache(1)
def _load(name: str) -> tuple[Any, Any, list[str]]:
    from studies import datasets

    if name == "acs-dollars":
        people = datasets.load_acs_pums(state="ny", as_frame="pandas").data
        at_work = (people["AGEP"] > 16) & (people["PINCP"] > 100) & (people["WKHP"] > 0)
        people = people[at_work]
        X = people[list(_FEATURES)].astype({"WKHP": "int64"}).astype(dict.fromkeys(_CODES, "category"))
        return X, people["PINCP"].to_numpy(float), list(_FEATURES)
    X, y = datasets.load_communities(return_X_y=True, as_frame="pandas")
    X = X.loc[:, X.isna().mean() < 0.5]
    return X, y.to_numpy(float), list(X.columns[:12] if name == "communities-12" else X.columns)


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Regression",
        "",
        "Asked for by Goldsteen et al. (*Anonymizing Machine Learning Models*, section 5): support for regression, "
        "with a regression tree as the guide. `AnonymizedRegressor` does that. A regressor is trained on raw "
        "records, the records are made k-anonymous, the regressor is trained again and tested on raw records that "
        "it has not seen; in the last columns on records that went through the same groups. *Regions*: it learns from "
        "what the people of a group share ([how](../learning-from-regions.md)), the default of `AnonymizedRegressor`; "
        "the other rows learn from one record per group. R² in percent (100 is "
        "perfect, 0 is what the mean gives), in brackets the change against raw training data.",
        "",
        "![R² over k for every method, table and model](beyond-regression.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
    ]
    for name, model in PLACES:
        lines += _table(rows, name, model, f"{TABLES[name]}, {MODELS[model]}")
    lines += how_it_was_run(rows, "beyond-regression", REDUCTIONS)
    return "\n".join(lines) + "\n"


def _table(rows: list[Row], name: str, model: str, title: str) -> list[str]:
    own = where(rows, table=name, model=model)
    raw, error = mean(own, "r2", method="raw"), mean(own, "mae", method="raw")
    shown = f"{error:,.0f} dollars" if name == "acs-dollars" else f"{error:.4f}"
    lines = []
    for k in K[name]:
        for method, words in METHODS.items():
            r2, mae = (mean(own, measure, method=method, k=k) for measure in ("r2", "mae"))
            moved = r2 if method == "regions" else mean(own, "r2_transformed", method=method, k=k)
            lines.append(
                [
                    *(str(k), words, f"{r2:.2f} ({signed(r2 - raw)})"),
                    f"{mae:,.0f}" if name == "acs-dollars" else f"{mae:.4f}",
                    "" if method == "regions" else f"{moved:.2f} ({signed(moved - raw)})",
                    f"{mean(own, 'n_groups', method=method, k=k):,.0f}",
                ]
            )
    header = ["k", "method", "R²", "mean absolute error", "R², test recoded", "groups"]
    return [
        f"## {title}",
        "",
        f"Raw training data: R² {raw:.2f}, mean absolute error {shown} ({n_splits(own)}).",
        *table(header, lines, n_words=2),
    ]


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for name, model in PLACES:
        own = where(rows, table=name, model=model)
        raw = mean(own, "r2", method="raw")
        parts = []
        for measure, words in (("r2", "raw"), ("r2_transformed", "recoded")):
            changes = [f"{signed(mean(own, measure, method='ours', k=k) - raw)} at k = {k}" for k in K[name]]
            parts.append(f"{', '.join(changes)} on {words} test records")
        yield f"{TABLES[name]}, {MODELS[model]}: ours changes R² (raw: {raw:.2f}) by {'; by '.join(parts)}."
    places = [(name, model, k) for name, model in PLACES for k in K[name]]
    yield from _regions_beside_recoded(rows, places)
    for method in ("mondrian", "information_loss", "paper", "labels"):
        ahead = [
            mean(rows, "r2", table=n, model=m, method="ours", k=k)
            - mean(rows, "r2", table=n, model=m, method=method, k=k)
            for n, m, k in places
        ]
        n_ahead = sum(difference > 0 for difference in ahead)
        yield (
            f"On raw test records ours is ahead of {METHODS[method]} in {n_ahead} of {len(places)} rows, by "
            f"{signed(median(ahead))} points of R² in the middle one (from {signed(min(ahead))} to "
            f"{signed(max(ahead))})."
        )
    for method in ("mondrian", "information_loss"):
        ahead = [
            mean(rows, "r2_transformed", table=n, model=m, method="ours", k=k)
            - mean(rows, "r2_transformed", table=n, model=m, method=method, k=k)
            for n, m, k in places
        ]
        yield (
            f"On recoded test records ours is ahead of {METHODS[method]} in {sum(value > 0 for value in ahead)} of "
            f"{len(places)} rows, by {signed(median(ahead))} points of R² in the middle one (from "
            f"{signed(min(ahead))} to {signed(max(ahead))})."
        )
    gains = [
        mean(rows, "r2_transformed", table=n, model=m, method="ours", k=k)
        - mean(rows, "r2", table=n, model=m, method="ours", k=k)
        for n, m, k in places
    ]
    yield (
        f"Recoding the test records, too, helps ours in {sum(gain > 0 for gain in gains)} of {len(places)} rows, by "
        f"{signed(median(gains))} points in the middle one (from {signed(min(gains))} to {signed(max(gains))})."
    )
    for measure, test in (("r2", "raw"), ("r2_transformed", "recoded")):
        worse = [
            f"{METHODS[method]} at k = {k} ({TABLES[n].split(',')[0]}, {MODELS[m]})"
            for method in METHODS
            for n, m, k in places
            if (method, measure) != ("regions", "r2_transformed")
            and mean(rows, measure, table=n, model=m, method=method, k=k) < 0
        ]
        yield f"Worse than always saying the mean on {test} test records: {'; '.join(worse) or 'none'}."


def _regions_beside_recoded(rows: list[Row], places: Sequence[tuple[str, str, int]]) -> Iterator[str]:
    """Say how regions on raw records do beside points on recoded ones, split by split, and where the aim is missed."""
    differences = {}
    for n, m, k in places:
        own = where(rows, table=n, model=m, k=k)
        recoded = {row["seed"]: row["r2_transformed"] for row in where(own, method="ours")}
        differences[n, m, k] = np.array([row["r2"] - recoded[row["seed"]] for row in where(own, method="regions")])
    for n, m in PLACES:
        found = [(k, differences[n, m, k]) for k in K[n]]
        parts = [f"{_with_half(own)} at k = {k}" for k, own in found]
        yield (
            f"{TABLES[n]}, {MODELS[m]}: R² of regions on raw test records minus that of ours on recoded ones: "
            f"{', '.join(parts)} (± half of the 95% interval over {len(found[0][1])} paired splits)."
        )
    below = [
        f"{TABLES[n]}, {MODELS[m]} at k = {k} ({signed(own.mean())})"
        for (n, m, k), own in differences.items()
        if own.mean() < -MOST_BELOW
    ]
    negative = [
        f"{TABLES[n]}, {MODELS[m]} at k = {k}"
        for n, m, k in places
        if mean(rows, "r2", table=n, model=m, method="regions", k=k) < 0
        and mean(rows, "r2_transformed", table=n, model=m, method="ours", k=k) > WORTHWHILE
    ]
    yield (
        f"Regions more than {MOST_BELOW:.0f} points of R² below recoded records: {'; '.join(below) or 'nowhere'}. "
        f"Below 0 where recoded records have more than {WORTHWHILE:.0f}: {'; '.join(negative) or 'nowhere'}."
    )


def _with_half(differences: NDArray[np.float64]) -> str:
    low, high = interval(differences)
    return f"{signed(differences.mean())} ± {(high - low) / 2:.2f}"


STYLES = {
    "regions": Style("#cc3311", "circle", 2.6),
    "ours": Style("#d55e00", "circle", 2.0),
    "paper": Style("#e69f00", "square", 2.0),
    "labels": Style("#009e73", "triangle"),
    "information_loss": Style("#0072b2", "diamond"),
    "mondrian": Style("#56b4e9", "circle"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw R² over k."""
    panels = []
    for name, model in PLACES:
        own = where(rows, table=name, model=model)
        drawn = {
            words: [(k, max(0.0, mean(own, "r2", method=method, k=k))) for k in K[name]]
            for method, words in METHODS.items()
        }
        drawn["ours, recoded test"] = [(k, max(0.0, mean(own, "r2_transformed", method="ours", k=k))) for k in K[name]]
        title = TABLES[name].replace("quasi-identifiers", "QI").replace("Communities and Crime", "Crime")
        panels.append(Panel(f"{title}: {model}", drawn, {"raw records": mean(own, "r2", method="raw")}))
    styles = {METHODS[method]: style for method, style in STYLES.items()}
    styles["ours, recoded test"] = Style("#d55e00", "triangle", 1.6, "5 3")
    styles["raw records"] = Style("#1f2328", "", 1.2, "6 3")
    label = "R² in percent over k (0 where it is below), for every method, table and model"
    return {"beyond-regression.svg": draw(panels, styles, columns=3, label=label)}


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_regression",
    by=("table", "model", "seed", "method", "k"),
    keys=KEYS,
    run=one_by_one(run),
    together=("table", "model", "seed"),
    views={"found": found(KEYS, findings, charts)},
    documents=documents("beyond-regression", KEYS, page, charts),
)
