# SPDX-License-Identifier: Apache-2.0
"""Divide a table in two, wherever it lies: written once, for every backend.

What the columns are for is settled here, the draw is made here, and here stands what may be suppressed. A backend deals
the records to groups and writes both tables, which are recounted before they are published.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from sfumato.anatomize.bucketize import Assignment, Codes, assign_groups, largest_l, plan_suppression
from sfumato.arguments import check_choice, check_integer, check_share
from sfumato.backends.base import AnatomyBackend, Division
from sfumato.errors import GuaranteeError, InputError, ParameterError, named
from sfumato.frames import Table, read_table

if TYPE_CHECKING:
    from sfumato.anatomize.anatomizer import Anatomizer


def anatomize_table(anatomizer: Anatomizer, table: AnatomyBackend) -> Any:
    """Divide a table in two, and fit the anatomizer.

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
        n_groups = written.recount(division.rule.l)
        validate_data(anatomizer, example, skip_check_array=True)
        anatomizer.n_groups_, anatomizer.n_suppressed_ = n_groups, written.n_suppressed
        if written.group_sizes is not None:
            anatomizer.group_sizes_ = written.group_sizes
        elif hasattr(anatomizer, "group_sizes_"):  # of an earlier table
            del anatomizer.group_sizes_
    return written


# -- parameters --------------------------------------------------------------------------------------------------


def _check_parameters(anatomizer: Anatomizer) -> None:
    check_integer("l", anatomizer.l, 2, hint="2 to 5 is common.")
    check_share("suppression_limit", anatomizer.suppression_limit, hint="0.01 leaves out one record in a hundred.")
    check_choice("assignment", anatomizer.assignment, ("largest", "random"))
    if not isinstance(anatomizer.group, str) or not anatomizer.group:
        raise ParameterError(f"{named('group', anatomizer.group)}: expected the name of a column.")


def _drawn_seed(random_state: Any) -> list[int]:
    """Draw the numbers that all randomness comes from."""
    if random_state is None:
        # Not numpy's global state, which a caller may have seeded with a guessable number.
        return [secrets.randbelow(2**31 - 1) for _ in range(4)]
    seed: list[int] = check_random_state(random_state).randint(0, 2**31 - 1, size=4).tolist()
    return seed


# -- columns -----------------------------------------------------------------------------------------------------


def _planned(anatomizer: Anatomizer, table: AnatomyBackend, head: Table) -> Division:
    """Settle what each column is for, and draw the seed."""
    sensitive = _sensitive_columns(anatomizer, head)
    for name in sensitive:
        head.head(name, for_counting=True)  # raises for a type that cannot be counted
    dropped = _resolved(head, anatomizer.identifiers, "identifiers")
    _check_roles(head, sensitive, dropped, anatomizer.group)
    kept = _resolved(head, anatomizer.keep, "keep")
    _check_naming(table, head, [name for name in head.names if name not in {*sensitive, *dropped, *kept}])
    tables = {
        "identifying": [name for name in head.names if name not in {*sensitive, *dropped}],
        "sensitive": [name for name in head.names if name in sensitive],
    }
    rule = DiverseGroups(int(anatomizer.l), anatomizer.assignment, anatomizer.suppression_limit, tuple(sensitive))
    return Division(head, sensitive, tables, anatomizer.group, _drawn_seed(anatomizer.random_state), rule)


def _resolved(head: Table, given: Any, parameter: str) -> list[str]:
    return list(head.resolve(given if given is not None else (), parameter))


def _sensitive_columns(anatomizer: Anatomizer, head: Table) -> list[str]:
    if anatomizer.sensitive is None:
        raise ParameterError(
            f"{named('sensitive')} is not given: expected the columns whose values must not be told about a person. "
            "Name at least one."
        )
    names = _resolved(head, anatomizer.sensitive, "sensitive")
    if not names:
        raise ParameterError(f"{named('sensitive')} names no column: expected at least one.")
    return names


def _check_roles(head: Table, sensitive: list[str], dropped: list[str], group: str) -> None:
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
    if group in head.names:
        raise InputError(
            f"the table has a column {group!r} already: expected a name for the group that is free. "
            f"Choose another with {named('group')}."
        )


def _check_naming(table: AnatomyBackend, head: Table, names: list[str]) -> None:
    """Raise InputError if a column without a role names people: its exact values would be shared."""
    for found in table.judge_naming(head, names):
        if found.names_people is not None:
            raise InputError(
                f"column {found.name!r} would be shared with its exact values, but {found.names_people}: expected "
                f"columns that describe people and do not name them. List it in {named('identifiers')} to drop it, or "
                f"in {named('keep')} to share it."
            )


# -- groups ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DiverseGroups:
    """The rules of `bucketize` with their parameters, as backends ask them; `names` are the sensitive columns."""

    l: int  # noqa: E741 - the literature's own letter
    assignment: Assignment
    suppression_limit: float
    names: tuple[str, ...]

    def group(self, codes: Codes, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the group of every record, -1 where it is suppressed."""
        n_records = len(codes)
        self.check_enough(n_records)
        best = largest_l(codes)
        if best >= self.l:
            return self.assign(codes, random)
        kept = plan_suppression(codes, self.l, random)
        self.check_suppressed(n_records - len(kept), n_records, best)
        group = np.full(n_records, -1, np.int64)
        group[kept] = self.assign(np.ascontiguousarray(codes[kept]), random)
        return group

    def assign(self, codes: Codes, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the group of every record, where no value has more than 1/l of the records."""
        return assign_groups(codes, self.l, random, self.assignment)

    def check_enough(self, n_records: int) -> None:
        """Raise InputError if a table has fewer records than one group."""
        if n_records < self.l:
            raise InputError(
                f"the table has {n_records} sample(s): expected at least {named('l', self.l)}, since every group has "
                "that many records."
            )

    def check_suppressed(self, n_suppressed: int, n_records: int, largest_l: int) -> None:
        """Raise GuaranteeError if more records must be suppressed than the limit allows, or all; say what would do."""
        l, limit = self.l, self.suppression_limit  # noqa: E741
        given = f"{named('l', l)} for {', '.join(map(repr, self.names))} with {n_records} records"
        lower = f"the largest l that works is {largest_l}"
        if n_suppressed == n_records:
            lower = lower if largest_l >= 2 else "no l works without leaving records out"
            raise GuaranteeError(
                f"{given}: expected at least {l} distinct values, and {lower}. Lower l; suppressing records does not "
                f"help with {l}."
            )
        if n_suppressed / n_records <= limit:
            return
        lower = lower if largest_l >= 2 else "a value has more than half, so no l works"
        how_many = f"{n_suppressed}" if n_suppressed >= l else f"fewer than {l}"
        advice = "Lower l, or set" if largest_l >= 2 else "Set"
        raise GuaranteeError(
            f"{given}: expected no value in more than 1/{l} of them, and {lower}. {advice} "
            f"{named('suppression_limit')} to {_rounded_up(n_suppressed, n_records)} or more (it is {limit:g}), which "
            f"leaves out {how_many} records."
        )


def _rounded_up(part: int, whole: int) -> str:
    return f"{-(-part * 10_000 // whole) / 10_000:g}"  # in whole numbers, so that 0.14 is not rounded to 0.1401
