# SPDX-License-Identifier: Apache-2.0
"""The hostile campaign runs, and its judge, which shares nothing with sfumato, can say no."""

import ast
import datetime
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import hostile  # noqa: E402
import hostile_judge as judge  # noqa: E402
from hostile_cases import Found  # noqa: E402
from hostile_tables import EXOTIC, LIBRARIES, USUAL, draw_table  # noqa: E402

SEED = 3


def groups_of(*sizes: int) -> dict[tuple[int], list[int]]:
    ends = np.cumsum([0, *sizes])
    return {(place,): list(range(ends[place], ends[place + 1])) for place in range(len(sizes))}


def test_some_dozens_of_random_releases_keep_their_promises() -> None:
    every = [hostile.run_case(SEED, number) for number in range(60) if hostile.kind_of(SEED, number)[:3] != "cli"]
    broken = [(f.number, *said) for f in every for said in f.violations]
    assert broken == []
    assert sum(found.releases for found in every) >= 40


def test_a_case_follows_from_its_seed_and_number() -> None:
    first, second = (hostile.run_case(SEED, 5) for _ in range(2))
    assert (first.kind, first.refusals, first.violations, first.counts) == (
        second.kind,
        second.refusals,
        second.violations,
        second.counts,
    )


def test_the_judge_imports_nothing_of_sfumato() -> None:
    for name in ("hostile_judge.py", "hostile_tables.py"):
        tree = ast.parse((SCRIPTS / name).read_text(encoding="utf-8"))
        imported = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        imported += [alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
        assert not [module for module in imported if module.startswith("sfumato")]


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_kind_of_column_is_built_by_every_library(library: str) -> None:
    for seed in range(30):
        table = draw_table(np.random.default_rng(seed), kinds=(*USUAL, *EXOTIC), most=40)
        columns = judge.columns_of(table.to(library))
        assert {len(values) for values in columns.values()} == {table.n_records}


def test_a_group_below_k_is_found() -> None:
    assert judge.too_small(groups_of(3, 2), 2) == []
    assert judge.too_small(groups_of(3, 1), 2) == ["1 of 2 groups have fewer than k=2 records"]


def test_a_group_of_one_person_with_many_records_is_found() -> None:
    assert judge.too_small(groups_of(3, 3), 2, ["a", "a", "b", "c", "c", "c"]) == [
        "1 of 2 groups have fewer than k=2 persons"
    ]


@pytest.mark.parametrize(
    ("asked", "good", "bad"),
    [
        ({"name": "distinct", "l": 2}, "abab", "aabb"),
        ({"name": "entropy", "l": 1.9}, "abab", "aaab"),
        ({"name": "recursive", "l": 2, "c": 2.0}, "abab", "aabb"),
        ({"name": "t", "t": 0.2, "distance": "equal"}, "abab", "aabb"),
        ({"name": "alpha-k", "alpha": 0.5, "k": 2}, "abab", "aabb"),
        ({"name": "beta", "beta": 0.5, "kind": "basic"}, "abab", "aabb"),
        ({"name": "beta", "beta": 5.0, "kind": "enhanced"}, "abab", "aabb"),
        ({"name": "delta", "delta": 0.5, "absent": "fails"}, "abab", "aabb"),
    ],
)
def test_each_criterion_can_say_no(asked: dict[str, object], good: str, bad: str) -> None:
    assert judge.breaks_criterion(groups_of(2, 2), list(good), asked) == []
    assert len(judge.breaks_criterion(groups_of(2, 2), list(bad), asked)) == 1


def test_a_distance_of_ordered_values_counts_steps() -> None:
    asked = {"name": "t", "t": 0.374, "distance": "ordered"}
    assert judge.breaks_criterion(groups_of(2, 2), [1, 1, 2, 3], asked)
    assert not judge.breaks_criterion(groups_of(2, 2), [1, 1, 2, 3], {**asked, "t": 0.376})


def test_an_anatomy_with_a_frequent_value_is_found() -> None:
    identifying = {"age": [1, 2, 3, 4], "group": [0, 0, 1, 1]}
    assert judge.breaks_anatomy(identifying, {"ill": ["a", "b", "a", "b"], "group": [0, 0, 1, 1]}, "group", 2) == []
    assert judge.breaks_anatomy(identifying, {"ill": ["a", "a", "b", "b"], "group": [0, 0, 1, 1]}, "group", 2)


def test_released_combinations_of_one_record_are_counted() -> None:
    original = {"a": [1, 1, 2, 3], "b": ["x", "x", "y", "z"]}
    assert judge.shown_people(original, {"a": [1, 1, 2, 2], "b": ["x", "x", "y", "y"]}, ["a", "b"], 3) == (1, 1)


def test_a_cell_in_a_message_is_found() -> None:
    cells = judge.canaries({"name": ["Zqabcdefg", "b"], "number": [123456789, 5]})
    assert judge.told("the value 'Zqabcdefg' is odd", cells)
    assert judge.told("expected 123456789", cells)
    assert not judge.told("column 'name' has 5 values", cells)


def test_a_rare_word_in_a_released_label_is_found() -> None:
    original = {"job": ["Zqaaaa", "Zqaaaa", "Zqbbbb"], "wage": [123456789, 123456789, 987654321]}
    released = {"job": ["{Zqaaaa, Zqbbbb}"] * 3, "wage": ["123456789-987654321"] * 3}
    assert len(judge.names_people(original, released, ["job", "wage"], 2)) == 2
    safe = {"job": ["Zqaaaa"] * 3, "wage": [123456789] * 3}
    assert judge.names_people(original, safe, ["job", "wage"], 2) == []


def test_records_in_the_order_of_the_input_are_found() -> None:
    assert judge.is_in_order(list(range(100)))
    assert not judge.is_in_order([int(row) for row in np.random.default_rng(0).permutation(100)])


def test_missing_values_of_all_libraries_are_one() -> None:
    for frame in (
        pd.DataFrame({"a": [np.nan, pd.NaT, pd.NA]}, dtype=object),
        pl.DataFrame({"a": [None, float("nan")]}),
    ):
        assert set(judge.columns_of(frame)["a"]) == {None}


def test_a_foreign_error_is_a_violation() -> None:
    found = Found("test")
    with found.careful("here", set()):
        datetime.date(2020, 13, 1)
    assert [what for what, _ in found.violations] == ["crash"]


def test_a_refusal_without_a_sentence_is_a_violation() -> None:
    from sfumato import InputError

    found = Found("test")
    with found.careful("here", {"Zqabcdefg"}):
        raise InputError("bad: Zqabcdefg")
    assert len(found.violations) == 3


def test_a_violation_fails_the_campaign_unless_it_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    found = Found("release", 7)
    found.broken("order", ["in order"])
    assert hostile.show([found], 1, set(), 1.0) == 1
    assert "--seed 1 --case 7" in capsys.readouterr().out
    assert hostile.show([found], 1, {"order"}, 1.0) == 0
