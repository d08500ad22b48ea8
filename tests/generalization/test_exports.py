# SPDX-License-Identifier: Apache-2.0
"""polars expressions, JavaScript and the JSON Schema give the buckets of ``transform``."""

import datetime as dt
import json
import shutil
import subprocess

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from sfumato.backends.memory import MemorySource
from sfumato.errors import ParameterError
from sfumato.frames import read_table
from sfumato.generalization import generalization_from_bins
from strategies import in_examples

from .cases import cases


def made_from(table, buckets, categorical=()):
    source = MemorySource(read_table(table, categorical=categorical), list(buckets))
    return generalization_from_bins(source.columns, [np.array(b) for b in buckets.values()], floor=1)


# -- polars ------------------------------------------------------------------------------------------------------


@given(case=cases())
@in_examples(100)
def test_polars_gives_the_same_buckets(case):
    frame = pl.from_arrow(case.table)
    for output in ("labels", "codes"):
        found = frame.lazy().with_columns(case.generalization.to_polars(output)).collect()
        assert found.to_dict(as_series=False) == case.expected(output)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_polars_compares_moments_of_any_unit_exactly(unit):
    moments = [dt.datetime(2000, 1, 1), dt.datetime(2000, 1, 1, 0, 0, 0, 1_000), dt.datetime(1969, 12, 31)]
    lengths = [moment - dt.datetime(2000, 1, 1) for moment in moments]
    table = pa.table({"at": moments, "long": lengths})
    made = made_from(table, {"at": [0, 1, 2], "long": [0, 1, 2]})
    frame = pl.from_arrow(table).with_columns(
        pl.col("at").cast(pl.Datetime(unit, None)), pl.col("long").cast(pl.Duration(unit))
    )
    assert frame.select(made.to_polars("codes")).to_numpy().tolist() == made.codes(frame).tolist()


def test_polars_takes_nan_narrow_floats_and_categoricals():
    frame = pl.DataFrame(
        {
            "x": pl.Series([0.1, float("nan"), None, -0.0], dtype=pl.Float32),
            "c": pl.Series(["a", "b", None, "a"], dtype=pl.Categorical),
            "e": pl.Series(["a", "b", None, "a"], dtype=pl.Enum(["b", "a"])),
        }
    )
    made = made_from(frame, {"x": [0, 1, 2], "c": [0, 1, 2], "e": [0, 1, 0]})
    assert frame.select(made.to_polars("codes")).to_numpy().tolist() == made.codes(frame).tolist()


def test_polars_takes_codes_of_another_type_of_number():
    made = made_from(pa.table({"x": [1, 2, 3]}), {"x": [0, 1, 1]}, ["x"])
    frame = pl.DataFrame({"x": [1.0, 2.5, 3.0]})
    assert frame.select(made.to_polars("codes"))["x"].to_list() == made.codes(frame).ravel().tolist()


# -- JavaScript --------------------------------------------------------------------------------------------------

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no node: JavaScript cannot be run")
REVIVE = """
const revive = (key, value) => {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if ("$bigint" in value) return BigInt(value.$bigint);
  return "$number" in value ? Number(value.$number) : value;
};
"""


def run_node(source, expression):
    """Return what an expression gives beside the source, through JSON."""
    script = f"{source}\nprocess.stdout.write(JSON.stringify({expression}));\n"
    done = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def as_javascript(value):
    """Write a value as a client would hand it over."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else {"$bigint": str(value)}
    if isinstance(value, float):
        return {"$number": repr(value)}
    if isinstance(value, dt.timedelta):
        return {"$bigint": str(value // dt.timedelta(microseconds=1))}
    return value.isoformat()


@needs_node
@given(case=cases())
@settings(in_examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_javascript_gives_the_same_buckets(case):
    names = list(case.kinds)
    rows = [[as_javascript(case.values[n][i]) for n in names] for i in range(len(case.values[names[0]]))]
    source = case.generalization.to_javascript() + REVIVE
    source += f"const names = {json.dumps(names)};\n"
    source += f"const rows = JSON.parse({json.dumps(json.dumps(rows))}, revive);\n"
    source += "const records = rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])));\n"
    expression = '["labels", "codes"].map((o) => records.map((r) => Object.entries(generalization.generalize(r, o))))'
    for output, found in zip(("labels", "codes"), run_node(source, expression), strict=True):
        expected = case.expected(output)
        assert found == [[[name, expected[name][i]] for name in names] for i in range(len(rows))]


@needs_node
@given(case=cases(kinds=("integer", "float", "number code", "float code", "duration")))
@settings(in_examples(20), suppress_health_check=[HealthCheck.too_slow])
def test_javascript_reads_digits_as_the_numbers_they_are(case):
    def digits(value):
        if isinstance(value, dt.timedelta):
            whole, rest = divmod(abs(value) // dt.timedelta(microseconds=1), 1_000_000)
            return f"{'-' if value < dt.timedelta(0) else ''}{whole}.{rest:06}"
        return None if value is None else str(value)

    names = list(case.kinds)
    rows = [{n: digits(case.values[n][i]) for n in names} for i in range(len(case.values[names[0]]))]
    pairs = [list(row.items()) for row in rows]
    expression = f"{json.dumps(pairs)}.map((row) => row.map(([n, v]) => generalization.bucketOf(n, v)))"
    assert run_node(case.generalization.to_javascript(), expression) == case.codes.tolist()


@needs_node
@pytest.mark.parametrize("as_codes", [False, True])
def test_neighbors_beyond_the_exact_floats_are_told_apart(as_codes):
    values = [2**53, 2**53 + 1, 2**53 + 2, 2**62, 2**62 + 1]
    table = pa.table({"x": values})
    made = made_from(table, {"x": [0, 1, 2, 3, 4]}, ["x"] if as_codes else ())
    assert pl.from_arrow(table).select(made.to_polars("codes"))["x"].to_list() == [0, 1, 2, 3, 4]
    for form in ('"{}"', "{}n"):  # digits as text, and BigInt
        listed = ", ".join(form.format(value) for value in values)
        found = run_node(made.to_javascript(), f'[{listed}].map((value) => generalization.bucketOf("x", value))')
        assert found == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_polars_tells_neighboring_microseconds_apart(unit):
    moments = [dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=us) for us in range(-1, 3)]
    table = pa.table({"at": moments, "long": [at - dt.datetime(1970, 1, 1) for at in moments]})
    made = made_from(table, {"at": [0, 1, 2, 3], "long": [0, 1, 2, 3]})
    frame = pl.from_arrow(table).with_columns(
        pl.col("at").cast(pl.Datetime(unit)), pl.col("long").cast(pl.Duration(unit))
    )
    assert frame.select(made.to_polars("codes")).to_numpy().tolist() == [[place] * 2 for place in range(4)]


@pytest.fixture(scope="module")
def small():
    table = pa.table(
        {
            "age": [10, 30, 70, None],
            "job": ["nurse", "smith", "teacher", "smith"],
            "at": [dt.datetime(1999, 1, 1, tzinfo=dt.UTC), dt.datetime(2003, 1, 1, tzinfo=dt.UTC)] * 2,
            "zip": ["1", "2", "3", "4"],
        }
    )
    return made_from(table, {"age": [0, 1, 2, 2], "job": [0, 1, 0], "at": [0, 1], "zip": [0] * 4})


@needs_node
def test_javascript_keeps_only_buckets(small):
    record = {"age": 40, "job": "smith", "at": "2001-01-01", "zip": "02139", "name": "Ada"}
    found = run_node(small.to_javascript(), f"generalization.generalize({json.dumps(record)})")
    assert found == {"age": "21-50", "job": "smith", "at": "2000-01-01 UTC or later", "zip": "not collected"}


@needs_node
@pytest.mark.parametrize(
    ("text", "bucket"),
    [
        ("1999-12-31T23:59:59.999999Z", 0),
        ("2000-01-01T00:30:00+01:00", 0),
        ("1999-12-31 19:00-05:00", 1),
        ("1999-12-31T23:00:00-0100", 1),
        ("2000-01-01", 1),
    ],
)
def test_javascript_reads_time_zones(small, text, bucket):
    instant = dt.datetime.fromisoformat(text)
    instant = instant if instant.tzinfo else instant.replace(tzinfo=dt.UTC)
    place = small.names.index("at")
    row = pa.table({"age": [1], "job": ["a"], "at": pa.array([instant], pa.timestamp("us", "UTC"))})
    assert small.codes(row)[0, place] == bucket
    assert run_node(small.to_javascript(), f'generalization.bucketOf("at", {json.dumps(text)})') == bucket
    assert run_node(small.to_javascript(), f'generalization.bucketOf("at", new Date({json.dumps(text)}))') == bucket


@needs_node
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("age", '"forty"'),
        ("age", "Infinity"),
        ("age", "true"),
        ("job", "5"),
        ("at", '"2001-02-30"'),
        ("at", '"yesterday"'),
        ("at", "987"),
        ("shoe size", "5"),
    ],
)
def test_javascript_refuses_what_it_cannot_place_without_repeating_it(small, name, value):
    source = (
        small.to_javascript()
        + f"""
    let said = null;
    try {{ generalization.bucketOf({json.dumps(name)}, {value}); }} catch (error) {{ said = error.message; }}
    """
    )
    said = run_node(source, "said")
    assert said is not None
    assert said.startswith(f"{name}: ")
    assert value.strip('"') not in said.removeprefix(f"{name}: ")


@needs_node
@pytest.mark.parametrize(("text", "bucket"), [("08:59:59.999999", 0), ("23:59", 1), ("24:00", None), ("12:60", None)])
def test_javascript_reads_times_that_exist(text, bucket):
    made = made_from(pa.table({"t": [dt.time(8), dt.time(18)]}), {"t": [0, 1]})
    source = (
        made.to_javascript()
        + f"""
    let found = null;
    try {{ found = generalization.bucketOf("t", "{text}"); }} catch (error) {{ found = null; }}
    """
    )
    assert run_node(source, "found") == bucket


@needs_node
@pytest.mark.parametrize("value", ["null", "undefined", "NaN", '""', '"  "'])
def test_javascript_knows_what_is_missing(small, value):
    assert run_node(small.to_javascript(), f'generalization.bucketOf("age", {value})') == 2


# -- JSON Schema -------------------------------------------------------------------------------------------------


@given(case=cases())
@in_examples()
def test_the_schema_takes_every_minimized_record(case):
    for output in ("labels", "codes"):
        schema = json.loads(json.dumps(case.generalization.to_json_schema(output), allow_nan=False))
        expected = case.expected(output)
        for place in range(len(case.values[next(iter(case.kinds))])):
            assert complaints(schema, {name: values[place] for name, values in expected.items()}) == []


def complaints(schema, record):
    """Validate a record by the parts of JSON Schema that these schemas use."""
    assert set(schema) == {"$schema", "$comment", "title", "type", "properties", "required", "additionalProperties"}
    found = [name for name in schema["required"] if name not in record]
    found += [name for name in record if name not in schema["properties"]]
    return found + [n for n, v in record.items() if v not in schema["properties"].get(n, {"enum": [v]})["enum"]]


def test_the_schema_refuses_what_is_finer_than_a_bucket(small):
    schema = small.to_json_schema()
    record = {"age": "21-50", "job": "smith", "at": "before 2000-01-01 UTC"}
    assert complaints(schema, record) == []
    assert schema["additionalProperties"] is False
    assert complaints(schema, record | {"age": 40}) == ["age"]
    assert complaints(schema, record | {"name": "Ada"}) == ["name"]
    assert complaints(schema, {"age": "21-50"}) == ["job", "at"]
    assert small.fingerprint in schema["$comment"]


@pytest.mark.parametrize("export", ["to_polars", "to_json_schema"])
def test_an_unknown_output_is_refused(small, export):
    with pytest.raises(ParameterError, match="output='names'"):
        getattr(small, export)("names")
