# SPDX-License-Identifier: Apache-2.0
"""Groups that fail are joined with their sibling subtree, no more and no less."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import in_examples, seeds, separated_case

from sfumato.partition.binning import bin_numbers
from sfumato.partition.grower import Grower
from sfumato.partition.guides import by_median
from sfumato.partition.records import make_layout, pack_records
from sfumato.partition.tree import Safe, Tree, close_unsafe
from twins import naive_groups

pytestmark = pytest.mark.twins


def even_tree(n_leaves: int) -> Tree:
    """Leaves 0, 1, ... under a balanced tree: Mondrian on as many distinct numbers."""
    bins, codes = bin_numbers(np.arange(n_leaves))
    tree, _ = Grower(pack_records([codes]), make_layout([bins]), by_median(), 1).grow()
    assert tree.n_groups == n_leaves
    return tree


def at_least(sizes: list[int], k: int) -> Safe:
    """Safe are runs of leaves with k records or none."""
    before = np.concatenate([[0], np.cumsum(sizes)])

    def is_safe(first: np.ndarray, stop: np.ndarray) -> np.ndarray:
        counts = before[stop] - before[first]
        return (counts >= k) | (counts == 0)

    return is_safe


@in_examples(100)
@given(seed=seeds, k=st.integers(1, 12), max_leaves=st.none() | st.integers(1, 12))
def test_twins_join_the_same_groups(seed: int, k: int, max_leaves: int | None) -> None:
    tree, _ = separated_case(seed, n=30).grower().grow(max_leaves)
    random = np.random.default_rng(seed)
    sizes = random.choice([0, 1, 2, 5, 9], tree.n_groups).tolist()

    def is_safe(leaves: list[int]) -> bool:
        return sum(sizes[leaf] for leaf in leaves) >= k or not any(sizes[leaf] for leaf in leaves)

    joined = close_unsafe(tree, at_least(sizes, k))
    assert (None if joined is None else joined.tolist()) == naive_groups.close_unsafe(tree, is_safe)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([5, 5, 5, 5], [0, 1, 2, 3]),
        ([5, 2, 5, 5], [0, 0, 2, 3]),
        ([1, 1, 5, 5], [0, 0, 0, 0]),  # together they are still too few
        ([0, 2, 5, 5], [0, 0, 0, 0]),
        ([0, 5, 0, 0], [0, 1, 2, 3]),  # a leaf without records is no group
        ([1, 0, 0, 0], None),
        ([0, 0, 0, 0], [0, 1, 2, 3]),
        ([2, 2, 3, 1], [0, 0, 2, 2]),
    ],
)
def test_a_failing_group_takes_its_sibling_along(sizes: list[int], expected: list[int] | None) -> None:
    joined = close_unsafe(even_tree(4), at_least(sizes, 4))
    assert (None if joined is None else joined.tolist()) == expected


def test_only_joined_groups_are_judged_again() -> None:
    judged: list[list[tuple[int, int]]] = []
    safe = at_least([1, 9, 9, 9, 9, 9, 9, 9], 4)

    def is_safe(first: np.ndarray, stop: np.ndarray) -> np.ndarray:
        judged.append(list(zip(first.tolist(), stop.tolist(), strict=True)))
        return safe(first, stop)

    close_unsafe(even_tree(8), is_safe)
    assert [sorted(runs) for runs in judged] == [[(i, i + 1) for i in range(8)], [(0, 2)]]


def test_runs_judged_together_never_overlap() -> None:
    # Leaves fail at different depths, so the parents to be closed lie one in the other.
    tree, _ = separated_case(5, n=30).grower().grow()
    rounds: list[list[tuple[int, int]]] = []
    safe = at_least([1] * tree.n_groups, 7)

    def is_safe(first: np.ndarray, stop: np.ndarray) -> np.ndarray:
        rounds.append(sorted(zip(first.tolist(), stop.tolist(), strict=True)))
        return safe(first, stop)

    close_unsafe(tree, is_safe)
    assert len(rounds) > 2
    for runs in rounds:
        assert all(before[1] <= after[0] for before, after in pairwise(runs))
