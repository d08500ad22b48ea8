# SPDX-License-Identifier: Apache-2.0
"""What every source hands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Kind, Moment
from sfumato.partition.binning import Bins
from sfumato.partition.guides import Guide
from sfumato.partition.records import Layout, Records


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column after binning: what its codes stand for, without its values.

    Attributes
    ----------
    name : str
    kind : {"number", "moment", "category"}
    bins : Bins
    codes : ndarray of uint8 or uint16
        Code of each record.
    categories : ndarray of object or None
        The sorted categories that occur.
    moment : {"date", "datetime", "duration", "time"} or None
    width : int, float or None
        Width of the intervals whose middles the values are, where a limit made them coarser: in the unit of the
        values. None for categories and without a limit.
    is_zoned : bool
        Whether the values are datetimes with a time zone.
    places : ndarray of int or None
        Place of each category in the order that its type declares, where it does.
    """

    name: str
    kind: Kind
    bins: Bins
    codes: NDArray[Any]
    categories: NDArray[np.object_] | None
    moment: Moment | None
    width: float | None = None
    is_zoned: bool = False
    places: NDArray[np.int64] | None = None


class Source(Protocol):
    """Hands the grower what it needs of the data."""

    columns: Sequence[CodedColumn]
    layout: Layout

    def records(self, guide: Guide, weights: NDArray[np.int64] | None = None) -> Records:
        """Return the codes of all columns together with the guide's channels."""
        ...
