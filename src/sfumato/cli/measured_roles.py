# SPDX-License-Identifier: Apache-2.0
"""What ``sfumato measure`` takes columns for where nobody gave them a role, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.cli.console import Console

Reasons = dict[tuple[str, str], list[str]]
"""What columns were taken for, and why, to the columns."""

_MOST_LEFT_OUT = 60  # columns, each left out once to see whether the others form groups
_LOOKS_LIKE_GROUPS = 5  # records of the smallest group; by chance a raw table has none such
_ROLES = {
    "--quasi-identifiers": "quasi-identifier",
    "--sensitive": "sensitive",
    "--target": "target",
    "--unit": "person",
    "--weights": "weight",
}


def measured_roles(
    console: Console, table: Any, named: Mapping[str, list[str]], *, is_whole: bool, is_judged: bool
) -> tuple[list[str], Reasons]:
    """Return the quasi-identifiers, and what each column is taken for and why.

    Columns that seem to name people are left out. In a file that looks like a release with groups, the columns that
    were not rewritten are told apart where nobody named any; a verdict is never built on that.

    Parameters
    ----------
    console : Console
    table : pyarrow.Table
        All records, or the first of many.
    named : mapping of str to list of str
        Columns by the option that names them.
    is_whole : bool
        Whether `table` has all records.
    is_judged : bool
        Whether a verdict depends on it.
    """
    from sfumato.auditing.roles import without_names

    reasons: Reasons = {
        (role, f"named with {option}"): named[option] for option, role in _ROLES.items() if named[option]
    }
    if named["--quasi-identifiers"]:
        return named["--quasi-identifiers"], reasons
    taken = {name for option in _ROLES for name in named[option]}
    free = [name for name in table.column_names if name not in taken]
    chosen = without_names(
        console, table, free, done="left out",
        otherwise="To count it, name all columns to count in --quasi-identifiers.",
    )  # fmt: skip
    if left_out := [name for name in free if name not in chosen]:
        reasons["left out", "seems to name people"] = left_out
    aside, smallest = ([], 0) if taken or not is_whole else find_unchanged(table, chosen)
    if aside and not is_judged:
        chosen = [name for name in chosen if name not in aside]
        why = f"auto-detected: without it every group has at least {smallest} records; name it with --target"
        reasons["released unchanged", why] = aside
    elif aside:
        console.note(
            f"without {' and '.join(map(repr, aside))} every group has at least {smallest} records. If that is what a "
            f"model predicts or is sensitive, name it: --target {aside[0]}."
        )
    reasons["quasi-identifier", "has no other role"] = chosen
    return chosen, reasons


def find_unchanged(table: Any, columns: Sequence[str]) -> tuple[list[str], int]:
    """Return the one or two columns of a release that keep its groups from being seen, and the smallest group.

    Nothing, where all groups are larger than 1, or where leaving out two columns does not show such groups.
    """
    from sfumato.verification import count_groups

    def sizes(without: Sequence[str]) -> tuple[int, int]:
        counted = count_groups(table, [name for name in columns if name not in without])
        return int(counted.min()), -len(counted)

    if not 2 < len(columns) <= _MOST_LEFT_OUT or sizes([])[0] > 1:
        return [], 0
    aside: list[str] = []
    while len(aside) < 2:
        others = [name for name in columns if name not in aside]
        aside.append(max(others, key=lambda name: sizes([*aside, name])))
        smallest = sizes(aside)[0]
        if smallest >= _LOOKS_LIKE_GROUPS:
            return aside, smallest
    return [], 0
