# SPDX-License-Identifier: Apache-2.0
"""Sliced tables: nothing lost inside column groups, nothing linked between them, l in every bucket."""

import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import GuaranteeError, InputError, ParameterError, SlicedTable, Slicer
from sfumato.anatomize.column_groups import contingency, group_columns
from sfumato.frames import read_table
from sfumato.testing.counting import rows_of
from strategies import LIBRARIES, in_examples, tables


def people(n=600, seed=0):
    random = np.random.default_rng(seed)
    age = random.integers(20, 60, n)
    return pd.DataFrame(
        {
            "age": age,
            "born": 2020 - age,
            "town": random.integers(0, 12, n),
            "sex": random.choice(["f", "m"], n),
            "ill": random.integers(0, 6, n),
            "wage": random.integers(0, 9, n),
        }
    )


def diversity_by_hand(rows, place, beside, bucket=-1):
    """Return the l reached among rows of a bucket that agree beside the sensitive one, in plain Python."""
    cells = {}
    for row in rows:
        cells.setdefault((row[bucket], *(row[other] for other in beside)), []).append(row[place])
    return min(len(values) / max(Counter(values).values()) for values in cells.values())


@in_examples()
@given(
    table=tables(min_columns=3, min_records=6),
    library=st.sampled_from(LIBRARIES),
    diversity=st.integers(2, 4),
    size=st.sampled_from([None, 2, 5, 40]),
    shape=st.sampled_from(["own", "beside", "apart"]),
)
def test_random_tables_are_sliced_without_loss_and_diversely(table, library, diversity, size, shape):
    names = list(table.columns)
    places = list(range(len(names)))
    groups = {"own": None, "beside": [[0, 1], places[2:]], "apart": [[place] for place in places]}[shape]
    slicer = Slicer(
        diversity, sensitive=0, column_groups=groups, bucket_size=size, suppression_limit=1.0, keep=places,
        random_state=0,
    )  # fmt: skip
    frame = table.to(library)
    try:
        sliced, rows, bucket = slicer.fit_transform_with_rows(frame)
    except (GuaranteeError, InputError) as refused:
        assert "expected" in str(refused)
        return
    shown = rows_of(sliced.table)
    original = [rows_of(frame)[row] for row in rows]
    assert len(shown) == len(original) == table.n_records - sliced.n_suppressed
    columns = read_table(frame).names
    listed = [[columns.index(name) for name in own] for own in slicer.column_groups_]
    assert sorted(place for own in listed for place in own) == places
    for own in listed:  # inside a bucket, every column group has its records, whole
        before = Counter((b, *(row[place] for place in own)) for row, b in zip(original, bucket.tolist(), strict=True))
        assert before == Counter((row[-1], *(row[place] for place in own)) for row in shown)
    beside = [place for own in listed if 0 in own for place in own if place != 0]
    assert diversity_by_hand(shown, 0, beside) >= diversity
    if size is not None and len(shown) >= size:
        assert min(Counter(row[-1] for row in shown).values()) >= size


def test_column_groups_are_shuffled_apart():
    frame = people(3000)
    sliced, rows, bucket = Slicer(
        2, sensitive="ill", column_groups=[["age"], ["born"], ["town", "sex", "wage"], ["ill"]], bucket_size=30,
        random_state=0,
    ).fit_transform_with_rows(frame)  # fmt: skip
    table = sliced.table
    # Born tells the age exactly; side by side they agree only by chance within a bucket of similar people.
    agree = (table["age"] + table["born"] == 2020).mean()
    by_chance = np.mean([
        (own.to_numpy()[:, None] == own.to_numpy()[None]).mean() for _, own in frame["age"].iloc[rows].groupby(bucket)
    ])  # fmt: skip
    assert agree == pytest.approx(by_chance, abs=0.04)
    assert (table["town"].to_numpy() == frame["town"].to_numpy()[rows]).mean() < 0.5


def test_neither_rows_nor_bucket_numbers_keep_the_order_of_the_table():
    frame = people(2000).sort_values("age", ignore_index=True)
    sliced, rows, bucket = Slicer(2, sensitive="ill", random_state=0).fit_transform_with_rows(frame)
    places = np.arange(len(rows))
    assert abs(np.corrcoef(places, rows)[0, 1]) < 0.1
    assert abs(np.corrcoef(bucket, rows)[0, 1]) < 0.1
    assert abs(np.corrcoef(places, sliced.table["age"])[0, 1]) < 0.1


def test_columns_that_depend_on_each_other_stay_together():
    sliced = Slicer(2, sensitive=["ill", "wage"], max_columns=2, random_state=0).fit_transform(people())
    assert sliced.column_groups == (("age", "born"), ("town", "sex"), ("ill",), ("wage",))
    assert sliced.diversities == {"ill": 2, "wage": 2}
    assert min(sliced.diversity().values()) >= 2
    assert group_columns(read_table(people()), ["age", "town", "born"], 1) == [["age"], ["town"], ["born"]]


@in_examples()
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=60))
def test_contingency_follows_its_formula(pairs):
    first, second = np.array(pairs).T
    n, counts = len(pairs), Counter(pairs)
    one, two = Counter(first.tolist()), Counter(second.tolist())
    if min(len(one), len(two)) < 2:
        assert contingency(first, second) == 0.0
        return
    total = sum((counts[a, b] / n - one[a] * two[b] / n**2) ** 2 / (one[a] * two[b] / n**2) for a in one for b in two)
    assert contingency(first, second) == pytest.approx(total / (min(len(one), len(two)) - 1))


def test_a_sensitive_column_beside_others_is_diverse_among_people_who_agree_in_them():
    groups = [["sex", "ill"], ["age", "born"], ["town", "wage"]]
    sliced = Slicer(3, sensitive="ill", column_groups=groups, random_state=0).fit_transform(people())
    names = list(sliced.table)
    rows = [tuple(row) for row in sliced.table.itertuples(index=False)]
    assert diversity_by_hand(rows, names.index("ill"), [names.index("sex")]) >= 3
    assert sliced.n_buckets > 10
    with pytest.raises(GuaranteeError, match="not l-diverse among records that agree"):
        Slicer(3, sensitive="ill", column_groups=[["age", "wage", "ill"], ["born", "town", "sex"]]).fit(people())


def test_a_broken_table_is_not_loaded(tmp_path):
    sliced = Slicer(3, sensitive="ill", random_state=0).fit_transform(people())
    for format in ("csv", "parquet"):
        sliced.save(tmp_path / format, format=format)
        loaded = SlicedTable.load(tmp_path / format)
        assert rows_of(loaded.table) == rows_of(sliced.table)
        assert (loaded.column_groups, loaded.n_buckets) == (sliced.column_groups, sliced.n_buckets)
    path = tmp_path / "csv" / "sliced.csv"
    table = pd.read_csv(path).assign(ill=1)
    table.to_csv(path, index=False)
    with pytest.raises(GuaranteeError, match="l = 3 does not hold"):
        SlicedTable.load(tmp_path / "csv")
    manifest = json.loads((tmp_path / "parquet" / "manifest.json").read_text())
    (tmp_path / "parquet" / "manifest.json").write_text(json.dumps({**manifest, "column_groups": [["age"]]}))
    with pytest.raises(InputError, match="names other columns than its file has"):
        SlicedTable.load(tmp_path / "parquet")
    with pytest.raises(InputError, match=r"no readable manifest\.json"):
        SlicedTable.load(tmp_path)


def test_a_bucket_that_is_not_diverse_is_not_returned(monkeypatch):
    from sfumato.anatomize import slicing

    monkeypatch.setattr(slicing, "assign_groups", lambda codes, *_, **__: np.arange(len(codes)) // 3)
    with pytest.raises(GuaranteeError, match="l = 3 does not hold"):
        Slicer(3, sensitive="ill", random_state=0).fit_transform(people())


def test_identifiers_do_not_leave_and_frames_keep_their_kind():
    frame = people().assign(name=[f"person {i}" for i in range(600)])
    with pytest.raises(InputError, match="column 'name' would be shared with its exact values"):
        Slicer(2, sensitive="ill").fit(frame)
    for made in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        table = Slicer(2, sensitive="ill", identifiers=["name"], random_state=0).fit_transform(made).table
        assert type(table) is type(made)
        assert "name" not in read_table(table).names


def test_without_a_seed_nobody_can_repeat_the_draw():
    made = [Slicer(2, sensitive="ill").fit_transform(people()).table["age"].tolist() for _ in range(2)]
    assert made[0] != made[1]
    again = [Slicer(2, sensitive="ill", random_state=3).fit_transform(people()).table for _ in range(2)]
    assert again[0].equals(again[1])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"column_groups": "age"}, "column_groups is of the type str"),
        ({"column_groups": [["age"], "ill"]}, "column_groups is of the type list"),
        ({"column_groups": [["age", "born", "town", "sex", "ill"]]}, "column_groups does not name 'wage'"),
        ({"column_groups": [["age"], ["age"]]}, "column_groups names a column twice"),
        ({"max_columns": 0}, "max_columns=0"),
        ({"bucket_size": 1}, "bucket_size=1"),
        ({"bucket": "age"}, "has a column 'age' already"),
        ({"l": 1}, "l=1"),
        ({"sensitive": None}, "sensitive is not given"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(settings, sentence):
    with pytest.raises((ParameterError, InputError), match=re.escape(sentence)):
        Slicer(**{"sensitive": "ill", **settings}).fit(people())


def test_a_value_that_is_too_frequent_needs_suppression():
    frame = people().assign(ill=lambda f: np.where(f["age"] < 50, 0, f["ill"]))
    with pytest.raises(GuaranteeError, match="suppression_limit to"):
        Slicer(2, sensitive="ill").fit(frame)
    slicer = Slicer(2, sensitive="ill", suppression_limit=1.0).fit(frame)
    assert slicer.n_suppressed_ == 2 * int((frame["ill"] == 0).sum()) - len(frame)


@parametrize_with_checks(
    [Slicer(2, sensitive=0, suppression_limit=1.0, random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_pipeline_consistency": "fit_transform gives a sliced table, which the check takes for an array"
    },
)
def test_the_slicer_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
