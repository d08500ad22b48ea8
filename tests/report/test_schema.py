# SPDX-License-Identifier: Apache-2.0
"""``audit.json`` fits its published schema, whatever it holds, and the schema says no to what does not belong there."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato
from report.audits import audit
from sfumato.report.schema import audit_schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "audit.schema.json"
TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None), "array": list}
TYPES |= {"object": dict}


def misfit(value, schema, place="audit"):
    """Return where a document does not fit a schema, or None: the keywords that ours has, by their definitions."""
    if "anyOf" in schema:
        return None if any(misfit(value, part) is None for part in schema["anyOf"]) else place
    if "const" in schema or "enum" in schema:
        return None if value in schema.get("enum", [schema.get("const")]) else place
    named = schema.get("type", [])
    kinds = [named] if isinstance(named, str) else named
    is_flag = isinstance(value, bool)
    if kinds and not any(isinstance(value, TYPES[kind]) and (not is_flag or kind == "boolean") for kind in kinds):
        return place
    if isinstance(value, list):
        parts = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
        if len(value) < schema.get("minItems", 0):
            return place
        found = [misfit(own, part, f"{place}[{at}]") for at, (own, part) in enumerate(zip(value, parts, strict=False))]
        return next((one for one in found if one), None)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        if any(name not in value for name in schema.get("required", [])):
            return place
        for name, own in value.items():
            if name not in known and others is False:
                return f"{place}.{name}"
            if bad := misfit(own, known.get(name, others or {}), f"{place}.{name}"):
                return bad
    return None


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize("n_columns", [1, 30])
def test_every_kind_of_audit_fits(passed, n_columns):
    document = json.loads(audit(passed=passed, n_columns=n_columns).to_json())
    assert misfit(document, audit_schema()) is None


def test_audits_of_a_run_and_of_two_tables_fit(tmp_path):
    draw = np.random.default_rng(0)
    people = pd.DataFrame({"age": draw.integers(18, 90, 400), "ill": draw.choice(["yes", "no"], 400)})
    policy = sfumato.Policy.of(
        method={"name": "mondrian", "k": 5},
        columns={"sensitive": ["ill"]},
        gate={"max_risk": 0.2},
        context={"purpose": "research", "access": "restricted", "threshold": 0.2},
    )
    done = sfumato.run(policy, table=people)
    document = json.loads(done.audit.to_json())
    assert misfit(document, audit_schema()) is None
    assert document["context"] == {"purpose": "research", "access": "restricted", "threshold": 0.2}
    assert len(document["policy_sha256"]) == 64 and document["made_at"].endswith("+00:00")
    assert [check["name"] for check in document["gate"]] == ["max_risk"] and document["passed"]
    assert "restricted" in done.audit.to_html() and "restricted" in done.audit.to_markdown()
    both = sfumato.audit(people, done.release, quasi_identifiers=["age"], sensitive=["ill"])
    assert misfit(json.loads(both.to_json()), audit_schema()) is None


def test_a_certificate_and_a_context_fit():
    own = replace(
        audit(), certificate={"secrets": {}}, context={"purpose": "research", "threshold": 0.1}, made_at="now"
    )
    document = json.loads(own.to_json())
    assert document["context"]["purpose"] == "research" and misfit(document, audit_schema()) is None


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"gate": [{"name": "min_k"}]}, "audit.gate[0]"),
        ({"n_records": "many"}, "audit.n_records"),
        ({"version": 1}, "audit.version"),
        ({"extra": 1}, "audit.extra"),
        ({"notes": "none"}, "audit.notes"),
    ],
)
def test_what_is_not_an_audit_does_not_fit(change, place):
    document = json.loads(audit().to_json()) | change
    assert misfit(document, audit_schema()) == place


def test_a_part_that_is_absent_does_not_fit():
    document = json.loads(audit().to_json())
    del document["sizes"]
    assert misfit(document, audit_schema()) == "audit"


def test_the_published_schema_is_the_one_of_the_code():
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == audit_schema()
