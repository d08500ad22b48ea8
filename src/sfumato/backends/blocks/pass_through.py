# SPDX-License-Identifier: Apache-2.0
"""Raise InputError for unchanged columns that identify people, in tables that are read in blocks.

How many of a column's values occur once is asked of a sample of the *values*, chosen by their hash: all records with a
chosen value are counted, so the share is that of the whole column up to the error of sampling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from threading import Lock
from typing import Any

import numpy as np

from sfumato.frames import Table, read_table
from sfumato.schema import Frequencies, Schema, check_naming, check_passing, judge_column, may_name

_ONE_IN = 64
_COUNTED_WHOLE = 1_000_000  # records up to which all values are counted


class SampledValues:
    """Counts the values of columns in blocks: all values, or those of a sample if there are many records.

    Parameters
    ----------
    names : iterable of str
    n_records : int
        Of the whole table.
    """

    def __init__(self, names: Iterable[str], n_records: int) -> None:
        self._one_in = _ONE_IN if n_records > _COUNTED_WHOLE else 1
        self._counts: dict[str, dict[Any, int]] = {name: {} for name in names}
        self._lock = Lock()

    @property
    def names(self) -> list[str]:
        """The columns that are counted."""
        return list(self._counts)

    def add(self, batch: Any) -> None:
        """Count a block; several threads may call this."""
        if not self._counts:
            return
        table = read_table(batch)
        for name, counts in self._counts.items():
            column = table.column(name, for_counting=True)
            present = column.values if column.missing is None else column.values[~column.missing]
            if column.categories is not None:
                numbers = np.bincount(present, minlength=len(column.categories))
                chosen = [
                    (v, int(n)) for v, n in zip(column.categories, numbers, strict=True) if self._is_drawn(str(v))
                ]
            else:
                values, numbers = np.unique(present, return_counts=True)
                mixed = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                at = np.flatnonzero((mixed >> np.uint64(32)) % np.uint64(self._one_in) == 0)
                chosen = [(values[i].item(), int(numbers[i])) for i in at]
            with self._lock:
                for value, n in chosen:
                    counts[value] = counts.get(value, 0) + n

    def frequencies(self) -> dict[str, Frequencies]:
        """Return the frequencies of each column's values, up to sampling error."""
        found = {}
        for name, counts in self._counts.items():
            n_single = sum(n == 1 for n in counts.values())
            found[name] = Frequencies(*(self._one_in * n for n in (sum(counts.values()), len(counts), n_single)))
        return found

    def _is_drawn(self, text: str) -> bool:
        return hashlib.blake2b(text.encode(), digest_size=2).digest()[0] % self._one_in == 0


class PassThrough(SampledValues):
    """Checks the columns that are released unchanged, and quasi-identifiers that may name people.

    Parameters
    ----------
    schema : Schema
    head : Table
        Its first records, by which the form of values is judged.
    n_records : int
        Of the whole table.
    is_chosen : bool
        Whether the quasi-identifiers were named, and not all columns taken for them.
    decided : collection of str, default=()
        Quasi-identifiers with a hierarchy.
    """

    def __init__(
        self, schema: Schema, head: Table, n_records: int, *, is_chosen: bool, decided: Collection[str] = ()
    ) -> None:
        self._n_records = n_records
        self._is_chosen = is_chosen
        self._passing = [name for name in schema.with_role("other") if name not in schema.keep]
        rewritten = [name for name in schema.quasi_identifiers if name not in {*schema.limits, *decided}]
        self._heads = {name: head.head(name, for_counting=True) for name in [*self._passing, *rewritten]}
        watched = [name for name, column in self._heads.items() if name in self._passing or may_name(column)]
        super().__init__(watched, n_records)

    def check(self) -> None:
        """Raise InputError for a column that names people, or is unchanged although most of its values are unique."""
        for name, counts in self.frequencies().items():
            found = judge_column(self._heads[name], counts)
            if name in self._passing:
                check_passing(found, self._n_records)
            else:
                check_naming(found, is_chosen=self._is_chosen)
