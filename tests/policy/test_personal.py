# SPDX-License-Identifier: Apache-2.0
"""The columns that an attacker is assumed to want."""

import pyarrow as pa
import pytest

from sfumato.frames import read_table
from sfumato.policy.personal import find_personal


def found(table, **reading):
    read = read_table(pa.table(table), **reading)
    return find_personal(read, read.names)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("RAC1P", "may tell racial or ethnic origin (special category)"),
        ("DIS", "may tell health (special category)"),
        ("native-country", "may tell origin"),
        ("maritalStatus", "may tell family"),
        ("AGEP", "may tell age"),
        ("date_of_birth", "may tell age"),
    ],
)
def test_names_tell_what_an_attacker_wants(name, reason):
    assert found({"x": [1.5, 2.5], name: [1, 2]}) == {name: reason}


@pytest.mark.parametrize("name", ["average", "Mars", "message", "mileage", "village", "citation"])
def test_a_word_within_another_does_not_count(name):
    assert list(found({name: [1, 2], "sex": [1, 2]})) == ["sex"]


def test_values_tell_what_a_name_does_not():
    assert list(found({"c7": ["White", "Black"], "c8": [1, 2]})) == ["c7"]


def test_without_such_names_categories_and_codes_are_wanted():
    reasons = found({"x1": [1, 2, 3], "x2": [1.5, 2.5, 3.5], "x3": ["a", "b", "a"], "x4": [7, 7, 7]})
    assert reasons == {"x1": "has 3 distinct whole numbers, which may be codes", "x3": "holds categories"}


def test_without_anything_all_columns_are_wanted():
    assert list(found({"x1": [1.5, 2.5], "x2": [0.1, 0.2]})) == ["x1", "x2"]
