# SPDX-License-Identifier: Apache-2.0
"""Reconstruct personal attributes from generalized records: attacks A1 to A6 of the minimization paper.

A1 sees the buckets of a record. A3 knows its non-personal attributes exactly, too, A5 some personal ones, A4 all but
the one it guesses; A6 sees the same people under several generalizations. A2 keeps the surest guesses of any of them.
The sweeps of the minimizers ask the same adversaries.

References
----------
Staab, R. et al. (2024). From Principle to Practice: Vertical Data Minimization for Machine Learning, section 5 and
appendix A.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import Names as Names
from sfumato.attack.reconstruction_adversaries import Answer, FamilySettings, answer, strongest
from sfumato.attack.reconstruction_clues import ask
from sfumato.attack.reconstruction_questions import Scores, masked_scores
from sfumato.attack.reconstruction_scoring import assess
from sfumato.attack.result import AttackResult, recalled
from sfumato.attack.samples import Samples, samples_for
from sfumato.errors import ParameterError, named
from sfumato.generalization import Generalization


class Options(TypedDict, total=False):
    """Keyword arguments of the attacks A3 to A6, as :func:`reconstruct` describes them."""

    known: Names
    certainty: float
    settings: FamilySettings | None
    cache: str | Path | None


def reconstruction_risk(
    generalization: Generalization,
    train: Any,
    validation: Any,
    test: Any,
    personal: Names | None = None,
    *,
    quick: bool = False,
    certainty: float = 1.0,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | Path | None = None,
) -> AttackResult:
    """Attack a generalization in one call: how well can personal attributes be reconstructed from buckets (A1, A2)?

    Parameters
    ----------
    generalization : Generalization
    train, validation, test : frame or array
        Full-resolution records: what the attacker learns from, tunes on, and what was breached. The training records
        may be the ones that the generalization was made from, or others.
    personal : list of str or int, optional
        Attributes to reconstruct; None: all categories, or everything where there are none.
    quick : bool, default=False
        Count only, without boosting and networks: good enough to compare generalizations in a sweep.
    certainty : float, default=1.0
        Share of the surest guesses that count (A2).
    random_state : int, default=0
    n_jobs : int, optional
        Threads; None: one, -1: all cores.
    cache : path, optional
        Folder of finished results.

    Returns
    -------
    AttackResult
        `rate` is the share of right guesses, mean over the personal attributes; `baseline` that of always guessing
        the most frequent value. `details["attributes"]` has the same for each attribute.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.minimize import UniformMinimizer
    >>> people = pa.table({"sex": ["f", "m", "m"] * 20, "title": ["Ms", "Mr", "Mr"] * 20})
    >>> generalization = UniformMinimizer(n_buckets=1).fit(people).generalization_
    >>> result = reconstruction_risk(generalization, people, people, people, quick=True)
    >>> round(result.rate, 2), result.verdict
    (0.67, 'not shown')
    """
    settings = FamilySettings(adversaries=("table",) if quick else None, random_state=random_state, n_jobs=n_jobs)
    samples = samples_for(generalization, train, validation, test)
    return reconstruct(generalization, samples, personal, certainty=certainty, settings=settings, cache=cache)


def reconstruct(
    generalization: Generalization,
    samples: Samples,
    personal: Names | None = None,
    *,
    known: Names = (),
    certainty: float = 1.0,
    settings: FamilySettings | None = None,
    cache: str | Path | None = None,
) -> AttackResult:
    """Reconstruct personal attributes from the buckets of a record (A1; A2 with a `certainty` below 1).

    Parameters
    ----------
    generalization : Generalization
    samples : Samples
    personal : list of str or int, optional
        Attributes to reconstruct; None: all categories, or everything where there are none.
    known : list of str or int, default=()
        Columns that were breached as they are: those that pass through the generalization.
    certainty : float, default=1.0
        Share of the surest guesses that count, for each attribute by itself.
    settings : FamilySettings, optional
        The adversaries.
    cache : path, optional
        Folder of finished results.

    Returns
    -------
    AttackResult

    Examples
    --------
    Two records out of three are guessed right, as by always guessing "m": buckets that hold all records reveal nothing.

    >>> import pyarrow as pa
    >>> from sfumato.attack import FamilySettings, Samples
    >>> from sfumato.minimize import UniformMinimizer
    >>> people = pa.table({"sex": ["f", "m", "m"] * 20, "title": ["Ms", "Mr", "Mr"] * 20})
    >>> generalization = UniformMinimizer(n_buckets=1).fit(people).generalization_
    >>> samples, counting = Samples(people, people, people), FamilySettings(adversaries=("table",))
    >>> result = reconstruct(generalization, samples, ["sex"], settings=counting)
    >>> round(result.rate, 2), round(result.baseline, 2)
    (0.67, 0.67)
    """
    attack = "reconstruction (A1)" if certainty == 1 else "high-certainty reconstruction (A2)"
    campaign = _Campaign(attack, (generalization,), samples, personal, known, certainty, settings, cache)
    return campaign.run(lambda name: ())


def reconstruct_with_non_personal(
    generalization: Generalization, samples: Samples, personal: Names | None = None, **options: Unpack[Options]
) -> AttackResult:
    """Reconstruct personal attributes from buckets and the exact values of all non-personal attributes (A3).

    The parameters and the result are those of :func:`reconstruct`.

    Examples
    --------
    The title is not personal, so it is known, and reveals the sex.

    >>> import pyarrow as pa
    >>> from sfumato.attack import FamilySettings, Samples
    >>> from sfumato.minimize import UniformMinimizer
    >>> people = pa.table({"sex": ["f", "m", "m"] * 20, "title": ["Ms", "Mr", "Mr"] * 20})
    >>> generalization = UniformMinimizer(n_buckets=1).fit(people).generalization_
    >>> samples, counting = Samples(people, people, people), FamilySettings(adversaries=("table",))
    >>> reconstruct_with_non_personal(generalization, samples, ["sex"], settings=counting).rate
    1.0
    """
    campaign = _Campaign("non-personal knowledge (A3)", (generalization,), samples, personal, **options)
    return campaign.run(lambda name: campaign.non_personal)


def reconstruct_leaving_one_out(
    generalization: Generalization, samples: Samples, personal: Names | None = None, **options: Unpack[Options]
) -> AttackResult:
    """Reconstruct each personal attribute from its bucket and the exact values of all other attributes (A4).

    The parameters and the result are those of :func:`reconstruct`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.attack import FamilySettings, Samples
    >>> from sfumato.minimize import UniformMinimizer
    >>> people = pa.table({"sex": ["f", "m", "m"] * 20, "title": ["Ms", "Mr", "Mr"] * 20})
    >>> generalization = UniformMinimizer(n_buckets=1).fit(people).generalization_
    >>> samples, counting = Samples(people, people, people), FamilySettings(adversaries=("table",))
    >>> reconstruct_leaving_one_out(generalization, samples, ["sex", "title"], settings=counting).rate
    1.0
    """
    campaign = _Campaign("leave-one-out (A4)", (generalization,), samples, personal, **options)
    return campaign.run(lambda name: (other for other in campaign.attributes if other != name))


def reconstruct_with_some_personal(
    generalization: Generalization, samples: Samples, personal: Names | None = None, **options: Unpack[Options]
) -> AttackResult:
    """Reconstruct each personal attribute knowing all non-personal ones and the personal ones before it (A5).

    The order of `personal` is the order in which the attacker came to know them: the first is guessed as in A3, the
    last as in A4. `rate` is the mean over all; `details["attributes"]` holds every step in that order.

    The parameters and the result are those of :func:`reconstruct`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.attack import FamilySettings, Samples
    >>> from sfumato.minimize import UniformMinimizer
    >>> people = pa.table({"sex": ["f", "m", "m"] * 20, "title": ["Ms", "Mr", "Mr"] * 20})
    >>> generalization = UniformMinimizer(n_buckets=1).fit(people).generalization_
    >>> samples, counting = Samples(people, people, people), FamilySettings(adversaries=("table",))
    >>> result = reconstruct_with_some_personal(generalization, samples, ["sex", "title"], settings=counting)
    >>> {name: round(step["rate"], 2) for name, step in result.details["attributes"].items()}
    {'sex': 0.67, 'title': 1.0}
    """
    campaign = _Campaign("partial personal knowledge (A5)", (generalization,), samples, personal, **options)
    order = campaign.personal
    return campaign.run(lambda name: (*campaign.non_personal, *order[: order.index(name)]))


def reconstruct_from_breaches(
    generalizations: Sequence[Generalization],
    samples: Samples,
    personal: Names | None = None,
    **options: Unpack[Options],
) -> AttackResult:
    """Reconstruct personal attributes of people who were breached under several generalizations (A6).

    The attacker averages the guesses on the single breaches, or learns from all buckets together, or takes one breach
    alone, whatever does best on validation for an attribute. Only values that all breaches leave possible are guessed.

    The parameters and the result are those of :func:`reconstruct`, for two generalizations or more.

    Examples
    --------
    One breach tells people below 40 from others, the other those below 60: together they leave fewer ages.

    >>> import pyarrow as pa
    >>> from sfumato.attack import FamilySettings, Samples
    >>> from sfumato.generalization import generalization_from_bins
    >>> from sfumato.backends.memory import MemorySource
    >>> from sfumato.frames import read_table
    >>> people = pa.table({"age": [30, 50, 70] * 20})
    >>> columns = MemorySource(read_table(people), ["age"]).columns
    >>> below_40, below_60 = (generalization_from_bins(columns, [own]) for own in ([0, 1, 1], [0, 0, 1]))
    >>> samples, counting = Samples(people, people, people), FamilySettings(adversaries=("table",))
    >>> round(reconstruct(below_40, samples, ["age"], settings=counting).rate, 2)
    0.67
    >>> reconstruct_from_breaches([below_40, below_60], samples, ["age"], settings=counting).rate
    1.0
    """
    if len(generalizations) < 2:
        raise ParameterError(
            f"{len(generalizations)} generalizations: expected at least two breaches of the same people. Use "
            "reconstruct for one."
        )
    breaches = tuple(generalizations)
    return _Campaign("multi-breach reconstruction (A6)", breaches, samples, personal, **options).run(lambda name: ())


class _Campaign:
    """One attack on some attributes: ask the questions, have them answered, assess the answers."""

    def __init__(
        self,
        attack: str,
        generalizations: tuple[Generalization, ...],
        samples: Samples,
        personal: Names | None,
        known: Names = (),
        certainty: float = 1.0,
        settings: FamilySettings | None = None,
        cache: str | Path | None = None,
    ) -> None:
        if not 0 < certainty <= 1:
            raise ParameterError(
                f"{named('certainty', certainty)}: expected a share above 0 and up to 1. 1 counts all guesses."
            )
        self.attack = attack
        self.generalizations = generalizations
        self.samples = samples
        self.certainty = float(certainty)
        self.settings = settings or FamilySettings()
        self.cache = cache
        self.personal = _personal_names(generalizations, samples, personal)
        self.known = samples.resolve(known, "known")
        known = dict.fromkeys(name for generalization in generalizations for name in generalization.names)
        self.attributes = tuple(name for name in known if name in samples.names)
        self.non_personal = tuple(name for name in self.attributes if name not in self.personal)

    def run(self, knows: Callable[[str], Iterable[str]]) -> AttackResult:
        """Run the attack, or return what it found before."""
        known_of = {name: self._known_with(knows(name)) for name in self.personal}
        key = (
            self.attack,
            [generalization.fingerprint for generalization in self.generalizations],
            None if self.cache is None else self.samples.fingerprint((*self.known, *self.attributes)),
            known_of,
            self.certainty,
            replace(self.settings, adversaries=self.settings.members, n_jobs=None),
        )
        return recalled(self.cache, key, lambda: self._run(known_of))

    def _known_with(self, others: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.known, *others)))

    def _run(self, known_of: dict[str, tuple[str, ...]]) -> AttackResult:
        start = time.perf_counter()
        questions = ask(self.generalizations, self.samples, known_of)
        answers = answer(questions, self.settings, certainty=self.certainty)
        if len(self.generalizations) > 1:
            singles = [
                answer(ask((one,), self.samples, known_of), self.settings, certainty=self.certainty)
                for one in self.generalizations
            ]
            together = zip(answers, *singles, strict=True)
            answers = [_best_of_breaches(joint, single, self.certainty) for joint, *single in together]
        return assess(
            self.attack,
            answers,
            certainty=self.certainty,
            seed=self.settings.random_state,
            seconds=time.perf_counter() - start,
            details={"adversaries": self.settings.members, "known": {name: list(known_of[name]) for name in known_of}},
        )


def _best_of_breaches(joint: Answer, singles: Sequence[Answer], certainty: float) -> Answer:
    """Return the better of all breaches at once, their average, and each of them alone, as judged on validation."""
    question = joint.question
    cell_of = []
    for single in singles:  # the cell of the single breach that a cell of all breaches lies in
        inner = np.zeros(question.cells.n_cells, np.int64)
        inner[question.cells.cell_of] = single.question.cells.cell_of
        cell_of.append(inner)

    def scores_of(single: Answer, inner: NDArray[np.int64]) -> Scores:
        return lambda cells: single.scores(inner[cells])

    alone = [scores_of(single, inner) for single, inner in zip(singles, cell_of, strict=True)]

    def average(cells: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(np.mean([scores(cells) for scores in alone], axis=0), np.float32)

    candidates = [
        (f"all breaches: {joint.adversary}", joint.scores),
        ("average of the breaches", masked_scores(question, average)),
        *(
            (f"breach {number}: {single.adversary}", scores)
            for number, (single, scores) in enumerate(zip(singles, alone, strict=True), start=1)
        ),
    ]
    return strongest(question, candidates, certainty)


def _personal_names(
    generalizations: Sequence[Generalization], samples: Samples, personal: Names | None
) -> tuple[str, ...]:
    attributes = [a for a in generalizations[0].attributes if a.name in samples.names]
    if personal is None:
        names = tuple(a.name for a in attributes if a.kind == "category") or tuple(a.name for a in attributes)
    else:
        names = samples.resolve(personal, "personal")
    if not names:
        raise ParameterError("personal names no attribute: expected at least one to reconstruct. None stands for all.")
    for generalization in generalizations:
        unknown = [name for name in names if name not in generalization.names]
        if unknown:
            raise ParameterError(
                f"personal names {', '.join(map(repr, unknown))}, which is not an attribute of the generalization: "
                "expected generalized columns only. A column that passes through is known as it is; name it in known=."
            )
    return names
