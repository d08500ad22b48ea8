# SPDX-License-Identifier: Apache-2.0
"""Attacks on anatomized tables: guess which member of a group has which sensitive value.

Both take the two published tables, whose last column is the group, and the truth, which the attacker does not have.
:func:`definetti` learns from all groups together which identifying values go with which sensitive ones;
:func:`minimality` assumes that groups were joined only if necessary. Audits and the command line call them.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attack.result import AttackResult, judge, wilson_interval
from sfumato.backends.memory import MemorySource
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import group_rows
from sfumato.loss.released_groups import code_values

_MOST_ENUMERATED = 5  # groups of up to so many records have few enough orders to try them all
_N_ROUNDS = 30  # of making rows and columns of larger groups sum to 1
_N_DRAWS = 500
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
class Published:
    """The published tables as the attacker sees them, as numbers.

    Attributes
    ----------
    table : Table
        The identifying table, the group included.
    group : ndarray of int64
        Group of each identifying row, from 0.
    records, slots : ndarray of int64
        Identifying rows and sensitive rows, both sorted by group; group g has ``starts[g]`` to ``starts[g + 1]``.
    values : ndarray of int64
        Code of the sensitive value of each sensitive row.
    truth : ndarray of int64
        Code of the true value of each identifying row; for judging only.
    """

    table: Table
    group: NDArray[np.int64]
    records: NDArray[np.int64]
    slots: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    truth: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Records of each group."""
        return np.diff(self.starts)

    def blocks(self) -> list[_Block]:
        """Return the groups, those of a size together; of a large group, equal sensitive rows are one with a number."""
        found = []
        for size in np.unique(self.sizes):
            starts = self.starts[:-1][self.sizes == size]
            if size <= _MOST_BY_ROWS:
                places = starts[:, None] + np.arange(size)
                values = self.values[self.slots[places]]
                found.append(_Block(self.records[places], values, np.ones(values.shape)))
                continue
            for start in starts:
                values, counts = np.unique(self.values[self.slots[start : start + size]], return_counts=True)
                records = self.records[start : start + size]
                is_weighed = len(records) * len(values) <= _MOST_WEIGHED
                if not is_weighed:
                    values, counts = values[[counts.argmax()]], np.array([size])
                found.append(_Block(records[None], values[None], counts[None].astype(np.float64), is_weighed))
        return found


def definetti(
    identifying: Any,
    sensitive: Any,
    truth: ArrayLike,
    *,
    column: str | int | None = None,
    n_iterations: int = 30,
    max_bins: int = 16,
    random_state: int = 0,
) -> AttackResult:
    """Guess sensitive values from the relation of identifying and sensitive columns over all groups.

    Groups are mixtures of the same few kinds of people. From an even guess in every group the attacker counts which
    identifying values go with which sensitive value, weighs the possible orders of each group by that (a naive Bayes
    model), counts again, and so on.

    Parameters
    ----------
    identifying, sensitive : frame or array
        The published tables; the last column of both is the group.
    truth : array-like
        The true sensitive value of every identifying row.
    column : str or int, optional
        The sensitive column that is attacked; needed where there are several.
    n_iterations : int, default=30
        Rounds of counting and weighing; ends early when nothing moves.
    max_bins : int, default=16
        Bins of an identifying column of numbers.
    random_state : int, default=0
        For the control only.

    Returns
    -------
    AttackResult
        The rate is the share of identifying rows whose value was guessed. The baseline guesses the most frequent value
        of the group; the control judges the same guesses by a truth that was shuffled within groups.
        ``n_not_weighed`` among the details are records of groups too large for this attack, which were guessed by the
        most frequent value.

    References
    ----------
    Kifer, D. (2009). Attacks on privacy and deFinetti's theorem.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.attack.anatomy_attacks import definetti
    >>> sexes, ills = ["f", "m"] * 50, ["flu", "gout"] * 50
    >>> groups = [i // 2 if i % 10 else 99 for i in range(100)]
    >>> who, what = pa.table({"sex": sexes, "group": groups}), pa.table({"ill": ills, "group": groups})
    >>> definetti(who, what, ills).rate
    1.0
    """
    started = time.perf_counter()
    if n_iterations < 1:
        raise ParameterError(f"{named('n_iterations', n_iterations)}: expected a whole number of at least 1.")
    published = _read(identifying, sensitive, truth, column)
    names = published.table.names[:-1]
    codes = [c.codes.astype(np.int64) for c in MemorySource(published.table, names, max_bins=max_bins).columns]
    n_codes = [int(code.max()) + 1 for code in codes]
    n_values = int(published.values.max()) + 1
    blocks = published.blocks()
    weights = [_even(block) for block in blocks]
    n_done, moved = 0, np.inf
    while n_done < n_iterations and moved > 1e-3:
        chances = _count(blocks, weights, codes, n_codes, n_values)
        fresh = [_weigh(block, codes, chances) for block in blocks]
        moved = max(float(np.abs(new - old).mean()) for new, old in zip(fresh, weights, strict=True))
        weights = fresh
        n_done += 1
    guesses = np.empty(len(published.group), np.int64)
    for block, weight in zip(blocks, weights, strict=True):
        values = block.values
        if values.shape[1] <= _MOST_BY_ROWS:
            is_same = values[:, :, None] == values[:, None, :]  # rows of the same value are one answer
            weight = weight @ is_same.astype(np.float64)
        guesses[block.records] = np.take_along_axis(values, weight.argmax(axis=2), axis=1)
    n_left = sum(block.records.size for block in blocks if not block.is_weighed)
    details = {"n_iterations": n_done, "n_columns": len(names), "n_not_weighed": n_left}
    return _judged("definetti", published, guesses, details, started, random_state)


def minimality(
    identifying: Any,
    sensitive: Any,
    truth: ArrayLike,
    *,
    l: int,  # noqa: E741
    column: str | int | None = None,
    columns: list[str | int] | None = None,
    random_state: int = 0,
) -> AttackResult:
    """Guess sensitive values, assuming that records were grouped only if necessary.

    People with the same identifying values form a class. An algorithm that changes as little as it can joins classes in
    one group only if one of them was not l-diverse by itself. So the attacker rules out every order of a group's values
    under which all its classes would have been l-diverse, and takes the most frequent value of those left. Groups with
    a class of fewer than l records tell nothing, since such a class is never l-diverse.

    Parameters
    ----------
    identifying, sensitive, truth, column, random_state
        As for :func:`definetti`; the seed also serves the orders drawn in groups of more than 5.
    l : int
        What the groups were made for.
    columns : list of str or int, optional
        The identifying columns whose values make a class; all of them unless given.

    Returns
    -------
    AttackResult
        As for :func:`definetti`; ``n_telling_groups`` among the details are those the reasoning says something about.
        Groups that Xiao and Tao's algorithm makes have fewer than 2 l records, so none of them does.

    References
    ----------
    Wong, R., Fu, A., Wang, K., Pei, J. (2007). Minimality attack in privacy preserving data publishing.

    Examples
    --------
    Two men and two women in one group of four, which is needed only if one sex had too few different illnesses.

    >>> import pyarrow as pa
    >>> sexes, ills = ["f", "f", "m", "m"] * 25, ["flu", "flu", "gout", "cold"] * 25
    >>> groups = [i // 4 for i in range(100)]
    >>> who, what = pa.table({"sex": sexes, "group": groups}), pa.table({"ill": ills, "group": groups})
    >>> result = minimality(who, what, ills, l=2)
    >>> result.details["n_telling_groups"]
    25
    """
    started = time.perf_counter()
    published = _read(identifying, sensitive, truth, column)
    table = published.table
    names = table.names[:-1] if columns is None else table.resolve(columns, "columns")
    classes = _classes(table, names)
    random = np.random.default_rng(random_state)
    guesses = np.empty(len(published.group), np.int64)
    n_telling = 0
    for g in range(len(published.sizes)):
        place = slice(published.starts[g], published.starts[g + 1])
        records, values = published.records[place], published.values[published.slots[place]]
        _, class_of, sizes = np.unique(classes[records], return_inverse=True, return_counts=True)
        guess: NDArray[np.int64] | None = None
        if len(sizes) > 1 and sizes.min() >= l:
            guess = _most_frequent_left(values, class_of, sizes, l, random)
            n_telling += guess is not None
        guesses[records] = np.bincount(values).argmax() if guess is None else guess
    details = {"n_telling_groups": n_telling, "n_groups": len(published.sizes), "l": int(l)}
    return _judged("minimality", published, guesses, details, started, random_state)


def _read(identifying: Any, sensitive: Any, truth: ArrayLike, column: str | int | None) -> Published:
    """Check that the tables fit together and number groups and values."""
    who, what = read_table(identifying), read_table(sensitive)
    if len(who.names) < 2 or len(what.names) < 2:
        raise InputError("a table with one column: expected some columns and, last, the group, in both tables.")
    if column is None and len(what.names) > 2:
        raise ParameterError(
            f"column=None with {len(what.names) - 1} sensitive columns: expected which of them is attacked. Name it."
        )
    name = what.names[0] if column is None else what.resolve([column], "column")[0]
    groups = [table.column(table.names[-1]).values.astype(np.int64) for table in (who, what)]
    labels, numbered = np.unique(np.concatenate(groups), return_inverse=True)
    own, theirs = numbered[: who.n_records], numbered[who.n_records :]
    sizes = np.bincount(own, minlength=len(labels))
    if not np.array_equal(sizes, np.bincount(theirs, minlength=len(labels))):
        raise InputError(
            "group sizes differ between the tables: expected equal row counts per group. Pass both tables of one "
            "release."
        )
    answers = np.asarray(truth)
    if answers.shape != (who.n_records,):
        raise InputError(f"truth of shape {answers.shape} for {who.n_records} rows: expected one value per row.")
    values, known = _coded_alike(what.column(name, for_counting=True), answers)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    order = [np.argsort(group, kind="stable") for group in (own, theirs)]
    return Published(who, own, order[0], order[1], starts, values, known)


def _coded_alike(column: Any, truth: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give equal numbers to equal values of the sensitive column and of the truth."""
    told = read_table(truth.astype(object)[:, None]).column("x0", for_counting=True)
    listed: list[list[Any]] = []
    for part in (column, told):
        values = part.categories if part.categories is not None else part.values
        plain = values[part.values].tolist() if part.categories is not None and len(values) else part.values.tolist()
        missing = part.missing if part.missing is not None else np.zeros(len(plain), bool)
        listed.append([None if absent else value for value, absent in zip(plain, missing, strict=True)])
    place = {value: number for number, value in enumerate(dict.fromkeys(listed[0]))}
    unknown = sum(value not in place for value in listed[1])
    if unknown:
        raise InputError(
            f"truth has {unknown} values that the sensitive table does not have: expected the values of its column. "
            "Give them in the same type."
        )
    first, second = (np.array([place[value] for value in values], np.int64) for values in listed)
    return first, second


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
    if size > _MOST_ENUMERATED:
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


def _classes(table: Table, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Number the records that agree in all the columns."""
    return group_rows([code_values(table.column(name, for_counting=True)) for name in names], table.n_records)


def _most_frequent_left(
    values: NDArray[np.int64],
    class_of: NDArray[np.int64],
    sizes: NDArray[np.int64],
    l: int,  # noqa: E741
    random: np.random.Generator,
) -> NDArray[np.int64] | None:
    """Return the likeliest value of each record where a class is not l-diverse; None if that rules out nothing."""
    if len(values) <= _MOST_ENUMERATED:
        orders = values[np.array(list(itertools.permutations(range(len(values)))))]
    else:
        orders = random.permuted(np.tile(values, (_N_DRAWS, 1)), axis=1)
    n_values = int(values.max()) + 1
    is_left = np.zeros(len(orders), np.bool_)
    for number, size in enumerate(sizes):
        members = orders[:, class_of == number]
        keys = np.arange(len(orders))[:, None] * n_values + members
        counts = np.bincount(keys.ravel(), minlength=len(orders) * n_values).reshape(-1, n_values)
        is_left |= counts.max(axis=1) * l > size
    if not is_left.any() or is_left.all():
        return None
    # All records of a class are alike, so their answers are counted together.
    guess = np.empty(len(values), np.int64)
    for number in range(len(sizes)):
        members = class_of == number
        guess[members] = np.bincount(orders[is_left][:, members].ravel()).argmax()
    return guess


def _judged(
    name: str,
    published: Published,
    guesses: NDArray[np.int64],
    details: dict[str, Any],
    started: float,
    seed: int,
) -> AttackResult:
    """Compare guesses with the truth; the groups, not the records, are independent of each other."""
    n_records = len(guesses)
    group, sizes = published.group, published.sizes
    hits = np.bincount(group, guesses == published.truth, minlength=len(sizes))
    rate = float(hits.sum() / n_records)
    variance = float(((hits - rate * sizes) ** 2).sum()) / n_records**2
    # If all groups have equally many hits, the groups are the independent trials.
    is_even = variance * len(sizes) < 1e-9
    n_effective = float(len(sizes)) if is_even else min(rate * (1 - rate) / variance, float(n_records))
    interval = wilson_interval(rate * n_effective, n_effective)
    of_slot = np.empty(n_records, np.int64)
    of_slot[published.slots] = np.repeat(np.arange(len(sizes)), sizes)
    n_values = int(published.values.max()) + 1
    pairs, counts = np.unique(of_slot * n_values + published.values, return_counts=True)
    largest = np.zeros(len(sizes), np.int64)
    np.maximum.at(largest, pairs // n_values, counts)
    baseline = float(largest.sum() / n_records)
    shuffled = np.empty(n_records, np.int64)
    order = np.random.default_rng(seed).permutation(n_records)
    shuffled[published.records] = published.truth[order[np.argsort(group[order], kind="stable")]]
    control = float((guesses == shuffled).mean())
    verdict = judge(rate, interval, baseline, control=control)
    return AttackResult(name, rate, interval, baseline, control, verdict, time.perf_counter() - started, seed, details)
