# SPDX-License-Identifier: Apache-2.0
"""The place of a record tells whose it is where the order was kept, and nothing where it was not."""

import numpy as np
import pandas as pd
import pytest

from sfumato.attack import match_by_row_order
from sfumato.errors import InputError, ParameterError

N_PEOPLE, K = 4000, 10


def people(seed: int = 0) -> pd.DataFrame:
    """People whose wage grows with their age and skill."""
    random = np.random.default_rng(seed)
    age, skill = random.integers(20, 65, N_PEOPLE), random.integers(0, 8, N_PEOPLE)
    wage = (age * 40 + skill * 300 + random.normal(0, 400, N_PEOPLE)).round(2)
    return pd.DataFrame({"name": [f"{i:05d}" for i in random.permutation(N_PEOPLE)], "age": age, "skill": skill,
                         "wage": wage, "ill": random.integers(0, 2, N_PEOPLE)})  # fmt: skip


def released(table: pd.DataFrame) -> pd.DataFrame:
    """Groups of ten at random, with their means: nothing but the order is left to tell records of a group apart."""
    group = np.random.default_rng(1).permutation(len(table)) // K
    means = table[["age", "skill"]].groupby(group).transform("mean")
    return pd.DataFrame({"age": means["age"], "skill": means["skill"], "wage": table["wage"], "ill": table["ill"]})


def attacked(table: pd.DataFrame, **settings: object):
    return match_by_row_order(table, released(table), ["age", "skill"], **settings)


def test_a_file_sorted_by_what_the_attacker_partly_knows_gives_people_away():
    found = attacked(people().sort_values("wage", ignore_index=True))
    assert found.baseline == pytest.approx(0.1, abs=0.01)
    assert found.rate > 0.25 and found.verdict == "stronger than baseline"
    assert found.control == pytest.approx(0.1, abs=0.03)
    assert found.details["places_from"] == "all columns together"


def test_a_file_sorted_by_a_column_that_was_dropped_gives_everybody_away():
    for ascending in (True, False):
        found = attacked(people().sort_values("name", ignore_index=True, ascending=ascending))
        assert found.rate > 0.99 and found.details["places_from"] == "name"


def test_a_shuffled_release_of_a_sorted_file_gives_nobody_away():
    table = people().sort_values("wage", ignore_index=True)
    found = attacked(table, places=np.random.default_rng(2).permutation(N_PEOPLE))
    assert found.verdict == "not shown"
    assert found.interval[0] < found.baseline < found.interval[1]


def test_a_file_in_no_order_gives_nobody_away_over_many_seeds():
    verdicts = [attacked(people(seed), random_state=seed).verdict for seed in range(8)]
    assert verdicts.count("stronger than baseline") <= 1


def test_a_guess_within_the_group_is_as_good_as_another_where_all_are_expected_at_one_place():
    table = pd.DataFrame({"town": ["Ulm"] * 400, "ill": np.arange(400)})
    found = match_by_row_order(table, table, ["town"])
    assert found.rate <= 0.02 and found.baseline == pytest.approx(1 / 400)


def test_tables_and_places_of_different_length_are_refused():
    table = people()
    with pytest.raises(InputError, match="4000 records and the release 3999"):
        match_by_row_order(table, released(table)[1:], ["age"])
    for wrong in (np.arange(5), np.zeros(N_PEOPLE, int)):
        with pytest.raises(ParameterError, match="places: expected each number from 0 to 3999 once"):
            attacked(table, places=wrong)
