# SPDX-License-Identifier: Apache-2.0
"""Files are divided in two as the table is in memory, and whatever goes wrong, nothing is published."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import AnatomizedTable, Anatomizer
from sfumato.anatomize.table_division import DiverseGroups
from sfumato.backends.blocks import anatomy, value_codes
from sfumato.backends.blocks import reordering as shuffling
from sfumato.backends.parquet import reader as files
from sfumato.datasets import load_adult
from sfumato.errors import GuaranteeError, InputError, ParameterError
from sfumato.parquet import anatomize
from strategies import in_examples, tables


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    in_pieces(monkeypatch, 500)


def in_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(files.ParquetFiles.batches, "__kwdefaults__", {"size": size})
    monkeypatch.setattr(shuffling, "STRETCH", size - 1)
    monkeypatch.setattr(anatomy, "RECOUNTED_AT_ONCE", size)


@pytest.fixture(scope="module")
def adult() -> Any:
    frame = load_adult().frame.iloc[:3000].reset_index(drop=True)
    return pa.Table.from_pandas(frame.assign(name=np.arange(3000)), preserve_index=False)


def written(table: Any, folder: Path, n_parts: int = 2) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(table.num_rows), n_parts)):
        if len(rows):
            pq.write_table(table.slice(int(rows[0]), len(rows)), folder / f"{number}.parquet", row_group_size=700)
    return folder


def assert_same_files(one: Path, other: Path) -> None:
    assert json.loads((one / "manifest.json").read_text()) == json.loads((other / "manifest.json").read_text())
    names = {path.name for path in one.iterdir()}
    assert names == {path.name for path in other.iterdir()}
    for name in names - {"manifest.json"}:
        mine, theirs = (pq.read_table(folder / name) for folder in (one, other))
        assert mine.schema == theirs.schema
        assert mine.equals(theirs)


SETTINGS: dict[str, dict[str, Any]] = {
    "one column": {"l": 3, "sensitive": "occupation", "identifiers": ["name"]},
    "several columns": {
        "l": 2,
        "sensitive": ["occupation", "hours-per-week"],
        "suppression_limit": 0.5,
        "keep": ["name"],
    },
    "one table": {
        "l": 2,
        "sensitive": ["occupation", "hours-per-week", "education"],
        "joint": True,
        "suppression_limit": 0.5,
        "keep": ["name"],
    },
    "two tables": {
        "l": {"workclass": 2, "marital-status": 3, "education": 3, "occupation": 4},
        "sensitive": ["occupation", "workclass", "education", "marital-status"],
        "joint": [["marital-status", "workclass"], ["education", "occupation"]],
        "suppression_limit": 1.0,
        "keep": ["name"],
    },
    "impossible": {"l": 3, "sensitive": ["sex", "race"], "suppression_limit": 1.0, "keep": ["name"]},
    "suppressed": {"l": 2, "sensitive": "sex", "suppression_limit": 1.0, "keep": ["name"]},
    "at random": {"l": 4, "sensitive": "education", "assignment": "random", "group": "number", "keep": ["name"]},
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_files_are_divided_as_the_table_is(adult, tmp_path: Path, name: str):
    local, outside = (Anatomizer(random_state=3, **SETTINGS[name]) for _ in range(2))
    source = written(adult, tmp_path / "in")
    try:
        expected = local.fit_transform(pq.read_table(source))  # in memory
    except GuaranteeError as error:
        with pytest.raises(GuaranteeError, match=str(error)[:40]):
            anatomize(outside, source, tmp_path / "out")
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
        return
    made = anatomize(outside, source, tmp_path / "out")
    expected.save(tmp_path / "expected")
    assert_same_files(tmp_path / "out", tmp_path / "expected")
    assert (made.n_records, made.n_groups, made.n_suppressed) == (
        expected.n_records, expected.n_groups, expected.n_suppressed
    )  # fmt: skip
    assert outside.group_sizes_.tolist() == local.group_sizes_.tolist()
    wanted = SETTINGS[name]["l"]
    assert all(
        reached >= (wanted[column] if isinstance(wanted, dict) else wanted)
        for column, reached in made.diversity.items()
    )
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out", "expected"}
    assert AnatomizedTable.load(tmp_path / "out").n_groups == made.n_groups


@in_examples(30)
@given(raw=tables(min_records=6, min_columns=2, max_columns=4), seed=st.integers(0, 99))
def test_random_files_are_divided_as_the_table_is(tmp_path_factory, raw, seed):
    table = raw.to("pyarrow")
    folder = tmp_path_factory.mktemp("random")
    names = [*raw.columns]
    secret = names[: max(1, len(names) - 1)][: 1 + seed % 3]
    settings = {
        "l": 2, "sensitive": secret, "joint": seed % 2 == 0, "suppression_limit": 1.0, "random_state": seed,
        "keep": [name for name in names if name not in secret],
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        in_pieces(patched, 4)
        source = written(table, folder / "in")
        try:
            expected = Anatomizer(**settings).fit_transform(table)
        except GuaranteeError:
            with pytest.raises(GuaranteeError):
                anatomize(Anatomizer(**settings), source, folder / "out")
            return
        anatomize(Anatomizer(**settings), source, folder / "out")
    expected.save(folder / "expected")
    assert_same_files(folder / "out", folder / "expected")


def test_sensitive_columns_come_in_the_order_of_the_table(adult, tmp_path: Path):
    named = ["hours-per-week", "occupation"]
    anatomizer = Anatomizer(
        2, sensitive=named, joint=True, identifiers=["name"], suppression_limit=0.5, random_state=0
    )  # fmt: skip
    in_memory = anatomizer.fit_transform(adult).sensitive.column_names
    anatomize(anatomizer, written(adult, tmp_path / "in"), tmp_path / "out")
    assert in_memory[:-1] == [name for name in adult.column_names if name in named]
    assert pq.read_schema(tmp_path / "out" / "sensitive.parquet").names == in_memory


def test_a_secret_with_many_values_is_divided_all_the_same(adult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(value_codes, "MOST_LISTED", 5)
    source = written(adult, tmp_path / "in")
    made = anatomize(Anatomizer(3, sensitive="occupation", identifiers=["name"]), source, tmp_path / "out")
    assert made.diversity["occupation"] >= 3
    assert AnatomizedTable.load(tmp_path / "out").n_records == 3000


def test_categories_leave_as_text_and_identifiers_not_at_all(tmp_path: Path):
    table = pa.table(
        {
            "name": ["Ada", "Bob", "Cleo", "Dan"],
            "town": pa.array(["Rome", "Bari", "Rome", "Oslo"]).dictionary_encode(),
            "view": pa.array(["a", "b", None, "d"], pa.string_view()),
            "illness": ["flu", "cold", "flu", "gout"],
        }
    ).replace_schema_metadata({"note": "Ada is in it"})
    anatomizer = Anatomizer(2, sensitive="illness", identifiers=["name"], random_state=0)
    anatomize(anatomizer, written(table, tmp_path / "in"), tmp_path / "out")
    anatomizer.fit_transform(table).save(tmp_path / "expected")
    assert_same_files(tmp_path / "out", tmp_path / "expected")
    assert not any(b"Ada" in path.read_bytes() for path in (tmp_path / "out").iterdir())


def test_secrets_in_views_of_text_are_recounted(tmp_path: Path):
    secrets = pa.array(["flu", "cold", "flu", "gout"] * 5, pa.string_view())
    source = written(pa.table({"age": np.arange(20), "illness": secrets}), tmp_path / "in")
    assert anatomize(Anatomizer(2, sensitive="illness"), source, tmp_path / "out").diversity["illness"] >= 2


# -- columns that name people -----------------------------------------------------------------------------------


def refusal_of(anatomizer: Anatomizer, call: Any, *given: Any) -> str:
    with pytest.raises(InputError, match="would be shared with its exact values") as refused:
        call(anatomizer, *given)
    return str(refused.value)


@pytest.mark.parametrize("n_parts", [1, 50])
@pytest.mark.parametrize("column", ["code", "email", "household_id"])
def test_columns_that_name_people_are_refused_as_in_memory(adult, tmp_path: Path, column: str, n_parts: int):
    random = np.random.default_rng(0)
    values = {
        "code": np.arange(3000) + 7,
        "email": [f"p{number}@mail.org" for number in random.integers(0, 900, 3000)],
        "household_id": random.integers(0, 1500, 3000),
    }
    table = adult.select(["age", "occupation"]).append_column(column, pa.array(values[column]))
    source = written(table, tmp_path / "in", n_parts)
    anatomizer = Anatomizer(2, sensitive="occupation")
    expected = refusal_of(anatomizer, Anatomizer.fit_transform, pq.read_table(source))
    assert refusal_of(anatomizer, anatomize, source, tmp_path / "out") == expected
    assert_nothing_published(tmp_path)
    anatomize(anatomizer.set_params(keep=[column]), source, tmp_path / "out")


def test_a_column_is_not_refused_because_its_first_records_are_few(adult, tmp_path: Path):
    brands = [f"brand {number}" for number in np.random.default_rng(0).integers(0, 200, 3000)]
    table = adult.select(["age", "occupation"]).append_column("brand", pa.array(brands))
    first, rest = table.slice(0, 60), table.slice(60)
    (tmp_path / "in").mkdir()
    pq.write_table(first, tmp_path / "in" / "0.parquet")
    pq.write_table(rest, tmp_path / "in" / "1.parquet")
    refusal_of(Anatomizer(2, sensitive="occupation"), Anatomizer.fit_transform, first)
    anatomize(Anatomizer(2, sensitive="occupation"), tmp_path / "in", tmp_path / "out")


# -- what goes wrong --------------------------------------------------------------------------------------------


def assert_nothing_published(folder: Path) -> None:
    assert [path.name for path in folder.iterdir()] == ["in"]


def test_a_truncated_file_publishes_nothing(adult, tmp_path: Path):
    source = written(adult, tmp_path / "in")
    broken = source / "1.parquet"
    broken.write_bytes(broken.read_bytes()[:-2_000])
    with pytest.raises(InputError, match=r"1.parquet.*truncated"):
        anatomize(Anatomizer(2, sensitive="occupation", keep=["name"]), source, tmp_path / "out")
    assert_nothing_published(tmp_path)


def test_a_file_damaged_inside_publishes_nothing(adult, tmp_path: Path):
    source = written(adult, tmp_path / "in")
    damaged = bytearray((source / "1.parquet").read_bytes())
    damaged[100:9_000] = bytes(8_900)
    (source / "1.parquet").write_bytes(damaged)
    with pytest.raises(InputError, match=r"1\.parquet"):
        anatomize(Anatomizer(2, sensitive="occupation", keep=["name"]), source, tmp_path / "out")
    assert_nothing_published(tmp_path)


def test_a_schema_that_changes_publishes_nothing(adult, tmp_path: Path):
    source = written(adult, tmp_path / "in")
    pq.write_table(adult.drop_columns(["sex"]), source / "9.parquet")
    with pytest.raises(InputError, match="other columns"):
        anatomize(Anatomizer(2, sensitive="occupation", keep=["name"]), source, tmp_path / "out")
    assert_nothing_published(tmp_path)


@pytest.mark.parametrize("where", ["stretches", "release"])
def test_a_full_disk_publishes_nothing(adult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str):
    source = written(adult, tmp_path / "in")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    if where == "release":
        monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    else:
        monkeypatch.setattr(shuffling, "_scatter", full)
    with pytest.raises(InputError, match="No space left"):
        anatomize(Anatomizer(2, sensitive="occupation", keep=["name"]), source, tmp_path / "out")
    assert_nothing_published(tmp_path)


def test_tables_that_fail_their_recount_are_not_published(adult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = written(adult, tmp_path / "in")
    plain = DiverseGroups.group

    def spoiled(self: Any, *given: Any) -> Any:
        group = plain(self, *given)
        if self.ls == (4,):
            return np.where(group == 0, group.max() + 1, group)  # a number that no group has
        return np.sort(group, axis=0)  # one for many

    monkeypatch.setattr(DiverseGroups, "group", spoiled)
    with pytest.raises(GuaranteeError, match="l = 3 does not hold"):
        anatomize(Anatomizer(3, sensitive="occupation", keep=["name"]), source, tmp_path / "out")
    assert_nothing_published(tmp_path)
    with pytest.raises(GuaranteeError, match="same groups"):
        anatomize(Anatomizer(4, sensitive="occupation", keep=["name"]), source, tmp_path / "out")
    assert_nothing_published(tmp_path)


@pytest.mark.thorough
def test_a_killed_process_publishes_nothing_and_leaves_nothing_others_can_read(adult, tmp_path: Path):
    source = written(adult, tmp_path / "in")
    program = textwrap.dedent(f"""
        import os, signal
        from sfumato import Anatomizer
        from sfumato.parquet import anatomize
        def stop(what, done, total):
            if what == "writing sensitive":
                os.kill(os.getpid(), signal.SIGKILL)
        anatomizer = Anatomizer(2, sensitive="occupation", keep=["name"])
        anatomize(anatomizer, {str(source)!r}, {str(tmp_path / "out")!r}, progress=stop)
    """)
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    left = [path for path in tmp_path.iterdir() if path.name != "in"]
    assert all(path.name.startswith(".") and path.stat().st_mode & 0o077 == 0 for path in left)


def test_a_folder_that_exists_is_left_alone(adult, tmp_path: Path):
    source = written(adult, tmp_path / "in")
    (tmp_path / "out").mkdir()
    with pytest.raises(ParameterError, match="exists already"):
        anatomize(Anatomizer(2, sensitive="occupation", keep=["name"]), source, tmp_path / "out")
    with pytest.raises(ParameterError, match="does not exist"):
        anatomize(Anatomizer(2, sensitive="occupation", keep=["name"]), source, tmp_path / "nowhere" / "out")
    assert list((tmp_path / "out").iterdir()) == []
