# SPDX-License-Identifier: Apache-2.0
"""Names on the command line mean the columns that are called exactly that."""

import pytest

from sfumato.errors import ParameterError
from sfumato.files.column_names import split_names

from .conftest import call, read_rows

COLUMNS = ["age", "age ", " ", "zip", 'a"b', "city, state"]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("age,zip", ["age", "zip"]),
        ("age , zip", None),
        ("zip , age", ["zip", "age"]),
        ('"age ",zip', ["age ", "zip"]),
        ('" "', [" "]),
        (" ", [" "]),
        ("zip, ", ["zip", " "]),
        ('"city, state", zip', ["city, state", "zip"]),
        ("city, state", ["city, state"]),
        ('"a""b"', ['a"b']),
        ('" zip"', [" zip"]),
        ("zip,,age,", ["zip", "age"]),
    ],
)
def test_a_name_in_quotes_is_exact(given, names):
    if names is None:  # 'age ' is a column, and so is 'age'
        with pytest.raises(ParameterError, match="Put the name in quotes"):
            split_names([given], COLUMNS)
    else:
        assert split_names([given], COLUMNS) == names


def people(path, names):
    header = ";".join(names)
    lines = [f"{20 + i % 40};{i % 67};{1000 + i % 9};{'high' if i % 40 > 20 else 'low'}" for i in range(200)]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.mark.parametrize("name", [" ", "age "])
def test_a_column_whose_name_has_blanks_is_rewritten_when_it_is_named(tmp_path, name):
    source = people(tmp_path / "people.csv", ["age" if name == " " else "years", name, "zip", "wage"])
    done = call(
        "anonymize", source, "--target", "wage", "--quasi-identifiers", f'"{name}"', "--model", "decision-tree",
        "--test-fraction", 0, "--representative", "range", "-o", tmp_path / "out.csv",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert {row[name] for row in read_rows(tmp_path / "out.csv")}.isdisjoint(map(str, range(67)))


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(tmp_path):
    source = people(tmp_path / "people.csv", ["age ", "n", "zip", "wage"])
    done = call("anonymize", source, "--target", "wage", "--quasi-identifiers", "age,n", "-o", tmp_path / "out.csv")
    assert done.exit_code == 2
    assert "Did you mean 'age '?" in done.stderr
    assert "put the name in quotes" in done.stderr.replace("\n", " ")


def test_a_name_with_a_comma_is_answered_with_how_to_give_it(tmp_path):
    source = people(tmp_path / "people.csv", ["surname, first name", "n", "zip", "wage"])
    done = call("anonymize", source, "--target", "wage", "--identifiers", "zip,surname, first name", "-o", "out.csv")
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    assert "'surname, first name', n, zip, wage. A name with a comma stands in quotes" in said


def test_types_are_given_to_names_in_quotes(tmp_path):
    source = people(tmp_path / "people.csv", ["age ", "n", "zip", "wage"])
    done = call(
        "anonymize", source, "--target", "wage", "--types", '"age "=text', "--model", "decision-tree",
        "--test-fraction", 0, "-o", tmp_path / "out.csv",
    )  # fmt: skip
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("header", ["yes", "no"])
def test_the_command_line_says_whether_the_first_line_is_a_header(tmp_path, header):
    source = people(tmp_path / "people.csv", ["23", "5", "1003", "low"])
    asked = ["anonymize", source, "--model", "decision-tree", "--test-fraction", 0, "-o", tmp_path / "out.csv"]
    refused = call(*asked, "--target", "low")
    assert refused.exit_code == 2
    assert "--header no" in refused.stderr and "1003" not in refused.stderr
    done = call(*asked, "--header", header, "--target", "low" if header == "yes" else "column4")
    assert done.exit_code == 0, done.output
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 201
