# SPDX-License-Identifier: Apache-2.0
"""Run the attacks of an audit level, and word their results.

``quick`` takes minutes at most: attacks that need no further model. ``standard`` adds shadow models, ``full`` as many
of them as the papers use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.attack import ATTACKS as _FAMILY
from sfumato.attack.attribute import attack_attribute
from sfumato.attack.membership import NEED_SHADOWS, attack_membership
from sfumato.attack.named_attack import CONFIDENCE, LEVELS, AttackedRelease, AttackFacts
from sfumato.attack.result import AttackResult
from sfumato.auditing.subgroups import Subgroups
from sfumato.errors import MissingExtraError, ParameterError, Sentence, SfumatoError
from sfumato.frames import read_table
from sfumato.report.data import Risk

_MOST_VALUES_GUESSED = 50  # of an attribute; what has more is not guessed value by value
_FEWEST_OF_CONTROL = 20  # records of people who are not in the release, with values to guess
NO_TITLES: Mapping[str, str] = MappingProxyType({})
NO_SUBGROUPS = Subgroups()
_MOST_NAMES = 8  # of columns in a note


@dataclass(frozen=True)
class _Plan:
    n_shadows: int
    n_attributes: int
    most_records: int  # members attacked, and as many others


_PLANS = {
    "none": _Plan(0, 0, 0),
    "quick": _Plan(0, 1, 5_000),
    "standard": _Plan(16, 3, 10_000),
    "full": _Plan(64, 6, 20_000),
}

ATTACKS: tuple[str, ...] = tuple(name.replace("-", "_") for name in _FAMILY)
"""Everything that an audit may run: on the model up to ``"attribute"``, then on the released records."""


def _facts_of(attack: str) -> AttackFacts:
    facts: AttackFacts = _FAMILY[attack.replace("_", "-")].facts
    return facts


@dataclass(frozen=True)
class SkippedAttack:
    """An attack that was wanted and could not be run.

    Attributes
    ----------
    attack : str
        One of `ATTACKS`.
    title, why : str
    """

    attack: str
    title: str
    why: str


@dataclass(frozen=True)
class Attacks:
    """Results of a round of attacks.

    Attributes
    ----------
    risks : tuple of Risk
        Attacks that were run.
    not_run : tuple of SkippedAttack
        A gate that bounds attacks fails for them.
    notes : tuple of str
        Attacks that were not wanted, or that have no meaning for this table, such as guessing a secret where no column
        is one. No gate fails for them.
    """

    risks: tuple[Risk, ...] = ()
    not_run: tuple[SkippedAttack, ...] = ()
    notes: tuple[str, ...] = ()

    def and_also(self, others: Attacks) -> Attacks:
        """Return these attacks and others."""
        return Attacks((*self.risks, *others.risks), (*self.not_run, *others.not_run), (*self.notes, *others.notes))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about attacks that are not among the risks."""
        return (*(f"Not run: {attack.title}. {attack.why}" for attack in self.not_run), *self.notes)


def attacks_of(level: str, leave_out: Collection[str] = ()) -> tuple[str, ...]:
    """Return the attacks that an audit of this level runs where they apply.

    Examples
    --------
    >>> attacks_of("quick", leave_out=["network", "row_order"])[:5]
    ('threshold', 'random_forest', 'attribute', 'singling_out', 'linkability')
    """
    if level not in LEVELS:
        raise ParameterError(f"audit level {level!r}: expected one of {', '.join(LEVELS)}. 'quick' takes minutes.")
    every = [name for name in ATTACKS if _facts_of(name).runs_at(level)]
    return tuple(name for name in every if name not in leave_out)


def attack_model(
    model: Any,
    X: Any,
    y: ArrayLike,
    is_member: ArrayLike,
    *,
    level: str,
    estimator: Any,
    attributes: Sequence[str],
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    leave_out: Collection[str] = (),
    titles: Mapping[str, str] = NO_TITLES,
    subgroups: Subgroups = NO_SUBGROUPS,
    say: Callable[[str], Any] | None = None,
) -> Attacks:
    """Attack a model that was trained on protected records.

    Parameters
    ----------
    model : fitted estimator
    X : frame
        Records it was trained on, as they were before, and others.
    y : array-like
    is_member : array-like of bool
    level : {"none", "quick", "standard", "full"}
    estimator : unfitted estimator
        The whole pipeline, protection included, for shadow models.
    attributes : sequence of str
        Columns that attackers would like to know, the most wanted first.
    random_state : int
    n_jobs : int, optional
        Processes for the shadows and threads of the forests; None: one, -1: all cores.
    cache : path, optional
        Where finished shadows are kept, so that an interrupted audit goes on.
    leave_out : collection of str
        Attacks of the level that are not wanted.
    titles : mapping of str to str
        Titles of columns for readers.
    subgroups : Subgroups
        Of the records: the one that each attack gains most on is named.
    say : callable, optional
        Called with a sentence before each attack, and now and then while shadow models are trained.

    Returns
    -------
    Attacks
    """
    wanted = attacks_of(level, leave_out)
    plan = _PLANS[level]
    members = np.asarray(is_member, bool)
    rows = _as_many_as_planned(members, plan.most_records, random_state)
    table = read_table(X)
    attacked = table.replaced({}, keep_rows=rows)
    labels = np.asarray(y)[rows]
    not_run: list[SkippedAttack] = []
    risks: list[Risk] = []
    membership = [name for name in wanted if _facts_of(name).target == "membership"]
    with_shadows = tuple(name for name in membership if name in NEED_SHADOWS)
    alone = [(name,) for name in membership if name not in NEED_SHADOWS]
    for names in filter(None, (*alone, with_shadows)):  # shadows are trained once for all attacks that use them
        if say is not None:
            say(f"attacking: {'; '.join(_facts_of(name).title for name in names)}")
        try:
            found = attack_membership(
                model, attacked, labels, members[rows],
                attacks=names, estimator=estimator if names == with_shadows else None, n_shadows=plan.n_shadows or 2,
                random_state=random_state, n_jobs=n_jobs, cache=cache, progress=None if say is None else _told(say),
            )  # fmt: skip
        except (MissingExtraError, SfumatoError) as error:
            not_run += [SkippedAttack(name, _facts_of(name).title, error.args[0]) for name in names]
            continue
        risks += [make_risk(_facts_of(name), _on(rows, found[name]), subgroups) for name in names]
    inside = members[rows]
    chosen, notes = _to_guess(table, attributes, plan.n_attributes if "attribute" in wanted else 0)
    for attribute in chosen:
        if say is not None:
            say(f"attacking: {attribute!r}, from the model")
        masks = _with_a_value_to_guess(read_table(attacked).column(attribute, for_counting=True), inside)
        own, others = ((attacked_part(attacked, mask), labels[mask]) for mask in masks)
        # Without a control all that is found out counts as found out through the release: no risk is made smaller.
        control = others if masks[1].sum() >= _FEWEST_OF_CONTROL else None
        try:
            found_values = attack_attribute(
                model, *own, attribute, control=control, random_state=random_state, n_jobs=n_jobs
            )
        except SfumatoError as error:
            not_run.append(SkippedAttack("attribute", f"guessing {attribute!r} with the model", error.sentence))
            continue
        title = f"{titles.get(attribute, attribute)}, from the model"
        ways = [
            make_risk(_facts_of("attribute"), _on(rows[masks[0]], result), subgroups, title)
            for result in found_values.values()
        ]
        # Each has a control of its own: the one that is right most often may be as right about people in general.
        risks.append(max(ways, key=lambda risk: (risk.advantage, risk.result["rate"])))
    return Attacks(tuple(risks), tuple(not_run), notes)


def _told(say: Callable[[str], Any]) -> Callable[[int, int], None]:
    """Return a callback that reports shadow models, eight times in all."""

    def progress(done: int, total: int) -> None:
        if done % max(1, total // 8) == 0:
            say(f"shadow models: {done} of {total}")

    return progress


def attack_release(
    original: Any,
    released: Any,
    quasi_identifiers: Sequence[str],
    *,
    secrets: Sequence[str] = (),
    sensitive: Sequence[str] | None = None,
    control: Any = None,
    is_aligned: bool = True,
    places: ArrayLike | None = None,
    level: str = "quick",
    random_state: int = 0,
    leave_out: Collection[str] = (),
    titles: Mapping[str, str] = NO_TITLES,
    subgroups: Subgroups = NO_SUBGROUPS,
    say: Callable[[str], Any] | None = None,
) -> Attacks:
    """Attack a released table: the three risks of the EU opinion, on people whose original values are known.

    Singling out looks at all columns that were released, the others at the quasi-identifiers and the secrets. Attacks
    on the sensitive values of groups add to the risk of inference.

    Parameters
    ----------
    original, released : frame
        The same people in the same order, before and after.
    quasi_identifiers : sequence of str
        Columns that an attacker may know.
    secrets : sequence of str
        Columns to infer, each by itself.
    sensitive : sequence of str, optional
        Those of them that were named as sensitive, whose groups are attacked, too; None: all.
    control : frame, optional
        Other people, who are not in the release.
    is_aligned : bool
        Whether the rows of the two tables are in the same order. If not, the order itself cannot be attacked, and
        labels must say what they stand for.
    places : array-like of int, optional
        The place of every row in the file that is published; None: as they stand.
    level : {"none", "quick", "standard", "full"}
    random_state : int
    leave_out : collection of str
        Attacks that are not wanted.
    titles : mapping of str to str
        Titles of columns for readers.
    subgroups : Subgroups
        Of the records: the one that each attack gains most on is named.
    say : callable, optional

    Returns
    -------
    Attacks
    """
    names = list(quasi_identifiers)
    there = set(read_table(released).names)
    unchanged = [name for name in read_table(original).names if name in there and name not in names]
    about = AttackedRelease(
        original=original,
        released=released,
        known=names,
        unchanged=unchanged,
        secrets=[name for name in secrets if name not in names],
        control=control,
        is_aligned=is_aligned,
        places=places,
        random_state=random_state,
        titles=titles,
        sensitive=[name for name in (secrets if sensitive is None else sensitive) if name not in names],
    )
    risks, not_run, told = [], [], []
    for attack in attacks_of(level, leave_out):
        facts = _facts_of(attack)
        if facts.target != "release":
            continue
        if missing := [name for name in facts.needs if find_spec(name) is None]:
            why = Sentence(f"{missing[0]} is not installed: expected it for this attack. Install it with pip.")
            not_run.append(SkippedAttack(attack, facts.title, why))
            continue
        cases = _FAMILY[facts.name].cases(about)
        if isinstance(cases, str):
            told.append(cases)
            continue
        for case in cases:
            if say is not None:
                say(f"attacking: {case.title}")
            try:
                risks.append(make_risk(facts, case.run(), subgroups, case.title))
            except SfumatoError as error:
                not_run.append(SkippedAttack(attack, case.title, error.sentence))
    return Attacks(tuple(risks), tuple(not_run), tuple(told))


def make_risk(facts: AttackFacts, result: AttackResult, subgroups: Subgroups, title: str | None = None) -> Risk:
    """Put an attack's result into words.

    Parameters
    ----------
    facts : AttackFacts
    result : AttackResult
    subgroups : Subgroups
    title : str, optional
        Of this case; that of the attack, where not given.
    """
    document = result.to_dict()
    document.pop("most_exposed", None)  # positions of single records stay with the owner of the table
    return Risk(
        title or facts.title,
        facts.eu_risk,
        document,
        sentence_of(result),
        facts.knowledge,
        facts.access,
        _n_attempts(result),
        CONFIDENCE,
        subgroups.worst(result.hits, CONFIDENCE),
    )


def _n_attempts(result: AttackResult) -> int | None:
    """Return the number of guesses that a rate was counted over."""
    if result.hits is not None:
        return len(result.hits.rows)
    known = result.details
    if "n_members" in known:
        return int(known["n_members"] + known["n_others"])
    return next((int(known[name]) for name in ("n_attempts", "n_guesses") if name in known), None)


def _on(rows: Any, result: AttackResult) -> AttackResult:
    """Return a result whose people are known by their rows in a larger table."""
    return result if result.hits is None else replace(result, hits=result.hits.at(rows))


def sentence_of(result: AttackResult) -> str:
    """Return the result of an attack as a sentence."""
    if result.verdict == "failed attack":
        by = result.details.get("baseline_from", "without the release")
        return (
            f"Below baseline: {result.rate:.3f}, and {result.baseline:.3f} {by}. The attack is invalid: it does not "
            "show that the release is safe."
        )
    if result.control is not None and result.control > result.baseline:
        without, where = result.control, f" ({result.details.get('control_from', 'people outside the release')})"
    else:
        without, where = result.baseline, ""
    if result.verdict == "not shown":
        return f"No significant gain: {result.rate:.3f}, reference rate {without:.3f}{where}."
    said = f"It succeeds in {result.rate:.1%} of cases; the reference rate is {without:.1%}{where}."
    if result.rate > without or "true_positives_at" not in result.details:
        return said
    found = result.details["true_positives_at"]["0.01"]["rate"]
    return f"{said} But it detects {found:.1%} of the members at 1% false positives."


def attacked_part(frame: Any, mask: Any) -> Any:
    """Return the records of a frame where the mask is true."""
    return read_table(frame).replaced({}, keep_rows=np.flatnonzero(mask))


def _as_many_as_planned(members: Any, most: int, random_state: int) -> Any:
    """Return positions of at most so many members and as many others, drawn at random."""
    generator = np.random.default_rng([random_state, 7])
    n_each = min(most, int(members.sum()), int((~members).sum()))
    return np.sort(
        np.concatenate([generator.permutation(np.flatnonzero(members == kind))[:n_each] for kind in (True, False)])
    )


def _to_guess(table: Any, attributes: Sequence[str], most: int) -> tuple[list[str], tuple[str, ...]]:
    """Return the first columns with few enough values to guess, and a note about those skipped."""
    chosen: list[str] = []
    passed_over: list[str] = []
    for name in attributes:
        if len(chosen) == most:
            break
        column = table.column(name, for_counting=True)
        present = column.values if column.missing is None else column.values[~column.missing]
        n_values = len(np.unique(present))
        (chosen if 2 <= n_values <= _MOST_VALUES_GUESSED else passed_over).append(name)
    if not passed_over:
        return chosen, ()
    shown = ", ".join(map(repr, passed_over[:_MOST_NAMES]))
    more = f" and {len(passed_over) - _MOST_NAMES} more" if len(passed_over) > _MOST_NAMES else ""
    return chosen, (
        f"Guessing {shown}{more} with the model does not apply: it guesses among 2 to {_MOST_VALUES_GUESSED} values.",
    )


def _with_a_value_to_guess(column: Any, inside: Any) -> tuple[Any, Any]:
    """Return which members and which others are guessed about.

    Of records without a value nobody could say whether it was guessed; a value that no member has is never guessed.
    """
    known = np.ones(len(inside), bool) if column.missing is None else ~column.missing
    own = inside & known
    return own, ~inside & known & np.isin(column.values, np.unique(column.values[own]))
