# SPDX-License-Identifier: Apache-2.0
"""A family of adversaries: several are tuned on validation, and the strongest one counts.

A single badly fitted model would look like protection. Called by the reconstruction attacks (A1-A6) and by sweeps,
which ask for the counted table alone.

The exact adversary counts how often each value occurs in a cell. With few cells and many records nothing beats it: it
is the best guess that the attacker's sample allows. If a cell has few records or none, the counts of larger cells
that share its most telling clues fill in.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.attack.reconstruction_learners import BoostingSettings, NetworkSettings, fit_boosting, network_answers
from sfumato.attack.reconstruction_questions import (
    Guesses,
    Question,
    Scores,
    bucket_scores,
    guess,
    is_open,
    masked_scores,
    rate_of,
)
from sfumato.errors import ParameterError, named
from sfumato.grouping import merge_rows

Adversary = Literal["table", "boosting", "network"]
"""Members of the family: counts in cells, gradient boosting, the paper's neural network."""

logger = logging.getLogger(__name__)

EXACT = 1e-6
"""So few pseudo-records that they only break ties and fill empty cells."""

STRENGTHS = (EXACT, 0.5, 2.0, 8.0, 32.0)
"""Numbers of pseudo-records of the next larger cell that are added to a cell; tuned on validation."""

_LEVELS = (1, 2, 3, 5, 8, 12)  # numbers of clues at which larger cells are counted, besides all of them


@dataclass(frozen=True)
class FamilySettings:
    """The members of the family and how they are tuned.

    Attributes
    ----------
    adversaries : tuple of {"table", "boosting", "network"} or None
        None: all of them, the network where torch is installed.
    random_state : int
    n_jobs : int or None
        Threads; None: one, -1: all cores.
    boosting : sequence of BoostingSettings
        Settings to try.
    network : NetworkSettings
    """

    adversaries: tuple[Adversary, ...] | None = None
    random_state: int = 0
    n_jobs: int | None = None
    boosting: tuple[BoostingSettings, ...] = (BoostingSettings(),)
    network: NetworkSettings = field(default_factory=NetworkSettings)

    @property
    def members(self) -> tuple[Adversary, ...]:
        """The members that take part."""
        if self.adversaries is None:
            return get_args(Adversary) if find_spec("torch") else ("table", "boosting")
        unknown = [name for name in self.adversaries if name not in get_args(Adversary)]
        if unknown or not self.adversaries:
            raise ParameterError(
                f"{named('adversaries', self.adversaries)}: expected some of "
                f"{', '.join(map(repr, get_args(Adversary)))}. None stands for all of them."
            )
        return self.adversaries


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of the strongest member of the family to one question.

    Attributes
    ----------
    question : Question
    adversary : str
        Which member it is.
    guesses : Guesses
    scores : callable
    tried : dict of str to float
        Rate of every member on the validation records.
    """

    question: Question
    adversary: str
    guesses: Guesses
    scores: Scores
    tried: dict[str, float]


def answer(questions: Sequence[Question], settings: FamilySettings, *, certainty: float = 1.0) -> list[Answer]:
    """Answer every question by every member of the family, and keep the strongest on validation for each.

    Only the `certainty` share of the surest guesses counts, and the members are compared by those.
    """
    # The attribute's own bucket is the least anyone uses of a breach, and all there is to use where nothing else helps.
    candidates = [[("own bucket", bucket_scores(question))] for question in questions]
    for member in settings.members:
        for position, label, scores in _MEMBERS[member](questions, settings):
            candidates[position].append((label, scores))
    return [strongest(*asked, certainty) for asked in zip(questions, candidates, strict=True)]


def strongest(question: Question, candidates: Sequence[tuple[str, Scores]], certainty: float) -> Answer:
    """Return the candidate with the highest rate on the validation records, the first of them on ties."""
    tried: dict[str, float] = {}
    best: tuple[str, Scores, Guesses] | None = None
    for label, scores in candidates:
        guesses = guess(question, scores)
        tried[label] = rate_of(question, guesses, question.validation, certainty)
        if best is None or tried[label] > tried[best[0]]:
            best = label, scores, guesses
    assert best is not None
    logger.info("%s: %s is the strongest of %d adversaries", question.attribute, best[0], len(tried))
    return Answer(question, best[0], best[2], best[1], tried)


def _answer_by_table(questions: Sequence[Question], settings: FamilySettings) -> Iterator[tuple[int, str, Scores]]:
    for position, question in enumerate(questions):
        table = count_table(question)
        for strength in STRENGTHS if is_open(question) else (EXACT,):
            yield (
                position,
                "table" if strength == EXACT else f"table, {strength:g} imagined records",
                table.scores(strength),
            )


def _answer_by_boosting(questions: Sequence[Question], settings: FamilySettings) -> Iterator[tuple[int, str, Scores]]:
    from sklearn.utils.parallel import Parallel, delayed

    asked = [
        (position, number, tried)
        for position, question in enumerate(questions)
        if is_open(question)
        for number, tried in enumerate(settings.boosting)
    ]
    fitted = Parallel(n_jobs=settings.n_jobs, prefer="threads")(
        delayed(_fit_on_one_thread)(questions[position], tried, settings.random_state) for position, _, tried in asked
    )
    for (position, number, _), scores in zip(asked, fitted, strict=True):
        yield position, "boosting" if number == 0 else f"boosting {number + 1}", scores


def _fit_on_one_thread(question: Question, settings: BoostingSettings, seed: int) -> Scores:
    # Two models at once on a thread each are quicker than one on two threads, by far on a busy machine.
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="openmp"):
        return fit_boosting(question, settings, seed=seed)


def _answer_by_network(questions: Sequence[Question], settings: FamilySettings) -> Iterator[tuple[int, str, Scores]]:
    positions = [position for position, question in enumerate(questions) if is_open(question)]
    asked = [questions[position] for position in positions]
    fitted = network_answers(asked, settings.network, seed=settings.random_state)
    for position, networks in zip(positions, fitted, strict=True):
        for label, scores in networks:
            yield position, label, scores


_MEMBERS = {"table": _answer_by_table, "boosting": _answer_by_boosting, "network": _answer_by_network}


@dataclass(frozen=True, eq=False)
class ConditionalTable:
    """Counts of values in cells, from few clues to all of them.

    Attributes
    ----------
    question : Question
    rows : ndarray of int64, shape (n_levels, n_cells)
        Row of each cell among the counts, for every level.
    starts : ndarray of int64
        The first entry of each row.
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
    sizes = np.array(cells.sizes, np.int64)
    pairs = learned.cells, learned.values, learned.counts
    told: NDArray[np.float64] = clue_information(cells.by_clue, sizes, *pairs, question.n_values)
    return told


@njit(nogil=True, cache=True)
def clue_information(clues, sizes, cells, values, counts, n_values):  # type: ignore[no-untyped-def]
    """Return what each clue tells of the values, from the pairs of a cell and a value that occur.

    Only these pairs are visited, and n log n is looked up: with thousands of clues and questions, a table of all codes
    and values for each clue takes minutes, and so do logarithms.

    Parameters
    ----------
    clues : int64[n_clues, n_cells]
    sizes : int64[n_clues]
    cells, values, counts : int64[n_pairs]
    n_values : int
    """
    told = np.zeros(sizes.shape[0])
    most = 1
    for position in range(sizes.shape[0]):
        most = max(most, sizes[position])
    joint, of_code = np.zeros((n_values, most), np.int64), np.zeros(most, np.int64)
    of_value = np.zeros(n_values, np.int64)
    for pair in range(cells.shape[0]):
        of_value[values[pair]] += counts[pair]
    n_records = of_value.sum()
    n_log_n = np.zeros(n_records + 1)
    for n in range(2, n_records + 1):
        n_log_n[n] = n * np.log(n)
    of_values, n_seen = n_log_n[n_records], 0
    for value in range(n_values):
        of_values -= n_log_n[of_value[value]]
        n_seen += of_value[value] > 0
    for position in range(sizes.shape[0]):
        codes = clues[position]
        of_code[: sizes[position]] = 0
        nats = of_values
        for pair in range(cells.shape[0]):
            code, value, n = codes[cells[pair]], values[pair], counts[pair]
            before = joint[value, code]
            joint[value, code] = before + n
            of_code[code] += n
            nats += n_log_n[before + n] - n_log_n[before]
        for pair in range(cells.shape[0]):
            joint[values[pair], codes[cells[pair]]] = 0
        n_codes = 0
        for code in range(sizes[position]):
            nats -= n_log_n[of_code[code]]
            n_codes += of_code[code] > 0
        told[position] = (nats - (n_codes - 1) * (n_seen - 1) / 2) / n_records
    return told


def _nested_groups(question: Question) -> Iterator[NDArray[np.int64]]:
    """Yield groups of cells that agree in more and more clues, the most telling first."""
    cells = question.cells
    order = np.argsort(-information(question), kind="stable")
    group, n_groups, done = question.mask_of_cell, len(question.possible), 0
    for n_clues in (level for level in _LEVELS if level < len(order)):
        added = order[done:n_clues]
        columns = [group, *(cells.clues[:, position] for position in added)]
        group = merge_rows(columns, [n_groups, *(cells.sizes[position] for position in added)], cells.n_cells)[1]
        previous, n_groups, done = n_groups, int(group.max()) + 1, n_clues
        if n_groups > previous:  # clues that tell no cells apart need no level of their own
            yield group
    yield np.arange(cells.n_cells)  # all clues tell all cells apart, and merging thousands takes long


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
