# SPDX-License-Identifier: Apache-2.0
"""The verbs for Spark DataFrames: anonymize, anatomize, measure and apply a generalization."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from sfumato.anatomize import Anatomizer
from sfumato.anatomize.table_division import anatomize_table
from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.backend_fitting import TargetColumn, fit_transform_table
from sfumato.anonymize.private_blocks import prepare_blocks
from sfumato.anonymize.private_release import PrivateSettings
from sfumato.arguments import as_list
from sfumato.backends.spark.anatomy import SparkAnatomies
from sfumato.backends.spark.backend import SparkBackend
from sfumato.backends.spark.groups import MeasurableFrame
from sfumato.backends.spark.session import check_frame, example_of, pieces, quoted
from sfumato.errors import GuaranteeError, ParameterError, named
from sfumato.generalization import Generalization
from sfumato.generalization.artifact import Output
from sfumato.generalization.attributes import OrderedAttribute
from sfumato.generalization.export.sql import case_expressions
from sfumato.measurement import Measurement
from sfumato.measurement.measurement import MissingPolicy
from sfumato.measurement.measuring import Names, measure_table
from sfumato.private.guarantee import PrivacyGuarantee
from sfumato.private.ledger import PrivacyLedger
from sfumato.spark.capping import count_capped

MOST_HELD = 1_000_000
"""Records that one worker holds in memory at once, at about 200 bytes each."""


def fit_transform(
    anonymizer: Anonymizer,
    frame: Any,
    *,
    guide_column: str | Sequence[str] | None = None,
    target: str | None = None,
    target_kind: Literal["classes", "numbers"] = "classes",
    floor: int | None = None,
    most_held: int = MOST_HELD,
) -> Any:
    """Anonymize a Spark DataFrame, and fit the anonymizer.

    Parameters
    ----------
    anonymizer : ModelGuidedAnonymizer, MondrianAnonymizer (strict median) or WorkloadAwareAnonymizer
        Unfitted; fitted afterwards, as if it had seen the table in memory.
    frame : pyspark.sql.DataFrame
        Must have the same records whenever it is read, as a table in files has. Read six times at most; cache it
        where that is cheaper than computing it.
    guide_column : str or list of str, optional
        The column of predictions or labels, or one column of probabilities per class. It is dropped, unless the
        anonymizer's `keep` names it.
    target : str, optional
        The column for which regions are counted. ``anonymizer.partition_`` then has them, and
        ``AnonymizedClassifier(model).fit_partition(anonymizer.partition_)`` learns from them, on the driver.
    target_kind : {"classes", "numbers"}, default="classes"
        What the target holds: classes for a classifier, or numbers for a regressor.
    floor : int, optional
        The fewest people that a number of a region counts. None: k, but at least 20 and at most 50.
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
        If a criterion does not hold on the result. Nothing is returned then, and the anonymizer is not fitted.

    Notes
    -----
    *Guarantee.* As of the anonymizer's own ``fit_transform``, counted again on the result. Temporary data of Spark
    (shuffles, caches) hold codes and records on the disks of the workers: they are as secret as the table itself.
    """
    regions = None if target is None else TargetColumn(target, target_kind, floor)
    made = fit_transform_table(
        anonymizer, SparkBackend(frame), guide_column=guide_column, target=regions, most_held=most_held
    )
    return made.written.frame


@dataclass(frozen=True, eq=False)
class PrivateFrame:
    """A Spark DataFrame with a promise of differential privacy.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
    n_records, n_cells : int
        Released records, and cells of the partition.
    privacy : PrivacyGuarantee
    """

    frame: Any
    n_records: int
    n_cells: int
    privacy: PrivacyGuarantee


def release(
    partition: Any,
    frame: Any,
    *,
    mechanism: str,
    epsilon: float,
    delta: float | None = None,
    rate: float | None = None,
    k: int | None = None,
    target: str | None = None,
    labels: Sequence[Any] | None = None,
    unit: str | None = None,
    most_per_person: int | None = None,
    fitted_on: Any = None,
    ledger: PrivacyLedger | None = None,
) -> PrivateFrame:
    """Release a Spark DataFrame with differential privacy, by a partition that was fitted on other people.

    Workers count the records of their blocks; the driver adds up the counts and draws the noise, once per cell.

    Parameters
    ----------
    partition : Partition or fitted anonymizer
    frame : pyspark.sql.DataFrame
    mechanism, epsilon, delta, rate, k, ledger
        As for ``release`` of the anonymizers.
    target : str, optional
        The column of labels, which are released with the cells.
    labels : list, optional
        All labels, listed without looking at the records; with `target`.
    unit : str, optional
        The column that says whose a record is, if a person has several; it is not released.
    most_per_person : int, optional
        With `unit`: so many records of a person count, chosen at random on the workers. The noise grows with it.
    fitted_on : "others"
        Your statement that the partition was fitted on other people. Records do not reach the driver, so fingerprints
        are not compared.

    Returns
    -------
    PrivateFrame
    """
    check_frame(frame)
    settings = PrivateSettings(mechanism, epsilon, delta, rate, k, labels, unit, most_per_person, fitted_on, ledger)
    made = prepare_blocks(partition, frame.columns, None, target, settings)
    if unit is None:
        counts = made.counts(SparkBackend(frame).map_blocks(made.counter, made.counter.names))
    else:
        counts = made.counts([count_capped(frame, made.counter, most_per_person or 1)])
    filled = np.flatnonzero(counts)
    table = made.write(filled, frame.columns, ()).append_column("sfumato_n", [counts[filled]])
    if not len(filled):
        raise GuaranteeError(
            "the release has no records: expected some. Its epsilon is spent. Raise epsilon, or use a partition with "
            "fewer cells."
        )
    cells = frame.sparkSession.createDataFrame(table)
    released = cells.selectExpr(
        *(quoted(name) for name in table.column_names[:-1]), "explode(sequence(1, sfumato_n)) as sfumato_one"
    ).drop("sfumato_one")
    return PrivateFrame(released, int(counts.sum()), made.counter.partition.n_groups, made.promise)


@dataclass(frozen=True, eq=False)
class AnatomizedFrames:
    """An identifying Spark DataFrame and sensitive ones that only the numbers of groups connect.

    Attributes
    ----------
    identifying : pyspark.sql.DataFrame
        One row per record: all columns but identifiers and sensitive ones, and last the group of the record in each
        sensitive table, in their order.
    sensitive : pyspark.sql.DataFrame or tuple of these
        One row per record, in another order: some sensitive columns, and the group, which is the last column. One
        table, or several with groups and an order of their own.
    l : int or tuple of int
        No value of a sensitive column is above 1/l of any group; one for all columns, or one each, in their order.
    group : str or tuple of str
        The name of the column with the group, of one table or of each.
    n_records, n_groups, n_suppressed : int
        Released records, the groups of all sensitive tables together, and suppressed records.

    Notes
    -----
    *Guarantee.* As of :class:`sfumato.AnatomizedTable`.
    """

    identifying: Any
    sensitive: Any
    l: int | tuple[int, ...]  # noqa: E741 - the literature's own letter
    group: str | tuple[str, ...]
    n_records: int
    n_groups: int
    n_suppressed: int

    def join(self) -> Any:
        """Return every identifying row once with each sensitive row of its groups: naive training data."""
        joined = self.identifying
        tables = self.sensitive if isinstance(self.sensitive, tuple) else (self.sensitive,)
        for table, group in zip(tables, self.group if isinstance(self.group, tuple) else (self.group,), strict=True):
            joined = joined.join(table, on=group).drop(group)
        return joined


def anatomize(anatomizer: Anatomizer, frame: Any, *, most_held: int = MOST_HELD) -> AnatomizedFrames:
    """Divide a Spark DataFrame into an identifying and sensitive ones, and fit the anatomizer.

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
        All tables were counted by Spark's own ``groupBy``. They stay in Spark's cache, so that what was counted is
        what is written; ``spark.catalog.clearCache()`` frees them.

    Raises
    ------
    GuaranteeError
        If l is too large for the values and `suppression_limit`, or does not hold on the result. Nothing is returned
        then.

    Notes
    -----
    *Guarantee.* As of ``Anatomizer.fit_transform``, counted again on the result.

    The same records and the same seed give the same tables. With at most `most_held` records, a multiple of l, and no
    suppression, a sensitive table of one column is that of ``Anatomizer.fit_transform`` with this seed, up to its
    order: the same values in the same groups. Who is in which group differs, since a DataFrame has no order that the
    draw could refer to. Otherwise the groups are others by the same rules. As many records are suppressed as in memory;
    of several solutions with the same number another may be taken.
    """
    made = anatomize_table(anatomizer, SparkAnatomies(frame, most_held))
    ls, groups, is_one = made.division.rule.ls, made.division.groups, len(made.sensitive) == 1
    return AnatomizedFrames(
        made.identifying, made.sensitive[0] if is_one else tuple(made.sensitive),
        ls[0] if len(set(ls)) == 1 else ls, groups[0] if is_one else tuple(groups),
        made.n_records, anatomizer.n_groups_, anatomizer.n_suppressed_,
    )  # fmt: skip


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
    sensitive values has no value of any criterion, and the reason is given.
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


def transform(generalization: Generalization, frame: Any, *, output: Output = "codes") -> Any:
    """Return a frame with the buckets of a generalization in place of its columns.

    Parameters
    ----------
    generalization : Generalization
    frame : pyspark.sql.DataFrame
        Columns that are not attributes stay unchanged.
    output : {"codes", "labels", "representatives"}, default="codes"
        Numbers of buckets, readable labels, or one value per bucket in the column's own type.

    Returns
    -------
    pyspark.sql.DataFrame
        Computed by Spark when it is used. Codes and labels are Spark SQL, that of ``generalization.to_sql("spark")``,
        and nothing of sfumato runs then; representatives are written by workers that have sfumato.
    """
    from pyspark.sql import functions as sql

    check_frame(frame)
    if output not in get_args(Output):
        raise ParameterError(f"{named('output', output)}: expected one of {', '.join(map(repr, get_args(Output)))}.")
    _check_columns(generalization, frame)
    if output == "representatives":

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            for piece in pieces(batches):
                yield from generalization.transform(piece, output="representatives").combine_chunks().to_batches()

        return frame.mapInArrow(work, frame.schema)
    present = [attribute for attribute in generalization.attributes if attribute.name in frame.columns]
    written = case_expressions(present, "spark", output=output)
    return frame.select(
        *[sql.expr(written[name]).alias(name) if name in written else sql.col(quoted(name)) for name in frame.columns]
    )


def _check_columns(generalization: Generalization, frame: Any) -> None:
    """Raise InputError for columns that are absent or of another kind; SQL would convert the latter."""
    table = generalization._read(example_of(frame))
    for attribute in generalization.attributes:
        if not attribute.is_collected:
            continue
        column = table.column(attribute.name)
        if isinstance(attribute, OrderedAttribute) or column.kind != "category":
            attribute.encode(replace(column, missing=None))
