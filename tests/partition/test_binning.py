# SPDX-License-Identifier: Apache-2.0
"""Bins are a function of the multiset of values, and codes say which bin a value is in."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import in_examples, random_missing, random_numbers, seeds, sizes

from sfumato.partition import binning
from sfumato.partition.binning import MAX_CODES, Bins, bin_categories, code_type, most_frequent, shared_codes
from sfumato.partition.distinct_values import sorted_distinct
from sfumato.partition.records import make_layout
from twins import naive

BinNumbers = Callable[..., tuple[Bins, np.ndarray]]

pytestmark = pytest.mark.twins
both_twins = pytest.mark.parametrize("bin_numbers", [naive.bin_numbers, binning.bin_numbers], ids=["naive", "fast"])


def assert_same_bins(one: Bins, other: Bins) -> None:
    assert (one.is_ordered, one.has_missing) == (other.is_ordered, other.has_missing)
    for name in ("values", "low", "high"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


# -- numbers: the twins --------------------------------------------------------------------------------------


@in_examples(100)
@given(seed=seeds, n=sizes(), max_bins=st.sampled_from([255, 10, 4, 2, 1]))
def test_twins_cut_the_same_bins(seed: int, n: int, max_bins: int) -> None:
    random = np.random.default_rng(seed)
    values, missing = random_numbers(random, n), random_missing(random, n)
    slow_bins, slow_codes = naive.bin_numbers(values, missing, max_bins=max_bins)
    bins, codes = binning.bin_numbers(values, missing, max_bins=max_bins)
    assert_same_bins(bins, slow_bins)
    assert codes.dtype == slow_codes.dtype
    np.testing.assert_array_equal(codes, slow_codes)


extremes = [0.0, 1.0, -1.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 1e-300, 2.0**53 + 2]
any_floats = st.lists(st.sampled_from(extremes) | st.floats(allow_nan=False, allow_infinity=False), max_size=60)
any_integers = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=60)


@in_examples(100)
@given(
    values=any_floats.map(lambda v: np.array(v, np.float64) + 0.0) | any_integers.map(lambda v: np.array(v, np.int64)),
    share_missing=st.sampled_from([None, 0.0, 0.5, 1.0]),
)
def test_twins_count_the_same_distinct_values(values: np.ndarray, share_missing: float | None) -> None:
    missing = None if share_missing is None else np.random.default_rng(0).random(len(values)) < share_missing
    distinct, counts = sorted_distinct(values, missing)
    plain, plain_counts = np.unique(values if missing is None else values[~missing], return_counts=True)
    assert distinct.dtype == plain.dtype
    np.testing.assert_array_equal(distinct, plain)
    np.testing.assert_array_equal(counts, plain_counts)


@in_examples(100)
@given(
    values=st.lists(st.sampled_from([-1e9, -2.5, 0.0, 0.5, 0.75, 1e9]) | st.floats(-50, 50), min_size=1, max_size=80),
    max_bins=st.integers(2, 12),
)
def test_twins_cut_sorted_values_as_their_counts_are_cut(values: list[float], max_bins: int) -> None:
    own = np.array(values) + 0.0
    bins, _ = binning.bin_numbers(own, max_bins=max_bins)
    assert_same_bins(
        bins, binning.bin_counts(*np.unique(own, return_counts=True), has_missing=False, max_bins=max_bins)
    )


@in_examples(100)
@given(
    values=any_floats.map(lambda v: np.array(v, np.float64) + 0.0) | any_integers.map(lambda v: np.array(v, np.int64)),
    keep=st.integers(1, 7),
)
def test_twins_find_the_same_bin_for_every_value(values: np.ndarray, keep: int) -> None:
    if not len(values):
        return
    high = np.unique(np.append(values[::keep], values.max()))
    codes = binning.search_bins(values, high, np.uint8)
    np.testing.assert_array_equal(codes, np.searchsorted(high, values))


@in_examples()
@given(seed=seeds, n=sizes(), max_bins=st.sampled_from([255, 7]))
def test_the_order_of_the_rows_changes_nothing(seed: int, n: int, max_bins: int) -> None:
    random = np.random.default_rng(seed)
    values, missing = random_numbers(random, n), random.random(n) < 0.2
    order = random.permutation(n)
    bins, codes = binning.bin_numbers(values, missing, max_bins=max_bins)
    again, shuffled = binning.bin_numbers(values[order], missing[order], max_bins=max_bins)
    assert_same_bins(again, bins)
    np.testing.assert_array_equal(shuffled, codes[order])


@both_twins
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_few_distinct_values_get_a_bin_each(bin_numbers: BinNumbers, dtype: type) -> None:
    bins, codes = bin_numbers(np.array([40, 20, 40, -3, 30], dtype))
    assert bins.values.tolist() == bins.low.tolist() == bins.high.tolist() == [-3, 20, 30, 40]
    assert bins.values.dtype == dtype
    assert codes.tolist() == [3, 1, 3, 0, 2]
    assert codes.dtype == np.uint8


@both_twins
def test_missing_has_the_last_code_and_what_stands_in_its_place_is_ignored(bin_numbers: BinNumbers) -> None:
    missing = np.array([False, True, False, True])
    for stands_there in (0, 7, -(10**6), 10**18):
        bins, codes = bin_numbers(np.array([5, stands_there, 9, 0]), missing)
        assert (bins.values.tolist(), codes.tolist()) == ([5, 9], [0, 2, 1, 2])
        assert (bins.has_missing, bins.missing_bin, bins.n_values, bins.n_bins) == (True, 2, 2, 3)
    bins, codes = bin_numbers(np.array([0.5, 1e300, 0.25, -7.5]), missing)
    assert (bins.values.tolist(), codes.tolist()) == ([0.25, 0.5], [1, 2, 0, 2])


@both_twins
def test_no_missing_values_means_no_missing_code(bin_numbers: BinNumbers) -> None:
    for missing in (None, np.zeros(3, np.bool_)):
        bins, codes = bin_numbers(np.array([1.5, 2.5, 1.5]), missing)
        assert (bins.has_missing, bins.missing_bin, bins.n_bins) == (False, -1, 2)
        assert codes.tolist() == [0, 1, 0]


@both_twins
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_a_column_of_missing_values_has_one_code(bin_numbers: BinNumbers, dtype: type) -> None:
    bins, codes = bin_numbers(np.zeros(4, dtype), np.ones(4, np.bool_))
    assert (bins.n_values, bins.n_bins, bins.missing_bin) == (0, 1, 0)
    assert codes.tolist() == [0, 0, 0, 0]
    assert bins.values.dtype == dtype


@both_twins
def test_a_bin_stands_for_its_most_frequent_value_and_the_lowest_on_ties(bin_numbers: BinNumbers) -> None:
    bins, _ = bin_numbers(np.array([1, 2, 2, 3, 3, 4]), max_bins=1)
    assert (bins.values.tolist(), bins.low.tolist(), bins.high.tolist()) == ([2], [1], [4])
    bins, _ = bin_numbers(np.array([1.5, 2.5, 3.5, 3.5]), max_bins=1)
    assert bins.values.tolist() == [3.5]


@both_twins
def test_integers_that_floats_cannot_tell_apart_get_bins_of_their_own(bin_numbers: BinNumbers) -> None:
    base = 2**60
    values = np.array([base + 1, base, base + 3, base + 1, -base, -base - 1])
    bins, codes = bin_numbers(values)
    assert bins.values.tolist() == [-base - 1, -base, base, base + 1, base + 3]
    assert codes.tolist() == [3, 2, 4, 3, 1, 0]


@both_twins
def test_extreme_integers_are_binned(bin_numbers: BinNumbers) -> None:
    extremes = np.iinfo(np.int64)
    bins, codes = bin_numbers(np.array([extremes.max, extremes.min, 0]), np.array([False, False, True]))
    assert bins.values.tolist() == [extremes.min, extremes.max]
    assert codes.tolist() == [1, 0, 2]


@both_twins
def test_whole_floats_are_cut_like_the_integers_they_equal(bin_numbers: BinNumbers) -> None:
    whole = np.random.default_rng(0).integers(-500, 500, 400)
    as_integers, codes = bin_numbers(whole, max_bins=20)
    as_floats, same_codes = bin_numbers(whole.astype(np.float64), max_bins=20)
    np.testing.assert_array_equal(codes, same_codes)
    np.testing.assert_array_equal(as_integers.values, as_floats.values)
    assert as_floats.values.dtype == np.float64


# -- numbers: what cutting at quantiles means ----------------------------------------------------------------


@both_twins
def test_distinct_values_are_shared_out_evenly(bin_numbers: BinNumbers) -> None:
    values = np.random.default_rng(1).permutation(120) * 0.37
    bins, codes = bin_numbers(values, max_bins=12)
    assert np.bincount(codes).tolist() == [10] * 12
    np.testing.assert_array_equal(bins.low, np.sort(values)[::10])


@in_examples()
@given(seed=seeds, n=sizes(), max_bins=st.integers(1, 12))
def test_no_bin_outgrows_its_share_before_its_last_value(seed: int, n: int, max_bins: int) -> None:
    values = random_numbers(np.random.default_rng(seed), n)
    bins, _ = binning.bin_numbers(values, max_bins=max_bins)
    assert 1 <= bins.n_bins <= max_bins
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= max_bins:
        return
    share = Fraction(n, max_bins)
    capped = {value: min(Fraction(count), share) for value, count in zip(distinct, counts.tolist(), strict=True)}
    one_bin = sum(capped.values()) / max_bins
    for low, high in zip(bins.low, bins.high, strict=True):
        assert sum(capped[value] for value in distinct if low <= value < high) < one_bin


@both_twins
def test_a_value_most_records_have_leaves_the_bins_to_the_others(bin_numbers: BinNumbers) -> None:
    # Capital gains look like this: nine in ten are zero, and the others matter.
    values = np.concatenate([np.zeros(9000, np.int64), np.arange(1, 1001) * 17])
    bins, codes = bin_numbers(values, max_bins=50)
    assert bins.high[0] == 0
    assert bins.n_bins >= 40
    assert np.bincount(codes)[1:].max() <= 30


@in_examples()
@given(seed=seeds, n=sizes(), max_bins=st.sampled_from([255, 6]))
def test_codes_follow_the_values_and_every_value_lies_in_its_bin(seed: int, n: int, max_bins: int) -> None:
    random = np.random.default_rng(seed)
    values, missing = random_numbers(random, n), random.random(n) < 0.3
    bins, codes = binning.bin_numbers(values, missing, max_bins=max_bins)
    present, own = values[~missing], codes[~missing]
    assert (np.diff(own[np.argsort(present, kind="stable")].astype(int)) >= 0).all()
    assert ((bins.low[own] <= present) & (present <= bins.high[own])).all()
    assert set(own.tolist()) == set(range(bins.n_values))
    assert np.isin(bins.values, present).all()
    assert (bins.low[1:] > bins.high[:-1]).all()
    assert (codes[missing] == bins.missing_bin).all()


@both_twins
def test_codes_take_two_bytes_only_where_one_does_not_do(bin_numbers: BinNumbers) -> None:
    values = np.arange(400) * 0.5
    missing = np.arange(400) == 0
    _, narrow = bin_numbers(values, missing, max_bins=255)
    bins, wide = bin_numbers(values, missing, max_bins=256)
    assert (narrow.dtype, narrow[0]) == (np.uint8, 255)
    assert (wide.dtype, wide[0]) == (np.uint16, 256)
    assert bins.n_bins == 257


@both_twins
@pytest.mark.parametrize("step", [1, 0.5], ids=["whole numbers", "fractions"])
def test_256_values_take_every_code_of_one_byte(bin_numbers: BinNumbers, step: float) -> None:
    bins, codes = bin_numbers(np.arange(256) * step, max_bins=256)
    assert (bins.n_bins, codes.dtype) == (256, np.uint8)
    assert codes.tolist() == list(range(256))


def test_as_many_bins_as_there_are_codes_are_possible() -> None:
    values = np.random.default_rng(5).normal(size=70_000)
    missing = np.arange(70_000) == 0
    bins, codes = binning.bin_numbers(values, missing, max_bins=MAX_CODES - 1)
    assert codes.dtype == np.uint16
    assert codes[0] == bins.missing_bin <= MAX_CODES - 1
    assert (np.diff(codes[1:][np.argsort(values[1:])].astype(int)) >= 0).all()


# -- ends of the bins as shares of the range -----------------------------------------------------------------


@in_examples()
@given(seed=seeds, n=sizes(), max_bins=st.sampled_from([255, 6]))
def test_positions_are_the_exact_shares_of_the_range_rounded(seed: int, n: int, max_bins: int) -> None:
    values = random_numbers(np.random.default_rng(seed), n)
    bins, _ = binning.bin_numbers(values, max_bins=max_bins)
    first, span = Fraction(values.min().item()), Fraction(values.max().item()) - Fraction(values.min().item())
    for ends, shares in zip((bins.low, bins.high), bins.positions, strict=True):
        exact = [float((Fraction(end) - first) / span) if span else 0.0 for end in ends.tolist()]
        np.testing.assert_allclose(shares, exact, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**60, 2**60 + 1, 2**60 + 4]),
        np.array([-(2**63), 0, 2**63 - 1]),
        np.array([-1e308, 0.0, 1e308]),
        np.array([0.0, 5e-324, 1e-323]),
    ],
    ids=["beyond the precision of floats", "the whole range of integers", "a range that overflows", "denormals"],
)
def test_positions_of_extreme_columns_run_from_zero_to_one(values: np.ndarray) -> None:
    low, high = binning.bin_numbers(values)[0].positions
    span = Fraction(values[2].item()) - Fraction(values[0].item())
    middle = float((Fraction(values[1].item()) - Fraction(values[0].item())) / span)
    np.testing.assert_allclose(low, [0.0, middle, 1.0], rtol=1e-12)
    np.testing.assert_array_equal(low, high)


def test_positions_of_constant_and_empty_columns_are_zero() -> None:
    assert binning.bin_numbers(np.full(3, 7.5))[0].positions[0].tolist() == [0.0]
    empty, _ = binning.bin_numbers(np.zeros(3), np.ones(3, np.bool_))
    assert [part.tolist() for part in empty.positions] == [[], []]


# -- categories ----------------------------------------------------------------------------------------------


def test_every_category_is_a_bin_and_missing_comes_last() -> None:
    indexes, missing = np.array([2, 0, 0, 1], np.int32), np.array([False, False, True, False])
    bins, codes = bin_categories(indexes, missing, 3)
    assert (bins.is_ordered, bins.values.tolist(), bins.missing_bin) == (False, [0, 1, 2], 3)
    assert codes.tolist() == [2, 0, 3, 1]
    assert indexes.tolist() == [2, 0, 0, 1]
    bins, codes = bin_categories(indexes, None, 3)
    assert (bins.missing_bin, codes.tolist()) == (-1, [2, 0, 0, 1])


@pytest.mark.parametrize(("n_categories", "dtype"), [(256, np.uint8), (257, np.uint16), (5000, np.uint16)])
def test_thousands_of_categories_fit_two_bytes(n_categories: int, dtype: Any) -> None:
    indexes = np.random.default_rng(2).permutation(n_categories).astype(np.int32)
    bins, codes = bin_categories(indexes, None, n_categories)
    assert (codes.dtype, bins.n_bins) == (dtype, n_categories)
    np.testing.assert_array_equal(codes, indexes)


def test_the_largest_number_of_categories_keeps_room_for_missing() -> None:
    indexes = np.arange(MAX_CODES, dtype=np.int32)
    missing = indexes == MAX_CODES - 1
    _, codes = bin_categories(indexes, missing, MAX_CODES - 1)
    np.testing.assert_array_equal(codes, indexes)


def test_more_categories_than_codes_share_bins_with_the_kept_one_before_them() -> None:
    kept = most_frequent(np.array([1, 5, 2, 5, 1]), n_most=2)
    assert kept.tolist() == [1, 3]
    assert shared_codes(kept, 5).tolist() == [0, 0, 0, 1, 1]


def test_code_types_hold_every_code() -> None:
    assert [code_type(n) for n in (1, 256, 257, MAX_CODES)] == [np.uint8, np.uint8, np.uint16, np.uint16]


# -- layout --------------------------------------------------------------------------------------------------


def test_a_layout_lays_the_columns_end_to_end() -> None:
    numbers, _ = binning.bin_numbers(np.array([10, 20, 40, 0]), np.array([False, False, False, True]))
    categories, _ = bin_categories(np.arange(70), None, 70)
    layout = make_layout([numbers, categories])
    assert layout.offsets.tolist() == [0, 4, 74]
    assert layout.missing.tolist() == [3, -1]
    assert layout.is_category.tolist() == [False, True]
    assert layout.n_values.tolist() == [3, 70]
    assert layout.low[:4].tolist() == [0.0, 1 / 3, 1.0, 0.0]
    assert (layout.n_columns, layout.n_mask_words) == (2, 2)
    assert make_layout([numbers]).n_mask_words == 1
