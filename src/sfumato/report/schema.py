# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of ``audit.json``, and its reader: both made from the classes that it is written from."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from sfumato.errors import InputError
from sfumato.report.data import OPTIONAL, VERSION, Audit

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def audit_schema() -> dict[str, Any]:
    """Return the schema of the documents that `Audit.to_json` writes; its version is that of the documents.

    Examples
    --------
    >>> schema = audit_schema()
    >>> schema["properties"]["version"], "gate" in schema["required"]
    ({'const': 2}, True)
    """
    own = _of_class(Audit)
    added = {"version": {"const": VERSION}, "passed": {"type": ["boolean", "null"]}}
    required = ["version", "passed", *(name for name in own["required"] if name not in OPTIONAL)]
    return {
        "$schema": DIALECT,
        "$id": f"urn:sfumato:audit:{VERSION}",
        "title": f"sfumato audit, version {VERSION}",
        "type": "object",
        "properties": added | own["properties"],
        "required": required,
        "additionalProperties": False,
    }


def _of_class(described: type) -> dict[str, Any]:
    hints = typing.get_type_hints(described)
    names = [part.name for part in fields(described)]
    return {
        "type": "object",
        "properties": {name: _of_type(hints[name]) for name in names},
        "required": names,
        "additionalProperties": False,
    }


def _of_type(hint: Any) -> dict[str, Any]:
    """Return the schema of values of a type, as `documents.plain` writes them."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint is float:
        return {"type": ["number", "null"]}  # null for what is not finite
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        return _of_class(hint)
    if origin is typing.Literal:
        return {"enum": list(inside)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_of_type(part) for part in inside]}
    if origin is tuple:
        if inside[-1] is Ellipsis:
            return {"type": "array", "items": _of_type(inside[0])}
        return {"type": "array", "prefixItems": [_of_type(part) for part in inside], "minItems": len(inside)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of_type(inside[1])}
    return {}


# -- reading -------------------------------------------------------------------------------------------------------


class _MisfitError(Exception):
    """A part of a document is absent or not of its kind; the argument is its place."""


def read_audit(document: Mapping[str, Any]) -> Audit:
    """Rebuild an audit from the document that `Audit.to_dict` returned.

    Raises
    ------
    InputError
        For a document of another version, and for one that does not fit the schema; the message names the part.
    """
    version = document.get("version")
    if version != VERSION:
        known = isinstance(version, int) and not isinstance(version, bool)
        said = f"version {version}" if known else "no version that is known"
        raise InputError(f"an audit of {said}: expected version {VERSION}. Run the policy again.")
    try:
        return typing.cast(Audit, _read({k: v for k, v in document.items() if k not in ("version", "passed")}, Audit))
    except _MisfitError as error:
        raise InputError(
            f"an audit whose part {error.args[0]} is absent or not of its kind: expected what sfumato wrote. Run the "
            "policy again."
        ) from None


def _read(value: Any, hint: Any, place: str = "") -> Any:
    """Return a value of JSON as a value of a type; the inverse of `documents.plain`."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return _read_class(value, hint, place)
    if origin in (types.UnionType, typing.Union):  # something, or None
        (kind,) = (part for part in inside if part is not type(None))
        return None if value is None else _read(value, kind, place)
    if origin is typing.Literal:
        return _fitting(value, value in inside, place)
    if origin is tuple:
        _fitting(value, isinstance(value, list), place)
        kinds = inside[:1] * len(value) if inside[-1] is Ellipsis else inside
        _fitting(value, len(value) == len(kinds), place)
        parts = enumerate(zip(value, kinds, strict=True))
        return tuple(_read(part, kind, f"{place}[{at}]") for at, (part, kind) in parts)
    if origin in (dict, Mapping):
        _fitting(value, isinstance(value, dict), place)
        return {name: _read(part, inside[1], f"{place}.*") for name, part in value.items()}
    if hint is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float("nan") if value is None else _fitting(value, is_number, place)
    if hint in _PLAIN:
        return _fitting(value, type(value) is hint, place)
    return value


def _read_class(value: Any, kind: type, place: str) -> Any:
    hints, names = typing.get_type_hints(kind), [part.name for part in fields(kind)]
    _fitting(value, isinstance(value, dict), place or "as a whole")
    inner = f"{place}." if place else ""
    for name in value:
        _fitting(name, name in names, f"{inner}{name}")
    for name in names:
        _fitting(name, name in value or (kind is Audit and name in OPTIONAL), f"{inner}{name}")
    return kind(**{name: _read(part, hints[name], f"{inner}{name}") for name, part in value.items()})


def _fitting(value: Any, is_fitting: bool, place: str) -> Any:
    if not is_fitting:
        raise _MisfitError(place)
    return value
