# SPDX-License-Identifier: Apache-2.0
"""Tables in DuckDB: a table, a view, a query, or whatever a query can reach, such as files and attached databases."""
