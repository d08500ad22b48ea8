# SPDX-License-Identifier: Apache-2.0
"""Find for each group a combination of values that no record of the table has, or that many have.

Each group proposes typical values and, in rising order of distance, small changes of them; see ``phantom_proposals``.
All records of the table are then counted that have one of these combinations, and each group takes its first proposal
that is safe. What is counted are sums of whole numbers, so the order of the records and the backend do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.binning import Bins
from sfumato.partition.records import Layout

NOTHING = -1
"""In the place of a code: the value is missing, in a column where no record's value is."""

FREE = -2
"""In the place of code c, FREE - c stands for a value near those of c that no record has."""


class Shown(NamedTuple):
    """The published form of each code, per row of a histogram. Arrays, as kernels need them."""

    own: NDArray[np.int32]  # code of the bin that the published value lies in, -1 where no record has it
    is_single: NDArray[np.bool_]  # whether the bin has no other value
    may_show: NDArray[np.bool_]  # False for categories that few records have, and for columns with few values
    run: NDArray[np.int32]  # equal for codes of a column that are published alike
    words: NDArray[np.uint64]  # a random word per row: the words of a record's codes add up to its hash
    fallback: NDArray[np.int32]  # per column: what stands for a group that has no value to show
    has_free: NDArray[np.bool_]  # whether there is a value near that no record has
    is_text: NDArray[np.bool_]  # per column
    has_outside: NDArray[np.bool_]  # per column: whether there is a value beyond all others


class Proposals(NamedTuple):
    """The proposals of groups.

    Attributes
    ----------
    typical : ndarray of int32, shape (groups, columns)
        Codes of the typical values.
    changes : ndarray of int32, shape (groups, proposals, 4)
        Two pairs of a column and a code each; a column of -1 stands for no change. The first that is safe is taken.
    is_rare : ndarray of bool
        Whether the typical values are so rare together that hardly anybody has them; else changes come before them.
    n_around : ndarray of int64
        How many of the changes, the first ones, have values that occur around the group.
    """

    typical: NDArray[np.int32]
    changes: NDArray[np.int32]
    is_rare: NDArray[np.bool_]
    n_around: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence[Proposals]) -> Proposals:
        """Return the proposals of all parts, one part after the other."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def make_shown(bins: Sequence[Bins], layout: Layout, is_text: Sequence[bool]) -> Shown:
    """Lay what is published of the bins of all columns end to end."""
    n_rows = int(layout.offsets[-1])
    own, run = np.zeros(n_rows, np.int32), np.zeros(n_rows, np.int32)
    is_single, may_show, has_free = np.ones(n_rows, np.bool_), np.ones(n_rows, np.bool_), np.zeros(n_rows, np.bool_)
    fallback, has_outside = np.zeros(len(bins), np.int32), np.zeros(len(bins), np.bool_)
    for column, (b, start) in enumerate(zip(bins, layout.offsets[:-1], strict=True)):
        assert b.shared is not None
        rows = slice(int(start), int(start) + b.n_values)
        own[rows], is_single[rows] = b.shared.own, b.shared.is_single
        run[rows] = np.arange(b.n_values)
        if b.is_ordered and b.n_values:
            run[rows] = np.append(0, np.cumsum(b.shared.values[1:] != b.shared.values[:-1]))
            may_show[rows] = not b.shared.is_hidden
        else:
            may_show[rows] = b.shared.is_common
        if b.has_missing:
            own[start + b.missing_bin], run[start + b.missing_bin] = b.missing_bin, b.n_values
        has_free[rows], has_outside[column] = b.shared.has_free, b.shared.has_outside
        nothing = b.missing_bin if b.has_missing else NOTHING
        is_unfit = is_text[column] or not b.n_values or b.shared.is_hidden
        is_unfit |= not (b.is_ordered or is_unfit or b.shared.is_common[b.shared.most_common])
        fallback[column] = nothing if is_unfit else b.shared.most_common
    words = np.random.default_rng(0).integers(0, 1 << 64, n_rows, dtype=np.uint64)
    return Shown(own, is_single, may_show, run, words, fallback, has_free, np.array(is_text, np.bool_), has_outside)


def shown_or_fallback(typical: NDArray[np.int32], layout: Layout, shown: Shown) -> NDArray[np.int32]:
    """Return codes of typical values, those that may not be shown replaced by what stands for a group without any."""
    may_show = (typical >= 0) & shown.may_show[layout.offsets[:-1] + np.maximum(typical, 0)]
    return np.where(may_show, typical, shown.fallback).astype(np.int32)


def choose(
    proposals: Proposals, layout: Layout, shown: Shown, floor: int, count: Callable[[NDArray[np.uint64]], NDArray[Any]]
) -> NDArray[np.int32]:
    """Return the codes that each group takes.

    A combination is safe when no record of the table has it, or at least `floor` have. Typical values that are safe but
    not rare are taken only where no change is safe: a person who has them could tell that she is not in the table, or
    that several like her are. Where no proposal is safe, a number
    or date of the typical values moves to one near it that no record has. Without room for that, the proposal is taken
    that most records have, if several do. Else a column of text is left empty in which no record's value is missing,
    or a number lies beyond all others, or another column is left empty. Where every column has missing values already,
    all are left empty: a combination without any value tells of nobody, whoever else has it.

    Parameters
    ----------
    proposals : Proposals
    layout : Layout
    shown : Shown
    floor : int
    count : callable
        Takes rising hashes and returns how many records of the table have each; see `count_hashes`.
    """
    typical, chosen = proposals.typical, proposals.typical.copy()
    hashes, is_free, is_single = _hash_typical(typical, layout.offsets, shown.own, shown.is_single, shown.words)
    found = _looked_up(hashes, ~is_free, count)
    is_safe_alone = (found == 0) | ((found >= floor) & is_single)
    open_groups = np.flatnonzero(~(is_safe_alone & proposals.is_rare))
    if not len(open_groups):
        return chosen
    changes = proposals.changes[open_groups]
    own_hashes, own_free, own_single = _hash_changes(
        typical[open_groups], changes, layout.offsets, shown.own, shown.is_single, shown.words
    )
    exists = changes[:, :, 0] >= 0
    n_alike = _looked_up(own_hashes.ravel(), (exists & ~own_free).ravel(), count).reshape(exists.shape)
    is_safe = exists & ((n_alike == 0) | ((n_alike >= floor) & own_single))
    # Typical values that are safe give way to values that occur around the group, not to others.
    may_replace = np.arange(exists.shape[1]) < proposals.n_around[open_groups, np.newaxis]
    is_safe &= may_replace | ~is_safe_alone[open_groups, np.newaxis]
    # Where nothing is safe, what several people share: the most, the first on ties, the typical values before all.
    shared = np.where(exists & own_single, n_alike, 0)
    own_typical = np.where(is_single[open_groups], found[open_groups], 0)
    best = np.where(is_safe.any(axis=1), is_safe.argmax(axis=1), shared.argmax(axis=1))
    takes_typical = is_safe_alone[open_groups] | (own_typical >= shared.max(axis=1, initial=0))
    takes_typical &= ~is_safe.any(axis=1)
    for group, at, stays in zip(open_groups.tolist(), best.tolist(), takes_typical.tolist(), strict=True):
        if not stays:
            first, code, second, other = proposals.changes[group, at].tolist()
            chosen[group, first] = code
            if second >= 0:
                chosen[group, second] = other
    is_unsafe = ~is_safe.any(axis=1) & ~is_safe_alone[open_groups]
    is_one = np.maximum(own_typical, shared.max(axis=1, initial=0)) < 2
    for group, is_alone in zip(open_groups[is_unsafe].tolist(), is_one[is_unsafe].tolist(), strict=True):
        at = _column_with_room(typical[group], layout, shown)
        if at is not None:
            chosen[group] = typical[group]
            chosen[group, at] = FREE - typical[group, at]
        elif is_alone:
            last_resort = _last_resort(typical[group], layout, shown)
            chosen[group] = layout.missing if last_resort is None else typical[group]
            if last_resort is not None:
                chosen[group, last_resort[0]] = last_resort[1]
    return chosen


def _column_with_room(typical: NDArray[np.int32], layout: Layout, shown: Shown) -> int | None:
    """Return the column of the most codes in which a value near the typical one is nobody's; None where none is."""
    places = layout.offsets[:-1] + np.maximum(typical, 0)
    has_room = (typical >= 0) & (typical != layout.missing) & shown.has_free[places]
    if not has_room.any():
        return None
    return int(np.where(has_room, np.diff(layout.offsets), -1).argmax())


def _last_resort(typical: NDArray[np.int32], layout: Layout, shown: Shown) -> tuple[int, int] | None:
    """Return a column and the code that makes the typical values nobody's; None where all columns have missing values.

    An empty cell changes no type in a column of text. Numbers move beyond the ends, so that models without missing
    values can still learn from the release.
    """
    n_codes = np.diff(layout.offsets)
    is_full = layout.missing < 0
    may_leave = (typical >= 0) & (typical != layout.missing) & shown.has_outside
    for may_take, is_empty in ((is_full & shown.is_text, True), (may_leave, False), (is_full, True)):
        if may_take.any():
            at = int(np.where(may_take, n_codes, -1).argmax())
            return at, NOTHING if is_empty else FREE - int(typical[at])
    return None


def _looked_up(
    hashes: NDArray[np.uint64], is_asked: NDArray[np.bool_], count: Callable[[NDArray[np.uint64]], NDArray[Any]]
) -> NDArray[np.int64]:
    """Return how many records have each combination; 0 for those not asked about, which nobody can have."""
    found = np.zeros(len(hashes), np.int64)
    if is_asked.any():
        wanted, place = np.unique(hashes[is_asked], return_inverse=True)
        found[is_asked] = count(wanted)[place]
    return found


def count_hashes(
    codes: NDArray[Any], layout: Layout, words: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return how many of some records have each of the wanted combinations, given by their rising hashes."""
    counts = np.zeros(len(wanted), np.int64)
    n_bits = max(4, int(2 * len(wanted)).bit_length())
    slots = np.full(1 << n_bits, -1, np.int64)
    _fill_slots(wanted, slots, np.uint64(64 - n_bits))
    _count_hashes(codes, layout.offsets, words, wanted, slots, np.uint64(64 - n_bits), counts)
    return counts


@njit(nogil=True, cache=True)
def _fill_slots(wanted, slots, shift):  # type: ignore[no-untyped-def]
    last = slots.shape[0] - 1
    for i in range(wanted.shape[0]):
        at = np.int64(wanted[i] >> shift)
        while slots[at] >= 0:
            at = (at + 1) & last
        slots[at] = i


@njit(nogil=True, cache=True)
def _count_hashes(codes, offsets, words, wanted, slots, shift, counts):  # type: ignore[no-untyped-def]
    last = slots.shape[0] - 1
    n_columns = offsets.shape[0] - 1
    for i in range(codes.shape[0]):
        own = np.uint64(0)
        for j in range(n_columns):
            own += words[offsets[j] + codes[i, j]]
        at = np.int64(own >> shift)
        while slots[at] >= 0:
            if wanted[slots[at]] == own:
                counts[slots[at]] += 1
                break
            at = (at + 1) & last


@njit(nogil=True, cache=True)
def _hash_typical(typical, offsets, own, is_single, words):  # type: ignore[no-untyped-def]
    """Return the hash of every combination, whether it has a value that nobody has, and whether all bins are single."""
    n_groups, n_columns = typical.shape
    hashes = np.zeros(n_groups, np.uint64)
    is_free, all_single = np.zeros(n_groups, np.bool_), np.ones(n_groups, np.bool_)
    for g in range(n_groups):
        for j in range(n_columns):
            code = typical[g, j]
            place = own[offsets[j] + code] if code >= 0 else -1
            if place < 0:
                is_free[g] = True
            else:
                hashes[g] += words[offsets[j] + place]
                all_single[g] &= is_single[offsets[j] + place]
    return hashes, is_free, all_single


@njit(nogil=True, cache=True)
def _hash_changes(typical, changes, offsets, own, is_single, words):  # type: ignore[no-untyped-def]
    n_groups, n_changes, _ = changes.shape
    n_columns = typical.shape[1]
    hashes = np.zeros((n_groups, n_changes), np.uint64)
    is_free, all_single = np.zeros((n_groups, n_changes), np.bool_), np.ones((n_groups, n_changes), np.bool_)
    for g in range(n_groups):
        for m in range(n_changes):
            for j in range(n_columns):
                code = typical[g, j]
                if changes[g, m, 0] == j:
                    code = changes[g, m, 1]
                elif changes[g, m, 2] == j:
                    code = changes[g, m, 3]
                place = own[offsets[j] + code] if code >= 0 else -1
                if place < 0:
                    is_free[g, m] = True
                else:
                    hashes[g, m] += words[offsets[j] + place]
                    all_single[g, m] &= is_single[offsets[j] + place]
    return hashes, is_free, all_single
