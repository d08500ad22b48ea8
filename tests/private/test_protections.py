# SPDX-License-Identifier: Apache-2.0
"""Private models stand beside the other protections, under the same attacks."""

import math

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato import frontier
from sfumato.attack.membership_signals import reader_of
from sfumato.attack.shadows import train_shadows
from sfumato.errors import ParameterError, PrivacyWarning
from sfumato.private import PrivateLogisticRegression
from twins.seeded_noise import seed_private

from .test_linear import PUBLIC, people

pytest.importorskip("opendp", reason="opendp is not installed (extra: dp)")


BOUNDS = {"bounds": PUBLIC["bounds"], "categories": PUBLIC["categories"]}


def plain():
    encoder = make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough")
    return make_pipeline(encoder, DecisionTreeClassifier(random_state=0))


def test_private_models_and_releases_stand_beside_the_others_with_their_limits(monkeypatch):
    seed_private(monkeypatch)
    X, y = people(900)
    others = people(600, seed=7)
    protections = {"epsilon": [1.0, math.inf], "private-release": [2.0], "counts": [1.0]}
    with pytest.warns(PrivacyWarning, match="no noise is added"):
        found = frontier(
            X, y, plain(), protections,
            attacks=("threshold", "release_membership"), n_splits=2, others=others, delta=1e-5, **BOUNDS,
        )  # fmt: skip
    rows = found.rows[1:]
    assert [(row.name, row.family, row.shares) for row in rows] == [
        ("epsilon = 1, model", "epsilon-learner", "model"),
        ("epsilon = infinite, model", "epsilon-learner", "model"),
        ("epsilon = 2, table", "epsilon-release", "table"),
        ("epsilon = 1, counts", "epsilon-release", "table"),
    ]
    limits = [(math.exp(1) + 1e-5) / (1 + math.exp(1)), None, (math.exp(2) + 1e-5) / (1 + math.exp(2))]
    assert [row.limit for row in rows[:3]] == pytest.approx(limits)
    assert rows[3].limit == pytest.approx(math.exp(1) / (1 + math.exp(1)))  # counts have no delta
    assert all(attack.rate.value <= row.limit for row in rows if row.limit for attack in row.attacks)
    # Releases are also made with the values of cells, for records that are recoded.
    assert all(row.recoded is not None and row.recoded.value > found.blind for row in rows[2:])
    # Their models learn from regions with the noisy counts, and meet raw records.
    assert all(row.utility is not None and row.utility.value > found.blind + 0.1 for row in rows[2:])


def test_a_private_line_learns_numbers(monkeypatch):
    seed_private(monkeypatch)
    X, _ = people(900)
    line = make_pipeline(make_column_transformer(("passthrough", ["age"])), LinearRegression())
    found = frontier(
        X, X["age"].to_numpy(float), line, {"epsilon": [5.0]},
        attacks="none", n_splits=2, target_bounds=(0, 100), **BOUNDS,
    )  # fmt: skip
    assert found.metric == "R2" and found.rows[1].utility.value > 0.5


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "'epsilon' without bounds and categories"),
        ({"bounds": {"age": (0, 100)}}, "region"),
        ({"bounds": {"wage": (0, 1)}, "categories": PUBLIC["categories"]}, "wage"),
    ],
)
def test_public_knowledge_is_asked_for_before_any_work(settings, says):
    X, y = people(200)
    with pytest.raises(ParameterError, match=says):
        frontier(X, y, plain(), {"epsilon": [1.0]}, **settings)


def test_cells_for_counts_must_be_of_other_people():
    X, y = people(400)
    X = X.assign(age=np.random.default_rng(0).integers(0, 1_000_000, 400))  # so that records can be told apart
    found = frontier(X, y, plain(), {"counts": [1.0]}, others=(X, y), attacks="none", n_splits=1)
    assert "were used to make the artifact" in found.rows[1].reasons["all"]


def test_every_shadow_of_a_private_model_has_noise_of_its_own():
    X, y = people(200)
    estimator = PrivateLogisticRegression(1.0, **PUBLIC)
    same = X.iloc[[0] * 100 + [1] * 100], np.repeat(y[[0, np.flatnonzero(y != y[0])[0]]], 100)
    outputs = train_shadows(estimator, *same, reader=reader_of(estimator, y), n_shadows=4).outputs
    assert len(np.unique(outputs[:, 0, 0])) == 4
