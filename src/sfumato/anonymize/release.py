# SPDX-License-Identifier: Apache-2.0
"""A table that may leave, and what is decided about records before they do: which stay out, what is remembered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.counting import Counter, hold_together
from sfumato.anonymize.publications import Publication, compare, earlier_publications, make_publication
from sfumato.errors import GuaranteeError
from sfumato.frames import Table


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


def suppress(leaf: NDArray[np.int32], n_leaves: int, counters: list[Counter], limit: float) -> NDArray[np.int32]:
    """Leave out the smallest failing groups while the limit lasts and what is left can still be released.

    Parameters
    ----------
    leaf : ndarray of int32
        The fitted group of every record.
    n_leaves : int
    counters : list of Counter
    limit : float
        Share of the records that may be left out.

    Returns
    -------
    leaf : ndarray of int32
        The same, -1 for records left out.
    """
    budget = int(limit * len(leaf))
    if budget == 0:
        return leaf
    sizes = np.bincount(leaf, minlength=n_leaves)
    failing = np.zeros(n_leaves, np.bool_)
    for counter in counters:
        failing |= ~counter.are_safe(leaf, n_leaves)
    candidates = np.flatnonzero(failing & (sizes > 0))
    candidates = candidates[np.argsort(sizes[candidates], kind="stable")]
    n_dropped = int((np.cumsum(sizes[candidates]) <= budget).sum())
    # Where too little is left, the largest groups come back first: few of them are enough.
    for n in range(n_dropped, 0, -1):
        left = np.where(np.isin(leaf, candidates[:n]), np.int32(-1), leaf)
        if hold_together(left, [counter.among(left >= 0) for counter in counters]):
            return left
        if n == n_dropped and not hold_together(leaf, counters):
            break  # not even all records can be released
    return leaf


def check_releasable(leaf: NDArray[np.int32], counters: list[Counter], k: int) -> None:
    """Refuse records that do not meet the criteria even as one group."""
    n_left = int((leaf >= 0).sum())
    if not hold_together(leaf, counters):
        has = f"fewer than {k}" if 0 < n_left < k else f"{n_left}"
        raise GuaranteeError(
            f"{has} records to release: expected that "
            f"{' and '.join(c.criterion.describe() for c in counters)}, which not even all of them together "
            "meet. Release more records at once, or lower the requirement."
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
