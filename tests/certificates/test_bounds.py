# SPDX-License-Identifier: Apache-2.0
"""The formulas agree with slow ones that follow their definitions, and hold where the truth is known."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato.certificates.bounds import (
    balanced_bound,
    binomial_lower,
    binomial_upper,
    cell_bounds,
    count_cells,
    fullest_windows,
)
from strategies import in_examples

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60)


def arrays_of(pairs):
    cells, values = (np.array(column) for column in zip(*pairs, strict=True))
    return cells, np.unique(values, return_inverse=True)[1]


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (54, 100), (9_990, 10_000)])
@pytest.mark.parametrize("error", [0.05, 0.001])
def test_the_upper_end_is_the_chance_at_which_so_few_hits_have_the_chance_of_the_error(hits, trials, error):
    upper = binomial_upper(hits, trials, error)
    assert binom.cdf(hits, trials, upper) == pytest.approx(error, rel=1e-6)
    assert binomial_lower(trials - hits, trials, error) == pytest.approx(1 - upper, abs=1e-12)


def test_the_ends_of_all_and_no_hits_are_one_and_zero():
    assert binomial_upper(7, 7, 0.05) == 1.0
    assert binomial_lower(0, 7, 0.05) == 0.0


@in_examples(100)
@given(PAIRS)
def test_counts_are_those_of_their_definitions(pairs):
    cells, values = arrays_of(pairs)
    counts = count_cells(cells, 6, values)
    each = Counter(zip(cells.tolist(), values.tolist(), strict=True))
    most = [max((n for (cell, _), n in each.items() if cell == own), default=0) for own in range(6)]
    of_value = Counter(values.tolist())
    shares = [max((n / of_value[v] for (c, v), n in each.items() if c == own), default=0.0) for own in range(6)]
    assert counts.most.tolist() == most and counts.hits == sum(most)
    assert counts.of_cell.tolist() == [int((cells == own).sum()) for own in range(6)]
    assert counts.balanced == pytest.approx(sum(shares) / len(of_value))


@in_examples(100)
@given(PAIRS)
def test_counts_of_many_cells_are_the_same_as_those_of_few(pairs):
    cells, values = arrays_of(pairs)
    few, many = count_cells(cells, 6, values), count_cells(cells, 1 << 23, values)
    assert few.hits == many.hits and few.balanced == pytest.approx(many.balanced)
    assert many.of_cell[:6].tolist() == few.of_cell.tolist()


@in_examples(100)
@given(PAIRS, st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_merging_cells_never_raises_a_bound(pairs, merged):
    cells, values = arrays_of(pairs)
    fine, coarse = count_cells(cells, 6, values), count_cells(np.array(merged)[cells], 3, values)
    assert coarse.hits <= fine.hits
    assert binomial_upper(coarse.hits, len(cells), 0.05) <= binomial_upper(fine.hits, len(cells), 0.05)
    assert balanced_bound(coarse, 0.05).upper <= balanced_bound(fine, 0.05).upper + 1e-12


@in_examples(100)  # the first call compiles
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), min_size=1, max_size=40),
    st.sampled_from([0.0, 1.0, 4.0, 7.5]),
)
def test_the_fullest_window_is_the_one_that_trying_all_finds(records, width):
    cells, values = (np.array(column) for column in zip(*sorted(records), strict=True))
    most, start = fullest_windows(cells, values.astype(float), 3, width)
    for cell in range(3):
        own = values[cells == cell]
        inside = [int(((own >= low) & (own <= low + width)).sum()) for low in own]
        assert most[cell] == max(inside, default=0)
        if inside:
            assert ((own >= start[cell]) & (own <= start[cell] + width)).sum() == most[cell]


def test_a_balanced_bound_gives_leakage_and_parity():
    counts = count_cells(np.repeat([0, 1], 50_000), 2, np.repeat([0, 1], 50_000))
    bound = balanced_bound(counts, 0.05)
    assert bound.upper == bound.advantage == bound.parity_distance == 1.0
    assert bound.capacity == 2.0 and bound.maximal_leakage == math.log(2)


def test_a_secret_that_the_cells_say_nothing_about_has_hardly_any_leakage():
    draw = np.random.default_rng(0)
    counts = count_cells(draw.integers(0, 4, 100_000), 4, draw.integers(0, 5, 100_000))
    bound = balanced_bound(counts, 0.05)
    assert 0.2 < bound.upper < 0.215 and bound.parity_distance is None
    assert bound.advantage < 0.02


def test_the_bounds_of_cells_hold_together_and_leave_out_empty_ones():
    counts = count_cells(np.array([0] * 10 + [2] * 4), 3, np.array([0] * 7 + [1] * 3 + [1] * 4))
    upper = cell_bounds(counts, 0.05)
    assert upper.tolist() == [binomial_upper(7, 10, 0.025), 1.0]


# -- laws with a known best attacker -------------------------------------------------------------------------------


def law(n_cells, n_values, seed):
    draw = np.random.default_rng(seed)
    of_cell = draw.dirichlet(np.full(n_cells, 0.5))
    return (of_cell[:, None] * draw.dirichlet(np.ones(n_values), n_cells)).ravel()


@pytest.mark.parametrize(("n_cells", "n_values", "n"), [(1, 2, 300), (3, 2, 200), (40, 5, 400), (300, 2, 150)])
def test_bounds_fail_no_more_often_than_allowed(n_cells, n_values, n):
    joint = law(n_cells, n_values, seed=n_cells)
    table = joint.reshape(n_cells, n_values)
    best, priors = table.max(axis=1).sum(), table.sum(axis=0)
    best_balanced = (table / priors).max(axis=1).sum() / n_values
    best_in_cell = table.max(axis=1) / table.sum(axis=1)
    draw, error, runs = np.random.default_rng(1), 0.1, 400
    failed = np.zeros(3)
    for _ in range(runs):
        pairs = draw.choice(len(joint), n, p=joint)
        cells, values = pairs // n_values, pairs % n_values
        counts = count_cells(cells, n_cells, values)
        failed[0] += binomial_upper(counts.hits, n, error) < best
        if (counts.of_value > 0).sum() == n_values:
            failed[1] += balanced_bound(counts, error).upper < best_balanced
        failed[2] += bool((cell_bounds(counts, error) < best_in_cell[counts.of_cell > 0]).any())
    # 400 runs with a chance of 10% each exceed 60 failures once in 2,000 tests
    assert (failed <= 60).all(), failed


@in_examples(20)
@given(st.integers(1, 6), st.integers(0, 10_000))
def test_no_attacker_has_more_hits_than_are_counted(n_cells, seed):
    draw = np.random.default_rng(seed)
    cells, values = draw.integers(0, n_cells, 50), draw.integers(0, 3, 50)
    guess = draw.integers(0, 3, n_cells)
    assert (guess[cells] == values).sum() <= count_cells(cells, n_cells, values).hits
