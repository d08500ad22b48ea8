# SPDX-License-Identifier: Apache-2.0
"""The other minimizers do what the papers say: checked against scikit-learn, enumeration and cases by hand."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import chi2, f_classif
from sklearn.metrics import mutual_info_score
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato import AptMinimizer, FeatureSelectionMinimizer, IterativeMinimizer, UniformMinimizer
from sfumato.backends.memory import MemorySource
from sfumato.frames import read_table
from sfumato.minimize.apt_minimizer import _information_loss, _most_frequent
from sfumato.minimize.iterative import quantile_buckets, variance_buckets
from strategies import in_examples, tables

TREE = DecisionTreeClassifier(random_state=0)


def people(n=300, seed=0):
    generator = np.random.default_rng(seed)
    X = pd.DataFrame({"age": generator.integers(18, 60, n), "job": generator.choice(["cook", "nurse", "smith"], n)})
    return X, generator.integers(0, 3, n) + 2 * (X["job"] == "nurse")


# -- uniform -------------------------------------------------------------------------------------------------


def test_numbers_are_cut_into_equal_widths():
    X = np.array([[0.0], [1.0], [4.9], [5.0], [10.0], [np.nan]])
    codes = UniformMinimizer(n_buckets=2, floor=1).fit_transform(X)
    assert codes.ravel().tolist() == [0, 0, 0, 1, 1, 2]


@in_examples()
@given(table=tables(), n_buckets=st.integers(1, 5), seed=st.integers(0, 9))
def test_no_attribute_has_more_buckets_than_asked_for(table, n_buckets, seed):
    minimizer = UniformMinimizer(n_buckets, random_state=seed).fit(table.to("pandas"))
    for attribute in minimizer.generalization_.attributes:
        is_extra = attribute.kind != "category" and attribute.has_missing_bucket
        assert attribute.n_buckets - is_extra <= n_buckets


def test_the_seed_decides_the_buckets_of_categories():
    X = pd.DataFrame({"letter": list("abcdefghij")})
    codes = [UniformMinimizer(3, floor=1, random_state=seed).fit_transform(X)["letter"].tolist() for seed in (1, 1, 2)]
    assert codes[0] == codes[1] != codes[2]


# -- feature selection ---------------------------------------------------------------------------------------


def test_scores_are_those_of_scikit_learn():
    X, y = people()
    job = OneHotEncoder(sparse_output=False).fit_transform(X[["job"]])
    anova = FeatureSelectionMinimizer().fit(X, y).scores_
    assert anova["age"] == pytest.approx(f_classif(X[["age"]], y)[0][0])
    assert anova["job"] == pytest.approx(f_classif(job, y)[0].max())
    information = FeatureSelectionMinimizer(statistic="mutual_information").fit(X, y).scores_
    assert information["job"] == pytest.approx(mutual_info_score(X["job"], y))
    squared = FeatureSelectionMinimizer(statistic="chi_squared").fit(X, y).scores_
    assert squared["job"] == pytest.approx(chi2(job, y)[0].sum())


def test_the_best_attributes_are_kept_as_they_are():
    X, y = people()
    minimizer = FeatureSelectionMinimizer(n_attributes=1, floor=1).fit(X, y)
    assert minimizer.generalization_.n_buckets == (1, 3)
    assert FeatureSelectionMinimizer(n_attributes=0).fit(X, y).generalization_.n_buckets == (1, 1)
    assert FeatureSelectionMinimizer(n_attributes=9, floor=1).fit(X, y).generalization_.n_buckets == (42, 3)


def test_an_attribute_that_gives_the_class_away_comes_first():
    y = np.repeat([0, 1], 50)
    X = np.column_stack([np.random.default_rng(0).normal(size=100) + y, y])
    scores = FeatureSelectionMinimizer().fit(X, y).scores_
    assert scores["x1"] == np.inf > scores["x0"]


# -- Apt -----------------------------------------------------------------------------------------------------


def model_data(n=1500):
    generator = np.random.default_rng(1)
    X = pd.DataFrame(
        {"a": generator.integers(0, 40, n), "b": generator.integers(0, 40, n), "c": generator.integers(0, 5, n)}
    )
    return X, (X["a"] // 5 + X["b"] // 9) % 2


def test_a_lower_target_gives_no_finer_buckets():
    X, y = model_data()
    totals = []
    for target in (1.0, 0.9, 0.7, 0.0):
        minimizer = AptMinimizer(target, estimator=TREE, random_state=0).fit(X, y)
        assert minimizer.accuracy_ >= target
        totals.append(sum(minimizer.generalization_.n_buckets))
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] == 3


def test_attributes_get_their_resolution_back_when_the_tree_is_too_coarse():
    X, y = model_data()
    minimizer = AptMinimizer(0.99, estimator=TREE, max_depth=1, random_state=0).fit(X, y)
    assert minimizer.accuracy_ >= 0.99
    assert set(minimizer.restored_) == {"a", "b"}
    buckets = dict(zip(("a", "b", "c"), minimizer.generalization_.n_buckets, strict=True))
    assert buckets["a"] == buckets["b"] == 40 and buckets["c"] == 1


def test_attributes_that_no_decision_needs_are_never_restored():
    X, y = model_data()
    minimizer = AptMinimizer(1.0, estimator=TREE, max_depth=2, random_state=0).fit(X, y)
    assert "c" not in minimizer.restored_


def test_one_class_needs_nothing():
    X, _ = model_data(60)
    minimizer = AptMinimizer(estimator=TREE).fit(X, np.zeros(60))
    assert minimizer.generalization_.n_buckets == (1, 1, 1)


def test_a_bucket_stands_for_its_most_frequent_code():
    buckets, counts = np.array([0, 0, 1, 1, 0]), np.array([3, 5, 2, 2, 5])
    assert _most_frequent(buckets, counts).tolist() == [1, 2]


def test_the_information_loss_of_buckets_is_what_the_formula_says():
    frame = pd.DataFrame({"number": [0.0, 5.0, 10.0, None], "letter": ["a", "b", "c", "d"]})
    number, letter = MemorySource(read_table(frame), ["number", "letter"]).columns
    ones = np.ones(4)
    assert _information_loss(number, np.array([0, 0, 1, 2]), ones) == pytest.approx((0.5 + 0.5) / 4)
    assert _information_loss(number, np.array([0, 0, 1, 0]), ones) == pytest.approx(3 / 4)
    assert _information_loss(number, np.arange(4), ones) == 0.0
    assert _information_loss(letter, np.array([0, 0, 0, 1]), ones) == pytest.approx(0.75 * 3 / 4)


# -- Iterative -----------------------------------------------------------------------------------------------


@in_examples()
@given(scores=st.lists(st.integers(-20, 20), min_size=1, max_size=8), k=st.integers(1, 5))
def test_groups_of_values_have_the_least_mean_variance_of_all(scores, k):
    values = np.array(scores, float)
    buckets = variance_buckets(values, k)
    n_groups = min(k, len(values))
    assert sorted(set(buckets.tolist())) == list(range(n_groups))

    def cost(groups):
        return sum(np.var(group) for group in groups)

    ranked = np.sort(values)
    every = [
        np.split(ranked, cuts) for cuts in combinations(range(1, len(values)), n_groups - 1)
    ]  # groups of neighbors: others are never better
    own = cost([values[buckets == bucket] for bucket in range(n_groups)])
    assert own == pytest.approx(min(map(cost, every)), abs=1e-9)


@in_examples()
@given(values=st.lists(st.integers(0, 9) | st.none(), min_size=1, max_size=40), k=st.integers(1, 5))
def test_numbers_are_cut_at_quantiles(values, k):
    frame = pd.DataFrame({"x": pd.array(values, "Int64")})
    (column,) = MemorySource(read_table(frame), ["x"]).columns
    buckets = quantile_buckets(column, k)
    if not column.bins.n_values:
        assert not buckets.any()
        return
    own = buckets[: column.bins.n_values]
    assert (np.diff(own) >= 0).all() and set(own.tolist()) == set(range(own.max() + 1))
    assert own.max() < k
    if column.bins.has_missing:
        assert buckets[-1] == (own.max() + 1 if k > 1 else 0)


def test_buckets_are_taken_away_while_the_error_allows_it():
    generator = np.random.default_rng(2)
    X = pd.DataFrame({"a": generator.integers(0, 40, 2000), "job": generator.choice(list("uvwxyz"), 2000)})
    y = (X["a"] >= 20) ^ X["job"].isin(["u", "x"])
    minimizer = IterativeMinimizer(0.01, n_buckets=2, estimator=TREE, random_state=0).fit(X, y)
    job = minimizer.generalization_.attribute("job")
    assert minimizer.generalization_.n_buckets == (2, 2)
    assert set(minimizer.order_) == {"a", "job"} and len(job.members) == 2
    useless = IterativeMinimizer(1.0, n_buckets=2, estimator=TREE, random_state=0).fit(X, y)
    assert useless.generalization_.n_buckets == (1, 1)


def test_attributes_that_only_the_attacker_wants_go_first():
    generator = np.random.default_rng(3)
    X = pd.DataFrame({"useful": generator.integers(0, 9, 900), "secret": generator.choice(list("abcdefgh"), 900)})
    minimizer = IterativeMinimizer(estimator=TREE, random_state=0).fit(X, X["useful"] > 4)
    assert minimizer.personal_ == ("secret",)
    assert minimizer.order_ == ("secret", "useful")


def test_several_classes_have_one_score_per_value():
    X, y = people(400)
    minimizer = IterativeMinimizer(0.0, n_buckets=2, estimator=TREE, random_state=0).fit(X, y)
    (nurse,) = (bucket for bucket in minimizer.generalization_.attribute("job").members if "nurse" in bucket)
    assert nurse == ("nurse",)
