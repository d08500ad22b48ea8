# SPDX-License-Identifier: Apache-2.0
"""``sfumato minimize``: from a file to a document that clients can apply."""

import csv
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import Generalization

from .conftest import call, read_rows


def minimize(people_file, tmp_path, *arguments):
    document = tmp_path / "generalization.json"
    found = call(
        "minimize", people_file, "--target", "wage", "--identifiers", "name", "-o", document, "--max-loss", "0.05",
        "--method", "features", *arguments,
    )  # fmt: skip
    return found, document


def test_the_document_says_how_coarsely_to_collect(people_file, tmp_path):
    found, document = minimize(people_file, tmp_path, "--personal", "job,zip")
    assert found.exit_code == 0, found.output
    generalization = Generalization.from_json(document.read_text(encoding="utf-8"))
    assert set(generalization.names) == {"age", "zip", "hours", "born", "job"}
    assert "not collected" in found.stdout and "reconstructed by an attacker" in found.stdout


def test_apply_takes_what_minimize_wrote(people_file, tmp_path):
    _, document = minimize(people_file, tmp_path)
    target = tmp_path / "minimized.csv"
    found = call("apply", document, people_file, "-o", target, "--identifiers", "name")
    assert found.exit_code == 0, found.output
    rows = read_rows(target)
    generalization = Generalization.from_json(document.read_text(encoding="utf-8"))
    for attribute in generalization.attributes:
        assert {row[attribute.name] for row in rows} <= set(attribute.labels)


def test_exports_are_written_beside_it(people_file, tmp_path):
    names = {"--sql": "view.sql", "--form": "form.html", "--schema": "record.json", "--javascript": "buckets.js"}
    names["--plot"] = "plot.svg"
    options = [part for option, name in names.items() for part in (option, tmp_path / name)]
    found, document = minimize(people_file, tmp_path, *options, "--dialect", "duckdb")
    assert found.exit_code == 0, found.output
    generalization = Generalization.from_json(document.read_text(encoding="utf-8"))
    texts = {name: (tmp_path / name).read_text(encoding="utf-8") for name in names.values()}
    assert texts["view.sql"] == generalization.to_sql("duckdb")
    assert texts["form.html"] == generalization.to_form()
    assert json.loads(texts["record.json"]) == generalization.to_json_schema()
    assert texts["buckets.js"] == generalization.to_javascript()
    assert texts["plot.svg"].startswith("<svg") and "nothing generalized" in texts["plot.svg"]


def test_titles_of_a_policy_reach_the_form(people_file, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('[model]\nname = "x"\n[titles]\nage = "Age in years"\nwage = "Wage"\n', encoding="utf-8")
    form = tmp_path / "form.html"
    found, _ = minimize(people_file, tmp_path, "--form", form, "--titles", policy)
    assert found.exit_code == 0, found.output
    page = form.read_text(encoding="utf-8")
    assert "Age in years" in page and "Wage" not in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[titles]\naeg = "Age"', "names 'aeg', which is not a column"),
        ("[titles]\nage = 3", "the title of 'age' is not text"),
        ("titles = 1", "has no section [titles]"),
        ("[titles", "is not valid TOML"),
        ("a = " + "[" * 5000, "is not valid TOML"),
    ],
)
def test_titles_that_cannot_be_used_are_refused(people_file, tmp_path, text, message):
    titles = tmp_path / "titles.toml"
    titles.write_text(text, encoding="utf-8")
    found, document = minimize(people_file, tmp_path, "--form", tmp_path / "form.html", "--titles", titles)
    assert found.exit_code == 2
    assert message in " ".join(found.output.split())
    assert not document.exists()


def test_a_category_of_one_person_is_in_no_file(people_file, tmp_path):
    path = tmp_path / "with_canary.csv"
    rows = read_rows(people_file)
    rows[0]["job"] = "Lighthouse keeper of Alderney"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    names = ["view.sql", "form.html", "record.json", "buckets.js", "plot.svg"]
    options = zip(["--sql", "--form", "--schema", "--javascript", "--plot"], names, strict=True)
    found, document = minimize(path, tmp_path, *(part for o, n in options for part in (o, tmp_path / n)))
    assert found.exit_code == 0, found.output
    written = "".join(own.read_text(encoding="utf-8") for own in [document, *(tmp_path / name for name in names)])
    assert "Alderney" not in written + found.output
    assert json.loads(document.read_text(encoding="utf-8"))["parameters"]["floor"] == 10


def test_json_has_errors_and_risks_of_both_limits(people_file, tmp_path):
    found, document = minimize(people_file, tmp_path, "--json", "--personal", "job")
    result = json.loads(found.stdout)
    assert result["output"] == str(document) and result["personal"] == ["job"]
    assert result["risk"]["full"] == 1.0 >= result["risk"]["buckets"] >= result["risk"]["nothing"] - 0.1
    assert set(result["n_buckets"]) == {"age", "zip", "hours", "born", "job"}
    assert result["n_settings"] >= 2


def test_a_loss_above_the_limit_on_test_is_said(people_file, tmp_path, monkeypatch):
    from sfumato.minimize import MinimizerSweep

    # Chosen where little is lost, and on the test records much is.
    monkeypatch.setattr(
        MinimizerSweep,
        "coarsest",
        lambda self, max_loss, max_risk=None: replace(self.limits[0], test_error=self.limits[0].test_error + 0.2),
    )
    found, _ = minimize(people_file, tmp_path)
    assert "the loss is 20.0%" in " ".join(found.output.split())
    again, _ = minimize(people_file, tmp_path, "--force", "--json")
    assert json.loads(again.stdout)["keeps_max_loss"] is False


@pytest.mark.slow
def test_the_privacy_aware_tree_is_the_default(people_file, tmp_path):
    document = tmp_path / "generalization.json"
    found = call(
        "minimize", people_file, "--target", "wage", "--identifiers", "name", "-o", document, "--json",
        "--floor", "20",
    )  # fmt: skip
    assert json.loads(found.stdout)["n_settings"] == 108


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--personal", "jop"], "--personal names 'jop', which is not a column"),
        (["--personal", "wage"], "--personal names the target"),
        (["--personal", "name"], "--personal and --identifiers both name 'name'"),
        (["--max-loss", "2"], "--max-loss 2.0: expected a share"),
        (["--floor", "0"], "--floor 0: expected an integer >= 1"),
        (["--titles", "t.toml"], "--titles without --form or --preview"),
        (["--max-risk", "1.5"], "--max-risk 1.5: expected a share"),
        (["--max-buckets", "age=many"], "--max-buckets of 'age': expected an integer >= 1"),
        (["--required", "name"], "--required and --identifiers both name 'name'"),
        (
            ["--required", "age", "--forbidden", "age"],
            "--required names 'age', which --forbidden or --max-buckets rules",
        ),
        (["--hierarchies", "job=none.csv"], "--hierarchies names 'none.csv', which is not a file"),
        (["--search", "thorough"], "--search with --method features: expected --method tree"),
        (["--max-risk", "0"], "the lowest risk is"),
        (["--seed", "-1"], "--seed -1: expected an integer >= 0"),
    ],
)
def test_wrong_usage_gets_a_sentence_and_nothing_is_written(people_file, tmp_path, arguments, message):
    found, document = minimize(people_file, tmp_path, *arguments)
    assert found.exit_code == 2
    assert message in " ".join(found.output.split())
    assert not document.exists()


def test_limits_hold_in_the_document(people_file, tmp_path):
    found, document = minimize(
        people_file, tmp_path, "--required", "age", "--forbidden", "zip", "--max-buckets", "job=2,hours=3"
    )
    assert found.exit_code == 0, found.output
    generalization = Generalization.from_json(document.read_text(encoding="utf-8"))
    assert generalization.attribute("age").is_collected
    assert not generalization.attribute("zip").is_collected
    assert generalization.attribute("job").n_buckets <= 2
    assert generalization.attribute("hours").n_buckets <= 3


def test_the_preview_has_titles_labels_and_reasons(people_file, tmp_path):
    words = tmp_path / "words.toml"
    words.write_text('[titles]\nage = "Alter"\n[labels.job]\nnurse = "Pflege"\n', encoding="utf-8")
    preview, picture = tmp_path / "preview.html", tmp_path / "costs.svg"
    found, _ = minimize(
        people_file, tmp_path, "--preview", preview, "--titles", words, "--language", "de", "--costs", picture,
        "--required", "age,job", "--forbidden", "zip",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    page = preview.read_text(encoding="utf-8")
    assert 'lang="de"' in page
    assert "Alter" in page
    assert "Warum:" in page
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    assert "Diese Angabe darf nicht erfragt werden." in page
    assert "error [95% CI]" in found.stdout
    assert "…" not in found.stdout  # the table fits
    told = json.loads(
        minimize(people_file, tmp_path, "--costs", picture, "--force", "--json", "-q", "--personal", "job")[0].stdout
    )
    assert {row["attribute"] for row in told["costs"]} <= {"age", "zip", "hours", "born", "job"}
    assert told["left_out"] == {}


def test_the_risk_can_be_limited_instead_of_the_loss(people_file, tmp_path):
    document = tmp_path / "generalization.json"
    usual = [
        "minimize",
        people_file,
        "--target",
        "wage",
        "--identifiers",
        "name",
        "--method",
        "features",
        "-o",
        document,
    ]
    found = call(*usual, "--method", "features", "--max-risk", "0.6", "--personal", "job", "--json", "-q")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["max_loss"] is None


def test_two_outputs_need_two_names(people_file, tmp_path):
    found, _ = minimize(people_file, tmp_path, "--sql", tmp_path / "generalization.json")
    assert found.exit_code == 2
    assert "-o and --sql name the same file" in " ".join(found.output.split())


def test_names_never_get_into_the_document(people_file, tmp_path):
    document = tmp_path / "generalization.json"
    found = call("minimize", people_file, "--target", "wage", "--keep", "name", "-o", document)
    assert found.exit_code == 2
    assert "column 'name' has" in " ".join(found.output.split()) and not document.exists()
    assert "Leave the column out (--identifiers) if it names people" in " ".join(found.output.split())
    found = call("minimize", people_file, "--target", "wage", "-o", document)
    assert found.exit_code == 0
    assert "column 'name' is left out, and never collected" in " ".join(found.output.split())
    assert "Person" not in document.read_text(encoding="utf-8")


def test_a_target_of_amounts_is_refused(people_file, tmp_path):
    found = call("minimize", people_file, "--target", "born", "-o", tmp_path / "generalization.json")
    assert found.exit_code == 2
    assert "holds dates: expected classes" in " ".join(found.output.split())


@pytest.mark.parametrize(
    ("target", "said"), [("age", "more than 20 distinct numbers"), ("name", "300 distinct values")]
)
def test_a_target_of_many_values_is_refused_in_options_that_exist(people_file, tmp_path, target, said, monkeypatch):
    monkeypatch.setattr("sfumato.auditing.utility.MOST_CLASSES", 100)
    found = call("minimize", people_file, "--target", target, "-o", tmp_path / "generalization.json")
    assert found.exit_code == 2
    assert said in " ".join(found.output.split())
    assert "--task" not in found.output


def census_file(tmp_path, n=300):
    """Write a table as a census bureau would: every column is a number, places are text."""
    generator = np.random.default_rng(0)
    age = generator.integers(16, 90, n)
    table = {
        "PUMA": [f"0{code}" for code in generator.integers(100, 104, n)],
        "AGEP": age,
        "SEX": generator.integers(1, 3, n),
        "RAC1P": generator.choice([1, 2, 6, 9], n),
        "OCCP": generator.choice([10, 20, 30], n),
        "ESR": 1 + (age > 60),
    }
    path = tmp_path / "census.parquet"
    pq.write_table(pa.table(table), path)
    return path


def test_on_coded_data_the_attacker_wants_people_and_not_places(tmp_path):
    usual = ["minimize", census_file(tmp_path), "--target", "ESR", "--method", "features", "--max-loss", "0.5"]
    found = call(*usual, "-o", tmp_path / "one.json")
    assert found.exit_code == 0, found.output
    wanted = found.stdout.split("columns that the attacker wants")[1].split("on records")[0]
    assert "may tell racial or ethnic origin" in " ".join(wanted.split())
    assert {line.split()[0] for line in wanted.splitlines() if "may tell" in line} == {"AGEP", "SEX", "RAC1P"}
    assert "Name others with --personal" in wanted
    as_json = json.loads(call(*usual, "-o", tmp_path / "two.json", "--json", "-q").stdout)
    assert as_json["personal"] == ["AGEP", "SEX", "RAC1P"]
    assert as_json["personal_because"]["SEX"] == "may tell sex or gender"
    named = call(*usual, "-o", tmp_path / "three.json", "--personal", "OCCP")
    assert "named in --personal" in named.stdout and "Name others" not in named.stdout


LONG = "police_reported_alcohol_involvement_of_the_driver"


def few_columns(tmp_path, bought):
    random = np.random.default_rng(0)
    ages = random.integers(18, 80, 400)
    rows = [f"{age},{random.integers(0, 9)},{'yes' if bought(age, random) else 'no'}" for age in ages]
    (tmp_path / "people.csv").write_text("\n".join([f"age,{LONG},bought", *rows]) + "\n")
    return "minimize", tmp_path / "people.csv", "--target", "bought", "-o", tmp_path / "g.json", "--max-loss", 0.6


@pytest.mark.parametrize(
    ("bought", "advice"),
    [
        (lambda age, random: random.random() < 0.05, "Even in full resolution the model is no better"),
        (lambda age, random: age > 50, "give a smaller --max-loss"),
    ],
)
def test_a_form_without_questions_is_warned_of(tmp_path, bought, advice):
    told = " ".join(call(*few_columns(tmp_path, bought)).output.split())
    assert "a form has no questions" in told and advice in told


def test_costs_of_columns_with_long_names_are_printed_whole(tmp_path):
    usual = few_columns(tmp_path, lambda age, random: age > 50)
    result = call(*usual[:-1], 0.05, "--costs", tmp_path / "costs.svg", "--max-risk", 1)
    lines = result.stdout.splitlines()
    start = lines.index("what each column costs and is worth")
    named = lines.index(f"  {LONG}", start)
    assert lines[named + 1].split()[0] in ("finer", "coarser", "not")
    assert "]" in lines[named + 1] and "…" not in lines[named + 1]


def test_one_reason_for_many_columns_is_said_once(tmp_path):
    random = np.random.default_rng(0)
    columns = {f"a{i}": random.normal(size=200).round(1) for i in range(40)}
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({**columns, "y": columns["a0"] > 0}), path)
    found = call(
        "minimize", path, "--target", "y", "--method", "features", "--max-loss", "0.5", "-o", tmp_path / "wide.json"
    )
    assert found.exit_code == 0, found.output
    said = " ".join(found.stdout.split())
    assert "columns that the attacker wants 40 columns: nothing says which columns are personal, so all are" in said
    assert said.count("so all are") == 1


def test_columns_that_were_not_looked_at_have_their_own_reason_each(tmp_path):
    random = np.random.default_rng(0)
    columns = {f"a{i}": random.normal(size=120).round(1) for i in range(131)} | {f"b{i}": [1] * 120 for i in range(5)}
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({**columns, "y": columns["a0"] > 0}), path)
    found = call(
        "minimize", path, "--target", "y", "--method", "features", "--max-loss", "0.5", "-o", tmp_path / "wide.json"
    )
    assert found.exit_code == 0, found.output
    said = " ".join(found.output.split())
    assert "3 of 136 columns were left out before learning, each since its best cut separates the classes less" in said
    assert "5 of 136 columns were left out before learning, each since it has one value only: 'b0', 'b1', 'b2'," in said
