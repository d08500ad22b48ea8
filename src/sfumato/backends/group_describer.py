# SPDX-License-Identifier: Apache-2.0
"""Describe the groups of one branch at a time, and join the descriptions.

What a group gets depends on its own records and on its neighbors in the branch, so branches may be described one after
the other, or by different machines. Phantoms of branches that are too small for that wait for what their neighbors
count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.loss import group_ncp
from sfumato.partition.cells import Inside, tree_cells
from sfumato.partition.group_summaries import Groups, collect, lined_up, summarize, widths
from sfumato.partition.guides import Guide
from sfumato.partition.phantom_proposals import count_codes, propose, propose_counted
from sfumato.partition.phantom_search import Proposals
from sfumato.partition.records import Layout, Records, make_layout
from sfumato.partition.surroundings import FEWEST_AROUND, tree_surroundings
from sfumato.partition.tree import Tree
from sfumato.representatives import CellColumn, GroupValues, has_cells, looks_around, phantoms, represent, shown_of


@dataclass(frozen=True, eq=False)
class DescribedGroups:
    """The descriptions of some groups, without their records.

    Attributes
    ----------
    sizes : ndarray of int64
    values : dict
        The values of every group, for each quasi-identifier; none where proposals or the cells of the tree stand for
        them.
    loss : float
        Normalised certainty penalty of these groups.
    proposals : Proposals or None
        What groups propose that show nobody's values: which they take depends on all records.
    counts : ndarray of int64 or None
        Beside proposals: how many of all these records have each code.
    """

    sizes: NDArray[np.int64]
    values: dict[str, list[GroupValues]]
    loss: float
    proposals: Proposals | None = None
    counts: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class GroupDescriber:
    """How groups are described.

    Attributes
    ----------
    columns : sequence of CodedColumn
        The quasi-identifiers; the first codes of every record are theirs.
    block_start : int
        Where the guide's codes begin among those of a record.
    representative : str
    n_threads : int
    """

    columns: Sequence[CodedColumn]
    block_start: int
    representative: str
    n_threads: int = 1

    def describe(
        self,
        records: Records,
        group: NDArray[np.int32],
        tree: Tree,
        guide: Guide,
        random_state: np.random.Generator | None = None,
    ) -> DescribedGroups:
        """Describe the groups of a branch; `guide` has the classes of its records, its channels are those of these."""
        groups = _lined_up(group, tree.n_groups) or collect(group, tree.n_groups)
        codes = records.codes
        layout = make_layout([column.bins for column in self.columns])
        shown = shown_of(self.columns, layout)
        summary = summarize(codes, groups, layout, may_show=shown.may_show, n_threads=self.n_threads)
        loss = group_ncp(widths(summary, layout), groups.sizes)
        if looks_around(self.representative):
            around = tree_surroundings(tree, groups.sizes, self._cells(tree))
            proposals = propose(codes, groups, layout, around, shown, n_threads=self.n_threads)
            return DescribedGroups(groups.sizes, {}, loss, proposals, count_codes(codes, layout))
        if has_cells(self.representative):  # the tree says what they get, when it is whole
            return DescribedGroups(groups.sizes, {}, loss)
        own = replace(
            guide,
            dense=records.dense if records.dense.shape[1] else None,
            code_blocks=[codes[:, self.block_start + q] for q in range(len(guide.cardinalities))],
        )
        values = represent(
            self.representative, self.columns, codes, groups, layout,
            guide=own, random_state=random_state, summary=summary, n_threads=self.n_threads,
        )  # fmt: skip
        return DescribedGroups(groups.sizes, values, loss)

    def _cells(self, tree: Tree) -> list[Inside]:
        """Return the cells of the groups of a tree over the codes of the columns."""
        bins = [column.bins for column in self.columns]
        n_codes = [own.n_values if own.is_ordered else own.n_bins for own in bins]
        cells = tree_cells(tree, range(len(bins)), n_codes, [not own.is_ordered for own in bins])
        assert cells is not None
        # The codes of the tree are those of the columns: one between any two values, and each category its own.
        return [
            CellColumn(column, found, column.bins.values[:-1], np.arange(column.bins.n_values)).inside()
            for column, found in zip(self.columns, cells, strict=True)
        ]

    def values_of(
        self, parts: Sequence[DescribedGroups], tree: Tree, count: Callable[[NDArray[np.uint64]], NDArray[np.int64]]
    ) -> dict[str, list[GroupValues]]:
        """Return the values of the groups of all parts, one part after the other.

        Parameters
        ----------
        parts : sequence of DescribedGroups
        tree : Tree
            The whole of it.
        count : callable
            Takes rising hashes and returns how many records of the whole table have each combination of values.
        """
        if not looks_around(self.representative):
            return _joined_values(parts)
        return phantoms(self.columns, Proposals.joined(self._with_neighbors(parts, tree)), count)

    def _with_neighbors(self, parts: Sequence[DescribedGroups], tree: Tree) -> list[Proposals]:
        """Return the proposals of each part; a part with too few records proposes what those around it have, too."""
        ends = np.cumsum([0, *(len(part.sizes) for part in parts)])
        proposals, counts = [], []
        for part in parts:
            assert part.proposals is not None and part.counts is not None
            proposals.append(part.proposals)
            counts.append(part.counts)
        small = [at for at, part in enumerate(parts) if part.sizes.sum() < FEWEST_AROUND]
        if small and len(parts) > 1:
            layout, sizes = make_layout([column.bins for column in self.columns]), joined_sizes(parts)
            around = tree_surroundings(tree, sizes, self._cells(tree))
            for at in small:
                groups = np.arange(ends[at], ends[at + 1])
                # All groups of a part share their surroundings, which are whole parts.
                first, stop = np.searchsorted(ends, [around.first[groups[0]], around.stop[groups[0]]])
                counted = np.broadcast_to(sum(counts[first:stop]), (len(groups), int(layout.offsets[-1])))
                proposals[at] = propose_counted(counted, groups, sizes, layout, around, shown_of(self.columns, layout))
        return proposals

    def words(self) -> tuple[Layout, NDArray[np.uint64]]:
        """Return the arguments of `count_hashes` that count records with a combination of values."""
        layout = make_layout([column.bins for column in self.columns])
        return layout, shown_of(self.columns, layout).words


def _lined_up(group: NDArray[np.int32], n_groups: int) -> Groups | None:
    """Return the groups of records that are sorted by group already; None for others."""
    if len(group) == 0 or (group[1:] < group[:-1]).any():
        return None
    return lined_up(np.bincount(group, minlength=n_groups))


def joined_sizes(parts: Sequence[DescribedGroups]) -> NDArray[np.int64]:
    """Return the sizes of the groups of all parts, one part after the other."""
    return np.concatenate([part.sizes for part in parts])


def joined_loss(parts: Sequence[DescribedGroups]) -> float:
    """Return the penalty over the records of all parts."""
    sizes = [int(part.sizes.sum()) for part in parts]
    return float(sum(part.loss * n for part, n in zip(parts, sizes, strict=True)) / sum(sizes))


def _joined_values(parts: Sequence[DescribedGroups]) -> dict[str, list[GroupValues]]:
    """Return the values of the groups of all parts, one part after the other."""
    first: dict[str, list[Any]] = parts[0].values
    return {
        name: [_joined([part.values[name][place] for part in parts]) for place in range(len(first[name]))]
        for name in first
    }


def _joined(parts: list[GroupValues]) -> GroupValues:
    first = parts[0]
    if first.labels is not None:
        return GroupValues(first.name, labels=[label for part in parts for label in part.labels or []])
    values = [part.values for part in parts if part.values is not None]
    missing = [
        np.zeros(len(own), np.bool_) if part.missing is None else part.missing
        for part, own in zip(parts, values, strict=True)
    ]
    return GroupValues(first.name, np.concatenate(values), np.concatenate(missing))
