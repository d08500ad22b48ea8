# SPDX-License-Identifier: Apache-2.0
"""What became of a table is told without telling of any few people in it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.auditing.column_changes import (
    describe_columns,
    describe_sizes,
    emptied_columns,
    fewest_values,
    roles_of,
)
from strategies import in_examples


@in_examples(50)
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=40))
def test_classes_of_sizes_hold_every_record_once(sizes: list[int]):
    found = describe_sizes(np.array(sizes))
    assert sum(found.shares) == pytest.approx(1, abs=0.0005 * len(found.shares))
    assert len(found.edges) == len(found.shares)
    assert found.edges[0] <= found.smallest == min(sizes)
    assert list(found.edges) == sorted(set(found.edges))
    first_class = sum(s for s in sizes if len(found.edges) == 1 or s < found.edges[1]) / sum(sizes)
    assert found.shares[0] == pytest.approx(first_class, abs=0.0005)


def test_shares_before_are_never_of_fewer_records_than_are_shown():
    random = np.random.default_rng(0)
    n = 500
    table = pd.DataFrame({
        "age": random.normal(40, 10, n).round(),
        "job": random.choice(list("abcdefgh"), n, p=[0.5, 0.4, 0.05, 0.03, 0.01, 0.004, 0.003, 0.003]),
    })  # fmt: skip
    for column in describe_columns(table, table, {}, {}, smallest_shown=20):
        counts = np.array(column.before) * n
        assert len(counts) > 1
        assert counts.min() >= 20
        assert column.before == column.after


def test_dropped_columns_labels_and_losses_are_told_apart():
    table = pd.DataFrame({"id": range(40), "age": [30, 31] * 20, "sex": ["f", "m"] * 20})
    released = pd.DataFrame({"age": ["30-31"] * 40, "sex": ["f"] * 40})
    roles = roles_of(list(table.columns), identifier=["id"], quasi_identifier=["age", "sex"])
    changes = {c.name: c for c in describe_columns(table, released, roles, {"age": 1.0, "sex": 1.0}, smallest_shown=5)}
    assert changes["id"].n_values_after is None and changes["id"].sentence == "It was dropped."
    assert changes["age"].after == () and "ranges" in changes["age"].sentence
    assert changes["sex"].after == (1.0, 0.0) and changes["sex"].role == "quasi-identifier"


def test_no_cell_value_stands_in_what_is_told():
    table = pd.DataFrame({"name": ["Quasimodo"] * 30, "town": ["Paris"] * 30})
    found = describe_columns(table, table, {}, {}, smallest_shown=5)
    assert "Quasimodo" not in repr(found) and "Paris" not in repr(found)


@pytest.mark.parametrize("n_rare", [0, 1, 4, 5])
def test_rare_categories_have_no_class_of_their_own_while_they_are_few(n_rare: int):
    table = pd.DataFrame({"town": ["Ulm"] * 60 + ["Jena"] * 40 + [f"rare {i}" for i in range(n_rare)]})
    [column] = describe_columns(table, table, {}, {}, smallest_shown=5)
    assert len(column.before) == (3 if n_rare >= 5 else 2)
    assert column.before == column.after and sum(column.before) == pytest.approx(1, abs=0.002)


def test_shares_do_not_tell_of_how_many_records_they_are():
    table = pd.DataFrame({"sex": ["f"] * 4001 + ["m"] * 3000 + [None]})
    [column] = describe_columns(table, table, {}, {}, smallest_shown=5)
    assert column.before == (0.571, 0.429)


def test_the_ends_of_ranges_are_not_called_dropped():
    table = pd.DataFrame({"age": [30, 31] * 20})
    released = pd.DataFrame({"age_low": [30] * 40, "age_high": [31] * 40})
    [column] = describe_columns(table, released, {"age": "quasi-identifier"}, {"age": 1.0}, smallest_shown=5)
    assert "columns of their own" in column.sentence and "does not leave" not in column.sentence


def test_many_values_in_many_groups_are_counted_pair_by_pair():
    n = 60_000  # a table of all pairs would take 14 gigabytes
    released = pd.DataFrame({"group": np.arange(n) // 2, "amount": np.arange(n) + 0.5})
    assert fewest_values(released, ["group"], ["amount"]) == 2
    released.loc[1, "amount"] = released.loc[0, "amount"]
    assert fewest_values(released, ["group"], ["amount"]) == 1


def test_means_that_are_more_than_what_they_are_means_of_are_not_called_left():
    before = pd.DataFrame({"gain": [0.0] * 50 + [9.0] * 50})
    after = pd.DataFrame({"gain": [0.0] * 40 + [1.5] * 20 + [9.0] * 40})
    [column] = describe_columns(before, after, {"gain": "quasi-identifier"}, {"gain": 0.02}, smallest_shown=10)
    assert column.sentence.endswith("3 values occur in no original record (20.0% of the records).")
    assert "2 distinct values became 3." in column.sentence


def test_values_that_nobody_had_are_remarked_on_with_their_share():
    codes = pd.DataFrame({"code": [1] * 30 + [2] * 10 + [9] * 20, "town": ["Ulm"] * 35 + ["Jena"] * 25})
    means = pd.DataFrame({"code": [1] * 20 + [5] * 25 + [9] * 15, "town": ["Ulm"] * 20 + ["Jena"] * 40})
    roles = roles_of(["code", "town"], quasi_identifier=["code", "town"])
    losses = {"code": 0.4, "town": 0.2}
    code, town = describe_columns(codes, means, roles, losses, smallest_shown=5)
    assert (code.n_invented, code.share_invented, code.mode_changed) == (1, 0.417, True)
    assert "1 of its 3 values occur in no original record (41.7% of the records)." in code.sentence
    assert "list it under categorical" in code.sentence
    assert (town.n_invented, town.mode_changed) == (0, True) and "no original record" not in town.sentence
    same = describe_columns(codes, codes, roles, losses, smallest_shown=5)
    assert [(c.n_invented, c.mode_changed) for c in same] == [(0, False)] * 2
    assert not any("no original record" in c.sentence or "most frequent" in c.sentence for c in same)


def test_ranges_are_labels_and_no_invented_values():
    table = pd.DataFrame({"age": [30, 31] * 20})
    (age,) = describe_columns(table, pd.DataFrame({"age": ["30-31"] * 40}), {}, {"age": 0.3}, smallest_shown=5)
    assert age.n_invented is None and "no original record" not in age.sentence


def test_a_column_that_lost_most_values_is_told_so():
    table = pd.DataFrame({"town": [f"town {i}" for i in range(100)], "sex": ["f", "m"] * 50})
    released = pd.DataFrame({"town": [None] * 90 + ["town 1"] * 10, "sex": ["f", "m"] * 50})
    changes = {c.name: c for c in describe_columns(table, released, {"town": "quasi-identifier"}, {}, smallest_shown=5)}
    assert changes["town"].sentence.startswith("90% of the records have no value now (0% before)")
    assert "no value" not in changes["sex"].sentence
    assert emptied_columns(table, released, ["town", "sex"]) == {"town": 0.9}
