# SPDX-License-Identifier: Apache-2.0
"""Private boosting learns from public cells alone and refuses what it cannot protect."""

import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from sfumato.errors import GuaranteeError, MissingExtraError, ParameterError
from sfumato.private import PrivateBoostingClassifier, boosting
from twins.seeded_noise import seed_private

from .test_linear import PUBLIC, people

needs_interpret = pytest.mark.skipif(
    find_spec("interpret") is None, reason="interpret-core is not installed (extra: dp)"
)


@needs_interpret
def test_a_budget_learns_and_a_tiny_one_cannot(monkeypatch):
    seed_private(monkeypatch)
    X, y = people(3000)
    X_new, y_new = people(1000, seed=1)
    model = PrivateBoostingClassifier(2.0, **PUBLIC).fit(X, y)
    assert model.score(X_new, y_new) > 0.85
    assert model.decision_function(X_new).shape == (1000,)
    np.testing.assert_array_equal(model.predict(X_new) == "yes", model.decision_function(X_new) > 0)
    assert model.privacy_.epsilon == 2.0
    # interpret-core uses the number of records as it is: whoever knew all others could count.
    assert "the number of records is public and does not tell who is in the table" in model.privacy_.rests_on
    assert "interpret-core's noise is that of real numbers" in model.privacy_.rests_on
    assert PrivateBoostingClassifier(1e-3, **PUBLIC).fit(X, y).score(X_new, y_new) < 0.8


@needs_interpret
def test_two_fits_have_different_noise():
    X, y = people(300)
    first, second = (PrivateBoostingClassifier(1.0, **PUBLIC).fit(X, y).decision_function(X) for _ in range(2))
    assert (first != second).all()


@needs_interpret
def test_a_warning_of_the_library_is_an_error(monkeypatch):
    X, y = people(300)

    def fit(model, cells, codes):
        warnings.warn("Possible privacy violation: assuming min/max values are public.", stacklevel=1)

    monkeypatch.setattr(boosting.require_interpret().DPExplainableBoostingClassifier, "fit", fit)
    with pytest.raises(GuaranteeError, match="Possible privacy violation"):
        PrivateBoostingClassifier(1.0, **PUBLIC).fit(X, y)


@needs_interpret
def test_the_last_record_of_a_class_does_not_show(monkeypatch):
    """Tables with one record of a class and with none both fit, and know both classes."""
    seed_private(monkeypatch)
    X, _ = people(50)
    for labels in (["no"] * 50, ["no"] * 49 + ["yes"]):
        model = PrivateBoostingClassifier(**PUBLIC).fit(X, labels)
        assert model.model_.classes_.tolist() == [0, 1]
        assert model.decision_function(X).shape == (50,)


@needs_interpret
@pytest.mark.parametrize("epsilon", [1e-6, 1e4])
def test_budgets_that_the_library_cannot_account_for_are_refused(epsilon):
    X, y = people(50)
    with pytest.raises(ParameterError, match=f"epsilon={epsilon:g}.*interpret-core"):
        PrivateBoostingClassifier(epsilon, **PUBLIC).fit(X, y)


def test_what_it_cannot_protect_is_refused():
    X, y = people(50)
    with pytest.raises(ParameterError, match="has 3 labels: expected two"):
        PrivateBoostingClassifier(**{**PUBLIC, "classes": ["maybe", "no", "yes"]}).fit(X, y)
    with pytest.raises(ParameterError, match="epsilon=inf"):
        PrivateBoostingClassifier(float("inf"), **PUBLIC).fit(X, y)
    with pytest.raises(ParameterError, match="neither in bounds="):
        PrivateBoostingClassifier(**{**PUBLIC, "bounds": None}).fit(X, y)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "interpret.privacy", None)
    monkeypatch.setitem(sys.modules, "interpret", None)
    X, y = people(50)
    with pytest.raises(MissingExtraError, match="sfumato\\[dp\\]"):
        PrivateBoostingClassifier(**PUBLIC).fit(X, y)
