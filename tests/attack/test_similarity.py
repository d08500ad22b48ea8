# SPDX-License-Identifier: Apache-2.0
"""The similarity attack: right where the values of a group lie close together, and not where they do not."""

import numpy as np
import pandas as pd
import pytest

from sfumato import Hierarchy, InputError, MondrianAnonymizer, ParameterError
from sfumato.attack import guess_from_similar_values
from sfumato.attack.similarity import _best_guesses
from sfumato.datasets import load_adult

CLASSES = {"gastritis": "stomach", "ulcer": "stomach", "flu": "lungs", "bronchitis": "lungs", "acne": "skin"}


def people(seed=0, *, spread=20, n_groups=60, size=10):
    """Everybody of a group earns about the same, and no two the same."""
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), size)
    pay = random.integers(1000, 5000, n_groups)[group] + random.normal(0, spread, len(group)).round(3)
    return pd.DataFrame({"street": group, "pay": pay})


def attacked(frame, **settings):
    return guess_from_similar_values(frame, frame, ["street"], "pay", **settings)


def test_pay_is_known_where_the_different_values_of_a_group_lie_close_together():
    result = attacked(people(), tolerance=100)
    assert result.rate > 0.99 and result.baseline < 0.2 and result.control < 0.5
    assert result.verdict == "stronger than baseline"
    assert result.details["share_of_close_groups"] > 0.99


def test_pay_that_differs_as_much_in_a_group_as_in_the_table_is_not_known():
    verdicts = []
    for seed in range(20):
        frame = people(seed)
        frame["pay"] = np.random.default_rng(seed).permutation(frame["pay"])
        verdicts.append(attacked(frame, random_state=seed).verdict)
    assert verdicts.count("stronger than baseline") <= 2
    assert "failed attack" not in verdicts


def test_the_usual_tolerance_does_not_follow_one_rich_person():
    frame = people()
    frame.loc[0, "pay"] = 1e9
    assert attacked(frame).details["tolerance"] < 200


def test_the_number_near_most_values_is_guessed():
    group, numbers = np.array([0, 0, 0, 0, 2]), np.array([1.0, 10.0, 11.0, 12.0, 7.0])
    found = _best_guesses(group, numbers, 3, 1.0)
    assert found[[0, 2]].tolist() == [11.0, 7.0] and np.isnan(found[1])


@pytest.mark.parametrize("classes", [CLASSES, Hierarchy(tuple((value, part) for value, part in CLASSES.items()))])
def test_categories_of_one_class_tell_the_class(classes):
    frame = pd.DataFrame(
        {
            "street": np.repeat(range(40), 4),
            "ill": ["gastritis", "ulcer"] * 40 + ["flu", "bronchitis"] * 36 + ["acne"] * 8,
        }
    )
    result = guess_from_similar_values(frame, frame, ["street"], "ill", classes=classes)
    assert result.rate == 1.0 and result.baseline == pytest.approx(0.5)
    assert result.verdict == "stronger than baseline"
    assert result.details["share_of_close_groups"] == pytest.approx(0.95)


def test_people_without_a_value_are_left_out():
    frame = people()
    frame.loc[::3, "pay"] = np.nan
    result = attacked(frame, tolerance=100, control=people(seed=1))
    assert result.rate > 0.99


def test_a_secret_without_any_value_tells_nothing():
    frame = pd.DataFrame({"street": np.repeat(range(40), 4), "ill": pd.Categorical([None] * 160)})
    with pytest.raises(InputError, match="ill"):
        guess_from_similar_values(frame, frame, ["street"], "ill", classes=CLASSES)


def test_people_outside_are_guessed_by_their_nearest_group():
    frame = people()
    result = attacked(frame, tolerance=100, control=frame)
    assert result.details["controls"]["people outside the release"] == result.rate
    assert result.verdict == "not shown"


def test_hours_of_adult_are_hardly_better_known_by_groups_than_by_the_table():
    frame = load_adult(as_frame="pandas").frame.dropna().sample(4000, random_state=0).reset_index(drop=True)
    known = ["age", "sex", "education-num", "marital-status"]
    released = MondrianAnonymizer(10, quasi_identifiers=known, representative="range").fit_transform(
        frame[[*known, "hours-per-week"]]
    )
    result = guess_from_similar_values(frame, released, known, "hours-per-week")
    assert 0.5 < result.baseline <= result.control <= result.rate < 0.6


def test_what_has_no_distance_is_refused():
    frame = pd.DataFrame({"street": [1, 1, 2, 2], "ill": ["flu", "acne", "flu", "cold"]})
    with pytest.raises(ParameterError, match="holds categories"):
        guess_from_similar_values(frame, frame, ["street"], "ill")
    for classes in (CLASSES, Hierarchy(tuple(CLASSES.items()))):
        with pytest.raises(InputError, match="1 values of column 'ill' have no class"):
            guess_from_similar_values(frame, frame, ["street"], "ill", classes=classes)
    with pytest.raises(ParameterError, match="no classes beside it"):
        guess_from_similar_values(frame, frame, ["street"], "ill", classes=CLASSES, tolerance=1.0)
    with pytest.raises(ParameterError, match="expected a number of at least 0"):
        attacked(people(), tolerance=-1.0)
    with pytest.raises(InputError, match="has no values"):
        attacked(people().assign(pay=np.nan), tolerance=1.0)
