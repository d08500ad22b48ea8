# SPDX-License-Identifier: Apache-2.0
"""Write a release as a table in DuckDB: created, recounted and committed in one transaction, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.backends.blocks.working_files import WorkingFiles
from sfumato.backends.duckdb.address import DuckDBAddress, parse_address
from sfumato.backends.duckdb.session import identifier, in_words, library, literal
from sfumato.errors import GuaranteeError, InputError, ParameterError, named


def check_destination(given: str | DuckDBAddress, *, replace: bool = False) -> DuckDBAddress:
    """Return the table that an address names, or raise ParameterError if it cannot be written, before any work.

    Parameters
    ----------
    given : str or DuckDBAddress
    replace : bool
        Whether a table of that name may be replaced.
    """
    address = parse_address(given)
    if address.table is None or address.path is None:
        raise ParameterError(
            f"the destination {address.text!r} is a query: expected a table to write, such as "
            "duckdb:out.db?table=released."
        )
    if not address.path.absolute().parent.is_dir():
        raise ParameterError(f"the folder of {str(address.path)!r} does not exist: expected a folder. Create it first.")
    if address.path.exists():
        with in_words(f"the database {address.path.name!r} cannot be written"), _opened(address.path) as connection:
            _check_free(connection, address, replace=replace)
    return address


def write_table(
    file: Path,
    destination: DuckDBAddress,
    keys: Sequence[str] | None,
    *,
    n_records: int,
    smallest: int = 1,
    replace: bool = False,
) -> None:
    """Create a table from a Parquet file, recount its groups with DuckDB's own ``GROUP BY``, and commit.

    A new database is made under a private name and gets its own when it is complete. In one that exists, a process
    that is killed leaves an open transaction, which DuckDB rolls back.

    Parameters
    ----------
    file : Path
        A release that was judged.
    destination : DuckDBAddress
    keys : sequence of str or None
        The quasi-identifiers, as they are called in the release; None: no group size is promised.
    n_records : int
        How many the table must have.
    smallest : int
        How many its smallest group must have.
    replace : bool
        Whether a table of that name may be replaced.

    Raises
    ------
    GuaranteeError
        When the table is not the release. There is none then.
    """
    path = destination.path
    assert path is not None and destination.table is not None
    with in_words(f"the table {destination.table!r} cannot be written, and nothing was"):
        if path.exists():
            with _opened(path) as connection:
                _create(connection, file, destination, keys, n_records, smallest, replace=replace)
            return
        with WorkingFiles(path.absolute().parent) as working:
            made = working.path / path.name
            with _opened(made) as connection:
                _create(connection, file, destination, keys, n_records, smallest, replace=replace)
            try:
                os.link(made, path)  # unlike a rename, this replaces nothing
            except FileExistsError:
                raise ParameterError(
                    f"the database {str(path)!r} was made by another process while this one was at work: expected "
                    "none. Nothing was written. Give another name, or run again."
                ) from None
            except OSError as error:
                raise InputError(
                    f"the database {str(path)!r} cannot be written: {error.strerror or 'input/output error'}. Nothing "
                    "was published."
                ) from None


def _create(
    connection: Any,
    file: Path,
    destination: DuckDBAddress,
    keys: Sequence[str] | None,
    n_records: int,
    smallest: int,
    *,
    replace: bool,
) -> None:
    connection.begin()
    try:
        name = _check_free(connection, destination, replace=replace)
        source = f"read_parquet({literal(file)}, hive_partitioning = false)"
        names = connection.sql(f"from {source}").columns
        connection.execute(f"create {'or replace ' if replace else ''}table {name} as from {source}")
        _recount(connection, name, names if keys is None else keys, n_records, smallest if keys is not None else 1)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _recount(connection: Any, name: str, keys: Sequence[str], n_records: int, smallest: int) -> None:
    by = f" group by {', '.join(map(identifier, keys))}" if keys else ""
    query = f"select sum(n)::bigint, min(n) from (select count(*) as n from {name}{by})"
    n_counted, n_least = connection.sql(query).fetchall()[0]
    if n_counted != n_records:
        raise GuaranteeError(f"{n_counted} records were written instead of {n_records}. Nothing is published.")
    if n_least < smallest:
        raise GuaranteeError(
            f"the written table has a group of {n_least} records, and the release none below {smallest}: expected the "
            "same groups. Nothing is published. Please report this."
        )


def _check_free(connection: Any, address: DuckDBAddress, *, replace: bool) -> str:
    """Return the qualified name of the table; raise ParameterError if a view or another table has the name."""
    schema, table = address.schema or "main", address.table or ""
    database = "" if address.path is None else address.path.name
    [[catalog]] = connection.sql("select current_database()").fetchall()
    schemas = connection.execute(
        "select schema_name from duckdb_schemas() where database_name = $1", [catalog]
    ).fetchall()
    if schema.lower() not in {own.lower() for (own,) in schemas}:
        raise ParameterError(
            f"the database {database!r} has no schema {schema!r}: expected one. Create it, or omit schema=."
        )
    listed = connection.execute(
        "select 'table', table_name from duckdb_tables() where database_name = $1 and lower(schema_name) = lower($2) "
        "union all "
        "select 'view', view_name from duckdb_views() where database_name = $1 and lower(schema_name) = lower($2)",
        [catalog, schema],
    ).fetchall()
    kind = next((kind for kind, own in listed if own.lower() == table.lower()), None)
    if kind == "view":
        raise ParameterError(f"{table!r} is a view: expected the name of a table to write. Give another name.")
    if kind == "table" and not replace:
        raise ParameterError(
            f"the table {table!r} exists already in the database {database!r}: expected a new one. Give another name, "
            f"or {named('replace', True)}."
        )
    return ".".join(map(identifier, (catalog, schema, table)))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a database for writing, or join the connection that this process has to it."""
    connection = library().connect(str(path))
    try:
        cursor = connection.cursor()
        yield cursor
    finally:
        connection.close()
