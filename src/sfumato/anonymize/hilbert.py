# SPDX-License-Identifier: Apache-2.0
"""Anonymization along a Hilbert curve: sort the records by their place on it, and cut the order into groups."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.method import FACTS, NamedMethod
from sfumato.anonymize.partitioners import Divided, Task
from sfumato.anonymize.recoding import PartitionColumn, Recoding, cuts_after
from sfumato.arguments import Names, Seed
from sfumato.coded_columns import CodedColumn
from sfumato.criteria import Criterion
from sfumato.criteria.criterion_counts import Counter, fewest_records
from sfumato.fingerprints import Fingerprints
from sfumato.partition.binning import DEFAULT_MAX_BINS
from sfumato.partition.group_summaries import Groups, collect
from sfumato.partition.guides import Guide
from sfumato.partition.hilbert_curve import (
    Grid,
    best_runs,
    find_runs,
    grid_coordinates,
    hilbert_keys,
    make_grid,
    sort_keys,
)
from sfumato.representatives import GroupValues, Representative

logger = logging.getLogger("sfumato")


@dataclass(frozen=True, eq=False)
class HilbertPartition(Recoding):
    """Groups that are runs of a Hilbert curve, and what each group's records are rewritten to.

    Attributes
    ----------
    columns : tuple of PartitionColumn
        The quasi-identifiers; a record's codes in them are its place on the grid.
    grid : Grid
        The place of each code of a column on its axis.
    first_keys : ndarray of uint64, shape (groups, words)
        The start of each group on the curve.
    values : dict
        Rewritten columns: for each quasi-identifier, the values of every group.
    group_sizes : ndarray of int64
    dropped : tuple of str
    limits : dict
    categorical : tuple of str
    fingerprints : Fingerprints or None
        Of the fitted records, for their owner; not pickled.

    Notes
    -----
    The grid follows the fitted values closely: if a column has no more values than bins, it contains them all. So
    this object is as personal as the data, and unlike the partition of a tree it cannot be saved as a document.
    """

    columns: tuple[PartitionColumn, ...]
    grid: Grid
    first_keys: NDArray[np.uint64]
    values: dict[str, list[GroupValues]]
    group_sizes: NDArray[np.int64]
    dropped: tuple[str, ...] = ()
    limits: dict[str, Any] = field(default_factory=dict)
    categorical: tuple[str, ...] = ()
    fingerprints: Fingerprints | None = field(default=None, repr=False)

    def apply_codes(self, codes: NDArray[np.uint16]) -> NDArray[np.int32]:
        """Return the group of every record: the run of the curve in which its place lies."""
        keys = hilbert_keys(grid_coordinates(codes, self.grid), self.grid.n_bits)
        return find_runs(keys, self.first_keys).astype(np.int32)

    def _shape(self) -> Iterable[NDArray[Any]]:
        yield self.first_keys


class HilbertAnonymizer(Anonymizer):
    """Make a table k-anonymous by cutting a Hilbert curve through its records into runs.

    The curve visits neighboring places of the grid of all quasi-identifiers one after the other. The records are
    sorted by their place on it, and dynamic programming finds the cuts with the least information loss. Equal
    records are never separated.

    Parameters
    ----------
    k : int, default=10
        Minimum group size. If all records differ, no group has more than 2k - 1.
    quasi_identifiers : list of str or int, optional
        Columns that together could identify a person, by name or position. None: all columns.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    keep : list of str or int, optional
        Columns to release unchanged although most of their values are unique.
    criteria : list of Criterion, optional
        Further conditions on every group. A run that fails one is joined with the runs after it until it passes;
        what is left at the end is joined with the runs before it.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    limits : dict, optional
        Finest width (numbers), number of characters (text) or days (dates) to release, per column.
    hierarchies : dict, optional
        For each column, by name or position, a `Hierarchy`, the path of a hierarchy file, or a nested mapping. Such a
        column is a category in the order of its tree; ``representative="range"`` publishes the lowest common ancestor
        of a group, and information loss counts the values under it. Groups are still chosen by the
        values in them.
    representative : str, default="phantom"
        How a group is rewritten: ``"phantom"`` (the group's typical values, changed until no record of the table has
        the combination, or at least k have), ``"median"``, ``"mean"``, ``"midrange"``, ``"range"`` (labels
        from the lowest to the highest member), ``"bounds"`` (the same as two columns; categories by the order their
        type declares, else sorted), or the values of one real record: ``"model"`` (of the tenth of the members whose
        predictions are nearest the group's mean prediction, the one nearest the group's median), ``"member"`` (the
        member nearest the group's median among those with the majority prediction), ``"sample"``. Ranges and bounds
        tell who is not in the table, and warn. Numbers come from runs of values that at least k records share, and
        categories that fewer have are not named.
    suppression_limit : float, default=0.0
        Share of the records that `release` may suppress: failing groups first, then the costliest records.
    max_bins : int, default=255
        Number of bins of a numeric column with more distinct values.
    random_state : int or RandomState, optional
        Seed for ``representative="sample"``.
    n_jobs : int, optional
        Threads; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    partition_ : HilbertPartition
        The runs of the curve and their values.
    group_sizes_ : ndarray of int64
        In the order of the curve.
    n_groups_ : int
    information_loss_ : float
        Normalized certainty penalty of the groups, from 0 to 1.
    schema_ : Schema

    Notes
    -----
    *Guarantee.* In the result of `fit_transform` and of `release`, every record shares its quasi-identifiers with at
    least k - 1 others, recounted on the result itself. It does not prevent attribute disclosure. A real record as
    representative (``"member"``, ``"model"``, ``"sample"``) shows that record's values.

    *Optimality.* For k up to 100 and no further criteria, no other way of cutting the curve into groups of at least k
    has a lower information loss. For larger k, cuts are considered at about every (k / 100)th record, which bounds the
    time at 200 steps per record. Groups that are not runs of the curve may lose less.

    `transform` sends a new record to the run its place on the curve falls in. A value not seen at fit takes the bin
    it falls into; a category not seen at fit, or a missing value where none was, counts as the last category or bin.

    References
    ----------
    Ghinita, G., Karras, P., Kalnis, P., Mamoulis, N. (2007). Fast data anonymization with low information loss.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import HilbertAnonymizer
    >>> X = np.array([[25, 1], [27, 1], [31, 0], [33, 0], [58, 1], [61, 1]])
    >>> HilbertAnonymizer(k=2).fit_transform(X).tolist()
    [[26, 1], [26, 1], [32, 0], [32, 0], [59, 1], [59, 1]]
    """

    partition_: HilbertPartition

    def __init__(
        self,
        k: int = 10,
        *,
        quasi_identifiers: Names | None = None,
        identifiers: Names | None = None,
        keep: Names | None = None,
        criteria: list[Criterion] | None = None,
        categorical_features: Names | None = None,
        limits: dict[Any, Any] | None = None,
        hierarchies: Mapping[Any, Any] | None = None,
        representative: Representative = "phantom",
        suppression_limit: float = 0.0,
        max_bins: int = DEFAULT_MAX_BINS,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.identifiers = identifiers
        self.keep = keep
        self.criteria = criteria
        self.categorical_features = categorical_features
        self.limits = limits
        self.hierarchies = hierarchies
        self.representative = representative
        self.suppression_limit = suppression_limit
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _partitioner(self) -> CurvePartitioner:
        return CurvePartitioner()


class CurvePartitioner:
    """Cuts the curve into runs of records that lose least."""

    by_counts = False

    def divide(self, task: Task) -> Divided:
        """Find the best runs, and join those that fail a criterion on more than records with the next."""
        source, counters = task.source, task.counters
        codes = source.records(Guide(0)).codes
        grid = make_grid(source.layout)
        keys = hilbert_keys(grid_coordinates(codes, grid), grid.n_bits, n_threads=task.n_threads)
        order, first = sort_keys(keys)
        counts = np.diff(first, append=len(order))
        starts, _ = best_runs(codes[order[first]], counts, source.layout, fewest_records(counters))
        group = np.empty(len(order), np.int32)
        group[order] = np.repeat(np.arange(len(starts)), np.diff(first[starts], append=len(order)))
        asked = [counter for counter in counters if counter.population is None]  # presence is a matter of releases
        run_of_group = join_runs(group, len(starts), asked)
        starts = starts[np.flatnonzero(np.diff(run_of_group, prepend=-1))]
        group = run_of_group[group]
        first_keys = keys[order[first[starts]]]

        def make_partition(values: Any, sizes: NDArray[np.int64], **facts: Any) -> HilbertPartition:
            return HilbertPartition(
                columns=tuple(_all_cuts(column) for column in source.columns),
                grid=grid,
                first_keys=first_keys,
                values=values,
                group_sizes=sizes,
                **{name: facts[name] for name in ("dropped", "limits", "categorical")},
            )

        return Divided(group, codes, collect(group, len(starts)), task.guide, make_partition)

    def join(self, partition: Any, leaf: NDArray[np.int32], counters: list[Counter]) -> NDArray[np.int32]:
        """Join a run that fails with the next, until all pass."""
        return join_runs(leaf, partition.n_groups, counters)


def join_runs(group: NDArray[np.int32], n_groups: int, counters: list[Counter]) -> NDArray[np.int32]:
    """Join neighboring groups until each run of them meets all criteria, and number the runs from 0.

    From the first group on, a run takes in the next group until it passes; what is left at the end is joined with
    the runs before it until it passes. All records together pass.

    Parameters
    ----------
    group : ndarray of int32
        Group of each record, in the order of the curve; negative for records left out.
    n_groups : int
        Groups without records, and without members of a population, belong to the run around them.
    counters : list of Counter

    Returns
    -------
    run_of_group : ndarray of int32
    """
    is_safe = np.logical_and.reduce([counter.are_safe(group, n_groups) for counter in counters])
    groups = collect(group, n_groups)
    totals = [_Total(counter, group, groups) for counter in counters]
    filled = np.flatnonzero(np.logical_or.reduce([groups.sizes > 0, *(total.has_members for total in totals)]))
    firsts: list[int] = []  # places in `filled` of the first group of each run
    first = 0
    for place, g in enumerate(filled):
        if place > first or not is_safe[g]:
            _add(totals, int(g), restart=place == first)
        if is_safe[g] if place == first else _all_pass(totals):
            firsts.append(first)
            first = place + 1
    if first < len(filled):
        stop = first
        while firsts:
            first = firsts.pop()
            for place in range(first, stop):
                _add(totals, int(filled[place]))
            if _all_pass(totals):
                break
            stop = first
        firsts.append(first)
    starts = np.zeros(n_groups, np.int32)
    starts[filled[firsts[1:]]] = 1
    return np.cumsum(starts, dtype=np.int32)


class _Total:
    """The counts of one criterion in a run to which groups are added."""

    def __init__(self, counter: Counter, group: NDArray[np.int32], groups: Groups) -> None:
        self.counter = counter
        self.groups = groups
        self.reference = counter.reference
        self.is_distinct = counter.criterion.counting == "distinct"
        self.counts = np.zeros(1, np.int64)
        self.run_seen = np.zeros(counter.n_values if self.is_distinct else 0, np.int64)
        self.run = 0
        self.presence: NDArray[np.int64] | None = None
        self.has_members = np.zeros(groups.n_groups, np.bool_)
        if counter.population is not None:
            self.presence = counter.count(group, groups.n_groups)
            self.has_members = self.presence[:, 1] > 0

    def restart(self) -> None:
        self.run += 1
        self.counts = np.zeros(1, np.int64)

    def add(self, g: int) -> None:
        rows = self.groups.order[self.groups.offsets[g] : self.groups.offsets[g + 1]]
        values = self.counter.value_of_row
        if self.presence is not None:
            self.counts = self.counts + self.presence[g]
        elif values is None:
            self.counts = self.counts + len(rows)
        elif self.is_distinct:
            new = np.unique(values[rows])
            new = new[self.run_seen[new] != self.run]
            self.run_seen[new] = self.run
            self.counts = self.counts + len(new)
        else:
            self.counts = self.counts + np.bincount(values[rows], minlength=self.counter.n_values)

    def passes(self) -> bool:
        return bool(self.counter.criterion.passes(self.counter.seen(self.counts[None, :]), self.reference)[0])


def _add(totals: list[_Total], g: int, *, restart: bool = False) -> None:
    for total in totals:
        if restart:
            total.restart()
        total.add(g)


def _all_pass(totals: list[_Total]) -> bool:
    return all(total.passes() for total in totals)


def _all_cuts(column: CodedColumn) -> PartitionColumn:
    """Return how values become codes: a cut after every bin but the last, so that codes are bins."""
    if not column.bins.is_ordered:
        return PartitionColumn.of_categories(column)
    cuts = cuts_after(column, range(column.bins.n_values - 1))
    return PartitionColumn(column.name, column.kind, column.moment, cuts, None)


HILBERT = NamedMethod(
    FACTS["hilbert"],
    HilbertAnonymizer,
)
