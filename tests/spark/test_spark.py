# SPDX-License-Identifier: Apache-2.0
"""Spark gives what the table in memory gives: partition, release and measurements, even when a worker dies."""

import datetime
import decimal
import threading
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import (
    HilbertAnonymizer,
    KAnonymity,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    UniformMinimizer,
    WorkloadAwareAnonymizer,
    measure,
)
from sfumato.datasets import make_census
from sfumato.errors import GuaranteeError, InputError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore")  # pyspark's own, of which there are many

spark = pytest.importorskip("sfumato.spark")
QI = ["age", "sex", "birth_country", "occupation", "hours_per_week", "monthly_rent"]


def census_of(n_records: int) -> pa.Table:
    bunch = make_census(n_records, random_state=3, return_probability=True)
    random = np.random.default_rng(0)
    table = bunch.frame[[*QI, "high_income"]].assign(
        score=np.asarray(bunch.probability, np.float64).round(5),
        illness=random.choice(list("abcdef"), n_records, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05]),
        person=random.integers(0, n_records // 3, n_records),
    )
    return plain(pa.Table.from_pandas(table, preserve_index=False))


def plain(table: pa.Table) -> pa.Table:
    """Return text as text: Spark has no dictionaries."""
    kinds = [pa.string() if pa.types.is_dictionary(f.type) or f.name == "illness" else f.type for f in table.schema]
    return pa.table([c.cast(k) for c, k in zip(table.columns, kinds, strict=True)], names=table.column_names)


@pytest.fixture(scope="module")
def census() -> pa.Table:
    return census_of(3_000)


@pytest.fixture(scope="module")
def frame(session: Any, census: pa.Table) -> Any:
    return session.createDataFrame(census).repartition(4).persist()


def records_of(table: pa.Table) -> Counter[Any]:
    """Count the records, whose order means nothing to Spark."""
    return Counter(zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True))


def in_memory(anonymizer: Any, table: pa.Table, guide: str | None) -> tuple[Any, pa.Table]:
    own = type(anonymizer)(**anonymizer.get_params(deep=False)).set_params(identifiers=guide and [guide])
    return own, own.fit_transform(table, None if guide is None else np.array(table.column(guide).to_pylist()))


def assert_same(anonymizer: Any, release: Any, table: pa.Table, guide: str | None) -> None:
    local, expected = in_memory(anonymizer, table, guide)
    assert anonymizer.partition_.to_dict() == local.partition_.to_dict()
    assert anonymizer.information_loss_ == pytest.approx(local.information_loss_)
    assert anonymizer.n_groups_ == local.n_groups_
    found = release.toArrow()
    assert found.column_names == expected.column_names
    assert records_of(found) == records_of(expected)


def test_a_diverse_partition_is_that_of_the_table_in_memory(frame: Any, census: pa.Table):
    criteria = [LDiversity(4, "illness")]
    anonymizer = ModelGuidedAnonymizer(12, quasi_identifiers=QI, criteria=criteria, keep=["person"], n_jobs=1)
    release = spark.fit_transform(anonymizer, frame, guide_column="score", most_held=900)
    assert_same(anonymizer, release, census, "score")
    alone, _ = in_memory(anonymizer.set_params(criteria=None), census, "score")
    assert alone.n_groups_ > anonymizer.n_groups_  # diversity had something to say
    first = anonymizer.transform(census.slice(0, 5))
    assert first.num_rows == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("anonymizer", "guide"),
    [
        (MondrianAnonymizer(10, representative="range", keep=["person", "score"]), None),
        (WorkloadAwareAnonymizer(15, keep=["person", "score"], limits={"age": 5}), "high_income"),
        (ModelGuidedAnonymizer(10, criteria=[KAnonymity(8, unit="person")], representative="bounds"), "score"),
    ],
    ids=["mondrian", "workload", "persons"],
)
def test_every_method_gives_the_partition_of_the_table_in_memory(
    frame: Any, census: pa.Table, anonymizer: Any, guide: str | None
):
    anonymizer.set_params(quasi_identifiers=QI, n_jobs=1)
    release = spark.fit_transform(anonymizer, frame, guide_column=guide, most_held=1_000)
    assert_same(anonymizer, release, census, guide)


@pytest.mark.slow
def test_dates_decimals_and_missing_values_are_read_as_in_memory(session: Any):
    random = np.random.default_rng(5)
    n = 600
    # Fractions come late, so that some shares of the table have whole numbers only.
    amounts = [decimal.Decimal(int(v)) / (100 if i > 500 else 1) for i, v in enumerate(random.integers(0, 4_000, n))]
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in random.integers(0, 900, n)]
    table = pa.table(
        {
            "born": pa.array([None if i % 7 == 0 else day for i, day in enumerate(days)], pa.date32()),
            "seen": pa.array([datetime.datetime(2024, 1, 1 + d.day % 28, d.month) for d in days], pa.timestamp("us")),
            "amount": pa.array(amounts, pa.decimal128(12, 2)),
            "weight": [float("nan") if i % 11 == 0 else float(v) for i, v in enumerate(random.normal(size=n))],
            "town": [None if i % 5 == 0 else f"town {v}" for i, v in enumerate(random.integers(0, 9, n))],
            "member": [bool(v) for v in random.integers(0, 2, n)],
            "label": [f"class {v}" for v in random.integers(0, 3, n)],
        }
    )
    frame = session.createDataFrame(table, "born date, seen timestamp_ntz, amount decimal(12, 2), weight double, "
                                           "town string, member boolean, label string")  # fmt: skip
    anonymizer = ModelGuidedAnonymizer(8, representative="range", n_jobs=1)
    release = spark.fit_transform(anonymizer, frame, guide_column="label", most_held=250)
    assert_same(anonymizer, release, table, "label")


def test_only_counts_and_splits_reach_the_driver(session: Any, monkeypatch: pytest.MonkeyPatch):
    from pyspark.sql.classic.dataframe import DataFrame

    table = census_of(20_000)
    frame = session.createDataFrame(table).repartition(3)
    arrived: list[pa.Table] = []
    whole = DataFrame.toArrow

    def watched(self: Any) -> pa.Table:
        arrived.append(whole(self))
        return arrived[-1]

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("the driver asked for records in a way that is not counted")

    monkeypatch.setattr(DataFrame, "toArrow", watched)
    for name in ("collect", "toPandas", "take", "head", "tail", "first", "toLocalIterator", "foreach"):
        monkeypatch.setattr(DataFrame, name, refused)
    anonymizer = ModelGuidedAnonymizer(1_000, quasi_identifiers=QI, keep=["person"], n_jobs=1)
    spark.fit_transform(anonymizer, frame, guide_column="score", most_held=9_000)
    n_distinct = len(table.column("monthly_rent").unique())
    n_bytes, n_rows = sum(t.nbytes for t in arrived), max(t.num_rows for t in arrived)
    assert anonymizer.n_groups_ > 8
    assert n_rows <= sum(min(255, len(table.column(name).unique())) for name in QI) + 100 < n_distinct
    assert n_bytes < 8 * table.num_rows  # less than a single column of the table


def test_a_worker_killed_in_the_middle_changes_nothing(
    cluster: Any, frame: Any, census: pa.Table, monkeypatch: pytest.MonkeyPatch
):
    from sfumato.spark.codes import SparkCounting

    plain_advance, n_calls = SparkCounting.advance, Counter[str]()

    def fatal(self: Any, routing: Any, shape: Any) -> Any:
        n_calls["advance"] += 1
        if n_calls["advance"] == 2:  # its share of the codes is gone, and tasks that run are, too
            threading.Timer(0.3, cluster.kill, ["second"]).start()
        return plain_advance(self, routing, shape)

    monkeypatch.setattr(SparkCounting, "advance", fatal)
    monkeypatch.setattr("sfumato.spark.codes._MOST_ADDED", 3)  # and shares are added in two rounds
    anonymizer = ModelGuidedAnonymizer(15, quasi_identifiers=QI, keep=["person"], n_jobs=1)
    release = spark.fit_transform(anonymizer, frame, guide_column="score", most_held=700)
    assert "second" not in cluster.processes
    cluster.start_worker("second")
    cluster.wait()
    assert_same(anonymizer, release, census, "score")


def test_a_release_that_fails_its_recount_is_not_handed_out(frame: Any, monkeypatch: pytest.MonkeyPatch):
    from pyspark.sql import functions as sql

    rewritten = spark.anonymizing._rewritten

    def spoiled(*arguments: Any) -> Any:
        release = rewritten(*arguments)
        is_one = sql.monotonically_increasing_id() == 0
        return release.withColumn("age", sql.when(is_one, sql.lit(101)).otherwise(sql.col("age")).cast("tinyint"))

    monkeypatch.setattr(spark.anonymizing, "_rewritten", spoiled)
    anonymizer = MondrianAnonymizer(100, quasi_identifiers=QI, keep=["person", "score"])
    with pytest.raises(GuaranteeError, match="Nothing is handed out"):
        spark.fit_transform(anonymizer, frame)
    assert not hasattr(anonymizer, "partition_")


def test_what_workers_refuse_is_said_as_in_memory(session: Any, census: pa.Table):
    from pyspark.sql import functions as sql

    frame = session.createDataFrame(census)
    holes = frame.withColumn("score", sql.when(sql.col("age") > 30, sql.col("score")))
    anonymizer = ModelGuidedAnonymizer(10, quasi_identifiers=QI, keep=["person"])
    with pytest.raises(InputError, match="'score' has missing predictions"):
        spark.fit_transform(anonymizer, holes, guide_column="score")
    numbered = frame.withColumn("code", sql.monotonically_increasing_id())
    with pytest.raises(InputError, match="'code' would pass through"):
        spark.fit_transform(anonymizer, numbered, guide_column="score")


@pytest.mark.parametrize(
    ("anonymizer", "expected_words"),
    [
        (HilbertAnonymizer(10), "grows a tree"),
        (MondrianAnonymizer(10, rule="information_loss"), "median"),
        (ModelGuidedAnonymizer(10, representative="sample"), "sample"),
        (ModelGuidedAnonymizer(10, suppression_limit=0.1), "suppression_limit"),
        (ModelGuidedAnonymizer(10, criteria=[LDiversity(2, "y")]), "no column of the table"),
    ],
)
def test_what_spark_cannot_do_is_said(frame: Any, anonymizer: Any, expected_words: str):
    with pytest.raises(ParameterError, match=expected_words):
        spark.fit_transform(anonymizer, frame, guide_column="score")


def test_measurements_are_those_of_the_table_in_memory(frame: Any, census: pa.Table):
    found = spark.measure(frame, ["age", "sex"], "illness")
    local = measure(census, ["age", "sex"], "illness").to_dict()
    assert found["groups"] == local["groups"]
    assert found["k"] == local["k"]
    assert found["n_unique"] == local["uniqueness"]["n_unique"]
    assert found["prosecutor"]["average"] == pytest.approx(local["prosecutor"]["average"])
    assert found["prosecutor"]["above"] == pytest.approx(local["prosecutor"]["above"])
    distinct = next(c["value"] for c in local["criteria"] if c["criterion"] == "distinct l-diversity")
    assert found["distinct_l"] == {"illness": distinct}


def test_a_generalization_gives_the_buckets_of_transform(frame: Any, census: pa.Table):
    minimizer = UniformMinimizer(attributes=["age", "occupation", "monthly_rent"])
    generalization = minimizer.fit(census, np.array(census.column("high_income"))).generalization_
    found = spark.transform(generalization, frame)
    assert found.columns == census.column_names
    assert records_of(found.toArrow()) == records_of(generalization.transform(census, output="labels"))
