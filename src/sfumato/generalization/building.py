# SPDX-License-Identifier: Apache-2.0
"""From buckets of fine bins to a generalization over values; every minimizer ends here.

The representative of a bucket of ordered values is its median, unless that reveals the value of a few people.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.columns import MICROSECONDS_PER_DAY
from sfumato.errors import ParameterError
from sfumato.generalization.artifact import Generalization, json_value
from sfumato.generalization.attributes import (
    Attribute,
    Bucket,
    CategoryAttribute,
    OrderedAttribute,
    first_seen,
    ordered_runs,
    told_categories,
)
from sfumato.generalization.thresholds import moment_threshold, real_threshold, whole_threshold

SAFE_SIZE = 10
"""Minimum number of records for a published share, and for a published value where possible."""


def generalization_from_bins(
    columns: Sequence[CodedColumn],
    bucket_of_code: Sequence[NDArray[Any]],
    *,
    floor: int = SAFE_SIZE,
    public: Collection[str] = (),
    minimizer: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> Generalization:
    """Turn buckets of fine codes into a generalization over values.

    Parameters
    ----------
    columns : sequence of CodedColumn
        The attributes, binned.
    bucket_of_code : sequence of ndarray of int
        Per column, the bucket of every fine code, that of missing values included. Any numbers will do; for ordered
        columns the codes of a bucket must be neighbors. Categories may have one more entry: the bucket of categories
        that did not occur.
    floor : int, default=10
        Minimum number of records of a listed category or a bucket of ordered values. 1: all categories are listed.
    public : collection of str, default=()
        Columns whose categories are no secret, since a hierarchy lists them: rare ones are listed, too, and keep their
        buckets. The buckets of rare categories must not depend on the records that have them.
    minimizer : str, default=""
        Name of the minimizer, for the document.
    parameters : mapping, optional
        Its parameters, for the document.

    Returns
    -------
    Generalization
        Buckets are renumbered: by value, categories by their first one, and missing values alone come last. Categories
        that did not occur go where most records are unless told otherwise, and so do missing values when none was
        missing.

    Notes
    -----
    *Guarantee.* No category that fewer than `floor` records have is in the generalization, unless it is `public`. Rare
    categories share one place with categories that did not occur: where most of their records would have gone, a
    bucket called "other" if no common category is there, or the largest bucket if they are fewer than `floor` even
    together. An attribute
    without a common category is not collected. Buckets of ordered values with fewer records are joined with the
    smaller neighbor, so every threshold has at least `floor` records on both sides, and the outer buckets are open.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> from sfumato.frames import read_table
    >>> from sfumato.backends.memory import MemorySource
    >>> source = MemorySource(read_table(pa.table({"age": [18, 30, 63, 64, 80] * 10})), ["age"])
    >>> generalization_from_bins(source.columns, [np.array([0, 1, 1, 2, 2])]).attributes[0].labels
    ('20 and under', '21-63', '64 and over')
    """
    if len(columns) != len(bucket_of_code):
        raise ParameterError(
            f"{len(columns)} columns and buckets for {len(bucket_of_code)}: expected buckets for every column."
        )
    attributes = [
        _attribute(column, buckets, floor, is_public=column.name in public)
        for column, buckets in zip(columns, bucket_of_code, strict=True)
    ]
    return Generalization(tuple(attributes), minimizer, json_value(dict(parameters or {})))


_CUTS: WeakKeyDictionary[CodedColumn, dict[int, Any]] = WeakKeyDictionary()
"""The threshold after each bin of a column, once it was needed: it does not depend on the buckets."""

_MADE: WeakKeyDictionary[CodedColumn, dict[Any, Attribute]] = WeakKeyDictionary()
"""Attributes made of a column: settings of a sweep mostly have the same buckets for it, or none."""


def _attribute(column: CodedColumn, buckets: NDArray[Any], floor: int, *, is_public: bool) -> Attribute:
    key = np.asarray(buckets, np.int64).tobytes(), floor, is_public
    made = _MADE.setdefault(column, {})
    if key not in made:
        made[key] = _make_attribute(column, buckets, floor, is_public=is_public)
    return made[key]


def _make_attribute(column: CodedColumn, buckets: NDArray[Any], floor: int, *, is_public: bool) -> Attribute:
    given = [int(bucket) for bucket in np.asarray(buckets)]
    unseen = given.pop() if column.kind == "category" and len(given) == column.bins.n_bins + 1 else None
    if len(given) != column.bins.n_bins:
        raise ParameterError(
            f"the attribute {column.name!r} has {column.bins.n_bins} codes and {len(given)} were given a bucket: "
            "expected one bucket per code, that of missing values included."
        )
    if column.bins.is_ordered:
        return _ordered(column, given, column.counts, floor)
    return _category(column, given, unseen, floor, is_public=is_public)


def _ordered(column: CodedColumn, given: list[int], counts: NDArray[np.int64], floor: int) -> OrderedAttribute:
    assert column.kind != "category"
    bins, n_values = column.bins, column.bins.n_values
    ranks = joined_runs(ordered_runs(column.name, given[:n_values]), counts, floor)
    n_value_buckets = ranks[-1] + 1 if ranks else 1
    target, missing = _with_missing(column, ranks, dict(zip(given, ranks, strict=False)), given, counts)
    is_real = bins.values.dtype.kind == "f"
    is_whole = column.kind == "number" and (not is_real or _all_whole(bins.low, bins.high, bins.values))
    cuts = [_cut(column, last, is_whole) for last in np.flatnonzero(np.diff(np.array(ranks, np.int64))).tolist()]
    if is_real:
        cuts = [float(cut) for cut in cuts]
    representatives = [
        typical_value(column, cuts, bucket, np.flatnonzero(np.array(ranks) == bucket), counts, is_whole=is_whole)
        for bucket in range(n_value_buckets if n_values else 0)
    ]
    return OrderedAttribute(
        column.name,
        column.kind,
        tuple(cuts),
        missing,
        bins.has_missing,
        _described(representatives, target, counts, floor),
        bins.n_bins,
        column.moment,
        column.is_zoned,
        is_real,
        is_whole,
    )


def _category(
    column: CodedColumn, given: list[int], unseen: int | None, floor: int, *, is_public: bool
) -> CategoryAttribute:
    assert column.categories is not None
    n_values, counts = column.bins.n_values, column.counts
    order = np.arange(n_values) if column.places is None else np.argsort(column.places)
    pooled = pool_rare(given, counts[:n_values], 0 if is_public else floor, unseen)
    listed = [code for code in order.tolist() if pooled.is_listed[code]]
    numbers = first_seen([pooled.given[code] for code in [*listed, *order.tolist()]])  # "other" is the last
    ranks = [numbers[bucket] for bucket in pooled.given[:n_values]]
    target, missing = _with_missing(column, ranks, numbers, pooled.given, counts)
    sizes = np.bincount(ranks, weights=counts[:n_values], minlength=1) if ranks else np.zeros(1)
    representatives: list[Any] = []
    for bucket in range(len(numbers)):
        members = [code for code in listed if ranks[code] == bucket]
        # Which of several rare categories has more records is not told.
        most = max(members, key=lambda code: (counts[code] if counts[code] >= floor else 0, -code), default=None)
        representatives.append(None if most is None else json_value(column.categories[most]))
    buckets = _described(representatives, target, counts, floor)
    return CategoryAttribute(
        column.name,
        *told_categories([json_value(column.categories[c]) for c in listed], [ranks[code] for code in listed], buckets),
        missing,
        int(np.argmax(sizes)) if pooled.place is None else numbers[pooled.place],
        column.bins.has_missing,
        buckets,
        column.bins.n_bins,
    )


def _with_missing(
    column: CodedColumn, ranks: list[int], numbers: Mapping[int, int], given: list[int], counts: NDArray[np.int64]
) -> tuple[list[int], int]:
    """Return the bucket of every code, and that of missing values: their own, a shared one, or the largest."""
    if column.bins.has_missing:
        n_value_buckets = max(ranks) + 1 if ranks else 0
        missing = numbers.get(given[-1], n_value_buckets)
        return [*ranks, missing], missing
    sizes = np.bincount(ranks, weights=counts[: len(ranks)], minlength=1) if ranks else np.zeros(1)
    return ranks, int(np.argmax(sizes))


def _described(
    representatives: list[Any], target: list[int], counts: NDArray[np.int64], floor: int
) -> tuple[Bucket, ...]:
    """Give every bucket its representative and its share of the records; None is that of missing values alone."""
    n_buckets = max(target, default=0) + 1
    sizes = np.bincount(target, weights=counts, minlength=n_buckets) if target else np.zeros(n_buckets)
    shares = safe_shares(sizes.astype(np.int64), max(floor, SAFE_SIZE))
    return tuple(Bucket(representatives[b] if b < len(representatives) else None, shares[b]) for b in range(n_buckets))


def safe_shares(sizes: NDArray[np.int64], fewest: int = SAFE_SIZE) -> list[float | None]:
    """Return shares in hundredths, None for buckets below `fewest` and for as many more as hide those.

    >>> safe_shares(np.array([50, 49, 1])), safe_shares(np.array([50, 50]))
    ([0.5, None, None], [0.5, 0.5])
    """
    by_size = np.argsort(sizes, kind="stable")
    hidden = [int(b) for b in by_size if 0 < sizes[b] < fewest]
    rest = [int(b) for b in by_size if sizes[b] >= fewest]
    # What is left when all others are told must itself be of many records, in several buckets.
    while hidden and rest and (len(hidden) < 2 or sum(int(sizes[b]) for b in hidden) < fewest):
        hidden.append(rest.pop(0))
    total = max(1, int(sizes.sum()))
    return [None if b in hidden else round(int(size) / total, 2) for b, size in enumerate(sizes)]


def _all_whole(*arrays: NDArray[Any]) -> bool:
    return all(bool(((array == np.floor(array)) & (np.abs(array) < 2.0**53)).all()) for array in arrays)


def _cut(column: CodedColumn, last_bin: int, is_whole: bool) -> Any:
    """Return the threshold between a bin and the next."""
    known = _CUTS.setdefault(column, {})
    if last_bin not in known:
        low, high = column.bins.high[last_bin].item(), column.bins.low[last_bin + 1].item()
        if column.moment is not None:
            known[last_bin] = moment_threshold(low, high, column.moment)
        else:
            known[last_bin] = whole_threshold(int(low), int(high)) if is_whole else real_threshold(low, high)
    return known[last_bin]


def typical_value(
    column: CodedColumn,
    cuts: list[Any],
    bucket: int,
    members: NDArray[np.intp],
    counts: NDArray[np.int64],
    *,
    is_whole: bool,
) -> Any:
    """Return the median of a bucket, or a round number beside it where fewer than `SAFE_SIZE` records have it.

    Parameters
    ----------
    column : CodedColumn
    cuts : list
        Thresholds of the attribute.
    bucket : int
    members : ndarray of int
        Fine codes of the bucket.
    counts : ndarray of int
        Records of every fine code.
    is_whole : bool
        Whether all numbers are whole.
    """
    bins = column.bins
    inside = np.cumsum(counts[members])
    middle = int(members[min(len(members) - 1, int(np.searchsorted(inside, inside[-1] / 2)))])
    value = bins.values[middle].item()
    if counts[middle] >= SAFE_SIZE and bins.low[middle] == bins.high[middle]:
        return value
    first_cut = cuts[bucket - 1] if bucket else None
    last_cut = cuts[bucket] if bucket < len(cuts) else None
    below = bins.high[middle - 1].item() if middle > members[0] else first_cut
    above = bins.low[middle + 1].item() if middle < members[-1] else None
    if below is None:  # the lowest value of all: what is told instead is the inner end of its bucket
        if last_cut is not None:
            return _last(column, last_cut)
        if above is None or not _has_room(column, value, above, is_whole=is_whole):
            return _rounded_alone(column, value)
        return _between(column, value, _before(column, above, is_whole=is_whole), value, is_whole=is_whole)
    if above is not None:
        return _between(column, below, _before(column, above, is_whole=is_whole), value, is_whole=is_whole)
    if last_cut is not None:
        return _between(column, below, last_cut, value, is_whole=is_whole)
    return _first_above(column, below, value, is_whole=is_whole)


def _has_room(column: CodedColumn, below: Any, above: Any, *, is_whole: bool) -> bool:
    """Return True if another value of the column lies between two values."""
    step = MICROSECONDS_PER_DAY if column.moment == "date" else 1
    if column.moment is not None or is_whole:
        return bool(above - below > step)
    return bool(np.nextafter(below, np.inf) < above)


def _before(column: CodedColumn, end: Any, *, is_whole: bool) -> Any:
    """Return the largest value below one."""
    return end - 1 if column.moment is not None or is_whole else float(np.nextafter(end, -np.inf))


def _between(column: CodedColumn, below: Any, last: Any, value: Any, *, is_whole: bool) -> Any:
    """Return a round value above one and at most another."""
    if column.moment is not None:
        return moment_threshold(below, last, column.moment) + 1
    if is_whole:
        return type(value)(whole_threshold(int(below) + 1, int(last) + 1))
    return real_threshold(float(np.nextafter(below, np.inf)), float(np.nextafter(last, np.inf)))


def _last(column: CodedColumn, end: Any) -> Any:
    """Return the last value of an open lowest bucket, whole days and seconds for moments."""
    if column.moment is None:
        return end
    step = MICROSECONDS_PER_DAY if column.moment == "date" else 1_000_000
    return int(end) // step * step


def _first_above(column: CodedColumn, below: Any, value: Any, *, is_whole: bool) -> Any:
    """Return a round value of an open highest bucket, near its beginning."""
    if column.moment == "date":
        return (int(below) // MICROSECONDS_PER_DAY + 1) * MICROSECONDS_PER_DAY
    if column.moment is not None:
        return int(below) + 1
    if is_whole:
        return type(value)(int(below) + 1)
    start = float(np.nextafter(below, np.inf))
    return real_threshold(start, value) if start < value else value


def _rounded_alone(column: CodedColumn, value: Any) -> Any:
    """Return the only value there is with one digit, or as a whole day."""
    if column.moment is not None:
        return int(value) // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY if column.moment == "datetime" else value
    rounded = float(f"{value:.0e}")
    if isinstance(value, int):
        return max(-(2**63), min(2**63 - 1, int(rounded)))
    return rounded if np.isfinite(rounded) else value


# -- rare values -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pooled:
    """Buckets of categories after pooling.

    Attributes
    ----------
    given : list of int
        The bucket of every fine code, that of missing values included.
    is_listed : ndarray of bool
        Which categories enough records have.
    place : int or None
        The bucket of rare categories and of those that did not occur; None where no category is rare and it is not
        known.
    """

    given: list[int]
    is_listed: NDArray[np.bool_]
    place: int | None


def pool_rare(given: Sequence[int], counts: NDArray[np.int64], floor: int, unseen: int | None = None) -> Pooled:
    """Pool all categories that fewer than `floor` records have into one bucket.

    It is that of categories which did not occur, where it is known, or the one that most of their records had. If no
    common category is there, it holds rare categories alone, and they must be at least `floor` records together;
    otherwise they go where most records are.

    Parameters
    ----------
    given : sequence of int
        The bucket of every code; a code behind those of the categories is that of missing values.
    counts : ndarray of int
        Records of every category.
    floor : int
    unseen : int, optional
        The bucket of categories that did not occur.

    Returns
    -------
    Pooled
    """
    is_rare = counts < floor
    if not is_rare.any():
        return Pooled(list(given), ~is_rare, unseen if unseen in given[: len(counts)] else None)
    if is_rare.all():  # nothing could be listed, so nothing is told apart
        return Pooled([0] * len(given), ~is_rare, 0)
    common = {given[code] for code in np.flatnonzero(~is_rare).tolist()}
    place = _largest(given, counts, np.flatnonzero(is_rare).tolist()) if unseen is None else unseen
    if place not in common and counts[is_rare].sum() < floor:
        place = _largest(given, counts, np.flatnonzero(~is_rare).tolist())
    gone = {given[code] for code in np.flatnonzero(is_rare).tolist()} - common
    new = [place if bucket in gone else bucket for bucket in given]
    for code in np.flatnonzero(is_rare).tolist():
        new[code] = place
    return Pooled(new, ~is_rare, place)


def _largest(given: Sequence[int], counts: NDArray[np.int64], codes: Sequence[int]) -> int:
    """Return the bucket that has most records of some codes, the first of several."""
    sizes: dict[int, int] = {}
    for code in codes:
        sizes[given[code]] = sizes.get(given[code], 0) + int(counts[code])
    return max(sizes, key=lambda bucket: (sizes[bucket], -bucket))


def joined_runs(ranks: Sequence[int], counts: NDArray[Any], floor: int) -> list[int]:
    """Join neighboring buckets of ordered values until each has `floor` records, or there is one.

    The smallest bucket goes first, the lower one on ties, and joins its smaller neighbor.

    Parameters
    ----------
    ranks : sequence of int
        The bucket of every bin, rising from 0 without gaps.
    counts : ndarray of int
        Records of every bin; more entries than `ranks` are ignored.
    floor : int

    Returns
    -------
    list of int

    Examples
    --------
    >>> joined_runs([0, 1, 1, 2, 3], np.array([50, 5, 20, 40, 1]), 10)
    [0, 1, 1, 2, 2]
    """
    if not ranks or floor <= 1:
        return list(ranks)
    sizes = np.bincount(ranks, weights=counts[: len(ranks)]).astype(np.int64).tolist()
    first = list(range(len(sizes)))  # the first bucket of each joined run
    while len(sizes) > 1 and min(sizes) < floor:
        small = sizes.index(min(sizes))
        if small == 0 or (small + 1 < len(sizes) and sizes[small + 1] < sizes[small - 1]):
            small += 1  # joined with the one above: take the border between them away
        sizes[small - 1] += sizes.pop(small)
        first.pop(small)
    return [int(rank) for rank in np.searchsorted(first, np.asarray(ranks), side="right") - 1]
