# SPDX-License-Identifier: Apache-2.0
"""Tables in files: CSV and Parquet in, and out only after what was written has been read back and judged.

``table_file`` reads and writes by the ending of the name, the ``csv_`` modules know CSV, ``verified_output`` writes,
reads back and counts, ``publishing`` makes files appear all at once or not at all.
"""
