# SPDX-License-Identifier: Apache-2.0
"""The index of a pandas frame, which leaves with a release although it is no column; anonymizers call this."""

from __future__ import annotations

import warnings
from typing import Any

from sfumato.errors import PrivacyWarning

_FEWEST_RECORDS = 10  # below, every index is near unique
_LARGEST_ROW_NUMBER = 100_000_000  # a table of more rows is not held in memory


def warn_of_telling_index(frame: Any) -> None:
    """Warn when the index of a pandas frame may identify people.

    It is near unique, and more than row numbers: text, dates, or whole numbers that have a name or many digits.
    """
    if not type(frame).__module__.startswith("pandas") or len(frame) < _FEWEST_RECORDS:
        return
    index = frame.index
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    numbered = [place for place, level in enumerate(levels) if _are_row_numbers(level)]
    if len(numbered) == index.nlevels:
        return
    telling = index.droplevel(numbered).dropna() if numbered else index.dropna()
    n_single = int((~telling.duplicated(keep=False)).sum())
    if 2 * n_single > len(telling):
        warnings.warn(
            f"the index of the frame is kept and {n_single / len(telling):.0%} of its entries are unique: an attacker "
            "who knows a person's entry finds the record. Use .reset_index(drop=True) before, or on the result.",
            PrivacyWarning,
            stacklevel=3,
        )


def _are_row_numbers(level: Any) -> bool:
    """Return True if labels are what pandas itself numbers rows by, or some of those numbers in any order."""
    return level.inferred_type == "integer" and level.name is None and bool(level.max() < _LARGEST_ROW_NUMBER)
