# SPDX-License-Identifier: Apache-2.0
"""Discernibility, average group size, classification metric and entropy, beside plain Python."""

import json
import math
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, ParameterError
from sfumato.loss import average_group_size, classification_metric, discernibility, non_uniform_entropy
from strategies import in_examples

CELL = st.one_of(st.none(), st.sampled_from(["10-19", "20-29", "*"]))
RELEASED = st.lists(st.tuples(CELL, CELL, st.sampled_from("xyz")), min_size=1, max_size=24)


def frame_of(rows, names=("a", "b", "label")):
    return pd.DataFrame({name: [row[j] for row in rows] for j, name in enumerate(names)}, dtype=object)


def keys_of(rows, column=None):
    return [row[:2] if column is None else row[column] for row in rows]


@in_examples()
@given(rows=RELEASED, k=st.one_of(st.none(), st.integers(1, 5)), n_suppressed=st.integers(0, 5))
def test_discernibility_charges_every_record_its_group(rows, k, n_suppressed):
    def charge(keys):
        sizes, n_all = Counter(keys), len(keys) + n_suppressed
        paid = [sizes[key] if k is None or sizes[key] >= k else n_all for key in keys]
        return sum(paid) + n_suppressed * n_all

    loss = discernibility(frame_of(rows), ["a", "b"], k=k, n_suppressed=n_suppressed)
    assert loss.total == charge(keys_of(rows))
    assert loss.columns == {"a": charge(keys_of(rows, 0)), "b": charge(keys_of(rows, 1))}
    assert loss.normalized == pytest.approx(loss.total / (len(rows) + n_suppressed) ** 2)
    assert 0 < loss.normalized <= 1


@in_examples()
@given(rows=RELEASED, k=st.one_of(st.none(), st.integers(1, 5)))
def test_average_group_size_divides_records_by_groups(rows, k):
    loss = average_group_size(pl.DataFrame(frame_of(rows).to_dict("list"), strict=False), ["a", "b"], k=k)
    assert loss.total == pytest.approx(len(rows) / len(set(keys_of(rows))) / (k or 1))
    assert loss.columns["a"] == pytest.approx(len(rows) / len(set(keys_of(rows, 0))) / (k or 1))
    assert loss.normalized is None


@in_examples()
@given(rows=RELEASED, n_suppressed=st.integers(0, 5))
def test_the_classification_metric_counts_minorities(rows, n_suppressed):
    def penalty(keys):
        labels = {}
        for key, row in zip(keys, rows, strict=True):
            labels.setdefault(key, Counter())[row[2]] += 1
        minorities = sum(sum(counts.values()) - max(counts.values()) for counts in labels.values())
        return (minorities + n_suppressed) / (len(rows) + n_suppressed)

    loss = classification_metric(frame_of(rows), "label", n_suppressed=n_suppressed)
    assert loss.total == pytest.approx(penalty(keys_of(rows)))
    assert set(loss.columns) == {"a", "b"}
    assert loss.columns["b"] == pytest.approx(penalty(keys_of(rows, 1)))
    by_values = classification_metric(frame_of(rows)[["a", "b"]], [row[2] for row in rows], n_suppressed=n_suppressed)
    assert by_values == loss


@in_examples()
@given(rows=RELEASED, n_suppressed=st.integers(0, 5))
def test_entropy_adds_the_bits_each_cell_lacks(rows, n_suppressed):
    before = pd.DataFrame({"a": [row[2] for row in rows], "b": list(range(len(rows)))})
    loss = non_uniform_entropy(before, frame_of(rows)[["a", "b"]], n_suppressed=n_suppressed)

    def bits(values, shown):
        joint, given_count = Counter(zip(values, shown, strict=True)), Counter(shown)
        return sum(-math.log2(joint[pair] / given_count[pair[1]]) for pair in zip(values, shown, strict=True))

    whole = 0.0
    for j, name in enumerate("ab"):
        values = before[name].tolist()
        everything = bits(values, [0] * len(rows))
        wanted = bits(values, [row[j] for row in rows]) + n_suppressed * everything / len(rows)
        assert loss.columns[name] == pytest.approx(wanted, abs=1e-9)
        whole += everything * (1 + n_suppressed / len(rows))
    assert loss.total == pytest.approx(sum(loss.columns.values()))
    assert loss.normalized == pytest.approx(loss.total / whole if whole else 0, abs=1e-9)
    assert 0 <= loss.normalized <= 1


def test_one_group_loses_all_and_single_records_lose_least():
    numbers = pd.DataFrame({"a": [1, 2, 3, 4]})
    assert discernibility(pd.DataFrame({"a": ["*"] * 4})).normalized == 1
    assert discernibility(numbers).normalized == 0.25
    assert non_uniform_entropy(numbers, pd.DataFrame({"a": ["*"] * 4})).normalized == 1
    assert non_uniform_entropy(numbers, numbers * 10).total == 0


def test_bounds_in_two_columns_are_one_quasi_identifier():
    before = pd.DataFrame({"a": [1, 2, 3, 4]})
    after = pd.DataFrame({"a_low": [1, 1, 1, 4], "a_high": [2, 2, 3, 4]})
    assert non_uniform_entropy(before, after).total == 2.0


def test_a_loss_is_plain_data():
    document = discernibility(np.array([[1, 2], [1, 2]])).to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == {
        "measure": "discernibility",
        "total": 4.0,
        "normalized": 1.0,
        "columns": {"x0": 4.0, "x1": 4.0},
    }


def test_bad_input_gets_a_sentence():
    frame = pd.DataFrame({"a": [1, 2]})
    with pytest.raises(InputError, match="labels has 1 values and the release 2 records"):
        classification_metric(frame, ["x"])
    with pytest.raises(ParameterError, match="k=0"):
        discernibility(frame, k=0)
    with pytest.raises(ParameterError, match="names no column"):
        average_group_size(frame, [])
    with pytest.raises(InputError, match="expected the same records in the same order"):
        non_uniform_entropy(frame, frame.head(1))
