# SPDX-License-Identifier: Apache-2.0
"""Regions are equal on every backend: in memory, in parts of Parquet files, and in DuckDB; Spark has its own tests."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tests.counted_regions import FLOOR, NAMES, K, N, anonymizer, assert_same_regions, in_memory, people

import sfumato.duckdb
import sfumato.parquet
from sfumato import AnonymizedClassifier, LDiversity, MondrianAnonymizer, ParameterError
from sfumato.errors import InputError
from sfumato.models import TableEncoder


@pytest.fixture(scope="module")
def table():
    return people()


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
    assert_same_regions(one, fitted.partition_.regions)


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
