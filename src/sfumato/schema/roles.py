# SPDX-License-Identifier: Apache-2.0
"""The schema: the role of every column, and the checks that build it."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sfumato.arguments import Names as Names
from sfumato.columns import Column, Kind
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table
from sfumato.schema.judging import judge_naming
from sfumato.schema.limits import Limit, checked_limit
from sfumato.schema.role_checks import (
    check_naming,
    check_pass_through,
    listed,
    warn_of_constants,
    warn_of_similar_names,
)

Role = Literal["identifier", "quasi_identifier", "sensitive", "target", "unit", "other"]

_PARAMETER_OF_ROLE: dict[Role, str] = {
    "identifier": "identifiers",
    "quasi_identifier": "quasi_identifiers",
    "sensitive": "sensitive",
    "target": "target",
    "unit": "unit",
}


@dataclass(frozen=True)
class Schema:
    """The columns of a table and their roles; made by :func:`build_schema`.

    Parameters
    ----------
    roles : dict of str to str
        The role of every column, in the order of the table: ``"identifier"`` (dropped), ``"quasi_identifier"``
        (rewritten), ``"sensitive"``, ``"target"`` and ``"other"`` (passed through), ``"unit"`` (the person a record
        belongs to; counted, then dropped).
    kinds : dict of str to str
        The kind of every checked column: all but identifiers, targets and columns in ``keep``.
    limits : dict of str to int, float or timedelta
        The finest width, prefix or time span to release, per quasi-identifier.
    keep : tuple of str
        Columns that pass through although they are near unique, or although they are the unit.
    categorical_features : tuple of str
        Numeric categories.
    """

    roles: dict[str, Role]
    kinds: dict[str, Kind]
    limits: dict[str, Limit] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    categorical_features: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in the order of the table."""
        return tuple(self.roles)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """The columns that are rewritten, in the order of the table."""
        return self.with_role("quasi_identifier")

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that are dropped because they name a person."""
        return self.with_role("identifier")

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns whose values must not be learned about a person."""
        return self.with_role("sensitive")

    @property
    def target(self) -> tuple[str, ...]:
        """The columns a model is to predict."""
        return self.with_role("target")

    @property
    def unit(self) -> str | None:
        """The column that says to which person a record belongs."""
        return next(iter(self.with_role("unit")), None)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that are not released: identifiers, and the unit unless it is kept."""
        return tuple(
            name
            for name, role in self.roles.items()
            if role == "identifier" or (role == "unit" and name not in self.keep)
        )

    @property
    def released(self) -> tuple[str, ...]:
        """The columns that are released, rewritten or not, in the order of the table."""
        dropped = set(self.dropped)
        return tuple(name for name in self.roles if name not in dropped)

    def with_role(self, role: Role) -> tuple[str, ...]:
        """Return the columns of one role, in the order of the table."""
        return tuple(name for name, found in self.roles.items() if found == role)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values that JSON can hold; time spans become numbers of days."""
        return {
            "roles": dict(self.roles),
            "kinds": dict(self.kinds),
            "limits": {
                name: limit / datetime.timedelta(days=1) if isinstance(limit, datetime.timedelta) else limit
                for name, limit in self.limits.items()
            },
            "keep": list(self.keep),
            "categorical_features": list(self.categorical_features),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Schema:
        """Return the schema that :meth:`to_dict` wrote."""
        return cls(
            dict(document["roles"]),
            dict(document["kinds"]),
            dict(document["limits"]),
            tuple(document["keep"]),
            tuple(document["categorical_features"]),
        )

    def require(self, table: Table) -> None:
        """Check that a later table has every quasi-identifier, of the same kind.

        Raises
        ------
        InputError
            If a quasi-identifier is absent, or of another kind.
        """
        absent = [name for name in self.quasi_identifiers if name not in table.names]
        if absent:
            raise InputError(
                f"the table has no column {listed(absent)}: expected the quasi-identifiers the schema was built "
                "with. Hand in a table with the same columns."
            )
        for name in self.quasi_identifiers:
            found = table.head(name)
            is_unknown = found.missing is not None and bool(found.missing.all())
            if found.kind != self.kinds[name] and not is_unknown:
                raise InputError(
                    f"column {name!r} is a {found.kind} and was a {self.kinds[name]} when the schema was built: "
                    "expected the same kind. Convert the column."
                )

    def check_passing(self, table: Table) -> None:
        """Check that nothing points at persons by itself in the columns of a later table that pass through.

        Raises
        ------
        InputError
            If a column without another role, and not in ``keep``, is near unique in this table.
        """
        for name in self.with_role("other"):
            if name not in self.keep:
                check_pass_through(table, name)


def build_schema(
    table: Table,
    *,
    quasi_identifiers: Names | None = None,
    identifiers: Names | None = None,
    sensitive: Names | None = None,
    target: Names | None = None,
    unit: str | int | None = None,
    keep: Names | None = None,
    categorical_features: Names | None = None,
    limits: Mapping[str | int, Limit] | None = None,
    coarsened: Collection[str] = (),
    is_whole: bool = True,
) -> Schema:
    """Decide what each column is for, and refuse what cannot be meant.

    Parameters
    ----------
    table : Table
        The table.
    quasi_identifiers : names or positions of columns, default=None
        Columns that together could point at a person; None means all columns that have no other role and are not in
        ``keep``, and none of them may name people.
    identifiers : names or positions of columns, default=None
        Direct identifiers; dropped.
    sensitive : names or positions of columns, default=None
        Columns whose values must not be learned about a person.
    target : names or positions of columns, default=None
        Columns a model is to predict.
    unit : name or position of a column, default=None
        The person each record belongs to, where a person may have several.
    keep : names or positions of columns, default=None
        Columns to pass through although they are near unique, or although they are the unit.
    categorical_features : names or positions of columns, default=None
        Columns of numbers that are codes; None means those the table was read with.
    limits : dict of name or position to int, float or timedelta, default=None
        See :func:`coarsen`.
    coarsened : collection of str, default=()
        Quasi-identifiers that were decided on, since they have a hierarchy or a fitted partition rewrites them: as
        those with a limit, they may name people.
    is_whole : bool, default=True
        False for the beginning of a longer table: whether columns are near unique, name people or are constant cannot
        be told from it.

    Returns
    -------
    Schema
        The schema.

    Raises
    ------
    ParameterError
        If a column is unknown, is named twice or has two roles, or if a limit cannot apply.
    InputError
        If a column would be released unchanged although it names people or most of its values are unique, or would
        become a quasi-identifier by default although it names people: a name, an email address, a household number,
        text that is nearly unique (see `judge_column`). Missing values do not count. In tables under 10 records (50 for
        quasi-identifiers) only a column's name and the form of its values count.

    Warns
    -----
    PrivacyWarning
        If a column that names people was named as a quasi-identifier.
    ColumnWarning
        If quasi-identifiers have one value only, or none; if names of columns look the same.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.frames import read_table
    >>> table = read_table(pa.table({"name": ["Ada", "Bo"], "age": [31, 34], "ill": [True, False]}))
    >>> schema = build_schema(table, identifiers=["name"], sensitive="ill")
    >>> schema.quasi_identifiers, schema.released
    (('age',), ('age', 'ill'))
    """
    chosen: dict[Role, tuple[str, ...]] = {
        "identifier": _resolved(table, identifiers, "identifiers"),
        "sensitive": _resolved(table, sensitive, "sensitive"),
        "target": _resolved(table, target, "target"),
        "unit": _resolved(table, unit, "unit"),
    }
    if len(chosen["unit"]) > 1:
        raise ParameterError(
            f"{named('unit')} names {len(chosen['unit'])} columns: expected one. Join them into one column that names "
            "the person."
        )
    kept = _resolved(table, keep, "keep")
    if quasi_identifiers is None:
        taken = {name for names in chosen.values() for name in names} | set(kept)
        chosen["quasi_identifier"] = tuple(name for name in table.names if name not in taken)
    else:
        chosen["quasi_identifier"] = _resolved(table, quasi_identifiers, "quasi_identifiers")
    roles = _roles(table, chosen)
    _check_keep(kept, roles)
    if not chosen["quasi_identifier"]:
        raise ParameterError(
            f"no quasi-identifier is left among {len(table.names)} columns: expected at least one. Name the columns "
            f"that could point at a person in {named('quasi_identifiers')}."
        )
    categorical = (
        table.categorical
        if categorical_features is None
        else _resolved(table, categorical_features, "categorical_features")
    )
    table = table.with_categorical(categorical)
    heads = {
        name: table.head(name, for_counting=role == "sensitive")
        for name, role in roles.items()
        if role in ("quasi_identifier", "sensitive")
    }
    kinds: dict[str, Kind] = {name: column.kind for name, column in heads.items()}
    checked_limits = _check_limits(table, limits or {}, roles, heads)
    for name, role in roles.items():
        if role == "unit":
            kinds[name] = table.kind(name)
        elif role == "other" and name not in kept:
            kinds[name] = check_pass_through(table, name) if is_whole else table.kind(name)
    warn_of_similar_names(table.names)
    if is_whole:
        decided = {*checked_limits, *coarsened}
        unsettled = [name for name in chosen["quasi_identifier"] if name not in decided]
        for found in judge_naming(table, unsettled):
            check_naming(found, is_chosen=quasi_identifiers is not None)
        warn_of_constants(table, chosen["quasi_identifier"], heads)
    kinds = {name: kinds[name] for name in roles if name in kinds}
    return Schema(roles, kinds, checked_limits, kept, categorical)


def _resolved(table: Table, names: Names | None, parameter: str) -> tuple[str, ...]:
    return () if names is None else table.resolve(names, parameter)


def _roles(table: Table, chosen: Mapping[Role, tuple[str, ...]]) -> dict[str, Role]:
    found: dict[str, Role] = {}
    for role, names in chosen.items():
        for name in names:
            if name in found:
                first, second = named(_PARAMETER_OF_ROLE[found[name]]), named(_PARAMETER_OF_ROLE[role])
                raise ParameterError(
                    f"the column {name!r} is named in {first} and in {second}: expected one role per column. Remove "
                    "it from one of them."
                )
            found[name] = role
    return {name: found.get(name, "other") for name in table.names}


def _check_keep(kept: tuple[str, ...], roles: Mapping[str, Role]) -> None:
    for name in kept:
        if roles[name] in ("identifier", "quasi_identifier"):
            parameter = _PARAMETER_OF_ROLE[roles[name]]
            raise ParameterError(
                f"the column {name!r} is named in {named(parameter)} and in {named('keep')}: expected one of them, "
                f"since {named('keep')} lets a column pass through untouched. Remove it from one of them."
            )


def _check_limits(
    table: Table, limits: Mapping[str | int, Limit], roles: Mapping[str, Role], heads: Mapping[str, Column]
) -> dict[str, Limit]:
    if not isinstance(limits, Mapping):
        raise ParameterError(
            f"{named('limits')} is of the type {type(limits).__name__}: expected a dict of columns and limits. "
            f"Write for example {named('limits', {'age': 5})}."
        )
    names = table.resolve(tuple(limits), "limits")
    plain = (limit.item() if isinstance(limit, np.generic) else limit for limit in limits.values())
    checked = dict(zip(names, plain, strict=True))
    for name, limit in checked.items():
        if roles[name] != "quasi_identifier":
            raise ParameterError(
                f"{named('limits')} names the column {name!r}, which has the role {roles[name]}: expected a "
                f"quasi-identifier, since other columns are not rewritten. Add it to {named('quasi_identifiers')}, or "
                "remove its limit."
            )
        checked_limit(heads[name], limit)
    return checked
