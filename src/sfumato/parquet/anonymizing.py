# SPDX-License-Identifier: Apache-2.0
"""Anonymize a table in Parquet files that is larger than memory: the groups, values and release of the same in memory.

Three readings of the files: count values, write codes, write the release; and one of the release, which is recounted
before it gets its name. Each goes piece by piece, several pieces at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anatomize.tables import value_type
from sfumato.anonymize.base import TreeAnonymizer, check_of
from sfumato.anonymize.counting import Counter, fewest_records, publishing_floor
from sfumato.anonymize.mondrian import MondrianAnonymizer
from sfumato.anonymize.partition import partition_from_tree
from sfumato.backends import CodedColumn
from sfumato.backends.blocks.code_file import CodeFile
from sfumato.backends.blocks.coding import ColumnLearner, write_codes
from sfumato.backends.blocks.pass_through import PassThrough
from sfumato.backends.blocks.reordering import stretches_in_order
from sfumato.backends.blocks.table import RECORDS_AT_ONCE, BlockTable, in_turn
from sfumato.backends.blocks.working_files import WorkingFiles
from sfumato.backends.parquet.joined_file import JoinedFile
from sfumato.backends.parquet.reader import as_blocks
from sfumato.documents import unpublished
from sfumato.errors import ParameterError
from sfumato.frames import Table, read_table
from sfumato.frames.shuffling import random_order
from sfumato.parquet.fitting import check_supported, guide_shape, hand_over, with_hidden_guides
from sfumato.parquet.groups import DescribedGroups, Describing, joined_sizes
from sfumato.parquet.guiding import NumberGuide, WholeGuide, read_predictions
from sfumato.parquet.recounting import recount
from sfumato.parquet.writing import ReleaseWriter
from sfumato.partition.guides import Guide
from sfumato.partition.records import make_layout, pack_records
from sfumato.partition.streaming import Branch, grow_outer
from sfumato.progress import Progress, told
from sfumato.representatives import GroupValues
from sfumato.schema import Schema

MOST_HELD = 50_000_000
"""Records held in memory at once, as codes: about 40 bytes each."""

BRANCH = 2_000_000
"""Records from which on a node is split from counts: what lies below is grown by one thread."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | BlockTable


@dataclass(frozen=True)
class ParquetRelease:
    """A release that was written.

    Attributes
    ----------
    path : Path
    n_records, n_groups, smallest_group : int
    measures : dict
    order : ndarray of int or None
        The record of the source that stands in each row; None where they are in the same order. It undoes the
        shuffle: it is for checks by the owner of the source, and must not be published.
    """

    path: Path
    n_records: int
    n_groups: int
    smallest_group: int
    measures: dict[str, Any] = field(default_factory=dict)
    order: NDArray[np.integer[Any]] | None = field(default=None, repr=False, compare=False)


def fit_transform(
    anonymizer: TreeAnonymizer,
    source: Paths,
    destination: str | os.PathLike[str],
    *,
    guide_column: str | Sequence[str] | None = None,
    model: Any = None,
    shuffle: bool = True,
    most_held: int = MOST_HELD,
    progress: Progress | None = None,
) -> ParquetRelease:
    """Anonymize Parquet files into one Parquet file, and fit the anonymizer.

    Parameters
    ----------
    anonymizer : ModelGuidedAnonymizer, MondrianAnonymizer (strict median) or WorkloadAwareAnonymizer
        Unfitted; fitted afterwards, as if it had seen the table at once.
    source : path, folder or list of paths
    destination : path
        Appears when the release was recounted, or not at all.
    guide_column : str or list of str, optional
        The column of predictions or labels, or one column of probabilities per class. It does not leave, unless it is
        named in the anonymizer's `keep`.
    model : fitted estimator, optional
        Predicts piece by piece instead, from all columns that are not dropped.
    shuffle : bool, default=True
        Write the records in a random order. False keeps the order of the source, which can tell an attacker which
        record of a group belongs to whom: only for files that are compared row by row.
    most_held : int
        Records held in memory at once, as codes.
    progress : callable, optional
        Called with what is being done, the records done and their number; `PrintedProgress` prints it with the
        records per second and the time left.

    Returns
    -------
    ParquetRelease

    Raises
    ------
    GuaranteeError
        When a criterion does not hold on what was written. Nothing is published then.
    """
    path = Path(destination)
    files = as_blocks(source)
    if any(path.exists() and path.samefile(own) for own in files.paths):
        raise ParameterError(f"the destination {path.name!r} is one of the files read: expected another name.")
    job = _Job(anonymizer, files, guide_column, model, shuffle, most_held, progress)
    with unpublished(path) as temporary:
        return job.run(temporary, path)


class _Job:
    def __init__(
        self,
        anonymizer: TreeAnonymizer,
        files: BlockTable,
        guide_column: str | Sequence[str] | None,
        model: Any,
        shuffle: bool,
        most_held: int,
        progress: Progress | None,
    ) -> None:
        check_supported(anonymizer, files.words)
        self.files, self.model, self.most_held, self.progress = files, model, most_held, progress
        self.shuffle = shuffle
        self.guides = (
            [] if guide_column is None else [guide_column] if isinstance(guide_column, str) else [*guide_column]
        )
        for name in self.guides:
            if name not in files.names:
                raise ParameterError(f"guide_column names {name!r}, which is no column of the files. Correct the name.")
        if model is not None and self.guides:
            raise ParameterError("model= beside guide_column=: expected one of them. Leave one out.")
        self.own = anonymizer
        self.anonymizer = with_hidden_guides(anonymizer, self.guides)

    def run(self, temporary: Path, path: Path) -> ParquetRelease:
        anonymizer, files = self.anonymizer, self.files
        anonymizer._check_parameters()
        criteria = anonymizer._all_criteria()
        head = files.head(1 << 20)
        some, schema = anonymizer._read(head, criteria, is_whole=False)
        counters = self._counters(criteria, schema)
        anonymizer._check_feasible(counters, files.n_records)
        self.n_threads = anonymizer._n_threads()
        columns, guide = self._learn(schema, some, publishing_floor(counters))
        tree, groups, values = self._grow(path.absolute().parent, schema, columns, guide, counters)
        anonymizer.partition_ = partition = partition_from_tree(
            tree, columns, values, joined_sizes(groups.parts),
            dropped=schema.dropped, limits=schema.to_dict()["limits"], categorical=schema.categorical_features,
            representative=anonymizer.representative, guarantees=tuple(c.describe() for c in criteria),
        )  # fmt: skip
        group, order = groups.group, None
        if self.shuffle:
            order = random_order(files.n_records)
            group = group[order]
            counters = [counter.in_order(order) for counter in counters]
        writer = ReleaseWriter(files.schema, schema, partition, columns, group, files.compression)
        self._write(temporary, writer, order, path.absolute().parent)
        smallest = recount(
            temporary, files.n_records, partition.output_names(schema.quasi_identifiers), counters,
            claimed=writer.of_groups, group=group, n_threads=self.n_threads, progress=self.progress,
        )  # fmt: skip
        hand_over(self.own, anonymizer, head, schema, groups.parts)
        measures = {"information_loss": self.own.information_loss_}
        return ParquetRelease(path, files.n_records, groups.n_groups, smallest, measures, order)

    def _each(self, what: str, work: Any, names: Sequence[str], **how: Any) -> Any:
        """Call a function with every piece of some columns, and tell how far it is."""
        results = self.files.each(work, names, n_threads=self.n_threads, **how)
        return told(results, self.progress, what, self.files.n_records)

    # -- reading -------------------------------------------------------------------------------------------------

    def _counters(self, criteria: list[Any], schema: Schema) -> list[Counter]:
        """Read what criteria count: those columns are held, as small codes."""
        import pyarrow as pa

        names = list(dict.fromkeys(c.column for c in criteria if c.column is not None))
        whole = pa.concat_tables(list(self.files.batches(names))) if names else self.files.head(1)
        table = read_table(whole, categorical=[n for n in schema.categorical_features if n in names])
        counters: list[Counter] = self.anonymizer._counters(table, criteria)
        return counters

    def _learn(self, schema: Schema, head: Table, floor: int) -> tuple[list[CodedColumn], WholeGuide | NumberGuide]:
        """Count all values: for the bins, for columns that point at persons, and for the span of a guide's numbers."""
        anonymizer, files = self.anonymizer, self.files
        names = anonymizer._split_columns(schema)
        learner = ColumnLearner(
            names, categorical=schema.categorical_features, limits=schema.limits, max_bins=anonymizer.max_bins,
            floor=floor,
        )  # fmt: skip
        watched = PassThrough(
            schema, head, files.n_records,
            is_chosen=anonymizer.quasi_identifiers is not None, decided=tuple(anonymizer.hierarchies or ()),
        )  # fmt: skip
        numbers = NumberGuide.suited(anonymizer, self.guides, files.schema)

        def count(_: int, piece: Any) -> None:
            learner.count(piece)
            watched.add(piece)
            if numbers is not None:
                numbers.look(piece)

        guides = [] if numbers is None else self.guides
        wanted = list(dict.fromkeys([*names, *watched.names, *guides]))
        for _ in self._each("counting values", count, wanted, text_as_categories=True):
            pass
        watched.check()
        if numbers is not None and numbers.are_numbers(anonymizer):
            return learner.columns(), numbers
        return learner.columns(), WholeGuide(self._whole_guide(schema))

    def _whole_guide(self, schema: Schema) -> Guide:
        """Read or predict what guides the splits; that column is held."""
        targets: Any = None
        if self.model is not None:
            work = self.files.each(lambda _, piece: self._predicted(piece, schema), n_threads=1)
            targets = np.concatenate(list(told(work, self.progress, "predicting", self.files.n_records)))
        elif self.guides:
            read = self._each("reading predictions", lambda _, piece: read_predictions(piece, self.guides), self.guides)
            targets = np.concatenate(list(read))
        elif not isinstance(self.anonymizer, MondrianAnonymizer):
            raise ParameterError(
                f"{type(self.anonymizer).__name__} without predictions: expected the column that holds them, or a "
                "model. Pass guide_column= or model=."
            )
        guide: Guide = self.anonymizer._make_guide(None, targets, schema, self.files.n_records, None)
        return guide

    def _predicted(self, batch: Any, schema: Schema) -> NDArray[Any]:
        seen = batch.drop_columns([name for name in schema.dropped if name in batch.column_names])
        if hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.predict_proba(seen))
        return np.asarray(self.model.predict(seen))

    # -- growing -------------------------------------------------------------------------------------------------

    def _grow(
        self,
        folder: Path,
        schema: Schema,
        columns: list[CodedColumn],
        guiding: WholeGuide | NumberGuide,
        counters: list[Counter],
    ) -> tuple[Any, _Groups, dict[str, list[GroupValues]]]:
        """Write the codes of all records to a file of our own, and grow the tree over them."""
        anonymizer = self.anonymizer
        layout = make_layout([column.bins for column in columns])
        checks = [check_of(counter) for counter in counters if counter.value_of_row is not None]
        kinds = [column.codes.dtype for column in columns] + [block.dtype for block in guiding.example]
        empty = pack_records([np.zeros(0, kind) for kind in kinds], dense=np.zeros((0, guiding.n_dense), np.int64))
        with CodeFile(folder, kinds, empty, n_threads=self.n_threads) as file:
            self._write_codes(file, columns, schema, guiding)
            guide = guiding.without_channels()
            groups = _Groups(anonymizer, columns, schema, guide, self.files.n_records, self.progress)
            file.start(checks)
            groups.tell()
            tree = grow_outer(
                file, layout, guide_shape(guide, guiding.n_dense), checks, groups.add, describe=groups.describe,
                min_records=fewest_records(counters), fall_back=anonymizer._falls_back(), most_held=self.most_held,
                branch_size=min(BRANCH, -(-self.most_held // 8)), n_threads=self.n_threads, empty=file.empty,
            )  # fmt: skip
            hashing = groups.describing.words()
            values = groups.describing.values_of(groups.parts, lambda wanted: file.count_hashes(*hashing, wanted))
        return tree, groups, values

    def _write_codes(
        self, file: CodeFile, columns: list[CodedColumn], schema: Schema, guiding: WholeGuide | NumberGuide
    ) -> None:
        def code(start: int, piece: Any) -> None:
            codes = [np.empty(piece.num_rows, column.codes.dtype) for column in columns]
            for column, own in zip(columns, codes, strict=True):
                write_codes(
                    column, piece.column(column.name), own,
                    as_category=column.name in schema.categorical_features, limits=schema.limits,
                )  # fmt: skip
            blocks, dense = guiding.channels(start, piece)
            file.write(start, [*codes, *blocks], dense)

        names = [column.name for column in columns]
        names += [guiding.name] if isinstance(guiding, NumberGuide) else []
        for _ in self._each("coding", code, names, text_as_categories=True):
            pass

    # -- writing -------------------------------------------------------------------------------------------------

    def _write(
        self, temporary: Path, writer: ReleaseWriter, order: NDArray[np.integer[Any]] | None, folder: Path
    ) -> None:
        with JoinedFile(temporary) as file, WorkingFiles(folder) as working:
            if order is None or not writer.others:  # the values of a group are taken by its number, in any order
                pieces = self._each("writing", writer.piece, writer.others or self.files.names[:1])
            else:
                moved = in_turn(self._moved(writer.others, order, working.path), writer.piece, self.n_threads)
                pieces = told(moved, self.progress, "writing", self.files.n_records)
            for piece in pieces:
                file.add(piece)

    def _moved(
        self, names: Sequence[str], order: NDArray[np.integer[Any]], folder: Path
    ) -> Iterator[tuple[int, int, Any]]:
        """Yield the columns that pass through in another order, as pieces with their first record and their size."""
        import pyarrow as pa

        source = pa.schema([self.files.schema.field(name) for name in names])
        # Dictionaries differ from piece to piece; where their order is declared, all pieces have the same.
        plain = pa.schema([f if getattr(f.type, "ordered", False) else f.with_type(value_type(f.type)) for f in source])
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=order.dtype)
        batches = (batch.cast(plain) for batch in self.files.batches(names))
        start = 0
        for stretch in stretches_in_order(batches, place, plain, folder):
            table = stretch.cast(source)
            for at in range(0, table.num_rows, RECORDS_AT_ONCE):
                piece = table.slice(at, RECORDS_AT_ONCE)
                yield start, piece.num_rows, piece
                start += piece.num_rows


class _Groups:
    """The groups of all branches, from left to right, and the group of each record."""

    def __init__(
        self,
        anonymizer: TreeAnonymizer,
        columns: list[CodedColumn],
        schema: Schema,
        guide: Guide,
        n_records: int,
        progress: Progress | None,
    ) -> None:
        self.describing = Describing(columns[: len(schema.quasi_identifiers)], len(columns), anonymizer.representative)
        self.generator = anonymizer._generator()
        self.guide = guide
        self.progress = progress
        self.group = np.empty(n_records, np.int32)
        self.parts: list[DescribedGroups] = []
        self.n_groups = self._n_done = 0

    def describe(self, branch: Branch) -> DescribedGroups | None:
        """Describe the groups of a branch; where chance decides, that has to wait for the branches before it."""
        return None if self.describing.representative == "sample" else self._described(branch)

    def _described(self, branch: Branch) -> DescribedGroups:
        classes = None if self.guide.classes is None else self.guide.classes[branch.records.rows]
        return self.describing.describe(
            branch.records, branch.group, branch.n_groups, replace(self.guide, classes=classes), self.generator
        )

    def add(self, branch: Branch) -> None:
        """Number the groups of a branch; its records are forgotten afterwards."""
        self.parts.append(self._described(branch) if branch.described is None else branch.described)
        self.group[branch.records.rows] = branch.group + np.int32(self.n_groups)
        self.n_groups += branch.n_groups
        self._n_done += len(branch.group)
        self.tell()

    def tell(self) -> None:
        """Say how many records have a group."""
        if self.progress is not None:
            self.progress("growing", self._n_done, len(self.group))
