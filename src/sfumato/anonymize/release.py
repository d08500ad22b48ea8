# SPDX-License-Identifier: Apache-2.0
"""A release: its last recount, the order of its records, and the memory of it that later releases are compared with."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.all_releases import compare_all
from sfumato.anonymize.earlier_releases import Publication, compare, earlier_publications, make_publication
from sfumato.arguments import check_choice
from sfumato.criteria.criterion_counts import Counter, hold_together, shown
from sfumato.errors import GuaranteeError, ParameterError, PrivacyWarning, RealRecordsWarning, named
from sfumato.frames import Table
from sfumato.frames.assembling import with_plain_index
from sfumato.frames.shuffling import in_order, random_order
from sfumato.measurement.combinations import count_combinations
from sfumato.notebooks import facts_as_html
from sfumato.private.guarantee import PrivacyGuarantee
from sfumato.verification import count_groups, count_values_by_block, label_groups


@dataclass(frozen=True, eq=False)
class Release:
    """A table to publish, with the numbers of its release.

    Attributes
    ----------
    table : frame
        The released records, in the kind of frame they came in.
    n_merged : int
        Groups of the fitted partition that were joined with others because they failed a criterion.
    n_suppressed : int
        Suppressed records.
    measures : dict
        ``n_records``, ``n_groups``, ``smallest_group``, ``information_loss``, ``loss_by_column`` where groups are
        rewritten column by column, and the value of each criterion; ``together``, if earlier releases were named: the
        disclosure of this one together with each of them; ``all_together``, if there were several: with all of them.
    publication : Publication or None
        The memory of this release for later ones; not to be published.
    target : ndarray or None
        The labels of the released records, if a mechanism released them with noise.
    privacy : PrivacyGuarantee or None
        The promise of differential privacy, if a mechanism made the release.
    partition : Partition or None
        The cells of a release with epsilon, with its noisy counts in their regions, where there are regions.
        ``AnonymizedClassifier(model).fit_partition(release.partition)`` learns from both. That costs no more epsilon,
        and is better for models that meet raw records than training on `table`. How values go with labels inside a
        cell is then known from the people of the partition, who should be alike.

    Examples
    --------
    >>> from sfumato import MondrianAnonymizer
    >>> from sfumato.datasets import load_adult
    >>> X = load_adult(as_frame="pyarrow").data.select(["age", "sex", "hours-per-week"]).slice(0, 1000)
    >>> release = MondrianAnonymizer(k=20).fit(X).release(X, shuffle=True)
    >>> release.measures["smallest_group"] >= 20, release.table.shape
    (True, (1000, 3))
    """

    table: Any
    n_merged: int
    n_suppressed: int
    measures: dict[str, Any] = field(default_factory=dict)
    publication: Publication | None = None
    target: NDArray[Any] | None = None
    privacy: PrivacyGuarantee | None = None
    partition: Any = None

    def _repr_html_(self) -> str:
        """Show the numbers in a notebook, and no records."""
        numbers = {name: value for name, value in self.measures.items() if isinstance(value, int | float | str)}
        known = [(name.replace("_", " "), value) for name, value in numbers.items()]
        if self.privacy is not None:
            promised = [("epsilon", self.privacy.epsilon), ("delta", self.privacy.delta)]
            return facts_as_html("Release", [*known, *promised])
        suppressed = [("records left out", self.n_suppressed), ("groups joined with others", self.n_merged)]
        return facts_as_html("Release", [*known, *suppressed])


def in_released_order(release: Release, shuffle: bool | None, *, keep_index: bool = False) -> Release:
    """Return the release with its records shuffled, or in the order of the input, with a warning if `shuffle` is None.

    A pandas frame gets row numbers as its index unless `keep_index`: an index of account numbers or dates identifies
    people.

    Called by the methods named ``release``: the warning points at their caller.
    """
    check_choice("shuffle", shuffle, (True, False, None))
    check_choice("keep_index", keep_index, (True, False))
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
    """Warn if released combinations of quasi-identifiers are those of exactly one original record.

    Called by the methods named ``release``: the warning points at their caller.
    """
    combinations = count_combinations(original, released, columns, released_columns)
    if combinations.n_of_one_record:
        warnings.warn(
            RealRecordsWarning(
                f"each group shows the values of a real record: {combinations.n_of_one_record} of "
                f"{combinations.n_shown} released combinations of quasi-identifiers are those of exactly one record, "
                "whose values anyone can read off. "
                f"Take {named('representative', 'phantom')}, which shows no combination of one record, or 'range'."
            ),
            stacklevel=3,
        )


def renumbered(
    joined: NDArray[np.integer[Any]], leaf: NDArray[np.int32], counters: list[Counter]
) -> tuple[NDArray[np.int32], int, list[Counter]]:
    """Number the groups that fitted groups were joined to.

    Parameters
    ----------
    joined : ndarray of int
        For every fitted group, a number that it shares with those it is joined with.
    leaf : ndarray of int32
        The fitted group of every record; -1: suppressed.
    counters : list of Counter

    Returns
    -------
    group : ndarray of int32
        Of every record; -1: suppressed.
    n_merged : int
        Fitted groups that were joined with others.
    counters : list of Counter
        The same, which count a population by the joined groups.
    """
    is_kept = leaf >= 0
    used = np.unique(leaf[is_kept])
    is_joined = np.bincount(joined[used])[joined[used]] > 1
    _, numbers = np.unique(np.where(is_kept, joined[leaf], -1), return_inverse=True)
    group = (numbers - int(not is_kept.all())).astype(np.int32)
    group_of_joined = np.full(int(joined.max()) + 1, -1, np.int64)
    group_of_joined[joined[leaf[is_kept]]] = group[is_kept]
    regrouped = [counter.regrouped(group, group_of_joined[joined]) for counter in counters]
    return group, int(is_joined.sum()), regrouped


def with_criteria(
    measures: dict[str, Any], counters: list[Counter], group: NDArray[Any], n_groups: int
) -> dict[str, Any]:
    """Return the measures of a release with the value that each criterion reaches."""
    return measures | {shown(counter.criterion): counter.value(group, n_groups) for counter in counters}


def check_releasable(leaf: NDArray[np.int32], counters: list[Counter], k: int) -> None:
    """Raise GuaranteeError if the records do not meet the criteria even as one group."""
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
    """Return the release with its publication, compared with earlier ones.

    Parameters
    ----------
    release : Release
    k : int
    group : ndarray of int32
        Of every record; -1: suppressed.
    table : Table
        The records that were to be released.
    earlier : list of Release or Publication
    persons : str or int or None
        The column of the table with the person of each record.
    fingerprint : str, optional
        Of the fitted partition, if its releases can be compared without persons.
    leaf : ndarray of int32, optional
        The fitted group of every record, with a fingerprint.
    n_leaves : int, optional
    """
    before = earlier_publications(earlier)
    who = None if persons is None else table.column(*table.resolve(persons, "persons"), for_counting=True)
    publication = make_publication(k, fingerprint, leaf, n_leaves, group, who, before)
    together = compare(publication, before)
    all_together = compare_all(publication, before)
    measures = release.measures
    if before:
        measures = measures | {"together": [part.to_dict() for part in together]}
    if all_together is not None:
        measures = measures | {"all_together": all_together.to_dict()}
    return replace(release, measures=measures, publication=publication)


# -- the recount, apart from the engine --------------------------------------------------------------------------


def verify(
    frame: Any,
    columns: Sequence[str],
    counters: Sequence[Counter],
    rows: NDArray[np.int64] | None,
    *,
    n_threads: int = 1,
) -> int:
    """Recount a finished table independently of the engine; raise GuaranteeError if a criterion fails.

    Parameters
    ----------
    frame : frame
        The table to release.
    columns : sequence of str
        Its quasi-identifiers, by their released names.
    counters : sequence of Counter
    rows : ndarray or None
        Which of the counters' records the table has, in its order; None: all.
    n_threads : int

    Returns
    -------
    smallest_group : int
    """
    sizes = count_groups(frame, columns, n_threads=n_threads)
    needs_groups = any(c.population is not None or c.criterion.counting == "values" for c in counters)
    group = label_groups(frame, columns) if needs_groups else None
    for counter in counters:
        n_failed = _count_failed(frame, columns, counter, rows, sizes, group)
        if n_failed:
            raise GuaranteeError(
                f"the rewritten table has {n_failed} of {len(sizes)} groups for which it does not hold that "
                f"{counter.criterion.describe()}: expected none. Nothing is released. Please report this."
            )
    return int(sizes.min())


def _count_failed(
    frame: Any,
    columns: Sequence[str],
    counter: Counter,
    rows: NDArray[np.int64] | None,
    sizes: NDArray[np.int64],
    group: NDArray[np.int64] | None,
) -> int:
    if counter.population is not None:
        assert group is not None
        return int((~counter.passes(_count_presence(group, counter, rows))).sum())
    if counter.value_of_row is None:
        return int((~counter.passes(sizes[:, None])).sum())
    values = counter.value_of_row if rows is None else counter.value_of_row[rows]
    if counter.criterion.counting == "distinct":
        return int((~counter.passes(count_groups(frame, columns, distinct=values)[:, None])).sum())
    assert group is not None
    blocks = count_values_by_block(group, values, counter.n_values)
    return sum(int((~counter.passes(counts)).sum()) for counts in blocks)


def _count_presence(seen: NDArray[np.int64], counter: Counter, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Count records and population by released values: groups with the same values are one group."""
    assert counter.population is not None
    assert counter.group_of_row is not None
    group = counter.group_of_row if rows is None else counter.group_of_row[rows]
    seen_of_group = np.full(int(group.max()) + 2, -1, np.int64)  # the last place serves those in no group
    seen_of_group[group] = seen
    members = seen_of_group[counter.population]
    n_seen = int(seen.max()) + 1
    counts = [np.bincount(part, minlength=n_seen) for part in (seen, members[members >= 0])]
    if not np.array_equal(seen_of_group[group], seen):
        counts[1][:] = 0  # the population of a group with several values is unknown
    return np.column_stack(counts).astype(np.int64)
