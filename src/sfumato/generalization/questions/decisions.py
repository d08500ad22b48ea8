# SPDX-License-Identifier: Apache-2.0
"""Decisions of models over buckets: which are settled by some answers, and which attribute can still change one.

A decision takes one bucket per attribute; -1 stands for an attribute that was not asked. It is *settled* when every
way to answer the rest leads to the same class, whether or not anybody has such a record. For linear models and trees
that is worked out exactly; for sums of trees by bounds and, where these leave it open, by a search that may give up.
``model_reading`` makes decisions from fitted models, ``questionnaire`` asks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
"""The bucket of every attribute, -1 where it was not asked; or one row of them per record."""

Proof = Literal["exact", "bounded", "drawn"]
"""Settled decisions are found as soon as they are settled; perhaps later; or as far as draws tell."""

NOT_ASKED = -1
_ROUNDING = 1e-9  # of the largest possible score: differences up to this may be rounding, and settle nothing
_TIE = 1e-9  # scores of attributes closer than this are equal, so that every language asks in the same order


class Decision(Protocol):
    """What the questionnaire needs of a model."""

    @property
    def proof(self) -> Proof:
        """How settled decisions are found."""
        ...

    def decide(self, codes: Codes) -> NDArray[np.int64]:
        """Return the place of the class of complete records."""
        ...

    def settled(self, answers: Codes) -> int | None:
        """Return the place of the class that no further answer changes; None as long as one may."""
        ...

    def open_attributes(self, answers: Codes) -> list[int]:
        """Return the attributes not asked yet whose answers may still matter."""
        ...

    def next_attribute(self, answers: Codes) -> int:
        """Return the attribute to ask next; something is open."""
        ...


def first_best(scores: Sequence[float]) -> int:
    """Return the first place whose score is the least, up to rounding."""
    least = min(scores)
    return next(place for place, score in enumerate(scores) if score <= least + _TIE)


@dataclass(frozen=True, eq=False)
class LinearDecision:
    """The class with the largest sum of contributions, the first of several.

    Attributes
    ----------
    contributions : list of ndarray of float64, shape (buckets, classes)
        What each bucket of an attribute adds to the score of every class.
    intercept : ndarray of float64, shape (classes,)
    """

    contributions: list[NDArray[np.float64]]
    intercept: NDArray[np.float64]
    proof: Proof = "exact"

    @cached_property
    def tolerance(self) -> float:
        """Differences of scores up to this settle nothing."""
        largest = sum(float(np.abs(own).max()) for own in self.contributions)
        return _ROUNDING * (largest + float(np.abs(self.intercept).max()))

    @cached_property
    def ranges(self) -> NDArray[np.float64]:
        """The most that one attribute can move the difference of two classes."""
        return np.array([float((gap.max(axis=0) - gap.min(axis=0)).max()) for gap in map(_gaps, self.contributions)])

    @cached_property
    def _least(self) -> NDArray[np.float64]:
        """The least that each attribute adds to the lead of a class over another: (attributes, classes, classes)."""
        return np.stack([_gaps(own).min(axis=0) for own in self.contributions])

    @cached_property
    def order(self) -> list[int]:
        """The attributes that matter, those that can move scores most first."""
        return [int(place) for place in np.argsort(-self.ranges, kind="stable") if self.ranges[place] > 0]

    def decide(self, codes: Codes) -> NDArray[np.int64]:
        """Return the place of the class of complete records."""
        scores = np.tile(self.intercept, (len(codes), 1))
        for own, buckets in zip(self.contributions, codes.T, strict=True):
            scores += own[buckets]
        return np.asarray(scores.argmax(axis=1))

    def settled(self, answers: Codes) -> int | None:
        """Return the class that leads by more than the attributes not asked can take away."""
        known = self.intercept.copy()
        for place in np.flatnonzero(answers >= 0):
            known += self.contributions[place][answers[place]]
        lead = known[:, None] - known[None, :] + self._least[answers < 0].sum(axis=0)
        np.fill_diagonal(lead, np.inf)
        winners = np.flatnonzero((lead > self.tolerance).all(axis=1))
        return int(winners[0]) if len(winners) else None

    def open_attributes(self, answers: Codes) -> list[int]:
        """Return the attributes not asked that move scores at all, or nothing where the decision is settled."""
        if self.settled(answers) is not None:
            return []
        return [place for place in self.order if answers[place] < 0]

    def next_attribute(self, answers: Codes) -> int:
        """Return the attribute that can move the scores most."""
        return self.open_attributes(answers)[0]


def _gaps(own: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the difference that each bucket makes between every two classes: (buckets, classes, classes)."""
    gaps: NDArray[np.float64] = own[:, :, None] - own[:, None, :]
    return gaps


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaves of one or several trees, each a box of buckets.

    Attributes
    ----------
    inside : ndarray of bool, shape (leaves, buckets of all attributes)
        Which buckets of each attribute lead to the leaf.
    starts : ndarray of int64
        First bucket of each attribute, and the number of all buckets in the end.
    """

    inside: NDArray[np.bool_]
    starts: NDArray[np.int64]

    def reached(self, answers: Codes) -> NDArray[np.bool_]:
        """Return which leaves some answers leave possible."""
        asked = np.flatnonzero(answers >= 0)
        return np.asarray(self.inside[:, self.starts[asked] + answers[asked]].all(axis=1))

    def of_records(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which leaves complete records reach: (records, leaves)."""
        found = np.ones((len(codes), len(self.inside)), np.bool_)
        for start, buckets in zip(self.starts[:-1], codes.T, strict=True):
            found &= self.inside[:, start + buckets].T
        return found

    @cached_property
    def is_tested(self) -> NDArray[np.bool_]:
        """Whether a leaf depends on an attribute: (leaves, attributes)."""
        return ~np.logical_and.reduceat(self.inside, self.starts[:-1], axis=1)


@dataclass(frozen=True, eq=False)
class TreeDecision:
    """The class of the leaf.

    Attributes
    ----------
    leaves : Leaves
    classes : ndarray of int64
        Place of the class of each leaf.
    weights : ndarray of float64
        Share of people in each bucket of every attribute, one after the other.
    """

    leaves: Leaves
    classes: NDArray[np.int64]
    weights: NDArray[np.float64]
    proof: Proof = "exact"

    def decide(self, codes: Codes) -> NDArray[np.int64]:
        """Return the place of the class of complete records."""
        return np.asarray(self.classes[self.leaves.of_records(codes).argmax(axis=1)])

    def settled(self, answers: Codes) -> int | None:
        """Return the class of all leaves that are left, if it is one."""
        left = self.classes[self.leaves.reached(answers)]
        return int(left[0]) if (left == left[0]).all() else None

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """Pairs of leaves of different classes that only one attribute tells apart, and that attribute.

        Two leaves of a tree are disjoint in at least one attribute. If it is one alone, there are two records that
        differ in nothing else. On the way from any record to one of another class, answer by answer, such a border is
        crossed: so an attribute matters exactly where two leaves that are left have a border in it.
        """
        apart = np.zeros((len(self.classes),) * 2, np.int64)
        which = np.zeros_like(apart)
        for place, (start, stop) in enumerate(zip(self.leaves.starts[:-1], self.leaves.starts[1:], strict=True)):
            own = self.leaves.inside[:, start:stop].astype(np.float32)
            is_apart = own @ own.T == 0
            apart += is_apart
            which[is_apart] = place
        first, second = np.nonzero(np.triu((apart == 1) & (self.classes[:, None] != self.classes[None, :])))
        return np.column_stack([first, second, which[first, second]])

    def open_attributes(self, answers: Codes) -> list[int]:
        """Return the attributes in which two leaves that are left have a border."""
        reached = self.leaves.reached(answers)
        kept = reached[self.borders[:, 0]] & reached[self.borders[:, 1]]
        return [int(place) for place in np.unique(self.borders[kept, 2])]

    def next_attribute(self, answers: Codes) -> int:
        """Return the attribute after whose answer the class is surest: the least Gini impurity in the mean."""
        places = self.open_attributes(answers)
        chance = self._chances(answers)
        n_classes = int(self.classes.max()) + 1
        scores = []
        for place in places:
            segment = slice(self.leaves.starts[place], self.leaves.starts[place + 1])
            weight, inside = self.weights[segment], self.leaves.inside[:, segment]
            own = chance[:, None] * inside / (inside @ weight)[:, None]  # chance of a leaf, given each answer
            shares = np.stack([own[self.classes == c].sum(axis=0) for c in range(n_classes)])
            scores.append(float(weight @ (1 - (shares**2).sum(axis=0))))
        return places[first_best(scores)]

    def chances(self, answers: Codes) -> NDArray[np.float64]:
        """Return the chance of every class if the answers not given are drawn independently of each other."""
        return np.bincount(self.classes, self._chances(answers), int(self.classes.max()) + 1).astype(np.float64)

    def _chances(self, answers: Codes) -> NDArray[np.float64]:
        starts = self.leaves.starts
        chance = self.leaves.reached(answers).astype(np.float64)
        for place in np.flatnonzero(answers < 0):
            segment = slice(starts[place], starts[place + 1])
            chance *= self.leaves.inside[:, segment] @ self.weights[segment]
        return chance


@dataclass(frozen=True, eq=False)
class EnsembleDecision:
    """The class with the largest sum of what the leaves of many trees say, the first of several.

    Attributes
    ----------
    leaves : Leaves
        Of all trees, one tree after the other.
    first_leaf : ndarray of int64
        First leaf of each tree.
    values : ndarray of float64, shape (leaves, classes)
    base : ndarray of float64, shape (classes,)
    weights : ndarray of float64
        Share of people in each bucket of every attribute, one after the other.
    most_steps : int
        Of the search for an answer that changes the decision, before it is given up.
    """

    leaves: Leaves
    first_leaf: NDArray[np.int64]
    values: NDArray[np.float64]
    base: NDArray[np.float64]
    weights: NDArray[np.float64]
    most_steps: int = 200
    proof: Proof = "bounded"

    @cached_property
    def tolerance(self) -> float:
        """Differences of scores up to this settle nothing."""
        largest = np.maximum.reduceat(np.abs(self.values).max(axis=1), self.first_leaf).sum()
        return _ROUNDING * float(largest + np.abs(self.base).max())

    def decide(self, codes: Codes) -> NDArray[np.int64]:
        """Return the place of the class of complete records."""
        return np.asarray(self._scores(codes).argmax(axis=1))

    def _scores(self, codes: Codes) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.base + self.leaves.of_records(codes).astype(np.float64) @ self.values
        return scores

    def settled(self, answers: Codes) -> int | None:
        """Return the class that leads whatever leaves are reached; by bounds first, then by a search."""
        typical = self._typical(answers)
        scores = self._scores(typical)
        winners = scores.argmax(axis=1)
        if (winners != winners[0]).any():
            return None
        steps = [self.most_steps]
        return int(winners[0]) if self._leads(int(winners[0]), answers.copy(), steps) else None

    def _typical(self, answers: Codes) -> Codes:
        """Return some ways to answer the rest: each attribute at its most and at its least frequent bucket in turn."""
        starts = self.leaves.starts
        sizes = np.diff(starts)
        base = np.where(answers >= 0, answers, 0)
        for place in np.flatnonzero(answers < 0):
            base[place] = self.weights[starts[place] : starts[place + 1]].argmax()
        rows = [base]
        for place in np.flatnonzero(answers < 0):
            for bucket in range(sizes[place]):
                rows.append(base.copy())
                rows[-1][place] = bucket
        return np.stack(rows)

    def _leads(self, winner: int, answers: Codes, steps: list[int]) -> bool:
        """Return True if a class is proven to lead; attributes are tried out until bounds are tight enough."""
        steps[0] -= 1
        if steps[0] < 0:
            return False
        spread, lowest = self._lead(winner, answers)
        if lowest > self.tolerance:
            return True
        places = np.flatnonzero((answers < 0) & (spread > 0))
        if not len(places):
            return False  # another class leads, or the two are as good as equal
        place = int(places[spread[places].argmax()])
        for bucket in range(self.leaves.starts[place + 1] - self.leaves.starts[place]):
            answers[place] = bucket
            if not self._leads(winner, answers, steps):
                answers[place] = NOT_ASKED
                return False
        answers[place] = NOT_ASKED
        return True

    def _lead(self, winner: int, answers: Codes) -> tuple[NDArray[np.float64], float]:
        """Return how much each attribute takes part in what is open, and the least lead that the bounds allow."""
        reached = self.leaves.reached(answers)
        lead = self.values[:, [winner]] - self.values
        lowest = np.minimum.reduceat(np.where(reached[:, None], lead, np.inf), self.first_leaf)
        highest = np.maximum.reduceat(np.where(reached[:, None], lead, -np.inf), self.first_leaf)
        least = self.base[winner] - self.base + lowest.sum(axis=0)
        least[winner] = np.inf
        width = (highest - lowest).max(axis=1)
        n_leaves = np.diff(np.append(self.first_leaf, len(self.values)))
        tested = self.leaves.is_tested & reached[:, None]
        return (tested * np.repeat(width, n_leaves)[:, None]).sum(axis=0), float(least.min())

    def open_attributes(self, answers: Codes) -> list[int]:
        """Return the attributes not asked that a leaf which is left depends on; none where the decision is settled."""
        if self.settled(answers) is not None:
            return []
        return self._tested(answers)

    def _tested(self, answers: Codes) -> list[int]:
        spread, _ = self._lead(0, answers)
        return [int(place) for place in np.flatnonzero((answers < 0) & (spread > 0))]

    def next_attribute(self, answers: Codes) -> int:
        """Return the attribute that takes part most in what is open."""
        spread, _ = self._lead(0, answers)
        places = self._tested(answers)
        return places[first_best([-float(spread[place]) for place in places])]


@dataclass(frozen=True, eq=False)
class DrawnDecision:
    """The class that a model of unknown make predicts; settled as far as drawn answers tell.

    Attributes
    ----------
    predict : callable
        Takes complete records, returns places of classes.
    complete : callable
        Takes answers, returns drawn records that agree with them.
    n_attributes : int
    """

    predict: Callable[[Codes], NDArray[np.int64]]
    complete: Callable[[Codes], Codes]
    n_attributes: int
    proof: Proof = "drawn"

    def decide(self, codes: Codes) -> NDArray[np.int64]:
        """Return the place of the class of complete records."""
        return self.predict(codes)

    def settled(self, answers: Codes) -> int | None:
        """Return the class of all drawn records, if it is one."""
        found = self.predict(self.complete(answers))
        return int(found[0]) if (found == found[0]).all() else None

    def open_attributes(self, answers: Codes) -> list[int]:
        """Return all attributes not asked, unless all drawn records have one class."""
        if self.settled(answers) is not None:
            return []
        return [int(place) for place in np.flatnonzero(answers < 0)]

    def next_attribute(self, answers: Codes) -> int:
        """Return the attribute after whose answer the drawn classes are surest."""
        records = self.complete(answers)
        found = self.predict(records)
        places = self.open_attributes(answers)
        hot = np.eye(int(found.max()) + 1)[found]
        scores = []
        for place in places:
            sizes = np.bincount(records[:, place])
            shares = np.stack([np.bincount(records[:, place], own) for own in hot.T]) / np.maximum(sizes, 1)
            scores.append(float(sizes @ (1 - (shares**2).sum(axis=0))) / len(records))
        return places[first_best(scores)]
