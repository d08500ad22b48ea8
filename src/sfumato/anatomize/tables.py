# SPDX-License-Identifier: Apache-2.0
"""The released tables: identifying columns of the records, and sensitive values of their groups.

``Anatomizer`` makes an :class:`AnatomizedTable`; pruning, the classifiers and the command line take one.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
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
VERSION, VERSION_OF_SEVERAL = 1, 2  # of a manifest with one sensitive table and one l, and of any other
FILE = {"file": is_text, "columns": MapOf(is_text)}
"""What a manifest says of a file."""


def _is_diversity(value: Any) -> bool:
    ls = value if isinstance(value, list) else [value]
    return bool(ls) and all(is_count(l) and l >= 1 for l in ls)  # noqa: E741


def _are_groups(value: Any) -> bool:
    return is_text(value) or (isinstance(value, list) and bool(value) and all(map(is_text, value)))


_MANIFEST = {
    "l": _is_diversity,
    "group": _are_groups,
    "n_suppressed": or_none(is_count),
    "files": MapOf(FILE),
    "csv?": MapOf(is_text),
}


@dataclass(frozen=True, eq=False)
class AnatomizedTable:
    """An identifying table and sensitive ones that only the numbers of groups connect.

    Parameters
    ----------
    identifying : frame or array
        One row per record: all columns but identifiers and sensitive ones, and last the group of the record in each
        sensitive table, in their order.
    sensitive : frame or array, or tuple of these
        One row per record, in another order: some sensitive columns, and the group, which is the last column. One
        table, or several with groups and an order of their own.
    l : int or tuple of int
        No value of a sensitive column is above 1/l of any group; one for all columns, or one each, in their order.
    group : str or tuple of str
        The name of the column with the group, of one table or of each.
    n_suppressed : int
        Suppressed records.

    Notes
    -----
    *Guarantee.* An attacker who finds a person's row in the identifying table, looks at one sensitive table, and knows
    nothing else that distinguishes the records of its group, guesses any column of that table with a chance of at most
    1/l. Values are exact, so people can be recognized in the identifying table: anatomy hides who has which sensitive
    value, not who is in the table.

    *Not guaranteed.* An attacker who learns from all groups together how identifying and sensitive values are related
    can do better (see ``sfumato.attack.definetti``). Columns in one sensitive table are released in one row: one known
    value of a person may reveal the others. Columns in tables of their own are not, but an attacker who knows how they
    depend on each other can combine the groups of all tables (see ``sfumato.attack.intersect_tables``). If one column
    determines another, that reveals both; put such columns into one table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import Anatomizer
    >>> people = pa.table({"age": [31, 44, 52, 67], "ill": ["flu", "gout", "gout", "flu"]})
    >>> shared = Anatomizer(2, sensitive="ill", random_state=0).fit_transform(people)
    >>> shared.identifying.column_names, shared.sensitive.column_names
    (['age', 'group'], ['ill', 'group'])
    >>> len(shared.join())  # every person with every value of the group
    8
    """

    identifying: Any
    sensitive: Any
    l: int | tuple[int, ...]  # noqa: E741 - the literature's own letter
    group: str | tuple[str, ...] = "group"
    n_suppressed: int = 0

    @property
    def sensitive_tables(self) -> tuple[Any, ...]:
        """The sensitive tables, also where there is only one."""
        return self.sensitive if isinstance(self.sensitive, tuple) else (self.sensitive,)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the columns with groups, one per sensitive table."""
        return self.group if isinstance(self.group, tuple) else (self.group,)

    @property
    def pairs(self) -> tuple[AnatomizedTable, ...]:
        """The identifying table with each of the sensitive ones: anatomized tables of one sensitive table.

        Together they say as much as this one does.
        """
        tables = self.sensitive_tables
        if len(tables) == 1:
            return (self,)
        names = read_table(self.identifying).names
        n_own, first, found = len(names) - len(tables), 0, []
        for number, (frame, group) in enumerate(zip(tables, self.groups, strict=True)):
            n_columns = len(read_table(frame).names) - 1
            l = self.l if isinstance(self.l, int) else self.l[first : first + n_columns]  # noqa: E741
            first += n_columns
            places = [*range(n_own), n_own + number]
            own = select(self.identifying, places)
            found.append(AnatomizedTable(own, frame, l, group, self.n_suppressed))
        return tuple(found)

    @property
    def diversities(self) -> tuple[int, ...]:
        """The l of each sensitive column."""
        return (self.l,) * len(self.sensitive_columns) if isinstance(self.l, int) else self.l

    @property
    def identifying_columns(self) -> tuple[str, ...]:
        """The columns of the identifying table but the groups."""
        return read_table(self.identifying).names[: -len(self.sensitive_tables)]

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The columns of the sensitive tables but the groups, one table after the other."""
        return tuple(name for frame in self.sensitive_tables for name in read_table(frame).names[:-1])

    @property
    def n_records(self) -> int:
        """Number of records."""
        return read_table(self.identifying).n_records

    @property
    def n_groups(self) -> int:
        """Number of groups, of all sensitive tables together."""
        return sum(int(_sizes(groups_of(frame)).shape[1]) for frame in self.sensitive_tables)

    def _repr_html_(self) -> str:
        """Show the numbers of the tables in a notebook, and no records."""
        facts = [
            ("records", self.n_records),
            ("groups", self.n_groups),
            ("l", self.l if isinstance(self.l, int) else ", ".join(map(str, self.l))),
            ("identifying columns", ", ".join(self.identifying_columns)),
            ("sensitive columns", ", ".join(self.sensitive_columns)),
            ("records left out", self.n_suppressed),
        ]
        return facts_as_html("Anatomy", facts)

    def join(self) -> Any:
        """Return every identifying row once with each sensitive row of its group: naive training data.

        For groups of l records that is l rows per record, one of them true (Definition 11 of the paper). Each further
        sensitive table multiplies the rows by its own l.

        Returns
        -------
        frame of the same kind
            Columns of all tables without the groups. An array has the identifying columns first.
        """
        left = np.arange(self.n_records)
        joined = without_groups(self.identifying, len(self.sensitive_tables))
        rows = left  # of the identifying table
        for pair in self.pairs:
            own, theirs, starts = matched_groups(pair)
            n_candidates = np.diff(starts)[own[rows]]
            left = np.repeat(np.arange(len(rows)), n_candidates)
            within = np.arange(len(left)) - np.repeat(np.cumsum(n_candidates) - n_candidates, n_candidates)
            right = theirs[np.repeat(starts[own[rows]], n_candidates) + within]
            joined = side_by_side(joined, left, without_groups(pair.sensitive), right)
            rows = rows[left]
        return joined

    def check(self) -> None:
        """Recount the groups, independently of the code that made them.

        Raises
        ------
        GuaranteeError
            If a value of a sensitive column is above 1/l of a group, or the tables do not have the same groups.
        """
        for pair in self.pairs:
            check_groups(pair.identifying, pair.sensitive, pair.diversities)

    def save(self, folder: str | Path, *, format: Literal["parquet", "csv"] = "parquet") -> None:
        """Write all tables, as Parquet or CSV, and ``manifest.json`` to a new folder.

        They are called ``identifying`` and ``sensitive``, or ``sensitive-1`` and so on.

        The folder appears complete or not at all. What was written is read back and its groups are counted before.

        Parameters
        ----------
        folder : str or Path
            A folder that does not exist yet.
        format : {"parquet", "csv"}
            CSV is written with commas and in UTF-8, dates in ISO form. Categories become text.
        """
        tables = self.plain_tables()
        save_tables(folder, format, tables, self.manifest(format, tables), AnatomizedTable.load)

    def plain_tables(self) -> dict[str, Any]:
        """Return all tables by the names of their files, as Arrow tables with text for dictionaries."""
        frames = self.identifying, *self.sensitive_tables
        labels = ["identifying", *sensitive_labels(len(frames) - 1)]
        return {label: plain_table(as_arrow(frame)) for label, frame in zip(labels, frames, strict=True)}

    def manifest(self, format: str, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Describe the files: what they are called, their columns and types, l and the counts."""
        schemas = {name: table.schema for name, table in tables.items()}
        counts = self.n_records, self.n_groups, self.n_suppressed
        return describe_files(self.diversities, self.groups, counts, format, schemas)

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
        place = Path(folder)
        manifest = read_manifest(place, FORMAT, (VERSION, VERSION_OF_SEVERAL), "AnatomizedTable.save")
        check_shape(manifest, _MANIFEST, MANIFEST, "AnatomizedTable.save")
        l, group = (tuple(v) if isinstance(v, list) else v for v in (manifest["l"], manifest["group"]))  # noqa: E741
        labels = ["identifying", *sensitive_labels(len(group) if isinstance(group, tuple) else 1)]
        check_shape(manifest, {"files": dict.fromkeys(labels, FILE)}, MANIFEST, "AnatomizedTable.save")
        style = manifest.get("csv")
        identifying, *sensitive = (read_table_file(place, manifest["files"][label], style) for label in labels)
        _check_numbered(identifying, sensitive, l)
        n_suppressed = manifest["n_suppressed"]
        if n_suppressed is None:  # too few to be told
            n_suppressed = (l if isinstance(l, int) else max(l)) - 1
        loaded = cls(identifying, tuple(sensitive) if len(sensitive) > 1 else sensitive[0], l, group, n_suppressed)
        loaded.check()
        return loaded


def sensitive_labels(n_tables: int) -> list[str]:
    """Return the names of sensitive tables and of their files."""
    return ["sensitive"] if n_tables == 1 else [f"sensitive-{number}" for number in range(1, n_tables + 1)]


def describe_files(
    ls: Sequence[int],
    groups: Sequence[str],
    counts: tuple[int, int, int],
    format: str,
    schemas: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the manifest of files, given their records, groups and suppressed records, and their Arrow schemas.

    `ls` has the l of each sensitive column, `groups` the name of the group in each sensitive table.
    """
    n_records, n_groups, n_suppressed = counts
    is_same, is_one = len(set(ls)) == 1, len(groups) == 1
    return {
        "format": FORMAT,
        "version": VERSION if is_same and is_one else VERSION_OF_SEVERAL,
        "l": int(ls[0]) if is_same else [int(l) for l in ls],  # noqa: E741
        "group": groups[0] if is_one else list(groups),
        "n_records": n_records,
        "n_groups": n_groups,
        "n_suppressed": int(n_suppressed) if n_suppressed == 0 or n_suppressed >= max(ls) else None,
        "files": {name: describe_file(name, format, schema) for name, schema in schemas.items()},
    }


def describe_file(name: str, format: str, schema: Any) -> dict[str, Any]:
    """Return what a manifest says of a file."""
    return {"file": f"{name}.{format}", "columns": {field.name: str(value_type(field.type)) for field in schema}}


def _check_numbered(identifying: Any, sensitive: Sequence[Any], l: Any) -> None:  # noqa: E741
    """Raise InputError unless the last columns of tables that were read are groups, and every other one has an l."""
    import pyarrow as pa

    columns = [table.column(table.num_columns - 1) for table in sensitive if table.num_columns > 1]
    n_shown = identifying.num_columns - len(sensitive)
    columns += [identifying.column(place) for place in range(max(0, n_shown), identifying.num_columns)]
    is_whole = len(columns) == 2 * len(sensitive) and n_shown > 0
    if not is_whole or any(not pa.types.is_integer(own.type) or own.null_count for own in columns):
        raise InputError(
            "an anatomized table whose last columns are not numbers of groups: expected what AnatomizedTable.save "
            "wrote. Save the table again."
        )
    n_secrets = sum(table.num_columns - 1 for table in sensitive)
    if isinstance(l, tuple) and len(l) != n_secrets:
        raise InputError(
            f"{MANIFEST} has {len(l)} values of l for {n_secrets} sensitive columns: expected one each. Save the table "
            "again."
        )


def groups_of(frame: Any) -> NDArray[np.int64]:
    """Return the group of every row: the last column."""
    table = read_table(frame)
    groups: NDArray[np.int64] = table.column(table.names[-1]).values.astype(np.int64)
    return groups


def without_groups(frame: Any, n_groups: int = 1) -> Any:
    """Return a table without its last columns, the groups."""
    names = read_table(frame).names[:-n_groups]
    return select(frame, list(range(len(names))))


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


def check_groups(identifying: Any, sensitive: Any, ls: Sequence[int]) -> None:
    """Raise unless two tables have the same groups and no value of a sensitive column is above 1/l of one."""
    n_records = read_table(identifying).n_records
    tasks = [partial(_sizes_in, frame) for frame in (identifying, sensitive)]
    sizes = run_side_by_side(tasks, n_records)
    if sizes[0].shape != sizes[1].shape or (sizes[0] != sizes[1]).any():
        raise GuaranteeError(
            "the identifying and the sensitive table do not have the same numbers of records in the same groups. "
            "Nothing is released; anatomize the original table again."
        )
    *names, group = read_table(sensitive).names
    for name, l in zip(names, ls, strict=True):  # noqa: E741
        if diversity_of(sensitive, group, name, n_threads=thread_count(-1)) < l:
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


def save_tables(
    folder: str | Path,
    format: str,
    tables: Mapping[str, Any],
    manifest: Mapping[str, Any],
    load: Callable[[Path], Any],
) -> None:
    """Write Arrow tables and their manifest to a new folder, which appears complete or not at all.

    `load` reads the folder back and raises if anything is not as it should be.
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
            for name, table in tables.items():
                _write(table, temporary / f"{name}.{format}", format)
            (temporary / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
            load(temporary)
    except OSError as error:
        raise InputError(
            f"{final.name!r} cannot be written: {error.strerror or 'input/output error'}. Nothing was written."
        ) from None


def read_manifest(folder: Path, expected: str, versions: Sequence[int], wrote: str) -> dict[str, Any]:
    """Read the manifest of a folder, which must be of a format and version."""
    try:
        manifest = parse_json((folder / MANIFEST).read_bytes(), wrote)
    except (OSError, InputError):
        raise InputError(
            f"{folder.name!r} has no readable {MANIFEST}: expected a folder that {wrote} wrote. Save the table again."
        ) from None
    if manifest.get("format") != expected or manifest.get("version") not in versions:
        raise InputError(
            f"{MANIFEST} describes something else: expected {expected!r}, version {' or '.join(map(str, versions))}. "
            "Save the table again."
        )
    return manifest


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


def read_table_file(folder: Path, part: Mapping[str, Any], style: Mapping[str, str] | None = None) -> Any:
    """Read a file as its manifest describes it."""
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
