# SPDX-License-Identifier: Apache-2.0
"""Bundled tables and the census generator."""

from __future__ import annotations

import doctest
import hashlib
import json
import subprocess
import sys
from collections import Counter
from importlib import import_module, resources

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import datasets
from sfumato.errors import MissingExtraError, ParameterError

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
CENSUS_COLUMNS = [
    "age",
    "sex",
    "ethnicity",
    "birth_country",
    "education_years",
    "marital_status",
    "household_role",
    "work_class",
    "occupation",
    "hours_per_week",
    "capital_gain",
    "monthly_rent",
]


def values_of(frame):
    """Every column of any kind of frame as a list of Python values, missing as None."""
    if isinstance(frame, pd.DataFrame):
        return {name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame.columns}
    if isinstance(frame, pl.DataFrame):
        return {name: frame[name].to_list() for name in frame.columns}
    return {name: frame.column(name).to_pylist() for name in frame.column_names}


# ---------------------------------------------------------------------------------------------- bundled


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("adult", "37f644e6b720b2a1bcde699a09d464141000b3aa54d7c53519f73c0bd165dfa5"),
        ("nursery", "de7de5e96deeaf44d92a779fe51523a87da9c053d0654b7853b1bd679f2da1f3"),
    ],
)
def test_bundled_contents_are_the_published_ones(name, digest):
    frame = getattr(datasets, f"load_{name}")(as_frame="pyarrow").frame
    columns = {column: frame.column(column).to_pylist() for column in frame.column_names}
    assert hashlib.sha256(json.dumps(columns).encode()).hexdigest() == digest


def test_adult_has_its_records_classes_and_gaps_with_the_training_part_first():
    adult = datasets.load_adult()
    assert adult.data.shape == (48_842, 14)
    assert Counter(adult.target) == {"<=50K": 37_155, ">50K": 11_687}
    assert (adult.target.iloc[:32_561] == ">50K").sum() == 7_841
    assert adult.data.isna().any(axis=1).sum() == 3_620
    gaps = adult.data.isna().sum()
    assert gaps[gaps > 0].to_dict() == {"workclass": 2_799, "occupation": 2_809, "native-country": 857}
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    assert set(adult.data[numbers].dtypes) == {np.dtype("int64")}
    assert adult.data.iloc[0, :4].tolist() == [39, "State-gov", 77_516, "Bachelors"]


def test_nursery_has_its_five_classes_and_every_combination_once():
    nursery = datasets.load_nursery()
    assert Counter(nursery.target) == {
        "not_recom": 4_320,
        "priority": 4_266,
        "spec_prior": 4_044,
        "very_recom": 328,
        "recommend": 2,
    }
    assert not nursery.data.duplicated().any()
    assert nursery.feature_names[0] == "parents"
    assert nursery.target_column == "class"


@pytest.mark.parametrize(("name", "largest"), [("adult", 450_000), ("nursery", 8_000)])
def test_bundled_files_are_small_and_name_their_authors_and_licence(name, largest):
    folder = resources.files("sfumato.datasets").joinpath("data")
    content = folder.joinpath(f"{name}.parquet").read_bytes()
    assert len(content) < largest
    about = pq.read_schema(pa.BufferReader(content)).metadata
    assert b"CC BY 4.0" in about[b"licence"]
    assert b"UCI Machine Learning Repository" in about[b"citation"]
    description = getattr(datasets, f"load_{name}")().DESCR
    assert about[b"citation"].decode() in description
    assert about[b"licence"].decode() in description
    doi = about[b"citation"].decode().split()[-1]
    assert doi in folder.joinpath("README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("load", [datasets.load_adult, datasets.load_nursery])
def test_every_kind_of_frame_holds_the_same_values(load):
    expected = values_of(load(as_frame="pyarrow").frame)
    for kind, type_ in KINDS.items():
        loaded = load(as_frame=kind)
        assert isinstance(loaded.frame, type_)
        assert isinstance(loaded.data, type_)
        assert values_of(loaded.frame) == expected
        assert list(expected) == [*loaded.feature_names, loaded.target_column]
        assert np.asarray(loaded.target).tolist() == expected[loaded.target_column]


def test_numpy_arrays_hold_objects_with_nan_for_missing():
    loaded = datasets.load_adult(as_frame=False)
    expected = datasets.load_adult()
    assert loaded.frame is None
    assert loaded.data.shape == (48_842, 14)
    assert loaded.data.dtype == object
    assert loaded.target.tolist() == expected.target.tolist()
    known = [[None if value != value else value for value in row] for row in loaded.data.tolist()]
    assert sum(value is None for row in known for value in row) == 6_465
    assert [list(column) for column in zip(*known, strict=True)] == list(values_of(expected.data).values())


@pytest.mark.parametrize("as_frame", [True, False, "polars", "pyarrow"])
def test_return_x_y_gives_data_and_target_only(as_frame):
    X, y = datasets.load_nursery(return_X_y=True, as_frame=as_frame)
    assert X.shape == (12_960, 8)
    assert np.asarray(y)[0] == "recommend"


def test_categories_are_sorted_by_code_point():
    adult = datasets.load_adult()
    categorical = adult.frame.select_dtypes("category")
    assert categorical.shape[1] == 9
    for name in categorical:
        categories = adult.frame[name].cat.categories.tolist()
        assert categories == sorted(categories)
    assert adult.target_names == ["<=50K", ">50K"]


def test_a_loaded_frame_can_be_written_to_without_changing_the_next():
    first = datasets.load_adult()
    first.frame.loc[0, ["age", "sex"]] = [77, "Female"]
    first.data.loc[1, "age"] = 78
    assert first.frame.loc[0, "age"] == 77
    assert first.frame.loc[1, "age"] == 50
    assert datasets.load_adult().frame.loc[0, ["age", "sex"]].tolist() == [39, "Male"]


def test_without_pandas_the_default_is_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(datasets.load_nursery().frame, pa.Table)
    assert isinstance(datasets.load_nursery(as_frame="auto").frame, pa.Table)
    assert isinstance(datasets.make_census(10).frame, pa.Table)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_an_error_that_says_what_to_install(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=f"pip install {library}"):
        datasets.load_adult(as_frame=library)


@pytest.mark.parametrize("as_frame", ["dask", None, 1])
def test_an_unknown_kind_of_frame_is_refused(as_frame):
    with pytest.raises(ParameterError, match="expected True, False, 'auto', 'pandas', 'polars' or 'pyarrow'"):
        datasets.load_adult(as_frame=as_frame)


def test_adult_quasi_identifiers_are_the_sets_of_the_paper():
    sets = datasets.ADULT_QUASI_IDENTIFIERS
    assert {size: len(set(names)) for size, names in sets.items()} == {8: 8, 10: 10, 12: 12}
    assert set(sets[10]) - set(sets[8]) == {"age", "hours-per-week"}
    assert set(sets[12]) - set(sets[10]) == {"capital-gain", "capital-loss"}
    features = set(datasets.load_adult(as_frame="pyarrow").feature_names)
    assert features - set(sets[12]) == {"fnlwgt", "education"}
    with pytest.raises(TypeError):
        sets[8] = ()


def test_importing_the_datasets_loads_no_heavy_library():
    code = (
        "import sys, sfumato.datasets; "
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'sklearn', 'numba', 'narwhals') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["bundled", "census"])
def test_the_examples_in_the_docstrings_hold(module):
    result = doctest.testmod(import_module(f"sfumato.datasets.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


# ------------------------------------------------------------------------------------------------ census


@pytest.fixture(scope="module")
def census():
    return datasets.make_census(200_000, return_probability=True)


def test_a_record_does_not_depend_on_how_many_are_asked_for():
    many = datasets.make_census(40_000, as_frame="pyarrow", return_probability=True)
    for n_records in (1, 1000, 16_384, 16_385):
        few = datasets.make_census(n_records, as_frame="pyarrow", return_probability=True)
        assert few.frame.equals(many.frame.slice(0, n_records))
        assert np.array_equal(few.probability, many.probability[:n_records])


@pytest.mark.parametrize("block", [1_000, 16_384, 17_001, 1_000_000])
def test_blocks_together_are_the_table(block):
    tables = list(datasets.iter_census(35_000, block=block, random_state=3))
    assert [table.num_rows for table in tables[:-1]] == [block] * (len(tables) - 1)
    assert max(table.num_rows for table in tables) <= block
    whole = datasets.make_census(35_000, random_state=3, as_frame="pyarrow").frame
    assert pa.concat_tables(tables).combine_chunks().equals(whole)


def test_blocks_can_carry_the_probability():
    (table,) = datasets.iter_census(100, return_probability=True)
    expected = datasets.make_census(100, return_probability=True).probability
    assert np.array_equal(table.column("probability").to_numpy(), expected)


def test_a_seed_gives_its_own_records_every_time():
    first = datasets.make_census(2_000, random_state=7).frame
    pd.testing.assert_frame_equal(first, datasets.make_census(2_000, random_state=7).frame)
    other = datasets.make_census(2_000, random_state=8).frame
    # Independent records agree on age now and then, by chance.
    assert (first["age"] == other["age"]).mean() < 0.1
    blocks = datasets.make_census(2 * 16_384).frame["age"].to_numpy()
    assert (blocks[:16_384] == blocks[16_384:]).mean() < 0.1


def test_census_has_twelve_features_in_every_kind_of_frame():
    expected = values_of(datasets.make_census(500, as_frame="pyarrow").frame)
    for kind, type_ in KINDS.items():
        loaded = datasets.make_census(500, as_frame=kind)
        assert isinstance(loaded.data, type_)
        assert loaded.feature_names == CENSUS_COLUMNS
        assert values_of(loaded.frame) == expected
    X, y = datasets.make_census(500, as_frame=False, return_X_y=True)
    assert X.shape == (500, 12)
    assert y.tolist() == expected["high_income"]


def test_census_types_are_narrow(census):
    arrow = datasets.make_census(100_000, as_frame="pyarrow").frame
    assert arrow.nbytes / arrow.num_rows < 22
    assert census.frame.memory_usage(index=False).sum() / len(census.frame) < 24
    assert census.data["occupation"].cat.codes.dtype == np.int16
    assert census.data["hours_per_week"].dtype == np.float32  # 8 bits in pyarrow; NaN needs a float in pandas
    assert datasets.make_census(100, missing=0).data["hours_per_week"].dtype == np.int8


def test_census_frames_can_be_written_to():
    frame = datasets.make_census(100).frame
    for name in ("age", "capital_gain", "monthly_rent"):
        frame.loc[0, name] = 21
        assert frame.loc[0, name] == 21


def test_missing_values_come_in_the_asked_share_and_change_nothing_else():
    complete = datasets.make_census(50_000, missing=0).frame
    assert not complete.isna().any(axis=None)
    gappy = datasets.make_census(50_000, missing=0.3).frame
    share = gappy.isna().mean()
    with_gaps = ["birth_country", "work_class", "occupation", "hours_per_week", "monthly_rent"]
    assert share[with_gaps].between(0.28, 0.32).all()
    assert share.drop(with_gaps).sum() == 0
    assert (gappy["work_class"].isna() == gappy["occupation"].isna()).all()
    for name in gappy:
        is_known = gappy[name].notna()
        assert (gappy.loc[is_known, name] == complete.loc[is_known, name]).all()


def test_census_has_skew_rare_levels_and_dependent_columns(census):
    data = census.data
    assert data["birth_country"].nunique() == 41
    assert data["occupation"].nunique() > 300
    for name in ("ethnicity", "birth_country", "marital_status", "work_class", "occupation"):
        frequencies = data[name].value_counts(normalize=True)
        assert frequencies.iloc[-1] < 0.005
        assert frequencies.iloc[0] > 20 * frequencies.iloc[-1]
    assert data["age"].between(17, 90).all()
    assert 0.85 < (data["capital_gain"] == 0).mean() < 0.95
    assert data["capital_gain"].nunique() > 3_000
    assert data["monthly_rent"].nunique() > 0.8 * len(data)
    assert (data.loc[data["household_role"] == "husband", "sex"] == "male").all()
    assert data.loc[data["age"] < 22, "education_years"].max() < 13
    widowed = data["marital_status"] == "widowed"
    assert data.loc[widowed, "age"].mean() > data.loc[~widowed, "age"].mean() + 15
    assert np.corrcoef(data["education_years"], np.log(data["monthly_rent"].fillna(800)))[0, 1] > 0.1


def test_labels_follow_the_true_probabilities(census):
    probability = census.probability
    assert probability.dtype == np.float32
    best = np.maximum(probability, 1 - probability).mean()
    assert 0.83 < best < 0.87
    assert 0.2 < probability.mean() < 0.35
    # 200,000 records in ten bins: the standard error of a bin's mean is below 0.006, five of them 0.03.
    bins = np.digitize(probability, np.linspace(0.1, 0.9, 9))
    for number in range(10):
        inside = bins == number
        assert abs(census.target[inside].mean() - probability[inside].mean()) < 0.03


def test_a_model_learns_the_target_and_interactions_help(census):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    train, test = slice(0, 40_000), slice(40_000, 60_000)
    power = census.frame[train].groupby("occupation", observed=False)["high_income"].mean()
    data = census.data[:60_000].assign(occupation=lambda d: d["occupation"].astype(object).map(power))
    names = ["age", "education_years", "hours_per_week", "capital_gain", "monthly_rent", "occupation"]
    numbers = (
        data[names]
        .astype(float)
        .assign(couple=census.data["household_role"].isin(["husband", "wife"]), male=census.data["sex"] == "male")
    )
    boosted = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(numbers[train], census.target[train])
    filled = numbers.fillna(numbers.mean())
    filled = (filled - filled.mean()) / filled.std()
    linear = LogisticRegression().fit(filled[train], census.target[train])
    boosted_score = boosted.score(numbers[test], census.target[test])
    linear_score = linear.score(filled[test], census.target[test])
    best = ((census.probability > 0.5) == census.target)[test].mean()
    assert best - 0.02 < boosted_score <= best + 0.005
    assert boosted_score > linear_score + 0.005
    assert linear_score > 1 - census.target[test].mean() + 0.04


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_records": 0}, "n_records=0: expected an integer of at least 1"),
        ({"n_records": 10.0}, "n_records=10.0: expected an integer"),
        ({"n_records": True}, "n_records=True: expected an integer"),
        ({"n_records": 10, "random_state": None}, "random_state=None: expected an integer of at least 0"),
        ({"n_records": 10, "random_state": -1}, "random_state=-1: expected an integer of at least 0"),
        ({"n_records": 10, "missing": 1.0}, "missing=1.0: expected a share"),
        ({"n_records": 10, "missing": float("nan")}, "missing=nan: expected a share"),
        ({"n_records": 10, "missing": "few"}, "missing='few': expected a share"),
    ],
)
def test_census_refuses_what_cannot_work(options, message):
    with pytest.raises(ParameterError, match=message):
        datasets.make_census(**options)
    with pytest.raises(ParameterError, match=message):
        datasets.iter_census(**options)  # at the call, not at the first table


def test_a_block_has_at_least_one_record():
    with pytest.raises(ParameterError, match="block=0: expected an integer of at least 1"):
        datasets.iter_census(10, block=0)


def test_numpy_integers_are_integers():
    assert datasets.make_census(np.int64(5), random_state=np.uint8(3)).data.shape == (5, 12)


def test_the_public_names_are_exactly_these():
    names = {"ADULT_QUASI_IDENTIFIERS", "iter_census", "load_adult", "load_nursery", "make_census"}
    assert set(datasets.__all__) == names
    assert all(hasattr(datasets, name) for name in datasets.__all__)
