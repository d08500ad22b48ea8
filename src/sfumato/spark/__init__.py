# SPDX-License-Identifier: Apache-2.0
"""The same verbs on a Spark DataFrame: Spark schedules, shuffles, retries and spills; sfumato counts.

Workers turn records into codes and add up histograms; the driver chooses splits from those, and never sees a record.
What fits one worker is grown or divided there, as tables in memory are. Sums are exact, so partitions and measurements
are those of the same table in memory. Needs the extra ``spark`` here, and sfumato itself on every worker.
"""

from sfumato.spark.verbs import AnatomizedFrames, PrivateFrame, anatomize, fit_transform, measure, release, transform

__all__ = ["AnatomizedFrames", "PrivateFrame", "anatomize", "fit_transform", "measure", "release", "transform"]
