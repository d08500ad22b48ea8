# SPDX-License-Identifier: Apache-2.0
"""Read a hierarchy from a file, as other tools write them."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.hierarchies.hierarchy import Hierarchy


def read_hierarchy(source: Any, *, delimiter: str | None = None) -> Hierarchy:
    """Read a hierarchy from a file, or from rows that are at hand.

    Parameters
    ----------
    source : path, or iterable of rows
        A text file with one line per value: the value, then its coarser labels up to ``*``, as ARX and anjana write
        them; no header. Or the rows themselves.
    delimiter : str, optional
        What separates the labels. None: the semicolon, the tab or the comma, whichever gives every line equally many
        labels.

    Returns
    -------
    Hierarchy

    Examples
    --------
    >>> read_hierarchy([["Male", "*"], ["Female", "*"]]).values
    ('Male', 'Female')
    """
    if not isinstance(source, str | os.PathLike):
        return Hierarchy(source)
    path = Path(source)
    if not path.is_file():
        raise InputError(f"no file {path.name!r} at that place: expected a hierarchy file. Check the path.")
    try:
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError(f"the file {path.name!r} is not in UTF-8: expected text in UTF-8. Convert it.") from None
    given = _delimiter_of(lines) if delimiter is None else delimiter
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=given)]
    try:
        return Hierarchy(tuple(map(tuple, rows)))
    except InputError as error:
        raise InputError(f"the hierarchy file {path.name!r}: " + error.sentence) from None


def _delimiter_of(lines: Sequence[str]) -> str:
    """Return the separator by which all lines have equally many cells, the most cells if several do."""
    best, most = ";", 1
    for candidate in (";", "\t", ","):
        lengths = {len(row) for row in csv.reader(lines, delimiter=candidate)}
        if len(lengths) == 1 and (length := lengths.pop()) > most:
            best, most = candidate, length
    if most > 1:
        return best
    # No separator fits all lines: take the commonest, so that the error counts cells and not whole lines.
    return max((";", "\t", ","), key=lambda candidate: sum(line.count(candidate) for line in lines))
