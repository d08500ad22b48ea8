# SPDX-License-Identifier: Apache-2.0
"""Anonymization with an R+-tree: a spatial index whose leaves are the groups, with insertion of later batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymize.anonymizer import Anonymizer
from sfumato.anonymize.fit_inputs import names_target, target_column
from sfumato.anonymize.fitted_partition import Partition
from sfumato.anonymize.hierarchy_columns import in_tree_order
from sfumato.anonymize.method import FACTS, NamedMethod
from sfumato.anonymize.partitioners import Fit, Task, TreePartitioner
from sfumato.anonymize.recoding import PartitionColumn, cut_after
from sfumato.arguments import Names, Seed, as_table_like
from sfumato.backends.memory import code_column, read_limited
from sfumato.coded_columns import CodedColumn
from sfumato.columns import Column, join_columns
from sfumato.criteria import Criterion
from sfumato.criteria.criterion_counts import Counter, fewest_records, make_counter, publishing_floor
from sfumato.errors import ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.partition.binning import DEFAULT_MAX_BINS
from sfumato.partition.group_summaries import collect
from sfumato.partition.grower import Grown, in_group_order
from sfumato.partition.records import Records, make_layout, pack_records
from sfumato.partition.rplus import Check, pack
from sfumato.partition.taxonomy import Taxonomy
from sfumato.partition.tree import Tree
from sfumato.representatives import Representative


@dataclass(frozen=True, eq=False)
class _Held:
    """The records of all batches, as far as groups depend on them.

    Attributes
    ----------
    columns : list of Column
        The quasi-identifiers, as coarse as their limits.
    counted : list of (Column or None)
        The column each criterion looks at.
    batch : ndarray of int32
        When each record came in; every batch counts as published before the next.
    """

    columns: list[Column]
    counted: list[Column | None]
    batch: NDArray[np.int32]

    def joined_with(self, columns: Sequence[Column], counted: Sequence[Column | None]) -> _Held:
        """Return these records and those of one more batch."""
        n_new = columns[0].n_records
        return _Held(
            [join_columns([old, new]) for old, new in zip(self.columns, columns, strict=True)],
            [
                None if old is None or new is None else join_columns([old, new])
                for old, new in zip(self.counted, counted, strict=True)
            ],
            np.append(self.batch, np.full(n_new, self.batch[-1] + 1, np.int32)),
        )


class RPlusTreeAnonymizer(Anonymizer):
    """Make a table k-anonymous with the leaves of an R+-tree, and insert later batches without leaking.

    The records are packed top-down: of all columns, the cut with the smallest bounding boxes on both sides, until
    leaves hold k to 2k - 1 records. `insert` adds later records to the leaves; a leaf that overflows is cut in two
    if both sides keep k, in the new release and compared with earlier ones.

    Parameters
    ----------
    k : int, default=10
        Minimum group size.
    quasi_identifiers : list of str or int, optional
        Columns that together could identify a person, by name or position. None: all columns.
    identifiers : list of str or int, optional
        Direct identifiers; dropped.
    keep : list of str or int, optional
        Columns to release unchanged although most of their values are unique.
    criteria : list of Criterion, optional
        Further conditions on every group.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    limits : dict, optional
        Finest width (numbers), number of characters (text) or days (dates) to release, per column.
    hierarchies : dict, optional
        For each column, by name or position, a `Hierarchy`, the path of a hierarchy file, or a nested mapping. Such a
        column is a category in the order of its tree; ``representative="range"`` publishes the lowest common ancestor
        of a cell, and information loss counts the values under it. Cuts are still chosen by the
        values in the boxes.
    keep_records : bool, default=False
        Keep the records' quasi-identifiers, and the columns of criteria, in the fitted anonymizer, so that later
        batches can be inserted. Such an anonymizer, and a pickle of it, is as personal as the data.
    representative : str, default="phantom"
        How a group is rewritten: ``"phantom"`` (values of the group and its neighbors in the tree, changed until no
        record of the table has the combination, or at least k have),
        ``"median"``, ``"mean"``, ``"midrange"``, ``"range"`` (a label
        for the cell of the tree), ``"bounds"`` (its ends as two columns; categories by the order their type declares,
        else sorted), ``"tight-range"`` and ``"tight-bounds"`` (from the lowest to the highest member, which tells who
        is not in the table), or the values of one real record: ``"model"`` (of the tenth of the members whose
        predictions are nearest the group's mean prediction, the one nearest the group's median), ``"member"`` (the
        member nearest the group's median among those with the majority prediction), ``"sample"``. Numbers come from
        runs of values that at least k records share, and categories that fewer have are not named.
    suppression_limit : float, default=0.0
        Share of the records that `release` may suppress: failing groups first, then the costliest records.
    max_bins : int, default=255
        Number of bins of a numeric column with more distinct values.
    random_state : int or RandomState, optional
        Seed for ``representative="sample"``.
    n_jobs : int, optional
        Threads; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    partition_ : Partition
        The groups and their values; saves to and loads from a plain document, which holds no records.
    group_sizes_ : ndarray of int64
    n_groups_ : int
    information_loss_ : float
        Normalized certainty penalty of the groups, from 0 to 1.
    schema_ : Schema

    Notes
    -----
    *Guarantee.* In the result of `fit_transform` and of `release`, every record shares its quasi-identifiers with at
    least k - 1 others, recounted on the result itself. It does not prevent attribute disclosure.

    *Guarantee over time.* Let all records held be published after `fit` and after every `insert`, with nothing
    suppressed. Then any group of one publication and any group of another have no record in common, or at least k,
    so that comparing them never narrows a person down to fewer than k records. The `criteria` must also hold for those
    records whenever a leaf is cut. Every batch counts as published, whether it was or not. Not guaranteed: records that
    are removed or changed, and releases of only some of the records.

    The leaves' regions cover the whole space without overlap, so new records always belong to one leaf. Cuts are
    binary and categories stand in sorted order. No optimality is claimed.

    References
    ----------
    Iwuchukwu, T., Naughton, J. (2007). K-anonymization as spatial indexing: toward scalable and incremental
    anonymization.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import RPlusTreeAnonymizer
    >>> X = np.array([[25, 1], [27, 1], [31, 0], [33, 0], [58, 1], [61, 1]])
    >>> anonymizer = RPlusTreeAnonymizer(k=2, keep_records=True)
    >>> anonymizer.fit_transform(X).tolist()
    [[26, 1], [26, 1], [32, 0], [32, 0], [32, 1], [32, 1]]
    >>> more = np.array([[45, 0], [47, 0]])
    >>> anonymizer.insert(more).release(np.concatenate([X, more]), shuffle=False).table[-2:].tolist()
    [[46, 0], [46, 0]]
    """

    partition_: Partition
    _held: _Held | None

    def __init__(
        self,
        k: int = 10,
        *,
        quasi_identifiers: Names | None = None,
        identifiers: Names | None = None,
        keep: Names | None = None,
        criteria: list[Criterion] | None = None,
        categorical_features: Names | None = None,
        limits: dict[Any, Any] | None = None,
        hierarchies: Mapping[Any, Any] | None = None,
        keep_records: bool = False,
        representative: Representative = "phantom",
        suppression_limit: float = 0.0,
        max_bins: int = DEFAULT_MAX_BINS,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.identifiers = identifiers
        self.keep = keep
        self.criteria = criteria
        self.categorical_features = categorical_features
        self.limits = limits
        self.hierarchies = hierarchies
        self.keep_records = keep_records
        self.representative = representative
        self.suppression_limit = suppression_limit
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def insert(self, X: Any, y: Any = None, target: Any = None) -> Self:
        """Insert a batch of later records: they join the leaves they fall into, and leaves that overflow are cut.

        Publish all records so far with `release` afterwards. What was published before stays safe beside it.

        Parameters
        ----------
        X : frame or array
            The new records alone.
        y : array-like, optional
            Their target, where a criterion is on it.
        target : array-like, optional
            What a criterion on the target counts, where `y` is something else; else `y`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "partition_")
        if self._held is None:
            raise ParameterError(
                f"insert with {named('keep_records', self.keep_records)} at fit: expected True, since cutting a leaf "
                "takes its records. Fit again with keep_records=True."
            )
        X = as_table_like(X)
        table = read_table(X, categorical=self.schema_.categorical_features)
        validate_data(self, X, reset=False, skip_check_array=True)
        criteria = self._all_criteria()
        columns = [read_limited(table, c.name, self.partition_.limits) for c in self.partition_.columns]
        for own, column in zip(self.partition_.columns, columns, strict=True):
            own.encode(column)  # raises if a column holds other values than before, while nothing is changed
        counted = _counted_columns(table, criteria, y if target is None else target)
        held = self._held.joined_with(columns, counted)
        known = self.partition_.fingerprints
        self._take_in(held, [make_counter(c, column) for c, column in zip(criteria, held.counted, strict=True)])
        self._held = held
        if known is not None:
            self.partition_ = replace(self.partition_, fingerprints=known.with_records(table))
        return self

    def _take_in(self, held: _Held, counters: list[Counter]) -> None:
        """Cut the leaves that overflow with these records, and describe all groups again."""
        n_records, k = len(held.batch), fewest_records(counters)
        floor, limits = publishing_floor(counters), self.partition_.limits
        coded = [code_column(c, max_bins=self.max_bins, floor=floor, limit=limits.get(c.name)) for c in held.columns]
        coded, paths = in_tree_order(coded, self.hierarchies_)
        codes = pack_records([c.codes for c in coded]).codes
        leaf = self.partition_.apply_columns(held.columns, n_records)
        full = np.flatnonzero(np.bincount(leaf, minlength=self.partition_.n_groups) >= 2 * k)
        rows = np.flatnonzero(np.isin(leaf, full))
        group, partition = leaf, self.partition_
        if len(rows):
            tree, _ = pack(
                codes[rows],
                make_layout([c.bins for c in coded]),
                k,
                roots=np.searchsorted(full, leaf[rows]),
                batch=held.batch[rows],
                check=_check_publications(counters, held.batch, rows),
                n_threads=self._n_threads(),
            )
            partition = graft(partition, tree, full, coded)
            group = partition.apply_columns(held.columns, n_records)
        groups = collect(group, partition.n_groups)
        if partition is self.partition_:
            # Values of groups index the categories of all records, so the partition has to know them too.
            partition = graft(partition, None, np.zeros(0, np.int64), coded)
        self.partition_ = self._described(partition, coded, codes, groups, None, paths)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, target: Any = None, finer: int = 0) -> Fit:
        fitted = super()._fit(X, y, sample_weight, target, finer)
        self._held = None
        if self.keep_records:
            table = fitted.table
            self._held = _Held(
                [read_limited(table, c.name, self.partition_.limits) for c in self.partition_.columns],
                _counted_columns(table, self._all_criteria(), y if target is None else target),
                np.zeros(table.n_records, np.int32),
            )
        return fitted

    def _partitioner(self) -> RPlusTreePartitioner:
        return RPlusTreePartitioner()


class RPlusTreePartitioner(TreePartitioner):
    """Packs records into the leaves of a spatial index."""

    def grow(self, records: Records, task: Task, taxonomy: Taxonomy) -> Grown:
        """Grow the index."""
        tree, group = pack(
            records.codes,
            task.source.layout,
            fewest_records(task.counters),
            check=_check_publications(task.counters, np.zeros(records.n_records, np.int32), None),
            n_threads=task.n_threads,
        )
        return in_group_order(tree, group, records)


def _counted_columns(table: Table, criteria: list[Criterion], target: Any) -> list[Column | None]:
    """Return the column each criterion looks at; None for those that count records."""
    read_target = target_column(criteria, table, target)
    return [
        read_target if names_target(c, table, target) else None if c.column is None else table.column(c.column)
        for c in criteria
    ]


def _check_publications(
    counters: list[Counter], batch: NDArray[np.int32], rows: NDArray[np.int64] | None
) -> Check | None:
    """Return the test of a cut's sides for criteria that count more than records, on every publication so far.

    Of the records published up to a batch, a side must hold none or meet the criteria. `rows` are the records the
    sides speak of; None: all.
    """
    asked = [counter for counter in counters if counter.value_of_row is not None]
    if not asked:
        return None
    publications = [(batch <= last, [c.among(batch <= last) for c in asked]) for last in range(int(batch.max()) + 1)]

    def check(side: NDArray[np.int64], n_sides: int) -> NDArray[np.bool_]:
        every = side
        if rows is not None:
            every = np.full(len(batch), -1, np.int64)
            every[rows] = side
        is_safe = np.ones(n_sides, np.bool_)
        for is_published, own in publications:
            seen = np.where(is_published, every, -1)
            for counter in own:
                is_safe &= counter.are_safe(seen, n_sides)
        return is_safe

    return check


# -- growing a fitted partition on -------------------------------------------------------------------------------

# The work is done on the partition's document, where nodes hold values: bins differ from table to table.


def graft(
    partition: Partition, forest: Tree | None, leaves: NDArray[np.int64], columns: Sequence[CodedColumn]
) -> Partition:
    """Return the partition with trees in the place of some of its leaves, and without values per group.

    Parameters
    ----------
    partition : Partition
    forest : Tree or None
        Trees over the bins of `columns`; the first nodes are the roots. None grafts nothing.
    leaves : ndarray of int64
        The groups that the roots stand for.
    columns : sequence of CodedColumn
        The partition's columns as they are now. Categories it did not know stay on the side they were sent to.
    """
    document = partition._to_dict()  # rare categories included: it is not published
    nodes = [_with_categories(node, partition, columns) for node in document["nodes"]]
    place_of_group = {node["group"]: place for place, node in enumerate(nodes) if "group" in node}
    if forest is not None:
        n_roots = len(leaves)
        place = [place_of_group[int(leaf)] for leaf in leaves]
        place += list(range(len(nodes), len(nodes) + forest.n_nodes - n_roots))
        nodes += [{}] * (forest.n_nodes - n_roots)
        for node in range(forest.n_nodes):
            nodes[place[node]] = _grafted_node(forest, node, columns, place)
    n_groups = _number_groups(nodes)
    document["columns"] = [_described(column, nodes) for column in columns]
    document["nodes"] = nodes
    document["groups"] = {"sizes": [0] * n_groups, "values": {}}
    grown = Partition.from_dict(document)
    known = [
        own if column.categories is None else PartitionColumn.of_categories(column)
        for own, column in zip(grown.columns, columns, strict=True)
    ]
    return replace(grown, columns=tuple(known))


def _described(column: CodedColumn, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.moment is not None:
        described["moment"] = column.moment
    if column.categories is not None:
        described["categories"] = list(column.categories)
    else:
        cuts = [node.get("at_most") for node in nodes if node.get("column") == column.name]
        described["is_real"] = column.bins.values.dtype.kind == "f" or any(isinstance(cut, float) for cut in cuts)
    return described


def _with_categories(node: dict[str, Any], partition: Partition, columns: Sequence[CodedColumn]) -> dict[str, Any]:
    """Return a node that names the categories by their present places."""
    if "in" not in node:
        return node
    position = next(p for p, column in enumerate(partition.columns) if column.name == node["column"])
    old, new = partition.columns[position].categories, columns[position].categories
    assert old is not None
    assert new is not None
    goes_left = {old[code] for code in node["in"]}
    if node["unseen"] == "left":
        goes_left |= set(new) - set(old)
    return node | {"in": [place for place, value in enumerate(new) if value in goes_left]}


def _grafted_node(forest: Tree, node: int, columns: Sequence[CodedColumn], place: Sequence[int]) -> dict[str, Any]:
    if forest.column[node] < 0:
        return {"group": -1}
    column = columns[forest.column[node]]
    larger = "left" if forest.larger_left[node] else "right"
    document: dict[str, Any] = {"column": column.name}
    if column.bins.is_ordered:
        last = int(forest.threshold[node])
        document["at_most"] = cut_after(column, last) if last < column.bins.n_values - 1 else None
        document["missing"] = "right"
    else:
        words = forest.mask[node]
        document["in"] = [c for c in range(column.bins.n_values) if int(words[c >> 6]) >> (c & 63) & 1]
        document["missing"] = "right" if column.bins.has_missing else larger  # missing comes after all categories
        document["unseen"] = larger
    return document | {"left": place[forest.left[node]], "right": place[forest.right[node]]}


def _number_groups(nodes: list[dict[str, Any]]) -> int:
    """Number the leaves from left to right, in place, and return how many there are."""
    n_groups = 0
    waiting = [0]
    while waiting:
        place = waiting.pop()
        node = nodes[place]
        if "group" in node:
            nodes[place] = {"group": n_groups}
            n_groups += 1
        else:
            waiting += [node["right"], node["left"]]
    return n_groups


R_PLUS_TREE = NamedMethod(
    FACTS["r-plus-tree"],
    RPlusTreeAnonymizer,
)
