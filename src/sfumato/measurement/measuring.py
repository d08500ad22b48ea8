# SPDX-License-Identifier: Apache-2.0
"""``measure``: read the table, group its records, and put the parts of the measurement together."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, ParameterError
from sfumato.frames import Table, read_table
from sfumato.measurement.grouping import Codes, Grouping, encode, encode_together, group
from sfumato.measurement.ranking import rank
from sfumato.measurement.result import Measurement, MissingPolicy, Uniqueness, describe_sizes
from sfumato.measurement.risks import Risk, risk_of, unknown_risk
from sfumato.measurement.sensitive import measure_criteria
from sfumato.measurement.uniqueness import estimate_from_weights, estimates_from_sizes, expected_inverse
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
    if missing not in get_args(MissingPolicy):
        raise ParameterError(
            f"missing={missing!r}: expected 'value' (a missing value is a value of its own) or 'wildcard' (a missing "
            "quasi-identifier matches anything)."
        )
    table = read_table(frame, categorical=_as_list(categorical_features))
    roles = _resolve_roles(table, quasi_identifiers, sensitive, weights, unit)
    for name in table.resolve(list(hierarchies or {}), "hierarchies"):
        if name not in roles.sensitive:
            raise ParameterError(
                f"hierarchies names the column {name!r}, which is not named in sensitive: expected sensitive columns. "
                "Name it in sensitive, too, or leave its hierarchy out."
            )
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
    return Measurement(
        n_records=table.n_records,
        quasi_identifiers=roles.quasi_identifiers,
        sensitive=roles.sensitive,
        missing=missing,
        n_with_missing=int(np.logical_or.reduce([column.values == 0 for column in own]).sum()),
        groups=describe_sizes(
            matched,
            sizes,
            missing=missing,
            smallest_in_persons=None if unit is None else _fewest_persons(groups, codes[roles.unit[0]], is_matching),
        ),
        prosecutor=risk_of("prosecutor", 1.0 / matched, sizes, basis="table", missing=missing),
        **_risks_in_population(groups, matched, size_in_population, survey, missing, is_matching),
        uniqueness=_uniqueness(groups, matched, population, people, size_in_population, survey, missing, is_matching),
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


@dataclass(frozen=True)
class _Roles:
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    unit: tuple[str, ...]
    weight_column: tuple[str, ...]


def _as_list(names: Names | None) -> list[str | int]:
    if names is None:
        return []
    return [names] if isinstance(names, str | int | np.integer) else list(names)


def _resolve_roles(
    table: Table, quasi_identifiers: Names | None, sensitive: Names | None, weights: Any, unit: Any
) -> _Roles:
    sensitive_names = table.resolve(_as_list(sensitive), "sensitive")
    unit_name = table.resolve(_as_list(unit), "unit")
    weight_name = table.resolve(weights, "weights") if isinstance(weights, str | int) else ()
    taken = {**dict.fromkeys(sensitive_names, "sensitive"), **dict.fromkeys(unit_name, "unit")}
    taken |= dict.fromkeys(weight_name, "weights")
    if quasi_identifiers is None:
        named: tuple[str, ...] = tuple(name for name in table.names if name not in taken)
    else:
        named = table.resolve(_as_list(quasi_identifiers), "quasi_identifiers")
    for name in named:
        if name in taken:
            raise ParameterError(
                f"the column {name!r} is named in quasi_identifiers and in {taken[name]}: expected one role per "
                "column. Remove it from one of them."
            )
    if not named:
        raise ParameterError(
            "quasi_identifiers names no column: expected at least one. Name the columns that could point at a person."
        )
    return _Roles(named, sensitive_names, unit_name, weight_name)


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
    people.resolve(names, "quasi_identifiers (in the population)")
    return people


def _is_whole(given: object) -> bool:
    return isinstance(given, numbers.Integral) and not isinstance(given, bool)


def _read_weights(table: Table, weights: Any, roles: _Roles) -> NDArray[np.float64] | None:
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


def _keys(columns: Sequence[Codes], groups: Grouping) -> NDArray[np.int32]:
    first = groups.order[groups.starts[:-1]]
    return np.stack([column.values[first] for column in columns], axis=1)


def _matched(columns: Sequence[Codes], groups: Grouping, sizes: NDArray[np.int64], missing: str) -> NDArray[np.int64]:
    """Return how many records each group's records match."""
    if missing == "value" or not any(column.has_missing for column in columns):
        return sizes
    keys = _keys(columns, groups)
    return match_counts(keys, keys, sizes[:, None])[:, 0]


def _count_in_population(
    table: Table, people: Table, roles: _Roles, groups: Grouping, missing: str
) -> NDArray[np.int64]:
    """Return how many people of the population each group's records match."""
    pairs = [
        encode_together(table.column(name, for_counting=True), people.column(name, for_counting=True))
        for name in roles.quasi_identifiers
    ]
    theirs = group([second for _, second in pairs], people.n_records)
    keys = _keys([first for first, _ in pairs], groups)
    their_keys = _keys([second for _, second in pairs], theirs)
    if missing == "wildcard" and any(first.has_missing or second.has_missing for first, second in pairs):
        return match_counts(keys, their_keys, theirs.sizes[:, None])[:, 0]
    both = np.concatenate([keys, their_keys])
    columns = [Codes("", np.ascontiguousarray(both[:, j]), pairs[j][0].n_codes, False) for j in range(both.shape[1])]
    label = group(columns, len(both)).of_records()
    counted = np.zeros(int(label.max()) + 1, np.int64)
    counted[label[len(keys) :]] = theirs.sizes
    return counted[label[: len(keys)]]


def _fewest_persons(groups: Grouping, unit: Codes, is_matching: bool) -> int | None:
    """Return the fewest different persons of a group; persons that nobody can tell apart count as one."""
    if is_matching:  # matching sets overlap, so their persons are not counted by dividing groups
        return None
    divided = groups.divided(unit)
    return int(np.diff(np.searchsorted(divided.starts, groups.starts)).min())


def _weight_of_groups(groups: Grouping, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.add.reduceat(weights[groups.order], groups.starts[:-1])


def _risks_in_population(
    groups: Grouping,
    matched: NDArray[np.int64],
    size_in_population: NDArray[np.int64] | None,
    weights: NDArray[np.float64] | None,
    missing: str,
    is_matching: bool,
) -> dict[str, Risk]:
    """Return the risks of the journalist and the marketer, who look for people in the population."""
    attackers = ("journalist", "marketer")
    if size_in_population is not None:
        # A person of the table is a person of the population, whatever the population table says.
        risk, basis = 1.0 / np.maximum(size_in_population, matched), "population"
    elif weights is not None and not is_matching:
        risk, basis = expected_inverse(groups.sizes, _weight_of_groups(groups, weights)), "weights"
    else:
        reason = "a population is needed, and none was given: pass population= (a table of the people) or weights="
        if weights is not None:
            reason = "weights are summed over separate groups, and with missing='wildcard' groups overlap"
        return {name: unknown_risk(name, missing=missing, reason=reason) for name in attackers}
    return {name: risk_of(name, risk, groups.sizes, basis=basis, missing=missing) for name in attackers}


def _uniqueness(
    groups: Grouping,
    matched: NDArray[np.int64],
    population: Any,
    people: Table | None,
    size_in_population: NDArray[np.int64] | None,
    weights: NDArray[np.float64] | None,
    missing: str,
    is_matching: bool,
) -> Uniqueness:
    """Count who is alone in the table, and count or estimate who is alone in the population."""
    sizes = groups.sizes
    n_records = int(sizes.sum())
    population_size, basis = None, None
    if people is not None:
        population_size, basis = people.n_records, "table"
    elif population is not None:
        population_size, basis = int(population), "number"
    elif weights is not None:
        population_size, basis = max(n_records, round(float(weights.sum()))), "weights"
    reason = None
    if is_matching:
        reason = "estimators need separate groups, and with missing='wildcard' groups overlap"
    elif population_size is None:
        reason = "the number of people in the population is needed: pass population= (a number or a table) or weights="
    elif population_size < n_records:
        reason = "the population table has fewer records than the table, so the table was not drawn from it"
    estimates = estimates_from_sizes(sizes, population_size, missing=missing, reason=reason)
    if weights is not None:
        summed = _weight_of_groups(groups, weights)
        estimates.append(estimate_from_weights(sizes, summed, missing=missing, reason=reason if is_matching else None))
    n_unique = int(sizes[matched == 1].sum())
    in_population = None if size_in_population is None else np.maximum(size_in_population, matched)
    return Uniqueness(
        n_unique=n_unique,
        share=n_unique / n_records,
        population_size=population_size,
        population_basis=basis,
        n_unique_in_population=None if in_population is None else int(sizes[in_population == 1].sum()),
        n_not_in_population=None if size_in_population is None else int(sizes[size_in_population < matched].sum()),
        estimates=tuple(estimates),
        missing=missing,
    )
