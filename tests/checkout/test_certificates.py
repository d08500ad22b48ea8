# SPDX-License-Identifier: Apache-2.0
"""The study of certificates: laws with a known best attacker, competing bounds, and attacks beside certificates."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from studies import beyond_certificates as study
from studies.rows import where
from studies.runner import RESULTS


@pytest.mark.parametrize("name", study.LAWS)
def test_every_law_is_one(name):
    law = study.joint_law(name)
    assert law.shape == study.LAWS[name][:2]
    assert law.min() >= 0 and law.sum() == pytest.approx(1)
    if name.endswith("unrelated"):
        assert law.max(axis=1).sum() == pytest.approx(law.sum(axis=0).max())


def test_there_are_few_and_many_cells_and_values():
    cells, values, records, _ = zip(*study.LAWS.values(), strict=True)
    assert len(study.LAWS) >= 20 and study.RUNS == 2_000
    assert (min(cells), max(cells), min(values), max(values)) == (1, 1_000, 2, 50)
    assert any(n <= n_cells for n, n_cells in zip(records, cells, strict=True))  # sparse


def test_a_simulation_counts_what_fails():
    found = study.run({"part": "law", "name": "2 cells, 2 values, fair", "runs": 30})
    assert set(found["failed"]) == set(study.KINDS) and max(found["failed"].values()) <= 8
    assert found["truth"] < found["bounds"]["certificate"] < found["bounds"]["L1"]


def test_a_bound_that_is_too_small_would_be_counted(monkeypatch):
    from sfumato.certificates import certifying as module

    monkeypatch.setattr(module, "binomial_upper", lambda hits, trials, error: hits / trials - 0.1)
    found = study.run({"part": "law", "name": "2 cells, 2 values, fair", "runs": 20})
    assert found["failed"]["upper"] >= 15


def test_the_bounds_are_compared_on_the_same_samples():
    found = study.run({"part": "growth", "name": "100", "runs": 2})["bounds"]
    assert study.TRUTH < found["certificate"] < found["L1"] < found["per cell"] < found["two samples"]


@pytest.mark.filterwarnings("ignore")
def test_attacks_stay_below_their_certificates_on_few_records():
    found = study.run({"part": "attacks", "name": "Adult: Uniform, 3 buckets", "shrink": 10})
    assert {row["attack"] for row in found["attacked"]} == set(study.ATTACKS)
    assert all(row["interval"][0] <= row["upper"] for row in found["attacked"])


def test_the_kept_cells_show_no_bound_that_fails_too_often():
    from studies.cells import read_cells

    rows = list(read_cells(RESULTS / "beyond_certificates.jsonl", study.EXPERIMENT.by).values())
    laws = where(rows, part="law")
    assert len(laws) == len(study.LAWS)
    allowed = study.ERROR + 2.5 * np.sqrt(study.ERROR * (1 - study.ERROR) / study.RUNS)
    assert max(row["failed"][kind] / row["runs"] for row in laws for kind in study.KINDS) <= allowed
    attacked = [one for row in where(rows, part="attacks") for one in row["attacked"]]
    assert len(attacked) == 80 and not any(one["interval"][0] > one["upper"] for one in attacked)
    assert study.page(rows).count("**Adult: ") == 2
