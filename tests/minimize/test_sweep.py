# SPDX-License-Identifier: Apache-2.0
"""Sweeps: what is on a front, what is chosen, and that nothing is chosen on what is reported."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato import (
    AptMinimizer,
    FeatureSelectionMinimizer,
    IterativeMinimizer,
    ParameterError,
    PrivacyAwareTree,
    UniformMinimizer,
    coarsest_generalization,
    sweep_minimizers,
)
from sfumato.frames import read_table
from sfumato.minimize.sweep_parts import deal
from sfumato.minimize.sweep_result import EVERYTHING, NOTHING, hypervolume, is_on_front, knee_of, round_ticks
from strategies import in_examples

TREE = DecisionTreeClassifier(random_state=0)


def people(n=1200, seed=0):
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": generator.integers(18, 90, n),
            "town": generator.choice(["Bari", "Lodi", "Pisa", "Rome"], n),
            "job": generator.choice(["cook", "nurse", "smith", "clerk"], n),
        }
    )
    y = np.where((X["age"] > 60) | (X["job"] == "nurse"), "yes", "no")
    return X, np.where(generator.random(n) < 0.05, "no", y)


@pytest.fixture(scope="module")
def swept():
    X, y = people()
    minimizers = [PrivacyAwareTree(min_samples_leaf=20), UniformMinimizer(random_state=0), FeatureSelectionMinimizer()]
    grids = [{"alpha": [0.1, 0.6], "max_leaves": [2, 4, 16]}, {"n_buckets": [1, 2, 4]}, {"n_attributes": [1, 2]}]
    return sweep_minimizers(minimizers, X, y, grid=grids, estimator=TREE)


def test_every_setting_and_both_limits_are_measured(swept):
    assert len(swept.points) == 2 + 6 + 3 + 2
    nothing, everything = swept.limits
    assert (nothing.minimizer, everything.minimizer) == (NOTHING, EVERYTHING)
    assert (nothing.test_risk, nothing.validation_risk) == (1.0, 1.0)
    assert everything.test_risk < 0.4
    assert everything.generalization.n_buckets == (1, 1, 1)
    assert nothing.test_error < everything.test_error
    assert swept.personal == ("town", "job")


def test_both_limits_are_in_every_front(swept):
    for name in (None, *swept.minimizers):
        found = {point.minimizer for point in swept.front(name)}
        assert {NOTHING, EVERYTHING} <= found
        assert found <= {NOTHING, EVERYTHING, *([name] if name else swept.minimizers)}


def test_a_front_is_chosen_on_validation(swept):
    front = swept.front()
    for point in front:
        better = [
            other
            for other in swept.points
            if (other.validation_error <= point.validation_error and other.validation_risk < point.validation_risk)
            or (other.validation_error < point.validation_error and other.validation_risk <= point.validation_risk)
        ]
        assert not better or point.is_limit


def test_the_coarsest_generalization_loses_no_more_than_allowed(swept):
    full = swept.limits[0].validation_error
    for max_loss in (0.0, 0.02, 0.2, 1.0):
        chosen = swept.coarsest(max_loss)
        assert chosen.validation_error <= full + max_loss + 1e-9
        allowed = [point for point in swept.points if point.validation_error <= full + max_loss]
        assert chosen.validation_risk == min(point.validation_risk for point in allowed)
    assert swept.coarsest(1.0).validation_risk == swept.limits[1].validation_risk
    with pytest.raises(ParameterError, match="max_loss=-1: expected a share"):
        swept.coarsest(-1)


def test_the_tree_covers_more_area_than_uniform_buckets(swept):
    assert 0 <= swept.hypervolume("UniformMinimizer") < swept.hypervolume("PrivacyAwareTree") <= 1
    with pytest.raises(ParameterError, match="minimizer='Apt': expected one of 'PrivacyAwareTree'"):
        swept.hypervolume("Apt")


def test_the_knee_is_on_the_front_between_the_limits(swept):
    knee = swept.knee("PrivacyAwareTree")
    assert knee in swept.front("PrivacyAwareTree") and not knee.is_limit


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_results_are_a_frame_with_a_row_per_point(swept, library):
    frame = swept.to_frame(library)
    table = frame.to_pandas() if library != "pandas" else frame
    assert len(table) == len(swept.points)
    assert table["test_error"].tolist() == [point.test_error for point in swept.points]
    assert table["is_on_front"].iloc[:2].all() and not table["is_on_front"].all()


def test_the_picture_shows_every_point_and_both_limits(swept):
    picture = ElementTree.fromstring(swept.plot())
    texts = [part.text for part in picture.iter("{http://www.w3.org/2000/svg}text")]
    circles = list(picture.iter("{http://www.w3.org/2000/svg}circle"))
    assert NOTHING in texts and EVERYTHING in texts
    assert len(circles) == len(swept.points) - 2 + len(swept.minimizers)  # and a legend


@pytest.mark.parametrize("span", [0.0012, 0.1399, 0.3501, 0.7, 1.08, 9.99])
def test_axes_have_round_numbers_that_lie_on_them(span):
    ticks = round_ticks(0.137, 0.137 + span)
    assert 2 <= len(ticks) <= 7
    assert ticks[0] >= 0.137 and ticks[-1] <= 0.137 + span
    assert all(len(f"{tick:g}") <= 6 for tick in ticks)


def test_parts_of_ones_own_are_used_as_they_are():
    X, y = people(400)
    later, later_y = people(300, seed=1)
    own = sweep_minimizers(
        PrivacyAwareTree(min_samples_leaf=20), X, y,
        grid={"max_leaves": [2, 8]}, validation=(later[:100], later_y[:100]), test=(later[100:], later_y[100:]),
        estimator=TREE,
    )  # fmt: skip
    nothing = TREE.fit(own.limits[0].generalization.codes(X), y)
    wrong = nothing.predict(own.limits[0].generalization.codes(later[100:])) != later_y[100:]
    assert own.limits[0].test_error == pytest.approx(wrong.mean(), abs=0.03)
    with pytest.raises(ParameterError, match="one of validation and test was given"):
        sweep_minimizers(PrivacyAwareTree(), X, y, validation=(later, later_y))


@pytest.mark.parametrize(
    "estimator",
    [None, make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()), KNeighborsClassifier()],
    ids=["boosting", "pipeline with weights", "no weights"],
)
def test_any_classifier_measures_utility(estimator):
    X, y = people(500)
    own = sweep_minimizers(PrivacyAwareTree(min_samples_leaf=20), X, y, grid={"max_leaves": [4]}, estimator=estimator)
    assert own.points[-1].test_error < own.limits[1].test_error


def test_a_risk_of_ones_own_is_asked_once_per_distinct_generalization():
    X, y = people(300)
    asked = []

    def risk(generalization, samples, personal):
        asked.append(generalization.n_buckets)
        assert personal == ("town", "job")
        return float(sum(generalization.n_buckets)), 0.5

    own = sweep_minimizers(
        PrivacyAwareTree(min_samples_leaf=20), X, y, grid={"alpha": [1.0, 0.99], "max_leaves": [2, 4]},
        estimator=TREE, risk=risk,
    )  # fmt: skip
    assert len(asked) < len(own.points)
    assert own.limits[1].validation_risk == 3.0
    with pytest.raises(ParameterError, match="risk='all': expected 'table'"):
        sweep_minimizers(PrivacyAwareTree(), X, y, risk="all")


def test_default_grids_are_those_of_the_paper():
    X, y = people(200)
    sample = PrivacyAwareTree()._read(X, y, None)
    grid = PrivacyAwareTree().default_grid(sample, (0.1, 0.4))
    assert grid["max_leaves"] == [2, 4, 6, 8, 10, 20, 50, 100, 200] and len(grid["alpha"]) == 12
    assert (min(grid["alpha"]), max(grid["alpha"])) == (0.0, 1.0)
    assert UniformMinimizer().default_grid(sample, (0.1, 0.4)) == {"n_buckets": [1, 2, 3, 4, 5]}
    assert FeatureSelectionMinimizer().default_grid(sample, (0.1, 0.4)) == {"n_attributes": [2, 3]}
    apt = AptMinimizer().default_grid(sample, (0.1, 0.4))["target_accuracy"]
    assert len(apt) == 9 and apt[0] == 1.0 and apt[-1] == pytest.approx(0.7)
    losses = IterativeMinimizer().default_grid(sample, (0.1, 0.4))["max_loss"]
    assert len(losses) == 9 and losses[0] == 0.0 and losses[-1] == pytest.approx(0.3)


@pytest.mark.parametrize("minimizer", [AptMinimizer(estimator=TREE), IterativeMinimizer(estimator=TREE, n_buckets=2)])
def test_minimizers_that_share_work_give_what_fits_apart_give(minimizer):
    X, y = people(500)
    minimizer.set_params(random_state=3)
    sample = minimizer._read(X, y, None)
    (name,) = minimizer.default_grid(sample, (0.0, 0.3))
    settings = [{name: value} for value in (0.0, 0.05, 0.9, 0.97, 1.0)]
    together = list(minimizer._buckets_of_settings(sample, settings))
    for setting, buckets in zip(settings, together, strict=True):
        own = type(minimizer)(**{**minimizer.get_params(deep=False), **setting})._buckets(sample)
        for one, other in zip(buckets, own, strict=True):
            np.testing.assert_array_equal(one, other)


def test_one_call_gives_the_coarsest_generalization():
    X, y = people(600)
    minimizer = PrivacyAwareTree(min_samples_leaf=20)
    chosen = coarsest_generalization(X, y, max_loss=0.02, minimizer=minimizer, estimator=TREE)
    assert chosen.minimizer == "PrivacyAwareTree"
    assert chosen.attribute("town").n_buckets == 1
    assert chosen.attribute("job").n_buckets == 2


def test_a_sweep_says_what_cannot_be_compared():
    X, y = people(200)
    with pytest.raises(ParameterError, match="2 grids for 1 minimizers"):
        sweep_minimizers(UniformMinimizer(), X, y, grid=[{}, {}])
    with pytest.raises(ParameterError, match="no minimizer was given"):
        sweep_minimizers([], X, y)
    with pytest.raises(ParameterError, match="other personal attributes than the first"):
        sweep_minimizers([UniformMinimizer(), PrivacyAwareTree(personal=["age"])], X, y, estimator=TREE)
    with pytest.raises(ParameterError, match="expected three shares above 0"):
        sweep_minimizers(UniformMinimizer(), X, y, shares=(0.5, 0.5, 0.0))


# -- dealing and fronts --------------------------------------------------------------------------------------


@in_examples()
@given(n=st.integers(10, 60), seed=st.integers(0, 2**16))
def test_every_record_is_dealt_once_and_training_sees_every_class_and_category(n, seed):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": generator.choice(list("uvwxyz"), n), "b": generator.normal(size=n)})
    y = generator.integers(0, 3, n)
    parts = deal(read_table(frame), y, (0.6, 0.1, 0.3), generator)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    train, validation, test = parts
    assert len(validation) and len(test)
    assert set(y[train]) == set(y) and set(frame["a"].iloc[train]) == set(frame["a"])
    assert len(train) >= round(0.6 * n)


@in_examples()
@given(points=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_a_front_holds_exactly_the_points_that_nothing_beats(points):
    costs = np.array(points, float)

    def beats(a, b):
        return (a <= b).all() and (a < b).any()

    wanted = [not any(beats(other, own) for other in costs) for own in costs]
    assert is_on_front(costs).tolist() == wanted


@in_examples()
@given(points=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=8))
def test_hypervolume_is_the_area_that_some_point_beats(points):
    # Counted on a grid of unit squares.
    costs = np.array(points, float)
    beaten = sum(any(x >= a and y >= b for a, b in points) for x in range(20) for y in range(20))
    assert hypervolume(costs, np.zeros(2), np.full(2, 20.0)) == pytest.approx(beaten / 400)


def test_hypervolume_without_a_rectangle_is_nothing():
    assert hypervolume(np.zeros((1, 2)), np.zeros(2), np.array([0.0, 1.0])) == 0.0


def test_the_knee_is_furthest_below_the_line():
    costs = np.array([[0.0, 10.0], [1.0, 2.0], [3.0, 1.0], [5.0, 0.0]])
    assert knee_of(costs, costs[0], costs[-1]) == 1


def test_the_whole_family_attacks_every_point_and_the_limit_where_nothing_is_collected():
    random = np.random.default_rng(3)
    table = pd.DataFrame({"job": random.choice(list("abc"), 400), "town": random.choice(list("uvwx"), 400)})
    wage = (table["job"] == "a").astype(int).to_numpy()
    found = sweep_minimizers(UniformMinimizer(), table, wage, grid={"n_buckets": [2]}, risk="family", n_jobs=1)
    frame = found.to_frame()
    assert len(frame) == 3  # two limits and one point
    assert frame["test_risk"].between(0, 1).all()


# -- any attacker --------------------------------------------------------------------------------------------------


def test_every_point_has_a_bound_on_any_attacker_above_the_one_that_was_tried(swept):
    nothing, everything = swept.limits
    assert nothing.certified_risk == 1.0
    assert all(point.test_risk <= point.certified_risk for point in swept.points)
    assert everything.certified_risk < 0.45  # four towns and four jobs, guessed blindly
    assert swept.to_frame()["certified_risk"].tolist() == [point.certified_risk for point in swept.points]


def test_points_know_what_they_were_learned_and_chosen_on_and_nothing_of_the_test_part():
    (X, y), (other, classes), (rest, labels) = people(), people(seed=1), people(seed=2)
    found = sweep_minimizers(
        UniformMinimizer(), X, y, grid={"n_buckets": [2]}, validation=(other, classes), test=(rest, labels)
    )
    fingerprints = found.points[-1].generalization.fingerprints
    assert fingerprints.overlap(X).is_reused and fingerprints.overlap(other).is_reused
    assert not fingerprints.overlap(rest).is_reused
    assert found.points[0].generalization.fingerprints is fingerprints


@pytest.mark.parametrize("own_parts", [False, True])
def test_the_coarsest_generalization_comes_with_a_certificate(own_parts):
    (X, y), (other, classes), (rest, labels) = people(3_000), people(1_000, 1), people(2_000, 2)
    parts = {"validation": (other, classes), "test": (rest, labels)} if own_parts else {}
    made, certificate = coarsest_generalization(
        X, y, max_loss=0.02, certified=True, estimator=TREE, confidence=0.9, random_state=3, **parts
    )
    assert certificate.confidence == 0.9
    assert certificate.n_records == (2_000 if own_parts else 900)
    assert list(certificate.secrets) == ["town", "job"]
    assert certificate["job"].upper < 1 and certificate["town"].advantage < 0.15
    assert made.fingerprints is not None


def test_a_certificate_without_personal_attributes_is_refused():
    X, y = people(300)
    with pytest.raises(ParameterError, match="certified=True without personal attributes"):
        coarsest_generalization(X, y, minimizer=UniformMinimizer(personal=[]), certified=True, estimator=TREE)
