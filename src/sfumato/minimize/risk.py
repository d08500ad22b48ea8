# SPDX-License-Identifier: Apache-2.0
"""What an attacker still learns from buckets: the second axis of every sweep, behind one small protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

from sfumato.attack.asking import ask
from sfumato.attack.family import FamilySettings, answer, rate_of
from sfumato.attack.samples import Samples
from sfumato.errors import ParameterError
from sfumato.generalization import Generalization

RiskName = Literal["table", "family"]


class Risk(Protocol):
    """Says how well personal attributes can be reconstructed; anything callable like this will do."""

    def __call__(
        self, generalization: Generalization, samples: Samples, personal: Sequence[str]
    ) -> tuple[float, float]:
        """Return the attacker's share of right guesses on the validation and on the test records."""
        ...


class ReconstructionRisk:
    """The attacker who sees buckets and guesses fine values (A1), mean over the personal attributes.

    Parameters
    ----------
    adversaries : tuple of str or None
        Who guesses; ``("table",)`` counts only and is quick, None asks the whole family.
    seed : int, default=0
    n_jobs : int, optional
    """

    def __init__(
        self, adversaries: tuple[Any, ...] | None = ("table",), *, seed: int = 0, n_jobs: int | None = None
    ) -> None:
        self.settings = FamilySettings(adversaries=adversaries, random_state=seed, n_jobs=n_jobs)

    def __call__(
        self, generalization: Generalization, samples: Samples, personal: Sequence[str]
    ) -> tuple[float, float]:
        """Return the attacker's share of right guesses on the validation and on the test records."""
        if not personal:
            return 0.0, 0.0
        questions = ask((generalization,), samples, dict.fromkeys(personal, ()))
        answers = answer(questions, self.settings)
        rates = [
            [rate_of(one.question, one.guesses, part, 1.0) for part in (samples.validation, samples.test)]
            for one in answers
        ]
        validation, test = np.mean(rates, axis=0).tolist()
        return validation, test


def as_risk(risk: RiskName | Risk, *, seed: int, n_jobs: int | None) -> Risk:
    """Turn the word for a risk into the thing."""
    if risk == "table":
        return ReconstructionRisk(("table",), seed=seed, n_jobs=n_jobs)
    if risk == "family":
        return ReconstructionRisk(None, seed=seed, n_jobs=n_jobs)
    if callable(risk):
        return risk
    raise ParameterError(
        f"risk={risk!r}: expected 'table' (quick), 'family' (all adversaries), or a function of a generalization, "
        "samples and personal attributes."
    )
