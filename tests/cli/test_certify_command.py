# SPDX-License-Identifier: Apache-2.0
"""``sfumato certify`` bounds any attacker by a saved artifact and a file, and refuses people who were used."""

import json
import stat

import pytest

from cli.conftest import call, people
from sfumato import Anatomizer, Generalization, Partition
from sfumato.fingerprints import fingerprints_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certify")
    (folder / "people.csv").write_text(people(400, 0), encoding="utf-8", newline="")
    (folder / "others.csv").write_text(people(1_500, 1), encoding="utf-8", newline="")
    done = call(
        "anonymize", folder / "people.csv", "-k", 20, "--quasi-identifiers", "age,zip,hours,born", "--identifiers",
        "name", "--method", "mondrian", "-o", folder / "released.csv", "--save", folder / "partition.json", "-q",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    done = call(
        "minimize", folder / "people.csv", "--target", "wage", "--personal", "job", "--method", "uniform",
        "--identifiers", "name,born", "-o", folder / "generalization.json", "-q",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize("name", ["partition.json", "generalization.json"])
def test_commands_write_fingerprints_beside_their_documents_for_the_owner_alone(folder, name):
    beside = fingerprints_path(folder / name)
    assert stat.S_IMODE(beside.stat().st_mode) == 0o600
    loaded = (Partition if name == "partition.json" else Generalization).load(folder / name)
    assert loaded.fingerprints.n_records == (400 if name == "partition.json" else 280)


def test_a_partition_is_certified(folder):
    done = call("certify", folder / "partition.json", folder / "others.csv", "--secrets", "job,wage", "--json", "-q")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["holds"] and found["overlap_checked"] and found["n_records"] == 1_500
    assert 0.25 < found["secrets"]["job"]["upper"] < 0.45
    assert found["secrets"]["wage"]["upper"] > 0.7  # age and hours make the wage


def test_the_table_shows_both_ends_and_what_they_rest_on(folder):
    done = call(
        "certify", folder / "generalization.json", folder / "others.csv", "--secrets", "age", "--tolerance", "age=3"
    )
    assert done.exit_code == 0, done.output
    words = " ".join(done.stdout.split())
    assert "age ±3" in words and "at least" in words
    assert "Bounds are averages over people." in words and "No limit was set" in words


def test_a_limit_gives_a_verdict_and_an_exit_code(folder):
    arguments = ["certify", folder / "partition.json", folder / "others.csv", "--secrets", "job", "-q"]
    passed, failed = (call(*arguments, "--max-advantage", limit) for limit in (0.5, 0.001))
    assert passed.exit_code == 0 and "Certified: " in passed.stdout
    assert failed.exit_code == 1 and "Not certified: " in failed.stdout


def test_the_people_of_the_artifact_are_refused(folder):
    done = call("certify", folder / "partition.json", folder / "people.csv", "--secrets", "job")
    assert done.exit_code == 2
    assert "were used to make the artifact" in done.stderr


def test_an_anatomized_table_needs_no_holdout(folder, tmp_path):
    import pyarrow as pa

    town = pa.table({"age": list(range(40)), "ill": ["flu", "cold", "gout", "none"] * 10})
    Anatomizer(l=2, sensitive="ill", random_state=0).fit_transform(town).save(tmp_path / "tables")
    done = call("certify", tmp_path / "tables", "--json", "-q")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["secrets"]["ill"]["upper"] <= 0.5
    refused = call("certify", tmp_path / "tables", folder / "others.csv")
    assert refused.exit_code == 2 and "exact for the people inside" in refused.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--secrets", "jobs"], "jobs"),
        (["--secrets", "job", "--known", "cars"], "cars"),
        (["--secrets", "age", "--tolerance", "age=wide"], "expected a number, for example --tolerance age=3"),
        (["--secrets", "job", "--max-advantage", "7"], "expected a share from 0 to 1"),
        (["--secrets", "job", "--confidence", "1"], "expected a share between 0 and 1"),
        ([], "expected the columns that an attacker wants to guess"),
    ],
)
def test_wrong_options_are_explained(folder, options, message):
    done = call("certify", folder / "partition.json", folder / "others.csv", *options)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_a_document_without_a_holdout_is_refused(folder):
    done = call("certify", folder / "partition.json", "--secrets", "job")
    assert done.exit_code == 2
    assert "without holdout: expected a file of people" in " ".join(done.stderr.split())


# -- policies ------------------------------------------------------------------------------------------------------

POLICY = """version = 1
[data]
file = "people.csv"
release = "out.csv"
artifact = "out.json"
{holdout}
[columns]
identifiers = ["name"]
quasi_identifiers = ["age", "zip", "hours", "born"]
sensitive = ["job"]
[method]
name = "mondrian"
k = 20
[audit]
level = "none"
[gate]
min_k = 20
{gate}
"""


def policy(folder, holdout='holdout = "others.csv"', gate="max_certified_advantage = 0.3"):
    path = folder / "policy.toml"
    path.write_text(POLICY.format(holdout=holdout, gate=gate), encoding="utf-8")
    return path


def test_a_policy_certifies_its_release_and_its_gate_judges_it(folder):
    done = call("run", policy(folder), "--json", "-q", "--force")
    assert done.exit_code == 0, done.output
    audit = json.loads((folder / "audit.json").read_text())
    gate = {check["name"]: check for check in audit["gate"]}
    assert gate["max_certified_advantage"]["passed"]
    assert gate["max_certified_advantage"]["measured"] == audit["certificate"]["advantage"]
    assert audit["certificate"]["overlap_checked"] and list(audit["certificate"]["secrets"]) == ["job"]
    assert "Any attacker" in (folder / "report.html").read_text(encoding="utf-8")
    assert fingerprints_path(folder / "out.json").exists()


def test_a_gate_that_is_not_met_releases_nothing_and_says_what_to_try(folder):
    for name in ("out.csv", "out.json", "out.fingerprints", "audit.json", "report.html"):
        (folder / name).unlink(missing_ok=True)
    done = call("run", policy(folder, gate="max_certified_advantage = 0.001"), "-q")
    assert done.exit_code == 1
    words = " ".join(done.stdout.split())
    assert "any attacker has an advantage of at most" in words and "more holdout records narrow the bound" in words
    assert not (folder / "out.csv").exists() and not (folder / "out.fingerprints").exists()


@pytest.mark.parametrize(
    ("holdout", "gate", "message"),
    [
        ("", "max_certified_advantage = 0.1", "without a holdout: expected people who are not in the table"),
        ('holdout = "people.csv"', "", "were used to make the artifact"),
        ('holdout = "nobody.csv"', "", "nobody.csv"),
    ],
)
def test_a_policy_without_people_set_aside_is_refused(folder, holdout, gate, message):
    done = call("run", policy(folder, holdout, gate), "-q", "--force")
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
