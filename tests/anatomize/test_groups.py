# SPDX-License-Identifier: Apache-2.0
"""The groups of an anatomized table, judged by counting in plain Python."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.anatomize import bucketize, kernels
from sfumato.anatomize.bucketize import assign_groups, largest_l, plan_suppression
from sfumato.grouping import sort_groups
from strategies import in_examples
from twins import naive_anatomy as naive


@st.composite
def coded_tables(draw, max_columns=3):
    """Sensitive codes, often with a value that is much too frequent."""
    n_records = draw(st.integers(2, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    columns = []
    for _ in range(draw(st.integers(1, max_columns))):
        n_values = draw(st.integers(1, 12))
        chances = 1.0 / np.arange(1, n_values + 1) ** draw(st.sampled_from((0.0, 1.0, 3.0)))
        drawn = generator.choice(n_values, n_records, p=chances / chances.sum())
        columns.append(np.unique(drawn, return_inverse=True)[1])
    return np.column_stack(columns).astype(np.int32)


def is_diverse(codes, group, diversity):
    """Return True if no value of any column is above 1/l of a group, by counting one by one."""
    sizes = Counter(group.tolist())
    for column in codes.T:
        counts = Counter(zip(group.tolist(), column.tolist(), strict=True))
        if any(count * diversity > sizes[g] for (g, _), count in counts.items()):
            return False
    return True


@in_examples()
@given(
    codes=coded_tables(),
    diversity=st.integers(2, 5),
    how=st.sampled_from(["largest", "random"]),
    seed=st.integers(0, 9),
)
def test_every_group_is_diverse_in_every_column(codes, diversity, how, seed):
    random = np.random.default_rng(seed)
    kept = plan_suppression(codes, diversity, random)
    if not len(kept):
        return
    group = assign_groups(codes[kept], diversity, random, how)
    assert len(group) == len(kept)
    assert sorted(set(group.tolist())) == list(range(group.max() + 1))
    assert is_diverse(codes[kept], group, diversity)


@in_examples()
@given(codes=coded_tables(max_columns=1), diversity=st.integers(2, 5), how=st.sampled_from(["largest", "random"]))
def test_with_one_column_there_are_as_many_groups_as_there_can_be(codes, diversity, how):
    random = np.random.default_rng(0)
    kept = plan_suppression(codes, diversity, random)
    if len(kept):
        group = assign_groups(codes[kept], diversity, random, how)
        assert group.max() + 1 == len(kept) // diversity
        assert np.bincount(group).max() < 2 * diversity


@in_examples()
@given(codes=coded_tables(max_columns=1), diversity=st.integers(2, 5))
def test_no_choice_leaves_out_fewer_records(codes, diversity):
    counts = Counter(codes[:, 0].tolist())
    # Any table with n records and no value in more than n // l of them takes at most that many of each value.
    best = max(
        (n for n in range(len(codes) + 1) if sum(min(count, n // diversity) for count in counts.values()) >= n),
        default=0,
    )
    assert len(plan_suppression(codes, diversity, np.random.default_rng(0))) == best


@in_examples()
@given(codes=coded_tables(), seed=st.integers(0, 9))
def test_the_largest_l_needs_no_suppression_and_the_next_one_does(codes, seed):
    random = np.random.default_rng(seed)
    best = largest_l(codes)
    assert len(plan_suppression(codes, best, random)) == len(codes)
    assert len(plan_suppression(codes, best + 1, random)) < len(codes)


@in_examples()
@given(codes=coded_tables(max_columns=1), diversity=st.integers(2, 5), seed=st.integers(0, 99))
def test_the_kernels_draw_as_their_slow_twins_do(codes, diversity, seed):
    random = np.random.default_rng(seed)
    kept = plan_suppression(codes, diversity, random)
    counts = np.sort(np.bincount(codes[kept, 0]))[::-1].copy() if len(kept) else np.zeros(1, np.int64)
    n_groups = len(kept) // diversity
    assert kernels.draw_from_largest(counts, diversity, n_groups).tolist() == naive.draw_from_largest(
        counts, diversity, n_groups
    )
    random.shuffle(counts)
    uniform = random.random(n_groups * diversity)
    drawn = kernels.draw_at_random(counts, diversity, n_groups, uniform)
    assert drawn.tolist() == naive.draw_at_random(counts, diversity, n_groups, uniform)


@in_examples()
@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.integers(0, 99))
def test_records_are_handed_out_and_sorted_as_the_slow_twins_do(buckets, seed):
    random = np.random.default_rng(seed)
    bucket = np.array(buckets, np.int32)
    counts = np.bincount(bucket)
    drawn = random.permutation(bucket)[: len(bucket) // 2 * 2].astype(np.int64)
    uniform, names = random.random(len(drawn)), random.permutation(len(drawn) // 2)
    group = kernels.hand_out(bucket, uniform, counts, drawn, names)
    assert group.tolist() == naive.hand_out(bucket, uniform, counts, drawn, names)
    numbers = bucket.astype(np.int64)
    order, starts = sort_groups(numbers, 6)
    assert (order.tolist(), starts.tolist()) == naive.sort_groups(numbers, 6)


def test_the_random_rule_makes_other_groups_than_the_largest_values_alone():
    codes = np.repeat([0, 1, 2, 3, 4, 5], [40, 40, 10, 10, 10, 10]).astype(np.int32)[:, None]
    found = {}
    for how in ("largest", "random"):
        group = assign_groups(codes, 2, np.random.default_rng(0), how)
        pairs = Counter(tuple(sorted(codes[group == g, 0].tolist())) for g in range(group.max() + 1))
        found[how] = len(pairs)
    assert found["random"] > found["largest"]


def test_joined_groups_that_are_short_of_helpers_join_some_of_the_others_and_not_all():
    # Two unsafe groups make a safe pair, twenty times; the last group has one value alone, and only pairs can help it.
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1]] * 20 + [[2, 2], [2, 2]], np.int32)
    group = bucketize.merge_unsafe(codes, np.arange(len(codes)) // 2, 2, np.random.default_rng(0))
    assert is_diverse(codes, group, 2)
    assert group.max() + 1 >= 10


def test_groups_that_no_exchange_helps_are_joined():
    # Two columns with the same values in every second record: whoever differs in one is equal in the other.
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.int32)
    group = assign_groups(codes, 2, np.random.default_rng(0), "largest")
    assert is_diverse(codes, group, 2)
    unsafe = bucketize.merge_unsafe(codes, np.array([0, 0, 1, 1]), 2, np.random.default_rng(0))
    assert is_diverse(codes, unsafe, 2)
    assert unsafe.tolist() == [0, 0, 0, 0]


def test_exchanging_records_separates_equal_values():
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 8, size=(400, 2)).astype(np.int32)
    group = np.arange(400) // 4
    before = sum(len(set(codes[group == g, 1])) < 4 for g in range(100))
    bucketize.separate_equal(codes, group, np.random.default_rng(1))
    after = sum(len(set(codes[group == g, j])) < 4 for g in range(100) for j in range(2))
    assert before > 50
    assert after == 0
    assert np.bincount(group).tolist() == [4] * 100


def test_the_number_of_a_group_does_not_tell_when_it_was_made():
    # The most frequent values are drawn first, so groups of two rare ones are made last.
    codes = np.repeat(np.arange(20), [200, 190, *[20] * 18]).astype(np.int32)[:, None]
    group = assign_groups(codes, 2, np.random.default_rng(0), "largest")
    is_rare = np.array([codes[group == g, 0].min() > 1 for g in range(group.max() + 1)])
    assert 10 < is_rare.sum() < len(is_rare) - 10
    numbers = np.arange(len(is_rare))
    # Chance: a standard error of about n / sqrt(12 * 40); without mixing the means would be half the groups apart.
    assert abs(numbers[is_rare].mean() - numbers[~is_rare].mean()) < 0.2 * len(is_rare)


@pytest.mark.parametrize("how", ["largest", "random"])
def test_records_meet_whoever_stands_at_the_same_place_of_the_table_only_by_chance(how):
    codes = np.repeat([0, 1], 500).astype(np.int32)[:, None]  # sorted by value, as tables often are
    group = assign_groups(codes, 2, np.random.default_rng(0), how)
    first, second = np.argsort(group[:500]), np.argsort(group[500:])  # places of the two members, by group
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.2  # 500 groups: standard error 0.045
