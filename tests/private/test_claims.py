# SPDX-License-Identifier: Apache-2.0
"""The claims hold: counting over many runs never finds more privacy loss than was claimed, and finds every defect.

Each audit runs a mechanism on two neighboring tables, far more often than anybody would, and bounds epsilon from below.
Sound mechanisms stay under their claim and come close to it. Four deliberate defects go beyond it.
"""

import math

import numpy as np
import pytest
from scipy import sparse

from sfumato.private import descent, noise, spanning_tree
from sfumato.private.accounting import gaussian_scale
from sfumato.private.descent import Descent, descend, noisy_gradient
from sfumato.private.encoding import PublicEncoding
from sfumato.private.marginals import noisy_marginals
from sfumato.private.spanning_tree import noisy_distances, noisy_tree
from twins.frequency_audit import epsilon_at_least
from twins.seeded_noise import SeededNoise

pytestmark = pytest.mark.thorough

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


def test_a_gradient_step_with_neighboring_intervals_in_common(runs, monkeypatch):
    """Two of the cells have features in common, and residuals are clipped at one half, as by default."""
    monkeypatch.setattr(noise, "_source", SeededNoise(10))
    reach = math.sqrt(1 - 0.6**2)
    features = np.eye(5)
    features[:2, :2] = [[reach, 0.6], [0.6, reach]]  # symmetric, rows of length 1
    direction = features @ MORE[0]
    scale = gaussian_scale(EPSILON, DELTA)

    def audited(features):
        blocks = sparse.csr_array(sparse.kron(sparse.eye_array(runs), sparse.csr_array(features)))
        told = []
        for rows, residuals, shares in tables(1):
            repeated = sparse.kron(sparse.eye_array(runs), sparse.csr_array(rows.T), format="csr")
            every = noisy_gradient(
                repeated, np.tile(residuals / 0.5, (runs, 1)), LENGTH, scale, np.tile(shares, runs), blocks
            )
            told.append(every.reshape(runs, 5) @ direction)
        return epsilon_at_least(*told, delta=DELTA)

    assert 0.7 * EPSILON < audited(features) <= EPSILON
    if runs == RUNS:
        assert audited(2 * features) > EPSILON  # features longer than 1 are found out


def test_a_gradient_step_of_several_classes(runs, monkeypatch):
    """Residuals of three classes are clipped together: the neighbor's record is as wrong as can be."""
    monkeypatch.setattr(noise, "_source", SeededNoise(12))
    random = np.random.default_rng(0)
    own = random.dirichlet(np.ones(3), len(ROWS)) - np.eye(3)[random.integers(0, 3, len(ROWS))]
    wrong = np.array([[-0.999, 0.998, 0.001]])  # longer than 1
    direction = np.outer(MORE[0], wrong / np.linalg.norm(wrong))

    def audited(factor):
        scale = gaussian_scale(EPSILON, DELTA) * factor
        told = []
        for rows, residuals in ((ROWS, own), (np.vstack([ROWS, MORE[:1]]), np.vstack([own, wrong]))):
            repeated = sparse.kron(sparse.eye_array(runs), sparse.csr_array(rows.T), format="csr")
            every = noisy_gradient(repeated, np.tile(residuals, (runs, 1)), LENGTH, scale)
            told.append((every.reshape(runs, 5, 3) * direction).sum(axis=(1, 2)))
        return epsilon_at_least(*told, delta=DELTA)

    assert 0.7 * EPSILON < audited(1.0) <= EPSILON
    if runs == RUNS:
        assert audited(0.5) > EPSILON


def test_the_number_of_persons(runs, monkeypatch):
    monkeypatch.setattr(noise, "_source", SeededNoise(13))
    scale = gaussian_scale(EPSILON, DELTA)
    told = [descent.noisy_sum(np.full(runs, float(n)), scale) for n in (8, 9)]
    assert 0.7 * EPSILON < epsilon_at_least(*told, delta=DELTA) <= EPSILON
    told = [descent.noisy_sum(np.full(runs, float(n)), scale / 2) for n in (8, 9)]
    assert epsilon_at_least(*told, delta=DELTA) > EPSILON


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


# -- records drawn from noisy counts ---------------------------------------------------------------------------------

PAIRS = np.array([[0, 0], [0, 1], [1, 1], [1, 2]])
ONE_MORE = np.vstack([PAIRS, [1, 0]])


def test_distances_from_independence(runs):
    """What the spanning tree is chosen by: one record moves the distance of a pair by 1, and noise covers that."""
    counts = [np.array([2.0, 2.0]), np.array([1.0, 2.0, 1.0])]
    mu = 1 / gaussian_scale(EPSILON, DELTA)
    n = runs if runs > RUNS else runs // 10  # every distance is counted again

    def told(cells, seed, factor=1.0):
        # As many pairs as runs, each with the budget of one.
        return noisy_distances(cells, counts, [(0, 1)] * n, mu * math.sqrt(n) * factor, SeededNoise(seed))

    assert 0.3 * EPSILON < epsilon_at_least(told(PAIRS, 1), told(ONE_MORE, 2), delta=DELTA) <= EPSILON
    assert epsilon_at_least(told(PAIRS, 3, 2.5), told(ONE_MORE, 4, 2.5), delta=DELTA) > EPSILON


def test_counts_of_a_column(runs):
    """Noisy counts by label, each label a table of its own: one record moves one count by 1, and noise covers that."""
    encoding = PublicEncoding(["a"], None, {"a": [0]})
    mu = 1 / gaussian_scale(EPSILON, DELTA)

    def told(n_records, seed, factor=1.0):
        label = np.repeat(np.arange(runs), n_records)
        cells = np.zeros((len(label), 1), np.int64)
        return noisy_marginals(encoding, cells, label, runs, mu * factor, noise=SeededNoise(seed)).counts[0][:, 0]

    assert 0.7 * EPSILON < epsilon_at_least(told(8, 21), told(9, 22), delta=DELTA) <= EPSILON
    assert epsilon_at_least(told(8, 23, 2.0), told(9, 24, 2.0), delta=DELTA) > EPSILON  # half of the noise


def test_counts_of_a_pair_of_columns(runs):
    """Counts of the pairs of a spanning tree: one record moves one count of each pair by 1."""
    scale = gaussian_scale(EPSILON, DELTA)

    def told(n_records, seed, factor=1.0):
        cells = np.zeros((runs * n_records, 2), np.int64)
        cells[:, 0] = np.repeat(np.arange(runs), n_records)  # each run is a cell of the first column
        counts = spanning_tree.noisy_pair(cells, (0, 1), (runs, 1), scale * factor, SeededNoise(seed))
        return counts[:, 0]

    assert 0.7 * EPSILON < epsilon_at_least(told(8, 31), told(9, 32), delta=DELTA) <= EPSILON
    assert epsilon_at_least(told(8, 33, 0.5), told(9, 34, 0.5), delta=DELTA) > EPSILON


@pytest.mark.parametrize("kind", ["marginals", "mst"])
def test_a_whole_model_of_rows(kind):
    """Every noisy number of a model of rows, on neighboring tables: the number of records tells most."""
    encoding = PublicEncoding(["a", "b"], None, {"a": [0, 1], "b": [0, 1, 2]})
    mu = 1 / gaussian_scale(3.0, DELTA)
    source = SeededNoise(11)

    def told(cells):
        many = np.repeat(cells[:4], 30, axis=0)  # enough that counts are above the floor of the noise
        cells = np.vstack([many, cells[4:]])
        label = np.zeros(len(cells), np.int64)
        made = (
            noisy_tree(encoding, cells, mu, noise=source)
            if kind == "mst"
            else noisy_marginals(encoding, cells, label, 1, mu, noise=source)
            for _ in range(4_000)
        )
        return np.array([model.n_records for model in made])

    assert -1.0 < epsilon_at_least(told(PAIRS), told(ONE_MORE), delta=DELTA) <= 3.0
