# SPDX-License-Identifier: Apache-2.0
"""Private models stand beside the other protections, under the same attacks."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato import compare_protections, usual_protections
from sfumato.attack.membership_signals import reader_of
from sfumato.attack.shadows import train_shadows
from sfumato.errors import ParameterError, PrivacyWarning
from sfumato.private import PrivateLogisticRegression
from twins.seeded_noise import seed_private

from .test_linear import PUBLIC, people

pytest.importorskip("opendp", reason="opendp is not installed (extra: dp)")


def test_private_models_stand_beside_the_others_in_one_table(monkeypatch):
    seed_private(monkeypatch)
    X, y = people(600)
    encoder = make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough")
    plain = make_pipeline(encoder, DecisionTreeClassifier(random_state=0))
    protections = usual_protections(plain, k=(), epsilons=(1.0, float("inf")), **PUBLIC)
    with pytest.warns(PrivacyWarning, match="no noise is added"):
        compared = compare_protections(X, y, protections, attacks=["threshold", "lira"], n_shadows=4)
    names = [row.name for row in compared.rows]
    assert names == ["none", "private logistic, epsilon=1", "private logistic, epsilon=inf"]
    assert all(set(row.membership) == {"threshold", "lira"} for row in compared.rows)
    private, plain = compared.rows[1:]
    assert private.utility > 0.85
    assert plain.utility > 0.95


def test_unknown_private_models_are_refused():
    with pytest.raises(ParameterError, match="private_models has 'forest'"):
        usual_protections(DecisionTreeClassifier(), epsilons=(1.0,), private_models=("forest",))


def test_every_shadow_of_a_private_model_has_noise_of_its_own():
    X, y = people(200)
    estimator = PrivateLogisticRegression(1.0, **PUBLIC)
    same = X.iloc[[0] * 100 + [1] * 100], np.repeat(y[[0, np.flatnonzero(y != y[0])[0]]], 100)
    outputs = train_shadows(estimator, *same, reader=reader_of(estimator, y), n_shadows=4).outputs
    assert len(np.unique(outputs[:, 0, 0])) == 4
