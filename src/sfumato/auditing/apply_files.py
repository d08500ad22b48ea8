# SPDX-License-Identifier: Apache-2.0
"""Recode new records with a saved partition or generalization, for prediction or for a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.auditing.open_tables import columns_of, open_table, progress_of
from sfumato.auditing.saved_documents import (
    SavedGeneralization,
    SavedPartition,
    check_promises,
    is_generalization,
    load_generalization,
    load_partition,
)
from sfumato.errors import InputError, ParameterError, named
from sfumato.files.column_names import split_names
from sfumato.files.table_file import FileTable, Location, ReadingOptions, format_of, unfinished, unknown_column
from sfumato.files.verified_output import (
    ORDER_KEPT,
    Recount,
    compact_dictionaries,
    formula_warning,
    plain_values,
    recount,
    shuffled,
    write_judged,
)
from sfumato.frames import read_table
from sfumato.schema import ExposedColumnError, build_schema

if TYPE_CHECKING:
    from sfumato.anonymize import Release
    from sfumato.backends.blocks.block_table import BlockTable
    from sfumato.generalization.artifact import Output
    from sfumato.progress import Reporter


@dataclass(frozen=True)
class ApplySettings:
    """What to do with a saved document and a file of new records.

    Attributes
    ----------
    output : Path
    is_release : bool
        Whether to merge groups until each has k of the new records.
    k, unit : int and str, optional
        Instead of those of the partition.
    suppression_limit : float
    identifiers, keep : sequence of str
        Columns to drop, and columns to release unchanged even if nearly all their values are unique.
    values : {"labels", "codes", "representatives"}, optional
        What a bucket of a generalization is written as.
    earlier : sequence of str
        Saved publications of earlier releases.
    persons : str, optional
        The column that identifies people in earlier releases.
    remember : Path, optional
        Where to save the publication of this release.
    keep_order : bool
    """

    output: Path
    is_release: bool = False
    k: int | None = None
    unit: str | None = None
    suppression_limit: float = 0.0
    identifiers: Sequence[str] = ()
    keep: Sequence[str] = ()
    values: Output | None = None
    earlier: Sequence[str] = ()
    persons: str | None = None
    remember: Path | None = None
    keep_order: bool = False

    @property
    def asks_for_groups(self) -> bool:
        """Whether a setting only makes sense for a release with groups of k."""
        own = (self.k, self.unit, self.persons, self.remember)
        others = (self.suppression_limit, self.earlier, self.keep_order)
        return any(value is not None for value in own) or any(map(bool, others))


_OF_GROUPS = ", ".join(
    named(name) for name in ("k", "unit", "suppression_limit", "earlier", "persons", "remember", "keep_order")
)


@dataclass(frozen=True)
class Recoded:
    """New records with the values of their groups.

    Attributes
    ----------
    counted : Recount
        Counted on the written file.
    is_release : bool
        Whether k was required.
    unit : str or None
        The column by which k counts persons.
    n_merged, n_suppressed : int
    together : sequence of mapping
        What the release and each earlier one reveal together.
    all_together : mapping or None
        What the release and all earlier ones reveal together, if there are several.
    """

    counted: Recount
    is_release: bool
    unit: str | None = None
    n_merged: int = 0
    n_suppressed: int = 0
    together: Sequence[Mapping[str, Any]] = ()
    all_together: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Minimized:
    """New records whose values became buckets, and the columns that are released unchanged."""

    generalization: Any
    n_records: int
    unchanged: list[str]
    values: str


def apply_document(
    reporter: Reporter,
    document: Path,
    file: Location,
    settings: ApplySettings,
    *,
    reading: ReadingOptions,
    out_of_core: bool | None = None,
) -> Recoded | Minimized:
    """Recode a file with a saved partition or generalization, and write it.

    Parameters
    ----------
    reporter : Reporter
    document : Path
        A partition, as ``sfumato anonymize --save`` writes it, or a generalization.
    file : Path or DuckDBAddress
        The new records.
    settings : ApplySettings
    reading : ReadingOptions
    out_of_core : bool, optional
    """
    obstacle, where = None, named("out_of_core", True)
    if format_of(settings.output) != "parquet":
        obstacle = f"{where} with an output that is not Parquet: expected {named('output', 'FILE.parquet')}."
    elif settings.is_release:
        otherwise = named("out_of_core", False)
        obstacle = f"{where} with {named('release')}, which merges groups of all records: expected {otherwise}."
    saved = _load(reporter, document, settings)
    if isinstance(saved, SavedPartition):
        earlier = _publications(settings.earlier)
    with open_table(reporter, file, reading, out_of_core=out_of_core, obstacle=obstacle, types=saved.types) as table:
        if isinstance(saved, SavedGeneralization):
            return _minimize(reporter, table, saved.generalization, settings)
        saved = for_this_file(saved, columns_of(table), settings)
        if isinstance(table, FileTable):
            return _recode(reporter, table, saved, settings, earlier)
        return _recode_blocks(reporter, table, saved, settings.output)


def _load(reporter: Reporter, document: Path, settings: ApplySettings) -> SavedPartition | SavedGeneralization:
    """Read a saved document, and raise ParameterError for settings that do not go with it."""
    if is_generalization(document):
        if settings.is_release or settings.asks_for_groups:
            raise ParameterError(
                f"{named('release')}, {_OF_GROUPS} go with a partition: a generalization promises no group sizes. "
                "Remove them."
            )
        with reporter.step(f"reading {document.name}"):
            return load_generalization(document)
    if not settings.is_release and settings.asks_for_groups:
        raise ParameterError(
            f"{_OF_GROUPS} go with {named('release')}: without it, no group size is promised and records keep their "
            "order."
        )
    if not 0 <= settings.suppression_limit < 1:
        raise ParameterError(
            f"{named('suppression_limit', settings.suppression_limit)}: expected a share from 0 to below 1."
        )
    if settings.values is not None:
        raise ParameterError(f"{named('values')} goes with a generalization: a partition holds its own values.")
    with reporter.step(f"reading {document.name}"):
        return load_partition(document)


def _publications(names: Sequence[str]) -> tuple[Any, ...]:
    from sfumato.anonymize import Publication

    return tuple(Publication.load(name) for name in split_names(names))


# -- columns of this file ------------------------------------------------------------------------------------------


def for_this_file(saved: SavedPartition, columns: Sequence[str], settings: ApplySettings) -> SavedPartition:
    """Return a partition with the columns that this file has, and with the settings of this run."""
    partition = saved.partition
    used = {column.name for column in partition.columns} | set(partition.values)
    absent = [name for name in (*(c.name for c in partition.columns), *partition.values) if name not in columns]
    if absent := list(dict.fromkeys(absent)):
        raise InputError(
            f"the file lacks {len(absent)} of the {len(used)} columns that the partition uses: "
            f"{', '.join(map(repr, absent[:5]))}. Expected the columns of the file it was made from."
        )
    dropped, keep = split_names(settings.identifiers, columns), split_names(settings.keep, columns)
    unit = [settings.unit] if settings.unit else []
    _check_names({"identifiers": dropped, "keep": keep, "unit": unit}, columns, partition.values, "the partition")
    if settings.persons is not None:
        _check_names({"persons": [settings.persons]}, columns)
    gone = dict.fromkeys(name for name in (*partition.dropped, *dropped) if name in columns and name not in keep)
    kept = tuple(name for name in dict.fromkeys([*saved.keep, *keep]) if name in columns and name not in gone)
    return replace(
        saved,
        partition=replace(partition, dropped=tuple(gone)),
        k=settings.k if settings.k is not None else saved.k,
        unit=settings.unit if settings.unit is not None else saved.unit,
        keep=kept,
    )


def _check_names(
    given: Mapping[str, Sequence[str]], columns: Sequence[str], rewritten: Sequence[str] = (), by: str = ""
) -> None:
    """Raise ParameterError for a name that is not a column, or that the document rewrites."""
    for setting, names in given.items():
        for name in names:
            if name not in columns:
                raise ParameterError(unknown_column(named(setting), name, columns))
            if name in rewritten:
                raise ParameterError(f"{named(setting)} names {name!r}, which {by} rewrites. Remove it.")


def _schema_of(table: Any, **roles: Any) -> Any:
    """Build the schema; errors suggest only what a saved document allows, which decides what is rewritten."""
    try:
        return build_schema(table, coarsened=roles.get("quasi_identifiers", ()), **roles)
    except ExposedColumnError as error:
        raise ExposedColumnError(error.column, error.why, instead=["identifiers"]) from None


def _check_unchanged(blocks: BlockTable, categorical: Sequence[str], **roles: Any) -> None:
    """Raise ExposedColumnError for columns that would be released unchanged and identify people, by all records."""
    from sfumato.backends.blocks.pass_through import PassThrough

    head = read_table(blocks.head(1 << 16), categorical=categorical)
    schema = _schema_of(head, is_whole=False, **roles)
    watched = PassThrough(schema, head, blocks.n_records, is_chosen=True, decided=schema.quasi_identifiers)
    for batch in blocks.batches(watched.names) if watched.names else ():
        watched.add(batch)
    try:
        watched.check()
    except ExposedColumnError as error:
        raise ExposedColumnError(error.column, error.why, instead=["identifiers"]) from None


# -- partitions ---------------------------------------------------------------------------------------------------


def _recode(
    reporter: Reporter, source: FileTable, saved: SavedPartition, settings: ApplySettings, earlier: tuple[Any, ...]
) -> Recoded:
    partition, table, output = saved.partition, source.table, settings.output
    rewritten = [part.name for parts in partition.values.values() for part in parts]
    units, made, k = None, None, saved.k or 2
    if settings.is_release:
        check_promises(saved)
        k = _checked_k(saved)
        with reporter.step(f"merging groups until each has {k} of the {table.num_rows:,} records"):
            made, units = _release(table, saved, k, settings, earlier)
            released = made.table
    else:
        with reporter.step(f"recoding {table.num_rows:,} records"):
            _schema_of(read_table(table, categorical=partition.categorical), **_roles(saved))
            released = partition.transform(table)
    released = compact_dictionaries(released)
    if settings.is_release and settings.keep_order:
        reporter.note(ORDER_KEPT, is_warning=True)
    elif settings.is_release:
        released, units = shuffled(released, units)
    if formulas := formula_warning(released, output):
        reporter.note(formulas, is_warning=True)

    def judge(read: Any) -> Recount:
        return recount(read, rewritten, k, units=units)

    with reporter.step(f"writing {output.name}, reading it back and counting its groups"):
        counted = write_judged(released, output, style=source.style, judge=judge, must_hold=settings.is_release)
    if made is None:
        return Recoded(counted, is_release=False)
    if made.publication is not None and settings.remember is not None:
        made.publication.save(settings.remember)
    together, all_together = made.measures.get("together", []), made.measures.get("all_together")
    return Recoded(counted, True, saved.unit, made.n_merged, made.n_suppressed, together, all_together)


def _roles(saved: SavedPartition) -> dict[str, Any]:
    return {
        "quasi_identifiers": list(saved.partition.values),
        "identifiers": list(saved.partition.dropped) or None,
        "keep": list(saved.keep) or None,
    }


def _checked_k(saved: SavedPartition) -> int:
    if saved.k is None:
        raise ParameterError(f"{named('release')} with a partition that does not hold its k. Pass {named('k')}.")
    if saved.k < 2:
        raise ParameterError(f"{named('k', saved.k)}: expected at least 2.")
    return saved.k


def _release(
    table: Any, saved: SavedPartition, k: int, settings: ApplySettings, earlier: tuple[Any, ...]
) -> tuple[Release, Any]:
    """Merge groups of a saved partition as the library does.

    Returns
    -------
    release, units
        The units are the person of each released record, or None; the released table does not have them.
    """
    import numpy as np

    from sfumato.anonymize import ModelGuidedAnonymizer
    from sfumato.criteria import KAnonymity

    partition, unit = saved.partition, saved.unit
    if unit is not None and unit not in table.column_names:
        raise ParameterError(
            f"the partition counts persons by {unit!r}, which the file does not have. Add it, or pass {named('unit')}."
        )
    # The recount needs the person of each record, so the column stays in until the table is ready.
    dropped = [name for name in partition.dropped if name != unit]
    keep = [*saved.keep, *([unit] if unit is not None and unit not in saved.keep else [])]
    partition = replace(partition, dropped=tuple(dropped))
    anonymizer = ModelGuidedAnonymizer(
        k=k,
        criteria=[KAnonymity(k, unit=unit)] if unit is not None else None,
        representative=partition.representative,
        suppression_limit=settings.suppression_limit,
        random_state=0,
        n_jobs=-1,
    )
    anonymizer.schema_ = _schema_of(
        read_table(table, categorical=partition.categorical),
        quasi_identifiers=list(partition.values),
        identifiers=dropped or None,
        unit=unit,
        keep=keep or None,
        limits=partition.limits or None,
    )
    anonymizer.partition_ = partition
    anonymizer.feature_names_in_ = np.array(table.column_names, dtype=object)
    anonymizer.n_features_in_ = table.num_columns
    result = anonymizer.release(table, earlier=list(earlier), persons=settings.persons, shuffle=False)
    released, units = result.table, None
    if unit is not None:
        units = plain_values(released.column(unit))
        released = released if unit in saved.keep else released.drop_columns([unit])
    return replace(result, table=released), units


def _recode_blocks(reporter: Reporter, blocks: BlockTable, saved: SavedPartition, output: Path) -> Recoded:
    """Recode a table out of core; no group size is promised."""
    import pyarrow as pa

    from sfumato.backends.parquet.reader import ParquetFiles
    from sfumato.backends.parquet.rewrite import used_categories
    from sfumato.frames.arrow_tables import without_metadata
    from sfumato.parquet.generalizing import (
        missing_as_nan,
        with_compact_dictionaries,
        with_one_kind_of_missing,
        write_piecewise,
    )
    from sfumato.verification import GroupCounter

    partition, k = saved.partition, saved.k or 2
    with reporter.step("checking the columns that are released unchanged"):
        _check_unchanged(blocks, partition.categorical, **_roles(saved))
    rewritten = [part.name for parts in partition.values.values() for part in parts]
    written = used_categories(partition, {})
    same = [name for name in rewritten if name in blocks.names]
    as_nan = missing_as_nan(blocks, [n for n in same if pa.types.is_floating(blocks.schema.field(n).type)])

    def recoded(batch: Any) -> Any:
        table = with_one_kind_of_missing(partition.transform(batch), as_nan)
        return without_metadata(with_compact_dictionaries(table, written))

    step = reporter.step(f"recoding {blocks.n_records:,} records and writing {output.name}")
    with step, unfinished(output) as [temporary]:
        write_piecewise(blocks, temporary, recoded, rewritten, progress_of(reporter))
        counter = GroupCounter(rewritten)
        for batch in ParquetFiles(temporary).batches(rewritten or None):
            counter.add(batch)
    sizes = counter.sizes()
    return Recoded(Recount(sizes, blocks.n_records, int(sizes[sizes < k].sum()), k), is_release=False)


# -- generalizations ----------------------------------------------------------------------------------------------


def _minimize(
    reporter: Reporter, table: FileTable | BlockTable, generalization: Any, settings: ApplySettings
) -> Minimized:
    """Replace every value by its bucket; other columns are released unchanged."""
    from sfumato.parquet.generalizing import transform

    columns, output, values = columns_of(table), settings.output, settings.values or "labels"
    dropped, kept = split_names(settings.identifiers, columns), split_names(settings.keep, columns)
    names = [name for name in generalization.names if name in columns]
    if not names:
        raise InputError(
            "the file has none of the attributes of the generalization. Expected the columns that it was made from."
        )
    _check_names({"identifiers": dropped, "keep": kept}, columns, names, "the generalization")
    unchanged = [name for name in columns if name not in names and name not in dropped]
    if isinstance(table, FileTable):
        records = table.table.drop_columns(dropped)
        with reporter.step(f"finding the buckets of {records.num_rows:,} records"):
            if unchanged:
                _schema_of(read_table(records), quasi_identifiers=names, keep=kept or None)
            minimized = compact_dictionaries(generalization.transform(records, values))
        with reporter.step(f"writing {output.name} and reading it back"):
            write_judged(
                minimized, output, style=table.style, judge=lambda read: recount(read, names, 2), must_hold=False
            )
        return Minimized(generalization, records.num_rows, unchanged, values)
    if unchanged:
        with reporter.step("checking the columns that are released unchanged"):
            roles = {"quasi_identifiers": names, "identifiers": dropped or None, "keep": kept or None}
            _check_unchanged(table, (), **roles)
    step = reporter.step(f"finding the buckets of {table.n_records:,} records and writing {output.name}")
    with step, unfinished(output) as [temporary]:
        transform(generalization, table, temporary, output=values, drop=dropped, progress=progress_of(reporter))
    return Minimized(generalization, table.n_records, unchanged, values)
