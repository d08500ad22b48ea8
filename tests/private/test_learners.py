# SPDX-License-Identifier: Apache-2.0
"""Private models look nothing up in the data, and noise shows when the budget is small."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato import compare_protections, usual_protections
from sfumato.attack.membership_signals import reader_of
from sfumato.attack.shadows import train_shadows
from sfumato.errors import GuaranteeError, InputError, MissingExtraError, ParameterError
from sfumato.frames import read_table
from sfumato.private.learners import (
    PrivateForestClassifier,
    PrivateLogisticRegression,
    PrivateNetworkClassifier,
    encode,
    leaks_are_errors,
)

try:
    import diffprivlib.models
except ImportError:
    diffprivlib = None
needs_diffprivlib = pytest.mark.skipif(
    diffprivlib is None, reason="diffprivlib cannot be imported here (extra: dp, with scikit-learn up to 1.7)"
)
BOUNDS = {"age": (0, 100)}
CATEGORIES = {"region": ["north", "south"]}
PRIVATE = {"bounds": BOUNDS, "categories": CATEGORIES, "classes": ["no", "yes"]}


def people(n=1500, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": generator.integers(0, 101, n), "region": generator.choice(["north", "south"], n)})
    y = np.where(frame["age"] + 20 * (frame["region"] == "south") > 60, "yes", "no")
    return frame, y


def private_models():
    return [
        pytest.param(PrivateForestClassifier, marks=needs_diffprivlib),
        pytest.param(PrivateLogisticRegression, marks=needs_diffprivlib),
    ]


def test_the_encoding_follows_from_what_was_told_alone():
    frame = pd.DataFrame({"age": [-5.0, 50.0, np.nan, 200.0], "region": ["south", "west", None, "north"]})
    numbers = encode(read_table(frame), BOUNDS, CATEGORIES, one_hot=True)
    np.testing.assert_allclose(numbers[:, 0], [0, 0.5, 0.5, 1])
    np.testing.assert_allclose(numbers[:, 1:], [[0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0]])
    places = encode(read_table(frame), BOUNDS, CATEGORIES, one_hot=False)
    np.testing.assert_allclose(places[:, 1], [1, 2, 2, 0])


def test_a_column_nothing_was_told_about_is_refused():
    X, _ = people(10)
    with pytest.raises(ParameterError, match="neither in bounds= nor in categories="):
        encode(read_table(X), {}, CATEGORIES, one_hot=True)


@pytest.mark.parametrize(
    "model", [PrivateForestClassifier, PrivateLogisticRegression, PrivateNetworkClassifier], ids=lambda m: m.__name__
)
def test_classes_must_be_told(model):
    X, y = people(50)
    with pytest.raises(ParameterError, match="classes= is missing"):
        model(bounds=BOUNDS, categories=CATEGORIES).fit(X, y)
    with pytest.raises(InputError, match="not among the 2 of classes="):
        model(bounds=BOUNDS, categories=CATEGORIES, classes=["no", "maybe"]).fit(X, y)
    with pytest.raises(ParameterError, match="epsilon=0"):
        model(0, **PRIVATE).fit(X, y)


def test_a_class_without_records_is_refused_where_its_absence_would_show():
    X, y = people(50)
    with pytest.raises(InputError, match="1 of the 3 classes have no record") as refusal:
        PrivateLogisticRegression(**{**PRIVATE, "classes": ["maybe", "no", "yes"]}).fit(X, y)
    assert "maybe" not in str(refusal.value)


@needs_diffprivlib
def test_a_forest_knows_the_classes_that_it_was_told():
    X, y = people(1000)
    model = PrivateForestClassifier(100.0, **{**PRIVATE, "classes": ["maybe", "no", "yes"]}, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (1000, 3)
    assert (model.predict(X) == y).mean() > 0.8


@pytest.mark.skipif(diffprivlib is not None, reason="diffprivlib is installed here")
def test_a_missing_extra_is_named():
    X, y = people(50)
    with pytest.raises(MissingExtraError, match="sfumato\\[dp\\]"):
        PrivateForestClassifier(**PRIVATE).fit(X, y)


@pytest.mark.parametrize("model", private_models())
def test_a_large_budget_learns_what_a_small_one_cannot(model):
    X, y = people()
    X_new, y_new = people(seed=1)
    generous, strict = (
        np.mean([model(e, random_state=s, **PRIVATE).fit(X, y).score(X_new, y_new) for s in range(5)])
        for e in (100.0, 0.001)
    )
    assert generous > 0.75
    assert strict < generous - 0.1


@pytest.mark.parametrize("model", private_models())
def test_the_seed_decides_the_noise(model):
    X, y = people(300)
    first, second, third = (model(0.5, random_state=s, **PRIVATE).fit(X, y).predict_proba(X) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != third).any()


@needs_diffprivlib
def test_a_leak_is_an_error():
    from diffprivlib.utils import PrivacyLeakWarning

    with pytest.raises(GuaranteeError, match="had to look at the data"), leaks_are_errors():
        warnings.warn("Bounds have not been specified.", PrivacyLeakWarning, stacklevel=1)
    X, y = people(300)
    with pytest.raises(GuaranteeError, match="had to look at the data"), leaks_are_errors():
        diffprivlib.models.RandomForestClassifier(n_estimators=2).fit(X[["age"]], y)


def test_a_private_network_keeps_to_its_budget():
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    X, y = people(600)
    model = PrivateNetworkClassifier(3.0, hidden=(8,), epochs=5, batch_size=64, random_state=0, **PRIVATE).fit(X, y)
    assert 0 < model.epsilon_ <= 3.01
    assert model.score(X, y) > 0.6
    assert model.decision_function(X).shape == (600,)
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
    np.testing.assert_array_equal(
        model.predict_proba(X),
        PrivateNetworkClassifier(3.0, hidden=(8,), epochs=5, batch_size=64, random_state=0, **PRIVATE)
        .fit(X, y)
        .predict_proba(X),
    )


def test_a_private_network_survives_empty_batches():
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    X, y = people(40)
    model = PrivateNetworkClassifier(3.0, hidden=(4,), epochs=4, batch_size=1, random_state=0, **PRIVATE).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


@needs_diffprivlib
def test_private_models_stand_beside_the_others_in_one_table():
    X, y = people(600)
    encoder = make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough")
    plain = make_pipeline(encoder, DecisionTreeClassifier(random_state=0))
    protections = usual_protections(plain, k=(), epsilons=(1.0,), **PRIVATE)
    compared = compare_protections(X, y, protections, attacks=["threshold", "lira"], n_shadows=4)
    names = [row.name for row in compared.rows]
    assert names == ["none", "private forest, epsilon=1", "private logistic, epsilon=1"]
    assert all(set(row.membership) == {"threshold", "lira"} for row in compared.rows)


@needs_diffprivlib
def test_every_shadow_of_a_private_model_has_noise_of_its_own():
    X, y = people(200)
    estimator = PrivateLogisticRegression(1.0, **PRIVATE)
    same = X.iloc[[0] * 100 + [1] * 100], np.repeat(y[[0, np.flatnonzero(y != y[0])[0]]], 100)
    outputs = train_shadows(estimator, *same, reader=reader_of(estimator, y), n_shadows=4).outputs
    assert len(np.unique(outputs[:, 0, 0])) == 4
