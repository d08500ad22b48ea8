# SPDX-License-Identifier: Apache-2.0
"""Learners from several tables, from received tables and from proportions, and choices made inside the tables alone."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import adjusted_rand_score
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import (
    AnatomizedTable,
    Anatomizer,
    BucketClassifier,
    BucketClusterer,
    InputError,
    ParameterError,
    ProportionClassifier,
    PrunedClassifier,
)
from sfumato.anatomize import prune
from sfumato.anatomize.candidates import Candidates, weigh, weighted_rows

SECRET = ["dose", "diet"]


def people(n=900, seed=0):
    """Return records in which smoking follows from dose and diet, and the town tells the dose in most."""
    random = np.random.default_rng(seed)
    dose, diet = random.integers(0, 6, n), random.integers(0, 5, n)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "town": np.where(random.random(n) < 0.8, dose, random.integers(0, 6, n)),
            "dose": dose,
            "diet": diet,
        }
    )
    smokes = (dose - 2.5) / 2 + (diet - 2) / 2 + random.normal(0, 0.5, n) > 0
    return frame, np.where(smokes, "yes", "no")


# ---- candidates ------------------------------------------------------------------------------------------------------


def test_candidates_of_several_tables_are_all_combinations_of_rows_of_the_groups():
    frame, _ = people(120)
    anatomized = Anatomizer({"dose": 3, "diet": 2}, sensitive=SECRET, random_state=0).fit_transform(frame)
    candidates = Candidates.of(anatomized)
    rows = weighted_rows(weigh(candidates, "even"), 120, 100, np.random.default_rng(0))
    joined = anatomized.join()
    assert len(rows.records) == len(joined) == 120 * 6
    assert rows.weight == pytest.approx(np.full(720, 1 / 6))
    dose, diet = (own.iloc[:, 0].to_numpy()[found] for own, found in zip(anatomized.sensitive, rows.rows, strict=True))
    ages = anatomized.identifying["age"].to_numpy()[rows.records]
    assert sorted(zip(ages, dose, diet, strict=True)) == sorted(
        zip(joined["age"], joined["dose"], joined["diet"], strict=True)
    )


def test_too_many_candidates_are_drawn_by_their_weights():
    frame, _ = people(600)
    anatomized = Anatomizer(3, sensitive=SECRET, random_state=0).fit_transform(frame)
    candidates = Candidates.of(anatomized)
    for weighing in ("even", "learned"):
        weights = weigh(candidates, weighing)
        few = weighted_rows(weights, 600, 4, np.random.default_rng(0))
        every = weighted_rows(weights, 600, 9, np.random.default_rng(0))
        assert np.bincount(few.records).tolist() == [4] * 600
        assert [own.weight.sum() for own in (every, few)] == pytest.approx([600, 600])
        dose = anatomized.sensitive[0]["dose"].to_numpy()
        shares = [np.bincount(dose[own.rows[0]], own.weight) for own in (few, every)]
        assert shares[0] == pytest.approx(shares[1], abs=35)  # 2,400 draws


def test_learned_weights_favor_the_true_candidates():
    frame, _ = people()
    anatomized, rows = Anatomizer(3, sensitive=SECRET, random_state=0).fit_transform_with_rows(frame)
    candidates = Candidates.of(anatomized)
    found = {}
    for weighing in ("even", "learned"):
        own = weighted_rows(weigh(candidates, weighing), 900, 9, np.random.default_rng(0))
        dose = anatomized.sensitive[0]["dose"].to_numpy()[own.rows[0]]
        found[weighing] = own.weight[dose == frame["dose"].to_numpy()[rows][own.records]].sum() / 900
    assert found["even"] == pytest.approx(1 / 3)
    assert found["learned"] > 0.6


def test_pruning_chooses_a_row_of_every_table():
    frame, _ = people(60)
    anatomized = Anatomizer(2, sensitive=SECRET, random_state=0).fit_transform(frame)
    pruned = prune(anatomized)
    assert pruned.candidates.shape == (60, 2)
    joined = anatomized.identifying.reset_index(names="who")
    for own, group in zip(anatomized.sensitive, anatomized.groups, strict=True):
        joined = joined.merge(own, on=group)
    values = joined[["age", "town", *SECRET]]
    norms = ((values - values.mean()) ** 2).sum(axis=1)
    joined["away"] = (norms - (norms.min() + norms.max()) / 2).abs()
    best = joined.groupby("who")["away"].min()
    table = pruned.table
    chosen = ((table[["age", "town", *SECRET]] - values.mean()) ** 2).sum(axis=1)
    assert (chosen - pruned.radius_expected).abs().to_numpy() == pytest.approx(best.to_numpy())


# ---- classifiers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("kind", [PrunedClassifier, BucketClassifier])
def test_classifiers_learn_from_several_tables(kind, joint):
    X, y = people()
    X_test, y_test = people(seed=1)
    fitted = kind(LogisticRegression(), 2, sensitive=SECRET, joint=joint, random_state=0).fit(X, y)
    assert fitted.score(X_test, y_test) > 0.7
    assert pickle.loads(pickle.dumps(fitted)).predict(X_test).tolist() == fitted.predict(X_test).tolist()


def test_learned_weights_beat_even_ones():
    X, y = people(2000)
    X_test, y_test = people(2000, seed=1)
    learned, even = (
        BucketClassifier(LogisticRegression(), 4, sensitive=SECRET, weights=weights, random_state=0)
        .fit(X, y)
        .score(X_test, y_test)
        for weights in ("learned", "even")
    )
    assert learned > even + 0.02


@pytest.mark.parametrize("kind", [PrunedClassifier, BucketClassifier])
def test_received_tables_train_the_same_model_as_the_owners(kind, tmp_path):
    X, y = people()
    owner = kind(LogisticRegression(), 3, sensitive=SECRET, random_state=4).fit(X, y)
    Anatomizer(3, sensitive=SECRET, random_state=4, keep=list(X)).fit_transform(X.assign(smokes=y)).save(
        tmp_path / "in"
    )
    received = kind(LogisticRegression(), random_state=4).fit_anatomized(
        AnatomizedTable.load(tmp_path / "in"), "smokes"
    )
    X_test, _ = people(seed=1)
    assert owner.predict(X_test).tolist() == received.predict(X_test[["diet", "town", "age", "dose"]]).tolist()
    assert received.n_groups_ == owner.n_groups_


def test_received_tables_are_checked():
    X, y = people(100)
    tables = Anatomizer(2, sensitive=SECRET, random_state=0).fit_transform(X)
    with pytest.raises(InputError, match="no column 'smokes'"):
        PrunedClassifier(LogisticRegression()).fit_anatomized(tables, "smokes")
    with pytest.raises(InputError, match="99 labels for 100 identifying rows"):
        PrunedClassifier(LogisticRegression()).fit_anatomized(tables, y[1:])
    arrays = Anatomizer(2, sensitive=[2], random_state=0).fit_transform(X.to_numpy())
    with pytest.raises(InputError, match="expected frames"):
        PrunedClassifier(LogisticRegression()).fit_anatomized(arrays, y)


# ---- choosing --------------------------------------------------------------------------------------------------------


def test_settings_are_chosen_by_what_the_tables_show():
    X, y = people(1200)
    grid = {"estimator__max_depth": [1, 6], "coding": ["one-hot", "paper"]}
    tree = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
    chosen = PrunedClassifier(tree, 2, sensitive=SECRET, choose=grid, cv=3, random_state=0).fit(X, y)
    assert chosen.best_params_["estimator__max_depth"] == 6
    assert len(chosen.choice_scores_) == 4
    assert chosen.estimator_.max_depth == 6
    plain = PrunedClassifier(tree, 2, sensitive=SECRET, random_state=0).set_params(**chosen.best_params_).fit(X, y)
    assert plain.predict(X).tolist() == chosen.predict(X).tolist()


def test_the_owner_chooses_as_somebody_who_has_nothing_but_the_tables():
    X, y = people(240)
    settings = {"choose": {"estimator__C": [0.001, 1.0], "weights": ["even", "learned"]}, "cv": 2, "random_state": 1}
    owner = BucketClassifier(LogisticRegression(), 3, sensitive=SECRET, **settings).fit(X, y)
    anatomized, rows = Anatomizer(3, sensitive=SECRET, random_state=1).fit_transform_with_rows(X)
    received = BucketClassifier(LogisticRegression(), **settings).fit_anatomized(anatomized, y[rows])
    assert owner.choice_scores_ == received.choice_scores_
    assert owner.best_params_ == received.best_params_
    assert len({score for _, score in owner.choice_scores_}) > 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"choose": ["estimator__C"]}, "choose is of the type list"),
        ({"choose": {}}, "choose is of the type dict"),
        ({"choose": {"depth": [1]}}, "choose names 'depth': expected parameters of PrunedClassifier"),
        ({"choose": {"per": ["record"]}, "cv": 1}, "cv=1"),
    ],
)
def test_wrong_choices_are_refused(settings, sentence):
    X, y = people(100)
    with pytest.raises(ParameterError, match=sentence):
        PrunedClassifier(LogisticRegression(), sensitive=SECRET, **settings).fit(X, y)


# ---- proportions -----------------------------------------------------------------------------------------------------


def towns(n=1500, seed=0):
    """Return records whose sensitive class follows from two numbers."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"x": random.normal(size=n), "y": random.normal(size=n), "noise": random.normal(size=n)})
    classes = np.array(["a", "b", "c", "d"])[2 * (X["x"] > 0).astype(int) + (X["y"] > 0)]
    return X, classes


@pytest.mark.parametrize("length", [2, 3])
def test_classes_are_learned_from_proportions_of_groups(length):
    X, y = towns()
    X_test, y_test = towns(seed=1)
    settings = {"l": length, "assignment": "random", "suppression_limit": 0.3, "random_state": 0}
    learner = ProportionClassifier(LogisticRegression(), **settings).fit(X, y)
    even = ProportionClassifier(LogisticRegression(), n_iterations=0, **settings).fit(X, y)
    assert learner.score(X_test, y_test) > 0.9
    assert learner.score(X_test, y_test) >= even.score(X_test, y_test) - 0.01
    assert learner.predict_proba(X_test).sum(axis=1) == pytest.approx(np.ones(1500))
    assert 1 <= learner.n_iterations_ <= 5


def test_unrelated_classes_are_not_learned():
    X, y = towns()
    X_test, y_test = towns(seed=1)
    shuffled = np.random.default_rng(0).permutation(y)
    settings = {"assignment": "random", "suppression_limit": 0.3, "random_state": 0}
    learner = ProportionClassifier(LogisticRegression(), **settings).fit(X, shuffled)
    assert learner.score(X_test, y_test) < 0.4


def test_only_the_classes_of_groups_are_learned_from():
    # Exchanging the classes within groups changes nothing.
    X, y = towns(600)
    tables, rows = Anatomizer(2, sensitive="ill", assignment="random", suppression_limit=0.3, random_state=0
                              ).fit_transform_with_rows(X.assign(ill=y))  # fmt: skip
    learner = ProportionClassifier(LogisticRegression(), random_state=0).fit_anatomized(tables, "ill")
    group = tables.identifying["group"].to_numpy()
    order = np.argsort(group, kind="stable").reshape(-1, 2)[:, ::-1].ravel()
    exchanged = X.assign(ill=y).iloc[rows].reset_index(drop=True)
    exchanged.loc[np.argsort(group, kind="stable"), "ill"] = exchanged["ill"].to_numpy()[order]
    again = AnatomizedTable(
        exchanged[["x", "y", "noise"]].assign(group=group),
        tables.sensitive,
        2,
    )
    same = ProportionClassifier(LogisticRegression(), random_state=0).fit_anatomized(again, "ill")
    assert same.predict(X).tolist() == learner.predict(X).tolist()
    assert learner.score(X, y) > 0.85


def test_wrong_estimators_and_columns_are_refused():
    X, y = towns(200)
    with pytest.raises(ParameterError, match=r"RidgeClassifier: expected one that has predict_proba"):
        ProportionClassifier(RidgeClassifier(), suppression_limit=0.5).fit(X, y)
    frame, _ = people(100)
    tables = Anatomizer(2, sensitive=SECRET, random_state=0).fit_transform(frame)
    with pytest.raises(ParameterError, match="y=None with 2 sensitive columns"):
        ProportionClassifier(LogisticRegression()).fit_anatomized(tables)
    with pytest.raises(InputError, match="no sensitive column 'age'"):
        ProportionClassifier(LogisticRegression()).fit_anatomized(tables, "age")
    fitted = ProportionClassifier(LogisticRegression(), random_state=0).fit_anatomized(tables, "diet")
    assert set(fitted.predict(frame)) <= set(range(5))


def expected_failures(estimator):
    """Return the checks that fail on purpose, each with its reason."""
    return {
        "check_classifiers_train": "the class is hidden in groups, and few records do not tell which is which",
        "check_classifiers_one_label": "a single class is never l-diverse",
    }


@parametrize_with_checks(
    [ProportionClassifier(LogisticRegression(), suppression_limit=1.0, n_iterations=2, random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_the_proportion_learner_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


# ---- clusters --------------------------------------------------------------------------------------------------------


def clustered(n=900, seed=0):
    """Return records of three clusters that only the sensitive column and the town tell apart."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "town": np.array(["Bari", "Rome", "Pisa"])[
                np.where(random.random(n) < 0.9, kind, random.integers(0, 3, n))
            ],
            "hour": random.normal(size=n) / 3,
            "ill": kind * 3 + random.integers(0, 3, n),
        }
    )
    return frame, kind


@pytest.mark.parametrize("learn_from", ["candidates", "expected", "pruned"])
def test_clusters_are_found_in_the_tables(learn_from):
    frame, kind = clustered()
    estimator = KMeans(3, n_init=5, random_state=0)
    own = BucketClusterer(estimator, 2, sensitive="ill", learn_from=learn_from, random_state=0).fit(frame)
    reached = adjusted_rand_score(kind, own.predict(frame))
    assert reached > (0.5 if learn_from == "pruned" else 0.75)
    tables = Anatomizer(2, sensitive="ill", random_state=0).fit_transform(frame)
    received = BucketClusterer(estimator, learn_from=learn_from, random_state=0).fit_anatomized(tables)
    assert adjusted_rand_score(received.predict(frame), own.predict(frame)) > 0.99


def test_learned_weights_find_clusters_that_even_ones_blur():
    frame, kind = clustered()
    estimator = KMeans(3, n_init=5, random_state=0)
    reached = [
        adjusted_rand_score(
            kind, BucketClusterer(estimator, 3, sensitive="ill", weights=own, random_state=0).fit_predict(frame)
        )
        for own in ("learned", "even")
    ]
    assert reached[0] >= reached[1]


def test_clusterers_that_cannot_do_it_are_refused():
    frame, _ = clustered(60)
    with pytest.raises(ParameterError, match="AgglomerativeClustering: expected a clusterer with fit and predict"):
        BucketClusterer(AgglomerativeClustering(), sensitive="ill").fit(frame)
    with pytest.raises(ParameterError, match="learn_from='other'"):
        BucketClusterer(KMeans(2), sensitive="ill", learn_from="other").fit(frame)
    with pytest.raises(ParameterError, match="whose fit takes no sample_weight"):
        BucketClusterer(_NoWeights(2), sensitive="ill").fit(frame)


class _NoWeights(KMeans):
    def fit(self, X, y=None):
        return super().fit(X)


@parametrize_with_checks(
    [BucketClusterer(KMeans(2, n_init=1, random_state=0), sensitive=0, suppression_limit=1.0, random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_clustering": "labels of training records follow from raw records, and are not kept"
    },
)
def test_the_clusterer_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
