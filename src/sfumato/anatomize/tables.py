# SPDX-License-Identifier: Apache-2.0
"""The two released tables: identifying columns of the records, and sensitive values of their groups.

``Anatomizer`` makes an :class:`AnatomizedTable`; pruning, the classifiers and the command line take one.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import thread_count
from sfumato.documents import MapOf, check_shape, is_count, is_text, named_at_the_end, or_none, parse_json
from sfumato.errors import GuaranteeError, InputError, ParameterError, named
from sfumato.frames import read_table
from sfumato.frames.arrow_tables import value_type
from sfumato.frames.assembling import as_arrow, select, side_by_side
from sfumato.grouping import sort_groups
from sfumato.notebooks import facts_as_html
from sfumato.threads import run_side_by_side
from sfumato.verification import diversity_of

MANIFEST = "manifest.json"
FORMAT = "sfumato anatomized table"
VERSION = 1
_FILE = {"file": is_text, "columns": MapOf(is_text)}
_MANIFEST = {
    "l": lambda value: is_count(value) and value >= 1,
    "group": is_text,
    "n_suppressed": or_none(is_count),
    "files": {"identifying": _FILE, "sensitive": _FILE},
    "csv?": MapOf(is_text),
}


@dataclass(frozen=True, eq=False)
class AnatomizedTable:
    """An identifying and a sensitive table that only the number of a group connects.

    Parameters
    ----------
    identifying : frame or array
        One row per record: all columns but identifiers and sensitive ones, and the group, which is the last column.
    sensitive : frame or array
        One row per record, in another order: the sensitive columns, and the group, which is the last column.
    l : int
        No value of a sensitive column is above 1/l of any group.
    group : str
        The name of the column with the group.
    n_suppressed : int
        Suppressed records.

    Notes
    -----
    *Guarantee.* An attacker who finds a person's row in the identifying table, and knows nothing else that
    distinguishes the records of its group, guesses any sensitive column of that person with a chance of at most 1/l.
    Values are exact, so people can be recognized in the identifying table: anatomy hides who has which sensitive value,
    not who is in the table. An attacker who learns from all groups together how identifying and sensitive values are
    related can do better (see ``sfumato.attack.definetti``). One known sensitive value of a person may reveal the
    others of its row.
    """

    identifying: Any
    sensitive: Any
    l: int  # noqa: E741 - the literature's own letter
    group: str = "group"
    n_suppressed: int = 0

    @property
    def identifying_columns(self) -> tuple[str, ...]:
        """The columns of the identifying table but the group."""
        return read_table(self.identifying).names[:-1]

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The columns of the sensitive table but the group."""
        return read_table(self.sensitive).names[:-1]

    @property
    def n_records(self) -> int:
        """Number of records."""
        return read_table(self.identifying).n_records

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(_sizes(groups_of(self.sensitive)).shape[1])

    def _repr_html_(self) -> str:
        """Show the numbers of both tables in a notebook, and no records."""
        facts = [
            ("records", self.n_records),
            ("groups", self.n_groups),
            ("l", self.l),
            ("identifying columns", ", ".join(self.identifying_columns)),
            ("sensitive columns", ", ".join(self.sensitive_columns)),
            ("records left out", self.n_suppressed),
        ]
        return facts_as_html("Anatomy", facts)

    def join(self) -> Any:
        """Return every identifying row once with each sensitive row of its group: naive training data.

        For groups of l records that is l rows per record, one of them true (Definition 11 of the paper).

        Returns
        -------
        frame of the same kind
            Columns of both tables without the group. An array has the identifying columns first.
        """
        own, theirs, starts = matched_groups(self)
        n_candidates = np.diff(starts)[own]
        left = np.repeat(np.arange(len(own)), n_candidates)
        within = np.arange(len(left)) - np.repeat(np.cumsum(n_candidates) - n_candidates, n_candidates)
        right = theirs[np.repeat(starts[own], n_candidates) + within]
        return side_by_side(without_group(self.identifying), left, without_group(self.sensitive), right)

    def check(self) -> None:
        """Recount the groups, independently of the code that made them.

        Raises
        ------
        GuaranteeError
            If a value of a sensitive column is above 1/l of a group, or the tables do not have the same groups.
        """
        check_groups(self.identifying, self.sensitive, self.l)

    def save(self, folder: str | Path, *, format: Literal["parquet", "csv"] = "parquet") -> None:
        """Write ``identifying`` and ``sensitive``, as Parquet or CSV, and ``manifest.json`` to a new folder.

        The folder appears complete or not at all. What was written is read back and its groups are counted before.

        Parameters
        ----------
        folder : str or Path
            A folder that does not exist yet.
        format : {"parquet", "csv"}
            CSV is written with commas and in UTF-8, dates in ISO form. Categories become text.
        """
        if format not in ("parquet", "csv"):
            raise ParameterError(f"{named('format', format)}: expected 'parquet' or 'csv'.")
        final = Path(folder)
        if final.exists():
            raise ParameterError(f"{final.name!r} exists already: expected a new folder. Give another name.")
        if not final.absolute().parent.is_dir():
            raise ParameterError(f"{str(folder)!r} lies in a folder that does not exist. Create that first.")
        temporary = final.with_name(f"{final.name}.unfinished-{secrets.token_hex(4)}")
        temporary.mkdir(mode=0o700)
        try:
            with named_at_the_end(temporary, final):
                tables = {name: plain_table(as_arrow(getattr(self, name))) for name in ("identifying", "sensitive")}
                for name, table in tables.items():
                    _write(table, temporary / f"{name}.{format}", format)
                manifest = self.manifest(format, tables)
                (temporary / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
                AnatomizedTable.load(temporary)
        except OSError as error:
            raise InputError(
                f"{final.name!r} cannot be written: {error.strerror or 'input/output error'}. Nothing was written."
            ) from None

    def manifest(self, format: str, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Describe the files: what they are called, their columns and types, l and the counts."""
        schemas = {name: table.schema for name, table in tables.items()}
        counts = self.n_records, self.n_groups, self.n_suppressed
        return describe_files(self.l, self.group, counts, format, schemas)

    @classmethod
    def load(cls, folder: str | Path) -> AnatomizedTable:
        """Read what `save` or ``sfumato anatomize`` wrote, as Arrow tables, and count its groups again.

        Raises
        ------
        InputError
            When the folder has no such files.
        GuaranteeError
            When the files do not have the l of their manifest.
        """
        import pyarrow as pa

        place = Path(folder)
        try:
            manifest = parse_json((place / MANIFEST).read_bytes(), "AnatomizedTable.save")
        except (OSError, InputError):
            raise InputError(
                f"{place.name!r} has no readable {MANIFEST}: expected a folder that an anatomized table was saved to."
            ) from None
        if manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
            raise InputError(
                f"{MANIFEST} describes something else: expected {FORMAT!r}, version {VERSION}. Save the table again."
            )
        check_shape(manifest, _MANIFEST, MANIFEST, "AnatomizedTable.save")
        files, l, group, n_suppressed = (manifest[name] for name in ("files", "l", "group", "n_suppressed"))  # noqa: E741
        tables = [_read(place, files[name], manifest.get("csv")) for name in ("identifying", "sensitive")]
        numbered = [t for t in tables if t.num_columns and pa.types.is_integer(t.schema.types[-1])]
        if len(numbered) < 2 or any(table.column(table.num_columns - 1).null_count for table in numbered):
            raise InputError(
                "an anatomized table whose last columns are not numbers of groups: expected what AnatomizedTable.save "
                "wrote. Save the table again."
            )
        loaded = cls(tables[0], tables[1], l, group, l - 1 if n_suppressed is None else n_suppressed)
        loaded.check()
        return loaded


def describe_files(
    l: int,  # noqa: E741
    group: str,
    counts: tuple[int, int, int],
    format: str,
    schemas: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the manifest of two files, given their records, groups and suppressed records, and their Arrow schemas."""
    n_records, n_groups, n_suppressed = counts
    return {
        "format": FORMAT,
        "version": VERSION,
        "l": int(l),
        "group": group,
        "n_records": n_records,
        "n_groups": n_groups,
        "n_suppressed": int(n_suppressed) if n_suppressed == 0 or n_suppressed >= l else None,
        "files": {
            name: {
                "file": f"{name}.{format}",
                "columns": {field.name: str(value_type(field.type)) for field in schema},
            }
            for name, schema in schemas.items()
        },
    }


def groups_of(frame: Any) -> NDArray[np.int64]:
    """Return the group of every row: the last column."""
    table = read_table(frame)
    groups: NDArray[np.int64] = table.column(table.names[-1]).values.astype(np.int64)
    return groups


def without_group(frame: Any) -> Any:
    """Return a table without its last column, the group."""
    names = read_table(frame).names[:-1]
    return select(frame, list(names), list(range(len(names))))


def matched_groups(table: AnatomizedTable) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the group of every identifying row, the sensitive rows sorted by group, and where each group starts."""
    theirs = groups_of(table.sensitive)
    own = groups_of(table.identifying)
    highest = int(theirs.max())
    if int(theirs.min()) < 0 or highest > 4 * len(theirs):  # numbered elsewhere
        names, theirs = np.unique(theirs, return_inverse=True)
        own, highest = np.searchsorted(names, own), len(names) - 1
    order, starts = sort_groups(theirs, highest + 1)
    return own, order, starts


def check_groups(identifying: Any, sensitive: Any, l: int) -> None:  # noqa: E741
    """Raise unless both tables have the same groups and no sensitive value is above 1/l of one."""
    n_records = read_table(identifying).n_records
    tasks = [partial(_sizes_in, frame) for frame in (identifying, sensitive)]
    sizes = run_side_by_side(tasks, n_records)
    if sizes[0].shape != sizes[1].shape or (sizes[0] != sizes[1]).any():
        raise GuaranteeError(
            "the identifying and the sensitive table do not have the same numbers of records in the same groups. "
            "Nothing is released; anatomize the original table again."
        )
    names = read_table(sensitive).names
    for name in names[:-1]:
        reached = diversity_of(sensitive, names[-1], name, n_threads=thread_count(-1))
        if reached < l:
            raise GuaranteeError(
                f"l = {l} does not hold: a group has a value of {name!r} in more than 1/{l} of its records. Nothing "
                "is released; please report this if sfumato made the groups."
            )


def _sizes_in(frame: Any) -> NDArray[np.int64]:
    return _sizes(groups_of(frame))


def _sizes(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number and its count for every group."""
    if int(group.min()) >= 0 and int(group.max()) < 4 * len(group):
        counts = np.bincount(group)
        present = np.flatnonzero(counts)
        return np.stack([present, counts[present]])
    return np.stack(np.unique(group, return_counts=True))


def plain_table(table: Any) -> Any:
    """Return an Arrow table with text for dictionaries and without metadata, which may describe the people in it."""
    import pyarrow as pa

    columns = {
        field.name: table.column(field.name).cast(value_type(field.type))
        if pa.types.is_dictionary(field.type)
        else table.column(field.name)
        for field in table.schema
    }
    return pa.table(columns)


def _write(table: Any, path: Path, format: str) -> None:
    import pyarrow as pa

    if format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression="zstd")
        return
    from pyarrow import csv

    try:
        csv.write_csv(table, path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"a column of {path.stem!r} has a type that CSV has no form for. Save as Parquet instead."
        ) from None


def _read(folder: Path, part: Mapping[str, Any], style: Mapping[str, str] | None) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / Path(part["file"]).name
    try:
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                table = file.read()
        else:
            table = _read_csv(path, part["columns"], style or {})
    except (OSError, ValueError, TypeError, LookupError, pa.ArrowException):
        raise InputError(f"{path.name!r} is missing, damaged or not what its manifest says. Save it again.") from None
    if table.column_names != list(part["columns"]):
        raise InputError(f"{path.name!r} has other columns than its manifest says. Save it again.")
    return table


def _read_csv(path: Path, columns: Mapping[str, str], style: Mapping[str, str]) -> Any:
    """Read by the types of the manifest, so that codes such as 007 stay text."""
    import pyarrow as pa
    from pyarrow import csv

    types = {name: _type_named(text) for name, text in columns.items()}
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(encoding=style.get("encoding", "utf8")),
        parse_options=csv.ParseOptions(delimiter=style.get("separator", ","), newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=types,
            null_values=["", *([style["missing"]] if style.get("missing") else [])],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            decimal_point=style.get("decimal", "."),
            true_values=["true", "True"],
            false_values=["false", "False"],
        ),
    ).cast(pa.schema(types))


def _type_named(text: str) -> Any:
    import pyarrow as pa

    for kind in (pa.date32(), pa.time64("us"), pa.time64("ns"), pa.large_string(), pa.string()):
        if text == str(kind):
            return kind
    if text.startswith("timestamp["):
        unit, _, zone = text[len("timestamp[") : -1].partition(", tz=")
        return pa.timestamp(unit, zone or None)
    return pa.type_for_alias(text)
