# SPDX-License-Identifier: Apache-2.0
"""A table whose regions are counted in several places, and what it means that they are equal."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from sfumato import AnonymizedClassifier, AnonymizedRegressor, ModelGuidedAnonymizer, MondrianAnonymizer
from sfumato.models import TableEncoder

K, FLOOR, N = 25, 8, 24_000  # more records than weights are found with: one group in several is looked at
NAMES = ["age", "rate", "job", "born"]


def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "age": rng.integers(18, 90, N), "rate": rng.normal(size=N).round(2),
        "job": rng.choice(["nurse", "smith", "clerk", "astronaut", None], N, p=[0.3, 0.3, 0.3, 0.0001, 0.0999]),
        "born": pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
    })  # fmt: skip
    is_nurse = (frame["job"] == "nurse").to_numpy()
    frame["income"] = np.where((frame["age"] > 50) ^ is_nurse, "high", "low")
    frame["wage"] = 10.0 * frame["age"] + 100.0 * is_nurse * frame["rate"] + 90.0 * rng.normal(size=N)
    return frame


def anonymizer(kind):
    """Groups that a target of numbers guides leave nothing for the columns to say; classes leave enough."""
    if kind == "numbers":
        return MondrianAnonymizer(K, quasi_identifiers=NAMES, identifiers=["wage"], representative="median")
    return ModelGuidedAnonymizer(K, quasi_identifiers=NAMES, guide_kind="labels", representative="median")


def in_memory(table, kind):
    """Return the regions of the same groups, counted at once."""
    settings = {"anonymizer": anonymizer(kind), "floor": FLOOR, "random_state": 0}
    if kind == "classes":
        settings["guide_estimator"] = "labels"
        model = AnonymizedClassifier(make_pipeline(TableEncoder(), LogisticRegression(max_iter=300)), **settings)
        return model.fit(table[NAMES], table["income"]).regions_
    model = AnonymizedRegressor(make_pipeline(TableEncoder(), LinearRegression()), **settings)
    settings["anonymizer"].set_params(identifiers=None)
    return model.fit(table[NAMES], table["wage"]).regions_


def assert_same_regions(one, other):
    assert one.n_groups == other.n_groups > 100
    assert np.array_equal(one.sizes, other.sizes) and one.floor == other.floor == FLOOR
    assert np.array_equal(one.target.n_in_class, other.target.n_in_class)
    assert np.array_equal(one.target.means, other.target.means)
    for a, b in zip(one.columns, other.columns, strict=True):
        assert (a.name, a.fallback, a.moment) == (b.name, b.fallback, b.moment)
        assert np.array_equal(a.values, b.values) and np.array_equal(a.missing, b.missing)
        assert "astronaut" not in list(() if b.categories is None else b.categories)
        for left, right in zip(a.counts, b.counts, strict=True):
            assert np.array_equal(left, right)
    assert np.array_equal(one.weights.columns, other.weights.columns)
    assert np.array_equal(one.weights.classes, other.weights.classes) and one.weights.group == other.weights.group
    assert np.ptp(one.weights.columns) > 0.1
    drawn = [regions.draw(np.random.default_rng(0), n_threads=2) for regions in (one, other)]
    assert np.array_equal(drawn[0].shares, drawn[1].shares) and np.array_equal(drawn[0].numbers, drawn[1].numbers)
