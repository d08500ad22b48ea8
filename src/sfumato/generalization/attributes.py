# SPDX-License-Identifier: Apache-2.0
"""One attribute of a generalization: the bucket of each value. The artifact and all exports use these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.columns import Column, Kind, Moment
from sfumato.errors import InputError, ParameterError, named
from sfumato.generalization.naming import OTHER, category_label, finished, moment_labels, number_labels

CategoryType = Literal["text", "boolean", "number"]
_WORDS = {"number": "numbers", "moment": "dates or times", "category": "categories"}
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class Bucket:
    """The representative and the share of one bucket.

    Attributes
    ----------
    representative : int, float, str, bool or None
        One value that stands for the bucket; microseconds for moments, None for missing and for "other".
    share : float or None
        Share of the records at fit, in hundredths; None for buckets with too few records.
    """

    representative: Any = None
    share: float | None = None


class _Buckets:
    """Base of the attributes: what follows from the number of their buckets."""

    buckets: tuple[Bucket, ...]

    @property
    def n_value_buckets(self) -> int:
        """Number of buckets of values; one more may be for missing values alone."""
        raise NotImplementedError

    @property
    def n_buckets(self) -> int:
        """Number of buckets."""
        return len(self.buckets)

    @property
    def has_missing_bucket(self) -> bool:
        """True if missing values have a bucket of their own, the last one."""
        return self.n_buckets > self.n_value_buckets

    @property
    def is_collected(self) -> bool:
        """True if there is more than one bucket."""
        return self.n_buckets > 1


@dataclass(frozen=True)
class OrderedAttribute(_Buckets):
    """Numbers or moments: thresholds cut the line into buckets, and missing values have a place.

    Attributes
    ----------
    name : str
    kind : {"number", "moment"}
    cuts : tuple of int or float
        Rising thresholds; the bucket of a value is the number of thresholds below it. Moments in microseconds.
    missing : int
        Bucket of a missing value: one of the buckets of values, or one of its own behind them.
    saw_missing : bool
        Whether values were missing at fit; if not, their place is the largest bucket.
    buckets : tuple of Bucket
    n_before : int
        Number of distinct values, or bins of values, at fit, missing included.
    moment : {"date", "datetime", "duration", "time"} or None
    is_zoned : bool
        Whether the values are datetimes with a time zone.
    is_real : bool
        Whether the numbers are floats.
    is_whole : bool
        Whether all numbers at fit were whole; labels are then written with whole numbers, and a fraction that comes
        later belongs to the bucket above the threshold that it passes.
    """

    name: str
    kind: Literal["number", "moment"]
    cuts: tuple[Any, ...]
    missing: int
    saw_missing: bool
    buckets: tuple[Bucket, ...]
    n_before: int
    moment: Moment | None = None
    is_zoned: bool = False
    is_real: bool = False
    is_whole: bool = False

    @property
    def n_value_buckets(self) -> int:
        """Number of buckets of values; one more may be for missing values alone."""
        return len(self.cuts) + 1

    @property
    def labels(self) -> tuple[str, ...]:
        """A readable label for every bucket."""
        if self.moment is not None:
            named = moment_labels(self.cuts, self.moment, is_zoned=self.is_zoned)
        else:
            named = number_labels(self.cuts, is_whole=self.is_whole)
        return finished(
            named, missing=self.missing, saw_missing=self.saw_missing, has_missing_bucket=self.has_missing_bucket
        )

    def buckets_of_values(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Return the bucket of every value; integers and floats are compared exactly, whichever way round."""
        if values.dtype.kind == "f" and not self.is_real:
            # v <= c for a whole c exactly when floor(v) <= c, and 2.0**63 is past every threshold.
            floors = np.floor(values)
            is_above = floors >= 2.0**63
            whole = np.where(is_above, 0.0, np.maximum(floors, -(2.0**63))).astype(np.int64)
            found = np.searchsorted(np.array(self.cuts, np.int64), whole, side="left")
            return np.where(is_above, len(self.cuts), found).astype(np.int32)
        if values.dtype.kind != "f" and self.is_real:
            floors = np.floor(np.array(self.cuts, np.float64)).tolist()
            below = sum(cut < _INT64.min for cut in floors)  # thresholds that every integer lies above
            inner = [int(cut) for cut in floors[below:] if cut <= _INT64.max]
            found = np.searchsorted(np.array(inner, np.int64), values, side="left")
            return np.asarray(found + below, np.int32)
        cuts = np.array(self.cuts, np.float64 if self.is_real else np.int64)
        return np.searchsorted(cuts, values, side="left").astype(np.int32)

    def encode(self, column: Column) -> NDArray[np.int32]:
        """Return the bucket of every record of a column."""
        if not self.is_collected:
            return np.zeros(column.n_records, np.int32)
        is_empty = column.missing is not None and bool(column.missing.all())
        if is_empty:
            return np.full(column.n_records, self.missing, np.int32)
        if column.kind != self.kind:
            raise _other_kind(self.name, column.kind, self.kind)
        if column.moment != self.moment:
            raise InputError(
                f"column {self.name!r} holds {column.moment}s now and held {self.moment}s when the generalization was "
                "made: expected the same. Convert the column."
            )
        buckets = self.buckets_of_values(column.values)
        if column.missing is not None:
            buckets[column.missing] = self.missing
        return buckets

    def buckets_of(self, column: CodedColumn) -> NDArray[np.int32]:
        """Return the bucket of every fine code of a coded column."""
        if not self.is_collected:
            return np.zeros(column.bins.n_bins, np.int32)
        if column.bins.n_values and (column.kind != self.kind or column.moment != self.moment):
            raise _other_kind(self.name, column.kind, self.kind)
        found = self.buckets_of_values(column.bins.values) if column.bins.n_values else np.zeros(0, np.int32)
        return np.append(found, np.int32(self.missing)) if column.bins.has_missing else found

    def merged(self, new: Sequence[int]) -> OrderedAttribute:
        """Return the attribute with buckets joined: `new` has the joined bucket of each bucket."""
        mapping = checked_merge(self.name, new, self.n_buckets)
        values = mapping[: self.n_value_buckets]
        order = ordered_runs(self.name, values)
        kept = [cut for cut, left, right in zip(self.cuts, order, order[1:], strict=False) if left != right]
        rank = dict(zip(values, order, strict=True))
        missing = rank.get(mapping[self.missing], len(kept) + 1)
        target = [*order, missing][: self.n_buckets]
        return OrderedAttribute(
            self.name,
            self.kind,
            tuple(kept),
            missing,
            self.saw_missing,
            merged_buckets(self.buckets, target),
            self.n_before,
            self.moment,
            self.is_zoned,
            self.is_real,
            self.is_whole,
        )


@dataclass(frozen=True)
class CategoryAttribute(_Buckets):
    """Categories: every category has a bucket, and so have missing values and categories not seen at fit.

    Attributes
    ----------
    name : str
    categories : tuple
        The categories that enough records had at fit, sorted, or in the order that their type declares. If all are
        one bucket, the one that represents them.
    bucket_of : tuple of int
        The bucket of each category.
    missing, unseen : int
        Buckets of missing values and of all categories that are not listed: rare at fit, or not seen. The latter is
        called "other" where no category is listed for it.
    saw_missing : bool
        Whether values were missing at fit; if not, their place is the largest bucket.
    buckets : tuple of Bucket
    n_before : int
        Number of categories at fit, missing included.
    """

    name: str
    categories: tuple[Any, ...]
    bucket_of: tuple[int, ...]
    missing: int
    unseen: int
    saw_missing: bool
    buckets: tuple[Bucket, ...]
    n_before: int
    kind: Literal["category"] = "category"
    moment: None = None

    @property
    def n_value_buckets(self) -> int:
        """Number of buckets of values; one more may be for missing values alone."""
        return max((*self.bucket_of, self.unseen)) + 1

    @property
    def has_rare(self) -> bool:
        """True if categories at fit are not listed, since too few records have them."""
        return len(self.categories) < self.n_before - self.saw_missing

    @property
    def value_type(self) -> CategoryType:
        """Type of the categories."""
        if all(isinstance(value, str) for value in self.categories):
            return "text"
        return "boolean" if all(isinstance(value, bool) for value in self.categories) else "number"

    @property
    def members(self) -> tuple[tuple[Any, ...], ...]:
        """The categories of every bucket of values."""
        found: list[list[Any]] = [[] for _ in range(self.n_value_buckets)]
        for value, bucket in zip(self.categories, self.bucket_of, strict=True):
            found[bucket].append(value)
        return tuple(tuple(values) for values in found)

    @property
    def labels(self) -> tuple[str, ...]:
        """A readable label for every bucket."""
        named = [category_label(values) if values else OTHER for values in self.members]
        return finished(
            named, missing=self.missing, saw_missing=self.saw_missing, has_missing_bucket=self.has_missing_bucket
        )

    def buckets_of_categories(self, categories: NDArray[np.object_]) -> NDArray[np.int32]:
        """Return the bucket of each of other categories, listed or not."""
        is_text = all(isinstance(value, str) for value in categories)
        if len(categories) and self.categories and is_text != (self.value_type == "text"):
            raise InputError(
                f"column {self.name!r} has categories of another type than when the generalization was made: expected "
                f"{self.value_type}. Convert the column."
            )
        known = dict(zip(self.categories, self.bucket_of, strict=True))
        return np.array([known.get(value, self.unseen) for value in categories], np.int32)

    def encode(self, column: Column) -> NDArray[np.int32]:
        """Return the bucket of every record of a column."""
        if not self.is_collected:
            return np.zeros(column.n_records, np.int32)
        if column.missing is not None and bool(column.missing.all()):
            return np.full(column.n_records, self.missing, np.int32)
        if column.kind != "category" or column.categories is None:
            raise _other_kind(self.name, column.kind, self.kind)
        buckets: NDArray[np.int32] = self.buckets_of_categories(column.categories)[column.values]
        if column.missing is not None:
            buckets[column.missing] = self.missing
        return buckets

    def buckets_of(self, column: CodedColumn) -> NDArray[np.int32]:
        """Return the bucket of every fine code of a coded column."""
        if not self.is_collected:
            return np.zeros(column.bins.n_bins, np.int32)
        if column.bins.n_values and column.categories is None:
            raise _other_kind(self.name, column.kind, self.kind)
        found = np.zeros(0, np.int32) if column.categories is None else self.buckets_of_categories(column.categories)
        return np.append(found, np.int32(self.missing)) if column.bins.has_missing else found

    def merged(self, new: Sequence[int]) -> CategoryAttribute:
        """Return the attribute with buckets joined: `new` has the joined bucket of each bucket."""
        mapping = checked_merge(self.name, new, self.n_buckets)
        if not self.categories:  # no value may be told: there is one bucket, and nothing to join
            return self
        order = first_seen([mapping[bucket] for bucket in (*self.bucket_of, self.unseen)])
        target = [order.get(mapping[bucket], len(order)) for bucket in range(self.n_buckets)]
        buckets = merged_buckets(self.buckets, target)
        return CategoryAttribute(
            self.name,
            *told_categories(self.categories, [target[bucket] for bucket in self.bucket_of], buckets),
            target[self.missing],
            target[self.unseen],
            self.saw_missing,
            buckets,
            self.n_before,
        )


Attribute = OrderedAttribute | CategoryAttribute


def told_categories(
    categories: Sequence[Any], bucket_of: Sequence[int], buckets: Sequence[Bucket]
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Return the categories that a document has to list, and their buckets.

    If everything is one bucket, no category has to be known: the one that represents them all is kept, and rare ones
    do not travel.
    """
    if len(buckets) == 1 and categories:  # the representative of a bucket is always a listed category
        return (buckets[0].representative,), (0,)
    return tuple(categories), tuple(bucket_of)


def first_seen(given: Sequence[int]) -> dict[int, int]:
    """Number things by where they first occur."""
    return {old: place for place, old in enumerate(dict.fromkeys(given))}


def ordered_runs(name: str, given: Sequence[int]) -> list[int]:
    """Number the buckets of ordered values by value; refuse a bucket that comes back after another one."""
    ranks: list[int] = []
    for place, bucket in enumerate(given):
        ranks.append(ranks[-1] + (bucket != given[place - 1]) if place else 0)
    if len(set(given)) != (ranks[-1] + 1 if ranks else 0):
        raise ParameterError(
            f"the attribute {name!r} has a bucket that is interrupted by another: expected buckets of neighboring "
            f"values, since it is ordered. Name it in {named('categorical_features')} if its numbers are codes."
        )
    return ranks


def merged_buckets(buckets: Sequence[Bucket], target: Sequence[int]) -> tuple[Bucket, ...]:
    """Join buckets: shares add up, and the representative is that of the largest part."""
    joined: list[list[Bucket]] = [[] for _ in range(max(target) + 1)]
    for bucket, place in zip(buckets, target, strict=True):
        joined[place].append(bucket)
    result = []
    for parts in joined:
        valued = [part for part in parts if part.representative is not None] or parts
        largest = max(valued, key=lambda part: part.share or 0.0)
        shares = [part.share for part in parts if part.share is not None]
        share = round(sum(shares), 2) if len(shares) == len(parts) else None
        result.append(Bucket(largest.representative, share))
    return tuple(result)


def checked_merge(name: str, new: Sequence[int], n_buckets: int) -> list[int]:
    """Raise unless a list gives every bucket a place."""
    given = [int(bucket) for bucket in new]
    if len(given) != n_buckets:
        raise ParameterError(
            f"the attribute {name!r} has {n_buckets} buckets and {len(given)} were given a place: expected one number "
            "per bucket."
        )
    return given


def _other_kind(name: str, now: Kind, before: str) -> InputError:
    return InputError(
        f"column {name!r} holds {_WORDS[now]} now and held {_WORDS[before]} when the generalization was made: expected "
        "the same. Convert the column, or make the generalization again."
    )
