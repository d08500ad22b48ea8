# SPDX-License-Identifier: Apache-2.0
"""Mondrian and workload-aware anonymization: the same engine under the rules of their papers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import AnonymizedClassifier, MondrianAnonymizer, ParameterError, WorkloadAwareAnonymizer
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import ANONYMIZER_CHECKS

METHODS = [MondrianAnonymizer(k=5), MondrianAnonymizer(k=5, rule="information_loss"), WorkloadAwareAnonymizer(k=5)]
NAMES = ["mondrian", "greedy", "workload"]


def expected_failures(estimator):
    """Return the checks that fail on purpose, each with its reason."""
    if isinstance(estimator, MondrianAnonymizer):
        return {}  # it takes no weights
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "k counts records, never weights: a record that is there twice gives its group one more member, a record "
            "of weight 2 does not, so the groups differ"
        ),
    }


@parametrize_with_checks(
    [MondrianAnonymizer(k=2), WorkloadAwareAnonymizer(k=2)], expected_failed_checks=expected_failures
)
def test_classic_methods_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", ANONYMIZER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_classic_methods_pass_the_checks_of_the_family(method, check):
    check(method)


@pytest.mark.parametrize("representative", REPRESENTATIVES)
@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_classic_methods_take_every_representative(method, representative):
    frame = pd.DataFrame({"age": np.arange(40) % 17, "sex": ["f", "m"] * 20})
    method = type(method)(**method.get_params() | {"representative": representative, "random_state": 0})
    released = method.fit_transform(frame, np.arange(40) % 3)
    assert released.groupby(list(released)).size().min() >= 5


def test_mondrian_cuts_the_widest_column_at_its_median_first():
    # Both columns span their whole range; the first wins the tie, and its values 0..7 are halved.
    X = np.column_stack([np.arange(8), np.array([0, 1] * 4)])
    released = MondrianAnonymizer(k=4, representative="range").fit_transform(X)
    assert released[:, 0].tolist() == ["3 and under"] * 4 + ["4 and over"] * 4
    assert released[:, 1].tolist() == ["any value"] * 8


def test_strict_mondrian_keeps_equal_values_together():
    X = np.array([[1], [2], [2], [2], [2], [3]])
    anonymizer = MondrianAnonymizer(k=2).fit(X)
    assert anonymizer.n_groups_ == 1  # any cut would leave a single 1 or a single 3


def test_mondrian_does_not_look_at_labels_to_form_groups():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (200, 3))
    plain = MondrianAnonymizer(k=7).fit(X).partition_.apply(X)
    labelled = MondrianAnonymizer(k=7).fit(X, rng.integers(0, 2, 200)).partition_.apply(X)
    np.testing.assert_array_equal(plain, labelled)


def test_the_greedy_rule_loses_less_information_than_the_median_where_the_data_has_clusters():
    X = np.concatenate([np.arange(10), 1000 + np.arange(14)])[:, None]
    greedy = MondrianAnonymizer(k=10, rule="information_loss").fit(X)
    median = MondrianAnonymizer(k=10).fit(X)
    assert greedy.information_loss_ < median.information_loss_
    assert greedy.group_sizes_[0] == 10  # the cluster of ten stays whole


def test_workload_aware_splits_where_the_labels_change_and_mondrian_does_not():
    X = np.arange(20)[:, None]
    y = np.where(np.arange(20) < 6, "no", "yes")
    anonymizer = WorkloadAwareAnonymizer(k=6, representative="range").fit(X, y)
    assert anonymizer.transform(X)[:6, 0].tolist() == ["5 and under"] * 6
    assert MondrianAnonymizer(k=6, representative="range").fit_transform(X)[0, 0] != "5 and under"


def test_workload_aware_takes_numbers_as_well():
    X = np.arange(20)[:, None]
    y = np.where(np.arange(20) < 6, 0.5, 7.25) + np.linspace(0, 0.01, 20)
    anonymizer = WorkloadAwareAnonymizer(k=6, representative="range").fit(X, y)
    assert anonymizer.transform(X)[0, 0] == "5 and under"


def test_a_classifier_takes_any_anonymizer():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    classifier = AnonymizedClassifier(LogisticRegression(), anonymizer=MondrianAnonymizer(k=8)).fit(X, y)
    assert classifier.anonymizer_.group_sizes_.min() >= 8


def test_an_unknown_rule_is_refused():
    with pytest.raises(ParameterError, match="rule='widest': expected 'median' or 'information_loss'"):
        MondrianAnonymizer(k=2, rule="widest").fit(np.arange(6)[:, None])
