# SPDX-License-Identifier: Apache-2.0
"""Reasons of roles tell no share of a few people."""

import re

import numpy as np
import pyarrow as pa
import pytest

from sfumato.policy.suggestions import SMALLEST_SHOWN, suggest_roles


@pytest.mark.parametrize("seed", range(12))
def test_no_reason_tells_a_share_of_a_few_records(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(60, 900))
    columns = {
        f"c{place}": np.minimum(random.geometric(random.uniform(0.02, 0.6), n), random.integers(5, 80))
        for place in range(5)
    }
    table = pa.table({**columns, "y": random.integers(0, 2, n)})
    told = 0
    for one in suggest_roles(table, "y"):
        for share in re.findall(r"([\d.]+)%", one.reason):
            told += 1
            digits = len(share.partition(".")[2])
            assert float(share) / 100 * n >= SMALLEST_SHOWN - n * 0.5 * 10.0 ** -(digits + 2)
        if 0 < round(one.alone * n) < SMALLEST_SHOWN and one.alone >= 0.001 and "%" in one.reason:
            assert f"fewer than {SMALLEST_SHOWN} records" in one.reason
    assert told or n < 200


def test_a_share_of_a_few_records_is_masked_in_words() -> None:
    values = [*range(3), *[7] * 400, *[8] * 400]
    found = suggest_roles(pa.table({"a": values, "b": [1, 2] * 401 + [1], "y": [0, 1] * 401 + [0]}), "y")
    assert found[0].reason.startswith("by itself it singles out fewer than 10 records")
