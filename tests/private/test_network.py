# SPDX-License-Identifier: Apache-2.0
"""Private networks keep to their budget and take no seed."""

import math
import pickle
import sys

import numpy as np
import pytest

from sfumato.errors import MissingExtraError, ParameterError
from sfumato.private import PrivateNetworkClassifier, network, noise
from sfumato.private.accounting import gaussian_epsilon
from sfumato.private.network import PrivateSteps
from twins.seeded_noise import SeededNoise, seed_private

from .test_linear import PUBLIC, people

pytest.importorskip("torch", reason="torch is not installed (extra: neural)")


def small(epsilon=3.0, **changes):
    return PrivateNetworkClassifier(epsilon, **{"hidden": (8,), "n_steps": 100, "batch_size": 64, **PUBLIC, **changes})


def test_it_keeps_to_its_budget(monkeypatch):
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    X, y = people(600)
    with monkeypatch.context() as seeded:
        seed_private(seeded)
        model = small().fit(X, y)
    assert 0 < model.privacy_.epsilon <= 3.0
    assert any("torch's random numbers cannot be predicted" in sentence for sentence in model.privacy_.rests_on)
    assert not any("number of records" in sentence for sentence in model.privacy_.rests_on)
    assert model.score(X, y) > 0.6
    assert model.decision_function(X).shape == (600,)
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
    assert (model.predict_proba(X) != small().fit(X, y).predict_proba(X)).any()


def test_empty_batches_are_steps_too():
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    X, y = people(40)
    model = small(hidden=(4,), n_steps=150, batch_size=1).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_nothing_but_weights_is_kept():
    """Opacus leaves sums of gradients without noise at the parameters; a pickle would hand them on."""
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    X, y = people(200)
    model = small(hidden=(4,), n_steps=6).fit(X, y)
    for parameter in model.module_.parameters():
        assert parameter.grad is None
        assert vars(parameter) == {}
    assert not any("hooks" in name and value for name, value in vars(model.module_).items())
    saved = pickle.dumps(model)
    for word in (b"_norm_sample", b"summed_grad", b"grad_sample", b"opacus"):
        assert word not in saved
    np.testing.assert_array_equal(pickle.loads(saved).predict_proba(X), model.predict_proba(X))


def test_the_number_of_records_is_asked_for_with_noise(monkeypatch):
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    asked = []

    class Recorded(SeededNoise):
        def geometric(self, epsilon, size):
            asked.append((epsilon, size))
            return np.full(size, -40)

    monkeypatch.setattr(noise, "_source", Recorded(0))
    X, y = people(200)
    rates = []
    monkeypatch.setattr(network, "_batch", lambda n, rate: rates.append(rate) or np.arange(3))
    model = small(2.0, hidden=(4,), n_steps=5, batch_size=20).fit(X, y)
    assert asked == [(0.02, 1)]
    assert rates == [20 / 160] * 5  # of 160 records, as the noise says, and not of 200
    assert 1.9 < model.privacy_.epsilon <= 2.0


def test_small_budgets_have_noise_of_their_own():
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    steps = {e: PrivateSteps.of_budget(e, 1e-6, n_steps=100, rate=0.05) for e in (0.05, 0.5, 5.0)}
    assert steps[0.05].noise > steps[0.5].noise > steps[5.0].noise
    assert all(0.95 * epsilon < own.epsilon <= epsilon for epsilon, own in steps.items())
    # Whole batches are T Gaussian queries, whose exact epsilon no accountant may go below.
    whole = PrivateSteps.of_budget(1.0, 1e-6, n_steps=50, rate=1.0)
    assert gaussian_epsilon(1e-6, math.sqrt(50) / whole.noise) <= whole.epsilon <= 1.0


def test_impossible_budgets_are_refused():
    X, y = people(40)
    with pytest.raises(ParameterError, match="epsilon=inf"):
        small(float("inf")).fit(X, y)
    with pytest.raises(ParameterError, match="delta=0"):
        small(delta=0).fit(X, y)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opacus", None)
    X, y = people(40)
    with pytest.raises(MissingExtraError, match="sfumato\\[dp\\]"):
        small().fit(X, y)
