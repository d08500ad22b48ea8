# SPDX-License-Identifier: Apache-2.0
"""``sfumato measure`` on files: what it shows, what it hands to scripts, and when it says no."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from sfumato.cli.application import application

from .conftest import N_PEOPLE, call, people, read_rows, run, run_process

KEYS = ["age", "zip", "job"]
USUAL = ["--quasi-identifiers", ",".join(KEYS), "--sensitive", "wage"]


def groups_of(path, columns):
    return Counter(tuple(row[name] for name in columns) for row in read_rows(path))


@pytest.fixture
def population_file(tmp_path):
    path = tmp_path / "population.csv"
    rest = people(900, seed=3).splitlines(keepends=True)[1:]
    path.write_text(people() + "".join(rest), encoding="utf-8", newline="")
    return path


def test_the_json_holds_what_counting_the_file_by_hand_gives(people_file, population_file):
    done = run_process("measure", people_file, *USUAL, "--population", population_file, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    sizes, theirs = groups_of(people_file, KEYS), groups_of(population_file, KEYS)
    assert document["n_records"] == N_PEOPLE
    assert document["k"] == min(sizes.values())
    assert document["groups"]["n_groups"] == len(sizes)
    assert document["uniqueness"]["n_unique"] == sum(size == 1 for size in sizes.values())
    assert document["prosecutor"]["average"] == pytest.approx(len(sizes) / N_PEOPLE)
    wanted = sum(size / theirs[key] for key, size in sizes.items()) / N_PEOPLE
    assert document["journalist"]["average"] == pytest.approx(wanted)
    assert document["uniqueness"]["population_size"] == 1200
    assert document["uniqueness"]["n_not_in_population"] == 0
    assert document["holds"] is None


def test_the_table_shows_sizes_risks_criteria_and_columns(people_file):
    done = run("measure", people_file, *USUAL)
    assert done.returncode == 0, done.stderr
    for part in (
        "people.csv: 3 quasi-identifiers",
        "smallest group (k)",
        "prosecutor",
        "The last two need --population",
        "criteria on wage",
        "distinct l-diversity",
        "unique records by single columns",
        "unique records by pairs of columns",
        "unique records if a column were a quasi-identifier, too",
    ):
        assert part in done.stdout
    assert "note: not tried in sets" in done.stderr
    assert "name" in done.stderr


def test_no_value_of_a_cell_is_shown(people_file):
    done = run("measure", people_file, *USUAL)
    for value in ("Person", "teacher", "clerk", "01000", "high"):
        assert value not in done.stdout.replace("highest", "") + done.stderr


@pytest.mark.parametrize(("min_k", "code"), [(1, 0), (2, 1)])
def test_a_group_that_is_too_small_exits_with_1(people_file, min_k, code):
    done = call("measure", people_file, *USUAL, "--min-k", min_k, "--quiet")
    assert done.exit_code == code
    assert f"The smallest group has 1 record; --min-k requires at least {min_k}." in done.stdout
    document = json.loads(call("measure", people_file, *USUAL, "--min-k", min_k, "--json", "--quiet").stdout)
    assert document["holds"] is (code == 0)


def test_what_anonymize_writes_passes_its_own_gate(people_file, tmp_path):
    output = tmp_path / "released.csv"
    usual = ["--target", "wage", "--identifiers", "name", "--model", "decision-tree", "--test-fraction", 0]
    assert call("anonymize", people_file, *usual, "--k", 7, "-o", output).exit_code == 0
    assert call("measure", output, "--sensitive", "wage", "--min-k", 7).exit_code == 0
    assert call("measure", output, "--sensitive", "wage", "--min-k", N_PEOPLE + 1).exit_code == 1


def test_persons_are_counted_where_a_unit_is_named(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("who,town\n1,Bari\n1,Bari\n2,Rome\n3,Rome\n", encoding="utf-8")
    done = call("measure", path, "--unit", "who", "--quasi-identifiers", "town", "--min-k", 2)
    assert done.exit_code == 1
    assert "The smallest group has 1 person" in done.stdout
    assert call("measure", path, "--quasi-identifiers", "town", "--min-k", 2).exit_code == 0


def test_parquet_weights_and_a_number_of_people_work(tmp_path):
    path = tmp_path / "sample.parquet"
    pq.write_table(pa.table({"town": ["a", "a", "b", None], "weight": [5.0, 5.0, 5.0, 5.0]}), path)
    by_weights = json.loads(call("measure", path, "--weights", "weight", "--json", "--quiet").stdout)
    assert by_weights["quasi_identifiers"] == ["town"]
    assert by_weights["journalist"]["basis"] == "weights"
    by_number = json.loads(call("measure", path, "--population", 40, "--json", "--quiet").stdout)
    assert by_number["uniqueness"]["population_size"] == 40
    assert by_number["journalist"]["average"] is None
    wild = json.loads(
        call("measure", path, "--quasi-identifiers", "town", "--missing-is", "wildcard", "--json", "--quiet").stdout
    )
    assert wild["k"] == 2
    assert wild["missing"] == "wildcard"


def test_a_hierarchy_file_gives_the_hierarchical_distance(people_file, tmp_path):
    (tmp_path / "wage.csv").write_text("high;any\nlow;any\n", encoding="utf-8")
    usual = [people_file, *USUAL, "--json", "--quiet"]

    def distances(*more):
        parts = json.loads(call("measure", *usual, *more).stdout)["criteria"]
        return {part["criterion"]: part["value"] for part in parts if "t-closeness" in part["criterion"]}

    found = distances("--hierarchies", f"wage={tmp_path / 'wage.csv'}")
    assert found["t-closeness, hierarchical distance"] == pytest.approx(found["t-closeness, equal distance"])
    assert distances()["t-closeness, hierarchical distance"] is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--quasi-identifiers", "agee"], "age"),
        (["--quasi-identifiers", "age", "--sensitive", "age"], "one role per column"),
        (["--min-k", "0"], "--min-k 0"),
        (["--hierarchies", "wage=nowhere.csv"], "which is not a file"),
        (["--population", "nowhere.csv"], "does not exist"),
        (["--population", "10"], "at least as many people as records"),
        (["--unit", "name", "--missing-is", "wildcard", "--min-k", "2"], "--missing-is value"),
    ],
)
def test_wrong_usage_exits_with_2_and_a_sentence(people_file, arguments, sentence):
    done = run("measure", people_file, *arguments)
    assert done.returncode == 2, done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_help_says_every_default():
    done = run("measure", "--help")
    assert done.returncode == 0
    command = typer.main.get_command(application).commands["measure"]
    optional = [option for option in command.params if option.param_type_name == "option" and option.name != "help"]
    assert done.stdout.count("[default:") == len(optional)


def test_of_thousands_of_columns_a_note_names_only_some(tmp_path):
    file = tmp_path / "wide.csv"
    rows = [",".join(str((i * (j + 3)) % 7) for j in range(200)) for i in range(30)]
    file.write_text("\n".join([",".join(f"c{j}" for j in range(200)), *rows]), encoding="utf-8")
    done = call("measure", file)
    assert done.exit_code == 0, done.stderr
    note = " ".join(done.stderr.split()).partition("not tried in sets")[2]
    assert note.endswith("more") and len(note) < 300


@pytest.mark.parametrize("command", ["", *typer.main.get_command(application).commands])
def test_no_flag_of_any_command_is_shown_with_a_type(command):
    done = call(*[part for part in (command, "--help") if part])
    assert done.exit_code == 0 and "bool" not in done.stdout.replace("boolean", "")


def test_no_heading_of_a_table_is_cut_at_eighty_columns(people_file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = call("measure", people_file, *USUAL).stdout
    assert "above 0.05  above 0.09  above 0.2" in said and "…" not in said


def test_a_release_is_measured_by_its_groups_although_nobody_named_the_target(people_file, tmp_path):
    release = tmp_path / "released.csv"
    asked = ("--identifiers", "name", "--target", "wage", "--k", 8, "--model", "decision-tree", "--quiet")
    assert call("anonymize", people_file, *asked, "-o", release).exit_code == 0
    for named in ((), ("--target", "wage")):
        done = call("measure", release, *named, "--json")
        assert json.loads(done.stdout)["k"] >= 8, done.stderr
    said = " ".join(call("measure", release).stdout.split())
    assert "released unchanged 1 wage (auto-detected: without it every group has at least" in said
    assert "quasi-identifier 5 age, zip, hours, born, job" in said


def test_a_verdict_is_not_built_on_a_guess_about_columns(people_file, tmp_path):
    release = tmp_path / "released.csv"
    asked = ("--identifiers", "name", "--target", "wage", "--k", 8, "--model", "decision-tree", "--quiet")
    assert call("anonymize", people_file, *asked, "-o", release).exit_code == 0
    judged = call("measure", release, "--min-k", 8)
    assert judged.exit_code == 1
    assert "If a model predicts that column, or it is sensitive, name it: --target wage." in " ".join(
        judged.stderr.split()
    )
    assert call("measure", release, "--min-k", 8, "--target", "wage").exit_code == 0


def test_no_column_of_a_raw_file_is_taken_for_unchanged(people_file):
    done = call("measure", people_file)
    assert done.exit_code == 0 and "released unchanged" not in done.stdout


def test_the_target_is_no_quasi_identifier(people_file):
    both = call("measure", people_file, "--target", "wage", "--quasi-identifiers", "wage,age")
    assert both.exit_code == 2 and "'wage' is named in --target and in another role" in both.stderr
    assert (
        "wage" not in json.loads(call("measure", people_file, "--target", "wage", "--json").stdout)["quasi_identifiers"]
    )
