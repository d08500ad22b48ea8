# SPDX-License-Identifier: Apache-2.0
"""Tables in DuckDB: the verbs of `sfumato.parquet` for a table, a view, a query, or a relation.

A source is an address such as ``duckdb:people.db?table=people`` or ``duckdb:people.db?query=select ...``, or a
``duckdb.DuckDBPyRelation``. Results are those of the same table in memory. Needs the extra ``duckdb``.

Examples
--------
>>> import duckdb
>>> import sfumato
>>> people = duckdb.sql("select (range % 40) + 20 as age, range % 2 = 0 as smokes from range(200)")
>>> sfumato.duckdb.measure(people, quasi_identifiers=["age"]).k
5
"""

from sfumato.duckdb.verbs import anatomize, fit_transform, measure, release, transform
from sfumato.parquet import ParquetAnatomy, ParquetRelease, PrintedProgress

__all__ = [
    "ParquetAnatomy",
    "ParquetRelease",
    "PrintedProgress",
    "anatomize",
    "fit_transform",
    "measure",
    "release",
    "transform",
]
