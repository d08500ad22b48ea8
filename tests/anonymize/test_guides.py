# SPDX-License-Identifier: Apache-2.0
"""What may guide the splits: labels, probabilities and numbers, of one output or several, from any source."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato import InputError, KAnonymity, ModelGuidedAnonymizer
from sfumato.testing import people, rows_of, smallest_group


def fitted(X, y, k=5, **options):
    return ModelGuidedAnonymizer(k, **options).fit(X, y)


def document(X, y, k=5, **options):
    return fitted(X, y, k, **options).partition_.to_dict()


def first_split(X, y, k=5, **options):
    node = document(X, y, k, **options)["nodes"][0]
    return node["column"], node.get("at_most")


@pytest.fixture(scope="module")
def numbers():
    """Three columns; which one the first split takes shows what guided it."""
    generator = np.random.default_rng(0)
    return np.round(generator.normal(size=(400, 3)), 2)


# ---- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 7, 40])
def test_labels_of_any_number_of_classes(numbers, n_classes):
    y = np.searchsorted(np.quantile(numbers[:, 1], np.linspace(0, 1, n_classes + 1)[1:-1]), numbers[:, 1])
    assert first_split(numbers, y)[0] == "x1"
    named = np.array([f"class {label:02}" for label in y])
    assert document(numbers, named) == document(numbers, y) == document(numbers, y.astype(float))
    assert document(numbers, y, guide_kind="labels") == document(numbers, y)


def test_labels_may_be_text_booleans_categories_or_nullable(numbers):
    y = numbers[:, 2] > 0.3
    text = np.where(y, "yes", "no")
    expected = document(numbers, y.astype(int))
    for labels in (
        y, y.tolist(), text, text.tolist(), text.astype(object), pd.Series(text), pd.Series(text, dtype="category"),
        pd.Series(y, dtype="boolean"), pd.Series(y.astype(int), dtype="Int64"), pl.Series(text), pl.Series(y),
        pa.array(text.tolist()), pa.chunked_array([text.tolist()]), text[:, None], pd.DataFrame({"label": text}),
    ):  # fmt: skip
        assert document(numbers, labels) == expected, type(labels)


def test_the_order_in_which_labels_appear_does_not_matter(numbers):
    y = (numbers[:, 2] > 0.3).astype(int)
    swapped = document(numbers, 1 - y, representative="median")
    assert swapped == document(numbers, y, representative="median")


def test_probabilities_of_two_classes_say_the_same_as_either_column(numbers):
    p = 1 / (1 + np.exp(-3 * numbers[:, 1]))
    both = np.column_stack([1 - p, p])
    flipped = both[:, ::-1]
    assert first_split(numbers, both)[0] == "x1"
    assert document(numbers, both) == document(numbers, flipped)
    for frame in (pd.DataFrame(both, columns=["no", "yes"]), pl.DataFrame(both), both.astype(np.float32).astype(float)):
        assert document(numbers, frame)["nodes"][0]["column"] == "x1"


def test_probabilities_see_what_hard_predictions_do_not(numbers):
    confidence = 0.6 + 0.3 * (numbers[:, 1] > 0) + 0.05 * (numbers[:, 0] > 0)
    probabilities = np.column_stack([1 - confidence, confidence])
    hard = probabilities.argmax(axis=1)
    assert set(hard) == {1}
    assert first_split(numbers, probabilities)[0] == "x1"
    # With pure labels there is nothing to gain anywhere: stopping at purity stops at once.
    assert fitted(numbers, hard, keep_splitting=False).n_groups_ == 1
    assert fitted(numbers, hard).n_groups_ > 20


def test_probabilities_of_many_classes(numbers):
    edges = np.quantile(numbers[:, 2], [0.25, 0.5, 0.75])
    y = np.searchsorted(edges, numbers[:, 2])
    probabilities = np.eye(4)[y] * 0.9 + 0.025
    assert first_split(numbers, probabilities)[0] == "x2"
    assert document(numbers, probabilities) == document(numbers, probabilities, guide_kind="probabilities")
    assert document(numbers, np.eye(4)[y])["nodes"][0]["column"] == "x2"
    rounded = probabilities.astype(np.float32)  # sums to 1 up to single precision
    assert document(numbers, rounded, guide_kind="probabilities")["nodes"][0]["column"] == "x2"


def test_numbers_guide_by_variance_and_their_scale_does_not_matter(numbers):
    y = 5 * numbers[:, 0] + 0.01
    assert first_split(numbers, y)[0] == "x0"
    assert document(numbers, y) == document(numbers, y * 2.0**40) == document(numbers, y, guide_kind="numbers")


def test_numbers_near_the_largest_float_guide_too(numbers):
    y = np.where(numbers[:, 2] > 0.1, 1.7e308, -1.7e308)
    assert first_split(numbers, y, guide_kind="numbers")[0] == "x2"
    assert first_split(numbers, y)[0] == "x2"


def test_a_single_column_of_probabilities_guides_as_numbers(numbers):
    p = 1 / (1 + np.exp(-3 * numbers[:, 1]))
    assert document(numbers, p) == document(numbers, p, guide_kind="numbers")
    assert first_split(numbers, p)[0] == "x1"


def test_several_numbers_weigh_the_same_whatever_their_scale(numbers):
    y = np.column_stack([numbers[:, 0], numbers[:, 1] * 1e9, np.full(400, 3.0)])
    alone = [first_split(numbers, y[:, :1])[0], first_split(numbers, y[:, 1:2])[0]]
    assert alone == ["x0", "x1"]
    same = document(numbers, y * [1e6, 1.0, 1.0])
    assert same == document(numbers, y)
    used = {node.get("column") for node in same["nodes"]}
    assert {"x0", "x1"} <= used


def test_several_outputs_as_a_list_of_probabilities(numbers):
    parts = [np.eye(2)[(numbers[:, 0] > 0).astype(int)], np.eye(3)[np.digitize(numbers[:, 1], [-0.5, 0.5])]]
    made = fitted(numbers, parts)
    assert {node.get("column") for node in made.partition_.to_dict()["nodes"]} >= {"x0", "x1"}
    assert made.partition_.to_dict() == document(numbers, parts[::-1]), "outputs weigh the same, in any order"
    with pytest.raises(InputError, match="not probabilities"):
        fitted(numbers, [parts[0], parts[1] * 3])


def test_several_outputs_as_labels(numbers):
    first, second = np.where(numbers[:, 0] > 0, "a", "b"), np.where(numbers[:, 1] > 0.5, "c", "d")
    both = np.column_stack([first, second])
    for representative in ("model", "member", "median"):
        made = fitted(numbers, both, representative=representative)
        assert {node.get("column") for node in made.partition_.to_dict()["nodes"]} >= {"x0", "x1"}
        assert smallest_group(made.transform(numbers)) >= 5
    codes = np.column_stack([numbers[:, 0] > 0, numbers[:, 1] > 0.5]).astype(int)
    assert document(numbers, codes, guide_kind="labels", representative="median") == document(
        numbers, both, representative="median"
    )
    assert document(numbers, pd.DataFrame(both), representative="median") == document(
        numbers, both, representative="median"
    )


def test_constant_guides_still_make_small_groups(numbers):
    for y in (np.zeros(400), np.full(400, 0.5), np.full((400, 3), 1 / 3), np.full(400, "same")):
        made = fitted(numbers, y)
        assert made.n_groups_ > 20
        assert smallest_group(made.transform(numbers)) >= 5


def test_many_labels_beside_few_records_raise_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(np.arange(30.0)[:, None], np.arange(30))


# ---- sources ---------------------------------------------------------------------------------------------------------


def test_a_fitted_model_guides_by_its_predictions(numbers):
    y = numbers[:, 1] > 0
    for model in (LogisticRegression(), DecisionTreeClassifier(max_depth=3), DummyClassifier()):
        trained = clone(model).fit(numbers, y)
        assert document(numbers, None, guide_estimator=trained) == document(numbers, trained.predict_proba(numbers))
        assert document(numbers, y, guide_estimator=trained) == document(numbers, trained.predict_proba(numbers))


def test_an_unfitted_model_is_trained_on_y_first(numbers):
    y = numbers[:, 1] > 0
    model = DecisionTreeClassifier(max_depth=3, random_state=0)
    trained = clone(model).fit(numbers, y)
    assert document(numbers, y, guide_estimator=model) == document(numbers, trained.predict_proba(numbers))
    assert not hasattr(model, "tree_")


def test_a_regressor_guides_by_numbers_even_where_they_are_whole(numbers):
    y = np.round(numbers[:, 0] * 3)
    trained = DecisionTreeRegressor(random_state=0).fit(numbers, y)
    predicted = trained.predict(numbers)
    assert np.array_equal(predicted, np.round(predicted))
    expected = document(numbers, predicted, guide_kind="numbers")
    assert document(numbers, y, guide_estimator=trained) == expected != document(numbers, predicted)
    made = fitted(numbers, y, guide_estimator=trained, representative="model")
    assert np.array_equal(made.release(numbers, predicted).table, made.transform(numbers))


def test_labels_mean_y_itself(numbers):
    y = numbers[:, 1] > 0
    assert document(numbers, y, guide_estimator="labels") == document(numbers, y)


def test_a_share_of_the_records_trains_the_guide_and_the_seed_says_which(numbers):
    y = (numbers[:, 1] + numbers[:, 2] > 0).astype(int)
    options = {"guide_estimator": DecisionTreeClassifier(random_state=0), "guide_fraction": 0.3}
    one, two = (document(numbers, y, random_state=7, **options) for _ in range(2))
    assert one == two
    assert one != document(numbers, y, random_state=8, **options)
    assert one != document(numbers, y, random_state=7, guide_estimator=DecisionTreeClassifier(random_state=0))


class Shown(BaseEstimator):
    """Remembers the columns it was shown; all copies write to one list."""

    seen: list = []  # noqa: RUF012 - shared on purpose

    def fit(self, X, y, sample_weight=None):
        Shown.seen.append(("fit", list(X.columns), len(X), None if sample_weight is None else list(sample_weight)))
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        Shown.seen.append(("predict", list(X.columns), len(X), None))
        return np.column_stack([X["age"] / 100, 1 - X["age"] / 100])


def test_the_guide_sees_neither_identifiers_nor_units():
    frame = pd.DataFrame({"name": [f"p{i}" for i in range(40)], "age": range(40), "person": np.arange(40) // 2})
    Shown.seen.clear()
    anonymizer = ModelGuidedAnonymizer(
        4, identifiers=["name"], criteria=[KAnonymity(2, unit="person")], guide_estimator=Shown(), guide_fraction=0.5
    )
    anonymizer.fit(frame, frame["age"] > 20, sample_weight=np.arange(1, 41))
    assert [(what, columns, n) for what, columns, n, _ in Shown.seen] == [
        ("fit", ["age"], 20),
        ("predict", ["age"], 40),
    ]
    assert len(Shown.seen[0][3]) == 20


class OnlyPredicts:
    """No fit at all: a model behind a service, say."""

    def predict(self, X):
        return np.where(np.asarray(X)[:, 1] > 0, "high", "low")


def test_something_that_only_predicts_is_a_fitted_model(numbers):
    labels = OnlyPredicts().predict(numbers)
    assert document(numbers, None, guide_estimator=OnlyPredicts()) == document(numbers, labels)


def test_a_model_of_several_outputs_guides_by_all_of_them(numbers):
    y = np.column_stack([numbers[:, 0] > 0, numbers[:, 1] > 0])
    for model in (
        MultiOutputClassifier(DecisionTreeClassifier(max_depth=2, random_state=0)),
        RandomForestClassifier(5, random_state=0),
    ):
        trained = clone(model).fit(numbers, y)
        assert isinstance(trained.predict_proba(numbers), list)
        assert document(numbers, y, guide_estimator=model) == document(numbers, trained.predict_proba(numbers))
    regressor = LinearRegression().fit(numbers, numbers[:, :2])
    assert document(numbers, None, guide_estimator=regressor) == document(numbers, regressor.predict(numbers))


# ---- columns ---------------------------------------------------------------------------------------------------------


def test_quasi_identifiers_by_name_position_or_both():
    table, guide = people()
    expected = document(table, guide, quasi_identifiers=["age", "town"], keep=["income", "joined"])
    for named in ([0, 2], ["age", 2], ("age", "town"), np.array([0, 2]), pd.Index(["age", "town"]), [-5, -3]):
        assert document(table, guide, quasi_identifiers=named, keep=[1, 4]) == expected
    one = ModelGuidedAnonymizer(5, quasi_identifiers="age", keep=["income", "joined"]).fit(table, guide)
    assert one.schema_.quasi_identifiers == ("age",)
    without_names = ModelGuidedAnonymizer(5, quasi_identifiers=[0, 2], keep=[1, 4])
    released = without_names.fit_transform(table.to_pandas().to_numpy(), guide)
    assert smallest_group(released, [0, 2]) >= 5
    assert rows_of(released, [1, 3]) == rows_of(table, ["income", "is_member"])


def test_columns_of_a_frame_labelled_by_numbers():
    table, guide = people()
    frame = table.to_pandas()
    numbered = frame.set_axis(range(5), axis=1)
    released = ModelGuidedAnonymizer(5, quasi_identifiers=[0, 2], keep=[1, 4]).fit_transform(numbered, guide)
    expected = ModelGuidedAnonymizer(5, quasi_identifiers=["age", "town"], keep=["income", "joined"])
    assert list(released.columns) == [0, 1, 2, 3, 4]
    assert rows_of(released) == rows_of(expected.fit_transform(frame, guide))
    bounds = ModelGuidedAnonymizer(5, representative="bounds").fit_transform(numbered[[0, 1]], guide)
    assert list(bounds.columns) == ["0_low", "0_high", "1_low", "1_high"]


def test_the_tree_splits_on_other_columns_only_when_asked():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"age": generator.integers(0, 90, 200), "ward": generator.integers(0, 5, 200)})
    y = frame["ward"] > 2
    plain = document(frame, y, quasi_identifiers=["age"])
    assert {node.get("column") for node in plain["nodes"]} <= {"age", None}
    every = ModelGuidedAnonymizer(5, quasi_identifiers=["age"], split_on="all")
    released = every.fit_transform(frame, y)
    assert every.partition_.to_dict()["nodes"][0]["column"] == "ward"
    assert released["ward"].tolist() == frame["ward"].tolist()
    assert smallest_group(released, ["age"]) >= 5
    assert rows_of(every.transform(frame)) == rows_of(released)
    kept = document(frame, y, quasi_identifiers=["age"], split_on="all", keep=["ward"])
    assert {node.get("column") for node in kept["nodes"]} <= {"age", None}


def test_stopping_at_purity_makes_fewer_and_larger_groups(numbers):
    y = numbers[:, 1] > 0
    far, pure = fitted(numbers, y), fitted(numbers, y, keep_splitting=False)
    assert pure.n_groups_ == 2 < far.n_groups_
    assert pure.information_loss_ > far.information_loss_ > 0
    assert far.group_sizes_.sum() == pure.group_sizes_.sum() == 400


def test_information_loss_is_the_mean_width_of_the_groups():
    frame = pa.table({"age": [20, 30, 40, 60], "sex": ["f", "f", "m", "m"]})
    loss = fitted(frame, [0, 0, 1, 1], k=2).information_loss_
    assert loss == pytest.approx((10 / 40 + 0 + 20 / 40 + 0) / 4)
    assert fitted(frame, [0, 1, 0, 1], k=4).information_loss_ == 1.0
