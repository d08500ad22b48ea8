# SPDX-License-Identifier: Apache-2.0
"""Downcoding: the ends of hulls are somebody's values, the ends of fixed cells are not."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attack.published_people import cells, census, hulls, published
from sfumato.attack import downcode_release
from sfumato.errors import InputError
from strategies import in_examples


def people(n: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame({name: random.integers(0, 1000, n) for name in "abc"})


def groups(n: int, size: int) -> np.ndarray:
    return np.arange(n) // size


@in_examples()
@given(ages=st.lists(st.integers(0, 9), min_size=1, max_size=12), others=st.lists(st.integers(0, 9), min_size=1))
def test_a_guess_is_right_and_a_draw_lucky_as_often_as_plain_python_counts(ages, others):
    low, high = 2, 7
    members = [age for age in ages if low <= age <= high] or [low]
    original, released = pa.table({"age": members}), pa.table({"age": [f"{low}-{high}"] * len(members)})
    found = downcode_release(original, released, control=pa.table({"age": others}))
    assert found.rate == np.mean([end in members for end in (low, high)])
    drawn = [age for age in others if low <= age <= high]
    assert found.baseline == pytest.approx(np.mean([age in members for age in drawn]) if drawn else 0.0)
    misses = [1 - drawn.count(end) / max(1, len(drawn)) for end in (low, high)]
    assert found.control == pytest.approx(np.mean([1 - miss ** len(members) for miss in misses]))


def test_every_end_of_a_hull_is_the_value_of_a_member():
    table = people(1000, 0)
    found = downcode_release(table, hulls(table, groups(1000, 5)), control=people(1000, 1))
    assert (found.rate, found.verdict) == (1.0, "stronger than baseline")
    assert found.baseline < 0.05 and found.control < 0.05
    assert set(found.details["by_column"]) == {"a", "b", "c"}


def test_the_ends_of_fixed_cells_are_no_better_than_a_guess():
    table = people(4000, 0)[["a", "b"]]
    found = downcode_release(table, cells(table, 100), control=people(4000, 1)[["a", "b"]])
    assert found.details["n_groups"] == 100
    assert found.verdict == "not shown" and abs(found.rate - found.control) < 0.1


def test_a_range_whose_ends_are_open_or_one_value_is_no_guess():
    original = pa.table({"age": [20, 31, 38, 40, 70, 90]})
    labels = ["20", "31-38", "31-38", "40 and over", "40 and over", "40 and over"]
    found = downcode_release(original, pa.table({"age": labels}))
    assert (found.details["n_guesses"], found.rate) == (3, 1.0)  # 31, 38 and 40


def test_missing_values_are_neither_guessed_nor_counted():
    original = pd.DataFrame({"age": [None, 21, 28, 33, None, 37]}, dtype="Int64")
    labels = ["21-28 or missing"] * 3 + ["33-37 or missing"] * 3
    found = downcode_release(original, pd.DataFrame({"age": labels}))
    assert (found.rate, found.baseline, found.details["n_guesses"]) == (1.0, 1.0, 4)
    decades = pd.DataFrame({"age": ["20-29 or missing"] * 3 + ["30-39 or missing"] * 3})
    assert downcode_release(original, decades).rate == 0.0


def test_without_order_the_people_inside_a_range_are_its_members():
    table = people(600, 0)
    released = hulls(table, groups(600, 5))
    in_order = downcode_release(table, released)
    shuffled = released.sample(frac=1, random_state=0).reset_index(drop=True)
    assert downcode_release(table, shuffled, is_aligned=False).rate == in_order.rate == 1.0


def test_some_groups_are_drawn_by_the_seed():
    table = people(600, 0)[["a", "b"]]
    found = [downcode_release(table, cells(table, 100), n_groups=20, random_state=seed) for seed in (1, 1, 2)]
    assert found[0].rate == found[1].rate != found[2].rate
    assert found[0].details["n_groups"] == 20


def test_groups_of_twice_the_smallest_size_are_counted():
    table = pd.DataFrame({"a": np.arange(10)})
    found = downcode_release(table, hulls(table, np.repeat([0, 1, 2], [2, 3, 5])))
    assert found.details["share_of_forced_groups"] == pytest.approx(1 / 3)


def test_small_census_groups_are_downcoded_and_large_ones_are_not():
    inside, others, _ = census()
    small, large = (downcode_release(inside, published("tight-range", k), control=others) for k in (5, 100))
    assert small.rate > 0.9 and small.verdict == "stronger than baseline"
    assert small.details["by_column"]["age"]["rate"] > small.details["by_column"]["age"]["baseline"] + 0.2
    assert large.verdict != "stronger than baseline"


def test_ends_of_census_cells_give_no_values_away():
    inside, others, _ = census()
    found = downcode_release(inside, published("range", 5), control=others)
    assert found.rate < 0.5 and found.verdict != "stronger than baseline"
    assert found.rate < found.baseline


def test_a_release_without_ranges_gets_a_sentence():
    inside, others, _ = census()
    with pytest.raises(InputError, match="no column was released as ranges or bounds"):
        downcode_release(inside, published("phantom"), control=others)
