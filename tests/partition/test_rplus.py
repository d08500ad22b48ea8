# SPDX-License-Identifier: Apache-2.0
"""R+-tree leaves are packed by their bounding boxes, and hold what every publication needs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import in_examples
from test_hilbert_curve import random_table

from sfumato.partition import rplus
from sfumato.partition.rplus import pack
from twins import naive_runs

pytestmark = pytest.mark.twins


def propose(codes, batch, layout, k, n_threads=1):
    """The cuts proposed for one node with all records."""
    dates = np.asarray(batch, np.int64) if np.any(batch) else np.zeros(0, np.int64)
    ends = np.array([0]), np.array([len(codes)])
    return rplus._propose_cuts(np.ascontiguousarray(codes), dates, *ends, layout, k, n_threads)


@in_examples(100)
@given(
    seed=st.integers(0, 100_000),
    n_records=st.integers(4, 40),
    n_columns=st.integers(1, 4),
    k=st.integers(2, 6),
    n_batches=st.integers(1, 3),
)
def test_proposed_cuts_equal_their_twin(seed, n_records, n_columns, k, n_batches):
    codes, layout = random_table(seed, n_records, n_columns)
    batch = np.sort(np.random.default_rng(seed).integers(0, n_batches, n_records))
    cost, last_code = propose(codes, batch, layout, k)
    for axis, expected in enumerate(naive_runs.cuts(codes.tolist(), batch.tolist(), layout, k)):
        if expected is None:
            assert cost[0, axis] == np.inf
        else:
            assert cost[0, axis] == pytest.approx(expected[0], abs=1e-9)
            is_left = codes[:, axis] <= last_code[0, axis]
            sides = [naive_runs.box_width(codes[part], layout) * part.sum() for part in (is_left, ~is_left)]
            assert sum(sides) == pytest.approx(expected[0] % (n_records * n_columns + 1), abs=1e-6)


@in_examples(60)
@given(seed=st.integers(0, 100_000), n_records=st.integers(4, 80), n_columns=st.integers(1, 4), k=st.integers(2, 6))
def test_leaves_are_where_the_tree_sends_their_records(seed, n_records, n_columns, k):
    codes, layout = random_table(seed, n_records, n_columns, n_different=20)
    k = min(k, n_records)
    tree, group = pack(codes, layout, k)
    assert np.array_equal(tree.apply(codes), group)
    sizes = np.bincount(group)
    assert len(sizes) == tree.n_groups
    assert sizes.min() >= k
    for leaf in np.flatnonzero(sizes >= 2 * k):  # what is still large has no admissible cut
        own = codes[group == leaf]
        assert naive_runs.cuts(own.tolist(), [0] * len(own), layout, k) == [None] * n_columns


@in_examples(60)
@given(
    seed=st.integers(0, 100_000), n_records=st.integers(10, 80), n_batches=st.integers(2, 4), n_roots=st.integers(1, 3)
)
def test_every_publication_has_none_or_k_records_in_a_leaf(seed, n_records, n_batches, n_roots):
    generator = np.random.default_rng(seed)
    codes, layout = random_table(seed, n_records, 3, n_different=20)
    batch = generator.integers(0, n_batches, n_records)
    roots = generator.permutation(np.append(np.arange(n_roots), generator.integers(0, n_roots, n_records - n_roots)))
    tree, group = pack(codes, layout, 2, roots=roots, batch=batch)
    for leaf in range(tree.n_groups):
        assert len(set(roots[group == leaf])) == 1
        root_is_leaf = (group == leaf).sum() == (roots == roots[group == leaf][0]).sum()
        for last in range(n_batches):
            n_published = int((batch[group == leaf] <= last).sum())
            assert root_is_leaf or n_published == 0 or n_published >= 2


def test_a_check_that_refuses_a_cut_gets_the_next_best_column():
    codes = np.array([[i, i % 2] for i in range(8)], np.uint8)
    from sfumato.partition.binning import bin_numbers
    from sfumato.partition.records import make_layout

    layout = make_layout([bin_numbers(np.arange(8))[0], bin_numbers(np.arange(2))[0]])
    _, free = pack(codes, layout, 4)
    asked = []

    def parts_odd_from_even(side, n_sides):
        asked.append(side.copy())
        parity = [set((codes[side == s, 1]).tolist()) for s in range(n_sides)]
        return np.array([len(values) == 1 for values in parity])

    _, bound = pack(codes, layout, 4, check=parts_odd_from_even)
    assert sorted(zip(bound.tolist(), codes[:, 1].tolist(), strict=True)) == [(0, 0)] * 4 + [(1, 1)] * 4
    assert len(asked) in (1, 2)
    assert np.bincount(free).tolist() == [4, 4]
    _, refused = pack(codes, layout, 4, check=lambda side, n_sides: np.zeros(n_sides, bool))
    assert np.bincount(refused).tolist() == [8]


def test_threads_change_nothing(monkeypatch):
    codes, layout = random_table(3, 3000, 5, n_different=30)
    _, alone = pack(codes, layout, 5)
    monkeypatch.setattr(rplus, "_SHARED_FROM", 10)
    _, together = pack(codes, layout, 5, n_threads=3)
    assert np.array_equal(alone, together)


def test_row_order_changes_nothing():
    codes, layout = random_table(4, 500, 4, n_different=30)
    order = np.random.default_rng(0).permutation(500)
    assert np.array_equal(pack(codes[order], layout, 4)[1], pack(codes, layout, 4)[1][order])


@pytest.mark.parametrize("last", [-1, 0, 5, 62, 63, 64, 127])
def test_masks_have_the_bits_up_to_the_last_code(last):
    words = rplus._masks(np.array([last]), 2)[0]
    assert int(words[0]) | int(words[1]) << 64 == (1 << (last + 1)) - 1
