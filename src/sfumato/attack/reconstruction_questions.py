# SPDX-License-Identifier: Apache-2.0
"""The questions of a reconstruction attack: the value of an attribute, given the clues about a record.

Records with equal clues merge into one cell, so that an adversary learns from cells with weights and guesses once for
each. Built in ``reconstruction_clues``, answered by the adversaries of the family. It imports numpy only, as do the
adversaries that are trained, so that they run on a machine that has nothing else but torch or scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Scores = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""For the numbers of some cells, how likely each value is, one row per cell; rows need not sum to one."""

_SCORES_AT_ONCE = 1 << 22  # numbers held at a time while guessing


@dataclass(frozen=True, eq=False)
class Cells:
    """All clues together, records with equal clues merged into one cell.

    Attributes
    ----------
    clues : ndarray of int64, shape (n_cells, n_clues)
    sizes : tuple of int
        One more than the highest code of each clue.
    is_ordered : tuple of bool
    cell_of : ndarray of int64, shape (n_records,)
    """

    clues: NDArray[np.int64]
    sizes: tuple[int, ...]
    is_ordered: tuple[bool, ...]
    cell_of: NDArray[np.int64]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.clues)

    @cached_property
    def by_clue(self) -> NDArray[np.int64]:
        """The clues with the cells of each one beside each other; shape (n_clues, n_cells)."""
        return np.ascontiguousarray(self.clues.T)


@dataclass(frozen=True, eq=False)
class Question:
    """One attribute to guess, for all records.

    Attributes
    ----------
    attribute : str
    n_values : int
        Number of values it can have.
    values : ndarray of int64, shape (n_records,)
        The true ones.
    cells : Cells
        What the attacker sees.
    mask_of_cell : ndarray of int64, shape (n_cells,)
        Which of the masks holds in a cell.
    possible : ndarray of bool, shape (n_masks, n_values)
        The values that are possible under each mask: those that the known generalization maps to what is seen.
    train, validation, test : slice
        Which records are which.
    """

    attribute: str
    n_values: int
    values: NDArray[np.int64]
    cells: Cells
    mask_of_cell: NDArray[np.int64]
    possible: NDArray[np.bool_]
    train: slice
    validation: slice
    test: slice

    @cached_property
    def learned(self) -> Learned:
        """Cells and values that occur together in the training records, and how often."""
        key = self.cells.cell_of[self.train] * self.n_values + self.values[self.train]
        pairs, counts = np.unique(key, return_counts=True)
        return Learned(pairs // self.n_values, pairs % self.n_values, counts)

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Share of each value under each mask in the training records; shape (n_masks, n_values).

        If no training record has a possible value, all possible ones are equally likely.
        """
        shape = self.possible.shape
        key = self.mask_of_cell[self.learned.cells] * self.n_values + self.learned.values
        counts = np.bincount(key, self.learned.counts, minlength=shape[0] * shape[1]).reshape(shape)
        # Much less than one record: it decides only where there is none.
        smoothed = (counts + 1e-6) * self.possible
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

    @cached_property
    def judged(self) -> NDArray[np.int64]:
        """Cells that occur among the validation and the test records."""
        seen = np.zeros(self.cells.n_cells, bool)
        seen[self.cells.cell_of[self.validation]] = True
        seen[self.cells.cell_of[self.test]] = True
        return np.flatnonzero(seen)

    @cached_property
    def majority(self) -> int:
        """The most frequent value of the training records: the guess of an attacker without clues."""
        return int(np.bincount(self.values[self.train], minlength=self.n_values).argmax())


@dataclass(frozen=True, eq=False)
class Learned:
    """Cells and values that occur together in the training records."""

    cells: NDArray[np.int64]
    values: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Guesses:
    """The guess of an adversary in every judged cell, and its confidence.

    Attributes
    ----------
    values : ndarray of int64, shape (n_cells,)
        -1 in cells that are not judged.
    confidence : ndarray of float32, shape (n_cells,)
    """

    values: NDArray[np.int64]
    confidence: NDArray[np.float32]


def masked_scores(question: Question, scores: Scores) -> Scores:
    """Return scores that are 0 for impossible values and sum to one; the prior where nothing is left."""

    def masked(cells: NDArray[np.int64]) -> NDArray[np.float32]:
        masks = question.mask_of_cell[cells]
        kept = scores(cells) * question.possible[masks]
        totals = kept.sum(axis=1, keepdims=True)
        is_empty = ~(totals[:, 0] > 0)
        if is_empty.any():
            kept[is_empty] = question.prior[masks[is_empty]]
            totals[is_empty] = 1
        return np.asarray(kept / totals, np.float32)

    return masked


def bucket_scores(question: Question) -> Scores:
    """Return the scores of an attacker who looks at the attribute's own bucket only."""

    def scores(cells: NDArray[np.int64]) -> NDArray[np.float32]:
        return question.prior[question.mask_of_cell[cells]].astype(np.float32)

    return scores


def guess(question: Question, scores: Scores) -> Guesses:
    """Return the likeliest value of every judged cell, the lowest code on ties."""
    values = np.full(question.cells.n_cells, -1, np.int64)
    confidence = np.zeros(question.cells.n_cells, np.float32)
    step = max(1, _SCORES_AT_ONCE // question.n_values)
    for start in range(0, len(question.judged), step):
        cells = question.judged[start : start + step]
        part = scores(cells)
        values[cells] = part.argmax(axis=1)
        confidence[cells] = part.max(axis=1)
    return Guesses(values, confidence)


def selection(confidence: NDArray[np.float32], share: float) -> NDArray[np.float64]:
    """Return the weight of each record when only the surest share of guesses counts.

    Records above the limit weigh 1, records below it 0. Those that stand at it exactly share what is left, so that the
    order of records decides nothing.

    Examples
    --------
    >>> selection(np.array([0.9, 0.5, 0.5, 0.1], np.float32), 0.5).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    if share >= 1:
        return np.ones(len(confidence))
    wanted = share * len(confidence)
    limit = np.sort(confidence)[::-1][min(len(confidence), max(1, int(np.ceil(wanted)))) - 1]
    above = confidence > limit
    at = confidence == limit
    return np.asarray(above + at * ((wanted - above.sum()) / at.sum()))


def rate_of(question: Question, guesses: Guesses, part: slice, certainty: float) -> float:
    """Return the share of right guesses among the surest ones of some records."""
    cell_of = question.cells.cell_of[part]
    weights = selection(guesses.confidence[cell_of], certainty)
    is_right = guesses.values[cell_of] == question.values[part]
    return float((weights * is_right).sum() / weights.sum())


def is_open(question: Question) -> bool:
    """Return True if some mask leaves more than one value that occurred in training."""
    seen = np.bincount(question.values[question.train], minlength=question.n_values) > 0
    return bool(((question.possible & seen).sum(axis=1) > 1).any())
