# SPDX-License-Identifier: Apache-2.0
"""Recorded scenes of anonymizers: partitions, training tables and releases, in memory, Parquet files and Spark."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import sfumato
from recorded_plain import SkippedSceneError, sorted_records, spelled
from recorded_tables import (
    ADULT_QUASI,
    PEOPLE_QUASI,
    adult,
    coded_adult,
    labels,
    n_threads,
    nursery,
    people,
    people_scores,
    predictions,
)
from sfumato import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    FullDomainAnonymizer,
    Hierarchy,
    HilbertAnonymizer,
    KAnonymity,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    Partition,
    RPlusTreeAnonymizer,
    TCloseness,
    WorkloadAwareAnonymizer,
)

REPRESENTATIVES = (
    "phantom",
    "model",
    "member",
    "median",
    "mean",
    "midrange",
    "sample",
    "range",
    "bounds",
    "tight-range",
    "tight-bounds",
)
Parts = dict[str, Any]
SCENES: dict[str, Callable[[], Parts]] = {}


def scene(name: str) -> Callable[[Callable[[], Parts]], Callable[[], Parts]]:
    """Add a function to the scenes."""

    def add(function: Callable[[], Parts]) -> Callable[[], Parts]:
        SCENES[name] = function
        return function

    return add


def made(kind: type, *given: Any, **parameters: Any) -> Any:
    """Return an anonymizer that uses as many threads as asked for."""
    if kind is not FullDomainAnonymizer:
        parameters.setdefault("n_jobs", n_threads())
    return kind(*given, **parameters)


def document_of(anonymizer: Any) -> str:
    """Return the partition as its file holds it; of those without a document, the fitted numbers."""
    partition = getattr(anonymizer, "partition_", None)
    if not isinstance(partition, Partition):
        names = [name for name in vars(anonymizer) if name.endswith("_") and name[0] != "_"]
        left_out = {"partition_", "schema_", "hierarchies_", "feature_names_in_"}
        return spelled({name: getattr(anonymizer, name) for name in names if name not in left_out})
    with tempfile.TemporaryDirectory() as folder:
        partition.save(Path(folder) / "partition.json")
        return (Path(folder) / "partition.json").read_text(encoding="utf-8")


def parts_of(anonymizer: Any, X: Any, y: Any = None, *, name: str = "", train: bool = True, **how: Any) -> Parts:
    """Fit, and return the partition, the training table and the release, in the order of the input."""
    lead = f"{name}: " if name else ""
    parts: Parts = {}
    if train:
        parts[f"{lead}training"] = anonymizer.fit_transform(X, y, **how)
    else:
        anonymizer.fit(X, y, **how)
    parts[f"{lead}partition"] = document_of(anonymizer)
    parts[f"{lead}loss"] = {"groups": anonymizer.n_groups_, "loss": anonymizer.information_loss_}
    release = anonymizer.release(X, y, shuffle=False)
    parts[f"{lead}release"] = release.table
    parts[f"{lead}numbers"] = [release.n_merged, release.n_suppressed, release.measures]
    return parts


# -- tables and guides ---------------------------------------------------------------------------------------------


@scene("tables")
def _() -> Parts:
    """Return what everything else is made of: if this differs, everything may."""
    guides = {f"predictions of {kind}": predictions(kind) for kind in ("tree", "boosting", "regression")}
    census = sfumato.datasets.make_census(300, random_state=3, as_frame="pyarrow").frame
    return {"adult": adult(), "nursery": nursery(), "people": people(), "census": census, **guides}


@scene("anonymize/guides")
def _() -> Parts:
    """Return groups of Adult by everything that can guide them."""
    X, y = adult().iloc[:, :-1], labels(adult())
    parts: Parts = {}
    for kind in ("tree", "boosting", "regression"):
        own = made(ModelGuidedAnonymizer, 15, quasi_identifiers=ADULT_QUASI)
        parts |= parts_of(own, X, predictions(kind), name=kind)
    own = made(ModelGuidedAnonymizer, 15, quasi_identifiers=ADULT_QUASI)
    parts |= parts_of(own, X, y, name="labels")
    weight = np.random.default_rng(5).integers(1, 5, len(X)).astype(float)
    own = made(ModelGuidedAnonymizer, 15, quasi_identifiers=ADULT_QUASI)
    parts |= parts_of(own, X, predictions("tree"), name="weights", sample_weight=weight)
    for name, more in {
        "split on all": {"split_on": "all"},
        "no further splits": {"keep_splitting": False},
        "few bins": {"max_bins": 12},
    }.items():
        own = made(ModelGuidedAnonymizer, 15, quasi_identifiers=ADULT_QUASI, **more)
        parts |= parts_of(own, X, predictions("tree"), name=name)
    return parts


@scene("anonymize/guide-estimator")
def _() -> Parts:
    """Return groups guided by models that the anonymizer trains, or that are trained already."""
    X, y = coded_adult(), labels(adult())
    tree = DecisionTreeClassifier(max_depth=5, random_state=0)
    parts = parts_of(
        made(ModelGuidedAnonymizer, 10, guide_estimator=tree, guide_fraction=0.5, random_state=1), X, y, name="half"
    )
    fitted = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    parts |= parts_of(made(ModelGuidedAnonymizer, 10, guide_estimator=fitted), X, y, name="fitted")
    wanted = X[:, 0] * 2 + X[:, 3]
    number = DecisionTreeRegressor(max_depth=5, random_state=0)
    own = made(ModelGuidedAnonymizer, 10, guide_estimator=number, guide_kind="numbers", quasi_identifiers=[0, 2, 5])
    return parts | parts_of(own, X, wanted, name="regression")


METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    "model-guided": (ModelGuidedAnonymizer, {}),
    "workload-aware": (WorkloadAwareAnonymizer, {}),
    "mondrian": (MondrianAnonymizer, {}),
    "mondrian-relaxed": (MondrianAnonymizer, {"strict": False}),
    "information-loss": (MondrianAnonymizer, {"rule": "information_loss"}),
    "hilbert": (HilbertAnonymizer, {}),
    "r-plus-tree": (RPlusTreeAnonymizer, {}),
}


def _on_adult(name: str) -> Parts:
    kind, more = METHODS[name]
    return parts_of(made(kind, 12, quasi_identifiers=ADULT_QUASI, **more), adult().iloc[:, :-1], labels(adult()))


def _on_nursery(name: str) -> Parts:
    kind, more = METHODS[name]
    return parts_of(made(kind, 8, **more), nursery().iloc[:, :-1], labels(nursery()))


def _on_people(name: str) -> Parts:
    kind, more = METHODS[name]
    own = made(kind, 6, quasi_identifiers=PEOPLE_QUASI, identifiers=["person"], **more)
    return parts_of(own, people(), np.array(people().column("target").to_pylist()))


for _name in METHODS:
    SCENES[f"anonymize/{_name}/adult"] = functools.partial(_on_adult, _name)
    SCENES[f"anonymize/{_name}/nursery"] = functools.partial(_on_nursery, _name)
    SCENES[f"anonymize/{_name}/people"] = functools.partial(_on_people, _name)


@scene("anonymize/workload-aware/numbers")
def _() -> Parts:
    """Return groups by the variance of a target of numbers."""
    frame = adult()
    own = made(WorkloadAwareAnonymizer, 12, quasi_identifiers=[n for n in ADULT_QUASI if n != "hours-per-week"])
    return parts_of(own, frame.drop(columns=["income"]), frame["hours-per-week"].to_numpy(float))


@scene("anonymize/r-plus-tree/insert")
def _() -> Parts:
    """Return the groups after every batch."""
    frame, parts = adult().iloc[:, :-1], {}
    own = made(RPlusTreeAnonymizer, 10, quasi_identifiers=ADULT_QUASI[:5], keep_records=True).fit(frame[:500])
    for start in (500, 900):
        stop = start + 400
        own.insert(frame[start:stop].reset_index(drop=True))
        parts[f"partition after {stop}"] = document_of(own)
        parts[f"release of {stop}"] = own.release(frame[:stop], shuffle=False).table
    return parts


# -- hierarchies and settings --------------------------------------------------------------------------------------


def _hierarchies() -> dict[str, Any]:
    towns = {"north": ["Lodi"], "south": {"sea": ["Bari", "Vico"], "hills": ["Pisa", "Roma"]}}
    return {"age": Hierarchy.from_intervals(range(10, 100), [5, 10, 30]), "town": Hierarchy.from_mapping(towns)}


@scene("anonymize/full-domain")
def _() -> Parts:
    """Return levels of hierarchies, with and without records left out, and with a criterion."""
    frame, parts = adult(), {}
    ages = Hierarchy.from_intervals(range(120), [5, 10, 20, 60])
    names = ["age", "sex", "race", "marital-status"]
    for name, more in {
        "k": {},
        "suppression": {"suppression_limit": 0.05},
        "l": {"criteria": [LDiversity(2, "income")], "suppression_limit": 0.1},
    }.items():
        own = made(FullDomainAnonymizer, 10, quasi_identifiers=names, hierarchies={"age": ages}, **more)
        X = frame[[*names, "income"]]
        parts |= parts_of(own, X, name=name, train=not more)
        parts[f"{name}: levels"] = own.levels_
    own = made(FullDomainAnonymizer, 5, quasi_identifiers=["age", "town"], hierarchies=_hierarchies(),
               suppression_limit=0.1)  # fmt: skip
    parts |= parts_of(own, people().select(["age", "town", "illness"]), name="people", train=False)
    own = made(FullDomainAnonymizer, 20, quasi_identifiers=list(nursery().columns[:5]))
    return parts | parts_of(own, nursery(), name="nursery")


@scene("anonymize/hierarchies")
def _() -> Parts:
    """Return groups that are cut along hierarchies, by every method, as ranges and as typical values."""
    parts: Parts = {}
    table = people().select(["age", "town", "score", "illness"])
    for name, (kind, more) in METHODS.items():
        for representative in ("range", "phantom"):
            own = made(
                kind, 6, quasi_identifiers=["age", "town", "score"], hierarchies=_hierarchies(),
                representative=representative, **more,
            )  # fmt: skip
            parts |= parts_of(own, table, people_scores()[:, 1] > 0.5, name=f"{name}, {representative}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "town.csv"
        path.write_text("Lodi;north;*\nBari;sea;*\nVico;sea;*\nPisa;hills;*\nRoma;hills;*\n", encoding="utf-8")
        hierarchy = sfumato.read_hierarchy(path)
    parts["read from a file"] = [hierarchy.labels, hierarchy.codes, hierarchy.path("Pisa")]
    return parts


@scene("anonymize/settings")
def _() -> Parts:
    """Return groups under limits, with persons as units, records left out, and columns in other roles."""
    parts, y = {}, people_scores()
    every: dict[str, dict[str, Any]] = {
        "limits": {"limits": {"age": 5, "town": 1, "born": 365, "score": 0.5}},
        "unit": {"criteria": [KAnonymity(4, unit="person")], "identifiers": None},
        "suppression": {"suppression_limit": 0.1},
        "codes": {"categorical_features": ["age"]},
        "keep": {"quasi_identifiers": ["age", "town"], "keep": ["wage", "born", "seen", "score"]},
    }
    for name, more in every.items():
        for method in ("model-guided", "mondrian", "information-loss", "hilbert", "r-plus-tree"):
            kind, own_settings = METHODS[method]
            settings = {"quasi_identifiers": PEOPLE_QUASI, "identifiers": ["person"]} | own_settings | more
            guide = y if method == "model-guided" else None
            own = made(kind, 6, **settings)
            parts |= parts_of(own, people(), guide, name=f"{name}, {method}", train=name != "suppression")
    return parts


@scene("anonymize/criteria")
def _() -> Parts:
    """Return groups under each of the seven criteria and their kinds."""
    frame = adult(1000)[[*ADULT_QUASI[:5], "occupation", "income"]]
    frame["occupation"] = frame["occupation"].astype(object).fillna("?").astype(str)
    secret, marital = "occupation", sorted(frame["marital-status"].astype(str).unique())
    tree = Hierarchy.from_mapping({"married": [v for v in marital if v.startswith("Married")],
                                   "other": [v for v in marital if not v.startswith("Married")]})  # fmt: skip
    population = adult()
    criteria: dict[str, list[Any]] = {
        "k-anonymity": [KAnonymity(25)],
        "distinct l-diversity": [LDiversity(4, secret)],
        "entropy l-diversity": [LDiversity(3, secret, kind="entropy")],
        "recursive l-diversity": [LDiversity(3, secret, kind="recursive", c=2.0)],
        "t-closeness": [TCloseness(0.45, secret)],
        "ordered t-closeness": [TCloseness(0.3, "education-num", distance="ordered")],
        "hierarchical t-closeness": [TCloseness(0.3, "marital-status", distance="hierarchical", hierarchy=tree)],
        "alpha-k-anonymity": [AlphaKAnonymity(0.5, 10, secret)],
        "basic beta-likeness": [BetaLikeness(3.0, secret)],
        "enhanced beta-likeness": [BetaLikeness(3.0, secret, kind="enhanced")],
        "delta-disclosure": [DeltaDisclosure(1.5, "income")],
        "delta-disclosure, absent ignored": [DeltaDisclosure(1.5, secret, absent="ignored")],
        "delta-presence": [DeltaPresence(0.1, 0.9, population)],
        "several": [LDiversity(3, secret), TCloseness(0.6, secret), LDiversity(2, "income")],
    }
    parts: Parts = {}
    for name, own in criteria.items():
        columns = {criterion.column for criterion in own}
        quasi = [column for column in ADULT_QUASI[:5] if column not in columns]
        for method in ("model-guided", "mondrian", "mondrian-relaxed", "information-loss", "hilbert", "r-plus-tree"):
            kind, more = METHODS[method]
            if name == "delta-presence" and method == "hilbert":
                continue  # a curve has no cells to count a population in
            anonymizer = made(kind, 10, quasi_identifiers=quasi, criteria=own, **more)
            found = parts_of(anonymizer, frame, labels(frame), train=name != "delta-presence")
            parts[f"{name}, {method}: partition"] = found["partition"]
            parts[f"{name}, {method}: release"] = found["release"]
    return parts


@scene("anonymize/representatives")
def _() -> Parts:
    """Return the values of groups, for every representative, with predictions and without."""
    parts: Parts = {}
    for representative in REPRESENTATIVES:
        own = made(
            ModelGuidedAnonymizer, 6, quasi_identifiers=PEOPLE_QUASI, identifiers=["person"],
            representative=representative, random_state=0,
        )  # fmt: skip
        parts |= parts_of(own, people(), people_scores(), name=f"people, {representative}")
        for method in ("mondrian", "information-loss", "hilbert", "r-plus-tree"):
            kind, more = METHODS[method]
            own = made(kind, 10, quasi_identifiers=ADULT_QUASI, representative=representative, random_state=0, **more)
            found = parts_of(own, adult(600).iloc[:, :-1], name=f"adult, {method}, {representative}")
            parts |= {name: value for name, value in found.items() if name.endswith("release")}
    return parts


# -- later records, frames, estimators -----------------------------------------------------------------------------


@scene("anonymize/later-records")
def _() -> Parts:
    """Return what fitted and loaded partitions make of records they have not seen, and what releases remember."""
    old, new = people(), people(250, seed=9)
    parts: Parts = {}
    for method in ("model-guided", "mondrian-relaxed", "information-loss", "hilbert", "r-plus-tree"):
        kind, more = METHODS[method]
        own = made(kind, 6, quasi_identifiers=PEOPLE_QUASI, identifiers=["person"], **more)
        own.fit(old, people_scores() if method == "model-guided" else None)
        parts[f"{method}: transformed"] = own.transform(new)
        release = own.release(new, shuffle=False)
        parts[f"{method}: released"] = release.table
        parts[f"{method}: numbers"] = [release.n_merged, release.n_suppressed, release.measures]
        if isinstance(own.partition_, Partition):
            loaded = Partition.from_dict(json.loads(document_of(own)))
            parts[f"{method}: loaded"] = loaded.transform(new)
            parts[f"{method}: groups"] = loaded.apply(new)
            again = own.release(old, shuffle=False, earlier=[release])
            remembered = again.publication.to_dict()
            parts[f"{method}: remembered"] = {key: remembered[key] for key in remembered if key != "secret"}
    return parts


def _kinds_of_frames() -> dict[str, Any]:
    table = people()
    simple = table.select(["age", "score"]).to_pandas()
    return {
        "pandas": table.to_pandas(),
        "pandas, arrow types": table.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas, categories": table.to_pandas().astype({"town": "category", "illness": "category"}),
        "pandas, index": table.to_pandas().set_index(pd.Index(np.arange(400)[::-1], name="row")),
        "polars": pl.from_arrow(table),
        "polars, categories": pl.from_arrow(table).with_columns(pl.col("town").cast(pl.Categorical)),
        "pyarrow": table,
        "pyarrow, dictionaries": table.set_column(1, "town", table.column("town").dictionary_encode()),
        "numpy": simple.fillna(-1).to_numpy(float),
        "numpy, objects": table.to_pandas()[["age", "town", "score"]].to_numpy(object),
        "lists": simple.fillna(-1).to_numpy(float).tolist(),
        "dict of lists": table.to_pydict(),
    }


@scene("frames")
def _() -> Parts:
    """Return the release of the same people in every kind of frame; of what is refused, the error's type."""
    parts: Parts = {}
    for name, frame in _kinds_of_frames().items():
        is_array = isinstance(frame, np.ndarray | list)
        roles = {} if is_array else {"quasi_identifiers": PEOPLE_QUASI, "identifiers": ["person"]}
        for representative in ("phantom", "range", "bounds"):
            own = made(ModelGuidedAnonymizer, 6, representative=representative, **roles)
            try:
                found = parts_of(own, frame, people_scores(), name=f"{name}, {representative}")
            except sfumato.SfumatoError as error:
                found = {f"{name}, {representative}": type(error).__name__}
            parts |= {part: own for part, own in found.items() if not part.endswith(("loss", "numbers"))}
    return parts


@scene("anonymize/estimators")
def _() -> Parts:
    """Return what models trained on anonymized records predict, and what the stand-ins for other libraries give."""
    from sfumato.compat import apt, holisticai

    X, y = coded_adult(), labels(adult())
    tree = DecisionTreeClassifier(max_depth=5, random_state=0)
    parts: Parts = {}
    for name, more in {"raw at predict": {}, "transformed at predict": {"transform_at_predict": True}}.items():
        model = sfumato.AnonymizedClassifier(tree, k=10, random_state=0, **more).fit(X[:1000], y[:1000])
        parts[f"classifier, {name}"] = model.predict_proba(X[1000:])
    number = DecisionTreeRegressor(max_depth=5, random_state=0)
    model = sfumato.AnonymizedRegressor(number, k=10, quasi_identifiers=[0, 1, 2], random_state=0)
    parts["regressor"] = model.fit(X[:1000], X[:1000, 9]).predict(X[1000:])
    guide = tree.fit(X, y).predict(X)
    names = [f"c{place}" for place in range(X.shape[1])]
    data = apt.ArrayDataset(X, guide, names)
    parts["apt"] = apt.Anonymize(10, ["c0", "c2"], categorical_features=["c1"]).anonymize(data)
    parts["holisticai"] = holisticai.Anonymize(
        10, ["c0", "c2"], features_names=names, features=names
    ).anonymize(pd.DataFrame(X, columns=names), guide)  # fmt: skip
    return parts


@scene("loss")
def _() -> Parts:
    """Return every measure of information loss, of ranges and of typical values."""
    from sfumato import loss

    frame = adult(800)
    X, y = frame[ADULT_QUASI], labels(frame)
    parts: Parts = {}
    for representative in ("range", "median"):
        released = made(MondrianAnonymizer, 10, representative=representative).fit_transform(X)
        parts[representative] = [
            loss.gcp(X, released),
            loss.non_uniform_entropy(X, released), loss.average_group_size(released, k=10),
            loss.discernibility(released, k=10, n_suppressed=3), loss.classification_metric(released, y),
        ]  # fmt: skip
        parts[f"{representative}, cells"] = loss.ncp(X, released)
    return parts


# -- Parquet files -------------------------------------------------------------------------------------------------


def written(table: pa.Table, folder: Path) -> Path:
    """Write a table as two files with small row groups, and return their folder."""
    source = folder / "in"
    source.mkdir(parents=True)
    half = table.num_rows // 2
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, source / f"{number}.parquet", row_group_size=97)
    return source


def plain_types(table: pa.Table) -> pa.Table:
    """Return text as text: Spark has no dictionaries, and one kind of text."""

    def kind(own: Any) -> Any:
        own = own.value_type if pa.types.is_dictionary(own) else own
        return pa.string() if pa.types.is_large_string(own) else own

    return pa.table({f.name: table.column(f.name).cast(kind(f.type)) for f in table.schema})


def _cases() -> dict[str, tuple[pa.Table, str | None, Any]]:
    """Return tables, guide columns and anonymizers for files and for Spark."""
    grown = plain_types(pa.Table.from_pandas(adult()[[*ADULT_QUASI, "occupation", "income"]], preserve_index=False))
    scored = people().append_column("p", pa.array(people_scores()[:, 1]))
    some = {"quasi_identifiers": PEOPLE_QUASI, "identifiers": ["person"]}
    cases = {
        "adult": (grown, "income", made(ModelGuidedAnonymizer, 15, quasi_identifiers=ADULT_QUASI)),
        "adult, criteria": (
            grown, "income",
            made(WorkloadAwareAnonymizer, 15, quasi_identifiers=ADULT_QUASI,
                 criteria=[LDiversity(3, "occupation"), TCloseness(0.6, "occupation")]),
        ),
        "adult, mondrian": (grown, None, made(MondrianAnonymizer, 15, quasi_identifiers=ADULT_QUASI)),
        "people, numbers": (scored, "p", made(ModelGuidedAnonymizer, 8, **some)),
        "people, range": (scored, "p", made(ModelGuidedAnonymizer, 8, **some, representative="range")),
        "people, limits": (scored, "p", made(ModelGuidedAnonymizer, 8, **some, limits={"age": 5, "born": 90})),
        "people, unit": (
            scored, "p",
            made(ModelGuidedAnonymizer, 8, quasi_identifiers=PEOPLE_QUASI, criteria=[KAnonymity(5, unit="person")]),
        ),
    }  # fmt: skip
    for representative in REPRESENTATIVES[1:]:
        own = made(ModelGuidedAnonymizer, 10, quasi_identifiers=ADULT_QUASI, representative=representative,
                   random_state=0)  # fmt: skip
        cases[f"adult, {representative}"] = (grown, "income", own)
    return cases


@scene("parquet/releases")
def _() -> Parts:
    """Return what files are anonymized into."""
    from sfumato import parquet

    parts: Parts = {}
    for name, (table, guide, anonymizer) in _cases().items():
        for how, most_held in {"in one": 10**6, "in pieces": 300}.items():
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                done = parquet.fit_transform(
                    anonymizer, written(table, folder), folder / "out.parquet", guide_column=guide, shuffle=False,
                    most_held=most_held,
                )  # fmt: skip
                parts[f"{name}, {how}: release"] = pq.read_table(folder / "out.parquet")
            parts[f"{name}, {how}: partition"] = document_of(anonymizer)
            parts[f"{name}, {how}: numbers"] = [done.n_records, done.n_groups, done.smallest_group, done.measures]
    table, guide, anonymizer = _cases()["people, numbers"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        parquet.fit_transform(anonymizer, written(table, folder), folder / "out.parquet", guide_column=guide)
        parts["shuffled"] = sorted_records(pq.read_table(folder / "out.parquet"))
    return parts


# -- Spark ---------------------------------------------------------------------------------------------------------


@functools.cache
def spark_session() -> Any:
    """Return a session on this machine with two cores; it ends with the process."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SkippedSceneError("pyspark is not installed") from None
    if shutil.which("java") is None:
        raise SkippedSceneError("Java is not installed")
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "768m",
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }  # fmt: skip
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").appName("sfumato recorded results")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@scene("spark/releases")
def _() -> Parts:
    """Return what Spark anonymizes; the order of records means nothing there."""
    session = spark_session()
    from sfumato import spark

    parts: Parts = {}
    for name, most_held in {"adult, criteria": 10**6, "people, range": 250}.items():
        table, guide, anonymizer = _cases()[name]
        frame = session.createDataFrame(table).coalesce(2)
        released = spark.fit_transform(anonymizer, frame, guide_column=guide, most_held=most_held)
        parts[f"{name}: release"] = sorted_records(released.toArrow())
        parts[f"{name}: partition"] = document_of(anonymizer)
    return parts
