# SPDX-License-Identifier: Apache-2.0
"""How columns are named, and what the edge says to tables it cannot use."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import sfumato
from sfumato.errors import InputError, ParameterError
from sfumato.frames import GroupedValues, read_table

MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "numpy": lambda columns: np.array(list(columns.values()), dtype=object).T,
}


@pytest.fixture(params=MAKERS)
def library(request):
    return request.param


@pytest.fixture
def make(library):
    return MAKERS[library]


# ---- names -----------------------------------------------------------------------------------------------------------


def test_columns_are_found_by_name_and_by_position(make):
    table = read_table(make({"x0": [1], "x1": [2], "x2": [3]}))
    assert table.resolve(["x2", 0, -2]) == ("x2", "x0", "x1")
    assert table.resolve("x1") == ("x1",)
    assert table.resolve(np.int64(1)) == ("x1",)
    assert table.position_of("x2") == 2


@pytest.mark.parametrize(
    ("given_names", "message"),
    [
        (["agee"], r"identifiers names the column 'agee', which the table does not have.*Did you mean 'age'\?"),
        (["---"], r"the column '---', which the table does not have: expected one of its 2 columns.*'age', 'zip'"),
        ([5], r"identifiers has the position 5 and the table has 2 columns: expected a position from 0 to 1"),
        (["age", 0], r"identifiers names the column 'age' twice.*Remove the repetition"),
        ([True], r"names the column True, which the table does not have"),
    ],
)
def test_a_wrong_column_gets_a_sentence(given_names, message):
    table = read_table(pd.DataFrame({"age": [1], "zip": [2]}))
    with pytest.raises(ParameterError, match=message):
        table.resolve(given_names, "identifiers")


def test_only_frames_with_text_labels_have_named_columns(library, make):
    assert read_table(make({"x0": [1]})).has_named_columns == (library != "numpy")
    assert not read_table(pd.DataFrame([[1, 2]])).has_named_columns


def test_integer_labels_survive_and_are_never_mistaken_for_positions():
    frame = pd.DataFrame([["p", "q"]], columns=[1, 0])
    table = read_table(frame)
    assert table.names == ("1", "0")
    assert table.resolve("1") == ("1",)
    with pytest.raises(ParameterError, match=r"no doubt which column is meant. Give the label as text, '0'"):
        table.resolve([0])
    new = {"1": GroupedValues(np.array([0]), None, np.array([0]))}
    pd.testing.assert_frame_equal(table.replaced(new), frame)
    assert read_table(pd.DataFrame([["p", "q"]])).resolve([1]) == ("1",)


def test_the_index_of_the_columns_keeps_its_name():
    frame = pd.DataFrame([[1, 2]], columns=pd.Index(["a", "b"], name="field"))
    assert read_table(frame).replaced({}, drop=["a"]).columns.name == "field"


# ---- bad input -------------------------------------------------------------------------------------------------------

DAY = datetime.date(2020, 1, 1)
NOON = datetime.datetime(2020, 1, 1, 12)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"several columns with the names 'a'.*Rename or drop"),
        (pa.table([[1], [2]], names=["a", "a"]), r"several columns with the names 'a'.*Rename or drop"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), r"several columns with the names '1'.*Rename or drop"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), r"names in several levels.*Flatten"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\) \(shape=\(0, 1\)\).*Hand in a table with records"),
        (pd.DataFrame(index=range(12)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required\."),
        (np.empty((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\)"),
        (np.empty((12, 0)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required\."),
        (pl.DataFrame({"a": []}), r"0 sample\(s\)"),
        (np.arange(3), r"array with 1 dimension\(s\): expected 2.*Reshape your data"),
        (np.zeros((2, 2, 2)), r"array with 3 dimension\(s\): expected 2"),
        (pd.Series([1]), r"one column \(1-D\): expected a table"),
        (pl.Series([1]), r"one column \(1-D\): expected a table"),
        (pl.LazyFrame({"a": [1]}), r"polars LazyFrame: expected .* in memory.*\.collect\(\)"),
        (scipy.sparse.csr_matrix(np.eye(2)), r"sparse matrix: expected a dense table. Convert it with .toarray\(\)"),
        (scipy.sparse.coo_array(np.eye(2)), r"sparse matrix"),
        (np.ma.masked_array([[1.0]], mask=[[True]]), r"masked array.*\.filled"),
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), r"structured array.*Build a frame"),
        (pa.record_batch({"a": [1]}), r"of the type RecordBatch: expected a pandas or polars frame"),
        ({"a": [1]}, r"of the type dict: expected a pandas or polars frame"),
        ([[1], [1, 2]], r"different lengths"),
        (None, r"of the type NoneType"),
        (3, r"of the type int"),
    ],
)
def test_what_is_not_a_table_gets_a_sentence(frame, message):
    with pytest.raises(InputError, match=message):
        read_table(frame)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"x0": [1.0, np.inf]}), r"'x0' contains infinity in 1 of 2 records.*Replace infinity"),
        (pl.DataFrame({"x0": [1.0, -np.inf, None]}), r"'x0' contains infinity in 1 of 3 records"),
        (np.array([[np.inf]]), r"'x0' contains infinity"),
        (np.array([[1 + 2j]]), r"'x0' has the numpy type complex128.*Complex data not supported"),
        (np.array([[b"a"]]), r"'x0' has the numpy type \|S1"),
        (pd.DataFrame({"x0": np.array([2**63], np.uint64)}), r"'x0' has unsigned integers above.*Convert it to float"),
        (pl.DataFrame({"x0": pl.Series([2**100], dtype=pl.Int128)}), r"'x0' has integers beyond 64 bits"),
        (pd.DataFrame({"x0": pd.Series([1, "a"], dtype=object)}), r"'x0' holds Python objects.*int, str.*Convert"),
        (pd.DataFrame({"x0": pd.Series([1.5, "a"], dtype=object)}), r"'x0' holds Python objects.*float, str"),
        (pd.DataFrame({"x0": pd.Series([True, 1], dtype=object)}), r"'x0' holds Python objects.*bool, int"),
        (pd.DataFrame({"x0": pd.Series([True, 1.5], dtype=object)}), r"'x0' holds Python objects.*bool, float"),
        (pd.DataFrame({"x0": pd.Series([DAY, 1.5], dtype=object)}), r"'x0' holds Python objects.*date, float"),
        (pd.DataFrame({"x0": pd.Series([DAY, NOON], dtype=object)}), r"date, datetime"),
        (pd.DataFrame({"x0": pd.Series([2**70], dtype=object)}), r"'x0' holds Python objects"),
        (pd.DataFrame({"x0": pd.Series([{"a": 1}], dtype=object)}), r"'x0' holds Python objects.*dict"),
        (pd.DataFrame({"x0": pd.Series(["\ud800"], dtype=object)}), r"'x0' has text that is not valid Unicode"),
        (pd.DataFrame({"x0": pd.Series([NOON, NOON.replace(tzinfo=datetime.UTC)], dtype=object)}),
         r"'x0' has datetimes with and without a time zone"),
        (pd.DataFrame({"x0": pd.arrays.SparseArray([0, 1])}), r"'x0' has the pandas type Sparse.*to_dense"),
        (pd.DataFrame({"x0": pd.interval_range(0, 2)}), r"'x0' has the pandas type interval"),
        (pd.DataFrame({"x0": pd.period_range("2020", periods=2, freq="M")}), r"'x0' has the pandas type period"),
        (pd.DataFrame({"x0": pd.cut([1, 2], 2)}), r"'x0' has the pandas type category.*astype\(str\)"),
        (pd.DataFrame({"x0": pd.Categorical([1, "a"])}), r"'x0' holds Python objects of mixed"),
        (pd.DataFrame({"x0": pd.Categorical([pd.Timestamp("2020")])}), r"'x0' is categorical with categories of"),
        (pl.DataFrame({"x0": [[1]]}), r"'x0' has the polars type List"),
        (pl.DataFrame({"x0": [{"a": 1}]}), r"'x0' has the polars type Struct"),
        (pl.DataFrame({"x0": [b"a"]}), r"'x0' has the polars type Binary"),
        (pa.table({"x0": [[1]]}), r"'x0' has the type list"),
        (pa.table({"x0": [{"a": 1}]}), r"'x0' has the type struct"),
        (pd.DataFrame({"x0": np.array(["300000-01-01"], "M8[s]")}), r"'x0' has moments too far from 1970"),
    ],
)  # fmt: skip
def test_a_column_that_cannot_be_read_is_named_with_the_fix(frame, message):
    with pytest.raises(InputError, match=message):
        read_table(frame).column("x0")


def test_moments_named_categorical_are_refused(make):
    table = read_table(make({"x0": [DAY, DAY]}), categorical=["x0"])
    with pytest.raises(InputError, match=r"'x0' holds dates, times or durations and is named categorical"):
        table.column("x0")


def test_messages_hold_no_cell_of_the_table():
    frame = pd.DataFrame({"x": pd.Series(["secret-cell", 1], dtype=object)})
    with pytest.raises(InputError) as caught:
        read_table(frame).column("x")
    assert "secret-cell" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_numbers_cannot_be_written_over_categories(make):
    table = read_table(make({"x0": ["a", "b"]}))
    for values in ([1.5, 2.5], [7, 8], [-1, 0]):
        with pytest.raises(InputError, match=r"'x0' holds categories and its new values are numbers.*Convert"):
            table.replaced({"x0": GroupedValues(np.array(values), None, np.arange(2))})


@pytest.mark.parametrize("name", ["ModelGuided", "Mondrian", "WorkloadAware", "Hilbert", "RPlusTree", "FullDomain"])
def test_rows_of_different_lengths_are_refused_by_every_anonymizer(name):
    anonymizer = getattr(sfumato, f"{name}Anonymizer")(k=2)
    with pytest.raises(InputError, match="different lengths"):
        anonymizer.fit([[1, 2], [3], [4, 5]], ["a", "b", "a"])


def test_rows_of_different_lengths_are_refused_by_the_anatomizer():
    with pytest.raises(InputError, match="different lengths"):
        sfumato.Anatomizer(2, sensitive=[0]).fit_transform([[1, 2], [3], [4, 5]])


def test_numbers_beside_text_in_lists_of_rows_stay_numbers():
    rows = [[1, "a"], [2, "a"], [30, "b"], [40, "b"]]
    released = sfumato.MondrianAnonymizer(k=2).fit_transform(rows)
    assert all(isinstance(age, int) for age in released[:, 0])


EMPTY_COLUMNS = {
    "polars text": pl.DataFrame({"a": pl.Series([None] * 3, dtype=pl.String)}),
    "polars categories": pl.DataFrame({"a": pl.Series([None] * 3, dtype=pl.Categorical)}),
    "pandas text": pd.DataFrame({"a": pd.Series([None] * 3, dtype="string")}),
    "pandas categories": pd.DataFrame({"a": pd.Categorical([None] * 3)}),
    "arrow text": pa.table({"a": pa.array([None] * 3, pa.string())}),
    "arrow dictionary": pa.table({"a": pa.array([None] * 3, pa.string()).dictionary_encode()}),
}


@pytest.mark.parametrize("frame", EMPTY_COLUMNS.values(), ids=EMPTY_COLUMNS)
@pytest.mark.parametrize("value", [327542400000000, 0.5])
def test_numbers_for_a_column_of_text_without_a_value_are_refused(frame, value):
    new = GroupedValues(np.array([value]), None, group=np.zeros(3, np.int64))
    with pytest.raises(InputError, match="column 'a' holds categories and its new values are numbers"):
        read_table(frame).replaced({"a": new})


def test_a_column_without_a_type_takes_any_values():
    new = GroupedValues(np.array([7]), None, group=np.zeros(3, np.int64))
    assert read_table(pa.table({"a": pa.nulls(3)})).replaced({"a": new})["a"].to_pylist() == [7, 7, 7]


def test_text_for_a_column_of_numbers_is_refused_without_quoting_it():
    table = pd.DataFrame({"code": ["canary", "finch"] * 10, "age": [30, 40] * 10})
    fitted = sfumato.MondrianAnonymizer(k=5, quasi_identifiers=["code", "age"], representative="median").fit(table)
    empty = table.assign(code=np.full(20, np.nan))
    with pytest.raises(InputError, match="new values are of another kind") as caught:
        fitted.transform(empty)
    assert "canary" not in str(caught.value)
