# SPDX-License-Identifier: Apache-2.0
"""``measure`` for Spark DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.arguments import as_list
from sfumato.backends.spark.groups import MeasurableFrame
from sfumato.measurement import Measurement
from sfumato.measurement.measurement import MissingPolicy
from sfumato.measurement.measuring import Names, measure_table


def measure(
    frame: Any,
    quasi_identifiers: Names | None = None,
    sensitive: Names | None = None,
    *,
    population: Any = None,
    weights: str | None = None,
    unit: str | None = None,
    missing: MissingPolicy = "value",
    categorical_features: Names | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    ranking: bool = True,
) -> Measurement:
    """Measure how well people hide in a Spark DataFrame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    quasi_identifiers, sensitive, unit, missing, categorical_features, hierarchies
        As of :func:`sfumato.measure`.
    population : pyspark.sql.DataFrame or int, optional
        The people the table was drawn from: a table with the quasi-identifiers in the same form, or their number.
    weights : str, optional
        The column of survey weights.
    ranking : bool, default=True
        Whether to look for the columns that make records unique. That groups the records by every pair of columns,
        which is most of the work where there are many; without, the ranking is empty, and all columns are left out.

    Returns
    -------
    Measurement
        That of ``sfumato.measure`` for the same table; numbers with a fraction may differ in their last digits, since
        they are added up in another order.

    Notes
    -----
    What reaches the driver: how many groups there are of each size (and of each size in the population), one number
    per set of columns, and the different values of sensitive columns with their counts. A column with more than 65,536
    sensitive values has no value of any criterion, and the reason is said.
    """
    return measure_table(
        MeasurableFrame(frame, categorical=as_list(categorical_features)),
        quasi_identifiers,
        sensitive,
        population=population,
        weights=weights,
        unit=unit,
        missing=missing,
        hierarchies=hierarchies,
        with_ranking=ranking,
    )
