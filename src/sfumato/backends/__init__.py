# SPDX-License-Identifier: Apache-2.0
"""Where a table lives: in memory, in Parquet files, in DuckDB, in Spark. Each gives the engine codes, never values.

Tables in memory are coded at once (`memory`). Those in files and databases are read in
blocks (`blocks`), those in Spark by its workers. All give the same codes, so all give the same groups.
"""
