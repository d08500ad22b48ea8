# SPDX-License-Identifier: Apache-2.0
"""Required, forbidden, budgets, limits of loss and risk; and what one step finer or coarser costs."""

import itertools
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from sfumato import (
    PrivacyAwareTree,
    UniformMinimizer,
    attribute_costs,
    coarsest_generalization,
    sweep_minimizers,
)
from sfumato.errors import ParameterError
from sfumato.generalization.export.texts import Reason
from sfumato.minimize import AttributeCosts
from sfumato.minimize.attribute_steps import AttributeCost, AttributeStep
from sfumato.minimize.bucket_steps import coarser, finer
from sfumato.minimize.sample import FORBIDDEN
from strategies import in_examples, tables

GRID = {"alpha": [0.0, 0.5], "max_leaves": [4, 12]}


def people(seed=0, n=1500):
    """People whose class goes with age and job, and not with hours or sex."""
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": generator.integers(18, 90, n),
            "job": generator.choice([f"job {i}" for i in range(12)], n),
            "hours": np.where(generator.random(n) < 0.1, np.nan, generator.integers(0, 60, n)),
            "sex": generator.choice(["f", "m"], n),
        }
    )
    chance = 0.05 + 0.6 * (X["age"] > 50) + 0.3 * X["job"].isin(["job 1", "job 4", "job 7"])
    return X, (generator.random(n) < chance).astype(int)


def swept(**options):
    X, y = people()
    minimizer = PrivacyAwareTree(min_samples_leaf=30, personal=["sex", "job"])
    estimator = DecisionTreeClassifier(max_leaf_nodes=30, random_state=0)
    return sweep_minimizers(minimizer, X, y, grid=GRID, estimator=estimator, **options)


# -- limits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minimizer", [PrivacyAwareTree(min_samples_leaf=30), UniformMinimizer()])
def test_limits_hold_for_every_point(minimizer):
    X, y = people()
    grid = GRID if isinstance(minimizer, PrivacyAwareTree) else {"n_buckets": [2, 6]}
    estimator = DecisionTreeClassifier(max_leaf_nodes=30, random_state=0)
    limits = {"required": ["sex"], "forbidden": ["job"], "max_buckets": {"age": 2, "hours": 3}}
    found = sweep_minimizers(minimizer, X, y, grid=grid, estimator=estimator, **limits)
    assert found.left_out == {"job": "it is forbidden"}
    assert found.personal == ("job", "sex")  # an attacker would like to know what is forbidden, too
    for point in found.points:
        buckets = dict(zip(point.generalization.names, point.generalization.n_buckets, strict=True))
        assert buckets["job"] == 1
        assert buckets["age"] <= 2
        assert buckets["hours"] <= 3
        if not point.is_limit:
            assert buckets["sex"] == 2
    assert found.coarsest(0.5).generalization.attribute("sex").is_collected
    assert found.points[-1].generalization.parameters["required"] == ["sex"]


def test_what_is_forbidden_is_not_learned_from():
    free, limited = swept(), swept(forbidden=["age"])
    assert any(point.generalization.attribute("age").is_collected for point in free.points[2:])
    assert min(point.test_error for point in limited.points) > min(point.test_error for point in free.points)


def test_the_risk_can_be_limited_instead_of_the_loss():
    found = swept()
    nothing, everything = found.limits
    middle = (nothing.validation_risk + everything.validation_risk) / 2
    chosen = found.coarsest(None, max_risk=middle)
    assert chosen.validation_risk <= middle
    assert chosen.validation_error == min(p.validation_error for p in found.points if p.validation_risk <= middle)
    both = found.coarsest(0.5, max_risk=middle)
    assert both.validation_risk <= chosen.validation_risk
    X, y = people()
    made = coarsest_generalization(
        X, y, max_loss=None, max_risk=middle, grid=GRID, minimizer=PrivacyAwareTree(personal=["sex", "job"])
    )
    assert made.minimizer in ("PrivacyAwareTree", "")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"required": ["height"]}, "required names 'height', which is not an attribute"),
        ({"required": ["sex"], "forbidden": ["sex"]}, "required names 'sex', which forbidden or max_buckets rules out"),
        ({"required": ["age"], "max_buckets": {"age": 1}}, "which forbidden or max_buckets rules out"),
        ({"max_buckets": {"age": 0}}, "max_buckets of 'age': expected an integer >= 1"),
    ],
)
def test_limits_that_cannot_hold_are_refused(options, match):
    with pytest.raises(ParameterError, match=match):
        swept(**options)


def test_a_risk_that_no_setting_reaches_is_refused_with_the_lowest_there_is():
    found = swept()
    with pytest.raises(ParameterError, match=r"the settings that loses? at most 0\.0%, the lowest risk is"):
        found.coarsest(0.0, max_risk=0.0)
    with pytest.raises(ParameterError, match="neither max_loss nor max_risk"):
        found.coarsest(None)


# -- steps ---------------------------------------------------------------------------------------------------


def impurity(y):
    """n times Gini, by counting."""
    return len(y) - sum((y == c).sum() ** 2 for c in set(y.tolist())) / len(y) if len(y) else 0.0


def total_impurity(sample, position, buckets):
    """Of the class in all buckets."""
    own = buckets[sample.columns[position].codes]
    return sum(impurity(sample.y[own == bucket]) for bucket in set(own.tolist()))


@in_examples()
@given(table=tables(min_records=8), seed=st.integers(0, 2**16))
def test_a_step_coarser_joins_two_buckets_where_the_class_loses_least(table, seed):
    generator = np.random.default_rng(seed)
    n = len(next(iter(table.columns.values())).values)
    sample = PrivacyAwareTree(floor=1)._read(table.to("pandas"), generator.integers(0, 2, n), None)
    for position, column in enumerate(sample.columns):
        buckets = np.minimum(np.arange(column.bins.n_bins), 4)
        joined = coarser(sample, position, buckets)
        if column.bins.n_bins == 1:
            assert joined is None
            continue
        assert joined.max() == buckets.max() - 1
        assert all(len(set(joined[buckets == bucket].tolist())) == 1 for bucket in set(buckets.tolist()))
        if column.bins.is_ordered and not column.bins.has_missing:
            assert (np.diff(joined) >= 0).all()
            others = [np.where(buckets > first, buckets - 1, buckets) for first in range(int(buckets.max()))]
            best = min(total_impurity(sample, position, own) for own in others)
            assert total_impurity(sample, position, joined) == pytest.approx(best)


@in_examples()
@given(table=tables(min_records=8), seed=st.integers(0, 2**16), floor=st.integers(1, 4))
def test_a_step_finer_cuts_one_bucket_and_keeps_to_the_floor(table, seed, floor):
    generator = np.random.default_rng(seed)
    n = len(next(iter(table.columns.values())).values)
    sample = PrivacyAwareTree(floor=1)._read(table.to("pandas"), generator.integers(0, 2, n), None)
    for position, column in enumerate(sample.columns):
        buckets = np.zeros(column.bins.n_bins, np.int64)
        cut = finer(sample, position, buckets, floor)
        if cut is None:
            continue
        assert cut.max() == 1
        n_values = column.bins.n_values if column.bins.is_ordered else column.bins.n_bins
        sizes = np.bincount(cut[:n_values], weights=column.counts[:n_values])
        assert sizes.min() >= floor
        if column.bins.is_ordered:
            assert (np.diff(cut[:n_values]) >= 0).all()
            wholes = [(np.arange(len(cut)) > last).astype(int) for last in range(n_values - 1)]
            counts = column.counts[:n_values]
            sides = [(own, [counts[own[:n_values] == side].sum() for side in (0, 1)]) for own in wholes]
            wholes = [own for own, sizes in sides if min(sizes) >= floor]
            if not column.bins.has_missing:
                best = min(total_impurity(sample, position, own) for own in wholes)
                assert total_impurity(sample, position, cut) == pytest.approx(best)


@pytest.mark.parametrize("classes_of_the_rare", [[0, 0, 0], [1, 1, 1], [0, 1, 0]])
def test_a_step_finer_does_not_place_rare_categories_by_their_own_records(classes_of_the_rare):
    X = pd.DataFrame({"job": ["clerk"] * 20 + ["smith"] * 20 + ["pope"] * 3})
    sample = PrivacyAwareTree(floor=5)._read(X, [0] * 20 + [1] * 20 + classes_of_the_rare, None)
    cut = finer(sample, 0, np.zeros(sample.n_codes[0], np.int64), floor=5)
    clerk, smith, pope = sample.columns[0].codes[[0, 20, 40]]
    assert cut[[clerk, pope, smith]].tolist() == [0, 0, 1]
    assert finer(sample, 0, np.zeros(sample.n_codes[0], np.int64), floor=21) is None


# -- costs ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def costs():
    X, y = people(1, 3000)
    made = PrivacyAwareTree(alpha=0.2, max_leaves=8, min_samples_leaf=50, personal=["sex", "job"]).fit(X, y)
    generalization = made.generalization_
    estimator = DecisionTreeClassifier(max_leaf_nodes=30, random_state=0)
    return generalization, attribute_costs(generalization, X, y, personal=["sex", "job"], estimator=estimator)


def test_costs_say_which_attribute_decides_and_which_does_not(costs):
    generalization, found = costs
    assert [row.attribute for row in found.rows] == list(generalization.names)
    assert [row.n_buckets for row in found.rows] == list(generalization.n_buckets)
    assert found.of("age").step("not collected").error > 0.03
    assert found.of("age").step("not collected").is_clear
    assert found.of("job").step("not collected").risk < -0.01  # an attacker guesses jobs less often without it
    if not generalization.attribute("sex").is_collected:
        finer_sex = found.of("sex").step("finer")
        assert finer_sex.risk > 0.2
        assert abs(finer_sex.error) < 0.03
    for row, step in [(own, step) for own in found.rows for step in own.steps]:
        low, high = step.error_interval
        assert low <= step.error <= high
        wanted = {"not collected": 1, "coarser": row.n_buckets - 1, "finer": row.n_buckets + 1}
        assert step.n_buckets == wanted[step.step]
        assert (step.certified is None) == (found.certified is None)
        if step.step != "finer":
            assert step.certified <= 1e-9  # with fewer cells, the bound on any attacker never rises


def test_reasons_follow_from_what_was_measured_and_from_limits(costs):
    _, found = costs
    told = found.reasons(required=["age"], left_out={"sex": FORBIDDEN, "height": "its best cut separates less"})
    assert told["age"].name == "needed"
    assert told["age"].decisions == found.of("age").step("not collected").error
    assert told["sex"].name == "forbidden"  # whatever it would be worth
    assert told["height"].name == "screened"


@pytest.mark.parametrize(
    ("error", "interval", "risk", "reason"),
    [
        (-0.02, (-0.03, -0.01), 0.1, Reason("not worth it", 0.02, 0.1)),
        (-0.02, (-0.03, -0.01), 0.0, Reason("good enough", 0.02)),
        (-0.02, (-0.05, 0.01), 0.1, Reason("useless")),
        (0.02, (0.01, 0.03), 0.1, Reason("useless")),
    ],
)
def test_the_reason_of_what_is_not_asked_is_what_a_step_finer_would_bring(error, interval, risk, reason):
    row = AttributeCost("age", 1, (AttributeStep("finer", 2, error, risk, None, interval),))
    assert AttributeCosts((row,), 0.2, 0.5, None).reasons() == {"age": reason}


def test_the_picture_has_a_panel_of_the_certificate_where_there_is_one():
    step = AttributeStep("finer", 2, -0.02, 0.1, None, (-0.03, -0.01))
    without = AttributeCosts((AttributeCost("a < b", 1, (step,)),), 0.2, 0.5, None).plot()
    certified = AttributeCosts((AttributeCost("a < b", 1, (replace(step, certified=0.3),)),), 0.2, 0.5, 0.6).plot()
    titles = [
        [text.text for text in ElementTree.fromstring(picture) if (text.text or "").endswith("points")]
        for picture in (without, certified)
    ]
    assert titles[0] == ["error, points", "risk, points"]
    assert titles[1] == [*titles[0], "any attacker, at most, points"]
    assert "+31.8" in certified  # the end of its axis: the value and a margin


def test_long_names_get_room_in_the_picture_and_are_cut_where_there_is_none():
    step = AttributeStep("finer", 2, -0.02, 0.1, None, (-0.03, -0.01))
    names = ("SEX", "RELATED_FACTOR_(1)", "AIR_BAG_AVAILABILITY/DEPLOYMENT_OF_THIS_SEAT")
    picture = AttributeCosts(tuple(AttributeCost(name, 1, (step,)) for name in names), 0.2, 0.5, None).plot()
    shown = {own.text or own[0].tail: own for own in ElementTree.fromstring(picture).iter() if own.tag.endswith("text")}
    wide = next(name for name in shown if name.endswith("…"))
    assert names[2].startswith(wide[:-1])
    assert shown[wide][0].text == names[2]  # whole, where a pointer rests on it
    for name in (*names[:2], wide):
        assert float(shown[name].get("x")) >= 10 * len(name)  # capitals of 12 pixels are at most as wide


def test_costs_are_told_in_every_form(costs):
    _, found = costs
    text, page, picture = str(found), found._repr_html_(), found.plot()
    for row in found.rows:
        assert row.attribute in text
        assert row.attribute in page
        assert row.attribute in picture
    assert picture.count("translate(") == 3 + 3 * sum(len(row.steps) for row in found.rows)  # the legend, and panels
    rows = found.to_dicts()
    assert len(rows) == sum(len(row.steps) for row in found.rows)
    assert set(itertools.chain(*rows)) >= {"attribute", "step", "error", "risk", "certified"}
    with pytest.raises(ParameterError, match="no costs of 'height'"):
        found.of("height")
