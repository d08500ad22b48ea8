# SPDX-License-Identifier: Apache-2.0
"""``measure`` for Parquet files that are larger than memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sfumato.arguments import as_list
from sfumato.backends.blocks.groups import MOST_HELD, MeasurableBlocks
from sfumato.backends.parquet.reader import ParquetFiles, as_blocks
from sfumato.measurement import Measurement
from sfumato.measurement.measurement import MissingPolicy
from sfumato.measurement.measuring import Names, measure_table
from sfumato.parquet.anonymizing import Paths
from sfumato.progress import Progress


def measure(
    source: Paths,
    quasi_identifiers: Names | None = None,
    sensitive: Names | None = None,
    *,
    population: Any = None,
    weights: str | int | None = None,
    unit: str | int | None = None,
    missing: MissingPolicy = "value",
    categorical_features: Names | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    most_held: int = MOST_HELD,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """Measure how well people hide in Parquet files, exactly, whatever their size.

    Parameters
    ----------
    source : path, folder or list of paths
    quasi_identifiers, sensitive, unit, missing, categorical_features, hierarchies
        As of :func:`sfumato.measure`.
    population : path, folder, frame or int, optional
        The people the table was drawn from: files or a table with the quasi-identifiers in the same form, or only
        their number.
    weights : name or position of a column, optional
        Survey weights: how many people of the population each record stands for.
    most_held : int
        Records that are grouped in memory at once. A group that has more is held whole.
    scratch : path, optional
        A folder with room for the codes of all records, twice; a few bytes per value. None: the system's
        folder for temporary files.
    progress : callable, optional
        Called with the step, the records done and their number.

    Returns
    -------
    Measurement
        Equal to that of the same table in memory; averages may differ in their last digits.

    Notes
    -----
    Memory holds the distinct values of each column, and with ``weights`` or ``missing="wildcard"`` some numbers per
    group. Criteria on text with more than a million distinct values are not evaluated; the reason is given.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from sfumato.parquet import measure
    >>> people = pa.table({"age": [30, 30, 41, 41, 52], "disease": ["flu", "flu", "flu", "cold", "cold"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(people, f"{folder}/people.parquet")
    ...     found = measure(folder, quasi_identifiers=["age"], sensitive=["disease"])
    >>> found.k, found.uniqueness.n_unique, found.prosecutor.average
    (1, 1, 0.6)
    """
    table = MeasurableBlocks(
        as_blocks(source),
        categorical=as_list(categorical_features),
        most_held=most_held,
        scratch=scratch,
        progress=progress,
    )
    return measure_table(
        table,
        quasi_identifiers,
        sensitive,
        population=ParquetFiles(population) if _are_paths(population) else population,
        weights=weights,
        unit=unit,
        missing=missing,
        hierarchies=hierarchies,
    )


def _are_paths(given: Any) -> bool:
    if isinstance(given, list | tuple):
        return all(isinstance(path, str | os.PathLike) for path in given)
    return isinstance(given, str | os.PathLike)
