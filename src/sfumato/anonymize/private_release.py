# SPDX-License-Identifier: Apache-2.0
"""Releases with epsilon and delta: noisy counts of a partition's cells, or a sample without rare combinations.

The partition is fixed before the private records are looked at. Their only way into a release is the number of records
of each cell and label: values, types and lists of categories come from the partition. Called by ``release`` of
anonymizers and partitions.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize import MECHANISMS
from sfumato.anonymize.release import Release
from sfumato.anonymize.target_labels import code_labels
from sfumato.arguments import check_choice, check_integer
from sfumato.columns import GroupedLabels, GroupedValues
from sfumato.errors import InputError, ParameterError, named
from sfumato.fingerprints import Fingerprints
from sfumato.frames import Table
from sfumato.frames.building import FrameKind, build_frame, kind_of_frame
from sfumato.frames.shuffling import random_order
from sfumato.private.accounting import check_epsilon
from sfumato.private.encoding import persons_of
from sfumato.private.guarantee import PrivacyGuarantee, neighbors
from sfumato.private.ledger import PrivacyLedger
from sfumato.private.mechanisms import cap_records, noisy_counts, sample_rows, without_rare
from sfumato.private.sampling_delta import checked_rate, exact_delta, smallest_k
from sfumato.regions import Regions

if TYPE_CHECKING:
    from sfumato.anonymize.recoding import Recoding
    from sfumato.private.noise import Noise

OTHERS = "others"
"""The statement that a partition was fitted on other people than those of the release."""

_released: weakref.WeakSet[Any] = weakref.WeakSet()  # partitions with a private release in this process


@dataclass(frozen=True)
class PrivateSettings:
    """The settings of a private release; see ``release`` of the anonymizers."""

    mechanism: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    rate: float | None = None
    k: int | None = None
    labels: Sequence[Any] | None = None
    unit: str | int | None = None
    most_per_person: int | None = None
    fitted_on: Any = None
    ledger: PrivacyLedger | None = None
    regions: Regions | None = None

    def check_absent(self) -> None:
        """Raise ParameterError if a setting of a mechanism is given without one."""
        for part in fields(self):
            if getattr(self, part.name) is not None:
                raise ParameterError(
                    f"{named(part.name)} without a mechanism: expected mechanism='counts' or 'sample' with it. Pass "
                    f"{named('mechanism')}, or leave {part.name} out."
                )

    def checked(self) -> PrivateSettings:
        """Return the settings with k and the cap filled in, or raise ParameterError."""
        check_choice("mechanism", self.mechanism, MECHANISMS)
        check_epsilon(self.epsilon)  # type: ignore[arg-type]
        epsilon = float(self.epsilon)  # type: ignore[arg-type]
        self._check_capped()
        if self.ledger is not None and not isinstance(self.ledger, PrivacyLedger):
            raise ParameterError(
                f"ledger is of the type {type(self.ledger).__name__}: expected a PrivacyLedger. Open one with "
                "PrivacyLedger(path)."
            )
        if self.mechanism == "counts":
            unused = {"rate": self.rate, "k": self.k, "delta": self.delta}
            given = [name for name, value in unused.items() if value is not None]
            if given:
                raise ParameterError(
                    f"{named(given[0])} with mechanism='counts', which has none: expected epsilon alone. Leave it out, "
                    "or take mechanism='sample'."
                )
            return replace(self, epsilon=epsilon)
        rate = checked_rate(self.rate)
        if (self.k is None) == (self.delta is None):
            raise ParameterError(
                f"mechanism='sample' with {'neither k nor delta' if self.k is None else 'k and delta'}: expected one "
                "of them, since one follows from the other. Pass k=20, or delta=1e-6."
            )
        k = self.k if self.delta is None else smallest_k(epsilon, self.delta, rate)
        assert k is not None
        return replace(self, epsilon=epsilon, rate=rate, k=k, delta=exact_delta(epsilon, rate, k))

    def _check_capped(self) -> None:
        if self.unit is None:
            if self.most_per_person is not None:
                raise ParameterError(
                    f"{named('most_per_person', self.most_per_person)} without unit: expected the column that says "
                    "whose a record is. Pass unit=."
                )
            return
        if self.most_per_person is None:
            raise ParameterError(
                f"{named('unit', self.unit)} without most_per_person: expected how many records of a person may count. "
                "The noise grows with it. Pass most_per_person=1, or more."
            )
        check_integer("most_per_person", self.most_per_person, 1)
        if self.mechanism == "sample" and self.most_per_person > 1:
            raise ParameterError(
                f"{named('most_per_person', self.most_per_person)} with mechanism='sample', whose delta is for one "
                "record: expected 1. Take mechanism='counts' for more."
            )


def release_privately(
    partition: Recoding,
    X: Any,
    table: Table,
    y: Any,
    settings: PrivateSettings,
    *,
    noise: Noise | None = None,
) -> Release:
    """Return a release of noisy counts, or of a sample, of the records of X.

    Parameters
    ----------
    partition : Recoding
        Fitted without these records.
    X : frame or array
    table : Table
        The same, as it was read.
    y : array-like or None
        Labels, which are released with the cells.
    settings : PrivateSettings
    noise : Noise, optional
        The secure source by default.
    """
    settings = settings.checked()
    unit = None if settings.unit is None else table.resolve(settings.unit, "unit")[0]
    check_inside(partition, table.names, unit)
    labels, label = code_labels(y, settings.labels, table.n_records, needs_list=settings.mechanism == "counts")
    _check_regions(settings.regions, partition, labels)
    promise = promise_of(partition, [X], unit, settings, has_labels=y is not None)
    group = partition.apply_to(table).astype(np.int64)
    rows = None if unit is None else capped_rows(table, unit, settings.most_per_person or 1)
    account(partition, promise, settings)
    counts = _private_counts(group * len(labels) + label, rows, partition.n_groups * len(labels), settings, noise)
    cell = np.repeat(np.arange(len(counts)), counts)
    cell = cell[random_order(len(cell))]
    kind = kind_of_frame(X, table)
    if settings.regions is None:
        released = write_cells(partition, kind, cell // len(labels))
    else:
        released = _write_regions(settings.regions, kind, cell // len(labels), cell % len(labels), labels)
    measures = {"n_records": len(cell), "n_cells": partition.n_groups, "n_filled": int((counts > 0).sum())}
    target = None if y is None else _target(labels, cell % len(labels), is_public=settings.labels is not None)
    learned_from = None
    if settings.regions is not None and hasattr(partition, "regions"):
        learned_from = with_counts(partition, settings.regions, counts.reshape(-1, len(labels)), labels)
    return Release(released, 0, 0, measures, target=target, privacy=promise, partition=learned_from)


def with_counts(partition: Any, regions: Regions, counts: NDArray[np.int64], labels: NDArray[Any]) -> Any:
    """Return a partition whose regions have released counts, and no fingerprints of the people it was fitted on."""
    return replace(partition, regions=regions.with_counts(counts, labels), fingerprints=None)


def _target(labels: NDArray[Any], label: NDArray[np.int64], *, is_public: bool) -> NDArray[Any]:
    """Return the labels of released records.

    Unless the list of labels is public, its type is that of the released labels alone: the type of an array of text
    tells the length of the longest, which may be a label that was too rare to be released.
    """
    if is_public:
        return np.asarray(labels[label])
    used, place = np.unique(label, return_inverse=True)
    return np.asarray(labels[used].tolist())[place]


def write_cells(partition: Recoding, kind: FrameKind, group: NDArray[np.int64]) -> Any:
    """Return a frame with one record for each entry of `group`, all values and types from the partition."""
    columns = {column.name: column for column in partition.columns}
    new: list[tuple[str, str, GroupedValues | GroupedLabels]] = []
    for name in kind.labels:
        for part in partition.values.get(name, ()):
            new.append((name, part.name, _compact(partition.grouped(columns[name], part, group))))
    return build_frame(kind, new, len(group))


def _check_regions(regions: Any, partition: Recoding, labels: NDArray[Any]) -> None:
    """Raise ParameterError for regions of other groups or labels."""
    n_labels = len(labels)
    if regions is None:
        return
    if not isinstance(regions, Regions):
        raise ParameterError(
            f"regions is of the type {type(regions).__name__}: expected those of the fitted estimator. Pass "
            "classifier.regions_, and call classifier.anonymizer_.release."
        )
    n_in_class = regions.target.n_in_class
    if n_in_class.shape != (partition.n_groups, n_labels):
        raise ParameterError(
            f"regions of {regions.n_groups} groups and {n_in_class.shape[1]} labels for a partition of "
            f"{partition.n_groups} groups and {n_labels} labels: expected the same. Pass the regions that were fitted "
            "with the partition, on people of all labels."
        )
    known = regions.target.labels
    if n_labels > 1 and known is not None and set(known.tolist()) != set(labels.tolist()):
        raise ParameterError(
            f"regions of other labels than the {n_labels} of the release: expected the same. Pass the regions that "
            "were fitted with the partition, on people with these labels."
        )


def _write_regions(
    regions: Regions, kind: FrameKind, group: NDArray[np.int64], label: NDArray[np.int64], labels: NDArray[Any]
) -> Any:
    """Return records of cells and labels with values that are drawn from regions of the people of the partition."""
    rank = np.argsort(np.argsort(labels))[label]  # regions number the labels in sorted order
    # Where nobody of a label was in the group, values are those of its most frequent label.
    n_in_class = regions.target.n_in_class
    has_own = n_in_class[group, rank] > 0
    classes = np.where(has_own, rank, n_in_class[group].argmax(axis=1))
    drawn = regions.draw_beside(group.astype(np.int32), classes.astype(np.int32), np.random.default_rng())
    columns = [(name, name, drawn.columns[name]) for name in kind.labels if name in drawn.columns]
    return build_frame(kind, columns, len(group))


def _compact(new: GroupedValues | GroupedLabels) -> GroupedValues | GroupedLabels:
    """Return values whose list of categories has only those that stand for a cell."""
    if isinstance(new, GroupedLabels) or new.categories is None:
        return new
    is_known = np.ones(len(new.values), np.bool_) if new.missing is None else ~new.missing
    used, place = np.unique(new.values[is_known], return_inverse=True)
    values = np.zeros(len(new.values), np.int64)
    values[is_known] = place
    return replace(new, values=values, categories=new.categories[used])


def _words_of(settings: PrivateSettings) -> str:
    if settings.mechanism == "sample":
        return f"a sample of {settings.rate:g} of the records without combinations of fewer than {settings.k}"
    return "two-sided geometric noise on the count of every cell and label"


def _private_counts(
    cell: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
    n_cells: int,
    settings: PrivateSettings,
    noise: Noise | None,
) -> NDArray[np.int64]:
    """Return how many records of each cell and label are released."""
    cell = cell if rows is None else cell[rows]
    if settings.mechanism == "sample":
        assert settings.rate is not None and settings.k is not None
        counts = np.bincount(cell[sample_rows(len(cell), settings.rate)], minlength=n_cells)
        return without_rare(counts, settings.k)
    assert settings.epsilon is not None
    counts = np.bincount(cell, minlength=n_cells)
    return noisy_counts(counts, settings.epsilon, most_per_person=settings.most_per_person or 1, noise=noise)


# -- the conditions of the promise ---------------------------------------------------------------------------------


def check_inside(partition: Recoding, names: Sequence[str], unit: str | None) -> None:
    """Raise InputError for a column that would be released outside of the cells."""
    outside = [n for n in names if n not in partition.values and n not in partition.dropped and n != unit]
    if outside:
        raise InputError(
            f"column {outside[0]!r} is not rewritten by the partition ({len(outside)} such columns): expected every "
            f"column inside the cells, since exact values have no noise. Drop it, or fit with it in "
            f"{named('quasi_identifiers')}; pass labels as y."
        )
    if unit is not None and unit in partition.values:
        raise ParameterError(
            f"{named('unit', unit)} is a quasi-identifier of the partition: expected a column that is not released. "
            "Fit without it."
        )


def promise_of(
    partition: Recoding,
    blocks: Iterable[Any] | None,
    unit: str | None,
    settings: PrivateSettings,
    *,
    has_labels: bool,
) -> PrivacyGuarantee:
    """Return what a release promises, after a check that its partition does not depend on its records.

    Parameters
    ----------
    partition : Recoding
    blocks : iterable of frames, or None
        All records; None where they cannot be compared with fingerprints.
    unit : str or None
    settings : PrivateSettings
        Checked.
    has_labels : bool
    """
    assert settings.epsilon is not None
    rests_on = _basis_of(partition, blocks, settings)
    if settings.regions is not None:
        rests_on.append("the regions were fitted with the partition")
    if unit is None:
        rests_on.append("every person has one record")
    if has_labels and settings.mechanism == "counts":
        rests_on.append("the list of labels was chosen without the records")
    words = _words_of(settings)
    return PrivacyGuarantee(settings.epsilon, settings.delta or 0.0, neighbors(unit), unit, words, tuple(rests_on))


def _basis_of(partition: Recoding, blocks: Iterable[Any] | None, settings: PrivateSettings) -> list[str]:
    """Check that the partition does not depend on the records; return what of that only the user can know."""
    given = settings.fitted_on
    if not isinstance(given, Fingerprints) and given not in (None, OTHERS):
        raise ParameterError(
            f"{named('fitted_on', given)}: expected 'others', which states that the partition was fitted on other "
            "people, or the Fingerprints of the records it was fitted on."
        )
    prints = given if isinstance(given, Fingerprints) else partition.fingerprints
    overlap = None
    if prints is not None and blocks is not None:
        overlap = prints.check_apart(blocks, what="the table to release")
    # The words depend on `fitted_on` alone. How many records equal one of the others, and whether there were enough to
    # tell, are exact facts of the private records, and this sentence is published.
    if given == OTHERS:
        return ["your statement that the partition was fitted on other people"]
    if overlap is None or not overlap.is_checked:
        why = "has no fingerprints" if overlap is None else "has fingerprints of too few distinct values to tell"
        raise ParameterError(
            f"the partition {why}, so that nothing shows on whom it was fitted: expected a partition fitted on other "
            f"people. State that with {named('fitted_on', OTHERS)}; if it was fitted on these people, take "
            "PrivateAnonymizer."
        )
    return ["the partition was fitted on other people, which its fingerprints do not contradict"]


def capped_rows(table: Table, unit: str, most: int) -> NDArray[np.int64]:
    """Return the rows that count: at most so many of each person."""
    person, _ = persons_of(table, unit)
    return cap_records(person, most, random_order(table.n_records))


def account(partition: Recoding, promise: PrivacyGuarantee, settings: PrivateSettings) -> None:
    """Enter the release in the ledger; without one, raise ParameterError for a second release of a partition."""
    if settings.ledger is not None:
        settings.ledger.spend(promise, what=f"release of {partition.n_groups} cells")
    elif partition in _released:
        raise ParameterError(
            "a second private release by the same partition without a ledger: expected one, since the promises of "
            f"several releases of the same people add up. Pass {named('ledger')}=PrivacyLedger(path) to all of them."
        )
    _released.add(partition)
