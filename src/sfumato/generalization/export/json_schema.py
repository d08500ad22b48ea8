# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a minimized record, for interfaces that accept only buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from sfumato.arguments import check_choice
from sfumato.generalization.attributes import Attribute
from sfumato.generalization.description import describe_attribute

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SchemaOutput = Literal["labels", "codes"]


def record_schema(
    attributes: Sequence[Attribute], fingerprint: str, output: SchemaOutput = "labels", *, is_partial: bool = False
) -> dict[str, Any]:
    """Return the schema of one record: every attribute is one of its buckets, and nothing else may come along.

    Attributes that are not collected may be absent; where they are given, they say so. Any attribute may be absent
    from a partial record, of a person who was not asked everything.
    """
    check_choice("output", output, get_args(SchemaOutput))
    properties = {
        attribute.name: {
            "description": describe_attribute(attribute),
            "enum": list(attribute.labels) if output == "labels" else list(range(attribute.n_buckets)),
        }
        for attribute in attributes
    }
    return {
        "$schema": DRAFT,
        "$comment": f"sfumato generalization {fingerprint}",
        "title": "A minimized record",
        "type": "object",
        "properties": properties,
        "required": [attribute.name for attribute in attributes if attribute.is_collected and not is_partial],
        "additionalProperties": False,
    }
