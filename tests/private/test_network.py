# SPDX-License-Identifier: Apache-2.0
"""Private networks keep to their budget and take no seed."""

import sys

import numpy as np
import pytest

from sfumato.errors import MissingExtraError, ParameterError
from sfumato.private import PrivateNetworkClassifier

from .test_linear import PUBLIC, people

pytest.importorskip("torch", reason="torch is not installed (extra: neural)")


def small(epsilon=3.0, **changes):
    return PrivateNetworkClassifier(epsilon, **{"hidden": (8,), "epochs": 10, "batch_size": 64, **PUBLIC, **changes})


def test_it_keeps_to_its_budget():
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    X, y = people(600)
    model = small().fit(X, y)
    assert 0 < model.privacy_.epsilon <= 3.0
    assert "torch's random numbers cannot be predicted" in model.privacy_.rests_on
    assert model.score(X, y) > 0.6
    assert model.decision_function(X).shape == (600,)
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
    assert (model.predict_proba(X) != small().fit(X, y).predict_proba(X)).any()


def test_empty_batches_are_steps_too():
    pytest.importorskip("opacus", reason="opacus is not installed (extra: dp)")
    X, y = people(40)
    model = small(hidden=(4,), epochs=4, batch_size=1).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


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
