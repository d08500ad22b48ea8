# SPDX-License-Identifier: Apache-2.0
"""Commands and policies read tables of DuckDB by their addresses, as they read the same table from a file."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato import Policy
from sfumato.auditing.policy_job import open_job
from sfumato.cli.application import application
from sfumato.cli.console import Console
from sfumato.datasets import load_adult

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
COLUMNS = ["age", "sex", "race", "education", "hours-per-week", "occupation", "income"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the same table in DuckDB and in Parquet."""
    people = load_adult(as_frame="pyarrow").frame.select(COLUMNS).slice(0, 600)  # noqa: F841 - in SQL
    with duckdb.connect(tmp_path / "people.db") as connection:
        connection.execute("create table people as from people")
        connection.execute(f"copy people to '{tmp_path / 'people.parquet'}'")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Any:
    found = CliRunner().invoke(application, [*arguments, "--json"])
    assert found.exit_code == code, found.output
    return json.loads(found.stdout) if code == 0 else " ".join(found.output.split())


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in ("file", "seconds", "output", "written")}


ADDRESSES = [
    "duckdb:people.db?table=people",
    "duckdb:people.db?query=select * from people",
    "duckdb:people.db?query=from%20people",
]


@pytest.mark.parametrize("how", ["--in-memory", "--out-of-core"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_table_is_measured_as_its_file_is(address: str, how: str):
    asked = ["--quasi-identifiers", "age,sex,race", "--sensitive", "occupation"]
    found = run("measure", address, *asked, how)
    assert without_times(found) == without_times(run("measure", "people.parquet", *asked, how))
    assert found["file"] == address


@pytest.mark.parametrize("how", ["--in-memory", "--out-of-core"])
def test_a_table_is_anonymized_and_recoded_as_its_file_is(how: str):
    asked = ["--method", "mondrian", "--keep-order", "--test-fraction", "0", how]
    for name, source in {"one": ADDRESSES[0], "other": "people.parquet"}.items():
        run("anonymize", source, *asked, "-o", f"{name}.parquet", "--save", f"{name}.json")
    assert pq.read_table("one.parquet").to_pylist() == pq.read_table("other.parquet").to_pylist()
    run("apply", "one.json", ADDRESSES[1], "-o", "applied.parquet", how)
    run("apply", "one.json", "people.parquet", "-o", "applied-file.parquet", how)
    assert pq.read_table("applied.parquet").to_pylist() == pq.read_table("applied-file.parquet").to_pylist()


@pytest.mark.parametrize("how", ["--in-memory", "--out-of-core"])
def test_a_table_is_anatomized_as_its_file_is(how: str):
    asked = ["--sensitive", "occupation", "--l", "3", "--seed", "1", "--no-attack", how]
    run("anatomize", ADDRESSES[0], *asked, "-o", "one")
    run("anatomize", "people.parquet", *asked, "-o", "other")
    for name in ("identifying", "sensitive"):
        assert pq.read_table(f"one/{name}.parquet").to_pylist() == pq.read_table(f"other/{name}.parquet").to_pylist()


def test_a_population_may_be_a_table():
    asked = ["--quasi-identifiers", "age,sex", "--population"]
    for how in ("--in-memory", "--out-of-core"):
        found = run("measure", "duckdb:?query=from 'people.parquet' limit 100", *asked, ADDRESSES[0], how)
        assert found["uniqueness"]["population_size"] == 600


def test_a_policy_names_a_table_relative_to_itself(folder: Path):
    (folder / "policies").mkdir()
    run("init", ADDRESSES[0], "--target", "income", "-o", "policies/policy.toml")
    text = (folder / "policies" / "policy.toml").read_text(encoding="utf-8")
    assert 'file = "duckdb:../people.db?table=people"' in text
    assert 'release = "people-released.parquet"' in text
    job = open_job(Console(quiet=True), Policy.read("policies/policy.toml"))
    assert job.source.table.num_rows == 600
    assert job.source.name == "people"


@pytest.mark.parametrize(
    ("arguments", "expected_words"),
    [
        (["measure", "duckdb:people.db"], "names no table and no query"),
        (["measure", "duckdb:people.db?table=persons"], "'people.db' has no table or view named 'persons'"),
        (["measure", "duckdb:none.db?table=people"], "'none.db' does not exist"),
        (["measure", "duckdb:people.db?table=people", "--types", "age=text"], "table of a database, which has its own"),
        (["measure", "duckdb:people.db?table=people", "--target", "nobody"], "--target names 'nobody'"),
        (["anonymize", "duckdb:people.db?table=people", "-o", "duckdb:out.db?table=a"], "expected a file"),
        (["anonymize", "duckdb:people.db?table=people", "-o", "people.db", "--force"], "is the input itself"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], expected_words: str):
    said = run(*arguments, code=2).replace("│ ", "").replace(" │", "")
    assert expected_words in said
