# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's checks of estimators, and use in a Pipeline and on every kind of frame."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import (
    AptMinimizer,
    FeatureSelectionMinimizer,
    InputError,
    IterativeMinimizer,
    ParameterError,
    PrivacyAwareTree,
    UniformMinimizer,
)
from strategies import LIBRARIES

TREE = DecisionTreeClassifier(random_state=0)
MINIMIZERS = [
    PrivacyAwareTree(min_samples_leaf=2),
    UniformMinimizer(),
    FeatureSelectionMinimizer(),
    AptMinimizer(estimator=TREE),
    IterativeMinimizer(estimator=TREE, n_buckets=2),
]


def expected_failures(estimator):
    """Return the checks that fail on purpose, each with its reason."""
    if isinstance(estimator, UniformMinimizer):
        return {}  # it takes no weights
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "bins and the range of a column are of all records, whatever they weigh; held-out records and the fewest "
            "records of a leaf are of records, too, so a record of weight 2 is not the same as two records"
        ),
    }


@parametrize_with_checks(MINIMIZERS, expected_failed_checks=expected_failures)
def test_minimizers_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def people(n=400, seed=0):
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 90, n)
    town = generator.choice(["Bari", "Lodi", "Pisa", "Rome"], n)
    job = generator.choice(["cook", "nurse", "smith"], n)
    income = np.where(generator.random(n) < 0.1, np.nan, np.round(generator.normal(30, 9, n), 1))
    y = np.where((age > 60) ^ (job == "nurse"), "yes", "no")
    return pd.DataFrame({"age": age, "town": town, "job": job, "income": income}), y


@pytest.mark.parametrize("minimizer", MINIMIZERS, ids=lambda minimizer: type(minimizer).__name__)
def test_a_model_learns_from_buckets_in_a_pipeline(minimizer):
    X, y = people()
    model = make_pipeline(clone(minimizer), OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    assert model.fit(X, y).predict(X).shape == y.shape
    assert set(model[0].generalization_.names) == set(X.columns)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("minimizer", MINIMIZERS, ids=lambda minimizer: type(minimizer).__name__)
def test_every_kind_of_frame_gives_the_same_buckets(minimizer, library):
    X, y = people()
    wanted = clone(minimizer).set_params(random_state=3).fit(X, y)
    frame = as_library(X, library)
    own = clone(minimizer).set_params(random_state=3).fit(frame, y)
    assert own.generalization_.n_buckets == wanted.generalization_.n_buckets
    codes = own.transform(frame)
    assert type(codes) is type(frame)
    np.testing.assert_array_equal(np.asarray(codes), wanted.transform(X).to_numpy())


def as_library(X, library):
    if library == "pandas":
        return X
    if library == "polars":
        import polars

        return polars.from_pandas(X)
    if library == "pyarrow":
        import pyarrow

        return pyarrow.Table.from_pandas(X)
    return X.to_numpy()


def test_columns_that_are_no_attributes_pass_through():
    X, y = people()
    minimizer = PrivacyAwareTree(attributes=["age", "job"], personal=["job"], min_samples_leaf=20).fit(X, y)
    out = minimizer.transform(X)
    assert minimizer.generalization_.names == ("age", "job")
    pd.testing.assert_frame_equal(out[["town", "income"]], X[["town", "income"]])


def test_labels_and_representatives_are_told_on_request():
    X, y = people()
    labels = PrivacyAwareTree(min_samples_leaf=20, output="labels").fit_transform(X, y)
    values = PrivacyAwareTree(min_samples_leaf=20, output="representatives").fit_transform(X, y)
    assert labels["age"].str.contains("and").any()
    assert values["age"].dtype == X["age"].dtype


def test_weights_move_the_tree():
    X, y = people()
    weight = np.where(X["age"] > 60, 0.0, 1.0)
    plain = PrivacyAwareTree(alpha=0, min_samples_leaf=20, max_leaves=3).fit(X, y)
    weighted = PrivacyAwareTree(alpha=0, min_samples_leaf=20, max_leaves=3).fit(X, y, sample_weight=weight)
    assert plain.generalization_.n_buckets != weighted.generalization_.n_buckets


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 2}, "alpha=2: expected a share from 0"),
        ({"max_leaves": 0}, "max_leaves=0: expected an integer of at least 1"),
        ({"floor": 1.5}, "floor=1.5: expected"),
        ({"personal": ["town"], "attributes": ["age"]}, "personal names 'town', which is not generalized"),
        ({"personal_weights": {"age": 1.0}}, "personal_weights names 'age': expected personal attributes"),
        ({"personal_weights": {"town": -1.0}}, "personal_weights has a weight that is not a number"),
        ({"output": "buckets"}, "output='buckets': expected 'codes'"),
        ({"attributes": []}, "attributes is empty"),
        ({"max_bins": 1}, "max_bins=1: expected"),
        ({"n_jobs": 0}, "n_jobs=0: expected"),
    ],
)
def test_wrong_parameters_get_a_sentence(parameters, message):
    X, y = people()
    with pytest.raises(ParameterError, match=message):
        PrivacyAwareTree(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("minimizer", "message"),
    [
        (UniformMinimizer(0), "n_buckets=0: expected an integer of at least 1"),
        (FeatureSelectionMinimizer(-1), "n_attributes=-1: expected an integer of at least 0"),
        (
            FeatureSelectionMinimizer(statistic="gini"),
            "statistic='gini': expected 'anova', 'mutual",
        ),
        (AptMinimizer(1.5), "target_accuracy=1.5: expected a share"),
        (AptMinimizer(max_depth=0), "max_depth=0: expected an integer of at least 1"),
        (AptMinimizer(validation_fraction=1), "validation_fraction=1: expected a share"),
        (IterativeMinimizer(-1), "max_loss=-1: expected a share"),
        (IterativeMinimizer(n_buckets=0), "n_buckets=0: expected an integer"),
        (IterativeMinimizer(validation_fraction=0), "validation_fraction=0: expected a share"),
    ],
)
def test_wrong_parameters_of_the_others_get_a_sentence_too(minimizer, message):
    X, y = people(60)
    with pytest.raises(ParameterError, match=message):
        minimizer.fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.linspace(0.1, 0.9, 40), "y holds numbers that are not classes"),
        (np.zeros((40, 2), int), r"a target of shape \(40, 2\)"),
        (np.zeros(39, int), "39 labels for 40 records"),
        (np.array([1, "a"] * 20, object), "labels of several types"),
    ],
)
def test_a_target_that_is_no_class_gets_a_sentence(y, message):
    X, _ = people(40)
    with pytest.raises(InputError, match=message):
        PrivacyAwareTree().fit(X, y)


def test_columns_that_name_people_are_refused():
    X, y = people(200)
    X["name"] = [f"person {i}" for i in range(200)]
    with pytest.raises(InputError, match="column 'name' has 200 values that only one record has"):
        PrivacyAwareTree().fit(X, y)
    PrivacyAwareTree(attributes=["age", "job"]).fit(X, y)


def test_all_categories_are_personal_unless_told_otherwise():
    X, y = people()
    assert PrivacyAwareTree().fit(X, y).personal_ == ("town", "job")
    assert PrivacyAwareTree(attributes=["age", "income"]).fit(X, y).personal_ == ("age", "income")
    assert PrivacyAwareTree(personal=[0]).fit(X, y).personal_ == ("age",)
