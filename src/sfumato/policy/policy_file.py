# SPDX-License-Identifier: Apache-2.0
"""Policy files: TOML in, with the line of every setting, and TOML out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, time
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, ParameterError
from sfumato.policy.settings import VERSION

_TABLES = (".csv", ".tsv", ".gz", ".parquet")  # endings of files that are no policies


@dataclass(frozen=True)
class Places:
    """Name settings in messages: by file, line and key, or by the option of a command.

    Attributes
    ----------
    path : Path or None
        The policy file; None for a policy made in Python or from options.
    lines : dict
        Line of every section and setting, by ``section`` and ``section.setting``, and ``section[0].setting`` for an
        array of tables.
    options : dict
        Option of a command by ``section.setting``.
    given : frozenset of str
        Settings that were given, by ``section.setting``; the others have their defaults.
    """

    path: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    given: frozenset[str] = frozenset()

    def of(self, section: str, name: str) -> str:
        """Return the place of a setting: ``policy.toml, line 3, [method] k``, or ``--k``."""
        key = f"{section}.{name}"
        return self.options.get(key) or self.at(self.lines.get(key), f"[{section}] {name}")

    def with_value(self, section: str, name: str, value: object) -> str:
        """Return the place of a setting and its value: ``[method] k = 1``, or ``--k 1``."""
        is_option = f"{section}.{name}" in self.options
        return f"{self.of(section, name)}{' ' if is_option else ' = '}{shown(value)}"

    def of_criterion(self, number: int, key: str) -> str:
        """Return the place of a key of a criterion; without such a line, the place of the criterion."""
        known = (f"criteria[{number}].{key}", f"criteria[{number}]", "criteria")
        line = next((self.lines[name] for name in known if name in self.lines), None)
        return self.at(line, f"[[criteria]] {key}".rstrip())

    def at(self, line: int | None, key: str) -> str:
        """Return a key with its file and its line, as far as they are known."""
        if self.path is None:
            return key
        return f"{self.path.name}, {key}" if line is None else f"{self.path.name}, line {line}, {key}"


def shown(value: object) -> str:
    """Return a value as messages show it; lists and tables by their kind."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)


def read_policy(path: Path) -> tuple[dict[str, Any], Places]:
    """Read a policy file; return its sections before they are checked, and their places."""
    text = _text_of(path)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise InputError(
            f"{path.name} has brackets that are nested too deeply: expected sections, settings and lists of names."
        ) from None
    except ValueError as error:  # not TOML, or a number with thousands of digits
        raise InputError(
            f"{path.name} is not valid TOML: {error}. Text stands in quotes, lists in brackets, and each key once."
        ) from None
    places = Places(path, find_lines(text))
    version = document.pop("version", None)
    if type(version) is not int or version != VERSION:
        said = "no version" if version is None else f"version = {version!r}"
        raise ParameterError(
            f"{places.at(places.lines.get('version'), 'version')}: {said}, expected version = {VERSION}. "
            "Put that into the first line."
        )
    return document, places


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
    """Read a policy file as text, without a byte order mark."""
    if path.suffix.lower() in _TABLES and path.is_file():
        raise InputError(
            f"{path.name!r} is a table: expected a policy, a TOML file. 'sfumato init' writes a first one for a table; "
            "'sfumato init --help' says how."
        )
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
