# SPDX-License-Identifier: Apache-2.0
"""deFinetti's attack on a released table: learn from all groups which known values go with which sensitive value.

l-diversity bounds what one group shows by itself. All groups together show how quasi-identifiers and sensitive values
are related, and that tells people of one group apart. Called by audits; :mod:`sfumato.attack.anatomy_attacks` has the
same attack on anatomies.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.group_guessing import judge_guesses
from sfumato.attack.group_learning import Learned, learn_values
from sfumato.attack.named_attack import AttackedRelease, AttackFacts, Case, NamedAttack
from sfumato.attack.released_cells import Names
from sfumato.attack.released_secrets import (
    MOST_VALUES,
    ReleasedSecrets,
    bin_codes,
    cases_of,
    check_few_values,
    has_few_values,
    read_secrets,
)
from sfumato.attack.result import AttackResult
from sfumato.errors import ParameterError, named


def definetti_from_release(
    original: Any,
    released: Any,
    known: Names,
    secret: str | int,
    *,
    control: Any = None,
    is_aligned: bool = True,
    n_iterations: int = 30,
    max_bins: int = 16,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Guess the sensitive value of people inside their groups, by what all groups together show.

    The attacker knows everybody's quasi-identifiers in full resolution, and so who is in which group. From an even
    guess in every group, the attacker counts which known values go with which sensitive value, weighs the values of
    each group's people by that (a naive Bayes model), counts again, and so on.

    Parameters
    ----------
    original, released : frame or array
        The same people, before and after.
    known : list of str or int
        The quasi-identifiers.
    secret : str or int
        The sensitive column, released unchanged, of at most 50 values.
    control : frame or array, optional
        People outside the release. What was learned is tried on them in the groups nearest to them: what it says of
        them is knowledge about people in general.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. If not, people are placed in the nearest group.
    n_iterations : int, default=30
        Most rounds of counting and weighing.
    max_bins : int, default=16
        Bins of a known column of numbers.
    random_state : int, default=0
        For the controls only.
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of right guesses. The baseline guesses the most frequent value of the person's group. The
        control judges the guesses by values shuffled within groups; if people outside the release do better, it is
        their rate. ``by_chance`` among the details is the rate of guessing evenly among the values of each group: at
        most 1/l in an l-diverse release.

    References
    ----------
    Kifer, D. (2009). Attacks on privacy and deFinetti's theorem.

    Examples
    --------
    In every group of four, each sex has its own illness: the counts of the groups give it away.

    >>> import pyarrow as pa
    >>> sexes = ["f", "m", "m", "m"] * 10 + ["f", "f", "f", "m"] * 10
    >>> ills = ["flu" if sex == "f" else "gout" for sex in sexes]
    >>> original = pa.table({"sex": sexes, "age": [i // 4 for i in range(80)], "ill": ills})
    >>> released = original.set_column(0, "sex", pa.array(["*"] * 80))
    >>> result = definetti_from_release(original, released, ["sex", "age"], "ill")
    >>> result.rate, result.baseline
    (1.0, 0.75)
    """
    started = time.perf_counter()
    if n_iterations < 1:
        raise ParameterError(f"{named('n_iterations', n_iterations)}: expected a whole number of at least 1.")
    secrets = read_secrets(
        original, released, known, secret, control=control, is_aligned=is_aligned, random_state=random_state
    )
    check_few_values(secrets)
    groups = secrets.groups
    binned = [bin_codes(column, max_bins) for column in secrets.columns]
    learned = learn_values(groups, [own for own, _, _ in binned], [n for _, _, n in binned], n_iterations)
    outside = None
    if secrets.others is not None:
        others = secrets.others
        outside = secrets.rate_outside(_guessed_outside(secrets, learned, [codes[others] for _, codes, _ in binned]))
    details = {
        "secret": secrets.secret,
        "known": [column.name for column in secrets.columns],
        "n_iterations": learned.n_iterations,
        "n_not_weighed": learned.n_not_weighed,
        "by_chance": float((1 / groups.n_different)[groups.group].mean()),
        "n_groups": groups.n_groups,
    }
    return judge_guesses(
        "definetti on a release",
        groups,
        learned.guesses(),
        details,
        started=started,
        seed=random_state,
        outside=outside,
        names_control=True,
        confidence=confidence,
    )


def _guessed_outside(secrets: ReleasedSecrets, learned: Learned, codes: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Guess the values of people outside the release: those of their group, weighed by what was learned."""
    of_group, values, counts = secrets.groups.pairs
    score = np.full((secrets.groups.n_groups, secrets.groups.n_values), -np.inf)
    score[of_group, values] = np.log(counts)
    found = score[secrets.other_group]
    for code, chance in zip(codes, learned.chances[0], strict=True):
        found = found + chance[:, code].T
    return np.asarray(found.argmax(axis=1))


# -- as audits run it --------------------------------------------------------------------------------------------


def _cases(about: AttackedRelease) -> list[Case] | str:
    return cases_of(
        about,
        "guess {} inside groups from all groups (deFinetti)",
        definetti_from_release,
        fits=has_few_values,
        otherwise=f"deFinetti's attack does not apply: no sensitive column has 2 to {MOST_VALUES} values.",
    )


DEFINETTI = NamedAttack(
    AttackFacts(
        "definetti",
        "guess a secret inside groups from all groups (deFinetti)",
        "learns from all groups together which known values go with which secret",
        "release",
        "inference",
        result="definetti on a release",
        remedy="larger k",
    ),
    _cases,
)
