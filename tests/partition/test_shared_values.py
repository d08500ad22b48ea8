# SPDX-License-Identifier: Apache-2.0
"""What may be published of bins: values that several records share, or that no record has."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.round_numbers import NUMBER_UNITS, number_between
from sfumato.partition.shared_values import runs_of
from strategies import in_examples

whole = st.lists(st.integers(-50, 50) | st.integers(-(10**9), 10**9), min_size=1, max_size=120)
fractions = st.lists(st.floats(-1e9, 1e9, width=32) | st.sampled_from([0.25, 0.5, 7.0]), min_size=1, max_size=120)


@given(values=whole | fractions, floor=st.integers(1, 12), max_bins=st.sampled_from([3, 20, 255]))
@in_examples(300)
def test_no_published_number_is_held_by_one_record_alone(values, floor, max_bins):
    array = np.array(values, np.float64 if isinstance(values[0], float) else np.int64)
    bins, _ = bin_numbers(array, max_bins=max_bins, floor=floor)
    for value in bins.shared.values.tolist():
        n_holders = int((array == value).sum())
        # One record's value may only be left where it is all there is, or a floor of one asks for no more.
        assert n_holders != 1 or floor == 1 or len(array) == 1 or not _has_room(array)


def _has_room(array):
    distinct = np.unique(array)
    return len(distinct) > 1 and bool((distinct[1:] > np.nextafter(distinct[:-1].astype(float), np.inf)).all())


@given(values=whole, floor=st.integers(1, 12))
@in_examples(200)
def test_the_published_value_lies_in_the_bin_named_as_its_own_or_is_nobodys(values, floor):
    array = np.array(values, np.int64)
    bins, codes = bin_numbers(array, max_bins=7, floor=floor)
    shared = bins.shared
    for value, own, is_single in zip(shared.values, shared.own, shared.is_single, strict=True):
        holders = codes[array == value]
        assert (own == -1) == (len(holders) == 0)
        if own >= 0:
            assert (holders == own).all()
        if is_single:
            assert bins.low[own] == bins.high[own] == value


@in_examples(100)
@given(n_records=st.lists(st.integers(1, 9), min_size=1, max_size=60), floor=st.integers(1, 20))
def test_runs_follow_each_other_and_have_enough_records(n_records, floor):
    runs = runs_of(np.array(n_records), floor)
    assert runs[0][0] == 0
    assert runs[-1][1] == len(n_records)
    assert all(first[1] == second[0] for first, second in pairwise(runs))
    totals = [sum(n_records[first:stop]) for first, stop in runs]
    assert len(runs) == 1 or min(totals) >= floor


@in_examples(100)
@given(low=st.integers(-(10**12), 10**12), gap=st.integers(1, 10**6))
def test_a_number_between_two_lies_strictly_between_or_there_is_none(low, gap):
    found = number_between(low, low + gap, NUMBER_UNITS, 1)
    assert (found is None) == (gap == 1)
    assert found is None or low < found < low + gap


@given(values=whole, floor=st.integers(2, 12))
@in_examples(200)
def test_published_ends_enclose_the_published_values_and_hide_rare_extremes(values, floor):
    array = np.array(values, np.int64)
    bins, codes = bin_numbers(array, max_bins=20, floor=floor)
    shared = bins.shared
    assert (shared.low <= shared.high).all()
    inner = (codes > 0) & (codes < len(shared.values) - 1)
    is_outer_run = (shared.low[codes] == shared.low[0]) | (shared.high[codes] == shared.high[-1])
    inside = inner & ~is_outer_run
    assert (shared.low[codes][inside] <= array[inside]).all()
    assert (array[inside] <= shared.high[codes][inside]).all()
    for end, value in ((0, array.min()), (1, array.max())):
        assert shared.is_open[end] == ((array == value).sum() < floor)


def test_a_single_outlier_is_published_nowhere():
    incomes = np.r_[np.arange(20_000, 60_000, 10), 49_419_111]
    shared = bin_numbers(incomes, floor=10)[0].shared
    for published in (shared.values, shared.low, shared.high):
        assert published.max() < 61_000
    assert shared.is_open.tolist() == [True, True]


def test_categories_that_few_records_have_are_not_common():
    indexes = np.repeat([0, 1, 2], [12, 3, 40])
    bins, _ = bin_categories(indexes, None, 3, floor=10)
    assert bins.shared.is_common.tolist() == [True, False, True]
    assert bins.shared.most_common == 2


@given(values=st.lists(st.floats(0, 100, width=32), min_size=2, max_size=60), floor=st.integers(2, 8))
@in_examples(200)
def test_numbers_of_single_precision_are_nobodys_after_they_are_written(values, floor):
    array = np.array(values, np.float32)
    shared = bin_numbers(array.astype(np.float64), floor=floor)[0].shared
    for value, own in zip(shared.values, shared.own, strict=True):
        if own == -1:
            assert not (array == np.float32(value)).any()
