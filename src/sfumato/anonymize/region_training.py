# SPDX-License-Identifier: Apache-2.0
"""Train a model on records that are drawn from the regions of a fitted anonymizer; called by ``estimators``.

Drawn records exist inside this module only: they are handed to the `fit` of the model and to nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.guide_from_target import fit_weighted, takes_weights
from sfumato.arguments import as_table_like, check_choice, check_integer
from sfumato.columns import GroupedValues
from sfumato.criteria import Criterion
from sfumato.criteria.base import asks_records_alone
from sfumato.errors import InputError, ParameterError
from sfumato.frames import read_table
from sfumato.frames.building import FrameKind, build_frame, kind_of_frame
from sfumato.regions import Drawn, Regions

_LEAST_FLOOR, _MOST_FLOOR = 20, 50
"""Of the default: with less than 20, or than 50 for k above it, attackers tell more about who trained a model than from
points."""

_LEAST_SHARE = 0.02
"""Classes that are less likely than this for a drawn record are left out of it."""


def chosen_floor(floor: int | None, k: int) -> int:
    """Return the fewest people that a number of a region counts, checked; None: k, but at least 20 and at most 50."""
    if floor is None:
        return min(max(k, _LEAST_FLOOR), _MOST_FLOOR)
    check_integer("floor", floor, 1)
    return floor


def why_no_regions(criteria: Sequence[Criterion]) -> str | None:
    """Return why an anonymizer with such criteria has no regions; None if it may have them."""
    if all(map(asks_records_alone, criteria)):
        return None
    return "criteria on persons or sensitive values, which hold for groups and not for what is counted inside them"


def train_on_regions(
    estimator: Any,
    regions: Regions,
    write: Callable[[dict[str, GroupedValues]], Any],
    mean_weights: NDArray[np.float64] | None,
    random_state: np.random.Generator,
    *,
    n_records: int | None = None,
    n_threads: int = 1,
) -> Any:
    """Fit an estimator on records drawn from regions, which know the target.

    Parameters
    ----------
    estimator : estimator
    regions : Regions
    write : callable
        Makes a frame of drawn columns, as the estimator takes it.
    mean_weights : ndarray of float64, shape (groups, classes), or None
        What a record of each group and class weighs.
    random_state : Generator
    n_records : int, optional
        How many records are drawn; None: one for each person.
    n_threads : int
    """
    target = regions.target
    drawn = regions.draw(random_state, n_records=n_records, n_threads=n_threads)
    warn_if_alike(drawn, regions)
    records = write(drawn.columns)
    weight = None if mean_weights is None else mean_weights[drawn.group]
    if target.labels is None:
        numbers = drawn.numbers[:, 0] if target.is_flat else drawn.numbers
        return fit_weighted(estimator, records, numbers, None if weight is None else weight[:, 0])
    share = drawn.shares if drawn.shares.shape[1] else np.ones((len(drawn.group), 1))  # nothing says which of one class
    if weight is not None:  # a class weighs what the people weigh who have it
        share = share * weight
    if not takes_weights(estimator):
        chosen = drawn_classes(share, random_state)
        return fit_weighted(estimator, records, target.labels[chosen], None)
    total = share.sum(axis=1, keepdims=True)
    is_likely = share >= _LEAST_SHARE * total
    is_likely[share.argmax(axis=0), np.arange(share.shape[1])] = True  # no class is forgotten
    share = np.where(is_likely, share, 0.0)
    share *= total / _positive(share.sum(axis=1, keepdims=True))
    row, chosen = np.nonzero(is_likely)
    return fit_weighted(estimator, _rows(records, row), target.labels[chosen], share[row, chosen])


def frame_of_regions(regions: Regions, frame: Any) -> FrameKind:
    """Return the kind of frame that an estimator is trained on without records.

    Parameters
    ----------
    regions : Regions
    frame : str or table
        A library, or a table of the same kind.
    """
    names = [column.name for column in regions.columns]
    if isinstance(frame, str):
        check_choice("frame", frame, ("pandas", "polars", "pyarrow", "numpy"))
        return FrameKind(frame, {name: name for name in names}, frozenset())
    frame = as_table_like(frame)
    kind = kind_of_frame(frame, read_table(frame))
    absent = [name for name in names if name not in kind.labels]
    if absent:
        raise InputError(
            f"frame has no column {absent[0]!r}: expected a table with all {len(names)} columns of the regions. Pass "
            "one like those that are predicted."
        )
    return replace(kind, labels={name: label for name, label in kind.labels.items() if name in names})


def framed(kind: FrameKind) -> Callable[[dict[str, GroupedValues]], Any]:
    """Return a function that makes a frame of drawn columns, for an estimator that is trained without records."""
    names = list(kind.labels)

    def write(columns: dict[str, GroupedValues]) -> Any:
        return build_frame(kind, [(name, name, columns[name]) for name in names], len(columns[names[0]].group))

    return write


def checked_regions(partition: Any, *, is_number: bool) -> Regions:
    """Return the regions of a partition; raise ParameterError if there are none, or none for such a model."""
    regions = getattr(partition, "regions", None)
    if not isinstance(regions, Regions) or not regions.target.is_known:
        raise ParameterError(
            f"a {type(partition).__name__} without regions of a target: expected one that was fitted with target= by "
            "sfumato.parquet.fit_transform, or by an estimator, and if it was saved, with two classes of at least as "
            "many people as the floor. Pass model.anonymizer_.partition_."
        )
    if is_number != (regions.target.labels is None):
        given, expected = ("classes", "numbers") if is_number else ("numbers", "classes")
        raise ParameterError(
            f"regions of a target with {given}: expected {expected}. Take AnonymizedClassifier for classes and "
            "AnonymizedRegressor for numbers."
        )
    if not regions.sizes.any():
        raise InputError(
            "the regions count no people: expected at least one. Noise can empty a release of few people; then raise "
            "epsilon."
        )
    return regions


def mean_weights(
    regions: Regions, group: NDArray[np.int32], classes: NDArray[np.int32], weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return the mean weight of each group's records of a class; that of all where fewer than the floor have it."""
    if weight is None:
        return None
    n_classes = regions.target.n_in_class.shape[1]
    shape = regions.n_groups, n_classes
    cells = group.astype(np.int64) * n_classes + classes
    n_records = np.bincount(cells, minlength=regions.n_groups * n_classes).reshape(shape)
    summed = np.bincount(cells, weights=weight, minlength=regions.n_groups * n_classes).reshape(shape)
    whole = summed.sum(axis=0) / np.maximum(n_records.sum(axis=0), 1)
    means: NDArray[np.float64] = np.where(n_records >= regions.floor, summed / np.maximum(n_records, 1), whole)
    return means


def drawn_classes(share: NDArray[np.float64], random_state: np.random.Generator) -> NDArray[np.intp]:
    """Return a class for each record, drawn by its shares; a class that nobody got goes to the likeliest record."""
    summed = np.cumsum(share, axis=1)
    picks = random_state.random(len(share)) * summed[:, -1]
    chosen: NDArray[np.intp] = np.minimum((summed <= picks[:, np.newaxis]).sum(axis=1), share.shape[1] - 1)
    for absent in np.setdiff1d(np.arange(share.shape[1]), chosen):
        chosen[share[:, absent].argmax()] = absent
    return chosen


def warn_if_alike(drawn: Drawn, regions: Regions) -> None:
    """Warn if all drawn records are alike, or their targets: a model learns nothing from them."""
    said = drawn.numbers if drawn.numbers.shape[1] else drawn.shares
    has_one_target = said.shape[1] > 0 and bool((said == said[0]).all())
    if has_one_target or all((column.group == column.group[0]).all() for column in drawn.columns.values()):
        whose = "" if regions.target.labels is None else " of one class"
        warnings.warn(
            f"what {regions.floor} people{whose} share is the same for everybody: the model learns nothing from the "
            "quasi-identifiers. Pass a smaller floor, or learn_from='points'.",
            UserWarning,
            stacklevel=5,
        )


def _positive(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers with 1 in the place of 0, to divide by."""
    return np.where(numbers > 0, numbers, 1.0)


def _rows(records: Any, rows: NDArray[np.intp]) -> Any:
    return read_table(records).replaced({}, keep_rows=rows)
