# SPDX-License-Identifier: Apache-2.0
"""One candidate per record: of the sensitive rows of its group, the one whose squared norm is nearest the expected.

Figures B.1 and B.2 of the paper. A squared norm is the identifying part plus the sensitive part, so the join is never
made: the cost is that of the columns plus one addition per candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sfumato.anatomize.coordinates import Coding, CodingName, learn_coding
from sfumato.anatomize.kernels import extreme_norms, nearest_candidates
from sfumato.anatomize.tables import AnatomizedTable, matched_groups, without_groups
from sfumato.arguments import check_choice
from sfumato.columns import Column
from sfumato.frames import read_table
from sfumato.frames.assembling import side_by_side
from sfumato.threads import for_stretches, run_side_by_side

Per = Literal["record", "group"]
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class PrunedTable:
    """Training data with one sensitive row for each identifying row; made by :func:`prune`.

    Attributes
    ----------
    rows : ndarray of int64
        Rows of the identifying table: all of them in order, or one per group.
    candidates : ndarray of int64
        The row of the sensitive table chosen for each.
    radius_min, radius_max, radius_expected : float
        Squared norms: the least and the greatest of the join, and the middle between them.
    per : {"record", "group"}
    anatomized : AnatomizedTable
    """

    anatomized: AnatomizedTable
    rows: NDArray[np.int64]
    candidates: NDArray[np.int64]
    radius_min: float
    radius_max: float
    radius_expected: float
    per: Per

    @property
    def table(self) -> Any:
        """The training data: identifying columns, then sensitive ones, as the same kind of frame."""
        identifying, sensitive = without_groups(self.anatomized.identifying), without_groups(self.anatomized.sensitive)
        return side_by_side(identifying, self.rows, sensitive, self.candidates)


@dataclass(frozen=True, eq=False)
class Candidates:
    """An anatomized table as columns: who may have which sensitive row.

    Attributes
    ----------
    identifying, sensitive : list of Column
    group : ndarray of int64
        The group of each identifying row.
    order, starts : ndarray of int64
        ``order[starts[g] : starts[g + 1]]`` are the sensitive rows of group g.
    """

    identifying: list[Column]
    sensitive: list[Column]
    group: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, anatomized: AnatomizedTable, categorical: tuple[list[str], list[str]] = ([], [])) -> Candidates:
        """Read the columns of both tables, some numbers as categories."""
        left, right = (
            read_table(frame, categorical=codes)
            for frame, codes in zip((anatomized.identifying, anatomized.sensitive), categorical, strict=True)
        )
        tasks: list[Callable[[], Any]] = [partial(matched_groups, anatomized)]
        tasks += [partial(table.column, name) for table in (left, right) for name in table.names[:-1]]
        groups, *columns = run_side_by_side(tasks, left.n_records)
        n_left = len(left.names) - 1
        return cls(columns[:n_left], columns[n_left:], *groups)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of records of each group."""
        return np.diff(self.starts)

    def codings(self, coding: CodingName) -> tuple[Coding, Coding]:
        """Learn the coding of both tables as they are after joining them."""
        if self.sizes.min() == self.sizes.max():  # every record counts alike
            return learn_coding(self.identifying, coding), learn_coding(self.sensitive, coding)
        weight = self.sizes[self.group]
        of_row = np.empty(len(self.order), np.int64)
        of_row[self.order] = np.repeat(self.sizes, self.sizes)
        return learn_coding(self.identifying, coding, weight), learn_coding(self.sensitive, coding, of_row)


def prune(
    anatomized: AnatomizedTable, *, coding: CodingName = "paper", per: Per = "record", feature_map: Any = None
) -> PrunedTable:
    """Keep for every identifying row the sensitive row that brings its squared norm nearest the expected radius.

    Parameters
    ----------
    anatomized : AnatomizedTable
    coding : {"paper", "one-hot"}
        The coordinates in which norms are measured. With one-hot coding all values of one sensitive column have the
        same norm, and the first row of the group is taken.
    per : {"record", "group"}
        One row per identifying record, which keeps their number and is what the theorem needs; or one per group,
        which is Figure B.2 to the letter.
    feature_map : transformer, optional
        Measure norms after this map, such as scikit-learn's ``Nystroem``, centered there.

    Returns
    -------
    PrunedTable

    References
    ----------
    Mancuhan, K., Clifton, C. (2018). Support vector classification with l-diversity.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import Anatomizer
    >>> from sfumato.anatomize import prune
    >>> people = pa.table({"age": [31, 34, 42, 47], "wage": [10, 20, 30, 40]})
    >>> pruned = prune(Anatomizer(l=2, sensitive="wage", random_state=0).fit_transform(people))
    >>> pruned.table.num_rows, pruned.radius_max > pruned.radius_min
    (4, True)
    """
    candidates = Candidates.of(anatomized)
    return choose(anatomized, candidates, *candidates.codings(coding), per=per, feature_map=feature_map)


def choose(
    anatomized: AnatomizedTable,
    candidates: Candidates,
    identifying: Coding,
    sensitive: Coding,
    *,
    per: Per,
    feature_map: Any = None,
) -> PrunedTable:
    """Prune with codings that were learned before."""
    check_choice("per", per, get_args(Per))
    if feature_map is None:
        own = identifying.norms(candidates.identifying)
        theirs = sensitive.norms(candidates.sensitive)[candidates.order]
        low, high = extreme_norms(own, candidates.group, theirs, candidates.starts)
        expected = (low + high) / 2
        chosen = _nearest(own, candidates, theirs, expected)
        distance = np.abs(own + theirs[chosen] - expected) if per == "group" else None
    else:
        low, high, chosen, distance = _nearest_mapped(candidates, identifying, sensitive, feature_map)
        expected = (low + high) / 2
    rows = np.arange(len(candidates.group))
    if distance is not None and per == "group":
        by_group = np.lexsort((rows, distance, candidates.group))
        rows = by_group[np.flatnonzero(np.diff(candidates.group[by_group], prepend=-1))]
        chosen = chosen[rows]
    return PrunedTable(anatomized, rows, candidates.order[chosen], float(low), float(high), float(expected), per)


def _nearest(
    own: NDArray[np.float64], candidates: Candidates, theirs: NDArray[np.float64], expected: float
) -> NDArray[np.int64]:
    """Choose for every record, a stretch of the records in each thread."""

    def nearest(some: slice) -> NDArray[np.int64]:
        chosen: NDArray[np.int64] = nearest_candidates(
            own[some], candidates.group[some], theirs, candidates.starts, expected
        )
        return chosen

    return np.concatenate(for_stretches(nearest, len(own)))


def _nearest_mapped(
    candidates: Candidates, identifying: Coding, sensitive: Coding, feature_map: Any
) -> tuple[float, float, NDArray[np.int64], NDArray[np.float64]]:
    """Choose by norms behind a feature map, some records at a time; the map is fitted on one candidate per record."""
    own = identifying.coordinates(candidates.identifying)
    theirs = sensitive.coordinates(candidates.sensitive)[candidates.order]
    sizes = candidates.sizes[candidates.group]
    first = candidates.starts[candidates.group]
    fitted = clone(feature_map).fit(np.hstack([own, theirs[first]]))
    most = int(sizes.max())

    def mapped(rows: NDArray[np.int64], number: int) -> NDArray[np.float64]:
        return np.asarray(fitted.transform(np.hstack([own[rows], theirs[first[rows] + number]])), np.float64)

    pieces = [(number, part) for number in range(most) for part in _parts(np.flatnonzero(sizes > number))]
    total = sum(mapped(part, number).sum(axis=0) for number, part in pieces)
    middle = total / sizes.sum()
    norms = np.full((len(sizes), most), np.nan)
    for number, part in pieces:
        norms[part, number] = ((mapped(part, number) - middle) ** 2).sum(axis=1)
    low, high = float(np.nanmin(norms)), float(np.nanmax(norms))
    away = np.abs(norms - (low + high) / 2)
    number_of_row = np.nanargmin(away, axis=1)
    return low, high, first + number_of_row, away[np.arange(len(sizes)), number_of_row]


def _parts(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE)]
