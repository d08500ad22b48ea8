# SPDX-License-Identifier: Apache-2.0
"""Pair a release with its original: the roles of columns with their reasons, and whether the rows correspond.

`audit` calls this; both tables may come from anyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InputError, ParameterError, named

_CLASSES = 10  # that numbers are put into to see whether rows belong together
_CLEARLY_MORE = 1.05
_ROLE_OF = {"quasi_identifiers": "quasi-identifier"}


@dataclass(frozen=True)
class Pair:
    """Roles of the columns of a release and its original.

    Attributes
    ----------
    quasi_identifiers : list of str
        As the original calls them.
    released_as : list of str
        As the release calls them: bounds of ranges have two columns.
    sensitive : list of str
    target : str or None
    others : list of str
        Columns of both tables without a role: released unchanged.
    reasons : dict
        What a column was taken for, and why, to the columns.
    is_aligned : bool
        Whether the rows of both tables are in the same order.
    """

    quasi_identifiers: list[str]
    released_as: list[str]
    sensitive: list[str]
    target: str | None
    others: list[str]
    reasons: dict[tuple[str, str], list[str]]
    is_aligned: bool


def pair_tables(
    before: Any,
    after: Any,
    *,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    target: str | None = None,
) -> Pair:
    """Find the named columns in both tables, and infer the roles of the others from their values.

    A column that has the same values in both tables was released unchanged; the others were rewritten, and are the
    quasi-identifiers unless some are named. If nothing was rewritten, every column without a role is one.
    """
    if not before.num_rows / 2 <= after.num_rows <= before.num_rows:
        raise InputError(
            f"{before.num_rows:,} records before and {after.num_rows:,} after: expected a release of at least half of "
            "them, and no others. Pass the table that the release was made of first, or use 'sfumato measure' for the "
            "release alone."
        )
    parts = {name: _parts_of(name, after.column_names) for name in before.column_names}
    common = [name for name in before.column_names if parts[name]]
    secrets = list(sensitive)
    named = {
        "quasi_identifiers": list(quasi_identifiers),
        "sensitive": secrets,
        "target": [] if target is None else [target],
    }
    _check_roles(named, common)
    reasons: dict[tuple[str, str], list[str]] = {}
    for parameter, names in named.items():
        if names:
            reasons[_ROLE_OF.get(parameter, parameter), "named"] = names
    free = [name for name in common if name not in (*secrets, *named["target"], *named["quasi_identifiers"])]
    names = named["quasi_identifiers"]
    if not names:
        changed = [name for name in free if not _is_unchanged(before, after, name)]
        names = changed or free
        why = "auto-detected: its values were changed" if changed else "no column was changed, so all count"
        if names:
            reasons["quasi-identifier", why] = names
    if not names:
        raise ParameterError("no column is a quasi-identifier: expected at least one that both files have.")
    others = [name for name in free if name not in names]
    if others:
        why = "not named" if named["quasi_identifiers"] else "auto-detected: its values are those of the original"
        reasons["released unchanged", why] = others
    if dropped := [name for name in before.column_names if not parts[name]]:
        reasons["dropped", "not in the release"] = dropped
    known = {part for found in parts.values() for part in found}
    if added := [name for name in after.column_names if name not in known]:
        reasons["added", "not in the original"] = added
    exact = [*others, *secrets, *named["target"]]
    return Pair(
        quasi_identifiers=names,
        released_as=[part for name in names for part in parts[name]],
        sensitive=secrets,
        target=target,
        others=others,
        reasons=reasons,
        is_aligned=_is_aligned(before, after, exact, {name: parts[name] for name in names}),
    )


def _parts_of(name: str, released: list[str]) -> list[str]:
    """Return the names of a column in a release: itself, or its bounds; nothing if it was dropped."""
    if name in released:
        return [name]
    bounds = [f"{name}_low", f"{name}_high"]
    return bounds if all(bound in released for bound in bounds) else []


def _check_roles(given: dict[str, list[str]], common: list[str]) -> None:
    from sfumato.files.table_file import unknown_column

    roles: dict[str, str] = {}
    for parameter, names in given.items():
        for name in names:
            if name not in common:
                raise ParameterError(unknown_column(named(parameter), name, common))
            earlier = roles.setdefault(name, parameter)
            if earlier != parameter and (earlier, parameter) != ("sensitive", "target"):
                raise ParameterError(
                    f"{named(parameter)} names {name!r}, which {named(earlier)} names, too: expected one role per "
                    "column."
                )


def _is_unchanged(before: Any, after: Any, name: str) -> bool:
    """Return True if a released column has no value more often than the original has it."""
    if name not in after.column_names:
        return False
    counted = _counted(before.column(name), after.column(name))
    return counted is not None and bool((counted[1] <= counted[0]).all())


def _counted(before: Any, after: Any) -> tuple[Any, Any] | None:
    """Return how often each value of either column occurs in both; None where they cannot be compared."""
    import pyarrow as pa

    from sfumato.files.verified_output import plain_values

    before, after = plain_values(before), plain_values(after)
    if before.type != after.type:
        return None
    both = pa.table({"value": pa.chunked_array([*_chunks(before), *_chunks(after)], before.type)})
    side = np.repeat([0, 1], [len(before), len(after)])
    groups = both.append_column("after", pa.array(side)).group_by("value").aggregate(
        [("after", "sum"), ([], "count_all")]
    )  # fmt: skip
    n_after = groups["after_sum"].to_numpy()
    return groups["count_all"].to_numpy() - n_after, n_after


def _chunks(column: Any) -> list[Any]:
    return list(getattr(column, "chunks", [column]))


def _is_aligned(before: Any, after: Any, exact: list[str], rewritten: dict[str, list[str]]) -> bool:
    """Return True if the rows of both tables are in the same order, as far as can be told.

    One column that was released unchanged and has its values in the same places is enough. If all of them have other
    places, the rows were shuffled. Without such columns, rewritten values must go with the originals of their rows
    better than with those of other rows.
    """
    from sfumato.files.verified_output import plain_values

    if before.num_rows != after.num_rows:
        return False
    moved = []
    for name in exact:
        first, second = plain_values(before.column(name)), plain_values(after.column(name))
        if first.type == second.type and len(first.unique()) > 1:
            if first.equals(second):
                return True
            moved.append(_is_unchanged(before, after, name))
    if any(moved):
        return False
    goes_with = [_goes_with(before, after, name, parts[0]) for name, parts in rewritten.items()]
    return True in goes_with or False not in goes_with


def _goes_with(before: Any, after: Any, name: str, part: str) -> bool | None:
    """Return True if released values fit the originals of their rows; None if that is undecidable."""
    from sfumato.frames import read_table

    first = _classes(read_table(before).column(name, for_counting=True))
    second = _classes(read_table(after).column(part, for_counting=True))
    if len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return None
    n_classes = int(first.max()) + 1

    def together(order: Any) -> float:
        return float((np.unique(second[order] * n_classes + first, return_counts=True)[1].astype(float) ** 2).sum())

    generator = np.random.default_rng(0)
    by_chance = max(together(generator.permutation(len(first))) for _ in range(3))
    return together(np.arange(len(first))) > _CLEARLY_MORE * by_chance


def _classes(column: Any) -> Any:
    """Return a class of every record: the category, or a tenth of the numbers; missing is a class."""
    values = column.values
    if column.categories is None:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, _CLASSES + 1)[1:-1]))
        values = np.searchsorted(edges, values, side="right")
    classes = values.astype(np.int64)
    return classes if column.missing is None else np.where(column.missing, classes.max() + 1, classes)
