# SPDX-License-Identifier: Apache-2.0
"""Refuse columns that would pass through although they point at persons, in tables that are read piece by piece.

Whether more than half of a column's values occur once is asked of a sample of the *values*, chosen by their hash: all
records with a chosen value are counted, so the share is that of the whole column up to the error of sampling.
"""

from __future__ import annotations

import hashlib
from threading import Lock
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.frames import read_table
from sfumato.schema import Schema
from sfumato.schema.roles import SMALLEST_TABLE_CHECKED

_ONE_IN = 64
_COUNTED_WHOLE = 1_000_000  # records up to which all values are counted


class PassThrough:
    """Watches the columns that leave as they are.

    Parameters
    ----------
    schema : Schema
    n_records : int
        Of the whole table.
    """

    def __init__(self, schema: Schema, n_records: int) -> None:
        self._one_in = _ONE_IN if n_records > _COUNTED_WHOLE else 1
        # As in memory: what a criterion protects leaves as it is, and few records say nothing about a column.
        watched = schema.with_role("other") if n_records >= SMALLEST_TABLE_CHECKED else ()
        self._counts: dict[str, dict[Any, int]] = {name: {} for name in watched if name not in schema.keep}
        self._lock = Lock()

    @property
    def names(self) -> list[str]:
        """The columns that are watched."""
        return list(self._counts)

    def add(self, batch: Any) -> None:
        """Count a piece; several threads may."""
        if not self._counts:
            return
        table = read_table(batch)
        for name, counts in self._counts.items():
            column = table.column(name, for_counting=True)
            present = column.values if column.missing is None else column.values[~column.missing]
            if column.categories is not None:
                numbers = np.bincount(present, minlength=len(column.categories))
                chosen = [
                    (v, int(n)) for v, n in zip(column.categories, numbers, strict=True) if self._is_chosen(str(v))
                ]
            else:
                values, numbers = np.unique(present, return_counts=True)
                mixed = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                at = np.flatnonzero((mixed >> np.uint64(32)) % np.uint64(self._one_in) == 0)
                chosen = [(values[i].item(), int(numbers[i])) for i in at]
            with self._lock:
                for value, n in chosen:
                    counts[value] = counts.get(value, 0) + n

    def check(self) -> None:
        """Raise for a column most of whose values occur once."""
        for name, counts in self._counts.items():
            n_single = sum(n == 1 for n in counts.values())
            if 2 * n_single > sum(counts.values()):
                raise InputError(
                    f"the column {name!r} would pass through untouched and more than half of its values occur exactly "
                    "once: expected a column that does not point at persons by itself. Name it in quasi_identifiers "
                    "or identifiers, or in keep if it may leave as it is."
                )

    def _is_chosen(self, text: str) -> bool:
        return hashlib.blake2b(text.encode(), digest_size=2).digest()[0] % self._one_in == 0
