# SPDX-License-Identifier: Apache-2.0
"""Commands that work through a Parquet file piece by piece write and say what they do with the table in memory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import MondrianAnonymizer
from sfumato.auditing import open_tables
from sfumato.backends.parquet.reader import ParquetFiles
from sfumato.files.verified_output import Recount

from .conftest import call


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """People with everything a table of people has."""
    random = np.random.default_rng(0)
    n = 600
    age = random.integers(18, 90, n)
    hours = random.integers(10, 60, n) + random.integers(0, 2, n) * 0.5
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    table = pa.table(
        {
            "name": [f"Person {place}" for place in range(n)],
            "age": pa.array(age, mask=np.arange(n) % 17 == 0),
            "hours": hours,
            "job": pa.array(random.choice(["nurse", "teacher", "smith"], n)).dictionary_encode(),
            "illness": random.choice(["flu", "cold", "gout", "none"], n),
            "wage": np.where(age + hours + random.normal(0, 8, n) > 90, "high", "low"),
        }
    )
    pq.write_table(table, path, row_group_size=200)
    return path


def said(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    del document["seconds"]
    return document


def both(*arguments: object) -> list[dict[str, Any]]:
    return [said(call(*arguments, "--json", "--quiet", where)) for where in ("--in-memory", "--out-of-core")]


def test_measure_says_the_same(file):
    one, other = both("measure", file, "--quasi-identifiers", "age,job", "--sensitive", "illness")
    assert one["k"] == other["k"]
    assert one["groups"] == other["groups"]
    assert one["ranking"] == other["ranking"]
    assert [part["value"] for part in one["criteria"]] == pytest.approx([part["value"] for part in other["criteria"]])


def test_a_population_in_parquet_is_worked_through_as_well(file, tmp_path: Path):
    people = pq.read_table(file)
    pq.write_table(pa.concat_tables([people, people]), tmp_path / "register.parquet")
    one, other = both("measure", file, "--quasi-identifiers", "age,job", "--population", tmp_path / "register.parquet")
    assert one["journalist"] == other["journalist"]


def test_a_verdict_of_measure_is_the_same(file):
    asked = ("measure", file, "--quasi-identifiers", "age,job", "--min-k", 5, "--out-of-core")
    assert call(*asked).exit_code == 1


def test_anatomize_writes_the_same_files(file, tmp_path: Path):
    for where, folder in (("--in-memory", "one"), ("--out-of-core", "other")):
        done = call(
            "anatomize", file, "--sensitive", "illness", "--identifiers", "name", "--l", 3, "--seed", 5, "--no-attack",
            "-o", tmp_path / folder, where,
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    for name in ("identifying.parquet", "sensitive.parquet"):
        one, other = (pq.read_table(tmp_path / folder / name) for folder in ("one", "other"))
        assert one.schema == other.schema
        assert one.to_pylist() == other.to_pylist()
    manifests = [json.loads((tmp_path / folder / "manifest.json").read_text()) for folder in ("one", "other")]
    assert manifests[0] == manifests[1]
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [
        "identifying.parquet", "manifest.json", "sensitive.parquet"
    ]  # fmt: skip


def test_working_files_do_not_lie_in_the_folder_that_is_shared(file, tmp_path: Path, monkeypatch):
    from sfumato.backends.blocks import anatomy

    seen = []
    plain = anatomy.write_in_order

    def watched(*given: Any) -> None:
        seen.append(given[-1].parent)
        plain(*given)

    monkeypatch.setattr(anatomy, "write_in_order", watched)
    done = call("anatomize", file, "--sensitive", "illness", "-o", tmp_path / "out", "--out-of-core", "--no-attack")
    assert done.exit_code == 0, done.output
    assert seen == [tmp_path, tmp_path]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_anatomize_says_that_attacks_need_memory_and_leaves_nothing_where_it_fails(file, tmp_path: Path):
    asked = ("anatomize", file, "--sensitive", "illness", "-o", tmp_path / "out", "--out-of-core")
    done = call(*asked, "--l", 9)
    assert done.exit_code == 1
    assert list(tmp_path.iterdir()) == []
    done = call(*asked)
    assert done.exit_code == 0
    assert "none was run" in done.stderr


@pytest.fixture(scope="module")
def partition(file, tmp_path_factory) -> Path:
    from sfumato import MondrianAnonymizer

    path = tmp_path_factory.mktemp("partition") / "partition.json"
    anonymizer = MondrianAnonymizer(8, quasi_identifiers=["age", "hours", "job"], identifiers=["name"])
    anonymizer.fit(pq.read_table(file))
    replace(anonymizer.partition_, criteria=({"name": "k-anonymity", "k": 8},)).save(path)
    return path


@pytest.fixture(scope="module")
def generalization(file, tmp_path_factory) -> Path:
    from sfumato import UniformMinimizer

    path = tmp_path_factory.mktemp("generalization") / "generalization.json"
    table = pq.read_table(file)
    coarse = UniformMinimizer(3).fit(table.select(["age", "hours", "job"]), table["wage"].to_pylist()).generalization_
    path.write_text(coarse.to_json())
    return path


@pytest.mark.parametrize("values", ["labels", "codes", "representatives", None])
def test_apply_writes_the_same_file(file, partition, generalization, tmp_path: Path, values: str | None):
    document = partition if values is None else generalization
    more = ["--identifiers", "name"] if values is None else ["--identifiers", "name", "--values", values]
    results = []
    for where, name in (("--in-memory", "one.parquet"), ("--out-of-core", "other.parquet")):
        results.append(said(call("apply", document, file, "-o", tmp_path / name, *more, "--json", "-q", where)))
        del results[-1]["output"]
    assert results[0] == results[1]
    one, other = (pq.read_table(tmp_path / name) for name in ("one.parquet", "other.parquet"))
    assert one.schema.equals(other.schema, check_metadata=True)
    assert one.to_pylist() == other.to_pylist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.parquet", "other.parquet"]


def test_apply_refuses_a_column_that_points_at_persons(file, partition, generalization, tmp_path: Path):
    for document in (partition, generalization):
        asked = (
            "apply",
            document,
            file,
            "-o",
            tmp_path / "out.parquet",
            "--keep",
            "illness",
            "--out-of-core",
            "--force",
        )
        done = call(*asked)
        expected = 0 if document == partition else 2  # the partition itself drops the name
        assert done.exit_code == expected
        if expected:
            assert "'name' would be released unchanged" in " ".join(done.stderr.split())


def test_apply_releases_in_memory_only(file, partition, tmp_path: Path):
    asked = ("apply", partition, file, "--release", "--k", 8, "--out-of-core", "-o")
    done = call(*asked, tmp_path / "out.parquet")
    assert done.exit_code == 2
    assert "--release" in done.stderr
    assert call("apply", partition, file, "--out-of-core", "-o", tmp_path / "out.csv").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_compared_with_what_was_kept_of_an_earlier_one(file, partition, tmp_path: Path):
    table = pq.read_table(file)
    kept = tmp_path / "kept.json"
    asked = ("apply", partition, "--release", "--k", 8, "--persons", "name", "--json", "-q")
    first = call(*asked[:2], file, *asked[2:], "--remember", kept, "-o", tmp_path / "first.parquet")
    assert said(first)["together"] == []
    assert kept.stat().st_mode & 0o077 == 0
    assert b"Person" not in kept.read_bytes()
    someone = table.slice(0, 1).set_column(0, "name", pa.array(["Somebody new"]))
    pq.write_table(pa.concat_tables([table, someone]), tmp_path / "later.parquet")
    again = call(
        *asked[:2], tmp_path / "later.parquet", *asked[2:], "--earlier", kept, "-o", tmp_path / "second.parquet"
    )
    [together] = said(again)["together"]
    assert (together["n_people"], together["n_new"], together["n_new_below"], together["is_safe"]) == (600, 1, 1, False)
    assert "who came did so with fewer than 8" in " ".join(again.stderr.split())
    shown = call(
        "apply", partition, tmp_path / "later.parquet", "--release", "--k", 8, "--persons", "name", "--earlier", kept,
        "-o", tmp_path / "third.parquet",
    )  # fmt: skip
    assert "people also in earlier release 1" in shown.stdout


def test_what_is_kept_of_releases_goes_with_releases(file, partition, generalization, tmp_path: Path):
    for document in (partition, generalization):
        done = call("apply", document, file, "--remember", tmp_path / "kept.json", "-o", tmp_path / "out.parquet")
        assert done.exit_code == 2
        assert "--remember" in done.stderr
    asked = ("apply", partition, file, "--release", "--k", 8, "-o", tmp_path / "out.parquet")
    assert call(*asked, "--persons", "nobody").exit_code == 2
    assert call(*asked, "--earlier", tmp_path / "nothing.json").exit_code == 2
    assert list(tmp_path.iterdir()) == []


ASKED: dict[str, list[Any]] = {
    "probabilities": ["--target", "wage"],
    "labels": ["--target", "wage", "--guide", "labels"],
    "a column": ["--guide", "column:hours", "--test-fraction", 0],
    "persons": ["--target", "wage", "--unit", "person", "--representative", "median"],
    "predictions, ranges, limits": [
        "--target", "hours", "--guide", "predictions", "--representative", "range", "--limits", "age=5"
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", list(ASKED))
def test_anonymize_writes_the_same_file(file, tmp_path: Path, name: str):
    table = pq.read_table(file)
    if name == "persons":
        table = table.append_column("person", pa.array(np.arange(600) // 2))
    pq.write_table(table, tmp_path / "people.parquet")
    results = []
    for where, place in (("--in-memory", "one"), ("--out-of-core", "other")):
        done = call(
            "anonymize", tmp_path / "people.parquet", "--identifiers", "name", "--k", 8, "--model", "decision-tree",
            *ASKED[name], "-o", tmp_path / f"{place}.parquet", "--save", tmp_path / f"{place}.json", "--json", "-q",
            "--keep-order", where,
        )  # fmt: skip
        results.append(said(done))
        del results[-1]["output"], results[-1]["partition"]
    assert results[0]["holds"]
    assert results[0]["release"].pop("information_loss") == pytest.approx(results[1]["release"].pop("information_loss"))
    assert results[0] == results[1]
    one, other = (pq.read_table(tmp_path / f"{place}.parquet") for place in ("one", "other"))
    assert one.column_names == other.column_names
    assert one.to_pylist() == other.to_pylist()
    partitions = [json.loads((tmp_path / f"{place}.json").read_text()) for place in ("one", "other")]
    assert partitions[0] == partitions[1]
    assert len(list(tmp_path.iterdir())) == 6  # the fingerprints of the one in memory, too


def test_persons_may_be_more_than_are_listed_elsewhere(file, tmp_path: Path, monkeypatch):
    from sfumato.backends.blocks import value_codes

    monkeypatch.setattr(value_codes, "MOST_LISTED", 10)
    done = call(
        "anonymize", file, "--target", "wage", "--unit", "name", "--model", "decision-tree", "--k", 8, "--out-of-core",
        "-o", tmp_path / "out.parquet",
    )  # fmt: skip
    assert done.exit_code == 0, done.output


def test_a_release_that_fails_the_last_count_is_not_written_piece_by_piece_either(file, tmp_path: Path, monkeypatch):
    from sfumato.auditing import anonymize_files

    few = Recount(sizes=np.array([3, 597]), n_records=600, n_records_in_small_groups=3, k=8)
    monkeypatch.setattr(anonymize_files, "_counted", lambda *given: few)
    done = call(
        "anonymize", file, "--target", "wage", "--identifiers", "name", "--model", "decision-tree", "--k", 8,
        "--out-of-core", "-o", tmp_path / "out.parquet", "--save", tmp_path / "partition.json",
    )  # fmt: skip
    assert done.exit_code == 1
    assert "k-anonymity does not hold (k = 8)" in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", ["--in-memory", "--out-of-core"])
def test_categories_of_nobody_leave_with_no_command(partition, generalization, tmp_path: Path, file, where: str):
    table = pq.read_table(file)
    ward = pa.DictionaryArray.from_arrays(pa.array(np.arange(600) % 2, pa.int8()), pa.array(["north", "south", "kuru"]))
    source, out = tmp_path / "people.parquet", tmp_path / "out.parquet"
    pq.write_table(table.append_column("ward", ward), source)
    asked = [
        ["anonymize", source, "--target", "wage", "--identifiers", "name", "--model", "decision-tree"],
        ["apply", partition, source],
        ["apply", generalization, source, "--identifiers", "name"],
    ]
    asked[0] += ["--quasi-identifiers", "age,hours,job", "--keep-order"]
    for given in asked:
        done = call(*given, "-o", out, "--force", where)
        assert done.exit_code == 0, done.output
        assert pq.read_table(out)["ward"].to_pylist() == ward.to_pylist()
        assert b"kuru" not in out.read_bytes()


def test_an_order_of_categories_is_the_same_in_every_piece(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(ParquetFiles.batches, "__kwdefaults__", {"size": 20})
    codes = np.array([0, 2] * 10 + [0, 1, 2] * 6 + [1, 1], np.int8)  # the first piece has nobody in the middle
    rank = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(["low", "middle", "high", "king"]), ordered=True)
    table = pa.table({"age": np.arange(40), "rank": rank})
    pq.write_table(table, tmp_path / "people.parquet")
    MondrianAnonymizer(2, representative="median").fit(table).partition_.save(tmp_path / "partition.json")
    out = tmp_path / "out.parquet"
    done = call("apply", tmp_path / "partition.json", tmp_path / "people.parquet", "--out-of-core", "-o", out)
    assert done.exit_code == 0, done.output
    listed = [chunk.dictionary.to_pylist() for chunk in pq.read_table(out)["rank"].chunks]
    assert listed == [["low", "middle", "high"]] * 2


def test_anonymize_trains_on_some_of_many_records(file, tmp_path: Path, monkeypatch):
    from sfumato.auditing import anonymize_files

    monkeypatch.setattr(anonymize_files, "MOST_TRAINED_ON", 200)
    done = call(
        "anonymize", file, "--target", "wage", "--identifiers", "name", "--model", "decision-tree", "--out-of-core",
        "-o", tmp_path / "out.parquet",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "trained and tested on 200 records" in " ".join(done.stderr.split())
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 600


def test_anonymize_needs_a_parquet_file_to_write_and_leaves_nothing_where_it_fails(file, tmp_path: Path):
    asked = ("anonymize", file, "--target", "wage", "--model", "decision-tree", "--out-of-core")
    assert call(*asked).exit_code == 2
    assert call(*asked, "-o", tmp_path / "out.csv").exit_code == 2
    done = call(*asked, "--quasi-identifiers", "age", "-o", tmp_path / "out.parquet", "--save", tmp_path / "p.json")
    assert done.exit_code == 2  # the name would pass through
    assert list(tmp_path.iterdir()) == []


# -- the choice -------------------------------------------------------------------------------------------------


def test_a_file_that_needs_too_much_memory_is_worked_through_and_a_line_says_so(file, monkeypatch):
    asked = ("measure", file, "--quasi-identifiers", "age,job")
    assert "out of core" not in call(*asked).stderr
    monkeypatch.setattr(open_tables, "memory_bytes", lambda: 100_000)
    done = call(*asked)
    assert done.exit_code == 0
    assert "processed out of core" in " ".join(done.stderr.split())
    assert "out of core" not in call(*asked, "--in-memory").stderr


def test_memory_is_known_here():
    found = open_tables.memory_bytes()
    assert found is not None
    assert found > 2**28


def test_a_csv_file_cannot_be_worked_through(tmp_path: Path):
    (tmp_path / "people.csv").write_text("age,sex\n30,f\n40,m\n")
    done = call("measure", tmp_path / "people.csv", "--out-of-core")
    assert done.exit_code == 2
    assert "Parquet" in done.stderr


def test_a_damaged_file_is_said_to_be_one(tmp_path: Path, monkeypatch):
    (tmp_path / "people.parquet").write_bytes(b"PAR1 and no more")
    for more in ([], ["--out-of-core"]):
        done = call("measure", tmp_path / "people.parquet", *more)
        assert done.exit_code == 2
        assert "people.parquet" in done.stderr
