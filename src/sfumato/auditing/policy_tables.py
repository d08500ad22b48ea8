# SPDX-License-Identifier: Apache-2.0
"""Read the tables that a policy names, as it says that they are to be read; nothing here loads more than that takes."""

from __future__ import annotations

from typing import Any

from sfumato.errors import ParameterError
from sfumato.files.table_file import FileTable, Location, ReadingOptions, read_file, table_in_memory
from sfumato.policy import Policy
from sfumato.progress import Reporter


def read_source(reporter: Reporter, policy: Policy, table: Any = None) -> FileTable:
    """Return a table in memory, or read the file that a policy names."""
    source = _read_named(reporter, policy) if table is None else table_in_memory(table)
    for sentence in source.notes:
        reporter.note(sentence)
    return source


def _read_named(reporter: Reporter, policy: Policy) -> FileTable:
    file = policy.source()
    if file is None:
        raise ParameterError(
            f"{policy.where('data', 'file')}: not given, and no table either. Expected one of them: add the file to "
            "the policy, or pass table= to run."
        )
    return read_policy_file(reporter, policy, file)


def read_policy_file(reporter: Reporter, policy: Policy, file: Location) -> FileTable:
    """Read a file by what a policy says of files."""
    said = policy.values["data"]
    options = ReadingOptions(
        encoding=said["encoding"],
        separator=said["separator"],
        decimal=said["decimal"],
        header=None if said["header"] is None else said["header"] == "yes",
        types=_types(policy),
        missing=said["missing"],
    )
    with reporter.step(f"reading {file.name}"):
        return read_file(file, options, keep_types=False)  # those of a release are read again


def _types(policy: Policy) -> dict[str, Any]:
    from sfumato.files.csv_columns import TYPE_NAMES, parse_type

    types = {}
    for name, kind in policy.get("data", "types").items():
        try:
            types[name] = parse_type(name, kind)
        except ParameterError:
            raise ParameterError(
                f"{policy.where('data', 'types')}: {name} = {kind!r}, expected one of {', '.join(TYPE_NAMES)}, a date "
                "perhaps with its format, such as 'date:%d.%m.%Y'. Correct the type."
            ) from None
    return types
