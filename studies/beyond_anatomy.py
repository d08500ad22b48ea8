# SPDX-License-Identifier: Apache-2.0
"""Other classifiers on anatomized data, with one sensitive column.

Mancuhan and Clifton name classifiers other than support vector machines as future work. Trees, logistic regression and
boosting learn from the pruned table and from all candidates, weighted evenly or by what all groups show. Several
sensitive columns: ``beyond_sensitive_tables``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from studies.charts import Panel, Style, draw
from studies.rows import Row, documents, found, how_it_was_run, mean, one_by_one, signed, table, where
from studies.runner import Experiment

TABLES = {
    "adult": "Adult",
    "census": "Census-Income",
    "bank": "Bank Marketing",
    "fars": "FARS 2001",
}
MODELS = {"tree": "decision tree", "logistic": "logistic regression", "boosting": "gradient boosting"}
L = (2, 3, 4)
SEEDS = (0, 1, 2)
MOST_TRAINED, MOST_TESTED = 4_800, 10_000
PARTNERS = {
    "original": "raw records",
    "identifying": "without the sensitive column",
    "pruned": "pruned",
    "bucket": "all candidates",
    "learned": "candidates, learned weights",
}
LEARNERS = ("pruned", "bucket", "learned")
REDUCTIONS = (
    f"{MOST_TRAINED:,} training and {MOST_TESTED:,} test records of each table, drawn at random; the paper "
    "has 10 folds of all records, as the page on support vector machines.",
    "One-hot coding; a decision tree with at least 20 records in a leaf, logistic regression on scaled columns, "
    "histogram gradient boosting.",
    "Tables, classes and sensitive columns as on the page on support vector machines.",
    "An l that needs records to be suppressed suppresses them, as in the paper; FARS has four sensitive values.",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for seed in SEEDS:
        for name in TABLES:
            for model in MODELS:
                every = [("original", 0), ("identifying", 0), *((p, length) for p in LEARNERS for length in L)]
                for partner, length in every:
                    yield {
                        "part": "classifiers", "table": name, "n_sensitive": 1, "model": model, "partner": partner,
                        "l": length, "seed": seed,
                    }  # fmt: skip


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Train one partner of the comparison and count its errors on raw records.

    `n_records` in the key, where there is one, limits the training records: for trying out.
    """
    from sfumato.anatomize import BucketClassifier
    from studies.anatomy_partners import train_partners

    most = (None, None) if paper_scale else (key.get("n_records", MOST_TRAINED), MOST_TESTED)
    X_train, X_test, y_train, y_test, sensitive = _split(key["table"], key["seed"], *most)
    estimator = _model(key["model"], key["seed"])
    if key["partner"] in ("bucket", "learned"):
        weights = "even" if key["partner"] == "bucket" else "learned"
        fitted = BucketClassifier(
            estimator, key["l"], sensitive=sensitive, weights=weights, suppression_limit=1.0, random_state=key["seed"]
        ).fit(X_train, y_train)  # fmt: skip
        error, n_suppressed, n_groups = 1 - fitted.score(X_test, y_test), fitted.n_suppressed_, fitted.n_groups_
    else:
        partners = train_partners(
            estimator, X_train, y_train, l=max(2, key["l"]), sensitive=[sensitive], coding="one-hot",
            partners=[key["partner"]], random_state=key["seed"],
        )  # fmt: skip
        error, n_suppressed = partners.errors(X_test, y_test)[key["partner"]], partners.n_suppressed
        n_groups = getattr(partners.models[key["partner"]], "n_groups_", 0)
    return {
        "error": round(100 * float(error), 3),
        "n_suppressed": int(n_suppressed),
        "n_groups": int(n_groups),
        "n_train": len(y_train),
    }


def _model(name: str, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    if name == "tree":
        return DecisionTreeClassifier(min_samples_leaf=20, random_state=seed)
    if name == "boosting":
        return HistGradientBoostingClassifier(random_state=seed)
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))


@lru_cache(1)
def _split(name: str, seed: int, trained: int | None, tested: int | None) -> tuple[Any, Any, Any, Any, str]:
    from sklearn.model_selection import train_test_split

    X, y, sensitive = _load(name)
    if trained is None:
        return *train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y), sensitive
    return *train_test_split(X, y, train_size=trained, test_size=tested, random_state=seed, stratify=y), sensitive


@lru_cache(4)
def _load(name: str) -> tuple[Any, Any, str]:
    from studies.anatomy import load

    X, y, sensitive = load(name)
    return X.reset_index(drop=True), y.astype(str).to_numpy(), sensitive


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Other classifiers on anatomized data",
        "",
        "Asked for by Mancuhan and Clifton (*Support vector classification with l-diversity*, section 6). Error in",
        "percent on raw test records; in brackets the change against raw training records. *Pruned*: one candidate per",
        "record. *All candidates*: every candidate, weighted evenly. *Learned weights*: by what all groups show.",
        "",
        "![error of every classifier over l](beyond-anatomy.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
        "## Tables",
    ]
    lines += _tables(rows)
    lines += how_it_was_run(rows, "beyond-anatomy", REDUCTIONS, ("beyond-anatomy-classifiers",))
    return "\n".join(lines) + "\n"


def _tables(rows: list[Row]) -> list[str]:
    header = ["table", "classifier", "raw", PARTNERS["identifying"]]
    header += [f"{PARTNERS[partner]}, l = {length}" for partner in LEARNERS for length in L]
    body = []
    for name, title in TABLES.items():
        for model, words in MODELS.items():
            own = where(rows, table=name, model=model)
            raw = mean(own, "error", partner="original")
            shown = [f"{raw:.2f}"]
            for partner, length in [("identifying", 0), *((p, length) for p in LEARNERS for length in L)]:
                error = mean(own, "error", partner=partner, l=length)
                left_out = 100 * mean(own, "n_suppressed", partner=partner, l=length) / mean(own, "n_train")
                note = f", {left_out:.0f}% suppressed" if left_out >= 0.5 else ""
                shown.append(f"{error:.2f} ({signed(error - raw)}){note}")
            body.append([title, words, *shown])
    return table(header, body, n_words=2)


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for model, words in MODELS.items():
        for partner in LEARNERS:
            costs, beats = [], []
            for name in TABLES:
                of_table = where(rows, table=name, model=model)
                for length in L:
                    error = mean(of_table, "error", partner=partner, l=length)
                    costs.append(error - mean(of_table, "error", partner="original"))
                    beats.append(error < mean(of_table, "error", partner="identifying"))
            yield (
                f"{words.capitalize()}, {PARTNERS[partner]}: {signed(sum(costs) / len(costs))} points of error against "
                f"raw records on average (from {signed(min(costs))} to {signed(max(costs))}); better than leaving the "
                f"sensitive column out in {sum(beats)} of {len(beats)} rows."
            )


STYLES = {
    "pruned": Style("#d55e00", "circle", 2.2),
    "all candidates": Style("#0072b2", "square", 2.2),
    "candidates, learned weights": Style("#009e73", "diamond", 2.2),
    "raw records": Style("#1f2328", "", 1.2, "6 3"),
    "without the sensitive column": Style("#7a7a7a", "", 1.2, "2 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw the errors over l."""
    panels = []
    for name, title in TABLES.items():
        for model, words in MODELS.items():
            own = where(rows, table=name, model=model)
            lines = {
                PARTNERS[partner]: [(length, mean(own, "error", partner=partner, l=length)) for length in L]
                for partner in LEARNERS
            }
            levels = {PARTNERS[p]: mean(own, "error", partner=p) for p in ("original", "identifying")}
            panels.append(Panel(f"{title}: {words}", lines, levels, axis="l"))
    return {"beyond-anatomy.svg": draw(panels, STYLES, columns=3, label="Error in percent over l for every classifier")}


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_anatomy",
    by=("part", "table", "n_sensitive", "model", "partner", "l", "seed"),
    keys=KEYS,
    run=one_by_one(run),
    together=("table", "seed"),
    views={"classifiers": found(KEYS, findings, charts)},
    documents=documents("beyond-anatomy", KEYS, page, charts),
)
