# SPDX-License-Identifier: Apache-2.0
"""Regions are saved with their partition: no count below the floor inside, and a changed document is refused."""

import contextlib
import copy
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato import AnonymizedClassifier, AnonymizedRegressor, InputError, MondrianAnonymizer, ParameterError, Partition
from sfumato.errors import SfumatoError
from sfumato.models import TableEncoder
from sfumato.regions.document import regions_to_dict
from strategies import in_examples
from test_malformed_documents import mutated

K, FLOOR = 20, 5


def people(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    job = rng.choice(["nurse", "smith", "clerk", None], n)
    X = pd.DataFrame({
        "age": rng.integers(18, 90, n), "rate": rng.normal(size=n).round(2), "job": job,
        "born": pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
    })  # fmt: skip
    return X, np.where((X["age"] > 50) ^ (job == "nurse"), "yes", "no")


def classifier(X, y, **more):
    model = make_pipeline(TableEncoder(), LogisticRegression(max_iter=500))
    settings = {"k": K, "floor": FLOOR, "guide_estimator": "labels", "random_state": 0} | more
    return AnonymizedClassifier(model, **settings).fit(X, y)


@pytest.fixture(scope="module")
def fitted():
    X, y = people()
    return classifier(X, y)


@pytest.fixture(scope="module")
def regressor():
    X, _ = people()
    income = 10.0 * X["age"] + 100.0 * (X["job"] == "nurse") + np.random.default_rng(1).normal(size=len(X))
    model = make_pipeline(TableEncoder(), LinearRegression())
    return AnonymizedRegressor(model, k=K, floor=FLOOR, guide_estimator="labels", random_state=0).fit(X, income)


def saved(model):
    return json.loads(json.dumps(model.anonymizer_.partition_.to_dict(), allow_nan=False))


def counts_of(regions):
    return [column["counts"] for column in regions["columns"]]


def test_no_number_of_a_document_counts_fewer_people_than_the_floor(fitted, regressor):
    for model in (fitted, regressor):
        regions = saved(model)["regions"]
        assert regions["floor"] == FLOOR
        for counts in counts_of(regions):
            assert min(counts["people"]) >= FLOOR
            assert not [n for name in ("from_pools", "whole") for n in counts[name] if n % FLOOR]
        assert not [n for n in regions.get("classes", ()) if n % FLOOR]
    assert sum(saved(fitted)["regions"]["classes"]) == pytest.approx(1500, abs=2 * FLOOR)


def test_values_and_classes_that_few_people_have_are_not_named():
    X, y = people()
    X["job"] = X["job"].astype(object)
    X.loc[:3, "job"], X.loc[0, "age"] = "astronaut", 104
    y = y.astype(object)
    y[:3] = "undecided"
    model = classifier(X, y)
    assert model.classes_.tolist() == ["no", "undecided", "yes"]
    text = json.dumps(model.anonymizer_.partition_.to_dict()["regions"])
    assert "nurse" in text and "astronaut" not in text and "undecided" not in text
    assert 104 not in saved(model)["regions"]["columns"][0]["values"]
    assert saved(model)["regions"]["labels"] == ["no", "yes"]


def test_a_rare_class_is_not_named_however_many_groups_there_are():
    rng = np.random.default_rng(0)
    n = 12_000
    X = pd.DataFrame({"age": rng.integers(18, 90, n), "rate": rng.integers(0, 50, n)})
    y = np.where(X["age"] > 50, "yes", "no").astype(object)
    y[:3] = "hiv"
    regions = classifier(X, y, k=40).regions_
    assert regions.n_groups > 100 and (regions.sizes >= 2 * FLOOR).all()
    assert regions_to_dict(regions)["labels"] == ["no", "yes"]


def test_what_large_groups_are_known_to_have_is_the_same_after_saving(tmp_path):
    X, y = people()
    partition = classifier(X, y, k=30).anonymizer_.partition_
    partition.save(tmp_path / "partition.json")
    loaded = Partition.load(tmp_path / "partition.json").regions
    assert (loaded.sizes >= 2 * FLOOR).all()
    drawn = [regions.draw(np.random.default_rng(0)) for regions in (partition.regions, loaded)]
    assert np.array_equal(drawn[0].shares, drawn[1].shares)
    for name, column in drawn[0].columns.items():
        assert np.array_equal(column.group, drawn[1].columns[name].group)
    assert partition.regions.describe(0) == loaded.describe(0)


def test_what_was_saved_trains_the_same_models_everywhere(fitted, tmp_path):
    X, y = people(seed=1)
    partition = fitted.anonymizer_.partition_
    partition.save(tmp_path / "partition.json")
    loaded = Partition.load(tmp_path / "partition.json")
    assert loaded.to_dict() == partition.to_dict()
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    encoded = make_pipeline(TableEncoder(), tree)
    trained = [
        AnonymizedClassifier(encoded, random_state=0).fit_partition(loaded, frame=frame)
        for frame in ("pandas", "polars")
    ]
    first, second = trained[0].predict(X), trained[1].predict(pl.from_pandas(X))
    assert np.array_equal(first, second)
    assert (first == y).mean() > 0.85
    # A table for the kind of frame: its order of columns, its declared categories, and none of its records.
    like = X.iloc[:1, ::-1].astype({"job": "category"})
    seen = AnonymizedClassifier(encoded, random_state=0).fit_partition(loaded, frame=like)
    assert seen.feature_names_in_.tolist() == list(X.columns[::-1])
    assert (seen.predict(X[X.columns[::-1]]) == y).mean() > 0.85
    with pytest.raises(InputError, match="frame has no column"):
        AnonymizedClassifier(encoded).fit_partition(loaded, frame=X.iloc[:, 1:])
    small = AnonymizedClassifier(encoded, random_state=0).fit_partition(loaded, n_records=300)
    assert (small.predict(X.assign(other=1)) == y).mean() > 0.7  # a column that the model does not know is left out


def test_numbers_are_learned_from_a_document(regressor, tmp_path):
    X, _ = people(seed=1)
    income = 10.0 * X["age"] + 100.0 * (X["job"] == "nurse")
    loaded = Partition.from_dict(saved(regressor))
    assert loaded.to_dict() == regressor.anonymizer_.partition_.to_dict()
    tree = make_pipeline(TableEncoder(), DecisionTreeRegressor(max_depth=6, random_state=0))
    trained = AnonymizedRegressor(tree, random_state=0).fit_partition(loaded)
    assert trained.score(X, income) > 0.9


def test_means_do_not_tell_the_number_of_a_single_person():
    """The mean of a group and that of all but one of its people, subtracted, would."""
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame({"side": np.repeat([0, 1], n // 2), "kind": "common"})
    X.loc[0, "kind"] = X.loc[n // 2, "kind"] = "other"
    wage = rng.normal(1000, 100, n)
    model = AnonymizedRegressor(
        make_pipeline(TableEncoder(), LinearRegression()),
        anonymizer=MondrianAnonymizer(n // 2),
        floor=20,
        random_state=0,
    ).fit(X, wage)
    regions = model.regions_
    step = float(f"{wage.std() / 20:.1g}")
    kinds = next(column for column in regions.columns if column.name == "kind")
    for means in (regions.target.means, kinds.counts.target):
        assert means == pytest.approx(np.round(means / step) * step)
    assert regions.target.means[:, 0] == pytest.approx([wage[: n // 2].mean(), wage[n // 2 :].mean()], abs=step / 2)
    size = n // 2
    assert kinds.counts.n_records[0] == size - 1
    alone = size * regions.target.means[0, 0] - (size - 1) * (regions.target.means[0, 0] + kinds.counts.target[0, 0])
    # Rounding leaves an error of up to size * step: ten standard deviations of the target here.
    assert size * step >= 9 * wage.std() and abs(alone - wage[0]) > 10


def test_means_of_groups_smaller_than_the_floor_are_those_of_neighbors():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 1000, 600)})
    wage = X["a"] + rng.normal(size=600)
    model = AnonymizedRegressor(LinearRegression(), anonymizer=MondrianAnonymizer(5), floor=50, random_state=0)
    regions = model.fit(X, wage).regions_
    assert regions.sizes.min() < 50
    group = model.anonymizer_.partition_.apply(X)
    step = float(f"{wage.std(ddof=0) / 50:.1g}")
    for g in range(regions.n_groups):
        width = 1
        while ((group // width) == g // width).sum() < 50:
            width *= 4
        assert regions.target.means[g, 0] == pytest.approx(wage[group // width == g // width].mean(), abs=step / 2)


CHANGES = {
    "people below the floor": lambda r: r["columns"][0]["counts"]["people"].__setitem__(0, FLOOR - 1),
    "classes below the floor": lambda r: r["classes"].__setitem__(0, 1),
    "pools below the floor": lambda r: r["columns"][1]["counts"]["from_pools"].__setitem__(0, 1),
    "whole below the floor": lambda r: r["columns"][1]["counts"]["whole"].__setitem__(0, 1),
    "another version": lambda r: r.__setitem__("version", 99),
    "no floor": lambda r: r.__setitem__("floor", 0),
    "a value that is not there": lambda r: r["columns"][0]["counts"]["value"].__setitem__(0, 10_000),
    "an interval too wide": lambda r: r["columns"][0]["counts"]["width"].__setitem__(0, 10_000),
    "rows of other lengths": lambda r: r["columns"][0]["counts"]["per_row"].__setitem__(0, 2**62),
    "counts missing": lambda r: r["columns"][0]["counts"]["people"].pop(),
    "another column": lambda r: r["columns"][0].__setitem__("name", "wage"),
    "a column twice": lambda r: r["columns"].append(copy.deepcopy(r["columns"][0])),
    "a column of another kind": lambda r: r["columns"][0].__setitem__("moment", "date"),
    "weights of other columns": lambda r: r["weights"]["columns"].pop(),
    "whole weights of other columns": lambda r: r["weights"]["whole"].pop(),
    "numbers of no reach": lambda r: r["columns"][0].pop("reach"),
    "a class twice": lambda r: r["labels"].__setitem__(0, r["labels"][1]),
    "one class": lambda r: r["labels"].pop(),
    "nowhere to draw from": lambda r: r["columns"][0].__setitem__("otherwise", 10_000),
    "no target": lambda r: r.pop("labels"),
    "a category without a name": lambda r: r["columns"][2]["values"].__setitem__(0, 99),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_document_is_refused(change, fitted):
    document = saved(fitted)
    change(document["regions"])
    with pytest.raises(InputError, match="a partition document"):
        Partition.from_dict(document)


def test_a_value_that_a_row_counts_twice_is_refused(fitted):
    document = saved(fitted)
    every = (column["counts"] for column in document["regions"]["columns"])
    counts, row = next((own, at) for own in every for at, n in enumerate(own["per_row"]) if n > 1)
    first = sum(counts["per_row"][:row])
    counts["value"][first + 1] = counts["value"][first]
    counts["width"][first : first + 2] = [1, 1]
    with pytest.raises(InputError, match="a value twice"):
        Partition.from_dict(document)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@given(seed=st.integers(0, 2**32))
@settings(in_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mutated_regions_are_refused_or_work(kind, fitted, regressor, seed):
    document = saved(fitted if kind == "classes" else regressor)
    document["regions"] = mutated(document["regions"], np.random.default_rng(seed))
    with contextlib.suppress(SfumatoError):
        loaded = Partition.from_dict(json.loads(json.dumps(document)))
        loaded.regions.draw(np.random.default_rng(0), n_records=200)
        loaded.regions.describe(0)
        loaded.to_dict()


def test_partitions_without_regions_and_regions_of_another_target_are_refused(fitted):
    X, _ = people()
    plain = MondrianAnonymizer(K).fit(X).partition_
    with pytest.raises(ParameterError, match="a Partition without regions of a target"):
        AnonymizedClassifier(LogisticRegression()).fit_partition(plain)
    with pytest.raises(ParameterError, match="regions of a target with classes: expected numbers"):
        AnonymizedRegressor(LinearRegression()).fit_partition(fitted.anonymizer_.partition_)
    with pytest.raises(ParameterError, match="frame='lists'"):
        AnonymizedClassifier(LogisticRegression()).fit_partition(fitted.anonymizer_.partition_, frame="lists")
