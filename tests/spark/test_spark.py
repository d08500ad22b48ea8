# SPDX-License-Identifier: Apache-2.0
"""Spark gives what the table in memory gives: partition, release, measurements and groups, even when a worker dies."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import (
    Anatomizer,
    FullDomainAnonymizer,
    HilbertAnonymizer,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    RPlusTreeAnonymizer,
    UniformMinimizer,
    measure,
)
from sfumato.errors import GuaranteeError, InputError, ParameterError

from .comparing import QI, assert_same_measurement, assert_same_release, census_of, records_of

pytestmark = pytest.mark.filterwarnings("ignore")  # pyspark's own, of which there are many

spark = pytest.importorskip("sfumato.spark")
SIZES = (2_100, 8_400)
SEED = 7


@dataclass
class Run:
    """All verbs on one table, and what reached the driver meanwhile."""

    table: pa.Table
    anonymizer: Any
    release: pa.Table
    measured: Any
    anatomized: Any
    arrived: dict[str, list[pa.Table]] = field(default_factory=dict)

    def n_bytes(self, verb: str) -> int:
        return sum(table.nbytes for table in self.arrived[verb])


@pytest.fixture(scope="module")
def runs(session: Any) -> dict[int, Run]:
    return {n_records: run_of(session, n_records) for n_records in SIZES}


def run_of(session: Any, n_records: int) -> Run:
    from pyspark.sql.classic.dataframe import DataFrame

    arrived: dict[str, list[pa.Table]] = {"fit_transform": [], "measure": [], "anatomize": []}
    table = census_of(n_records)
    frame = session.createDataFrame(table).repartition(3).persist()
    anonymizer = ModelGuidedAnonymizer(
        n_records // 20, quasi_identifiers=QI, criteria=[LDiversity(5, "illness")], identifiers=["number"],
        keep=["person"], n_jobs=1,
    )  # fmt: skip
    anatomizer = Anatomizer(3, sensitive="illness", keep="number", random_state=SEED)
    with pytest.MonkeyPatch.context() as watched:
        whole = DataFrame.toArrow

        def refused(*_: Any, **__: Any) -> None:
            raise AssertionError("the driver asked for records in a way that is not counted")

        for name in ("collect", "toPandas", "take", "head", "tail", "first", "toLocalIterator", "foreach"):
            watched.setattr(DataFrame, name, refused)

        def during(verb: str) -> None:
            def watch(self: Any) -> pa.Table:
                arrived[verb].append(whole(self))
                # A table that is sent to all workers comes to the driver first.
                assert "Broadcast" not in self._jdf.queryExecution().executedPlan().toString()
                return arrived[verb][-1]

            watched.setattr(DataFrame, "toArrow", watch)

        during("fit_transform")
        release = spark.fit_transform(anonymizer, frame, guide_column="score", most_held=n_records // 2)
        during("measure")
        measured = spark.measure(release, QI, "illness", unit="person")
        during("anatomize")
        anatomized = spark.anatomize(anatomizer, frame)
    return Run(table, anonymizer, release.toArrow(), measured, anatomized, arrived)


@pytest.fixture(scope="module")
def census() -> pa.Table:
    return census_of(900)


@pytest.fixture(scope="module")
def frame(session: Any, census: pa.Table) -> Any:
    return session.createDataFrame(census).repartition(4).persist()


def test_a_diverse_partition_is_that_of_the_table_in_memory(runs: dict[int, Run]):
    for own in runs.values():
        assert_same_release(own.anonymizer, own.release, own.table, "score")
    first = runs[SIZES[0]]
    assert len(first.anonymizer.transform(first.table.slice(0, 5))) == 5


def test_measurements_are_those_of_the_table_in_memory(runs: dict[int, Run]):
    for own in runs.values():
        assert_same_measurement(own.measured, measure(own.release, QI, "illness", unit="person"))


def test_the_sensitive_values_are_in_the_groups_of_the_table_in_memory(runs: dict[int, Run]):
    for own in runs.values():
        local = Anatomizer(3, sensitive="illness", keep="number", random_state=SEED).fit_transform(own.table)
        made = own.anatomized
        assert (made.n_records, made.n_groups, made.n_suppressed) == (own.table.num_rows, local.n_groups, 0)
        assert records_of(made.sensitive.toArrow()) == records_of(local.sensitive)
        identifying = made.identifying.toArrow()
        assert identifying.column_names == local.identifying.column_names
        assert records_of(identifying.drop(["group"])) == records_of(local.identifying.drop(["group"]))


def test_no_order_links_the_two_tables_to_each_other_or_to_the_input(runs: dict[int, Run]):
    made = runs[SIZES[1]].anatomized
    identifying, sensitive = made.identifying.toArrow(), made.sensitive.toArrow()
    places = np.arange(made.n_records)
    of_group = [np.bincount(table.column("group").to_numpy(), weights=places) / 3 for table in (identifying, sensitive)]
    # Of 2,800 groups and 8,400 records chance correlates less than this in all but one of a million cases.
    assert abs(np.corrcoef(*of_group)[0, 1]) < 0.1
    assert abs(np.corrcoef(places, identifying.column("number").to_numpy())[0, 1]) < 0.06
    assert abs(np.corrcoef(places, identifying.column("group").to_numpy())[0, 1]) < 0.06


def test_only_counts_and_splits_reach_the_driver(runs: dict[int, Run]):
    small, large = runs.values()
    n_bins = sum(min(255, len(large.table.column(name).unique())) for name in QI)
    assert max(table.num_rows for table in large.arrived["fit_transform"]) <= n_bins + 100
    assert large.anonymizer.n_groups_ > 8
    for verb, most in (("fit_transform", 120_000), ("measure", 10_000), ("anatomize", 1_000)):
        assert 0 < large.n_bytes(verb) < most
        assert large.n_bytes(verb) < 1.25 * small.n_bytes(verb)  # with four times the records


def test_a_worker_killed_in_the_middle_changes_nothing(
    cluster: Any, frame: Any, census: pa.Table, monkeypatch: pytest.MonkeyPatch
):
    from sfumato.backends.spark.codes import SparkCounting

    plain_advance, n_calls = SparkCounting.advance, Counter[str]()

    def fatal(self: Any, routing: Any, shape: Any) -> Any:
        n_calls["advance"] += 1
        if n_calls["advance"] == 2:  # its share of the codes is gone, and tasks that run are, too
            threading.Timer(0.3, cluster.kill, ["second"]).start()
        return plain_advance(self, routing, shape)

    monkeypatch.setattr(SparkCounting, "advance", fatal)
    monkeypatch.setattr("sfumato.backends.spark.codes._MOST_ADDED", 3)  # and shares are added in two rounds
    anonymizer = ModelGuidedAnonymizer(15, quasi_identifiers=QI, keep=["person"], identifiers=["number"], n_jobs=1)
    release = spark.fit_transform(anonymizer, frame, guide_column="score", most_held=300)
    assert "second" not in cluster.processes
    cluster.start_worker("second")
    cluster.wait()
    assert_same_release(anonymizer, release.toArrow(), census, "score")


def test_a_release_that_fails_its_recount_is_not_handed_out(frame: Any, monkeypatch: pytest.MonkeyPatch):
    from pyspark.sql import functions as sql

    from sfumato.backends.spark import backend

    rewritten = backend._rewritten

    def spoiled(*arguments: Any) -> Any:
        release = rewritten(*arguments)
        is_one = sql.monotonically_increasing_id() == 0
        return release.withColumn("age", sql.when(is_one, sql.lit(101)).otherwise(sql.col("age")).cast("tinyint"))

    monkeypatch.setattr(backend, "_rewritten", spoiled)
    anonymizer = MondrianAnonymizer(100, quasi_identifiers=QI, keep=["person", "score"], identifiers=["number"])
    with pytest.raises(GuaranteeError, match="Nothing is returned"):
        spark.fit_transform(anonymizer, frame)
    assert not hasattr(anonymizer, "partition_")


def test_tables_that_fail_their_recount_are_not_handed_out(frame: Any, monkeypatch: pytest.MonkeyPatch):
    from pyspark.sql import functions as sql

    from sfumato.backends.spark.anatomy import _Dealer

    shuffled = _Dealer._shuffled

    def spoiled(self: Any, *arguments: Any) -> Any:
        made = shuffled(self, *arguments)
        return made.withColumn("illness", sql.lit("a")) if "illness" in made.columns else made

    monkeypatch.setattr(_Dealer, "_shuffled", spoiled)
    anatomizer = Anatomizer(5, sensitive="sex", keep="number", suppression_limit=1.0)
    with pytest.raises(GuaranteeError, match="suppressing records does not help"):
        spark.anatomize(anatomizer, frame)
    with pytest.raises(GuaranteeError, match="l = 3 does not hold"):
        spark.anatomize(anatomizer.set_params(l=3, sensitive="illness"), frame)
    assert not hasattr(anatomizer, "n_groups_")


def test_tables_with_different_groups_are_not_handed_out(session: Any):
    from sfumato.backends.spark.anatomy import check_groups

    identifying = session.createDataFrame([(30, 0), (31, 0), (32, 1), (33, 1)], "age int, group long")
    sensitive = session.createDataFrame([("a", 0), ("b", 0), ("c", 0), ("d", 1)], "illness string, group long")
    with pytest.raises(GuaranteeError, match="the same numbers of records in the same groups"):
        check_groups(identifying, sensitive, "group", {"illness": 2}, 4)


def test_what_workers_refuse_is_said_as_in_memory(session: Any, census: pa.Table):
    from pyspark.sql import functions as sql

    frame = session.createDataFrame(census)
    holes = frame.withColumn("score", sql.when(sql.col("age") > 30, sql.col("score")))
    anonymizer = ModelGuidedAnonymizer(10, quasi_identifiers=QI, keep=["person"], identifiers=["number"])
    with pytest.raises(InputError, match="'score' has missing predictions"):
        spark.fit_transform(anonymizer, holes, guide_column="score")
    numbered = frame.withColumn("code", sql.monotonically_increasing_id())
    with pytest.raises(InputError, match="'code' would be released unchanged"):
        spark.fit_transform(anonymizer, numbered, guide_column="score")


def test_columns_that_name_people_are_found_in_spark_too(session: Any, census: pa.Table):
    from pyspark.sql import functions as sql

    named = session.createDataFrame(census.select(["age", "sex", "score"])).withColumn(
        "household_id", sql.floor(sql.rand(0) * 700)
    )
    with pytest.raises(InputError, match="column 'household_id' has no role"):
        spark.fit_transform(ModelGuidedAnonymizer(10), named, guide_column="score")
    mail = named.withColumn("reach", sql.concat(sql.col("household_id"), sql.lit("@mail.org"))).drop("household_id")
    with pytest.raises(InputError, match=r"'reach' has no role.*form of email addresses"):
        spark.fit_transform(ModelGuidedAnonymizer(10), mail, guide_column="score")


@pytest.mark.parametrize("column", ["code", "email", "household_id"])
def test_columns_that_name_people_are_not_anatomized(session: Any, census: pa.Table, column: str):
    random = np.random.default_rng(0)
    values = {
        "code": np.arange(900) + 7,
        "email": [f"p{number}@mail.org" for number in random.integers(0, 300, 900)],
        "household_id": random.integers(0, 450, 900),
    }
    named = census.select(["age", "score", "illness"]).append_column(column, pa.array(values[column]))
    anatomizer = Anatomizer(3, sensitive="illness")
    with pytest.raises(InputError) as expected:
        anatomizer.fit_transform(named)
    with pytest.raises(InputError) as refused:
        spark.anatomize(anatomizer, session.createDataFrame(named).repartition(3))
    assert str(refused.value) == str(expected.value)
    assert "would be shared with its exact values" in str(refused.value)


@pytest.mark.parametrize(
    ("anonymizer", "expected_words"),
    [
        (HilbertAnonymizer(10), "grows a tree"),
        (FullDomainAnonymizer(10), "grows a tree"),
        (RPlusTreeAnonymizer(10), "RPlusTreeAnonymizer with a Spark DataFrame: expected a method that grows a tree"),
        (MondrianAnonymizer(10, rule="information_loss"), "median"),
        (MondrianAnonymizer(10, strict=False), "median"),
        (MondrianAnonymizer(10, hierarchies={"sex": {"person": ["female", "male"]}}), "hierarchies= with"),
        (ModelGuidedAnonymizer(10, suppression_limit=0.1), "suppression_limit"),
        (ModelGuidedAnonymizer(10, criteria=[LDiversity(2, "y")]), "not a column of the table"),
    ],
)
def test_what_spark_cannot_do_is_said(frame: Any, anonymizer: Any, expected_words: str):
    with pytest.raises(ParameterError, match=expected_words):
        spark.fit_transform(anonymizer, frame, guide_column="score")


def test_a_generalization_gives_the_buckets_of_transform(frame: Any, census: pa.Table):
    minimizer = UniformMinimizer(attributes=["age", "occupation", "monthly_rent"])
    generalization = minimizer.fit(census, np.array(census.column("high_income"))).generalization_
    for output in ("codes", "labels", "representatives"):
        found = spark.transform(generalization, frame, output=output)
        assert found.columns == census.column_names
        assert records_of(found.toArrow()) == records_of(generalization.transform(census, output=output))


def test_columns_that_a_generalization_does_not_fit_are_refused_as_in_memory(frame: Any, census: pa.Table):
    from pyspark.sql import functions as sql

    generalization = UniformMinimizer(attributes=["age"]).fit(census, np.array(census.column("sex"))).generalization_
    with pytest.raises(InputError, match="lacks 1 of the 1 attributes"):
        spark.transform(generalization, frame.drop("age"))
    with pytest.raises(InputError, match="'age' holds categories now"):
        spark.transform(generalization, frame.withColumn("age", sql.col("age").cast("string")))
