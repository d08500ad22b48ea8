# SPDX-License-Identifier: Apache-2.0
"""Fit an anonymizer on a table that is not in memory, and release the table; one implementation for all backends.

The result equals that of the same table in memory: the same groups, with the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.fitted_partition import Partition, partition_from_tree
from sfumato.anonymize.group_description import cells_for, warn_of_tight_ranges
from sfumato.anonymize.guide_from_target import kind_of_targets, predictions_of
from sfumato.anonymize.mondrian import MondrianAnonymizer
from sfumato.anonymize.partitioners import TreePartitioner
from sfumato.anonymize.region_training import chosen_floor, why_no_regions
from sfumato.arguments import as_list, check_choice
from sfumato.backends.base import Asked, Growth, Guiding, Learned, Need, TableBackend, TableRegions
from sfumato.backends.group_describer import DescribedGroups, GroupDescriber, joined_loss, joined_sizes
from sfumato.criteria import Criterion
from sfumato.criteria.criterion_counts import fewest_records
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import read_table
from sfumato.partition.guides import Guide, Spread, unit_weights
from sfumato.partition.records import make_layout
from sfumato.regions import code_target, plan_regions
from sfumato.representatives import represent_cells
from sfumato.schema import Schema


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A release that was written, recounted and published.

    Attributes
    ----------
    written : WrittenTable
        As the backend has it.
    n_records, n_groups, smallest_group : int
    """

    written: Any
    n_records: int
    n_groups: int
    smallest_group: int


@dataclass(frozen=True)
class TargetColumn:
    """The target for which regions are counted.

    Attributes
    ----------
    name : str
    kind : {"classes", "numbers"}
    floor : int or None
        The fewest people that a number of a region counts; None: as many as are right for k.
    """

    name: str
    kind: str = "classes"
    floor: int | None = None


def fit_transform_table(
    anonymizer: Anonymizer,
    table: TableBackend,
    *,
    guide_column: Any = None,
    model: Any = None,
    target: TargetColumn | None = None,
    most_held: int,
) -> FittedTable:
    """Anonymize a table, and fit the anonymizer.

    Parameters
    ----------
    anonymizer : Anonymizer
        Unfitted; fitted by the call, as on a table in memory.
    table : TableBackend
    guide_column : str or list of str, optional
        The column of predictions or labels, or one column of probabilities per class. Dropped, unless it is named in
        the anonymizer's `keep`.
    model : fitted estimator, optional
        Predicts block by block instead, from all columns that are not dropped.
    target : TargetColumn, optional
        Counts regions, too, which the partition of the anonymizer then has.
    most_held : int
        Maximum number of records in memory at once, as codes.

    Raises
    ------
    GuaranteeError
        If a criterion does not hold on the written table. Nothing is published then, and the anonymizer is unchanged.
    """
    check_possible(anonymizer, table)
    guides = as_list(guide_column)
    own = with_hidden_guides(anonymizer, guides)
    own._check_parameters()
    criteria = own._all_criteria()
    _check_names(table, guides, criteria, model)
    example = table.example()
    head, schema = own._read(example, criteria, is_whole=False)
    floor = 0 if target is None else _checked_floor(target, own, table, schema)
    asked = Asked(
        schema, head, criteria, own._split_columns(schema), own.max_bins, own.quasi_identifiers is not None, floor
    )
    learned = table.learn(asked, own._check_feasible)
    guiding = learn_guide(own, table, guides, schema, model)
    regions = None if target is None else _planned_regions(own, table, schema, learned, target, floor)
    partition, parts = _grow(own, table, schema, learned, guiding, regions, most_held)
    with table.rewritten(partition, schema, learned) as written:
        smallest = written.recount(partition.output_names(schema.quasi_identifiers), learned.counters)
        _hand_over(anonymizer, partition, example, schema, parts)
    return FittedTable(written, learned.n_records, partition.n_groups, smallest)


def _grow(
    anonymizer: Anonymizer,
    table: TableBackend,
    schema: Schema,
    learned: Learned,
    guiding: Guiding,
    regions: TableRegions | None,
    most_held: int,
) -> tuple[Partition, list[DescribedGroups]]:
    """Grow the tree over the codes of all records, and describe its groups."""
    columns = learned.columns
    partitioner = anonymizer._partitioner()
    assert isinstance(partitioner, TreePartitioner)  # the one that counts determine
    describer = GroupDescriber(columns[: len(schema.quasi_identifiers)], len(columns), anonymizer.representative)
    growth = Growth(
        layout=make_layout([column.bins for column in columns]),
        guide=_without_channels(guiding.of(None)),
        min_records=fewest_records(learned.counters),
        fall_back=partitioner.fall_back,
        n_threads=anonymizer._n_threads(),
        describer=describer,
        generator=anonymizer._generator(),
    )
    with table.coded(schema, learned, guiding, regions, most_held) as records:
        tree, parts = records.grow(growth)
        partition = partition_from_tree(tree, columns, {}, joined_sizes(parts), **anonymizer._partition_facts(schema))
        if regions is not None:
            partition = replace(partition, regions=records.regions(partition.cell_columns(regions.plan.columns, {})))
        cells = cells_for(anonymizer.representative, partition, describer.columns, {})
        warn_of_tight_ranges(anonymizer.representative, cells, stacklevel=5)
        if cells is not None:
            return replace(partition, values=represent_cells(anonymizer.representative, cells)), parts
        hashing = describer.words()
        values = describer.values_of(parts, tree, lambda wanted: records.count_hashes(*hashing, wanted))
    return replace(partition, values=values), parts


def _without_channels(guide: Guide) -> Guide:
    """Return the rule and weights of a guide without its channels, which are with the records."""
    n_dense = 0 if guide.dense is None else guide.dense.shape[1]
    return replace(guide, dense=np.zeros((0, n_dense), np.int64) if n_dense else None, classes=None)


def with_hidden_guides(anonymizer: Anonymizer, guides: Sequence[str]) -> Anonymizer:
    """Return a copy that drops guide columns unless they are kept: predictions can identify records."""
    hidden = [name for name in guides if name not in as_list(anonymizer.keep)]
    copy: Anonymizer = anonymizer.__class__(**anonymizer.get_params(deep=False))
    copy.set_params(identifiers=[*as_list(anonymizer.identifiers), *hidden] or None)
    return copy


def _check_names(table: TableBackend, guides: Sequence[str], criteria: Sequence[Criterion], model: Any) -> None:
    for name in guides:
        if name not in table.names:
            raise ParameterError(
                f"{named('guide_column')} names {name!r}, which is not a column of the table: expected one of its "
                "columns. Correct the name."
            )
    if model is not None and guides:
        raise ParameterError(f"{named('model')} beside {named('guide_column')}: expected one of them. Leave one out.")
    for criterion in criteria:
        if criterion.column is not None and criterion.column not in table.names:
            raise ParameterError(
                f"{type(criterion).__name__} is on {criterion.column!r}, which is not a column of the table: expected "
                "one of its columns, the target included. Correct the name, or add the column."
            )


# -- regions -----------------------------------------------------------------------------------------------------


def _checked_floor(target: TargetColumn, anonymizer: Anonymizer, table: TableBackend, schema: Schema) -> int:
    """Return the floor of regions; raise ParameterError if they cannot be counted."""
    check_choice("target_kind", target.kind, ("classes", "numbers"))
    if target.name not in table.names or target.name in schema.quasi_identifiers:
        raise ParameterError(
            f"{named('target')} names {target.name!r}, which is not a column of the table or is a quasi-identifier: "
            "expected a column that is neither. Correct the name, or leave it out of quasi_identifiers."
        )
    why = why_no_regions(anonymizer._all_criteria())
    if why is not None:
        raise ParameterError(f"{named('target')} with {why}: expected criteria on records. Leave it out.")
    return chosen_floor(target.floor, anonymizer.k)


def _planned_regions(
    anonymizer: Anonymizer, table: TableBackend, schema: Schema, learned: Learned, target: TargetColumn, floor: int
) -> TableRegions:
    """Plan the regions of a table, of whose target the labels or ends are read."""
    is_number = target.kind == "numbers"

    def known(_: int, block: Any) -> NDArray[Any]:
        values = _read_target(block, target)
        return np.array([values.min(), values.max()]) if is_number else np.unique(values)

    coding = code_target(np.concatenate(table.map_blocks(known, [target.name])), is_number=is_number)
    columns = [column.finer for column in learned.columns[: len(schema.quasi_identifiers)]]
    return TableRegions(
        plan_regions(columns, coding, floor), target.name, lambda block: coding.coded(_read_target(block, target)),
        anonymizer._n_threads(),
    )  # fmt: skip


def _read_target(block: Any, target: TargetColumn) -> NDArray[Any]:
    column = read_table(block).column(target.name)
    if column.missing is not None and column.missing.any():
        raise InputError(f"the target {target.name!r} has missing values: expected one per record. Fill them in.")
    if target.kind == "classes":
        return column.values if column.categories is None else np.array(column.categories.tolist())[column.values]
    if column.categories is not None:
        raise InputError(
            f"the target {target.name!r} holds no numbers: expected numbers for target_kind='numbers'. Use "
            "target_kind='classes'."
        )
    return column.values.astype(np.float64)


# -- what is possible --------------------------------------------------------------------------------------------


def check_possible(anonymizer: Any, table: TableBackend) -> None:
    """Raise ParameterError, with the backend's reason, for a setting that the backend does not support."""
    for need, given, expected, remedy in _needs(anonymizer):
        if need in table.cannot:
            raise ParameterError(
                f"{given} with {table.where}: expected {expected}, since {table.cannot[need]}. {remedy}"
            )


def _needs(anonymizer: Any) -> Iterator[tuple[Need, str, str, str]]:
    """Yield each need of an anonymizer: the need, the setting, the alternative, and the fix."""
    name = type(anonymizer).__name__
    if isinstance(anonymizer, MondrianAnonymizer) and (anonymizer.rule != "median" or not anonymizer.strict):
        given = f"{name}(rule={anonymizer.rule!r}, strict={anonymizer.strict!r})"
        yield Need.ALL_RECORDS, given, "the strict median rule, which needs counts only", "Use a table in memory."
    elif getattr(anonymizer, "search", "fast") != "fast":
        remedy = "Use a table in memory, or leave search out."
        yield Need.ALL_RECORDS, named("search", anonymizer.search), "'fast', which needs counts only", remedy
    elif not isinstance(anonymizer, Anonymizer) or not anonymizer._grows_from_counts():
        kinds = "ModelGuidedAnonymizer, MondrianAnonymizer or WorkloadAwareAnonymizer"
        expected = "a method that grows a tree from counts"
        yield Need.ALL_RECORDS, name, expected, f"Use {kinds}, or a table in memory."
    if anonymizer.suppression_limit:
        given = named("suppression_limit", anonymizer.suppression_limit)
        remedy = "Use release on a table in memory, which may suppress records."
        yield Need.SUPPRESSION, given, "0", remedy
    if getattr(anonymizer, "hierarchies", None):
        yield Need.HIERARCHIES, "hierarchies=", "none", "Use a table in memory."
    if getattr(anonymizer, "guide_estimator", None) is not None:
        yield Need.TRAINING, "guide_estimator=", "precomputed predictions", "Pass guide_column=."
    for criterion in anonymizer._all_criteria():
        if criterion.counting == "presence":
            remedy = "Use release on a table in memory."
            yield Need.POPULATION, type(criterion).__name__, "a criterion on the records alone", remedy


def _hand_over(
    anonymizer: Anonymizer, partition: Partition, example: Any, schema: Schema, parts: Sequence[DescribedGroups]
) -> None:
    """Set the fitted attributes of the caller's anonymizer."""
    validate_data(anonymizer, example, skip_check_array=True)
    anonymizer.partition_ = partition
    anonymizer.schema_ = schema
    anonymizer.hierarchies_ = {}
    anonymizer.group_sizes_ = joined_sizes(parts)
    anonymizer.n_groups_ = len(anonymizer.group_sizes_)
    anonymizer.information_loss_ = joined_loss(parts)


# -- predictions as a guide --------------------------------------------------------------------------------------

# A guide depends on little of the whole table: the labels that occur, or the ends and the variance of numbers. Records
# with these are put in front of every block, and the anonymizer turns the block's predictions into a guide as usual.


@dataclass(frozen=True, eq=False)
class BlockGuide:
    """Turn the predictions of any block into channels.

    Attributes
    ----------
    names : tuple of str
        The columns of predictions; none for a method that needs none, or where a model predicts.
    anonymizer : Anonymizer
        Unfitted; knows what the predictions are.
    schema : Schema
    known : ndarray or None
        Predictions that represent the whole table: with them a block gets the codes and scales of all records.
    weights : ndarray of float64 or None
        Weights of the channels, where those of a block would differ.
    predicted : ndarray or None
        The predictions of a model for every record.
    """

    names: tuple[str, ...]
    anonymizer: Anonymizer
    schema: Schema
    known: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    predicted: NDArray[Any] | None = None

    def of(self, block: Any, start: int = 0) -> Guide:
        """Return the guide of the records of a block that starts at record `start`; None: a guide of no records."""
        if self.known is None:
            n_records = 0 if block is None else block.num_rows
            plain: Guide = self.anonymizer._make_guide(None, None, self.schema, n_records, None)
            return plain
        targets = self.known if block is None else np.concatenate([self.known, self.targets(block, start)])
        guide = self.anonymizer._make_guide(None, targets, self.schema, len(targets), None)
        own = slice(len(self.known), None)
        return replace(
            guide,
            dense=None if guide.dense is None else guide.dense[own],
            code_blocks=[block[own] for block in guide.code_blocks],
            classes=None if guide.classes is None else guide.classes[own],
            channel_weights=guide.channel_weights if self.weights is None else self.weights,
        )

    def targets(self, block: Any, start: int) -> NDArray[Any]:
        """Return the predictions of a block."""
        if self.predicted is None:
            return read_predictions(block, self.names)
        return self.predicted[start : start + block.num_rows]

    def asked(self, table: TableBackend, question: Callable[[int, Any], Any]) -> list[Any]:
        """Apply a function to each block of the predictions."""
        return table.map_blocks(question, self.names or table.names[:1])


def learn_guide(
    anonymizer: Anonymizer, table: TableBackend, names: Sequence[str], schema: Schema, model: Any = None
) -> BlockGuide:
    """Collect from all blocks of a table what a guide needs to know of the predictions.

    Parameters
    ----------
    anonymizer : Anonymizer
    table : TableBackend
    names : sequence of str
        The columns of predictions.
    schema : Schema
    model : fitted estimator, optional
        Predicts from all columns that are not dropped, if there are no columns of predictions.
    """
    if not names and model is None:
        if not isinstance(anonymizer, MondrianAnonymizer):
            raise ParameterError(
                f"{type(anonymizer).__name__} without predictions: expected the column that holds them. Pass "
                "guide_column=, or a model where the call takes one."
            )
        return BlockGuide((), anonymizer, schema)
    predicted = None
    if model is not None:
        every = [name for name in table.names if name not in schema.dropped]
        predicted = np.concatenate(table.map_blocks(lambda _, block: np.asarray(predictions_of(model, block)), every))
    source = BlockGuide(tuple(names), anonymizer, schema, predicted=predicted)
    asked = getattr(anonymizer, "guide_kind", "auto")

    def look(start: int, block: Any) -> Any:
        values = source.targets(block, start)
        is_number = values.dtype.kind in "iuf"
        ends = (values.min(axis=0), values.max(axis=0)) if is_number else None
        last_class = int(values.argmax(axis=1).max()) if is_number and values.ndim == 2 else 0
        return kind_of_targets(values) if asked == "auto" else asked, ends, last_class, values.shape[1:]

    def labels(start: int, block: Any) -> Any:
        return [np.unique(column) for column in np.atleast_2d(source.targets(block, start).T)]

    found = source.asked(table, look)
    kind = _kind({part[0] for part in found})
    if kind == "labels":
        parts = source.asked(table, labels)
        known = _as_rows([np.unique(np.concatenate(column)) for column in zip(*parts, strict=True)])
    elif kind == "probabilities":
        known = np.eye(*(found[0][3] or (1,)))[[max(part[2] for part in found)]]
    else:
        if any(part[1] is None for part in found):
            raise InputError(
                f"the columns {', '.join(map(repr, names))} hold no numbers: expected numbers for this guide_kind. Use "
                "guide_kind='labels' for classes."
            )
        low, high = (np.array([part[1][end] for part in found]) for end in (0, 1))
        known = np.stack([low.min(axis=0), high.max(axis=0)]).astype(np.float64)
    if "guide_kind" in anonymizer.get_params(deep=False):
        anonymizer = anonymizer.__class__(**anonymizer.get_params(deep=False)).set_params(guide_kind=kind)
    elif kind == "numbers":
        return BlockGuide((), anonymizer, schema)  # no classes, and nothing else of predictions is looked at
    guide = replace(source, anonymizer=anonymizer, known=known)
    return replace(guide, weights=_number_weights(table, guide)) if kind == "numbers" else guide


def _kind(kinds: set[str]) -> str:
    """Return the kind of all predictions; blocks of different kinds are numbers."""
    return next(iter(kinds)) if len(kinds) == 1 else "numbers"


def _as_rows(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels of one or several outputs as predictions of as many records as the longest needs."""
    if len(columns) == 1:
        return columns[0]
    n_rows = max(map(len, columns))
    return np.column_stack([column[np.arange(n_rows) % len(column)] for column in columns])


def _number_weights(table: TableBackend, guide: BlockGuide) -> NDArray[np.float64]:
    """Return the weights that ``guides.from_numbers`` gives channels of numbers: one over the variance of each."""

    def sums(start: int, block: Any) -> list[Spread]:
        dense = guide.of(block, start).dense
        assert dense is not None
        return [Spread.of(channel) for channel in dense.T]

    found = zip(*guide.asked(table, sums), strict=True)
    return unit_weights([sum(parts, Spread()).variance for parts in found])


def read_predictions(block: Any, names: Sequence[str]) -> NDArray[Any]:
    """Return the predictions of a block, one column or several."""
    table = read_table(block.select(list(names)))
    columns = [table.column(name) for name in names]
    for column in columns:
        if column.missing is not None and column.missing.any():
            raise InputError(
                f"the column {column.name!r} has missing predictions: expected one per record. Fill them in."
            )
    values = [c.values if c.categories is None else c.categories[c.values].astype(str) for c in columns]
    return values[0] if len(values) == 1 else np.column_stack(values)
