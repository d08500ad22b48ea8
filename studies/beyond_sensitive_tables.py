# SPDX-License-Identifier: Apache-2.0
"""Several sensitive columns: a table for each, one for all, or slices; what is suppressed, given away and learned.

Four parts. *Suppression*: how many records stay, beside the minimum of the linear program and a greedy rule. *Places*:
l of every column, counted on the tables of memory, files, DuckDB and Spark. *Attacks*: what attackers guess who use all
tables together. *Learning*: errors of classifiers, all tuned alike, inside the data that each may see.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from studies.beyond_sensitive_tables_page import charts, findings_on, page
from studies.rows import Row, documents, found, one_by_one
from studies.runner import Experiment

COLUMNS = {
    "adult": ("education", "occupation", "marital-status", "workclass"),
    "census": ("education", "major_occupation_code", "marital_stat", "class_of_worker"),
}
"""Sensitive columns of each table: the first three, or all four."""

N_SENSITIVE = (3, 4)
L = (2, 3)
L_OF_GROUPS = 2
"""Of entropy l-diverse groups; Adult's workclass as a whole does not reach 3."""

DESIGNS = ("separate", "joint")
SEEDS = (0, 1, 2)
MOST_ATTACKED = 12_000
MOST_TRAINED, MOST_TESTED = 4_800, 10_000
N_KNOWN = 100
PLACES = ("memory", "files", "duckdb", "spark")
SEEDS_OF_LEARNING = (0, 1)
GRIDS: dict[str, dict[str, list[Any]]] = {"logistic": {"C": [0.03, 0.3, 3.0]}}
BY = ("part", "table", "n_sensitive", "l", "design", "learner", "model", "seed")


def keys() -> Iterator[Row]:
    """List the cells of all parts."""
    for seed in SEEDS:
        for table in COLUMNS:
            for n in N_SENSITIVE:
                for length in L:
                    for design in DESIGNS:
                        yield _key("suppression", table, n, length, design, seed=seed)
                    for design in (*DESIGNS, "sliced"):
                        yield _key("attacks", table, n, length, design, seed=seed)
                    for model in GRIDS if seed in SEEDS_OF_LEARNING else ():
                        for design in DESIGNS:
                            for learner in ("pruned", "even", "learned"):
                                yield _key("learning", table, n, length, design, learner, model, seed)
                        yield _key("learning", table, n, length, "sliced", "rows", model, seed)
                        if length == L_OF_GROUPS:
                            yield _key("learning", table, n, length, "diverse", "groups", model, seed)
                for model in GRIDS if seed in SEEDS_OF_LEARNING else ():
                    yield _key("learning", table, n, 0, "none", "identifying", model, seed)
            for model in GRIDS if seed in SEEDS_OF_LEARNING else ():
                yield _key("learning", table, 0, 0, "none", "original", model, seed)
    for design in DESIGNS:
        for place in PLACES:
            yield _key("places", "adult", 4, 3, design, place, seed=0)


def _key(
    part: str, table: str, n: int, length: int, design: str, learner: str = "-", model: str = "-", seed: int = 0
) -> Row:
    return dict(zip(BY, (part, table, n, length, design, learner, model, seed), strict=True))


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Run one cell; `n_records` in the key, where there is one, limits the records: for trying out."""
    parts = {"suppression": _suppression, "places": _places, "attacks": _attacks, "learning": _learning}
    return parts[key["part"]](key, paper_scale)


# -- data --------------------------------------------------------------------------------------------------------------


@lru_cache(2)
def _load(name: str) -> tuple[Any, Any]:
    from studies.anatomy import load

    X, y, _ = load(name)
    texts = {column: X[column].astype(str) for column in X.columns if X[column].dtype.kind not in "iuf"}
    return X.assign(**texts).reset_index(drop=True), y.astype(str).to_numpy()


def _sample(key: Mapping[str, Any], most: int | None) -> Any:
    """Return some records with the class, which leaves beside the identifying columns."""
    X, y = _load(key["table"])
    frame = X.assign(target=y)
    most = min(len(frame), key.get("n_records") or most or len(frame))
    return frame.sample(most, random_state=key["seed"]).reset_index(drop=True)


def _secret(key: Mapping[str, Any], frame: Any) -> list[str]:
    wanted = COLUMNS[key["table"]][: key["n_sensitive"]]
    return [name for name in frame.columns if name in wanted]


def _anatomizer(key: Mapping[str, Any], secret: list[str]) -> Any:
    from sfumato import Anatomizer

    return Anatomizer(
        key["l"], sensitive=secret, joint=key["design"] == "joint", suppression_limit=1.0, random_state=key["seed"]
    )


# -- suppression -------------------------------------------------------------------------------------------------------


def _suppression(key: Mapping[str, Any], paper_scale: bool) -> Row:
    from sfumato.verification import diversity_of

    frame = _sample(key, None)
    secret = _secret(key, frame)
    made = _anatomizer(key, secret).fit_transform(frame)
    codes = np.column_stack([np.unique(frame[name], return_inverse=True)[1] for name in secret])
    sizes = [np.bincount(own.iloc[:, -1]) for own in made.sensitive_tables]
    return {
        "n_records": len(frame),
        "n_kept": made.n_records,
        "n_minimum": len(frame) - most_kept(codes, key["l"]),
        "n_greedy": len(frame) - greedy_kept(codes, key["l"]),
        "n_groups": [len(own) for own in sizes],
        "largest_group": int(max(own.max() for own in sizes)),
        "diversity": {
            name: diversity_of(own, own.columns[-1], name) for own in made.sensitive_tables for name in own.columns[:-1]
        },
    }


def most_kept(codes: Any, length: int) -> float:
    """Return how many records can stay, by the linear program over all combinations of values."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    kinds, sizes = np.unique(codes, axis=0, return_counts=True)
    before = np.concatenate(([0], np.cumsum(kinds.max(axis=0) + 1)))
    rows = (kinds + before[:-1]).ravel()
    of_kind = np.repeat(np.arange(len(kinds)), kinds.shape[1])
    has_value = csr_array((np.ones(len(rows)), (rows, of_kind)), shape=(before[-1], len(kinds))).toarray()
    bounds = np.stack([np.zeros(len(sizes)), sizes], axis=1)
    solved = linprog(-np.ones(len(sizes)), has_value - 1 / length, np.zeros(before[-1]), bounds=bounds)
    return float(-solved.fun)


def greedy_kept(codes: Any, length: int) -> int:
    """Return how many records stay if values that are too frequent lose records at random, column after column."""
    random, rows = np.random.default_rng(0), np.arange(len(codes))
    while len(rows):
        limit, stays = len(rows) // length, np.ones(len(rows), bool)
        for column in codes.T:
            values = column[rows]
            for value in np.flatnonzero(np.bincount(values[stays]) > limit):
                holders = np.flatnonzero(stays & (values == value))
                stays[random.permutation(holders)[limit:]] = False
        if stays.all():
            break
        rows = rows[stays]
    return len(rows)


# -- places ------------------------------------------------------------------------------------------------------------


def _places(key: Mapping[str, Any], paper_scale: bool) -> Row:
    """Anatomize the table where it lies, and count l of each column on what was written or returned."""
    import pyarrow as pa

    frame = _sample(key, None)
    secret, place = _secret(key, frame), key["learner"]
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with tempfile.TemporaryDirectory() as folder:
        tables, n_kept = _divided_at(place, _anatomizer(key, secret), table, Path(folder))
        least = {name: _least(own, name) for own in tables for name in own.column_names[:-1]}
    return {"n_records": len(frame), "n_kept": n_kept, "diversity": least}


def _divided_at(place: str, anatomizer: Any, table: Any, folder: Path) -> tuple[list[Any], int]:
    """Return the sensitive tables as Arrow tables, and the records that stay."""
    import pyarrow.parquet as pq

    if place == "memory":
        made = anatomizer.fit_transform(table)
        return list(made.sensitive_tables), made.n_records
    if place == "files":
        from sfumato import parquet

        pq.write_table(table, folder / "people.parquet")
        done = parquet.anatomize(anatomizer, folder / "people.parquet", folder / "out")
    elif place == "spark":
        return _divided_by_spark(anatomizer, table)
    else:
        import duckdb

        from sfumato.duckdb import anatomize

        done = anatomize(anatomizer, duckdb.connect().from_arrow(table), folder / "out")
    return [pq.read_table(path) for path in sorted(done.path.glob("sensitive*.parquet"))], done.n_records


def _divided_by_spark(anatomizer: Any, table: Any) -> tuple[list[Any], int]:
    """Divide a table with two workers of this machine and the driver's default memory."""
    import os
    import sys

    from pyspark.sql import SparkSession

    from sfumato.spark import anatomize

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are whatever python3 is
    builder = SparkSession.builder.master("local[2]").appName("sfumato study")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        session.sparkContext.setLogLevel("OFF")
        done = anatomize(anatomizer, session.createDataFrame(table))
        frames = done.sensitive if isinstance(done.sensitive, tuple) else (done.sensitive,)
        return [frame.toArrow() for frame in frames], done.n_records
    finally:
        session.stop()


def _least(table: Any, name: str) -> float:
    """Return the l of a column, counted in plain Python."""
    from collections import Counter

    groups, values = (table.column(own).to_pylist() for own in (table.column_names[-1], name))
    sizes, counts = Counter(groups), Counter(zip(groups, values, strict=True))
    return min(sizes[group] / count for (group, _), count in counts.items())


# -- attacks -----------------------------------------------------------------------------------------------------------


def _attacks(key: Mapping[str, Any], paper_scale: bool) -> Row:
    """Let attackers guess every sensitive column; what they got, by column and attack."""
    frame = _sample(key, None if paper_scale else MOST_ATTACKED)
    secret = _secret(key, frame)
    if key["design"] == "sliced":
        return _attacked_slices(key, frame, secret)
    from sfumato.attack import definetti_of_all, intersect_tables

    anatomized, rows = _anatomizer(key, secret).fit_transform_with_rows(frame)
    tables, truth = (anatomized.identifying, anatomized.sensitive), frame[secret].iloc[rows]
    found: dict[str, dict[str, Any]] = {name: {} for name in secret}
    for attack, n_known in (("definetti", 0), ("definetti, 100 known", N_KNOWN)):
        for name, result in zip(secret, definetti_of_all(*tables, truth, n_known=n_known), strict=True):
            found[name][attack] = _told(result)
    for name in secret:
        found[name]["intersection"] = _told(intersect_tables(*tables, truth, column=name))
        knowing = [intersect_tables(*tables, truth, column=name, known=[other]) for other in secret if other != name]
        found[name]["one value known"] = _told(max(knowing, key=lambda result: result.rate))
    return {"n_records": len(frame), "n_kept": anatomized.n_records, "attacks": found}


def _attacked_slices(key: Mapping[str, Any], frame: Any, secret: list[str]) -> Row:
    from sfumato import Slicer
    from sfumato.attack import definetti_of_all, match_slices

    slicer = Slicer(key["l"], sensitive=secret, suppression_limit=1.0, random_state=key["seed"])
    sliced, rows, bucket = slicer.fit_transform_with_rows(frame)
    people = frame.iloc[rows].reset_index(drop=True)
    # Whoever finds a person's bucket sees what an anatomy with that group shows.
    who = people.drop(columns=secret).assign(bucket=bucket)
    what = tuple(sliced.table[[name, "bucket"]] for name in secret)
    who = who.assign(**{f"bucket of {name}": bucket for name in secret}).drop(columns="bucket")
    found: dict[str, dict[str, Any]] = {name: {} for name in secret}
    for attack, n_known in (("definetti", 0), ("definetti, 100 known", N_KNOWN)):
        for name, result in zip(secret, definetti_of_all(who, what, people[secret], n_known=n_known), strict=True):
            found[name][attack] = _told(result)
    for name in secret:
        others = [other for other in secret if other != name]
        result = match_slices(people, sliced.table, sliced.column_groups, name, secrets=others)
        found[name]["matching"] = {**_told(result), "worst_chance": result.details["worst_chance"]}
    return {"n_records": len(frame), "n_kept": sliced.n_records, "n_buckets": sliced.n_buckets, "attacks": found}


def _told(result: Any) -> dict[str, Any]:
    kept = {name: getattr(result, name) for name in ("rate", "interval", "baseline", "control", "verdict")}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}


# -- learning ----------------------------------------------------------------------------------------------------------


def _learning(key: Mapping[str, Any], paper_scale: bool) -> Row:
    """Train one learner, with settings chosen inside what it may see, and count its errors on raw records."""
    from sklearn.linear_model import LogisticRegression

    X_train, X_test, y_train, y_test = split(key["table"], key["seed"], key.get("n_records"), paper_scale)
    estimator, grid = LogisticRegression(max_iter=300), GRIDS[key["model"]]
    secret = _secret(key, X_train)
    if key["design"] == "diverse":
        return _learned_from_groups(estimator, grid, secret, float(key["l"]), (X_train, y_train), (X_test, y_test))
    if key["design"] in ("none", "sliced"):
        return _learned_from_rows(key, estimator, grid, secret, (X_train, y_train), (X_test, y_test))
    from sfumato import BucketClassifier, PrunedClassifier

    settings: dict[str, Any] = {
        "l": key["l"], "sensitive": secret, "joint": key["design"] == "joint", "suppression_limit": 1.0, "cv": 3,
        "choose": {f"estimator__{name}": values for name, values in grid.items()}, "random_state": key["seed"],
    }  # fmt: skip
    if key["learner"] == "pruned":
        learner: Any = PrunedClassifier(estimator, **settings)
    else:
        learner = BucketClassifier(estimator, weights=key["learner"], max_candidates=9, **settings)
    learner.fit(X_train, y_train)
    chosen = {name.partition("__")[2]: value for name, value in learner.best_params_.items()}
    return _scored(learner, X_test, y_test, len(y_train) - learner.n_suppressed_, chosen)


def _learned_from_rows(
    key: Mapping[str, Any], estimator: Any, grid: dict[str, list[Any]], secret: list[str], train: Any, test: Any
) -> Row:
    from sklearn.model_selection import GridSearchCV

    from sfumato import Slicer
    from studies.anatomy_partners import train_partners

    X, y = train
    if key["design"] == "sliced":
        slicer = Slicer(key["l"], sensitive=secret, suppression_limit=1.0, random_state=key["seed"])
        sliced = slicer.fit_transform(X.assign(target=y)).table.drop(columns="bucket")
        X, y, secret = sliced.drop(columns="target"), sliced["target"].to_numpy(), []
    partner = "identifying" if key["learner"] == "identifying" else "original"
    search = GridSearchCV(estimator, grid, cv=3)
    own = train_partners(
        search, X, y, l=2, sensitive=secret or [X.columns[0]], coding="one-hot", partners=[partner]
    ).models[partner]  # fmt: skip
    return _scored(own, *test, len(y), own.model.best_params_)


def _learned_from_groups(
    estimator: Any, grid: dict[str, list[Any]], secret: list[str], length: float, train: Any, test: Any
) -> Row:
    """Train on a k-anonymous table whose groups are l-diverse in every sensitive column, guided by a raw model."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    from sfumato import AnonymizedClassifier, LDiversity, ModelGuidedAnonymizer
    from studies.models import encoder

    names = [name for name in train[0].columns if name not in secret]
    criteria: list[Any] = [LDiversity(length, column, kind="entropy") for column in secret]
    anonymizer = ModelGuidedAnonymizer(10, quasi_identifiers=names, criteria=criteria, representative="model", n_jobs=1)
    model = make_pipeline(encoder(train[0], one_hot=True), GridSearchCV(estimator, grid, cv=3))
    fitted = AnonymizedClassifier(model, anonymizer=anonymizer, learn_from="points").fit(*train)
    return _scored(fitted, *test, len(train[1]), fitted.estimator_[-1].best_params_)


def _scored(learner: Any, X: Any, y: Any, n_kept: int, chosen: dict[str, Any]) -> Row:
    error = 100 * float((learner.predict(X) != y).mean())
    return {"error": round(error, 3), "n_kept": int(n_kept), "chosen": chosen}


@lru_cache(1)
def split(name: str, seed: int, n_records: int | None, paper_scale: bool) -> tuple[Any, Any, Any, Any]:
    """Return training and test records and their classes."""
    from sklearn.model_selection import train_test_split

    X, y = _load(name)
    if paper_scale:
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)
    else:
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=n_records or MOST_TRAINED, test_size=MOST_TESTED, random_state=seed, stratify=y
        )
    return X_train.reset_index(drop=True), X_test.reset_index(drop=True), y_train, y_test


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_sensitive_tables",
    by=BY,
    keys=KEYS,
    run=one_by_one(run),
    together=("part", "table", "seed"),
    needs=lambda key: {"duckdb": ("duckdb",), "spark": ("pyspark",)}.get(key["learner"], ()),
    views={
        part: found([key for key in KEYS if key["part"] == part], findings_on(part), charts)
        for part in ("suppression", "attacks", "learning")
    },
    documents=documents("beyond-sensitive-tables", KEYS, page, charts),
)
