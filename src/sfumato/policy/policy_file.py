# SPDX-License-Identifier: Apache-2.0
"""Policy files: TOML in, with the line of every setting, and TOML out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import Any

from sfumato.errors import InputError


@dataclass(frozen=True)
class PolicyText:
    """What a policy says, before it is checked.

    Attributes
    ----------
    path : Path or None
        The file; None for a policy made in Python.
    document : dict
        Section to settings.
    lines : dict
        Line of every section and setting, by ``section`` and ``section.setting``, and ``section[0].setting`` for an
        array of tables.
    """

    path: Path | None
    document: dict[str, Any]
    lines: dict[str, int]


def read_text(path: Path) -> PolicyText:
    """Read a policy file, or say why it is none."""
    text = _text_of(path)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise InputError(
            f"{path.name} has brackets that are nested too deeply: expected sections, settings and lists of names."
        ) from None
    except ValueError as error:  # not TOML, or a number with thousands of digits
        raise InputError(
            f"{path.name} is no TOML: {error}. Text stands in quotes, lists in brackets, and each key once."
        ) from None
    return PolicyText(path, document, find_lines(text))


def plain_toml(value: Any) -> Any:
    """Return a value as a TOML file would hold it: lists for tuples and sets, text for paths."""
    if isinstance(value, Mapping):
        return {str(name): plain_toml(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_toml(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain_toml, value))
    return str(value) if isinstance(value, Path) else value


def toml(value: Any) -> str:
    """Write a value as TOML; JSON's strings and lists of strings are TOML's.

    >>> toml({"age": 5}), toml(("a", 'b"c'))
    ('{ "age" = 5 }', '["a", "b\\\\"c"]')
    """
    if isinstance(value, list | tuple):
        written = [toml(one) for one in value]
        short = f"[{', '.join(written)}]"
        return short if len(short) <= 90 else "[\n" + "".join(f"  {one},\n" for one in written) + "]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml(name)} = {toml(one)}' for name, one in value.items())} }}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _text_of(path: Path) -> str:
    """Read the file, or say why that cannot be; a mark of byte order in front, as some editors write it, is no text."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        why = "" if text.strip() else "is empty"
    except UnicodeDecodeError:
        why = "is not written in UTF-8"
    except FileNotFoundError:
        why = "does not exist"
    except IsADirectoryError:
        why = "is a folder"
    except (OSError, ValueError) as error:
        why = f"cannot be read ({getattr(error, 'strerror', None) or 'no such name'})"
    if why:
        raise InputError(
            f"the policy {str(path)!r} {why}: expected a TOML file in UTF-8. 'sfumato init' writes a first one for a "
            "table; 'sfumato init --help' says how."
        )
    return text


def find_lines(text: str) -> dict[str, int]:
    """Return the line of every section and setting, by ``section`` and ``section.setting``.

    Arrays of tables are numbered: ``criteria[0]`` and ``criteria[0].beta``.

    Examples
    --------
    >>> find_lines('[method]\\nk = 10  # records\\n\\n[columns.limits]\\nage = 5')
    {'method': 1, 'method.k': 2, 'columns.limits': 4, 'columns.limits.age': 5}
    """
    found: dict[str, int] = {}
    n_tables: dict[str, int] = {}
    section = ""
    open_brackets = 0
    for number, line in enumerate(text.splitlines(), start=1):
        bare = re.sub(r"\"(\\.|[^\"\\])*\"|'[^']*'", lambda match: "_" * len(match[0]), line).split("#")[0]
        if open_brackets == 0:
            header = re.fullmatch(r"\s*\[{1,2}\s*([^\[\]]+?)\s*\]{1,2}\s*", line[: len(bare)])
            key = re.match(r"\s*(\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)\s*=", line[: len(bare)])
            if header:
                section = header[1].replace('"', "")
                found.setdefault(section, number)
                if line.lstrip().startswith("[["):
                    n_tables[section] = n_tables.get(section, 0) + 1
                    section = f"{section}[{n_tables[section] - 1}]"
                    found[section] = number
                continue
            if key:
                name = key[1].strip("\"'")
                found.setdefault(f"{section}.{name}" if section else name, number)
        open_brackets += bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")
    return found
