# SPDX-License-Identifier: Apache-2.0
"""The training of the neural minimizers on arrays: monotone, strict, repeatable, and pulled both ways."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.minimize.neural_training import TrainingPlan, train_buckets
from sfumato.minimize.soft_buckets import CodedAttribute, CodeTable, SoftBuckets
from strategies import in_examples

torch = pytest.importorskip("torch", reason="torch is not installed (extra: neural)")

N_RECORDS = 1500
QUICK = TrainingPlan(least_steps=400)


def numbers(n_values, has_missing=False):
    return CodedAttribute(n_values + has_missing, np.linspace(0, 1, n_values))


def categories(n_codes):
    return CodedAttribute(n_codes)


@pytest.fixture(scope="module")
def scene():
    """A number decides the class; a category is personal and has nothing to do with it; a third holds missing."""
    generator = np.random.default_rng(0)
    age = generator.integers(0, 40, N_RECORDS)
    town = generator.integers(0, 6, N_RECORDS)
    income = generator.integers(0, 11, N_RECORDS)  # 10 values and missing
    codes = np.stack([age, town, income], axis=1)
    return codes, [numbers(40), categories(6), numbers(10, has_missing=True)], (age >= 20).astype(np.int64)


def brief(**changes):
    return TrainingPlan(**({"epochs": 2, "least_steps": 1} | changes))


def train(scene, privacy_weights, **changes):
    codes, attributes, y = scene
    arguments = {"personal": [1], "plan": QUICK, "device": "cpu", "seed": 0} | changes
    return train_buckets(codes, attributes, y, 2, privacy_weights=privacy_weights, **arguments)


def n_used(buckets):
    return [len(np.unique(own)) for own in buckets]


def test_mutual_information_alone_collects_nothing(scene):
    assert n_used(train(scene, [1.0], objective="mutual_information")[0]) == [1, 1, 1]


@pytest.mark.slow
def test_an_adversary_alone_leaves_nothing_of_the_personal_attribute(scene):
    (buckets,) = train(scene, [1.0], plan=TrainingPlan(least_steps=2500))
    assert n_used(buckets)[1] == 1


@pytest.mark.parametrize("objective", ["adversarial", "mutual_information"])
def test_without_privacy_the_class_can_be_told_from_the_buckets(scene, objective):
    codes, _, y = scene
    (buckets,) = train(scene, [0.0], objective=objective)
    of_records = buckets[0][codes[:, 0]]
    right = sum(max(np.bincount(y[of_records == bucket])) for bucket in np.unique(of_records))
    assert right / N_RECORDS > 0.95


@pytest.mark.parametrize("as_published", [True, False])
@pytest.mark.parametrize("objective", ["adversarial", "mutual_information"])
def test_numbers_keep_their_order(scene, objective, as_published):
    plan = brief(epochs=20, as_published=as_published)
    for buckets in train(scene, [0.0, 0.1, 0.5], objective=objective, plan=plan):
        assert (np.diff(buckets[0]) >= 0).all()
        assert (np.diff(buckets[2][:-1]) >= 0).all()  # the last code is missing and may go anywhere


def test_every_code_has_one_bucket(scene):
    for buckets in train(scene, [0.3], plan=brief(n_buckets=3)):
        assert [len(own) for own in buckets] == [40, 6, 11]
        assert all(own.min() >= 0 and own.max() < 3 for own in buckets)


@pytest.mark.parametrize("objective", ["adversarial", "mutual_information"])
def test_the_same_seed_gives_the_same_buckets(scene, objective):
    first, second = (train(scene, [0.2], objective=objective, plan=brief(), seed=7) for _ in range(2))
    for own, other in zip(first[0], second[0], strict=True):
        np.testing.assert_array_equal(own, other)


def test_runs_side_by_side_do_not_touch_each_other(scene):
    plan = brief()
    together = train(scene, [0.0, 0.4, 1.0], plan=plan)
    for weight, own in zip([0.0, 0.4, 1.0], together, strict=True):
        (alone,) = train(scene, [weight], plan=plan)
        # Sums in another order differ in their last bits, which may move a code that stands on a threshold.
        agreement = [np.mean(a == b) for a, b in zip(own, alone, strict=True)]
        assert np.mean(agreement) > 0.95


def test_records_of_no_weight_do_not_count(scene):
    codes, attributes, y = scene
    contrary = np.concatenate([codes, codes]), attributes, np.concatenate([y, 1 - y])
    weights = np.repeat([1.0, 0.0], N_RECORDS)
    (buckets,) = train(contrary, [0.0], weights=weights)
    of_records = buckets[0][codes[:, 0]]
    right = sum(max(np.bincount(y[of_records == bucket])) for bucket in np.unique(of_records))
    assert right / N_RECORDS > 0.95


def test_a_column_that_is_always_missing_has_one_bucket():
    codes = np.zeros((50, 2), np.int64)
    codes[:, 1] = np.arange(50) % 5
    attributes = [CodedAttribute(1, np.zeros(0)), categories(5)]
    (buckets,) = train((codes, attributes, codes[:, 1] % 2), [0.5], plan=brief())
    assert buckets[0].tolist() == [0] or len(buckets[0]) == 1


def test_an_adversary_without_a_personal_attribute_is_refused(scene):
    with pytest.raises(ParameterError, match="no personal attributes"):
        train(scene, [0.5], personal=[])


def test_progress_is_told_after_every_epoch(scene):
    told = []
    train(scene, [0.5], plan=brief(), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_temperature_and_learning_rate_follow_the_paper():
    plan = TrainingPlan()
    assert (plan.temperature(0, 20), plan.temperature(19, 20)) == (2.0, 0.5)
    np.testing.assert_allclose([plan.rate(epoch, 20) for epoch in (0, 4, 5, 10, 19)], [1e-2, 1e-2, 1e-3, 1e-4, 1e-5])


def test_a_small_sample_is_gone_through_more_often_unless_as_published():
    assert TrainingPlan().n_epochs(60_000) == 20
    assert TrainingPlan(least_steps=1000).n_epochs(1196) == 200
    assert TrainingPlan(as_published=True).n_epochs(1196) == 20


def soft_buckets(attributes, seed, n_buckets=5):
    table = CodeTable(attributes)
    generator = np.random.default_rng(seed)
    codes = np.stack([generator.integers(0, attribute.n_codes, 60) for attribute in attributes], axis=1)
    shares = table.shares(table.rows_of_records(codes), None)
    own = SoftBuckets(
        attributes, table, shares, n_buckets=n_buckets, n_runs=2,
        generator=torch.Generator().manual_seed(seed), device=torch.device("cpu"),
    )  # fmt: skip
    with torch.no_grad():
        for tensor in own.parameters:  # as far from the start as any training might go, and differently in each run
            tensor += torch.randn(tensor.shape, generator=torch.Generator().manual_seed(seed + 1)) * 2
    return table, shares, own


@in_examples(50)
@given(
    positions=st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=12), min_size=1, max_size=3),
    seed=st.integers(0, 2**31),
)
def test_a_larger_number_never_has_a_lower_bucket(positions, seed):
    attributes = [CodedAttribute(len(own) + 1, np.sort(own)) for own in positions]
    _, _, own = soft_buckets(attributes, seed)
    levels = own.levels().detach().numpy()
    start = 0
    for attribute in attributes:
        rises = np.diff(levels[:, start : start + attribute.n_ordered], axis=1)
        assert (rises >= -1e-6).all()
        start += attribute.n_ordered
    for of_run in own.harden():
        assert all((np.diff(buckets[:-1]) >= 0).all() for buckets in of_run)


def test_probabilities_of_numbers_are_the_formula_of_the_paper():
    _, _, own = soft_buckets([numbers(7)], seed=3, n_buckets=4)
    levels = own.levels().detach().numpy()[1].astype(float)
    scores = [[-((level - (2 * j - 1) / 8) ** 2) / 0.7 for j in (1, 2, 3, 4)] for level in levels]
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(own.log_probabilities(0.7)[1].exp().detach().numpy(), expected, rtol=1e-4)


def test_the_bound_of_mutual_information_is_the_mean_divergence_of_two_records():
    from sfumato.minimize.neural_training import _MutualInformation

    table, shares, own = soft_buckets([numbers(5), categories(4)], seed=5)
    log_probabilities = own.log_probabilities(0.5)
    found = _MutualInformation(table, shares, 2, torch.device("cpu")).losses(log_probabilities, None, None)
    for run in range(2):
        log_p = log_probabilities[run].detach().numpy().astype(float)
        expected = 0.0
        for rows in table.rows:
            for x in rows:
                for other in rows:
                    divergence = sum(np.exp(log_p[x, j]) * (log_p[x, j] - log_p[other, j]) for j in range(5))
                    expected += shares[x] * shares[other] * divergence
        assert found[run].item() == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_training_needs_nothing_but_numpy_and_torch():
    program = """
import sys
for name in ("sklearn", "scipy", "pandas", "polars", "numba", "narwhals", "pyarrow", "rich", "typer"):
    sys.modules[name] = None
import numpy as np
from sfumato.minimize.neural_training import TrainingPlan, train_buckets
from sfumato.minimize.soft_buckets import CodedAttribute
codes = np.arange(20)[:, None] % 4
plan = TrainingPlan(epochs=1, least_steps=1)
attributes = [CodedAttribute(4)]
print(len(train_buckets(codes, attributes, codes[:, 0] % 2, 2, privacy_weights=[0.5], personal=[0], plan=plan)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "1", done.stderr
