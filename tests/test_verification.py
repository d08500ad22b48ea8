# SPDX-License-Identifier: Apache-2.0
"""The recount tells every two different values apart."""

import pyarrow as pa

from sfumato.verification import count_groups, label_groups


def test_large_numbers_beside_negative_ones_are_not_taken_for_equal():
    table = pa.table({"account": [-1, -1, 2**62 + 1, 2**62 + 3]})
    assert count_groups(table, ["account"]).tolist() == [2, 1, 1]
    assert label_groups(table, ["account"]).tolist() == [0, 0, 1, 2]
