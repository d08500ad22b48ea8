# SPDX-License-Identifier: Apache-2.0
"""A table that may leave, and what is remembered of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.publications import Publication, compare, earlier_publications, make_publication
from sfumato.criteria.criterion_counts import Counter, hold_together
from sfumato.errors import GuaranteeError, ParameterError, PrivacyWarning, RealRecordsWarning, named
from sfumato.frames import Table
from sfumato.frames.assembling import with_plain_index
from sfumato.frames.shuffling import in_order, random_order
from sfumato.measurement.combinations import count_combinations
from sfumato.notebooks import facts_as_html

"""How the warning of `warn_of_real_records` begins."""


@dataclass(frozen=True, eq=False)
class Release:
    """A table that may leave, with what was done to make it so.

    Attributes
    ----------
    table : frame
        The released records, in the kind of frame they came in.
    n_merged : int
        Groups of the fitted partition that were joined with others because too few records fell into them.
    n_suppressed : int
        Records left out.
    measures : dict
        ``n_records``, ``n_groups``, ``smallest_group``, ``information_loss``, ``loss_by_column`` where groups are
        rewritten column by column, and what each criterion reaches; ``together``, where earlier releases were named:
        what this one shows together with each of them.
    publication : Publication or None
        What to remember of this release for the next ones; not to be published.
    """

    table: Any
    n_merged: int
    n_suppressed: int
    measures: dict[str, Any] = field(default_factory=dict)
    publication: Publication | None = None

    def _repr_html_(self) -> str:
        """Show in a notebook what was done, and none of the records."""
        numbers = {name: value for name, value in self.measures.items() if isinstance(value, int | float | str)}
        known = [(name.replace("_", " "), value) for name, value in numbers.items()]
        suppressed = [("records left out", self.n_suppressed), ("groups joined with others", self.n_merged)]
        return facts_as_html("Release", [*known, *suppressed])


def in_released_order(release: Release, shuffle: bool | None, *, keep_index: bool = False) -> Release:
    """Return the release with its records shuffled, or in the order of the input: with a warning, if nobody chose.

    A pandas frame gets row numbers as its index, unless its own is asked for: an index of account numbers or dates
    identifies people as a column of them does.

    Called by the methods named ``release``: the warning points at whoever called those.
    """
    if shuffle not in (None, True, False):
        raise ParameterError(f"{named('shuffle', shuffle)}: expected True, False or None.")
    if keep_index not in (True, False):
        raise ParameterError(f"{named('keep_index', keep_index)}: expected True or False.")
    if shuffle and keep_index:
        raise ParameterError(
            "shuffle=True with keep_index=True: expected one of them, since the index tells the order. Leave one out."
        )
    if shuffle:
        table = release.table
        return replace(release, table=in_order(table, random_order(len(table))))
    if shuffle is None:
        warnings.warn(
            "the released records are in the order of the input: an attacker who knows where a person stood in it can "
            "tell which record of the group is theirs. Call release(..., shuffle=True), or shuffle=False if you will "
            "shuffle the table before it is published.",
            PrivacyWarning,
            stacklevel=3,
        )
    return release if keep_index else replace(release, table=with_plain_index(release.table))


def warn_of_real_records(original: Any, released: Any, columns: Sequence[str], released_columns: Sequence[str]) -> None:
    """Say how many released combinations of quasi-identifiers are those of exactly one original record.

    Called by the methods named ``release``: the warning points at whoever called those.
    """
    shown = count_combinations(original, released, columns, released_columns)
    if shown.n_of_one_record:
        warnings.warn(
            RealRecordsWarning(
                f"each group shows the values of a real record: {shown.n_of_one_record} of {shown.n_shown} released "
                "combinations of quasi-identifiers are those of exactly one record, whose values anyone can read off. "
                f"Take {named('representative', 'phantom')}, which shows no combination of one record, or 'range'."
            ),
            stacklevel=3,
        )


def check_releasable(leaf: NDArray[np.int32], counters: list[Counter], k: int) -> None:
    """Refuse records that do not meet the criteria even as one group."""
    n_left = int((leaf >= 0).sum())
    if not hold_together(leaf, counters):
        has = f"fewer than {k}" if 0 < n_left < k else f"{n_left}"
        asked = " and ".join(dict.fromkeys(counter.criterion.describe() for counter in counters))
        raise GuaranteeError(
            f"{has} records to release: expected that {asked}, which not even all of them together meet. "
            "Release more records at once, or lower the requirement."
        )


def remembered(
    release: Release,
    k: int,
    group: NDArray[np.int32],
    *,
    table: Table,
    earlier: Any,
    persons: str | int | None,
    fingerprint: str = "",
    leaf: NDArray[np.int32] | None = None,
    n_leaves: int = 0,
) -> Release:
    """Return the release with what to remember of it, and with what it shows together with earlier ones.

    Parameters
    ----------
    release : Release
    k : int
    group : ndarray of int32
        Of every record; -1: left out.
    table : Table
        The records that were to be released.
    earlier : list of Release or Publication
    persons : str or int or None
        The column of the table that says whom each record belongs to.
    fingerprint : str, optional
        Of the fitted partition, where releases of the same one can be compared without knowing persons.
    leaf : ndarray of int32, optional
        The fitted group of every record, with a fingerprint.
    n_leaves : int, optional
    """
    before = earlier_publications(earlier)
    who = None if persons is None else table.column(*table.resolve(persons, "persons"), for_counting=True)
    publication = make_publication(k, fingerprint, leaf, n_leaves, group, who, before)
    together = compare(publication, before)
    measures = release.measures
    if before:
        measures = measures | {"together": [part.to_dict() for part in together]}
    return replace(release, measures=measures, publication=publication)
