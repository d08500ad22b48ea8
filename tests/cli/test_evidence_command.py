# SPDX-License-Identifier: Apache-2.0
"""``sfumato evidence``: writes packs, verifies them, and exits with what was found."""

import hashlib
import json
import shutil
import subprocess

import pytest
from typer.testing import CliRunner

from sfumato.cli.application import application
from sfumato.cli.evidence import HELP
from sfumato.report.questionnaires import NAMES


def run(*arguments: object):
    return CliRunner().invoke(application, list(map(str, arguments)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    rows = ["age,height,ill", *(f"{20 + i % 60},{150 + i % 47},{'yes' if i % 3 else 'no'}" for i in range(240))]
    (folder / "people.csv").write_text("\n".join(rows) + "\n")
    (folder / "policy.toml").write_text(
        'version = 1\n[data]\nfile = "people.csv"\nrelease = "released.csv"\nartifact = "partition.json"\n'
        '[columns]\nsensitive = ["ill"]\n[method]\nname = "mondrian"\nk = 5\n'
    )
    assert run("run", folder / "policy.toml").exit_code == 0
    return folder


@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    shutil.copytree(finished, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_a_pack_is_written_and_verified(folder):
    made = run("evidence", "policy.toml", "-o", "pack.zip", "--for", "edpb,nist", "--date", "2026-11-18")
    assert made.exit_code == 0 and "Written: pack.zip" in made.output
    found = run("evidence", "--verify", "pack.zip", "released.csv", "--with", "policy.toml", "--with", "partition.json")
    assert found.exit_code == 0 and "belong together" in found.output and "no signature was checked" in found.output


def test_without_a_name_the_pack_is_pack_zip_and_is_not_replaced(folder):
    assert run("evidence", "policy.toml").exit_code == 0 and (folder / "pack.zip").exists()
    again = run("evidence", "policy.toml")
    assert again.exit_code == 2 and "--force" in again.output
    assert run("evidence", "policy.toml", "--force").exit_code == 0


def test_a_name_without_an_ending_gets_one_and_any_other_is_refused(folder):
    made = run("evidence", "policy.toml", "-o", "pack")
    assert made.exit_code == 0 and "Written: pack.zip" in made.output
    assert (folder / "pack.zip").exists() and not (folder / "pack").exists()
    found = run("evidence", "--verify", "pack", "released.csv")
    assert found.exit_code == 0 and "belong together" in found.output
    again = run("evidence", "policy.toml", "-o", "pack")
    assert again.exit_code == 2 and "'pack.zip' exists already" in again.output
    refused = run("evidence", "policy.toml", "-o", "pack.tar")
    assert refused.exit_code == 2 and "ends in .zip" in " ".join(refused.output.split())
    assert not (folder / "pack.tar").exists()
    assert run("evidence", "policy.toml", "-o", "OTHER.ZIP").exit_code == 0


def test_a_signature_is_named_after_the_pack_as_it_is_written(folder):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen: OpenSSH is not installed")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "officer"], check=True)
    made = run("evidence", "policy.toml", "-o", "pack", "--key", "officer")
    assert made.exit_code == 0 and (folder / "pack.zip.sig").exists()
    assert run("evidence", "--verify", "pack", "released.csv", "--key", "officer.pub").exit_code == 0


def test_a_changed_file_makes_the_exit_code_1(folder):
    assert run("evidence", "policy.toml", "-o", "pack.zip").exit_code == 0
    (folder / "released.csv").write_text((folder / "released.csv").read_text() + "\n\n")
    found = run("evidence", "--verify", "pack.zip", "released.csv")
    assert found.exit_code == 1 and "do not belong together" in found.output
    refused = run("evidence", "policy.toml", "-o", "other.zip")
    assert refused.exit_code == 1 and "has changed since the run" in refused.output
    assert not (folder / "other.zip").exists()


def test_results_as_json(folder):
    made = json.loads(run("evidence", "policy.toml", "--quiet", "--json").stdout)
    assert made["written"] == ["pack.zip"] and set(made["manifest"]["about"]) >= {"release", "original"}
    found = json.loads(run("evidence", "--verify", "pack.zip", "released.csv", "--quiet", "--json").stdout)
    assert found["belongs_together"] and found["smallest_group"] >= 5


def test_a_signature_is_made_and_checked(folder):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen: OpenSSH is not installed")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "officer"], check=True)
    made = run("evidence", "policy.toml", "--key", "officer")
    assert made.exit_code == 0 and "pack.zip.sig" in made.output
    assert run("evidence", "--verify", "pack.zip", "released.csv", "--key", "officer.pub").exit_code == 0
    (folder / "pack.zip.sig").write_text("forged")
    found = run("evidence", "--verify", "pack.zip", "released.csv", "--key", "officer.pub")
    assert found.exit_code == 1 and "is not a signature of the pack" in " ".join(found.output.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["policy.toml", "--for", "sox"], "--for sox"),
        (["policy.toml", "--date", "soon"], "--date soon"),
        (["policy.toml", "--key", "absent"], "--key absent"),
        (["policy.toml", "--with", "policy.toml"], "--with without --verify"),
        (["--verify", "policy.toml", "released.csv"], "not a readable ZIP"),
        (["--verify", "pack.zip", "released.csv", "--for", "edpb"], "--for with --verify"),
        (["absent.toml"], "absent.toml"),
    ],
)
def test_wrong_usage_is_answered_in_words(folder, arguments, words):
    answer = run("evidence", *arguments)
    assert answer.exit_code == 2 and words in " ".join(answer.output.split())


def test_the_help_lists_all_questionnaires():
    shown = " ".join(run("evidence", "--help").output.split())
    assert all(name in shown for name in NAMES) and "sfumato evidence --verify" in HELP


def test_an_audit_judges_the_risk(folder):
    found = run("audit", "people.csv", "released.csv", "--quasi-identifiers", "age,height", "--max-risk", "0.001")
    assert found.exit_code == 1 and "max_risk" in found.output


def test_an_audit_has_the_hashes_of_both_files(folder):
    arguments = ["people.csv", "released.csv", "--quasi-identifiers", "age,height", "-o", "found.json"]
    assert run("audit", *arguments).exit_code == 0
    found = json.loads((folder / "found.json").read_text())
    for file, said in (("people.csv", found["fingerprint"]), ("released.csv", found["outputs"]["release"]["sha256"])):
        assert said == hashlib.sha256((folder / file).read_bytes()).hexdigest()
