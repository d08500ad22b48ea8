# SPDX-License-Identifier: Apache-2.0
"""The adversary that generalizes over cells: gradient boosting, one model for each set of values to choose from.

Once the generalization is known, a record's bucket says between which values to choose. So there is one model per
bucket, which never learns what the bucket already tells, and none where the bucket leaves one value. Called by the
family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.reconstruction_questions import Question, Scores, masked_scores

MAX_VALUES = 24
"""Values one model chooses from at most: the most frequent ones. Each costs one tree per round."""

_CATEGORY_LIMIT = 255  # scikit-learn's limit for categories; clues with more codes are taken as numbers
_FEW_CODES = 8  # so few are told apart by a few cuts; scikit-learn drops categories with few rows, cells or not
_LEAST_RECORDS = 20  # buckets with fewer training records have no model of their own


@dataclass(frozen=True)
class BoostingSettings:
    """Settings of a model; the number of rounds is tuned on validation, up to `n_rounds`."""

    learning_rate: float = 0.15
    n_rounds: int = 60
    max_leaves: int = 31
    records_per_leaf: int = 20


@dataclass(frozen=True, eq=False)
class _Model:
    values: NDArray[np.int64]  # what its classes stand for
    classifier: Any
    n_rounds: int


def fit_boosting(question: Question, settings: BoostingSettings, *, seed: int) -> Scores:
    """Fit a model per mask on the merged training records; the number of rounds is the best one on validation."""
    features, categorical = _features(question)
    models: dict[int, _Model] = {}
    learned = question.learned
    mask_of_pair = question.mask_of_cell[learned.cells]
    # Where all is generalized nothing is left to learn from: what is frequent is all there is to guess.
    masks = np.unique(mask_of_pair).tolist() if features.shape[1] else []
    for mask in masks:
        pairs = np.flatnonzero(mask_of_pair == mask)
        pairs = pairs[_is_frequent(learned.values[pairs], learned.counts[pairs], question.n_values)]
        values = np.unique(learned.values[pairs])
        if len(values) < 2 or learned.counts[pairs].sum() < _LEAST_RECORDS:
            continue
        classifier = _fit_model(
            features[learned.cells[pairs]],
            np.searchsorted(values, learned.values[pairs]),
            learned.counts[pairs],
            categorical,
            settings,
            seed,
        )
        models[mask] = _Model(values, classifier, _best_round(question, mask, values, features, classifier))

    def scores(cells: NDArray[np.int64]) -> NDArray[np.float32]:
        masks = question.mask_of_cell[cells]
        out = np.asarray(question.prior[masks], np.float32)
        for mask, model in models.items():
            rows = np.flatnonzero(masks == mask)
            if len(rows):
                out[rows] = 0
                out[np.ix_(rows, model.values)] = _probabilities(model, features[cells[rows]])
        return out

    return masked_scores(question, scores)


def _features(question: Question) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the clues as numbers, and which of them are categories."""
    cells = question.cells
    varies = [len(np.unique(cells.clues[:, position])) > 1 for position in range(len(cells.sizes))]
    kept = np.flatnonzero(varies)
    sizes = np.array(cells.sizes, np.int64)[kept]
    categorical = ~np.array(cells.is_ordered, np.bool_)[kept] & (sizes > _FEW_CODES) & (sizes <= _CATEGORY_LIMIT)
    return cells.clues[:, kept].astype(np.float32), categorical


def _is_frequent(values: NDArray[np.int64], counts: NDArray[np.int64], n_values: int) -> NDArray[np.bool_]:
    totals = np.bincount(values, counts, minlength=n_values)
    rank = np.empty(n_values, np.int64)
    rank[np.argsort(-totals, kind="stable")] = np.arange(n_values)
    return np.asarray(rank[values] < MAX_VALUES)


def _fit_model(
    features: NDArray[np.float32],
    classes: NDArray[np.int64],
    counts: NDArray[np.int64],
    categorical: NDArray[np.bool_],
    settings: BoostingSettings,
    seed: int,
) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # scikit-learn counts rows in a leaf, and a row stands for several records here.
    rows_per_leaf = max(1, round(settings.records_per_leaf * len(counts) / counts.sum()))
    classifier = HistGradientBoostingClassifier(
        learning_rate=settings.learning_rate,
        max_iter=settings.n_rounds,
        max_leaf_nodes=settings.max_leaves,
        min_samples_leaf=rows_per_leaf,
        l2_regularization=1.0,
        categorical_features=categorical if categorical.any() else None,
        early_stopping=False,
        random_state=seed,
    )
    return classifier.fit(features, classes, sample_weight=counts)


def _best_round(
    question: Question, mask: int, values: NDArray[np.int64], features: NDArray[np.float32], classifier: Any
) -> int:
    """Return after how many rounds most validation records under the mask are guessed right, the fewest on ties."""
    cell_of = question.cells.cell_of[question.validation]
    inside = question.mask_of_cell[cell_of] == mask
    if not inside.any():
        return int(classifier.n_iter_)
    cells, cell = np.unique(cell_of[inside], return_inverse=True)
    truth = question.values[question.validation][inside]
    rights = [
        int((values[probabilities.argmax(axis=1)][cell] == truth).sum())
        for probabilities in classifier.staged_predict_proba(features[cells])
    ]
    return int(np.argmax(rights)) + 1


def _probabilities(model: _Model, features: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the model's probabilities after its best round."""
    stages: Sequence[Any] | Any = model.classifier.staged_predict_proba(features)
    for n_done, probabilities in enumerate(stages, start=1):
        if n_done == model.n_rounds:
            return np.asarray(probabilities)
    raise AssertionError("a model has fewer rounds than its best one")
