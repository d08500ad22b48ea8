# SPDX-License-Identifier: Apache-2.0
"""Tables in DuckDB: a table, a view, or a query, which can reach files and attached databases."""
