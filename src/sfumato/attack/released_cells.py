# SPDX-License-Identifier: Apache-2.0
"""Read a release beside its original: the values that each released cell may stand for, and distances to it.

What a label means is taken from the values it replaced, so no way of writing ranges and sets has to be known. Called
by the attacks on released tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import Names as Names
from sfumato.columns import Column, join_columns
from sfumato.errors import InputError
from sfumato.frames import Table, read_table
from sfumato.grouping import merge_rows
from sfumato.labels import ANY_VALUE, RARE, with_missing
from sfumato.loss.extents import ANYTHING, names_of, range_of, reader_of, stands_for_missing, values_in
from sfumato.loss.released_groups import code_values, columns_of

_COMPARED_AT_ONCE = 1 << 23  # pairs of people and released records


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """One column before and after, as codes.

    Attributes
    ----------
    name : str
    codes, other_codes : ndarray of int64
        Original value of every person in the release, and of every other person.
    shown : ndarray of int64
        Code of the released cell of every person.
    cells : Ranges, Sets or Exact
        What the released cells may stand for.
    has_others : bool
        Whether the other people have this column.
    is_stated : bool
        Whether the cells say by themselves what they stand for; if not, that was taken from the values they replaced.
    """

    name: str
    codes: NDArray[np.int64]
    other_codes: NDArray[np.int64]
    shown: NDArray[np.int64]
    cells: Ranges | Sets | Exact
    has_others: bool = True
    is_stated: bool = False

    @cached_property
    def n_shown(self) -> int:
        """One more than the highest code of a released cell."""
        return int(self.shown.max()) + 1

    @cached_property
    def different(self) -> NDArray[np.int64]:
        """The codes of released cells that occur."""
        return np.unique(self.shown)

    @cached_property
    def n_values(self) -> int:
        """Number of different original values."""
        of_cells = self.shown.max() if isinstance(self.cells, Exact) else 0
        return int(max(self.codes.max(), self.other_codes.max(initial=0), of_cells)) + 1

    def distances(self, shown: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how far values are from released cells; each different pair is computed once."""
        cells, cell = np.unique(shown, return_inverse=True)
        values, value = np.unique(codes, return_inverse=True)
        return np.asarray(self.cells.distances(cells, values)[cell][:, value])

    def fit(self, shown: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True where a value may be behind a released cell; each different cell is compared once."""
        cells, cell = np.unique(shown, return_inverse=True)
        return np.asarray(self.cells.fit(cells, codes)[cell])

    @cached_property
    def likeliest(self) -> NDArray[np.int64]:
        """The original value most frequent behind each released cell, the lowest on ties."""
        if isinstance(self.cells, Exact):
            return np.arange(self.n_values)
        pairs, counts = np.unique(self.shown * self.n_values + self.codes, return_counts=True)
        order = np.lexsort((pairs, -counts, pairs // self.n_values))
        _, first = np.unique(pairs[order] // self.n_values, return_index=True)
        return np.asarray(pairs[order][first] % self.n_values)


@dataclass(frozen=True, eq=False)
class Ranges:
    """Released numbers and moments: from low to high, which are equal where a single value was released.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n_shown,)
    or_missing : ndarray of bool, shape (n_shown,)
        Whether a missing value was released like this.
    values : ndarray of float64, shape (n_values,)
        What the codes stand for; NaN for missing.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    or_missing: NDArray[np.bool_]
    values: NDArray[np.float64]

    def fit(self, shown: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True where a value may be behind a released cell; shape (shown, codes)."""
        values = self.values[codes]
        is_inside = (self.low[shown, None] <= values) & (values <= self.high[shown, None])
        is_inside[:, np.isnan(values)] = self.or_missing[shown, None]
        return np.asarray(is_inside)

    def distances(self, shown: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how far values are from released cells, as a share of the column's range; shape (shown, codes)."""
        values = self.values[codes]
        known = self.values[~np.isnan(self.values)]
        span = float(known.max() - known.min()) if len(known) else 0.0
        gap = np.maximum(self.low[shown, None] - values, values - self.high[shown, None]) / (span or 1.0)
        gap = np.clip(gap, 0.0, 1.0)
        return np.where(np.isnan(values), np.where(self.or_missing[shown], 0.0, 1.0)[:, None], gap).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Sets:
    """Released categories: which of them each cell may stand for, missing included.

    Attributes
    ----------
    fits : ndarray of bool, shape (n_shown, n_values)
    """

    fits: NDArray[np.bool_]

    def fit(self, shown: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True where a category may be behind a released cell; shape (shown, codes)."""
        return np.asarray(self.fits[np.ix_(shown, codes)])

    def distances(self, shown: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return 0 where a category may be behind a released cell, else 1; shape (shown, codes)."""
        return (~self.fit(shown, codes)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Exact:
    """Cells that were released unchanged: they have the codes of the original values."""

    def fit(self, shown: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True where a value equals a released cell; shape (shown, codes)."""
        return np.asarray(shown[:, None] == codes)

    def distances(self, shown: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return 0 where a value equals a released cell, else 1; shape (shown, codes)."""
        return (~self.fit(shown, codes)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """A release beside its original."""

    columns: tuple[ReleasedColumn, ...]
    before: Table

    @property
    def n_people(self) -> int:
        """People in the release."""
        return len(self.columns[0].codes)

    @property
    def n_others(self) -> int:
        """People who are not."""
        return len(self.columns[0].other_codes)

    def shown(self, columns: Sequence[ReleasedColumn]) -> NDArray[np.int64]:
        """Return the different released records in some columns, one code per column."""
        codes = np.stack([column.shown for column in columns], axis=1)
        first, _ = merge_rows(list(codes.T), [column.n_shown for column in columns], len(codes))
        return np.asarray(codes[first])

    def named(self, names: Names, parameter: str) -> list[ReleasedColumn]:
        """Return some columns by name or position."""
        found = {column.name: column for column in self.columns}
        return [found[name] for name in self.before.resolve(names, parameter)]

    def people(self, columns: Sequence[ReleasedColumn]) -> NDArray[np.int64]:
        """Return the original values of the people in the release, one row each."""
        return np.stack([column.codes for column in columns], axis=1)

    def others(self, columns: Sequence[ReleasedColumn]) -> NDArray[np.int64]:
        """Return the values of the other people, one row each."""
        return np.stack([column.other_codes for column in columns], axis=1)


def distances_by_block(
    columns: Sequence[ReleasedColumn], candidates: NDArray[np.int64], people: NDArray[np.int64]
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield some people at a time and how far each of them is from every released record, over all columns.

    Parameters
    ----------
    columns : sequence of ReleasedColumn
    candidates : ndarray of int64, shape (n_candidates, n_columns)
        Codes of released cells.
    people : ndarray of int64, shape (n_people, n_columns)
        Codes of original values.
    """
    step = max(1, _COMPARED_AT_ONCE // len(candidates))
    for start in range(0, len(people), step):
        part = people[start : start + step]
        total = np.zeros((len(part), len(candidates)), np.float32)
        for position, column in enumerate(columns):
            total += column.distances(candidates[:, position], part[:, position]).T
        yield slice(start, start + step), total


def read_release(
    original: Any,
    released: Any,
    quasi_identifiers: Names | None,
    control: Any,
    *,
    unchanged: Names = (),
    is_aligned: bool = True,
    as_stated: bool = False,
) -> ReleasedTable:
    """Read the original and the released table, and other people.

    Parameters
    ----------
    original, released : frame or array
    quasi_identifiers : list of str or int, optional
        Columns to read; None: all that were released.
    control : frame or array, optional
        Other people; they may lack columns that are `unchanged`.
    unchanged : list of str or int
        Further columns, which were released unchanged.
    is_aligned : bool
        Whether both tables have the same people row by row. If not, labels must say by themselves what they stand for.
    as_stated : bool
        Whether cells stand for what they say, as for an attacker who sees nothing but the release. Where a label says
        neither a range nor a set, it stands for the values that it replaced, provided that the rows are aligned.
    """
    before, after = read_table(original), read_table(released)
    if is_aligned and before.n_records != after.n_records:
        raise InputError(
            f"the original has {before.n_records} records and the release {after.n_records}: expected the same "
            "people in the same order. Remove suppressed records from the original."
        )
    others = None if control is None else read_table(control)
    names = released_names(before, after, quasi_identifiers)
    exact = before.resolve(unchanged, "unchanged")
    columns = [_read_column(name, before, after, others, is_aligned, as_stated) for name in names]
    columns += [_read_unchanged(name, before, after, others) for name in exact]
    return ReleasedTable(tuple(columns), before)


def released_names(before: Table, after: Table, given: Names | None) -> tuple[str, ...]:
    """Return the names of the given columns of the original; None: of all that were released."""
    if given is not None:
        return before.resolve(given)
    names = tuple(name for name in before.names if name in after.names or f"{name}_low" in after.names)
    if not names:
        raise InputError(
            "the two tables have no column in common: expected the columns of the original in the release."
        )
    return names


def _read_unchanged(name: str, before: Table, after: Table, others: Table | None) -> ReleasedColumn:
    """Read a column that was released unchanged: original values and released cells share their codes."""
    has_others = others is not None and name in others.names
    parts = [table.column(name, for_counting=True) for table in (before, after)]
    if others is not None and has_others:
        parts.append(others.column(name, for_counting=True))
    codes = code_values(join_columns(parts))
    n, m = before.n_records, before.n_records + after.n_records
    return ReleasedColumn(name, codes[:n], codes[m:], codes[n:m], Exact(), has_others)


def _read_column(
    name: str, before: Table, after: Table, others: Table | None, is_aligned: bool, as_stated: bool
) -> ReleasedColumn:
    own = before.column(name)
    joined = own if others is None else join_columns([own, others.column(name)])
    codes = code_values(joined)
    released = [after.column(part) for part in columns_of(after, name)]
    parts = [code_values(part) for part in released]
    first, shown = merge_rows(parts, [int(part.max()) + 1 for part in parts], after.n_records)
    cells: Ranges | Sets | None = None
    if as_stated or not is_aligned:
        try:
            cells = read_cells_alone(joined, codes, released, first)
        except InputError:
            if not is_aligned:
                raise
    is_stated = cells is not None
    if cells is None:
        read = _read_sets if own.kind == "category" else _read_ranges
        cells = read(joined, codes, released, first, shown)
    return ReleasedColumn(name, codes[: own.n_records], codes[own.n_records :], shown, cells, is_stated=is_stated)


def _read_ranges(
    joined: Column,
    codes: NDArray[np.int64],
    released: Sequence[Column],
    first: NDArray[np.int64],
    shown: NDArray[np.int64],
) -> Ranges:
    """Return the range of every released cell: the one it says, or else that of the values it replaced."""
    is_missing = _is_missing(joined)
    values = np.full(int(codes.max()) + 1, np.nan)
    values[codes[~is_missing]] = joined.values[~is_missing]
    replaced = values[codes[: len(shown)]]
    known = ~np.isnan(replaced)
    low, high = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(low, shown[known], replaced[known])
    np.maximum.at(high, shown[known], replaced[known])
    if all(part.kind == joined.kind for part in released):  # bounds, or one value
        says = ~np.logical_or.reduce([_is_missing(part)[first] for part in released])
        low = np.where(says, released[0].values[first], low)
        high = np.where(says, released[-1].values[first], high)
    or_missing = np.bincount(shown[~known], minlength=len(first)) > 0
    return Ranges(low, high, or_missing, values)


def _read_sets(
    joined: Column,
    codes: NDArray[np.int64],
    released: Sequence[Column],
    first: NDArray[np.int64],
    shown: NDArray[np.int64],
) -> Sets:
    """Return the set of every released cell.

    If all released values are categories of the original, they are representatives, and the values they stand for are
    unknown; otherwise a label stands for the categories it replaced.
    """
    fits = np.zeros((len(first), int(codes.max()) + 1), bool)
    fits[shown, codes[: len(shown)]] = True
    present = ~_is_missing(joined)
    assert joined.categories is not None
    names = joined.categories[joined.values[present]].tolist()
    code_of = dict(zip(names, codes[present].tolist(), strict=True))
    if len(released) > 1 or released[0].categories is None or not set(released[0].categories) <= set(code_of):
        return Sets(fits)
    is_blank = _is_missing(released[0])[first]
    for place in np.flatnonzero(~is_blank).tolist():
        fits[place] = False
        fits[place, code_of[released[0].categories[released[0].values[first[place]]]]] = True
    return Sets(fits)


# -- without the rows of the original ----------------------------------------------------------------------------


def read_cells_alone(
    joined: Column, codes: NDArray[np.int64], released: Sequence[Column], first: NDArray[np.int64]
) -> Ranges | Sets:
    """Return what released cells say by themselves, where it is not known whose values they replaced.

    Raises
    ------
    InputError
        If a label says neither a range nor a set of the original values.
    """
    is_missing, n_codes = _is_missing(joined), int(codes.max()) + 1
    is_blank = np.logical_or.reduce([_is_missing(part)[first] for part in released])
    if joined.kind == "category":
        return _sets_alone(joined, codes[~is_missing], n_codes, released, first, is_blank)
    values = np.full(n_codes, np.nan)
    values[codes[~is_missing]] = joined.values[~is_missing]
    if all(part.kind == joined.kind for part in released):  # bounds, or one value
        low, high = (released[place].values[first].astype(float) for place in (0, -1))
        or_missing = is_blank | (len(released) > 1)  # bounds do not say whether somebody's value is missing
    else:
        labels, place = names_of(released[0]), released[0].values[first]
        said = [range_of(label, reader_of(joined)) for label in labels]
        if unread := sum(part is None and label != ANYTHING for part, label in zip(said, labels, strict=True)):
            raise _unreadable(joined.name, unread)
        ends = [(-np.inf, np.inf, True) if part is None else part for part in said] or [(np.inf, -np.inf, True)]
        low, high = (np.array([part[end] for part in ends], float)[place] for end in (0, 1))
        or_missing = np.array([part[2] for part in ends])[place] | is_blank
    return Ranges(np.where(is_blank, np.inf, low), np.where(is_blank, -np.inf, high), or_missing, values)


def _sets_alone(
    joined: Column,
    present_codes: NDArray[np.int64],
    n_codes: int,
    released: Sequence[Column],
    first: NDArray[np.int64],
    is_blank: NDArray[np.bool_],
) -> Sets:
    assert joined.categories is not None
    present = joined.values[~_is_missing(joined)]
    code_of = dict(zip(np.array(names_of(joined), object)[present].tolist(), present_codes.tolist(), strict=True))
    fits = np.zeros((len(first), n_codes), bool)
    has_missing = bool(_is_missing(joined).any())
    if has_missing:
        fits[:, -1] = is_blank | (len(released) > 1)  # bounds do not say whether somebody's value is missing
    says = np.flatnonzero(~is_blank)
    if not len(says):
        return Sets(fits)
    if released[0].categories is None:
        raise _unreadable(joined.name, 1)
    names = [names_of(part) for part in released]
    shown = [part.values[first[says]].tolist() for part in released]
    if len(released) > 1:
        place_of = _places(joined, code_of)
        ends = zip(*shown, strict=True)
        values = [_between(names[0][low], names[1][high], place_of, code_of) for low, high in ends]
    else:
        listed = _listed(names[0], code_of)
        values = [listed[code] for code in shown[0]]
    if None in values:
        raise _unreadable(joined.name, values.count(None))
    for cell, codes, label in zip(says.tolist(), values, shown[0], strict=True):
        fits[cell, codes] = True
        fits[cell, -1] |= has_missing and stands_for_missing(names[0][label])
    return Sets(fits)


def _listed(labels: Sequence[str], code_of: Mapping[str, int]) -> list[list[int] | None]:
    """Return the values that each label lists, None if it lists others; "other" stands for all that no label names."""
    read = [_named_in(label, code_of) for label in labels]
    is_any = [label.removesuffix(with_missing("")) in (ANYTHING, ANY_VALUE) for label in labels]
    named = (values or () for (values, _), says_any in zip(read, is_any, strict=True) if not says_any)
    unnamed = sorted(set(code_of.values()).difference(*named))
    return [[*values, *unnamed] if rest and values is not None else values for values, rest in read]


def _named_in(label: str, code_of: Mapping[str, int]) -> tuple[list[int] | None, bool]:
    """Return the values that a label names, None if it names none, and whether it also stands for unnamed ones."""
    values = values_in(label, code_of)
    text, last = label.removesuffix(with_missing("")), f", {RARE}}}"
    if values is not None:
        return values, False
    if text == RARE:
        return [], True
    return (values_in(text.removesuffix(last) + "}", code_of), True) if text.endswith(last) else (None, False)


def _between(low: str, high: str, place_of: Mapping[str, int], code_of: Mapping[str, int]) -> list[int] | None:
    """Return the categories from one to another in their order; None if an end is not a category."""
    if low not in place_of or high not in place_of:
        return None
    return [code_of[name] for name, place in place_of.items() if place_of[low] <= place <= place_of[high]]


def _places(column: Column, code_of: Mapping[str, int]) -> dict[str, int]:
    """Return the place of every category that occurs, in the declared order or else the sorted one."""
    names = names_of(column)
    places = range(len(names)) if column.places is None else column.places.tolist()
    return {name: place for name, place in zip(names, places, strict=True) if name in code_of}


def _unreadable(name: str, n_labels: int) -> InputError:
    return InputError(
        f"column {name!r} has {n_labels} labels that say neither a range nor a set of values: expected such "
        "labels where the rows are not in the original's order. Pass the release in that order, or leave it out."
    )


def _is_missing(column: Column) -> NDArray[np.bool_]:
    return np.zeros(column.n_records, bool) if column.missing is None else column.missing
