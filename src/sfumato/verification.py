# SPDX-License-Identifier: Apache-2.0
"""Count the groups of a finished table again, with nothing of the engine.

Everything here reads the table that leaves, as a stranger would: its columns through ``frames``, counted by Arrow.
No bins, no trees, no kernels. The anonymizers call it on every release before it is handed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.frames import read_table
from sfumato.frames.assembling import rows_of

_THREADED_FROM = 200_000  # records; below it threads cost more than they bring
_PIECE = 1_000_000  # records; larger tables are read in pieces of this many, of which little has to be held
_COUNTED = "\x00counted"  # no column of a table is called this


def count_groups(
    frame: Any, columns: Sequence[str], *, distinct: NDArray[Any] | None = None, n_threads: int = 1
) -> NDArray[np.int64]:
    """Return the size of every group of records that agree in `columns`; missing equals missing.

    Parameters
    ----------
    frame : any frame or array
    columns : sequence of str
        The quasi-identifiers. Without any, all records form one group.
    distinct : ndarray of int, optional
        Count how many different values of this the group has, instead of its records: persons, one number each.
    n_threads : int
        Threads to read and count with, where there are enough records for it to pay.

    Examples
    --------
    >>> import pyarrow as pa
    >>> count_groups(pa.table({"age": [30, 30, None, None], "sex": ["f", "f", "m", "m"]}), ["age", "sex"]).tolist()
    [2, 2]
    """
    import pyarrow as pa

    n_records = len(frame)
    if distinct is None and n_records > 2 * _PIECE:
        counter = GroupCounter(columns)
        counter.add_all([rows_of(frame, at, at + _PIECE) for at in range(0, n_records, _PIECE)], n_threads=n_threads)
        return counter.sizes()
    counted = keys = _keys(frame, columns, n_threads)
    if distinct is not None:
        counted = counted.append_column(_COUNTED, pa.array(distinct))
        counted = counted.group_by(list(counted.column_names), use_threads=False).aggregate([])
    names = list(keys.column_names)

    def count(part: Any) -> Any:
        return part.group_by(names, use_threads=False).aggregate([([], "count_all")])

    if n_threads > 1 and counted.num_rows >= _THREADED_FROM:
        n_part = -(-counted.num_rows // n_threads)
        with ThreadPoolExecutor(n_threads) as pool:
            parts = pool.map(count, (counted.slice(n_part * i, n_part) for i in range(n_threads)))
        together = pa.concat_tables(parts).group_by(names, use_threads=False).aggregate([("count_all", "sum")])
        sizes: NDArray[np.int64] = together["count_all_sum"].to_numpy()
    else:
        sizes = count(counted)["count_all"].to_numpy()
    return sizes


def _keys(frame: Any, columns: Sequence[str], n_threads: int = 1) -> Any:
    """Return the quasi-identifiers as an Arrow table, whose nulls equal each other when it is grouped."""
    import pyarrow as pa

    table = read_table(frame)

    def read(name: str) -> Any:
        column = table.column(name, for_counting=True, narrow=True)
        return pa.array(_narrow(column.values), mask=column.missing)

    if n_threads > 1 and table.n_records >= _THREADED_FROM:
        with ThreadPoolExecutor(n_threads) as pool:
            arrays = list(pool.map(read, columns))
    else:
        arrays = [read(name) for name in columns]
    keys = {str(position): array for position, array in enumerate(arrays)}
    return pa.table(keys or {"0": pa.nulls(table.n_records)})


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the smallest type that holds them: many keys of many records are held at once."""
    if values.dtype.kind != "i" or not len(values):
        return values
    narrow = np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
    # Signed and unsigned values far apart meet in float64, which takes different large numbers for equal.
    return values.astype(narrow) if narrow.kind in "iu" else values


def count_values(frame: Any, columns: Sequence[str], values: NDArray[np.int64], n_values: int) -> NDArray[np.int64]:
    """Return how often each value occurs in every group of records that agree in `columns`.

    Parameters
    ----------
    frame : any frame or array
    columns : sequence of str
        The quasi-identifiers. Without any, all records form one group.
    values : ndarray of int
        A value from 0 to ``n_values - 1`` per record, such as the code of a diagnosis.
    n_values : int

    Returns
    -------
    counts : ndarray of int64, shape (groups, n_values)

    Examples
    --------
    >>> import pyarrow as pa
    >>> count_values(pa.table({"age": [30, 30, None, None]}), ["age"], np.array([0, 1, 1, 1]), 2).tolist()
    [[1, 1], [0, 2]]
    """
    group = label_groups(frame, columns)
    return _counted(group, values, int(group.max()) + 1, n_values)


def count_values_by_block(
    group: NDArray[np.int64], values: NDArray[np.int64], n_values: int, *, n_cells: int = 1 << 24
) -> Iterator[NDArray[np.int64]]:
    """Yield what `count_values` returns, some groups after the others, so that at most `n_cells` counts are held.

    Parameters
    ----------
    group : ndarray of int64
        The group of every record, as `label_groups` numbers them.
    values : ndarray of int
    n_values : int
    n_cells : int

    Examples
    --------
    >>> [b.tolist() for b in count_values_by_block(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2, n_cells=2)]
    [[[1, 1]], [[0, 2]]]
    """
    n_groups = int(group.max()) + 1
    n_together = max(1, n_cells // n_values)
    if n_groups <= n_together:
        yield _counted(group, values, n_groups, n_values)
        return
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(n_groups + 1))
    for first in range(0, n_groups, n_together):
        stop = min(first + n_together, n_groups)
        rows = order[starts[first] : starts[stop]]
        yield _counted(group[rows] - first, values[rows], stop - first, n_values)


def _counted(group: NDArray[np.int64], values: NDArray[np.int64], n_groups: int, n_values: int) -> NDArray[np.int64]:
    counts = np.bincount(group * n_values + values, minlength=n_groups * n_values)
    return counts.reshape(-1, n_values).astype(np.int64)


def label_groups(frame: Any, columns: Sequence[str]) -> NDArray[np.int64]:
    """Number the groups of records that agree in `columns`, missing equal to missing, and return each record's.

    Examples
    --------
    >>> import pyarrow as pa
    >>> label_groups(pa.table({"age": [30, None, 30, None]}), ["age"]).tolist()
    [0, 1, 0, 1]
    """
    import pyarrow as pa

    keys = _keys(frame, columns)
    rows = pa.array(np.arange(keys.num_rows))
    listed = keys.append_column(_COUNTED, rows).group_by(list(keys.column_names), use_threads=False)
    of_group = listed.aggregate([(_COUNTED, "list")])[f"{_COUNTED}_list"].combine_chunks()
    group = np.empty(keys.num_rows, np.int64)
    group[of_group.flatten().to_numpy()] = np.repeat(np.arange(len(of_group)), of_group.value_lengths().to_numpy())
    return group


def diversity_of(frame: Any, group: str, sensitive: str, *, n_threads: int = 1) -> float:
    """Return the l that every group reaches: its records for each record of its most frequent value, at the least.

    Examples
    --------
    >>> import pyarrow as pa
    >>> diversity_of(pa.table({"group": [7, 7, 7, 9, 9], "illness": ["a", "a", "b", "a", None]}), "group", "illness")
    1.5
    """
    table = read_table(frame)
    groups, values = (_numbered(table.column(name, for_counting=True)) for name in (group, sensitive))
    sizes = np.bincount(groups)
    n_values = int(values.max()) + 1
    # Half the bytes, half the time to sort.
    kind: Any = np.int32 if len(sizes) * n_values < 2**31 else np.int64
    pairs: NDArray[Any] = groups.astype(kind) * kind(n_values) + values.astype(kind)

    def least(first: int, stop: int) -> float:
        """Look at some of the groups."""
        is_whole = stop - first == len(sizes)
        some = np.sort(pairs if is_whole else pairs[(pairs >= first * n_values) & (pairs < stop * n_values)])
        starts = np.flatnonzero(np.concatenate((np.ones(min(1, len(some)), np.bool_), some[1:] != some[:-1])))
        counts = np.diff(np.append(starts, len(some)))
        return float((sizes[some[starts] // n_values] / counts).min(initial=np.inf))

    if n_threads == 1 or len(pairs) < _THREADED_FROM:
        return least(0, len(sizes))
    ends = [len(sizes) * part // n_threads for part in range(n_threads + 1)]
    with ThreadPoolExecutor(n_threads) as pool:
        return min(pool.map(least, ends[:-1], ends[1:]))


def diversity_within(frame: Any, columns: Sequence[str], sensitive: str) -> float:
    """Return the l that records reach which agree in some columns: their number for each of their most frequent value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"bucket": [0, 0, 0, 0], "sex": ["f", "f", "m", "m"], "illness": ["a", "b", "a", "a"]})
    >>> diversity_within(people, ["bucket"], "illness"), diversity_within(people, ["bucket", "sex"], "illness")
    (1.3333333333333333, 1.0)
    """
    table = read_table(frame)
    cells: dict[tuple[int, ...], dict[int, int]] = {}
    keys = [_numbered(table.column(name, for_counting=True)).tolist() for name in columns]
    values = _numbered(table.column(sensitive, for_counting=True)).tolist()
    for *key, value in zip(*keys, values, strict=True):
        counts = cells.setdefault(tuple(key), {})
        counts[value] = counts.get(value, 0) + 1
    return min(sum(counts.values()) / max(counts.values()) for counts in cells.values())


def _numbered(column: Any) -> NDArray[np.int64]:
    """Return a number from 0 for every value of a column, missing one of its own."""
    import pyarrow as pa

    values = column.values
    if column.missing is None and values.dtype.kind == "i" and int(values.max()) - int(values.min()) < 4 * len(values):
        shifted: NDArray[np.int64] = values.astype(np.int64) - int(values.min())
        return shifted
    encoded = pa.array(values, mask=column.missing).dictionary_encode(null_encoding="encode")
    numbers: NDArray[np.int64] = encoded.indices.to_numpy().astype(np.int64)
    return numbers


class GroupCounter:
    """Counts the groups of a table that is read piece by piece, with nothing of the engine.

    Parameters
    ----------
    columns : sequence of str
        The quasi-identifiers.
    n_values : int, optional
        Count how often each of so many values occurs in a group, too.

    Examples
    --------
    >>> import pyarrow as pa
    >>> counter = GroupCounter(["age"])
    >>> for ages in ([30, None], [None, 30, 41]):
    ...     counter.add(pa.table({"age": ages}))
    >>> sorted(counter.sizes().tolist())
    [1, 2, 2]
    """

    def __init__(self, columns: Sequence[str], n_values: int | None = None) -> None:
        self._columns = list(columns)
        self._n_values = n_values
        self._codes: list[dict[Any, int]] = [{} for _ in columns]
        self._counted: Any = None

    def add(self, frame: Any, values: NDArray[Any] | None = None) -> None:
        """Count a piece, with a value from 0 on per record where values are counted."""
        self._take_in(*_count_piece(frame, self._columns, values))

    def add_all(self, frames: Iterable[Any], *, n_threads: int = 1) -> None:
        """Count some pieces, several at a time."""
        with ThreadPoolExecutor(n_threads) as pool:
            for counted in pool.map(lambda frame: _count_piece(frame, self._columns, None), frames):
                self._take_in(*counted)

    def _take_in(self, counted: Any, categories: Sequence[NDArray[np.object_] | None]) -> None:
        """Add what was counted in a piece. It numbers its own categories; here each keeps the number it got first."""
        import pyarrow as pa

        for position, listed in enumerate(categories):
            numbers = counted[str(position)]
            if listed is not None:
                known = self._codes[position]
                place = pa.array([known.setdefault(value, len(known)) for value in listed.tolist()], pa.int64())
                numbers = place.take(numbers)
            elif pa.types.is_integer(numbers.type):
                numbers = numbers.cast(pa.int64())
            counted = counted.set_column(position, str(position), numbers)
        self._counted = counted if self._counted is None else self._added(self._counted, counted)

    @staticmethod
    def _added(one: Any, other: Any) -> Any:
        import pyarrow as pa

        names = [name for name in one.column_names if name != "count_all"]
        both = pa.concat_tables([one, other], promote_options="permissive")
        added = both.group_by(names, use_threads=False).aggregate([("count_all", "sum")])
        return added.rename_columns([*names, "count_all"])

    def sizes(self) -> NDArray[np.int64]:
        """Return the size of every group."""
        sizes = np.bincount(self._group(), weights=self._counted["count_all"].to_numpy())
        return np.asarray(np.rint(sizes), np.int64)

    def n_distinct(self) -> NDArray[np.int64]:
        """Return how many different values every group has."""
        return np.asarray(np.bincount(self._group()), np.int64)

    def counts(self) -> NDArray[np.int64]:
        """Return how often each value occurs in every group, shape (groups, values); one value where none was given."""
        if self._n_values is None:
            return self.sizes()[:, None]
        group = self._group()
        out = np.zeros((int(group.max()) + 1, self._n_values), np.int64)
        out[group, self._counted[_COUNTED].to_numpy()] = self._counted["count_all"].to_numpy()
        return out

    def _group(self) -> NDArray[np.int64]:
        """Return the group of every row that was counted: a group, or a group and a value."""
        if self._n_values is None:
            return np.arange(self._counted.num_rows)
        keys = self._counted.drop_columns([_COUNTED, "count_all"])
        return label_groups(keys, keys.column_names)


def _count_piece(
    frame: Any, columns: Sequence[str], values: NDArray[Any] | None
) -> tuple[Any, list[NDArray[np.object_] | None]]:
    """Count the groups of a piece; return them with what the numbers in each column stand for."""
    import pyarrow as pa

    table = read_table(frame)
    keys: dict[str, Any] = {}
    categories = []
    for position, name in enumerate(columns):
        column = table.column(name, for_counting=True, narrow=True)
        keys[str(position)] = pa.array(_narrow(column.values), mask=column.missing)
        categories.append(column.categories)
    counted = pa.table(keys or {"0": pa.nulls(table.n_records)})
    if values is not None:
        counted = counted.append_column(_COUNTED, pa.array(np.asarray(values, np.int64)))
    return counted.group_by(counted.column_names, use_threads=False).aggregate([([], "count_all")]), categories
