# SPDX-License-Identifier: Apache-2.0
"""Relaxed Mondrian: balanced halves, the same groups whatever the order of the records, and a tree that finds them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import Case, cases, in_examples

from sfumato.partition import relaxed_mondrian as relaxed
from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.guides import by_median
from sfumato.partition.records import make_layout, pack_records
from sfumato.partition.taxonomy import make_taxonomy
from twins import naive, naive_relaxed

pytestmark = pytest.mark.twins


def groups_as_lists(group: np.ndarray) -> list[list[int]]:
    return sorted(np.flatnonzero(group == g).tolist() for g in np.unique(group))


@in_examples()
@given(case=cases(kind="median"))
def test_twins_form_the_same_groups(case: Case) -> None:
    codes = case.records.codes
    tree, group = relaxed.grow(codes, case.layout, case.min_records, taxonomy=case.taxonomy)
    expected = naive_relaxed.relaxed_mondrian(codes, case.layout, case.min_records, taxonomy=case.taxonomy)
    assert groups_as_lists(group) == expected
    assert np.bincount(group).min() >= min(case.min_records, case.n_records)
    assert tree.apply(codes).tolist() == group.tolist() == naive.apply(tree, codes)


@in_examples(30)
@given(case=cases(kind="median"), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_records_does_not_matter(case: Case, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(case.n_records)
    _, group = relaxed.grow(case.records.codes, case.layout, case.min_records, taxonomy=case.taxonomy)
    other, permuted = relaxed.grow(case.records.codes[order], case.layout, case.min_records, taxonomy=case.taxonomy)
    assert permuted.tolist() == group[order].tolist()
    assert other.apply(case.records.codes).tolist() == group.tolist()


@in_examples(30)
@given(case=cases(kind="median"), share=st.sampled_from([0.5, 0.8]))
def test_every_side_meets_a_further_condition(case: Case, share: float) -> None:
    value = np.arange(case.n_records) % 3

    def is_safe(rows: np.ndarray) -> bool:
        return bool(np.bincount(value[rows], minlength=3).max() <= share * len(rows))

    codes = case.records.codes
    if not is_safe(np.arange(case.n_records)):
        return
    asked = {"taxonomy": case.taxonomy, "is_safe": is_safe}
    _, group = relaxed.grow(codes, case.layout, case.min_records, **asked)
    assert all(is_safe(np.flatnonzero(group == g)) for g in np.unique(group))
    asked["is_safe"] = lambda rows: is_safe(np.array(rows))
    assert groups_as_lists(group) == naive_relaxed.relaxed_mondrian(codes, case.layout, case.min_records, **asked)


def test_records_with_the_median_value_lie_on_both_sides_by_their_other_codes() -> None:
    # Ages 1, 2, 2, 2, 2, 3: no cut between ages leaves 3 records on each side; the weights divide the age of 2.
    ages = bin_numbers(np.array([1, 2, 2, 2, 2, 3]))
    weights = bin_numbers(np.array([5, 9, 7, 6, 8, 5]))
    layout, codes = make_layout([ages[0], weights[0]]), pack_records([ages[1], weights[1]]).codes
    tree, group = relaxed.grow(codes, layout, 3)
    assert group.tolist() == [0, 1, 0, 0, 1, 1]
    # A record to come: age 2 with the weights 5 to 9, whatever the fitted records were.
    new = np.column_stack([np.full(5, 1), np.arange(5)]).astype(codes.dtype)
    assert tree.apply(new).tolist() == [0, 0, 0, 1, 1]


def test_records_that_are_alike_stay_together() -> None:
    bins, codes = bin_numbers(np.array([1, 2, 2, 2, 2, 3]))
    _, group = relaxed.grow(pack_records([codes]).codes, make_layout([bins]), 2)
    assert group.tolist() == [0] * 6


def test_a_child_of_the_common_label_is_divided_like_a_value() -> None:
    # Jobs 0 and 1 are health, 2 is food; food alone is too small, so health is divided by job.
    bins, codes = bin_categories(np.array([0, 0, 1, 1, 2]), None, 3)
    layout = make_layout([bins])
    labels = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]], np.int32)
    taxonomy = make_taxonomy(layout, [(labels, np.array([[0, 0.5, 1]] * 3))])
    _, group = relaxed.grow(pack_records([codes]).codes, layout, 2, taxonomy=taxonomy)
    assert group.tolist() == [0, 0, 1, 1, 1]


def test_a_guide_by_median_is_what_the_strict_method_uses() -> None:
    # The strict twin on the same table cannot cut: equal values stay together.
    bins, codes = bin_numbers(np.array([1, 2, 2, 2, 2, 3]))
    other = bin_numbers(np.array([5, 9, 7, 6, 8, 5]))
    case = Case([bins, other[0]], [codes, other[1]], by_median(), min_records=3, fall_back=False)
    tree, _ = case.grower().grow()
    assert (tree.column[0], tree.n_groups) == (1, 2)
