# SPDX-License-Identifier: Apache-2.0
"""Shadows repeat the whole pipeline, each with seeds of its own, and finished ones are not trained again."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sfumato import AnonymizedClassifier, ModelGuidedAnonymizer
from sfumato.attack import attack_membership
from sfumato.attack.membership_signals import reader_of
from sfumato.attack.shadows import balanced_halves, train_shadows, with_seeds
from sfumato.datasets import load_adult
from sfumato.errors import ParameterError
from sfumato.minimize import UniformMinimizer


class Counting(ClassifierMixin, BaseEstimator):
    """Says what it was trained on: its number of records and its seed."""

    n_fitted = 0

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        type(self).n_fitted += 1
        self.classes_ = np.unique(y)
        self.names_ = list(getattr(X, "columns", []))
        return self

    def predict_proba(self, X):
        share = (self.random_state % 1000) / 1000
        return np.tile([share, 1 - share], (len(X), 1))


def table(n=60):
    X = pd.DataFrame({"a": np.arange(n) % 7, "b": np.arange(n) % 3, "c": list("xyz" * (n // 3))})
    return X, np.arange(n) % 2


def trained(estimator, X, y, **more):
    return train_shadows(estimator, X, y, reader=reader_of(estimator, y), **more)


def test_every_record_is_in_half_of_the_shadows():
    was_in = balanced_halves(10, 500, np.random.default_rng(0))
    assert (was_in.sum(axis=0) == 5).all()
    assert was_in.sum(axis=1).std() > 0  # halves are drawn per record, not per shadow
    assert np.corrcoef(was_in[:, :50].T)[np.triu_indices(50, 1)].mean() == pytest.approx(0, abs=0.05)


def test_every_shadow_has_seeds_of_its_own():
    X, y = table()
    outputs = trained(Counting(), X, y, n_shadows=6).outputs
    assert outputs.shape == (6, 60, 2)
    assert len(np.unique(outputs[:, 0, 0])) == 6


def test_seeds_reach_every_part_of_a_pipeline():
    inner = AnonymizedClassifier(make_pipeline(StandardScaler(), RandomForestClassifier()), random_state=1)
    first, second = with_seeds(inner, 5), with_seeds(inner, 6)
    for name in ("random_state", "estimator__randomforestclassifier__random_state"):
        assert isinstance(first.get_params()[name], int)
        assert first.get_params()[name] != second.get_params()[name]
    assert inner.random_state == 1 and with_seeds(inner, 5).random_state == first.random_state


def test_shadows_of_a_frame_see_the_frame():
    X, y = table()

    class Looking(Counting):
        def fit(self, X, y):
            assert list(X.columns) == ["a", "b", "c"] and 10 < len(X) < 50
            return super().fit(X, y)

    trained(Looking(), X, y, n_shadows=2)


def test_several_processes_give_what_one_gives():
    X, y = table(90)
    numbers = X[["a", "b"]]
    one, two = (
        trained(RandomForestClassifier(n_estimators=3), numbers, y, n_shadows=4, n_jobs=n, random_state=2)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.outputs, two.outputs)
    np.testing.assert_array_equal(one.was_in, two.was_in)


def test_finished_shadows_are_not_trained_again(tmp_path):
    X, y = table()
    Counting.n_fitted = 0
    first = trained(Counting(), X, y, n_shadows=4, cache=tmp_path)
    assert Counting.n_fitted == 4
    (next(tmp_path.glob("*-00002.npz"))).unlink()  # as if the run had stopped before this one
    seen = []
    again = trained(Counting(), X, y, n_shadows=4, cache=tmp_path, progress=lambda *step: seen.append(step))
    assert Counting.n_fitted == 5
    assert seen == [(3, 4), (4, 4)]
    np.testing.assert_array_equal(first.outputs, again.outputs)


@pytest.mark.parametrize("change", ["records", "labels", "settings", "seed", "number"])
def test_a_cache_is_not_used_for_something_else(tmp_path, change):
    X, y = table()
    trained(Counting(), X, y, n_shadows=2, cache=tmp_path)
    Counting.n_fitted = 0
    other = X.assign(a=X["a"] + (np.arange(60) == 59)) if change == "records" else X
    trained(
        Counting(random_state=4 if change == "settings" else None),
        other,
        1 - y if change == "labels" else y,
        n_shadows=4 if change == "number" else 2,
        random_state=1 if change == "seed" else 0,
        cache=tmp_path,
    )
    assert Counting.n_fitted == (4 if change == "number" else 2)


@pytest.mark.thorough
def test_the_cache_means_the_same_in_another_process(tmp_path):
    source = (
        "import numpy as np, pandas as pd\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "from sfumato.attack.membership_signals import reader_of\n"
        "from sfumato.attack.shadows import train_shadows\n"
        "X = pd.DataFrame({'a': np.arange(60) % 7, 'c': list('xyz' * 20)})[['a']]; y = np.arange(60) % 2\n"
        "e = DecisionTreeClassifier()\n"
        f"train_shadows(e, X, y, reader=reader_of(e, y), n_shadows=2, cache={str(tmp_path)!r})\n"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", source], check=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_cache_holds_outputs_only(tmp_path):
    X, y = table()
    trained(Counting(), X, y, n_shadows=2, cache=tmp_path)
    with np.load(next(tmp_path.iterdir()), allow_pickle=False) as arrays:
        assert set(arrays) == {"outputs", "population"}


def test_an_odd_number_of_shadows_is_refused():
    X, y = table()
    with pytest.raises(ParameterError, match="n_shadows=5: expected an even number"):
        trained(Counting(), X, y, n_shadows=5)


def partly_protected(seed, n=2400):
    """Half of the people are told apart by quasi-identifiers alone, half by a column that is no quasi-identifier.

    The target is a coin flip, so a tree learns the people by heart; anonymizing the quasi-identifiers makes it forget
    the first half of them and no one else.
    """
    generator = np.random.default_rng(seed)
    is_first = np.arange(n) % 2 == 0
    own = generator.permutation(n).astype(float)
    X = pd.DataFrame({"quasi": np.where(is_first, own, -1.0), "free": np.where(is_first, -1.0, own)})
    return X, generator.integers(0, 2, n), generator.permutation(n) < n // 2


def area_of_lira_offline(estimator, model, people):
    found = attack_membership(model, *people, attacks=["lira_offline"], estimator=estimator, n_shadows=16)
    return found["lira_offline"].details["auc"]


@pytest.mark.thorough
def test_shadows_without_the_protection_are_weaker_where_it_covers_half_of_the_people():
    plain = DecisionTreeClassifier(random_state=0)
    anonymizer = ModelGuidedAnonymizer(k=20, quasi_identifiers=["quasi"], keep=["free"])
    protected = AnonymizedClassifier(plain, k=20, anonymizer=anonymizer)
    gained = []
    for seed in range(8):
        people = X, y, is_member = partly_protected(seed)
        model = protected.fit(X[is_member], y[is_member])
        # To unprotected shadows all people look alike; protected ones know whom the model has forgotten.
        gained.append(area_of_lira_offline(protected, model, people) - area_of_lira_offline(plain, model, people))
    assert ttest_1samp(gained, 0, alternative="greater").pvalue < 0.001


ADULT_COLUMNS = [
    "age", "workclass", "education-num", "marital-status", "occupation", "relationship", "sex", "hours-per-week",
    "capital-gain",
]  # fmt: skip


@pytest.mark.thorough
def test_shadows_without_the_protection_are_weaker_on_a_minimized_census_table():
    X, y = load_adult(return_X_y=True, as_frame="pandas")
    X, y = X[ADULT_COLUMNS], (y.astype(str) == ">50K").to_numpy()
    encoder = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
            make_column_selector(dtype_exclude="number"),
        ),
        remainder="passthrough",
    )
    plain = make_pipeline(encoder, DecisionTreeClassifier(random_state=0))
    protected = make_pipeline(UniformMinimizer(n_buckets=4), clone(plain))
    attacks = ["lira_offline", "rmia"]
    gained = {name: [] for name in attacks}
    for seed in range(10):
        generator = np.random.default_rng(seed)
        rows = generator.permutation(len(y))[:1600]
        own, labels, is_member = X.iloc[rows].reset_index(drop=True), y[rows], generator.permutation(1600) < 800
        model = with_seeds(protected, seed).fit(own[is_member], labels[is_member])
        with_it, without = (
            attack_membership(model, own, labels, is_member, attacks=attacks, estimator=shadow, n_shadows=16)
            for shadow in (protected, plain)
        )
        for name in attacks:
            gained[name].append(with_it[name].details["auc"] - without[name].details["auc"])
    # To unprotected shadows everybody looks learned by heart; protected ones know who shares a cell with others.
    for name in attacks:
        interval = ttest_1samp(gained[name], 0).confidence_interval(0.95)
        assert interval.low > 0
