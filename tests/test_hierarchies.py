# SPDX-License-Identifier: Apache-2.0
"""Hierarchies are trees, whatever they are built from, and say what is wrong with those that are not."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, ParameterError
from sfumato.hierarchies import Hierarchy, read_hierarchy
from strategies import in_examples

JOBS = [
    ("nurse", "health", "services", "*"),
    ("surgeon", "health", "services", "*"),
    ("cook", "food", "services", "*"),
    ("miner", "mining", "industry", "*"),
]


@pytest.fixture
def jobs():
    return Hierarchy(JOBS)


def test_levels_labels_and_leaves_are_read_off_the_rows(jobs):
    assert (jobs.n_values, jobs.n_levels) == (4, 4)
    assert jobs.labels[2] == ("services", "industry")
    assert [jobs.leaf_counts[level].tolist() for level in range(4)] == [[1] * 4, [2, 1, 1], [3, 1], [4]]
    assert [jobs.n_leaves(label) for label in ("nurse", "health", "services", "*")] == [1, 2, 3, 4]
    assert [jobs.level_of(label) for label in ("nurse", "food", "industry", "*")] == [0, 1, 2, 3]
    assert jobs.label("cook", 1) == "food"
    assert jobs.codes[:, 1].tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("values", "ancestor"),
    [
        (["nurse"], "nurse"),
        (["nurse", "nurse"], "nurse"),
        (["nurse", "surgeon"], "health"),
        (["surgeon", "cook"], "services"),
        (["cook", "miner"], "*"),
    ],
)
def test_the_lowest_common_ancestor_is_the_finest_label_above_all(jobs, values, ancestor):
    assert jobs.lowest_common_ancestor(values) == ancestor
    assert jobs.lowest_common_ancestor(reversed(values)) == ancestor


@in_examples(100)
@given(st.data())
def test_the_lowest_common_ancestor_stands_for_all_and_no_finer_label_does(data):
    hierarchy = Hierarchy.from_intervals(range(40), [2, 4, 20])
    values = data.draw(st.lists(st.integers(0, 39), min_size=1))
    level = hierarchy.lowest_common_level(values)
    paths = [hierarchy.path(value) for value in values]
    assert {path[level] for path in paths} == {hierarchy.lowest_common_ancestor(values)}
    assert level == 0 or len({path[level - 1] for path in paths}) > 1


def test_equal_hierarchies_are_equal_and_survive_a_pickle(jobs):
    assert jobs == Hierarchy([list(row) for row in JOBS])
    assert hash(jobs) == hash(Hierarchy(JOBS))
    assert jobs != Hierarchy(JOBS[:3])
    assert pickle.loads(pickle.dumps(jobs)) == copy.deepcopy(jobs) == jobs
    with pytest.raises(AttributeError):
        jobs.rows = ()


def test_a_level_above_all_is_added_where_the_last_labels_differ():
    assert Hierarchy([("a", "x"), ("b", "y")]).rows == (("a", "x", "*"), ("b", "y", "*"))
    assert Hierarchy([("a",)]).rows == (("a", "*"),)


# -- reading files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_files_are_read_whatever_separates_the_labels(tmp_path, jobs, separator):
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(separator.join(row) for row in JOBS) + "\n", encoding="utf-8")
    assert read_hierarchy(path) == jobs
    assert read_hierarchy(str(path), delimiter=separator) == jobs


def test_labels_may_hold_commas_where_semicolons_separate(tmp_path):
    path = tmp_path / "age.csv"
    path.write_text("1;[0, 5[;*\n7;[5, 10[;*\n", encoding="utf-8")
    assert read_hierarchy(path).labels[1] == ("[0, 5[", "[5, 10[")


def test_quoted_labels_byte_order_marks_and_empty_lines_are_read_as_meant(tmp_path):
    path = tmp_path / "age.csv"
    path.write_text('\ufeff1,"[0, 5[",*\r\n\r\n7,"[5, 10[",*\r\n', encoding="utf-8")
    assert read_hierarchy(path).rows == (("1", "[0, 5[", "*"), ("7", "[5, 10[", "*"))


def test_what_is_wrong_with_a_file_names_the_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("nurse;health;*\ncook;*\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"'jobs.csv': row 2 has 2 labels and row 1 has 3"):
        read_hierarchy(path)
    with pytest.raises(InputError, match=r"no file 'absent.csv'"):
        read_hierarchy(tmp_path / "absent.csv")
    path.write_bytes(b"caf\xe9;*\n")
    with pytest.raises(InputError, match="not in UTF-8"):
        read_hierarchy(path)


# -- what is no hierarchy ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "x", "*"), ("b", "*")], r"row 2 has 2 labels and row 1 has 3"),
        ([("a", "x", "*"), ("b", "y", "*"), ("a", "x", "*")], r"row 3 has the same value as row 1"),
        ([("a", "x", "p", "*"), ("b", "x", "q", "*")], r"rows 1 and 2 share a label at level 1 and differ at level 2"),
        ([("a", "", "*"), ("b", "y", "*")], r"row 1 has an empty label"),
        ([], "without values"),
    ],
)
def test_rows_that_are_no_tree_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        Hierarchy(rows)


def test_other_things_than_rows_are_refused():
    with pytest.raises(ParameterError, match="from_mapping"):
        Hierarchy({"a": ["b"]})
    with pytest.raises(ParameterError, match="a row that is one value"):
        Hierarchy(["ab", "ac"])
    with pytest.raises(ParameterError, match="expected a dict"):
        Hierarchy.from_mapping([("a", "*")])


def test_values_and_labels_the_hierarchy_does_not_have_are_refused_without_showing_them(jobs):
    with pytest.raises(InputError, match="1 of 2 values are not in the hierarchy") as caught:
        jobs.lowest_common_ancestor(["nurse", "spy"])
    assert "spy" not in str(caught.value)
    with pytest.raises(ParameterError, match="on none of the 4 levels"):
        jobs.n_leaves("army")
    with pytest.raises(ParameterError, match="level=4: expected a level from 0 to 3"):
        jobs.label("nurse", 4)
    assert jobs.find(["cook", "spy"]).tolist() == [2, -1]


def test_a_label_with_two_meanings_is_asked_for_by_level():
    hierarchy = Hierarchy([("a", "other", "other", "*"), ("b", "x", "other", "*"), ("c", "y", "y", "*")])
    with pytest.raises(ParameterError, match="different values at different levels"):
        hierarchy.n_leaves("other")
    assert [hierarchy.n_leaves("other", level) for level in (1, 2)] == [1, 2]
    assert hierarchy.n_leaves("y") == 1
    with pytest.raises(ParameterError, match="level 0 has no such label"):
        hierarchy.n_leaves("other", 0)


# -- building ------------------------------------------------------------------------------------------------


def test_a_nested_mapping_becomes_a_hierarchy(jobs):
    nested = {"services": {"health": ["nurse", "surgeon"], "food": ["cook"]}, "industry": {"mining": ["miner"]}}
    assert Hierarchy.from_mapping(nested) == jobs


def test_values_less_deep_stand_for_themselves_in_between():
    hierarchy = Hierarchy.from_mapping({"Europe": {"Alps": {"AT", "CH"}}, "JP": None, "US": []})
    assert hierarchy.rows == (("AT", "Alps", "Europe", "*"), ("CH", "Alps", "Europe", "*"),
                              ("JP", "JP", "JP", "*"), ("US", "US", "US", "*"))  # fmt: skip


def test_a_value_in_two_branches_is_refused():
    with pytest.raises(InputError, match="same value as row 1"):
        Hierarchy.from_mapping({"x": ["a"], "y": ["a"]})


def test_intervals_nest_and_are_found_by_any_spelling_of_a_number():
    hierarchy = Hierarchy.from_intervals(range(-10, 100), [5, 10, 30])
    assert hierarchy.path(34) == ("34", "30-34", "30-39", "30-59", "*")
    assert hierarchy.path(-1) == ("-1", "-5 to -1", "-10 to -1", "-30 to -1", "*")
    assert hierarchy.path(34.0) == hierarchy.path(np.int64(34)) == hierarchy.path("34")
    assert Hierarchy([("7.0", "*")]).find([7, 7.0, "7"]).tolist() == [0, 0, -1]


def test_intervals_of_fractions_start_where_they_say():
    hierarchy = Hierarchy.from_intervals([0.1, 0.3, 0.65], [0.1, 0.3])
    assert hierarchy.path(0.3) == ("0.3", "[0.3, 0.4)", "[0.3, 0.6)", "*")
    assert hierarchy.path(0.65) == ("0.65", "[0.6, 0.7)", "[0.6, 0.9)", "*")


@pytest.mark.parametrize("widths", [[5, 5], [5, 12], [10, 5], [0], [-5]])
def test_widths_that_do_not_nest_are_refused(widths):
    with pytest.raises(ParameterError, match="each a multiple of the one before"):
        Hierarchy.from_intervals(range(10), widths)


def test_intervals_of_other_things_than_numbers_are_refused():
    with pytest.raises(ParameterError, match="values has a str"):
        Hierarchy.from_intervals(["a"], [5])
    with pytest.raises(ParameterError, match="widths has a float"):
        Hierarchy.from_intervals([1], [float("inf")])


def test_prefixes_hide_the_end_of_a_text():
    hierarchy = Hierarchy.from_prefixes(["8001", "8005", "3011", "80"])
    assert hierarchy.path("8005") == ("8005", "800*", "80*", "8*", "*")
    assert hierarchy.path("80") == ("80", "80", "80", "8*", "*")
    assert hierarchy.lowest_common_ancestor(["8001", "8005"]) == "800*"


@pytest.mark.parametrize("lengths", [[1, 2], [2, 0], [2, 2], [1.5], [True]])
def test_prefix_lengths_that_do_not_fall_are_refused(lengths):
    with pytest.raises(ParameterError, match="falling whole numbers"):
        Hierarchy.from_prefixes(["abc"], lengths)
