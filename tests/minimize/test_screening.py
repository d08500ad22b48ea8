# SPDX-License-Identifier: Apache-2.0
"""Wide tables: the attributes that say most of the class are looked at, the others are named with the reason."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from sfumato import FeatureSelectionMinimizer, PrivacyAwareTree, sweep_minimizers
from sfumato.minimize.screening import MOST_SCREENED, ONE_VALUE, narrowed, screened, widened

ALONE = {"alpha": [0.0, 0.3], "max_leaves": [4, 8]}


def wide(n=400, n_columns=180, seed=0):
    """Many columns of noise, three that tell the class, one that is constant, one that is personal."""
    generator = np.random.default_rng(seed)
    noise = {f"noise {i:04d}": generator.normal(size=n) for i in range(n_columns)}
    number, cut = generator.normal(size=n), generator.integers(0, 10, n)
    job = generator.choice([f"job {i}" for i in range(12)], n)
    y = (number + (cut > 6) + np.isin(job, ["job 3", "job 5"]) + 0.5 * generator.normal(size=n) > 0.5).astype(int)
    sex = generator.choice(["f", "m"], n)
    X = pd.DataFrame({**noise, "number": number, "cut": cut, "job": job, "same": 1, "sex": sex})
    return X, y


def test_informative_attributes_pass_and_others_are_left_out_with_the_reason():
    X, y = wide()
    minimizer = PrivacyAwareTree(personal=["sex"], min_samples_leaf=20).fit(X, y)
    kept = [name for name in X.columns if name not in minimizer.left_out_]
    assert len(kept) == MOST_SCREENED
    assert {"number", "cut", "job"} <= set(kept)
    assert minimizer.left_out_["same"] == ONE_VALUE
    reasons = set(minimizer.left_out_.values()) - {ONE_VALUE}
    assert len(reasons) == 1
    assert f"less than those of {MOST_SCREENED} other attributes" in reasons.pop()
    assert len(minimizer.generalization_.attributes) == X.shape[1]
    assert not any(minimizer.generalization_.attribute(name).is_collected for name in minimizer.left_out_)
    assert minimizer.generalization_.attribute("number").is_collected


def test_tables_that_are_not_wide_are_not_screened():
    X, y = wide(n_columns=50)
    assert PrivacyAwareTree(min_samples_leaf=20).fit(X, y).left_out_ == {}


def test_the_order_of_the_records_does_not_matter():
    X, y = wide(seed=1)
    rows = np.random.default_rng(0).permutation(len(y))
    kept = [
        PrivacyAwareTree(personal=["sex"], min_samples_leaf=20).fit(*own).left_out_
        for own in ((X, y), (X.iloc[rows].reset_index(drop=True), y[rows]))
    ]
    assert kept[0] == kept[1]


def test_the_score_of_noise_is_no_score():
    # Chosen and judged on the same records, the best of many cuts of noise would beat a weak signal.
    generator = np.random.default_rng(2)
    n = 600
    y = generator.integers(0, 2, n)
    noise = {f"noise {i}": generator.normal(size=n) for i in range(300)}
    weak = (y + 1.3 * generator.normal(size=n)).round(2)
    sample = PrivacyAwareTree()._read(pd.DataFrame({**noise, "weak": weak}), y, None)
    assert "weak" not in [sample.names[place] for place in screened(sample, most=3).left_out]


def test_required_attributes_are_kept_and_forbidden_ones_are_not():
    X, y = wide()
    found = sweep_minimizers(
        PrivacyAwareTree(personal=["sex"], min_samples_leaf=20), X, y, grid=ALONE,
        required=["noise 0000"], forbidden=["number"], estimator=DecisionTreeClassifier(max_depth=3, random_state=0),
    )  # fmt: skip
    assert "noise 0000" not in found.left_out
    assert found.left_out["number"] == "it is forbidden"
    assert all(point.generalization.attribute("noise 0000").is_collected for point in found.points[2:])


def test_every_minimizer_is_screened():
    X, y = wide()
    minimizer = FeatureSelectionMinimizer(n_attributes=3, personal=["sex"]).fit(X, y)
    assert len(minimizer.left_out_) == X.shape[1] - MOST_SCREENED
    assert {"number"} <= {own.name for own in minimizer.generalization_.attributes if own.is_collected}


def test_personal_attributes_that_were_named_stay_known_to_the_learner():
    X, y = wide()
    sample = screened(PrivacyAwareTree(personal=["noise 0001", "sex"])._read(X, y, None))
    own, kept = narrowed(sample)
    assert [own.names[place] for place in own.personal] == ["noise 0001", "sex"]
    every = widened([np.arange(n) for n in own.n_codes], kept, sample)
    assert [len(buckets) for buckets in every] == list(sample.n_codes)
    assert all(not every[place].any() for place in sample.left_out)


@pytest.mark.slow
def test_three_thousand_columns_take_seconds():
    X, y = wide(300, 3000)
    start = time.process_time()
    found = sweep_minimizers(PrivacyAwareTree(personal=["sex"]), X, y, random_state=0)
    assert time.process_time() - start < 60  # 20 on a machine that is not busy; 150 were not enough before
    assert len(found.left_out) == X.shape[1] - MOST_SCREENED
