# SPDX-License-Identifier: Apache-2.0
"""Records move to their side of a split, all of them, in their order."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from partition_cases import Case, in_examples, random_case, seeds, sizes

from sfumato.partition import dividing
from sfumato.partition.records import Records, as_words
from twins import naive

GoesLeft = Callable[..., bool]

pytestmark = pytest.mark.twins
both_twins = pytest.mark.parametrize("goes_left", [naive.goes_left, dividing.goes_left], ids=["naive", "fast"])


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
        fast = [bool(dividing.goes_left(code, last_bin, missing, side, mask)) for code in own]
        assert fast == [naive.goes_left(code, last_bin, missing, side, mask) for code in own]
        n_left = dividing.count_left(case.records.codes, 0, n, column, last_bin, missing, side, mask)
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
    dividing.move_nodes(
        source.codes, as_words(source.codes), source.dense, source.weights, source.rows,
        as_words(target.codes), target.dense, target.weights, target.rows,
        starts, stops, columns, last_bins, case.layout.missing, missing_left, masks, n_left,
    )  # fmt: skip
    for name, before, after in zip(("codes", "dense", "weights", "rows"), source.parts, target.parts, strict=True):
        np.testing.assert_array_equal(after, before[expected] if len(before) else before, err_msg=name)


@in_examples()
@given(seed=seeds, n=sizes())
def test_twins_move_records_from_both_ends_to_the_same_places(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    case = random_case(seed, n, 3)
    source, target, other = case.records, case.records.empty_like(), case.records.empty_like()
    (column,), (last_bin,), (missing_left,), (mask,) = random_splits(random, case, 1)
    rule = (column, last_bin, case.layout.missing[column], missing_left, mask)
    moved = (source.codes, as_words(source.codes), source.dense, source.weights, source.rows)
    n_left = dividing.count_left(source.codes, 0, n, *rule)
    places = [(as_words(to.codes), to.dense, to.weights, to.rows) for to in (target, other)]
    dividing.move_records(*moved, *places[0], 0, n, *rule, 0, n_left)
    middle = int(random.integers(0, n + 1))
    dividing.move_records(*moved, *places[1], 0, middle, *rule, 0, n_left)
    dividing.move_records_from_the_end(*moved, *places[1], middle, n, *rule, n_left, n)
    for name, one, two in zip(("codes", "dense", "weights", "rows"), target.parts, other.parts, strict=True):
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
    given_split = (starts, stops, columns, last_bins, case.layout.missing, missing_left, masks, value_of_row)
    counts = np.zeros((len(starts), 2, n_values), np.int64)
    dividing.count_values_by_side(records.codes, rows, *given_split, counts)
    assert counts.tolist() == expected
    distinct = np.zeros((len(starts), 2, 1), np.int64)
    dividing.count_distinct_by_side(records.codes, rows, *given_split, np.full(n_values, -1), distinct)
    np.testing.assert_array_equal(distinct[:, :, 0], (np.array(expected) > 0).sum(axis=2))
