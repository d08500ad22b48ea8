# SPDX-License-Identifier: Apache-2.0
"""What ``anonymize`` finds on its own release: unchanged columns, real combinations, values that nobody had."""

import csv
import io
import json
from collections import Counter

import numpy as np
import pytest

from .conftest import call, read_rows

REWRITTEN = ["age", "zip", "hours", "born", "job"]
USUAL = ["--identifiers", "name", "--target", "wage", "--model", "decision-tree", "--test-fraction", "0", "--k", "5"]


def flat(done):
    return " ".join(done.output.split())


def rows_of_one(people_file, output, columns=REWRITTEN):
    """Count with plain dictionaries the released combinations that one original record has."""
    before = Counter(tuple(row[name] for name in columns) for row in read_rows(people_file))
    shown = {tuple(row[name] for name in columns) for row in read_rows(output)}
    return len(shown), sum(before[row] == 1 for row in shown)


FEW = ["--identifiers", "born,hours", "--k", "3"]  # columns whose values several people share
SHOWN = ["age", "zip", "job"]


@pytest.mark.parametrize("representative", ["phantom", "member", "median"])
def test_combinations_of_one_person_are_counted_on_the_release(people_file, tmp_path, representative):
    output = tmp_path / "out.csv"
    done = call("anonymize", people_file, *USUAL, *FEW, "--representative", representative, "--json", "-o", output)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["checks"]
    n_shown, n_of_one = rows_of_one(people_file, output, SHOWN)
    assert found["n_combinations"] == n_shown
    assert found["n_combinations_of_one_person"] == (None if 0 < n_of_one < 3 else n_of_one)
    assert n_of_one == 0 if representative == "phantom" else n_of_one > 3


def test_a_real_record_as_representative_is_warned_of(people_file, tmp_path):
    output = tmp_path / "out.csv"
    done = call("anonymize", people_file, *USUAL, *FEW, "--representative", "member", "-o", output)
    n_shown, n_of_one = rows_of_one(people_file, output, SHOWN)
    assert f"warning: {n_of_one:,} of {n_shown:,} released combinations of quasi-identifiers" in flat(done)


@pytest.mark.parametrize("representative", ["range", "bounds", "tight-bounds"])
def test_ranges_show_no_combination_of_one_person(people_file, tmp_path, representative):
    done = call("anonymize", people_file, *USUAL, "--representative", representative, "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    assert "released combinations of quasi-identifiers is that of exactly one original record" in flat(done)


def test_tight_ranges_are_warned_of_by_the_name_of_the_option(people_file, tmp_path):
    done = call("anonymize", people_file, *USUAL, "--representative", "tight-range", "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    assert "a person outside all of them is certainly not in the table" in flat(done)
    assert "Use --representative range" in flat(done)


def test_columns_released_unchanged_say_whom_they_single_out(people_file, tmp_path):
    output = tmp_path / "out.csv"
    roles = ["--quasi-identifiers", "age,zip", "--keep", "hours,born"]
    done = call("anonymize", people_file, *USUAL, *roles, "-o", output)
    rows = Counter(tuple(row[name] for name in ("hours", "born", "job", "wage")) for row in read_rows(output))
    n_unique = sum(count == 1 for count in rows.values())
    assert n_unique > 5
    assert "Columns released unchanged: 'hours', 'born', 'job', 'wage'." in flat(done)
    assert f"warning: {n_unique:,} of 300 records ({n_unique / 300:.1%}) are unique by them." in flat(done)


def test_averages_of_codes_are_remarked_on(tmp_path):
    random = np.random.default_rng(0)
    table = tmp_path / "people.csv"
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["age", "points", "ill"])
    for _ in range(300):
        rows.writerow([random.integers(18, 80), random.choice([100, 205, 310, 999]), random.choice(["yes", "no"])])
    table.write_text(text.getvalue())
    usual = ["--sensitive", "ill", "--l", "2", "--representative", "mean", "--method", "mondrian", "--json", "-q"]
    done = call("anonymize", table, *usual, "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["checks"]["n_invented_values"]["points"] > 0
    done = call("anonymize", table, *usual, "--categorical", "points", "-o", tmp_path / "out.csv", "--force")
    assert "points" not in json.loads(done.stdout)["checks"]["n_invented_values"]


def test_a_near_unique_target_is_in_the_document(tmp_path):
    random = np.random.default_rng(0)
    table = tmp_path / "people.csv"
    lines = [
        f"{random.integers(18, 80)},{random.choice(['a', 'b'])},{random.uniform(1e4, 9e4):.2f}\n" for _ in range(200)
    ]
    table.write_text("age,town,pay\n" + "".join(lines))
    done = call("anonymize", table, "--target", "pay", "--model", "decision-tree", "--json", "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["checks"]
    assert found["target_is_near_unique"] is True
    assert found["n_records_unique_by_unchanged_columns"] > 150
    done = call(
        "anonymize", table, "--target", "pay", "--model", "decision-tree", "-o", tmp_path / "out.csv", "--force"
    )
    assert "finds the record. Release a target of numbers with --target-values round:WIDTH or group-mean." in flat(done)
