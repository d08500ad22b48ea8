# SPDX-License-Identifier: Apache-2.0
"""The formulas behind membership attacks against plain Python, one record at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from sfumato.attack.membership_metrics import area_under_curve, best_threshold, low_rate, said_members
from sfumato.attack.membership_scores import gaussians, lira_offline, lira_online, rmia
from sfumato.attack.membership_signals import Reader
from strategies import in_examples

TWO = Reader("probabilities", np.array([0, 1]))
VOTES = Reader("probabilities", np.array([0, 1]), is_vote=True)


def random_shadows(seed, n_shadows=10, n_records=7):
    generator = np.random.default_rng(seed)
    was_in = generator.random((n_shadows, n_records)).argsort(axis=0) < n_shadows // 2
    return generator.normal(size=n_records), generator.normal(size=(n_shadows, n_records)) + 1.5 * was_in, was_in


def naive_gaussian(values, is_counted, record):
    """Mean, and the best linear estimate of the variance, from sums over records one by one."""
    squares, freedom, fourth, scale = 0.0, 0, 0.0, 0
    for other in range(values.shape[1]):
        own = [v for v, c in zip(values[:, other], is_counted[:, other], strict=True) if c]
        mean = sum(own) / len(own)
        of_other = sum((v - mean) ** 2 for v in own)
        squares += of_other
        freedom += len(own) - 1
        fourth += of_other**2
        scale += (len(own) - 1) * (len(own) + 1)
    common = squares / freedom
    inequality = max(fourth / scale / common**2 - 1, 0.0)
    own = [v for v, c in zip(values[:, record], is_counted[:, record], strict=True) if c]
    mean = sum(own) / len(own)
    of_record = sum((v - mean) ** 2 for v in own)
    if inequality == 0:
        return mean, common
    worth = 2 + 2 / inequality  # what the common variance counts for, in degrees of freedom
    return mean, (of_record + worth * common) / (len(own) - 1 + worth)


@in_examples(50)
@given(seed=st.integers(0, 10_000))
def test_lira_is_the_ratio_of_two_normal_densities(seed):
    signal, shadows, was_in = random_shadows(seed)
    online, offline = lira_online(signal, shadows, was_in), lira_offline(signal, shadows, was_in)
    for record, value in enumerate(signal):
        mean_in, variance_in = naive_gaussian(shadows, was_in, record)
        mean_out, variance_out = naive_gaussian(shadows, ~was_in, record)
        of_in = math.exp(-((value - mean_in) ** 2) / (2 * variance_in)) / math.sqrt(2 * math.pi * variance_in)
        of_out = math.exp(-((value - mean_out) ** 2) / (2 * variance_out)) / math.sqrt(2 * math.pi * variance_out)
        assert online[record] == pytest.approx(math.log(of_in / of_out), abs=1e-9)
        assert offline[record] == pytest.approx((value - mean_out) / math.sqrt(variance_out))


@in_examples(50)
@given(seed=st.integers(0, 10_000), gamma=st.sampled_from([0.5, 1.0, 2.0]), has_population=st.booleans())
def test_rmia_counts_the_pairs_that_a_record_wins(seed, gamma, has_population):
    _, shadows, was_in = random_shadows(seed)
    shares = 1 / (1 + np.exp(-shadows))
    own = np.random.default_rng(seed + 1).random(7)
    population = np.random.default_rng(seed + 2).random(5)
    of_population = np.random.default_rng(seed + 3).random((10, 5))
    more = {"population": population, "shadow_population": of_population} if has_population else {}
    scores = rmia(own, shares, was_in, gamma=gamma, **more)
    ratios = [
        own[i] / ((shares[was_in[:, i], i].mean() + shares[~was_in[:, i], i].mean()) / 2) for i in range(len(own))
    ]
    for record, ratio in enumerate(ratios):
        if has_population:
            others = [population[z] / of_population[:, z].mean() for z in range(5)]
        else:
            others = [r for z, r in enumerate(ratios) if z != record]
        assert scores[record] == pytest.approx(sum(ratio / z >= gamma for z in others) / len(others))


def test_the_variance_of_a_record_prevails_with_many_shadows():
    generator = np.random.default_rng(0)
    values = generator.normal(size=(2000, 2)) * np.array([1.0, 10.0])
    _, variance = gaussians(values, np.ones_like(values, bool))
    np.testing.assert_allclose(variance, [1.2, 100], rtol=0.1)


def test_equal_variances_are_estimated_from_all_records_together():
    values = np.random.default_rng(1).normal(size=(8, 5000)) * 3
    _, variance = gaussians(values, np.ones_like(values, bool))
    np.testing.assert_allclose(variance, 9, rtol=0.1)  # by itself, a record's own would be off by half


@pytest.mark.parametrize("n_shadows", [4, 8, 32])
@pytest.mark.parametrize("inequality", [0.1, 1.0, 4.0])
def test_no_fixed_weight_of_the_common_variance_is_closer_to_the_truth(n_shadows, inequality):
    # True variances with the mean 1 and the variance `inequality`; the best linear weight follows from it in theory.
    generator = np.random.default_rng(2)
    truth = generator.gamma(1 / inequality, inequality, 20_000)
    values = generator.normal(size=(n_shadows, len(truth))) * np.sqrt(truth)
    _, variance = gaussians(values, np.ones_like(values, bool))
    freedom = n_shadows - 1
    own = values.var(axis=0, ddof=1)
    errors = [
        np.mean(((freedom * own + worth * own.mean()) / (freedom + worth) - truth) ** 2)
        for worth in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 1e6)
    ]
    assert np.mean((variance - truth) ** 2) <= min(errors) * 1.02
    best = freedom * inequality / (freedom * inequality + 2 * (1 + inequality))
    found = np.polyfit(own, variance, 1)[0]
    assert found == pytest.approx(best, rel=0.1)


def test_the_angle_of_a_vote_spreads_alike_whatever_the_share():
    generator = np.random.default_rng(3)
    spread = []
    for share in (0.05, 0.2, 0.5, 0.9, 0.95):
        votes = generator.binomial(100, share, 50_000) / 100
        outputs = np.stack([1 - votes, votes], axis=1)
        spread.append(VOTES.signal(outputs, np.ones(len(votes), int)).var())
    np.testing.assert_allclose(spread, 1 / 100, rtol=0.2)  # one over the number of trees


def test_the_signal_is_the_logit_of_the_confidence_in_the_true_label():
    outputs = np.array([[0.2, 0.8], [0.3, 0.7], [1.0, 0.0]])
    signal = TWO.signal(outputs, np.array([1, 0, 1]))
    np.testing.assert_allclose(signal, [math.log(4), math.log(3 / 7), math.log(1e-12)])
    np.testing.assert_allclose(VOTES.likelihood(outputs, np.array([1, 0, 1])), [0.8, 0.3, 0])


def test_a_model_that_often_says_exactly_zero_votes():
    shares = np.random.default_rng(0).dirichlet([1, 1], 2000)
    assert not TWO.suited_to(shares).is_vote
    assert TWO.suited_to(np.round(shares, 1)).is_vote
    assert not Reader("logits", np.array([0, 1])).suited_to(np.zeros((50, 2))).is_vote


def test_logits_and_probabilities_of_the_same_model_give_the_same_signal():
    logits = np.random.default_rng(0).normal(size=(50, 3))
    codes = np.random.default_rng(1).integers(0, 3, 50)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    classes = np.arange(3)
    of_shares = Reader("probabilities", classes).suited_to(shares).signal(shares, codes)
    np.testing.assert_allclose(Reader("logits", classes).signal(logits, codes), of_shares)
    np.testing.assert_allclose(Reader("logits", classes).likelihood(logits, codes), shares[np.arange(50), codes])


def test_an_exact_prediction_of_a_regressor_has_a_finite_signal():
    reader = Reader("numbers", None)
    signal = reader.signal(np.array([[1.0], [2.0], [5.0]]), np.array([1.0, 2.0, 3.0]))
    assert np.isfinite(signal).all() and signal[2] == pytest.approx(-math.log(4)) and signal[0] > signal[2]


def test_a_class_that_a_shadow_has_not_met_gets_nothing():
    class Half:
        classes_ = np.array([0, 2])

        def predict_proba(self, X):
            return np.array([[0.25, 0.75]])

    found = Reader("probabilities", np.arange(3)).outputs(Half(), np.zeros((1, 1)))
    np.testing.assert_allclose(found, [[0.25, 0, 0.75]])


SCORES = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=4, max_size=40).filter(
    lambda rows: len({member for _, member in rows}) == 2
)


@in_examples(50)
@given(rows=SCORES)
def test_the_area_is_the_share_of_pairs_in_the_right_order(rows):
    scores, is_member = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    area, (low, high) = area_under_curve(scores, is_member)
    assert area == pytest.approx(roc_auc_score(is_member, scores))
    assert 0 <= low <= area <= high <= 1


@in_examples(50)
@given(rows=SCORES)
def test_no_other_threshold_is_right_more_often(rows):
    scores, is_member = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    chosen = ((scores >= best_threshold(scores, is_member)) == is_member).sum()
    for threshold in (-np.inf, *(np.unique(scores) - 0.5), np.inf):
        assert ((scores >= threshold) == is_member).sum() <= chosen


@in_examples(50)
@given(rows=SCORES, most=st.sampled_from([0.0, 0.05, 0.2, 0.5]))
def test_a_low_rate_is_the_best_among_the_thresholds_allowed(rows, most):
    scores, is_member = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    found = low_rate(scores, is_member, most)
    rates = [
        (scores[is_member] > threshold).mean()
        for threshold in (-np.inf, *np.unique(scores))
        if (scores[~is_member] > threshold).mean() <= most + 1e-12
    ]
    assert found.rate == pytest.approx(max(rates))
    assert found.false_positive_rate <= most + 1e-12
    assert found.interval[0] <= found.rate <= found.interval[1]
    low, high = found.false_positive_interval
    assert low <= found.false_positive_rate <= high


@pytest.mark.parametrize("most", [0.01, 0.001])
def test_intervals_of_a_low_rate_cover_the_truth(most):
    # The threshold that 1% of all others pass is not the one that 1% of these others pass.
    truth = norm.sf(norm.isf(most) - 1.5)
    is_member = np.arange(2000) < 1000
    n_covered = 0
    for seed in range(200):
        scores = np.random.default_rng(seed).normal(size=2000) + 1.5 * is_member
        low, high = low_rate(scores, is_member, most).interval
        n_covered += low <= truth <= high
    assert n_covered >= 180  # 200 intervals at 95%: fewer are seen with chance 0.2%


def test_a_record_has_no_say_in_its_own_threshold():
    scores = np.array([0.0, 1.0, 2.0, 3.0])
    is_member = np.array([False, True, True, False])
    said = said_members(scores, is_member, np.array([0, 0, 1, 1]))
    # Fold 1 (members below others) calls the lower half members; fold 0 calls what is above 0.5 members.
    np.testing.assert_array_equal(said[2:], [True, True])
    np.testing.assert_array_equal(said[:2], [False, False])


def test_intervals_of_the_area_cover_the_truth():
    generator = np.random.default_rng(4)
    n_covered = 0
    for _ in range(400):
        scores = np.concatenate([generator.normal(0.8, 1, 80), generator.normal(0, 1, 80)])
        _, (low, high) = area_under_curve(scores, np.arange(160) < 80)
        n_covered += low <= norm.cdf(0.8 / math.sqrt(2)) <= high
    assert n_covered >= 366  # of 400 at 95%; fewer has a probability below 0.2%
