# SPDX-License-Identifier: Apache-2.0
"""Skewness attack: a group in which a sensitive value is far more frequent than in the table exposes all its people.

A group with as many ill as healthy people is 2-diverse, and says of everybody in it that they are ill with a chance of
one half. Where one in a hundred is ill, that is fifty times what was known before. Called by audits.

References
----------
Li, N., Li, T., Venkatasubramanian, S. (2007). t-closeness: privacy beyond k-anonymity and l-diversity.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato.attack.group_guessing import SensitiveGroups, clustered_interval, higher_control
from sfumato.attack.named_attack import AttackedRelease, AttackFacts, Case, NamedAttack
from sfumato.attack.released_cells import Names
from sfumato.attack.released_secrets import MOST_VALUES, cases_of, check_few_values, has_few_values, read_secrets
from sfumato.attack.result import AttackResult, Hits, judge
from sfumato.errors import ParameterError, named

_BY_CHANCE = 0.01  # groups that chance alone fills as much are not taken for skewed, but for about one in a hundred
_N_SHUFFLES = 5
_NOBODY = -1


def guess_from_skewed_groups(
    original: Any,
    released: Any,
    known: Names,
    secret: str | int,
    *,
    min_ratio: float = 2.0,
    control: Any = None,
    is_aligned: bool = True,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Guess that people of a skewed group have the value that is raised in it.

    A group is skewed if a value is at least `min_ratio` times as frequent in it as in the table, and that is too much
    for chance (below 1%, by a binomial test). Of several such values the attacker names the most frequent one. People
    of other groups are not guessed about.

    Parameters
    ----------
    original, released : frame or array
        The same people, before and after.
    known : list of str or int
        The quasi-identifiers.
    secret : str or int
        The sensitive column, released unchanged, of at most 50 values.
    min_ratio : float, default=2.0
        How many times as frequent as in the table a value must be, above 1.
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
        `rate` is the share of right guesses among the people guessed about. The baseline is the share of the guessed
        values in the whole table: what is known of these people without the groups. The control is the same attack
        after the values were shuffled over the table, which leaves what chance does to groups of these sizes; if people
        outside the release do better, it is their rate. ``share_guessed`` among the details is the share of people in
        skewed groups. Without a skewed group all rates are 0.

    Examples
    --------
    Every twentieth is ill, but half of one group.

    >>> import pyarrow as pa
    >>> ages, ills = [30] * 180 + [70] * 20, ["no"] * 190 + ["yes"] * 10
    >>> table = pa.table({"age": ages, "ill": ills})
    >>> result = guess_from_skewed_groups(table, table, ["age"], "ill")
    >>> result.rate, round(result.baseline, 3), result.details["share_guessed"]
    (0.5, 0.05, 0.1)
    """
    started = time.perf_counter()
    if not min_ratio > 1:
        raise ParameterError(f"{named('min_ratio', min_ratio)}: expected a number above 1.")
    secrets = read_secrets(
        original, released, known, secret, control=control, is_aligned=is_aligned, random_state=random_state
    )
    check_few_values(secrets)
    groups = secrets.groups
    raised = _raised(groups.pairs, groups.slot_sizes, groups.n_values, min_ratio)
    guesses = raised[groups.group]
    is_guessed = guesses != _NOBODY
    is_right = (guesses == groups.truth)[is_guessed]
    share_of = np.bincount(groups.values, minlength=groups.n_values) / len(groups.values)
    shuffled = _rate_of_shuffled(groups, min_ratio, np.random.default_rng([random_state, 17]))
    outside = None
    if secrets.others is not None:
        of_others = raised[secrets.other_group]
        if (of_others != _NOBODY).any():
            outside = float((of_others == secrets.other_truth)[of_others != _NOBODY].mean())
    rate = float(is_right.mean()) if len(is_right) else 0.0
    hits = Hits(
        np.flatnonzero(is_guessed), is_right, share_of[guesses[is_guessed]], groups.truth[is_guessed],
        groups.group[is_guessed],
    )  # fmt: skip
    baseline = float(hits.baseline.mean()) if len(is_right) else 0.0
    details = {
        "secret": secrets.secret,
        "known": [column.name for column in secrets.columns],
        "min_ratio": float(min_ratio),
        "n_groups": groups.n_groups,
        "n_skewed_groups": int((raised != _NOBODY).sum()),
        "n_guessed": len(is_right),
        "share_guessed": float(is_guessed.mean()),
    }
    control_rate, details = higher_control(shuffled, outside, details) if len(is_right) else (None, details)
    interval = clustered_interval(is_right, groups.group[is_guessed], confidence)
    verdict = judge(rate, interval, baseline, control=control_rate)
    seconds = time.perf_counter() - started
    return AttackResult(
        "skewness", rate, interval, baseline, control_rate, verdict, seconds, random_state, details, hits
    )


def _raised(
    pairs: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    sizes: NDArray[np.int64],
    n_values: int,
    min_ratio: float,
) -> NDArray[np.int64]:
    """Return, for each group, the most frequent of the values that it raises over the table; -1: none."""
    of_group, values, counts = pairs
    share_of = np.bincount(values, counts, minlength=n_values) / counts.sum()
    size = sizes[of_group]
    is_raised = counts >= min_ratio * share_of[values] * size - 1e-9
    is_raised &= binom.sf(counts - 1, size, share_of[values]) < _BY_CHANCE
    order = np.lexsort((-values, counts, of_group))
    order = order[is_raised[order]]
    found = np.full(len(sizes), _NOBODY)
    found[of_group[order]] = values[order]  # of a group, the last is the most frequent
    return found


def _rate_of_shuffled(groups: SensitiveGroups, min_ratio: float, generator: np.random.Generator) -> float | None:
    """Return the rate of the attack where values belong to any group; None if no group is skewed then."""
    n_right = n_guessed = 0
    for _ in range(_N_SHUFFLES):
        values = generator.permutation(groups.values)
        other = SensitiveGroups(groups.slot_group, groups.slot_group, values, values, groups.n_groups)
        guesses = _raised(other.pairs, groups.slot_sizes, other.n_values, min_ratio)[groups.slot_group]
        n_guessed += int((guesses != _NOBODY).sum())
        n_right += int((guesses == values).sum())
    return n_right / n_guessed if n_guessed else None


# -- as audits run it --------------------------------------------------------------------------------------------


def _cases(about: AttackedRelease) -> list[Case] | str:
    return cases_of(
        about,
        "guess {} in groups where a value is raised (skewness)",
        guess_from_skewed_groups,
        fits=has_few_values,
        otherwise=f"The skewness attack does not apply: no sensitive column has 2 to {MOST_VALUES} values.",
    )


SKEWNESS = NamedAttack(
    AttackFacts(
        "skewness",
        "guess a secret in groups where a value is raised (skewness)",
        "says of people in a group that they have the value that is more frequent there than in the table",
        "release",
        "inference",
        result="skewness",
        remedy="diversity",
    ),
    _cases,
)
