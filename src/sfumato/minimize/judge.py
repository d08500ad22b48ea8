# SPDX-License-Identifier: Apache-2.0
"""Measure generalizations on held-out records: the error of a classifier on buckets, and an attacker's success.

Sweeps use it for every setting, and so do the costs of single attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.reconstruction_adversaries import FamilySettings, answer
from sfumato.attack.reconstruction_clues import ask
from sfumato.attack.reconstruction_questions import rate_of
from sfumato.attack.samples import Samples
from sfumato.certificates.bounds import best_attacker_upper
from sfumato.errors import ParameterError, named
from sfumato.fingerprints import Fingerprints
from sfumato.frames import read_table
from sfumato.generalization import Generalization
from sfumato.generalization.attributes import Attribute
from sfumato.grouping import group_rows
from sfumato.minimize.bucket_utility import Codes, CodesClassifier
from sfumato.minimize.collection_limits import CollectionLimits
from sfumato.minimize.minimizer import Minimizer, code_target
from sfumato.minimize.sample import Buckets, Sample
from sfumato.minimize.screening import MOST_SCREENED, narrowed, screened
from sfumato.minimize.sweep_parts import Part
from sfumato.minimize.sweep_result import EVERYTHING, NOTHING, SweepPoint

CONFIDENCE = 0.95
"""Of the certified risk of a point."""

RiskName = Literal["table", "family"]


class Risk(Protocol):
    """Measures how well personal attributes can be reconstructed; any callable with this signature works."""

    def __call__(
        self, generalization: Generalization, samples: Samples, personal: Sequence[str]
    ) -> tuple[float, float]:
        """Return the attacker's share of right guesses on the validation and on the test records."""
        ...


class ReconstructionRisk:
    """Attack A1: an attacker sees buckets and guesses fine values; mean over the personal attributes.

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
        if len(generalization.attributes) > MOST_SCREENED:  # what is not collected tells nothing, and takes time
            seen = (own for own in generalization.attributes if own.is_collected or own.name in personal)
            generalization = Generalization(tuple(seen))
        questions = ask((generalization,), samples, dict.fromkeys(personal, ()))
        answers = answer(questions, self.settings)
        rates = [
            [rate_of(one.question, one.guesses, part, 1.0) for part in (samples.validation, samples.test)]
            for one in answers
        ]
        validation, test = np.mean(rates, axis=0).tolist()
        return validation, test


def as_risk(risk: RiskName | Risk, *, seed: int, n_jobs: int | None) -> Risk:
    """Return the risk function for a name."""
    if risk == "table":
        return ReconstructionRisk(("table",), seed=seed, n_jobs=n_jobs)
    if risk == "family":
        return ReconstructionRisk(None, seed=seed, n_jobs=n_jobs)
    if callable(risk):
        return risk
    raise ParameterError(
        f"{named('risk', risk)}: expected 'table' (quick), 'family' (all adversaries), or a function of a "
        "generalization, samples and personal attributes."
    )


class Judge:
    """Measures utility and risk of generalizations on the same records; equal generalizations are measured once."""

    def __init__(
        self,
        first: Minimizer,
        parts: list[Part],
        classifier: CodesClassifier,
        risk: Risk,
        limits: CollectionLimits | None = None,
    ) -> None:
        self.limits = limits or CollectionLimits()
        self.train = parts[0]
        self.samples = Samples(
            *(frame for frame, _ in parts), categorical_features=first._categorical(), max_bins=first.max_bins
        )
        rows = (self.samples.train, self.samples.validation, self.samples.test)
        for (_, classes), own in zip(parts, rows, strict=True):
            code_target(classes, own.stop - own.start)  # raises unless there is one class per record
        self.y = np.unique(np.concatenate([classes for _, classes in parts]), return_inverse=True)[1]
        self.classifier = classifier
        self.risk = risk
        self._fingerprints: Fingerprints | None = None
        self._frames = [frame for frame, _ in parts]
        self.personal: tuple[str, ...] = ()
        self._read: dict[Minimizer, Sample] = {}
        self._measured: dict[bytes, tuple[tuple[float, float], tuple[float, float], float | None]] = {}

    def sample_for(self, minimizer: Minimizer) -> Sample:
        """Read the training part the way a minimizer wants it."""
        if minimizer in self._read:
            return self._read[minimizer]
        minimizer._check_parameters()
        sample = screened(self.limits.on(minimizer._read(*self.train, None)), self.limits.required)
        own, _ = narrowed(sample)
        personal = tuple(own.names[position] for position in own.personal)
        if self.personal and personal != self.personal:
            raise ParameterError(
                f"{type(minimizer).__name__} has other personal attributes than the first minimizer: expected the "
                "same, or their risks could not be compared. Pass the same personal= to all."
            )
        self.personal = personal
        self._read[minimizer] = sample
        return sample

    def limits_of(self, sample: Sample, floor: int) -> list[tuple[str, Generalization]]:
        """Return the finest generalization that the floor and the limits allow, and the coarsest."""
        nothing = self.limits.applied(sample, [np.arange(n) for n in sample.n_codes], floor)
        everything = [np.zeros(n, np.int64) for n in sample.n_codes]
        return [
            (NOTHING, sample.generalized(nothing, floor=floor)),
            (EVERYTHING, sample.generalized(everything, floor=floor)),
        ]

    def told(
        self, minimizer: Minimizer, setting: Mapping[str, Any], sample: Sample, buckets: Buckets
    ) -> Generalization:
        """Return the generalization that a minimizer learned, within the limits."""
        told = {**minimizer._told_parameters(), **setting}
        floor = int(told["floor"])
        own = self.limits.applied(sample, buckets, floor)
        told |= self.limits.to_dict()
        return sample.generalized(own, floor=floor, minimizer=type(minimizer).__name__, parameters=told)

    def point(self, minimizer: str, setting: Mapping[str, Any], generalization: Generalization) -> SweepPoint:
        """Measure a generalization."""
        collected = [attribute for attribute in generalization.attributes if attribute.is_collected]
        columns = [self.samples.buckets(generalization, attribute.name) for attribute in collected]
        digest = blake2b(repr([attribute.name for attribute in collected]).encode())
        for column in columns:
            digest.update(np.ascontiguousarray(column, np.int32).data)
        key = digest.digest()
        if key not in self._measured:
            self._measured[key] = (
                self._errors(collected, columns),
                self.risk(generalization, self.samples, self.personal),
                self._certified(columns),
            )
        errors, risks, certified = self._measured[key]
        n_buckets = sum(generalization.n_buckets)
        measured = (errors[0], risks[0], errors[1], risks[1], certified)
        known = replace(generalization, fingerprints=self._fingerprints_of(generalization))
        return SweepPoint(minimizer, dict(setting), known, n_buckets, *measured)

    def _certified(self, columns: list[NDArray[np.int64]]) -> float | None:
        """Return the mean over the personal attributes of what any attacker guesses right at most, on test."""
        if not self.personal:
            return None
        test, error = self.samples.test, (1 - CONFIDENCE) / len(self.personal)
        cells = group_rows([column[test] for column in columns], test.stop - test.start)
        secrets = [self.samples.column(name).codes[test] for name in self.personal]
        uppers = [best_attacker_upper(cells, int(cells.max()) + 1, values, error) for values in secrets]
        return float(np.mean(uppers))

    def _fingerprints_of(self, generalization: Generalization) -> Fingerprints:
        """Return the fingerprints of the records that points are learned and chosen on; the test part is neither."""
        if self._fingerprints is None:
            learned, chosen, _ = self._frames
            made = Fingerprints.of(read_table(learned), generalization.names)
            self._fingerprints = made.with_records(chosen)
        return self._fingerprints

    def _errors(self, collected: Sequence[Attribute], columns: list[NDArray[np.int64]]) -> tuple[float, float]:
        is_wrong = self._is_wrong(collected, columns)
        return float(is_wrong[self.samples.validation].mean()), float(is_wrong[self.samples.test].mean())

    def _is_wrong(self, collected: Sequence[Attribute], columns: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
        is_ordered = [attribute.kind != "category" for attribute in collected]
        codes = Codes(columns, [attribute.n_buckets for attribute in collected], is_ordered)
        predicted = self.classifier.predictions(codes, self.y[self.samples.train], self.samples.train)
        wrong: NDArray[np.bool_] = np.broadcast_to(predicted, self.y.shape) != self.y
        return wrong

    def wrong_on_test(self, generalization: Generalization) -> NDArray[np.bool_]:
        """Return which test records are classified wrongly from buckets."""
        collected = [attribute for attribute in generalization.attributes if attribute.is_collected]
        columns = [self.samples.buckets(generalization, attribute.name) for attribute in collected]
        return self._is_wrong(collected, columns)[self.samples.test]
