# SPDX-License-Identifier: Apache-2.0
"""The artifact: one bucket for every value, whatever the frame, and a document that says it all."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.backends.memory import MemorySource
from sfumato.errors import InputError, ParameterError
from sfumato.frames import read_table
from sfumato.generalization import Generalization, generalization_from_bins
from strategies import in_examples

from .cases import KINDS, bucket_by_document, cases, document_of, raw_table


def made_from(table, buckets, *, categorical=(), max_bins=255):
    """Make a generalization of all columns that are named in `buckets`."""
    source = MemorySource(read_table(table, categorical=categorical), list(buckets), max_bins=max_bins)
    return generalization_from_bins(source.columns, [np.array(b) for b in buckets.values()], floor=1)


def labels_of(values, buckets, **more):
    return made_from(pa.table({"x": values}), {"x": buckets}, **more).attributes[0].labels


@given(cases())
@in_examples()
def test_every_value_has_the_bucket_that_the_document_says(case):
    attributes = document_of(case.generalization)["attributes"]
    for place, attribute in enumerate(attributes):
        expected = [bucket_by_document(attribute, value) for value in case.values[attribute["name"]]]
        assert case.codes[:, place].tolist() == expected


@given(cases())
@in_examples()
def test_equal_values_have_equal_buckets_whatever_stands_beside_them(case):
    codes = case.codes
    for place, name in enumerate(case.kinds):
        alone = case.generalization.codes(case.table.slice(0, 1))[0, place]
        assert alone == codes[0, place]
        bucket_of = {}
        for value, bucket in zip(case.values[name], codes[:, place].tolist(), strict=True):
            assert bucket_of.setdefault(value, bucket) == bucket


@given(cases(kinds=("integer", "whole", "float", "date", "datetime", "zoned datetime", "duration", "time")))
@in_examples()
def test_buckets_of_numbers_and_moments_rise_with_the_values(case):
    codes = case.codes
    for place, name in enumerate(case.kinds):
        pairs = [(v, b) for v, b in zip(case.values[name], codes[:, place].tolist(), strict=True) if v is not None]
        ranked = [bucket for _, bucket in sorted(pairs, key=lambda pair: pair[0])]
        assert ranked == sorted(ranked)


@given(cases())
@in_examples()
def test_the_document_gives_the_same_generalization_back(case):
    text = case.generalization.to_json()
    again = Generalization.from_json(text)
    assert again == case.generalization
    assert again.fingerprint == case.generalization.fingerprint == json.loads(text)["fingerprint"]
    assert again.to_json() == text


@given(cases(kinds=tuple(kind for kind in KINDS if kind not in ("whole", "time") and "code" not in kind)))
@in_examples()
def test_every_kind_of_frame_gives_the_same_buckets(case):
    expected = case.codes
    raw = raw_table(case)
    for library in ("pandas", "polars", "pyarrow"):
        frame = raw.to(library)
        assert np.array_equal(case.generalization.codes(frame), expected)
        for output in ("labels", "codes"):
            found = pa.table(case.generalization.transform(frame, output)).select(list(case.kinds))
            assert found.to_pydict() == case.expected(output)


@given(cases())
@in_examples()
def test_representatives_lie_in_their_own_buckets(case):
    released = case.generalization.transform(case.table, "representatives")
    assert released.schema.types == case.table.schema.types
    rewritten = case.generalization.codes(released)
    for place, attribute in enumerate(case.generalization.attributes):
        # No category may stand for rare ones: "other" becomes missing.
        expected = [attribute.missing if is_other(attribute, b) else b for b in case.codes[:, place].tolist()]
        assert rewritten[:, place].tolist() == expected


def is_other(attribute, bucket):
    return attribute.kind == "category" and bucket == attribute.unseen and not attribute.members[bucket]


@given(cases())
@in_examples()
def test_batches_give_what_the_whole_table_gives(case):
    table = case.table
    batches = table.to_batches(max_chunksize=3)
    parts = list(case.generalization.transform_batches([*batches, table.slice(0, 0)], "labels"))
    assert all(isinstance(part, pa.RecordBatch) for part in parts)
    assert pa.Table.from_batches(parts).to_pydict() == case.expected("labels")


@given(cases(), st.integers(0, 2**16))
@in_examples()
def test_coarsening_is_one_generalization_after_the_other(case, seed):
    generator = np.random.default_rng(seed)
    new = {}
    for attribute in case.generalization.attributes:
        values = np.sort(generator.integers(0, 3, attribute.n_value_buckets))
        missing = generator.integers(0, 4, attribute.n_buckets - attribute.n_value_buckets)
        new[attribute.name] = [*values.tolist(), *missing.tolist()]
    coarse = case.generalization.coarsened(new)
    for place, attribute in enumerate(coarse.attributes):
        joined = np.array(new[attribute.name])[case.codes[:, place]]
        found = coarse.codes(case.table)[:, place]
        pairs = set(zip(joined.tolist(), found.tolist(), strict=True))
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
        assert attribute.n_buckets == len(set(new[attribute.name]))
    assert Generalization.from_json(coarse.to_json()) == coarse


@given(cases())
@in_examples()
def test_fine_codes_have_the_buckets_of_their_records(case):
    names = list(case.kinds)
    codes = [name for name, kind in case.kinds.items() if kind.endswith("code")]
    source = MemorySource(read_table(case.table, categorical=codes), names)  # exact bins: few values
    for place, column in enumerate(source.columns):
        mask = case.generalization.buckets_of(column)
        assert np.array_equal(mask[column.codes], case.codes[:, place])


@given(cases())
@in_examples()
def test_labels_are_different_and_can_be_seen(case):
    for attribute in case.generalization.attributes:
        assert len(set(attribute.labels)) == attribute.n_buckets
        assert all(label.strip() and label.isprintable() for label in attribute.labels)


def test_outer_buckets_are_open_in_labels():
    assert labels_of([19, 20, 63, 64], [0, 1, 1, 2]) == ("19 and under", "20-63", "64 and over")
    assert labels_of([19, 20, 63, None], [0, 1, 1, 2]) == ("19 and under", "20 and over", "missing")
    assert labels_of([-7, -3, 2, 9], [0, 1, 1, 2]) == ("-5 and under", "-4 to 5", "6 and over")
    assert labels_of([0.25, 0.75, 2.5], [0, 1, 2]) == ("0.5 and under", "over 0.5 to 2", "over 2")


def test_whole_floats_are_named_like_integers():
    assert labels_of([19.0, 20.0, 63.0, 64.0, None], [0, 1, 1, 2, 2]) == (
        "19 and under",
        "20-63",
        "64 and over or missing",
    )


def test_categories_are_named_by_their_members():
    found = labels_of(["Associate", "High school", "PhD", None], [0, 0, 1, 1])
    assert found == ("{Associate, High school}", "PhD or missing")
    assert labels_of(["a", "b"], [0, 0]) == ("not collected",)
    many = labels_of([f"c{i:02}" for i in range(20)], [0] * 19 + [1])
    assert many == ("{c00, c01, c02, c03, c04, c05, c06, c07, and 11 more}", "c19")


def test_an_order_that_the_type_declares_orders_the_label():
    levels = pd.Categorical(["low", "high", "middle"], ["low", "middle", "high"], ordered=True)
    found = made_from(pd.DataFrame({"x": levels}), {"x": [0, 1, 1]}).attributes[0]
    assert found.categories == ("low", "middle", "high")
    assert found.labels == ("{low, middle}", "high")


def test_moments_are_named_in_iso_form():
    days = [dt.date(1990, 5, 1), dt.date(1999, 7, 1), dt.date(2004, 3, 9), dt.date(2012, 1, 1)]
    assert labels_of(days, [0, 1, 2, 2]) == ("before 1995-01-01", "1995-01-01 to 1999-12-31", "2000-01-01 or later")
    instants = [dt.datetime(2024, 5, 1, 8, tzinfo=dt.UTC), dt.datetime(2024, 5, 1, 17, tzinfo=dt.UTC)]
    assert labels_of(instants, [0, 1]) == ("before 2024-05-01 12:00 UTC", "2024-05-01 12:00 UTC or later")
    lengths = [dt.timedelta(hours=1), dt.timedelta(hours=9)]
    assert labels_of(lengths, [0, 1]) == ("under 6:00:00", "6:00:00 or longer")
    assert labels_of([dt.time(8), dt.time(18)], [0, 1]) == ("before 12:00", "12:00 or later")


def test_equal_looking_labels_are_told_apart():
    assert labels_of(["a", "b", "{a, b}"], [0, 0, 1]) == ("{a, b}", "{a, b} (2)")


@pytest.mark.parametrize(
    ("low", "high", "cut"), [(37, 52, 40), (63, 64, 63), (2**53, 2**53 + 1, 2**53), (-(2**63), 2**63 - 1, 0), (1, 9, 5)]
)
def test_thresholds_of_integers_have_the_fewest_digits(low, high, cut):
    assert made_from(pa.table({"x": [low, high]}), {"x": [0, 1]}).attributes[0].cuts == (cut,)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2, unique=True).map(sorted))
@in_examples(200)
def test_no_shorter_number_separates_two_floats(pair):
    low, high = pair
    low, high = low + 0.0, high + 0.0
    if low == int(low) and high == int(high):
        low, high = low + 0.25, high + 0.25
    if not low < high:
        return
    cut = made_from(pa.table({"x": [low, high]}), {"x": [0, 1]}).attributes[0].cuts[0]
    assert low <= cut < high
    exponent = Decimal(repr(cut)).normalize().as_tuple().exponent if cut else 400
    step = Decimal(10) ** (exponent + 1)
    first = (Decimal(low) / step).to_integral_value("ROUND_CEILING") * step
    if cut and len(Decimal(repr(cut)).normalize().as_tuple().digits) < 15:
        assert not (low <= float(first) < high), "a multiple of a larger power of ten lies between them"


def test_unseen_values_go_where_most_records_are():
    table = pa.table({"x": ["a"] * 3 + ["b"] * 5 + ["c"]})
    made = made_from(table, {"x": [0, 1, 2]})
    assert made.codes(pa.table({"x": ["z", None]})).ravel().tolist() == [1, 1]
    assert 'Missing values, though none was missing, count as "b".' in str(made.describe())
    assert 'Values not listed count as "b".' in str(made.describe())


def test_columns_that_are_no_attributes_pass_through_untouched():
    frame = pd.DataFrame({"y": [1.5, 2.5], "x": [1, 9], "z": ["p", "q"]}, index=["r", "s"])
    made = made_from(frame, {"x": [0, 1]})
    found = made.transform(frame, "labels")
    assert list(found.columns) == ["y", "x", "z"]
    assert list(found.index) == ["r", "s"]
    assert found["y"].equals(frame["y"])
    assert found["x"].tolist() == ["5 and under", "6 and over"]
    assert made.transform(frame)["x"].dtype == np.int32
    assert frame["x"].tolist() == [1, 9]


def test_arrays_go_in_and_arrays_of_codes_come_out():
    array = np.array([[1.0, 5.0], [9.0, 7.0]])
    made = made_from(array, {"x0": [0, 1]})
    assert made.transform(array).tolist() == [[0.0, 5.0], [1.0, 7.0]]
    assert made.codes(array).dtype == np.int32


def test_what_is_not_collected_may_be_absent():
    table = pa.table({"x": [1, 2], "y": ["a", "b"]})
    made = made_from(table, {"x": [0, 1], "y": [0, 0]})
    assert made.n_buckets == (2, 1)
    assert made.codes(table.drop_columns(["y"])).tolist() == [[0, 0], [1, 0]]
    assert made.transform(table.drop_columns(["y"]), "labels").column_names == ["x"]
    with pytest.raises(InputError, match="lacks 1 of the 2 attributes of the generalization: 'x'"):
        made.codes(table.drop_columns(["x"]))


def test_exact_categories_do_not_leave_inside_a_type():
    frame = pd.DataFrame({"x": pd.Categorical(["a", "b", "c"])})
    found = made_from(frame, {"x": [0, 0, 1]}).transform(frame, "representatives")
    assert list(found["x"].cat.categories) == ["a", "c"]
    enum = pl.DataFrame({"x": pl.Series(["a", "b", "c"], dtype=pl.Enum(["a", "b", "c"]))})
    made = made_from(enum, {"x": [0, 0, 1]})
    assert made.transform(enum, "representatives")["x"].dtype == pl.Enum(["a", "c"])


def test_a_column_of_another_kind_is_refused():
    made = made_from(pa.table({"x": [1, 9]}), {"x": [0, 1]})
    with pytest.raises(InputError, match="'x' holds categories now and held numbers"):
        made.codes(pa.table({"x": ["1", "9"]}))
    coded = made_from(pa.table({"x": [1, 9]}), {"x": [0, 1]}, categorical=["x"])
    with pytest.raises(InputError, match="categories of another type"):
        coded.codes(pa.table({"x": ["1", "9"]}))
    dates = made_from(pa.table({"x": [dt.date(2000, 1, 1), dt.date(2001, 1, 1)]}), {"x": [0, 1]})
    with pytest.raises(InputError, match="holds datetimes now and held dates"):
        dates.codes(pa.table({"x": [dt.datetime(2000, 1, 1)]}))


def test_integers_and_floats_are_compared_exactly():
    integers = made_from(pa.table({"x": [2**53 + 3, 2**53 + 4]}), {"x": [0, 1]})
    assert integers.attributes[0].cuts == (2**53 + 3,)  # as a float it would be 2**53 + 4
    exact = [2.0**53, 2.0**53 + 2, 2.0**53 + 4, 2.0**63, -(2.0**64)]
    cut = integers.attributes[0].cuts[0]
    assert integers.codes(pa.table({"x": exact})).ravel().tolist() == [int(Decimal(v) > cut) for v in exact]
    floats = made_from(pa.table({"x": [-1e300, 1.5, 1e19, 1e300]}), {"x": [0, 1, 2, 3]})
    whole = [-(2**63), 0, 2**63 - 1]
    cuts = floats.attributes[0].cuts
    found = floats.codes(pa.table({"x": whole})).ravel().tolist()
    assert found == [sum(Decimal(value) > Decimal(cut) for cut in cuts) for value in whole]


@pytest.mark.parametrize(
    ("buckets", "message"),
    [
        ([0, 1, 0], "has a bucket that is interrupted by another"),
        ([0, 1], "has 3 codes and 2 were given a bucket"),
    ],
)
def test_buckets_that_cannot_be_are_refused(buckets, message):
    with pytest.raises(ParameterError, match=message):
        made_from(pa.table({"x": [1, 2, 3]}), {"x": buckets})


def test_a_bucket_that_is_not_there_cannot_be_coarsened():
    made = made_from(pa.table({"x": [1, 2, 3]}), {"x": [0, 1, 2]})
    with pytest.raises(ParameterError, match="has 3 buckets and 2 were given a place"):
        made.coarsened({"x": [0, 0]})
    with pytest.raises(ParameterError, match="no attribute 'y'"):
        made.coarsened({"y": [0]})
    with pytest.raises(ParameterError, match="interrupted"):
        made.coarsened({"x": [0, 1, 0]})
    with pytest.raises(ParameterError, match="output='names'"):
        made.transform(pa.table({"x": [1]}), "names")


def test_an_all_missing_column_needs_no_collecting():
    table = pa.table({"x": pa.nulls(3), "y": pa.array([None] * 3, pa.int64())})
    made = made_from(table, {"x": [0], "y": [0]})
    assert [a.labels for a in made.attributes] == [("not collected",)] * 2
    assert made.codes(pa.table({"x": ["a"], "y": [5]})).tolist() == [[0, 0]]
    assert made.transform(table, "representatives").to_pydict() == {"x": [None] * 3, "y": [None] * 3}
