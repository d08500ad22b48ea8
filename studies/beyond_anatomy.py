# SPDX-License-Identifier: Apache-2.0
"""Other classifiers on anatomized data, and several sensitive columns at once.

Mancuhan and Clifton name both as future work: classifiers other than support vector machines, and more than one
sensitive attribute. Trees, logistic regression and boosting learn from the pruned table and from all candidates; then
one to four of Adult's columns are sensitive together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from studies.charts import Panel, Style, draw
from studies.rows import Row, documents, found, has, how_it_was_run, mean, one_by_one, signed, table, where
from studies.runner import Experiment

TABLES = {
    "adult": "Adult",
    "census": "Census-Income",
    "bank": "Bank Marketing",
    "fars": "FARS 2001",
}
MODELS = {"tree": "decision tree", "logistic": "logistic regression", "boosting": "gradient boosting"}
SENSITIVE = {
    1: ("education",),
    2: ("education", "occupation"),
    3: ("education", "occupation", "marital-status"),
    4: ("education", "occupation", "marital-status", "workclass"),
}
"""Of Adult, for the second part: one to four columns."""

L = (2, 3, 4)
L_OF_SEVERAL = (2, 3)
L_OF_GROUPS = 2
"""Of entropy l-diverse groups; Adult's workclass as a whole does not reach 3."""

SEEDS = (0, 1, 2)
MOST_TRAINED, MOST_TESTED = 4_800, 10_000
PARTNERS = {
    "original": "raw records",
    "identifying": "without the sensitive columns",
    "pruned": "pruned",
    "bucket": "all candidates",
    "diverse": "l-diverse groups, guided",
}
REDUCTIONS = (
    f"{MOST_TRAINED:,} training and {MOST_TESTED:,} test records of each table, drawn at random; the paper "
    "has 10 folds of all records, as the page on support vector machines.",
    "One-hot coding; a decision tree with at least 20 records in a leaf, logistic regression on scaled columns, "
    "histogram gradient boosting.",
    "Tables, classes and sensitive columns as on the page on support vector machines; for several sensitive columns "
    f"Adult with {', '.join(SENSITIVE[4])}, in this order.",
    "*l-diverse groups, guided*: the same sensitive columns, k = 10 and entropy l-diversity of each beside it, groups "
    "guided by the model trained on raw records; the identifying columns are generalized, the sensitive ones stay.",
    "All candidates are not run where one group holds most of the records (three columns with l = 3, and four): every "
    "record would get thousands of rows.",
    "An l that needs records to be suppressed suppresses them, as in the paper; FARS has four sensitive values.",
)


def keys() -> Iterator[Row]:
    """List the cells of both parts."""
    for seed in SEEDS:
        for name in TABLES:
            for model in MODELS:
                for partner, length in _partners(L, ("pruned", "bucket")):
                    yield _key("classifiers", name, 1, model, partner, length, seed)
        for n_sensitive in SENSITIVE:
            for model in ("logistic", "boosting"):
                for partner, length in _partners_of_several(n_sensitive):
                    yield _key("several", "adult", n_sensitive, model, partner, length, seed)


def _partners(lengths: tuple[int, ...], protected: tuple[str, ...]) -> list[tuple[str, int]]:
    every = [("original", 0), ("identifying", 0), *((partner, length) for partner in protected for length in lengths)]
    return [(partner, length) for partner, length in every if partner != "diverse" or length == L_OF_GROUPS]


def _partners_of_several(n_sensitive: int) -> list[tuple[str, int]]:
    """Leave out the candidates where one group holds most of the records: each would get thousands of rows."""
    every = _partners(L_OF_SEVERAL, ("pruned", "bucket", "diverse"))
    return [(partner, length) for partner, length in every if partner != "bucket" or n_sensitive * length <= 6]


def _key(part: str, name: str, n_sensitive: int, model: str, partner: str, length: int, seed: int) -> Row:
    return {
        "part": part, "table": name, "n_sensitive": n_sensitive, "model": model, "partner": partner, "l": length,
        "seed": seed,
    }  # fmt: skip


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Train one partner of the comparison and count its errors on raw records.

    `n_records` in the key, where there is one, limits the training records: for trying out.
    """
    from sfumato.anatomize import BucketClassifier
    from studies.anatomy_partners import train_partners

    most = (None, None) if paper_scale else (key.get("n_records", MOST_TRAINED), MOST_TESTED)
    X_train, X_test, y_train, y_test, of_table = _split(key["table"], key["seed"], *most)
    sensitive = [of_table] if key["part"] == "classifiers" else list(SENSITIVE[key["n_sensitive"]])
    estimator = _model(key["model"], key["seed"])
    if key["partner"] == "diverse":
        return _diverse(key, X_train, X_test, y_train, y_test, sensitive)
    if key["partner"] == "bucket":
        fitted = BucketClassifier(
            estimator, key["l"], sensitive=sensitive, suppression_limit=1.0, random_state=key["seed"]
        ).fit(X_train, y_train)
        error, n_suppressed, n_groups = 1 - fitted.score(X_test, y_test), fitted.n_suppressed_, fitted.n_groups_
    else:
        partners = train_partners(
            estimator, X_train, y_train, l=max(2, key["l"]), sensitive=sensitive, coding="one-hot",
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


def _diverse(key: Mapping[str, Any], X_train: Any, X_test: Any, y_train: Any, y_test: Any, sensitive: list[str]) -> Row:
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    from sfumato import AnonymizedClassifier, LDiversity, ModelGuidedAnonymizer
    from studies.models import encoder

    names = [name for name in X_train.columns if name not in sensitive]
    criteria: list[Any] = [LDiversity(float(key["l"]), column, kind="entropy") for column in sensitive]
    anonymizer = ModelGuidedAnonymizer(10, quasi_identifiers=names, criteria=criteria, representative="model", n_jobs=1)
    model = make_pipeline(encoder(X_train, one_hot=True), clone(_model(key["model"], key["seed"])))
    fitted = AnonymizedClassifier(model, anonymizer=anonymizer, learn_from="points").fit(X_train, y_train)
    return {
        "error": round(100 * float(1 - fitted.score(X_test, y_test)), 3),
        "n_suppressed": 0,
        "n_train": len(y_train),
        "n_groups": int(fitted.anonymizer_.n_groups_),
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
        "# Other classifiers and several sensitive columns",
        "",
        "Asked for by Mancuhan and Clifton (*Support vector classification with l-diversity*, section 6): other",
        "classifiers for anatomized data, generalization-based l-diversity, and several sensitive attributes. Error in",
        "percent on raw test records; in brackets the change against raw training records. *Pruned*: one candidate per",
        "record. *All candidates*: every candidate, weighted.",
        "",
        "![error of every classifier over l](beyond-anatomy.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
        "## Other classifiers, one sensitive column",
    ]
    lines += _tables(where(rows, part="classifiers"), L, ("pruned", "bucket"))
    lines += ["## Adult with several sensitive columns", "", "The first one to four of "
              f"{', '.join(SENSITIVE[4])}; each is l-diverse on its own."]  # fmt: skip
    lines += _tables(where(rows, part="several"), L_OF_SEVERAL, ("pruned", "bucket", "diverse"))
    studies = ("beyond-anatomy-classifiers", "beyond-several-sensitive-columns")
    lines += how_it_was_run(rows, "beyond-anatomy", REDUCTIONS, studies)
    return "\n".join(lines) + "\n"


def _tables(rows: list[Row], lengths: tuple[int, ...], protected: tuple[str, ...]) -> list[str]:
    header = ["table", "sensitive", "classifier", "raw", PARTNERS["identifying"]]
    header += [f"{PARTNERS[partner]}, l = {length}" for partner in protected for length in lengths]
    body = []
    places = dict.fromkeys((row["table"], row["n_sensitive"], row["model"]) for row in rows)
    for name, n_sensitive, model in sorted(
        places, key=lambda at: (list(TABLES).index(at[0]), at[1], list(MODELS).index(at[2]))
    ):
        own = where(rows, table=name, n_sensitive=n_sensitive, model=model)
        raw = mean(own, "error", partner="original")
        shown = [f"{raw:.2f}"]
        for partner, length in [("identifying", 0), *((p, length) for p in protected for length in lengths)]:
            if not has(own, partner=partner, l=length):
                shown.append("")
                continue
            error = mean(own, "error", partner=partner, l=length)
            left_out = 100 * mean(own, "n_suppressed", partner=partner, l=length) / mean(own, "n_train")
            shown.append(
                f"{error:.2f} ({signed(error - raw)})" + (f", {left_out:.0f}% suppressed" if left_out >= 0.5 else "")
            )
        body.append([TABLES[name], str(n_sensitive), MODELS[model], *shown])
    return table(header, body, n_words=3)


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions of both parts in words."""
    yield from findings_on_classifiers(rows)
    yield from findings_on_several(rows)


def findings_on_classifiers(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions of the first part in words."""
    own = where(rows, part="classifiers")
    for model, words in MODELS.items():
        for partner in ("pruned", "bucket"):
            costs, beats = [], []
            for name in TABLES:
                of_table = where(own, table=name, model=model)
                for length in L:
                    error = mean(of_table, "error", partner=partner, l=length)
                    costs.append(error - mean(of_table, "error", partner="original"))
                    beats.append(error < mean(of_table, "error", partner="identifying"))
            yield (
                f"{words.capitalize()}, {PARTNERS[partner]}: {signed(sum(costs) / len(costs))} points of error against "
                f"raw records on average (from {signed(min(costs))} to {signed(max(costs))}); better than leaving the "
                f"sensitive column out in {sum(beats)} of {len(beats)} rows."
            )


def findings_on_several(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions of the second part in words."""
    several = where(rows, part="several")
    for partner, length in [(p, n) for p, n in _partners(L_OF_SEVERAL, ("pruned", "bucket", "diverse")) if n]:
        parts = []
        for n_sensitive in SENSITIVE:
            if not has(several, n_sensitive=n_sensitive, partner=partner, l=length):
                continue
            costs = [
                mean(several, "error", n_sensitive=n_sensitive, model=model, partner=partner, l=length)
                - mean(several, "error", n_sensitive=n_sensitive, model=model, partner="original")
                for model in ("logistic", "boosting")
            ]
            left_out = mean(several, "n_suppressed", n_sensitive=n_sensitive, partner=partner, l=length)
            share = 100 * left_out / mean(several, "n_train")
            note = f" ({share:.0f}% suppressed)" if share >= 0.5 else ""
            parts.append(f"{signed(sum(costs) / len(costs))} with {n_sensitive}{note}")
        yield (
            f"Several sensitive columns, {PARTNERS[partner]}, l = {length}, points of error beside raw records: "
            f"{', '.join(parts)}."
        )
    parts = []
    for n_sensitive in SENSITIVE:
        costs = [
            mean(several, "error", n_sensitive=n_sensitive, model=model, partner="identifying")
            - mean(several, "error", n_sensitive=n_sensitive, model=model, partner="original")
            for model in ("logistic", "boosting")
        ]
        parts.append(f"{signed(sum(costs) / len(costs))} with {n_sensitive}")
    yield f"Leaving the sensitive columns out instead: {', '.join(parts)}."
    parts = []
    for n_sensitive in SENSITIVE:
        for length in L_OF_SEVERAL:
            at = {"n_sensitive": n_sensitive, "partner": "pruned", "l": length}
            n_kept = mean(several, "n_train", **at) - mean(several, "n_suppressed", **at)
            parts.append(
                f"{n_sensitive} with l = {length}: {mean(several, 'n_groups', **at):,.0f} groups of {n_kept:,.0f}"
            )
    yield (
        f"What anatomy makes of several sensitive columns (groups of records that are kept): {'; '.join(parts)}. Where "
        "a few groups hold nearly all records, who has which value is well hidden, and hardly anything can be learned "
        "from the sensitive columns."
    )


STYLES = {
    "pruned": Style("#d55e00", "circle", 2.2),
    "all candidates": Style("#0072b2", "square", 2.2),
    "raw records": Style("#1f2328", "", 1.2, "6 3"),
    "without the sensitive columns": Style("#7a7a7a", "", 1.2, "2 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw the errors of the first part over l."""
    panels = []
    for name, title in TABLES.items():
        for model, words in MODELS.items():
            own = where(rows, part="classifiers", table=name, model=model)
            lines = {
                PARTNERS[partner]: [(length, mean(own, "error", partner=partner, l=length)) for length in L]
                for partner in ("pruned", "bucket")
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
    views={
        "classifiers": found([key for key in KEYS if key["part"] == "classifiers"], findings_on_classifiers, charts),
        "several": found([key for key in KEYS if key["part"] == "several"], findings_on_several),
    },
    documents=documents("beyond-anatomy", KEYS, page, charts),
)
