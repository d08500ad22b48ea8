# SPDX-License-Identifier: Apache-2.0
"""A generalization as SQL: one CASE expression per attribute, for PostgreSQL, DuckDB and Spark.

A column of the database must have the type that it had when the generalization was made: integers, floats, text,
dates, timestamps with or without a time zone. Text is compared as the column's collation says, which is by bytes
by default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sfumato.arguments import check_choice
from sfumato.errors import ParameterError, named
from sfumato.generalization.attributes import Attribute, CategoryAttribute, OrderedAttribute
from sfumato.generalization.naming import iso_moment

DialectName = Literal["postgresql", "duckdb", "spark"]
SqlOutput = Literal["labels", "codes"]


@dataclass(frozen=True)
class Dialect:
    """The differences between databases.

    Attributes
    ----------
    name : str
    quote : str
        What stands around identifiers.
    double : str
        The type of float64.
    naive_timestamp, zoned_timestamp : str
        The words before a timestamp without and with a time zone.
    """

    name: DialectName
    quote: str
    double: str
    naive_timestamp: str
    zoned_timestamp: str

    def identifier(self, name: str) -> str:
        """Write the name of a column."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def text(self, value: str) -> str:
        """Write a piece of text."""
        if self.name == "spark":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        doubled = value.replace("'", "''")
        if self.name == "postgresql" and "\\" in value:  # right whatever standard_conforming_strings says
            return "E'" + doubled.replace("\\", "\\\\") + "'"
        if self.name == "duckdb" and "\0" in value:
            return "(" + " || chr(0) || ".join(f"'{part}'" for part in doubled.split("\0")) + ")"
        return f"'{doubled}'"

    def number(self, value: Any) -> str:
        """Write a number; the exponent makes a float of it in every dialect, and an exact one."""
        if isinstance(value, float):
            digits = repr(value)
            return digits if "e" in digits else f"{digits}e0"
        return str(value) if abs(value) < 2**31 else f"CAST('{value}' AS BIGINT)"

    def moment(self, attribute: OrderedAttribute, microseconds: int) -> str:
        """Write the moment that begins a bucket."""
        if attribute.moment == "duration":
            return self._duration(microseconds)
        at = iso_moment(microseconds)
        if at is None:
            raise ParameterError(
                f"the attribute {attribute.name!r} has thresholds beyond the years 1 to 9999: expected moments that "
                "SQL can write. Leave those records out."
            )
        if attribute.moment == "date":
            return f"DATE '{at.date().isoformat()}'"
        if attribute.moment == "time":
            if self.name == "spark":
                raise ParameterError(
                    f"the attribute {attribute.name!r} holds times of day, which Spark has no type for: expected "
                    "numbers, text, dates or timestamps. Convert it to a number of seconds."
                )
            return f"TIME '{at.time().isoformat()}'"
        text = at.isoformat(sep=" ")
        if attribute.is_zoned:
            return f"{self.zoned_timestamp} '{text}+00:00'"
        return f"{self.naive_timestamp} '{text}'"

    def _duration(self, microseconds: int) -> str:
        if self.name == "spark":
            seconds, rest = divmod(abs(microseconds), 1_000_000)
            clock = f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"
            sign = "-" if microseconds < 0 else ""
            return f"INTERVAL '{sign}{seconds // 86_400} {clock}' DAY TO SECOND"
        return f"INTERVAL '{microseconds} microseconds'"


DIALECTS: dict[str, Dialect] = {
    "postgresql": Dialect("postgresql", '"', "DOUBLE PRECISION", "TIMESTAMP", "TIMESTAMPTZ"),
    "duckdb": Dialect("duckdb", '"', "DOUBLE", "TIMESTAMP", "TIMESTAMPTZ"),
    "spark": Dialect("spark", "`", "DOUBLE", "TIMESTAMP_NTZ", "TIMESTAMP"),
}


def select_statement(
    attributes: Sequence[Attribute],
    dialect: DialectName = "postgresql",
    *,
    table: str | None = None,
    output: SqlOutput = "labels",
) -> str:
    """Write the buckets of a table as a query, or as the list between SELECT and FROM where no table is named.

    Parameters
    ----------
    attributes : sequence of OrderedAttribute or CategoryAttribute
    dialect : {"postgresql", "duckdb", "spark"}
    table : str, optional
        The table to read; a dot separates schema and table. None: the list of columns alone.
    output : {"labels", "codes"}
    """
    chosen = checked_dialect(dialect)
    columns = [
        f"{expression} AS {chosen.identifier(name)}"
        for name, expression in case_expressions(attributes, dialect, output=output).items()
    ]
    listed = ",\n".join(columns)
    if table is None:
        return listed
    source = ".".join(chosen.identifier(part) for part in table.split("."))
    return f"SELECT\n{listed}\nFROM {source}"


def case_expressions(
    attributes: Sequence[Attribute], dialect: DialectName = "postgresql", *, output: SqlOutput = "labels"
) -> dict[str, str]:
    """Return the CASE expression of every attribute by its name."""
    chosen = checked_dialect(dialect)
    check_choice("output", output, get_args(SqlOutput))
    return {attribute.name: _expression(attribute, chosen, output) for attribute in attributes}


def checked_dialect(name: str) -> Dialect:
    """Return a dialect by its name."""
    if name not in DIALECTS:
        raise ParameterError(f"{named('dialect', name)}: expected one of {', '.join(map(repr, DIALECTS))}.")
    return DIALECTS[name]


def _expression(attribute: Attribute, dialect: Dialect, output: SqlOutput) -> str:
    results = [dialect.text(label) if output == "labels" else str(code) for code, label in enumerate(attribute.labels)]
    if not attribute.is_collected:
        return results[0]
    column = dialect.identifier(attribute.name)
    branches = [(_is_missing(attribute, column, dialect), attribute.missing)]
    if isinstance(attribute, OrderedAttribute):
        branches += _ordered_branches(attribute, column, dialect)
        last = len(attribute.cuts)
    else:
        branches += _category_branches(attribute, column, dialect)
        last = attribute.unseen
    lines = [f"  WHEN {condition} THEN {results[bucket]}" for condition, bucket in branches]
    return "\n".join(["CASE", *lines, f"  ELSE {results[last]}", "END"])


def _is_missing(attribute: Attribute, column: str, dialect: Dialect) -> str:
    """Missing is NULL and, for floats, NaN."""
    if isinstance(attribute, OrderedAttribute):
        may_be_nan = attribute.is_real
    else:
        may_be_nan = any(isinstance(value, float) for value in attribute.categories)
    test = f"{column} IS NULL"
    if may_be_nan:
        test += f" OR CAST({column} AS {dialect.double}) = CAST('NaN' AS {dialect.double})"
    return test


def _ordered_branches(attribute: OrderedAttribute, column: str, dialect: Dialect) -> list[tuple[str, int]]:
    if attribute.moment is not None:
        starts = [dialect.moment(attribute, cut + 1) for cut in attribute.cuts]
        return [(f"{column} < {start}", bucket) for bucket, start in enumerate(starts)]
    return [(f"{column} <= {dialect.number(cut)}", bucket) for bucket, cut in enumerate(attribute.cuts)]


def _category_branches(attribute: CategoryAttribute, column: str, dialect: Dialect) -> list[tuple[str, int]]:
    branches = []
    for bucket, members in enumerate(attribute.members):
        # Text with a zero character cannot be in a PostgreSQL database, so nothing can be equal to it.
        kept = [v for v in members if not (dialect.name == "postgresql" and isinstance(v, str) and "\0" in v)]
        if kept and bucket != attribute.unseen:
            listed = ", ".join(_value(value, dialect) for value in kept)
            branches.append((f"{column} IN ({listed})", bucket))
    return branches


def _value(value: Any, dialect: Dialect) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return dialect.text(value)
    if isinstance(value, float) and math.isfinite(value):
        return dialect.number(value)
    return dialect.number(int(value))
