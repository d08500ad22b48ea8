# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit``, ``compare`` and ``sweep``, on files that anyone may have made."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.attack import release_attacks
from sfumato.errors import InputError

from .conftest import call, run, run_process
from .test_run_command import write


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A table, a release of it in decades, a table of other people, and a second release in groups of its own."""
    folder = tmp_path_factory.mktemp("audit")
    random = np.random.default_rng(0)

    def people(n: int) -> pd.DataFrame:
        age = random.integers(20, 60, n)
        return pd.DataFrame({
            "name": [f"Person {i}" for i in range(n)],
            "age": age,
            "town": random.choice(["Ulm", "Jena", "Graz"], n),
            "ill": np.where(age + random.normal(0, 10, n) > 45, "yes", "no"),
        })  # fmt: skip

    table = people(400)
    table.to_csv(folder / "people.csv", index=False)
    people(200).to_csv(folder / "others.csv", index=False)
    decades = table.assign(age=table.age // 10 * 10).drop(columns="name")
    decades.to_csv(folder / "decades.csv", index=False)
    table.assign(age=(table.age + 5) // 10 * 10).drop(columns="name").to_csv(folder / "shifted.csv", index=False)
    return folder


def test_a_release_of_anyone_is_measured_attacked_and_reported(files: Path, tmp_path: Path):
    result = run_process(
        "audit", files / "people.csv", files / "decades.csv",
        "--quasi-identifiers", "age,town", "--sensitive", "ill", "--control", files / "others.csv",
        "--report", tmp_path / "report.html", "-o", tmp_path / "audit.json", "--min-k", 5,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    audit = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    released = pd.read_csv(files / "decades.csv")
    assert audit["sizes"]["smallest"] == released.groupby(["age", "town"]).size().min()
    assert [risk["eu_risk"] for risk in audit["risks"]] == [
        "singling out", "linkability", "inference", "singling out", "inference", "inference", "inference", "inference",
        "singling out",
    ]  # fmt: skip
    assert all(risk["result"]["control"] is not None for risk in audit["risks"])
    assert "Person" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_columns_that_single_people_out_beside_the_groups_are_named(files: Path):
    asked = ("audit", files / "people.csv", files / "people.csv", "--json")
    result = call(*asked, "--quasi-identifiers", "town", "--max-unique", 0.05)
    assert result.exit_code == 1
    said = "100.0% of the records are unique by the columns released unchanged: “name”, “age” and “ill”."
    assert said in " ".join(result.stderr.split())
    found = json.loads(result.stdout)
    assert found["uniqueness"]["share"] == 1.0
    assert [(check["name"], check["passed"]) for check in found["gate"]] == [("max_unique", False)]
    assert found["advice"] == [
        "max_unique: without “name” fewer than 10 records would be unique (now 100.0%). "
        "Make that column a quasi-identifier, round it, "
        "or drop it."
    ]
    (isolated,) = [risk for risk in found["risks"] if risk["title"] == "singling out"]
    assert isolated["result"]["rate"] == 1.0 and isolated["result"]["details"]["predicates_from"] == "unchanged columns"
    result = call(*asked, "--quasi-identifiers", "name,age,town", "--max-unique", 0.05)
    assert result.exit_code == 0 and "unique" not in result.stderr


def test_a_condition_that_is_not_met_exits_with_one(files: Path):
    result = run(
        "audit", files / "people.csv", files / "decades.csv", "--quasi-identifiers", "age,town", "--min-k", 390
    )
    assert result.returncode == 1
    assert "NOT MET" in result.stdout


def test_a_release_of_more_records_than_the_original_is_refused_with_the_numbers(files: Path):
    result = run("audit", files / "others.csv", files / "decades.csv")
    assert result.returncode == 2
    assert "200" in result.stderr and "400" in result.stderr


def test_a_release_that_was_shuffled_is_attacked_without_its_order(files: Path, tmp_path: Path):
    shuffled = tmp_path / "shuffled.csv"
    released = pd.read_csv(files / "decades.csv")
    released.sample(frac=1, random_state=0).to_csv(shuffled, index=False)
    asked = ("--quasi-identifiers", "age,town", "--sensitive", "ill", "--control", files / "others.csv", "--json")
    result = call("audit", files / "people.csv", shuffled, *asked)
    assert result.exit_code == 0, result.stderr
    found, in_order = (json.loads(call("audit", files / "people.csv", file, *asked).stdout) for file in
                       (shuffled, files / "decades.csv"))  # fmt: skip
    assert found["sizes"] == in_order["sizes"] and found["uniqueness"] == in_order["uniqueness"]
    in_any_order = [risk for risk in in_order["risks"] if "row order" not in risk["title"]]
    assert [risk["title"] for risk in found["risks"]] == [risk["title"] for risk in in_any_order]
    for one, other in zip(found["risks"], in_any_order, strict=True):
        # A decade shows as its first year: somebody of 29 is placed among those of 30 where the order is not known.
        by_groups = one["title"].startswith("guess")
        assert one["result"]["rate"] == pytest.approx(other["result"]["rate"], abs=0.15 if by_groups else 0.05)
    assert "Row order does not apply: the rows are not in the order of the original." in found["notes"]
    assert all(column["loss"] is None for column in found["columns"])
    # Where another column stayed in its place, that one was exchanged on purpose: a way to protect it.
    people = pd.read_csv(files / "people.csv").assign(again=range(400))
    people.to_csv(tmp_path / "people.csv", index=False)
    exchanged = released.assign(ill=released["ill"].to_numpy()[::-1], again=range(400))
    exchanged.to_csv(tmp_path / "exchanged.csv", index=False)
    result = call("audit", tmp_path / "people.csv", tmp_path / "exchanged.csv", *asked[:-3], "--json")
    assert not any("order" in note for note in json.loads(result.stdout)["notes"])


@pytest.mark.parametrize("shuffle", [False, True])
def test_whether_rows_were_shuffled_is_told_from_rewritten_columns_alone(files: Path, tmp_path: Path, shuffle: bool):
    released = pd.read_csv(files / "decades.csv")[["age", "town"]].assign(age=lambda t: t.age.astype(str) + "-99")
    (released.sample(frac=1, random_state=0) if shuffle else released).to_csv(tmp_path / "out.csv", index=False)
    result = call("audit", files / "people.csv", tmp_path / "out.csv", "--json")
    assert result.exit_code == 0, result.stderr
    assert any("rows are not in the order" in note for note in json.loads(result.stdout)["notes"]) is shuffle


def test_labels_of_a_shuffled_release_that_say_nothing_are_named(files: Path, tmp_path: Path):
    released = pd.read_csv(files / "decades.csv").assign(age=lambda t: t.age.map({20: "young"}).fillna("old"))
    released.sample(frac=1, random_state=0).to_csv(tmp_path / "out.csv", index=False)
    result = call("audit", files / "people.csv", tmp_path / "out.csv", "--sensitive", "ill")
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stderr.split())
    assert "not run: singling out. column 'age' has 2 labels that say neither a range nor a set of values" in said


def test_a_release_that_lacks_some_records_is_audited(files: Path, tmp_path: Path):
    pd.read_csv(files / "decades.csv")[:380].to_csv(tmp_path / "out.csv", index=False)
    result = call("audit", files / "people.csv", tmp_path / "out.csv", "--sensitive", "ill", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["n_records"], found["n_released"], found["n_suppressed"]) == (400, 380, 20)


def test_columns_without_a_role_are_taken_for_what_was_done_to_them(files: Path):
    result = call("audit", files / "people.csv", files / "decades.csv", "--target", "ill")
    said = " ".join(result.stdout.split())
    assert "quasi-identifier 1 age (auto-detected: its values were changed)" in said
    assert "target 1 ill (named)" in said
    assert "released unchanged 1 town (auto-detected: its values are those of the original)" in said
    assert "dropped 1 name (not in the release)" in said
    both = call("audit", files / "people.csv", files / "decades.csv", "--target", "ill", "--quasi-identifiers", "ill")
    assert both.exit_code == 2 and "--target names 'ill', which --quasi-identifiers names, too" in both.stderr


@pytest.mark.parametrize("representative", ["mean", "range", "bounds"])
def test_an_own_release_has_groups_of_k_for_the_audit_without_any_roles(
    files: Path, tmp_path: Path, representative: str
):
    table = tmp_path / "people.csv"
    pd.read_csv(files / "people.csv").drop(columns="name").to_csv(table, index=False)
    asked = ("--target", "ill", "--k", 10, "--model", "decision-tree", "--representative", representative)
    assert call("anonymize", table, *asked, "-o", tmp_path / "out.csv").exit_code == 0
    for named in ((), ("--target", "ill")):
        found = json.loads(call("audit", table, tmp_path / "out.csv", *named, "--json").stdout)
        assert found["sizes"]["smallest"] >= 10, named


def test_a_target_that_is_nearly_unique_does_not_pass_a_gate(tmp_path: Path):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"age": random.integers(20, 60, 400), "wage": random.integers(10_000, 99_999, 400)})
    table.to_csv(tmp_path / "people.csv", index=False)
    table.assign(age=table.age // 20 * 20).to_csv(tmp_path / "out.csv", index=False)
    asked = ("audit", tmp_path / "people.csv", tmp_path / "out.csv", "--min-k", 2)
    assert call(*asked).exit_code == 0
    result = call(*asked, "--target", "wage")
    assert result.exit_code == 1
    said = " ".join(result.stdout.split())
    assert "max_unique_target NOT MET" in said
    assert "max_unique_target: round the target to" in said and "or release the mean of each group" in said


@pytest.mark.parametrize("columns", [["name", "age", "town", "ill"], ["age", "town", "ill", "wage"]])
def test_the_people_of_a_release_are_no_control_of_themselves(tmp_path: Path, columns: list[str]):
    random = np.random.default_rng(0)
    table = pd.DataFrame({
        "name": [f"Person {i}" for i in range(400)],
        "age": random.integers(20, 60, 400), "town": random.choice(["Ulm", "Graz"], 400),
        "ill": random.choice(["yes", "no"], 400), "wage": random.integers(0, 4, 400),
    })  # fmt: skip
    table[columns][:200].to_csv(tmp_path / "people.csv", index=False)
    table[columns][200:].to_csv(tmp_path / "others.csv", index=False)
    table[columns][50:250].sample(frac=1, random_state=0).to_csv(tmp_path / "mixed.csv", index=False)
    asked = ("audit", tmp_path / "people.csv", tmp_path / "people.csv", "--quasi-identifiers", "age,town")
    for control, exit_code in {"others.csv": 0, "mixed.csv": 2, "people.csv": 2}.items():
        result = call(*asked, "--control", tmp_path / control)
        assert result.exit_code == exit_code, control
        assert ("expected people outside the release" in " ".join(result.stderr.split())) is (exit_code == 2)


def test_columns_of_every_type_can_stay_as_they_are(tmp_path: Path):
    table = pa.table(
        {
            "age": [20, 20, 30, 30],
            "none": pa.nulls(4),
            "half": pa.array([1, 2, None, 4], pa.float32()).cast(pa.float16()),
            "paid": pa.array(["1.10", "2.20", None, "3.30"]).cast(pa.decimal128(10, 2)),
            "stay": pa.array([1, 2, 3, None], pa.duration("s")),
            "at": pa.array([1, 2, 3, None], pa.time32("s")),
            "job": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "people.parquet")
    both = (tmp_path / "people.parquet", tmp_path / "people.parquet")
    assert call("audit", *both, "--quasi-identifiers", "age").exit_code == 0
    pq.write_table(table.take([3, 2, 1, 0]), tmp_path / "shuffled.parquet")
    result = call("audit", both[0], tmp_path / "shuffled.parquet", "--quasi-identifiers", "age", "--json")
    assert result.exit_code == 0, result.stderr
    assert any("not in the order of the original" in note for note in json.loads(result.stdout)["notes"])


def test_other_people_need_only_the_columns_that_are_attacked(files: Path, tmp_path: Path):
    others = tmp_path / "others.csv"
    pd.read_csv(files / "others.csv")[["town", "age"]].to_csv(others, index=False)
    asked = ("audit", files / "people.csv", files / "decades.csv", "--control", others, "--max-advantage", 1, "--json")
    result = call(*asked, "--quasi-identifiers", "age,town")
    assert result.exit_code == 0, result.stderr
    refused = call(*asked, "--quasi-identifiers", "age,town", "--sensitive", "ill")
    assert refused.exit_code == 2 and "--control has no column 'ill'" in refused.stderr


def test_a_bound_on_attacks_is_not_met_where_one_could_not_be_run(files: Path, monkeypatch):
    def refuse(*arguments, **settings):
        raise InputError("3 people: expected more. Add some.")

    monkeypatch.setattr(release_attacks, "link_through_release", refuse)
    asked = ("audit", files / "people.csv", files / "decades.csv", "--quasi-identifiers", "age,town")
    result = call(*asked, "--max-advantage", 1)
    assert result.exit_code == 1
    assert "not run: link two lists of people. 3 people" in " ".join(result.stderr.split())
    said = " ".join(result.stdout.split())
    assert "link two lists of people" in said and "leave the bound on attacks out" in said
    assert call(*asked, "--min-k", 1).exit_code == 0


def test_two_outputs_of_an_audit_are_two_files(files: Path, tmp_path: Path):
    one = tmp_path / "report.html"
    result = call("audit", files / "people.csv", files / "decades.csv", "--report", one, "-o", one)
    assert result.exit_code == 2 and "--report and -o name the same file" in result.stderr
    refused = call("audit", files / "people.csv", files / "decades.csv", "--report", files / "people.csv")
    assert refused.exit_code == 2 and "--report" in refused.stderr and "the input itself" in refused.stderr


@pytest.mark.parametrize("command", ["audit", "compare"])
@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "is a folder"), ("", "is empty"), ("age,town,ill\n", "has no records"), ("age,town\n20,Ulm\n", "records")],
)
def test_a_second_file_that_is_no_release_of_the_first_is_refused_in_words(
    files: Path, tmp_path: Path, command: str, content: str | None, says: str
):
    other = tmp_path
    if content is not None:
        other = tmp_path / "other.csv"
        other.write_text(content, encoding="utf-8")
    result = call(command, files / "decades.csv", other)
    assert result.exit_code == 2 and says in " ".join(result.stderr.split()), result.stderr


def test_a_file_beside_itself_is_noted_and_requires_nothing(files: Path):
    result = call("compare", files / "decades.csv", files / "decades.csv")
    assert result.exit_code == 0
    assert "both names are of one file" in result.stderr
    assert "No condition was set for both together" in result.stdout


def test_no_line_speaks_of_people_hidden_among_fewer_than_one(files: Path):
    result = call("compare", files / "people.csv", files / "people.csv")
    assert "fewer than" not in result.stdout and "smallest group of both together" in result.stdout


@pytest.mark.parametrize(
    ("option", "given"),
    [("--min-k", 0), ("--min-l", -1), ("--seed", -1), ("--max-advantage", "nan"), ("--max-unique", 1.5)],
)
def test_numbers_out_of_bounds_are_refused_by_their_option(files: Path, option: str, given: object):
    result = call("audit", files / "people.csv", files / "decades.csv", option, given)
    assert result.exit_code == 2 and f"{option} {given}: expected" in result.stderr
    if option == "--min-k":
        result = call("compare", files / "decades.csv", files / "shifted.csv", option, given)
        assert result.exit_code == 2 and f"{option} {given}: expected" in result.stderr


def test_two_releases_together_are_judged(files: Path):
    arguments = ("--quasi-identifiers", "age,town", "--sensitive", "ill", "--json")
    result = run_process("compare", files / "decades.csv", files / "shifted.csv", *arguments, "--min-k", 1)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    tables = [pd.read_csv(files / name) for name in ("decades.csv", "shifted.csv")]
    together = pd.DataFrame({"a": tables[0].age, "b": tables[1].age, "town": tables[0].town})
    assert found["smallest_together"] == together.groupby(["a", "b", "town"]).size().min()
    assert found["smallest_together"] < found["smallest_first"]
    refused = run("compare", files / "decades.csv", files / "shifted.csv", *arguments, "--min-k", 100)
    assert refused.returncode == 1


@pytest.fixture(scope="module")
def exported(files: Path) -> Path:
    """The table and its release as an office exports them: semicolons, Windows letters, codes with zeros in front."""
    for name in ("people.csv", "decades.csv"):
        table = pd.read_csv(files / name).assign(town=lambda t: t.town.replace("Jena", "Köln"), zone="007")
        table.to_csv(files / f"exported-{name}", index=False, sep=";", encoding="cp437")
    return files


def test_an_audit_reads_files_as_it_is_told(exported: Path):
    names = (exported / "exported-people.csv", exported / "exported-decades.csv")
    told = ("--encoding", "cp437", "--separator", ";", "--types", "zone=text,name=text")
    asked = ("--quasi-identifiers", "age,town,zone", "--json", "--quiet")
    result = call("audit", *names, *told, *asked)
    assert result.exit_code == 0, result.stderr
    columns = {column["name"]: column for column in json.loads(result.stdout)["columns"]}
    assert columns["zone"]["kind"] == "category" and columns["town"]["n_values_before"] == 3


def test_a_comparison_reads_files_as_it_is_told(exported: Path):
    name = exported / "exported-decades.csv"
    told = ("--encoding", "cp437", "--separator", ";", "--types", "zone=text")
    result = call("compare", name, name, *told, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    refused = call("compare", name, name, "--encoding", "cp437", "--types", "shoe=text")
    assert refused.exit_code == 2 and "'shoe'" in refused.stderr


def test_a_sweep_measures_every_k_and_draws_it(tmp_path: Path):
    policy = write(tmp_path)
    page = tmp_path / "sweep.html"
    result = run_process(
        "sweep", policy, "--k", "5,20", "--methods", "model-guided,mondrian", "-o", page, "--json", "--quiet"
    )
    assert result.returncode == 0, result.stderr
    points = json.loads(result.stdout)["points"]
    assert [(p["label"], p["at"]) for p in points] == [
        ("raw records", 1), ("model-guided", 5), ("model-guided", 20), ("mondrian", 5), ("mondrian", 20),
    ]  # fmt: skip
    assert all(0 < point["score"] <= 1 for point in points)
    html = page.read_text(encoding="utf-8")
    assert "mondrian" in html and "<svg" in html and "<script" not in html


def test_a_sweep_over_alpha_draws_a_curve_per_number_of_leaves(tmp_path: Path):
    policy, page = write(tmp_path), tmp_path / "sweep.html"
    result = run(
        "sweep", policy, "--alpha", "0,1", "--leaves", "2,8", "--personal", "job", "-o", page, "--json", "--quiet"
    )
    assert result.returncode == 0, result.stderr
    points = json.loads(result.stdout)["points"]
    assert list(dict.fromkeys(point["label"] for point in points)) == [
        "full resolution", "2 leaves", "8 leaves", "nothing collected",
    ]  # fmt: skip
    assert all([point["at"] for point in points if point["label"] == f"{n} leaves"] == [0, 1] for n in (2, 8))
    by_label = {point["label"]: point for point in points if point["at"] == 0}
    assert by_label["full resolution"]["attack"] >= by_label["8 leaves"]["attack"] >= by_label["8 leaves"]["baseline"]
    html = page.read_text(encoding="utf-8")
    assert "Choosing alpha" in html and html.count("<svg") == 2 and "8 leaves" in html


def test_a_sweep_over_leaves_alone_has_them_on_its_axis(tmp_path: Path):
    result = call("sweep", write(tmp_path), "--leaves", "2,4,8", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    points = json.loads(result.stdout)["points"]
    assert {point["by"] for point in points} == {"leaves"}
    assert [point["at"] for point in points if point["label"] == "alpha 0.5"] == [2, 4, 8]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--k", ""), "--k '': expected integers >= 2"),
        (("--k", "1,5"), "--k '1,5': expected integers >= 2"),
        (("--k", "500"), "too few for any of these k"),
        (("--alpha", "0,2"), "--alpha '0,2'"),
        (("--leaves", "1,x"), "--leaves '1,x'"),
        (("--alpha", "0.5", "--k", "5"), "--k with --alpha"),
        (("--personal", "job"), "--personal without"),
        (("--leaves", "4", "--personal", "shoe"), "--personal"),
    ],
)
def test_a_sweep_says_what_is_wrong_with_its_choices(tmp_path: Path, options: tuple[str, ...], says: str):
    result = call("sweep", write(tmp_path), *options)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())


def test_a_sweep_without_attacks_has_no_column_for_them(tmp_path: Path):
    result = call("sweep", write(tmp_path), "--k", "20,8,8", "--no-attack")
    assert result.exit_code == 0, result.stderr
    assert "attack" not in result.stdout
    assert [line.split()[-2] for line in result.stdout.splitlines()[-3:]] == ["1", "8", "20"]


def test_a_sweep_without_a_model_is_refused(tmp_path: Path):
    result = run("sweep", write(tmp_path, model="test_fraction = 0.0"))
    assert result.returncode == 2 and "test_fraction" in result.stderr


def test_a_misspelt_quasi_identifier_is_not_left_out_silently(files: Path):
    result = run("compare", files / "decades.csv", files / "shifted.csv", "--quasi-identifiers", "age,twon")
    assert result.returncode == 2
    assert "'twon'" in result.stderr


def test_a_sweep_over_models_shows_each_on_raw_records(tmp_path: Path):
    models = "decision-tree,logistic-regression"
    result = run("sweep", write(tmp_path), "--k", "8", "--models", models, "--no-attack", "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    raw = [point["label"] for point in json.loads(result.stdout)["points"] if point["at"] == 1]
    assert raw == ["raw records, decision-tree", "raw records, logistic-regression"]


@pytest.mark.parametrize(("options", "fewest"), [((), 10), (("--min-k", 25), 25)])
def test_a_release_that_protects_nobody_makes_no_finer_report(files: Path, options: tuple[object, ...], fewest: int):
    result = run("audit", files / "people.csv", files / "people.csv", *options, "--json", "--quiet")
    audit = json.loads(result.stdout)
    assert audit["sizes"]["smallest"] == 1 and audit["smallest_shown"] == fewest
    shares = [share for column in audit["columns"] for share in column["before"]]
    assert min(shares) >= fewest / 400 - 0.0005


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_a_result_that_cannot_be_shown_is_no_error_inside(files: Path):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "sfumato", "compare", files / "decades.csv", files / "shifted.csv", "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert ended.returncode == 3
    assert "the result could not be shown: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr and "inside sfumato" not in ended.stderr


def test_columns_that_the_original_lacks_are_named(files: Path, tmp_path: Path):
    pd.read_csv(files / "decades.csv").assign(visits=1).to_csv(tmp_path / "more.csv", index=False)
    result = call("audit", files / "people.csv", tmp_path / "more.csv")
    assert result.exit_code == 0
    assert "visits (not in the original)" in " ".join(result.output.split())


@pytest.mark.parametrize(("columns", "is_told"), [((), True), (("--quasi-identifiers", "age"), False)])
def test_groups_of_unchanged_columns_are_not_taken_for_those_of_a_release(tmp_path: Path, columns, is_told: bool):
    for place, by in enumerate((10, 20)):
        table = pd.DataFrame({"age": np.arange(40) // by, "pay": np.arange(40)})
        table.to_csv(tmp_path / f"{place}.csv", index=False)
    result = call("compare", tmp_path / "0.csv", tmp_path / "1.csv", *columns)
    assert result.exit_code == 0
    assert ("groups were formed by all columns" in " ".join(result.output.split())) is is_told
