# SPDX-License-Identifier: Apache-2.0
"""The paper's membership attack network: its shape, what it finds, and where it must find nothing."""

import numpy as np
import pytest

from sfumato.attack.membership_network import MembershipNetwork, MembershipNetworkSettings, network_learner
from sfumato.attack.membership_signals import Reader

torch = pytest.importorskip("torch", reason="torch is not installed (extra: neural)")

QUICK = MembershipNetworkSettings(epochs=10, least_steps=100)
N_RECORDS = 1200


@pytest.fixture
def scene():
    """Outputs of a model that is surer of the true label for members: by how much depends on the class."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, N_RECORDS)
    is_member = generator.random(N_RECORDS) < 0.5
    outputs = generator.normal(size=(N_RECORDS, 3))
    outputs[np.arange(N_RECORDS), labels] += np.where(is_member, 4.0, 0.0)
    return outputs, labels, is_member


def halves(scene):
    known = slice(0, N_RECORDS // 2)
    others = slice(N_RECORDS // 2, N_RECORDS)
    return [part[known] for part in scene], [part[others] for part in scene]


def test_the_layers_are_those_of_the_paper(scene):
    network = MembershipNetwork(3, settings=MembershipNetworkSettings(epochs=1, least_steps=1), device="cpu").fit(
        *scene
    )
    shapes = [tuple(p.shape) for name, p in network._module.named_parameters() if name.endswith("weight")]
    assert shapes == [(512, 3), (100, 512), (64, 100), (256, 3), (64, 256), (1, 128)]


def test_members_that_the_model_is_surer_of_are_found(scene):
    known, others = halves(scene)
    network = MembershipNetwork(3, settings=QUICK, device="cpu").fit(*known)
    assert (network.predict(*others[:2]) == others[2]).mean() > 0.9
    probabilities = network.predict_proba(*others[:2])
    assert ((probabilities > 0.5) == network.predict(*others[:2])).all()


def test_no_members_are_found_where_there_is_no_difference(scene):
    known, others = halves((scene[0], scene[1], np.random.default_rng(9).random(N_RECORDS) < 0.5))
    network = MembershipNetwork(3, settings=QUICK, device="cpu").fit(*known)
    # Three standard errors of 600 coins.
    assert abs((network.predict(*others[:2]) == others[2]).mean() - 0.5) < 3 * 0.5 / 600**0.5


def test_few_known_members_weigh_as_much_as_many_others(scene):
    outputs, labels, is_member = scene
    kept = np.flatnonzero(~is_member | (np.cumsum(is_member) <= 60))
    network = MembershipNetwork(3, settings=QUICK, device="cpu").fit(outputs[kept], labels[kept], is_member[kept])
    assert network.predict(outputs[is_member], labels[is_member]).mean() > 0.9


def test_a_regressor_is_attacked_through_its_prediction_and_the_number():
    generator = np.random.default_rng(1)
    truth = generator.normal(50, 20, N_RECORDS)
    is_member = generator.random(N_RECORDS) < 0.5
    outputs = (truth + generator.normal(size=N_RECORDS) * np.where(is_member, 0.5, 40))[:, None]
    known, others = halves((outputs, truth, is_member))
    learn = network_learner(Reader("numbers", None), seed=0, device="cpu")
    scores = learn(*known, *others[:2])
    members, rest = scores[others[2]], scores[~others[2]]
    assert (members[:, None] > rest).mean() > 0.8


def test_the_same_seed_gives_the_same_scores(scene):
    known, others = halves(scene)
    first, second, other = (
        MembershipNetwork(3, settings=QUICK, seed=seed, device="cpu").fit(*known).scores(*others[:2])
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
