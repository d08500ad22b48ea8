# SPDX-License-Identifier: Apache-2.0
"""Tables in DuckDB: addresses, one state of the table in every pass, odd names and types, and tables as results."""

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

from sfumato import Anatomizer, KAnonymity, MondrianAnonymizer, UniformMinimizer
from sfumato.backends.duckdb import reader, session, writer
from sfumato.backends.duckdb.address import parse_address
from sfumato.backends.duckdb.reader import DuckDBTable
from sfumato.errors import GuaranteeError, InputError, MissingExtraError, ParameterError

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
from sfumato.duckdb import anatomize, fit_transform, measure, transform  # noqa: E402

N = 600


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A database with a table, a view whose order changes, and a schema of its own."""
    path = tmp_path / "people.db"
    with duckdb.connect(path) as connection:
        connection.execute(
            "create table people as select range::int as number, (range * 7 % 60 + 20)::int as age, "
            f"['north', 'south', 'east'][range % 3 + 1] as town from range({N})"
        )
        connection.execute("create view restless as select * from people order by random()")
        connection.execute("create schema inner_one")
        connection.execute("create table inner_one.few as from people limit 50")
    return path


def mondrian(k: int = 10, **settings: Any) -> MondrianAnonymizer:
    return MondrianAnonymizer(k, quasi_identifiers=["age", "town"], identifiers=["number"], **settings)


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# -- addresses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "table", "schema", "query"),
    [
        ("duckdb:people.db?table=people", "people.db", "people", None, None),
        ("duckdb:/data/people.db?schema=a&table=b", "/data/people.db", "b", "a", None),
        ("DuckDB:my%20people.db?table=a%26b", "my people.db", "a&b", None, None),
        ("duckdb:p.db?table=two words", "p.db", "two words", None, None),
        ("duckdb:p.db?query=select * from a where b like '%20%' and c = '?&=+'", "p.db", None, None,
         "select * from a where b like '%20%' and c = '?&=+'"),
        ("duckdb:p.db?query=from%20a%20where%20b=1%2B1", "p.db", None, None, "from a where b=1+1"),
        ("duckdb:?query=from 'parts/*.parquet'", None, None, None, "from 'parts/*.parquet'"),
    ],
)  # fmt: skip
def test_an_address_says_where_a_table_is(text: str, path: Any, table: Any, schema: Any, query: Any):
    found = parse_address(text)
    assert (found.path and str(found.path), found.table, found.schema, found.query) == (path, table, schema, query)
    assert str(found) == text


@pytest.mark.parametrize(
    ("text", "expected_words"),
    [
        ("people.db", "does not begin with duckdb:"),
        ("duckdb:people.db", "names no table and no query"),
        ("duckdb:people.db?", "names no table and no query"),
        ("duckdb:people.db?query= ", "empty query"),
        ("duckdb:people.db?tabel=people", "says 'tabel=people'"),
        ("duckdb:people.db?table=a&table=b", "table= twice"),
        ("duckdb:people.db?schema=a", "a schema but no table"),
        ("duckdb:people.db?table=a&query=select 1", "a query without table"),
        ("duckdb:?table=people", "names a table but no database"),
        ("duckdb:///people.db?table=people", "Remove two slashes"),
    ],
)
def test_a_wrong_address_is_answered_with_a_right_one(text: str, expected_words: str):
    with pytest.raises(ParameterError, match=expected_words) as caught:
        measure(text)
    assert "expected" in str(caught.value)


def test_what_an_address_does_not_lead_to_is_said(people: Path, tmp_path: Path):
    (tmp_path / "other.db").write_bytes(b"PAR1" * 10)
    wrong = {
        f"duckdb:{tmp_path}/no.db?table=a": "does not exist",
        f"duckdb:{tmp_path}/other.db?table=a": "not a database of DuckDB",
        f"duckdb:{people}?table=persons": "no table or view named 'persons': expected one of 'inner_one.few', 'people'",
        f"duckdb:{people}?schema=none&table=people": "no table or view named 'people' in the schema 'none'",
        f"duckdb:{people}?query=select nobody from people": "nobody",
        f"duckdb:{people}?query=selct 1": "syntax error",
        f"duckdb:{people}?query=drop table people": "not one SELECT",
        f"duckdb:{people}?query=select 1; select 2": "not one SELECT",
        f"duckdb:{people}?query=create table x as select 1; select 2": "not one SELECT",
        f"duckdb:{people}?query=select age, town as AGE from people": "several columns named 'age'",
        f"duckdb:{people}?query=from people where age < 0": "0 records in 3 columns",
        "duckdb:?query=from 'nothing/*.parquet'": "No files found",
    }
    for address, words in wrong.items():
        with pytest.raises((InputError, ParameterError), match=words):
            measure(address, ["age"])
    with pytest.raises(ParameterError, match="type Table: expected an address"):
        measure(pa.table({"a": [1]}))
    assert left_in(tmp_path) == ["other.db", "people.db"]


def test_messages_show_no_values_of_records(people: Path):
    with pytest.raises(InputError, match="ConversionException") as caught:
        measure(f"duckdb:{people}?query=select town::int as town from people")
    assert "north" not in str(caught.value)


def test_without_duckdb_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sfumato\[duckdb\]'"):
        measure("duckdb:people.db?table=people")


# -- one state of the table -------------------------------------------------------------------------------------


def test_views_and_queries_are_read_once(people: Path, tmp_path: Path):
    for place in ("table=restless", "query=select * from people order by random()"):
        with DuckDBTable(f"duckdb:{people}?{place}", folder=tmp_path) as table:
            passes = [pa.concat_tables(list(table.batches(["number"], size=size))) for size in (7, 100, 10_000)]
            assert passes[0]["number"].to_pylist() != list(range(N))
            assert all(one["number"].to_pylist() == passes[0]["number"].to_pylist() for one in passes)
            assert table.head(5)["number"].to_pylist() == passes[0]["number"].to_pylist()[:5]
            numbers = [found for _, found in table.each(lambda start, block: (start, block["number"][0].as_py()))]
            assert numbers == [(0, passes[0]["number"][0].as_py())]
        assert left_in(tmp_path) == ["people.db"]


def test_a_table_in_a_schema_and_a_name_in_another_case(people: Path):
    with DuckDBTable(f"duckdb:{people}?schema=INNER_ONE&table=Few") as table:
        assert table.n_records == 50


def test_a_database_is_opened_read_only(people: Path):
    before = people.read_bytes()
    people.chmod(0o400)
    measure(f"duckdb:{people}?table=people", ["age"])
    measure(f"duckdb:{people}?table=restless", ["age"])
    assert people.read_bytes() == before


def test_what_another_connection_writes_is_not_seen(people: Path, tmp_path: Path):
    connection, other = duckdb.connect(people), duckdb.connect(people)
    opened = {
        "relation": connection.table("people"),
        "address of a table": f"duckdb:{people}?table=people",
        "address of a query": f"duckdb:{people}?query=from people",
    }
    for source in opened.values():
        with DuckDBTable(source, folder=tmp_path) as table:
            other.execute("insert into people select 1000, 1, 'west' from range(50)")
            assert table.n_records == sum(block.num_rows for block in table.batches())
            assert "west" not in pa.concat_tables(list(table.batches(["town"])))["town"].to_pylist()
            other.execute("delete from people where town = 'west'")
    for own in (connection, other):
        own.close()
    assert left_in(tmp_path) == ["people.db"]


def test_another_process_that_writes_is_said(people: Path):
    program = f"import duckdb, sys; c = duckdb.connect({str(people)!r}); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writing:
        assert writing.stdout is not None and writing.stdout.readline() == b"1\n"
        with pytest.raises(InputError, match="another process has the database open for writing"):
            measure(f"duckdb:{people}?table=people", ["age"])
        with pytest.raises(InputError, match="another process has the database open for writing"):
            fit_transform(mondrian(), f"duckdb:{people}?table=people", f"duckdb:{people}?table=released")
        assert writing.stdin is not None
        writing.stdin.close()


def test_attached_databases_and_relations_of_frames(people: Path, tmp_path: Path):
    query = f"attach '{people}' as elsewhere; select * from elsewhere.people"
    assert measure(f"duckdb:?query={query}", ["age"]).n_records == N
    frame = pa.table({"age": [30, 30, 41]})
    assert measure(duckdb.connect().from_arrow(frame)).n_records == 3
    pq.write_table(frame, tmp_path / "part.parquet")
    assert measure(f"duckdb:?query=from '{tmp_path}/*.parquet'").n_records == 3


# -- names and types --------------------------------------------------------------------------------------------

ODD = ['a"b', " ", "select", "group", "x;y", "tab\tbed", "ünï", "it's", "a.b", '"; drop table people; --']


@pytest.mark.parametrize("table", ['a"b', " ", "select", "it's", 'x"; drop table people; --', "a.b", "100%"])
def test_odd_names_are_names_and_nothing_else(people: Path, tmp_path: Path, table: str):
    frame = pa.table({name: np.arange(40) // 10 + place for place, name in enumerate(ODD)})  # noqa: F841 - in SQL
    quoted = table.replace('"', '""')
    with duckdb.connect(people) as connection:
        connection.execute(f'create table "{quoted}" as from frame')
    address = f"duckdb:{people}?table={table.replace('%', '%25')}"
    found = measure(address, ODD)
    assert (found.k, found.n_records, list(found.quasi_identifiers)) == (10, 40, ODD)
    out = f"duckdb:{tmp_path}/out.db?table={table.replace('%', '%25')}"
    fit_transform(MondrianAnonymizer(10), address, out)
    with duckdb.connect(tmp_path / "out.db") as connection:
        released = connection.sql(f'from "{quoted}"').to_arrow_table()
    assert (released.column_names, released.num_rows) == (ODD, 40)
    with duckdb.connect(people) as connection:
        assert connection.sql("select count(*) from people").fetchall() == [(N,)]


TYPES = {
    "HUGEINT": "range::hugeint",
    "DECIMAL": "(range / 4)::decimal(10, 2)",
    "UUID": "('00000000-0000-0000-0000-00000000000' || range % 10)::uuid",
    "ENUM": "['low', 'high'][range % 2 + 1]::enum('low', 'high', 'highest')",
    "TIMESTAMP_NS": "(timestamp '2020-01-01' + range * interval 1 day)::timestamp_ns",
    "TIMESTAMP_S": "(timestamp '2020-01-01' + range * interval 1 day)::timestamp_s",
    "TIMESTAMPTZ": "(timestamp '2020-01-01' + range * interval 1 day)::timestamptz",
    "TIME": "time '01:02:03'",
    "DATE": "date '2020-01-01' + range::int",
    "BOOLEAN": "range % 2 = 0",
    "FLOAT": "(range / 8)::float",
    "UBIGINT": "range::ubigint",
    "JSON": """('{"a": ' || range % 3 || '}')::json""",
    "NULL": "null",
}
REFUSED = {
    "UHUGEINT": "range::uhugeint",
    "BIGNUM": "range::bignum",
    "TIME WITH TIME ZONE": "'10:00:00+05'::timetz",
    "INTERVAL": "range * interval 1 day",
    "BIT": "'101'::bit",
    "BLOB": "'x'::blob",
    "LIST": "[range]",
    "STRUCT": "{'a': range}",
    "MAP": "map {'a': range}",
    "UNION": "union_value(a := range)",
}


@pytest.mark.filterwarnings("ignore:quasi-identifiers that:UserWarning")
@pytest.mark.parametrize("name", list(TYPES))
def test_types_are_read_as_their_arrow_types(tmp_path: Path, name: str):
    import sfumato

    query = f"select {TYPES[name]} as x, range % 2 as y from range(100)"
    table = duckdb.connect().sql(query).to_arrow_table()
    found = measure(f"duckdb:?query={query}", ["x"], ["y"])
    expected = sfumato.measure(table, ["x"], ["y"])
    assert found.groups.n_groups == expected.groups.n_groups
    local, outside = MondrianAnonymizer(10, keep=["x"]), MondrianAnonymizer(10, keep=["x"])
    release = fit_transform(outside, f"duckdb:?query={query}", tmp_path / "out.parquet")
    local.fit(table)
    assert outside.partition_.to_dict() == local.partition_.to_dict()
    assert release.n_records == 100


@pytest.mark.parametrize("name", list(REFUSED))
def test_types_that_cannot_be_read_are_refused_by_column(name: str):
    query = f"select {REFUSED[name]} as odd, range % 2 as y from range(100)"
    for source in (f"duckdb:?query={query}", duckdb.connect().sql(query)):
        with pytest.raises(InputError, match=r"column 'odd' has the type .*: expected numbers, text"):
            measure(source, ["odd"])


def test_numbers_beyond_all_reading_are_refused_in_words():
    for value in (
        "170141183460469231731687303715884105727::hugeint", "'infinity'::double", "'infinity'::timestamp",
        "'-infinity'::date", "'infinity'::timestamptz",
    ):  # fmt: skip
        with pytest.raises(InputError, match="'odd'"):
            fit_transform(
                MondrianAnonymizer(2), f"duckdb:?query=select {value} as odd from range(9)", "never-written.parquet"
            )


# -- tables as results ------------------------------------------------------------------------------------------


def test_a_release_becomes_a_table_as_it_becomes_a_file(people: Path, tmp_path: Path):
    address = f"duckdb:{people}?table=people"
    fit_transform(mondrian(), address, tmp_path / "out.parquet", shuffle=False)
    for database in (people, tmp_path / "new.db"):
        release = fit_transform(mondrian(), address, f"duckdb:{database}?table=released", shuffle=False)
        assert (release.path, release.n_records) == (database, N)
        with duckdb.connect(database) as connection:
            found = connection.table("released").to_arrow_table()
        assert found.to_pylist() == pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert left_in(tmp_path) == ["new.db", "out.parquet", "people.db"]


def test_a_table_that_exists_is_replaced_only_where_asked(people: Path, tmp_path: Path):
    address, out = f"duckdb:{people}?table=people", f"duckdb:{tmp_path}/out.db?table=released"
    fit_transform(mondrian(10), address, out)
    with pytest.raises(ParameterError, match="'released' exists already"):
        fit_transform(mondrian(20), address, out)
    assert measure(out, ["age", "town"]).k < 20
    fit_transform(mondrian(50), address, out, replace=True)
    assert measure(out, ["age", "town"]).k >= 50
    for wrong, words in {
        f"duckdb:{people}?table=restless": "is a view",
        f"duckdb:{people}?schema=none&table=released": "no schema 'none'",
        f"duckdb:{people}?query=select 1": "expected a table to write",
        f"duckdb:{tmp_path}/none/out.db?table=released": "folder of",
    }.items():
        with pytest.raises(ParameterError, match=words):
            fit_transform(mondrian(), address, wrong, replace=True)
    with pytest.raises(ParameterError, match="expected a folder"):
        anatomize(Anatomizer(2, sensitive="town"), address, out)


def test_a_generalized_table(people: Path, tmp_path: Path):
    coarse = UniformMinimizer(3).fit(pa.table({"age": np.arange(20, 80)}), np.arange(60) % 2).generalization_
    out = f"duckdb:{tmp_path}/out.db?table=coarse"
    assert transform(coarse, f"duckdb:{people}?table=people", out, output="labels", drop=["number"]) == N
    with duckdb.connect(tmp_path / "out.db") as connection:
        assert connection.sql("select count(*), count(distinct age) from coarse").fetchall() == [(N, 3)]


def test_a_table_that_fails_its_recount_is_not_there(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plain = writer.literal

    def spoiled(text: Any) -> str:  # another file than the one that was judged
        pq.write_table(pa.table({"age": [1] * (N - 1) + [2], "town": ["x"] * N}), text)
        return plain(text)

    monkeypatch.setattr(writer, "literal", spoiled)
    for database in (people, tmp_path / "new.db"):
        with pytest.raises(GuaranteeError, match="a group of 1 records"):
            fit_transform(mondrian(), f"duckdb:{people}?table=people", f"duckdb:{database}?table=released")
    assert left_in(tmp_path) == ["people.db"]
    with duckdb.connect(people) as connection:
        assert connection.sql("from duckdb_tables() select table_name where not internal").fetchall() == [
            ("few",), ("people",),
        ]  # fmt: skip


def test_persons_are_counted_although_their_column_does_not_leave(people: Path, tmp_path: Path):
    anonymizer = MondrianAnonymizer(10, criteria=[KAnonymity(10, unit="number")], quasi_identifiers=["age", "town"])
    release = fit_transform(anonymizer, f"duckdb:{people}?table=people", f"duckdb:{tmp_path}/out.db?table=released")
    assert release.smallest_group >= 10


KILLED = textwrap.dedent("""
    import os, signal
    from sfumato import MondrianAnonymizer
    from sfumato.backends.duckdb import writer
    from sfumato.duckdb import fit_transform
    def stop(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)
    def at(what, done, total):
        if what == {at!r}:
            stop()
    if {at!r} == "committing":
        writer._recount = stop
    anonymizer = MondrianAnonymizer(10, quasi_identifiers=["age", "town"], identifiers=["number"])
    fit_transform(anonymizer, {source!r}, {out!r}, progress=at)
""")


@pytest.mark.thorough
@pytest.mark.parametrize(("at", "database"), [("growing", "new.db"), ("committing", "people.db")])
def test_a_killed_process_leaves_no_table(people: Path, tmp_path: Path, at: str, database: str):
    out = f"duckdb:{tmp_path / database}?table=released"
    program = KILLED.format(at=at, source=f"duckdb:{people}?query=from people", out=out)
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL
    left = [path for path in tmp_path.iterdir() if path != people and path.suffix != ".wal"]
    assert all(path.name.startswith(".sfumato-") and path.stat().st_mode & 0o077 == 0 for path in left)
    # The copy of the records has no name by then; what is left at most is the release, before it was judged.
    assert {path.name for folder in left for path in folder.rglob("*") if path.is_file()} <= {
        "release.parquet", "new.db", "new.db.wal",
    }  # fmt: skip
    with duckdb.connect(people) as connection:
        assert connection.sql("select count(*) from people").fetchall() == [(N,)]
        assert connection.sql("from duckdb_tables() select count(*) where table_name = 'released'").fetchall() == [(0,)]


def test_working_files_are_for_the_owner_alone(people: Path, tmp_path: Path):
    with DuckDBTable(f"duckdb:{people}?query=from people", folder=tmp_path) as table:
        [private] = [path for path in tmp_path.iterdir() if path != people]
        assert private.stat().st_mode & 0o777 == 0o700
        assert not [path for path in private.rglob("*") if path.suffix == ".db"]
        assert table.n_records == N
    assert left_in(tmp_path) == ["people.db"]


def test_blocks_are_cut_where_asked(people: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "RECORDS_AT_ONCE", 250)
    with DuckDBTable(f"duckdb:{people}?table=people") as table:
        assert [block.num_rows for block in table.batches()] == [250, 250, 100]
        assert [n for n, _ in table.each(lambda start, block: None, ["age"], n_threads=2)] == [250, 250, 100]
        assert next(iter(table.batches(size=7))).num_rows == 7


def test_names_in_sql():
    assert session.identifier('a"b') == '"a""b"'
    assert session.literal("it's") == "'it''s'"
