# SPDX-License-Identifier: Apache-2.0
"""What a single person has is in no generalization and in no export of one."""

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import minimize
from sfumato.backends.memory import MemorySource
from sfumato.frames import read_table
from sfumato.generalization import Generalization, generalization_from_bins
from sfumato.generalization.building import joined_runs
from sfumato.minimize import sweep_minimizers
from strategies import in_examples

from .cases import random_buckets

WORD, CODE, HIGHEST, LOWEST = "Canary of Alderney", 777_123, 49_419_111, -31_337


def people(n=600):
    """Make people, one of whom has a job, a code, an income and a debt that nobody else has."""
    generator = np.random.default_rng(3)
    jobs = generator.choice(["nurse", "smith", "teacher", "clerk"], n).astype(object)
    codes = generator.choice([10, 20, 30, 40, 50], n)
    income = generator.integers(10_000, 90_000, n)
    y = (income > 50_000) ^ (jobs == "nurse")
    jobs[0], codes[0], income[0], income[1] = WORD, CODE, HIGHEST, LOWEST
    return pa.table({"job": jobs, "code": codes, "income": income, "rate": income / 7}), y.astype(int)


def everything_written(generalization):
    """Return all that can leave: the document and every export."""
    polars = [str(expression) for output in ("labels", "codes") for expression in generalization.to_polars(output)]
    sql = [generalization.to_sql(dialect) for dialect in ("postgresql", "duckdb", "spark")]
    schemas = [json.dumps(generalization.to_json_schema(output)) for output in ("labels", "codes")]
    return [
        generalization.to_json(),
        str(generalization.describe()),
        generalization.to_form(),
        generalization.to_javascript(),
        *polars,
        *sql,
        *schemas,
    ]


def told(generalization):
    """Return which canaries are written anywhere."""
    texts = everything_written(generalization)
    canaries = [WORD, "Alderney", str(CODE), str(HIGHEST), str(LOWEST), f"{HIGHEST / 7:.2f}"[:9], str(LOWEST / 7)[:7]]
    return [canary for canary in canaries if any(canary in text for text in texts)]


def finest(floor):
    table, _ = people()
    source = MemorySource(read_table(table, categorical=["code"]), table.column_names)
    return generalization_from_bins(source.columns, [np.arange(c.bins.n_bins) for c in source.columns], floor=floor)


def test_the_canaries_would_be_found():
    assert WORD in told(finest(floor=1))
    assert str(CODE) in told(finest(floor=1))


def test_the_finest_generalization_tells_no_value_of_a_single_person():
    made = finest(floor=10)
    assert told(made) == []
    assert made.attribute("job").categories == ("clerk", "nurse", "smith", "teacher")
    assert made.n_buckets[2] > 30


@pytest.mark.parametrize(
    "minimizer",
    [
        minimize.PrivacyAwareTree(0.0, 200, min_samples_leaf=1),
        minimize.UniformMinimizer(50),
        minimize.FeatureSelectionMinimizer(4),
        minimize.AptMinimizer(1.0),
        minimize.IterativeMinimizer(0.0, n_buckets=50),
    ],
    ids=lambda own: type(own).__name__,
)
def test_no_minimizer_tells_a_value_of_a_single_person(minimizer):
    table, y = people()
    minimizer.set_params(categorical_features=["code"], random_state=0).fit(table, y)
    assert told(minimizer.generalization_) == []
    assert minimizer.generalization_.parameters["floor"] == 10


def test_no_point_of_a_sweep_tells_a_value_of_a_single_person():
    table, y = people()
    grid = {"alpha": [0.0], "max_leaves": [2, 200]}
    tree = minimize.PrivacyAwareTree(categorical_features=["code"], min_samples_leaf=1)
    swept = sweep_minimizers(tree, table, y, grid=grid)
    assert [point for point in swept.points if told(point.generalization)] == []


@given(st.integers(0, 2**32), st.integers(1, 12))
@in_examples()
def test_every_bucket_and_every_listed_category_has_the_floor(seed, floor):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(1, 80))
    values = generator.geometric(0.15, n)
    missing = generator.random(n) < generator.choice([0, 0.3])
    table = pa.table({"c": [f"c{v}" for v in values], "o": values})
    table = pa.table({name: pa.array(table[name].to_pylist(), mask=missing) for name in table.column_names})
    source = MemorySource(read_table(table), table.column_names)
    made = generalization_from_bins(source.columns, [random_buckets(c, generator) for c in source.columns], floor=floor)
    codes = made.codes(table)
    category = made.attributes[0]
    given_values = table["c"].to_pylist()
    if category.is_collected:
        assert all(given_values.count(listed) >= floor for listed in category.categories)
    for place, attribute in enumerate(made.attributes):
        sizes = np.bincount(codes[~missing, place], minlength=attribute.n_value_buckets)[: attribute.n_value_buckets]
        if attribute.n_value_buckets > 1:
            assert sizes.min() >= floor
    rare = {value for value in given_values if value is not None and given_values.count(value) < floor}
    if rare and category.is_collected:
        rows = [row for row, value in enumerate(given_values) if value in rare]
        assert set(codes[rows, 0]) == {category.unseen}
    assert Generalization.from_json(made.to_json()) == made


def test_rare_categories_share_a_bucket_called_other():
    table = pa.table({"town": ["a"] * 20 + ["b"] * 15 + [f"rare {i}" for i in range(12)]})
    source = MemorySource(read_table(table), ["town"])
    made = generalization_from_bins(source.columns, [np.arange(14)])
    assert made.attributes[0].labels == ("a", "b", "other")
    assert made.transform(pa.table({"town": ["rare 3", "never seen", "b"]}), "labels")["town"].to_pylist() == [
        "other",
        "other",
        "b",
    ]
    frame = pl.DataFrame({"town": ["rare 3", "never seen", "b", None]}).with_columns(made.to_polars())
    assert frame["town"].to_list() == ["other", "other", "b", "a"]


def test_rare_categories_that_are_too_few_together_join_the_largest_bucket():
    table = pa.table({"town": ["a"] * 20 + ["b"] * 15 + ["rare"] * 9})
    source = MemorySource(read_table(table), ["town"])
    assert generalization_from_bins(source.columns, [np.arange(3)]).attributes[0].unseen == 0


def test_a_column_without_a_common_category_is_not_collected():
    table = pa.table({"name": [f"person {i}" for i in range(40)] + [None] * 40})
    source = MemorySource(read_table(table), ["name"])
    made = generalization_from_bins(source.columns, [np.arange(41)])
    assert made.attributes[0].labels == ("not collected",)
    assert "person" not in made.to_json()


def test_a_category_that_is_called_other_keeps_its_own_label():
    table = pa.table({"town": ["other"] * 20 + [f"rare {i}" for i in range(12)]})
    source = MemorySource(read_table(table), ["town"])
    assert generalization_from_bins(source.columns, [np.arange(13)]).attributes[0].labels == ("other", "other (2)")


@pytest.mark.parametrize(
    ("sizes", "floor", "joined"),
    [
        ([1, 50, 50], 10, [0, 0, 1]),
        ([50, 50, 1], 10, [0, 1, 1]),
        ([50, 1, 20], 10, [0, 1, 1]),
        ([3, 3, 3], 10, [0, 0, 0]),
        ([5, 5, 5, 5], 10, [0, 0, 1, 1]),
        ([1, 1], 1, [0, 1]),
    ],
)
def test_small_buckets_join_the_smaller_neighbor(sizes, floor, joined):
    assert joined_runs(range(len(sizes)), np.array(sizes), floor) == joined
