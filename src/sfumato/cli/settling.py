# SPDX-License-Identifier: Apache-2.0
"""Settle the roles of columns that the command line says nothing about, and say what was decided and why.

The library refuses a column that names people and that nobody gave a role; a command drops it, in words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from sfumato.cli.console import Console
    from sfumato.cli.request import Request
    from sfumato.schema import Judgement


def without_names(
    console: Console, table: Any, names: Sequence[str], *, done: str, otherwise: str, decided: Collection[str] = ()
) -> list[str]:
    """Return the columns that do not name people, and warn of each of the others.

    Parameters
    ----------
    console : Console
    table : pyarrow.Table
        All records, or the first of many.
    names : sequence of str
        Columns that nobody gave a role.
    done : str
        What is done with a column that names people, such as ``"dropped"``.
    otherwise : str
        How to say otherwise, such as ``"To release it unchanged, name it in --keep."``.
    decided : collection of str
        Columns that somebody thought of, though they were given no role.
    """
    from sfumato.errors import ParameterError
    from sfumato.frames import read_table
    from sfumato.schema import judge_naming

    unsettled = [name for name in names if name not in decided]
    found = judge_naming(read_table(table.select(unsettled)), unsettled) if unsettled else ()
    dropped = []
    for one in found:
        if one.names_people is not None:
            dropped.append(one.name)
            console.note(f"column {one.name!r} is {done}: {one.names_people}. {otherwise}", is_warning=True)
    left = [name for name in names if name not in dropped]
    if names and not left:
        raise ParameterError("every column without a role seems to name people: expected some that describe them.")
    return left


def warn_of_names(console: Console, table: Any, released: Sequence[str]) -> None:
    """Warn of columns of a release that name people; they are counted like all others, since they were released."""
    from sfumato.frames import read_table
    from sfumato.schema import judge_naming

    for one in judge_naming(read_table(table.select(list(released))), released):
        if one.names_people is not None:
            console.note(
                f"the release has the column {one.name!r}, but {one.names_people}. Drop it from the release.",
                is_warning=True,
            )


def settle(console: Console, request: Request, table: Any, *, is_chosen: bool, says_codes: bool) -> Request:
    """Drop columns that name people where nobody chose them, and read codes as categories where nobody named any.

    Parameters
    ----------
    console : Console
    request : Request
    table : pyarrow.Table
        All records, or the first of many.
    is_chosen : bool
        Whether the quasi-identifiers were named.
    says_codes : bool
        Whether the user said which numbers are codes.
    """
    if not is_chosen:
        left = without_names(
            console, table, request.quasi_identifiers, done="dropped",
            otherwise="To release it unchanged, name it in --keep; to rewrite it, name all columns to rewrite in "
            "--quasi-identifiers.",
            decided={*request.limits, *request.hierarchies},
        )  # fmt: skip
        dropped = [name for name in request.quasi_identifiers if name not in left]
        request = replace(request, quasi_identifiers=left, dropped=[*request.dropped, *dropped])
    known = {*request.categorical, *request.limits, *request.hierarchies}
    found = codes_of(table, [name for name in request.quasi_identifiers if name not in known], request.target)
    sure = [one for one in found if one.is_surely_code and not says_codes]
    for one in sure:
        console.note(
            f"column {one.name!r} looks like a code, so it is treated as categories: {one.code}. If it is an amount, "
            "name the codes yourself with --categorical."
        )
    for one in found:
        if one not in sure:
            console.note(
                f"column {one.name!r} may be a code: {one.code}. If so, pass --categorical {one.name}; numbers are "
                "averaged and cut into ranges."
            )
    return replace(request, categorical=[*request.categorical, *(one.name for one in sure)])


def codes_of(table: Any, names: Sequence[str], target: str | None) -> list[Judgement]:
    """Return the columns of numbers that are codes, or may be."""
    import pyarrow as pa

    from sfumato.frames import read_table
    from sfumato.schema import judge_column

    numbers = [
        name
        for name in names
        if pa.types.is_integer(table.schema.field(name).type) or pa.types.is_floating(table.schema.field(name).type)
    ]
    if not numbers:
        return []
    read = read_table(table.select(numbers))
    predicted = target_numbers(table, target)
    found = [judge_column(read.column(name, for_counting=True), target=predicted) for name in numbers]
    return [one for one in found if one.code is not None]


def target_numbers(table: Any, target: str | None) -> npt.NDArray[Any] | None:
    """Return the target as numbers whose mean can be compared: itself, or whether it is the most frequent class."""
    from sfumato.frames import read_table
    from sfumato.schema import as_numbers

    return None if target is None else as_numbers(read_table(table.select([target])).column(target, for_counting=True))
