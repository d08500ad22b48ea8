# SPDX-License-Identifier: Apache-2.0
"""Delta of sampling with a threshold: known values, its definition, and how it moves with its parameters."""

import math

import pytest
from scipy.stats import binom

from sfumato.errors import ParameterError
from sfumato.private.sampling_delta import exact_delta, smallest_k, theorem_delta

# epsilon, rate, k, the theorem's delta, the exact one
KNOWN = [
    (1, 0.1, 10, "6.8e-08", "1.0e-08"),
    (1, 0.1, 20, "4.1e-14", "2.8e-15"),
    (1, 0.5, 20, "7.7e-04", "1.1e-04"),
    (1, 0.5, 50, "2.3e-07", "9.8e-09"),
    (2, 0.2, 10, "9.2e-07", "1.6e-07"),
]
# epsilon, rate, the smallest k for delta 1e-6 by the theorem and exactly
SMALLEST = [(1, 0.1, 9, 8), (1, 0.2, 14, 12), (1, 0.5, 46, 35), (2, 0.1, 7, 7), (2, 0.2, 10, 9), (2, 0.5, 24, 23)]


@pytest.mark.parametrize(("epsilon", "rate", "k", "theorem", "exact"), KNOWN)
def test_known_values(epsilon, rate, k, theorem, exact):
    assert f"{theorem_delta(epsilon, rate, k):.1e}" == theorem
    assert f"{exact_delta(epsilon, rate, k):.1e}" == exact


@pytest.mark.parametrize(("epsilon", "rate", "theorem", "exact"), SMALLEST)
def test_the_smallest_k(epsilon, rate, theorem, exact):
    assert smallest_k(epsilon, 1e-6, rate, exact=False) == theorem
    assert smallest_k(epsilon, 1e-6, rate) == exact
    assert exact_delta(epsilon, rate, exact) <= 1e-6 < exact_delta(epsilon, rate, exact - 1)


def by_definition(epsilon, rate, k, most):
    """Sum the differences of the two distributions term by term, both ways."""

    def mass(n, j):
        return binom.cdf(k - 1, n, rate) if j == 0 else float(binom.pmf(j, n, rate))

    largest = 0.0
    for n in range(most):
        support = [0, *range(k, n + 2)]
        pairs = [(mass(n, j), mass(n + 1, j)) for j in support]
        largest = max(largest, *(sum(max(0.0, p - math.exp(epsilon) * q) for p, q in way) for way in (
            pairs, [(q, p) for p, q in pairs]
        )))  # fmt: skip
    return largest


@pytest.mark.parametrize(("epsilon", "rate", "k"), [(1.0, 0.1, 5), (1.0, 0.5, 8), (0.7, 0.5, 6), (0.12, 0.1, 3)])
def test_the_exact_delta_is_its_definition(epsilon, rate, k):
    found = exact_delta(epsilon, rate, k)
    assert math.isclose(found, by_definition(epsilon, rate, k, 60), rel_tol=1e-6)
    assert found <= theorem_delta(epsilon, rate, k)


def test_more_protection_costs_more():
    assert exact_delta(1.0, 0.1, 11) < exact_delta(1.0, 0.1, 10) < exact_delta(1.0, 0.2, 10)
    assert exact_delta(1.1, 0.1, 10) < exact_delta(1.0, 0.1, 10)
    assert exact_delta(50.0, 0.1, 3) >= 0.0  # nothing overflows


def test_a_delta_without_a_number_is_not_none_at_all():
    for of in (exact_delta, theorem_delta):
        assert 0 < of(1.0, 0.1, 2000) < 1e-300


def test_bad_settings_are_explained():
    with pytest.raises(ParameterError, match=r"epsilon=0.5 with rate=0.5: expected at least -ln\(1 - rate\) = 0.6931"):
        exact_delta(0.5, 0.5, 10)
    with pytest.raises(ParameterError, match="rate=0: expected a number above 0 and below 1"):
        exact_delta(1.0, 0, 10)
    with pytest.raises(ParameterError, match="k"):
        theorem_delta(1.0, 0.1, 0)
    with pytest.raises(ParameterError, match="delta=0"):
        smallest_k(1.0, 0, 0.1)
