# SPDX-License-Identifier: Apache-2.0
"""Regions name nothing that few people share, do not depend on order, threads or frames, and models learn from them."""

import pickle
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from sfumato import (
    AnonymizedClassifier,
    AnonymizedRegressor,
    FullDomainAnonymizer,
    HilbertAnonymizer,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    Partition,
    RPlusTreeAnonymizer,
)
from sfumato.datasets import load_adult
from sfumato.errors import GuaranteeError, InputError, ParameterError
from sfumato.frames.building import FrameKind, build_frame
from sfumato.models import TableEncoder

K, FLOOR = 20, 5


@pytest.fixture(scope="module")
def adults():
    X, y = load_adult(return_X_y=True, as_frame=True)
    X = X[["age", "education-num", "marital-status", "occupation", "sex", "capital-gain", "hours-per-week"]]
    return X.iloc[:3000].reset_index(drop=True), np.asarray(y)[:3000]


def tables_model():
    return make_pipeline(TableEncoder(scale=True), LogisticRegression(max_iter=1000))


def fitted(X, y, **settings):
    given = {"k": K, "floor": FLOOR, "random_state": 0} | settings
    return AnonymizedClassifier(tables_model(), guide_estimator="labels", **given).fit(X, y)


class Seen(LogisticRegression):
    """Remembers the records that it was trained on."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, np.asarray(y), sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def drawn_by(X, y, **settings):
    given = {"k": K, "floor": FLOOR, "random_state": 0} | settings
    return AnonymizedClassifier(Seen(), guide_estimator="labels", **given).fit(X, y)


class SeenNumbers(LinearRegression):
    """Remembers the records that it was trained on."""

    def fit(self, X, y, sample_weight=None):
        self.X_ = X
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_every_number_is_a_recount_of_people_of_one_group_and_class(adults):
    X, y = adults
    model = fitted(X, y)
    regions, group = model.regions_, model.anonymizer_.partition_.apply(X)
    classes = np.unique(y, return_inverse=True)[1]
    n_checked = 0
    for column in regions.columns:
        values = X[column.name].to_numpy(dtype=object)
        for g in range(regions.n_groups):
            for c in range(2):
                own = Counter(values[(group == g) & (classes == c)].tolist())
                for entry in range(*column.counts.start[g * 2 + c : g * 2 + c + 2].tolist()):
                    if column.counts.width[entry] > 1 or column.missing[column.counts.unit[entry]]:
                        continue
                    value = column.values[column.counts.unit[entry]]
                    value = value if column.categories is None else column.categories[value]
                    n = int(column.counts.n_records[entry])
                    assert n >= FLOOR
                    if Counter(values.tolist())[value] >= FLOOR and column.categories is not None:
                        assert own[value] == n
                        n_checked += 1
    assert n_checked > 50
    assert np.array_equal(regions.sizes, np.bincount(group))


def test_regions_name_no_category_that_fewer_people_have_than_the_floor():
    rng = np.random.default_rng(0)
    rare = np.array(["common", "other", *(f"a rare{i}" for i in range(30))], object)  # the first in any order
    X = pd.DataFrame({"place": rare[np.r_[2:32, rng.integers(0, 2, 970)]], "age": rng.integers(20, 60, 1000)})
    X.loc[0, "age"] = 99
    model = fitted(X, rng.integers(0, 2, 1000))
    place, age = model.regions_.columns
    assert set(place.categories) == {"common", "other"}
    assert 99 not in age.values
    kept = pickle.dumps(model.regions_)
    assert b"rare" not in kept
    seen = drawn_by(X, rng.integers(0, 2, 1000)).estimator_.X_
    assert set(seen["place"]) == {"common", "other"} and seen["age"].max() < 99


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "numpy"])
def test_drawn_records_have_the_types_of_the_table(kind, adults):
    X, y = adults
    numbers = X[["age", "education-num", "hours-per-week"]]
    given = {
        "pandas": lambda: X, "polars": lambda: pl.from_pandas(X),
        "pyarrow": lambda: pa.Table.from_pandas(X), "numpy": lambda: numbers.to_numpy(),
    }[kind]()  # fmt: skip
    seen = drawn_by(given, y).estimator_.X_
    assert type(seen) is type(given)
    if kind == "pandas":
        assert (seen.dtypes == X.dtypes).all()
    if kind == "numpy":
        assert seen.dtype == given.dtype


@pytest.mark.filterwarnings("ignore:Failed to convert dataframe using PyCapsule")  # polars 1 goes on to another way
@pytest.mark.parametrize(
    "write",
    [pd.DataFrame, pl.DataFrame, pl.from_dataframe, pa.table, np.asarray, list, pickle.dumps],
    ids=["pandas", "polars", "interchange", "pyarrow", "numpy", "list", "pickle"],
)
def test_drawn_records_do_not_become_a_table_or_a_file(write, adults):
    drawn = fitted(*adults).regions_.draw(np.random.default_rng(0))
    with pytest.raises(GuaranteeError, match="drawn from regions as a table or file: expected them inside the fit"):
        write(drawn)


def test_a_release_of_drawn_records_is_refused(adults):
    model = fitted(*adults)
    drawn = model.regions_.draw(np.random.default_rng(0))
    for release in (model.anonymizer_.release, model.anonymizer_.transform, ModelGuidedAnonymizer(K).fit_transform):
        with pytest.raises(InputError, match="the input is of the type Drawn"):
            release(drawn)


def test_equal_seeds_draw_equal_records_whatever_the_threads(adults):
    X, y = adults
    first = drawn_by(X, y).estimator_
    anonymizer = ModelGuidedAnonymizer(K, n_jobs=2)
    second = AnonymizedClassifier(
        Seen(), anonymizer=anonymizer, guide_estimator="labels", floor=FLOOR, random_state=0
    ).fit(X, y).estimator_  # fmt: skip
    other = drawn_by(X, y, random_state=1).estimator_
    assert first.X_.equals(second.X_) and np.array_equal(first.weight_, second.weight_)
    assert not first.X_.equals(other.X_)


def test_regions_do_not_depend_on_the_order_of_the_records(adults):
    X, y = adults
    order = np.random.default_rng(0).permutation(len(X))
    one, other = fitted(X, y).regions_, fitted(X.iloc[order].reset_index(drop=True), y[order]).regions_
    for a, b in zip(one.columns, other.columns, strict=True):
        for left, right in zip(a.counts, b.counts, strict=True):
            assert np.array_equal(left, right)


@pytest.mark.parametrize(
    "anonymizer",
    [
        MondrianAnonymizer(K), HilbertAnonymizer(K), RPlusTreeAnonymizer(K),
        FullDomainAnonymizer(K, quasi_identifiers=["age", "sex"]),
        ModelGuidedAnonymizer(K, representative="range"), ModelGuidedAnonymizer(K, limits={"age": 10}),
    ],
    ids=lambda made: type(made).__name__,
)  # fmt: skip
def test_models_learn_from_the_regions_of_every_method(anonymizer, adults):
    X, y = adults
    model = AnonymizedClassifier(tables_model(), anonymizer=anonymizer, random_state=0).fit(X, y)
    assert model.regions_.n_groups == model.anonymizer_.n_groups_
    assert model.score(X, y) > 0.75


def test_a_model_that_takes_no_weights_gets_classes_drawn(adults):
    X, y = adults
    X = X[["age", "education-num", "hours-per-week"]]
    model = AnonymizedClassifier(KNeighborsClassifier(15), k=K, random_state=0).fit(X, y)
    assert set(model.estimator_.classes_) == set(y)
    assert model.score(X, y) > 0.75


def test_other_columns_stay_with_their_target(adults):
    X, y = adults
    X = X.assign(number=np.arange(len(X)) % 97)
    seen = drawn_by(X, y, quasi_identifiers=["age", "sex", "occupation"]).estimator_
    assert np.array_equal(seen.X_["number"], X["number"]) and np.array_equal(seen.y_, y)
    assert np.array_equal(seen.X_["hours-per-week"], X["hours-per-week"])
    assert not np.array_equal(seen.X_["age"], X["age"])


def test_columns_that_say_the_same_do_not_say_it_twice_beside_other_columns():
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 6000)
    said = np.where(generator.random(6000) < 0.7, y, 1 - y)
    X = pd.DataFrame({f"copy{i}": said for i in range(7)} | {"other": generator.integers(0, 9, 6000)})
    anonymizer = MondrianAnonymizer(k=3000, quasi_identifiers=[f"copy{i}" for i in range(7)])
    trained = AnonymizedClassifier(LogisticRegression(), anonymizer=anonymizer, random_state=0).fit(X, y)
    likely = trained.predict_proba(X)[:, 1]
    # Seven copies that each followed the class would make the model certain.
    assert abs(likely[said == 1].mean() - 0.7) < 0.05
    assert abs(likely[said == 0].mean() - 0.3) < 0.05


def test_classes_weigh_what_their_records_weigh(adults):
    X, y = adults
    weight = np.random.default_rng(0).uniform(1, 3, len(X))
    model = AnonymizedClassifier(Seen(), k=K, guide_estimator="labels", random_state=0)
    seen = model.fit(X, y, sample_weight=weight).estimator_
    assert len(seen.X_) == len(seen.y_) == len(seen.weight_) > len(X)
    assert seen.weight_.sum() == pytest.approx(weight.sum(), rel=0.02)
    without = model.fit(X, y, sample_weight=(y == y[0]).astype(float)).estimator_
    assert without.weight_[without.y_ != y[0]].sum() == 0


@pytest.mark.parametrize("model", [LogisticRegression(), KNeighborsClassifier(3)])
def test_no_class_is_forgotten(model, adults):
    X, _ = adults
    y = np.r_[np.ones(3), np.zeros(len(X) - 3)]
    found = AnonymizedClassifier(model, k=K, random_state=0).fit(X[["age", "education-num"]], y)
    assert found.classes_.tolist() == [0, 1]


def test_drawn_records_stay_in_the_cell_of_their_group(adults):
    X, y = adults
    seen = drawn_by(X, y)
    partition = seen.anonymizer_.partition_
    drawn = seen.regions_.draw(np.random.default_rng(0))
    names = {name: name for name in X}
    table = build_frame(FrameKind("pandas", names, frozenset()), [(n, n, drawn.columns[n]) for n in names], len(X))
    # A class that counts no value of a column in the cell draws it from elsewhere.
    assert (partition.apply(table) == drawn.group).mean() > 0.99


def test_small_groups_draw_from_the_cells_of_their_neighbors_too(adults):
    X, y = adults
    for floor, stays in ((K // 2, True), (K, False)):
        model = drawn_by(X, y, floor=floor)
        regions = model.regions_
        is_small = regions.sizes < 2 * floor
        assert (not is_small.any()) == stays
        for column in regions.columns:
            own = column.inside.cell[is_small]
            assert column.inside.is_whole[own].all() and column.inside.holds[own].all()
        # Large groups know their classes in multiples of the floor and what their neighbors add, small ones exactly.
        n_in_class, coarse = regions.target.n_in_class, regions.target.coarse
        group = model.anonymizer_.partition_.apply(X)
        exact = np.stack([np.bincount(group[y == label], minlength=regions.n_groups) for label in np.unique(y)], axis=1)
        assert np.array_equal(n_in_class[is_small], exact[is_small])
        assert not (coarse % floor).any()
        assert (np.abs(np.cumsum(coarse - exact, axis=0)) < floor).all()
        added = (n_in_class - coarse)[~is_small]
        assert (added > 0).all() and np.allclose(added.sum(axis=1), floor)


def test_unknown_categories_become_the_commonest_that_lies_in_the_cell():
    rng = np.random.default_rng(0)
    n = 4000
    job = rng.choice(["clerk", "nurse", "smith", "pilot", "diver"], n, p=[0.3, 0.25, 0.25, 0.198, 0.002])
    X = pd.DataFrame({"job": job, "age": rng.integers(20, 60, n)})
    rich = np.isin(job, ["pilot", "diver", "smith"])
    found = AnonymizedClassifier(tables_model(), k=300, floor=30, guide_estimator="labels", random_state=0).fit(X, rich)
    (column,) = (c for c in found.regions_.columns if c.name == "job")
    held = [set(column.categories[column.values[own[: len(column.values)]]]) for own in column.inside.holds]
    stand_in = column.categories[column.values[column.commonest]]
    assert all(name in held[cell] for name, cell in zip(stand_in, column.inside.cell, strict=True))
    divers = X[X["job"] == "diver"]
    assert len(divers) < 30 and "diver" not in column.categories
    assert found.predict(divers).all()


def test_drawn_numbers_stay_in_the_cell_of_their_group(adults):
    X, _ = adults
    wage = X["age"] * X["education-num"] + X["hours-per-week"]
    trained = AnonymizedRegressor(SeenNumbers(), k=K, guide_estimator="labels", random_state=0).fit(X, wage)
    partition = trained.anonymizer_.partition_
    drawn = trained.estimator_.X_
    assert np.array_equal(np.sort(partition.apply(drawn)), np.sort(partition.apply(X)))
    assert (drawn != X).any(axis=1).mean() > 0.95


def test_several_outputs(adults):
    X, y = adults
    both = np.column_stack([np.unique(y, return_inverse=True)[1], (X["age"] > 40).to_numpy(int)])
    forest = make_pipeline(TableEncoder(), RandomForestClassifier(20, random_state=0))
    model = AnonymizedClassifier(forest, k=K, random_state=0, guide_estimator="labels").fit(X, both)
    assert model.predict(X).shape == both.shape
    assert (model.predict(X) == both).mean() > 0.8
    numbers = X[["age", "hours-per-week"]].to_numpy(float)
    line = make_pipeline(TableEncoder(), LinearRegression())
    regressor = AnonymizedRegressor(line, k=K, random_state=0).fit(X, numbers)
    assert regressor.predict(X).shape == numbers.shape and regressor.score(X, numbers) > 0.3


def test_regions_lose_less_than_points_when_groups_are_large():
    X, y = load_adult(return_X_y=True, as_frame=True)
    X, y = X.drop(columns=["fnlwgt", "education"]), np.asarray(y)
    model = make_pipeline(TableEncoder(one_hot=False), HistGradientBoostingClassifier(max_iter=30, random_state=0))
    train, test = slice(0, 12_000), slice(12_000, 20_000)
    scores = {}
    for way in ("regions", "points"):
        anonymized = AnonymizedClassifier(model, k=300, learn_from=way, floor=20, random_state=0)
        anonymized.fit(X[train], y[train])
        scores[way] = anonymized.score(X[test], y[test])
    raw = model.fit(X[train], y[train]).score(X[test], y[test])
    assert scores["regions"] > raw - 0.015
    assert scores["regions"] > scores["points"] + 0.01


def test_a_region_can_be_read(adults):
    X, y = adults
    regions = fitted(X, y).regions_
    text = regions.describe(0)
    assert text.startswith("group 0: ") and "marital-status: " in text and "nan" not in text
    with pytest.raises(ParameterError, match=r"group=-1: expected a number from 0 to"):
        regions.describe(-1)


def test_a_region_is_read_in_the_words_of_its_target(adults):
    X, y = adults
    words = np.where(y == np.unique(y)[1], "earns more", "earns less")
    regions = fitted(X, words).regions_
    text = "\n".join(regions.describe(group) for group in range(regions.n_groups))
    assert "\n  class earns less: " in text and "\n  class earns more: " in text
    two = drawn_by(X, np.stack([words, words], axis=1)).regions_
    assert "class earns less, earns less: " in two.describe(0) or "class earns more, earns more: " in two.describe(0)

    regions = fitted(X, words, floor=200).regions_
    assert regions.describe(0).splitlines()[1:] == [
        "  no class of 200 people or more: all are counted with neighboring groups"
    ]

    numbers = X["hours-per-week"].to_numpy(dtype=float)
    model = AnonymizedRegressor(SeenNumbers(), k=200, random_state=0).fit(X.drop(columns="hours-per-week"), numbers)
    group = model.anonymizer_.partition_.apply(X.drop(columns="hours-per-week"))
    said = float(model.regions_.describe(0).splitlines()[0].split("target ")[1].split(" on average")[0])
    assert abs(said - numbers[group == 0].mean()) < 1


@pytest.mark.parametrize("floor", [50, 5000])
def test_a_floor_above_k_counts_as_many_people_or_nothing(floor, adults):
    def said(whose):
        return (
            nullcontext() if floor == 50 else pytest.warns(UserWarning, match=f"5000 people{whose} share is the same")
        )

    X, y = adults  # 5000: more than the table has
    with said(" of one class"):
        model = fitted(X, y, floor=floor)
    counted = np.concatenate([column.counts.n_records for column in model.regions_.columns])
    assert (counted >= floor).all() and (len(counted) > 0) == (floor < len(X))
    assert model.score(X, y) >= max(np.mean(y == label) for label in set(y)) - 0.01

    numbers = AnonymizedRegressor(SeenNumbers(), k=K, floor=floor, guide_estimator="labels", random_state=0)
    with said(""):
        assert len(numbers.fit(X.drop(columns="age"), X["age"].to_numpy()).estimator_.X_) == len(X)


def test_models_that_take_no_missing_values_learn_from_tables_smaller_than_the_floor():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(15, 2)), columns=["a", "b"]), np.arange(15) % 3 == 0
    with pytest.warns(UserWarning, match="20 people of one class share is the same for everybody: the model learns"):
        model = AnonymizedClassifier(LogisticRegression(), k=5, guide_estimator="labels", random_state=0).fit(X, y)
    assert not model.predict(X).any()
    with pytest.warns(UserWarning, match="what 20 people share is the same for everybody: the model learns"):
        numbers = AnonymizedRegressor(LinearRegression(), k=5, guide_estimator="labels", random_state=0).fit(X, X["a"])
    assert np.ptp(numbers.predict(X)) < 1e-9


def test_a_mean_of_everybody_is_nothing_to_learn():
    X = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30) % 7})
    model = AnonymizedRegressor(LinearRegression(), anonymizer=MondrianAnonymizer(k=5), random_state=0)
    with pytest.warns(UserWarning, match="what 20 people share is the same for everybody: the model learns nothing"):
        model.fit(X, X["a"])
    assert np.ptp(model.predict(X)) < 1e-9


@pytest.mark.parametrize(("k", "floor"), [(2, 20), (5, 20), (10, 20), (20, 20), (35, 35), (50, 50), (1000, 50)])
def test_the_default_floor_is_k_but_at_least_20_and_at_most_50(k, floor, adults):
    X, y = adults
    assert fitted(X, y, k=k, floor=None).regions_.floor == floor


def test_regions_with_a_floor_above_k_are_saved(adults, tmp_path):
    X, y = adults
    fitted(X, y, floor=50).anonymizer_.partition_.save(tmp_path / "partition.json")
    partition = Partition.load(tmp_path / "partition.json")
    later = AnonymizedClassifier(tables_model(), random_state=0).fit_partition(partition)
    assert later.score(X, y) > 0.76


def test_wrong_settings_are_refused(adults):
    X, y = adults
    with pytest.raises(ParameterError, match=r"learn_from='cells': expected None, 'regions' or 'points'"):
        fitted(X, y, learn_from="cells")
    with pytest.raises(ParameterError, match=r"floor=0: expected an integer of at least 1"):
        fitted(X, y, floor=0)
    with pytest.raises(ParameterError, match="learn_from='regions' with transform_at_predict=True"):
        fitted(X, y, learn_from="regions", transform_at_predict=True)
    assert not hasattr(fitted(X, y, transform_at_predict=True), "regions_")


def test_criteria_on_sensitive_values_or_persons_train_on_points(adults):
    X, y = adults
    diverse = ModelGuidedAnonymizer(
        K, quasi_identifiers=["age", "sex"], criteria=[LDiversity(2, sensitive="occupation")]
    )
    model = AnonymizedClassifier(tables_model(), anonymizer=diverse, guide_estimator="labels").fit(X, y)
    assert not hasattr(model, "regions_")
    with pytest.raises(ParameterError, match="learn_from='regions' with criteria on persons or sensitive values"):
        AnonymizedClassifier(tables_model(), anonymizer=diverse, learn_from="regions").fit(X, y)


@pytest.mark.parametrize("model", [DummyClassifier(strategy="prior"), KNeighborsClassifier(1)])
def test_a_target_of_one_class_is_left_to_the_model(model, adults):
    X, y = adults[0][["age", "hours-per-week"]], np.full(3000, "same")
    for way in ("regions", "points"):
        anonymized = AnonymizedClassifier(model, k=K, learn_from=way, guide_estimator="labels").fit(X, y)
        assert set(anonymized.predict(X)) == {"same"}
        assert anonymized.estimator_.n_features_in_ == 2
    with pytest.raises(ValueError, match="at least 2 classes"):
        fitted(X, y)


def test_many_classes_are_not_told_apart(adults):
    X, _ = adults
    ages = X["age"].to_numpy()
    seen = drawn_by(X[["education-num", "hours-per-week"]], ages).estimator_
    assert len(np.unique(ages)) > 32
    assert np.array_equal(seen.y_, ages) and seen.weight_ is None


def test_no_model_is_trained_on_groups_that_are_too_small(adults, monkeypatch):
    original = ModelGuidedAnonymizer._fit

    def broken(self, *args, **more):
        made = original(self, *args, **more)
        made.group[made.group == 1] = 0
        made.group[0] = 1  # one person alone
        return made

    monkeypatch.setattr(ModelGuidedAnonymizer, "_fit", broken)
    with pytest.raises(GuaranteeError, match=r"a group has 1 records: expected at least k = 20\. No model is trained"):
        fitted(*adults)
