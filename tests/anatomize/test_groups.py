# SPDX-License-Identifier: Apache-2.0
"""The groups of an anatomized table, judged by counting in plain Python."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.anatomize import joint_groups, kernels
from sfumato.anatomize.bucketize import assign_groups
from sfumato.anatomize.kernels import GroupedRecords
from sfumato.anatomize.suppression import ValueRanks, plan_suppression
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


def ls_of(codes, diversity):
    """Return one l for every column."""
    return [diversity] * codes.shape[1] if isinstance(diversity, int) else list(diversity)


def kept_of(codes, diversity, random):
    """Return the positions of the records that stay."""
    ranks = ValueRanks(codes)
    plan = plan_suppression(len(codes), ranks.counts, ls_of(codes, diversity), ranks.count_kinds)
    return np.arange(len(codes)) if plan is None else ranks.choose(plan, random)


def is_diverse(codes, group, diversity):
    """Return True if no value of any column is above 1/l of a group, by counting one by one."""
    sizes = Counter(group.tolist())
    for column, own in zip(codes.T, ls_of(codes, diversity), strict=True):
        counts = Counter(zip(group.tolist(), column.tolist(), strict=True))
        if any(count * own > sizes[g] for (g, _), count in counts.items()):
            return False
    return True


@in_examples()
@given(
    codes=coded_tables(),
    diversities=st.lists(st.integers(2, 5), min_size=3, max_size=3),
    is_same=st.booleans(),
    how=st.sampled_from(["largest", "random"]),
    seed=st.integers(0, 9),
)
def test_every_group_is_diverse_in_every_column(codes, diversities, is_same, how, seed):
    random = np.random.default_rng(seed)
    diversity = (diversities[:1] * 3 if is_same else diversities)[: codes.shape[1]]
    kept = kept_of(codes, diversity, random)
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
    kept = kept_of(codes, diversity, random)
    if len(kept):
        group = assign_groups(codes[kept], [diversity], random, how)
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
    assert len(kept_of(codes, diversity, np.random.default_rng(0))) == best


@in_examples()
@given(codes=coded_tables(), seed=st.integers(0, 9))
def test_records_are_suppressed_only_if_a_value_is_too_frequent(codes, seed):
    random = np.random.default_rng(seed)
    best = min(len(codes) // max(Counter(column.tolist()).values()) for column in codes.T)
    assert len(kept_of(codes, best, random)) == len(codes)
    assert len(kept_of(codes, best + 1, random)) < len(codes)


@st.composite
def small_tables(draw):
    """Tables so small that all choices of records can be tried."""
    n_records, n_columns = draw(st.integers(2, 9)), draw(st.integers(2, 3))
    values = st.lists(st.integers(0, 3), min_size=n_columns, max_size=n_columns)
    rows = draw(st.lists(values, min_size=n_records, max_size=n_records))
    return np.array(rows, np.int32)


def fewest_suppressed(codes, diversities):
    """Return how many records stay at the most, by trying all sets of them."""
    for n_kept in range(len(codes), 0, -1):
        for rows in itertools.combinations(range(len(codes)), n_kept):
            own = codes[list(rows)]
            counts = [max(Counter(column.tolist()).values()) for column in own.T]
            if all(count * own_l <= n_kept for count, own_l in zip(counts, diversities, strict=True)):
                return n_kept
    return 0


@in_examples()
@given(codes=small_tables(), diversities=st.lists(st.integers(2, 3), min_size=3, max_size=3))
def test_with_two_columns_no_choice_suppresses_fewer_records_and_with_three_hardly_any(codes, diversities):
    ls = diversities[: codes.shape[1]]
    kept = kept_of(codes, ls, np.random.default_rng(0))
    best = fewest_suppressed(codes, ls)
    assert all(
        Counter(c.tolist()).most_common(1)[0][1] * own <= len(kept)
        for c, own in zip(codes[kept].T, ls, strict=True)
        if len(kept)
    )
    # Two columns are an assignment problem, which has whole solutions for a given number of records.
    assert len(kept) == best if codes.shape[1] == 2 else best - len(kept) <= max(ls)


def test_suppression_is_at_the_minimum_of_the_linear_program():
    generator = np.random.default_rng(0)
    chances = [[0.7, 0.1, 0.1, 0.05, 0.05], [0.5, 0.3, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1]]
    codes = np.column_stack([generator.choice(len(p), 5000, p=p) for p in chances]).astype(np.int32)
    codes[:, 1] = np.where(generator.random(5000) < 0.3, np.minimum(codes[:, 0], 3), codes[:, 1])
    kinds, sizes = np.unique(codes, axis=0, return_counts=True)
    rows = [kinds[:, j] == value for j in range(3) for value in range(5)]
    program = linprog(
        -np.ones(len(kinds)), np.array(rows, float) - 1 / 3, np.zeros(15), bounds=[(0, size) for size in sizes]
    )
    kept = kept_of(codes, 3, generator)
    assert -program.fun - len(kept) < 10
    group = assign_groups(codes[kept], [3] * 3, generator)
    assert is_diverse(codes[kept], group, 3)
    assert group.max() + 1 > 0.85 * len(kept) / 3  # nearly as many groups as there can be


@in_examples()
@given(codes=coded_tables(max_columns=1), diversity=st.integers(2, 5), seed=st.integers(0, 99))
def test_the_kernels_draw_as_their_slow_twins_do(codes, diversity, seed):
    random = np.random.default_rng(seed)
    kept = kept_of(codes, diversity, random)
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
    for window in (len(bucket), 3):
        group = kernels.hand_out(bucket, uniform, counts, drawn, names, window)
        assert group.tolist() == naive.hand_out(bucket, uniform, counts, drawn, names, window)
    numbers = bucket.astype(np.int64)
    order, starts = sort_groups(numbers, 6)
    assert (order.tolist(), starts.tolist()) == naive.sort_groups(numbers, 6)


def test_the_random_rule_makes_other_groups_than_the_largest_values_alone():
    codes = np.repeat([0, 1, 2, 3, 4, 5], [40, 40, 10, 10, 10, 10]).astype(np.int32)[:, None]
    found = {}
    for how in ("largest", "random"):
        group = assign_groups(codes, [2], np.random.default_rng(0), how)
        pairs = Counter(tuple(sorted(codes[group == g, 0].tolist())) for g in range(group.max() + 1))
        found[how] = len(pairs)
    assert found["random"] > found["largest"]


def joined(codes, group, diversity, seed=0):
    ls = np.array(ls_of(codes, diversity), np.int64)
    return joint_groups.join_unsafe(codes, np.asarray(group), ls, np.random.default_rng(seed))


def test_joined_groups_that_are_short_of_helpers_join_some_of_the_others_and_not_all():
    # Two unsafe groups make a safe pair, twenty times; the last group has one value alone, and only pairs can help it.
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1]] * 20 + [[2, 2], [2, 2]], np.int32)
    group = joined(codes, np.arange(len(codes)) // 2, 2)
    assert is_diverse(codes, group, 2)
    assert group.max() + 1 >= 10


def test_groups_that_no_exchange_helps_are_joined():
    # Two columns with the same values in every second record: whoever differs in one is equal in the other.
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.int32)
    group = assign_groups(codes, [2, 2], np.random.default_rng(0), "largest")
    assert is_diverse(codes, group, 2)
    unsafe = joined(codes, [0, 0, 1, 1], 2)
    assert is_diverse(codes, unsafe, 2)
    assert unsafe.tolist() == [0, 0, 0, 0]


@in_examples()
@given(codes=coded_tables(), diversity=st.integers(2, 4), n_groups=st.integers(1, 12), seed=st.integers(0, 9))
def test_any_groups_of_a_diverse_table_are_joined_until_all_are_diverse(codes, diversity, n_groups, seed):
    random = np.random.default_rng(seed)
    codes = codes[kept_of(codes, diversity, random)]
    if not len(codes):
        return
    group = np.unique(random.integers(0, n_groups, len(codes)), return_inverse=True)[1]
    found = joined(codes, group, diversity, seed)
    assert is_diverse(codes, found, diversity)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    # Groups are joined and never taken apart.
    assert all(len(set(found[group == g].tolist())) == 1 for g in set(group.tolist()))


def test_few_groups_are_joined_where_the_values_leave_no_room():
    # The most frequent values of both columns have exactly a third of the records, so that any surplus needs a deficit.
    generator = np.random.default_rng(0)
    first = np.repeat([0, 1, 2, 3], [1000, 1000, 600, 400])
    codes = np.column_stack([generator.permutation(first) for _ in range(3)]).astype(np.int32)
    group = assign_groups(codes, [3] * 3, generator)
    assert is_diverse(codes, group, 3)
    assert group.max() + 1 > 900  # of 1,000
    assert np.bincount(group).max() < 200


def test_exchanging_records_separates_equal_values():
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 8, size=(400, 2)).astype(np.int32)
    group = np.arange(400) // 4
    before = sum(len(set(codes[group == g, 1])) < 4 for g in range(100))
    joint_groups.separate_equal(codes, group, np.array([4, 4]), np.random.default_rng(1))
    after = sum(len(set(codes[group == g, j])) < 4 for g in range(100) for j in range(2))
    assert before > 50
    assert after == 0
    assert np.bincount(group).tolist() == [4] * 100


@in_examples()
@given(codes=coded_tables(), seed=st.integers(0, 99), diversities=st.lists(st.integers(2, 4), min_size=3, max_size=3))
def test_the_kernels_of_joint_groups_do_as_their_slow_twins(codes, seed, diversities):
    random = np.random.default_rng(seed)
    ls = np.array(diversities[: codes.shape[1]], np.int64)
    group = np.unique(random.integers(0, max(1, len(codes) // 3), len(codes)), return_inverse=True)[1]
    order, starts = sort_groups(group, int(group.max()) + 1)
    of_place = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    grouped = GroupedRecords(codes, order, starts, of_place, ls)
    slow = naive.Grouped(codes.tolist(), order.tolist(), starts.tolist(), ls.tolist())
    clashing = kernels.find_clashing(grouped)
    assert clashing.tolist() == naive.find_clashing(slow)
    first, step = random.integers(0, len(codes), len(clashing)), int(random.integers(1, len(codes) + 1))
    kernels.exchange(grouped, clashing, first, step, 5)
    naive.exchange(slow, clashing.tolist(), first.tolist(), step, 5)
    assert order.tolist() == slow.order
    records, others = order[: starts[1]], order[starts[1] :]
    assert kernels.excess_of(codes, records, ls) == naive.excess_of(codes.tolist(), records.tolist(), ls.tolist())
    if len(others):
        rest = starts[1:] - starts[1]
        best = kernels.best_partner(codes, records, others, rest, ls)
        assert best == naive.best_partner(codes.tolist(), records.tolist(), others.tolist(), rest.tolist(), ls.tolist())


def test_the_number_of_a_group_does_not_tell_when_it_was_made():
    # The most frequent values are drawn first, so groups of two rare ones are made last.
    codes = np.repeat(np.arange(20), [200, 190, *[20] * 18]).astype(np.int32)[:, None]
    group = assign_groups(codes, [2], np.random.default_rng(0), "largest")
    is_rare = np.array([codes[group == g, 0].min() > 1 for g in range(group.max() + 1)])
    assert 10 < is_rare.sum() < len(is_rare) - 10
    numbers = np.arange(len(is_rare))
    # Chance: a standard error of about n / sqrt(12 * 40); without mixing the means would be half the groups apart.
    assert abs(numbers[is_rare].mean() - numbers[~is_rare].mean()) < 0.2 * len(is_rare)


@pytest.mark.parametrize("how", ["largest", "random"])
def test_records_meet_whoever_stands_at_the_same_place_of_the_table_only_by_chance(how):
    codes = np.repeat([0, 1], 500).astype(np.int32)[:, None]  # sorted by value, as tables often are
    group = assign_groups(codes, [2], np.random.default_rng(0), how)
    first, second = np.argsort(group[:500]), np.argsort(group[500:])  # places of the two members, by group
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.2  # 500 groups: standard error 0.045
