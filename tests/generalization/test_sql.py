# SPDX-License-Identifier: Apache-2.0
"""SQL gives the buckets of ``transform`` in real databases."""

import datetime as dt
import json

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from sfumato.backends.memory import MemorySource
from sfumato.errors import ParameterError
from sfumato.frames import read_table
from sfumato.generalization import generalization_from_bins
from strategies import in_examples

from .cases import KINDS, cases

POSTGRES_TYPES = {
    "integer": "bigint",
    "whole": "double precision",
    "float": "double precision",
    "boolean": "boolean",
    "text": "text",
    "number code": "bigint",
    "float code": "double precision",
    "date": "date",
    "datetime": "timestamp",
    "zoned datetime": "timestamptz",
    "duration": "interval",
    "time": "time",
}


def made_from(table, buckets):
    source = MemorySource(read_table(table), list(buckets))
    return generalization_from_bins(source.columns, [np.array(b) for b in buckets.values()], floor=1)


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'America/New_York'")
        yield opened


@given(case=cases())
@in_examples(100)
def test_duckdb_gives_the_same_buckets(connection, case):
    connection.register("people", case.table)
    for output in ("labels", "codes"):
        query = case.generalization.to_sql("duckdb", table="people", output=output)
        found = connection.sql(query).to_arrow_table()
        assert found.to_pydict() == case.expected(output)
    connection.unregister("people")


def test_duckdb_takes_nan_and_narrow_floats_as_transform_does(connection):
    values = np.array([0.1, 0.5, -0.0, np.nan, 0.25, 0.3], np.float32)
    table = pa.table({"x": values})
    made = made_from(table, {"x": [0, 1, 2, 2, 3, 4]})
    connection.register("people", table)
    found = connection.sql(made.to_sql("duckdb", table="people", output="codes")).to_arrow_table()
    connection.unregister("people")
    assert found["x"].to_pylist() == made.codes(table).ravel().tolist()


def test_duckdb_takes_enums_and_zero_characters(connection):
    table = pa.table(
        {"x": pa.array(["a\0b", "a", "b", None, "c"]).dictionary_encode(), "y": ["a\0b", "", "\0", "x", "a"]}
    )
    made = made_from(table, {"x": [0, 1, 2, 3, 1], "y": [0, 1, 2, 3, 4]})
    connection.register("people", table)
    found = connection.sql(made.to_sql("duckdb", table="people")).to_arrow_table()
    connection.unregister("people")
    assert found.to_pydict() == made.transform(table, "labels").to_pydict()


@given(case=cases())
@settings(in_examples(50), suppress_health_check=[HealthCheck.too_slow])
def test_postgresql_gives_the_same_buckets(postgres, case):
    columns = ", ".join(f"{quoted(name)} {POSTGRES_TYPES[kind]}" for name, kind in case.kinds.items())
    names = list(case.kinds)
    rows = [
        {"row number": place} | {n: as_json(case.values[n][place]) for n in names}
        for place in range(len(case.values[names[0]]))
    ]
    content = json.dumps(rows, ensure_ascii=True).replace("'", "''")
    script = (
        f'CREATE TEMPORARY TABLE people ("row number" int, {columns});\n'
        f"INSERT INTO people SELECT * FROM json_populate_recordset(NULL::people, '{content}');"
    )
    labels, codes = (case.generalization.to_sql("postgresql", output=output) for output in ("labels", "codes"))
    query = (
        f"SELECT (SELECT row_to_json(l) FROM (SELECT {labels}) l) AS labels,"
        f' (SELECT row_to_json(c) FROM (SELECT {codes}) c) AS codes FROM people ORDER BY "row number"'
    )
    found = postgres.rows(script, query)
    for output in ("labels", "codes"):
        assert {name: [row[output][name] for row in found] for name in names} == case.expected(output)


@pytest.mark.parametrize("setting", ["on", "off"])
def test_postgresql_reads_backslashes_whatever_its_setting(postgres, setting):
    made = made_from(pa.table({"x": ["back\\slash", "b'", "c"]}), {"x": [0, 1, 2]})
    script = (
        "CREATE TEMPORARY TABLE people (n int, x text);\n"
        "INSERT INTO people VALUES (1, E'back\\\\slash'), (2, 'b'''), (3, 'c'), (4, NULL);\n"
        f"SET escape_string_warning = off; SET standard_conforming_strings = {setting};"
    )
    found = postgres.rows(script, f"SELECT {made.to_sql()} FROM people ORDER BY n")
    assert [row["x"] for row in found] == ["back\\slash", "b'", "c", "b'"]


def test_postgresql_takes_nan_as_missing(postgres):
    made = made_from(pa.table({"x": [0.5, 1.5, None]}), {"x": [0, 1, 2]})
    script = "CREATE TEMPORARY TABLE people (x float8); INSERT INTO people VALUES ('NaN'), (NULL), (7);"
    found = postgres.rows(script, f"SELECT {made.to_sql()} FROM people ORDER BY people.x")
    assert [row["x"] for row in found] == ["over 1", "missing", "missing"]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def as_json(value):
    if isinstance(value, dt.timedelta):
        return f"{value // dt.timedelta(microseconds=1)} microseconds"
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value


def test_a_query_reads_well():
    made = made_from(
        pa.table(
            {"age": [10, 30, 70, None], "job": ["nurse", "smith", "teacher", "smith"], "zip": ["1", "2", "3", "4"]}
        ),
        {"age": [0, 1, 2, 2], "job": [0, 1, 0], "zip": [0] * 4},
    )
    assert made.to_sql(table="public.people").splitlines() == [
        "SELECT",
        "CASE",
        "  WHEN \"age\" IS NULL THEN '51 and over or missing'",
        "  WHEN \"age\" <= 20 THEN '20 and under'",
        "  WHEN \"age\" <= 50 THEN '21-50'",
        "  ELSE '51 and over or missing'",
        'END AS "age",',
        "CASE",
        "  WHEN \"job\" IS NULL THEN '{nurse, teacher}'",
        "  WHEN \"job\" IN ('smith') THEN 'smith'",
        "  ELSE '{nurse, teacher}'",
        'END AS "job",',
        "'not collected' AS \"zip\"",
        'FROM "public"."people"',
    ]


def test_spark_has_its_own_quotes_and_words():
    instants = [dt.datetime(1999, 1, 1, tzinfo=dt.UTC), dt.datetime(2003, 1, 1, tzinfo=dt.UTC)]
    table = pa.table(
        {
            "a`b": ["o'neil", "back\\slash"],
            "at": instants,
            "local": [at.replace(tzinfo=None) for at in instants],
            "long": [dt.timedelta(days=-3), dt.timedelta(days=3)],
            "short": [dt.timedelta(seconds=-2), dt.timedelta(seconds=-1, microseconds=-9)],
            "x": [0.25, 0.75],
            "n": [2**40, 2**41],
        }
    )
    made = made_from(table, {name: [0, 1] for name in table.column_names})
    text = made.to_sql("spark", table="people")
    assert "WHEN `a``b` IN ('o\\'neil') THEN 'o\\'neil'" in text
    assert "ELSE 'back\\\\slash'" in text
    assert "`at` < TIMESTAMP '2000-01-01 00:00:00+00:00'" in text
    assert "`local` < TIMESTAMP_NTZ '2000-01-01 00:00:00'" in text
    assert "`long` < INTERVAL '0 00:00:00.000000' DAY TO SECOND" in text
    assert "`short` < INTERVAL '-0 00:00:01.500000' DAY TO SECOND" in text
    assert "`x` <= 0.5e0" in text
    assert "`n` <= CAST('2000000000000' AS BIGINT)" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [({"dialect": "mysql"}, "dialect='mysql'"), ({"output": "representatives"}, "output='representatives'")],
)
def test_what_sql_cannot_do_is_refused(options, message):
    made = made_from(pa.table({"x": [1, 2]}), {"x": [0, 1]})
    with pytest.raises(ParameterError, match=message):
        made.to_sql(**options)


def test_times_of_day_are_refused_for_spark():
    made = made_from(pa.table({"x": [dt.time(1), dt.time(2)]}), {"x": [0, 1]})
    with pytest.raises(ParameterError, match="times of day, which Spark has no type for"):
        made.to_sql("spark")


def test_every_kind_of_value_is_tried_in_postgresql():
    assert set(POSTGRES_TYPES) == set(KINDS)
