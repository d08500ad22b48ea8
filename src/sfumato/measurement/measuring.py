# SPDX-License-Identifier: Apache-2.0
"""``measure``: read the table, group its records, and put the parts of the measurement together."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import Codes, Grouping, encode, encode_together, group
from sfumato.measurement.criterion_values import measure_criteria
from sfumato.measurement.measurement import Measurement, MissingPolicy
from sfumato.measurement.ranking import rank
from sfumato.measurement.tally import GroupTally, population_size
from sfumato.measurement.wildcard import match_counts

Names = str | int | Iterable[str | int]


def measure(
    frame: Any,
    quasi_identifiers: Names | None = None,
    sensitive: Names | None = None,
    *,
    population: Any = None,
    weights: Any = None,
    unit: str | int | None = None,
    missing: MissingPolicy = "value",
    categorical_features: Names | None = None,
    hierarchies: Mapping[str, Any] | None = None,
) -> Measurement:
    """Measure how well people hide in a table, whoever made it.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array-like of shape (n_records, n_columns)
        The table. It is never modified.
    quasi_identifiers : names or positions of columns, optional
        Columns that together could point at a person; without, all that have no other role.
    sensitive : names or positions of columns, optional
        Columns that nobody should learn about a person.
    population : frame or int, optional
        The people the table was drawn from: a table with the quasi-identifiers in the same form (a table that says
        ``30-39`` needs a population that does), for counted risks, or only their number, for estimates.
    weights : name or position of a column, or array-like of shape (n_records,), optional
        Survey weights: how many people of the population each record stands for.
    unit : name or position of a column, optional
        Which person a record belongs to, where a person may have several.
    missing : {"value", "wildcard"}, default="value"
        What a missing quasi-identifier means: a value of its own, or one that matches anything.
    categorical_features : names or positions of columns, optional
        Columns of numbers that are codes.
    hierarchies : mapping of str to Hierarchy, nested mapping or rows, optional
        Of sensitive columns, for the hierarchical distance of t-closeness.

    Returns
    -------
    Measurement
        Group sizes, risks, uniqueness, a ranking of columns, and the value of every criterion. Every part says what a
        missing value means in it, and a number that cannot be had is None, with the reason.

    Notes
    -----
    This is for the owner of the table: counts are exact, however small. With ``missing="wildcard"`` a record's group
    is the set of records it matches; such sets overlap, so nothing that needs separate groups is estimated.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import measure
    >>> people = pa.table({"age": [30, 30, 41, 41, 52], "disease": ["flu", "flu", "flu", "cold", "cold"]})
    >>> found = measure(people, quasi_identifiers=["age"], sensitive=["disease"])
    >>> found.k, found.uniqueness.n_unique, found.prosecutor.average
    (1, 1, 0.6)
    """
    check_policy(missing)
    table = read_table(frame, categorical=as_list(categorical_features))
    roles = resolve_roles(table, quasi_identifiers, sensitive, weights, unit)
    check_hierarchies(table, hierarchies, roles)
    people = _read_population(population, roles.quasi_identifiers, table)
    codes = {
        name: encode(table.column(name, for_counting=True)) for name in table.names if name not in roles.weight_column
    }
    own = [codes[name] for name in roles.quasi_identifiers]
    groups = group(own, table.n_records)
    sizes = groups.sizes
    matched = _matched(own, groups, sizes, missing)
    survey = _read_weights(table, weights, roles)
    is_matching = missing == "wildcard" and any(column.has_missing for column in own)
    size_in_population = _count_in_population(table, people, roles, groups, missing) if people is not None else None
    tally = GroupTally(
        sizes=sizes,
        matched=matched,
        n_groups=np.ones_like(sizes),
        in_population=size_in_population,
        weight=None if survey is None else np.add.reduceat(survey[groups.order], groups.starts[:-1]),
        is_matching=is_matching,
        missing=missing,
    )
    size, basis = population_size(
        table.n_records, population, None if people is None else people.n_records, None if survey is None else survey
    )
    return Measurement(
        n_records=table.n_records,
        quasi_identifiers=roles.quasi_identifiers,
        sensitive=roles.sensitive,
        missing=missing,
        n_with_missing=int(np.logical_or.reduce([column.values == 0 for column in own]).sum()),
        groups=tally.described(None if unit is None or is_matching else fewest_persons(groups, codes[roles.unit[0]])),
        prosecutor=tally.prosecutor(),
        **tally.risks_in_population(),
        uniqueness=tally.uniqueness(size, basis),
        ranking=rank(list(codes.values()), roles.quasi_identifiers, groups),
        criteria=measure_criteria(
            groups,
            matched,
            own,
            [table.column(name, for_counting=True) for name in roles.sensitive],
            size_in_population,
            hierarchies=dict(hierarchies or {}),
            missing=missing,
        ),
    )


# -- what was given --------------------------------------------------------------------------------------------


def check_policy(missing: str) -> None:
    """Refuse an unknown meaning of missing values."""
    if missing not in get_args(MissingPolicy):
        raise ParameterError(
            f"{named('missing', missing)}: expected 'value' (a missing value is a value of its own) or 'wildcard' (a "
            "missing quasi-identifier matches anything)."
        )


def check_hierarchies(table: Table, hierarchies: Mapping[str, Any] | None, roles: Roles) -> None:
    """Refuse hierarchies of columns that are not sensitive."""
    for name in table.resolve(list(hierarchies or {}), "hierarchies"):
        if name not in roles.sensitive:
            raise ParameterError(
                f"{named('hierarchies')} names the column {name!r}, which is not named in {named('sensitive')}: "
                f"expected sensitive columns. Name it in {named('sensitive')}, too, or leave its hierarchy out."
            )


@dataclass(frozen=True)
class Roles:
    """The columns of a table by their roles in a measurement."""

    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    unit: tuple[str, ...]
    weight_column: tuple[str, ...]


def as_list(names: Names | None) -> list[str | int]:
    """Return what a parameter names as a list."""
    if names is None:
        return []
    return [names] if isinstance(names, str | int | np.integer) else list(names)


def resolve_roles(
    table: Table, quasi_identifiers: Names | None, sensitive: Names | None, weights: Any, unit: Any
) -> Roles:
    """Look the columns up and give each one role, or say what does not fit together."""
    sensitive_names = table.resolve(as_list(sensitive), "sensitive")
    unit_name = table.resolve(as_list(unit), "unit")
    weight_name = table.resolve(weights, "weights") if isinstance(weights, str | int) else ()
    taken = {**dict.fromkeys(sensitive_names, "sensitive"), **dict.fromkeys(unit_name, "unit")}
    taken |= dict.fromkeys(weight_name, "weights")
    if quasi_identifiers is None:
        chosen: tuple[str, ...] = tuple(name for name in table.names if name not in taken)
    else:
        chosen = table.resolve(as_list(quasi_identifiers), "quasi_identifiers")
    for name in chosen:
        if name in taken:
            raise ParameterError(
                f"the column {name!r} is named in {named('quasi_identifiers')} and in {named(taken[name])}: expected "
                "one role per column. Remove it from one of them."
            )
    if not chosen:
        raise ParameterError(
            f"{named('quasi_identifiers')} names no column: expected at least one. Name the columns that could point "
            "at a person."
        )
    return Roles(chosen, sensitive_names, unit_name, weight_name)


def _read_population(population: Any, names: Sequence[str], table: Table) -> Table | None:
    if population is None:
        return None
    if _is_whole(population):
        if population < table.n_records:
            raise ParameterError(
                f"population={population} with {table.n_records} records: expected at least as many people as records. "
                "Give the number of people that the table was drawn from."
            )
        return None
    people = read_table(population, categorical=[name for name in table.categorical if name in names])
    if not people.has_named_columns and len(people.names) != len(table.names):
        raise InputError(
            f"the population has {len(people.names)} columns without names and the table has {len(table.names)}: "
            "expected the same columns. Give a frame with names."
        )
    people.resolve(names, "quasi_identifiers", where="in the population")
    return people


def _is_whole(given: object) -> bool:
    return isinstance(given, numbers.Integral) and not isinstance(given, bool)


def _read_weights(table: Table, weights: Any, roles: Roles) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    if roles.weight_column:
        column = table.column(roles.weight_column[0])
        is_number = column.kind == "number" and column.missing is None
        values = column.values.astype(np.float64) if is_number else np.full(table.n_records, np.nan)
    else:
        try:
            values = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.full(table.n_records, np.nan)
        if values.shape != (table.n_records,):
            raise InputError(
                f"weights has the shape {values.shape} and the table {table.n_records} records: expected one weight "
                "per record."
            )
    n_wrong = int((~np.isfinite(values) | (values <= 0)).sum())
    if n_wrong:
        raise InputError(
            f"weights has {n_wrong} of {len(values)} values that are no positive number: expected how many people "
            "each record stands for. Drop such records, or measure without weights."
        )
    return values


# -- the parts -------------------------------------------------------------------------------------------------


def keys_of(columns: Sequence[Codes], groups: Grouping) -> NDArray[np.int32]:
    """Return the codes of one record of each group."""
    first = groups.order[groups.starts[:-1]]
    return np.stack([column.values[first] for column in columns], axis=1)


def _matched(columns: Sequence[Codes], groups: Grouping, sizes: NDArray[np.int64], missing: str) -> NDArray[np.int64]:
    """Return how many records each group's records match."""
    if missing == "value" or not any(column.has_missing for column in columns):
        return sizes
    keys = keys_of(columns, groups)
    return match_counts(keys, keys, sizes[:, None])[:, 0]


def _count_in_population(
    table: Table, people: Table, roles: Roles, groups: Grouping, missing: str
) -> NDArray[np.int64]:
    """Return how many people of the population each group's records match."""
    pairs = [
        encode_together(table.column(name, for_counting=True), people.column(name, for_counting=True))
        for name in roles.quasi_identifiers
    ]
    theirs = group([second for _, second in pairs], people.n_records)
    keys = keys_of([first for first, _ in pairs], groups)
    their_keys = keys_of([second for _, second in pairs], theirs)
    is_wild = missing == "wildcard" and any(first.has_missing or second.has_missing for first, second in pairs)
    n_codes = [first.n_codes for first, _ in pairs]
    return count_matches(keys, their_keys, theirs.sizes, n_codes, is_wild=is_wild)


def count_matches(
    keys: NDArray[np.int32],
    their_keys: NDArray[np.int32],
    their_sizes: NDArray[np.int64],
    n_codes: Sequence[int],
    *,
    is_wild: bool,
) -> NDArray[np.int64]:
    """Return how many records of others each key matches; codes of a column are below its `n_codes` in both."""
    if is_wild:
        return match_counts(keys, their_keys, their_sizes[:, None])[:, 0]
    both = np.concatenate([keys, their_keys])
    columns = [Codes("", np.ascontiguousarray(both[:, j]), n_codes[j], False) for j in range(both.shape[1])]
    label = group(columns, len(both)).of_records()
    counted = np.zeros(int(label.max()) + 1, np.int64)
    counted[label[len(keys) :]] = their_sizes
    return counted[label[: len(keys)]]


def fewest_persons(groups: Grouping, unit: Codes) -> int:
    """Return the fewest different persons of a group; persons that nobody can tell apart count as one."""
    divided = groups.divided(unit)
    return int(np.diff(np.searchsorted(divided.starts, groups.starts)).min())
