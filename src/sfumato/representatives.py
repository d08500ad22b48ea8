# SPDX-License-Identifier: Apache-2.0
"""How a group is rewritten: every record of a group gets the same values.

All kinds work on bins and on what may be published of them, so every backend that agrees on the bins agrees on the
result. Called by ``anonymize`` with the coded columns of the records to be released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.columns import MICROSECONDS_PER_DAY
from sfumato.errors import GuaranteeError, ParameterError
from sfumato.hierarchies import CodePaths
from sfumato.labels import label_range, label_set, with_missing
from sfumato.partition.binning import Bins
from sfumato.partition.group_summaries import (
    Groups,
    Summary,
    distance_from_mean,
    nearest_members,
    nearest_share,
    rank_members,
    summarize,
)
from sfumato.partition.guides import Guide
from sfumato.partition.phantoms import (
    FREE,
    NOTHING,
    Proposals,
    Shown,
    choose,
    count_hashes,
    make_shown,
    propose,
    shown_or_fallback,
)
from sfumato.partition.records import Layout, make_layout
from sfumato.sources import CodedColumn

Representative = Literal["phantom", "median", "member", "model", "mean", "midrange", "sample", "range", "bounds"]

_LARGEST_SUMMED = 2.0**940  # a sum of 2^80 such numbers is still finite

REPRESENTATIVES: tuple[str, ...] = get_args(Representative)

NEAREST_PREDICTIONS = 0.1
"""Share of a group's members, those with predictions nearest the group's mean, of which ``"model"`` takes the most
typical. The single nearest one may be odd in everything else, which costs accuracy in large groups."""


RARE = "other"
"""What stands in a label for categories that fewer than k records have."""


@dataclass(frozen=True, eq=False)
class GroupValues:
    """One value per group for one column of the release, before it is written in the frame's type.

    Attributes
    ----------
    name : str
        Name in the release; differs from the column's for bounds.
    values : ndarray or None
        Numbers, microseconds or category indexes; None for labels.
    missing : ndarray of bool or None
    labels : list of str or None
        Text, for ``"range"``.
    """

    name: str
    values: NDArray[Any] | None = None
    missing: NDArray[np.bool_] | None = None
    labels: list[str | None] | None = None


def check_representative(kind: str) -> None:
    """Refuse a kind of representative that does not exist."""
    if kind not in REPRESENTATIVES:
        raise ParameterError(
            f"representative={kind!r}: expected one of {', '.join(REPRESENTATIVES)}. 'phantom' shows nobody's values."
        )


def represent(
    kind: str,
    columns: Sequence[CodedColumn],
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    *,
    guide: Guide | None = None,
    random_state: np.random.Generator | None = None,
    summary: Summary | None = None,
    n_threads: int = 1,
    paths: Mapping[str, CodePaths] | None = None,
) -> dict[str, list[GroupValues]]:
    """Return the values that each group's records get, per column.

    Parameters
    ----------
    kind : str
        One of `REPRESENTATIVES`.
    columns : sequence of CodedColumn
        The quasi-identifiers.
    codes : ndarray, shape (n, at least len(columns))
        Codes of all records, the quasi-identifiers first and in the order of `columns`.
    groups : Groups
    layout : Layout
        Of the quasi-identifiers.
    guide : Guide, optional
        Predictions of the records, which ``"model"`` and ``"member"`` look at. Without them both take the member
        nearest the group's median.
    random_state : Generator, optional
        Needed for ``"sample"``.
    summary : Summary, optional
        Spares counting the groups again.
    paths : mapping of str to CodePaths, optional
        For columns with a hierarchy: the labels above their codes. ``"range"`` publishes the lowest common ancestor.
    """
    shown = shown_of(columns, layout)
    if summary is None:
        summary = summarize(codes, groups, layout, may_show=shown.may_show, n_threads=n_threads)
    if kind == "phantom":
        proposals = propose(codes, groups, layout, summary.middle, shown, n_threads=n_threads)
        return phantoms(columns, proposals, lambda wanted: count_hashes(codes, layout, shown.words, wanted))
    middle = shown_or_fallback(summary.middle, layout, shown)
    if kind == "range":
        known = paths or {}
        made = {c.name: [_ranges(c, codes[:, j], groups, summary, j, known.get(c.name))] for j, c in enumerate(columns)}
    elif kind == "bounds":
        made = {c.name: _bounds(c, codes[:, j], groups, summary, j) for j, c in enumerate(columns)}
    elif kind == "mean":
        made = {c.name: [_mean(c, codes[:, j], groups, middle[:, j])] for j, c in enumerate(columns)}
    elif kind == "midrange":
        made = {c.name: [_midrange(c, summary, j, middle[:, j])] for j, c in enumerate(columns)}
    elif kind == "median":
        made = values_of_codes(columns, middle)
    else:
        members = _members(kind, codes, groups, layout, summary, guide, random_state, n_threads)
        chosen = codes[members][:, : len(columns)].astype(np.int32)
        made = values_of_codes(columns, np.where(shown.may_show[layout.offsets[:-1] + chosen], chosen, middle))
    for column in columns:
        if kind != "range" and column.bins.shared is not None and column.bins.shared.is_hidden:
            made[column.name] = [replace(own, missing=np.ones(groups.n_groups, np.bool_)) for own in made[column.name]]
    return made


def shown_of(columns: Sequence[CodedColumn], layout: Layout) -> Shown:
    """Return what is published of the codes of all columns."""
    return make_shown([column.bins for column in columns], layout, [column.is_text for column in columns])


def phantoms(
    columns: Sequence[CodedColumn],
    proposals: Proposals,
    count: Callable[[NDArray[np.uint64]], NDArray[np.int64]],
) -> dict[str, list[GroupValues]]:
    """Return for each group a combination of values that no record has, or that many have.

    Parameters
    ----------
    columns : sequence of CodedColumn
    proposals : Proposals
    count : callable
        Takes rising hashes and returns how many records of the whole table have each combination.

    Raises
    ------
    GuaranteeError
        When a group is left with nothing but combinations that one record alone has.
    """
    layout = make_layout([column.bins for column in columns])
    shared = columns[0].bins.shared
    assert shared is not None
    codes, n_alone = choose(proposals, layout, shown_of(columns, layout), shared.floor, count)
    if n_alone:
        raise GuaranteeError(
            f"{n_alone:,} of {len(codes):,} groups could only be shown with a combination of quasi-identifiers that a "
            "single record has: expected one that no record or several have. Use representative='range', make columns "
            "coarser with limits=, name fewer quasi-identifiers or raise k."
        )
    return values_of_codes(columns, codes)


def values_of_codes(columns: Sequence[CodedColumn], codes: NDArray[np.int32]) -> dict[str, list[GroupValues]]:
    """Return what is published for the codes of each group, shape (groups, columns)."""
    return {c.name: [_values_of_bins(c.name, c.bins, codes[:, j])] for j, c in enumerate(columns)}


def _members(
    kind: str,
    codes: NDArray[Any],
    groups: Groups,
    layout: Layout,
    summary: Summary,
    guide: Guide | None,
    random_state: np.random.Generator | None,
    n_threads: int,
) -> NDArray[np.int64]:
    """Choose one record per group."""
    if kind == "sample":
        if random_state is None:
            raise ParameterError("representative='sample' without a seed: expected one. Pass random_state=.")
        return rank_members(codes, groups, layout.n_columns, random_state.random(groups.n_groups))
    if guide is not None and not looks_at_classes(kind, guide):
        distance = distance_from_mean(groups, _channels_of(guide), guide.channel_weights, n_threads=n_threads)
        nearest_share(groups, distance, NEAREST_PREDICTIONS, n_threads=n_threads)
    else:
        distance = _distance_from_majority(guide, groups)
    return nearest_members(codes, groups, layout, summary.middle, distance, n_threads=n_threads)


def looks_at_classes(kind: str, guide: Guide) -> bool:
    """Say whether a representative looks at the predicted classes, and not at the channels or at nothing."""
    return kind == "member" or (kind == "model" and not len(guide.channel_weights))


def _distance_from_majority(guide: Guide | None, groups: Groups) -> NDArray[np.float64]:
    """0 for records of their group's most frequent class (the lowest on ties), infinity for the others."""
    distance = np.zeros(len(groups.group))
    if guide is None or guide.classes is None:
        return distance
    n_classes = int(guide.classes.max()) + 1
    kept = groups.group >= 0
    counts = np.zeros((groups.n_groups, n_classes), np.int64)
    np.add.at(counts, (groups.group[kept], guide.classes[kept]), 1)
    majority = counts.argmax(axis=1)
    distance[kept] = np.where(guide.classes[kept] == majority[groups.group[kept]], 0.0, np.inf)
    return distance


def _channels_of(guide: Guide) -> NDArray[np.int64]:
    """Return all channels of the records side by side, coded blocks as the ones and zeros they stand for."""
    parts = [] if guide.dense is None else [guide.dense]
    for codes, n_classes in zip(guide.code_blocks, guide.cardinalities, strict=True):
        parts.append(np.eye(n_classes, dtype=np.int64)[codes])
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _values_of_bins(name: str, bins: Bins, codes: NDArray[np.integer[Any]]) -> GroupValues:
    assert bins.shared is not None
    missing = codes == NOTHING
    if bins.has_missing:
        missing |= codes == bins.missing_bin
    if not bins.n_values:
        return GroupValues(name, np.zeros(len(codes), bins.values.dtype), np.ones(len(codes), np.bool_))
    is_free = codes <= FREE
    values = bins.shared.values[np.where(missing | is_free, 0, codes)]
    if is_free.any():
        values = np.where(is_free, bins.shared.free[np.where(is_free, FREE - codes, 0)], values)
    return GroupValues(name, values, missing)


def _mean(column: CodedColumn, codes: NDArray[Any], groups: Groups, middle: NDArray[np.int32]) -> GroupValues:
    """Mean of the published values of the group's bins; categories have none and take their mode."""
    bins = column.bins
    assert bins.shared is not None
    fallback = _values_of_bins(column.name, bins, middle)
    if not bins.is_ordered or not bins.n_values:
        return fallback
    kept = (groups.group >= 0) & (codes != bins.missing_bin)
    own = groups.group[kept]
    counts = np.bincount(own, minlength=groups.n_groups)
    # Sum counts per (group, bin) in bin order: the same numbers in the same order for any order of the records.
    cells, in_cell = np.unique(own.astype(np.int64) * bins.n_values + codes[kept], return_counts=True)
    origin, scale = min(bins.low[0], bins.shared.values.min()), 1.0
    if bins.values.dtype.kind == "f" and max(abs(origin), abs(bins.high[-1])) > _LARGEST_SUMMED:
        origin, scale = np.float64(0), 2.0**-80  # a power of two, so nothing is lost but the overflow
    shifted = _above(bins.shared.values, origin) * scale
    sums = np.bincount(
        cells // bins.n_values, weights=in_cell * shifted[cells % bins.n_values], minlength=groups.n_groups
    )
    means = sums / np.maximum(1, counts) / scale
    is_missing = fallback.missing if fallback.missing is not None else np.zeros(len(middle), np.bool_)
    values = _added(column, np.broadcast_to(origin, means.shape), means)
    return GroupValues(column.name, np.where(is_missing, bins.values.dtype.type(0), values), is_missing)


def _midrange(column: CodedColumn, summary: Summary, j: int, middle: NDArray[np.int32]) -> GroupValues:
    """Middle between the published values of the lowest and the highest bin; categories take their mode."""
    bins = column.bins
    fallback = _values_of_bins(column.name, bins, middle)
    if not bins.is_ordered or not bins.n_values:
        return fallback
    assert bins.shared is not None
    low = bins.shared.values[np.maximum(0, summary.lowest[:, j])]
    high = bins.shared.values[np.maximum(0, summary.highest[:, j])]
    half = high / 2 - low / 2 if low.dtype.kind == "f" else _above(high, low) / 2
    values = _added(column, low, half)
    is_missing = fallback.missing if fallback.missing is not None else np.zeros(len(low), np.bool_)
    return GroupValues(column.name, np.where(is_missing, bins.values.dtype.type(0), values), is_missing)


def _above(values: NDArray[Any], origin: Any) -> NDArray[np.float64]:
    """Return how far values lie above an origin; differences of integers may pass 63 bits, so they are unsigned."""
    if values.dtype.kind == "f":
        return np.asarray(values - origin, np.float64)
    return (values.view(np.uint64) - np.asarray(origin).view(np.uint64)).astype(np.float64)


def _added(column: CodedColumn, origin: NDArray[Any], offsets: NDArray[np.float64]) -> NDArray[Any]:
    """Add offsets to values of the column; integers stay integers and dates stay whole days."""
    if column.bins.values.dtype.kind == "f":
        return np.asarray(origin + offsets)
    step = MICROSECONDS_PER_DAY if column.moment == "date" else 1
    whole = np.minimum(np.rint(offsets / step) * step, np.nextafter(2.0**64, 0)).astype(np.uint64)
    total = (np.ascontiguousarray(origin).view(np.uint64) + whole).view(np.int64)
    return np.asarray(np.minimum(total, column.bins.high[-1]))


def _ends(column: CodedColumn) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the published ends of each bin: of its run, which at least k records share.

    With a limit the values are middles of intervals: the true ones may lie anywhere in them, so the ends are those of
    the intervals. The last integer or day of an interval is its high end; reals and times stop short of theirs.
    """
    shared, width = column.bins.shared, column.width
    assert shared is not None
    low, high = shared.low, shared.high
    if width is None:
        return low, high
    if low.dtype.kind == "f":
        with np.errstate(over="ignore"):
            first, last = np.floor(low / width) * width, (np.floor(high / width) + 1) * width
        furthest = np.finfo(np.float64).max
        return _few_digits(np.maximum(first, -furthest)), _few_digits(np.minimum(last, furthest))
    whole = np.int64(width)
    reach = whole if column.moment in ("datetime", "duration") else whole - 1
    low, start = low // whole * whole, high // whole * whole
    high = start + np.minimum(reach, np.iinfo(np.int64).max - np.maximum(start, 0))
    if column.moment == "date":  # -(-a // b): rounded up
        low = -(-low // MICROSECONDS_PER_DAY) * MICROSECONDS_PER_DAY
        high = high // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY
    elif column.moment == "time":
        high = np.minimum(high, MICROSECONDS_PER_DAY - 1)
    return low, high


def _few_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0.3 for a multiple of 0.1 that came out as 0.30000000000000004."""
    short = np.array([float(f"{value:.15g}") for value in values])
    return np.where(np.abs(short - values) <= np.spacing(np.abs(values)), short, values)


def _bounds(column: CodedColumn, codes: NDArray[Any], groups: Groups, summary: Summary, j: int) -> list[GroupValues]:
    """Lowest and highest value as two columns, missing where all are; the outermost ends stand for few beyond them.

    Categories go by the order that their type declares, and without one by the sorted order, which is a convention.
    """
    bins = column.bins
    is_missing = summary.lowest[:, j] < 0
    lows, highs = _ends(column)
    lowest: NDArray[Any] = summary.lowest[:, j]
    highest: NDArray[Any] = summary.highest[:, j]
    if not bins.is_ordered and bins.n_values:
        lowest, highest, has_some = _common_ends(column, codes, groups)
        is_missing = is_missing | ~has_some
    parts = []
    for suffix, ends, at in (("low", lows, lowest), ("high", highs, highest)):
        values = ends[np.maximum(0, at)] if bins.n_values else np.zeros(len(is_missing), bins.values.dtype)
        parts.append(GroupValues(f"{column.name}_{suffix}", values, is_missing))
    return parts


def _common_ends(
    column: CodedColumn, codes: NDArray[Any], groups: Groups
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Return the first and last common category of each group in the declared order, and whether it has any."""
    bins = column.bins
    assert bins.shared is not None
    by_place = np.arange(bins.n_values) if column.places is None else np.argsort(column.places)
    rank = np.argsort(by_place)
    may_show = np.append(bins.shared.is_common, False)  # the last: missing
    kept = (groups.group >= 0) & may_show[codes]
    first, last = np.full(groups.n_groups, bins.n_values), np.full(groups.n_groups, -1)
    np.minimum.at(first, groups.group[kept], rank[codes[kept]])
    np.maximum.at(last, groups.group[kept], rank[codes[kept]])
    has_some = last >= 0
    if not column.is_text and bins.shared.is_common[bins.shared.most_common]:  # text can miss a value
        first, last = (np.where(has_some, end, rank[bins.shared.most_common]) for end in (first, last))
        has_some = np.ones(groups.n_groups, np.bool_)
    last_place = bins.n_values - 1
    return by_place[np.minimum(first, last_place)], by_place[np.maximum(last, 0)], has_some


def _ranges(
    column: CodedColumn, codes: NDArray[Any], groups: Groups, summary: Summary, j: int, paths: CodePaths | None
) -> GroupValues:
    """Labels such as ``31-34``, ``{nurse, teacher}`` or of a hierarchy, for publication; missing where all are."""
    bins = column.bins
    if paths is not None:
        ends = (summary.lowest[:, j], summary.highest[:, j], summary.n_missing[:, j])
        return GroupValues(column.name, labels=paths.group_labels(*ends))
    if bins.is_ordered:
        spans = _spans(column, summary.lowest[:, j], summary.highest[:, j])
    else:
        assert column.categories is not None and bins.shared is not None
        kept = (groups.group >= 0) & (codes != bins.missing_bin)
        cells = np.unique(groups.group[kept].astype(np.int64) * max(1, bins.n_values) + codes[kept])
        members: list[list[Any]] = [[] for _ in range(groups.n_groups)]
        has_rare = np.zeros(groups.n_groups, np.bool_)
        for cell in cells:  # sorted, so each list is in the order of the categories
            group, code = cell // bins.n_values, cell % bins.n_values
            if bins.shared.is_common[code]:
                members[group].append(column.categories[code])
            else:
                has_rare[group] = True
        named = ([*own, RARE] if rare else own for own, rare in zip(members, has_rare, strict=True))
        spans = [label_set(values) if values else None for values in named]
    some_missing = summary.n_missing[:, j] > 0
    return GroupValues(
        column.name,
        labels=[with_missing(s) if m and s is not None else s for s, m in zip(spans, some_missing, strict=True)],
    )


def _spans(column: CodedColumn, lowest: NDArray[np.int32], highest: NDArray[np.int32]) -> list[str | None]:
    """Return a label for the values of each group from its lowest to its highest bin; None where all are missing."""
    shared = column.bins.shared
    assert shared is not None
    lows, highs = _ends(column)
    spans: list[str | None] = []
    for low, high in zip(lowest, highest, strict=True):
        if low < 0:
            spans.append(None)
            continue
        label = label_range(
            lows[low], highs[high], column.moment, is_zoned=column.is_zoned,
            opens_below=shared.is_hidden or bool(shared.is_open[0] and shared.low[low] == shared.low[0]),
            opens_above=shared.is_hidden or bool(shared.is_open[1] and shared.high[high] == shared.high[-1]),
        )  # fmt: skip
        spans.append(label)
    return spans
