# SPDX-License-Identifier: Apache-2.0
"""Records as numbers whose range follows from public knowledge alone.

Differential privacy holds only if nothing about the table is looked up in the table. So the ends and edges of numbers
and the lists of categories are parameters, and a column without them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Column, Table, read_table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_OTHER = "(other or missing)"


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A column of numbers, cut at public edges; one more cell for missing values."""

    name: str
    low: float
    high: float
    cuts: Floats

    @property
    def n_cells(self) -> int:
        return len(self.cuts) + 2

    def cells(self, column: Column) -> Integers:
        if _is_empty(column):
            return np.full(column.n_records, len(self.cuts) + 1, np.int64)
        values = _numbers_of(column)
        cells = np.searchsorted(self.cuts, values, side="right")
        return cells if column.missing is None else np.where(column.missing, len(self.cuts) + 1, cells)

    def scaled(self, column: Column) -> Floats:
        if _is_empty(column):
            return np.full(column.n_records, 0.5)
        scaled = np.clip((_numbers_of(column) - self.low) / (self.high - self.low), 0.0, 1.0)
        return scaled if column.missing is None else np.where(column.missing, 0.5, scaled)

    def cell_names(self) -> list[str]:
        ends = ["", *(f"{cut:g}" for cut in self.cuts), ""]
        return [
            *(f"{self.name} {low}..{high}" for low, high in pairwise(ends)),
            f"{self.name} (missing)",
        ]


@dataclass(frozen=True, eq=False)
class _Categories:
    """A column of categories from a public list; one more cell for all other values."""

    name: str
    known: tuple[Any, ...]

    @property
    def n_cells(self) -> int:
        return len(self.known) + 1

    def cells(self, column: Column) -> Integers:
        if _is_empty(column):
            return np.full(column.n_records, len(self.known), np.int64)
        self._check_kind(column)
        place = {value: position for position, value in enumerate(self.known)}
        if column.categories is not None:
            found, of_record = column.categories.tolist(), column.values
        else:
            distinct, of_record = np.unique(column.values, return_inverse=True)
            found = distinct.tolist()
        cells = np.array([place.get(value, len(self.known)) for value in found], np.int64)[of_record]
        return cells if column.missing is None else np.where(column.missing, len(self.known), cells)

    def _check_kind(self, column: Column) -> None:
        """Raise ParameterError if the list has text and the column numbers, or the other way round."""
        if column.kind == "moment":
            raise ParameterError(
                f"column {self.name!r} holds dates or times and is in categories=: expected text, numbers or booleans. "
                "Turn it into text, or into a number in bounds=, such as the year."
            )
        found = [0] if column.kind == "number" else [] if column.categories is None else column.categories.tolist()
        kinds = (("text", _are_text), ("numbers", are_numbers))
        listed, held = ([name for name, holds in kinds if holds(values)] for values in (self.known, found))
        if listed and held and listed != held:
            raise ParameterError(
                f"categories of column {self.name!r} are {listed[0]} and the column holds {held[0]}: expected both "
                "alike, since no value would be in the list. Convert one of them."
            )

    def cell_names(self) -> list[str]:
        return [*(f"{self.name}={value}" for value in self.known), f"{self.name} {_OTHER}"]


class PublicEncoding:
    """What is publicly known of the columns of a table, and how records are written by it.

    Parameters
    ----------
    names : sequence of str
        The columns.
    bounds : mapping of str to sequence of float
        Of each column of numbers the lowest and the highest possible value, which are cut into `n_intervals` of equal
        width; or the edges of its intervals, in increasing order. Values outside belong to the first or last interval.
    categories : mapping of str to sequence
        Of each other column its possible values. All others, missing ones included, count as one more.
    n_intervals : int

    Raises
    ------
    ParameterError
        If a column has neither, or both.
    """

    def __init__(
        self,
        names: Sequence[str],
        bounds: Mapping[str, Sequence[float]] | None,
        categories: Mapping[str, Sequence[Any]] | None,
        n_intervals: int = 16,
    ) -> None:
        bounds, categories = _as_mapping("bounds", bounds), _as_mapping("categories", categories)
        if isinstance(n_intervals, bool) or not isinstance(n_intervals, int | np.integer) or n_intervals < 1:
            raise ParameterError(f"{named('n_intervals', n_intervals)}: expected an integer from 1 on.")
        for parameter, given in (("bounds", bounds), ("categories", categories)):
            unknown = sorted(str(name) for name in given if name not in names)
            if unknown:
                raise ParameterError(
                    f"{named(parameter)} names the column {unknown[0]!r}, which the table does not have: expected some "
                    f"of its {len(names)} columns. Correct the name."
                )
        self.names = tuple(names)
        self.columns = [_column_of(name, bounds, categories, int(n_intervals)) for name in names]

    @property
    def n_cells(self) -> int:
        """Number of cells of all columns together."""
        return sum(column.n_cells for column in self.columns)

    def cell_names(self) -> list[str]:
        """Return what each cell stands for, such as ``age 20..30`` or ``sex=female``."""
        return [name for column in self.columns for name in column.cell_names()]

    def cells(self, table: Table) -> Integers:
        """Return the cell of every record in every column, each column counted from 0."""
        return np.column_stack([column.cells(self._read(table, column)) for column in self.columns])

    def one_hot(self, table: Table) -> sparse.csr_array:
        """Return the cells of every record as a sparse matrix of zeros and ones, with a last column of ones.

        Every row has exactly ``len(names) + 1`` ones, so that all records have the same length.
        """
        cells = self.cells(table)
        starts = np.cumsum([0, *(column.n_cells for column in self.columns)])
        places = np.column_stack([cells + starts[:-1], np.full(len(cells), starts[-1])])
        row_ends = np.arange(0, places.size + 1, places.shape[1])
        shape = (len(cells), int(starts[-1]) + 1)
        return sparse.csr_array((np.ones(places.size), places.ravel(), row_ends), shape=shape)

    def smoothing(self, reach: float) -> sparse.csr_array:
        """Return the features of every cell, for learning neighboring intervals of numbers together.

        The features of two intervals of a column have the product ``exp(-distance / reach)``, with the distance in
        intervals; those of two categories have none. So every row has the length 1, as rows of the identity have, and
        gradients of records are no longer than before. The last row is that of the constant.

        Parameters
        ----------
        reach : float
            Above 0; 0 is the identity.
        """
        blocks = []
        for column in self.columns:
            n_ordered = len(column.cuts) + 1 if isinstance(column, _Numbers) and reach > 0 else 0
            blocks += [_root(n_ordered, reach)] if n_ordered else []
            blocks.append(np.eye(column.n_cells - n_ordered))
        return sparse.csr_array(sparse.block_diag([*blocks, np.eye(1)]))

    def dense(self, table: Table) -> Floats:
        """Return numbers scaled to 0..1, missing ones in the middle, and categories one-hot."""
        parts = []
        for column in self.columns:
            values = self._read(table, column)
            if isinstance(column, _Numbers):
                parts.append(column.scaled(values)[:, None])
            else:
                parts.append(np.eye(column.n_cells)[column.cells(values)])
        return np.column_stack(parts)

    def _read(self, table: Table, column: _Numbers | _Categories) -> Column:
        if column.name not in table.names:
            raise InputError(
                f"the table has no column {column.name!r}, which the model was fitted with: expected all "
                f"{len(self.names)} columns. Pass them under the same names."
            )
        return table.column(column.name)


def _root(n_intervals: int, reach: float) -> Floats:
    """Return the symmetric square root of the products of intervals."""
    places = np.arange(n_intervals)
    values, vectors = np.linalg.eigh(np.exp(-np.abs(places[:, None] - places) / reach))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    # A hair shorter, so that rounding never makes a row longer than 1.
    return np.asarray((root + root.T) * (0.5 - 2.0**-40))


def persons_of(table: Table, unit: str) -> tuple[Integers, int]:
    """Return the number of each record's person, from 0 on, and how many persons there are.

    Raises
    ------
    InputError
        If a record has no person: one of two nameless persons would change what the other one counts.
    """
    column = table.column(unit, for_counting=True)
    if column.missing is not None:
        raise nobody(unit)
    distinct, person = np.unique(column.values, return_inverse=True)
    return person.astype(np.int64), len(distinct)


def nobody(unit: str) -> InputError:
    """Return the error for records without a person."""
    return InputError(
        f"column {unit!r} has missing values: expected the person of every record. Fill them in, or drop those records."
    )


def shares_of_persons(X: Any, unit: str | int) -> tuple[Floats, int, str]:
    """Return the share of each record in its person, the number of persons and the name of the column.

    A person's records share a weight of 1, so that nobody counts for more than one record.
    """
    table = read_table(X)
    name = table.resolve([unit], "unit")[0]
    person, n_persons = persons_of(table, name)
    return 1.0 / np.bincount(person)[person], n_persons, name


def are_numbers(values: Sequence[Any]) -> bool:
    """Return True if all values are numbers, excluding bools."""
    return all(isinstance(v, int | float | np.integer | np.floating) and not isinstance(v, bool) for v in values)


def _are_text(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _as_mapping(parameter: str, given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"{named(parameter)} is of the type {type(given).__name__}: expected a mapping from names of columns, "
            f"such as {parameter}={{'age': (0, 120)}}."
            if parameter == "bounds"
            else f"{named(parameter)} is of the type {type(given).__name__}: expected a mapping from names of columns "
            "to lists of values."
        )
    return given


def _column_of(
    name: str, bounds: Mapping[str, Any], categories: Mapping[str, Any], n_intervals: int
) -> _Numbers | _Categories:
    if (name in bounds) == (name in categories):
        where = "both in bounds= and in categories=" if name in bounds else "neither in bounds= nor in categories="
        raise ParameterError(
            f"column {name!r} is {where}: expected a range or a list of values for every column, known without the "
            "data. Looked up in the data it would leak. Add it to one of them."
        )
    if name in categories:
        known = tuple(categories[name])
        if not known or len(set(known)) < len(known):
            raise ParameterError(
                f"categories of column {name!r}: expected at least one value, and each once. Correct the list."
            )
        # Beside text all numbers of a column are read as text: one person's value would move everybody to other cells.
        if len({isinstance(value, str) for value in known}) > 1:
            raise ParameterError(
                f"categories of column {name!r} are text and other values: expected one kind. Write all of them as "
                "text, also in the table."
            )
        return _Categories(name, known)
    try:
        edges = np.asarray(bounds[name], np.float64)
    except (TypeError, ValueError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise ParameterError(
            f"bounds of column {name!r}: expected the lowest and the highest value, or more edges, finite and in "
            "increasing order, such as (0, 120). Correct them."
        )
    cuts = np.linspace(edges[0], edges[1], n_intervals + 1)[1:-1] if len(edges) == 2 else edges[1:-1]
    return _Numbers(name, float(edges[0]), float(edges[-1]), cuts)


def _is_empty(column: Column) -> bool:
    """Return True if a column has nothing but missing values, whose type says nothing."""
    return column.missing is not None and bool(column.missing.all())


def _numbers_of(column: Column) -> Floats:
    if column.kind != "number":
        kind = "categories" if column.kind == "category" else "dates or times"
        raise ParameterError(
            f"column {column.name!r} holds {kind} and is in bounds=: expected numbers. "
            + ("Move it to categories=." if column.kind == "category" else "Turn it into a number, such as the year.")
        )
    return column.values.astype(np.float64)
