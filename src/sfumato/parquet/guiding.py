# SPDX-License-Identifier: Apache-2.0
"""What guides the splits of records in files: a column of numbers piece by piece, anything else held whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.base import TreeAnonymizer
from sfumato.anonymize.model_guided import ModelGuidedAnonymizer
from sfumato.errors import InputError
from sfumato.frames import read_table
from sfumato.partition.guides import CHANNELS, Guide, NumberScale, Spread, unit_weights


def read_predictions(piece: Any, names: Sequence[str]) -> NDArray[Any]:
    """Return the predictions of a piece, one column or several."""
    table = read_table(piece.select(list(names)))
    columns = [table.column(name) for name in names]
    for column in columns:
        if column.missing is not None and column.missing.any():
            raise InputError(
                f"the column {column.name!r} has missing predictions: expected one per record. Fill them in."
            )
    values = [c.values if c.categories is None else c.categories[c.values].astype(str) for c in columns]
    return values[0] if len(values) == 1 else np.column_stack(values)


class WholeGuide:
    """A guide that is held for all records at once.

    Parameters
    ----------
    guide : Guide
    """

    def __init__(self, guide: Guide) -> None:
        self._guide = guide
        self.cardinalities = guide.cardinalities
        self.n_dense = 0 if guide.dense is None else guide.dense.shape[1]

    @property
    def example(self) -> list[NDArray[Any]]:
        """No codes, of the types of the blocks."""
        return [block[:0] for block in self._guide.code_blocks]

    def channels(self, start: int, piece: Any) -> tuple[list[NDArray[Any]], NDArray[np.int64] | None]:
        """Return the coded blocks and the dense channels of a piece."""
        part = slice(start, start + piece.num_rows)
        dense = None if self._guide.dense is None else self._guide.dense[part]
        return [block[part] for block in self._guide.code_blocks], dense

    def without_channels(self) -> Guide:
        """Return the guide when all channels were asked for: they are with the records now, and held here no more."""
        self._guide = replace(self._guide, dense=None, code_blocks=[])
        return self._guide


class NumberGuide:
    """A guide by one column of numbers, of which only the ends and the sums are held.

    Parameters
    ----------
    name : str
        The column.
    """

    cardinalities: Sequence[int] = ()
    n_dense = 1
    example: Sequence[NDArray[Any]] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = Lock()
        self._low, self._high = np.inf, -np.inf
        self._has_fractions = False
        self._spread = Spread()

    @classmethod
    def suited(cls, anonymizer: TreeAnonymizer, names: Sequence[str], schema: Any) -> NumberGuide | None:
        """Return a guide where one column of fractions guides, and the anonymizer takes it for numbers."""
        import pyarrow as pa

        if len(names) != 1 or not isinstance(anonymizer, ModelGuidedAnonymizer):
            return None
        if not pa.types.is_floating(schema.field(names[0]).type) or anonymizer.guide_kind not in ("auto", "numbers"):
            return None
        return cls(names[0])

    def look(self, piece: Any) -> None:
        """Note the ends of a piece."""
        values = read_predictions(piece, [self.name])
        low, high = values.min(), values.max()
        has_fractions = self._has_fractions or bool((values != np.floor(values)).any())
        with self._lock:
            self._low, self._high = min(self._low, low), max(self._high, high)
            self._has_fractions |= has_fractions

    def are_numbers(self, anonymizer: Any) -> bool:
        """Say whether the column, once it was looked at, is numbers: whole ones are labels unless said otherwise."""
        self._scale = NumberScale.of(np.array([self._low]), np.array([self._high]))
        return self._has_fractions or anonymizer.guide_kind == "numbers"

    def channels(self, start: int, piece: Any) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
        """Return the channel of a piece, and add it to the sums."""
        dense = self._scale.channels(read_predictions(piece, [self.name])[:, None])
        spread = Spread.of(dense[:, 0])
        with self._lock:
            self._spread += spread
        return [], dense

    def without_channels(self) -> Guide:
        """Return the rule and the weights when all channels were asked for."""
        return Guide(CHANNELS, channel_weights=unit_weights([self._spread.variance]))
