# SPDX-License-Identifier: Apache-2.0
"""Records from cells: each gets a value that lies in its cell, column by column.

Whatever is drawn from noisy counts costs no privacy, so the generator may be any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.private.encoding import PublicEncoding

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class RowModel(Protocol):
    """Noisy knowledge of a table from which records are drawn."""

    @property
    def n_records(self) -> float:
        """Noisy number of records, at least 1."""
        ...

    def draw_cells(self, n_records: int, random: np.random.Generator) -> Integers:
        """Draw the cells of some records, one column for each of the table."""
        ...


def draw_records(
    model: RowModel,
    encoding: PublicEncoding,
    n_records: int,
    is_whole: Mapping[str, bool],
    random: np.random.Generator,
) -> Any:
    """Draw records as an Arrow table.

    Parameters
    ----------
    model : RowModel
    encoding : PublicEncoding
    n_records : int
    is_whole : mapping of str to bool
        Which columns of numbers are integers; see `whole_columns`.
    random : Generator
        Any: nothing that is drawn here is secret.
    """
    import pyarrow as pa

    cells = model.draw_cells(n_records, random)
    columns = {}
    for column, cell in zip(encoding.columns, cells.T, strict=True):
        if hasattr(column, "cuts"):
            drawn = _draw_numbers(column, cell, random, is_whole=is_whole.get(column.name, False))
        else:
            drawn = pa.array([*column.known, None]).take(pa.array(cell))
        columns[column.name] = drawn
    return pa.table(columns)


def draw_places(weights: Floats, n: int, random: np.random.Generator) -> Integers:
    """Draw places with these weights, all alike where none is above 0."""
    total = weights.sum()
    shares = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    return random.choice(len(weights), n, p=shares).astype(np.int64)


def whole_columns(bounds: Mapping[str, Sequence[float]] | None) -> dict[str, bool]:
    """Return which columns of numbers are integers: those whose bounds are all given as integers."""
    given = bounds or {}
    return {
        name: all(isinstance(edge, int | np.integer) and not isinstance(edge, bool) for edge in edges)
        for name, edges in given.items()
    }


def _draw_numbers(column: Any, cell: Integers, random: np.random.Generator, *, is_whole: bool) -> Any:
    """Draw a number from the interval of each cell, all as likely; the last cell stands for missing."""
    import pyarrow as pa

    edges = np.array([column.low, *column.cuts, column.high])
    missing = cell > len(column.cuts)
    place = np.minimum(cell, len(column.cuts))
    low, high = edges[place], edges[place + 1]
    if not is_whole:
        return pa.array(low + random.random(len(cell)) * (high - low), mask=missing)
    # Integers from the first in the interval to the last below its end; the last interval has its end, too.
    first = np.ceil(low)
    last = np.maximum(np.where(place == len(column.cuts), np.floor(high), np.ceil(high) - 1), first)
    return pa.array((first + np.floor(random.random(len(cell)) * (last - first + 1))).astype(np.int64), mask=missing)
