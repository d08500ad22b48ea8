# SPDX-License-Identifier: Apache-2.0
"""Records become numbers by public knowledge alone, the same in every library."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.errors import InputError, ParameterError
from sfumato.frames import read_table
from sfumato.private.encoding import PublicEncoding, shares_of_persons

COLUMNS = {"age": [-5.0, 50.0, None, 200.0], "region": ["south", "west", None, "north"]}
BOUNDS, CATEGORIES = {"age": (0, 100)}, {"region": ["north", "south"]}


def encoding(**changes):
    return PublicEncoding(
        ["age", "region"], **{"bounds": BOUNDS, "categories": CATEGORIES, "n_intervals": 4, **changes}
    )


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_cells_follow_from_what_was_given_alone(library):
    cells = encoding().cells(read_table(library(COLUMNS)))
    np.testing.assert_array_equal(cells, [[0, 1], [2, 2], [4, 2], [3, 0]])


def test_rows_have_as_many_ones_as_columns_and_one():
    rows = encoding().one_hot(read_table(pa.table(COLUMNS))).toarray()
    assert rows.shape == (4, 5 + 3 + 1)
    np.testing.assert_array_equal(rows.sum(axis=1), 3)
    np.testing.assert_array_equal(rows[:, -1], 1)
    names = encoding().cell_names()
    assert len(names) == encoding().n_cells == 8
    assert names[2] == "age 50..75"
    assert names[5] == "region=north"


def test_given_edges_are_the_edges():
    cells = encoding(bounds={"age": [0, 1, 60, 100]}).cells(read_table(pa.table(COLUMNS)))
    np.testing.assert_array_equal(cells[:, 0], [0, 1, 3, 2])


def test_dense_numbers_lie_between_0_and_1():
    numbers = encoding().dense(read_table(pa.table(COLUMNS)))
    np.testing.assert_allclose(numbers[:, 0], [0, 0.5, 0.5, 1])
    np.testing.assert_allclose(numbers[:, 1:], [[0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0]])


def test_codes_can_be_categories():
    table = read_table(np.array([[3], [1], [9]]))
    np.testing.assert_array_equal(PublicEncoding(["x0"], None, {"x0": [1, 2, 3]}).cells(table)[:, 0], [2, 0, 3])


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"bounds": {}}, "'age' is neither in bounds= nor in categories="),
        ({"categories": {**CATEGORIES, "age": [1]}}, "'age' is both"),
        ({"bounds": {**BOUNDS, "height": (0, 2)}}, "'height', which the table does not have"),
        ({"bounds": {"age": (100, 0)}}, "increasing order"),
        ({"bounds": {"age": (0,)}}, "increasing order"),
        ({"bounds": {"age": (0, float("inf"))}}, "finite"),
        ({"bounds": {"age": "old"}}, "increasing order"),
        ({"bounds": (0, 100)}, "expected a mapping"),
        ({"categories": ["north"]}, "expected a mapping"),
        ({"categories": {"region": []}}, "at least one value"),
        ({"categories": {"region": ["a", "a"]}}, "each once"),
        # In a table whose only text is one person's, all numbers are read as text, and none would be in the list.
        ({"categories": {"region": ["a", 1]}}, "text and other values"),
        ({"n_intervals": 0}, "n_intervals=0"),
    ],
)
def test_what_is_not_public_is_refused(changes, match):
    with pytest.raises(ParameterError, match=match):
        encoding(**changes)


def test_kinds_must_fit():
    with pytest.raises(ParameterError, match="holds categories and is in bounds="):
        PublicEncoding(["region"], {"region": (0, 1)}, None).cells(read_table(pa.table(COLUMNS)))
    days = pa.table({"day": pa.array([0, 1], pa.date32())})
    with pytest.raises(ParameterError, match="holds dates or times"):
        PublicEncoding(["day"], {"day": (0, 1)}, None).cells(read_table(days))
    with pytest.raises(InputError, match="no column 'region'"):
        encoding().cells(read_table(pa.table({"age": [1.0]})))


@pytest.mark.parametrize(
    ("values", "known", "match"),
    [
        ([1, 2, 3], ["1", "2"], "are text and the column holds numbers"),
        (["1", "2", None], [1, 2], "are numbers and the column holds text"),
    ],
)
def test_lists_and_columns_must_be_of_one_kind(values, known, match):
    table = read_table(pa.table({"code": values}))
    with pytest.raises(ParameterError, match=match):
        PublicEncoding(["code"], None, {"code": known}).cells(table)


def test_dates_are_no_categories():
    days = read_table(pa.table({"day": pa.array([0, 1], pa.date32())}))
    with pytest.raises(ParameterError, match="holds dates or times and is in categories="):
        PublicEncoding(["day"], None, {"day": [datetime.date(1970, 1, 1)]}).cells(days)


def test_a_column_without_any_value_has_no_kind():
    table = read_table(pd.DataFrame({"code": [np.nan, np.nan]}))
    np.testing.assert_array_equal(PublicEncoding(["code"], None, {"code": ["a", "b"]}).cells(table)[:, 0], [2, 2])
    # Nor does it raise: with one person's value there would be no error.
    for nothing in (pa.nulls(2), pa.array([None, None], pa.string()), pa.array([None, None], pa.int64())):
        table = read_table(pa.table({"code": nothing}))
        np.testing.assert_array_equal(PublicEncoding(["code"], None, {"code": ["a", "b"]}).cells(table)[:, 0], [2, 2])
        numbers = PublicEncoding(["code"], {"code": (0, 1, 2)}, None)
        np.testing.assert_array_equal(numbers.cells(table)[:, 0], [2, 2])
        np.testing.assert_array_equal(numbers.dense(table), [[0.5], [0.5]])


def test_records_of_a_person_share_one_weight():
    people = pa.table({"person": ["a", "b", "a", "d", "c", "d"]})
    shares, n_persons, name = shares_of_persons(people, "person")
    np.testing.assert_allclose(shares, [0.5, 1, 0.5, 0.5, 1, 0.5])
    assert (n_persons, name) == (4, "person")


def test_a_record_without_a_person_is_refused():
    """As one person, two nameless ones would change each other's share: a person moves the sum by up to 2, not 1."""
    with pytest.raises(InputError, match="column 'person' has missing values"):
        shares_of_persons(pa.table({"person": ["a", None, "a", None]}), "person")


@pytest.mark.parametrize("reach", [0.0, 0.5, 4.0, 100.0])
def test_features_of_cells_are_never_longer_than_one(reach):
    rows = encoding(n_intervals=16).smoothing(reach).toarray()
    assert rows.shape == (17 + 3 + 1, 17 + 3 + 1)
    assert (np.square(rows).sum(axis=1) <= 1.0).all()
    np.testing.assert_array_equal(rows, rows.T)
    products = rows @ rows.T
    np.testing.assert_allclose(np.diag(products), 1.0, atol=1e-9)
    near, far = products[3, 4], products[3, 12]
    np.testing.assert_allclose([near, far], [np.exp(-1 / reach), np.exp(-9 / reach)] if reach else [0, 0], atol=1e-9)
    # Missing values, categories and the constant have nothing in common with anything.
    np.testing.assert_allclose(products[16:], np.eye(21)[16:], atol=1e-9)
