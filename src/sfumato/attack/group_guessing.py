# SPDX-License-Identifier: Apache-2.0
"""Groups of people with a list of sensitive values each: guess who has which value, and judge the guesses.

An anatomy and a table of groups show an attacker the same: some people, and their sensitive values in no order. The
attacks on both call this module. :func:`learn_values` is deFinetti's attack.

References
----------
Kifer, D. (2009). Attacks on privacy and deFinetti's theorem.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.result import AttackResult, Hits, judge, wilson_interval

_MOST_ENUMERATED = 5  # groups of up to so many records have few enough orders to try them all
_N_ROUNDS = 30  # of making rows and columns of larger groups sum to 1
_MOST_BY_ROWS = 32  # records of a group up to which every sensitive row is looked at by itself
_MOST_WEIGHED = 20_000_000  # records times values of one group


@dataclass(frozen=True, eq=False)
class _Block:
    """Some groups: records, shape (groups, size), the values they may have, and how many records have each.

    A group too large to be weighed has its most frequent value alone.
    """

    records: NDArray[np.int64]
    values: NDArray[np.int64]
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

    def blocks(self) -> list[_Block]:
        """Return the groups, those of a size together; of a large group, equal sensitive rows are one with a number."""
        found = []
        by_rows = (self.sizes <= _MOST_BY_ROWS) & (self.sizes == self.slot_sizes)
        for size in np.unique(self.sizes[self.sizes > 0]):
            together = np.flatnonzero((self.sizes == size) & by_rows)
            if len(together):
                places = self.starts[together][:, None] + np.arange(size)
                rows = self.slot_starts[together][:, None] + np.arange(size)
                values = self.values[self.slots[rows]]
                found.append(_Block(self.records[places], values, np.ones(values.shape)))
            found += [self._counted(group) for group in np.flatnonzero((self.sizes == size) & ~by_rows).tolist()]
        return found

    def _counted(self, group: int) -> _Block:
        """Return one group; its counts are scaled to its people, where it has another number of sensitive rows."""
        values, counts = np.unique(self.values_of(group), return_counts=True)
        records = self.members_of(group)
        is_weighed = len(records) * len(values) <= _MOST_WEIGHED
        if not is_weighed:
            values, counts = values[[counts.argmax()]], counts[[counts.argmax()]]
        return _Block(records[None], values[None], (counts * len(records) / counts.sum())[None], is_weighed)


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes)))


# -- learning from all groups ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned from all groups together.

    Attributes
    ----------
    guesses : ndarray of int64
        Code of the value guessed of each person.
    chances : list of ndarray of float64
        Per column, the logarithm of how likely each code is for each value.
    n_iterations, n_not_weighed : int
        Rounds, and people of groups too large for this attack, who were guessed by the most frequent value.
    """

    guesses: NDArray[np.int64]
    chances: list[NDArray[np.float64]]
    n_iterations: int
    n_not_weighed: int


def learn_values(
    groups: SensitiveGroups, codes: list[NDArray[np.int64]], n_codes: list[int], n_iterations: int
) -> Learned:
    """Guess values by the relation of known columns and values over all groups.

    From an even guess in every group, count which codes go with which value, weigh the orders of each group by that (a
    naive Bayes model), count again, and so on.

    Parameters
    ----------
    groups : SensitiveGroups
    codes : list of ndarray of int64
        Per known column, the code of each person.
    n_codes : list of int
        Per known column, one more than the highest code.
    n_iterations : int
        Most rounds; ends early when nothing moves.
    """
    blocks = groups.blocks()
    weights = [_even(block) for block in blocks]
    n_done, moved = 0, np.inf
    chances: list[NDArray[np.float64]] = []
    while n_done < n_iterations and moved > 1e-3:
        chances = _count(blocks, weights, codes, n_codes, groups.n_values)
        fresh = [_weigh(block, codes, chances) for block in blocks]
        moved = max(float(np.abs(new - old).mean()) for new, old in zip(fresh, weights, strict=True))
        weights = fresh
        n_done += 1
    guesses = np.empty(len(groups.group), np.int64)
    for block, weight in zip(blocks, weights, strict=True):
        values = block.values
        if values.shape[1] <= _MOST_BY_ROWS:
            is_same = values[:, :, None] == values[:, None, :]  # rows of the same value are one answer
            weight = weight @ is_same.astype(np.float64)
        guesses[block.records] = np.take_along_axis(values, weight.argmax(axis=2), axis=1)
    return Learned(guesses, chances, n_done, sum(block.records.size for block in blocks if not block.is_weighed))


def _count(
    blocks: list[_Block],
    weights: list[NDArray[np.float64]],
    codes: list[NDArray[np.int64]],
    n_codes: list[int],
    n_values: int,
) -> list[NDArray[np.float64]]:
    """Return, per identifying column, the logarithm of how likely each code is for each sensitive value."""
    chances = []
    for code, n in zip(codes, n_codes, strict=True):
        counts = np.full(n_values * n, 1 / n)  # no code is impossible
        for block, weight in zip(blocks, weights, strict=True):
            if not block.is_weighed:
                continue
            pairs = block.values[:, None, :] * n + code[block.records][:, :, None]
            counts += np.bincount(pairs.ravel(), weight.ravel(), minlength=n_values * n)
        table = counts.reshape(n_values, n)
        chances.append(np.log(table / table.sum(axis=1, keepdims=True)))
    return chances


def _even(block: _Block) -> NDArray[np.float64]:
    """Return the weights of an attacker who knows only the group."""
    size = block.records.shape[1]
    return np.repeat(block.counts[:, None, :] / size, size, axis=1)


def _weigh(block: _Block, codes: list[NDArray[np.int64]], chances: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return how likely each record of a group has each of its values, shape (groups, records, values)."""
    records, values = block.records, block.values
    if not block.is_weighed:
        return _even(block)
    fit = np.zeros((*records.shape, values.shape[1]))
    for code, chance in zip(codes, chances, strict=True):
        fit += chance[values[:, None, :], code[records][:, :, None]]
    size = records.shape[1]
    has_all_rows = values.shape[1] == size and bool((block.counts == 1).all())
    if size > _MOST_ENUMERATED or not has_all_rows:  # people who were placed by their values may be more than rows
        return _balanced(fit, block.counts)
    weight = np.zeros_like(fit)
    orders = np.array(list(itertools.permutations(range(size))))
    own = np.arange(size)
    scores = np.stack([fit[:, own, order].sum(axis=1) for order in orders], axis=1)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    scores /= scores.sum(axis=1, keepdims=True)
    for order, score in zip(orders, scores.T, strict=True):
        weight[:, own, order] += score[:, None]
    return weight


def _balanced(fit: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale columns to their counts and rows to 1 in turns: a stand-in for trying all orders of a large group."""
    weight: NDArray[np.float64] = np.exp(np.clip(fit - fit.max(axis=2, keepdims=True), -50, 0))
    for _ in range(_N_ROUNDS):
        weight *= counts[:, None, :] / weight.sum(axis=1, keepdims=True)
        weight /= weight.sum(axis=2, keepdims=True)
    return weight


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
    names_control : bool, default False
        Whether the details say where the control and the baseline come from.
    confidence : float, default 0.95
    """
    is_right = guesses == groups.truth
    interval = clustered_interval(is_right, groups.group, confidence)
    is_frequent = groups.most_frequent[groups.group] == groups.truth
    baseline = float(is_frequent.mean())
    shuffled = np.empty(len(guesses), np.int64)
    order = np.random.default_rng(seed).permutation(len(guesses))
    shuffled[groups.records] = groups.truth[order[np.argsort(groups.group[order], kind="stable")]]
    control, named = higher_control(float((guesses == shuffled).mean()), outside, details)
    rate = float(is_right.mean())
    verdict = judge(rate, interval, baseline, control=control)
    if names_control:
        details = {**named, "baseline_from": "by the most frequent value of the group"}
    seconds = time.perf_counter() - started
    hits = Hits(np.arange(len(guesses)), is_right, is_frequent, groups.truth, groups.group)
    return AttackResult(name, rate, interval, baseline, control, verdict, seconds, seed, details, hits)


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
