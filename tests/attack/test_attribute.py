# SPDX-License-Identifier: Apache-2.0
"""Attribute inference where the best attacker is known, and where a model has nothing to tell."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato.attack import attack_attribute
from sfumato.errors import InputError, ParameterError


class Bayes:
    """Knows the joint distribution: the label is 1 with a probability that follows from the secret alone."""

    classes_ = np.array([0, 1])
    share = np.array([0.1, 0.5, 0.9])

    def predict_proba(self, X):
        places = np.searchsorted(["a", "b", "c"], np.asarray(X["secret"], str))
        return np.column_stack([1 - self.share[places], self.share[places]])


def people(n=3000, seed=0):
    generator = np.random.default_rng(seed)
    secret = generator.choice(3, n, p=[0.3, 0.4, 0.3])
    X = pd.DataFrame({"other": generator.integers(0, 5, n), "secret": np.array(list("abc"))[secret]})
    return X, (generator.random(n) < Bayes.share[secret]).astype(int)


def test_confidence_reaches_the_best_guess_of_a_known_distribution():
    X, y = people()
    result = attack_attribute(Bayes(), X, y, "secret", attacks=["confidence"])["confidence"]
    # Label 1: the products are 0.03, 0.20, 0.27, so c is guessed; label 0: a by symmetry. Right: 0.27 + 0.27.
    low, high = result.interval
    assert low <= 0.54 <= high


def test_the_baseline_knows_as_much_as_the_attacker_but_the_model():
    X, y = people()
    found = attack_attribute(Bayes(), X, y, "secret", attacks=["confidence"])["confidence"]
    # The label alone says which of a and c it is, so a forest that sees labels of known people guesses as well.
    assert found.baseline == pytest.approx(0.54, abs=0.03)
    assert found.verdict != "stronger than baseline"


def memorized(n=1500):
    generator = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            **{f"column{i}": generator.integers(0, 6, n).astype(str) for i in range(6)},
            "secret": generator.choice(["x", "y"], n),
        }
    )
    return X, generator.integers(0, 2, n)


@pytest.mark.parametrize("attack", ["confidence", "confusion"])
def test_a_tree_that_learned_by_heart_gives_the_attribute_away(attack):
    X, y = memorized()
    model = make_pipeline(OneHotEncoder(), DecisionTreeClassifier(random_state=0, max_features=8)).fit(X, y)
    X_new, y_new = memorized()
    result = attack_attribute(
        model, X, y, "secret", attacks=[attack], control=(X_new, np.random.default_rng(9).permutation(y_new))
    )[attack]
    assert result.verdict == "stronger than baseline"
    assert result.interval[0] > result.control
    assert result.control == pytest.approx(0.5, abs=0.06)


def test_what_is_as_true_of_others_was_not_learned_of_the_attacked():
    # The label follows from the secret and a column, so whoever has all three guesses the secret; the blind attacker's
    # forest of few trees learns an exclusive or badly, the model says it to anybody.
    generator = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            **{f"noise{i}": generator.normal(size=800) for i in range(12)},
            "other": generator.integers(0, 2, 800),
            "secret": generator.choice(["x", "y"], 800),
        }
    )
    y = (X["secret"] == "x").to_numpy() ^ X["other"].to_numpy().astype(bool)

    class Rule:
        classes_ = np.array([False, True])

        def predict_proba(self, X):
            says = (X["secret"] == "x").to_numpy() ^ X["other"].to_numpy().astype(bool)
            return np.eye(2)[says.astype(int)]

    attacked, others = (X[:400], y[:400]), (X[400:], y[400:])
    found = attack_attribute(Rule(), *attacked, "secret", attacks=["confidence"])["confidence"]
    assert found.rate == 1 and found.verdict == "stronger than baseline"
    beside = attack_attribute(Rule(), *attacked, "secret", attacks=["confidence"], control=others)["confidence"]
    assert beside.control == 1 and beside.verdict == "not shown"


def test_a_model_of_other_people_gives_nothing_away():
    X, y = memorized(3000)
    model = make_pipeline(OneHotEncoder(), DecisionTreeClassifier(random_state=0)).fit(X[:1500], y[:1500])
    found = attack_attribute(model, X[1500:], y[1500:], "secret", attacks=["confidence", "confusion"])
    for result in found.values():
        assert result.verdict != "stronger than baseline"
        assert abs(result.rate - 0.5) < 3 * 0.5 / np.sqrt(1500)


def test_a_learner_finds_what_a_model_echoes():
    class Echo(Bayes):
        share = np.array([0.2, 0.5, 0.8])

    X, _ = people(600)
    y = np.random.default_rng(5).integers(0, 2, 600)
    result = attack_attribute(Echo(), X, y, "secret", attacks=["learned"])["learned"]
    assert result.rate == 1.0 and result.verdict == "stronger than baseline"


def test_precision_and_recall_of_the_value_asked_for():
    X, y = people()
    result = attack_attribute(Bayes(), X, y, "secret", attacks=["confidence"], positive="c")["confidence"]
    guessed_c, is_c = y == 1, (X["secret"] == "c").to_numpy()
    assert result.details["precision"] == pytest.approx((guessed_c & is_c).sum() / guessed_c.sum())
    assert result.details["recall"] == pytest.approx((guessed_c & is_c).sum() / is_c.sum())
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert '"c"' not in text


def test_a_regressor_is_inverted_through_its_error():
    generator = np.random.default_rng(1)
    X = np.column_stack([generator.normal(size=800), generator.integers(0, 3, 800)])
    y = X[:, 0] + 3 * X[:, 1] + generator.normal(0, 0.1, 800)
    found = attack_attribute(LinearRegression().fit(X, y), X, y, 1)
    assert set(found) == {"confidence", "learned"}
    assert found["confidence"].rate > 0.99


def test_a_number_with_many_values_is_refused():
    X, y = people(200)
    with pytest.raises(InputError, match="column 'number' has 200 distinct values"):
        attack_attribute(Bayes(), X.assign(number=np.arange(200.0)), y, "number")


def test_missing_truth_is_refused():
    X, y = people(200)
    X.loc[3, "secret"] = None
    with pytest.raises(InputError, match="1 missing values"):
        attack_attribute(Bayes(), X, y, "secret")


def test_an_unknown_attack_is_refused():
    X, y = people(200)
    with pytest.raises(ParameterError, match="some of confidence, confusion, learned"):
        attack_attribute(Bayes(), X, y, "secret", attacks=["ask"])


def test_a_positive_value_that_does_not_occur_is_refused():
    X, y = people(200)
    with pytest.raises(ParameterError, match="positive= is not a value of the column 'secret'"):
        attack_attribute(Bayes(), X, y, "secret", positive="z")
