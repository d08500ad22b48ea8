# SPDX-License-Identifier: Apache-2.0
"""A policy is checked in full before any work, and what is wrong is named by line and key."""

from pathlib import Path

import pytest

from sfumato.errors import InputError, ParameterError
from sfumato.policy import Policy
from sfumato.policy import policy as module

GOOD = """version = 1

[data]
file = "people.csv"
release = "out.csv"

[columns]
target = "wage"
identifiers = ["name"]
quasi_identifiers = [
  "age",
  "zip",  # digits that are text
]
limits = { age = 5 }

[method]
k = 20

[gate]
min_k = 20
"""


def without_target(text: str, says: str) -> str:
    """Take the target out where the message is about that; ready predictions stand in for it."""
    if says != "without a target":
        return text
    return text.replace('target = "wage"\n', "").replace("[gate]", '[model]\nguide_column = "p"\n[gate]')


def read(tmp_path: Path, text: str):
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return Policy.read(path)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("min_k = 20", "min_k = 20\nmin_accuracy_kept = 0.9\n[model]\ntest_fraction = 0.0", "test_fraction"),
        ("min_k = 20", "max_attack_advantage = 0.1\n[model]\ntest_fraction = 0.0", "test_fraction"),
        ("min_k = 20", "min_accuracy_kept = 0.9", "without a target"),
    ],
)
def test_a_condition_on_what_is_not_measured_is_refused(tmp_path: Path, old: str, new: str, says: str):
    with pytest.raises(ParameterError, match=says):
        read(tmp_path, without_target(GOOD, says).replace(old, new))


def test_a_good_policy_has_its_values_and_the_defaults_of_the_rest(tmp_path: Path):
    policy = read(tmp_path, GOOD)
    assert policy.get("method", "k") == 20
    assert policy.get("columns", "quasi_identifiers") == ("age", "zip")
    assert policy.get("columns", "limits") == {"age": 5}
    assert policy.get("method", "name") == "model-guided"
    assert policy.get("audit", "level") == "quick"
    assert policy.file("file") == tmp_path / "people.csv"
    assert policy.file("artifact") is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("k = 20\n\n", "k = 1\n\n", ["line 17", "[method] k = 1", "an integer >= 2"]),
        ("k = 20\n\n", "k = true\n\n", ["line 17", "[method] k = True"]),
        ("k = 20\n\n", "kk = 20\n\n", ["line 17", "[method] kk: unknown", "Did you mean k?"]),
        ("[method]", "[methods]", ["line 16", "methods: unknown", "Did you mean method?"]),
        ('target = "wage"', 'target = ""', ["line 8", "[columns] target", "name of a column"]),
        ('target = "wage"\n', "", ["[columns] target: not given"]),
        ('identifiers = ["name"]', 'identifiers = ["name", "age"]', ["line 10", "'age'", "identifiers already"]),
        ('identifiers = ["name"]', 'identifiers = ["name", "name"]', ["line 9", "'name' twice"]),
        ('identifiers = ["name"]', "identifiers = 3", ["line 9", "a list of column names"]),
        ("limits = { age = 5 }", 'limits = { age = "5" }', ["line 14", "numbers by column"]),
        ("min_k = 20", "min_K = 20", ["line 20", "[gate] min_K: unknown", "Did you mean min_k?"]),
        ("min_k = 20", "min_l = 2", ["line 20", "[gate] min_l", "sensitive"]),
        ("k = 20\n\n", "k = 20\nl = 3\n\n", ["line 18", "[method] l", "sensitive"]),
        ("k = 20\n\n", 'k = 20\nname = "magic"\n\n', ["line 18", "one of model-guided"]),
        ("min_k = 20", "max_attack_advantage = 1.5", ["line 20", "a number from 0 to 1"]),
        ("version = 1", "version = 2", ["line 1", "expected version = 1"]),
        ("version = 1\n", "", ["version: no version"]),
        ("version = 1", "version = true", ["line 1", "version = True"]),
        ("[gate]", "[[gate]]", ["line 19", "gate: not a section", "the line [gate]"]),
        ("k = 20\n\n", "k = 20\nseed = 4294967296\n\n", ["line 18", "an integer from 0 to 4294967295"]),
        ('release = "out.csv"', 'release = "out.csv"\nreport = "r.pdf"', ["line 6", "ends in .html or .md"]),
        ('release = "out.csv"', 'release = "out.csv"\naudit = "a.csv"', ["line 6", "ends in .json"]),
        ('file = "people.csv"\n', "", ["[data] file: not given"]),
        (
            "[gate]\nmin_k = 20",
            '[audit]\nlevel = "none"\n[gate]\nmax_attack_advantage = 0.1',
            ["line 22", "audit level none"],
        ),
        ("[gate]", '[audit]\nleave_out = ["luck"]\n[gate]', ["line 20", "[audit] leave_out", "a list of some of thr"]),
        ("[gate]", '[audit]\nleave_out = "network"\n[gate]', ["line 20", "a list of some of"]),
    ],
)
def test_what_is_wrong_is_named_by_line_and_key(tmp_path: Path, old: str, new: str, expected: list[str]):
    assert old in GOOD
    with pytest.raises(ParameterError) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    message = str(caught.value)
    assert message.startswith("policy.toml")
    for part in expected:
        assert part in message


def test_a_bound_on_attacks_is_refused_where_one_of_them_can_never_run(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    bound = GOOD.replace("min_k = 20", "max_attack_advantage = 0.1")
    with pytest.raises(ParameterError, match=r"line 20, \[gate\] max_attack_advantage without torch.*leave_out"):
        read(tmp_path, bound)
    read(tmp_path, bound + '[audit]\nleave_out = ["network"]\n')


def test_a_file_that_is_no_toml_is_refused_with_the_place(tmp_path: Path):
    with pytest.raises(InputError, match="line 2"):
        read(tmp_path, "version = 1\nk = = 2\n")


def test_a_mark_of_byte_order_in_front_is_no_part_of_the_policy(tmp_path: Path):
    assert read(tmp_path, "\ufeff" + GOOD).get("method", "k") == 20


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b" \r\n\n", "is empty"),
        (GOOD.encode("utf-16"), "is not written in UTF-8"),
        (bytes(range(256)), "is not written in UTF-8"),
    ],
)
def test_a_file_that_holds_no_policy_says_why_and_how_to_write_one(tmp_path: Path, content: bytes | None, says: str):
    path = tmp_path / "policy.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=rf"policy.toml' {says}: expected a TOML file in UTF-8. 'sfumato init'"):
        Policy.read(path)


def test_a_folder_is_no_policy(tmp_path: Path):
    with pytest.raises(InputError, match="is a folder: expected a TOML file"):
        Policy.read(tmp_path)


def test_the_target_may_be_sensitive_and_nothing_else_has_two_roles(tmp_path: Path):
    policy = read(tmp_path, GOOD.replace('target = "wage"', 'target = "wage"\nsensitive = ["wage"]'))
    assert policy.get("columns", "sensitive") == ("wage",)


def test_titles_of_columns_are_read_by_column(tmp_path: Path):
    assert read(tmp_path, GOOD).titles == {}
    assert read(tmp_path, GOOD + '[titles]\nage = "Age in years"\n"zip" = "Postcode"\n').titles == {
        "age": "Age in years", "zip": "Postcode",
    }  # fmt: skip


@pytest.mark.parametrize("wrong", ["age = 5", 'age = " "', "age = { en = 'Age' }"])
def test_a_title_that_is_not_text_is_refused_by_its_line(tmp_path: Path, wrong: str):
    with pytest.raises(ParameterError, match=r"line 22, \[titles\] age.*: expected the column's title in quotes"):
        read(tmp_path, f"{GOOD}[titles]\n{wrong}\n")


def test_titles_that_are_not_a_section_are_refused(tmp_path: Path):
    with pytest.raises(ParameterError, match=r"titles: not a section, expected the line \[titles\]"):
        read(tmp_path, GOOD.replace("version = 1", 'version = 1\ntitles = "Age"'))


# -- context -------------------------------------------------------------------------------------------------------


def test_a_review_date_that_is_none_is_refused():
    with pytest.raises(ParameterError, match=r"review_by.*expected a date such as 2027-01-31"):
        Policy.of(method={"name": "mondrian"}, context={"review_by": "next spring"})


def test_a_gate_that_allows_more_than_the_context_accepts_is_refused():
    with pytest.raises(ParameterError, match=r"max_risk.*above the threshold 0\.1"):
        Policy.of(method={"name": "mondrian"}, gate={"max_risk": 0.2}, context={"threshold": 0.1})


def test_a_date_of_review_that_has_passed_is_a_warning():
    import pandas as pd

    from sfumato import PrivacyWarning, run

    people = pd.DataFrame({"age": list(range(60)), "ill": ["yes", "no", "no"] * 20})
    policy = Policy.of(
        method={"name": "mondrian", "k": 5}, columns={"sensitive": ["ill"]}, context={"review_by": "2020-01-31"}
    )
    with pytest.warns(PrivacyWarning, match="2020-01-31 has passed. Review the policy"):
        run(policy, table=people)


def test_the_digest_is_that_of_the_file_or_of_the_settings(tmp_path):
    import hashlib

    made, again, other = (Policy.of(method={"name": "mondrian", "k": k}, data={"audit": None}) for k in (5, 5, 6))
    assert made.digest == again.digest != other.digest and len(made.digest) == 64
    path = tmp_path / "policy.toml"
    path.write_text('version = 1\n[data]\nfile = "a.csv"\nrelease = "b.csv"\n[method]\nname = "mondrian"\n')
    assert Policy.read(path).digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_wrong_name_among_the_attacks_to_skip_is_named():
    with pytest.raises(ParameterError, match=r"leave_out names 'netwrk': expected .*network.* Did you mean network\?"):
        Policy.of(data={"file": "a.csv"}, audit={"leave_out": ["threshold", "netwrk"]})
