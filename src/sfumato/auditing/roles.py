# SPDX-License-Identifier: Apache-2.0
"""Find the roles of columns that nobody gave one, and say what was decided and why.

The library refuses a column that names people and that nobody gave a role; a command drops it, in words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from sfumato.progress import Reporter
    from sfumato.schema import Judgement


def without_names(
    reporter: Reporter,
    table: Any,
    names: Sequence[str],
    *,
    done: str,
    otherwise: str,
    decided: Collection[str] = (),
    of_persons: str = "",
) -> list[str]:
    """Return the columns that do not name people, and warn of each of the others.

    Parameters
    ----------
    reporter : Reporter
    table : pyarrow.Table
        All records, or the first of many.
    names : sequence of str
        Columns that nobody gave a role.
    done : str
        What is done with a column that names people, such as ``"dropped"``.
    otherwise : str
        How to say otherwise, such as ``f"To release it unchanged, name it in {named('keep')}."``.
    decided : collection of str
        Columns that somebody thought of, though they were given no role.
    of_persons : str
        What to say more of a column with several records for a value, who may be one person.
    """
    from sfumato.errors import ParameterError, Sentence
    from sfumato.frames import read_table
    from sfumato.schema import judge_naming

    unsettled = [name for name in names if name not in decided]
    found = judge_naming(read_table(table.select(unsettled)), unsettled) if unsettled else ()
    dropped = []
    for one in found:
        if one.names_people is not None:
            dropped.append(one.name)
            more = of_persons if one.repeats else ""
            said = Sentence(f"column {one.name!r} is {done}: {one.names_people}. {otherwise}{more}")
            reporter.note(said, is_warning=True)
    left = [name for name in names if name not in dropped]
    if names and not left:
        raise ParameterError("every column without a role seems to name people: expected some that describe them.")
    return left


def warn_of_names(reporter: Reporter, table: Any, released: Sequence[str]) -> None:
    """Warn of columns of a release that name people; they are counted like all others, since they were released."""
    from sfumato.frames import read_table
    from sfumato.schema import judge_naming

    for one in judge_naming(read_table(table.select(list(released))), released):
        if one.names_people is not None:
            reporter.note(
                f"the release has the column {one.name!r}, but {one.names_people}. Drop it from the release.",
                is_warning=True,
            )


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
