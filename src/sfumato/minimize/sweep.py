# SPDX-License-Identifier: Apache-2.0
"""Try many settings of one or several minimizers, and compare utility and risk on held-out records.

Generalizations are learned on the training part, compared on the validation part, and reported on the test part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid

from sfumato.attack.reconstruction_adversaries import FamilySettings, answer, rate_of
from sfumato.attack.reconstruction_questions import ask
from sfumato.attack.samples import Samples
from sfumato.certificates import certify
from sfumato.certificates.bounds import best_attacker_upper
from sfumato.errors import ParameterError, named
from sfumato.fingerprints import Fingerprints
from sfumato.frames import read_table
from sfumato.generalization import Generalization
from sfumato.generalization.attributes import Attribute
from sfumato.grouping import group_rows
from sfumato.minimize.bucket_utility import Codes, CodesClassifier
from sfumato.minimize.minimizer import Minimizer, code_target
from sfumato.minimize.privacy_aware_tree import PrivacyAwareTree
from sfumato.minimize.sample import Buckets, Sample
from sfumato.minimize.screening import MOST_SCREENED, narrowed, screened
from sfumato.minimize.sweep_parts import SHARES, Part, Shares, parts_of, set_aside
from sfumato.minimize.sweep_result import EVERYTHING, NOTHING, MinimizerSweep, SweepPoint

CONFIDENCE = 0.95
"""Of the certified risk of a point."""

RiskName = Literal["table", "family"]


def sweep_minimizers(
    minimizers: Minimizer | Sequence[Minimizer],
    X: Any,
    y: Any,
    *,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
    validation: Part | None = None,
    test: Part | None = None,
    shares: Shares = SHARES,
    estimator: Any = None,
    risk: RiskName | Risk = "table",
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> MinimizerSweep:
    """Evaluate a grid of settings for utility and for risk.

    Parameters
    ----------
    minimizers : Minimizer or list of Minimizer
        What to sweep over; parameters that a grid does not name stay as they are. All must look at the same
        attributes.
    X : frame or array
        Full-resolution records.
    y : array-like
        Their classes.
    grid : dict or list of dict, optional
        Values to try for each parameter, one dict per minimizer; None: the grids of the paper.
    validation, test : pair of records and classes, optional
        Parts to choose and to report on; X and y are then for learning alone. Both or none.
    shares : tuple of three floats, default=(0.6, 0.1, 0.3)
        Without parts of their own, how X is dealt to training, validation and test. The training part gets at least
        one record of every class and category.
    estimator : classifier, optional
        What predicts the class from a matrix of codes; None: gradient boosting. Records with equal codes are merged
        into one with a weight where its `fit` takes weights.
    risk : {"table", "family"} or callable, default="table"
        The attacker: counts of fine values per combination of buckets, or the strongest of the whole family of
        adversaries, or a function of a generalization, samples and personal attributes that returns the attacker's
        success on validation and on test.
    random_state : int, default=0
    n_jobs : int, optional
        Threads; None: one, -1: all cores.
    progress : bool, default=False
        Show a progress bar on standard error.

    Returns
    -------
    MinimizerSweep
        All points, with the two limits: nothing generalized and everything generalized. Both keep to the floor of
        the first minimizer: "nothing generalized" pools rare categories too.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sfumato.minimize import UniformMinimizer, sweep_minimizers
    >>> age, town = np.tile(np.arange(20, 80), 10), np.repeat(np.arange(10), 60)
    >>> X, y = np.column_stack([age, town]), age >= 50
    >>> grid = {"n_buckets": [2, 4]}
    >>> found = sweep_minimizers(UniformMinimizer(), X, y, grid=grid, estimator=DecisionTreeClassifier())
    >>> [(point.minimizer, point.n_buckets) for point in found.points]
    [('nothing generalized', 35), ('everything generalized', 2), ('UniformMinimizer', 4), ('UniformMinimizer', 8)]
    """
    every = [minimizers] if isinstance(minimizers, Minimizer) else list(minimizers)
    if not every:
        raise ParameterError("no minimizer was given: expected one or several. PrivacyAwareTree() suits most.")
    grids = _checked_grids(grid, len(every))
    parts = parts_of(every[0], X, y, validation, test, shares, random_state)
    attacker = as_risk(risk, seed=random_state, n_jobs=n_jobs)
    judge = _Judge(every[0], parts, CodesClassifier(estimator, seed=random_state), attacker)
    with _progress(progress) as advance:
        sample = judge.sample_for(every[0])
        points = [judge.point(name, {}, limit) for name, limit in _limits(sample, every[0].floor)]
        errors = (points[0].validation_error, points[1].validation_error)
        for minimizer, own_grid in zip(every, grids, strict=True):
            sample = judge.sample_for(minimizer)
            settings = list(ParameterGrid(own_grid or minimizer.default_grid(sample, errors)))
            made = minimizer._learned_of_settings(sample, settings)
            for setting, buckets in advance(zip(settings, made, strict=True), type(minimizer).__name__, len(settings)):
                generalization = _told(minimizer, setting, sample, buckets)
                points.append(judge.point(type(minimizer).__name__, setting, generalization))
    return MinimizerSweep(tuple(points), judge.personal)


def coarsest_generalization(
    X: Any,
    y: Any,
    *,
    max_loss: float = 0.01,
    minimizer: Any = None,
    certified: bool = False,
    confidence: float = CONFIDENCE,
    **options: Any,
) -> Any:
    """Return the generalization with the lowest risk that costs a classifier at most `max_loss` of its accuracy.

    Parameters
    ----------
    X : frame or array
        Full-resolution records.
    y : array-like
        Their classes.
    max_loss : float, default=0.01
        Maximum increase of the error over full resolution, as a share; 0.01 is one percentage point.
    minimizer : Minimizer, optional
        None: a ``PrivacyAwareTree``.
    certified : bool, default=False
        Whether to return a certificate, too: bounds on any attacker from the test part, which nothing was learned or
        chosen on. Without a test part of its own, that part is drawn from X at random first.
    confidence : float, default=0.95
        Of the certificate.
    **options
        As for `sweep_minimizers`.

    Returns
    -------
    Generalization, or pair of Generalization and Certificate
    """
    own = PrivacyAwareTree() if minimizer is None else minimizer
    if certified and options.get("test") is None and options.get("validation") is None:
        shares = options.pop("shares", SHARES)
        X, y, options["validation"], options["test"] = set_aside(X, y, shares, options.get("random_state", 0))
    swept = sweep_minimizers(own, X, y, **options)
    chosen = swept.coarsest(max_loss).generalization
    if not certified:
        return chosen
    if not swept.personal:
        raise ParameterError(
            f"{named('certified', True)} without personal attributes: expected at least one to bound. Name them in "
            f"{named('personal')} of the minimizer."
        )
    return chosen, certify(chosen, options["test"][0], secrets=swept.personal, confidence=confidence)


def _checked_grids(grid: Any, n_minimizers: int) -> list[Mapping[str, Sequence[Any]] | None]:
    if grid is None:
        return [None] * n_minimizers
    grids = [grid] if isinstance(grid, Mapping) else list(grid)
    if len(grids) != n_minimizers:
        raise ParameterError(
            f"{len(grids)} grids for {n_minimizers} minimizers: expected one each. Use None for the paper's grid."
        )
    return grids


def _limits(sample: Sample, floor: int) -> list[tuple[str, Generalization]]:
    """Return the finest generalization that the floor allows, and the coarsest."""
    nothing = [np.arange(n) for n in sample.n_codes]
    everything = [np.zeros(n, np.int64) for n in sample.n_codes]
    return [
        (NOTHING, sample.generalized(nothing, floor=floor)),
        (EVERYTHING, sample.generalized(everything, floor=floor)),
    ]


def _told(minimizer: Minimizer, setting: Mapping[str, Any], sample: Sample, buckets: Buckets) -> Generalization:
    told = {**minimizer._told_parameters(), **setting}
    floor = int(told["floor"])
    return sample.generalized(buckets, floor=floor, minimizer=type(minimizer).__name__, parameters=told)


class _Judge:
    """Measures utility and risk of generalizations on the same records; equal generalizations are measured once."""

    def __init__(self, first: Minimizer, parts: list[Part], classifier: CodesClassifier, risk: Risk) -> None:
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
        sample = screened(minimizer._read(*self.train, None))
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
        is_ordered = [attribute.kind != "category" for attribute in collected]
        codes = Codes(columns, [attribute.n_buckets for attribute in collected], is_ordered)
        predicted = self.classifier.predictions(codes, self.y[self.samples.train], self.samples.train)
        is_wrong = np.broadcast_to(predicted, self.y.shape) != self.y
        return float(is_wrong[self.samples.validation].mean()), float(is_wrong[self.samples.test].mean())


@contextmanager
def _progress(is_shown: bool) -> Iterator[Any]:
    """Yield a function that passes an iterable through and shows how far it has come."""
    if not is_shown:
        yield lambda steps, name, n_steps: steps
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:

        def advance(steps: Iterable[Any], name: str, n_steps: int) -> Iterable[Any]:
            return bar.track(steps, total=n_steps, description=name)

        yield advance


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
