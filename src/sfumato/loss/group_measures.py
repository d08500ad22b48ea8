# SPDX-License-Identifier: Apache-2.0
"""Loss seen from the groups: their average size, discernibility, the classification metric, non-uniform entropy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.frames import read_table
from sfumato.grouping import group_rows
from sfumato.loss.released_groups import (
    Loss,
    Names,
    check_k,
    check_suppressed,
    code_values,
    group_released,
    read_both,
    read_released,
)


def average_group_size(released: Any, quasi_identifiers: Names | None = None, *, k: int | None = None) -> Loss:
    """Divide the records by the groups, and by k if given: C_avg, 1 when every group has exactly k records.

    Parameters
    ----------
    released : frame or array
        The released records, without suppressed ones.
    quasi_identifiers : names or positions of columns, optional
        The rewritten columns; all unless named.
    k : int, optional
        What was asked for.

    Returns
    -------
    Loss
        ``normalized`` is None: the measure has no upper end.

    References
    ----------
    LeFevre, K., DeWitt, D. J. and Ramakrishnan, R. (2006). Mondrian multidimensional k-anonymity.

    Examples
    --------
    >>> import pyarrow as pa
    >>> average_group_size(pa.table({"age": ["30-39", "30-39", "40-49"]})).total
    1.5
    """
    table, names = read_released(released, quasi_identifiers)
    smallest = check_k(k) or 1

    def average(columns: tuple[str, ...]) -> float:
        return table.n_records / (int(group_released(table, columns).max()) + 1) / smallest

    return Loss("average group size", average(names), {name: average((name,)) for name in names})


def discernibility(
    released: Any, quasi_identifiers: Names | None = None, *, k: int | None = None, n_suppressed: int = 0
) -> Loss:
    """Charge every record the size of its group, and a suppressed one the size of the whole table.

    Parameters
    ----------
    released : frame or array
        The released records.
    quasi_identifiers : names or positions of columns, optional
        The rewritten columns; all unless named.
    k : int, optional
        Groups smaller than this count as suppressed.
    n_suppressed : int, default=0
        Records that were left out.

    Returns
    -------
    Loss
        ``total``: the sum over groups of their squared size, plus suppressed records times all records.
        ``normalized``: divided by the square of the number of records, 1 when all form one group.

    References
    ----------
    Bayardo, R. J. and Agrawal, R. (2005). Data privacy through optimal k-anonymization.

    Examples
    --------
    >>> import pyarrow as pa
    >>> discernibility(pa.table({"age": ["30-39", "30-39", "40-49"]})).total
    5.0
    """
    table, names = read_released(released, quasi_identifiers)
    smallest, left_out = check_k(k), check_suppressed(n_suppressed)
    n_all = table.n_records + left_out

    def charge(group: NDArray[np.int64]) -> float:
        sizes = np.bincount(group)
        paid = sizes if smallest is None else np.where(sizes >= smallest, sizes, n_all)
        return float((sizes * paid).sum() + left_out * n_all)

    total = charge(group_released(table, names))
    columns = {name: charge(group_released(table, [name])) for name in names}
    return Loss("discernibility", total, columns, total / n_all**2)


def classification_metric(
    released: Any, labels: Any, quasi_identifiers: Names | None = None, *, n_suppressed: int = 0
) -> Loss:
    """Return the share of records that are suppressed or whose label is not the most frequent one of their group.

    Parameters
    ----------
    released : frame or array
        The released records.
    labels : str, int or array-like of shape (n_records,)
        The column of `released` that is to be predicted, or its values.
    quasi_identifiers : names or positions of columns, optional
        The rewritten columns; all but the label unless named.
    n_suppressed : int, default=0
        Records that were left out; each counts 1.

    Returns
    -------
    Loss
        From 0 (every group has one label) to 1.

    References
    ----------
    Iyengar, V. S. (2002). Transforming data to satisfy privacy constraints.

    Examples
    --------
    >>> import pyarrow as pa
    >>> classification_metric(pa.table({"age": ["30-39", "30-39", "30-39", "40-49"]}), ["a", "a", "b", "b"]).total
    0.25
    """
    table, names = read_released(released, quasi_identifiers)
    left_out = check_suppressed(n_suppressed)
    if isinstance(labels, str | int):
        [label_name] = table.resolve(labels, "labels")
        codes = code_values(table.column(label_name))
        if quasi_identifiers is None:
            names = tuple(name for name in names if name != label_name)
    else:
        as_column = np.asarray(labels, dtype=object).reshape(-1, 1)
        codes = code_values(read_table(as_column).column("x0"))
    if len(codes) != table.n_records:
        raise InputError(
            f"labels has {len(codes)} values and the release {table.n_records} records: expected one label per record."
        )
    n_all = table.n_records + left_out

    def penalty(group: NDArray[np.int64]) -> float:
        counts = np.zeros((int(group.max()) + 1, int(codes.max()) + 1), np.int64)
        np.add.at(counts, (group, codes), 1)
        return float((table.n_records - counts.max(axis=1).sum() + left_out) / n_all)

    total = penalty(group_released(table, names))
    columns = {name: penalty(group_released(table, [name])) for name in names}
    return Loss("classification metric", total, columns, total)


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
    joint = np.bincount(group_rows([shown, values], len(values)))
    given = np.bincount(shown)
    # n H(X|Z) = sum over z of n_z log n_z - sum over (x, z) of n_xz log n_xz
    return max(0.0, float((given * np.log2(given)).sum() - (joint * np.log2(joint)).sum()))
