# SPDX-License-Identifier: Apache-2.0
"""Membership inference: was a record among the training data of a fitted model?

`attack_membership` runs one or several attacks on the same records and returns one `MembershipResult` each. The
formulas are in ``membership_signals`` (model outputs), ``membership_scores`` (LiRA, RMIA, forests),
``membership_network`` (a network as the attacker), ``shadows`` (models to compare with) and ``membership_metrics``
(accuracy, AUC and low false positive rates).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attack import membership_scores
from sfumato.attack.membership_metrics import judged, said_members
from sfumato.attack.membership_network import network_learner
from sfumato.attack.membership_signals import Floats, Reader, reader_of
from sfumato.attack.named_attack import AttackFacts, Level, NamedAttack
from sfumato.attack.result import AttackResult, Hits
from sfumato.attack.shadows import Progress, ShadowOutputs, train_shadows
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import read_table

_FEWEST_OF_EACH = 20
_SHOWN_EXPOSED = 20
# The caller may have split the records with the same seed: these draws must be independent of those.
_TAG_OF_FOLDS, _TAG_OF_CONTROL = 101, 102


@dataclass(frozen=True, eq=False)
class MembershipResult(AttackResult):
    """The result of a membership attack, over all records and for each of them.

    The rate is the accuracy on half members and half others, so guessing gives 0.5. The details hold precision, recall,
    AUC, and the true positives where at most 1% and 0.1% of the others are taken for members, each with its interval.
    The control is the accuracy on others alone, a random half of which are called members. The verdict is *stronger
    than baseline* when accuracy or one of the two low rates is above chance, with the error shared among the three.

    Attributes
    ----------
    records : ndarray of int
        Positions of the attacked records in X.
    scores : ndarray of float
        One per attacked record; higher means more likely a member. Not among what `to_dict` returns.
    is_member : ndarray of bool
    """

    records: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp), repr=False)
    scores: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    is_member: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool), repr=False)

    def most_exposed(self, n: int = _SHOWN_EXPOSED) -> list[int]:
        """Return the positions in X of the members with the highest scores, the most exposed first."""
        members = np.flatnonzero(self.is_member)
        order = np.lexsort((self.records[members], -self.scores[members]))
        return [int(record) for record in self.records[members][order[:n]]]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary, and the most exposed records by position only."""
        plain = super().to_dict()
        for name in ("records", "scores", "is_member"):
            del plain[name]
        return {**plain, "most_exposed": self.most_exposed()}


@dataclass(frozen=True, eq=False)
class _Scene:
    """The input of an attack: the attacked records, and the shadows if there are any."""

    reader: Reader
    outputs: Floats
    codes: NDArray[Any]
    is_member: NDArray[np.bool_]
    fold: NDArray[np.int8]
    shadows: ShadowOutputs | None
    population: tuple[Floats, NDArray[Any]] | None
    seed: int
    n_jobs: int | None

    def control(self) -> _Scene:
        """Return the scene without members, a random half of the others called members."""
        rows = np.flatnonzero(~self.is_member)
        is_member, fold = _halved(len(rows), np.random.default_rng([self.seed, _TAG_OF_CONTROL]))
        shadows = self.shadows
        if shadows is not None:
            shadows = replace(shadows, outputs=shadows.outputs[:, rows], was_in=shadows.was_in[:, rows])
        return replace(
            self, outputs=self.outputs[rows], codes=self.codes[rows], is_member=is_member, fold=fold, shadows=shadows
        )

    def known_shadows(self) -> ShadowOutputs:
        assert self.shadows is not None
        return self.shadows

    def signals(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        shadows = self.known_shadows()
        signal = self.reader.signal
        return signal(self.outputs, self.codes), signal(shadows.outputs, self.codes), shadows.was_in


def _threshold(scene: _Scene) -> Floats:
    return scene.reader.signal(scene.outputs, scene.codes)


def _random_forest(scene: _Scene) -> Floats:
    learner = membership_scores.forest_learner(scene.reader, scene.seed, scene.n_jobs)
    return membership_scores.cross_fitted(learner, scene.outputs, scene.codes, scene.is_member, scene.fold)


def _network(scene: _Scene) -> Floats:
    learner = network_learner(scene.reader, scene.seed)
    return membership_scores.cross_fitted(learner, scene.outputs, scene.codes, scene.is_member, scene.fold)


def _shadow_models(scene: _Scene) -> Floats:
    shadows = scene.known_shadows()
    return membership_scores.shadow_scores(
        scene.reader, scene.outputs, scene.codes, shadows.outputs, shadows.was_in, seed=scene.seed, n_jobs=scene.n_jobs
    )


def _lira(scene: _Scene) -> Floats:
    return membership_scores.lira_online(*scene.signals())


def _lira_offline(scene: _Scene) -> Floats:
    return membership_scores.lira_offline(*scene.signals())


def _rmia(scene: _Scene) -> Floats:
    shadows, reader, codes = scene.known_shadows(), scene.reader, scene.codes
    scale = 1.0
    if reader.kind == "numbers":  # the variance of an error of a model that has not seen the record
        scale = max(float(((shadows.outputs[..., 0] - codes) ** 2)[~shadows.was_in].mean()), 1e-300)
    more: dict[str, Any] = {}
    if scene.population is not None:
        outputs, known_codes = scene.population
        more["population"] = reader.likelihood(outputs, known_codes, scale)
        more["shadow_population"] = reader.likelihood(shadows.population, known_codes, scale)
    own = reader.likelihood(scene.outputs, codes, scale)
    return membership_scores.rmia(own, reader.likelihood(shadows.outputs, codes, scale), shadows.was_in, **more)


def _named(name: str, title: str, sentence: str, from_level: Level, *needs: str) -> NamedAttack:
    sees = "the model's answers to the candidates, and models trained in the same way" if _SHADOWS in needs else ""
    return NamedAttack(AttackFacts(name, title, sentence, "membership", "inference", from_level, needs, sees=sees))


_SHADOWS = "shadow models"
THRESHOLD = _named("threshold", "membership, by the loss", "calls people members whose loss is low", "quick")
RANDOM_FOREST = _named(
    "random-forest", "membership, by a forest", "learns from some members what outputs for members look like", "quick"
)
NETWORK = _named(
    "network", "membership, by a network", "learns the same with a network of the literature", "quick", "torch"
)
SHADOW_MODELS = _named(
    "shadow-models", "membership, by shadow models", "learns it from models of the attacker's own", "full", _SHADOWS
)
LIRA = _named(
    "lira", "membership, by likelihood", "compares how models with and without a person answer", "full", _SHADOWS
)
LIRA_OFFLINE = _named(
    "lira-offline",
    "membership, offline likelihood",
    "compares with models without the person only",
    "standard",
    _SHADOWS,
)
RMIA = _named(
    "rmia", "membership, by pairwise ratios", "compares a person with other people, pair by pair", "standard", _SHADOWS
)
_SCORE_OF: tuple[tuple[NamedAttack, Callable[[_Scene], Floats]], ...] = (
    (THRESHOLD, _threshold),
    (RANDOM_FOREST, _random_forest),
    (NETWORK, _network),
    (SHADOW_MODELS, _shadow_models),
    (LIRA, _lira),
    (LIRA_OFFLINE, _lira_offline),
    (RMIA, _rmia),
)
_SCORES = {own.facts.name.replace("-", "_"): score for own, score in _SCORE_OF}
ATTACKS = tuple(_SCORES)
NEED_SHADOWS = frozenset(own.facts.name.replace("-", "_") for own, _ in _SCORE_OF if _SHADOWS in own.facts.needs)


def attack_membership(
    model: Any,
    X: Any,
    y: ArrayLike,
    is_member: ArrayLike,
    *,
    attacks: Sequence[str] = ("threshold", "random_forest"),
    estimator: Any = None,
    n_shadows: int = 64,
    population: tuple[Any, Any] | None = None,
    outputs: Literal["auto", "logits", "probabilities"] = "auto",
    confidence: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Mapping[str, MembershipResult]:
    """Infer which records a model was trained on.

    As many members as others are attacked: the more frequent kind is thinned out at random.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba`` or ``decision_function``, or fitted regressor
    X : frame or array
        Records the model was trained on, and others.
    y : array-like of shape (n_records,)
        Their true labels or numbers.
    is_member : array-like of bool of shape (n_records,)
        Which of them it was trained on.
    attacks : sequence of str
        ``"threshold"`` (on the loss; Yeom et al., 2018), ``"random_forest"`` and ``"network"`` (learn from half of the
        records, see Goldsteen et al., 2021; the network needs torch), ``"shadow_models"`` (Shokri et al., 2017),
        ``"lira"`` and ``"lira_offline"`` (Carlini et al., 2022), ``"rmia"`` (Zarifzadeh et al., 2024).
    estimator : unfitted estimator, optional
        What the model was made with, *protection included*: for the attacks with shadow models. Shadows without the
        protection imitate another model, and may make a weaker attack.
    n_shadows : int, default=64
        Each is trained on a random half of X.
    population : (X, y), optional
        Records that neither the model nor a shadow was trained on, for RMIA to compare with; without them it compares
        with the attacked records.
    outputs : {"auto", "logits", "probabilities"}
        What is read of a classifier. ``"auto"``: logits of networks and of other models that have them,
        else probabilities.
    confidence : float, default=0.95
    random_state : int, default=0
    n_jobs : int, optional
        Processes for the shadows; None: one, -1: one per core.
    cache : path, optional
        A folder for the outputs of finished shadows; an interrupted attack goes on where it was.
    progress : callable, optional
        Called with the number of finished shadows and their total.

    Returns
    -------
    dict of str to MembershipResult

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sfumato.attack import attack_membership
    >>> X = np.random.default_rng(0).normal(size=(400, 5))
    >>> y = (X[:, 0] + np.random.default_rng(1).normal(size=400) > 0).astype(int)
    >>> model = RandomForestClassifier(n_estimators=30, random_state=0).fit(X[:200], y[:200])
    >>> found = attack_membership(model, X, y, np.arange(400) < 200, attacks=["threshold"])
    >>> found["threshold"].verdict, found["threshold"].rate > 0.7
    ('stronger than baseline', True)
    """
    _check_attacks(attacks, estimator)
    table = read_table(X)
    members = _checked_membership(is_member, table.n_records)
    reader = reader_of(model, y, outputs)
    codes = reader.codes(y)
    if len(codes) != table.n_records:
        raise InputError(
            f"{len(codes)} labels for {table.n_records} records: expected one per record. Pass y of the same rows."
        )
    generator = np.random.default_rng([random_state, _TAG_OF_FOLDS])
    records = _as_many_of_each(members, generator)
    target_outputs = reader.outputs(model, X)[records]
    reader = reader.suited_to(target_outputs)
    read_population = None
    if population is not None:
        read_population = reader.outputs(model, population[0]), reader.codes(population[1])
    shadows, shadow_seconds = None, 0.0
    if NEED_SHADOWS.intersection(attacks):
        start = time.perf_counter()
        shadows = train_shadows(
            estimator, X, y,
            reader=reader, n_shadows=n_shadows, X_population=None if population is None else population[0],
            random_state=random_state, n_jobs=n_jobs, cache=cache, progress=progress,
        )  # fmt: skip
        shadows = replace(shadows, outputs=shadows.outputs[:, records], was_in=shadows.was_in[:, records])
        shadow_seconds = time.perf_counter() - start
    attacked = members[records]
    scene = _Scene(
        reader, target_outputs, codes[records], attacked, _folds(attacked, generator),
        shadows, read_population, int(random_state), n_jobs,
    )  # fmt: skip
    return {name: _result(name, scene, records, confidence, shadow_seconds) for name in attacks}


def _result(
    name: str, scene: _Scene, records: NDArray[np.intp], confidence: float, shadow_seconds: float
) -> MembershipResult:
    start = time.perf_counter()
    scores = _SCORES[name](scene)
    accuracy, interval, verdict, details = judged(scores, scene.is_member, scene.fold, confidence)
    control = scene.control()
    said = said_members(_SCORES[name](control), control.is_member, control.fold)
    is_right = said_members(scores, scene.is_member, scene.fold) == scene.is_member
    details["outputs"] = scene.reader.kind
    if name in NEED_SHADOWS:
        details["n_shadows"] = len(scene.known_shadows().was_in)
        details["shadow_seconds"] = shadow_seconds
    return MembershipResult(
        attack=name,
        rate=accuracy,
        interval=interval,
        baseline=0.5,
        control=float((said == control.is_member).mean()),
        verdict=verdict,
        seconds=time.perf_counter() - start + (shadow_seconds if name in NEED_SHADOWS else 0.0),
        seed=scene.seed,
        details=details,
        hits=Hits(records, is_right, np.full(len(records), 0.5), is_member=scene.is_member),
        records=records,
        scores=scores,
        is_member=scene.is_member,
    )


def _check_attacks(attacks: Sequence[str], estimator: Any) -> None:
    if isinstance(attacks, str) or not attacks or any(name not in _SCORES for name in attacks):
        raise ParameterError(
            f"{named('attacks', attacks)}: expected a list of some of {', '.join(ATTACKS)}. Correct the names."
        )
    needing = sorted(NEED_SHADOWS.intersection(attacks))
    if needing and estimator is None:
        raise ParameterError(
            f"attacks={needing} without estimator=: expected the unfitted estimator that the model was made with, "
            "protection included, to train shadows from. Pass it, or leave these attacks out."
        )


def _checked_membership(is_member: ArrayLike, n_records: int) -> NDArray[np.bool_]:
    members = np.asarray(is_member)
    if members.dtype != bool or members.shape != (n_records,):
        raise InputError(
            f"is_member has the type {members.dtype} and the shape {members.shape} for {n_records} records: expected "
            "True or False for every record. Pass an array of booleans."
        )
    n_members = int(members.sum())
    if min(n_members, n_records - n_members) < _FEWEST_OF_EACH:
        raise InputError(
            f"{n_members} members and {n_records - n_members} others: expected at least {_FEWEST_OF_EACH} of each, or "
            "no rate would mean anything. Add records to the smaller side."
        )
    return members


def _as_many_of_each(members: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[np.intp]:
    """Return the positions of all of the rarer kind and of as many of the other kind, in their order."""
    inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
    n_each = min(len(inside), len(outside))
    chosen = [generator.permutation(part)[:n_each] for part in (inside, outside)]
    return np.sort(np.concatenate(chosen))


def _folds(is_member: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[np.int8]:
    """Return a random half of the members and a random half of the others as fold 1."""
    fold = np.zeros(len(is_member), np.int8)
    for kind in (True, False):
        rows = generator.permutation(np.flatnonzero(is_member == kind))
        fold[rows[: len(rows) // 2]] = 1
    return fold


def _halved(n: int, generator: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.int8]]:
    is_member = generator.permutation(n) < n // 2
    return is_member, _folds(is_member, generator)
