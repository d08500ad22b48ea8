# SPDX-License-Identifier: Apache-2.0
"""Verify a release on the written file, not on the table in memory.

The file gets a temporary name, is read back, compared, recounted with Arrow's own grouping, and then moved into place.
The commands call :func:`write_judged`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.allocator import give_back_small_pieces
from sfumato.criterion_recount import Promise, PromiseCount, count_promise, count_records_promise
from sfumato.errors import GuaranteeError, Sentence, named
from sfumato.files.csv_reading import CsvStyle, read_written
from sfumato.files.csv_writing import formula_columns, types_to_read
from sfumato.files.publishing import fingerprint_of
from sfumato.files.table_file import (
    Format,
    bytes_of,
    format_of,
    listed,
    read_file,
    unfinished,
    with_separator_of,
    write_file,
)
from sfumato.frames.arrow_tables import compact_dictionaries as compact_dictionaries
from sfumato.frames.arrow_tables import narrow_integer
from sfumato.frames.from_arrow import one_chunk
from sfumato.frames.shuffling import in_order, random_order

Writer = Callable[[Path, Mapping[Path, str]], None]
"""Writes a file to a path, given the SHA-256 of other files of the same run by their names."""

_COMPARED_AT_ONCE = 500_000  # records
_ROUNDING = 1e-9  # of distances, which are sums of fractions

ORDER_KEPT = Sentence(
    "the release keeps the order of the input. An attacker who knows a person's place there, as in a file that is "
    "sorted or grows day by day, can tell which record of a group is theirs, whatever k is. Remove "
    f"{named('keep_order', True)} to shuffle."
)


def read_back(table: Any, path: Path, as_format: Format, style: CsvStyle | None = None) -> Any:
    """Read a file that was just written; CSV text gets the types of the table that was written."""
    if as_format == "parquet":
        return read_file(path, as_format=as_format, keep_types=False).table
    return read_written(bytes_of(path, as_format), style or CsvStyle(), table.column_names, types_to_read(table))


def check_same(written: Any, read: Any) -> None:
    """Raise GuaranteeError unless the table read back equals the table in memory, column by column.

    Raises
    ------
    GuaranteeError
        Naming the first column that differs.
    """
    if written.num_rows != read.num_rows or written.column_names != read.column_names:
        raise GuaranteeError(
            f"the written file was read back with {read.num_rows:,} records and {read.num_columns} columns instead of "
            f"{written.num_rows:,} and {written.num_columns}. Nothing was kept."
        )
    for name in written.column_names:
        # Some records at a time: text that a dictionary holds once is there for every record here.
        starts = range(0, written.num_rows, _COMPARED_AT_ONCE)
        meant, found = written.column(name), read.column(name)
        if not all(_is_same(*(column.slice(at, _COMPARED_AT_ONCE) for column in (meant, found))) for at in starts):
            raise GuaranteeError(
                f"column {name!r} of the written file does not read back as what was written. Nothing was kept. "
                f"Writing Parquet ({named('output', 'NAME.parquet')}) avoids text; please report this."
            )


def _is_same(meant: Any, found: Any) -> bool:
    import pyarrow as pa

    meant, found = plain_values(meant), plain_values(found)
    try:
        return bool(found.cast(meant.type).equals(meant))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a type that text cannot become again: times of day
        return bool(found.equals(meant.cast(found.type)))


def plain_values(column: Any) -> Any:
    """Return a column without dictionaries, with not-a-number as missing and no negative zero."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_float16(column.type):  # Arrow compares no numbers of half precision; single precision holds them all
        column = pc.cast(column, pa.float32())
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        column = pc.if_else(pc.equal(column, 0), pa.scalar(0, column.type), column)
    return column


def _numbered(column: Any) -> Any:
    """Return one narrow integer per record, equal for equal values: memory holds the keys of many columns at once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = one_chunk(column)
        # A dictionary may list a value twice, and null among its values.
        values = plain_values(column.dictionary)
        codes = pc.index_in(values, value_set=pc.unique(values)).take(column.indices)
        codes = pc.fill_null(codes, _place_of_null(values))
        n_values = len(values) + 1
    else:
        encoded = one_chunk(plain_values(column).dictionary_encode())
        n_values = len(encoded.dictionary) + 1
        codes = pc.fill_null(encoded.indices, n_values - 1)
    return codes.cast(narrow_integer(n_values))


def _place_of_null(values: Any) -> int:
    """Return the number of records without a value: that of the null among the values, or the one after the last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = pc.index_in(pa.scalar(None, values.type), value_set=pc.unique(values)).as_py()
    return len(values) if place is None else int(place)


@dataclass(frozen=True)
class SensitiveCount:
    """The diversity of a sensitive column in the groups of a table, and the requirements.

    Attributes
    ----------
    column : str
    l, t : int and float, or None
        What was required.
    least_values : int
        Distinct values of the group with the fewest; missing is one.
    largest_distance : float
        Total variation distance between a group's values and those of all records, at most.
    """

    column: str
    l: int | None  # noqa: E741  # the literature's name
    t: float | None
    least_values: int
    largest_distance: float

    @property
    def holds(self) -> bool:
        """Whether both requirements are met."""
        has_values = self.l is None or self.least_values >= self.l
        return has_values and (self.t is None or self.largest_distance <= self.t + _ROUNDING)

    @property
    def sentences(self) -> list[str]:
        """One sentence for each requirement."""
        said = []
        if self.l is not None:
            holds = "holds" if self.least_values >= self.l else "does not hold"
            said.append(
                f"l = {self.l} {holds} for {self.column!r}: the least diverse group has {self.least_values} values."
            )
        if self.t is not None:
            holds = "holds" if self.largest_distance <= self.t + _ROUNDING else "does not hold"
            said.append(
                f"t = {self.t:g} {holds} for {self.column!r}: the largest distance is {self.largest_distance:.3f}."
            )
        return said


@dataclass(frozen=True, eq=False)
class Recount:
    """Counts on a table, independent of the engine that made it."""

    sizes: npt.NDArray[np.int64]
    n_records: int
    n_records_in_small_groups: int
    k: int
    sensitive: tuple[SensitiveCount, ...] = ()
    promises: tuple[PromiseCount, ...] = ()

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.sizes)

    @property
    def smallest_group(self) -> int:
        """Size of the smallest group."""
        return int(self.sizes.min())

    @property
    def median_group(self) -> float:
        """Median size of the groups."""
        return float(np.median(self.sizes))

    @property
    def holds(self) -> bool:
        """Whether every group has k members and all other requirements hold."""
        is_diverse = all(counted.holds for counted in self.sensitive)
        return self.n_records_in_small_groups == 0 and is_diverse and all(counted.holds for counted in self.promises)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts under their names."""
        promised = [asdict(counted) | {"holds": counted.holds} for counted in self.promises]
        return {
            "n_records": self.n_records,
            "n_groups": self.n_groups,
            "smallest_group": self.smallest_group,
            "median_group": self.median_group,
            "n_records_in_groups_below_k": self.n_records_in_small_groups,
            "sensitive": [asdict(counted) | {"holds": counted.holds} for counted in self.sensitive],
            **({"criteria": promised} if promised else {}),
        }


def verdict(counted: Recount, judged_on: str, *, is_by_person: bool = False) -> str:
    """Return sentences on whether k and the other requirements hold, and for how many records k fails."""
    size = f"{counted.k} {'persons' if is_by_person else 'records'}"
    if counted.n_records_in_small_groups:
        n_records = f"{blurred(counted.n_records_in_small_groups, counted.k)} of {counted.n_records:,} records"
        found = f"does not hold (k = {counted.k}): {n_records} are in a group of fewer than {size}"
    else:
        found = f"verified (k = {counted.k}): no group has fewer than {size}"
    own = f"k-anonymity {found} (recounted on {judged_on})."
    more = [sentence for part in counted.sensitive for sentence in part.sentences]
    return " ".join([own, *more, *(part.says for part in counted.promises)])


def blurred(count: int, k: int) -> str:
    """Return a count as text; one between 0 and k could identify a person and is masked."""
    return f"{count:,}" if count == 0 or count >= k else f"fewer than {k}"


def recount(
    table: Any,
    columns: Sequence[str],
    k: int,
    *,
    units: Any = None,
    sensitive: Sequence[str] = (),
    l: int | None = None,  # noqa: E741  # the literature's name
    t: float | None = None,
    promises: Sequence[Promise] = (),
) -> Recount:
    """Count the groups of equal values over some columns with Arrow's group_by alone.

    Parameters
    ----------
    table : pyarrow.Table
        What was read back.
    columns : sequence of str
        The quasi-identifiers as they stand in the table.
    k : int
        The size asked for.
    units : pyarrow array, optional
        One person per record; then a group's size is its number of different persons.
    sensitive : sequence of str
        Columns whose values are counted by group.
    l, t : int and float, optional
        What is required of them.
    promises : sequence of Promise
        What else is required.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from sfumato.verification import count_values_by_block, label_groups

    keys = {f"q{position}": _numbered(table.column(name)) for position, name in enumerate(columns)}
    if not keys:  # nothing identifies anybody: all records are one group
        keys = {"q": pa.array(np.zeros(table.num_rows, dtype=np.int8))}
    counted = pa.table({**keys, "unit": units} if units is not None else keys)
    wanted: list[tuple[Any, ...]] = [([], "count_all")]
    if units is not None:
        wanted.append(("unit", "count_distinct", pc.CountOptions(mode="all")))
    groups = counted.group_by(list(keys)).aggregate(wanted)
    records = groups["count_all"].to_numpy()
    sizes = groups["unit_count_distinct"].to_numpy() if units is not None else records
    found = []
    if sensitive and (l is not None or t is not None):
        group = label_groups(table, columns)
        for name in sensitive:
            values = _numbered(table.column(name)).to_numpy(zero_copy_only=False).astype(np.int64)
            blocks = count_values_by_block(group, values, int(values.max()) + 1)
            found.append(count_sensitive(name, np.bincount(values), blocks, l, t))
    kept = _count_promises(table, columns, promises, {False: records, True: sizes})
    return Recount(sizes, table.num_rows, int(records[sizes < k].sum()), k, tuple(found), kept)


def _count_promises(
    table: Any, columns: Sequence[str], promises: Sequence[Promise], sizes: Mapping[bool, npt.NDArray[np.int64]]
) -> tuple[PromiseCount, ...]:
    """Count the promises; `sizes` has group sizes in records under False, and in persons under True."""
    from sfumato.verification import count_values_by_block, label_groups

    group = label_groups(table, columns) if any(promise.column is not None for promise in promises) else None
    found = []
    for promise in promises:
        if promise.column is None:
            found.append(count_records_promise(promise, sizes[promise.settings.get("unit") is not None]))
            continue
        assert group is not None
        codes, values = _valued(table.column(promise.column))
        everybody = np.bincount(codes, minlength=len(values)).astype(np.int64)
        found.append(count_promise(promise, values, everybody, count_values_by_block(group, codes, len(values))))
    return tuple(found)


def _valued(column: Any) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Return a number for the value of each record, and the values in their order, None last where some are missing."""
    import pyarrow.compute as pc

    encoded = one_chunk(plain_values(column).dictionary_encode())
    listed = encoded.dictionary
    order = pc.sort_indices(listed).to_numpy()
    place = np.empty(len(listed) + 1, np.int64)
    place[order] = np.arange(len(listed))
    place[len(listed)] = len(listed)
    codes = place[pc.fill_null(encoded.indices, len(listed)).to_numpy(zero_copy_only=False)]
    return codes, listed.take(order).to_pylist() + ([None] if encoded.null_count else [])


def count_sensitive(
    column: str,
    everybody: npt.NDArray[np.int64],
    groups: Iterable[npt.NDArray[np.int64]],
    l: int | None,  # noqa: E741  # the literature's name
    t: float | None,
) -> SensitiveCount:
    """Count distinct values and distances of groups, from how often each value occurs: in all records, and by group."""
    least, largest = len(everybody), 0.0
    n_records = int(everybody.sum())
    for counts in groups:
        least = min(least, int((counts > 0).sum(axis=1).min()))
        # Differences of shares over one denominator: whole numbers, so the order of the values changes nothing.
        sizes = counts.sum(axis=1, keepdims=True)
        distance = np.abs(counts * n_records - everybody * sizes).sum(axis=1) / (2 * n_records * sizes[:, 0])
        largest = max(largest, float(distance.max()))
    return SensitiveCount(column, l, t, least, largest)


def shuffled(table: Any, units: Any = None) -> tuple[Any, Any]:
    """Return a release in a random order that cannot be repeated, and the persons of its records in that order."""
    order = random_order(table.num_rows)
    return in_order(table, order), None if units is None else units.take(order)


def formula_warning(table: Any, output: Path) -> str | None:
    """Return a warning if spreadsheets take some text of a CSV file for formulas, or None."""
    if format_of(output) == "parquet" or not (names := formula_columns(table)):
        return None
    return (
        f"spreadsheets take some text of {len(names)} columns for formulas: {listed(list(map(repr, names)), 5)}. Open "
        "the file as text, not with a double click."
    )


def write_judged(
    table: Any,
    path: Path,
    *,
    style: CsvStyle | None,
    judge: Callable[[Any], Recount],
    beside: Mapping[Path, Writer] | None = None,
    must_hold: bool = True,
) -> Recount:
    """Write a release to a temporary name, read it back, verify it and move it into place.

    Parameters
    ----------
    table : pyarrow.Table
        What to release.
    path : Path
        Its final name; the ending tells the format.
    style : CsvStyle or None
        The style of the input, for CSV.
    judge : callable
        Takes the table that was read back and counts.
    beside : mapping of Path to callable, optional
        Further files that belong to the release, in the order in which they appear; each callable writes to the path
        it gets, and gets the SHA-256 of the files before it by their final names. All or none appear.
    must_hold : bool, default=True
        Whether a failing count stops the release.

    Raises
    ------
    GuaranteeError
        When k does not hold on what was read back. Then nothing is written.
    """
    beside = dict(beside or {})
    as_format = format_of(path)
    with unfinished(path, *beside) as (temporary, *others):
        style = with_separator_of(path, style)
        write_file(table, temporary, as_format, style)
        give_back_small_pieces()
        read = read_back(table, temporary, as_format, style)
        check_same(table, read)
        give_back_small_pieces()
        result = judge(read)
        if must_hold:
            check_holds(result, "the written file")
        write_beside(others, beside, {path: fingerprint_of(temporary)} if beside else {})
    return result


def write_beside(paths: Sequence[Path], beside: Mapping[Path, Writer], digests: dict[Path, str]) -> None:
    """Write files one after the other, each with the SHA-256 of those before it."""
    for path, (final, write) in zip(paths, beside.items(), strict=True):
        write(path, digests)
        digests[final] = fingerprint_of(path)


def judged_in_memory(table: Any, *, judge: Callable[[Any], Recount], beside: Mapping[Path, Writer]) -> Recount:
    """Verify a table that is not written, and write the files beside it."""
    result = judge(table)
    check_holds(result, "the result")
    if beside:
        with unfinished(*beside) as others:
            write_beside(others, beside, {})
    return result


def check_holds(result: Recount, judged_on: str) -> None:
    """Raise GuaranteeError unless all requirements hold."""
    if not result.holds:
        raise GuaranteeError(f"{verdict(result, judged_on)} Nothing was written.")
