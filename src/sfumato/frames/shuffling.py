# SPDX-License-Identifier: Apache-2.0
"""Draw a random order of records and apply it to a frame; all shuffling of releases happens here.

The order of the input is knowledge about people: in a file sorted by income, the place of a record in its group tells
which member it belongs to, however large the group is.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.frames.assembling import with_plain_index, with_sorted_categories
from sfumato.frames.table import read_table

_N_PARTS = 256


def random_order(n_records: int) -> npt.NDArray[np.integer[Any]]:
    """Return the numbers from 0 to `n_records` - 1 in a random order, drawn from the entropy of the system.

    There is no seed: an attacker who guesses it could undo the shuffle. The generators of numpy are not used either,
    because their state can be computed from a part of the order that is known.

    Notes
    -----
    Each record draws one of 256 parts, and each part is put in a random order of its own. That makes all orders equally
    likely, and needs little more memory than the result.

    Examples
    --------
    >>> sorted(random_order(5).tolist())
    [0, 1, 2, 3, 4]
    """
    order: npt.NDArray[np.integer[Any]] = np.empty(n_records, np.int32 if n_records < 2**31 else np.int64)
    part = np.frombuffer(secrets.token_bytes(n_records), np.uint8)
    start = 0
    for number in range(_N_PARTS):
        rows = np.flatnonzero(part == number)
        keys = np.frombuffer(secrets.token_bytes(8 * len(rows)), np.uint64)
        order[start : start + len(rows)] = rows[np.argsort(keys)]
        start += len(rows)
    return order


def in_order(frame: Any, order: npt.NDArray[np.integer[Any]]) -> Any:
    """Return the rows of a frame or array in another order, without traces of the old one.

    A pandas frame gets a plain new index, and categorical types list their categories sorted where no order is
    declared: both would otherwise give away the order of the rows before.
    """
    moved = read_table(frame).replaced({}, keep_rows=order)
    return with_plain_index(with_sorted_categories(moved))
