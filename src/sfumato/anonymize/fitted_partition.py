# SPDX-License-Identifier: Apache-2.0
"""A fitted partition: a tree over values, the rewritten values of each group, and a plain document of both.

The engine's tree splits on the bins of one table. This one splits on values (``age <= 34``), so that it applies to any
later table and can be read by people.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.document_checks import check_partition
from sfumato.anonymize.private_release import PrivateSettings, release_privately
from sfumato.anonymize.recoding import PartitionColumn, Recoding, cuts_after
from sfumato.anonymize.release import Release
from sfumato.arguments import as_table_like
from sfumato.coded_columns import CodedColumn
from sfumato.documents import read_document, write_document
from sfumato.errors import InputError
from sfumato.fingerprints import Fingerprints, save_beside
from sfumato.frames import read_table
from sfumato.hierarchies import CodePaths
from sfumato.partition.cells import ColumnCells, tree_cells
from sfumato.partition.surroundings import Surroundings, tree_surroundings
from sfumato.partition.tree import Tree
from sfumato.private.ledger import PrivacyLedger
from sfumato.regions import RegionColumn, Regions, regions_from_dict, regions_to_dict
from sfumato.representatives import CellColumn, GroupValues

FORMAT = "sfumato-partition"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Partition(Recoding):
    """A fitted partition: groups of records, and the values that the records of each group get.

    Attributes
    ----------
    columns : tuple of PartitionColumn
        The columns the tree splits on.
    tree : Tree
    values : dict
        Rewritten columns: for each quasi-identifier, the values of every group.
    group_sizes : ndarray of int64
        Records of each group at fit.
    dropped : tuple of str
        Columns that are never released: identifiers and the unit.
    limits : dict
        Finest width or prefix per column.
    categorical : tuple of str
        Columns of numbers that are read as categories.
    representative : str
    guarantees : tuple of str
        The criteria that held for the groups at fit, as sentences.
    criteria : tuple of dict
        The same as data, in the same order: the name of each criterion and its parameters. Empty in documents of
        earlier versions.
    fingerprints : Fingerprints or None
        Of the fitted records, for their owner: never part of the document, and not pickled.
    regions : Regions or None
        What the people of each group share, for training a model, where that was asked for.

    Notes
    -----
    A partition fitted on people is data about people. Its document holds thresholds between values, the categories
    that at least k records have, one set of values per group and group sizes of at least k. Categories that fewer
    records have are not named in it: a partition that was loaded sends them where it sends categories that were never
    seen, to the larger side of every split. With regions, the document also names the values that at least `floor`
    people have, and holds counts and means of at least as many.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfumato import MondrianAnonymizer, Partition
    >>> from sfumato.datasets import load_adult
    >>> X = load_adult(as_frame="pyarrow").data.select(["age", "sex", "hours-per-week"]).slice(0, 1000)
    >>> anonymizer = MondrianAnonymizer(k=20).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     anonymizer.partition_.save(Path(folder) / "partition.json")
    ...     loaded = Partition.load(Path(folder) / "partition.json")
    >>> loaded.n_groups == anonymizer.partition_.n_groups
    True
    """

    columns: tuple[PartitionColumn, ...]
    tree: Tree
    values: dict[str, list[GroupValues]]
    group_sizes: NDArray[np.int64]
    dropped: tuple[str, ...] = ()
    limits: dict[str, Any] = field(default_factory=dict)
    categorical: tuple[str, ...] = ()
    representative: str = "phantom"
    guarantees: tuple[str, ...] = ()
    criteria: tuple[dict[str, Any], ...] = ()
    fingerprints: Fingerprints | None = field(default=None, repr=False)
    regions: Regions | None = field(default=None, repr=False)

    def apply_codes(self, codes: NDArray[np.uint16]) -> NDArray[np.int32]:
        """Return the group of every record, given its codes in the partition's columns."""
        return self.tree.apply(codes)

    def cell_columns(
        self,
        columns: Sequence[CodedColumn],
        paths: Mapping[str, CodePaths],
        group_of_leaf: NDArray[np.integer[Any]] | None = None,
    ) -> list[CellColumn] | None:
        """Return the cells of the groups; None for a tree whose records go on elsewhere."""
        return self._cells(columns, paths, group_of_leaf)

    def _cells(
        self,
        columns: Sequence[CodedColumn],
        paths: Mapping[str, CodePaths],
        group_of_leaf: NDArray[np.integer[Any]] | None,
        *,
        may_overlap: bool = False,
    ) -> list[CellColumn] | None:
        place_of = {column.name: place for place, column in enumerate(self.columns)}
        places = [place_of[coded.name] for coded in columns]  # a later table may have its columns in another order
        own = [self.columns[place] for place in places]
        is_category = [column.categories is not None for column in own]
        n_codes = [column.unseen_code + 1 if column.categories is not None else len(column.cuts) + 1 for column in own]
        cells = tree_cells(self.tree, places, n_codes, is_category, group_of_leaf, may_overlap=may_overlap)
        if cells is None:
            return None
        return [
            CellColumn(coded, found, column.cuts, column.codes_of(coded.categories), paths.get(coded.name))
            for column, coded, found in zip(own, columns, cells, strict=True)
        ]

    def surroundings(
        self,
        columns: Sequence[CodedColumn],
        paths: Mapping[str, CodePaths],
        sizes: NDArray[np.int64],
        group_of_leaf: NDArray[np.integer[Any]] | None = None,
    ) -> Surroundings | None:
        """Return the neighbors of each group; None for a tree that divides records with equal values of a column."""
        cells = self._cells(columns, paths, group_of_leaf, may_overlap=True)
        if cells is None:
            return None
        return tree_surroundings(self.tree, sizes, [own.inside() for own in cells], group_of_leaf)

    def _shape(self) -> Iterable[NDArray[Any]]:
        tree = self.tree
        is_ordered = tree.threshold >= 0
        n_words = int(np.flatnonzero(tree.mask.any(axis=0)).max(initial=-1)) + 1
        yield from (tree.column, tree.left, tree.right, tree.group)
        yield from (np.where(is_ordered, tree.threshold, -1), is_ordered & tree.missing_left, tree.mask[:, :n_words])
        yield np.full(0, -1, np.int32) if tree.goto is None else tree.goto

    def release(
        self,
        X: Any,
        y: Any = None,
        *,
        mechanism: str,
        epsilon: float,
        delta: float | None = None,
        rate: float | None = None,
        k: int | None = None,
        labels: Sequence[Any] | None = None,
        unit: str | int | None = None,
        most_per_person: int | None = None,
        fitted_on: Any = None,
        ledger: PrivacyLedger | None = None,
    ) -> Release:
        """Return a differentially private release of records that the partition was not fitted on.

        For a partition that was loaded, such as one that was fitted on public records. Parameters as in ``release`` of
        the anonymizers. A release by k, without a mechanism, needs the fitted anonymizer or ``sfumato apply``.
        """
        settings = PrivateSettings(mechanism, epsilon, delta, rate, k, labels, unit, most_per_person, fitted_on, ledger)
        X = as_table_like(X)
        return release_privately(self, X, read_table(X, categorical=self.categorical), y, settings)

    # -- the document ----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the partition as plain lists, dicts, numbers and text, without categories that few records have."""
        return self._without_rare()._to_dict()

    def _without_rare(self) -> Partition:
        """Return the partition for publishing: categories that few records have count as unseen."""
        values, columns = dict(self.values), list(self.columns)
        keeps: dict[int, NDArray[np.int64]] = {}
        for position, column in enumerate(self.columns):
            if column.categories is None or column.is_common is None:
                continue
            is_named = column.is_common | np.isin(column.categories, self._named_by_regions(column.name))
            parts = values.get(column.name, [])
            for part in parts:
                if part.values is not None:  # a value that stands for a group is published with it
                    shown = part.values if part.missing is None else part.values[~part.missing]
                    is_named[shown] = True
            if is_named.all():
                continue
            keeps[position] = kept = np.flatnonzero(is_named)
            place = np.zeros(len(is_named), np.int64)
            place[kept] = np.arange(len(kept))
            columns[position] = replace(column, categories=column.categories[kept], is_common=None)
            if column.name in values:
                values[column.name] = [
                    part if part.values is None else replace(part, values=place[part.values]) for part in parts
                ]
        if not keeps:
            return self
        return replace(self, columns=tuple(columns), values=values, tree=_with_codes(self.tree, self.columns, keeps))

    def _named_by_regions(self, name: str) -> list[Any]:
        """Return the categories of a column that regions name, and a document with them."""
        own = () if self.regions is None else (column for column in self.regions.columns if column.name == name)
        return [value for column in own if column.categories is not None for value in column.categories]

    def _to_dict(self) -> dict[str, Any]:
        regions = None if self.regions is None else regions_to_dict(self.regions)
        return {
            "format": FORMAT,
            "version": VERSION,
            "guarantees": list(self.guarantees),
            **({"criteria": list(self.criteria)} if self.criteria else {}),
            "representative": self.representative,
            "dropped": list(self.dropped),
            "limits": {name: limit.item() if hasattr(limit, "item") else limit for name, limit in self.limits.items()},
            "categorical": list(self.categorical),
            "columns": [_column_to_dict(c) for c in self.columns],
            "nodes": [self._node_to_dict(node) for node in range(self.tree.n_nodes)],
            "groups": {
                "sizes": self.group_sizes.tolist(),
                "values": {name: [_values_to_dict(p) for p in parts] for name, parts in self.values.items()},
            },
            **({} if regions is None else {"regions": regions}),
        }

    def _node_to_dict(self, node: int) -> dict[str, Any]:
        tree = self.tree
        if tree.group[node] >= 0:
            return {"group": int(tree.group[node])}
        if tree.column[node] < 0:
            assert tree.goto is not None
            return {"goto": int(tree.goto[node])}
        column = self.columns[tree.column[node]]
        document: dict[str, Any] = {"column": column.name}
        if column.categories is None:
            threshold = int(tree.threshold[node])
            document["at_most"] = column.cuts[threshold].item() if threshold < len(column.cuts) else None
            document["missing"] = _side(bool(tree.missing_left[node]))
        else:
            bits = _unpack_bits(tree.mask[node], column.unseen_code + 1)
            document["in"] = [int(code) for code in np.flatnonzero(bits[: len(column.categories)])]
            document["missing"] = _side(bool(bits[column.missing_code]))
            document["unseen"] = _side(bool(bits[column.unseen_code]))
        return document | {"left": int(tree.left[node]), "right": int(tree.right[node])}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Partition:
        """Rebuild a partition from `to_dict`'s document."""
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise InputError(
                f"a document with format {document.get('format')!r} and version {document.get('version')!r}: expected "
                f"{FORMAT!r} and {VERSION}. Save the partition again with this version of sfumato."
            )
        check_partition(document)
        try:
            columns = tuple(_column_from_dict(c, document["nodes"]) for c in document["columns"])
            groups = document["groups"]
            _check_nodes(document["nodes"], len(groups["sizes"]))
            partition = cls(
                columns=columns,
                tree=_tree_from_dicts(columns, document["nodes"]),
                values={name: [_values_from_dict(p) for p in parts] for name, parts in groups["values"].items()},
                group_sizes=np.array(groups["sizes"], np.int64),
                dropped=tuple(document["dropped"]),
                limits=dict(document["limits"]),
                categorical=tuple(document["categorical"]),
                representative=document["representative"],
                guarantees=tuple(document["guarantees"]),
                criteria=tuple(document.get("criteria", ())),
            )
            if "regions" not in document:
                return partition
            regions = regions_from_dict(document["regions"], partition.group_sizes, partition._cells_of)
            return replace(partition, regions=regions)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise InputError(
                f"a partition document with parts that are absent or not of their kind ({type(error).__name__}): "
                "expected what Partition.save wrote. "
                "Save the partition again."
            ) from error

    def _cells_of(self, column: RegionColumn) -> tuple[ColumnCells, NDArray[np.int64]] | None:
        """Return the cells of a column of regions, and the codes of its values if they are categories."""
        place = next((at for at, own in enumerate(self.columns) if own.name == column.name), None)
        own = None if place is None else self.columns[place]
        kind = column.categories is None, column.moment
        if place is None or own is None or (own.categories is None, own.moment) != kind:
            raise InputError(
                "a partition document whose regions have a column that is not among its own: expected what "
                "Partition.save wrote. Save the partition again."
            )
        n_codes = own.unseen_code + 1 if own.categories is not None else len(own.cuts) + 1
        cells = tree_cells(self.tree, [place], [n_codes], [own.categories is not None])
        if cells is None:
            return None
        code_of = own.codes_of(column.categories)
        codes = np.zeros(len(column.values), np.int64) if not len(code_of) else code_of[column.values]
        return cells[0], codes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the partition as a JSON file; a file of that name is replaced only when all is written.

        Beside ``partition.json``, the file ``partition.fingerprints`` gets the fingerprints of the fitted records. It
        is the owner's: do not hand it on.
        """
        write_document(self.to_dict(), path)
        save_beside(self.fingerprints, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Partition:
        """Read a partition that `save` wrote, and the fingerprints of its records if they are beside it."""
        partition = cls.from_dict(read_document(path, "a partition", "Partition.save"))
        return replace(partition, fingerprints=Fingerprints.load(path))


def partition_from_tree(
    tree: Tree,
    columns: Sequence[CodedColumn],
    values: dict[str, list[GroupValues]],
    group_sizes: NDArray[np.int64],
    **described: Any,
) -> Partition:
    """Turn the engine's tree over bins into a partition over values.

    Only thresholds that the tree uses are kept, each between two bins and rounded to few digits.
    """
    threshold = tree.threshold.copy()
    n_words = max(1, max((-(-(c.bins.n_values + 2) // 64) for c in columns if not c.bins.is_ordered), default=1))
    mask = np.zeros((tree.n_nodes, n_words), np.uint64)
    mask[:, : tree.mask.shape[1]] = tree.mask[:, :n_words]
    made: list[PartitionColumn] = []
    for position, column in enumerate(columns):
        nodes = np.flatnonzero(tree.column == position)
        if column.bins.is_ordered:
            last_bins = np.unique(tree.threshold[nodes])
            inner = last_bins[last_bins < column.bins.n_values - 1]
            cuts = cuts_after(column, inner.tolist())
            # A split after the last bin sends all values left: its threshold lies above every code.
            threshold[nodes] = np.searchsorted(inner, tree.threshold[nodes])
            made.append(PartitionColumn(column.name, column.kind, column.moment, cuts, None))
        else:
            own = PartitionColumn.of_categories(column)
            larger = tree.larger_left[nodes]
            if not column.bins.has_missing:
                _set_bit(mask, nodes, own.missing_code, larger)
            _set_bit(mask, nodes, own.unseen_code, larger)
            made.append(own)
    value_tree = replace(
        tree,
        threshold=threshold,
        mask=mask,
        missing_codes=np.array([c.missing_code for c in made], np.int64),
    )
    return Partition(tuple(made), value_tree, values, group_sizes, **described)


def _with_codes(tree: Tree, columns: Sequence[PartitionColumn], keeps: Mapping[int, NDArray[np.int64]]) -> Tree:
    """Return the tree for columns of which only some categories are kept, under new codes."""
    mask = tree.mask.copy()
    for position, kept in keeps.items():
        column = columns[position]
        nodes = np.flatnonzero(tree.column == position)
        old = [*kept.tolist(), column.missing_code, column.unseen_code]
        mask[nodes] = 0
        for new, code in enumerate(old):
            is_set = (tree.mask[nodes, code >> 6] >> np.uint64(code & 63)) & np.uint64(1) != 0
            _set_bit(mask, nodes, new, is_set)
    missing_codes = tree.missing_codes.copy()
    for position, kept in keeps.items():
        missing_codes[position] = len(kept)
    return replace(tree, mask=mask, missing_codes=missing_codes)


def _set_bit(mask: NDArray[np.uint64], nodes: NDArray[np.int64], code: int, is_set: NDArray[np.bool_]) -> None:
    mask[nodes, code >> 6] |= is_set.astype(np.uint64) << np.uint64(code & 63)


def _unpack_bits(words: NDArray[np.uint64], n_bits: int) -> NDArray[np.bool_]:
    return np.array([(int(words[b >> 6]) >> (b & 63)) & 1 for b in range(n_bits)], np.bool_)


def _side(is_left: bool) -> str:
    return "left" if is_left else "right"


def _column_to_dict(column: PartitionColumn) -> dict[str, Any]:
    document: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.moment is not None:
        document["moment"] = column.moment
    if column.categories is not None:
        document["categories"] = list(column.categories)
    else:
        document["is_real"] = column.cuts.dtype.kind == "f"
    return document


def _column_from_dict(document: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> PartitionColumn:
    name = document["name"]
    categories = None
    if document["kind"] == "category":
        categories = np.empty(len(document["categories"]), object)
        categories[:] = document["categories"]
    used = {n["at_most"] for n in nodes if n.get("column") == name and n.get("at_most") is not None}
    is_real = document.get("is_real") or any(isinstance(cut, float) for cut in used)
    cuts = np.array(sorted(used), np.float64 if is_real else np.int64)
    return PartitionColumn(name, document["kind"], document.get("moment"), cuts, categories)


def _check_nodes(nodes: Sequence[Mapping[str, Any]], n_groups: int) -> None:
    """Raise InputError unless the nodes form a tree: a changed file could send records in circles."""
    inner = [(at, node) for at, node in enumerate(nodes) if "column" in node]
    children = [node[side] for _, node in inner for side in ("left", "right")]
    is_tree = sorted(children) == list(range(1, len(nodes)))
    is_tree &= all(min(node["left"], node["right"]) > at for at, node in inner)
    leaves = [node["group"] for node in nodes if "group" in node]
    n_going_on = sum("goto" in node for node in nodes)
    is_tree &= len(inner) + len(leaves) + n_going_on == len(nodes)
    if not is_tree or sorted(leaves) != list(range(n_groups)) or (n_going_on and not _all_arrive(nodes)):
        raise InputError(
            f"a partition document whose {len(nodes)} nodes are not one tree with {n_groups} groups: expected what "
            "Partition.save wrote. Save the partition again."
        )


def _all_arrive(nodes: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if every path through the nodes, `goto` included, ends in a group."""
    n_open = [2 if "column" in node else int("goto" in node) for node in nodes]
    before: list[list[int]] = [[] for _ in nodes]
    for at, node in enumerate(nodes):
        for following in [node[way] for way in ("left", "right", "goto") if way in node]:
            if not 0 <= following < len(nodes):
                return False
            before[following].append(at)
    arriving = [at for at, n in enumerate(n_open) if n == 0]
    for at in arriving:  # grows while it is read: a node arrives once all its ways do
        for earlier in before[at]:
            n_open[earlier] -= 1
            if n_open[earlier] == 0:
                arriving.append(earlier)
    return len(arriving) == len(nodes)


def _tree_from_dicts(columns: Sequence[PartitionColumn], nodes: Sequence[Mapping[str, Any]]) -> Tree:
    n = len(nodes)
    positions = {column.name: position for position, column in enumerate(columns)}
    n_words = max(1, max((-(-(c.unseen_code + 1) // 64) for c in columns if c.categories is not None), default=1))
    tree = Tree(
        column=np.full(n, -1, np.int32),
        left=np.full(n, -1, np.int32),
        right=np.full(n, -1, np.int32),
        threshold=np.full(n, -1, np.int32),
        missing_left=np.zeros(n, np.bool_),
        mask=np.zeros((n, n_words), np.uint64),
        group=np.full(n, -1, np.int32),
        split_rank=np.full(n, -1, np.int32),
        larger_left=np.zeros(n, np.bool_),
        missing_codes=np.array([c.missing_code for c in columns], np.int64),
        goto=np.full(n, -1, np.int32) if any("goto" in node for node in nodes) else None,
    )
    for node, document in enumerate(nodes):
        if "group" in document:
            tree.group[node] = document["group"]
            continue
        if "goto" in document:
            assert tree.goto is not None
            tree.goto[node] = document["goto"]
            continue
        position = positions[document["column"]]
        column = columns[position]
        tree.column[node], tree.left[node], tree.right[node] = position, document["left"], document["right"]
        at = np.array([node])
        if column.categories is None:
            limit = document["at_most"]
            tree.threshold[node] = len(column.cuts) if limit is None else np.searchsorted(column.cuts, limit)
            tree.missing_left[node] = document["missing"] == "left"
        else:
            codes = [*document["in"]]
            codes += [column.missing_code] if document["missing"] == "left" else []
            codes += [column.unseen_code] if document["unseen"] == "left" else []
            for code in codes:
                _set_bit(tree.mask, at, code, np.array([True]))
    return tree


def _values_to_dict(part: GroupValues) -> dict[str, Any]:
    if part.labels is not None:
        return {"name": part.name, "labels": list(part.labels)}
    assert part.values is not None
    values: list[Any] = part.values.tolist()
    if part.missing is not None:
        values = [None if absent else value for value, absent in zip(values, part.missing, strict=True)]
    return {"name": part.name, "values": values, "is_real": part.values.dtype.kind == "f"}


def _values_from_dict(document: Mapping[str, Any]) -> GroupValues:
    if "labels" in document:
        return GroupValues(document["name"], labels=list(document["labels"]))
    missing = np.array([value is None for value in document["values"]], np.bool_)
    dtype = np.float64 if document["is_real"] else np.int64
    values = np.array([0 if value is None else value for value in document["values"]], dtype)
    return GroupValues(document["name"], values, missing)
