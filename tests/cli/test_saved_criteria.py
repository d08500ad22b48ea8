# SPDX-License-Identifier: Apache-2.0
"""'sfumato apply' reads the promises of a saved partition as data, and releases nothing with one that has none."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.auditing.saved_documents import check_promises, load_partition
from sfumato.cli.application import application
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


def test_a_promise_beyond_numbers_is_refused(people: Path):
    with pytest.raises(ParameterError, match="promises more than numbers of records and persons: every group has"):
        check_promises(load_partition(saved(people, "--sensitive", "illness", "--l", "2")))


def test_a_number_of_records_is_a_promise_that_can_be_kept(people: Path):
    check_promises(load_partition(saved(people)))


def test_a_promise_about_persons_needs_their_column(people: Path):
    from dataclasses import replace

    found = load_partition(saved(people, "--unit", "person"))
    check_promises(found)
    with pytest.raises(ParameterError, match="Pass unit"):
        check_promises(replace(found, unit=None))


@pytest.mark.parametrize("promised", [(), ("--sensitive", "illness", "--l", "2")])
def test_a_partition_without_criteria_is_not_released_with(people: Path, promised):
    from typer.testing import CliRunner

    path, output = as_before(saved(people, *promised)), people.with_name("out.csv")
    given = ["apply", str(path), str(people), "-o", str(output), "--keep", "illness,person", "--quiet"]
    refused = CliRunner().invoke(application, [*given, "--release"])
    assert refused.exit_code == 2
    assert "saved without its criteria" in refused.output and "Save it again" in refused.output
    assert not output.exists()
    assert CliRunner().invoke(application, given).exit_code == 0  # recoding promises nothing


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
