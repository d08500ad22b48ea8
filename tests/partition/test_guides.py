# SPDX-License-Identifier: Apache-2.0
"""Predictions become integer channels without losing what they say."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import in_examples, seeds, sizes

from sfumato.partition import guides
from sfumato.partition.guides import CHANNELS, ENTROPY, INFORMATION_LOSS, MEDIAN, NUMBER_SCALE, PROBABILITY_SCALE


def exact_variance(values: np.ndarray) -> Fraction:
    n, total = len(values), sum(values.tolist())
    return Fraction(sum(v * v for v in values.tolist()), n) - Fraction(total, n) ** 2


# -- labels --------------------------------------------------------------------------------------------------


def test_labels_are_one_coded_block_of_weight_one() -> None:
    guide = guides.from_labels(np.array([2, 0, 2]), 3)
    assert (guide.rule, guide.dense, guide.cardinalities) == (CHANNELS, None, [3])
    assert [block.tolist() for block in guide.code_blocks] == [[2, 0, 2]]
    assert guide.channel_weights.tolist() == [1.0, 1.0, 1.0]
    assert guide.classes is not None
    assert guide.classes.tolist() == [2, 0, 2]
    assert guides.from_labels(np.array([0, 1]), 2, rule=ENTROPY).rule == ENTROPY


def test_hundreds_of_classes_take_two_bytes() -> None:
    assert guides.from_labels(np.array([0, 299]), 300).code_blocks[0].dtype == np.uint16
    assert guides.from_labels(np.array([0, 255]), 256).code_blocks[0].dtype == np.uint8


# -- probabilities -------------------------------------------------------------------------------------------


def test_probabilities_become_whole_multiples_of_their_scale() -> None:
    guide = guides.from_probabilities(np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]]))
    assert guide.dense is not None and guide.classes is not None
    assert guide.dense.tolist() == [[32768, 16384, 16384], [0, 65536, 0], [6554, 13107, 45875]]
    assert guide.channel_weights.tolist() == [1 / PROBABILITY_SCALE**2] * 3
    assert guide.classes.tolist() == [0, 1, 2]


def test_two_classes_are_one_channel_of_weight_two() -> None:
    guide = guides.from_probabilities(np.array([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]))
    assert guide.dense is not None and guide.classes is not None
    assert guide.dense.tolist() == [[16384], [32768], [65536]]
    assert guide.channel_weights.tolist() == [2 / PROBABILITY_SCALE**2]
    assert guide.classes.tolist() == [0, 0, 1]  # the first of equals


# -- numbers -------------------------------------------------------------------------------------------------


@in_examples()
@given(seed=seeds, n=sizes(), scale=st.sampled_from([1e-30, 1.0, 1e12]))
def test_numbers_are_scaled_to_unit_variance(seed: int, n: int, scale: float) -> None:
    numbers = np.random.default_rng(seed).normal(size=(n, 2)) * [scale, 1] + [0, 100]
    guide = guides.from_numbers(numbers)
    assert guide.dense is not None
    for c in range(2):
        channel = guide.dense[:, c]
        if n > 1:
            assert (channel.min(), channel.max()) == (0, NUMBER_SCALE)
            assert guide.channel_weights[c] * np.var(channel.astype(np.float64)) == pytest.approx(1.0)
            spread = (numbers[:, c] - numbers[:, c].min()) / np.ptp(numbers[:, c])
            np.testing.assert_allclose(channel / NUMBER_SCALE, spread, atol=1e-7)


def test_a_constant_number_has_no_say() -> None:
    guide = guides.from_numbers(np.array([[3.5, 1.0], [3.5, 2.0]]))
    assert guide.dense is not None
    assert guide.dense[:, 0].tolist() == [0, 0]
    assert guide.channel_weights.tolist() == [0.0, pytest.approx(4 / NUMBER_SCALE**2)]


@in_examples()
@given(values=st.lists(st.integers(0, NUMBER_SCALE) | st.sampled_from([0, 1, 4095, 4096, NUMBER_SCALE]), min_size=1))
def test_the_variance_is_the_exact_one_rounded_once(values: list[int]) -> None:
    channel = np.array(values, np.int64)
    assert guides.Spread.of(channel).variance == float(exact_variance(channel))


def test_the_order_of_the_records_changes_no_weight() -> None:
    numbers = np.random.default_rng(0).lognormal(size=(500, 1))
    assert guides.from_numbers(numbers).channel_weights == guides.from_numbers(numbers[::-1]).channel_weights


# -- rules without channels ----------------------------------------------------------------------------------


def test_rules_of_their_own_need_no_channels() -> None:
    for guide, rule in [(guides.by_information_loss(), INFORMATION_LOSS), (guides.by_median(), MEDIAN)]:
        assert (guide.rule, guide.dense, guide.code_blocks, len(guide.channel_weights)) == (rule, None, [], 0)


# -- record weights ------------------------------------------------------------------------------------------


def test_whole_weights_keep_their_proportions() -> None:
    weights = guides.integer_weights(np.array([1.0, 2.0, 4.0, 0.0]), value_bits=0)
    assert weights.dtype == np.int64
    assert weights.tolist() == [2**18, 2**19, 2**20, 0]


@pytest.mark.parametrize("n", [1, 1000, 10_000_000])
@pytest.mark.parametrize("value_bits", [0, 24])
def test_weighted_sums_of_the_largest_values_fit_sixty_three_bits(n: int, value_bits: int) -> None:
    largest = int(guides.integer_weights(np.broadcast_to(np.float64(3.0), n), value_bits).max())
    assert largest * n * (1 << value_bits) < 2**63
    assert largest >= 2**14  # fine enough to be worth having


def test_the_bits_of_channel_values_are_those_of_numbers() -> None:
    assert guides.from_labels(np.array([0, 1, 2]), 3).value_bits == 0
    for guide in (guides.from_numbers(np.array([[0.0], [1.0]])), guides.from_probabilities(np.array([[0.0, 1.0]]))):
        assert guide.dense is not None
        assert int(guide.dense.max()) <= 1 << guide.value_bits
