# SPDX-License-Identifier: Apache-2.0
"""What the bins of a group say: its middle, its width, its members."""

import numpy as np
import pytest
from hypothesis import given
from partition_cases import Case, in_examples, random_case, seeds, sizes

from sfumato.partition import group_summaries
from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.group_summaries import Groups, collect
from sfumato.partition.guides import by_median
from twins import naive_groups

pytestmark = pytest.mark.twins


def random_groups(random: np.random.Generator, n: int, *, is_partial: bool = False) -> Groups:
    """Groups without rhyme or reason, none of them empty; some records left out where asked."""
    group = random.integers(-1 if is_partial else 0, 6, n)
    numbers = {value: place for place, value in enumerate(sorted(set(group.tolist()) - {-1}))} | {-1: -1}
    return collect(np.array([numbers[value] for value in group.tolist()], np.int32), len(numbers) - 1)


def small_case() -> Case:
    """Six records in one group each of ages and colours; the third age and the last colour are missing."""
    ages = bin_numbers(np.array([10, 20, 0, 20, 50, 110]), np.arange(6) == 2)
    colours = bin_categories(np.array([2, 1, 1, 2, 0, 0]), np.arange(6) == 5, 4)
    return Case([ages[0], colours[0]], [ages[1], colours[1]], by_median())


# -- the twins -----------------------------------------------------------------------------------------------


@in_examples()
@given(seed=seeds, n=sizes())
def test_twins_collect_the_same_records(seed: int, n: int) -> None:
    groups = random_groups(np.random.default_rng(seed), n, is_partial=True)
    members = naive_groups.members_of(groups)
    assert groups.order.tolist() == [row for own in members for row in own]
    assert groups.sizes.tolist() == [len(own) for own in members]
    assert groups.offsets[0] == 0


@in_examples()
@given(seed=seeds, n=sizes())
def test_twins_summarize_the_same(seed: int, n: int) -> None:
    case = random_case(seed, n, 4)
    groups = random_groups(np.random.default_rng(seed), n, is_partial=True)
    fast = group_summaries.summarize(case.records.codes, groups, case.layout)
    slow = naive_groups.summarize(case.records.codes, groups, case.layout)
    for name, part in fast._asdict().items():
        np.testing.assert_array_equal(part, getattr(slow, name), err_msg=name)
    exact = naive_groups.widths(case.records.codes, groups, case.layout)
    if groups.n_groups:
        np.testing.assert_allclose(group_summaries.widths(fast, case.layout), exact, rtol=1e-12, atol=1e-15)


@in_examples()
@given(seed=seeds, n=sizes())
def test_twins_keep_the_same_share_of_each_group(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    groups = random_groups(random, n)
    distance = random.choice([0.0, 0.25, 0.5, 3.0], n)
    for share in (0.1, 0.5, 1.0):
        kept = distance.copy()
        group_summaries.nearest_share(groups, kept, share)
        naive = np.array(naive_groups.nearest_share(groups, distance, share))
        assert kept[groups.order].tolist() == naive[groups.order].tolist()


@in_examples()
@given(seed=seeds, n=sizes())
def test_twins_choose_the_same_members(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    case = random_case(seed, n, 4)
    codes, groups = case.records.codes, random_groups(random, n)
    middle = naive_groups.summarize(codes, groups, case.layout).middle
    distance = random.choice([0.0, 0.0, 0.5, np.inf], n)
    distance[groups.order[groups.offsets[:-1]]] = 0.5  # no group without a member that can be chosen
    chosen = group_summaries.nearest_members(codes, groups, case.layout, middle, distance)
    assert (groups.group[chosen] == np.arange(groups.n_groups)).all()
    own = codes[chosen, : case.layout.n_columns]
    assert list(map(tuple, own.tolist())) == naive_groups.nearest_members(codes, groups, case.layout, middle, distance)
    shares = random.choice([0.0, 0.3, 0.999999], groups.n_groups)
    ranked = group_summaries.rank_members(codes, groups, case.layout.n_columns, shares)
    assert (groups.group[ranked] == np.arange(groups.n_groups)).all()
    own = codes[ranked, : case.layout.n_columns]
    assert list(map(tuple, own.tolist())) == naive_groups.rank_members(codes, groups, case.layout.n_columns, shares)


@in_examples()
@given(seed=seeds, n=sizes())
def test_the_order_of_the_records_changes_no_group(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    case = random_case(seed, n, 4)
    group = random_groups(random, n).group
    order = random.permutation(n)
    shares = random.random(int(group.max()) + 1)
    seen = []
    for rows in (np.arange(n), order):
        codes = case.records.codes[rows, : case.layout.n_columns]
        groups = collect(group[rows], int(group.max()) + 1)
        summary = group_summaries.summarize(codes, groups, case.layout)
        member = group_summaries.nearest_members(codes, groups, case.layout, summary.middle, np.zeros(n))
        ranked = group_summaries.rank_members(codes, groups, case.layout.n_columns, shares)
        seen.append((*summary, codes[member], codes[ranked]))
    for one, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_threads", [2, 3, 9])
def test_the_number_of_threads_changes_no_group(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_summaries, "_SHARED_FROM", 0)
    random = np.random.default_rng(n_threads)
    for n in (1, 8, 60):
        case = random_case(n, n, 4)
        codes, groups = case.records.codes, random_groups(random, n)
        alone = group_summaries.summarize(codes, groups, case.layout)
        shared = group_summaries.summarize(codes, groups, case.layout, n_threads=n_threads)
        for name, part in alone._asdict().items():
            np.testing.assert_array_equal(getattr(shared, name), part, err_msg=name)
        given_parts = (codes, groups, case.layout, alone.middle, random.random(n))
        np.testing.assert_array_equal(
            group_summaries.nearest_members(*given_parts, n_threads=n_threads),
            group_summaries.nearest_members(*given_parts),
        )


# -- worked out on paper -------------------------------------------------------------------------------------


def test_the_middle_is_the_lower_median_or_the_most_frequent() -> None:
    case = small_case()  # ages coded 0, 1, missing 4, 1, 2, 3; colours 2, 1, 1, 2, 0, missing 4
    groups = collect(np.array([0, 0, 0, 0, 1, 1], np.int32), 2)
    summary = group_summaries.summarize(case.records.codes, groups, case.layout)
    assert summary.middle.tolist() == [[1, 1], [2, 0]]
    assert summary.lowest.tolist() == [[0, 1], [2, 0]]
    assert summary.highest.tolist() == [[1, 2], [3, 0]]
    assert summary.n_present.tolist() == [[3, 2], [2, 2]]
    assert summary.n_missing.tolist() == [[1, 0], [0, 1]]
    # Values beside missing are as wide as it gets; 50 to 110 is 0.6 of the range; 1 and 1 of 4 steps.
    np.testing.assert_allclose(group_summaries.widths(summary, case.layout), [[1.0, 0.25], [0.6, 0.25]])


@pytest.mark.parametrize(("n_missing", "is_missing"), [(0, False), (3, False), (4, True), (6, True)])
def test_a_group_is_missing_where_more_than_half_of_it_is(n_missing: int, is_missing: bool) -> None:
    bins, codes = bin_numbers(np.arange(7), np.arange(7) < n_missing)
    case = Case([bins], [codes], by_median())
    groups = collect(np.where(np.arange(7) == 6, 1, 0).astype(np.int32), 2)
    middle = group_summaries.summarize(case.records.codes, groups, case.layout).middle[0, 0]
    assert (middle == bins.missing_bin) == is_missing


def test_a_group_that_is_missing_throughout_has_no_width() -> None:
    bins, codes = bin_numbers(np.arange(5), np.arange(5) < 3)
    case = Case([bins], [codes], by_median())
    groups = collect(np.array([0, 0, 0, 1, 1], np.int32), 2)
    summary = group_summaries.summarize(case.records.codes, groups, case.layout)
    assert (summary.lowest[0, 0], summary.highest[0, 0], summary.middle[0, 0]) == (-1, -1, 2)
    assert group_summaries.widths(summary, case.layout).tolist() == [[0.0], [1.0]]


def test_the_member_nearest_the_middle_is_chosen_and_the_prediction_comes_first() -> None:
    case = small_case()
    codes, groups = case.records.codes, collect(np.zeros(6, np.int32), 1)
    middle = np.array([[1, 2]], np.int32)
    assert group_summaries.nearest_members(codes, groups, case.layout, middle, np.zeros(6)).tolist() == [3]
    distance = np.array([np.inf, np.inf, 0.25, 0.5, 0.25, np.inf])
    assert group_summaries.nearest_members(codes, groups, case.layout, middle, distance).tolist() == [4]
