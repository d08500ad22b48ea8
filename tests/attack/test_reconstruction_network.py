# SPDX-License-Identifier: Apache-2.0
"""The paper's reconstruction network: what it learns from merged records, and what the mask forbids it."""

import numpy as np
import pytest

from sfumato.attack.reconstruction_clues import Clue, merge_cells
from sfumato.attack.reconstruction_learners import NetworkSettings, fit_reconstruction, network_answers
from sfumato.attack.reconstruction_questions import Question

torch = pytest.importorskip("torch", reason="torch is not installed (extra: neural)")

CPU = NetworkSettings(weight_decays=(0.0,), least_steps=200, device="cpu")
N_RECORDS = 3000


def ask(values, clues, buckets=None, n_values=None):
    """Return a question about `values`; the bucket of a record, where given, is also a clue and decides the mask."""
    n_values = n_values or int(values.max()) + 1
    buckets = np.zeros(len(values), np.int64) if buckets is None else buckets
    cells = merge_cells([*(Clue(f"clue {i}", codes, False) for i, codes in enumerate(clues))], len(values))
    mask_of_cell = np.zeros(cells.n_cells, np.int64)
    mask_of_cell[cells.cell_of] = buckets
    possible = np.zeros((buckets.max() + 1, n_values), bool)
    possible[buckets, values] = True
    part = len(values) // 3
    parts = slice(0, part), slice(part, 2 * part), slice(2 * part, len(values))
    return Question("attribute", n_values, values, cells, mask_of_cell, possible, *parts)


def rate(question, scores):
    cells = question.cells.cell_of[question.test]
    return (scores(cells).argmax(axis=1) == question.values[question.test]).mean()


@pytest.fixture
def generator():
    return np.random.default_rng(0)


@pytest.mark.parametrize("architecture", ["MLP-2", "MLP-3", "MLP-5"])
def test_a_value_that_two_clues_decide_together_is_found(generator, architecture):
    first, second = generator.integers(0, 4, (2, N_RECORDS))
    question = ask((first + second) % 4, [first, second])
    settings = NetworkSettings(architecture=architecture, weight_decays=(0.0,), device="cpu")
    (scores,) = fit_reconstruction([question], settings)
    assert rate(question, scores) > 0.95


def test_the_shares_of_a_cell_are_learned_from_its_weight(generator):
    clue = generator.integers(0, 2, N_RECORDS)
    values = (generator.random(N_RECORDS) < np.where(clue == 1, 0.9, 0.2)).astype(np.int64)
    question = ask(values, [clue])
    assert question.cells.n_cells == 2
    settings = NetworkSettings(device="cpu")
    (scores,) = fit_reconstruction([question], settings)
    trained = values[question.train], clue[question.train]
    expected = [trained[0][trained[1] == code].mean() for code in (0, 1)]
    np.testing.assert_allclose(scores(np.arange(2))[:, 1], expected, atol=0.02)


def test_a_value_outside_the_bucket_is_never_guessed(generator):
    values = generator.integers(0, 6, N_RECORDS)
    buckets = values // 2
    question = ask(values, [generator.integers(0, 5, N_RECORDS)], buckets)
    # The clue does not tell the bucket, so cells mix buckets; here the mask alone has to keep the guess inside.
    cells = np.arange(question.cells.n_cells)
    (scores,) = fit_reconstruction([question], CPU)
    outside = ~question.possible[question.mask_of_cell]
    assert (scores(cells)[outside] == 0).all()
    np.testing.assert_allclose(scores(cells).sum(axis=1), 1, rtol=1e-5)


def test_questions_about_the_same_cells_share_a_network(generator, monkeypatch):
    from sfumato.attack import reconstruction_learners

    fits = []
    original = reconstruction_learners.fit_reconstruction
    monkeypatch.setattr(
        reconstruction_learners,
        "fit_reconstruction",
        lambda questions, *a, **k: fits.append(len(questions)) or original(questions, *a, **k),
    )
    clue = generator.integers(0, 3, N_RECORDS)
    first = ask(clue, [clue])
    second = Question("other", 3, 2 - clue, first.cells, *([getattr(first, n) for n in ("mask_of_cell", "possible")]),
                      first.train, first.validation, first.test)  # fmt: skip
    third = ask(clue, [clue])
    settings = NetworkSettings(weight_decays=(0.0, 0.01), least_steps=200, device="cpu")
    answers = network_answers([first, second, third], settings, seed=0)
    assert fits == [2, 2, 1, 1]
    assert [[label for label, _ in answer] for answer in answers] == [["MLP-2", "MLP-2, L2 0.01"]] * 3
    assert all(
        rate(question, answer[0][1]) == 1 for question, answer in zip((first, second, third), answers, strict=True)
    )


def test_unrelated_clues_bring_no_more_than_the_majority(generator):
    values = (generator.random(N_RECORDS) < 0.3).astype(np.int64)
    question = ask(values, [generator.integers(0, 3, N_RECORDS) for _ in range(2)])
    (scores,) = fit_reconstruction([question], CPU)
    share = (values[question.test] == 0).mean()
    assert rate(question, scores) <= share + 3 * (share * (1 - share) / 1000) ** 0.5


def test_an_attacker_without_clues_learns_the_shares(generator):
    values = (generator.random(N_RECORDS) < 0.3).astype(np.int64)
    question = ask(values, [])
    (scores,) = fit_reconstruction([question], NetworkSettings(device="cpu"))
    assert scores(np.zeros(1, np.int64))[0, 1] == pytest.approx(values[question.train].mean(), abs=0.02)


def test_the_same_seed_gives_the_same_scores(generator):
    clue = generator.integers(0, 9, N_RECORDS)
    question = ask(clue % 3, [clue])
    cells = np.arange(question.cells.n_cells)
    same = [fit_reconstruction([question], CPU, seed=4)[0](cells) for _ in range(2)]
    other = fit_reconstruction([question], CPU, seed=5)[0](cells)
    np.testing.assert_array_equal(same[0], same[1])
    assert not np.array_equal(same[0], other)
