# SPDX-License-Identifier: Apache-2.0
"""The page of the attacks on generalizations says what the kept cells say, and a cell is what the attacks find."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # studies are no part of the package
from studies import generalization_attacks as study
from studies.claims import HELD, NOT_HELD, UNTESTED
from studies.generalization_attacks_claims import claims
from studies.generalization_attacks_page import page
from studies.minimization_tasks import Task


def test_what_was_not_run_is_named_and_judges_nothing():
    text = page({})
    assert "Not run yet: table 5, A8, PAT, 2 leaves, alpha 0.3" in text
    assert "| Uniform, 5 buckets | MLP-3 | 0.21 |  | 0.24 |" in text
    assert {claim.verdict for claim in claims({})} == {UNTESTED}


def _alone_cells(n_alone, rarest):
    return {
        row.key: {"rate": alone / 1000, "details": {"n_records": 1000, "rarest": rare}}
        for row, alone, rare in zip(study.TABLE_5, n_alone, rarest, strict=True)
    }


def _verdict_of(start, cells):
    return next(claim.verdict for claim in claims(cells) if claim.text.startswith(start))


def test_a_claim_is_judged_by_the_cells():
    finer = "Table 5: finer"
    assert _verdict_of(finer, _alone_cells([0, 0, 1, 5, 9, 2], [70, 8, 1, 1, 1, 1])) == HELD
    assert _verdict_of(finer, _alone_cells([0, 0, 0, 5, 9, 2], [70, 8, 9, 1, 1, 1])) == NOT_HELD
    more_private = "Table 5: with 20 leaves, fewer"
    assert _verdict_of(more_private, _alone_cells([0, 0, 1, 5, 9, 2], [70, 8, 1, 1, 1, 1])) == HELD
    assert _verdict_of(more_private, _alone_cells([0, 0, 1, 5, 9, 6], [70, 8, 1, 1, 1, 1])) == NOT_HELD


@pytest.fixture
def made_up_task(monkeypatch):
    """A task with the columns that the study names, in which the class follows the occupation."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.integers(6, size=1200) for name in ("AGEP", "OCCP", "POBP")})
    y = np.where(rng.random(1200) < 0.9, X["OCCP"] >= 3, rng.random(1200) < 0.5).astype(int)
    task = Task("made_up", X, y, ("OCCP", "POBP"), ("OCCP", "POBP"))
    monkeypatch.setattr(study, "load", lambda data: task)
    for cached in (study.generalize, study.read_samples):
        cached.cache_clear()
    yield task
    for cached in (study.generalize, study.read_samples):
        cached.cache_clear()


@pytest.mark.parametrize("attack", ["A1", "A7", "A8", study.COUNTS])
def test_a_cell_of_one_generalization_is_what_the_attack_finds(made_up_task, attack):
    if attack == "A1":
        pytest.importorskip("torch")
    cell = study.run(study.Row(6, attack, (study.tree(4, 0.1),)))
    assert cell["n_buckets"] == [sum(study.generalize(study.INCOME, study.tree(4, 0.1)).n_buckets)]
    if attack in ("A1", study.COUNTS):
        # The bucket of the occupation leaves three of six; nothing tells the place of birth.
        assert cell["error"] == pytest.approx((2 / 3 + 5 / 6) / 2, abs=0.06)
        assert cell["naive_error"] == pytest.approx(5 / 6, abs=0.06)
    elif attack == "A8":
        learned = made_up_task.records(made_up_task.learned_rows(study.SEED))[0]
        combinations = pd.DataFrame(study.generalize(study.INCOME, study.tree(4, 0.1)).codes(learned)).value_counts()
        assert cell["details"]["n_records"] == 720
        assert cell["details"]["rarest"] == combinations.min() > 1
        assert cell["rate"] == 0
    else:
        assert cell["details"]["random_value"] == pytest.approx(1 / 6)


def test_two_breaches_and_the_classifier_are_measured_alike(made_up_task):
    pytest.importorskip("torch")
    both = study.run(study.Row(3, "A6", (study.tree(4, 0.1), study.uniform(3))))
    alone = study.run(study.Row(3, "A1", (study.uniform(3),)))
    assert both["error"] < alone["error"]
    classified = study.run(study.Row(6, "classifier MLP-2", (study.tree(4, 0.1),)))
    assert classified["error"] < 0.1 < 0.4 < classified["naive_error"]
