# SPDX-License-Identifier: Apache-2.0
"""Measure a table in Parquet files that is larger than memory: what ``sfumato.measure`` says of the same in memory.

Two readings of the files: number the values, and write the numbers to working files, a few bytes per value. Then
records are sorted into buckets by the hash of their quasi-identifiers. A group lies in one bucket, so buckets are
grouped one after the other, and what they say adds up. Hashes only choose the bucket; groups are those of equal values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from sfumato.arguments import is_integer, thread_count
from sfumato.backends.blocks.many_values import ManyValues
from sfumato.backends.blocks.value_codes import ValueCodes, read_for_counting
from sfumato.backends.blocks.working_files import Buckets, ColumnFile, WorkingFiles, into_buckets, n_buckets_for
from sfumato.backends.parquet.reader import ParquetFiles
from sfumato.errors import InputError, ParameterError
from sfumato.frames import Table, read_table
from sfumato.frames.assembling import as_arrow
from sfumato.measurement.criterion_values import evaluate, presence
from sfumato.measurement.measurement import CriterionValue, Measurement, MissingPolicy
from sfumato.measurement.measuring import (
    Names,
    Roles,
    as_list,
    check_hierarchies,
    check_policy,
    count_matches,
    resolve_roles,
)
from sfumato.measurement.tally import population_size
from sfumato.measurement.wildcard import match_counts
from sfumato.parquet.anonymizing import Paths
from sfumato.parquet.group_counts import GroupsOfBuckets, SensitiveCodes
from sfumato.parquet.ranking import ColumnRanking
from sfumato.progress import Progress

MOST_HELD = 8_000_000
"""Records that are grouped in memory at once: about 100 bytes each."""


def measure(
    source: Paths,
    quasi_identifiers: Names | None = None,
    sensitive: Names | None = None,
    *,
    population: Any = None,
    weights: str | int | None = None,
    unit: str | int | None = None,
    missing: MissingPolicy = "value",
    categorical_features: Names | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    most_held: int = MOST_HELD,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """Measure how well people hide in Parquet files, exactly, whatever their size.

    Parameters
    ----------
    source : path, folder or list of paths
    quasi_identifiers, sensitive, unit, missing, categorical_features, hierarchies
        As of :func:`sfumato.measure`.
    population : path, folder, frame or int, optional
        The people the table was drawn from: files or a table with the quasi-identifiers in the same form, or only
        their number.
    weights : name or position of a column, optional
        Survey weights: how many people of the population each record stands for.
    most_held : int
        Records that are grouped in memory at once. A group that has more is held whole.
    scratch : path, optional
        A folder with room for the codes of all records, twice; a few bytes per value. None: where the system keeps
        temporary files.
    progress : callable, optional
        Called with what is being done, the records done and their number.

    Returns
    -------
    Measurement
        Equal to that of the same table in memory; averages may differ in their last digits.

    Notes
    -----
    Held in memory are the different values of each column, and with ``weights`` or ``missing="wildcard"`` some numbers
    per group. Criteria on text with more than a million different values are not evaluated; the reason is given.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from sfumato.parquet import measure
    >>> people = pa.table({"age": [30, 30, 41, 41, 52], "disease": ["flu", "flu", "flu", "cold", "cold"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(people, f"{folder}/people.parquet")
    ...     found = measure(folder, quasi_identifiers=["age"], sensitive=["disease"])
    >>> found.k, found.uniqueness.n_unique, found.prosecutor.average
    (1, 1, 0.6)
    """
    check_policy(missing)
    if weights is not None and not isinstance(weights, str | int | np.integer):
        raise ParameterError(
            f"weights is of the type {type(weights).__name__}: expected the name of the column that holds them. Add "
            "the weights to the files."
        )
    files = ParquetFiles(source)
    head = read_table(files.head(1), categorical=as_list(categorical_features))
    roles = resolve_roles(head, quasi_identifiers, sensitive, weights, unit)
    check_hierarchies(head, hierarchies, roles)
    people = _People.of(population, roles, files.n_records)
    with WorkingFiles(scratch) as working:
        job = _Job(files, head, roles, people, missing, most_held, working, progress)
        return job.run(dict(hierarchies or {}), population)


class _People:
    """A population that is read piece by piece."""

    def __init__(self, pieces: Callable[[], Iterator[Any]], n_records: int) -> None:
        self._pieces, self.n_records = pieces, n_records

    @classmethod
    def of(cls, given: Any, roles: Roles, n_records: int) -> _People | None:
        if given is None:
            return None
        names = roles.quasi_identifiers
        if is_integer(given):
            if given < n_records:
                raise ParameterError(
                    f"population={given} with {n_records} records: expected at least as many people as records. Give "
                    "the number of people that the table was drawn from."
                )
            return None
        is_path = isinstance(given, str | os.PathLike) or (
            isinstance(given, list | tuple) and all(isinstance(path, str | os.PathLike) for path in given)
        )
        if is_path:
            files = ParquetFiles(given)
            read_table(files.head(1)).resolve(names, "quasi_identifiers", where="in the population")
            return cls(lambda: files.batches(names), files.n_records)
        table = read_table(given)
        table.resolve(names, "quasi_identifiers", where="in the population")
        arrow = as_arrow(given).select(list(names))
        return cls(lambda: iter([arrow]), table.n_records)

    def pieces(self, categorical: Sequence[str]) -> Iterator[Table]:
        for batch in self._pieces():
            yield read_for_counting(batch, categorical)


class _Job:
    def __init__(
        self,
        files: ParquetFiles,
        head: Table,
        roles: Roles,
        people: _People | None,
        missing: MissingPolicy,
        most_held: int,
        working: WorkingFiles,
        progress: Progress | None,
    ) -> None:
        self.files, self.roles, self.people, self.missing = files, roles, people, missing
        self.most_held, self.working, self.progress = most_held, working, progress
        self.categorical = head.categorical
        self.names = [name for name in head.names if name not in roles.weight_column]
        self.values = {name: ValueCodes(name) for name in self.names}
        self.n_codes: dict[str, int] = {}

    def run(self, hierarchies: dict[str, Any], population: Any) -> Measurement:
        roles, missing, people = self.roles, self.missing, self.people
        self._number_values()
        columns, theirs = self._write_codes()
        weights = self._write_weights()
        sensitive = [self._sensitive(name, columns[name], hierarchies.get(name)) for name in roles.sensitive]
        n_buckets = n_buckets_for(max(self.files.n_records, people.n_records if people else 0), self.most_held)
        carried = columns if weights is None else columns | {_WEIGHT: weights}
        keys = roles.quasi_identifiers
        buckets = into_buckets(self.working, carried, keys, n_buckets)
        their_buckets = None if theirs is None else into_buckets(self.working, theirs, keys, n_buckets)
        is_matching = missing == "wildcard" and any(self.values[name].has_missing for name in keys)
        is_wild = missing == "wildcard" and any(self.values[name].some_missing for name in keys)
        others = [name for name in self.names if name not in keys]
        at_once = None if is_wild else their_buckets
        groups = self._grouped(buckets, at_once, sensitive, others, keeps_groups=is_wild)
        matched = in_population = None
        if is_matching:
            matched = match_counts(groups.keys(), groups.keys(), groups.sizes()[:, None])[:, 0]
        if is_wild and their_buckets is not None:
            other = self._grouped(their_buckets, None, [], [], keeps_groups=True)
            n_codes = [self.n_codes[name] for name in keys]
            in_population = count_matches(groups.keys(), other.keys(), other.sizes(), n_codes, is_wild=True)
        tally = groups.tally(missing, matched=matched, in_population=in_population)
        total = None if weights is None else np.array([sum(float(part.sum()) for part in weights.chunks())])
        size, basis = population_size(self.files.n_records, population, people.n_records if people else None, total)
        criteria = [
            CriterionValue("k-anonymity", None, int(tally.matched.min()), "records of the smallest group", missing)
        ]
        for own in sensitive:
            criteria += evaluate(own.about, own.rows(groups, is_matching), missing)
        criteria.append(presence(tally.matched, tally.in_population, missing))
        ranking = ColumnRanking(self.working, columns, self.n_codes, self.most_held, self.progress)
        return Measurement(
            n_records=self.files.n_records,
            quasi_identifiers=roles.quasi_identifiers,
            sensitive=roles.sensitive,
            missing=missing,
            n_with_missing=groups.n_with_missing,
            groups=tally.described(None if is_matching else groups.fewest_persons),
            prosecutor=tally.prosecutor(),
            **tally.risks_in_population(),
            uniqueness=tally.uniqueness(size, basis),
            ranking=ranking.rank(
                {name: values.n_own_codes for name, values in self.values.items()}, list(groups.added.items())
            ),
            criteria=tuple(criteria),
        )

    # -- reading -------------------------------------------------------------------------------------------------

    def _pieces(self, what: str) -> Iterator[Table]:
        done = 0
        for batch in self.files.batches(self.names):
            self._tell(what, done, self.files.n_records)
            yield read_for_counting(batch, self.categorical)
            done += batch.num_rows
        self._tell(what, done, self.files.n_records)

    def _tell(self, what: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(what, done, total)

    def _number_values(self) -> None:
        with ThreadPoolExecutor(thread_count(-1)) as pool:
            for table in self._pieces("counting values"):

                def add(name: str, table: Table = table) -> None:
                    self.values[name].add(table.column(name, for_counting=True))

                list(pool.map(add, self.names))
        for values in self.values.values():
            values.note_own()
        if self.people is not None:
            for table in self.people.pieces(self.categorical):
                for name in self.roles.quasi_identifiers:
                    self.values[name].add(table.column(name, for_counting=True), is_other=True)
            for name in self.roles.quasi_identifiers:
                self.values[name].close()
        self.n_codes = {name: values.n_codes for name, values in self.values.items()}

    def _write_codes(self) -> tuple[dict[str, ColumnFile], dict[str, ColumnFile] | None]:
        """Return the codes of the table and of the population; text with many values is numbered over both."""
        keys = self.roles.quasi_identifiers
        n_people = 0 if self.people is None else self.people.n_records
        many = {
            name: ManyValues(self.working, self.files.n_records + n_people, self.most_held)
            for name, values in self.values.items()
            if values.is_on_disk
        }
        listed = [name for name in self.names if name not in many]
        columns = {name: self.working.new_column(self.values[name].dtype) for name in listed}
        with ThreadPoolExecutor(thread_count(-1)) as pool:
            for table in self._pieces("coding"):

                def write(name: str, table: Table = table) -> None:
                    column = table.column(name, for_counting=True)
                    if name in many:
                        many[name].add(column)
                    else:
                        columns[name].append(self.values[name].encode(column))

                list(pool.map(write, self.names))
        theirs = None
        if self.people is not None:
            theirs = {name: self.working.new_column(self.values[name].dtype) for name in keys if name not in many}
            for table in self.people.pieces(self.categorical):
                for name in keys:
                    column = table.column(name, for_counting=True)
                    if name in many:
                        many[name].add(column)
                    else:
                        theirs[name].append(self.values[name].encode(column))
        for name, numbered in many.items():
            both = numbered.finish()
            self.n_codes[name] = self.values[name].n_own_codes = numbered.n_codes
            columns[name] = both.part(0, self.files.n_records)
            if theirs is not None and name in keys:
                theirs[name] = both.part(self.files.n_records, n_people)
        return {name: columns[name] for name in self.names}, theirs

    def _write_weights(self) -> ColumnFile | None:
        if not self.roles.weight_column:
            return None
        [name] = self.roles.weight_column
        file, n_wrong = self.working.new_column(np.float64), 0
        for batch in self.files.batches([name]):
            column = read_table(batch).column(name)
            is_number = column.kind == "number" and column.missing is None
            values = column.values.astype(np.float64) if is_number else np.full(batch.num_rows, np.nan)
            n_wrong += int((~np.isfinite(values) | (values <= 0)).sum())
            file.append(values)
        if n_wrong:
            raise InputError(
                f"weights has {n_wrong} of {self.files.n_records} values that are no positive number: expected how "
                "many people each record stands for. Drop such records, or measure without weights."
            )
        return file

    def _sensitive(self, name: str, column: ColumnFile, hierarchy: Any) -> SensitiveCodes:
        values = self.values[name]
        if values.is_on_disk:
            return SensitiveCodes.too_many(name, self.n_codes[name] - 1, hierarchy)
        counts = np.zeros(values.n_codes, np.int64)
        for codes in column.chunks():
            counts += np.bincount(codes, minlength=values.n_codes)
        return SensitiveCodes.of(values, counts, self.files.schema.field(name).type, hierarchy)

    # -- grouping ------------------------------------------------------------------------------------------------

    def _grouped(
        self,
        buckets: Buckets,
        theirs: Buckets | None,
        sensitive: Sequence[SensitiveCodes],
        others: Sequence[str],
        *,
        keeps_groups: bool,
    ) -> GroupsOfBuckets:
        """Group bucket after bucket."""
        found = GroupsOfBuckets(
            self.roles.quasi_identifiers,
            others,
            self.n_codes,
            unit=next(iter(self.roles.unit), None),
            weight=_WEIGHT if _WEIGHT in buckets.columns else None,
            keeps_groups=keeps_groups,
        )
        done = np.cumsum(buckets.stops - buckets.starts).tolist()
        for bucket in range(len(buckets)):
            if buckets.n_records(bucket):
                found.add(buckets, bucket, theirs, sensitive)
            self._tell("grouping", done[bucket], done[-1])
        return found


_WEIGHT = "\x00weight"  # no column of a table is called this
