# SPDX-License-Identifier: Apache-2.0
"""Commands that work through a Parquet file piece by piece write and say what they do with the table in memory."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli import out_of_core

from .conftest import call


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """People with everything a table of people has."""
    random = np.random.default_rng(0)
    n = 600
    age = random.integers(18, 90, n)
    hours = random.integers(10, 60, n) + random.integers(0, 2, n) * 0.5
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    table = pa.table(
        {
            "name": [f"Person {place}" for place in range(n)],
            "age": pa.array(age, mask=np.arange(n) % 17 == 0),
            "hours": hours,
            "job": pa.array(random.choice(["nurse", "teacher", "smith"], n)).dictionary_encode(),
            "illness": random.choice(["flu", "cold", "gout", "none"], n),
            "wage": np.where(age + hours + random.normal(0, 8, n) > 90, "high", "low"),
        }
    )
    pq.write_table(table, path, row_group_size=200)
    return path


def said(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    del document["seconds"]
    return document


def both(*arguments: object) -> list[dict[str, Any]]:
    return [said(call(*arguments, "--json", "--quiet", where)) for where in ("--in-memory", "--out-of-core")]


def test_measure_says_the_same(file):
    one, other = both("measure", file, "--quasi-identifiers", "age,job", "--sensitive", "illness")
    assert one["k"] == other["k"]
    assert one["groups"] == other["groups"]
    assert one["ranking"] == other["ranking"]
    assert [part["value"] for part in one["criteria"]] == pytest.approx([part["value"] for part in other["criteria"]])


def test_a_population_in_parquet_is_worked_through_as_well(file, tmp_path: Path):
    people = pq.read_table(file)
    pq.write_table(pa.concat_tables([people, people]), tmp_path / "register.parquet")
    one, other = both("measure", file, "--quasi-identifiers", "age,job", "--population", tmp_path / "register.parquet")
    assert one["journalist"] == other["journalist"]


def test_a_verdict_of_measure_is_the_same(file):
    asked = ("measure", file, "--quasi-identifiers", "age,job", "--min-k", 5, "--out-of-core")
    assert call(*asked).exit_code == 1


def test_anatomize_writes_the_same_files(file, tmp_path: Path):
    for where, folder in (("--in-memory", "one"), ("--out-of-core", "other")):
        done = call(
            "anatomize", file, "--sensitive", "illness", "--identifiers", "name", "--l", 3, "--seed", 5, "--no-attack",
            "-o", tmp_path / folder, where,
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    for name in ("identifying.parquet", "sensitive.parquet"):
        one, other = (pq.read_table(tmp_path / folder / name) for folder in ("one", "other"))
        assert one.column_names == other.column_names
        for column in one.column_names:
            assert one[column].to_pylist() == other[column].to_pylist()
    manifests = [json.loads((tmp_path / folder / "manifest.json").read_text()) for folder in ("one", "other")]
    assert manifests[0] == manifests[1]
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [
        "identifying.parquet", "manifest.json", "sensitive.parquet"
    ]  # fmt: skip


def test_anatomize_says_that_attacks_need_memory_and_leaves_nothing_where_it_fails(file, tmp_path: Path):
    asked = ("anatomize", file, "--sensitive", "illness", "-o", tmp_path / "out", "--out-of-core")
    done = call(*asked, "--l", 9)
    assert done.exit_code == 1
    assert list(tmp_path.iterdir()) == []
    done = call(*asked)
    assert done.exit_code == 0
    assert "none was made" in done.stderr


# -- the choice -------------------------------------------------------------------------------------------------


def test_a_file_that_needs_too_much_memory_is_worked_through_and_a_line_says_so(file, monkeypatch):
    asked = ("measure", file, "--quasi-identifiers", "age,job")
    assert "piece by piece" not in call(*asked).stderr
    monkeypatch.setattr(out_of_core, "memory_bytes", lambda: 100_000)
    done = call(*asked)
    assert done.exit_code == 0
    assert "worked through piece by piece" in " ".join(done.stderr.split())
    assert "piece by piece" not in call(*asked, "--in-memory").stderr


def test_memory_is_known_here():
    found = out_of_core.memory_bytes()
    assert found is not None
    assert found > 2**28


def test_a_csv_file_cannot_be_worked_through(tmp_path: Path):
    (tmp_path / "people.csv").write_text("age,sex\n30,f\n40,m\n")
    done = call("measure", tmp_path / "people.csv", "--out-of-core")
    assert done.exit_code == 2
    assert "Parquet" in done.stderr


def test_a_damaged_file_is_said_to_be_one(tmp_path: Path, monkeypatch):
    (tmp_path / "people.parquet").write_bytes(b"PAR1 and no more")
    for more in ([], ["--out-of-core"]):
        done = call("measure", tmp_path / "people.parquet", *more)
        assert done.exit_code == 2
        assert "people.parquet" in done.stderr
