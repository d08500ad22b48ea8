# SPDX-License-Identifier: Apache-2.0
"""Histograms are exact sums of records and channels per bin."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from partition_cases import GUIDE_KINDS, Case, cases, in_examples

from sfumato.partition import histogram
from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.guides import CHANNELS, Guide
from sfumato.partition.histogram import Shape
from sfumato.partition.records import as_words, make_layout, pack_records
from sfumato.partition.scoring import make_scratch
from twins import naive

AddRecords = Callable[..., None]

pytestmark = pytest.mark.twins
both_twins = pytest.mark.parametrize("add_records", [naive.add_records, histogram.add_records], ids=["naive", "fast"])


def count(add_records: AddRecords, case: Case, *runs: tuple[int, int]) -> np.ndarray:
    """Histogram of some runs of records, of all when none is named."""
    records = case.records
    places = naive.block_places(case.layout, case.guide, records.dense.shape[1])
    out = np.zeros_like(case.histogram)
    for start, stop in runs or [(0, case.n_records)]:
        add_records(records, start, stop, Shape(case.layout, out.shape[1], *places), out)
    return out


def small_case(dense: bool, coded: bool, weighted: bool) -> Case:
    """Four records: ages 20, 30, 20, missing; colours 1, 0, 1, 1."""
    ages = bin_numbers(np.array([20, 30, 20, 0]), np.array([False, False, False, True]))
    colours = bin_categories(np.array([1, 0, 1, 1]), None, 2)
    guide = Guide(
        CHANNELS,
        np.array([[5], [-7], [100], [1]]) if dense else None,
        [np.array([0, 2, 2, 1], np.uint8)] if coded else [],
        [3] if coded else [],
        np.ones(dense + 3 * coded),
    )
    weights = np.array([1, 10, 0, 3]) if weighted else None
    return Case([ages[0], colours[0]], [ages[1], colours[1]], guide, weights)


@both_twins
@pytest.mark.parametrize(
    ("dense", "coded", "weighted", "expected"),
    [
        (True, False, False, [[2, 105], [1, -7], [1, 1], [1, -7], [3, 106]]),
        (False, True, False, [[2, 1, 0, 1], [1, 0, 0, 1], [1, 0, 1, 0], [1, 0, 0, 1], [3, 1, 1, 1]]),
        (False, False, False, [[2], [1], [1], [1], [3]]),
        (True, False, True, [[2, 5, 1], [1, -70, 10], [1, 3, 3], [1, -70, 10], [3, 8, 4]]),
        (False, True, True, [[2, 1, 0, 0, 1], [1, 0, 0, 10, 10], [1, 0, 3, 0, 3], [1, 0, 0, 10, 10], [3, 1, 3, 0, 4]]),
        (True, True, False,
         [[2, 105, 1, 0, 1], [1, -7, 0, 0, 1], [1, 1, 0, 1, 0], [1, -7, 0, 0, 1], [3, 106, 1, 1, 1]]),
    ],
)  # fmt: skip
def test_sums_worked_out_on_paper(
    add_records: AddRecords, dense: bool, coded: bool, weighted: bool, expected: list[list[int]]
) -> None:
    assert count(add_records, small_case(dense, coded, weighted)).tolist() == expected


@pytest.mark.parametrize("kind", GUIDE_KINDS)
def test_twins_count_the_same(kind: str) -> None:
    @in_examples(30)
    @given(case=cases(kind=kind))
    def compare(case: Case) -> None:
        np.testing.assert_array_equal(count(histogram.add_records, case), count(naive.add_records, case))

    compare()


@both_twins
def test_every_record_is_counted_once_per_column(add_records: AddRecords) -> None:
    @in_examples()
    @given(case=cases())
    def check(case: Case) -> None:
        out = count(add_records, case)
        per_column = np.add.reduceat(out, case.layout.offsets[:-1])
        assert (per_column[:, 0] == case.n_records).all()
        assert (per_column == per_column[0]).all()

    check()


@both_twins
def test_runs_of_records_add_up_to_the_whole(add_records: AddRecords) -> None:
    @in_examples(30)
    @given(case=cases())
    def check(case: Case) -> None:
        n = case.n_records
        runs = [(0, n // 3), (n // 3, n // 2), (n // 2, n)]
        np.testing.assert_array_equal(count(add_records, case, *runs), count(add_records, case))

    check()


@in_examples(30)
@given(case=cases())
def test_a_sibling_is_the_parent_less_the_other(case: Case) -> None:
    middle = case.n_records // 3
    parent, small, large = (
        count(histogram.add_records, case, run) for run in [(0, case.n_records), (0, middle), (middle, case.n_records)]
    )
    out = np.full_like(parent, -1)
    histogram.subtract(parent, small, out)
    np.testing.assert_array_equal(out, large)
    histogram.subtract(parent, small, parent)  # in place, as the grower does
    np.testing.assert_array_equal(parent, large)


@both_twins
def test_sums_beyond_the_precision_of_floats_stay_exact(add_records: AddRecords) -> None:
    column = bin_categories(np.zeros(3, np.int32), None, 1)
    guide = Guide(CHANNELS, np.full((3, 1), 2**53), channel_weights=np.ones(1))
    case = Case([column[0]], [column[1]], guide, np.array([1, 1, 255]))
    assert count(add_records, case).tolist() == [[3, 257 * 2**53, 257]]
    odd = Guide(CHANNELS, np.array([[2**53], [1], [2**53]]), channel_weights=np.ones(1))
    assert count(add_records, Case([column[0]], [column[1]], odd)).tolist() == [[3, 2**54 + 1]]


@both_twins
def test_codes_of_two_bytes_and_a_coded_block_of_many_classes(add_records: AddRecords) -> None:
    codes = np.array([4999, 0, 4999, 256], np.uint16)
    bins, _ = bin_categories(codes, None, 5000)
    classes = np.array([299, 256, 299, 0], np.uint16)
    case = Case([bins], [codes], Guide(CHANNELS, None, [classes], [300], np.ones(300)))
    out = count(add_records, case)
    filled = {(row, entry): int(out[row, entry]) for row, entry in zip(*np.nonzero(out), strict=True)}
    assert filled == {(4999, 0): 2, (0, 0): 1, (256, 0): 1, (4999, 300): 2, (0, 257): 1, (256, 1): 1}


# -- records -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_columns", "dtype", "padded"), [(1, np.uint8, 8), (8, np.uint8, 8), (9, np.uint8, 16), (5, np.uint16, 8)]
)
def test_records_are_padded_to_whole_words(n_columns: int, dtype: type, padded: int) -> None:
    columns = [np.array([j, 1, 2], dtype) for j in range(n_columns)]
    records = pack_records(columns)
    assert (records.codes.shape, records.codes.dtype) == ((3, padded), dtype)
    assert records.codes[0].tolist() == [*range(n_columns), *[0] * (padded - n_columns)]
    assert as_words(records.codes).shape == (3, padded * np.dtype(dtype).itemsize // 8)
    assert (records.n_records, records.dense.shape, records.weights.shape) == (3, (3, 0), (0,))
    assert records.rows.tolist() == [0, 1, 2]


def test_one_wide_column_widens_all_codes() -> None:
    records = pack_records([np.array([1], np.uint8), np.array([700], np.uint16)], [np.array([3], np.uint8)])
    assert records.codes.dtype == np.uint16
    assert records.codes[0, :3].tolist() == [1, 700, 3]
    bins = [bin_categories(np.zeros(1, np.int32), None, n)[0] for n in (2, 701)]
    assert make_layout(bins).n_mask_words == 11


def test_counting_and_summing_in_one_addition_equals_the_naive_twin() -> None:
    rng = np.random.default_rng(0)
    column = bin_numbers(rng.integers(0, 7, 200))
    values = rng.integers(0, 1 << histogram.PACKED_VALUE_BITS, (200, 1))
    values[:50] = (1 << histogram.PACKED_VALUE_BITS) - 1
    case = Case([column[0]], [column[1]], Guide(CHANNELS, values, channel_weights=np.ones(1)))
    packed = np.zeros(column[0].n_bins, np.int64)
    out = np.zeros((column[0].n_bins, 2), np.int64)
    histogram.add_one_channel(case.records, 0, 200, case.layout.offsets, packed, out)
    np.testing.assert_array_equal(out, count(naive.add_records, case))
    assert not packed.any()


def one_channel_case(rng: np.random.Generator) -> Case:
    """Seven columns, some with a single code, one with hundreds of categories, one channel."""
    n = 60
    columns = [bin_numbers(rng.integers(0, width, n)) for width in (1, 7, 40, 1, 3)]
    columns += [bin_categories(rng.permutation(300)[:n], None, 300), bin_categories(np.zeros(n, np.int32), None, 1)]
    values = rng.integers(0, 1 << histogram.PACKED_VALUE_BITS, (n, 1))
    bins, codes = zip(*columns, strict=True)
    return Case(list(bins), list(codes), Guide(CHANNELS, values, channel_weights=np.ones(1)))


@pytest.mark.parametrize("seed", range(5))
def test_the_ends_of_a_run_hold_its_codes_and_meet_where_they_are_equal(seed: int) -> None:
    case = one_channel_case(np.random.default_rng(seed))
    ends = np.zeros((2, case.records.codes.shape[1]), case.records.codes.dtype)
    for start, stop in [(0, 60), (10, 13), (5, 6)]:
        codes = case.records.codes[start:stop]
        histogram.find_ends(as_words(case.records.codes), start, stop, as_words(ends))
        assert (ends[0] <= codes.min(axis=0)).all() and (codes.max(axis=0) <= ends[1]).all()
        np.testing.assert_array_equal(ends[0] == ends[1], (codes == codes[0]).all(axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_counting_only_columns_that_vary_equals_the_naive_twin_and_leaves_nothing_behind(seed: int) -> None:
    case = one_channel_case(np.random.default_rng(seed))
    records, offsets = case.records, case.layout.offsets
    packed, out = np.zeros(offsets[-1], np.int64), np.zeros((offsets[-1], 2), np.int64)
    scratch = make_scratch(case.layout, 2, 1)
    ends = np.zeros((2, records.codes.shape[1]), records.codes.dtype)
    for start, stop in [(0, 60), (10, 13), (5, 6), (20, 60)]:
        histogram.find_ends(as_words(records.codes), start, stop, as_words(ends))
        scratch.lowest[:] = ends[0, : case.layout.n_columns]
        scratch.highest[:] = np.minimum(ends[1, : case.layout.n_columns], np.diff(offsets) - 1)
        histogram.add_varying_columns(records, start, stop, offsets, packed, scratch, out)
        np.testing.assert_array_equal(out, count(naive.add_records, case, (start, stop)))
        codes = records.codes[start:stop, : case.layout.n_columns]
        np.testing.assert_array_equal(scratch.lowest, codes.min(axis=0))
        np.testing.assert_array_equal(scratch.highest, codes.max(axis=0))
        histogram.clear_between(out, offsets, scratch.lowest, scratch.highest)
        assert not packed.any() and not out.any()


def test_a_full_batch_of_the_largest_values_does_not_run_into_the_count() -> None:
    n = histogram.PACKED_RECORDS * 2 + 3
    largest = (1 << histogram.PACKED_VALUE_BITS) - 1
    out = np.zeros((1, 2), np.int64)
    records = pack_records([np.zeros(n, np.uint8)], dense=np.full((n, 1), largest))
    histogram.add_one_channel(records, 0, n, np.array([0, 1]), np.zeros(1, np.int64), out)
    assert out.tolist() == [[n, n * largest]]
