# SPDX-License-Identifier: Apache-2.0
"""The noise has the distribution that is claimed, comes from no seed, and hides the last bits of a number."""

import math
import sys

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import MissingExtraError, ParameterError
from sfumato.private import noise
from sfumato.private.noise import (
    SecureNoise,
    add_gaussian,
    grid_of,
    noise_source,
    whole_steps,
)
from twins.seeded_noise import NoNoise, SeededNoise

pytest.importorskip("opendp", reason="opendp is not installed (extra: dp)")
SOURCES = [SecureNoise(), SeededNoise(7)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_geometric_noise_falls_by_e_to_the_epsilon_with_every_unit(source, epsilon):
    drawn = source.geometric(epsilon, 40_000)
    assert drawn.dtype == np.int64
    share = math.expm1(epsilon) / (math.exp(epsilon) + 1)  # of zero: (1 - q) / (1 + q) with q = exp(-epsilon)
    values = np.arange(-3, 4)
    expected = share * np.exp(-epsilon * np.abs(values))
    seen = [(drawn == value).sum() for value in values]
    others = len(drawn) - sum(seen)
    test = stats.chisquare([*seen, others], [*(expected * len(drawn)), (1 - expected.sum()) * len(drawn)])
    assert test.pvalue > 1e-9


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 37.3, 1e9])
def test_gaussian_noise_is_normal_and_on_the_grid(source, scale):
    drawn = source.gaussian(scale, 20_000)
    assert stats.kstest(drawn / scale, "norm").pvalue > 1e-9
    steps = drawn / grid_of(scale)
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_two_draws_differ_and_ignore_numpy_s_seed():
    first = SecureNoise().gaussian(1.0, 50)
    np.random.seed(0)
    second = SecureNoise().gaussian(1.0, 50)
    np.random.seed(0)
    third = SecureNoise().gaussian(1.0, 50)
    assert len(set(first) & set(second)) == len(set(second) & set(third)) == 0


def test_the_source_of_a_process_is_the_secure_one():
    assert isinstance(noise_source(), SecureNoise)


def test_sums_keep_nothing_finer_than_the_grid():
    exact = np.array([math.pi, math.pi + 1e-13, -1e6 / 3])
    noisy = add_gaussian(exact, 0.7, SeededNoise(1))
    steps = noisy / grid_of(0.7)
    np.testing.assert_array_equal(steps, np.rint(steps))
    np.testing.assert_allclose(noisy - exact, SeededNoise(1).gaussian(0.7, 3), atol=grid_of(0.7))
    # Two values that no grid point separates lead to the same outputs under the same noise.
    first, second = (add_gaussian([value], 0.7, SeededNoise(2)) for value in (math.pi, math.pi + 1e-13))
    np.testing.assert_array_equal(first, second)


def test_the_shape_of_values_is_kept():
    assert add_gaussian(np.zeros((3, 4)), 1.0).shape == (3, 4)


@pytest.mark.parametrize("bad", [0, -1.0, math.inf, math.nan, True, "1"])
def test_scales_and_budgets_are_positive_numbers(bad):
    with pytest.raises(ParameterError, match="expected a"):
        SecureNoise().geometric(bad, 1)
    with pytest.raises(ParameterError, match="expected a"):
        SecureNoise().gaussian(bad, 1)


def test_counts_that_are_less_than_a_step_of_the_grid_are_refused():
    assert add_gaussian(np.array([3]), 2.0**29, NoNoise())[0] == 3
    with pytest.raises(ParameterError, match="expected less for counts"):
        add_gaussian(np.array([3]), 2.0**32)


def test_values_far_beyond_the_noise_are_refused():
    for value in (math.nan, math.inf, 1e30):
        with pytest.raises(ParameterError, match="Bound the values"):
            add_gaussian([value], 1.0)


def test_whole_steps_never_grow_and_are_added_up_exactly():
    values = np.random.default_rng(0).normal(size=1000)
    steps = whole_steps(values, 0.7)
    assert (np.abs(steps * grid_of(0.7)) <= np.abs(values)).all()
    np.testing.assert_allclose(steps * grid_of(0.7), values, atol=grid_of(0.7))
    for value in (math.nan, math.inf, 1e30):
        with pytest.raises(ParameterError, match="Bound the values"):
            whole_steps(np.array([value]), 1.0)


def test_noise_that_leaves_64_bits_is_refused():
    """A draw at the end of the range would turn over when one more person is added."""
    with pytest.raises(ParameterError, match="does not fit into 64-bit integers"):
        SecureNoise().geometric(1e-300, 1)
    assert np.abs(SecureNoise().geometric(2.0**-40, 20)).max() < 2**62


def test_the_measurement_spends_at_most_the_budget():
    for epsilon in (1e-4, 0.1, 0.3, 1.0, 7.7, 20.0):
        assert noise._geometric(epsilon).map(1) <= epsilon


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(MissingExtraError, match="sfumato\\[dp\\]"):
        noise.require_opendp()
