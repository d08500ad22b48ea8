# SPDX-License-Identifier: Apache-2.0
"""``audit.json`` fits its published schema, whatever it holds, is read back as it was, and nothing else is."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import sfumato
from report.audits import HOSTILE, audit
from sfumato.errors import InputError
from sfumato.report.data import Audit
from sfumato.report.risk_data import AttackedSubgroup, EarlierRelease, FileHash
from sfumato.report.schema import audit_schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "audit.schema.json"


def misfit(document):
    """Return where a document does not fit the schema, by a validator that is not ours, or None."""
    found = sorted(jsonschema.Draft202012Validator(audit_schema()).iter_errors(document), key=lambda e: e.json_path)
    return found[0].json_path if found else None


def written(made: Audit) -> dict:
    return json.loads(made.to_json())


def people(n: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    age = draw.integers(18, 90, n)
    ill = np.where(age + draw.normal(0, 20, n) > 55, "yes", "no")
    return pd.DataFrame(
        {"age": age, "sex": draw.choice(["f", "m"], n), "weight": draw.integers(45, 120, n), "ill": ill}
    )


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(audit_schema())


@pytest.mark.parametrize("names", [None, HOSTILE], ids=["everyday", "hostile"])
@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize("n_columns", [1, 30])
def test_every_kind_of_audit_fits_and_is_read_back(names, passed, n_columns):
    made = audit(names, passed=passed, n_columns=n_columns)
    document = written(made)
    assert misfit(document) is None
    assert Audit.from_dict(document).to_json() == made.to_json()
    assert Audit.from_dict(document).to_html() == made.to_html()


def test_audits_of_a_run_and_of_two_tables_fit(tmp_path):
    table = people()
    policy = sfumato.Policy.of(
        method={"name": "mondrian", "k": 5},
        columns={"sensitive": ["ill"]},
        gate={"max_risk": 0.2, "max_journalist_risk": 0.1, "max_marketer_risk": 0.1, "max_share_at_risk": 0.0},
        context={"purpose": "research", "access": "restricted", "threshold": 0.2, "sampling_fraction": 0.1},
    )
    done = sfumato.run(policy, table=table)
    document = written(done.audit)
    assert misfit(document) is None
    assert document["context"]["purpose"] == "research" and document["context"]["threshold"] == 0.2
    assert len(document["policy_sha256"]) == 64 and document["made_at"].endswith("+00:00")
    assert [check["name"] for check in document["gate"]] == [
        "max_risk", "max_journalist_risk", "max_marketer_risk", "max_share_at_risk",
    ]  # fmt: skip
    assert document["passed"] and Audit.from_dict(document).to_json() == done.audit.to_json()
    assert "restricted" in done.audit.to_html() and "restricted" in done.audit.to_markdown()
    both = sfumato.audit(table, done.release, quasi_identifiers=["age", "sex", "weight"], sensitive=["ill"])
    assert misfit(written(both)) is None and Audit.from_dict(written(both)).to_json() == both.to_json()


def test_the_audit_of_a_model_that_is_attacked_fits():
    policy = sfumato.Policy.of(
        method={"name": "mondrian", "k": 5},
        columns={"target": "ill", "subgroups": ["sex"]},
        model={"name": "decision-tree"},
        audit={"leave_out": ["network"]},
    )
    made = sfumato.run(policy, table=people()).audit
    assert misfit(written(made)) is None and Audit.from_dict(written(made)).to_json() == made.to_json()
    assert made.utility.n_parameters > 1
    assert all(risk.knowledge and risk.access and risk.confidence == 0.95 for risk in made.risks)
    assert all(risk.attempts for risk in made.risks)
    assert {risk.worst.column for risk in made.risks if risk.worst} == {"sex"}


def test_all_that_an_audit_can_hold_fits():
    made = audit()
    made = replace(
        made,
        certificate={"secrets": {}},
        context={"purpose": "research", "threshold": 0.1},
        made_at="now",
        outputs={"release": FileHash("released.csv", "ab")},
        privacy={"epsilon": 1.0, "delta": 0.0},
        earlier=(EarlierRelease("first.publication", "ab", None, 0, True, True),),
        grouped_by=("age",),
        risks=(replace(made.risks[0], worst=AttackedSubgroup("sex", "f", 40, 0.5, (0.4, 0.6), 0.5)),),
    )
    assert misfit(written(made)) is None
    assert Audit.from_dict(written(made)).to_json() == made.to_json()


@pytest.mark.parametrize(
    ("change", "place", "named"),
    [
        ({"gate": [{"name": "min_k"}]}, "$.gate[0]", "gate[0].required"),
        ({"n_records": "many"}, "$.n_records", "n_records"),
        ({"version": 1}, "$.version", "version 1"),
        ({"extra": 1}, "$", "extra"),
        ({"notes": "none"}, "$.notes", "notes"),
        ({"outputs": {"release": {"file": "a"}}}, "$.outputs.release", "outputs.*.sha256"),
        ({"passed": "yes", "sizes": []}, "$.passed", "sizes"),
        ({"utility": {"metric": 1}}, "$.utility", "utility.model"),
    ],
)
def test_what_is_not_an_audit_is_not_read(change, place, named):
    document = written(audit()) | change
    assert misfit(document) == place
    with pytest.raises(InputError, match=named.replace("[", r"\[").replace("]", r"\]").replace("*", r"\*")):
        Audit.from_dict(document)


@pytest.mark.parametrize("part", ["sizes", "risks", "version"])
def test_a_part_that_is_absent_is_missed(part):
    document = written(audit())
    del document[part]
    assert misfit(document) == "$"
    with pytest.raises(InputError, match=part):
        Audit.from_dict(document)


def test_the_published_schema_is_the_one_of_the_code():
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == audit_schema()
