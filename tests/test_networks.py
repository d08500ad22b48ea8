# SPDX-License-Identifier: Apache-2.0
"""The shared training of small networks: seeds, batches, weights, devices, and what is said without torch."""

import sys

import numpy as np
import pytest

from sfumato import networks
from sfumato.errors import MissingExtraError, ParameterError


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"sfumato\[neural\]"):
        networks.require_torch()


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed (extra: neural)")


def squared_error(module, features, targets):
    return (module(features).squeeze(1) - targets) ** 2


def line(n_rows=400):
    features = np.random.default_rng(0).uniform(-1, 1, size=(n_rows, 2))
    return features, 3 * features[:, 0] - features[:, 1] + 0.5


def fitted(torch, *, seed=0, **settings):
    module = networks.dense_network((2, 1), networks.seeded_generator(1))
    losses = networks.fit_network(
        module, line(), squared_error, seed=seed, device="cpu", batch_size=32, learning_rate=0.1, **settings
    )
    return module, losses


def test_a_linear_layer_finds_a_linear_function(torch):
    module, losses = fitted(torch)
    assert losses[-1] < 1e-3 < losses[0]
    np.testing.assert_allclose(module[0].weight.detach().numpy(), [[3, -1]], atol=0.05)


def test_the_same_seed_gives_the_same_network(torch):
    first, second, other = fitted(torch, epochs=2), fitted(torch, epochs=2), fitted(torch, epochs=2, seed=5)
    assert torch.equal(first[0][0].weight, second[0][0].weight)
    assert not torch.equal(first[0][0].weight, other[0][0].weight)


def test_the_global_generator_of_torch_is_left_alone(torch):
    before = torch.get_rng_state()
    fitted(torch, epochs=1)
    assert torch.equal(before, torch.get_rng_state())


def test_the_number_of_threads_is_as_before_after_a_fit(torch):
    before = torch.get_num_threads()
    inside = []
    torch.set_num_threads(2)
    try:
        fitted(torch, epochs=1, progress=lambda done, total: inside.append(torch.get_num_threads()))
        assert (inside, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("batch_size", [4, 1000])
def test_a_row_with_a_weight_counts_as_that_many_records(torch, batch_size):
    features = np.zeros((40, 1))
    targets = np.repeat([0.0, 1.0], [10, 30])
    weights = np.repeat([9.0, 1.0], [10, 30])  # the weighted mean is 30 of 120, the plain one 30 of 40
    module = networks.dense_network((1, 1), networks.seeded_generator(0))
    networks.fit_network(
        module, (features, targets), squared_error, weights=weights, epochs=200, batch_size=batch_size, device="cpu",
        schedule=(100, 0.1),
    )  # fmt: skip
    assert module[0].bias.item() == pytest.approx(0.25, abs=0.03)


def test_an_epoch_without_weights_sees_every_row_once(torch):
    sampler = networks.EpochSampler(17, None, networks.seeded_generator(0))
    first, second = sampler.rows().tolist(), sampler.rows().tolist()
    assert sorted(first) == sorted(second) == list(range(17))
    assert first != second


def test_an_epoch_with_weights_sees_a_row_as_often_as_its_weight_says(torch):
    weights = np.array([0.0, 6.0, 1.5, 0.5, 0.0])
    counts = np.array(
        [
            np.bincount(networks.EpochSampler(5, weights, networks.seeded_generator(seed)).rows(), minlength=5)
            for seed in range(400)
        ]
    )
    expected = weights * 5 / weights.sum()
    assert (counts.sum(axis=1) == 5).all()
    assert (np.abs(counts - expected) < 1).all()
    np.testing.assert_allclose(counts.mean(axis=0), expected, atol=0.1)


def test_the_schedule_lowers_the_learning_rate(torch):
    _, falling = fitted(torch, epochs=6, schedule=(1, 0.01))
    _, constant = fitted(torch, epochs=6, schedule=None)
    assert falling[-1] > constant[-1]


def test_progress_is_told_after_every_epoch(torch):
    told = []
    fitted(torch, epochs=3, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_loss_that_leaves_the_numbers_is_an_error(torch):
    module = networks.dense_network((2, 1), networks.seeded_generator(1))
    with pytest.raises(ParameterError, match="Lower learning_rate"):
        networks.fit_network(module, line(), lambda m, x, y: squared_error(m, x, y) * np.inf, device="cpu")


@pytest.mark.parametrize("weights", [[1.0], [-1.0] + [1.0] * 399, [np.nan] * 400, [0.0] * 400])
def test_weights_that_cannot_work_are_refused(torch, weights):
    with pytest.raises(ParameterError, match="one finite number per row"):
        fitted(torch, weights=weights)


def test_an_unknown_device_is_refused(torch):
    with pytest.raises(ParameterError, match="Leave it None"):
        networks.pick_device("abacus")


def test_predictions_in_parts_equal_predictions_at_once(torch, monkeypatch):
    module, _ = fitted(torch, epochs=1)
    features = line()[0]
    whole = networks.predict_network(module, (features,), device="cpu")
    monkeypatch.setattr(networks, "PREDICTION_ROWS", 7)
    np.testing.assert_allclose(networks.predict_network(module, (features,), device="cpu"), whole, rtol=1e-6)
    assert networks.predict_network(module, (features[:0],), device="cpu").shape == (0, 1)
