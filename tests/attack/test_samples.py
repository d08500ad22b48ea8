# SPDX-License-Identifier: Apache-2.0
"""Three samples coded together: a code means the same value in each, whatever the frames are made of."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

from sfumato.attack import FamilySettings, Samples, reconstruct
from sfumato.attack.samples import bucket_span, samples_for
from sfumato.backends.memory import MemorySource
from sfumato.errors import InputError
from sfumato.frames import read_table
from sfumato.generalization import generalization_from_bins
from strategies import in_examples, tables

SETTINGS = FamilySettings(adversaries=("table",))


@in_examples()
@given(table=tables(min_records=6))
def test_samples_are_coded_as_the_whole_table_is(table):
    whole = table.to("pyarrow")
    parts = [whole.slice(0, 2), whole.slice(2, 2), whole.slice(4)]
    samples = Samples(*parts)
    for name in whole.column_names:
        joined, expected = samples.column(name), MemorySource(read_table(whole), [name]).columns[0]
        assert joined.codes.tolist() == expected.codes.tolist()
        assert joined.bins.values.tolist() == expected.bins.values.tolist()
        if joined.categories is not None:
            assert joined.categories.tolist() == expected.categories.tolist()


def test_samples_may_come_from_different_libraries():
    columns = {"job": ["nurse", "smith"], "age": [20, 30]}
    samples = Samples(pd.DataFrame(columns), pl.DataFrame({"job": ["clerk"], "age": [25]}), pa.table(columns))
    assert samples.column("job").codes.tolist() == [1, 2, 0, 1, 2]
    assert samples.column("age").codes.tolist() == [0, 2, 1, 0, 2]
    assert (samples.train, samples.validation, samples.test) == (slice(0, 2), slice(2, 3), slice(3, 5))


def test_a_sample_without_any_value_takes_the_kind_of_the_others():
    empty, full = pa.table({"x": pa.nulls(2)}), pa.table({"x": [1.5, 2.5]})
    column = Samples(full, empty, full).column("x")
    assert (column.kind, column.codes.tolist()) == ("number", [0, 1, 2, 2, 0, 1])


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ([1, 2], ["a", "b"], r"'x' holds different kinds of values in different tables \(category, number\)"),
        ([True, False], ["a", "b"], "'x' holds categories of several types"),
    ],
)
def test_samples_of_different_kinds_get_a_sentence(one, other, message):
    samples = Samples(pa.table({"x": one}), pa.table({"x": other}), pa.table({"x": one}))
    with pytest.raises(InputError, match=message):
        samples.column("x")


def test_the_fingerprint_changes_with_any_value_and_any_split():
    frame = pa.table({"x": [1, 2, 3, 4]})
    same = Samples(frame, frame, frame).fingerprint(["x"])
    assert Samples(frame.slice(0), frame, frame).fingerprint(["x"]) == same
    changed = pa.table({"x": [1, 2, 4, 3]})
    assert Samples(changed, frame, frame).fingerprint(["x"]) != same
    assert Samples(frame, frame.slice(0, 3), pa.concat_tables([frame.slice(3), frame])).fingerprint(["x"]) != same


def test_numbers_that_are_categories_to_the_generalization_are_read_as_such():
    frame = pa.table({"code": [3, 1, 2, 1]})
    columns = MemorySource(read_table(frame, categorical=["code"]), ["code"]).columns
    generalization = generalization_from_bins(columns, [np.array([0, 1, 0])], floor=1)
    samples = samples_for(generalization, frame, frame, frame)
    assert samples.column("code").kind == "category"
    assert samples.buckets(generalization, "code")[:4].tolist() == [0, 0, 1, 0]


def test_buckets_are_those_of_the_generalization_even_where_bins_straddle_a_threshold():
    frame = pa.table({"x": np.random.default_rng(0).normal(size=500)})
    columns = MemorySource(read_table(frame), ["x"]).columns
    generalization = generalization_from_bins(columns, [np.arange(columns[0].bins.n_bins) * 3 // 255], floor=1)
    samples = Samples(frame, frame, frame, max_bins=4)
    low, high = bucket_span(generalization, samples.column("x"))
    assert (low != high).any()
    assert samples.buckets(generalization, "x")[:500].tolist() == generalization.codes(frame)[:, 0].tolist()


def test_a_column_that_passes_through_helps_the_attacker_who_sees_it():
    generator = np.random.default_rng(2)
    secret = generator.choice(["x", "y", "z"], 200)
    frame = pa.table({"secret": secret, "copy": secret})
    columns = MemorySource(read_table(frame), ["secret"]).columns
    generalization = generalization_from_bins(columns, [np.zeros(3, int)], floor=1)
    samples = Samples(frame, frame, frame)
    assert reconstruct(generalization, samples, settings=SETTINGS).rate < 0.5
    assert reconstruct(generalization, samples, known=["copy"], settings=SETTINGS).rate == 1.0
