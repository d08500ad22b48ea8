# SPDX-License-Identifier: Apache-2.0
"""What is kept of a run: one line of JSON for every table, model, split, method and k."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

RAW = "raw"  # the method of the model that was trained on the records as they are; its k is 0


class Key(NamedTuple):
    """What has to be run: one model on one split of one table, trained on what one method made of it."""

    table: str
    model: str
    seed: int
    method: str
    k: int


@dataclass(frozen=True)
class Cell:
    """What came out.

    Attributes
    ----------
    table, model, method : str
        Names in ``tables``, ``models`` and ``methods``.
    seed, k : int
    accuracy : float
        On raw test records, in percent.
    transformed : float or None
        The same on test records that went through the method's groups.
    n_groups : int or None
    ranking : float or None
        Area under the ROC curve on raw test records, in percent: how often a record of class 1 gets a higher
        probability than one of class 0. It sees what accuracy does not where one class is rare.
    information_loss : float or None
        Of the training records, from 0 to 1.
    seconds : float or None
        Anonymizing, training and testing.
    environment : str or None
        The machine and the versions.
    """

    table: str
    model: str
    seed: int
    method: str
    k: int
    accuracy: float
    transformed: float | None = None
    ranking: float | None = None
    n_groups: int | None = None
    information_loss: float | None = None
    seconds: float | None = None
    environment: str | None = None

    @property
    def key(self) -> Key:
        """What was run."""
        return Key(self.table, self.model, self.seed, self.method, self.k)


def read_cells(path: Path) -> dict[Key, Cell]:
    """Return the cells of a file; of several with the same key the last one, which was run last."""
    if not path.exists():
        return {}
    cells = [Cell(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {cell.key: cell for cell in cells}


def append_cell(path: Path, cell: Cell) -> None:
    """Keep one finished cell, so that a run which stops goes on where it was."""
    with path.open("a", encoding="utf-8") as file:
        file.write(_line(cell))


def write_cells(path: Path, cells: Iterable[Cell]) -> None:
    """Write a file anew, in the order given."""
    path.write_text("".join(map(_line, cells)), encoding="utf-8")


def _line(cell: Cell) -> str:
    return json.dumps({name: value for name, value in asdict(cell).items() if value is not None}) + "\n"
