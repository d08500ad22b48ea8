# SPDX-License-Identifier: Apache-2.0
"""The adversary is a family: several ways to guess are tuned on validation, and the strongest one counts.

A single badly fitted model would look like protection. Called by the reconstruction attacks (A1-A6) and by sweeps,
which ask for the counted table alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal, get_args

import numpy as np

from sfumato.attack.boosting import BoostingSettings, fit_boosting
from sfumato.attack.conditional_table import EXACT, STRENGTHS, count_table
from sfumato.attack.questions import Guesses, Question, Scores, bucket_scores, guess, selection
from sfumato.attack.reconstruction_network import NetworkSettings, network_answers
from sfumato.errors import ParameterError

Adversary = Literal["table", "boosting", "network"]
"""Members of the family: counts in cells, gradient boosting, the paper's neural network."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FamilySettings:
    """Who belongs to the family and how its members are tuned.

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
                f"adversaries={self.adversaries!r}: expected some of {', '.join(map(repr, get_args(Adversary)))}. "
                "None stands for all of them."
            )
        return self.adversaries


@dataclass(frozen=True, eq=False)
class Answer:
    """What the strongest member of the family says to one question.

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
    """Let every member of the family answer every question, and keep the strongest on validation for each.

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


def rate_of(question: Question, guesses: Guesses, part: slice, certainty: float) -> float:
    """Return the share of right guesses among the surest ones of some records."""
    cell_of = question.cells.cell_of[part]
    weights = selection(guesses.confidence[cell_of], certainty)
    is_right = guesses.values[cell_of] == question.values[part]
    return float((weights * is_right).sum() / weights.sum())


def is_open(question: Question) -> bool:
    """Say whether anything is left to guess: whether some mask leaves more than one value that was ever seen."""
    seen = np.bincount(question.values[question.train], minlength=question.n_values) > 0
    return bool(((question.possible & seen).sum(axis=1) > 1).any())


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
