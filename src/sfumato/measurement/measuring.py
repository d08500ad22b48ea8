# SPDX-License-Identifier: Apache-2.0
"""``measure``: check what was asked, have the table counted wherever it is, and put the measurement together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from sfumato.arguments import as_list, is_integer
from sfumato.backends.base import Need
from sfumato.backends.measurable_table import GroupRequest, MeasurableTable, Population
from sfumato.backends.memory.groups import MemoryTable
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.measurement.criterion_values import measure_criteria
from sfumato.measurement.measurement import Measurement, MissingPolicy
from sfumato.measurement.ranking import no_ranking, rank
from sfumato.measurement.tally import GroupTally, WeightedSums, population_size, work_on_weights

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
    return measure_table(
        MemoryTable(read_table(frame, categorical=as_list(categorical_features))),
        quasi_identifiers,
        sensitive,
        population=population,
        weights=weights,
        unit=unit,
        missing=missing,
        hierarchies=hierarchies,
    )


def measure_table(
    table: MeasurableTable,
    quasi_identifiers: Names | None,
    sensitive: Names | None,
    *,
    population: Any,
    weights: Any,
    unit: str | int | None,
    missing: MissingPolicy,
    hierarchies: Mapping[str, Any] | None,
    with_ranking: bool = True,
) -> Measurement:
    """Measure a table, wherever it is; parameters as of :func:`sfumato.measure`."""
    _check_policy(missing)
    _check_weights(table, weights)
    roles = _resolve_roles(table.example, quasi_identifiers, sensitive, weights, unit)
    _check_hierarchies(table.example, hierarchies, roles)
    request = GroupRequest(
        columns=tuple(name for name in table.example.names if name != roles.weights),
        keys=roles.quasi_identifiers,
        sensitive=roles.sensitive,
        unit=roles.unit,
        weights=weights if roles.weights is None else roles.weights,
        work_on_weights=work_on_weights,
        population=_population_table(table, population, roles.quasi_identifiers),
        missing=missing,
    )
    with table.counting(request) as counting:
        _check_number_of_people(population, counting.n_records)
        counts = counting.group_counts()
        weighted = WeightedSums.of(counts.of_weights) if weights is not None else None
        tally = GroupTally(counts, weighted, missing)
        return Measurement(
            n_records=counting.n_records,
            quasi_identifiers=roles.quasi_identifiers,
            sensitive=roles.sensitive,
            missing=missing,
            n_with_missing=counts.n_with_missing,
            groups=tally.described(),
            prosecutor=tally.prosecutor(),
            **tally.risks_in_population(),
            uniqueness=tally.uniqueness(*population_size(counting.n_records, population, counts.n_people, weighted)),
            criteria=measure_criteria(counts, hierarchies=hierarchies or {}, missing=missing),
            ranking=rank(counting.unique_sets(), request.columns, request.keys, counting.n_records)
            if with_ranking
            else no_ranking(request.columns),
        )


# -- what was given --------------------------------------------------------------------------------------------


def _check_policy(missing: str) -> None:
    """Raise ParameterError for an unknown meaning of missing values."""
    if missing not in get_args(MissingPolicy):
        raise ParameterError(
            f"{named('missing', missing)}: expected 'value' (a missing value is a value of its own) or 'wildcard' (a "
            "missing quasi-identifier matches anything)."
        )


def _is_column(given: object) -> bool:
    return isinstance(given, str | int | np.integer)


def _check_weights(table: MeasurableTable, weights: Any) -> None:
    """Raise ParameterError for weights by position where records have no order."""
    if weights is not None and not _is_column(weights) and Need.WEIGHTS_BY_POSITION in table.cannot:
        raise ParameterError(
            f"{named('weights')} is of the type {type(weights).__name__}: expected the name of the column that holds "
            f"them. {table.cannot[Need.WEIGHTS_BY_POSITION]}"
        )


def _check_hierarchies(table: Table, hierarchies: Mapping[str, Any] | None, roles: Roles) -> None:
    """Raise ParameterError for hierarchies of columns that are not sensitive."""
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
    unit: str | None
    weights: str | None


def _resolve_roles(
    table: Table, quasi_identifiers: Names | None, sensitive: Names | None, weights: Any, unit: Any
) -> Roles:
    """Look up the columns; raise ParameterError unless each has one role."""
    sensitive_names = table.resolve(as_list(sensitive), "sensitive")
    unit_name = table.resolve(as_list(unit), "unit")
    weight_name = table.resolve([weights], "weights") if _is_column(weights) else ()
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
    return Roles(chosen, sensitive_names, next(iter(unit_name), None), next(iter(weight_name), None))


def _population_table(table: MeasurableTable, population: Any, keys: Sequence[str]) -> Population | None:
    """Return the table of a population; None where there is only a number of people, or nothing."""
    if population is None or is_integer(population):
        return None
    people = table.population(population, keys)
    own, theirs = table.example, people.example
    if not theirs.has_named_columns and len(theirs.names) != len(own.names):
        raise InputError(
            f"the population has {len(theirs.names)} columns without names and the table has {len(own.names)}: "
            "expected the same columns. Give a frame with names."
        )
    theirs.resolve(keys, "quasi_identifiers", where="in the population")
    return people


def _check_number_of_people(population: Any, n_records: int) -> None:
    if is_integer(population) and population < n_records:
        raise ParameterError(
            f"population={population} with {n_records} records: expected at least as many people as records. Give the "
            "number of people that the table was drawn from."
        )
