# SPDX-License-Identifier: Apache-2.0
"""Every number of a region counts at least `floor` records, each record once, and draws follow the counts."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.partition.cells import Inside, everything
from sfumato.partition.region_counts import Kind, carried, count_groups, count_pools, joined
from sfumato.partition.region_draws import Drawing, commonest_values, draw_column, look_up_column, turns_of, whole_table
from strategies import in_examples
from twins.naive_regions import AS_MANY, AS_MANY_NUMBERS, Case, PlainRegions

FALLBACK = 0


@st.composite
def some_groups(draw):
    """Records of a column in groups and classes; a target of numbers goes with one class."""
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=40))
    n_units, n_classes = draw(st.integers(2, 40)), draw(st.integers(1, 3))
    n_ordered = draw(st.sampled_from([0, n_units - 1, max(n_units - 2, 0)]))
    n_outputs = draw(st.integers(1, 2)) if n_classes == 1 else 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = sum(sizes)
    # Few values are frequent, most are rare.
    units = np.minimum(rng.geometric(draw(st.sampled_from([0.5, 0.1])), n) - 1, n_units - 1).astype(np.int32)
    return Case(
        units, rng.integers(0, n_classes, n).astype(np.int32), rng.integers(-50, 50, (n, n_outputs)),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        n_units, n_ordered, n_classes, draw(st.integers(1, 12)),
    )  # fmt: skip


def kind_of(case):
    return Kind(case.floor, case.n_units, case.n_ordered, case.n_classes)


def counted_groups(case, order=None, first=0, last=None):
    order = np.arange(len(case.units)) if order is None else order
    offsets = case.offsets[first : None if last is None else last + 1]
    own = np.arange(case.n_units, dtype=np.int32)
    return count_groups(case.units, order, own, case.classes[order], case.target[order], offsets, kind_of(case))


def counted(case, order=None):
    return count_pools(counted_groups(case, order), case.means, kind_of(case))


def entries_of(counts, n_classes):
    """Return what is counted as {(row, class): {(value, width): (count, mean)}}."""
    found = {}
    for row, (start, stop) in enumerate(pairwise(counts.start.tolist())):
        keys = list(zip(counts.unit[start:stop].tolist(), counts.width[start:stop].tolist(), strict=True))
        assert len(set(keys)) == len(keys)
        own = zip(counts.n_records[start:stop].tolist(), counts.target[start:stop], strict=True)
        found[divmod(row, n_classes)] = dict(zip(keys, own, strict=True))
    return found


def test_what_is_left_over_is_carried_on():
    assert carried(np.array([[3, 0], [3, 7], [3, 0]]), 4).tolist() == [[0, 0], [4, 4], [4, 0]]


@given(some_groups())
@in_examples(150)
def test_counts_equal_their_plain_twin(case):
    counts, plain = counted(case), PlainRegions(case)
    found = entries_of(counts, case.n_classes)
    assert found.keys() == plain.found.keys()
    for row, entries in found.items():
        assert {key: n for key, (n, _) in entries.items()} == {k: len(own) for k, own in plain.found[row].items()}
        for key, (_, mean) in entries.items():
            assert mean == pytest.approx(plain.above(plain.found[row][key]), abs=1e-9)
    assert np.array_equal(counts.n_from_pools, plain.n_from_pools)
    assert np.array_equal(counts.whole, plain.whole)


@given(some_groups(), st.integers(0, 40), st.integers(0, 2**32 - 1))
@in_examples(60)
def test_neither_parts_nor_the_order_of_records_within_groups_matter(case, first, seed):
    rng = np.random.default_rng(seed)
    order = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(case.offsets)])
    cut = min(first, case.n_groups)
    runs = [(a, b) for a, b in ((0, cut), (cut, case.n_groups)) if a < b]
    parts = joined([counted_groups(case, order, a, b) for a, b in runs])
    for a, b in zip(counted(case), count_pools(parts, case.means, kind_of(case)), strict=True):
        assert np.array_equal(a, b)


@given(some_groups())
@in_examples(100)
def test_no_number_counts_fewer_people_than_the_floor_and_nobody_counts_twice(case):
    counts = counted(case)
    assert (counts.n_records >= case.floor).all()
    assert (counts.n_from_pools % case.floor == 0).all()
    assert (counts.whole % case.floor == 0).all() and not counts.whole[:, -1].any()
    for c in range(case.n_classes):
        found = entries_of(counts, case.n_classes).items()
        summed = sum(n for (_, own), entries in found if own == c for n, _ in entries.values())
        there = int(((case.classes == c) & (case.units < case.n_units - 1)).sum())
        n_alone = case.n_units - 1 - case.n_ordered  # values that no interval takes in
        assert 0 <= there - summed <= (case.floor - 1) * (n_alone + 2 * (case.n_ordered > 0))


@st.composite
def some_cells(draw, case):
    """Return cells of some groups, which hold the values of their records and random others; or one of everything."""
    if draw(st.booleans()):
        return everything(case.n_groups, case.n_units)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cell, holds = rng.integers(0, 3, case.n_groups), rng.random((3, case.n_units)) < 0.3
    holds[np.repeat(cell, np.diff(case.offsets)), case.units] = True
    holds[:, -1] = False
    return Inside(cell, holds, holds[:, :-1].all(axis=1))


some_groups_and_cells = some_groups().flatmap(lambda case: st.tuples(st.just(case), some_cells(case)))


def spoken(case, plain, shown, g, u, *, least, own=None, above=None, holds=None):
    """Return what a value says in a group; without a record of it, if its class is given."""
    every = range(case.n_classes)
    less = dict.fromkeys(every, 0.0)
    if own is not None:
        less[own] = plain.part_of(g, own, u, shown[own][4], plain.share_of_whole(own, FALLBACK), holds)
    if case.target.shape[1]:
        _, said, sums, _, _ = shown[0]
        total = sums.get(u, 0.0) - (0.0 if own is None else less[0] * above)
        n = max(said.get(u, 0.0) - less[0], 0.0)
        return (total + AS_MANY_NUMBERS * least[u]) / (n + AS_MANY_NUMBERS)
    share = []
    for c in every:
        n_of_class = plain.whole[c].sum()
        whole = max(plain.share_of_whole(c, FALLBACK)[u], 0.5 / (n_of_class + 1))
        n = max(shown[c][1].get(u, 0.0) - less[c], 0.0)
        share.append((n + AS_MANY * whole) / (shown[c][3] + AS_MANY))
    return np.log(np.array(share[1:]) / share[0])


def spoken_everywhere(case, plain, u):
    """Return what a value says of classes in the whole table."""
    if case.target.shape[1]:
        return 0.0
    share = [max(plain.share_of_whole(c, FALLBACK)[u], 0.5 / (plain.whole[c].sum() + 1)) for c in range(case.n_classes)]
    return np.log(np.array(share[1:]) / share[0])


def whole_targets(case, plain):
    """Return what each value says in the whole table about a target of numbers."""
    people, sums = Counter(), {u: np.zeros(case.target.shape[1]) for u in range(case.n_units)}
    whole, holds = plain.share_of_whole(0, FALLBACK), np.ones(case.n_units, bool)
    for row, _ in plain.found:
        for u, n, mean, _ in plain.spread(row, 0, whole, holds):
            people[u] += n
            sums[u] += n * mean
    return {u: own / people[u] if people[u] else own for u, own in sums.items()}


@given(some_groups_and_cells)
@in_examples(40)
def test_draws_follow_the_shares_and_say_what_the_counts_say(groups_and_cells):
    case, inside = groups_and_cells
    counts, plain = counted(case), PlainRegions(case)
    drawing = Drawing(counts, whole_table(counts, FALLBACK), inside, 0.5, 0.25)
    rng, n_draws = np.random.default_rng(0), 500
    least = whole_targets(case, plain)
    for g in {0, case.n_groups - 1}:
        holds = inside.holds[inside.cell[g]]
        shown = [plain.of_group(g, c, holds, FALLBACK) for c in range(case.n_classes)]
        for c in range(case.n_classes):
            drawn = np.empty(n_draws, np.int32)
            said = np.zeros((n_draws, case.target.shape[1] or case.n_classes - 1))
            draw_column(
                drawing, np.array([g]), turns_of(np.array([0, n_draws]), np.full(n_draws, c, np.int32)),
                int(rng.integers(2**63)), said, drawn,
            )  # fmt: skip
            seen, total = Counter(drawn.tolist()), sum(shown[c][0].values())
            assert set(seen) <= set(shown[c][0])
            for u, n in shown[c][0].items():
                assert seen[u] / n_draws == pytest.approx(n / total, abs=2.5 / n_draws)
            for u in seen:
                row = said[int(np.flatnonzero(drawn == u)[0])]
                everywhere = spoken_everywhere(case, plain, u)
                assert row == pytest.approx(0.5 * spoken(case, plain, shown, g, u, least=least) + 0.25 * everywhere)


def test_records_of_classes_in_any_order_get_the_values_of_their_class():
    units = np.repeat([0, 1, 2, 3], [30, 10, 5, 35]).astype(np.int32)
    classes = np.repeat([0, 0, 1, 1], [30, 10, 5, 35]).astype(np.int32)
    case = Case(units, classes, np.zeros((80, 0), np.int64), np.array([0, 80]), 5, 0, 2, 5)
    counts = counted(case)
    rng = np.random.default_rng(0)
    asked, drawn = rng.permutation(np.repeat([0, 1], 400)).astype(np.int32), np.empty(800, np.int32)
    drawing = Drawing(counts, whole_table(counts, 0), everything(1, 5), 1.0, 0.0)
    draw_column(drawing, np.array([0]), turns_of(np.array([0, 800]), asked), 1, np.zeros((800, 0)), drawn)
    for c, expected in ((0, {0: 300, 1: 100}), (1, {2: 50, 3: 350})):
        own = drawn[asked == c]
        assert Counter(own.tolist()) == pytest.approx(expected, abs=1)
        assert len(set(own[:50].tolist())) == 2  # not one value after the other


@given(some_groups_and_cells)
@in_examples(60)
def test_a_record_does_not_speak_for_itself(groups_and_cells):
    case, inside = groups_and_cells
    counts, plain = counted(case), PlainRegions(case)
    least = whole_targets(case, plain)
    drawing = Drawing(counts, whole_table(counts, FALLBACK), inside, 1.0, 0.0)
    above = case.target - case.means[case.group] if case.target.shape[1] else np.zeros((len(case.units), 0))
    said = look_up_column(drawing, np.arange(case.n_groups), case.offsets, case.classes, case.units, above)
    for g in {0, case.n_groups - 1}:
        holds = inside.holds[inside.cell[g]]
        shown = [plain.of_group(g, c, holds, FALLBACK) for c in range(case.n_classes)]
        for i in range(case.offsets[g], case.offsets[g + 1]):
            u, c = int(case.units[i]), int(case.classes[i])
            expected = spoken(case, plain, shown, g, u, least=least, own=c, above=above[i], holds=holds)
            assert said[i] == pytest.approx(expected)


@given(some_groups_and_cells)
@in_examples(60)
def test_the_commonest_value_of_a_group_lies_in_its_cell(groups_and_cells):
    case, inside = groups_and_cells
    counts, plain = counted(case), PlainRegions(case)
    found = commonest_values(Drawing(counts, whole_table(counts, FALLBACK), inside, 1.0, 0.0))
    for g in range(case.n_groups):
        holds = inside.holds[inside.cell[g]]
        shown = [plain.of_group(g, c, holds, FALLBACK)[1] for c in range(case.n_classes)]
        n = {u: sum(said.get(u, 0.0) for said in shown) for u in np.flatnonzero(holds).tolist()}
        if max(n.values(), default=0.0) > 0:
            assert holds[found[g]]
            assert n[int(found[g])] == pytest.approx(max(n.values()))
