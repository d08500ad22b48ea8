# SPDX-License-Identifier: Apache-2.0
"""Weights are used or not taken: no estimator accepts `sample_weight` and ignores it."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import sfumato
from sfumato import (
    AdversarialMinimizer,
    AnonymizedClassifier,
    AnonymizedRegressor,
    AptMinimizer,
    BucketClassifier,
    FeatureSelectionMinimizer,
    IterativeMinimizer,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    MutualInformationMinimizer,
    ParameterError,
    PrivacyAwareTree,
    PrunedClassifier,
    UniformMinimizer,
    WorkloadAwareAnonymizer,
)
from sfumato.minimize import neural_training


def people(n=600, seed=0):
    """Young people are told apart by their town, old ones by their income."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "town": random.choice(["Bari", "Lodi", "Pisa", "Rome"], n),
            "income": np.round(random.normal(30, 9, n), 1),
            "dose": random.choice([0, 10, 20, 30], n),
        }
    )
    is_old = (frame["age"] > 54).to_numpy()
    y = np.where(is_old, frame["income"] > 30, frame["town"] < "N").astype(int)
    return frame, y, np.where(is_old, 0.001, 1000.0)


def groups(model):
    return model.partition_.to_dict()


def buckets(model):
    return model.generalization_.to_dict()


def answers(model):
    return model.predict(people(seed=1)[0][["age", "income", "dose"]]).tolist()


NUMBERS = ["age", "income", "dose"]
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
#: Every estimator that takes weights, what they must change, and the columns it is fitted on.
WEIGHTED = {
    "ModelGuidedAnonymizer": (ModelGuidedAnonymizer(20), groups, None),
    "WorkloadAwareAnonymizer": (WorkloadAwareAnonymizer(20), groups, None),
    "AnonymizedClassifier": (AnonymizedClassifier(LogisticRegression(max_iter=500), random_state=0), answers, NUMBERS),
    "AnonymizedRegressor": (AnonymizedRegressor(LinearRegression(), transform_at_predict=True), answers, NUMBERS),
    "PrivacyAwareTree": (PrivacyAwareTree(alpha=0.1, min_samples_leaf=20, max_leaves=4), buckets, None),
    "FeatureSelectionMinimizer": (FeatureSelectionMinimizer(1), buckets, None),
    "AptMinimizer": (AptMinimizer(0.9, estimator=TREE, random_state=0), buckets, None),
    "IterativeMinimizer": (IterativeMinimizer(0.02, estimator=TREE, random_state=0), buckets, None),
    "AdversarialMinimizer": (AdversarialMinimizer(0.5, epochs=3, random_state=0), buckets, None),
    "MutualInformationMinimizer": (MutualInformationMinimizer(0.02, epochs=3, random_state=0), buckets, None),
    "PrunedClassifier": (PrunedClassifier(LogisticRegression(), sensitive="dose", random_state=0), answers, NUMBERS),
    "BucketClassifier": (BucketClassifier(LogisticRegression(), sensitive="dose", random_state=0), answers, NUMBERS),
}


def takes_weights(name):
    value = getattr(sfumato, name)
    is_estimator = inspect.isclass(value) and issubclass(value, BaseEstimator) and hasattr(value, "fit")
    return is_estimator and "sample_weight" in inspect.signature(value.fit).parameters


def test_the_table_below_names_every_estimator_that_takes_weights():
    assert {name for name in sfumato.__all__ if takes_weights(name)} == set(WEIGHTED)


NEURAL = {"AdversarialMinimizer", "MutualInformationMinimizer"}


def learned_with(name, sample_weight):
    if name in NEURAL:
        pytest.importorskip("torch")
    model, learned, columns = WEIGHTED[name]
    X, y, _ = people()
    return learned(model.fit(X if columns is None else X[columns], y, sample_weight=sample_weight))


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_change_what_is_learned(name, monkeypatch):
    # Networks learn for three epochs here, and not for the thousand steps that small tables get otherwise.
    monkeypatch.setattr(neural_training, "epochs_for", lambda n_rows, batch_size, *, epochs, least_steps: epochs)
    _, _, weight = people()
    assert learned_with(name, weight) != learned_with(name, 1 / weight)


# Networks draw batches by weight, hence in another order.
@pytest.mark.parametrize("name", sorted(WEIGHTED.keys() - NEURAL))
def test_equal_weights_change_nothing(name):
    assert learned_with(name, np.ones(600)) == learned_with(name, None)


@pytest.mark.parametrize("name", ["AptMinimizer", "IterativeMinimizer"])
def test_records_without_weight_teach_a_search_nothing(name):
    model, learned, _ = WEIGHTED[name]
    X, y, _ = people()
    is_old = (X["age"] > 54).to_numpy()
    found = learned(model.fit(X, y, sample_weight=is_old.astype(float)))
    assert learned(model.fit(X, np.where(is_old, y, 0), sample_weight=is_old.astype(float))) == found


@pytest.mark.parametrize("name", ["AptMinimizer", "IterativeMinimizer"])
def test_weights_for_a_model_that_takes_none_are_refused(name):
    from sklearn.neighbors import KNeighborsClassifier

    X, y, weight = people()
    model = type(WEIGHTED[name][0])(estimator=KNeighborsClassifier())
    model.fit(X, y)
    with pytest.raises(ParameterError, match="sample_weight with KNeighborsClassifier, whose fit takes none: expected"):
        model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("model", [MondrianAnonymizer(20), UniformMinimizer()])
def test_methods_that_weight_nothing_do_not_take_weights(model):
    X, y, weight = people()
    with pytest.raises(TypeError, match="sample_weight"):
        model.fit(X, y, sample_weight=weight)


def test_weights_beside_an_anonymizer_that_takes_none_reach_the_models():
    X, y, weight = people()
    X = X[NUMBERS]
    model = AnonymizedClassifier(LogisticRegression(max_iter=500), anonymizer=MondrianAnonymizer(20))
    plain = groups(model.fit(X, y).anonymizer_), answers(model)
    weighted = groups(model.fit(X, y, sample_weight=weight).anonymizer_), answers(model)
    assert weighted[0] == plain[0]
    assert weighted[1] != plain[1]
