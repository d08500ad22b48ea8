# SPDX-License-Identifier: Apache-2.0
"""Means over splits, with their intervals, and the raw model beside every cell. Called by the pages."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from studies.accuracy import RAW, Cell


class Accuracies:
    """The accuracies of a study by table, model, method and k, each an array over the splits in rising order.

    Parameters
    ----------
    cells : iterable of Cell
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells: dict[tuple[str, str, str, int], list[Cell]] = {}
        for cell in sorted(cells, key=lambda cell: cell.seed):
            self._cells.setdefault((cell.table, cell.model, cell.method, cell.k), []).append(cell)

    def __contains__(self, where: tuple[str, str, str, int]) -> bool:
        return where in self._cells

    def cells(self, table: str, model: str, method: str, k: int) -> list[Cell]:
        """Return the cells themselves, one for every split."""
        return self._cells[table, model, method, k]

    def accuracy(self, table: str, model: str, method: str, k: int) -> NDArray[np.float64]:
        """Return the accuracy on raw test records."""
        return np.array([cell.accuracy for cell in self._cells[table, model, method, k]], np.float64)

    def transformed(self, table: str, model: str, method: str, k: int) -> NDArray[np.float64]:
        """Return the accuracy on test records that went through the method's groups."""
        return np.array([cell.transformed for cell in self._cells[table, model, method, k]], np.float64)

    def ranking(self, table: str, model: str, method: str, k: int) -> NDArray[np.float64]:
        """Return the area under the ROC curve on raw test records."""
        return np.array([cell.ranking for cell in self._cells[table, model, method, k]], np.float64)

    def raw(self, table: str, model: str) -> NDArray[np.float64]:
        """Return the accuracy of the model that was trained on raw records."""
        return self.accuracy(table, model, RAW, 0)

    def n_splits(self, table: str, model: str) -> int:
        """Return how many splits every cell of a table and a model has."""
        return min(len(cells) for where, cells in self._cells.items() if where[:2] == (table, model))


def interval(differences: NDArray[np.float64]) -> tuple[float, float]:
    """95% interval of a mean over seeds (Student's t)."""
    from scipy import stats

    if len(differences) < 2 or differences.std() == 0:
        return float(differences.mean()), float(differences.mean())
    half = stats.t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean() - half), float(differences.mean() + half)
