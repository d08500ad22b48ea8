# SPDX-License-Identifier: Apache-2.0
"""Records move to their side of a split, all of them, in their order."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from partition_cases import Case, in_examples, random_case, seeds, sizes

from sfumato.partition.candidates import Rule, Splits, goes_left
from sfumato.partition.criterion_checks import count_distinct_by_side, count_values_by_side
from sfumato.partition.node_records import count_left, move_nodes, move_records
from sfumato.partition.records import Records
from twins import naive

GoesLeft = Callable[..., bool]

pytestmark = pytest.mark.twins
both_twins = pytest.mark.parametrize("goes_left", [naive.goes_left, goes_left], ids=["naive", "fast"])


def random_splits(random: np.random.Generator, case: Case, n_splits: int) -> tuple[np.ndarray, ...]:
    """Columns, last bins, sides of missing values and masks, whether or not such splits would ever be chosen."""
    layout = case.layout
    columns = random.integers(0, layout.n_columns, n_splits)
    widths = np.diff(layout.offsets)[columns]
    last_bins = np.where(layout.is_category[columns], -1, random.integers(0, widths))
    masks = random.integers(0, 2**64, (n_splits, layout.n_mask_words), np.uint64)
    return columns, last_bins, random.random(n_splits) < 0.5, masks


def random_nodes(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut n records into a few runs and return where they start and stop."""
    edges = np.unique(np.concatenate([[0, n], random.integers(0, n + 1, 3)]))
    return edges[:-1], edges[1:]


def sides_of(case: Case, records: Records, run: range, split: tuple[np.ndarray, ...], i: int) -> list[bool]:
    column, last_bin, missing_left, mask = (part[i] for part in split)
    missing = case.layout.missing[column]
    return [naive.goes_left(records.codes[row, column], last_bin, missing, missing_left, mask) for row in run]


# -- which side ----------------------------------------------------------------------------------------------


@both_twins
def test_ordered_codes_up_to_the_last_bin_go_left(goes_left: GoesLeft) -> None:
    mask = np.zeros(1, np.uint64)
    for dtype in (np.uint8, np.uint16):
        sides = [bool(goes_left(dtype(code), 2, 4, True, mask)) for code in range(5)]
        assert sides == [True, True, True, False, True]  # 4 is missing
        assert not goes_left(dtype(4), 2, 4, False, mask)
        assert not goes_left(dtype(4), 2, -1, True, mask)  # a column without missing values


@both_twins
def test_categories_go_where_their_bit_says(goes_left: GoesLeft) -> None:
    chosen = {0, 5, 63, 64, 127, 128, 191}
    mask = np.zeros(3, np.uint64)
    for code in chosen:
        mask[code // 64] |= np.uint64(1 << (code % 64))
    sides = {code for code in range(192) if goes_left(np.uint8(code), -1, -1, False, mask)}
    assert sides == chosen
    # The mask decides for missing values too: for categories missing is a code like any other.
    assert goes_left(np.uint16(5), -1, 5, False, mask)


@in_examples(30)
@given(seed=seeds, n=sizes())
def test_twins_send_every_code_to_the_same_side(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    case = random_case(seed, n, 3)
    columns, last_bins, missing_left, masks = random_splits(random, case, 5)
    for column, last_bin, side, mask in zip(columns, last_bins, missing_left, masks, strict=True):
        missing = case.layout.missing[column]
        own = case.columns[column]
        fast = [bool(goes_left(code, last_bin, missing, side, mask)) for code in own]
        assert fast == [naive.goes_left(code, last_bin, missing, side, mask) for code in own]
        n_left = count_left(case.records.codes, 0, n, Rule(column, last_bin, missing, side, mask))
        assert n_left == sum(fast)


# -- moving --------------------------------------------------------------------------------------------------


@in_examples()
@given(seed=seeds, n=sizes())
def test_dividing_moves_left_before_right_and_keeps_the_order_on_each_side(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    case = random_case(seed, n, 3)
    source, target = case.records, case.records.empty_like()
    starts, stops = random_nodes(random, n)
    split = random_splits(random, case, len(starts))
    expected: list[int] = []
    n_left = np.zeros(len(starts), np.int64)
    for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        run = range(start, stop)
        is_left = sides_of(case, source, run, split, i)
        n_left[i] = sum(is_left)
        expected += [row for row, left in zip(run, is_left, strict=True) if left]
        expected += [row for row, left in zip(run, is_left, strict=True) if not left]
    columns, last_bins, missing_left, masks = split
    splits = Splits(columns, last_bins, missing_left, masks, n_left)
    move_nodes(source, target, starts, stops, splits, case.layout.missing)
    for name, before, after in zip(("codes", "dense", "weights", "rows"), source, target, strict=True):
        np.testing.assert_array_equal(after, before[expected] if len(before) else before, err_msg=name)


@in_examples()
@given(seed=seeds, n=sizes())
def test_records_moved_in_two_chunks_are_where_they_are_moved_at_once(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    case = random_case(seed, n, 3)
    source, target, other = case.records, case.records.empty_like(), case.records.empty_like()
    (column,), (last_bin,), (missing_left,), (mask,) = random_splits(random, case, 1)
    rule = Rule(column, last_bin, case.layout.missing[column], missing_left, mask)
    n_left = count_left(source.codes, 0, n, rule)
    move_records(source, target, 0, n, rule, 0, n_left)
    middle = int(random.integers(0, n + 1))
    before = count_left(source.codes, 0, middle, rule)
    move_records(source, other, 0, middle, rule, 0, n_left)
    move_records(source, other, middle, n, rule, before, n_left + middle - before)
    for name, one, two in zip(("codes", "dense", "weights", "rows"), target, other, strict=True):
        np.testing.assert_array_equal(one, two, err_msg=name)


# -- counting both sides -------------------------------------------------------------------------------------


@in_examples()
@given(seed=seeds, n=sizes())
def test_twins_count_sensitive_values_and_persons_on_both_sides(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    case = random_case(seed, n, 3)
    records = case.records
    rows = random.permutation(n).astype(np.uint32)  # the record at a place is another row of the table
    starts, stops = random_nodes(random, n)
    columns, last_bins, missing_left, masks = random_splits(random, case, len(starts))
    n_values = int(random.integers(1, 6))
    value_of_row = random.integers(0, n_values, n).astype(np.int32)
    splits = list(zip(columns, last_bins, missing_left, masks, strict=True))
    expected = naive.count_by_side(
        records.codes, rows, starts, stops, splits, case.layout.missing, value_of_row, n_values
    )
    moved = records._replace(rows=rows)
    given_split = Splits(columns, last_bins, missing_left, masks, np.zeros(len(starts), np.int64))
    asked = (moved, starts, stops, given_split, case.layout.missing, value_of_row)
    counts = np.zeros((len(starts), 2, n_values), np.int64)
    count_values_by_side(*asked, counts)
    assert counts.tolist() == expected
    distinct = np.zeros((len(starts), 2, 1), np.int64)
    count_distinct_by_side(*asked, np.full(n_values, -1), distinct)
    np.testing.assert_array_equal(distinct[:, :, 0], (np.array(expected) > 0).sum(axis=2))
