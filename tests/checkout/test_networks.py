# SPDX-License-Identifier: Apache-2.0
"""Networks of the first paper that are trained elsewhere: what travels, and what they see."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # studies/ is a folder of the repository, not installed

from studies import networks
from studies.network_training import area_under_curve, coordinates, train_file
from studies.networks import Coding, _rows, wanted


def test_columns_travel_as_numbers_and_missing_categories_as_one_more():
    frame = pd.DataFrame({"age": [20, 30, None], "work": ["b", None, "a"], "sex": ["f", "m", "f"]})
    coding = Coding(frame)
    assert coding.n_categories == [0, 3, 2]
    np.testing.assert_array_equal(coding(frame), [[20, 1, 0], [30, 2, 1], [np.nan, 0, 0]])


def test_equal_rows_have_equal_numbers():
    points = np.array([[1, np.nan], [2, 0], [1, np.nan], [2, 1]], np.float32)
    assert _rows(points).tolist() == [0, 1, 0, 2]


def test_a_network_sees_scaled_numbers_and_the_categories_that_it_learned():
    learned = np.array([[0, 0], [2, 0], [4, 2]], np.float32)
    seen = coordinates(np.array([[2, 1], [np.nan, 2]], np.float32), learned, [0, 3])
    # The median stands for what is missing; category 1 was not learned, 0 and 2 have the first and second place.
    np.testing.assert_allclose(seen, [[0, 0, 0, 0], [0, 0, 1, 0]])


def test_rare_categories_share_a_coordinate(monkeypatch):
    monkeypatch.setattr("studies.network_training.MOST_CATEGORIES", 2)
    learned = np.array([[0], [1], [1], [2]], np.float32)
    assert coordinates(np.array([[1], [0], [2]], np.float32), learned, [3]).tolist() == [[1, 0], [0, 1], [0, 1]]


def test_the_area_under_the_curve_is_scikit_learns():
    from sklearn.metrics import roc_auc_score

    random = np.random.default_rng(0)
    y, scores = random.integers(0, 2, 200), random.integers(0, 20, 200).astype(float)
    assert area_under_curve(scores, y) == pytest.approx(roc_auc_score(y, scores))


def test_every_cell_of_a_network_is_wanted_once():
    found = [(table, seed, *own) for (table, seed), cells in wanted().items() for own in cells]
    assert len(found) == len(set(found)) >= 20


def test_networks_side_by_side_learn_each_from_its_own_release():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    cells = [{"method": "raw", "k": 0}, {"method": "all in one group", "k": 600}]
    stored = {
        "cells": np.array(json.dumps(cells)), "n_categories": np.array([0, 0]), "is_released": np.array([True, False]),
        "train": X[:400], "test": X[400:], "y_train": y[:400], "y_test": y[400:], "seed": np.array(0),
        "groups_1": np.zeros(600, np.uint16), "points_1": np.zeros((1, 1), np.float32),
    }  # fmt: skip
    (raw, blind), said = train_file(stored, torch.device("cpu"), 60)
    assert raw["accuracy"] > 90 > 65 > blind["accuracy"]
    assert raw["ranking"] > 95
    assert "transformed" in blind
    assert not said


def test_what_was_trained_is_kept_with_the_right_experiment(tmp_path, monkeypatch):
    kept = {}
    monkeypatch.setattr(networks, "write_cells", lambda path, cells: kept.update({path.stem: list(cells)}))
    own = {"table": "adult-12", "model": "nn-200", "seed": 0, "k": 10, "accuracy": 1.25, "seconds": 0.5,
           "accelerator": "a GPU", "torch": "2", "accelerator_seconds": 0.1}  # fmt: skip
    lines = [own | {"method": "raw", "k": 0, "ranking": 60.0}]
    (tmp_path / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    networks.keep(tmp_path)
    [one] = [cell for cell in kept["classic_methods"] if cell["accuracy"] == 1.25]
    assert (one["method"], one["ranking"], "a GPU" in one["environment"]) == ("raw", 60.0, True)
    assert not [cell for cell in kept["predictions_or_labels"] if cell["accuracy"] == 1.25]
