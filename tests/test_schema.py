# SPDX-License-Identifier: Apache-2.0
"""Roles of columns, what is refused, and the finest detail that may leave."""

import datetime
import json
import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.columns import Column
from sfumato.errors import InputError, ParameterError, PrivacyWarning
from sfumato.frames import GroupedValues, read_table
from sfumato.schema import ColumnWarning, Schema, build_schema, coarsen, is_near_unique
from strategies import in_examples

EXAMPLES = in_examples(50)
DAY = 86_400_000_000

COLUMNS = {
    "name": [f"person {place}" for place in range(12)],
    "age": [20, 20, 30, 30, 40, 40, 50, 50, 60, 60, 70, 70],
    "zip": ["10115", "10115", "10117", "10117"] * 3,
    "disease": ["flu", "cold"] * 6,
    "income": [1, 2] * 6,
    "person": [place // 2 for place in range(12)],
    "note": ["x", "y", "z"] * 4,
}


@pytest.fixture
def table():
    return read_table(pd.DataFrame(COLUMNS))


@pytest.fixture
def full(table):
    return build_schema(
        table,
        quasi_identifiers=["zip", "age"],
        identifiers="name",
        sensitive=["disease"],
        target="income",
        unit="person",
    )


# ---- roles -----------------------------------------------------------------------------------------------------------


def test_every_column_gets_one_role(full):
    assert full.roles == {
        "name": "identifier",
        "age": "quasi_identifier",
        "zip": "quasi_identifier",
        "disease": "sensitive",
        "income": "target",
        "person": "unit",
        "note": "other",
    }
    assert full.quasi_identifiers == ("age", "zip"), "in the order of the table, whatever the order given"
    assert (full.identifiers, full.sensitive, full.target, full.unit) == (
        ("name",),
        ("disease",),
        ("income",),
        "person",
    )
    assert full.with_role("other") == ("note",)
    assert full.kinds == {
        "age": "number",
        "zip": "category",
        "disease": "category",
        "person": "number",
        "note": "category",
    }


def test_identifiers_and_the_unit_do_not_leave(full, table):
    assert full.dropped == ("name", "person")
    assert full.released == ("age", "zip", "disease", "income", "note")
    kept = build_schema(table, quasi_identifiers=["age"], identifiers=["name"], unit="person", keep=["person"])
    assert kept.dropped == ("name",)


def test_all_columns_without_another_role_are_quasi_identifiers_by_default(table):
    schema = build_schema(
        table, identifiers=["name"], sensitive="disease", target="income", unit="person", keep=["note"]
    )
    assert schema.quasi_identifiers == ("age", "zip")
    assert schema.with_role("other") == ("note",)
    everything = build_schema(table, identifiers=["name"])
    assert everything.quasi_identifiers == tuple(name for name in COLUMNS if name != "name")


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: np.array(list(columns.values()), object).T]
)
def test_columns_may_be_given_by_position(make):
    table = read_table(make(COLUMNS))
    schema = build_schema(table, quasi_identifiers=[2, 1], identifiers=0, sensitive=3, target=4, unit=5, keep=[-1])
    assert list(schema.roles.values()) == [
        "identifier", "quasi_identifier", "quasi_identifier", "sensitive", "target", "unit", "other",
    ]  # fmt: skip
    assert schema.keep == (table.names[6],)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"quasi_identifiers": ["age"], "sensitive": ["age"]}, r"'age' is named in sensitive and in quasi_identifiers"),
        ({"quasi_identifiers": ["age"], "target": "age"}, r"'age' is named in target and in quasi_identifiers"),
        ({"quasi_identifiers": ["age"], "unit": "age"}, r"'age' is named in unit and in quasi_identifiers"),
        ({"quasi_identifiers": ["age"], "identifiers": ["age"]}, r"'age' is named in identifiers and in quasi_ident"),
        ({"identifiers": ["name"], "unit": "name"}, r"'name' is named in identifiers and in unit.*Remove it from one"),
        ({"quasi_identifiers": ["age", 1]}, r"quasi_identifiers names the column 'age' twice"),
        ({"quasi_identifiers": ["aeg"]}, r"quasi_identifiers names the column 'aeg'.*Did you mean 'age'"),
        ({"sensitive": ["illness"]}, r"sensitive names the column 'illness', which the table does not have"),
        ({"unit": ["person", "name"]}, r"unit names 2 columns: expected one"),
        ({"limits": {"agee": 5}}, r"limits names the column 'agee'.*Did you mean 'age'"),
        ({"quasi_identifiers": ["age"], "keep": ["age"]}, r"'age' is named in quasi_identifiers and in keep"),
        ({"identifiers": ["name"], "keep": ["name"]}, r"'name' is named in identifiers and in keep"),
        ({"quasi_identifiers": []}, r"no quasi-identifier is left among 7 columns: expected at least one"),
        ({"keep": list(COLUMNS)}, r"no quasi-identifier is left"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_fix(table, roles, message):
    with pytest.raises(ParameterError, match=message):
        build_schema(table, **roles)


def test_an_identifier_may_have_a_type_that_no_column_can_have():
    table = read_table(pl.DataFrame({"face": [[1, 2], [3]], "age": [1, 2]}))
    assert build_schema(table, identifiers=["face"]).quasi_identifiers == ("age",)
    assert build_schema(table, keep=["face"]).quasi_identifiers == ("age",)


def test_numbers_named_categorical_are_categories(table):
    schema = build_schema(table, identifiers=["name"], categorical_features=["age"])
    assert (schema.kinds["age"], schema.categorical_features) == ("category", ("age",))
    read = read_table(pd.DataFrame(COLUMNS), categorical=["age"])
    assert build_schema(read, identifiers=["name"]).kinds["age"] == "category"
    assert build_schema(read, identifiers=["name"], categorical_features=[]).kinds["age"] == "number"


def test_a_schema_survives_pickling_and_a_plain_document(table):
    schema = build_schema(
        table,
        identifiers=["name"],
        unit="person",
        keep=["note"],
        limits={"age": 5, "zip": 3},
        categorical_features=["income"],
    )
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    numpy_limit = build_schema(table, identifiers=["name"], limits={"age": np.int64(5)})
    assert json.dumps(numpy_limit.to_dict()["limits"]) == '{"age": 5}'
    moments = read_table(pd.DataFrame({"born": pd.to_datetime(["2000-01-01", "2001-01-01"])}))
    document = build_schema(moments, limits={"born": datetime.timedelta(days=7)}).to_dict()
    assert document["limits"] == {"born": 7.0}


# ---- pass-through ----------------------------------------------------------------------------------------------------


def column_of(values, kind="number"):
    return read_table(pd.DataFrame({"x": values})).column("x")


@EXAMPLES
@given(
    st.lists(st.integers(0, 6) | st.none(), min_size=1, max_size=20), st.sampled_from(["Int64", "Float64", "string"])
)
def test_near_unique_means_more_than_half_of_the_values_occur_once(values, dtype):
    given_values = [None if value is None else str(value) if dtype == "string" else value for value in values]
    column = column_of(pd.array(given_values, dtype=dtype))
    counts = Counter(value for value in values if value is not None)
    n_single = sum(1 for count in counts.values() if count == 1)
    assert is_near_unique(column) == (n_single > sum(counts.values()) / 2)


def test_a_near_unique_column_does_not_pass_through_unless_kept(table):
    with pytest.raises(InputError, match=r"'name' would be released unchanged.*quasi_identifiers or identifiers.*keep"):
        build_schema(table, quasi_identifiers=["age"])
    assert build_schema(table, quasi_identifiers=["age"], keep=["name"]).roles["name"] == "other"
    with pytest.warns(PrivacyWarning, match="'name' seems to name people"):
        rewritten = build_schema(table, quasi_identifiers=["age", "name"])
    assert rewritten.roles["name"] == "quasi_identifier"


def test_a_column_of_real_numbers_is_near_unique_too():
    frame = pd.DataFrame({"age": [1, 2] * 6, "weight": np.linspace(50.1, 99.7, 12)})
    with pytest.raises(InputError, match="'weight' would be released unchanged"):
        build_schema(read_table(frame), quasi_identifiers=["age"])


def test_half_of_the_values_once_is_not_more_than_half():
    once = [*range(6), *[90, 91, 92] * 2]
    assert not is_near_unique(column_of(once))
    assert is_near_unique(column_of([*once, 7]))


@pytest.mark.parametrize(
    "numbers",
    [
        pa.array([2**53 + row for row in range(1000)], pa.decimal128(38, 0)),
        pa.array([10**30 + row for row in range(1000)], pa.decimal128(38, 0)),
        pa.array(range(1000), pa.timestamp("ns")),
    ],
    ids=["64 bits", "more than 64 bits", "nanoseconds"],
)
def test_numbers_that_differ_in_their_last_digit_are_near_unique(numbers):
    table = read_table(pa.table({"age": [30, 40] * 500, "account": numbers}))
    with pytest.raises(InputError, match="'account' would be released unchanged"):
        build_schema(table, quasi_identifiers=["age"])
    alike = read_table(pa.table({"age": [30, 40] * 500, "account": numbers.take(pa.array([0, 1] * 500))}))
    assert build_schema(alike, quasi_identifiers=["age"]).released == ("age", "account")


def test_missing_values_do_not_hide_a_near_unique_column():
    frame = pd.DataFrame({"age": [1, 2] * 50, "phone": [None] * 97 + ["a", "b", "c"]})
    with pytest.raises(InputError, match="'phone' would be released unchanged"):
        build_schema(read_table(frame), quasi_identifiers=["age"])


@pytest.mark.parametrize(("n_records", "is_refused"), [(9, False), (10, True)])
def test_in_tables_under_ten_records_unique_values_say_nothing(n_records, is_refused):
    table = read_table(pd.DataFrame({"age": [1, 2] * 5, "remark": list("abcdefghij")}).head(n_records))
    if is_refused:
        with pytest.raises(InputError, match="'remark' would be released unchanged"):
            build_schema(table, quasi_identifiers=["age"])
    else:
        assert build_schema(table, quasi_identifiers=["age"]).roles["remark"] == "other"


def test_a_name_says_what_it_says_in_small_tables_too():
    table = read_table(pd.DataFrame({"age": [1, 2] * 2, "last_name": list("abcd")}))
    with pytest.raises(InputError, match="'last_name' would be released unchanged"):
        build_schema(table, quasi_identifiers=["age"])


# ---- warnings --------------------------------------------------------------------------------------------------------


def test_constant_and_empty_quasi_identifiers_are_named_in_one_warning():
    frame = pd.DataFrame({"a": [1, 1], "b": ["x", "x"], "c": [None, None], "d": [1.0, None], "e": [1, 2]})
    with pytest.warns(ColumnWarning, match=r"one value only: 'a', 'b' and that are all missing: 'c'") as caught:
        build_schema(read_table(frame))
    assert len(caught) == 1


def test_a_column_that_differs_late_is_not_constant():
    frame = pd.DataFrame({"late": [1] * 5000 + [2], "filled late": [None] * 5000 + ["a"], "ok": [1, 2] * 2500 + [1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_schema(read_table(frame))


def test_a_single_record_gives_no_warning():
    build_schema(read_table(pd.DataFrame({"a": [1]})))


def test_columns_whose_names_look_the_same_are_named_in_a_warning():
    frame = pd.DataFrame({"age": [1, 2], "age ": [3, 4], "purpose": [1, 2], "purpose_": [1, 2]})
    with pytest.warns(ColumnWarning, match="columns 'age' and 'age ' have nearly the same name") as caught:
        build_schema(read_table(frame))
    assert len(caught) == 1


# ---- later tables ----------------------------------------------------------------------------------------------------


def test_a_later_table_must_have_the_same_quasi_identifiers():
    schema = build_schema(read_table(pd.DataFrame({"age": [1, 2], "zip": ["a", "b"]})))
    schema.require(read_table(pl.DataFrame({"zip": ["c"], "other": [1], "age": [2.5]})))
    schema.require(read_table(pd.DataFrame({"zip": ["c"], "age": [None]})))
    with pytest.raises(InputError, match=r"no column 'zip': expected the quasi-identifiers"):
        schema.require(read_table(pd.DataFrame({"age": [1]})))
    with pytest.raises(InputError, match=r"'age' is a category and was a number.*Convert"):
        schema.require(read_table(pd.DataFrame({"age": ["1"], "zip": ["a"]})))


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_integers_become_the_middle_of_their_interval():
    column = column_of([-6, -5, -1, 0, 4, 5, 37])
    assert coarsen(column, 5).values.tolist() == [-8, -3, -3, 2, 2, 7, 37]
    assert coarsen(column, 1).values.tolist() == column.values.tolist()
    assert coarsen(column, 5).values.dtype == "int64"


def test_floats_become_the_middle_of_their_interval():
    column = coarsen(column_of([-0.1, 0.0, 0.9, 2.5, None]), 2.5)
    assert column.values.tolist() == [-1.25, 1.25, 1.25, 3.75, 0]
    assert column.missing.tolist() == [False] * 4 + [True]


def test_text_keeps_its_first_characters():
    column = coarsen(column_of(["10115", "10117", "1012", "101", "10", "101*", None]), 3)
    assert column.categories.tolist() == ["10", "101", "101*"]
    assert column.values[:6].tolist() == [2, 2, 2, 1, 0, 2]
    assert column.missing.tolist() == [False] * 6 + [True]


@EXAMPLES
@given(st.lists(st.text("ab*", max_size=4), min_size=1, max_size=12), st.integers(1, 4))
def test_text_is_told_apart_by_its_prefix_and_by_whether_it_was_cut(values, limit):
    column = coarsen(column_of(pd.array(values, dtype="str")), limit)
    keys = [(text[:limit], len(text) > limit) for text in values]
    for first in range(len(values)):
        for second in range(len(values)):
            assert (column.values[first] == column.values[second]) == (keys[first] == keys[second])
    assert column.categories.tolist() == sorted(set(column.categories))


@EXAMPLES
@given(st.lists(st.integers(-1000, 1000), min_size=1), st.integers(1, 300))
def test_no_more_than_the_width_is_lost_and_no_less(values, width):
    coarse = coarsen(column_of(values), width)
    for value, middle in zip(values, coarse.values.tolist(), strict=True):
        assert middle - width // 2 <= value < middle - width // 2 + width
        assert (middle - width // 2) % width == 0
    again = coarsen(coarse, width)
    assert again.values.tolist() == coarse.values.tolist()


@pytest.mark.parametrize("limit", [2, 2.0, datetime.timedelta(days=2)])
def test_moments_are_limited_in_days(limit):
    frame = pd.DataFrame(
        {"x": pd.to_datetime(["1970-01-01", "1970-01-02 23:00", "1970-01-03", None, "1969-12-31"], format="ISO8601")}
    )
    column = coarsen(read_table(frame).column("x"), limit)
    assert column.values.tolist() == [DAY, DAY, 3 * DAY, 0, -DAY]
    assert (column.kind, column.moment, column.missing.tolist()) == ("moment", "datetime", [False] * 3 + [True, False])


@pytest.mark.parametrize(
    ("values", "limit", "message"),
    [
        ([1, 2], 0, r"limits has 0 for the column 'x': expected a positive number"),
        ([1, 2], -5, r"limits has -5 for the column 'x'"),
        ([1, 2], float("nan"), r"limits has nan for the column 'x'"),
        ([1, 2], float("inf"), r"limits has inf"),
        ([1, 2], True, r"limits has True for the column 'x': expected a positive number"),
        ([1, 2], "5", r"limits has '5' for the column 'x': expected a positive number"),
        ([1, 2], 2.5, r"limits has 2.5 for the column 'x', which holds integers: expected a whole width"),
        ([1, 2], 2**70, r"expected a width that fits 64 bits"),
        ([1.5, 2.5], -1.0, r"limits has -1.0"),
        ([1.5, 1e300], 1e-300, r"expected one that fits the size of its numbers"),
        ([1, 2], datetime.timedelta(days=1), r"which is a number: expected a timedelta for dates and times only"),
        (["a", "b"], 0, r"limits has 0 for the column 'x'"),
        (["a", "b"], 1.5, r"which is text: expected a whole number of characters"),
        ([True, False], 1, r"'x', whose categories are not text"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), datetime.timedelta(0), r"expected a positive number"),
    ],
)
def test_a_wrong_limit_is_refused_with_the_fix(values, limit, message):
    with pytest.raises(ParameterError, match=message):
        coarsen(column_of(values), limit)


def test_wrong_limits_are_refused_when_the_schema_is_built(table):
    with pytest.raises(ParameterError, match=r"limits has 0 for the column 'age'"):
        build_schema(table, limits={"age": 0})
    with pytest.raises(ParameterError, match=r"whose categories are not text"):
        build_schema(table, limits={"age": 5}, categorical_features=["age"])
    with pytest.raises(ParameterError, match=r"limits names the column 'disease', which has the role sensitive"):
        build_schema(table, sensitive="disease", limits={"disease": 2})
    with pytest.raises(ParameterError, match=r"limits is of the type list: expected a dict"):
        build_schema(table, limits=[5])
    assert build_schema(table, identifiers=["name"], limits={1: 5, "zip": 3}).limits == {"age": 5, "zip": 3}


def test_an_empty_column_can_be_limited():
    empty = Column("x", "category", np.zeros(2, np.int32), np.ones(2, bool), np.empty(0, object))
    assert coarsen(empty, 3).missing.tolist() == [True, True]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"zip": pd.Categorical(["10115", "10117", "99"])}),
        pl.DataFrame({"zip": pl.Series(["10115", "10117", "99"], dtype=pl.Enum(["10115", "10117", "99"]))}),
        pa.table({"zip": pa.array(["10115", "10117", "99"]).dictionary_encode()}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_coarsened_text_leaves_no_exact_value_in_the_type(frame):
    table = read_table(frame)
    column = coarsen(table.column("zip"), 3)
    new = GroupedValues(column.values, column.missing, np.arange(3), column.categories, replaces_categories=True)
    result = table.replaced({"zip": new})
    if isinstance(result, pd.DataFrame):
        listed = result["zip"].cat.categories.tolist()
    elif isinstance(result, pl.DataFrame):
        listed = result["zip"].dtype.categories.to_list()
    else:
        listed = result["zip"].chunk(0).dictionary.to_pylist()
    assert listed == ["101*", "99"]


def test_a_coarsened_integer_may_need_a_wider_type():
    table = read_table(pd.DataFrame({"x": np.array([127, 3, 3], "int8")}))
    column = coarsen(table.column("x"), 100)
    result = table.replaced({"x": GroupedValues(column.values, None, np.arange(3))})
    assert result["x"].tolist() == [150, 50, 50]
