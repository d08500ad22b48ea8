# SPDX-License-Identifier: Apache-2.0
"""Fit an anonymizer on a table that does not lie in memory, and release the table: written once, for every backend.

The result is what the same table in memory would give: the same groups, and the same values for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.guiding import learn_guide
from sfumato.anonymize.mondrian import MondrianAnonymizer
from sfumato.anonymize.partition import Partition, partition_from_tree
from sfumato.anonymize.partitioners import TreePartitioner
from sfumato.arguments import as_list
from sfumato.backends.base import Asked, Growth, Guiding, Learned, Need, TableBackend
from sfumato.backends.group_describer import DescribedGroups, GroupDescriber, joined_loss, joined_sizes
from sfumato.criteria import Criterion
from sfumato.criteria.criterion_counts import fewest_records
from sfumato.errors import ParameterError, named
from sfumato.partition.guides import Guide
from sfumato.partition.records import make_layout
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


def fit_transform_table(
    anonymizer: Anonymizer, table: TableBackend, *, guide_column: Any = None, model: Any = None, most_held: int
) -> FittedTable:
    """Anonymize a table, and fit the anonymizer.

    Parameters
    ----------
    anonymizer : Anonymizer
        Unfitted; fitted afterwards, as if it had seen the table in memory.
    table : TableBackend
    guide_column : str or list of str, optional
        The column of predictions or labels, or one column of probabilities per class. It does not leave, unless it is
        named in the anonymizer's `keep`.
    model : fitted estimator, optional
        Predicts block by block instead, from all columns that are not dropped.
    most_held : int
        Records held in memory at once, as codes.

    Raises
    ------
    GuaranteeError
        When a criterion does not hold on what was written. Nothing is published then, and the anonymizer stays as it
        was.
    """
    check_possible(anonymizer, table)
    guides = as_list(guide_column)
    own = with_hidden_guides(anonymizer, guides)
    own._check_parameters()
    criteria = own._all_criteria()
    _check_names(table, guides, criteria, model)
    example = table.example()
    head, schema = own._read(example, criteria, is_whole=False)
    asked = Asked(schema, head, criteria, own._split_columns(schema), own.max_bins, own.quasi_identifiers is not None)
    learned = table.learn(asked, own._check_feasible)
    guiding = learn_guide(own, table, guides, schema, model)
    partition, parts = _grow(own, table, schema, learned, guiding, criteria, most_held)
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
    criteria: Sequence[Criterion],
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
    with table.coded(schema, learned, guiding, most_held) as records:
        tree, parts = records.grow(growth)
        hashing = describer.words()
        values = describer.values_of(parts, lambda wanted: records.count_hashes(*hashing, wanted))
    partition = partition_from_tree(
        tree, columns, values, joined_sizes(parts),
        dropped=schema.dropped, limits=schema.to_dict()["limits"], categorical=schema.categorical_features,
        representative=anonymizer.representative, guarantees=tuple(c.describe() for c in criteria),
    )  # fmt: skip
    return partition, parts


def _without_channels(guide: Guide) -> Guide:
    """Return the rule and weights of a guide: its channels are with the records."""
    n_dense = 0 if guide.dense is None else guide.dense.shape[1]
    return replace(guide, dense=np.zeros((0, n_dense), np.int64) if n_dense else None, classes=None)


def with_hidden_guides(anonymizer: Anonymizer, guides: Sequence[str]) -> Anonymizer:
    """Return a copy that lets no guide leave, unless it is kept: predictions tell records apart like names do."""
    hidden = [name for name in guides if name not in as_list(anonymizer.keep)]
    copy: Anonymizer = anonymizer.__class__(**anonymizer.get_params(deep=False))
    copy.set_params(identifiers=[*as_list(anonymizer.identifiers), *hidden] or None)
    return copy


def _check_names(table: TableBackend, guides: Sequence[str], criteria: Sequence[Criterion], model: Any) -> None:
    for name in guides:
        if name not in table.names:
            raise ParameterError(
                f"{named('guide_column')} names {name!r}, which is no column of the table. Correct the name."
            )
    if model is not None and guides:
        raise ParameterError(f"{named('model')} beside {named('guide_column')}: expected one of them. Leave one out.")
    for criterion in criteria:
        if criterion.column is not None and criterion.column not in table.names:
            raise ParameterError(
                f"{type(criterion).__name__} is on {criterion.column!r}, which is no column of the table: expected one "
                "of its columns, the target included. Correct the name, or add the column."
            )


# -- what is possible --------------------------------------------------------------------------------------------


def check_possible(anonymizer: Any, table: TableBackend) -> None:
    """Refuse what a backend declares that it cannot do, with its reason, before anything is read."""
    for need, given, expected, remedy in _needs(anonymizer):
        if need in table.cannot:
            raise ParameterError(
                f"{given} with {table.where}: expected {expected}, since {table.cannot[need]}. {remedy}"
            )


def _needs(anonymizer: Any) -> Iterator[tuple[Need, str, str, str]]:
    """Yield what an anonymizer needs, what asks for it, what would need less, and what to do."""
    name = type(anonymizer).__name__
    if isinstance(anonymizer, MondrianAnonymizer) and (anonymizer.rule != "median" or not anonymizer.strict):
        given = f"{name}(rule={anonymizer.rule!r}, strict={anonymizer.strict!r})"
        yield Need.ALL_RECORDS, given, "the strict median rule, which needs counts only", "Use a table in memory."
    elif not isinstance(anonymizer, Anonymizer) or not anonymizer._grows_from_counts():
        kinds = "ModelGuidedAnonymizer, MondrianAnonymizer or WorkloadAwareAnonymizer"
        expected = "a method that grows a tree from counts"
        yield Need.ALL_RECORDS, name, expected, f"Use {kinds}, or a table in memory."
    if anonymizer.suppression_limit:
        given = named("suppression_limit", anonymizer.suppression_limit)
        remedy = "Use release on a table in memory, which may leave records out."
        yield Need.SUPPRESSION, given, "0", remedy
    if getattr(anonymizer, "hierarchies", None):
        yield Need.HIERARCHIES, "hierarchies=", "none", "Use a table in memory."
    if getattr(anonymizer, "guide_estimator", None) is not None:
        yield Need.TRAINING, "guide_estimator=", "ready predictions", "Pass guide_column=."
    for criterion in anonymizer._all_criteria():
        if criterion.counting == "presence":
            remedy = "Use release on a table in memory."
            yield Need.POPULATION, type(criterion).__name__, "a criterion on the records alone", remedy


def _hand_over(
    anonymizer: Anonymizer, partition: Partition, example: Any, schema: Schema, parts: Sequence[DescribedGroups]
) -> None:
    """Leave the caller's anonymizer as fitting in memory would."""
    validate_data(anonymizer, example, skip_check_array=True)
    anonymizer.partition_ = partition
    anonymizer.schema_ = schema
    anonymizer.hierarchies_ = {}
    anonymizer.group_sizes_ = joined_sizes(parts)
    anonymizer.n_groups_ = len(anonymizer.group_sizes_)
    anonymizer.information_loss_ = joined_loss(parts)
