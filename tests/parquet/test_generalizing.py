# SPDX-License-Identifier: Apache-2.0
"""A generalization makes of files what it makes of the table."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import PrivacyAwareTree, UniformMinimizer
from sfumato.backends.parquet import reader as files
from sfumato.datasets import load_adult
from sfumato.errors import GuaranteeError, InputError, ParameterError
from sfumato.parquet import transform
from strategies import in_examples, tables

OUTPUTS = ("codes", "labels", "representatives")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.ParquetFiles.batches, "__kwdefaults__", {"size": 300})


@pytest.fixture(scope="module")
def adult() -> Any:
    return pa.Table.from_pandas(load_adult().frame.iloc[:1000].drop(columns="fnlwgt"), preserve_index=False)


@pytest.fixture(scope="module")
def coarse(adult) -> Any:
    labels = np.asarray(adult["income"].to_pylist())
    features = adult.drop_columns(["income"])
    return PrivacyAwareTree(personal=["sex", "race"], max_leaves=30).fit(features, labels).generalization_


def written(table: Any, folder: Path, n_parts: int = 2) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(table.num_rows), n_parts)):
        pq.write_table(table.slice(int(rows[0]), len(rows)), folder / f"{number}.parquet", row_group_size=200)
    return folder


@pytest.mark.parametrize("output", OUTPUTS)
def test_files_become_what_the_table_becomes(adult, coarse, tmp_path: Path, output: Any):
    source = written(adult, tmp_path / "in")
    table = pq.read_table(source)
    assert transform(coarse, source, tmp_path / "out.parquet", output=output) == 1000
    expected = coarse.transform(table, output)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].type == expected[name].type
        assert found[name].to_pylist() == expected[name].to_pylist()
    assert found.schema.metadata == expected.schema.metadata
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out.parquet"}


@in_examples(30)
@given(
    raw=tables(min_records=8, min_columns=2, max_columns=3),
    output=st.sampled_from(OUTPUTS),
    n_buckets=st.integers(1, 4),
)
def test_random_files_become_what_the_table_becomes(tmp_path_factory, raw, output, n_buckets):
    folder = tmp_path_factory.mktemp("random")
    source = written(raw.to("pyarrow"), folder / "in")
    table = pq.read_table(source)
    coarse = UniformMinimizer(n_buckets).fit(table, np.arange(table.num_rows) % 2).generalization_
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files.ParquetFiles.batches, "__kwdefaults__", {"size": 3})
        transform(coarse, source, folder / "out.parquet", output=output)
    expected = coarse.transform(table, output)
    found = pq.read_table(folder / "out.parquet")
    for name in expected.column_names:
        assert found[name].type == expected[name].type
        assert str(found[name].to_pylist()) == str(expected[name].to_pylist())  # NaN is NaN here


def test_what_is_missing_is_written_alike_in_all_pieces(tmp_path: Path):
    heights = [None if place < 300 else float("nan") if place < 600 else 1.0 + place for place in range(900)]
    both = pa.table({"height": pa.array(heights, from_pandas=False), "age": np.arange(900) % 90})
    nan_only = pa.table({"height": pa.array(np.where(np.arange(900) < 500, np.nan, 1.0)), "age": np.arange(900) % 90})
    for name, table in (("both", both), ("nan", nan_only)):
        source = written(table, tmp_path / name)
        coarse = UniformMinimizer(4).fit(table, np.arange(900) % 2).generalization_
        transform(coarse, source, tmp_path / f"{name}.parquet", output="representatives")
        found = pq.read_table(tmp_path / f"{name}.parquet")["height"]
        expected = coarse.transform(table, "representatives")["height"]
        assert found.null_count == expected.null_count
        assert str(found.to_pylist()) == str(expected.to_pylist())


def test_columns_can_be_left_out(adult, coarse, tmp_path: Path):
    transform(coarse, written(adult, tmp_path / "in"), tmp_path / "out.parquet", drop=["income"])
    assert "income" not in pq.read_schema(tmp_path / "out.parquet").names


# -- what goes wrong --------------------------------------------------------------------------------------------


def test_a_truncated_file_publishes_nothing(adult, coarse, tmp_path: Path):
    source = written(adult, tmp_path / "in")
    broken = source / "1.parquet"
    broken.write_bytes(broken.read_bytes()[:-2_000])
    with pytest.raises(InputError, match=r"1\.parquet.*truncated"):
        transform(coarse, source, tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_full_disk_publishes_nothing(adult, coarse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = written(adult, tmp_path / "in")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(InputError, match="No space left"):
        transform(coarse, source, tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_records_that_get_lost_are_noticed(adult, coarse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = written(adult, tmp_path / "in")
    plain = pq.ParquetWriter.write_table
    monkeypatch.setattr(pq.ParquetWriter, "write_table", lambda self, table: plain(self, table.slice(1)))
    with pytest.raises(GuaranteeError, match="instead of 1000"):
        transform(coarse, source, tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("asked", "expected_words"),
    [({"output": "values"}, "'labels'"), ({"drop": ["nobody"]}, "not a column of the files")],
)
def test_what_cannot_be_asked_is_refused(adult, coarse, tmp_path: Path, asked: dict, expected_words: str):
    with pytest.raises(ParameterError, match=expected_words):
        transform(coarse, written(adult, tmp_path / "in"), tmp_path / "out.parquet", **asked)


def test_a_file_is_not_written_over_itself(adult, coarse, tmp_path: Path):
    source = written(adult, tmp_path / "in", 1) / "0.parquet"
    with pytest.raises(ParameterError, match="one of the files read"):
        transform(coarse, source, source)
