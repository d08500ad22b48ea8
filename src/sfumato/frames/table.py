# SPDX-License-Identifier: Apache-2.0
"""A frame or array as a table of named columns, and which library it came from."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.arguments import as_table_like
from sfumato.columns import Column, GroupedLabels, GroupedValues, Kind
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames.arrow_tables import ArrowBackend
from sfumato.frames.contract import Backend, Entry
from sfumato.frames.numpy_arrays import NumpyBackend
from sfumato.frames.pandas_frames import PandasBackend
from sfumato.frames.parquet_columns import ParquetColumns
from sfumato.frames.polars_frames import PolarsBackend

Replacement = GroupedValues | GroupedLabels
_THREADED_FROM = 200_000  # records; below it threads cost more than they bring

#: How many records are enough to tell the kind of a column, unless all of them are missing.
_HEAD = 1024


def read_table(frame: Any, *, categorical: Collection[str | int] = ()) -> Table:
    """Look at a frame or array without converting anything yet.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array-like of shape (n_records, n_columns)
        The table. It is never modified.
    categorical : collection of str or int, default=()
        Names or positions of columns of numbers that are codes, to be read as categories.

    Returns
    -------
    Table
        The table, ready to hand out columns.

    Raises
    ------
    InputError
        When the input is not a table with at least one record and one column and distinct column names.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from sfumato.frames import GroupedValues, read_table
    >>> table = read_table(pa.table({"city": ["Rome", "Bari", "Rome"], "age": [30, 40, None]}))
    >>> table.column("city").categories.tolist(), table.column("city").values.tolist()
    (['Bari', 'Rome'], [1, 0, 1])
    >>> oldest = GroupedValues(np.array([40]), None, group=np.array([0, 0, 0]))
    >>> table.replaced({"age": oldest}).to_pydict()
    {'city': ['Rome', 'Bari', 'Rome'], 'age': [40, 40, 40]}
    """
    return Table(_backend_of(frame), categorical=categorical)


class Table:
    """A frame or array, seen as named columns; made by :func:`read_table`.

    Attributes
    ----------
    names : tuple of str
        The names of the columns; ``"x0"``, ``"x1"``, ... for arrays.
    n_records : int
        How many records there are.
    has_named_columns : bool
        False for arrays, and for frames whose columns are labelled by something else than text.
    library : {"pandas", "polars", "pyarrow", "numpy"}
        Where the frame comes from.
    """

    def __init__(self, backend: Backend, *, categorical: Collection[str | int] = ()) -> None:
        """Check the names and the size; use :func:`read_table` instead."""
        self._backend = backend
        self._labels = backend.labels()
        self.library = backend.library
        self.names = _checked_names(self._labels, library=self.library)
        self.has_named_columns = self.library != "numpy" and all(isinstance(label, str) for label in self._labels)
        self.n_records = backend.n_records()
        if not self.names:
            raise InputError(
                f"the table has 0 feature(s) (shape=({self.n_records}, 0)) while a minimum of 1 is required. Hand in "
                "a table with columns."
            )
        if self.n_records == 0:
            raise InputError(
                f"the table has 0 sample(s) (shape=(0, {len(self.names)})) while a minimum of 1 is required. Hand in "
                "a table with records."
            )
        self._position = {name: position for position, name in enumerate(self.names)}
        self._categorical = frozenset(self.resolve(tuple(categorical), "categorical_features"))
        # What replaced() must know again of a column read earlier; small, so that no column is held twice.
        self._read: dict[str, tuple[Kind, npt.NDArray[np.object_] | None]] = {}
        self._heads: dict[tuple[str, bool], Column] = {}  # asked for again and again

    @property
    def categorical(self) -> tuple[str, ...]:
        """The columns of numbers that are read as categories, in the order of the table."""
        return tuple(name for name in self.names if name in self._categorical)

    def with_categorical(self, categorical: Iterable[str | int]) -> Table:
        """Return the same table with other columns read as categories."""
        given = tuple(categorical)
        if frozenset(self.resolve(given, "categorical_features")) == self._categorical:
            return self
        return Table(self._backend, categorical=given)

    def column(self, name: str, *, for_counting: bool = False, narrow: bool = False) -> Column:
        """Convert one column to plain arrays; the table keeps only its categories.

        With ``for_counting``, where it matters only which values are equal, values with too many digits for a number
        or a moment are read in another way and not refused; such a column cannot be written back. With ``narrow``,
        for callers that copy the values and do not calculate with them, those of a category come in few bits.
        """
        column = self._converted(name, None, for_counting)
        if not for_counting:
            self._read[name] = (column.kind, column.categories)
        return column if narrow else _wide(column)

    def head(self, name: str, *, for_counting: bool = False) -> Column:
        """Convert the first records of a column: enough to know its kind.

        Goes on to the whole column where the first records are all missing.
        """
        if (name, for_counting) not in self._heads:
            self._heads[name, for_counting] = _wide(self._converted(name, _HEAD, for_counting))
        head = self._heads[name, for_counting]
        is_unknown = head.missing is not None and bool(head.missing.all())
        return self.column(name, for_counting=for_counting) if is_unknown and self.n_records > _HEAD else head

    def _converted(self, name: str, head: int | None, for_counting: bool) -> Column:
        as_category = name in self._categorical
        position = self.position_of(name)
        return self._backend.read(position, name, as_category=as_category, for_counting=for_counting, head=head)

    def kind(self, name: str) -> Kind:
        """Return the kind of a column."""
        return self._read[name][0] if name in self._read else self.head(name, for_counting=True).kind

    def position_of(self, name: str) -> int:
        """Return the position of a column, counted from 0."""
        return self._position[self.resolve([name], "columns")[0]]

    def resolve(
        self,
        names_or_positions: str | int | Iterable[str | int],
        parameter: str = "quasi_identifiers",
        *,
        where: str = "",
    ) -> tuple[str, ...]:
        """Return the names of columns given by names or positions.

        Parameters
        ----------
        names_or_positions : str, int or iterable of these
            Names as in ``names``, or positions counted from 0 (negative ones from the end).
        parameter : str, default="quasi_identifiers"
            The parameter that has them, for an error message.
        where : str, default=""
            Which table this is, where there are several, such as ``"in the population"``.

        Raises
        ------
        ParameterError
            When a column does not exist or is named twice.
        """
        place = f"{named(parameter)} ({where})" if where else named(parameter)
        if isinstance(names_or_positions, str | int | np.integer):
            names_or_positions = [names_or_positions]
        given_type: object = names_or_positions
        if not isinstance(given_type, Iterable):
            raise ParameterError(
                f"{place} is of the type {type(given_type).__name__}: expected names or positions of columns. "
                "Give them as a list."
            )
        resolved: list[str] = []
        for given in names_or_positions:
            name = self._resolve_one(given, place)
            if name in resolved:
                raise ParameterError(
                    f"{place} names the column {name!r} twice: expected each column once. Remove the repetition."
                )
            resolved.append(name)
        return tuple(resolved)

    def _resolve_one(self, given: str | int, place: str) -> str:
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            if self._is_ambiguous(int(given)):
                raise ParameterError(
                    f"{place} has the integer {given} and the columns are labelled by other integers than their "
                    f"positions: expected no doubt which column is meant. Give the label as text, {str(given)!r}."
                )
            if not -len(self.names) <= given < len(self.names):
                raise ParameterError(
                    f"{place} has the position {given} and the table has {len(self.names)} columns: expected a "
                    f"position from 0 to {len(self.names) - 1}. Correct the position, or give the name of the column."
                )
            return self.names[int(given)]
        if isinstance(given, Hashable) and given in self._position:
            return str(given)
        close = difflib.get_close_matches(str(given), self.names, n=3)
        listed = ", ".join(repr(name) for name in (close or self.names[:10]))
        raise ParameterError(
            f"{place} names the column {given!r}, which the table does not have: expected one of its "
            f"{len(self.names)} columns. {'Did you mean' if close else 'Its first columns are'} {listed}"
            f"{'?' if close else '.'}"
        )

    def _is_ambiguous(self, given: int) -> bool:
        labels = self._labels
        if self.library != "pandas" or not any(isinstance(label, int | np.integer) for label in labels):
            return False
        return not (0 <= given < len(labels) and labels[given] == given)

    def replaced(
        self,
        new: Mapping[str, Replacement | Sequence[tuple[str, Replacement]]],
        *,
        drop: Collection[str] = (),
        keep_rows: npt.NDArray[np.integer[Any]] | None = None,
        compact_categories: bool = False,
        n_threads: int = 1,
    ) -> Any:
        """Return a frame of the same kind with new values in some columns.

        Parameters
        ----------
        new : mapping of str to GroupedValues, GroupedLabels or sequence of (str, GroupedValues or GroupedLabels)
            The new values per column; a sequence puts several columns, with names of their own, in place of one.
        drop : collection of str, default=()
            Columns to leave out.
        keep_rows : ndarray of int or None, default=None
            Positions of the records to keep, in this order; None keeps all.
        compact_categories : bool, default=False
            Whether categorical types, also of columns that are copied, list only the categories that occur in the
            result. What is published must not list those of records that were left out or rewritten.
        n_threads : int, default=1
            Threads to write columns with, where there are enough records for it to pay.

        Returns
        -------
        frame
            Columns in the original order and type (text for labels), rows with the original index. Columns that are
            neither replaced nor dropped are copied. Nothing in it shares writeable memory with the input.

        Notes
        -----
        A type grows only when a new value does not fit it: integers without missing values become floats (pandas,
        numpy) when a group's value is missing, narrow integers become 64-bit ones, and an array of numbers that
        receives text becomes an array of objects.
        """
        dropped = set(self.resolve(tuple(drop), "drop"))
        self.resolve(tuple(new), "new")
        entries: list[Entry] = []
        for position, name in enumerate(self.names):
            if name in dropped:
                continue
            if name not in new:
                entries.append(Entry(self._labels[position], position, None))
                continue
            value = new[name]
            parts: Sequence[tuple[Hashable, Replacement]] = (
                [(self._labels[position], value)] if isinstance(value, Replacement) else value
            )
            for label, part in parts:
                self._check_length(name, part)
                kind, categories = self._kind_and_categories(name, part)
                entries.append(Entry(label, position, part, kind, categories))
        _checked_names([entry.label for entry in entries], library=self.library)
        rows = None if keep_rows is None else np.asarray(keep_rows, dtype=np.intp)
        built = self._backend.build(entries, rows, n_threads if self.n_records >= _THREADED_FROM else 1)
        return self._backend.compacted(built) if compact_categories else built

    def _kind_and_categories(self, name: str, part: Replacement) -> tuple[Kind | None, npt.NDArray[np.object_] | None]:
        if isinstance(part, GroupedLabels):
            return None, None
        if part.categories is not None:
            return "category", part.categories
        if name not in self._read:
            self.column(name)
        return self._read[name]

    def _check_length(self, name: str, part: Replacement) -> None:
        if len(part.group) != self.n_records:
            raise InputError(
                f"column {name!r} has groups for {len(part.group)} records and the table has {self.n_records}: "
                "expected one group per record. Apply the groups to the table they were made for."
            )


def _checked_names(labels: Sequence[Hashable], *, library: str) -> tuple[str, ...]:
    if library == "numpy":
        return tuple(str(label) for label in labels)
    names = tuple(str(label) for label in labels)
    if any(isinstance(label, tuple) for label in labels):
        raise InputError(
            "the columns of the table have names in several levels: expected one name per column. Flatten them, for "
            "example with frame.columns = ['_'.join(map(str, name)) for name in frame.columns]."
        )
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise InputError(
            f"the table has several columns with the names {', '.join(map(repr, repeated))}: expected each name once. "
            "Rename or drop the repeated columns."
        )
    return names


def _backend_of(frame: Any) -> Backend:
    import narwhals as nw
    from narwhals import dependencies as library

    if isinstance(frame, nw.DataFrame):
        frame = frame.to_native()
    if isinstance(frame, np.ndarray | list | tuple):
        return NumpyBackend(_checked_array(frame))
    if library.is_pandas_dataframe(frame):
        return PandasBackend(frame)
    if library.is_polars_dataframe(frame):
        return PolarsBackend(frame)
    if library.is_pyarrow_table(frame) or isinstance(frame, ParquetColumns):
        return ArrowBackend(frame)
    if library.is_into_series(frame):
        raise InputError(
            "the input is one column (1-D): expected a table. Reshape your data, or hand in a frame with one column, "
            "for example frame[['name']]."
        )
    if isinstance(frame, nw.LazyFrame) or library.is_into_dataframe(frame) or _is_lazy(frame):
        raise InputError(
            f"the input is a {type(frame).__module__.partition('.')[0]} {type(frame).__name__}: expected a pandas or "
            "polars frame or a pyarrow table in memory. Collect or convert it, for example with .collect() or "
            ".to_pandas()."
        )
    return NumpyBackend(_checked_array(frame))


def _is_lazy(frame: Any) -> bool:
    import narwhals as nw

    try:
        return isinstance(nw.from_native(frame), nw.LazyFrame)
    except TypeError:
        return False


def _checked_array(given: Any) -> npt.NDArray[Any]:
    """Convert an array-like to an array of two dimensions, or raise InputError."""
    if hasattr(given, "tocsr") or hasattr(given, "tocoo"):
        raise InputError(
            "the input is a sparse matrix: expected a dense table. Convert it with .toarray() if it fits in memory."
        )
    if isinstance(given, np.ma.MaskedArray):
        raise InputError(
            "the input is a masked array: expected an array without a mask. Fill it, for example with .filled(np.nan)."
        )
    is_foreign_frame = hasattr(given, "__arrow_c_stream__") or hasattr(given, "__dataframe__")
    if is_foreign_frame or isinstance(given, dict | str | bytes) or given is None or np.isscalar(given):
        raise InputError(
            f"the input is of the type {type(given).__name__}: expected a pandas or polars frame, a pyarrow table or "
            "an array of two dimensions. Reshape your data, or build a frame from it."
        )
    array = np.asarray(as_table_like(given))
    if array.dtype.names is not None:
        raise InputError(
            "the input is a structured array: expected an array of two dimensions. Build a frame from it, for example "
            "with pandas.DataFrame(array)."
        )
    if array.ndim != 2:
        raise InputError(
            f"the input is an array with {array.ndim} dimension(s): expected 2, records by columns. Reshape your "
            "data, either with array.reshape(-1, 1) for one column or with array.reshape(1, -1) for one record."
        )
    return array


def _wide(column: Column) -> Column:
    """Return the column with category codes wide enough for arithmetic."""
    return replace(column, values=column.values.astype(np.int32)) if column.kind == "category" else column
