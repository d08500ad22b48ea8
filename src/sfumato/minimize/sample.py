# SPDX-License-Identifier: Apache-2.0
"""The full-resolution sample as a minimizer sees it, and the buckets that it makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.generalization import Generalization, generalization_from_bins

Buckets = list[NDArray[np.int64]]
"""For every attribute the bucket of each of its fine codes, the missing code included.

Those of categories may have one more entry, for categories that the sample does not have.
"""

FORBIDDEN = "it is forbidden"
"""Why an attribute is left out that may not be collected."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Records as codes, not values.

    Attributes
    ----------
    columns : sequence of CodedColumn
        The attributes to generalize, binned; ``columns[i].codes`` are the fine codes of the records.
    y : ndarray of int
        Class of each record as its place in `classes`; all 0 where no target was given and none is needed.
    classes : ndarray
        The sorted classes.
    personal : tuple of int
        Positions in `columns` of the personal attributes.
    weight : ndarray of float64 or None
        Weight of each record; None: all the same.
    parents : mapping of int to ndarray
        For attributes with a hierarchy, by position: the label of every fine code at each level above it, shape
        (codes, levels); the last level is one label. Their codes are all values of the hierarchy.
    left_out : mapping of int to str
        Attributes that are not collected whatever a minimizer learns, by position, and why.
    is_personal_named : bool
        Whether personal attributes were named, or all are personal for want of a name.
    """

    columns: Sequence[CodedColumn]
    y: NDArray[Any]
    classes: NDArray[Any]
    personal: tuple[int, ...]
    weight: NDArray[np.float64] | None = None
    parents: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)
    left_out: Mapping[int, str] = field(default_factory=dict)
    is_personal_named: bool = True

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.y)

    @property
    def n_classes(self) -> int:
        """Number of classes of the target."""
        return len(self.classes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(column.name for column in self.columns)

    @property
    def n_codes(self) -> tuple[int, ...]:
        """Number of fine codes of each attribute, missing included."""
        return tuple(column.bins.n_bins for column in self.columns)

    def generalized(
        self, buckets: Buckets, *, floor: int, minimizer: str = "", parameters: Mapping[str, Any] | None = None
    ) -> Generalization:
        """Return the generalization with these buckets."""
        public = [self.columns[position].name for position in self.parents]
        return generalization_from_bins(
            self.columns, buckets, floor=floor, public=public, minimizer=minimizer, parameters=parameters
        )
