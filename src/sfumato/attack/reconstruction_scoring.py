# SPDX-License-Identifier: Apache-2.0
"""Turn the answers of the adversaries into a result: rates, intervals, baselines, and the verdict.

Called by the reconstruction attacks; `check_order` compares two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.reconstruction_adversaries import Answer
from sfumato.attack.reconstruction_questions import selection
from sfumato.attack.result import AttackResult, bootstrap_interval, judge, wilson_interval

CONFIDENCE = 0.95


def assess(
    attack: str,
    answers: Sequence[Answer],
    *,
    certainty: float,
    seed: int,
    seconds: float,
    details: Mapping[str, Any],
) -> AttackResult:
    """Compare the answers with the truth on the test records.

    The baseline always guesses the most frequent value. The control is the same attack with the breached records dealt
    to the wrong people: what its guesses are worth without the link between buckets and person. A verdict rests on the
    differences between attack and baseline record by record.
    """
    n_records = len(answers[0].question.values[answers[0].question.test])
    gained, naive = np.zeros(n_records), np.zeros(n_records)
    attributes = {}
    for found in answers:
        weights, is_right, is_majority = _judged(found, certainty)
        gained += weights * is_right * (n_records / weights.sum() / len(answers))
        naive += is_majority / len(answers)
        attributes[found.question.attribute] = _describe(found, weights, is_right, is_majority)
    rate, baseline = float(gained.mean()), float(naive.mean())
    advantage = bootstrap_interval(gained - naive, confidence=CONFIDENCE, random_state=seed)
    worst = max(attributes, key=lambda name: attributes[name]["rate"])
    return AttackResult(
        attack=attack,
        rate=rate,
        interval=bootstrap_interval(gained, confidence=CONFIDENCE, random_state=seed),
        baseline=baseline,
        control=float(np.mean([one["control"] for one in attributes.values()])),
        verdict=judge(rate - baseline, advantage, 0.0),
        seconds=seconds,
        seed=seed,
        details={
            "error": 1 - rate,
            "baseline_error": 1 - baseline,
            "advantage": rate - baseline,
            "advantage_interval": advantage,
            "worst": worst,
            "worst_rate": attributes[worst]["rate"],
            "certainty": certainty,
            "n_records": n_records,
            "attributes": attributes,
            **details,
        },
    )


def check_order(weaker: AttackResult, stronger: AttackResult, *, confidence: float = CONFIDENCE) -> AttackResult:
    """Return the result of the attacker who knows more, as a failed attack where it does worse than the other.

    Knowledge can be ignored, so an attack that knows more and does worse on the same records was badly trained and says
    nothing about safety. The order of attacks is A1, A3, A5, A4, for each attribute.

    Parameters
    ----------
    weaker, stronger : AttackResult
        Of two reconstruction attacks on the same test records; `stronger` knows all that `weaker` knows.
    confidence : float, default=0.95
        Of all comparisons together: the mean and every attribute that both attacked.

    Examples
    --------
    >>> from dataclasses import replace
    >>> counts = {"rate": 0.6, "successes": 600.0, "trials": 1000.0}
    >>> a1 = AttackResult("A1", 0.6, (0.57, 0.63), 0.5, None, "not shown", 1.0, 0, {"attributes": {"job": counts}})
    >>> worse = {"rate": 0.4, "successes": 400.0, "trials": 1000.0}
    >>> a4 = replace(a1, attack="A4", rate=0.4, interval=(0.37, 0.43), details={"attributes": {"job": worse}})
    >>> check_order(a1, a4).verdict
    'failed attack'
    """
    shared = [name for name in weaker.details["attributes"] if name in stronger.details["attributes"]]
    each = 1 - (1 - confidence) / (len(shared) + 1)
    violated = []
    for name in shared:
        low, high = weaker.details["attributes"][name], stronger.details["attributes"][name]
        if wilson_interval(high["successes"], high["trials"], each)[1] < low["rate"]:
            violated.append(name)
    if stronger.interval[1] >= weaker.rate and not violated:
        return stronger
    return stronger.with_verdict(
        "failed attack", weaker_attack=weaker.attack, weaker_rate=weaker.rate, violated=violated
    )


def _judged(found: Answer, certainty: float) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the weight of each test record, whether it was guessed right, and whether the majority would have been."""
    question = found.question
    cell_of = question.cells.cell_of[question.test]
    truth = question.values[question.test]
    weights = selection(found.guesses.confidence[cell_of], certainty)
    return weights, found.guesses.values[cell_of] == truth, truth == question.majority


def _describe(
    found: Answer, weights: NDArray[np.float64], is_right: NDArray[np.bool_], is_majority: NDArray[np.bool_]
) -> dict[str, Any]:
    question = found.question
    cell_of = question.cells.cell_of[question.test]
    trials, successes = float(weights.sum()), float(weights @ is_right)
    guessed = np.bincount(found.guesses.values[cell_of], weights, minlength=question.n_values) / trials
    true = np.bincount(question.values[question.test], weights, minlength=question.n_values) / trials
    low, high = wilson_interval(min(successes, trials), trials, CONFIDENCE)
    return {
        "rate": successes / trials,
        "interval": (low, high),
        "successes": successes,
        "trials": trials,
        "baseline": float(is_majority.mean()),
        "baseline_on_the_same": float(weights @ is_majority / trials),
        "control": float(guessed @ true),
        "adversary": found.adversary,
        "validation": found.tried,
        "n_values": question.n_values,
        "n_cells": question.cells.n_cells,
    }
