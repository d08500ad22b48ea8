# SPDX-License-Identifier: Apache-2.0
"""``sfumato init`` writes a policy that can be read, and nothing on wrong usage."""

from pathlib import Path

from sfumato.policy import read_policy

from .conftest import run


def test_a_first_policy_is_written_beside_the_reasons(people_file: Path, tmp_path: Path):
    policy = tmp_path / "policy.toml"
    result = run("init", people_file, "--target", "wage", "-o", policy)
    assert result.returncode == 0, result.stderr
    assert "identifier" in result.stdout and "Wrote policy.toml" in result.stdout
    read = read_policy(policy)
    assert read.get("columns", "identifiers") == ("name",)
    assert set(read.get("columns", "quasi_identifiers")) >= {"age", "zip", "hours", "job"}
    assert read.file("file").resolve() == people_file.resolve()
    assert "Person" not in policy.read_text(encoding="utf-8")


def test_an_unknown_target_is_named_and_nothing_is_written(people_file: Path, tmp_path: Path):
    policy = tmp_path / "policy.toml"
    result = run("init", people_file, "--target", "wages", "-o", policy)
    assert result.returncode == 2
    assert "Did you mean 'wage'" in result.stderr
    assert not policy.exists()


def test_an_existing_policy_is_not_replaced_unasked(people_file: Path, tmp_path: Path):
    policy = tmp_path / "policy.toml"
    policy.write_text("mine", encoding="utf-8")
    assert run("init", people_file, "--target", "wage", "-o", policy).returncode == 2
    assert policy.read_text(encoding="utf-8") == "mine"
