# SPDX-License-Identifier: Apache-2.0
"""Recount the groups of a release with Spark's own ``groupBy`` before it is returned.

Nothing of the engine is asked: groups are what Spark finds equal in the released columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sfumato.backends.blocks.binning import encode
from sfumato.backends.spark.session import collected, quoted
from sfumato.errors import GuaranteeError
from sfumato.frames import read_table

PERSON = "sfumato: person"
"""The temporary column of persons beside a release, for the recount."""


def recount(release: Any, names: Sequence[str], counters: Sequence[Any], n_records: int) -> tuple[Any, int]:
    """Count the groups of a release; return it without the persons, and the size of its smallest group.

    Parameters
    ----------
    release : Spark DataFrame
        Kept in Spark's cache from here on.
    names : sequence of str
        The quasi-identifiers, as they are called in the release.
    counters : sequence of WholeCounter
    n_records : int
        Of the table.

    Raises
    ------
    GuaranteeError
        When records are missing, or a criterion fails.
    """
    from pyspark.sql import functions as sql

    smallest = n_records
    release.persist()
    try:
        keys = [sql.col(quoted(name)).alias(f"key {place}") for place, name in enumerate(names)]
        counted = [sql.col(quoted(name)).alias(name) for name in _counted_names(counters, release)]
        plain = release.select(*keys, *counted)
        for counter in counters:
            n_failed, n_groups, n_seen, fewest = _judge(plain, [f"`key {i}`" for i in range(len(names))], counter)
            if n_seen != n_records:
                raise GuaranteeError(
                    f"{n_seen} records were rewritten instead of {n_records}: expected all. Nothing is returned. "
                    "Write the table to files first, if it is computed again at each reading."
                )
            if n_failed:
                raise GuaranteeError(
                    f"the rewritten table has {n_failed} of {n_groups} groups for which it does not hold that "
                    f"{counter.criterion.describe()}: expected none. Nothing is returned. Please report this."
                )
            if counter.value_of_row is None:
                smallest = fewest
    except BaseException:
        release.unpersist()
        raise
    return release.drop(PERSON), smallest


def _counted_names(counters: Sequence[Any], release: Any) -> list[str]:
    names = [
        PERSON if counter.criterion.counting == "distinct" else counter.criterion.column
        for counter in counters
        if counter.criterion.column is not None
    ]
    return [name for name in dict.fromkeys(names) if name in release.columns]


def _judge(plain: Any, keys: Sequence[str], counter: Any) -> tuple[int, int, int, int]:
    """Return the groups that fail, all groups, all records, and the fewest records or persons of a group."""
    from pyspark.sql import functions as sql

    counting = counter.criterion.counting
    if counting == "values":
        sensitive = quoted(counter.criterion.column)
        pairs = plain.groupBy(*keys, sensitive).agg(sql.count(sql.lit(1)).alias("n"))
        listed = sql.collect_list(sql.struct(sql.col(sensitive).alias("value"), sql.col("n"))).alias("found")
        groups = pairs.groupBy(*keys).agg(listed).select("found")
    elif counting == "distinct":
        # What is missing is one person, too, and countDistinct passes over it.
        person = sql.col(quoted(PERSON))
        several = sql.countDistinct(person) + sql.max(person.isNull().cast("int"))
        groups = plain.groupBy(*keys).agg(several.alias("counted"), sql.count(sql.lit(1)).alias("n"))
    else:
        counted = sql.count(sql.lit(1))
        groups = plain.groupBy(*keys).agg(counted.alias("counted"), counted.alias("n"))
    if counting != "values":
        # Few sizes occur, whatever the number of groups.
        groups = groups.groupBy("counted").agg(sql.count(sql.lit(1)).alias("groups"), sql.sum("n").alias("records"))
        found = collected(groups)
        counts = found["counted"].to_numpy().astype(np.int64)[:, None]
        n_groups = found["groups"].to_numpy()
        n_seen = int(found["records"].to_numpy().sum())
        return int(n_groups[~counter.passes(counts)].sum()), int(n_groups.sum()), n_seen, int(counts.min())
    found = collected(groups.mapInArrow(_judged(counter), "failed bigint, groups bigint, records bigint"))
    failed, n_groups, n_records = (int(found[name].to_numpy().sum()) for name in ("failed", "groups", "records"))
    return failed, n_groups, n_records, 0


def _judged(counter: Any) -> Any:
    """Return a function that judges groups by the counts of sensitive values in them."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            found = batch.column(0)
            if not len(found):
                continue
            pairs = found.flatten()
            group = np.repeat(np.arange(len(found)), found.value_lengths().to_numpy())
            read = read_table(
                pa.table({"value": pairs.field("value")}),
                categorical=["value"] if counter.column.categories is not None else [],
            )
            codes = encode(counter.column, read.column("value", for_counting=True))
            n = pairs.field("n").to_numpy()
            counts = np.zeros((len(found), counter.n_values), np.int64)
            np.add.at(counts, (group, codes), n)
            judged = [int((~counter.passes(counts)).sum()), len(found), int(n.sum())]
            yield pa.RecordBatch.from_arrays(
                [pa.array([number]) for number in judged], names=["failed", "groups", "records"]
            )

    return work
