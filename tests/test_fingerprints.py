# SPDX-License-Identifier: Apache-2.0
"""Fingerprints find records that were used before, and give nobody else a way to look for people."""

import copy
import io
import json
import pickle
import stat

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato import Generalization, InputError, MondrianAnonymizer, Partition, RPlusTreeAnonymizer, UniformMinimizer
from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult
from sfumato.fingerprints import Fingerprints, fingerprints_path
from sfumato.frames import read_table

TWELVE = ADULT_QUASI_IDENTIFIERS[12]


def people(n=60, seed=0):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 90, n),
            "wage": draw.normal(2_000, 500, n).round(2),
            "town": draw.choice(["Bari", "Rome", "Siena"], n),
            "smokes": draw.random(n) < 0.3,
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(draw.integers(0, 20_000, n), unit="D"),
        }
    )


def share_of(fingerprints, other):
    return fingerprints.overlap(other).share


def through_csv(frame):
    return pa.csv.read_csv(io.BytesIO(frame.to_csv(index=False).encode()))


def with_narrow_types(frame):
    return frame.assign(
        age=frame["age"].astype("float32"), wage=frame["wage"].astype("float32"), town=frame["town"].astype("category")
    )


def with_ages_as_text(frame):
    return frame.assign(age=frame["age"].astype(str))


@pytest.mark.parametrize(
    "respell",
    [pl.from_pandas, pa.Table.from_pandas, through_csv, with_narrow_types, with_ages_as_text],
    ids=["polars", "arrow", "csv", "narrow", "text"],
)
def test_the_same_records_have_the_same_fingerprints_in_every_library_and_type(respell, request):
    frame = people()
    fingerprints = Fingerprints.of(read_table(frame), list(frame.columns))
    # A column of numbers that became text is another column; the rest are the same values in another type.
    assert share_of(fingerprints, respell(frame)) == (0.0 if request.node.callspec.id == "text" else 1.0)


def test_numbers_read_as_categories_are_the_same_numbers():
    frame = people()
    fingerprints = Fingerprints.of(read_table(frame, categorical=["age"]), list(frame.columns))
    assert share_of(fingerprints, frame) == 1.0


def test_missing_is_a_value_of_its_own_and_zero_has_no_sign():
    given = pd.DataFrame({"a": [0.0, 1.0, np.nan], "b": ["x", None, "y"]})
    fingerprints = Fingerprints.of(read_table(given), ["a", "b"])
    assert share_of(fingerprints, pd.DataFrame({"a": [-0.0, 1.0, None], "b": ["x", None, "y"]})) == 1.0
    assert share_of(fingerprints, pd.DataFrame({"a": [np.nan, 1.0, 0.0], "b": ["x", "x", "y"]})) == 0.0


def test_the_values_of_two_columns_cannot_be_exchanged():
    fingerprints = Fingerprints.of(read_table(pd.DataFrame({"a": [1, 2], "b": [2, 1]})), ["a", "b"])
    assert share_of(fingerprints, pd.DataFrame({"a": [1, 2], "b": [1, 2]})) == 0.0


def test_every_artifact_has_a_salt_of_its_own():
    table = read_table(people())
    first, second = (Fingerprints.of(table, ["age", "town"]) for _ in range(2))
    assert first.salt != second.salt
    assert not set(first.sets[0][1].tolist()) & set(second.sets[0][1].tolist())


@pytest.fixture(scope="module")
def adult():
    frame = load_adult(as_frame=True).frame
    order = np.random.default_rng(0).permutation(len(frame))
    return frame.iloc[order].reset_index(drop=True)


@pytest.mark.parametrize("columns", [TWELVE, ["age", "sex", "race", "education"]])
def test_chance_equality_of_independent_records_is_no_reuse(adult, columns):
    half = len(adult) // 2
    fitted = Fingerprints.of(read_table(adult[:half]), columns, columns)
    overlap = fitted.check_unused(adult[half:])
    assert overlap.is_checked and not overlap.is_reused
    assert overlap.share > 0.15  # equal records are frequent, and still nothing was used twice
    assert abs(overlap.share - overlap.chance) < 3 * overlap.error


@pytest.mark.parametrize("reused", [1.0, 0.5, 0.05])
def test_reused_records_are_refused_also_among_many_equal_ones(adult, reused):
    half = len(adult) // 2
    fitted = Fingerprints.of(read_table(adult[:half]), TWELVE)
    n_again = int(reused * half)
    mixed = pd.concat([adult[:n_again], adult[half : 2 * half - n_again]])
    with pytest.raises(InputError, match=f"about {reused:.0%} were used to make the artifact"):
        fitted.check_unused(mixed)


def test_records_without_their_other_columns_or_with_new_numbers_are_found_by_what_the_artifact_reads(adult):
    numbered = adult[:4_000].assign(number=np.arange(4_000))
    fitted = Fingerprints.of(read_table(numbered), TWELVE)
    assert fitted.overlap(numbered.drop(columns=["number", "income"])).is_reused
    assert fitted.overlap(numbered.assign(number=np.arange(4_000)[::-1])).is_reused


def test_a_table_in_which_nearly_all_records_are_equal_cannot_be_checked():
    coins = pd.DataFrame({"coin": np.arange(200) % 2})
    overlap = Fingerprints.of(read_table(coins), ["coin"]).overlap(coins)
    assert not overlap.is_checked and not overlap.is_reused


def test_a_table_without_the_columns_cannot_be_checked():
    fingerprints = Fingerprints.of(read_table(people()), ["age", "town"])
    assert not fingerprints.overlap(people()[["age"]]).is_checked


def test_records_that_a_setting_was_chosen_on_can_be_added():
    fitted, chosen, other = people(seed=1), people(seed=2), people(seed=3)
    fingerprints = Fingerprints.of(read_table(fitted), ["age", "town"]).with_records(chosen)
    assert fingerprints.n_records == 120
    assert fingerprints.overlap(chosen).is_reused and not fingerprints.overlap(other).is_reused
    with pytest.raises(InputError, match="lacks columns that the artifact reads"):
        fingerprints.with_records(chosen[["age"]])


# -- artifacts -----------------------------------------------------------------------------------------------------


@pytest.fixture
def partition():
    return MondrianAnonymizer(k=5, quasi_identifiers=["age", "wage", "town"], keep=["born"]).fit(people()).partition_


def test_a_saved_partition_has_its_fingerprints_beside_it_and_not_inside(partition, tmp_path):
    path = tmp_path / "partition.json"
    partition.save(path)
    beside = fingerprints_path(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["partition.fingerprints", "partition.json"]
    assert stat.S_IMODE(beside.stat().st_mode) == 0o600
    assert "Do not hand it on" in json.loads(beside.read_text())["notice"]
    assert partition.fingerprints.salt.hex() not in path.read_text() and "fingerprints" not in path.read_text()
    loaded = Partition.load(path)
    assert loaded.fingerprints.overlap(people()).is_reused
    beside.unlink()
    assert Partition.load(path).fingerprints is None


def test_the_hashes_in_the_file_are_sorted(partition, tmp_path):
    partition.save(tmp_path / "partition.json")
    loaded = Fingerprints.load(tmp_path / "partition.json")
    assert all((hashes[1:] >= hashes[:-1]).all() for _, hashes in loaded.sets)


def test_fingerprints_of_another_artifact_are_refused_and_an_artifact_without_any_removes_them(partition, tmp_path):
    path = tmp_path / "partition.json"
    partition.save(path)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(InputError, match=r"belongs to another version of 'partition\.json'"):
        Partition.load(path)
    Partition.from_dict(partition.to_dict()).save(path)
    assert not fingerprints_path(path).exists()
    assert Partition.load(path).fingerprints is None


@pytest.mark.parametrize(
    "damage", [{"salt": "x"}, {"sets": [{"columns": ["age"], "hashes": "AAA"}]}, {"sets": 1}, {"format": "other"}]
)
def test_a_damaged_file_is_an_error(partition, tmp_path, damage):
    path = tmp_path / "partition.json"
    partition.save(path)
    beside = fingerprints_path(path)
    beside.write_text(json.dumps(json.loads(beside.read_text()) | damage))
    with pytest.raises(InputError, match=r"fingerprints"):
        Partition.load(path)


def test_a_pickle_has_no_fingerprints_and_a_copy_has(partition):
    assert pickle.loads(pickle.dumps(partition)).fingerprints is None
    assert copy.deepcopy(partition).fingerprints is partition.fingerprints


def test_a_generalization_is_saved_with_the_fingerprints_of_its_sample(tmp_path):
    frame = people(200)
    made = UniformMinimizer(2, attributes=["age", "wage", "town"]).fit(frame, frame["smokes"]).generalization_
    made.save(tmp_path / "generalization.json")
    loaded = Generalization.load(tmp_path / "generalization.json")
    assert loaded == made and loaded.fingerprints.overlap(frame).is_reused
    assert made.coarsened({"age": [0] * made.attribute("age").n_buckets}).fingerprints is made.fingerprints
    assert "fingerprints" not in made.to_json()


def test_inserted_records_are_fingerprinted_too():
    first, second = people(seed=1), people(seed=2)
    anonymizer = RPlusTreeAnonymizer(k=3, quasi_identifiers=["age", "wage"], keep_records=True, keep=["born"])
    anonymizer.fit(first).insert(second)
    assert anonymizer.partition_.fingerprints.overlap(second).is_reused
