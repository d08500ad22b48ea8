# SPDX-License-Identifier: Apache-2.0
"""What a column is taken for: made-up tables with the names and shapes of real ones, judged one by one."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sfumato import LDiversity, ModelGuidedAnonymizer, MondrianAnonymizer, parquet
from sfumato.errors import InputError, PrivacyWarning
from sfumato.frames import read_table
from sfumato.schema import ColumnWarning, build_schema, judge_column

N = 2_000
RANDOM = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def same_draws_in_any_order():
    """What a test draws does not depend on the tests before it."""
    RANDOM.bit_generator.state = np.random.default_rng(8).bit_generator.state


def codes(values, weights=None, n=N):
    return RANDOM.choice(values, n, p=None if weights is None else np.array(weights) / np.sum(weights))


def texts(pattern, numbers):
    return [pattern.format(int(number)) for number in numbers]


def incomes(low=9.8, spread=0.9):
    return RANDOM.lognormal(low, spread, N).astype(int)


NAMING = {
    # names and numbers of people
    "name": texts("person {}", range(N)),
    "last_name": texts("name{}", RANDOM.integers(0, 300, N)),
    "FirstName": texts("name{}", RANDOM.integers(0, 120, N)),
    "customerName": texts("name{}", RANDOM.integers(0, 1200, N)),
    "E-Mail": texts("p{}@example.org", range(N)),
    "contact": texts("p{}@example.org", RANDOM.integers(0, 900, N)),
    "phone": 4_900_000_000 + RANDOM.integers(0, 10**8, N),
    "tel": texts("+49 30 {:08d}", RANDOM.integers(0, 10**8, N)),
    "ssn": texts("{:09d}", RANDOM.integers(0, 10**9, N)),
    "c1": texts("123-45-{:04d}", range(N)),
    "account": texts("DE{:020d}", RANDOM.integers(0, 10**9, N)),
    "key": [f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(N)],
    "passport_no": texts("C{:07d}", RANDOM.integers(0, 10**7, N)),
    "address": texts("{} Main Street", RANDOM.integers(0, 1500, N)),
    # numbers of records and households
    "SERIALNO": texts("2024HU{:07d}", np.arange(N) // 2 * 13),
    "household_id": np.arange(N) // 3 + 1,
    "id": np.arange(N),
    "member_id": RANDOM.permutation(N) + 54_734,
    "patientId": RANDOM.integers(0, 400, N),
    "order_no": RANDOM.permutation(N) * 3 + 100_000,
    "x17": np.arange(N) + 5,
    "index": RANDOM.permutation(N),
    "score": RANDOM.permutation(N) + 1,
    "__index_level_0__": RANDOM.permutation(N) * 2,
    "hh": np.arange(N) // 2 * 3,
    "ref": RANDOM.choice(np.arange(100_000_000, 1_000_000_000, 7_919), N, replace=False),
    "record": (RANDOM.permutation(N) + 1).astype(float),
    # texts that are nearly unique
    "emp_title": [*texts("company {}", range(1300)), *["us army"] * 700],
    "title": [*texts("loan number {}", range(900)), *texts("plan {}", np.arange(1100) % 100)],
    "remark": texts("seen on day {}", range(N)),
}

AMOUNTS = {
    "PINCP": incomes(),
    "annual_inc": incomes() * 10,
    "salary": RANDOM.integers(10_000, 99_999, N),
    "v7": incomes(10.5, 0.7),  # whole-number amounts under a name that says nothing
    "amount": np.round(incomes(), -2),
    "revol_bal": incomes(9.0, 1.3),
    "fnlwgt": RANDOM.lognormal(12, 0.5, N).astype(int),
    "PWGTP": RANDOM.gamma(2.0, 40.0, N).astype(int) + 1,
    "instance_weight": RANDOM.lognormal(7, 0.6, N).round(2),
    "total_pymnt": RANDOM.lognormal(9, 0.6, N),
    "age": RANDOM.integers(17, 90, N),
    "education-num": codes(range(1, 17)),
    "SCHL": codes(range(1, 25)),
    "hours-per-week": codes([40, 20, 50, 35, 60], [6, 2, 1, 1, 1]),
    "capital-gain": codes([0, 3103, 7298, 15024, 99999], [90, 4, 3, 2, 1]),
    "open_acc": RANDOM.poisson(9, N),
    "pub_rec": RANDOM.poisson(0.1, N),
    "delinq_2yrs": RANDOM.poisson(0.2, N).astype(float),
    "num_persons_worked_for_employer": codes(range(7), [48, 12, 5, 7, 7, 3, 18]),
    "wage_per_hour": codes([0, 500, 735, 1200], [94, 2, 2, 2]),
    "phone_calls": RANDOM.poisson(3, N),
    "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(RANDOM.choice(25_000, N, replace=False), unit="D"),
    "longitude": RANDOM.normal(13.4, 0.1, N),
}

CODES = {
    "RAC1P": codes([1, 2, 3, 5, 6, 8, 9], [63, 14, 1, 1, 9, 8, 4]),
    "HISP": codes(range(1, 25), [86, *[1] * 23]),
    "OCCP": codes(np.arange(10, 9920, 83)),
    "INDP": codes(np.arange(170, 9920, 97)),
    "FOD1P": codes(np.arange(1100, 6403, 61)),
    "COW": codes(range(1, 10)),
    "MAR": codes(range(1, 6), [45, 5, 9, 2, 39]),
    "CIT": codes(range(1, 6)),
    "ESR": codes([1, 2, 3, 4, 5, 6]),
    "JWTRNS": codes(range(1, 13)),
    "POBP": codes([1, 5, 36, 42, 200, 207, 303, 554]),
    "detailed_occupation_recode": codes(range(47)),
    "marital_status": codes([1, 2, 3, 4]),
    "occupation_code": codes(np.arange(11, 800, 10)),
    "diag_cd": codes([250, 401, 414, 428, 486]),
    "zip": codes(10_001 + np.arange(0, 900, 7)),
    "county": codes(np.arange(1, 200, 2)).astype(float),
}

QUASI_IDENTIFIERS = {
    "PUMA": texts("{:05d}", codes(np.arange(100, 4500, 31))),
    "zip_code": texts("{:05d}", RANDOM.choice(90_000, N, replace=False)),
    "earliest_cr_line": texts("{}-10-01", codes(range(1970, 2010))),
    "date_of_birth": [f"{1940 + i % 60}-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)],
    "phone_type": codes(["home", "work", "mobile"]).astype(object),
    "product_name": texts("product {}", codes(range(40))),
    "case_state": codes(["California", "Texas", "Florida"]).astype(object),
    "addr_state": texts("S{}", codes(range(50))),
    "occupation": codes(["clerk", "nurse", "baker"]).astype(object),
}


def judged(name, values, **more):
    return judge_column(read_table(pd.DataFrame({name: values})).column(name, for_counting=True), **more)


@pytest.mark.parametrize("name", NAMING)
def test_a_column_that_names_people_is_found_with_a_reason(name):
    found = judged(name, NAMING[name])
    assert found.names_people is not None and found.code is None


@pytest.mark.parametrize("name", AMOUNTS)
def test_an_amount_is_neither_a_name_nor_a_code(name):
    found = judged(name, AMOUNTS[name])
    assert (found.names_people, found.code, found.is_amount) == (None, None, True)


@pytest.mark.parametrize("name", CODES)
def test_numbers_that_are_codes_are_found_by_name_and_shape(name):
    found = judged(name, CODES[name])
    assert found.names_people is None and found.code is not None
    assert found.is_surely_code and not found.is_amount


@pytest.mark.parametrize("name", QUASI_IDENTIFIERS)
def test_text_that_describes_people_names_nobody(name):
    assert judged(name, QUASI_IDENTIFIERS[name]).names_people is None


def test_a_reason_holds_no_value_of_the_column():
    for name, values in NAMING.items():
        reason = judged(name, values).names_people
        assert not any(str(value) in reason for value in list(values)[:50] if len(str(value)) > 4)


def test_numbers_in_which_a_target_shows_no_order_may_be_codes():
    values = codes(np.arange(3, 700, 60), [5, 1, 4, 2, 7, 1, 3, 8, 2, 6, 1, 4], n=20_000)
    effect = dict(zip(np.unique(values), RANDOM.permutation(12), strict=True))
    target = np.array([effect[value] for value in values]) + RANDOM.normal(size=len(values))
    assert judged("v3", values, target=target).code == "the target shows no order in its 12 distinct whole numbers"
    assert judged("v3", values, target=values + RANDOM.normal(size=len(values))).code is None


# ---- the library -------------------------------------------------------------------------------------------------


def people(**columns):
    return pd.DataFrame({"age": RANDOM.integers(20, 60, N), "sex": codes(["f", "m"]), **columns})


@pytest.mark.parametrize("name", NAMING)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_column_that_names_people_and_has_no_role_is_refused(name, library):
    frame = library({"age": AMOUNTS["age"], name: NAMING[name]})
    with pytest.raises(
        InputError,
        match=rf"column '{name}' has no role.*List it in identifiers to drop it, in quasi_identifiers to rewrite it, "
        "or in keep to release it unchanged",
    ):
        MondrianAnonymizer(k=5).fit(frame)


def test_a_column_that_names_people_is_rewritten_with_a_warning_where_somebody_said_so():
    frame = people(household_id=NAMING["household_id"])
    with pytest.warns(PrivacyWarning, match="quasi-identifier 'household_id' seems to name people: its name"):
        released = MondrianAnonymizer(k=5, quasi_identifiers=["age", "sex", "household_id"]).fit_transform(frame)
    assert released.groupby(["age", "sex", "household_id"]).size().min() >= 5


def test_amounts_and_fractions_need_no_role():
    frame = people(PINCP=AMOUNTS["PINCP"], longitude=AMOUNTS["longitude"], fnlwgt=AMOUNTS["fnlwgt"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = build_schema(read_table(frame))
    assert schema.quasi_identifiers == ("age", "sex", "PINCP", "longitude", "fnlwgt")


def test_a_household_number_does_not_pass_through_although_its_values_repeat():
    with pytest.raises(InputError, match="'household_id' would be released unchanged, but its name"):
        build_schema(read_table(people(household_id=NAMING["household_id"])), quasi_identifiers=["age", "sex"])


def test_a_limit_says_that_somebody_thought_of_the_column():
    frame = people(postal=texts("A{:06d}", range(N)), ref=texts("{:06d}", range(N)))
    schema = build_schema(read_table(frame), limits={"ref": 1})
    assert schema.quasi_identifiers == ("age", "sex", "postal", "ref")


def test_a_near_unique_text_among_many_records_is_found_behind_a_head_of_few_values():
    n = 150_000
    late = ["none"] * 20_000 + texts("person {}", range(n - 20_000))
    frame = pd.DataFrame({"age": RANDOM.integers(20, 60, n), "comment": late})
    with pytest.raises(InputError, match="column 'comment' has no role"):
        ModelGuidedAnonymizer(k=5).fit(frame, np.zeros(n, int))


# ---- values that are released unchanged, and codes that are averaged ---------------------------------------------


def test_a_near_unique_target_inside_the_table_is_warned_of_with_its_share():
    frame = people(PINCP=np.arange(N) * 37 % 1_000_003)
    anonymizer = MondrianAnonymizer(k=5, keep=["PINCP"])
    with pytest.warns(PrivacyWarning, match=r"column 'PINCP' is released unchanged and 100.00% of its values are uni"):
        anonymizer.fit_transform(frame, frame["PINCP"])
    with pytest.warns(PrivacyWarning, match="'PINCP' is released unchanged.*Round it first"):
        anonymizer.release(frame, frame["PINCP"], shuffle=True)


def test_a_rounded_target_is_not_warned_of():
    frame = people(PINCP=np.arange(N) // 20 * 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MondrianAnonymizer(k=5, keep=["PINCP"]).fit_transform(frame, frame["PINCP"])


def test_a_near_unique_sensitive_column_is_warned_of():
    frame = people(PINCP=np.arange(N) * 37)
    anonymizer = MondrianAnonymizer(k=5, criteria=[LDiversity(2, "PINCP")])
    with pytest.warns(PrivacyWarning, match="'PINCP' is released unchanged"):
        anonymizer.fit_transform(frame)


@pytest.mark.parametrize("representative", ["mean", "midrange"])
def test_codes_that_would_be_averaged_are_warned_of(representative):
    frame = people(OCCP=CODES["OCCP"], RAC1P=CODES["RAC1P"])
    anonymizer = MondrianAnonymizer(k=5, representative=representative)
    with pytest.warns(ColumnWarning, match="numbers that look like codes: 'OCCP', 'RAC1P'.*categorical_features"):
        anonymizer.fit(frame)
    anonymizer.set_params(categorical_features=["OCCP", "RAC1P"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = anonymizer.fit_transform(frame)
    assert set(released["OCCP"]) <= set(frame["OCCP"])


# ---- tables that are read in pieces --------------------------------------------------------------------------------


def in_files(frame, folder):
    path = folder / "people.parquet"
    frame.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("name", ["name", "household_id", "E-Mail", "id", "title", "ref"])
def test_parquet_files_are_judged_as_tables_in_memory_are(name, tmp_path):
    path = in_files(people(**{name: NAMING[name]}), tmp_path)
    with pytest.raises(InputError, match=f"column '{name}' has no role"):
        parquet.fit_transform(MondrianAnonymizer(k=5), path, tmp_path / "released.parquet")
    with pytest.raises(InputError, match=f"column '{name}' would be released unchanged"):
        parquet.fit_transform(
            MondrianAnonymizer(k=5, quasi_identifiers=["age", "sex"]), path, tmp_path / "released.parquet"
        )
    assert not (tmp_path / "released.parquet").exists()


def test_parquet_files_with_amounts_and_codes_need_no_roles(tmp_path):
    path = in_files(people(PINCP=AMOUNTS["PINCP"], v7=AMOUNTS["v7"], COW=CODES["COW"]), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parquet.fit_transform(MondrianAnonymizer(k=5), path, tmp_path / "released.parquet")
    assert list(pd.read_parquet(tmp_path / "released.parquet")) == ["age", "sex", "PINCP", "v7", "COW"]


def test_a_name_in_parquet_files_is_rewritten_with_a_warning_where_somebody_said_so(tmp_path):
    path = in_files(people(household_id=NAMING["household_id"]), tmp_path)
    anonymizer = MondrianAnonymizer(k=5, quasi_identifiers=["age", "sex", "household_id"])
    with pytest.warns(PrivacyWarning, match="'household_id' seems to name people"):
        parquet.fit_transform(anonymizer, path, tmp_path / "released.parquet")
