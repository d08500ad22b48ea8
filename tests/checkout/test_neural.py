# SPDX-License-Identifier: Apache-2.0
"""The neural part of the minimization study: what leaves for another machine comes back as a generalization."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: neural)")

from studies import neural_gpu
from studies.minimization_tasks import Task
from studies.neural_gpu import (
    WEIGHTS,
    Run,
    _save_sample,
    read_buckets,
    split_buckets,
    sweeps_of,
    train_all,
    training_sample,
)

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
    train_all(sweeps_of(tmp_path / "in", [QUICK]), tmp_path / "out", device="cpu")
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
    monkeypatch.setattr(neural_gpu, "train_buckets", lambda *a, **k: pytest.fail("trained again"))
    train_all(sweeps_of(trained / "in", [QUICK]), trained / "out", device="cpu")
    train_all(sweeps_of(trained / "in", [QUICK]), trained / "new", known=trained / "out" / "buckets.npz", device="cpu")


def test_several_processes_train_what_one_trains(trained):
    train_all(sweeps_of(trained / "in", [QUICK]), trained / "two", device="cpu", workers=2)
    one, two = (read_buckets(trained / folder / "buckets.npz") for folder in ("out", "two"))
    assert one.keys() == two.keys()
    assert all(np.array_equal(own, two[run]) for run, own in one.items())


def test_no_more_is_trained_than_time_allows(trained):
    train_all(sweeps_of(trained / "in", [QUICK]), trained / "late", device="cpu", workers=2, seconds=0)
    assert not (trained / "late" / "buckets.npz").exists()


def test_one_attribute_is_protected_alone(trained, monkeypatch):
    asked = []

    def train(*data, personal, privacy_weights, **settings):
        asked.append(personal)
        return [[np.zeros(own.n_codes, np.int64) for own in data[1]] for _ in privacy_weights]

    monkeypatch.setattr(neural_gpu, "ALONE", {"toy": ("age",)})
    monkeypatch.setattr(neural_gpu, "train_buckets", train)
    train_all(sweeps_of(trained / "in", [QUICK]), trained / "alone", device="cpu")
    found = read_buckets(trained / "alone" / "buckets.npz")
    assert asked == [[1], [1], [0]]
    assert {run.objective for run in found if run.protects == "age"} == {"adversarial"}


def test_the_name_of_a_run_tells_the_run():
    for run in (Run("acs_income", 2, "adversarial", True, 0.125), Run("a", 0, "adversarial", False, 1.0, "SEX")):
        assert Run.of(run.key) == run


def test_every_category_is_among_the_training_records(task):
    parts = task.parts(0)
    assert set(task.X["town"].iloc[parts[0]]) == set(task.X["town"])
    assert sorted(np.concatenate(parts)) == list(range(200))
