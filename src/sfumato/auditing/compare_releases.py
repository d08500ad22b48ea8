# SPDX-License-Identifier: Apache-2.0
"""Compare releases of the same people: two files, or the release of a policy with what was kept of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, ParameterError, named
from sfumato.files.publishing import fingerprint_of
from sfumato.files.table_file import unknown_column
from sfumato.files.verified_output import plain_values
from sfumato.report.risk_data import EarlierRelease

if TYPE_CHECKING:
    from sfumato.anonymize import Publication
    from sfumato.attack.intersection import Intersection
    from sfumato.policy import Policy
    from sfumato.progress import Reporter


def compare_releases(
    reporter: Reporter,
    tables: tuple[Any, Any],
    *,
    quasi_identifiers: Sequence[str] = (),
    sensitive: str | None = None,
    key: str | None = None,
) -> Intersection:
    """Intersect the groups of two releases.

    Parameters
    ----------
    reporter : Reporter
    tables : tuple of pyarrow.Table
    quasi_identifiers : sequence of str
        The rewritten columns of either release; all but the key and the sensitive column unless given.
    sensitive : str, optional
    key : str, optional
        The column that identifies people; without one, rows correspond by their order.
    """
    from sfumato.attack.intersection import intersect_releases

    every = list(dict.fromkeys(name for table in tables for name in table.column_names))
    for name in quasi_identifiers:
        if name not in every:  # without that column, people would seem better hidden than they are
            raise ParameterError(unknown_column(named("quasi_identifiers"), name, every))
    first, second = (_columns(table, quasi_identifiers, sensitive, key) for table in tables)
    if key is None:
        _check_order(tables, {*first, *second})
    with reporter.step("intersecting the groups of both releases"):
        return intersect_releases(*tables, (first, second), sensitive=sensitive, key=key)


def _columns(table: Any, quasi_identifiers: Sequence[str], sensitive: str | None, key: str | None) -> list[str]:
    """Return the rewritten columns of one release."""
    columns = table.column_names
    for setting, name in {"sensitive": sensitive, "key": key}.items():
        if name is not None and name not in columns:
            raise ParameterError(unknown_column(named(setting), name, columns))
    chosen = [name for name in quasi_identifiers if name in columns]
    if quasi_identifiers and not chosen:
        raise ParameterError(unknown_column(named("quasi_identifiers"), quasi_identifiers[0], columns))
    return chosen or [name for name in columns if name not in (sensitive, key)]


def _check_order(tables: tuple[Any, Any], rewritten: set[str]) -> None:
    """Raise InputError if an unchanged column shows that the releases have different row orders."""
    import pyarrow as pa

    one, other = tables
    moved = []
    for name in one.column_names:
        if name in rewritten or name not in other.column_names:
            continue
        first, second = (plain_values(table.column(name)) for table in tables)
        if first.type != second.type or pa.types.is_nested(first.type):
            continue
        if first.equals(second):
            return
        if len(first) == len(second) and _sorted(first).equals(_sorted(second)):
            moved.append(name)
    if moved:
        raise InputError(
            f"the column {moved[0]!r} has the same values in both files, in another order: expected the same people in "
            f"the same order. Name the column that identifies people in {named('key')}, or compare releases that keep "
            "the order of the input."
        )


def _sorted(column: Any) -> Any:
    import pyarrow.compute as pc

    return column.take(pc.sort_indices(column))


# -- policies ------------------------------------------------------------------------------------------------------


def load_earlier(policy: Policy) -> dict[Path, Publication]:
    """Read what was kept of the earlier releases that a policy names."""
    from sfumato.anonymize import Publication

    return {path: Publication.load(path) for path in policy.files("earlier")}


def describe_earlier(earlier: Mapping[Path, Publication], release: Any, k: int) -> tuple[EarlierRelease, ...]:
    """Return what a release and each earlier one show together; counts below k are None."""

    def shown(count: int) -> int | None:
        return None if 0 < count < k else count

    found = zip(earlier, release.measures.get("together", ()), strict=True)
    return tuple(
        EarlierRelease(
            path.name,
            fingerprint_of(path),
            shown(together["n_people"]),
            shown(together["n_below"]),
            together["is_safe"],
            together["is_counted"],
        )
        for path, together in found
    )
