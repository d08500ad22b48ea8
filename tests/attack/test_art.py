# SPDX-License-Identifier: Apache-2.0
"""Our attacks beside those of the Adversarial Robustness Toolbox (ART), on the same outputs of the same models.

``benchmarks/peers/adversarial_robustness_toolbox/golden.py`` makes the golden file. Closeness is expected where both
attack models learn from the same features, not equality: their forests differ in settings and seeds.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sfumato.attack import attack_attribute, attack_membership, wilson_interval

GOLDEN = Path(__file__).parent / "golden"


@cache
def cases():
    with np.load(GOLDEN / "art.npz", allow_pickle=False) as arrays:
        stored = dict(arrays)
    found = {}
    for key, value in stored.items():
        name, _, part = key.partition("/")
        found.setdefault(name, {})[part] = value
    return found


class Replay:
    """Repeats the stored outputs of a model for rows that it knows."""

    def __init__(self, rows, outputs):
        self.classes_ = np.arange(outputs.shape[1])
        self._known = {row.tobytes(): output for row, output in zip(rows, outputs, strict=True)}
        self._type = rows.dtype

    def _found(self, X):
        return np.array([self._known[row.tobytes()] for row in np.ascontiguousarray(X, self._type)])


class ReplayProbabilities(Replay):
    def predict_proba(self, X):
        return self._found(X)


class ReplayLogits(Replay):
    def decision_function(self, X):
        found = self._found(X)
        return found[:, 1] - found[:, 0]


def accuracy_with_interval(guessed, truth):
    n_right = int((guessed == truth).sum())
    return n_right / len(truth), wilson_interval(n_right, len(truth))


def overlap(first, second):
    return first[0] <= second[1] and second[0] <= first[1]


MEMBERSHIP = ["forest", "shallow tree", "anonymized forest", "network"]


@cache
def ours(name, attack):
    case = cases()[f"membership, {name}"]
    rows = np.arange(len(case["codes"]))[:, None]
    model = (ReplayLogits if name == "network" else ReplayProbabilities)(rows, case["outputs"])
    return attack_membership(model, rows, case["codes"], case["is_member"], attacks=[attack])[attack]


def test_the_golden_file_says_where_it_comes_from():
    versions = json.loads((GOLDEN / "art.json").read_text(encoding="utf-8"))["versions"]
    assert versions["adversarial-robustness-toolbox"] == "1.20.1"
    assert len(cases()) == 6


@pytest.mark.thorough
@pytest.mark.parametrize("name", MEMBERSHIP)
def test_our_forest_finds_as_many_members_as_theirs(name):
    case = cases()[f"membership, {name}"]
    accuracies = [accuracy_with_interval(case[f"{kind}/art"], case["is_member"]) for kind in ("rf", "gb")]
    best, interval = max(accuracies)
    result = ours(name, "random_forest")
    # Their forests grow leaves of single records, ours do not: so ours may be stronger, and must not be weaker.
    assert overlap(result.interval, interval) or result.rate > best


@pytest.mark.parametrize("name", MEMBERSHIP)
def test_the_threshold_beats_the_rule_that_right_answers_are_members(name):
    case = cases()[f"membership, {name}"]
    _, interval = accuracy_with_interval(case["rule/art"], case["is_member"])
    assert ours(name, "threshold").interval[1] >= interval[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMBERSHIP)
def test_our_network_finds_as_many_members_as_theirs(name):
    pytest.importorskip("torch", reason="torch is not installed (extra: neural)")
    case = cases()[f"membership, {name}"]
    accuracy, interval = accuracy_with_interval(case["nn/art"], case["is_member"])
    result = ours(name, "network")
    assert overlap(result.interval, interval) or result.rate > accuracy


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tree", "anonymized tree"])
def test_our_attribute_attack_guesses_as_well_as_theirs(name):
    case = cases()[f"attribute, {name}"]
    rows, column = case["rows"], int(case["column"])
    changed = [np.where(np.arange(rows.shape[1]) == column, value, rows).astype(rows.dtype) for value in (0, 1)]
    model = ReplayProbabilities(np.concatenate(changed), np.concatenate(case["candidates"]))
    truth = rows[:, column]
    theirs, interval = accuracy_with_interval(case["black_box/art"], truth)
    found = attack_attribute(model, rows, case["codes"], column, attacks=["learned", "confidence"])
    best = max(found.values(), key=lambda result: result.rate)
    assert overlap(best.interval, interval) or best.rate > theirs
    _, blind = accuracy_with_interval(case["baseline/art"], truth)
    # Their baseline does not see the label and never falls back to the most frequent value; ours does both.
    assert best.baseline >= blind[0]
