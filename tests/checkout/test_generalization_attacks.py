# SPDX-License-Identifier: Apache-2.0
"""The page of the attacks on generalizations says what the kept cells say, and a cell is what the attacks find."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # studies are no part of the package
from studies import generalization_attacks as study
from studies.generalization_attacks_claims import evidence
from studies.generalization_attacks_page import page
from studies.minimization_tasks import Task


def test_what_was_not_run_is_named():
    text = page({})
    assert "Not run yet: table 5, A8, PAT, 2 leaves, alpha 0.3" in text
    assert "| Uniform, 5 buckets | MLP-3 | 0.21 |  | 0.24 |" in text


def test_evidence_follows_the_cells():
    cells = study.EXPERIMENT.cells()
    as_kept = evidence(study.by_key(cells))
    turned = {cell["key"]: {**cell, "error": 0.0} if ", A6, " in cell["key"] else cell for cell in cells}
    two = evidence(turned)["two-breaches"].differences
    assert len(two) == len(study.TABLE_3)
    assert all(
        one.estimate > other.estimate for one, other in zip(two, as_kept["two-breaches"].differences, strict=True)
    )
    [alone] = as_kept["finer-singles-out"].differences
    records = {cell["key"]: cell for cell in cells}
    rates = [100 * records[study.TABLE_5[place].key]["rate"] for place in (0, 3)]
    assert alone.estimate == pytest.approx(rates[1] - rates[0])
    assert len(as_kept["larger-network-helps"].differences) == 8  # four generalizations, two larger networks


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
