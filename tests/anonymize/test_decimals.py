# SPDX-License-Identifier: Apache-2.0
"""Decimals are written with few digits: what stands for a group must not become one person's value by that."""

import decimal
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato.parquet
from sfumato import MondrianAnonymizer


@pytest.fixture(scope="module")
def people():
    """Return many neighboring amounts of two digits, most of which one person has."""
    generator = np.random.default_rng(0)
    cents = generator.integers(-9_999, 10_000, 4_000).tolist()
    amounts = pa.array([decimal.Decimal(c).scaleb(-2) for c in cents], pa.decimal128(5, 2))
    return pa.table({"town": generator.integers(0, 3, 4_000), "amount": amounts})


def combinations(table):
    return Counter(zip(*(table.column(name).to_pylist() for name in ("town", "amount")), strict=True))


def test_no_released_decimal_is_one_persons(people, tmp_path):
    pq.write_table(people, tmp_path / "people.parquet")
    sfumato.parquet.fit_transform(MondrianAnonymizer(3), tmp_path / "people.parquet", tmp_path / "out.parquet")
    had = combinations(people)
    for released in (MondrianAnonymizer(3).fit_transform(people), pq.read_table(tmp_path / "out.parquet")):
        assert released.schema.field("amount").type == pa.decimal128(5, 2)
        assert [own for own in combinations(released) if had[own] == 1] == []
