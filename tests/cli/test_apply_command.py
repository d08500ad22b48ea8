# SPDX-License-Identifier: Apache-2.0
"""``sfumato apply``: new records through a saved partition, with and without a promise."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from sfumato.criteria.base import saved_fields
from sfumato.files.table_file import read_file

from .conftest import call, people, read_rows, run, run_process, smallest_group

REWRITTEN = ["age", "zip", "hours", "born", "job"]


@pytest.fixture(scope="module")
def partition(people_file, tmp_path_factory):
    path = tmp_path_factory.mktemp("partition") / "partition.json"
    arguments = [
        "--target",
        "wage",
        "--identifiers",
        "name",
        "--model",
        "decision-tree",
        "--k",
        5,
        "--test-fraction",
        0,
    ]
    done = call("anonymize", people_file, *arguments, "--save", path)
    assert done.exit_code == 0, done.output
    return path


@pytest.fixture
def new_file(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(people(80, seed=9), encoding="utf-8", newline="")
    return path


def test_records_get_the_values_of_their_groups_and_no_promise(partition, new_file, people_file, tmp_path):
    output = tmp_path / "out.csv"
    done = run_process("apply", partition, new_file, "-o", output)
    assert done.returncode == 0, done.stderr
    assert "No group size is promised in the new file" in " ".join(done.stdout.split())
    assert "holds" not in done.stdout
    rows = read_rows(output)
    assert len(rows) == 80
    assert "name" not in rows[0]
    known = {row["zip"] for row in read_rows(people_file)}
    assert {row["zip"] for row in rows} <= known
    assert [row["wage"] for row in rows] == [row["wage"] for row in read_rows(new_file)]


def test_applying_to_the_fitted_records_gives_their_release(partition, people_file, tmp_path):
    arguments = [
        "--target",
        "wage",
        "--identifiers",
        "name",
        "--model",
        "decision-tree",
        "--k",
        5,
        "--test-fraction",
        0,
    ]
    call("anonymize", people_file, *arguments, "-o", tmp_path / "released.csv")
    call("apply", partition, people_file, "-o", tmp_path / "applied.csv")
    applied, released = ((tmp_path / name).read_bytes().splitlines() for name in ("applied.csv", "released.csv"))
    assert sorted(applied) == sorted(released)


def test_a_release_of_new_records_holds_k(partition, new_file, tmp_path):
    output = tmp_path / "out.csv"
    done = run("apply", partition, new_file, "--release", "--json", "-o", output)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["holds"] is True
    assert document["k"] == 5
    assert smallest_group(read_rows(output), REWRITTEN) >= 5


def test_a_release_can_ask_for_another_k_and_leave_records_out(partition, new_file, tmp_path):
    output = tmp_path / "out.csv"
    done = call("apply", partition, new_file, "--release", "--k", 9, "--suppression-limit", 0.1, "-o", output)
    assert done.exit_code == 0, done.output
    rows = read_rows(output)
    assert 72 <= len(rows) <= 80
    assert smallest_group(rows, REWRITTEN) >= 9


@pytest.mark.parametrize(("k", "limit", "share"), [(9, 0.1, "fewer"), (2, 0.0, "none")])
def test_the_document_of_a_release_tells_no_count_below_k_either(partition, new_file, tmp_path, k, limit, share):
    output = tmp_path / "out.csv"
    options = ["--release", "--k", k, "--suppression-limit", limit, "--json", "-o", output]
    done = call("apply", partition, new_file, *options)
    assert done.exit_code == 0, done.output
    n_left_out = 80 - len(read_rows(output))
    assert (0 < n_left_out < k) if share == "fewer" else n_left_out == 0
    told = json.loads(done.stdout)["n_suppressed"]
    assert told == (f"fewer than {k}" if share == "fewer" else 0)


def test_a_release_counts_persons_where_asked(partition, tmp_path):
    lines = people(60, seed=4).splitlines()
    source, output = tmp_path / "visits.csv", tmp_path / "out.csv"
    source.write_text("\n".join([lines[0], *(line for line in lines[1:] for _ in range(3))]) + "\n")
    done = call("apply", partition, source, "--release", "--unit", "name", "-o", output)
    assert done.exit_code == 0, done.output
    rows = read_rows(output)
    assert "name" not in rows[0]
    assert smallest_group(rows, REWRITTEN) >= 15  # five persons with three records each
    assert "fewer than 5 persons" in " ".join(done.output.split())


def test_too_few_records_to_release_exit_1_and_write_nothing(partition, tmp_path):
    source = tmp_path / "few.csv"
    source.write_text(people(4, seed=2), newline="")
    done = run("apply", partition, source, "--release", "-o", tmp_path / "out.csv")
    assert done.returncode == 1
    assert "error: fewer than 5 records to release" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["few.csv"]


def test_text_of_digits_is_text_again_though_the_new_file_hides_it(partition, tmp_path):
    # Without a leading zero, nothing in this file says that zip is text; the partition does.
    source = tmp_path / "new.csv"
    text = people(40, seed=5)
    source.write_text(text.replace(";01", ";91"), newline="")
    assert str(read_file(source).table.schema.field("zip").type) == "int64"
    done = call("apply", partition, source, "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output


def test_csv_goes_in_and_parquet_comes_out(partition, new_file, tmp_path):
    done = call("apply", partition, new_file, "-o", tmp_path / "out.parquet")
    assert done.exit_code == 0, done.output
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.num_rows == 80
    assert str(table.schema.field("born").type) == "date32[day]"


def test_a_column_that_points_at_persons_does_not_slip_through(partition, tmp_path):
    lines = people(40, seed=6).splitlines()
    lines = [f"{line};{'ssn' if i == 0 else f'123-{i:04d}'}" for i, line in enumerate(lines)]
    source, output = tmp_path / "new.csv", tmp_path / "out.csv"
    source.write_text("\n".join(lines) + "\n")
    for more in ([], ["--release"]):
        done = call("apply", partition, source, "-o", output, *more)
        assert done.exit_code == 2
        said = " ".join(done.output.split())
        assert "'ssn' would be released unchanged" in said
        assert "List it in --identifiers, or in --keep" in said  # which this command has
        assert not output.exists()
    assert call("apply", partition, source, "-o", output, "--identifiers", "ssn").exit_code == 0
    assert "ssn" not in read_rows(output)[0]
    assert call("apply", partition, source, "-o", output, "--force", "--keep", "ssn,name").exit_code == 0
    assert [row["ssn"] for row in read_rows(output)] == [f"123-{i:04d}" for i in range(1, 41)]
    assert "name" in read_rows(output)[0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--k", "3"], "go with --release"),
        (["--release", "--k", "1"], "expected at least 2"),
        (["--identifiers", "nobody"], "--identifiers names 'nobody'"),
        (["--keep", "age"], "which the partition rewrites"),
        (["--release", "--suppression-limit", "2"], "--suppression-limit 2.0"),
    ],
)
def test_wrong_usage_gets_a_sentence_and_code_2(partition, new_file, tmp_path, arguments, sentence):
    done = call("apply", partition, new_file, "-o", tmp_path / "out.csv", *arguments)
    assert done.exit_code == 2
    assert sentence in " ".join(done.output.split())
    assert not (tmp_path / "out.csv").exists()


def test_a_file_that_is_no_partition_gets_a_sentence(partition, new_file, tmp_path):
    for content, sentence in (
        ("{}", "format"),
        ("[1]", "cannot be read as a partition"),
        ("age;zip", "cannot be read as a partition"),
    ):
        path = tmp_path / "partition.json"
        path.write_text(content)
        done = call("apply", path, new_file, "-o", tmp_path / "out.csv")
        assert done.exit_code == 2
        assert sentence in " ".join(done.output.split())
    done = call("apply", tmp_path / "none.json", new_file, "-o", tmp_path / "out.csv")
    assert (done.exit_code, "does not exist" in done.output) == (2, True)


def test_a_file_without_the_columns_gets_a_sentence(partition, tmp_path):
    source = tmp_path / "new.csv"
    source.write_text("age;job\n30;nurse\n31;clerk\n")
    done = call("apply", partition, source, "-o", tmp_path / "out.csv")
    assert done.exit_code == 2
    assert "lacks 3 of the 5 columns that the partition uses" in " ".join(done.output.split())


def save_with_criteria(anonymizer, path):
    criteria = tuple(saved_fields(criterion) for criterion in anonymizer._all_criteria())
    replace(anonymizer.partition_, criteria=criteria).save(path)


def test_a_partition_saved_by_the_library_is_applied_too(people_file, new_file, tmp_path):
    from sfumato import ModelGuidedAnonymizer

    table = read_file(people_file).table
    labels = table.column("wage").to_pylist()
    anonymizer = ModelGuidedAnonymizer(k=5, identifiers=["name"], keep=["wage"], quasi_identifiers=REWRITTEN)
    save_with_criteria(anonymizer.fit(table, labels), tmp_path / "partition.json")
    assert call("apply", tmp_path / "partition.json", new_file, "-o", tmp_path / "a.csv").exit_code == 0
    done = call("apply", tmp_path / "partition.json", new_file, "--release", "-o", tmp_path / "b.csv")
    assert (done.exit_code, "does not hold its k" in done.output) == (2, True)
    done = call("apply", tmp_path / "partition.json", new_file, "--release", "--k", 5, "-o", tmp_path / "b.csv")
    assert done.exit_code == 0, done.output
    assert smallest_group(read_rows(tmp_path / "b.csv"), REWRITTEN) >= 5


@pytest.fixture
def visits(tmp_path):
    """Records of ten persons with 40 visits each, as a file and as a table."""
    lines = ["age;height;cust;ill"]
    lines += [f"{20 + row // 10};{150 + row % 40};c{row // 40};{'yes' if row % 3 else 'no'}" for row in range(400)]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, read_file(path).table


def test_a_release_promises_no_less_than_the_partition_did(visits, tmp_path):
    from sfumato import LDiversity, MondrianAnonymizer

    path, table = visits
    output, saved = tmp_path / "out.csv", tmp_path / "partition.json"
    save_with_criteria(MondrianAnonymizer(k=5, criteria=[LDiversity(2, "ill")], keep=["cust"]).fit(table), saved)
    done = call("apply", saved, path, "--release", "--k", 5, "-o", output)
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "every group has at least 2 different values of 'ill'" in said and "Release in Python" in said
    assert not output.exists()
    assert call("apply", saved, path, "--keep", "cust", "-o", output).exit_code == 0  # without a promise it may


def test_a_release_counts_persons_where_the_partition_did_or_is_refused(visits, tmp_path):
    from sfumato import KAnonymity, MondrianAnonymizer

    path, table = visits
    output, saved = tmp_path / "out.csv", tmp_path / "partition.json"
    anonymizer = MondrianAnonymizer(k=5, criteria=[KAnonymity(5, unit="cust")], quasi_identifiers=["age", "height"])
    save_with_criteria(anonymizer.fit(table), saved)
    done = call("apply", saved, path, "--release", "--k", 5, "-o", output)
    said = " ".join(done.output.split())
    assert (done.exit_code, "at least 5 different persons" in said, "Pass --unit" in said) == (2, True, True)
    assert not output.exists()
    done = call("apply", saved, path, "--release", "--k", 5, "--unit", "cust", "--keep", "cust", "-o", output)
    assert done.exit_code == 0, done.output
    persons = {}
    for row in read_rows(output):
        persons.setdefault((row["age"], row["height"]), set()).add(row["cust"])
    assert min(map(len, persons.values())) >= 5
