# SPDX-License-Identifier: Apache-2.0
"""Released combinations that are one person's, counted apart from the engine."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.measurement.combinations import count_combinations


def by_hand(original, released):
    """Count with dictionaries: a missing value is None on both sides."""
    before = Counter(tuple(row.values()) for row in original.to_pylist())
    shown = {tuple(row.values()) for row in released.to_pylist()}
    return len(shown), sum(before[row] == 1 for row in shown)


@pytest.mark.parametrize("seed", range(20))
def test_the_count_is_that_of_plain_dictionaries(seed):
    random = np.random.default_rng(seed)

    def table(n):
        return pa.table(
            {
                "age": pa.array(random.integers(0, 9, n), mask=random.random(n) < 0.1),
                "pay": pa.array(random.integers(0, 3, n) / 2, mask=random.random(n) < 0.1),
                "town": pa.array(random.choice(["a", "b", "c"], n), mask=random.random(n) < 0.1),
                "born": pa.array(random.integers(0, 3, n).astype("datetime64[D]")),
            }
        )

    original, released = table(150), table(60)
    assert tuple(count_combinations(original, released, original.column_names)) == by_hand(original, released)


def test_a_number_is_compared_exactly_whatever_its_type():
    large = 2**53
    original = pa.table({"n": [large, large + 1, 5, 7]})
    assert count_combinations(original, pa.table({"n": [float(large)]}), ["n"]).n_of_one_record == 1
    assert count_combinations(original, pa.table({"n": [5.0, 5.5]}), ["n"]) == (2, 1)
    assert count_combinations(original, pa.table({"n": [large + 1]}), ["n"]).n_of_one_record == 1
    assert count_combinations(pa.table({"n": [0.0, 1.0]}), pa.table({"n": [-0.0]}), ["n"]).n_of_one_record == 1


def test_ranges_and_other_text_are_nobody_s_numbers():
    original = pa.table({"age": [0, 1, 2], "sex": ["f", "m", "f"]})
    assert count_combinations(original, pa.table({"age": ["0", "1-2"], "sex": ["f", "f"]}), ["age", "sex"]) == (2, 0)


def test_missing_is_a_value_that_one_person_can_have():
    original = pd.DataFrame({"age": [30, 30, 41], "sex": ["f", "f", None]})
    assert count_combinations(original, pd.DataFrame({"age": [41], "sex": [None]}), ["age", "sex"]) == (1, 1)
    assert count_combinations(original, pd.DataFrame({"age": [41], "sex": ["f"]}), ["age", "sex"]) == (1, 0)
    nobody = pd.DataFrame({"age": [np.nan, np.nan, np.nan], "sex": ["f", "m", "m"]})
    assert count_combinations(nobody, nobody, ["age", "sex"]) == (2, 1)


def test_arrays_name_their_columns_by_place():
    original = np.array([[1, 20, 3], [2, 20, 3], [3, 50, 4]])
    released = np.array([[20, 3], [50, 4]])
    assert count_combinations(original, released, ["x1", "x2"], ["x0", "x1"]) == (2, 1)
