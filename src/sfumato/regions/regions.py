# SPDX-License-Identifier: Apache-2.0
"""What is known of all groups, as counts; records are drawn from it to train models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import Column, GroupedValues, Moment
from sfumato.errors import GuaranteeError, ParameterError, named
from sfumato.frames import Table
from sfumato.labels import label_moment, label_number
from sfumato.partition.cells import Inside, everything
from sfumato.partition.group_summaries import collect
from sfumato.partition.region_counts import ColumnCounts
from sfumato.partition.region_draws import (
    Drawing,
    Whole,
    commonest_values,
    draw_column,
    turns_of,
    whole_table,
)
from sfumato.regions.target import RegionTarget
from sfumato.regions.weights import Weights, as_shares
from sfumato.threads import map_in_threads, stretches

_SEEDS = np.iinfo(np.uint64).max
_DRAWN_AT_ONCE = 1 << 16  # records that share a random generator, so that the number of threads does not matter


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
    fallback : int
        The value to draw where nothing is counted.
    reach : ndarray of int64, shape (values, 2), or None
        Of an ordered column, if only values in the cells of groups are drawn: the codes of the tree that each stands
        for, from the first to the last.
    inside : Inside or None
        The values that the tree leaves to each group; no others are drawn for it. None: all.
    """

    name: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    categories: NDArray[np.object_] | None
    moment: Moment | None
    is_coarser: bool
    counts: ColumnCounts
    fallback: int
    reach: NDArray[np.int64] | None = None
    inside: Inside | None = None

    @cached_property
    def whole(self) -> Whole:
        """The values in the whole table, as the counts have them."""
        return whole_table(self.counts, self.fallback)

    def drawing(self, weight: float, whole_weight: float) -> Drawing:
        """Return what kernels need to draw from the column, or to look up what its values say."""
        inside = self.inside or everything(len(self.counts.n_from_pools), len(self.values))
        return Drawing(self.counts, self.whole, inside, weight, whole_weight)

    def entries_of(self, row: int) -> Iterator[tuple[str, int]]:
        """Yield the values and intervals of a row of the counts as text, with the people who have them."""
        for entry in range(int(self.counts.start[row]), int(self.counts.start[row + 1])):
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

    @cached_property
    def commonest(self) -> NDArray[np.int32]:
        """The value that most people of each group are expected to have."""
        return commonest_values(self.drawing(1.0, 0.0))

    def known(self, column: Column, group: Callable[[], NDArray[np.int32]] | None) -> GroupedValues | None:
        """Return a column of later records with categories that are never drawn replaced; None if it has none.

        Each becomes the commonest value of the record's group. A model that learned from drawn records has never seen
        others, and may refuse them or take them for whatever its encoding puts beside them.
        """
        if self.categories is None or column.categories is None:
            return None
        units = {self.categories[v]: u for u, v in enumerate(self.values.tolist()) if self._is_drawn[u]}
        unit_of = np.array([units.get(value, -1) for value in column.categories.tolist()], np.int32)
        if not len(unit_of) or (unit_of >= 0).all() or not self._is_drawn.any():
            return None
        unit = unit_of[column.values]
        if column.missing is not None:
            unit[column.missing] = len(self.values)
        is_unknown = unit < 0
        anywhere = int((self.whole.share.sum(axis=0) * self._is_drawn).argmax())
        unit[is_unknown] = anywhere if group is None else self.commonest[group()[is_unknown]]
        missing = np.append(self.missing, True)
        return GroupedValues(np.append(self.values, 0), missing if missing[unit].any() else None, unit, self.categories)

    @cached_property
    def _is_drawn(self) -> NDArray[np.bool_]:
        """Which values can be drawn: those that are counted somewhere, and not missing."""
        return np.asarray((self.whole.share > 0).any(axis=0) & ~self.missing)

    def written(self, units: NDArray[np.integer[Any]]) -> GroupedValues:
        """Return drawn values in the form in which a table writes them.

        Where no number is shared by enough people, everybody gets 0: many models take no missing values.
        """
        if self.categories is None and self.missing.all() and not self.counts.whole.any():
            return GroupedValues(np.zeros_like(self.values), None, units, None, self.is_coarser, self.moment)
        # Whole numbers would become fractions beside a missing one.
        possible = np.flatnonzero((self.whole.share > 0).any(axis=0) & self.missing)
        missing = self.missing if any((units == unit).any() for unit in possible.tolist()) else None
        return GroupedValues(self.values, missing, units, self.categories, self.is_coarser, self.moment)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Values of drawn records, for training a model. They cannot be read as a table, and cannot be saved.

    Attributes
    ----------
    columns : dict of str to GroupedValues
    group : ndarray of int32
        Of each record.
    shares : ndarray of float64, shape (records, classes)
        How likely each class is for its values; no columns if that was not asked for.
    numbers : ndarray of float64, shape (records, outputs)
        The target that is expected for its values; no columns if that was not asked for.
    """

    columns: dict[str, GroupedValues]
    group: NDArray[np.int32]
    shares: NDArray[np.float64]
    numbers: NDArray[np.float64]

    def _refuse(self, *_: Any, **__: Any) -> Any:
        """Raise GuaranteeError: drawn records are not k-anonymous, so they become no table and no file."""
        raise GuaranteeError(
            "records drawn from regions as a table or file: expected them inside the fit of a model only, since they "
            "are not k-anonymous. Release a table with an anonymizer and release."
        )

    # How pandas, polars, pyarrow and numpy ask for a table, and pickle for bytes.
    __array__ = __dataframe__ = __arrow_c_stream__ = __iter__ = __len__ = __getitem__ = __reduce__ = _refuse


@dataclass(frozen=True, eq=False)
class Regions:
    """The values that the people of each group share.

    Attributes
    ----------
    columns : tuple of RegionColumn
        The quasi-identifiers.
    sizes : ndarray of int64
        People of each group.
    target : RegionTarget
    weights : Weights or None
        How much each column says about the target of a record.
    floor : int
        The fewest people that a number counts.
    """

    columns: tuple[RegionColumn, ...]
    sizes: NDArray[np.int64]
    target: RegionTarget
    weights: Weights | None
    floor: int

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.sizes)

    def with_weights(self, weights: Weights) -> Regions:
        """Return the same regions with the weights of their columns."""
        return replace(self, weights=weights)

    def with_counts(self, counts: NDArray[np.int64], labels: NDArray[Any]) -> Regions:
        """Return the same regions with other numbers of people, such as the noisy ones of a private release.

        Parameters
        ----------
        counts : ndarray of int64, shape (groups, labels)
        labels : ndarray
            Those of the regions, in the order of the counts.
        """
        # Regions sort their labels. Which groups are small, and so what lies inside them, stays as it was.
        n_in_class = counts[:, np.argsort(labels)].astype(np.float64)
        return replace(self, sizes=counts.sum(axis=1), target=replace(self.target, n_in_class=n_in_class, coarse=None))

    def draw(self, random_state: np.random.Generator, *, n_records: int | None = None, n_threads: int = 1) -> Drawn:
        """Draw records with what their values say about the target, in a random order.

        Parameters
        ----------
        random_state : Generator
        n_records : int, optional
            How many; None: one for each person.
        n_threads : int
        """
        whole = np.concatenate([[0], np.cumsum(self.sizes)])
        n_people = int(whole[-1])
        wanted = n_people if n_records is None else n_records
        offsets = (whole * wanted) // n_people if wanted != n_people else whole
        group = np.repeat(np.arange(self.n_groups, dtype=np.int32), np.diff(offsets))
        classes = self._drawn_classes(offsets, random_state)

        def shuffled() -> NDArray[np.int32]:
            place = np.arange(len(group), dtype=np.int32)
            random_state.shuffle(place)
            return _inverted(place)

        return self._drawn(group, offsets, classes, shuffled, random_state, speaks=True, n_threads=n_threads)

    def draw_beside(
        self,
        group: NDArray[np.int32],
        classes: NDArray[np.int32],
        random_state: np.random.Generator,
        *,
        n_threads: int = 1,
    ) -> Drawn:
        """Draw one record for each of some records, of its group and meant to have its class.

        Columns that say the same would then say it twice, so a column follows the record's class as often as its
        weights say, and else the class of anybody in the group.
        """
        groups = collect(group, self.n_groups)
        order = groups.order
        return self._drawn(
            group[order], groups.offsets, classes[order], lambda: _inverted(order), random_state,
            speaks=False, n_threads=n_threads,
        )  # fmt: skip

    def _drawn_classes(self, offsets: NDArray[np.int64], random_state: np.random.Generator) -> NDArray[np.int32]:
        """Return classes for the records of each group, as many of each as people have it."""
        summed = np.cumsum(self.target.n_in_class, axis=1)
        n_drawn = np.diff(offsets)[:, np.newaxis]
        # Where records are fewer than people, chance rounds the number of each class up or down.
        start = random_state.random((self.n_groups, 1)) * summed[:, -1:]
        n_people = np.maximum(summed[:, -1:], np.finfo(np.float64).tiny)  # of no record of an empty group
        stops = np.minimum((summed * n_drawn + start) // n_people, n_drawn).astype(np.int64)
        n_each = np.diff(stops, axis=1, prepend=0)
        return np.repeat(np.tile(np.arange(n_each.shape[1], dtype=np.int32), self.n_groups), n_each.reshape(-1))

    def _drawn(
        self,
        group: NDArray[np.int32],
        offsets: NDArray[np.int64],
        classes: NDArray[np.int32],
        arrange: Callable[[], NDArray[np.integer[Any]]],
        random_state: np.random.Generator,
        *,
        speaks: bool,
        n_threads: int,
    ) -> Drawn:
        """Draw records group after group, and bring them into the order that `arrange` returns."""
        assert self.weights is not None
        weights, target = self.weights, self.target
        n_records, n_classes, n_outputs = len(group), target.n_in_class.shape[1], target.means.shape[1]
        units = np.empty((len(self.columns), n_records), np.uint16)
        said = np.zeros((n_records, (n_outputs or n_classes - 1) if speaks else 0))
        of_columns = zip(self.columns, weights.columns.tolist(), weights.whole.tolist(), strict=True)
        drawings = [column.drawing(here, everywhere) for column, here, everywhere in of_columns]
        runs = runs_of(offsets, _DRAWN_AT_ONCE)

        def draw_run(run: slice, generator: np.random.Generator) -> None:
            part = slice(int(offsets[run.start]), int(offsets[run.stop]))
            own = offsets[run.start : run.stop + 1] - part.start
            turns = turns_of(own, classes[part])
            for j, drawing in enumerate(drawings):
                seed = int(generator.integers(_SEEDS, dtype=np.uint64))
                if not speaks and n_classes > 1:
                    turns = turns_of(
                        own, _often_own(classes[part], own, drawing.weight + drawing.whole_weight, generator)
                    )
                draw_column(drawing, np.arange(run.start, run.stop), turns, seed, said[part], units[j, part])

        tasks: list[Callable[[], Any]] = [arrange]
        tasks += [partial(draw_run, *own) for own in zip(runs, random_state.spawn(len(runs)), strict=True)]
        source = map_in_threads(lambda task: task(), tasks, n_threads)[0]

        # Reading from all over one column, which fits into the cache, is several times as fast as writing rows.
        def write(j: int) -> GroupedValues:
            return self.columns[j].written(units[j].take(source))

        written = map_in_threads(write, range(len(self.columns)), n_threads)
        groups = np.empty(n_records, np.int32)
        shares = np.empty((n_records, n_classes if speaks and n_classes > 1 else 0))
        numbers = np.empty((n_records, n_outputs if speaks else 0))
        of_group = weights.of_groups(target.n_in_class)

        def speak(part: slice) -> None:
            groups[part] = in_group = group.take(source[part])
            own = said.take(source[part], axis=0)
            if numbers.shape[1]:
                numbers[part] = target.means.take(in_group, axis=0) + own
            elif shares.shape[1]:
                likely = of_group.take(in_group, axis=0)
                likely[:, 1:] += own
                shares[part] = as_shares(likely)

        map_in_threads(speak, stretches(n_records, len(runs)), n_threads)
        columns = {column.name: own for column, own in zip(self.columns, written, strict=True)}
        return Drawn(columns, groups, shares, numbers)

    def known_values(self, table: Table, group: Callable[[], NDArray[np.int32]] | None) -> dict[str, GroupedValues]:
        """Return new values for the columns of later records that have categories which are never drawn.

        Parameters
        ----------
        table : Table
        group : callable or None
            Returns the group of every record; called if there are such categories. None: groups of later records are
            not known.
        """
        own = [column for column in self.columns if column.categories is not None and column.name in table.names]
        found = {column.name: column.known(table.column(column.name), group) for column in own}
        return {name: new for name, new in found.items() if new is not None}

    def describe(self, group: int) -> str:
        """Return what is known of a group alone, as text: values and intervals with the people who have them.

        What is counted together with neighboring groups is left out, and so is a class that has none in multiples of
        the floor.
        """
        if not 0 <= group < self.n_groups:
            raise ParameterError(
                f"{named('group', group)}: expected a number from 0 to {self.n_groups - 1}, one of those that "
                "partition_.apply returns."
            )
        means = ", ".join(f"{mean:.6g}" for mean in self.target.means[group].tolist())
        lines = [f"group {group}: {int(self.sizes[group])} people" + (f", target {means} on average" if means else "")]
        labels, coarse = self.target.labels, self.target.coarse
        n_in_class = self.target.n_in_class[group] if coarse is None else coarse[group]
        if len(n_in_class) > 1 and (n_in_class < self.floor).all():
            lines.append(f"  no class of {self.floor} people or more: all are counted with neighboring groups")
        for c, n_people in enumerate(n_in_class.tolist()):
            indent = ""
            if len(n_in_class) > 1:
                if n_people < self.floor:
                    continue
                label = c if labels is None else ", ".join(map(str, np.atleast_1d(labels[c]).tolist()))
                lines.append(f"  class {label}: about {n_people:.0f} people")
                indent = "  "
            for column in self.columns:
                found = [f"{label} ({n})" for label, n in column.entries_of(group * len(n_in_class) + c)]
                lines.append(f"{indent}  {column.name}: {', '.join(found) or 'nothing alone'}")
        return "\n".join(lines)


def _often_own(
    classes: NDArray[np.int32], offsets: NDArray[np.int64], weight: float, random_state: np.random.Generator
) -> NDArray[np.int32]:
    """Return each record's class with this probability, and else that of a random record of its group."""
    sizes = np.diff(offsets)
    somebody = np.repeat(offsets[:-1], sizes) + (random_state.random(len(classes)) * np.repeat(sizes, sizes)).astype(
        int
    )
    return np.where(random_state.random(len(classes)) < weight, classes, classes[somebody])


def _inverted(place: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """Return which record comes to each place, if `place` has the place that each record comes to."""
    source = np.empty(len(place), np.int32)
    source[place] = np.arange(len(place), dtype=np.int32)
    return source


def runs_of(offsets: NDArray[np.int64], n_at_once: int) -> list[slice]:
    """Cut groups into runs with about as many records each."""
    places = np.arange(offsets[0], offsets[-1], n_at_once)
    edges = np.unique([*np.searchsorted(offsets, places), len(offsets) - 1])
    return [slice(a, b) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
