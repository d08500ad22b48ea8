# SPDX-License-Identifier: Apache-2.0
"""What an attacker sees of every record, as clues, and the questions about what is not seen.

Called by the attacks (A1-A6) and by sweeps; ``reconstruction_questions`` says what a question is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.reconstruction_questions import Cells, Question
from sfumato.attack.samples import Samples, bucket_span
from sfumato.generalization import Generalization
from sfumato.grouping import merge_rows


@dataclass(frozen=True, eq=False)
class Clue:
    """One thing the attacker sees of every record.

    Attributes
    ----------
    name : str
    codes : ndarray of int64
    is_ordered : bool
        Whether the order of the codes means something.
    """

    name: str
    codes: NDArray[np.int64]
    is_ordered: bool

    @cached_property
    def size(self) -> int:
        """One more than the highest code."""
        return int(self.codes.max()) + 1


def merge_cells(clues: Sequence[Clue], n_records: int) -> Cells:
    """Merge records whose clues are all equal."""
    first, cell_of = merge_rows([clue.codes for clue in clues], [clue.size for clue in clues], n_records)
    rows = [clue.codes[first] for clue in clues]
    matrix = np.stack(rows, axis=1) if rows else np.zeros((len(first), 0), np.int64)
    return Cells(matrix, tuple(clue.size for clue in clues), tuple(clue.is_ordered for clue in clues), cell_of)


def ask(
    generalizations: Sequence[Generalization], samples: Samples, known_of: dict[str, tuple[str, ...]]
) -> list[Question]:
    """Return one question for every attribute in `known_of`, which says what else is known exactly when it is guessed.

    Questions about attributes with the same knowledge share their cells.
    """
    cells_of: dict[frozenset[str], Cells] = {}
    questions = []
    for name, known in known_of.items():
        cells = cells_of.get(frozenset(known))
        if cells is None:
            cells = cells_of[frozenset(known)] = merge_cells(_clues(generalizations, samples, known), samples.n_records)
        column = samples.column(name)
        mask_of_record, possible = _masks(generalizations, samples, name)
        mask_of_cell = np.zeros(cells.n_cells, np.int64)
        mask_of_cell[cells.cell_of] = mask_of_record  # records of a cell have the same buckets, and so the same mask
        questions.append(
            Question(
                name,
                column.bins.n_bins,
                column.codes.astype(np.int64),
                cells,
                mask_of_cell,
                possible,
                samples.train,
                samples.validation,
                samples.test,
            )
        )
    return questions


def _clues(generalizations: Sequence[Generalization], samples: Samples, known: Sequence[str]) -> list[Clue]:
    """Return what is seen of every record: exact values where they are known, buckets where there are several."""
    clues = []
    for name in known:
        column = samples.column(name)
        clues.append(Clue(name, column.codes.astype(np.int64), column.bins.is_ordered))
    for number, generalization in enumerate(generalizations, start=1):
        for attribute in generalization.attributes:
            if not attribute.is_collected:
                continue
            column = samples.column(attribute.name)
            low, high = bucket_span(generalization, column)
            if attribute.name in known and np.array_equal(low, high):
                continue  # the exact value tells the bucket
            buckets = samples.buckets(generalization, attribute.name)
            clues.append(Clue(f"{attribute.name} in breach {number}", buckets, column.bins.is_ordered))
    return clues


def _masks(
    generalizations: Sequence[Generalization], samples: Samples, name: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the mask of every record, and which values are possible under each: in all breaches at once."""
    column = samples.column(name)
    mask_of_record = np.zeros(samples.n_records, np.int64)
    possible = np.ones((1, column.bins.n_bins), bool)
    for generalization in generalizations:
        n_buckets = generalization.attribute(name).n_buckets
        low, high = bucket_span(generalization, column)
        bucket = np.arange(n_buckets)[:, None]
        inside = (low <= bucket) & (bucket <= high)
        mask_of_record = mask_of_record * n_buckets + samples.buckets(generalization, name)
        possible = (possible[:, None, :] & inside[None, :, :]).reshape(-1, column.bins.n_bins)
    possible[~possible.any(axis=1)] = True  # no record has such buckets; a row without values would divide by zero
    return mask_of_record, possible
