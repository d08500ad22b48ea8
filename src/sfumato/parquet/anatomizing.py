# SPDX-License-Identifier: Apache-2.0
"""Anatomize a table in Parquet files that is larger than memory: the groups and the two orders of the same in memory.

Held per record are a number for each sensitive value, its group and a place in either order; the records themselves
pass through private files, once for each of the two tables, and end in files that appear together or not at all.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from sfumato.anatomize import Anatomizer
from sfumato.anatomize.tables import MANIFEST, describe_files
from sfumato.backends.blocks.many_values import ManyValues
from sfumato.backends.blocks.reordering import write_in_order
from sfumato.backends.blocks.table import BlockTable
from sfumato.backends.blocks.value_codes import ValueCodes, read_for_counting
from sfumato.backends.blocks.working_files import WorkingFiles
from sfumato.backends.parquet.reader import ParquetFiles, as_blocks
from sfumato.documents import named_at_the_end
from sfumato.errors import GuaranteeError, InputError, ParameterError
from sfumato.frames import Table, read_table
from sfumato.frames.arrow_tables import value_type
from sfumato.parquet.anonymizing import Paths
from sfumato.progress import Progress
from sfumato.verification import diversity_of

RECOUNTED_AT_ONCE = 8_000_000
"""Records whose groups are recounted together."""


@dataclass(frozen=True)
class ParquetAnatomy:
    """Two tables that were written.

    Attributes
    ----------
    path : Path
        The folder with ``identifying.parquet``, ``sensitive.parquet`` and ``manifest.json``;
        ``AnatomizedTable.load`` reads it.
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
    """Divide Parquet files in two tables, and fit the anatomizer.

    Parameters
    ----------
    anatomizer : Anatomizer
        Unfitted; fitted afterwards, as if it had seen the table at once.
    source : path, folder or list of paths
    destination : path
        A folder that does not exist yet. It appears when its files were recounted, or not at all.
    progress : callable, optional
        Called with what is being done, the records done and their number.

    Returns
    -------
    ParquetAnatomy

    Raises
    ------
    GuaranteeError
        When the table cannot be l-diverse, or what was written is not. Nothing is published then.

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
            paths = [temporary / name for name in ("identifying.parquet", "sensitive.parquet", MANIFEST)]
            made = write_anatomy(anatomizer, files, paths, final, progress=progress)
    except OSError as error:
        raise InputError(
            f"{final.name!r} cannot be written: {error.strerror or 'input/output error'}. Nothing was published."
        ) from None
    return made


def write_anatomy(
    anatomizer: Anatomizer,
    files: BlockTable,
    paths: Sequence[Path],
    folder: Path,
    *,
    progress: Progress | None = None,
) -> ParquetAnatomy:
    """Write the identifying table, the sensitive table and the manifest to these paths, and recount them.

    `folder` is where the files will be. Working files lie in a private folder beside it while they are needed, or
    beside the first path where that cannot be written to.
    """
    identifying, sensitive, manifest = paths
    anatomizer._check_parameters()
    head = files.head(1000)
    validate_data(anatomizer, head, skip_check_array=True)
    table = read_table(head, categorical=anatomizer.categorical_features or ())
    names = anatomizer._sensitive(table)
    anatomizer._check_rest(table, names)
    hidden = [*names, *anatomizer._identifiers(table)]
    # Not in the folder itself: what a killed process leaves there could be shared with it, and puts records together.
    beside = folder.absolute().parent
    with WorkingFiles(beside if os.access(beside, os.W_OK) else identifying.parent) as working:
        job = _Job(files, table, progress)
        random = anatomizer._random()
        orders = random.spawn(2)
        group = anatomizer._grouped(job.codes(names, working), names, random)
        kept = {identifying: [name for name in files.names if name not in hidden], sensitive: names}
        schemas = {}
        for (path, columns), order in zip(kept.items(), orders, strict=True):
            place = _places(order.permutation(files.n_records), group)
            schemas[path.stem] = job.write(path, columns, place, group, anatomizer.group, working)
    reached = _recounted(identifying, sensitive, int(anatomizer.l), anatomizer.n_groups_, progress)
    n_records = int(anatomizer.group_sizes_.sum())
    counts = n_records, anatomizer.n_groups_, anatomizer.n_suppressed_
    described = describe_files(
        anatomizer.l, anatomizer.group, counts, "parquet",
        dict(zip(("identifying", "sensitive"), schemas.values(), strict=True)),
    )  # fmt: skip
    manifest.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return ParquetAnatomy(folder, *counts, reached)


class _Job:
    def __init__(self, files: BlockTable, table: Table, progress: Progress | None) -> None:
        self.files, self.categorical, self.progress = files, table.categorical, progress

    def _told(self, what: str, names: Sequence[str]) -> Iterator[Any]:
        done = 0
        for batch in self.files.batches(names):
            if self.progress is not None:
                self.progress(what, done, self.files.n_records)
            yield batch
            done += batch.num_rows
        if self.progress is not None:
            self.progress(what, done, self.files.n_records)

    def codes(self, names: Sequence[str], working: WorkingFiles) -> NDArray[np.int32]:
        """Return a number from 0 for every sensitive value, in the order of the values, missing last."""
        values = [ValueCodes(name) for name in names]
        for batch in self._told("counting values", names):
            table = read_for_counting(batch, self.categorical)
            for own in values:
                own.add(table.column(own.name, for_counting=True))
        for own in values:
            own.close()
        many = {v.name: ManyValues(working, self.files.n_records, 1 << 23) for v in values if v.is_on_disk}
        codes = np.empty((self.files.n_records, len(names)), np.int32, order="F")
        start = 0
        for batch in self._told("coding", names):
            table = read_for_counting(batch, self.categorical)
            for place, own in enumerate(values):
                column = table.column(own.name, for_counting=True)
                if own.name in many:
                    many[own.name].add(column)
                else:
                    codes[start : start + batch.num_rows, place] = own.encode(column)
            start += batch.num_rows
        for place, own in enumerate(values):
            column_codes = codes[:, place]
            if own.name in many:
                column_codes[:] = np.concatenate(list(many[own.name].finish().chunks()))
            counts = np.bincount(column_codes)
            rank = (np.cumsum(counts > 0) - 1 - (counts[0] > 0)).astype(np.int64)
            rank[0] = rank[-1] + 1
            if own.name not in many:
                _, rank = own.in_order(counts, self.files.schema.field(own.name).type)
            column_codes[:] = rank.astype(np.int32)[column_codes]
        return np.ascontiguousarray(codes)

    def write(
        self,
        path: Path,
        names: Sequence[str],
        place: NDArray[np.integer[Any]],
        group: NDArray[np.int64],
        group_name: str,
        working: WorkingFiles,
    ) -> Any:
        """Write some columns and the group, in the order of the places; return the schema of the file."""
        import pyarrow as pa

        fields = [pa.field(name, value_type(self.files.schema.field(name).type)) for name in names]
        schema = pa.schema([*fields, pa.field(group_name, pa.int64())])

        def with_group() -> Iterator[Any]:
            start = 0
            for batch in self._told(f"writing {path.stem}", names):
                own = group[start : start + batch.num_rows]
                start += batch.num_rows
                plain = [batch.column(field.name).cast(field.type) for field in fields]
                yield pa.table([*plain, pa.array(own, pa.int64())], schema=schema)

        write_in_order(with_group(), place, schema, path, working.path)
        return schema


def _places(order: NDArray[np.int64], group: NDArray[np.int64]) -> NDArray[Any]:
    """Return the place of every record in an order, -1 for those left out."""
    rows = order[group[order] >= 0] if (group < 0).any() else order
    place = np.full(len(group), -1, np.int32 if len(group) < 2**31 else np.int64)
    place[rows] = np.arange(len(rows), dtype=place.dtype)
    return place


def _recounted(
    identifying: Path,
    sensitive: Path,
    l: int,  # noqa: E741
    n_groups: int,
    progress: Progress | None,
) -> dict[str, float]:
    """Read both files and count their groups with nothing of what made them; return the l that each column reaches."""
    import pyarrow as pa

    read = ParquetFiles(identifying), ParquetFiles(sensitive)
    group = read[1].names[-1]
    sizes = []
    for own in read:
        counted = np.zeros(n_groups, np.int64)
        for batch in own.batches([group]):
            counted += np.bincount(batch.column(group).to_numpy(), minlength=n_groups)
        sizes.append(counted)
    if (sizes[0] != sizes[1]).any() or not sizes[0].all():
        raise GuaranteeError(
            "the identifying and the sensitive file do not have the same numbers of records in the same groups. "
            "Nothing is published; please report this."
        )
    # So many groups at a time that their records fit memory.
    ends = np.searchsorted(np.cumsum(sizes[1]), np.arange(0, read[1].n_records, RECOUNTED_AT_ONCE))
    limits = np.unique([0, *ends.tolist(), n_groups]).tolist()
    reached = dict.fromkeys(read[1].names[:-1], float("inf"))
    for number, (first, stop) in enumerate(pairwise(limits)):
        for name in reached:
            parts = []
            for batch in read[1].batches([name, group]):
                own = batch.column(group).to_numpy()
                parts.append(batch.filter(pa.array((own >= first) & (own < stop))))
            reached[name] = min(reached[name], diversity_of(pa.concat_tables(parts), group, name))
        if progress is not None:
            n_records = read[1].n_records
            progress("recounting", n_records * (number + 1) // (len(limits) - 1), n_records)
    for name, value in reached.items():
        if value < l:
            raise GuaranteeError(
                f"l = {l} does not hold: a group of the written file has a value of {name!r} in more than 1/{l} of "
                "its records. Nothing is published; please report this."
            )
    return reached
