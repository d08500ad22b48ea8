# SPDX-License-Identifier: Apache-2.0
"""The labels above the codes of a column: what the engine asks of a hierarchy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class CodePaths:
    """The labels above each code of a column whose codes are in the order of the tree.

    Attributes
    ----------
    labels : ndarray of int32, shape (codes, levels)
        Number of a code's label at each level, from fine to coarse; the last level is one label.
    widths : ndarray of float64, shape (codes, levels)
        (values under the label - 1) / (values of the domain - 1).
    texts : tuple of tuple of str
        The labels of each level.
    """

    labels: NDArray[np.int32]
    widths: NDArray[np.float64]
    texts: tuple[tuple[str, ...], ...]

    def group_levels(
        self, lowest: NDArray[np.int32], highest: NDArray[np.int32], n_missing: NDArray[np.int64]
    ) -> NDArray[np.intp]:
        """Return the level of the lowest common ancestor of each group, given its first and last code with a value.

        The first code is negative where all are missing; what holds values and missing has the top in common.
        """
        levels = (self.labels[lowest] == self.labels[highest]).argmax(axis=1)
        levels[(n_missing > 0) & (lowest >= 0)] = self.labels.shape[1] - 1
        return np.where(lowest < 0, 0, levels)

    def group_widths(
        self, lowest: NDArray[np.int32], highest: NDArray[np.int32], n_missing: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the width of the label of each group; 0 where all are missing."""
        widths = self.widths[lowest, self.group_levels(lowest, highest, n_missing)]
        return np.where(lowest < 0, 0.0, widths)

    def group_labels(
        self, lowest: NDArray[np.int32], highest: NDArray[np.int32], n_missing: NDArray[np.int64]
    ) -> list[str | None]:
        """Return the label of each group: its lowest common ancestor; None where all are missing."""
        levels = self.group_levels(lowest, highest, n_missing)
        return [
            None if low < 0 else self.texts[level][self.labels[low, level]]
            for low, level in zip(lowest.tolist(), levels.tolist(), strict=True)
        ]
