# SPDX-License-Identifier: Apache-2.0
"""Bundled tables, loaders of tables in a folder, and the census generator."""

from __future__ import annotations

import doctest
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from importlib import import_module, resources
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import datasets
from sfumato.datasets.catalogue import ADULT_ARX_COLUMNS, CATALOGUE
from sfumato.errors import InputError, MissingExtraError, ParameterError

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


# ------------------------------------------------------------------------------------- tables in a folder

LOADERS = {
    "lending_club": datasets.load_lending_club,
    "lending_club_cleaned": datasets.load_lending_club_cleaned,
    "acs_income": datasets.load_acs_income,
    "acs_employment": datasets.load_acs_employment,
    "acs_pums_ny": lambda **options: datasets.load_acs_pums(state="ny", **options),
    "acs_pums_ma": lambda **options: datasets.load_acs_public_coverage(state="ma", **options),
    "acs_pums_ca": lambda **options: datasets.load_acs_pums(state="ca", **options),
    "bank": datasets.load_bank,
    "fars": datasets.load_fars,
    "communities": datasets.load_communities,
    "census_kdd": lambda **options: datasets.load_census_kdd(subset="all", **options),
    "location": datasets.load_location,
    "adult_arx": datasets.load_adult_arx,
}


def test_every_entry_of_the_catalogue_is_tested():
    assert set(LOADERS) == set(CATALOGUE)


@pytest.mark.parametrize("name", LOADERS)
def test_without_a_folder_the_error_says_what_to_put_where(monkeypatch, name):
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    with pytest.raises(InputError) as caught:
        LOADERS[name]()
    message, entry = str(caught.value), CATALOGUE[name]
    assert "SFUMATO_DATA environment variable is not set" in message
    for expected in (*entry.files, entry.title, entry.origin, entry.licence):
        assert expected in message


@pytest.mark.parametrize("name", LOADERS)
def test_a_file_that_is_not_in_the_folder_is_named(monkeypatch, tmp_path, name):
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    with pytest.raises(InputError) as caught:
        LOADERS[name]()
    assert str(tmp_path) in str(caught.value)
    assert CATALOGUE[name].files[-1] in str(caught.value)
    assert "the folder given by the SFUMATO_DATA environment variable" in str(caught.value)


def test_only_the_absent_file_is_asked_for(tmp_path):
    write(tmp_path, "communities/communities.data", "1,2\n")
    with pytest.raises(InputError, match=r"Expected in that folder: communities/communities\.names\."):
        datasets.load_communities(tmp_path)


def test_the_argument_goes_before_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("SFUMATO_DATA", "/nowhere")
    write(tmp_path, "bank/bank-full.csv", '"age";"y"\n58;"no"\n')
    assert datasets.load_bank(tmp_path).data["age"].tolist() == [58]
    with pytest.raises(InputError, match="nowhere"):
        datasets.load_bank()


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")


def write_parquet(folder, name, columns):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_bank_keeps_its_unknowns_as_values(tmp_path):
    write(tmp_path, "bank/bank-full.csv", '"age";"job";"y"\n58;"unknown";"no"\n44;"NA";"yes"\n')
    bank = datasets.load_bank(tmp_path)
    assert values_of(bank.frame) == {"age": [58, 44], "job": ["unknown", "NA"], "y": ["no", "yes"]}
    assert bank.target_names == ["no", "yes"]


def test_fars_takes_its_names_from_the_header(tmp_path):
    header = "@relation fars\n@attribute AGE real [0,99]\n@attribute BELT {None,Used}\n"
    text = header + "@attribute INJURY_SEVERITY {No,Fatal}\n@data\n034,None,Fatal\n20,Used,No\n"
    write(tmp_path, "fars/fars.dat.gz", text)
    fars = datasets.load_fars(tmp_path, as_frame="polars")
    assert values_of(fars.data) == {"AGE": [34, 20], "BELT": ["None", "Used"]}
    assert fars.target.to_list() == ["Fatal", "No"]


def test_communities_sets_the_place_aside_and_reads_question_marks_as_missing(tmp_path):
    place = ("state", "county", "community", "communityname", "fold")
    names = "".join(f"@attribute {name} numeric\n" for name in (*place, "racePct", "ViolentCrimesPerPop"))
    write(tmp_path, "communities/communities.names", "text\n" + names)
    write(tmp_path, "communities/communities.data", "8,?,?,Lake,1,0.5,0.2\n9,1,?,Town,1,?,0.67\n")
    loaded = datasets.load_communities(tmp_path)
    assert values_of(loaded.data) == {"racePct": [0.5, None]}
    assert loaded.target_names == ["ViolentCrimesPerPop"]
    assert values_of(loaded.aside)["county"] == [None, 1]
    assert values_of(loaded.aside)["community"] == [None, None]


def test_location_has_a_class_and_446_small_columns(tmp_path):
    row = ",".join(["0", "1"] * 223)
    write(tmp_path, "location/bangkok.csv.gz", f'"13",{row}\n"2",{row}\n')
    X, y = datasets.load_location(tmp_path, return_X_y=True, as_frame=False)
    assert X.dtype == np.int8
    assert X.shape == (2, 446)
    assert X[0, :3].tolist() == [0, 1, 0]
    assert y.tolist() == [13, 2]


def test_lending_club_counts_charged_off_loans_as_bad_whatever_the_policy(tmp_path):
    status = ["Fully Paid", "Charged Off", "Does not meet the credit policy. Status:Charged Off"]
    columns = {"dti": [1.0, 2.0, 3.0], "member_id": pa.nulls(3), "loan_status": status}
    write_parquet(tmp_path, "loan/lendingclub_2007_2011.parquet", columns)
    loaded = datasets.load_lending_club(tmp_path)
    assert loaded.target.tolist() == [0, 1, 1]
    assert loaded.feature_names == ["dti", "member_id"]
    assert loaded.data["member_id"].dtype == np.float64
    assert loaded.aside["loan_status"].tolist() == status


def test_the_cleaned_loans_leave_out_the_column_that_restates_the_target(tmp_path):
    text = "status,dti,outcome\nFully Paid,1.5,paid off\n"
    write(tmp_path, "loan/lendingclub_psds_full_train_set.csv.gz", text)
    loaded = datasets.load_lending_club_cleaned(tmp_path)
    assert list(loaded.frame.columns) == ["dti", "outcome"]


def test_census_kdd_reads_question_marks_as_missing_and_joins_both_parts(tmp_path):
    for part, country in (("train", ["?", "Peru"]), ("test", ["Cuba", "?"])):
        columns = {"country": country, "instance_weight": [1.0, 2.0], "income": ["- 50000.", "50000+."]}
        write_parquet(tmp_path, f"census_kdd/census_income_kdd_{part}.parquet", columns)
    load = datasets.load_census_kdd
    assert values_of(load(tmp_path).data)["country"] == [None, "Peru"]
    assert values_of(load(tmp_path, subset="test").data)["country"] == ["Cuba", None]
    assert values_of(load(tmp_path, subset="all").data)["country"] == [None, "Peru", "Cuba", None]
    with pytest.raises(ParameterError, match="subset='validation'"):
        load(tmp_path, subset="validation")


def test_adult_arx_comes_as_text_with_a_hierarchy_for_each_column(tmp_path):
    header = ";".join(ADULT_ARX_COLUMNS)
    write(tmp_path, "adult/arx/adult.csv", f"{header}\nMale;07;White;a;b;c;d;e;<=50K\n")
    for column in ADULT_ARX_COLUMNS:
        write(tmp_path, f"adult/arx/adult_hierarchy_{column}.csv", f"{column};coarse;*\n")
    loaded = datasets.load_adult_arx(tmp_path)
    assert loaded.data["age"].tolist() == ["07"]
    assert list(loaded.hierarchies) == list(ADULT_ARX_COLUMNS)
    assert loaded.hierarchies["age"] == [("age", "coarse", "*")]


def pums(**columns):
    """A PUMS table with every column the tasks need; columns not given are 1."""
    n_records = len(next(iter(columns.values())))
    names = [
        "SERIALNO",
        "SPORDER",
        "STATE",
        "PUMA",
        "PWGTP",
        "AGEP",
        "SEX",
        "RAC1P",
        "CIT",
        "NATIVITY",
        "SCHL",
        "MAR",
        "FER",
        "ESR",
        "OCCP",
        "COW",
        "WKHP",
        "PINCP",
        "PUBCOV",
        "DIS",
        "DEAR",
        "DEYE",
        "DREM",
        "MIL",
    ]
    table = {name: columns.get(name, [1] * n_records) for name in names}
    for name in ("SERIALNO", "STATE", "PUMA"):
        table[name] = [str(value) for value in table[name]]
    return table


def test_public_coverage_keeps_the_young_with_low_income(tmp_path):
    columns = pums(AGEP=[64, 65, 30, 30], PINCP=[30_000, 10, 30_001, None], PUBCOV=[2, 1, 1, 1], PUMA=[7] * 4)
    write_parquet(tmp_path, "acs/acs_pums_2024_ma.parquet", columns)
    loaded = datasets.load_acs_public_coverage(tmp_path, state="ma")
    assert loaded.data["AGEP"].tolist() == [64]
    assert loaded.target.tolist() == [0]
    assert loaded.data["PUMA"].tolist() == ["7"]
    assert "SERIALNO" in loaded.aside
    assert "PUBCOV" not in loaded.data


def test_income_2024_keeps_those_at_work(tmp_path):
    columns = pums(AGEP=[17, 16, 40, 40], PINCP=[50_001, 9_999, 100, 50_000], WKHP=[1, 40, 40, 40])
    write_parquet(tmp_path, "acs/acs_pums_2024_ny.parquet", columns)
    loaded = datasets.load_acs_income_2024(tmp_path)
    assert loaded.data["AGEP"].tolist() == [17, 40]
    assert loaded.target.tolist() == [1, 0]


def test_pums_has_a_target_only_when_one_is_named(tmp_path):
    write_parquet(tmp_path, "acs/acs_pums_2024_ny.parquet", pums(AGEP=[3, 4], PUBCOV=[1, 2]))
    loaded = datasets.load_acs_pums(tmp_path)
    assert loaded.target is None
    assert loaded.frame is loaded.data
    X, y = datasets.load_acs_pums(tmp_path, target="PUBCOV", return_X_y=True)
    assert y.tolist() == [1, 2]
    assert "PUBCOV" not in X
    with pytest.raises(ParameterError, match="Name one with target="):
        datasets.load_acs_pums(tmp_path, return_X_y=True)
    with pytest.raises(ParameterError, match="state='tx': expected one of 'ny', 'ma', 'ca'"):
        datasets.load_acs_pums(tmp_path, state="tx")
    with pytest.raises(InputError, match="without NOPE"):
        datasets.load_acs_pums(tmp_path, target="NOPE")


def test_one_state_or_one_year_can_be_asked_for(tmp_path):
    columns = {"STATE": ["MA", "PA"], "AGEP": [20, 30], "PINCP": [0, 1]}
    write_parquet(tmp_path, "acs/acs_income_2018_35states.parquet", columns)
    assert datasets.load_acs_income(tmp_path, state="PA").data["AGEP"].tolist() == [30]
    with pytest.raises(ParameterError, match="one of the 2 values in the column STATE"):
        datasets.load_acs_income(tmp_path, state="XX")
    columns = {"AGEP": [20, 30], "year": [2015, 2016], "employed": [0, 1]}
    write_parquet(tmp_path, "acs/acs_employment_ma_2015_2018.parquet", columns)
    assert datasets.load_acs_employment(tmp_path, year=2015).data["AGEP"].tolist() == [20]


def test_text_with_many_values_stays_text(tmp_path):
    titles = [f"title {number}" for number in range(1001)]
    columns = {"title": titles, "purpose": ["b", *["a"] * 1000], "loan_status": ["Fully Paid"] * 1001}
    write_parquet(tmp_path, "loan/lendingclub_2007_2011.parquet", columns)
    data = datasets.load_lending_club(tmp_path, as_frame="pyarrow").data
    assert data.schema.field("title").type == pa.string()
    assert data.column("title").to_pylist() == titles
    assert data.column("purpose").combine_chunks().dictionary.to_pylist() == ["a", "b"]
    assert data.column("purpose").to_pylist() == columns["purpose"]


REAL = {
    "lending_club": ((42_535, 143), {0: 36_104, 1: 6_431}),
    "lending_club_cleaned": ((119_987, 17), {"paid off": 97_316, "default": 22_671}),
    "acs_income": ((898_610, 10), {0: 565_964, 1: 332_646}),
    "acs_employment": ((277_677, 16), {1: 139_199, 0: 138_478}),
    "acs_pums_ny": ((210_150, 34), None),
    "acs_pums_ma": ((18_980, 16), None),
    "acs_pums_ca": ((393_725, 8), None),
    "bank": ((45_211, 16), {"no": 39_922, "yes": 5_289}),
    "fars": ((100_968, 29), None),
    "communities": ((1_994, 122), None),
    "census_kdd": ((299_285, 40), {"- 50000.": 280_717, "50000+.": 18_568}),
    "location": ((5_010, 446), None),
    "adult_arx": ((30_162, 8), {"<=50K": 22_654, ">50K": 7_508}),
}

needs_data = pytest.mark.skipif(
    not os.environ.get("SFUMATO_DATA"), reason="SFUMATO_DATA is not set: no folder with the published files"
)


@needs_data
@pytest.mark.parametrize("name", REAL)
def test_published_files_have_their_known_records_and_classes(name):
    if not all((Path(os.environ["SFUMATO_DATA"]) / file).exists() for file in CATALOGUE[name].files):
        pytest.skip(f"SFUMATO_DATA has no {CATALOGUE[name].files}")
    loaded = LOADERS[name](as_frame="pyarrow")
    shape, classes = REAL[name]
    assert loaded.data.shape == shape
    if classes is not None:
        assert Counter(loaded.target.to_pylist()) == classes


@needs_data
def test_published_tables_hold_what_the_quasi_identifiers_and_hierarchies_name():
    loans = datasets.load_lending_club(as_frame="pyarrow")
    assert len(set(datasets.LENDING_CLUB_QUASI_IDENTIFIERS)) == 18
    assert set(datasets.LENDING_CLUB_QUASI_IDENTIFIERS) <= set(loans.feature_names)
    adult = datasets.load_adult_arx(as_frame="pyarrow")
    for column, rows in adult.hierarchies.items():
        assert set(adult.frame.column(column).to_pylist()) <= {row[0] for row in rows}
        assert {row[-1] for row in rows} == {"*"}
    coverage = datasets.load_acs_public_coverage(as_frame="pyarrow")
    assert coverage.data.num_rows == 61_083
    assert datasets.load_acs_income_2024(as_frame="pyarrow").data.num_rows == 107_810


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
    loaders = {"adult", "nursery", "adult_arx", "lending_club", "lending_club_cleaned", "acs_income", "acs_pums"}
    loaders |= {"acs_income_2024", "acs_employment", "acs_public_coverage", "bank", "fars", "communities"}
    loaders |= {"census_kdd", "location"}
    names = {f"load_{name}" for name in loaders} | {"make_census", "iter_census"}
    assert set(datasets.__all__) == names | {"ADULT_QUASI_IDENTIFIERS", "LENDING_CLUB_QUASI_IDENTIFIERS"}
    assert all(hasattr(datasets, name) for name in datasets.__all__)
