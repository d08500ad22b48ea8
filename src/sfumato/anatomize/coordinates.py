# SPDX-License-Identifier: Apache-2.0
"""Columns as coordinates: the paper's coding of attributes, or one coordinate per category.

Pruning measures norms in these coordinates and the classifiers are trained in them. A coding is learned on the
joined anatomized table, where a record counts as often as its group has candidates, and applied to any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.anatomize.kernels import add_looked_up, add_squares
from sfumato.columns import MICROSECONDS_PER_DAY, Column
from sfumato.errors import InputError, ParameterError, named
from sfumato.threads import for_stretches, run_side_by_side

CodingName = Literal["paper", "one-hot"]
CODINGS = ("paper", "one-hot")
_MISSING = object()  # the category of a missing value


@dataclass(frozen=True, eq=False)
class NumberCoding:
    """A number or a moment (in days): the mean is taken off, and one-hot coding divides by the deviation."""

    name: str
    mean: float
    scale: float

    n_coordinates = 1

    def coordinates(self, column: Column) -> NDArray[np.float64]:
        """Return one coordinate per record; a missing value is at the mean."""
        self._check_kind(column)
        values = (as_numbers(column) - self.mean) / self.scale
        if column.missing is not None:
            values[column.missing] = 0.0
        return values[:, None]

    def add_norms(self, total: NDArray[np.float64], column: Column, some: slice) -> None:
        """Add the squared coordinate of some records."""
        self._check_kind(column)
        unit = float(MICROSECONDS_PER_DAY if column.kind == "moment" else 1)
        add_squares(total, column.values[some], missing_of(column, some), unit, self.mean, self.scale)

    def _check_kind(self, column: Column) -> None:
        if column.kind == "category" and column.categories is not None and len(column.categories):
            raise InputError(
                f"column {self.name!r} holds categories and held numbers in training: expected the same kind. Convert "
                "the column."
            )


@dataclass(frozen=True, eq=False)
class CategoryCoding:
    """Categories: a row of coordinates for each that was there in training, and one for all others."""

    name: str
    place: dict[Any, int]
    rows: NDArray[np.float64]  # the last one is for categories that training did not have

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates of a category."""
        return int(self.rows.shape[1])

    def coordinates(self, column: Column) -> NDArray[np.float64]:
        """Return the coordinates per record."""
        rows = self.rows[self._places(column)]
        found: NDArray[np.float64] = rows[column.values]
        if column.missing is not None:
            found[column.missing] = rows[-1]
        return found

    def add_norms(self, total: NDArray[np.float64], column: Column, some: slice) -> None:
        """Add the sum of squared coordinates of some records."""
        squares = (self.rows**2).sum(axis=1)[self._places(column)]
        add_looked_up(total, column.values[some], missing_of(column, some), squares)

    def _places(self, column: Column) -> list[int]:
        """Return the row of coordinates of each of the column's categories, and of a missing value."""
        unknown = len(self.rows) - 1
        return [self.place.get(value, unknown) for value in (*categories_of(column), _MISSING)]


@dataclass(frozen=True, eq=False)
class Coding:
    """The codings of several columns, in their order."""

    parts: tuple[NumberCoding | CategoryCoding, ...]

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates of a record."""
        return sum(part.n_coordinates for part in self.parts)

    def coordinates(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return the records as a matrix, shape (records, coordinates)."""
        return np.hstack([part.coordinates(column) for part, column in zip(self.parts, columns, strict=True)])

    def norms(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return the squared norm of every record, without the matrix."""
        total = np.zeros(columns[0].n_records)

        def add(some: slice) -> None:
            for part, column in zip(self.parts, columns, strict=True):
                part.add_norms(total[some], column, some)

        for_stretches(add, len(total))
        return total


def learn_coding(columns: Sequence[Column], coding: CodingName, weight: NDArray[Any] | None = None) -> Coding:
    """Learn where the columns have their middle.

    Parameters
    ----------
    columns : sequence of Column
    coding : {"paper", "one-hot"}
        Paper (appendix B): numbers and ordered categories (1, 2, ...) less their mean, for ordered categories the
        mode; other categories 0 for the mode and 1 for all the rest. One-hot: numbers less their mean, divided by
        their standard deviation; categories a coordinate each.
    weight : ndarray, optional
        How often a record counts.
    """
    if coding not in CODINGS:
        raise ParameterError(f"{named('coding', coding)}: expected 'paper' or 'one-hot'.")
    tasks: list[Callable[[], NumberCoding | CategoryCoding]] = [
        partial(_learn_categories if column.kind == "category" else _learn_number, column, coding, weight)
        for column in columns
    ]
    return Coding(tuple(run_side_by_side(tasks, columns[0].n_records if columns else 0)))


def _learn_number(column: Column, coding: CodingName, weight: NDArray[Any] | None) -> NumberCoding:
    values = as_numbers(column)
    if column.missing is not None:
        values = values[~column.missing]
        weight = None if weight is None else weight[~column.missing]
    if not len(values):
        return NumberCoding(column.name, 0.0, 1.0)
    mean = float(np.average(values, weights=weight))
    if coding == "paper":
        return NumberCoding(column.name, mean, 1.0)
    deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
    return NumberCoding(column.name, mean, deviation if deviation > 0 else 1.0)


def _learn_categories(column: Column, coding: CodingName, weight: NDArray[Any] | None) -> CategoryCoding:
    values = categories_of(column)
    codes = column.values
    if column.missing is not None:
        codes = np.where(column.missing, len(values), codes)
        values = [*values, _MISSING]
    counts = np.bincount(codes, weights=weight, minlength=len(values))
    present = np.flatnonzero(counts > 0)
    mode = int(np.argmax(counts))
    if coding == "one-hot":
        rows = np.vstack([np.eye(len(present)), np.zeros(len(present))])
    elif column.places is not None:
        order = np.append(column.places, len(column.places))  # missing behind all others
        ranks = np.empty(len(order))
        ranks[np.argsort(order, kind="stable")] = np.arange(1, len(order) + 1)
        rows = np.append(ranks[present] - ranks[mode], 0.0)[:, None]
    else:
        rows = np.append((present != mode).astype(np.float64), 1.0)[:, None]
    return CategoryCoding(column.name, {values[code]: row for row, code in enumerate(present)}, rows)


def categories_of(column: Column) -> list[Any]:
    """Return what the values of a column stand for; a column that held categories in training may hold numbers now."""
    if column.categories is None:
        raise InputError(
            f"column {column.name!r} holds numbers and held categories in training: expected the same kind. Convert "
            "the column."
        )
    listed: list[Any] = column.categories.tolist()
    return listed


def missing_of(column: Column, some: slice) -> NDArray[np.bool_]:
    """Return which of some records have no value; None if all have one."""
    return np.empty(0, np.bool_) if column.missing is None else column.missing[some]


def as_numbers(column: Column) -> NDArray[np.float64]:
    """Return the values of a column of numbers, or of moments in days."""
    values: NDArray[np.float64] = column.values.astype(np.float64)
    return values / MICROSECONDS_PER_DAY if column.kind == "moment" else values
