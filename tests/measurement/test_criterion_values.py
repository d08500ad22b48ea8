# SPDX-License-Identifier: Apache-2.0
"""The value of every criterion on a table, beside plain Python from the literature's definitions."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import measure
from sfumato.backends.group_rows import CountRows, count_rows, join_rows, rows_from_matrix
from sfumato.errors import ParameterError
from sfumato.hierarchies import Hierarchy
from sfumato.measurement import criterion_values
from strategies import in_examples

KEYS = st.one_of(st.none(), st.integers(0, 2))
ROWS = st.lists(st.tuples(KEYS, KEYS, st.one_of(st.none(), st.integers(1, 4))), min_size=1, max_size=24)


def agree(one, other, missing):
    if missing == "value":
        return one == other
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def groups_of(rows, missing):
    """Return the sensitive values of the records that each record matches."""
    return [Counter(other[2] for other in rows if agree(row[:2], other[:2], missing)) for row in rows]


def recursive(counts, l):  # noqa: E741
    falling = sorted(counts.values(), reverse=True)
    tail = sum(falling[l - 1 :])
    return falling[0] / tail if tail else math.inf


def shares(counts):
    return {value: count / sum(counts.values()) for value, count in counts.items()}


def definitions(rows, missing):
    groups, table = groups_of(rows, missing), shares(Counter(row[2] for row in rows))
    gains = [{value: (q - table[value]) / table[value] for value, q in shares(group).items()} for group in groups]
    allowed = all(gain <= -math.log(table[v]) + 1e-9 for group in gains for v, gain in group.items())
    largest = max(0.0, *(gain for group in gains for gain in group.values()))
    is_full = all(set(group) == set(table) for group in groups)
    return {
        "distinct l-diversity": min(len(group) for group in groups),
        "entropy l-diversity": min(math.exp(-sum(q * math.log(q) for q in shares(group).values())) for group in groups),
        "recursive (c, 2)-diversity": max(recursive(group, 2) for group in groups),
        "recursive (c, 3)-diversity": max(recursive(group, 3) for group in groups),
        "t-closeness, equal distance": max(
            sum(abs(shares(group).get(value, 0) - p) for value, p in table.items()) / 2 for group in groups
        ),
        "alpha of (alpha, k)-anonymity": max(max(shares(group).values()) for group in groups),
        "basic beta-likeness": largest,
        "enhanced beta-likeness": largest if allowed else math.inf,
        "delta-disclosure": max(abs(math.log(q / table[v])) for group in groups for v, q in shares(group).items())
        if is_full
        else math.inf,
    }


@in_examples()
@given(rows=ROWS, missing=st.sampled_from(["value", "wildcard"]))
def test_every_criterion_equals_its_definition_in_plain_python(rows, missing):
    first, second, ill = (pa.array([row[j] for row in rows], pa.int64()) for j in range(3))
    found = measure(pa.table({"a": first, "b": second, "ill": ill}), ["a", "b"], ["ill"], missing=missing)
    values = {part.criterion: part for part in found.criteria}
    for name, wanted in definitions(rows, missing).items():
        assert values[name].column == "ill"
        if math.isinf(wanted):
            assert values[name].value is None, name
            assert values[name].reason, name
        else:
            assert values[name].value == pytest.approx(wanted, rel=1e-9, abs=1e-12), name
            assert values[name].reason is None, name
    assert values["k-anonymity"].value == found.k


def test_ordered_distance_is_measured_for_numbers_and_not_for_text():
    salaries = pa.table({"zip": ["a"] * 3 + ["b"] * 6, "pay": [3, 4, 5, 6, 11, 8, 7, 9, 10]})
    [found] = [part for part in measure(salaries, ["zip"], ["pay"]).criteria if "ordered" in part.criterion]
    assert found.value == pytest.approx(0.375)  # the paper's example, {3k, 4k, 5k} against nine salaries
    text = salaries.set_column(1, "pay", salaries["pay"].cast(pa.string()))
    [found] = [part for part in measure(text, ["zip"], ["pay"]).criteria if "ordered" in part.criterion]
    assert found.value is None
    assert "no order" in found.reason


def test_hierarchical_distance_is_measured_where_a_hierarchy_is_given():
    table = pa.table({"zip": ["a", "a", "b", "b"], "ill": ["flu", "cough", "ulcer", "flu"]})
    tree = {"chest": ["flu", "cough"], "stomach": ["ulcer"]}

    def value(**arguments):
        found = measure(table, ["zip"], ["ill"], **arguments).criteria
        return next(part for part in found if "hierarchical" in part.criterion)

    # In zip b, a quarter too much ulcer comes from cough, across the root: 1/4 * 1.
    # In zip a, a quarter too much cough comes from ulcer, the same way.
    assert value(hierarchies={"ill": tree}).value == pytest.approx(0.25)
    assert value(hierarchies={"ill": Hierarchy.from_mapping(tree)}).value == pytest.approx(0.25)
    assert value().value is None
    assert "a hierarchy of the values is needed" in value().reason
    with pytest.raises(ParameterError, match="not named in sensitive"):
        measure(table, ["zip"], hierarchies={"ill": tree})


def test_peers_mistakes_are_not_repeated():
    """8/1/1 needs c above 8, where a peer says 1; three equally frequent values are 3, where a peer says 2."""
    skewed = pa.table({"zip": ["a"] * 10, "ill": ["x"] * 8 + ["y", "z"]})
    values = {part.criterion: part.value for part in measure(skewed, ["zip"], ["ill"]).criteria}
    assert values["recursive (c, 3)-diversity"] == 8
    for n_values in range(2, 9):
        even = pa.table({"zip": ["a"] * n_values, "ill": [str(value) for value in range(n_values)]})
        values = {part.criterion: part.value for part in measure(even, ["zip"], ["ill"]).criteria}
        assert values["entropy l-diversity"] == n_values


def test_several_sensitive_columns_are_measured_apart():
    table = pa.table({"zip": ["a", "a"], "ill": ["x", "y"], "pay": [1, 1]})
    found = measure(table, ["zip"], ["ill", "pay"]).criteria
    distinct = {part.column: part.value for part in found if part.criterion == "distinct l-diversity"}
    assert distinct == {"ill": 2, "pay": 1}


def test_too_many_values_are_null_with_the_reason(monkeypatch):
    monkeypatch.setattr(criterion_values, "LARGEST_WORK", 3)
    found = measure(pa.table({"zip": ["a", "b"], "ill": ["x", "y"]}), ["zip"], ["ill"]).criteria
    [distinct] = [part for part in found if part.criterion == "distinct l-diversity"]
    assert distinct.value is None
    assert "too many" in distinct.reason


MATRICES = st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any), min_size=1, max_size=30)


def dense(rows: CountRows) -> list[tuple[int, ...]]:
    return [tuple(row) for block in rows.blocks() for row in block.tolist()]


@in_examples()
@given(matrix=MATRICES)
def test_every_different_row_of_counts_is_kept_once(matrix):
    rows = rows_from_matrix(np.array(matrix))
    assert dense(rows) == [tuple(row) for row in matrix]
    assert sorted(dense(rows.without_repetition())) == sorted(set(map(tuple, matrix)))
    group = np.array([g for g, row in enumerate(matrix) for count in row for _ in range(count)])
    values = np.array([v for row in matrix for v, count in enumerate(row) for _ in range(count)])
    assert dense(count_rows(group, len(matrix), values, 3)) == [tuple(row) for row in matrix]
    halves = [rows_from_matrix(np.array(half)) for half in (matrix[:1], matrix[1:]) if half]
    assert dense(join_rows(halves)) == [tuple(row) for row in matrix]


def test_rows_whose_fingerprints_collide_are_kept_apart(monkeypatch):
    class Constant:
        def integers(self, low, high, size, dtype):
            return np.ones(size, dtype)  # every row of the same total has the same fingerprint

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Constant())
    matrix = np.array([[2, 0, 1], [1, 2, 0], [2, 0, 1], [1, 1, 1]])
    kept = dense(rows_from_matrix(matrix).without_repetition())
    assert set(kept) == {(2, 0, 1), (1, 2, 0), (1, 1, 1)}


class LargestShare:
    """A criterion that has no number for every group, only that of the worst."""

    def value(self, counts, reference):
        return float((counts / counts.sum(axis=1, keepdims=True)).max())


def test_a_criterion_without_numbers_of_single_groups_is_measured_by_its_worst():
    rows = rows_from_matrix(np.array([[3, 1], [1, 1], [0, 2]]))
    assert rows.worst([(LargestShare(), False)], np.array([4, 4])) == [1.0]
