# SPDX-License-Identifier: Apache-2.0
"""The page of the attack study says what the kept cells say."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # studies are no part of the package
from studies.inference_attacks import TABLE_1, TABLE_2
from studies.inference_attacks_claims import evidence
from studies.inference_attacks_page import page


def test_a_row_that_was_not_run_is_named():
    text = page({})
    assert "Not run yet: Adult, random forest, none" in text
    assert "| Adult, random forest | k=50 | 0.85 |  | 0.83 |" in text


def _cells(*, attack, test, falls=0.05):
    """One split in which every attack is as right as said, protected models included."""
    half = {"details": {"n_members": 50, "n_others": 50}}
    rates = {"random_forest": {"rate": attack} | half, "network": {"rate": attack - 0.1} | half}
    cells = {row.key: {"membership": rates, "test": test if row.k else 0.8, "n_train": 50} for row in TABLE_1}
    for row in TABLE_2:
        rate = {"rate": 0.7 - falls * bool(row.k), "baseline": 0.6}
        cells[row.key] = {"attribute": {"confidence": rate, "confusion": rate}}
    return cells


def test_evidence_goes_split_by_split():
    found = evidence([_cells(attack=0.5, test=0.78), _cells(attack=0.52, test=0.76)])
    first, *_ = found["attack-prevented-adult"].differences
    assert first.values == pytest.approx((0.01, -0.01))  # the paper's 0.51 minus the better attack
    assert "0.510 (without protection 0.510; the paper 0.51)" in found["attack-prevented-adult"].numbers
    cost = {one.where: one.values for one in found["accuracy-cost"].differences}
    assert cost["Adult, rf, k=100"] == pytest.approx((0.0, -0.02))  # the paper loses 0.02, we 0.02 and 0.04
    assert list(cost) == ["Adult, rf, k=50", "Adult, rf, k=100"]  # networks have our engine, loans nothing to lose
    assert (
        "Adult, nn, k=25 (sfumato's own engine, not judged) -0.030 (the paper -0.07)" in found["accuracy-cost"].numbers
    )
    pairs = {one.where: one.values for one in found["private-comparable"].differences}
    assert list(pairs) == [
        *("rf, k=50 against epsilon=10", "rf, k=100 against epsilon=10"),
        *("rf, k=50 against epsilon=1", "rf, k=100 against epsilon=1"),
    ]
    assert pairs["rf, k=50 against epsilon=10"] == pytest.approx((-0.02, -0.04))
    assert "differential privacy is ahead in all of 4 pairs" in found["private-comparable"].numbers
    assert [one.estimate for one in found["attribute-attack-weaker"].differences] == pytest.approx([0.05, 0.05])
    assert found["attribute-attack-weaker"].numbers.endswith("both forms guess alike, so that this is one comparison")


def test_the_records_of_a_single_split_are_counted():
    found = evidence([_cells(attack=0.5, test=0.8)])
    first, *_ = found["attack-prevented-adult"].differences
    assert (first.n, first.error) == (1, pytest.approx(0.05))  # half of a hundred records
    assert found["accuracy-cost"].differences[0].error == pytest.approx((2 * 0.8 * 0.2 / 50) ** 0.5)
