# SPDX-License-Identifier: Apache-2.0
"""The search over levels finds what visiting every node finds, and its groups are those of a plain dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import in_examples, seeds

from sfumato.partition.lattice import Conditions, find_levels
from sfumato.partition.lattice_groups import Levels, NodeGroups
from twins import naive_lattice

pytestmark = pytest.mark.twins


def random_levels(random: np.random.Generator, n_values: int) -> Levels:
    """A random tree over the values, with the loss of each label from its leaves."""
    labels = [np.arange(n_values)]
    for _ in range(int(random.integers(0, 4))):
        parents = random.integers(0, int(labels[-1].max()) + 1, int(labels[-1].max()) + 1)
        labels.append(np.unique(parents[labels[-1]], return_inverse=True)[1])
    labels.append(np.zeros(n_values, np.int64))
    table = np.column_stack(labels).astype(np.int32)
    losses = np.column_stack([np.bincount(own)[own] - 1 for own in table.T]) / max(1, n_values - 1)
    return Levels(table, losses)


def random_table(seed: int, n_columns: int):
    """Distinct records with weights, skewed so that some groups are large and many are small."""
    random = np.random.default_rng(seed)
    columns = [random_levels(random, int(random.integers(1, 9))) for _ in range(n_columns)]
    n = int(random.integers(1, 60))
    rows = np.column_stack([(random.random(n) ** 2 * len(c.labels)).astype(np.int32) for c in columns])
    codes, counts = np.unique(rows, axis=0, return_counts=True)
    return random, codes.astype(np.int32), counts.astype(np.int64), columns


@in_examples()
@given(seed=seeds, n_columns=st.integers(1, 4))
def test_twins_merge_the_same_members(seed, n_columns):
    random, codes, weights, columns = random_table(seed, n_columns)
    levels = [int(random.integers(0, c.n_levels)) for c in columns]
    groups = NodeGroups(codes, weights, columns)
    members = np.sort(random.permutation(len(codes))[: int(random.integers(1, len(codes) + 1))]).astype(np.int32)
    shown = [[int(c.labels[codes[row, j], levels[j]]) for j, c in enumerate(columns)] for row in members]
    group, first, sizes = naive_lattice.merge_alike(shown, weights[members].tolist())
    fast = groups._merged(np.array(levels), members, weights[members])
    assert fast[0].tolist() == group
    assert fast[1].tolist() == [int(members[row]) for row in first]
    assert fast[2].tolist() == sizes
    parts = groups._merged_by_parts(np.array(levels), members, weights[members])
    assert sorted(parts[2].tolist()) == sorted(sizes)
    assert len(set(zip(parts[0].tolist(), group, strict=True))) == len(sizes)


@in_examples(80)
@given(seed=seeds, n_columns=st.integers(1, 4), min_records=st.integers(1, 12), share=st.sampled_from([0, 0.1, 0.5, 1]))
def test_twins_find_the_same_levels(seed, n_columns, min_records, share):
    random, codes, weights, columns = random_table(seed, n_columns)
    options = {"min_records": min_records, "max_suppressed": int(share * weights.sum())}
    if random.random() < 0.3:
        options["lowest"] = [int(random.integers(0, c.n_levels)) for c in columns]
    slow = naive_lattice.find_levels(codes, weights, columns, **options)
    fast = find_levels(codes, weights, columns, **options)
    if slow is None:
        assert fast is None
        return
    levels, loss, n_suppressed = slow
    assert fast.loss == pytest.approx(loss, abs=1e-8)
    if fast.levels != levels:  # equal losses but for the steps in which they are added up
        every = {own: found for own, *found in naive_lattice.every_node(codes, weights, columns)}
        own = naive_lattice.node_loss(*every[fast.levels], min_records, options["max_suppressed"])
        assert own is not None and own[0] == pytest.approx(loss, abs=1e-10)
        n_suppressed = own[1]
    assert fast.n_suppressed == n_suppressed
    assert int(weights[fast.group < 0].sum()) == n_suppressed
    sizes = np.bincount(fast.group[fast.group >= 0], weights=weights[fast.group >= 0])
    assert len(sizes) == fast.n_groups
    assert (sizes >= min_records).all()


def is_odd(members):
    """A condition that parts of a failing group may meet: an odd group has even parts."""
    return len(members) % 2 == 1


def has_one_colour(members):
    """A condition that no part of a failing group meets: where there is one colour, every part has one."""
    return len({member % 3 for member in members}) == 1


@pytest.mark.parametrize(("fails", "is_inherited"), [(is_odd, False), (has_one_colour, False), (has_one_colour, True)])
@in_examples(40)
@given(seed=seeds, n_columns=st.integers(1, 3), min_records=st.integers(1, 6), share=st.sampled_from([0, 0.2, 1]))
def test_twins_find_the_same_levels_under_conditions(fails, is_inherited, seed, n_columns, min_records, share):
    _, codes, weights, columns = random_table(seed, n_columns)

    def failing(group, n_groups):
        return np.array([fails(np.flatnonzero(group == g).tolist()) for g in range(n_groups)], np.bool_)

    conditions = Conditions(failing, lambda group, n_groups: not failing(group, n_groups).any(), is_inherited)
    limit = int(share * weights.sum())
    fast = find_levels(codes, weights, columns, min_records=min_records, max_suppressed=limit, conditions=conditions)
    best = None
    for levels, sizes, _ in naive_lattice.every_node(codes, weights, columns):
        shown = [[int(c.labels[row[j], levels[j]]) for j, c in enumerate(columns)] for row in codes]
        group, first, own_sizes = naive_lattice.merge_alike(shown, weights.tolist())
        bad = [
            size < min_records or fails([at for at, own in enumerate(group) if own == g])
            for g, size in enumerate(own_sizes)
        ]
        n_suppressed = sum(size for size, is_bad in zip(own_sizes, bad, strict=True) if is_bad)
        if n_suppressed > limit or all(bad):
            continue
        assert sorted(own_sizes) == sorted(sizes.tolist())
        cost = sum(
            size * (1 if is_bad else np.mean([c.losses[codes[row, j], levels[j]] for j, c in enumerate(columns)]))
            for size, is_bad, row in zip(own_sizes, bad, first, strict=True)
        ) / sum(own_sizes)
        best = cost if best is None else min(best, cost)
    assert (fast is None) == (best is None)
    assert best is None or fast.loss == pytest.approx(best, abs=1e-8)


def test_the_search_leaves_out_most_nodes_of_a_large_lattice():
    random = np.random.default_rng(5)
    tree = np.column_stack([np.arange(16) >> level for level in range(5)]).astype(np.int32)
    losses = np.column_stack([np.bincount(own)[own] - 1 for own in tree.T]) / 15
    columns = [Levels(tree, losses)] * 5
    codes, counts = np.unique((random.random((3000, 5)) ** 2 * 16).astype(np.int32), axis=0, return_counts=True)
    found = find_levels(codes, counts.astype(np.int64), columns, min_records=10, max_suppressed=150)
    assert 0 < found.n_evaluated < 5**5 // 4


def test_more_combinations_than_a_number_holds_are_told_apart():
    n_columns = 12
    labels = np.column_stack([np.arange(100), np.zeros(100)]).astype(np.int32)
    losses = np.column_stack([np.zeros(100), np.ones(100)])
    codes = np.zeros((64, n_columns), np.int32)
    codes[:, 0] = np.arange(64) % 2
    codes[:, -1] = np.arange(64) // 2  # 100^11 apart: beyond 64 bits
    codes[:, -2] = 99
    codes, counts = np.unique(codes, axis=0, return_counts=True)
    found = find_levels(codes, counts.astype(np.int64), [Levels(labels, losses)] * n_columns, min_records=32)
    assert found.levels == (0,) * (n_columns - 1) + (1,)
    assert found.n_groups == 2
