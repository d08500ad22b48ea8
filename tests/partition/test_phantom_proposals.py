# SPDX-License-Identifier: Apache-2.0
"""Proposals of phantoms and the surroundings they come from, against their twin in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partition.test_cells import random_tree
from sfumato import MondrianAnonymizer
from sfumato.partition import phantom_proposals, surroundings
from sfumato.partition.cells import Inside, everything
from sfumato.partition.group_summaries import collect
from sfumato.partition.phantom_proposals import count_codes, propose, propose_counted
from sfumato.partition.records import make_layout
from sfumato.partition.surroundings import tree_surroundings
from sfumato.representatives import shown_of
from strategies import in_examples, tables
from twins.naive_phantoms import Twin, bits, runs_of_groups


@given(seed=st.integers(0, 10_000), n_splits=st.integers(0, 30), at_least=st.integers(1, 60), joins=st.booleans())
@in_examples(100)
def test_surroundings_are_the_groups_below_the_nearest_large_node(seed, n_splits, at_least, joins):
    random = np.random.default_rng(seed)
    tree = random_tree(random, n_splits)
    leaves = np.arange(n_splits + 1)
    if joins and n_splits > 2:  # the leaves below one node are one group, another leaf has no records
        node = int(random.choice(np.flatnonzero(tree.left >= 0)[1:]))
        joined = _leaves_below(tree, node)
        leaves[joined] = joined[0]
        if joined[0] > 0:
            leaves[0] = -1
        is_used = leaves >= 0
        leaves[is_used] = np.unique(leaves[is_used], return_inverse=True)[1]
    sizes = random.integers(1, 20, leaves.max() + 1)
    cells = [everything(len(sizes), 3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surroundings, "FEWEST_AROUND", at_least)
        found = tree_surroundings(tree, sizes, cells, leaves)
    assert list(zip(found.first, found.stop, strict=True)) == runs_of_groups(tree, sizes, leaves, at_least)


def _leaves_below(tree, node):
    if tree.left[node] < 0:
        return [int(tree.group[node])]
    return _leaves_below(tree, tree.left[node]) + _leaves_below(tree, tree.right[node])


@given(table=tables(min_records=6, max_records=60, min_columns=1, max_columns=4), seed=st.integers(0, 99))
@in_examples(100)
@pytest.mark.filterwarnings("ignore::sfumato.schema.role_checks.ColumnWarning")
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # turns wrap around, compiled without a word
def test_proposals_equal_their_twin(table, seed):
    random = np.random.default_rng(seed)
    columns, codes = coded(table.to("pandas"), floor=3)
    layout = make_layout([column.bins for column in columns])
    shown = shown_of(columns, layout)
    n_groups = int(random.integers(1, 5))
    group = random.integers(0, n_groups, len(codes)).astype(np.int32)
    group[:n_groups] = np.arange(n_groups)
    groups = collect(group, n_groups)
    n_codes = np.diff(layout.offsets).tolist()
    cells = []
    for n in n_codes:
        holds = random.random((3, n)) < 0.7
        cells.append(Inside(random.integers(0, 3, n_groups), holds, holds.all(axis=1)))
    for own, j in zip(cells, range(len(cells)), strict=True):  # members lie in the cell of their group
        own.holds[own.cell[group], codes[:, j]] = True
    first = np.array([random.integers(0, g + 1) for g in range(n_groups)])
    stop = np.array([random.integers(g + 1, n_groups + 1) for g in range(n_groups)])
    around = surroundings._surroundings(first, stop, cells)
    made = propose(codes, groups, layout, around, shown)
    twin = Twin(layout, shown)
    counted = []
    for g in range(n_groups):
        near = codes[(group >= first[g]) & (group < stop[g])]
        held = [set(np.flatnonzero(own.holds[own.cell[g]]).tolist()) for own in cells]
        rank = g - int(first[g])
        typical, changes, is_rare, n_around = twin.propose(near.tolist(), held, int(groups.sizes[g]), rank)
        assert made.typical[g].tolist() == typical
        assert [_pairs(change) for change in made.changes[g] if change[0] >= 0] == changes
        assert (made.is_rare[g], made.n_around[g]) == (is_rare, n_around)
        counted.append(count_codes(near, layout))
    again = propose_counted(np.stack(counted), np.arange(n_groups), groups.sizes, layout, around, shown)
    for one, other in zip(made, again, strict=True):
        np.testing.assert_array_equal(one, other)


def coded(frame, floor):
    """Return the columns of a frame and the codes of its records."""
    anonymizer = MondrianAnonymizer(k=floor)
    table, schema = anonymizer._read(frame, anonymizer._all_criteria())
    source, _ = anonymizer._coded(table, schema.quasi_identifiers, schema, {}, floor=floor)
    return source.columns, np.column_stack([column.codes for column in source.columns])


def _pairs(change):
    return tuple((int(change[at]), int(change[at + 1])) for at in (0, 2) if change[at] >= 0)


@pytest.mark.parametrize(("n", "total"), [(1, 1), (1, 2), (3, 7), (99, 100), (1, 10**9), (5, 12_345)])
def test_bits_are_logarithms(n, total):
    found = phantom_proposals._bits(np.int64(n), np.int64(total))
    assert found == bits(n, total)
    assert abs(found / 256 - math.log2(total / n)) < 0.1
