# SPDX-License-Identifier: Apache-2.0
"""Private releases of files and of tables in DuckDB: the counts of the table in memory, noise once, conditions kept."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import InputError, MondrianAnonymizer, ParameterError, PrivacyLedger
from sfumato import parquet as files
from sfumato.private import noise
from twins.seeded_noise import NoNoise, RecordedNoise, SeededNoise

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")


def people(n, seed):
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "age": random.integers(18, 90, n),
            "job": pa.array(random.choice(["cook", "nurse", "smith"], n)).dictionary_encode(),
            "pay": random.random(n).round(6),
            "ill": random.choice(["no", "yes"], n),
        }
    )


@pytest.fixture
def anonymizer():
    return MondrianAnonymizer(k=20).fit(people(400, 0).drop_columns(["ill"]))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(people(5000, 1), path, row_group_size=700)
    return path


def release(anonymizer, source, destination, **settings):
    asked = {"mechanism": "counts", "epsilon": 1.0, "target": "ill", "labels": ["no", "yes"]}
    return files.release(anonymizer, source, destination, **asked | settings)


def counted(table):
    return Counter(map(tuple, zip(*(map(str, table.column(n).to_pylist()) for n in table.column_names), strict=True)))


def test_people_of_the_partition_are_found_in_any_block_of_any_file(anonymizer, source, tmp_path):
    later = tmp_path / "later.parquet"
    pq.write_table(pa.concat_tables([people(2000, 2), people(400, 0)]), later, row_group_size=700)
    with pytest.raises(InputError, match=r"made from|were used to make"):
        release(anonymizer, [source, later], tmp_path / "out.parquet", fitted_on="others")
    assert not (tmp_path / "out.parquet").exists()


def test_the_counts_are_those_of_the_table_in_memory(anonymizer, source, tmp_path, monkeypatch):
    monkeypatch.setattr(noise, "_source", NoNoise())
    made = release(anonymizer, source, tmp_path / "out.parquet")
    table = pq.read_table(source)
    read = pq.read_table(tmp_path / "out.parquet")
    expected = anonymizer.transform(table.drop_columns(["ill"])).append_column("ill", table.column("ill"))
    assert counted(read) == counted(expected)
    rows = read.to_pylist()
    assert sum(row == after for row, after in pairwise(rows)) < len(rows) / 4  # shuffled, and not cell after cell
    assert pa.types.is_dictionary(read.schema.field("job").type)
    assert (made.n_records, made.n_groups, made.path) == (5000, anonymizer.n_groups_, tmp_path / "out.parquet")


def test_noise_is_drawn_once_for_all_blocks(anonymizer, source, tmp_path, monkeypatch):
    source_of_noise = RecordedNoise()
    monkeypatch.setattr(noise, "_source", source_of_noise)
    release(anonymizer, source, tmp_path / "out.parquet")
    assert source_of_noise.geometric_asked == [(1.0, 2 * anonymizer.n_groups_)]


def test_samples_and_tables_without_labels(anonymizer, source, tmp_path):
    made = release(anonymizer, source, tmp_path / "out.parquet", mechanism="sample", epsilon=2.0, rate=0.5, k=10)
    seen = counted(pq.read_table(tmp_path / "out.parquet"))
    assert min(seen.values()) >= made.smallest_group >= 10
    assert 1500 < made.n_records < 2700
    plain = tmp_path / "plain.parquet"
    pq.write_table(people(5000, 1).drop_columns(["ill"]), plain)
    again = release(anonymizer, plain, tmp_path / "2.parquet", target=None, labels=None, ledger=PrivacyLedger())
    assert abs(again.n_records - 5000) < 300
    assert pq.read_table(tmp_path / "2.parquet").column_names == ["age", "job", "pay"]


def test_conditions_are_checked_before_anything_is_written(anonymizer, source, tmp_path):
    own = tmp_path / "own.parquet"
    pq.write_table(people(400, 0), own)
    out = tmp_path / "out.parquet"
    with pytest.raises(InputError, match="were used to make the artifact"):
        release(anonymizer, own, out)
    with pytest.raises(InputError, match="column 'ill' is not rewritten by the partition"):
        release(anonymizer, source, out, target=None, labels=None)
    with pytest.raises(ParameterError, match="target and labels: expected both or neither"):
        release(anonymizer, source, out, labels=None)
    with pytest.raises(InputError, match="the table has no column 'sick'"):
        release(anonymizer, source, out, target="sick")
    with pytest.raises(InputError, match="y has labels that are not among the 1"):
        release(anonymizer, source, out, labels=["no"])
    with pytest.raises(ValueError, match=r"expected at most epsilon 0\.5"):
        release(anonymizer, source, out, ledger=PrivacyLedger(epsilon=0.5))
    with pytest.raises(ParameterError, match="expected a Partition or a fitted anonymizer"):
        release(MondrianAnonymizer(), source, out)
    with pytest.raises(ParameterError, match="is one of the files read"):
        release(anonymizer, source, source, ledger=PrivacyLedger())
    assert not out.exists()


# -- persons ---------------------------------------------------------------------------------------------------------


def households(n_persons, seed):
    """Return persons with 1 to 5 equal records each, so that it does not matter which of them count."""
    random = np.random.default_rng(seed)
    whose = np.repeat(np.arange(n_persons), random.integers(1, 6, n_persons))
    whose = random.permutation(whose)
    return people(n_persons, seed).take(whose).append_column("person", [[f"person {p}" for p in whose]])


def in_memory(anonymizer, table, **settings):
    asked = {"mechanism": "counts", "epsilon": 1.0, "labels": ["no", "yes"], "fitted_on": "others"}
    made = anonymizer.release(
        table.drop_columns(["ill"]), table.column("ill"), ledger=PrivacyLedger(), **asked | settings
    )
    return made, made.table.append_column("ill", [made.target])


@pytest.mark.parametrize("most_held", [1 << 23, 500], ids=["one share", "many shares"])
@pytest.mark.parametrize("most", [1, 2, 9])
def test_persons_are_capped_as_in_memory(anonymizer, tmp_path, monkeypatch, most, most_held):
    table = households(2000, 3)
    pq.write_table(table, tmp_path / "people.parquet", row_group_size=700)
    persons = {"unit": "person", "most_per_person": most}
    monkeypatch.setattr(noise, "_source", SeededNoise(1))
    made = release(
        anonymizer, tmp_path / "people.parquet", tmp_path / "out.parquet",
        fitted_on="others", most_held=most_held, **persons,
    )  # fmt: skip
    monkeypatch.setattr(noise, "_source", SeededNoise(1))
    expected, released = in_memory(anonymizer, table, **persons)
    read = pq.read_table(tmp_path / "out.parquet")
    assert counted(read) == counted(released)
    assert read.column_names == ["age", "job", "pay", "ill"]
    assert made.privacy == expected.privacy
    assert (made.privacy.unit, made.privacy.adjacency) == ("person", "adding or removing all records of one person")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "people.parquet"]  # no working files


def test_the_noise_of_capped_files_grows_with_the_cap(anonymizer, tmp_path, monkeypatch):
    source_of_noise = RecordedNoise()
    monkeypatch.setattr(noise, "_source", source_of_noise)
    table = households(800, 4)
    pq.write_table(table, tmp_path / "people.parquet")
    made = release(
        anonymizer,
        tmp_path / "people.parquet",
        tmp_path / "out.parquet",
        unit="person",
        most_per_person=3,
        most_held=300,
    )
    assert source_of_noise.geometric_asked == [(1.0 / 3, 2 * anonymizer.n_groups_)]
    sizes = np.unique(table.column("person").to_pylist(), return_counts=True)[1]
    assert made.n_records == np.minimum(sizes, 3).sum()


def test_a_sample_of_capped_files_has_one_record_of_each_person(anonymizer, tmp_path):
    table = households(3000, 5)
    pq.write_table(table, tmp_path / "people.parquet", row_group_size=1000)
    made = release(
        anonymizer, tmp_path / "people.parquet", tmp_path / "out.parquet",
        mechanism="sample", epsilon=2.0, rate=0.5, k=5, unit="person", most_per_person=1,
    )  # fmt: skip
    assert min(counted(pq.read_table(tmp_path / "out.parquet")).values()) >= 5
    assert made.n_records < 1500 + 6 * 27.4  # half of 3,000 persons, and six standard deviations


def test_bad_persons_of_files_are_explained(anonymizer, tmp_path):
    table, out = households(500, 6), tmp_path / "out.parquet"
    pq.write_table(table, tmp_path / "people.parquet")
    source = tmp_path / "people.parquet"
    with pytest.raises(InputError, match="the table has no column 'human'"):
        release(anonymizer, source, out, unit="human", most_per_person=1)
    with pytest.raises(ParameterError, match="unit='person' without most_per_person"):
        release(anonymizer, source, out, unit="person")
    with pytest.raises(InputError, match="column 'person' is not rewritten by the partition"):
        release(anonymizer, source, out)
    nameless = table.set_column(4, "person", [[None, *table.column("person").to_pylist()[1:]]])
    pq.write_table(nameless, source)
    with pytest.raises(InputError, match="column 'person' has missing values"):
        release(anonymizer, source, out, unit="person", most_per_person=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet"]


def test_persons_in_duckdb_are_capped_as_in_memory(anonymizer, tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    from sfumato.duckdb import release as release_from

    table = households(600, 7)
    pq.write_table(table, tmp_path / "people.parquet")
    with duckdb.connect(str(tmp_path / "people.db")) as database:
        database.execute(f"create table people as select * from '{tmp_path}/people.parquet'")
    settings = {"mechanism": "counts", "epsilon": 1.0, "labels": ["no", "yes"], "unit": "person", "most_per_person": 2}
    monkeypatch.setattr(noise, "_source", SeededNoise(2))
    release_from(
        anonymizer, f"duckdb:{tmp_path}/people.db?table=people", tmp_path / "out.parquet",
        target="ill", fitted_on="others", most_held=200, **settings,
    )  # fmt: skip
    monkeypatch.setattr(noise, "_source", SeededNoise(2))
    _, released = in_memory(anonymizer, table, **settings)
    assert counted(pq.read_table(tmp_path / "out.parquet")) == counted(released)


def test_tables_in_duckdb(anonymizer, source, tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    from sfumato.duckdb import release as release_from

    monkeypatch.setattr(noise, "_source", NoNoise())
    settings = {"mechanism": "counts", "epsilon": 1.0, "target": "ill", "labels": ["no", "yes"]}
    with duckdb.connect(str(tmp_path / "people.db")) as database:
        database.execute(f"create table people as select * from '{source}'")
    made = release_from(
        anonymizer, f"duckdb:{tmp_path}/people.db?table=people", f"duckdb:{tmp_path}/out.db?table=out", **settings
    )
    assert made.privacy.epsilon == 1.0
    with duckdb.connect(str(tmp_path / "out.db"), read_only=True) as database:
        read = database.sql("select * from out").to_arrow_table()
    table = pq.read_table(source)
    expected = anonymizer.transform(table.drop_columns(["ill"])).append_column("ill", table.column("ill"))
    assert counted(read) == counted(expected)
