# SPDX-License-Identifier: Apache-2.0
"""The accountant agrees with published numbers and with a numeric integration of the privacy loss."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from sfumato.errors import ParameterError
from sfumato.private.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_scale,
    membership_limit,
    rho_of_gaussian,
    rho_of_pure,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)


def delta_by_integration(epsilon, mu):
    """Integrate the positive part of p - exp(epsilon) q for two normal densities that are mu apart."""

    def excess(x):
        return max(stats.norm.pdf(x - mu) - math.exp(epsilon) * stats.norm.pdf(x), 0.0)

    start = epsilon / mu + mu / 2  # where the privacy loss passes epsilon
    return integrate.quad(excess, start, start + 40, epsabs=0, epsrel=1e-10, limit=500)[0]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
def test_delta_is_the_integral_over_the_privacy_loss(epsilon, mu):
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta_by_integration(epsilon, mu), rel=1e-6, abs=1e-300)


def test_composed_steps_are_one_step_with_the_root_of_their_number():
    """The privacy loss of T steps, simulated step by step with a query that depends on earlier answers."""
    generator = np.random.default_rng(0)
    steps, scale, epsilon, runs = 16, 8.0, 0.5, 400_000
    loss = np.zeros(runs)
    answer = np.zeros(runs)
    for _ in range(steps):
        sign = np.where(answer > 0, 1.0, -1.0)  # which way the neighbor differs is chosen from what was seen
        answer = sign + generator.normal(0, scale, runs)
        loss += (answer**2 - (answer - sign) ** 2) / (2 * scale**2)
    seen = np.maximum(1 - np.exp(epsilon - loss), 0).mean()
    assert seen == pytest.approx(gaussian_delta(epsilon, math.sqrt(steps) / scale), rel=0.03)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-13, 1e-300), (1e-12, 1e-200), (0.0, 1e-15), (1e-9, 1e-30), (1e4, 1e-6)]
)
def test_the_largest_mu_and_rho_keep_to_budgets_of_any_size(epsilon, delta):
    assert gaussian_delta(epsilon, gaussian_mu(epsilon, delta)) <= delta
    if epsilon:
        assert zcdp_delta(epsilon, zcdp_rho(epsilon, delta)) <= delta


def test_known_scales():
    # The standard deviations of the analytic Gaussian mechanism for sensitivity 1 and epsilon 1, delta 1e-5, beside the
    # classical bound sqrt(2 ln(1.25 / delta)) = 4.845.
    assert gaussian_scale(1.0, 1e-5) == pytest.approx(3.7306, abs=1e-4)
    assert gaussian_scale(1.0, 1e-5, sensitivity=2.0) == pytest.approx(2 * 3.7306, abs=2e-4)
    assert gaussian_scale(0.5, 1e-5, steps=100) == pytest.approx(10 * gaussian_scale(0.5, 1e-5))
    # delta(0) is the total variation distance of two normal distributions that are mu apart.
    assert gaussian_delta(0.0, 1.0) == pytest.approx(2 * stats.norm.cdf(0.5) - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_the_inverses_are_tight_and_on_the_safe_side(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta < gaussian_delta(epsilon, mu * (1 + 1e-6))
    spent = gaussian_epsilon(delta, mu)
    assert gaussian_delta(spent, mu) <= delta
    assert spent == pytest.approx(epsilon, rel=1e-6)
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_delta(epsilon, rho) <= delta < zcdp_delta(epsilon, rho * (1 + 1e-6))
    assert zcdp_epsilon(delta, rho) == pytest.approx(epsilon, rel=1e-5)


def test_the_general_bound_is_never_below_the_exact_one():
    for mu in (0.05, 0.3, 1.0, 3.0):
        for epsilon in (0.2, 1.0, 4.0, 12.0):
            bound = zcdp_delta(epsilon, rho_of_gaussian(mu))
            assert bound >= gaussian_delta(epsilon, mu)
            # The simpler conversion of Bun and Steinke (2016), epsilon = rho + 2 sqrt(rho ln(1/delta)), is no better.
            rho = rho_of_gaussian(mu)
            if epsilon > rho:
                assert bound <= math.exp(-((epsilon - rho) ** 2) / (4 * rho)) * (1 + 1e-9)


def test_pure_budgets_become_rho():
    assert rho_of_pure(0.2) == pytest.approx(0.02)
    assert rho_of_pure(0.0) == 0


def test_membership_accuracy_is_limited():
    # Randomized response reaches the limit: the truth with probability e^eps / (1 + e^eps).
    assert membership_limit(math.log(3)) == pytest.approx(0.75)
    assert membership_limit(0.0, 0.1) == pytest.approx(0.55)
    assert membership_limit(800.0) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian_delta(-1.0, 1.0),
        lambda: gaussian_delta(1.0, 0.0),
        lambda: gaussian_mu(1.0, 0.0),
        lambda: gaussian_mu(1.0, 1.0),
        lambda: gaussian_epsilon(2, 1.0),
        lambda: gaussian_scale(1.0, 1e-6, steps=0),
        lambda: gaussian_scale(1.0, 1e-6, sensitivity=math.inf),
        lambda: gaussian_scale("1", 1e-6),
        lambda: zcdp_delta(1.0, -0.1),
    ],
)
def test_impossible_budgets_are_refused(call):
    with pytest.raises(ParameterError, match="expected a"):
        call()
