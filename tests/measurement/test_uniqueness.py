# SPDX-License-Identifier: Apache-2.0
"""Estimators of population uniqueness: beside exact sums, and beside populations that are known."""

import math
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import measure
from sfumato.measurement.population_uniqueness import (
    estimated_groups,
    estimates_from_sizes,
    expected_inverse,
    expected_small_groups,
    fit_pitman,
    fit_shifted_negative_binomial,
    pitman_log_likelihood,
    pitman_share,
    zayatz,
)
from strategies import in_examples

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def frequencies(sizes):
    different, counts = np.unique(np.array(sizes), return_counts=True)
    return different, counts


@in_examples()
@given(sizes=SIZES, more=st.integers(0, 40))
def test_zayatz_equals_bayes_rule_with_exact_fractions(sizes, more):
    n = sum(sizes)
    population = n + more
    found = zayatz(*frequencies(sizes), population)
    if 1 not in sizes:
        assert found is None
        return

    def seen_once(j):
        return Fraction(j * comb(population - j, n - 1), comb(population, n))

    prior = {j: Fraction(sizes.count(j), len(sizes)) for j in set(sizes)}
    exact = prior[1] * seen_once(1) / sum(share * seen_once(j) for j, share in prior.items())
    assert found == pytest.approx(float(exact), rel=1e-9)


@in_examples()
@given(sizes=SIZES, alpha=st.floats(0.05, 0.95), theta=st.floats(0, 50))
def test_pitmans_formula_equals_its_products(sizes, alpha, theta):
    n, u = sum(sizes), len(sizes)
    exact = sum(math.log(theta + i * alpha) for i in range(1, u)) - sum(math.log(theta + i) for i in range(1, n))
    exact += sum(math.log(i - alpha) for size in sizes for i in range(1, size))
    assert pitman_log_likelihood(alpha, theta, *frequencies(sizes)) == pytest.approx(exact, rel=1e-9, abs=1e-7)
    share = math.prod((theta + alpha + i - 1) / (theta + i) for i in range(1, n))
    assert pitman_share(alpha, theta, n) == pytest.approx(share, rel=1e-9)


def chinese_restaurant(alpha, theta, n, seed):
    """Seat n records one by one, as the random partition behind Pitman's formula does; return their groups."""
    random = np.random.default_rng(seed)
    sizes, group = [], np.empty(n, int)
    for i in range(n):
        new = theta + alpha * len(sizes)
        if i == 0 or random.random() < new / (theta + i):
            sizes.append(0)
            group[i] = len(sizes) - 1
        else:
            chances = np.array(sizes) - alpha
            group[i] = random.choice(len(sizes), p=chances / chances.sum())
        sizes[group[i]] += 1
    return group


def test_pitmans_parameters_are_found_again():
    group = chinese_restaurant(0.5, 20.0, 6000, seed=0)
    alpha, theta = fit_pitman(*frequencies(np.bincount(group)))
    assert alpha == pytest.approx(0.5, abs=0.06)
    assert 5 < theta < 60
    at_maximum = pitman_log_likelihood(alpha, theta, *frequencies(np.bincount(group)))
    for factor in (0.98, 1.02):
        assert pitman_log_likelihood(alpha * factor, theta, *frequencies(np.bincount(group))) < at_maximum
        assert pitman_log_likelihood(alpha, theta * factor, *frequencies(np.bincount(group))) < at_maximum


def test_pitmans_likelihood_has_no_maximum_at_the_ends():
    assert fit_pitman(np.array([1]), np.array([9])) is None
    assert fit_pitman(np.array([9]), np.array([1])) is None


@in_examples()
@given(sizes=SIZES, fraction=st.floats(0.05, 0.95))
def test_the_modified_shlosser_number_of_groups_equals_its_sums(sizes, fraction):
    q, n_alone = fraction, sizes.count(1)
    if n_alone == 0:
        assert estimated_groups(*frequencies(sizes), q) == len(sizes)
        return
    first = sum(i * q**2 * (1 - q**2) ** (i - 1) for i in sizes) / sum((1 - q) ** i * ((1 + q) ** i - 1) for i in sizes)
    second = sum((1 - q) ** i for i in sizes) / sum(i * q * (1 - q) ** (i - 1) for i in sizes)
    exact = len(sizes) + n_alone * first * second**2
    assert estimated_groups(*frequencies(sizes), q) == pytest.approx(exact, rel=1e-9)


@in_examples()
@given(alpha=st.floats(0.05, 5), beta=st.floats(0.05, 0.95), fraction=st.floats(0.02, 0.98))
def test_the_expected_small_groups_equal_the_sums_over_the_sizes_in_the_population(alpha, beta, fraction):
    alone = pairs = 0.0
    chance = beta**alpha  # of a group with one record in the population
    for j in range(1, 3000):
        alone += chance * j * fraction * (1 - fraction) ** (j - 1)
        pairs += chance * j * (j - 1) / 2 * fraction**2 * (1 - fraction) ** max(j - 2, 0)
        chance *= (j + alpha - 1) / j * (1 - beta)
    found = expected_small_groups(alpha, beta, 1.0, fraction)
    assert found == pytest.approx((alone, pairs), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("alpha, beta", [(0.1, 0.02), (0.5, 0.2), (1.0, 0.5), (2.0, 0.3)])
@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.7])
def test_the_parameters_behind_the_expected_small_groups_are_found_again(alpha, beta, fraction):
    alone, pairs = expected_small_groups(alpha, beta, 5000, fraction)
    n_records = 5000 * (1 + alpha * (1 - beta) / beta) * fraction
    found = fit_shifted_negative_binomial(alone, pairs, 5000, n_records, fraction)
    assert found == pytest.approx((alpha, beta), rel=1e-6)


def test_the_shifted_negative_binomial_estimate_comes_near_the_truth_of_its_own_population():
    random = np.random.default_rng(0)
    population = 1 + random.negative_binomial(0.5, 0.2, 5000)
    sample = random.binomial(population, 0.3)
    found = estimates_from_sizes(sample[sample > 0], int(population.sum()), missing="value", reason=None)[-1]
    assert found.estimator == "shifted_negative_binomial"
    assert found.share == pytest.approx((population == 1).sum() / population.sum(), rel=0.1)


def test_the_shifted_negative_binomial_is_silent_without_pairs():
    found = measure(pd.DataFrame({"age": [30, 31, 32, 33, 33, 33]}), population=60).uniqueness.estimates[-1]
    assert found.estimator == "shifted_negative_binomial"
    assert found.share is None
    assert "no parameters" in found.reason


def test_estimates_come_near_the_truth_of_a_known_population():
    group = chinese_restaurant(0.6, 50.0, 6000, seed=1)
    random = np.random.default_rng(2)
    chosen = random.choice(6000, 1200, replace=False)
    people = pd.DataFrame({"cell": group})
    sample = people.iloc[chosen]
    truth = measure(sample, population=people).uniqueness
    estimates = {part.estimator: part for part in truth.estimates}
    in_sample = truth.n_unique_in_population
    assert 30 < in_sample < truth.n_unique  # otherwise the test says nothing
    assert estimates["pitman"].n_records == pytest.approx(in_sample, rel=0.25)
    # Known to be too high for small fractions: it takes the sample's sizes for those of the population.
    assert in_sample < estimates["zayatz"].n_records <= truth.n_unique
    weighted = measure(sample, weights=np.full(1200, 5.0)).uniqueness.estimates[-1]
    assert weighted.estimator == "negative_binomial"
    assert weighted.n_records == pytest.approx(truth.n_unique / 5)


def test_a_sample_that_is_the_population_has_the_uniqueness_it_shows():
    found = measure(pd.DataFrame({"age": [30, 31, 31, 32]}), population=4).uniqueness
    assert {part.estimator: part.n_records for part in found.estimates}["zayatz"] == pytest.approx(2)


@in_examples()
@given(count=st.integers(1, 12), weight=st.floats(1.01, 60))
def test_the_weighted_risk_equals_the_negative_binomial_sum(count, weight):
    chance = 1 / weight
    total, term = 0.0, chance**count
    for size in range(count, 20_000):
        total += term / size
        term *= (1 - chance) * size / (size - count + 1)
    assert expected_inverse(np.array([count]), np.array([count * weight]))[0] == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("fraction", [1e-5, 0.01, 0.4, 0.97])
@pytest.mark.parametrize("count", [1, 19, 20, 100, 334, 1000, 10**6])
def test_the_weighted_risk_of_groups_of_any_size_is_between_its_bounds(count, fraction):
    # By Jensen it is at least 1 / E[F]; a person of the sample is one of at least `count`.
    found = float(expected_inverse(np.array([count]), np.array([count / fraction]))[0])
    assert fraction / count * (1 - 1e-12) <= found <= 1 / count * (1 + 1e-12)
    if count >= 100:  # F is then near its mean, as close as its deviation
        assert found == pytest.approx(fraction / count, rel=1.5 / count)


def test_weights_of_one_mean_that_the_sample_is_the_population():
    frame = pd.DataFrame({"age": [30, 30, 31], "w": [1, 1, 1]})
    found = measure(frame, ["age"], weights="w")
    assert found.journalist.basis == "weights"
    assert found.journalist.average == pytest.approx(found.prosecutor.average)
    assert found.journalist.maximum == pytest.approx(1)
    assert found.uniqueness.estimates[-1].n_records == pytest.approx(1)
    assert "w" not in {name for entry in found.ranking.columns for name in entry.columns}


def test_estimators_say_why_they_are_silent_about_overlapping_groups():
    frame = pd.DataFrame({"age": [30, None, 31], "w": [2.0, 2.0, 2.0]})
    found = measure(frame, ["age"], weights="w", missing="wildcard")
    assert [part.share for part in found.uniqueness.estimates] == [None, None, None, None]
    assert all("overlap" in part.reason for part in found.uniqueness.estimates)
    assert "overlap" in found.journalist.reason
