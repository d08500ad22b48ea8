# SPDX-License-Identifier: Apache-2.0
"""The exact adversary: how often each value occurs in a cell, counted.

With few cells and many records nothing beats it: it is the best guess that the attacker's sample allows. Where a cell
has few records or none, the counts of larger cells that share its most telling clues fill in. Called by the family.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.attack.questions import Question, Scores, masked_scores, merge_rows

EXACT = 1e-6
"""So few imagined records that they only break ties and fill cells without any."""

STRENGTHS = (EXACT, 0.5, 2.0, 8.0, 32.0)
"""How many imagined records of the next larger cell stand beside the real ones of a cell; tuned on validation."""

_LEVELS = (1, 2, 3, 5, 8, 12)  # numbers of clues at which larger cells are counted, besides all of them


@dataclass(frozen=True, eq=False)
class ConditionalTable:
    """Counts of values in cells, from few clues to all of them.

    Attributes
    ----------
    question : Question
    rows : ndarray of int64, shape (n_levels, n_cells)
        Row of each cell among the counts, for every level.
    starts : ndarray of int64
        Where the entries of a row begin.
    values, counts : ndarray
        Values that occur in a row, and how often.
    totals : ndarray of float64
        Records in each row.
    """

    question: Question
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    counts: NDArray[np.float64]
    totals: NDArray[np.float64]

    def scores(self, strength: float) -> Scores:
        """Return how likely each value is in a cell.

        On every level, from the largest cells to the cell itself, the shares are those of its records together with
        `strength` imagined ones that follow the level before.
        """
        question = self.question

        def scores(cells: NDArray[np.int64]) -> NDArray[np.float32]:
            out = np.asarray(question.prior[question.mask_of_cell[cells]], np.float64)
            mix_levels(self.rows[:, cells], self.starts, self.values, self.counts, self.totals, strength, out)
            return out.astype(np.float32)

        return masked_scores(question, scores)


def count_table(question: Question) -> ConditionalTable:
    """Count the values of the training records in cells of one clue, of two, and so on up to all."""
    cells, learned = question.cells, question.learned
    rows, starts, values, counts, totals = [], [], [], [], []
    n_rows = n_entries = 0
    for group in _nested_groups(question):
        n_groups = int(group.max()) + 1
        key = group[learned.cells] * question.n_values + learned.values
        pairs, pair_of = np.unique(key, return_inverse=True)
        count = np.bincount(pair_of, learned.counts, minlength=len(pairs))
        row_of = pairs // question.n_values
        rows.append(group + n_rows)
        starts.append(np.searchsorted(row_of, np.arange(n_groups)) + n_entries)
        values.append(pairs % question.n_values)
        counts.append(count)
        totals.append(np.bincount(row_of, count, minlength=n_groups))
        n_rows, n_entries = n_rows + n_groups, n_entries + len(pairs)
    return ConditionalTable(
        question,
        np.stack(rows) if rows else np.zeros((0, cells.n_cells), np.int64),
        np.concatenate([*starts, [n_entries]]).astype(np.int64),
        np.concatenate(values) if values else np.zeros(0, np.int64),
        np.concatenate(counts) if counts else np.zeros(0),
        np.concatenate(totals) if totals else np.zeros(0),
    )


def information(question: Question) -> NDArray[np.float64]:
    """Return how much each clue tells about the value: mutual information in nats, less what chance alone gives."""
    cells, learned = question.cells, question.learned
    n_records = learned.counts.sum()
    told = np.zeros(len(cells.sizes))
    for position, size in enumerate(cells.sizes):
        key = cells.clues[learned.cells, position] * question.n_values + learned.values
        joint = np.bincount(key, learned.counts, minlength=size * question.n_values).reshape(size, question.n_values)
        joint = joint[joint.any(axis=1)][:, joint.any(axis=0)] / n_records
        expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        filled = joint > 0
        told[position] = (joint[filled] * np.log(joint[filled] / expected[filled])).sum()
        told[position] -= (joint.shape[0] - 1) * (joint.shape[1] - 1) / (2 * n_records)
    return told


def _nested_groups(question: Question) -> Iterator[NDArray[np.int64]]:
    """Yield groups of cells that agree in more and more clues, the most telling first."""
    cells = question.cells
    order = np.argsort(-information(question), kind="stable")
    group, n_groups, done = question.mask_of_cell, len(question.possible), 0
    for n_clues in sorted({*(level for level in _LEVELS if level < len(order)), len(order)}):
        added = order[done:n_clues]
        columns = [group, *(cells.clues[:, position] for position in added)]
        group = merge_rows(columns, [n_groups, *(cells.sizes[position] for position in added)], cells.n_cells)[1]
        previous, n_groups, done = n_groups, int(group.max()) + 1, n_clues
        if n_groups > previous or n_clues == len(order):  # clues that tell no cells apart need no level of their own
            yield group


@njit(nogil=True, cache=True)
def mix_levels(rows, starts, values, counts, totals, strength, out):  # type: ignore[no-untyped-def]
    """Mix the counts of every level into out, which holds the shares of the level before the first.

    Parameters
    ----------
    rows : int64[n_levels, n_cells]
    starts : int64[n_rows + 1]
    values, counts : int64[n_entries], float64[n_entries]
    totals : float64[n_rows]
    strength : float
    out : float64[n_cells, n_values]
    """
    for cell in range(out.shape[0]):
        for level in range(rows.shape[0]):
            row = rows[level, cell]
            weight = 1.0 / (totals[row] + strength)
            kept = strength * weight
            for value in range(out.shape[1]):
                out[cell, value] *= kept
            for entry in range(starts[row], starts[row + 1]):
                out[cell, values[entry]] += counts[entry] * weight
