# SPDX-License-Identifier: Apache-2.0
"""Tables in CSV and Parquet files; a release is read back and verified before it appears.

``table_file`` reads and writes by the ending of the name, the ``csv_`` modules handle CSV, ``verified_output`` writes,
reads back and counts, ``publishing`` makes files appear together or not at all.
"""
