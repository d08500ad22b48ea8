# SPDX-License-Identifier: Apache-2.0
"""What leaves by default belongs to no single person: numbers, categories, combinations, documents."""

import json
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import in_examples, tables

from sfumato import (
    HilbertAnonymizer,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    ParameterError,
    RPlusTreeAnonymizer,
    WorkloadAwareAnonymizer,
)
from sfumato.representatives import REPRESENTATIVES
from sfumato.schema.role_checks import ColumnWarning

METHODS = [
    ModelGuidedAnonymizer,
    WorkloadAwareAnonymizer,
    MondrianAnonymizer,
    HilbertAnonymizer,
    RPlusTreeAnonymizer,
]


def combinations(frame):
    """Count the rows of a frame, missing values all alike; without anything of sfumato."""
    columns = [[None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame.columns]
    return Counter(zip(*columns, strict=True))


def people(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, n),
            "hours": rng.normal(38, 9, n).round(1),
            "job": rng.choice([f"job {i}" for i in range(60)], n, p=np.arange(60, 0, -1) / 1830),
            "sex": rng.choice(["f", "m"], n),
            "born": np.datetime64("1950-01-01") + rng.integers(0, 20_000, n).astype("timedelta64[D]"),
        }
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [5, 25])
def test_a_default_release_shows_no_combination_that_fewer_than_k_people_have(method, k):
    table = people().drop(columns=["hours", "born"])
    labels = (table["age"] > 50).astype(int)
    released = method(k=k).fit_transform(table, labels)
    original = combinations(table)
    n_holders = [original[shown] for shown in combinations(released)]
    assert 1 not in n_holders
    assert sum(0 < n < k for n in n_holders) <= len(n_holders) / 100


@given(data=st.data(), table=tables(min_records=8, max_records=60), k=st.integers(2, 6))
@in_examples(100)
def test_what_one_person_has_never_leaves(data, table, k):
    frame = table.to("pandas")
    method = data.draw(st.sampled_from([MondrianAnonymizer, HilbertAnonymizer, RPlusTreeAnonymizer]))
    with warnings.catch_warnings(action="ignore", category=ColumnWarning):
        released = method(k=k).fit_transform(frame)
    original = combinations(frame)
    # Nothing is told of anybody where every value is missing.
    told = [shown for shown in combinations(released) if any(value is not None for value in shown)]
    assert all(original[shown] != 1 for shown in told)


@pytest.mark.parametrize("method", [MondrianAnonymizer, HilbertAnonymizer, RPlusTreeAnonymizer])
def test_a_column_is_left_empty_where_every_combination_is_one_persons(method):
    table = pd.DataFrame({"letter": [*"aabb"], "flag": [True, False] * 2})
    released = method(k=4).fit_transform(table)
    assert released["letter"].isna().all()
    assert released["flag"].dtype == bool
    assert released["flag"].nunique() == 1


def test_all_columns_are_left_empty_where_no_single_one_can_be():
    pairs = [(a, b) for a in ("x", "y", None) for b in ("u", "v", None)]
    table = pd.DataFrame(pairs, columns=["first", "second"])
    assert MondrianAnonymizer(k=3).fit_transform(table).isna().all(axis=None)


@pytest.mark.parametrize("representative", REPRESENTATIVES)
def test_a_column_with_fewer_values_than_k_shows_none_of_them(representative):
    table = people(300)[["age", "hours"]]
    table["paid"] = np.nan
    table.loc[[3, 5, 8], "paid"] = [4711.5, 12.25, 99.75]
    kwargs = {"random_state": 0} if representative == "sample" else {}
    released = MondrianAnonymizer(k=5, representative=representative, **kwargs).fit_transform(table)
    shown = set(released.filter(like="paid").stack().dropna())
    assert shown <= ({"any value or missing"} if representative.endswith("range") else set())


@pytest.mark.parametrize("method", METHODS)
def test_phantoms_do_not_depend_on_the_order_of_the_rows(method):
    table = people(600)
    labels = (table["age"] > 50).astype(int)
    order = np.random.default_rng(1).permutation(len(table))
    released = method(k=8).fit_transform(table, labels)
    shuffled = method(k=8).fit_transform(table.iloc[order], labels.iloc[order])
    pd.testing.assert_frame_equal(released.iloc[order], shuffled)


def incomes(n=50_000):
    rng = np.random.default_rng(3)
    values = np.rint(rng.lognormal(10.5, 0.8, n)).astype(int)
    values[7] = 49_419_111
    return pd.DataFrame({"income": values, "age": rng.integers(18, 80, n)})


@pytest.mark.parametrize("representative", ["phantom", "median", "mean", "midrange", "bounds"])
def test_no_group_of_incomes_gets_what_one_person_has_at_the_ends(representative):
    table = incomes()
    released = MondrianAnonymizer(k=10, representative=representative).fit_transform(table)
    shown = released.filter(like="income").to_numpy().ravel()
    assert table["income"].min() < shown.min()
    assert shown.max() < table["income"].nlargest(5).iloc[-1]


def test_the_mean_of_a_group_is_not_too_low():
    table = incomes()
    table = table[table["income"] < 400_000]
    released = MondrianAnonymizer(k=10, representative="mean").fit_transform(table)
    assert abs(released["income"].mean() / table["income"].mean() - 1) < 0.005


def test_bounds_enclose_all_but_the_few_records_at_the_ends():
    table = incomes()
    released = MondrianAnonymizer(k=10, representative="bounds").fit_transform(table)
    is_inside = (released["income_low"] <= table["income"]) & (table["income"] <= released["income_high"])
    assert (~is_inside).sum() <= 2 * 200  # those of the outermost bins, which are open
    frequent = table["income"].value_counts()
    ends = pd.concat([released["income_low"], released["income_high"]]).unique()
    assert sum(frequent.get(end, 0) == 1 for end in ends) == 0


def test_labels_of_the_outermost_ranges_are_open():
    released = MondrianAnonymizer(k=10, representative="range").fit_transform(incomes())
    labels = set(released["income"])
    assert any(label.endswith("and over") for label in labels)
    assert not any("49419111" in label for label in labels)


@pytest.mark.parametrize("representative", ["phantom", "median", "model", "sample", "range", "bounds"])
def test_a_document_names_no_value_that_fewer_than_k_people_have(representative, tmp_path):
    table = people()
    k = 10
    labels = (table["age"] > 50).astype(int)
    anonymizer = ModelGuidedAnonymizer(k=k, representative=representative, random_state=0).fit(table, labels)
    anonymizer.partition_.save(tmp_path / "partition.json")
    text = (tmp_path / "partition.json").read_text(encoding="utf-8")
    counts = table["job"].value_counts()
    assert (counts < k).any()
    assert not [job for job, n in counts.items() if n < k and f'"{job}"' in text]
    hours = table["hours"].value_counts()
    document = json.loads(text)
    cuts = [node["at_most"] for node in document["nodes"] if node.get("column") == "hours"]
    assert not [cut for cut in cuts if 0 < hours.get(cut, 0) < k]


def test_a_loaded_partition_sends_rare_categories_where_it_sends_unseen_ones(tmp_path):
    table = people()
    anonymizer = MondrianAnonymizer(k=10).fit(table)
    anonymizer.partition_.save(tmp_path / "partition.json")
    loaded = type(anonymizer.partition_).load(tmp_path / "partition.json")
    counts = table["job"].value_counts()
    is_common = table["job"].map(counts) >= 10
    assert (~is_common).any()
    common = table[is_common]
    assert (loaded.apply(common) == anonymizer.partition_.apply(common)).all()
    rare, unseen = table[~is_common], table[~is_common].assign(job="never seen")
    assert (loaded.apply(rare) == loaded.apply(unseen)).all()


def test_a_group_of_rare_categories_gets_a_missing_text():
    table = pd.DataFrame({"age": [20] * 20 + [60] * 20, "town": ["a"] * 20 + [f"b{i}" for i in range(20)]})
    released = MondrianAnonymizer(k=5, quasi_identifiers=["age", "town"]).fit_transform(table)
    assert set(released["town"].dropna()) == {"a"}


def test_a_column_of_more_categories_than_codes_is_anonymized():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"place": np.char.mod("%d", rng.integers(0, 80_000, 100_000)), "age": rng.integers(0, 90, 100_000)}
    )
    assert table["place"].nunique() > 55_000
    wide = pd.concat(
        [table, pd.DataFrame({"place": np.char.mod("x%d", np.arange(20_000)), "age": 5})], ignore_index=True
    )
    assert wide["place"].nunique() > 65_533
    frequent = pd.concat([wide, pd.DataFrame({"place": ["capital"] * 2_000, "age": 5})], ignore_index=True)
    common = {place for place, n in Counter(frequent["place"]).items() if n >= 400}
    for method in (MondrianAnonymizer, HilbertAnonymizer):
        anonymizer = method(k=400, quasi_identifiers=["place", "age"])  # each group costs a look at 65,533 codes
        released = anonymizer.fit_transform(frequent)
        assert min(combinations(released).values()) >= 400
        # A code stands for many of the categories, and is shared by more records than have the one it is called by.
        shown = set(released["place"].dropna())
        assert "capital" in shown
        assert shown <= common


def test_a_column_of_more_categories_than_codes_shows_none_that_few_have_from_files(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sfumato.parquet import fit_transform

    names = [f"{i:05d}" for i in range(33_000) for _ in range(2)] + [f"x{i:05d}" for i in range(34_000)]
    table = pa.table({"place": names, "age": [30 + i % 50 for i in range(len(names))]})
    pq.write_table(table, tmp_path / "in.parquet")
    anonymizer = MondrianAnonymizer(k=400, quasi_identifiers=["place", "age"])  # each group costs a look at all codes
    fit_transform(anonymizer, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert set(pq.read_table(tmp_path / "out.parquet").column("place").to_pylist()) == {None}
    anonymizer.partition_.save(tmp_path / "partition.json")
    assert "x00001" not in (tmp_path / "partition.json").read_text()


def test_persons_with_many_records_do_not_make_their_values_common():
    table = pd.DataFrame(
        {"who": ["one"] * 30 + [f"p{i}" for i in range(70)], "town": ["x"] * 30 + ["y"] * 70, "age": [40, 41] * 50}
    )
    from sfumato import KAnonymity

    anonymizer = MondrianAnonymizer(k=5, quasi_identifiers=["town", "age"], criteria=[KAnonymity(5, unit="who")])
    released = anonymizer.fit_transform(table)
    assert set(released["town"].dropna()) == {"y"}


@pytest.mark.parametrize("width", [1, 2, 10])
@pytest.mark.parametrize("representative", ["phantom", "median", "bounds"])
def test_a_narrow_limit_shows_nobodys_number(representative, width):
    table = incomes(2_000)
    anonymizer = MondrianAnonymizer(k=10, representative=representative, limits={"income": width}).fit(table)
    middles = Counter((table["income"] // width * width + width // 2).tolist())
    released = anonymizer.transform(table).filter(like="income")
    shown = set(released.to_numpy().ravel().tolist())
    if representative != "bounds":  # whose ends are those of intervals
        assert {value // width * width + width // 2 for value in shown} == shown
        assert sum(middles[value] == 1 for value in shown) <= len(shown) / 20
    document = json.dumps(anonymizer.partition_.to_dict()["groups"])
    own = [str(value) for value, n in Counter(table["income"].tolist()).items() if n == 1]
    assert sum(f" {value}," in document for value in own) <= len(own) / 20


def test_a_limit_that_no_float_holds_is_refused():
    with pytest.raises(ParameterError, match=r"limits has 1000.*expected a positive number"):
        MondrianAnonymizer(k=5, limits={"age": 10**400}).fit(people(50))
