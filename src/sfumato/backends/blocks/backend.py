# SPDX-License-Identifier: Apache-2.0
"""Fit over a table that is read in blocks: counts of values, codes in a private file, a release in one file.

The table is read four times: for predictions, values, codes, and the unchanged columns of the release. The release is
read once more, to be recounted before it gets its name. Several blocks are read at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import FROM_COUNTS, Asked, Growth, Guiding, Learned, Recipe, TableRegions, check_of
from sfumato.backends.blocks.binning import ColumnLearner, write_codes
from sfumato.backends.blocks.block_table import BlockTable
from sfumato.backends.blocks.code_file import CodeFile
from sfumato.backends.blocks.pass_through import PassThrough
from sfumato.backends.group_describer import DescribedGroups
from sfumato.backends.parquet.rewrite import WrittenFile, written_file
from sfumato.criteria.criterion_counts import Counter, make_counters, publishing_floor
from sfumato.documents import unpublished
from sfumato.frames import read_table
from sfumato.frames.shuffling import random_order
from sfumato.partition.group_summaries import collect
from sfumato.partition.records import Layout, pack_records
from sfumato.partition.streaming import Branch, grow_outer
from sfumato.partition.tree import Tree
from sfumato.progress import Progress, told
from sfumato.regions import RegionCounting, Regions
from sfumato.representatives import CellColumn
from sfumato.schema import Schema

BRANCH = 2_000_000
"""Records from which on a node is split from counts: what lies below is grown by one thread."""


class BlockBackend:
    """A table in files or in a database, and the file that its release becomes.

    Parameters
    ----------
    table : BlockTable
    destination : Path
        Working files lie beside it while they are needed.
    where : str
        How sentences name the place of the table.
    shuffle : bool
        Whether the records of the release are in a random order.
    n_threads : int
    progress : callable or None
    """

    cannot = FROM_COUNTS

    def __init__(
        self,
        table: BlockTable,
        destination: Path,
        *,
        where: str,
        shuffle: bool,
        n_threads: int,
        progress: Progress | None = None,
    ) -> None:
        self.table, self.destination, self.where = table, destination, where
        self.shuffle, self.n_threads, self.progress = shuffle, n_threads, progress
        self.order: NDArray[np.integer[Any]] | None = None
        self._groups: _Groups | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self.table.names

    def example(self) -> Any:
        """Return the first records."""
        return self.table.head(1 << 20)

    def map_blocks(self, work: Callable[[int, Any], Any], names: Sequence[str]) -> list[Any]:
        """Return the results of a function for every block of some columns, given the number of its first record."""
        return list(self._each("reading predictions", work, names))

    def _each(self, what: str, work: Callable[[int, Any], Any], names: Sequence[str], **how: Any) -> Iterator[Any]:
        """Call a function with every block of some columns, and report progress."""
        results = self.table.each(work, names, n_threads=self.n_threads, **how)
        return told(results, self.progress, what, self.table.n_records)

    # -- values --------------------------------------------------------------------------------------------------

    def learn(self, asked: Asked, check_feasible: Callable[[list[Counter], int], None]) -> Learned:
        """Count all values: for the criteria, for the bins, and for columns that identify people."""
        schema, table = asked.schema, self.table
        counters = self._counters(asked)
        check_feasible(counters, table.n_records)
        learner = ColumnLearner(
            asked.split, categorical=schema.categorical_features, limits=schema.limits, max_bins=asked.max_bins,
            floor=publishing_floor(counters), finer=asked.finer,
        )  # fmt: skip
        watched = PassThrough(schema, asked.head, table.n_records, is_chosen=asked.is_chosen)

        def count(_: int, block: Any) -> None:
            learner.count(block)
            watched.add(block)

        wanted = list(dict.fromkeys([*asked.split, *watched.names]))
        for _ in self._each("counting values", count, wanted, text_as_categories=True):
            pass
        watched.check()
        return Learned(learner.columns(), counters, table.n_records)

    def _counters(self, asked: Asked) -> list[Counter]:
        """Read the columns that criteria count; memory holds them as narrow codes."""
        import pyarrow as pa

        names = list(dict.fromkeys(c.column for c in asked.criteria if c.column is not None))
        whole = pa.concat_tables(list(self.table.batches(names))) if names else self.table.head(1)
        categorical = [name for name in asked.schema.categorical_features if name in names]
        return make_counters(asked.criteria, read_table(whole, categorical=categorical))

    # -- codes ---------------------------------------------------------------------------------------------------

    @contextmanager
    def coded(
        self, schema: Schema, learned: Learned, guiding: Guiding, regions: TableRegions | None, most_held: int
    ) -> Iterator[CodedBlocks]:
        """Yield the codes and channels of all records, in a private file."""
        columns = learned.columns
        example = guiding.of(None)
        n_dense = 0 if example.dense is None else example.dense.shape[1]
        kinds = [column.codes.dtype for column in columns] + [block.dtype for block in example.code_blocks]
        empty = pack_records([np.zeros(0, kind) for kind in kinds], dense=np.zeros((0, n_dense), np.int64))
        classes = None if example.classes is None else np.empty(learned.n_records, example.classes.dtype)
        counted = None if regions is None else _CountedRegions(regions, learned.n_records)

        def code(start: int, block: Any) -> None:
            codes = [np.empty(block.num_rows, column.codes.dtype) for column in columns]
            for column, own in zip(columns, codes, strict=True):
                write_codes(
                    column, block.column(column.name), own,
                    as_category=column.name in schema.categorical_features, limits=schema.limits,
                )  # fmt: skip
            guide = guiding.of(block, start)
            if classes is not None:
                classes[start : start + block.num_rows] = guide.classes
            if counted is not None:
                counted.read(start, block)
            file.write(start, [*codes, *guide.code_blocks], guide.dense)

        with CodeFile(self.destination.absolute().parent, kinds, empty, n_threads=self.n_threads) as file:
            target = [] if regions is None else [regions.name]
            names = list(dict.fromkeys([*(column.name for column in columns), *guiding.names, *target]))
            for _ in self._each("coding", code, names, text_as_categories=True):
                pass
            file.start([check_of(counter) for counter in learned.counters if counter.value_of_row is not None])
            self._groups = _Groups(learned.n_records, classes, counted, self.progress)
            yield CodedBlocks(file, self._groups, most_held)

    # -- the release ---------------------------------------------------------------------------------------------

    @contextmanager
    def rewritten(self, recipe: Recipe, schema: Schema, learned: Learned) -> Iterator[WrittenFile]:
        """Write the release to a file that gets its name when the context ends without an error."""
        assert self._groups is not None
        group = self._groups.group
        if self.shuffle:
            self.order = random_order(self.table.n_records)
            group = group[self.order]
        with unpublished(self.destination) as temporary:
            yield written_file(
                self.table, temporary, self.destination.absolute().parent, recipe, schema, learned.columns, group,
                self.order, n_threads=self.n_threads, progress=self.progress,
            )  # fmt: skip


class CodedBlocks:
    """Codes in a file, of which a tree is grown.

    Parameters
    ----------
    file : CodeFile
    groups : _Groups
        Gets the group of every record.
    most_held : int
        Records held in memory at once.
    """

    def __init__(self, file: CodeFile, groups: _Groups, most_held: int) -> None:
        self._file, self._groups, self._most_held = file, groups, most_held

    def grow(self, growth: Growth) -> tuple[Tree, list[DescribedGroups]]:
        """Return the tree and its groups from left to right, branch by branch."""
        file, groups = self._file, self._groups
        groups.begin(growth)
        tree = grow_outer(
            file, growth.layout, growth.guide, file.checks, groups.add, describe=groups.describe,
            min_records=growth.min_records, fall_back=growth.fall_back, most_held=self._most_held,
            branch_size=min(BRANCH, -(-self._most_held // 8)), n_threads=growth.n_threads, empty=file.empty,
        )  # fmt: skip
        return tree, groups.parts

    def count_hashes(self, layout: Layout, words: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return how many records have each of some combinations of codes."""
        return self._file.count_hashes(layout, words, wanted)

    def regions(self, cells: Sequence[CellColumn] | None) -> Regions:
        """Return the regions of all groups, which were counted as the tree grew."""
        assert self._groups.regions is not None
        return self._groups.regions.counting.regions(cells)


class _CountedRegions:
    """Counts groups for regions, with the target of every record in memory."""

    def __init__(self, regions: TableRegions, n_records: int) -> None:
        plan = regions.plan
        self._coded = regions.coded
        self._classes = np.empty(n_records, np.int32)
        self._numbers = np.empty((n_records, plan.target.n_outputs), np.int64)
        self.counting = RegionCounting(plan, n_records, n_threads=regions.n_threads)

    def read(self, start: int, block: Any) -> None:
        """Read the target of a block, whose first record has this number."""
        own = slice(start, start + block.num_rows)
        self._classes[own], self._numbers[own] = self._coded(block)

    def add(self, branch: Branch) -> None:
        """Count the groups that come next."""
        records = branch.records
        self.counting.add(
            lambda j: np.ascontiguousarray(records.codes[:, j]), collect(branch.group, branch.tree.n_groups),
            self._classes[records.rows], self._numbers[records.rows],
        )  # fmt: skip


class _Groups:
    """The groups of all branches, from left to right, and the group of each record."""

    def __init__(
        self,
        n_records: int,
        classes: NDArray[Any] | None,
        regions: _CountedRegions | None,
        progress: Progress | None,
    ) -> None:
        self.classes, self.regions, self.progress = classes, regions, progress
        self.group = np.empty(n_records, np.int32)
        self.parts: list[DescribedGroups] = []
        self.n_groups = self._n_done = 0

    def begin(self, growth: Growth) -> None:
        """Set how groups are described."""
        self.growth = growth
        self._tell()

    def describe(self, branch: Branch) -> DescribedGroups | None:
        """Describe the groups of a branch, or return None if random choices must wait for the branches before it."""
        return None if self.growth.generator is not None else self._described(branch)

    def _described(self, branch: Branch) -> DescribedGroups:
        classes = None if self.classes is None else self.classes[branch.records.rows]
        return self.growth.describer.describe(
            branch.records, branch.group, branch.tree, replace(self.growth.guide, classes=classes),
            self.growth.generator,
        )  # fmt: skip

    def add(self, branch: Branch) -> None:
        """Number the groups of a branch; its records are freed afterwards."""
        self.parts.append(self._described(branch) if branch.described is None else branch.described)
        if self.regions is not None:
            self.regions.add(branch)
        self.group[branch.records.rows] = branch.group + np.int32(self.n_groups)
        self.n_groups += branch.tree.n_groups
        self._n_done += len(branch.group)
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress("growing", self._n_done, len(self.group))
