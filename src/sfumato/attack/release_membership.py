# SPDX-License-Identifier: Apache-2.0
"""Membership of a release: is a person whose quasi-identifiers are known among those who were released?

A release may publish real people as representatives, or ranges so tight that they exclude everybody else. Both tell who
is in it, without any model. Called by audits.

References
----------
Homer, N. et al. (2008). Resolving individuals contributing trace amounts of DNA to highly complex mixtures. PLoS
Genetics 4(8): the first attack on membership of a published aggregate.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.membership_metrics import judged, said_members
from sfumato.attack.named_attack import AttackedRelease, AttackFacts, Case, NamedAttack
from sfumato.attack.released_boxes import fewest_misfits
from sfumato.attack.released_cells import Names, read_release
from sfumato.attack.result import AttackResult, wilson_interval
from sfumato.errors import InputError, named
from sfumato.grouping import merge_rows

_FEWEST_OF_EACH = 20
_RULES = ("no column differs", "at most 1 column differs", "at most 2 columns differ")


def find_members_of_release(
    original: Any,
    released: Any,
    quasi_identifiers: Names | None = None,
    *,
    control: Any,
    is_aligned: bool = True,
    n_targets: int | None = 5000,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Tell members of a release from other people, by the released record that fits them best.

    The attacker knows the quasi-identifiers of candidates, half of them members, and counts the columns in which the
    nearest released record differs: the value is another one, or the range or set does not hold the candidate's value.
    Few differences say *member*, the more so where nobody else is known with the candidate's values. How much they say
    is learned from a quarter of the candidates; the others are judged.

    Parameters
    ----------
    original, released : frame or array
        The people in the release, before and after.
    quasi_identifiers : list of str or int, optional
        Columns that the attacker knows of candidates; None: all that were released.
    control : frame or array
        Other people of the same population, who are not in the release. At least a quarter of them is what the attacker
        knows of the population, the rest are candidates.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. Only labels that say neither a range nor a set need it.
    n_targets : int or None, default=5000
        Members and others to attack, drawn at random, as many of each; None: all of the smaller side.
    random_state : int, default=0
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the accuracy. The threshold comes from one half of the judged candidates and is applied to the other,
        and the other way round. The baseline guesses: 0.5. The control is the same attack on other people, half of whom
        are taken for members. ``details["rules"]`` has for 0, 1 and 2 columns the accuracy of saying *member* if at
        most so many differ, with its interval, and the shares of members and of others of whom it is said.
        ``details["true_positives_at"]`` has the share of members found at few false positives.

    Notes
    -----
    In a release of ranges and sets, *no column differs* means that the person lies inside a published box. Where boxes
    are hulls of their groups, a person outside all of them is certainly not a member. Cells of a tree cover the whole
    space and tell nothing of that kind.

    References
    ----------
    Homer, N. et al. (2008). Resolving individuals contributing trace amounts of DNA to highly complex mixtures. PLoS
    Genetics 4(8).

    Examples
    --------
    >>> import pyarrow as pa
    >>> members = pa.table({"age": list(range(0, 100, 2)), "wage": list(range(0, 1000, 20))})
    >>> others = pa.table({"age": list(range(1, 101, 2)), "wage": list(range(10, 1010, 20))})
    >>> find_members_of_release(members, members, control=others).rate
    1.0
    """
    start = time.perf_counter()
    table = read_release(original, released, quasi_identifiers, control, is_aligned=is_aligned, as_stated=True)
    n_known = table.n_others // 4
    n_each = min(table.n_people, table.n_others - n_known, table.n_people if n_targets is None else n_targets)
    if min(table.n_people, table.n_others) < _FEWEST_OF_EACH:
        raise InputError(
            f"{table.n_people} members and {table.n_others} others: expected at least {_FEWEST_OF_EACH} of each. Give "
            f"more people in {named('control')}."
        )
    generator = np.random.default_rng([random_state, 17])
    inside, outside = (
        people[generator.permutation(len(people))]
        for people in (table.people(table.columns), table.others(table.columns))
    )
    candidates = np.concatenate([inside[:n_each], outside[:n_each]])
    is_member = np.arange(2 * n_each) < n_each
    misfits = fewest_misfits(table.columns, table.shown(table.columns), candidates)
    taught = np.arange(2 * n_each) % n_each < n_each // 4
    signs = 2 * misfits + _is_new(candidates, outside[n_each:], [column.n_values for column in table.columns])
    scores, judge = _scores(signs, is_member, taught), ~taught
    accuracy, interval, verdict, details = judged(
        scores[judge], is_member[judge], _halves(is_member[judge], generator), confidence
    )
    others = scores[judge & ~is_member]
    is_pretended = np.arange(len(others)) < len(others) // 2
    said = said_members(others, is_pretended, _halves(is_pretended, generator))
    rules = {rule: _judged_rule(misfits <= most, is_member, confidence) for most, rule in enumerate(_RULES)}
    return AttackResult(
        "membership of a release",
        accuracy,
        interval,
        baseline=0.5,
        control=float((said == is_pretended).mean()),
        verdict=verdict,
        seconds=time.perf_counter() - start,
        seed=random_state,
        details={**details, "rules": rules},
    )


def _is_new(candidates: NDArray[np.int64], known: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.bool_]:
    """Return for every candidate whether nobody among known people has the same values."""
    both = np.concatenate([candidates, known])
    _, group = merge_rows(list(both.T), sizes, len(both))
    return ~np.isin(group[: len(candidates)], group[len(candidates) :])


def _scores(signs: NDArray[np.int64], is_member: NDArray[np.bool_], taught: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how much more often members than others have a candidate's sign, in the part that teaches the attacker."""
    n_signs = int(signs.max()) + 1
    counts = [np.bincount(signs[taught & (is_member == kind)], minlength=n_signs) + 1 for kind in (True, False)]
    return np.asarray(np.log(counts[0] / counts[1])[signs])


def _halves(is_member: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[np.int8]:
    """Return a random half of the members and a random half of the others as fold 1."""
    fold = np.zeros(len(is_member), np.int8)
    for kind in (True, False):
        fold[generator.permutation(np.flatnonzero(is_member == kind))[::2]] = 1
    return fold


def _judged_rule(said: NDArray[np.bool_], is_member: NDArray[np.bool_], confidence: float) -> dict[str, Any]:
    """Return how accurate a rule is, and of how many members and others it says that they are members."""
    n_right = int((said == is_member).sum())
    return {
        "accuracy": n_right / len(said),
        "interval": wilson_interval(n_right, len(said), confidence),
        "members": float(said[is_member].mean()),
        "others": float(said[~is_member].mean()),
    }


def _cases(about: AttackedRelease) -> list[Case] | str:
    if about.control is None:
        return "Membership of the release does not apply: no holdout records were given."

    def run() -> AttackResult:
        return find_members_of_release(about.original, about.released, about.known, **about.who)

    return [Case(RELEASE_MEMBERSHIP.facts.title, run)]


RELEASE_MEMBERSHIP = NamedAttack(
    AttackFacts(
        "release-membership",
        "membership of the release",
        "looks for a released record that differs from a person in no column, in one or in two",
        "release",
        "inference",
        result="membership of a release",
        remedy="representative",
        knows="the quasi-identifiers of candidates, of a quarter of them whether they are members, and other people",
    ),
    _cases,
)
