# SPDX-License-Identifier: Apache-2.0
"""``sfumato.audit``, ``sfumato.run`` and ``sfumato.Policy`` from Python."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato
from sfumato import ParameterError, Policy, PrivacyWarning


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    return pd.DataFrame(
        {
            "age": age,
            "hours": rng.integers(10, 60, n),
            "sex": rng.choice(["f", "m"], n),
            "income": np.where(age + rng.normal(0, 15, n) > 48, "high", "low"),
        }
    )


POLICY = {
    "columns": {"target": "income"},
    "method": {"k": 5},
    "model": {"name": "decision-tree"},
    "audit": {"level": "none"},
    "gate": {"min_k": 5},
}


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas, lambda frame: frame.to_dict("list")]
)
def test_a_policy_runs_on_a_table_of_any_kind(kind):
    table = people()
    done = sfumato.run(Policy.of(**POLICY), table=kind(table))
    assert done.passed is True
    assert done.written == ()
    released = done.release.to_pandas()
    assert released.groupby(["age", "hours", "sex"]).size().min() >= 5
    assert sorted(released["income"]) == sorted(table["income"])
    assert done.audit.utility.metric == "accuracy"


def test_what_python_runs_is_what_the_command_writes(tmp_path):
    from typer.testing import CliRunner

    from sfumato.cli.application import application

    people().to_csv(tmp_path / "people.csv", index=False)
    sections = {**POLICY, "data": {"file": "people.csv", "release": "released.csv", "artifact": "partition.json"}}
    (tmp_path / "policy.toml").write_text(Policy.of(**sections).to_toml(), encoding="utf-8")
    done = sfumato.run(tmp_path / "policy.toml")
    assert {path.name for path in done.written} == {"released.csv", "partition.json", "report.html", "audit.json"}
    files = {name: (tmp_path / name).read_text("utf-8") for name in ("released.csv", "partition.json")}
    assert CliRunner().invoke(application, ["run", str(tmp_path / "policy.toml"), "--force"]).exit_code == 0
    assert (tmp_path / "partition.json").read_text("utf-8") == files["partition.json"]
    again = (tmp_path / "released.csv").read_text("utf-8")
    assert sorted(again.splitlines()) == sorted(files["released.csv"].splitlines())
    assert again.splitlines()[0] == files["released.csv"].splitlines()[0]


def test_a_gate_that_fails_releases_nothing(tmp_path):
    data = {"release": str(tmp_path / "released.csv"), "report": str(tmp_path / "report.html"), "audit": None}
    policy = Policy.of(**{**POLICY, "data": data, "gate": {"min_k": 100}})
    done = sfumato.run(policy, table=people())
    assert done.passed is False
    assert done.release is None
    assert list(tmp_path.iterdir()) == []
    kept = sfumato.run(policy, table=people(), keep_report=True)
    assert [path.name for path in kept.written if path.parent == tmp_path] == ["report.html"]


def test_a_run_without_a_table_says_what_to_give():
    with pytest.raises(ParameterError, match=r"\[data\] file: not given, and no table either"):
        sfumato.run(Policy.of(**POLICY))


def test_a_policy_of_python_names_section_and_key():
    with pytest.raises(ParameterError, match=r"^\[method\] k = 1: expected an integer >= 2"):
        Policy.of(method={"k": 1}, columns={"target": "income"})
    with pytest.raises(ParameterError, match="nonsense: unknown, expected one of the sections"):
        Policy.of(nonsense={"k": 1})


def test_a_policy_survives_its_toml(tmp_path):
    policy = Policy.of(
        data={"file": "people.csv", "release": "r.csv", "types": {"zip code": "text"}},
        columns={"target": 'a "quoted" name', "limits": {"age": 5}, "keep": ["x", "y"]},
        method={"k": 7, "suppression_limit": 0.05},
        titles={"age": "Age in years"},
    )
    (tmp_path / "policy.toml").write_text(policy.to_toml(), encoding="utf-8")
    read = Policy.read(tmp_path / "policy.toml")
    assert read.values == policy.values
    assert read.titles == policy.titles


def test_an_audit_judges_a_release_that_anyone_made():
    table = people()
    released = table.assign(age=table["age"] // 10 * 10, hours=30)
    found = sfumato.audit(table, released, sensitive=["income"], gate={"min_k": 500}, random_state=1)
    assert found.passed is False
    assert found.sizes.smallest == released.groupby(["age", "hours"]).size().min()
    assert json.loads(found.to_json())["passed"] is False
    assert found.to_html().lower().startswith("<!doctype html>")


def test_an_audit_warns_of_names_and_writes_itself(tmp_path):
    table = people(60).assign(name=[f"Ann Miller {i}" for i in range(60)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = sfumato.audit(table, table)
    assert any(issubclass(one.category, PrivacyWarning) and "'name'" in str(one.message) for one in caught)
    found.write(tmp_path / "audit.json")
    assert json.loads((tmp_path / "audit.json").read_text("utf-8"))["version"] == 2
    with pytest.raises(ParameterError, match=r"ends in \.html, \.md or \.json"):
        found.write(tmp_path / "audit.txt")


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ({"min_k": 0}, "min_k=0: expected an integer >= 1"),
        ({"max_unique": 2}, "max_unique=2: expected a number from 0 to 1"),
        ({"max_k": 2}, "gate has 'max_k'"),
    ],
)
def test_conditions_that_cannot_be_are_refused(gate, message):
    with pytest.raises(ParameterError, match=message):
        sfumato.audit(people(60), people(60), gate=gate)


def test_people_of_the_release_are_no_control():
    table = people()
    with pytest.raises(sfumato.InputError, match="expected people outside the release") as caught:
        sfumato.audit(table, table.assign(age=40), control=table)
    assert caught.value.parameter == "control"
