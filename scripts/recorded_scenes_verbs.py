# SPDX-License-Identifier: Apache-2.0
"""Recorded scenes of the other verbs: minimize, anatomize, measure, attack and audit, wherever the table is."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import sfumato
from recorded_plain import SkippedSceneError, rounded, sorted_records
from recorded_scenes_groups import Parts, plain_types, spark_session, written
from recorded_tables import adult, coded_adult, labels, n_threads, nursery, people
from sfumato import (
    AdversarialMinimizer,
    Anatomizer,
    AptMinimizer,
    FeatureSelectionMinimizer,
    IterativeMinimizer,
    MondrianAnonymizer,
    MutualInformationMinimizer,
    PrivacyAwareTree,
    UniformMinimizer,
    attack,
)

SCENES: dict[str, Callable[[], Parts]] = {}
QUASI = ["age", "marital-status", "race", "sex"]


def scene(name: str) -> Callable[[Callable[[], Parts]], Callable[[], Parts]]:
    """Add a function to the scenes."""

    def add(function: Callable[[], Parts]) -> Callable[[], Parts]:
        SCENES[name] = function
        return function

    return add


# -- minimizing ----------------------------------------------------------------------------------------------------


def exports_of(generalization: Any, frame: Any, name: str) -> Parts:
    """Return a generalization, everything it can be exported as, and what it makes of a table."""
    parts: Parts = {
        f"{name}: document": generalization.to_json(),
        f"{name}: described": str(generalization.describe()),
        f"{name}: form": generalization.to_form(title="Questions", action="https://example.org/answers"),
        f"{name}: javascript": generalization.to_javascript(),
        f"{name}: fingerprint": generalization.fingerprint,
    }
    table = plain_types(pa.Table.from_pandas(frame, preserve_index=False) if hasattr(frame, "iloc") else frame)
    for output in ("labels", "codes"):
        parts[f"{name}: schema of {output}"] = generalization.to_json_schema(output)
        for dialect in ("postgresql", "duckdb", "spark"):
            parts[f"{name}: {dialect} of {output}"] = generalization.to_sql(dialect, table="people", output=output)
        expressions = generalization.to_polars(output)
        parts[f"{name}: polars of {output}"] = pl.from_arrow(table).with_columns(expressions)
    for output in ("codes", "labels", "representatives"):
        parts[f"{name}: {output}"] = generalization.transform(frame, output)
    return parts


@scene("minimize/adult")
def _() -> Parts:
    """Return the generalizations of every minimizer that needs no network."""
    frame = adult(1000)
    X, y = frame[["age", "education-num", "marital-status", "race", "sex", "hours-per-week"]], labels(frame)
    common = {"personal": ["race", "sex"], "random_state": 0, "n_jobs": n_threads()}
    tree = DecisionTreeClassifier(max_depth=5, random_state=0)
    parts: Parts = {}
    for minimizer in (
        PrivacyAwareTree(0.5, 12, min_samples_leaf=30, **common),
        UniformMinimizer(3, **common),
        FeatureSelectionMinimizer(3, **common),
        AptMinimizer(0.98, max_depth=5, **common),
        IterativeMinimizer(0.02, n_buckets=3, estimator=tree, **common),
    ):
        name = type(minimizer).__name__
        minimizer.fit(X, y)
        parts |= exports_of(minimizer.generalization_, X, name)
    return parts


@scene("minimize/people")
def _() -> Parts:
    """Return generalizations of dates, decimals, booleans and missing values."""
    table = people().drop_columns(["person", "target", "wage"])
    y = np.array(people().column("target").to_pylist())
    parts: Parts = {}
    for minimizer in (
        PrivacyAwareTree(0.3, 10, min_samples_leaf=20, personal=["illness"], random_state=0),
        UniformMinimizer(4, personal=["illness"], random_state=0, output="labels"),
    ):
        minimizer.fit(table, y)
        parts |= exports_of(minimizer.generalization_, table, type(minimizer).__name__)
    return parts


@scene("minimize/networks")
def _() -> Parts:
    """Return the generalizations that networks learn."""
    if importlib.util.find_spec("torch") is None:
        raise SkippedSceneError("torch is not installed")
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    frame = adult(600)
    X, y = frame[["age", "marital-status", "race", "sex"]], labels(frame)
    parts: Parts = {}
    try:
        for kind in (AdversarialMinimizer, MutualInformationMinimizer):
            own = kind(0.3, n_buckets=3, epochs=3, personal=["race", "sex"], random_state=0, n_jobs=1, device="cpu")
            parts[kind.__name__] = own.fit(X, y).generalization_.to_json()
    finally:
        torch.set_num_threads(before)
    return parts


@scene("minimize/sweep")
def _() -> Parts:
    """Return the points of a sweep, its picture, and the coarsest generalization that is good enough."""
    frame = adult(800)
    X, y = frame[["age", "education-num", "race", "sex"]], labels(frame)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    minimizers = [PrivacyAwareTree(min_samples_leaf=20, personal=["race", "sex"]), UniformMinimizer(random_state=0)]
    swept = sfumato.sweep_minimizers(
        minimizers, X, y, grid=[{"alpha": [0.2, 0.7], "max_leaves": [3, 8]}, {"n_buckets": [1, 3]}],
        estimator=tree, n_jobs=n_threads(),
    )  # fmt: skip
    chosen = sfumato.coarsest_generalization(
        X, y, max_loss=0.02, minimizer=minimizers[0], grid={"alpha": [0.2, 0.7]}, estimator=tree
    )
    return {
        "points": swept.to_frame(),
        "picture": swept.plot(),
        "choices": [swept.knee().parameters, swept.coarsest(0.02).parameters, swept.hypervolume()],
        "coarsest": getattr(chosen, "generalization", chosen).to_json(),
    }


@scene("minimize/files")
def _() -> Parts:
    """Return Parquet files that a generalization was applied to."""
    from sfumato import parquet

    table = people().drop_columns(["person", "wage"])
    own = UniformMinimizer(4, random_state=0).fit(
        table.drop_columns(["target"]), np.array(table.column("target").to_pylist())
    )
    parts: Parts = {}
    for output in ("codes", "labels", "representatives"):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            source = written(table, folder)
            done = parquet.transform(
                own.generalization_, source, folder / "out.parquet", output=output, drop=["target"]
            )
            parts[output] = [done, pq.read_table(folder / "out.parquet")]
    return parts


# -- anatomizing ---------------------------------------------------------------------------------------------------

ANATOMIES: dict[str, dict[str, Any]] = {
    "one column": {"l": 3, "sensitive": "illness"},
    "several columns": {"l": 2, "sensitive": ["illness", "town"], "suppression_limit": 0.5},
    "one table": {"l": 2, "sensitive": ["illness", "town"], "joint": True, "suppression_limit": 0.5},
    "at random": {"l": 2, "sensitive": "illness", "assignment": "random", "group": "number"},
}


def _anatomizer(name: str) -> Anatomizer:
    return Anatomizer(random_state=3, identifiers=["person"], **ANATOMIES[name])


@scene("anatomize/memory")
def _() -> Parts:
    """Return both tables in every kind of frame, their files, and what they are joined to."""
    parts: Parts = {}
    for name in ANATOMIES:
        for kind, frame in {
            "pyarrow": people(), "pandas": people().to_pandas(), "polars": pl.from_arrow(people()),
        }.items():  # fmt: skip
            own = _anatomizer(name)
            found, rows = own.fit_transform_with_rows(frame)
            parts[f"{name}, {kind}: identifying"] = found.identifying
            is_one = not isinstance(found.sensitive, tuple)
            parts[f"{name}, {kind}: sensitive"] = found.sensitive if is_one else list(found.sensitive)
            parts[f"{name}, {kind}: numbers"] = [own.n_groups_, own.n_suppressed_, own.group_sizes_, rows]
        with tempfile.TemporaryDirectory() as temporary:
            found.save(Path(temporary) / "out")
            parts[f"{name}: files"] = {
                path.name: path.read_text(encoding="utf-8") if path.suffix != ".parquet" else pq.read_table(path)
                for path in sorted((Path(temporary) / "out").iterdir())
            }
        parts[f"{name}: joined"] = found.join()
    return parts


@scene("anatomize/parquet")
def _() -> Parts:
    """Return both files."""
    from sfumato import parquet

    parts: Parts = {}
    for name in ANATOMIES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            done = parquet.anatomize(_anatomizer(name), written(people(), folder), folder / "out")
            for path in sorted((folder / "out").iterdir()):
                is_table = path.suffix == ".parquet"
                parts[f"{name}: {path.name}"] = pq.read_table(path) if is_table else path.read_text(encoding="utf-8")
            parts[f"{name}: numbers"] = [done.n_records, done.n_groups, done.n_suppressed, done.diversity]
    return parts


@scene("spark/anatomies")
def _() -> Parts:
    """Return both tables, sorted."""
    session = spark_session()
    from sfumato import spark

    made = spark.anatomize(_anatomizer("one column"), session.createDataFrame(people()).coalesce(2))
    return {
        "identifying": sorted_records(made.identifying.toArrow()),
        "sensitive": sorted_records(made.sensitive.toArrow()),
        "numbers": [made.n_records, made.n_groups, made.n_suppressed],
    }


@scene("anatomize/classifiers")
def _() -> Parts:
    """Return what models trained on anatomies predict."""
    frame = adult(900)
    X, y = frame[["age", "race", "sex", "hours-per-week"]], labels(frame)
    tree = DecisionTreeClassifier(max_depth=5, random_state=0)
    parts: Parts = {}
    for kind in (sfumato.BucketClassifier, sfumato.PrunedClassifier):
        own = kind(tree, 2, sensitive="sex", suppression_limit=1.0, random_state=0)
        parts[kind.__name__] = own.fit(X[:600], y[:600]).predict_proba(X[600:])
    return parts


# -- measuring -----------------------------------------------------------------------------------------------------


def _measured(measure: Callable[..., Any], table: Any, population: Any) -> Parts:
    """Return measurements in every way there is to measure; the caller says of what."""
    secret = ["illness"]
    quasi = ["age", "town", "is_member"]
    hierarchy = sfumato.Hierarchy.from_mapping({"ill": ["cold", "flu", "gout"], "well": ["none"]})
    ways: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "plain": ((quasi, secret), {}),
        "wildcards": ((quasi, secret), {"missing": "wildcard"}),
        "unit": ((["town", "is_member"], secret), {"unit": "person"}),
        "population": ((["town", "is_member"], secret), {"population": population}),
        "number of people": ((quasi, secret), {"population": 10_000}),
        "hierarchy": ((["town"], secret), {"hierarchies": {"illness": hierarchy}}),
        "several": ((["age"], ["illness", "town"]), {}),
        "dates": ((["born", "seen", "score"], []), {}),
    }
    # Sums of fractions are added up in the order of groups, which differs between memory, files and Spark.
    return {name: rounded(measure(table, *given, **more).to_dict()) for name, (given, more) in ways.items()}


@scene("measure/memory")
def _() -> Parts:
    """Return measurements of tables in memory, exactly."""
    parts = _measured(sfumato.measure, people(), people(900, seed=11))
    weights = np.random.default_rng(0).integers(1, 40, 400).astype(float)
    parts["weights"] = sfumato.measure(people(), ["age", "town"], ["illness"], weights=weights).to_dict()
    parts["adult"] = sfumato.measure(adult(), QUASI, ["income"]).to_dict()
    parts["nursery"] = sfumato.measure(nursery(), list(nursery().columns[:4]), ["health"]).to_dict()
    released = MondrianAnonymizer(10, quasi_identifiers=QUASI, n_jobs=n_threads()).fit_transform(adult())
    parts["released"] = sfumato.measure(released, QUASI, ["income", "occupation"]).to_dict()
    parts["polars"] = sfumato.measure(pl.from_arrow(people()), ["age", "town"], ["illness"]).to_dict()
    return parts


@scene("measure/parquet")
def _() -> Parts:
    """Return measurements of files, in one and in pieces."""
    from sfumato import parquet

    parts: Parts = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source, others = written(people(), folder / "a"), written(people(900, seed=11), folder / "b")
        for how, most_held in {"in one": 10**6, "in pieces": 100}.items():

            def measure(*given: Any, most_held: int = most_held, **more: Any) -> Any:
                return parquet.measure(*given, most_held=most_held, **more)

            parts |= {f"{how}, {name}": found for name, found in _measured(measure, source, others).items()}
    return parts


@scene("spark/measurements")
def _() -> Parts:
    """Return measurements by Spark."""
    session = spark_session()
    from sfumato import spark

    table = session.createDataFrame(plain_types(people())).coalesce(2).cache()
    given = (["age", "town", "is_member"], ["illness"])
    return {
        "plain": rounded(spark.measure(table, *given).to_dict()),
        "wildcards": rounded(spark.measure(table, *given, missing="wildcard", ranking=False).to_dict()),
        "unit": rounded(spark.measure(table, ["town"], ["illness"], unit="person", ranking=False).to_dict()),
    }


# -- attacking -----------------------------------------------------------------------------------------------------


@scene("attack/releases")
def _() -> Parts:
    """Return the attacks on released tables, on ranges and on typical values."""
    frame = adult()[[*QUASI, "occupation", "income"]]
    control = adult(2200)[[*QUASI, "occupation", "income"]].iloc[1600:].reset_index(drop=True)
    parts: Parts = {}
    for representative in ("phantom", "range", "bounds", "sample"):
        own = MondrianAnonymizer(
            10, quasi_identifiers=QUASI, representative=representative, random_state=0, n_jobs=n_threads()
        )
        released = own.fit(frame).release(frame, shuffle=False).table
        parts[f"{representative}: singling out"] = attack.single_out_of_release(
            frame, released, QUASI, unchanged=["occupation"], control=control, n_attempts=200
        )
        parts[f"{representative}: linking"] = attack.link_through_release(
            frame, released, QUASI[:2], QUASI[2:], control=control, n_targets=200
        )
        parts[f"{representative}: inference"] = attack.infer_from_release(
            frame, released, QUASI, "income", control=control, n_targets=200
        )
        if representative != "bounds":
            parts[f"{representative}: row order"] = attack.match_by_row_order(
                frame.sort_values("age", ignore_index=True), released, QUASI
            )
        parts[f"{representative}: membership"] = attack.find_members_of_release(frame, released, QUASI, control=control)
        parts[f"{representative}: predicates"] = attack.single_out_by_predicates(
            frame, released, QUASI, control=control, unchanged=["occupation"], n_attempts=100
        )
        if representative in ("range", "bounds"):
            parts[f"{representative}: downcoding"] = attack.downcode_release(frame, released, QUASI, control=control)
    return parts


@scene("attack/models")
def _() -> Parts:
    """Return membership and attribute attacks on a model that has learned its records by heart."""
    X, y = coded_adult()[:800], labels(adult())[:800]
    is_member = np.arange(800) < 400
    model = DecisionTreeClassifier(max_depth=12, random_state=0).fit(X[:400], y[:400])
    found = attack.attack_membership(
        model, X, y, is_member, attacks=("threshold", "random_forest", "lira", "rmia"), n_shadows=6,
        estimator=DecisionTreeClassifier(max_depth=12, random_state=0), random_state=0, n_jobs=n_threads(),
    )  # fmt: skip
    # A forest of several threads adds up its trees in the order in which they are done: last digits differ.
    parts: Parts = {f"membership, {name}": rounded(own) for name, own in found.items()}
    frame = pd.DataFrame(X[:, :7], columns=[f"c{place}" for place in range(7)])
    model = DecisionTreeClassifier(max_depth=8, random_state=0).fit(frame[:400], y[:400])
    guessed = attack.attack_attribute(
        model, frame[:400], y[:400], "c6", control=(frame[400:], y[400:]), random_state=0, n_jobs=n_threads()
    )
    return parts | {f"attribute, {name}": own for name, own in guessed.items()}


@scene("attack/generalizations")
def _() -> Parts:
    """Return the attacks on minimized records."""
    frame = adult(1200)[["age", "education-num", "race", "sex", "marital-status"]]
    y = labels(adult(1200))
    first = PrivacyAwareTree(0.5, 8, min_samples_leaf=40, personal=["race", "sex"]).fit(frame, y).generalization_
    second = UniformMinimizer(3, personal=["race", "sex"], random_state=0).fit(frame, y).generalization_
    samples = attack.Samples(frame[:600], frame[600:800], frame[800:])
    settings = attack.FamilySettings(adversaries=("table", "boosting"), n_jobs=n_threads())
    personal = ["race", "sex"]
    parts: Parts = {
        "reconstruct": attack.reconstruct(first, samples, personal, settings=settings),
        "with non-personal": attack.reconstruct_with_non_personal(first, samples, personal, settings=settings),
        "with some personal": attack.reconstruct_with_some_personal(first, samples, personal, settings=settings),
        "leaving one out": attack.reconstruct_leaving_one_out(first, samples, personal, settings=settings),
        "from breaches": attack.reconstruct_from_breaches([first, second], samples, personal, settings=settings),
        "risk": attack.reconstruction_risk(first, frame[:600], frame[600:800], frame[800:], personal, quick=True),
        "singling out": attack.single_out(second, frame[800:], prior=frame[:600]),
        "linking": attack.link_records(
            second, frame[800:], frame[800:], ["age", "race"], ["sex", "marital-status"], control=frame[:400]
        ),
    }
    campaign = attack.attack_generalization(first, samples, personal, settings=settings)
    return parts | {f"campaign, {name}": own for name, own in campaign.items()}


@scene("attack/anatomies")
def _() -> Parts:
    """Return the attacks on anatomized tables."""
    random = np.random.default_rng(0)
    town = random.integers(0, 4, 900)
    ill = np.where(random.random(900) < 0.7, town, random.integers(0, 4, 900)).astype(str)
    frame = pd.DataFrame({"town": town.astype(str), "age": random.integers(18, 90, 900), "ill": ill})
    parts: Parts = {}
    for assignment in ("largest", "random"):
        own = Anatomizer(2, sensitive="ill", assignment=assignment, random_state=0)
        tables, rows = own.fit_transform_with_rows(frame)
        truth = frame["ill"].to_numpy()[rows]
        parts[f"{assignment}: deFinetti"] = attack.definetti(tables.identifying, tables.sensitive, truth)
        parts[f"{assignment}: minimality"] = attack.minimality(
            tables.identifying, tables.sensitive, truth, l=2, columns=["town"]
        )
    return parts


# -- auditing ------------------------------------------------------------------------------------------------------


def _pipeline(X: pd.DataFrame, model: Any) -> Any:
    """Return a model of a frame with categories."""
    names = [name for name in X.columns if X[name].dtype.kind not in "iuf"]
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), names), remainder="passthrough")
    return make_pipeline(encoder, model)


@scene("audit/frontier")
def _() -> Parts:
    """Return protections side by side."""
    from sfumato import frontier

    frame = adult(1000)
    X, y = frame[["age", "education-num", "race", "sex", "relationship"]], labels(frame)
    tree = _pipeline(X, DecisionTreeClassifier(max_depth=8, random_state=0))
    protections = {
        "k": [10, 40], "k-release": [10], "l": [2], "anatomy": [2], "uniform": UniformMinimizer(),
        "Mondrian": MondrianAnonymizer(20, quasi_identifiers=["age", "race", "education-num"]),
    }  # fmt: skip
    found = frontier(
        X, y, tree, protections,
        quasi_identifiers=["age", "race", "education-num"], sensitive="relationship", secrets=["sex"], subgroups="sex",
        attacks=("threshold", "release_membership", "inference"), n_splits=2, n_jobs=n_threads(),
    )  # fmt: skip
    return {row.name: row for row in found.rows} | {"numbers": [found.metric, found.blind, found.n_train]}


@scene("audit/intersections")
def _() -> Parts:
    """Return what two releases of the same people reveal together."""
    from sfumato.attack.intersection import intersect_releases

    frame = adult()[[*QUASI, "income"]].assign(key=np.arange(len(adult())))
    released = [
        MondrianAnonymizer(k, quasi_identifiers=QUASI, keep=["key"], n_jobs=n_threads()).fit_transform(frame)
        for k in (8, 13)
    ]
    names = (QUASI, QUASI)
    return {
        "by row": intersect_releases(*released, names).to_dict(),
        "by key": intersect_releases(*released, names, sensitive="income", key="key").to_dict(),
    }
