# SPDX-License-Identifier: Apache-2.0
"""Cells of a tree against sets of codes that are cut in two along every path, written once more in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import cases

from sfumato.partition import information_loss_tree
from sfumato.partition.cells import tree_cells
from sfumato.partition.tree import Tree
from strategies import in_examples

N_VALUES = 6  # ordered: codes 0 to 5 and missing 6; categories: 0 to 69, missing 70, unseen 71
N_CATEGORIES = 72


def random_tree(random: np.random.Generator, n_splits: int) -> Tree:
    """Return a tree over two ordered columns and one of categories, split anywhere."""
    column, left, right, threshold = [-1], [-1], [-1], [-1]
    missing_left, mask = [False], [np.zeros(2, np.uint64)]
    for _ in range(n_splits):
        node = int(random.choice([at for at, own in enumerate(column) if own < 0]))
        column[node] = int(random.integers(3))
        threshold[node] = int(random.integers(N_VALUES)) if column[node] < 2 else -1
        missing_left[node] = bool(random.integers(2))
        mask[node] = random.integers(0, 2**63, 2).astype(np.uint64) if column[node] == 2 else mask[node]
        left[node], right[node] = len(column), len(column) + 1
        for part, empty in ((column, -1), (left, -1), (right, -1), (threshold, -1), (missing_left, False)):
            part += [empty, empty]
        mask += [np.zeros(2, np.uint64)] * 2
    group, stack, n_groups = np.full(len(column), -1, np.int32), [0], 0
    while stack:  # from left to right
        node = stack.pop()
        if column[node] < 0:
            group[node], n_groups = n_groups, n_groups + 1
        else:
            stack += [right[node], left[node]]
    numbers = (np.array(part, np.int32) for part in (column, left, right, threshold))
    return Tree(
        *numbers, np.array(missing_left), np.array(mask), group, np.zeros(0, np.int32), np.zeros(0, bool),
        np.array([N_VALUES, N_VALUES, N_CATEGORIES - 2]),
    )  # fmt: skip


def leaves_below(tree, node):
    if tree.left[node] < 0:
        return [int(tree.group[node])]
    return leaves_below(tree, tree.left[node]) + leaves_below(tree, tree.right[node])


def codes_of_groups(tree, group_of_leaf):
    """Return for every group the set of codes of each column, cut along the path to it."""
    found = {}

    def go(node, codes):
        groups = [group_of_leaf[leaf] for leaf in leaves_below(tree, node)]
        if tree.left[node] < 0:
            found.setdefault(groups[0], []).append(codes)
            return
        sides = [{group_of_leaf[leaf] for leaf in leaves_below(tree, child)} - {-1} for child in children(tree, node)]
        c = int(tree.column[node])
        goes_left = {code for code in codes[c] if is_left(tree, node, code)}
        for child, kept in zip(children(tree, node), (goes_left, codes[c] - goes_left), strict=True):
            tells = all(sides) and len(sides[0] | sides[1]) > 1
            go(child, [kept if tells and place == c else own for place, own in enumerate(codes)])

    go(0, [set(range(N_VALUES + 1)), set(range(N_VALUES + 1)), set(range(N_CATEGORIES))])
    return {group: own for group, own in found.items() if group >= 0}


def children(tree, node):
    return int(tree.left[node]), int(tree.right[node])


def is_left(tree, node, code):
    if tree.threshold[node] < 0:
        return bool(int(tree.mask[node][code >> 6]) >> (code & 63) & 1)
    return bool(tree.missing_left[node]) if code == N_VALUES else code <= tree.threshold[node]


def held(cells, group, is_category):
    cell = cells.of_group[group]
    if is_category:
        return set(np.flatnonzero(cells.holds(cell, np.arange(N_CATEGORIES))).tolist())
    values = set(range(int(cells.low[cell]), int(cells.high[cell]) + 1))
    return values | ({N_VALUES} if cells.has_missing[cell] else set())


@in_examples(150)
@given(seed=st.integers(0, 10_000), n_splits=st.integers(0, 25), joined=st.booleans(), emptied=st.booleans())
def test_cells_are_what_the_splits_on_the_way_leave(seed, n_splits, joined, emptied):
    random = np.random.default_rng(seed)
    tree = random_tree(random, n_splits)
    group_of_leaf = np.arange(tree.n_groups)
    for node in np.flatnonzero(tree.left >= 0).tolist() if joined else []:
        if random.random() < 0.2:
            below = leaves_below(tree, node)
            group_of_leaf[below] = group_of_leaf[below].min()
    if emptied:
        group_of_leaf[random.random(tree.n_groups) < 0.3] = -1
    used = np.unique(group_of_leaf[group_of_leaf >= 0])
    group_of_leaf = np.where(group_of_leaf < 0, -1, np.searchsorted(used, group_of_leaf))
    if not len(used):
        return
    cells = tree_cells(tree, [0, 1, 2], [N_VALUES, N_VALUES, N_CATEGORIES], [False, False, True], group_of_leaf)
    for group, leaves in codes_of_groups(tree, group_of_leaf.tolist()).items():
        for codes in leaves:
            assert [held(own, group, place == 2) for place, own in enumerate(cells)] == codes


@pytest.mark.parametrize("seed", range(20))
def test_every_record_lies_in_the_cells_of_its_group_whatever_it_has(seed):
    random = np.random.default_rng(seed)
    tree = random_tree(random, 20)
    cells = tree_cells(tree, [0, 1, 2], [N_VALUES, N_VALUES, N_CATEGORIES], [False, False, True])
    codes = np.column_stack([random.integers(0, n, 500) for n in (N_VALUES + 1, N_VALUES + 1, N_CATEGORIES)])
    for record, group in zip(codes.tolist(), tree.apply(codes.astype(np.uint16)).tolist(), strict=True):
        assert all(
            code in held(own, group, place == 2) for place, (code, own) in enumerate(zip(record, cells, strict=True))
        )


def test_groups_that_are_not_boxes_have_no_cells():
    tree = random_tree(np.random.default_rng(0), 3)
    goto = np.full(tree.n_nodes, -1, np.int32)
    goto[np.flatnonzero(tree.group == 0)] = 0
    elsewhere = Tree(**{name: getattr(tree, name) for name in vars(tree)} | {"goto": goto})
    asked = elsewhere, [0, 1, 2], [N_VALUES, N_VALUES, N_CATEGORIES], [False, False, True]
    assert tree_cells(*asked) is None
    assert tree_cells(*asked, may_overlap=True) is None  # nothing is set aside, so a cut may divide equal values


@in_examples(50)
@given(case=cases(kind="loss"))
def test_cells_that_overlap_hold_all_but_the_few_who_joined_at_the_root(case):
    codes, layout = case.records.codes, case.layout
    tree, group = information_loss_tree.grow(codes, layout, case.min_records, taxonomy=case.taxonomy)
    is_category = [bool(own) for own in layout.is_category]
    n_codes = np.where(is_category, np.diff(layout.offsets), layout.n_values).tolist()
    asked = tree, range(layout.n_columns), n_codes, is_category
    cells = tree_cells(*asked, may_overlap=True)
    if tree.goto is None or (tree.goto < 0).all():
        assert cells is not None
    if cells is None:
        return
    missing = layout.missing.tolist()
    is_inside = np.array([
        all(
            bool(own.has_missing[cell]) if code == missing[j]
            else bool(own.holds(cell, np.array([code]))[0]) if is_category[j]
            else own.low[cell] <= code <= own.high[cell]
            for j, (code, own) in enumerate(zip(record, cells, strict=True))
            for cell in [own.of_group[at]]
        )
        for record, at in zip(codes[:, : layout.n_columns].tolist(), group.tolist(), strict=True)
    ])  # fmt: skip
    assert (~is_inside).sum() < case.min_records
