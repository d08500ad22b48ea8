# SPDX-License-Identifier: Apache-2.0
"""``sfumato init`` writes a policy that can be read, and nothing on wrong usage."""

import re
from pathlib import Path

from sfumato.policy import Policy

from .conftest import call, run, run_process


def test_a_first_policy_is_written_beside_the_reasons(people_file: Path, tmp_path: Path):
    policy = tmp_path / "policy.toml"
    result = run_process("init", people_file, "--target", "wage", "-o", policy)
    assert result.returncode == 0, result.stderr
    assert "identifier" in result.stdout and "Wrote policy.toml" in result.stdout
    read = Policy.read(policy)
    assert read.get("columns", "identifiers") == ("name",)
    assert set(read.get("columns", "quasi_identifiers")) >= {"age", "zip", "hours", "job"}
    assert read.file("file").resolve() == people_file.resolve()
    assert "Person" not in policy.read_text(encoding="utf-8")


def test_a_column_said_to_be_sensitive_is_shown_as_such(tmp_path: Path):
    file = tmp_path / "patients.csv"
    rows = [f"{20 + i % 40},{'ABC'[i % 3]}10,{i % 2}" for i in range(120)]
    file.write_text("\n".join(["age,diagnosis,again", *rows]), encoding="utf-8")
    policy = tmp_path / "policy.toml"
    result = call("init", file, "--target", "again", "--sensitive", "diagnosis", "-o", policy)
    assert result.exit_code == 0, result.stderr
    assert re.search(r"diagnosis +sensitive", result.stdout)
    text = policy.read_text(encoding="utf-8")
    assert '"diagnosis": sensitive: ' in text and '"diagnosis": quasi-identifier' not in text
    assert "CONFIRM: may be about health" in text and "name it under sensitive" not in text


def test_an_unknown_target_is_named_and_nothing_is_written(people_file: Path, tmp_path: Path):
    policy = tmp_path / "policy.toml"
    result = run("init", people_file, "--target", "wages", "-o", policy)
    assert result.returncode == 2
    assert "Did you mean 'wage'" in result.stderr
    assert not policy.exists()


def test_a_target_that_nothing_can_learn_is_refused_before_a_policy_is_written(tmp_path: Path):
    (tmp_path / "one.csv").write_text("a,b,y\n1,x,0\n", encoding="utf-8")
    result = call("init", tmp_path / "one.csv", "--target", "y", "-o", tmp_path / "policy.toml")
    assert result.exit_code == 2 and "one value only" in " ".join(result.stderr.split())
    assert not (tmp_path / "policy.toml").exists()


def test_an_existing_policy_is_not_replaced_unasked(people_file: Path, tmp_path: Path):
    policy = tmp_path / "policy.toml"
    policy.write_text("mine", encoding="utf-8")
    assert run("init", people_file, "--target", "wage", "-o", policy).returncode == 2
    assert policy.read_text(encoding="utf-8") == "mine"


def test_a_policy_reads_the_file_as_it_was_read_for_it(tmp_path: Path):
    file = tmp_path / "people.csv"
    rows = [f"{i % 7};{'?' if i % 9 == 0 else i % 11};{i % 2};{1000 + i}" for i in range(60)]
    file.write_text("\n".join(["zip, new;age;wage;pay", *rows]), encoding="utf-8")
    policy = tmp_path / "policy.toml"
    result = run(
        "init", file, "--target", "wage", "--sensitive", "pay", "-o", policy, "--k", 2,
        "--separator", ";", "--missing", "?", "--types", "age=integer",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    read = Policy.read(policy)
    assert read.get("data", "types") == {"age": "integer"}
    assert (read.get("data", "separator"), read.get("data", "missing")) == (";", ("?",))
    # What is known to be sensitive has that role alone, though nearly every value is different.
    assert read.get("columns", "identifiers") == () and read.get("columns", "sensitive") == ("pay",)
    text = policy.read_text(encoding="utf-8").replace('sensitive = ["pay"]', 'sensitive = ["pay"]\nkeep = ["pay"]')
    policy.write_text(text.replace('age = "integer"', '"zip, new" = "text"'), encoding="utf-8")
    dry = run("run", policy, "--dry-run")
    assert dry.returncode == 0, dry.stderr
