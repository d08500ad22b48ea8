# SPDX-License-Identifier: Apache-2.0
"""A table, a view or a query in DuckDB as one long table that is read in blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sfumato.backends.blocks.block_table import RECORDS_AT_ONCE, in_turn, numbered, one_ahead
from sfumato.backends.blocks.working_files import WorkingFiles
from sfumato.backends.duckdb.address import EXPECTED, DuckDBAddress, parse_address
from sfumato.backends.duckdb.session import identifier, in_words, library, literal, own_connection
from sfumato.errors import InputError, ParameterError

_NAMED = 20  # tables that a message lists
_COPY = "sfumato_copy"
_TAKEN = ("memory", "system", "temp", _COPY)  # names of databases that are not free
# Types whose Arrow form is another value, or none that anything here reads.
_NOT_HANDED_OVER = ("UHUGEINT", "BIGNUM", "TIME WITH TIME ZONE", "VARIANT", "GEOMETRY", "UNION")


class DuckDBTable:
    """A table in DuckDB; a context manager that closes it and removes its working files.

    The records and their order are the same in every pass. A table in a database file is read where it is: the file is
    opened read-only, and DuckDB blocks writers meanwhile. Anything else is read once, into a database of our
    own that only its owner can read: a view or a query may give other records, or another order, the second time. So is
    a relation, and a database that this process has open for writing.

    Parameters
    ----------
    source : str, DuckDBAddress or duckdb.DuckDBPyRelation
    folder : path, optional
        Where there is room for that copy; None: where the system keeps temporary files.

    Attributes
    ----------
    n_records : int
    schema : pyarrow.Schema
    paths : list of Path
        The database file, where there is one.

    Raises
    ------
    InputError
        When there is no such table, when it cannot be read, or has no records.
    """

    words = "a table in DuckDB"
    compression = "zstd"

    def __init__(self, source: Any, *, folder: str | os.PathLike[str] | None = None) -> None:
        duckdb = library()
        address = parse_address(source) if isinstance(source, str | DuckDBAddress) else None
        if address is None and not isinstance(source, duckdb.DuckDBPyRelation):
            raise ParameterError(
                f"a source of the type {type(source).__name__}: expected an address, such as {EXPECTED}, or a "
                "duckdb.DuckDBPyRelation, such as connection.table('people')."
            )
        self.paths: list[Path] = [] if address is None or address.path is None else [address.path]
        self.name = "the relation" if address is None else address.name
        self._working = WorkingFiles(folder)
        try:
            self._connection = own_connection(self._working.path)
            try:
                self._open(source, address)
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._working.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the table."""
        self.close()

    def close(self) -> None:
        """Close the database and remove the working files; may be called again."""
        self._connection.close()
        self._working.__exit__(None, None, None)

    # -- opening -------------------------------------------------------------------------------------------------

    def _open(self, source: Any, address: DuckDBAddress | None) -> None:
        with in_words(f"{self._called} cannot be read"):
            if address is None:
                self._table = self._copied(source)
            elif address.path is None:
                self._table = self._copied_query(str(address.query))
            else:
                self._table = self._in_database(address, address.path)
            self._describe()

    @property
    def _called(self) -> str:
        if self.name.startswith("the "):
            return self.name
        return f"the table {self.name!r}"

    def _in_database(self, address: DuckDBAddress, path: Path) -> str:
        """Attach a database; return its table, or a copy of the result if it is not a table."""
        duckdb = library()
        _check_database(path)
        catalog = path.stem if path.stem.lower() not in _TAKEN else f"{path.stem}_db"
        try:
            self._connection.execute(f"attach {literal(path)} as {identifier(catalog)} (read_only)")
        except duckdb.Error as error:
            # Open in this process already, for writing: a query sees one state of it, which is copied.
            if "already attached" not in str(error):
                raise
            with duckdb.connect(str(path)) as joined:
                if address.query is not None:
                    return self._copied(joined.sql(_single_query(address.query, joined)))
                kind, name = _found(joined, joined.sql("select current_database()").fetchall()[0][0], address)
                return self._copied(joined.sql(f"from {name}"))
        self._connection.execute(f"use {identifier(catalog)}")
        if address.query is not None:
            return self._copied_query(address.query)
        kind, name = _found(self._connection, catalog, address)
        return name if kind == "table" else self._copied_query(f"from {name}")

    def _copied_query(self, query: str) -> str:
        """Run a query once, and keep the result."""
        query = _single_query(query, self._connection)
        self._check_names(self._connection.sql(query).columns)
        return self._kept(query)

    def _copied(self, relation: Any) -> str:
        """Read a relation of another connection once, and keep it."""
        self._check_names(relation.columns)
        _check_types(relation.columns, relation.types)
        stream = relation.to_arrow_reader(RECORDS_AT_ONCE)
        self._connection.register("sfumato_stream", stream)
        try:
            return self._kept("from sfumato_stream")
        finally:
            self._connection.unregister("sfumato_stream")

    def _kept(self, query: str) -> str:
        """Write the result of a query to a database that has no name while it is open, if the system allows that."""
        path = self._working.path / "copy.db"
        self._connection.execute(f"attach {literal(path)} as {_COPY}")
        with suppress(OSError):  # a process that is killed then leaves none of its records behind
            path.unlink()
        self._connection.execute(f"create table {_COPY}.main.records as {query}")
        self._connection.execute(f"checkpoint {_COPY}")  # now the file has all, and the log beside it is gone
        return f"{_COPY}.main.records"

    def _describe(self) -> None:
        described = self._connection.sql(f"from {self._table}")
        self._check_names(described.columns)
        _check_types(described.columns, described.types)
        self.schema = described.limit(0).to_arrow_table().schema
        self.n_records = int(self._connection.sql(f"select count(*) from {self._table}").fetchall()[0][0])
        if self.n_records == 0:
            raise InputError(f"{self._called} has 0 records in {len(self.schema.names)} columns: expected some.")
        self._check_moments(described)

    def _check_moments(self, described: Any) -> None:
        """Raise InputError for infinite dates and times, which in Arrow are days that do not exist."""
        moments = [
            name
            for name, kind in zip(described.columns, map(str, described.types), strict=True)
            if kind.startswith(("DATE", "TIMESTAMP"))
        ]
        if not moments:
            return
        counts = ", ".join(f"count(*) filter (isinf({identifier(name)}))" for name in moments)
        for name, n in zip(
            moments, self._connection.sql(f"select {counts} from {self._table}").fetchall()[0], strict=True
        ):
            if n:
                raise InputError(
                    f"column {name!r} contains infinity in {n} of {self.n_records} records: expected finite dates. "
                    "Replace infinity by a date or by a missing value."
                )

    def _check_names(self, names: Sequence[str]) -> None:
        folded = [name.lower() for name in names]
        repeated = next((name for name in names if folded.count(name.lower()) > 1), None)
        if repeated is not None:
            raise InputError(
                f"{self._called} has several columns named {repeated!r}: expected different names, whatever their "
                "case. Rename them."
            )

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def head(self, n: int = 1000) -> Any:
        """Return the first records."""
        with in_words(f"{self._called} cannot be read"):
            return self._connection.sql(f"from {self._table} limit {int(n)}").to_arrow_table()

    def whole(self) -> Any:
        """Return all records."""
        import pyarrow as pa

        return pa.concat_tables(list(self.batches())).unify_dictionaries()

    def batches(self, columns: Sequence[str] | None = None, *, size: int | None = None) -> Iterator[Any]:
        """Yield the records in tables of at most `size`, in order; all columns, or those named."""
        return one_ahead(self._blocks(columns, size or RECORDS_AT_ONCE))

    def each(
        self,
        work: Callable[[int, Any], Any],
        columns: Sequence[str] | None = None,
        *,
        n_threads: int = 1,
        text_as_categories: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Call a function with every block of the table, several at a time; see `BlockTable`.

        One query reads, with DuckDB's own threads: 10 million records of 13 columns in 0.7 s on two cores, as fast as
        row-id ranges in two cursors. Text comes as text: DuckDB hands over no dictionaries but those of ENUM.

        Values are counted from these blocks, not by DuckDB's ``GROUP BY``. That counts 12 columns of 10 million
        records in 1.8 to 3.2 s instead of 3.7 to 4.5 s (1 million: 0.3 s instead of 0.7 to 0.9 s), but a fit of them
        took 62 s on a busy machine: nobody would notice, and limits and codes need the blocks anyway.
        """
        return in_turn(numbered(self.batches(columns)), work, n_threads)

    def _blocks(self, columns: Sequence[str] | None, size: int) -> Iterator[Any]:
        import pyarrow as pa

        cursor = self._connection.cursor()
        try:
            with in_words(f"{self._called} cannot be read"):
                reader = cursor.sql(f"select {self._listed(columns)} from {self._table}").to_arrow_reader(size)
                held: list[Any] = []
                n_held = 0
                for batch in reader:
                    at = 0
                    while at < batch.num_rows:  # batches are of DuckDB's size
                        part = batch.slice(at, size - n_held)
                        held.append(part)
                        at, n_held = at + part.num_rows, n_held + part.num_rows
                        if n_held == size:
                            yield pa.Table.from_batches(held)
                            held, n_held = [], 0
                if held:
                    yield pa.Table.from_batches(held)
        finally:
            cursor.close()

    def _listed(self, columns: Sequence[str] | None) -> str:
        return ", ".join(map(identifier, self.names if columns is None else columns))


def _check_database(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"the database {str(path)!r} does not exist: expected a file of DuckDB. Check the path.")
    with path.open("rb") as file:
        is_database = file.read(12)[8:] == b"DUCK"
    if not is_database:
        raise InputError(
            f"the file {path.name!r} is not a database of DuckDB: expected one. To read files of other kinds, use a "
            "query, such as duckdb:?query=select * from 'people.parquet'."
        )


def _single_query(text: str, connection: Any) -> str:
    """Return the one SELECT of a text, after running statements before it that reach other databases."""
    duckdb = library()
    statements = duckdb.extract_statements(text)
    kinds = duckdb.StatementType
    *before, last = statements or [None]
    if last is None or last.type != kinds.SELECT or any(one.type not in (kinds.ATTACH, kinds.LOAD) for one in before):
        raise ParameterError(
            f"the query {text!r} is not one SELECT: expected one, after ATTACH or LOAD at most. Write it to a view, "
            "or select from a table."
        )
    for statement in before:
        connection.execute(statement.query)
    return str(last.query).strip().rstrip(";")


def _found(connection: Any, catalog: str, address: DuckDBAddress) -> tuple[str, str]:
    """Return whether an address names a table or a view, and its whole name in SQL."""
    listed = connection.execute(
        "select 'table', schema_name, table_name from duckdb_tables() where database_name = $1 and not internal "
        "union all "
        "select 'view', schema_name, view_name from duckdb_views() where database_name = $1 and not internal",
        [catalog],
    ).fetchall()
    schema, table = address.schema or "main", address.table or ""
    for kind, own_schema, own_table in listed:
        if (own_schema.lower(), own_table.lower()) == (schema.lower(), table.lower()):
            return kind, ".".join(map(identifier, (catalog, own_schema, own_table)))
    there = sorted({name if own == "main" else f"{own}.{name}" for _, own, name in listed})
    more = f" and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
    expected = f"expected one of {', '.join(map(repr, there[:_NAMED]))}{more}" if there else "it has none at all"
    where = f" in the schema {schema!r}" if address.schema else ""
    database = address.path.name if address.path else catalog
    raise InputError(f"the database {database!r} has no table or view named {table!r}{where}: {expected}.")


def _check_types(names: Sequence[str], types: Sequence[Any]) -> None:
    """Raise InputError for types without an Arrow equivalent: some would silently become other values."""
    for name, kind in zip(names, map(str, types), strict=True):
        if kind.startswith(_NOT_HANDED_OVER):
            raise InputError(
                f"column {name!r} has the type {kind.partition('(')[0]}: expected numbers, text, booleans, categories, "
                "dates, times or durations. Cast it in a query, or omit it there."
            )
