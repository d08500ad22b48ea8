# SPDX-License-Identifier: Apache-2.0
"""``sfumato anonymize`` says which columns leave as they came."""

import json

import pytest

from .conftest import call

SOME = ["--model", "decision-tree", "--test-fraction", 0, "--k", 5]


@pytest.mark.parametrize(
    ("options", "unchanged"),
    [
        (["--target", "wage", "--identifiers", "name"], ["wage"]),
        (
            ["--target", "wage", "--identifiers", "name", "--quasi-identifiers", "age,zip,born"],
            ["hours", "job", "wage"],
        ),
        (["--target", "wage", "--unit", "name", "--quasi-identifiers", "age,zip,hours,born,job"], ["wage"]),
    ],
)
def test_the_columns_that_leave_unchanged_are_named(people_file, tmp_path, options, unchanged):
    output = tmp_path / "out.csv"
    done = call("anonymize", people_file, *SOME, *options, "-o", output)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert f"Columns released unchanged: {', '.join(map(repr, unchanged))}." in said
    done = call("anonymize", people_file, *SOME, *options, "--json", "--force", "-o", output)
    document = json.loads(done.stdout)
    assert document["unchanged"] == unchanged
    written = output.read_text().splitlines()[0].split(";")
    assert sorted(written) == sorted([*document["quasi_identifiers"], *unchanged])
