# SPDX-License-Identifier: Apache-2.0
"""The neural part of the minimization study: what leaves for another machine comes back as a generalization."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: neural)")

from studies.minimization_tasks import Task
from studies.neural_gpu import WEIGHTS, Run, _save_sample, read_buckets, split_buckets, train_folder, training_sample

from sfumato.generalization import generalization_from_bins
from sfumato.minimize.neural_training import TrainingPlan

QUICK = TrainingPlan(epochs=1, least_steps=1)


@pytest.fixture
def task():
    generator = np.random.default_rng(0)
    age = np.where(generator.random(200) < 0.1, np.nan, generator.integers(18, 80, 200))
    X = pd.DataFrame({"age": age, "town": generator.choice(["Bari", "Lodi", "Pisa"], 200)})
    return Task("toy", X, (generator.random(200) < 0.5).astype(int), ("town",), ("town",))


@pytest.fixture
def trained(task, tmp_path):
    (tmp_path / "in").mkdir()
    _save_sample(tmp_path / "in" / "toy.1.npz", training_sample(task, 1))
    train_folder(tmp_path / "in", tmp_path / "out", plans=[QUICK], device="cpu")
    return tmp_path


def test_every_weight_comes_back_as_a_generalization(task, trained):
    found = read_buckets(trained / "out" / "buckets.npz")
    assert {run.objective for run in found} == set(WEIGHTS)
    assert len(found) == sum(map(len, WEIGHTS.values()))
    sample = training_sample(task, 1)
    for buckets in found.values():
        generalization = generalization_from_bins(sample.columns, split_buckets(buckets, sample.n_codes), floor=1)
        codes = generalization.codes(task.X)
        assert codes.shape == (200, 2)


def test_what_is_there_already_is_not_trained_again(trained, monkeypatch):
    from studies import neural_gpu

    monkeypatch.setattr(neural_gpu, "train_buckets", lambda *a, **k: pytest.fail("trained again"))
    train_folder(trained / "in", trained / "out", plans=[QUICK], device="cpu")


def test_the_name_of_a_run_tells_the_run():
    run = Run("acs_income", 2, "adversarial", True, 0.125)
    assert Run.of(run.key) == run


def test_every_category_is_among_the_training_records(task):
    parts = task.parts(0)
    assert set(task.X["town"].iloc[parts[0]]) == set(task.X["town"])
    assert sorted(np.concatenate(parts)) == list(range(200))
