# SPDX-License-Identifier: Apache-2.0
"""Intervals and verdicts against known numbers, and results that survive JSON."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from sfumato.attack import AttackResult, bootstrap_interval, judge, wilson_interval
from sfumato.attack.result import recalled
from sfumato.errors import ParameterError


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (5, 10), (10, 10), (37, 1000)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_wilsons_interval_is_that_of_scipy(successes, trials, confidence):
    expected = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    assert wilson_interval(successes, trials, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_without_trials_anything_is_possible():
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_wilsons_interval_holds_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(1)
    drawn = generator.binomial(80, 0.3, 4000)
    held = [low <= 0.3 <= high for low, high in (wilson_interval(int(n), 80) for n in drawn)]
    assert 0.93 <= np.mean(held) <= 0.97


def test_the_bootstrap_of_a_mean_agrees_with_the_normal_interval():
    values = np.random.default_rng(2).integers(0, 15, 3000) / 14
    low, high = bootstrap_interval(values, n_resamples=4000)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=half / 10)


def test_merged_records_have_the_interval_of_the_records_they_stand_for():
    apart = bootstrap_interval([0.0] * 30 + [0.5] * 50 + [1.0] * 20, random_state=3)
    assert bootstrap_interval([0.0, 1.0, 0.5], counts=[30, 20, 50], random_state=3) == apart


def test_any_statistic_can_be_resampled():
    values = np.random.default_rng(4).normal(size=200)
    low, high = bootstrap_interval(values, statistic=lambda part: float(np.median(part)), n_resamples=300)
    assert low < np.median(values) < high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson_interval(3, 2), "successes=3 of trials=2"),
        (lambda: wilson_interval(1, 2, 1.5), "confidence=1.5"),
        (lambda: bootstrap_interval([]), "no values to resample"),
        (lambda: bootstrap_interval([1.0], counts=[2], statistic=np.mean), "counts= beside statistic="),
    ],
)
def test_wrong_counts_get_a_sentence(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize(
    ("rate", "interval", "baseline", "control", "verdict"),
    [
        (0.7, (0.65, 0.75), 0.6, None, "stronger than baseline"),
        (0.7, (0.65, 0.75), 0.6, 0.68, "not shown"),
        (0.7, (0.65, 0.75), 0.6, 0.5, "stronger than baseline"),
        (0.6, (0.6, 0.6), 0.6, None, "not shown"),
        (0.5, (0.45, 0.55), 0.6, None, "failed attack"),
        (0.58, (0.5, 0.63), 0.6, 0.9, "not shown"),
    ],
)
def test_a_verdict_follows_from_the_interval(rate, interval, baseline, control, verdict):
    assert judge(rate, interval, baseline, control=control) == verdict


def a_result(**details):
    return AttackResult("attack", 0.5, (0.4, 0.6), 0.3, None, "stronger than baseline", 1.5, 7, details)


def test_a_result_is_plain_json():
    result = a_result(rates=np.array([0.1, np.nan]), n=np.int64(3), by={1: (np.float32(0.5),)}, at=float("inf"))
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["details"] == {"rates": [0.1, None], "n": 3, "by": {"1": [0.5]}, "at": None}
    assert AttackResult.from_dict(document).to_dict() == document


def test_another_verdict_keeps_the_reasons():
    changed = a_result(n=1).with_verdict("failed attack", weaker_attack="other")
    assert (changed.verdict, dict(changed.details)) == ("failed attack", {"n": 1, "weaker_attack": "other"})


def test_a_kept_result_is_not_computed_again(tmp_path):
    runs = []

    def run():
        runs.append(1)
        return a_result(n=len(runs))

    results = [recalled(tmp_path / "new", ("key", 1), run) for _ in range(2)]
    assert results[0].details == results[1].details == {"n": 1}
    assert recalled(tmp_path / "new", ("key", 2), run).details == {"n": 2}
    assert recalled(None, ("key", 1), run).details == {"n": 3}
    assert all(path.suffix == ".json" for path in (tmp_path / "new").iterdir())
