# SPDX-License-Identifier: Apache-2.0
"""``sfumato run``: one policy, all outputs or none, and an exit code a build server can trust."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from sfumato.attack import ATTACKS, shadows
from sfumato.auditing import attacks as attacking
from sfumato.auditing.pipeline import protected_estimator, release_all
from sfumato.auditing.policy_job import open_job
from sfumato.cli import main
from sfumato.cli.console import Console
from sfumato.files.table_file import read_file, write_file
from sfumato.policy import Policy

from .conftest import N_PEOPLE, call, people, read_rows, run, run_process

POLICY = """version = 1
[data]
file = "people.csv"
release = "out.csv"
artifact = "partition.json"
types = {{ zip = "text" }}
[columns]
target = "wage"
identifiers = ["name"]
quasi_identifiers = ["age", "zip", "hours", "born", "job"]
subgroups = ["job"]
{columns}
[method]
k = 8
{method}
[model]
name = "decision-tree"
{model}
[audit]
level = "{level}"
{audit}
[gate]
{gate}
"""
WITHOUT_TORCH = 'leave_out = ["network"]'
OUTPUTS = ("out.csv", "partition.json", "partition.fingerprints", "audit.json", "report.html")


def write(folder: Path, *, columns="", method="", model="", level="none", audit="", gate="min_k = 8") -> Path:
    (folder / "people.csv").write_text(people(), encoding="utf-8", newline="")
    path = folder / "policy.toml"
    text = POLICY.format(columns=columns, method=method, model=model, level=level, audit=audit, gate=gate)
    path.write_text(text, encoding="utf-8")
    return path


def written(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name not in ("people.csv", "policy.toml"))


def test_a_passed_gate_writes_everything_and_k_holds_on_the_file(tmp_path: Path):
    result = run_process("run", write(tmp_path))
    assert result.returncode == 0, result.stderr
    assert written(tmp_path) == sorted(OUTPUTS)
    rows = read_rows(tmp_path / "out.csv")
    keys = Counter(tuple(row[name] for name in ("age", "zip", "hours", "born", "job")) for row in rows)
    assert min(keys.values()) >= 8 and sum(keys.values()) == N_PEOPLE
    assert "name" not in rows[0]
    audit = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert audit["passed"] is True and audit["sizes"]["smallest"] == min(keys.values())
    assert "Person" not in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('target = "wage"', 'target = "same"', "Give another target under [columns]"),
        ('name = "decision-tree"', 'name = "linear-regression"', 'Give name = "logistic-regression" under [model]'),
        ('zip = "text"', 'zip = "date"', "missing under [data], or give another type with types"),
    ],
)
def test_messages_name_keys_of_the_policy_and_not_options(tmp_path: Path, old: str, new: str, says: str):
    policy = write(tmp_path)
    policy.write_text(policy.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    table = (tmp_path / "people.csv").read_text(encoding="utf-8").replace("\n", ";x\n").replace(";x", ";same", 1)
    (tmp_path / "people.csv").write_text(table, encoding="utf-8", newline="")
    result = call("run", policy)
    assert result.exit_code == 2, result.stderr
    said = " ".join(result.stderr.split())
    assert says in said and "--" not in said.partition("error:")[2]


def test_a_model_that_has_seen_ranges_is_attacked_through_the_partition(tmp_path: Path):
    gate = "max_attack_advantage = 1.0"
    policy = write(tmp_path, method='representative = "range"', level="quick", audit=WITHOUT_TORCH, gate=gate)
    result = call("run", policy, "--quiet")
    assert result.exit_code == 0, result.stderr + result.stdout
    audit = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert any(risk["title"].startswith("membership") for risk in audit["risks"])
    assert audit["gate"][0]["measured"] is not None


def test_a_bound_on_attacks_is_not_met_where_there_are_too_few_records_to_attack(tmp_path: Path):
    policy = write(tmp_path, level="quick", audit=WITHOUT_TORCH, gate="max_attack_advantage = 1.0")
    policy.write_text(policy.read_text(encoding="utf-8").replace("k = 8", "k = 280"), encoding="utf-8")
    result = call("run", policy, "--json")
    assert result.exit_code == 1, result.stderr
    check = json.loads(result.stdout)["gate"][0]
    assert check["passed"] is False and "singling out" in check["sentence"] and "test_fraction" in check["sentence"]


def test_a_bound_on_attacks_is_not_met_where_one_of_them_could_not_be_run(tmp_path: Path):
    gate = "max_attack_advantage = 1.0\nmin_k = 8"
    policy = write(tmp_path, level="quick", audit=WITHOUT_TORCH, gate=gate)
    # 60 people leave 12 who are held out: enough to attack the records, too few to attack the model.
    (tmp_path / "people.csv").write_text(people(60), encoding="utf-8", newline="")
    result = run("run", policy)
    assert result.returncode == 1, result.stderr
    assert "not run: membership, by the loss. " in result.stderr
    said = " ".join(result.stdout.split())
    assert "not run, so this cannot pass: membership, by the loss; membership, by a forest" in said
    assert 'add "threshold", "random-forest"' in said and "leave_out under [audit]" in said
    assert written(tmp_path) == []


def test_attacks_that_the_policy_leaves_out_are_named_and_fail_no_gate(tmp_path: Path):
    audit = 'leave_out = ["network", "threshold", "attribute", "linkability", "row-order"]'
    result = run("run", write(tmp_path, level="quick", audit=audit, gate="max_attack_advantage = 1.0"), "--json", "-q")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    titles = [risk["title"] for risk in found["risks"]]
    assert titles == [
        "membership, by a forest", "singling out", "infer wage from the release", "membership of the release",
        "single out by predicates of small weight",
    ]  # fmt: skip
    assert "Skipped by the policy: network, threshold, attribute, linkability, row-order." in found["notes"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"level": "none"}, ["No attack was run; the level is none."]),
        (
            {"level": "quick", "model": "test_fraction = 0"},
            [
                "No attack was run; the level is quick.",
                "Attacks need holdout records, and test_fraction = 0 holds nobody out.",
            ],
        ),
    ],
)
def test_attacks_that_were_not_run_are_not_said_to_have_been_run(tmp_path: Path, settings, says: list[str]):
    result = call("run", write(tmp_path, **settings), "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["notes"] == says
    assert ("no attack is run: test_fraction = 0" in result.stderr) is (settings["level"] == "quick")


def test_a_passed_gate_says_that_forgotten_columns_single_people_out(tmp_path: Path):
    policy = write(tmp_path)
    few = policy.read_text(encoding="utf-8").replace('["age", "zip", "hours", "born", "job"]', '["age", "job"]')
    policy.write_text(few.replace("[method]", 'keep = ["born"]\n[method]'), encoding="utf-8")
    result = call("run", policy, "--json")
    assert result.exit_code == 0, result.stderr
    rows = read_rows(tmp_path / "out.csv")
    exact = Counter((row["zip"], row["hours"], row["born"], row["wage"]) for row in rows)
    share = sum(count == 1 for count in exact.values()) / N_PEOPLE
    found = json.loads(result.stdout)["uniqueness"]
    assert found["share"] == pytest.approx(share) and found["columns"] == ["zip", "hours", "born", "wage"]
    said = (
        f"{share:.1%} of the records are unique by the columns released unchanged: “zip”, “hours”, “born” and “wage”."
    )
    assert said in " ".join(result.stderr.split())


def test_a_release_that_teaches_a_model_nothing_is_said_to(tmp_path: Path):
    policy = write(tmp_path, method='representative = "mean"', gate="min_accuracy_kept = 0.5")
    policy.write_text(policy.read_text(encoding="utf-8").replace("k = 8", "k = 240"), encoding="utf-8")
    result = run("run", policy)
    assert result.returncode == 0, result.stderr
    assert "no better than always predicting the most frequent class" in " ".join(result.stderr.split())
    utility = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))["utility"]
    labels = Counter(row["wage"] for row in read_rows(tmp_path / "people.csv"))
    assert utility["protected"] == utility["same_answer"]
    assert utility["same_answer"] == pytest.approx(max(labels.values()) / N_PEOPLE, abs=0.02)  # the split keeps shares


def test_every_sensitive_column_is_inferred_from_the_release(tmp_path: Path):
    others = [name for name in ATTACKS if name not in ("inference", "skewness")]
    audit = f"leave_out = {json.dumps(others)}"
    policy = write(tmp_path, columns='sensitive = ["wage", "job"]', level="quick", audit=audit)
    text = policy.read_text(encoding="utf-8").replace(', "job"]\nsubgroups', "]\nsubgroups")
    policy.write_text(text, encoding="utf-8")
    result = call("run", policy, "--json", "-q")
    assert result.exit_code == 0, result.stderr
    titles = [risk["title"] for risk in json.loads(result.stdout)["risks"]]
    assert [title for title in titles if title.startswith("infer")] == [
        "infer wage from the release", "infer job from the release",
    ]  # fmt: skip
    assert {title for title in titles if "skewness" in title} == {
        "guess wage in groups where a value is raised (skewness)",
        "guess job in groups where a value is raised (skewness)",
    }


def test_other_k_that_the_policy_names_are_drawn_in_the_report(tmp_path: Path):
    policy = write(tmp_path)
    policy.write_text(policy.read_text(encoding="utf-8").replace("[audit]", "[audit]\ncurve = [20]"), encoding="utf-8")
    result = call("run", policy, "--quiet")
    assert result.exit_code == 0, result.stderr
    audit = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert [point["at"] for point in audit["curve"]] == [1, 8, 20]
    assert "Privacy-utility trade-off" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("n_people", "left_out", "is_said"), [(60, "random-forest", True), (N_PEOPLE, "threshold", False)]
)
def test_other_k_are_drawn_where_nobody_could_or_should_attack_them(tmp_path: Path, n_people, left_out, is_said):
    others = '"network", "attribute", "singling-out", "linkability", "inference"'
    policy = write(tmp_path, level="quick", audit=f'curve = [10]\nleave_out = ["{left_out}", {others}]')
    (tmp_path / "people.csv").write_text(people(n_people), encoding="utf-8", newline="")
    result = call("run", policy)
    assert result.exit_code == 0, result.stderr
    audit = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert [(point["at"], point["attack"]) for point in audit["curve"]] == [(1, None), (8, None), (10, None)]
    assert ("k = 10 was not attacked: " in result.stderr) == is_said


def test_the_partition_can_be_applied_to_the_same_file(tmp_path: Path):
    assert run("run", write(tmp_path)).returncode == 0
    result = run("apply", tmp_path / "partition.json", tmp_path / "people.csv", "-o", tmp_path / "again.csv")
    assert result.returncode == 0, result.stderr


def test_a_failed_gate_writes_nothing_and_exits_with_one(tmp_path: Path):
    result = run("run", write(tmp_path, gate="min_k = 100"))
    assert result.returncode == 1
    assert "NOT MET" in result.stdout and "Gate failed" in result.stdout
    assert written(tmp_path) == []


def test_the_report_of_a_failed_gate_can_be_asked_for(tmp_path: Path):
    result = run("run", write(tmp_path, gate="min_k = 100"), "--keep-report")
    assert result.returncode == 1
    assert written(tmp_path) == ["audit.json", "report.html"]
    assert json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))["passed"] is False


def test_the_quick_audit_attacks_and_its_advantage_can_be_required(tmp_path: Path):
    result = run(
        "run", write(tmp_path, level="quick", audit=WITHOUT_TORCH, gate="max_attack_advantage = 0.5"), "--json", "-q"
    )
    audit = json.loads(result.stdout)
    advantages = [
        risk["result"]["rate"] - max(risk["result"]["baseline"], risk["result"]["control"] or 0.0)
        for risk in audit["risks"]
    ]
    # A group that gets the values of a real member points at that person, so this is not always met.
    assert audit["gate"][0]["measured"] == pytest.approx(max(advantages))
    assert result.returncode == (0 if max(advantages) <= 0.5 else 1), result.stderr
    attacks = [risk["result"]["attack"] for risk in audit["risks"]]
    assert {"threshold", "random_forest"} <= set(attacks)
    assert any("attribute" in attack for attack in attacks)
    for risk in audit["risks"]:
        low, high = risk["result"]["interval"]
        assert low <= risk["result"]["rate"] <= high
        assert "most_exposed" not in risk["result"]


@pytest.mark.parametrize(
    "method", ["mondrian", "information-loss", "workload-aware", "hilbert", "r-plus-tree", "model-guided"]
)
def test_every_method_that_a_policy_can_name_keeps_k(tmp_path: Path, method: str):
    policy = write(tmp_path, method=f'name = "{method}"')
    if method == "hilbert":  # its groups are no document
        refused = run("run", policy)
        assert refused.returncode == 2 and "line 5, [data] artifact" in refused.stderr
        text = policy.read_text(encoding="utf-8").replace('artifact = "partition.json"\n', "")
        policy.write_text(text, encoding="utf-8")
    result = run("run", policy, "--quiet", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["sizes"]["smallest"] >= 8


def test_diversity_of_a_sensitive_column_is_kept_and_counted(tmp_path: Path):
    policy = write(tmp_path, columns='sensitive = ["job"]', method="l = 2", gate="min_l = 2\nmin_k = 8")
    policy.write_text(policy.read_text(encoding="utf-8").replace(', "job"]\nsub', "]\nsub"), encoding="utf-8")
    result = run("run", policy, "--quiet", "--json")
    assert result.returncode == 0, result.stderr
    gate = {check["name"]: check["measured"] for check in json.loads(result.stdout)["gate"]}
    assert gate["min_l"] >= 2
    rows = read_rows(tmp_path / "out.csv")
    groups: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in ("age", "zip", "hours", "born")), set()).add(row["job"])
    assert min(len(jobs) for jobs in groups.values()) == gate["min_l"]


def test_ready_predictions_need_no_model_and_do_not_leave(tmp_path: Path):
    policy = write(tmp_path, model='guide_column = "wage"\ntest_fraction = 0.0')
    text = policy.read_text(encoding="utf-8").replace('target = "wage"\n', "")
    policy.write_text(text, encoding="utf-8")
    result = run("run", policy, "--quiet", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["utility"] is None
    assert "wage" not in read_rows(tmp_path / "out.csv")[0]


def test_a_dry_run_checks_and_writes_nothing(tmp_path: Path):
    result = run("run", write(tmp_path), "--dry-run")
    assert result.returncode == 0, result.stderr
    assert "Nothing was run" in result.stdout
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"columns": 'keep = ["agee"]'}, ["line 12", "[columns] keep", "Did you mean 'age'"]),
        ({"method": "suppression_limit = 7"}, ["line 15", "suppression_limit", "from 0 to below 1"]),
        ({"model": 'guide_column = "nothing"'}, ["line 18", "guide_column"]),
        ({"method": "l = 2"}, ["line 15", "[method] l", "sensitive"]),
    ],
)
def test_a_wrong_policy_exits_with_two_and_names_line_and_key(tmp_path: Path, settings, expected: list[str]):
    result = run("run", write(tmp_path, **settings))
    assert result.returncode == 2, result.stdout
    for part in expected:
        assert part in result.stderr.replace("\n", " ")
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("out.csv", "out.xyz", "'out.xyz' has no ending"),
        ("partition.json", "audit.json", "[data] audit and artifact are the same file"),
        ("partition.json", "policy.toml", "ends in .json"),
        ("out.csv", "people.csv", "is the input itself"),
        ("out.csv", "nowhere/out.csv", "does not exist"),
        ("out.csv", ".", "is a folder"),
        ("out.csv", "out\\u0000.csv", "[data] release = 'out\\x00.csv': expected text in quotes"),
        ("out.csv", f"{'x' * 300}.csv", "cannot be used: File name too long"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_any_work(tmp_path: Path, old: str, new: str, says: str):
    policy = write(tmp_path)
    before = (tmp_path / "people.csv").read_bytes()
    policy.write_text(policy.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    result = call("run", policy, "--dry-run", "--force")
    assert result.exit_code == 2 and says in " ".join(result.stderr.split()), result.stderr
    assert written(tmp_path) == [] and (tmp_path / "people.csv").read_bytes() == before


def test_a_policy_that_is_not_there_is_answered_with_a_command_that_works(tmp_path: Path):
    result = call("run", tmp_path / "policy.toml")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "'sfumato init --help' says how" in said and "under [" not in said


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("name;age;wage\n" + "a;1;high\n" * 30, "the target 'wage' has one value only: expected at least two"),
        ("name;age;wage\n" + ";;\n" * 30, "the target 'wage' has no value: expected at least two"),
        ("name;age;wage\na;1;high\nb;2;low\n", "k = 8 with 2 records: expected at most as many"),
        ("name;age;salary\n" + "a;1;2\n" * 30, "target names 'wage', which is not a column"),
        ("name;wage\n" + "a;high\nb;low\n" * 9, "no column is left to be rewritten"),
    ],
)
def test_a_table_that_a_policy_cannot_be_about_is_refused_in_words(tmp_path: Path, table: str, says: str):
    policy = write(tmp_path)
    text = policy.read_text(encoding="utf-8").replace(', "zip", "hours", "born", "job"]\nsubgroups = ["job"]', "]")
    if ";age" not in table:
        text = text.replace('quasi_identifiers = ["age"]\n', "")
    policy.write_text(text.replace('types = { zip = "text" }\n', ""), encoding="utf-8")
    (tmp_path / "people.csv").write_text(table, encoding="utf-8")
    result = call("run", policy)
    assert result.exit_code == 2 and says in " ".join(result.stderr.split()), result.stderr
    assert written(tmp_path) == []


def test_a_test_fraction_that_leaves_nothing_to_protect_is_named(tmp_path: Path):
    result = run("run", write(tmp_path, model="test_fraction = 1"))
    assert result.returncode == 0
    assert "a test fraction of 1 of 300 records" in result.stderr and "leaves 300 to test" in result.stderr


def test_existing_outputs_are_not_replaced_unasked(tmp_path: Path):
    policy = write(tmp_path)
    (tmp_path / "report.html").write_text("mine", encoding="utf-8")
    result = run("run", policy)
    assert result.returncode == 2 and "report.html" in result.stderr
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "mine"


def test_an_interrupted_run_leaves_nothing(tmp_path: Path):
    policy = write(tmp_path)
    started = subprocess.Popen(
        [sys.executable, "-m", "sfumato", "run", str(policy)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"COLUMNS": "80"},
    )
    assert started.stderr is not None
    started.stderr.readline()  # the first step has begun
    time.sleep(0.2)
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=60)
    # A signal that comes while a compiled module is being loaded may end it otherwise than 130, never as a failed gate.
    assert started.returncode != 1
    assert written(tmp_path) == (sorted(OUTPUTS) if started.returncode == 0 else [])


def test_an_interruption_before_a_command_has_begun_is_no_traceback(monkeypatch, capsys):
    class Interrupted(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "sfumato.cli.application", Interrupted("sfumato.cli.application"))
    with pytest.raises(SystemExit, match="130"):
        main()
    assert capsys.readouterr().err == "error: interrupted; nothing was done.\n"


def test_an_interrupted_audit_goes_on_with_the_shadow_models_it_has(tmp_path: Path, monkeypatch):
    policy = write(tmp_path, level='standard"\nunfinished = "kept')
    only_shadows = replace(attacking._PLANS["standard"], n_attributes=0)
    kept = ("lira_offline", "rmia", "singling_out", "linkability", "inference", "row_order")
    monkeypatch.setattr(attacking, "ATTACKS", kept)
    monkeypatch.setitem(attacking._PLANS, "standard", only_shadows)
    trained = []

    def train(tasks, n_jobs):
        for number, *task in tasks:
            if len(trained) == 5:
                trained.append("interrupted")
                raise KeyboardInterrupt
            trained.append(number)
            yield shadows._train_one(number, *task)

    monkeypatch.setattr(shadows, "_run", train)
    interrupted = call("run", policy)
    assert interrupted.exit_code == 130
    assert written(tmp_path) == ["kept"]
    assert len(list((tmp_path / "kept").iterdir())) == 5
    result = call("run", policy)
    assert result.exit_code == 0, result.stderr
    assert trained == [*range(5), "interrupted", *range(5, 16)]
    assert "shadow models: 6 of 16" in result.stderr and "shadow models: 16 of 16" in result.stderr


def test_a_folder_for_shadow_models_that_cannot_be_is_named(tmp_path: Path):
    left_out = 'leave_out = ["network", "threshold", "random-forest", "attribute", "singling-out", "linkability"]'
    policy = write(tmp_path, level="standard", audit=f'unfinished = "people.csv/kept"\n{left_out}')
    result = call("run", policy, "--quiet")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "kept" in said and "cannot be used: Not a directory" in said and "could not be shown" not in said
    assert written(tmp_path) == []


def with_persons(folder: Path) -> None:
    """Give every two records in turn to one person."""
    lines = people().splitlines()
    rows = [lines[0] + ";person", *(f"{line};P{place // 2}" for place, line in enumerate(lines[1:]))]
    (folder / "people.csv").write_text("\n".join(rows), encoding="utf-8")


def test_the_gate_counts_persons_where_a_person_has_several_records(tmp_path: Path):
    policy = write(tmp_path, columns='unit = "person"', gate="min_k = 9", method='name = "mondrian"')
    with_persons(tmp_path)
    result = run("run", policy, "--json", "--quiet")
    assert result.returncode == 1, result.stderr
    check = json.loads(result.stdout)["gate"][0]
    # A group of nine records may be of eight persons.
    assert check["measured"] == 8 and "8 persons" in check["sentence"]


@pytest.mark.parametrize(
    ("method", "columns"),
    [
        ('name = "model-guided"', 'keep = ["person"]'),
        ('name = "mondrian"\nsuppression_limit = 0.1', 'unit = "person"'),
        ('name = "workload-aware"\nrepresentative = "range"', 'keep = ["person"]'),
        ('name = "information-loss"\nl = 2', 'sensitive = ["person"]\nlimits = { age = 5 }'),
        ('name = "hilbert"', 'keep = ["person"]'),
        ('name = "r-plus-tree"\nrepresentative = "bounds"', 'categorical = ["hours"]\nkeep = ["person"]'),
    ],
)
def test_columns_that_are_read_when_needed_are_released_like_those_of_a_table(tmp_path: Path, method, columns):
    policy = write(tmp_path, columns=columns, method=method)
    with_persons(tmp_path)
    source = read_file(tmp_path / "people.csv")
    write_file(source.table, tmp_path / "people.parquet", "parquet", source.style)
    text = policy.read_text(encoding="utf-8").replace(".csv", ".parquet")
    text = text.replace('artifact = "partition.json"\ntypes = { zip = "text" }\n', "")
    policy.write_text(text, encoding="utf-8")
    console = Console(quiet=True)
    held, read = (open_job(console, Policy.read(policy)) for _ in range(2))
    held.source = replace(read_file(tmp_path / "people.parquet"), columns=None)
    (_, expected, _), (_, found, _) = release_all(console, held), release_all(console, read)
    assert read.table is read.source.columns and held.table.num_rows == N_PEOPLE
    assert found.table.equals(expected.table) and found.table.schema.equals(expected.table.schema, check_metadata=True)
    assert found.measures == expected.measures


def test_who_a_record_belongs_to_is_no_feature_of_the_model(tmp_path: Path):
    policy = write(tmp_path, columns='unit = "person"')
    with_persons(tmp_path)
    job = open_job(Console(quiet=True), Policy.read(policy))
    assert set(job.features(job.table).column_names) == {"age", "zip", "hours", "born", "job"}


def test_a_column_that_is_kept_is_kept_in_shadow_models_too(tmp_path: Path):
    policy = write(tmp_path, columns='keep = ["name"]')
    text = policy.read_text(encoding="utf-8").replace('identifiers = ["name"]', "")
    policy.write_text(text, encoding="utf-8")
    job = open_job(Console(quiet=True), Policy.read(policy))
    assert job.target is not None
    protected_estimator(job).fit(job.features(job.table), job.target.values)


def test_what_an_earlier_run_wrote_is_not_called_written(tmp_path: Path):
    assert run("run", write(tmp_path)).returncode == 0
    result = run("run", write(tmp_path, gate="min_k = 100"), "--force")
    assert result.returncode == 1
    assert "Nothing was released." in result.stdout and "Written:" not in result.stdout


def test_a_report_that_is_to_be_markdown_is_markdown(tmp_path: Path):
    policy = write(tmp_path)
    text = policy.read_text(encoding="utf-8").replace("artifact", 'report = "report.md"\nartifact')
    policy.write_text(text, encoding="utf-8")
    assert run("run", policy).returncode == 0
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# Privacy audit of people.csv")


def test_a_table_too_small_to_be_attacked_as_planned_is_judged_by_the_other_attacks(tmp_path: Path):
    policy = write(tmp_path, level="quick")
    (tmp_path / "people.csv").write_text(people(60), encoding="utf-8", newline="")
    result = run("run", policy, "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    audit = json.loads(result.stdout)
    assert any(note.startswith("Not run: membership, by the loss.") for note in audit["notes"])
    assert {risk["eu_risk"] for risk in audit["risks"]} >= {"singling out", "linkability"}


def test_a_wrong_type_in_a_policy_is_named_with_its_line(tmp_path: Path):
    policy = write(tmp_path)
    text = policy.read_text(encoding="utf-8").replace('zip = "text"', 'zip = "txt"')
    policy.write_text(text, encoding="utf-8")
    result = run("run", policy, "--dry-run")
    assert result.returncode == 2
    assert "line 6, [data] types" in result.stderr and "--types" not in result.stderr


@pytest.mark.parametrize("columns", ["40", "80"])
def test_no_number_is_cut_however_narrow_the_terminal_is(tmp_path: Path, monkeypatch, columns: str):
    monkeypatch.setenv("COLUMNS", columns)
    result = call("run", write(tmp_path), "--force")
    said = " ".join(result.stdout.split())
    audit = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert f"{audit['utility']['raw']:.4f}" in said and f"{audit['utility']['protected']:.4f}" in said
    assert audit["gate"][0]["sentence"] in said
    assert max(map(len, result.stdout.splitlines())) <= int(columns)


def test_titles_of_a_policy_stand_in_the_report(tmp_path: Path):
    policy = write(tmp_path)
    policy.write_text(policy.read_text(encoding="utf-8") + '[titles]\njob = "Occupation"\n', encoding="utf-8")
    assert call("run", policy, "--quiet").exit_code == 0
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Occupation" in report and json.loads((tmp_path / "audit.json").read_text())["titles"] == {
        "job": "Occupation"
    }


def test_a_title_of_no_column_is_refused_by_its_line(tmp_path: Path):
    policy = write(tmp_path)
    policy.write_text(policy.read_text(encoding="utf-8") + '[titles]\njobs = "Occupation"\n', encoding="utf-8")
    result = call("run", policy, "--quiet")
    assert result.exit_code == 2
    assert "[titles] jobs names 'jobs', which is not a column" in " ".join(result.stderr.split())
    assert "Did you mean 'job'?" in " ".join(result.stderr.split())


def people_with(n: int, column: str, values: list[object]) -> str:
    lines = people(n).splitlines()
    return "\n".join(f"{line};{value}" for line, value in zip(lines, [column, *values], strict=True)) + "\n"


def test_a_subgroup_of_many_numbers_is_put_into_classes(tmp_path: Path):
    policy = write(tmp_path, columns='keep = ["pay"]')
    text = policy.read_text(encoding="utf-8").replace('subgroups = ["job"]', 'subgroups = ["pay", "born", "name"]')
    policy.write_text(text, encoding="utf-8")
    pay = [1003 + 7 * i for i in range(900)]
    (tmp_path / "people.csv").write_text(people_with(900, "pay", pay), encoding="utf-8", newline="")
    result = call("run", policy, "--quiet", "--json")
    assert result.exit_code in (0, 1), result.stderr
    utility = json.loads(result.stdout)["utility"]
    of_pay = [group for group in utility["subgroups"] if group["column"] == "pay"]
    assert of_pay[0]["group"].startswith("below") and len(of_pay) == 4
    assert sum(group["n_records"] for group in of_pay) == utility["n_test"]
    of_birth = [group["group"] for group in utility["subgroups"] if group["column"] == "born"]
    assert len(of_birth) == 4 and all(len(part) == 4 for part in of_birth[0].split()[1:])
    assert utility["notes"] == [
        "No subgroup of 'name' is shown: none has 30 test records. Choose a column with fewer values, or raise "
        "test_fraction."
    ]


def test_a_green_gate_is_not_had_over_people_who_are_unique_by_unchanged_columns(tmp_path: Path):
    gate = "min_k = 8\nmax_unique = 0.05\nmax_attack_advantage = 0.2"
    policy = write(tmp_path, columns='keep = ["pay"]', level="quick", audit=WITHOUT_TORCH, gate=gate)
    pay = [1003 + 7 * (i % 700) for i in range(900)]
    (tmp_path / "people.csv").write_text(people_with(900, "pay", pay), encoding="utf-8", newline="")
    result = call("run", policy, "--quiet", "--keep-report")
    assert result.exit_code == 1, result.stderr
    audit = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    failed = {check["name"]: check for check in audit["gate"] if not check["passed"]}
    assert set(failed) == {"max_unique", "max_attack_advantage"}
    assert failed["max_unique"]["measured"] > 0.5
    (risk,) = [risk for risk in audit["risks"] if risk["title"] == "singling out"]
    assert risk["result"]["rate"] > 0.5 and risk["result"]["details"]["predicates_from"] == "unchanged columns"
    said = " ".join(result.stdout.split())
    assert "what to try" in said and "without “pay” no record would be unique" in said
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    box = report[report.index("Verdict of the gate") : report.index(">Method<")]
    assert "unique by the columns released unchanged" in box and "What to try" in box


def test_what_was_learned_is_told_beside_the_score(tmp_path: Path):
    policy = write(tmp_path, gate="min_accuracy_kept = 0.1\nmin_gain_kept = 0.99")
    result = call("run", policy, "--quiet", "--keep-report")
    audit = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    utility = audit["utility"]
    gain = (utility["protected"] - utility["same_answer"]) / (utility["raw"] - utility["same_answer"])
    check = next(check for check in audit["gate"] if check["name"] == "min_gain_kept")
    assert check["measured"] == pytest.approx(gain) and check["passed"] is (gain >= 0.99)
    assert f"gain over the baseline {gain:.1%}" in " ".join(result.stdout.split())
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"Of its gain over the majority-class baseline, {gain:.1%} is kept" in report


@pytest.mark.parametrize("name", ["people.csv", "people.PARQUET"])
@pytest.mark.parametrize("command", ["run", "evidence"])
def test_a_table_in_place_of_a_policy_is_told_apart(tmp_path: Path, name: str, command: str):
    (tmp_path / name).write_bytes(b"age,ill\n30,\xe4\n")
    result = call(command, tmp_path / name)
    assert result.exit_code == 2
    assert "is a table: expected a policy" in " ".join(result.output.split())
    assert "sfumato init" in " ".join(result.output.split())
