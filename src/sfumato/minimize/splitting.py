# SPDX-License-Identifier: Apache-2.0
"""Deal records to training, validation and test so that training has seen everything that occurs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.frames import Table

Shares = tuple[float, float, float]


def deal(
    table: Table, y: NDArray[Any], shares: Shares, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the training, validation and test parts, in random order.

    One record of every class and of every category goes to the training part first, the rest is dealt at random: a
    value that only the other parts have would be unseen, and nothing could be learned about it.
    """
    n = table.n_records
    if len(shares) != 3 or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise ParameterError(
            f"shares={shares!r}: expected three shares above 0 that sum to 1: training, validation and test. "
            "(0.6, 0.1, 0.3) is usual."
        )
    if n < 10:
        raise ParameterError(f"{n} records for three parts: expected at least 10. Collect more, or pass the parts.")
    order = generator.permutation(n)
    is_needed = np.zeros(n, np.bool_)
    for codes in _codes_to_cover(table, y):
        _, first = np.unique(codes[order], return_index=True)
        is_needed[order[first]] = True
    order = np.concatenate([order[is_needed[order]], order[~is_needed[order]]])
    n_train = min(max(round(shares[0] * n), int(is_needed.sum())), n - 2)
    n_validation = max(1, round((n - n_train) * shares[1] / (shares[1] + shares[2])))
    n_validation = min(n_validation, n - n_train - 1)
    train, validation, test = np.split(order, [n_train, n_train + n_validation])
    return train, validation, test


def _codes_to_cover(table: Table, y: NDArray[Any]) -> Sequence[NDArray[Any]]:
    columns = [table.column(name) for name in table.names if table.kind(name) == "category"]
    return [y, *(column.values for column in columns)]
