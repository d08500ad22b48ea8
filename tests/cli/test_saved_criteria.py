# SPDX-License-Identifier: Apache-2.0
"""'sfumato apply' reads from a saved partition what it promises, as data; older ones are read by their sentences."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.cli.application import application
from sfumato.cli.apply_partition import check_promises, load_partition
from sfumato.errors import InputError, ParameterError

COLUMNS = ["--quasi-identifiers", "age,town", "--keep", "illness,person"]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    table = pa.table(
        {
            "age": random.integers(20, 60, 200),
            "town": random.choice(["A", "B"], 200),
            "illness": random.choice(["cold", "flu"], 200),
            "person": np.arange(200),
        }
    )
    pyarrow.csv.write_csv(table, tmp_path / "people.csv")
    return tmp_path / "people.csv"


def saved(people: Path, *options: str) -> Path:
    from typer.testing import CliRunner

    path = people.with_name("partition.json")
    given = ["anonymize", str(people), "--k", "5", *COLUMNS, "--save", str(path), "--quiet", *options]
    done = CliRunner().invoke(application, given)
    assert done.exit_code == 0, done.output
    return path


def as_before(path: Path) -> Path:
    """Write the document as it was before criteria were saved as data."""
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["criteria"]
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_saved_partition_has_its_criteria_as_data(people: Path):
    document = json.loads(saved(people, "--sensitive", "illness", "--l", "2").read_text(encoding="utf-8"))
    assert document["criteria"] == [
        {"name": "k-anonymity", "k": 5},
        {"name": "l-diversity", "l": 2, "sensitive": "illness", "kind": "distinct", "missing": "value"},
    ]
    assert len(document["guarantees"]) == 2


@pytest.mark.parametrize("older", [False, True])
def test_a_promise_beyond_numbers_is_refused(people: Path, older: bool):
    path = saved(people, "--sensitive", "illness", "--l", "2")
    with pytest.raises(ParameterError, match="promises more than numbers of records and persons: every group has"):
        check_promises(load_partition(as_before(path) if older else path))


@pytest.mark.parametrize("older", [False, True])
def test_a_number_of_records_is_a_promise_that_can_be_kept(people: Path, older: bool):
    path = saved(people)
    check_promises(load_partition(as_before(path) if older else path))


@pytest.mark.parametrize("older", [False, True])
def test_a_promise_about_persons_needs_their_column(people: Path, older: bool):
    from dataclasses import replace

    path = saved(people, "--unit", "person")
    found = load_partition(as_before(path) if older else path)
    check_promises(found)
    with pytest.raises(ParameterError, match="Give --unit COLUMN"):
        check_promises(replace(found, unit=None))


def test_the_sentence_plays_no_part_where_there_is_data(people: Path):
    path = saved(people)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["guarantees"] = ["jede Gruppe hat mindestens 5 Personen"]
    path.write_text(json.dumps(document), encoding="utf-8")
    check_promises(load_partition(path))


@pytest.mark.parametrize("wrong", [[{"name": "k-anonymity"}] * 2, [{"k": 5}], ["k-anonymity"], "k-anonymity"])
def test_damaged_criteria_are_refused(people: Path, wrong):
    path = saved(people)
    document = json.loads(path.read_text(encoding="utf-8")) | {"criteria": wrong}
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match="a partition document"):
        load_partition(path)
