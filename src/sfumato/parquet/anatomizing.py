# SPDX-License-Identifier: Apache-2.0
"""Anatomize Parquet files larger than memory, with the groups and orders of the same table in memory.

The files and their manifest appear together or not at all.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfumato.anatomize import Anatomizer
from sfumato.anatomize.table_division import anatomize_table
from sfumato.anatomize.tables import MANIFEST, describe_files
from sfumato.backends.blocks.anatomy import BlockAnatomies
from sfumato.backends.blocks.block_table import BlockTable
from sfumato.backends.parquet.reader import as_blocks
from sfumato.documents import named_at_the_end
from sfumato.errors import InputError, ParameterError
from sfumato.parquet.anonymizing import Paths
from sfumato.progress import Progress


@dataclass(frozen=True)
class ParquetAnatomy:
    """Tables that were written.

    Attributes
    ----------
    path : Path
        The folder with ``identifying.parquet``, ``sensitive.parquet`` (with several sensitive tables
        ``sensitive-1.parquet`` and so on) and ``manifest.json``; ``AnatomizedTable.load`` reads it.
    n_records, n_groups, n_suppressed : int
    diversity : dict of str to float
        The l that each sensitive column reaches, counted on the written files.
    """

    path: Path
    n_records: int
    n_groups: int
    n_suppressed: int
    diversity: dict[str, float]


def anatomize(
    anatomizer: Anatomizer,
    source: Paths,
    destination: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
) -> ParquetAnatomy:
    """Divide Parquet files into an identifying and sensitive ones, and fit the anatomizer.

    Parameters
    ----------
    anatomizer : Anatomizer
        Unfitted; fitted afterwards, as if it had seen the table at once.
    source : path, folder or list of paths
    destination : path
        A folder that does not exist yet. It appears when its files were recounted, or not at all.
    progress : callable, optional
        Called with the step, the records done and their number.

    Returns
    -------
    ParquetAnatomy

    Raises
    ------
    GuaranteeError
        If the table cannot be l-diverse, or the written files are not. Nothing is published then.

    Notes
    -----
    With the same ``random_state`` the files are those that ``Anatomizer.fit_transform(table).save(folder)`` writes.
    (Groups may be others, as diverse, where a sensitive column of text has over a million different values.) Memory
    grows by about 100 bytes per record, whatever the columns; disk space is needed for the identifying table twice.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from sfumato import Anatomizer
    >>> from sfumato.parquet import anatomize
    >>> people = pa.table({"age": [31, 34, 42, 47], "illness": ["flu", "cold", "flu", "gout"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(people, f"{folder}/people.parquet")
    ...     made = anatomize(Anatomizer(l=2, sensitive="illness"), f"{folder}/people.parquet", f"{folder}/shared")
    >>> made.n_groups, made.diversity
    (2, {'illness': 2.0})
    """
    final = Path(destination)
    files = as_blocks(source)
    if final.exists():
        raise ParameterError(f"{final.name!r} exists already: expected a new folder. Give another name.")
    if not final.absolute().parent.is_dir():
        raise ParameterError(f"the folder of {final.name!r} does not exist: expected a folder to write to. Create it.")
    temporary = final.with_name(f".{final.name}.unpublished-{secrets.token_hex(4)}")
    try:
        temporary.mkdir(mode=0o700)
        with named_at_the_end(temporary, final):
            made = write_anatomy(anatomizer, files, lambda name: temporary / name, final, progress=progress)
    except OSError as error:
        raise InputError(
            f"{final.name!r} cannot be written: {error.strerror or 'input/output error'}. Nothing was published."
        ) from None
    return made


def write_anatomy(
    anatomizer: Anatomizer,
    files: BlockTable,
    path_of: Callable[[str], Path],
    folder: Path,
    *,
    progress: Progress | None = None,
) -> ParquetAnatomy:
    """Write the identifying table, the sensitive ones and the manifest, and recount them.

    `path_of` says where the file of a name is written. `folder` is where the files will be. Working files lie in a
    private folder beside it while they are needed, or beside the first file where that cannot be written to.
    """
    backend = BlockAnatomies(files, lambda label: path_of(f"{label}.parquet"), folder, progress=progress)
    made = anatomize_table(anatomizer, backend)
    counts = int(made.sizes[0].sum()), anatomizer.n_groups_, made.n_suppressed
    division = made.division
    described = describe_files(division.rule.ls, division.groups, counts, "parquet", made.schemas)
    path_of(MANIFEST).write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return ParquetAnatomy(folder, *counts, made.diversity)
