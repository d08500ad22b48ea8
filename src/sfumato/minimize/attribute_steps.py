# SPDX-License-Identifier: Apache-2.0
"""What each attribute of a generalization costs and is worth: not collected, one step coarser, one step finer.

Every step is measured like the settings of a sweep, on test records that nothing was learned or chosen on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.generalization import CategoryAttribute, Generalization
from sfumato.generalization.export.texts import Reason
from sfumato.minimize.attribute_picture import picture_of
from sfumato.minimize.bucket_steps import coarser, finer
from sfumato.minimize.bucket_utility import CodesClassifier
from sfumato.minimize.judge import Judge, Risk, RiskName, as_risk
from sfumato.minimize.privacy_aware_tree import PrivacyAwareTree
from sfumato.minimize.sample import FORBIDDEN, Buckets, Sample
from sfumato.minimize.sweep_parts import SHARES, Part, Shares, parts_of

StepName = Literal["not collected", "coarser", "finer"]
DIFFERENCES = "Differences in percentage points on test; below zero is better."
_NORMAL = 1.959964  # two-sided, 95 %


@dataclass(frozen=True)
class AttributeStep:
    """One attribute collected otherwise, all others as they are.

    Attributes
    ----------
    step : {"not collected", "coarser", "finer"}
    n_buckets : int
        Of the attribute, after the step.
    error, risk : float
        Difference to the generalization as it is, on test: share of records classified wrongly, and share of personal
        values that the attacker guesses right. Below zero is better.
    certified : float or None
        Difference of the share that no attacker exceeds, with 95% confidence.
    error_interval : tuple of float
        95% interval of the difference of errors, from the records that only one of both classifies wrongly.
    """

    step: StepName
    n_buckets: int
    error: float
    risk: float
    certified: float | None
    error_interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        """True if chance does not explain the difference of errors."""
        return self.error_interval[0] > 0 or self.error_interval[1] < 0


@dataclass(frozen=True)
class AttributeCost:
    """What one attribute costs and is worth.

    Attributes
    ----------
    attribute : str
    n_buckets : int
        As it is collected; 1 means that it is not.
    steps : tuple of AttributeStep
        Those that are possible.
    """

    attribute: str
    n_buckets: int
    steps: tuple[AttributeStep, ...]

    def step(self, name: StepName) -> AttributeStep | None:
        """Return one of the steps; None if it is not possible."""
        return next((own for own in self.steps if own.step == name), None)


@dataclass(frozen=True)
class AttributeCosts:
    """A table with a row per attribute; prints as text, shows as HTML in notebooks.

    Attributes
    ----------
    rows : tuple of AttributeCost
    error, risk : float
        Of the generalization as it is, on test.
    certified : float or None
    """

    rows: tuple[AttributeCost, ...]
    error: float
    risk: float
    certified: float | None

    def of(self, attribute: str) -> AttributeCost:
        """Return the row of an attribute."""
        for row in self.rows:
            if row.attribute == attribute:
                return row
        raise ParameterError(f"no costs of {attribute!r}: expected one of the {len(self.rows)} attributes measured.")

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict per step."""
        return [
            {
                "attribute": row.attribute,
                "n_buckets": row.n_buckets,
                "step": step.step,
                "n_buckets_after": step.n_buckets,
                "error": step.error,
                "error_low": step.error_interval[0],
                "error_high": step.error_interval[1],
                "risk": step.risk,
                "certified": step.certified,
            }
            for row in self.rows
            for step in row.steps
        ]

    def lines(self) -> list[list[str]]:
        """Return the rows of the table as text, the first one with the names of the columns; differences are in points.

        A step has a row. The last column, on any attacker, is there where such a bound was computed.
        """
        names = ["attribute", "step", "buckets", "error [95% CI]", "risk", "any attacker"]
        lines = [names, *(_line(row, step) for row in self.rows for step in row.steps)]
        return lines if self.certified is not None else [line[:-1] for line in lines]

    def __str__(self) -> str:
        """Return the table as text."""
        lines = self.lines()
        widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
        texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([*(text.rstrip() for text in texts), "", DIFFERENCES])

    def _repr_html_(self) -> str:
        names, *lines = self.lines()
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(
            f"<tr><th scope='row'>{escape(line[0])}</th>{''.join(f'<td>{cell}</td>' for cell in line[1:])}</tr>"
            for line in lines
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def reasons(
        self, *, required: Collection[str] = (), left_out: Mapping[str, str] | None = None
    ) -> dict[str, Reason]:
        """Return why each attribute is asked, or why it is not, for the form and its preview.

        Parameters
        ----------
        required : collection of str
            Attributes that have to be asked.
        left_out : mapping of str to str, optional
            Attributes that were not looked at, and why, as a sweep tells it.
        """
        told = {name: Reason("forbidden" if why == FORBIDDEN else "screened") for name, why in (left_out or {}).items()}
        return {row.attribute: _reason(row, row.attribute in required) for row in self.rows} | told

    def plot(self) -> str:
        """Return a picture as SVG text: how error, risk and the bound on any attacker change by each step."""
        return picture_of(self)


def attribute_costs(
    generalization: Generalization,
    X: Any,
    y: Any,
    *,
    personal: Sequence[str] | None = None,
    validation: Part | None = None,
    test: Part | None = None,
    shares: Shares = SHARES,
    estimator: Any = None,
    risk: RiskName | Risk = "table",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> AttributeCosts:
    """Measure what each attribute of a generalization costs and is worth.

    Parameters
    ----------
    generalization : Generalization
    X : frame or array
        Full-resolution records: those that it was learned from, with the same parts or the same `random_state`.
    y : array-like
        Their classes.
    personal : list of str, optional
        What the attacker wants; None: all category attributes, or all attributes if there is none.
    validation, test, shares, estimator, risk, random_state, n_jobs
        As for `sweep_minimizers`.

    Returns
    -------
    AttributeCosts
        A step coarser joins two buckets where the class loses least; a step finer cuts one in two where it gains most,
        with at least `floor` records on both sides. Both are chosen on the training part.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sfumato import PrivacyAwareTree, attribute_costs
    >>> age, town = np.tile(np.arange(20, 80), 10), np.repeat(np.arange(10), 60)
    >>> X, y = np.column_stack([age, town]), age >= 50
    >>> made = PrivacyAwareTree(personal=[1], min_samples_leaf=20).fit(X, y).generalization_
    >>> costs = attribute_costs(made, X, y, personal=["x1"], estimator=DecisionTreeClassifier())
    >>> costs.of("x0").step("not collected").error > 0.4, costs.of("x1").n_buckets
    (True, 1)
    """
    reader = PrivacyAwareTree(
        attributes=list(generalization.names),
        personal=None if personal is None else list(personal),
        categorical_features=_numeric_categories(generalization) or None,
        floor=int(generalization.parameters.get("floor", 10)),
    )
    parts = parts_of(reader, X, y, validation, test, shares, random_state)
    attacker = as_risk(risk, seed=random_state, n_jobs=n_jobs)
    measured = _Measured(Judge(reader, parts, CodesClassifier(estimator, seed=random_state), attacker), reader)
    return measured.costs(generalization)


def _numeric_categories(generalization: Generalization) -> list[str]:
    return [
        own.name
        for own in generalization.attributes
        if isinstance(own, CategoryAttribute) and own.value_type == "number"
    ]


class _Measured:
    """Measures a generalization and its neighbors."""

    def __init__(self, judge: Judge, reader: PrivacyAwareTree) -> None:
        self.judge = judge
        self.floor = int(reader.floor)
        self.sample: Sample = judge.sample_for(reader)

    def costs(self, generalization: Generalization) -> AttributeCosts:
        """Measure every step of every attribute that was looked at."""
        now = self.judge.point("as it is", {}, generalization)
        wrong = self.judge.wrong_on_test(generalization)
        buckets = self._buckets(generalization)
        rows = []
        for position, attribute in enumerate(generalization.attributes):
            if position in self.sample.left_out:
                continue
            steps = []
            for name, changed in self._changed(position, buckets[position]).items():
                other = self.sample.generalized(
                    [*buckets[:position], changed, *buckets[position + 1 :]], floor=self.floor
                )
                n_buckets = other.attributes[position].n_buckets
                if n_buckets == attribute.n_buckets:
                    continue  # too few records: the floor joins again what was cut
                point = self.judge.point(name, {}, other)
                again = self.judge.wrong_on_test(other)
                steps.append(
                    AttributeStep(
                        name,
                        n_buckets,
                        point.test_error - now.test_error,
                        point.test_risk - now.test_risk,
                        None if now.certified_risk is None or point.certified_risk is None
                        else point.certified_risk - now.certified_risk,
                        _interval(again, wrong),
                    )
                )  # fmt: skip
            rows.append(AttributeCost(attribute.name, attribute.n_buckets, tuple(steps)))
        return AttributeCosts(tuple(rows), now.test_error, now.test_risk, now.certified_risk)

    def _buckets(self, generalization: Generalization) -> Buckets:
        """Return the buckets of fine codes; a bin that the generalization cuts goes with its typical value."""
        made = []
        for column, attribute in zip(self.sample.columns, generalization.attributes, strict=True):
            own = attribute.buckets_of(column).astype(np.int64)
            unseen = [attribute.unseen] if isinstance(attribute, CategoryAttribute) else []
            made.append(np.append(own, np.array(unseen, np.int64)) if attribute.is_collected else own)
        return made

    def _changed(self, position: int, buckets: NDArray[np.int64]) -> Mapping[StepName, NDArray[np.int64]]:
        found: dict[StepName, NDArray[np.int64]] = {}
        n_codes = self.sample.n_codes[position]
        if buckets.any():
            found["not collected"] = np.zeros(n_codes, np.int64)
            joined = coarser(self.sample, position, buckets)
            if joined is not None and joined.max() > 0:
                found["coarser"] = joined
        cut = finer(self.sample, position, buckets, self.floor)
        if cut is not None:
            found["finer"] = cut
        return found


def _interval(changed: NDArray[np.bool_], now: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the 95% interval of the difference of two shares on the same records."""
    n = len(now)
    difference = changed.astype(np.float64) - now.astype(np.float64)
    half = _NORMAL * float(difference.std()) / float(n) ** 0.5
    middle = float(difference.mean())
    return middle - half, middle + half


def _reason(row: AttributeCost, is_required: bool) -> Reason:
    if row.n_buckets > 1:
        without = row.step("not collected")
        if without is not None and without.is_clear and without.error > 0:
            return Reason("needed", without.error)
        return Reason("required" if is_required else "helps")
    with_it = row.step("finer")
    if with_it is None or not with_it.is_clear or with_it.error >= 0:
        return Reason("useless")
    if with_it.risk <= 0:
        return Reason("good enough", -with_it.error)
    return Reason("not worth it", -with_it.error, with_it.risk)


def _count(n_buckets: int) -> str:
    return str(n_buckets) if n_buckets > 1 else "-"


def _points(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.1f}"


def _line(row: AttributeCost, step: AttributeStep) -> list[str]:
    low, high = map(_points, step.error_interval)
    buckets = f"{_count(row.n_buckets)} to {_count(step.n_buckets)}"
    error = f"{_points(step.error)} [{low}, {high}]"
    return [row.attribute, step.step, buckets, error, _points(step.risk), _points(step.certified)]
