# SPDX-License-Identifier: Apache-2.0
"""Non-uniform entropy: how many bits of each value the release no longer tells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.loss.groups import Names, check_suppressed, code_values, group_by, group_released, read_both
from sfumato.loss.result import Loss


def non_uniform_entropy(
    original: Any, released: Any, quasi_identifiers: Names | None = None, *, n_suppressed: int = 0
) -> Loss:
    """Sum over all cells the bits that are missing to the original value: ``-log2 P(original | released)``.

    Parameters
    ----------
    original, released : frame or array
        The same records in the same order, before and after.
    quasi_identifiers : names or positions of columns, optional
        The rewritten columns; all of the original unless named.
    n_suppressed : int, default=0
        Records that were left out. Of each, all bits are lost: the average of its column.

    Returns
    -------
    Loss
        ``total`` and ``columns`` in bits. ``normalized``: over the bits that the original has, so 1 when every column
        shows one value; 0 when the original has none to lose.

    Notes
    -----
    The chance is that among the records whose cell was released as the same value. Where all records with the same
    original value are released alike this is the share of the original value in its label, as published. A release
    that renames values one to one loses nothing.

    References
    ----------
    de Waal, T. and Willenborg, L. (1999). Information loss through global recoding and local suppression.
    Gionis, A. and Tassa, T. (2009). k-anonymization with minimal loss of information.

    Examples
    --------
    >>> import pyarrow as pa
    >>> before, after = pa.table({"age": [30, 31, 40, 40]}), pa.table({"age": ["30-31", "30-31", "40", "40"]})
    >>> non_uniform_entropy(before, after).total
    2.0
    """
    before, after, names = read_both(original, released, quasi_identifiers)
    left_out = check_suppressed(n_suppressed)
    n_records = before.n_records
    columns, whole = {}, 0.0
    for name in names:
        values = code_values(before.column(name))
        bits = _bits(values, np.zeros(n_records, np.int64))
        columns[name] = _bits(values, group_released(after, [name])) + left_out * bits / n_records
        whole += bits * (n_records + left_out) / n_records
    total = sum(columns.values())
    return Loss("non-uniform entropy", total, columns, min(1.0, total / whole) if whole > 0 else 0.0)


def _bits(values: NDArray[np.int64], shown: NDArray[np.int64]) -> float:
    """Return n times the entropy of the values given what is shown."""
    joint = np.bincount(group_by([shown, values], len(values)))
    given = np.bincount(shown)
    # n H(X|Z) = sum over z of n_z log n_z - sum over (x, z) of n_xz log n_xz
    return max(0.0, float((given * np.log2(given)).sum() - (joint * np.log2(joint)).sum()))
