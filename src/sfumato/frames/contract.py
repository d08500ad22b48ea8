# SPDX-License-Identifier: Apache-2.0
"""The protocol of all kinds of frames, and one column of a frame to be built.

``table`` does everything that is the same for all frames and calls one :class:`Backend` for the rest. A backend
reads a column into a :class:`~sfumato.columns.Column` and writes new values in the column's own type. A new column
is always made the same way: a short array of the few distinct values in the native type, and one ``take`` with a
position per record.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.columns import Column, GroupedLabels, GroupedValues, Kind
from sfumato.errors import InputError
from sfumato.frames.to_arrow import grouped_arrow

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Entry:
    """One column of the result: its label, its source column, and its new values (None: unchanged)."""

    label: Hashable
    source: int
    new: GroupedValues | GroupedLabels | None
    kind: Kind | None = None
    categories: npt.NDArray[np.object_] | None = None

    def taken(self, rows: Rows | None) -> Entry:
        """Return the entry for the records kept."""
        if rows is None or self.new is None:
            return self
        return replace(self, new=replace(self.new, group=np.asarray(self.new.group)[rows]))

    def arrow(self, column_type: Any, *, missing_as_nan: bool = False) -> tuple[Any, npt.NDArray[Any]]:
        """Return a short Arrow array of new values and the place in it per record."""
        import pyarrow as pa

        assert isinstance(self.new, GroupedValues) and self.kind is not None
        if self.kind == "category" and not pa.types.is_null(column_type):
            self.require_categories()
        return grouped_arrow(column_type, self.kind, self.new, self.categories, missing_as_nan=missing_as_nan)

    def require_categories(self) -> None:
        """Raise InputError if the new values are not categories of the column, which may have none."""
        assert isinstance(self.new, GroupedValues) and self.categories is not None
        used = self.new.values if self.new.missing is None else self.new.values[~self.new.missing]
        if used.dtype.kind == "f" or (len(used) and not 0 <= used.min() <= used.max() < len(self.categories)):
            raise InputError(
                f"column {str(self.label)!r} holds categories and its new values are numbers: expected the kind it had "
                "when the groups were made. Convert the column."
            )

    @property
    def replaces_categories(self) -> bool:
        """Whether a categorical type must list the new categories and nothing else."""
        return isinstance(self.new, GroupedValues) and self.new.replaces_categories


class Backend(Protocol):
    """A kind of frame; columns are numbered from 0."""

    library: str

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""

    def n_records(self) -> int:
        """Return the number of records."""

    def read(self, position: int, name: str, *, as_category: bool, for_counting: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None, n_threads: int = 1) -> Any:
        """Build a frame, several columns at a time."""

    def compacted(self, frame: Any) -> Any:
        """Return a frame that was built, its categorical types listing only categories that occur."""
