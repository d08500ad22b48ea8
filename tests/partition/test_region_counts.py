# SPDX-License-Identifier: Apache-2.0
"""Every number of a region counts at least `floor` records, each record once, and draws follow the counts."""

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.partition.cells import Inside, everything
from sfumato.partition.region_counts import carried, count_column, n_pools
from sfumato.partition.region_draws import Evidence, draw_column, look_up_column


@st.composite
def some_groups(draw):
    """Records of a column in groups and classes, and a floor; the last value is the one that may not be named."""
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=40))
    n_units, n_classes = draw(st.integers(2, 40)), draw(st.integers(1, 3))
    n_ordered = draw(st.sampled_from([0, n_units - 1, max(n_units - 2, 0)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = sum(sizes)
    # Few values are frequent, most are rare.
    units = np.minimum(rng.geometric(draw(st.sampled_from([0.5, 0.1])), n) - 1, n_units - 1).astype(np.int32)
    classes = rng.integers(0, n_classes, n).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return units, n_units, classes, n_classes, offsets, draw(st.integers(1, 12)), 0, n_ordered


def entries_of(counts, n_classes):
    """Return what is counted as {(row, class): {(value, width): count}}."""
    found = {}
    for row, (start, stop) in enumerate(zip(counts.start, counts.stop, strict=True)):
        if stop > start:
            keys = list(zip(counts.unit[start:stop].tolist(), counts.width[start:stop].tolist(), strict=True))
            assert len(set(keys)) == len(keys)
            found[divmod(row, n_classes)] = dict(zip(keys, counts.n_records[start:stop].tolist(), strict=True))
    return found


def common_of(values, case, *, is_top):
    """Return the values, then the intervals, that enough records have, and what is left; plainly."""
    _, n_units, _, _, _, floor, _, n_ordered = case
    common, left, width = {}, dict(values), 1
    while width == 1 or width <= (n_ordered if is_top else n_ordered // 3):
        nodes = defaultdict(list)
        for u in left:
            if u < n_ordered:
                nodes[u // width].append(u)
            elif width == 1 and u < n_units - 1:
                nodes[u].append(u)
        for node, members in nodes.items():
            total = sum(left[u] for u in members)
            if total >= floor:
                common[node * width, min(width, max(n_ordered - node * width, 1))] = total
                for u in members:
                    del left[u]
        width *= 2
    return common, left


def counted_plainly(case):
    """Return the same, counted with dictionaries: what is rare in a group goes to fours of groups, and so on."""
    units, n_units, classes, n_classes, offsets, _, _, _ = case
    n_groups = len(offsets) - 1
    sizes = n_pools(n_groups)
    found, rest, pools = {}, np.zeros((n_groups, n_classes), np.int64), defaultdict(Counter)
    for g in range(n_groups):
        for c in range(n_classes):
            own = slice(offsets[g], offsets[g + 1])
            values = Counter(units[own][classes[own] == c].tolist())
            common, left = common_of(values, case, is_top=len(sizes) == 1)
            if common:
                found[g, c] = common
            rest[g, c] = sum(left.values())
            pools[g, c] = Counter({u: n for u, n in left.items() if u < n_units - 1})
    for level in range(1, len(sizes)):
        above = defaultdict(Counter)
        for (place, c), values in pools.items():
            above[place // 4, c] += values
        pools = defaultdict(Counter)
        for (place, c), values in above.items():
            common, left = common_of(values, case, is_top=level == len(sizes) - 1)
            if common:
                found[int(sizes[:level].sum()) + place, c] = common
            pools[place, c] = Counter(left)
    return found, rest


@given(some_groups())
@settings(max_examples=150, deadline=None)
def test_counts_equal_their_plain_twin(case):
    counts = count_column(*case)
    found, rest = counted_plainly(case)
    assert entries_of(counts, case[3]) == found
    assert np.array_equal(counts.n_from_pools, carried(rest, case[5]))


@given(some_groups())
@settings(max_examples=100, deadline=None)
def test_no_number_counts_fewer_people_than_the_floor_and_nobody_counts_twice(case):
    units, n_units, classes, n_classes, _, floor, _, n_ordered = case
    counts = count_column(*case)
    assert (counts.n_records >= floor).all()
    assert (counts.n_from_pools % floor == 0).all()
    for c in range(n_classes):
        summed = sum(sum(v.values()) for (_, own), v in entries_of(counts, n_classes).items() if own == c)
        there = int(((classes == c) & (units < n_units - 1)).sum())
        n_alone = n_units - 1 - n_ordered  # values that no interval takes in
        assert 0 <= there - summed <= (floor - 1) * (n_alone + 2 * (n_ordered > 0))
    assert not counts.otherwise[:, -1].any()


@given(some_groups(), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_order_of_records_within_groups_does_not_matter(case, seed):
    units, n_units, classes, n_classes, offsets, *more = case
    rng = np.random.default_rng(seed)
    order = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(offsets)])
    first = count_column(units, n_units, classes, n_classes, offsets, *more)
    second = count_column(units[order], n_units, classes[order], n_classes, offsets, *more)
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)


@st.composite
def some_cells(draw, case):
    """Return cells of some groups, which hold the values of their records and random others; or one of everything."""
    units, n_units, _, _, offsets, *_ = case
    n_groups = len(offsets) - 1
    if draw(st.booleans()):
        return everything(n_groups, n_units)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cell, holds = rng.integers(0, 3, n_groups), rng.random((3, n_units)) < 0.3
    holds[np.repeat(cell, np.diff(offsets)), units] = True
    return Inside(cell, holds)


some_groups_and_cells = some_groups().flatmap(lambda case: st.tuples(st.just(case), some_cells(case)))


def spread(entries, whole, holds):
    """Return the values of entries: those of an interval that a cell holds, as they are shared in the whole class."""
    result, seen = Counter(), set()
    for (first, width), n in entries.items():
        inside = [u for u in range(first, first + width) if width == 1 or (u not in seen and holds[u])]
        total = sum(whole[u] for u in inside)
        for u in inside:
            result[u] += n * (1.0 if width == 1 else whole[u] / total if total else 1 / len(inside))
        seen.update(range(first, first + width))
    return result


def shares_plainly(case, counts, inside, g, c):
    """Return the shares from which records of a group and class are drawn."""
    *_, offsets, floor, _, _ = case
    found, rest = counted_plainly(case)
    whole, holds = counts.otherwise[c], inside.holds[inside.cell[g]]
    own, pooled = spread(found.get((g, c), {}), whole, holds), Counter()
    sizes = n_pools(len(offsets) - 1)
    for level in range(1, len(sizes)):
        entries = found.get((int(sizes[:level].sum()) + g // 4**level, c), {})
        for u, n in spread(entries, whole, np.ones_like(holds)).items():
            if holds[u]:
                pooled[u] += n / 4**level
    n_drawn = carried(rest, floor)[g, c]
    if not own and not n_drawn:
        n_drawn = 1
    for u, n in pooled.items():
        own[u] += n_drawn * n / sum(pooled.values()) if n else 0
    total = sum(own.values())
    if total:
        return {u: n / total for u, n in own.items() if n}
    left = {u: share for u, share in enumerate(whole.tolist()) if share and holds[u]}
    left = left or {u: share for u, share in enumerate(whole.tolist()) if share}
    return {u: share / sum(left.values()) for u, share in left.items()}


def evidence_of(case):
    _, _, classes, n_classes, offsets, *_ = case
    groups = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    n_in_class = np.bincount(groups * n_classes + classes, minlength=(len(offsets) - 1) * n_classes)
    n_in_class = n_in_class.reshape(-1, n_classes)
    return Evidence(n_in_class, n_in_class.sum(axis=0), 0.5)


def speaks_plainly(share, whole, n, n_of_class):
    return np.log((n * share + 10 * max(whole, 0.5 / (n_of_class + 1))) / (n + 10))


@given(some_groups_and_cells)
@settings(max_examples=60, deadline=None)
def test_draws_follow_the_shares_and_speak_for_classes(groups_and_cells):
    case, inside = groups_and_cells
    n_classes, offsets = case[3], case[4]
    counts, evidence = count_column(*case), evidence_of(case)
    n_draws = 2_000
    for g in {0, len(offsets) - 2}:
        present = np.flatnonzero(evidence.n_in_class[g])
        every = {c: shares_plainly(case, counts, inside, g, c) for c in present}
        for c in present:
            drawn, speaks = np.empty(n_draws, np.int32), np.zeros((n_draws, n_classes))
            draw_column(
                counts, inside, evidence, np.array([g]), np.array([0, n_draws]), np.full(n_draws, c, np.int32),
                (np.arange(n_draws) + 0.5) / n_draws, speaks, drawn,
            )  # fmt: skip
            seen = Counter(drawn.tolist())
            assert set(seen) <= set(every[c])
            for u, share in every[c].items():
                assert seen[u] / n_draws == pytest.approx(share, abs=1.5 / n_draws)
            for u in seen:
                row = speaks[int(np.flatnonzero(drawn == u)[0])]
                for other in present:
                    plain = speaks_plainly(
                        every[other].get(u, 0.0), counts.otherwise[other, u],
                        evidence.n_in_class[g, other], evidence.n_of_class[other],
                    )  # fmt: skip
                    assert row[other] == pytest.approx(0.5 * plain)


@given(some_groups_and_cells)
@settings(max_examples=60, deadline=None)
def test_a_record_is_no_evidence_for_itself(groups_and_cells):
    case, inside = groups_and_cells
    units, _, classes, n_classes, offsets, *_ = case
    counts, evidence = count_column(*case), evidence_of(case)
    groups = np.arange(len(offsets) - 1)
    seen = look_up_column(counts, inside, evidence, groups, offsets, classes, units)
    unknown = look_up_column(counts, inside, evidence, groups, offsets, np.full_like(classes, -1), units)
    is_own = classes[:, None] == np.arange(n_classes)
    assert np.array_equal(seen[~is_own], unknown[~is_own])
    assert (seen[is_own] <= unknown[is_own] + 1e-9).all()
    g = 0
    rows = slice(offsets[g], offsets[g + 1])
    for i in range(rows.start, rows.stop):
        for c in np.flatnonzero(evidence.n_in_class[g]):
            share = shares_plainly(case, counts, inside, g, c).get(int(units[i]), 0.0)
            plain = speaks_plainly(
                share, counts.otherwise[c, units[i]], evidence.n_in_class[g, c], evidence.n_of_class[c]
            )
            assert unknown[i, c] == pytest.approx(plain)
