# SPDX-License-Identifier: Apache-2.0
"""Outputs are never written over another run's, and files of two runs are not taken for one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.files.publishing import check_output, unfinished

from .conftest import call, people, run

POLICY = """version = 1
[data]
file = "people.csv"
release = "out.csv"
artifact = "partition.json"
types = { zip = "text" }
[columns]
target = "wage"
identifiers = ["name"]
quasi_identifiers = ["age", "zip", "hours", "born", "job"]
[method]
k = %d
[model]
name = "decision-tree"
[audit]
level = "none"
[gate]
min_k = %d
"""
OUTPUTS = ["out.csv", "partition.json", "partition.fingerprints", "report.html", "audit.json"]


def policy(folder: Path, k: int = 8, min_k: int = 8) -> Path:
    (folder / "people.csv").write_text(people(), encoding="utf-8", newline="")
    path = folder / "policy.toml"
    path.write_text(POLICY % (k, min_k), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("force", [False, True])
def test_the_second_of_two_runs_into_one_output_is_refused_when_it_writes(tmp_path, force):
    output, other = tmp_path / "out.csv", tmp_path / "report.html"
    if force:
        output.write_text("before")
    check_output(output, force=force)
    check_output(other, force=force)
    output.write_text("of the run that was faster")
    with (
        pytest.raises(ParameterError, match="written by another process while this one was at work"),
        unfinished(output, other) as paths,
    ):
        for path in paths:
            path.write_text("of the slower run")
    assert contents(tmp_path) == {"out.csv": b"of the run that was faster"}


def test_a_file_that_was_removed_meanwhile_counts_as_written_to(tmp_path):
    output = tmp_path / "out.csv"
    output.write_text("before")
    check_output(output, force=True)
    output.unlink()
    with pytest.raises(ParameterError, match="another process"), unfinished(output) as [path]:
        path.write_text("x")


def test_a_command_whose_output_appears_while_it_works_ends_with_2(people_file, tmp_path, monkeypatch):
    from sfumato.auditing import anonymize_files

    output = tmp_path / "out.csv"
    plain = anonymize_files._note_target

    def slow(*given: object) -> None:
        output.write_text("of another run")
        plain(*given)

    monkeypatch.setattr(anonymize_files, "_note_target", slow)
    done = call("anonymize", people_file, "--target", "wage", "--identifiers", "name", "--model", "decision-tree",
                "--test-fraction", 0, "-o", output, "--save", tmp_path / "partition.json")  # fmt: skip
    assert done.exit_code == 2, done.output
    assert "another process" in done.stderr
    assert contents(tmp_path) == {"out.csv": b"of another run"}


@pytest.mark.thorough
def test_of_two_processes_at_once_one_writes_and_one_is_refused(people_file, tmp_path):
    asked = [sys.executable, "-m", "sfumato", "anonymize", people_file, "--target", "wage", "--identifiers", "name"]
    asked += ["--model", "decision-tree", "--quiet", "-o", tmp_path / "out.csv", "--save", tmp_path / "partition.json"]
    started = [subprocess.Popen(list(map(str, asked)), stderr=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate(timeout=300)[1] for process in started]
    assert sorted(process.returncode for process in started) == [0, 2], said
    assert sorted(contents(tmp_path)) == ["out.csv", "partition.fingerprints", "partition.json"]


KILLED = """
import os, pathlib, sys
plain, left = pathlib.Path.replace, [%d]
def replace(path, target):
    if left[0] == 0:
        os._exit(9)  # as if killed: nothing is tidied up
    left[0] -= 1
    return plain(path, target)
pathlib.Path.replace = replace
from sfumato.cli import main
sys.argv = ["sfumato", "run", sys.argv[1], "--quiet", "--force"]
main()
"""


def killed_after(n_renames: int, path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED % n_renames, str(path)], capture_output=True, text=True, check=False,
        env=os.environ, timeout=300,
    )  # fmt: skip
    assert done.returncode == 9, done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("n_renames", [1, 4])
def test_a_run_killed_between_two_renames_is_recognised_by_the_next(tmp_path, n_renames):
    path = policy(tmp_path)
    assert call("run", path, "--quiet").exit_code == 0
    before = contents(tmp_path)
    policy(tmp_path, k=12)
    killed_after(n_renames, path)
    after = contents(tmp_path)
    renewed = [name for name in OUTPUTS if after[name] != before[name]]
    assert renewed == OUTPUTS[:n_renames]  # a mixture indeed
    done = call("run", path, "--quiet")
    assert done.exit_code == 2  # the files are there, and --force was not given
    said = done.stderr.replace("\n", " ")
    assert "warning:" in said and "'out.csv'" in said and "are not of one run" in said
    done = call("run", path, "--quiet", "--force")
    assert done.exit_code == 0 and "are not of one run" in done.stderr.replace("\n", " ")
    done = call("run", path, "--dry-run", "--force")
    assert done.exit_code == 0 and "are not of one run" not in done.stderr.replace("\n", " ")


@pytest.mark.thorough
def test_a_first_run_killed_after_its_release_is_recognised(tmp_path):
    path = policy(tmp_path)
    killed_after(1, path)
    assert (tmp_path / "out.csv").exists() and not (tmp_path / "audit.json").exists()
    done = call("run", path, "--dry-run", "--force")
    assert "'out.csv' and 'audit.json' are not of one run" in done.stderr.replace("\n", " ")


def test_the_audit_holds_the_fingerprints_of_the_files_it_belongs_to(tmp_path):
    import hashlib

    assert run("run", policy(tmp_path), "--quiet").returncode == 0
    outputs = json.loads((tmp_path / "audit.json").read_text())["outputs"]
    assert {role: part["file"] for role, part in outputs.items()} == {
        "release": "out.csv", "artifact": "partition.json", "report": "report.html"
    }  # fmt: skip
    for part in outputs.values():
        assert part["sha256"] == hashlib.sha256((tmp_path / part["file"]).read_bytes()).hexdigest()


def test_a_kept_report_of_a_failed_gate_is_not_taken_for_that_of_an_older_release(tmp_path):
    path = policy(tmp_path)
    assert call("run", path, "--quiet").exit_code == 0
    policy(tmp_path, min_k=500)
    failed = call("run", path, "--quiet", "--force")
    assert failed.exit_code == 1
    assert "files of an earlier run still exist" in failed.stderr.replace("\n", " ")
    assert call("run", path, "--quiet", "--force", "--keep-report").exit_code == 1
    done = call("run", path, "--dry-run", "--force")
    assert "'out.csv' and 'partition.json' and 'audit.json' are not of one run" in done.stderr.replace("\n", " ")
