# SPDX-License-Identifier: Apache-2.0
"""Who fits a released record, and how many columns differ: beside plain Python, on values, ranges and sets."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.released_boxes import fewest_misfits, rows_inside
from sfumato.attack.released_cells import read_release
from sfumato.errors import InputError
from strategies import in_examples

VALUES = st.integers(0, 4)
PEOPLE = st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=12)
BOXES = st.lists(st.tuples(*[st.tuples(VALUES, VALUES).map(sorted)] * 3), min_size=1, max_size=80)


def tables(people, boxes):
    """Return people, and boxes as bounds in three columns, as `read_release` reads them."""
    original = pa.table({name: [person[i] for person in people] for i, name in enumerate("abc")})
    ends = {f"{name}_{end}": [box[i][j] for box in boxes]
            for i, name in enumerate("abc") for j, end in enumerate(("low", "high"))}  # fmt: skip
    return read_release(original, pa.table(ends), None, None, is_aligned=False)


def n_misfits(person, box):
    return sum(not low <= value <= high for value, (low, high) in zip(person, box, strict=True))


@in_examples()
@given(people=PEOPLE, boxes=BOXES, most=st.integers(0, 3))
def test_misfits_are_those_that_plain_python_counts(people, boxes, most):
    table = tables(people, boxes)
    found = fewest_misfits(table.columns, table.shown(table.columns), table.people(table.columns), most)
    expected = [min(most + 1, *(n_misfits(person, box) for box in boxes), most + 1) for person in people]
    assert found.tolist() == expected


@in_examples()
@given(people=PEOPLE, boxes=BOXES)
def test_rows_inside_are_those_that_plain_python_finds(people, boxes):
    table = tables(people, boxes)
    shown = np.stack([column.shown for column in table.columns], axis=1)
    inside = [rows.tolist() for rows in rows_inside(table.columns, shown, table.people(table.columns))]
    assert inside == [[row for row, person in enumerate(people) if n_misfits(person, box) == 0] for box in boxes]


# -- what cells say by themselves --------------------------------------------------------------------------------


def stated(original, released, **settings):
    (column,) = read_release(pa.table({"x": original}), released, ["x"], None, as_stated=True, **settings).columns
    fits = column.distances(column.shown, np.arange(column.n_values)) == 0
    return fits.tolist(), column.is_stated


def test_a_range_stands_for_all_that_it_says_and_not_for_what_it_replaced():
    fits, is_stated = stated([20, 25, 29, 35], pa.table({"x": ["20-29", "20-29", "30-39", "30-39"]}))
    assert is_stated and fits == [[True, True, True, False]] * 2 + [[False, False, False, True]] * 2


def test_other_stands_for_every_category_that_no_label_names():
    fits, _ = stated(["a", "b", "c", "d"], pa.table({"x": ["{a, other}", "b", "other or missing", "a"]}))
    named = {"a": [True, False, False, False], "b": [False, True, False, False]}
    assert fits == [[True, False, True, True], named["b"], [False, False, True, True], named["a"]]


def test_bounds_of_categories_stand_for_all_between_them_in_their_order():
    bounds = pa.table({"x_low": ["a", "b", "c", "a"], "x_high": ["b", "b", "d", "d"]})
    fits, _ = stated(["a", "b", "c", "d"], bounds)
    assert [sum(row) for row in fits] == [2, 1, 2, 4]
    sizes = pd.Categorical(["small", "large", "tiny", "small"], ["tiny", "small", "large"], ordered=True)
    released = pd.DataFrame({"x_low": sizes[[2, 2, 2, 2]], "x_high": sizes[[0, 0, 0, 0]]})
    original = pd.DataFrame({"x": sizes})
    (column,) = read_release(original, released, ["x"], None, as_stated=True).columns
    fitting = column.distances(column.shown[:1], column.codes)[0] == 0
    assert fitting.tolist() == [True, False, True, True]


def test_bounds_do_not_say_whether_a_value_is_missing():
    fits, _ = stated([1, 5, None, 9], pa.table({"x_low": [1, 1, 1, 9], "x_high": [5, 5, 5, 9]}))
    assert all(row[-1] for row in fits)


def test_a_column_that_was_blanked_fits_missing_values_only():
    fits, is_stated = stated(["a", None, "b"], pa.table({"x": pa.array([None] * 3, pa.string())}))
    assert is_stated and all(row[-1] and not any(row[:-1]) for row in fits)


def test_a_label_of_a_hierarchy_stands_for_what_it_replaced_where_rows_are_aligned():
    released = pa.table({"x": ["Europe", "Europe", "Asia"]})
    fits, is_stated = stated(["Ulm", "Graz", "Osaka"], released)
    assert not is_stated and [sum(row) for row in fits] == [2, 2, 1]
    with pytest.raises(InputError, match="2 labels that say neither a range nor a set"):
        stated(["Ulm", "Graz", "Osaka"], released, is_aligned=False)
