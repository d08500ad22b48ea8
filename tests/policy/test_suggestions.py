# SPDX-License-Identifier: Apache-2.0
"""Roles are found by counting, not by names, and the policy that is written can be read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.datasets import load_adult
from sfumato.errors import ParameterError
from sfumato.policy import Policy, suggest_roles, suggestions, write_policy
from sfumato.policy import policy as checks
from sfumato.policy.special_categories import special_category


@pytest.fixture(scope="module")
def renamed_adult() -> tuple[pd.DataFrame, dict[str, str]]:
    table = load_adult().frame
    table["customer"] = np.random.default_rng(0).permutation(len(table)) + 100_000
    names = {name: f"c{place}" for place, name in enumerate(table.columns)}
    return table.rename(columns=names), names


def test_adults_quasi_identifiers_and_an_added_id_are_found_under_meaningless_names(renamed_adult):
    table, names = renamed_adult
    roles = {suggestion.name: suggestion for suggestion in suggest_roles(table, names["income"])}
    assert roles[names["customer"]].role == "identifier"
    assert roles[names["income"]].role == "target"
    others = [name for name in names.values() if name not in (names["customer"], names["income"])]
    assert [roles[name].role for name in others] == ["quasi-identifier"] * 14
    assert roles[names["race"]].special == "racial or ethnic origin"
    assert roles[names["hours-per-week"]].special is None


def test_the_written_policy_is_a_policy(renamed_adult, tmp_path: Path):
    table, names = renamed_adult
    text, _ = write_policy(table, file=Path("adult.csv"), target=names["income"], k=25)
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    policy = Policy.read(path)
    assert policy.get("method", "k") == policy.get("gate", "min_k") == 25
    assert policy.get("columns", "identifiers") == (names["customer"],)
    assert len(policy.get("columns", "quasi_identifiers")) == 14


def test_what_no_count_can_settle_is_left_for_a_person_to_decide(tmp_path: Path):
    table = pd.DataFrame({"age": np.arange(400) % 50, "y": np.arange(400) % 2})
    lines = write_policy(table, file=Path("t.csv"), target="y")[0].splitlines()
    decided = [next(line for line in lines[place:] if line[0] != "#").split()[0] for place, line in enumerate(lines)
               if line.startswith("# DECIDE")]  # fmt: skip
    assert decided == ["representative", "max_attack_advantage", "min_accuracy_kept"]


def test_hostile_column_names_are_written_so_that_they_read_back(tmp_path: Path):
    hostile = ['a"b', "two\nlines", "back\\slash", "# no comment", "\x7f", "right\u202eleft", "[section]"]
    random = np.random.default_rng(1)
    table = pd.DataFrame({name: random.integers(0, 5, 200) for name in hostile} | {"y": random.integers(0, 2, 200)})
    text, _ = write_policy(table, file=Path("t.csv"), target="y")
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    assert Policy.read(path).get("columns", "quasi_identifiers") == tuple(hostile)


def test_constants_are_no_quasi_identifiers_and_fractions_no_identifiers():
    random = np.random.default_rng(2)
    table = pd.DataFrame({"same": np.ones(100), "wage": random.normal(size=100), "y": random.integers(0, 2, 100)})
    roles = {s.name: s.role for s in suggest_roles(table, "y")}
    assert roles == {"same": "other", "wage": "quasi-identifier", "y": "target"}


def test_no_cell_value_stands_in_a_suggestion():
    table = pd.DataFrame({"name": [f"Person {i}" for i in range(50)], "y": [0, 1] * 25})
    text, _ = write_policy(table, file=Path("t.csv"), target="y")
    assert "Person" not in text


def test_a_table_with_nothing_but_a_target_is_refused():
    with pytest.raises(ParameterError, match="no column beside the target"):
        suggest_roles(pd.DataFrame({"y": [0, 1, 0, 1]}), "y")


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("Religion", (), "religious or philosophical beliefs"),
        ("hasDisability", (), "health"),
        ("x", ["White", "Asian-Pac-Islander", "Other"], "racial or ethnic origin"),
        ("x", ["White"], None),  # a colour, perhaps
        ("general", (), None),
    ],
)
def test_special_categories_are_hinted_at_by_words(name: str, values: list[str], expected: str | None):
    assert special_category(name, values) == expected


@pytest.mark.parametrize(("found", "left_out"), [(object(), ()), (None, ("network",))])
def test_a_first_policy_leaves_out_the_attack_that_needs_what_is_not_installed(
    tmp_path: Path, monkeypatch, found, left_out
):
    for module in (checks, suggestions):
        monkeypatch.setattr(module, "find_spec", lambda name: found)
    table = pd.DataFrame({"age": [20, 30, 40] * 100, "wage": ["low", "high", "high"] * 100})
    text, _ = write_policy(table, file=Path("people.csv"), target="wage")
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    assert Policy.read(path).get("audit", "leave_out") == left_out


def test_the_first_policy_shows_how_to_ask_for_further_criteria(tmp_path: Path):
    people = pd.DataFrame({"age": range(20, 80), "ill": ["no", "yes", "perhaps"] * 20, "pay": ["low", "high"] * 30})
    text, _ = write_policy(people, file=Path("people.csv"), target="pay", sensitive=("ill",), k=5)
    hidden = text[text.index("# [[criteria]]") : text.index("# [privacy]")].replace('"..."', '"ill"')
    (tmp_path / "policy.toml").write_text(text + "\n" + hidden.replace("# ", ""), encoding="utf-8")
    assert [own["name"] for own in Policy.read(tmp_path / "policy.toml").criteria] == ["t-closeness"]


@pytest.mark.parametrize(
    ("usual", "other", "look"),
    [
        ("{:04d}-{:02d}-01", "01/{1:02d}/{0:04d}", "dates"),
        ("{},{}", "{},{} kg", "numbers"),
        ("{:04d}{:02d}", "?", None),
    ],
)
def test_texts_that_would_be_amounts_in_one_form_are_named(usual, other, look):
    random = np.random.default_rng(0)
    years, months = random.integers(1930, 1970, 1_000).tolist(), random.integers(10, 13, 1_000).tolist()
    forms = [other if i % 20 == 0 else usual for i in range(1_000)]
    texts = [form.format(year, month) for form, year, month in zip(forms, years, months, strict=True)]
    table = pd.DataFrame({"seen": texts, "y": np.arange(1_000) % 2})
    [reason] = [suggestion.reason for suggestion in suggest_roles(table, "y") if suggestion.name == "seen"]
    assert (f"looks like {look}" in reason) if look else ("looks like" not in reason)


def test_what_is_dropped_needs_no_word_on_special_categories():
    table = pd.DataFrame({"patient": [f"P{i:05d}" for i in range(400)], "y": np.arange(400) % 2})
    [patient] = [suggestion for suggestion in suggest_roles(table, "y") if suggestion.name == "patient"]
    assert (patient.role, patient.special) == ("identifier", None)


def subgroups(table: pd.DataFrame, tmp_path: Path) -> tuple[str, ...]:
    text, _ = write_policy(table, file=Path("t.csv"), target="y")
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    return Policy.read(tmp_path / "policy.toml").get("columns", "subgroups")


def test_subgroups_are_a_few_categories_or_amounts_in_classes(tmp_path: Path):
    random = np.random.default_rng(3)
    n = 1_000
    table = pd.DataFrame(
        {
            "ethnicity": random.choice(["a", "b", "c", "d"], n),
            "race": random.integers(1, 7, n),  # codes, but few
            "disability": random.choice([0, 1], n),
            "BMI": [f"{number:.1f}" for number in random.normal(26, 4, n)],  # numbers as text
            "bmi": [f"{number:.1f}".replace(".", ",") for number in random.normal(26, 4, n)],
            "diagnosis": [f"{letter}{number}" for letter, number in zip(
                random.choice(list("ABCDEFGHI"), n), random.integers(10, 20, n), strict=True)],
            "icd9": random.choice(np.arange(250, 300), n),  # codes, and many
            "blood pressure": random.normal(120, 15, n).round(1),
            "y": random.integers(0, 2, n),
        }
    )  # fmt: skip
    assert subgroups(table, tmp_path) == ("ethnicity", "race", "disability", "blood pressure")


@pytest.mark.parametrize(("n_values", "forms"), [(20, ("religion",)), (21, ())])
def test_more_than_twenty_categories_are_no_subgroups(n_values: int, forms, tmp_path: Path):
    table = pd.DataFrame({"religion": [f"r{i % n_values}" for i in range(840)], "y": np.arange(840) % 2})
    assert subgroups(table, tmp_path) == forms


@pytest.mark.parametrize("name", ["Name", "First name", "Surname", "Patient name", "NAME", "patient_name", "Vorname"])
@pytest.mark.parametrize(("n", "n_names"), [(300, 50), (60, 12), (40, 5)])
def test_names_of_people_are_identifiers_in_small_tables_too(name: str, n: int, n_names: int):
    table = pd.DataFrame({name: [f"Meier {i % n_names}" for i in range(n)], "y": np.arange(n) % 2})
    [found] = [one for one in suggest_roles(table, "y") if one.name == name]
    assert found.role == "identifier"
    assert "unit" in found.reason


@pytest.mark.parametrize("name", ["product name", "name type", "Surname type", "ward name"])
def test_kinds_of_names_and_names_of_things_are_no_identifiers(name: str):
    table = pd.DataFrame({name: [f"kind {i % 8}" for i in range(300)], "y": np.arange(300) % 2})
    [found] = [one for one in suggest_roles(table, "y") if one.name == name]
    assert found.role == "quasi-identifier"


def test_sex_is_a_subgroup_beside_special_categories(tmp_path: Path):
    n = 400
    table = pd.DataFrame({"Sex": ["M", "F", None, "M"] * 100, "race": ["a", "b"] * 200, "ward": ["x", "z"] * 200})
    assert subgroups(table.assign(y=np.arange(n) % 2), tmp_path) == ("Sex", "race")


@pytest.mark.parametrize("name", ["Remark", "comments", "Bemerkung", "doctor notes", "free_text"])
def test_remarks_are_dropped_even_where_most_repeat(name: str):
    usual = ["informed", "sober", "no complaints"]
    remarks = [usual[i % 3] if i % 5 else f"wife present, call {i}" for i in range(1_000)]
    [found] = [one for one in suggest_roles(pd.DataFrame({name: remarks, "y": np.arange(1_000) % 2}), "y")
               if one.name == name]  # fmt: skip
    assert found.role == "identifier"
    assert "can name people" in found.reason and "wife" not in found.reason
    assert "unit" not in found.reason  # which repeats, but is no person's


def test_a_remark_of_few_kinds_is_not_dropped():
    table = pd.DataFrame({"remark": [f"kind {i % 6}" for i in range(600)], "y": np.arange(600) % 2})
    assert suggest_roles(table, "y")[0].role == "quasi-identifier"
