# SPDX-License-Identifier: Apache-2.0
"""Spark SQL gives the buckets of ``transform``; runs where pyspark and Java are installed, and needs neither else."""

import importlib.util
import shutil

import pytest

from .cases import KINDS, make_case

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="no pyspark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
    pytest.mark.filterwarnings("ignore"),  # pyspark's own, of which there are many
]
TYPES = {
    "integer": "bigint",
    "whole": "double",
    "float": "double",
    "boolean": "boolean",
    "text": "string",
    "number code": "bigint",
    "float code": "double",
    "date": "date",
    "datetime": "timestamp_ntz",
    "zoned datetime": "timestamp",
    "duration": "interval day to second",
}


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "America/New_York").config("spark.driver.host", "127.0.0.1")
    started = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    yield started
    started.stop()


@pytest.mark.parametrize("seed", range(25))
def test_spark_gives_the_same_buckets(session, seed):
    case = make_case(seed, tuple(kind for kind in KINDS if kind != "time"))
    names = list(case.kinds)
    rows = list(zip(*(case.values[name] for name in names), range(len(case.values[names[0]])), strict=True))
    assert len({name.lower() for name in names}) == len(names)
    columns = [f"`{name.replace('`', '``')}` {TYPES[kind]}" for name, kind in case.kinds.items()]
    session.createDataFrame(rows, ", ".join([*columns, "`row number` int"])).createOrReplaceTempView("people")
    for output in ("labels", "codes"):
        listed = case.generalization.to_sql("spark", output=output)
        found = session.sql(f"SELECT {listed} FROM people ORDER BY `row number`").collect()
        assert {name: [row[place] for row in found] for place, name in enumerate(names)} == case.expected(output)


def test_spark_takes_nan_as_missing(session):
    made = next(
        case.generalization
        for case in (make_case(seed, ("float",)) for seed in range(100))
        if len(case.kinds) == 1 and case.generalization.attributes[0].has_missing_bucket
    )
    name = made.names[0]
    listed = made.to_sql("spark", output="codes")
    quoted = "`" + name.replace("`", "``") + "`"
    found = session.sql(f"SELECT {listed} FROM (SELECT double('NaN') AS {quoted})").collect()
    assert found[0][0] == made.attributes[0].missing


def test_the_kinds_that_are_tried_leave_out_only_times_of_day():
    assert set(KINDS) - set(TYPES) == {"time"}
