# SPDX-License-Identifier: Apache-2.0
"""The adversary of the minimization paper: one network that guesses all personal attributes at once.

One hidden layer of 50 (MLP-2; MLP-3 and MLP-5 as in appendix G of Staab et al. 2024), trained for 20 epochs on cells,
which stand for all their records: a cell's target is the mix of values its records have. Values that the known
generalization rules out get no probability (logit masking), in training and in guessing. Called by the family; needs
torch.
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
