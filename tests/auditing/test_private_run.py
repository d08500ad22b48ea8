# SPDX-License-Identifier: Apache-2.0
"""A policy with a mechanism: the release is entered in the ledger first, and nothing is written beyond the budget."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from typer.testing import CliRunner

import sfumato
from sfumato import GuaranteeError, InputError, MondrianAnonymizer, ParameterError, Policy, PrivacyLedger
from sfumato.cli.application import application

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")

POLICY = """
version = 1

[data]
file = "people.csv"
release = "released.csv"

[columns]
target = "ill"
identifiers = ["name"]

[privacy]
mechanism = "counts"
epsilon = 0.75
partition = "partition.json"
labels = ["no", "yes"]
ledger = "ledger.json"
budget_epsilon = 1.0
"""


def people(n, seed):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": random.integers(18, 90, n),
            "city": random.choice(["Bari", "Rome"], n),
            "pay": random.integers(10_000, 99_999, n),
            "ill": random.choice(["no", "yes"], n),
        }
    )


@pytest.fixture
def folder(tmp_path):
    others = people(500, 0).drop(columns=["name", "ill"])
    MondrianAnonymizer(k=20).fit(others).partition_.save(tmp_path / "partition.json")
    people(400, 1).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def files_of(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_run_releases_and_enters_it(folder):
    done = sfumato.run(folder / "policy.toml")
    read = pyarrow.csv.read_csv(folder / "released.csv")
    assert read.column_names == ["age", "city", "pay", "ill"]
    assert read.num_rows == done.release.num_rows
    assert 300 < read.num_rows < 520
    assert set(read.column("ill").to_pylist()) == {"no", "yes"}
    assert [path.name for path in done.written] == ["released.csv", "audit.json", "report.html"]
    assert done.passed is None
    ledger = PrivacyLedger(folder / "ledger.json")
    assert [entry.privacy.epsilon for entry in ledger.entries] == [0.75]
    audit = json.loads((folder / "audit.json").read_text())
    assert "epsilon 0.75" in audit["guarantees"][0]
    assert "together have epsilon 0.75" in (folder / "report.html").read_text()


def test_the_report_tells_nothing_that_the_release_does_not_tell(folder):
    sfumato.run(folder / "policy.toml")
    audit = json.loads((folder / "audit.json").read_text())
    released = pyarrow.csv.read_csv(folder / "released.csv")
    assert audit["n_records"] == audit["n_released"] == released.num_rows  # not 400, unless the noise says so
    assert (audit["fingerprint"], audit["columns"], audit["risks"], audit["utility"]) == ("", [], [], None)


def test_the_form_of_the_files_tells_nothing_of_the_records(folder):
    """One name with an umlaut in an old encoding changes how the source is read, and nothing of what is written."""
    sfumato.run(folder / "policy.toml")
    plain = (folder / "released.csv").read_bytes()
    (folder / "ledger.json").unlink()
    source = people(400, 1)
    source.loc[0, "name"] = "J\u00fcrgen"
    (folder / "people.csv").write_bytes(source.to_csv(index=False, sep=";").encode("cp1252"))
    sfumato.run(folder / "policy.toml", force=True)
    again = (folder / "released.csv").read_bytes()
    assert again.splitlines()[0] == plain.splitlines()[0] == b"age,city,pay,ill"
    again.decode("ascii")
    audit, report = json.loads((folder / "audit.json").read_text()), (folder / "report.html").read_text()
    assert audit["seconds"] == 0.0  # a table with more records takes longer
    assert "time taken" not in report


def test_a_crash_after_spending_costs_budget_and_releases_nothing(folder, monkeypatch):
    def crash(*args, **kwargs):
        raise OSError("power failure")

    monkeypatch.setattr("sfumato.auditing.private_run.write_judged", crash)
    with pytest.raises(OSError, match="power failure"):
        sfumato.run(folder / "policy.toml")
    monkeypatch.undo()
    assert "released.csv" not in files_of(folder)
    assert PrivacyLedger(folder / "ledger.json").total().epsilon == 0.75
    with pytest.raises(GuaranteeError, match=r"to epsilon 1\.5"):
        sfumato.run(folder / "policy.toml")


@pytest.mark.thorough
def test_of_two_runs_at_once_one_is_refused(folder):
    """The budget covers one of two: whichever reads the ledger first."""
    outputs = {}
    running = []
    for name in ("a", "b"):
        policy = POLICY.replace("released.csv", f"{name}.csv").replace(
            "[columns]", f'report = "{name}.html"\naudit = "{name}.json"\n\n[columns]'
        )
        (folder / f"{name}.toml").write_text(policy)
        command = [sys.executable, "-m", "sfumato", "run", str(folder / f"{name}.toml")]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for name, process in zip("ab", running, strict=True):
        outputs[name] = process.communicate(timeout=240)[0], process.returncode
    refused = [name for name, (_, code) in outputs.items() if code != 0]
    assert len(refused) == 1, outputs
    said = " ".join(outputs[refused[0]][0].split())
    assert "expected at most epsilon 1" in said
    assert "About epsilon 0.25 is left" in said
    assert not (folder / f"{refused[0]}.csv").exists()
    assert len(PrivacyLedger(folder / "ledger.json").entries) == 1


def test_a_damaged_ledger_stops_the_command_in_words(folder):
    (folder / "ledger.json").write_text('{"format": "sfumato-ledger", "version": 1, "entries": [')
    result = CliRunner().invoke(application, ["run", str(folder / "policy.toml")])
    assert result.exit_code != 0
    said = " ".join(result.output.split())
    assert "ledger.json" in said
    assert "cannot be read as a privacy ledger" in said
    assert "released.csv" not in files_of(folder)


def test_a_release_beyond_the_budget_writes_nothing(folder):
    sfumato.run(folder / "policy.toml")
    before = {name: (folder / name).read_bytes() for name in files_of(folder)}
    with pytest.raises(GuaranteeError, match=r"to epsilon 1.5, .*expected at most epsilon 1"):
        sfumato.run(folder / "policy.toml", force=True)
    assert {name: (folder / name).read_bytes() for name in files_of(folder)} == before


def test_the_command_says_why_nothing_is_released(folder):
    (folder / "policy.toml").write_text(POLICY.replace("epsilon = 0.75", "epsilon = 3.5"))
    result = CliRunner().invoke(application, ["run", str(folder / "policy.toml")])
    assert result.exit_code != 0
    assert "expected at most epsilon 1" in " ".join(result.output.split())
    assert files_of(folder) == ["partition.fingerprints", "partition.json", "people.csv", "policy.toml"]


def test_a_dry_run_spends_nothing(folder):
    result = CliRunner().invoke(application, ["run", "--dry-run", str(folder / "policy.toml")])
    assert result.exit_code == 0
    assert "counts with epsilon 0.75" in result.output
    assert "ledger.json" not in files_of(folder)


def test_a_partition_of_the_same_people_is_refused(folder):
    same = people(400, 1).drop(columns=["name", "ill"])
    MondrianAnonymizer(k=20).fit(same).partition_.save(folder / "partition.json")
    with pytest.raises(InputError, match="were used to make the artifact"):
        sfumato.run(folder / "policy.toml")
    assert "ledger.json" not in files_of(folder)


def test_without_fingerprints_a_statement_is_needed(folder):
    (folder / "partition.fingerprints").unlink()
    with pytest.raises(ParameterError, match="nothing shows on whom it was fitted"):
        sfumato.run(folder / "policy.toml")
    (folder / "policy.toml").write_text(POLICY + 'fitted_on = "others"\n')
    assert "your statement that the partition" in sfumato.run(folder / "policy.toml").audit.guarantees[0]


def test_samples_and_persons(folder):
    table = people(3000, 2).assign(person=np.arange(3000) // 2)
    policy = Policy.of(
        columns={"target": "ill", "identifiers": ["name"], "unit": "person"},
        privacy={
            "mechanism": "sample", "epsilon": 2.0, "rate": 0.5, "k": 5, "most_per_person": 1,
            "partition": str(folder / "partition.json"),
        },
    )  # fmt: skip
    done = sfumato.run(policy, table=table)
    assert 300 < done.release.num_rows < 1000  # half of one record per person
    assert done.written == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('mechanism = "counts"\n', "", "epsilon without a mechanism"),
        ("epsilon = 0.75\n", "", "epsilon: not given, and the mechanism counts needs it"),
        ('labels = ["no", "yes"]\n', "", "labels: not given"),
        ('ledger = "ledger.json"\n', "", "budget_epsilon without a ledger"),
        ("budget_epsilon = 1.0", "budget_delta = 1e-6", "budget_delta without budget_epsilon"),
        ("budget_epsilon = 1.0", "rate = 0.1", "rate with the mechanism counts"),
        ("budget_epsilon = 1.0", "most_per_person = 2", "expected both or neither"),
        ("budget_epsilon = 1.0", "[gate]\nmin_k = 5", "min_k with a mechanism"),
        ('mechanism = "counts"', 'mechanism = "noise"', "expected one of counts, sample"),
    ],
)
def test_bad_policies_are_explained(folder, old, new, said):
    assert old in POLICY
    (folder / "policy.toml").write_text(POLICY.replace(old, new))
    with pytest.raises(ParameterError, match=said):
        Policy.read(folder / "policy.toml")


def test_unknown_columns_and_other_budgets_are_explained(folder):
    (folder / "policy.toml").write_text(POLICY.replace('["name"]', '["nmae"]'))
    with pytest.raises(ParameterError, match="nmae"):
        sfumato.run(folder / "policy.toml")
    (folder / "policy.toml").write_text(POLICY)
    sfumato.run(folder / "policy.toml")
    (folder / "policy.toml").write_text(POLICY.replace("budget_epsilon = 1.0", "budget_epsilon = 9.0"))
    with pytest.raises(ParameterError, match="a budget of epsilon 9 and delta 0 for a ledger with epsilon 1"):
        sfumato.run(folder / "policy.toml", force=True)
