# SPDX-License-Identifier: Apache-2.0
"""The hierarchy of one column: every value, the coarser labels above it, and one label above all.

`CodePaths` is what the engine asks of it: the labels above the codes of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, ParameterError, named
from sfumato.hierarchies.rows import (
    ANY,
    check_parents,
    checked_rows,
    is_number,
    is_whole,
    rows_of_intervals,
    rows_of_mapping,
    rows_of_prefixes,
    text_of,
)
from sfumato.labels import label_number


@dataclass(frozen=True, repr=False)
class Hierarchy:
    """The coarser labels of every value of a column.

    Parameters
    ----------
    rows : sequence of sequences
        One row per value: the value, then its label at each coarser level. Where the last labels differ, a level
        ``"*"`` is added above them. Numbers and booleans are kept as their text.

    Attributes
    ----------
    values : tuple of str
        The values, in the order given; the leaves of the tree.
    labels : tuple of tuple of str
        The different labels of each level, in the order in which they first occur; level 0 has the values.
    codes : ndarray of int32, shape (values, levels)
        Where a value's label at a level stands in `labels`.
    leaf_counts : tuple of ndarray of int64
        How many values each label of a level stands for.

    Raises
    ------
    InputError
        When rows have different lengths, a value has two rows, a label is empty, or a label has two parents.

    Examples
    --------
    >>> hierarchy = Hierarchy([("nurse", "health", "*"), ("surgeon", "health", "*"), ("cook", "food", "*")])
    >>> hierarchy.lowest_common_ancestor(["nurse", "surgeon"]), hierarchy.n_leaves("health")
    ('health', 2)
    """

    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", checked_rows(self.rows))
        check_parents(self.labels, self.codes)

    def __repr__(self) -> str:
        return f"Hierarchy of {self.n_values} values with {self.n_levels} levels"

    # -- building --------------------------------------------------------------------------------------------

    @classmethod
    def from_mapping(cls, mapping: Mapping[Any, Any]) -> Hierarchy:
        """Build a hierarchy from nested mappings; the innermost hold lists (or sets) of values.

        A value that lies less deep than others stands for itself at the levels between. The level ``"*"`` is added
        above the outermost labels.

        Examples
        --------
        >>> hierarchy = Hierarchy.from_mapping({"Europe": {"Alps": ["CH", "AT"], "Iberia": ["ES"]}, "Asia": ["JP"]})
        >>> hierarchy.path("JP")
        ('JP', 'JP', 'Asia', '*')
        """
        return cls(rows_of_mapping(mapping))

    @classmethod
    def from_intervals(cls, values: Iterable[Any], widths: Sequence[Any], *, origin: Any = 0) -> Hierarchy:
        """Build a hierarchy of numbers from the width of the intervals of each level.

        Parameters
        ----------
        values : iterable of numbers
            Every number of the domain, such as ``range(0, 120)``: also those that no record has.
        widths : sequence of numbers
            Width of the intervals of each level above the numbers themselves, each a multiple of the one before.
        origin : number, default=0
            Where one interval of every level starts.

        Notes
        -----
        Whole numbers have labels such as ``"30-34"``, others ``"[30, 35)"``: 30 and more, less than 35.

        Examples
        --------
        >>> Hierarchy.from_intervals(range(100), [5, 20]).path(33)
        ('33', '30-34', '20-39', '*')
        """
        return cls(rows_of_intervals(values, widths, origin))

    @classmethod
    def from_prefixes(cls, values: Iterable[Any], lengths: Sequence[int] | None = None) -> Hierarchy:
        """Build a hierarchy of text, such as postcodes, from how many first characters each level keeps.

        Parameters
        ----------
        values : iterable of str
            Every text of the domain.
        lengths : sequence of int, optional
            Characters kept at each level above the text itself, falling. None: one less at every level.

        Examples
        --------
        >>> Hierarchy.from_prefixes(["8001", "8005", "3011"], [2, 1]).path("8005")
        ('8005', '80*', '8*', '*')
        """
        return cls(rows_of_prefixes(values, lengths))

    # -- reading off -----------------------------------------------------------------------------------------

    @property
    def n_values(self) -> int:
        """How many values the domain has."""
        return len(self.rows)

    @property
    def n_levels(self) -> int:
        """How many levels there are, the values themselves and the top included."""
        return len(self.rows[0])

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The values, in the order given."""
        return tuple(row[0] for row in self.rows)

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The different labels of each level."""
        return tuple(tuple(dict.fromkeys(row[level] for row in self.rows)) for level in range(self.n_levels))

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """Where each value's label at each level stands in `labels`."""
        codes = np.empty((self.n_values, self.n_levels), np.int32)
        for level, labels in enumerate(self.labels):
            place = {label: code for code, label in enumerate(labels)}
            codes[:, level] = [place[row[level]] for row in self.rows]
        return codes

    @cached_property
    def leaf_counts(self) -> tuple[NDArray[np.int64], ...]:
        """How many values each label of each level stands for."""
        return tuple(
            np.bincount(self.codes[:, level], minlength=len(labels)).astype(np.int64)
            for level, labels in enumerate(self.labels)
        )

    @cached_property
    def _place(self) -> dict[str, int]:
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def _place_of_number(self) -> dict[str, int]:
        """Where values stand that are numbers, however they are spelled: "7.0" is found as 7."""
        places: dict[str, int] = {}
        for place, value in enumerate(self.values):
            try:
                places.setdefault(label_number(float(value)), place)
            except ValueError:
                continue
        return places

    def find(self, values: Iterable[Any]) -> NDArray[np.int64]:
        """Return where each value stands in `values`; -1 for those the hierarchy does not have."""
        found = [self._find(value) for value in values]
        return np.array(found, np.int64)

    def _find(self, value: Any) -> int:
        place = self._place.get(text_of(value), -1)
        if place < 0 and is_number(value):
            place = self._place_of_number.get(label_number(float(value)), -1)
        return place

    def code_paths(self, places: NDArray[np.int64], *, has_missing: bool) -> CodePaths:
        """Return the labels above some of the values, given where they stand, and above missing where it occurs.

        Missing is a value more of the domain that has nothing in common with others below the top.
        """
        labels, widths = self.codes[places], np.zeros((len(places), self.n_levels))
        n_domain = self.n_values + int(has_missing)
        for level, leaves in enumerate(self.leaf_counts[:-1]):
            widths[:, level] = (leaves[labels[:, level]] - 1) / max(1, n_domain - 1)
        widths[:, -1] = float(n_domain > 1)
        if has_missing:
            beyond = [*(len(own) for own in self.labels[:-1]), 0]
            labels = np.vstack([labels, np.array(beyond, np.int32)])
            widths = np.vstack([widths, np.append(np.zeros(self.n_levels - 1), widths.max(initial=1.0))])
        return CodePaths(labels, widths, self.labels)

    def tree_order(self, places: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the order in which the values at some places lie side by side in the tree."""
        return np.lexsort(self.codes[places].T)  # by the last level first, which is the top

    def path(self, value: Any) -> tuple[str, ...]:
        """Return a value and all labels above it, from fine to coarse."""
        return self.rows[self._required([value])[0]]

    def label(self, value: Any, level: int) -> str:
        """Return the label of a value at a level."""
        return self.path(value)[self._checked_level(level)]

    def lowest_common_level(self, values: Iterable[Any]) -> int:
        """Return the lowest level at which all the values have one label."""
        places = self._required(values)
        if not len(places):
            raise ParameterError("no values: expected at least one. Only values have a common ancestor.")
        codes = self.codes[places]
        return int(np.argmax((codes == codes[0]).all(axis=0)))  # the top is common to all, so there is one

    def lowest_common_ancestor(self, values: Iterable[Any]) -> str:
        """Return the finest label that stands for all the values, and perhaps for others.

        Examples
        --------
        >>> Hierarchy.from_intervals(range(100), [5, 20]).lowest_common_ancestor([21, 38])
        '20-39'
        """
        listed = list(values)
        return self.label(listed[0], self.lowest_common_level(listed)) if listed else ANY

    def level_of(self, label: Any) -> int:
        """Return the lowest level on which a label stands.

        Raises
        ------
        ParameterError
            When the hierarchy has no such label, or when it stands for different values at different levels.
        """
        return self._find_label(label)[0]

    def n_leaves(self, label: Any, level: int | None = None) -> int:
        """Return how many values a label stands for; `level` says which is meant where it occurs on several."""
        if level is None:
            return self._find_label(label)[1]
        labels = self.labels[self._checked_level(level)]
        if text_of(label) not in labels:
            raise ParameterError(f"level {level} has no such label: expected one of its {len(labels)} labels.")
        return int(self.leaf_counts[level][labels.index(text_of(label))])

    @cached_property
    def _level_and_leaves(self) -> dict[str, tuple[int, int] | None]:
        found: dict[str, tuple[int, int] | None] = {}
        leaves_of: dict[str, frozenset[int]] = {}
        for level, labels in enumerate(self.labels):
            for code, label in enumerate(labels):
                leaves = frozenset(np.flatnonzero(self.codes[:, level] == code).tolist())
                if label not in found:
                    found[label], leaves_of[label] = (level, len(leaves)), leaves
                elif leaves != leaves_of[label]:
                    found[label] = None
        return found

    def _find_label(self, label: Any) -> tuple[int, int]:
        text = text_of(label)
        if text not in self._level_and_leaves:
            raise ParameterError(
                f"a label that is on none of the {self.n_levels} levels: expected a value or a label of the hierarchy. "
                "Its labels are in .labels, level by level."
            )
        found = self._level_and_leaves[text]
        if found is None:
            raise ParameterError(
                "a label that stands for different values at different levels: expected one meaning per label. Pass "
                "level=, or rename the label on one of the levels."
            )
        return found

    def _required(self, values: Iterable[Any]) -> NDArray[np.int64]:
        places = self.find(values)
        n_absent = int((places < 0).sum())
        if n_absent:
            raise InputError(
                f"{n_absent} of {len(places)} values are not in the hierarchy: expected each among its "
                f"{self.n_values} values. Add a row for them."
            )
        return places

    def _checked_level(self, level: int) -> int:
        if not is_whole(level) or not 0 <= level < self.n_levels:
            raise ParameterError(f"{named('level', level)}: expected a level from 0 to {self.n_levels - 1}.")
        return int(level)


@dataclass(frozen=True, eq=False)
class CodePaths:
    """The labels above each code of a column whose codes are in the order of the tree.

    Attributes
    ----------
    labels : ndarray of int32, shape (codes, levels)
        Number of a code's label at each level, from fine to coarse; the last level is one label.
    widths : ndarray of float64, shape (codes, levels)
        (values under the label - 1) / (values of the domain - 1).
    texts : tuple of tuple of str
        The labels of each level.
    """

    labels: NDArray[np.int32]
    widths: NDArray[np.float64]
    texts: tuple[tuple[str, ...], ...]

    def group_levels(
        self, lowest: NDArray[np.int32], highest: NDArray[np.int32], n_missing: NDArray[np.int64]
    ) -> NDArray[np.intp]:
        """Return the level of the lowest common ancestor of each group, given its first and last code with a value.

        The first code is negative where all are missing; what holds values and missing has the top in common.
        """
        levels = (self.labels[lowest] == self.labels[highest]).argmax(axis=1)
        levels[(n_missing > 0) & (lowest >= 0)] = self.labels.shape[1] - 1
        return np.where(lowest < 0, 0, levels)

    def group_widths(
        self, lowest: NDArray[np.int32], highest: NDArray[np.int32], n_missing: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the width of the label of each group; 0 where all are missing."""
        widths = self.widths[lowest, self.group_levels(lowest, highest, n_missing)]
        return np.where(lowest < 0, 0.0, widths)

    def group_labels(
        self, lowest: NDArray[np.int32], highest: NDArray[np.int32], n_missing: NDArray[np.int64]
    ) -> list[str | None]:
        """Return the label of each group: its lowest common ancestor; None where all are missing."""
        levels = self.group_levels(lowest, highest, n_missing)
        return [
            None if low < 0 else self.texts[level][self.labels[low, level]]
            for low, level in zip(lowest.tolist(), levels.tolist(), strict=True)
        ]
