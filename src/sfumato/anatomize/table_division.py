# SPDX-License-Identifier: Apache-2.0
"""Divide a table into an identifying and sensitive ones, wherever it lies: written once, for every backend.

What the columns are for is settled here, the draw is made here, and here stands what may be suppressed. A backend deals
the records to groups and writes the tables, which are recounted before they are published.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from sfumato.anatomize.bucketize import Assignment, Codes, assign_groups
from sfumato.anatomize.dependence import apart, share_told, warn_of
from sfumato.anatomize.suppression import CountKinds, ValueRanks, plan_suppression
from sfumato.arguments import check_choice, check_integer, check_share
from sfumato.backends.base import AnatomyBackend, Division, Draws, KeptKinds, SensitiveTable
from sfumato.errors import GuaranteeError, InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.schema import Judgement

if TYPE_CHECKING:
    from sfumato.anatomize.anatomizer import Anatomizer


def anatomize_table(anatomizer: Anatomizer, table: AnatomyBackend) -> Any:
    """Divide a table, and fit the anatomizer.

    Parameters
    ----------
    anatomizer : Anatomizer
        Unfitted; fitted afterwards. It stays as it was where an error is raised.
    table : AnatomyBackend

    Returns
    -------
    WrittenAnatomy
        As the backend has it; recounted.

    Raises
    ------
    GuaranteeError
        When l is too large for the values and `suppression_limit`, or does not hold on the result.
    """
    _check_parameters(anatomizer)
    example = table.example()
    head = read_table(example, categorical=anatomizer.categorical_features or ())
    division = _planned(anatomizer, table, head)
    with table.divided(division) as written:
        n_groups = written.recount()
        validate_data(anatomizer, example, skip_check_array=True)
        anatomizer.n_groups_, anatomizer.n_suppressed_ = n_groups, written.n_suppressed
        if written.group_sizes is not None:
            anatomizer.group_sizes_ = written.group_sizes
        elif hasattr(anatomizer, "group_sizes_"):  # of an earlier table
            del anatomizer.group_sizes_
    return written


# -- parameters --------------------------------------------------------------------------------------------------


def _check_parameters(anatomizer: Anatomizer) -> None:
    check_share("suppression_limit", anatomizer.suppression_limit, hint="0.01 leaves out one record in a hundred.")
    check_choice("assignment", anatomizer.assignment, ("largest", "random"))
    if not isinstance(anatomizer.group, str) or not anatomizer.group:
        raise ParameterError(f"{named('group', anatomizer.group)}: expected the name of a column.")


def drawn_seed(random_state: Any) -> list[int]:
    """Draw the numbers that all randomness comes from."""
    if random_state is None:
        # Not numpy's global state, which a caller may have seeded with a guessable number.
        return [secrets.randbelow(2**31 - 1) for _ in range(4)]
    seed: list[int] = check_random_state(random_state).randint(0, 2**31 - 1, size=4).tolist()
    return seed


# -- columns -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for.

    Attributes
    ----------
    released : list of str
        All columns but identifiers, in the order of the source.
    sensitive : list of str
    diversities : dict of str to int
        The l of each sensitive column.
    """

    released: list[str]
    sensitive: list[str]
    diversities: dict[str, int]


def settle_roles(
    settings: Any, head: Table, added: list[str], judge: Callable[[list[str]], Iterable[Judgement]]
) -> Roles:
    """Settle what each column is for; raise for roles that contradict each other and columns that name people.

    Parameters
    ----------
    settings : Anatomizer or Slicer
        With ``l``, ``sensitive``, ``identifiers`` and ``keep``.
    head : Table
    added : list of str
        Names of columns that will be added.
    judge : callable
        From names of columns to judgements whether they name people.
    """
    secret = _sensitive_columns(settings, head)
    diversities = _diversities(settings, head, secret)
    for name in secret:
        head.head(name, for_counting=True)  # raises for a type that cannot be counted
    dropped = _resolved(head, settings.identifiers, "identifiers")
    _check_roles(head, secret, dropped, added)
    kept = _resolved(head, settings.keep, "keep")
    _check_naming(judge([name for name in head.names if name not in {*secret, *dropped, *kept}]))
    released = [name for name in head.names if name not in dropped]
    return Roles(released, secret, diversities)


def _planned(anatomizer: Anatomizer, table: AnatomyBackend, head: Table) -> Division:
    """Settle what each column is for, and draw the seed."""
    sensitive = sensitive_tables(anatomizer, head)
    roles = settle_roles(
        anatomizer, head, [own.group for own in sensitive], lambda names: table.judge_naming(head, names)
    )
    names = tuple(name for own in sensitive for name in own.columns)
    rule = DiverseGroups(
        tuple(roles.diversities[name] for name in names),
        tuple(tuple(map(names.index, own.columns)) for own in sensitive),
        anatomizer.assignment,
        anatomizer.suppression_limit,
        names,
    )
    identifying = [name for name in roles.released if name not in names]
    return Division(head, identifying, sensitive, drawn_seed(anatomizer.random_state), rule)


def sensitive_tables(anatomizer: Anatomizer, head: Table) -> tuple[SensitiveTable, ...]:
    """Return the sensitive tables: one for all columns, or one for each, but for those that are to stay together."""
    secret, joint = _sensitive_columns(anatomizer, head), anatomizer.joint
    if joint is True or (joint is False and len(secret) == 1):
        return (SensitiveTable("sensitive", [name for name in head.names if name in secret], anatomizer.group),)
    together = [] if joint is False else _joint_columns(joint, head, secret)
    single = [[name] for name in secret if not any(name in own for own in together)]
    parts = sorted([*together, *single], key=lambda own: min(map(head.names.index, own)))
    if len(parts) == 1:
        return (SensitiveTable("sensitive", [name for name in head.names if name in parts[0]], anatomizer.group),)
    tables = []
    for number, own in enumerate(parts, start=1):
        columns = [name for name in head.names if name in own]
        tables.append(SensitiveTable(f"sensitive-{number}", columns, "_".join([anatomizer.group, *columns])))
    return tuple(tables)


def _joint_columns(joint: Any, head: Table, secret: list[str]) -> list[list[str]]:
    """Return the columns that share a table, as they are given: lists of at least two sensitive columns each."""
    wanted = (
        f"{named('joint')} is {type(joint).__name__}: expected True, False, or a list of lists of sensitive columns "
        f"that share a table, such as {named('joint', [['illness', 'drug']])}."
    )
    if isinstance(joint, (str, Mapping)) or not isinstance(joint, Sequence):
        raise ParameterError(wanted)
    if any(isinstance(own, str) or not isinstance(own, Sequence) for own in joint):
        raise ParameterError(wanted)
    together = [_resolved(head, own, "joint") for own in joint]
    listed = [name for own in together for name in own]
    strange = [name for name in listed if name not in secret]
    if strange:
        raise ParameterError(
            f"{named('joint')} names {strange[0]!r}: expected sensitive columns only. List it in {named('sensitive')}, "
            f"or remove it from {named('joint')}."
        )
    if len(set(listed)) < len(listed):
        raise ParameterError(f"{named('joint')} names a column twice: expected each in one table. Remove one of them.")
    return [own for own in together if len(own) > 1]


def _diversities(settings: Any, head: Table, secret: list[str]) -> dict[str, int]:
    """Return the l of each sensitive column."""
    if not isinstance(settings.l, Mapping):
        check_integer("l", settings.l, 2, hint="2 to 5 is common.")
        return dict.fromkeys(secret, int(settings.l))
    found = {head.resolve([name], "l")[0]: l for name, l in settings.l.items()}  # noqa: E741
    missing = [name for name in secret if name not in found]
    strange = [name for name in found if name not in secret]
    if missing or strange:
        name, what = (missing[0], "has no") if missing else (strange[0], "is not sensitive but has an")
        raise ParameterError(
            f"the column {name!r} {what} entry in {named('l')}: expected one for each column of {named('sensitive')} "
            "and no other. Give a single number to use it for all."
        )
    for name, l in found.items():  # noqa: E741
        check_integer("l", l, 2, hint=f"That of {name!r}; 2 to 5 is common.")
    return {name: int(found[name]) for name in secret}


def _resolved(head: Table, given: Any, parameter: str) -> list[str]:
    return list(head.resolve(given if given is not None else (), parameter))


def _sensitive_columns(settings: Any, head: Table) -> list[str]:
    if settings.sensitive is None:
        raise ParameterError(
            f"{named('sensitive')} is not given: expected the columns whose values must not be told about a person. "
            "Name at least one."
        )
    names = _resolved(head, settings.sensitive, "sensitive")
    if not names:
        raise ParameterError(f"{named('sensitive')} names no column: expected at least one.")
    return names


def _check_roles(head: Table, sensitive: list[str], dropped: list[str], groups: list[str]) -> None:
    both = [name for name in sensitive if name in dropped]
    if both:
        raise ParameterError(
            f"the column {both[0]!r} is named in {named('sensitive')} and in {named('identifiers')}: expected one "
            "role per column. Remove it from one of them."
        )
    if len(sensitive) + len(dropped) == len(head.names):
        raise ParameterError(
            f"no identifying column is left of the {len(head.names)} feature(s): expected at least one beside "
            f"{named('sensitive')} and {named('identifiers')}."
        )
    taken = [name for name in groups if name in head.names]
    if taken or len(set(groups)) < len(groups):
        name = taken[0] if taken else max(groups, key=groups.count)
        raise InputError(
            f"the table has a column {name!r} already: expected a name for the group that is free. "
            f"Choose another with {named('group')}."
        )


def _check_naming(judged: Iterable[Judgement]) -> None:
    """Raise InputError if a column without a role names people: its exact values would be shared."""
    for found in judged:
        if found.names_people is not None:
            raise InputError(
                f"column {found.name!r} would be shared with its exact values, but {found.names_people}: expected "
                f"columns that describe people and do not name them. List it in {named('identifiers')} to drop it, or "
                f"in {named('keep')} to share it."
            )


# -- groups ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DiverseGroups:
    """The rules of `bucketize` and `suppression` with their parameters, as backends ask them.

    Attributes
    ----------
    ls : tuple of int
        The l of each sensitive column.
    tables : tuple of tuple of int
        The columns of each sensitive table, by their place among all.
    assignment : {"largest", "random"}
    suppression_limit : float
    names : tuple of str
        The sensitive columns.
    """

    ls: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    assignment: Assignment
    suppression_limit: float
    names: tuple[str, ...]

    def group(self, codes: Codes, draws: Draws) -> NDArray[np.int64]:
        """Return the groups of every record, a column per sensitive table, -1 where it is suppressed."""
        n_records = len(codes)
        self.check_enough(n_records)
        kept = self.kept(codes, draws.suppression)
        group = np.full((n_records, len(self.tables)), -1, np.int64)
        codes = codes[kept]
        self.warn_of_dependence({(one, two): share_told(codes[:, one], codes[:, two]) for one, two in self.apart})
        for table, (columns, own) in enumerate(zip(self.tables, draws.groups, strict=True)):
            group[kept, table] = self.assign(np.ascontiguousarray(codes[:, columns]), own, table)
        return group

    @property
    def apart(self) -> list[tuple[int, int]]:
        """All pairs of columns, in both orders, that are in tables of their own."""
        return apart(self.tables)

    def warn_of_dependence(self, shares: Mapping[tuple[int, int], float]) -> None:
        """Warn of columns in tables of their own of which one nearly determines the other."""
        warn_of(shares, self.names)

    def kept(self, codes: Codes, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the positions of the records that stay."""
        ranks = ValueRanks(codes)
        plan = self.suppress(len(codes), ranks.counts, ranks.count_kinds)
        return np.arange(len(codes)) if plan is None else ranks.choose(plan, random)

    def assign(self, codes: Codes, random: np.random.Generator, table: int) -> NDArray[np.int64]:
        """Return the group of every record in one sensitive table, where no value has more than 1/l of the records."""
        return assign_groups(codes, [self.ls[place] for place in self.tables[table]], random, self.assignment)

    def check_enough(self, n_records: int) -> None:
        """Raise InputError if a table has fewer records than one group."""
        if n_records < max(self.ls):
            raise InputError(
                f"the table has {n_records} sample(s): expected at least {named('l', max(self.ls))}, since every group "
                "has that many records."
            )

    def suppress(
        self, n_records: int, counts: Sequence[NDArray[np.int64]], count_kinds: CountKinds
    ) -> KeptKinds | None:
        """Return which records stay, None for all.

        Raises
        ------
        GuaranteeError
            If more records must be suppressed than the limit allows, or all. It says what would do.
        """
        plan = plan_suppression(n_records, counts, self.ls, count_kinds)
        if plan is not None:
            self._check_suppressed(n_records - int(plan.n_kept.sum()), n_records, [int(own[0]) for own in counts])
        return plan

    def _check_suppressed(self, n_suppressed: int, n_records: int, most_frequent: Sequence[int]) -> None:
        largest_l = min(n_records // n for n in most_frequent)
        limit, is_same = self.suppression_limit, len(set(self.ls)) == 1
        l, most = (self.ls[0] if is_same else dict(zip(self.names, self.ls, strict=True))), max(self.ls)  # noqa: E741
        given = f"{named('l', l)} for {', '.join(map(repr, self.names))} with {n_records} records"
        lower = f"the largest l that works is {largest_l}" + ("" if is_same else " for all")
        if n_suppressed == n_records:
            lower = lower if largest_l >= 2 else "no l works without leaving records out"
            raise GuaranteeError(
                f"{given}: expected at least {most} distinct values, and {lower}. Lower l; suppressing records does "
                f"not help with {most}."
            )
        if n_suppressed / n_records <= limit:
            return
        lower = lower if largest_l >= 2 else "a value has more than half, so no l works"
        how_many = f"{n_suppressed}" if n_suppressed >= most else f"fewer than {most}"
        advice = "Lower l, or set" if largest_l >= 2 else "Set"
        beyond = [name for name, n, own in zip(self.names, most_frequent, self.ls, strict=True) if n * own > n_records]
        of_l, least = f"1/{most if is_same else 'l'}", _rounded_up(n_suppressed, n_records)
        where = f" (there is one in {', '.join(map(repr, beyond))})" if 0 < len(beyond) < len(self.names) else ""
        raise GuaranteeError(
            f"{given}: expected no value in more than {of_l} of them{where}, and {lower}. "
            f"{advice} {named('suppression_limit')} to {least} or more (it is {limit:g}), which leaves out {how_many} "
            "records."
        )


def _rounded_up(part: int, whole: int) -> str:
    return f"{-(-part * 10_000 // whole) / 10_000:g}"  # in whole numbers, so that 0.14 is not rounded to 0.1401
