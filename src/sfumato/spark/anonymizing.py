# SPDX-License-Identifier: Apache-2.0
"""Anonymize a Spark DataFrame: the groups and values of the same table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.fitting import fit_transform_table
from sfumato.backends.spark.backend import SparkBackend

MOST_HELD = 1_000_000
"""Records whose branch one worker grows in memory: about 200 bytes each."""


def fit_transform(
    anonymizer: Anonymizer,
    frame: Any,
    *,
    guide_column: str | Sequence[str] | None = None,
    most_held: int = MOST_HELD,
) -> Any:
    """Anonymize a Spark DataFrame, and fit the anonymizer.

    Parameters
    ----------
    anonymizer : ModelGuidedAnonymizer, MondrianAnonymizer (strict median) or WorkloadAwareAnonymizer
        Unfitted; fitted afterwards, as if it had seen the table in memory.
    frame : pyspark.sql.DataFrame
        Must have the same records whenever it is read, as a table in files has. Read five times at most; cache it
        where that is cheaper than computing it.
    guide_column : str or list of str, optional
        The column of predictions or labels, or one column of probabilities per class. It does not leave, unless it is
        named in the anonymizer's `keep`.
    most_held : int
        Records that one worker holds in memory at once.

    Returns
    -------
    pyspark.sql.DataFrame
        The release, recounted by Spark's own ``groupBy``. It stays in Spark's cache, so that what was counted is what
        is written; ``spark.catalog.clearCache()`` frees it.

    Raises
    ------
    GuaranteeError
        When a criterion does not hold on the result. Nothing is handed out then, and the anonymizer is not fitted.

    Notes
    -----
    *Guarantee.* As of the anonymizer's own ``fit_transform``, counted again on the result. Temporary data of Spark
    (shuffles, caches) hold codes and records on the disks of the workers: they are as secret as the table itself.
    """
    made = fit_transform_table(anonymizer, SparkBackend(frame), guide_column=guide_column, most_held=most_held)
    return made.written.frame
