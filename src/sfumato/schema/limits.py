# SPDX-License-Identifier: Apache-2.0
"""Limits on the finest detail of a column to release; :func:`coarsen` applies them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.columns import MICROSECONDS_PER_DAY, Column
from sfumato.errors import ParameterError, named

Limit = int | float | datetime.timedelta

#: Widths beyond this would leave 64 bits when multiplied.
_LARGEST_LIMIT = 1e300
_WIDEST = 2**62


def coarsen(column: Column, limit: Limit) -> Column:
    """Remove the detail of a column below a limit.

    Parameters
    ----------
    column : Column
        The column; it stays as it is.
    limit : int, float or timedelta
        For numbers the width of an interval, for moments its length in days (or as a timedelta); each value becomes
        the middle of the interval it falls in, intervals being counted from 0 and from 1970-01-01 UTC. For text the
        number of characters to release; ``*`` follows text that is cut.

    Returns
    -------
    Column
        A new column of the same kind. The categories of text are new too: write it with
        ``GroupedValues(..., categories=column.categories, replaces_categories=True)``.

    Raises
    ------
    ParameterError
        When the limit is not positive, or cannot apply to the column.

    Notes
    -----
    Cut text is always one character longer than the limit and text left alone never is, so two values that differ
    within the limit, or in whether anything was cut, stay different and no others do. What still shows: a text not
    longer than the limit leaves in full, and that it was so short shows too.

    Integers need a whole width; their middle is rounded down, so integers stay integers. Because the middle of the
    first or last interval may lie outside the data, narrow integer types may come back wider.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.frames import read_table
    >>> table = read_table(pa.table({"age": [31, 34, 37], "zip": ["10115", "10117", "99"]}))
    >>> coarsen(table.column("age"), 5).values.tolist()
    [32, 32, 37]
    >>> coarsen(table.column("zip"), 3).categories.tolist()
    ['101*', '99']
    """
    width = checked_limit(column, limit)
    if column.kind == "category":
        return _cut_text(column, int(width))
    values: npt.NDArray[Any]
    if column.values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            values = (np.floor(column.values / width) + 0.5) * width
        if not np.isfinite(values).all():
            raise ParameterError(
                f"{named('limits')} has the width {limit!r} for the column {column.name!r}: expected one that fits the "
                "size of its numbers. Take another width."
            )
    else:
        whole = np.int64(width)
        values = column.values // whole * whole + whole // 2
    if column.missing is not None:
        values[column.missing] = 0
    return Column(column.name, column.kind, values, column.missing, None, column.moment, column.is_zoned)


def _cut_text(column: Column, n_characters: int) -> Column:
    assert column.categories is not None
    cut = [text if len(text) <= n_characters else text[:n_characters] + "*" for text in column.categories]
    distinct = sorted(set(cut))
    place = {text: position for position, text in enumerate(distinct)}
    translate = np.array([place[text] for text in cut], dtype=np.int32)
    categories: npt.NDArray[np.object_] = np.empty(len(distinct), dtype=object)
    categories[:] = distinct
    values = translate[column.values] if len(cut) else column.values.copy()
    if column.missing is not None:
        values[column.missing] = 0
    return Column(column.name, "category", values, column.missing, categories)


def checked_limit(column: Column, limit: Limit) -> float | int:
    """Return the limit in the unit of the column's values, or the number of characters."""
    given = f"{named('limits')} has {limit!r} for the column {column.name!r}"
    if isinstance(limit, datetime.timedelta):
        if column.kind != "moment":
            raise ParameterError(
                f"{given}, which is a {column.kind}: expected a timedelta for dates and times only. Give a number."
            )
        limit = limit / datetime.timedelta(days=1)
    if isinstance(limit, bool | np.bool_) or not isinstance(limit, int | float | np.integer | np.floating):
        raise ParameterError(
            f"{given}: expected a positive number. Give a width, a number of characters, or a number of days."
        )
    if not (0 < limit <= _LARGEST_LIMIT):  # neither NaN nor infinite, nor more than a float holds
        raise ParameterError(
            f"{given}: expected a positive number. Give a larger limit, or leave the column out of {named('limits')}."
        )
    if column.kind == "category":
        if not column.is_text:
            raise ParameterError(
                f"{given}, whose categories are not text: expected text, numbers or dates. Leave the column out of "
                f"{named('limits')}, or out of {named('categorical_features')}."
            )
        if limit != int(limit):
            raise ParameterError(f"{given}, which is text: expected a whole number of characters. Round the limit.")
        return int(limit)
    if column.kind == "number" and not column.is_integer:
        return float(limit)
    if column.kind == "number" and limit != int(limit):
        raise ParameterError(
            f"{given}, which holds integers: expected a whole width. Round the limit, or convert the column to float."
        )
    width = int(limit) if column.kind == "number" else round(float(limit) * MICROSECONDS_PER_DAY)
    if not 1 <= width < _WIDEST:
        raise ParameterError(
            f"{given}: expected a width that fits 64 bits and is not below one unit. Take another width."
        )
    return width
