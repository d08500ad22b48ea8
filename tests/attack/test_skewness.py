# SPDX-License-Identifier: Apache-2.0
"""The skewness attack: right where groups raise a value, and no better than chance where chance made the groups."""

import numpy as np
import pandas as pd
import pytest

from sfumato import LDiversity, MondrianAnonymizer, ParameterError, TCloseness
from sfumato.attack import guess_from_skewed_groups
from sfumato.datasets import load_adult


def people(seed=0, *, raised=0.5, n_groups=60, size=20):
    """Three of a hundred are ill, but in every sixth group as many as `raised` says."""
    random = np.random.default_rng(seed)
    street = np.repeat(np.arange(n_groups), size)
    chance = np.where(street % 6 == 0, raised, 0.03)
    ill = np.where(random.random(len(street)) < chance, "yes", "no")
    return pd.DataFrame({"street": street, "ill": ill})


def attacked(frame, **settings):
    return guess_from_skewed_groups(frame, frame, ["street"], "ill", **settings)


def test_people_of_groups_in_which_a_rare_value_is_frequent_are_exposed():
    result = attacked(people())
    assert result.rate == pytest.approx(0.5, abs=0.06)
    assert result.baseline == pytest.approx(0.11, abs=0.02)
    assert result.details["n_skewed_groups"] in (9, 10)
    assert result.details["share_guessed"] == pytest.approx(1 / 6, abs=0.02)
    assert result.verdict == "stronger than baseline"


def test_groups_that_chance_made_are_no_finding():
    verdicts = [attacked(people(seed, raised=0.03), random_state=seed).verdict for seed in range(20)]
    assert verdicts.count("stronger than baseline") <= 2


def test_small_groups_of_many_values_are_skewed_by_chance_and_the_control_knows():
    verdicts = []
    for seed in range(10):
        jobs = np.random.default_rng(seed).integers(0, 12, 2000).astype(str)
        frame = pd.DataFrame({"street": np.arange(2000) // 5, "ill": jobs})
        result = attacked(frame, random_state=seed)
        assert result.rate > 0.5 and result.baseline < 0.1  # chosen among so many, some groups must look so
        assert result.control == pytest.approx(result.rate, abs=0.05)
        verdicts.append(result.verdict)
    assert verdicts.count("stronger than baseline") <= 1


def test_values_shuffled_over_the_table_give_nobody_away():
    frame = people()
    shuffled = frame.assign(ill=np.random.default_rng(3).permutation(frame["ill"]))
    result = attacked(shuffled)
    assert result.verdict != "stronger than baseline"
    assert result.details["share_guessed"] < 0.1


def test_a_release_without_skewed_groups_has_no_rate():
    frame = pd.DataFrame({"street": np.repeat(range(10), 20), "ill": np.tile(["yes", "no"], 100)})
    result = attacked(frame)
    assert (result.rate, result.baseline, result.control, result.verdict) == (0.0, 0.0, None, "not shown")
    assert result.interval == (0.0, 1.0)


def test_people_outside_the_release_are_a_control():
    result = attacked(people(), control=people(seed=1))
    # They live in the same streets: the release says no more about its own people.
    assert result.details["control_from"] == "people outside the release"
    assert result.verdict == "not shown"


def test_income_of_adult_is_raised_by_diverse_groups_and_not_by_close_ones():
    frame = load_adult(as_frame="pandas").frame.dropna().sample(4000, random_state=0).reset_index(drop=True)
    known = ["age", "sex", "education-num", "marital-status"]
    found = {}
    for criterion in (LDiversity(2, "income"), TCloseness(0.15, "income")):
        anonymizer = MondrianAnonymizer(10, quasi_identifiers=known, criteria=[criterion], representative="range")
        released = anonymizer.fit_transform(frame[[*known, "income"]])
        found[type(criterion)] = guess_from_skewed_groups(frame, released, known, "income")
    diverse, close = found.values()
    assert diverse.verdict == "stronger than baseline"
    assert diverse.rate > 0.55 and diverse.baseline == pytest.approx(0.25, abs=0.02)
    assert close.details["n_guessed"] == 0


def test_a_ratio_that_raises_nothing_is_refused():
    with pytest.raises(ParameterError, match="min_ratio=1: expected a number above 1"):
        attacked(people(), min_ratio=1)
