# SPDX-License-Identifier: Apache-2.0
"""The flat tree: numbering, application to other records, and undoing splits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import Case, assert_same_trees, cases, in_examples, separated_case

from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.guides import from_labels
from sfumato.partition.tree import NodeTable, Tree
from twins import naive

Apply = Callable[[Tree, np.ndarray], Any]

pytestmark = pytest.mark.twins
both_twins = pytest.mark.parametrize("apply", [naive.apply, Tree.apply], ids=["naive", "fast"])


def any_codes(case: Case, random: np.random.Generator, n: int) -> np.ndarray:
    """Records with any codes of the columns, whether or not they occurred."""
    widths = np.diff(case.layout.offsets)
    return np.stack([random.integers(0, width, n) for width in widths], axis=1).astype(case.records.codes.dtype)


@in_examples()
@given(case=cases())
def test_the_records_a_tree_was_grown_on_find_their_groups_again(case: Case) -> None:
    tree, groups = case.grower().grow()
    np.testing.assert_array_equal(tree.apply(case.records.codes), groups)
    assert naive.apply(tree, case.records.codes) == groups.tolist()
    assert set(groups.tolist()) == set(range(tree.n_groups))


@in_examples(30)
@given(case=cases(), seed=st.integers(0, 1000))
def test_twins_send_other_records_to_the_same_groups(case: Case, seed: int) -> None:
    tree, _ = case.grower().grow()
    codes = any_codes(case, np.random.default_rng(seed), 40)
    assert tree.apply(codes).tolist() == naive.apply(tree, codes)


@in_examples()
@given(case=cases())
def test_children_follow_their_parent_and_leaves_are_numbered_from_left_to_right(case: Case) -> None:
    tree, _ = case.grower().grow()
    inner = np.flatnonzero(tree.column >= 0)
    assert (tree.left[inner] > inner).all()
    assert sorted([0, *tree.left[inner], *tree.right[inner]]) == list(range(tree.n_nodes))
    assert sorted(tree.split_rank[inner]) == list(range(len(inner)))
    leaves = tree.column < 0
    assert (
        (tree.left[leaves] == -1).all() and (tree.right[leaves] == -1).all() and (tree.split_rank[leaves] == -1).all()
    )
    assert (tree.group[inner] == -1).all()
    assert tree.n_groups == leaves.sum()

    def from_left(node: int) -> list[int]:
        if tree.column[node] < 0:
            return [int(tree.group[node])]
        return from_left(int(tree.left[node])) + from_left(int(tree.right[node]))

    assert from_left(0) == list(range(tree.n_groups))


@both_twins
def test_a_tree_that_is_only_a_root_has_one_group(apply: Apply) -> None:
    bins, codes = bin_numbers(np.array([1, 2, 3]))
    tree, groups = Case([bins], [codes], from_labels(np.array([0, 1, 0]), 2), min_records=2).grower().grow()
    assert (tree.n_nodes, tree.n_groups) == (1, 1)
    assert list(apply(tree, np.array([[0], [2]], np.uint8))) == [0, 0]
    assert groups.tolist() == [0, 0, 0]


@both_twins
@pytest.mark.parametrize(("labels", "others"), [([0, 1, 1, 1, 0], 1), ([0, 1, 0, 0, 0], 0)])
def test_categories_absent_from_a_node_follow_its_larger_child(apply: Apply, labels: list[int], others: int) -> None:
    # Records of category 0 and 1 at first; 2 never occurs. Which side is larger depends on the records.
    indexes = np.array(labels)
    bins, codes = bin_categories(indexes, None, 3)
    tree, groups = Case([bins], [codes], from_labels(indexes, 2), fall_back=False).grower().grow()
    group_of = dict(zip(indexes.tolist(), groups.tolist(), strict=True))
    assert list(apply(tree, np.array([[0], [1], [2]], np.uint8))) == [group_of[0], group_of[1], group_of[others]]


@both_twins
def test_missing_values_follow_the_larger_child_of_nodes_that_had_none(apply: Apply) -> None:
    # First by colour; missing ages occur among the red only. The blue are cut between 20 and 30, two to one.
    ages, missing = np.array([20, 20, 30, 0, 50]), np.array([False, False, False, True, False])
    colours = np.array([0, 0, 0, 1, 1])
    parts = [bin_categories(colours, None, 2), bin_numbers(ages, missing)]
    labels = from_labels(np.array([0, 0, 1, 2, 2]), 3)
    case = Case([bins for bins, _ in parts], [codes for _, codes in parts], labels, fall_back=False)
    tree, groups = case.grower().grow()
    assert len(set(groups.tolist())) == 3
    missing_blue = np.array([[0, parts[1][0].missing_bin]], np.uint8)
    assert list(apply(tree, missing_blue)) == [groups[0]]


def test_a_tree_may_have_thousands_of_nodes_and_wide_masks() -> None:
    random = np.random.default_rng(0)
    n = 700
    parts = [bin_categories(random.integers(0, 400, n), None, 400), bin_numbers(random.normal(size=n), max_bins=500)]
    labels = from_labels(random.integers(0, 3, n), 3)
    case = Case([bins for bins, _ in parts], [codes for _, codes in parts], labels, min_records=1)
    tree, groups = case.grower().grow()
    assert tree.mask.shape[1] == 7
    assert tree.n_nodes == 2 * tree.n_groups - 1 > 600
    assert naive.apply(tree, case.records.codes) == groups.tolist()
    codes = any_codes(case, random, 200)
    assert tree.apply(codes).tolist() == naive.apply(tree, codes)


# -- undoing splits ------------------------------------------------------------------------------------------


@in_examples()
@given(case=cases(), max_leaves=st.integers(1, 12), more=st.integers(0, 12))
def test_a_pruned_tree_is_the_tree_grown_to_that_many_leaves(case: Case, max_leaves: int, more: int) -> None:
    tree, groups = case.grower().grow(max_leaves)
    larger, _ = case.grower().grow(max_leaves + more)
    pruned = larger.pruned(max_leaves)
    assert_same_trees(pruned, tree)
    np.testing.assert_array_equal(pruned.apply(case.records.codes), groups)


@pytest.mark.parametrize("seed", range(3))
def test_one_growth_answers_every_leaf_limit(seed: int) -> None:
    case = separated_case(seed, n=40, min_records=2)
    whole, groups = case.grower().grow(10_000)
    assert whole.n_groups > 8
    assert_same_trees(whole.pruned(whole.n_groups), whole)
    for max_leaves in range(1, whole.n_groups + 1):
        tree, _ = case.grower().grow(max_leaves)
        assert tree.n_groups == max_leaves
        assert_same_trees(whole.pruned(max_leaves), tree)
    assert len(set(groups.tolist())) == whole.n_groups


def test_a_pruned_tree_says_nothing_about_the_splits_it_lost() -> None:
    random = np.random.default_rng(1)
    bins, codes = bin_categories(random.integers(0, 6, 50), None, 6)
    tree, _ = Case([bins], [codes], from_labels(random.integers(0, 2, 50), 2)).grower().grow(6)
    pruned = tree.pruned(2)
    leaves = pruned.column < 0
    assert tree.n_groups > 2
    assert not pruned.mask[leaves].any()
    assert (pruned.threshold[leaves] == -1).all() and not pruned.missing_left[leaves].any()


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_without_a_split_sends_its_records_to_one_leaf(seed: int) -> None:
    case = separated_case(seed, n=40, min_records=2)
    tree, _ = case.grower().grow(8)
    node = int(tree.left[0]) if tree.left[tree.left[0]] >= 0 else int(tree.right[0])
    cut = tree.without_splits(np.array([node]))
    before, after = tree.apply(case.records.codes), cut.apply(case.records.codes)
    below = np.isin(before, _leaves_below(tree, node))
    assert tree.column[node] >= 0
    assert len(set(after[below])) == 1 and not set(after[below]) & set(after[~below])
    assert len(set(after[~below])) == len(set(before[~below]))


def _leaves_below(tree: Tree, node: int) -> list[int]:
    if tree.column[node] < 0:
        return [int(tree.group[node])]
    return _leaves_below(tree, int(tree.left[node])) + _leaves_below(tree, int(tree.right[node]))


def test_branches_grown_apart_and_grafted_number_the_nodes_as_one_growth_does() -> None:
    def split(table: NodeTable, node: int, n_left: int) -> None:
        one = np.array([1])
        table.add_children(
            np.array([node]),
            one * node % 3,
            one * n_left,
            np.array([node % 2 == 0]),
            np.array([[7]], np.uint64),
            one * n_left,
        )

    whole = NodeTable(1)
    whole.add_root(100)
    for node, n_left in ((0, 60), (1, 20), (2, 10), (4, 15), (6, 5)):
        split(whole, node, n_left)
    parted = NodeTable(1)
    parted.add_root(100)
    split(parted, 0, 60)
    children = np.array([1, 2])
    branches = [parted.branch(children[:1]), parted.branch(children[1:])]
    for branch, splits in zip(branches, ([(0, 20), (2, 15)], [(0, 10), (2, 5)]), strict=True):
        for node, n_left in splits:
            branch.add_children(
                np.array([node]),
                np.array([0]),
                np.array([0]),
                np.array([False]),
                np.zeros((1, 1), np.uint64),
                np.array([n_left]),
            )
    for child, branch in zip(children, branches, strict=True):
        parted.graft(np.array([child]), branch)
    parted.sort_by_level()
    for name in ("start", "stop", "depth", "parent", "left", "right", "split_rank"):
        np.testing.assert_array_equal(getattr(parted, name)[:11], getattr(whole, name)[:11], err_msg=name)
