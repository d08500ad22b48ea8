# SPDX-License-Identifier: Apache-2.0
"""Check from counts whether a promised criterion holds, by formulas that share nothing with ``criteria``.

A promise is data: the name of a criterion and its settings. ``files.verified_output`` counts the groups of files that
were read back, and calls these. Distances between distributions are sums over the edges of a tree, where ``criteria``
has closed forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROUNDING = 1e-9  # far below what one record changes, far above float error


@dataclass(frozen=True, eq=False)
class Promise:
    """A criterion that a release must meet, as data.

    Attributes
    ----------
    name : str
        As in a policy.
    column : str or None
        The sensitive column whose values are counted by group; None: records are counted.
    settings : mapping
        The parameters of the criterion.
    sentence : str
        The requirement in words.
    order : sequence or None
        For ordered distances: all values from lowest to highest; None: their own order.
    hierarchy : Hierarchy or None
        For hierarchical distances.
    otherwise : callable or None
        The criterion's own test on counts, for a criterion that has no second formula here. It takes the values, the
        counts of the groups and those of all records, and returns which groups are safe.
    """

    name: str
    column: str | None
    settings: Mapping[str, Any]
    sentence: str
    order: Sequence[Any] | None = None
    hierarchy: Any = None
    otherwise: Callable[[Sequence[Any], Counts, Counts], NDArray[np.bool_]] | None = None

    @property
    def leaves_out_missing(self) -> bool:
        """True if records without a sensitive value do not count."""
        return self.settings.get("missing") == "suppress"


@dataclass(frozen=True)
class PromiseCount:
    """The counts for a promise.

    Attributes
    ----------
    name : str
    column : str or None
    sentence : str
    n_groups, n_failing : int
    """

    name: str
    column: str | None
    sentence: str
    n_groups: int
    n_failing: int

    @property
    def holds(self) -> bool:
        """True if every group meets it."""
        return self.n_failing == 0

    @property
    def says(self) -> str:
        """One sentence with the verdict."""
        about = "" if self.column is None else f" for {self.column!r}"
        if self.holds:
            return f"{self.name} holds{about}: {self.sentence}."
        return f"{self.name} does not hold{about}: expected that {self.sentence}."


@dataclass(frozen=True, eq=False)
class _Scene:
    """One block of groups: how often each value occurs in them and in all records."""

    counts: Counts  # groups with at least one counted record
    overall: Counts
    settings: Mapping[str, Any]
    values: Sequence[Any]  # None: missing
    order: Sequence[Any] | None
    hierarchy: Any

    @property
    def shares(self) -> Floats:
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True), np.float64)

    @property
    def usual(self) -> Floats:
        return np.asarray(self.overall / self.overall.sum(), np.float64)


def count_promise(promise: Promise, values: Sequence[Any], overall: Counts, blocks: Iterable[Counts]) -> PromiseCount:
    """Count the groups that break a promise on a sensitive column.

    Parameters
    ----------
    promise : Promise
    values : sequence
        The value that each column of the counts is for; None, the last, for missing.
    overall : ndarray of int64, shape (values,)
        How often each value occurs in all records.
    blocks : iterable of ndarray of int64, shape (groups, values)
        The same for every group, some groups after the others.

    Examples
    --------
    >>> promise = Promise("l-diversity", "illness", {"l": 2, "kind": "distinct"}, "every group has 2 values")
    >>> groups = np.array([[1, 1], [2, 0]])
    >>> count_promise(promise, ["a", "b"], groups.sum(axis=0), [groups]).n_failing
    1
    """
    n_groups = n_failing = 0
    seen = slice(None)
    if promise.leaves_out_missing and values and values[-1] is None:
        values, overall, seen = values[:-1], overall[:-1], slice(-1)
    for block in blocks:
        counts = block[:, seen]
        n_groups += len(counts)
        n_failing += int((~_are_safe(promise, values, overall, counts)).sum())
    return PromiseCount(promise.name, promise.column, promise.sentence, n_groups, n_failing)


def count_records_promise(promise: Promise, sizes: Counts) -> PromiseCount:
    """Count the groups that break a promise on numbers of records."""
    if promise.name == "k-anonymity":
        is_safe = sizes >= promise.settings["k"]
    else:
        assert promise.otherwise is not None, f"no second formula of {promise.name}, and no first one either"
        is_safe = promise.otherwise([None], sizes[:, None], sizes.sum(keepdims=True))
    n_failing = int((~is_safe).sum())
    return PromiseCount(promise.name, None, promise.sentence, len(sizes), n_failing)


def _are_safe(promise: Promise, values: Sequence[Any], overall: Counts, counts: Counts) -> NDArray[np.bool_]:
    judge = _JUDGES.get(promise.name)
    if judge is None:
        assert promise.otherwise is not None, f"no second formula of {promise.name}, and no first one either"
        return promise.otherwise(values, counts, overall)
    sizes = counts.sum(axis=1)
    # A group without a counted record tells no value; only a number of records can be too small.
    safe = np.full(len(counts), promise.name != "alpha-k-anonymity")
    counted = sizes > 0
    if counted.any():
        scene = _Scene(counts[counted], overall, promise.settings, values, promise.order, promise.hierarchy)
        safe[counted] = judge(scene)
    return safe


# -- the formulas ------------------------------------------------------------------------------------------------


def _l_diversity(scene: _Scene) -> NDArray[np.bool_]:
    level, kind = scene.settings["l"], scene.settings.get("kind", "distinct")
    if kind == "distinct":
        return np.asarray(np.count_nonzero(scene.counts, axis=1) >= level, np.bool_)
    if kind == "entropy":
        # sum of n log n = N log N - N * entropy
        sizes = scene.counts.sum(axis=1)
        own = (scene.counts * np.log(np.maximum(scene.counts, 1))).sum(axis=1)
        return np.asarray(np.log(sizes) - own / sizes >= np.log(level) - _ROUNDING, np.bool_)
    rising = np.sort(scene.counts, axis=1)
    n_rare = max(0, rising.shape[1] - int(level) + 1)
    return np.asarray(rising[:, -1] < scene.settings["c"] * rising[:, :n_rare].sum(axis=1), np.bool_)


def _alpha_k(scene: _Scene) -> NDArray[np.bool_]:
    is_large = scene.counts.sum(axis=1) >= scene.settings["k"]
    return np.asarray(is_large & (scene.shares.max(axis=1) <= scene.settings["alpha"] + _ROUNDING), np.bool_)


def _beta_likeness(scene: _Scene) -> NDArray[np.bool_]:
    usual = scene.usual
    allowed = np.full(len(usual), float(scene.settings["beta"]))
    if scene.settings.get("kind", "basic") == "enhanced":
        with np.errstate(divide="ignore"):
            allowed = np.minimum(allowed, -np.log(usual))
    # q <= p (1 + allowed): no division, so values without records need no special case
    bound = np.where(usual > 0, usual * (1 + allowed), 0.0)
    return np.asarray((scene.shares <= bound + _ROUNDING * np.maximum(usual, _ROUNDING)).all(axis=1), np.bool_)


def _delta_disclosure(scene: _Scene) -> NDArray[np.bool_]:
    factor = np.exp(scene.settings["delta"])
    usual, shares = scene.usual, scene.shares
    is_bounded = (shares < usual * factor) & (shares * factor > usual)
    may_lack = (shares == 0) & ((usual == 0) | (scene.settings.get("absent", "fails") == "ignored"))
    return np.asarray((is_bounded | may_lack).all(axis=1), np.bool_)


def _t_closeness(scene: _Scene) -> NDArray[np.bool_]:
    surplus = scene.shares - scene.usual
    distance = {"equal": _along_a_star, "ordered": _along_a_path, "hierarchical": _along_a_tree}[
        scene.settings.get("distance", "equal")
    ](scene, surplus)
    return np.asarray(distance <= scene.settings["t"] + _ROUNDING, np.bool_)


# What must be carried over an edge is the surplus of everything on one side of it.


def _along_a_star(scene: _Scene, surplus: Floats) -> Floats:
    """Every value hangs on one node by an edge of a half."""
    return np.asarray(0.5 * np.abs(surplus).sum(axis=1), np.float64)


def _along_a_path(scene: _Scene, surplus: Floats) -> Floats:
    """Values lie on a path of length 1; missing hangs on its middle by an edge of a half."""
    codes_of_values = [code for code, value in enumerate(scene.values) if value is not None]
    occurs = [code for code in codes_of_values if scene.overall[code] > 0]
    if scene.order is None:
        ranked = sorted(occurs, key=lambda code: scene.values[code])
        places = {code: place / max(1, len(ranked) - 1) for place, code in enumerate(ranked)}
    else:
        rank = {value: place / max(1, len(scene.order) - 1) for place, value in enumerate(scene.order)}
        places = {code: rank[scene.values[code]] for code in occurs}
    stops = [(place, [code]) for code, place in places.items()]
    missing = [code for code, value in enumerate(scene.values) if value is None]
    stops.append((0.5, missing))
    stops.sort(key=lambda stop: stop[0])
    total = np.zeros(len(surplus))
    carried = np.zeros(len(surplus))
    for (here, codes), (there, _) in pairwise(stops):
        carried += surplus[:, codes].sum(axis=1)
        total += (there - here) * np.abs(carried)
    return np.asarray(total + 0.5 * np.abs(surplus[:, missing].sum(axis=1)), np.float64)


def _along_a_tree(scene: _Scene, surplus: Floats) -> Floats:
    """Values are leaves of equal depth a half below the root; missing hangs on the root itself."""
    known = [code for code, value in enumerate(scene.values) if value is not None]
    places = scene.hierarchy.find(scene.values[code] for code in known)
    rows = [scene.hierarchy.rows[place] for place in places]
    everywhere = scene.hierarchy.rows
    top = next(level for level in range(len(everywhere[0])) if len({row[level] for row in everywhere}) == 1)
    missing = [code for code, value in enumerate(scene.values) if value is None]
    total = 0.5 * np.abs(surplus[:, missing].sum(axis=1))
    for level in range(top):
        number = {label: place for place, label in enumerate(dict.fromkeys(row[level] for row in rows))}
        below = np.zeros((len(number), len(surplus)))
        np.add.at(below, [number[row[level]] for row in rows], surplus[:, known].T)
        total += 0.5 / top * np.abs(below).sum(axis=0)
    return np.asarray(total, np.float64)


_JUDGES: dict[str, Callable[[_Scene], NDArray[np.bool_]]] = {
    "l-diversity": _l_diversity,
    "t-closeness": _t_closeness,
    "alpha-k-anonymity": _alpha_k,
    "beta-likeness": _beta_likeness,
    "delta-disclosure": _delta_disclosure,
}
