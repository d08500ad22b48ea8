# SPDX-License-Identifier: Apache-2.0
"""The adversaries of the family that are trained: gradient boosting, and the network of the minimization paper.

Boosting fits one model for each set of values to choose from. Once the generalization is known, a record's bucket says
between which values to choose. So there is one model per bucket, which never learns what the bucket already tells, and
none if the bucket leaves one value.

The network guesses all personal attributes at once. It has one hidden layer of 50 (MLP-2; MLP-3 and MLP-5 as in
appendix G of Staab et al. 2024), trained for 20 epochs on cells, which stand for all their records: a cell's target is
the mix of values its records have. Values that the known generalization rules out get no probability (logit masking),
in training and in guessing. It needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.reconstruction_questions import Cells, Question, Scores, masked_scores
from sfumato.networks import (
    as_tensors,
    dense_network,
    epochs_for,
    fit_network,
    pick_device,
    predict_network,
    require_torch,
    seeded_generator,
)

# -- boosting ----------------------------------------------------------------------------------------------------

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
    # If everything is generalized, there is nothing to learn from: the most frequent value is the best guess.
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


# -- the network -------------------------------------------------------------------------------------------------

Architecture = Literal["MLP-2", "MLP-3", "MLP-5"]

HIDDEN_UNITS: dict[Architecture, tuple[int, ...]] = {"MLP-2": (50,), "MLP-3": (100, 100), "MLP-5": (256,) * 4}
"""Sizes of the hidden layers; the number in a name counts the layers of weights."""


@dataclass(frozen=True)
class NetworkSettings:
    """Architecture and training of the network; the defaults are those of the paper's appendix F.

    Attributes
    ----------
    architecture : {"MLP-2", "MLP-3", "MLP-5"}
    weight_decays : tuple of float
        L2 penalties to try; the best on validation counts, for each attribute.
    epochs : int
    least_steps : int
        With few cells there are more epochs, until there are so many steps.
    batch_size : int
        Cells in a batch at least; more where an epoch would have more than `most_batches`.
    most_batches : int
    learning_rate : float
        Falls to a tenth for the second half.
    device : str or None
        None: a GPU where there is one.
    """

    architecture: Architecture = "MLP-2"
    weight_decays: tuple[float, ...] = (0.0, 1e-4)
    epochs: int = 20
    least_steps: int = 600
    batch_size: int = 256
    most_batches: int = 128
    learning_rate: float = 0.01
    device: str | None = None


def network_answers(
    questions: Sequence[Question], settings: NetworkSettings, *, seed: int
) -> list[list[tuple[str, Scores]]]:
    """Return, for every question, a name and the scores of each network that was tried.

    Questions that are asked of the same cells are answered by one network.
    """
    answers: list[list[tuple[str, Scores]]] = [[] for _ in questions]
    asked_of: dict[int, list[int]] = {}
    for position, question in enumerate(questions):
        asked_of.setdefault(id(question.cells), []).append(position)
    for positions in asked_of.values():
        together = [questions[position] for position in positions]
        for weight_decay in settings.weight_decays:
            label = settings.architecture if not weight_decay else f"{settings.architecture}, L2 {weight_decay:g}"
            fitted = fit_reconstruction(together, settings, weight_decay=weight_decay, seed=seed)
            for position, scores in zip(positions, fitted, strict=True):
                answers[position].append((label, scores))
    return answers


def fit_reconstruction(
    questions: Sequence[Question], settings: NetworkSettings, *, weight_decay: float = 0.0, seed: int = 0
) -> list[Scores]:
    """Fit one network to all questions about the same cells, and return the scores of each question."""
    torch = require_torch()
    device = pick_device(settings.device)
    cells = questions[0].cells
    records = np.bincount(cells.cell_of[questions[0].train], minlength=cells.n_cells)
    learned = np.flatnonzero(records)
    module = _build(cells, learned, sum(question.n_values for question in questions), settings, seed)
    targets = [_Targets(question, learned, device) for question in questions]
    sizes = [question.n_values for question in questions]
    columns = _embedding_rows(cells)
    batch_size = max(settings.batch_size, -(-len(learned) // settings.most_batches))
    epochs = epochs_for(len(learned), batch_size, epochs=settings.epochs, least_steps=settings.least_steps)

    def losses(network: Any, rows: Any, batch: Any) -> Any:
        parts = _scores(network, rows).split(sizes, dim=1)
        return torch.stack([target.losses(part, batch) for target, part in zip(targets, parts, strict=True)]).mean(0)

    fit_network(
        module,
        (columns[learned], np.arange(len(learned))),
        losses,
        weights=records[learned],
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=settings.learning_rate,
        schedule=(-(-epochs // 2), 0.1),
        weight_decay=weight_decay,
        seed=seed,
        device=device,
    )
    starts = np.cumsum([0, *sizes])
    return [
        masked_scores(question, _scores_of(module, question, columns, slice(int(start), int(stop)), device))
        for question, start, stop in zip(questions, starts[:-1], starts[1:], strict=True)
    ]


def _build(cells: Cells, learned: NDArray[np.int64], n_outputs: int, settings: NetworkSettings, seed: int) -> Any:
    """Return the network: a row of weights per code of each clue, their sum, and the layers after it.

    The sum is the first layer of the paper's network on one-hot inputs, without the zeros.
    """
    torch = require_torch()
    generator = seeded_generator(seed)
    hidden = HIDDEN_UNITS[settings.architecture]
    n_rows = 1 + sum(cells.sizes)
    weights = torch.empty(n_rows, hidden[0]).uniform_(-(n_rows**-0.5), n_rows**-0.5, generator=generator)
    is_known = np.zeros(n_rows, bool)
    is_known[_embedding_rows(cells)[learned]] = True
    weights[torch.from_numpy(~is_known)] = 0  # codes that no training record has say nothing
    return torch.nn.ModuleDict(
        {
            "clues": torch.nn.EmbeddingBag.from_pretrained(weights, freeze=False, mode="sum"),
            "layers": torch.nn.Sequential(torch.nn.ReLU(), dense_network((*hidden, n_outputs), generator)),
        }
    )


def _embedding_rows(cells: Cells) -> NDArray[np.int64]:
    """Return where the weights of each clue's code stand; the first row belongs to all cells (the bias)."""
    offsets = np.cumsum([1, *cells.sizes])[:-1]
    return np.concatenate([np.zeros((cells.n_cells, 1), np.int64), cells.clues + offsets], axis=1)


def _scores(network: Any, rows: Any) -> Any:
    return network["layers"](network["clues"](rows))


def _scores_of(module: Any, question: Question, columns: NDArray[np.int64], own: slice, device: Any) -> Scores:
    def probabilities(network: Any, rows: Any, masks: Any) -> Any:
        possible = as_tensors([question.possible], device)[0]
        return _masked(_scores(network, rows)[:, own], possible[masks]).softmax(dim=1)

    def scores(cells: NDArray[np.int64]) -> NDArray[np.float32]:
        inputs = (columns[cells], question.mask_of_cell[cells])
        return np.asarray(predict_network(module, inputs, probabilities, device=device), np.float32)

    return scores


def _masked(scores: Any, possible: Any) -> Any:
    return scores.masked_fill(~possible, -1e9)  # finite, so that no gradient is infinity times zero


class _Targets:
    """The values of one attribute in the training records of each cell, with their shares."""

    def __init__(self, question: Question, learned: NDArray[np.int64], device: Any) -> None:
        place = np.full(question.cells.n_cells, -1)
        place[learned] = np.arange(len(learned))
        row = place[question.learned.cells]  # sorted by cell, so the entries of a cell lie together
        totals = np.bincount(row, question.learned.counts, minlength=len(learned))
        lengths = np.bincount(row, minlength=len(learned))
        self._starts, self._lengths, self._values, self._shares, self._masks, self._possible = as_tensors(
            [
                np.cumsum(lengths) - lengths,
                lengths,
                question.learned.values,
                question.learned.counts / totals[row],
                question.mask_of_cell[learned],
                question.possible,
            ],
            device,
        )

    def losses(self, scores: Any, batch: Any) -> Any:
        """Return the cross-entropy between each cell's shares and the network's masked scores."""
        torch = require_torch()
        masked = _masked(scores, self._possible[self._masks[batch]])
        lengths = self._lengths[batch]
        row = torch.repeat_interleave(lengths)
        before = torch.cumsum(lengths, 0) - lengths
        entry = self._starts[batch][row] + torch.arange(len(row), device=scores.device) - before[row]
        of_truth = masked[row, self._values[entry]] * self._shares[entry]
        return masked.logsumexp(dim=1).index_add(0, row, of_truth, alpha=-1)
