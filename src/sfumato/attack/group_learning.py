# SPDX-License-Identifier: Apache-2.0
"""Learn from all groups together who has which sensitive row: deFinetti's attack, on one table or on several.

From an even guess in every group, count which known values go with which sensitive value, weigh the possible orders of
each group by that (a naive Bayes model), count again, and so on. With several sensitive tables, what is learned of a
person in one table is known, with its doubts, in the others. The attacks call this to guess; classifiers that learn
from anatomized tables (``anatomize``) call it to weigh candidates.

References
----------
Kifer, D. (2009). Attacks on privacy and deFinetti's theorem.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.group_guessing import MOST_BY_ROWS, Block, SensitiveGroups

_MOST_ENUMERATED = 5  # groups of up to so many records have few enough orders to try them all
_N_ROUNDS = 30  # of making rows and columns of larger groups sum to 1
_CERTAIN = 40.0  # logarithm of how much likelier the known row of a person is
_MOST_TOLD_APART = 64  # values of a sensitive column that other tables learn from; rarer ones are one


@dataclass(frozen=True, eq=False)
class SensitiveRows:
    """One sensitive table as an attacker sees it.

    Attributes
    ----------
    groups : SensitiveGroups
        Its values are codes of sensitive rows, equal where all columns are.
    columns : list of ndarray of int64
        Per sensitive column, the code of its value in each of those rows.
    known : ndarray of int64, optional
        The row code of people whom the attacker knows, -1 for the others.
    """

    groups: SensitiveGroups
    columns: list[NDArray[np.int64]]
    known: NDArray[np.int64] | None = None

    def hints(self, block: Block) -> NDArray[np.float64]:
        """Return what is known of the records of a block before anything is learned."""
        fit = np.zeros((*block.records.shape, block.values.shape[1]))
        if self.known is not None:
            known = self.known[block.records][:, :, None]
            fit -= _CERTAIN * ((known >= 0) & (known != block.values[:, None, :]))
        return fit


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned from all groups together.

    Attributes
    ----------
    rows : SensitiveRows
    blocks : list of Block
    weights : list of ndarray of float64, shape (groups, records, values)
        Per block, how likely each record has each of its group's sensitive rows.
    chances : list of list of ndarray of float64
        Per sensitive and known column, the logarithm of how likely each code is for each value.
    n_iterations : int
    """

    rows: SensitiveRows
    blocks: list[Block]
    weights: list[NDArray[np.float64]]
    chances: list[list[NDArray[np.float64]]]
    n_iterations: int

    @property
    def n_not_weighed(self) -> int:
        """People of groups too large for this attack, who are guessed by the most frequent value."""
        return sum(block.records.size for block in self.blocks if not block.is_weighed)

    def guesses(self, column: int = 0) -> NDArray[np.int64]:
        """Return the code of the value of a sensitive column that is guessed of each person."""
        found = np.empty(len(self.rows.groups.group), np.int64)
        for block, weight in zip(self.blocks, self.weights, strict=True):
            values = self.rows.columns[column][block.values]
            if values.shape[1] <= MOST_BY_ROWS:
                is_same = values[:, :, None] == values[:, None, :]  # rows of the same value are one answer
                weight = weight @ is_same.astype(np.float64)
            elif len(self.rows.columns) > 1:  # one group, whose rows may differ in other columns
                answers, of_row = np.unique(values[0], return_inverse=True)
                weight = np.stack([weight[:, :, of_row == place].sum(axis=2) for place in range(len(answers))], axis=2)
                values = answers[None]
            found[block.records] = np.take_along_axis(values, weight.argmax(axis=2), axis=1)
        return found

    def shares(self, column: int) -> NDArray[np.float64]:
        """Return how likely each person has each value of a sensitive column, the frequent ones told apart."""
        of_value, n_values = _told_apart(self.rows, column)
        n_people = len(self.rows.groups.group)
        found = np.zeros(n_people * n_values)
        for block, weight in zip(self.blocks, self.weights, strict=True):
            keys = block.records[:, :, None] * n_values + of_value[block.values][:, None, :]
            found += np.bincount(keys.ravel(), weight.ravel(), minlength=len(found))
        return found.reshape(n_people, n_values)


def learn_values(
    groups: SensitiveGroups, codes: list[NDArray[np.int64]], n_codes: list[int], n_iterations: int
) -> Learned:
    """Learn from one sensitive column; see :func:`learn_tables`."""
    return learn_tables([SensitiveRows(groups, [np.arange(groups.n_values)])], codes, n_codes, n_iterations)[0]


def learn_tables(
    tables: Sequence[SensitiveRows], codes: list[NDArray[np.int64]], n_codes: list[int], n_iterations: int
) -> list[Learned]:
    """Learn who has which sensitive row from the relation of known columns and sensitive ones over all groups.

    Parameters
    ----------
    tables : sequence of SensitiveRows
        With the same people in the same order.
    codes : list of ndarray of int64
        Per known column, the code of each person.
    n_codes : list of int
        Per known column, one more than the highest code.
    n_iterations : int
        Most rounds; ends early when nothing moves.

    Returns
    -------
    list of Learned
        One per table.
    """
    learned = [_evenly(rows) for rows in tables]
    n_done, moved = 0, np.inf
    while n_done < n_iterations and moved > 1e-3:
        n_done += 1
        others = [_known_of(own) for own in learned] if len(tables) > 1 else [[]]
        fresh = []
        for place, own in enumerate(learned):
            told = [shares for other, known in enumerate(others) if other != place for shares in known]
            fresh.append(_learn_again(own, codes, n_codes, told, n_done))
        moved = max(
            float(np.abs(new - old).mean())
            for before, after in zip(learned, fresh, strict=True)
            for old, new in zip(before.weights, after.weights, strict=True)
        )
        learned = fresh
    return learned


def _evenly(rows: SensitiveRows) -> Learned:
    blocks = rows.groups.blocks()
    if rows.known is None:
        return Learned(rows, blocks, [even_weights(block) for block in blocks], [], 0)
    return Learned(rows, blocks, [weigh_orders(block, rows.hints(block)) for block in blocks], [], 0)


def _known_of(learned: Learned) -> list[NDArray[np.float64]]:
    return [learned.shares(column) for column in range(len(learned.rows.columns))]


def _learn_again(
    own: Learned,
    codes: list[NDArray[np.int64]],
    n_codes: list[int],
    told: list[NDArray[np.float64]],
    n_done: int,
) -> Learned:
    """Count with the weights of the round before, and weigh the orders by the counts.

    `told` are the shares of each person's values in other sensitive columns.
    """
    chances, fits = [], [own.rows.hints(block) for block in own.blocks]
    for of_row in own.rows.columns:
        n_values = int(of_row.max()) + 1
        known = _count(own, of_row, n_values, codes, n_codes)
        chances.append(known)
        for block, fit in zip(own.blocks, fits, strict=True):
            values = of_row[block.values]
            for code, chance in zip(codes, known, strict=True):
                fit += chance[values[:, None, :], code[block.records][:, :, None]]
        for shares in told:
            chance = _count_shares(own, of_row, n_values, shares)
            for block, fit in zip(own.blocks, fits, strict=True):
                fit += shares[block.records] @ chance[of_row[block.values]].transpose(0, 2, 1)
    weights = [weigh_orders(block, fit) for block, fit in zip(own.blocks, fits, strict=True)]
    return Learned(own.rows, own.blocks, weights, chances, n_done)


def _count(
    own: Learned,
    of_row: NDArray[np.int64],
    n_values: int,
    codes: list[NDArray[np.int64]],
    n_codes: list[int],
) -> list[NDArray[np.float64]]:
    """Return, per known column, the logarithm of how likely each code is for each value of a sensitive column."""
    chances = []
    for code, n in zip(codes, n_codes, strict=True):
        counts = np.full(n_values * n, 1 / n)  # no code is impossible
        for block, weight in zip(own.blocks, own.weights, strict=True):
            if not block.is_weighed:
                continue
            pairs = of_row[block.values][:, None, :] * n + code[block.records][:, :, None]
            counts += np.bincount(pairs.ravel(), weight.ravel(), minlength=n_values * n)
        table = counts.reshape(n_values, n)
        chances.append(np.log(table / table.sum(axis=1, keepdims=True)))
    return chances


def _count_shares(
    own: Learned, of_row: NDArray[np.int64], n_values: int, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the logarithm of how likely each value of another sensitive column is for each value of this one."""
    n = shares.shape[1]
    counts = np.full((n_values, n), 1 / n)
    for block, weight in zip(own.blocks, own.weights, strict=True):
        if block.is_weighed:
            together = (weight.transpose(0, 2, 1) @ shares[block.records]).reshape(-1, n)
            values = of_row[block.values].ravel()
            counts += np.stack([np.bincount(values, own, minlength=n_values) for own in together.T], axis=1)
    found: NDArray[np.float64] = np.log(counts / counts.sum(axis=1, keepdims=True))
    return found


def _told_apart(rows: SensitiveRows, column: int) -> tuple[NDArray[np.int64], int]:
    """Return for each sensitive row the number of its value among the frequent ones, and how many numbers there are."""
    of_row = rows.columns[column]
    counts = np.bincount(of_row[rows.groups.values])
    if len(counts) <= _MOST_TOLD_APART:
        return of_row, len(counts)
    ranks = np.empty(len(counts), np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(ranks, _MOST_TOLD_APART - 1)[of_row], _MOST_TOLD_APART


# -- orders of a group -------------------------------------------------------------------------------------------


def even_weights(block: Block) -> NDArray[np.float64]:
    """Return the weights of an attacker who knows only the group."""
    size = block.records.shape[1]
    return np.repeat(block.counts[:, None, :] / size, size, axis=1)


def weigh_orders(block: Block, fit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how likely each record of a group has each of its values, shape (groups, records, values).

    Parameters
    ----------
    block : Block
    fit : ndarray of float64, of the same shape
        The logarithm of how well each value fits each record, up to a constant per value.
    """
    if not block.is_weighed:
        return even_weights(block)
    size = block.records.shape[1]
    has_all_rows = block.values.shape[1] == size and bool((block.counts == 1).all())
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
