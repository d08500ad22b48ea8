# SPDX-License-Identifier: Apache-2.0
"""Addresses of tables in DuckDB, such as ``duckdb:people.db?table=people``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote

from sfumato.errors import ParameterError

SCHEME = "duckdb:"
EXPECTED = "duckdb:people.db?table=people or duckdb:people.db?query=select * from people"


@dataclass(frozen=True)
class DuckDBAddress:
    """The address of a table in DuckDB.

    Attributes
    ----------
    text : str
        As it was given.
    path : Path or None
        The database file; None for a query that needs none.
    table : str or None
        A table or a view.
    schema : str or None
        The schema of that table; None: the one that DuckDB looks in.
    query : str or None
        A query in the place of a table.

    Examples
    --------
    >>> parse_address("duckdb:people.db?table=people").table
    'people'
    >>> parse_address("duckdb:?query=select * from 'parts/*.parquet'").query
    "select * from 'parts/*.parquet'"
    >>> parse_address("duckdb:people.db?query=from%20people").query
    'from people'
    """

    text: str
    path: Path | None = None
    table: str | None = None
    schema: str | None = None
    query: str | None = None

    @property
    def name(self) -> str:
        """The table's name in messages and reports."""
        return "the query" if self.table is None else self.table

    @property
    def stem(self) -> str:
        """The stem of files made from the table."""
        return self.table or "query"

    @property
    def suffix(self) -> str:
        """The suffix of files made from the table, which keep its types."""
        return ".parquet"

    def at(self, path: Path) -> DuckDBAddress:
        """Return the same table of a database at another path."""
        return replace(self, path=path, text=f"{SCHEME}{quote(str(path))}?{self.text.partition('?')[2]}")

    def __str__(self) -> str:
        return self.text


def is_address(given: object) -> bool:
    """Return True for text that is meant as an address in DuckDB, or one that was parsed."""
    return isinstance(given, DuckDBAddress) or (isinstance(given, str) and given.lower().startswith(SCHEME))


def parse_address(given: str | DuckDBAddress) -> DuckDBAddress:
    """Parse an address.

    Parameters
    ----------
    given : str
        ``duckdb:FILE?table=NAME``, ``duckdb:FILE?schema=SCHEMA&table=NAME`` or ``duckdb:FILE?query=SELECT``. All that
        follows ``query=`` is the query. Parts without blanks may be percent-encoded; a part with a blank is taken as
        it is, so that a query can be typed as it is.

    Raises
    ------
    ParameterError
        For anything else, with what was expected.
    """
    if isinstance(given, DuckDBAddress):
        return given
    if not is_address(given):
        raise ParameterError(f"the address {given!r} does not begin with {SCHEME}: expected {EXPECTED}.")
    file, mark, rest = given[len(SCHEME) :].partition("?")
    if file.startswith("//"):
        raise ParameterError(
            f"the address {given!r} has slashes after {SCHEME}: expected a path, such as "
            f"{SCHEME}people.db?table=people or {SCHEME}/data/people.db?table=people. Remove two slashes."
        )
    path = Path(_decoded(file)) if file else None
    if rest[:6].lower() == "query=":
        query = _decoded(rest[6:]).strip()
        if not query:
            raise ParameterError(f"the address {given!r} has an empty query: expected {EXPECTED}.")
        return DuckDBAddress(given, path, query=query)
    if not mark or not rest:
        raise ParameterError(
            f"the address {given!r} names no table and no query: expected {EXPECTED}. Add ?table=NAME or ?query=SELECT."
        )
    parts: dict[str, str] = {}
    for part in rest.split("&"):
        key, equals, value = part.partition("=")
        if key not in ("table", "schema") or not equals or not value:
            raise ParameterError(
                f"the address {given!r} says {part!r}: expected table=NAME, schema=NAME or query=SELECT after the ?, "
                f"such as {EXPECTED}. Write & in a name as %26, and a query without table or schema."
            )
        if key in parts:
            raise ParameterError(f"the address {given!r} has {key}= twice: expected it once.")
        parts[key] = _decoded(value)
    if "table" not in parts:
        raise ParameterError(f"the address {given!r} has a schema but no table: expected &table=NAME, too.")
    if path is None:
        raise ParameterError(
            f"the address {given!r} names a table but no database: expected a file, such as {SCHEME}people.db?table="
            f"{parts['table']}. To read files without a database, use a query, such as "
            f"{SCHEME}?query=select * from 'people.parquet'."
        )
    return DuckDBAddress(given, path, parts["table"], parts.get("schema"))


def _decoded(part: str) -> str:
    """Return a part without percent-encoding; a part with a blank was not encoded, whatever its percent signs."""
    return part if any(letter.isspace() for letter in part) else unquote(part)
