# SPDX-License-Identifier: Apache-2.0
"""Anonymize a table in Parquet files that is larger than memory: the groups, values and release of the same in memory.

Three readings of the files: count values, write codes, write the release; and one of the release, which is recounted
before it gets its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from sfumato.anonymize.base import TreeAnonymizer, check_of, fewest_records
from sfumato.anonymize.mondrian import MondrianAnonymizer
from sfumato.anonymize.partition import Partition, partition_from_tree
from sfumato.anonymize.release import Counter
from sfumato.errors import GuaranteeError, InputError, ParameterError
from sfumato.frames import read_table
from sfumato.parquet.coding import encode, learn_columns
from sfumato.parquet.files import ParquetFiles, unpublished
from sfumato.parquet.groups import DescribedGroups, Describing, joined_loss, joined_sizes, joined_values
from sfumato.parquet.pass_through import PassThrough
from sfumato.partition.guides import Guide
from sfumato.partition.outer import Branch, grow_outer
from sfumato.partition.records import make_layout, pack_records
from sfumato.schema import Schema
from sfumato.sources import CodedColumn
from sfumato.sources.code_file import CodeFile
from sfumato.sources.memory import read_limited
from sfumato.verification import GroupCounter

MOST_HELD = 16_000_000
"""Records whose branch is grown in memory at once: about 100 bytes each."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Progress = Callable[[str, int, int], Any]


@dataclass(frozen=True)
class ParquetRelease:
    """A release that was written.

    Attributes
    ----------
    path : Path
    n_records, n_groups, smallest_group : int
    measures : dict
    """

    path: Path
    n_records: int
    n_groups: int
    smallest_group: int
    measures: dict[str, Any] = field(default_factory=dict)


def fit_transform(
    anonymizer: TreeAnonymizer,
    source: Paths,
    destination: str | os.PathLike[str],
    *,
    guide_column: str | Sequence[str] | None = None,
    model: Any = None,
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
    most_held : int
        Records whose branch is grown in memory at once.
    progress : callable, optional
        Called with what is being done, the records done and their number.

    Returns
    -------
    ParquetRelease

    Raises
    ------
    GuaranteeError
        When a criterion does not hold on what was written. Nothing is published then.
    """
    path = Path(destination)
    files = ParquetFiles(source)
    if any(path.exists() and path.samefile(own) for own in files.paths):
        raise ParameterError(f"the destination {path.name!r} is one of the files read: expected another name.")
    job = _Job(anonymizer, files, guide_column, model, most_held, progress)
    with unpublished(path) as temporary:
        return job.run(temporary, path)


class _Job:
    def __init__(
        self,
        anonymizer: TreeAnonymizer,
        files: ParquetFiles,
        guide_column: str | Sequence[str] | None,
        model: Any,
        most_held: int,
        progress: Progress | None,
    ) -> None:
        check_supported(anonymizer, "Parquet files")
        self.files, self.model, self.most_held, self.progress = files, model, most_held, progress
        self.guides = (
            [] if guide_column is None else [guide_column] if isinstance(guide_column, str) else [*guide_column]
        )
        for name in self.guides:
            if name not in files.names:
                raise ParameterError(f"guide_column names {name!r}, which is no column of the files. Correct the name.")
        self.own = anonymizer
        self.anonymizer = with_hidden_guides(anonymizer, self.guides)

    def run(self, temporary: Path, path: Path) -> ParquetRelease:
        anonymizer, files = self.anonymizer, self.files
        anonymizer._check_parameters()
        criteria = anonymizer._all_criteria()
        head = files.head(1 << 20)
        _, schema = anonymizer._read(head, criteria, is_whole=False)
        counters = self._counters(criteria, schema)
        anonymizer._check_feasible(counters, files.n_records)
        names = anonymizer._split_columns(schema)
        n_threads = anonymizer._n_threads()
        watched = PassThrough(schema, files.n_records)
        columns = learn_columns(
            self._told("counting values", files.batches()), names,
            categorical=schema.categorical_features, limits=schema.limits, max_bins=anonymizer.max_bins,
            n_threads=n_threads, also=watched.add,
        )  # fmt: skip
        watched.check()
        guide = self._guide(schema)
        layout = make_layout([column.bins for column in columns])
        checks = [check_of(counter) for counter in counters if counter.value_of_row is not None]
        groups = _Groups(anonymizer, columns, schema, guide, files.n_records)
        example = pack_records([c.codes[:0] for c in columns], [b[:0] for b in guide.code_blocks], _head(guide.dense))
        with CodeFile(
            temporary.absolute().parent, width=example.codes.shape[1], dtype=example.codes.dtype,
            n_dense=example.dense.shape[1], n_threads=n_threads,
        ) as file:  # fmt: skip
            self._write_codes(file, columns, schema, guide)
            guide = replace(guide, dense=None, code_blocks=[])
            groups.guide = guide
            file.start(checks)
            tree = grow_outer(
                file, layout, guide_shape(guide, example.dense.shape[1]), checks, groups.add,
                min_records=fewest_records(counters), fall_back=anonymizer._falls_back(), most_held=self.most_held,
                n_threads=n_threads, empty=file.empty,
            )  # fmt: skip
        anonymizer.partition_ = partition_from_tree(
            tree, columns, joined_values(groups.parts), joined_sizes(groups.parts),
            dropped=schema.dropped, limits=schema.to_dict()["limits"], categorical=schema.categorical_features,
            representative=anonymizer.representative, guarantees=tuple(c.describe() for c in criteria),
        )  # fmt: skip
        self._write(temporary, schema, columns, groups.group)
        smallest = self._recount(temporary, schema, counters)
        hand_over(self.own, anonymizer, head, schema, groups.parts)
        measures = {"information_loss": self.own.information_loss_}
        return ParquetRelease(path, files.n_records, groups.n_groups, smallest, measures)

    # -- reading -------------------------------------------------------------------------------------------------

    def _told(self, what: str, batches: Any) -> Any:
        done = 0
        for batch in batches:
            if self.progress is not None:
                self.progress(what, done, self.files.n_records)
            yield batch
            done += batch.num_rows
        if self.progress is not None:
            self.progress(what, done, self.files.n_records)

    def _counters(self, criteria: list[Any], schema: Schema) -> list[Counter]:
        """Read what criteria count: those columns are held, as small codes."""
        import pyarrow as pa

        names = list(dict.fromkeys(c.column for c in criteria if c.column is not None))
        whole = pa.concat_tables(list(self.files.batches(names))) if names else self.files.head(1)
        table = read_table(whole, categorical=[n for n in schema.categorical_features if n in names])
        counters: list[Counter] = self.anonymizer._counters(table, criteria)
        return counters

    def _guide(self, schema: Schema) -> Guide:
        """Read or predict what guides the splits; that column is held."""
        if self.model is not None and self.guides:
            raise ParameterError("model= beside guide_column=: expected one of them. Leave one out.")
        targets: Any = None
        if self.model is not None:
            targets = np.concatenate(
                [self._predicted(batch, schema) for batch in self._told("predicting", self.files.batches())]
            )
        elif self.guides:
            parts = [self._guide_values(batch) for batch in self.files.batches(self.guides)]
            targets = np.concatenate(parts)
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

    def _guide_values(self, batch: Any) -> NDArray[Any]:
        table = read_table(batch)
        columns = [table.column(name) for name in self.guides]
        for column in columns:
            if column.missing is not None and column.missing.any():
                raise InputError(
                    f"the column {column.name!r} has missing predictions: expected one per record. Fill them in."
                )
        values = [c.values if c.categories is None else c.categories[c.values].astype(str) for c in columns]
        return values[0] if len(values) == 1 else np.column_stack(values)

    def _write_codes(self, file: CodeFile, columns: list[CodedColumn], schema: Schema, guide: Guide) -> None:
        names = [column.name for column in columns]
        start = 0
        with ThreadPoolExecutor(self.anonymizer._n_threads()) as pool:
            for batch in self._told("coding", self.files.batches(names)):
                table = read_table(batch, categorical=[n for n in schema.categorical_features if n in names])

                def coded(column: CodedColumn, table: Any = table) -> NDArray[Any]:
                    return encode(column, read_limited(table, column.name, schema.limits))

                part = slice(start, start + batch.num_rows)
                blocks = [block[part] for block in guide.code_blocks]
                dense = None if guide.dense is None else guide.dense[part]
                records = pack_records(list(pool.map(coded, columns)), blocks, dense)
                file.append(records.codes, records.dense)
                start = part.stop

    # -- writing -------------------------------------------------------------------------------------------------

    def _write(self, temporary: Path, schema: Schema, columns: Sequence[CodedColumn], group: NDArray[np.int32]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        partition = self.anonymizer.partition_
        others = [n for n in self.files.names if n not in schema.quasi_identifiers and n not in schema.dropped]
        listed = {c.name: _in_declared_order(c) for c in columns if c.places is not None}
        used = _used_categories(partition, listed)
        start, writer, writing = 0, None, None
        with ThreadPoolExecutor(1) as pool:  # one piece is written while the next is put together
            try:
                for batch in self._told("writing", self.files.batches(others or self.files.names[:1])):
                    stop = start + batch.num_rows
                    # What is rewritten need not be read: only its type counts.
                    arrays = [
                        batch.column(n)
                        if n in others
                        else _nothing(batch.num_rows, self.files.schema.field(n).type, listed.get(n))
                        for n in self.files.names
                    ]
                    table = read_table(
                        pa.table(arrays, schema=self.files.schema), categorical=schema.categorical_features
                    )
                    released = _with_dictionaries(partition.rewrite(table, group[start:stop]), used)
                    if writer is None:
                        writer = pq.ParquetWriter(temporary, released.schema, compression="zstd")
                    elif writing is not None:
                        writing.result()
                    writing = pool.submit(writer.write_table, released.cast(writer.schema))
                    start = stop
                if writing is not None:
                    writing.result()
            finally:
                if writer is not None:
                    pool.submit(writer.close).result()

    def _recount(self, temporary: Path, schema: Schema, counters: list[Counter]) -> int:
        """Read the written file and count its groups with nothing of the engine; refuse it where one fails."""
        names = self.anonymizer.partition_.output_names(schema.quasi_identifiers)
        written = ParquetFiles(temporary)
        if written.n_records != self.files.n_records:
            raise GuaranteeError(
                f"{written.n_records} records were written instead of {self.files.n_records}. Nothing is published."
            )
        sizes: NDArray[np.int64] | None = None
        for counter in counters:
            values = counter.value_of_row
            if values is None and sizes is not None:
                continue
            own = GroupCounter(names, None if values is None else counter.n_values)
            start = 0
            for batch in self._told("recounting", written.batches(names)):
                part = slice(start, start + batch.num_rows)
                own.add(batch, None if values is None else values[part])
                start = part.stop
            counts = own.n_distinct()[:, None] if counter.criterion.counting == "distinct" else own.counts()
            sizes = own.sizes() if sizes is None else sizes
            n_failed = int((~counter.passes(counts)).sum())
            if n_failed:
                raise GuaranteeError(
                    f"the written file has {n_failed} of {len(counts)} groups for which it does not hold that "
                    f"{counter.criterion.describe()}: expected none. Nothing is published. Please report this."
                )
        assert sizes is not None
        return int(sizes.min())


class _Groups:
    """The groups of all branches, from left to right, and the group of each record."""

    def __init__(
        self, anonymizer: TreeAnonymizer, columns: list[CodedColumn], schema: Schema, guide: Guide, n_records: int
    ) -> None:
        self.describing = Describing(
            columns[: len(schema.quasi_identifiers)], len(columns), anonymizer.representative, anonymizer._n_threads()
        )
        self.generator = anonymizer._generator()
        self.guide = guide
        self.group = np.empty(n_records, np.int32)
        self.parts: list[DescribedGroups] = []
        self.n_groups = 0

    def add(self, branch: Branch) -> None:
        """Describe the groups of a branch; its records are forgotten afterwards."""
        classes = None if self.guide.classes is None else self.guide.classes[branch.rows]
        self.parts.append(
            self.describing.describe(
                branch.records, branch.group, branch.n_groups, replace(self.guide, classes=classes), self.generator
            )
        )
        self.group[branch.rows] = branch.group + np.int32(self.n_groups)
        self.n_groups += branch.n_groups


def guide_shape(guide: Guide, n_dense: int) -> Guide:
    """Return the rule and weights of a guide with no channels of its own."""
    return replace(guide, dense=np.zeros((0, n_dense), np.int64) if n_dense else None, classes=None)


def _head(dense: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    return None if dense is None else dense[:0]


def as_list(names: Any) -> list[Any]:
    """Return what a parameter names as a list."""
    return [] if names is None else [names] if isinstance(names, str | int) else list(names)


def check_supported(anonymizer: Any, source: str) -> None:
    """Refuse what cannot be done by counting alone; `source` says where the records are."""
    if not isinstance(anonymizer, TreeAnonymizer):
        raise ParameterError(
            f"{type(anonymizer).__name__} with {source}: expected a method that grows a tree from counts: "
            "ModelGuidedAnonymizer, MondrianAnonymizer or WorkloadAwareAnonymizer."
        )
    if isinstance(anonymizer, MondrianAnonymizer) and (anonymizer.rule != "median" or not anonymizer.strict):
        raise ParameterError(
            f"MondrianAnonymizer(rule={anonymizer.rule!r}, strict={anonymizer.strict!r}) with {source}: expected "
            "the strict median rule, which needs counts only. Use that, or a table in memory."
        )
    if anonymizer.suppression_limit:
        raise ParameterError(
            f"suppression_limit={anonymizer.suppression_limit!r} with {source}, of which all records are kept: "
            "expected 0. Use release on a table in memory, which may leave records out."
        )
    if getattr(anonymizer, "hierarchies", None):
        raise ParameterError(f"hierarchies= with {source}: expected none. Use a table in memory.")
    if getattr(anonymizer, "guide_estimator", None) is not None:
        raise ParameterError(f"guide_estimator= with {source}: expected ready predictions. Pass guide_column=.")
    for criterion in anonymizer._all_criteria():
        if criterion.counting == "presence":
            raise ParameterError(
                f"{type(criterion).__name__} with {source}: expected a criterion on the records alone. Use "
                "release on a table in memory."
            )


def with_hidden_guides(anonymizer: TreeAnonymizer, guides: Sequence[str]) -> TreeAnonymizer:
    """Return a copy that lets no guide leave, unless it is kept: predictions tell records apart like names do."""
    hidden = [name for name in guides if name not in as_list(anonymizer.keep)]
    copy: TreeAnonymizer = anonymizer.__class__(**anonymizer.get_params(deep=False))
    copy.set_params(identifiers=[*as_list(anonymizer.identifiers), *hidden] or None)
    return copy


def hand_over(
    own: TreeAnonymizer, fitted: TreeAnonymizer, head: Any, schema: Schema, parts: Sequence[DescribedGroups]
) -> None:
    """Leave the caller's anonymizer as fitting in memory would."""
    validate_data(own, head, skip_check_array=True)
    own.partition_ = fitted.partition_
    own.schema_ = schema
    own.hierarchies_ = {}
    own.group_sizes_ = joined_sizes(parts)
    own.n_groups_ = len(own.group_sizes_)
    own.information_loss_ = joined_loss(parts)


def _in_declared_order(column: CodedColumn) -> list[Any]:
    assert column.categories is not None and column.places is not None
    listed: list[Any] = column.categories[np.argsort(column.places)].tolist()
    return listed


def _nothing(n: int, kind: Any, listed: list[Any] | None) -> Any:
    """Return missing values of a type; where its categories have an order, with a dictionary that declares it."""
    import pyarrow as pa

    if listed is None or not pa.types.is_dictionary(kind):
        return pa.nulls(n, kind)
    declared = pa.array(listed, kind.value_type)
    return pa.DictionaryArray.from_arrays(pa.nulls(n, kind.index_type), declared, ordered=kind.ordered)


def _used_categories(partition: Partition, listed: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return, for each rewritten column of categories, those that some group got, in their order."""
    used: dict[str, list[Any]] = {}
    for column in partition.columns:
        for part in partition.values.get(column.name, []):
            if column.categories is None or part.values is None:
                continue
            codes = part.values if part.missing is None else part.values[~part.missing]
            given = {column.categories[code] for code in np.unique(codes).tolist()}
            in_order = listed.get(column.name, column.categories.tolist())
            used[part.name] = [value for value in in_order if value in given]
    return used


def _with_dictionaries(table: Any, used: Mapping[str, list[Any]]) -> Any:
    """Return the table with dictionaries of the given categories alone, the same in every piece.

    A rewritten column would otherwise list every category that was fitted on, among them those of one person.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, categories in used.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        if not pa.types.is_dictionary(field.type):
            continue
        dictionary = pa.array(categories, field.type.value_type)
        plain = table.column(place).cast(field.type.value_type).combine_chunks()
        codes = pc.index_in(plain, value_set=dictionary, skip_nulls=True).cast(field.type.index_type)
        column = pa.DictionaryArray.from_arrays(codes, dictionary, ordered=field.type.ordered)
        table = table.set_column(place, field, column)
    return table
