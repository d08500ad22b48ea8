# SPDX-License-Identifier: Apache-2.0
"""The edge of the library: any frame or array in, columns out, and the same kind of frame back.

The only folder that knows narwhals, pandas and polars. Estimators call :func:`read_table` on what the user hands in,
take :class:`~sfumato.columns.Column` objects from the table one by one, and call :meth:`Table.replaced` with one value
per group to get a frame of the user's own kind, with its types, its index and its order of columns.

- *number* (int64 or float64): integers, floats and decimals, also nullable and Arrow-backed ones;
- *category* (int32 into the sorted categories): text, booleans, categoricals, enums, numbers named categorical;
- *moment* (int64 microseconds): dates, datetimes with and without a time zone, times of day, durations.

``None``, NaN, NaT, ``pandas.NA`` and null all count as missing.
"""

from sfumato.columns import Column, GroupedLabels, GroupedValues, Kind, Moment
from sfumato.frames.table import Table, read_table

__all__ = ["Column", "GroupedLabels", "GroupedValues", "Kind", "Moment", "Table", "read_table"]
