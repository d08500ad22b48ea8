# SPDX-License-Identifier: Apache-2.0
"""One candidate per record: of the sensitive rows of its group, the one whose squared norm is nearest the expected.

Figures B.1 and B.2 of the paper. A squared norm is the identifying part plus the sensitive parts, so the join is never
made: the cost is that of the columns plus one addition per candidate. With several sensitive tables a candidate is a
row of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sfumato.anatomize.candidates import Candidates
from sfumato.anatomize.coordinates import Coding, CodingName
from sfumato.anatomize.kernels import CandidateNorms, extreme_norms, nearest_candidates
from sfumato.anatomize.tables import AnatomizedTable, without_groups
from sfumato.arguments import check_choice
from sfumato.frames.assembling import side_by_side
from sfumato.threads import for_stretches

Per = Literal["record", "group"]
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Pruning:
    """One candidate for each identifying row.

    Attributes
    ----------
    rows : ndarray of int64
        Rows of the identifying table: all of them in order, or one per group.
    candidates : ndarray of int64, shape (rows, sensitive tables)
        The row of each sensitive table chosen for each.
    radius_min, radius_max, radius_expected : float
        Squared norms: the least and the greatest of the join, and the middle between them.
    """

    rows: NDArray[np.int64]
    candidates: NDArray[np.int64]
    radius_min: float
    radius_max: float
    radius_expected: float


@dataclass(frozen=True, eq=False)
class PrunedTable:
    """Training data with one sensitive row for each identifying row; made by :func:`prune`.

    Attributes
    ----------
    rows : ndarray of int64
        Rows of the identifying table: all of them in order, or one per group.
    candidates : ndarray of int64
        The row of the sensitive table chosen for each; with several sensitive tables a column for each.
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
        tables = self.anatomized.sensitive_tables
        joined, rows = without_groups(self.anatomized.identifying, len(tables)), self.rows
        for frame, chosen in zip(tables, self.candidates.reshape(len(self.rows), -1).T, strict=True):
            joined, rows = side_by_side(joined, rows, without_groups(frame), chosen), np.arange(len(self.rows))
        return joined


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
        One row per identifying record, which keeps their number and is what the theorem needs; or one per group (of
        the first sensitive table, where there are several), which is Figure B.2 to the letter.
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
    found = choose_candidates(candidates, candidates.codings(coding), per=per, feature_map=feature_map)
    chosen = found.candidates if len(candidates.tables) > 1 else found.candidates[:, 0]
    radii = found.radius_min, found.radius_max, found.radius_expected
    return PrunedTable(anatomized, found.rows, chosen, *radii, per)


def choose_candidates(candidates: Candidates, coding: Coding, *, per: Per, feature_map: Any = None) -> Pruning:
    """Prune with a coding that was learned before."""
    check_choice("per", per, get_args(Per))
    if feature_map is None:
        own, theirs = _norms(candidates, coding)
        low, high = extreme_norms(own, theirs)
        expected = (low + high) / 2
        chosen = _nearest(own, theirs, expected)
        distance = None
        if per == "group":
            reached = sum(theirs.norms[at + chosen[:, table]] for table, at in enumerate(theirs.first_norm.tolist()))
            distance = np.abs(own + reached - expected)
    else:
        low, high, chosen, distance = _nearest_mapped(candidates, coding, feature_map)
        expected = (low + high) / 2
    rows = np.arange(candidates.n_records)
    if distance is not None and per == "group":
        group = candidates.tables[0].group
        by_group = np.lexsort((rows, distance, group))
        rows = by_group[np.flatnonzero(np.diff(group[by_group], prepend=-1))]
        chosen = chosen[rows]
    found = np.stack([table.order[own] for table, own in zip(candidates.tables, chosen.T, strict=True)], axis=1)
    return Pruning(rows, found, float(low), float(high), float(expected))


def _norms(candidates: Candidates, coding: Coding) -> tuple[NDArray[np.float64], CandidateNorms]:
    """Return the squared norms of the identifying rows, and those of all candidates, group after group."""
    n_own = len(candidates.identifying)
    own, theirs = Coding(coding.parts[:n_own]).norms(candidates.identifying), []
    for table in candidates.tables:
        parts = coding.parts[n_own : n_own + len(table.columns)]
        n_own += len(table.columns)
        theirs.append(Coding(parts).norms(table.columns)[table.order])
    return own, CandidateNorms(
        np.stack([table.group for table in candidates.tables], axis=1),
        np.concatenate([table.starts for table in candidates.tables]),
        _before([len(table.starts) for table in candidates.tables]),
        np.concatenate(theirs),
        _before([len(norms) for norms in theirs]),
    )


def _before(lengths: list[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)


def _nearest(own: NDArray[np.float64], theirs: CandidateNorms, expected: float) -> NDArray[np.int64]:
    """Choose for every record, a stretch of the records in each thread; return places in the order of each table."""

    def nearest(some: slice) -> NDArray[np.int64]:
        chosen: NDArray[np.int64] = nearest_candidates(own[some], theirs._replace(group=theirs.group[some]), expected)
        return chosen

    return np.concatenate(for_stretches(nearest, len(own)))


def _nearest_mapped(
    candidates: Candidates, coding: Coding, feature_map: Any
) -> tuple[float, float, NDArray[np.int64], NDArray[np.float64]]:
    """Choose by norms behind a feature map, some records at a time; the map is fitted on one candidate per record."""
    tables = candidates.tables
    first = np.stack([table.starts[table.group] for table in tables], axis=1)
    sizes = np.stack([table.sizes[table.group] for table in tables], axis=1)
    n_rows = sizes.prod(axis=1)

    def places(rows: NDArray[np.int64], number: int) -> NDArray[np.int64]:
        """Return the candidate of a number: a row of every table, the last one running fastest."""
        found, left = np.empty((len(rows), len(tables)), np.int64), np.full(len(rows), number)
        for table in range(len(tables) - 1, -1, -1):
            left, digit = np.divmod(left, sizes[rows, table])
            found[:, table] = first[rows, table] + digit
        return found

    def coded(rows: NDArray[np.int64], number: int) -> NDArray[np.float64]:
        chosen = [table.order[own] for table, own in zip(tables, places(rows, number).T, strict=True)]
        return np.asarray(candidates.coordinates(coding, rows, chosen), np.float64)

    everybody = np.arange(candidates.n_records)
    fitted = clone(feature_map).fit(coded(everybody, 0))
    most = int(n_rows.max())

    def mapped(rows: NDArray[np.int64], number: int) -> NDArray[np.float64]:
        return np.asarray(fitted.transform(coded(rows, number)), np.float64)

    pieces = [(number, part) for number in range(most) for part in _parts(np.flatnonzero(n_rows > number))]
    total = sum(mapped(part, number).sum(axis=0) for number, part in pieces)
    middle = total / n_rows.sum()
    norms = np.full((len(n_rows), most), np.nan)
    for number, part in pieces:
        norms[part, number] = ((mapped(part, number) - middle) ** 2).sum(axis=1)
    low, high = float(np.nanmin(norms)), float(np.nanmax(norms))
    away = np.abs(norms - (low + high) / 2)
    best = np.nanargmin(away, axis=1)
    chosen = np.empty((len(n_rows), len(tables)), np.int64)
    for number in np.unique(best).tolist():
        some = np.flatnonzero(best == number)
        chosen[some] = places(some, number)
    return low, high, chosen, away[everybody, best]


def _parts(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE)]
