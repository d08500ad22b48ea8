# SPDX-License-Identifier: Apache-2.0
"""The index of a pandas frame, which leaves with a release although it is no column; anonymizers call this."""

from __future__ import annotations

import warnings
from typing import Any

from sfumato.errors import PrivacyWarning

_FEWEST_RECORDS = 10  # below, every index is near unique


def warn_of_telling_index(frame: Any) -> None:
    """Warn when the index of a pandas frame is near unique and more than whole numbers, such as names or dates."""
    if not type(frame).__module__.startswith("pandas") or len(frame) < _FEWEST_RECORDS:
        return
    index = frame.index
    numbered = [level for level in range(index.nlevels) if index.get_level_values(level).inferred_type == "integer"]
    if len(numbered) == index.nlevels:
        return
    telling = index.droplevel(numbered).dropna() if numbered else index.dropna()
    n_single = int((~telling.duplicated(keep=False)).sum())
    if 2 * n_single > len(telling):
        warnings.warn(
            "the index of the frame leaves as it is and more than half of its entries occur exactly once: expected an "
            "index that points at nobody. Use .reset_index(drop=True) before, or on the result.",
            PrivacyWarning,
            stacklevel=3,
        )
