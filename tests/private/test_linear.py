# SPDX-License-Identifier: Apache-2.0
"""Private linear models learn with a budget and not without, and look nothing up in the data."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from sfumato.errors import InputError, ParameterError, PrivacyWarning
from sfumato.frames import read_table
from sfumato.private import PrivateLinearRegression, PrivateLogisticRegression, noise
from sfumato.private.accounting import gaussian_delta
from sfumato.private.descent import Descent, clipped
from twins.seeded_noise import NoNoise, SeededNoise

pytest.importorskip("opendp", reason="opendp is not installed (extra: dp)")
PUBLIC = {"bounds": {"age": (0, 100)}, "categories": {"region": ["north", "south"]}, "classes": ["no", "yes"]}


def people(n=2000, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": generator.integers(0, 101, n), "region": generator.choice(["north", "south"], n)})
    return frame, np.where(frame["age"] + 20 * (frame["region"] == "south") > 60, "yes", "no")


def test_a_budget_learns_and_a_tiny_one_cannot(monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(1))
    X, y = people()
    X_new, y_new = people(seed=1)
    scores = {e: PrivateLogisticRegression(e, **PUBLIC).fit(X, y).score(X_new, y_new) for e in (1.0, 5.0, 1e-4)}
    assert scores[1.0] > 0.85
    assert scores[5.0] > 0.9
    assert scores[1e-4] < 0.8


def test_without_noise_it_is_logistic_regression():
    X, y = people()
    flipped = np.random.default_rng(5).random(len(y)) < 0.2  # so that no cell decides alone and the optimum is finite
    y = np.where(flipped, np.where(y == "yes", "no", "yes"), y)
    with pytest.warns(PrivacyWarning, match="no noise is added"):
        model = PrivateLogisticRegression(math.inf, n_steps=3000, **PUBLIC).fit(X, y)
    rows = model.encoding_.one_hot(read_table(X)).toarray()
    plain = LogisticRegression(C=np.inf, max_iter=10_000, tol=1e-9, fit_intercept=False).fit(rows, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(rows), atol=1e-3)
    assert model.privacy_.epsilon == math.inf
    assert model.privacy_.membership_limit == 1.0
    assert "No differential privacy" in model.privacy_.describe()
    assert model.privacy_.to_dict()["epsilon"] is None


def test_the_guarantee_says_what_it_rests_on():
    X, y = people(200)
    privacy = PrivateLogisticRegression(0.5, delta=1e-5, **PUBLIC).fit(X, y).privacy_
    assert (privacy.epsilon, privacy.delta, privacy.unit) == (0.5, 1e-5, None)
    assert privacy.adjacency == "adding or removing one record"
    assert "bounds and categories were chosen without the records" in privacy.rests_on
    assert "62.2%" in privacy.describe()
    assert privacy.to_dict()["rests_on"] == list(privacy.rests_on)


def test_two_fits_have_different_noise_and_no_parameter_changes_that():
    X, y = people(300)
    model = PrivateLogisticRegression(1.0, **PUBLIC)
    np.random.seed(0)
    first = clone(model).fit(X, y).coef_
    np.random.seed(0)
    assert not (first == clone(model).fit(X, y).coef_).any()
    assert not [name for name in model.get_params() if "random" in name or "seed" in name or "noise" in name]


def test_more_than_two_classes(monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(1))
    X, _ = people(4000)
    y = np.digitize(X["age"], [30, 70])
    model = PrivateLogisticRegression(2.0, **{**PUBLIC, "classes": [0, 1, 2, 3]}).fit(X, y)
    assert model.predict_proba(X).shape == (4000, 4)
    assert model.coef_.shape == (4, model.encoding_.n_cells)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy"])
def test_every_kind_of_table_gives_the_same_model(library, monkeypatch):
    X, y = people(500)

    def fitted(table, **public):
        monkeypatch.setattr(noise, "_source", SeededNoise(3))
        return PrivateLogisticRegression(1.0, **{**PUBLIC, **public}).fit(table, y)

    expected = fitted(X).coef_
    if library == "numpy":
        codes = np.column_stack([X["age"], X["region"] == "south"])
        model = fitted(codes, bounds={"x0": (0, 100)}, categories={"x1": [0, 1]})
    else:
        table = pl.from_pandas(X) if library == "polars" else pa.Table.from_pandas(X)
        model = fitted(table)
        assert list(model.feature_names_in_) == ["age", "region"]
    np.testing.assert_array_equal(model.coef_, expected)


def test_the_records_of_a_person_count_once(monkeypatch):
    """One person with a thousand records moves the sum of gradients no further than one with a single record."""
    monkeypatch.setattr(noise, "_source", NoNoise())
    X, y = people(50)
    X = X.assign(person=[f"p{i}" for i in range(50)])
    crowd = pd.DataFrame({"age": [100] * 1000, "region": ["south"] * 1000, "person": ["crowd"] * 1000})
    one = crowd.iloc[:1]
    together = (
        PrivateLogisticRegression(1.0, unit="person", **PUBLIC).fit(
            pd.concat([X, more], ignore_index=True), np.append(y, ["no"] * len(more))
        )
        for more in (crowd, one)
    )
    first, second = (model.coef_ for model in together)
    np.testing.assert_allclose(first, second, atol=1e-4)  # shares of a thousandth are cut to the grid


def test_the_column_of_persons_is_not_needed_to_predict():
    X, y = people(300)
    model = PrivateLogisticRegression(1.0, unit="person", **PUBLIC).fit(X.assign(person=np.arange(300) // 2), y)
    assert model.privacy_.unit == "person"
    assert model.privacy_.adjacency == "adding or removing all records of one person"
    assert len(model.predict(X)) == 300


def test_labels_that_are_read_from_y_are_said_to_be_public():
    X, y = people(300)
    with pytest.warns(PrivacyWarning, match="which labels occur is not protected"):
        model = PrivateLogisticRegression(1.0, **{**PUBLIC, "classes": None}).fit(X, y)
    assert "the list of labels, read from y, is public" in model.privacy_.rests_on


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"epsilon": 0}, ParameterError, "epsilon=0"),
        ({"epsilon": -1.0}, ParameterError, "epsilon=-1.0"),
        ({"epsilon": "1"}, ParameterError, "epsilon='1'"),
        ({"epsilon": math.nan}, ParameterError, "epsilon=nan"),
        ({"delta": 0}, ParameterError, "delta=0"),
        ({"bounds": None}, ParameterError, "neither in bounds= nor in categories="),
        ({"classes": ["no"]}, ParameterError, "expected at least two"),
        ({"classes": ["no", "maybe"]}, InputError, "not among the 2 of classes="),
        ({"n_steps": 0}, ParameterError, "n_steps=0"),
        ({"momentum": 1.0}, ParameterError, "momentum=1.0"),
        ({"learning_rate": 0.0}, ParameterError, "learning_rate=0.0"),
        ({"clip": 0.0}, ParameterError, "clip=0.0"),
        ({"smoothing": -1.0}, ParameterError, "smoothing=-1.0"),
        ({"unit": "person"}, ParameterError, "'person', which the table does not have"),
    ],
)
def test_impossible_settings_are_refused(changes, error, match):
    X, y = people(50)
    with pytest.raises(error, match=match):
        PrivateLogisticRegression(**{**PUBLIC, **changes}).fit(X, y)


def test_labels_of_several_types_are_explained():
    X, _ = people(4)
    with pytest.raises(InputError, match="labels that are not among the 2 of classes="):
        PrivateLogisticRegression(**{**PUBLIC, "classes": [0, 1]}).fit(X, np.array([0, 1, "x", 1], object))


def test_labels_must_fit_the_records():
    X, y = people(50)
    with pytest.raises(InputError, match="one label per record"):
        PrivateLogisticRegression(**PUBLIC).fit(X, y[:-1])
    with pytest.raises(InputError, match="requires y to be passed"):
        PrivateLogisticRegression(**PUBLIC).fit(X, None)
    with pytest.raises(NotFittedError):
        PrivateLogisticRegression(**PUBLIC).predict(X)


def test_residuals_are_never_longer_than_one():
    residuals = np.random.default_rng(0).normal(size=(1000, 5)) * np.logspace(-3, 3, 1000)[:, None]
    short = clipped(residuals)
    assert (np.square(short).sum(axis=1) <= 1.0).all()
    small = np.linalg.norm(residuals, axis=1) < 1
    np.testing.assert_array_equal(short[small], residuals[small])


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1e-3, 1e-6), (1e-6, 1e-6), (1e-8, 1e-10)])
def test_noise_covers_what_rounding_to_its_own_grid_adds(epsilon, delta):
    """Two neighboring sums come apart by a step of the grid in each of the numbers more, at worst."""
    n_numbers, settings = 400, Descent(epsilon, delta, 200, 0.9, None, 8.0)
    if epsilon < 1e-7:
        with pytest.raises(ParameterError, match="lost in its rounding"):
            settings.scale(n_numbers)
        return
    scale = settings.scale(n_numbers)
    apart = 1 + math.sqrt(n_numbers) * noise.grid_of(scale)
    assert gaussian_delta(epsilon, math.sqrt(201) * apart / scale) <= delta


def test_the_learning_rate_follows_the_budget_and_the_number_of_persons():
    settings = Descent(1.0, 1e-6, 200, 0.9, None, 8.0)
    assert settings.rate(1000) < settings.rate(10_000) <= settings.rate(10**9) == 8.0
    assert Descent(0.1, 1e-6, 200, 0.9, None, 8.0).rate(10_000) < settings.rate(10_000)
    assert Descent(1.0, 1e-6, 200, 0.9, 0.5, 8.0).rate(10_000) == 0.5


NUMBERS = {"bounds": PUBLIC["bounds"], "categories": PUBLIC["categories"], "target_bounds": (0, 200)}


def amounts(n=4000, seed=0):
    X, _ = people(n, seed)
    noise_of_nature = np.random.default_rng(seed + 9).normal(0, 5, n)
    return X, (X["age"] + 20 * (X["region"] == "south")).to_numpy() + noise_of_nature


def test_numbers_are_learned_with_a_budget(monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(1))
    X, y = amounts()
    X_new, y_new = amounts(seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        scores = {e: PrivateLinearRegression(e, **NUMBERS).fit(X, y).score(X_new, y_new) for e in (math.inf, 2.0, 1e-4)}
    assert scores[math.inf] > 0.95
    assert scores[2.0] > 0.85
    assert scores[1e-4] < 0.5


def test_without_noise_numbers_are_fitted_by_least_squares():
    X, y = amounts()
    with pytest.warns(PrivacyWarning, match="no noise is added"):
        model = PrivateLinearRegression(math.inf, n_steps=5000, **NUMBERS).fit(X, y)
    rows = model.encoding_.one_hot(read_table(X)).toarray()
    plain = rows @ np.linalg.lstsq(rows, y.clip(0, 200), rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), plain, atol=0.2)


def test_the_guarantee_for_numbers():
    X, y = amounts(500)
    model = PrivateLinearRegression(1.0, unit="person", **NUMBERS).fit(X.assign(person=np.arange(500) // 2), y)
    assert (model.privacy_.epsilon, model.privacy_.unit) == (1.0, "person")
    assert "the bounds of the target were chosen without the records" in model.privacy_.rests_on
    predicted = PrivateLinearRegression(1e-4, **NUMBERS).fit(X, y).predict(X)
    assert predicted.shape == (500,)
    assert ((predicted >= 0) & (predicted <= 200)).all()


@pytest.mark.parametrize("target_bounds", [None, (1, 0), (0, math.inf), "high", (0,)])
def test_bounds_of_the_target_must_be_given(target_bounds):
    X, y = amounts(50)
    with pytest.raises(ParameterError, match="expected the lowest and the highest possible target"):
        PrivateLinearRegression(**{**NUMBERS, "target_bounds": target_bounds}).fit(X, y)


def test_targets_must_be_numbers():
    X, y = amounts(50)
    for bad, match in ((None, "requires y"), (["a"] * 50, "else than numbers"), (y[:-1], "finite number per record")):
        with pytest.raises(InputError, match=match):
            PrivateLinearRegression(**NUMBERS).fit(X, bad)
