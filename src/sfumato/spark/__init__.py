# SPDX-License-Identifier: Apache-2.0
"""The same verbs on a Spark DataFrame: Spark schedules, shuffles, retries and spills; sfumato counts.

Workers turn records into codes and add up histograms; the driver chooses splits from those, and never sees a record.
What fits one worker is grown there, by the grower that grows tables in memory. Sums are exact, so the partition is the
one of the same table in memory. Needs the extra ``spark`` here, and sfumato itself on every worker.
"""

from sfumato.spark.anonymizing import fit_transform
from sfumato.spark.measuring import measure
from sfumato.spark.transforming import transform

__all__ = ["fit_transform", "measure", "transform"]
