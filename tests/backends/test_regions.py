# SPDX-License-Identifier: Apache-2.0
"""Regions are equal on every backend that counts them: in memory, in parts of Parquet files, and in DuckDB."""

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import sfumato.duckdb
import sfumato.parquet
from sfumato import (
    AnonymizedClassifier,
    AnonymizedRegressor,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    ParameterError,
)
from sfumato.errors import InputError
from sfumato.models import TableEncoder

K, FLOOR, N = 25, 8, 24_000  # more records than weights are found with: one group in several is looked at
NAMES = ["age", "rate", "job", "born"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "age": rng.integers(18, 90, N), "rate": rng.normal(size=N).round(2),
        "job": rng.choice(["nurse", "smith", "clerk", "astronaut", None], N, p=[0.3, 0.3, 0.3, 0.0001, 0.0999]),
        "born": pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
    })  # fmt: skip
    is_nurse = (frame["job"] == "nurse").to_numpy()
    frame["income"] = np.where((frame["age"] > 50) ^ is_nurse, "high", "low")
    frame["wage"] = 10.0 * frame["age"] + 100.0 * is_nurse * frame["rate"] + 90.0 * rng.normal(size=N)
    return frame


def anonymizer(kind):
    """Groups that a target of numbers guides leave nothing for the columns to say; classes leave enough."""
    if kind == "numbers":
        return MondrianAnonymizer(K, quasi_identifiers=NAMES, identifiers=["wage"], representative="median")
    return ModelGuidedAnonymizer(K, quasi_identifiers=NAMES, guide_kind="labels", representative="median")


def in_memory(table, kind):
    """Return the regions of the same groups, counted at once."""
    settings = {"anonymizer": anonymizer(kind), "floor": FLOOR, "random_state": 0}
    if kind == "classes":
        settings["guide_estimator"] = "labels"
        model = AnonymizedClassifier(make_pipeline(TableEncoder(), LogisticRegression(max_iter=300)), **settings)
        return model.fit(table[NAMES], table["income"]).regions_
    model = AnonymizedRegressor(make_pipeline(TableEncoder(), LinearRegression()), **settings)
    settings["anonymizer"].set_params(identifiers=None)
    return model.fit(table[NAMES], table["wage"]).regions_


def in_parts(place, table, kind, folder):
    """Return the regions of the table in another place, of which few records are held at once."""
    target = "income" if kind == "classes" else "wage"
    arrow, made = pa.Table.from_pandas(table[[*NAMES, target]]), anonymizer(kind)
    asked = {"target": target, "target_kind": kind, "floor": FLOOR, "most_held": 6_000}
    asked["guide_column"] = target if kind == "classes" else None
    if place == "duckdb":
        source = duckdb.connect().from_arrow(arrow)
        sfumato.duckdb.fit_transform(made, source, folder / "out.parquet", **asked)
        return made
    for number, start in enumerate(range(0, N, 5_000)):
        pq.write_table(arrow.slice(start, 5_000), folder / f"part{number}.parquet", row_group_size=1_300)
    sources = [folder / f"part{number}.parquet" for number in range(5)]
    sfumato.parquet.fit_transform(made, sources, folder / "out.parquet", **asked)
    return made


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("place", ["parquet", "duckdb"])
def test_regions_equal_those_in_memory(place, kind, table, tmp_path):
    one = in_memory(table, kind)
    fitted = in_parts(place, table, kind, tmp_path)
    other = fitted.partition_.regions
    assert one.n_groups == other.n_groups > 100
    assert np.array_equal(one.sizes, other.sizes) and one.floor == other.floor == FLOOR
    assert np.array_equal(one.target.n_in_class, other.target.n_in_class)
    assert np.array_equal(one.target.means, other.target.means)
    for a, b in zip(one.columns, other.columns, strict=True):
        assert (a.name, a.fallback, a.moment) == (b.name, b.fallback, b.moment)
        assert np.array_equal(a.values, b.values) and np.array_equal(a.missing, b.missing)
        assert "astronaut" not in list(() if b.categories is None else b.categories)
        for left, right in zip(a.counts, b.counts, strict=True):
            assert np.array_equal(left, right)
    assert np.array_equal(one.weights.columns, other.weights.columns)
    assert np.array_equal(one.weights.classes, other.weights.classes) and one.weights.group == other.weights.group
    assert np.ptp(one.weights.columns) > 0.1
    drawn = [regions.draw(np.random.default_rng(0), n_threads=2) for regions in (one, other)]
    assert np.array_equal(drawn[0].shares, drawn[1].shares) and np.array_equal(drawn[0].numbers, drawn[1].numbers)


def test_a_model_learns_from_a_table_larger_than_memory(table, tmp_path):
    fitted = in_parts("parquet", table, "classes", tmp_path)
    model = make_pipeline(TableEncoder(), LogisticRegression(max_iter=300))
    trained = AnonymizedClassifier(model, random_state=0).fit_partition(fitted.partition_, n_records=5_000)
    raw = model.fit(table[NAMES], table["income"]).score(table[NAMES], table["income"])
    assert trained.score(table[NAMES], table["income"]) > raw - 0.02


def test_targets_that_cannot_be_counted_are_refused(table, tmp_path):
    frame = table.drop(columns="wage").assign(gap=np.where(table["age"] > 20, 1.0, np.nan))
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")

    def fit(made=None, **settings):
        made = MondrianAnonymizer(K, quasi_identifiers=NAMES) if made is None else made
        sfumato.parquet.fit_transform(made, tmp_path / "t.parquet", tmp_path / "out.parquet", **settings)

    with pytest.raises(ParameterError, match="target names 'salary', which is not a column"):
        fit(target="salary")
    with pytest.raises(ParameterError, match="target names 'age', which is not a column of the table or is a quasi"):
        fit(target="age")
    with pytest.raises(ParameterError, match="target_kind='ranks': expected 'classes' or 'numbers'"):
        fit(target="income", target_kind="ranks")
    with pytest.raises(ParameterError, match="floor=0: expected an integer of at least 1"):
        fit(target="income", floor=0)
    with pytest.raises(InputError, match="the target 'gap' has missing values"):
        fit(target="gap")
    with pytest.raises(InputError, match="the target 'income' holds no numbers"):
        fit(target="income", target_kind="numbers")
    diverse = MondrianAnonymizer(K, quasi_identifiers=["age"], criteria=[LDiversity(2, sensitive="income")])
    with pytest.raises(ParameterError, match="target with criteria on persons or sensitive values"):
        fit(diverse, target="income")
    assert not (tmp_path / "out.parquet").exists()
