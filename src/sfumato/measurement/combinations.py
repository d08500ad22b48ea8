# SPDX-License-Identifier: Apache-2.0
"""Count the released combinations of values that are one person's, by comparing a release with its original.

Reads both tables as a stranger would, and shares nothing with the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sfumato.columns import Column
from sfumato.frames import read_table
from sfumato.verification import count_groups

_SIDE = "\x00side"  # no column of a table is called this


class Combinations(NamedTuple):
    """How many combinations of values a release shows, and how many of them exactly one original record has."""

    n_shown: int
    n_of_one_record: int


def count_combinations(
    original: Any, released: Any, columns: Sequence[str], released_columns: Sequence[str] | None = None
) -> Combinations:
    """Count the combinations of quasi-identifier values in a release, and those that one original record has.

    Such a combination is a real person's. Values are compared exactly, missing equals missing, and a number equals no
    text. A column that the release shows as something else, such as ranges, matches no original value.

    Parameters
    ----------
    original, released : any frame or array
        The rows need not correspond.
    columns : sequence of str
        The quasi-identifiers of the original.
    released_columns : sequence of str, optional
        The same columns by their names in the release.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 41, 52], "sex": ["f", "f", "m", None]})
    >>> count_combinations(people, pa.table({"age": [30, 41, 52], "sex": ["f", "m", "m"]}), ["age", "sex"])
    Combinations(n_shown=3, n_of_one_record=1)
    """
    import pyarrow as pa

    before, after = read_table(original), read_table(released)
    shown = list(columns if released_columns is None else released_columns)
    n_shown = len(count_groups(released, shown))
    keys: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for position, (own, other) in enumerate(zip(columns, shown, strict=True)):
        pair = before.column(own, for_counting=True), after.column(other, for_counting=True)
        comparable = _comparable(*pair)
        if comparable is None:
            return Combinations(n_shown, 0)
        for side, parts in zip(keys, comparable, strict=True):
            side.update({f"{position}.{place}": part for place, part in enumerate(parts)})
    names = list(keys[0])
    counted = [pa.table(side).group_by(names, use_threads=False).aggregate([([], "count_all")]) for side in keys]
    marked = [
        table.append_column(_SIDE, pa.array(np.full(table.num_rows, place))) for place, table in enumerate(counted)
    ]
    # A combination that both have stands in two rows; one that the release alone has, in one.
    both = pa.concat_tables(marked).group_by(names, use_threads=False)
    found = both.aggregate([(_SIDE, "count"), ("count_all", "first")])
    in_both = found[f"{_SIDE}_count"].to_numpy() == 2
    n_original = found["count_all_first"].to_numpy()  # rows of the original come first
    return Combinations(n_shown, int((in_both & (n_original == 1)).sum()))


def _comparable(one: Column, other: Column) -> tuple[list[Any], list[Any]] | None:
    """Return two columns as arrays that are equal where the values are; None where they cannot be."""
    import pyarrow as pa

    columns = (one, other)
    empty = [column.missing is not None and bool(column.missing.all()) for column in columns]
    if any(empty):
        is_value = [
            np.zeros(column.n_records, np.bool_) if column.missing is None else column.missing for column in columns
        ]
        return [pa.array(is_value[0])], [pa.array(is_value[1])]
    if one.kind != other.kind:
        return None
    if one.categories is not None and other.categories is not None:
        codes: dict[Any, int] = {}
        listed = []
        for column in columns:
            assert column.categories is not None
            place = np.array([codes.setdefault(v, len(codes)) for v in column.categories.tolist()], np.int64)
            listed.append([pa.array(place[column.values], mask=column.missing)])
        return listed[0], listed[1]
    if all(column.values.dtype.kind in "iu" for column in columns):
        parts = [[pa.array(column.values.astype(np.int64), mask=column.missing)] for column in columns]
        return parts[0], parts[1]
    pairs = [_as_float_and_rest(column) for column in columns]
    return pairs[0], pairs[1]


def _as_float_and_rest(column: Column) -> list[Any]:
    """Return numbers as the nearest float and what it is off by, so that whole numbers stay exact."""
    import pyarrow as pa

    near = column.values.astype(np.float64) + 0.0  # no negative zero
    rest = np.zeros(column.n_records, np.int64)
    if column.values.dtype.kind in "iu":
        inside = np.abs(near) < 2.0**63
        rest[inside] = column.values[inside].astype(np.int64) - near[inside].astype(np.int64)
        rest[~inside] = column.values[~inside].astype(np.int64) - np.iinfo(np.int64).max
    return [pa.array(near, mask=column.missing), pa.array(rest, mask=column.missing)]
