# SPDX-License-Identifier: Apache-2.0
"""A generalization as one JavaScript function without dependencies, for browsers, phones and servers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from sfumato.generalization.attributes import Attribute, CategoryAttribute

_EXACT = 2**53


def javascript_source(attributes: Sequence[Attribute], fingerprint: str) -> str:
    """Return a script that defines ``generalization.generalize(record)`` and ``generalization.bucketOf(name, value)``.

    In node it can be required. Values are numbers, BigInts or digits as text, text, booleans, dates as ISO text or
    ``Date``, durations in seconds; null, undefined and NaN are missing. Other fields are omitted from the result.
    """
    listed = ",\n".join(f"    {_attribute(attribute)}" for attribute in attributes)
    return (
        f"// sfumato generalization {fingerprint}\n"
        "// generalization.generalize(record) gives the bucket of every attribute, and nothing else.\n"
        "const generalization = (() => {\n"
        '  "use strict";\n'
        f"  const fingerprint = {literal(fingerprint)};\n"
        f"  const attributes = [\n{listed},\n  ];\n"
        "  const byName = new Map(attributes.map((attribute) => [attribute.name, attribute]));\n\n"
        f"{template('runtime.js')}"
    )


def template(name: str) -> str:
    """Return the text of a file beside this module."""
    return (files("sfumato.generalization.export") / "templates" / name).read_text(encoding="utf-8")


def literal(value: Any) -> str:
    """Write a value as JavaScript: integers beyond 2^53 as BigInt, text so that it may stand inside a web page."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return f"{value}n"
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(part) for part in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)}: {literal(part)}' for key, part in value.items())} }}"
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def _key(key: Any) -> str:
    return key if isinstance(key, str) and key.isidentifier() and key.isascii() else literal(str(key))


def _attribute(attribute: Attribute) -> str:
    document: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind, "labels": attribute.labels}
    document["missing"] = attribute.missing
    if isinstance(attribute, CategoryAttribute):
        document["values"] = attribute.value_type
        document["unseen"] = attribute.unseen
        pairs = zip(attribute.categories, attribute.bucket_of, strict=True)
        document["categories"] = [[value, bucket] for value, bucket in pairs]
        return literal(document)
    if attribute.moment is not None:
        document["moment"] = attribute.moment
    document["cuts"] = attribute.cuts
    return literal(document)
