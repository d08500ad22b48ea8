# SPDX-License-Identifier: Apache-2.0
"""Growing with records set aside: the twins, the guarantee, and a tree that finds every group again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import Case, cases, in_examples

from sfumato.partition import information_loss_tree
from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.records import make_layout, pack_records
from twins import naive, naive_set_aside

pytestmark = pytest.mark.twins


def groups_as_lists(group: np.ndarray) -> list[list[int]]:
    return sorted(np.flatnonzero(group == g).tolist() for g in np.unique(group))


@in_examples()
@given(case=cases(kind="loss"))
def test_twins_form_the_same_groups(case: Case) -> None:
    codes, asked = case.records.codes, {"taxonomy": case.taxonomy}
    tree, group = information_loss_tree.grow(codes, case.layout, case.min_records, **asked)
    assert groups_as_lists(group) == naive_set_aside.set_aside(codes, case.layout, case.min_records, **asked)
    assert np.bincount(group).min() >= min(case.min_records, case.n_records)
    assert tree.n_groups == group.max() + 1
    assert tree.apply(codes).tolist() == group.tolist() == naive.apply(tree, codes)


@in_examples(30)
@given(case=cases(kind="loss"), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_records_does_not_matter(case: Case, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(case.n_records)
    codes, asked = case.records.codes, {"taxonomy": case.taxonomy}
    _, group = information_loss_tree.grow(codes, case.layout, case.min_records, **asked)
    other, permuted = information_loss_tree.grow(codes[order], case.layout, case.min_records, **asked)
    assert permuted.tolist() == group[order].tolist()
    assert other.apply(codes).tolist() == group.tolist()


@in_examples(40)
@given(case=cases(kind="loss"), share=st.sampled_from([0.5, 0.8]), n_values=st.sampled_from([2, 3]))
def test_every_group_meets_a_further_condition(case: Case, share: float, n_values: int) -> None:
    value = np.arange(case.n_records) % n_values

    def is_safe(rows: np.ndarray) -> bool:
        return bool(np.bincount(value[rows], minlength=3).max() <= share * len(rows))

    if not is_safe(np.arange(case.n_records)):
        return
    codes, asked = case.records.codes, {"taxonomy": case.taxonomy, "is_safe": is_safe}
    tree, group = information_loss_tree.grow(codes, case.layout, case.min_records, **asked)
    assert all(is_safe(np.flatnonzero(group == g)) for g in np.unique(group))
    assert np.bincount(group).min() >= min(case.min_records, case.n_records)
    assert tree.apply(codes).tolist() == group.tolist()
    asked["is_safe"] = lambda rows: is_safe(np.array(rows))
    assert groups_as_lists(group) == naive_set_aside.set_aside(codes, case.layout, case.min_records, **asked)


@in_examples(20)
@given(case=cases(max_records=400, kind="loss"))
def test_larger_tables_fill_more_nodes_than_there_is_room_for_at_first(case: Case) -> None:
    codes = case.records.codes
    tree, group = information_loss_tree.grow(codes, case.layout, min(2, case.n_records), taxonomy=case.taxonomy)
    assert tree.apply(codes).tolist() == group.tolist()
    assert np.bincount(group).min() >= min(2, case.n_records)


def test_an_odd_record_does_not_make_the_group_it_lies_in_wide() -> None:
    # Two towns of five records at two ages each, and one record of another age in each town. Cuts that keep 2
    # records on both sides would leave each odd one with its town; set aside, the two of them share a group.
    towns = bin_categories(np.repeat([0, 1], 6), None, 2)
    ages = bin_numbers(np.array([20] * 5 + [60] + [20] * 5 + [60]))
    layout, codes = make_layout([towns[0], ages[0]]), pack_records([towns[1], ages[1]]).codes
    _, group = information_loss_tree.grow(codes, layout, 2)
    assert groups_as_lists(group) == [[0, 1, 2, 3, 4], [5, 11], [6, 7, 8, 9, 10]]


def test_what_is_left_at_the_root_joins_the_group_where_it_costs_least() -> None:
    # 40 is alone: too few for a group, and nearer to the records of 30 than to those of 10.
    bins, codes = bin_numbers(np.array([10] * 4 + [30] * 4 + [40]))
    _, group = information_loss_tree.grow(pack_records([codes]).codes, make_layout([bins]), 4)
    assert groups_as_lists(group) == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]


def test_all_records_become_one_group_where_no_other_is_safe() -> None:
    bins, codes = bin_numbers(np.arange(6))
    tree, group = information_loss_tree.grow(
        pack_records([codes]).codes, make_layout([bins]), 1, is_safe=lambda rows: len(rows) > 5
    )
    assert (group.tolist(), tree.n_groups) == ([0] * 6, 1)
