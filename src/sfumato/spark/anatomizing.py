# SPDX-License-Identifier: Apache-2.0
"""Anatomize a Spark DataFrame: l-diverse groups by the rules for tables in memory, with records left on the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.anatomize import Anatomizer
from sfumato.anatomize.dividing import anatomize_table
from sfumato.backends.spark.anatomy import SparkAnatomies

MOST_HELD = 1_000_000
"""Records of a block, which one worker holds."""


@dataclass(frozen=True, eq=False)
class AnatomizedFrames:
    """An identifying and a sensitive Spark DataFrame that only the number of a group connects.

    Attributes
    ----------
    identifying : pyspark.sql.DataFrame
        One row per record: all columns but identifiers and sensitive ones, and the group, which is the last column.
    sensitive : pyspark.sql.DataFrame
        One row per record, in another order: the sensitive columns, and the group, which is the last column.
    l : int
        No value of a sensitive column is above 1/l of any group.
    group : str
        The name of the column with the group.
    n_records, n_groups, n_suppressed : int
        Records that leave, their groups, and records that were left out.

    Notes
    -----
    *Guarantee.* As of :class:`sfumato.AnatomizedTable`.
    """

    identifying: Any
    sensitive: Any
    l: int  # noqa: E741 - the literature's own letter
    group: str
    n_records: int
    n_groups: int
    n_suppressed: int

    def join(self) -> Any:
        """Return every identifying row once with each sensitive row of its group: naive training data."""
        return self.identifying.join(self.sensitive, on=self.group).drop(self.group)


def anatomize(anatomizer: Anatomizer, frame: Any, *, most_held: int = MOST_HELD) -> AnatomizedFrames:
    """Divide a Spark DataFrame in two, and fit the anatomizer.

    Parameters
    ----------
    anatomizer : Anatomizer
        Unfitted; has ``n_groups_`` and ``n_suppressed_`` afterwards, and no ``group_sizes_``, of which there would be
        one per group.
    frame : pyspark.sql.DataFrame
        Must have the same records whenever it is read.
    most_held : int
        Records that one worker divides at once. Fewer are divided together only where several sensitive columns are
        so uneven that smaller blocks would not do.

    Returns
    -------
    AnatomizedFrames
        Both tables were counted by Spark's own ``groupBy``. They stay in Spark's cache, so that what was counted is
        what is written; ``spark.catalog.clearCache()`` frees them.

    Raises
    ------
    GuaranteeError
        When l is too large for the values and `suppression_limit`, or does not hold on the result. Nothing is handed
        out then.

    Notes
    -----
    *Guarantee.* As of ``Anatomizer.fit_transform``, counted again on the result.

    The same records and the same seed give the same tables. With at most `most_held` records, a multiple of l, one
    sensitive column and no suppression the sensitive table is that of ``Anatomizer.fit_transform`` with this seed, up
    to its order: the same values in the same groups. Who is in which group differs, since a DataFrame has no order
    that the draw could refer to. Otherwise the groups are others by the same rules, and as many.
    """
    made = anatomize_table(anatomizer, SparkAnatomies(frame, most_held))
    return AnatomizedFrames(
        made.identifying, made.sensitive, int(anatomizer.l), anatomizer.group,
        made.n_records, anatomizer.n_groups_, anatomizer.n_suppressed_,
    )  # fmt: skip
