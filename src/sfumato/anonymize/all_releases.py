# SPDX-License-Identifier: Apache-2.0
"""Compare a release with all earlier ones at once: people whom no two releases single out, but all together do.

Works on the counts and digests of publications; ``release`` calls it. ``sfumato.attack.intersect_all_releases`` is the
same attack on the released tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.earlier_releases import Publication, masked
from sfumato.errors import PrivacyWarning
from sfumato.grouping import count_candidates


@dataclass(frozen=True)
class AllTogether:
    """The disclosure of a release and all earlier ones together.

    Attributes
    ----------
    n_releases : int
        This one included.
    n_people : int
        People of this release who are in an earlier one; without persons, as many as could be in all.
    smallest_together : int or None
        Fewest people who share all their groups. None: nobody is in an earlier release.
    n_alone, n_below : int
        People who share all their groups with nobody, and with fewer than k people.
    n_beyond : int
        Those of `n_below` who are hidden among k in this release and any one earlier release, and in all earlier
        releases together.
    k : int
        The smallest k of the releases.
    is_counted : bool
        Whether people were recognized. Otherwise the smallest of all groups counts as people in all.
    """

    n_releases: int
    n_people: int
    smallest_together: int | None
    n_alone: int
    n_below: int
    n_beyond: int
    k: int
    is_counted: bool

    @property
    def is_safe(self) -> bool:
        """True if everyone is hidden among k in all releases together."""
        return not self.n_below

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers under their names; counts are exact, for the owner of the tables."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"is_safe": self.is_safe}


def compare_all(later: Publication, earlier: Iterable[Publication]) -> AllTogether | None:
    """Intersect a release with all earlier ones at once, and warn of people whom no two of them single out.

    People are recognized if all releases have persons. Otherwise all must come from one partition: then of the numbers
    of records in the same groups the smallest is taken for people who are in all.

    Returns
    -------
    AllTogether or None
        None for fewer than two earlier releases, and for releases that can only be compared two at a time.
    """
    every = [*earlier, later]
    if len(every) < 3:
        return None
    if all(part.persons is not None for part in every):
        found = _all_counted(every)
    elif len(later.group_of_leaf) > 0 and len({part.partition for part in every}) == 1:
        found = _all_supposed(every)
    else:
        return None
    if found.n_beyond:
        warnings.warn(_sentence_of_all(found), PrivacyWarning, stacklevel=4)
    return found


def _all_counted(every: list[Publication]) -> AllTogether:
    """Intersect the groups of recognized people; the last release is the new one."""
    k = min(part.k for part in every)
    everyone = np.unique(np.concatenate([part.persons for part in every if part.persons is not None]))
    groups = np.full((len(everyone), len(every)), -1, np.int32)
    for release, part in enumerate(every):
        assert part.persons is not None and part.group_of_person is not None
        groups[np.searchsorted(everyone, part.persons), release] = part.group_of_person
    is_seen = (groups[:, -1] >= 0) & (groups[:, :-1] >= 0).any(axis=1)
    # Who is in one of two releases alone is hidden in it among k.
    pairs = np.stack([count_candidates(groups[:, [release, -1]]) for release in range(len(every) - 1)])
    before = np.vstack([pairs, count_candidates(groups[:, :-1])])[:, is_seen]
    in_all = count_candidates(groups)[is_seen]
    return _all_together(in_all, np.ones_like(in_all), before, len(every), k, is_counted=True)


def _all_supposed(every: list[Publication]) -> AllTogether:
    """Intersect the groups of one partition, supposing that of all numbers the smallest is of people in all."""
    k = min(part.k for part in every)
    is_known = np.logical_and.reduce([part.group_of_leaf >= 0 for part in every])
    groups = np.stack([part.group_of_leaf[is_known] for part in every], axis=1)
    records = np.stack([part.records_of_leaf[is_known] for part in every], axis=1)

    def fewest(releases: list[int]) -> NDArray[np.int64]:
        """Return, for every leaf, the smallest number of records in the intersection of its groups."""
        _, cell = np.unique(groups[:, releases], axis=0, return_inverse=True)
        counts = [np.bincount(cell.ravel(), weights=records[:, release]) for release in releases]
        return np.asarray(np.minimum.reduce(counts).astype(np.int64)[cell.ravel()])

    last = len(every) - 1
    _, first = np.unique(groups, axis=0, return_index=True)  # one leaf of every intersection
    in_all = fewest(list(range(last + 1)))[first]
    before = np.vstack([*(fewest([release, last]) for release in range(last)), fewest(list(range(last)))])[:, first]
    is_there = in_all > 0
    in_all, before = in_all[is_there], before[:, is_there]
    return _all_together(in_all, in_all, before, len(every), k, is_counted=False)


def _all_together(
    in_all: NDArray[np.int64],
    n_people: NDArray[np.int64],
    before: NDArray[np.int64],
    n_releases: int,
    k: int,
    *,
    is_counted: bool,
) -> AllTogether:
    """Summarize the numbers of people that share all groups, `n_people` each.

    `before` has, row by row, the numbers that fewer releases leave: each earlier one with the new one, and all earlier.
    """
    is_below = in_all < k
    is_beyond = is_below & (before >= k).all(axis=0)
    return AllTogether(
        n_releases,
        int(n_people.sum()),
        int(in_all.min()) if len(in_all) else None,
        int(n_people[in_all == 1].sum()),
        int(n_people[is_below].sum()),
        int(n_people[is_beyond].sum()),
        k,
        is_counted,
    )


def _sentence_of_all(found: AllTogether) -> str:
    k = found.k
    whom = "people who are in it and in others" if found.is_counted else "records that may be of people who are in all"
    return (
        f"this release and all {found.n_releases - 1} earlier ones together tell more than any two: "
        f"{masked(found.n_beyond, k)} of {found.n_people:,} {whom} share all their groups with fewer than {k}, and "
        f"no two releases with so few. Expected at least {k}. Publish with a larger k, or not to readers of all the "
        "others."
    )
