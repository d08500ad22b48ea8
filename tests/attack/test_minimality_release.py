# SPDX-License-Identifier: Apache-2.0
"""The minimality attack on releases: a cut that was not made tells on which side the diversity was missing."""

import itertools

import numpy as np
import pandas as pd
import pytest

from sfumato import LDiversity, MondrianAnonymizer, ParameterError
from sfumato.attack import minimality_from_release
from sfumato.attack.minimality_release import _ways_to_fail
from sfumato.datasets import load_adult, load_nursery

KNOWN = ["town", "sex"]


def people(n_towns=60, seed=0):
    """In each town eight men, who share an illness, and twelve women, who have three others."""
    random = np.random.default_rng(seed)
    rows = []
    for town in range(n_towns):
        others = np.repeat(random.permutation(list("abcdef"))[:3], 4)
        rows += [(town, "m", "hiv")] * 8 + [(town, "w", other) for other in others]
    return pd.DataFrame(rows, columns=["town", "sex", "ill"])


def tree(frame, k=8, l=2):  # noqa: E741
    return MondrianAnonymizer(
        k, quasi_identifiers=KNOWN, criteria=[LDiversity(l, "ill")], representative="range"
    ).fit_transform(frame)


def test_a_tree_that_kept_a_town_together_tells_who_made_that_necessary():
    frame = people()
    result = minimality_from_release(frame, tree(frame), KNOWN, "ill", k=8, l=2)
    # The men of every town are told, and of the women those with the illness that is guessed.
    assert result.rate == pytest.approx((8 + 4) / 20)
    assert result.baseline == pytest.approx(8 / 20)
    assert result.control < result.baseline
    assert result.verdict == "stronger than baseline"
    assert result.details["n_telling_groups"] == result.details["n_groups"] == 60
    assert result.details["n_not_minimal"] == 0


@pytest.mark.thorough
def test_nothing_follows_where_values_belong_to_anybody():
    verdicts = []
    for seed in range(20):
        frame = people(seed=seed)
        random = np.random.default_rng(seed)
        frame["ill"] = frame.groupby("town")["ill"].transform(lambda ills: random.permutation(ills))  # noqa: B023
        verdicts.append(minimality_from_release(frame, tree(people(seed=seed)).assign(ill=frame["ill"]), KNOWN, "ill",
                                                k=8, l=2).verdict)  # fmt: skip
    assert verdicts.count("stronger than baseline") == 0


def test_k_and_l_are_read_off_the_release_unless_given():
    frame = people()
    result = minimality_from_release(frame, tree(frame), KNOWN, "ill")
    assert (result.details["k"], result.details["l"]) == (20, 4)
    assert result.details["n_telling_groups"] == 0  # no group of 20 can be cut into two of 20
    assert result.rate == result.baseline


def test_a_partition_that_did_not_cut_where_it_could_have_is_seen_through():
    frame = people().assign(ill=np.tile(list("abcd"), 300))
    released = frame.assign(sex="*")
    result = minimality_from_release(frame, released, KNOWN, "ill", k=8, l=2)
    assert result.details["n_not_minimal"] == result.details["n_groups_with_cuts"] == 60
    assert result.rate == result.baseline and result.details["n_telling_groups"] == 0


def test_a_value_that_fills_a_side_is_learned_from_the_same_side_of_other_groups():
    # Both illnesses could fill either side; only over all towns it shows which of them goes with which sex.
    random = np.random.default_rng(0)
    rows = []
    for town in range(40):
        n_men, n_women = random.integers(6, 12, 2)
        rows += [(town, "m", "hiv")] * n_men + [(town, "w", "flu")] * n_women
    frame = pd.DataFrame(rows, columns=["town", "sex", "ill"])
    released = frame.assign(sex="*")
    result = minimality_from_release(frame, released, KNOWN, "ill", k=6, l=2)
    assert result.rate == 1.0 and result.baseline < 0.7


@pytest.mark.parametrize("l", [2, 3])
def test_ways_to_fail_are_counted_as_all_orders_are(l):  # noqa: E741
    values, n_left = list("aaabbc"), 3
    weights, shares = _ways_to_fail(np.array([3.0, 2.0, 1.0]), n_left, 3, l)
    expected = np.zeros((2, 3))
    total = 0
    # Every order is counted once for each side and set of l - 1 values that holds all values of that side.
    for order in itertools.permutations(range(6)):
        sides = [[values[i] for i in order[:n_left]], [values[i] for i in order[n_left:]]]
        times = sum(set(side) <= set(chosen) for side in sides for chosen in itertools.combinations("abc", l - 1))
        total += times
        expected += times * np.array([[side.count(value) for value in "abc"] for side in sides])
    found = np.tensordot(np.exp(weights) / np.exp(weights).sum(), shares, 1)
    assert found == pytest.approx(expected / total)


def test_nursery_is_told_by_the_cuts_that_were_not_made():
    frame = load_nursery(as_frame="pandas").frame.sample(4000, random_state=0).reset_index(drop=True)
    known = ["parents", "has_nurs", "form", "children", "health"]
    anonymizer = MondrianAnonymizer(
        4, quasi_identifiers=known, criteria=[LDiversity(2, "class")], representative="range"
    )
    released = anonymizer.fit_transform(frame[[*known, "class"]])
    result = minimality_from_release(frame, released, known, "class", k=4, l=2)
    assert result.details["n_not_minimal"] == 0
    assert result.rate > result.baseline + 0.1
    assert result.verdict == "stronger than baseline"


def test_the_trees_of_adult_are_minimal_and_tell_next_to_nothing_by_it():
    frame = load_adult(as_frame="pandas").frame.dropna().sample(3000, random_state=0).reset_index(drop=True)
    known = ["age", "sex", "education-num", "hours-per-week"]
    anonymizer = MondrianAnonymizer(
        10, quasi_identifiers=known, criteria=[LDiversity(2, "income")], representative="range"
    )
    released = anonymizer.fit_transform(frame[[*known, "income"]])
    result = minimality_from_release(frame, released, known, "income", k=10, l=2)
    assert result.details["n_groups_with_cuts"] > 0 and result.details["n_not_minimal"] == 0
    assert result.verdict == "not shown"


def test_wrong_settings_are_refused():
    frame = people(2)
    for wrong in ({"k": 0}, {"l": 0}):
        with pytest.raises(ParameterError, match="expected a whole number of at least 1"):
            minimality_from_release(frame, frame, KNOWN, "ill", **wrong)
