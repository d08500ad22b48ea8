# SPDX-License-Identifier: Apache-2.0
"""The candidates of one node: which there are, what they gain, in which order they come."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import chain, combinations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_cases import GUIDE_KINDS, Case, cases, fast_splits, in_examples, random_case, seeds, sizes, tolerance

from sfumato.partition.binning import bin_categories, bin_numbers
from sfumato.partition.category_splits import MAX_ENUMERATED
from sfumato.partition.guides import (
    CHANNELS,
    ENTROPY,
    Guide,
    by_information_loss,
    by_median,
    from_labels,
    from_numbers,
    from_probabilities,
)
from twins import naive, naive_splitting

Ranked = list[tuple[int, naive_splitting.Split]]
FindSplits = Callable[..., Ranked]

pytestmark = pytest.mark.twins
both_twins = pytest.mark.parametrize("find", [naive_splitting.find_splits, fast_splits], ids=["naive", "fast"])


def numbers(values: list[float], labels: list[int], *, missing: list[int] | None = None, **asked: object) -> Case:
    """One column of numbers and a label per record; `missing` names the records without a value."""
    is_missing = None if missing is None else np.isin(np.arange(len(values)), missing)
    bins, codes = bin_numbers(np.array(values), is_missing)
    guide = asked.pop("guide", None) or from_labels(np.array(labels), max(labels) + 1)
    return Case([bins], [codes], guide, **{"fall_back": False, **asked})


def categories(indexes: list[int], n_categories: int, guide: Guide, **asked: object) -> Case:
    bins, codes = bin_categories(np.array(indexes), None, n_categories)
    return Case([bins], [codes], guide, **{"fall_back": False, **asked})


def ranked(find: FindSplits, case: Case) -> Ranked:
    return find(case.histogram, case.layout, case.scoring)


def lefts(found: Ranked) -> list[set[int]]:
    return [set(split.left_codes) for _, split in found]


# -- the twins -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GUIDE_KINDS)
def test_twins_list_the_same_candidates_with_the_same_gains(kind: str) -> None:
    @in_examples(40)
    @given(case=cases(kind=kind), n_ranks=st.sampled_from([1024, 1, 3]))
    def compare(case: Case, n_ranks: int) -> None:
        hist, layout, scoring = case.histogram, case.layout, case.scoring
        exact = {(phase, s.column, s.position): s for phase, s in naive_splitting.find_splits(hist, layout, scoring)}
        found = fast_splits(hist, layout, scoring, n_ranks)
        fast = {(phase, s.column, s.position): s for phase, s in found}
        assert fast.keys() == exact.keys()
        assert len(fast) == len(found)
        slack = tolerance(hist, layout, scoring)
        for key, split in fast.items():
            assert split.gain == pytest.approx(float(exact[key].gain), rel=1e-9, abs=slack)
            assert replace(split, gain=0) == replace(exact[key], gain=0)
        assert found == sorted(found, key=lambda item: (item[0], -item[1].gain, item[1].column, item[1].position))

    compare()


@in_examples()
@given(seed=seeds, n=sizes())
def test_twins_agree_on_the_best_where_it_stands_out(seed: int, n: int) -> None:
    case = random_case(seed, n, 3, "numbers")
    exact = naive_splitting.find_splits(case.histogram, case.layout, case.scoring)
    best = fast_splits(case.histogram, case.layout, case.scoring, n_ranks=1, only_once=True)
    assert len(best) == min(1, len(exact))
    if len(exact) > 1 and exact[0][1].gain > exact[1][1].gain * (1 + Fraction(1, 10**9)):
        assert (best[0][0], replace(best[0][1], gain=0)) == (exact[0][0], replace(exact[0][1], gain=0))


# -- gains worked out on paper -------------------------------------------------------------------------------


@both_twins
def test_gini_of_a_clean_cut_is_the_whole_impurity(find: FindSplits) -> None:
    # Ages 20, 30 say no, 40, 50 say yes: 4 records with impurity 1/2 each fall to 0 at the middle cut.
    found = ranked(find, numbers([20, 30, 40, 50], [0, 0, 1, 1]))
    assert [(s.last_bin, s.n_left, float(s.gain)) for _, s in found] == [
        (1, 2, pytest.approx(2.0)),
        (0, 1, pytest.approx(2 / 3)),  # 1 + 5/3 - 2
        (2, 3, pytest.approx(2 / 3)),
    ]


@both_twins
def test_variance_reduction_of_a_number(find: FindSplits) -> None:
    guide = Guide(CHANNELS, np.array([[1], [2], [6], [7]]), channel_weights=np.array([0.5]))
    best = ranked(find, numbers([1, 2, 3, 4], [], guide=guide))[0][1]
    assert (best.last_bin, float(best.gain)) == (1, pytest.approx(0.5 * (9 / 2 + 169 / 2 - 256 / 4)))


@both_twins
def test_entropy_of_a_clean_cut_is_all_of_it(find: FindSplits) -> None:
    guide = from_labels(np.array([0, 0, 0, 1]), 2, rule=ENTROPY)
    best = ranked(find, numbers([1, 2, 3, 4], [], guide=guide))[0][1]
    assert best.last_bin == 2
    assert float(best.gain) == pytest.approx(-3 * log(3 / 4) - log(1 / 4))


@both_twins
def test_a_negative_weight_turns_a_gain_into_a_cost(find: FindSplits) -> None:
    label, person = np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.uint8)
    bins, codes = zip(*(bin_categories(part, None, 2) for part in (label, person)), strict=True)
    for cost, n_candidates in [(0.0, 1), (1.0, 1), (-1.0, 2)]:
        guide = Guide(CHANNELS, None, [label, person], [2, 2], np.array([1.0, 1.0, -cost, -cost]))
        found = ranked(find, Case(list(bins), list(codes), guide, fall_back=False))
        assert [(s.column, float(s.gain)) for _, s in found] == [(0, pytest.approx(2.0)), (1, pytest.approx(2.0))][
            :n_candidates
        ]


@both_twins
def test_records_that_weigh_more_count_more_but_not_towards_the_size_of_a_side(find: FindSplits) -> None:
    plain = numbers([1, 2, 2, 2, 3], [0, 1, 1, 1, 0], min_records=1)
    folded = numbers([1, 2, 3], [0, 1, 0], weights=np.array([1, 3, 1]))
    assert [(s.last_bin, float(s.gain)) for _, s in ranked(find, plain)] == [
        (s.last_bin, pytest.approx(float(s.gain))) for _, s in ranked(find, folded)
    ]
    heavy = numbers([1, 2, 3], [0, 1, 0], weights=np.array([100, 100, 100]), min_records=2)
    assert ranked(find, heavy) == []


@both_twins
def test_a_side_without_weight_brings_nothing(find: FindSplits) -> None:
    case = numbers([1, 2, 3], [0, 1, 1], weights=np.array([0, 0, 5]), fall_back=True)
    assert {phase for phase, _ in ranked(find, case)} == {1}


@both_twins
def test_information_loss_is_the_fall_of_width_times_records(find: FindSplits) -> None:
    # 0, 10, 40, 100: the whole is 1 wide; cut after 40 leaves 3 records of width 0.4 and one of 0.
    found = ranked(find, numbers([0, 10, 40, 100], [], guide=by_information_loss()))
    assert [(s.last_bin, float(s.gain)) for _, s in found] == [
        (2, pytest.approx(4 - 3 * 0.4)),
        (1, pytest.approx(4 - 2 * 0.1 - 2 * 0.6)),
        (0, pytest.approx(4 - 3 * 0.9)),
    ]


@both_twins
def test_information_loss_of_values_beside_missing_is_whole(find: FindSplits) -> None:
    case = numbers([0, 10, 100, 0], [], missing=[3], guide=by_information_loss())
    gains = {(s.last_bin, s.missing_left): float(s.gain) for _, s in ranked(find, case)}
    assert gains == {
        (2, False): pytest.approx(4 - 3 * 1.0),  # missing alone on the right
        (1, False): pytest.approx(4 - 2 * 0.1 - 2),
        (0, False): pytest.approx(4 - 3),
        (1, True): pytest.approx(4 - 3 - 0),
        (0, True): pytest.approx(4 - 2 - 2 * 0.9),
    }


@both_twins
def test_a_single_missing_value_makes_a_narrow_node_wide(find: FindSplits) -> None:
    case = numbers([0, 10, 20, 100, 0], [], missing=[4], guide=by_information_loss())
    hist = naive.histogram(case.records, case.layout, case.guide, [0, 1, 2, 4])
    best = find(hist, case.layout, case.scoring)[0][1]
    assert (best.last_bin, best.missing_left, float(best.gain)) == (2, False, pytest.approx(4 - 3 * 0.2))


@both_twins
def test_information_loss_of_categories_counts_them(find: FindSplits) -> None:
    # Three of five categories present, with 4, 1 and 1 records.
    found = ranked(find, categories([0, 0, 0, 0, 2, 3], 5, by_information_loss()))
    assert [(set(s.left_codes) & {0, 2, 3}, float(s.gain)) for _, s in found] == [
        ({0}, pytest.approx((12 - 2) / 4)),
        ({2}, pytest.approx((12 - 5) / 4)),
        ({0, 2}, pytest.approx((12 - 5) / 4)),
    ]


@both_twins
def test_values_that_differ_by_next_to_nothing_can_still_be_told_apart(find: FindSplits) -> None:
    # Beside an outlier the others stand at the same place, as far as floats can tell.
    case = numbers([-1e300, 1.0, 2.0, 3.0, 4.0], [], guide=by_information_loss(), min_records=2)
    hist = naive.histogram(case.records, case.layout, case.guide, [1, 2, 3, 4])
    assert lefts(find(hist, case.layout, case.scoring)) == [{0, 1, 2}]


@both_twins
def test_mondrian_cuts_the_widest_column_at_its_median(find: FindSplits) -> None:
    narrow = bin_numbers(np.array([40, 41, 40, 41, 0, 100]))
    wide = bin_numbers(np.array([1, 2, 3, 4, 5, 6]))
    case = Case([narrow[0], wide[0]], [narrow[1], wide[1]], by_median(), fall_back=False)
    rows = [0, 1, 2, 3]
    found = find(naive.histogram(case.records, case.layout, case.guide, rows), case.layout, case.scoring)
    assert [(s.column, s.last_bin, s.n_left, float(s.gain)) for _, s in found] == [
        (1, 1, 2, pytest.approx(3 / 5)),
        (0, 1, 2, pytest.approx(1 / 100)),
    ]


@both_twins
def test_mondrian_takes_the_admissible_cut_nearest_the_median(find: FindSplits) -> None:
    values = [1, 1, 1, 1, 1, 1, 2, 3]
    for k, expected in [(1, [(0, 6)]), (2, [(0, 6)]), (3, [])]:
        found = ranked(find, numbers(values, [], guide=by_median(), min_records=k))
        assert [(s.last_bin, s.n_left) for _, s in found] == expected


@both_twins
def test_mondrian_falls_back_where_no_prefix_is_admissible(find: FindSplits) -> None:
    case = categories([0, 1, 1, 1, 1, 2], 3, by_median(), min_records=2, fall_back=True)
    assert [(phase, set(s.left_codes)) for phase, s in ranked(find, case)] == [(1, {1})]


# -- which candidates there are ------------------------------------------------------------------------------


@both_twins
def test_missing_values_go_to_either_side_or_stand_alone(find: FindSplits) -> None:
    case = numbers([1, 2, 3, 0, 0], [0, 1, 2, 3, 3], missing=[3, 4])
    divisions = {frozenset({frozenset(left), frozenset({0, 1, 2, 3} - left)}) for left in lefts(ranked(find, case))}
    expected = [{0}, {0, 1}, {0, 1, 2}, {0, 3}, {0, 1, 3}]
    assert divisions == {frozenset({frozenset(left), frozenset({0, 1, 2, 3} - left)}) for left in expected}


@both_twins
@pytest.mark.parametrize("n_present", [2, 5, MAX_ENUMERATED])
def test_every_subset_of_few_categories_is_a_candidate_once(find: FindSplits, n_present: int) -> None:
    guide = Guide(CHANNELS, 2 ** np.arange(n_present).reshape(-1, 1), channel_weights=np.ones(1))
    found = ranked(find, categories(list(range(n_present)), n_present, guide))
    everything = set(range(n_present))
    divisions = [frozenset({frozenset(left), frozenset(everything - left)}) for left in lefts(found)]
    assert len(divisions) == len(set(divisions)) == 2 ** (n_present - 1) - 1


@both_twins
def test_many_categories_are_cut_at_prefixes_of_an_order(find: FindSplits) -> None:
    n = MAX_ENUMERATED + 1
    values = np.random.default_rng(0).permutation(n)
    guide = Guide(CHANNELS, values.reshape(-1, 1) ** 2, channel_weights=np.ones(1))
    by_value = np.argsort(values)
    expected = [set(by_value[:length].tolist()) for length in range(1, n)]
    assert sorted(lefts(ranked(find, categories(list(range(n)), n, guide))), key=len) == expected


@in_examples(25)
@given(seed=seeds, n_categories=st.integers(MAX_ENUMERATED + 1, MAX_ENUMERATED + 3))
def test_for_one_channel_the_best_prefix_is_the_best_subset(seed: int, n_categories: int) -> None:
    # A theorem (Fisher 1958; Breiman et al. 1984): ordered by their means, some prefix is optimal.
    random = np.random.default_rng(seed)
    indexes = np.concatenate([np.arange(n_categories), random.integers(0, n_categories, 20)])
    channel = random.integers(0, 50, len(indexes)).reshape(-1, 1)
    case = categories(indexes.tolist(), n_categories, Guide(CHANNELS, channel, channel_weights=np.ones(1)))
    rows = case.histogram.tolist()
    total = [sum(entry) for entry in zip(*rows, strict=True)]
    subsets = chain.from_iterable(combinations(range(n_categories), size) for size in range(1, n_categories))
    best = max(
        naive_splitting.channel_gain(
            [sum(rows[code][entry] for code in subset) for entry in (0, 1)], total, case.scoring
        )
        for subset in subsets
    )
    assert fast_splits(case.histogram, case.layout, case.scoring)[0][1].gain == pytest.approx(float(best), rel=1e-9)


@both_twins
def test_categories_are_also_ordered_by_their_principal_component(find: FindSplits) -> None:
    # Two equal channels and one of its own: the widest single channel is the third, the principal axis is not.
    random = np.random.default_rng(3)
    n = 12
    shared, own = random.permutation(n) * 10, random.permutation(n) * 11
    dense = np.stack([shared, shared, own], axis=1)
    found = ranked(find, categories(list(range(n)), n, Guide(CHANNELS, dense, channel_weights=np.ones(3))))
    prefixes = {frozenset(left) for left in lefts(found)} | {frozenset(set(range(n)) - left) for left in lefts(found)}
    for length in range(1, n):
        assert frozenset(np.argsort(own)[:length].tolist()) in prefixes
    mostly_shared = [frozenset(np.argsort(shared)[:length].tolist()) for length in range(1, n)]
    assert max(float(s.gain) for _, s in found) >= max(
        float(naive_splitting.channel_gain(_sums(dense, left), _sums(dense, range(n)), _plain_scoring(3))) * 0.9
        for left in mostly_shared
    )


@both_twins
def test_categories_are_ordered_by_a_channel_that_speaks_for_a_split(find: FindSplits) -> None:
    # The second channel differs far more between categories, but its weight is negative.
    random = np.random.default_rng(4)
    n = 12
    wanted, unwanted = random.permutation(n), random.permutation(n) * 50
    guide = Guide(CHANNELS, np.stack([wanted, unwanted], axis=1), channel_weights=np.array([1.0, -1e-4]))
    found = lefts(ranked(find, categories(list(range(n)), n, guide)))
    prefixes = {frozenset(left) for left in found} | {frozenset(set(range(n)) - left) for left in found}
    assert {frozenset(np.argsort(wanted)[:length].tolist()) for length in range(1, n)} <= prefixes


def _sums(dense: np.ndarray, rows: object) -> list[int]:
    own = list(rows)  # type: ignore[call-overload]
    return [len(own), *dense[own].sum(axis=0).tolist()]


def _plain_scoring(n_channels: int) -> naive_splitting.Scoring:
    return naive_splitting.Scoring(CHANNELS, np.ones(n_channels), False, False, 1)


@pytest.mark.parametrize(
    "find", [naive_splitting.find_splits, partial(fast_splits, n_ranks=1, only_once=True)], ids=["naive", "fast"]
)
def test_thousands_of_categories_are_divided_at_the_right_place(find: FindSplits) -> None:
    n_categories = 3000
    random = np.random.default_rng(4)
    is_high = random.random(n_categories) < 0.5
    indexes = np.concatenate([np.arange(0, n_categories, 3)] * 2)  # two in three never occur
    case = categories(indexes.tolist(), n_categories, from_labels(is_high[indexes].astype(int), 2), min_records=900)
    best = ranked(find, case)[0][1]
    present = set(indexes.tolist())
    one_side = {code for code in present if is_high[code]}
    left = set(best.left_codes)
    assert left & present in (one_side, present - one_side)
    assert left - present in (set(), set(range(n_categories)) - present)
    assert float(best.gain) == pytest.approx(2 * len(one_side) * 2 * len(present - one_side) * 2 / len(indexes))


@both_twins
def test_categories_absent_from_the_node_follow_the_larger_side(find: FindSplits) -> None:
    guide = from_labels(np.array([0, 1, 1]), 2)
    few_left = ranked(find, categories([1, 3, 3], 6, guide))[0][1]
    assert (set(few_left.left_codes), few_left.missing_left) == ({1}, False)
    many_left = ranked(find, categories([1, 1, 3], 6, from_labels(np.array([0, 0, 1]), 2)))[0][1]
    assert (set(many_left.left_codes), many_left.missing_left) == ({0, 1, 2, 4, 5}, True)
    even = ranked(find, categories([1, 3], 6, from_labels(np.array([0, 1]), 2)))[0][1]
    assert (set(even.left_codes), even.missing_left) == ({1}, False)


@both_twins
def test_missing_values_absent_from_the_node_follow_the_larger_side(find: FindSplits) -> None:
    case = numbers([1, 2, 3, 4, 0], [0, 0, 0, 1, 0], missing=[4])
    for rows, expected in [([0, 1, 3], True), ([0, 3], False)]:
        hist = naive.histogram(case.records, case.layout, case.guide, rows)
        best = find(hist, case.layout, case.scoring)[0][1]
        assert (best.missing_left, 4 in best.left_codes) == (expected, expected)


@both_twins
@pytest.mark.parametrize("kind", GUIDE_KINDS)
def test_no_side_of_a_candidate_is_smaller_than_asked(find: FindSplits, kind: str) -> None:
    @in_examples(20)
    @given(case=cases(kind=kind))
    def check(case: Case) -> None:
        for _, split in ranked(find, case):
            n_left = sum(int(code) in split.left_codes for code in case.columns[split.column])
            assert n_left == split.n_left
            assert min(n_left, case.n_records - n_left) >= case.min_records

    check()


@both_twins
def test_a_constant_column_offers_nothing(find: FindSplits) -> None:
    for guide in (from_labels(np.array([0, 1, 0]), 2), by_information_loss(), by_median()):
        assert ranked(find, numbers([7, 7, 7], [], guide=guide, fall_back=True)) == []
        assert ranked(find, categories([2, 2, 2], 4, guide, fall_back=True)) == []
        assert ranked(find, numbers([0, 0, 0], [], missing=[0, 1, 2], guide=guide, fall_back=True)) == []


# -- order and phases ----------------------------------------------------------------------------------------


@both_twins
def test_ties_go_to_the_first_column_and_the_first_cut(find: FindSplits) -> None:
    column = bin_numbers(np.array([1, 2, 3, 4]))
    case = Case([column[0]] * 2, [column[1]] * 2, from_labels(np.array([0, 1, 1, 0]), 2), fall_back=False)
    found = ranked(find, case)
    assert [(s.column, s.last_bin) for _, s in found] == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert len({float(s.gain) for _, s in found}) == 1


@both_twins
def test_where_the_guide_has_nothing_to_offer_information_loss_decides(find: FindSplits) -> None:
    pure = numbers([1, 2, 9], [0, 0, 0], fall_back=True)
    assert [(phase, s.last_bin) for phase, s in ranked(find, pure)] == [(1, 1), (1, 0)]
    assert ranked(find, replace(pure, fall_back=False)) == []


@both_twins
def test_information_loss_comes_after_every_candidate_of_the_guide(find: FindSplits) -> None:
    case = numbers([1, 2, 9], [0, 1, 1], fall_back=True)
    assert [phase for phase, _ in ranked(find, case)] == [0, 0, 1, 1]


@both_twins
@pytest.mark.parametrize("n", [1, 7, 97])
def test_equal_sides_gain_nothing_however_the_sums_round(find: FindSplits, n: int) -> None:
    # In every category one record in 49 stands out, so all means are equal; but 49 * (1 / 49) is not 1 in floats.
    indexes = np.repeat([0, 1, 2], [49 * n, 49, 98]).tolist()
    dense = np.resize([1 << 20] + [0] * 48, (len(indexes), 1))
    assert ranked(find, categories(indexes, 3, Guide(CHANNELS, dense, channel_weights=np.ones(1)))) == []
    labels = np.resize([1] + [0] * 48, len(indexes))
    assert ranked(find, categories(indexes, 3, from_labels(labels, 2, rule=ENTROPY))) == []


@pytest.mark.parametrize("bits", [10, 40, 58])
def test_gains_of_huge_sums_are_as_exact_as_floats_can_say(bits: int) -> None:
    # Ten million weighted records reach sums near 2^62; differences between bins are one part in ten thousand.
    random = np.random.default_rng(bits)
    bins, codes = bin_numbers(np.arange(20))
    case = Case([bins], [codes], Guide(CHANNELS, np.zeros((20, 2), np.int64), channel_weights=np.array([1.0, -0.3])))
    scoring = case.scoring._replace(is_weighted=True, fall_back=False, min_records=1000)
    records = random.integers(1, 500_000, 20)
    weights = records * 300
    means = (1 << bits) / weights.sum() * random.uniform(0.9999, 1.0001, (20, 2))
    hist = np.column_stack([records, np.rint(means * weights[:, None]).astype(np.int64), weights])
    exact = {s.position: s for _, s in naive_splitting.find_splits(hist, case.layout, scoring)}
    fast = {s.position: s for _, s in fast_splits(hist, case.layout, scoring)}
    assert fast.keys() == exact.keys()
    assert len(fast) > 3
    for position, split in fast.items():
        assert split.gain == pytest.approx(float(exact[position].gain), rel=1e-6)


@both_twins
def test_one_probability_of_weight_two_says_the_same_as_both(find: FindSplits) -> None:
    @in_examples(25)
    @given(seed=seeds, n=sizes(40))
    def compare(seed: int, n: int) -> None:
        random = np.random.default_rng(seed)
        case = random_case(seed, n, 2, "labels")
        one = random.integers(0, 101, n) / 100
        probabilities = np.stack([1 - one, one], axis=1)
        both = Guide(
            CHANNELS,
            np.rint(probabilities * 65536).astype(np.int64),
            channel_weights=np.full(2, 1 / 65536**2),
        )
        gains = [
            gains_of(replace(case, guide=guide, fall_back=False)) for guide in (from_probabilities(probabilities), both)
        ]
        assert gains[0] == pytest.approx(gains[1], rel=1e-9, abs=1e-11)

    def gains_of(case: Case) -> dict[tuple[int, frozenset[int]], float]:
        """Gains by division; without prefixes of many categories, whose orders depend on the number of channels."""
        few = [len(set(column.tolist())) <= MAX_ENUMERATED for column in case.columns]
        found = [split for _, split in ranked(find, case) if split.last_bin >= 0 or few[split.column]]
        return {(split.column, split.left_codes): float(split.gain) for split in found}

    compare()


@both_twins
def test_numbers_in_another_unit_are_split_alike(find: FindSplits) -> None:
    random = np.random.default_rng(9)
    target = random.normal(size=(30, 1))
    column = random.integers(0, 12, 30).tolist()
    euros = ranked(find, numbers(column, [], guide=from_numbers(target)))
    cents = ranked(find, numbers(column, [], guide=from_numbers(100 * target + 7)))
    assert [s.last_bin for _, s in euros] == [s.last_bin for _, s in cents]
