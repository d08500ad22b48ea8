# SPDX-License-Identifier: Apache-2.0
"""A policy with a mechanism: the release is entered in the ledger first, and nothing is written beyond the budget."""

import json

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
