# SPDX-License-Identifier: Apache-2.0
"""The neural minimizers as estimators: scikit-learn's checks, missing and unseen values, seeds, sweeps."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import AdversarialMinimizer, MissingExtraError, MutualInformationMinimizer, ParameterError

NEURAL = [
    AdversarialMinimizer(epochs=1, batch_size=32, device="cpu"),
    MutualInformationMinimizer(epochs=1, batch_size=32, device="cpu"),
]
names = [type(minimizer).__name__ for minimizer in NEURAL]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """Train for as few steps as there are epochs: what is tested here does not depend on a good result."""
    pytest.importorskip("torch", reason="torch is not installed (extra: neural)")
    from sfumato.minimize import neural_training

    monkeypatch.setattr(neural_training.TrainingPlan, "n_epochs", lambda plan, n_rows: plan.epochs)


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": "records are drawn into batches: one that is there twice is "
        "drawn apart, one of weight two in two steps",
    }


@parametrize_with_checks(NEURAL, expected_failed_checks=expected_failures)
def test_neural_minimizers_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def people(n=300, seed=0):
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 90, n)
    town = generator.choice(["Bari", "Lodi", "Pisa", "Rome", None], n)
    income = np.where(generator.random(n) < 0.2, np.nan, np.round(generator.normal(30, 9, n), 1))
    return pd.DataFrame({"age": age, "town": town, "income": income}), np.where(age > 60, "yes", "no")


@pytest.mark.parametrize("minimizer", NEURAL, ids=names)
def test_missing_and_unseen_values_have_a_bucket(minimizer):
    X, y = people()
    fitted = clone(minimizer).fit(X, y)
    new = pd.DataFrame({"age": [3, 300], "town": ["Oslo", None], "income": [np.nan, 1e9]})
    codes = fitted.transform(new)
    assert ((codes >= 0) & (codes < np.array(fitted.generalization_.n_buckets))).all(axis=None)


@pytest.mark.parametrize("minimizer", NEURAL, ids=names)
def test_the_generalization_is_monotone_in_numbers(minimizer):
    X, y = people()
    fitted = clone(minimizer).set_params(epochs=5).fit(X, y)
    ages = pd.DataFrame({"age": np.arange(0, 120), "town": "Rome", "income": np.linspace(-10, 90, 120)})
    codes = fitted.transform(ages)
    assert (np.diff(codes["age"]) >= 0).all()
    assert (np.diff(codes["income"]) >= 0).all()


@pytest.mark.parametrize("minimizer", NEURAL, ids=names)
def test_the_same_seed_gives_the_same_generalization(minimizer):
    X, y = people()
    first, second = (clone(minimizer).set_params(random_state=5).fit(X, y).generalization_ for _ in range(2))
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize("minimizer", NEURAL, ids=names)
def test_the_document_does_not_say_where_it_was_computed(minimizer):
    X, y = people()
    document = clone(minimizer).fit(X, y).generalization_.to_json()
    assert "privacy_weight" in document
    assert "device" not in document


@pytest.mark.parametrize("minimizer", NEURAL, ids=names)
def test_a_sweep_trains_settings_that_differ_in_the_privacy_weight_together(minimizer, monkeypatch):
    from sfumato.minimize import neural

    trained = []
    original = neural.train_buckets
    monkeypatch.setattr(
        neural,
        "train_buckets",
        lambda *a, **k: trained.append((k["plan"].n_buckets, list(k["privacy_weights"]))) or original(*a, **k),
    )
    X, y = people()
    own = clone(minimizer).set_params(random_state=0)
    sample = own._read(X, y, None)
    settings = [{"privacy_weight": w, "n_buckets": b} for w in (0.0, 0.5) for b in (2, 3)]
    buckets = list(own._buckets_of_settings(sample, settings))
    assert trained == [(2, [0.0, 0.5]), (3, [0.0, 0.5])]
    assert [max(int(b.max()) for b in one) < s["n_buckets"] for one, s in zip(buckets, settings, strict=True)] == [
        True
    ] * 4
    assert len(own.default_grid(sample, (0.0, 1.0))["privacy_weight"]) == 9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"privacy_weight": 2}, "privacy_weight=2: expected a share from 0 to 1"),
        ({"privacy_weight": "high"}, "privacy_weight='high': expected a share from 0 to 1"),
        ({"n_buckets": 0}, "n_buckets=0: expected an integer of at least 1"),
        ({"epochs": 1.5}, "epochs=1.5: expected an integer of at least 1"),
        ({"n_inner": 0}, "n_inner=0: expected an integer of at least 1"),
        ({"learning_rate": 0}, "learning_rate=0: expected a positive number"),
        ({"device": "abacus"}, "device='abacus': expected a device of torch"),
    ],
)
def test_wrong_parameters_get_a_sentence(parameters, message):
    X, y = people(40)
    with pytest.raises(ParameterError, match=message):
        AdversarialMinimizer(**parameters).fit(X, y)


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = people(40)
    with pytest.raises(MissingExtraError, match=r"sfumato\[neural\]"):
        MutualInformationMinimizer().fit(X, y)
