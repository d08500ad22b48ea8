# SPDX-License-Identifier: Apache-2.0
"""Cached results of a run: one line of JSON for every cell, in one file for every experiment. Used by ``runner``.

A *key* says what has to be run, a *cell* is the key with what came out. Both are plain JSON objects, so that every
experiment has the entries it needs; the names of the key's entries are the experiment's `by`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

Key = dict[str, Any]
Cell = dict[str, Any]
Identity = tuple[Any, ...]


def identity(cell: Mapping[str, Any], by: Sequence[str]) -> Identity:
    """Return what tells a cell from the others of its experiment."""
    return tuple(cell[name] for name in by)


def read_cells(path: Path, by: Sequence[str]) -> dict[Identity, Cell]:
    """Return the cells of a file by their identity; of several with the same the last one, which was run last."""
    if not path.exists():
        return {}
    cells = [json.loads(line) for line in _whole(path.read_text(encoding="utf-8")).splitlines()]
    return {identity(cell, by): cell for cell in cells}


def append_cell(path: Path, cell: Cell) -> None:
    """Keep one finished cell, so that a run which stops goes on where it was; half a cell before it is dropped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    if kept != _whole(kept):
        _replace(path, _whole(kept))
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(cell) + "\n")


def write_cells(path: Path, cells: Iterable[Cell]) -> None:
    """Write a file again, in the order given; whoever is stopped at it leaves the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, "".join(f"{json.dumps(cell)}\n" for cell in cells))


def _whole(text: str) -> str:
    """Return the lines that were written to their end: the last one may be half a cell of a run that was killed."""
    return text[: text.rfind("\n") + 1]


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def matches(key: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    """Return True if a key is among the chosen ones.

    Parameters
    ----------
    key : mapping
    chosen : mapping
        For some entries of keys, a value or a list of values; words may hold ``*`` and ``?``.

    Examples
    --------
    >>> matches({"table": "adult-12", "k": 10}, {"table": "adult-*", "k": [10, 100]})
    True
    >>> matches({"table": "nursery", "k": 10}, {"table": "adult-*"})
    False
    """
    return all(
        any(_is_alike(key[name], value) for value in (values if isinstance(values, list) else [values]))
        for name, values in chosen.items()
    )


def _is_alike(found: Any, wanted: Any) -> bool:
    if isinstance(found, str) and isinstance(wanted, str):
        return fnmatchcase(found, wanted)
    return bool(found == wanted)
