# SPDX-License-Identifier: Apache-2.0
"""The claims hold: counting over many runs never finds more privacy loss than was claimed, and finds every defect.

Each audit runs a mechanism on two neighboring tables, far more often than anybody would, and bounds epsilon from below.
Sound mechanisms stay under their claim and come close to it. Four deliberate defects go beyond it.
"""

import math

import numpy as np
import pytest
from scipy import sparse

from sfumato.private import descent, noise
from sfumato.private.accounting import gaussian_scale
from sfumato.private.descent import Descent, descend, noisy_gradient
from twins.frequency_audit import epsilon_at_least
from twins.seeded_noise import SeededNoise

RUNS = 100_000
EPSILON, DELTA = 1.0, 1e-2
SURE = 1 - 1e-9  # for audits whose noise no seed fixes

# A tiny table: one-hot rows of two columns and a constant. The neighbor has one person more, with three records that
# disagree strongly with the model.
ROWS = np.array([[1, 0, 1, 0, 1], [1, 0, 0, 1, 1], [0, 1, 1, 0, 1]], float)
MORE = np.array([[0, 1, 0, 1, 1]] * 3, float)
RESIDUALS, MORE_RESIDUALS = np.array([[0.3], [-0.2], [0.5]]), np.full((3, 1), 0.999)
PERSONS, MORE_PERSONS = np.ones(3), np.full(3, 1 / 3)
LENGTH = math.sqrt(3)


@pytest.fixture(params=[RUNS, pytest.param(10 * RUNS, marks=pytest.mark.slow)], ids=lambda runs: f"{runs} runs")
def runs(request):
    return request.param


def gradients(rows, residuals, shares, scale, runs):
    """Return the noisy gradient of many runs by one call: the table is repeated with columns of its own for each."""
    repeated = sparse.kron(sparse.eye_array(runs), sparse.csr_array(rows.T), format="csr")
    every = noisy_gradient(repeated, np.tile(residuals, (runs, 1)), LENGTH, scale, np.tile(shares, runs))
    return every.reshape(runs, rows.shape[1])


def tables(n_more):
    yield ROWS, RESIDUALS, PERSONS
    yield (
        np.vstack([ROWS, MORE[:n_more]]),
        np.vstack([RESIDUALS, MORE_RESIDUALS[:n_more]]),
        np.append(PERSONS, 3 * MORE_PERSONS[:n_more] / n_more),
    )


def audit_of_a_step(runs, *, n_more=1, shrink=1.0, grow=1.0, ignore_persons=False, confidence=0.999):
    """Return the audited epsilon of one gradient step that claims EPSILON and DELTA."""
    scale = gaussian_scale(EPSILON, DELTA) * shrink
    told = []
    for rows, residuals, shares in tables(n_more):
        residuals = residuals.copy()
        residuals[len(ROWS) :] *= grow
        weights = np.ones(len(rows)) if ignore_persons else shares
        told.append(gradients(rows, residuals, weights, scale, runs) @ MORE[0])  # where the neighbor's records point
    return epsilon_at_least(*told, delta=DELTA, confidence=confidence)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_counts_with_geometric_noise(epsilon, runs):
    source = SeededNoise(1)
    found = epsilon_at_least(10 + source.geometric(epsilon, runs), 11 + source.geometric(epsilon, runs))
    assert 0.85 * epsilon < found <= epsilon
    # Noise for half of the sensitivity is found out.
    assert epsilon_at_least(10 + source.geometric(epsilon, runs), 12 + source.geometric(epsilon, runs)) > epsilon


def test_counts_with_secure_geometric_noise():
    source = noise.SecureNoise()
    found = epsilon_at_least(10 + source.geometric(1.0, RUNS), 11 + source.geometric(1.0, RUNS), confidence=SURE)
    assert 0.75 < found <= 1.0


def test_a_gradient_step(runs, monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(2))
    assert 0.7 * EPSILON < audit_of_a_step(runs) <= EPSILON


def test_a_gradient_step_with_secure_noise():
    # About 0.4, with a standard deviation of 0.1: a lower end nearer to it would fail by chance.
    assert -0.6 < audit_of_a_step(RUNS // 5, confidence=SURE) <= EPSILON


def test_a_person_with_three_records(runs, monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(3))
    assert 0.7 * EPSILON < audit_of_a_step(runs, n_more=3) <= EPSILON


def test_long_gradients_are_clipped(runs, monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(4))
    assert audit_of_a_step(runs, grow=3.0) <= EPSILON


def test_defect_no_clipping(monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(5))
    monkeypatch.setattr(descent, "clipped", lambda residuals: residuals)
    assert audit_of_a_step(RUNS, grow=3.0) > EPSILON


def test_defect_half_the_sensitivity(monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(6))
    assert audit_of_a_step(RUNS, shrink=0.5) > EPSILON


def test_defect_the_cap_on_persons_is_ignored(monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(7))
    assert audit_of_a_step(RUNS, n_more=3, ignore_persons=True) > EPSILON


class _Repeating(SeededNoise):
    """Noise that starts again from its seed at every draw."""

    def __init__(self, seed):
        super().__init__(seed)
        self._seed = seed

    def gaussian(self, scale, size):
        self._generator = np.random.default_rng(self._seed)
        return super().gaussian(scale, size)


@pytest.mark.parametrize(
    ("source", "is_sound"), [(SeededNoise(8), True), (_Repeating(8), False)], ids=["own", "reused"]
)
def test_defect_a_seed_is_used_again(source, is_sound, monkeypatch):
    """Two steps with the same noise: their difference has none."""
    monkeypatch.setattr(noise, "_source", source)
    scale = gaussian_scale(EPSILON, DELTA, steps=2)
    told = []
    for rows, residuals, shares in tables(1):
        first, second = (gradients(rows, part * residuals, shares, scale, RUNS) for part in (1.0, -1.0))
        told.append((first - second) @ MORE[0])
    found = epsilon_at_least(*told, delta=DELTA)
    assert (found <= EPSILON) == is_sound


def test_a_whole_descent(monkeypatch):
    """Three steps, momentum, the noisy count and the learning rate that depends on it, on neighboring tables."""
    monkeypatch.setattr(noise, "_source", SeededNoise(9))
    settings = Descent(3.0, DELTA, 3, 0.9, None, 8.0)
    told = []
    for rows, residuals, shares in tables(1):
        labels = residuals < 0.9  # the neighbor's record has a label of its own
        table = sparse.csr_array(rows)
        weights = [
            descend(table, lambda scores, y=labels: 1 / (1 + np.exp(-scores)) - y, 1, settings, shares, len(rows))
            for _ in range(3_000)
        ]
        told.append(-np.stack(weights)[:, :, 0] @ MORE[0])
    assert 0.1 < epsilon_at_least(*told, delta=DELTA) <= 3.0
