# SPDX-License-Identifier: Apache-2.0
"""The methods, criteria, hierarchies and the suppression limit that ``anonymize`` and policies offer."""

import json
from collections import Counter, defaultdict

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sfumato.policy.settings import METHODS

from .conftest import N_PEOPLE, call, people, read_rows, smallest_group

REWRITTEN = ["age", "zip", "hours", "born", "job"]
USUAL = ["--identifiers", "name", "--k", "5"]
JOBS = ["nurse", "teacher", "smith; and more", "clerk"]


def flat(done):
    return " ".join(done.output.replace("│", " ").split())


def released(people_file, tmp_path, *arguments):
    output = tmp_path / "out.csv"
    done = call("anonymize", people_file, *USUAL, *arguments, "-o", output, "--force")
    assert done.exit_code == 0, done.output
    return done, read_rows(output)


@pytest.fixture
def hierarchies(tmp_path):
    """A folder of hierarchy files, one called like the column and one as the ARX tool calls them."""
    folder = tmp_path / "hierarchies"
    folder.mkdir()
    zips = [f"0{number}" for number in range(1000, 1010)]
    (folder / "people_zip.csv").write_text("".join(f"{zip_code};{zip_code[:4]}*;*\n" for zip_code in zips))
    (folder / "job.csv").write_text("".join(f'"{job}";{"care" if job in JOBS[:2] else "other"};*\n' for job in JOBS))
    return folder


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_named_and_keeps_k(people_file, tmp_path, method):
    arguments = ["--target", "wage", "--model", "decision-tree", "--test-fraction", "0"]
    done, rows = released(people_file, tmp_path, *arguments, "--method", method, "--json")
    assert len(rows) == N_PEOPLE
    assert smallest_group(rows, REWRITTEN) >= 5
    assert json.loads(done.stdout)["method"] == method


def test_the_command_and_policies_name_the_same_methods():
    done = call("anonymize", "--help")
    for method in METHODS:
        assert method in flat(done)


def test_without_a_target_groups_keep_detail_and_the_command_says_so(people_file, tmp_path):
    done, rows = released(people_file, tmp_path)
    assert smallest_group(rows, [*REWRITTEN, "wage"]) >= 5  # what has no other role is rewritten
    assert "no --target, so no model is trained and no accuracy measured" in flat(done)
    assert "information loss" in flat(done)
    document = json.loads(released(people_file, tmp_path, "--json", "-q")[0].stdout)
    assert (document["method"], document["target"], document["utility"]) == ("information-loss", None, None)


def test_l_and_t_hold_on_the_written_file(people_file, tmp_path):
    arguments = ["--sensitive", "job", "--l", "3", "--t", "0.4", "--target", "wage", "--model", "decision-tree"]
    done, rows = released(people_file, tmp_path, *arguments)
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in REWRITTEN if name != "job")].append(row["job"])
    everybody = Counter(row["job"] for row in rows)
    for jobs in groups.values():
        assert len(jobs) >= 5
        assert len(set(jobs)) >= 3
        own = Counter(jobs)
        distance = sum(abs(own[job] / len(jobs) - everybody[job] / N_PEOPLE) for job in everybody) / 2
        assert distance <= 0.4 + 1e-9
    least = min(len(set(jobs)) for jobs in groups.values())
    assert f"l = 3 holds for 'job': the least diverse group has {least} values." in flat(done)
    assert "t = 0.4 holds for 'job': the largest distance is 0." in flat(done)


def test_a_file_in_which_l_does_not_hold_is_not_kept(people_file, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.auditing.methods.Method.criteria", lambda self: [])
    output = tmp_path / "out.csv"
    done = call("anonymize", people_file, *USUAL, "--sensitive", "job", "--l", "4", "-o", output)
    assert done.exit_code == 1
    assert "l = 4 does not hold for 'job'" in flat(done)
    assert not output.exists()


def test_sensitive_columns_that_nothing_guards_are_warned_of(people_file, tmp_path):
    done, rows = released(people_file, tmp_path, "--sensitive", "job", "-q")
    assert "warning: no --l and no --t: all records of a group may share one value of job" in flat(done).replace(
        "'", ""
    )
    assert {row["job"] for row in rows} == set(JOBS)


def test_full_domain_publishes_levels_of_hierarchies_in_a_folder(people_file, tmp_path, hierarchies):
    settings = ["--quasi-identifiers", "zip,job", "--keep", "age,hours,born,wage", "--method", "full-domain"]
    _, rows = released(people_file, tmp_path, *settings, "--k", "90", "--hierarchies", hierarchies)
    assert smallest_group(rows, ["zip", "job"]) >= 90
    assert {row["zip"] for row in rows} <= {"0100*", "*"}
    assert {row["job"] for row in rows} == {"care", "other"}


def test_hierarchies_are_named_by_column_for_other_methods(people_file, tmp_path, hierarchies):
    files = f"zip={hierarchies / 'people_zip.csv'},job={hierarchies / 'job.csv'}"
    _, rows = released(
        people_file, tmp_path, "--hierarchies", files, "--representative", "range", "--method", "mondrian"
    )
    assert smallest_group(rows, REWRITTEN) >= 5
    assert {row["job"] for row in rows} <= {"care", "other", "*", *JOBS}
    assert "*" in {row["job"] for row in rows}


def test_a_suppression_limit_loses_less_and_says_how_many_records(people_file, tmp_path):
    arguments = ["--json", "-q", "--method", "mondrian"]
    whole = json.loads(released(people_file, tmp_path, *arguments)[0].stdout)["release"]
    done, rows = released(people_file, tmp_path, *arguments, "--suppression-limit", "0.05")
    part = json.loads(done.stdout)["release"]
    assert 0 < part["n_suppressed"] <= 0.05 * N_PEOPLE
    assert len(rows) == part["n_records"] == N_PEOPLE - part["n_suppressed"]
    assert part["information_loss"] < whole["information_loss"]
    assert smallest_group(rows, [*REWRITTEN, "wage"]) >= 5
    said, _ = released(people_file, tmp_path, "--suppression-limit", "0.05")
    assert "suppressed records" in said.output


def test_persons_are_counted_among_the_records_that_are_left(tmp_path):
    table = tmp_path / "visits.csv"
    lines = [f"{i // 2};{20 + i % 37};{i % 5 if i % 50 else 90}\n" for i in range(400)]
    table.write_text("person;age;visits\n" + "".join(lines))
    output = tmp_path / "out.csv"
    done = call(
        "anonymize", table, "--unit", "person", "--k", "4", "--suppression-limit", "0.05", "-o", output, "--json"
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["release"]["n_suppressed"] > 0
    assert document["release"]["smallest_group"] >= 4
    assert document["dropped"] == ["person"]
    assert output.read_text().splitlines()[0] == "age;visits"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--method", "model-guided"], "--target: not given"),
        (["--method", "workload-aware"], "--target: not given"),
        (["--method", "magic"], "magic"),
        (["--guide", "labels"], "--guide 'labels' with the method information-loss"),
        (["--l", "3"], "--l 3 without sensitive columns"),
        (["--t", "0.3"], "--t 0.3 without sensitive columns"),
        (["--l", "1", "--sensitive", "job"], "--l 1: expected an integer >= 2"),
        (["--t", "0", "--sensitive", "job"], "--t 0.0: expected a number above 0"),
        (["--sensitive", "jobs"], "Did you mean 'job'"),
        (["--sensitive", "job", "--quasi-identifiers", "job"], "one role per column"),
        (["--suppression-limit", "1"], "--suppression-limit 1.0: expected a share"),
        (["--method", "full-domain", "--limits", "age=5"], "--limits with the method full-domain"),
        (["--method", "full-domain", "--representative", "median"], "--representative with the method full-domain"),
        (["--method", "full-domain", "--representative", "phantom"], "--representative with the method full-domain"),
        (["--method", "hilbert", "--save", "partition.json"], "--save with the method hilbert"),
        (["--hierarchies", "nowhere"], "there is no such folder"),
        (["--hierarchies", "age=nowhere.csv"], "there is no file 'nowhere.csv' for the column 'age'"),
        (["--hierarchies", "agee=nowhere.csv"], "--hierarchies names 'agee'"),
        (["--out-of-core"], "expected a Parquet file"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(people_file, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    done = call("anonymize", people_file, *USUAL, *arguments, "-o", "out.csv")
    assert done.exit_code == 2
    assert sentence in flat(done)
    assert not list(tmp_path.iterdir())


# --- out of core ------------------------------------------------------------------------------------------


@pytest.fixture
def parquet_file(tmp_path):
    path = tmp_path / "people.parquet"
    table = pa.csv.read_csv(pa.py_buffer(people().encode()), parse_options=pa.csv.ParseOptions(delimiter=";"))
    pq.write_table(table.drop_columns(["name"]), path)
    return path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--out-of-core with the method information-loss"),
        (["--method", "hilbert"], "--out-of-core with the method hilbert"),
        (["--method", "mondrian", "--suppression-limit", "0.01"], "--out-of-core with --suppression-limit"),
        (["--method", "mondrian", "--hierarchies", "age=a.csv"], "--out-of-core with --hierarchies"),
    ],
)
def test_out_of_core_refuses_what_it_cannot_do_before_any_work(parquet_file, tmp_path, arguments, sentence):
    done = call("anonymize", parquet_file, "--out-of-core", *arguments, "-o", tmp_path / "out.parquet")
    assert done.exit_code == 2
    assert sentence in flat(done)
    assert "anonymizing" not in done.output


def test_out_of_core_needs_no_target_and_judges_l_on_the_written_file(parquet_file, tmp_path):
    output = tmp_path / "out.parquet"
    arguments = ["--method", "mondrian", "--sensitive", "job", "--l", "3", "--t", "0.4", "--k", "5", "--json"]
    done = call("anonymize", parquet_file, "--out-of-core", *arguments, "-o", output)
    assert done.exit_code == 0, done.output
    (counted,) = json.loads(done.stdout)["release"]["sensitive"]
    rows = pq.read_table(output).to_pylist()
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in row if name != "job")].append(row["job"])
    everybody = Counter(row["job"] for row in rows)
    distances = [
        sum(abs(jobs.count(job) / len(jobs) - everybody[job] / len(rows)) for job in everybody) / 2
        for jobs in groups.values()
    ]
    assert counted["least_values"] == min(len(set(jobs)) for jobs in groups.values()) >= 3
    assert counted["largest_distance"] == pytest.approx(max(distances))
    assert counted["largest_distance"] <= 0.4 + 1e-9


# --- policies ---------------------------------------------------------------------------------------------


def run_policy(people_file, tmp_path, columns="", method="", k=5):
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f"""version = 1
[data]
file = {json.dumps(str(people_file))}
release = "released.csv"
[columns]
identifiers = ["name"]
{columns}
[method]
k = {k}
{method}
[audit]
level = "none"
""",
        encoding="utf-8",
    )
    return call("run", policy, "--force"), tmp_path / "released.csv"


def test_a_policy_reaches_full_domain_and_hierarchies(people_file, tmp_path, hierarchies):
    columns = 'quasi_identifiers = ["zip", "job"]\nkeep = ["age", "hours", "born", "wage"]\nhierarchies = "hierarchies"'
    done, output = run_policy(people_file, tmp_path, columns, 'name = "full-domain"')
    assert done.exit_code == 0, done.output
    assert smallest_group(read_rows(output), ["zip", "job"]) >= 5
    by_column = columns.replace('"hierarchies"', '{ zip = "hierarchies/people_zip.csv" }')
    done, output = run_policy(people_file, tmp_path, by_column, 'name = "mondrian"\nrepresentative = "range"', k=150)
    assert done.exit_code == 0, done.output
    assert {row["zip"] for row in read_rows(output)} >= {"0100*"}


def test_a_policy_without_a_target_forms_groups_by_information_loss(people_file, tmp_path):
    done, output = run_policy(people_file, tmp_path, method='name = "information-loss"')
    assert done.exit_code == 0, done.output
    assert smallest_group(read_rows(output), [*REWRITTEN, "wage"]) >= 5
    refused, _ = run_policy(people_file, tmp_path)
    assert refused.exit_code == 2
    assert 'name = "information-loss" under [method]' in flat(refused)


def test_a_policy_s_l_is_judged_on_the_written_file(people_file, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.auditing.methods.Method.criteria", lambda self: [])
    done, output = run_policy(
        people_file, tmp_path, 'sensitive = ["job"]', 'name = "mondrian"\nl = 4\nrepresentative = "median"'
    )
    assert done.exit_code == 1
    assert "l = 4 does not hold for 'job'" in flat(done)
    assert not output.exists()


@pytest.mark.parametrize(
    ("columns", "method", "sentence"),
    [
        ("limits = { age = 5 }", 'name = "full-domain"', "line 7, [columns] limits with the method full-domain"),
        ("", 'name = "full-domain"\nrepresentative = "median"', "[method] representative with the method full-domain"),
        ("hierarchies = { age = 5 }", "", "[columns] hierarchies = a dict: expected files by column"),
        ('hierarchies = "nowhere"', 'name = "mondrian"', "there is no folder"),
        ('hierarchies = { agee = "a.csv" }', 'name = "mondrian"', "Did you mean 'age'"),
    ],
)
def test_a_policy_that_cannot_be_met_is_refused_by_line_and_key(people_file, tmp_path, columns, method, sentence):
    done, output = run_policy(people_file, tmp_path, columns, method)
    assert done.exit_code == 2
    assert sentence in flat(done)
    assert not output.exists()
