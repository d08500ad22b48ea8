# SPDX-License-Identifier: Apache-2.0
"""Growing: every decision by the rules, the same for any order of records and number of threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import (
    GUIDE_KINDS,
    Case,
    as_sets,
    assert_same_trees,
    cases,
    check_tree,
    diversity,
    groups_of,
    in_examples,
    persons,
    random_case,
    seeds,
    separated_case,
    sizes,
)

from sfumato.partition import criterion_checks, grower, histogram, workers
from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.criterion_checks import Check
from sfumato.partition.guides import CHANNELS, Guide, by_information_loss, by_median, from_labels, from_numbers
from twins import naive

pytestmark = pytest.mark.twins


LIMITS = {
    "_LARGE_NODE": workers,
    "_SHARED_FROM": workers,
    "_BUDGET": histogram,
    "_COUNT_BUDGET": criterion_checks,
    "_CANDIDATE_BUDGET": grower,
}


@contextmanager
def limits(**values: int) -> Iterator[None]:
    """Grow with other limits, such as a node of five records counting as large."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(LIMITS[name], name, value)
        yield


def random_checks(seed: int, n: int) -> list[Check]:
    """Persons, a sensitive value that must not dominate, or both."""
    random = np.random.default_rng(seed)
    checks = [
        persons(random.integers(0, 1 + n // 2, n).tolist(), int(random.integers(1, 5))),
        diversity(random.integers(0, 4, n).tolist(), float(random.choice([0.5, 0.7, 0.9]))),
    ]
    return [checks[i] for i in random.choice(2, random.integers(1, 3), replace=False)]


# -- by the rules --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GUIDE_KINDS)
def test_every_split_is_the_best_admissible_one_and_no_leaf_has_one_left(kind: str) -> None:
    @in_examples(40)
    @given(case=cases(kind=kind))
    def check(case: Case) -> None:
        tree, groups = case.grower().grow()
        check_tree(case, tree, groups)

    check()


@pytest.mark.parametrize("kind", ["labels", "probabilities", "loss", "median"])
def test_every_split_passes_the_checks_and_no_leaf_has_one_left_that_does(kind: str) -> None:
    @in_examples(30)
    @given(case=cases(kind=kind, max_records=40), seed=seeds)
    def check(case: Case, seed: int) -> None:
        checks = random_checks(seed, case.n_records)
        tree, groups = case.grower(checks).grow()
        check_tree(case, tree, groups, checks)
        leaves = [np.flatnonzero(groups == g).tolist() for g in range(tree.n_groups)]
        assert tree.n_groups == 1 or all(naive.is_safe(check, rows) for check in checks for rows in leaves)

    check()


@in_examples()
@given(case=cases())
def test_no_group_is_smaller_than_asked(case: Case) -> None:
    for max_leaves in (None, 5):
        _, groups = case.grower().grow(max_leaves)
        assert np.bincount(groups).min() >= case.min_records
        assert np.bincount(groups).sum() == case.n_records


@in_examples(30)
@given(case=cases(), max_leaves=st.integers(1, 12))
def test_a_leaf_limit_is_kept_and_every_split_below_it_is_by_the_rules(case: Case, max_leaves: int) -> None:
    tree, groups = case.grower().grow(max_leaves)
    whole, _ = case.grower().grow()
    assert tree.n_groups == min(max_leaves, whole.n_groups)
    check_tree(case, tree, groups, is_whole=False)


# -- the naive grower ----------------------------------------------------------------------------------------


@in_examples(25)
@given(
    seed=seeds,
    k=st.integers(1, 8),
    fall_back=st.booleans(),
    is_checked=st.booleans(),
    max_leaves=st.none() | st.integers(1, 15),
)
def test_twins_grow_the_same_groups_where_splits_never_tie(
    seed: int, k: int, fall_back: bool, is_checked: bool, max_leaves: int | None
) -> None:
    case = separated_case(seed, n=35, min_records=k, fall_back=fall_back)
    checks = random_checks(seed, case.n_records) if is_checked else []
    _, groups = case.grower(checks).grow(max_leaves)
    root = naive.grow(
        case.records, case.layout, case.guide, k, checks,
        fall_back=fall_back, max_leaves=max_leaves, taxonomy=case.taxonomy,
    )  # fmt: skip
    assert as_sets(groups.tolist()) == as_sets(groups_of(root, case.n_records))


def test_twins_grow_the_tree_worked_out_on_paper() -> None:
    # Income follows age; among the young it follows the town. Nothing is left to say at three groups.
    age, town = np.array([20, 21, 22, 23, 60, 61, 62, 63]), np.array([0, 1, 0, 1, 0, 1, 0, 1])
    income = np.array([[0.0], [5.0], [0.0], [5.0], [90.0], [90.0], [90.0], [90.0]])
    parts = [bin_numbers(age), bin_categories(town, None, 2)]
    case = Case([b for b, _ in parts], [c for _, c in parts], from_numbers(income), min_records=2, fall_back=False)
    expected = [0, 1, 0, 1, 2, 2, 2, 2]
    tree, groups = case.grower().grow()
    assert groups.tolist() == expected
    assert groups_of(naive.grow(case.records, case.layout, case.guide, 2, fall_back=False), 8) == expected
    assert (tree.column.tolist(), tree.threshold.tolist()) == ([0, 1, -1, -1, -1], [3, -1, -1, -1, -1])


# -- what must not matter ------------------------------------------------------------------------------------


@in_examples()
@given(case=cases(), seed=seeds, max_leaves=st.none() | st.integers(1, 12))
def test_permuted_records_give_the_same_tree_and_every_record_its_group(
    case: Case, seed: int, max_leaves: int | None
) -> None:
    order = np.random.default_rng(seed).permutation(case.n_records)
    tree, groups = case.grower().grow(max_leaves)
    again, permuted = case.permuted(order).grower().grow(max_leaves)
    assert_same_trees(again, tree)
    np.testing.assert_array_equal(permuted, groups[order])


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_large_nodes_in_chunks_and_by_subtraction_give_the_same_tree(n_threads: int) -> None:
    @in_examples(40)
    @given(
        case=cases(),
        large=st.sampled_from([0, 4, 20]),
        budget=st.sampled_from([0, 4096, 1 << 20]),
        max_leaves=st.none() | st.integers(1, 12),
    )
    def check(case: Case, large: int, budget: int, max_leaves: int | None) -> None:
        tree, groups = case.grower().grow(max_leaves)
        with limits(_LARGE_NODE=large, _BUDGET=budget, _SHARED_FROM=0):
            again, same_groups = case.grower(n_threads=n_threads).grow(max_leaves)
        assert_same_trees(again, tree)
        np.testing.assert_array_equal(same_groups, groups)

    check()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_checks_in_small_blocks_and_on_large_nodes_give_the_same_tree(n_threads: int) -> None:
    @in_examples(25)
    @given(case=cases(max_records=40), seed=seeds, max_leaves=st.none() | st.integers(1, 12))
    def check(case: Case, seed: int, max_leaves: int | None) -> None:
        checks = random_checks(seed, case.n_records)
        tree, groups = case.grower(checks).grow(max_leaves)
        with limits(_LARGE_NODE=4, _COUNT_BUDGET=1, _CANDIDATE_BUDGET=1, _SHARED_FROM=0):
            again, same_groups = case.grower(checks, n_threads).grow(max_leaves)
        assert_same_trees(again, tree)
        np.testing.assert_array_equal(same_groups, groups)

    check()


@pytest.mark.parametrize("max_leaves", [None, 90])
def test_levels_of_many_nodes_are_shared_between_threads(max_leaves: int | None) -> None:
    case = random_case(11, 400, 4, "probabilities")
    case = replace(case, min_records=2, fall_back=True)
    tree, groups = case.grower().grow(max_leaves)
    assert tree.n_groups > 80
    for n_threads in (2, 3):
        with limits(_SHARED_FROM=50):
            again, same_groups = case.grower(n_threads=n_threads).grow(max_leaves)
        assert_same_trees(again, tree)
        np.testing.assert_array_equal(same_groups, groups)


@in_examples(25)
@given(case=cases(), n_threads=st.sampled_from([1, 2, 3]))
def test_records_come_back_group_after_group_as_a_sort_by_group_would_put_them(case: Case, n_threads: int) -> None:
    dense = None if case.guide.dense is None else case.guide.dense.copy()  # growing in order uses the records up
    with limits(_SHARED_FROM=5, _LARGE_NODE=20):
        tree, group = case.grower().grow()
        sorted_ = grower.in_group_order(tree, group, case.records)
        grown = case.grower(n_threads=n_threads).grow_in_order()
    assert_same_trees(grown.tree, tree)
    np.testing.assert_array_equal(grown.group, group)
    np.testing.assert_array_equal(grown.sizes, sorted_.sizes)
    for part, expected in zip(grown.records, sorted_.records, strict=True):
        np.testing.assert_array_equal(part, expected)
    guide = case.guide.lined_up(grown.records, case.layout.n_columns)
    rows = grown.records.rows
    if guide.dense is not None:
        np.testing.assert_array_equal(guide.dense, dense[rows])
    for block, original in zip(guide.code_blocks, case.guide.code_blocks, strict=True):
        np.testing.assert_array_equal(block, original[rows])


@in_examples(25)
@given(case=cases(), seed=seeds)
def test_the_records_handed_in_are_left_as_they_were(case: Case, seed: int) -> None:
    records = case.records
    before = [part.copy() for part in records]
    grown = grower.Grower(records, case.layout, case.guide, case.min_records, random_checks(seed, case.n_records))
    grown.grow()
    for part, copy in zip(records, before, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_growing_again_with_the_same_grower_gives_the_same_tree() -> None:
    own = separated_case(2, n=60, min_records=2).grower()
    with limits(_LARGE_NODE=4):
        first, _ = own.grow()
        small, _ = own.grow(5)
        assert len(own._kept) == 0  # or memory would fill with every growth
        again, _ = own.grow()
    assert small.n_groups == 5
    assert_same_trees(again, first)


def test_many_categories_in_two_bytes_are_grown_like_few() -> None:
    # The same records with their categories spread over 5000 codes: other codes, same groups.
    random = np.random.default_rng(6)
    few = random.integers(0, 7, 60)
    spread = np.sort(random.choice(5000, 7, replace=False))[few]
    labels = from_labels(random.integers(0, 3, 60), 3)
    narrow = Case(*([part] for part in bin_categories(few, None, 7)), labels, min_records=3, fall_back=False)
    wide = Case(*([part] for part in bin_categories(spread, None, 5000)), labels, min_records=3, fall_back=False)
    assert wide.records.codes.dtype == np.uint16
    np.testing.assert_array_equal(narrow.grower().grow()[1], wide.grower().grow()[1])


# -- guides and limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("guide", [from_labels(np.zeros(50, np.int64), 1), by_information_loss(), by_median()])
@pytest.mark.parametrize("k", [1, 2, 7, 25, 50])
def test_groups_of_distinct_numbers_end_smaller_than_twice_k(guide: Any, k: int) -> None:
    bins, codes = bin_numbers(np.random.default_rng(0).permutation(50) * 1.5)
    _, groups = Case([bins], [codes], guide, min_records=k).grower().grow()
    counts = np.bincount(groups)
    assert k <= counts.min() <= counts.max() < 2 * k


@pytest.mark.parametrize("largest", [3, 1 << 24, 1 << 40])
@pytest.mark.parametrize("lowest", [-(1 << 30), -1, 0])
def test_a_channel_may_hold_any_whole_numbers(lowest: int, largest: int) -> None:
    # One channel without weights is counted in a quicker way, which must not be taken beyond what it can hold.
    case = separated_case(4, n=40, min_records=3)
    channel = np.random.default_rng(8).integers(lowest, largest, (40, 1), endpoint=True)
    channel[:2, 0] = lowest, largest
    case = replace(case, guide=Guide(CHANNELS, channel, channel_weights=np.ones(1)))
    tree, groups = case.grower().grow()
    check_tree(case, tree, groups)
    np.testing.assert_array_equal(np.bincount(groups), np.bincount(tree.apply(case.records.codes)))


def test_without_falling_back_a_pure_node_is_left_whole() -> None:
    bins, codes = bin_numbers(np.arange(20))
    guide = from_labels(np.repeat([0, 1], [12, 8]), 2)
    case = Case([bins], [codes], guide, min_records=2, fall_back=False)
    assert np.bincount(case.grower().grow()[1]).tolist() == [12, 8]
    assert len(np.bincount(replace(case, fall_back=True).grower().grow()[1])) > 5


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 3), (5, 5), (6, 4)])
def test_too_few_records_for_two_groups_are_one(n: int, k: int, n_threads: int) -> None:
    bins, codes = bin_numbers(np.arange(n))
    case = Case([bins], [codes], from_labels(np.arange(n) % 2, 2), min_records=k)
    tree, groups = case.grower(n_threads=n_threads).grow()
    assert (tree.n_groups, groups.tolist()) == (1, [0] * n)


def test_best_first_takes_what_the_guide_wants_before_information_loss() -> None:
    # The left half is pure, but wide; the right half still has something to say.
    bins, codes = bin_numbers(np.array([0, 100, 200, 300, 301, 302, 303, 304]))
    guide = from_labels(np.array([0, 0, 0, 0, 1, 2, 1, 2]), 3)
    case = Case([bins], [codes], guide)
    order = [sorted(as_sets(case.grower().grow(leaves)[1].tolist()), key=min) for leaves in (2, 3)]
    assert order[0] == [frozenset(range(4)), frozenset(range(4, 8))]
    assert order[1][0] == frozenset(range(4))


def test_a_person_with_many_records_counts_once() -> None:
    # Ten records of one person, then four of others: only cuts among the last leave two persons on both sides.
    bins, codes = bin_numbers(np.arange(14))
    person = [0] * 10 + [1, 2, 3, 4]
    case = Case([bins], [codes], by_information_loss(), min_records=2)
    _, groups = case.grower([persons(person, 2)]).grow()
    for group in as_sets(groups.tolist()):
        assert len({person[row] for row in group}) >= 2
    assert len(set(groups.tolist())) == 2


def test_checks_are_asked_about_both_sides_in_one_call_per_round() -> None:
    asked: list[tuple[int, ...]] = []

    def passes(counts: np.ndarray) -> np.ndarray:
        asked.append(counts.shape)
        return np.ones(len(counts), np.bool_)

    bins, codes = bin_numbers(np.arange(16))
    values = np.arange(16, dtype=np.int32) % 3
    case = Case([bins], [codes], by_information_loss(), min_records=4)
    case.grower([Check(values, 3, False, passes)]).grow()
    assert asked == [(2, 3), (4, 3)]  # the root, then both halves together


def test_a_check_that_never_passes_leaves_one_group() -> None:
    case = random_case(3, 50, 3, "labels")
    check = Check(np.zeros(50, np.int32), 1, False, lambda counts: np.zeros(len(counts), np.bool_))
    for max_leaves in (None, 10):
        tree, groups = case.grower([check]).grow(max_leaves)
        assert (tree.n_groups, set(groups.tolist())) == (1, {0})


@in_examples(20)
@given(seed=seeds, n=sizes())
def test_the_best_candidate_that_passes_is_found_however_many_fail_before_it(seed: int, n: int) -> None:
    # Only one division passes: record 0 on the smaller side, and all of its code with it.
    case = replace(random_case(seed, n, 4), min_records=1)
    values = (np.arange(n) > 0).astype(np.int32)

    def passes(counts: np.ndarray) -> np.ndarray:
        alone = (counts[:, 0] == 1) & (counts[:, 1] <= n // 4)
        return alone | (counts[:, 0] == 0)

    checks = [Check(values, 2, False, passes)]
    tree, groups = case.grower(checks).grow(2)
    root = naive.grow(
        case.records, case.layout, case.guide, 1, checks,
        fall_back=case.fall_back, max_leaves=2, taxonomy=case.taxonomy,
    )  # fmt: skip
    assert tree.n_groups == len(list(root.leaves()))
    check_tree(case, tree, groups, checks, is_whole=False)


def test_threads_pack_the_same_records(monkeypatch):
    from sfumato.partition import records

    monkeypatch.setattr(records, "_SHARED_FROM", 1)
    random = np.random.default_rng(0)
    columns = [random.integers(0, 200, 1_001).astype(np.uint8), random.integers(0, 900, 1_001).astype(np.uint16)]
    one, three = (records.pack_records(columns, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one.codes, three.codes)
    np.testing.assert_array_equal(one.codes[:, :2], np.column_stack(columns))
