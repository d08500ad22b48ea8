# SPDX-License-Identifier: Apache-2.0
"""Membership of a release: found where real people or hulls are published, not where cells are."""

import time

import numpy as np
import pandas as pd
import pytest

from attack.published_people import N_RELEASED, cells, census, hulls, published
from sfumato.attack import find_members_of_release
from sfumato.errors import InputError

EXACT, ONE, TWO = "no column differs", "at most 1 column differs", "at most 2 columns differ"


def points(n: int, seed: int, n_columns: int = 4) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame({f"x{i}": random.integers(0, 100, n) for i in range(n_columns)})


def attacked(representative: str, **settings):
    inside, others, _ = census()
    return find_members_of_release(inside, published(representative), control=others, **settings)


def test_a_table_released_as_it_is_gives_every_member_away():
    inside, others = points(400, 0), points(400, 1)
    found = find_members_of_release(inside, inside, control=others)
    assert found.rate == 1.0 and found.verdict == "stronger than baseline"
    assert found.details["rules"][EXACT]["members"] == 1.0 and found.details["rules"][EXACT]["others"] == 0.0
    assert found.control == pytest.approx(0.5, abs=0.1)


def test_hulls_in_many_columns_tell_who_is_not_inside():
    inside, others = points(600, 0), points(600, 1)
    released = hulls(inside, np.argsort(np.argsort(inside["x0"].to_numpy(), kind="stable")) // 5)
    found = find_members_of_release(inside, released, control=others)
    rule = found.details["rules"][EXACT]
    assert rule["members"] == 1.0 and rule["others"] < 0.6
    assert found.rate > 0.7 and found.verdict == "stronger than baseline"


def test_cells_that_cover_the_space_tell_nothing():
    inside, others = points(3000, 0, n_columns=2), points(3000, 1, n_columns=2)
    found = find_members_of_release(inside, cells(inside, 20), control=others)
    assert found.details["rules"][EXACT]["others"] == 1.0
    assert found.verdict == "not shown" and found.interval[0] < 0.5 < found.interval[1]


def test_one_edit_is_found_where_one_column_was_changed():
    inside, others = points(600, 0), points(600, 1)
    found = find_members_of_release(inside, inside.assign(x0=100), control=others)
    rules = found.details["rules"]
    assert rules[EXACT]["members"] == 0.0 and rules[ONE]["members"] == 1.0 and rules[ONE]["others"] < 0.05
    assert found.rate > 0.95
    assert (
        find_members_of_release(inside, inside.assign(x0=100, x1=100), control=others).details["rules"][TWO]["accuracy"]
        > 0.7
    )


def test_an_attacker_learns_that_a_match_speaks_against_membership():
    inside = pd.DataFrame({"x": np.arange(400) % 4, "y": np.arange(400) % 2})
    others = pd.DataFrame({"x": np.arange(400) % 8, "y": np.arange(400) % 2})
    released = inside.assign(x=4 + inside["x"])  # combinations that no member has
    found = find_members_of_release(inside, released, control=others)
    assert found.details["rules"][EXACT]["accuracy"] < 0.5 < found.rate - 0.1


# -- census records ----------------------------------------------------------------------------------------------


def test_real_members_as_representatives_are_matched_more_often_than_other_people():
    for representative in ("model", "member"):
        found = attacked(representative)
        rule = found.details["rules"][EXACT]
        assert rule["members"] > 1.5 * rule["others"], representative
        assert found.rate > 0.51 and found.verdict == "stronger than baseline", representative


def test_phantoms_are_matched_less_often_by_members_than_by_others():
    found = attacked("phantom")
    rule = found.details["rules"][EXACT]
    assert rule["members"] <= rule["others"]
    assert found.rate < 0.53


def test_tight_ranges_tell_members_from_others():
    for representative in ("tight-range", "tight-bounds"):
        found = attacked(representative)
        assert found.rate > 0.53 and found.verdict == "stronger than baseline", representative
    assert attacked("tight-range").details["rules"][EXACT]["members"] == 1.0  # bounds leave out rare categories


def test_published_cells_hold_everybody_and_tell_nothing():
    found = attacked("range")
    assert found.details["rules"][EXACT]["members"] == found.details["rules"][EXACT]["others"] == 1.0
    assert found.verdict == "not shown" and found.interval[0] < 0.5 < found.interval[1]
    assert attacked("bounds").rate < 0.52


def test_the_seed_decides_whom_to_attack():
    rates = [attacked("model", n_targets=500, random_state=seed).rate for seed in (1, 1, 2)]
    assert rates[0] == rates[1] != rates[2]


def test_the_order_of_rows_does_not_matter_where_cells_say_what_they_stand_for():
    inside, others, _ = census()
    shuffled = published("range").sample(frac=1, random_state=3).reset_index(drop=True)
    found = find_members_of_release(inside, shuffled, control=others, is_aligned=False)
    assert found.rate == attacked("range").rate


def test_thousands_of_people_are_compared_with_hundreds_of_groups_in_a_moment():
    started = time.perf_counter()
    attacked("member", n_targets=None)
    assert time.perf_counter() - started < 5
    assert len(published("member").drop_duplicates()) > N_RELEASED / 20


def test_people_outside_the_release_are_claimed_no_more_often_than_chance_allows():
    # 60 audits at 95%: 9 or more claims are seen with chance below 0.1%.
    verdicts = [
        find_members_of_release(
            points(300, seed, 2), cells(points(300, 1000 + seed, 2), 5), control=points(300, 2000 + seed, 2)
        ).verdict
        for seed in range(60)
    ]
    assert verdicts.count("stronger than baseline") < 9


def test_too_few_other_people_get_a_sentence():
    inside = points(100, 0)
    with pytest.raises(InputError, match="100 members and 19 others: expected at least 20 of each"):
        find_members_of_release(inside, inside, control=points(19, 1))
