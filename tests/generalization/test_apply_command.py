# SPDX-License-Identifier: Apache-2.0
"""``sfumato apply generalization.json FILE``: files of people become files of buckets."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from cli.conftest import call, people, read_rows, run
from sfumato.backends.memory import MemorySource
from sfumato.files.table_file import read_file
from sfumato.frames import read_table
from sfumato.generalization import generalization_from_bins

NAMES = ["age", "zip", "hours", "born", "job"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apply")
    (folder / "people.csv").write_text(people(), encoding="utf-8", newline="")
    (folder / "new.csv").write_text(people(60, seed=3), encoding="utf-8", newline="")
    return folder


@pytest.fixture(scope="module")
def made(folder):
    table = read_file(folder / "people.csv").table
    source = MemorySource(read_table(table), NAMES)
    buckets = [np.arange(c.bins.n_bins) * (1 if c.name == "born" else 3) // c.bins.n_bins for c in source.columns]
    return generalization_from_bins(source.columns, buckets, floor=1)


@pytest.fixture(scope="module")
def document(folder, made):
    path = folder / "generalization.json"
    path.write_text(made.to_json(), encoding="utf-8")
    return path


@pytest.mark.parametrize("values", ["labels", "codes", "representatives"])
def test_a_file_becomes_its_buckets(folder, made, document, tmp_path, values):
    output = tmp_path / "out.csv"
    done = call("apply", document, folder / "new.csv", "-o", output, "--identifiers", "name", "--values", values)
    assert done.exit_code == 0, done.output
    table = read_file(folder / "new.csv").table.drop_columns(["name"])
    expected = made.transform(table, values).to_pydict()
    rows = read_rows(output)
    assert list(rows[0]) == [*NAMES, "wage"]
    assert len(rows) == 60
    for name in ("age", "zip", "job", "wage"):
        assert [row[name] for row in rows] == ["" if v is None else str(v) for v in expected[name]]


def test_labels_are_what_comes_unless_asked_otherwise(folder, document, tmp_path):
    output = tmp_path / "out.csv"
    done = run("apply", document, folder / "new.csv", "-o", output, "--identifiers", "name")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "attributes 5, of which 4 are collected" in said
    assert "No group size is promised" in said
    assert {row["born"] for row in read_rows(output)} == {"not collected"}


def test_parquet_and_json_come_out_where_asked(folder, made, document, tmp_path):
    output = tmp_path / "out.parquet"
    arguments = ["-o", output, "--identifiers", "name", "--values", "codes", "--json"]
    done = call("apply", document, folder / "new.csv", *arguments)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["fingerprint"] == made.fingerprint
    assert said["passed_through"] == ["wage"]
    table = read_file(folder / "new.csv").table
    written = pq.read_table(output)
    assert np.array_equal(np.column_stack([written[name] for name in NAMES]), made.codes(table))


def test_what_is_not_collected_may_be_absent_from_the_file(folder, document, tmp_path):
    source, output = tmp_path / "short.csv", tmp_path / "out.csv"
    lines = [line.split(";") for line in people(30, seed=4).splitlines()]
    source.write_text("\n".join(";".join(line[:4] + line[5:]) for line in lines) + "\n", encoding="utf-8")
    done = call("apply", document, source, "-o", output, "--identifiers", "name")
    assert done.exit_code == 0, done.output
    assert "born" not in read_rows(output)[0]


def test_a_column_that_points_at_persons_does_not_slip_through(folder, document, tmp_path):
    output = tmp_path / "out.csv"
    done = call("apply", document, folder / "new.csv", "-o", output)
    assert done.exit_code == 2
    assert "'name'" in " ".join(done.output.split())
    assert not output.exists()
    done = call("apply", document, folder / "new.csv", "-o", output, "--keep", "name")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--release"], "go with a partition"),
        (["--k", 5], "go with a partition"),
        (["--identifiers", "age"], "which the generalization rewrites"),
        (["--keep", "shoe"], "shoe"),
        (["--values", "names"], "names"),
    ],
)
def test_options_that_make_no_sense_exit_2(folder, document, tmp_path, arguments, message):
    done = call("apply", document, folder / "new.csv", "-o", tmp_path / "out.csv", *arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "out.csv").exists()


def test_a_file_of_something_else_is_refused(document, tmp_path):
    source = tmp_path / "other.csv"
    source.write_text("a,b\n1,2\n3,4\n")
    done = call("apply", document, source, "-o", tmp_path / "out.csv")
    assert done.exit_code == 2
    assert "none of the attributes of the generalization" in " ".join(done.output.split())


def test_a_changed_document_is_refused(folder, document, tmp_path):
    changed = tmp_path / "changed.json"
    changed.write_text(document.read_text(encoding="utf-8").replace('"teacher"', '"Teacher"'), encoding="utf-8")
    assert changed.read_text() != document.read_text()
    done = call("apply", changed, folder / "new.csv", "-o", tmp_path / "out.csv")
    assert done.exit_code == 2
    assert "fingerprint" in " ".join(done.output.split())


def test_values_go_with_generalizations_only(folder, tmp_path):
    partition = tmp_path / "partition.json"
    partition.write_text('{"format": "sfumato-partition", "version": 1}')
    done = call("apply", partition, folder / "new.csv", "-o", tmp_path / "out.csv", "--values", "codes")
    assert done.exit_code == 2
    assert "--values goes with a generalization" in " ".join(done.output.split())
