# SPDX-License-Identifier: Apache-2.0
"""The counted table beside a plain Python twin, and what it does where cells are empty."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.reconstruction_adversaries import count_table, information, mix_levels
from sfumato.attack.reconstruction_clues import Clue, merge_cells
from sfumato.attack.reconstruction_questions import Question, guess, masked_scores, selection
from strategies import in_examples


def mix_levels_naive(rows, starts, values, counts, totals, strength, out):
    """The same in plain Python: shares of real records and of imagined ones that follow the level before."""
    for cell, shares in enumerate(out):
        for level in range(len(rows)):
            row = rows[level][cell]
            entries = range(starts[row], starts[row + 1])
            found = {values[entry]: counts[entry] for entry in entries}
            for value, share in enumerate(list(shares)):
                shares[value] = (found.get(value, 0) + strength * share) / (totals[row] + strength)


def make_question(seed, n_records=60, n_clues=3, n_values=3):
    generator = np.random.default_rng(seed)
    clues = [Clue(f"clue {i}", generator.integers(0, 4, n_records), False) for i in range(n_clues)]
    cells = merge_cells(clues, n_records)
    values = (clues[0].codes + (generator.random(n_records) < 0.3)) % n_values
    mask_of_cell = cells.clues[:, 0] % 2
    possible = np.ones((2, n_values), bool)
    third = n_records // 3
    parts = slice(0, third), slice(third, 2 * third), slice(2 * third, n_records)
    return Question("attribute", n_values, values, cells, mask_of_cell, possible, *parts)


@pytest.mark.twins
@in_examples()
@given(seed=st.integers(0, 2**16), strength=st.sampled_from([1e-6, 0.5, 8.0]), n_clues=st.integers(0, 6))
def test_the_kernel_mixes_levels_as_plain_python_does(seed, strength, n_clues):
    question = make_question(seed, n_clues=max(1, n_clues))
    table = count_table(question)
    start = question.prior[question.mask_of_cell]
    fast, slow = start.copy(), start.copy()
    arguments = (table.rows, table.starts, table.values, table.counts, table.totals, strength)
    mix_levels(*arguments, fast)
    mix_levels_naive(*arguments, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    np.testing.assert_allclose(fast.sum(axis=1), 1.0)


def test_a_cell_without_records_is_guessed_from_larger_cells():
    train = np.array([[0, 0]] * 5 + [[1, 0]] * 5 + [[1, 1]] * 2)
    unseen = np.array([[0, 1]])
    codes = np.concatenate([train, unseen])
    cells = merge_cells([Clue("telling", codes[:, 0], False), Clue("silent", codes[:, 1], False)], len(codes))
    values = np.array([0] * 5 + [1] * 7 + [0])
    everything = np.ones((1, 2), bool)
    parts = slice(0, 12), slice(12, 13), slice(12, 13)
    question = Question("attribute", 2, values, cells, np.zeros(cells.n_cells, int), everything, *parts)
    guesses = guess(question, count_table(question).scores(1e-6))
    assert guesses.values[cells.cell_of[12]] == 0  # the telling clue decides, though the other points to 1


def test_scores_of_impossible_values_are_dropped():
    question = dataclasses.replace(make_question(3), possible=np.array([[True, True, False], [False, False, True]]))
    cells = np.arange(question.cells.n_cells)
    even = masked_scores(question, lambda cells: np.ones((len(cells), 3), np.float32))(cells)
    assert even.tolist() == [[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]][mask] for mask in question.mask_of_cell]
    none_left = masked_scores(question, lambda cells: np.zeros((len(cells), 3), np.float32))(cells)
    np.testing.assert_allclose(none_left, question.prior[question.mask_of_cell], rtol=1e-6)


def test_information_is_the_mutual_information():
    codes = np.array([0, 0, 1, 1] * 500)
    cells = merge_cells([Clue("copy", codes, False), Clue("noise", np.arange(2000) % 2, False)], 2000)
    parts = slice(0, 2000), slice(0, 2000), slice(0, 2000)
    question = Question("a", 2, codes, cells, np.zeros(cells.n_cells, int), np.ones((1, 2), bool), *parts)
    copy, noise = information(question)
    assert copy == pytest.approx(np.log(2), abs=1e-3)
    assert noise == pytest.approx(0, abs=1e-3)


def information_naive(question):
    """The same from a table of all codes and values of every clue."""
    cells, learned = question.cells, question.learned
    n_records = learned.counts.sum()
    told = []
    for position, size in enumerate(cells.sizes):
        joint = np.zeros((size, question.n_values))
        np.add.at(joint, (cells.clues[learned.cells, position], learned.values), learned.counts)
        joint = joint[joint.any(axis=1)][:, joint.any(axis=0)] / n_records
        shares = joint / (joint.sum(axis=1, keepdims=True) * joint.sum(axis=0))
        chance = (joint.shape[0] - 1) * (joint.shape[1] - 1) / (2 * n_records)
        told.append((joint[joint > 0] * np.log(shares[joint > 0])).sum() - chance)
    return told


@pytest.mark.parametrize("seed", range(8))
def test_information_is_that_of_the_whole_table(seed):
    question = make_question(seed, n_records=30 + 40 * seed, n_clues=1 + seed % 4, n_values=2 + 3 * (seed % 3))
    assert information(question) == pytest.approx(information_naive(question), abs=1e-12)


@in_examples()
@given(confidence=st.lists(st.sampled_from([0.1, 0.4, 0.5, 0.9]), min_size=1, max_size=30), share=st.floats(0.01, 1.0))
def test_the_surest_share_is_selected_whatever_the_order(confidence, share):
    given_order = selection(np.array(confidence, np.float32), share)
    assert given_order.sum() == pytest.approx(share * len(confidence))
    assert ((given_order >= 0) & (given_order <= 1)).all()
    by_confidence = {}
    for value, weight in zip(confidence, given_order.tolist(), strict=True):
        assert by_confidence.setdefault(value, weight) == weight  # equal confidence, equal weight
    weights = [by_confidence[value] for value in sorted(by_confidence)]
    assert weights == sorted(weights)
