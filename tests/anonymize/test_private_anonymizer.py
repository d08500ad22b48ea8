# SPDX-License-Identifier: Apache-2.0
"""The private anonymizer: its records reach the result through noise alone, and the result is worth learning from."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sfumato import (
    AnonymizedClassifier,
    GuaranteeError,
    InputError,
    ParameterError,
    Partition,
    PrivacyLedger,
    PrivateAnonymizer,
)
from sfumato.anonymize import private_anonymizer
from sfumato.models import TableEncoder
from sfumato.private import linear, mechanisms, noise
from sfumato.private.accounting import gaussian_delta, gaussian_mu
from sfumato.private.encoding import PublicEncoding
from twins.seeded_noise import SeededNoise, seed_private

PUBLIC = {
    "bounds": {"age": (18, 90), "pay": (0.0, 10.0, 20.0, 50.0, 100.0)},
    "categories": {"job": ["cook", "nurse", "smith"], "zone": [1, 2, 3]},
    "labels": ["no", "yes"],
}


def people(n, seed):
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "job": pd.Categorical(random.choice(["cook", "nurse", "smith"], n)),
            "pay": random.random(n) * age,
            "zone": random.integers(1, 4, n),
        }
    )
    return frame, np.where(age + 10 * (frame["job"] == "cook") + random.normal(0, 5, n) > 55, "yes", "no")


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    seed_private(monkeypatch)


@pytest.fixture(scope="module")
def fitted():
    X, y = people(6000, 0)
    with pytest.MonkeyPatch.context() as own:
        seed_private(own)
        return PrivateAnonymizer(epsilon=1.0, **PUBLIC).fit(X, y)


def test_the_release_looks_like_the_table(fitted):
    X, _ = people(6000, 0)
    made = fitted.release()
    assert list(made.table.columns) == list(X.columns)
    assert made.table["age"].dtype == np.int64
    assert made.table["pay"].dtype == np.float64
    assert set(made.table["job"].cat.categories) <= {"cook", "nurse", "smith"}
    assert set(made.table["zone"].dropna()) <= {1, 2, 3}
    assert made.table["age"].between(18, 90).all()
    assert abs(len(made.table) - 6000) < 600
    assert made.measures["n_cells"] == fitted.n_groups_ > 20
    assert (made.privacy.epsilon, made.privacy.delta) == (1.0, 1e-6)


def test_recoded_records_are_predicted_from_the_release(fitted):
    X, y = people(3000, 1)
    cells = fitted.partition_.apply(X)
    answer = fitted.labels_[fitted.counts_.argmax(axis=1)][cells]
    assert (answer == y).mean() > 0.8  # the best that knows age and job exactly has 0.94
    assert list(fitted.transform(X).columns) == list(X.columns)


def test_a_second_release_has_the_same_counts_in_another_order(fitted):
    first, second = fitted.release(), fitted.release()

    def counted(made):
        return Counter(zip(map(tuple, made.table.astype(str).to_numpy()), made.target, strict=True))

    assert counted(first) == counted(second)
    assert not np.array_equal(first.target, second.target)


def test_drawn_values_lie_in_the_cells_and_have_the_same_counts(fitted):
    made = fitted.release(values="drawn")
    cells = fitted.partition_.apply(made.table)
    found = np.zeros_like(fitted.counts_)
    np.add.at(found, (cells, (made.target == "yes").astype(int)), 1)
    assert np.array_equal(found, fitted.counts_)
    assert made.table["age"].nunique() > fitted.release().table["age"].nunique()
    assert made.table.dtypes["job"] == people(900, 0)[0].dtypes["job"]
    with pytest.raises(ParameterError, match="values='raw'"):
        fitted.release(values="raw")


@pytest.mark.parametrize("kind", ["mst", "marginals"])
def test_nothing_but_noisy_numbers_is_learnt_from_the_records(kind, monkeypatch):
    asked = []

    class Recorded(SeededNoise):
        def geometric(self, epsilon, size):
            asked.append(("geometric", epsilon, size))
            return super().geometric(epsilon, size)

        def gaussian(self, scale, size):
            asked.append(("gaussian", scale, size))
            return super().gaussian(scale, size)

    monkeypatch.setattr(noise, "_source", Recorded(0))
    X, y = people(6000, 0)
    anonymizer = PrivateAnonymizer(2.0, **PUBLIC, rows=kind, division={"guide": 3, "rows": 1, "counts": 4}).fit(X, y)
    encoding = PublicEncoding(list(X.columns), PUBLIC["bounds"], PUBLIC["categories"])
    # Every cell and label has the counts' part, and nothing else has pure epsilon.
    assert [part for part in asked if part[0] == "geometric"] == [("geometric", 1.0, 2 * anonymizer.n_groups_)]
    gaussian = [part for part in asked if part[0] == "gaussian"]
    of_rows, steps = gaussian[: -anonymizer.guide_.n_steps - 1], gaussian[-anonymizer.guide_.n_steps - 1 :]
    n_labels = 1 if kind == "mst" else 2
    assert [size for _, _, size in of_rows[:4]] == [n_labels * column.n_cells for column in encoding.columns]
    # Guide and rows share mu**2 of epsilon 1, three to one. A record moves each count of a column, each of the six
    # distances between columns, and each count of a pair by 1.
    mu = gaussian_mu(1.0, 1e-6)
    moved = [1, 1, 1, 1] + ([6] + [1] * (len(of_rows) - 5) if kind == "mst" else [])
    spent = sum(n / scale**2 for n, (_, scale, _) in zip(moved, of_rows, strict=True))
    assert math.isclose(spent, mu**2 / 4, rel_tol=1e-6)
    assert math.isclose(gaussian_mu(anonymizer.guide_.privacy_.epsilon, 1e-6), mu * math.sqrt(3 / 4), rel_tol=1e-6)
    assert len({scale for _, scale, _ in steps}) == 2  # one count of persons, and gradients of length 5**0.5


@pytest.mark.parametrize("division", [None, {"guide": 1, "rows": 50, "counts": 1}])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.05, 1e-9), (8.0, 1e-3)])
def test_the_parts_spend_no_more_than_the_whole(division, epsilon, delta):
    parts = PrivateAnonymizer(epsilon, delta, **PUBLIC, division=division)._budget()
    together = math.hypot(gaussian_mu(parts.guide, delta), parts.rows)
    assert gaussian_delta(epsilon - parts.counts, together) <= delta * (1 + 1e-9)
    assert gaussian_delta(epsilon - parts.counts, together) >= delta * (1 - 1e-3)  # and nothing is left over


def test_missing_values_are_released():
    X, y = people(4000, 5)
    X["pay"] = X["pay"].where(np.arange(4000) % 2 == 0)
    made = PrivateAnonymizer(epsilon=5.0, **PUBLIC).fit(X, y).release(values="drawn")
    assert abs(made.table["pay"].isna().mean() - 0.5) < 0.1
    assert len(made.table) > 3500


@pytest.mark.parametrize("value", [None, "astronaut"], ids=["missing", "unknown"])
def test_a_column_without_any_known_value_is_released(value):
    """The one person who has a known value must not decide whether there is a release."""
    X, y = people(500, 15)
    fitted = PrivateAnonymizer(1.0, **PUBLIC).fit(X.assign(job=pd.Series([value] * 500, dtype=object)), y)
    for values in ("cells", "drawn"):
        assert fitted.release(values=values).table["job"].isna().mean() > 0.5


def test_one_record_of_each_person_counts():
    X, y = people(6000, 6)
    X["person"] = np.arange(6000) // 3
    made = PrivateAnonymizer(epsilon=3.0, **PUBLIC, unit="person").fit(X, y).release()
    assert abs(len(made.table) - 2000) < 300
    assert "person" not in made.table.columns
    assert made.privacy.unit == "person"


@pytest.mark.parametrize("kind", private_anonymizer.ROWS)
def test_guide_and_rows_see_one_record_of_each_person_too(kind, monkeypatch):
    """Their noise covers one record of a person, and more would be seen by one more of any of the three parts."""
    seen = {}

    def counted(name, own, place):
        def count(*given, **settings):
            seen[name] = len(given[place])
            return own(*given, **settings)

        return count

    for name in ("noisy_tree", "noisy_marginals"):
        monkeypatch.setattr(private_anonymizer, name, counted("rows", getattr(private_anonymizer, name), 1))
    monkeypatch.setattr(
        linear.PrivateLogisticRegression, "fit", counted("guide", linear.PrivateLogisticRegression.fit, 2)
    )
    X, y = people(900, 6)
    X["person"] = np.arange(900) // 3
    PrivateAnonymizer(epsilon=3.0, **PUBLIC, unit="person", rows=kind).fit(X, y)
    assert seen == {"rows": 300, "guide": 300}


def test_finer_cells_where_the_budget_allows():
    X, y = people(6000, 7)
    small, large = (PrivateAnonymizer(epsilon=e, **PUBLIC).fit(X, y).n_groups_ for e in (0.3, 3.0))
    assert small < large
    told = PrivateAnonymizer(**PUBLIC, records_per_cell=600).fit(X, y).n_groups_
    assert 5 <= told <= 20  # 6,000 records


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_other_frames(kind):
    X, y = people(3000, 8)
    X = pl.from_pandas(X) if kind == "polars" else pa.Table.from_pandas(X, preserve_index=False)
    anonymizer = PrivateAnonymizer(**PUBLIC).fit(X, y)
    for values in ("cells", "drawn"):
        made = anonymizer.release(values=values)
        assert type(made.table) is type(X)
        assert len(made.target) == len(made.table)


def test_several_labels():
    X, y = people(5000, 9)
    y = np.where(X["age"] > 70, 2, (y == "yes").astype(int))
    made = PrivateAnonymizer(2.0, **PUBLIC | {"labels": [0, 1, 2]}).fit(X, y).release()
    assert set(made.target) == {0, 1, 2}


def test_the_ledger_is_asked_before_anything_is_learnt(monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("something was learnt")

    X, y = people(500, 10)
    ledger = PrivacyLedger(epsilon=0.5, delta=1e-6)
    monkeypatch.setattr(mechanisms, "noise_source", never)
    monkeypatch.setattr(linear, "descend", never)
    with pytest.raises(GuaranteeError, match=r"expected at most epsilon 0\.5"):
        PrivateAnonymizer(1.0, **PUBLIC).fit(X, y, ledger=ledger)
    assert ledger.entries == ()
    monkeypatch.undo()
    PrivateAnonymizer(0.5, **PUBLIC).fit(X, y, ledger=ledger)
    assert math.isclose(ledger.total().epsilon, 0.5)


def test_a_model_for_raw_records_learns_from_the_partition_alone(fitted):
    X, y = people(3000, 12)
    regions = fitted.partition_.regions
    np.testing.assert_array_equal(regions.target.n_in_class, fitted.counts_)  # labels are listed as they are sorted
    np.testing.assert_array_equal(regions.sizes, fitted.counts_.sum(axis=1))
    assert fitted.release().partition is fitted.partition_
    model = AnonymizedClassifier(HistGradientBoostingClassifier(random_state=0), random_state=0)
    model.fit_partition(fitted.partition_, frame=X)
    assert model.score(X, y) > 0.88
    assert model.feature_names_in_.tolist() == list(X.columns)
    turned = PrivateAnonymizer(1.0, **{**PUBLIC, "labels": ["yes", "no"]}).fit(*people(2000, 13))
    np.testing.assert_array_equal(turned.partition_.regions.target.n_in_class, turned.counts_[:, ::-1])


def test_a_release_that_noise_emptied_is_explained(fitted):
    regions = fitted.partition_.regions
    empty = replace(fitted.partition_, regions=regions.with_counts(np.zeros_like(fitted.counts_), fitted.labels_))
    with pytest.raises(InputError, match="the regions count no people"):
        AnonymizedClassifier(HistGradientBoostingClassifier()).fit_partition(empty)


def test_every_label_has_a_place_in_the_regions():
    X, y = people(500, 14)
    made = PrivateAnonymizer(1.0, **{**PUBLIC, "labels": ["no", "perhaps", "yes"]}).fit(X, y)
    assert made.partition_.regions.target.labels.tolist() == ["no", "perhaps", "yes"]


def test_the_partition_can_be_saved_and_says_nothing_of_k(fitted, tmp_path):
    fitted.partition_.save(tmp_path / "partition.json")
    loaded = Partition.load(tmp_path / "partition.json")
    X, _ = people(100, 11)
    assert np.array_equal(loaded.apply(X), fitted.partition_.apply(X))
    assert (loaded.guarantees, loaded.fingerprints) == ((), None)


def test_parameters_are_kept_and_bad_ones_explained():
    X, y = people(300, 12)
    anonymizer = PrivateAnonymizer(2.0, **PUBLIC, records_per_cell=50)
    assert clone(anonymizer).get_params() == anonymizer.get_params()
    with pytest.raises(ParameterError, match="epsilon=0: expected a finite number above 0"):
        PrivateAnonymizer(0, **PUBLIC).fit(X, y)
    with pytest.raises(ParameterError, match="delta=0"):
        PrivateAnonymizer(1.0, 0, **PUBLIC).fit(X, y)
    with pytest.raises(ParameterError, match="expected a positive share of the budget for each of guide, rows"):
        PrivateAnonymizer(**PUBLIC, division={"guide": 1.0}).fit(X, y)
    with pytest.raises(ParameterError, match="column 'extra' is neither in bounds= nor in categories="):
        PrivateAnonymizer(**PUBLIC).fit(X.assign(extra=1), y)
    with pytest.raises(ParameterError, match="y without labels"):
        PrivateAnonymizer(**PUBLIC | {"labels": None}).fit(X, y)
    with pytest.raises(InputError, match="requires y to be passed"):
        PrivateAnonymizer(**PUBLIC).fit(X, None)
    with pytest.raises(ParameterError, match="delta alone would cover the guide"):
        PrivateAnonymizer(0.01, 0.1, **PUBLIC).fit(X, y)
    with pytest.raises(ParameterError, match="rows='aim'"):
        PrivateAnonymizer(**PUBLIC, rows="aim").fit(X, y)
    with pytest.raises(ParameterError, match="records_per_cell"):
        PrivateAnonymizer(**PUBLIC, records_per_cell=0).fit(X, y)


# ---- scikit-learn's conventions --------------------------------------------------------------------------------------


def with_persons(n, seed):
    X, y = people(n, seed)
    return X.assign(person=np.arange(n) // 2), y


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_recoded_records_come_as_the_frame_that_was_asked_for(kind):
    X, y = people(3000, 0)
    anonymizer = PrivateAnonymizer(epsilon=3.0, **PUBLIC).set_output(transform=kind).fit(X, y)
    recoded = anonymizer.transform(X[:20])
    assert type(recoded).__module__.startswith(kind)
    assert list(recoded.columns) == anonymizer.get_feature_names_out().tolist() == list(X.columns)
    assert isinstance(anonymizer.release().table, pd.DataFrame)  # a release is a frame as that of the records


def test_the_columns_are_those_of_the_fit_and_the_unit_goes():
    X, y = with_persons(3000, 0)
    anonymizer = PrivateAnonymizer(epsilon=3.0, **PUBLIC, unit="person").fit(X, y)
    assert anonymizer.n_features_in_ == 5
    assert anonymizer.feature_names_in_.tolist() == list(X.columns)
    assert anonymizer.get_feature_names_out().tolist() == ["age", "job", "pay", "zone"]
    assert list(anonymizer.transform(X).columns) == list(anonymizer.release().table.columns)
    with pytest.raises(ValueError, match="input_features is not equal"):
        anonymizer.get_feature_names_out(["a", "b"])
    with pytest.raises(ValueError, match="feature names should match"):
        anonymizer.transform(X.assign(diagnosis="flu"))


def test_labels_of_a_representative_are_named_as_they_are_released():
    X, y = people(3000, 0)
    anonymizer = PrivateAnonymizer(epsilon=3.0, **PUBLIC, representative="bounds").fit(X, y)
    released = list(anonymizer.release().table.columns)
    assert "age_low" in released
    assert anonymizer.get_feature_names_out().tolist() == released == list(anonymizer.transform(X).columns)


def test_an_array_keeps_its_places_without_the_unit():
    X, y = with_persons(3000, 0)
    numbers = X[["person", "age", "pay"]].to_numpy(float)
    anonymizer = PrivateAnonymizer(
        epsilon=3.0, bounds={"x1": (18, 90), "x2": (0.0, 50.0, 100.0)}, labels=["no", "yes"], unit="x0"
    ).fit(numbers, y)
    assert anonymizer.get_feature_names_out().tolist() == ["x1", "x2"]
    assert anonymizer.transform(numbers[:9]).shape == (9, 2)
    assert anonymizer.set_output(transform="pandas").transform(numbers[:9]).columns.tolist() == ["x1", "x2"]


def test_a_model_is_not_trained_on_the_records_themselves_by_accident():
    X, y = people(3000, 0)
    anonymizer = PrivateAnonymizer(epsilon=3.0, **PUBLIC)
    with pytest.raises(ParameterError, match=r"fit\(X, y\)\.release\(\)"):
        anonymizer.fit_transform(X, y)
    with pytest.raises(ParameterError, match="not private"):
        make_pipeline(anonymizer, TableEncoder(), LogisticRegression()).fit(X, y)
    assert not hasattr(anonymizer, "privacy_")  # and nothing was spent


def test_a_pipeline_of_fitted_parts_predicts_from_cells(fitted):
    X, y = people(3000, 1)
    made = fitted.release()
    model = make_pipeline(TableEncoder(), LogisticRegression(max_iter=500)).fit(made.table, made.target)
    served = make_pipeline(FrozenEstimator(fitted), FrozenEstimator(model))
    assert served.fit(X, y).score(X, y) > 0.8


def test_it_says_what_it_takes():
    tags = PrivateAnonymizer().__sklearn_tags__()
    assert tags.input_tags.categorical and tags.input_tags.string and tags.input_tags.allow_nan
    assert tags.target_tags.required
    assert tags.transformer_tags is not None and tags.estimator_type is None


def test_columns_may_be_labelled_by_numbers():
    records = np.random.default_rng(0).integers(0, 50, (600, 3))
    bounds = dict.fromkeys("012", (0, 50))
    anonymizer = PrivateAnonymizer(epsilon=1, bounds=bounds, labels=[0, 1])
    released = anonymizer.fit(pd.DataFrame(records), (records[:, 0] > 25).astype(int)).release().table
    assert list(released.columns) == [0, 1, 2]
