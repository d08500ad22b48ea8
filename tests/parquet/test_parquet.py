# SPDX-License-Identifier: Apache-2.0
"""Piece by piece gives what the whole table gives: partition, release and recount, whatever the size of the pieces."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import (
    FullDomainAnonymizer,
    HilbertAnonymizer,
    KAnonymity,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    RPlusTreeAnonymizer,
    TCloseness,
    WorkloadAwareAnonymizer,
)
from sfumato.anonymize.partitioners import TreePartitioner
from sfumato.backends.blocks import backend
from sfumato.backends.parquet import reader as files
from sfumato.datasets import load_adult, make_census
from sfumato.errors import GuaranteeError, InputError, ParameterError
from sfumato.parquet import fit_transform


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "RECORDS_AT_ONCE", 700)


@pytest.fixture(scope="module")
def census() -> pd.DataFrame:
    bunch = make_census(4_000, random_state=3, return_probability=True)
    random = np.random.default_rng(0)
    return bunch.frame.assign(
        score=np.asarray(bunch.probability).round(5),
        illness=random.choice(list("abcdef"), 4_000),
        person=random.integers(0, 1_500, 4_000),
        noise=random.normal(size=4_000),
    )


def write_parts(table: pd.DataFrame, folder: Path, n_parts: int = 3) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), n_parts)):
        part = pa.Table.from_pandas(table.iloc[rows], preserve_index=False)
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=450)
    return folder


QI = ["age", "sex", "birth_country", "occupation", "hours_per_week", "monthly_rent"]
CASES: dict[str, tuple[Any, str | None]] = {
    "guided": (ModelGuidedAnonymizer(20), "score"),
    "guided by labels": (ModelGuidedAnonymizer(20, representative="member"), "high_income"),
    "ranges": (ModelGuidedAnonymizer(30, representative="range"), "score"),
    "bounds": (ModelGuidedAnonymizer(30, representative="bounds"), "score"),
    "sample": (ModelGuidedAnonymizer(30, representative="sample", random_state=5), "score"),
    "limits": (ModelGuidedAnonymizer(25, limits={"monthly_rent": 100, "age": 5}), "score"),
    "diverse": (ModelGuidedAnonymizer(20, criteria=[LDiversity(3, "illness")]), "score"),
    "close": (ModelGuidedAnonymizer(40, criteria=[TCloseness(0.3, "illness")]), "score"),
    "persons": (ModelGuidedAnonymizer(20, criteria=[KAnonymity(15, unit="person")]), "score"),
    "mondrian": (MondrianAnonymizer(15), None),
    "workload": (WorkloadAwareAnonymizer(20), "high_income"),
}


def in_memory(anonymizer: Any, table: pd.DataFrame, guide: str | None) -> pa.Table:
    """Anonymize the whole table; the column that guides does not leave."""
    y = None if guide is None else table[guide].to_numpy()
    anonymizer.set_params(identifiers=None if guide is None else [guide])
    return anonymizer.fit_transform(pa.Table.from_pandas(table, preserve_index=False), y)


# Pieces of 900 are also those of tests/backends/test_equality.py, for every place a table lives in.
@pytest.mark.parametrize("most_held", [10_000, pytest.param(900, marks=pytest.mark.thorough), 60])
@pytest.mark.parametrize("name", list(CASES))
def test_files_give_what_the_table_gives(census, tmp_path: Path, name: str, most_held: int):
    anonymizer, guide = CASES[name]
    keep = ["noise"] if guide == "score" else ["noise", "score"]
    settings = anonymizer.get_params(deep=False) | {"quasi_identifiers": QI, "keep": keep, "n_jobs": 2}
    local, outside = type(anonymizer)(**settings), type(anonymizer)(**settings)
    table = in_memory(local, census, guide)
    source = write_parts(census, tmp_path / "in")
    release = fit_transform(outside, source, tmp_path / "out.parquet", guide_column=guide, most_held=most_held)
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.column_names == table.column_names
    assert np.array_equal(np.sort(release.order), np.arange(len(census)))
    table = table.take(release.order)
    for column in table.column_names:
        one, other = (t.column(column).to_pandas().astype(object) for t in (written, table))
        pd.testing.assert_series_equal(one, other, obj=column)
    assert outside.partition_.to_dict() == local.partition_.to_dict()
    assert release.smallest_group == local.group_sizes_.min()
    assert outside.information_loss_ == pytest.approx(local.information_loss_)
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out.parquet"}


def test_adult_with_a_model_applied_piece_by_piece(tmp_path: Path):
    from sklearn.dummy import DummyClassifier

    table = load_adult().frame.iloc[:3_000].reset_index(drop=True)

    class Elderly(DummyClassifier):
        def predict_proba(self, X: Any) -> np.ndarray:
            share = np.asarray(X.column("age")) / 100
            return np.column_stack([1 - share, share])

    anonymizer = ModelGuidedAnonymizer(10, identifiers=["fnlwgt"], keep=["income"])
    source = write_parts(table, tmp_path / "in")
    fit_transform(anonymizer, source, tmp_path / "out.parquet", model=Elderly(), most_held=500)
    share = table["age"].to_numpy() / 100
    local = ModelGuidedAnonymizer(10, identifiers=["fnlwgt"], keep=["income"])
    local.fit(pa.Table.from_pandas(table, preserve_index=False), np.column_stack([1 - share, share]))
    assert anonymizer.partition_.to_dict() == local.partition_.to_dict()
    assert anonymizer.transform(table.iloc[:50]).shape == (50, 14)


# -- what goes wrong --------------------------------------------------------------------------------------------


def test_a_truncated_file_is_refused_and_nothing_is_published(census, tmp_path: Path):
    source = write_parts(census, tmp_path / "in")
    broken = source / "part-1.parquet"
    broken.write_bytes(broken.read_bytes()[:-5_000])
    with pytest.raises(InputError, match=r"part-1.*truncated"):
        fit_transform(ModelGuidedAnonymizer(10), source, tmp_path / "out.parquet", guide_column="score")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


def test_a_file_damaged_inside_is_refused_and_nothing_is_published(census, tmp_path: Path):
    source = write_parts(census, tmp_path / "in")
    damaged = bytearray((source / "part-1.parquet").read_bytes())
    damaged[100:3_000] = bytes(2_900)
    (source / "part-1.parquet").write_bytes(damaged)
    with pytest.raises(InputError, match="part-1"):
        fit_transform(ModelGuidedAnonymizer(10, keep=["noise"]), source, tmp_path / "out.parquet", guide_column="score")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


def test_a_schema_that_changes_between_files_is_refused_by_column(census, tmp_path: Path):
    source = write_parts(census, tmp_path / "in")
    other = pa.Table.from_pandas(census.assign(age=census.age.astype("float64")), preserve_index=False)
    pq.write_table(other, source / "part-9.parquet")
    with pytest.raises(InputError, match=r"'age' has the type double in 'part-9.parquet'"):
        fit_transform(ModelGuidedAnonymizer(10), source, tmp_path / "out.parquet", guide_column="score")
    pq.write_table(other.drop_columns(["sex"]), source / "part-9.parquet")
    with pytest.raises(InputError, match="other columns"):
        fit_transform(ModelGuidedAnonymizer(10), source, tmp_path / "out.parquet", guide_column="score")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


def test_a_column_that_points_at_persons_is_refused_although_its_first_piece_does_not(census, tmp_path: Path):
    table = census.assign(code=np.where(np.arange(4_000) < 1_500, 0, np.arange(4_000)))
    source = write_parts(table, tmp_path / "in")
    anonymizer = ModelGuidedAnonymizer(10, quasi_identifiers=QI, keep=["noise"])
    with pytest.raises(InputError, match="'code' would be released unchanged"):
        fit_transform(anonymizer, source, tmp_path / "out.parquet", guide_column="score")


def test_a_full_disk_is_said_and_nothing_is_published(census, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = write_parts(census, tmp_path / "in")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    anonymizer = ModelGuidedAnonymizer(10, quasi_identifiers=QI, keep=["noise"])
    with pytest.raises(InputError, match="No space left"):
        fit_transform(anonymizer, source, tmp_path / "out.parquet", guide_column="score")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


def test_a_release_that_fails_its_recount_is_not_published(census, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = write_parts(census, tmp_path / "in")
    plain = backend._Groups.add

    def spoiled(self: Any, branch: Any) -> None:
        plain(self, branch)
        self.group[np.flatnonzero(self.group == 0)[1:]] = 1

    monkeypatch.setattr(backend._Groups, "add", spoiled)
    anonymizer = ModelGuidedAnonymizer(20, quasi_identifiers=QI, keep=["noise"])
    with pytest.raises(GuaranteeError, match="Nothing is published"):
        fit_transform(anonymizer, source, tmp_path / "out.parquet", guide_column="score")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]
    assert not hasattr(anonymizer, "partition_")


@pytest.mark.thorough
def test_a_killed_process_publishes_nothing(census, tmp_path: Path):
    source = write_parts(census, tmp_path / "in")
    program = textwrap.dedent(f"""
        import os, signal
        from sfumato import ModelGuidedAnonymizer
        from sfumato.parquet import fit_transform
        def stop(what, done, total):
            if what == "recounting":
                os.kill(os.getpid(), signal.SIGKILL)
        fit_transform(ModelGuidedAnonymizer(20, quasi_identifiers={QI!r}, keep=["noise"]), {str(source)!r},
                      {str(tmp_path / "out.parquet")!r}, guide_column="score", progress=stop)
    """)
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ, timeout=600, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "out.parquet").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]  # what has no name is gone with the process


class OwnPartitioner(TreePartitioner):
    def grow(self, *records, **settings):
        return super().grow(*records, **settings)


class CutsInItsOwnWay(ModelGuidedAnonymizer):
    def _partitioner(self):
        return OwnPartitioner()


@pytest.mark.parametrize(
    ("anonymizer", "expected_words"),
    [
        (HilbertAnonymizer(10), "grows a tree"),
        (FullDomainAnonymizer(10), "grows a tree"),
        (RPlusTreeAnonymizer(10), "RPlusTreeAnonymizer with Parquet files: expected a method that grows a tree"),
        (CutsInItsOwnWay(10), "CutsInItsOwnWay with Parquet files: expected a method that grows a tree"),
        (MondrianAnonymizer(10, rule="information_loss"), "median"),
        (MondrianAnonymizer(10, strict=False), "median"),
        (MondrianAnonymizer(10, hierarchies={"sex": {"person": ["female", "male"]}}), "hierarchies= with"),
        (ModelGuidedAnonymizer(10), "guide_column"),
    ],
)
def test_what_cannot_be_done_piece_by_piece_is_said(census, tmp_path: Path, anonymizer: Any, expected_words: str):
    source = write_parts(census, tmp_path / "in")
    anonymizer.set_params(quasi_identifiers=QI, keep=["noise", "score"])
    guide = None if expected_words == "guide_column" else "high_income"
    with pytest.raises(ParameterError, match=expected_words):
        fit_transform(anonymizer, source, tmp_path / "out.parquet", guide_column=guide)


@pytest.mark.parametrize("representative", ["median", "bounds", "range"])
def test_a_release_lists_no_category_that_no_record_of_it_has_and_keeps_their_order(
    census, tmp_path: Path, representative: str
):
    levels = ["low", "middle", "high", "highest"]
    random = np.random.default_rng(1)
    table = census[["age", "sex"]].assign(
        town=pd.Categorical(np.where(np.arange(4_000) == 1234, "Rareville", random.choice(["Ulm", "Graz"], 4_000))),
        level=pd.Categorical(random.choice(levels[:3], 4_000), levels, ordered=True),
    )
    # The first piece lacks what later ones have: order and types must not depend on what a piece has.
    table = pd.concat([table[table.level == "high"], table[table.level != "high"]], ignore_index=True)
    anonymizer = MondrianAnonymizer(40, representative=representative)
    source = write_parts(table, tmp_path / "in")
    made = fit_transform(anonymizer, source, tmp_path / "out.parquet")
    released = pq.read_table(tmp_path / "out.parquet")
    whole = MondrianAnonymizer(40, representative=representative).fit_transform(pq.read_table(source))
    whole = whole.take(made.order)
    assert released.column_names == whole.column_names
    for name in whole.column_names:
        assert released[name].type == whole[name].type
        assert released[name].to_pylist() == whole[name].to_pylist()
    if representative == "median":  # in ranges every value of a group has its place
        assert b"Rareville" not in (tmp_path / "out.parquet").read_bytes()
    for name in released.column_names:
        if pa.types.is_dictionary(released[name].type):
            listed = released[name].unify_dictionaries().chunk(0).dictionary.to_pylist()
            assert set(listed) == set(released[name].unique().to_pylist())
            assert "level" not in name or listed == [level for level in levels if level in listed]


def test_a_sensitive_amount_leaves_as_it_does_from_memory(census, tmp_path: Path):
    table = census[["age", "sex", "noise"]]
    anonymizer = MondrianAnonymizer(20, quasi_identifiers=["age", "sex"], criteria=[LDiversity(2, "noise")])
    release = fit_transform(anonymizer, write_parts(table, tmp_path / "in"), tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["noise"].to_pylist() == table["noise"].iloc[release.order].tolist()


def test_a_release_in_the_order_of_the_files_is_one_that_was_asked_for(census, tmp_path: Path):
    table = census[["age", "sex", "noise"]]
    anonymizer = MondrianAnonymizer(20, quasi_identifiers=["age", "sex"], keep=["noise"])
    source = write_parts(table, tmp_path / "in")
    release = fit_transform(anonymizer, source, tmp_path / "out.parquet", shuffle=False)
    assert release.order is None
    assert pq.read_table(tmp_path / "out.parquet")["noise"].to_pylist() == table["noise"].tolist()
