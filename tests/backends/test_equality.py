# SPDX-License-Identifier: Apache-2.0
"""Wherever a table lives, every verb says and makes of it what it does in memory, and refuses in the same words."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from backends.places import CAN_HOLD, PLACES, small_blocks
from sfumato import (
    Anatomizer,
    HilbertAnonymizer,
    KAnonymity,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    PrivacyAwareTree,
    TCloseness,
    UniformMinimizer,
    WorkloadAwareAnonymizer,
)
from sfumato.datasets import load_adult, make_census
from sfumato.errors import InputError, ParameterError, SfumatoError
from strategies import in_examples, tables

KINDS = ("integer", "float", "boolean", "text", "categorical", "date", "datetime", "zoned datetime")
everywhere = pytest.mark.parametrize("place", list(PLACES))


@pytest.fixture(autouse=True)
def blocks():
    with small_blocks(700):
        yield


@pytest.fixture(scope="module")
def census() -> pa.Table:
    bunch = make_census(4_000, random_state=3, return_probability=True)
    random = np.random.default_rng(0)
    frame = bunch.frame.assign(
        score=np.asarray(bunch.probability).round(5),
        illness=random.choice(list("abcdef"), 4_000),
        person=random.integers(0, 1_500, 4_000),
        noise=random.normal(size=4_000),
    )
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(scope="module")
def adult() -> pa.Table:
    frame = load_adult().frame.iloc[:2_000].reset_index(drop=True)
    random = np.random.default_rng(0)
    frame = frame.assign(person=random.integers(0, 250, 2_000), survey=random.integers(1, 90, 2_000) / 4)
    return pa.Table.from_pandas(frame, preserve_index=False)


def assert_same(one: Any, other: Any, where: str = "") -> None:
    """Compare two documents; fractions up to their last digits."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{place}]")
    elif isinstance(one, float) and isinstance(other, float):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12), (where, one, other)
    else:
        assert one == other, where


# -- releases ---------------------------------------------------------------------------------------------------

QI = ["age", "sex", "birth_country", "occupation", "hours_per_week", "monthly_rent"]
CASES: dict[str, tuple[Any, str | None]] = {
    "guided": (ModelGuidedAnonymizer(20), "score"),
    "guided by labels": (ModelGuidedAnonymizer(20, representative="member"), "high_income"),
    "ranges": (ModelGuidedAnonymizer(30, representative="range"), "score"),
    "bounds": (ModelGuidedAnonymizer(30, representative="bounds"), "score"),
    "tight ranges": (ModelGuidedAnonymizer(30, representative="tight-range"), "score"),
    "tight bounds": (ModelGuidedAnonymizer(30, representative="tight-bounds"), "score"),
    "ranges with limits": (
        ModelGuidedAnonymizer(25, representative="range", limits={"monthly_rent": 100, "age": 5}),
        "score",
    ),
    "sample": (ModelGuidedAnonymizer(30, representative="sample", random_state=5), "score"),
    "limits": (ModelGuidedAnonymizer(25, limits={"monthly_rent": 100, "age": 5}), "score"),
    "diverse": (ModelGuidedAnonymizer(20, criteria=[LDiversity(3, "illness")]), "score"),
    "close": (ModelGuidedAnonymizer(40, criteria=[TCloseness(0.3, "illness")]), "score"),
    "persons": (ModelGuidedAnonymizer(20, criteria=[KAnonymity(15, unit="person")]), "score"),
    "mondrian": (MondrianAnonymizer(15), None),
    "workload": (WorkloadAwareAnonymizer(20), "high_income"),
}


@everywhere
@pytest.mark.parametrize("name", list(CASES))
def test_a_release_is_that_of_the_table_in_memory(census, tmp_path: Path, place: str, name: str):
    anonymizer, guide = CASES[name]
    keep = ["noise"] if guide == "score" else ["noise", "score"]
    settings = anonymizer.get_params(deep=False) | {"quasi_identifiers": QI, "keep": keep, "n_jobs": 2}
    local, outside = type(anonymizer)(**settings), type(anonymizer)(**settings)
    there = PLACES[place](census, tmp_path)
    y = None if guide is None else there.table[guide].to_numpy()
    expected = local.set_params(identifiers=None if guide is None else [guide]).fit_transform(there.table, y)
    path = tmp_path / "out.parquet"
    release = there.verbs.fit_transform(outside, there.source, path, guide_column=guide, most_held=900)
    written = pq.read_table(path)
    expected = expected.take(release.order)
    assert written.column_names == expected.column_names
    for column in expected.column_names:
        one, other = (t.column(column).to_pandas().astype(object) for t in (written, expected))
        pd.testing.assert_series_equal(one, other, obj=column)
    assert outside.partition_.to_dict() == local.partition_.to_dict()
    assert release.n_groups == local.n_groups_
    assert release.smallest_group == local.group_sizes_.min()
    assert {p.name for p in tmp_path.iterdir()} <= {"in", "in.db", "out.parquet"}


@pytest.mark.filterwarnings("ignore:quasi-identifiers that:UserWarning")
@in_examples(30)
@given(raw=tables(min_records=6, min_columns=2, max_columns=4, kinds=KINDS), place=st.sampled_from(list(PLACES)))
def test_random_tables_are_released_as_from_memory(tmp_path_factory, raw, place):
    there = PLACES[place](raw.to("pyarrow"), tmp_path_factory.mktemp("random"))
    names = there.table.column_names
    local, outside = (MondrianAnonymizer(2, quasi_identifiers=names) for _ in range(2))
    with small_blocks(5):
        try:
            expected = local.fit_transform(there.table)
        except SfumatoError as error:
            with pytest.raises(type(error)):
                there.verbs.fit_transform(outside, there.source, tmp_path_factory.mktemp("out") / "out.parquet")
            return
        path = tmp_path_factory.mktemp("out") / "out.parquet"
        there.verbs.fit_transform(outside, there.source, path, shuffle=False)
    assert outside.partition_.to_dict() == local.partition_.to_dict()
    assert pq.read_table(path).to_pylist() == expected.to_pylist()


@everywhere
def test_a_model_predicts_block_by_block(adult, tmp_path: Path, place: str):
    from sklearn.dummy import DummyClassifier

    class Elderly(DummyClassifier):
        def predict_proba(self, X: Any) -> np.ndarray:
            share = np.asarray(X.column("age")) / 100
            return np.column_stack([1 - share, share])

    there = PLACES[place](adult, tmp_path)
    local, outside = (
        ModelGuidedAnonymizer(10, identifiers=["fnlwgt", "person", "survey"], keep=["income"]) for _ in range(2)
    )
    there.verbs.fit_transform(outside, there.source, tmp_path / "out.parquet", model=Elderly(), most_held=500)
    local.fit(there.table, Elderly().predict_proba(there.table))
    assert outside.partition_.to_dict() == local.partition_.to_dict()


# -- measurements -----------------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("most_held", [100, 10_000])
def test_a_measurement_is_that_of_the_table_in_memory(adult, tmp_path: Path, place: str, most_held: int):
    there = PLACES[place](adult.slice(0, 600), tmp_path)
    asked = {
        "quasi_identifiers": ["age", "sex", "race", "native-country"], "sensitive": ["occupation", "income"],
        "unit": "person", "weights": "survey",
    }  # fmt: skip
    found = there.verbs.measure(there.source, most_held=most_held, scratch=tmp_path, **asked)
    assert_same(found.to_dict(), sfumato.measure(there.table, **asked).to_dict())


@in_examples(25)
@given(
    raw=tables(min_records=4, min_columns=3, max_columns=4, kinds=(*KINDS, "duration")),
    place=st.sampled_from(list(PLACES)),
    missing=st.sampled_from(["value", "wildcard"]),
    has_people=st.booleans(),
)
def test_random_tables_are_measured_as_in_memory(tmp_path_factory, raw, place, missing, has_people):
    table = raw.to("pyarrow")
    if not CAN_HOLD[place]:
        table = table.drop_columns([n for n in table.column_names if pa.types.is_duration(table[n].type)])
        if table.num_columns < 2:
            return
    folder = tmp_path_factory.mktemp("random")
    there = PLACES[place](table, folder)
    names = there.table.column_names
    people = None
    if has_people:
        drawn = np.random.default_rng(1).integers(0, table.num_rows, 3 * table.num_rows)
        (folder / "people").mkdir()
        people = PLACES[place](table.take(pa.array(drawn)), folder / "people")
    asked = {"quasi_identifiers": names[:1], "sensitive": names[1:3], "missing": missing}
    with small_blocks(7):
        found = there.verbs.measure(
            there.source, population=people and people.source, most_held=3, scratch=folder, **asked
        )
    assert_same(found.to_dict(), sfumato.measure(there.table, population=people and people.table, **asked).to_dict())


# -- anatomies and generalizations ------------------------------------------------------------------------------

ANATOMIES: dict[str, dict[str, Any]] = {
    "one column": {"l": 3, "sensitive": "occupation"},
    "several columns": {"l": 2, "sensitive": ["occupation", "hours-per-week"], "suppression_limit": 0.5},
    "one table": {"l": 2, "sensitive": ["occupation", "hours-per-week"], "joint": True, "suppression_limit": 0.5},
    "four columns": {
        "l": {"workclass": 2, "marital-status": 3, "education": 3, "occupation": 3},
        "sensitive": ["education", "occupation", "marital-status", "workclass"],
        "joint": [["education", "occupation"]],
        "suppression_limit": 1.0,
    },
    "suppressed": {"l": 2, "sensitive": "sex", "suppression_limit": 1.0},
    "at random": {"l": 2, "sensitive": "education", "assignment": "random", "group": "number"},
}


@everywhere
@pytest.mark.parametrize("name", list(ANATOMIES))
def test_an_anatomy_is_that_of_the_table_in_memory(adult, tmp_path: Path, place: str, name: str):
    there = PLACES[place](adult.drop_columns(["fnlwgt", "survey"]), tmp_path)
    local, outside = (Anatomizer(random_state=3, keep=["person"], **ANATOMIES[name]) for _ in range(2))
    local.fit_transform(there.table).save(tmp_path / "local")
    made = there.verbs.anatomize(outside, there.source, tmp_path / "outside")
    assert made.n_groups == local.n_groups_
    one, other = tmp_path / "local", tmp_path / "outside"
    assert json.loads((one / "manifest.json").read_text()) == json.loads((other / "manifest.json").read_text())
    parts = {path.name for path in one.iterdir()}
    assert parts == {path.name for path in other.iterdir()}
    for part in parts - {"manifest.json"}:
        assert pq.read_table(one / part).equals(pq.read_table(other / part))


@everywhere
@pytest.mark.parametrize("output", ["codes", "labels", "representatives"])
def test_a_generalization_makes_of_it_what_it_makes_of_the_table(adult, tmp_path: Path, place: str, output: Any):
    there = PLACES[place](adult.slice(0, 1_000).drop_columns(["fnlwgt"]), tmp_path)
    features = there.table.drop_columns(["income", "person", "survey"])
    labels = np.asarray(there.table["income"].to_pylist())
    coarse = PrivacyAwareTree(personal=["sex", "race"], max_leaves=30).fit(features, labels).generalization_
    assert there.verbs.transform(coarse, there.source, tmp_path / "out.parquet", output=output) == 1_000
    expected, found = coarse.transform(there.table, output), pq.read_table(tmp_path / "out.parquet")
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].type == expected[name].type
        assert found[name].to_pylist() == expected[name].to_pylist()


# -- refusals ---------------------------------------------------------------------------------------------------


def raised(run: Any) -> str:
    with pytest.raises((InputError, ParameterError)) as caught:
        run()
    return f"{type(caught.value).__name__}: {caught.value}"


REFUSALS: dict[str, tuple[Any, dict[str, Any]]] = {
    "method": (HilbertAnonymizer(10), {"guide_column": "high_income"}),
    "rule": (MondrianAnonymizer(10, strict=False), {}),
    "no guide": (ModelGuidedAnonymizer(10, quasi_identifiers=["age"], keep=["noise", "score"]), {}),
    "unknown guide": (ModelGuidedAnonymizer(10), {"guide_column": "nobody"}),
    "a guide and a model": (ModelGuidedAnonymizer(10), {"guide_column": "score", "model": object()}),
    "unknown column": (MondrianAnonymizer(10, quasi_identifiers=["nobody"]), {}),
    "unique column": (MondrianAnonymizer(10, quasi_identifiers=["age"]), {}),
    "k": (MondrianAnonymizer(5_000, quasi_identifiers=["age"], keep=["noise", "score"]), {}),
}


@pytest.mark.parametrize("name", list(REFUSALS))
def test_what_cannot_be_done_is_refused_in_the_same_words(census, tmp_path: Path, name: str):
    anonymizer, asked = REFUSALS[name]
    said = set()
    for number, place in enumerate(PLACES):
        (folder := tmp_path / str(number)).mkdir()
        there = PLACES[place](census, folder)
        words = raised(lambda v=there: v.verbs.fit_transform(anonymizer, v.source, folder / "out.parquet", **asked))
        said.add(words.replace(there.words, "a table"))
        assert not (folder / "out.parquet").exists()
    assert len(said) == 1, said


def test_other_verbs_refuse_in_the_same_words(census, tmp_path: Path):
    coarse = UniformMinimizer(2).fit(census.select(["age"]), np.arange(4_000) % 2).generalization_
    said: dict[str, set[str]] = {}
    for number, place in enumerate(PLACES):
        (folder := tmp_path / str(number)).mkdir()
        v = PLACES[place](census, folder)
        runs = {
            "role": lambda v=v: v.verbs.measure(v.source, ["nobody"]),
            "population": lambda v=v: v.verbs.measure(v.source, ["age"], population=3),
            "secret": lambda v=v, f=folder: v.verbs.anatomize(Anatomizer(2, sensitive="nobody"), v.source, f / "a"),
            "drop": lambda v=v, f=folder: v.verbs.transform(coarse, v.source, f / "o.parquet", drop=["nobody"]),
            "output": lambda v=v, f=folder: v.verbs.transform(coarse, v.source, f / "o.parquet", output="x"),
        }
        for what, run in runs.items():
            said.setdefault(what, set()).add(raised(run))
    assert all(len(words) == 1 for words in said.values()), said
