# SPDX-License-Identifier: Apache-2.0
"""Every criterion against its definition in the literature, on random counts; and what joining groups does."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from criteria import definitions as plain
from sfumato import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, DeltaPresence, LDiversity, TCloseness
from strategies import in_examples

COUNT = st.one_of(st.integers(0, 4), st.integers(0, 60))


@st.composite
def counted_tables(draw, max_values=5):
    """Counts of the values in each group; some groups and some values may have no record."""
    n_values = draw(st.integers(1, max_values))
    rows = draw(st.lists(st.lists(COUNT, min_size=n_values, max_size=n_values), min_size=1, max_size=6))
    assume(any(map(sum, rows)))
    return rows


def ask(criterion, rows):
    counts = np.array(rows, np.int64)
    return criterion.passes(counts, counts.sum(axis=0)).tolist()


def value(criterion, rows):
    counts = np.array(rows, np.int64)
    return criterion.value(counts, counts.sum(axis=0))


def table_of(rows):
    return [sum(column) for column in zip(*rows, strict=True)]


def filled(rows):
    return [row for row in rows if sum(row)]


def hundredths(low, high):
    """Bounds people write down: 0.35, not a float between two others."""
    return st.integers(round(low * 100), round(high * 100)).map(lambda n: n / 100)


@in_examples(50)
@given(rows=counted_tables(), l=st.integers(2, 6))
def test_distinct_l_diversity(rows, l):  # noqa: E741
    assert ask(LDiversity(l, "s"), rows) == [not sum(row) or plain.is_distinct_l_diverse(row, l) for row in rows]
    assert value(LDiversity(l, "s"), rows) == min(sum(n > 0 for n in row) for row in filled(rows))


@in_examples(50)
@given(rows=counted_tables(), l=st.one_of(st.integers(2, 5), hundredths(1.01, 5)))
def test_entropy_l_diversity(rows, l):  # noqa: E741
    criterion = LDiversity(l, "s", kind="entropy")
    assert ask(criterion, rows) == [not sum(row) or plain.is_entropy_l_diverse(row, l) for row in rows]
    assert value(criterion, rows) == pytest.approx(min(map(plain.entropy_l, filled(rows))))


@pytest.mark.parametrize("n_values", range(2, 12))
def test_equally_frequent_values_are_entropy_diverse_by_their_number_and_no_more(n_values):
    for count in (1, 3, 7, 1000):
        row = [[count] * n_values]
        assert ask(LDiversity(n_values, "s", kind="entropy"), row) == [True]
        assert ask(LDiversity(n_values + 0.001, "s", kind="entropy"), row) == [False]
        assert int(value(LDiversity(2, "s", kind="entropy"), row)) == n_values  # a caller who cuts off loses nothing


@in_examples(50)
@given(rows=counted_tables(), l=st.integers(2, 5), c=st.one_of(st.integers(1, 5), hundredths(0.05, 4)))
def test_recursive_c_l_diversity(rows, l, c):  # noqa: E741
    criterion = LDiversity(l, "s", kind="recursive", c=c)
    assert ask(criterion, rows) == [not sum(row) or plain.is_recursive_c_l_diverse(row, c, l) for row in rows]
    reached = value(criterion, rows)
    tails = [sum(sorted(row, reverse=True)[l - 1 :]) for row in filled(rows)]
    if 0 in tails:
        assert reached is None
    else:
        assert reached == pytest.approx(max(max(row) / tail for row, tail in zip(filled(rows), tails, strict=True)))


@in_examples(50)
@given(rows=counted_tables(), alpha=hundredths(0.01, 1), k=st.integers(2, 30))
def test_alpha_k_anonymity(rows, alpha, k):
    criterion = AlphaKAnonymity(alpha, k, "s")
    assert ask(criterion, rows) == [bool(sum(row)) and plain.is_alpha_k_anonymous(row, alpha, k) for row in rows]
    assert value(criterion, rows) == pytest.approx(float(max(map(plain.largest_share, filled(rows)))))


@in_examples(50)
@given(rows=counted_tables(), beta=hundredths(0.01, 4))
def test_basic_beta_likeness(rows, beta):
    table = table_of(rows)
    criterion = BetaLikeness(beta, "s")
    assert ask(criterion, rows) == [not sum(row) or plain.is_beta_like(row, table, beta) for row in rows]
    assert value(criterion, rows) == pytest.approx(max(0, *(max(plain.gains(row, table)) for row in filled(rows))))


@in_examples(50)
@given(rows=counted_tables(), beta=hundredths(0.01, 4))
def test_enhanced_beta_likeness(rows, beta):
    table = table_of(rows)
    criterion = BetaLikeness(beta, "s", kind="enhanced")
    assert ask(criterion, rows) == [not sum(row) or plain.is_enhanced_beta_like(row, table, beta) for row in rows]
    reached = value(criterion, rows)
    if reached is None:  # no beta would do
        assert not all(plain.is_enhanced_beta_like(row, table, 10**9) for row in filled(rows))
    else:
        assert all(plain.is_enhanced_beta_like(row, table, reached + 1e-9) for row in filled(rows))


@in_examples(50)
@given(rows=counted_tables(), delta=hundredths(0.01, 4))
def test_delta_disclosure(rows, delta):
    table = table_of(rows)
    logarithms = [plain.largest_logarithm(row, table) for row in filled(rows)]
    criterion = DeltaDisclosure(delta, "s")
    assert ask(criterion, filled(rows)) == [logarithm < delta for logarithm in logarithms]
    worst = max(logarithms)
    assert value(criterion, rows) == (None if worst == np.inf else pytest.approx(worst))


def test_delta_disclosure_is_strict_and_a_group_that_lacks_a_value_fails():
    rows = [[2, 2], [2, 2], [1, 3], [0, 4]]
    assert ask(DeltaDisclosure(1.5, "s"), rows) == [True, True, True, False]
    assert ask(DeltaDisclosure(1.5, "s", absent="ignored"), rows) == [True] * 4
    assert value(DeltaDisclosure(1.5, "s"), rows) is None
    # Shares 5/16 in the table: 2/4 is 1.6 times as much, 1/4 is 0.8 times, 4/4 of the other is 16/11 times.
    assert value(DeltaDisclosure(1.5, "s", absent="ignored"), rows) == pytest.approx(np.log(1.6))
    at_the_bound = [[1, 1], [3, 3]]
    assert ask(DeltaDisclosure(1e-8, "s"), at_the_bound) == [True, True]
    doubled = [[1, 1], [0, 2]]  # a half where the table has a quarter
    assert ask(DeltaDisclosure(float(np.log(2)), "s"), doubled) == [False, False]
    assert ask(DeltaDisclosure(float(np.log(2)) + 1e-6, "s"), doubled) == [True, False]


@in_examples(50)
@given(rows=counted_tables(), t=hundredths(0.01, 1))
def test_t_closeness_with_equal_distance(rows, t):
    check_t_closeness(TCloseness(t, "s"), rows, plain.equal_distances(len(rows[0])))


@in_examples(50)
@given(rows=counted_tables(), t=hundredths(0.01, 1))
def test_t_closeness_with_ordered_distance(rows, t):
    kept = [value for value, n in enumerate(table_of(rows)) if n]  # values nobody has are no steps of the order
    rows = [[row[value] for value in kept] for row in rows]
    check_t_closeness(TCloseness(t, "s", distance="ordered"), rows, plain.ordered_distances(len(kept)))


@in_examples(50)
@given(rows=counted_tables(), t=hundredths(0.01, 1), order=st.permutations(range(5)))
def test_t_closeness_with_an_order_given(rows, t, order):
    n_values = len(rows[0])
    criterion = TCloseness(t, "s", distance="ordered", order=order).for_values(range(n_values))
    every = plain.ordered_distances(5)
    places = [order.index(value) for value in range(n_values)]
    check_t_closeness(criterion, rows, [[every[i][j] for j in places] for i in places])


@in_examples(50)
@given(rows=counted_tables(), t=hundredths(0.01, 1))
def test_t_closeness_with_ordered_distance_and_a_missing_value(rows, t):
    kept = [value for value, n in enumerate(table_of(rows)[:-1]) if n]
    rows = [[*(row[value] for value in kept), row[-1]] for row in rows]
    criterion = TCloseness(t, "s", distance="ordered").for_values([*range(len(kept)), None])
    distances = plain.with_missing_beside_the_middle(plain.ordered_distances(len(kept)))
    check_t_closeness(criterion, rows, distances)


HIERARCHIES = {
    "even": ({"a": {"aa": [0, 1], "ab": [2]}, "b": {"ba": [3, 4]}}, {(0, 1): 1, (3, 4): 1, (0, 2): 2, (1, 2): 2}, 3),
    "ragged": ({"a": {"aa": [0, 1], "ab": [2]}, "b": [3, 4]}, {(0, 1): 1, (3, 4): 2, (0, 2): 2, (1, 2): 2}, 3),
    "flat": ({"a": [0, 1, 2, 3, 4]}, {}, 1),
}


@pytest.mark.parametrize("name", HIERARCHIES)
@in_examples(50)
@given(rows=counted_tables(), t=hundredths(0.01, 1), has_missing=st.booleans())
def test_t_closeness_with_hierarchical_distance(name, rows, t, has_missing):
    hierarchy, heights, top = HIERARCHIES[name]
    values = [None if has_missing and place == 4 else place for place in range(len(rows[0]))]
    criterion = TCloseness(t, "s", distance="hierarchical", hierarchy=hierarchy).for_values(values)
    distances = [[0 if i == j else heights.get((min(i, j), max(i, j)), top) / top for j in range(5)] for i in range(5)]
    if has_missing:
        distances = [[1.0 if (i == 4) != (j == 4) else distances[i][j] for j in range(5)] for i in range(5)]
    n_values = len(values)
    check_t_closeness(criterion, rows, [row[:n_values] for row in distances[:n_values]])


def check_t_closeness(criterion, rows, distances):
    table = table_of(rows)
    solved = [plain.earth_movers_distance(row, table, distances) if sum(row) else 0.0 for row in rows]
    counts = np.array(rows, np.int64)
    reached = criterion.each(counts, counts.sum(axis=0))
    assert np.nan_to_num(reached) == pytest.approx(solved, abs=1e-7)
    for passed, distance in zip(ask(criterion, rows), solved, strict=True):
        assert passed == (distance <= criterion.t) or abs(distance - criterion.t) < 1e-7
    assert value(criterion, rows) == pytest.approx(max(solved), abs=1e-7)


@in_examples(50)
@given(
    rows=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40)), min_size=1, max_size=6),
    bounds=st.tuples(hundredths(0, 1), hundredths(0, 1)).map(sorted),
)
def test_delta_presence(rows, bounds):
    low, high = bounds
    safe = [plain.exact(low) * people <= members <= plain.exact(high) * people for members, people in rows]
    assert ask(DeltaPresence(low, high), rows) == safe
    shares = [members / people if people else None for members, people in rows if members or people]
    assert value(DeltaPresence(low, high), rows) == (max(shares) if shares and None not in shares else None)


MONOTONE = {
    "distinct": LDiversity(2, "s"),
    "entropy": LDiversity(1.7, "s", kind="entropy"),
    "recursive": LDiversity(2, "s", kind="recursive", c=1.5),
    "alpha": AlphaKAnonymity(0.6, 3, "s"),
    "basic": BetaLikeness(0.5, "s"),
    "enhanced": BetaLikeness(0.5, "s", kind="enhanced"),
    "delta": DeltaDisclosure(0.8, "s"),
    "equal": TCloseness(0.25, "s"),
    "ordered": TCloseness(0.25, "s", distance="ordered"),
    "hierarchical": TCloseness(0.25, "s", distance="hierarchical", hierarchy={"a": [0, 1], "b": [2]}).for_values(
        range(3)
    ),
}
SIMILAR = st.lists(st.tuples(*[st.integers(1, 9)] * 3), min_size=2, max_size=8)


@pytest.mark.parametrize("name", MONOTONE)
@in_examples(50)
@given(rows=SIMILAR)
def test_groups_that_are_safe_stay_so_when_they_are_joined(name, rows):
    criterion = MONOTONE[name]
    counts = np.array(rows, np.int64)
    safe = counts[criterion.passes(counts, counts.sum(axis=0))]
    for first in range(len(safe)):
        for second in range(first):
            both = safe[[first]] + safe[[second]]
            assert criterion.passes(both, counts.sum(axis=0)).all()


@in_examples(50)
@given(rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=2, max_size=8))
def test_presence_stays_within_its_bounds_when_groups_are_joined(rows):
    criterion = DeltaPresence(0.2, 0.6)
    counts = np.array(rows, np.int64)
    safe = counts[criterion.passes(counts, counts.sum(axis=0))]
    assert criterion.passes(safe.sum(axis=0, keepdims=True), counts.sum(axis=0)).all()
    for first in range(1, len(safe)):
        assert criterion.passes(safe[[0]] + safe[[first]], counts.sum(axis=0)).all()
