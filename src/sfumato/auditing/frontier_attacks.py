# SPDX-License-Identifier: Apache-2.0
"""The attackers of a frontier: on the model and on the shared table of one split, and together over all splits."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.anatomy_attacks import definetti
from sfumato.attack.membership import MembershipResult
from sfumato.attack.named_attack import AttackedRelease
from sfumato.attack.result import judge
from sfumato.auditing.attacks import Effort, Outcome, Round, SkippedAttack, facts_of, run_on_model, run_on_release
from sfumato.auditing.protections import Protection, Shared
from sfumato.errors import SfumatoError
from sfumato.frames import Table, read_table
from sfumato.report.frontier_row import Estimate, FrontierAttack, Goal, Shares

_PLACES = 13  # keeps the order of the published rows apart from what others draw from the same seed


@dataclass(frozen=True, eq=False)
class AttackedSplit:
    """The people of one split, and what their attackers know and want.

    Attributes
    ----------
    people : frame
        The training records, then the test records.
    labels : ndarray
        Their targets.
    n_train : int
    train, test : frame
    known, secrets : list of str
        Columns that attackers know, and columns that they guess.
    attacks : collection of str
    effort : Effort
    random_state : int
    n_jobs : int or None
    cache : path or None
    say : callable or None
        Told of shadow models, which take long.
    """

    people: Any
    labels: NDArray[Any]
    n_train: int
    train: Any
    test: Any
    known: list[str]
    secrets: list[str]
    attacks: Collection[str]
    effort: Effort
    random_state: int
    n_jobs: int | None
    cache: str | os.PathLike[str] | None
    say: Callable[[str], Any] | None


@dataclass(frozen=True, eq=False)
class Attacked:
    """Outcomes of the attacks on one split, by what was attacked, and why others were not run."""

    outcomes: tuple[tuple[Shares, Outcome], ...]
    reasons: dict[str, str]

    def strongest_on_model(self) -> MembershipResult | None:
        """Return the membership attack on the model with the largest area under the curve."""
        found = [one.result for on, one in self.outcomes if on == "model" and isinstance(one.result, MembershipResult)]
        return max(found, key=lambda result: float(result.details["auc"]), default=None)


def run_attacks(split: AttackedSplit, protection: Protection, fitted: Any, shared: Shared) -> Attacked:
    """Attack what a fitted protection shares."""
    on_model = run_on_model(
        fitted, split.people, split.labels, np.arange(len(split.labels)) < split.n_train,
        attacks=split.attacks, effort=split.effort, estimator=protection.estimator, attributes=split.secrets,
        random_state=split.random_state, n_jobs=split.n_jobs, cache=split.cache, say=split.say,
    )  # fmt: skip
    outcomes: list[tuple[Shares, Outcome]] = [("model", one) for one in on_model.outcomes]
    reasons = _reasons(on_model, "model")
    for found in _rounds_on_table(split, shared):
        outcomes += [("table", one) for one in found.outcomes]
        reasons |= _reasons(found, "table")
    return Attacked(tuple(outcomes), reasons)


def _rounds_on_table(split: AttackedSplit, shared: Shared) -> list[Round]:
    if shared.table is None:
        return []
    original, released = read_table(split.train), shared.table
    places = None
    if shared.is_aligned:  # in the order of the input here, and in another one where it is published
        places = np.random.default_rng([split.random_state, _PLACES]).permutation(original.n_records)
    elif shared.anatomy is None:
        kept = _of_known_values(released, read_table(split.people))
        if kept is None:
            return [Round((), (SkippedAttack("every attack", "", "each of its records has a value of nobody"),), ())]
        released = kept
    there = set(read_table(released).names)
    known = split.known if shared.is_aligned else [name for name in split.known if name in there]

    def about(known: list[str], unchanged: list[str], secrets: list[str]) -> AttackedRelease:
        return AttackedRelease(
            split.train, released, known, unchanged, secrets, split.test, shared.is_aligned, places,
            split.random_state, {}, secrets,
        )  # fmt: skip

    on_secrets = [name for name in split.attacks if _goal(name) == "attribute"]
    on_people = [name for name in split.attacks if name not in on_secrets]
    exact = [name for name in original.names if name in there and name not in known]
    rounds = [run_on_release(about(known, exact, []), on_people)]
    if shared.anatomy is not None:
        return [*rounds, _on_two_tables(split, shared)] if "inference" in split.attacks else rounds
    for secret in split.secrets:  # the others are known, whatever their role
        others = [name for name in known if name != secret]
        secrets = [secret] if secret in there or secret in known else []
        rounds.append(run_on_release(about(others, [], secrets), on_secrets))
    return rounds


def _of_known_values(released: Any, people: Table) -> Any:
    """Return the records of a made table without those that have a category which nobody has.

    They are nobody's, and attacks could not tell such a category from a label for several. None: no record is left.
    """
    table = read_table(released)
    is_known = np.ones(table.n_records, np.bool_)
    for name in table.names:
        column = table.column(name)
        if column.categories is None or name not in people.names:
            continue
        theirs = people.column(name)
        met = () if theirs.categories is None else theirs.categories[np.unique(theirs.values)]
        # One place more: a column without any value has no category, and every record at place 0.
        is_met = np.append(np.isin(column.categories.astype(str), np.asarray(met).astype(str)), False)[column.values]
        is_known &= is_met if column.missing is None else is_met | column.missing
    if not is_known.any():
        return None
    return released if is_known.all() else table.replaced({}, keep_rows=np.flatnonzero(is_known))


def _on_two_tables(split: AttackedSplit, shared: Shared) -> Round:
    """Guess the sensitive values of an anatomized table from what all of its groups say together."""
    assert shared.anatomy is not None
    tables, rows = shared.anatomy
    original, outcomes = read_table(split.train), []
    for secret in tables.sensitive_columns:
        if secret not in split.secrets:
            continue
        column = original.column(secret, for_counting=True)
        values = column.values if column.categories is None else column.categories[column.values]
        try:
            result = definetti(tables.identifying, tables.sensitive, values[rows], column=secret)
        except SfumatoError:
            continue
        outcomes.append(Outcome("inference", f"infer {secret} from the release", result))
    return Round(tuple(outcomes), (), ())


def _goal(attack: str) -> Goal:
    facts = facts_of(attack)
    if facts.target == "membership" or attack == "release_membership":
        return "membership"
    return "attribute" if facts.eu_risk == "inference" else facts.eu_risk


def _reasons(found: Round, on: Shares) -> dict[str, str]:
    return {f"{attack.attack} on the {on}": str(attack.why) for attack in found.not_run}


# -- over all splits -----------------------------------------------------------------------------------------------


def combined_attacks(
    splits: Sequence[Attacked], test_over_train: float, confidence: float
) -> tuple[tuple[FrontierAttack, ...], dict[str, str]]:
    """Return every attack with its mean over the splits, and why some are missing."""
    by_attack: dict[tuple[Shares, str, str], list[Outcome]] = {}
    for attacked in splits:
        for on, one in attacked.outcomes:
            by_attack.setdefault((on, one.attack, one.title), []).append(one)
    reasons = {name: why for attacked in splits for name, why in attacked.reasons.items()}
    found = []
    for (on, attack, title), outcomes in by_attack.items():
        if len(outcomes) < len(splits):
            reasons[f"{attack} on the {on}"] = f"it ran on {len(outcomes)} of {len(splits)} splits"
        found.append(_combined(on, attack, title, outcomes, test_over_train, confidence))
    return tuple(found), reasons


def _combined(
    on: Shares, attack: str, title: str, outcomes: Sequence[Outcome], test_over_train: float, confidence: float
) -> FrontierAttack:
    results = [one.result for one in outcomes]

    def estimate(values: list[float], within: list[tuple[float, float]]) -> Estimate:
        return Estimate.of(values, test_over_train, confidence, within, is_share=True)

    rate = estimate([one.rate for one in results], [one.interval for one in results])
    baseline = float(np.mean([one.baseline for one in results]))
    controls = [one.control for one in results if one.control is not None]
    control = float(np.mean(controls)) if controls else None
    goal = _goal(attack)
    auc = at_one = None
    if goal == "membership" and all("auc" in one.details for one in results):
        details = [one.details for one in results]
        auc = estimate([one["auc"] for one in details], [one["auc_interval"] for one in details])
        low = [one["true_positives_at"]["0.01"] for one in details]
        at_one = estimate([one["rate"] for one in low], [one["interval"] for one in low])
    verdict = results[0].verdict
    if len(results) > 1:
        assert rate.interval is not None
        verdict = judge(rate.value, rate.interval, baseline, control=control)
    return FrontierAttack(attack, title, on, goal, rate, baseline, control, auc, at_one, verdict)
