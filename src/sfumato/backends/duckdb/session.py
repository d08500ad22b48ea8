# SPDX-License-Identifier: Apache-2.0
"""Private connections to DuckDB, errors of DuckDB as InputError, and names and paths in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, MissingExtraError

MEMORY_SHARE = "25%"
"""The share of memory that DuckDB may use before it writes to its working files."""


def library() -> Any:
    """Return the package duckdb, or raise an error that says how to install it."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError(
            "duckdb is not installed: expected it for tables in DuckDB. Install it with: pip install 'sfumato[duckdb]'"
        ) from error
    return duckdb


def own_connection(folder: Path) -> Any:
    """Return a private connection, with working files in a private folder, that keeps the order of records.

    Databases are attached to it, so that several readers of one file have settings of their own.
    """
    settings = {"temp_directory": str(folder), "preserve_insertion_order": "true", "memory_limit": MEMORY_SHARE}
    connection = library().connect(":memory:", config=settings)
    connection.execute("set TimeZone = 'UTC'")  # moments are the same whatever the machine's own zone
    return connection


def identifier(name: str) -> str:
    """Return a name as a quoted SQL identifier.

    Examples
    --------
    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str | Path) -> str:
    """Return text as an SQL literal."""
    return "'" + str(text).replace("'", "''") + "'"


@contextmanager
def in_words(what: str) -> Iterator[None]:
    """Raise InputError for errors of DuckDB; messages that may show values of records are reduced to their kind.

    Parameters
    ----------
    what : str
        What could not be done, such as ``"the table 'people' cannot be read"``.
    """
    duckdb = library()
    try:
        yield
    except (duckdb.ParserException, duckdb.CatalogException, duckdb.BinderException, duckdb.IOException) as error:
        said = str(error).strip().partition("\n")[0]
        if "lock on file" in said:
            raise InputError(
                f"{what}: another process has the database open for writing. Expected a database that no process "
                "writes to. Close it there, or give a copy."
            ) from None
        raise InputError(f"{what}: DuckDB says {_without_kind(said)!r}. Correct the address or the query.") from None
    except duckdb.Error as error:
        raise InputError(
            f"{what}: DuckDB stopped with {type(error).__name__}. Its message is not shown, since it may hold values "
            "of records. Run the query in DuckDB to see it."
        ) from None


def _without_kind(said: str) -> str:
    kind, _, rest = said.partition("Error: ")
    return rest if rest and len(kind) < 30 else said
