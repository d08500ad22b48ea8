# SPDX-License-Identifier: Apache-2.0
"""The Hilbert curve visits neighbors one after the other, and is cut where it loses least."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import in_examples

from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.group_summaries import collect, summarize, widths
from sfumato.partition.hilbert_curve import best_runs, find_runs, grid_coordinates, hilbert_keys, make_grid, sort_keys
from sfumato.partition.records import make_layout
from twins import naive_runs

pytestmark = pytest.mark.twins

GRIDS = [(1, 1), (1, 5), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2), (8, 1), (12, 1)]


def as_number(words):
    """Join the words of a key, the most significant first, to one whole number."""
    number = 0
    for word in words:
        number = number << 64 | int(word)
    return number


def random_table(seed, n_records, n_columns, *, n_different=6):
    """Codes, layout: numbers, categories, skew, constants and missing values."""
    generator = np.random.default_rng(seed)
    bins, codes = [], []
    for _ in range(n_columns):
        values = np.round(generator.exponential(2, n_records), 1) if generator.random() < 0.5 else None
        missing = generator.random(n_records) < generator.choice([0, 0.2])
        if values is None:
            drawn = generator.integers(0, generator.integers(1, n_different + 1), n_records)
            known, indexes = np.unique(drawn, return_inverse=True)
            own, code = bin_categories(indexes.astype(np.int32), missing, len(known))
        else:
            own, code = bin_numbers(values, missing, max_bins=n_different)
        bins.append(own)
        codes.append(code)
    return np.column_stack(codes), make_layout(bins)


@pytest.mark.parametrize(("n_columns", "n_bits"), GRIDS)
def test_consecutive_keys_are_neighbors_in_space(n_columns, n_bits):
    grid = np.array(list(product(range(1 << n_bits), repeat=n_columns)), np.uint16)
    keys = hilbert_keys(grid, n_bits)[:, 0]
    order = np.argsort(keys)
    assert keys[order].tolist() == list(range(len(grid)))  # every place has one point and every point one place
    steps = np.abs(np.diff(grid[order].astype(int), axis=0))
    assert (steps.sum(axis=1) == 1).all()  # exactly one coordinate changes, by 1


@pytest.mark.parametrize(("n_columns", "n_bits"), [*GRIDS, (12, 8), (18, 10), (5, 16), (8, 8)])
def test_keys_of_many_words_equal_their_twin(n_columns, n_bits):
    points = np.random.default_rng(n_bits).integers(0, 1 << n_bits, (30, n_columns)).astype(np.uint16)
    keys = hilbert_keys(points, n_bits)
    assert keys.shape[1] == -(-n_columns * n_bits // 64)
    for point, key in zip(points.tolist(), keys, strict=True):
        assert as_number(key) == naive_runs.hilbert_key(point, n_bits)
        assert naive_runs.hilbert_point(as_number(key), n_columns, n_bits) == tuple(point)


def test_neighbors_on_a_curve_of_two_words_are_neighbors_in_space():
    generator = np.random.default_rng(0)
    for _ in range(200):
        key = int.from_bytes(generator.bytes(12)) % (2**96 - 1)
        here, there = (np.array(naive_runs.hilbert_point(at, 12, 8)) for at in (key, key + 1))
        assert np.abs(here - there).sum() == 1
        assert [as_number(k) for k in hilbert_keys(np.array([here, there], np.uint16), 8)] == [key, key + 1]


def test_threads_give_the_same_keys(monkeypatch):
    from sfumato.partition import hilbert_curve

    points = np.random.default_rng(1).integers(0, 256, (1000, 12)).astype(np.uint16)
    alone = hilbert_keys(points, 8)
    monkeypatch.setattr(hilbert_curve, "_SHARED_FROM", 10)
    assert np.array_equal(hilbert_keys(points, 8, n_threads=3), alone)


@in_examples(40)
@given(seed=st.integers(0, 10_000), n_columns=st.integers(1, 5))
def test_every_code_has_a_place_of_its_own_in_the_order_of_its_values(seed, n_columns):
    _, layout = random_table(seed, 60, n_columns, n_different=40)
    grid = make_grid(layout)
    for first, stop in zip(layout.offsets[:-1], layout.offsets[1:], strict=True):
        places = grid.places[first:stop].astype(int)
        assert (np.diff(places) > 0).all()
        assert places.max(initial=0) < 1 << grid.n_bits


def test_numbers_stand_where_their_values_do_and_crowded_ones_side_by_side():
    bins, _ = bin_numbers(np.array([0, 1, 2, 3, 1000, 998, 999]))
    grid = make_grid(make_layout([bins]))
    assert grid.n_bits == 5
    assert grid.places.tolist() == [0, 1, 2, 3, 29, 30, 31]
    assert grid_coordinates(np.array([[6], [7], [65535]]), grid).ravel().tolist() == [31, 31, 31]


@in_examples(40)
@given(seed=st.integers(0, 10_000), n_words=st.integers(1, 3))
def test_a_key_falls_in_the_last_run_that_starts_at_or_before_it(seed, n_words):
    generator = np.random.default_rng(seed)
    keys = generator.integers(0, 4, (60, n_words)).astype(np.uint64)
    order, first = sort_keys(keys)
    numbers = [as_number(key) for key in keys]
    assert [numbers[i] for i in order] == sorted(numbers)
    assert [numbers[order[i]] for i in first] == sorted(set(numbers))
    starts = keys[order[first[:: generator.integers(1, 4)]]]
    starting = [as_number(key) for key in starts]
    expected = [max(0, sum(start <= number for start in starting) - 1) for number in numbers]
    assert find_runs(keys, starts).tolist() == expected


def prepared(codes):
    """Different records in the order of their codes, and how often each occurs."""
    return np.unique(codes, axis=0, return_counts=True)


@in_examples(120)
@given(seed=st.integers(0, 100_000), n_records=st.integers(2, 26), n_columns=st.integers(1, 3), k=st.integers(2, 8))
def test_no_way_of_cutting_loses_less_than_the_one_found_by_its_twin(seed, n_records, n_columns, k):
    codes, layout = random_table(seed, n_records, n_columns)
    k = min(k, n_records)
    rows, counts = prepared(codes)
    starts, loss = best_runs(rows, counts, layout, k)
    assert loss == pytest.approx(naive_runs.best_runs(rows, counts, layout, k), abs=1e-9)
    stops = [*starts[1:], len(rows)]
    sizes = [int(counts[a:b].sum()) for a, b in zip(starts, stops, strict=True)]
    assert starts[0] == 0
    assert min(sizes) >= k
    own = [size * naive_runs.total_width(rows[a:b], layout) for size, a, b in zip(sizes, starts, stops, strict=True)]
    assert sum(own) == pytest.approx(loss, abs=1e-9)
    for a, b in zip(starts, stops, strict=True):  # no run could be cut into two
        assert not any(counts[a:c].sum() >= k and counts[c:b].sum() >= k for c in range(a + 1, b))


@in_examples(30)
@given(seed=st.integers(0, 100_000), n_records=st.integers(40, 90), exact_up_to=st.integers(1, 4))
def test_large_k_gives_safe_runs_that_lose_at_least_the_optimum(seed, n_records, exact_up_to):
    codes, layout = random_table(seed, n_records, 2, n_different=20)
    rows, counts = prepared(codes)
    starts, loss = best_runs(rows, counts, layout, 9, exact_up_to=exact_up_to)
    sizes = np.add.reduceat(counts, starts)
    assert sizes.min() >= 9
    _, least = best_runs(rows, counts, layout, 9)
    assert loss >= least - 1e-9
    assert loss <= 4 * least + 1e-9


def test_the_loss_is_the_one_groups_are_reported_with():
    codes, layout = random_table(5, 300, 4, n_different=30)
    rows, counts = prepared(codes)
    starts, loss = best_runs(rows, counts, layout, 7)
    group = np.repeat(np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows))), counts).astype(np.int32)
    groups = collect(group, len(starts))
    own = widths(summarize(np.repeat(rows, counts, axis=0), groups, layout), layout)
    assert (own.sum(axis=1) * groups.sizes).sum() == pytest.approx(loss)


def test_where_records_differ_runs_have_k_to_2k_minus_1_records():
    bins, codes = bin_numbers(np.arange(200) ** 2)
    starts, _ = best_runs(codes[:, None], np.ones(200, np.int64), make_layout([bins]), 10)
    sizes = np.diff(starts, append=200)
    assert sizes.min() >= 10
    assert sizes.max() <= 19


def test_equal_records_stay_together_even_beyond_2k():
    bins, codes = bin_numbers(np.array([1, 2, 3]))
    starts, loss = best_runs(codes[:, None], np.array([2, 50, 2]), make_layout([bins]), 2)
    assert starts.tolist() == [0, 1, 2]
    assert loss == 0
