# SPDX-License-Identifier: Apache-2.0
"""Groups of people with a list of sensitive values each, and how guesses of who has which value are judged.

An anatomy and a table of groups show an attacker the same: some people, and their sensitive values in no order. The
attacks on both call this module; ``group_learning`` guesses by what all groups together show.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.result import AttackResult, Hits, judge, wilson_interval

MOST_BY_ROWS = 32
"""Records of a group up to which every sensitive row is looked at by itself."""
_MOST_WEIGHED = 20_000_000  # records times values of one group


@dataclass(frozen=True, eq=False)
class Block:
    """Some groups: records, shape (groups, size), the values they may have, and how many records have each.

    `slots` is a sensitive row with each of the values. A group too large to be weighed has its most frequent value
    alone.
    """

    records: NDArray[np.int64]
    values: NDArray[np.int64]
    slots: NDArray[np.int64]
    counts: NDArray[np.float64]
    is_weighed: bool = True


@dataclass(frozen=True, eq=False)
class SensitiveGroups:
    """The people and the sensitive rows of every group as the attacker sees them, as numbers.

    Attributes
    ----------
    group : ndarray of int64
        Group of each person, from 0.
    slot_group : ndarray of int64
        Group of each sensitive row.
    values : ndarray of int64
        Code of the sensitive value of each sensitive row.
    truth : ndarray of int64
        Code of the true value of each person; for judging only.
    n_groups : int
    """

    group: NDArray[np.int64]
    slot_group: NDArray[np.int64]
    values: NDArray[np.int64]
    truth: NDArray[np.int64]
    n_groups: int

    @cached_property
    def records(self) -> NDArray[np.int64]:
        """People sorted by group; group g has ``starts[g]`` to ``starts[g + 1]``."""
        return np.argsort(self.group, kind="stable")

    @cached_property
    def slots(self) -> NDArray[np.int64]:
        """Sensitive rows sorted by group; group g has ``slot_starts[g]`` to ``slot_starts[g + 1]``."""
        return np.argsort(self.slot_group, kind="stable")

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """People of each group."""
        return np.bincount(self.group, minlength=self.n_groups)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the people of each group start."""
        return _starts(self.sizes)

    @cached_property
    def slot_sizes(self) -> NDArray[np.int64]:
        """Sensitive rows of each group; as many as people, unless people were placed by their values."""
        return np.bincount(self.slot_group, minlength=self.n_groups)

    @cached_property
    def slot_starts(self) -> NDArray[np.int64]:
        """Where the sensitive rows of each group start."""
        return _starts(self.slot_sizes)

    @cached_property
    def n_values(self) -> int:
        """One more than the highest code of a value."""
        return int(max(self.values.max(), self.truth.max())) + 1

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The groups, the values and the counts of all pairs of a group and a sensitive value that occur, sorted."""
        found, counts = np.unique(self.slot_group * self.n_values + self.values, return_counts=True)
        return found // self.n_values, found % self.n_values, counts

    @cached_property
    def n_different(self) -> NDArray[np.int64]:
        """Number of different values of each group."""
        return np.bincount(self.pairs[0], minlength=self.n_groups)

    @cached_property
    def most_frequent(self) -> NDArray[np.int64]:
        """The most frequent value of each group, the lowest code on ties."""
        groups, values, counts = self.pairs
        found = np.zeros(self.n_groups, np.int64)
        order = np.lexsort((-values, counts, groups))  # of a group, the last is the most frequent
        found[groups[order]] = values[order]
        return found

    def values_of(self, group: int) -> NDArray[np.int64]:
        """Return the codes of the sensitive rows of a group."""
        return self.values[self.slots[self.slot_starts[group] : self.slot_starts[group + 1]]]

    def members_of(self, group: int) -> NDArray[np.int64]:
        """Return the people of a group."""
        return self.records[self.starts[group] : self.starts[group + 1]]

    def blocks(self) -> list[Block]:
        """Return the groups, those of a size together; of a large group, equal sensitive rows are one with a number."""
        found = []
        by_rows = (self.sizes <= MOST_BY_ROWS) & (self.slot_sizes <= MOST_BY_ROWS) & (self.sizes > 0)
        shapes = np.unique(np.stack([self.sizes, self.slot_sizes], axis=1)[by_rows], axis=0)
        for size, n_rows in shapes.tolist():
            together = np.flatnonzero((self.sizes == size) & (self.slot_sizes == n_rows))
            places = self.starts[together][:, None] + np.arange(size)
            slots = self.slots[self.slot_starts[together][:, None] + np.arange(n_rows)]
            counts = np.full(slots.shape, size / n_rows)  # other than 1 where some of the group's people are missing
            found.append(Block(self.records[places], self.values[slots], slots, counts))
        return found + [self._counted(group) for group in np.flatnonzero((self.sizes > 0) & ~by_rows).tolist()]

    def _counted(self, group: int) -> Block:
        """Return one group; its counts are scaled to its people, where it has another number of sensitive rows."""
        slots = self.slots[self.slot_starts[group] : self.slot_starts[group + 1]]
        values, first, counts = np.unique(self.values[slots], return_index=True, return_counts=True)
        slots = slots[first]
        records = self.members_of(group)
        is_weighed = len(records) * len(values) <= _MOST_WEIGHED
        if not is_weighed:
            most = [int(counts.argmax())]
            values, slots, counts = values[most], slots[most], counts[most]
        shares = counts * len(records) / counts.sum()
        return Block(records[None], values[None], slots[None], shares[None], is_weighed)


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes)))


# -- judging -----------------------------------------------------------------------------------------------------


def judge_guesses(
    name: str,
    groups: SensitiveGroups,
    guesses: NDArray[np.int64],
    details: dict[str, Any],
    *,
    started: float,
    seed: int,
    outside: float | None = None,
    baseline: NDArray[np.bool_] | None = None,
    is_judged: NDArray[np.bool_] | None = None,
    names_control: bool = False,
    confidence: float = 0.95,
) -> AttackResult:
    """Compare guesses with the truth, with the most frequent value of the group, and with a shuffled truth.

    Parameters
    ----------
    name : str
        Of the attack.
    groups : SensitiveGroups
    guesses : ndarray of int64
        Code of the value guessed of each person.
    details : dict
    started : float
        ``time.perf_counter()`` when the attack began.
    seed : int
    outside : float, optional
        Rate of the same attack on people outside the release; the control is the higher of the two then.
    baseline : ndarray of bool, optional
        Whether an attacker who does not see the release guesses each person; the baseline is this one or the group's
        most frequent value, whichever is right more often.
    is_judged : ndarray of bool, optional
        The people whose guesses count; all unless given.
    names_control : bool, default False
        Whether the details say where the control and the baseline come from.
    confidence : float, default 0.95
    """
    some = np.arange(len(guesses)) if is_judged is None else np.flatnonzero(is_judged)
    is_right = (guesses == groups.truth)[some]
    interval = clustered_interval(is_right, groups.group[some], confidence)
    without = [groups.most_frequent[groups.group] == groups.truth, *([] if baseline is None else [baseline])]
    by_baseline = max((hits[some] for hits in without), key=lambda hits: float(hits.mean()))
    shuffled = np.empty(len(guesses), np.int64)
    order = np.random.default_rng(seed).permutation(len(guesses))
    shuffled[groups.records] = groups.truth[order[np.argsort(groups.group[order], kind="stable")]]
    control, named = higher_control(float((guesses == shuffled)[some].mean()), outside, details)
    rate = float(is_right.mean())
    verdict = judge(rate, interval, float(by_baseline.mean()), control=control)
    if names_control:
        details = {**named, "baseline_from": "by the most frequent value of the group"}
    seconds = time.perf_counter() - started
    hits = Hits(some, is_right, by_baseline, groups.truth[some], groups.group[some])
    return AttackResult(name, rate, interval, float(by_baseline.mean()), control, verdict, seconds, seed, details, hits)


def higher_control(
    shuffled: float | None, outside: float | None, details: dict[str, Any]
) -> tuple[float | None, dict[str, Any]]:
    """Return the higher of two controls, and the details with both and with the words for the one that is taken.

    Parameters
    ----------
    shuffled : float or None
        Rate of the attack where the values were shuffled.
    outside : float or None
        Rate of the attack on people outside the release.
    details : dict
    """
    rates = {"people outside the release": outside, "values shuffled": shuffled}
    there = {words: rate for words, rate in rates.items() if rate is not None}
    if not there:
        return None, details
    words = max(there, key=lambda name: there[name])
    return there[words], {**details, "control_from": words, "controls": there}


def clustered_interval(
    is_right: NDArray[np.bool_], group: NDArray[np.int64], confidence: float = 0.95
) -> tuple[float, float]:
    """Return Wilson's interval of a share of right guesses where groups, not people, are independent of each other.

    Examples
    --------
    >>> people = np.array([True, True, False, False])
    >>> narrow, wide = (clustered_interval(people, np.array(of)) for of in ([0, 1, 0, 1], [0, 0, 1, 1]))
    >>> narrow[0] >= wide[0]
    True
    """
    if len(is_right) == 0:
        return wilson_interval(0, 0, confidence)
    _, place, sizes = np.unique(group, return_inverse=True, return_counts=True)
    hits = np.bincount(place, is_right)
    rate = float(hits.sum() / len(is_right))
    variance = float(((hits - rate * sizes) ** 2).sum()) / len(is_right) ** 2
    # If all groups have equally many hits, the groups are the independent trials.
    is_even = variance * len(sizes) < 1e-9
    n_effective = float(len(sizes)) if is_even else min(rate * (1 - rate) / variance, float(len(is_right)))
    return wilson_interval(rate * n_effective, n_effective, confidence)
