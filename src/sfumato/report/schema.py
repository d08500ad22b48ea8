# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of ``audit.json``, made from the classes that it is written from, so that both agree."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from sfumato.report.data import OPTIONAL, VERSION, Audit

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def audit_schema() -> dict[str, Any]:
    """Return the schema of the documents that `Audit.to_json` writes; its version is that of the documents.

    Examples
    --------
    >>> schema = audit_schema()
    >>> schema["properties"]["version"], "gate" in schema["required"]
    ({'const': 1}, True)
    """
    own = _of_class(Audit)
    added = {
        "version": {"const": VERSION},
        "passed": {"type": ["boolean", "null"]},
        # by role: the files of the run, in what `sfumato run` writes
        "outputs": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"file": {"type": "string"}, "sha256": {"type": "string"}},
                "required": ["file", "sha256"],
            },
        },
    }
    required = ["version", "passed", *(name for name in own["required"] if name not in OPTIONAL)]
    return {
        "$schema": DIALECT,
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
