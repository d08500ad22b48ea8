# SPDX-License-Identifier: Apache-2.0
"""Protections side by side: the same split, the same model, the same attacks, one table of utility against risk.

`compare_protections` takes unfitted estimators, one per protection (``protections`` makes the usual ones), fits each on
the same half of the records, measures it on the other half, attacks it, and repeats both numbers for subgroups:
protection may cost a minority more, and cover it less.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.metrics import r2_score

from sfumato.attack.attribute import attack_attribute
from sfumato.attack.membership import NEED_SHADOWS, MembershipResult, attack_membership
from sfumato.attack.membership_metrics import area_under_curve
from sfumato.attack.result import AttackResult, bootstrap_interval, wilson_interval
from sfumato.attack.shadows import with_seeds
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import read_table

logger = logging.getLogger(__name__)
_SMALLEST_SUBGROUP = 20  # of members and of others; smaller ones are put together
_OTHERS, _NOT_SHOWN = "others", ""
_TAG = 105


@dataclass(frozen=True)
class SubgroupRow:
    """One protection for one subgroup.

    Attributes
    ----------
    column, group : str
        The column, and the value that its records share; ``"others"`` for values too rare to be named.
    n_records : int
        Test records.
    utility : float
    utility_interval : (float, float)
    membership_auc : float
        Of the strongest membership attack, among this subgroup's members and others.
    membership_auc_interval : (float, float)
    """

    column: str
    group: str
    n_records: int
    utility: float
    utility_interval: tuple[float, float]
    membership_auc: float
    membership_auc_interval: tuple[float, float]


@dataclass(frozen=True)
class ComparisonRow:
    """What one protection costs, and what it leaves to attackers.

    Attributes
    ----------
    name : str
    train_utility, utility : float
        Accuracy, or R2 of a regressor, on the training and on the test records.
    utility_interval : (float, float)
        Of `utility`.
    membership : mapping of str to MembershipResult
    attribute : mapping of str to AttackResult
        Empty unless an attribute was named.
    subgroups : tuple of SubgroupRow
    seconds : float
        Of the training.
    """

    name: str
    train_utility: float
    utility: float
    utility_interval: tuple[float, float]
    membership: Mapping[str, MembershipResult]
    attribute: Mapping[str, AttackResult] = field(default_factory=dict)
    subgroups: tuple[SubgroupRow, ...] = ()
    seconds: float = 0.0

    @property
    def strongest(self) -> MembershipResult:
        """The membership attack with the largest AUC."""
        return max(self.membership.values(), key=lambda result: float(result.details["auc"]))


@dataclass(frozen=True)
class Comparison:
    """All protections on the same split under the same attacks.

    Attributes
    ----------
    rows : tuple of ComparisonRow
    metric : {"accuracy", "R2"}
    without_model : float
        Utility of always answering the most frequent class, or the mean.
    n_train, n_test, seed : int
    """

    rows: tuple[ComparisonRow, ...]
    metric: str
    without_model: float
    n_train: int
    n_test: int
    seed: int

    def frontier(self) -> tuple[str, ...]:
        """Return the protections that no other one beats in both utility and risk (AUC of the strongest attack)."""
        points = [(row.utility, -float(row.strongest.details["auc"])) for row in self.rows]
        return tuple(
            row.name
            for row, (gain, calm) in zip(self.rows, points, strict=True)
            if not any(g >= gain and c >= calm and (g, c) != (gain, calm) for g, c in points)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, without scores of single records."""
        rows = []
        for row in self.rows:
            plain = {name: getattr(row, name) for name in ("name", "train_utility", "utility", "seconds")}
            plain["utility_interval"] = list(row.utility_interval)
            plain["strongest"] = row.strongest.attack
            plain["membership"] = {name: result.to_dict() for name, result in row.membership.items()}
            plain["attribute"] = {name: result.to_dict() for name, result in row.attribute.items()}
            plain["subgroups"] = [
                {**vars(part), **{name: list(vars(part)[name]) for name in vars(part) if name.endswith("interval")}}
                for part in row.subgroups
            ]
            rows.append(plain)
        shared = {name: getattr(self, name) for name in ("metric", "without_model", "n_train", "n_test", "seed")}
        return {**shared, "frontier": list(self.frontier()), "rows": rows}

    def to_markdown(self, *, subgroups: bool = False) -> str:
        """Return the table of utility against risk, and that of the subgroups when asked for."""
        attribute = any(row.attribute for row in self.rows)
        heads = ["protection", f"train {self.metric}", f"test {self.metric}", "attack", "attack accuracy", "AUC"]
        heads += ["true positives at 1%", "at 0.1%", *(["attribute: gain over no model"] if attribute else [])]
        lines = [_line(heads), _line(["---"] * len(heads))]
        for row in self.rows:
            attack = row.strongest
            low = attack.details["true_positives_at"]
            cells = [row.name, f"{row.train_utility:.3f}", _with_interval(row.utility, row.utility_interval)]
            cells += [attack.attack, _with_interval(attack.rate, attack.interval)]
            cells += [_with_interval(attack.details["auc"], attack.details["auc_interval"])]
            cells += [_with_interval(low[rate]["rate"], low[rate]["interval"]) for rate in ("0.01", "0.001")]
            if attribute:
                best = max((r.details["advantage"] for r in row.attribute.values()), default=None)
                cells.append("" if best is None else f"{best:+.3f}")
            lines.append(_line(cells))
        lines.append(f"\n{self.metric} without a model: {self.without_model:.3f}")
        if subgroups:
            heads = ["protection", "column", "subgroup", "records", f"test {self.metric}", "AUC of the attack"]
            lines += ["", _line(heads), _line(["---"] * len(heads))]
            for row in self.rows:
                for part in row.subgroups:
                    cells = [row.name, part.column, part.group, str(part.n_records)]
                    cells += [_with_interval(part.utility, part.utility_interval)]
                    cells += [_with_interval(part.membership_auc, part.membership_auc_interval)]
                    lines.append(_line(cells))
        return "\n".join(lines)


def compare_protections(
    X: Any,
    y: ArrayLike,
    protections: Mapping[str, Any],
    *,
    attacks: Sequence[str] = ("threshold", "random_forest"),
    n_shadows: int = 16,
    subgroups: str | int | Sequence[str | int] = (),
    attribute: str | int | None = None,
    train_fraction: float = 0.5,
    confidence: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Fit, measure and attack every protection on the same split.

    Parameters
    ----------
    X : frame or array
    y : array-like of shape (n_records,)
    protections : mapping of str to unfitted estimator
        For example the plain model, ``AnonymizedClassifier(model, k=10)``, a pipeline of a minimizer and the model,
        ``PrunedClassifier``, a differentially private model. `usual_protections` makes them. Each is copied and its
        seeds are set from `random_state`; shadows are copies of the same estimator with seeds of their own.
    attacks : sequence of str
        Membership attacks, see `attack_membership`.
    n_shadows : int, default=16
        For the attacks that use shadow models.
    subgroups : column or list of columns
        Categorical columns for whose values utility and risk are repeated.
    attribute : column, optional
        Also try to infer this attribute of the training records, see `attack_attribute`.
    train_fraction : float, default=0.5
        Share of the records to train on. One half lets shadows train on as many records as the attacked model.
    confidence : float, default=0.95
    random_state : int, default=0
    n_jobs : int, optional
        Processes for the shadows; None: one, -1: one per core.
    cache : path, optional
        A folder for finished shadows: an interrupted comparison goes on where it was.
    progress : callable, optional
        Called with the name of a protection, the number of finished steps of it, and their number.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sfumato import AnonymizedClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=400) > 0
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> protections = {"plain": tree, "k = 20": AnonymizedClassifier(tree, k=20)}
    >>> found = compare_protections(X, y, protections, attacks=["threshold"])
    >>> plain, protected = found.rows
    >>> plain.strongest.rate > protected.strongest.rate  # a deep tree knows its training records by heart
    True
    """
    _check(protections, train_fraction)
    table = read_table(X)
    labels = np.asarray(y)
    if len(labels) != table.n_records:
        raise InputError(f"{len(labels)} labels for {table.n_records} records: expected one each. Pass the same rows.")
    generator = np.random.default_rng([random_state, _TAG])
    is_train = generator.permutation(table.n_records) < round(train_fraction * table.n_records)
    train, test = (table.replaced({}, keep_rows=np.flatnonzero(side)) for side in (is_train, ~is_train))
    groups = {name: _subgroups(table, name, is_train) for name in table.resolve(subgroups, "subgroups")}
    split = _Split(labels, is_train, train, test, groups)
    rows = []
    for name, estimator in protections.items():
        logger.info("protection %s", name)
        report = None if progress is None else _Reporter(progress, name)
        start = time.perf_counter()
        model = with_seeds(estimator, random_state).fit(train, labels[is_train])
        seconds = time.perf_counter() - start
        membership = attack_membership(
            model, X, labels, is_train,
            attacks=attacks, estimator=estimator if NEED_SHADOWS.intersection(attacks) else None, n_shadows=n_shadows,
            confidence=confidence, random_state=random_state, n_jobs=n_jobs, cache=cache, progress=report,
        )  # fmt: skip
        guessed: Mapping[str, AttackResult] = {}
        if attribute is not None:
            guessed = attack_attribute(
                model, train, labels[is_train], attribute,
                control=(test, labels[~is_train]), confidence=confidence, random_state=random_state, n_jobs=n_jobs,
            )  # fmt: skip
        rows.append(_row(name, model, split, membership, guessed, confidence, seconds))
        if report is not None:
            report(1, 1)
    is_number = is_regressor(next(iter(protections.values())))
    metric = "R2" if is_number else "accuracy"
    blind = 0.0 if is_number else float(np.unique(labels[~is_train], return_counts=True)[1].max() / (~is_train).sum())
    return Comparison(tuple(rows), metric, blind, int(is_train.sum()), int((~is_train).sum()), random_state)


@dataclass(frozen=True, eq=False)
class _Split:
    """The records, who is trained on, and the subgroup of every record by column."""

    labels: NDArray[Any]
    is_train: NDArray[np.bool_]
    train: Any
    test: Any
    groups: Mapping[str, NDArray[np.object_]]


def _row(
    name: str,
    model: Any,
    split: _Split,
    membership: Mapping[str, MembershipResult],
    attribute: Mapping[str, AttackResult],
    confidence: float,
    seconds: float,
) -> ComparisonRow:
    answers, known = np.asarray(model.predict(split.test)), split.labels[~split.is_train]
    utility, interval = _utility(model, answers, known, confidence)
    of_train = np.asarray(model.predict(split.train))
    train_utility, _ = _utility(model, of_train, split.labels[split.is_train], confidence)
    row = ComparisonRow(name, train_utility, utility, interval, membership, attribute, (), seconds)
    parts = [
        _subgroup_row(model, row.strongest, column, group, of_record, answers, known, split.is_train, confidence)
        for column, of_record in split.groups.items()
        for group in sorted(set(of_record.tolist()) - {_NOT_SHOWN})
    ]
    return replace(row, subgroups=tuple(parts))


class _Reporter:
    """Says which protection the progress is about."""

    def __init__(self, progress: Callable[[str, int, int], None], name: str) -> None:
        self._progress = progress
        self._name = name

    def __call__(self, done: int, total: int) -> None:
        self._progress(self._name, done, total)


def _check(protections: Mapping[str, Any], train_fraction: float) -> None:
    if not isinstance(protections, Mapping) or not protections:
        raise ParameterError(
            f"protections is a {type(protections).__name__}: expected a mapping from names to unfitted estimators. "
            "Begin with {'none': model} to compare with."
        )
    if not 0 < train_fraction < 1:
        raise ParameterError(
            f"{named('train_fraction', train_fraction)}: expected a share between 0 and 1. 0.5 suits shadows."
        )


def _utility(
    model: Any, answers: NDArray[Any], known: NDArray[Any], confidence: float
) -> tuple[float, tuple[float, float]]:
    if is_regressor(model):
        pairs = np.column_stack([answers, known]).astype(np.float64)
        interval = bootstrap_interval(
            pairs,
            statistic=lambda drawn: float(r2_score(drawn[:, 1], drawn[:, 0])),
            confidence=confidence,
            n_resamples=300,
        )
        return float(r2_score(known, answers)), interval
    n_right = int((answers == known).sum())
    return n_right / len(known), wilson_interval(n_right, len(known), confidence)


def _subgroups(table: Any, name: str, is_train: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Return the subgroup of every record: a value that enough members and enough others share, or "others"."""
    column = table.column(name)
    if column.categories is None:
        raise ParameterError(
            f"subgroups names the column {name!r}, which holds numbers: expected categories. Group its values first."
        )
    named = np.array([str(value) for value in column.categories], object)[column.values]
    if column.missing is not None:
        named[column.missing] = "missing"
    for value in sorted(set(named.tolist())):
        named[(named == value) & _is_small(named == value, is_train)] = _OTHERS
    # What is still too few then is not shown at all.
    named[(named == _OTHERS) & _is_small(named == _OTHERS, is_train)] = _NOT_SHOWN
    return np.asarray(named, object)


def _is_small(here: NDArray[np.bool_], is_train: NDArray[np.bool_]) -> bool:
    return min(int((here & is_train).sum()), int((here & ~is_train).sum())) < _SMALLEST_SUBGROUP


def _subgroup_row(
    model: Any,
    attack: MembershipResult,
    column: str,
    group: str,
    of_record: NDArray[np.object_],
    answers: NDArray[Any],
    known: NDArray[Any],
    is_train: NDArray[np.bool_],
    confidence: float,
) -> SubgroupRow:
    tested = of_record[~is_train] == group
    utility, interval = _utility(model, answers[tested], known[tested], confidence)
    attacked = of_record[attack.records] == group
    area, area_interval = area_under_curve(attack.scores[attacked], attack.is_member[attacked], confidence)
    return SubgroupRow(column, group, int(tested.sum()), utility, interval, area, area_interval)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"
