# SPDX-License-Identifier: Apache-2.0
"""The study of the minimizers on a made-up table: sweeps are kept, read back, and become a page."""

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from studies import minimizers, minimizers_page


@pytest.fixture(scope="module")
def cells():
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"age": generator.integers(18, 90, 900), "job": generator.choice(list("abcd"), 900)})
    table = minimizers.Table(X, ((X["age"] > 50) ^ (X["job"] == "b")).to_numpy(), ("job",))
    names = ("UniformMinimizer", "FeatureSelectionMinimizer")
    made = [minimizers.run_cell(table, "loan", name, 0, max_records=600) for name in names]
    # What the privacy-aware tree would have found, had it found the best there is.
    nothing, everything = made[0].points[:2]
    best = replace(everything, minimizer="PrivacyAwareTree", validation_error=0.0, test_error=nothing.test_error)
    return [replace(made[0], minimizer="PrivacyAwareTree", points=(nothing, everything, best)), *made]


def test_sweeps_are_read_back_as_they_were(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(minimizers, "CELLS", tmp_path / "cells.jsonl")
    assert minimizers.read_cells() == []
    lines = [json.dumps(asdict(cell)) for cell in reversed(cells)]
    minimizers.CELLS.write_text("\n".join(lines), encoding="utf-8")
    assert [cell.key for cell in minimizers.read_cells()] == [cells[0].key, cells[2].key, cells[1].key]
    assert minimizers.read_cells()[2] == cells[1]


def test_the_page_says_who_covers_most(cells):
    page = minimizers_page.page(cells)
    assert "the privacy-aware tree covers most, 1.000 beside" in page
    assert "Lending Club 2007-2011 600" in page
    nothing, everything, best = cells[0].points
    useless = replace(best, validation_risk=1.0, test_risk=1.0, validation_error=1.0, test_error=1.0)
    worse = [replace(cells[0], points=(nothing, everything, useless)), *cells[1:]]
    assert "does not cover most" in minimizers_page.page(worse)


def test_records_beyond_the_limit_are_left_out(cells):
    assert cells[1].n_records == 600
    assert len(cells[1].points) == 2 + 5
