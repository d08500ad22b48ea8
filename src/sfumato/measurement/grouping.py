# SPDX-License-Identifier: Apache-2.0
"""Columns as small codes, and the groups of records that agree in all of them.

Called by every part of the measurement. Codes say which values are equal and nothing else: 0 is missing, the others
are the values that occur, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column
from sfumato.errors import InputError
from sfumato.measurement.kernels import collect, combine, divide, label_groups

MISSING = 0

WORDS = {"number": "numbers", "moment": "dates or times", "category": "categories"}
MOST_CELLS = 1 << 23  # combinations of codes that are counted in one table
CODED_BY_SUBTRACTION = 1 << 20  # whole numbers that span no more than this are coded by subtraction


@dataclass(frozen=True, eq=False)
class Codes:
    """One column as codes.

    Attributes
    ----------
    values : ndarray of int32
        0 where the value is missing.
    n_codes : int
        Codes are below this; not every one has to occur.
    has_missing : bool
    """

    name: str
    values: NDArray[np.int32]
    n_codes: int
    has_missing: bool


@dataclass(frozen=True, eq=False)
class Grouping:
    """Records in order of their groups: group g is ``order[starts[g]:starts[g + 1]]``."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Records of each group."""
        return np.diff(self.starts)

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.starts) - 1

    def of_records(self) -> NDArray[np.int64]:
        """Return the group of every record."""
        labels: NDArray[np.int64] = label_groups(self.order, self.starts)
        return labels

    def divided(self, column: Codes) -> Grouping:
        """Return the groups divided by one more column."""
        return Grouping(*divide(self.order, self.starts, column.values, column.n_codes))


def encode(column: Column) -> Codes:
    """Turn the values of a column into codes; equal values and no others have equal codes."""
    values = column.values
    if column.categories is not None:
        codes, n_codes = values.astype(np.int32) + np.int32(1), len(column.categories) + 1
    else:
        codes, n_codes = _encode_numbers(values)
    if column.missing is not None:
        codes[column.missing] = MISSING
    return Codes(column.name, codes, n_codes, column.missing is not None)


def _encode_numbers(values: NDArray[Any]) -> tuple[NDArray[np.int32], int]:
    if values.dtype.kind == "i":
        low, high = int(values.min()), int(values.max())
        if high - low < CODED_BY_SUBTRACTION:
            return (values - low).astype(np.int32) + np.int32(1), high - low + 2
    import pyarrow as pa

    encoded = pa.array(values).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int32) + np.int32(1), len(encoded.dictionary) + 1


def encode_together(first: Column, second: Column) -> tuple[Codes, Codes]:
    """Code the same column of two tables, so that equal values have equal codes in both."""
    stacked = _stacked(first, second)
    codes = encode(stacked)
    at = first.n_records
    return (
        Codes(first.name, codes.values[:at], codes.n_codes, first.missing is not None),
        Codes(first.name, codes.values[at:], codes.n_codes, second.missing is not None),
    )


def _stacked(first: Column, second: Column) -> Column:
    missing = np.concatenate([_is_missing(first), _is_missing(second)])
    is_empty = [bool(_is_missing(column).all()) for column in (first, second)]
    if first.kind != second.kind and not any(is_empty):
        raise InputError(
            f"column {first.name!r} holds {WORDS[first.kind]} in the table and {WORDS[second.kind]} in the "
            "population: expected the same. Convert one of them."
        )
    if any(is_empty):
        kept = second if is_empty[0] else first
        blank = np.zeros(len(missing) - kept.n_records, kept.values.dtype)
        values = np.concatenate([blank, kept.values] if is_empty[0] else [kept.values, blank])
        return Column(first.name, kept.kind, values, missing, kept.categories)
    if first.categories is None or second.categories is None:
        return Column(first.name, first.kind, np.concatenate([first.values, second.values]), missing)
    position = {value: code for code, value in enumerate(first.categories.tolist())}
    for value in second.categories.tolist():
        position.setdefault(value, len(position))
    translate = np.array([position[value] for value in second.categories.tolist()], np.int32)
    categories = np.empty(len(position), object)
    categories[:] = list(position)
    return Column(first.name, "category", np.concatenate([first.values, translate[second.values]]), missing, categories)


def _is_missing(column: Column) -> NDArray[np.bool_]:
    return np.zeros(column.n_records, np.bool_) if column.missing is None else column.missing


def combined(label: NDArray[np.int32], n_labels: int, column: Codes) -> tuple[NDArray[np.int32], int] | None:
    """Return labels for the combinations of a label and a column's codes; None when there could be too many."""
    n_cells = n_labels * column.n_codes
    if n_cells > MOST_CELLS:
        return None
    label = label.copy()
    return label, int(combine(label, column.values, column.n_codes, np.zeros(n_cells, np.int32)))


def group(columns: Sequence[Codes], n_records: int) -> Grouping:
    """Group the records that agree in all columns; without columns, all records form one group.

    Columns with few codes are combined first, in one pass each. Where a column has so many that most records could
    stand alone, it comes first instead: what stands alone is never looked at again.
    """
    waiting = sorted(columns, key=lambda column: column.n_codes)
    label, n_labels = np.zeros(n_records, np.int32), 1
    if not waiting or 4 * waiting[-1].n_codes <= n_records:
        while waiting and (found := combined(label, n_labels, waiting[0])) is not None:
            label, n_labels = found
            waiting.pop(0)
    groups = Grouping(*collect(label, n_labels))
    for column in reversed(waiting):
        groups = groups.divided(column)
    return groups
