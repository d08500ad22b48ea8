# SPDX-License-Identifier: Apache-2.0
"""Groups of equal rows: the kernels beside slow twins, and the ways that large tables take on small ones."""

from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import grouping, measure
from sfumato.backends.memory import groups as unique_sets
from sfumato.grouping import Codes, count_alone, count_alone_in_pair, group, group_rows, merge_rows
from sfumato.measurement.ranking import rank
from strategies import in_examples

ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 3, st.integers(1, 2)), min_size=1, max_size=30)


def columns_of(rows):
    return [Codes(str(j), np.array([row[j] for row in rows], np.int32), 4, False) for j in range(3)]


def as_sets(groups):
    return {frozenset(part.tolist()) for part in np.split(groups.order, groups.starts[1:-1])}


@in_examples()
@given(rows=ROWS, most_cells=st.sampled_from([0, 4, 16, 1 << 20]))
def test_groups_of_every_way_to_make_them_equal_their_twin(rows, most_cells):
    members = defaultdict(set)
    for record, row in enumerate(rows):
        members[row[:3]].add(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MOST_CELLS", most_cells)  # 0: divide only, 1 << 20: combine only, else both
        groups = group(columns_of(rows), len(rows))
    assert as_sets(groups) == set(map(frozenset, members.values()))
    assert sorted(groups.sizes) == sorted(map(len, members.values()))
    label = groups.of_records()
    for part in members.values():
        assert len({label[record] for record in part}) == 1
    assert as_sets(group([], len(rows))) == {frozenset(range(len(rows)))}


@in_examples()
@given(rows=ROWS)
def test_counting_who_stands_alone_equals_its_twin(rows):
    first, second, third = columns_of(rows)
    weights = np.array([row[3] for row in rows], np.uint8)
    counts = Counter()
    for row in rows:
        counts[row[:2]] += row[3]
    wanted = sum(count == 1 for count in counts.values())
    cells = np.zeros(16, np.uint8)
    assert count_alone_in_pair(first.values, second.values, 4, weights, cells) == wanted
    groups = group([first], len(rows))
    assert count_alone(groups.order, groups.starts, second.values, 4, weights) == wanted
    counts = Counter()
    for row in rows:
        counts[row[:3]] += row[3]
    groups = group([first, second], len(rows))
    found = count_alone(groups.order, groups.starts, third.values, 4, weights)
    assert found == sum(count == 1 for count in counts.values())


@in_examples()
@given(seed=st.integers(0, 2**16), n_columns=st.integers(0, 5), size=st.sampled_from([1, 2, 7, 2**40]))
def test_rows_are_merged_when_they_are_equal_and_only_then(seed, n_columns, size):
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, min(size, 3), 30) * (size // 3 or 1) for _ in range(n_columns)]
    first, group = merge_rows(columns, [size * 3] * n_columns, 30)
    rows = list(zip(*(column.tolist() for column in columns), strict=True)) if columns else [()] * 30
    for row in range(30):
        assert rows[first[group[row]]] == rows[row]
    assert len(first) == len(set(rows))
    assert [rows[row] for row in first] == sorted(set(rows))  # groups are in the order of their codes
    assert group_rows(columns, 30).tolist() == group.tolist()


@pytest.mark.parametrize("n_values", [2, 6, 60])
def test_a_ranking_is_the_same_whichever_way_it_is_counted(n_values):
    random = np.random.default_rng(n_values)
    frame = pd.DataFrame(random.integers(0, n_values, (300, 6)), columns=list("abcdef"))
    wanted = measure(frame, ["a", "b", "c"]).ranking
    assert len(wanted.pairs) == 15
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MOST_CELLS", 0)
        patch.setattr(unique_sets, "MOST_CELLS", 0)
        assert measure(frame, ["a", "b", "c"]).ranking == wanted
    for entry in wanted.grown:  # by hand, beyond what the small tables of other tests reach
        keys = Counter(map(tuple, frame[list(entry.columns)].to_numpy().tolist()))
        assert entry.n_unique == sum(count == 1 for count in keys.values())


def test_a_table_with_many_columns_is_tried_in_its_finest():
    frame = pd.DataFrame({f"c{j}": np.arange(100) % (j + 2) for j in range(12)})
    columns = {name: grouping.encode(_column((name, values))) for name, values in frame.items()}
    table = unique_sets.MemoryUniqueSets.of_groups(columns, ("c0",), group([columns["c0"]], 100))
    found = rank(table, list(columns), ["c0"], 100, most_in_pairs=4)
    assert len(found.pairs) == 6
    assert set(found.left_out) == {f"c{j}" for j in range(8)}
    assert len(found.columns) == 12


def _column(item):
    from sfumato.columns import Column

    return Column(item[0], "number", item[1].to_numpy(), None)
