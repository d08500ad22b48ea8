# SPDX-License-Identifier: Apache-2.0
"""Similarity attack: the values of a group differ and mean nearly the same.

A group with salaries of 3,000, 3,100 and 3,200, or with gastritis, an ulcer and stomach cancer, has three different
values, and still says what everybody in it earns or suffers from. Called by audits.

References
----------
Li, N., Li, T., Venkatasubramanian, S. (2007). t-closeness: privacy beyond k-anonymity and l-diversity.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.group_guessing import SensitiveGroups, clustered_interval, higher_control
from sfumato.attack.named_attack import AttackedRelease, AttackFacts, Case, NamedAttack
from sfumato.attack.released_cells import Names
from sfumato.attack.released_secrets import ReleasedSecrets, cases_of, read_secrets
from sfumato.attack.result import AttackResult, Hits, judge
from sfumato.columns import Column
from sfumato.errors import InputError, ParameterError, named
from sfumato.hierarchies import Hierarchy

_SHARE_OF_RANGE = 0.05  # of the range without its outermost twentieths, either way: the tolerance unless given
_ENDS = (0.05, 0.95)
_FEWEST_NUMBERS = 10  # different ones; fewer are guessed one by one by other attacks
_N_SHUFFLES = 5


def guess_from_similar_values(
    original: Any,
    released: Any,
    known: Names,
    secret: str | int,
    *,
    tolerance: float | None = None,
    classes: Mapping[Any, Any] | Hierarchy | None = None,
    level: int = 1,
    control: Any = None,
    is_aligned: bool = True,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Guess people's sensitive value up to a tolerance, or its class of similar values, from their group.

    Parameters
    ----------
    original, released : frame or array
        The same people, before and after.
    known : list of str or int
        The quasi-identifiers.
    secret : str or int
        The sensitive column, released unchanged.
    tolerance : float, optional
        For numbers: a guess is right if it is at most this far from the value. None: a twentieth of the range without
        its outermost twentieths. For dates and times it is in microseconds.
    classes : mapping or Hierarchy, optional
        For categories, and needed there: the class of every value, or a hierarchy of them.
    level : int, default=1
        For a hierarchy: the level whose labels are the classes.
    control : frame or array, optional
        People outside the release, who are guessed about by the group nearest to them.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. If not, people are placed in the nearest group.
    random_state : int, default=0
        For the controls only.
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of people whose value is known within the tolerance. The attacker names the number that is
        near most values of the group, or its most frequent class; the baseline does so for the whole table. The control
        is the same attack after the values were shuffled over the table, which leaves what chance does to groups of
        these sizes; if people outside the release do better, it is their rate. People without a value are left out.
        ``share_of_close_groups`` among the details is the share of people in groups of at least two different values
        that all lie within the tolerance.

    Examples
    --------
    >>> import pyarrow as pa
    >>> original = pa.table({"age": [20, 21, 22, 60, 61, 62], "pay": [1000, 1010, 1020, 3000, 3010, 3020]})
    >>> released = original.set_column(0, "age", pa.array(["20-22"] * 3 + ["60-62"] * 3))
    >>> result = guess_from_similar_values(original, released, ["age"], "pay", tolerance=50)
    >>> result.rate, result.baseline
    (1.0, 0.5)
    """
    started = time.perf_counter()
    if tolerance is not None and (classes is not None or not tolerance >= 0):
        raise ParameterError(
            f"{named('tolerance', tolerance)}: expected a number of at least 0, and no {named('classes')} beside it."
        )
    secrets = read_secrets(
        original, released, known, secret, control=control, is_aligned=is_aligned, random_state=random_state
    )
    numbers = _numbers(secrets, classes, level)
    if tolerance is None:
        tolerance = _usual_tolerance(numbers[secrets.groups.values]) if classes is None else 0.0
    rows = np.flatnonzero(~np.isnan(numbers[secrets.groups.truth]))
    secrets = _with_value(secrets, np.isnan(numbers))
    groups = secrets.groups
    guess_of = _best_guesses(groups.slot_group, numbers[groups.values], groups.n_groups, tolerance)
    is_right = _is_near(guess_of[groups.group], numbers[groups.truth], tolerance)
    whole = _best_guesses(np.zeros(len(groups.values), np.int64), numbers[groups.values], 1, tolerance)
    outside = None
    if secrets.others is not None:
        outside = float(_is_near(guess_of[secrets.other_group], numbers[secrets.other_truth], tolerance).mean())
    shuffled = _rate_of_shuffled(groups, numbers, tolerance, np.random.default_rng([random_state, 19]))
    details = {
        "secret": secrets.secret,
        "known": [column.name for column in secrets.columns],
        "by": "tolerance" if classes is None else "classes",
        "tolerance": float(tolerance),
        "n_groups": groups.n_groups,
        "share_of_close_groups": _share_of_close_groups(groups, numbers, tolerance),
    }
    control_rate, details = higher_control(shuffled, outside, details)
    rate, interval = float(is_right.mean()), clustered_interval(is_right, groups.group, confidence)
    is_usual = _is_near(whole, numbers[groups.truth], tolerance)
    baseline = float(is_usual.mean())
    verdict = judge(rate, interval, baseline, control=control_rate)
    seconds = time.perf_counter() - started
    hits = Hits(rows, is_right, is_usual, cluster=groups.group)
    return AttackResult(
        "similarity", rate, interval, baseline, control_rate, verdict, seconds, random_state, details, hits
    )


# -- reading -----------------------------------------------------------------------------------------------------


def _numbers(
    secrets: ReleasedSecrets, classes: Mapping[Any, Any] | Hierarchy | None, level: int
) -> NDArray[np.float64]:
    """Return what the code of every value stands for: its number, or that of its class; NaN for missing."""
    column = secrets.values
    missing = np.zeros(column.n_records, bool) if column.missing is None else column.missing
    if classes is None:
        if column.kind == "category":
            raise ParameterError(
                f"{named('secret', secrets.secret)} holds categories: expected numbers, or which categories are "
                f"similar. Name the class of every value in {named('classes')}."
            )
        return np.where(missing, np.nan, column.values.astype(np.float64))
    values = column.values[~missing] if column.categories is None else column.categories[column.values[~missing]]
    labels = [_class_of(value, classes, level) for value in values.tolist()]
    unknown = sum(label is None for label in labels)
    if unknown:
        raise InputError(
            f"{unknown} values of column {secrets.secret!r} have no class: expected one for every value. Add them to "
            f"{named('classes')}."
        )
    place = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    numbers = np.full(column.n_records, np.nan)
    numbers[~missing] = [place[label] for label in labels]
    return numbers


def _class_of(value: Any, classes: Mapping[Any, Any] | Hierarchy, level: int) -> Any:
    if isinstance(classes, Hierarchy):
        return classes.label(value, level) if classes.find([value])[0] >= 0 else None
    return classes.get(value)


def _usual_tolerance(numbers: NDArray[np.float64]) -> float:
    """Return a twentieth of the range without its outermost twentieths, or of the whole range where that is empty."""
    there = numbers[~np.isnan(numbers)]
    if not len(there):
        return 0.0
    low, high = np.quantile(there, _ENDS)
    return float((high - low) or (there.max() - there.min())) * _SHARE_OF_RANGE


def _with_value(secrets: ReleasedSecrets, is_missing: NDArray[np.bool_]) -> ReleasedSecrets:
    """Return the people and the sensitive rows that have a value."""
    groups = secrets.groups
    own, rows, other = (~is_missing[codes] for codes in (groups.truth, groups.values, secrets.other_truth))
    if not own.any() or not rows.any():
        raise InputError(f"column {secrets.secret!r} has no values: expected some. Leave it out.")
    left = SensitiveGroups(
        groups.group[own], groups.slot_group[rows], groups.values[rows], groups.truth[own], groups.n_groups
    )
    others = None if secrets.others is None or not other.any() else secrets.others[other]
    return replace(
        secrets,
        groups=left,
        others=others,
        other_group=secrets.other_group[other],
        other_truth=secrets.other_truth[other],
    )


# -- guessing ----------------------------------------------------------------------------------------------------


def _best_guesses(
    group: NDArray[np.int64], numbers: NDArray[np.float64], n_groups: int, tolerance: float
) -> NDArray[np.float64]:
    """Return, for each group, the number that is within the tolerance of most of its numbers; NaN without numbers."""
    order = np.lexsort((numbers, group))
    starts = np.searchsorted(group[order], np.arange(n_groups + 1))
    found = np.full(n_groups, np.nan)
    for g, (start, stop) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        if start == stop:
            continue
        own = numbers[order[start:stop]]
        ends = np.searchsorted(own, own + 2 * tolerance + _slack(own), side="right")
        best = int((ends - np.arange(len(own))).argmax())
        found[g] = (own[best] + own[ends[best] - 1]) / 2
    return found


def _slack(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1e-9 * np.maximum(1.0, np.abs(numbers))


def _is_near(guesses: NDArray[np.float64], numbers: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
    """Return which guesses are within the tolerance; one that does not exist is not."""
    return np.asarray(np.abs(guesses - numbers) <= tolerance + _slack(numbers))


def _rate_of_shuffled(
    groups: SensitiveGroups, numbers: NDArray[np.float64], tolerance: float, generator: np.random.Generator
) -> float:
    """Return the rate of the attack where values belong to any group."""
    rates = []
    for _ in range(_N_SHUFFLES):
        own = numbers[generator.permutation(groups.values)]
        guess_of = _best_guesses(groups.slot_group, own, groups.n_groups, tolerance)
        rates.append(float(_is_near(guess_of[groups.slot_group], own, tolerance).mean()))
    return float(np.mean(rates))


def _share_of_close_groups(groups: SensitiveGroups, numbers: NDArray[np.float64], tolerance: float) -> float:
    """Return the share of people in groups of several different values that are all similar."""
    low, high = np.full(groups.n_groups, np.inf), np.full(groups.n_groups, -np.inf)
    np.minimum.at(low, groups.slot_group, numbers[groups.values])
    np.maximum.at(high, groups.slot_group, numbers[groups.values])
    is_close = (groups.n_different > 1) & (high - low <= 2 * tolerance + 1e-9)
    return float(is_close[groups.group].mean())


# -- as audits run it --------------------------------------------------------------------------------------------


def _holds_numbers(column: Column) -> bool:
    if column.kind == "category":
        return False
    present = column.values if column.missing is None else column.values[~column.missing]
    return len(np.unique(present)) >= _FEWEST_NUMBERS


def _cases(about: AttackedRelease) -> list[Case] | str:
    return cases_of(
        about,
        "guess {} up to a tolerance (similarity)",
        guess_from_similar_values,
        fits=_holds_numbers,
        otherwise="The similarity attack does not apply: no sensitive column holds numbers. In Python, "
        "guess_from_similar_values takes classes of similar categories.",
    )


SIMILARITY = NamedAttack(
    AttackFacts(
        "similarity",
        "guess a secret up to a tolerance (similarity)",
        "reads off a group whose values differ, but lie close together",
        "release",
        "inference",
        result="similarity",
        remedy="diversity",
    ),
    _cases,
)
