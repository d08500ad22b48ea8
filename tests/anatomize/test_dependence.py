# SPDX-License-Identifier: Apache-2.0
"""Columns that tell each other and have tables of their own are warned of, and no others are."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from sfumato import Anatomizer, BucketClassifier, PrivacyWarning
from sfumato.anatomize.dependence import share_told


def people(n=3000, seed=0):
    random = np.random.default_rng(seed)
    ill = random.integers(0, 6, n)
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "ill": ill,
            "drug": np.where(random.random(n) < 0.95, ill % 4, random.integers(0, 4, n)),  # of two illnesses, one drug
            "town": random.integers(0, 5, n),
            "rare": np.where(random.random(n) < 0.45, 0, random.integers(0, n, n)),  # nearly all others have one each
        }
    )


def warned_by(frame, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Anatomizer(2, random_state=0, **settings).fit_transform(frame)
    return [str(one.message) for one in caught if issubclass(one.category, PrivacyWarning)]


def test_the_share_is_that_of_a_loop_over_records():
    random = np.random.default_rng(3)
    first, second = random.integers(0, 40, 300), random.integers(0, 7, 300)
    told = 0
    for value in set(first.tolist()):
        told += max(Counter(second[first == value].tolist()).values()) - 1
    assert share_told(first, second) == told / 300


def test_columns_that_tell_each_other_are_warned_of_once():
    (told,) = warned_by(people(), sensitive=["ill", "drug", "town"])
    assert told.startswith("'drug' follows from 'ill' in 9")
    assert told.endswith("Put them into one table with joint=[['ill', 'drug']].")


@pytest.mark.parametrize(
    "settings",
    [
        {"sensitive": ["ill", "drug", "town"], "joint": [["ill", "drug"]]},
        {"sensitive": ["ill", "drug"], "joint": True},
        {"sensitive": ["ill", "town"]},
        {"sensitive": ["ill", "rare"]},  # a value of one record tells nothing
        {"sensitive": "ill"},
    ],
    ids=["one table", "joint", "independent", "rare", "one column"],
)
def test_others_are_not_warned_of(settings):
    assert warned_by(people(), **settings) == []


def test_a_frequent_value_does_not_seem_to_follow():
    # 90% have one value before records are suppressed, and half of them after it.
    random = np.random.default_rng(1)
    frame = people().assign(healthy=lambda f: np.where(random.random(len(f)) < 0.9, 0, random.integers(1, 9, len(f))))
    assert warned_by(frame, sensitive=["town", "healthy"], suppression_limit=0.95) == []


def test_a_learner_that_publishes_no_tables_is_quiet():
    frame = people(600)
    model = BucketClassifier(DecisionTreeClassifier(max_depth=3), 2, sensitive=["ill", "drug"], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        model.fit(frame, frame["town"] > 2)
