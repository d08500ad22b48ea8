# SPDX-License-Identifier: Apache-2.0
"""Files measured piece by piece say what the same table says in memory."""

import decimal
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.backends.blocks import unique_sets, value_codes, working_files
from sfumato.backends.parquet import reader as files
from sfumato.datasets import load_adult, make_census
from sfumato.errors import InputError, ParameterError
from sfumato.parquet import measure
from strategies import in_examples, tables


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    in_pieces(monkeypatch, 400)


def in_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(files.ParquetFiles.batches, "__kwdefaults__", {"size": size})
    monkeypatch.setattr(working_files, "CHUNK", size - 2)


def written(table: Any, folder: Path, n_parts: int = 2) -> Path:
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(np.array_split(np.arange(table.num_rows), n_parts)):
        if len(rows):
            pq.write_table(table.slice(int(rows[0]), len(rows)), folder / f"{number}.parquet", row_group_size=11)
    return folder


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


def compare(table: Any, folder: Path, *, most_held: int, population: Any = None, **asked: Any) -> Any:
    found = measure(written(table, folder), population=population, most_held=most_held, scratch=folder, **asked)
    if isinstance(population, Path):
        population = pq.read_table(population)
    expected = sfumato.measure(table, population=population, **asked)
    assert_same(found.to_dict(), expected.to_dict())
    assert all(path.suffix == ".parquet" for path in folder.iterdir())
    return found


@in_examples()
@given(
    raw=tables(min_records=2, min_columns=3, max_columns=5),
    most_held=st.sampled_from([3, 10, 1000]),
    missing=st.sampled_from(["value", "wildcard"]),
    n_keys=st.integers(1, 2),
)
def test_random_files_say_what_the_table_says(tmp_path_factory, raw, most_held, missing, n_keys):
    table = raw.to("pyarrow")
    names = table.column_names
    with pytest.MonkeyPatch.context() as patched:
        in_pieces(patched, 7)
        compare(
            table, tmp_path_factory.mktemp("random"), most_held=most_held, missing=missing,
            quasi_identifiers=names[:n_keys], sensitive=names[n_keys:2 + n_keys],
        )  # fmt: skip


@in_examples(30)
@given(
    raw=tables(min_records=4, min_columns=2, max_columns=3, kinds=("integer", "text", "float", "date")),
    most_held=st.sampled_from([3, 1000]),
    missing=st.sampled_from(["value", "wildcard"]),
    is_file=st.booleans(),
    seed=st.integers(0, 9),
)
def test_a_population_is_counted_as_in_memory(tmp_path_factory, raw, most_held, missing, is_file, seed):
    table = raw.to("pyarrow")
    random = np.random.default_rng(seed)
    people: Any = table.take(pa.array(random.integers(0, table.num_rows, 3 * table.num_rows)))
    folder = tmp_path_factory.mktemp("population")
    if is_file:
        people = written(people, folder / "people.parquet")
    with pytest.MonkeyPatch.context() as patched:
        in_pieces(patched, 7)
        compare(table, folder / "in", most_held=most_held, missing=missing, population=people)


@pytest.fixture(scope="module")
def adult() -> Any:
    frame = load_adult().frame.iloc[:600].reset_index(drop=True)
    random = np.random.default_rng(0)
    frame = frame.assign(person=random.integers(0, 250, 600), survey=random.integers(1, 90, 600) / 4)
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("most_held", [100, 10_000])
def test_adult_with_persons_weights_and_secrets(adult, tmp_path: Path, most_held: int, monkeypatch):
    found = compare(
        adult, tmp_path, most_held=most_held, quasi_identifiers=["age", "sex", "race", "native-country"],
        sensitive=["occupation", "hours-per-week", "income"], unit="person", weights="survey",
    )  # fmt: skip
    assert found.groups.smallest_in_persons == 1


def test_fractions_of_a_population_are_not_cut_off_among_whole_numbers(tmp_path: Path):
    people = pa.table({"age": [30.0, *[31.5] * 50, 32.0]})
    compare(pa.table({"age": [*range(30, 38)]}), tmp_path, most_held=100, population=people, quasi_identifiers=["age"])


def test_large_whole_numbers_are_not_compared_with_reals(tmp_path: Path):
    large = 2**53
    table, people = pa.table({"key": [large, large, large + 1, large + 2, large + 2]}), pa.table({"key": [0.5, 1.5]})
    with pytest.raises(InputError, match="would be taken for equal"):
        measure(written(table, tmp_path / "in"), ["key"], population=people)


@pytest.mark.parametrize("most_held", [150, 10_000])
def test_the_census_with_a_population_that_is_a_number(tmp_path: Path, most_held: int, monkeypatch):
    monkeypatch.setattr(unique_sets, "_CELLS_OF_PAIR", 400)  # most pairs of columns count as large
    monkeypatch.setattr(unique_sets, "_CELLS_AT_ONCE", 1000)
    table = pa.Table.from_pandas(make_census(600, random_state=1).frame, preserve_index=False)
    compare(table, tmp_path, most_held=most_held, population=20_000, sensitive=["monthly_rent"])


def test_text_with_many_values_is_numbered_on_disk(adult, tmp_path: Path, monkeypatch):
    random = np.random.default_rng(1)
    names = pa.array([f"name {number}" if number else None for number in random.integers(0, 300, 600)])
    table = adult.append_column("name", names)
    expected = measure(written(table, tmp_path), quasi_identifiers=["name", "sex"], most_held=200, scratch=tmp_path)
    monkeypatch.setattr(value_codes, "MOST_LISTED", 50)
    people = table.take(pa.array(random.integers(0, 600, 1500)))
    compare(table, tmp_path, most_held=200, quasi_identifiers=["name", "sex"], population=people)
    found = measure(tmp_path, quasi_identifiers=["name", "sex"], most_held=200)
    assert_same(found.to_dict(), expected.to_dict())
    secret = measure(tmp_path, quasi_identifiers=["sex"], sensitive=["name"], most_held=200)
    values = [part for part in secret.criteria if part.column == "name"]
    assert all(part.value is None for part in values)
    assert sum("too many to count" in part.reason for part in values) == len(values) - 1


def test_decimals_and_nanoseconds_are_of_one_kind_in_all_pieces(tmp_path: Path):
    amounts = [decimal.Decimal(text) for text in ("1", "2.50", "2.5", "1.00", "3.1415926535", "-4")] * 4
    moments = np.array([0, 1, 1000, 1000, 5, 2_000_000] * 4)
    table = pa.table(
        {
            "amount": pa.array(amounts, pa.decimal128(30, 10)),
            "wide": pa.array([value * 10**15 for value in amounts], pa.decimal128(38, 10)),
            "moment": pa.array(moments).cast(pa.timestamp("ns")),
            "sex": list("ffmmff") * 4,
        }
    )
    compare(table, tmp_path, most_held=5, quasi_identifiers=["amount", "moment"], sensitive=["wide", "sex"])
    compare(table, tmp_path, most_held=5, quasi_identifiers=["sex"], sensitive=["amount", "moment"])


def test_counting_up_to_two_equals_counting():
    keys = np.random.default_rng(0).integers(0, 50, 60)
    cells = np.zeros(50, np.uint8)
    for kernel in (unique_sets.count_up_to_two, unique_sets.count_up_to_two.py_func):
        cells[:] = 0
        kernel(keys, cells)
        assert cells.tolist() == np.minimum(2, np.bincount(keys, minlength=50)).tolist()


def test_records_that_agree_come_into_the_same_bucket():
    codes = np.repeat(np.arange(200), 5)
    buckets = working_files.bucket_of([codes, codes % 7], 16)
    assert all(len(set(buckets[codes == code])) == 1 for code in range(200))
    assert len(set(buckets)) == 16


# -- what goes wrong --------------------------------------------------------------------------------------------


def test_a_truncated_file_is_refused_and_nothing_is_left(adult, tmp_path: Path):
    source = written(adult, tmp_path / "in")
    broken = source / "1.parquet"
    broken.write_bytes(broken.read_bytes()[:-2_000])
    with pytest.raises(InputError, match=r"1.parquet.*truncated"):
        measure(source, scratch=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_full_disk_is_said_and_nothing_is_left(adult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = written(adult, tmp_path / "in")

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(working_files.os, "pwrite", full)
    with pytest.raises(InputError, match="No space left"):
        measure(source, scratch=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_working_files_are_for_their_owner_alone(adult, tmp_path: Path):
    modes: set[int] = set()

    def look(*_: Any) -> None:
        for folder in tmp_path.glob(".sfumato-*"):
            modes.add(folder.stat().st_mode & 0o777)
            modes.update(path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file())

    measure(written(adult, tmp_path / "in"), ["age"], scratch=tmp_path, progress=look)
    assert modes == {0o700, 0o600}


@pytest.mark.parametrize(
    ("asked", "expected_words"),
    [
        ({"missing": "ignore"}, "'value'"),
        ({"weights": [1.0, 2.0]}, "name of the column"),
        ({"population": 3}, "at least as many people"),
        ({"quasi_identifiers": ["age"], "sensitive": ["age"]}, "one role"),
        ({"quasi_identifiers": ["agee"]}, "Did you mean"),
        ({"hierarchies": {"age": {}}, "quasi_identifiers": ["sex"]}, "not named in sensitive"),
    ],
)
def test_what_cannot_be_asked_is_refused(adult, tmp_path: Path, asked: dict, expected_words: str):
    with pytest.raises(ParameterError, match=expected_words):
        measure(written(adult, tmp_path), **asked)


def test_weights_that_are_no_positive_numbers_are_counted(adult, tmp_path: Path):
    wrong = np.where(np.arange(600) % 250 == 0, -1.0, 2.0)
    table = adult.set_column(adult.schema.get_field_index("survey"), "survey", pa.array(wrong))
    with pytest.raises(InputError, match="3 of 600"):
        measure(written(table, tmp_path), ["age"], weights="survey")
