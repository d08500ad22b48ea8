# SPDX-License-Identifier: Apache-2.0
"""Subgroups of people: what protection costs each, and on which an attack gains most.

Categories form subgroups as they are, numbers and dates in four classes of equal size.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.auditing.utility import rows_of
from sfumato.columns import MICROSECONDS_PER_DAY, Column
from sfumato.labels import label_number
from sfumato.report.risk_data import AttackedSubgroup

if TYPE_CHECKING:
    from sfumato.attack.result import Hits
    from sfumato.auditing.policy_job import PolicyJob

_FEWEST = 30  # records below which a subgroup's number says nothing
_MOST_CODES = 20  # whole numbers with more values than this are put into classes
_DAYS_PER_YEAR = 365.2425


def compare_subgroups(
    job: PolicyJob, raw: npt.NDArray[Any], own: npt.NDArray[Any], test: npt.NDArray[np.int64]
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return the change per subgroup, and a sentence for every column that cannot be shown.

    Parameters
    ----------
    job : PolicyJob
    raw, own : ndarray
        Per test record, whether the model trained on raw and on protected records is right.
    test : ndarray of int
        Rows of the test records.
    """
    from sfumato.attack.result import bootstrap_interval
    from sfumato.frames import read_table
    from sfumato.report.data import Subgroup

    found: list[Any] = []
    notes: list[str] = []
    fewest = max(_FEWEST, job.policy.get("method", "k"))
    for name in job.policy.get("columns", "subgroups"):
        column = read_table(rows_of(job.table.select([name]), test), categorical=_codes(job, name)).column(name)
        shown = [(label, members) for label, members in members_of(column) if int(members.sum()) >= fewest]
        if not shown:
            notes.append(
                f"No subgroup of {name!r} is shown: none has {fewest} test records. Choose a column with fewer values, "
                "or raise test_fraction."
            )
        for label, members in shown:
            interval = bootstrap_interval(own[members] - raw[members], random_state=0)
            scores = float(raw[members].mean()), float(own[members].mean())
            found.append(Subgroup(name, label, int(members.sum()), *scores, interval))
    return tuple(found), tuple(notes)


@dataclass(frozen=True, eq=False)
class SubgroupMembers:
    """A subgroup: its column, its name, and which records of a table are in it."""

    column: str
    group: str
    members: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Subgroups:
    """The subgroups of a table's records that attacks are compared on.

    Attributes
    ----------
    own : tuple of SubgroupMembers
    fewest : int
        Attacked people that a subgroup must have to be shown; at least 30 in any case.
    """

    own: tuple[SubgroupMembers, ...] = ()
    fewest: int = _FEWEST

    def among(self, rows: npt.NDArray[np.int64]) -> Subgroups:
        """Return the subgroups among some rows of the table."""
        return Subgroups(
            tuple(SubgroupMembers(one.column, one.group, one.members[rows]) for one in self.own), self.fewest
        )

    def worst(self, hits: Hits | None, confidence: float) -> AttackedSubgroup | None:
        """Return the subgroup in which an attack surely gains most over its baseline.

        None if no subgroup is large enough, and for attacks that are not on people one by one.

        Parameters
        ----------
        hits : Hits or None
            Of the attacked people, by their rows in the table.
        confidence : float
            Of all intervals together: the subgroup with the highest lower end is taken.
        """
        if hits is None:
            return None
        compared = [(one, one.members[hits.rows]) for one in self.own]
        compared = [(one, inside) for one, inside in compared if _n_attacked(hits, inside) >= max(_FEWEST, self.fewest)]
        shared = 1 - (1 - confidence) / max(1, len(compared))
        found = [
            AttackedSubgroup(one.column, one.group, int(inside.sum()), *_rate(hits, inside, shared))
            for one, inside in compared
        ]
        return max(found, key=lambda one: one.interval[0] - one.baseline, default=None)


def subgroups_of(job: PolicyJob, cut_by: npt.NDArray[np.int64]) -> Subgroups:
    """Return all subgroups that a policy names; numbers are cut where the rows `cut_by` have their quarters."""
    from sfumato.frames import read_table

    found = []
    for name in job.policy.get("columns", "subgroups"):
        column = read_table(job.table.select([name]), categorical=_codes(job, name)).column(name)
        found += [SubgroupMembers(name, label, members) for label, members in members_of(column, cut_by)]
    return Subgroups(tuple(found), job.policy.get("method", "k"))


def _n_attacked(hits: Hits, inside: npt.NDArray[np.bool_]) -> int:
    """Return how many people are inside; for membership, of the rarer of members and others."""
    if hits.is_member is None:
        return int(inside.sum())
    return min(int((inside & hits.is_member).sum()), int((inside & ~hits.is_member).sum()))


def _rate(hits: Hits, inside: npt.NDArray[np.bool_], confidence: float) -> tuple[float, tuple[float, float], float]:
    """Return the rate of an attack on some people, its interval, and the baseline."""
    from sfumato.attack.group_guessing import clustered_interval
    from sfumato.attack.result import wilson_interval

    success, baseline = hits.success[inside].astype(float), float(hits.baseline[inside].mean())
    if hits.truth is not None:  # without the release, an attacker may know what is most frequent in the subgroup
        baseline = max(baseline, float(np.unique(hits.truth[inside], return_counts=True)[1].max() / inside.sum()))
    if hits.is_member is not None:
        # Members and others count alike, however many of each are in the subgroup.
        member = hits.is_member[inside]
        rate = float(success[member].mean() + success[~member].mean()) / 2
        n_effective = 4 / (1 / member.sum() + 1 / (~member).sum())
        return rate, wilson_interval(rate * n_effective, n_effective, confidence), baseline
    if hits.cluster is not None:
        return float(success.mean()), clustered_interval(success, hits.cluster[inside], confidence), baseline
    total = min(float(success.sum()), len(success))  # sums of shares may exceed it by rounding
    return float(success.mean()), wilson_interval(total, len(success), confidence), baseline


def _codes(job: PolicyJob, name: str) -> list[str]:
    """Return the column if it has few whole numbers, which form subgroups by themselves."""
    import pyarrow as pa

    kind = job.table.schema.field(name).type
    is_few = pa.types.is_integer(kind) and len(job.table.column(name).unique()) <= _MOST_CODES
    return [name] if is_few else []


def members_of(column: Column, cut_by: npt.NDArray[np.int64] | None = None) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """Return the name of every subgroup of a column, and who is in it; numbers are cut by some rows, or by all."""
    present = np.ones(column.n_records, bool) if column.missing is None else ~column.missing
    if column.categories is not None:
        return [(str(label), (column.values == code) & present) for code, label in enumerate(column.categories)]
    known = present if cut_by is None else present & np.isin(np.arange(column.n_records), cut_by)
    if not known.any():
        return []
    # Round cuts, open ends: no name of a subgroup is the value of one person.
    quarters = np.quantile(column.values[known].astype(float), [0.25, 0.5, 0.75])
    spread = float(np.ptp(column.values[known].astype(float)))
    cuts = _whole_years(quarters) if column.kind == "moment" else _round_cuts(quarters, spread)
    place = np.searchsorted([cut for cut, _ in cuts], column.values, side="right")
    names = [name for _, name in cuts]
    labels = [f"below {names[0]}", *(f"{a} to below {b}" for a, b in pairwise(names))]
    labels.append(f"{names[-1]} and more")
    return [(label, (place == code) & present) for code, label in enumerate(labels)]


def is_few_codes(column: Column) -> bool:
    """Return True for a column of few whole numbers, each of which is a subgroup."""
    if column.kind != "number":
        return False
    known = column.values if column.missing is None else column.values[~column.missing]
    values = np.unique(known.astype(float))
    return len(values) <= _MOST_CODES and bool((values == np.floor(values)).all())


def _round_cuts(quarters: npt.NDArray[np.float64], spread: float) -> list[tuple[float, str]]:
    """Round cuts to the coarsest step that a twentieth of the spread allows.

    >>> [name for _, name in _round_cuts(np.array([27.6, 37.2, 48.1]), 73.0)]
    ['28', '37', '48']
    """
    step = 10.0 ** np.floor(np.log10(max(spread / 20, 1e-12)))
    rounded = sorted({round(float(np.round(cut / step) * step), 12) for cut in quarters})
    return [(cut, label_number(cut)) for cut in rounded]


def _whole_years(quarters: npt.NDArray[np.float64]) -> list[tuple[float, str]]:
    """Move cuts between moments to the first day of their year."""
    years = sorted({int(1970 + cut / MICROSECONDS_PER_DAY / _DAYS_PER_YEAR) for cut in quarters})
    days = [(dt.date(min(max(year, 1), 9999), 1, 1) - dt.date(1970, 1, 1)).days for year in years]
    return [(float(day * MICROSECONDS_PER_DAY), str(year)) for day, year in zip(days, years, strict=True)]
