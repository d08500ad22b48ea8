# SPDX-License-Identifier: Apache-2.0
"""Minimality attack on a released table: a large group was kept together because a cut would have broken l-diversity.

A tree cuts a group as long as both sides keep k records and l sensitive values. Where a cut leaves k records on both
sides and was not made, one side must have had fewer than l values. Called by audits;
:mod:`sfumato.attack.anatomy_attacks` has the attack on anatomies.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from sfumato.attack.group_guessing import SensitiveGroups, judge_guesses
from sfumato.attack.named_attack import AttackedRelease, AttackFacts, Case, NamedAttack
from sfumato.attack.released_cells import Names, Ranges
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

_MOST_SETS = 2_000  # sets of l - 1 values that may fill a side; of more, the likeliest values alone
_UNSURPRISING = 0.5  # a cut that is this likely to fail by chance says little
_MAX_BINS = 16  # of a column of numbers
_N_ROUNDS = 10  # of weighing the cuts of all groups by each other
_FEWEST_MINIMAL = 0.5  # share of the large groups that must agree with the assumption


def minimality_from_release(
    original: Any,
    released: Any,
    known: Names,
    secret: str | int,
    *,
    k: int | None = None,
    l: int | None = None,  # noqa: E741
    control: Any = None,
    is_aligned: bool = True,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Guess sensitive values, assuming that a tree left a group whole only because no cut was l-diverse.

    The attacker knows everybody's quasi-identifiers in full resolution. In each group, every cut of a column of
    numbers, or of a category with two values, that leaves k people on both sides must have left fewer than l different
    values on one of them. Of these cuts the most surprising one is taken. The attacker weighs which side and which
    values that were, learns from all groups which side of a column goes with which value, and guesses the likeliest
    value of either side.

    Parameters
    ----------
    original, released : frame or array
        The same people, before and after.
    known : list of str or int
        The quasi-identifiers.
    secret : str or int
        The sensitive column, released unchanged, of at most 50 values.
    k, l : int, optional
        What the release was made for; None: the smallest group, and the fewest different values of a group.
    control : frame or array, optional
        People outside the release: the guesses of their nearest group and side are tried on them.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. If not, people are placed in the nearest group.
    random_state : int, default=0
        For the controls only.
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of right guesses. The baseline guesses the most frequent value of the person's group. The
        control judges the guesses by values shuffled within groups; if people outside the release do better, it is
        their rate. ``n_telling_groups`` among the details are the groups whose guesses follow from a cut, and
        ``n_not_minimal`` those with a cut that would have been l-diverse whatever its sides were.

    Notes
    -----
    The attacker tests the assumption on the release: where more than half of the groups that could be cut have a cut
    that nothing forbids, the tree was not minimal, and all guesses are the most frequent value. One cut per group is
    used, and l counts different values (entropy and recursive l-diversity forbid more cuts): a stronger attacker puts
    all cuts together.

    References
    ----------
    Wong, R., Fu, A., Wang, K., Pei, J. (2007). Minimality attack in privacy preserving data publishing.

    Examples
    --------
    Groups of two men, who share an illness, and of four women, who do not. A cut by sex would have been two groups.

    >>> import pyarrow as pa
    >>> sexes, ills = ["m", "m", "f", "f", "f", "f"] * 20, ["hiv", "hiv", "flu", "cold", "gout", "acne"] * 20
    >>> original = pa.table({"sex": sexes, "town": [i // 6 for i in range(120)], "ill": ills})
    >>> released = original.set_column(0, "sex", pa.array(["*"] * 120))
    >>> result = minimality_from_release(original, released, ["sex", "town"], "ill", k=2, l=2)
    >>> result.rate, round(result.baseline, 3)
    (0.5, 0.333)
    """
    started = time.perf_counter()
    for name, given in {"k": k, "l": l}.items():
        if given is not None and given < 1:
            raise ParameterError(f"{named(name, given)}: expected a whole number of at least 1, or None.")
    secrets = read_secrets(
        original, released, known, secret, control=control, is_aligned=is_aligned, random_state=random_state
    )
    check_few_values(secrets)
    groups = secrets.groups
    k = int(groups.slot_sizes.min()) if k is None else k
    l = int(groups.n_different.min()) if l is None else l  # noqa: E741
    guesses, other_guesses = groups.most_frequent[groups.group], groups.most_frequent[secrets.other_group]
    found = _reason(secrets, k, l)
    n_not_minimal = sum(cut is None for cut in found)
    is_minimal = len(found) > 0 and n_not_minimal <= (1 - _FEWEST_MINIMAL) * len(found)
    cuts = [cut for cut in found if cut is not None] if is_minimal else []
    learned = _learn_cuts(secrets, cuts) if cuts else []
    for cut, sides in zip(cuts, learned, strict=True):
        left, right = cut.values[sides.argmax(axis=1)]
        members = groups.members_of(cut.group)
        guesses[members] = np.where(cut.is_left(secrets.columns[cut.column].codes[members]), left, right)
        if secrets.others is not None:
            placed = np.flatnonzero(secrets.other_group == cut.group)
            codes = secrets.columns[cut.column].other_codes[secrets.others[placed]]
            other_guesses[placed] = np.where(cut.is_left(codes), left, right)
    details = {
        "secret": secrets.secret,
        "known": [column.name for column in secrets.columns],
        "k": k,
        "l": l,
        "n_groups": groups.n_groups,
        "n_groups_with_cuts": len(found),
        "n_not_minimal": n_not_minimal,
        "n_telling_groups": sum(cut.chance <= _UNSURPRISING for cut in cuts),
    }
    return judge_guesses(
        "minimality on a release",
        groups,
        guesses,
        details,
        started=started,
        seed=random_state,
        outside=secrets.rate_outside(other_guesses),
        names_control=True,
        confidence=confidence,
    )


# -- the reasoning -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Cut:
    """A cut that was not made, and the ways in which it can have failed.

    Attributes
    ----------
    group, column : int
    last_left : int
        Codes of the column up to this one lie left.
    values : ndarray of int64
        The values of the group.
    chance : float
        How likely the cut fails where values belong to any person of the group.
    weights : ndarray of float64, shape (n_ways,)
        Logarithm of how many orders of the values fail in each way.
    shares : ndarray of float64, shape (n_ways, 2, n_values)
        How many people of the left and of the right side have each value then, on average.
    """

    group: int
    column: int
    last_left: int
    values: NDArray[np.int64]
    chance: float
    weights: NDArray[np.float64]
    shares: NDArray[np.float64]

    def is_left(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which people lie left."""
        return np.asarray(codes <= self.last_left)


def _reason(secrets: ReleasedSecrets, k: int, l: int) -> list[_Cut | None]:  # noqa: E741
    """Return, for every group that could be cut, its most surprising cut; None where nothing forbids a cut."""
    groups, found = secrets.groups, []
    for group in np.flatnonzero((groups.sizes >= 2 * k) & (groups.slot_sizes > 0)).tolist():
        if cuts := _cuts_of(secrets, group, k):
            found.append(_most_surprising(groups, group, cuts, l))
    return found


def _cuts_of(secrets: ReleasedSecrets, group: int, k: int) -> dict[int, tuple[int, int]]:
    """Return the cuts of a group that leave k people on both sides, one for each number of people on the left.

    A cut is the place of its column, and the last code on the left. Of columns with unordered categories only those
    with two values in the group: which of them a tree would put on one side is not known otherwise.
    """
    members = secrets.groups.members_of(group)
    cuts: dict[int, tuple[int, int]] = {}
    for number, column in enumerate(secrets.columns):
        values, counts = np.unique(column.codes[members], return_counts=True)
        if len(values) < 2 or (len(values) > 2 and not isinstance(column.cells, Ranges)):
            continue
        lefts = np.cumsum(counts)[:-1]
        for place in np.flatnonzero((lefts >= k) & (len(members) - lefts >= k)).tolist():
            cuts.setdefault(int(lefts[place]), (number, int(values[place])))
    return cuts


def _most_surprising(
    groups: SensitiveGroups,
    group: int,
    cuts: dict[int, tuple[int, int]],
    l: int,  # noqa: E741
) -> _Cut | None:
    """Return the cut that is least likely to have failed by chance; None if one cannot have failed."""
    values, counts = np.unique(groups.values_of(group), return_counts=True)
    size = int(groups.sizes[group])
    scaled = counts * size / counts.sum()
    best: _Cut | None = None
    for n_left in sorted(cuts, key=lambda left: (abs(size - 2 * left), left)):  # the most even one on ties
        weights, shares = _ways_to_fail(scaled, n_left, size - n_left, l)
        if not len(weights):
            return None
        chance = float(np.exp(weights - _log_choose(float(size), n_left)).sum())
        if best is None or chance < best.chance:
            best = _Cut(group, *cuts[n_left], values, chance, weights, shares)
    return best


def _ways_to_fail(
    counts: NDArray[np.float64],
    n_left: int,
    n_right: int,
    l: int,  # noqa: E741
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ways in which a cut leaves fewer than l values on one side: `weights` and `shares` of a `_Cut`.

    A side with only the values of a set has as many orders as there are ways to choose its people's values from those.
    All sets of l - 1 values are weighed; orders with fewer values lie in several sets and are counted in each.
    """
    weights, shares = [], []
    for chosen in _sets(counts, l - 1):
        own = counts[chosen].sum()
        for side, n in enumerate((n_left, n_right)):
            if own < n - 1e-9:
                continue
            inside = np.zeros(len(counts))
            inside[chosen] = counts[chosen] * (n / own)
            weights.append(_log_choose(own, n))
            shares.append([inside, counts - inside][:: 1 if side == 0 else -1])
    return np.array(weights), np.array(shares).reshape(-1, 2, len(counts))


def _sets(counts: NDArray[np.float64], size: int) -> list[list[int]]:
    """Return the sets of values that may fill a side, from the most frequent values where there are too many sets."""
    if size < 1:
        return []
    order = np.argsort(-counts, kind="stable").tolist()
    n_values = len(order)
    while n_values > size and math.comb(n_values, size) > _MOST_SETS:
        n_values -= 1
    return [list(chosen) for chosen in itertools.combinations(order[:n_values], min(size, n_values))]


def _log_choose(n: float, k: int) -> float:
    n = max(n, float(k))
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _learn_cuts(secrets: ReleasedSecrets, cuts: list[_Cut]) -> list[NDArray[np.float64]]:
    """Return, for every cut, how many people of either side have each value, weighed over the ways to fail.

    Alone, a cut cannot tell which of two frequent values fills a side. The same side of other groups can: from the
    ways as they are weighed, the attacker counts which codes of a column go with which value, and weighs again. Of two
    beginnings, all orders or all ways to fail equally likely, the one is kept whose end explains the groups better.
    """
    binned = [bin_codes(column, _MAX_BINS) for column in secrets.columns]
    n_codes = [n for _, _, n in binned]
    seen = [_codes_by_side(secrets, cut, binned[cut.column][0], n_codes[cut.column]) for cut in cuts]
    ends = []
    for sides in ([_weighed(cut, cut.weights) for cut in cuts], [_weighed(cut, 0 * cut.weights) for cut in cuts]):
        explained = 0.0
        for _ in range(_N_ROUNDS):
            chances = _chances(cuts, seen, sides, secrets.groups.n_values, n_codes)
            weights = [cut.weights + _fit(cut, codes, chances) for cut, codes in zip(cuts, seen, strict=True)]
            sides = [_weighed(cut, weight) for cut, weight in zip(cuts, weights, strict=True)]
            explained = sum(float(logsumexp(weight)) for weight in weights)
        ends.append((explained, sides))
    return max(ends, key=lambda end: end[0])[1]


def _chances(
    cuts: list[_Cut],
    seen: list[NDArray[np.float64]],
    sides: list[NDArray[np.float64]],
    n_values: int,
    n_codes: list[int],
) -> list[NDArray[np.float64]]:
    """Return, per column, how likely each code is for each value."""
    counts = [np.full((n_values, n), 1 / n) for n in n_codes]  # no code is impossible
    for cut, codes, side in zip(cuts, seen, sides, strict=True):
        counts[cut.column][cut.values] += (side / codes.sum(axis=1)[:, None]).T @ codes
    return [table / table.sum(axis=1, keepdims=True) for table in counts]


def _codes_by_side(secrets: ReleasedSecrets, cut: _Cut, codes: NDArray[np.int64], n_codes: int) -> NDArray[np.float64]:
    """Count the codes of the people on either side of a cut in its column, shape (2, n_codes)."""
    members = secrets.groups.members_of(cut.group)
    is_right = ~cut.is_left(secrets.columns[cut.column].codes[members])
    return np.bincount(is_right * n_codes + codes[members], minlength=2 * n_codes).reshape(2, -1).astype(np.float64)


def _weighed(cut: _Cut, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    weight = np.exp(weights - weights.max())
    return np.asarray(np.tensordot(weight / weight.sum(), cut.shares, 1))


def _fit(cut: _Cut, codes: NDArray[np.float64], chances: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the logarithm of how likely the codes of both sides are in every way to fail."""
    likely = cut.shares / codes.sum(axis=1)[None, :, None] @ chances[cut.column][cut.values]  # ways, sides, codes
    return np.asarray((codes * np.log(np.maximum(likely, 1e-300))).sum(axis=(1, 2)))


# -- as audits run it --------------------------------------------------------------------------------------------


def _cases(about: AttackedRelease) -> list[Case] | str:
    return cases_of(
        about,
        "guess {} from cuts that were not made (minimality)",
        minimality_from_release,
        fits=has_few_values,
        otherwise=f"The minimality attack does not apply: no sensitive column has 2 to {MOST_VALUES} values.",
    )


MINIMALITY = NamedAttack(
    AttackFacts(
        "minimality",
        "guess a secret from cuts that were not made (minimality)",
        "concludes from a group that was not divided that dividing it would have broken l-diversity",
        "release",
        "inference",
        result="minimality on a release",
        remedy="larger k",
        knows="the quasi-identifiers of people, in full resolution, and how the groups were formed",
    ),
    _cases,
)
