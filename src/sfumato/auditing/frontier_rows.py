# SPDX-License-Identifier: Apache-2.0
"""The rows of a frontier: each protection fitted, measured, attacked and certified on every split.

``frontier`` calls `measured_rows` for what users compare, ``tradeoff`` for the choices around a policy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.membership import NEED_SHADOWS
from sfumato.attack.membership_metrics import area_under_curve
from sfumato.attack.result import wilson_interval
from sfumato.attack.shadows import with_seeds
from sfumato.auditing.attacks import Effort
from sfumato.auditing.frontier_attacks import Attacked, AttackedSplit, combined_attacks, run_attacks
from sfumato.auditing.frontier_scores import NOT_SHOWN, Scores, score, utility_of
from sfumato.auditing.protections import NO_PROTECTION, Protection, Shared
from sfumato.certificates import certify
from sfumato.errors import SfumatoError
from sfumato.frames import Table
from sfumato.progress import Reporter
from sfumato.report.frontier import Frontier
from sfumato.report.frontier_row import CertifiedSecret, Estimate, FrontierRow, FrontierSubgroup

Splits = tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]
"""Training and test rows of every split."""


@dataclass(frozen=True, eq=False)
class Setting:
    """The people, the splits and the attackers that all rows share.

    Attributes
    ----------
    X : frame or array
    table : Table
        The same, as it was read.
    labels : ndarray
    classes : ndarray or None
        The labels; None for numbers.
    splits : tuple of (ndarray, ndarray)
        Training and test rows.
    quasi_identifiers, sensitive, secrets : list of str
    groups : mapping of str to ndarray
        The subgroup of every record, by column.
    attacks : tuple of str
    effort : Effort
    confidence : float
    random_state : int
    n_jobs : int or None
    cache : path or None
    n_attacked : int or None
        Splits on which attacks run; None: all.
    """

    X: Any
    table: Table
    labels: NDArray[Any]
    classes: NDArray[Any] | None
    splits: Splits
    quasi_identifiers: list[str]
    sensitive: list[str]
    secrets: list[str]
    groups: Mapping[str, NDArray[np.object_]]
    attacks: tuple[str, ...]
    effort: Effort
    confidence: float = 0.95
    random_state: int = 0
    n_jobs: int | None = None
    cache: str | os.PathLike[str] | None = None
    n_attacked: int | None = None

    @property
    def n_train(self) -> int:
        """Training records of a split."""
        return len(self.splits[0][0])

    @property
    def test_over_train(self) -> float:
        """Test records over training records."""
        return len(self.splits[0][1]) / self.n_train

    def rows_of(self, rows: NDArray[np.int64]) -> Any:
        """Return some records as a frame of the same kind."""
        return self.table.replaced({}, keep_rows=rows)

    def frontier(self, rows: Sequence[FrontierRow], *, is_complete: bool = True, notes: Sequence[str] = ()) -> Frontier:
        """Return rows as a frontier."""
        reference = next((row.name for row in rows if row.family == "none"), NO_PROTECTION)
        return Frontier(
            tuple(rows), "R2" if self.classes is None else "accuracy", self._blind(), self.n_train,
            len(self.splits[0][1]), len(self.splits), self.confidence, self.random_state, reference, is_complete,
            tuple(notes),
        )  # fmt: skip

    def _blind(self) -> float:
        """Return the mean utility of always giving the most frequent answer of the training records."""
        if self.classes is None:
            return 0.0
        shares = []
        for train, test in self.splits:
            values, counts = np.unique(self.labels[train], return_counts=True)
            shares.append(float((self.labels[test] == values[counts.argmax()]).mean()))
        return float(np.mean(shares))


# -- rows ----------------------------------------------------------------------------------------------------------


def measured_rows(setting: Setting, protections: Sequence[Protection], reporter: Reporter) -> Iterator[FrontierRow]:
    """Fit, measure and attack each protection on every split; yield its row."""
    for protection in protections:
        yield _row(setting, protection, reporter)


@dataclass(frozen=True, eq=False)
class _Part:
    """One protection on one split."""

    raw: Scores
    takes_raw: bool
    recoded: Scores | None
    attacked: Attacked | None  # None: this split is not attacked
    secrets: Mapping[str, Any]  # bounds by column
    reasons: dict[str, str]
    limit: float | None
    has_table: bool
    seconds: float
    subgroups: dict[tuple[str, str], tuple[int, float, float | None]]


def _row(setting: Setting, protection: Protection, reporter: Reporter) -> FrontierRow:
    parts: list[_Part] = []
    own = (protection.name, protection.family, protection.parameter)
    for number in range(len(setting.splits)):
        of_all = f", split {number + 1} of {len(setting.splits)}" if len(setting.splits) > 1 else ""
        with reporter.step(f"{protection.name}{of_all}"):
            try:
                parts.append(_on_split(setting, protection, number, reporter))
            except SfumatoError as error:
                return FrontierRow(*own, "model", reasons={"all": str(error.sentence)})
            except Exception as error:
                error.add_note(f"while the protection {protection.name!r} was measured on split {number + 1}")
                raise
    first = parts[0]
    attacked = [part.attacked for part in parts if part.attacked is not None]
    attacks, why_not = combined_attacks(attacked, setting.test_over_train, setting.confidence)
    reasons = {**first.reasons, **why_not, **protection.reasons}
    raw, recoded = [part.raw for part in parts], [part.recoded for part in parts if part.recoded is not None]
    if not first.takes_raw:
        raw, recoded = [], raw
    limits = [part.limit for part in parts if part.limit is not None]
    found: dict[str, Any] = {
        "utility": _estimate(setting, raw, "utility"),
        "auc": _estimate(setting, raw, "auc"),
        "recoded": _estimate(setting, recoded, "utility"),
        "recoded_auc": _estimate(setting, recoded, "auc"),
        "certificate": _certified([part.secrets for part in parts]),
        "limit": max(limits, default=None),
    }
    return FrontierRow(
        *own,
        "table" if first.has_table else "model",
        **found,
        attacks=attacks,
        subgroups=_subgroups(setting, parts),
        seconds=float(np.mean([part.seconds for part in parts])),
        reasons={name: why for name, why in reasons.items() if found.get(name) is None},
    )


def _on_split(setting: Setting, protection: Protection, number: int, reporter: Reporter) -> _Part:
    train, test = setting.splits[number]
    seed = setting.random_state + number
    X_train, X_test, y_test = setting.rows_of(train), setting.rows_of(test), setting.labels[test]
    start = time.perf_counter()
    if protection.fit is None:
        fitted = with_seeds(protection.estimator, seed).fit(X_train, setting.labels[train])
    else:
        fitted = protection.fit(train, test)
    seconds = time.perf_counter() - start
    shared = protection.look(fitted, X_train, setting.labels[train])
    raw = score(fitted, X_test, y_test, setting.confidence)
    recoded = None
    if shared.takes_raw and shared.recode is not None:
        recoded = score(shared.model, shared.recode(X_test), y_test, setting.confidence)
    attacked = None
    if setting.n_attacked is None or number < setting.n_attacked:
        attacked = run_attacks(_attacked_split(setting, number, seed, reporter), protection, fitted, shared)
    reasons = _missing(setting, shared, raw)
    secrets: Mapping[str, Any] = {}
    if shared.encoder is not None and setting.secrets:
        secrets, why = _bounds(setting, shared, X_test)
        reasons |= why
    limit = None if shared.privacy is None else float(shared.privacy.membership_limit)
    return _Part(
        raw, shared.takes_raw, recoded, attacked, secrets, reasons, None if limit == 1.0 else limit,
        shared.table is not None, seconds, _of_subgroups(setting, raw, attacked, setting.splits[number]),
    )  # fmt: skip


def _attacked_split(setting: Setting, number: int, seed: int, reporter: Reporter) -> AttackedSplit:
    train, test = setting.splits[number]
    everybody = np.concatenate([train, test])
    return AttackedSplit(
        setting.rows_of(everybody), setting.labels[everybody], len(train), setting.rows_of(train),
        setting.rows_of(test), setting.quasi_identifiers, setting.secrets, setting.attacks, setting.effort, seed,
        setting.n_jobs, setting.cache, reporter.progress if NEED_SHADOWS.intersection(setting.attacks) else None,
    )  # fmt: skip


def _missing(setting: Setting, shared: Shared, raw: Scores) -> dict[str, str]:
    """Return what this protection does not have here, and why."""
    reasons = {}
    if setting.classes is None:
        reasons["auc"] = reasons["recoded_auc"] = "the target is a number"
    elif raw.auc is None:
        reasons["auc"] = reasons["recoded_auc"] = "the model says classes, not how sure it is"
    if shared.table is None:
        reasons |= {"recoded": "no table is shared, only a model", "table attacks": "no table is shared, only a model"}
    if not shared.takes_raw:
        reasons["utility"] = "the model takes recoded records"
    if shared.encoder is None:
        reasons.setdefault("certificate", "nothing is shown of a new person")
    elif not setting.secrets:
        reasons["certificate"] = reasons["attribute"] = "no column was named as sensitive or secret"
    return reasons


def _bounds(setting: Setting, shared: Shared, holdout: Any) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Return what any attacker can guess of the secrets at most, or why that is not known."""
    try:
        return certify(shared.encoder, holdout, secrets=setting.secrets, confidence=setting.confidence).secrets, {}
    except SfumatoError as error:
        return {}, {"certificate": str(error.sentence)}


def _of_subgroups(
    setting: Setting, raw: Scores, attacked: Attacked | None, split: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> dict[tuple[str, str], tuple[int, float, float | None]]:
    """Return records, utility and area under the attack's curve of every subgroup."""
    strongest, found = None if attacked is None else attacked.strongest_on_model(), {}
    everybody, n_train = np.concatenate(split), len(split[0])
    known = setting.labels[split[1]]
    for column, of_record in setting.groups.items():
        here = of_record[everybody]
        for group in sorted(set(here.tolist()) - {NOT_SHOWN}):
            tested = here[n_train:] == group
            utility, _ = utility_of(
                raw.answers[tested], known[tested], setting.confidence, is_number=setting.classes is None
            )
            area = None
            if strongest is not None:
                own = here[strongest.records] == group
                if strongest.is_member[own].any() and not strongest.is_member[own].all():
                    area, _ = area_under_curve(strongest.scores[own], strongest.is_member[own])
            found[column, group] = (int(tested.sum()), utility, area)
    return found


def _subgroups(setting: Setting, parts: Sequence[_Part]) -> tuple[FrontierSubgroup, ...]:
    """Return how each subgroup fares; of a single split, accuracies with their interval over its records."""
    is_one_share = len(parts) == 1 and setting.classes is not None

    def share(n_records: int, value: float) -> Estimate:
        within = [wilson_interval(round(value * n_records), n_records, setting.confidence)]
        return Estimate.of([value], setting.test_over_train, setting.confidence, within, is_share=True)

    def estimate(values: Sequence[float | None]) -> Estimate | None:
        known = [value for value in values if value is not None]
        return Estimate.of(known, setting.test_over_train, setting.confidence) if known else None

    found = []
    for column, group in parts[0].subgroups:
        of_splits = [part.subgroups[column, group] for part in parts]
        utility = share(*of_splits[0][:2]) if is_one_share else estimate([one[1] for one in of_splits])
        assert utility is not None
        area = estimate([one[2] for one in of_splits])
        found.append(FrontierSubgroup(column, group, sum(one[0] for one in of_splits), utility, area))
    return tuple(found)


def _estimate(setting: Setting, scores: Sequence[Scores], what: str) -> Estimate | None:
    values = [getattr(one, what) for one in scores]
    if not values or None in values:
        return None
    within = [one.interval if what == "utility" else one.auc_interval for one in scores]
    is_share = setting.classes is not None
    return Estimate.of(values, setting.test_over_train, setting.confidence, within, is_share=is_share)


def _certified(secrets: Sequence[Mapping[str, Any]]) -> CertifiedSecret | None:
    """Return the bound of the secret with the largest advantage, the largest over the splits."""
    names = set(secrets[0]).intersection(*secrets) if secrets else set()
    if not names:
        return None

    def largest(name: str) -> float:
        return max(float(bounds[name].advantage) for bounds in secrets)

    worst = max(sorted(names), key=largest)
    own = [bounds[worst] for bounds in secrets]
    return CertifiedSecret(
        worst,
        max(float(bound.upper) for bound in own),
        float(np.mean([bound.baseline for bound in own])),
    )
