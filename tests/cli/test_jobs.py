# SPDX-License-Identifier: Apache-2.0
"""The commands use all cores unless told otherwise, and refuse numbers of threads that no machine has."""

from pathlib import Path

import pytest

from sfumato.anonymize import ModelGuidedAnonymizer

from .conftest import call, run


@pytest.mark.parametrize(("options", "expected"), [([], -1), (["--jobs", 1], 1)])
def test_all_cores_are_used_unless_told_otherwise(people_file: Path, monkeypatch, options, expected):
    seen = []
    own = ModelGuidedAnonymizer._n_threads
    monkeypatch.setattr(ModelGuidedAnonymizer, "_n_threads", lambda self: (seen.append(self.n_jobs), own(self))[1])
    named = ["--target", "wage", "--identifiers", "name", "--model", "decision-tree"]
    assert call("anonymize", people_file, *named, *options).exit_code == 0
    assert set(seen) == {expected}


@pytest.mark.parametrize("jobs", [99999999999999999999, 0])
@pytest.mark.parametrize("command", ["anonymize", "run", "sweep"])
def test_a_number_of_threads_that_no_machine_has_is_refused(people_file: Path, tmp_path: Path, command: str, jobs: int):
    arguments: list[object] = [people_file, "--target", "wage", "--identifiers", "name"]
    if command != "anonymize":
        policy = tmp_path / "policy.toml"
        assert call("init", people_file, "--target", "wage", "-o", policy).exit_code == 0
        arguments = [policy]
    result = run(command, *arguments, "--jobs", jobs)
    assert result.returncode == 2
    words = " ".join(result.stderr.split())
    assert f"--jobs {jobs}: expected an integer from 1 to 1,024, or -1 for all cores." in words


def test_a_number_of_processes_that_no_machine_has_is_refused():
    result = call("study", "goldsteen-figure-2", "--quick", "--processes", 99999999999999999999)
    assert result.exit_code == 2
    assert "expected an integer from 1 to 1,024" in " ".join(result.stderr.split())
