# SPDX-License-Identifier: Apache-2.0
"""Every criterion can be asked for in a policy, by keys that its constructor has."""

import inspect
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.criteria import CRITERIA
from sfumato.errors import ParameterError
from sfumato.policy import Policy
from sfumato.policy.criteria import settings_of
from strategies import in_examples

GOOD = """version = 1
[data]
file = "people.csv"
release = "out.csv"
[columns]
target = "wage"
sensitive = ["illness"]
[[criteria]]
name = "beta-likeness"
beta = 1.0
column = "illness"

[[criteria]]
name = "l-diversity"
l = 3
column = "illness"
kind = "entropy"
"""

ENTRIES = {
    name: dict(kind.facts.example)
    | ({"column": "illness"} if "column" in settings_of(name) else {})
    | ({"population": "all.csv"} if "population" in settings_of(name) else {})
    for name, kind in CRITERIA.items()
}
ENTRIES["t-closeness"] |= {"distance": "ordered", "order": ["low", "high"]}
COLUMNS = {"target": "wage", "sensitive": ["illness"], "unit": "person"}


def read(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return Policy.read(path)


def test_criteria_are_read_in_their_order(tmp_path: Path):
    assert read(tmp_path, GOOD).criteria == (
        {"name": "beta-likeness", "beta": 1.0, "column": "illness"},
        {"name": "l-diversity", "l": 3, "column": "illness", "kind": "entropy"},
    )


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_can_be_asked_for(name):
    entry = {"name": name, **ENTRIES[name]}
    (made,) = Policy.of(columns=COLUMNS, criteria=[entry]).criteria
    assert {key: list(value) if isinstance(value, tuple) else value for key, value in made.items()} == entry


@pytest.mark.parametrize("name", CRITERIA)
def test_the_keys_are_the_parameters_of_the_constructor(name):
    parameters = [*inspect.signature(CRITERIA[name]).parameters]
    assert [*settings_of(name)] == ["column" if one == "sensitive" else one for one in parameters]


@pytest.mark.parametrize("name", CRITERIA)
def test_every_key_has_a_meaning(name):
    assert all(setting.sentence for setting in settings_of(name).values())


@in_examples(100)
@given(
    chosen=st.lists(st.sampled_from(sorted(ENTRIES)), unique=True),
    order=st.sampled_from([["low", 'h"igh'], [1, 2.5], [date(2020, 1, 1), date(2021, 1, 1)]]),
)
def test_a_written_policy_asks_for_the_same_criteria(tmp_path_factory, chosen, order):
    entries = [
        {"name": name, **ENTRIES[name], **({"order": order} if name == "t-closeness" else {})} for name in chosen
    ]
    policy = Policy.of(data={"file": "a.csv", "release": "b.csv"}, columns=COLUMNS, criteria=entries)
    assert read(tmp_path_factory.mktemp("written"), policy.to_toml()).criteria == policy.criteria


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("beta = 1.0", "beta = -1", ["line 10", "[[criteria]] beta = -1: expected a number above 0"]),
        ("beta = 1.0", 'beta = "much"', ["line 10", "beta = 'much': expected a number"]),
        ("beta = 1.0", "bta = 1.0", ["line 10", "[[criteria]] bta: unknown", "Did you mean beta?"]),
        ("beta = 1.0\n", "", ["line 8", "[[criteria]] beta: not given", "Add beta ="]),
        ('"beta-likeness"', '"beta-likenes"', ["line 9", "'beta-likenes' is unknown", "Did you mean beta-likeness?"]),
        ('name = "beta-likeness"\n', "", ["line 8", "[[criteria]] name: not given", "l-diversity"]),
        ("l = 3", "l = 0.5", ["line 15", "[[criteria]] l = 0.5: expected a number above 1"]),
        ('kind = "entropy"', 'kind = "entropie"', ["line 17", "expected one of distinct, entropy, recursive"]),
        ('kind = "entropy"', 'kind = "recursive"', ["[[criteria]] c = None: expected a number above 0"]),
        ('column = "illness"\nkind', 'column = "age"\nkind', ["line 16", "expected a sensitive column or the target"]),
    ],
)
def test_what_is_wrong_is_named_by_line_and_key(tmp_path: Path, old: str, new: str, says: list[str]):
    assert GOOD.count(old) == 1
    with pytest.raises(ParameterError) as caught:
        read(tmp_path, GOOD.replace(old, new))
    assert str(caught.value).startswith("policy.toml, line ")
    assert all(part in str(caught.value) for part in says), str(caught.value)


@pytest.mark.parametrize("wrong", ['[criteria]\nname = "k-anonymity"\n', "", "x"])
def test_criteria_that_are_no_list_of_tables_are_refused(tmp_path: Path, wrong: str):
    text = GOOD[: GOOD.index("[[criteria]]")] + (wrong if wrong.startswith("[") else "")
    if not wrong.startswith("["):
        text = text.replace("version = 1", f'version = 1\ncriteria = "{wrong}"')
    with pytest.raises(ParameterError, match=r"\[\[criteria\]\]: not a list of tables"):
        read(tmp_path, text)


def test_the_same_criterion_twice_is_refused():
    with pytest.raises(ParameterError, match="the same k-anonymity twice"):
        Policy.of(columns=COLUMNS, criteria=[{"name": "k-anonymity", "k": 5}] * 2)


def test_a_unit_must_be_that_of_the_columns():
    with pytest.raises(ParameterError, match=r"\[\[criteria\]\] unit = 'family': expected the column that is unit"):
        Policy.of(columns=COLUMNS, criteria=[{"name": "k-anonymity", "k": 5, "unit": "family"}])


def test_presence_without_a_population_is_refused():
    with pytest.raises(ParameterError, match=r"\[\[criteria\]\] population: not given"):
        Policy.of(columns=COLUMNS, criteria=[{"name": "delta-presence", "delta_min": 0.0, "delta_max": 0.5}])


def test_presence_with_a_method_without_cells_is_refused():
    entry = {"name": "delta-presence", **ENTRIES["delta-presence"]}
    with pytest.raises(ParameterError, match="with the method full-domain, whose groups have no cells"):
        Policy.of(columns=COLUMNS, method={"name": "full-domain"}, criteria=[entry])


def test_a_policy_without_criteria_has_none(tmp_path: Path):
    assert read(tmp_path, GOOD[: GOOD.index("[[criteria]]")]).criteria == ()
