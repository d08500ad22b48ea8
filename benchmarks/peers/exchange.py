# SPDX-License-Identifier: Apache-2.0
"""Write the one file that sfumato and a peer both measure on: plain arrays, no pickles, any numpy reads it.

Parquet would need a reader in every peer's environment. Called by the benchmarks that have a peer; each
peer's ``runner.py`` is the other end.
"""

from pathlib import Path

import numpy as np
import pandas as pd


def write_exchange(path: Path, table: pd.DataFrame, predictions: np.ndarray) -> None:
    """Write a table's columns under their positions, their names in order, and one prediction per record."""
    arrays: dict[str, np.ndarray] = {
        "names": np.asarray([str(name) for name in table.columns]),
        "predictions": np.asarray(predictions),
    }
    for position, name in enumerate(table.columns):
        column = table[name]
        is_number = pd.api.types.is_numeric_dtype(column.dtype)
        arrays[f"column_{position}"] = column.to_numpy() if is_number else column.to_numpy().astype(np.str_)
    np.savez(path, **arrays)  # type: ignore[arg-type] # its stub takes every keyword for its one option
