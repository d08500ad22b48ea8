# SPDX-License-Identifier: Apache-2.0
"""Utility of one fitted model on one split: accuracy or R2, area under the curve, and both for subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.metrics import r2_score

from sfumato.attack.membership_metrics import area_under_curve
from sfumato.attack.membership_signals import reader_of
from sfumato.attack.result import bootstrap_interval, wilson_interval
from sfumato.auditing.subgroups import is_few_codes, members_of
from sfumato.errors import SfumatoError
from sfumato.frames import Table
from sfumato.labels import label_number

SMALLEST_SUBGROUP = 20
"""Fewest members and others of a subgroup in every split; smaller ones are put together, or not shown."""
OTHERS, NOT_SHOWN = "others", ""
_N_RESAMPLES = 300


@dataclass(frozen=True, eq=False)
class Scores:
    """How well a model predicts some records.

    Attributes
    ----------
    utility : float
        Accuracy, or R2.
    interval : (float, float)
        Over the records.
    auc : float or None
        Area under the curve; of several classes, the mean over one class against the rest. None where a model does not
        say how sure it is.
    auc_interval : (float, float) or None
        Over the records; None of several classes.
    answers : ndarray
    """

    utility: float
    interval: tuple[float, float]
    auc: float | None
    auc_interval: tuple[float, float] | None
    answers: NDArray[Any]


def score(model: Any, X: Any, y: NDArray[Any], confidence: float) -> Scores:
    """Measure a fitted model on records with known targets."""
    answers = np.asarray(model.predict(X))
    utility, interval = utility_of(answers, y, confidence, is_number=is_regressor(model))
    auc, auc_interval = (None, None) if is_regressor(model) else _area(model, X, y, confidence)
    return Scores(utility, interval, auc, auc_interval, answers)


def utility_of(
    answers: NDArray[Any], known: NDArray[Any], confidence: float, *, is_number: bool
) -> tuple[float, tuple[float, float]]:
    """Return accuracy or R2 with its interval over the records."""
    if not is_number:
        n_right = int((answers == known).sum())
        return n_right / len(known), wilson_interval(n_right, len(known), confidence)
    pairs = np.column_stack([answers, known]).astype(np.float64)
    interval = bootstrap_interval(
        pairs, statistic=lambda drawn: _r2(drawn[:, 1], drawn[:, 0]), confidence=confidence, n_resamples=_N_RESAMPLES
    )
    return _r2(pairs[:, 1], pairs[:, 0]), interval


def _r2(known: NDArray[np.float64], answers: NDArray[np.float64]) -> float:
    return float(r2_score(known, answers)) if len(known) > 1 else 0.0


def _area(model: Any, X: Any, y: NDArray[Any], confidence: float) -> tuple[float | None, tuple[float, float] | None]:
    try:
        reader = reader_of(model, y)
    except SfumatoError:  # it gives labels only
        return None, None
    assert reader.classes is not None
    outputs, labels = reader.outputs(model, X), np.unique(y)
    place = {label: position for position, label in enumerate(reader.classes.tolist())}

    def of_class(label: Any) -> tuple[float, tuple[float, float]]:
        if label not in place:  # a class that the model never met says nothing
            return 0.5, (0.5, 0.5)
        column = outputs[:, place[label]]
        if reader.kind == "logits" and outputs.shape[1] > 2:  # what one logit says depends on the others
            column = column - np.logaddexp.reduce(outputs, axis=1)
        return area_under_curve(column, y == label, confidence)

    if len(labels) < 2:
        return None, None
    if len(labels) == 2:
        return of_class(labels.tolist()[1])
    return float(np.mean([of_class(label)[0] for label in labels.tolist()])), None


def subgroups_of(
    table: Table, name: str, splits: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> NDArray[np.object_]:
    """Return the subgroup of every record that enough people on both sides of every split share, or "others".

    Categories and few whole numbers are subgroups as they are, other numbers and dates in four classes.
    """
    column = table.column(name)
    if column.categories is None and is_few_codes(column):
        labels = np.array([label_number(float(value)) for value in column.values], object)
    else:
        labels = np.full(column.n_records, "missing", object)
        for label, members in members_of(column):
            labels[members] = label
    if column.missing is not None:
        labels[column.missing] = "missing"
    for value in sorted(set(labels.tolist())):
        if _is_small(labels == value, splits):
            labels[labels == value] = OTHERS
    # What is still too few then is not shown at all.
    if _is_small(labels == OTHERS, splits):
        labels[labels == OTHERS] = NOT_SHOWN
    return np.asarray(labels, object)


def _is_small(here: NDArray[np.bool_], splits: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> bool:
    return min(int(here[side].sum()) for split in splits for side in split) < SMALLEST_SUBGROUP
