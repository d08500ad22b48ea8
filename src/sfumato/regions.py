# SPDX-License-Identifier: Apache-2.0
"""Regions: the description of each group by the values that several of its people share, and records drawn from it.

A representative is one point per group, and a model has to guess what lies between the points. A region says, for each
column, which values the people of a group have and how often, separately for each class of the target. Every number in
it counts at least `floor` people: values that fewer people of a group have are counted together with those of
neighbouring groups, and values that fewer people of the whole table have are not in it.

Records that are drawn from regions are for training a model and nothing else: they are not k-anonymous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.columns import GroupedValues, Moment
from sfumato.errors import ParameterError, named
from sfumato.labels import label_moment, label_number
from sfumato.partition.cells import Inside, everything
from sfumato.partition.group_summaries import Groups, collect
from sfumato.partition.phantom_search import NOTHING
from sfumato.partition.records import make_layout
from sfumato.partition.region_counts import ColumnCounts, count_column
from sfumato.partition.region_draws import Evidence, draw_column, look_up_column
from sfumato.representatives import CellColumn, shown_of
from sfumato.representatives.representative import values_of_bins
from sfumato.threads import map_in_threads

_DRAWN_AT_ONCE = 1 << 16  # records that share a random generator, so that the number of threads does not matter
_JUDGED = 10_000  # records with which weights are found
_HALF = 0.5  # of a person, added to counts before their logarithm is taken
_PULL = 1e-5
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class RegionColumn:
    """One column of all regions.

    Attributes
    ----------
    name : str
    values : ndarray
        The values that at least `floor` records have and that are counted, rising; categories by their index. One more
        stands for no value.
    missing : ndarray of bool
        Which of them stand for a missing value.
    categories : ndarray of object or None
    moment : {"date", "datetime", "duration", "time"} or None
    is_coarser : bool
        Whether a limit made the values coarser.
    counts : ColumnCounts
    inside : Inside
        The values that the tree leaves to each group; no others are drawn for it.
    """

    name: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    categories: NDArray[np.object_] | None
    moment: Moment | None
    is_coarser: bool
    counts: ColumnCounts
    inside: Inside

    def entries_of(self, row: int) -> Iterator[tuple[str, int]]:
        """Yield the values and intervals of a row of the counts as text, with the people who have them."""
        for entry in range(int(self.counts.start[row]), int(self.counts.stop[row])):
            first, width = int(self.counts.unit[entry]), int(self.counts.width[entry])
            label = self.label_of(first)
            if width > 1:
                label = f"{label} to {self.label_of(first + width - 1)}"
            yield label, int(self.counts.n_records[entry])

    def label_of(self, unit: int) -> str:
        """Return a value as text."""
        if self.missing[unit]:
            return "missing"
        value = self.values[unit]
        if self.categories is not None:
            return str(self.categories[value])
        return label_number(value) if self.moment is None else label_moment(value, self.moment)

    def written(self, units: NDArray[np.int32]) -> GroupedValues:
        """Return drawn values in the form in which a table writes them."""
        missing = self.missing if self.missing[units].any() else None  # else whole numbers would become fractions
        return GroupedValues(self.values, missing, units, self.categories, self.is_coarser, self.moment)


@dataclass(frozen=True, eq=False)
class Judge:
    """Weights with which what is counted becomes the class of a drawn record.

    Columns that say the same, such as marital status and relationship, must not count twice, and a few people of a
    group say less than all people. So each column has a weight, found with the true classes of the counted records.

    Attributes
    ----------
    columns : ndarray of float64
        Weight of the evidence of each column.
    group : float
        Weight of the shares of classes in a group.
    classes : ndarray of float64
        What is added for each class.
    """

    columns: NDArray[np.float64]
    group: float
    classes: NDArray[np.float64]

    def of_groups(self, n_in_class: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how likely each class is in each group before a value is seen, as a logarithm."""
        likely: NDArray[np.float64] = self.group * np.log(n_in_class + _HALF) + self.classes
        return likely


@dataclass(frozen=True, eq=False)
class Regions:
    """The values that the people of each group share.

    Attributes
    ----------
    columns : tuple of RegionColumn
        The quasi-identifiers.
    n_in_class : ndarray of int64, shape (groups, classes)
        People of each class of the target, which are described separately.
    judge : Judge
        How much each column says about the class of a record.
    floor : int
        The fewest people that a number counts.
    """

    columns: tuple[RegionColumn, ...]
    n_in_class: NDArray[np.int64]
    judge: Judge
    floor: int

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.n_in_class)

    def draw(
        self,
        group: NDArray[np.int32],
        classes: NDArray[np.int32],
        random_state: np.random.Generator,
        *,
        with_classes: bool = False,
        n_threads: int = 1,
    ) -> Drawn:
        """Draw one record for each of some records, from the region of its group and class.

        Parameters
        ----------
        group : ndarray of int32
        classes : ndarray of int32
        random_state : Generator
        with_classes : bool, default=False
            Whether to return how likely each class is for the drawn values. Without, a drawn record is meant to have
            the class of its record. Columns that say the same would then say it twice, so a column follows the
            record's class as often as its weight says, and else the class of anybody in the group.
        n_threads : int
        """
        groups = collect(group, self.n_groups)
        n_records, n_classes = len(groups.order), self.n_in_class.shape[1]
        drawn = np.empty((len(self.columns), n_records), np.int32)
        own = classes[groups.order]
        likely = (
            self.judge.of_groups(self.n_in_class)[group[groups.order]] if with_classes else np.zeros((n_records, 0))
        )
        runs = list(_runs(groups))
        generators = random_state.spawn(len(runs))

        def task(number: int) -> None:
            run = runs[number]
            part = slice(int(groups.offsets[run.start]), int(groups.offsets[run.stop]))
            offsets = groups.offsets[run.start : run.stop + 1] - part.start
            numbers = np.arange(run.start, run.stop)
            for j, column in enumerate(self.columns):
                picks = generators[number].random(part.stop - part.start)
                followed = own[part]
                if not with_classes and n_classes > 1:
                    followed = _often_own(followed, offsets, float(self.judge.columns[j]), generators[number])
                evidence = Evidence(self.n_in_class, self.n_in_class.sum(axis=0), float(self.judge.columns[j]))
                draw_column(
                    column.counts, column.inside, evidence, numbers, offsets, followed, picks, likely[part],
                    drawn[j, part],
                )  # fmt: skip

        map_in_threads(task, range(len(runs)), n_threads)
        place = np.empty(n_records, np.intp)
        place[groups.order] = np.arange(n_records)
        values = {c.name: c.written(drawn[j][place]) for j, c in enumerate(self.columns)}
        return Drawn(values, as_shares(likely[place]))

    def describe(self, group: int) -> str:
        """Return what is known of a group alone, as text: values and intervals with the people who have them.

        What is counted together with neighbouring groups is left out; a class of fewer people than the floor, too.
        """
        if not 0 <= group < self.n_groups:
            raise ParameterError(
                f"{named('group', group)}: expected a number from 0 to {self.n_groups - 1}, one of those that "
                "partition_.apply returns."
            )
        lines = [f"group {group}: {int(self.n_in_class[group].sum())} people"]
        for c, n_people in enumerate(self.n_in_class[group].tolist()):
            if n_people < self.floor:
                continue
            lines.append(f"  class {c}: {n_people} people")
            for column in self.columns:
                found = [f"{label} ({n})" for label, n in column.entries_of(group * len(self.n_in_class[group]) + c)]
                lines.append(f"    {column.name}: {', '.join(found) or 'nothing alone'}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Values of drawn records, for training a model.

    Attributes
    ----------
    columns : dict of str to GroupedValues
    classes : ndarray of float64, shape (records, classes)
        How likely each class is for its values; no classes if not asked for.
    """

    columns: dict[str, GroupedValues]
    classes: NDArray[np.float64]


def describe_regions(
    columns: Sequence[CodedColumn],
    group: NDArray[np.int32],
    n_groups: int,
    classes: NDArray[np.int32],
    n_classes: int,
    *,
    floor: int,
    cells: Sequence[CellColumn] | None = None,
    n_threads: int = 1,
) -> Regions:
    """Describe groups by the values that several of their people share.

    Parameters
    ----------
    columns : sequence of CodedColumn
        The quasi-identifiers, with the codes of all records.
    group : ndarray of int32
        Of every record.
    n_groups : int
    classes : ndarray of int32
        The class of every record; its target, or a range of it.
    n_classes : int
    floor : int
        The fewest people that a number counts.
    cells : sequence of CellColumn, optional
        What the tree leaves to each group. None: groups that are not boxes.
    n_threads : int
    """
    groups = collect(group, n_groups)
    own = classes[groups.order]
    layout = make_layout([column.bins for column in columns])
    shown = shown_of(columns, layout)

    def described(j: int) -> tuple[RegionColumn, NDArray[np.int32]]:
        column = columns[j]
        rows = slice(int(layout.offsets[j]), int(layout.offsets[j + 1]))
        unit_of_code, codes = _units(shown.run[rows], shown.may_show[rows])
        fallback = int(shown.fallback[j])
        units = unit_of_code[column.codes[groups.order]]
        n_ordered = len(np.unique(unit_of_code[: column.bins.n_values])) if column.bins.is_ordered else 0
        counts = count_column(
            units, len(codes), own, n_classes, groups.offsets, floor,
            len(codes) - 1 if fallback == NOTHING else int(unit_of_code[fallback]), n_ordered,
        )  # fmt: skip
        inside = everything(n_groups, len(codes)) if cells is None else _inside(cells[j], unit_of_code, len(codes))
        return _region_column(column, codes, counts, inside), units

    made = map_in_threads(described, range(len(columns)), n_threads)
    pair = group.astype(np.int64) * n_classes + classes
    n_in_class = np.bincount(pair, minlength=n_groups * n_classes).reshape(n_groups, n_classes)
    judge = _learn_judge([found for found, _ in made], [units for _, units in made], groups, own, n_in_class)
    return Regions(tuple(found for found, _ in made), n_in_class, judge, floor)


def _learn_judge(
    columns: Sequence[RegionColumn],
    units: Sequence[NDArray[np.int32]],
    groups: Groups,
    classes: NDArray[np.int32],
    n_in_class: NDArray[np.int64],
) -> Judge:
    """Find the weights under which the classes of counted records are most likely."""
    n_classes = n_in_class.shape[1]
    if n_classes == 1:
        return Judge(np.ones(len(columns)), 1.0, np.zeros(1))
    chosen = np.arange(0, groups.n_groups, max(1, len(groups.order) // _JUDGED))
    rows = np.concatenate([np.arange(groups.offsets[g], groups.offsets[g + 1]) for g in chosen])
    offsets = np.concatenate([[0], np.cumsum(groups.sizes[chosen])])
    own = classes[rows]
    evidence = Evidence(n_in_class, n_in_class.sum(axis=0), 1.0)
    others = n_in_class[np.repeat(chosen, groups.sizes[chosen])] - (np.arange(n_classes) == own[:, np.newaxis])
    features = [np.log(others + _HALF)]
    for column, unit in zip(columns, units, strict=True):
        features.append(look_up_column(column.counts, column.inside, evidence, chosen, offsets, own, unit[rows]))
    weights, biases = _most_likely(np.stack(features, axis=2), own)
    return Judge(weights[1:], float(weights[0]), biases)


def _most_likely(
    features: NDArray[np.float64], classes: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights of features, shape (records, classes, features), and a number per class: a logistic regression."""
    from scipy.optimize import minimize

    n_records, n_classes, n_features = features.shape
    flat = features.reshape(-1, n_features)
    is_own = np.arange(n_classes) == classes[:, np.newaxis]

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, biases = parameters[:n_features], parameters[n_features:]
        shares = as_shares((flat @ weights).reshape(n_records, n_classes) + biases)
        wrong = (shares - is_own) / n_records
        slope = np.concatenate([flat.T @ wrong.ravel(), wrong.sum(axis=0)])
        likelihood = np.log(np.maximum(shares[is_own], np.finfo(np.float64).tiny)).mean()
        # A little pull towards the middle keeps the numbers finite where a class is certain.
        return float(_PULL * parameters @ parameters - likelihood), slope + 2 * _PULL * parameters

    start = np.concatenate([np.ones(n_features), np.zeros(n_classes)])
    bounds = [(0.0, None)] * n_features + [(None, None)] * n_classes
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, tol=_TOLERANCE).x
    return found[:n_features], found[n_features:]


def as_shares(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares whose logarithms, up to a constant per record, are given."""
    if not logarithms.shape[1]:
        return logarithms
    shares = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    result: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return result


def _often_own(
    classes: NDArray[np.int32], offsets: NDArray[np.int64], weight: float, random_state: np.random.Generator
) -> NDArray[np.int32]:
    """Return each record's class with this probability, and else that of a random record of its group."""
    sizes = np.diff(offsets)
    somebody = np.repeat(offsets[:-1], sizes) + (random_state.random(len(classes)) * np.repeat(sizes, sizes)).astype(
        int
    )
    return np.where(random_state.random(len(classes)) < weight, classes, classes[somebody])


def _units(run: NDArray[np.int32], may_show: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number the values that may be named: codes that are published alike are one value.

    Returns the number of each code's value, the last for all that may not be named, and the first code of each value.
    """
    _, first, unit = np.unique(np.where(may_show, run, -1), return_index=True, return_inverse=True)
    n_hidden = int(not may_show.all())  # hidden codes come first
    codes = np.append(first[n_hidden:], NOTHING)
    unit_of_code = np.where(may_show, unit - n_hidden, len(codes) - 1)
    return unit_of_code.astype(np.int32), codes


def _inside(own: CellColumn, unit_of_code: NDArray[np.int32], n_units: int) -> Inside:
    """Return which values lie in the cell of each group; one that stands for several codes, if one of them does."""
    of_group, holds = own.inside()
    of_units = np.zeros((len(holds), n_units), np.bool_)
    for code, unit in enumerate(unit_of_code.tolist()):
        of_units[:, unit] |= holds[:, code]
    return Inside(of_group, of_units)


def _region_column(column: CodedColumn, codes: NDArray[np.int64], counts: ColumnCounts, inside: Inside) -> RegionColumn:
    """Return a column with what may be known of its values alone."""
    shown = values_of_bins(column.name, column.bins, codes)
    assert shown.values is not None and shown.missing is not None
    values, categories = shown.values, column.categories
    if categories is not None:
        own, values = np.unique(values, return_inverse=True)
        categories = categories[own] if len(categories) else categories
    is_coarser = column.width is not None
    return RegionColumn(column.name, values, shown.missing, categories, column.moment, is_coarser, counts, inside)


def _runs(groups: Groups) -> Iterator[slice]:
    """Cut groups into runs with about as many records each."""
    places = np.arange(0, len(groups.order), _DRAWN_AT_ONCE)
    edges = np.unique([*np.searchsorted(groups.offsets, places), groups.n_groups])
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        yield slice(a, b)
