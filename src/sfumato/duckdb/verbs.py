# SPDX-License-Identifier: Apache-2.0
"""The verbs: open the table in DuckDB, call `sfumato.parquet`, and write a table if an address is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace as with_changes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato import parquet
from sfumato.backends.blocks.groups import MOST_HELD as MOST_MEASURED
from sfumato.backends.blocks.working_files import WorkingFiles
from sfumato.backends.duckdb.address import is_address
from sfumato.backends.duckdb.reader import DuckDBTable
from sfumato.backends.duckdb.session import library
from sfumato.backends.duckdb.writer import check_destination, write_table
from sfumato.errors import ParameterError
from sfumato.parquet.anonymizing import MOST_HELD, ParquetRelease

if TYPE_CHECKING:
    from sfumato.anatomize import Anatomizer
    from sfumato.anonymize.anonymizer import Anonymizer
    from sfumato.generalization import Generalization
    from sfumato.generalization.artifact import Output
    from sfumato.measurement.measurement import Measurement, MissingPolicy
    from sfumato.measurement.measuring import Names
    from sfumato.parquet import ParquetAnatomy
    from sfumato.progress import Progress

Destination = str | os.PathLike[str]


def fit_transform(
    anonymizer: Anonymizer,
    source: Any,
    destination: Destination,
    *,
    guide_column: str | Sequence[str] | None = None,
    model: Any = None,
    target: str | None = None,
    target_kind: Literal["classes", "numbers"] = "classes",
    floor: int | None = None,
    shuffle: bool = True,
    most_held: int = MOST_HELD,
    replace: bool = False,
    progress: Progress | None = None,
) -> ParquetRelease:
    """Anonymize a table in DuckDB into a Parquet file or another table, and fit the anonymizer.

    Parameters
    ----------
    anonymizer : ModelGuidedAnonymizer, MondrianAnonymizer (strict median) or WorkloadAwareAnonymizer
        Unfitted; fitted afterwards, as if it had seen the table at once.
    source : str or duckdb.DuckDBPyRelation
        An address, such as ``duckdb:people.db?table=people`` or ``duckdb:people.db?query=select ...``, or a relation.
    destination : path or str
        A Parquet file, or an address of a table, such as ``duckdb:out.db?table=released``. Either appears when the
        release was recounted, or not at all; a table was then counted by DuckDB's own ``GROUP BY``, too.
    guide_column, model, target, target_kind, floor, shuffle, most_held, progress
        As of :func:`sfumato.parquet.fit_transform`.
    replace : bool, default=False
        Whether a table of that name may be replaced.

    Returns
    -------
    ParquetRelease
        Its path is that of the Parquet file, or of the database.

    Raises
    ------
    GuaranteeError
        When a criterion does not hold on what was written. Nothing is published then.

    Examples
    --------
    >>> import duckdb, tempfile
    >>> from sfumato import MondrianAnonymizer
    >>> from sfumato.duckdb import fit_transform
    >>> people = duckdb.sql("select (range % 40) + 20 as age, range % 2 = 0 as smokes from range(200)")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release = fit_transform(MondrianAnonymizer(k=20), people, f"duckdb:{folder}/out.db?table=released")
    >>> release.n_records, release.smallest_group >= 20
    (200, True)
    """

    def made(table: DuckDBTable, file: Path) -> ParquetRelease:
        return parquet.fit_transform(
            anonymizer, table, file,
            guide_column=guide_column, model=model, target=target, target_kind=target_kind, floor=floor,
            shuffle=shuffle, most_held=most_held, progress=progress,
        )  # fmt: skip

    def counted(release: ParquetRelease) -> dict[str, Any]:
        keys = anonymizer.partition_.output_names(anonymizer.schema_.quasi_identifiers)
        return {"keys": keys, "n_records": release.n_records, "smallest": release.smallest_group}

    release: ParquetRelease
    release, path = _written(source, destination, made, counted, replace=replace)
    return with_changes(release, path=path)


def release(
    partition: Any,
    source: Any,
    destination: Destination,
    *,
    replace: bool = False,
    **settings: Any,
) -> ParquetRelease:
    """Release a table in DuckDB with differential privacy, by a partition that was fitted on other people.

    Parameters
    ----------
    partition : Partition or fitted anonymizer
    source : str or duckdb.DuckDBPyRelation
        As of :func:`fit_transform`.
    destination : path or str
        A Parquet file, or an address of a table.
    replace : bool, default=False
        Whether a table of that name may be replaced.
    **settings
        ``mechanism``, ``epsilon`` and the others of :func:`sfumato.parquet.release`.

    Returns
    -------
    ParquetRelease
        Its path is that of the Parquet file, or of the database.

    Examples
    --------
    >>> import duckdb, tempfile
    >>> from sfumato import MondrianAnonymizer
    >>> from sfumato.duckdb import release
    >>> anonymizer = MondrianAnonymizer(k=50).fit(duckdb.sql("select range % 60 + 20 as age from range(500)").df())
    >>> people = duckdb.sql("select range % 50 + 20 as age from range(3000)")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = release(
    ...         anonymizer, people, f"duckdb:{folder}/out.db?table=released",
    ...         mechanism="counts", epsilon=1.0, fitted_on="others",
    ...     )
    >>> 2800 < made.n_records < 3200
    True
    """

    def made(table: DuckDBTable, file: Path) -> ParquetRelease:
        return parquet.release(partition, table, file, **settings)

    def counted(release: ParquetRelease) -> dict[str, Any]:
        return {"keys": None, "n_records": release.n_records}  # no size of groups is promised

    done: ParquetRelease
    done, path = _written(source, destination, made, counted, replace=replace)
    return with_changes(done, path=path)


def transform(
    generalization: Generalization,
    source: Any,
    destination: Destination,
    *,
    output: Output = "codes",
    drop: Iterable[str] = (),
    replace: bool = False,
    progress: Progress | None = None,
) -> int:
    """Replace every value of a table in DuckDB by its bucket, and write a Parquet file or another table.

    Parameters
    ----------
    generalization : Generalization
    source : str or duckdb.DuckDBPyRelation
        As of :func:`fit_transform`. Columns that are no attributes pass through untouched.
    destination : path or str
        A Parquet file, or an address of a table.
    output, drop, progress
        As of :func:`sfumato.parquet.transform`.
    replace : bool, default=False
        Whether a table of that name may be replaced.

    Returns
    -------
    n_records : int
    """

    def made(table: DuckDBTable, file: Path) -> int:
        return parquet.transform(generalization, table, file, output=output, drop=list(drop), progress=progress)

    n_records, _ = _written(source, destination, made, lambda n: {"keys": None, "n_records": n}, replace=replace)
    return int(n_records)


def measure(
    source: Any,
    quasi_identifiers: Names | None = None,
    sensitive: Names | None = None,
    *,
    population: Any = None,
    weights: str | int | None = None,
    unit: str | int | None = None,
    missing: MissingPolicy = "value",
    categorical_features: Names | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    most_held: int = MOST_MEASURED,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """Measure how well people hide in a table in DuckDB, exactly, whatever its size.

    Parameters
    ----------
    source : str or duckdb.DuckDBPyRelation
        As of :func:`fit_transform`.
    population : str, relation, path, frame or int, optional
        The people the table was drawn from: an address, a relation, Parquet files or a frame with the
        quasi-identifiers in the same form, or only their number.
    quasi_identifiers, sensitive, weights, unit, missing, categorical_features, hierarchies, most_held, progress
        As of :func:`sfumato.parquet.measure`.
    scratch : path, optional
        A folder with room for working files, and for a copy of what is not a table.

    Returns
    -------
    Measurement
        Equal to that of the same table in memory; averages may differ in their last digits.
    """
    with ExitStack() as opened:
        table = opened.enter_context(DuckDBTable(source, folder=scratch))
        if is_address(population) or isinstance(population, library().DuckDBPyRelation):
            population = opened.enter_context(DuckDBTable(population, folder=scratch))
        return parquet.measure(
            table, quasi_identifiers, sensitive,
            population=population, weights=weights, unit=unit, missing=missing,
            categorical_features=categorical_features, hierarchies=hierarchies, most_held=most_held, scratch=scratch,
            progress=progress,
        )  # fmt: skip


def anatomize(
    anatomizer: Anatomizer, source: Any, destination: Destination, *, progress: Progress | None = None
) -> ParquetAnatomy:
    """Divide a table in DuckDB in two tables, and fit the anatomizer.

    Parameters
    ----------
    anatomizer : Anatomizer
        Unfitted; fitted afterwards, as if it had seen the table at once.
    source : str or duckdb.DuckDBPyRelation
        As of :func:`fit_transform`.
    destination : path
        A folder that does not exist yet, as of :func:`sfumato.parquet.anatomize`.
    progress : callable, optional
        Called with what is being done, the records done and their number.

    Returns
    -------
    ParquetAnatomy
    """
    if is_address(destination):
        raise ParameterError(
            f"the destination {str(destination)!r} is a table: expected a folder, since an anatomy is two tables that "
            "appear together. Give the name of a new folder."
        )
    with DuckDBTable(source, folder=_folder_of(destination)) as table:
        return parquet.anatomize(anatomizer, table, destination, progress=progress)


def _written(
    source: Any,
    destination: Destination,
    made: Callable[[DuckDBTable, Path], Any],
    counted: Callable[[Any], dict[str, Any]],
    *,
    replace: bool,
) -> tuple[Any, Path]:
    """Write a Parquet file, or a table made from a private one; return the result and the path."""
    if not is_address(destination):
        path = Path(destination)
        with DuckDBTable(source, folder=_folder_of(path)) as table:
            return made(table, path), path
    address = check_destination(str(destination), replace=replace)
    assert address.path is not None
    with WorkingFiles(address.path.absolute().parent) as working:
        file = working.path / "release.parquet"
        with DuckDBTable(source, folder=working.path) as table:  # closed before its own database may be written to
            result = made(table, file)
        write_table(file, address, replace=replace, **counted(result))
    return result, address.path


def _folder_of(path: Destination) -> Path | None:
    """Return the folder of an output for working files, or None if it is not writable."""
    folder = Path(path).absolute().parent
    return folder if folder.is_dir() and os.access(folder, os.W_OK) else None
