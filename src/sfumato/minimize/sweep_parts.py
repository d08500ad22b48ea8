# SPDX-License-Identifier: Apache-2.0
"""Deal the records of a sweep to three parts: to learn on, to choose on, and to report and certify on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import as_table_like
from sfumato.errors import ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.minimize.minimizer import Minimizer, code_target

Part = tuple[Any, Any]
"""Records and their classes."""

Shares = tuple[float, float, float]
SHARES: Shares = (0.6, 0.1, 0.3)


def parts_of(
    minimizer: Minimizer, X: Any, y: Any, validation: Part | None, test: Part | None, shares: Shares, seed: int
) -> list[Part]:
    """Return records and classes of the three parts."""
    if (validation is None) != (test is None):
        raise ParameterError("one of validation and test was given: expected both or none. Pass the other one, too.")
    if validation is not None and test is not None:
        return [(as_table_like(frame), np.asarray(classes)) for frame, classes in ((X, y), validation, test)]
    table = read_table(as_table_like(X), categorical=minimizer._categorical())
    codes, _ = code_target(y, table.n_records)
    rows = deal(table, codes, shares, np.random.default_rng(seed))
    classes = np.asarray(y)
    return [(table.replaced({}, keep_rows=own), classes[own]) for own in rows]


def set_aside(X: Any, y: Any, shares: Shares, seed: int) -> tuple[Any, Any, Part, Part]:
    """Draw a test part at random, as a certificate needs it, then a validation part from the rest."""
    table = read_table(as_table_like(X))
    code_target(y, table.n_records)  # raises unless there is one class per record
    _check_shares(shares, table.n_records)
    order = np.random.default_rng(seed).permutation(table.n_records)
    ends = np.round(np.cumsum(shares[:0:-1]) * table.n_records).astype(int)
    test, validation, train = np.split(order, [max(1, ends[0]), max(2, ends[1])])
    classes = np.asarray(y)
    parts = [(table.replaced({}, keep_rows=rows), classes[rows]) for rows in (train, validation, test)]
    return *parts[0], parts[1], parts[2]


def deal(
    table: Table, y: NDArray[Any], shares: Shares, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the training, validation and test parts, in random order.

    One record of every class and of every category goes to the training part first, the rest is dealt at random: a
    value that only the other parts have would be unseen, and nothing could be learned about it.
    """
    n = table.n_records
    _check_shares(shares, n)
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


def _check_shares(shares: Shares, n_records: int) -> None:
    if len(shares) != 3 or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise ParameterError(
            f"{named('shares', shares)}: expected three shares above 0 that sum to 1: training, validation and test. "
            "(0.6, 0.1, 0.3) is usual."
        )
    if n_records < 10:
        raise ParameterError(
            f"{n_records} records for three parts: expected at least 10. Collect more, or pass the parts."
        )


def _codes_to_cover(table: Table, y: NDArray[Any]) -> Sequence[NDArray[Any]]:
    columns = [table.column(name) for name in table.names if table.kind(name) == "category"]
    return [y, *(column.values for column in columns)]
