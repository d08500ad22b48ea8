# SPDX-License-Identifier: Apache-2.0
"""``sfumato anatomize`` on files: what it writes, what it checks on them, and when it says no."""

import json
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.conftest import N_PEOPLE, call, people, read_rows
from sfumato import AnatomizedTable
from sfumato.files import verified_output as judging

USUAL = ["--sensitive", "job", "--identifiers", "name", "--l", "3", "--seed", "1"]


@pytest.fixture(scope="module")
def people_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "people.csv"
    path.write_text(people(), encoding="utf-8", newline="")
    return path


def smallest_diversity(rows, column):
    """Return the smallest group size per record of its most frequent value, from the file as anybody reads it."""
    sizes = Counter(row["group"] for row in rows)
    counts = Counter((row["group"], row[column]) for row in rows)
    return min(sizes[group] / count for (group, _), count in counts.items())


def test_the_written_files_hold_the_records_diversely(people_file, tmp_path):
    done = call("anatomize", people_file, *USUAL, "-o", tmp_path / "shared")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == [
        "identifying.csv", "manifest.json", "sensitive.csv",
    ]  # fmt: skip
    who, what = (read_rows(tmp_path / "shared" / f"{name}.csv") for name in ("identifying", "sensitive"))
    assert list(who[0]) == ["age", "zip", "hours", "born", "wage", "group"]
    assert list(what[0]) == ["job", "group"]
    assert smallest_diversity(what, "job") >= 3
    original = read_rows(people_file)
    assert len(who) == len(what) == N_PEOPLE
    assert Counter(row["job"] for row in what) == Counter(row["job"] for row in original)
    names = ["age", "zip", "born", "wage"]
    assert Counter(tuple(row[n] for n in names) for row in who) == Counter(
        tuple(row[n] for n in names) for row in original
    )
    assert Counter(row["group"] for row in who) == Counter(row["group"] for row in what)


def test_what_the_command_writes_can_be_loaded(people_file, tmp_path):
    for written_as in ("csv", "parquet"):
        folder = tmp_path / written_as
        assert call("anatomize", people_file, *USUAL, "--format", written_as, "-o", folder, "-q").exit_code == 0
        loaded = AnatomizedTable.load(folder)
        assert loaded.identifying.schema.field("hours").type == pa.float64()
        assert loaded.identifying.schema.field("zip").type in (pa.string(), pa.large_string())
        assert loaded.identifying["age"].null_count == len(range(0, N_PEOPLE, 17))


def test_json_holds_counts_and_attacks(people_file, tmp_path):
    done = call("anatomize", people_file, *USUAL, "-o", tmp_path / "shared", "--json", "--quiet")
    document = json.loads(done.stdout)
    assert document["n_records"] == N_PEOPLE
    assert document["n_suppressed"] == "0"
    assert document["diversity"]["job"] >= 3
    assert document["holds"] is True
    assert set(document["attacks"]) == {"definetti on job", "minimality on job"}
    assert document["attacks"]["minimality on job"]["verdict"] == "not shown"


def test_no_value_of_a_cell_is_shown(people_file, tmp_path):
    done = call("anatomize", people_file, *USUAL, "-o", tmp_path / "shared")
    for value in ("Person", "teacher", "clerk", "01000"):
        assert value not in done.output


def test_an_attack_that_works_is_said_although_l_holds(tmp_path):
    values = [str(min(i % 11, 4)) for i in range(900)]  # uneven, so that groups are of different values
    table = pa.table({"town": values, "ill": values})
    pq.write_table(table, tmp_path / "people.parquet")
    random = ["--assignment", "random", "--seed", 0, "--suppression-limit", 1]
    usual = ["anatomize", tmp_path / "people.parquet", "--sensitive", "ill", *random]
    done = call(*usual, "-o", tmp_path / "out", "--max-attack", 1)
    assert done.exit_code == 0
    assert "above reference rate" in done.output
    assert "an attack guesses better than 1 in l" in " ".join(done.output.split())
    quiet = call(
        "anatomize", tmp_path / "people.parquet", "--sensitive", "ill", "-o", tmp_path / "two", *random, "--no-attack"
    )
    assert "definetti" not in quiet.output
    assert quiet.exit_code == 0


def test_nothing_is_written_if_an_attack_guesses_nearly_everything(tmp_path):
    generator = np.random.default_rng(0)
    ill = np.array([str(min(i % 11, 4)) for i in range(900)])
    town = np.where(generator.random(900) < 0.97, ill, "x")  # tells the illness in nearly all records
    table = pa.table({"town": town, "age": generator.integers(18, 90, 900), "ill": ill})
    pq.write_table(table, tmp_path / "people.parquet")
    usual = ["anatomize", tmp_path / "people.parquet", "--sensitive", "ill", "--seed", 0, "--suppression-limit", 1]
    usual += ["--assignment", "random"]
    done = call(*usual, "-o", tmp_path / "out")
    said = " ".join(done.output.split())
    assert done.exit_code == 1
    assert re.search(r"the definetti attack guesses 'ill' right in \d+\.\d% of the records", said)
    assert "limit 20.0%. Nothing was written. Raise --l, drop columns that predict 'ill' with --identifiers" in said
    assert re.search(r"such as 'town' \(alone right in 9\d%\), or allow", said)
    assert "'age'" not in said
    assert not (tmp_path / "out").exists()
    without = call(*usual, "-o", tmp_path / "two", "--identifiers", "town")
    assert without.exit_code == 0, without.output
    allowed = call(*usual, "-o", tmp_path / "three", "--max-attack", 0.6)
    assert allowed.exit_code == 0, allowed.output


SEVERAL = ["--sensitive", "job,wage", "--identifiers", "name", "--suppression-limit", "1"]


def test_every_sensitive_column_has_a_file_and_groups_of_its_own(people_file, tmp_path):
    done = call("anatomize", people_file, *SEVERAL, "-o", tmp_path / "shared", "--json", "-q", "--no-attack")
    document = json.loads(done.stdout)
    names = {path.name for path in (tmp_path / "shared").iterdir()}
    assert names == {"identifying.csv", "sensitive-1.csv", "sensitive-2.csv", "manifest.json"}
    assert [path.rpartition("/")[2] for path in document["written"]][:-1] == sorted(names - {"manifest.json"})
    for number, name in ((1, "job"), (2, "wage")):
        rows = read_rows(tmp_path / "shared" / f"sensitive-{number}.csv")
        assert list(rows[0]) == [name, f"group_{name}"]
        own = [{**row, "group": row[f"group_{name}"]} for row in rows]
        assert smallest_diversity(own, name) >= 2
        assert document["diversity"][name] >= 2
        assert document["n_records"] == len(rows)
    who = read_rows(tmp_path / "shared" / "identifying.csv")
    assert list(who[0])[-2:] == ["group_job", "group_wage"]


def test_columns_can_share_a_file(people_file, tmp_path):
    for number, joint in enumerate((["--joint", "all"], ["--joint", "job,wage"])):
        folder = tmp_path / f"shared {number}"
        done = call("anatomize", people_file, *SEVERAL, *joint, "-o", folder, "--json", "-q", "--no-attack")
        rows = read_rows(folder / "sensitive.csv")
        assert min(smallest_diversity(rows, name) for name in ("job", "wage")) >= 2
        assert json.loads(done.stdout)["n_records"] == len(rows)


def test_a_column_can_have_an_l_of_its_own(people_file, tmp_path):
    done = call("anatomize", people_file, *SEVERAL, "--l-of", "job=3", "-o", tmp_path / "shared", "--no-attack")
    assert done.exit_code == 0, done.output
    assert "3 in job, 2 in wage" in " ".join(done.output.split())
    rows = read_rows(tmp_path / "shared" / "sensitive-1.csv")
    assert smallest_diversity([{**row, "group": row["group_job"]} for row in rows], "job") >= 3
    refused = call("anatomize", people_file, *SEVERAL, "--l-of", "age=3", "-o", tmp_path / "two")
    assert refused.exit_code == 2


def test_what_a_known_value_reveals_is_said_and_has_no_limit(tmp_path):
    generator = np.random.default_rng(0)
    ill = generator.integers(0, 8, 1200)
    drug = np.where(generator.random(1200) < 0.3, ill, generator.integers(0, 8, 1200))
    table = pa.table({"age": generator.integers(18, 90, 1200), "ill": ill, "drug": drug})
    pq.write_table(table, tmp_path / "people.parquet")
    usual = ["anatomize", tmp_path / "people.parquet", "--sensitive", "ill,drug", "--l", 3, "--seed", 0, "--json", "-q"]
    apart = json.loads(call(*usual, "-o", tmp_path / "apart").stdout)
    joint = json.loads(call(*usual, "-o", tmp_path / "joint", "--joint", "all").stdout)
    named = "intersection of tables on ill"
    assert apart["attacks"][named]["rate"] > apart["attacks"][named]["baseline"] + 0.03
    assert joint["attacks"][named]["verdict"] == "not shown"
    known = f"{named}, knowing drug"
    assert joint["attacks_if_known"][known]["rate"] > 0.95 > apart["attacks_if_known"][known]["rate"]


def test_tables_that_reveal_each_other_are_not_written(tmp_path):
    generator = np.random.default_rng(0)
    ill = generator.integers(0, 12, 1200)
    table = pa.table({"age": generator.integers(18, 90, 1200), "ill": ill, "drug": ill + 100})
    pq.write_table(table, tmp_path / "people.parquet")
    usual = ["anatomize", tmp_path / "people.parquet", "--sensitive", "ill,drug", "--l", 3, "--seed", 0]
    usual += ["--assignment", "random"]
    refused = call(*usual, "-o", tmp_path / "out")
    said = " ".join(refused.output.split())
    assert refused.exit_code == 1
    assert re.search("the (definetti|intersection of tables) attack guesses '(ill|drug)' right in [89]", said)
    assert "put columns that depend on" in said
    assert "into one table with --joint" in said
    assert not (tmp_path / "out").exists()
    assert call(*usual, "-o", tmp_path / "out", "--joint", "all").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--sensitive", "jobs"], 2, "Did you mean 'job'?"),
        (["--sensitive", "job", "--identifiers", "nme"], 2, "--identifiers names 'nme'"),
        (["--sensitive", "job", "--l", "1"], 2, "--l 1: expected an integer of at least 2"),
        (["--sensitive", "job", "--l", "5"], 1, "the largest l that works is"),
        (["--sensitive", "job", "--seed", "-1"], 2, "--seed -1: expected an integer >= 0"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(people_file, tmp_path, arguments, code, sentence):
    done = call("anatomize", people_file, *arguments, "-o", tmp_path / "shared")
    assert done.exit_code == code
    assert sentence in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_files_that_exist_are_replaced_only_by_force(people_file, tmp_path):
    assert call("anatomize", people_file, *USUAL, "-o", tmp_path, "--no-attack").exit_code == 0
    before = (tmp_path / "sensitive.csv").read_bytes()
    refused = call("anatomize", people_file, *USUAL, "-o", tmp_path, "--no-attack")
    assert refused.exit_code == 2
    assert "exists already" in refused.output
    again = call("anatomize", people_file, *USUAL[:-1], "2", "-o", tmp_path, "--no-attack", "--force")
    assert again.exit_code == 0
    assert (tmp_path / "sensitive.csv").read_bytes() != before
    assert call("anatomize", people_file, *USUAL, "-o", people_file).exit_code == 2


def test_two_groupings_of_the_same_people_do_not_end_up_in_one_folder(people_file, tmp_path):
    assert call("anatomize", people_file, *USUAL, "-o", tmp_path, "--no-attack").exit_code == 0
    refused = call("anatomize", people_file, *USUAL, "-o", tmp_path, "--no-attack", "--force", "--format", "parquet")
    assert refused.exit_code == 2
    assert "of an earlier run" in refused.output
    assert not (tmp_path / "sensitive.parquet").exists()
    several = call("anatomize", people_file, *SEVERAL, "-o", tmp_path, "--no-attack", "--force")
    assert several.exit_code == 2
    assert "of an earlier run" in several.output
    assert not (tmp_path / "sensitive-1.csv").exists()


def test_a_file_that_reads_back_otherwise_is_not_kept(people_file, tmp_path, monkeypatch):
    read = judging.read_back

    def spoiled(written, path, as_format, style):
        table = read(written, path, as_format, style)
        if "job" not in table.column_names:
            return table
        return table.set_column(0, "job", [pa.array(["clerk"] * table.num_rows)])

    monkeypatch.setattr(judging, "read_back", spoiled)
    done = call("anatomize", people_file, *USUAL, "-o", tmp_path / "shared")
    assert done.exit_code == 1
    assert "does not read back as what was written" in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_groups_that_are_not_diverse_on_the_files_are_not_kept(people_file, tmp_path, monkeypatch):
    read = judging.read_back

    def spoiled(written, path, as_format, style):
        table = read(written, path, as_format, style)
        if "job" not in table.column_names:
            return table
        return table.set_column(0, "job", [pa.array(["clerk"] * table.num_rows)])

    monkeypatch.setattr(judging, "read_back", spoiled)
    monkeypatch.setattr(judging, "check_same", lambda written, read: None)
    done = call("anatomize", people_file, *USUAL, "-o", tmp_path / "shared")
    assert done.exit_code == 1
    assert "l = 3 does not hold" in done.output
    assert list(tmp_path.iterdir()) == []
