# SPDX-License-Identifier: Apache-2.0
"""The cells of an encoder: which of finitely many things an attacker sees of a record.

A generalization shows a bucket per attribute, a fitted partition a group, any other callable the codes it returns. An
anatomized table is not an encoder of new records: its groups are those of the people inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column
from sfumato.errors import InputError, ParameterError, named
from sfumato.fingerprints import Fingerprints
from sfumato.frames import read_table
from sfumato.generalization import Generalization
from sfumato.grouping import CODED_BY_SUBTRACTION, encode, group_rows


@runtime_checkable
class FittedGroups(Protocol):
    """A fitted partition, as far as a certificate needs it."""

    group_sizes: NDArray[np.int64]
    fingerprints: Fingerprints | None

    def apply(self, frame: Any) -> NDArray[np.int32]:
        """Return the group of every record."""


@runtime_checkable
class TwoTables(Protocol):
    """An anatomized table, as far as a certificate needs it."""

    identifying: Any
    sensitive: Any


@dataclass(frozen=True)
class Encoder:
    """An encoder of records.

    Attributes
    ----------
    given : Generalization, FittedGroups or callable
    description : str
        What an attacker sees of a record, for people.
    fingerprints : Fingerprints or None
        Of the records that it was made from.
    """

    given: Any
    description: str
    fingerprints: Fingerprints | None = None

    def columns_of(self, X: Any) -> list[NDArray[np.int64]]:
        """Return what an attacker sees of every record: one or several columns of codes from 0."""
        if isinstance(self.given, Generalization):
            return [codes.astype(np.int64) for codes in self.given.codes(X).T]
        if isinstance(self.given, FittedGroups):
            return [self.given.apply(X).astype(np.int64)]
        return _codes_from(self.given(X), read_table(X).n_records)


def as_encoder(given: Any) -> Encoder:
    """Return the encoder that a caller passed: an artifact, a fitted estimator that has one, or a callable.

    Raises
    ------
    ParameterError
        If it is none of them.
    """
    for attribute in ("generalization_", "partition_"):
        given = getattr(given, attribute, given)
    if isinstance(given, Generalization):
        collected = sum(attribute.is_collected for attribute in given.attributes)
        of = f"bucket of {collected} attribute" if collected == 1 else f"buckets of {collected} attributes"
        sees = f"the {of} under a generalization"
        return Encoder(given, sees, given.fingerprints)
    if isinstance(given, FittedGroups):
        return Encoder(given, f"its group among the {len(given.group_sizes):,} of a partition", given.fingerprints)
    if callable(given) and not isinstance(given, type):
        return Encoder(given, "the code that a function gives it")
    raise ParameterError(
        f"{named('encoder')} is of the type {type(given).__name__}: expected a Generalization, a Partition, an "
        "AnatomizedTable, a fitted estimator that has one, or a function from a table to codes. Fit estimators first."
    )


def cells_of(encoder: Encoder, X: Any, known: Sequence[Column]) -> NDArray[np.int64]:
    """Return the cell of every record, from 0: what the encoder shows, and what an attacker knows besides."""
    columns = encoder.columns_of(X) + [encode(column).values.astype(np.int64) for column in known]
    return group_rows(columns, read_table(X).n_records)


def _codes_from(codes: Any, n_records: int) -> list[NDArray[np.int64]]:
    array = np.asarray(codes)
    if array.ndim not in (1, 2) or len(array) != n_records:
        raise InputError(
            f"the encoder returned an array of shape {array.shape} for {n_records:,} records: expected one code, or "
            "one row of codes, per record. Return an array with a row per record."
        )
    columns = [array] if array.ndim == 1 else list(array.T)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            "the encoder returned NaN or infinity: expected codes. Give missing values a code of their own."
        )
    return [_from_zero(column) for column in columns]


def _from_zero(column: NDArray[Any]) -> NDArray[np.int64]:
    """Return codes from 0 that are equal where the given ones are; small integers need no sorting."""
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < CODED_BY_SUBTRACTION:
            return column.astype(np.int64) - low
    return np.unique(column, return_inverse=True)[1].astype(np.int64)
