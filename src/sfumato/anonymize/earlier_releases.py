# SPDX-License-Identifier: Apache-2.0
"""The memory of a release, to compare later releases with: counts and digests, never records.

Each release hides a person among k. An attacker with two releases can intersect their groups, and subtract one release
from the other; with more, intersect all of them. ``release`` makes a :class:`Publication` of every release and compares
it with each earlier one; ``all_releases`` compares it with all of them together.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sfumato.columns import Column
from sfumato.documents import check_shape, find_misfit, is_count, is_text, is_whole, read_document, write_document
from sfumato.errors import InputError, ParameterError, PrivacyWarning

FORMAT = "sfumato-publication"
VERSION = 1
_DIGEST_BYTES = 16
_PERSONS = {"secret": is_text, "digests": is_text, "groups": [is_count]}
_SHAPE = {
    "k": lambda value: is_count(value) and value >= 1,
    "partition": is_text,
    "groups": [lambda value: is_whole(value) and value >= -1],
    "records": [is_count],
    "persons": lambda value: value is None or find_misfit(value, _PERSONS) is None,
}

Changes = tuple[int | None, int | None, int | None, int | None]


@dataclass(frozen=True)
class Together:
    """The disclosure of two releases together, beyond that of either alone.

    Attributes
    ----------
    n_people : int
        People who are in both; without persons, as many as could be.
    smallest_together : int or None
        Fewest people who share their groups in both releases. None: no person is in both.
    n_alone : int
        People whose two groups have no other person in common.
    n_below : int
        People whose two groups have fewer than k people in common.
    n_new, n_gone : int or None
        People of the later, or the earlier, release alone. None where the releases do not come from one partition.
    n_new_below, n_gone_below : int or None
        Those of them who were added, or removed, together with fewer than k people: the difference of the two releases
        in their region is theirs.
    k : int
        The smaller k of the two releases.
    is_counted : bool
        Whether people were recognized. Otherwise the smaller of two groups counts as people in both.
    """

    n_people: int
    smallest_together: int | None
    n_alone: int
    n_below: int
    n_new: int | None
    n_new_below: int | None
    n_gone: int | None
    n_gone_below: int | None
    k: int
    is_counted: bool

    @property
    def is_safe(self) -> bool:
        """True if everyone is hidden among k, in both releases together and in their difference."""
        return not (self.n_below or self.n_new_below or self.n_gone_below)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers under their names; counts are exact, for the owner of the tables."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"is_safe": self.is_safe}


@dataclass(frozen=True, eq=False)
class Publication:
    """A release as its owner remembers it; made by ``release``.

    Attributes
    ----------
    k : int
    partition : str
        Fingerprint of the fitted partition: equal ones group records equally.
    group_of_leaf : ndarray of int32
        The released group that each group of the fitted partition became part of; -1 where it had no released record.
    records_of_leaf : ndarray of int64
        Released records that fell into each group of the fitted partition.
    secret : bytes or None
        The key of the digests.
    persons : ndarray of bytes or None
        A keyed digest of the person of each record, sorted.
    group_of_person : ndarray of int32 or None

    Notes
    -----
    It holds no record, but it tells how many records fell into small groups and, with the key, which persons were
    published: keep it as confidential as the records. `save` writes a file that only its owner can read.

    Examples
    --------
    >>> from sfumato import MondrianAnonymizer
    >>> from sfumato.datasets import load_adult
    >>> X = load_adult(as_frame="pyarrow").data.select(["age", "sex", "hours-per-week"]).slice(0, 1000)
    >>> anonymizer = MondrianAnonymizer(k=20).fit(X)
    >>> january = anonymizer.release(X, shuffle=True)
    >>> february = anonymizer.release(X, earlier=[january.publication], shuffle=True)
    >>> february.measures["together"][0]["is_safe"]
    True
    """

    k: int
    partition: str
    group_of_leaf: NDArray[np.int32]
    records_of_leaf: NDArray[np.int64]
    secret: bytes | None = None
    persons: NDArray[np.bytes_] | None = None
    group_of_person: NDArray[np.int32] | None = None

    # -- comparing -------------------------------------------------------------------------------------------

    def with_later(self, later: Publication) -> Together:
        """Return what a later release shows together with this one."""
        k = min(self.k, later.k)
        has_leaves = len(self.group_of_leaf) > 0 and self.partition == later.partition
        if self.persons is not None and later.persons is not None:
            if self.secret != later.secret:
                raise InputError(
                    "two publications with digests under different keys: expected one key. Pass all earlier "
                    "publications to every release, the first one, too."
                )
            return self._counted(later, k, has_leaves)
        if not has_leaves:
            raise InputError(
                "a publication of another partition and without persons: expected the partition that this release "
                "comes from. Fit once and release every batch with it, or name the column that says who is who in "
                "persons= of every release."
            )
        return self._supposed(later, k)

    def _counted(self, later: Publication, k: int, has_leaves: bool) -> Together:
        """Compare the recognized people of both."""
        assert self.persons is not None and self.group_of_person is not None
        assert later.persons is not None and later.group_of_person is not None
        _, own, theirs = np.intersect1d(self.persons, later.persons, assume_unique=True, return_indices=True)
        pairs = np.stack([self.group_of_person[own], later.group_of_person[theirs]], axis=1)
        _, place, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        in_both = sizes[place.ravel()] if len(pairs) else np.zeros(0, np.int64)
        changes: Changes = (None, None, None, None)
        if has_leaves:
            region_of_group, region_of_theirs, n_regions = self._regions(later)
            new = np.setdiff1d(np.arange(len(later.persons)), theirs)
            gone = np.setdiff1d(np.arange(len(self.persons)), own)
            n_new = np.bincount(region_of_theirs[later.group_of_person[new]], minlength=n_regions)
            n_gone = np.bincount(region_of_group[self.group_of_person[gone]], minlength=n_regions)
            changes = (*_total_and_below(n_new, k), *_total_and_below(n_gone, k))
        return _together(in_both, np.ones_like(in_both), changes, k, is_counted=True)

    def _supposed(self, later: Publication, k: int) -> Together:
        """Compare numbers of records, supposing that of two numbers the smaller is of people who are in both."""
        known = (self.group_of_leaf >= 0) & (later.group_of_leaf >= 0)
        pairs = np.stack([self.group_of_leaf[known], later.group_of_leaf[known]], axis=1)
        different, place = np.unique(pairs, axis=0, return_inverse=True)
        counts = [
            np.bincount(place.ravel(), weights=part.records_of_leaf[known], minlength=len(different)).astype(np.int64)
            for part in (self, later)
        ]
        in_both = np.minimum(*counts)
        region_of_group, region_of_theirs, n_regions = self._regions(later)
        before, after = (
            np.bincount(
                region[part.group_of_leaf[part.group_of_leaf >= 0]],
                weights=part.records_of_leaf[part.group_of_leaf >= 0],
                minlength=n_regions,
            ).astype(np.int64)
            for part, region in ((self, region_of_group), (later, region_of_theirs))
        )
        changes = (
            *_total_and_below(np.maximum(after - before, 0), k),
            *_total_and_below(np.maximum(before - after, 0), k),
        )
        in_both = in_both[in_both > 0]
        return _together(in_both, in_both, changes, k, is_counted=False)

    def _regions(self, later: Publication) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Return the region of every group of either release, and how many there are.

        A region is made of whole groups of both: the smallest part of the table of which both releases show all.
        """
        own, theirs = self.group_of_leaf, later.group_of_leaf
        n_own, n_theirs = int(own.max()) + 1, int(theirs.max()) + 1
        both = (own >= 0) & (theirs >= 0)
        links = coo_array(
            (np.ones(int(both.sum()), np.int8), (own[both], n_own + theirs[both])), shape=(n_own + n_theirs,) * 2
        )
        n_regions, region = connected_components(links, directed=False)
        return region[:n_own].astype(np.int64), region[n_own:].astype(np.int64), int(n_regions)

    # -- the document ----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the publication as plain lists, numbers and text."""
        persons = None
        if self.persons is not None and self.group_of_person is not None and self.secret is not None:
            persons = {
                "secret": base64.b64encode(self.secret).decode(),
                "digests": base64.b64encode(self.persons.tobytes()).decode(),
                "groups": self.group_of_person.tolist(),
            }
        return {
            "format": FORMAT,
            "version": VERSION,
            "k": self.k,
            "partition": self.partition,
            "groups": self.group_of_leaf.tolist(),
            "records": self.records_of_leaf.tolist(),
            "persons": persons,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Publication:
        """Rebuild a publication from `to_dict`'s document."""
        if not isinstance(document, Mapping) or (document.get("format"), document.get("version")) != (FORMAT, VERSION):
            raise InputError(f"a document that is not a publication: expected {FORMAT!r}, version {VERSION}.")
        check_shape(document, _SHAPE, "a publication", "Publication.save")
        try:
            persons = document["persons"]
            known: dict[str, Any] = {}
            if persons is not None:
                known = {
                    "secret": base64.b64decode(persons["secret"]),
                    "persons": np.frombuffer(base64.b64decode(persons["digests"]), f"S{2 * _DIGEST_BYTES}"),
                    "group_of_person": np.array(persons["groups"], np.int32),
                }
            made = cls(
                int(document["k"]),
                str(document["partition"]),
                np.array(document["groups"], np.int32),
                np.array(document["records"], np.int64),
                **known,
            )
        except (ValueError, OverflowError) as error:
            raise InputError(
                f"a publication with parts that are not of their kind ({type(error).__name__}): expected what "
                "Publication.save wrote."
            ) from None
        n_persons = None if made.persons is None else len(made.persons)
        n_placed = None if made.group_of_person is None else len(made.group_of_person)
        if len(made.group_of_leaf) != len(made.records_of_leaf) or n_persons != n_placed:
            raise InputError(
                "a publication whose lists have different lengths: expected what Publication.save wrote. Save it again."
            )
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the publication as a JSON file that only its owner can read."""
        write_document(self.to_dict(), path, mode=0o600)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Publication:
        """Read a publication that `save` wrote."""
        return cls.from_dict(read_document(path, "a publication", "Publication.save"))


def earlier_publications(given: Any) -> list[Publication]:
    """Return publications, given publications, releases or one of them."""
    listed = [given] if isinstance(given, Publication) or hasattr(given, "publication") else list(given or ())
    found = [getattr(part, "publication", part) for part in listed]
    for part in found:
        if not isinstance(part, Publication):
            raise ParameterError(
                f"earlier has a {type(part).__name__}: expected releases, or publications as Publication.load reads "
                "them."
            )
    return found


def make_publication(
    k: int,
    partition: str,
    leaf: NDArray[np.int32] | None,
    n_leaves: int,
    group: NDArray[np.int32],
    persons: Column | None,
    earlier: Iterable[Publication],
) -> Publication:
    """Remember a release, given the fitted and the released group of every record, negative where it is left out.

    Parameters
    ----------
    persons : Column or None
        Who each record belongs to.
    earlier : iterable of Publication
        Whose key the digests are made with, if they have one.
    """
    group_of_leaf = np.full(n_leaves, -1, np.int32)
    records_of_leaf = np.zeros(n_leaves, np.int64)
    if leaf is not None:
        kept = leaf >= 0
        group_of_leaf[leaf[kept]] = group[kept]
        records_of_leaf = np.bincount(leaf[kept], minlength=n_leaves).astype(np.int64)
    if persons is None:
        return Publication(k, partition, group_of_leaf, records_of_leaf)
    secret = next((part.secret for part in earlier if part.secret is not None), None) or secrets.token_bytes(32)
    digests = _digests(persons, secret)
    if len(np.unique(digests)) < len(digests):
        raise InputError(
            f"persons={persons.name!r} has {len(digests) - len(np.unique(digests)):,} repeated values: expected each "
            "person once in a release. Name another column, or release one record per person."
        )
    own = np.flatnonzero(group >= 0)
    order = own[np.argsort(digests[own])]
    return Publication(k, partition, group_of_leaf, records_of_leaf, secret, digests[order], group[order])


def compare(later: Publication, earlier: Iterable[Publication]) -> list[Together]:
    """Compare a release with earlier ones, and warn of people whom two of them single out."""
    found = []
    for number, before in enumerate(earlier):
        together = before.with_later(later)
        found.append(together)
        if not together.is_safe:
            warnings.warn(_sentence(together, number), PrivacyWarning, stacklevel=4)
    return found


def _sentence(together: Together, number: int) -> str:
    k = together.k
    parts = []
    if together.n_below:
        whom = "people who are in both" if together.is_counted else "records that may be of people who are in both"
        alone = f", {masked(together.n_alone, k)} of them alone" if together.n_alone else ""
        parts.append(
            f"{masked(together.n_below, k)} of {together.n_people:,} {whom} share their two groups with fewer than "
            f"{k}{alone}"
        )
    changes = ((together.n_new_below, together.n_new, "came"), (together.n_gone_below, together.n_gone, "went"))
    for n_below, n_all, how in changes:
        if n_below:
            parts.append(f"{masked(n_below, k)} of {masked(n_all or 0, k)} who {how} did so with fewer than {k}")
    return (
        f"this release and earlier[{number}] together tell more than either: {'; '.join(parts)}. Expected at least "
        f"{k} each time. Publish this batch with more others, with a larger k, or not to readers of the earlier one."
    )


def masked(count: int, k: int) -> str:
    """Return a count as text; counts between 0 and k are masked, since they could identify people."""
    return f"{count:,}" if count == 0 or count >= k else f"fewer than {k}"


def _together(
    in_both: NDArray[np.int64], n_people: NDArray[np.int64], changes: Changes, k: int, *, is_counted: bool
) -> Together:
    """Summarize the numbers of people that share two groups, `n_people` each."""
    return Together(
        int(n_people.sum()),
        int(in_both.min()) if len(in_both) else None,
        int(n_people[in_both == 1].sum()),
        int(n_people[in_both < k].sum()),
        *changes,
        k,
        is_counted,
    )


def _total_and_below(counts: NDArray[np.int64], k: int) -> tuple[int, int]:
    return int(counts.sum()), int(counts[counts < k].sum())


def _digests(column: Column, secret: bytes) -> NDArray[np.bytes_]:
    """Return a keyed digest of every value, as text, so that 7, 7.0 and "7" are the same person."""
    if column.missing is not None and column.missing.any():
        raise InputError(
            f"persons={column.name!r} is missing in {int(column.missing.sum()):,} records: expected to know who each "
            "record belongs to. Fill it in, or leave persons out."
        )
    values = column.values if column.categories is None else column.categories[column.values]
    return np.array(
        [
            hashlib.blake2b(_text_of(value).encode(), digest_size=_DIGEST_BYTES, key=secret).hexdigest().encode()
            for value in values.tolist()
        ],
        f"S{2 * _DIGEST_BYTES}",
    )


def _text_of(value: Any) -> str:
    # Whole numbers are read as reals wherever a value was missing before, in this batch or another.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
