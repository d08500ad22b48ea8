# SPDX-License-Identifier: Apache-2.0
"""Releases that commands write do not tell, by the place of a record, whose it is."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .conftest import call

N_PEOPLE, K = 1_200, 10
USUAL = ["--target", "wage", "--quasi-identifiers", "age,hours", "--keep", "pay", "--model", "decision-tree"]
USUAL += ["--test-fraction", 0, "--k", K, "--quiet"]


@pytest.fixture(scope="module")
def sorted_file(tmp_path_factory) -> Path:
    """People sorted by a column that leaves as it is."""
    random = np.random.default_rng(1)
    pay = np.sort(random.integers(1_000, 9_000, N_PEOPLE))
    table = pa.table(
        {
            "age": random.integers(18, 90, N_PEOPLE),
            "hours": random.integers(10, 60, N_PEOPLE),
            "person": np.arange(N_PEOPLE) // 2,
            "pay": pay,
            "wage": np.where(random.random(N_PEOPLE) < pay / 9_000, "high", "low"),
        }
    )
    path = tmp_path_factory.mktemp("sorted") / "people.parquet"
    pq.write_table(table, path, row_group_size=500)
    return path


def found_by_place(before: pa.Table, after: pa.Table) -> float:
    """Attack the order: take the record that stands where the victim stood."""
    return float(np.mean(before["pay"].to_numpy() == after["pay"].to_numpy()))


def rows(table: pa.Table) -> Counter:
    return Counter(zip(*(table[name].to_pylist() for name in sorted(table.column_names)), strict=True))


@pytest.mark.parametrize("how", ["--in-memory", "--out-of-core"])
@pytest.mark.parametrize("unit", [[], ["--unit", "person"]], ids=["records", "persons"])
def test_the_place_of_a_record_in_a_release_picks_nobody_out_of_a_group(sorted_file, tmp_path, how, unit):
    shuffled, kept = tmp_path / "shuffled.parquet", tmp_path / "kept.parquet"
    extra = unit or ["--identifiers", "person"]
    for output, order in ((shuffled, []), (kept, ["--keep-order"])):
        done = call("anonymize", sorted_file, *USUAL, *extra, "-o", output, *order, how)
        assert done.exit_code == 0, done.output
    before = pq.read_table(sorted_file)
    released = pq.read_table(shuffled)
    assert found_by_place(before, pq.read_table(kept)) == 1.0
    assert found_by_place(before, released) < 0.02
    assert rows(released) == rows(pq.read_table(kept))  # the same release otherwise


def test_keeping_the_order_is_warned_of(sorted_file, tmp_path):
    done = call("anonymize", sorted_file, *USUAL, "--identifiers", "person", "-o", tmp_path / "out.csv", "--keep-order")
    assert done.exit_code == 0
    assert "warning: the release keeps the order of the input" in done.stderr
    assert "--keep-order" in done.stderr


def test_two_runs_with_one_seed_have_the_same_rows_in_different_orders(sorted_file, tmp_path):
    tables = []
    for name in ("one.parquet", "two.parquet"):
        call("anonymize", sorted_file, *USUAL, "--identifiers", "person", "--seed", 5, "-o", tmp_path / name)
        tables.append(pq.read_table(tmp_path / name))
    assert tables[0] != tables[1]
    assert rows(tables[0]) == rows(tables[1])


@pytest.mark.parametrize("is_release", [True, False], ids=["release", "recoding"])
def test_apply_shuffles_what_is_published_and_not_what_is_predicted(sorted_file, tmp_path, is_release):
    partition, output = tmp_path / "partition.json", tmp_path / "out.parquet"
    call("anonymize", sorted_file, *USUAL, "--identifiers", "person", "--save", partition)
    done = call("apply", partition, sorted_file, "-o", output, *(["--release"] if is_release else []))
    assert done.exit_code == 0, done.output
    pay = pq.read_table(output)["pay"].to_pylist()
    assert (pay == sorted(pay)) is not is_release


def test_keep_order_without_a_release_is_refused(sorted_file, tmp_path):
    partition = tmp_path / "partition.json"
    call("anonymize", sorted_file, *USUAL, "--identifiers", "person", "--save", partition)
    done = call("apply", partition, sorted_file, "-o", tmp_path / "out.parquet", "--keep-order")
    assert done.exit_code == 2
    assert "go with --release" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("keep_order", ["no", "yes"])
def test_a_policy_decides_whether_its_release_is_shuffled(sorted_file, tmp_path, keep_order):
    (tmp_path / "policy.toml").write_text(
        f"""version = 1
[data]
file = {json.dumps(str(sorted_file))}
release = "out.parquet"
keep_order = "{keep_order}"
[columns]
target = "wage"
identifiers = ["person"]
quasi_identifiers = ["age", "hours"]
keep = ["pay"]
[method]
k = {K}
[model]
name = "decision-tree"
[audit]
level = "none"
[gate]
min_k = {K}
"""
    )
    done = call("run", tmp_path / "policy.toml")
    assert done.exit_code == 0, done.output
    pay = pq.read_table(tmp_path / "out.parquet")["pay"].to_pylist()
    assert (pay == sorted(pay)) is (keep_order == "yes")
    said = json.loads((tmp_path / "audit.json").read_text())
    assert any("keeps the order of the input" in note for note in said["notes"]) is (keep_order == "yes")
    assert ('Remove keep_order = "yes" under [data]' in done.stderr) is (keep_order == "yes")


def test_compare_refuses_releases_whose_rows_are_of_different_people(sorted_file, tmp_path):
    for name, k in (("one.parquet", 10), ("two.parquet", 20)):
        call("anonymize", sorted_file, *USUAL, "--identifiers", "person", "--k", k, "-o", tmp_path / name)
    done = call("compare", tmp_path / "one.parquet", tmp_path / "two.parquet", "--quasi-identifiers", "age,hours")
    assert done.exit_code == 2
    assert "in another order" in done.stderr.replace("\n", " ")
